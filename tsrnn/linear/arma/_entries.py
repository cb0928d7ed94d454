"""Sums and products that leave out what is known to be 0 or 1 when a step is written.

An entry is a tensor or an array, or the int 0 or 1 where that is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

Entry = Any
Matrix = list[list[Entry]]


def add(a: Entry, b: Entry) -> Entry:
    """A + b."""
    if _is(a, 0):
        return b
    return a if _is(b, 0) else a + b


def mul(a: Entry, b: Entry) -> Entry:
    """Product a b."""
    if _is(a, 0) or _is(b, 0):
        return 0
    if _is(a, 1):
        return b
    return a if _is(b, 1) else a * b


def sub(a: Entry, b: Entry) -> Entry:
    """A - b."""
    if _is(b, 0):
        return a
    return -b if _is(a, 0) else a - b


def inverse(a: Entry) -> Entry:
    """1 / a."""
    return 1 if _is(a, 1) else 1 / a


def log(a: Entry) -> Entry:
    """Logarithm."""
    return 0 if _is(a, 1) else torch.log(a)


def dot(a: Sequence[Entry], b: Sequence[Entry]) -> Entry:
    """Sum of products."""
    total: Entry = 0
    for x, y in zip(a, b, strict=True):
        total = add(total, mul(x, y))
    return total


def product(A: Matrix, B: Matrix) -> Matrix:
    """Matrix product."""
    columns = list(zip(*B, strict=True))
    return [[dot(row, column) for column in columns] for row in A]


def as_tensor(entry: Entry, like: Any) -> Any:
    """A field of a state must be a tensor, also where its value is known."""
    return entry if isinstance(entry, torch.Tensor) else 0 * like + entry


def _is(entry: Entry, number: int) -> bool:
    return isinstance(entry, int) and entry == number
