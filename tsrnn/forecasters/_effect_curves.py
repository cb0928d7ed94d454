"""Effects of columns as curves: over the values of a column, and by lag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.forecasters._columns import FittedColumns
from tsrnn.prior import CYCLES, Term, calendar_functions

POINTS = 41  # points of a curve
HOURS = (0, 6, 12, 18)  # hours of curves that vary over the day
MOST_LAGS = 12  # lags of the response to a moving average
MONTHS = np.arange(12) / 12  # fractions of the year, over which yearly cycles are averaged


def effect_curves(fitted: FittedColumns) -> pd.DataFrame:
    """Mean effects of columns over series, see `ParaRNNForecaster.effect_curves`."""
    frames = [
        frame
        for column in fitted.part_columns
        if column >= 0
        for frame in _curves_of_column(fitted, column)
    ]
    keys = ["column", "kind", "of", "target", "hour", "at", "effect", "se"]
    frame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=keys)
    frame.attrs["units"] = "percent" if fitted.effects.logarithms else "added"
    return frame[keys] if fitted.data.n_targets > 1 else frame[keys].drop(columns="target")


def _curves_of_column(fitted: FittedColumns, column: int) -> Iterator[pd.DataFrame]:
    """Curves of the terms of a column, and responses by lag if all terms are linear."""
    own_terms = [term for term in fitted.effects.terms if term.column == column]
    name, quantiles = str(fitted.data.exog_names[column]), fitted.quantiles[column]
    grid, marks = np.linspace(quantiles[0], quantiles[-1], POINTS), quantiles[1:-1]
    late = sorted({(term.lag, term.decay) for term in own_terms})
    linear = all(not term.knots and term.cycle == "always" for term in own_terms)
    if linear:
        groups = {"": own_terms}
    else:
        groups = {
            Term(0, *place).label([""])[2:]: [
                term for term in own_terms if (term.lag, term.decay) == place
            ]
            for place in late
        }
    for of, terms in groups.items():
        by_hour = any(CYCLES[term.cycle].day for term in terms)
        for hour in HOURS if by_hour else (np.nan,):
            for kind, values in (("curve", grid), ("mark", marks)):
                rows = loadings(fitted, terms, values, hour) - loadings(
                    fitted, terms, quantiles[[len(quantiles) // 2]], hour
                )
                yield effect_rows(fitted, rows, column=name, kind=kind, of=of, hour=hour, at=values)
    if linear and late != [(0, 0.0)]:
        rows = lag_loadings(fitted, own_terms)
        lags = np.arange(len(rows))
        for kind, response in (("lag", rows), ("cumulated", rows.cumsum(0))):
            yield effect_rows(fitted, response, column=name, kind=kind, of="", hour=np.nan, at=lags)


def loadings(
    fitted: FittedColumns, terms: Sequence[Term], values: np.ndarray, hour: float
) -> np.ndarray:
    """Scaled design matrix, (n, p), at `values` (n,) of the column of `terms`."""
    hours = np.arange(24) if np.isnan(hour) else np.array([hour])
    day, year = (grid.ravel() for grid in np.meshgrid(hours / 24, MONTHS))
    phases = np.stack([day, 0 * day, year], -1)
    ends = np.cumsum(fitted.effects.widths)
    rows = np.zeros((len(values), len(fitted.effects.scale)))
    for term, end, width in zip(fitted.effects.terms, ends, fitted.effects.widths, strict=True):
        if term in terms:
            factor = calendar_functions(CYCLES[term.cycle], phases).mean(0)
            products = term.basis(values)[:, :, None] * factor
            rows[:, end - width : end] = products.reshape(len(values), -1)
    return rows / fitted.effects.scale


def lag_loadings(fitted: FittedColumns, terms: Sequence[Term]) -> np.ndarray:
    """Scaled design matrix of the response to a unit impulse, shape (lags, p)."""
    decays = any(term.decay for term in terms)
    lags = np.arange(1 + (MOST_LAGS if decays else max(term.lag for term in terms)))
    rows = np.zeros((len(lags), len(fitted.effects.scale)))
    for number, term in enumerate(fitted.effects.terms):
        if term in terms:  # linear, so that it has one column of the regression
            place = int(np.sum(fitted.effects.widths[:number]))
            averaged = (1 - term.decay) * term.decay ** np.maximum(lags - 1.0, 0.0) * (lags > 0)
            rows[:, place] = averaged if term.decay else lags == term.lag
    return rows / fitted.effects.scale


def effect_rows(fitted: FittedColumns, rows: np.ndarray, **keys: Any) -> pd.DataFrame:
    """Mean effects over series of a design matrix, (n, p), and their standard errors."""
    n_series, n_targets = fitted.size.shape
    shape = n_series, n_targets, rows.shape[1]
    coefficients = fitted.effects.coefficient.reshape(shape).mean(0)
    covariances = fitted.effects.covariance.reshape(*shape, rows.shape[1]).mean(0)
    frames = []
    for target in range(n_targets):
        effect = rows @ coefficients[target]
        error = np.sqrt(np.maximum(np.einsum("np,pq,nq->n", rows, covariances[target], rows), 0.0))
        if fitted.effects.logarithms:
            effect, error = 100 * np.expm1(effect), 100 * np.exp(effect) * error
        name = fitted.data.layout.target_names[target]
        frames.append(pd.DataFrame({**keys, "target": name, "effect": effect, "se": error}))
    return pd.concat(frames, ignore_index=True)
