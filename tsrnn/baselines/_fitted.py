"""Models of statsmodels and arch behind the forecaster contract, unit by unit."""

from __future__ import annotations

import copy
import numbers
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, parallel_config
from tqdm import tqdm

from tsrnn.baselines._file import (
    ESTIMATES,
    MOST_LAGS,
    ORDERS,
    check_lags,
    estimates_arrays,
    estimates_from_file,
    estimates_header,
)
from tsrnn.baselines._rows import NAMES_SHOWN, BaselineSummary, FittedRows, RowsState, name_series
from tsrnn.baselines._unit import (
    SEASONLESS,
    Ahead,
    ConstantModel,
    Rows,
    Unit,
    UnitEstimates,
    UnitModel,
)
from tsrnn.contract import (
    ONE_THREAD,
    Arguments,
    Classical,
    FittedData,
    as_saved,
    job_count,
    level_name,
    recorded,
    refuse,
    unit_index,
    unit_number,
    with_shared_arguments,
)
from tsrnn.data import Panel, quote, quote_series, quoted, steps_between, warn_user

# Date and time on a page of statsmodels or arch.
_WHEN = re.compile(
    r"^(\s*(?:Date|Time):\s+)"
    r"(\w{3}, \d\d,? \w{3},? \d{4}|\w{3}, \w{3} \d\d \d{4}|\d\d:\d\d:\d\d)",
    re.MULTILINE,
)


