"""Cell: one step of a recurrence, written as a torch function of scalars."""

from __future__ import annotations

import itertools
import keyword
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from torch import Tensor

Fields = tuple[Tensor, ...]  # state, inputs or parameters of a unit, as a step sees them
Names = tuple[str, ...]
Groups = tuple[tuple[int, ...], ...]
Rows = tuple[tuple[Tensor | float, ...], ...]
STRUCTURES = ("dense", "diagonal")


@dataclass(frozen=True)
class Cell:
    """One unit of a recurrence ``state_t = step(state_{t-1}, inputs_t, params)``.

    A layer is K units side by side that share `step` and own their parameters.
    `step` sees the fields of one unit as tensors of equal shape and combines
    them element by element; its derivative, its Jacobian and its compiled forms
    follow from tracing it once.

    `jacobian` and `structure` belong to the iteration of the engines "newton" and "shooting".
    They change the number and cost of its passes, but neither the states nor the gradients, which
    always use the traced derivative. If the structure drops nonzero entries, the iteration is the
    quasi-Newton method of
    Gonzalez et al. (2024): its error shrinks by a factor a pass, not quadratically, and after
    k passes the first k steps are exact.

    Compiled code belongs to a cell, and cells are equal if all their parts are. Make a
    cell once, at module level or in a cached function, not at every call. A cell can be
    pickled if its step can: a function of a module, not a lambda.

    Parameters
    ----------
    name : str
        Name of the recurrence, used in messages and file names: letters, digits,
        ``_``, ``-`` and ``.`` only.
    n, m, p : int
        Number of state fields, of input fields and of parameters of a unit.
    step : callable
        ``step(state, inputs, params) -> state`` on tuples of n, m and p tensors. It is
        traced once; values from outside its arguments are fixed at that time.
    shared : bool, default False
        Give all units the same inputs, (B, T, m) instead of (B, T, m, K), as
        `projected_recurrence` does.
    outputs : int, optional
        Number of leading state fields that a layer outputs: h of an LSTM, not its cell.
        All by default.
    names : three tuples of str, optional
        Names of the state fields, input fields and parameters in emitted code;
        ``h0, h1, ...``, ``u0, ...`` and ``w0, ...`` by default.
    jacobian : callable, optional
        ``jacobian(state, inputs, params) -> rows``, the derivative of the new state by the old
        one: n rows of n tensors or numbers, written as `step` is. The traced derivative by
        default, with which it is compared at random points when Newton's method first needs it.
    structure : {"dense", "diagonal"} or tuple of tuples of int, default "dense"
        Entries of the Jacobian that Newton's iteration keeps: all of them, the diagonal, or
        those between state fields of one group. ``((0, 2), (1, 3))`` is block-diagonal with the
        blocks of fields 0 and 2, and 1 and 3; groups are of one size.

    Raises
    ------
    ValueError
        If the name, a number, the names of fields, the Jacobian or its structure is not legal.

    References
    ----------
    Danieli et al. (2025), "ParaRNN: unlocking parallel training of nonlinear RNNs for large
    language models", appendix D.4. Gonzalez, Warrington, Smith and Linderman (2024), "Towards
    scalable and stable parallelization of nonlinear RNNs".

    Examples
    --------
    The linear recurrence ``h_t = a h_{t-1} + u_t``:

    >>> from tsrnn.kernels import Cell
    >>> Cell("decay", n=1, m=1, p=1, step=lambda h, u, a: (a[0] * h[0] + u[0],)).name
    'decay'
    """

    name: str
    n: int
    m: int
    p: int
    step: Callable[[Fields, Fields, Fields], Fields]
    shared: bool = False
    outputs: int | None = None
    names: tuple[Names, Names, Names] | None = None
    jacobian: Callable[[Fields, Fields, Fields], Rows] | None = None
    structure: str | Groups = "dense"
    key: str = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w.-]+", self.name, re.ASCII):
            raise ValueError(
                f"a cell's name must be of letters, digits, '_', '-' and '.'; got {self.name!r}"
            )
        if not callable(self.step):
            raise ValueError(f"step of cell {self.name!r} must be a function; got {self.step!r}")
        if not all(isinstance(count, int) for count in (self.n, self.m, self.p)) or not (
            self.n >= 1 and self.m >= 0 and self.p >= 0
        ):
            raise ValueError(
                f"cell {self.name!r} needs n >= 1 state fields, m >= 0 input fields and "
                f"p >= 0 parameters; got n={self.n!r}, m={self.m!r}, p={self.p!r}"
            )
        if not isinstance(self.n_outputs, int) or not 1 <= self.n_outputs <= self.n:
            raise ValueError(
                f"outputs of cell {self.name!r} must be an integer between 1 and n={self.n}; "
                f"got {self.outputs!r}"
            )
        self._check_names()
        if not (self.jacobian is None or callable(self.jacobian)):
            raise ValueError(
                f"jacobian of cell {self.name!r} must be a function or None; got {self.jacobian!r}"
            )
        self._check_structure()
        # Hashed once, not at each look-up: a step in matrix form holds a table.
        parts = tuple(getattr(self, f.name) for f in fields(self) if f.compare)
        object.__setattr__(self, "_hash", hash(parts))
        # Custom operators of torch identify a cell by this key; see `registered`.
        object.__setattr__(self, "key", _register(self))

    def _check_names(self) -> None:
        if self.names is None:
            return
        counts = tuple(len(part) for part in self.names)
        if counts != (self.n, self.m, self.p):
            raise ValueError(
                f"names of cell {self.name!r} must be {self.n} state fields, {self.m} input "
                f"fields and {self.p} parameters; got {counts}"
            )
        every = Counter(name for part in self.names for name in part)
        for name, uses in every.items():
            legal = name.isidentifier() and name.isascii() and not keyword.iskeyword(name)
            if not legal or uses > 1:
                raise ValueError(
                    f"names of cell {self.name!r} must be different identifiers; got {name!r}"
                )

    def _check_structure(self) -> None:
        if isinstance(self.structure, str) and self.structure in STRUCTURES:
            return
        groups = self.structure
        legal = isinstance(groups, tuple) and all(isinstance(group, tuple) for group in groups)
        fields = [i for group in groups for i in group] if legal else []
        legal = legal and all(isinstance(i, int) and not isinstance(i, bool) for i in fields)
        if not legal or sorted(fields) != list(range(self.n)) or len(set(map(len, groups))) > 1:
            raise ValueError(
                f"structure of cell {self.name!r} must be one of {STRUCTURES} or groups of one "
                f"size that hold each of the state fields 0 to {self.n - 1} once, such as "
                f"{tuple((i,) for i in range(self.n))}; got {groups!r}"
            )

    @property
    def groups(self) -> Groups:
        """Groups of state fields that interact in Newton's iteration, of equal size."""
        if self.structure == "dense":
            return (tuple(range(self.n)),)
        if self.structure == "diagonal":
            return tuple((i,) for i in range(self.n))
        assert not isinstance(self.structure, str)
        return self.structure

    @property
    def has_newton_matrix(self) -> bool:
        """True if the matrix of Newton's iteration is not the traced Jacobian."""
        return self.jacobian is not None or self.structure != "dense"

    @property
    def field_names(self) -> tuple[Names, Names, Names]:
        """Names of state fields, input fields and parameters."""
        if self.names is not None:
            return self.names
        counts = (("h", self.n), ("u", self.m), ("w", self.p))
        state, inputs, params = (
            tuple(f"{prefix}{i}" for i in range(count)) for prefix, count in counts
        )
        return state, inputs, params

    @property
    def n_outputs(self) -> int:
        """Number of state fields that a layer outputs."""
        return self.n if self.outputs is None else self.outputs

    def __hash__(self) -> int:
        return self._hash

    def __copy__(self) -> Cell:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Cell:
        return self  # a copy would be another cell, to be compiled again

    def __reduce__(self) -> tuple[Any, ...]:
        return Cell, tuple(getattr(self, f.name) for f in fields(self) if f.init)


_keys: dict[Cell, str] = {}
_cells: dict[str, Cell] = {}
_numbers = itertools.count()


def _register(cell: Cell) -> str:
    """Key of a cell, shared by equal cells in this process."""
    # Unused numbers are skipped; two threads never draw the same one.
    key = _keys.setdefault(cell, f"{cell.name}#{next(_numbers)}")
    _cells.setdefault(key, cell)
    return key


def registered(key: str) -> Cell:
    """Cell registered under a key in this process."""
    if key not in _cells:
        raise ValueError(
            f"there is no cell of key {key!r} in this process: keys are not kept in files. "
            "Make the cell, and compile or export the model, in the process that runs it"
        )
    return _cells[key]
