"""Layout of the summary of a fitted network: rules, columns, notes and the table of features."""

from __future__ import annotations

import textwrap

import numpy as np
import pandas as pd

WIDTH = 78
FEATURES_SHOWN = 8
HEADING = "Recurrence features: the strongest by share of the output's variance"
POOR = 0.1  # unexplained share of variance above which a warning is shown


def section(heading: str) -> str:
    """Rule across the page with a heading below it.

    Parameters
    ----------
    heading : str

    Returns
    -------
    str

    Examples
    --------
    >>> from tsrnn.interpret import section
    >>> print(section("Training")[-20:])
    -----------
    Training
    """
    return f"{'-' * WIDTH}\n{heading}"


def two_columns(facts: dict[str, object]) -> str:
    """Format names and values in two columns; the first half goes into the left one."""
    items = [f"{name + ':':<20}{value!s:>16}" for name, value in facts.items()]
    half = -(-len(items) // 2)
    right = items[half:] + [""] * (2 * half - len(items))
    return "\n".join(f"{a}      {b}".rstrip() for a, b in zip(items[:half], right, strict=True))


def feature_section(features: pd.DataFrame | None, heading: str = HEADING) -> list[str]:
    """Heading and table of the features with the largest shares; empty for None."""
    if features is None:
        return []
    strongest = features.sort_values("share", ascending=False, kind="stable")
    shown = strongest.head(FEATURES_SHOWN).drop(columns="order")  # the type contains the order
    unit, length = features.attrs["time_unit"], features.attrs["sample_length"]
    beyond = shown.pop("beyond_sample").any()
    for name in ("half_life", "period"):
        # An infinite half-life is long, while an infinite period means no period.
        longer = (shown[name] > length) & ((name == "half_life") | np.isfinite(shown[name]))
        shown[name] = shown[name].astype(object).mask(longer, f">{length:g}")
    text = shown.to_string(index=False, na_rep="-", float_format=lambda v: f"{v:.3g}")
    counts = ", ".join(f"{n} {t}" for t, n in features["type"].value_counts().items())
    lines = [text, f"{len(features)} features in all: {counts}. Times in {unit}."]
    if beyond:
        lines.append(f">{length:g}: beyond the sample, longer than any series; not identified.")
    return [section(heading), "\n".join(lines)]


def reading_of(features: pd.DataFrame) -> str:
    """Note on the interpretation of a table of `recurrence_features`."""
    if "matrix" in features:
        times = (
            "Half-life and period are those of each recurrent matrix by itself; what a gated "
            "block remembers depends on its gates as well."
        )
    else:
        times = (
            "Half-life and period are those of the recurrent matrix itself, the recurrence "
            "linearised at zero; with tanh the decay of large states is faster."
        )
    return (
        f"{times} Blocks are identified up to their order only: two fits of equal accuracy may "
        "share the work between blocks in different ways."
    )


def reading_of_forecasts(features: pd.DataFrame) -> str:
    """Note on the approximation of the forecasts by `forecast_features`."""
    attrs = features.attrs
    left = [f"{attrs['realisation_error']:.1%} of the variance of the forecasts"]
    if attrs["linear"]:
        left = [
            f"{attrs['linearisation_error']:.1%} of the variance of the forecasts is not linear "
            "in past rows",
            f"{attrs['realisation_error']:.1%} of the linear ones is left out",
        ]
    poor = max(attrs["realisation_error"], attrs["linearisation_error"]) > POOR
    warning = " They describe the forecasts in part only." if poor else ""
    verb = "is left out" if not attrs["linear"] else ""
    errors = f"{' and '.join(left)} {verb}".strip()
    return (
        "Features of the forecast are the eigenvalues of a linear recurrence of order "
        f"{attrs['realisation_order']} that continues it from step to step (Ho and Kalman): "
        f"{errors}.{warning}"
    )


def wrapped(text: str, indent: int = 4) -> str:
    """Wrap a note at the width of the page, with a hanging indent."""
    return textwrap.fill(text, WIDTH, subsequent_indent=" " * indent)
