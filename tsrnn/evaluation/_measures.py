"""Measures of accuracy: by model, by step and by series."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scoringrules

from tsrnn.contract import level_name
from tsrnn.evaluation._forecasts import Forecasts
from tsrnn.evaluation._losses import qlike
from tsrnn.evaluation._scale import Scale

Columns = dict[str, np.ndarray]  # measure -> (groups, M)
# Order of the columns; those of single intervals come last.
ORDER = ("QLIKE", "MSE", "MAE", "RMSE", "MASE", "RMSSE", "sMAPE", "OWA", "pinball", "CRPS")


class Measures(NamedTuple):
    """Tables of measures; models in the same order in each, the most accurate first."""

    accuracy: pd.DataFrame
    by_step: pd.DataFrame
    by_series: pd.DataFrame
    notes: list[str]


class _Rows(NamedTuple):
    """Rows that are compared, n of them."""

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
    known, horizon = forecasts.known, forecasts.horizon
    rows = _Rows(
        forecasts.y[known],
        forecasts.point[:, known],
        {level: ends[..., known] for level, ends in forecasts.bounds.items()},
    )
    series = np.broadcast_to(forecasts.series[:, None], known.shape)[known]
    step = np.broadcast_to(np.arange(horizon), known.shape)[known]
    by_series, ids = _measure_groups(rows, series, kind)
    by_cell, cells = _measure_groups(rows, series * horizon + step, kind)
    cell_series, cell_step = np.divmod(cells, horizon)
    if kind == "mean" and scale is not None:
        for table, of in ((by_series, ids), (by_cell, cell_series)):
            table["MASE"] = table["MAE"] / scale.mae[of, None]
            table["RMSSE"] = table["RMSE"] / np.sqrt(scale.mse[of, None])
            for name in [name for name in table if name.startswith("Winkler-")]:
                table[name.replace("Winkler", "MSIS")] = table[name] / scale.mae[of, None]
    overall = {key: _means(values.T, np.zeros(len(ids), int)) for key, values in by_series.items()}
    by_step = {key: _means(values.T, cell_step) for key, values in by_cell.items()}
    notes: list[str] = []
    if "MASE" in overall:
        if owa_benchmark in forecasts.models:
            for table in (overall, by_step, by_series):
                table["OWA"] = _owa(table, forecasts.models.index(owa_benchmark))
        else:
            notes.append(
                f"OWA is left out: it needs a model named {owa_benchmark!r}; see owa_benchmark=."
            )
    order = np.argsort(overall[sort_by][0], kind="stable")
    models = [forecasts.models[i] for i in order]

    def frame(table: Columns, name: str | None, labels: Any) -> pd.DataFrame:
        columns = sorted(table, key=lambda c: ORDER.index(c) if c in ORDER else len(ORDER))
        index: pd.MultiIndex = pd.MultiIndex.from_product([labels, models], names=[name, "model"])
        return pd.DataFrame({key: table[key][:, order].ravel() for key in columns}, index=index)

    return Measures(
        frame(overall, None, [None]).droplevel(0),
        frame(by_step, "step", np.unique(cell_step) + 1),
        frame(by_series, "unique_id", forecasts.ids[ids]),
        notes + _interval_notes(rows.bounds, forecasts.models),
    )


def _measure_groups(rows: _Rows, group: np.ndarray, kind: str) -> tuple[Columns, np.ndarray]:
    """Measures of the rows of each group, (groups, M); and the groups, rising."""
    error = np.abs(rows.y - rows.point)
    squared = _means(error**2, group)
    table: Columns = {"MAE": _means(error, group)}
    if kind == "variance":
        table |= {"MSE": squared, "QLIKE": _means(qlike(rows.y, rows.point), group)}
    else:
        size = np.abs(rows.point) + np.abs(rows.y)
        # a forecast of zero of a value of zero has no error
        relative = np.where(size == 0, 0.0, error / np.where(size == 0, 1.0, size))
        table |= {"RMSE": np.sqrt(squared), "sMAPE": 200 * _means(relative, group)}
    groups = np.unique(group)
    table |= _score_quantiles(rows, group, groups) | _score_intervals(rows, group, groups)
    return table, groups


def _means(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Means of values (M, n) within each group, without NaN."""
    return pd.DataFrame(values.T).groupby(group).mean().to_numpy()