@dataclass(frozen=True, eq=False)
class FittedUnits(FittedRows):
    """Models of statsmodels or arch at the estimates of their units.

    A forecast runs the model at these parameters over the rows seen. Units are numbered series by
    series, within a series target by target; a multivariate model has one unit a series. Rows are
    numbered from `first_times`, shape (S,), the times of the first rows at `fit`.
    """

    model: UnitModel
    estimates: tuple[UnitEstimates, ...]
    first_times: np.ndarray
    model_guarantee: ClassVar[str] = (
        "That of statsmodels or arch: asymptotic, the parameters taken as known. Holds if the "
        "model is right."
    )

    @property
    def joint(self) -> bool:
        return self.model.multivariate

    @property
    def units(self) -> pd.Index:
        """Labels of the units."""
        return unit_index(self.data.layout, self.data.ids, self.model.multivariate)

    def model_forecast(
        self, state: RowsState, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        answers = self.ask("ahead", state, self.data.all_ahead(future), h, levels)
        forecasts = {"": self.joined([a and a.mean for a in answers], h)}
        for level in levels:
            for k, suffix in enumerate(("lo", "hi")):
                ends = [a and a.ends[level][k] for a in answers]
                forecasts[f"-{suffix}-{level_name(level)}"] = self.joined(ends, h)
        return forecasts

    def simulate(
        self, state: RowsState, h: int, n: int, future: np.ndarray | None, rng: np.random.Generator
    ) -> np.ndarray:
        """Paths (n, S, h, C) that the models of the units draw, each with its own seed."""
        # Drawn in this process, so that paths do not depend on the number of processes.
        seeds = rng.integers(2**32, size=len(state.ids) * self.per_series).tolist()
        ahead = self.data.all_ahead(future)
        answers = self.ask("paths", state, ahead, h, n, seeds=seeds)
        drawn = [None if a is None else a.reshape(n * h, -1) for a in answers]
        paths = self.joined(drawn, n * h)
        return paths.reshape(len(state.ids), n, h, -1).swapaxes(0, 1)

    def variances(self, state: RowsState, h: int, of: str = "residual") -> np.ndarray:
        """Forecasts (S, h, C) of the variance of the residuals, or of the errors of forecasts."""
        n_exog = state.exog.shape[1]
        # Variances do not depend on regressors: zeros stand for those ahead.
        future = np.zeros((len(state.ids), h, n_exog)) if n_exog else None
        return self.joined(self.ask("variance", state, future, h, of), h)

    def ask(
        self,
        question: str,
        state: RowsState,
        future: np.ndarray | None,
        *arguments: Any,
        seeds: list[int] | None = None,
    ) -> list[Any]:
        """Ask the model about every unit of a state; None for a unit without parameters.

        Raise a `ValueError` if all units fail; single failures are warned of.
        """
        layout, model = self.data.layout, self.model.with_seed(self.arguments.random_state)
        series = self.data.series_of(state.ids, self.arguments.class_name)
        begun = self.first_times[series]
        offsets = steps_between(begun, state.first_times, layout.grid, layout.tz)
        tasks, places = [], []
        for place, rows in enumerate(unit_rows(model, state, offsets)):
            i, j = divmod(place, self.per_series)
            fitted = self.estimates[series[i] * self.per_series + j]
            if not fitted.reason:
                unit = Unit(fitted, rows, None if future is None else future[i])
                seed = () if seeds is None else (seeds[place],)
                tasks.append((question, model, unit, *arguments, *seed))
                places.append(place)
        done = in_processes(self.arguments, ask_unit, tasks)
        answers: list[Any] = [None] * (len(state.ids) * self.per_series)
        for place, (answer, _, _) in zip(places, done, strict=True):
            answers[place] = answer
        lost = {place: why for place, (_, _, why) in zip(places, done, strict=True) if why}
        name = self.arguments.class_name
        if lost:
            units = unit_index(layout, state.ids, model.multivariate)
            message = (
                f"{name} cannot forecast {len(lost)} of {len(units)} units, "
                f"{self.names(units[list(lost)])}. The reason for the first: "
                f"{next(iter(lost.values()))}"
            )
            if len(lost) == len(done):
                raise ValueError(f"{message}. Check these series, or fit again")
            warn_user(f"{message}. Their forecasts are NaN")
        texts = dict.fromkeys(text for _, unit_texts, _ in done for text in unit_texts)
        if texts:
            warn_user(f"{name}: {'; '.join(list(texts)[:NAMES_SHOWN])}")
        return answers

    @property
    def per_series(self) -> int:
        """Units of a series."""
        return 1 if self.model.multivariate else self.data.n_targets

    def joined(self, parts: list[Any], h: int) -> np.ndarray:
        """Forecasts of units as (S, h, C), NaN where a unit has none."""
        width = self.data.n_targets // self.per_series
        joined = np.full((len(parts), h, width), np.nan)
        for place, part in enumerate(parts):
            if part is not None:
                joined[place] = part.reshape(h, -1)
        by_series = joined.reshape(-1, self.per_series, h, width).swapaxes(1, 2)
        return by_series.reshape(len(by_series), h, -1)

    def warn_of_estimates(self) -> None:
        """Refuse if no unit could be fitted; warn of units that could not, or with warnings."""
        name, estimates, units = self.arguments.class_name, self.estimates, self.units
        lost = [i for i, fitted in enumerate(estimates) if fitted.reason]
        if lost:
            lost_units, reason = self.names(units[lost]), estimates[lost[0]].reason
            if len(lost) == len(estimates):
                raise ValueError(f"{name} could fit no series: {lost_units} {reason}")
            warn_user(
                f"{name} could not fit {len(lost)} of {len(estimates)} units, {lost_units}: the "
                f"first {reason}. Their forecasts are NaN; see messages_"
            )
        warned = {i: texts for i, fitted in enumerate(estimates) if (texts := fitted.warnings)}
        if warned:
            first = next(iter(warned.values()))[0]
            warn_user(
                f"{name}: {len(warned)} of {len(estimates)} units came with warnings, "
                f"{self.names(units[list(warned)])}. The first: {first.removesuffix('.')}. See "
                "converged_ and messages_"
            )

    def names(self, units: pd.Index) -> str:
        """Quote the first few units."""
        if self.model.multivariate:
            return name_series(self.data.layout, units)
        return quote_series(units, NAMES_SHOWN)

    def page(self, i: int, state: RowsState) -> str:
        """The library's page about one unit, rebuilt from rows and parameters."""
        fitted = self.estimates[i]
        if fitted.reason:
            return f"The unit {fitted.reason}"
        rows, n = unit_rows(self.model, state)[i], fitted.n_rows
        rows = Rows(rows.y[:n], None if rows.exog is None else rows.exog[:n])
        try:
            with recorded():
                page = self.model.estimated(fitted).page(fitted, rows)
        except np.linalg.LinAlgError as error:  # a file may hold rows other than those of the fit
            raise ValueError(
                f"the rows kept of {self.names(self.units[[i]])} must determine the estimates, "
                f"which they did when they were fitted; now: {error}. Fit the model again"
            ) from error
        # Pages of equal fits are equal: blank out the time of writing.
        page = _WHEN.sub(lambda match: match[1] + " " * len(match[2]), page)
        return "\n".join([page, *fitted.messages])

    def table(self) -> str:
        """Table of the estimates, a row a unit."""
        columns = {"rows": "n_rows", "log-likelihood": "loglik", "AIC": "aic"}
        columns["converged"] = "converged"
        orders = [self.model.estimated(fitted).orders(fitted) for fitted in self.estimates]
        values = {
            column: [getattr(fitted, name) for fitted in self.estimates]
            for column, name in columns.items()
        }
        table = pd.DataFrame({"model": orders} | values, index=self.units)
        return table.to_string(max_rows=20, float_format=lambda value: f"{value:.3f}", na_rep="-")

    def to_file(self, state: RowsState) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        header = estimates_header(self.estimates) | {"horizon": self.horizon}
        return header, estimates_arrays(self.estimates) | state.arrays()


@with_shared_arguments
class UnitForecaster(Classical[RowsState]):
    """Base of the models with parameters.

    Parameters are estimated once, at `fit`. `_model` of a subclass returns a `UnitModel` with
    checked arguments, which estimates and forecasts one unit. Estimates are frames with a row a
    unit.

    Parameters
    ----------
    n_jobs : int, default 1
        Processes that share the series; -1 takes all cores.
    **shared
        As in all forecasters.
    """

    offers: ClassVar[frozenset[str]] = frozenset({"sample_paths"})
    fitted_: FittedUnits

    def __init__(self, *, n_jobs: int = 1, **shared: Any) -> None:
        super().__init__(**shared)
        self.n_jobs = n_jobs

    @abstractmethod
    def _model(self, arguments: Arguments, data: FittedData) -> UnitModel:
        """Model with the arguments, checked against the columns of the data."""

    def _check(self, arguments: Arguments, panel: Panel) -> None:
        super()._check(arguments, panel)
        self._model(arguments, FittedData.of(panel, arguments))

    def _fitted_model(self) -> FittedUnits:
        super()._fitted_model()
        return self.fitted_

    @property
    def units_(self) -> pd.Index:
        """Labels of the fitted units: ids of a long frame, columns of a wide one."""
        return self._fitted_model().units

    @property
    def params_(self) -> pd.DataFrame:
        """Estimated parameters, a row a unit; NaN where a unit has no parameter of a name."""
        units, estimates = self.units_, self.fitted_.estimates
        rows = [dict(zip(unit.names, unit.params, strict=True)) for unit in estimates]
        return pd.DataFrame(rows, index=units)

    @property
    def loglik_(self) -> pd.Series:
        """Log-likelihood at the estimates."""
        return self._by_unit("loglik")

    @property
    def aic_(self) -> pd.Series:
        """Akaike's information criterion, as the library defines it."""
        return self._by_unit("aic")

    @property
    def bic_(self) -> pd.Series:
        """Schwarz' Bayesian information criterion, as the library defines it."""
        return self._by_unit("bic")

    @property
    def converged_(self) -> pd.Series:
        """Whether the optimiser met its tolerance; False where it failed."""
        return self._by_unit("converged")

    @property
    def messages_(self) -> pd.Series:
        """Reason why a unit could not be fitted, or warnings of the library: a tuple of texts."""
        return self._by_unit("texts").rename("messages")

    @property
    def spec_(self) -> pd.Series:
        """Choices for each unit beside the parameters, such as orders, as a dict."""
        return self._by_unit("spec").map(copy.deepcopy)

    def _by_unit(self, name: str) -> pd.Series:
        """Field of the estimates, a row a unit."""
        units = self.units_
        return pd.Series([getattr(unit, name) for unit in self.fitted_.estimates], units, name=name)

    def summary(self, unit: Any = None) -> BaselineSummary:
        """The library's page about one unit, or a table of many; print the result.

        Parameters
        ----------
        unit : label, optional
            One of `units_`; by default the only one, or all in a table.

        Raises
        ------
        KeyError
            If there is no such unit.
        """
        units, fitted = self.units_, self.fitted_
        notes = tuple(fitted.support_notes)
        if unit is None and len(units) > 1:
            return BaselineSummary(type(self).__name__, fitted.table(), notes)
        i = 0 if unit is None else unit_number(units, unit)
        if i < 0:
            raise KeyError(f"unit must be one of {quoted(units, NAMES_SHOWN)}; got {quote(unit)}")
        title = f"{type(self).__name__} of {fitted.names(units[[i]])}"
        return BaselineSummary(title, fitted.page(i, self.state_), notes)

    def _fit_panel(
        self, arguments: Arguments, data: FittedData, panel: Panel
    ) -> tuple[FittedUnits, RowsState]:
        model, state = self._model(arguments, data), RowsState.of(panel)
        if model.multivariate and data.n_targets < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 targets; got "
                f"{quote(list(panel.target_names))}. Name them by target=[...]"
            )
        tasks = [(model, rows) for rows in unit_rows(model, state)]
        estimates = tuple(in_processes(arguments, estimate_unit, tasks))
        horizon = self._horizon(arguments, data.layout)
        fitted = FittedUnits(arguments, data, horizon, model, estimates, state.first_times)
        fitted.warn_of_estimates()
        return fitted, state

    def _from_file(
        self,
        arguments: Arguments,
        data: FittedData,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        last_times: np.ndarray,
    ) -> tuple[FittedUnits, RowsState]:
        estimates = {name: array for name, array in arrays.items() if name.startswith(ESTIMATES)}
        rows = {name: array for name, array in arrays.items() if name not in estimates}
        state = RowsState.from_file(rows, data, last_times)
        for name, value in arguments.as_dict().items():
            if name in ORDERS:
                check_lags(value, max(MOST_LAGS, len(state.values)), name)
        with as_saved("params"):
            model = self._model(arguments, data)
            job_count(arguments.n_jobs)
        if model.multivariate and data.n_targets < 2:
            raise refuse("layout.target_names", "at least 2", data.n_targets)
        fitted = estimates_from_file(header, estimates, model, unit_rows(model, state))
        first = state.first_times
        return FittedUnits(arguments, data, header["horizon"], model, fitted, first), state


