"""Realisation of forecasts as a linear recurrence, by the method of Ho and Kalman."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from tsrnn.interpret._checks import is_count

LARGEST_ORDER = 40  # more waves and decays cannot be interpreted
ENOUGH = 0.01  # share of the variance that may be lost
LITTLE = 1e-10  # singular value over the largest: below, rounding errors


@dataclass(frozen=True, eq=False)
class Realisation:
    r"""Linear recurrence that continues forecasts from step to step.

    .. math:: x_{k+1} = A x_k, \qquad \hat y_{t+k} = C x_k

    Attributes
    ----------
    transition : ndarray of shape (n, n)
        Matrix A, whose eigenvalues are the features of the forecasts.
    output : ndarray of shape (C, n)
        Matrix C.
    states : ndarray of shape (M, n)
        First state :math:`x_1` of each path.
    singular_values : ndarray
        Singular values of the block Hankel matrix, or of the matrix of paths.
    error : float
        Share of the sum of squares of the paths that the recurrence does not reproduce.

    Examples
    --------
    >>> from tsrnn.interpret import realise
    >>> found = realise([1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125])
    >>> found.order, found.transition.round(6).tolist(), round(found.error, 6)
    (1, [[0.5]], 0.0)
    """

    transition: np.ndarray
    output: np.ndarray
    states: np.ndarray
    singular_values: np.ndarray
    error: float

    @property
    def order(self) -> int:
        """Number of states."""
        return len(self.transition)

    def parts(self, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues (m,) on or above the real axis, and their additive parts (m, M, steps, C).

        The parts sum over the first axis to the reproduced paths.
        """
        values, vectors = np.linalg.eig(self.transition)
        # Modes of a nearly defective matrix are huge and cancel; least squares bounds them.
        states = np.linalg.lstsq(vectors, self.states.T.astype(complex), rcond=None)[0]
        chosen = np.flatnonzero(values.imag >= 0)
        powers = values[chosen, None] ** np.arange(steps)
        loadings = self.output @ vectors[:, chosen]
        parts = np.einsum("ms,cm,mn->mnsc", powers, loadings, states[chosen])
        twice = np.where(values[chosen].imag > 0, 2.0, 1.0)  # includes the conjugate
        return values[chosen], twice[:, None, None, None] * parts.real


def realise(impulse_response: Any, *, order: int | None = None, tol: float = ENOUGH) -> Realisation:
    r"""Realise an impulse response as a linear recurrence.

    The block Hankel matrix of :math:`\psi_1, \dots, \psi_{2N-1}`, with the blocks
    :math:`\psi_{i+j-1} = C A^{i+j-2} B`, is the product of :math:`(C', A'C', \dots)'` and
    :math:`(B, AB, \dots)`. Its singular value decomposition gives both factors. A follows from the
    first factor, because a shift by one block of rows multiplies it by A (Ho and Kalman, 1966;
    Kung, 1978).

    Parameters
    ----------
    impulse_response : array_like of shape (T,) or (T, C, D)
        Responses of C outputs to D inputs, from :math:`\psi_1` on; T is at least 3.
    order : int, optional
        Number of states; by default the smallest that loses at most `tol`.
    tol : float, default 0.01
        Share of the sum of squares of the Hankel matrix that may be lost, in [0, 1).

    Returns
    -------
    Realisation
        Realisation with a path for each column of the Hankel matrix, the responses from a lag on.

    Raises
    ------
    ValueError
        If the response is too short, not finite or zero, or `order` is too large for it.

    References
    ----------
    Ho, B. L. and Kalman, R. E. (1966). Effective construction of linear state-variable models
    from input/output functions. Regelungstechnik 14, 545-548.
    Kung, S. Y. (1978). A new identification and model reduction algorithm via singular value
    decomposition. Asilomar Conference on Circuits, Systems and Computers.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.interpret import realise
    >>> j = np.arange(40)
    >>> response = 0.9**j * np.cos(2 * np.pi * j / 12)
    >>> values, _ = realise(response).parts(1)
    >>> abs(values).round(3).tolist(), (2 * np.pi / np.angle(values)).round(2).tolist()
    ([0.9], [12.0])
    """
    response = np.asarray(impulse_response, dtype=float)
    if response.ndim == 1:
        response = response[:, None, None]
    if response.ndim != 3 or len(response) < 3 or 0 in response.shape:
        raise ValueError(
            "an impulse response has the shape (T,) or (T, outputs, inputs), with at least three "
            f"steps; got {np.shape(impulse_response)}"
        )
    columns = (len(response) + 1) // 2
    steps = len(response) - columns + 1
    lags = np.arange(steps)[:, None] + np.arange(columns)
    hankel = response[lags]  # (steps, columns, C, D)
    paths = hankel.transpose(1, 3, 0, 2).reshape(-1, steps, response.shape[1])
    return realise_paths(paths, order=order, tol=tol)


