"""``tsrnn models``."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from tsrnn.cli import _options as o
from tsrnn.cli._models import class_of
from tsrnn.cli._table import MODELS

Name = Annotated[str | None, typer.Argument(metavar="NAME", help="Model to list arguments of.")]


def models(name: Name = None, json: o.Json = False) -> str:
    """List models or arguments of one; see `MODELS`."""
    if name is not None:
        return _arguments(name, json)
    if json:
        from tsrnn.cli._output import document

        rows = [
            {"name": key, "class": f"tsrnn.{entry.room}.{entry.cls}", "description": entry.words}
            for key, entry in MODELS.items()
        ]
        return document("models", models=rows)
    width = max(map(len, MODELS))
    lines = [f"{key:{width}}  {entry.words} ({entry.cls})" for key, entry in MODELS.items()]
    return "\n".join(lines) + "\n"


def _arguments(name: str, json: bool) -> str:
    """Arguments of a model with their defaults."""
    cls = class_of(name)
    rows = [
        {"name": argument.name, "type": str(argument.annotation), "default": argument.default}
        for argument in inspect.signature(cls).parameters.values()
    ]
    if json:
        from tsrnn.cli._output import document

        return document("models", model=name, arguments=rows)
    width = max(len(row["name"]) for row in rows)
    lines = [f"{row['name']:{width}}  {row['default']!r} ({row['type']})" for row in rows]
    return f"{cls.__name__}: arguments with their defaults and types\n" + "\n".join(lines) + "\n"
