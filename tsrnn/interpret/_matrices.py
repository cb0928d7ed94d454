"""From anything that has recurrent matrices to stacks of square blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tsrnn.interpret._fitted import active_networks

__all__ = ["RecurrentMatrices", "recurrent_matrices"]

_ACCEPTED = (
    "a square matrix (d, d), a stack of them (K, d, d), a torch.nn.RNN or RNNCell, an object with "
    "recurrent_blocks() such as a layer of tsrnn.layers, or a fitted forecaster"
)


Place = tuple[int | None, int]  # network, where there are several, and layer


class Stack(NamedTuple):
    """One recurrent matrix of one layer, as it was found."""

    label: str  # in errors
    raw: Any
    layer: int = 1
    matrix: str | None = None  # its name, where a layer has several
    network: int | None = None  # where a model has several


class Blocks(NamedTuple):
    """Blocks of one recurrent matrix of one layer."""

    values: np.ndarray  # (K, d, d), float64
    eps: float  # machine epsilon of the type they were stored in
    layer: int
    matrix: str | None
    network: int | None

    @property
    def place(self) -> Place:
        return self.network, self.layer


class RecurrentMatrices(NamedTuple):
    """What is known of a model.

    Its matrices layer by layer, shares of blocks, the frequency of its data, and rows of the
    longest series it was fitted to.
    """

    matrices: list[Blocks]
    shares: dict[Place, np.ndarray | None]
    freq: Any
    sample_length: int | None


def recurrent_matrices(model: Any) -> RecurrentMatrices:
    """Collect the recurrent blocks of every layer of `model`.

    Raises
    ------
    TypeError
        If the model is of no known kind or its matrices are not real numbers.
    ValueError
        If a matrix is empty, not square or has NaN or infinite entries.
    UninformativeNetworkError
        If the networks of the model contribute nothing.
    sklearn.exceptions.NotFittedError
        If the model is a forecaster that has not been fitted.
    """
    if isinstance(model, type):
        raise TypeError(f"`model` must be {_ACCEPTED}; got the class {model.__name__} itself.")
    networks = active_networks(model, "recurrence_features")
    shares = model.block_shares_() if callable(getattr(model, "block_shares_", None)) else None
    stacks = [
        stack
        if number is None
        else stack._replace(label=f"{stack.label} of network {number}", network=number)
        for number, network in networks
        for stack in _stacks(network)
    ]
    if not stacks:
        raise ValueError(f"this {type(model).__name__} has no recurrent layer to read.")
    matrices = [_checked_blocks(stack) for stack in stacks]
    return RecurrentMatrices(
        matrices,
        _checked_shares(shares, matrices),
        getattr(model, "freq_", None),
        getattr(model, "sample_length_", None),
    )


def _stacks(model: Any) -> list[Stack]:
    if callable(getattr(model, "recurrent_blocks", None)):
        return _layer_stacks(model.recurrent_blocks())
    if hasattr(type(model), "recurrent_blocks"):  # a forecaster of a kind without them
        try:
            model.recurrent_blocks()
        except AttributeError as error:
            raise TypeError(f"recurrence_features reads a recurrence: {error}") from None
    if hasattr(model, "weight_hh"):
        return [Stack("weight_hh", _single_gate(model, model.weight_hh))]
    if hasattr(model, "weight_hh_l0"):
        return _torch_rnn_stacks(model)
    if isinstance(model, (list, tuple)) or hasattr(model, "__array__"):
        return [Stack("the matrix", model)]
    raise TypeError(f"`model` must be {_ACCEPTED}; got {_described(model)}.")


def _layer_stacks(layers: Iterable[Any]) -> list[Stack]:
    """Of layers that are one matrix each, or several by name."""
    stacks = []
    for i, layer in enumerate(layers, start=1):
        if isinstance(layer, Mapping):
            stacks += [Stack(f"{name} of layer {i}", raw, i, name) for name, raw in layer.items()]
        else:
            stacks.append(Stack(f"layer {i}", layer, i))
    return stacks


def _torch_rnn_stacks(model: Any) -> list[Stack]:
    if model.bidirectional:
        raise ValueError(
            "recurrence_features reads recurrences that run forward in time; this "
            f"{type(model).__name__} is bidirectional. Pass one direction's matrix, "
            "for example model.weight_hh_l0."
        )
    names = [f"weight_hh_l{i}" for i in range(model.num_layers)]
    return [
        Stack(name, _single_gate(model, getattr(model, name)), layer)
        for layer, name in enumerate(names, start=1)
    ]


def _single_gate(model: Any, weight: Any) -> Any:
    rows, columns = weight.shape
    if rows != columns:
        raise ValueError(
            "recurrence_features needs one recurrent matrix a layer; this "
            f"{type(model).__name__} has {rows // columns} (one a gate). Pass one of them, "
            f"for example weight_hh.chunk({rows // columns})[0]."
        )
    return weight


def _checked_blocks(stack: Stack) -> Blocks:
    name = stack.label
    values, eps = _as_numbers(stack.raw, name)
    if values.ndim not in (2, 3) or values.shape[-1] != values.shape[-2] or values.size == 0:
        raise ValueError(
            "recurrent matrices must be square: shape (d, d), or (K, d, d) for a stack of K, "
            f"with d >= 1; {name} has shape {values.shape}."
        )
    values = values.reshape(-1, *values.shape[-2:])
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        block, row, column = bad[0]
        raise ValueError(
            f"recurrent matrices must be finite; {name} has {len(bad)} NaN or infinite "
            f"entries, the first in block {block + 1}, row {row + 1}, column {column + 1}. "
            "A training that diverged leaves such weights: fit again with a smaller learning rate."
        )
    return Blocks(values, eps, stack.layer, stack.matrix, stack.network)


def _as_numbers(stack: Any, name: str) -> tuple[np.ndarray, float]:
    """Values in float64 and the precision they were stored in."""
    if hasattr(stack, "detach"):
        return _from_tensor(stack, name)
    if isinstance(stack, (list, tuple)) and any(hasattr(part, "detach") for part in stack):
        raise TypeError(
            f"{name} must be one array or tensor; got a {type(stack).__name__} of tensors. "
            "Join blocks of one layer with torch.stack, or read each matrix by itself."
        )
    try:
        array = np.asarray(stack)
    except ValueError as error:
        raise ValueError(f"the rows of {name} differ in length; it must be square.") from error
    if array.dtype.kind not in "iuf":
        raise _not_real(name, array.dtype)
    eps = np.finfo(array.dtype).eps if array.dtype.kind == "f" else np.finfo(float).eps
    return array.astype(np.float64), max(float(eps), float(np.finfo(float).eps))


def _from_tensor(tensor: Any, name: str) -> tuple[np.ndarray, float]:
    import torch

    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise _not_real(name, tensor.dtype)
    dtype = tensor.dtype if tensor.is_floating_point() else torch.float64
    values = tensor.detach().to(device="cpu", dtype=torch.float64).numpy()
    return values, float(torch.finfo(dtype).eps)


def _not_real(name: str, dtype: Any) -> TypeError:
    return TypeError(
        f"recurrent matrices must hold real numbers; {name} has dtype {dtype}. Convert strings "
        "and objects to floats; write a complex number a + bi as the block [[a, b], [-b, a]]."
    )


def _checked_shares(shares: Any, matrices: list[Blocks]) -> dict[Place, np.ndarray | None]:
    counts = {blocks.place: len(blocks.values) for blocks in matrices}
    if shares is None:
        return dict.fromkeys(counts)
    arrays = [None if share is None else np.asarray(share, dtype=float) for share in shares]
    given = [None if array is None else array.shape for array in arrays]
    wanted = [(count,) for count in counts.values()]
    fits = [g is None or g == w for g, w in zip(given, wanted, strict=False)]
    if len(given) != len(wanted) or not all(fits):
        raise ValueError(
            "block_shares_() must give one number a block and one array (or None) a layer, "
            f"of shapes {wanted}; got {given}."
        )
    return dict(zip(counts, arrays, strict=True))


def _described(model: Any) -> str:
    text = f"{type(model).__name__}"
    return f"{text} {model!r}" if isinstance(model, (str, int, float, type(None))) else text
