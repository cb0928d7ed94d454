"""Objective of an Optuna study: the error of a backtest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.contract import last_step, positive_integer
from tsrnn.data import panel_frame, quote, read_panel
from tsrnn.evaluation import backtest, compare
from tsrnn.tuning._space import suggest, whole_space

MEASURES = ("MAE", "RMSE", "MASE", "RMSSE", "sMAPE", "pinball", "CRPS")
INTERVALS = ("Winkler-", "MSIS-")  # prefixes of a level
NAME = "model"  # column of the forecasts
READING = ("target", "id_col", "time_col", "freq")


def objective(
    forecaster: Any,
    df: Any,
    h: int,
    n_windows: int = 3,
    metric: str | Callable[[pd.DataFrame], float] = "MAE",
    *,
    step_size: int | None = None,
    level: Any = None,
    space: Mapping[str, Any] | None = None,
) -> Callable[[Any], float]:
    """Build an objective: a function from a trial to the backtest error of its forecaster.

    The forecaster is fitted in every window, from the oldest, like `tsrnn.backtest` with
    ``refit=True``. After each window except the last, the error so far is reported, and the trial
    may be pruned.

    Parameters
    ----------
    forecaster : forecaster or Pipeline that ends with one
    df : frame
        Training rows. Keep test rows apart: the error of the best of many trials is too low.
    h, n_windows, step_size, level
        As in `tsrnn.backtest`.
    metric : str or callable, default "MAE"
        A measure of `tsrnn.compare`: "MAE", "RMSE", "MASE", "RMSSE", "sMAPE", and with `level`
        "pinball", "CRPS", "Winkler-80" or "MSIS-80"; or a function of the frame of the
        backtest, with forecasts in the column ``model``. Lower is better.
    space : mapping of str, optional
        As in `suggest`.

    Returns
    -------
    callable
        Argument of `optuna.Study.optimize`. It raises RuntimeError if the forecaster cannot be
        fitted to all series; ``optimize(..., catch=RuntimeError)`` continues with the next trial.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.

    Examples
    --------
    >>> import optuna
    >>> from tsrnn import ARMA
    >>> from tsrnn.datasets import load_elnino
    >>> from tsrnn.tuning import objective
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    >>> study.optimize(objective(ARMA(), load_elnino()[-200:], h=6), n_trials=4)
    >>> sorted(study.best_params)
    ['order.d', 'order.p', 'order.q']
    """
    whole_space(forecaster, space)
    known = isinstance(metric, str) and (metric in MEASURES or metric.startswith(INTERVALS))
    if not known and not callable(metric):
        raise ValueError(
            f"metric must be one of {MEASURES}, 'Winkler-80' for level=80, or a function of the "
            f"frame of a backtest; got {metric!r}"
        )
    n_windows = positive_integer("n_windows", n_windows)
    step = positive_integer("step_size", h if step_size is None else step_size)
    final = last_step(forecaster)
    arguments = {name: getattr(final, name) for name in READING if hasattr(final, name)}
    panel = read_panel(df, missing="auto", **arguments)
    frames = []  # frames that end with the last row of each window, from the oldest
    for later in range(n_windows - 1, -1, -1):
        ends = panel.lengths - later * step
        if ends.min() < 1:
            raise ValueError(
                f"{n_windows} windows, {step} rows apart, need more than "
                f"{(n_windows - 1) * step} rows of every series; the shortest has "
                f"{panel.lengths.min()}. Take fewer windows, or a smaller step_size"
            )
        frames.append(panel_frame(panel.between(np.zeros_like(ends), ends)))

    def error(trial: Any) -> float:
        model, parts, value = suggest(trial, forecaster, space), [], np.nan
        for window, frame in enumerate(frames):
            part = backtest({NAME: model}, frame, h, n_windows=1, level=level)
            _check_complete(part)
            parts.append(part)
            value = _measured(parts, metric)
            if window < n_windows - 1:
                trial.report(value, window)
                if trial.should_prune():
                    from optuna import TrialPruned

                    raise TrialPruned(f"{metric} is {value:g} after {window + 1} windows")
        return value

    return error


def _check_complete(part: pd.DataFrame) -> None:
    lost = part.loc[part[NAME].isna() & part["y"].notna(), "unique_id"].unique()
    if len(lost):
        failures = part.attrs["backtest"]["failures"]
        reason = failures[0]["error"] if failures else "no forecast"
        raise RuntimeError(f"{len(lost)} series have no forecast, first {quote(lost[0])}: {reason}")


def _measured(parts: list[pd.DataFrame], metric: Any) -> float:
    """Measure over the windows so far, with the scales of the first window."""
    frame = pd.concat(parts, ignore_index=True)
    frame.attrs.update(parts[0].attrs)
    if callable(metric):
        return float(metric(frame))
    accuracy = compare(frame, n_boot=1).accuracy
    if metric not in accuracy:
        raise ValueError(
            f"metric={metric!r} is not among the measures of this backtest, "
            f"{accuracy.columns.tolist()}; those of intervals need level="
        )
    return float(accuracy.loc[NAME, metric])