def _score_quantiles(rows: _Rows, group: np.ndarray, groups: np.ndarray) -> Columns:
    """Scores of the quantiles at the levels that all models with intervals have."""
    levels, models = _common_levels(rows.bounds)
    if not levels:
        return {}
    probability = np.array([0.5, *(q for v in levels for q in (0.5 - v / 200, 0.5 + v / 200))])
    ends = np.concatenate([rows.bounds[v][:, models] for v in levels])
    quantiles = np.concatenate([rows.point[None, models], ends])  # (k, M', n)
    here = np.isfinite(quantiles).all(axis=(0, 1))
    if not here.any():
        return {}
    y, quantiles, group = rows.y[here], quantiles[:, :, here], group[here]
    crps = scoringrules.crps_quantile(
        np.broadcast_to(y, quantiles.shape[1:]), np.moveaxis(quantiles, 0, -1), probability
    )
    q = probability[:, None, None]
    loss = np.maximum(q * (y - quantiles), (q - 1) * (y - quantiles))
    pinball = np.mean([_means(part, group) for part in loss], axis=0)
    scores = {"pinball": pinball, "CRPS": _means(crps, group)}
    return _among(scores, np.isin(groups, group), models)


def _score_intervals(rows: _Rows, group: np.ndarray, groups: np.ndarray) -> Columns:
    """Winkler score, coverage and width of the interval of each level."""
    table: Columns = {}
    for level, ends in rows.bounds.items():
        models, name = _models_with(ends), level_name(level)
        here = np.isfinite(ends[:, models]).all(axis=(0, 1))
        if not here.any():
            continue
        y, (lower, upper), of = rows.y[here], ends[:, models][:, :, here], group[here]
        score = scoringrules.interval_score(y[None], lower, upper, 1 - level / 100)
        scores = {
            f"Winkler-{name}": _means(np.reshape(score, lower.shape), of),
            f"coverage-{name}": _means(((lower <= y) & (y <= upper)).astype(float), of),
            f"width-{name}": _means(upper - lower, of),
        }
        table |= _among(scores, np.isin(groups, of), models)
    return table


def _among(scores: Columns, groups: np.ndarray, models: np.ndarray) -> Columns:
    """Place scores of masked groups and models among all; NaN elsewhere."""
    full = {key: np.full((len(groups), len(models)), np.nan) for key in scores}
    for key, values in scores.items():
        full[key][np.ix_(groups, models)] = values
    return full


def _models_with(ends: np.ndarray) -> np.ndarray:
    """Models that have an interval in any row, a mask of shape (M,)."""
    return np.isfinite(ends).all(axis=0).any(axis=-1)


def _common_levels(bounds: dict[float, np.ndarray]) -> tuple[list[float], np.ndarray]:
    """Levels that all models with intervals have, and a mask of these models."""
    if not bounds:
        return [], np.zeros(0, bool)
    masks = {level: _models_with(ends) for level, ends in bounds.items()}
    models = np.any(list(masks.values()), axis=0)
    levels = [level for level, mask in masks.items() if models.any() and (mask == models).all()]
    return levels, models


def _owa(table: Columns, benchmark: int) -> np.ndarray:
    """Overall weighted average of M4: mean of sMAPE and MASE over those of the benchmark."""
    ratios = []
    for key in ("sMAPE", "MASE"):
        divisor = table[key][:, [benchmark]]
        ratios.append(table[key] / np.where(divisor > 0, divisor, np.nan))
    return np.mean(ratios, axis=0)


def _interval_notes(bounds: dict[float, np.ndarray], models: list[str]) -> list[str]:
    levels, with_intervals = _common_levels(bounds)
    notes = []
    if levels:
        k = 2 * len(levels) + 1
        notes.append(
            f"CRPS is approximated from {k} quantiles, the ends of the intervals and the point "
            "forecast as the median; compare it among models with the same levels only."
        )
    elif with_intervals.any():
        notes.append(
            "pinball and CRPS are left out: the models with intervals have no level in common."
        )
    if with_intervals.any() and not with_intervals.all():
        notes.append(f"No intervals: {', '.join(np.array(models)[~with_intervals])}.")
    for level, ends in bounds.items():
        mask, name = _models_with(ends), level_name(level)
        lacking = ~np.isfinite(ends[:, mask]).all(axis=(0, 1))
        if mask.any() and lacking.any():
            notes.append(
                f"{int(lacking.sum())} rows in which a model lacks its {name}% interval are left "
                "out of the measures of intervals, for every model."
            )
        crossed = (ends[0] > ends[1]).sum(axis=1)
        notes += [
            f"{model}: the lower end of the {name}% interval lies above the upper in {n} rows."
            for model, n in zip(models, crossed, strict=True)
            if n
        ]
    return notes
