"""The result of `diagnose`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.evaluation._numbers import p_value

_TESTS = {
    "ljung_box": "Ljung-Box",
    "arch_lm": "ARCH-LM",
    "jarque_bera": "Jarque-Bera",
    "pit": "PIT",
}
_SHOWN = 10  # series of a model in a summary
_LEVEL = 0.05
_WIDTH = 77


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """Tests of one-step errors, by model and series.

    Attributes
    ----------
    tests : DataFrame
        A row a model and series: ``n``, ``mean`` and ``sd`` of the errors, ``lags``, and of each
        test the statistic and its p-value (``ljung_box``, ``ljung_box_pvalue``, ``arch_lm``,
        ``jarque_bera``, ``pit``). NaN where errors are too few or do not vary.
    acf : DataFrame
        Autocorrelations by lag, ``acf``, and ``band``, the half-width of a 95 percent band.
    pit : DataFrame
        Histogram of the probability integral transform: ``from``, ``to``, ``count``, ``share``,
        ``density``, which is 1 if the model is right.
    residuals : DataFrame
        ``ds``, ``residual`` and ``pit_bin`` of every forecast.
    steps_apart : int
        Steps from one error to the next: a lag is so many steps.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn import ARMA, diagnose
    >>> y = pd.Series(np.random.default_rng(0).normal(size=300))
    >>> found = diagnose(ARMA(order=(1, 0)).fit(y[:200]), y[200:])
    >>> found.models, found.residuals.shape[0]
    (['ARMA'], 100)
    >>> bool(found.tests["ljung_box_pvalue"].item() > 0.01)
    True
    """

    tests: pd.DataFrame
    acf: pd.DataFrame
    pit: pd.DataFrame
    residuals: pd.DataFrame
    steps_apart: int = 1

    @property
    def models(self) -> list[str]:
        """Names of the models."""
        return list(self.tests.index.unique("model"))

    def plot(self, series: Any = None) -> np.ndarray:
        """Draw autocorrelations and PIT histograms: `tsrnn.plotting.plot_diagnostics`.

        Parameters
        ----------
        series : object, optional
            One series, by its id; by default all together.

        Returns
        -------
        ndarray of matplotlib Axes
        """
        from tsrnn.plotting import plot_diagnostics

        return plot_diagnostics(self, series)

    def summary(self) -> str:
        """Page of text with p-values by series, or the share of series that reject."""
        lines = ["One-step errors: p-values of tests that nothing is left", "=" * _WIDTH]
        for model in self.models:
            own = self.tests[self.tests.index.get_level_values("model") == model].droplevel("model")
            lines += ["", f"{model}: {len(own)} series, {int(own['n'].sum())} errors"]
            lines += self._by_series(own) if len(own) <= _SHOWN else self._rejections(own)
        lines += ["", "=" * _WIDTH, *_NOTES]
        if self.steps_apart > 1:
            lines += [
                f"The errors are {self.steps_apart} steps apart: a lag is {self.steps_apart} "
                "steps. Ljung-Box and",
                "ARCH-LM do not see dependence of nearer errors; for that take step_size=1.",
            ]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def _by_series(self, own: pd.DataFrame) -> list[str]:
        table = own[["n", "mean", "sd", "lags"]].copy()
        for test, title in _TESTS.items():
            table[title] = own[f"{test}_pvalue"].map(p_value)
        text = table.rename_axis(None).to_string(float_format="{:.4g}".format)
        return text.splitlines()

    def _rejections(self, own: pd.DataFrame) -> list[str]:
        """Shares of series, as there are too many for a table."""
        lines = []
        for test, title in _TESTS.items():
            p = own[f"{test}_pvalue"].dropna()
            share = np.nan if p.empty else (p < _LEVEL).mean()
            told = "no series is long enough" if p.empty else f"{share:.0%} of {len(p)} series"
            lines.append(f"  {title:<12} rejects at 5 percent in {told}")
        return lines


_NOTES = [
    "Ljung-Box: no autocorrelation. ARCH-LM: none of squares. Jarque-Bera: normal.",
    "PIT: the distribution of the forecasts is right. Small p-values speak against",
    "the model; 5 percent of them are below 0.05 if all is right.",
    "-: too few errors, or none that vary.",
]
