"""Models by the names that they have on the command line."""

from __future__ import annotations

import textwrap
from typing import NamedTuple

__all__ = ["MODELS", "NAMES", "Entry"]


class Entry(NamedTuple):
    """Where a model is, and what it is in a line."""

    room: str
    cls: str
    words: str


MODELS = {
    "pararnn": Entry("forecasters", "ParaRNNForecaster", "network of small independent blocks"),
    "lem": Entry("forecasters", "LEMForecaster", "network whose units learn their time steps"),
    "lru": Entry("forecasters", "LRUForecaster", "network of linear recurrences"),
    "newton": Entry("forecasters", "NewtonForecaster", "network of diagonal GRUs or LSTMs"),
    "arma": Entry("linear", "ARMA", "ARMA and ARIMA with regressors"),
    "garch": Entry("linear", "GARCH", "GARCH, GJR-GARCH and EGARCH"),
    "varma": Entry("linear", "VARMA", "vector ARMA, several targets"),
    "ccc": Entry("linear", "CCC", "GARCH with constant correlations, several targets"),
    "dcc": Entry("linear", "DCC", "GARCH with dynamic correlations, several targets"),
    "vecm-garch": Entry("linear", "VECMGARCH", "multivariate GARCH in vech form, several targets"),
    "naive": Entry("baselines", "Naive", "the last value"),
    "seasonal-naive": Entry("baselines", "SeasonalNaive", "the last season"),
    "naive2": Entry("baselines", "Naive2", "the last value after seasonal adjustment"),
    "drift": Entry("baselines", "Drift", "the line through the first and the last value"),
    "mean": Entry("baselines", "Mean", "the mean of all values"),
    "theta": Entry("baselines", "Theta", "theta method of statsmodels"),
    "ets": Entry("baselines", "ETS", "exponential smoothing of statsmodels"),
    "sarimax": Entry("baselines", "SARIMAX", "seasonal ARIMA of statsmodels"),
    "auto-arima": Entry("baselines", "AutoARIMA", "seasonal ARIMA, orders chosen by a criterion"),
    "unobserved-components": Entry(
        "baselines", "UnobservedComponents", "structural time series of statsmodels"
    ),
    "arch": Entry("baselines", "ArchModel", "mean and conditional variance of arch"),
    "var": Entry("baselines", "VAR", "vector autoregression of statsmodels, several targets"),
    "varmax": Entry("baselines", "VARMAX", "vector ARMA of statsmodels, several targets"),
    "vecm": Entry("baselines", "VECM", "vector error correction of statsmodels, several targets"),
}
NAMES = textwrap.fill(", ".join(MODELS), 80, initial_indent="", subsequent_indent="  ")
