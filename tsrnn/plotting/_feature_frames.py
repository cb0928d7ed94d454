"""Recurrence features as the plots need them: checked, ranked, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from tsrnn.interpret import recurrence_features

__all__ = ["as_features", "in_words", "leading"]

_COLUMNS = ("layer", "block", "type", "order", "modulus", "angle", "half_life", "period", "share")


def as_features(features_or_model: Any) -> pd.DataFrame:
    """Pass a frame of features through, checked, and read a model's features."""
    if not (isinstance(features_or_model, pd.DataFrame) and "modulus" in features_or_model):
        return recurrence_features(features_or_model)
    missing = [name for name in _COLUMNS if name not in features_or_model]
    if missing or features_or_model.empty:
        what = f"lacks the columns {missing}" if missing else "has no rows"
        raise ValueError(
            f"a frame of features must be as recurrence_features gives it; this one {what}."
        )
    if not {"time_unit", "time_step"} <= features_or_model.attrs.keys():
        raise ValueError(
            "a frame of features must carry attrs['time_unit'] and attrs['time_step'], without "
            "which its half-lives have no unit; this one lost them, as merging or reading a file "
            "does. Copy the attrs over from the frame that recurrence_features gave."
        )
    return features_or_model


def leading(features: pd.DataFrame, n: int) -> pd.DataFrame:
    """Select n features, zeros left out: by share where there is one, then by modulus."""
    lasting = features[features["modulus"] > 0]
    by = lasting.sort_values(["share", "modulus"], ascending=False, kind="stable")
    return by.head(n)


def in_words(feature: Any, attrs: Mapping[Any, Any]) -> str:
    """Name a feature, such as "C-1, half-life 53, period 12 months".

    Times longer than the sample are bounded by its length, as they are not identified:
    "R-1, half-life beyond the sample of 216 months".

    Parameters
    ----------
    feature : named tuple
        A row of the frame of features.
    attrs : mapping
        Of that frame.
    """
    if feature.modulus == 0:
        return f"zero, memory of {feature.order - 1} steps"
    length = attrs.get("sample_length", math.inf)
    parts = [feature.type]
    if math.isnan(feature.half_life):
        parts.append("growing")
    elif feature.half_life > length:
        parts.append(f"half-life beyond the sample of {_number(length)}")
    elif math.isinf(feature.half_life):
        parts.append("lasting")
    else:
        parts.append(f"half-life {_number(feature.half_life)}")
    if math.isfinite(feature.period):
        beyond = feature.period > length
        parts.append(f"period {'beyond ' * beyond}{_number(min(feature.period, length))}")
    words, unit = ", ".join(parts), attrs["time_unit"]
    if not any(part.startswith(("half-life", "period")) for part in parts):
        return words
    return f"{words} {unit.removesuffix('s') if words.endswith(' 1') else unit}"


def _number(value: float) -> str:
    """Three significant digits, no exponent below a million."""
    return f"{value:,.0f}" if 100 <= value < 1e6 else f"{value:.3g}"
