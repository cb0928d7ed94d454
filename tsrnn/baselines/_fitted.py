"""Models of statsmodels and arch behind the forecaster contract, unit by unit."""

from __future__ import annotations

import numbers
import re
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, parallel_config
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from tsrnn.baselines._base import (
    NAMES_SHOWN,
    BaselineSummary,
    RowsForecaster,
    RowsState,
    listed,
    series_named,
)
from tsrnn.baselines._file import (
    ESTIMATES,
    MOST_LAGS,
    ORDERS,
    check_estimates,
    check_lags,
    check_unit,
    estimates_arrays,
    estimates_header,
    revived_estimates,
)
from tsrnn.baselines._unit import SEASONLESS, Ahead, Fitted, Rows, UnitModel
from tsrnn.contract import (
    as_saved,
    job_count,
    level_name,
    recorded,
    refuse,
    unit_index,
    warn_user,
    with_shared_arguments,
)
from tsrnn.data import Panel, steps_between

STARTING = "starting"  # in messages of statsmodels on values that the optimiser starts from
# Date and time on a page of statsmodels or arch.
_WHEN = re.compile(
    r"^(\s*(?:Date|Time):\s+)"
    r"(\w{3}, \d\d,? \w{3},? \d{4}|\w{3}, \w{3} \d\d \d{4}|\d\d:\d\d:\d\d)",
    re.MULTILINE,
)


