"""Weights of a combination by a recurrent network that was trained before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tsrnn.contract import Forecaster

if TYPE_CHECKING:
    from tsrnn.prior import Combined, Forecasts, TrainedCombiner

NETWORK = "network"
PRIOR = "ParaRNNForecaster"
GUARANTEE = (
    "Intervals: quantiles of the prior network around the combination, learned on other series. "
    "They cover with the stated probability on average over series like those; no guarantee holds "
    "for one series. See a backtest for coverage on these data."
)


def member_order(members: Mapping[str, Any]) -> list[int]:
    """Places of the members that the network combines, in its order, the prior network the last.

    Raises
    ------
    ValueError
        If the members are not those whose forecasts the network has learned to weigh.
    """
    from tsrnn.prior import COMBINED  # torch is imported with it, for this combination alone

    classes = [type(member).__name__ for member in members.values()]
    wanted = [*COMBINED, PRIOR]
    if sorted(classes) != sorted(wanted):
        raise ValueError(
            f"weights={NETWORK!r} are learned for forecasts of {', '.join(COMBINED)} and the "
            f"prior network, one of each; got {', '.join(classes)}. Take "
            "Combination.recurrent(), or other weights"
        )
    order = [classes.index(name) for name in wanted]
    prior = list(members.values())[order[-1]].prior
    if not (isinstance(prior, str) and prior == "only"):
        raise ValueError(
            f"weights={NETWORK!r} need the prior network that comes with the package, "
            f"{PRIOR}(prior='only'); got prior={prior!r}"
        )
    return order


def combine_by_network(
    combiner: TrainedCombiner, members: Mapping[str, Forecaster], states: tuple[Any, ...], h: int
) -> tuple[Combined, np.ndarray]:
    """Combined forecasts of all units, series by series, target by target.

    Returns
    -------
    Combined
        Its weights (U, k, h) in the order of the members.
    ndarray of shape (k, S, C)
        True where a member has forecasts.
    """
    from tsrnn.prior import Combined

    order, models = member_order(members), [member.fitted_ for member in members.values()]
    prior_model: Any = models[order[-1]]
    prior: Forecasts = prior_model.forecasts(states[order[-1]], h)
    points = np.stack([models[i].forecast(states[i], h, [], None)[""] for i in order[:-1]])
    _, n_series, _, n_targets = points.shape
    by_unit = points.transpose(1, 3, 0, 2).reshape(n_series * n_targets, len(order) - 1, h)
    combined = combiner.combine(prior, by_unit, prior_model.season_length)
    there = np.ones((len(order), n_series, n_targets), bool)
    there[order[:-1]] = np.isfinite(points).all(2)
    weights = combined.weights[:, np.argsort(order)]
    return Combined(combined.median, combined.quantiles, weights), there


def shipped_combiner() -> TrainedCombiner:
    """Network that comes with the package."""
    from tsrnn.prior import trained_combiner

    return trained_combiner()


def combiner_shapes(size: dict[str, int]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Types and shapes of the arrays of a network in a file."""
    from tsrnn.prior import TrainedCombiner

    return TrainedCombiner.shapes(size)


def combiner_from_file(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> TrainedCombiner:
    """Network of a file."""
    from tsrnn.prior import TrainedCombiner

    return TrainedCombiner.from_file(header, arrays)
