"""Settings of a fit: presets, legal values, and defaults that follow from the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tsrnn.contract import choice, flag, frequency_defaults, number, positive_integer, verbosity
from tsrnn.data import Panel, quote, quote_series, warn_user
from tsrnn.forecasters._distribution import HEADS
from tsrnn.forecasters._scaling import boxcox_lambda
from tsrnn.forecasters._validation_part import (
    FEWEST_ROWS,
    least_rows,
    three_horizons,
    usual_horizon,
    validation_size,
)
from tsrnn.layers import AGGREGATIONS, LayerChoice, with_engine
from tsrnn.training import LARGEST_RATE

# Arguments left at None take their preset's value.
PRESETS: dict[str, dict[str, Any]] = {
    "default": {
        "hidden_size": 64,
        "n_layers": 2,
        "aggregation": "linear",
        "input_projection": False,
        "local_level": "auto",
        "linear_path": True,
        "network": "auto",
        "multivariate": "auto",
        "learning_rate": 1e-3,
        "weight_decay": 1e-2,
        "max_epochs": 30,
        "patience": 8,
        "refit": True,
    },
    # Network and training of Cai et al. (2026), sections 6.2 and D.3. They do not say how the
    # data are scaled beyond standardisation; the local level stays on, see
    # docs/benchmarks/table_s4.md.
    "paper": {
        "hidden_size": 128,
        "n_layers": 2,
        "aggregation": "ffn",
        "input_projection": True,
        "local_level": True,
        "linear_path": False,
        "network": True,
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
    "multivariate": ("auto", "independent", "joint", "factor"),
    "intervals": ("conformal", "gaussian", *HEADS),
}
_POSITIVE_INTEGERS = (
    "horizon", "input_size", "hidden_size", "n_layers", "batch_size", "max_epochs", "patience",
    "val_size", "n_estimators", "season_length",
)  # fmt: skip
WINDOWS_TO_JUDGE = 10  # windows with a horizon each: with fewer, mean reversion appears by chance
MOST_REGRESSORS = 1024  # regressors of common factors, whose Gram matrix takes a second
SHORT_WINDOW = 8  # candidate without a season: longer windows only add variance
_MAY_BE_NONE = {"horizon", "input_size", "patience", "season_length", "val_size"}
_FLAGS = ("linear_path", "refit", "per_series")
LOSSES = ("mse", "mae")


@dataclass(frozen=True)
class Settings:
    """Resolved settings of a fit.

    Attributes
    ----------
    horizon, input_size : int
    input_sizes : tuple of int
        Candidates for `input_size`, from which the linear path chooses.
    season : int
        Season length of the naive forecast.
    seasons : tuple of int
        Season lengths at which the coefficients of the linear path may vary.
    val_size : int
    layer : str
        Name of the recurrent layers.
    options : dict
        Arguments of the layers except sizes, with the engine unless it is "auto".
    hidden_size, n_layers : int
    aggregation : str
    input_projection, local_level, linear_path : bool
    local_levels : tuple of bool
        Candidates for `local_level`, chosen with the input size.
    network : bool or str
        True if a network forecasts; "auto" if it is kept only where it helps.
    boxcox : float or None
        Exponent of the transformation of the targets.
    multivariate, intervals, loss : str
        `multivariate` is "auto" until the validation part has decided.
    factor_lags, n_factors : int
        Number of last rows in the regressors of common factors, 0 without factors, and number of
        factors.
    learning_rate, weight_decay : float
    batch_size, max_epochs : int
    patience : int or None
    n_estimators : int
    refit : bool

    Examples
    --------
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.datasets import load_elec_equip
    >>> model = ParaRNNForecaster(horizon=12, hidden_size=4, max_epochs=1, refit=False)
    >>> settings = model.fit(load_elec_equip()).settings_
    >>> settings.layer, settings.season, settings.joint
    ('ParaRNN', 12, False)
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
    local_levels: tuple[bool, ...]
    linear_path: bool
    network: bool | str
    boxcox: float | None
    multivariate: str
    factor_lags: int
    n_factors: int
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
        for name in ("seasons", "input_sizes", "local_levels"):  # files have lists
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def joint(self) -> bool:
        """True if all targets of a series are forecast from all of them."""
        return self.multivariate in ("joint", "factor")

    @property
    def factor(self) -> bool:
        """True if common factors are added to the linear path of each target."""
        return self.multivariate == "factor"

    @property
    def judges_level(self) -> bool:
        """True if the validation part is long enough to tell if series revert to a mean.

        In few windows, a series without a mean can seem to have one by chance.
        """
        return self.val_size >= WINDOWS_TO_JUDGE * (self.input_size + self.horizon)

    @property
    def varying_seasons(self) -> list[int]:
        """Seasons at whose autocorrelations the coefficients of a linear path may vary."""
        # An autocorrelation of less than half a season of products is noise.
        return [k for k in self.seasons if 3 * k <= 2 * self.input_size]

    def training_rows(self, lengths: np.ndarray) -> np.ndarray:
        """Number of training rows by series length; all rows if a series is too short."""
        validated = lengths >= least_rows(self.horizon, self.val_size)
        return np.where(validated, lengths - self.val_size, lengths)


