"""Forecasts from rolling origins: what models would have said at times in the past."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from tsrnn.contract import (
    check_levels,
    choice,
    classes_with,
    habits,
    last_step,
    positive_integer,
    verbosity,
    warn_user,
)
from tsrnn.data import read_series, write_stamps
from tsrnn.evaluation._forecasts import shown
from tsrnn.evaluation._models import named_models, reading
from tsrnn.evaluation._plan import Plan, default_windows, make_plan, too_short, units
from tsrnn.evaluation._reading import suffixes
from tsrnn.evaluation._record import Record
from tsrnn.evaluation._run import Outcome, Runner

_NAMED = 3  # failures in a warning
_REFIT = "refit, if not True or False,"


def backtest(
    models: Any,
    df: Any,
    h: int,
    n_windows: int | None = None,
    step_size: int | None = None,
    *,
    refit: bool | int = True,
    level: Any = None,
    kind: str = "mean",
    path: str | os.PathLike[str] | None = None,
    verbose: int = 0,
) -> pd.DataFrame:
    r"""Forecast from several origins in the past, each time from the rows before it alone.

    The last of `n_windows` windows ends with the last row of each series, the one before
    `step_size` rows earlier. In a window a model sees a frame that ends at the cutoff, and of the
    h rows after it nothing but the columns that it names in `known_ahead`: whatever it estimates,
    scales, selects or calibrates comes from the past.

    Parameters
    ----------
    models : forecaster, sequence of forecasters or mapping of str to forecaster
        Of tsrnn, or anything with `fit(df)` and ``predict(X, h=, level=)`` that scikit-learn can
        clone, such as a `Pipeline` that ends with a forecaster. They are cloned, so that those
        given stay as they are. Names are columns of the result.
    df : frame or path
        As for `fit` of the models, which must agree on `target`, `id_col`, `time_col` and `freq`.
        Models that take no exogenous columns are not shown them.
    h : int
        Steps to forecast.
    n_windows : int, optional
        By default 20, which the tests of `compare` need, or as many as fit into the second half of
        the shortest series; `Comparison.words` says which.
    step_size : int, optional
        Rows between the cutoffs of two windows. By default h, so that windows do not overlap; or
        less, where `n_windows` is not given and more windows fit then.
    refit : bool or int, default True
        Whether models are fitted in every window, in the first alone, or in every k-th. Between
        fits they take in the new rows by `update`; those that have no such method forecast after
        them by ``predict(X)``.
    level : float or list of float, optional
        Coverage of prediction intervals in percent.
    kind : {"mean", "variance"}
        Of variances, models forecast by `predict_variance`, and y is the squared deviation from
        the mean of the rows before the first cutoff: a noisy but unbiased proxy if the mean is
        constant.
    path : path, optional
        Parquet file in which finished windows are kept. A call that was interrupted, or that has
        further models, goes on from it; windows in which a model failed are tried again. It is
        written as often as takes a tenth of the time at most, and at the end. Needs polars.
    verbose : int, default 0
        1 shows a progress bar.

    Returns
    -------
    pandas.DataFrame
        Columns ``unique_id, ds, cutoff, y``, and for each model ``name, name-lo-80, name-hi-80``
        and so on: a row a series, cutoff and step. The id of a column of a wide frame is its
        name; with several targets of several series it is "id/target". y is NaN where the actual
        value is missing, forecasts are where a model failed. `attrs["backtest"]` holds what
        `compare` needs besides: the horizon, the season, the errors of the seasonal naive
        forecast before the first cutoff, seconds of each model, failures, in how many fits of how
        many the network of a model contributed nothing, and as "set_aside" the series that are
        left out, or for which a model has no forecast in some windows, with the reason.

    Raises
    ------
    TypeError, ValueError
        If arguments or data cannot be used, or no series has enough rows for the windows.
    RuntimeError
        If all models failed in all windows.

    Warns
    -----
    UserWarning
        If a model failed in a window: which, where and why. If a series of a long frame is set
        aside: it cannot be read, is too short for the windows, or a model refuses it. The others go
        on without it.

    Notes
    -----
    With ``refit=False`` a recurrent network takes in each row once, so that many windows cost
    little more than one.

    References
    ----------
    Tashman, L. J. (2000). Out-of-sample tests of forecasting accuracy: an analysis and review.
    International Journal of Forecasting.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn import ARMA, backtest
    >>> noise = np.random.default_rng(0).normal(size=121)
    >>> y = pd.Series(noise[1:] + 0.8 * noise[:-1])
    >>> models = {"MA": ARMA(order=(0, 1)), "AR": ARMA(order=(1, 0))}
    >>> frame = backtest(models, y, h=2, n_windows=10, step_size=1, refit=False)
    >>> list(frame.columns), len(frame)
    (['unique_id', 'ds', 'cutoff', 'y', 'MA', 'AR'], 20)
    """
    named = named_models(models)
    plan, aside, remark = _planned(named, df, h, n_windows, step_size, refit, level, kind)
    record = Record(path, plan, named)
    missing = [
        (name, w) for name in named for w in range(plan.n_windows) if (name, w) not in record
    ]
    quiet = not verbosity(verbose)
    inactive: dict[str, tuple[int, int]] = {}
    with record, tqdm(total=len(missing), desc="backtest", disable=quiet, leave=False) as progress:
        for name, model in named.items():
            runner = Runner(model, plan)
            for window in (w for n, w in missing if n == name):
                record.add(name, window, runner.window(window))
                progress.update()
            if runner.n_inactive:
                inactive[name] = runner.n_inactive, runner.n_fits
    outcomes = {name: [record[name, w] for w in range(plan.n_windows)] for name in named}
    frame = _tidy(plan, outcomes)
    failures = _failures(plan, outcomes)
    frame.attrs["backtest"] = {
        "h": plan.h,
        "step_size": plan.step_size,
        "kind": plan.kind,
        **_scale(plan),
        "seconds": {name: sum(o.seconds for o in made) for name, made in outcomes.items()},
        "remark": remark,
        "failures": failures,
        "inactive_networks": inactive,
        "set_aside": _set_aside(plan, aside, failures),
    }
    return frame


def _planned(
    models: Mapping[str, Any],
    df: Any,
    h: int,
    n_windows: int | None,
    step_size: int | None,
    refit: bool | int,
    level: Any,
    kind: str,
) -> tuple[Plan, dict[Any, str], str]:
    """The plan, the series that it is not for with the reason, and a remark on its windows."""
    h = positive_integer("h", h)
    n_windows = None if n_windows is None else positive_integer("n_windows", n_windows)
    step_size = None if step_size is None else positive_integer("step_size", step_size)
    every = None if isinstance(refit, bool | np.bool_) else positive_integer(_REFIT, refit)
    levels = check_levels(level)
    if choice("kind", kind, ("mean", "variance")) == "variance":
        _check_variances(models, levels)
    panel, aside = read_series(df, missing="keep", **reading(models))
    remark = ""
    if n_windows is None:
        n_windows, step_size, remark = default_windows(panel.lengths, h, step_size)
    step_size = h if step_size is None else step_size
    short = too_short(panel, h, n_windows, step_size)
    if 0 < len(short) < panel.n_series:
        aside |= {panel.ids[i]: why for i, why in short.items()}
        panel = panel.select(np.isin(np.arange(panel.n_series), list(short), invert=True))
    if every is None:
        every = 1 if refit else n_windows
    return make_plan(panel, h, n_windows, step_size, every, levels, kind), aside, remark


def _check_variances(models: Mapping[str, Any], levels: list[float]) -> None:
    if levels:
        raise ValueError("forecasts of variances have no intervals; leave level out")
    for name, model in models.items():
        if not hasattr(last_step(model), "predict_variance"):
            raise TypeError(
                "kind='variance' needs models with predict_variance, of tsrnn "
                f"{', '.join(classes_with('predict_variance'))}; {name!r} is {model!r}"
            )


def _tidy(plan: Plan, outcomes: Mapping[str, list[Outcome]]) -> pd.DataFrame:
    """One row a unit, window and step, in this order."""
    layout, shape = plan.panel.layout, plan.actual(0).shape
    windows = range(plan.n_windows)

    def column(arrays: list[np.ndarray]) -> np.ndarray:
        """Of arrays (S, h, C), one a window."""
        return np.stack(arrays).transpose(1, 3, 0, 2).ravel()

    def spread(array: np.ndarray) -> np.ndarray:
        return np.broadcast_to(array[:, :, None], shape)

    times = column([spread(plan.times(plan.known[w])) for w in windows])
    cutoffs = column([spread(plan.cutoffs(w)[:, None]) for w in windows])
    columns: dict[str, Any] = {
        "unique_id": units(plan.panel).repeat(plan.n_windows * plan.h),
        "ds": write_stamps(times, layout),
        "cutoff": write_stamps(cutoffs, layout),
        "y": column([plan.actual(w) for w in windows]),
    }
    nothing = np.full(shape, np.nan)
    for name, made in outcomes.items():
        for suffix in suffixes(plan.levels):
            columns[name + suffix] = column([o.forecasts.get(suffix, nothing) for o in made])
    return pd.DataFrame(columns)


def _scale(plan: Plan) -> dict[str, Any]:
    """Mean absolute and squared seasonal naive differences before the first cutoff, by unit."""
    past, season = plan.first_past(), habits(plan.panel.freq).season
    change = np.full_like(past.values, np.nan)
    change[season:] = past.values[season:] - past.values[:-season]
    places = np.arange(len(past.values)) - np.repeat(past.indptr[:-1], past.lengths)
    change[places < season] = np.nan  # from one series to the next
    seen = np.isfinite(change)
    counts = np.add.reduceat(seen, past.indptr[:-1], dtype=float)
    means = {}
    for name, power in (("mae", 1), ("mse", 2)):
        sums = np.add.reduceat(np.where(seen, np.abs(change), 0.0) ** power, past.indptr[:-1])
        means[name] = (sums / np.where(counts > 0, counts, np.nan)).ravel().tolist()
    return {"season_length": season, "scale": {"unique_id": units(past).tolist(), **means}}


def _failures(plan: Plan, outcomes: Mapping[str, list[Outcome]]) -> list[dict[str, Any]]:
    """Failures, of which a warning is given; an error if there is nothing else."""
    windows = [(name, w, made) for name, all_ in outcomes.items() for w, made in enumerate(all_)]
    found: list[dict[str, Any]] = [
        {"model": name, "cutoff": _cutoff(plan, w), "error": made.error}
        for name, w, made in windows
        if made.error is not None
    ]
    shown = "; ".join(f"{f['model']!r} at {f['cutoff']}: {f['error']}" for f in found[:_NAMED])
    if len(found) == len(windows):
        raise RuntimeError(f"all models failed in all windows; {shown}")
    if found:
        warn_user(
            f"{len(found)} of {len(windows)} windows of the models failed and have no forecasts "
            f"(NaN), {'first ' * (len(found) > _NAMED)}{shown}"
        )
    return found + [
        {"model": name, "cutoff": _cutoff(plan, w), "unique_id": label, "error": reason}
        for name, w, made in windows
        for label, reason in made.lost
    ]


def _set_aside(
    plan: Plan, aside: Mapping[Any, str], failures: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Series that have no forecasts, of which a warning is given; model None if of no model."""
    rows = [
        {"unique_id": label, "model": None, "n_windows": plan.n_windows, "error": reason}
        for label, reason in aside.items()
    ]
    told: dict[tuple[Any, str], dict[str, Any]] = {}
    for failure in failures:
        if "unique_id" in failure:
            key = failure["unique_id"], failure["model"]
            row = {"unique_id": key[0], "model": key[1], "n_windows": 0, "error": failure["error"]}
            told.setdefault(key, row)["n_windows"] += 1
    rows += told.values()
    if rows:
        names = list(dict.fromkeys(row["unique_id"] for row in rows))
        first = rows[0]
        whose = "" if first["model"] is None else f", by {first['model']}"
        warn_user(
            f"{len(names)} series set aside: {shown(map(repr, names))}. The reason for the first"
            f"{whose}: {first['error'].removesuffix('.')}. The others go on; see "
            "attrs['backtest']['set_aside'] of the frame"
        )
    return rows


def _cutoff(plan: Plan, window: int) -> str:
    """The last time known in a window, the latest if series end at different times."""
    last = plan.cutoffs(window).max(keepdims=True)
    return str(write_stamps(last, plan.panel.layout).astype(str)[0])
