"""Unit roots, seasonality and transformations: tests of a series before it is modelled."""

from tsrnn.preprocessing._boxcox import boxcox_lambda
from tsrnn.preprocessing._decomposition import (
    STRONG,
    decompose,
    measure_strength,
    seasonal_strength,
    stl,
)
from tsrnn.preprocessing._unit_roots import adf, count_differences, kpss, ndiffs, nsdiffs

__all__ = [
    "adf",
    "boxcox_lambda",
    "count_differences",
    "decompose",
    "kpss",
    "measure_strength",
    "ndiffs",
    "nsdiffs",
    "seasonal_strength",
    "stl",
]


def __dir__() -> list[str]:
    return sorted(__all__)  # without what other rooms alone import
