"""One model through the windows of a backtest."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from tsrnn.contract import last_step
from tsrnn.evaluation._models import known_ahead, seen_by
from tsrnn.evaluation._plan import Plan, units
from tsrnn.evaluation._reading import read_forecasts, suffixes


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
        self._anchor = self._seen = -1  # windows it was fitted in, and whose rows it knows
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
        """Series that the model has left out, with the reason that it keeps in `messages_`."""
        gone = np.isnan(point).all(1)  # (S, C)
        if not gone.any():
            return []
        messages = getattr(last_step(self._fitted), "messages_", None)
        told = [""] * gone.size if messages is None else [" ".join(own) for own in messages]
        told = np.repeat(told, gone.size // len(told)).tolist()  # one for all targets, perhaps
        labels = units(self._plan.panel)
        return [(labels[int(i)], told[i] or "no forecast") for i in np.flatnonzero(gone)]

    def _forecast(self, window: int) -> dict[str, np.ndarray]:
        plan = self._plan
        anchor = window - window % plan.refit_every
        if self._anchor != anchor:
            self._fit(anchor)
        past = self._carry_to(window)
        asked: dict[str, Any] = {"h": plan.h} | past
        if plan.kind == "variance":
            made = self._fitted.predict_variance(**asked)
            return self._read(made, window)
        if plan.levels:
            asked["level"] = plan.levels
        if columns := known_ahead(self._model):
            asked["X_future"] = plan.future(window, columns)
        return self._read(self._fitted.predict(**asked), window)

    def _fit(self, anchor: int) -> None:
        if self._broken is not None and self._broken[0] == anchor:
            raise RuntimeError(f"not fitted, as in an earlier window: {self._broken[1]}")
        self._fitted, self._anchor = None, -1
        try:
            self._fitted = clone(self._model).fit(self._plan.past(anchor))
        except Exception as error:
            self._broken = anchor, f"{type(error).__name__}: {error}"
            raise
        self._anchor = self._seen = anchor
        self.n_fits += 1
        self.n_inactive += not getattr(last_step(self._fitted), "network_active_", True)

    def _carry_to(self, window: int) -> dict[str, Any]:
        """Take in the rows since the last window; the data to predict after where it cannot."""
        if not callable(getattr(self._fitted, "update", None)):
            return {"X": self._plan.past(window)}
        if window > self._seen:
            self._fitted.update(self._plan.new_rows(self._seen, window))
            self._seen = window
        return {}

    def _read(self, made: Any, window: int) -> dict[str, np.ndarray]:
        plan = self._plan
        times, panel = plan.times(window), plan.panel
        return read_forecasts(made, panel.layout, panel.ids, times, suffixes(plan.levels))
