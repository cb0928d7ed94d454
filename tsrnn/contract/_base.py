"""The contract of all forecasters: frames in, frames out, arguments checked once."""

from __future__ import annotations

import numbers
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import IO, Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tsrnn.contract._arguments import choice, positive_integer
from tsrnn.contract._file import write_file
from tsrnn.contract._history import History
from tsrnn.contract._intervals import check_levels
from tsrnn.contract._known import known_columns, known_values
from tsrnn.contract._memory import Memory
from tsrnn.contract._plot import draw_forecasts
from tsrnn.contract._saved import common_arrays, common_header, restore_common, saved_arguments
from tsrnn.contract._score import r_squared
from tsrnn.contract._shared import CommonArguments
from tsrnn.data import Panel, check_continues, future_times, read_future, read_panel, write_frame

M = TypeVar("M", bound=Memory)
# From header and arrays of a file, or of a part of one, the forecaster.
Restore = Callable[[dict[str, Any], dict[str, np.ndarray]], Any]


class Forecaster(CommonArguments, BaseEstimator, ABC, Generic[M]):
    """Base of all forecasters; not to be used by itself.

    A subclass stores constructor arguments beside the common ones, sets `horizon_` when
    fitted, and answers four questions about panels: `_fit_panel`, `_memory_of`, `_advance`,
    `_forecast`. `_header`, `_arrays` and `_revive` write and read what it has fitted;
    `summary` says it in words.

    Parameters
    ----------
    horizon, target, known_ahead, id_col, time_col, freq, missing, random_state, verbose
        As `CommonArguments` has them.

    Attributes
    ----------
    horizon_ : int
        Steps that `predict` gives without h.
    memory_ : Memory
        State of the series after their last rows.

    Examples
    --------
    >>> from tsrnn.baselines import Drift, Mean
    >>> from tsrnn.contract import Forecaster
    >>> from tsrnn.datasets import load_nile
    >>> models = [Drift(), Mean()]
    >>> all(isinstance(model, Forecaster) for model in models)
    True
    >>> [model.fit(load_nile()).predict(h=3).shape for model in models]
    [(3, 1), (3, 1)]
    """

    column_name: ClassVar[str]  # of the forecasts of a long frame
    legal_missing: ClassVar[tuple[str, ...]] = ("error", "interpolate")
    not_saved: ClassVar[tuple[str, ...]] = ()  # constructor arguments that files do not hold
    horizon_: int
    memory_: M
    _history: History

    @abstractmethod
    def _fit_panel(self, panel: Panel) -> M:
        """Estimate; returns what is to be remembered."""

    @abstractmethod
    def _memory_of(self, panel: Panel) -> M:
        """State after a panel that need not have been fitted to."""

    @abstractmethod
    def _advance(self, memory: M, panel: Panel) -> M:
        """State after further rows of all series of `memory`, in the same order."""

    @abstractmethod
    def _forecast(
        self, memory: M, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Forecasts of shape (S, h, C): "" the point forecast, then "-lo-80", "-hi-80", ..."""

    @abstractmethod
    def _header(self) -> dict[str, Any]:
        """What was fitted, as far as it is JSON values."""

    @abstractmethod
    def _arrays(self) -> dict[str, np.ndarray]:
        """What was fitted, as far as it is arrays, that of the memory included."""

    @abstractmethod
    def _revive(
        self,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        ids: pd.Index,
        last_times: np.ndarray,
    ) -> M:
        """Set what `_header` and `_arrays` held; returns the memory. The inverse of both."""

    @classmethod
    def _inner_arguments(
        cls, header: dict[str, Any], arrays: dict[str, np.ndarray], restore: Restore | None
    ) -> dict[str, Any]:
        """Constructor arguments that are forecasters, made by `restore` from their parts."""
        return {}

    @abstractmethod
    def summary(self) -> Any:
        """What was fitted and how well; print the result."""

    def fit(self, df: Any, y: None = None) -> Self:
        """Fit to the series of a frame.

        Parameters
        ----------
        df : pandas.Series, pandas.DataFrame, polars.DataFrame or path
            Wide: time in the index, a column a variable. Long: columns `unique_id`, `ds`,
            `y` (other names by `id_col`, `time_col`, `target`), other columns exogenous. A
            path is that of a parquet file or of a folder of them, read without a frame of
            the whole.
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
        panel = self._read_frame(df, freq=self.freq, target=self.target)
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
        X : frame, path or int, optional
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
        X, h = self._horizon_first(X, h)
        h = self.horizon_ if h is None else positive_integer("h", h)
        levels = check_levels(level)
        memory = self.memory_ if X is None else self._memory_of(self._read(X))
        layout = self._panel_shape[0]
        times = future_times((memory.last_times, self.freq_), h, tz=layout.tz)
        future = self._read_future(X_future, memory, h)
        forecasts = self._forecast(memory, h, levels, future)
        return write_frame(layout, memory.ids, times, forecasts, model=self.column_name)

    def update(self, df: Any) -> Self:
        """Take in new rows without fitting again.

        One step of work a row: the state is carried on. Parameters, scaling and
        intervals stay as they were fitted.

        Parameters
        ----------
        df : frame or path
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
        self._history = self._history.followed_by(which, panel)
        return self

    def score(self, df: Any, y: None = None) -> float:
        r"""Forecast the rows of `df`, which follow the data, and compare.

        .. math:: R^2 = 1 - \mathrm{MSE} / s^2

        averaged over series and targets, with s the standard deviation of the series in
        the training part: 1 is perfect, 0 as good as the mean. Higher is better, as
        scikit-learn's searches expect.

        Parameters
        ----------
        df : frame or path
            Rows that follow the last ones known, of all series.
        y : None
            There for scikit-learn.
        """
        check_is_fitted(self, "memory_")
        panel = self._read(df)
        which = self._check_follows(panel)
        memory = self.memory_.select(which)
        h = int(panel.lengths.max())
        future = known_values(panel, self.known_ahead_, h) if self.known_ahead_ else None
        forecast = self._forecast(memory, h, [], future)[""]
        return r_squared(panel, forecast, memory.target_scale)

    def save(self, path: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the fitted forecaster to a file that `tsrnn.load` reads.

        The file holds what was fitted, the state of every series and the last rows, which
        `plot` draws, as safetensors with a JSON header. It appears in one step: a file of
        that name is whole or untouched. A generator as `random_state` and callbacks are not
        kept.

        Parameters
        ----------
        path : path or binary file
            An open file, for example an `io.BytesIO`, is written to where it stands.

        Raises
        ------
        TypeError
            If an argument or a series id is no JSON value, as a cell of one's own is not;
            the message names it.
        OSError
            If the file cannot be written.
        """
        check_is_fitted(self, "memory_")
        write_file(path, *self._parts())

    def plot(
        self,
        X: Any = None,
        h: int | None = None,
        level: Any = 80,
        X_future: Any = None,
        *,
        series: Any = None,
        columns: Any = None,
        last: int | None = None,
        ax: Any = None,
    ) -> np.ndarray:
        """Forecast and draw: the history, the forecast and its intervals, a panel a series.

        Parameters
        ----------
        X : frame, path or int, optional
            Data to draw and forecast after, as for `predict`; by default the last rows seen, of
            which a model keeps up to 500 a series. An integer is taken as `h`.
        h : int, optional
            Number of steps; `horizon_` by default.
        level : float, list of float or None, default 80
            Coverage of the intervals in percent; None draws none.
        X_future : frame, optional
            The columns of `known_ahead` for the next h steps of the series.
        series : id or list of ids, optional
            Series of a long frame to draw; by default the first ones, four panels at most.
        columns : str or list of str, optional
            Targets to draw; all by default.
        last : int, optional
            Rows of the history to draw; by default four times h, 40 at least.
        ax : matplotlib Axes or sequence of them, optional
            Where to draw, one a panel; a new figure by default.

        Returns
        -------
        ndarray of matplotlib Axes, of shape (panels,)

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError, ValueError
            If an argument cannot be used; the message says what to do.

        Examples
        --------
        >>> from tsrnn import ARMA
        >>> from tsrnn.datasets import load_nile
        >>> (ax,) = ARMA(order=(1, 1)).fit(load_nile()).plot(10)
        >>> [text.get_text() for text in ax.get_legend().get_texts()]
        ['history', '80% interval', 'forecast']
        """
        check_is_fitted(self, "memory_")
        X, h = self._horizon_first(X, h)
        return draw_forecasts(self, X, h, level, X_future, series, columns, last, ax)

    @staticmethod
    def _horizon_first(X: Any, h: int | None) -> tuple[Any, int | None]:
        """Data and horizon, of which the horizon may stand in the place of the data."""
        if not isinstance(X, numbers.Number):
            return X, h
        if h is not None:
            raise ValueError(f"give the horizon once; got {X!r} and h={h!r}")
        return None, X  # type: ignore[return-value]

    def _parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Header and arrays of the file."""
        own = {"fitted": self._header()}
        return common_header(self) | own, self._arrays() | common_arrays(self)

    @classmethod
    def _restore(
        cls,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        restore: Restore | None = None,
    ) -> Forecaster:
        """The fitted forecaster that `save` wrote; `restore` makes those that are within it."""
        inner = cls._inner_arguments(header["fitted"], arrays, restore)
        forecaster = cls(**(saved_arguments(header) | inner))
        ids, last_times = restore_common(forecaster, header, arrays)
        forecaster.memory_ = forecaster._revive(header["fitted"], arrays, ids, last_times)
        return forecaster

    def _fit_to(self, panel: Panel) -> None:
        self._set_shape(panel)
        self.memory_ = self._fit_panel(panel)

    def _set_shape(self, panel: Panel) -> None:
        """Keep what later frames must agree with."""
        self.known_ahead_ = known_columns(self.known_ahead, panel)
        self._panel_shape = panel.layout, panel.exog_names
        self._history = History.of(panel)
        self.freq_ = panel.freq
        self.n_features_in_ = len(panel.target_names) + len(panel.exog_names)

    def _read(self, df: Any) -> Panel:
        """Read a frame in the shape of the data fitted to."""
        layout, exog_names = self._panel_shape
        return self._read_frame(df, freq=self.freq_, exog=exog_names, layout=layout)

    def _read_frame(self, df: Any, **shape: Any) -> Panel:
        missing = choice("missing", self.missing, self.legal_missing)
        return read_panel(df, id_col=self.id_col, time_col=self.time_col, missing=missing, **shape)

    def _check_follows(self, panel: Panel) -> np.ndarray:
        check_continues(panel, self.memory_.ids, self.memory_.last_times, self.freq_)
        return self.memory_.ids.get_indexer(panel.ids)

    def _read_future(self, X_future: Any, memory: M, h: int) -> np.ndarray | None:
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
