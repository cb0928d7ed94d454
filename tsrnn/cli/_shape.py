"""Whether a file is long or wide, and which of its columns hold time and ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Shape", "check_there", "shape_of"]

ID, TIME, VALUE = "unique_id", "ds", "y"


class Shape(NamedTuple):
    """Where time and ids are.

    `guessed` says that the first column was taken for time because nothing says which is.
    """

    time: str
    ids: str | None
    wide: bool
    guessed: bool = False

    def arguments(self) -> dict[str, str]:
        """Arguments of forecasters that say so."""
        named = {} if self.ids is None else {"id_col": self.ids}
        return named if self.wide else {"time_col": self.time} | named


def shape_of(
    path: str,
    columns: Sequence[str],
    id_col: str | None = None,
    time_col: str | None = None,
    target: Sequence[str] = (),
    wide: bool = False,
) -> Shape:
    """The shape of a file with these columns, under what was said of it.

    A file is long if it has a column of ids, or one of time and one called y, or if `id_col` or
    `target` is said; else it is wide, time in `time_col`, or in ds, or in the first column.

    Raises
    ------
    ValueError
        If a column that was said, or that of time, is not there.
    """
    check_there(path, columns, [id_col] if id_col else [], "--id-col")
    check_there(path, columns, [time_col] if time_col else [], "--time-col")
    check_there(path, columns, target, "--target")
    ids = id_col or (ID if ID in columns else None)
    time = time_col or (TIME if TIME in columns else None)
    long = ids is not None or bool(target) or (time is not None and VALUE in columns)
    if wide or not long:
        return Shape(time or columns[0], None, True, guessed=time is None and not wide)
    check_there(path, columns, [time or TIME], "--time-col")
    return Shape(time or TIME, ids, False)


def check_there(path: str, columns: Sequence[str], names: Sequence[str], option: str) -> None:
    """Refuse names of columns that a file does not have.

    Raises
    ------
    ValueError
        Naming them, the columns that there are, and the option to name others by.
    """
    missing = [repr(name) for name in names if name not in columns]
    if missing:
        there = ", ".join(map(repr, columns[:10])) + (", ..." if len(columns) > 10 else "")
        raise ValueError(
            f"{path} has no column {', '.join(missing)}; its columns are {there}. Name columns "
            f"that are there by {option}"
        )
