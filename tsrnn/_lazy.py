"""Public names of a module, imported when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from importlib import import_module
from typing import Any


def lazy_names(
    module: str,
    public: Collection[str],
    load: str | Callable[[str], Any],
    inner: Collection[str] = (),
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a module whose public names load on first use.

    Parameters
    ----------
    module : str
        Name of the module, ``__name__``.
    public : collection of str
        Its ``__all__``.
    load : str or callable
        Module that has every name not yet imported, or a function from a name to its value.
    inner : collection of str, default ()
        Names that load the same way for other rooms, and that `dir` leaves out.
    """

    def get(name: str) -> Any:
        if name not in public and name not in inner:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(import_module(load), name) if isinstance(load, str) else load(name)
        setattr(sys.modules[module], name, value)
        return value

    return get, lambda: sorted(public)
