"""Effects of columns on series: term selection by evidence, and shrinkage estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tsrnn.data import quote, warn_user
from tsrnn.prior._panel_prior import PanelPrior, Product, by_static, standardise, static_scaling
from tsrnn.prior._regression import (
    FIRST_ROWS,
    Moments,
    Posterior,
    autoregressive_moments,
    averaged,
    likeliest,
    log_evidence,
    posterior,
    shared,
    structural_moments,
)
from tsrnn.prior._structural import evenly, mean_change
from tsrnn.prior._terms import (
    LONGEST_LAG,
    ColumnMemory,
    Term,
    decays_of,
    design,
    first_values,
    widths_of,
)

# Prior strengths of a coefficient in rows; an infinite one leaves the term out.
STRENGTHS = (0.1, 1.0, 10.0, 100.0, np.inf)
START = 1.0
# Factors of the strengths by term with which series deviate from the panel mean.
SPREADS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, np.inf)
SEARCH_SPREADS = (1.0, 10.0, np.inf)  # in the search for terms: more select the same terms slower
LONG = 1500  # rows beyond which errors are autoregressions, whose moments cost three products
FEWEST_VALUES = 10  # distinct values of a column with a curved effect
FEWEST_CURVED, FEWEST_LAGGED = 40, 24  # rows of series with curved or lagged effects
ROWS_PER_LAG = 4  # further rows for each lag
FEWEST_YEARS, FEWEST_WEEKS = 1.5, 3  # of data for a season of the year, or of the week by hours
YEARS_ALONE = 2  # the same for the year in data without columns
DAYS_IN_YEAR = 365
SOME_DAYS = 0.9  # rows a day that tell daily data from working days
CURVE_KNOTS = np.array([0.05, 0.275, 0.5, 0.725, 0.95])
FINE_KNOTS = np.array([0.02, 0.15, 0.35, 0.65, 0.85, 0.98])  # for long series
DECAYS = (0.6, 0.9)
HOURLY_DECAYS = (0.75, 0.96)  # per hour: buildings and habits react to the weather of a day
# Log prior odds against a term that the user did not name. Lags are many and correlated, so that
# wrong ones are easily selected: on development series 6 kept the right ones only.
ODDS_CURVED, ODDS_LAGGED = 3.0, 6.0
# Log prior odds against a dependence on static columns. Without them, 5 of 20 panels with
# irrelevant static columns had a product.
ODDS_STATIC = 1.5
# Largest share of a column's variance, unexplained by neighbouring rows, with which missing values
# are interpolated. Of 0, 0.1, 0.3 and 1, 0.3 forecast best on 26 series with gaps.
MOST_UNPREDICTED = 0.3
LEAST_DEVIATION = 1e-9  # standard deviation below which a static column is constant in a sample
LEAST_OBSERVED = 1 / 3  # share of the rows with a target at which all columns are observed
MOST_TERMS = 8  # added to the linear terms of short series
MOST_SEARCHED = 30  # columns of short series whose terms are searched
MOST_COLUMNS = 480  # of the design matrix of a long series
SELECTING_SERIES, LONG_SERIES = 40, 4  # series that terms are selected on
SELECTING_MODELS = 12  # likeliest structural models that terms are selected under
POOLED_SERIES = 200  # series that the panel prior is estimated from
MOST_STATIC = 12  # static columns whose products are searched
SERIES_AT_ONCE = 50  # series whose moments are in memory
SEASONS_OF_LONG = ("hour", "hour of week", "weekday")
KINDS = ("linear", "smooth", "lagged", "none")
CALENDAR_KINDS = {"calendar", "holiday"}  # columns computed from dates: linear, not forced
SMALL_SHARE = 1e-9  # |s| below which (exp(s) - 1) / s is 1


class Candidate(NamedTuple):
    """Candidate term of the regression."""

    term: Term
    odds: float = 0.0  # log prior odds against the term
    base: bool = False  # included at the start of the search
    forced: bool = False  # never dropped


@dataclass(frozen=True, eq=False)
class ColumnEffects:
    """Regression of U units on columns, where a unit is one target of one series.

    Coefficients are those of the scaled columns, in the units of the target or of its logarithm.
    """

    terms: tuple[Term, ...]
    # location, scale: in-sample mean and standard deviation of each column of the design matrix
    location: np.ndarray  # (p,)
    scale: np.ndarray  # (p,)
    # scale on which series have similar effects: "changes" for multiples of their mean change,
    # "units" of the data, or "logarithms" for factors
    alike: str
    coefficient: np.ndarray  # (U, p)
    covariance: np.ndarray  # (U, p, p)
    # (U,), factor of the interval widths for the degrees of freedom used by the coefficients
    widening: np.ndarray
    # (n_terms,), share of each term in the sum of the in-sample variances of the terms
    share: np.ndarray
    # coefficients given static columns; None if they do not depend on these
    panel: PanelPrior | None = None

    @property
    def logarithms(self) -> bool:
        """True if effects are factors and the regression is on logarithms."""
        return self.alike == "logarithms"

    @property
    def relative(self) -> bool:
        """True if series have equal effects in multiples of their mean changes."""
        return self.alike == "changes"

    def slopes(self) -> np.ndarray:
        """Coefficients (U, p) of the unscaled columns."""
        return self.coefficient / self.scale

    @property
    def long(self) -> bool:
        """True if errors are autoregressions and seasons are terms."""
        return any(term.cycle in SEASONS_OF_LONG for term in self.terms)

    @property
    def widths(self) -> list[int]:
        """Number of columns of the design matrix for each term."""
        return widths_of(self.terms).tolist()

    @property
    def n_decays(self) -> int:
        """Number of moving averages of each column."""
        return len(decays_of(self.terms))

    def columns(
        self, exog: np.ndarray, phases: np.ndarray, memory: ColumnMemory, series: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scaled design matrix (T, p) at rows of a series, and its memory after these rows."""
        matrix, recent, averages = design(
            self.terms, exog, phases, memory.recent[series], memory.averages[series]
        )
        return (matrix - self.location) / self.scale, recent, averages

    def without(self, values: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Remove the shares of the columns, which are log factors if `logarithms`."""
        return values * np.exp(-shares) if self.logarithms else values - shares

    def restored(self, values: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Inverse of `without`."""
        return values * np.exp(shares) if self.logarithms else values + shares

    def ratio(self, values: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Additive effects over the shares: 1 unless `logarithms`."""
        if not self.logarithms:
            return np.ones_like(shares)
        # (exp(s) - 1) / s tends to 1 near zero.
        small = np.abs(shares) < SMALL_SHARE
        return np.where(small, values, values * np.expm1(shares) / np.where(small, 1.0, shares))


def check_effects(
    effects: Any, names: Sequence[Any], known_ahead: Sequence[Any]
) -> dict[Any, tuple[str, ...]]:
    """Validate the argument `effects` and return the kinds of effects by column.

    `effects` maps columns to "linear", "smooth", "lagged", "none", or a list of these.
    """
    if effects is None:
        return {}
    legal = "effects must map columns to " + ", ".join(map(repr, KINDS)) + " or a list of these"
    if not isinstance(effects, Mapping):
        raise TypeError(f"{legal}; got {effects!r}")
    kinds: dict[Any, tuple[str, ...]] = {}
    for name, kind in effects.items():
        if name not in names:
            raise ValueError(
                f"effects must name exogenous columns of the data, which are {list(names)}; got "
                f"{quote(name)}"
            )
        if not isinstance(kind, str | Sequence):
            raise TypeError(f"{legal}; got {kind!r} for {quote(name)}")
        listed = (kind,) if isinstance(kind, str) else tuple(kind)
        wrong = [each for each in listed if each not in KINDS]
        if wrong or not listed or ("none" in listed and len(listed) > 1):
            raise ValueError(f"{legal}; got {kind!r} for {quote(name)}")
        if name not in known_ahead and not {*listed} <= {"lagged", "none"}:
            raise ValueError(
                f'effects of a column that is not known ahead are those of its past, "lagged" or '
                f'"none"; got {kind!r} for {quote(name)}. Name it in known_ahead, or change its '
                "effect"
            )
        kinds[name] = listed
    return kinds


def fit_effects(
    values: Sequence[np.ndarray],
    exog: Sequence[np.ndarray],
    phases: Sequence[np.ndarray],
    names: Sequence[Any],
    known_ahead: Sequence[bool],
    season_length: int,
    steps_per_day: float = 0.0,
    effects: Mapping[Any, Sequence[str]] | None = None,
    *,
    factors: bool = False,
    static: np.ndarray | None = None,
) -> ColumnEffects:
    """Select terms and estimate their coefficients.

    Series have values (T, C), columns (T, k) and phases (T, 3): elapsed shares of the day, week and
    year, zeros for rows without dates. NaN marks missing values. Smooth columns are interpolated
    for estimation; otherwise rows in which a term needs a missing value are dropped. If fewer than
    a third of the rows remained, the columns with most missing values are dropped with a warning.
    Columns that are not known ahead have lagged effects only. `steps_per_day` is 1 / 7 for weeks
    and 0 without dates. `effects`, kinds by column, are selected by evidence by default; `factors`
    forces effects of positive values to be factors. Coefficients may depend on the static columns
    (S, n), except for long series.
    """
    exog = interpolated(exog)
    longest = max(map(len, values))
    long = longest > LONG or steps_per_day > 1
    sample = replace(Sample.of(values, exog, phases, season_length, long), factors=factors)
    kinds_of = effects or {}
    rows_of = {
        number: sample.column(number)
        for number, name in enumerate(names)
        if "none" not in kinds_of.get(name, ())
    }
    usable = [
        number
        for number, rows in rows_of.items()
        # Columns without any value are kept here, so that the warning below names them.
        if len(rows) or all(np.isnan(part[:, number]).all() for part in exog)
    ]
    rare = rarely_observed(values, exog, usable)
    if rare:
        warn_user(
            f"the columns {[names[i] for i in rare]} are missing in too many rows: with them, less "
            "than a third of the observed rows would count. They have no effects. Fill them in, or "
            "leave them out"
        )
    columns = [
        Column(
            number, rows_of[number], known_ahead[number], kinds_of.get(names[number], ()), longest
        )
        for number in usable
        if number not in rare
    ]
    candidates_of = long_candidates if long else short_candidates
    candidates = candidates_of(columns, longest, steps_per_day)
    terms, strength, scale = select_terms(candidates, sample)
    if static is None or long:  # long series are too few for a dependence on static columns
        static = np.empty((len(values), 0))
    return sample.estimate(terms, strength, scale, static)


def interpolated(exog: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Interpolate missing values of smooth columns (T, k) of each series."""
    filled = [rows.copy() for rows in exog]
    for column in range(exog[0].shape[1]):
        parts = [rows[:, column] for rows in exog]
        if not any(np.isnan(part).any() for part in parts):
            continue
        known = [part[np.isfinite(part)] for part in parts]
        # Error of interpolation at known values: the value less the mean of its neighbours.
        error = np.concatenate([part[1:-1] - (part[:-2] + part[2:]) / 2 for part in known])
        if not len(error):
            continue
        spread = np.concatenate([part - part.mean() for part in known if len(part)])
        if (error**2).mean() > MOST_UNPREDICTED * (spread**2).mean():
            continue
        for rows in filled:
            inside = np.flatnonzero(np.isfinite(rows[:, column]))
            if len(inside):
                between = np.arange(inside[0], inside[-1] + 1)
                rows[between, column] = np.interp(between, inside, rows[inside, column])
    return filled


def rarely_observed(
    values: Sequence[np.ndarray], exog: Sequence[np.ndarray], columns: Sequence[int]
) -> list[int]:
    """Columns to drop so that at least a third of the rows with a target have all others."""
    rows = np.concatenate([np.isfinite(series).any(1) for series in values])
    observed = np.isfinite(np.concatenate(exog))[rows]
    order = sorted(columns, key=lambda column: observed[:, column].sum())
    left_out: list[int] = []
    while observed[:, order].all(1).mean() < LEAST_OBSERVED:
        left_out.append(order.pop(0))
    return left_out


class Column(NamedTuple):
    """Exogenous column with the kinds of effects that the user named."""

    number: int
    values: np.ndarray
    known: bool
    kinds: Sequence[str]
    longest: int

    def allows(self, kind: str) -> bool:
        """Return True if the kind is named, or no kind is."""
        return not self.kinds or kind in self.kinds

    @property
    def is_curved(self) -> bool:
        """True if the effect may be curved."""
        enough = self.longest >= FEWEST_CURVED and len(np.unique(self.values)) >= FEWEST_VALUES
        return self.known and enough and self.allows("smooth")

    def knots(self, shares: np.ndarray) -> tuple[float, ...]:
        """Distinct quantiles of the column."""
        return tuple(np.unique(np.quantile(self.values, shares)).tolist())


def short_candidates(
    columns: Sequence[Column], longest: int, steps_per_day: float
) -> list[Candidate]:
    """Candidates for short series, whose structural models contain the season."""
    candidates = [term for column in columns for term in short_terms(column)]
    # The structural models of days have a week only, those of weeks 52 free effects: the year is a
    # term with six coefficients.
    if 0.1 < steps_per_day <= 1 and longest >= FEWEST_YEARS * DAYS_IN_YEAR * steps_per_day:
        candidates.append(Candidate(Term(-1, cycle="year"), ODDS_CURVED))
    return candidates


def year_is_a_season(n_rows: int, steps_per_day: float) -> bool:
    """Return True if the year may be a season of days or weeks without columns.

    The longest series must be short, and longer than two years, to distinguish a season from a
    trend. `steps_per_day` is as in `fit_effects`.
    """
    return 0.1 < steps_per_day <= 1 and YEARS_ALONE * DAYS_IN_YEAR * steps_per_day < n_rows <= LONG


def short_terms(column: Column) -> list[Candidate]:
    """Candidates of one column of short series."""
    number, named = column.number, bool(column.kinds)
    if CALENDAR_KINDS & {*column.kinds}:
        return [Candidate(Term(number), base=True)]
    candidates = []
    if column.known and (column.allows("linear") or column.allows("smooth")):
        candidates.append(Candidate(Term(number), base=True, forced=named))
    if column.is_curved:
        odds, knots = ODDS_CURVED * (not named), column.knots(CURVE_KNOTS)
        if len(knots) == len(CURVE_KNOTS):
            candidates.append(Candidate(Term(number, knots=knots), odds, named, named))
        if not named:
            middle = float(column.values.mean())
            candidates.append(Candidate(Term(number, knots=(middle,)), odds))
    if column.longest >= FEWEST_LAGGED and column.allows("lagged"):
        most = (column.longest - FEWEST_LAGGED) // ROWS_PER_LAG
        late = [Term(number, lag) for lag in range(1, min(LONGEST_LAG, most) + 1)]
        late += [Term(number, decay=decay) for decay in DECAYS]
        candidates += [Candidate(term, ODDS_CURVED if named else ODDS_LAGGED) for term in late]
    return candidates


def long_candidates(
    columns: Sequence[Column], longest: int, steps_per_day: float
) -> list[Candidate]:
    """Candidates for long series and hours, seasons included, up to `MOST_COLUMNS`."""
    hourly = steps_per_day > 1
    years = longest >= FEWEST_YEARS * DAYS_IN_YEAR * steps_per_day > 0
    terms = []
    if hourly:
        weeks = longest >= FEWEST_WEEKS * 7 * steps_per_day
        terms.append(Term(-1, cycle="hour of week" if weeks else "hour"))
    elif steps_per_day > SOME_DAYS:
        terms.append(Term(-1, cycle="weekday"))
    if years:
        terms.append(Term(-1, cycle="year"))
    if years and hourly:
        terms.append(Term(-1, cycle="year by hour"))
    # Decays of a step.
    decays = tuple(decay ** (24 / steps_per_day) for decay in HOURLY_DECAYS) if hourly else DECAYS
    # With very many columns, effects by the hour would leave no room for the last ones.
    n_by_hour = sum("calendar" not in column.kinds for column in columns)
    few = n_by_hour * widths_of([Term(0, cycle="by hour")])[0] <= MOST_COLUMNS / 2
    cycle = "by hour" if hourly and few else "always"
    of_columns = [long_terms(column, cycle, decays, years) for column in columns]
    candidates = [Candidate(term, base=True) for term in terms]
    # The likeliest terms of all columns come first.
    for stage in zip(*of_columns, strict=True):
        candidates += [candidate for part in stage for candidate in part]
    total = widths_of([candidate.term for candidate in candidates]).cumsum()
    return [
        candidate
        for candidate, n in zip(candidates, total, strict=True)
        if n <= MOST_COLUMNS or candidate.forced or candidate.term.is_plain
    ]


def long_terms(
    column: Column, cycle: str, decays: Sequence[float], years: bool
) -> tuple[list[Candidate], ...]:
    """Candidates of one column of long series, in four stages from the likeliest."""
    number, named = column.number, bool(column.kinds)
    if CALENDAR_KINDS & {*column.kinds}:
        varies = cycle if "holiday" in column.kinds else "always"
        return [Candidate(Term(number, cycle=varies), base=True)], [], [], []
    linear, curves, second, third = [], [], [], []
    knots = column.knots(FINE_KNOTS) if column.is_curved else ()
    curved = len(knots) > 2
    if column.known and (column.allows("linear") or column.allows("smooth")):
        linear.append(Candidate(Term(number, cycle=cycle), base=True, forced=named))
    if curved:
        smooth = Term(number, knots=knots, cycle=cycle)
        curves.append(Candidate(smooth, base=True, forced="smooth" in column.kinds))
        if years:
            second.append(Candidate(Term(number, cycle="by time of year"), base=True))
    if column.allows("lagged"):
        for decay in decays[::-1]:
            second.append(Candidate(Term(number, decay=decay, cycle=cycle), base=True))
            if curved:
                average = Term(number, knots=knots, decay=decay, cycle=cycle)
                third.append(Candidate(average, base=True))
    return linear, curves, second, third


@dataclass(frozen=True, eq=False)
class Sample:
    """Data for the estimation of effects, as in `fit_effects`.

    `size` is the mean absolute change of each unit, 1 for a constant, which has no effects.
    """

    values: Sequence[np.ndarray]
    exog: Sequence[np.ndarray]
    phases: Sequence[np.ndarray]
    season_length: int
    long: bool  # errors are autoregressions; else they follow the structural models
    size: np.ndarray
    varies: np.ndarray
    positive: bool  # all values are positive, so that logarithms are a scale
    factors: bool = False  # logarithms are the only scale

    @classmethod
    def of(
        cls,
        values: Sequence[np.ndarray],
        exog: Sequence[np.ndarray],
        phases: Sequence[np.ndarray],
        season_length: int,
        long: bool,
    ) -> Sample:
        """Sample of given rows."""
        size = np.concatenate([mean_change(rows) for rows in values])
        varies = size > 0
        size = np.where(varies, size, 1.0)
        positive = all((rows[np.isfinite(rows)] > 0).all() for rows in values)
        return cls(values, exog, phases, season_length, long, size, varies, positive)

    @property
    def n_targets(self) -> int:
        """Number of targets of a series."""
        return self.values[0].shape[1]

    @property
    def scales(self) -> list[str]:
        """Scales on which effects may be additive and similar over the series of a panel."""
        if self.factors:
            return ["logarithms"]
        of_data = ["changes"] if len(self.size) == 1 else ["changes", "units"]
        return [*of_data, "logarithms"] if self.positive else of_data

    def on_scales(self, rows: np.ndarray, unit: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows (C, T) of a unit on each scale, and the log Jacobians (C,).

        Densities on all scales refer to rows in multiples of the unit's mean change.
        """
        observed = np.flatnonzero(np.isfinite(rows))[FIRST_ROWS:]
        seen = len(observed)
        common = float(np.median(self.size))
        scaled = {"changes": rows / self.size[unit], "units": rows / common}
        logs = {"changes": 0.0, "units": seen * np.log(self.size[unit] / common)}
        if self.positive:
            scaled["logarithms"] = np.log(scaled["changes"])
            # The Jacobian 1 / y turns a density of logarithms into a density of the data.
            logs["logarithms"] = -scaled["logarithms"][observed].sum()
        return (
            np.stack([scaled[name] for name in self.scales]),
            np.array([logs[name] for name in self.scales]),
        )

    def unit_of(self, scale: int) -> np.ndarray:
        """Factors (U,) from coefficients on a scale to the units of the data; 0 for constants."""
        units = {
            "changes": self.size,
            "units": np.full(len(self.size), np.median(self.size)),
            "logarithms": np.ones(len(self.size)),
        }
        return self.varies * units[self.scales[scale]]

    def column(self, number: int) -> np.ndarray:
        """Observed values of a column; empty if it is constant within every series."""
        parts = [rows[:, number] for rows in self.exog]
        parts = [part[np.isfinite(part)] for part in parts]
        if all((part == part[:1]).all() for part in parts):
            return np.empty(0)
        return np.concatenate(parts)

    def designs(self, terms: Sequence[Term], series: Sequence[int]) -> list[np.ndarray]:
        """Design matrix (T, p) of each given series."""
        n_decays = len(decays_of(terms))
        matrices = []
        for number in series:
            first = ColumnMemory.before(first_values(self.exog[number])[None], n_decays)
            matrices.append(
                design(
                    terms, self.exog[number], self.phases[number], first.recent[0],
                    first.averages[0],
                )[0]
            )  # fmt: skip
        return matrices

    def moments(
        self,
        matrices: Sequence[np.ndarray],
        series: Sequence[int],
        models: np.ndarray | None = None,
    ) -> Moments:
        """Moments of the units of the given series on each scale, ordered by series and target."""
        targets, columns, jacobians = [], [], []
        for number, matrix in zip(series, matrices, strict=True):
            complete = np.isfinite(matrix).all(1)
            for target in range(self.n_targets):
                unit = number * self.n_targets + target
                observed = np.where(complete, self.values[number][:, target], np.nan)
                rows, jacobian = self.on_scales(observed, unit)
                targets.append(rows)
                columns.append(matrix.T)
                jacobians.append(jacobian)
        if self.long:
            return autoregressive_moments(targets, columns, np.array(jacobians))
        return structural_moments(targets, columns, np.array(jacobians), self.season_length, models)

    def estimate(
        self, terms: Sequence[Term], strength: np.ndarray, scale: int, static: np.ndarray
    ) -> ColumnEffects:
        """Estimate the coefficients of all units, shrunk towards the panel mean given `static`.

        `strength` has shape (p,), `static` shape (S, n).
        """
        n_series = len(self.values)
        matrices = self.designs(terms, range(n_series))
        location, spread = column_scaling(matrices)
        scaled = [(matrix - location) / spread for matrix in matrices]

        def moments_of_series(series: Sequence[int]) -> Moments:
            return self.moments([scaled[i] for i in series], series)

        n_units, n_columns = len(self.size), len(location)
        centre = np.zeros((n_units, n_columns))
        of_centre: np.ndarray = np.zeros((n_units, n_columns, n_columns))
        panel = None
        if n_units > 1 and terms:
            most = LONG_SERIES if self.long else POOLED_SERIES
            sample = evenly(n_series, most)
            of_units = static[sample].repeat(self.n_targets, 0)
            moments = moments_of_series(sample.tolist())
            panel, strength, scale = pool_panel(moments, terms, strength, scale, of_units)
            centre = panel.centres(static).repeat(self.n_targets, 0)
            of_centre = panel.covariances(static).repeat(self.n_targets, 0)
        at_once = 1 if self.long else SERIES_AT_ONCE
        results: list[Posterior] = []
        for start in range(0, n_series, at_once):
            part = range(start, min(start + at_once, n_series))
            units = slice(part.start * self.n_targets, part.stop * self.n_targets)
            around = moments_of_series(part).scale(scale).around(centre[units])
            results.append(posterior(around, strength))
        coefficient = centre + np.concatenate([result.coefficient for result in results])
        covariance = of_centre + np.concatenate([result.covariance for result in results])
        used = np.concatenate([result.used for result in results])
        rows = np.concatenate(
            [
                (np.isfinite(rows) & np.isfinite(matrix).all(1, keepdims=True)).sum(0)
                for rows, matrix in zip(self.values, scaled, strict=True)
            ]
        )
        if panel is not None and not panel.products:
            panel = None  # without products new series have the mean of the fitted ones
        elif panel is not None and self.scales[scale] == "units":
            panel = panel.in_units_of_data(float(np.median(self.size)))
        unit = self.unit_of(scale)
        return ColumnEffects(
            tuple(terms),
            location,
            spread,
            self.scales[scale],
            coefficient * unit[:, None],
            covariance * unit[:, None, None] ** 2,
            np.sqrt(np.maximum(rows, 1) / np.maximum(rows - used, np.maximum(rows, 1) / 2)),
            self.shares(terms, scaled, coefficient),
            panel,
        )

    def shares(
        self, terms: Sequence[Term], scaled: Sequence[np.ndarray], coefficient: np.ndarray
    ) -> np.ndarray:
        """Share (n_terms,) of each term in the sum of variances, summed over units."""
        ends = widths_of(terms).cumsum()
        by_series = coefficient.reshape(len(scaled), self.n_targets, -1)
        variances = np.zeros(len(terms))
        for matrix, weights in zip(scaled, by_series, strict=True):
            parts = zip(
                np.split(matrix, ends[:-1], 1), np.split(weights, ends[:-1], 1), strict=True
            )
            effects = [part @ weight.T for part, weight in parts]
            complete = [rows[np.isfinite(rows).all(1)] for rows in effects]
            variances += [rows.var(0).sum() if len(rows) else 0.0 for rows in complete]
        total = variances.sum()
        return variances / total if total > 0 else variances


def column_scaling(matrices: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of columns over series; 1 for constant columns."""
    rows = np.concatenate(matrices)
    location, spread = np.nanmean(rows, 0), np.nanstd(rows, 0)
    return location, np.where(spread > 1e-12 * np.abs(location), spread, 1.0)


def select_terms(
    candidates: Sequence[Candidate], sample: Sample
) -> tuple[list[Term], np.ndarray, int]:
    """Select terms by forward search: terms, strengths (p,) of their columns, index of the scale.

    The index refers to `Sample.scales`.
    """
    most = LONG_SERIES if sample.long else SELECTING_SERIES
    chosen = evenly(len(sample.values), most).tolist()
    if not sample.long:
        candidates = screen_columns(candidates, sample, chosen)
    if not candidates:
        return [], np.empty(0), 0
    terms = [candidate.term for candidate in candidates]
    if sample.long:
        search = Search(candidates, screening_moments(sample, terms, chosen, None), apart=True)
        search = search.with_models(2)
    else:
        models = select_noise_models(candidates, sample, chosen)
        search = Search(candidates, screening_moments(sample, terms, chosen, models))
    search.maximise()
    kept = [number for number in range(len(candidates)) if np.isfinite(search.strength[number])]
    kept_terms = [terms[number] for number in kept]
    strength = np.repeat(search.strength[kept], widths_of(kept_terms))
    return kept_terms, strength, search.scale


def select_noise_models(
    candidates: Sequence[Candidate], sample: Sample, series: Sequence[int]
) -> np.ndarray:
    """Likeliest structural models given the linear terms, with and without the calendar.

    Without the calendar, a moving level that follows the season is the likeliest model.
    """
    linear = [candidate for candidate in candidates if candidate.base]
    dates = [candidate for candidate in candidates if candidate.term.column < 0]
    groups = [linear]
    if dates:
        groups.append(linear + [candidate._replace(base=True) for candidate in dates])
    models = []
    for group in groups:
        terms = [candidate.term for candidate in group]
        search = Search(group, screening_moments(sample, terms, series, None))
        search.sweep(rounds=1)
        models.append(search.likeliest(SELECTING_MODELS))
    return np.unique(np.concatenate(models))


def screen_columns(
    candidates: Sequence[Candidate], sample: Sample, series: Sequence[int]
) -> Sequence[Candidate]:
    """Candidates of the `MOST_SEARCHED` columns with the largest evidence in single regressions.

    The time of the search is cubic in the number of columns.
    """
    first = {candidate.term.column: candidate for candidate in reversed(candidates)}
    first.pop(-1, None)
    if len(first) <= MOST_SEARCHED:
        return candidates
    moments = screening_moments(
        sample, [candidate.term for candidate in first.values()], series, None
    )
    alone = [
        averaged(log_evidence(moments.columns(np.array([place])), np.full(1, START))).sum(0).max()
        for place in range(len(first))
    ]
    numbers = np.array(list(first))
    likeliest = {-1, *numbers[np.argsort(alone)[-MOST_SEARCHED:]].tolist()}
    likeliest |= {number for number, candidate in first.items() if candidate.forced}
    return [candidate for candidate in candidates if candidate.term.column in likeliest]


def screening_moments(
    sample: Sample, terms: Sequence[Term], series: Sequence[int], models: np.ndarray | None
) -> Moments:
    """Moments of the scaled columns of terms, for their comparison on the same rows.

    A missing value of a column drops its row. Missing lags are set to their mean instead, because
    few rows have all lags.
    """
    matrices = sample.designs(terms, series)
    location, spread = column_scaling(matrices)
    late = np.repeat(np.array([term.lag > 0 for term in terms], bool), widths_of(terms))
    scaled = [(matrix - location) / spread for matrix in matrices]
    scaled = [np.where(late & np.isnan(matrix), 0.0, matrix) for matrix in scaled]
    return sample.moments(scaled, series, models)


def panel_evidence(moments: Moments, strength: np.ndarray) -> np.ndarray:
    """Log marginal likelihood (C,) on each scale of coefficients that vary around a panel mean.

    The strength of the deviations is averaged over; each unit has its likeliest noise model.
    """
    kept = np.flatnonzero(np.isfinite(strength))
    moments, strength = moments.columns(kept), strength[kept]
    spreads = np.multiply.outer(SEARCH_SPREADS, np.ones(len(kept)))
    alike = np.empty((len(moments.degrees), 0))
    centres = [by_static(units, alike, spreads) for units in likeliest(moments, strength)]
    return np.array([averaged(log_evidence(each, strength)).item() for each in centres])


class Search:
    """Search for the prior strength of each term, infinite to drop it, by evidence and odds."""

    def __init__(
        self, candidates: Sequence[Candidate], moments: Moments, *, apart: bool = False
    ) -> None:
        self.candidates, self.moments = candidates, moments
        # Long series estimate their coefficients without pooling.
        self.apart = apart or len(moments.degrees) == 1
        self.term_of = np.repeat(
            np.arange(len(candidates)), widths_of([candidate.term for candidate in candidates])
        )
        self.strength = np.array([START if candidate.base else np.inf for candidate in candidates])
        self.score, self.scale = self.judge(self.strength)

    def judge(self, strength: np.ndarray) -> tuple[float, int]:
        """Log evidence less the log prior odds against the terms, and the best scale."""
        columns = strength[self.term_of]
        if self.apart:
            by_scale = averaged(log_evidence(self.moments, columns)).sum(0)
        else:
            by_scale = panel_evidence(self.moments, columns)
        odds = sum(
            candidate.odds
            for candidate, value in zip(self.candidates, strength, strict=True)
            if np.isfinite(value)
        )
        return float(by_scale.max()) - odds, int(by_scale.argmax())

    def likeliest(self, n: int) -> np.ndarray:
        """Noise models with the n largest mean weights over units, on the best scale."""
        evidence = log_evidence(self.moments, self.strength[self.term_of])[:, self.scale]
        weights = np.exp(0.5 * (evidence - evidence.max(1, keepdims=True)))
        return np.sort(np.argsort(weights.mean(0))[-n:])

    def with_models(self, n: int) -> Search:
        """Search under the n likeliest noise models."""
        moments = self.moments.models(self.likeliest(n))
        return Search(self.candidates, moments, apart=self.apart)

    def maximise(self) -> None:
        """Add terms one by one, and optimise all strengths after each."""
        self.sweep()
        added = 0
        while added < MOST_TERMS and self.add_best():
            self.sweep(rounds=1)
            added += 1

    def try_strength(self, number: int, value: float) -> None:
        """Change the strength of a term if that improves the score."""
        if value == self.strength[number]:
            return
        trial = self.strength.copy()
        trial[number] = value
        score, scale = self.judge(trial)
        if score > self.score + 1e-9:  # rounding must not restart the sweeps
            self.strength, self.score, self.scale = trial, score, scale

    def sweep(self, rounds: int = 3) -> None:
        """Optimise the strengths of the included terms by coordinate search."""
        for _ in range(rounds):
            before = self.strength
            for number, candidate in enumerate(self.candidates):
                if not (candidate.base or np.isfinite(self.strength[number])):
                    continue
                for value in STRENGTHS:
                    if np.isfinite(value) or not candidate.forced:
                        self.try_strength(number, value)
            if self.strength is before:
                break

    def add_best(self) -> bool:
        """Add the term that improves the score most; return False if none does."""
        best, score, scale = None, self.score, self.scale
        for number in np.flatnonzero(~np.isfinite(self.strength)):
            trial = self.strength.copy()
            trial[number] = START
            trial_score, trial_scale = self.judge(trial)
            if trial_score > score:
                best, score, scale = trial, trial_score, trial_scale
        if best is None:
            return False
        self.strength, self.score, self.scale = best, score, scale
        return True


def pool_panel(
    moments: Moments, terms: Sequence[Term], strength: np.ndarray, scale: int, static: np.ndarray
) -> tuple[PanelPrior, np.ndarray, int]:
    """Panel prior given static columns (U, n), strengths (p,) of the shrinkage, and the scale.

    The argument `scale` is the best one without static columns.
    """
    scaling = static_scaling(static)
    standardised = standardise(static, *scaling)
    scale, products, common = select_products(moments, terms, strength, scale, standardised)
    units = likeliest(moments, strength)[scale]
    panel = PanelPrior(
        widths_of(terms), products, *scaling, common.coefficient[0], common.covariance[0],
        np.zeros(len(strength)),
    )  # fmt: skip
    # By term: series may share the coefficients of some terms and differ in others.
    around = units.around(panel.centres(static))
    strength = strength_by_term(around, panel.widths, STRENGTHS)
    # Variance for a unit with the mean information.
    spread = 1 / (strength * units.unit_information[:, 0].mean(0))
    return replace(panel, spread=spread), strength, scale


def strength_by_term(around: Moments, widths: np.ndarray, values: Sequence[float]) -> np.ndarray:
    """Strengths (p,) of the shrinkage, optimised term by term."""
    term_of = np.repeat(np.arange(len(widths)), widths)
    strength = np.full(len(term_of), START)
    for term in range(len(widths)):
        trials = [np.where(term_of == term, value, strength) for value in values]
        scores = [averaged(log_evidence(around, trial)).sum() for trial in trials]
        strength = trials[int(np.argmax(scores))]
    return strength


def select_products(
    moments: Moments, terms: Sequence[Term], strength: np.ndarray, scale: int, static: np.ndarray
) -> tuple[int, tuple[Product, ...], Posterior]:
    """Select products of terms with standardised static columns (U, n) by evidence.

    Coefficients vary around the panel mean, with strengths that are averaged over. Without this
    variation, any static column would explain the differences of a few units. Returns the best
    scale (the argument if no product is selected), the products, and the posterior of the panel
    means and of the coefficients of the products.
    """
    by_scale = likeliest(moments, strength)

    def panel_moments(numbers: np.ndarray, scale: int) -> Moments:
        units = by_scale[scale]
        centre = posterior(shared(units), strength).coefficient
        finite = STRENGTHS[:-1]  # products with the SPREADS must be defined
        apart = strength_by_term(units.around(centre), widths_of(terms), finite)
        return by_static(units, static[:, numbers], np.multiply.outer(SPREADS, apart))

    varying = np.flatnonzero(static.std(0) > LEAST_DEVIATION)
    without = scale, (), posterior(panel_moments(varying[:0], scale), strength)
    if not len(varying):
        return without
    odds = ODDS_STATIC + np.log(len(varying))  # static columns share the prior probability
    plain = [Candidate(term, base=True, forced=True) for term in terms]

    def search_over(numbers: np.ndarray, scale: int) -> Search:
        crossed = [Candidate(term, odds) for _ in numbers for term in terms]
        return Search([*plain, *crossed], panel_moments(numbers, scale))

    def best_alone(number: int) -> float:
        search = search_over(np.array([number]), scale)
        search.add_best()
        return search.score

    if len(varying) > MOST_STATIC:
        order = np.argsort([best_alone(number) for number in varying.tolist()])
        varying = np.sort(varying[order[-MOST_STATIC:]])
    searches = [search_over(varying, number) for number in range(moments.squares.shape[1])]
    for search in searches:
        search.maximise()
    # The best scale with products may differ from the best one without.
    added = [np.isfinite(search.strength[len(terms) :]) for search in searches]
    eligible = [number for number, chosen in enumerate(added) if chosen.any() or number == scale]
    best = max(eligible, key=lambda number: searches[number].score)
    if not added[best].any():
        return without
    pairs = [Product(number, term) for number in varying.tolist() for term in range(len(terms))]
    products = tuple(pair for pair, chosen in zip(pairs, added[best], strict=True) if chosen)
    of_columns = searches[best].strength[searches[best].term_of]
    columns = np.flatnonzero(np.isfinite(of_columns))
    shared_moments = searches[best].moments.columns(columns)
    return best, products, posterior(shared_moments, of_columns[columns])
