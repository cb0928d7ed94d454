r"""Exogenous columns of models of the mean: selection, scale, and starting coefficients.

A model of innovations takes them in its measurement (Hyndman et al., 2008, chapter 9),

.. math:: \mu_t = \hat n_t + (x_t - \bar x)' \beta

with the mean :math:`\hat n_t` of the series without them. Columns are centred at their means over
the rows fitted to, so that shifting a column changes no model, multiplicative ones included.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tsrnn.contract import SeriesArrays
from tsrnn.data import Panel, quoted
from tsrnn.linear._estimates import DERIVATIVES, LEFT_OUT, Estimates
from tsrnn.linear._family import Ahead, Units
from tsrnn.linear.arma._prepare import unit_data

_COLLINEAR = 1e-10  # residual over size of a column, below which it is rounding
_NAMES_SHOWN = 5
CENTRE = "centre"  # name of the constants of a family


@dataclass(frozen=True, eq=False)
class Columns(SeriesArrays):
    """Exogenous columns of N series for a search: orthogonal, of mean square one."""

    kept: tuple[int, ...]  # positions among all M of the columns with a coefficient
    values: np.ndarray  # (N, T, k), ``(x - centre)[kept] @ transform``
    transform: np.ndarray  # (N, k, k)
    centre: np.ndarray  # (N, M), means over the rows with a value

    @property
    def backwards(self) -> np.ndarray:
        """Matrices (N, k, k) that convert derivatives from the search to the given columns."""
        return np.linalg.inv(self.transform).swapaxes(1, 2)

    def slopes(self, inner: np.ndarray) -> np.ndarray:
        """Convert coefficients (N, k) of the search to the units of the given columns."""
        return (self.transform @ inner[:, :, None])[:, :, 0]

    def inner(self, slopes: np.ndarray) -> np.ndarray:
        """Convert coefficients (N, k) of the given columns to the units of the search."""
        return np.linalg.solve(self.transform, slopes[:, :, None])[:, :, 0]


def independent_columns(columns: np.ndarray, seen: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Mask (N, m) of columns (N, T, m) that are independent of a base and of earlier columns.

    The base (T, g) or (N, T, g) are columns already in the model, such as its constant; rows `seen`
    (N, T) count.
    """
    n, length, m = columns.shape
    base = np.broadcast_to(base, (n, length, base.shape[-1]))
    every = np.where(seen[:, :, None], np.concatenate([base, columns], 2), 0.0)
    basis, fresh = np.zeros_like(every), np.zeros((n, every.shape[2]), bool)
    for j in range(every.shape[2]):
        rest = every[:, :, j]
        size = np.sqrt((rest**2).sum(1))
        for _ in range(2):  # Gram and Schmidt twice is orthogonal to rounding
            shares = np.einsum("ntb,nt->nb", basis[:, :, :j], rest)
            rest = rest - np.einsum("ntb,nb->nt", basis[:, :, :j], shares)
        left = np.sqrt((rest**2).sum(1))
        fresh[:, j] = left > _COLLINEAR * size
        basis[:, :, j] = np.where(fresh[:, j], 1 / np.where(left > 0, left, 1.0), 0.0)[:, None]
        basis[:, :, j] *= rest
    return fresh[:, -m:] if m else np.zeros((n, 0), bool)


def known_part(n_rows: int, *, trend: bool, period: int) -> np.ndarray:
    """Constant, line and season (T, g) that the components of a model already span."""
    rows = np.arange(n_rows)
    parts = [np.ones((n_rows, 1))]
    if trend:
        parts.append((rows[:, None] - rows.mean()) / max(n_rows, 1))
    if period > 1:
        parts.append(np.eye(period)[rows % period, 1:])
    return np.concatenate(parts, 1)


def crowded(count: np.ndarray, n_columns: int) -> dict[int, str]:
    """Reasons, by number, to refuse series with no more observations (n,) than columns."""
    return {
        int(i): f"{n_columns} exogenous columns need more observations than columns; the series "
        f"has {count[i]}. Give more rows, or fewer columns"
        for i in np.flatnonzero((count <= n_columns) & (n_columns > 0))
    }


def by_kept(mask: np.ndarray) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """Yield each set of kept columns with the numbers (n,) of its series."""
    for row in np.unique(mask, axis=0):
        series = np.flatnonzero((mask == row).all(1))
        yield tuple(np.flatnonzero(row).tolist()), series