def unit_rows(model: UnitModel, state: RowsState, offsets: np.ndarray | None = None) -> list[Rows]:
    """Rows of every unit of a state, whose series begin `offsets` (S,) steps after the first."""
    units = []
    for i, offset in enumerate(np.zeros(len(state.ids), int) if offsets is None else offsets):
        values, exog = state.values[state.rows(i)], state.exog[state.rows(i)]
        known = exog if exog.shape[1] else None
        targets = [values] if model.multivariate else list(values.T)
        units += [Rows(np.array(y, order="C"), known, int(offset)) for y in targets]
    return units


def in_processes(arguments: Arguments, work: Callable[..., Any], tasks: list[tuple]) -> list[Any]:
    """Results of `work` for the arguments of each task, in order.

    They run in other processes unless `n_jobs` is 1 or None. Matrix products use one thread in
    either case: small ones are faster, and the optimiser ends at the same numbers.
    """
    n_jobs, verbose, name = job_count(arguments.n_jobs), arguments.verbose, arguments.class_name
    bar = {"total": len(tasks), "desc": name, "disable": not verbose, "leave": False}
    if n_jobs in (1, None) or len(tasks) < 2:
        with ONE_THREAD:
            return list(tqdm((work(*task) for task in tasks), **bar))
    with parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
        results: Iterable[Any] = parallel(delayed(work)(*task) for task in tasks)
        return list(tqdm(results, **bar))


