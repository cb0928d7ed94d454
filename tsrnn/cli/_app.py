"""The commands, put together."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tsrnn.cli._batch import batch
from tsrnn.cli._compare import compare
from tsrnn.cli._console import command
from tsrnn.cli._features import features
from tsrnn.cli._forecast import forecast
from tsrnn.cli._help import BATCH, COMPARE, EXITS, FEATURES, FORECAST, MODELS, SUMMARY, TSRNN
from tsrnn.cli._model_list import models
from tsrnn.cli._summary import summary

# Without rich, which takes as long to import as everything else of the help.
app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for work, text in (
    (forecast, FORECAST),
    (compare, COMPARE),
    (batch, BATCH),
    (features, FEATURES),
    (summary, SUMMARY),
    (models, MODELS),
):
    app.command(help=text, epilog=EXITS)(command(work))


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"tsrnn {version('tsrnn')}")
        raise typer.Exit


@app.callback(help=TSRNN, epilog=EXITS)
def _of_all_commands(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say the version."),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line on the arguments of the process, and exit."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8")  # ids are of any alphabet, files are UTF-8
    app(prog_name="tsrnn")
