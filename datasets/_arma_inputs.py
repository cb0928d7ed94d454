"""Stationary ARMA sequences, exactly stationary from the first step on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tsrnn.datasets._checks import check_at_least, not_negative

__all__ = ["arma_inputs"]


def arma_inputs(
    n: int,
    length: int,
    ar: ArrayLike = (0.7,),
    ma: ArrayLike = (0.3,),
    *,
    n_inputs: int = 1,
    innovation_std: float = 1.0,
    random_state: int | np.random.Generator | None = None,
) -> np.ndarray:
    r"""Independent stationary ARMA(p, q) sequences with normal innovations.

    .. math:: y_t = \sum_{i=1}^p \phi_i\, y_{t-i} + e_t + \sum_{j=1}^q \theta_j\, e_{t-j},
        \qquad e_t \sim N(0, \sigma^2),

    with the signs of statsmodels: all coefficients are added.

    Parameters
    ----------
    n : int
        Number of samples.
    length : int
        T, steps of a sequence.
    ar : array_like of shape (p,), or float, default 0.7
        :math:`\phi_1, \dots, \phi_p`; empty for none.
    ma : array_like of shape (q,), or float, default 0.3
        :math:`\theta_1, \dots, \theta_q`; empty for none.
    n_inputs : int, default 1
        Sequences of a sample, independent of each other.
    innovation_std : float, default 1
        :math:`\sigma`.
    random_state : int or numpy.random.Generator, optional
        Seed, or the generator to draw from; another sample at every call by default.

    Returns
    -------
    ndarray of shape (n, T, n_inputs)
        The first rows of a seed are the same for any `n`.

    Raises
    ------
    ValueError
        If no stationary causal process has the coefficients `ar`: a root of
        :math:`1 - \phi_1 x - \dots - \phi_p x^p` does not lie outside the unit circle. Also if a
        coefficient is not finite, a size no positive integer, or `innovation_std` negative.

    Notes
    -----
    There is no burn-in. The sequence is run as the filter :math:`s_t = A s_{t-1} + b e_t`,
    :math:`y_t = s_{t-1,1} + e_t`, of max(p, q) states, and :math:`s_0` is drawn from its
    stationary distribution :math:`N(0, P)`, where :math:`P = A P A^\top + \sigma^2 b b^\top`.

    The defaults are the inputs of the first simulation in Section 6.1 of the paper, "the AR and MA
    coefficients being 0.7 and 0.3", read with the signs used here and in most software: a variance
    of 2.96. The paper's own equation (2) subtracts the MA term; in that reading, give
    ``ma=-0.3``: a variance of 1.31. It states no variance of the innovations either.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, Section 6.1.
    Brockwell and Davis (1991), Time Series: Theory and Methods, Sections 3.1 and 12.1.

    Examples
    --------
    >>> from tsrnn.datasets import arma_inputs
    >>> x = arma_inputs(2000, 50, ar=0.7, ma=0.3, random_state=0)
    >>> x.shape
    (2000, 50, 1)
    >>> round(float(x.var()), 1)
    3.0
    """
    from scipy.signal import lfilter  # slow to import for those who only load data

    check_at_least(1, n=n, length=length, n_inputs=n_inputs)
    std = not_negative("innovation_std", innovation_std)
    phi, theta = _coefficients("ar", ar), _coefficients("ma", ma)
    _check_stationary(phi)
    # A and b for the states that `scipy.signal.lfilter` keeps.
    m = max(len(phi), len(theta))
    long_phi, long_theta = (np.pad(a, (0, m - len(a))) for a in (phi, theta))
    transition = np.eye(m, k=1)
    if m:
        transition[:, 0] = long_phi
    loading = long_phi + long_theta
    generator = np.random.default_rng(random_state)
    normal = std * generator.standard_normal((n, n_inputs, m + length))
    start = normal[..., :m] @ _root_of_stationary_covariance(transition, loading).T
    numerator, denominator = np.r_[1.0, theta], np.r_[1.0, -phi]
    y, _ = lfilter(numerator, denominator, normal[..., m:], zi=start)
    return np.ascontiguousarray(y.swapaxes(1, 2))


def _coefficients(name: str, values: Any) -> np.ndarray:
    array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be a vector of finite coefficients; got {values!r}")
    return np.trim_zeros(array, "b")


def _check_stationary(phi: np.ndarray) -> None:
    if not len(phi):
        return
    # Roots of the polynomial are the inverses of these.
    inverse = np.roots(np.r_[1.0, -phi])
    largest = inverse[np.abs(inverse).argmax()]
    if abs(largest) >= 1:
        root = 1 / largest
        shown = f"{root:.6g}" if root.imag else f"{root.real:.6g}"
        raise ValueError(
            "ar must be stationary: all roots of 1 - ar_1 x - ... - ar_p x^p must lie outside the "
            f"unit circle; got ar={phi.tolist()} with the root {shown} of modulus {abs(root):.6g}"
        )


def _root_of_stationary_covariance(transition: np.ndarray, loading: np.ndarray) -> np.ndarray:
    """Return R with R R' = P. P may be singular, and rounding may make eigenvalues negative."""
    from scipy.linalg import solve_discrete_lyapunov

    if not len(loading):
        return transition
    covariance = solve_discrete_lyapunov(transition, np.outer(loading, loading))
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return vectors * np.sqrt(np.maximum(values, 0.0))
