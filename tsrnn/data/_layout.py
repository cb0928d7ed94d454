"""What is remembered of a frame, so that forecasts go back in its shape."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias

__all__ = ["Freq", "Layout", "Name"]

Name: TypeAlias = str | int
Freq: TypeAlias = str | int


@dataclass(frozen=True)
class Layout:
    """The shape of a frame that was read: what `write_frame` needs to give one back.

    All fields are JSON values (tuples become lists), see `to_dict`.

    Parameters
    ----------
    kind : {"series", "wide", "long"}
        A Series; a frame of one series a column, time in its index or in a column; a frame of
        series one below the other, time in a column.
    backend : {"pandas", "polars"}
        The library of the frame.
    target_names : tuple of str or int
        Columns that are forecast. An unnamed Series has the target "y".
    time_kind : {"datetime", "period", "integer"}
        What the timestamps are.
    freq : str or int
        Frequency: a pandas alias, or the step of an integer index.
    time_dtype : str
        The dtype of the timestamps without their zone: "datetime64[us]", "period[M]", "int64",
        or "date" for a polars Date column.
    tz : str or None
        Time zone of the timestamps; None if they are naive.
    id_col : str or None
        Column with the series' ids; None if there is none.
    time_col : str, int or None
        Column with the timestamps; None if they are in the index.
    index_name : str, int or None
        Name of the index of a wide frame.
    series_name : str, int or None
        Name of a Series.

    Examples
    --------
    >>> from tsrnn.data import Layout, read_panel
    >>> from tsrnn.datasets import load_co2
    >>> layout = read_panel(load_co2(), missing="keep").layout
    >>> layout.kind, layout.target_names, layout.freq
    ('wide', ('co2',), 'W-SAT')
    >>> Layout.from_dict(layout.to_dict()) == layout
    True
    """

    kind: Literal["series", "wide", "long"]
    backend: Literal["pandas", "polars"]
    target_names: tuple[Name, ...]
    time_kind: Literal["datetime", "period", "integer"]
    freq: Freq
    time_dtype: str
    tz: str | None = None
    id_col: str | None = None
    time_col: Name | None = None
    index_name: Name | None = None
    series_name: Name | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self) | {"target_names": list(self.target_names)}

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Layout:
        """Rebuild a layout from `to_dict`.

        Raises
        ------
        ValueError
            If fields are missing or unknown, or do not go together.
        """
        known = {field.name for field in fields(cls)}
        if set(state) != known:
            raise ValueError(
                f"a layout has the fields {sorted(known)}; got {sorted(state)}. "
                "Pass what Layout.to_dict() returned."
            )
        layout = cls(**(state | {"target_names": tuple(state["target_names"])}))
        layout._check()
        return layout

    def _check(self) -> None:
        long, wide = self.kind == "long", self.kind == "wide"
        one = len(self.target_names) == 1
        stamps = _STAMPS.get(self.time_kind)
        rules = {
            "kind": self.kind in ("series", "wide", "long") and (one or self.kind != "series"),
            "backend": self.backend == "pandas"
            or (self.backend == "polars" and (long or (wide and self.time_col is not None))),
            "target_names": all(map(_is_name, self.target_names))
            and len(set(self.target_names)) == len(self.target_names) > 0,
            "time_kind": stamps is not None,
            "freq": isinstance(self.freq, int if self.time_kind == "integer" else str),
            "time_dtype": bool(stamps and re.fullmatch(stamps, str(self.time_dtype))),
            "tz": self.tz is None
            or (
                self.time_kind == "datetime"
                and bool(len(str(self.tz)) < 64 and _ZONE.fullmatch(str(self.tz)))
            ),
            "id_col": self.id_col is None or (long and isinstance(self.id_col, str)),
            "time_col": (long and isinstance(self.time_col, str))
            or (not long and self.time_col is None)
            or (wide and _is_name(self.time_col) and self.time_col not in self.target_names),
            "index_name": self.index_name is None or _is_name(self.index_name),
            "series_name": self.series_name is None or _is_name(self.series_name),
        }
        for name, kept in rules.items():
            if not kept:
                raise ValueError(
                    f"the field {name!r} of a layout does not go with the others, or is of "
                    f"another type; got {getattr(self, name)!r}. Pass what Layout.to_dict() "
                    "returned."
                )


# Kind of timestamps -> what its dtypes look like.
_STAMPS = {
    "datetime": r"datetime64\[(s|ms|us|ns)\]|date",
    "period": r"period\[[A-Za-z0-9-]{1,20}\]",
    "integer": r"u?int(8|16|32|64)",
}


# A zone is the name of a file of the tz database, which must not be one elsewhere.
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+:-]*(/[A-Za-z0-9_+:-]+)*")


def _is_name(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)
