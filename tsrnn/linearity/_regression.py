"""Tests by auxiliary regressions: Teräsvirta, Lin and Granger; Lee, White and Granger."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import chi2, f

from tsrnn.contract import flag, number, positive_integer, seed_of
from tsrnn.linearity._null import LinearModel, linear_model, volterra_terms
from tsrnn.linearity._result import LinearityTest

COLLINEAR = 1e-9  # relative norm that rounding leaves of a collinear column
AT_ONCE = 2_000_000  # floats of a batch of the bootstrap


class Projection(NamedTuple):
    """Residuals and an orthonormal basis of the added terms, both orthogonal to the scores."""

    residuals: np.ndarray  # (n,)
    basis: np.ndarray  # (n, m)
    scores: np.ndarray  # (n, k), orthonormal


def project(residuals: np.ndarray, scores: np.ndarray, terms: np.ndarray) -> Projection:
    """Project residuals and added terms on the complement of the linear model's scores."""
    Z = orthonormal(scores)
    left = terms - Z @ (Z.T @ terms)
    left -= Z @ (Z.T @ left)  # twice, as cubes are nearly collinear with lags
    size = np.linalg.norm(terms - terms.mean(0), axis=0)
    kept = np.linalg.norm(left, axis=0) > COLLINEAR * np.maximum(size, np.finfo(float).tiny)
    return Projection(residuals - Z @ (Z.T @ residuals), orthonormal(left[:, kept]), Z)


def orthonormal(columns: np.ndarray) -> np.ndarray:
    """Orthonormal basis of columns, without collinear ones."""
    sizes = np.linalg.norm(columns, axis=0)
    scaled = columns[:, sizes > 0] / sizes[sizes > 0]
    left, values, _ = np.linalg.svd(scaled, full_matrices=False)
    return left[:, values > COLLINEAR * max(values.max(initial=0.0), 1.0)]


