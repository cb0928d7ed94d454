"""Forecasts of short series by a pretrained network, called the prior network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from scipy.special import ndtr

from tsrnn.contract import (
    MOST_STEPS,
    Arguments,
    FittedData,
    Kind,
    Origins,
    SeriesArrays,
    Summary,
    Support,
    as_saved,
    check_arrays,
    forecast_suffixes,
    frequency_defaults,
    integer,
    one_of,
    record,
    refuse,
    seed_of,
    text,
    truth,
)
from tsrnn.data import Panel, order_of_series, quote
from tsrnn.forecasters._columns import (
    REGRESSION,
    ColumnState,
    FittedColumns,
    effect_kinds,
    effect_section,
    file_shapes,
    state_from_file,
    state_to_file,
    steps_per_day,
)
from tsrnn.forecasters._components import forecast_contributions
from tsrnn.forecasters._forecast_part import ForecastPart, features_of
from tsrnn.forecasters._outliers import NOTE as OUTLIERS
from tsrnn.forecasters._outliers import outlier_frame, outlier_section
from tsrnn.interpret import (
    WIDTH,
    ForecastPaths,
    UninformativeNetworkError,
    feature_section,
    path_steps,
    reading_of_forecasts,
    section,
    two_columns,
    wrapped,
)
from tsrnn.prior import (
    ADAPTING_STEPS,
    AUTOREGRESSION_ROWS,
    FEWEST_ROWS,
    IN_SAMPLE_WIDTH,
    LONGEST_SEASON,
    PANEL_RATE,
    PAST_ROWS,
    PRIOR_CELLS,
    PROBABILITIES,
    SERIES_RATE,
    CountHyper,
    Forecasts,
    Outliers,
    TrainedPrior,
    are_counts,
    count_forecasts,
    count_hyper,
    count_models,
    find_outliers,
    forecasts_by,
    learning_windows,
    skip_errors,
    trained_prior,
    training_origins,
    window_rows,
    without_errors,
    year_is_a_season,
)

if TYPE_CHECKING:
    from tsrnn.forecasters._fitted import FittedNetworks
    from tsrnn.forecasters._recurrent import RecurrentForecaster
    from tsrnn.forecasters._stability import FeatureStability
    from tsrnn.kernels import Cell

LARGE_ERRORS = 0.1  # share of gross errors in the variance above which hourly effects are refitted
PATH_ORIGINS, PATH_UNITS = 64, 16  # sampled to compute recurrence features
SHOWN = 8  # structural models in a summary
SHOWN_SHARE = 0.005  # least weight of autoregressions to be mentioned in a summary
NORMAL_80 = 1.2816  # half width of a normal 80 percent interval in standard deviations
TINY = 1e-300  # keeps quotients of constants defined
ROWS_OF_LONG_WIDTHS = 1500  # rows of a series with columns above which many origins set the widths
# Cache of outliers by state: a fit, its forecasts and its summary read the same rows.
KNOWN_OUTLIERS: WeakKeyDictionary[PriorState, Outliers] = WeakKeyDictionary()
# Least rows and seasons of a seasonal series to adapt the network to: fewer say too little of the
# seasonal pattern. A single series without a season, such as an exchange rate, gains nothing.
ROWS_TO_ADAPT, SEASONS_TO_ADAPT = 300, 25
# Lower limits if rolling forecasts validate the adapted network.
ROWS_TO_TRY, SEASONS_TO_TRY, SEASON_TO_TRY = 100, 8, 12
# Least number of series without a season, whose growth may be similar. Panels of short seasonal
# series gain nothing.
UNITS_TO_ADAPT = 30
# Arguments that the pretrained network obeys; any other that differs from its default asks for
# training.
PRIOR_ARGUMENTS = frozenset(
    {"prior", "season_length", "horizon", "target", "id_col", "time_col", "freq", "missing"}
    | {"known_ahead", "static", "calendar", "holidays", "effects", "outliers"}
    | {"cell", "intervals", "random_state", "verbose", "strict", "support"}
)
SIZE: dict[str, Kind] = {
    "hidden_size": integer(0, 1024),
    "n_layers": integer(0, 1024),
    "width": integer(0, 1024),
    "cell": one_of(*PRIOR_CELLS),
}
# Fields of a file in addition to the fields of every forecaster.
FITTED: dict[str, Kind] = {
    "prior": truth,
    "adapted": truth,
    "horizon": integer(1, MOST_STEPS),
    "season_length": integer(1, LONGEST_SEASON),
    "width_steps": integer(1, MOST_STEPS),
    "autoregression": truth,
    "size": record(SIZE, may_lack=tuple(SIZE)),
    "description": text,
}

GUARANTEE = (
    "Intervals: quantiles learned on other series, real and simulated, wider or narrower by the "
    "forecast errors of the last rows{panel} of each series, against ten errors. "
    "They cover with the stated probability on average over series like those it was trained on; "
    "for a single series nothing is guaranteed. See a backtest for coverage on these data."
)
OF_PANEL = (
    ": at each step by those of all series fitted to, which count at most as much as the learned "
    "quantiles, then by those"
)
AUTOREGRESSIONS = (
    "Autoregressions: Gaussian processes of the last rows, whose lags, length scale and noise are "
    "chosen by their likelihood. Their part of the intervals is that of normal errors, and follows "
    "no errors of past forecasts."
)
OF_COUNTS = (
    "Forecasts: models of counts, Poisson and negative binomial, of means that move or have a "
    "season, averaged by their evidence; their prior probabilities are estimated from these series."
)
COUNTED = (
    "Intervals of counts: quantiles of models of counts, averaged by their evidence; as they are "
    "whole numbers, they cover at least the stated probability if the models hold."
)
IN_SAMPLE = (
    " The network was adapted to the rows whose errors these are; where that is one series, widths "
    "are a tenth larger for it."
)


def read_prior(prior: Any, cell: str | Cell | None) -> TrainedPrior | None:
    """Load the pretrained network that the argument `prior` names; None if there is none.

    The package has no pretrained network for some cells; `takes_prior` is False for these.
    """
    if prior is None:
        return None
    if isinstance(prior, str) and prior in ("auto", "only"):
        return trained_prior(cell=cell) if cell in PRIOR_CELLS else None
    legal = 'prior must be "auto", "only", None or a file that tsrnn.prior.TrainedPrior.save wrote'
    if not isinstance(prior, str | Path):
        raise TypeError(f"{legal}; got {prior!r}")
    try:
        return trained_prior(prior)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{legal}; there is no file {str(prior)!r}") from error


def takes_prior(arguments: Arguments, default: Arguments, cell: str | Cell | None) -> bool:
    """Return True if the pretrained network may forecast.

    Raises if `prior` requires it, but arguments that differ from the defaults ask for training. The
    cell is None for a user's layers.
    """
    if arguments.prior is None:
        return False
    conflicts = training_arguments(arguments, default, cell)
    if conflicts and arguments.prior != "auto":
        raise ValueError(
            f"prior={str(arguments.prior)!r} forecasts by a network that was trained before; "
            f"got {'; '.join(conflicts)}. Leave these out, or train with prior=None"
        )
    return not conflicts


def training_arguments(
    arguments: Arguments, default: Arguments, cell: str | Cell | None
) -> list[str]:
    """Arguments that ask for a trained network, as "name=value"; empty if none does."""
    values, usual = arguments.as_dict(), default.as_dict()
    conflicts = [
        f"{name}={value!r}"
        for name, value in values.items()
        if name not in PRIOR_ARGUMENTS and not are_equal(value, usual[name])
    ]
    if cell not in PRIOR_CELLS:
        what = f"the layers of {arguments.class_name}" if cell is None else f"cell={cell!r}"
        conflicts.append(f"{what}, for which none was trained before")
    if values["intervals"] not in ("conformal", "quantile"):
        conflicts.append(f"intervals={values['intervals']!r}")
    return conflicts


def are_equal(value: Any, default: Any) -> bool:
    """Return True if two arguments are equal; either may be an array."""
    # Object arrays: NumPy warns when it compares numbers with strings.
    first, second = np.asarray(value, object), np.asarray(default, object)
    return first.shape == second.shape and bool(np.all(first == second))


def adapted_prior(
    prior: TrainedPrior,
    series: Sequence[np.ndarray],
    season_length: int,
    outliers: str | None,
    *,
    validated: bool = False,
) -> TrainedPrior:
    """Adapt the pretrained network to the series that are long enough; itself if none is.

    Of a series with missing rows, the longest part without missing rows is used. If rolling
    forecasts will validate the result, shorter series suffice, and a few series with a long season
    are skipped: adaptation would take longer than training a network, and be worse.
    """
    parts = [complete_part(rows) for rows in series]
    if season_length > 1:
        rows, seasons = ROWS_TO_ADAPT, SEASONS_TO_ADAPT
        if validated:
            rows, seasons = ROWS_TO_TRY, SEASONS_TO_TRY
        least = max(rows, seasons * season_length)
        long = [len(part) >= least for part in parts]
    else:
        long = [len(training_origins(rows, season_length)) > 0 for rows in parts]
    quick = 1 < season_length <= (SEASON_TO_TRY if validated else LONGEST_SEASON)
    if sum(long) < (1 if quick else UNITS_TO_ADAPT):
        return prior
    chosen = [rows for rows, is_long in zip(parts, long, strict=True) if is_long]
    indptr = np.cumsum([0, *map(len, chosen)])
    order = order_of_series(np.concatenate(chosen)[:, None], indptr)
    chosen = [chosen[i] for i in order]
    # Outliers are searched for in the learning windows alone: the search is slower than learning.
    learned = expected_at_errors(learning_windows(chosen, season_length), season_length, outliers)
    rate = SERIES_RATE if season_length > 1 else PANEL_RATE
    return prior.adapted_to(learned, season_length, rate)


def skip_residual_errors(panel: Panel, columns: FittedColumns, season_length: int) -> Panel:
    """Set rows to NaN whose residuals after the effects of columns are gross errors.

    Returns the panel itself if there are none, or if errors are a small part of the residual
    variance of hourly data: the effects would hardly change, and a regression takes seconds.
    """
    left, _ = columns.advance(columns.begin(panel), panel)
    without, _ = skip_errors(left.values, panel.indptr, season_length)
    errors = np.isnan(without) & ~np.isnan(left.values)
    with np.errstate(over="ignore", invalid="ignore"):  # squares of huge errors
        few = np.nanvar(left.values) < (1 + LARGE_ERRORS) * np.nanvar(without)
    if not errors.any() or (columns.effects.long and few):
        return panel
    return replace(panel, values=np.where(errors, np.nan, panel.values))


def expected_at_errors(
    series: Sequence[np.ndarray], season_length: int, outliers: str | None
) -> list[np.ndarray]:
    """Replace gross errors by their expected values; copies if `outliers` is None."""
    expected = [rows.copy() for rows in series]
    if outliers is None:
        return expected
    lengths = np.array([len(rows) for rows in series])
    values = np.full((len(series), lengths.max()), np.nan)
    for place, rows in zip(values, series, strict=True):
        place[: len(rows)] = rows
    errors = find_outliers(values, lengths, season_length)
    for number, row, shift, size, _ in zip(*errors, strict=True):
        if not shift:
            expected[number][row] -= size
    return expected


def complete_part(rows: np.ndarray) -> np.ndarray:
    """Longest part of a series (T,) without missing rows."""
    missing = np.flatnonzero(np.isnan(rows))
    if not len(missing):
        return rows
    begins, ends = np.append(0, missing + 1), np.append(missing, len(rows))
    longest = int(np.argmax(ends - begins))
    return rows[begins[longest] : ends[longest]]


@dataclass(frozen=True, eq=False)
class PriorState(SeriesArrays):
    """Last rows of every series, which are all that the pretrained network reads.

    Attributes
    ----------
    ids : pandas.Index of shape (S,)
    last_times : ndarray of shape (S,)
    target_scale : ndarray of shape (S, C)
        Standard deviation of each target in the rows given; 1 where it does not vary.
    n_rows : integer ndarray of shape (S,)
        Rows seen so far.
    tail : ndarray of shape (S, W, C)
        Last rows of each series, padded with zeros at the end, after removal of the effects of
        columns. NaN if the target, or a column with an effect, is missing.
    earlier : ndarray of shape (S, B, C)
        Rows before `tail`, which only autoregressions read; padded with NaN at the beginning.
    columns : ColumnState or None

    Examples
    --------
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.datasets import load_nile
    >>> state = ParaRNNForecaster(horizon=4).fit(load_nile()).state_
    >>> state.n_rows.tolist(), state.tail.shape
    ([100], (1, 112, 1))
    """

    ids: pd.Index
    last_times: np.ndarray
    target_scale: np.ndarray
    n_rows: np.ndarray
    tail: np.ndarray
    earlier: np.ndarray
    columns: ColumnState | None = None

    @property
    def counts(self) -> np.ndarray:
        """Number of observed or missing rows in `tail` before the padding, shape (S,)."""
        return np.minimum(self.n_rows, self.tail.shape[1])

    @property
    def last_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Last rows of each target of each series, shape (U, W), and their numbers (U,)."""
        n_series, window, n_targets = self.tail.shape
        rows = self.tail.swapaxes(1, 2).reshape(n_series * n_targets, window)
        return rows, self.counts.repeat(n_targets)

    @property
    def earlier_rows(self) -> np.ndarray:
        """Earlier rows of each target of each series, shape (U, B)."""
        n_series, n_earlier, n_targets = self.earlier.shape
        return self.earlier.swapaxes(1, 2).reshape(n_series * n_targets, n_earlier)


