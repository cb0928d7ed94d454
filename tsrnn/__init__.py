"""Recurrent networks for time series as statistical models: estimate, inspect, compare.

Names and submodules load when they are first used, so that ``import tsrnn`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tsrnn import (
        contract,
        data,
        datasets,
        forecasters,
        interpret,
        kernels,
        layers,
        linear,
        plotting,
        storage,
    )
    from tsrnn.forecasters import LEMForecaster, LRUForecaster, NewtonForecaster, ParaRNNForecaster
    from tsrnn.interpret import recurrence_features
    from tsrnn.linear import ARMA, CCC, DCC, GARCH, VARMA, VECMGARCH
    from tsrnn.storage import load

    __version__: str

_HOMES = {
    "ARMA": "tsrnn.linear",
    "CCC": "tsrnn.linear",
    "DCC": "tsrnn.linear",
    "GARCH": "tsrnn.linear",
    "LEMForecaster": "tsrnn.forecasters",
    "LRUForecaster": "tsrnn.forecasters",
    "NewtonForecaster": "tsrnn.forecasters",
    "ParaRNNForecaster": "tsrnn.forecasters",
    "VARMA": "tsrnn.linear",
    "VECMGARCH": "tsrnn.linear",
    "load": "tsrnn.storage",
    "recurrence_features": "tsrnn.interpret",
}
_ROOMS = (
    "contract",
    "data",
    "datasets",
    "forecasters",
    "interpret",
    "kernels",
    "layers",
    "linear",
    "plotting",
    "storage",
)

__all__ = [
    "ARMA",
    "CCC",
    "DCC",
    "GARCH",
    "VARMA",
    "VECMGARCH",
    "LEMForecaster",
    "LRUForecaster",
    "NewtonForecaster",
    "ParaRNNForecaster",
    "__version__",
    "contract",
    "data",
    "datasets",
    "forecasters",
    "interpret",
    "kernels",
    "layers",
    "linear",
    "load",
    "plotting",
    "recurrence_features",
    "storage",
]


def __getattr__(name: str) -> Any:
    value = _resolve(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _resolve(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return import_module(f"tsrnn.{name}")
    if name == "__version__":
        return import_module("importlib.metadata").version("tsrnn")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
