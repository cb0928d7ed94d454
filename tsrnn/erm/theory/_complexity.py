"""Operations of a layer of small blocks: Theorem 2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tsrnn.contract import positive_integer

__all__ = ["LayerComplexity", "layer_complexity"]


@dataclass(frozen=True)
class LayerComplexity:
    """Orders of the time of one layer; only ratios and growth have a meaning.

    Attributes
    ----------
    forward : int
        T d_max^2 + T d_max d_in + d^2.
    backward : int
        T^2 d_max^3 + d d_max^3.
    dense_forward : int
        T d^2 + T d d_in, for the ordinary network of the same hidden size.
    dense_backward : int
        T^2 d^3.

    Examples
    --------
    >>> from tsrnn.erm import layer_complexity
    >>> cost = layer_complexity(100, 8, hidden_size=128, block_size=2)
    >>> cost.dense_forward > 50 * cost.forward
    True
    """

    forward: int
    backward: int
    dense_forward: int
    dense_backward: int


def layer_complexity(
    length: int,
    d_in: int,
    hidden_size: int | None = None,
    block_size: int = 2,
    *,
    block_sizes: Sequence[int] | None = None,
) -> LayerComplexity:
    r"""Return the time complexity of one ParaRNN layer over T steps, up to a constant: Theorem 2.

    .. math::

        O(T d_{\max}^2 + T d_{\max} d_{in} + d^2) \text{ forward}, \qquad
        O(T^2 d_{\max}^3 + d\, d_{\max}^3) \text{ backward},

    against :math:`O(T d^2 + T d\, d_{in})` and :math:`O(T^2 d^3)` for an ordinary recurrent network.

    Parameters
    ----------
    length : int
        Time steps T.
    d_in : int
        Inputs per step, d_in.
    hidden_size : int, optional
        d, for blocks of one size.
    block_size : int, default 2
        d_s = d_max, a divisor of `hidden_size`.
    block_sizes : sequence of int, optional
        Sizes d_1, ..., d_K of blocks, in place of `hidden_size` and `block_size`.

    Returns
    -------
    LayerComplexity

    Raises
    ------
    TypeError, ValueError
        If a size is no positive integer, the block size does not divide the hidden size, or
        both or neither of `hidden_size` and `block_sizes` are given.

    Notes
    -----
    The theorem counts the time of K parallel blocks, so that the largest decides. Its backward pass
    is the naive derivative of the last state with respect to the recurrent matrix, a product of
    matrices for every pair of steps. Backpropagation, which multiplies vectors by matrices, only
    needs O(T d_max^2) for a scalar loss. Constants, memory traffic and the number of processors are
    ignored.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, Theorem 2 and supplement B.3.

    Examples
    --------
    >>> from tsrnn.erm import layer_complexity
    >>> layer_complexity(100, 8, hidden_size=128)
    LayerComplexity(forward=18384, backward=81024, dense_forward=1740800, dense_backward=20971520000)
    """  # noqa: E501
    steps, inputs = positive_integer("length", length), positive_integer("d_in", d_in)
    d, largest = _sizes(hidden_size, block_size, block_sizes)
    return LayerComplexity(
        forward=steps * largest**2 + steps * largest * inputs + d**2,
        backward=steps**2 * largest**3 + d * largest**3,
        dense_forward=steps * d**2 + steps * d * inputs,
        dense_backward=steps**2 * d**3,
    )


def _sizes(hidden_size: Any, block_size: Any, block_sizes: Any) -> tuple[int, int]:
    """Return hidden size d and largest block size d_max."""
    if (hidden_size is None) == (block_sizes is None):
        raise ValueError(
            "give either hidden_size (with block_size) or block_sizes; got "
            f"hidden_size={hidden_size!r} and block_sizes={block_sizes!r}"
        )
    if block_sizes is not None:
        sizes = [positive_integer("an entry of block_sizes", size) for size in block_sizes]
        if not sizes:
            raise ValueError("block_sizes must have at least one entry; got none")
        return sum(sizes), max(sizes)
    d = positive_integer("hidden_size", hidden_size)
    size = positive_integer("block_size", block_size)
    if d % size:
        raise ValueError(
            f"block_size must divide hidden_size; got block_size={size}, hidden_size={d}"
        )
    return d, size
