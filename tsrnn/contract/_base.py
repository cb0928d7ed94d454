"""The contract of all forecasters: frames in, frames out, arguments checked once."""

from __future__ import annotations

import copy
import numbers
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import IO, Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tsrnn.contract._checks import check_fits, choice, positive_integer, seed_of, verbosity
from tsrnn.contract._estimator import CommonArguments, Frozen, offered_with
from tsrnn.contract._file import write_file
from tsrnn.contract._intervals import check_levels, honest_intervals, zero_shares
from tsrnn.contract._plot import History, draw_forecasts
from tsrnn.contract._rolling import Origins, r_squared
from tsrnn.contract._saved import (
    COMMON_ARRAYS,
    check_common,
    common_arrays,
    common_header,
    restore_common,
    saved_arguments,
)
from tsrnn.contract._schema import MOST_STEPS, as_saved
from tsrnn.contract._shape import (
    DataShape,
    known_values,
    warn_of_short_calendar,
    with_calendar,
)
from tsrnn.data import (
    Layout,
    Panel,
    calendar_features,
    check_continues,
    future_times,
    read_panel,
    write_frame,
    write_paths,
)


class Memory(Protocol):
    """State of S series after their last rows, enough to go on from there.

    Attributes
    ----------
    ids : pandas.Index of shape (S,)
    last_times : ndarray of shape (S,)
    target_scale : ndarray of shape (S, C)
        Standard deviation of each target in the data fitted to; not zero.

    Examples
    --------
    >>> from tsrnn.baselines import Naive
    >>> from tsrnn.datasets import load_macrodata
    >>> memory = Naive(target="realgdp").fit(load_macrodata()[["realgdp"]]).memory_
    >>> len(memory.ids), memory.last_times.shape, memory.target_scale.shape
    (1, (1,), (1, 1))
    """

    @property
    def ids(self) -> pd.Index: ...

    @property
    def last_times(self) -> np.ndarray: ...

    @property
    def target_scale(self) -> np.ndarray: ...

    def select(self, series: np.ndarray, /) -> Self:
        """Memory of the series of these numbers, in that order."""

    def replaced(self, series: np.ndarray, new: Self, /) -> Self:
        """Copy in which the series of these numbers are those of `new`."""


BYTES_OF_A_FORECAST = 32  # of float64: as it is made, transformed back, written and beside its time
M = TypeVar("M", bound=Memory)
# From header and arrays of a file, or of a part of one, the forecaster.
Restore = Callable[[dict[str, Any], dict[str, np.ndarray]], Any]


