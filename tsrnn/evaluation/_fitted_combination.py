"""Fitted members of a combination: their states, and forecasts that are combined."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from tsrnn.contract import (
    Arguments,
    ClassicalModel,
    FittedData,
    Forecaster,
    Support,
    forecast_suffixes,
    unit_index,
)
from tsrnn.data import Layout, Panel, quote_series, quoted, warn_user
from tsrnn.evaluation._models import named_models, panel_shown
from tsrnn.evaluation._recurrent import GUARANTEE, combine_by_network, last_columns, prior_place

if TYPE_CHECKING:
    from tsrnn.prior import Combined, TrainedCombiner


@dataclass(frozen=True, eq=False)
class CombinedState:
    """States of all members after the same rows."""

    members: tuple[Any, ...]

    @property
    def ids(self) -> pd.Index:
        """Names of the series, (S,)."""
        return self.members[0].ids

    @property
    def last_times(self) -> np.ndarray:
        """Last times of the series, (S,)."""
        return self.members[0].last_times

    @property
    def target_scale(self) -> np.ndarray:
        """Standard deviations (S, C) in the data fitted to."""
        return self.members[0].target_scale

    def select(self, series: np.ndarray) -> CombinedState:
        """Select series by position."""
        return CombinedState(tuple(member.select(series) for member in self.members))

    def replaced(self, series: np.ndarray, new: CombinedState) -> CombinedState:
        """Replace the series at these positions by those of `new`."""
        pairs = zip(self.members, new.members, strict=True)
        return CombinedState(tuple(old.replaced(series, newer) for old, newer in pairs))


@dataclass(frozen=True, eq=False)
class FittedCombination(ClassicalModel[CombinedState]):
    """Fitted members by name and their weights, (k,) or of each series (k, S, C).

    `validation` (k + 1,) has root mean squared scaled errors of the members and the combination.
    With a `combiner`, weights follow from the forecasts, and `weights` are equal. `left_out` has
    the errors, by name, of members that could be fitted to no series; files do not keep them.
    """

    arguments: Arguments
    data: FittedData
    horizon: int
    members: dict[str, Forecaster]
    weights: np.ndarray
    validation: np.ndarray | None
    combiner: TrainedCombiner | None = None
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def point(self) -> str:
        """Statistic of the forecast distribution that the point forecast estimates."""
        members = {member.fitted_.point for member in self.members.values()}
        if self.combiner is not None or members == {"median"}:
            return "median"
        middle = "median" if self.arguments.combine == "median" else "average"
        return "mean" if members == {"mean"} and middle == "average" else f"{middle} of the members"

    @property
    def model_guarantee(self) -> str:
        if self.arguments.combine == "median":
            return "None: the ends are medians of those of the members."
        if self.combiner is not None:
            return GUARANTEE
        return (
            "None: the ends are averages of those of the members, which tends to cover too much "
            "where these are calibrated."
        )

    def filter(self, panel: Panel) -> CombinedState:
        members = self.members.values()
        return CombinedState(tuple(m.fitted_.filter(panel_shown(m, panel)) for m in members))

    def advance(self, state: CombinedState, panel: Panel) -> CombinedState:
        pairs = zip(self.members.values(), state.members, strict=True)
        return CombinedState(
            tuple(m.fitted_.advance(past, panel_shown(m, panel)) for m, past in pairs)
        )

    def with_layout(self, layout: Layout) -> Self:
        members = {}
        for name, member in self.members.items():
            members[name] = copy.copy(member)
            # the layout of a member without columns lacks their labels: replace fields, not all
            theirs = replace(
                member.fitted_.data.layout, closed=layout.closed, row_times=layout.row_times
            )
            members[name].fitted_ = member.fitted_.with_layout(theirs)
        return replace(super().with_layout(layout), members=members)

    def with_supports(self, supports: tuple[Support, ...]) -> Self:
        members = {name: copy.copy(member) for name, member in self.members.items()}
        for member in members.values():
            if member.fitted_.recognises_support:  # from the same rows as the combination
                member.fitted_ = member.fitted_.with_supports(supports)
        return replace(super().with_supports(supports), members=members)

    def model_forecast(
        self, state: CombinedState, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        if self.combiner is not None:
            return self._forecast_by_network(self.combiner, state, h, levels, future)
        weights = self.weights[:, None, None]  # (k, S or 1, C or 1)
        if self.weights.ndim > 1:
            weights = self.weights[:, self.data.series_of(state.ids, self.arguments.class_name)]
        counts = np.flatnonzero(weights.any((1, 2)))
        if not len(counts):  # of series that no member could be fitted to
            counts = np.arange(len(self.members))
        forecasts = self._member_forecasts(counts.tolist(), state, h, levels, future)
        there = np.isfinite(np.stack([parts[""] for parts in forecasts])).all(2)  # (k, S, C)
        weights = weights[counts]
        self.warn_of_lost(state.ids, there, weights != 0, counts)
        combined = {}
        for suffix in forecasts[0]:
            values = np.stack([parts[suffix] for parts in forecasts])
            if self.arguments.combine == "median":
                combined[suffix] = median(values, there[:, :, None])
            else:
                combined[suffix] = weighted_mean(values, (weights * there)[:, :, None])
        return combined

    def _forecast_by_network(
        self,
        combiner: TrainedCombiner,
        state: CombinedState,
        h: int,
        levels: list[float],
        future: np.ndarray | None,
    ) -> dict[str, np.ndarray]:
        combined, there = self._combined_by_network(combiner, state, h, future)
        self.warn_of_lost(state.ids, there, np.ones_like(there), np.arange(len(there)))
        tails = [0.5 + side * level / 200 for level in levels for side in (-1, 1)]
        parts = np.concatenate([combined.median[:, None], combined.at(tails)], 1)
        by_series = parts.reshape(len(state.ids), -1, len(tails) + 1, h).transpose(2, 0, 3, 1)
        return dict(zip(forecast_suffixes(levels), by_series, strict=True))

    def weights_by_network(self, state: CombinedState) -> np.ndarray:
        """Mean weights over the steps of the horizon, (k, N) of each target of each series.

        Columns known ahead keep their last values.
        """
        assert self.combiner is not None
        future = last_columns(self.data, state.members[prior_place(self.members)], self.horizon)
        combined, _ = self._combined_by_network(self.combiner, state, self.horizon, future)
        return combined.weights.mean(2).T

    def _combined_by_network(
        self, combiner: TrainedCombiner, state: CombinedState, h: int, future: np.ndarray | None
    ) -> tuple[Combined, np.ndarray]:
        """Combined forecasts of all units, and a mask (k, S, C) of members with forecasts."""
        prior = prior_place(self.members)
        others = [i for i in range(len(self.members)) if i != prior]
        points = np.zeros((len(self.members), len(state.ids), h, self.data.n_targets))
        if others:
            forecasts = self._member_forecasts(others, state, h, [], future)
            points[others] = [parts[""] for parts in forecasts]
        there = np.asarray(np.isfinite(points).all(axis=2))
        member = list(self.members.values())[prior]
        model: Any = member.fitted_
        drawn = model.forecasts(state.members[prior], h, self._known_to(member, future))
        return combine_by_network(combiner, self.members, drawn, points, model.season_length), there

    def _known_to(self, member: Forecaster, future: np.ndarray | None) -> np.ndarray | None:
        """Select the columns ahead (S, h, n) that a member takes."""
        columns = [
            self.data.known_ahead.index(column) for column in member.fitted_.data.known_ahead
        ]
        return future[..., columns] if future is not None and columns else None

    def _member_forecasts(
        self,
        places: Sequence[int],
        state: CombinedState,
        h: int,
        levels: list[float],
        future: np.ndarray | None,
    ) -> list[dict[str, np.ndarray]]:
        """Forecasts of these members; NaN of one that raises, ValueError if they all do."""
        members = list(self.members.items())
        forecasts: dict[int, dict[str, np.ndarray]] = {}
        failures: dict[str, Exception] = {}
        for i in places:
            name, member = members[i]
            known = self._known_to(member, future)
            try:
                forecasts[i] = member.fitted_.forecast(state.members[i], h, levels, known)
            except ImportError:
                raise
            except Exception as error:  # members of users may raise anything
                failures[name] = error
        reasons = "; ".join(f"{name!r}: {error}" for name, error in failures.items())
        if not forecasts:
            first = next(iter(failures.values()))
            raise ValueError(f"no member of the combination can forecast. {reasons}") from first
        if failures:
            warn_user(f"members of the combination cannot forecast. {reasons}")
        shapes = next(iter(forecasts.values()))
        nothing = {end: np.full_like(part, np.nan) for end, part in shapes.items()}
        return [forecasts.get(i, nothing) for i in places]

    @property
    def messages(self) -> list[tuple[str, ...]]:
        """Errors and warnings of the members, by target of each series."""
        n = len(unit_index(self.data.layout, self.data.ids, multivariate=False))
        common = [f"{name!r}: {reason}" for name, reason in self.left_out.items()]
        texts: list[list[str]] = [list(common) for _ in range(n)]
        for name, member in self.members.items():
            of_member = getattr(member, "messages_", None)
            if of_member is None:
                continue
            # A multivariate model has one message for all targets of a series.
            for i, parts in enumerate(np.repeat(of_member.to_numpy(), n // len(of_member))):
                texts[i] += [f"{name!r}: {text}" for text in parts]
        # Sentences, as they are joined to a page.
        return [tuple(f"{text.removesuffix('.')}." for text in parts) for parts in texts]

    def warn_of_left_out(self) -> None:
        """Name the members that could not be fitted, with their reasons."""
        if self.left_out:
            names = ", ".join(map(repr, self.left_out))
            reasons = "; ".join(self.left_out.values())
            rest = "the median is of" if self.arguments.combine == "median" else "the weights go to"
            warn_user(
                f"the combination leaves out {names}, which could not be fitted: {rest} the other "
                f"members. {reasons}"
            )

    def warn_of_lost(
        self, ids: pd.Index, there: np.ndarray, weighted: np.ndarray, counts: np.ndarray
    ) -> None:
        """Warn of series that some members, or all, do not forecast.

        `there` (k, S, C) marks forecasts, `weighted` nonzero weights; `counts` (k,) are the
        numbers of these members.
        """
        labels = unit_index(self.data.layout, ids, multivariate=False)
        nobody = ~(there & weighted).any(0) & weighted.any(0)
        without = np.flatnonzero(nobody)
        if len(without):
            first = quote_series(labels[without[:1]])
            warn_user(
                f"{len(without)} of {len(labels)} series, the first {first}, "
                "are forecast by no member: their forecasts are NaN; see messages_"
            )
        lost = ~there & weighted & ~nobody
        series = np.flatnonzero(lost.any(0))
        if len(series):
            names = [list(self.members)[i] for i in counts[lost.any((1, 2))]]
            rest = "the median is of" if self.arguments.combine == "median" else "the weights go to"
            first = quote_series(labels[series[:1]])
            warn_user(
                f"{len(series)} of {len(labels)} series, the first {first}, are "
                f"not forecast by {quoted(names)}: {rest} the other members"
            )

    def to_file(self, state: CombinedState) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays, parts = {"weights": self.weights}, {}
        if self.validation is not None:
            arrays["validation"] = self.validation
        pairs = zip(self.members.items(), state.members, strict=True)
        for place, ((name, member), past) in enumerate(pairs):
            parts[name], member_arrays = member._at(past)._to_file()
            arrays |= {f"{place}/{key}": array for key, array in member_arrays.items()}
        given = named_models(self.arguments.forecasters)
        header = {
            "horizon": self.horizon,
            "members": parts,
            "horizons": {name: member.horizon for name, member in given.items()},
            "validated": self.validation is not None,
        }
        if self.combiner is not None:
            header["combiner"], weights = self.combiner.to_file()
            arrays |= weights
        return header, arrays


def weighted_mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted means (S, h, C) of values (k, S, h, C); NaN where all weights are zero."""
    total = weights.sum(0)
    shares = weights / np.where(total != 0, total, np.nan)
    # 0 * NaN is NaN: members without weight are set to zero first.
    means: np.ndarray = (shares * np.where(weights != 0, values, 0.0)).sum(0)
    return means


def median(values: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Medians (S, h, C) of values (k, S, h, C) over the members marked in `there`.

    NaN where none is marked, or a marked one is NaN, as an end of an interval may be.
    """
    count = np.broadcast_to(there.sum(0), values.shape[1:])
    ordered = np.sort(np.where(there, values, np.inf), 0)
    middle = (np.maximum(count - 1, 0) // 2, np.minimum(count // 2, len(values) - 1))
    low, high = (np.take_along_axis(ordered, place[None], 0)[0] for place in middle)
    known = (count > 0) & ~np.isnan(np.where(there, values, 0.0)).any(0)
    return np.where(known, (low + high) / 2, np.nan)
