"""Cells by the names that every `cell=` takes, and the layers that run them."""

from __future__ import annotations

from typing import Any, NamedTuple

from tsrnn.kernels import Cell


class NamedCell(NamedTuple):
    """Layer of a cell, its default options, and the cell in words."""

    layer: str  # class name in `tsrnn.layers`
    options: dict[str, Any]  # defaults of the class; models may replace them
    words: str  # for messages


# A window of 16 steps keeps the state of a series small.
_ATTENTION = {"block_size": 2, "n_states": 16, "window": 16, "n_heads": 4}
CELLS: dict[str, NamedCell] = {
    "rnn": NamedCell(
        "ParaRNN", {"cell": "rnn", "block_size": 2, "nonlinearity": "tanh"}, "blocks of Elman's"
    ),
    "gru": NamedCell("ParaRNN", {"cell": "gru", "block_size": 2}, "blocks of gated units"),
    "lstm": NamedCell("ParaRNN", {"cell": "lstm", "block_size": 2}, "blocks of LSTMs"),
    "attention": NamedCell("BlockRecurrentAttention", _ATTENTION, "block-recurrent attention"),
    "lem": NamedCell("LEM", {}, "long expressive memory"),
    "lru": NamedCell("LRU", {}, "linear recurrent units"),
    "newton-gru": NamedCell("NewtonBlocks", {"cell": "newton-gru"}, "diagonal gated units"),
    "newton-lstm": NamedCell("NewtonBlocks", {"cell": "newton-lstm"}, "diagonal LSTMs"),
}


def check_cell(cell: Any, layer: str | None = None) -> None:
    """Raise unless a cell is in `CELLS` or custom, and runs on the layer, any class by default.

    The message names the legal cells, or the layer of this one.
    """
    named = cell if isinstance(cell, str) and cell in CELLS else None
    home = "ParaRNN" if isinstance(cell, Cell) else named and CELLS[named].layer
    if home is not None and layer in (None, home):
        return
    names = tuple(name for name, entry in CELLS.items() if layer in (None, entry.layer))
    users = " or a tsrnn.kernels.Cell" if layer in (None, "ParaRNN") else ""
    message = (
        f"cell{'' if layer is None else f' of {layer}'} must be one of {names}{users}; got "
        f"{cell.name if isinstance(cell, Cell) else cell!r}"
    )
    if home is not None:
        words = "a user's" if named is None else CELLS[named].words
        message += f" ({words}), a cell of tsrnn.layers.{home}. Take that layer"
    raise ValueError(message)
