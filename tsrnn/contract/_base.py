"""The contract of all forecasters: frames in, frames out, arguments checked once."""

from __future__ import annotations

import copy
import numbers
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from tsrnn.contract._checks import (
    check_complete_cases,
    check_steps_fit,
    choice,
    flag,
    positive_integer,
)
from tsrnn.contract._data_summary import DataSummary
from tsrnn.contract._estimator import Arguments
from tsrnn.contract._fitted import FittedModel, S
from tsrnn.contract._fitted_data import (
    FittedData,
    known_values,
    series_numbers,
    warn_of_short_calendar,
    with_calendar,
    with_holidays,
    without_constants,
)
from tsrnn.contract._intervals import apply_limits, check_levels
from tsrnn.contract._offered import OfferedMethods
from tsrnn.contract._parameters import Parameters, check_is_fitted
from tsrnn.contract._plot import History, draw_forecasts
from tsrnn.contract._rolling import Origins, r_squared
from tsrnn.contract._saved import SavedForecaster
from tsrnn.contract._support import (
    ZERO_LEVELS,
    Limits,
    warn_of_cut,
    widened_supports,
    within_supports,
    zero_probability,
)
from tsrnn.contract._warnings import IntervalWarning, recorded
from tsrnn.data import (
    Holidays,
    Layout,
    MissingValuesWarning,
    Panel,
    array_frame,
    calendar_features,
    check_continues,
    is_array,
    quote,
    quoted,
    read_panel,
    times_of_future,
    warn_user,
    with_later_rows,
    without_gaps,
    write_frame,
)

# Input of a fit: arguments, data, panel. Result: fitted model, and state after the last rows.
Fit = tuple[Arguments, FittedData, Panel]
Result = tuple[FittedModel[S], S]


