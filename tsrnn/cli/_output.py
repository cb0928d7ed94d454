"""Tables and documents as text and files."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer

from tsrnn.cli._console import say
from tsrnn.contract import file_place, put_file
from tsrnn.data import DataFiles, to_polars

SUFFIXES = ".csv", ".parquet"


def document(command: str, **fields: Any) -> str:
    """Return a JSON document, with the command and the version of tsrnn in front."""
    whole = {"command": command, "version": version("tsrnn")} | fields
    return json.dumps(_value(whole), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as dicts of JSON values."""
    columns = {str(name): [_value(item) for item in column] for name, column in table.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def as_csv(table: pd.DataFrame) -> str:
    """Return a table without its index as CSV; missing values are empty."""
    return str(table.to_csv(index=False, lineterminator="\n"))


def check_out(
    path: str | None,
    option: str,
    suffixes: tuple[str, ...] = SUFFIXES,
    others: Mapping[str, str | None] | None = None,
) -> None:
    """Refuse a place that cannot be written to, before any work.

    `option` is its name in messages; empty `suffixes` allow any format. `others` are files of the
    same command, read or written, by their options.
    """
    if path is None:
        return
    place = Path(path).expanduser()
    if suffixes and place.suffix.lower() not in suffixes:
        raise typer.BadParameter(
            f"{path!r} must end in {' or '.join(suffixes)}.", param_hint=f"'{option}'"
        )
    file_place(path, others)
    for argument, source in (others or {}).items():  # the files of a folder or pattern as well
        if source is None or os.path.isfile(source):
            continue
        try:
            files = DataFiles.find(source)
        except (OSError, ValueError):  # refused where it is read
            continue
        for file in files.paths:
            file_place(path, {argument: str(file)})


def write_table(table: pd.DataFrame, path: str) -> None:
    """Write a table as CSV or parquet: beside its place, then renamed."""
    place = Path(path).expanduser()
    if place.suffix.lower() == ".parquet":
        put_file(place, to_polars(table).write_parquet)
    else:
        text = as_csv(table)
        put_file(place, lambda place: place.write_text(text, encoding="utf-8", newline=""))
    say(f"wrote {len(table)} rows to {path}")


def _value(value: Any) -> Any:
    """Return a JSON value: NaN and missing times are null, infinities text, times ISO 8601."""
    if isinstance(value, dict):
        return {str(key): _value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_value(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is pd.NaT or isinstance(value, bool | int | str):
        return None if value is pd.NaT else value
    if isinstance(value, float):
        return value if math.isfinite(value) else (None if math.isnan(value) else str(value))
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
