"""Recurrent networks for time series as statistical models: estimate, inspect, compare.

Names and submodules load when they are first used, so that ``import tsrnn`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tsrnn import data, datasets, forecasters, interpret, kernels, layers, plotting
    from tsrnn.forecasters import ParaRNNForecaster, load
    from tsrnn.interpret import recurrence_features

    __version__: str

_HOMES = {
    "ParaRNNForecaster": "tsrnn.forecasters",
    "load": "tsrnn.forecasters",
    "recurrence_features": "tsrnn.interpret",
}
_ROOMS = ("data", "datasets", "forecasters", "interpret", "kernels", "layers", "plotting")

__all__ = [
    "ParaRNNForecaster",
    "__version__",
    "data",
    "datasets",
    "forecasters",
    "interpret",
    "kernels",
    "layers",
    "load",
    "plotting",
    "recurrence_features",
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