class Forecaster(CommonArguments, Frozen, BaseEstimator, ABC, Generic[M]):
    """Base of all forecasters; not to be used by itself.

    A subclass stores constructor arguments beside the common ones, sets `horizon_` when
    fitted, and answers four questions about panels: `_fit_panel`, `_memory_of`, `_advance`,
    `_forecast`. `_header`, `_arrays` and `_revive` write and read what it has fitted;
    `summary` says it in words. Some answer more: `_draw_paths` for `sample_paths`,
    `_residual_variances` for `predict_variance`; `predict_covariances`; `recurrent_blocks`.

    Parameters
    ----------
    random_state, verbose
        As `CommonArguments` has them.
    horizon, target, known_ahead, static, calendar, id_col, time_col, freq, missing
        As `CommonArguments` has them.

    Attributes
    ----------
    arguments_ : Arguments
        Constructor arguments of the fit; those that `set_params` is given later act at the next.
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
    takes_exog: ClassVar[bool] = True
    takes_static: ClassVar[bool] = False
    not_saved: ClassVar[tuple[str, ...]] = ()  # constructor arguments that files do not hold
    _guarantee: ClassVar[str] = "None is stated."  # of the intervals
    horizon_: int
    memory_: M
    _history: History

    @abstractmethod
    def _fit_panel(self, panel: Panel) -> M:
        """Estimate; returns the state of the series after their last rows."""

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
        """Fitted values that are JSON values, by name."""

    @abstractmethod
    def _arrays(self) -> dict[str, np.ndarray]:
        """Fitted values and the memory as arrays, by name."""

    @abstractmethod
    def _revive(
        self,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        ids: pd.Index,
        last_times: np.ndarray,
    ) -> M:
        """Set what `_header` and `_arrays` held; returns the memory. The inverse of both.

        Files may come from anybody: every field and array is checked before it is used, and
        nothing is built of a size that the arrays do not bear out.

        Raises
        ------
        DamagedFileError
            Naming the field or array that is not as `save` writes it.
        """

    @classmethod
    def _inner_arguments(
        cls, header: dict[str, Any], arrays: dict[str, np.ndarray], restore: Restore | None
    ) -> dict[str, Any]:
        """Constructor arguments that are forecasters, made by `restore` from their parts."""
        return {}

    @abstractmethod
    def summary(self) -> Any:
        """Describe the fitted model and its fit; print the result."""

    def fit(self, df: Any, y: None = None) -> Self:
        """Fit to the series of a frame.

        Parameters
        ----------
        df : pandas.Series, pandas.DataFrame, polars.DataFrame or path
            Wide: time in the index, a column a variable. Long: columns `unique_id`, `ds`,
            `y` (other names by `id_col`, `time_col`, `target`), other columns exogenous. A
            path is that of a parquet or CSV file, of a folder of them, or a pattern; parquet
            files are read without a frame of the whole.
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
        with self._fitting():
            self._fit_to(self._read_training(df))
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
            The columns of `known_ahead` for the next h steps of every series. Other columns of
            the data are left out, with a warning.

        Returns
        -------
        frame
            In the shape of the data. Intervals are columns such as ``y-lo-80``, ``y-hi-80``; in
            pandas ``attrs["guarantee"]`` then says what they promise, as `interval_guarantee_`.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError, ValueError
            If an argument cannot be used; the message says what to do.

        Warns
        -----
        tsrnn.contract.IntervalWarning
            If intervals have no width, were widened to contain the zeros of an intermittent
            series, rest on very few errors, or have no guarantee at later steps.
        """
        check_is_fitted(self, "memory_")
        X, h = self._horizon_first(X, h)
        h = self.horizon_ if h is None else positive_integer("h", h)
        levels = check_levels(level)
        if X is None:
            memory, zeros = self.memory_, self._zero_shares
        else:
            panel = self._read(X)
            memory, zeros = self._memory_of(panel), zero_shares(panel)
        layout = self._data_shape.layout
        n_numbers = len(memory.ids) * len(layout.target_names) * (1 + 2 * len(levels))
        check_fits(
            f"h={h} steps of {len(memory.ids)} series",
            float(h) * n_numbers * BYTES_OF_A_FORECAST,
            "Take a smaller h, or some of the series",
        )
        times = future_times((memory.last_times, self.freq_), h, tz=layout.tz)
        future = self._read_future(X_future, memory, h)
        forecasts = self._forecast(memory, h, levels, future)
        return self._written(memory.ids, times, forecasts, levels, zeros)

    def predict_rolling(
        self, df: Any, h: int | None = None, step_size: int = 1, level: Any = None
    ) -> Any:
        """Forecast from many origins, without fitting again.

        The rows of `df` follow the data. The first origin is the last row known, then
        every `step_size`-th row of `df`, as long as h rows of `df` follow: the rolling
        evaluation of a model that is estimated once. The forecaster itself is left as
        it is. Columns of `known_ahead` are taken from `df`. With ``missing="interpolate"``
        gaps of `df` are filled from the rows on both sides, before the first forecast.

        Recurrent forecasters need one pass for all origins. Others forecast from one after the
        other, those of `tsrnn.baselines` each time by a pass over all rows seen.

        Parameters
        ----------
        df : frame
            Rows that follow the last ones known, of some or all series.
        h : int, optional
            Number of steps; `horizon_` by default, which recurrent forecasters cannot exceed.
        step_size : int, default 1
            Rows from one origin to the next.
        level : float or list of float, optional
            Coverage of prediction intervals in percent.

        Returns
        -------
        frame
            As `predict` gives it, with a column ``cutoff``: the last time known.

        Raises
        ------
        ValueError
            If a series has fewer than h new rows, or h is too large for the model.

        Examples
        --------
        >>> from tsrnn.baselines import Drift
        >>> from tsrnn.datasets import load_nile
        >>> flow = load_nile()
        >>> model = Drift().fit(flow[:-4])
        >>> model.predict_rolling(flow[-4:], h=2).shape
        (6, 2)
        """
        check_is_fitted(self, "memory_")
        h = self._steps("predict_rolling", h)
        step = positive_integer("step_size", step_size)
        levels = check_levels(level)
        panel = self._read(df)
        continued = self._check_follows(panel)
        memory = self.memory_.select(continued)
        origins = Origins.of(panel, h, step)
        return self._written(
            memory.ids[origins.series],
            origins.times(panel, h),
            self._rolling(memory, panel, origins, h, levels),
            levels,
            self._zero_shares[continued][origins.series],
            origins.cutoffs(panel, memory.last_times),
        )

    @offered_with("_draw_paths")
    def sample_paths(
        self,
        n: int = 100,
        h: int | None = None,
        X: Any = None,
        X_future: Any = None,
        random_state: Any = None,
    ) -> Any:
        """Draw whole trajectories from the distribution of the forecasts.

        Errors of the steps of a path go together as the model has it, so that quantiles of sums or
        maxima over the steps are those of the model. Parameters are taken as known, as in the
        intervals.

        A path of a recurrent forecaster is the forecast plus the errors of all steps that one
        origin of the validation part had, scaled by the local spread. Where a distribution is
        learned, errors are its quantiles at the ranks of those. Targets that are forecast
        independently are drawn independently. Paths have the guarantee of the intervals, step by
        step. A path of a classical model goes on from the state of the series with innovations of
        the distribution that the model has.

        Parameters
        ----------
        n : int, default 100
            Paths of every series.
        h : int, optional
            Number of steps; `horizon_` by default, which recurrent forecasters cannot exceed.
        X, X_future : frame, optional
            As in `predict`.
        random_state : int, numpy random generator or None
            By default that of the fit.

        Returns
        -------
        frame
            As `predict` gives it, with a column ``path`` from 1 to n, path by path.

        Raises
        ------
        AttributeError
            If forecasts of this class have no joint distribution; the message says of which they
            do.
        ValueError
            If h is too large for the model, or no origin of the validation part of a recurrent
            forecaster has errors of all steps.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from tsrnn.linear import ARMA
        >>> y = pd.Series(np.random.default_rng(0).normal(size=100), name="y")
        >>> paths = ARMA(order=(1, 0), random_state=0).fit(y).sample_paths(50, h=3)
        >>> paths.groupby("path")["y"].sum().shape
        (50,)
        """
        check_is_fitted(self, "memory_")
        n, h = positive_integer("n", n), self._steps("sample_paths", h)
        memory = self.memory_ if X is None else self._memory_of(self._read(X))
        future = self._read_future(X_future, memory, h)
        given = self.arguments_.random_state if random_state is None else random_state
        rng = np.random.default_rng(seed_of(given))
        paths = self._draw_paths(memory, h, n, future, rng)  # type: ignore[attr-defined]
        layout = self._data_shape.layout
        times = future_times((memory.last_times, self.freq_), h, tz=layout.tz)
        return write_paths(layout, memory.ids, times, paths, model=self.column_name)

    @offered_with("_residual_variances")
    def predict_variance(self, h: int | None = None, X: Any = None) -> Any:
        """Forecasts of the conditional variance of the residuals.

        Parameters
        ----------
        h : int, optional
            Number of steps; `horizon_` by default.
        X : frame, optional
            Data to forecast after; by default those seen so far.

        Returns
        -------
        frame
            In the shape of the data; a column ``variance`` in a long frame.

        Raises
        ------
        AttributeError
            If the model has no conditional variance; the message says which have.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from tsrnn.linear import CCC
        >>> y = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=["a", "b"])
        >>> CCC().fit(y).predict_variance(h=3).shape
        (3, 2)
        """
        return self._variance_frame(h, X)

    @offered_with("predict_covariances")
    def predict_covariances(self, h: int | None = None, X: Any = None) -> Any:
        """Forecasts of conditional variances and covariances of the residuals.

        Parameters
        ----------
        h : int, optional
            Number of steps; `horizon_` by default.
        X : frame, optional
            Data to forecast after; by default those seen so far.

        Returns
        -------
        DataFrame
            A row a time and pair of targets.

        Raises
        ------
        AttributeError
            If the model has no conditional covariances; the message says which have.
        """
        raise NotImplementedError

    @offered_with("recurrent_blocks")
    def recurrent_blocks(self) -> Any:
        """Recurrent matrices of the fitted model, for `tsrnn.recurrence_features`.

        Returns
        -------
        list
            By layer, of stacks of square matrices, or dicts of them by name.

        Raises
        ------
        AttributeError
            If the model is no recurrence with fixed matrices; the message says which are.
        """
        raise NotImplementedError

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
        continued = self._check_follows(panel)
        advanced = self._advance(self.memory_.select(continued), panel)
        self.memory_ = self.memory_.replaced(continued, advanced)
        self._history = self._history.followed_by(continued, panel)
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
        continued = self._check_follows(panel)
        memory = self.memory_.select(continued)
        h = int(panel.lengths.max())
        future = known_values(panel, self.known_ahead_, h) if self.known_ahead_ else None
        forecast = self._forecast(memory, h, [], future)[""]
        return r_squared(panel, forecast, memory.target_scale)

    def save(self, path: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the fitted forecaster to a file that `tsrnn.load` reads.

        The file holds what was fitted, the state of every series and the last rows, which
        `plot` draws, as safetensors with a JSON header. It appears in one step: a file of
        that name is whole or untouched, and keeps its permissions; of a symbolic link the file
        is replaced that it leads to. A generator as `random_state` and callbacks are not kept.
        The arguments in the file are those of the fit, whatever `set_params` has given since.

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
        if self.horizon_ > MOST_STEPS:
            raise ValueError(
                f"files hold models of a horizon of at most {MOST_STEPS:,} steps; that of this one "
                f"is {self.horizon_}. Fit with a smaller one, and predict with h"
            )
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
        fitted = {"fitted": self._header()}  # first: it refuses arguments in words of its class
        return common_header(self) | fitted, self._arrays() | common_arrays(self)

    @classmethod
    def _restore(
        cls,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        restore: Restore | None = None,
    ) -> Forecaster:
        """The fitted forecaster that `save` wrote; `restore` makes those that are within it."""
        check_common(cls, header)
        inner = cls._inner_arguments(header["fitted"], arrays, restore)
        forecaster = cls(**(saved_arguments(header) | inner))
        ids, last_times = restore_common(forecaster, header, arrays)
        with as_saved("params"):
            verbosity(forecaster.verbose)
        rest = {name: array for name, array in arrays.items() if name not in COMMON_ARRAYS}
        forecaster.memory_ = forecaster._revive(header["fitted"], rest, ids, last_times)
        forecaster._freeze()
        return forecaster

    def _read_training(self, df: Any) -> Panel:
        """Read a frame to fit to, with the columns of the calendar."""
        arguments = self.arguments_
        panel = self._read_frame(df, freq=arguments.freq, target=arguments.target)
        self._check_takes_columns()
        features = calendar_features(arguments.calendar, panel.layout)
        warn_of_short_calendar(panel, features)
        return with_calendar(panel, features)

    def _fit_to(self, panel: Panel) -> None:
        self._set_shape(panel)
        self.memory_ = self._fit_panel(panel)

    @property
    def freq_(self) -> str | int:
        """Frequency of the data: a pandas alias, or the step of an integer index."""
        return self._fitted_shape().layout.freq

    @property
    def known_ahead_(self) -> list[Any]:
        """Exogenous columns whose future is known, those of the calendar last."""
        return self._fitted_shape().known_ahead

    @property
    def static_(self) -> list[Any]:
        """Exogenous columns that are constant within each series."""
        return self._fitted_shape().static

    @property
    def calendar_(self) -> tuple[str, ...]:
        """Cycles of the calendar that enter the model."""
        return self._fitted_shape().calendar

    @property
    def n_features_in_(self) -> int:
        """Columns of the frames: targets and exogenous ones."""
        shape = self._fitted_shape()
        return len(shape.layout.target_names) + len(shape.given_columns)

    def _fitted_shape(self) -> DataShape:
        check_is_fitted(self, "_data_shape")
        return self._data_shape

    @property
    def _panel_shape(self) -> tuple[Layout, tuple[Any, ...]]:
        return self._data_shape.layout, self._data_shape.exog_names

    @property
    def interval_guarantee_(self) -> str:
        """Guarantee of prediction intervals, and its assumptions."""
        return self._guarantee

    def _written(
        self,
        ids: pd.Index,
        times: np.ndarray,
        forecasts: dict[str, np.ndarray],
        levels: list[float],
        zeros: np.ndarray,
        cutoffs: np.ndarray | None = None,
    ) -> Any:
        """Forecasts as a frame whose intervals say what they promise.

        Parameters
        ----------
        ids, times, cutoffs
            As in `tsrnn.data.write_frame`.
        forecasts : dict of ndarray of shape (S, h, C)
        levels : list of float
        zeros : ndarray of shape (S, C)
            Share of zeros in the history of each target.
        """
        layout = self._data_shape.layout
        forecasts = honest_intervals(forecasts, levels, zeros, layout, ids)
        frame = write_frame(layout, ids, times, forecasts, model=self.column_name, cutoffs=cutoffs)
        if levels and isinstance(frame, pd.DataFrame):
            frame.attrs["guarantee"] = self.interval_guarantee_
        return frame

    def _check_takes_columns(self) -> None:
        """Refuse kinds of columns that the class has no use for."""
        calendar, static = self.arguments_.calendar, self.arguments_.static
        if _names_columns(calendar) and not self.takes_exog:
            raise ValueError(
                f"{type(self).__name__} takes no exogenous columns, and so no calendar; got "
                f"calendar={calendar!r}. Leave it out, or take a forecaster that does, such "
                "as ParaRNNForecaster, ARMA or SARIMAX"
            )
        if _names_columns(static) and not self.takes_static:
            raise ValueError(
                f"{type(self).__name__} takes no static columns; got static={static!r}. "
                "Within a series they are part of its mean, so that they help only models which "
                "share parameters between series: ParaRNNForecaster, LEMForecaster, "
                "LRUForecaster, NewtonForecaster. Leave static out and drop these columns"
            )

    def _set_shape(self, panel: Panel) -> None:
        """Keep the columns and the last rows of the data fitted to."""
        self._check_takes_columns()
        arguments = self.arguments_
        self._data_shape = DataShape.of(
            panel, known_ahead=arguments.known_ahead, static=arguments.static,
            calendar=arguments.calendar,
        )  # fmt: skip
        self._zero_shares, self._history = zero_shares(panel), History.of(panel)

    def _read(self, df: Any) -> Panel:
        """Read a frame in the shape of the data fitted to."""
        shape = self._data_shape
        panel = self._read_frame(
            df, freq=shape.layout.freq, exog=shape.given_columns, layout=shape.layout
        )
        return shape.complete(panel)

    def _read_frame(self, df: Any, **shape: Any) -> Panel:
        arguments = self.arguments_
        missing = choice("missing", arguments.missing, self.legal_missing)
        return read_panel(
            df, id_col=arguments.id_col, time_col=arguments.time_col, missing=missing, **shape
        )

    def _steps(self, method: str, h: int | None) -> int:
        """Number of steps that a method is asked for, `horizon_` by default."""
        return self.horizon_ if h is None else positive_integer("h", h)

    def _rolling(
        self, memory: M, panel: Panel, origins: Origins, h: int, levels: list[float]
    ) -> dict[str, np.ndarray]:
        """Forecasts (n, h, C) from n origins within a panel that follows `memory`."""
        columns = [panel.exog_names.index(name) for name in self.known_ahead_]
        forecasts: dict[str, np.ndarray] = {}
        known = np.zeros_like(origins.counts)  # new rows taken in
        for ordinal in range(origins.counts.max()):
            at = np.flatnonzero(origins.ordinal == ordinal)
            if ordinal:  # go on with the series that have another origin
                on = origins.counts > ordinal
                memory = memory.select(np.flatnonzero(on[origins.counts >= ordinal]))
                new = panel.select(on).between(known[on], known[on] + origins.step)
                memory, known = self._advance(memory, new), known + origins.step
            rows = origins.first[at][:, None] + np.arange(h)
            future = panel.exog[rows][..., columns] if columns else None
            for name, values in self._forecast(memory, h, levels, future).items():
                shape = len(origins.series), *values.shape[1:]
                forecasts.setdefault(name, np.empty(shape))[at] = values
        return forecasts

    def _variance_frame(self, h: int | None, X: Any, **options: Any) -> Any:
        check_is_fitted(self, "memory_")
        h = self._steps("predict_variance", h)
        memory = self.memory_ if X is None else self._memory_of(self._read(X))
        variances = self._residual_variances(memory, h, **options)  # type: ignore[attr-defined]
        layout = self._data_shape.layout
        times = future_times((memory.last_times, self.freq_), h, tz=layout.tz)
        return write_frame(layout, memory.ids, times, {"": variances}, model="variance")

    def _after(self, memory: M) -> Self:
        """The same fitted forecaster after other rows of its series."""
        other = copy.copy(self)
        other.memory_ = memory
        return other

    def _check_follows(self, panel: Panel) -> np.ndarray:
        """Numbers of the series that the rows of a panel continue."""
        ids = self.memory_.ids
        check_continues(panel, ids, self.memory_.last_times, self.freq_)
        self._data_shape.check_static_unchanged(panel, ids)
        return ids.get_indexer(panel.ids)

    def _read_future(self, X_future: Any, memory: M, h: int) -> np.ndarray | None:
        return self._data_shape.read_future(X_future, memory.ids, memory.last_times, h)


def _names_columns(value: Any) -> bool:
    """Whether an argument asks for columns; frames and arrays have no truth value."""
    return value is not None and (not isinstance(value, bool | str | Sequence) or bool(value))
