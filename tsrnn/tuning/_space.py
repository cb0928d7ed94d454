"""Search spaces of constructor arguments: distributions, defaults, and draws by a trial."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from tsrnn.contract import last_step
from tsrnn.models import MODELS


class Distribution(Protocol):
    """Protocol of a distribution of an argument."""

    def suggest(self, trial: Any, name: str) -> Any:
        """Value of the argument `name` in a trial."""


@dataclass(frozen=True)
class Choice:
    """Choice among values of type None, bool, int, float or str.

    Parameters
    ----------
    values : tuple

    Examples
    --------
    >>> from optuna.trial import FixedTrial
    >>> from tsrnn.tuning import Choice
    >>> Choice(("rnn", "gru")).suggest(FixedTrial({"x": "gru"}), "x")
    'gru'
    """

    values: tuple[Any, ...]

    def suggest(self, trial: Any, name: str) -> Any:
        """Value of the argument `name` in a trial."""
        return trial.suggest_categorical(name, list(self.values))


@dataclass(frozen=True)
class Integer:
    """Integer from `low` to `high`, both included.

    Parameters
    ----------
    low, high : int
    log : bool, default False
        True for a uniform logarithm.

    Examples
    --------
    >>> from optuna.trial import FixedTrial
    >>> from tsrnn.tuning import Integer
    >>> Integer(1, 4).suggest(FixedTrial({"x": 3}), "x")
    3
    """

    low: int
    high: int
    log: bool = False

    def suggest(self, trial: Any, name: str) -> int:
        """Value of the argument `name` in a trial."""
        return trial.suggest_int(name, self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Real:
    """Real number from `low` to `high`.

    Parameters
    ----------
    low, high : float
    log : bool, default False
        True for a uniform logarithm.

    Examples
    --------
    >>> from optuna.trial import FixedTrial
    >>> from tsrnn.tuning import Real
    >>> Real(0.1, 1.0).suggest(FixedTrial({"x": 0.5}), "x")
    0.5
    """

    low: float
    high: float
    log: bool = False

    def suggest(self, trial: Any, name: str) -> float:
        """Value of the argument `name` in a trial."""
        return trial.suggest_float(name, self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Order:
    """Tuple of integers such as (p, d, q), drawn independently.

    Parameters
    ----------
    parts : tuple of (str, int, int)
        Name, lowest and highest value of each integer: ``Order((("p", 0, 3), ("q", 0, 3)))``. A
        trial names them ``order.p`` and ``order.q``.

    Examples
    --------
    >>> from optuna.trial import FixedTrial
    >>> from tsrnn.tuning import Order
    >>> Order((("p", 0, 3), ("q", 0, 3))).suggest(FixedTrial({"x.p": 1, "x.q": 0}), "x")
    (1, 0)
    """

    parts: tuple[tuple[str, int, int], ...]

    def suggest(self, trial: Any, name: str) -> tuple[int, ...]:
        """Value of the argument `name` in a trial."""
        return tuple(
            trial.suggest_int(f"{name}.{part}", low, high) for part, low, high in self.parts
        )


Space = dict[str, Distribution]
_NETWORK: Space = {
    "hidden_size": Choice((16, 32, 64, 128)),
    "n_layers": Integer(1, 3),
    "learning_rate": Real(3e-4, 1e-2, log=True),
    "weight_decay": Real(1e-4, 1e-1, log=True),
}
_OF_CLASS: dict[str, Space] = {
    "ParaRNNForecaster": {
        "cell": Choice(("rnn", "gru", "lstm")),
        "block_size": Choice((1, 2, 4, 8)),
    },
    "LEMForecaster": {"dt": Real(0.05, 1.0, log=True)},
    "LRUForecaster": {"r_min": Real(0.0, 0.9)},
    "NewtonForecaster": {"cell": Choice(("newton-gru", "newton-lstm"))},
    "ARMA": {"order": Order((("p", 0, 3), ("d", 0, 1), ("q", 0, 3)))},
    "VARMA": {"order": Order((("p", 1, 3), ("q", 0, 1)))},
    "GARCH": {
        "order": Order((("p", 1, 2), ("q", 0, 2))),
        "vol": Choice(("garch", "gjr", "egarch", "tgarch")),
        "distribution": Choice(("normal", "t")),
    },
}
# By class name, so that no forecaster is imported.
SPACES: dict[str, Space] = {
    name: (_NETWORK if model.module == "tsrnn.forecasters" else {}) | _OF_CLASS.get(name, {})
    for name, model in MODELS.items()
    if model.module == "tsrnn.forecasters" or name in _OF_CLASS
}
_WINDOWS = (1, 2, 4)  # input sizes, in horizons
# Options of some cells of ParaRNNForecaster only: if one is set, the cell is not searched.
_OF_SOME_CELLS = (
    "nonlinearity", "init", "chrono_length", "n_states", "window", "n_heads", "layer_options",
)  # fmt: skip
_WITH_BLOCKS = ("rnn", "gru", "lstm", "attention", "lem")  # cells that have a block_size


def suggest(trial: Any, forecaster: Any, space: Mapping[str, Any] | None = None) -> Any:
    """Clone a forecaster with constructor arguments suggested by a trial.

    Parameters
    ----------
    trial : optuna.trial.Trial
        Trial, or an object with `suggest_categorical`, `suggest_int` and `suggest_float`.
    forecaster : forecaster or Pipeline that ends with one
        Template, left unchanged. Arguments outside the space keep its values.
    space : mapping of str, optional
        Changes to `default_space`, by argument as in `set_params`: a `Choice`, `Integer`, `Real`
        or `Order`, a list of values for a `Choice`, or None to fix the argument.

    Returns
    -------
    forecaster
        Unfitted clone.

    Raises
    ------
    TypeError, ValueError
        If the space is invalid, or names no argument of the forecaster.

    Examples
    --------
    >>> from optuna.trial import FixedTrial
    >>> from tsrnn import ARMA
    >>> from tsrnn.tuning import suggest
    >>> trial = FixedTrial({"order.p": 2, "order.d": 0, "order.q": 1, "trend": "n"})
    >>> suggest(trial, ARMA(), space={"trend": ["n", "c"]})
    ARMA(order=(2, 0, 1), trend='n')
    """
    whole = whole_space(forecaster, space)
    values = {name: distribution.suggest(trial, name) for name, distribution in whole.items()}
    return clone(forecaster).set_params(**values)


def whole_space(forecaster: Any, space: Mapping[str, Any] | None) -> Space:
    """Default space with the changes of `suggest`."""
    changes = {} if space is None else dict(space)
    final = last_step(forecaster)
    prefix = "" if final is forecaster else f"{forecaster.steps[-1][0]}__"
    try:
        whole = {f"{prefix}{name}": part for name, part in default_space(final).items()}
    except ValueError:  # a class without a default space needs changes
        if not changes:
            raise
        whole = {}
    for name, change in changes.items():
        whole.pop(name, None)
        if isinstance(change, list):
            whole[name] = Choice(tuple(change))
        elif isinstance(change, type) or not (change is None or hasattr(change, "suggest")):
            raise TypeError(
                f"space[{name!r}] must be a Choice, Integer, Real or Order of tsrnn.tuning, a list "
                f"of values or None; got {change!r}"
            )
        elif change is not None:
            whole[name] = change
    if not whole:
        raise ValueError(
            "there is nothing to search: all arguments of the default space were given to the "
            "forecaster. Name some in space={...}"
        )
    return whole


def default_space(forecaster: Any) -> Space:
    """Default search space of a forecaster.

    Parameters
    ----------
    forecaster : forecaster
        A network, `ARMA`, `VARMA` or `GARCH`.

    Returns
    -------
    dict of str to Choice, Integer, Real or Order
        Distributions of the arguments at their defaults; other arguments are fixed. Networks with
        a `horizon` also search `input_size` among the automatic choice and one, two or four
        horizons.

    Raises
    ------
    ValueError
        If there is no default space for its class.

    Examples
    --------
    >>> from tsrnn import ARMA
    >>> from tsrnn.tuning import default_space
    >>> default_space(ARMA())
    {'order': Order(parts=(('p', 0, 3), ('d', 0, 1), ('q', 0, 3)))}
    """
    names = [cls.__name__ for cls in type(forecaster).__mro__ if cls.__name__ in SPACES]
    if not names:
        raise ValueError(
            f"there is no default space for {type(forecaster).__name__}, only for "
            f"{', '.join(SPACES)}; give space={{'argument': Choice(...)}}"
        )
    space: dict[str, Any] = dict(SPACES[names[0]])
    given = forecaster.get_params(deep=False)
    horizon, cell, block = (given.get(name) for name in ("horizon", "cell", "block_size"))
    if "hidden_size" in space and isinstance(horizon, Integral):
        space["input_size"] = Choice((None, *(k * int(horizon) for k in _WINDOWS)))
    if names[0] == "ParaRNNForecaster":
        if _changed(forecaster).intersection(_OF_SOME_CELLS):
            space.pop("cell")
        if np.ndim(block):  # the sum of several sizes divides the layer width
            block = sum(block)
        if cell not in _WITH_BLOCKS:
            space.pop("block_size")  # the block size of a custom cell is its number of outputs
            block = getattr(cell, "n_outputs", None)
    space = {name: part for name, part in space.items() if name not in _changed(forecaster)}
    if "block_size" in space and given["hidden_size"] is not None:
        sizes = space["block_size"].values
        space["block_size"] = Choice(tuple(k for k in sizes if given["hidden_size"] % k == 0))
    if "hidden_size" in space:
        # Multiples of all divisors of a layer width, so that any combination can be fitted.
        blocks = space["block_size"].values if "block_size" in space else (block or 1,)
        step = math.lcm(*blocks, given.get("n_heads") or 1)
        widths = (-(-width // step) * step for width in space["hidden_size"].values)
        space["hidden_size"] = Choice(tuple(dict.fromkeys(widths)))
    return _bound_by_others(space, given)


def _bound_by_others(space: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Restrict `dt` by `min_step`, and `r_min` by `r_max`."""
    if "dt" in space:
        dt, least = space.pop("dt"), given["min_step"]
        if least < dt.high:
            space["dt"] = Real(max(dt.low, least), dt.high, log=True)
    if "r_min" in space:
        space["r_min"] = Real(0.0, min(space["r_min"].high, given["r_max"]))
    return space


def _changed(forecaster: Any) -> set[str]:
    """Names of the arguments that are not at their defaults."""
    values, arguments = forecaster.get_params(False), inspect.signature(type(forecaster)).parameters
    defaults = {name: arguments[name].default for name in values}

    def is_default(value: Any, default: Any) -> bool:
        return value is default or (type(value) is type(default) and bool(value == default))

    return {name for name, value in values.items() if not is_default(value, defaults[name])}
