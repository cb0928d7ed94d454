"""Regression functions of known Hoelder smoothness."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tsrnn.datasets._checks import check_at_least, is_real
from tsrnn.datasets._regression import RegressionProcess

__all__ = ["HolderProcess"]

# With more terms, 2^j x loses the phase of a wave in float64; factorials limit beta.
MOST_TERMS = 30
LARGEST_BETA = 10.0


class HolderProcess(RegressionProcess):
    r"""Regression process with a mean of known smoothness in all inputs of all steps.

    Inputs are uniform on :math:`[0, 1]^D`, where :math:`D = d_{\mathrm{in}} T` and x is the
    sequence written as one vector, and the mean is a lacunary series of plane waves,

    .. math:: f_0(x) = c \sum_{j=0}^{J-1} a_j \cos\bigl(2\pi 2^j\, w_j^\top x + \varphi_j\bigr),
        \qquad a_j = 2^{-j\beta} v_j,

    with random signs :math:`w_j \in \{-1, 1\}^D` and phases :math:`\varphi_j \sim U[0, 2\pi)`. It
    is not additive: every wave depends on all D coordinates. For :math:`\beta = k + \omega` with an
    integer k and :math:`\omega \in (0, 1]`, the weights are :math:`v_j = 1`, or
    :math:`v_j = (j+1)^{-2}` if :math:`\omega = 1`.

    Parameters
    ----------
    beta : float
        Smoothness, above 0 and at most 10.
    n_inputs : int
        :math:`d_{\mathrm{in}}`, inputs at a step.
    length : int
        T, steps of a sequence.
    U : float, default 1
        Bound of the Hoelder norm of :math:`f_0`, which sets c.
    noise_std : float, optional
        Standard deviation of the normal errors; by default that of :math:`f_0(X)`, which makes half
        of the variance of the response noise.
    n_terms : int, default 16
        Number J of waves, from 1 to 30. The function is smooth at distances below :math:`2^{-J}`.
    random_state : int or numpy.random.Generator, optional
        Seed of the signs and phases, or the generator to draw them from.

    Attributes
    ----------
    beta : float
    holder_norm : float
        Upper bound U of the norm of Definition 1 in the paper.
    sup_bound : float
        Upper bound :math:`c \sum_j a_j` of :math:`|f_0|`.
    signal_std : float
        Exact standard deviation of :math:`f_0(X)`, which has mean 0.
    amplitudes : ndarray of shape (J,)
        Amplitudes :math:`c\, a_j`.
    directions : ndarray of shape (J, D)
        Signs :math:`w_j`; input i of step t has position :math:`t\, d_{\mathrm{in}} + i`, both
        counted from 0.
    phases : ndarray of shape (J,)
        Phases :math:`\varphi_j`.
    length, n_inputs, n_outputs, noise_std
        See `RegressionProcess`.

    Raises
    ------
    ValueError
        If a size, `beta`, `U` or `n_terms` is out of its range, or `noise_std` negative.

    Notes
    -----
    *Norm.* Let c = 1. A derivative of order m of wave j is at most :math:`a_j (2\pi 2^j)^m`, and
    there are :math:`\binom{D+m-1}{m}` of them, so the first sum of Definition 1 is at most
    :math:`\sum_{m \le k} \binom{D+m-1}{m} \sum_j a_j (2\pi 2^j)^m`. Between points at a distance r,
    :math:`|w_j^\top (x - y)| \le \sqrt D\, r`, so a derivative of order k differs by at most

    .. math:: 2 (2\pi)^k \sum_j v_j 2^{-j\omega} \min(1, 2^j s) \le 2 (2\pi)^k K s^\omega,
        \qquad s = \pi \sqrt D\, r,

    where K may be :math:`\sum_j v_j`, since :math:`\min(1, u) \le u^\omega`, and for
    :math:`\omega < 1` also :math:`(1 - 2^{\omega-1})^{-1} + (1 - 2^{-\omega})^{-1}`, from geometric
    series over j with :math:`2^j s \le 1` and over the other j. The smaller K is taken.
    `holder_norm` is c times the sum of both parts, the second one counted
    :math:`\binom{D+k-1}{k}` times. It is bounded in J; :math:`\|x - y\|` is Euclidean.

    *No more than beta.* For :math:`J = \infty`, the series has along each coordinate Fourier
    coefficients of modulus :math:`c\, a_j / 2` at the frequencies :math:`2^j`, where a periodic
    function of smoothness :math:`\beta' > \beta` would have :math:`O(2^{-j\beta'})`. For
    :math:`\omega = 1` the weights :math:`v_j = 1` would not suffice, since the derivative of order
    k is then not Lipschitz (Zygmund, 1945).

    *Signal.* Frequencies are distinct integers, so that :math:`E f_0(X) = 0` and
    :math:`\operatorname{var} f_0(X) = c^2 \sum_j a_j^2 / 2` hold exactly. The sums over all partial
    derivatives make c small. For U = 1, `signal_std` is

    ===== ====== ====== ======
    beta  D = 1  D = 4  D = 16
    ===== ====== ====== ======
    0.5   0.036  0.027  0.019
    1     0.064  0.034  0.017
    1.5   4.3e-3 8.0e-4 1.5e-4
    2     0.010  1.3e-3 1.7e-4
    ===== ====== ====== ======

    so that errors of a given standard deviation soon hide the function, unless `U` is larger or
    `noise_std` small.

    *Limits.* Plane waves are simple functions, and :math:`f_0` is not the hardest of its class: a
    network may attain a better rate than :math:`N^{-2\beta / (2\beta + D)}` of the worst case.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, Section 4.1, Definition 1, and Theorem 3.
    Zygmund (1945), Smooth functions, Duke Mathematical Journal 12.

    Examples
    --------
    >>> from tsrnn.datasets import HolderProcess
    >>> process = HolderProcess(0.5, n_inputs=1, length=4, random_state=0)
    >>> X, z = process.sample(1000, random_state=1)
    >>> X.shape, z.shape
    ((1000, 4, 1), (1000,))
    >>> process.holder_norm, round(process.signal_std, 3)
    (1.0, 0.027)
    """

    beta: float
    holder_norm: float
    sup_bound: float
    signal_std: float
    amplitudes: np.ndarray
    directions: np.ndarray
    phases: np.ndarray

    def __init__(
        self,
        beta: float,
        n_inputs: int,
        length: int,
        *,
        U: float = 1.0,
        noise_std: float | None = None,
        n_terms: int = 16,
        random_state: int | np.random.Generator | None = None,
    ):
        check_at_least(1, n_inputs=n_inputs, length=length, n_terms=n_terms)
        if n_terms > MOST_TERMS:
            raise ValueError(f"n_terms must be at most {MOST_TERMS}; got {n_terms}")
        beta = _positive("beta", beta, LARGEST_BETA)
        dimension = int(n_inputs) * int(length)
        bound = _positive("U", U, math.inf)
        unscaled, norm = _series(beta, dimension, n_terms)
        amplitudes = bound / norm * unscaled
        signal_std = math.sqrt((amplitudes**2).sum() / 2)
        super().__init__(length, n_inputs, 1, signal_std if noise_std is None else noise_std)
        generator = np.random.default_rng(random_state)
        self._set(
            beta=beta,
            holder_norm=float(U),
            sup_bound=float(amplitudes.sum()),
            signal_std=signal_std,
            amplitudes=amplitudes,
            directions=generator.choice([-1.0, 1.0], (n_terms, dimension)),
            phases=generator.uniform(0.0, 2 * math.pi, n_terms),
        )

    def _draw_inputs(self, n: int, generator: np.random.Generator) -> np.ndarray:
        return generator.random((n, self.length, self.n_inputs))

    def _mean_of(self, X: np.ndarray) -> np.ndarray:
        along = X.reshape(len(X), -1) @ self.directions.T
        waves = along * 2.0 ** np.arange(len(self.phases))
        # Subtract whole turns first, which keeps the phase of the cosine exact to rounding.
        return np.cos(2 * math.pi * (waves % 1.0) + self.phases) @ self.amplitudes


def _series(beta: float, dimension: int, n_terms: int) -> tuple[np.ndarray, float]:
    """Return amplitudes a_j and the bound of the norm for c = 1, see the notes of the class."""
    k = math.ceil(beta) - 1
    omega = beta - k  # in (0, 1]
    j = np.arange(n_terms)
    weights = (j + 1.0) ** (-2 if omega == 1 else 0)
    amplitudes = 2.0 ** (-beta * j) * weights

    def partial_derivatives(order: int) -> int:
        return math.comb(dimension + order - 1, order)

    derivatives = sum(
        partial_derivatives(m) * float((amplitudes * (2 * math.pi * 2.0**j) ** m).sum())
        for m in range(k + 1)
    )
    constant = float(weights.sum())
    if omega < 1:
        constant = min(constant, 1 / (1 - 2 ** (omega - 1)) + 1 / (1 - 2**-omega))
    quotient = 2 * (2 * math.pi) ** k * constant * (math.pi * math.sqrt(dimension)) ** omega
    return amplitudes, derivatives + partial_derivatives(k) * quotient


def _positive(name: str, value: Any, highest: float) -> float:
    if not is_real(value) or not 0 < value <= highest or math.isinf(value):
        bound = "finite" if math.isinf(highest) else f"at most {highest:g}"
        raise ValueError(f"{name} must be a number above 0 and {bound}; got {value!r}")
    return float(value)
