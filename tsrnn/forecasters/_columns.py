"""Regression on columns: its effects are removed from the series and added to the forecasts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.contract import (
    Arguments,
    FittedData,
    Kind,
    SeriesArrays,
    anything,
    by_name,
    integer,
    listed,
    one_of,
    real,
    record,
    refuse,
    static_values,
)
from tsrnn.data import Panel, calendar_phases, quote, step_days
from tsrnn.interpret import section
from tsrnn.prior import (
    CYCLES,
    LONGEST_LAG,
    PHASES,
    ColumnEffects,
    ColumnMemory,
    PanelPrior,
    Product,
    Term,
    check_effects,
    decays_of,
    first_values,
    fit_effects,
    mean_change,
    moving_averages,
    widths_of,
    window_rows,
)

# Decay of the average of past columns, from which errors by the coefficients are measured: a level
# that wanders has absorbed the effects of columns further back.
CENTRE_DECAY = 0.8
# Arrays of a file that may contain NaN.
MAY_LACK = ("columns.recent", "columns.tail", "columns.shares")
# Names of `components` and `contributions`; columns of the same name get " (column)" appended.
PARTS_OF_MODELS = ("level", "trend", "cycle", "season", "network", "calendar")
PARTS_OF_TRAINED = ("linear path", "known ahead", "constant")
KEYS = ("data", "fit", "target", "step")
OTHER_PARTS = re.compile(
    "|".join((*PARTS_OF_MODELS, *PARTS_OF_TRAINED, *KEYS, r"block \d+", r".*-se", r".* \(column\)"))
)
LARGEST_LOG = 60.0  # absolute logarithm of a factor ahead, so that its exponential is finite
LARGEST_AHEAD = 1e100  # standard deviations of a column ahead: squares of effects stay finite
PROBABILITIES = np.linspace(0, 1, 21)  # probabilities of the stored quantiles of columns
EFFECTS = (
    "Effects of columns and the calendar: terms and the strength of their shrinkage are those with "
    "the largest marginal likelihood, the errors following {errors}. Coefficients and standard "
    "errors are posterior means and deviations, in the mean over series; the choice of terms is "
    "not in them. Of factors, coefficients are those of the logarithm. The share is that of the "
    "variance of all effects in the rows fitted to. Columns without a line have no effect."
)
BY_STATIC = (
    ' The coefficient of a term "by" a static column is what one more of the static column adds to '
    "the coefficient of the term."
)


def effect_kinds(arguments: Arguments, data: FittedData) -> dict[Any, tuple[str, ...]]:
    """Kinds of effects by column from the argument `effects`; dummies inherit from their column.

    Raises if the argument is not legal, or names a column that is not known ahead.
    """
    layout, ignored = data.layout, data.layout.ignored
    known = [*layout.frame_names(data.known_ahead), *ignored]
    kinds = check_effects(arguments.effects, [*data.given_columns, *ignored], known)
    columns = [name for name in kinds if name not in ignored]
    return {dummy: kinds[name] for name in columns for dummy in layout.dummy_names([name])}


@dataclass(frozen=True, eq=False)
class ColumnState(SeriesArrays):
    """State of the regression after the last rows of S series.

    Attributes
    ----------
    memory : ColumnMemory
        Last values and moving averages of the columns.
    centre : ndarray of shape (S, p)
        Moving average of the columns of the design matrix.
    unit : integer ndarray of shape (S,)
        Position of the series in the fit; -1 for a new series, which has mean coefficients given
        its static columns.
    size : ndarray of shape (S, C)
        Mean absolute change of each target.
    tail : ndarray of shape (S, W, q)
        Last rows of the columns with effects that are not known ahead.
    shares : ndarray of shape (S, W, C, m)
        Effects on the last rows by part, see `FittedColumns.part_columns`; NaN if the column is
        missing.
    static : ndarray of shape (S, n)
        Static columns; NaN if missing.
    """

    memory: ColumnMemory
    centre: np.ndarray
    unit: np.ndarray
    size: np.ndarray
    tail: np.ndarray
    shares: np.ndarray
    static: np.ndarray


@dataclass(frozen=True, eq=False)
class FittedColumns:
    """Regression on columns of a fitted forecaster.

    `size`, shape (S, C), is the mean absolute change of each target of the series fitted to.
    `quantiles`, shape (k, 21), are those of each column in these rows, from minimum to maximum.
    """

    effects: ColumnEffects
    size: np.ndarray
    data: FittedData
    season_length: int
    quantiles: np.ndarray

    @classmethod
    def of(
        cls,
        panel: Panel,
        data: FittedData,
        season_length: int,
        kinds: Mapping[Any, Sequence[str]],
        *,
        factors: bool = False,
    ) -> FittedColumns:
        """Fit effects of the columns of a panel on its targets; multiplicative if `factors`."""
        derived = dict.fromkeys([*data.calendar_columns, *data.holiday_columns], ("calendar",))
        # A holiday has too few days to estimate an effect for each hour.
        derived |= dict.fromkeys(data.holidays.common if data.holidays else (), ("holiday",))
        left_out = np.array(["none" in kinds.get(name, ()) for name in data.static], bool)
        effects = fit_effects(
            [panel.series(i) for i in range(panel.n_series)],
            split(panel, panel.exog),
            split(panel, phases_of(panel.times, data)),
            data.exog_names,
            [name in data.known_ahead for name in data.exog_names],
            season_length,
            steps_per_day(data),
            {**derived, **kinds},
            factors=factors,
            static=np.where(left_out, np.nan, static_values(panel, data.static)),
        )
        observed = [column[np.isfinite(column)] for column in panel.exog.T]
        quantiles = np.zeros((len(observed), len(PROBABILITIES)))
        for number, rows in enumerate(observed):
            if len(rows):
                quantiles[number] = np.quantile(rows, PROBABILITIES)
        return cls(effects, mean_changes(panel), data, season_length, quantiles)

    @property
    def later(self) -> list[int]:
        """Positions of the columns that have effects and are not known ahead."""
        return columns_later(self.effects.terms, self.data)

    def coefficients(self, state: ColumnState) -> np.ndarray:
        """Coefficients of each series, shape (S, C, p); new series have mean coefficients."""
        n_series, n_targets = self.size.shape
        known = self.effects.coefficient.reshape(n_series, n_targets, -1)
        if (panel := self.effects.panel) is None:
            fitted, unit = self.coefficient_units(self.size), self.coefficient_units(state.size)
            mean = (known / fitted[..., None]).mean(0) * unit[..., None]
        else:
            unit = self.coefficient_units(state.size)
            mean = panel.centres(state.static)[:, None] * unit[..., None]
        return np.where((state.unit < 0)[:, None, None], mean, known[state.unit])

    def coefficient_units(self, size: np.ndarray) -> np.ndarray:
        """Units of the mean coefficients, shape (S, C), given the mean changes of the series."""
        return size if self.effects.relative else np.ones_like(size)

    def begin(self, panel: Panel) -> ColumnState:
        """State before the first rows of a panel's series."""
        first = np.stack([first_values(rows) for rows in split(panel, panel.exog)])
        unit = self.data.ids.get_indexer(panel.ids)
        if len(self.data.ids) == 1:
            unit = np.zeros_like(unit)  # coefficients of a single series apply to any series
        memory = ColumnMemory.before(first, self.effects.n_decays)
        columns = len(self.effects.location)
        centre = np.full((panel.n_series, columns), np.nan)
        window = window_rows(self.season_length)
        tail = np.repeat(first[:, None, self.later], window, 1)
        size = mean_changes(panel)
        shares = np.zeros((*tail.shape[:2], size.shape[1], len(self.part_columns)))
        static = static_values(panel, self.data.static)
        return ColumnState(memory, centre, unit, size, tail, shares, static)

    def advance(self, state: ColumnState, panel: Panel) -> tuple[Panel, ColumnState]:
        """Residual panel without the effects of its columns, and the state after it."""
        coefficients = self.coefficients(state)
        window = state.tail.shape[1]
        shares, recents, averages, centres, tails, last_shares = [], [], [], [], [], []
        parts = zip(split(panel, panel.exog), self.along(state, panel), strict=True)
        for i, (exog, (matrix, centre, recent, average)) in enumerate(parts):
            shares.append(matrix @ coefficients[i].T)
            by_part = self.split_shares(matrix[-window:], coefficients[i])
            last_shares.append(np.concatenate([state.shares[i], by_part])[-window:])
            recents.append(recent)
            averages.append(average)
            centres.append(centre[-1])
            tails.append(np.concatenate([state.tail[i], exog[:, self.later]])[-window:])
        share = np.concatenate(shares)
        memory = ColumnMemory(np.stack(recents), np.stack(averages))
        after = replace(
            state, memory=memory, centre=np.stack(centres), tail=np.stack(tails),
            shares=np.stack(last_shares),
        )  # fmt: skip
        left = replace(panel, values=self.effects.without(panel.values, share))
        return left, after

    def along(
        self, state: ColumnState, panel: Panel
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """Iterate over the series of a panel after `state`.

        Yields the design matrix, shape (T, p); its moving average before each row and after the
        last, (T + 1, p); and the last values and moving averages of the columns.
        """
        phases = phases_of(panel.times, self.data)
        parts = zip(split(panel, panel.exog), split(panel, phases), strict=True)
        for i, (exog, place) in enumerate(parts):
            matrix, recent, average = self.effects.columns(exog, place, state.memory, i)
            centre = np.where(np.isnan(state.centre[i]), matrix[0], state.centre[i])[None]
            running = moving_averages(matrix, CENTRE_DECAY, state.centre[i])
            yield matrix, np.concatenate([centre, running]), recent, average

    def ahead(
        self, state: ColumnState, times: np.ndarray, exog: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Design matrix ahead, shape (S, h, p), and effects, (S, h, C).

        `exog`, shape (S, h, k), are all columns ahead.
        """
        used = sorted({term.column for term in self.effects.terms if term.column >= 0})
        absent = [self.data.exog_names[i] for i in used if np.isnan(exog[..., i]).any()]
        if absent:
            raise ValueError(
                f"forecasts need the values of columns with effects in all rows ahead; the columns "
                f"{quote(absent)} have missing ones. Fill them in"
            )
        phases = phases_of(times, self.data)
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is refused below
            matrices = [
                self.effects.columns(rows, place, state.memory, i)[0]
                for i, (rows, place) in enumerate(zip(exog, phases, strict=True))
            ]
        matrix = np.stack(matrices)
        if np.isnan(state.memory.recent).any():
            # The lag of a missing value is replaced by its mean, which is 0 in scaled columns.
            matrix = np.where(np.isnan(matrix), 0.0, matrix)
        if not (np.abs(matrix) < LARGEST_AHEAD).all():
            raise ValueError(
                "columns ahead must be of a size whose effects are finite; these overflow at "
                f"{np.abs(exog).max():g}. Correct X_future"
            )
        shares = np.einsum("shp,scp->shc", matrix, self.coefficients(state))
        return matrix, self.clipped(shares)

    def clipped(self, shares: np.ndarray) -> np.ndarray:
        """Clip logarithms of factors ahead, which overflow far from the fitted columns."""
        if self.effects.logarithms:
            return np.clip(shares, -LARGEST_LOG, LARGEST_LOG)
        return shares

    def exog_ahead(self, state: ColumnState, h: int, future: np.ndarray | None) -> np.ndarray:
        """Columns ahead, shape (S, h, k); columns not known ahead keep their last value."""
        names = self.data.exog_names
        exog = np.repeat(state.memory.recent[:, -1:], h, 1)
        if future is not None:
            exog[..., [names.index(name) for name in self.data.known_ahead]] = future
        return exog

    @property
    def part_columns(self) -> list[int]:
        """Positions of the columns with effects, -1 for the calendar, in the order of terms."""
        return list(dict.fromkeys(term.column for term in self.effects.terms))

    @property
    def part_names(self) -> list[str]:
        """Names of the regression's parts, in the order of `part_columns`."""
        names = [str(name) for name in self.data.exog_names]
        names = [f"{name} (column)" if OTHER_PARTS.fullmatch(name) else name for name in names]
        names.append("calendar")  # at position -1
        return [names[column] for column in self.part_columns]

    @property
    def members(self) -> np.ndarray:
        """Indicators of the columns of the design matrix in each part, shape (m, p)."""
        owners = np.repeat([term.column for term in self.effects.terms], self.effects.widths)
        return np.array(self.part_columns, int)[:, None] == owners

    def split_shares(self, matrix: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Effects by part, shape (T, C, m), of rows (T, p) with coefficients (C, p)."""
        shares = [matrix[:, part] @ coefficients[:, part].T for part in self.members]
        return np.stack(shares, -1) if shares else np.empty((len(matrix), len(coefficients), 0))

    def contributions(
        self, state: ColumnState, times: np.ndarray, exog: np.ndarray, forecast: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Effects on a forecast by part, shape (S, h, C, m), and their standard errors.

        The total effect of factors is divided among them in proportion to their logarithms.
        """
        matrix, shares = self.ahead(state, times, exog)
        coefficients, covariances = self.coefficients(state), self.covariances(state)
        by_part = np.stack(
            [self.split_shares(*pair) for pair in zip(matrix, coefficients, strict=True)]
        )
        ratio = self.effects.ratio(forecast, shares)[..., None]
        deviations = np.empty_like(by_part)
        for number, member in enumerate(self.members):
            rows, covariance = matrix[..., member], covariances[..., member, :][..., member]
            variance = np.einsum("shp,scpq,shq->shc", rows, covariance, rows, optimize=True)
            deviations[..., number] = np.sqrt(np.maximum(variance, 0.0))
        return by_part * ratio, deviations * np.abs(ratio)

    def covariances(self, state: ColumnState) -> np.ndarray:
        """Covariances of the coefficients of each series, shape (S, C, p, p)."""
        n_series, n_targets = self.size.shape
        n_columns = len(self.effects.location)
        covariance = self.effects.covariance.reshape(n_series, n_targets, n_columns, n_columns)
        unit = self.coefficient_units(state.size)[..., None, None] ** 2
        if (panel := self.effects.panel) is None:
            fitted = self.coefficient_units(self.size)[..., None, None] ** 2
            mean = (covariance / fitted).mean(0) * unit
        else:
            apart = np.diag(panel.spread)
            mean = (panel.covariances(state.static) + apart)[:, None] * unit
        return np.where((state.unit < 0)[:, None, None, None], mean, covariance[state.unit])

    def variances(self, state: ColumnState, matrix: np.ndarray) -> np.ndarray:
        """Variances of forecasts by the errors of the coefficients, shape (S, h, C)."""
        apart = matrix - state.centre[:, None]
        covariances = self.covariances(state)
        variance = np.einsum("shp,scpq,shq->shc", apart, covariances, apart, optimize=True)
        return np.maximum(variance, 0.0)  # negative by rounding alone

    def widening(self, state: ColumnState) -> np.ndarray:
        """Factors of the widths of intervals, shape (S, C)."""
        factor = self.effects.widening.reshape(self.size.shape)
        return np.where((state.unit < 0)[:, None], factor.mean(0), factor[state.unit])

    def table(self) -> pd.DataFrame:
        """Table of terms: mean coefficients and standard errors over series, and variance shares.

        Terms with several columns in the design matrix have NaN coefficients. The share is the
        variance of a term over the variance of all terms in the rows fitted to.
        """
        effects = self.effects
        slopes = effects.slopes()
        errors = np.sqrt(np.einsum("upp->up", effects.covariance)) / effects.scale
        widths = np.array(effects.widths, int)
        place = widths.cumsum() - widths
        single = widths == 1
        coef, error = np.full((2, len(widths)), np.nan)
        coef[single] = slopes.mean(0)[place[single]]
        error[single] = errors.mean(0)[place[single]]
        labels = [term.label(self.data.exog_names) for term in effects.terms]
        table = pd.DataFrame(
            {
                "effect of": labels,
                "columns": widths,
                "coef": coef,
                "std err": error,
                "share": effects.share,
            }
        )
        if effects.panel is None:
            return table
        return pd.concat([table, self.static_table(effects.panel, labels)], ignore_index=True)

    def static_table(self, panel: PanelPrior, labels: Sequence[str]) -> pd.DataFrame:
        """Effects of static columns on coefficients, as in `table` but without shares."""
        widths = panel.widths[[term for _, term in panel.products]]
        unit = self.coefficient_units(self.size).mean()
        place = panel.widths.sum() + widths.cumsum() - widths
        first = (panel.widths.cumsum() - panel.widths)[[term for _, term in panel.products]]
        static = [number for number, _ in panel.products]
        over = np.where(widths == 1, self.effects.scale[first] * panel.scale[static], np.nan) / unit
        return pd.DataFrame(
            {
                "effect of": [f"{labels[term]} by {self.data.static[number]}"
                              for number, term in panel.products],
                "columns": widths,
                "coef": panel.coefficient[place] / over,
                "std err": np.sqrt(panel.covariance[place, place]) / over,
            }
        )  # fmt: skip

    @property
    def note(self) -> str:
        """Explanation of `table`."""
        long = self.effects.long
        errors = "autoregressions of order one" if long else "the structural models"
        return EFFECTS.format(errors=errors) + BY_STATIC * (self.effects.panel is not None)

    def to_file(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """JSON values and arrays of a file; `from_file` is the inverse."""
        effects = self.effects
        terms = [{**asdict(term), "knots": list(term.knots)} for term in effects.terms]
        header: dict[str, Any] = {"terms": terms, "alike": effects.alike}
        arrays = {f"columns.{name}": getattr(effects, name) for name in EFFECT_ARRAYS}
        arrays |= {"columns.size": self.size, "columns.quantiles": self.quantiles}
        if (panel := effects.panel) is not None:
            products = [list(product) for product in panel.products]
            header["panel"] = {"products": products}
            arrays |= {f"columns.panel.{name}": getattr(panel, name) for name in PANEL_ARRAYS}
        return header, arrays

    @classmethod
    def from_file(
        cls,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        data: FittedData,
        season_length: int,
    ) -> FittedColumns:
        """Read what `to_file` wrote; `file_shapes` gives the shapes of the arrays."""
        for name in file_shapes(header, data, season_length):
            array = arrays[name]
            wrong = np.isinf(array) if name in MAY_LACK else ~np.isfinite(array)
            if wrong.any():
                raise refuse(f"the array {name!r}", "finite numbers", array)
        positive = [f"columns.{name}" for name in ("scale", "widening", "size", "changes")]
        for name in positive + ["columns.panel.scale"] * ("panel" in header):
            if (arrays[name] <= 0).any():
                raise refuse(f"the array {name!r}", "positive", arrays[name])
        unit = arrays["columns.unit"]
        if ((unit < -1) | (unit >= len(data.ids))).any():
            raise refuse("the array 'columns.unit'", "numbers of series", unit)
        terms, panel = read_terms(header, data), None
        if products := read_products(header, data):
            of_panel = {name: arrays[f"columns.panel.{name}"] for name in PANEL_ARRAYS}
            panel = PanelPrior(widths_of(terms), products, **of_panel)
        of_effects = {name: arrays[f"columns.{name}"] for name in EFFECT_ARRAYS}
        effects = ColumnEffects(terms=terms, alike=header["alike"], panel=panel, **of_effects)
        size, quantiles = arrays["columns.size"], arrays["columns.quantiles"]
        return cls(effects, size, data, season_length, quantiles)


def effect_section(effects: pd.DataFrame | None) -> list[str]:
    """Lines of a summary on the effects of columns; empty without columns."""
    if effects is None:
        return []
    title = section("Effects of columns and the calendar")
    if effects.empty:
        return [title, "none: no column tells more than the past of the series"]
    text = effects.to_string(index=False, na_rep="", float_format=lambda value: f"{value:.4g}")
    return [title, text]


TERM: dict[str, Kind] = {
    "column": integer(-1),
    "lag": integer(0, LONGEST_LAG),
    "decay": real,
    "knots": listed(real),
    "cycle": one_of(*CYCLES),
}


def read_terms(header: dict[str, Any], data: FittedData) -> tuple[Term, ...]:
    """Read the terms of a regression; raises if they are no terms of the columns of the data."""
    listed(record(TERM))(header["terms"], "fitted.terms")
    terms = tuple(Term(**{**term, "knots": tuple(term["knots"])}) for term in header["terms"])
    for term in terms:
        knots = np.array(term.knots)
        legal = (
            term.column < len(data.exog_names)
            and (term.column >= 0 or term == Term(-1, cycle=term.cycle))
            and (term.column >= 0 or term.cycle != "always")
            and 0 <= term.decay < 1
            and not (term.decay and term.lag)
            and np.isfinite(knots).all()
            and len(knots) != 2
            and (np.diff(knots) > 0).all()
        )
        if not legal:
            required = f"terms of the columns {quote(list(data.exog_names))}"
            raise refuse("fitted.terms", required, header["terms"])
    return terms


# Fields of a regression in a file.
REGRESSION: dict[str, Kind] = {
    "terms": listed(anything),
    "alike": one_of("changes", "units", "logarithms"),
    "panel": by_name(anything),
}
EFFECT_ARRAYS = ("location", "scale", "coefficient", "covariance", "widening", "share")
PANEL_ARRAYS = ("location", "scale", "coefficient", "covariance", "spread")
PANEL: dict[str, Kind] = {"products": listed(listed(integer(0)))}


def read_products(header: dict[str, Any], data: FittedData) -> tuple[Product, ...]:
    """Read the products of static columns with terms; none without a prior of the panel."""
    if "panel" not in header:
        return ()
    record(PANEL)(header["panel"], "fitted.panel")
    pairs = header["panel"]["products"]
    legal = {(i, j) for i in range(len(data.static)) for j in range(len(header["terms"]))}
    if not pairs or len({*map(tuple, pairs)}) < len(pairs) or not {*map(tuple, pairs)} <= legal:
        required = f"different pairs of the static columns {data.static} and the terms"
        raise refuse("fitted.panel.products", required, pairs)
    return tuple(Product(*pair) for pair in pairs)


def columns_later(terms: Sequence[Term], data: FittedData) -> list[int]:
    """Positions of the columns that are read by terms and not known ahead."""
    used = {term.column for term in terms if term.column >= 0}
    return sorted(column for column in used if data.exog_names[column] not in data.known_ahead)


def file_shapes(
    header: dict[str, Any], data: FittedData, season_length: int
) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Shapes of the arrays of a regression and of its state in a file."""
    terms = read_terms(header, data)
    n_columns, k = int(sum(widths_of(terms))), len(data.exog_names)
    n_series, n_targets = len(data.ids), data.n_targets
    later, n_parts = columns_later(terms, data), len({term.column for term in terms})
    shapes = {
        "location": (n_columns,),
        "scale": (n_columns,),
        "coefficient": (n_series * n_targets, n_columns),
        "covariance": (n_series * n_targets, n_columns, n_columns),
        "widening": (n_series * n_targets,),
        "share": (len(terms),),
        "size": (n_series, n_targets),
        "quantiles": (k, len(PROBABILITIES)),
        "recent": (n_series, LONGEST_LAG, k),
        "averages": (n_series, len(decays_of(terms)), k),
        "centre": (n_series, n_columns),
        "changes": (n_series, n_targets),
        "tail": (n_series, window_rows(season_length), len(later)),
        "shares": (n_series, window_rows(season_length), n_targets, n_parts),
    }
    named = {f"columns.{name}": ("float64", shape) for name, shape in shapes.items()}
    if products := read_products(header, data):
        n_static = (len(data.static),)
        n_all = n_columns + int(widths_of(terms)[[term for _, term in products]].sum())
        of_panel = (n_static, n_static, (n_all,), (n_all, n_all), (n_columns,))
        for name, shape in zip(PANEL_ARRAYS, of_panel, strict=True):
            named[f"columns.panel.{name}"] = ("float64", shape)
    return named | {"columns.unit": ("int64", (n_series,))}


def state_to_file(state: ColumnState) -> dict[str, np.ndarray]:
    """Arrays of a file; `state_from_file` is the inverse."""
    return {
        "columns.recent": state.memory.recent,
        "columns.averages": state.memory.averages,
        "columns.centre": state.centre,
        "columns.unit": state.unit,
        "columns.changes": state.size,
        "columns.tail": state.tail,
        "columns.shares": state.shares,
    }


def state_from_file(arrays: dict[str, np.ndarray], data: FittedData) -> ColumnState:
    """Read the state that `state_to_file` wrote; `data` has the static columns."""
    return ColumnState(
        memory=ColumnMemory(arrays["columns.recent"], arrays["columns.averages"]),
        centre=arrays["columns.centre"],
        unit=arrays["columns.unit"],
        size=arrays["columns.changes"],
        tail=arrays["columns.tail"],
        shares=arrays["columns.shares"],
        static=data.static_values,
    )


def split(panel: Panel, rows: np.ndarray) -> list[np.ndarray]:
    """Split rows, shape (N, ...), by series."""
    return np.split(rows, panel.indptr[1:-1])


def mean_changes(panel: Panel) -> np.ndarray:
    """Mean absolute change of each target, shape (S, C); 1 if it is constant."""
    sizes = np.stack([mean_change(panel.series(i)) for i in range(panel.n_series)])
    return np.where(sizes > 0, sizes, 1.0)


def steps_per_day(data: FittedData) -> float:
    """Number of rows in a day; 0 without dates."""
    timeless = data.layout.time_kind == "integer" or data.layout.irregular
    return 0.0 if timeless else 1 / step_days(data.layout)


def phases_of(times: np.ndarray, data: FittedData) -> np.ndarray:
    """Elapsed fractions of the day, the week and the year, shape (..., 3); 0 without dates."""
    if data.layout.time_kind == "integer":
        return np.zeros((*times.shape, len(PHASES)))
    return calendar_phases(times, PHASES, data.layout)
