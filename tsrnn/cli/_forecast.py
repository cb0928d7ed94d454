"""``tsrnn forecast``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tsrnn.cli import _options as o
from tsrnn.cli._console import note, say, verbosity
from tsrnn.cli._models import check_as_fitted, is_file, load_forecaster, make_model, settings_of

if TYPE_CHECKING:
    import pandas as pd

    from tsrnn.cli._source import Source

Data = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA", help="CSV or parquet file, or folder or pattern; - is CSV from stdin."
    ),
]
Model = Annotated[
    str | None, typer.Option(metavar="NAME", help="Model, or file of a fitted one; pararnn.")
]
Load = Annotated[str | None, typer.Option(metavar="FILE", help="File of a fitted model to use.")]
Save = Annotated[str | None, typer.Option(metavar="FILE", help="Keep the fitted model.")]

DEFAULT = "pararnn"


class Ahead(NamedTuple):
    """Horizon, levels, file of the columns known ahead, and alignment of the steps."""

    h: int | None
    level: list[float] | None
    future: str | None
    align: bool = False


def forecast(
    data: Data = None,
    model: Model = None,
    h: o.Horizon = None,
    level: o.Level = None,
    align: o.Align = False,
    out: o.Out = None,
    json: o.Json = False,
    save: Save = None,
    load: Load = None,
    settings: o.Settings = None,
    random_state: o.RandomState = None,
    freq: o.Freq = None,
    id_col: o.IdCol = None,
    time_col: o.TimeCol = None,
    target: o.Target = None,
    known_ahead: o.KnownAhead = None,
    future: o.Future = None,
    wide: o.Wide = False,
    drop: o.Drop = None,
    sep: o.Sep = None,
    decimal: o.Decimal = None,
    encoding: o.Encoding = None,
    missing: o.Missing = None,
    support: o.Support = None,
    time_format: o.TimeFormat = None,
    strict: o.Strict = False,
) -> str:
    """Fit or load a model and forecast; see `FORECAST`."""
    from tsrnn.cli._output import check_out
    from tsrnn.cli._source import Source

    ahead = Ahead(h, o.levels(level), future, align)
    files = {"DATA": data, "--future": future, "--load": load, "--model": model}
    check_out(out, "--out", others=files | {"--save": save})
    check_out(save, "--save", (), files)
    source = Source(
        id_col, time_col, o.names(target), wide, o.names(drop), *o.csv_format(sep, decimal),
        encoding, time_format, strict,
    )  # fmt: skip
    given = settings_of(settings)
    arguments = o.reading(freq, target, known_ahead, random_state, missing, support)
    path = _fitted(data, model, load)
    if path is not None:
        check_as_fitted(arguments, given, "--model" if load is None else "--load", save=save)
        fitted, frame = _apply(source, data, load_forecaster(path), ahead)
        return _answer(fitted, frame, ahead, out, json)
    arguments |= {"horizon": h, "strict": strict, "verbose": verbosity()}
    fitted, frame = _fit(source, str(data), (model or DEFAULT, arguments, given), ahead)
    if save is not None:
        fitted.save(save)
        say(f"saved the model to {save}")
    return _answer(fitted, frame, ahead, out, json)


def _fitted(data: str | None, model: str | None, load: str | None) -> str | None:
    """Return the file of a fitted model, if one is to be used."""
    if load is not None and model is not None:
        raise typer.BadParameter("use either --model or --load.", param_hint="'--load'")
    path = load if load is not None else model if model and is_file(model) else None
    if path is None and data is None:
        raise typer.BadParameter(
            "a model needs DATA to be fitted to; without DATA, --load a fitted one.",
            param_hint="'DATA'",
        )
    return path


def _fit(
    source: Source, data: str, model: tuple[str, dict[str, Any], dict[str, Any]], ahead: Ahead
) -> Any:
    """Fit a model to the data; return it and its forecasts."""
    name, arguments, settings = model
    forecaster = make_model(name, arguments, settings)
    frame, shape = source.read(data)
    forecaster.set_params(**shape.arguments())
    forecaster.fit(frame)
    for sentence in forecaster.data_summary_.notes:
        note(sentence)
    known = None if ahead.future is None else source.read_future(ahead.future, shape)
    return forecaster, forecaster.predict(
        h=ahead.h, level=ahead.level, X_future=known, align=ahead.align
    )


def _apply(source: Source, data: str | None, model: Any, ahead: Ahead) -> Any:
    """Forecast with a fitted model, after other data or after the data it has seen."""
    from tsrnn.cli._source import in_layout

    layout, ids = model.fitted_.data.layout, model.state_.ids
    source, shape = source.like(layout)
    frame, known = None, None
    if data is not None:
        frame, shape = source.read(data, shape)
        frame = in_layout(frame, layout, ids)
    if ahead.future is not None:
        known = in_layout(source.read_future(ahead.future, shape), layout, ids)
    return model, model.predict(
        frame, h=ahead.h, level=ahead.level, X_future=known, align=ahead.align
    )


def _answer(model: Any, frame: Any, ahead: Ahead, out: str | None, json: bool) -> str:
    from tsrnn.cli._output import as_csv, document, records, write_table

    table = _table(model, frame)
    if out is not None:
        write_table(table, out)
    if not json:
        return "" if out is not None else as_csv(table)
    return document(
        "forecast",
        model=model.column_name,
        freq=model.freq_,
        h=ahead.h or model.horizon_,
        level=ahead.level or [],
        columns=list(table.columns),
        forecasts=records(table),
    )


def _table(model: Any, frame: Any) -> pd.DataFrame:
    """Return forecasts with ids and times as columns."""
    from tsrnn.data import to_pandas

    layout = model.fitted_.data.layout
    if layout.time_col is not None:
        return to_pandas(frame)
    wide = frame.to_frame(frame.name or model.column_name) if frame.ndim == 1 else frame
    return wide.rename_axis(layout.index_name or "ds").reset_index()