def estimate_unit(model: UnitModel, rows: Rows) -> UnitEstimates:
    """Estimates of a unit, or the reason why there are none."""
    if model.has_constant(rows):
        return ConstantModel().estimate(rows)
    left_out, plain = model.season_left_out(rows), model.seasonless()
    if left_out and plain is not None:
        fitted = estimate_unit(plain, rows)
        spec = fitted.spec | {SEASONLESS: True}
        return replace(fitted, spec=spec, messages=(left_out, *fitted.messages))
    reason = (plain or model).refusal(rows)
    if reason:
        return UnitEstimates(reason=reason, n_rows=len(rows.y), converged=False)
    texts: list[str] = []
    try:
        with recorded() as texts:
            fitted = model.estimate(rows)
        if not np.isfinite(fitted.params).all():
            reason = "gives parameters that are not finite"
    except Exception as error:  # libraries raise errors of any kind
        reason = f"cannot be fitted: {type(error).__name__}: {error}"
    if reason:
        return UnitEstimates(
            reason=reason, n_rows=len(rows.y), converged=False, messages=(*texts, reason)
        )
    return replace(fitted, n_rows=len(rows.y), messages=(*texts, *fitted.messages))


def ask_unit(
    question: str, model: UnitModel, unit: Unit, *arguments: Any
) -> tuple[Any, list[str], str]:
    """Ask a model about a unit, by the name of its method.

    Return the answer, the warnings of the library, and the reason why there is no answer: empty if
    there is one.
    """
    texts: list[str] = []
    try:
        with recorded() as texts:
            answer = getattr(model.estimated(unit.fitted), question)(unit, *arguments)
    except Exception as error:  # libraries raise errors of any kind
        return None, texts, f"{type(error).__name__}: {error}"
    if not is_finite(answer):
        return None, texts, "numbers that are not finite"
    return answer, texts, ""


def is_finite(answer: Ahead | np.ndarray) -> bool:
    """Return True if all numbers of an answer are finite."""
    if isinstance(answer, np.ndarray):
        return bool(np.isfinite(answer).all())
    parts = [answer.mean, *(end for ends in answer.ends.values() for end in ends)]
    return all(bool(np.isfinite(part).all()) for part in parts)


def count(name: str, value: Any, optional: bool = False) -> Any:
    """Check an argument: an integer of at least 0, or None if optional."""
    if not (is_count(value) or (optional and value is None)):
        or_none = ", or None" * optional
        raise ValueError(f"{name} must be an integer of at least 0{or_none}; got {quote(value)}")
    return value


def counts(name: str, value: Any, what: str, n: int) -> tuple[int, ...]:
    """Check an argument of n integers of at least 0; errors name them as `what`."""
    listed = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == n
    if not listed or not all(is_count(item) for item in value):
        raise ValueError(f"{name} must be {n} integers {what} of at least 0; got {quote(value)}")
    return tuple(int(item) for item in value)


def is_count(value: Any) -> bool:
    """Return True for an integer of at least 0."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 0