class Forecaster(OfferedMethods, SavedForecaster[S], Parameters):
    """Abstract base of all forecasters.

    An estimator stores constructor arguments. `fit` reads them once and sets `fitted_`, an
    immutable `FittedModel`, and `state_`, the state of the series, which `update` replaces.
    Forecasts use only these two. A subclass adds its own arguments and implements `_fit_panel` and
    `_from_file`, which return both, and `summary`.

    Parameters
    ----------
    random_state, verbose
        See `CommonArguments`.
    horizon, target, known_ahead, static, calendar, holidays, id_col, time_col, freq
        See `CommonArguments`.
    missing, strict, support
        See `CommonArguments`.

    Attributes
    ----------
    fitted_ : FittedModel
        Estimates, and everything else that forecasts need besides the state.
    state_ : SeriesState
        State of the series after their last rows.
    arguments_ : Arguments
        Constructor arguments of the fit; later changes by `set_params` act at the next fit.
    horizon_ : int
        Default number of steps of `predict`.

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

    column_name: ClassVar[str]  # name of the forecasts in a long frame
    takes_exog: ClassVar[bool] = True
    takes_static: ClassVar[bool] = False

    @abstractmethod
    def _fit_panel(
        self, arguments: Arguments, data: FittedData, panel: Panel
    ) -> tuple[FittedModel[S], S]:
        """Return the fitted model and the state of the series after their last rows.

        `arguments` are a record; those of the estimator may have changed since.
        """

    @abstractmethod
    def summary(self) -> Any:
        """Return a page on the fitted model and its fit, to be printed."""

    def fit(self, df: Any, y: None = None) -> Self:
        """Fit to the series of a frame.

        Parameters
        ----------
        df : pandas.Series, pandas.DataFrame, polars.DataFrame or path
            Wide: time in the index, one column per variable. Long: columns `unique_id`, `ds`, `y`
            (renamed by `id_col`, `time_col`, `target`); other columns are exogenous. A path names
            a parquet or CSV file, a folder of them, or a pattern; parquet files are read in
            blocks.
        y : None
            Ignored, for scikit-learn; targets are columns of `df`.

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
        self,
        X: Any = None,
        h: int | None = None,
        level: Any = None,
        X_future: Any = None,
        *,
        ids: Any = None,
        align: bool = False,
    ) -> Any:
        """Forecast.

        Parameters
        ----------
        X : frame, path or int, optional
            Data after which to forecast, in the shape of the data fitted to; series may be new.
            By default the data seen so far. An integer is read as `h`.
        h : int, optional
            Number of steps; `horizon_` by default.
        level : float or list of float, optional
            Coverage of prediction intervals in percent, for example ``[80, 95]``.
        X_future : frame, optional
            Columns of `known_ahead` for the next h steps of every forecast series. Other columns
            are ignored with a warning.
        ids : id or list of ids, optional
            Series of a long frame to forecast, in this order; all by default. Forecasts do not
            depend on the selection.
        align : bool, default False
            Forecast the h steps after the last timestamp of all series. A series that ends earlier
            is forecast further, and steps up to the common end are dropped. `X_future` still
            begins after the end of each series. By default each series continues from its own
            end.

        Returns
        -------
        frame
            Forecasts in the shape of the data. Intervals are columns such as ``y-lo-80`` and
            ``y-hi-80``; ``attrs["guarantee"]`` of a pandas frame is `interval_guarantee_`.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError, ValueError
            If an argument cannot be used; the message says what to do.

        Warns
        -----
        tsrnn.contract.IntervalWarning
            If intervals have zero width, were widened to contain the zeros of an intermittent
            series, rest on few errors, or have no guarantee at later steps.

        Examples
        --------
        >>> import pandas as pd
        >>> from tsrnn.baselines import Naive
        >>> days = pd.date_range("2024-01-01", periods=3)
        >>> df = pd.DataFrame({"unique_id": list("aaabbb"), "ds": [*days, *days], "y": range(6)})
        >>> Naive().fit(df).predict(2, ids="b")
          unique_id         ds  Naive
        0         b 2024-01-04    5.0
        1         b 2024-01-05    5.0

        The series "a" ends a day before "b":

        >>> Naive().fit(df.drop(index=2)).predict(1, align=True)
          unique_id         ds  Naive
        0         a 2024-01-04    1.0
        1         b 2024-01-04    5.0
        """
        fitted = self._fitted_model()
        X, h = self._horizon_first(X, h)
        h = fitted.horizon if h is None else positive_integer("h", h)
        levels, aligned = check_levels(level), flag("align", align)
        state, limits, end = self._state_and_limits(X, ids)
        lags = fitted.data.steps_before(end, state.last_times) if aligned else None
        return self._forecast_frame(state, h, levels, X_future, limits, fitted.data.layout, lags)

    def predict_zero(
        self, h: int | None = None, X: Any = None, X_future: Any = None, *, ids: Any = None
    ) -> Any:
        """Forecast the probability that a count or binary target is zero.

        It is exact for models of counts. For other models of counts it is the probability of
        rounding to zero, from the forecast quantiles, to half a percent. For binary targets it is
        1 less the point forecast. Its guarantee is that of the intervals.

        Parameters
        ----------
        h : int, optional
            Number of steps; `horizon_` by default.
        X, X_future : frame, optional
            As in `predict`.
        ids : id or list of ids, optional
            Series of a long frame to forecast, as in `predict`.

        Returns
        -------
        frame
            Probabilities of the count and binary targets in the shape of the data; a column
            ``zero`` in a long frame.

        Raises
        ------
        ValueError
            If no target is a count or binary; see `support_`.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from tsrnn.baselines import Mean
        >>> sold = pd.Series(np.random.default_rng(0).poisson(0.5, 100), name="sold")
        >>> Mean().fit(sold).predict_zero(h=1).round(2).tolist()
        [0.42]
        """
        fitted = self._fitted_model()
        h = fitted.horizon if h is None else positive_integer("h", h)
        state, limits, _ = self._state_and_limits(X, ids)
        layout, chosen = fitted.data.layout, [support.whole for support in limits.supports]
        if not any(chosen):
            raise ValueError(
                "predict_zero needs a target whose values are whole; those of "
                f"{quoted(layout.target_names)} are of support {list(self.support_.values())}. "
                "Construct with support='count' or 'binary' and fit again"
            )
        with recorded(IntervalWarning):  # the user did not ask for these levels
            times, forecasts = self._steps_ahead(state, h, ZERO_LEVELS, X_future)
        probability = zero_probability(forecasts, limits.supports)
        exact = fitted.zero_probability(state, h)
        if exact is not None:
            probability = np.where(np.isnan(exact), probability, exact)
        probability = probability[..., chosen]
        names = tuple(n for n, whole in zip(layout.target_names, chosen, strict=True) if whole)
        return write_frame(
            layout, state.ids, times, {"": probability}, target_names=names, model="zero"
        )

    def predict_rolling(
        self, df: Any, h: int | None = None, step_size: int = 1, level: Any = None
    ) -> Any:
        """Forecast from many origins without refitting.

        `df` holds rows after the data. The first origin is the last known row, followed by every
        `step_size`-th row of `df` that has h rows after it. The forecaster does not change.
        Columns of `known_ahead` are taken from `df`. With ``missing="interpolate"`` gaps of `df`
        are filled, from both sides, before the first forecast.

        Recurrent forecasters need one pass over the data for all origins. Other forecasters go
        from origin to origin; `tsrnn.baselines` pass over all rows at each.

        Parameters
        ----------
        df : frame
            Rows after the last known ones, of all or some series.
        h : int, optional
            Number of steps; `horizon_` by default, which recurrent forecasters cannot exceed.
        step_size : int, default 1
            Rows between neighbouring origins.
        level : float or list of float, optional
            Coverage of prediction intervals in percent.

        Returns
        -------
        frame
            Frame of `predict` with a column ``cutoff``, the last known timestamp.

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
        h = self._fitted_model().steps("predict_rolling", h)
        step = positive_integer("step_size", step_size)
        levels = check_levels(level)
        panel = self._read_following(df)
        continued, fitted = self._check_follows(panel), self._fitted_with(panel)
        warn_of_cut(panel, fitted.data.supports, fitted.recognises_support)
        state = self.state_.select(continued)
        origins = Origins.of(panel, h, step)
        zeros = fitted.data.zero_shares[continued][origins.series]
        return self._written(
            state.ids[origins.series],
            origins.times(panel, h),
            fitted.rolling(state, panel, origins, h, levels),
            levels,
            Limits(zeros, fitted.data.supports),
            fitted.data.layout,
            origins.cutoffs(panel, state.last_times),
        )

    def update(self, df: Any) -> Self:
        """Update the state by new rows without refitting.

        The cost is one step per row. Parameters, scaling and intervals do not change. Values
        outside a recognised support widen it, with a warning.

        Parameters
        ----------
        df : frame or path
            Rows after the last known ones, of all or some series.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a series is unknown, its rows do not begin one step after its last, or a value lies
            outside the given support.
        """
        panel = self._read_following(df)
        continued, fitted = self._check_follows(panel), self._fitted_with(panel)
        known = fitted.data.supports
        supports = widened_supports(panel, known, fitted.recognises_support)
        if supports != known:
            fitted = fitted.with_supports(supports)
        if np.array_equal(continued, np.arange(len(self.state_.ids))):  # all, as they are ordered
            state = fitted.advance(self.state_, panel)
        else:
            advanced = fitted.advance(self.state_.select(continued), panel)
            state = self.state_.replaced(continued, advanced)
        history = self._history.followed_by(continued, panel)
        # Set together at the end, so that rows which raise leave the forecaster unchanged.
        self.fitted_, self.state_, self._history = fitted, state, history
        return self

    def score(self, df: Any, y: None = None) -> float:
        r"""Return the score of forecasts of the rows of `df`, which follow the data.

        .. math:: R^2 = 1 - \mathrm{MSE} / s^2

        averaged over series and targets; s is the standard deviation of the series in the training
        part. 1 is perfect, 0 as good as the mean.

        Parameters
        ----------
        df : frame or path
            Rows after the last known ones, of all series.
        y : None
            Ignored, for scikit-learn.
        """
        panel = self._read_following(df)
        continued, fitted = self._check_follows(panel), self._fitted_with(panel)
        state, known = self.state_.select(continued), fitted.data.known_ahead
        h = int(panel.lengths.max())
        future = known_values(panel, known, h) if known else None
        warn_of_cut(panel, fitted.data.supports, fitted.recognises_support)
        forecasts = within_supports(fitted.forecast(state, h, [], future), fitted.data.supports)
        return r_squared(panel, forecasts[""], state.target_scale)

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
        """Plot history, forecasts and intervals, one panel per series.

        Parameters
        ----------
        X : frame, path or int, optional
            Data to draw, and after which to forecast, as in `predict`; by default the last rows
            seen, up to 500 per series. An integer is read as `h`.
        h : int, optional
            Number of steps; `horizon_` by default.
        level : float, list of float or None, default 80
            Coverage of the intervals in percent; None draws none.
        X_future : frame, optional
            Columns of `known_ahead` for the next h steps of the series.
        series : id or list of ids, optional
            Series of a long frame to draw; by default the first, in at most four panels.
        columns : str or list of str, optional
            Targets to draw; all by default.
        last : int, optional
            Rows of the history to draw; by default four times h, and at least 40.
        ax : matplotlib Axes or sequence of them, optional
            One axes per panel; a new figure by default.

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
        self._fitted_model()
        X, h = self._horizon_first(X, h)
        return draw_forecasts(self, X, h, level, X_future, series, columns, last, ax)

    def _outlier_rows(self, state: Any, layout: Layout) -> pd.DataFrame | None:
        """Return outliers to mark in a plot; None if the forecaster does not detect them."""
        return None

    @staticmethod
    def _horizon_first(X: Any, h: int | None) -> tuple[Any, int | None]:
        """Return data and horizon; a number in the place of the data is the horizon."""
        if not isinstance(X, numbers.Number):
            return X, h
        if h is not None:
            raise ValueError(f"give the horizon once; got {quote(X)} and h={quote(h)}")
        return None, X  # type: ignore[return-value]

    def _read_training(self, df: Any, arguments: Arguments) -> Panel:
        """Read a training frame, and add columns of the calendar and of holidays."""
        panel = self._read_frame(df, arguments, freq=arguments.freq, target=arguments.target)
        self._check_takes_columns(arguments)
        if not self.keeps_missing_columns:
            check_complete_cases(panel)
            panel = panel.complete_cases()
        features = calendar_features(arguments.calendar, panel.layout)
        warn_of_short_calendar(panel, features)
        by_name = self._has_effects_by_holiday(arguments)
        holidays = Holidays.of(arguments.holidays, panel, by_name)
        complete = with_holidays(with_calendar(panel, features), holidays)
        return without_constants(complete, panel.exog_names) if self.takes_exog else complete

    def _has_effects_by_holiday(self, arguments: Arguments) -> bool:
        """Return True if each holiday has its own column, for models that shrink coefficients."""
        return False

    def _fit_to(self, panel: Panel, arguments: Arguments, *given: Any) -> Self:
        """Fit to a panel, and replace an earlier fit at the end.

        `given` are values that a class uses instead of estimates.
        """
        self._check(arguments, panel)
        data = FittedData.of(panel, arguments)
        fitted, state = self._fit_panel(arguments, data, panel, *given)
        fit = arguments, data, panel
        ((fitted, state),) = self._with_intervals([fit], [(fitted, state)], *given)
        self.fitted_, self.state_, self._history = fitted, state, History.of(panel)
        return self

    def _with_intervals(
        self, fits: Sequence[Fit], results: Sequence[Result[S]], *given: Any
    ) -> Sequence[Result[S]]:
        """Return the results with calibrated intervals, for classes that calibrate."""
        return results

    def _check(self, arguments: Arguments, panel: Panel) -> None:
        """Refuse arguments and data that the class cannot use, before estimation."""
        self._check_takes_columns(arguments)

    @property
    def arguments_(self) -> Arguments:
        """Constructor arguments of the last fit; before a fit, the current ones."""
        fitted = vars(self).get("fitted_")
        return Arguments.of(self) if fitted is None else fitted.arguments

    @property
    def horizon_(self) -> int:
        """Default number of steps of `predict`."""
        return self._fitted_model().horizon

    @property
    def freq_(self) -> str | int:
        """Frequency of the data: a pandas alias, or the step of an integer index."""
        return self._fitted_model().data.freq

    @property
    def data_summary_(self) -> DataSummary:
        """Series, rows and frequency of the data fitted to, and notes on their reading."""
        return DataSummary.of(self._fitted_model().data, self.state_.last_times)

    @property
    def known_ahead_(self) -> list[Any]:
        """Exogenous columns with a known future, then those of the calendar and of holidays."""
        data = self._fitted_model().data
        return list(data.layout.frame_names(data.known_ahead))

    @property
    def static_(self) -> list[Any]:
        """Exogenous columns that are constant within each series."""
        data = self._fitted_model().data
        return list(data.layout.frame_names(data.static))

    @property
    def calendar_(self) -> tuple[str, ...]:
        """Cycles of the calendar that enter the model."""
        return self._fitted_model().data.calendar

    @property
    def support_(self) -> dict[Any, Any]:
        """Support of each target, as named by the argument `support`."""
        data = self._fitted_model().data
        values = (support.value for support in data.supports)
        return dict(zip(data.layout.target_names, values, strict=True))

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the frames, targets and exogenous."""
        data = self._fitted_model().data
        return data.n_targets + len(data.given_columns)

    @property
    def interval_guarantee_(self) -> str:
        """Guarantee of prediction intervals, and its assumptions."""
        return self._fitted_model().guarantee

    def _fitted_model(self) -> FittedModel[S]:
        if "fitted_" not in vars(self):  # the check of scikit-learn takes as long as a forecast
            check_is_fitted(self, "fitted_")
        return self.fitted_

    def _forecast_frame(
        self,
        state: S,
        h: int,
        levels: list[float],
        X_future: Any,
        limits: Limits,
        layout: Layout,
        lags: np.ndarray | None = None,
    ) -> Any:
        """Return forecasts after a state as a frame; `limits` and `layout` as in `_written`.

        `lags` (S,) are steps of each series to forecast and drop before the h steps.
        """
        if lags is None or not lags.any():
            times, forecasts = self._steps_ahead(state, h, levels, X_future)
            return self._written(state.ids, times, forecasts, levels, limits, layout)
        times, forecasts = np.empty((len(lags), h), state.last_times.dtype), {}
        for lag in np.unique(lags).tolist():  # X_future need not reach further than h + lag
            at = np.flatnonzero(lags == lag)
            ahead, part = self._steps_ahead(state.select(at), h + lag, levels, X_future)
            times[at] = ahead[:, lag:]
            for name, values in part.items():
                shape = len(lags), h, values.shape[2]
                forecasts.setdefault(name, np.empty(shape))[at] = values[:, lag:]
        return self._written(state.ids, times, forecasts, levels, limits, layout)

    def _steps_ahead(
        self, state: S, h: int, levels: list[float], X_future: Any
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return times (S, h) and forecasts (S, h, C) by suffix of the steps after a state."""
        data = self.fitted_.data
        check_steps_fit(h, len(state.ids), data.n_targets * (1 + 2 * len(levels)))
        future = data.read_future(X_future, state.ids, state.last_times, h)
        # Times first, since steps beyond the calendar raise before the work of forecasting.
        times = times_of_future(X_future, state.ids, state.last_times, h, data.layout)
        return times, self.fitted_.forecast(state, h, levels, future)

    def _written(
        self,
        ids: pd.Index,
        times: np.ndarray,
        forecasts: dict[str, np.ndarray],
        levels: list[float],
        limits: Limits,
        layout: Layout,
        cutoffs: np.ndarray | None = None,
    ) -> Any:
        """Return forecasts (S, h, C) by suffix as a frame, within limits and with their guarantee.

        `limits` are of the targets (S, C); other arguments as in `tsrnn.data.write_frame`.
        """
        forecasts = apply_limits(forecasts, levels, limits, layout, ids)
        frame = write_frame(layout, ids, times, forecasts, model=self.column_name, cutoffs=cutoffs)
        if levels and isinstance(frame, pd.DataFrame):
            frame.attrs["guarantee"] = self.interval_guarantee_
        return frame

    def _check_takes_columns(self, arguments: Arguments) -> None:
        """Refuse calendar, holidays and static columns that the class cannot use."""
        static = arguments.static
        for name in ("calendar", "holidays"):
            value = getattr(arguments, name)
            if _names_columns(value) and not self.takes_exog:
                raise ValueError(
                    f"{type(self).__name__} takes no exogenous columns, and so no {name}; got "
                    f"{name}={value!r}. Leave it out, or take a forecaster that does, such "
                    "as ParaRNNForecaster, ARMA or SARIMAX"
                )
        if _names_columns(static) and not self.takes_static:
            raise ValueError(
                f"{type(self).__name__} takes no static columns; got static={quote(static)}. "
                "Within a series they are part of its mean, so that they help only models which "
                "share parameters between series: ParaRNNForecaster, LEMForecaster, "
                "LRUForecaster, NewtonForecaster. Leave static out and drop these columns"
            )

    def _read_following(self, df: Any) -> Panel:
        """Read rows after the last known ones; rows of an array continue the count."""
        data = self._fitted_model().data
        if is_array(df) and data.layout.backend == "numpy":
            df = array_frame(df, start=int(data.times_ahead(self.state_, 1)[0, 0]))
        return self._read(df)

    def _read(self, df: Any) -> Panel:
        """Read a frame in the shape of the data fitted to."""
        data, arguments = self.fitted_.data, self.fitted_.arguments
        panel = self._read_frame(
            df, arguments, freq=data.freq, exog=data.given_columns, layout=data.layout
        )
        return data.complete(panel if self.keeps_missing_columns else panel.complete_cases())

    def _read_frame(self, df: Any, arguments: Arguments, **shape: Any) -> Panel:
        missing = choice("missing", arguments.missing, self.legal_missing)
        panel = read_panel(
            df, id_col=arguments.id_col, time_col=arguments.time_col, missing=missing,
            strict=flag("strict", arguments.strict), **shape,
        )  # fmt: skip
        if missing == "auto" and not self._skips_missing(arguments):
            return self._interpolated(panel, first="layout" not in shape)
        return panel

    def _interpolated(self, panel: Panel, first: bool) -> Panel:
        """Interpolate missing values, with a warning, for a model that cannot skip them.

        `first` marks the data of the fit, whose ends without values are dropped.
        """
        panel, done = without_gaps(panel, cut=first)
        if not done:
            return panel
        sentence = f"{type(self).__name__} has no place for missing values: {done}"
        warn_user(f'{sentence}. With missing="error" they are refused', MissingValuesWarning)
        return replace(panel, notes=(*panel.notes, f"{sentence}."))

    def _skips_missing(self, arguments: Arguments) -> bool:
        """Return True if the model skips missing values."""
        return "keep" in self.legal_missing

    def _state_after(self, X: Any, ids: Any = None) -> S:
        """Return the state after a frame (default: after all rows seen), of all or some series."""
        return self._state_and_limits(X, ids)[0]

    def _state_and_limits(self, X: Any, ids: Any) -> tuple[S, Limits, Any]:
        """Return the state of `_state_after`, the limits of forecasts, and the last timestamp.

        The timestamp is the last of all series, whatever `ids` selects.
        """
        data = self.fitted_.data
        if ids is not None and data.layout.id_col is None:
            raise ValueError(
                f"ids choose series of a long frame with a column of ids; got ids={quote(ids)} "
                "for data without one, which are one series. Leave ids out and take columns of the "
                f"forecasts, which are named after {quote(list(data.layout.target_names))}"
            )
        if X is not None:
            panel = self._read(X)
            end = panel.last_times.max()
            if ids is not None:
                panel = panel.select(panel.ids[series_numbers(panel.ids, ids, "ids")])
            return self._filter(panel), self.fitted_.limits(panel), end
        end = self.state_.last_times.max()
        if ids is None:
            return self.state_, Limits(data.zero_shares, data.supports), end
        series = series_numbers(self.state_.ids, ids, "ids")
        limits = Limits(data.zero_shares[series], data.supports)
        return self.state_.select(series), limits, end

    def _filter(self, panel: Panel) -> S:
        """Return the state after the rows of a panel; subclasses may use the current state."""
        return self.fitted_.filter(panel)

    def _at(self, state: S, history: History | None = None) -> Self:
        """Return a copy of the forecaster in another state, with the rows of `history` to plot."""
        other = copy.copy(self)
        other.state_, other._history = state, History.empty() if history is None else history
        return other

    def _fitted_with(self, panel: Panel) -> FittedModel[S]:
        """Return the fitted model, with the rows of a panel in its layout if steps are rows."""
        fitted = self._fitted_model()
        if not fitted.data.layout.observed:
            return fitted
        layout = with_later_rows(fitted.data.layout, self.state_.last_times, panel)
        return fitted.with_layout(layout)

    def _check_follows(self, panel: Panel) -> np.ndarray:
        """Return the positions of the series that a panel continues."""
        data = self.fitted_.data
        continued = check_continues(panel, data.ids, self.state_.last_times, data.layout.grid)
        data.check_static_unchanged(panel)
        return continued


def _names_columns(value: Any) -> bool:
    """Return True if an argument names columns; arrays, without a truth value, count as names."""
    return value is not None and (not isinstance(value, bool | str | Sequence) or bool(value))
