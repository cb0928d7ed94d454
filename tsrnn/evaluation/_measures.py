"""Measures of accuracy: by model, by step and by series."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scoringrules
from utilsforecast import losses as uf

from tsrnn.contract import level_name
from tsrnn.evaluation._forecasts import Forecasts
from tsrnn.evaluation._losses import qlike
from tsrnn.evaluation._scale import Scale

Columns = dict[str, np.ndarray]  # measure -> (units, M)


class Measures(NamedTuple):
    """Tables of measures; models in the same order in each, the most accurate first."""

    accuracy: pd.DataFrame
    by_step: pd.DataFrame
    by_series: pd.DataFrame
    notes: list[str]


class _Rows(NamedTuple):
    """Rows that are compared: n of them."""

    y: np.ndarray  # (n,)
    point: np.ndarray  # (M, n)
    bounds: dict[float, np.ndarray]  # (2, M, n)


def measure(
    forecasts: Forecasts, scale: Scale | None, kind: str, owa_benchmark: str, sort_by: str
) -> Measures:
    r"""Measure the accuracy of each model on the same rows.

    A measure of a series is taken over all its windows and steps; that of a model is the mean
    over the series, as in the M4 competition: with :math:`e_{it}` the error in row t of series i,
    of :math:`T_i` rows,

    .. math:: \text{RMSE} = \frac{1}{S} \sum_i \sqrt{\frac{1}{T_i} \sum_t e_{it}^2}.

    By step, the same over the rows of that step.
    """
    known = forecasts.known
    rows = _Rows(
        forecasts.y[known],
        forecasts.point[:, known],
        {level: ends[..., known] for level, ends in forecasts.bounds.items()},
    )
    series = np.broadcast_to(forecasts.series[:, None], known.shape)[known]
    step = np.broadcast_to(np.arange(forecasts.horizon), known.shape)[known]
    of_series, own = _of_units(rows, series, kind)
    both, cells = _of_units(rows, series * forecasts.horizon + step, kind)
    both_series, both_step = np.divmod(cells, forecasts.horizon)
    if kind == "mean":
        _add_scaled(of_series, own, scale)
        _add_scaled(both, both_series, scale)
    tables = (
        _mean_over(of_series, np.zeros(len(own), int)),
        _mean_over(both, both_step),
        (of_series, own),
    )
    note: list[str] = []
    for table, _ in tables:
        note = _add_owa(table, forecasts.models, owa_benchmark)
    columns = _ordered(list(tables[0][0]))
    order = np.argsort(tables[0][0][sort_by][0], kind="stable")
    names = [forecasts.models[i] for i in order]
    labels = ([None], np.unique(both_step) + 1, forecasts.ids[own])
    frames = [
        _frame(table, columns, label, order, names)
        for (table, _), label in zip(tables, labels, strict=True)
    ]
    accuracy = frames[0].droplevel(0)
    frames[1].index.names, frames[2].index.names = ["step", "model"], ["unique_id", "model"]
    notes = (note if kind == "mean" else []) + _interval_notes(forecasts)
    return Measures(accuracy, frames[1], frames[2], notes)


def _of_units(rows: _Rows, unit: np.ndarray, kind: str) -> tuple[Columns, np.ndarray]:
    """Measures within each unit, a set of rows; and the units, rising."""
    m = len(rows.point)
    names = [str(i) for i in range(m)]
    frame = pd.DataFrame(dict(zip(names, rows.point, strict=True)))
    frame = frame.assign(unit=unit, y=rows.y)
    units = np.unique(unit)

    def by_unit(loss: Callable[..., pd.DataFrame]) -> np.ndarray:
        return loss(frame, names, id_col="unit")[names].to_numpy(dtype=float)

    found: Columns = {"MAE": by_unit(uf.mae)}
    if kind == "variance":
        found["QLIKE"] = _means(qlike(rows.y, rows.point), unit)
        found["MSE"] = by_unit(uf.mse)
    else:
        found["RMSE"] = by_unit(uf.rmse)
        found["sMAPE"] = 200 * by_unit(uf.smape)
    return found | _of_quantiles(rows, unit, units) | _of_intervals(rows, unit, units), units


def _means(values: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Means of values (M, n) within each unit."""
    return pd.DataFrame(values.T).groupby(unit).mean().to_numpy()


