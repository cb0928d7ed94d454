"""Data as people write them, made ready for `read_table`: each step says what it recognised."""

from __future__ import annotations

from typing import Any

from tsrnn.data._panel import Layout, Name

__all__ = ["recognise"]


def recognise(df: Any, id_col: str, time_col: Name, layout: Layout | None) -> tuple[Any, list[str]]:
    """Frame in the form that `read_table` reads, and a sentence on each thing recognised.

    What has two readings that differ is left as it is: `read_table` refuses it and says both.
    """
    return df, []
