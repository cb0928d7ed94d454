"""``tsrnn batch``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tsrnn.cli import _options as o
from tsrnn.cli._console import verbosity
from tsrnn.cli._models import check_as_fitted, is_file, load_forecaster, make_model, settings_of

Files = Annotated[
    str, typer.Argument(metavar="SOURCE", help="Parquet or CSV file, folder or pattern.")
]
Folder = Annotated[str, typer.Option("--out", metavar="FOLDER", help="Folder of the forecasts.")]
Model = Annotated[
    str, typer.Option(metavar="NAME", help="Classical model, or file of a fitted one.")
]
Jobs = Annotated[
    int | None, typer.Option(metavar="N", help="Processes, -1 for one a core; this one by default.")
]
Rows = Annotated[int, typer.Option(min=1, metavar="N", help="Rows of a part.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace another run in the folder.")]


def batch(
    source: Files,
    out: Folder,
    model: Model,
    h: o.Horizon = None,
    level: o.Level = None,
    json: o.Json = False,
    jobs: Jobs = None,
    rows_per_batch: Rows = 2**20,
    overwrite: Overwrite = False,
    settings: o.Settings = None,
    random_state: o.RandomState = None,
    freq: o.Freq = None,
    id_col: o.IdCol = None,
    time_col: o.TimeCol = None,
    target: o.Target = None,
    known_ahead: o.KnownAhead = None,
    future: o.Future = None,
    sep: o.Sep = None,
    decimal: o.Decimal = None,
    missing: o.Missing = None,
    support: o.Support = None,
) -> str:
    """Forecast many series from files; see `BATCH`."""
    levels, given = o.levels(level), settings_of(settings)
    sep, decimal = o.csv_format(sep, decimal)
    arguments = o.reading(freq, target, known_ahead, random_state, missing, support)
    forecaster = _model(model, h, arguments | {"id_col": id_col, "time_col": time_col}, given)
    from tsrnn.batch import forecast_batches

    done = forecast_batches(
        source,
        forecaster,
        h=h,
        level=levels,
        out=out,
        X_future=future,
        sep=sep,
        decimal=decimal,
        n_jobs=jobs,
        rows_per_batch=rows_per_batch,
        overwrite=overwrite,
        verbose=verbosity(),
    )
    return _answer(done, out, json)


def _model(model: str, h: int | None, arguments: dict[str, Any], settings: dict[str, Any]) -> Any:
    if is_file(model):
        check_as_fitted(arguments, settings, "--model")
        return load_forecaster(model)
    given = {name: value for name, value in arguments.items() if value is not None}
    return make_model(model, given if h is None else {"horizon": h} | given, settings)


def _answer(done: Any, out: str, json: bool) -> str:
    from tsrnn.cli._output import document
    from tsrnn.data import quote

    if done.n_series and done.n_failed == done.n_series:
        first = next(done.errors().query("kind == 'error'").itertuples())
        raise RuntimeError(
            f"no series could be forecast; the first, {quote(first.unique_id)}: "
            f"{first.message.rstrip('.')}. All errors are in {Path(out) / 'errors'}"
        )
    if not json:
        return f"{done}\n"
    counts = {"n_series": done.n_series, "n_failed": done.n_failed}
    return document("batch", out=out, **counts, text=str(done))
