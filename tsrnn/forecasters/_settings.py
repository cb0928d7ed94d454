"""Constructor arguments resolved: presets, legal values, defaults that follow from the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tsrnn.contract import choice, flag, habits, number, positive_integer, verbosity
from tsrnn.data import Panel
from tsrnn.forecasters._boxcox import boxcox_lambda
from tsrnn.forecasters._distribution import HEADS
from tsrnn.forecasters._layers import LayerChoice

Presets = dict[str, dict[str, Any]]

# Arguments left at None take their preset's value; a forecaster may change some of them.
PRESETS: dict[str, dict[str, Any]] = {
    "default": {
        "hidden_size": 64,
        "n_layers": 2,
        "aggregation": "linear",
        "input_projection": False,
        "local_level": True,
        "linear_path": True,
        "multivariate": "independent",
        "learning_rate": 1e-3,
        "weight_decay": 1e-2,
        "max_epochs": 30,
        "patience": 8,
        "refit": True,
    },
    # Network and training of Cai et al. (2026), sections 6.2 and D.3. They do not say how the
    # data are scaled beyond standardisation; the local level stays on, see docs/benchmarks.md.
    "paper": {
        "hidden_size": 128,
        "n_layers": 2,
        "aggregation": "ffn",
        "input_projection": True,
        "local_level": True,
        "linear_path": False,
        "multivariate": "joint",
        "learning_rate": 2e-3,
        "weight_decay": 0.0,
        "max_epochs": 800,
        "patience": None,
        "refit": False,
    },
}

_CHOICES = {
    "aggregation": ("linear", "ffn"),
    "multivariate": ("independent", "joint"),
    "intervals": ("conformal", "gaussian", *HEADS),
}
_POSITIVE_INTEGERS = (
    "horizon", "input_size", "hidden_size", "n_layers", "batch_size", "max_epochs", "patience",
    "val_size", "n_estimators",
)  # fmt: skip
MANY_SERIES = 30  # that validate together, so that less of each does
_MAY_BE_NONE = {"horizon", "input_size", "patience", "val_size"}
_FLAGS = ("local_level", "linear_path", "refit")
LOSSES = ("mse", "mae")


@dataclass(frozen=True)
class Settings:
    """Everything a fit needs to know besides the data.

    `layer` names the recurrent layers and `options` is what they take beside their sizes.
    """

    horizon: int
    input_size: int
    season: int
    seasons: tuple[int, ...]
    val_size: int
    layer: str
    options: dict[str, Any]
    hidden_size: int
    n_layers: int
    aggregation: str
    input_projection: bool
    local_level: bool
    linear_path: bool
    boxcox: float | None
    multivariate: str
    intervals: str
    loss: str
    learning_rate: float
    weight_decay: float
    batch_size: int
    max_epochs: int
    patience: int | None
    n_estimators: int
    refit: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "seasons", tuple(self.seasons))  # files have lists

    @property
    def joint(self) -> bool:
        """Whether all targets of a series are forecast from all of them."""
        return self.multivariate == "joint"


def resolve(params: dict[str, Any], presets: Presets) -> dict[str, Any]:
    """Fill arguments left at None from the preset and check every value that all forecasters have.

    Numbers and flags of numpy become those of Python, in the result alone.

    Raises
    ------
    ValueError, TypeError
        If an argument is not legal; the message says what is.
    """
    chosen = choice("preset", params["preset"], tuple(PRESETS))
    preset = PRESETS[chosen] | presets.get(chosen, {})
    filled = {k: preset[k] if v is None and k in preset else v for k, v in params.items()}
    filled |= {k: v for k, v in preset.items() if k not in filled}
    for name, legal in _CHOICES.items():
        if name in filled:
            filled[name] = choice(name, filled[name], legal)
    for name in _POSITIVE_INTEGERS:
        if name in filled and not (filled[name] is None and name in _MAY_BE_NONE):
            filled[name] = positive_integer(name, filled[name])
    filled |= {name: flag(name, filled[name]) for name in _FLAGS}
    filled["boxcox"] = boxcox_lambda(filled["use_boxcox"])
    filled["loss"] = _loss(filled["loss"], filled["intervals"])
    filled["verbose"] = verbosity(filled["verbose"])
    for name, open_ in (("learning_rate", True), ("weight_decay", False)):
        filled[name] = number(name, filled[name], lowest=0.0, open_=open_)
    return filled


def _loss(loss: Any, intervals: str) -> str:
    """Training loss: one by name, or that of the distribution that is learned."""
    if intervals in HEADS:
        if loss is not None:
            raise ValueError(
                f"intervals={intervals!r} learns by a loss of its own; got loss={loss!r}. Leave "
                "it out"
            )
        return intervals
    return choice("loss", "mse" if loss is None else loss, LOSSES)


def settings_for(filled: dict[str, Any], layer: LayerChoice, panel: Panel) -> Settings:
    """Settings of a fit to `panel`, with what follows from its frequency and lengths.

    Parameters
    ----------
    filled : dict
        What `resolve` gave.
    layer : LayerChoice
    panel : Panel

    Raises
    ------
    ValueError
        If a series is too short for the horizon or the validation part; the message names it.
    """
    habit = habits(panel.freq)
    shortest = int(panel.lengths.min())
    horizon = filled["horizon"] or max(1, min(habit.horizon, shortest // 3))
    _check_length(panel, horizon)
    val_size = filled["val_size"] or _validation_size(panel, horizon)
    if val_size < horizon:
        raise ValueError(
            f"val_size must be at least the horizon, {horizon}, so that there are errors of every "
            f"step; got {val_size}. Take a larger val_size, or a smaller horizon"
        )
    if val_size > shortest - horizon - 2:
        raise ValueError(
            f"val_size={val_size} leaves {shortest - val_size} rows of {_shortest(panel)} to "
            f"train on; at least {horizon + 2} are needed for horizon={horizon}. Take a smaller "
            "val_size"
        )
    input_size = filled["input_size"] or min(habit.input_size, max(2, (shortest - val_size) // 2))
    names = {f.name for f in Settings.__dataclass_fields__.values()}
    chosen = {k: v for k, v in filled.items() if k in names}
    chosen |= {"horizon": horizon, "input_size": input_size, "val_size": val_size}
    return Settings(
        **chosen, season=habit.season, seasons=habit.seasons, layer=layer.name,
        options=layer.options,
    )  # fmt: skip


def _validation_size(panel: Panel, horizon: int) -> int:
    """Enough for twenty forecast errors of every step, and a fifth of the data if series are few.

    At most a third of the shortest series.
    """
    shortest = int(panel.lengths.min())
    few = len(panel.lengths) < MANY_SERIES
    wanted = max(math.ceil(0.2 * shortest) if few else 0, horizon + 20)
    return min(wanted, max(shortest // 3, 1))


def _check_length(panel: Panel, horizon: int) -> None:
    shortest, needed = int(panel.lengths.min()), max(8, 3 * horizon)
    if shortest < needed:
        raise ValueError(
            f"every series needs at least {needed} rows for horizon={horizon}; "
            f"{_shortest(panel)} has {shortest}. Give more rows, drop the series, or take a "
            "smaller horizon"
        )


def _shortest(panel: Panel) -> str:
    if panel.layout.id_col is None:
        return "the series"
    return f"the series {panel.ids[int(np.argmin(panel.lengths))]!r}"
