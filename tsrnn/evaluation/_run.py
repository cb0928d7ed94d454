"""One model through the windows of a backtest."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from tsrnn.contract import last_step
from tsrnn.data import tell_apart
from tsrnn.evaluation._models import known_ahead, seen_by
from tsrnn.evaluation._plan import Plan, units
from tsrnn.evaluation._reading import read_forecasts, suffixes

_HOPELESS = 16  # series that fail alone, after which the fault is not theirs


class Outcome(NamedTuple):
    """What a model gave in one window.

    Attributes
    ----------
    forecasts : dict of ndarray of shape (S, h, C)
        By suffix of their columns; empty if the model failed.
    error : str or None
    seconds : float
    lost : list of (str, str)
        Series without a forecast, and why.
    """

    forecasts: dict[str, np.ndarray]
    error: str | None
    seconds: float
    lost: list[tuple[Any, str]]


class Runner:
    """A model that is carried from window to window.

    Series that it cannot be fitted to, or cannot take in or forecast, are told apart from the
    others, which go on without them until the next fit.

    Parameters
    ----------
    model : forecaster
        Cloned for every fit, itself left as it is.
    plan : Plan
    """

    def __init__(self, model: Any, plan: Plan) -> None:
        self._model = model
        self._plan = plan._replace(panel=seen_by(model, plan.panel))
        self._fitted: Any = None
        self._anchor = -1  # the window it was fitted in
        self._series = self._known = np.zeros(0, np.int64)  # it was fitted to, and rows it knows
        self._faults: dict[int, str] = {}  # by number of the series, why it has no forecast
        self._broken: tuple[int, str] | None = None  # a window in which it cannot be fitted
        self.n_fits = self.n_inactive = 0  # of the latter, the network contributes nothing

    def window(self, window: int) -> Outcome:
        """Forecast in a window; windows come in order, some may be left out."""
        start = time.perf_counter()
        try:
            forecasts, error = self._forecast(window), None
        except Exception as raised:
            forecasts, error = {}, f"{type(raised).__name__}: {raised}"
        lost = [] if error else self._lost(forecasts[""])
        return Outcome(forecasts, error, time.perf_counter() - start, lost)

    def _lost(self, point: np.ndarray) -> list[tuple[Any, str]]:
        """Series without a forecast; with what was raised, or the model keeps in `messages_`."""
        gone = np.isnan(point).all(1)  # (S, C)
        if not gone.any():
            return []
        told = [[""] * gone.shape[1] for _ in gone]
        messages = getattr(last_step(self._fitted), "messages_", None)
        if messages is not None:
            texts = [" ".join(own) for own in messages]
            per_series = len(texts) // len(self._series)
            for i, own in zip(self._series.tolist(), range(0, len(texts), per_series), strict=True):
                told[i] = texts[own : own + per_series] * (gone.shape[1] // per_series)
        for i, text in self._faults.items():
            told[i] = [text] * gone.shape[1]
        labels = units(self._plan.panel)
        flat = [text for own in told for text in own]
        return [(labels[int(i)], flat[i] or "no forecast") for i in np.flatnonzero(gone)]

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
            # Every window is on its own: what could not be forecast in another one is tried.
            self._faults = {i: why for i, why in self._faults.items() if i not in self._series}

            def after(part: list[int]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
                series = np.array(part)
                return series, self._predict(series, known, {"X": plan.past(window, series)})

            parts = self._apart(self._good(), after)
        shape = plan.actual(window).shape
        whole = {suffix: np.full(shape, np.nan) for suffix in suffixes(plan.levels)}
        good = self._good()
        for series, forecasts in parts:
            for suffix, values in forecasts.items():
                kept = np.isin(series, good)
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
            fits = self._apart(list(range(plan.panel.n_series)), fit)
            # What is estimated from all series is estimated from all that can be taken.
            self._fitted = fits[0] if len(fits) == 1 else fit(self._good())
        except Exception as error:
            self._broken = anchor, f"{type(error).__name__}: {error}"
            raise
        self._anchor, self._known = anchor, plan.known[anchor].copy()
        self._series = np.array(self._good())
        self.n_fits += 1
        self.n_inactive += not getattr(last_step(self._fitted), "network_active_", True)

    def _update(self, window: int) -> None:
        """Take in the rows since the last window."""
        known = self._plan.known[window]

        def update(part: list[int]) -> None:
            series = np.array(part)
            self._fitted.update(self._plan.rows(self._known, known, series))
            self._known[series] = known[series]

        behind = [i for i in self._good() if self._known[i] < known[i]]
        if behind:
            self._apart(behind, update)

    def _apart(self, series: list[int], attempt: Any) -> list[Any]:
        """Results of some series, those at fault noted; an error if there are no others."""
        results, faults = tell_apart(series, attempt, _HOPELESS)
        self._faults |= {i: f"{type(error).__name__}: {error}" for i, error in faults.items()}
        return results

    def _good(self) -> list[int]:
        return [i for i in range(self._plan.panel.n_series) if i not in self._faults]

    def _predict(
        self, series: np.ndarray, known: np.ndarray, past: dict[str, Any]
    ) -> dict[str, np.ndarray]:
        """Forecasts of some series after the rows that are known, by suffix, (s, h, C)."""
        plan = self._plan
        asked: dict[str, Any] = {"h": plan.h} | past
        if plan.kind == "variance":
            made = self._fitted.predict_variance(**asked)
        else:
            if plan.levels:
                asked["level"] = plan.levels
            if columns := known_ahead(self._model):
                asked["X_future"] = plan.rows(known, known + plan.h, series, columns)
            made = self._fitted.predict(**asked)
        panel, times = plan.panel, plan.times(known)[series]
        return read_forecasts(made, panel.layout, panel.ids[series], times, suffixes(plan.levels))
