"""Panels in which every series has a network of its own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tsrnn.contract import (
    Arguments,
    DamagedFileError,
    FittedData,
    Kind,
    Origins,
    Summary,
    anything,
    arrays_by_part,
    by_name,
    listed,
    record,
    refuse,
)
from tsrnn.data import Panel, quote
from tsrnn.forecasters._forecast_part import ForecastPart, StateOfParts
from tsrnn.interpret import WIDTH, two_columns, wrapped

if TYPE_CHECKING:
    from tsrnn.forecasters._fitted import FittedNetworks
    from tsrnn.forecasters._recurrent import RecurrentForecaster
    from tsrnn.forecasters._stability import FeatureStability
    from tsrnn.forecasters._state import RecurrentState
    from tsrnn.forecasters._with_columns import FittedWithColumns, StateWithColumns

    Network = FittedNetworks | FittedWithColumns

FITTED: dict[str, Kind] = {"members": listed(by_name(anything))}  # fields of a file

Member = tuple[Any, Any]  # networks of a series, and their state


@dataclass(frozen=True, eq=False)
class StateBySeries(StateOfParts):
    """States of the series of a panel, each of its own network, the one at its place in `numbers`.

    `by_column` is True if each network belongs to a column of a frame without ids, whose columns
    are one series to the contract; False if each belongs to a series with an id.
    """

    numbers: np.ndarray
    members: tuple[RecurrentState | StateWithColumns, ...]
    by_column: bool

    @property
    def _by_series(self) -> tuple[RecurrentState | StateWithColumns, ...]:
        return self.members[:1] if self.by_column else self.members

    @property
    def target_scale(self) -> np.ndarray:
        """Standard deviation of each target in the training part, shape (S, C)."""
        scales = [member.target_scale for member in self.members]
        return np.concatenate(scales, 1 if self.by_column else 0)

    def select(self, series: np.ndarray) -> StateBySeries:
        """Select series by position."""
        if self.by_column:
            return self
        members = tuple(self.members[i] for i in series)
        return StateBySeries(self.numbers[series], members, by_column=False)

    def replaced(self, series: np.ndarray, new: StateBySeries) -> StateBySeries:
        """Replace the series at some positions by the series of `new`."""
        if self.by_column:
            return new
        members = list(self.members)
        for i, member in zip(series, new.members, strict=True):
            members[i] = member
        return replace(self, members=tuple(members))


@dataclass(frozen=True, eq=False)
class FittedBySeries(ForecastPart[StateBySeries]):
    """Fitted networks, one a series: of an id, or of a column of a frame without ids.

    Each member equals a fit to its series alone.
    """

    arguments: Arguments
    data: FittedData
    members: tuple[Network, ...]

    @property
    def by_column(self) -> bool:
        """True if each network belongs to a column, False if to an id."""
        return self.data.layout.id_col is None

    @property
    def networks(self) -> list[FittedNetworks]:
        """Networks of the series, without the regressions on columns."""
        return [member.trained for member in self.members]

    @property
    def labels(self) -> list[Any]:
        """Ids or columns that the networks belong to."""
        return list(self.data.layout.target_names if self.by_column else self.data.ids)

    @property
    def horizon(self) -> int:  # type: ignore[override]
        """Default number of forecast steps, common to all series."""
        return self.members[0].horizon

    @property
    def point(self) -> str:
        """Statistic that the point forecast estimates."""
        return self.members[0].point

    @property
    def guarantee(self) -> str:
        """Guarantee of the series whose intervals are calibrated by the fewest errors."""
        counts = [np.isfinite(member.calibration.errors).sum() for member in self.networks]
        return f"Series by series. {self.members[int(np.argmin(counts))].guarantee}"

    @property
    def trained(self) -> FittedNetworks:
        """Refuse: there are networks by series."""
        raise ValueError(
            "a forecaster fitted with per_series=True has a network, settings and errors for each "
            f"series. Ask the forecaster of one series, such as for_series({quote(self.labels[0])})"
            "; summary() has a table of all"
        )

    @property
    def network_active(self) -> bool:
        """True if the network of any series contributes to its forecasts."""
        return any(member.network_active for member in self.members)

    @property
    def regression(self) -> None:
        """Refuse: effects are by series."""
        raise ValueError(
            "effect_curves average over series with common effects; here each series has its own "
            "effects. Take those of for_series(...)"
        )

    def program(self) -> FittedNetworks:
        """Refuse: there are networks by series."""
        raise ValueError(
            "a program has one network; this forecaster was fitted with per_series=True. Export "
            "that of one series, model.for_series(id)"
        )

    def summarise(
        self, forecaster: RecurrentForecaster, stability: FeatureStability | None
    ) -> SummaryBySeries:
        """Table of the networks by series."""
        if stability is not None:
            raise ValueError(
                "stability describes the forecasts of one network; here each series has its own "
                "network. Take for_series(...).summary(stability=...)"
            )
        return summarise_by_series(self, forecaster.state_)

    def member(self, label: Any) -> tuple[int, Network]:
        """Position and networks of an id or a column of the data fitted to."""
        labels = self.labels
        # Not `list.index`: a number of numpy compares with a tuple element by element.
        numbers = {known: number for number, known in enumerate(labels)}
        if not isinstance(label, Hashable) or label not in numbers:
            kind = "column" if self.by_column else "series"
            raise ValueError(
                f"{quote(label)} is not a {kind} that was fitted to; these are "
                f"{', '.join(map(quote, labels[:3]))}{', ...' if len(labels) > 3 else ''}"
            )
        number = numbers[label]
        return number, self.members[number]

    def steps(self, method: str, h: int | None) -> int:
        """Number of steps for a method; see `FittedModel.steps`."""
        return self.members[0].steps(method, h)

    def filter(self, panel: Panel, seen: StateBySeries | None = None) -> StateBySeries:
        """State after the rows of a panel; raises if a series has no network."""
        numbers: np.ndarray = np.arange(len(self.members))
        if not self.by_column:
            numbers = self.data.ids.get_indexer(panel.ids)
            if len(unknown := [quote(label) for label in panel.ids[numbers < 0]]):
                raise ValueError(
                    f"per_series=True has a network for each series fitted to; {len(unknown)} are "
                    f"new, {', '.join(unknown[:3])}{', ...' if len(unknown) > 3 else ''}. Fit to "
                    "them as well, or with per_series=False, whose one network forecasts new "
                    "series too"
                )
        states = [
            self.members[i].filter(part, None if seen is None else seen.members[i])
            for i, part in zip(numbers, panels_of(panel), strict=True)
        ]
        return StateBySeries(numbers, tuple(states), self.by_column)

    def advance(self, state: StateBySeries, panel: Panel) -> StateBySeries:
        """Append rows to all series, given in the same order."""
        pairs = zip(self.pairs(state), panels_of(panel), strict=True)
        states = tuple(fitted.advance(past, part) for (fitted, past), part in pairs)
        return replace(state, members=states)

    def forecast(
        self, state: StateBySeries, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Forecasts (S, h, C) and their intervals, under the names of `FittedModel`."""
        return self._concatenated(
            state, future, lambda m, s, known: m.forecast(s, h, levels, known)
        )

    def rolling(
        self, state: StateBySeries, panel: Panel, origins: Origins, h: int, levels: list[float]
    ) -> dict[str, np.ndarray]:
        """Forecasts (n, h, C) from n origins within a panel after `state`."""
        pairs = zip(self.pairs(state), panels_of(panel), strict=True)
        parts = [
            fitted.rolling(past, part, origins.of_series(number), h, levels)
            for number, ((fitted, past), part) in enumerate(pairs)
        ]
        return self._concatenate(parts)

    def simulate(
        self,
        state: StateBySeries,
        h: int,
        n: int,
        future: np.ndarray | None,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Paths, shape (n, S, h, C), drawn independently for each series."""

        def draw(fitted: Network, past: Any, known: Any) -> dict[str, np.ndarray]:
            return {"": np.moveaxis(fitted.simulate(past, h, n, known, rng), 0, 1)}

        return np.moveaxis(self._concatenated(state, future, draw)[""], 1, 0)

    def contributions(
        self, state: StateBySeries, future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Additive parts, shape (S, h, C), by name; zero for series whose network lacks one."""
        return self._concatenated(state, future, lambda m, s, known: m.contributions(s, known))

    def to_file(self, state: StateBySeries) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """JSON values and arrays of a file; `from_file` is the inverse."""
        headers: list[dict[str, Any]] = []
        arrays: dict[str, np.ndarray] = {}
        for i, (fitted, past) in enumerate(self.pairs(state)):
            header, of_series = fitted.to_file(past)
            headers.append(header)
            arrays |= {f"{i}/{name}": array for name, array in of_series.items()}
        return {"members": headers}, arrays

    def pairs(self, state: StateBySeries) -> Iterator[Member]:
        """Networks of each member of a state, with the state of the member."""
        return zip((self.members[i] for i in state.numbers), state.members, strict=True)

    def _concatenated(
        self,
        state: StateBySeries,
        future: np.ndarray | None,
        compute: Callable[[Any, Any, Any], dict[str, np.ndarray]],
    ) -> dict[str, np.ndarray]:
        """Concatenated results of `compute(networks, state, future)` over the networks."""
        parts = []
        for i, (fitted, past) in enumerate(self.pairs(state)):
            row = 0 if self.by_column else i
            parts.append(compute(fitted, past, None if future is None else future[row : row + 1]))
        return self._concatenate(parts)

    def _concatenate(self, parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        """Concatenate arrays by name to shape (S, ..., C); absent arrays are zero."""
        names = dict.fromkeys(name for part in parts for name in part)
        zeros = np.zeros_like(next(iter(parts[0].values())))
        axis = -1 if self.by_column else 0
        return {
            name: np.concatenate([part.get(name, zeros) for part in parts], axis) for name in names
        }


def panels_of(panel: Panel) -> list[Panel]:
    """Split a panel into panels of one id, or of one column of a frame without ids."""
    if panel.layout.id_col is not None:
        return [panel.select(panel.ids[i : i + 1]) for i in range(panel.n_series)]
    return [
        replace(
            panel, values=panel.values[:, [c]], layout=replace(panel.layout, target_names=(name,))
        )
        for c, name in enumerate(panel.target_names)
    ]


def arguments_by_series(
    arguments: Arguments, data: FittedData
) -> list[tuple[Arguments, FittedData]]:
    """Arguments and data of the fits to the panels that `panels_of` returns."""
    alone = arguments.as_dict() | {"per_series": False}
    if data.layout.id_col is not None:
        of_series = Arguments(alone, arguments.class_name)
        rows = (slice(i, i + 1) for i in range(len(data.ids)))
        return [
            (
                of_series,
                replace(
                    data,
                    ids=data.ids[i],
                    static_values=data.static_values[i],
                    zero_shares=data.zero_shares[i],
                ),
            )
            for i in rows
        ]
    return [
        (
            Arguments(alone | {"target": name}, arguments.class_name),
            replace(
                data,
                layout=replace(data.layout, target_names=(name,)),
                zero_shares=data.zero_shares[:, [c]],
                supports=data.supports[c : c + 1],
            ),
        )
        for c, name in enumerate(data.layout.target_names)
    ]


def combine_members(
    arguments: Arguments, data: FittedData, members: Iterable[Member]
) -> tuple[FittedBySeries, StateBySeries]:
    """Combine the fitted networks and states of all series."""
    fitted, states = zip(*members, strict=True)
    model = FittedBySeries(arguments, data, fitted)
    return model, StateBySeries(np.arange(len(states)), states, model.by_column)


def members_from_file(
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
    last_times: np.ndarray,
    described: list[tuple[Arguments, FittedData]],
    read: Callable[..., Member],
) -> Iterator[Member]:
    """Read each member that `FittedBySeries.to_file` wrote by `read`; errors name its number."""
    record(FITTED)(header, "fitted")
    count = len(described)
    if len(header["members"]) != count:
        raise refuse("fitted.members", f"{count} networks", len(header["members"]))
    parts, others = arrays_by_part(arrays, count, "networks")
    if others:
        raise refuse("the arrays", f"those of {count} networks", next(iter(others)))
    by_column = described[0][1].layout.id_col is None
    for i, (pair, part) in enumerate(zip(described, header["members"], strict=True)):
        row = 0 if by_column else i
        try:
            yield read(*pair, part, parts[i], last_times[row : row + 1])
        except DamagedFileError as error:
            raise DamagedFileError(f"the network {i}: {error}") from error


@dataclass(frozen=True, eq=False, repr=False)
class SummaryBySeries(Summary):
    """Text and table of networks fitted series by series; print it.

    The table has by series: rows, the input size chosen, epochs trained, the best epoch, whether
    the network contributes, and the root mean squared error on the validation part with and without
    it.
    """

    title: str
    facts: dict[str, object]
    table: pd.DataFrame
    notes: list[str]

    def as_text(self) -> str:
        """Page as it is printed; the first and last of more than 40 series."""
        shown = self.table.to_string(max_rows=40, float_format=lambda v: f"{v:.3f}")
        rule = "=" * WIDTH
        parts = [self.title.center(WIDTH).rstrip(), rule, two_columns(self.facts), "-" * WIDTH]
        notes = [wrapped(f"[{i}] {note}") for i, note in enumerate(self.notes, 1)]
        return "\n".join([*parts, shown, rule, *notes])


def summarise_by_series(fitted: FittedBySeries, state: StateBySeries) -> SummaryBySeries:
    """Build the summary of networks fitted series by series."""
    rows = []
    for number, past in zip(state.numbers, state.members, strict=True):
        member = fitted.networks[number]
        errors = member.validation
        simple = errors.get("linear path", errors.get("level"))
        rows.append(
            {
                "rows": int(past.n_rows[0]),
                "input size": member.settings.input_size,
                "epochs": max((int(entry["epoch"]) for entry in member.history), default=0),
                "best": max(member.best_epochs),
                "active": any(member.best_epochs),
                "RMSE": errors["model"].mean(),
                "without": np.nan if simple is None else simple.mean(),
            }
        )
    name = fitted.arguments.id_col if not fitted.by_column else "column"
    table = pd.DataFrame(rows, index=pd.Index(fitted.labels, name=name))
    settings = fitted.networks[0].settings
    facts: dict[str, object] = {
        "Series": len(table),
        "Active networks": int(table["active"].sum()),
        "Frequency": fitted.data.freq,
        "Horizon": fitted.horizon,
        "Layers x hidden": f"{settings.n_layers} x {settings.hidden_size}",
        "Median RMSE": f"{table['RMSE'].median():.3f}",
    }
    title = f"{fitted.arguments.class_name} by series"
    return SummaryBySeries(title, facts, table, fitted.support_notes)
