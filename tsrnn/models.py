"""Table of the models of the package: module, and name on the command line."""

from importlib import import_module
from typing import Any, NamedTuple

__all__ = ["MODELS", "Model", "model_class"]


class Model(NamedTuple):
    """Entry of the table `MODELS`.

    Parameters
    ----------
    module : str
        Module of the class, imported on first use.
    command : str, optional
        Name on the command line; None for models that it does not fit.
    description : str
        A line for ``tsrnn models``.
    sktime : bool
        Whether `tsrnn.sktime` has an adapter of the same name.

    Examples
    --------
    >>> from tsrnn.models import MODELS
    >>> MODELS["LRUForecaster"].module, MODELS["LRUForecaster"].command
    ('tsrnn.forecasters', 'lru')
    """

    module: str
    command: str | None = None
    description: str = ""
    sktime: bool = False


_NETWORKS, _LINEAR, _BASELINES = "tsrnn.forecasters", "tsrnn.linear", "tsrnn.baselines"
# By class name, which saved files contain; in the order of `tsrnn models`.
MODELS: dict[str, Model] = {
    "ParaRNNForecaster": Model(_NETWORKS, "pararnn", "network of small independent blocks", True),
    "LEMForecaster": Model(_NETWORKS, "lem", "network whose units learn their time steps", True),
    "LRUForecaster": Model(_NETWORKS, "lru", "network of linear recurrences", True),
    "NewtonForecaster": Model(_NETWORKS, "newton", "network of diagonal GRUs or LSTMs", True),
    "ARMA": Model(_LINEAR, "arma", "ARMA and ARIMA with regressors", True),
    "GARCH": Model(_LINEAR, "garch", "GARCH, GJR-GARCH, EGARCH and TGARCH", True),
    "VARMA": Model(_LINEAR, "varma", "vector ARMA, several targets", True),
    "CCC": Model(_LINEAR, "ccc", "GARCH with constant correlations, several targets"),
    "DCC": Model(_LINEAR, "dcc", "GARCH with dynamic correlations, several targets"),
    "VECMGARCH": Model(_LINEAR, "vecm-garch", "multivariate GARCH in vech form, several targets"),
    "AutoARIMA": Model(_LINEAR, "auto-arima", "seasonal ARIMA, orders chosen by a criterion"),
    "ETS": Model(_LINEAR, "ets", "exponential smoothing, chosen by a criterion"),
    "CES": Model(_LINEAR, "ces", "complex exponential smoothing, chosen by a criterion"),
    "Theta": Model(
        _LINEAR, "theta", "theta method, dynamic and optimised, after a test of the season"
    ),
    "Croston": Model(_LINEAR, "croston", "intermittent demand: Croston's method, SBA and SBJ"),
    "TSB": Model(_LINEAR, "tsb", "intermittent demand that may end: probability and size"),
    "Naive": Model(_BASELINES, "naive", "the last value"),
    "SeasonalNaive": Model(_BASELINES, "seasonal-naive", "the last season"),
    "Naive2": Model(_BASELINES, "naive2", "the last value after seasonal adjustment"),
    "Drift": Model(_BASELINES, "drift", "the line through the first and the last value"),
    "Mean": Model(_BASELINES, "mean", "the mean of all values"),
    "StatsmodelsTheta": Model(_BASELINES, "statsmodels-theta", "theta method of statsmodels"),
    "StatsmodelsETS": Model(_BASELINES, "statsmodels-ets", "exponential smoothing of statsmodels"),
    "SARIMAX": Model(_BASELINES, "sarimax", "seasonal ARIMA of statsmodels"),
    "StatsmodelsAutoARIMA": Model(
        _BASELINES, "statsmodels-auto-arima", "seasonal ARIMA of statsmodels, orders by a criterion"
    ),
    "UnobservedComponents": Model(
        _BASELINES, "unobserved-components", "structural time series of statsmodels"
    ),
    "ArchModel": Model(_BASELINES, "arch", "mean and conditional variance of arch"),
    "VAR": Model(_BASELINES, "var", "vector autoregression of statsmodels, several targets"),
    "VARMAX": Model(_BASELINES, "varmax", "vector ARMA of statsmodels, several targets"),
    "VECM": Model(_BASELINES, "vecm", "vector error correction of statsmodels, several targets"),
    "Combination": Model("tsrnn.evaluation"),
    "ParaRNNRegressor": Model("tsrnn.erm"),
    "ParaRNNClassifier": Model("tsrnn.erm"),
}


def model_class(name: str) -> Any:
    """Class of a model; imports its module.

    Parameters
    ----------
    name : str
        A key of `MODELS`.

    Returns
    -------
    type

    Examples
    --------
    >>> from tsrnn.models import model_class
    >>> model_class("Drift")().get_params()["horizon"] is None
    True
    """
    return getattr(import_module(MODELS[name].module), name)


def __dir__() -> list[str]:
    return sorted(__all__)
