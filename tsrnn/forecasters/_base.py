"""The contract of all forecasters: frames in, frames out, arguments checked once."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tsrnn.data import Panel, check_continues, future_times, read_future, read_panel, write_frame
from tsrnn.forecasters._intervals import check_levels, level_name
from tsrnn.forecasters._memory import Memory
from tsrnn.forecasters._settings import positive_integer


class Forecaster(BaseEstimator, ABC):
    """Base of all forecasters; not to be used by itself.

    A subclass has the constructor arguments `target`, `id_col`, `time_col`, `freq`,
    `missing` and `known_ahead`, sets `horizon_` when fitted, and answers four questions
    about panels: `_fit_panel`, `_memory_of`, `_advance`, `_forecast`.
    """

    column_name: str  # of the forecasts of a long frame
    horizon_: int
    memory_: Memory

    @abstractmethod
    def _fit_panel(self, panel: Panel) -> Memory:
        """Estimate; returns what is to be remembered."""

    @abstractmethod
    def _memory_of(self, panel: Panel) -> Memory:
        """State after a panel that need not have been fitted to."""

    @abstractmethod
    def _advance(self, memory: Memory, panel: Panel) -> Memory:
        """State after further rows of all series of `memory`, in the same order."""

    @abstractmethod
    def _forecast(
        self, memory: Memory, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Forecasts of shape (S, h, C): "" the point forecast, then "-lo-80", "-hi-80", ..."""

    def fit(self, df: Any, y: None = None) -> Forecaster:
        """Fit to the series of a frame.

        Parameters
        ----------
        df : pandas.Series, pandas.DataFrame or polars.DataFrame
            Wide: time in the index, a column a variable. Long: columns `unique_id`, `ds`,
            `y` (other names by `id_col`, `time_col`, `target`), other columns exogenous.
        y : None
            There for scikit-learn; targets are columns of `df`.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            If the data or an argument cannot be used; the message says what to do.
        """
        if y is not None:
            raise ValueError(
                "the targets are columns of df, named by the argument target; got y as well. "
                "Join it to df and leave y out"
            )
        panel = read_panel(
            df,
            target=self.target,
            id_col=self.id_col,
            time_col=self.time_col,
            freq=self.freq,
            missing=self.missing,
        )
        before = self.__dict__.copy()
        try:
            self._fit_to(panel)
        except BaseException:
            self.__dict__ = before  # a fit that fails leaves the one before it whole
            raise
        return self

    def predict(
        self, X: Any = None, h: int | None = None, level: Any = None, X_future: Any = None
    ) -> Any:
        """Forecast.

        Parameters
        ----------
        X : frame or int, optional
            Data to forecast after, in the shape of the data fitted to; series may be new.
            By default the data seen so far. An integer is taken as `h`.
        h : int, optional
            Number of steps; `horizon_` by default.
        level : float or list of float, optional
            Coverage of prediction intervals in percent, for example ``[80, 95]``.
        X_future : frame, optional
            The columns of `known_ahead` for the next h steps of every series.

        Returns
        -------
        frame
            In the shape of the data. Intervals are columns such as ``y-lo-80``, ``y-hi-80``.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError, ValueError
            If an argument cannot be used; the message says what to do.
        """
        check_is_fitted(self, "memory_")
        if isinstance(X, numbers.Number):
            if h is not None:
                raise ValueError(f"give the horizon once; got predict({X!r}, h={h!r})")
            X, h = None, X  # type: ignore[assignment]
        h = self.horizon_ if h is None else positive_integer("h", h)
        levels = check_levels(level)
        memory = self.memory_ if X is None else self._memory_of(self._read(X))
        future = self._read_future(X_future, memory, h)
        forecasts = self._forecast(memory, h, levels, future)
        return self._write(memory, forecasts)

    def update(self, df: Any) -> Forecaster:
        """Take in new rows without fitting again.

        One step of work a row: the state is carried on. Parameters, scaling and
        intervals stay as they were fitted.

        Parameters
        ----------
        df : frame
            Rows that follow the last ones known, of some or all series.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a series is unknown or its rows do not begin one step after its last.
        """
        check_is_fitted(self, "memory_")
        panel = self._read(df)
        which = self._check_follows(panel)
        self.memory_ = self.memory_.replaced(
            which, self._advance(self.memory_.select(which), panel)
        )
        return self

    def score(self, df: Any, y: None = None) -> float:
        r"""Forecast the rows of `df`, which follow the data, and compare.

        .. math:: R^2 = 1 - \mathrm{MSE} / s^2

        averaged over series and targets, with s the standard deviation of the series in
        the training part: 1 is perfect, 0 as good as the mean. Higher is better, as
        scikit-learn's searches expect.

        Parameters
        ----------
        df : frame
            Rows that follow the last ones known, of all series.
        y : None
            There for scikit-learn.
        """
        check_is_fitted(self, "memory_")
        panel = self._read(df)
        which = self._check_follows(panel)
        memory = self.memory_.select(which)
        h = int(panel.lengths.max())
        future = self._known_values(panel, h) if self.known_ahead_ else None
        forecast = self._forecast(memory, h, [], future)[""]
        scores = []
        for i, scale in enumerate(memory.scaling.target.scale):
            error = panel.series(i) - forecast[i, : panel.lengths[i]]
            scores.append(1 - (error**2).mean(0) / scale**2)
        return float(np.mean(scores))

    def _fit_to(self, panel: Panel) -> None:
        self.known_ahead_ = self._known_columns(panel)
        self._panel_shape = panel.layout, panel.exog_names
        self.freq_ = panel.freq
        self.n_features_in_ = len(panel.target_names) + len(panel.exog_names)
        self.memory_ = self._fit_panel(panel)

    def _read(self, df: Any) -> Panel:
        """Read a frame in the shape of the data fitted to."""
        layout, exog_names = self._panel_shape
        return read_panel(
            df,
            id_col=self.id_col,
            time_col=self.time_col,
            freq=self.freq_,
            missing=self.missing,
            exog=exog_names,
            layout=layout,
        )

    def _known_columns(self, panel: Panel) -> list[str]:
        given = [] if self.known_ahead is None else self.known_ahead
        known = [given] if isinstance(given, str | int) and not isinstance(given, bool) else given
        if not isinstance(known, Sequence):
            raise TypeError(f"known_ahead must be a column name or a list of them; got {given!r}")
        absent = [name for name in known if name not in panel.exog_names]
        if absent:
            there = f"which are {list(panel.exog_names)}" if panel.exog_names else "which has none"
            raise ValueError(
                f"known_ahead must name exogenous columns of the data, {there}; got {absent}. "
                "Columns besides the targets are exogenous"
            )
        return list(known)

    def _check_follows(self, panel: Panel) -> np.ndarray:
        check_continues(panel, self.memory_.ids, self.memory_.last_times, self.freq_)
        return self.memory_.ids.get_indexer(panel.ids)

    def _read_future(self, X_future: Any, memory: Memory, h: int) -> np.ndarray | None:
        if X_future is None:
            if self.known_ahead_:
                raise ValueError(
                    f"the model uses {self.known_ahead_} of the {h} steps ahead; give them as "
                    "X_future"
                )
            return None
        if not self.known_ahead_:
            raise ValueError(
                "X_future was given, but no column was declared known ahead. Construct with "
                "known_ahead=[...] and fit again, or leave X_future out"
            )
        return read_future(
            X_future,
            h=h,
            columns=self.known_ahead_,
            ids=memory.ids,
            last_times=memory.last_times,
            freq=self.freq_,
            layout=self._panel_shape[0],
        )

    def _known_values(self, panel: Panel, h: int) -> np.ndarray:
        """Known columns of a panel as (S, h, n), the last row repeated after a series' end."""
        columns = [panel.exog_names.index(name) for name in self.known_ahead_]
        rows = panel.indptr[:-1, None] + np.arange(h)
        return panel.exog[np.minimum(rows, panel.indptr[1:, None] - 1)][..., columns]

    def _write(self, memory: Memory, forecasts: dict[str, np.ndarray]) -> Any:
        layout = self._panel_shape[0]
        h = forecasts[""].shape[1]
        times = future_times((memory.last_times, self.freq_), h, tz=layout.tz)
        return write_frame(layout, memory.ids, times, forecasts, model=self.column_name)


def with_intervals(
    point: np.ndarray, half_widths: dict[float, np.ndarray]
) -> dict[str, np.ndarray]:
    """Point forecasts and their symmetric intervals under the suffixes of their columns."""
    forecasts = {"": point}
    for level, half in half_widths.items():
        forecasts[f"-lo-{level_name(level)}"] = point - half
        forecasts[f"-hi-{level_name(level)}"] = point + half
    return forecasts