def columns_of(exog: np.ndarray, seen: np.ndarray, kept: tuple[int, ...], known: bool) -> Columns:
    """Orthogonalise columns (N, T, M) over the rows seen (N, T).

    With `known` coefficients columns may be collinear, and are scaled only.
    """
    n_obs = np.maximum(seen.sum(1), 1)
    centre = np.where(seen[:, :, None], exog, 0.0).sum(1) / n_obs[:, None]
    away = exog[:, :, kept] - centre[:, None, kept]
    inside = np.where(seen[:, :, None], away, 0.0)
    if known:
        size = np.sqrt((inside**2).sum(1) / n_obs[:, None])
        transform = np.eye(len(kept)) / np.where(size > 0, size, 1.0)[:, :, None]
    else:
        root = np.sqrt(n_obs)[:, None, None]
        transform = np.linalg.inv(np.linalg.qr(inside)[1]) * root
    return Columns(kept, away @ transform, transform, centre)


def first_slopes(values: np.ndarray, columns: np.ndarray, lag: int) -> np.ndarray:
    """Least-squares coefficients (N, k) on columns (N, T, k), both differenced over `lag` rows.

    With `lag` 0, of centred values (N, T) on centred columns. Zero without enough rows.
    """
    if lag:
        y, X = values[:, lag:] - values[:, :-lag], columns[:, lag:] - columns[:, :-lag]
    else:
        y, X = values, columns
    seen = np.isfinite(y)
    n_obs = np.maximum(seen.sum(1), 1)
    y, X = np.where(seen, y, 0.0), np.where(seen[:, :, None], X, 0.0)
    if not lag:
        y = np.where(seen, y - (y.sum(1) / n_obs)[:, None], 0.0)
        X = np.where(seen[:, :, None], X - (X.sum(1) / n_obs[:, None])[:, None], 0.0)
    return (np.linalg.pinv(X.swapaxes(1, 2) @ X) @ (X.swapaxes(1, 2) @ y[:, :, None]))[:, :, 0]


def check_names(names: Sequence[Any], parameters: Sequence[str]) -> tuple[str, ...]:
    """Names of the coefficients of exogenous columns; refuse names of parameters."""
    regressors = tuple(str(name) for name in names)
    taken = [name for name in regressors if name in parameters]
    if taken:
        raise ValueError(
            f"exogenous columns must not be named as the parameters of the model; got {taken}. "
            "Rename them"
        )
    return regressors


def centre_shapes(n_targets: int, regressors: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Shapes of the column means, as constants of a family with exogenous columns."""
    return {CENTRE: (n_targets, len(regressors))} if regressors else {}


def centre_of(columns: Columns | None) -> dict[str, np.ndarray]:
    """Column means, as constants of units with exogenous columns."""
    return {} if columns is None else {CENTRE: columns.centre}


def without_columns(
    panel: Panel, units: Units, numbers: np.ndarray, places: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Subtract the effects of exogenous columns from values (n, T), and return both.

    `places` are the positions of the coefficients among the parameters. Effects have shape (n, T),
    or (n, 1) without columns.
    """
    values, exog = unit_data(panel, numbers)
    if exog is None:
        return values, np.zeros((len(values), 1))
    effects = _effects(exog, units, numbers, places)
    return values - effects, effects


def effects_ahead(
    units: Units, ahead: Ahead, numbers: np.ndarray, n_targets: int, places: list[int]
) -> np.ndarray:
    """Effects (n, h) of the exogenous columns of the rows ahead; (n, 1) without any."""
    if ahead.exog is None:
        return np.zeros((len(numbers), 1))
    return _effects(ahead.exog[numbers // n_targets], units, numbers, places)


def _effects(
    columns: np.ndarray, units: Units, numbers: np.ndarray, places: list[int]
) -> np.ndarray:
    slopes = units.params[numbers][:, places]
    away = columns - units.constants[CENTRE][numbers][:, None]
    return np.einsum("ntm,nm->nt", away, slopes)


def with_regressors(
    estimates: Estimates,
    names: tuple[str, ...],
    regressors: Sequence[str],
    kept: tuple[int, ...],
    why: str,
) -> Estimates:
    """Rename the parameters, and add a message on columns without a coefficient."""
    if not regressors:
        return estimates
    text = left_out(regressors, kept, why)
    # By `vars`: reading the fields would compute deferred derivatives.
    later = {name: vars(estimates)[name] for name in DERIVATIVES}
    messages = tuple((*text, *texts) for texts in estimates.messages)
    return replace(estimates, names=names, messages=messages, **later)


def left_out(names: Sequence[object], kept: tuple[int, ...], why: str) -> tuple[str, ...]:
    """Message on columns without a coefficient; empty if there are none."""
    lost = [name for place, name in enumerate(names) if place not in kept]
    if not lost:
        return ()
    them = quoted(lost, _NAMES_SHOWN)
    return (
        f"{LEFT_OUT}: {them}, constant or collinear with {why} in the rows fitted to. No "
        "coefficient is identified; it is set to zero.",
    )
