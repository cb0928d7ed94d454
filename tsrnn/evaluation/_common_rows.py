"""The rows on which all models can be compared, and what was left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tsrnn.evaluation._forecasts import Forecasts, shown

REPEATED = "RuntimeError: not fitted, as in an earlier window: "  # before the error of that window


def common_rows(forecasts: Forecasts, facts: dict[str, Any]) -> tuple[Forecasts, list[str]]:
    """Keep the rows with an actual value and a forecast of every model, and say what was not kept.

    Parameters
    ----------
    forecasts : Forecasts
    facts : dict
        What the backtest said of itself; ``failures`` gives reasons.

    Raises
    ------
    ValueError
        If no row remains.
    """
    forecasts, notes = _without_empty_models(forecasts, facts)
    notes += _missing_actuals(forecasts)
    failed = np.isnan(forecasts.point).all(axis=2)  # (M, W)
    notes += _failed_windows(forecasts, failed, facts)
    lacking = np.isnan(forecasts.point) & ~failed[:, :, None] & forecasts.known
    notes += _missing_forecasts(forecasts, lacking)
    known = forecasts.known & ~np.isnan(forecasts.point).any(axis=0)
    if not known.any():
        raise ValueError(
            "there must be rows with an actual value and a forecast of every model; there is none "
            f"for {', '.join(forecasts.models)}. Choose fewer with models="
        )
    kept = replace(forecasts, y=np.where(known, forecasts.y, np.nan))
    gone = np.setdiff1d(kept.series, kept.series[known.any(axis=1)])
    if len(gone):
        notes.append(f"{_count(len(gone), 'series')} without a row left: {_named(kept, gone)}.")
    return kept.choose_windows(known.any(axis=1)), notes


def _without_empty_models(
    forecasts: Forecasts, facts: dict[str, Any]
) -> tuple[Forecasts, list[str]]:
    empty = np.isnan(forecasts.point).all(axis=(1, 2))
    if empty.all():
        raise ValueError(
            f"at least one model must have forecasts; all of {', '.join(forecasts.models)} are "
            "missing"
        )
    names = np.array(forecasts.models)
    notes = [
        f"{name} has no forecast at all and is left out{_reason(facts, name, forecasts.ids)}."
        for name in names[empty]
    ]
    return forecasts.choose_models(list(names[~empty])), notes


def _missing_actuals(forecasts: Forecasts) -> list[str]:
    missing = ~forecasts.known
    if not missing.any():
        return []
    where = np.unique(forecasts.series[missing.any(axis=1)])
    return [
        f"{_count(int(missing.sum()), 'row')} without an actual value left out for every model, of "
        f"{_named(forecasts, where)}."
    ]


def _failed_windows(forecasts: Forecasts, failed: np.ndarray, facts: dict[str, Any]) -> list[str]:
    notes = []
    for name, own in zip(forecasts.models, failed, strict=True):
        if own.any():
            ids = forecasts.ids[np.unique(forecasts.series[own])]
            where = [
                f"{forecasts.ids[s]} at {cutoff}"
                for s, cutoff in zip(forecasts.series[own], forecasts.cutoffs[own], strict=True)
            ]
            notes.append(
                f"{name} has no forecast in {_count(int(own.sum()), 'window')} ({shown(where)})"
                f"{_reason(facts, name, ids)}; left out for every model."
            )
    return notes


def _missing_forecasts(forecasts: Forecasts, lacking: np.ndarray) -> list[str]:
    return [
        f"{name} lacks {_count(int(own.sum()), 'forecast')} in windows it has otherwise, of "
        f"{_named(forecasts, np.unique(forecasts.series[own.any(axis=1)]))}; these rows are left "
        "out for every model."
        for name, own in zip(forecasts.models, lacking, strict=True)
        if own.any()
    ]


def _reason(facts: dict[str, Any], model: str, ids: np.ndarray) -> str:
    """The commonest error the backtest met with a model, in some of the series."""
    there = set(map(str, ids))
    errors = [
        str(failure.get("error")).removeprefix(REPEATED).rstrip(".: \n")
        for failure in facts.get("failures") or []
        if failure.get("model") == model
        and ("unique_id" not in failure or str(failure["unique_id"]) in there)
    ]
    return f": {max(errors, key=errors.count)}" if errors else ""


def _named(forecasts: Forecasts, series: np.ndarray) -> str:
    return shown(forecasts.ids[series])


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 or noun.endswith("s") else f"{n} {noun}s"
