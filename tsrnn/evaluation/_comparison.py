"""The result of comparing models: tables, tests and words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tsrnn.evaluation._comparison_page import ComparisonSummary, comparison_page
from tsrnn.evaluation._words import sentences


@dataclass(frozen=True, eq=False)
class Comparison:
    """Accuracy of models on the same forecasts, and tests of it; made by `compare`.

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
        mean_difference, statistic, p_value, p_adjusted, lags, over``. A negative difference is
        that a has the smaller loss; ``n`` counts windows or series; ``p_adjusted`` is Holm's
        over the pairs, for all steps together only.
    confidence_set : DataFrame
        A row a model: ``p_value`` and ``included`` in the set of level 1 - alpha.
    superior_predictive_ability : DataFrame
        A row a benchmark: p-values ``lower, consistent, upper`` of that no other is better.
    ranks : DataFrame
        A row a model: ``mean_rank`` over series (over windows of one series) and ``near_best``,
        whether it lies within the critical difference of the best.
    friedman_p_value, critical_difference : float
        Of equal ranks, and Nemenyi's; NaN where not defined.
    encompassing : DataFrame
        A row an ordered pair: ``model_a, model_b, n, lambda, std_err, p_value, encompasses``.
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
        Which the tests compare.
    measure : str
        Column of `accuracy` that models are sorted by.
    alpha : float
    benchmark : str or None
    over : {"time", "series"} or None
        What the tests count as one observation; None without tests.
    n_series, n_windows, horizon : int
        Of the rows compared; a window is a series and a cutoff.

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
        return self.scope + sentences(
            self.diebold_mariano,
            self.confidence_set,
            self.superior_predictive_ability,
            self.models,
            self.alpha,
            self.benchmark,
        )

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
        """Everything on one page; print it."""
        return comparison_page(self)

    def __str__(self) -> str:
        return str(self.summary())

    def __repr__(self) -> str:
        return (
            f"<Comparison of {', '.join(self.models)}: {self.n_series} series, {self.n_windows} "
            f"windows of {self.horizon} steps>"
        )

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()
