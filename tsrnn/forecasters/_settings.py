"""Constructor arguments resolved: presets, legal values, defaults that follow from the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tsrnn.contract import (
    choice,
    flag,
    habits,
    number,
    positive_integer,
    verbosity,
    warn_user,
)
from tsrnn.data import Panel
from tsrnn.forecasters._boxcox import boxcox_lambda
from tsrnn.forecasters._distribution import HEADS
from tsrnn.layers import AGGREGATIONS, LayerChoice
from tsrnn.training import LARGEST_RATE

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
    "aggregation": AGGREGATIONS,
    "multivariate": ("independent", "joint"),
    "intervals": ("conformal", "gaussian", *HEADS),
}
_POSITIVE_INTEGERS = (
    "horizon", "input_size", "hidden_size", "n_layers", "batch_size", "max_epochs", "patience",
    "val_size", "n_estimators",
)  # fmt: skip
WINDOWS_TO_JUDGE = 10  # each with its horizon
FEWEST_ROWS = 8  # of any series
MANY_SERIES = 30  # that validate together, so that less of each does
_MAY_BE_NONE = {"horizon", "input_size", "patience", "val_size"}
_FLAGS = ("local_level", "linear_path", "refit")
LOSSES = ("mse", "mae")


@dataclass(frozen=True)
class Settings:
    """Everything a fit needs to know besides the data.

    `input_size` is chosen among `input_sizes`, where there are several, before anything is
    estimated. `layer` names the recurrent layers and `options` is what they take beside their
    sizes.
    """

    horizon: int
    input_size: int
    input_sizes: tuple[int, ...]
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
        for name in ("seasons", "input_sizes"):  # files have lists
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def joint(self) -> bool:
        """Whether all targets of a series are forecast from all of them."""
        return self.multivariate == "joint"

    @property
    def judges_level(self) -> bool:
        """Whether the validation part is long enough to tell if series revert to a mean.

        On few windows it is chance whether a series without a mean seems to have one.
        """
        return self.val_size >= WINDOWS_TO_JUDGE * (self.input_size + self.horizon)

    def training_rows(self, lengths: np.ndarray) -> np.ndarray:
        """Rows of series before the validation part, or all of those too short to have one."""
        validated = lengths >= _rows_of_both(self.horizon, self.val_size)
        return np.where(validated, lengths - self.val_size, lengths)


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
    filled["learning_rate"] = number(
        "learning_rate", filled["learning_rate"], lowest=0.0, open_=True, highest=LARGEST_RATE
    )
    filled["weight_decay"] = number("weight_decay", filled["weight_decay"], lowest=0.0, open_=False)
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
        If series are too short for the horizon or the validation part; the message names one.

    Warns
    -----
    UserWarning
        If some are too short to validate, so that they only train.
    """
    habit = habits(panel.freq)
    lengths = panel.lengths
    horizon = filled["horizon"] or max(1, min(habit.horizon, int(lengths.min()) // 3))
    _check_lengths(panel, horizon)
    long = lengths[lengths >= _needed(horizon)]
    val_size = filled["val_size"] or _validation_size(long, horizon)
    if val_size < horizon:
        raise ValueError(
            f"val_size must be at least the horizon, {horizon}, so that there are errors of every "
            f"step; got {val_size}. Take a larger val_size, or a smaller horizon"
        )
    needed = _rows_of_both(horizon, val_size)
    if needed > lengths.max():
        left = max(0, int(lengths.max()) - val_size)
        raise ValueError(
            f"val_size={val_size} leaves {left or 'none'} of the {lengths.max()} rows of "
            f"{_longest(panel)} to train on; at least {horizon + 2} are needed for "
            f"horizon={horizon}. Take a smaller val_size"
        )
    if needed > lengths.min():
        _warn_of_short(panel, needed)
    half = max(2, (int(lengths[lengths >= needed].min()) - val_size) // 2)
    given = filled["input_size"]
    if given is not None and given > lengths.max():
        raise ValueError(
            f"input_size={given} is a window of {given:,} rows; {_longest(panel)} has "
            f"{lengths.max()}. Take a smaller input_size, or leave it out: it is then chosen from "
            "the data"
        )
    input_size = given or min(habit.input_size, half)
    choice_of = () if given or not filled["linear_path"] else habit.input_sizes
    input_sizes = tuple(dict.fromkeys(min(size, half) for size in choice_of)) or (input_size,)
    names = {f.name for f in Settings.__dataclass_fields__.values()}
    chosen = {k: v for k, v in filled.items() if k in names}
    chosen |= {"horizon": horizon, "val_size": val_size}
    chosen |= {"input_size": input_size, "input_sizes": input_sizes}
    return Settings(
        **chosen, season=habit.season, seasons=habit.seasons, layer=layer.name,
        options=layer.options,
    )  # fmt: skip


def _validation_size(lengths: np.ndarray, horizon: int) -> int:
    """Enough for twenty forecast errors of every step, and a fifth of the data if series are few.

    At most a third of the shortest series.
    """
    shortest = int(lengths.min())
    few = len(lengths) < MANY_SERIES
    wanted = max(math.ceil(0.2 * shortest) if few else 0, horizon + 20)
    return min(wanted, max(shortest // 3, 1))


def _needed(horizon: int) -> int:
    """Rows of a series that the size of the validation part is chosen by."""
    return max(FEWEST_ROWS, 3 * horizon)


def _rows_of_both(horizon: int, val_size: int) -> int:
    """Least rows of a series that trains and validates."""
    return val_size + horizon + 2


def _check_lengths(panel: Panel, horizon: int) -> None:
    lengths, needed = panel.lengths, _needed(horizon)
    if (longest := int(lengths.max())) < needed:
        raise ValueError(
            f"a series needs at least {needed} rows for horizon={horizon}, to train and to "
            f"validate; {_longest(panel)} has {longest}. Give more rows, or take a smaller horizon"
        )
    if (shortest := int(lengths.min())) < FEWEST_ROWS:
        name = panel.ids[int(np.argmin(lengths))]
        raise ValueError(
            f"every series needs at least {FEWEST_ROWS} rows; {(lengths < FEWEST_ROWS).sum()} of "
            f"{len(lengths)} have fewer, the series {name!r} has {shortest}. Give more rows, or "
            "drop these series"
        )


def _warn_of_short(panel: Panel, needed: int) -> None:
    short = np.flatnonzero(panel.lengths < needed)
    warn_user(
        f"{len(short)} of {len(panel.lengths)} series have fewer than the {needed} rows that it "
        f"takes to train and to validate, the first is {panel.ids[short[0]]!r}: they train only, "
        "and their intervals come from the other series' errors"
    )


def _longest(panel: Panel) -> str:
    if panel.layout.id_col is None:
        return "this series"
    return f"the longest, {panel.ids[int(np.argmax(panel.lengths))]!r},"