@with_shared_arguments
class FittedForecaster(RowsForecaster):
    """Base of the models with parameters; not to be used by itself.

    Parameters are estimated once, at `fit`. A forecast runs the model at these parameters over
    the rows seen. A subclass answers `_model`: a `UnitModel` with the arguments checked, which
    estimates and forecasts one unit. Units are numbered series by series, within a series
    target by target; a multivariate model has one unit a series. Estimates are frames with a row
    a unit.

    Parameters
    ----------
    n_jobs : int
        Processes that share the units; -1 takes all cores.
    **shared
        All other arguments are those of `CommonArguments`.
    """

    multivariate: ClassVar[bool] = False  # whether all targets of a series are one unit
    least_targets: ClassVar[int] = 1
    estimates_: tuple[Fitted, ...]
    _guarantee: ClassVar[str] = (
        "That of statsmodels or arch: asymptotic, the parameters taken as known. Holds if the "
        "model is right."
    )

    def __init__(self, *, n_jobs: int = 1, **shared: Any) -> None:
        super().__init__(**shared)
        self.n_jobs = n_jobs

    @abstractmethod
    def _model(self) -> UnitModel:
        """Model with the arguments, checked against the shape of the data."""

    @property
    def units_(self) -> pd.Index:
        """Labels of the fitted units: ids of a long frame, columns of a wide one."""
        check_is_fitted(self, "fitted_")
        return unit_index(self._panel_shape[0], self.state_.ids, self.multivariate)

    @property
    def params_(self) -> pd.DataFrame:
        """Estimated parameters, a row a unit; NaN where a unit has no parameter of a name."""
        units = self.units_
        columns = list(dict.fromkeys(name for fitted in self.estimates_ for name in fitted.names))
        values = np.full((len(units), len(columns)), np.nan)
        place = {name: j for j, name in enumerate(columns)}
        for i, fitted in enumerate(self.estimates_):
            values[i, [place[name] for name in fitted.names]] = fitted.params
        return pd.DataFrame(values, index=units, columns=columns)

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
        return self._by_unit("spec").map(dict)

    def _by_unit(self, name: str) -> pd.Series:
        """Field of the estimates, a row a unit."""
        units = self.units_
        return pd.Series([getattr(fitted, name) for fitted in self.estimates_], units, name=name)

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
        check_is_fitted(self, "fitted_")
        units = self.units_
        if unit is None and len(units) > 1:
            return BaselineSummary(type(self).__name__, self._table())
        i = 0
        if unit is not None:
            i = units.get_indexer_for(pd.Index([unit]))[0] if isinstance(unit, Hashable) else -1
        if i < 0:
            raise KeyError(f"unit must be one of {listed(units)}; got {unit!r}")
        title = f"{type(self).__name__} of {self._named(units[[i]])}"
        return BaselineSummary(title, self._page(int(i)))

    def _fit_panel(self, panel: Panel) -> RowsState:
        n_targets = len(panel.target_names)
        if n_targets < self.least_targets:
            raise ValueError(
                f"{type(self).__name__} needs at least {self.least_targets} targets; got "
                f"{list(panel.target_names)}. Name them by target=[...]"
            )
        model, memory = self._model(), RowsState.of(panel)
        tasks = [(model, rows) for rows in self._unit_rows(memory, np.zeros(len(panel.ids), int))]
        self.estimates_ = tuple(self._in_processes(estimate_unit, tasks))
        self.state_ = memory
        self._warn_of_estimates()
        return memory

    def _forecast(
        self, memory: RowsState, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        answers = self._run("ahead", memory, self._all_ahead(future), h, levels)
        forecasts = {"": self._joined(memory, [a and a.mean for a in answers], h)}
        for level in levels:
            for k, suffix in enumerate(("lo", "hi")):
                ends = [a and a.ends[level][k] for a in answers]
                forecasts[f"-{suffix}-{level_name(level)}"] = self._joined(memory, ends, h)
        return forecasts

    def _draw_paths(
        self,
        memory: RowsState,
        h: int,
        n: int,
        future: np.ndarray | None,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Paths (n, S, h, C) that the models of the units draw, each with its own seed."""
        n_series, n_targets = len(memory.ids), memory.values.shape[1]
        per_series = self._per_series(memory)
        seeds = rng.integers(2**32, size=n_series * per_series).tolist()
        answers = self._run("paths", memory, self._all_ahead(future), h, n, seeds=seeds)
        paths = np.full((len(answers), n, h, n_targets // per_series), np.nan)
        for unit_paths, answer in zip(paths, answers, strict=True):
            if answer is not None:
                unit_paths[:] = answer.reshape(unit_paths.shape)
        by_series = paths.reshape(n_series, per_series, *paths.shape[1:])
        return by_series.transpose(2, 0, 3, 1, 4).reshape(n, n_series, h, n_targets)

    def _run(
        self,
        question: str,
        memory: RowsState,
        future: np.ndarray | None,
        *arguments: Any,
        seeds: list[int] | None = None,
    ) -> list[Any]:
        """Answers of the model about every unit, None where it has no parameters."""
        model, per_series = self._model(), self._per_series(memory)
        series = self._series_of(memory.ids)
        begun = self.state_.first_times[series]
        offsets = steps_between(begun, memory.first_times, self.freq_, self._panel_shape[0].tz)
        tasks, places = [], []
        for place, rows in enumerate(self._unit_rows(memory, offsets)):
            i, j = divmod(place, per_series)
            fitted = self.estimates_[series[i] * per_series + j]
            if not fitted.reason:
                ahead = None if future is None else future[i]
                seed = () if seeds is None else (seeds[place],)
                tasks.append((question, model, fitted, rows, ahead, *arguments, *seed))
                places.append(place)
        done = self._in_processes(ask_unit, tasks)
        answers: list[Any] = [None] * (len(memory.ids) * per_series)
        for place, (answer, _, _) in zip(places, done, strict=True):
            answers[place] = answer
        self._warn_of_answers(memory, places, done)
        return answers

    def _in_processes(self, work: Callable[..., Any], tasks: list[tuple]) -> list[Any]:
        """Results of `work` for the arguments of each task, in order.

        In other processes unless `n_jobs` is 1 or None. Matrix products have one thread, here as
        there: small ones are faster so, and an optimiser ends at the same numbers.
        """
        n_jobs, verbose = job_count(self.arguments_.n_jobs), self.arguments_.verbose
        name = type(self).__name__
        bar = {"total": len(tasks), "desc": name, "disable": not verbose, "leave": False}
        if n_jobs in (1, None) or len(tasks) < 2:
            with threadpool_limits(1):
                return list(tqdm((work(*task) for task in tasks), **bar))
        with parallel_config(backend="loky", inner_max_num_threads=1):
            parallel = Parallel(n_jobs=n_jobs, return_as="generator")
            results: Iterable[Any] = parallel(delayed(work)(*task) for task in tasks)
            return list(tqdm(results, **bar))

    def _warn_of_answers(self, memory: RowsState, places: list[int], done: list[tuple]) -> None:
        """Refuse if no unit could be forecast; warn of those that could not."""
        units = unit_index(self._panel_shape[0], memory.ids, self.multivariate)
        lost = [
            (place, reason) for place, (_, _, reason) in zip(places, done, strict=True) if reason
        ]
        if lost:
            message = (
                f"{type(self).__name__} cannot forecast {len(lost)} of {len(units)} units, "
                f"{self._named(units[[place for place, _ in lost]])}. The reason for the first: "
                f"{lost[0][1]}"
            )
            if len(lost) == len(done):
                raise ValueError(f"{message}. Check these series, or fit again")
            warn_user(f"{message}. Their forecasts are NaN")
        texts = dict.fromkeys(text for _, unit_texts, _ in done for text in unit_texts)
        if texts:
            warn_user(f"{type(self).__name__}: {'; '.join(list(texts)[:NAMES_SHOWN])}")

    def _warn_of_estimates(self) -> None:
        """Refuse if no unit could be fitted; warn of units that could not, or with warnings."""
        name, estimates = type(self).__name__, self.estimates_
        lost = [i for i, fitted in enumerate(estimates) if fitted.reason]
        if lost:
            units, reason = self._named(self.units_[lost]), estimates[lost[0]].reason
            if len(lost) == len(estimates):
                raise ValueError(f"{name} could fit no series: {units} {reason}")
            warn_user(
                f"{name} could not fit {len(lost)} of {len(estimates)} units, {units}: the first "
                f"{reason}. Their forecasts are NaN; see messages_"
            )
        warned = {i: texts for i, fitted in enumerate(estimates) if (texts := _warnings(fitted))}
        if warned:
            loose, first = list(warned), next(iter(warned.values()))[0]
            warn_user(
                f"{name}: {len(loose)} of {len(estimates)} units came with warnings, "
                f"{self._named(self.units_[loose])}. The first: {first.removesuffix('.')}. See "
                "converged_ and messages_"
            )

    def _named(self, units: pd.Index) -> str:
        """Names of the first few of some units."""
        return series_named(self._panel_shape[0], units) if self.multivariate else listed(units)

    def _unit_rows(self, memory: RowsState, offsets: np.ndarray) -> list[Rows]:
        """Rows of every unit."""
        units = []
        for i, offset in enumerate(offsets):
            values, exog = memory.values[memory.rows(i)], memory.exog[memory.rows(i)]
            known = exog if exog.shape[1] else None
            targets = [values] if self.multivariate else list(values.T)
            units += [Rows(np.array(y, order="C"), known, int(offset)) for y in targets]
        return units

    def _per_series(self, memory: RowsState) -> int:
        """Units of a series."""
        return 1 if self.multivariate else memory.values.shape[1]

    def _joined(self, memory: RowsState, parts: list[Any], h: int) -> np.ndarray:
        """Forecasts of units as (S, h, C), NaN where there are none."""
        n_series, n_targets = len(memory.ids), memory.values.shape[1]
        width = n_targets // self._per_series(memory)
        joined = np.full((len(parts), h, width), np.nan)
        for place, part in enumerate(parts):
            if part is not None:
                joined[place] = part.reshape(h, -1)
        return joined.reshape(n_series, -1, h, width).swapaxes(1, 2).reshape(n_series, h, -1)

    def _page(self, i: int) -> str:
        """The library's page about one unit, rebuilt from rows and parameters."""
        fitted = self.estimates_[i]
        if fitted.reason:
            return f"The unit {fitted.reason}"
        offsets = np.zeros(len(self.state_.ids), int)
        rows, n = self._unit_rows(self.state_, offsets)[i], fitted.n_rows
        rows = Rows(rows.y[:n], None if rows.exog is None else rows.exog[:n])
        with recorded():
            page = self._model().estimated(fitted).page(fitted, rows)
        # Without the time at which the library wrote it.
        page = _WHEN.sub(lambda match: match[1] + " " * len(match[2]), page)
        return "\n".join([page, *fitted.messages])

    def _table(self) -> str:
        """Table of the estimates, a row a unit."""
        model = self._model()
        columns = {"rows": "n_rows", "log-likelihood": "loglik", "AIC": "aic"}
        columns["converged"] = "converged"
        orders = [model.estimated(fitted).orders(fitted) for fitted in self.estimates_]
        values = {
            column: [getattr(fitted, name) for fitted in self.estimates_]
            for column, name in columns.items()
        }
        table = pd.DataFrame({"model": orders} | values, index=self.units_)
        return table.to_string(max_rows=20, float_format=lambda value: f"{value:.3f}", na_rep="-")

    def _header(self) -> dict[str, Any]:
        return estimates_header(self.estimates_) | {"horizon": self.horizon_}

    def _arrays(self) -> dict[str, np.ndarray]:
        return estimates_arrays(self.estimates_) | self.state_.arrays()

    def _revive(
        self,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        ids: pd.Index,
        last_times: np.ndarray,
    ) -> RowsState:
        n_targets = self._widths()[0]
        per_series = 1 if self.multivariate else n_targets
        estimates = {name: array for name, array in arrays.items() if name.startswith(ESTIMATES)}
        rows = {name: array for name, array in arrays.items() if name not in estimates}
        memory = RowsState.revived(rows, ids, last_times, self._widths())
        check_estimates(header, estimates, np.repeat(memory.lengths, per_series))
        if n_targets < self.least_targets:
            raise refuse("layout.target_names", f"at least {self.least_targets}", n_targets)
        for name in ORDERS:
            check_lags(getattr(self, name, None), max(MOST_LAGS, len(memory.values)), name)
        with as_saved("params"):
            model = self._model()
            job_count(self.n_jobs)
        self.estimates_ = revived_estimates(header, estimates)
        self.horizon_ = header["horizon"]
        seen: set[tuple[int, str]] = set()
        for i, fitted in enumerate(self.estimates_):
            values, exog = (a[memory.rows(i // per_series)] for a in (memory.values, memory.exog))
            y = values if self.multivariate else values[:, i % n_targets]
            check_unit(model, i, fitted, Rows(y, exog if exog.shape[1] else None), seen)
        return memory


def _warnings(fitted: Fitted) -> list[str]:
    """Messages of a unit to warn of: not those of where the optimiser started from."""
    if fitted.reason:
        return []
    texts = [text for text in fitted.messages if STARTING not in text]
    return texts if fitted.converged else [*texts, "the optimiser did not converge"]


def estimate_unit(model: UnitModel, rows: Rows) -> Fitted:
    """Estimates of a unit, or the reason why there are none."""
    left_out, plain = model.season_left_out(rows), model.seasonless()
    if left_out and plain is not None:
        fitted = estimate_unit(plain, rows)
        spec = fitted.spec | {SEASONLESS: True}
        return replace(fitted, spec=spec, messages=(left_out, *fitted.messages))
    reason = (plain or model).refusal(rows)
    if reason:
        return Fitted(reason=reason, n_rows=len(rows.y), converged=False)
    texts: list[str] = []
    try:
        with recorded() as texts:
            fitted = model.estimate(rows)
        if not np.isfinite(fitted.params).all():
            reason = "gives parameters that are not finite"
    except Exception as error:  # of whatever kind the library raises
        reason = f"cannot be fitted: {type(error).__name__}: {error}"
    if reason:
        return Fitted(reason=reason, n_rows=len(rows.y), converged=False, messages=(*texts, reason))
    return replace(fitted, n_rows=len(rows.y), messages=(*texts, *fitted.messages))


def ask_unit(
    question: str,
    model: UnitModel,
    fitted: Fitted,
    rows: Rows,
    future: np.ndarray | None,
    *arguments: Any,
) -> tuple[Any, list[str], str]:
    """Ask a model about a unit, by the name of its method.

    Returns
    -------
    answer : object
        None where there is a reason.
    texts : list of str
        Warnings of the library.
    reason : str
        Reason why there is no answer; empty if there is one.
    """
    texts: list[str] = []
    try:
        with recorded() as texts:
            answer = getattr(model.estimated(fitted), question)(fitted, rows, future, *arguments)
    except Exception as error:  # of whatever kind the library raises
        return None, texts, f"{type(error).__name__}: {error}"
    if not is_finite(answer):
        return None, texts, "numbers that are not finite"
    return answer, texts, ""


def is_finite(answer: Ahead | np.ndarray) -> bool:
    """Whether all numbers of an answer are finite."""
    if isinstance(answer, np.ndarray):
        return bool(np.isfinite(answer).all())
    parts = [answer.mean, *(end for ends in answer.ends.values() for end in ends)]
    return all(bool(np.isfinite(part).all()) for part in parts)


def counts(name: str, value: Any, what: str, n: int) -> tuple[int, ...]:
    """Argument of n integers of at least 0; an error names them as `what`."""
    listed = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == n
    if not listed or not all(is_count(item) for item in value):
        raise ValueError(f"{name} must be {n} integers {what} of at least 0; got {value!r}")
    return tuple(int(item) for item in value)


def is_count(value: Any) -> bool:
    """Whether a value is an integer of at least 0."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 0
