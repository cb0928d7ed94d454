"""``tsrnn features``, ``tsrnn summary`` and ``tsrnn models``."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import typer

from tsrnn.cli import _options as o
from tsrnn.cli._models import COMMANDS, class_of, load_forecaster
from tsrnn.models import MODELS

Name = Annotated[str | None, typer.Argument(metavar="NAME", help="Model to list arguments of.")]


def features(model: o.ModelFile, out: o.Out = None, json: o.Json = False) -> str:
    """Recurrence features of a saved model; see `FEATURES`."""
    from tsrnn.cli._output import check_out, document, records, write_table
    from tsrnn.interpret import recurrence_features
    from tsrnn.storage import load

    check_out(out, "--out", others={"MODEL": model})
    fitted = load(model)
    table = recurrence_features(fitted)
    unit, step = table.attrs["time_unit"], table.attrs["time_step"]
    if out is not None:
        write_table(table, out)
    if json:
        return document(
            "features",
            model=type(fitted).__name__,
            time_unit=unit,
            time_step=step,
            features=records(table),
        )
    if out is not None:
        return ""
    units = f"half_life and period are in {unit}."
    if table.get("beyond_sample", False) is not False and table["beyond_sample"].any():
        length = table.attrs["sample_length"]
        units += f" beyond_sample: longer than the data ({length:g} {unit}), not identified."
    return f"{table.to_string(index=False)}\n\n{units}\n"


def summary(model: o.ModelFile, json: o.Json = False) -> str:
    """Describe a saved model; see `SUMMARY`."""
    fitted = load_forecaster(model)
    page = str(fitted.summary())
    if not json:
        return f"{page.rstrip()}\n"
    from tsrnn.cli._output import document
    from tsrnn.contract import arguments_of
    from tsrnn.data import write_stamps

    data = fitted.fitted_.data
    last = write_stamps(fitted.state_.last_times, data.layout)
    return document(
        "summary",
        model=type(fitted).__name__,
        arguments=arguments_of(fitted)["params"],
        freq=fitted.freq_,
        horizon=fitted.horizon_,
        targets=list(data.layout.target_names),
        exogenous=list(data.layout.frame_names(data.exog_names)),
        known_ahead=list(fitted.known_ahead_),
        series=[
            {"id": name, "last_time": time}
            for name, time in zip(fitted.state_.ids, last, strict=True)
        ],
        summary=page,
    )


def models(name: Name = None, json: o.Json = False) -> str:
    """List models or arguments of one; see `MODELS`."""
    if name is None:
        described = [(key, cls, MODELS[cls]) for key, cls in COMMANDS.items()]
        rows = [
            {"name": key, "class": f"{model.module}.{cls}", "description": model.description}
            for key, cls, model in described
        ]
        fields: dict[str, Any] = {"models": rows}
        width = max(map(len, COMMANDS))
        lines = [f"{key:{width}}  {model.description} ({cls})" for key, cls, model in described]
    else:
        cls = class_of(name)
        arguments = inspect.signature(cls).parameters.values()
        rows = [
            {"name": a.name, "type": str(a.annotation), "default": a.default} for a in arguments
        ]
        fields = {"model": name, "arguments": rows}
        width = max(len(row["name"]) for row in rows)
        lines = [f"{cls.__name__}: arguments with their defaults and types"]
        lines += [f"{row['name']:{width}}  {row['default']!r} ({row['type']})" for row in rows]
    if not json:
        return "\n".join(lines) + "\n"
    from tsrnn.cli._output import document

    return document("models", **fields)
