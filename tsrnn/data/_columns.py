"""Which columns are targets and which exogenous, and their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tsrnn.data._dates import is_text
from tsrnn.data._layout import Layout, Name
from tsrnn.data._text import listed, quote, quoted

if TYPE_CHECKING:
    from tsrnn.data._frames import Table

__all__ = ["CONVERT", "choose_columns", "exact_columns", "is_real", "numeric", "written_number"]

CONVERT = (
    'Convert it: pd.read_csv(..., decimal=",", thousands=".") where numbers are written so, or '
    "pd.to_numeric; drop rows that hold none, such as totals"
)


def choose_columns(
    table: Table,
    target: Name | Sequence[Name] | None,
    exog: Sequence[Name] | None,
    layout: Layout | None,
) -> tuple[tuple[Name, ...], tuple[Name, ...]]:
    """Return the names of the targets and of the exogenous columns.

    Raises
    ------
    ValueError
        If a column is missing, not needed or named twice.
    TypeError
        If a column that is left over is not numeric.
    """
    targets = _targets(table, target) if layout is None else layout.target_names
    renamed = table.kind == "series" and layout is not None
    present, chosen = set(targets if renamed else table.names), set(targets)
    missing = [name for name in targets if name not in present]
    if missing:
        raise ValueError(f"the target {quoted(missing)} is not a column; {_others(table)}.")
    others = [] if table.kind == "series" else [n for n in table.names if n not in chosen]
    if exog is not None:
        return targets, exact_columns(others, exog, "exogenous columns")
    _refuse_text(table.columns, others)
    return targets, tuple(others)


def exact_columns(came: Sequence[Name], expected: Sequence[Name], what: str) -> tuple[Name, ...]:
    """Return `expected` if these are the names that came, in any order.

    Raises
    ------
    ValueError
        Naming what is missing and what is not needed.
    """
    missing = [name for name in expected if name not in came]
    extra = [name for name in came if name not in expected]
    if missing or extra:
        parts = [f"missing {quoted(missing)}"] if missing else []
        parts += [f"not needed {quoted(extra)}"] if extra else []
        needed = quoted(expected, 10) if len(expected) else "none"
        action = [*(["add"] if missing else []), *(["drop"] if extra else [])]
        raise ValueError(
            f"{what} must be {needed}; {', '.join(parts)}. {' and '.join(action).capitalize()} "
            "these columns."
        )
    return tuple(expected)


def numeric(
    columns: pd.DataFrame, names: Sequence[Name], what: str, *, booleans: bool = True
) -> np.ndarray:
    """Return columns as a float64 array of its own, shape (N, len(names)); missing is NaN.

    Raises
    ------
    TypeError
        If a column is not numeric (or boolean, where that is allowed).
    """
    out = np.empty((len(columns), len(names)))
    for j, name in enumerate(names):
        column = columns[name]
        if not is_real(column) or (not booleans and pd.api.types.is_bool_dtype(column.dtype)):
            numeral = written_number(column)
            advice, example = "Convert it, for example by astype('float64')", _example(column)
            if numeral is not None:
                advice, example = CONVERT, f", numbers written as text, such as {quote(numeral)}"
            raise TypeError(
                f"{what} {name!r} must be numeric (integer or float); got dtype {column.dtype}"
                f"{example}. {advice}."
            )
        out[:, j] = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return out


def _targets(table: Table, target: Name | Sequence[Name] | None) -> tuple[Name, ...]:
    if target is None:
        return ("y",) if table.kind == "long" else tuple(table.names)
    names = (target,) if isinstance(target, str | int) else _listed(target)
    if not names or len(set(names)) < len(names):
        raise ValueError(
            f"target must name columns, each once; got {target!r}. Give a name or a list of them."
        )
    return names


def _listed(target: Any) -> tuple[Name, ...]:
    """Names as a tuple; empty if they are no names."""
    iterates = isinstance(target, Iterable) and getattr(target, "shape", None) != ()
    names = tuple(target) if iterates else ()
    return names if all(isinstance(name, str | int) for name in names) else ()


def _others(table: Table) -> str:
    """What to take instead of a target that is not there."""
    if table.names:
        return f"the columns are {quoted(table.names, 10)}. Name it by target"
    taken = [name for name in (table.id_col, table.time_col) if name is not None]
    return f"there is no other column than {listed(map(quote, taken))}. Add it"


def _refuse_text(columns: pd.DataFrame, names: Sequence[Name]) -> None:
    text = [name for name in names if not is_real(columns[name])]
    if text:
        dtypes = ", ".join(sorted({str(columns[name].dtype) for name in text}))
        for name in text:
            numeral = written_number(columns[name])
            if numeral is not None:
                raise TypeError(
                    f"columns besides targets must be numeric or boolean; {quote(name)} holds "
                    f"numbers written as text, such as {quote(numeral)}. {CONVERT}."
                )
        raise TypeError(
            f"columns besides targets must be numeric or boolean; not so {quoted(text)} "
            f"(dtype {dtypes}). Drop them or encode them as numbers, as pd.get_dummies(df, "
            f"columns={text!r}, dtype=float) does."
        )


def written_number(column: pd.Series) -> str | None:
    """Return one text of a column of numbers written as text, None of any other column."""
    if not is_text(column):
        return None
    known = column.dropna()
    if known.str.fullmatch(r"\s*[-+]?[\d.,' ]*\d[\d.,' ]*%?\s*").mean() <= 0.5:
        return None
    unread = known[pd.to_numeric(known, errors="coerce").isna()]
    return str((unread if len(unread) else known).iloc[0])


def is_real(column: pd.Series) -> bool:
    """Whether a column holds real numbers or booleans, by its dtype."""
    types = pd.api.types
    return types.is_bool_dtype(column.dtype) or (
        types.is_numeric_dtype(column.dtype) and not types.is_complex_dtype(column.dtype)
    )


def _example(column: pd.Series) -> str:
    there = (value for value in column if not (pd.api.types.is_scalar(value) and pd.isna(value)))
    value = next(there, None)
    return "" if value is None else f" (such as {value!r}, {type(value).__name__})"