def robust_statistic(residuals: np.ndarray, basis: np.ndarray) -> np.ndarray:
    r"""Wooldridge's (1991) robust LM statistics of residuals (n, B) and added terms (n, m).

    .. math:: LM = s' V^{-1} s, \quad s = \sum_t e_t r_t, \quad V = \sum_t e_t^2 r_t r_t'

    with the residuals r of the terms on the scores. It equals n minus the sum of squared residuals
    of a regression of one on :math:`e_t r_t`.
    """
    n, m = basis.shape
    upper = np.triu_indices(m)
    products = basis[:, upper[0]] * basis[:, upper[1]]
    statistic = np.empty(residuals.shape[1])
    size = max(1, AT_ONCE // (n + m * m))
    for part in np.split(np.arange(len(statistic)), range(size, len(statistic), size)):
        e = residuals[:, part]
        V = np.empty((len(part), m, m))
        V[:, upper[0], upper[1]] = V[:, upper[1], upper[0]] = (e**2).T @ products
        s = e.T @ basis
        # The ridge avoids a singular V of series with few distinct values.
        V += 1e-12 * np.trace(V, axis1=1, axis2=2)[:, None, None] * np.eye(m)
        statistic[part] = (s * np.linalg.solve(V, s[..., None])[..., 0]).sum(1)
    return statistic


def auxiliary_tests(
    model: LinearModel, terms: np.ndarray, robust: bool, n_bootstrap: int, seed: int
) -> tuple[pd.DataFrame, str, tuple[int, ...]]:
    """Test that added terms explain nothing: table of all forms, the main form, its df."""
    e, basis, Z = project(model.residuals, model.scores, terms)
    (n, m), k = basis.shape, Z.shape[1]
    if not m:
        raise ValueError(
            "the nonlinear terms must not be linear in the lags; they are, as of a series with few "
            "values that differ. Take fewer lags, or leave the series out"
        )
    if n - k - m < max(m, 10):
        raise ValueError(
            f"{m} nonlinear terms of {model.lags} lags are too many for {n} observations. Take "
            "fewer nonlinear_lags"
        )
    explained = ((basis.T @ e) ** 2).sum()
    total = e @ e
    forms: dict[str, tuple[float, str, float]] = {}
    degrees: tuple[int, ...] = (m, n - k - m)
    F = (explained / m) / ((total - explained) / degrees[1])
    LR = n * np.log(total / (total - explained))
    forms["F"] = F, f"{m}, {degrees[1]}", f.sf(F, *degrees)
    forms["chi2"] = LR, f"{m}", chi2.sf(LR, m)
    main, df = "F", degrees
    if robust:
        LM = robust_statistic(e[:, None], basis)[0]
        signs = np.random.default_rng(seed).integers(0, 2, (n, n_bootstrap)) * 2.0 - 1.0
        drawn = signs * e[:, None]
        drawn -= Z @ (Z.T @ drawn)
        statistics = robust_statistic(drawn, basis)
        p = (1 + (statistics >= LM).sum()) / (n_bootstrap + 1)
        forms["robust chi2"] = LM, f"{m}", chi2.sf(LM, m)
        forms["robust"] = LM, "-", p
        main, df = "robust", ()
    table = pd.DataFrame(forms, ["statistic", "df", "p_value"]).T
    table.index.name = "form"
    return table.astype({"statistic": float, "p_value": float}), main, df


def terasvirta_test(
    y: Any,
    lags: int | None = None,
    *,
    order: tuple[int, int] | None = None,
    nonlinear_lags: int | None = None,
    robust: bool = True,
    n_bootstrap: int = 499,
    random_state: Any = None,
) -> LinearityTest:
    r"""Test of Teräsvirta, Lin and Granger (1993) of linearity of the mean.

    A network of hidden units, expanded to third order around zero weights, has the lags and their
    products of two and of three as terms. With the residuals e and the scores z of the linear model
    (its regressors, for an AR),

    .. math:: e_t = z_t' a + \sum_{i \le j} b_{ij} y_{t-i} y_{t-j}
        + \sum_{i \le j \le k} c_{ijk} y_{t-i} y_{t-j} y_{t-k} + u_t, \qquad H_0: b = c = 0

    Parameters
    ----------
    y : array_like, Series, frame of one series or fitted ARMA
        An ARMA without regressors, fitted to one series.
    lags : int, optional
        Order of an AR with constant by least squares; by default chosen by AIC, up to 12.
    order : tuple of int, optional
        (p, q) of an ARMA with constant, in place of `lags`.
    nonlinear_lags : int, optional
        Lags in products. By default the lags of the AR, or the larger of p and q, reduced until
        products are at most a tenth of the observations.
    robust : bool, default True
        Robustness to heteroskedasticity of any kind, by Wooldridge's statistic with a wild
        bootstrap. Otherwise the p-value is of the F statistic, which rejects ARCH, too.
    n_bootstrap : int, default 499
        Number of draws of the wild bootstrap.
    random_state : int, numpy random generator or None

    Returns
    -------
    LinearityTest
        The table has "F"; "chi2", :math:`n \log(SSR_0 / SSR_1)`; with `robust` Wooldridge's
        statistic with the p-value of its limit ("robust chi2") and of the bootstrap ("robust").

    Raises
    ------
    TypeError, ValueError
        If the series or an argument is not legal, or terms are too many for the observations.

    Notes
    -----
    "F" and "chi2" are valid if mean *and* variance of innovations are independent of the past;
    "chi2" rejects too often with many terms. R's ``tseries::terasvirta.test`` has the same "chi2",
    and an F with one more degree of freedom, as it does not count the constant. The wild bootstrap
    multiplies residuals by random signs and keeps regressors fixed: it is valid if innovations are
    a martingale difference.

    References
    ----------
    Teräsvirta, T., Lin, C.-F., Granger, C. W. J. (1993). Power of the neural network linearity
    test. Journal of Time Series Analysis.
    Wooldridge, J. M. (1991). On the application of robust, regression-based diagnostics to models
    of conditional means and conditional variances. Journal of Econometrics.

    Examples
    --------
    >>> from tsrnn.datasets import threshold_autoregression
    >>> from tsrnn.linearity import terasvirta_test
    >>> y, _ = threshold_autoregression(200, random_state=0)
    >>> result = terasvirta_test(y, lags=1, random_state=0)
    >>> result.p_value, list(result.table.index)
    (0.002, ['F', 'chi2', 'robust chi2', 'robust'])
    """
    n_bootstrap, seed = _bootstrap_arguments(robust, n_bootstrap, random_state)
    model = linear_model(y, lags, order, nonlinear_lags)
    x, m = model.inputs, model.lags
    if volterra_terms(m) > len(x):
        raise ValueError(
            f"{volterra_terms(m)} products of {m} lags are too many for {len(x)} observations. "
            "Take fewer nonlinear_lags"
        )
    terms = np.column_stack(
        [
            np.prod(x[:, chosen], axis=1)
            for degree in (2, 3)
            for chosen in map(list, combinations_with_replacement(range(m), degree))
        ]
    )
    alternative = f"products of two and three of {m} lag{'s' * (m > 1)} enter the mean"
    name = "Test of Teräsvirta, Lin and Granger"
    return _result(name, model, terms, alternative, robust, n_bootstrap, seed)


def white_test(
    y: Any,
    lags: int | None = None,
    *,
    order: tuple[int, int] | None = None,
    nonlinear_lags: int | None = None,
    hidden_units: int = 10,
    components: int = 2,
    weight_range: float = 4.0,
    robust: bool = True,
    n_bootstrap: int = 499,
    random_state: Any = None,
) -> LinearityTest:
    r"""Neural network test of Lee, White and Granger (1993) of linearity of the mean.

    Principal components 2 to 1 + `components` of hidden units with random weights are added to the
    linear model:

    .. math:: e_t = z_t' a + \sum_{j=2}^{1+q^*} b_j \, PC_j(\psi_t) + u_t, \qquad
        \psi_{t,i} = \frac{1}{1 + \exp(-\gamma_{i0} - \gamma_i' x_t)}, \qquad H_0: b = 0

    with x the lags in standard deviations and :math:`\gamma` uniform on (-r / 2, r / 2), where r is
    `weight_range`.

    Parameters
    ----------
    y, lags, order, nonlinear_lags, robust, n_bootstrap
        As in `terasvirta_test`.
    hidden_units : int, default 10
    components : int, default 2
        Number of principal components of the correlation matrix of hidden units, after the first,
        which is nearly linear.
    weight_range : float, default 4
    random_state : int, numpy random generator or None
        Seed of the weights, ``default_rng(seed).uniform(-r / 2, r / 2, (1 + lags, units))``, and of
        the bootstrap.

    Returns
    -------
    LinearityTest
        Forms as in `terasvirta_test`.

    Raises
    ------
    TypeError, ValueError
        If the series or an argument is not legal.

    Notes
    -----
    Under the null, p-values are valid for any weights that do not depend on the residuals; another
    seed gives another p-value and other power. Choose the seed before looking at the data. The
    notes of `terasvirta_test` on heteroskedasticity and on R's F apply; R's ``tseries::white.test``
    has the same formulas and defaults.

    References
    ----------
    Lee, T.-H., White, H., Granger, C. W. J. (1993). Testing for neglected nonlinearity in time
    series models. Journal of Econometrics.

    Examples
    --------
    >>> from tsrnn.datasets import threshold_autoregression
    >>> from tsrnn.linearity import white_test
    >>> y, _ = threshold_autoregression(200, random_state=0)
    >>> white_test(y, lags=1, robust=False, random_state=0).df
    (2, 195)
    """
    n_bootstrap, seed = _bootstrap_arguments(robust, n_bootstrap, random_state)
    units = positive_integer("hidden_units", hidden_units)
    q = positive_integer("components", components)
    if q >= units:
        raise ValueError(f"components must be fewer than hidden_units, {units}; got {q}")
    width = number("weight_range", weight_range, lowest=0.0, open_=True)
    model = linear_model(y, lags, order, nonlinear_lags)
    weights = np.random.default_rng(seed).uniform(-width / 2, width / 2, (model.lags + 1, units))
    x = model.inputs / model.series.std(ddof=1)
    hidden = expit(weights[0] + x @ weights[1:])
    spread = hidden.std(0)
    varies = spread > COLLINEAR  # other units are saturated
    if varies.sum() <= q:
        raise ValueError(
            f"{units - varies.sum()} of {units} hidden units are constant: weight_range is too "
            f"large; got {width:g}"
        )
    hidden = (hidden - hidden.mean(0))[:, varies] / spread[varies]
    left, values, _ = np.linalg.svd(hidden, full_matrices=False)
    terms = left[:, 1 : q + 1] * values[1 : q + 1]
    alternative = f"hidden units of {model.lags} lag{'s' * (model.lags > 1)} enter the mean"
    # seed + 1: weights and the bootstrap's signs must be independent draws.
    name = "Neural network test of Lee, White and Granger"
    return _result(name, model, terms, alternative, robust, n_bootstrap, seed + 1)


def _bootstrap_arguments(robust: Any, n_bootstrap: Any, random_state: Any) -> tuple[int, int]:
    flag("robust", robust)
    return positive_integer("n_bootstrap", n_bootstrap), seed_of(random_state)


def _result(
    name: str,
    model: LinearModel,
    terms: np.ndarray,
    alternative: str,
    robust: bool,
    n_bootstrap: int,
    seed: int,
) -> LinearityTest:
    table, main, df = auxiliary_tests(model, terms, robust, n_bootstrap, seed)
    if robust:
        distribution = f"wild bootstrap, {n_bootstrap} draws"
        notes = ["Heteroskedasticity, ARCH say, is no reason for it to reject."]
    else:
        distribution = f"F({df[0]}, {df[1]})"
        notes = ["ARCH is enough for it to reject: robust=True is a test of the mean alone."]
    return LinearityTest(
        test=name,
        model=model.name,
        statistic=float(table["statistic"][main]),
        df=df,
        p_value=float(table["p_value"][main]),
        distribution=distribution,
        null="the mean is linear in the past",
        alternative=alternative,
        n_obs=len(model.residuals),
        nonlinear_lags=model.lags,
        table=table,
        mean_only=robust,
        notes=notes,
    )
