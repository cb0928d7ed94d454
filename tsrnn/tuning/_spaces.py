"""Default spaces: the arguments of a forecaster that are worth a search, and their ranges."""

from __future__ import annotations

import inspect
from typing import Any

from tsrnn.tuning._distributions import Choice, Distribution, Integer, Order, Real

Space = dict[str, Distribution]

_NETWORK: Space = {
    "hidden_size": Choice((16, 32, 64, 128)),
    "n_layers": Integer(1, 3),
    "learning_rate": Real(3e-4, 1e-2, log=True),
    "weight_decay": Real(1e-4, 1e-1, log=True),
}
# By name, so that no forecaster has to be loaded.
SPACES: dict[str, Space] = {
    "ParaRNNForecaster": _NETWORK
    | {"cell": Choice(("rnn", "gru", "lstm")), "block_size": Choice((1, 2, 4, 8))},
    "LEMForecaster": _NETWORK | {"dt": Real(0.05, 1.0, log=True)},
    "LRUForecaster": _NETWORK | {"r_min": Real(0.0, 0.9)},
    "NewtonForecaster": _NETWORK | {"cell": Choice(("gru", "lstm"))},
    "ARMA": {"order": Order((("p", 0, 3), ("d", 0, 1), ("q", 0, 3)))},
    "VARMA": {"order": Order((("p", 1, 3), ("q", 0, 1)))},
    "GARCH": {
        "order": Order((("p", 1, 2), ("q", 0, 2))),
        "vol": Choice(("garch", "gjr", "egarch")),
        "distribution": Choice(("normal", "t")),
    },
}
_WINDOWS = (1, 2, 4)  # input sizes, in horizons
_OF_ONE_CELL = ("nonlinearity", "init", "chrono_length")  # each is a choice of some cells only


def default_space(forecaster: Any) -> Space:
    """The space that `suggest` searches for a forecaster by default.

    Parameters
    ----------
    forecaster : forecaster
        A network, `ARMA`, `VARMA` or `GARCH`.

    Returns
    -------
    dict of str to Choice, Integer, Real or Order
        Of the arguments that the forecaster has at their defaults; those that were given another
        value stay as they are. Networks whose `horizon` is given also search `input_size`: their
        own choice, or one, two or four horizons.

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
    space = dict(SPACES[names[0]])
    horizon = getattr(forecaster, "horizon", None)
    if "hidden_size" in space and isinstance(horizon, int):
        space["input_size"] = Choice((None, *(k * horizon for k in _WINDOWS)))
    given = _given(forecaster)
    settled = {"cell"} if given.intersection(_OF_ONE_CELL) else set()
    return {
        name: _fitting(name, own, forecaster)
        for name, own in space.items()
        if name not in given | settled
    }


def _fitting(name: str, own: Distribution, forecaster: Any) -> Distribution:
    """What of a space goes with other arguments that were given.

    Block sizes divide the hidden size, hidden sizes are the next multiples of the block size, and
    `r_min` is not above `r_max`.
    """
    hidden, block, r_max = (
        getattr(forecaster, size, None) for size in ("hidden_size", "block_size", "r_max")
    )
    if name == "block_size" and isinstance(own, Choice) and hidden is not None:
        return Choice(tuple(size for size in own.values if hidden % size == 0))
    if name == "hidden_size" and isinstance(own, Choice) and block is not None:
        return Choice(tuple(dict.fromkeys(-(-size // block) * block for size in own.values)))
    if name == "r_min" and isinstance(own, Real) and r_max is not None:
        return Real(own.low, min(own.high, r_max))
    return own


def _given(forecaster: Any) -> set[str]:
    """Arguments that are not at their defaults."""
    values = forecaster.get_params(deep=False)
    arguments = inspect.signature(type(forecaster)).parameters
    return {name for name, value in values.items() if not _same(value, arguments[name].default)}


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))
