"""Naive methods: naive, seasonal naive, drift, mean, and Naive 2 of the M4 competition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from tsrnn.baselines._rows import BaselineSummary, FittedRows, RowsState, name_series, season_steps
from tsrnn.contract import (
    MOST_STEPS,
    Arguments,
    Classical,
    FittedData,
    IntervalWarning,
    as_saved,
    integer,
    record,
    refuse,
    unit_index,
    with_intervals,
    with_shared_arguments,
)
from tsrnn.data import Panel, warn_user

FEW_ERRORS = 4  # fewer give no interval of 80 percent without assuming a distribution
CRITICAL = 1.645  # of the normal distribution at 90 percent, as the organisers of M4 round it
SEASONS = 3  # that the test of seasonality needs


@dataclass(frozen=True)
class Rule(ABC):
    """Rule of a naive method with a season, or 1: forecasts and their standard errors."""

    season: int

    @property
    def fewest(self) -> int:
        """Rows that a series must have for a forecast with intervals."""
        return 2

    @property
    def degrees_lost(self) -> int:
        """Rows of a series less the degrees of freedom of its residuals."""
        return 1

    @abstractmethod
    def ahead(self, state: RowsState, h: int) -> tuple[np.ndarray, np.ndarray]:
        """Forecasts and their standard errors, each (S, h, C), of series that are long enough."""

    def factor(self, length: int, h: int) -> np.ndarray:
        """Loadings (h, k) of the errors of h steps on independent ones, up to scale."""
        return np.tri(h)


@dataclass(frozen=True, eq=False)
class FittedNaive(FittedRows):
    """Naive method after a fit, which estimates nothing: its rule.

    Intervals take quantiles of Student's t and the standard deviation of the residuals. They are
    exact for any number of rows if errors are normal, uncorrelated and of constant variance.
    """

    rule: Rule
    model_guarantee: ClassVar[str] = (
        "Exact, for any number of rows, if the errors are normal, uncorrelated and of constant "
        "variance; none otherwise."
    )

    def filter(self, panel: Panel) -> RowsState:
        """State after the rows of a panel; warn of series too short, raise if all are."""
        state, fewest = super().filter(panel), self.rule.fewest
        short = np.flatnonzero(state.lengths < fewest)
        if not len(short):
            return state
        message = (
            f"{self.arguments.class_name} needs at least {fewest} rows of a series; "
            f"{name_series(self.data.layout, state.ids[short])} has {state.lengths[short[0]]}"
        )
        if len(short) == len(state.ids):
            raise ValueError(f"{message}. Give more rows")
        warn_user(f"{message}. The forecasts of {len(short)} of {len(state.ids)} series are NaN")
        return state

    def model_forecast(
        self, state: RowsState, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        mean, error = self.moments(state, h)
        degrees = self.degrees(state)
        few = np.flatnonzero((state.lengths >= self.rule.fewest) & (degrees < FEW_ERRORS))
        if levels and len(few):
            least = int(degrees[few].min())
            names = name_series(self.data.layout, state.ids[few])
            warn_user(
                f"the intervals of {names} rest on {least} error{'s' * (least > 1)}: they follow "
                "from the assumption of normal errors alone, which so few cannot question. Give "
                "more rows",
                IntervalWarning,
            )
        quantiles = {level: stdtrit(degrees, 0.5 + level / 200) for level in levels}
        return with_intervals(mean, {p: t[:, None, None] * error for p, t in quantiles.items()})

    def simulate(
        self, state: RowsState, h: int, n: int, future: np.ndarray | None, rng: np.random.Generator
    ) -> np.ndarray:
        """Paths (n, S, h, C) of normal errors; all steps of a path share the variance drawn."""
        mean, error = self.moments(state, h)
        degrees = self.degrees(state)
        paths = np.empty((n, *mean.shape))
        for i, length in enumerate(state.lengths):
            factor = self.rule.factor(int(length), h)
            factor /= np.linalg.norm(factor, axis=1, keepdims=True)
            draws = factor @ rng.standard_normal((n, factor.shape[1], mean.shape[2]))
            # Student's t, as in the intervals: the variance of each target is estimated
            shape = n, 1, mean.shape[2]
            paths[:, i] = draws / np.sqrt(rng.chisquare(degrees[i], shape) / degrees[i])
        return mean + error * paths

    def moments(self, state: RowsState, h: int) -> tuple[np.ndarray, np.ndarray]:
        """Forecasts and their standard errors, NaN of series that are too short."""
        moments = np.full((2, len(state.ids), h, state.values.shape[1]), np.nan)
        long = np.flatnonzero(state.lengths >= self.rule.fewest)
        if len(long):
            moments[:, long] = self.rule.ahead(state.select(long), h)
        return moments[0], moments[1]

    def degrees(self, state: RowsState) -> np.ndarray:
        """Degrees of freedom of the residuals of each series, at least 1."""
        return np.maximum(state.lengths - self.rule.degrees_lost, 1)

    def to_file(self, state: RowsState) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"horizon": self.horizon, "season": self.rule.season}, state.arrays()


class NaiveMethod(Classical[RowsState]):
    """Base of the naive methods, which have no parameters.

    Forecasts follow from the rows alone, so that new series can be forecast.
    """

    offers: ClassVar[frozenset[str]] = frozenset({"sample_paths"})
    _rule: ClassVar[type[Rule]]
    fitted_: FittedNaive

    def _check(self, arguments: Arguments, panel: Panel) -> None:
        super()._check(arguments, panel)
        self._chosen_rule(arguments, FittedData.of(panel, arguments))

    def _fit_panel(
        self, arguments: Arguments, data: FittedData, panel: Panel
    ) -> tuple[FittedNaive, RowsState]:
        horizon = self._horizon(arguments, data.layout)
        fitted = FittedNaive(arguments, data, horizon, self._chosen_rule(arguments, data))
        return fitted, fitted.filter(panel)

    def _chosen_rule(self, arguments: Arguments, data: FittedData) -> Rule:
        return self._rule(season_steps(arguments.as_dict().get("season_length", 1), data))

    def _fitted_model(self) -> FittedNaive:
        super()._fitted_model()
        return self.fitted_

    @property
    def messages_(self) -> pd.Series:
        """Tuple of texts by unit: the reason where it is too short to be forecast."""
        data, fewest = self._fitted_model().data, self.fitted_.rule.fewest
        lengths = self.state_.lengths.repeat(data.n_targets)
        texts = [
            (f"needs at least {fewest} rows; there are {n}.",) if n < fewest else ()
            for n in lengths.tolist()
        ]
        labels = unit_index(data.layout, self.state_.ids, multivariate=False)
        return pd.Series(texts, labels, object, "messages")

    @property
    def season_(self) -> int:
        """Steps of the season; 1 for a method without one."""
        return self._fitted_model().rule.season

    def summary(self) -> BaselineSummary:
        """Summary of the rows that forecasts follow from; print the result."""
        season, lengths = self.season_, self.state_.lengths
        facts = [f"{len(lengths)} series of {lengths.min()} to {lengths.max()} rows, no parameters"]
        if season > 1:
            facts.append(f"season of {season} steps")
        return BaselineSummary(
            type(self).__name__, "\n".join(facts), tuple(self.fitted_.support_notes)
        )

    def _from_file(
        self,
        arguments: Arguments,
        data: FittedData,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        last_times: np.ndarray,
    ) -> tuple[FittedNaive, RowsState]:
        record({"horizon": integer(1, MOST_STEPS), "season": integer(1)})(header, "fitted")
        with as_saved("params"):
            rule = self._chosen_rule(arguments, data)
        if header["season"] != rule.season:
            required = f"{rule.season}, by season_length and freq"
            raise refuse("fitted.season", required, header["season"])
        state = RowsState.from_file(arrays, data, last_times)
        if state.lengths.max() < rule.fewest:
            required = f"of a series with at least {rule.fewest} rows"
            raise refuse("the array 'rows.indptr'", required, state.indptr[:8].tolist())
        return FittedNaive(arguments, data, header["horizon"], rule), state


class SeasonBefore(Rule):
    """Value of the same step one season ago; the last value if a season is one step."""

    @property
    def fewest(self) -> int:
        return self.season + 1

    @property
    def degrees_lost(self) -> int:
        return self.season

    def ahead(self, state: RowsState, h: int) -> tuple[np.ndarray, np.ndarray]:
        m, steps = self.season, np.arange(h)
        mean = state.values[state.indptr[1:, None] - m + steps % m]
        errors = seasonal_differences(state.values, state.indptr, m)
        sigma = root_mean_square(errors, state.indptr, m)
        return mean, sigma * np.sqrt(steps // m + 1)[:, None]

    def factor(self, length: int, h: int) -> np.ndarray:
        apart = np.subtract.outer(np.arange(h), np.arange(h))
        return ((apart >= 0) & (apart % self.season == 0)).astype(float)


@with_shared_arguments
class Naive(NaiveMethod):
    r"""The last value, for every step ahead.

    .. math:: \hat y_{T+h} = y_T, \qquad \sigma_h = \hat\sigma \sqrt{h}, \qquad
        \hat\sigma^2 = \frac{1}{T-1} \sum_{t=2}^T (y_t - y_{t-1})^2

    Parameters
    ----------
    **shared
        As in all forecasters.

    References
    ----------
    Hyndman, R. J., Athanasopoulos, G. (2021). Forecasting: Principles and Practice, 3rd ed.,
    sections 5.2 and 5.5.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.baselines import Naive
    >>> days = pd.date_range("2024-01-01", periods=4)
    >>> Naive().fit(pd.Series([3.0, 5.0, 4.0, 6.0], days)).predict(2).tolist()
    [6.0, 6.0]
    """

    column_name: ClassVar[str] = "Naive"
    _rule: ClassVar[type[Rule]] = SeasonBefore


@with_shared_arguments
class SeasonalNaive(NaiveMethod):
    r"""The value of the last season's same step.

    .. math:: \hat y_{T+h} = y_{T+h-m(k+1)}, \qquad \sigma_h = \hat\sigma \sqrt{k+1}, \qquad
        \hat\sigma^2 = \frac{1}{T-m} \sum_{t=m+1}^T (y_t - y_{t-m})^2

    with the season m and k = floor((h-1) / m).

    Parameters
    ----------
    season_length : int, optional
        Steps m of a season; by frequency where it is None. 1 is the naive method.
    **shared
        As in all forecasters.

    References
    ----------
    Hyndman, R. J., Athanasopoulos, G. (2021). Forecasting: Principles and Practice, 3rd ed.,
    sections 5.2 and 5.5.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.baselines import SeasonalNaive
    >>> days = pd.date_range("2024-01-01", periods=5)
    >>> series = pd.Series([3.0, 5.0, 4.0, 6.0, 5.0], days)
    >>> SeasonalNaive(season_length=2).fit(series).predict(3).tolist()
    [6.0, 5.0, 6.0]
    """

    column_name: ClassVar[str] = "SeasonalNaive"
    _rule: ClassVar[type[Rule]] = SeasonBefore

    def __init__(self, season_length: int | None = None, **shared: Any) -> None:
        super().__init__(**shared)
        self.season_length = season_length


class Line(Rule):
    """Line through the first and the last value."""

    fewest: ClassVar[int] = 3
    degrees_lost: ClassVar[int] = 2

    def ahead(self, state: RowsState, h: int) -> tuple[np.ndarray, np.ndarray]:
        first, last = state.values[state.indptr[:-1]], state.values[state.indptr[1:] - 1]
        slope = (last - first) / (state.lengths - 1)[:, None]
        errors = seasonal_differences(state.values, state.indptr, 1)
        errors -= np.repeat(slope, state.lengths, 0)
        errors[state.indptr[:-1]] = 0.0
        sigma = root_mean_square(errors, state.indptr, 2)
        steps = np.arange(1, h + 1)[:, None]
        mean = last[:, None] + steps * slope[:, None]
        return mean, sigma * np.sqrt(steps * (1 + steps / (state.lengths - 1)[:, None, None]))

    def factor(self, length: int, h: int) -> np.ndarray:
        of_slope = np.arange(1, h + 1) / np.sqrt(max(length - 1, 1))  # one row has no forecast
        return np.column_stack([np.tri(h), of_slope])


@with_shared_arguments
class Drift(NaiveMethod):
    r"""The line through the first and the last value.

    .. math:: \hat y_{T+h} = y_T + h \hat c, \qquad \hat c = \frac{y_T - y_1}{T-1}, \qquad
        \sigma_h = \hat\sigma \sqrt{h \Bigl(1 + \frac{h}{T-1}\Bigr)}, \qquad
        \hat\sigma^2 = \frac{1}{T-2} \sum_{t=2}^T (y_t - y_{t-1} - \hat c)^2

    Parameters
    ----------
    **shared
        As in all forecasters.

    References
    ----------
    Hyndman, R. J., Athanasopoulos, G. (2021). Forecasting: Principles and Practice, 3rd ed.,
    sections 5.2 and 5.5.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.baselines import Drift
    >>> days = pd.date_range("2024-01-01", periods=4)
    >>> Drift().fit(pd.Series([3.0, 5.0, 4.0, 6.0], days)).predict(2).tolist()
    [7.0, 8.0]
    """

    column_name: ClassVar[str] = "Drift"
    _rule: ClassVar[type[Rule]] = Line


class Level(Rule):
    """Mean of all values."""

    def ahead(self, state: RowsState, h: int) -> tuple[np.ndarray, np.ndarray]:
        counts = state.lengths[:, None]
        means = np.add.reduceat(state.values, state.indptr[:-1]) / counts
        errors = state.values - np.repeat(means, state.lengths, 0)
        sigma = root_mean_square(errors, state.indptr, 1)
        error = sigma * np.sqrt(1 + 1 / counts)[:, None]
        return np.repeat(means[:, None], h, 1), np.repeat(error, h, 1)

    def factor(self, length: int, h: int) -> np.ndarray:
        return np.column_stack([np.eye(h), np.full(h, 1 / np.sqrt(length))])


@with_shared_arguments
class Mean(NaiveMethod):
    r"""The mean of all values, for every step ahead.

    .. math:: \hat y_{T+h} = \bar y, \qquad \sigma_h = \hat\sigma \sqrt{1 + 1/T}, \qquad
        \hat\sigma^2 = \frac{1}{T-1} \sum_{t=1}^T (y_t - \bar y)^2

    Parameters
    ----------
    **shared
        As in all forecasters.

    References
    ----------
    Hyndman, R. J., Athanasopoulos, G. (2021). Forecasting: Principles and Practice, 3rd ed.,
    sections 5.2 and 5.5.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.baselines import Mean
    >>> days = pd.date_range("2024-01-01", periods=4)
    >>> Mean().fit(pd.Series([3.0, 5.0, 4.0, 6.0], days)).predict(2).tolist()
    [4.5, 4.5]
    """

    column_name: ClassVar[str] = "Mean"
    _rule: ClassVar[type[Rule]] = Level


class Adjusted(Rule):
    """Last value of each series, seasonally adjusted where a test finds a season."""

    def ahead(self, state: RowsState, h: int) -> tuple[np.ndarray, np.ndarray]:
        n_series, n_targets = len(state.ids), state.values.shape[1]
        mean, error = np.empty((2, n_series, h, n_targets))
        for i in range(n_series):
            for j, y in enumerate(state.values[state.rows(i)].T):
                mean[i, :, j], error[i, :, j] = adjusted_naive(y, self.season, h)
        return mean, error


@with_shared_arguments
class Naive2(NaiveMethod):
    r"""The naive method after seasonal adjustment, where a test finds a season.

    .. math:: \hat y_{T+h} = s_{T+h} \frac{y_T}{s_T}, \qquad
        \sigma_h = s_{T+h} \hat\sigma \sqrt{h}, \qquad
        \hat\sigma^2 = \frac{1}{T-1} \sum_{t=2}^T
        \Bigl(\frac{y_t}{s_t} - \frac{y_{t-1}}{s_{t-1}}\Bigr)^2

    with the indices s of the classical multiplicative decomposition. A series is adjusted if
    it has three seasons of m steps and its autocorrelations r satisfy

    .. math:: |r_m| > 1.645 \sqrt{\Bigl(1 + 2 \sum_{i=1}^{m-1} r_i^2\Bigr) / T}

    Parameters
    ----------
    season_length : int, optional
        Steps m of a season; by frequency where it is None.
    **shared
        As in all forecasters.

    Notes
    -----
    The organisers' test looks at the first 10 log10(T) autocorrelations, as R's ``acf`` does: a
    longer season is not found. A series that is not positive has no multiplicative indices and
    is not adjusted.

    References
    ----------
    Makridakis, S., Spiliotis, E., Assimakopoulos, V. (2020). The M4 competition. International
    Journal of Forecasting 36, 54-74; "Benchmarks and Evaluation.R" of its repository.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.baselines import Naive2
    >>> days = pd.date_range("2024-01-01", periods=16)
    >>> series = pd.Series([1.0, 2.0, 1.0, 4.0] * 4, days)
    >>> Naive2(season_length=4).fit(series).predict(4).round(6).tolist()
    [1.0, 2.0, 1.0, 4.0]
    """

    column_name: ClassVar[str] = "Naive2"
    _rule: ClassVar[type[Rule]] = Adjusted

    def __init__(self, season_length: int | None = None, **shared: Any) -> None:
        super().__init__(**shared)
        self.season_length = season_length


def adjusted_naive(y: np.ndarray, season: int, h: int) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts and standard errors (h,) of one series (T,)."""
    seasonal = season > 1 and y.min() > 0 and is_seasonal(y, season)
    indices = seasonal_indices(y, season) if seasonal else np.ones(1)
    adjusted = y / np.resize(indices, len(y))
    ahead = indices[(len(y) + np.arange(h)) % len(indices)]
    sigma = np.sqrt((np.diff(adjusted) ** 2).sum() / (len(y) - 1))
    return ahead * adjusted[-1], ahead * sigma * np.sqrt(np.arange(1, h + 1))


