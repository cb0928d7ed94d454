"""Result of comparing models: tables, tests, words and a page of at most 100 columns."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tsrnn.contract import Summary
from tsrnn.evaluation._forecasts import KEYS, model_columns
from tsrnn.evaluation._linearity import linearity_words
from tsrnn.evaluation._tests import ALL
from tsrnn.evaluation._words import sentences

WIDTH = 100
LONGEST_NAME = 24
MATRIX = 8  # models up to which the p-values of all pairs are shown
ENCOMPASSING = 4  # models up to which every ordered pair is shown


@dataclass(frozen=True, eq=False)
class Comparison:
    """Accuracy of models on the same forecasts, and tests of it: the result of `compare`.

    In every table models stand in the order of `accuracy`, the most accurate first. Tables of
    tests that could not be computed have no rows; `words` or `notes` say why.

    Attributes
    ----------
    forecasts : DataFrame
        The frame that was given.
    accuracy : DataFrame
        A row a model, a column a measure.
    by_step : DataFrame
        The same with rows (step, model).
    by_series : DataFrame
        The same with rows (unique_id, model).
    diebold_mariano : DataFrame
        A row a pair of models and step, and "all" steps together: ``step, model_a, model_b, n,
        mean_difference, statistic, p_value, p_adjusted, variance, bandwidth, over``. A negative
        difference means that a has the smaller loss; ``n`` counts windows or series; ``p_adjusted``
        is Holm's over the pairs, for all steps together only; ``variance`` is the estimator that
        was used, ``bandwidth`` its lags or cosines.
    confidence_set : DataFrame
        A row a model: ``p_value`` and ``included`` in the set of level 1 - alpha.
    superior_predictive_ability : DataFrame
        A row a benchmark: p-values ``lower, consistent, upper`` of "no other model is better".
    ranks : DataFrame
        A row a model: ``mean_rank`` over series (over windows of one series) and ``near_best``,
        whether it lies within the critical difference of the best.
    friedman_p_value, critical_difference : float
        Friedman's test of equal ranks, and Nemenyi's difference; NaN where not defined.
    encompassing : DataFrame
        A row an ordered pair: ``model_a, model_b, n, lambda, std_err, p_value, encompasses``.
    linearity : DataFrame
        A row a series with rows in `train`, up to 20 series: ``unique_id, n, model``, an
        autoregression, and the p-values of `tsrnn.linearity.terasvirta_test` and `block_test`
        against it, with the smaller after Holm's adjustment of the two.
    scope : list of str
        What was compared, over which windows, whether tests could be made, and which series are set
        aside: the first sentences of `words`.
    set_aside : DataFrame
        A row a series that is not compared, or for which a model lacks windows: ``unique_id,
        model, n_windows, error``; ``model`` is None where it is set aside for all.
    notes : list of str
        What was left out and why, and what the tests rest on.
    kind : {"mean", "variance"}
    loss : {"squared", "absolute", "qlike"}
        Loss that the tests compare.
    measure : str
        Column of `accuracy` that models are sorted by.
    alpha : float
    benchmark : str or None
    over : {"time", "series"} or None
        What the tests count as one observation; None without tests.
    n_series, n_windows, horizon : int
        Sizes of the rows compared; a window is a series and a cutoff.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.evaluation import compare
    >>> rng, cutoff = np.random.default_rng(0), np.arange(60)
    >>> y = rng.normal(size=60)
    >>> frame = pd.DataFrame({"unique_id": "a", "ds": cutoff + 1, "cutoff": cutoff, "y": y})
    >>> result = compare(frame.assign(Mean=0.0, Naive=rng.normal(size=60)))
    >>> print(result.models[0], result.n_windows)
    Mean 60
    >>> bool(result.confidence_set.loc["Mean", "included"])
    True
    """

    forecasts: pd.DataFrame
    accuracy: pd.DataFrame
    by_step: pd.DataFrame
    by_series: pd.DataFrame
    diebold_mariano: pd.DataFrame
    confidence_set: pd.DataFrame
    superior_predictive_ability: pd.DataFrame
    ranks: pd.DataFrame
    friedman_p_value: float
    critical_difference: float
    encompassing: pd.DataFrame
    linearity: pd.DataFrame
    scope: list[str]
    set_aside: pd.DataFrame
    notes: list[str]
    kind: str
    loss: str
    measure: str
    alpha: float
    benchmark: str | None
    over: str | None
    n_series: int
    n_windows: int
    horizon: int

    @property
    def models(self) -> list[str]:
        """Names, the most accurate first."""
        return [str(name) for name in self.accuracy.index]

    @property
    def frame(self) -> pd.DataFrame:
        """The same as `accuracy`."""
        return self.accuracy

    def words(self) -> list[str]:
        """Sentences for a report: what was compared, which model is better, the confidence set.

        The first says over how many windows, and whether there are tests.
        """
        return (
            self.scope
            + sentences(
                self.diebold_mariano,
                self.confidence_set,
                self.superior_predictive_ability,
                self.models,
                self.alpha,
                self.benchmark,
            )
            + linearity_words(self.linearity, self.alpha)
        )

    def pairwise_tests(self, *, by_step: bool = False, most: int | None = None) -> pd.DataFrame:
        """Tests of Diebold and Mariano over all steps together, or of each step.

        Parameters
        ----------
        by_step : bool, default False
            Whether to return tests of each step, instead of all together.
        most : int, optional
            With more models than that, pairs with the benchmark only, with the most accurate model
            where there is none; by default all pairs.

        Returns
        -------
        DataFrame
            Rows of `diebold_mariano`.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from tsrnn.evaluation import compare
        >>> rng, cutoff = np.random.default_rng(0), np.arange(60)
        >>> y = rng.normal(size=60)
        >>> frame = pd.DataFrame({"unique_id": "a", "ds": cutoff + 1, "cutoff": cutoff, "y": y})
        >>> result = compare(frame.assign(Mean=0.0, Naive=rng.normal(size=60), Up=1.0))
        >>> len(result.pairwise_tests()), len(result.pairwise_tests(most=2))
        (3, 2)
        """
        tests = self.diebold_mariano
        tests = tests[(tests["step"] == ALL) != by_step]
        if most is None or len(self.models) <= most:
            return tests
        reference = self.benchmark or self.models[0]
        return tests[(tests["model_a"] == reference) | (tests["model_b"] == reference)]

    def ordered_forecasts(self) -> pd.DataFrame:
        """Forecasts of the models compared, their columns in the order of `accuracy`.

        Returns
        -------
        DataFrame
            Columns ``unique_id, ds, cutoff, y`` and those of each model and its intervals.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from tsrnn.evaluation import compare
        >>> y, cutoff = np.random.default_rng(0).normal(size=30), np.arange(30)
        >>> frame = pd.DataFrame({"unique_id": "a", "ds": cutoff + 1, "cutoff": cutoff, "y": y})
        >>> list(compare(frame.assign(Ten=10.0, Zero=0.0)).ordered_forecasts().columns[4:])
        ['Zero', 'Ten']
        """
        columns: list[str] = list(KEYS)
        for model, intervals in model_columns(self.forecasts, self.models).items():
            columns += [model, *(end for pair in intervals.values() for end in pair)]
        return self.forecasts[columns]

    def plot(self, measure: str | None = None) -> np.ndarray:
        """Draw a measure and the coverage by step, and the ranks: `tsrnn.plotting.plot_comparison`.

        Parameters
        ----------
        measure : str, optional
            Column of `by_step`; by default the one that models are sorted by.

        Returns
        -------
        ndarray of matplotlib Axes
        """
        from tsrnn.plotting import plot_comparison

        return plot_comparison(self, measure)

    def summary(self) -> ComparisonSummary:
        """Page with the tables, the words and the notes; print it."""
        facts: dict[str, object] = {
            "Series": self.n_series,
            "windows" if self.n_series == 1 else "windows of all series": self.n_windows,
            "steps": self.horizon,
            "loss of the tests": self.loss,
        }
        if self.over is not None:
            facts["tests over"] = self.over
        return ComparisonSummary(facts, _tables(self), self.words(), self.notes)

    def __str__(self) -> str:
        return str(self.summary())

    def __repr__(self) -> str:
        return (
            f"<Comparison of {', '.join(self.models)}: {self.n_series} series, {self.n_windows} "
            f"windows of {self.horizon} steps>"
        )

    def _repr_html_(self) -> str:
        return self.summary().as_html()


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonSummary(Summary):
    """Text and tables of a comparison, by heading; print it."""

    facts: dict[str, object]
    tables: dict[str, pd.DataFrame]
    words: list[str]
    notes: list[str]

    def as_text(self) -> str:
        """Page as it is printed."""
        lines = ["Comparison of forecasts".center(WIDTH).rstrip(), "=" * WIDTH]
        lines += _wrap("; ".join(f"{key}: {value}" for key, value in self.facts.items()))
        for heading, table in self.tables.items():
            lines += ["-" * WIDTH, *_wrap(heading), *_print_table(table)]
        lines.append("=" * WIDTH)
        for text in self.words:
            lines += _wrap(text)
        if self.notes:
            lines += ["", "Notes:"]
        for i, note in enumerate(self.notes, 1):
            lines += _wrap(f"[{i}] {note}")
        return "\n".join(lines)


def _tables(comparison: Comparison) -> dict[str, pd.DataFrame]:
    """Tables of the page, by heading."""
    tables = {f"Accuracy, sorted by {comparison.measure}": comparison.accuracy}
    if len(comparison.diebold_mariano):
        heading, table = _table_of_tests(comparison)
        tables[heading] = table
    if len(comparison.confidence_set):
        level = f"{100 * (1 - comparison.alpha):g}"
        key = f"Model confidence set of {level} percent, and superior predictive ability (SPA)"
        ability = comparison.superior_predictive_ability.add_prefix("SPA ")
        tables[key] = comparison.confidence_set.join(ability)
    if len(comparison.ranks):
        over = "series" if comparison.n_series > 1 else "windows"
        p = comparison.friedman_p_value
        friedman = "" if np.isnan(p) else f", Friedman's p-value {format_p_value(p)}"
        difference = _format_number(comparison.critical_difference)
        key = f"Mean ranks over {over}: critical difference {difference}{friedman}"
        tables[key] = comparison.ranks
    if len(comparison.encompassing) and len(comparison.models) <= ENCOMPASSING:
        key = "Encompassing: weight of b in the best combination with a; 0 if a encompasses b"
        pairs = comparison.encompassing.set_index(["model_a", "model_b"])
        tables[key] = pairs.assign(p_value=pairs["p_value"].map(format_p_value))
    return tables


def _table_of_tests(comparison: Comparison) -> tuple[str, pd.DataFrame]:
    """p-values of all pairs; of many models, of the benchmark or best one against the rest."""
    tests, models = comparison.pairwise_tests(most=MATRIX), comparison.models
    observations = f"{int(tests['n'].max())} {'windows' if comparison.over == 'time' else 'series'}"
    lead = f"Diebold-Mariano, all steps together, {observations}"
    if len(models) <= MATRIX:
        cells = np.full((len(models), len(models)), "-", dtype=object)
        a, b = ([models.index(name) for name in tests[side]] for side in ("model_a", "model_b"))
        cells[a, b] = tests["p_value"].map(format_p_value)
        cells[b, a] = tests["p_adjusted"].map(format_p_value)
        matrix = pd.DataFrame(cells, models, models)
        return f"{lead}: p-values; Holm's below the diagonal", matrix
    first = comparison.benchmark or models[0]
    sign = np.where(tests["model_b"] == first, -1, 1)
    table = pd.DataFrame(
        {
            "mean_difference": sign * tests["mean_difference"],
            "statistic": sign * tests["statistic"],
            "p_value": tests["p_value"].map(format_p_value),
            "p_adjusted": tests["p_adjusted"].map(format_p_value),
        }
    )
    others = tests["model_a"].where(sign < 0, tests["model_b"])
    return f"{lead}: {first} against", table.set_index(others)


def _print_table(table: pd.DataFrame) -> list[str]:
    """Lines of a table, its columns broken into parts that fit the page."""

    def cell(value: object) -> str:
        if isinstance(value, bool | np.bool_):
            return "yes" if value else "no"
        return _format_number(value) if isinstance(value, float) else str(value)

    heads = [_shorten(name) for name in table.columns]  # of long names, several may be the same
    columns = [[*map(cell, table[name])] for name in table.columns]
    labels = [
        " - ".join(map(_shorten, label)) if isinstance(label, tuple) else _shorten(label)
        for label in table.index
    ]
    stub = max(map(len, labels)) + 1
    widths = [max(map(len, [head, *cells])) + 2 for head, cells in zip(heads, columns, strict=True)]
    parts: list[list[int]] = [[]]
    for k, width in enumerate(widths):
        if parts[-1] and sum(widths[i] for i in parts[-1]) + width > WIDTH - stub:
            parts.append([])
        parts[-1].append(k)
    lines: list[str] = []
    for part in parts:
        lines.append((" " * stub + "".join(f"{heads[k]:>{widths[k]}}" for k in part)).rstrip())
        for i, label in enumerate(labels):
            cells = "".join(f"{columns[k][i]:>{widths[k]}}" for k in part)
            lines.append(f"{label:<{stub}}{cells}".rstrip())
    return lines


def _shorten(name: object) -> str:
    text = str(name)
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 3] + "..."


def _format_number(value: float) -> str:
    """Three decimals, or three significant digits for very small and large numbers."""
    if np.isnan(value):
        return "-"
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}"
    return f"{value:.3f}"


def format_p_value(p: float, missing: str = "-") -> str:
    """Format a p-value: three decimals, and a bound where these would hide the number.

    NaN gives the text `missing`.
    """
    if math.isnan(p):
        return missing
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="    ")
