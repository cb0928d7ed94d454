"""Baselines in words."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tsrnn.data import Layout

NAMES_SHOWN = 3
_WHEN = re.compile(
    r"^(\s*(?:Date|Time):\s+)"
    r"(\w{3}, \d\d,? \w{3},? \d{4}|\w{3}, \w{3} \d\d \d{4}|\d\d:\d\d:\d\d)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class BaselineSummary:
    """A fitted baseline in words; print it.

    Attributes
    ----------
    title : str
    text : str
    """

    title: str
    text: str

    def __str__(self) -> str:
        return f"{self.title}\n\n{self.text}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def undated(text: str) -> str:
    """A page of statsmodels or arch without the time at which it was written."""
    return _WHEN.sub(lambda found: found[1] + " " * len(found[2]), text)


def series_named(layout: Layout, ids: Iterable[Any]) -> str:
    """The first few of some series, quoted; "the series" where data have no ids."""
    return "the series" if layout.id_col is None else listed(ids)


def listed(labels: Iterable[Any]) -> str:
    """The first few of some labels, quoted."""
    names = [repr(label) for label in labels]
    shown = ", ".join(names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"first {shown}"