def is_seasonal(y: np.ndarray, season: int) -> bool:
    """Return True if the test of the M4 competition finds a season in a series (T,)."""
    n = len(y)
    # R's acf, called by the organisers, stops at 10 log10(n) lags: longer seasons are not found
    if n < SEASONS * season or season > 10 * np.log10(n):
        return False
    deviations = y - y.mean()
    products = [deviations[lag:] @ deviations[: n - lag] for lag in range(season + 1)]
    if products[0] == 0:
        return False
    r = np.array(products[1:]) / products[0]
    # Bartlett's standard error at lag m, given the autocorrelations at shorter lags
    limit = CRITICAL * np.sqrt((1 + 2 * (r[:-1] ** 2).sum()) / n)
    return bool(abs(r[-1]) > limit)


def seasonal_indices(y: np.ndarray, season: int) -> np.ndarray:
    """Indices (m,) of the classical multiplicative decomposition, with mean 1.

    The first belongs to the first row.
    """
    even = season % 2 == 0
    # half weights at both ends centre the window of an even season: the 2 x m moving average
    weights = np.r_[0.5, np.ones(season - 1), 0.5] if even else np.ones(season)
    trend = np.convolve(y, weights / season, mode="valid")
    half = season // 2
    ratios = y[half : half + len(trend)] / trend
    phase = (np.arange(len(ratios)) + half) % season
    figure = np.bincount(phase, ratios, season) / np.bincount(phase, minlength=season)
    return figure / figure.mean()


def root_mean_square(errors: np.ndarray, indptr: np.ndarray, lost: int) -> np.ndarray:
    """Standard deviations (S, 1, C) of errors (N, C), zero where there is no error.

    The degrees of freedom are the rows less `lost`.
    """
    squares = np.add.reduceat(errors**2, indptr[:-1])
    return np.sqrt(squares / (np.diff(indptr) - lost)[:, None])[:, None]


def seasonal_differences(values: np.ndarray, indptr: np.ndarray, lag: int) -> np.ndarray:
    """Differences (N, C) to `lag` rows earlier in the same series; 0 where there is none."""
    differences = np.zeros_like(values)
    differences[lag:] = values[lag:] - values[:-lag]
    position = np.arange(len(values)) - np.repeat(indptr[:-1], np.diff(indptr))
    differences[position < lag] = 0.0
    return differences