@dataclass(frozen=True, eq=False)
class FittedPrior(ForecastPart[PriorState]):
    """Pretrained network with the parameters that were adapted to these series.

    Attributes
    ----------
    arguments : Arguments
    data : FittedData
    horizon : int
    season_length : int
        At most 60; 1 for none.
    prior : TrainedPrior
    adapted : bool
        True if the network was adapted to the series.
    widths : ndarray of shape (n,)
        Factors of the learned widths by step, from the errors of all series; 1 for a single series
        unless it is long.
    columns : FittedColumns or None
        Effects of exogenous columns. The network forecasts the residuals and reads no columns.
    counts : CountHyper or None
        Hyperprior of the models that forecast counts; None if no target is a count, or columns
        have effects.

    Examples
    --------
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.datasets import load_nile
    >>> fitted = ParaRNNForecaster(horizon=4).fit(load_nile()).fitted_
    >>> type(fitted).__name__, fitted.season_length
    ('FittedPrior', 1)
    """

    skips_missing: ClassVar[bool] = True
    shares_state: ClassVar[bool] = True
    arguments: Arguments
    data: FittedData
    horizon: int
    season_length: int
    prior: TrainedPrior
    adapted: bool
    widths: np.ndarray
    columns: FittedColumns | None = None
    counts: CountHyper | None = None

    @property
    def point(self) -> str:
        """Statistic that the point forecast estimates."""
        if self.counts is None:
            return "median"
        return "mean" if self.all_counts else "mean of counts, else median"

    @property
    def guarantee(self) -> str:
        """Guarantee of the intervals."""
        of_panel = OF_PANEL * bool((self.widths != 1).any())
        words = GUARANTEE.format(panel=of_panel) + IN_SAMPLE * self.adapted
        if self.counts is None:
            return words
        return COUNTED if self.all_counts else f"{COUNTED} Of other targets: {words}"

    @property
    def all_counts(self) -> bool:
        """True if count models forecast all targets."""
        counted = all(support.name == "count" for support in self.data.supports)
        return self.counts is not None and counted

    def with_supports(self, supports: tuple[Support, ...]) -> Self:
        """Replace the supports of the targets; without counts, drop the count models."""
        fitted = super().with_supports(supports)
        counted = any(support.name == "count" for support in supports)
        return fitted if counted else replace(fitted, counts=None)

    @classmethod
    def of(
        cls,
        arguments: Arguments,
        data: FittedData,
        panel: Panel,
        prior: TrainedPrior,
        *,
        adapts: bool,
    ) -> tuple[FittedPrior, PriorState]:
        """Fit the widths of the panel, adapt the network if `adapts`, and filter the panel.

        Raises
        ------
        ValueError
            If a series has fewer than three rows.
        """
        fitted, state, panel = cls.unadapted(arguments, data, panel, prior)
        season, columns = fitted.season_length, fitted.columns
        series = [target for i in range(panel.n_series) for target in panel.series(i).T]
        if adapts:
            adapted = adapted_prior(prior, series, season, arguments.outliers)
            fitted = replace(fitted, prior=adapted, adapted=adapted is not prior)
        widths = fitted.widths
        if columns is not None and panel.lengths.max() >= ROWS_OF_LONG_WIDTHS:
            # Long series are forecast for more steps than the network was trained on.
            series = expected_at_errors(series, season, arguments.outliers)
            widths = fitted.prior.long_widths(series, season)
        elif len(series) > 1:  # a single series corrects its widths at every forecast
            rows, counts, _ = fitted.rows_read(state)
            widths = fitted.prior.panel_widths(rows, counts, season)
        return replace(fitted, widths=widths), state

    @classmethod
    def unadapted(
        cls, arguments: Arguments, data: FittedData, panel: Panel, prior: TrainedPrior
    ) -> tuple[FittedPrior, PriorState, Panel]:
        """Fit the effects of columns alone; return network, state and residual panel.

        Raises
        ------
        ValueError
            If a series has fewer than three rows.
        """
        seed_of(arguments.random_state)  # check only: adaptation uses fixed seeds
        defaults = frequency_defaults(panel.layout)
        check_observed(panel, FEWEST_ROWS, "Give more rows, or drop this series")
        season = arguments.season_length or defaults.season
        season = season if season <= LONGEST_SEASON else 1
        horizon = arguments.horizon or defaults.horizon
        kinds = effect_kinds(arguments, data)
        columns = None
        if data.exog_names or year_is_a_season(int(panel.lengths.max()), steps_per_day(data)):
            columns = FittedColumns.of(panel, data, season, kinds)
            if arguments.outliers is not None:
                cleaned = skip_residual_errors(panel, columns, season)
                if cleaned is not panel:
                    columns = FittedColumns.of(cleaned, data, season, kinds)
        if columns is not None and not data.exog_names and not columns.effects.terms:
            columns = None
        fitted = cls(arguments, data, horizon, season, prior, False, np.ones(PAST_ROWS), columns)
        state, panel = fitted.filter_residuals(fitted.empty_state(panel), panel)
        if columns is None and (units := fitted.counting(state)).any():
            rows, lengths = (part[units] for part in state.last_rows)
            fitted = replace(fitted, counts=count_hyper(rows, lengths, season))
        if columns is not None:
            advice = 'Fill in the columns, or leave them out by effects={"...": "none"}'
            check_observed(panel, FEWEST_ROWS, advice, " with all columns that have effects")
        return fitted, state, panel

    def adapted_to(self, panel: Panel) -> FittedPrior:
        """Adapt the network to the residuals of a panel, to be validated by rolling forecasts.

        Returns itself if the series are too short.
        """
        _, left = self.filter_residuals(self.empty_state(panel), panel)
        series = [target for i in range(left.n_series) for target in left.series(i).T]
        outliers = self.arguments.outliers
        prior = adapted_prior(self.prior, series, self.season_length, outliers, validated=True)
        return self if prior is self.prior else replace(self, prior=prior, adapted=True)

    def filter(self, panel: Panel, seen: PriorState | None = None) -> PriorState:
        """State after the rows of a panel; `seen` is not used, as all series are treated alike."""
        return self.advance(self.empty_state(panel), panel)

    def empty_state(self, panel: Panel) -> PriorState:
        """State before the first rows of a panel's series."""
        window = window_rows(self.season_length)
        scale = np.ones((panel.n_series, panel.values.shape[1]))
        for i in range(panel.n_series):
            for j, rows in enumerate(panel.series(i).T):
                rows = rows[np.isfinite(rows)]
                largest = np.abs(rows).max(initial=0.0)  # scaled so that squares do not overflow
                if largest > 0 and (deviation := largest * (rows / largest).std()) > 0:
                    scale[i, j] = deviation
        tail = np.zeros((panel.n_series, window, panel.values.shape[1]))
        n_earlier = max(0, AUTOREGRESSION_ROWS - window)
        earlier = np.full((panel.n_series, n_earlier, panel.values.shape[1]), np.nan)
        columns = None if self.columns is None else self.columns.begin(panel)
        n_rows = np.zeros_like(panel.lengths)
        return PriorState(panel.ids, panel.last_times, scale, n_rows, tail, earlier, columns)

    def advance(self, state: PriorState, panel: Panel) -> PriorState:
        """Append rows to all series."""
        return self.filter_residuals(state, panel)[0]

    def filter_residuals(self, state: PriorState, panel: Panel) -> tuple[PriorState, Panel]:
        """State after further rows of all series, and the residuals of these rows."""
        columns = state.columns
        if self.columns is not None:
            assert columns is not None
            panel, columns = self.columns.advance(columns, panel)
        tail, window = state.tail.copy(), state.tail.shape[1]
        earlier, n_earlier = state.earlier.copy(), state.earlier.shape[1]
        for i, count in enumerate(state.counts):
            rows = np.concatenate([state.tail[i, :count], panel.series(i)])
            before = np.concatenate([state.earlier[i], rows[:-window]])
            earlier[i] = before[len(before) - n_earlier :]
            rows = rows[-window:]
            tail[i, : len(rows)] = rows
            if not np.isfinite(rows).any(0).all():
                effects = self.columns is not None and self.columns.effects.terms
                raise ValueError(
                    f"{panel.axis.where(i)}the prior network forecasts from the last {window} "
                    "rows; none of them is observed"
                    f"{' with all columns that have effects' if effects else ''}. Give more rows"
                    f"{', fill in the columns' if effects else ''}, or drop this series"
                )
        n_rows, last_times = state.n_rows + panel.lengths, panel.last_times
        moved = {"last_times": last_times, "n_rows": n_rows, "tail": tail, "earlier": earlier}
        return replace(state, columns=columns, **moved), panel

    def forecasts(self, state: PriorState, h: int, future: np.ndarray | None = None) -> Forecasts:
        """Predictive distributions of each target of each series, with the effects of columns.

        The variance of the coefficients widens them. `future`, shape (S, h, n), are the columns
        known ahead.
        """
        return distributions_together([self], state, h, future, with_state=True)[0]

    def with_effects(
        self, left: Forecasts, known: ColumnState, matrix: np.ndarray, shares: np.ndarray
    ) -> Forecasts:
        """Add the effects `shares` of the regression's columns `matrix` to forecasts."""
        regression, h = self.columns, left.median.shape[1]
        assert regression is not None
        # Standard deviation that the 80 percent interval of a normal implies.
        low, high = left.at([0.1, 0.9]).swapaxes(0, 1)
        deviation = (high - low) / (2 * NORMAL_80)
        if regression.effects.logarithms:  # of the logarithm where effects are factors
            deviation = deviation / np.maximum(np.abs(left.median), TINY)
        # A constant series has no width, and gets none from the coefficients.
        variance, shares = (
            part.swapaxes(1, 2).reshape(-1, h)
            for part in (regression.variances(known, matrix), shares)
        )
        moves = deviation > 0
        ratio = np.hypot(deviation, np.sqrt(variance)) / np.where(moves, deviation, 1.0)
        factor = regression.widening(known).reshape(-1, 1) * np.where(moves, ratio, 1.0)
        median = left.median[:, None]
        quantiles = median + (left.quantiles - median) * factor[:, None]
        return replace(
            left,
            median=regression.effects.restored(left.median, shares),
            quantiles=regression.effects.restored(quantiles, shares[:, None]),
        )

    def counting(self, state: PriorState) -> np.ndarray:
        """Mask of targets to forecast by count models, (U,): support and last rows are counts.

        Later rows and new series may hold other values, or counts too large for these models.
        """
        of_target = [support.name == "count" for support in self.data.supports]
        return np.tile(of_target, len(state.ids)) & are_counts(state.last_rows[0]).all(1)

    def residual_forecasts(self, state: PriorState, h: int) -> Forecasts:
        """Predictive distributions of the residuals of each target of each series.

        Counts are forecast by count models, with the mean in place of the median.
        """
        return residual_distributions([self], state, h)[0]

    def with_counts(self, forecasts: Forecasts, units: np.ndarray, counted: Any) -> Forecasts:
        """Replace the forecasts at the mask `units` by forecasts of count models."""
        median, quantiles = forecasts.median.copy(), forecasts.quantiles.copy()
        median[units], quantiles[units] = counted.mean, counted.quantile(PROBABILITIES)
        share = units.mean()
        weights = pd.concat([(1 - share) * forecasts.weights, share * counted.weights])
        return replace(forecasts, median=median, quantiles=quantiles, weights=weights)

    def zero_probability(self, state: PriorState, h: int) -> np.ndarray | None:
        """Probabilities of a zero count, (S, h, C); NaN for other targets, None without counts."""
        units = self.counting(state)
        if self.counts is None or not units.any():
            return None
        rows, lengths = (part[units] for part in state.last_rows)
        counted = count_forecasts(rows, lengths, self.season_length, h, self.counts)
        probability = np.full((len(units), h), np.nan)
        probability[units] = counted.probability_of_zero
        return probability.reshape(len(state.ids), -1, h).swapaxes(1, 2)

    @property
    def widths_of_series(self) -> np.ndarray:
        """Width factors by step, shape (n,), larger if adapted to a single series."""
        single = len(self.data.ids) * self.data.n_targets == 1
        return self.widths * (IN_SAMPLE_WIDTH if self.adapted and single else 1.0)

    def rows_read(self, state: PriorState) -> tuple[np.ndarray, np.ndarray, Outliers]:
        """Last rows, (U, W), with NaN at gross errors, their numbers (U,), and the outliers."""
        rows, counts = state.last_rows
        if self.arguments.outliers is None:
            return rows, counts, Outliers.none()
        if state not in KNOWN_OUTLIERS:
            outliers = find_outliers(rows, counts, self.season_length)
            if self.counts is not None:  # count models expect large counts, which are no errors
                kept = ~self.counting(state)[outliers.series]
                outliers = Outliers(*(field[kept] for field in outliers))
            KNOWN_OUTLIERS[state] = outliers
        return without_errors(rows, KNOWN_OUTLIERS[state]), counts, KNOWN_OUTLIERS[state]

    def exog_ahead(self, state: PriorState, h: int, future: np.ndarray | None) -> np.ndarray:
        """Columns ahead, shape (S, h, k): known values, and forecasts of the other columns."""
        assert self.columns is not None
        assert state.columns is not None
        exog, later = self.columns.exog_ahead(state.columns, h, future), self.columns.later
        if later:
            n_series, window, n_later = state.columns.tail.shape
            rows = state.columns.tail.swapaxes(1, 2).reshape(n_series * n_later, window)
            counts = state.counts.repeat(n_later)
            # Move the last rows to the front, where the network reads them.
            first = (window - counts)[:, None] + np.arange(window)
            rows = np.take_along_axis(rows, np.minimum(first, window - 1), 1)
            unknown = np.isnan(rows).all(1).reshape(n_series, n_later).any(0)
            if unknown.any():
                absent = [self.data.exog_names[later[i]] for i in np.flatnonzero(unknown)]
                raise ValueError(
                    f"the columns {absent} have no value in the last rows of a series, from which "
                    'they are to be forecast. Fill them in, or leave them out by effects={"...": '
                    '"none"}'
                )
            medians = self.prior.forecast(rows, counts, self.season_length, h).median
            exog[..., later] = medians.reshape(n_series, n_later, h).swapaxes(1, 2)
        return exog

    def forecast(
        self, state: PriorState, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Forecasts (S, h, C) and their intervals, under the names of `FittedModel`."""
        return forecast_together([self], state, h, levels, future)[0]

    def contributions(self, state: PriorState, future: np.ndarray | None) -> dict[str, np.ndarray]:
        """Additive parts of the forecasts of `horizon` steps, shape (S, h, C), by name."""
        return forecast_contributions(self, state, future)

    def rolling(
        self, state: PriorState, panel: Panel, origins: Origins, h: int, levels: list[float]
    ) -> dict[str, np.ndarray]:
        """Forecasts (n, h, C) from n origins within a panel that follows `state`."""
        return rolling_together([self], state, panel, origins, h, levels)[0]

    def simulate(
        self, state: PriorState, h: int, n: int, future: np.ndarray | None, rng: np.random.Generator
    ) -> np.ndarray:
        """Draw paths, shape (n, S, h, C), with a Gaussian random walk as copula of the steps.

        The network has learned the distributions of single steps, not their dependence. Counts are
        drawn from the count models.
        """
        n_series, _, n_targets = state.tail.shape
        walk = rng.standard_normal((n, n_series * n_targets, h)).cumsum(-1)
        ranks = ndtr(walk / np.sqrt(np.arange(1.0, h + 1)))
        (drawn,) = distributions_together([self], state, h, future)
        paths, units = drawn.at_ranks(ranks), self.counting(state)
        if self.counts is not None and units.any():
            rows, lengths = (part[units] for part in state.last_rows)
            counted = count_forecasts(rows, lengths, self.season_length, h, self.counts)
            paths[:, units] = counted.sample(n, rng)
        return paths.reshape(n, n_series, n_targets, h).swapaxes(2, 3)

    @property
    def trained(self) -> FittedNetworks:
        """Refuse: no network of these series was trained."""
        raise UninformativeNetworkError(
            f"this {self.arguments.class_name} forecasts by the prior network, which was trained "
            "on other series; summary() shows what forecasts. A network of these series, with "
            "recurrence features, settings and errors, is trained with prior=None"
        )

    @property
    def network_active(self) -> bool:
        """Return True, as the pretrained network always contributes."""
        return True

    @property
    def regression(self) -> FittedColumns | None:
        """Regression on exogenous columns and the calendar; None without them."""
        return self.columns

    def pretrained(self, state: PriorState) -> tuple[FittedPrior, PriorState]:
        """Return this network and the state."""
        return self, state

    def program(self) -> FittedNetworks:
        """Refuse: no network of these series was trained."""
        raise ValueError(
            "a network trained on the series can be exported; this forecaster uses the prior "
            "network. Fit with prior=None, or keep it by save and tsrnn.load"
        )

    def summarise(
        self, forecaster: RecurrentForecaster, stability: FeatureStability | None
    ) -> PriorSummary:
        """Summary of a forecaster that holds this network alone."""
        features = features_of(forecaster, stability)
        return summarise_prior(self, forecaster.state_, features)

    def forecast_paths(self, state: PriorState, at: str) -> ForecastPaths:
        """Paths of forecasts from sampled rows, which are not linearised; `at` has no effect."""
        last_rows, counts, _ = self.rows_read(state)
        rng = np.random.default_rng(0)
        long = np.flatnonzero(counts >= np.median(counts))
        units = np.sort(rng.permutation(long)[:PATH_UNITS])
        origins = np.zeros((len(units), last_rows.shape[1]), bool)
        for values, place, count in zip(last_rows[units], origins, counts[units], strict=True):
            # Random rows: equally spaced ones could all have the same phase of a season. Later
            # half: early forecasts depend on the pretrained network more than on the series.
            rows = np.arange(max(count // 2, FEWEST_ROWS - 1), count)
            rows = rows[np.isfinite(values[rows])]
            place[rng.permutation(rows)[: -(-PATH_ORIGINS // len(units))]] = True
        steps = path_steps(self.horizon, self.season_length)
        medians = self.prior.medians_from(
            last_rows[units], origins, self.season_length, steps, state.earlier_rows[units]
        )
        scaled = np.split(medians, origins.sum(1).cumsum()[:-1])
        scale = state.target_scale.ravel()[units]
        paths = np.concatenate(
            [(part - part.mean(0)) / size for part, size in zip(scaled, scale, strict=True)]
        )
        return ForecastPaths(
            paths[..., None], self.horizon, int(state.n_rows.max()), 0.0, linear=False
        )

    def weights(self, state: PriorState) -> pd.Series:
        """Mean weights of the structural models over series and steps, in descending order."""
        weights = self.residual_forecasts(state, self.horizon).weights
        return weights.sort_values(ascending=False)

    def to_file(self, state: PriorState) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """JSON values and arrays of a file; `from_file` is the inverse."""
        header, arrays = self.prior.to_file()
        header |= {
            "prior": True,
            "adapted": self.adapted,
            "horizon": self.horizon,
            "season_length": self.season_length,
            "width_steps": len(self.widths),
            "autoregression": self.prior.autoregression,
        }
        arrays |= {"n_rows": state.n_rows, "tail": state.tail, "target_scale": state.target_scale}
        if self.prior.autoregression:
            arrays["earlier"] = state.earlier
        arrays["widths"] = self.widths
        if self.counts is not None:
            arrays |= {f"counts.{name}": part for name, part in self.counts._asdict().items()}
        if self.columns is not None:
            assert state.columns is not None
            of_columns, numbers = self.columns.to_file()
            header |= of_columns
            arrays |= numbers | state_to_file(state.columns)
        return header, arrays


def forecast_together(
    networks: Sequence[FittedPrior],
    state: PriorState,
    h: int,
    levels: list[float],
    future: np.ndarray | None,
) -> list[dict[str, np.ndarray]]:
    """Forecasts of several networks of the same state, each as `FittedPrior.forecast`.

    The networks differ in weights and widths. Everything else takes most of the time and is
    computed once.
    """
    tails = [0.5 + side * level / 200 for level in levels for side in (-1, 1)]
    n_series, _, n_targets = state.tail.shape
    results = []
    for drawn in distributions_together(networks, state, h, future):
        quantiles = np.concatenate([drawn.median[:, None], drawn.at(tails)], 1)
        by_series = quantiles.reshape(n_series, n_targets, -1, h).transpose(2, 0, 3, 1)
        results.append(dict(zip(forecast_suffixes(levels), by_series, strict=True)))
    return results


def rolling_together(
    networks: Sequence[FittedPrior],
    state: PriorState,
    panel: Panel,
    origins: Origins,
    h: int,
    levels: list[float],
) -> list[dict[str, np.ndarray]]:
    """Rolling forecasts of several networks of the same state, see `forecast_together`."""
    first = networks[0]
    # The state at each origin is taken as a series, so that all origins are one batch.
    places, states = zip(*first.states_at(state, panel, origins), strict=True)
    reached = states[0].joined(states[1:]).select(np.argsort(np.concatenate(places)))
    future = None
    if first.columns is not None and first.data.known_ahead:
        rows = origins.first[:, None] + np.arange(h)
        future = panel.exog_of(first.data.known_ahead)[rows]
    return forecast_together(networks, reached, h, levels, future)


def distributions_together(
    networks: Sequence[FittedPrior],
    state: PriorState,
    h: int,
    future: np.ndarray | None,
    *,
    with_state: bool = False,
) -> list[Forecasts]:
    """Predictive distributions of several networks, each as `FittedPrior.forecasts`."""
    left = residual_distributions(networks, state, h, with_state=with_state)
    first, known = networks[0], state.columns
    if first.columns is None:
        return left
    assert known is not None
    times = first.data.times_ahead(state, h)
    matrix, shares = first.columns.ahead(known, times, first.exog_ahead(state, h, future))
    return [first.with_effects(of_network, known, matrix, shares) for of_network in left]


def residual_distributions(
    networks: Sequence[FittedPrior], state: PriorState, h: int, *, with_state: bool = False
) -> list[Forecasts]:
    """Residual distributions of several networks, each as `FittedPrior.residual_forecasts`.

    If all units are counts, the networks run only `with_state`; else `Forecasts.state` is (U, 0).
    """
    first, units = networks[0], networks[0].counting(state)
    season, priors = first.season_length, [network.prior for network in networks]
    counted = None
    if first.counts is not None and units.any():
        rows, lengths = (part[units] for part in state.last_rows)
        counted = count_forecasts(rows, lengths, season, h, first.counts)
        if units.all() and not with_state:
            quantiles, nothing = counted.quantile(PROBABILITIES), np.empty((len(units), 0))
            return [Forecasts(counted.mean, quantiles, counted.weights, nothing)] * len(networks)
    widths = [network.widths_of_series for network in networks]
    rows, counts, outliers = first.rows_read(state)
    raw, earlier = state.last_rows[0], state.earlier_rows
    forecasts = forecasts_by(priors, rows, counts, season, h, widths, earlier)
    ending, last, probability = outliers.errors_at_end(raw, counts)
    if len(ending):
        # The last row may be an error or a level shift: mix the forecasts of both cases.
        shifted = rows[ending]
        shifted[np.arange(len(ending)), last] = raw[ending, last]
        others = forecasts_by(priors, shifted, counts[ending], season, h, widths, earlier[ending])
        pairs = zip(forecasts, others, strict=True)
        forecasts = [of_network.mixed(other, ending, probability) for of_network, other in pairs]
    if counted is None:
        return forecasts
    return [first.with_counts(of_network, units, counted) for of_network in forecasts]


@dataclass(frozen=True, eq=False, repr=False)
class PriorSummary(Summary):
    """Text and tables of a forecaster that uses the prior network; print it.

    It has the mean weights of the structural models; the recurrence features of the forecasts
    (`tsrnn.forecast_features`), None if these are constant; the outliers
    (`ParaRNNForecaster.outliers_`); and the effects of exogenous columns, None without any.
    """

    title: str
    composition: str
    facts: dict[str, object]
    weights: pd.Series
    features: pd.DataFrame | None
    notes: list[str]
    outliers: pd.DataFrame
    effects: pd.DataFrame | None = None

    def as_text(self) -> str:
        """Page as it is printed."""
        shown = self.weights.head(SHOWN)
        table = shown.rename("weight").rename_axis("structural model").reset_index()
        parts = [
            self.title.center(WIDTH).rstrip(),
            "=" * WIDTH,
            wrapped(self.composition, indent=0),
            "-" * WIDTH,
            two_columns(self.facts),
            *effect_section(self.effects),
            section("What forecasts, in the mean over series and steps"),
            table.to_string(index=False, float_format=lambda v: f"{v:.3f}"),
            *outlier_section(self.outliers),
            *feature_section(self.features, "Recurrence features of the forecasts"),
            "=" * WIDTH,
            *[wrapped(f"[{i}] {note}") for i, note in enumerate(self.notes, 1)],
        ]
        return "\n".join(parts)


def check_observed(panel: Panel, fewest: int, advice: str, with_columns: str = "") -> None:
    """Raise ValueError if a series has fewer observed rows than the pretrained network needs."""
    counts = np.stack([np.isfinite(panel.series(i)).sum(0) for i in range(panel.n_series)])
    shortest, target = np.unravel_index(counts.argmin(), counts.shape)
    if counts[shortest, target] < fewest:
        of_target = f" of {quote(panel.target_names[target])}" if counts.shape[1] > 1 else ""
        raise ValueError(
            f"{panel.axis.where(int(shortest))}the prior network needs at least {fewest} observed "
            f"rows of a series{with_columns}; there are {counts[shortest, target]}{of_target}. "
            f"{advice}"
        )


def summarise_prior(
    fitted: FittedPrior, state: PriorState, features: pd.DataFrame | None
) -> PriorSummary:
    """Summarise a forecaster that uses the pretrained network."""
    data, prior = fitted.data, fitted.prior
    weights = fitted.weights(state)
    regressed = weights[weights.index.str.contains("autoregression")].sum() >= SHOWN_SHARE
    features = None if fitted.all_counts else features
    facts: dict[str, object] = {
        "Series": len(state.ids),
        "Rows": int(state.n_rows.sum()),
        "Targets": data.n_targets,
        "Frequency": data.freq,
        "Season": fitted.season_length if fitted.season_length > 1 else "none",
        "Horizon": fitted.horizon,
        "Parameters": prior.n_parameters,
        "Structural models": prior.n_models(fitted.season_length),
    }
    if fitted.counts is not None:
        facts["Models of counts"] = len(count_models(fitted.season_length))
    if fitted.all_counts:
        del facts["Structural models"], facts["Parameters"]
    notes = [fitted.guarantee, *fitted.support_notes]
    effects = None
    if fitted.columns is not None:
        effects = fitted.columns.table()
        if not effects.empty:
            facts["Effects"] = "factors" if fitted.columns.effects.logarithms else "additive"
            notes.append(fitted.columns.note)
    outliers = outlier_frame(fitted, state, replace(data.layout, backend="pandas"))
    if len(outliers):
        notes.append(OUTLIERS)
    if regressed:
        notes.append(AUTOREGRESSIONS)
    if features is not None:
        notes.append(reading_of_forecasts(features))
    title = f"{fitted.arguments.class_name} Results"
    return PriorSummary(
        title, composition_of(fitted, regressed), facts, weights, features, notes, outliers, effects
    )


def composition_of(fitted: FittedPrior, regressed: bool) -> str:
    """Describe the model and the fitted parameters; `regressed` if autoregressions have weight."""
    if fitted.all_counts:
        return OF_COUNTS
    prior = fitted.prior
    if fitted.adapted:
        fit = f"; it was adapted to these by {ADAPTING_STEPS} small steps"
        fit += ", after the effects were taken out" * (fitted.columns is not None)
    elif (fitted.widths != 1).any():
        fit = "; of these only the widths of its intervals are estimated"
    elif fitted.columns is not None and fitted.columns.effects.terms:
        fit = "; of these only the effects of columns and the calendar are estimated"
    else:
        fit = "; nothing is estimated from these"
    if regressed:
        fit += "; autoregressions are estimated from these, and forecast beside it"
    return (
        f"Forecasts: the prior network{of_cell(prior)}, trained before on other series{fit}. "
        f"{prior.description}"
    )


def of_cell(prior: TrainedPrior) -> str:
    """Phrase that names the cell of a network; empty for the default cell."""
    if prior.cell == "rnn":
        return ""
    from tsrnn.layers import CELLS  # needs torch, as networks of other cells do

    return f" of {CELLS[prior.cell].words}"


def prior_from_file(
    arguments: Arguments,
    data: FittedData,
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
    last_times: np.ndarray,
) -> tuple[FittedPrior, PriorState]:
    """Read the network and state that `FittedPrior.to_file` wrote."""
    # Files of forecasters without autoregressions have no such field.
    may_lack = (*REGRESSION, "autoregression")
    record(FITTED | REGRESSION, may_lack=may_lack)(header, "fitted")
    autoregression = header.get("autoregression", False)
    season, n_series = header["season_length"], len(data.ids)
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {
        "n_rows": ("int64", (n_series,)),
        "tail": ("float64", (n_series, window_rows(season), data.n_targets)),
        "target_scale": ("float64", (n_series, data.n_targets)),
        "widths": ("float64", (header["width_steps"],)),
    }
    if autoregression:
        n_earlier = max(0, AUTOREGRESSION_ROWS - window_rows(season))
        shapes["earlier"] = ("float64", (n_series, n_earlier, data.n_targets))
    with as_saved("fitted.size"):
        shapes |= TrainedPrior.shapes(header["size"])
    with_terms = "terms" in header
    if (data.exog_names and not with_terms) or ("alike" in header) != with_terms:
        raise refuse("fitted", "with terms where there are columns", list(header))
    if with_terms:
        shapes |= file_shapes(header, data, season)
    counts = None
    if "counts.level" in arrays:
        n_models = len(count_models(season))
        sizes = {"level": 2, "demand": 2, "occurrence": 2, "weights": n_models}
        sizes["occurrence_weights"] = 4
        shapes |= {f"counts.{name}": ("float64", (size,)) for name, size in sizes.items()}
    check_arrays(arrays, shapes, positive=("n_rows", "widths"))
    if "counts.level" in arrays:
        counts = CountHyper(**{name: arrays[f"counts.{name}"] for name in CountHyper._fields})
    columns = FittedColumns.from_file(header, arrays, data, season) if with_terms else None
    prior = replace(TrainedPrior.from_file(header, arrays), autoregression=autoregression)
    fitted = FittedPrior(
        arguments, data, header["horizon"], season, prior, header["adapted"], arrays["widths"],
        columns, counts,
    )  # fmt: skip
    scale, n_rows, tail = (arrays[name] for name in ("target_scale", "n_rows", "tail"))
    earlier = arrays.get("earlier", np.empty((n_series, 0, data.n_targets)))
    of_columns = None if columns is None else state_from_file(arrays, data)
    return fitted, PriorState(data.ids, last_times, scale, n_rows, tail, earlier, of_columns)
