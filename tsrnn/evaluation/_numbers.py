"""Numbers as they are read."""

from __future__ import annotations

import math


def p_value(p: float, nothing: str = "-") -> str:
    """Three decimals, and a bound where these would hide the number; `nothing` if it is NaN."""
    if math.isnan(p):
        return nothing
    return "<0.001" if p < 0.001 else f"{p:.3f}"
