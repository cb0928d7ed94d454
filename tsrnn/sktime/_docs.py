"""Docstrings of classes whose arguments are those of another."""

from __future__ import annotations

import inspect
import re

_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def with_parameters(own: str | None, theirs: str | None, kept: list[str]) -> str:
    """A docstring with the section on some of the parameters of another before its examples."""
    doc, heading = inspect.cleandoc(own or ""), "Examples\n--------\n"
    before, _, after = doc.partition(heading)
    entries = _entries(_section(inspect.cleandoc(theirs or ""), "Parameters"))
    told = "".join(_kept(entry, kept) for entry in entries)
    return f"{before}Parameters\n----------\n{told.rstrip()}\n\n{heading}{after}"


def _section(doc: str, name: str) -> str:
    parts = _HEADING.split(doc)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[name]


def _entries(section: str) -> list[str]:
    """Entries of a section, each from the names at the margin to the next ones."""
    return re.split(r"^(?=\S)", section, flags=re.MULTILINE)[1:]


def _kept(entry: str, kept: list[str]) -> str:
    """An entry with those of its names that are kept; nothing if there is none."""
    head, _, rest = entry.partition("\n")
    names, colon, kind = head.partition(" : ")
    left = [name for name in names.split(", ") if name in kept]
    return f"{', '.join(left)}{colon}{kind}\n{rest}" if left else ""
