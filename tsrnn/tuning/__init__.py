"""Search of constructor arguments: spaces and objectives for Optuna, splits of long panels."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tsrnn.tuning._distributions import Choice, Integer, Order, Real
    from tsrnn.tuning._objective import objective
    from tsrnn.tuning._spaces import default_space
    from tsrnn.tuning._splits import PanelTimeSeriesSplit
    from tsrnn.tuning._suggest import suggest

_HOMES = {
    "Choice": "tsrnn.tuning._distributions",
    "Integer": "tsrnn.tuning._distributions",
    "Order": "tsrnn.tuning._distributions",
    "PanelTimeSeriesSplit": "tsrnn.tuning._splits",
    "Real": "tsrnn.tuning._distributions",
    "default_space": "tsrnn.tuning._spaces",
    "objective": "tsrnn.tuning._objective",
    "suggest": "tsrnn.tuning._suggest",
}

__all__ = [
    "Choice",
    "Integer",
    "Order",
    "PanelTimeSeriesSplit",
    "Real",
    "default_space",
    "objective",
    "suggest",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
