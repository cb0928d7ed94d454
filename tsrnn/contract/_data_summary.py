"""Summary of the data fitted to: series, rows, frequency, and notes on their reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tsrnn.contract._fitted_data import FittedData
from tsrnn.contract._summary import Summary
from tsrnn.data import quote, show_label, write_stamps


@dataclass(frozen=True, repr=False)
class DataSummary(Summary):
    """Summary of the data that a forecaster was fitted to, to be printed.

    Attributes
    ----------
    n_series : int
    targets : tuple
    exog_names : tuple
        Exogenous columns of the frames.
    freq : str or int
    last_time : str
        Last timestamp of all series.
    support : dict
        Support by target.
    notes : tuple of str
        Sentences on what was inserted, encoded or dropped at reading, and on series that end before
        others.

    Examples
    --------
    >>> from tsrnn import ARMA
    >>> from tsrnn.datasets import load_nile
    >>> print(ARMA(order=(1, 0)).fit(load_nile()).data_summary_)
    1 series of 'volume', freq='YS-JAN', until 1970-01-01, support='nonnegative'
    """

    n_series: int
    targets: tuple[object, ...]
    exog_names: tuple[object, ...]
    freq: str | int
    last_time: str
    support: Mapping[Any, Any]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, data: FittedData, last_times: np.ndarray) -> DataSummary:
        """Return the summary of the data fitted to, for series with these last timestamps."""
        layout, end = data.layout, last_times.max()
        last = show_label(write_stamps(np.array([end]), layout)[0])
        columns, notes = tuple(data.given_columns), data.notes
        lags = data.steps_before(end, last_times)
        if lags.any():
            steps = f"{lags.max():,} {'step' if lags.max() == 1 else 'steps'}"
            most = quote(data.ids[int(lags.argmax())])
            notes += (
                f"{np.sum(lags > 0):,} of {len(lags):,} series end before {last}, {most} by "
                f"{steps}: forecasts go on from the end of each; predict(align=True) has the steps "
                "after the last.",
            )
        values = (each.value for each in data.supports)
        support = dict(zip(layout.target_names, values, strict=True))
        return cls(len(data.ids), layout.target_names, columns, data.freq, last, support, notes)

    def as_text(self) -> str:
        """Lines as they are printed: a sentence on the data, then a note a line."""
        columns = f", with {', '.join(map(quote, self.exog_names))}" if self.exog_names else ""
        series = f"{self.n_series:,} series of {', '.join(map(quote, self.targets))}{columns}"
        values = {*self.support.values()}
        support = next(iter(values)) if len(values) == 1 else self.support
        facts = f"freq={self.freq!r}, until {self.last_time}, support={support!r}"
        return "\n".join([f"{series}, {facts}", *self.notes])
