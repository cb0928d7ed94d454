"""The contract of all forecasters: frames in, frames out, arguments checked once."""

from __future__ import annotations

import copy
import numbers
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import IO, Any, ClassVar, Generic, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tsrnn.contract._checks import check_fits, choice, positive_integer, seed_of, verbosity
from tsrnn.contract._estimator import Arguments, CommonArguments, offered_by_some
from tsrnn.contract._file import write_file
from tsrnn.contract._fitted import FittedModel, S
from tsrnn.contract._fitted_data import (
    FittedData,
    known_values,
    warn_of_short_calendar,
    with_calendar,
    zero_shares,
)
from tsrnn.contract._intervals import check_levels, honest_intervals
from tsrnn.contract._plot import History, draw_forecasts
from tsrnn.contract._rolling import Origins, r_squared
from tsrnn.contract._saved import (
    arguments_of,
    check_common,
    last_times_from_file,
    saved_arguments,
)
from tsrnn.contract._schema import MOST_STEPS, as_saved
from tsrnn.data import (
    Panel,
    calendar_features,
    check_continues,
    read_panel,
    write_frame,
    write_paths,
)

BYTES_OF_A_FORECAST = 32  # of float64: as it is made, transformed back, written and beside its time
# Arrays of the file that are not those of the fitted model.
COMMON_ARRAYS = (
    "last_times", "static", "zero_shares", "history.values", "history.times", "history.lengths",
)  # fmt: skip
# From header and arrays of a file, or of a part of one, the forecaster.
Restore = Callable[[dict[str, Any], dict[str, np.ndarray]], Any]


