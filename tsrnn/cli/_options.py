"""Options shared by several commands, and the parsing of their lists and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Write one JSON document to stdout.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Say nothing on stderr but errors: no warnings.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Out = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Write the table to a .csv or .parquet file, in one step."),
]
ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="File of a fitted model.")]

Horizon = Annotated[
    int | None, typer.Option("--h", min=1, metavar="N", help="Steps ahead; by frequency.")
]
Level = Annotated[
    list[str] | None,
    typer.Option(metavar="PERCENT", help="Coverage of intervals: 80,95. May be repeated."),
]
Align = Annotated[
    bool,
    typer.Option(
        "--align", help="Steps after the last time of all series, not after the end of each."
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Argument of the model: a JSON value, else text. May be repeated.",
    ),
]
RandomState = Annotated[
    int | None, typer.Option(metavar="N", help="Seed: the same one gives the same forecasts.")
]
KnownAhead = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Columns whose future is known. A comma list, or repeat."),
]
Future = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="The columns of --known-ahead for the steps ahead."),
]

IdCol = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of series ids; unique_id.")
]
TimeCol = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of timestamps; ds.")]
Target = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Columns to forecast; y. A comma list, or repeat."),
]
Wide = Annotated[
    bool, typer.Option("--wide", help="Time in the first column, a variable in each other.")
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Columns not to be read. A comma list, or repeat."),
]
Sep = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Between the fields of CSV; \\t is a tab. By default seen."),
]
Decimal = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Decimal mark of numbers in CSV; , in 1,5. By default seen."),
]
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Encoding of CSV, such as cp1252. By default seen."),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Infer nothing about files: CSV is in UTF-8, with commas, dates in ISO 8601.",
    ),
]
Missing = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Treatment of missing values: auto, error, interpolate, or keep, where the model can.",
    ),
]
Support = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Values that are possible: auto, real, nonnegative, count, binary, or bounds: 0,100.",
    ),
]
TimeFormat = Annotated[
    str | None,
    typer.Option(metavar="FORMAT", help="How dates are written, if not as ISO 8601: %d.%m.%Y."),
]
Freq = Annotated[
    str | None,
    typer.Option(metavar="FREQ", help="Frequency, such as MS, D, 15min; inferred by default."),
]


def names(values: Sequence[str] | None) -> list[str]:
    """Split an option that takes comma lists and may be repeated."""
    return [part.strip() for value in values or () for part in value.split(",") if part.strip()]


def levels(values: Sequence[str] | None) -> list[float] | None:
    """Return the percentages of ``--level``, whole ones as integers."""
    percentages = []
    for text in names(values):
        try:
            value = float(text)
        except ValueError:
            raise typer.BadParameter(
                f"{text!r} is not a percentage such as 80.", param_hint="'--level'"
            ) from None
        percentages.append(int(value) if value.is_integer() else value)
    return percentages or None


def reading(
    freq: str | None,
    target: Sequence[str] | None,
    known_ahead: Sequence[str] | None,
    random_state: int | None,
    missing: str | None,
    support: str | None = None,
) -> dict[str, Any]:
    """Return the arguments of models that have their own options; None where not given."""
    step = int(freq) if freq is not None and freq.isdecimal() else freq  # integer timestamps
    return {
        "freq": step,
        "target": names(target) or None,
        "known_ahead": names(known_ahead) or None,
        "random_state": random_state,
    } | {
        name: value
        for name, value in (("missing", missing), ("support", bounds(support)))
        if value is not None
    }


def bounds(support: str | None) -> str | tuple[float | None, ...] | None:
    """Return the value of ``--support``: a name, or the bounds of ``0,100`` and ``0,``."""
    if support is None or "," not in support:
        return support
    try:
        return tuple(float(end) if end.strip() else None for end in support.split(","))
    except ValueError:
        raise typer.BadParameter(
            f"{support!r} must be two bounds such as 0,100; leave one out for none: 0, or ,100.",
            param_hint="'--support'",
        ) from None


def csv_format(sep: str | None, decimal: str | None) -> tuple[str | None, str | None]:
    """Check separator and decimal mark of CSV."""
    sep = None if sep is None else sep.replace("\\t", "\t")
    for option, text in (("--sep", sep), ("--decimal", decimal)):
        if text is not None and len(text) != 1:
            raise typer.BadParameter(f"{text!r} must be one character.", param_hint=f"'{option}'")
    if decimal is not None and sep == decimal:
        raise typer.BadParameter(
            f"{decimal!r} cannot separate fields and decimals both; name the other by --sep, "
            "such as --sep ';'.",
            param_hint="'--decimal'",
        )
    return sep, decimal
