"""Recurrent networks for time series as statistical models: estimate, inspect, compare.

Names and submodules load when they are first used, so that ``import tsrnn`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tsrnn import _fork
from tsrnn._lazy import lazy_names

if TYPE_CHECKING:
    from tsrnn import (
        baselines,
        batch,
        cli,
        contract,
        data,
        datasets,
        erm,
        evaluation,
        export,
        forecasters,
        hierarchy,
        inference,
        interpret,
        kernels,
        layers,
        linear,
        linearity,
        models,
        plotting,
        preprocessing,
        prior,
        reporting,
        sktime,
        storage,
        training,
        tuning,
    )
    from tsrnn.erm import ParaRNNClassifier, ParaRNNRegressor
    from tsrnn.evaluation import Combination, backtest, compare, diagnose
    from tsrnn.forecasters import LEMForecaster, LRUForecaster, NewtonForecaster, ParaRNNForecaster
    from tsrnn.inference import LocalProjections, PartiallyLinear
    from tsrnn.interpret import forecast_features, lyapunov_exponent, recurrence_features
    from tsrnn.linear import (
        ARMA,
        CCC,
        CES,
        DCC,
        ETS,
        GARCH,
        TSB,
        VARMA,
        VECMGARCH,
        AutoARIMA,
        Croston,
        Theta,
    )
    from tsrnn.linearity import linearity_tests
    from tsrnn.reporting import report
    from tsrnn.storage import load

    __version__: str

# Names at the top -> their rooms; classes of models stand in the table of tsrnn.models.
_FUNCTIONS = {
    "LocalProjections": "inference",
    "PartiallyLinear": "inference",
    "backtest": "evaluation",
    "compare": "evaluation",
    "diagnose": "evaluation",
    "forecast_features": "interpret",
    "linearity_tests": "linearity",
    "load": "storage",
    "lyapunov_exponent": "interpret",
    "recurrence_features": "interpret",
    "report": "reporting",
}

__all__ = [
    "ARMA",
    "CCC",
    "CES",
    "DCC",
    "ETS",
    "GARCH",
    "TSB",
    "VARMA",
    "VECMGARCH",
    "AutoARIMA",
    "Combination",
    "Croston",
    "LEMForecaster",
    "LRUForecaster",
    "LocalProjections",
    "NewtonForecaster",
    "ParaRNNClassifier",
    "ParaRNNForecaster",
    "ParaRNNRegressor",
    "PartiallyLinear",
    "Theta",
    "__version__",
    "backtest",
    "baselines",
    "batch",
    "cli",
    "compare",
    "contract",
    "data",
    "datasets",
    "diagnose",
    "erm",
    "evaluation",
    "export",
    "forecast_features",
    "forecasters",
    "hierarchy",
    "inference",
    "interpret",
    "kernels",
    "layers",
    "linear",
    "linearity",
    "linearity_tests",
    "load",
    "lyapunov_exponent",
    "models",
    "plotting",
    "preprocessing",
    "prior",
    "recurrence_features",
    "report",
    "reporting",
    "sktime",
    "storage",
    "training",
    "tuning",
]


def _load(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("tsrnn")
    if name in _FUNCTIONS:
        return getattr(import_module(f"tsrnn.{_FUNCTIONS[name]}"), name)
    from tsrnn.models import MODELS, model_class

    return model_class(name) if name in MODELS else import_module(f"tsrnn.{name}")


if not TYPE_CHECKING:  # to a type checker, a name that is not above does not exist
    __getattr__, __dir__ = lazy_names(__name__, __all__, _load)
