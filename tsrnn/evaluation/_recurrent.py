"""Weights of a combination by a recurrent network that was trained before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tsrnn.contract import FittedData, Forecaster

if TYPE_CHECKING:
    from tsrnn.prior import Combined, Forecasts, TrainedCombiner

NETWORK = "network"
PRIOR = "ParaRNNForecaster"
GUARANTEE = (
    "Intervals: quantiles of the prior network around the combination, learned on other series. "
    "They cover with the stated probability on average over series like those; no guarantee holds "
    "for one series. See a backtest for coverage on these data."
)


def check_members(members: Mapping[str, Any]) -> None:
    """Refuse members other than those that the network was trained to combine."""
    from tsrnn.prior import COMBINED  # torch is imported with it, for this combination alone

    classes = [type(member).__name__ for member in members.values()]
    wanted = [*COMBINED, PRIOR]
    if sorted(classes) != sorted(wanted):
        raise ValueError(
            f"weights={NETWORK!r} are learned for forecasts of {', '.join(COMBINED)} and the "
            f"prior network, one of each; got {', '.join(classes)}. Take "
            "Combination.recurrent(), or other weights"
        )
    member = list(members.values())[classes.index(PRIOR)]
    prior, cell = member.prior, member.cell
    if not (isinstance(prior, str) and prior == "only" and cell == "rnn"):
        raise ValueError(
            f"weights={NETWORK!r} need the prior network that comes with the package, "
            f"{PRIOR}(prior='only'); got prior={prior!r}, cell={cell!r}"
        )


def network_places(members: Mapping[str, Any]) -> list[int]:
    """Positions of fitted members among the inputs of the network; the prior network is last.

    ValueError for other members than `check_members` allows, or without the prior network.
    """
    from tsrnn.prior import COMBINED

    classes, inputs = [type(member).__name__ for member in members.values()], [*COMBINED, PRIOR]
    if PRIOR not in classes or not set(classes) <= set(inputs) or len(set(classes)) < len(classes):
        raise ValueError(
            f"weights={NETWORK!r} combine the prior network with {', '.join(COMBINED)}, one of "
            f"each; got {', '.join(classes)}"
        )
    return [inputs.index(name) for name in classes]


def prior_place(members: Mapping[str, Any]) -> int:
    """Position of the prior network among fitted members."""
    return [type(member).__name__ for member in members.values()].index(PRIOR)


def last_columns(data: FittedData, prior_state: Any, h: int) -> np.ndarray | None:
    """Repeat the last values of the columns known ahead, (S, h, n); None without any."""
    if not data.known_ahead or prior_state.columns is None:
        return None
    last = prior_state.columns.memory.recent[:, -1:]
    places = [data.exog_names.index(name) for name in data.known_ahead]
    return np.repeat(last[..., places], h, 1)


def combine_by_network(
    combiner: TrainedCombiner,
    members: Mapping[str, Forecaster],
    prior: Forecasts,
    member_points: np.ndarray,
    season_length: int,
) -> Combined:
    """Combined forecasts of all units, with weights (U, k, h) in the order of the members.

    `prior` has the forecasts of the prior network; its row in `member_points` (k, S, h, C) is not
    read. These are NaN where a member has no forecast.
    """
    from tsrnn.prior import COMBINED, Combined

    places = network_places(members)
    _, n_series, h, n_targets = member_points.shape
    inputs = np.full((len(COMBINED) + 1, n_series, h, n_targets), np.nan)
    inputs[places] = member_points
    by_unit = inputs[:-1].transpose(1, 3, 0, 2).reshape(n_series * n_targets, len(COMBINED), h)
    combined = combiner.combine(prior, by_unit, season_length)
    return Combined(combined.median, combined.quantiles, combined.weights[:, places])
