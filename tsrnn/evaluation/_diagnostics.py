"""Diagnostics of one-step errors: tests that nothing is left in them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chisquare
from statsmodels.stats.diagnostic import acorr_ljungbox, acorr_lm
from statsmodels.stats.stattools import jarque_bera
from statsmodels.tools.sm_exceptions import SingularMatrixWarning
from statsmodels.tsa.stattools import acf

from tsrnn.contract import Forecaster, check_is_fitted, forecast_suffixes, positive_integer
from tsrnn.data import check_continues, quote, read_panel, write_stamps
from tsrnn.evaluation._comparison import format_p_value
from tsrnn.evaluation._forecasts import KEYS, model_columns
from tsrnn.evaluation._models import read_forecasts
from tsrnn.evaluation._windows import series_names

INDEX = ("model", "unique_id")
LEVELS = [20.0, 40.0, 60.0, 80.0]  # their ends and the median are the deciles
_EXPECTED = 5  # fewest expected in a bin, for the chi-square approximation
_FEWEST = 8  # errors that the tests need
_NORMAL = 1.959963984540054  # quantile of 97.5 percent
_TESTS = {
    "ljung_box": "Ljung-Box",
    "arch_lm": "ARCH-LM",
    "jarque_bera": "Jarque-Bera",
    "pit": "PIT",
}
_SHOWN = 10  # series of a model in a summary
_LEVEL = 0.05
_WIDTH = 77
_NOTES = [
    "Ljung-Box: no autocorrelation. ARCH-LM: none of squares. Jarque-Bera: normal.",
    "PIT: the distribution of the forecasts is right. Small p-values speak against",
    "the model; 5 percent of them are below 0.05 if all is right.",
    "-: too few errors, or none that vary.",
]


def diagnose(forecasts: Any, df: Any = None, *, lags: int | None = None) -> Diagnostics:
    r"""Test the one-step errors of a forecaster, or of the models of a backtest.

    If a model is right, its one-step errors :math:`e_t = y_t - \hat y_{t|t-1}` are uncorrelated,
    and the probability that its distribution gave to what came below :math:`y_t`, the probability
    integral transform (PIT), is uniform and independent. The tests of each series: Ljung and Box
    (1978) for autocorrelation of the errors, Engle's (1982) Lagrange multiplier test for
    autocorrelation of their squares (ARCH), Jarque and Bera (1980) for normality, and Pearson's
    chi-square test of the PIT between the quantiles that intervals give.

    Parameters
    ----------
    forecasts : fitted forecaster or DataFrame
        Forecaster of tsrnn, or the result of `backtest`, whose one-step forecasts are tested for
        all models.
    df : frame, optional
        With a forecaster, rows that follow the last ones it knows, as many of each series. The
        forecaster is not changed.
    lags : int, optional
        Lags of the tests and autocorrelations; min(10, n // 5) by default.

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
    estimated parameters. Cutoffs of a backtest lie `step_size` steps apart: a lag is then
    `step_size` steps, and dependence between nearer errors is not seen. Normality is not needed for
    point forecasts, nor for conformal intervals. PITs are grouped by the quantiles there are: for a
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
    apart = 1
    if isinstance(forecasts, pd.DataFrame):
        if df is not None:
            raise ValueError("df is for a fitted forecaster; a backtest has its rows. Leave df out")
        kept = forecasts.attrs.get("backtest")
        facts: dict[str, Any] = kept if isinstance(kept, dict) else {}
        if facts.get("kind") == "variance":
            raise ValueError("a backtest of variances has no errors of one step to test")
        frame = _first_steps(forecasts)
        apart = int(facts.get("step_size") or _steps_apart(forecasts))
    elif isinstance(forecasts, Forecaster):
        check_is_fitted(forecasts)
        if df is None:
            raise ValueError("give df, rows that follow the last ones that the forecaster knows")
        frame = _one_step(forecasts, df)
    else:
        raise TypeError(
            "forecasts must be a fitted forecaster of tsrnn or what backtest returned; got "
            f"{type(forecasts).__name__}"
        )
    keys: list[tuple[str, Any]] = []
    tests, acfs, pits, errors = [], [], [], []
    series = frame.groupby("unique_id", sort=False).indices
    for model, levels in model_columns(frame).items():
        probabilities, bins = _pit(frame, model, levels)
        residuals = frame["y"] - frame[model]
        errors.append(
            frame[["unique_id", "ds"]].assign(model=model, residual=residuals, pit_bin=bins)
        )
        for label, rows in series.items():
            e = residuals.to_numpy()[rows]
            e = e[np.isfinite(e)]
            seen = bins[rows][np.isfinite(bins[rows])].astype(int)
            counts = np.bincount(seen, minlength=len(probabilities) - 1)
            # At most half as many lags as errors: the regression of squares has as many terms.
            m = max(1, min(lags or min(10, len(e) // 5), len(e) // 2 - 1))
            keys.append((model, label))
            tests.append(_tests(e, m) | _uniformity(counts, probabilities))
            acfs.append(_autocorrelations(e, m))
            pits.append(_histogram(counts, probabilities))
    return Diagnostics(
        tests=pd.DataFrame(tests, pd.MultiIndex.from_tuples(keys, names=INDEX)),
        acf=_stack(keys, acfs, "lag"),
        pit=_stack(keys, pits, "from"),
        residuals=pd.concat(errors).set_index(list(INDEX)),
        steps_apart=apart,
    )


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """Tests of one-step errors, by model and series: the result of `diagnose`.

    Attributes
    ----------
    tests : DataFrame
        A row a model and series: ``n``, ``mean`` and ``sd`` of the errors, ``lags``, and of each
        test the statistic and its p-value (``ljung_box``, ``ljung_box_pvalue``, ``arch_lm``,
        ``jarque_bera``, ``pit``). NaN where errors are too few or do not vary.
    acf : DataFrame
        Autocorrelations by lag, ``acf``, and ``band``, the half-width of a 95 percent band.
    pit : DataFrame
        Histogram of the probability integral transform: ``from``, ``to``, ``count``, ``share``,
        ``density``, which is 1 if the model is right.
    residuals : DataFrame
        ``ds``, ``residual`` and ``pit_bin`` of every forecast.
    steps_apart : int
        Steps from one error to the next, which is a lag.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn import ARMA, diagnose
    >>> y = pd.Series(np.random.default_rng(0).normal(size=300))
    >>> found = diagnose(ARMA(order=(1, 0)).fit(y[:200]), y[200:])
    >>> found.models, found.residuals.shape[0]
    (['ARMA'], 100)
    >>> bool(found.tests["ljung_box_pvalue"].item() > 0.01)
    True
    """

    tests: pd.DataFrame
    acf: pd.DataFrame
    pit: pd.DataFrame
    residuals: pd.DataFrame
    steps_apart: int = 1

    @property
    def models(self) -> list[str]:
        """Names of the models."""
        return list(self.tests.index.unique("model"))

    def plot(self, series: Any = None) -> np.ndarray:
        """Draw autocorrelations and PIT histograms: `tsrnn.plotting.plot_diagnostics`.

        Parameters
        ----------
        series : object, optional
            One series, by its id; by default all together.

        Returns
        -------
        ndarray of matplotlib Axes
        """
        from tsrnn.plotting import plot_diagnostics

        return plot_diagnostics(self, series)

    def summary(self) -> str:
        """Page of text with p-values by series, or the share of series that reject."""
        lines = ["One-step errors: p-values of tests that nothing is left", "=" * _WIDTH]
        for model in self.models:
            tests = self.tests[self.tests.index.get_level_values("model") == model]
            tests = tests.droplevel("model")
            lines += ["", f"{model}: {len(tests)} series, {int(tests['n'].sum())} errors"]
            if len(tests) <= _SHOWN:
                table = tests[["n", "mean", "sd", "lags"]].copy()
                for test, title in _TESTS.items():
                    table[title] = tests[f"{test}_pvalue"].map(format_p_value)
                text = table.rename_axis(None).to_string(float_format="{:.4g}".format)
                lines += text.splitlines()
                continue
            for test, title in _TESTS.items():
                p = tests[f"{test}_pvalue"].dropna()
                share = "no series is long enough"
                if len(p):
                    share = f"{(p < _LEVEL).mean():.0%} of {len(p)} series"
                lines.append(f"  {title:<12} rejects at 5 percent in {share}")
        lines += ["", "=" * _WIDTH, *_NOTES]
        if self.steps_apart > 1:
            lines += [
                f"The errors are {self.steps_apart} steps apart: a lag is {self.steps_apart} "
                "steps. Ljung-Box and",
                "ARCH-LM do not see dependence of nearer errors; for that take step_size=1.",
            ]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()


def _first_steps(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of a backtest that are one step ahead."""
    absent = [column for column in KEYS if column not in frame.columns]
    if absent:
        raise ValueError(
            f"a backtest has the columns {', '.join(KEYS)}; missing {', '.join(absent)}. Give "
            "what backtest returned, or a fitted forecaster and rows that follow its data"
        )
    place = pd.Series(pd.factorize(frame["unique_id"])[0], frame.index)
    rows = frame.assign(_place=place).sort_values(["_place", "cutoff", "ds"], kind="stable")
    rows = rows.drop_duplicates(["_place", "cutoff"])
    return rows.drop(columns="_place").reset_index(drop=True)


def _steps_apart(frame: pd.DataFrame) -> int:
    """Steps from a cutoff to the next; 1 where each series has one cutoff."""
    cutoffs = frame.groupby("unique_id", sort=False)["cutoff"].unique()
    for label, times in cutoffs.items():
        if len(times) > 1:
            first, second = np.sort(times)[:2]
            window = frame[(frame["unique_id"] == label) & (frame["cutoff"] == first)]
            return max(1, int((window["ds"] <= second).sum()))
    return 1


def _one_step(model: Forecaster, df: Any) -> pd.DataFrame:
    """One-step forecasts of every row of df, in the layout of a backtest."""
    arguments = model.arguments_
    panel = read_panel(
        df, target=arguments.target, id_col=arguments.id_col, time_col=arguments.time_col,
        freq=model.fitted_.data.layout.offset, missing=arguments.missing,
    )  # fmt: skip
    grid = model.fitted_.data.layout.grid
    check_continues(panel, model.state_.ids, model.state_.last_times, grid)
    n = int(panel.lengths[0])
    if np.any(panel.lengths != n):
        raise ValueError(
            f"all series must have as many rows; {quote(panel.ids[0])} has {n}, "
            f"{quote(panel.ids[int(np.argmax(panel.lengths != n))])} another number. Cut them to "
            "the shortest"
        )
    times, layout = panel.times.reshape(-1, n), panel.layout
    rolling = model.predict_rolling(df, h=1, level=LEVELS).drop(columns="cutoff")
    forecasts = read_forecasts(rolling, layout, panel.ids, times, forecast_suffixes(LEVELS))
    ds = write_stamps(np.repeat(times, len(layout.target_names), 0).ravel(), layout)
    columns: dict[str, Any] = {
        "unique_id": series_names(panel).repeat(n),
        "ds": ds,
        "cutoff": ds,  # each row has an origin of its own
        "y": panel.values.reshape(panel.n_series, n, -1).swapaxes(1, 2).ravel(),
    }
    for suffix, values in forecasts.items():
        columns[model.column_name + suffix] = values.swapaxes(1, 2).ravel()
    return pd.DataFrame(columns)


def _pit(
    frame: pd.DataFrame, model: str, levels: dict[float, tuple[str, str]]
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities 0, ..., 1 of the quantiles of a model, and the bins of y between them.

    A bin is NaN where y or a quantile is missing.
    """
    columns = {0.5: model}
    for level, ends in levels.items():
        half = level / 200
        probabilities = round(0.5 - half, 12), round(0.5 + half, 12)  # 0.1, not 0.09999999999999998
        columns |= zip(probabilities, ends, strict=True)
    inner = sorted(columns)
    values = np.array([frame[columns[p]].to_numpy(dtype=float) for p in inner])
    y = frame["y"].to_numpy(dtype=float)
    seen = np.isfinite(y) & np.isfinite(values).all(0)
    bins = np.where(seen, (np.where(seen, y, 0.0) > values).sum(0), np.nan)
    return np.array([0.0, *inner, 1.0]), bins


def _tests(e: np.ndarray, lags: int) -> dict[str, float]:
    """Number, mean and standard deviation of errors, and tests; NaN where they are too few."""
    n = len(e)
    sizes = {"n": n, "mean": e.mean() if n else np.nan, "sd": e.std(ddof=1) if n > 1 else np.nan}
    names = ("ljung_box", "arch_lm", "jarque_bera")
    nothing = {key: np.nan for name in names for key in (name, f"{name}_pvalue")}
    if n < _FEWEST or np.ptp(e) == 0:
        return sizes | {"lags": lags} | nothing
    e = e / np.abs(e).max()  # fourth powers of large errors overflow
    box = acorr_ljungbox(e, [lags])
    with warnings.catch_warnings():
        warnings.simplefilter("error", SingularMatrixWarning)
        try:
            arch = acorr_lm(_varying_squares(e), nlags=lags, result_object=True)
            arch_test = (arch.lm, arch.lmpval)
        except SingularMatrixWarning:  # squares that hardly vary cannot be regressed
            arch_test = (np.nan, np.nan)
    normal = jarque_bera(e)
    return sizes | {
        "lags": lags,
        "ljung_box": box["lb_stat"].iloc[0],
        "ljung_box_pvalue": box["lb_pvalue"].iloc[0],
        "arch_lm": arch_test[0],
        "arch_lm_pvalue": arch_test[1],
        "jarque_bera": normal[0],
        "jarque_bera_pvalue": normal[1],
    }


def _varying_squares(e: np.ndarray) -> np.ndarray:
    """Squares (n,) of errors less the square of their mean, at most one in size.

    The shift leaves the regression of squares on their lags unchanged up to rounding; without it,
    nearly constant squares beside the constant make that regression singular.
    """
    deviation = e - e.mean()
    squares: np.ndarray = deviation * (deviation + 2 * e.mean())
    return squares / np.abs(squares).max()


def _autocorrelations(e: np.ndarray, lags: int) -> dict[str, np.ndarray]:
    """Autocorrelations by lag, with the half-width of a 95 percent band around zero."""
    steps = np.arange(1, lags + 1)
    if len(e) < _FEWEST or np.ptp(e) == 0:
        return {"lag": steps, "acf": np.full(lags, np.nan), "band": np.full(lags, np.nan)}
    band = np.full(lags, _NORMAL / np.sqrt(len(e)))
    return {"lag": steps, "acf": acf(e, nlags=lags, fft=False)[1:], "band": band}


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


def _stack(
    keys: list[tuple[str, Any]], tables: list[dict[str, np.ndarray]], inner: str
) -> pd.DataFrame:
    """Tables of all models and series, one below the other."""
    places = np.repeat(np.arange(len(keys)), [len(table[inner]) for table in tables])
    columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    outer = pd.MultiIndex.from_tuples(keys, names=INDEX)[places]
    levels = [outer.get_level_values(name) for name in INDEX]
    index = pd.MultiIndex.from_arrays([*levels, columns.pop(inner)], names=[*INDEX, inner])
    return pd.DataFrame(columns, index)