def _of_quantiles(rows: _Rows, unit: np.ndarray, units: np.ndarray) -> Columns:
    """Scores of the quantiles that the levels common to all models with intervals give."""
    levels, models = common_levels(rows.bounds)
    if not levels:
        return {}
    probability = np.array([0.5, *(q for v in levels for q in (0.5 - v / 200, 0.5 + v / 200))])
    ends = np.concatenate([rows.bounds[v][:, models] for v in levels])
    quantiles = np.concatenate([rows.point[None, models], ends])  # (k, M', n)
    here = np.isfinite(quantiles).all(axis=(0, 1))
    if not here.any():
        return {}
    y, quantiles, of = rows.y[here], quantiles[:, :, here], unit[here]
    crps = scoringrules.crps_quantile(
        np.broadcast_to(y, quantiles.shape[1:]), np.moveaxis(quantiles, 0, -1), probability
    )
    pinball = np.mean(
        [_pinball(y, q, of, p) for q, p in zip(quantiles, probability, strict=True)], axis=0
    )
    place = _Place(units, np.unique(of), models)
    return {"pinball": place(pinball), "CRPS": place(_means(crps, of))}


def _pinball(y: np.ndarray, quantile: np.ndarray, unit: np.ndarray, q: float) -> np.ndarray:
    names = {str(i): str(i) for i in range(len(quantile))}
    frame = pd.DataFrame(dict(zip(names, quantile, strict=True))).assign(unit=unit, y=y)
    return uf.quantile_loss(frame, names, q, id_col="unit")[list(names)].to_numpy()


def _of_intervals(rows: _Rows, unit: np.ndarray, units: np.ndarray) -> Columns:
    found: Columns = {}
    for level, ends in rows.bounds.items():
        models = _with_level(ends)
        here = np.isfinite(ends[:, models]).all(axis=(0, 1))
        if not here.any():
            continue
        y, (lower, upper), of = rows.y[here], ends[:, models][:, :, here], unit[here]
        place, name = _Place(units, np.unique(of), models), level_name(level)
        score = scoringrules.interval_score(y[None], lower, upper, 1 - level / 100)
        found[f"Winkler-{name}"] = place(_means(np.reshape(score, lower.shape), of))
        found[f"coverage-{name}"] = place(_coverage(y, lower, upper, of, level))
        found[f"width-{name}"] = place(_means(upper - lower, of))
    return found


def _coverage(
    y: np.ndarray, lower: np.ndarray, upper: np.ndarray, unit: np.ndarray, level: float
) -> np.ndarray:
    names = [str(i) for i in range(len(lower))]
    ends = {
        f"{i}-{side}-{level_name(level)}": values[int(i)]
        for side, values in (("lo", lower), ("hi", upper))
        for i in names
    }
    frame = pd.DataFrame(ends).assign(unit=unit, y=y)
    whole: float = int(level) if level == int(level) else level
    return uf.coverage(frame, names, whole, id_col="unit")[names].to_numpy(dtype=float)  # type: ignore[arg-type]


class _Place(NamedTuple):
    """Where values of some units and models stand among all."""

    units: np.ndarray
    found: np.ndarray
    models: np.ndarray  # mask

    def __call__(self, values: np.ndarray) -> np.ndarray:
        full = np.full((len(self.units), len(self.models)), np.nan)
        full[np.ix_(np.searchsorted(self.units, self.found), np.flatnonzero(self.models))] = values
        return full


