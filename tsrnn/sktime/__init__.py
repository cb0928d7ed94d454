"""Forecasters of tsrnn for sktime, under the same names, loaded on first use.

`TsrnnForecaster` adapts any other forecaster of tsrnn.
"""

from importlib import import_module
from typing import Any

from tsrnn._lazy import lazy_names
from tsrnn.models import MODELS

__all__ = [*sorted(name for name, model in MODELS.items() if model.sktime), "TsrnnForecaster"]


def _load(name: str) -> Any:
    try:
        import_module("sktime")
    except ImportError as error:
        message = f"tsrnn.sktime.{name} needs sktime: pip install 'tsrnn[sktime]'"
        raise ImportError(message) from error
    return getattr(import_module("tsrnn.sktime._classes"), name)


__getattr__, __dir__ = lazy_names(__name__, __all__, _load)
