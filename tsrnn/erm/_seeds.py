"""The random states of an estimator and of its parts."""

from __future__ import annotations

from typing import Any


def seed_names(estimator: Any) -> list[str]:
    """Parameters `random_state` of an estimator and of its parts."""
    names = estimator.get_params(deep=True)
    return sorted(name for name in names if name.rpartition("__")[2] == "random_state")