def resolve(params: dict[str, Any]) -> dict[str, Any]:
    """Fill arguments left at None from the preset, and check the arguments common to all classes.

    Numbers and flags of NumPy are converted to Python's in the result.
    """
    preset = PRESETS[choice("preset", params["preset"], tuple(PRESETS))]
    filled = {k: preset[k] if v is None and k in preset else v for k, v in params.items()}
    filled |= {k: v for k, v in preset.items() if k not in filled}
    for name, legal in _CHOICES.items():
        if name in filled:
            filled[name] = choice(name, filled[name], legal)
    for name in _POSITIVE_INTEGERS:
        if name in filled and not (filled[name] is None and name in _MAY_BE_NONE):
            filled[name] = positive_integer(name, filled[name])
    filled |= {name: flag(name, filled[name]) for name in _FLAGS if name in filled}
    filled |= {name: _flag_or_auto(name, filled[name]) for name in ("local_level", "network")}
    if filled["network"] is False:
        _check_without_network(filled)
    if filled["multivariate"] == "factor" and not filled["linear_path"]:
        raise ValueError(
            'multivariate="factor" needs a linear path, to which the factors are added; got '
            'linear_path=False. Leave it out, or take multivariate="joint"'
        )
    filled["boxcox"] = boxcox_lambda(filled["use_boxcox"])
    loss, intervals = filled["loss"], filled["intervals"]
    if intervals in HEADS and loss is not None:
        raise ValueError(
            f"intervals={intervals!r} learns by a loss of its own; got loss={loss!r}. Leave it out"
        )
    learned = intervals if intervals in HEADS else None
    filled["loss"] = learned or choice("loss", "mse" if loss is None else loss, LOSSES)
    filled["verbose"] = verbosity(filled["verbose"])
    filled["learning_rate"] = number(
        "learning_rate", filled["learning_rate"], lowest=0.0, open_=True, highest=LARGEST_RATE
    )
    filled["weight_decay"] = number("weight_decay", filled["weight_decay"], lowest=0.0, open_=False)
    if filled.get("chrono_length") is not None:  # layers with gates only
        length = number("chrono_length", filled["chrono_length"], lowest=0.0, open_=True)
        filled["chrono_length"] = length
    return filled


def _flag_or_auto(name: str, value: Any) -> bool | str:
    """Check a flag that may be "auto"."""
    if isinstance(value, str) and value == "auto":
        return value
    try:
        return flag(name, value)
    except TypeError:
        raise TypeError(f'{name} must be True, False or "auto"; got {quote(value)}') from None


def _check_without_network(filled: dict[str, Any]) -> None:
    """Raise if ``network=False`` leaves nothing that forecasts, or learns the intervals."""
    if not (filled["local_level"] or filled["linear_path"]):
        raise ValueError(
            "network=False leaves the local level and the linear path to forecast; got "
            "local_level=False and linear_path=False as well. Leave one of them out"
        )
    if filled["intervals"] in HEADS:
        raise ValueError(
            f"intervals={filled['intervals']!r} are learned by the network; got network=False. "
            'Take intervals="conformal"'
        )


