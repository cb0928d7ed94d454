"""Table of the outliers of series, with the keys of the data."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tsrnn.data import Layout, row_keys
from tsrnn.prior._outliers import Outliers

SHOWN = 10  # outliers in a summary


def outlier_table(
    outliers: Outliers, layout: Layout, ids: pd.Index, times: np.ndarray
) -> pd.DataFrame:
    """Outliers in the order of series, targets and rows.

    Parameters
    ----------
    outliers : Outliers
        Of targets, which are numbered series by series, within a series in their order.
    layout : Layout
    ids : pandas.Index of shape (n,)
        Series of each outlier.
    times : ndarray of shape (n,)
        Time of each, of the kind of `Panel.times`.

    Returns
    -------
    DataFrame
        Id and time as in the data, ``target`` where there are several, ``kind`` ("error" or
        "shift"), ``size`` and ``probability``.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.data import read_panel
    >>> from tsrnn.datasets import load_nile
    >>> from tsrnn.prior import find_outliers, outlier_table
    >>> flow = load_nile()
    >>> flow.iloc[9] *= 10
    >>> panel = read_panel(flow)
    >>> outliers = find_outliers(panel.values.T, panel.lengths, season_length=1)
    >>> table = outlier_table(outliers, panel.layout, panel.ids, panel.times[outliers.row])
    >>> table.round({"size": -2, "probability": 2})
              ds   kind     size  probability
    0 1880-01-01  error  10300.0          1.0
    """
    order = np.lexsort((outliers.row, outliers.series))
    frame = row_keys(layout, ids[order], times[order]).reset_index(drop=True)
    targets = np.array(layout.target_names, object)
    if len(targets) > 1:
        frame["target"] = targets[outliers.series[order] % len(targets)]
    frame["kind"] = np.where(outliers.shift[order], "shift", "error")
    frame["size"], frame["probability"] = outliers.size[order], outliers.probability[order]
    return frame


def outlier_lines(table: pd.DataFrame) -> list[str]:
    """Write outliers for a summary, the ten of the largest probabilities at most.

    Parameters
    ----------
    table : DataFrame
        As `outlier_table` gives it.

    Returns
    -------
    list of str

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.prior import outlier_lines
    >>> table = pd.DataFrame({"time": [3], "kind": ["error"], "size": [9.5], "probability": [1.0]})
    >>> outlier_lines(table)
    [' time  kind  size  probability', '    3 error   9.5            1']
    """
    shown = table.sort_values("probability", ascending=False, kind="stable").head(SHOWN)
    shown = shown.sort_index()
    text = shown.to_string(index=False, float_format=lambda value: f"{value:.4g}")
    more = [f"and {len(table) - SHOWN} more in outliers_"] * (len(table) > SHOWN)
    return [*text.splitlines(), *more]
