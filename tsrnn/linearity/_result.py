"""Results of tests of linearity, as pages."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tsrnn.contract import Summary

WIDTH = 88


@dataclass(frozen=True, eq=False, repr=False)
class LinearityTest(Summary):
    """Result of a test of a linear model against nonlinearity; print it.

    Attributes
    ----------
    test : str
    model : str
        Linear model under the null.
    statistic : float
    df : tuple of int
        Degrees of freedom of the distribution; empty for a bootstrap.
    p_value : float
    distribution : str
        Distribution of the statistic under the null.
    null, alternative : str
    n_obs : int
        Number of residuals.
    nonlinear_lags : int
        Lags in the nonlinear terms.
    table : DataFrame
        A row for each form of the statistic: ``statistic, df, p_value``; df is text.
    mean_only : bool
        True if heteroskedasticity alone does not lead to rejections, asymptotically.
    notes : list of str

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.linearity import terasvirta_test
    >>> result = terasvirta_test(np.random.default_rng(0).normal(size=200), lags=1, robust=False)
    >>> result.df, list(result.table.index)
    ((2, 195), ['F', 'chi2'])
    """

    test: str
    model: str
    statistic: float
    df: tuple[int, ...]
    p_value: float
    distribution: str
    null: str
    alternative: str
    n_obs: int
    nonlinear_lags: int
    table: pd.DataFrame
    mean_only: bool
    notes: list[str]

    def summary(self) -> LinearityTest:
        """Page of the test: the result itself."""
        return self

    def as_text(self) -> str:
        """Page as it is printed."""
        facts = {
            "Null": self.null,
            "Alternative": self.alternative,
            "Linear model": f"{self.model}, {self.n_obs} residuals",
            "Nonlinear lags": str(self.nonlinear_lags),
            "Distribution": self.distribution,
        }
        lines = [self.test.center(WIDTH).rstrip(), "=" * WIDTH]
        lines += [
            line
            for key, value in facts.items()
            for line in wrapped(f"{key + ':':<16}{value}", indent=16)
        ]
        lines += ["-" * WIDTH, *table_lines(self.table), "=" * WIDTH]
        for i, note in enumerate(self.notes, 1):
            lines += wrapped(f"[{i}] {note}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class LinearityTests(Summary):
    """Several tests of one series with Holm's adjustment, and a conclusion; print it.

    Attributes
    ----------
    model : str
        Linear model under the null.
    n_obs : int
    alpha : float
    table : DataFrame
        A row for each test: ``statistic, df, p_value, p_holm, note``; df is text.
    conclusion : str
    results : dict
        `LinearityTest` by the names of the table.
    notes : list of str

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.linearity import linearity_tests
    >>> page = linearity_tests(np.random.default_rng(0).normal(size=150), random_state=0)
    >>> list(page.table.index)
    ['terasvirta', 'white', 'block', 'bds']
    """

    model: str
    n_obs: int
    alpha: float
    table: pd.DataFrame
    conclusion: str
    results: dict[str, LinearityTest]
    notes: list[str]

    def summary(self) -> LinearityTests:
        """Page of the tests: the result itself."""
        return self

    def as_text(self) -> str:
        """Page as it is printed."""
        lines = ["Tests of linearity".center(WIDTH).rstrip(), "=" * WIDTH]
        lines += wrapped(f"Linear model: {self.model}, {self.n_obs} observations")
        lines += ["-" * WIDTH, *table_lines(self.table), "=" * WIDTH, *wrapped(self.conclusion)]
        lines += [""] if self.notes else []
        for i, note in enumerate(self.notes, 1):
            lines += wrapped(f"[{i}] {note}")
        return "\n".join(lines)


def wrapped(text: str, indent: int = 4) -> list[str]:
    """Wrap text to lines of at most `WIDTH` characters, indented after the first."""
    return textwrap.wrap(text, WIDTH, subsequent_indent=" " * indent)


def table_lines(table: pd.DataFrame) -> list[str]:
    """Lines of a table of tests, with numbers to three digits."""

    def cell(value: object) -> str:
        if not isinstance(value, float):
            return str(value)
        if np.isnan(value):
            return "-"
        return f"{value:.3f}" if abs(value) < 1e5 else f"{value:.3g}"

    columns = [[str(name), *map(cell, table[name])] for name in table.columns]
    labels = ["", *map(str, table.index)]
    stub = max(map(len, labels)) + 1
    lines = []
    for i, label in enumerate(labels):
        line = f"{label:<{stub}}"
        for name, cells in zip(table.columns, columns, strict=True):
            width = max(map(len, cells)) + 2
            # Notes are aligned to the left.
            line += f"  {cells[i]:<{width - 2}}" if name == "note" else f"{cells[i]:>{width}}"
        lines.append(line.rstrip())
    return lines


def holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's adjustment of p-values (m,)."""
    order = np.argsort(p_values)
    steps = np.arange(len(p_values), 0, -1) * p_values[order]
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
