"""Units: what is estimated by itself, a series or a target of a series; and their scales."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tsrnn.data import Layout, Panel


def unit_index(layout: Layout, ids: pd.Index, multivariate: bool) -> pd.Index:
    """Labels of the units.

    Parameters
    ----------
    layout : Layout
    ids : pandas.Index of shape (S,)
    multivariate : bool
        Whether a unit is a series with all its targets, or each target by itself.

    Returns
    -------
    pandas.Index
        Ids of a long frame, names of the targets of a wide one, both as a MultiIndex where
        there are several targets of several series.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.contract import unit_index
    >>> from tsrnn.data import read_panel
    >>> days = pd.date_range("2024-01-01", periods=3)
    >>> panel = read_panel(pd.DataFrame({"gdp": [1.0, 2, 3], "cpi": [2.0, 4, 3]}, days))
    >>> unit_index(panel.layout, panel.ids, multivariate=False).tolist()
    ['gdp', 'cpi']
    """
    named = ids.rename(layout.id_col)
    targets = pd.Index(layout.target_names, name="target")
    if multivariate or (layout.id_col is not None and len(targets) == 1):
        return named
    if layout.id_col is None:
        return targets.rename(None)
    return pd.MultiIndex.from_product([named, targets])


def target_scales(panel: Panel) -> np.ndarray:
    """Standard deviation of what is there of each target; 1 where it does not vary.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    ndarray of shape (S, C)
        A row a series, a column a target; the divisor is the number of values that are there.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.contract import target_scales
    >>> from tsrnn.data import read_panel
    >>> days = pd.date_range("2024-01-01", periods=4)
    >>> target_scales(read_panel(pd.DataFrame({"a": [1, 1, 5, 5], "b": 3}, days)))
    array([[2., 1.]])
    """
    seen = np.isfinite(panel.values)
    starts = panel.indptr[:-1]
    counts = np.maximum(np.add.reduceat(seen, starts, dtype=float), 1.0)
    means = np.add.reduceat(np.where(seen, panel.values, 0.0), starts) / counts
    deviations = np.where(seen, panel.values - np.repeat(means, panel.lengths, 0), 0.0)
    scales = np.sqrt(np.add.reduceat(deviations**2, starts) / counts)
    return np.where(scales > 0, scales, 1.0)
