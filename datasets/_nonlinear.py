"""Nonlinear autoregressions with known conditional means, a yardstick for forecasts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tsrnn.datasets._checks import check_at_least, check_positive, is_real, not_negative

__all__ = [
    "bilinear",
    "henon_map",
    "logistic_map",
    "markov_switching",
    "smooth_transition",
    "threshold_autoregression",
]

BURN_IN = 200  # rows after which a stationary process has forgotten its start

Seed = int | np.random.Generator | None
Series = tuple[np.ndarray, np.ndarray]


def bilinear(
    n: int, random_state: Seed = None, *, ar: float = 0.5, cross: float = 0.3, noise: float = 1.0
) -> Series:
    r"""Bilinear process: the coefficient of the last value is the last innovation.

    .. math:: y_t = \phi y_{t-1} + \beta y_{t-1} e_{t-1} + e_t, \qquad e_t \sim N(0, \sigma^2)

    Parameters
    ----------
    n : int
        Rows.
    random_state : int, numpy.random.Generator or None
    ar, cross : float
        :math:`\phi` and :math:`\beta`; stationary where
        :math:`\phi^2 + \beta^2 \sigma^2 < 1`.
    noise : float
        :math:`\sigma`, standard deviation of the innovations.

    Returns
    -------
    y, mean : ndarray of shape (n,)
        Series, and conditional mean of each row given the innovations before it. They follow
        from the earlier rows where the process is invertible, as at the defaults. No forecast
        one step ahead has a lower mean squared error than this mean.

    Raises
    ------
    ValueError
        If the process is not stationary, or a size is not legal.

    References
    ----------
    Granger and Andersen (1978), An Introduction to Bilinear Time Series Models.

    Examples
    --------
    >>> from tsrnn.datasets import bilinear
    >>> y, mean = bilinear(5000, 0)
    >>> round(float(((y - mean) ** 2).mean()), 1)
    1.0
    """
    phi, beta = _coefficient("ar", ar), _coefficient("cross", cross)
    check_positive(noise=noise)
    if phi**2 + (beta * noise) ** 2 >= 1:
        raise ValueError(
            "a bilinear process is stationary with a variance where ar ** 2 + (cross * noise) ** 2 "
            f"is below 1; got ar={ar}, cross={cross}, noise={noise}"
        )

    def mean(past: np.ndarray, innovations: np.ndarray) -> float:
        return phi * past[-1] + beta * past[-1] * innovations[-1]

    return _simulated(n, random_state, mean, noise)


def threshold_autoregression(
    n: int,
    random_state: Seed = None,
    *,
    below: float = 0.9,
    above: float = -0.9,
    threshold: float = 0.0,
    noise: float = 1.0,
) -> Series:
    r"""Threshold autoregression (SETAR) of two regimes.

    .. math:: y_t = \begin{cases} \phi_1 y_{t-1} + e_t & y_{t-1} \le r \\
        \phi_2 y_{t-1} + e_t & y_{t-1} > r \end{cases}, \qquad e_t \sim N(0, \sigma^2)

    Parameters
    ----------
    n : int
        Rows.
    random_state : int, numpy.random.Generator or None
    below, above : float
        :math:`\phi_1` and :math:`\phi_2`; stationary where they and their product are
        below 1.
    threshold : float
        r.
    noise : float
        :math:`\sigma`.

    Returns
    -------
    y, mean : ndarray of shape (n,)
        The series and its conditional means, as of `bilinear`.

    Raises
    ------
    ValueError
        If the process is not stationary, or a size is not legal.

    References
    ----------
    Tong and Lim (1980), Threshold Autoregression, Limit Cycles and Cyclical Data.
    Petruccelli and Woolford (1984), A Threshold AR(1) Model.

    Examples
    --------
    >>> from tsrnn.datasets import threshold_autoregression
    >>> y, mean = threshold_autoregression(5000, 0)
    >>> bool((mean[1:] <= 0).mean() > 0.99)  # every conditional mean lies below the threshold
    True
    """
    low, high = _coefficient("below", below), _coefficient("above", above)
    check_positive(noise=noise)
    if max(low, high, low * high) >= 1:
        raise ValueError(
            "a threshold autoregression is stationary where below, above and their product are "
            f"less than 1; got below={below}, above={above}"
        )
    limit = _coefficient("threshold", threshold)

    def mean(past: np.ndarray, innovations: np.ndarray) -> float:
        return (low if past[-1] <= limit else high) * past[-1]

    return _simulated(n, random_state, mean, noise)


def smooth_transition(
    n: int,
    random_state: Seed = None,
    *,
    ar: float = 0.9,
    change: float = -1.5,
    rate: float = 1.0,
    noise: float = 1.0,
) -> Series:
    r"""Exponential smooth transition autoregression (ESTAR).

    .. math:: y_t = \big(\phi + \delta (1 - e^{-\gamma y_{t-1}^2})\big) y_{t-1} + e_t,
        \qquad e_t \sim N(0, \sigma^2)

    Parameters
    ----------
    n : int
        Rows.
    random_state : int, numpy.random.Generator or None
    ar, change : float
        :math:`\phi` and :math:`\delta`: the coefficient is :math:`\phi` near zero and
        :math:`\phi + \delta`, between -1 and 1, far from it.
    rate : float
        :math:`\gamma`.
    noise : float
        :math:`\sigma`.

    Returns
    -------
    y, mean : ndarray of shape (n,)
        The series and its conditional means, as of `bilinear`.

    Raises
    ------
    ValueError
        If the process is not stationary, or a size is not legal.

    References
    ----------
    Teräsvirta (1994), Specification, Estimation, and Evaluation of Smooth Transition
    Autoregressive Models.

    Examples
    --------
    >>> from tsrnn.datasets import smooth_transition
    >>> y, mean = smooth_transition(5000, 0)
    >>> round(float(((y - mean) ** 2).mean()), 1)
    1.0
    """
    phi, delta, gamma = (
        _coefficient(*pair) for pair in (("ar", ar), ("change", change), ("rate", rate))
    )
    check_positive(noise=noise)
    if abs(phi + delta) >= 1 or gamma <= 0:
        raise ValueError(
            "a smooth transition autoregression is stationary where ar + change lies between -1 "
            f"and 1 and rate is positive; got ar={ar}, change={change}, rate={rate}"
        )

    def mean(past: np.ndarray, innovations: np.ndarray) -> float:
        return (phi + delta * -np.expm1(-gamma * past[-1] ** 2)) * past[-1]

    return _simulated(n, random_state, mean, noise)


def markov_switching(
    n: int,
    random_state: Seed = None,
    *,
    means: tuple[float, float] = (-2.0, 2.0),
    ar: tuple[float, float] = (0.9, -0.5),
    stay: tuple[float, float] = (0.95, 0.95),
    noise: float = 1.0,
) -> Series:
    r"""Autoregression whose constant and coefficient switch with a hidden Markov chain.

    .. math:: y_t = \mu_{s_t} + \phi_{s_t} y_{t-1} + e_t, \qquad
        P(s_t = i \mid s_{t-1} = i) = p_i, \qquad e_t \sim N(0, \sigma^2)

    Parameters
    ----------
    n : int
        Rows.
    random_state : int, numpy.random.Generator or None
    means, ar : pairs of float
        :math:`\mu_i` and :math:`\phi_i`, the latter between -1 and 1.
    stay : pair of float
        :math:`p_i`, between 0 and 1.
    noise : float
        :math:`\sigma`.

    Returns
    -------
    y, mean : ndarray of shape (n,)
        Series, and conditional means given the rows before but not the regimes. They come from
        the filter of Hamilton (1989), started at the stationary distribution before a burn-in.

    Raises
    ------
    ValueError
        If an argument is not legal.

    References
    ----------
    Hamilton (1989), A New Approach to the Economic Analysis of Nonstationary Time Series.

    Examples
    --------
    >>> from tsrnn.datasets import markov_switching
    >>> y, mean = markov_switching(5000, 0)
    >>> bool(((y - mean) ** 2).mean() > 1)  # more than the noise: regimes are not seen
    True
    """
    if any(np.shape(pair) != (2,) for pair in (means, ar, stay)):
        raise ValueError(f"means, ar and stay are pairs; got {means!r}, {ar!r} and {stay!r}")
    constants = np.array([_coefficient("means", value) for value in means])
    slopes = np.array([_coefficient("ar", value) for value in ar])
    remain = np.array([_coefficient("stay", value) for value in stay])
    check_positive(noise=noise)
    if (np.abs(slopes) >= 1).any() or (remain <= 0).any() or (remain >= 1).any():
        raise ValueError(
            f"ar must lie between -1 and 1 and stay between 0 and 1; got ar={ar}, stay={stay}"
        )
    check_at_least(1, n=n)
    rng = np.random.default_rng(random_state)
    innovations = noise * rng.standard_normal(n + BURN_IN)
    draws = rng.random(n + BURN_IN)
    transition = np.array([[remain[0], 1 - remain[0]], [1 - remain[1], remain[1]]])
    predicted = (1 - remain)[::-1] / (2 - remain.sum())  # stationary distribution of the chain
    regime = int(draws[0] >= predicted[0])
    y, mean, last = np.empty(n + BURN_IN), np.empty(n + BURN_IN), 0.0
    for t in range(n + BURN_IN):
        regime_means = constants + slopes * last
        mean[t] = predicted @ regime_means
        last = y[t] = regime_means[regime] + innovations[t]
        # Relative to the likelier regime, as densities far from both means would underflow.
        squares = ((y[t] - regime_means) / noise) ** 2
        filtered = predicted * np.exp(-(squares - squares.min()) / 2)
        predicted = filtered / filtered.sum() @ transition
        if t + 1 < n + BURN_IN:
            regime = regime if draws[t + 1] < remain[regime] else 1 - regime
    return y[BURN_IN:], mean[BURN_IN:]


def logistic_map(
    n: int, random_state: Seed = None, *, growth: float = 4.0, noise: float = 0.05
) -> Series:
    r"""Logistic map observed with noise that does not feed back.

    .. math:: x_t = r x_{t-1} (1 - x_{t-1}), \qquad y_t = x_t + e_t, \qquad e_t \sim N(0, \sigma^2)

    Parameters
    ----------
    n : int
        Rows.
    random_state : int, numpy.random.Generator or None
        Draws the start :math:`x_0` as well.
    growth : float
        r, above 0 and at most 4, where the map is chaotic with the Lyapunov exponent log 2.
    noise : float
        :math:`\sigma`; 0 for the map itself.

    Returns
    -------
    y, mean : ndarray of shape (n,)
        Series and means :math:`x_t` given the start. With noise, a forecast from the rows
        before has a larger error than this mean.

    Raises
    ------
    ValueError
        If an argument is not legal.

    References
    ----------
    May (1976), Simple Mathematical Models with Very Complicated Dynamics.

    Examples
    --------
    >>> from tsrnn.datasets import logistic_map
    >>> y, mean = logistic_map(100, 0, noise=0.0)
    >>> bool((y == mean).all())
    True
    """
    r = _coefficient("growth", growth)
    if not 0 < r <= 4:
        raise ValueError(f"growth must be above 0 and at most 4; got {growth!r}")
    return _observed_map(n, random_state, not_negative("noise", noise), (0.0, r, -r), 0.0)


def henon_map(
    n: int, random_state: Seed = None, *, a: float = 1.4, b: float = 0.3, noise: float = 0.05
) -> Series:
    r"""Map of Hénon observed with noise that does not feed back.

    .. math:: x_t = 1 - a x_{t-1}^2 + b x_{t-2}, \qquad y_t = x_t + e_t, \qquad
        e_t \sim N(0, \sigma^2)

    Parameters
    ----------
    n : int
        Rows.
    random_state : int, numpy.random.Generator or None
        Draws the start as well.
    a, b : float
        Coefficients of a map with an attractor; at the defaults its Lyapunov exponent is 0.419.
    noise : float
        :math:`\sigma`; 0 for the map itself.

    Returns
    -------
    y, mean : ndarray of shape (n,)
        Series and means :math:`x_t`, as for `logistic_map`.

    Raises
    ------
    ValueError
        If an argument is not legal, or the orbit escapes to infinity.

    References
    ----------
    Hénon (1976), A Two-dimensional Mapping with a Strange Attractor.

    Examples
    --------
    >>> from tsrnn.datasets import henon_map
    >>> y, mean = henon_map(100, 0, noise=0.0)
    >>> bool(abs(y).max() < 1.3)
    True
    """
    square, memory = -_coefficient("a", a), _coefficient("b", b)
    return _observed_map(n, random_state, not_negative("noise", noise), (1.0, 0.0, square), memory)


def _observed_map(
    n: int, random_state: Seed, noise: float, polynomial: tuple[float, float, float], memory: float
) -> Series:
    """Observe x_t = c + s x_{t-1} + q x_{t-1}^2 + m x_{t-2} with noise."""
    check_at_least(1, n=n)
    constant, slope, square = polynomial
    rng = np.random.default_rng(random_state)
    x, before = rng.uniform(0.1, 0.3), 0.0  # start in the basin of both maps' attractors
    orbit = np.empty(n + BURN_IN)
    for t in range(n + BURN_IN):
        x, before = constant + slope * x + square * x * x + memory * before, x
        if not abs(x) < 1e6:
            raise ValueError("the orbit escapes to infinity; take coefficients with an attractor")
        orbit[t] = x
    mean = orbit[BURN_IN:]
    return mean + noise * rng.standard_normal(n), mean


def _simulated(
    n: int, random_state: Seed, mean: Callable[[np.ndarray, np.ndarray], float], noise: float
) -> Series:
    """Simulate a series from its conditional mean given earlier rows and innovations."""
    check_at_least(1, n=n)
    rng = np.random.default_rng(random_state)
    innovations = noise * rng.standard_normal(n + BURN_IN + 1)
    y, means = innovations.copy(), np.zeros(n + BURN_IN + 1)
    for t in range(1, n + BURN_IN + 1):
        means[t] = mean(y[:t], innovations[:t])
        y[t] = means[t] + innovations[t]
    return y[BURN_IN + 1 :], means[BURN_IN + 1 :]


def _coefficient(name: str, value: object) -> float:
    """Check that an argument is a finite real number."""
    if not is_real(value) or not np.isfinite(value):  # type: ignore[call-overload]
        raise ValueError(f"{name} must be finite; got {value!r}")
    return float(value)  # type: ignore[arg-type]