def settings_for(filled: dict[str, Any], layer: LayerChoice, panel: Panel) -> Settings:
    """Settings of a fit to `panel`, from arguments `filled` by `resolve` and the data.

    Raises if series are too short for the horizon or the validation part, and warns if some are too
    short to validate, so that they only train.
    """
    defaults = frequency_defaults(panel.layout)
    lengths = panel.lengths
    horizon = filled["horizon"] or usual_horizon(panel)
    _check_lengths(panel, horizon)
    val_size = filled["val_size"] or validation_size(lengths, horizon)
    if val_size < horizon:
        raise ValueError(
            f"val_size must be at least the horizon, {horizon}, so that there are errors of every "
            f"step; got {val_size}. Take a larger val_size, or a smaller horizon"
        )
    needed = least_rows(horizon, val_size)
    if needed > lengths.max():
        left = max(0, int(lengths.max()) - val_size)
        raise ValueError(
            f"val_size={val_size} leaves {left or 'none'} of the {lengths.max()} rows of "
            f"{_longest(panel)} to train on; at least {horizon + 2} are needed for "
            f"horizon={horizon}. Take a smaller val_size"
        )
    if needed > lengths.min():
        short = np.flatnonzero(lengths < needed)
        first = quote_series(panel.ids[short[:1]])
        warn_user(
            f"{len(short)} of {len(lengths)} series have fewer than the {needed} rows that it "
            f"takes to train and to validate, the first is {first}: they "
            "train only, and their intervals come from the other series' errors"
        )
    # With a window of at most half the training rows, the other half are origins.
    half = max(2, (int(lengths[lengths >= needed].min()) - val_size) // 2)
    asked = filled["input_size"]
    if asked is not None and asked > lengths.max():
        raise ValueError(
            f"input_size={asked} is a window of {asked:,} rows; {_longest(panel)} has "
            f"{lengths.max()}. Take a smaller input_size, or leave it out: it is then chosen from "
            "the data"
        )
    input_size = asked or min(defaults.input_size, half)
    season = filled.get("season_length") or defaults.season
    sizes = defaults.input_sizes if season > 1 else (SHORT_WINDOW, *defaults.input_sizes)
    candidates = () if asked or not filled["linear_path"] else sizes
    input_sizes = tuple(dict.fromkeys(min(size, half) for size in candidates)) or (input_size,)
    values = {k: v for k, v in filled.items() if k in Settings.__dataclass_fields__}
    values |= {"horizon": horizon, "val_size": val_size}
    values |= {"input_size": input_size, "input_sizes": input_sizes}
    level = values["local_level"]
    if level == "auto":
        # Linear paths with and without it are compared; without one, the local level is safer.
        judged = filled["linear_path"]
        values |= {"local_level": True, "local_levels": (True, False) if judged else (True,)}
    else:
        values |= {"local_levels": (level,)}
    season = filled.get("season_length")
    if season is not None:
        defaults = defaults._replace(season=season, longer=())
    values |= {"season": defaults.season, "seasons": defaults.seasons}
    values |= _structure(filled, panel, defaults.season)
    layer = with_engine(layer, filled["engine"])
    return Settings(**values, layer=layer.name, options=layer.options)


def _structure(filled: dict[str, Any], panel: Panel, season: int) -> dict[str, Any]:
    """Choose the structure of several targets and the number of lags of common factors."""
    n_targets, structure = panel.values.shape[1], filled["multivariate"]
    n_columns = n_targets + len(panel.exog_names)
    most = MOST_REGRESSORS // n_columns
    lags = min(season if season > 1 else SHORT_WINDOW, most)
    if structure == "factor" and n_targets > 1 and lags == 0:
        raise ValueError(
            f'multivariate="factor" needs at most {MOST_REGRESSORS} targets and exogenous columns; '
            f'got {n_columns}. Take multivariate="independent"'
        )
    if structure == "auto" and not (filled["linear_path"] and lags):
        structure = "independent"  # no linear path or no lags to compare factors with
    if n_targets == 1 and structure != "joint":
        structure = "independent"
    judged = structure in ("auto", "factor")
    return {"multivariate": structure, "factor_lags": lags if judged else 0, "n_factors": 0}


def _check_lengths(panel: Panel, horizon: int) -> None:
    lengths, needed = panel.lengths, three_horizons(horizon)
    if (longest := int(lengths.max())) < needed:
        raise ValueError(
            f"a series needs at least {needed} rows for horizon={horizon}, to train and to "
            f"validate; {_longest(panel)} has {longest}. Give more rows, or take a smaller horizon"
        )
    if (shortest := int(lengths.min())) < FEWEST_ROWS:
        name = panel.ids[int(np.argmin(lengths))]
        raise ValueError(
            f"every series needs at least {FEWEST_ROWS} rows; {(lengths < FEWEST_ROWS).sum()} of "
            f"{len(lengths)} have fewer, the series {quote(name)} has {shortest}. Give more rows, "
            "or drop these series"
        )


def _longest(panel: Panel) -> str:
    """Name of the longest series in a message."""
    if panel.layout.id_col is None:
        return "this series"
    return f"the longest, {quote_series([panel.ids[int(np.argmax(panel.lengths))]])},"
