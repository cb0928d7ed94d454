"""Forecasters of tsrnn for sktime, under the same names, loaded on first use.

`TsrnnForecaster` adapts any other forecaster of tsrnn.
"""

from importlib import import_module
from typing import Any

from tsrnn.models import MODELS

__all__ = [*sorted(name for name, model in MODELS.items() if model.sktime), "TsrnnForecaster"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import_module("sktime")
    except ImportError as error:
        message = f"tsrnn.sktime.{name} needs sktime: pip install 'tsrnn[sktime]'"
        raise ImportError(message) from error
    return getattr(import_module("tsrnn.sktime._classes"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