def _with_level(ends: np.ndarray) -> np.ndarray:
    """Models that have an interval in some row, a mask of shape (M,)."""
    return np.isfinite(ends).all(axis=0).any(axis=tuple(range(1, ends.ndim - 1)))


def common_levels(bounds: dict[float, np.ndarray]) -> tuple[list[float], np.ndarray]:
    """Levels that all models with intervals have, and a mask of these models."""
    if not bounds:
        return [], np.zeros(0, bool)
    has = {level: _with_level(ends) for level, ends in bounds.items()}
    some = np.any(list(has.values()), axis=0)
    levels = [level for level, own in has.items() if some.any() and (own == some).all()]
    return levels, some


def _add_scaled(found: Columns, series: np.ndarray, scale: Scale | None) -> None:
    if scale is not None:
        found["MASE"] = found["MAE"] / scale.mae[series, None]
        found["RMSSE"] = found["RMSE"] / np.sqrt(scale.mse[series, None])


def _mean_over(found: Columns, group: np.ndarray) -> tuple[Columns, np.ndarray]:
    """Means over the units of each group, those without the measure left out."""
    frames = {key: pd.DataFrame(values).groupby(group).mean() for key, values in found.items()}
    return {key: frame.to_numpy() for key, frame in frames.items()}, np.unique(group)


def _add_owa(found: Columns, models: list[str], benchmark: str) -> list[str]:
    """Overall weighted average of M4; the reason where there is none."""
    if "MASE" not in found:
        return []
    if benchmark not in models:
        return [f"OWA is left out: it needs a model named {benchmark!r}; see owa_benchmark=."]
    at = models.index(benchmark)
    ratios = []
    for key in ("sMAPE", "MASE"):
        own = found[key][:, [at]]
        ratios.append(found[key] / np.where(own > 0, own, np.nan))
    found["OWA"] = np.mean(ratios, axis=0)
    return []


def _ordered(columns: list[str]) -> list[str]:
    first = ["QLIKE", "MSE", "MAE", "RMSE", "MASE", "RMSSE", "sMAPE", "OWA", "pinball", "CRPS"]
    return [name for name in first if name in columns] + [c for c in columns if c not in first]


def _frame(
    found: Columns, columns: list[str], labels: Any, order: np.ndarray, models: list[str]
) -> pd.DataFrame:
    index: pd.MultiIndex = pd.MultiIndex.from_product([labels, models], names=[None, "model"])
    return pd.DataFrame({key: found[key][:, order].ravel() for key in columns}, index=index)


def _interval_notes(forecasts: Forecasts) -> list[str]:
    bounds = {level: ends[..., forecasts.known] for level, ends in forecasts.bounds.items()}
    levels, some = common_levels(bounds)
    names = np.array(forecasts.models)
    notes = []
    if levels:
        k = 2 * len(levels) + 1
        notes.append(
            f"CRPS is approximated from {k} quantiles, the ends of the intervals and the point "
            "forecast as the median; compare it among models with the same levels only."
        )
    elif some.any():
        notes.append(
            "pinball and CRPS are left out: the models with intervals have no level in common."
        )
    if some.any() and not some.all():
        notes.append(f"No intervals: {', '.join(names[~some])}.")
    for level, ends in bounds.items():
        notes += _level_notes(level_name(level), ends, names)
    return notes


def _level_notes(level: str, ends: np.ndarray, names: np.ndarray) -> list[str]:
    own = _with_level(ends)
    lacking = ~np.isfinite(ends[:, own]).all(axis=(0, 1))
    crossed = (ends[0] > ends[1]).sum(axis=1)
    notes = []
    if own.any() and lacking.any():
        notes.append(
            f"{int(lacking.sum())} rows in which a model lacks its {level}% interval are left out "
            "of the measures of intervals, for every model."
        )
    notes += [
        f"{name}: the lower end of the {level}% interval lies above the upper in {n} rows."
        for name, n in zip(names, crossed, strict=True)
        if n
    ]
    return notes
