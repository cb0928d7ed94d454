"""Commands of the application, with their help."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tsrnn.cli._batch import batch
from tsrnn.cli._compare import compare
from tsrnn.cli._console import command
from tsrnn.cli._forecast import forecast
from tsrnn.cli._models import NAMES
from tsrnn.cli._saved_models import features, models, summary

# Help: lines after a backspace stay as they are.

EXITS = """\b
Exit codes:
  0    done
  1    the data or the model cannot be used; stderr says why
  2    the command was not understood
  130  interrupted"""
TSRNN = """Recurrent networks for time series as statistical models.

Answers go to stdout; warnings, messages and progress go to stderr.

\b
Examples:
  tsrnn forecast data.csv --h 24 --level 80,95 --model pararnn
  tsrnn compare data.csv --h 12 --windows 10 --model pararnn --model arma
  tsrnn forecast --help"""
FORECAST = f"""Fit a model to DATA and write its forecasts, as CSV to stdout by default.

DATA is a CSV or parquet file, a folder of them, a pattern such as 'sales/*.csv', or - for CSV from
stdin. Long: columns unique_id, ds, y, or ds, y of a single series. Wide: time in the first column,
a variable in each other. A file is taken as long if it has a column unique_id, or both ds and y, or
if --id-col or --target is given; else as wide if its column ds, or else its first column, holds
dates. Dates are written as in ISO 8601, or in digits alone as in 20240131 or 202401; other whole
numbers are steps. Where a message names an argument
of the model, such as calendar=True, --set calendar=true gives it. Separator and encoding of CSV,
titles, totals and months as columns are seen in the file and said on stderr; --sep, --decimal,
--encoding and --time-format win where they are given, --strict refuses all else.

With --load, or the file of a saved model as --model, forecasts after DATA without fitting; without
DATA, after the data that the model has seen.

\b
Models: {NAMES}

\b
Examples:
  tsrnn forecast data.csv --h 24 --level 80,95 --model pararnn
  tsrnn forecast data.csv --h 24 --set hidden_size=64 --set cell=gru --save model.tsrnn
  tsrnn forecast new.csv --h 24 --load model.tsrnn --out forecasts.parquet
  tsrnn forecast sales.csv --h 7 --known-ahead price --future prices.csv
  cat data.csv | tsrnn forecast - --model ets --set trend=add --json"""
COMPARE = f"""Backtest models on DATA from rolling origins, compare their accuracy and test it.

Prints a table of accuracy, the best model first, and what the tests say in words. DATA is as for
forecast. A model is called as in --model NAME, or by a label as in --model LABEL=NAME. --set
NAME=VALUE is for every model that has such an argument, --set LABEL.NAME=VALUE for one.

\b
Models: {NAMES}

\b
Examples:
  tsrnn compare data.csv --h 12 --windows 10 --model pararnn --model arma
  tsrnn compare data.csv --h 12 --windows 20 --model pararnn,naive --level 80 --report report.html
  tsrnn compare data.csv --h 12 --model small=pararnn --model large=pararnn \\
      --set small.hidden_size=16 --set large.hidden_size=128 --json"""
BATCH = f"""Forecast many series from files, part by part; a run that broke off goes on.

SOURCE is a parquet or CSV file, a folder of them, or a pattern such as 'sales/*.parquet', and holds
a long table. Forecasts are parquet files in the folder --out, as is what went wrong with single
series. The model is the file of a fitted one, or the name of one with parameters for each series,
which is fitted to each; networks have to be fitted before.

\b
Models: {NAMES}

\b
Examples:
  tsrnn batch sales/ --h 28 --level 80 --model model.tsrnn --out forecasts
  tsrnn batch 'sales/*.parquet' --h 28 --model arma --set 'order=[2,0]' --out forecasts --jobs 4"""
FEATURES = """Read the recurrence features of a saved model: decays and damped waves.

\b
Examples:
  tsrnn features model.tsrnn
  tsrnn features model.tsrnn --json
  tsrnn features model.tsrnn --out features.csv"""
SUMMARY = """Say what a saved model is, what it was fitted to and how well.

\b
Examples:
  tsrnn summary model.tsrnn
  tsrnn summary model.tsrnn --json"""
MODELS = """List the models, or the arguments of the model NAME.

\b
Examples:
  tsrnn models
  tsrnn models pararnn"""

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
def _callback(
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
            stream.reconfigure(encoding="utf-8")  # ids may be in any alphabet
    app(prog_name="tsrnn")
