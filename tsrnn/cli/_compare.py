"""``tsrnn compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsrnn.cli import _options as o
from tsrnn.cli._console import note, say, verbosity
from tsrnn.cli._models import make_models, settings_of

if TYPE_CHECKING:
    from tsrnn.evaluation import Comparison

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="CSV or parquet file, or folder or pattern; - is CSV from stdin."
    ),
]
Models = Annotated[
    list[str], typer.Option("--model", metavar="[LABEL=]NAME", help="A comma list, or repeat.")
]
Steps = Annotated[
    int, typer.Option("--h", min=1, metavar="N", help="Steps to forecast in a window.")
]
Windows = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Windows up to the end of the data; 20, if they fit."),
]
Step = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Rows from window to window; --h, or less for 20."),
]
Refit = Annotated[bool, typer.Option(help="Fit in every window, or in the first alone.")]
Loss = Annotated[
    str | None, typer.Option(metavar="NAME", help="Loss of the tests: squared or absolute.")
]
Benchmark = Annotated[
    str | None, typer.Option(metavar="LABEL", help="Model that the words hold the others against.")
]
Report = Annotated[str | None, typer.Option(metavar="FILE", help="Write an HTML page of all.")]
Forecasts = Annotated[
    str | None,
    typer.Option("--out", metavar="FILE", help="Write the forecasts to a .csv or .parquet file."),
]
LOSSES = "squared", "absolute"


def compare(
    data: Data,
    model: Models,
    h: Steps,
    windows: Windows = None,
    step: Step = None,
    refit: Refit = True,
    level: o.Level = None,
    benchmark: Benchmark = None,
    loss: Loss = None,
    report: Report = None,
    out: Forecasts = None,
    json: o.Json = False,
    settings: o.Settings = None,
    random_state: o.RandomState = None,
    freq: o.Freq = None,
    id_col: o.IdCol = None,
    time_col: o.TimeCol = None,
    target: o.Target = None,
    known_ahead: o.KnownAhead = None,
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
    """Backtest models, compare and report; see `COMPARE`."""
    from tsrnn.cli._output import check_out, write_table
    from tsrnn.cli._source import Source
    from tsrnn.data import read_panel

    levels = o.levels(level)
    check_out(report, "--report", (".html",), {"DATA": data})
    check_out(out, "--out", others={"DATA": data})
    source = Source(
        id_col, time_col, o.names(target), wide, o.names(drop), *o.csv_format(sep, decimal),
        encoding, time_format, strict,
    )  # fmt: skip
    arguments = {"horizon": h, "strict": strict} | o.reading(
        freq, target, known_ahead, random_state, missing, support
    )
    models = make_models(o.names(model), arguments, settings_of(settings))
    chosen = _chosen(models, benchmark, loss)
    frame, shape = source.read(data)
    for forecaster in models.values():
        forecaster.set_params(**shape.arguments())
    given = {name: arguments[name] for name in ("target", "freq")} | shape.arguments()
    for sentence in read_panel(frame, missing=missing or "auto", strict=strict, **given).notes:
        note(sentence)
    from tsrnn.evaluation import backtest

    tested = backtest(
        models, frame, h, windows, step, refit=refit, level=levels, verbose=verbosity()
    )
    if out is not None:
        write_table(tested, out)
    return _answer(tested, chosen, report, json)


def _chosen(models: dict[str, Any], benchmark: str | None, loss: str | None) -> dict[str, Any]:
    """Return the arguments of the comparison of some models."""
    if loss not in (None, *LOSSES):
        raise typer.BadParameter(f"{loss!r} is none of {', '.join(LOSSES)}.", param_hint="'--loss'")
    if benchmark is not None and benchmark not in models:
        raise typer.BadParameter(
            f"{benchmark!r} is none of the models {', '.join(models)}.", param_hint="'--benchmark'"
        )
    owa = next((label for label in models if models[label].column_name == "Naive2"), "Naive2")
    return {"benchmark": benchmark, "loss": loss, "owa_benchmark": owa}


def _answer(tested: Any, chosen: dict[str, Any], report: str | None, json: bool) -> str:
    from tsrnn.evaluation import compare as compare_models

    result = compare_models(tested, **chosen)
    if report is not None:
        from tsrnn.reporting import report as write_report

        write_report(result, report)
        say(f"wrote {report}")
    if json:
        return _document(result)
    for sentence in result.notes:
        note(sentence)
    words = "\n".join(result.words())
    return f"{result.accuracy.to_string()}\n\n{words}\n"


def _document(result: Comparison) -> str:
    from tsrnn.cli._output import document, records

    facts = result.forecasts.attrs["backtest"]
    return document(
        "compare",
        models=result.models,
        measure=result.measure,
        loss=result.loss,
        h=result.horizon,
        n_series=result.n_series,
        n_windows=result.n_windows,
        accuracy=records(result.accuracy.rename_axis("model").reset_index()),
        by_step=records(result.by_step.rename_axis(["step", "model"]).reset_index()),
        diebold_mariano=records(result.diebold_mariano),
        confidence_set=records(result.confidence_set.rename_axis("model").reset_index()),
        words=result.words(),
        notes=result.notes,
        set_aside=records(result.set_aside),
        seconds=facts["seconds"],
        failures=facts["failures"],
    )
