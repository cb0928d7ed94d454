"""Choice of the recurrent layers of a model by cell and options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from tsrnn.kernels import Cell
from tsrnn.layers._attention import BlockRecurrentAttention
from tsrnn.layers._cells import CELLS, check_cell
from tsrnn.layers._checks import check_sizes
from tsrnn.layers._lem import LEM
from tsrnn.layers._lru import LRU
from tsrnn.layers._newton_blocks import NewtonBlocks
from tsrnn.layers._para_rnn import ParaRNN
from tsrnn.layers._recurrent import Recurrent
from tsrnn.layers._unequal import UnequalParaRNN

# Layers by their names in files. Each takes input_size, hidden_size, num_layers and its options.
LAYERS: dict[str, Callable[..., Recurrent]] = {
    "BlockRecurrentAttention": BlockRecurrentAttention,
    "LEM": LEM,
    "LRU": LRU,
    "NewtonBlocks": NewtonBlocks,
    "ParaRNN": ParaRNN,
    "UnequalParaRNN": UnequalParaRNN,
}
# Options of cells that are arguments of models.
OPTIONS = (
    "block_size", "init", "chrono_length", "nonlinearity", "n_states", "window", "n_heads",
)  # fmt: skip
NOT_OPTIONS = (
    "input_size", "hidden_size", "num_layers", "cell", "engine", "device", "dtype",
)  # fmt: skip
SIZES = ("block_size", "n_states", "window", "n_heads", "state_units")
# Bound of options in a file that size none of its arrays, such as chrono_length=365. Layers of this
# size are cheap to build, should a corrupt file ask for them.
MOST_SIZE = 1000


class LayerChoice(NamedTuple):
    """Name and options of a layer, for `make_layer`.

    Parameters
    ----------
    name : {"ParaRNN", "UnequalParaRNN", "BlockRecurrentAttention", "LEM", "LRU", "NewtonBlocks"}
        Class of `tsrnn.layers`.
    options : dict
        Arguments of the class except the sizes and the number of layers.

    Examples
    --------
    >>> from tsrnn.layers import LayerChoice
    >>> LayerChoice("ParaRNN", {"cell": "gru", "block_size": 4})
    LayerChoice(name='ParaRNN', options={'cell': 'gru', 'block_size': 4})
    """

    name: str
    options: dict[str, Any]


def layer_choice(cell: str | Cell, options: Mapping[str, Any] | None = None) -> LayerChoice:
    """Choose the layers of a cell, with the options of a model.

    Parameters
    ----------
    cell : str or Cell
        Name in `CELLS`, or a custom cell, which `ParaRNN` runs.
    options : mapping, optional
        Arguments of the layers by name; None stands for the default of the cell. Several sizes in
        `block_size` select `UnequalParaRNN`.

    Returns
    -------
    LayerChoice
        Choice whose sizes are Python integers, for files.

    Raises
    ------
    TypeError, ValueError
        If the cell is unknown, its layer does not take an option, or a size is no positive
        integer.

    Examples
    --------
    >>> from tsrnn.layers import layer_choice
    >>> layer_choice("gru", {"block_size": 4, "init": None})
    LayerChoice(name='ParaRNN', options={'cell': 'gru', 'block_size': 4})
    >>> layer_choice("lru", {"block_size": 4})
    Traceback (most recent call last):
        ...
    ValueError: block_size is no choice of cell='lru', only of 'rnn', 'gru', 'lstm', ...
    """
    check_cell(cell)
    if isinstance(cell, Cell):
        name, defaults = "ParaRNN", {"cell": cell, "block_size": cell.n_outputs}
    else:
        name, defaults = CELLS[cell].layer, CELLS[cell].options
    chosen = {"cell": defaults["cell"]} if "cell" in defaults else {}
    options = {} if options is None else options
    if _is_several(options.get("block_size")):
        if name != "ParaRNN" or isinstance(cell, Cell):
            called = cell.name if isinstance(cell, Cell) else cell
            raise ValueError(
                "block_size of several sizes is a choice of cell='rnn', 'gru' and 'lstm'; got "
                f"{options['block_size']!r} with cell={called!r}. Give one size"
            )
        name = "UnequalParaRNN"
    for option, value in options.items():
        if value is not None and option not in _arguments(name):
            takers = [repr(c) for c, entry in CELLS.items() if option in _arguments(entry.layer)]
            takers = ["'rnn'"] if option == "nonlinearity" else takers  # refused for gated cells
            called = cell.name if isinstance(cell, Cell) else cell
            raise ValueError(
                f"{option} is no choice of cell={called!r}, only of {', '.join(takers)}; got "
                f"{value!r}. Leave it out"
            )
        if _is_several(value) and option == "block_size":
            value = [check_sizes(block_size=size)[0] for size in value]
        elif value is not None and option in SIZES:
            if not isinstance(value, Integral) or isinstance(value, bool):
                raise TypeError(f"{option} must be a positive integer; got {value!r}")
            (value,) = check_sizes(**{option: int(value)})
        if value is not None or option in defaults:
            chosen[option] = defaults[option] if value is None else value
    return LayerChoice(name, chosen | {k: v for k, v in defaults.items() if k not in chosen})


def _is_several(value: Any) -> bool:
    """Return True for a sequence or array of sizes."""
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)


def with_options(
    choice: LayerChoice, options: Any, cell: Any, arguments: Collection[str]
) -> LayerChoice:
    """Add the argument `layer_options` of a model, a mapping or None, to a choice.

    The cell is for messages. `arguments` are the options that are separate arguments of the model:
    a ValueError refuses them, and those that the layer does not have.
    """
    if options is None:
        return choice
    if not isinstance(options, Mapping):
        raise TypeError(f"layer_options must be a dict or None; got {options!r}")
    legal = _arguments(choice.name)
    known = [option for option in legal if option not in (*NOT_OPTIONS, *arguments)]
    for option in options:
        if option not in known:
            also = f"; give {option} by itself" if option in arguments and option in legal else ""
            raise ValueError(
                f"layer_options of cell={cell!r} may hold {known}, see tsrnn.layers.{choice.name}; "
                f"got {option!r}{also}"
            )
    # Python numbers, for files.
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in options.items()}
    return choice._replace(options=choice.options | plain)


def with_engine(choice: LayerChoice, engine: str) -> LayerChoice:
    """Add an engine of `tsrnn.kernels.recurrence` to a choice; "auto" leaves it unchanged."""
    if isinstance(engine, str) and engine == "auto":
        return choice
    if "engine" not in _arguments(choice.name):
        raise ValueError(
            f"engine is no choice of the layers {choice.name}; got {engine!r}. Leave it out"
        )
    return choice._replace(options=choice.options | {"engine": engine})


def _arguments(layer: str) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(LAYERS[layer]).parameters


def make_layer(choice: LayerChoice, input_size: int, hidden_size: int, n_layers: int) -> Recurrent:
    """Build the layers of a choice; a KeyError is for an unknown name."""
    return LAYERS[choice.name](input_size, hidden_size, num_layers=n_layers, **choice.options)


def check_saveable(cell: Any) -> None:
    """Refuse a custom cell, whose step is code: a file cannot hold it."""
    if isinstance(cell, Cell):
        raise TypeError(
            f"to be saved, cell must be one by name; got the cell {cell.name!r}, whose step is "
            "code, which files do not hold. Use pickle"
        )