def realise_paths(
    paths: np.ndarray, *, order: int | None = None, tol: float = ENOUGH
) -> Realisation:
    r"""Realise paths of forecasts or responses as a linear recurrence.

    If forecasts follow :math:`\hat y_{t+k} = C A^{k-1} x_t`, the matrix of their paths is the
    product of :math:`(C', A'C', \dots)'` and the states, like a Hankel matrix. A follows from its
    leading right singular vectors as in `realise`. Paths along data weigh directions by their
    effect on the forecasts.

    Parameters
    ----------
    paths : ndarray of shape (M, K, C)
        Paths of K steps of C targets.
    order : int, optional
        Number of states; by default the smallest that loses at most `tol`, at most 40.
    tol : float, default 0.01
        Share of the sum of squares of the paths that may be lost.

    Returns
    -------
    Realisation

    Raises
    ------
    ValueError
        If the paths are not finite, all zero, or too short for the order.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.interpret import realise_paths
    >>> start = np.random.default_rng(0).normal(size=(50, 1, 1))
    >>> paths = start * 0.8 ** np.arange(6)[:, None]
    >>> realise_paths(paths).transition.round(6).tolist()
    [[0.8]]
    """
    paths = np.asarray(paths, dtype=float)
    if paths.ndim != 3 or paths.shape[1] < 2 or 0 in paths.shape:
        raise ValueError(f"paths have the shape (M, steps, targets); got {paths.shape}")
    if not (np.isfinite(paths).all() and paths.any()):
        raise ValueError("paths must be finite, and not all zero, to be realised")
    if not (isinstance(tol, numbers.Real) and 0 <= tol < 1):
        raise ValueError(f"tol must be a share in [0, 1); got {tol!r}")
    n_paths, steps, width = paths.shape
    # Divided by the largest value, so that squares neither over- nor underflow.
    flat = paths.reshape(n_paths, steps * width) / np.abs(paths).max()
    _, singular, right = np.linalg.svd(flat, full_matrices=False)
    # The last block of rows has no successor: the order is at most the rank of the others.
    most = min(int((singular > LITTLE * singular[0]).sum()), (steps - 1) * width)
    if order is not None and not (is_count(order) and order <= most):
        raise ValueError(
            f"order must be a whole number from 1 to {most} for these paths; got {order!r}"
        )
    best: tuple[float, Any] = (np.inf, None)
    for n in [order] if order is not None else range(1, min(most, LARGEST_ORDER) + 1):
        observability = right[:n].T * np.sqrt(singular[:n])  # balanced as in Kung (1978)
        transition = np.linalg.lstsq(observability[:-width], observability[width:], rcond=None)[0]
        output = observability[:width]
        powers = [output]
        for _ in range(steps - 1):
            powers.append(powers[-1] @ transition)
        reproduced = np.concatenate(powers)
        if not np.isfinite(reproduced).all():
            continue
        # Least-squares states reproduce the paths better than the singular vectors.
        states = np.linalg.lstsq(reproduced, flat.T, rcond=None)[0]
        error = float(((flat.T - reproduced @ states) ** 2).sum() / (flat**2).sum())
        if error < best[0]:
            best = error, (transition, output, states.T)
        if error <= tol:
            break
    error, (transition, output, states) = best
    scale = np.abs(paths).max()
    return Realisation(transition, output, states * scale, singular, error)
