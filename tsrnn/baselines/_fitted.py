"""Models of statsmodels and arch behind the forecaster contract, unit by unit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from tsrnn.baselines._memory import RowsMemory
from tsrnn.baselines._results import Results
from tsrnn.baselines._rows import RowsForecaster
from tsrnn.baselines._stored import (
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
from tsrnn.baselines._text import BaselineSummary, listed, series_named, undated
from tsrnn.baselines._unit import Fitted, Rows, UnitModel
from tsrnn.baselines._work import attempt, each, estimated
from tsrnn.contract import (
    as_saved,
    job_count,
    level_name,
    recorded,
    refuse,
    tell,
    unit_index,
    with_shared_arguments,
)
from tsrnn.data import Panel, steps_between

NAMES_SHOWN = 3
STARTING = "starting"  # in what statsmodels says of values that the optimiser starts from


@with_shared_arguments
class FittedForecaster(Results, RowsForecaster):
    """Base of the models with parameters; not to be used by itself.

    Parameters are estimated once, at `fit`. A forecast runs the model at these parameters over
    the rows seen. A subclass answers `_model`: a `UnitModel` with the arguments checked, which
    estimates and forecasts one unit. Units are numbered series by series, within a series
    target by target; a multivariate model has one unit a series.

    Parameters
    ----------
    n_jobs : int
        Processes that share the units; -1 takes all cores.
    **shared
        All other arguments are those of `CommonArguments`.
    """

    least_targets: ClassVar[int] = 1
    _guarantee: ClassVar[str] = (
        "That of statsmodels or arch: asymptotic, the parameters taken as known. Holds if the "
        "model is right."
    )

    def __init__(self, *, n_jobs: int = 1, **shared: Any) -> None:
        super().__init__(**shared)
        self.n_jobs = n_jobs

    @abstractmethod
    def _model(self) -> UnitModel:
        """The model with the arguments, checked; the data are known by their shape."""

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
        check_is_fitted(self, "memory_")
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

    def _fit_panel(self, panel: Panel) -> RowsMemory:
        n_targets = len(panel.target_names)
        if n_targets < self.least_targets:
            raise ValueError(
                f"{type(self).__name__} needs at least {self.least_targets} targets; got "
                f"{list(panel.target_names)}. Name them by target=[...]"
            )
        model, memory = self._model(), RowsMemory.of(panel)
        tasks = [(model, rows) for rows in self._units_of(memory, np.zeros(len(panel.ids), int))]
        self.estimates_ = tuple(self._shared_out(estimated, tasks))
        self.memory_ = memory
        self._report()
        return memory

    def _forecast(
        self, memory: RowsMemory, h: int, levels: list[float], future: np.ndarray | None
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
        memory: RowsMemory,
        h: int,
        n: int,
        future: np.ndarray | None,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Paths (n, S, h, C) that the models of the units draw, each with a seed of its own."""
        n_series, n_targets = len(memory.ids), memory.values.shape[1]
        per_series = self._per_series(memory)
        seeds = rng.integers(2**32, size=n_series * per_series).tolist()
        answers = self._run("paths", memory, self._all_ahead(future), h, n, seeds=seeds)
        paths = np.full((len(answers), n, h, n_targets // per_series), np.nan)
        for own, answer in zip(paths, answers, strict=True):
            if answer is not None:
                own[:] = answer.reshape(own.shape)
        by_series = paths.reshape(n_series, per_series, *paths.shape[1:])
        return by_series.transpose(2, 0, 3, 1, 4).reshape(n, n_series, h, n_targets)

    def _run(
        self,
        question: str,
        memory: RowsMemory,
        future: np.ndarray | None,
        *arguments: Any,
        seeds: list[int] | None = None,
    ) -> list[Any]:
        """Answers of the model about every unit, None where it has no parameters."""
        model, per_series = self._model(), self._per_series(memory)
        series = self._series_of(memory.ids)
        tasks, places = [], []
        for place, rows in enumerate(self._units_of(memory, self._offsets(memory, series))):
            i, j = divmod(place, per_series)
            fitted = self.estimates_[series[i] * per_series + j]
            if not fitted.reason:
                ahead = None if future is None else future[i]
                seed = () if seeds is None else (seeds[place],)
                tasks.append((question, model, fitted, rows, ahead, *arguments, *seed))
                places.append(place)
        done = self._shared_out(attempt, tasks)
        answers: list[Any] = [None] * (len(memory.ids) * per_series)
        for place, (answer, _, _) in zip(places, done, strict=True):
            answers[place] = answer
        self._tell(memory, places, done)
        return answers

    def _shared_out(self, work: Callable[..., Any], tasks: list[Any]) -> list[Any]:
        """Results of the tasks, in order, by as many processes as `n_jobs` says."""
        arguments = self.arguments_
        jobs = job_count(arguments.n_jobs)
        return list(each(work, tasks, jobs, arguments.verbose, type(self).__name__))

    def _tell(self, memory: RowsMemory, places: list[int], done: list[tuple]) -> None:
        """Refuse if no unit could be forecast; warn of those that could not."""
        units = unit_index(self._panel_shape[0], memory.ids, self.multivariate)
        lost = [
            (place, reason) for place, (_, _, reason) in zip(places, done, strict=True) if reason
        ]
        if lost:
            told = (
                f"{type(self).__name__} cannot forecast {len(lost)} of {len(units)} units, "
                f"{self._named(units[[place for place, _ in lost]])}. The reason for the first: "
                f"{lost[0][1]}"
            )
            if len(lost) == len(done):
                raise ValueError(f"{told}. Check these series, or fit again")
            tell(f"{told}. Their forecasts are NaN")
        texts = dict.fromkeys(text for _, own, _ in done for text in own)
        if texts:
            tell(f"{type(self).__name__}: {'; '.join(list(texts)[:NAMES_SHOWN])}")

    def _report(self) -> None:
        """Refuse estimates of which there are none; warn of units that failed or warned."""
        name, estimates = type(self).__name__, self.estimates_
        lost = [i for i, one in enumerate(estimates) if one.reason]
        if lost:
            which, reason = self._named(self.units_[lost]), estimates[lost[0]].reason
            if len(lost) == len(estimates):
                raise ValueError(f"{name} could fit no series: {which} {reason}")
            tell(
                f"{name} could not fit {len(lost)} of {len(estimates)} units, {which}: the first "
                f"{reason}. Their forecasts are NaN; see messages_"
            )
        told = {i: texts for i, one in enumerate(estimates) if (texts := _to_tell(one))}
        if told:
            loose, first = list(told), next(iter(told.values()))[0]
            tell(
                f"{name}: {len(loose)} of {len(estimates)} units came with warnings, "
                f"{self._named(self.units_[loose])}. The first: {first.removesuffix('.')}. See "
                "converged_ and messages_"
            )

    def _named(self, units: pd.Index) -> str:
        """The first few of some units in words."""
        return series_named(self._panel_shape[0], units) if self.multivariate else listed(units)

    def _units_of(self, memory: RowsMemory, offsets: np.ndarray) -> list[Rows]:
        """Rows of every unit."""
        units = []
        for i, offset in enumerate(offsets):
            values, exog = memory.values[memory.rows(i)], memory.exog[memory.rows(i)]
            known = exog if exog.shape[1] else None
            targets = [values] if self.multivariate else list(values.T)
            units += [Rows(np.array(y, order="C"), known, int(offset)) for y in targets]
        return units

    def _per_series(self, memory: RowsMemory) -> int:
        return 1 if self.multivariate else memory.values.shape[1]

    def _joined(self, memory: RowsMemory, parts: list[Any], h: int) -> np.ndarray:
        """Forecasts of units as (S, h, C), NaN where there are none."""
        n_series, n_targets = len(memory.ids), memory.values.shape[1]
        made = np.full((len(parts), h, n_targets // self._per_series(memory)), np.nan)
        for place, part in enumerate(parts):
            if part is not None:
                made[place] = part.reshape(h, -1)
        return made.reshape(n_series, -1, h, made.shape[2]).swapaxes(1, 2).reshape(n_series, h, -1)

    def _offsets(self, memory: RowsMemory, series: np.ndarray) -> np.ndarray:
        layout = self._panel_shape[0]
        begun = self.memory_.first_times[series]
        return steps_between(begun, memory.first_times, self.freq_, layout.tz)

    def _page(self, i: int) -> str:
        """The library's page about one unit, rebuilt from rows and parameters."""
        fitted = self.estimates_[i]
        if fitted.reason:
            return f"The unit {fitted.reason}"
        offsets = np.zeros(len(self.memory_.ids), int)
        rows, n = self._units_of(self.memory_, offsets)[i], fitted.n_rows
        own = Rows(rows.y[:n], None if rows.exog is None else rows.exog[:n])
        with recorded():
            page = self._model().of(fitted).page(fitted, own)
        return "\n".join([undated(page), *fitted.messages])

    def _table(self) -> str:
        model = self._model()
        table = pd.DataFrame(
            {
                "model": [model.of(one).orders(one) for one in self.estimates_],
                "rows": [one.n_rows for one in self.estimates_],
                "log-likelihood": [one.loglik for one in self.estimates_],
                "AIC": [one.aic for one in self.estimates_],
                "converged": [one.converged for one in self.estimates_],
            },
            index=self.units_,
        )
        return table.to_string(max_rows=20, float_format=lambda value: f"{value:.3f}", na_rep="-")

    def _header(self) -> dict[str, Any]:
        return estimates_header(self.estimates_) | {"horizon": self.horizon_}

    def _arrays(self) -> dict[str, np.ndarray]:
        return estimates_arrays(self.estimates_) | self.memory_.arrays()

    def _revive(
        self,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        ids: pd.Index,
        last_times: np.ndarray,
    ) -> RowsMemory:
        n_targets = self._widths()[0]
        per_series = 1 if self.multivariate else n_targets
        own = {name: array for name, array in arrays.items() if name.startswith(ESTIMATES)}
        rows = {name: array for name, array in arrays.items() if name not in own}
        memory = RowsMemory.revived(rows, ids, last_times, self._widths())
        check_estimates(header, own, np.repeat(memory.lengths, per_series))
        if n_targets < self.least_targets:
            raise refuse("layout.target_names", f"at least {self.least_targets}", n_targets)
        for name in ORDERS:
            check_lags(getattr(self, name, None), max(MOST_LAGS, len(memory.values)), name)
        with as_saved("params"):
            model = self._model()
            job_count(self.n_jobs)
        self.estimates_ = revived_estimates(header, own)
        self.horizon_ = header["horizon"]
        seen: set[tuple[int, str]] = set()
        for i, fitted in enumerate(self.estimates_):
            values, exog = (a[memory.rows(i // per_series)] for a in (memory.values, memory.exog))
            y = values if self.multivariate else values[:, i % n_targets]
            check_unit(model, i, fitted, Rows(y, exog if exog.shape[1] else None), seen)
        return memory


def _to_tell(fitted: Fitted) -> list[str]:
    """What of the messages of a unit is said aloud: not where the optimiser started from."""
    if fitted.reason:
        return []
    texts = [text for text in fitted.messages if STARTING not in text]
    return texts if fitted.converged else [*texts, "the optimiser did not converge"]
