"""Backtest: forecasts from rolling origins, each from the rows before it alone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from tqdm import tqdm

from tsrnn.contract import (
    Forecaster,
    check_levels,
    choice,
    classes_with,
    fit_together,
    forecast_suffixes,
    frequency_defaults,
    last_step,
    most_fits_together,
    positive_integer,
    verbosity,
)
from tsrnn.data import quote, read_series, split_by_series, warn_user, write_stamps
from tsrnn.evaluation._forecasts import list_names
from tsrnn.evaluation._models import (
    known_ahead,
    named_models,
    panel_shown,
    read_forecasts,
    reading_arguments,
)
from tsrnn.evaluation._record import Outcome, Record
from tsrnn.evaluation._windows import Plan, choose_windows, make_plan, series_names, too_short

_NAMED = 3  # failures in a warning
_NUMBERS_TOGETHER = 2**18  # in the data of joint fits: an optimiser takes 100 MB for them
_HOPELESS = 16  # series that fail alone before the model is taken to be at fault
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
        As for `fit` of the models, which must agree on `target`, `id_col`, `time_col` and `freq`;
        those of tsrnn that have no `freq` are given that of the whole data.
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

    Refits at many origins are made together, with the numbers of fits one by one to rounding: of
    ARMA, GARCH, VARMA, DCC and CCC in one search, of networks side by side, where they have one
    shape. For that give `input_size`: the one chosen from the data differs by origin. The seconds
    are counted to the first window of those fitted together.

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
    plan, aside, remark = _plan_windows(named, df, h, n_windows, step_size, refit, level, kind)
    record = Record(path, plan, named)
    missing = [
        (name, w) for name in named for w in range(plan.n_windows) if (name, w) not in record
    ]
    quiet = not verbosity(verbose)
    inactive: dict[str, tuple[int, int]] = {}
    with record, tqdm(total=len(missing), desc="backtest", disable=quiet, leave=False) as progress:
        for name, model in named.items():
            windows = [w for n, w in missing if n == name]
            runner = _Runner(model, plan, windows)
            for window in windows:
                record.add(name, window, runner.forecast_window(window))
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
        "seconds": {name: sum(o.seconds for o in windows) for name, windows in outcomes.items()},
        "remark": remark,
        "failures": failures,
        "inactive_networks": inactive,
        "set_aside": _set_aside(plan, aside, failures),
    }
    return frame


def _plan_windows(
    models: Mapping[str, Any],
    df: Any,
    h: int,
    n_windows: int | None,
    step_size: int | None,
    refit: bool | int,
    level: Any,
    kind: str,
) -> tuple[Plan, dict[Any, str], str]:
    """Plan of the windows, reasons of series set aside, and a remark on the choice."""
    h = positive_integer("h", h)
    n_windows = None if n_windows is None else positive_integer("n_windows", n_windows)
    step_size = None if step_size is None else positive_integer("step_size", step_size)
    every = None if isinstance(refit, bool | np.bool_) else positive_integer(_REFIT, refit)
    levels = check_levels(level)
    if choice("kind", kind, ("mean", "variance")) == "variance":
        if levels:
            raise ValueError("forecasts of variances have no intervals; leave level out")
        for name, model in models.items():
            if not hasattr(last_step(model), "predict_variance"):
                raise TypeError(
                    "kind='variance' needs models with predict_variance, of tsrnn "
                    f"{', '.join(classes_with('predict_variance'))}; {name!r} is {model!r}"
                )
    panel, aside = read_series(df, missing="auto", **reading_arguments(models))
    remark = ""
    if n_windows is None:
        n_windows, step_size, remark = choose_windows(panel.lengths, h, step_size)
    step_size = h if step_size is None else step_size
    short = too_short(panel, h, n_windows, step_size)
    if 0 < len(short) < panel.n_series:  # of all series too short, make_plan raises
        names = panel.ids.tolist()
        aside |= {names[i]: why for i, why in short.items()}
        panel = panel.select(np.isin(np.arange(panel.n_series), list(short), invert=True))
    if every is None:
        every = 1 if refit else n_windows
    series_names(panel)  # refused before a model is fitted, if they are not apart
    return make_plan(panel, h, n_windows, step_size, every, levels, kind), aside, remark


class _Runner:
    """Model that is carried from window to window, cloned for every fit.

    Fits at several origins are joint where the model allows it. Series on which a fit, an update
    or a forecast fails are left out until the next fit; the others go on.
    """

    def __init__(self, model: Any, plan: Plan, windows: Sequence[int]) -> None:
        self._model = clone(model)
        forecaster = last_step(self._model)
        if isinstance(forecaster, Forecaster) and forecaster.freq is None:
            # The first rows alone may not reveal the frequency or the calendar of trading days.
            forecaster.set_params(freq=plan.panel.layout.offset)
        self._plan = plan._replace(panel=panel_shown(model, plan.panel))
        self._anchors = sorted({w - w % plan.refit_every for w in windows})  # windows of fits
        self._alone = False  # True once joint fits have failed
        self._fits: dict[int, Any] = {}  # joint fits of later windows
        self._fitted: Any = None
        self._anchor = -1  # the window it was fitted in
        self._series = self._known = np.zeros(0, np.int64)  # it was fitted to, and rows it knows
        self._faults: dict[int, str] = {}  # reason by number of a series without a forecast
        self._broken: tuple[int, str] | None = None  # window of a failed fit, and its error
        self.n_fits = self.n_inactive = 0  # inactive: the network contributes nothing

    def forecast_window(self, window: int) -> Outcome:
        """Forecast in a window; windows come in order, with gaps."""
        start = time.perf_counter()
        try:
            forecasts, error = self._forecast(window), None
        except Exception as raised:
            forecasts, error = {}, f"{type(raised).__name__}: {raised}"
        lost = [] if error else self._lost_series(forecasts[""])
        return Outcome(forecasts, error, time.perf_counter() - start, lost)

    def _forecast(self, window: int) -> dict[str, np.ndarray]:
        plan = self._plan
        anchor = window - window % plan.refit_every
        if self._anchor != anchor:
            self._fit(anchor)
        if callable(getattr(self._fitted, "update", None)):
            self._update(window)
            parts = [(self._series, self._predict(self._series, self._known, {}))]
        else:
            known = plan.known[window]
            # Without update() windows are independent: try series that failed in another one.
            self._faults = {i: why for i, why in self._faults.items() if i not in self._series}

            def predict(part: list[int]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
                series = np.array(part)
                return series, self._predict(series, known, {"X": plan.past(window, series)})

            parts = self._attempt(predict, self._sound_series())
        shape = plan.actual(window).shape
        whole = {suffix: np.full(shape, np.nan) for suffix in forecast_suffixes(plan.levels)}
        sound = self._sound_series()
        for series, forecasts in parts:
            kept = np.isin(series, sound)
            for suffix, values in forecasts.items():
                whole[suffix][series[kept]] = values[kept]
        return whole

    def _fit(self, anchor: int) -> None:
        if self._broken is not None and self._broken[0] == anchor:
            raise RuntimeError(f"not fitted, as in an earlier window: {self._broken[1]}")
        self._fitted, self._anchor, self._faults = None, -1, {}
        plan = self._plan

        def fit(part: list[int]) -> Any:
            return clone(self._model).fit(plan.past(anchor, np.array(part)))

        try:
            if not self._alone and anchor not in self._fits:
                self._fit_from(anchor)
            self._fitted = self._fits.pop(anchor, None)
            if self._fitted is None:
                fits = self._attempt(fit, list(range(plan.panel.n_series)))
                # Parameters common to all series come from all that can be read.
                self._fitted = fits[0] if len(fits) == 1 else fit(self._sound_series())
        except Exception as error:
            self._broken = anchor, f"{type(error).__name__}: {error}"
            raise
        self._anchor, self._known = anchor, plan.known[anchor].copy()
        self._series = np.array(self._sound_series())
        self.n_fits += 1
        self.n_inactive += not getattr(last_step(self._fitted), "network_active_", True)

    def _fit_from(self, anchor: int) -> None:
        """Fit all series jointly at this window and at as many later ones as memory allows.

        A window whose fit fails is stored as None.
        """
        plan = self._plan
        columns = plan.panel.values.shape[1] + plan.panel.exog.shape[1]
        room = _NUMBERS_TOGETHER // int(plan.known[anchor].sum() * columns)
        begin, most = self._anchors.index(anchor), most_fits_together(self._model)
        anchors = self._anchors[begin : begin + min(room, most)]
        if len(anchors) < 2:
            return

        def fit(part: list[int]) -> list[Any]:
            return fit_together(self._model, [plan.past(window) for window in part])

        # The last window first: it has most rows, so that if it fails, all will.
        try:
            parts, faults = split_by_series(anchors[::-1], fit, hopeless=1)
        except Exception:  # fit each window alone then, splitting its series
            self._alone = True
        else:
            sound = [window for window in anchors[::-1] if window not in faults]
            fits = zip(sound, chain.from_iterable(parts), strict=True)
            self._fits = dict.fromkeys(anchors) | dict(fits)

    def _update(self, window: int) -> None:
        """Take in the rows since the last window."""
        known = self._plan.known[window]

        def update(part: list[int]) -> None:
            series = np.array(part)
            self._fitted.update(self._plan.rows(self._known, known, series))
            self._known[series] = known[series]

        behind = [i for i in self._sound_series() if self._known[i] < known[i]]
        if behind:
            self._attempt(update, behind)

    def _predict(
        self, series: np.ndarray, known: np.ndarray, past: dict[str, Any]
    ) -> dict[str, np.ndarray]:
        """Forecasts (s, h, C), by suffix, of given series after their known rows."""
        plan, panel = self._plan, self._plan.panel
        arguments: dict[str, Any] = {"h": plan.h} | past
        if plan.kind == "variance":
            forecasts = self._fitted.predict_variance(**arguments)
        else:
            if plan.levels:
                arguments["level"] = plan.levels
            if columns := known_ahead(self._model):
                arguments["X_future"] = plan.rows(known, known + plan.h, series, columns)
            forecasts = self._fitted.predict(**arguments)
        times = plan.times(known)[series]
        wanted = forecast_suffixes(plan.levels)
        return read_forecasts(forecasts, panel.layout, panel.ids[series], times, wanted)

    def _attempt(self, attempt: Callable[[list[int]], Any], series: list[int]) -> list[Any]:
        """Run `attempt` on the series, splitting them; record those that fail, raise if all do."""
        results, faults = split_by_series(series, attempt, _HOPELESS)
        self._faults |= {i: f"{type(error).__name__}: {error}" for i, error in faults.items()}
        return results

    def _sound_series(self) -> list[int]:
        return [i for i in range(self._plan.panel.n_series) if i not in self._faults]

    def _lost_series(self, point: np.ndarray) -> list[tuple[int, str]]:
        """Series without a forecast, each with its error or its text in `messages_`."""
        gone = np.isnan(point).all(1)  # (S, C)
        if not gone.any():
            return []
        n_targets = gone.shape[1]
        reasons = [[""] * n_targets for _ in gone]
        forecaster = last_step(self._fitted)
        messages = getattr(forecaster, "messages_", None)
        if messages is not None and isinstance(forecaster, Forecaster):
            texts = [" ".join(parts) for parts in messages]
            n = len(texts) // len(self._series)  # one a series, or one a target of it
            for place, i in enumerate(self._series.tolist()):
                reasons[i] = texts[n * place : n * (place + 1)] * (n_targets // n)
        for i, text in self._faults.items():
            reasons[i] = [text] * n_targets
        flat = [text for texts in reasons for text in texts]
        return [(i, flat[i] or "no forecast") for i in np.flatnonzero(gone).tolist()]


def _tidy(plan: Plan, outcomes: Mapping[str, list[Outcome]]) -> pd.DataFrame:
    """Frame with a row per series, window and step, in this order."""
    layout, shape = plan.panel.layout, plan.actual(0).shape
    windows = range(plan.n_windows)

    def column(arrays: list[np.ndarray]) -> np.ndarray:
        """Column of arrays (S, h, C), one a window."""
        return np.stack(arrays).transpose(1, 3, 0, 2).ravel()

    def spread(array: np.ndarray) -> np.ndarray:
        return np.broadcast_to(array[:, :, None], shape)

    times = column([spread(plan.times(plan.known[w])) for w in windows])
    cutoffs = column([spread(plan.cutoffs(w)[:, None]) for w in windows])
    columns: dict[str, Any] = {
        "unique_id": series_names(plan.panel).repeat(plan.n_windows * plan.h),
        "ds": write_stamps(times, layout),
        "cutoff": write_stamps(cutoffs, layout),
        "y": column([plan.actual(w) for w in windows]),
    }
    nothing = np.full(shape, np.nan)
    for name, of_model in outcomes.items():
        for suffix in forecast_suffixes(plan.levels):
            columns[name + suffix] = column([o.forecasts.get(suffix, nothing) for o in of_model])
    return pd.DataFrame(columns)


def _scale(plan: Plan) -> dict[str, Any]:
    """Mean absolute and squared seasonal naive differences before the first cutoff, by series."""
    past, season = plan.first_past(), frequency_defaults(plan.panel.layout).season
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
    return {"season_length": season, "scale": {"unique_id": series_names(past).tolist(), **means}}


def _failures(plan: Plan, outcomes: Mapping[str, list[Outcome]]) -> list[dict[str, Any]]:
    """List failures and warn of them; raise if every window failed."""

    def place(name: str, window: int) -> dict[str, Any]:
        last = plan.cutoffs(window).max(keepdims=True)  # series may end at different times
        return {"model": name, "cutoff": str(write_stamps(last, plan.panel.layout).astype(str)[0])}

    windows = [(name, w, o) for name, of_model in outcomes.items() for w, o in enumerate(of_model)]
    failures: list[dict[str, Any]] = [
        place(name, w) | {"error": o.error} for name, w, o in windows if o.error is not None
    ]
    n, first = len(failures), failures[:_NAMED]
    examples = "; ".join(f"{f['model']!r} at {f['cutoff']}: {f['error']}" for f in first)
    if n == len(windows):
        raise RuntimeError(f"all models failed in all windows; {examples}")
    if n:
        warn_user(
            f"{n} of {len(windows)} windows of the models failed and have no forecasts "
            f"(NaN), {'first ' * (n > _NAMED)}{examples}"
        )
    names = series_names(plan.panel).tolist()
    return failures + [
        place(name, w) | {"unique_id": names[i], "error": reason}
        for name, w, o in windows
        for i, reason in o.lost
    ]


def _set_aside(
    plan: Plan, aside: Mapping[Any, str], failures: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """List series without forecasts and warn of them; model None if no model has any."""
    rows = [
        {"unique_id": label, "model": None, "n_windows": plan.n_windows, "error": reason}
        for label, reason in aside.items()
    ]
    by_pair: dict[tuple[Any, str], dict[str, Any]] = {}
    for failure in failures:
        if "unique_id" in failure:
            key = failure["unique_id"], failure["model"]
            row = {"unique_id": key[0], "model": key[1], "n_windows": 0, "error": failure["error"]}
            by_pair.setdefault(key, row)["n_windows"] += 1
    rows += by_pair.values()
    if rows:
        names = list(dict.fromkeys(row["unique_id"] for row in rows))
        first = rows[0]
        whose = "" if first["model"] is None else f", by {first['model']}"
        warn_user(
            f"{len(names)} series set aside: {list_names(map(quote, names))}. The reason for the "
            f"first{whose}: {first['error'].removesuffix('.')}. The others go on; see "
            "attrs['backtest']['set_aside'] of the frame"
        )
    return rows
