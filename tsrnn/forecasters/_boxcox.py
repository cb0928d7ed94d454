"""The transformation of Box and Cox, and its inverse."""

from __future__ import annotations

from typing import Any

import numpy as np

from tsrnn.contract import number
from tsrnn.data import Panel


def boxcox_lambda(use_boxcox: Any) -> float | None:
    """The exponent that an argument asks for; None for no transformation.

    Raises
    ------
    ValueError, TypeError
        If it is not False, "log" or a number from 0 to 1.
    """
    if use_boxcox is False or use_boxcox is None:
        return None
    if isinstance(use_boxcox, str) and use_boxcox == "log":
        return 0.0
    if isinstance(use_boxcox, str | bool | np.bool_):
        raise ValueError(
            f"use_boxcox must be False, 'log' or a number from 0 (log) to 1; got {use_boxcox!r}"
        )
    exponent = number("use_boxcox", use_boxcox, lowest=0.0, open_=False)
    if exponent > 1:
        raise ValueError(f"use_boxcox must be at most 1; got {exponent:g}")
    return exponent


def boxcox(values: np.ndarray, exponent: float | None) -> np.ndarray:
    r"""Transform positive values.

    .. math:: x = (y^\lambda - 1) / \lambda, \qquad x = \log y \text{ for } \lambda = 0
    """
    if exponent is None:
        return values
    if exponent == 0:
        return np.log(values)
    return np.expm1(exponent * np.log(values)) / exponent


def inverse_boxcox(values: np.ndarray, exponent: float | None) -> np.ndarray:
    """Undo `boxcox`; what lies below the transform of zero becomes zero."""
    if exponent is None:
        return values
    if exponent == 0:
        return np.exp(values)
    return np.maximum(exponent * values + 1, 0) ** (1 / exponent)


def check_positive(panel: Panel) -> None:
    """Raise ValueError, with the series named, if a target is not positive."""
    rows = np.flatnonzero((panel.values <= 0).any(1))
    if len(rows):
        series = np.searchsorted(panel.indptr, rows[0], side="right") - 1
        of = "" if panel.layout.id_col is None else f" of series {panel.ids[series]!r}"
        raise ValueError(
            f"use_boxcox needs positive targets; {len(rows)} rows are not, the first{of} with "
            f"{panel.values[rows[0]].min():g}. Leave use_boxcox out, or add a constant to the data"
        )
