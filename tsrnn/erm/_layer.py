"""The recurrent layers of an estimator, by the name of their cell."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from tsrnn.contract import positive_integer
from tsrnn.kernels import Cell
from tsrnn.layers import LAYERS, LayerChoice

# Cell -> the layer that has it and what it is told, beside its sizes and the options given.
CELLS: dict[str, tuple[str, dict[str, Any]]] = {
    "rnn": ("ParaRNN", {"cell": "rnn"}),
    "gru": ("ParaRNN", {"cell": "gru"}),
    "lstm": ("ParaRNN", {"cell": "lstm"}),
    "attention": ("BlockRecurrentAttention", {"n_states": 16, "window": 16, "n_heads": 4}),
    "lem": ("LEM", {}),
    "lru": ("LRU", {}),
    "newton-gru": ("NewtonBlocks", {"cell": "gru"}),
    "newton-lstm": ("NewtonBlocks", {"cell": "lstm"}),
}
_GIVEN = ("block_size", "nonlinearity", "init")  # arguments handed on where they are not None
_OWN = ("input_size", "hidden_size", "num_layers", "cell", "device", "dtype", *_GIVEN)


def layer_choice(params: Mapping[str, Any]) -> LayerChoice:
    """The layers that the arguments of an estimator describe.

    Raises
    ------
    TypeError, ValueError
        If the cell is unknown, or its layer does not take an option.
    """
    cell = params["cell"]
    options: dict[str, Any]
    if isinstance(cell, Cell):
        name, options = "ParaRNN", {"cell": cell}
    elif isinstance(cell, str) and cell in CELLS:
        name, options = CELLS[cell][0], dict(CELLS[cell][1])
    else:
        raise ValueError(f"cell must be one of {(*CELLS,)} or a tsrnn.kernels.Cell; got {cell!r}")
    legal = inspect.signature(LAYERS[name]).parameters
    for argument in _GIVEN:
        value = params[argument]
        if value is not None and argument not in legal:
            raise ValueError(
                f"{argument} is no choice of cell={cell!r}; got {argument}={value!r}. Leave it out"
            )
        if value is not None:
            options[argument] = value
    if "block_size" in options:
        options["block_size"] = positive_integer("block_size", options["block_size"])
    return LayerChoice(name, options | _further(params["layer_options"], name, cell, legal))


def _further(given: Any, name: str, cell: Any, legal: Mapping[str, Any]) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"layer_options must be a dict or None; got {given!r}")
    known = [option for option in legal if option not in _OWN]
    for option in given:
        if option not in known:
            raise ValueError(
                f"layer_options of cell={cell!r} may hold {known}, see tsrnn.layers.{name}; got "
                f"{option!r}"
            )
    return dict(given)