class Forecaster(CommonArguments, BaseEstimator, ABC, Generic[S]):
    """Base of all forecasters; not to be used by itself.

    An estimator holds constructor arguments. `fit` reads them once and returns into `fitted_` a
    `FittedModel`, which nothing changes, and into `state_` the state of the series, which `update`
    replaces; forecasts ask these two alone. A subclass stores its arguments beside the common
    ones and answers `_fit_panel` and `_from_file`, which give both; `summary` says in words what
    was fitted.

    Parameters
    ----------
    random_state, verbose
        As `CommonArguments` has them.
    horizon, target, known_ahead, static, calendar, id_col, time_col, freq, missing
        As `CommonArguments` has them.

    Attributes
    ----------
    fitted_ : FittedModel
        Estimates, and everything else that forecasts need beside the state.
    state_ : SeriesState
        State of the series after their last rows.
    arguments_ : Arguments
        Constructor arguments of the fit; those that `set_params` is given later act at the next.
    horizon_ : int
        Steps that `predict` gives without h.

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
    offers: ClassVar[frozenset[str]] = frozenset()  # methods that only some classes have
    fitted_: FittedModel[S]
    state_: S
    _history: History

    @abstractmethod
    def _fit_panel(
        self, arguments: Arguments, data: FittedData, panel: Panel
    ) -> tuple[FittedModel[S], S]:
        """Estimate; the fitted model, and the state of the series after their last rows.

        Arguments are read from the record: those of the estimator may have changed since.
        """

    @abstractmethod
    def _from_file(
        self,
        arguments: Arguments,
        data: FittedData,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        last_times: np.ndarray,
    ) -> tuple[FittedModel[S], S]:
        """Fitted model and state that `FittedModel.to_file` wrote.

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

    @classmethod
    def _update_header(cls, header: dict[str, Any]) -> None:
        """Bring the header of a file of an earlier format to the present one, in place."""

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
        arguments = Arguments.of(self)
        return self._fit_to(self._read_training(df, arguments), arguments)

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
        check_is_fitted(self, "fitted_")
        X, h = self._horizon_first(X, h)
        fitted, data = self.fitted_, self.fitted_.data
        h = fitted.horizon if h is None else positive_integer("h", h)
        levels = check_levels(level)
        if X is None:
            state, zeros = self.state_, data.zero_shares
        else:
            panel = self._read(X)
            state, zeros = self._filter(panel), zero_shares(panel)
        n_numbers = len(state.ids) * data.n_targets * (1 + 2 * len(levels))
        check_fits(
            f"h={h} steps of {len(state.ids)} series",
            float(h) * n_numbers * BYTES_OF_A_FORECAST,
            "Take a smaller h, or some of the series",
        )
        future = data.read_future(X_future, state.ids, state.last_times, h)
        forecasts = fitted.forecast(state, h, levels, future)
        return self._written(state.ids, data.times_ahead(state, h), forecasts, levels, zeros)

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
        check_is_fitted(self, "fitted_")
        fitted = self.fitted_
        h = fitted.steps("predict_rolling", h)
        step = positive_integer("step_size", step_size)
        levels = check_levels(level)
        panel = self._read(df)
        continued = self._check_follows(panel)
        state = self.state_.select(continued)
        origins = Origins.of(panel, h, step)
        return self._written(
            state.ids[origins.series],
            origins.times(panel, h),
            fitted.rolling(state, panel, origins, h, levels),
            levels,
            fitted.data.zero_shares[continued][origins.series],
            origins.cutoffs(panel, state.last_times),
        )

    @offered_by_some
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
        check_is_fitted(self, "fitted_")
        fitted: Any = self.fitted_  # one that has `simulate`
        n, h = positive_integer("n", n), fitted.steps("sample_paths", h)
        state, data = self._state_after(X), fitted.data
        future = data.read_future(X_future, state.ids, state.last_times, h)
        given = fitted.arguments.random_state if random_state is None else random_state
        rng = np.random.default_rng(seed_of(given))
        paths = fitted.simulate(state, h, n, future, rng)
        times = data.times_ahead(state, h)
        return write_paths(data.layout, state.ids, times, paths, model=self.column_name)

    @offered_by_some
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

    @offered_by_some
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

    @offered_by_some
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
        check_is_fitted(self, "fitted_")
        panel = self._read(df)
        continued = self._check_follows(panel)
        advanced = self.fitted_.advance(self.state_.select(continued), panel)
        state = self.state_.replaced(continued, advanced)
        history = self._history.followed_by(continued, panel)
        # both or none: rows that cannot be taken in leave the forecaster as it was
        self.state_, self._history = state, history
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
        check_is_fitted(self, "fitted_")
        panel = self._read(df)
        continued = self._check_follows(panel)
        state, known = self.state_.select(continued), self.known_ahead_
        h = int(panel.lengths.max())
        future = known_values(panel, known, h) if known else None
        forecast = self.fitted_.forecast(state, h, [], future)[""]
        return r_squared(panel, forecast, state.target_scale)

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
        check_is_fitted(self, "fitted_")
        if self.horizon_ > MOST_STEPS:
            raise ValueError(
                f"files hold models of a horizon of at most {MOST_STEPS:,} steps; that of this one "
                f"is {self.horizon_}. Fit with a smaller one, and predict with h"
            )
        write_file(path, *self._to_file())

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
        check_is_fitted(self, "fitted_")
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

    def _to_file(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Header and arrays of the file."""
        fitted, data = self.fitted_, self.fitted_.data
        # first the model, which refuses arguments in words of its class
        model_header, model_arrays = fitted.to_file(self.state_)
        data_header, data_arrays = data.to_file()
        last_times = self.state_.last_times
        header = {
            "class": type(self).__name__,
            **arguments_of(self),
            **data_header,
            "times_dtype": str(last_times.dtype),
            "fitted": model_header,
        }
        common = {"last_times": last_times.astype("int64"), **data_arrays}
        return header, model_arrays | common | self._history.arrays(data.n_targets)

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
        arguments, data = Arguments.of(forecaster), FittedData.from_file(header, arrays)
        last_times = last_times_from_file(header, arrays, data)
        forecaster._history = History.revived(arrays, header["times_dtype"], len(data.ids))
        with as_saved("params"):
            verbosity(arguments.verbose)
        rest = {name: array for name, array in arrays.items() if name not in COMMON_ARRAYS}
        forecaster.fitted_, forecaster.state_ = forecaster._from_file(
            arguments, data, header["fitted"], rest, last_times
        )
        return forecaster

    def _read_training(self, df: Any, arguments: Arguments) -> Panel:
        """Read a frame to fit to, with the columns of the calendar."""
        panel = self._read_frame(df, arguments, freq=arguments.freq, target=arguments.target)
        self._check_takes_columns(arguments)
        features = calendar_features(arguments.calendar, panel.layout)
        warn_of_short_calendar(panel, features)
        return with_calendar(panel, features)

    def _fit_to(self, panel: Panel, arguments: Arguments, *given: Any) -> Self:
        """Fit to a panel that has been read; what was fitted before is replaced at the end.

        `given` are values that a class takes in place of estimates.
        """
        self._check(arguments, panel)
        data = FittedData.of(panel, arguments)
        fitted, state = self._fit_panel(arguments, data, panel, *given)
        self.fitted_, self.state_, self._history = fitted, state, History.of(panel)
        return self

    def _check(self, arguments: Arguments, panel: Panel) -> None:
        """Refuse arguments and data that the class cannot use, before anything is estimated."""
        self._check_takes_columns(arguments)

    @property
    def arguments_(self) -> Arguments:
        """Constructor arguments of the last fit; as they stand where there was none."""
        fitted = vars(self).get("fitted_")
        return Arguments.of(self) if fitted is None else fitted.arguments

    @property
    def horizon_(self) -> int:
        """Steps that `predict` gives without h."""
        return self._fitted_model().horizon

    @property
    def freq_(self) -> str | int:
        """Frequency of the data: a pandas alias, or the step of an integer index."""
        return self._fitted_model().data.freq

    @property
    def known_ahead_(self) -> list[Any]:
        """Exogenous columns whose future is known, those of the calendar last."""
        return list(self._fitted_model().data.known_ahead)

    @property
    def static_(self) -> list[Any]:
        """Exogenous columns that are constant within each series."""
        return list(self._fitted_model().data.static)

    @property
    def calendar_(self) -> tuple[str, ...]:
        """Cycles of the calendar that enter the model."""
        return self._fitted_model().data.calendar

    @property
    def n_features_in_(self) -> int:
        """Columns of the frames: targets and exogenous ones."""
        data = self._fitted_model().data
        return data.n_targets + len(data.given_columns)

    @property
    def interval_guarantee_(self) -> str:
        """Guarantee of prediction intervals, and its assumptions."""
        return self._fitted_model().guarantee

    def _fitted_model(self) -> FittedModel[S]:
        check_is_fitted(self, "fitted_")
        return self.fitted_

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
        layout = self.fitted_.data.layout
        forecasts = honest_intervals(forecasts, levels, zeros, layout, ids)
        frame = write_frame(layout, ids, times, forecasts, model=self.column_name, cutoffs=cutoffs)
        if levels and isinstance(frame, pd.DataFrame):
            frame.attrs["guarantee"] = self.interval_guarantee_
        return frame

    def _check_takes_columns(self, arguments: Arguments) -> None:
        """Refuse kinds of columns that the class has no use for."""
        calendar, static = arguments.calendar, arguments.static
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

    def _read(self, df: Any) -> Panel:
        """Read a frame in the shape of the data fitted to."""
        data, arguments = self.fitted_.data, self.fitted_.arguments
        panel = self._read_frame(
            df, arguments, freq=data.freq, exog=data.given_columns, layout=data.layout
        )
        return data.complete(panel)

    def _read_frame(self, df: Any, arguments: Arguments, **shape: Any) -> Panel:
        missing = choice("missing", arguments.missing, self.legal_missing)
        return read_panel(
            df, id_col=arguments.id_col, time_col=arguments.time_col, missing=missing, **shape
        )

    def _state_after(self, X: Any) -> S:
        """State after a frame, by default after the rows seen so far."""
        return self.state_ if X is None else self._filter(self._read(X))

    def _filter(self, panel: Panel) -> S:
        """State after the rows of a panel; a class may know its series by those seen so far."""
        return self.fitted_.filter(panel)

    def _variance_frame(self, h: int | None, X: Any, **options: Any) -> Any:
        check_is_fitted(self, "fitted_")
        fitted: Any = self.fitted_  # one that has `variances`
        h, data = fitted.steps("predict_variance", h), fitted.data
        state = self._state_after(X)
        variances, times = fitted.variances(state, h, **options), data.times_ahead(state, h)
        return write_frame(data.layout, state.ids, times, {"": variances}, model="variance")

    def _at(self, state: S, history: History | None = None) -> Self:
        """Same fitted forecaster after other rows of its series, the last ones in `history`."""
        other = copy.copy(self)
        other.state_, other._history = state, History.empty() if history is None else history
        return other

    def _check_follows(self, panel: Panel) -> np.ndarray:
        """Numbers of the series that the rows of a panel continue."""
        data = self.fitted_.data
        check_continues(panel, data.ids, self.state_.last_times, data.freq)
        data.check_static_unchanged(panel)
        return data.ids.get_indexer(panel.ids)


def _names_columns(value: Any) -> bool:
    """Whether an argument asks for columns; frames and arrays have no truth value."""
    return value is not None and (not isinstance(value, bool | str | Sequence) or bool(value))
