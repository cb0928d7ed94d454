"""A comparison on one page of at most 100 columns."""

from __future__ import annotations

import html
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tsrnn.evaluation._diebold_mariano import ALL
from tsrnn.evaluation._numbers import p_value

if TYPE_CHECKING:
    from tsrnn.evaluation._comparison import Comparison

WIDTH = 100
LONGEST_NAME = 24
MATRIX = 8  # models up to which all p-values are shown
ENCOMPASSING = 4  # models up to which every ordered pair is shown
UNITS = {"time": "windows", "series": "series"}


@dataclass(frozen=True, eq=False)
class ComparisonSummary:
    """Text and tables of a comparison; print it.

    Attributes
    ----------
    facts : dict
        What was compared.
    tables : dict
        By heading, the tables as they are printed.
    words, notes : list of str
    """

    facts: dict[str, object]
    tables: dict[str, pd.DataFrame]
    words: list[str]
    notes: list[str]

    def __str__(self) -> str:
        lines = ["Comparison of forecasts".center(WIDTH).rstrip(), "=" * WIDTH]
        lines += _wrapped("; ".join(f"{key}: {value}" for key, value in self.facts.items()))
        for heading, table in self.tables.items():
            lines += ["-" * WIDTH, *_wrapped(heading), *_lines(table)]
        lines.append("=" * WIDTH)
        for text in self.words:
            lines += _wrapped(text)
        if self.notes:
            lines += ["", "Notes:"]
        for i, note in enumerate(self.notes, 1):
            lines += _wrapped(f"[{i}] {note}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def comparison_page(comparison: Comparison) -> ComparisonSummary:
    """Put the page of a comparison together."""
    facts: dict[str, object] = {
        "Series": comparison.n_series,
        "windows" if comparison.n_series == 1 else "windows of all series": comparison.n_windows,
        "steps": comparison.horizon,
        "loss of the tests": comparison.loss,
    }
    if comparison.over is not None:
        facts["tests over"] = comparison.over
    return ComparisonSummary(facts, _tables(comparison), comparison.words(), comparison.notes)


def _tables(comparison: Comparison) -> dict[str, pd.DataFrame]:
    tables = {f"Accuracy, sorted by {comparison.measure}": comparison.accuracy}
    tests, level = comparison.diebold_mariano, f"{100 * (1 - comparison.alpha):g}"
    if len(tests):
        heading, table = _test_table(comparison)
        tables[heading] = table
    if len(comparison.confidence_set):
        key = f"Model confidence set of {level} percent, and superior predictive ability (SPA)"
        tables[key] = _bootstrap_table(comparison)
    if len(comparison.ranks):
        tables[_rank_heading(comparison)] = comparison.ranks
    if len(comparison.encompassing) and len(comparison.models) <= ENCOMPASSING:
        key = "Encompassing: weight of b in the best combination with a; 0 if a encompasses b"
        pairs = comparison.encompassing.set_index(["model_a", "model_b"])
        tables[key] = pairs.assign(p_value=pairs["p_value"].map(p_value))
    return tables


def _test_table(comparison: Comparison) -> tuple[str, pd.DataFrame]:
    """p-values of all pairs, or of the benchmark or best model against each other."""
    tests = comparison.diebold_mariano
    tests = tests[tests["step"] == ALL]
    models = comparison.models
    unit = UNITS[str(tests["over"].iloc[0])]
    lead = f"Diebold-Mariano, all steps together, {int(tests['n'].max())} {unit}"
    if len(models) <= MATRIX:
        cells = np.full((len(models), len(models)), "-", dtype=object)
        at = [[models.index(name) for name in tests[side]] for side in ("model_a", "model_b")]
        cells[at[0], at[1]] = [p_value(p) for p in tests["p_value"]]
        cells[at[1], at[0]] = [p_value(p) for p in tests["p_adjusted"]]
        matrix = pd.DataFrame(cells, models, models)
        return f"{lead}: p-values; Holm's below the diagonal", matrix
    first = comparison.benchmark or models[0]
    own = tests[(tests["model_a"] == first) | (tests["model_b"] == first)]
    turned = own["model_b"] == first
    table = pd.DataFrame(
        {
            "mean_difference": np.where(turned, -1, 1) * own["mean_difference"],
            "statistic": np.where(turned, -1, 1) * own["statistic"],
            "p_value": own["p_value"].map(p_value),
            "p_adjusted": own["p_adjusted"].map(p_value),
        }
    )
    return f"{lead}: {first} against", table.set_index(own["model_a"].where(turned, own["model_b"]))


def _bootstrap_table(comparison: Comparison) -> pd.DataFrame:
    ability = comparison.superior_predictive_ability.add_prefix("SPA ")
    return comparison.confidence_set.join(ability)


def _rank_heading(comparison: Comparison) -> str:
    over = "series" if comparison.n_series > 1 else "windows"
    p = comparison.friedman_p_value
    friedman = "" if np.isnan(p) else f", Friedman's p-value {p_value(p)}"
    difference = _number(comparison.critical_difference)
    return f"Mean ranks over {over}: critical difference {difference}{friedman}"


def _lines(table: pd.DataFrame) -> list[str]:
    """A table as text, its columns broken into parts that fit the page."""
    text = pd.DataFrame(
        {_short(name): [_cell(value) for value in table[name]] for name in table.columns}
    )
    labels = [
        " - ".join(map(_short, label)) if isinstance(label, tuple) else _short(label)
        for label in table.index
    ]
    stub = max(map(len, labels)) + 1
    widths = {name: max(len(name), *map(len, text[name])) + 2 for name in text.columns}
    lines: list[str] = []
    for part in _parts(widths, WIDTH - stub):
        lines.append((" " * stub + "".join(f"{n:>{widths[n]}}" for n in part)).rstrip())
        for i, label in enumerate(labels):
            cells = "".join(f"{text[n].iloc[i]:>{widths[n]}}" for n in part)
            lines.append(f"{label:<{stub}}{cells}".rstrip())
    return lines


def _parts(widths: dict[str, int], room: int) -> list[list[str]]:
    """Columns in parts no wider than the room."""
    parts: list[list[str]] = [[]]
    used = 0
    for name, width in widths.items():
        if parts[-1] and used + width > room:
            parts.append([])
            used = 0
        parts[-1].append(name)
        used += width
    return parts


def _short(name: object) -> str:
    text = str(name)
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 3] + "..."


def _cell(value: object) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return str(value)
    return _number(float(value)) if isinstance(value, float) else str(value)


def _number(value: float) -> str:
    """Three digits after the point, or four significant ones where these would not show it."""
    if np.isnan(value):
        return "-"
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}"
    return f"{value:.3f}"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="    ")
