"""Fit of a linear model, from the panel to the fitted model, and the state of its series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtrit
from tqdm import tqdm

from tsrnn.contract import (
    MOST_STEPS,
    Arguments,
    ClassicalModel,
    FittedData,
    Kind,
    SeriesArrays,
    as_saved,
    by_name,
    check_arrays,
    integer,
    level_name,
    listed,
    record,
    refuse,
    target_scales,
    text,
    unit_index,
)
from tsrnn.data import Panel, past_times, quote_series, steps_between, warn_user, write_stamps
from tsrnn.linear._estimates import BY_UNIT, LEFT_OUT, Estimates, concatenated
from tsrnn.linear._family import Ahead, Arrays, CannotFitError, Family, Units, variance_factor
from tsrnn.linear._hypotheses import fingerprint
from tsrnn.linear._inference import check_kind
from tsrnn.linear._outliers import with_skipped, without_gross_errors
from tsrnn.prior import Outliers, outlier_table

GIVEN = "Parameters were given, not estimated: no standard errors."
WIDENED = (
    "Widened for parameters that are estimated, by their number: Student's t and the final "
    "prediction error. How the model was chosen is left out."
)
SINGULAR = "the rows are too few or too regular for its parameters ({error})."
NO_OPTIMUM = "no admissible parameters were found"
LEAST_DEGREES = 2  # with one degree of freedom, t quantiles make 95 percent twelve errors wide
MOST_LAGS = 100  # largest order in a file with few parameters


def estimate(
    family: Family, panel: Panel, given: np.ndarray | None = None, verbose: int = 0
) -> tuple[Estimates, Arrays]:
    """Fit a family to the units of a panel, or evaluate its likelihood at given parameters (N, k).

    Returns estimates of all N units, NaN with a reason where a fit failed, and the constants that
    their likelihood takes as known, by name with N as the first axis. A ValueError says that no
    unit could be fitted.
    """
    n_units = panel.n_series * (1 if family.multivariate else panel.values.shape[1])
    reasons: dict[int, str] = {}
    units: list[np.ndarray] = []
    parts: list[Estimates] = []
    constants: list[Arrays] = []
    with tqdm(total=n_units, desc=family.title, disable=not verbose, leave=False) as progress:
        for sample, refused in family.prepare(panel, given):
            reasons |= refused
            progress.update(len(refused))
            if sample is None:
                continue
            try:
                if given is None:
                    optimum = family.search(sample, verbose)
                else:
                    optimum = family.given(sample, given[sample.units])
                part, known = family.infer(sample, optimum)
            except CannotFitError as error:
                reasons |= dict.fromkeys(sample.units.tolist(), f"{error}.")
            except np.linalg.LinAlgError as error:  # a singular matrix is a refusal, too
                reasons |= dict.fromkeys(sample.units.tolist(), SINGULAR.format(error=error))
            else:
                units.append(sample.units)
                parts.append(part)
                constants.append(known)
            progress.update(len(sample.units))
    # Checked first: arrays (N, k, k) of NaN of many parameters may not fit into memory.
    if not any(part.fitted.any() for part in parts):
        labels = unit_index(panel.layout, panel.ids, family.multivariate)
        # The id of the only series of a wide frame is not the user's.
        named = panel.layout.id_col is not None or not family.multivariate
        where = f"{quote_series(labels)}: " if named else ""
        noted = {
            unit: texts[0]
            for numbers, part in zip(units, parts, strict=True)
            for unit, texts in zip(numbers.tolist(), part.messages, strict=True)
            if texts
        }
        why = (noted | reasons).get(0, NO_OPTIMUM)
        raise ValueError(f"no series could be fitted; {where}{why}")
    fitted = np.concatenate(units)
    estimates = concatenated(parts).placed(n_units, fitted, reasons)
    if given is not None:  # parameters that were not estimated have no standard errors
        messages = tuple((*texts, GIVEN) for texts in estimates.messages)
        estimates = replace(estimates, fixed=np.ones_like(estimates.fixed), messages=messages)
    placed = {}
    for name, shape in family.constant_shapes.items():
        by_unit = shape if family.multivariate else shape[1:]
        placed[name] = np.full((n_units, *by_unit), np.nan)
        placed[name][fitted] = np.concatenate([known[name] for known in constants])
    return estimates, placed


def estimate_each(
    family: Family, panels: Sequence[Panel], verbose: int = 0
) -> list[tuple[Estimates, Arrays]]:
    """Fit a family to several panels of the same columns, with all units in one batch."""
    first, lengths = panels[0], np.concatenate([panel.lengths for panel in panels])
    joint = replace(
        first,
        values=np.concatenate([panel.values for panel in panels]),
        indptr=np.concatenate([[0], np.cumsum(lengths)]),
        ids=first.ids.append([panel.ids for panel in panels[1:]]),
        times=np.concatenate([panel.times for panel in panels]),
        exog=np.concatenate([panel.exog for panel in panels]),
    )
    estimates, constants = estimate(family, joint, None, verbose)
    each, start = [], 0
    for panel in panels:
        end = start + panel.n_series * len(estimates.params) // joint.n_series
        part = estimates.select(np.arange(start, end))
        known = {name: array[start:end].copy() for name, array in constants.items()}
        if not part.fitted.all():  # a unit of another panel may have failed the batch
            part, known = estimate(family, panel, None, verbose)
        each.append((part, known))
        start = end
    return each


@dataclass(frozen=True, eq=False)
class LinearState(SeriesArrays):
    """State of every series after its last row."""

    ids: pd.Index  # (S,)
    last_times: np.ndarray  # (S,)
    target_scale: np.ndarray  # (S, C), standard deviation of each target in the data fitted to
    arrays: dict[str, np.ndarray]  # by name, S the first axis


class LazyState(LinearState):
    """State after the rows of a panel, filtered on first use."""

    def __init__(self, fitted: FittedLinear, panel: Panel) -> None:
        vars(self).update(fitted=fitted, panel=panel)

    @cached_property
    def filtered(self) -> LinearState:
        """State with its arrays."""
        state: LinearState = vars(self)["fitted"].state_after(vars(self)["panel"])
        return state

    @property
    def ids(self) -> pd.Index:  # type: ignore[override]
        return vars(self)["panel"].ids

    @property
    def last_times(self) -> np.ndarray:  # type: ignore[override]
        return vars(self)["panel"].last_times

    @property
    def target_scale(self) -> np.ndarray:  # type: ignore[override]
        return self.filtered.target_scale

    @property
    def arrays(self) -> Arrays:  # type: ignore[override]
        return self.filtered.arrays

    def select(self, series: np.ndarray) -> LinearState:  # type: ignore[override]
        return self.filtered.select(series)

    def replaced(self, series: np.ndarray, new: LinearState) -> LinearState:  # type: ignore[override]
        return self.filtered.replaced(series, new)


@dataclass(frozen=True, eq=False)
class FittedLinear(ClassicalModel[LinearState]):
    """Fitted linear model: a family, its estimates, and the constants of its likelihood."""

    arguments: Arguments
    data: FittedData
    horizon: int
    family: Family
    estimates: Estimates
    constants: Arrays  # by name, N the first axis
    sample: np.ndarray  # (2, S), first and last times of the series fitted to
    saved_digest: dict[str, str] | None  # the `digest` read from a file
    panel: Panel | None  # data fitted to, without gross errors; files do not hold them
    outliers: Outliers = field(default_factory=Outliers.none, kw_only=True)

    @classmethod
    def of(
        cls,
        arguments: Arguments,
        data: FittedData,
        horizon: int,
        family: Family,
        panel: Panel,
        outliers: Outliers,
        estimates: Estimates,
        constants: Arrays,
    ) -> FittedLinear:
        """Fitted model of a panel from the estimates of its units; warn of failed units.

        A ValueError refuses a kind of standard errors that the model lacks.
        """
        check_kind(arguments.cov_type, estimates)
        n, lost = len(estimates.params), np.flatnonzero(~estimates.fitted)
        loose = np.flatnonzero(estimates.fitted & ~estimates.converged)
        left_out = [any(t.startswith(LEFT_OUT) for t in texts) for texts in estimates.messages]
        short = np.flatnonzero(np.array(left_out, bool) & estimates.fitted)
        if len(lost) or len(loose) or len(short):
            labels = unit_index(data.layout, data.ids, family.multivariate)
        if len(lost):
            reason = (*estimates.messages[lost[0]], NO_OPTIMUM)[0].removesuffix(".")
            warn_user(
                f"{len(lost)} of {n} units could not be fitted, {quote_series(labels[lost])}. The "
                f"reason for the first: {reason}. The parameters of these units are NaN; see "
                "messages_"
            )
        if len(loose):
            warn_user(
                f"the likelihood of {len(loose)} of {n} units was not maximised to tolerance, "
                f"{quote_series(labels[loose])}; see converged_ and messages_"
            )
        if len(short):
            text = next(t for t in estimates.messages[short[0]] if t.startswith(LEFT_OUT))
            warn_user(
                f"exogenous columns are left out of {len(short)} of {n} units, "
                f"{quote_series(labels[short])}; see messages_. The first: {text}"
            )
        sample = np.stack([panel.times[panel.indptr[:-1]], panel.last_times])
        return cls(
            arguments, data, horizon, family, with_skipped(estimates, outliers), constants, sample,
            None, panel, outliers=outliers,
        )  # fmt: skip

    @property
    def joint(self) -> bool:
        return self.family.multivariate

    @property
    def model_guarantee(self) -> str:
        if not self.widens:
            return self.family.guarantee
        text = self.family.guarantee
        for known in (", the parameters", " and its parameters", " and the parameters"):
            text = text.replace(
                f"{known} taken as known", "" if known[0] == "," else " taken as known"
            )
        return f"{text} {WIDENED}"

    @cached_property
    def digest(self) -> dict[str, str]:
        """Fingerprints of the data fitted to, by column; tests compare samples by them."""
        if self.panel is None:
            assert self.saved_digest is not None  # by `from_file`
            return self.saved_digest
        return fingerprint(self.panel)

    @property
    def n_units(self) -> int:
        """Units of a series."""
        return 1 if self.family.multivariate else self.data.n_targets

    def units_of(self, ids: pd.Index) -> Units:
        """Parameters and constants of the series with these ids."""
        numbers = self._unit_numbers(ids).ravel()
        return Units(self.estimates.params, self.constants).select(numbers)

    def _unit_numbers(self, ids: pd.Index) -> np.ndarray:
        """Numbers (S, units) of the units of the series with these ids."""
        series = self.data.series_of(ids, self.arguments.class_name)
        return series[:, None] * self.n_units + np.arange(self.n_units)

    def filter(self, panel: Panel) -> LinearState:
        return self.state_after(self.without_errors(panel))

    def without_errors(self, panel: Panel) -> Panel:
        """Set gross errors to NaN, if the arguments ask for it."""
        return without_gross_errors(self.arguments, panel)[0]

    def state_after(self, panel: Panel) -> LinearState:
        """State after the rows of a panel as they are."""
        steps = self._steps_to(panel.ids, panel.times[panel.indptr[:-1]])
        arrays = self.family.filter(panel, self.units_of(panel.ids), steps)
        return LinearState(panel.ids, panel.last_times, target_scales(panel), arrays)

    def advance(self, state: LinearState, panel: Panel) -> LinearState:
        steps = self._steps_to(state.ids, state.last_times) + 1
        arrays = self.family.advance(state.arrays, panel, self.units_of(state.ids), steps)
        return LinearState(state.ids, panel.last_times, state.target_scale, arrays)

    def model_forecast(
        self, state: LinearState, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        ahead = self._ahead(state, h, future)
        forecasts = self.family.forecast(state.arrays, self.units_of(state.ids), ahead, levels)
        degrees, error = self._uncertainty(state.ids)
        if (error == 1).all() and not self.widens:
            return forecasts
        point, ends = forecasts[""], {"": forecasts[""]}
        for level in levels:
            probability = 0.5 + level / 200
            factor = np.sqrt(error)
            if self.widens:
                factor = factor * stdtrit(degrees, probability) / ndtri(probability)
            for side in ("lo", "hi"):
                name = f"-{side}-{level_name(level)}"
                ends[name] = point + factor[:, None] * (forecasts[name] - point)
        return ends

    def simulate(
        self,
        state: LinearState,
        h: int,
        n: int,
        future: np.ndarray | None,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Paths (n, S, h, C) after the state, with innovations of the model's distribution."""
        ahead, units = self._ahead(state, h, future), self.units_of(state.ids)
        paths = self.family.simulate(state.arrays, units, ahead, n, rng)
        degrees, error = self._uncertainty(state.ids)
        if (error == 1).all() and not self.widens:
            return paths
        point = self.family.forecast(state.arrays, units, ahead, [])[""]
        variance: np.ndarray | float = 1.0
        if self.widens:
            # One variance per path: then each step has Student's t distribution.
            variance = rng.chisquare(degrees, (n, *degrees.shape)) / degrees
        return point + np.sqrt(error / variance)[..., None, :] * (paths - point)

    @cached_property
    def widens(self) -> bool:
        """True if intervals account for the estimation of parameters."""
        return getattr(self.arguments, "parameter_uncertainty", False) and not self.are_given

    @cached_property
    def are_given(self) -> bool:
        """True if parameters were given, not estimated."""
        return any(GIVEN in texts for texts in self.estimates.messages)

    def _uncertainty(self, ids: pd.Index) -> tuple[np.ndarray, np.ndarray]:
        """Degrees of freedom, and the factor on the variance of forecasts, each (S, C).

        The factor is the final prediction error if intervals are widened, else the correction to
        an unbiased variance.
        """
        estimates, counted = self.estimates, self.family.mean_parameters(self.estimates)
        k = estimates.n_params
        if k is None:
            k = np.full(len(estimates.params), len(estimates.names))
        degrees, error = widening(estimates.n_obs, k)
        if not self.widens:
            error = np.ones(len(k))
            if counted is not None and not self.are_given:
                error = variance_factor(estimates.n_obs, counted)
        else:
            # A variance that already counts degrees of freedom is not corrected twice.
            error = np.maximum(error / self.family.variance_correction(self.constants), 1.0)
        numbers = self._unit_numbers(ids)
        return degrees[numbers], error[numbers]

    def variances(self, state: LinearState, h: int, **options: Any) -> np.ndarray:
        """Conditional variances (S, h, C) of the residuals, where the family has them."""
        family: Any = self.family
        return family.variances(state.arrays, self.units_of(state.ids), h, **options)

    def in_sample(self, panel: Panel) -> tuple[np.ndarray, np.ndarray]:
        """Fitted values and standardised residuals, each (rows, C), of a panel."""
        steps = self._steps_to(panel.ids, panel.times[panel.indptr[:-1]])
        return self.family.in_sample(panel, self.units_of(panel.ids), steps)

    def covariance(self, cov_type: str | None = None) -> np.ndarray:
        """Covariance (N, k, k) of the parameters, of the kind of the arguments by default."""
        kind = self.arguments.cov_type if cov_type is None else cov_type
        check_kind(kind, self.estimates, self.family.cov_kinds)
        return self.family.covariance(self.estimates, self.constants, kind)

    def unit(self, i: int) -> tuple[np.ndarray, Arrays]:
        """Parameters (k,) and constants of a unit."""
        return Units(self.estimates.params, self.constants).unit(i)

    def _ahead(self, state: LinearState, h: int, future: np.ndarray | None) -> Ahead:
        """Rows to forecast after a state, with their exogenous columns."""
        steps = self._steps_to(state.ids, state.last_times) + 1
        return Ahead(h, steps, self.data.all_ahead(future))

    def _steps_to(self, ids: pd.Index, times: np.ndarray) -> np.ndarray:
        """Steps (S,) from the first row fitted to, to the given times."""
        first = self.sample[0][self.data.series_of(ids, self.arguments.class_name)]
        return steps_between(first, times, self.data.layout.grid, self.data.layout.tz)

    def outlier_table(self, unit: int | None = None) -> pd.DataFrame:
        """Table of outliers of one unit or of all, with the ids and times of the data."""
        outliers, layout = self.outliers, self.data.layout
        if unit is not None:
            of_unit = outliers.series == unit
            outliers = Outliers(*(values[of_unit] for values in outliers))
        series = outliers.series // self.n_units
        lengths = self._lengths
        past = past_times(self.sample[1], int(lengths.max()), layout.grid, tz=layout.tz)
        times = past[series, lengths.max() - lengths[series] + outliers.row]
        return outlier_table(outliers, layout, self.data.ids[series], times)

    @property
    def _lengths(self) -> np.ndarray:
        """Rows (S,) of the series fitted to."""
        first, last = self.sample
        return steps_between(first, last, self.data.layout.grid, self.data.layout.tz) + 1

    def to_file(self, state: LinearState) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        estimates, n_series = self.estimates, len(self.data.ids)
        messages = {str(i): list(texts) for i, texts in enumerate(estimates.messages) if texts}
        header = {
            "names": list(estimates.names),
            "messages": messages,
            "horizon": self.horizon,
            "data": self.digest,
        }
        arrays = {_ESTIMATES + name: getattr(estimates, name) for name in BY_UNIT}
        arrays |= {_STATE + name: array for name, array in state.arrays.items()}
        arrays |= {
            _STATE + name: self.constants[name].reshape(n_series, *shape)
            for name, shape in self.family.constant_shapes.items()
        }
        arrays |= {"sample": self.sample.astype("int64"), _SCALE: state.target_scale}
        if _looks_for_outliers(self.arguments):
            arrays |= {_OUTLIERS + name: part for name, part in self.outliers._asdict().items()}
        return header, {name: array for name, array in arrays.items() if array is not None}

    @classmethod
    def from_file(
        cls,
        family_of: Callable[[], Family],
        arguments: Arguments,
        data: FittedData,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        last_times: np.ndarray,
    ) -> tuple[FittedLinear, LinearState]:
        """Fitted model and state from `to_file`; `family_of` returns the family.

        A `DamagedFileError` names the field or array that differs from what `to_file` writes.
        """
        record(FITTED)(header, "fitted")
        n_series, k = len(data.ids), len(header["names"])
        # Files of an earlier version keep the rows seen, which follow from the times.
        arrays = {name: array for name, array in arrays.items() if name not in _ROWS_SEEN}
        state = {name: array for name, array in arrays.items() if name.startswith(_STATE)}
        of_outliers = {name: part for name, part in arrays.items() if name.startswith(_OUTLIERS)}
        arrays = {name: array for name, array in arrays.items() if name not in of_outliers}
        for name in ("order", "garch_order", "mean_order", "coint_rank"):
            order = arguments.as_dict().get(name)
            _check_lags(order, max(k, MOST_LAGS), f"params.{name}")
        with as_saved("params"):
            family = family_of()
            names, shapes = family.names, family.state_shapes | family.constant_shapes
        if list(names) != header["names"]:
            raise refuse(
                "fitted.names", f"those of {arguments.class_name}, {names}", header["names"]
            )
        n_units = n_series * (1 if family.multivariate else data.n_targets)
        check_arrays(
            {name: array for name, array in arrays.items() if name not in state},
            estimates_shapes(n_units, k)
            | {"sample": ("int64", (2, n_series)), _SCALE: ("float64", (n_series, data.n_targets))},
            may_lack=[_ESTIMATES + name for name in ("information", *_MAY_LACK)],
        )
        check_arrays(
            state, {_STATE + name: ("float64", (n_series, *s)) for name, s in shapes.items()}
        )
        for unit in header["messages"]:
            if unit not in map(str, range(n_units)):
                raise refuse("fitted.messages", f"of {n_units} units by their number", unit)
        sample = arrays["sample"].astype(last_times.dtype)
        with as_saved("the array 'sample' and layout"):
            write_stamps(sample.ravel(), data.layout)
        texts = header["messages"]
        messages = tuple(tuple(texts.get(str(i), ())) for i in range(n_units))
        by_unit: dict[str, Any] = {name: arrays.get(_ESTIMATES + name) for name in BY_UNIT}
        estimates = Estimates(names=names, messages=messages, **by_unit)
        constants = {
            name: state.pop(_STATE + name).reshape(n_units, *shape[not family.multivariate :])
            for name, shape in family.constant_shapes.items()
        }
        fitted = cls(
            arguments, data, header["horizon"], family, estimates, constants, sample,
            header["data"], None,
        )  # fmt: skip
        if _looks_for_outliers(arguments):
            lengths = fitted._lengths.repeat(n_units // n_series)
            fitted = replace(fitted, outliers=_saved_outliers(of_outliers, lengths))
        elif of_outliers:
            raise refuse("params.outliers", "those of the arrays 'outliers.'", None)
        after = {name.removeprefix(_STATE): array for name, array in state.items()}
        return fitted, LinearState(data.ids, last_times, arrays[_SCALE], after)


def widening(n: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Degrees of freedom, and error of forecasts with estimated parameters over the variance.

    .. math:: n - k, \qquad (n + k) / (n - k)

    The maximum likelihood variance is too small by n / (n - k), and the error of a one-step
    forecast larger by 1 + k / n, the final prediction error of Akaike (1969). The variance is one
    of the k parameters, as in the information criteria: without it intervals are narrower still.
    Later steps take the factor of the first step. The choice of the model is ignored.
    """
    degrees = np.maximum(n - k, LEAST_DEGREES).astype(float)
    return degrees, (n + k) / degrees


# Fields of a file beside those of every forecaster.
FITTED: dict[str, Kind] = {
    "names": listed(text),
    "messages": by_name(listed(text)),
    "horizon": integer(1, MOST_STEPS),
    "data": by_name(text),
}
_ESTIMATES, _STATE, _SCALE, _OUTLIERS = "estimates.", "state.", "target_scale", "outliers."
_ROWS_SEEN = ("state.steps", "state.rows")
_MAY_LACK = ("starts", "agreement", "n_params")


def _looks_for_outliers(arguments: Arguments) -> bool:
    return getattr(arguments, "outliers", None) is not None


def _saved_outliers(arrays: dict[str, np.ndarray], lengths: np.ndarray) -> Outliers:
    """Read outliers from a file; `lengths` (N,) are the rows of the units."""
    kinds = ("int64", "int64", "bool", "float64", "float64")
    n = len(arrays.get(_OUTLIERS + "series", ()))
    names = [_OUTLIERS + name for name in Outliers._fields]
    check_arrays(arrays, {name: (kind, (n,)) for name, kind in zip(names, kinds, strict=True)})
    outliers = Outliers(*(arrays[name] for name in names))
    for name, numbers in ((names[0], outliers.series), (names[1], outliers.row)):
        most = len(lengths) if name == names[0] else lengths[outliers.series]
        if ((numbers < 0) | (numbers >= most)).any():
            raise refuse(f"the array {name!r}", "of units and their rows by number", numbers[:3])
    return outliers


def _check_lags(value: Any, most: int, place: str) -> None:
    """Refuse orders beyond the parameters in the file, before arrays of that size are built."""
    if isinstance(value, list | tuple):
        for item in value:
            _check_lags(item, most, place)
    elif isinstance(value, int) and value > most:
        raise refuse(place, f"an order of at most {most} with the parameters of this file", value)


def estimates_shapes(n_units: int, k: int) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Dtype and shape of the arrays of estimates of `n_units` units and k parameters."""
    matrices = dict.fromkeys(("hessian", "opg", "information"), ("float64", (n_units, k, k)))
    rows = dict.fromkeys(("params", "gradient"), ("float64", (n_units, k)))
    counts = dict.fromkeys(("n_obs", "iterations", *_MAY_LACK), ("int64", (n_units,)))
    shapes = matrices | rows | counts
    shapes |= {
        "loglik": ("float64", (n_units,)),
        "converged": ("bool", (n_units,)),
        "fixed": ("bool", (n_units, k)),
    }
    return {_ESTIMATES + name: shape for name, shape in shapes.items()}
