"""Assignment of the features of two fits by modulus, angle and share."""

from __future__ import annotations

import numpy as np
import pandas as pd

MODULUS = 0.05  # tolerance of moduli
ANGLE = 0.05  # relative tolerance of angles
LEAST_ANGLE = 0.02  # absolute tolerance, a turn of 300 steps: slower waves look like decays
SHARE_COST = 0.1  # cost of a whole share, relative to differences in units of the tolerances
APART = 1e6  # cost of a forbidden match


def match_features(first: pd.DataFrame, second: pd.DataFrame) -> np.ndarray:
    """Positions in `second` of the matches of the features of `first`, -1 for none.

    Both are results of `forecast_features` or `recurrence_features`. Features may match if their
    moduli differ by at most 0.05, and their angles by at most 5 percent or 0.02 radians. The
    Hungarian method assigns them one to one with the least sum of differences in modulus and angle,
    over their tolerances, and in share with a small weight.
    """
    for frame in (first, second):
        missing = {"modulus", "angle", "share"} - set(frame)
        if missing:
            raise ValueError(
                "features to match are frames as forecast_features or recurrence_features give "
                f"them; a frame lacks the columns {sorted(missing)}"
            )
    columns = (
        [frame[name].fillna(0.0).to_numpy()[:, None] for frame in (first, second)]
        for name in ("modulus", "angle", "share")
    )
    (modulus, other_modulus), (angle, other_angle), (share, other_share) = columns
    of_modulus = np.abs(modulus - other_modulus.T) / MODULUS
    tolerance = np.maximum(ANGLE * np.maximum(angle, other_angle.T), LEAST_ANGLE)
    of_angle = np.abs(angle - other_angle.T) / tolerance
    cost = of_modulus + of_angle + SHARE_COST * np.abs(share - other_share.T)
    cost = np.where((of_modulus <= 1) & (of_angle <= 1), cost, APART)
    matched = np.full(len(first), -1)
    from scipy.optimize import linear_sum_assignment  # slow to import

    rows, places = linear_sum_assignment(cost)
    near = cost[rows, places] < APART
    matched[rows[near]] = places[near]
    return matched
