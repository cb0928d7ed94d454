"""Nonlinearity left by linear models before the first cutoff: whether networks have a case."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tsrnn.evaluation._scale import rows_before

MOST_SERIES = 20  # series tested, evenly spaced: each takes a tenth of a second
FEWEST_ROWS, MOST_ROWS = 50, 1000  # the last rows: fewer have no power, more take long
COLUMNS = ("unique_id", "n", "model", "terasvirta", "block", "p_holm")


def nonlinearity_left(
    frame: pd.DataFrame, train: pd.DataFrame | None, ids: np.ndarray, seed: int
) -> pd.DataFrame:
    """p-values of Teräsvirta's and the block's test against an AR, of up to 20 series `ids`.

    Columns are those of `Comparison.linearity`. Rows after the first cutoff of a series in `frame`
    are not used; without `train` the table has no rows. Series that cannot be tested are left out:
    missing values, fewer than 50 rows, no variation, or residuals that do not vary.
    """
    if train is None:
        return pd.DataFrame(columns=list(COLUMNS))
    from tsrnn.linearity import linearity_tests  # the room of ARMA loads with it

    by_series = dict(list(rows_before(frame, train).groupby("unique_id", sort=False)["y"]))
    known = [label for label in ids if label in by_series]
    chosen = np.unique(np.linspace(0, len(known) - 1, min(len(known), MOST_SERIES)).astype(int))
    rows = []
    for i in chosen:
        y = by_series[known[i]].to_numpy(float)[-MOST_ROWS:]
        if len(y) < FEWEST_ROWS:
            continue
        try:
            page = linearity_tests(y, tests=("terasvirta", "block"), random_state=seed)
        except ValueError:  # nothing varies, or nothing is left of it
            continue
        p_values = page.table["p_value"]
        rows.append(
            (known[i], len(y), page.model, p_values["terasvirta"], p_values["block"],
             page.table["p_holm"].min())
        )  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS))


def linearity_words(table: pd.DataFrame, alpha: float) -> list[str]:
    """Sentence on the tests of linearity; none without them."""
    if table.empty:
        return []
    n, level = len(table), f"{100 * alpha:g} percent"
    rejected = int((table["p_holm"] < alpha).sum())
    if n == 1:
        verb = "is left" if rejected else "is seen"
        what = "Nonlinearity" if rejected else "No nonlinearity"
        return [
            f"{what} {verb} in the series by an {table['model'][0]} (Teräsvirta's and the "
            f"block's test, {level})."
        ]
    return [
        f"Of {n} series tested, an autoregression leaves nonlinearity in {rejected} (Teräsvirta's "
        f"and the block's test, {level}): "
        + (
            "a network has something to learn there."
            if rejected > alpha * n + 1
            else "about as many as by chance."
        )
    ]
