"""Scaling of series: the transformation of Box and Cox, then standardisation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tsrnn.contract import number
from tsrnn.data import Panel, Scaler

FARTHEST = 1e30  # from the mean in units of the scale: float32 ends at 3e38
SMALLEST_SCALE = 0.02  # in standard deviations: a season that repeats exactly is not blown up


@dataclass(frozen=True)
class Scaling:
    """Standardisation of series: targets series by series, exogenous columns together.

    Attributes
    ----------
    target : Scaler
        Mean, and mean absolute error of the (seasonal) naive forecast one season ahead, as in the
        MASE of Hyndman and Koehler (2006), both of transformed targets: series count in a loss
        by how their errors compare with it.
    exog : Scaler
    constant : boolean ndarray of shape (S, C)
        Whether the target does not vary.
    deviation : ndarray of shape (S, C)
        Standard deviation of the targets, in the units of the data.
    boxcox : float, optional
        Exponent of the transformation of the targets.
    """

    target: Scaler
    exog: Scaler
    constant: np.ndarray
    deviation: np.ndarray
    boxcox: float | None = None

    def transform(self, values: np.ndarray, indptr: np.ndarray) -> np.ndarray:
        """Standardise rows (N, C + E) of all series."""
        n_targets = self.constant.shape[1]
        return np.hstack(
            [
                self.target.transform(boxcox(values[:, :n_targets], self.boxcox), indptr),
                self.exog.transform(values[:, n_targets:]),
            ]
        )

    def back(self, values: np.ndarray) -> np.ndarray:
        """Return transformed targets to the units of the data."""
        return inverse_boxcox(values, self.boxcox)

    def select(self, series: np.ndarray) -> Scaling:
        """Scaling of some series."""
        target = Scaler(self.target.location[series], self.target.scale[series])
        parts = {"constant": self.constant[series], "deviation": self.deviation[series]}
        return replace(self, target=target, **parts)


def fit_scaling(
    panel: Panel,
    rows: np.ndarray,
    season: int,
    exponent: float | None = None,
    exog: Scaler | None = None,
) -> Scaling:
    """Scaling estimated from the first rows of each series.

    Parameters
    ----------
    panel : Panel
    rows : integer ndarray of shape (S,)
        Number of rows of each series.
    season : int
        Steps of the season of the naive forecast.
    exponent : float, optional
        Exponent of the transformation of the targets.
    exog : Scaler, optional
        Scaling of the exogenous columns; by default estimated from the same rows.

    Returns
    -------
    Scaling

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.data import read_panel
    >>> from tsrnn.datasets import load_elec_equip
    >>> from tsrnn.forecasters import fit_scaling
    >>> panel = read_panel(load_elec_equip())
    >>> fit_scaling(panel, panel.lengths, season=12).constant
    array([[False]])
    """
    position = np.arange(len(panel.values)) - np.repeat(panel.indptr[:-1], panel.lengths)
    mask = position < np.repeat(rows, panel.lengths)
    indptr = np.concatenate([[0], np.cumsum(rows)])
    values = panel.values[mask]
    raw, changed = Scaler.fit(values, indptr), boxcox(values, exponent)
    target = raw if exponent is None else Scaler.fit(changed, indptr)
    # By extremes: a standard deviation of equal values need not be zero exactly.
    low = np.minimum.reduceat(values, indptr[:-1])
    constant = low == np.maximum.reduceat(values, indptr[:-1])
    # Of standardised values, so that squares and sums neither overflow nor vanish.
    relative = _naive_error(target.transform(changed, indptr), indptr, season)
    relative = np.where(constant, 1.0, np.maximum(relative, SMALLEST_SCALE))
    return Scaling(
        Scaler(target.location, target.scale * relative),
        exog or Scaler.fit(panel.exog[mask], indptr, pooled=True),
        constant,
        raw.scale,
        exponent,
    )


def _naive_error(values: np.ndarray, indptr: np.ndarray, season: int) -> np.ndarray:
    """Mean absolute difference of rows a season apart, series by series: (S, C).

    Of neighbouring rows where a series has less than two seasons.
    """
    lengths = np.diff(indptr)
    lag = np.where(lengths >= 2 * season, season, 1)
    offset = np.arange(len(values)) - np.repeat(indptr[:-1], lengths)
    lags = np.repeat(lag, lengths)
    before = np.where(offset >= lags, np.arange(len(values)) - lags, np.arange(len(values)))
    sums = np.add.reduceat(np.abs(values - values[before]), indptr[:-1])
    return sums / np.maximum(lengths - lag, 1)[:, None]


def standardise(panel: Panel, scaling: Scaling) -> np.ndarray:
    """Rows of a panel on the scale of the network.

    Parameters
    ----------
    panel : Panel
    scaling : Scaling

    Returns
    -------
    ndarray of shape (N, C + E)

    Raises
    ------
    ValueError
        If some are so far from the data fitted to that float32 cannot hold them.

    Examples
    --------
    >>> from tsrnn.data import read_panel
    >>> from tsrnn.datasets import load_elec_equip
    >>> from tsrnn.forecasters import fit_scaling, standardise
    >>> panel = read_panel(load_elec_equip())
    >>> rows = standardise(panel, fit_scaling(panel, panel.lengths, season=12))
    >>> rows.shape == panel.values.shape, bool(abs(rows.mean()) < 1e-12)
    (True, True)
    """
    with np.errstate(over="ignore"):
        rows = scaling.transform(np.hstack([panel.values, panel.exog]), panel.indptr)
    for j, name in enumerate((*panel.target_names, *panel.exog_names)):
        far = np.flatnonzero(np.abs(rows[:, j]) > FARTHEST)
        if len(far):
            raise ValueError(
                f"values of the column {name!r} must lie within {FARTHEST:g} times the scale of "
                f"the data fitted to; farther are {panel.axis.describe(far)}. Replace these "
                "values, or fit to data with values of their size"
            )
    return rows


def boxcox_lambda(use_boxcox: Any) -> float | None:
    """Exponent that `use_boxcox` asks for; None for no transformation.

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

    Parameters
    ----------
    values : ndarray
    exponent : float or None
        Exponent :math:`\lambda` from 0 to 1; None for no transformation.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.forecasters import boxcox
    >>> boxcox(np.array([1.0, 4.0]), 0.5).round(6).tolist()
    [0.0, 2.0]
    """
    if exponent is None:
        return values
    if exponent == 0:
        return np.log(values)
    # By expm1: the difference y ** exponent - 1 has no digits where the exponent is small.
    return np.expm1(exponent * np.log(values)) / exponent


def inverse_boxcox(values: np.ndarray, exponent: float | None) -> np.ndarray:
    """Undo `boxcox`; values below the transform of zero become zero.

    Parameters
    ----------
    values : ndarray
    exponent : float or None
        That of the transformation.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.forecasters import inverse_boxcox
    >>> inverse_boxcox(np.array([2.0, -5.0]), 0.5).round(6).tolist()
    [4.0, 0.0]
    """
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
