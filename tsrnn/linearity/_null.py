"""Linear model under the null: AR by least squares or ARMA, with residuals and scores."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd
from scipy.signal import lfilter

from tsrnn.contract import positive_integer
from tsrnn.data import read_panel
from tsrnn.linear import ARMA

MOST_LAGS = 12  # largest order chosen by AIC: a year of months
FEWEST = 30  # observations, below which no test here holds its size
CONSTANT = 1e-13  # range over largest value of a constant series, by rounding
EXACT = 1e-10  # residual over largest value of an exact fit, by rounding
TERMS_SHARE = 10  # observations for each term of the third-order expansion, a rule of thumb
MOST_TERMS = 120  # of a robust test, whose memory grows with their square


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Linear model fitted to one series, from which every test starts."""

    name: str
    series: np.ndarray  # (T,) stationary: less mean or trend, differenced, of deviation one
    residuals: np.ndarray  # (n,) of the last n rows of `series`
    scores: np.ndarray  # (n, k) derivatives of the one-step forecasts by the parameters
    lags: int  # of the nonlinear terms
    const: float = 0.0
    ar: np.ndarray | None = None  # None for a model with season or differences
    ma: np.ndarray | None = None

    @property
    def inputs(self) -> np.ndarray:
        """Lags 1 to `lags` of the series in the rows of the residuals, (n, lags)."""
        return lagged(self.series, self.lags)[-len(self.residuals) :]

    def coefficients(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Constant, autoregressive and moving average coefficients, for simulation.

        A ValueError refuses models with a season, differences or a drift.
        """
        if self.ar is None or self.ma is None:
            raise ValueError(
                "series are simulated from models without season, differences and drift; got "
                f"{self.name}. Test the differenced series by lags or order=(p, q)"
            )
        return np.array([self.const]), self.ar, self.ma


def linear_model(
    y: Any,
    lags: int | None = None,
    order: tuple[int, int] | None = None,
    nonlinear_lags: int | None = None,
) -> LinearModel:
    """Fit the linear model of a series, or read a fitted `ARMA`; arguments as in `terasvirta_test`.

    By default `nonlinear_lags` are as many of the lags as give at most 120 terms of second and
    third order, and at most one for ten observations.
    """
    if isinstance(y, ARMA):
        if lags is not None or order is not None:
            raise ValueError("lags and order are those of the fitted ARMA; leave them out")
        model = _from_arma(y)
    else:
        series = read_series(y)
        series = series / np.abs(series).max()  # prevents overflow of squares
        series = (series - series.mean()) / series.std(ddof=1)
        if order is not None:
            model = _fit_order(series, order, lags)
        else:
            p = choose_lags(series) if lags is None else positive_integer("lags", lags)
            model = autoregression(series, p)
    n = len(model.residuals)
    if nonlinear_lags is None:
        m = model.lags
        while m > 1 and volterra_terms(m) > min(n / TERMS_SHARE, MOST_TERMS):
            m -= 1
    else:
        m = positive_integer("nonlinear_lags", nonlinear_lags)
        if m > n // 4:
            raise ValueError(
                f"nonlinear_lags must be at most a quarter of the {n} observations; got {m}"
            )
    # More lags than in the linear model lose rows at the start.
    lost = len(model.series) - n
    rows = slice(max(m - lost, 0), None)
    return replace(model, residuals=model.residuals[rows], scores=model.scores[rows], lags=m)


def read_series(y: Any) -> np.ndarray:
    """Read one series of at least 30 finite numbers that vary as an array (T,), or refuse it."""
    if isinstance(y, pd.Series | pd.DataFrame):
        values = read_panel(y, missing="error")
        if values.n_series > 1 or values.values.shape[1] > 1:
            raise ValueError(
                f"the tests are of one series; got {values.n_series} of {values.values.shape[1]} "
                "columns. Call them for each"
            )
        series = values.values[:, 0]
    else:
        try:
            series = np.asarray(y, float)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"y must be a fitted ARMA, or a series of numbers; got a {type(y).__name__}"
            ) from error
        if series.ndim != 1:
            raise ValueError(
                f"y must be one series, of shape (T,); got an array of shape {series.shape}"
            )
        if not np.isfinite(series).all():
            raise ValueError(
                f"y must be finite; {(~np.isfinite(series)).sum()} of {len(series)} values are "
                "missing or infinite. Fill them, or take the longest stretch without gaps"
            )
    if len(series) < FEWEST:
        raise ValueError(
            f"y must have at least {FEWEST} values to be tested; got {len(series)}. Give more rows"
        )
    if np.ptp(series) <= CONSTANT * np.abs(series).max():
        raise ValueError("y must vary; it is constant, and there is nothing to test. Leave it out")
    return series


def lagged(series: np.ndarray, lags: int) -> np.ndarray:
    """Lags 1 to `lags`, as the last axis, of a series (T,) or columns (T, B), in T - lags rows."""
    T = len(series)
    return np.stack([series[lags - i : T - i] for i in range(1, lags + 1)], axis=-1)


def volterra_terms(lags: int) -> int:
    """Number of products of two and of three lags."""
    return math.comb(lags + 1, 2) + math.comb(lags + 2, 3)


def choose_lags(series: np.ndarray) -> int:
    """Choose the order of an AR by AIC, with all orders on the same rows."""
    most = min(MOST_LAGS, len(series) // 10)
    X = np.column_stack([np.ones(len(series) - most), lagged(series, most)])
    y, n = series[most:], len(series) - most
    # One QR serves all orders: column i of Q reduces the sum of squares by its squared product.
    explained = np.cumsum((np.linalg.qr(X)[0].T @ y) ** 2)
    sse = np.maximum(y @ y - explained[1:], np.finfo(float).tiny)
    return int(np.argmin(n * np.log(sse / n) + 2 * np.arange(2, most + 2))) + 1


def autoregression(series: np.ndarray, p: int) -> LinearModel:
    """AR(p) with constant by least squares.

    A ValueError refuses series with too few rows, or that follow the recursion without error.
    """
    if 3 * (p + 1) > len(series):
        raise ValueError(
            f"an AR({p}) needs at least {3 * (p + 1)} values; got {len(series)}. Take fewer lags"
        )
    X = np.column_stack([np.ones(len(series) - p), lagged(series, p)])
    y = series[p:]
    beta = np.linalg.lstsq(X, y, rcond=None)[0]
    e = y - X @ beta
    if np.abs(e).max() <= EXACT * np.abs(series).max():
        raise ValueError(
            f"an AR({p}) must leave errors; it fits the series exactly, and there is nothing to "
            "test. Take fewer lags, or leave the series out"
        )
    return LinearModel(f"AR({p})", series, e, X, p, float(beta[0]), beta[1:], np.zeros(0))


def _fit_order(series: np.ndarray, order: Any, lags: int | None) -> LinearModel:
    if lags is not None:
        raise ValueError(f"give lags or order; got lags={lags!r} and order={order!r}")
    legal = isinstance(order, tuple | list) and len(order) == 2
    if not legal or not all(
        isinstance(k, int | np.integer) and not isinstance(k, bool) and k >= 0 for k in order
    ):
        raise ValueError(
            f"order must be (p, q), two integers of at least 0; got {order!r}. A model with "
            "differences or a season is fitted by tsrnn.linear.ARMA and given in place of y"
        )
    p, q = order
    if not p and not q:
        raise ValueError("order must have a lag: p or q of at least 1; got (0, 0)")
    if not q:
        return autoregression(series, p)
    return _from_arma(ARMA(order=(p, q)).fit(pd.Series(series)))


def _from_arma(fitted: ARMA) -> LinearModel:
    r"""Linear model of a fitted ARMA, with scores by filters.

    With :math:`\phi(B) w_t = \theta(B) e_t` (seasonal polynomials multiplied), derivatives of the
    forecast are :math:`\theta(B)^{-1} w_{t-i}` and :math:`\theta(B)^{-1} e_{t-j}`; derivatives by
    constant and drift are their regressors filtered by :math:`\phi(B) / \theta(B)`.
    """
    y, e, params, family = _checked_arma(fitted)
    spec = family.spec
    time = np.arange(1.0, len(y) + 1)
    regressors = {"const": np.ones(len(y)), "drift": time}
    trend = {name: regressors[name] for name in spec.trend_names}
    w = y - sum(params[name] * x for name, x in trend.items()) if trend else y.astype(float)
    difference = _polynomial([-1.0], 1, spec.d)
    if spec.D:
        difference = np.convolve(difference, _polynomial([-1.0], spec.m, spec.D))
    w = lfilter(difference, [1.0], w)

    def coefficients(kind: str, number: int, step: int) -> np.ndarray:
        prefix = kind if step == 1 else f"{kind}.S"
        return np.array([params[f"{prefix}.L{step * i}"] for i in range(1, number + 1)])

    season = spec.m or 1
    phi, theta = (coefficients(k, n, 1) for k, n in (("ar", spec.p), ("ma", spec.q)))
    Phi, Theta = (
        coefficients(k, n, season) if n else np.zeros(0)
        for k, n in (("ar", spec.P), ("ma", spec.Q))
    )
    polynomials = [_polynomial(c, step) for c, step in
                   ((-phi, 1), (-Phi, season), (theta, 1), (Theta, season))]  # fmt: skip
    whole = np.convolve(polynomials[2], polynomials[3])
    ar_part = np.convolve(np.convolve(polynomials[0], polynomials[1]), difference)
    e_known = np.where(np.isfinite(e), e, 0.0)
    scores = [lfilter(ar_part, whole, x) for x in trend.values()]
    for number, step, other, x in (
        (spec.p, 1, polynomials[1], w),
        (spec.P, season, polynomials[0], w),
        (spec.q, 1, polynomials[3], e_known),
        (spec.Q, season, polynomials[2], e_known),
    ):
        scores += [lfilter(np.append(np.zeros(step * i), other), whole, x)
                   for i in range(1, number + 1)]  # fmt: skip
    lags = max(spec.p + season * spec.P if spec.P else spec.p, spec.q, 1)
    lost = spec.lost + max(len(polynomials[0]) + len(polynomials[1]) - 2, spec.q, 1)
    scale = w[spec.lost :].std(ddof=1)
    if len(y) - lost < FEWEST or not scale > 0:
        raise ValueError(f"the ARMA must leave at least {FEWEST} residuals after its lags")
    plain = not (spec.m or spec.d or "drift" in trend)
    name = f"ARMA({spec.p}, {spec.q})" if plain else str(family.title)
    return LinearModel(
        name, w[spec.lost :] / scale, e[lost:] / scale, np.column_stack(scores)[lost:] / scale,
        lags, 0.0, phi if plain else None, theta if plain else None,
    )  # fmt: skip


def _checked_arma(fitted: ARMA) -> tuple[np.ndarray, np.ndarray, pd.Series, Any]:
    """Series, residuals, estimates and family of a fitted ARMA.

    A ValueError refuses several series, regressors, no lags, and missing values.
    """
    residuals = fitted.residuals()  # refuses a model without its data
    assert fitted.fitted_.panel is not None
    panel, family = fitted.fitted_.panel, cast(Any, fitted.fitted_.family)
    spec = family.spec
    if len(fitted.units_) > 1:
        raise ValueError(
            f"the tests are of one series; the ARMA was fitted to {len(fitted.units_)}. Fit one"
        )
    if spec.regressors:
        raise ValueError(
            f"the ARMA must be without regressors; got {spec.regressors}. Test the series less "
            "what they explain"
        )
    if not spec.p + spec.q + spec.P + spec.Q:
        raise ValueError("the ARMA must have a lag of the series or of the innovations; got none")
    y = panel.values[:, 0]
    if not np.isfinite(y).all():
        raise ValueError("the series of the ARMA has missing values: fill them and fit again")
    params = fitted.params_.iloc[0]
    if not np.isfinite(params).all():
        raise ValueError(f"the ARMA could not be fitted: {fitted.messages_.iloc[0]}")
    column = "residual" if isinstance(residuals, pd.DataFrame) and "residual" in residuals else None
    e = np.asarray(residuals[column] if column else residuals, float).reshape(-1)
    return y, e, params, family


def _polynomial(coefficients: Any, step: int, power: int = 1) -> np.ndarray:
    """Coefficients of (1 + c_1 B^step + c_2 B^(2 step) + ...)^power."""
    base = np.zeros(step * len(coefficients) + 1)
    base[0] = 1.0
    base[step::step] = coefficients
    result = np.ones(1)
    for _ in range(power):
        result = np.convolve(result, base)
    return result
