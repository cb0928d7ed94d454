"""A recurrence in matrix form, as in papers, which gives blocks of any size.

`MatrixForm.block` unrolls the matrices of one small block into a `Cell` of scalars for compilation;
for large blocks the same equations run on tensors, with a matrix product a step.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from tsrnn.kernels._cell import Cell, Fields


@dataclass(frozen=True)
class MatrixForm:
    """Equations of a recurrence on vectors of d numbers with d x d matrices.

    Parameters
    ----------
    name : str
    states : tuple of str
        Vectors of the state, beginning with the outputs of a layer.
    inputs : tuple of str
        Vectors of projected inputs.
    matrices : tuple of str
        d x d matrices.
    step : callable
        ``step(states, inputs, matrices, vectors) -> states``. Vectors support elementwise
        addition, multiplication and functions of torch, and ``matrix @ vector``.
    vectors : tuple of str, default ()
        Names of vector parameters.
    outputs : int, default 1
        Number of states that a layer outputs.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.kernels import MatrixForm
    >>> def elman(states, inputs, matrices, vectors):
    ...     (h,), (u,), (W,) = states, inputs, matrices
    ...     return (torch.tanh(u + W @ h),)
    >>> form = MatrixForm("elman", ("h",), ("u",), ("W",), elman)
    >>> cell = form.block(2)
    >>> cell.n, cell.m, cell.p
    (2, 2, 4)
    """

    name: str
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    matrices: tuple[str, ...]
    step: Callable[[Any, Any, Any, Any], tuple[Any, ...]]
    vectors: tuple[str, ...] = ()
    outputs: int = 1

    def __post_init__(self) -> None:
        for part in ("states", "inputs", "matrices", "vectors"):
            names = getattr(self, part)
            if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
                raise ValueError(f"{part} of {self.name!r} must be a tuple of names; got {names!r}")

    def run(self, states: Any, inputs: Any, matrices: Any, vectors: Any) -> tuple[Any, ...]:
        """Take one step; raise unless it returns the new states."""
        new = self.step(states, inputs, matrices, vectors)
        due = len(self.states)
        if isinstance(new, tuple) and len(new) == due:
            return new
        came = f"{len(new)} values" if isinstance(new, tuple) else f"a {type(new).__name__}"
        raise ValueError(
            f"step of {self.name!r} must return a tuple of {due} vectors, the new states; "
            f"got {came}"
        )

    def block(self, size: int) -> Cell:
        """Cell of blocks of `size` = d states a vector.

        Its fields are the state vectors one after the other, and likewise for inputs. Its
        parameters are the matrices one after the other by rows, then the vectors.

        Raises
        ------
        ValueError
            If the size is no positive integer.
        """
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"block_size must be a positive integer; got {size!r}")
        return _block_cell(self, size)


@lru_cache
def _block_cell(form: MatrixForm, d: int) -> Cell:
    matrices = tuple(
        f"{name}_{i}_{j}" if d > 1 else name
        for name in form.matrices
        for i in range(d)
        for j in range(d)
    )
    return Cell(
        f"{form.name}_{d}",
        n=len(form.states) * d,
        m=len(form.inputs) * d,
        p=len(form.matrices) * d * d + len(form.vectors) * d,
        step=BlockStep(form, d),
        outputs=form.outputs * d,
        names=(
            _numbered(form.states, d),
            _numbered(form.inputs, d),
            matrices + _numbered(form.vectors, d),
        ),
    )


def _numbered(names: Iterable[str], d: int) -> tuple[str, ...]:
    return tuple(f"{name}_{i}" if d > 1 else name for name in names for i in range(d))


@dataclass(frozen=True)
class BlockStep:
    """Step of a block of a matrix form: on scalars, or on tensors of many blocks.

    Cells of `MatrixForm.block` have this step, from which kernels read the form. Matrices are
    `size` x `size`.
    """

    form: MatrixForm
    size: int

    def __call__(self, state: Fields, inputs: Fields, params: Fields) -> Fields:
        d, square = self.size, self.size**2
        count = len(self.form.matrices)
        matrices = [
            Matrix([params[k * square + i * d : k * square + (i + 1) * d] for i in range(d)])
            for k in range(count)
        ]
        new = self.form.run(
            _vectors(state, d), _vectors(inputs, d), matrices, _vectors(params[count * square :], d)
        )
        return tuple(part for vector in new for part in vector.parts)

    def on_tensors(self, state: Tensor, inputs: Tensor, params: Tensor) -> Tensor:
        """Step of all blocks: (B, n, K), (B, m, K), (p, K) to (B, n, K), by matrix products."""
        matrices, vectors = self.split(params)
        old = self._columns(state)
        new = self.form.run(old, self._columns(inputs), matrices.unbind(), vectors.unbind())
        # A vector of parameters only is one column, the same for all sequences.
        columns = torch.stack([vector.expand_as(old[0]) for vector in new])
        return columns.permute(3, 0, 2, 1).flatten(1, 2)

    def _columns(self, fields: Tensor) -> Sequence[Tensor]:
        """Vectors (K, d, B) from the fields (B, vectors * d, K)."""
        return fields.unflatten(1, (-1, self.size)).permute(1, 3, 2, 0).unbind()

    def split(self, params: Tensor) -> tuple[Tensor, Tensor]:
        """Matrices (count, K, d, d) and vectors (count, K, d, 1) of parameters (p, K)."""
        d = self.size
        end = len(self.form.matrices) * d * d
        matrices = params[:end].view(-1, d, d, params.shape[1]).permute(0, 3, 1, 2)
        vectors = params[end:].view(-1, d, params.shape[1]).permute(0, 2, 1)
        return matrices, vectors[..., None]


def block_step(cell: Cell) -> BlockStep:
    """Step of a cell made by `MatrixForm.block`."""
    if not isinstance(cell.step, BlockStep):
        raise TypeError(f"cell {cell.name!r} is no block of a matrix form")
    return cell.step


# Parameters of a block. With more, an unrolled step takes long to compile, and a loop is as fast,
# as values do not stay in registers. An LSTM of 4 units has 64, and so has Elman's network of 8.
MOST_UNROLLED = 64


def is_rolled(cell: Cell) -> bool:
    """Return True if kernels of the CPU loop over the units of a block, so that code is bounded."""
    return isinstance(cell.step, BlockStep) and cell.p > MOST_UNROLLED


def _vectors(fields: Fields, d: int) -> list[Vector]:
    return [Vector(fields[i : i + d]) for i in range(0, len(fields), d)]


def _elementwise(function: Callable[..., Any]) -> Callable[..., Vector]:
    """Elementwise operator of vectors."""
    return lambda *args: Vector.__torch_function__(function, (), args)


_added = _elementwise(operator.add)


class Vector:
    """d scalars; arithmetic and torch's functions act on each."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = tuple(parts)

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., Any],
        types: Any,
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Vector:
        sizes = {len(a.parts) for a in args if isinstance(a, Vector)}
        return Vector(
            [
                function(
                    *(a.parts[i] if isinstance(a, Vector) else a for a in args), **kwargs or {}
                )
                for i in range(*sizes)
            ]
        )

    def __add__(self, other: Any) -> Vector:
        return other.added_to(self) if isinstance(other, _Product) else _added(self, other)

    __radd__ = _elementwise(lambda a, b: b + a)
    __sub__ = _elementwise(operator.sub)
    __rsub__ = _elementwise(lambda a, b: b - a)
    __mul__ = _elementwise(operator.mul)
    __rmul__ = _elementwise(lambda a, b: b * a)
    __truediv__ = _elementwise(operator.truediv)
    __rtruediv__ = _elementwise(lambda a, b: b / a)
    __pow__ = _elementwise(operator.pow)
    __neg__ = _elementwise(operator.neg)
    __gt__ = _elementwise(operator.gt)
    __ge__ = _elementwise(operator.ge)
    __lt__ = _elementwise(operator.lt)
    __le__ = _elementwise(operator.le)


class Matrix:
    """Rows of scalars."""

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        self._rows = rows

    def __matmul__(self, vector: Vector) -> Vector:
        return _Product(
            [[a * b for a, b in zip(row, vector.parts, strict=True)] for row in self._rows]
        )


class _Product(Vector):
    """Matrix times vector, not yet summed, so that the sum can begin with another vector."""

    def __init__(self, terms: Sequence[Sequence[Any]]) -> None:
        super().__init__([sum(row[1:], start=row[0]) for row in terms])
        self._terms = terms

    def added_to(self, vector: Vector) -> Vector:
        """Sum beginning with `vector`, so that each term is one multiply-add."""
        return Vector(
            [sum(row, start=first) for first, row in zip(vector.parts, self._terms, strict=True)]
        )
