"""Parts of the page that sums up a fitted network."""

from __future__ import annotations

import textwrap

import numpy as np
import pandas as pd

__all__ = ["WIDTH", "feature_section", "reading_of", "section", "two_columns", "wrapped"]

WIDTH = 78
FEATURES_SHOWN = 8


def section(heading: str) -> str:
    """A rule and what follows it."""
    return f"{'-' * WIDTH}\n{heading}"


def two_columns(facts: dict[str, object]) -> str:
    """Names and values, two to a line."""
    items = [f"{name + ':':<20}{value!s:>16}" for name, value in facts.items()]
    half = -(-len(items) // 2)
    right = items[half:] + [""] * (2 * half - len(items))
    return "\n".join(f"{a}      {b}".rstrip() for a, b in zip(items[:half], right, strict=True))


def feature_section(features: pd.DataFrame | None) -> list[str]:
    """The features that carry most of the output, if there are any."""
    if features is None:
        return []
    heading = "Recurrence features: the strongest by share of the output's variance"
    return [section(heading), _feature_lines(features)]


def _feature_lines(features: pd.DataFrame) -> str:
    strongest = features.sort_values("share", ascending=False, kind="stable")
    shown = strongest.head(FEATURES_SHOWN).drop(columns="order")  # which the type says
    unit, length = features.attrs["time_unit"], features.attrs["sample_length"]
    beyond = shown.pop("beyond_sample").any()
    for name in ("half_life", "period"):
        longer = (shown[name] > length) & ((name == "half_life") | np.isfinite(shown[name]))
        shown[name] = shown[name].astype(object).mask(longer, f">{length:g}")
    text = shown.to_string(index=False, na_rep="-", float_format=lambda v: f"{v:.3g}")
    counts = ", ".join(f"{n} {t}" for t, n in features["type"].value_counts().items())
    lines = [text, f"{len(features)} features in all: {counts}. Times in {unit}."]
    if beyond:
        lines.append(f">{length:g}: beyond the sample, longer than any series; not identified.")
    return "\n".join(lines)


def reading_of(features: pd.DataFrame) -> str:
    """How the table of features is to be read."""
    if "matrix" in features:
        read = (
            "Half-life and period are those of each recurrent matrix by itself; what a gated "
            "block remembers depends on its gates as well."
        )
    else:
        read = (
            "Half-life and period are those of the recurrent matrix itself, the recurrence "
            "linearised at zero; with tanh the decay of large states is faster."
        )
    return (
        f"{read} Blocks are identified up to their order only: two fits of equal accuracy may "
        "share the work between blocks in different ways."
    )


def wrapped(text: str, indent: int = 4) -> str:
    """A note in lines of the width of the page, the later ones indented."""
    return textwrap.fill(text, WIDTH, subsequent_indent=" " * indent)
