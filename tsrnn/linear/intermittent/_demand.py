"""Classes of demand by how often it occurs and how much its size varies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tsrnn.contract import unit_index
from tsrnn.data import quote, read_panel

INTERVAL, VARIATION = 1.32, 0.49  # beyond these SBA beats Croston's method, in theory


def demand_classes(
    df: Any,
    *,
    target: Any = None,
    id_col: str = "unique_id",
    time_col: str = "ds",
    freq: Any = None,
    missing: str = "error",
) -> pd.DataFrame:
    r"""Classify demand as smooth, erratic, intermittent or lumpy (Syntetos, Boylan, Croston, 2005).

    .. math::
        \text{ADI} = \frac{\text{rows}}{\text{rows with demand}}, \qquad
        \text{CV}^2 = \frac{\text{variance}}{\text{mean}^2} \text{ of the sizes of demands}

    ============ =========== ===============
    class        ADI         CV\ :sup:`2`
    ============ =========== ===============
    smooth       below 1.32  below 0.49
    erratic      below 1.32  0.49 or above
    intermittent 1.32, above below 0.49
    lumpy        1.32, above 0.49 or above
    ============ =========== ===============

    Parameters
    ----------
    df, target, id_col, time_col, freq, missing
        As the forecasters take them. Missing rows are not counted.

    Returns
    -------
    DataFrame
        A row a series (and target), with columns ``adi``, ``cv2`` and ``demand_class``; the class
        of a series without any demand is "none". The variance of sizes is that of the population.

    Raises
    ------
    TypeError, ValueError
        If the data cannot be used, or a value is negative.

    References
    ----------
    Syntetos, A. A., Boylan, J. E., Croston, J. D. (2005). On the categorization of demand patterns.
    Journal of the Operational Research Society.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.linear import demand_classes
    >>> parts = pd.DataFrame({"bolt": [5, 4, 6, 5.0], "pump": [0, 1, 0, 9.0]})
    >>> demand_classes(parts)["demand_class"].tolist()
    ['smooth', 'lumpy']
    """
    panel = read_panel(
        df, target=target, id_col=id_col, time_col=time_col, freq=freq, missing=missing
    )
    index = unit_index(panel.layout, panel.ids, multivariate=False)
    values, begin = panel.values, panel.indptr[:-1]
    if (values < 0).any():
        row, column = np.argwhere(values < 0)[0]
        series = int(np.searchsorted(panel.indptr, row, side="right")) - 1
        label = index[series * values.shape[1] + column]
        raise ValueError(
            f"demand must not be negative; that of {quote(label)} has {values[row, column]:g}. "
            "Take returns out of the series"
        )
    rows = np.add.reduceat(np.isfinite(values), begin, dtype=float).ravel()
    count = np.add.reduceat(values > 0, begin, dtype=float).ravel()
    sizes = np.where(values > 0, values, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.add.reduceat(sizes, begin).ravel() / count
        centre = np.repeat(mean.reshape(-1, values.shape[1]), panel.lengths, 0)
        away = np.where(values > 0, values - centre, 0.0)
        cv2 = np.add.reduceat(away**2, begin).ravel() / count / mean**2
        adi = rows / count
    kinds = np.array([["smooth", "erratic"], ["intermittent", "lumpy"]], object)
    kind = kinds[(adi >= INTERVAL).astype(int), (cv2 >= VARIATION).astype(int)]
    kind[count == 0] = "none"
    return pd.DataFrame({"adi": adi, "cv2": cv2, "demand_class": kind}, index=index)
