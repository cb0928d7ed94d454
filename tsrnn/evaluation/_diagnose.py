"""What a forecaster has left in its one-step errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chisquare
from sklearn.utils.validation import check_is_fitted
from statsmodels.stats.diagnostic import acorr_ljungbox, het_arch
from statsmodels.stats.stattools import jarque_bera
from statsmodels.tsa.stattools import acf

from tsrnn.contract import Forecaster, positive_integer
from tsrnn.evaluation._diagnostics import Diagnostics
from tsrnn.evaluation._forecasts import model_columns
from tsrnn.evaluation._one_step import first_steps, one_step, steps_apart

INDEX = ("model", "unique_id")
_EXPECTED = 5  # fewest in a bin of Pearson's test
_FEWEST = 8  # errors of a series, below which there is no test


def diagnose(forecasts: Any, df: Any = None, *, lags: int | None = None) -> Diagnostics:
    r"""Test the one-step errors of a forecaster, or of the models of a backtest.

    If a model is right, its one-step errors :math:`e_t = y_t - \hat y_{t|t-1}` are uncorrelated,
    and the probability that its distribution gave to what came below :math:`y_t`, the probability
    integral transform (PIT), is uniform and independent. Of each series: Ljung and Box (1978) for
    autocorrelation of the errors, Engle's (1982) Lagrange multiplier test for that of their
    squares (ARCH), Jarque and Bera (1980) for normality, and Pearson's chi-square test of the PIT
    between the quantiles that intervals give.

    Parameters
    ----------
    forecasts : fitted forecaster or DataFrame
        Of tsrnn, or what `backtest` returned: its forecasts one step ahead are then tested, those
        of all its models.
    df : frame, optional
        With a forecaster, rows that follow the last ones it knows, as many of each series. It is
        left as it is.
    lags : int, optional
        Of the tests and autocorrelations; min(10, n // 5) by default.

    Returns
    -------
    Diagnostics

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the forecaster has not been fitted.
    TypeError, ValueError
        If arguments or data cannot be used.

    Notes
    -----
    Errors are out of sample, and the degrees of freedom of the tests are not reduced for
    estimated parameters. Cutoffs of a backtest lie `step_size` steps apart: a lag is then so many
    steps, and dependence between nearer errors is not seen. Normality is not needed for point
    forecasts, nor for conformal intervals. PITs are grouped by the quantiles there are: for a
    forecaster the nine deciles, from intervals of 20, 40, 60 and 80 percent around the point as
    the median, which it is for symmetric distributions only.

    References
    ----------
    Diebold, F. X., Gunther, T. A., Tay, A. S. (1998). Evaluating density forecasts with
    applications to financial risk management. International Economic Review.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn import ARMA, diagnose
    >>> y = pd.Series(np.random.default_rng(0).normal(size=300))
    >>> model = ARMA(order=(1, 0)).fit(y[:200])
    >>> diagnose(model, y[200:]).tests["n"].item()
    100
    """
    if lags is not None:
        lags = positive_integer("lags", lags)
    if isinstance(forecasts, pd.DataFrame):
        if df is not None:
            raise ValueError("df is for a fitted forecaster; a backtest has its rows. Leave df out")
        if forecasts.attrs.get("backtest", {}).get("kind") == "variance":
            raise ValueError("a backtest of variances has no errors of one step to test")
        frame = first_steps(forecasts)
    elif isinstance(forecasts, Forecaster):
        check_is_fitted(forecasts, "memory_")
        if df is None:
            raise ValueError("give df, rows that follow the last ones that the forecaster knows")
        frame = one_step(forecasts, df)
    else:
        raise TypeError(
            "forecasts must be a fitted forecaster of tsrnn or what backtest returned; got "
            f"{type(forecasts).__name__}"
        )
    apart = steps_apart(forecasts) if isinstance(forecasts, pd.DataFrame) else 1
    return _diagnosed(frame, lags, apart)


def _diagnosed(frame: pd.DataFrame, lags: int | None, apart: int) -> Diagnostics:
    keys: list[tuple[str, Any]] = []
    tests, acfs, pits, errors = [], [], [], []
    units = frame.groupby("unique_id", sort=False).indices
    for model, levels in model_columns(frame).items():
        probabilities, bins = _pit(frame, model, levels)
        residuals = frame["y"] - frame[model]
        errors.append(
            frame[["unique_id", "ds"]].assign(model=model, residual=residuals, pit_bin=bins)
        )
        for unit, rows in units.items():
            own = residuals.to_numpy()[rows]
            own = own[np.isfinite(own)]
            counts = _counts(bins[rows], len(probabilities) - 1)
            m = max(1, min(lags or min(10, len(own) // 5), len(own) // 2 - 1))
            keys.append((model, unit))
            tests.append(_tests(own, m) | _uniformity(counts, probabilities))
            acfs.append(_autocorrelations(own, m))
            pits.append(_histogram(counts, probabilities))
    return Diagnostics(
        tests=pd.DataFrame(tests, pd.MultiIndex.from_tuples(keys, names=INDEX)),
        acf=_stacked(keys, acfs, "lag"),
        pit=_stacked(keys, pits, "from"),
        residuals=pd.concat(errors).set_index(list(INDEX)),
        steps_apart=apart,
    )


def _stacked(
    keys: list[tuple[str, Any]], tables: list[dict[str, np.ndarray]], inner: str
) -> pd.DataFrame:
    """Tables of all models and series, one below the other."""
    places = np.repeat(np.arange(len(keys)), [len(table[inner]) for table in tables])
    columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    outer = pd.MultiIndex.from_tuples(keys, names=INDEX)[places]
    levels = [outer.get_level_values(name) for name in INDEX]
    index = pd.MultiIndex.from_arrays([*levels, columns.pop(inner)], names=[*INDEX, inner])
    return pd.DataFrame(columns, index)


def _tests(e: np.ndarray, lags: int) -> dict[str, float]:
    """Number, mean and standard deviation of errors, and tests; NaN where they are too few."""
    n = len(e)
    found = {"n": n, "mean": e.mean() if n else np.nan, "sd": e.std(ddof=1) if n > 1 else np.nan}
    names = ("ljung_box", "arch_lm", "jarque_bera")
    nothing = {key: np.nan for name in names for key in (name, f"{name}_pvalue")}
    if n < _FEWEST or np.ptp(e) == 0:
        return found | {"lags": lags} | nothing
    box = acorr_ljungbox(e, [lags])
    arch = het_arch(e, nlags=lags, result_object=True)
    normal = jarque_bera(e)
    return found | {
        "lags": lags,
        "ljung_box": box["lb_stat"].iloc[0],
        "ljung_box_pvalue": box["lb_pvalue"].iloc[0],
        "arch_lm": arch.lm,
        "arch_lm_pvalue": arch.lmpval,
        "jarque_bera": normal[0],
        "jarque_bera_pvalue": normal[1],
    }


def _autocorrelations(e: np.ndarray, lags: int) -> dict[str, np.ndarray]:
    """By lag, with the half-width of a 95 percent band around zero."""
    steps = np.arange(1, lags + 1)
    if len(e) < _FEWEST or np.ptp(e) == 0:
        return {"lag": steps, "acf": np.full(lags, np.nan), "band": np.full(lags, np.nan)}
    band = np.full(lags, 1.959963984540054 / np.sqrt(len(e)))
    return {"lag": steps, "acf": acf(e, nlags=lags, fft=False)[1:], "band": band}


def _pit(
    frame: pd.DataFrame, model: str, levels: dict[float, tuple[str, str]]
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities 0, ..., 1 of the quantiles of a model, and the bins of y between them.

    A bin is NaN where y or a quantile is missing.
    """
    columns = {0.5: model}
    for level, ends in levels.items():
        half = level / 200
        columns |= zip((round(0.5 - half, 12), round(0.5 + half, 12)), ends, strict=True)
    inner = sorted(columns)
    values = np.array([frame[columns[p]].to_numpy(dtype=float) for p in inner])
    y = frame["y"].to_numpy(dtype=float)
    seen = np.isfinite(y) & np.isfinite(values).all(0)
    bins = np.where(seen, (np.where(seen, y, 0.0) > values).sum(0), np.nan)
    return np.array([0.0, *inner, 1.0]), bins


def _counts(bins: np.ndarray, n_bins: int) -> np.ndarray:
    return np.bincount(bins[np.isfinite(bins)].astype(int), minlength=n_bins)


def _uniformity(counts: np.ndarray, probabilities: np.ndarray) -> dict[str, float]:
    """Pearson's test of the counts; neighbouring bins are joined until five are expected."""
    expected = np.diff(probabilities) * counts.sum()
    ends, sum_ = [], 0.0
    for i, share in enumerate(expected, 1):
        sum_ += share
        if sum_ >= _EXPECTED:
            ends.append(i)
            sum_ = 0.0
    if len(ends) < 2:
        return {"pit": np.nan, "pit_pvalue": np.nan}
    starts = [0, *ends[:-1]]  # what is left over goes to the last bin
    statistic, p_value = chisquare(
        np.add.reduceat(counts, starts), np.add.reduceat(expected, starts)
    )
    return {"pit": statistic, "pit_pvalue": p_value}


def _histogram(counts: np.ndarray, probabilities: np.ndarray) -> dict[str, np.ndarray]:
    """Share of each bin, and the density that is one if the model is right."""
    share = counts / counts.sum() if counts.sum() else np.full(len(counts), np.nan)
    width = np.diff(probabilities)
    return {
        "from": probabilities[:-1],
        "to": probabilities[1:],
        "count": counts,
        "share": share,
        "density": share / width,
    }
