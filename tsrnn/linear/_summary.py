"""A fitted linear model on one page, laid out as statsmodels and arch do."""

from __future__ import annotations

import html
import textwrap
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import pandas as pd

WIDTH = 78
NUMBERS_WIDTH = 67  # of the columns of the table of coefficients, without the names
COLUMNS = ("coef", "std err", "z", "P>|z|", "lower", "upper")  # of the table of coefficients
ROWS_SHOWN = 20
MESSAGES_SHOWN = 5
NO_ERROR = "-: none, as the parameter is on a boundary, not identified, imposed or has no variance."


@dataclass(frozen=True)
class LinearSummary:
    """Text and tables of a fitted model; print it.

    Attributes
    ----------
    title : str
    model : dict
        What was fitted, to what, by which likelihood.
    fit : dict
        How well, and how the likelihood was maximised.
    params : DataFrame
        One unit: a row a parameter, with ``coef``, ``std err``, ``z``, ``P>|z|`` and the ends
        of the 95% interval, NaN where there is no standard error. Many: a row a unit.
    tests : DataFrame or None
        Tests of standardised residuals, a row a target; see `diagnostics`.
    notes : list of str
    """

    title: str
    model: dict[str, object]
    fit: dict[str, object]
    params: pd.DataFrame
    tests: pd.DataFrame | None
    notes: list[str]

    def __str__(self) -> str:
        one_unit = "coef" in self.params
        table = _coefficients(self.params) if one_unit else _units(self.params)
        width = max(WIDTH, *map(len, table))
        lines = [
            self.title.center(width).rstrip(),
            "=" * width,
            *_two_columns(self.model, self.fit, width),
            "=" * width,
            *table,
            "=" * width,
        ]
        if self.tests is not None:
            lines += [*_tests(self.tests, width), "=" * width]
        if one_unit and (self.params["std err"].isna() & self.params["coef"].notna()).any():
            lines.append(NO_ERROR)
        if self.notes:
            lines += ["", "Warnings and notes:"]
        lines += [_wrapped(f"[{i}] {note}", width) for i, note in enumerate(self.notes, 1)]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def message_counts(messages: tuple[tuple[str, ...], ...]) -> list[str]:
    """The commonest messages of many units and in how many of them they stand."""
    counts = Counter(text for own in messages for text in own)
    shown = [
        f"{n} unit{'s' if n > 1 else ''}: {text}" for text, n in counts.most_common(MESSAGES_SHOWN)
    ]
    if len(counts) > len(shown):
        shown.append(f"{len(counts) - len(shown)} other messages; see messages_.")
    return shown


def _coefficients(table: pd.DataFrame) -> list[str]:
    stub = max(WIDTH - NUMBERS_WIDTH, *(len(str(name)) + 1 for name in table.index))
    head = f"{'':<{stub}}{'coef':>10}{'std err':>11}{'z':>11}{'P>|z|':>11}"
    lines = [f"{head}{'[0.025':>12}{'0.975]':>12}", "-" * (stub + NUMBERS_WIDTH)]
    for name, row in table.iterrows():
        error = _number(row["std err"], 3)
        z, p = (_fixed(row[key]) for key in ("z", "P>|z|"))
        ends = (_number(row[key], 3) for key in ("lower", "upper"))
        numbers = f"{_number(row['coef'], 4):>10}{error:>11}{z:>11}{p:>11}"
        lines.append(f"{name!s:<{stub}}{numbers}" + "".join(f"{end:>12}" for end in ends))
    return lines


def _units(table: pd.DataFrame) -> list[str]:
    half = ROWS_SHOWN // 2
    shown = table if len(table) <= ROWS_SHOWN else pd.concat([table.head(half), table.tail(half)])
    text = shown.to_string(float_format=lambda value: _number(value, 4), na_rep="-")
    lines = text.splitlines()
    if len(shown) < len(table):
        lines.insert(len(lines) - half, "...")
    return [*lines, f"{len(table)} units"]


def _tests(table: pd.DataFrame, width: int) -> list[str]:
    if len(table) > 1:
        return table.T.to_string(float_format=lambda value: _number(value, 3)).splitlines()
    row = table.iloc[0]
    lags = f"(L{row['lags']:.0f})"
    left = {
        f"Ljung-Box {lags} (Q):": row["ljung_box"],
        "Prob(Q):": row["ljung_box_pvalue"],
        f"Ljung-Box of squares {lags}:": row["ljung_box_squares"],
        "Prob(Q, squares):": row["ljung_box_squares_pvalue"],
    }
    right = {
        "Jarque-Bera (JB):": row["jarque_bera"],
        "Prob(JB):": row["jarque_bera_pvalue"],
        "Skew / Kurtosis:": f"{_two(row['skewness'])} / {_two(row['kurtosis'])}",
        f"ARCH-LM {lags} / Prob:": f"{_two(row['arch_lm'])} / {_two(row['arch_lm_pvalue'])}",
    }
    pairs = zip(left.items(), right.items(), strict=True)
    return [_pair((a, _two(b)), (c, d if isinstance(d, str) else _two(d)), width)
            for (a, b), (c, d) in pairs]  # fmt: skip


def _two_columns(left: Mapping[str, object], right: Mapping[str, object], width: int) -> list[str]:
    sides = [[(f"{key}:" if key else "", str(facts[key])) for key in facts]
             for facts in (left, right)]  # fmt: skip
    pairs = zip_longest(*sides, fillvalue=("", ""))
    return [_pair(a, b, width) for a, b in pairs]


def _pair(left: tuple[str, str], right: tuple[str, str], width: int) -> str:
    """Two names with their values, each value at the right end of its half."""
    half = (width - 3) // 2
    first, second = (
        f"{name}{value:>{max(half - len(name), len(value) + 1)}}" for name, value in (left, right)
    )
    return f"{first:<{half}}   {second}".rstrip()


def _number(value: float, digits: int) -> str:
    """Fixed digits, or significant ones where these would not show the number."""
    if np.isnan(value):
        return "-"
    if value != 0 and not 10.0**-digits <= abs(value) < 1e4:
        return f"{value:.{digits}g}"
    return f"{value:.{digits}f}"


def _fixed(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"


def _two(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.2f}"


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(text, width, subsequent_indent="    ")
