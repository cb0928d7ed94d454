"""Optional methods of forecasters: paths, variances, covariances, components, matrices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import update_wrapper
from types import MethodType
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
import pandas as pd

from tsrnn.contract._checks import check_steps_fit, choice, positive_integer, seed_of
from tsrnn.contract._support import paths_within
from tsrnn.data import quote, write_frame, write_paths
from tsrnn.models import MODELS, model_class

F = TypeVar("F", bound=Callable[..., Any])
VARIANCES_OF = ("residual", "forecast")


def offered_by_some(function: F) -> F:
    """Decorate a base method that only classes with its name in `offers` have.

    A class that overrides the method has it as well. For other classes `hasattr` is False, and the
    error lists the classes that have it.
    """
    return cast(F, _OfferedMethod(function))


def classes_with(method: str) -> list[str]:
    """Return the names of the package's forecasters that have a method, sorted."""
    classes = (model_class(name) for name in sorted(MODELS))
    return [cls.__name__ for cls in classes if hasattr(cls, "offers") and _has(cls, method)]


class _NotOfferedError(AttributeError):
    """Error that lists the classes with the method, imported only if the message is read."""

    def __init__(self, cls: str, method: str) -> None:
        super().__init__(cls, method)

    def __str__(self) -> str:
        cls, method = self.args
        return f"{cls} has no {method}; those that have it are {', '.join(classes_with(method))}"


class _OfferedMethod:
    """Descriptor of `offered_by_some`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        update_wrapper(cast(Any, self), function)  # sphinx reads the docstring from here

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self.function
        if not _has(owner, self.function.__name__):
            raise _NotOfferedError(owner.__name__, self.function.__name__)
        return MethodType(self.function, instance)


def _has(cls: Any, method: str) -> bool:
    first = next((vars(base)[method] for base in cls.__mro__ if method in vars(base)), None)
    return method in cls.offers if isinstance(first, _OfferedMethod) else first is not None


class OfferedMethods:
    """Mixin of `Forecaster` with the methods that a class lists in `offers`.

    Those of other classes raise an AttributeError that names the classes that have them.
    """

    offers: ClassVar[frozenset[str]] = frozenset()
    column_name: ClassVar[str]
    _fitted_model: Callable[[], Any]
    _state_after: Callable[[Any, Any], Any]
    _state_and_limits: Callable[[Any, Any], Any]
    _component_frame: Callable[..., Any]
    _read: Callable[[Any], Any]
    state_: Any

    @offered_by_some
    def sample_paths(
        self,
        n: int = 100,
        h: int | None = None,
        X: Any = None,
        X_future: Any = None,
        random_state: Any = None,
        *,
        ids: Any = None,
    ) -> Any:
        """Draw sample paths from the joint distribution of the forecasts.

        Errors are dependent across the steps of a path as in the model, which gives quantiles of
        sums or maxima over steps. Paths include the uncertainty of parameters as far as the model's
        own intervals do. Conformal intervals are not sampled.

        A path of a recurrent forecaster is the forecast plus the errors at all steps of one origin
        of the validation part, scaled by the local spread. With a learned distribution, errors are
        its quantiles at the ranks of these errors. Independent targets are drawn independently. A
        path of a classical model continues the state of the series with innovations from the
        model's distribution. At each step, paths have the guarantee of the model's intervals. They
        lie in the support of the target; counts are rounded.

        Parameters
        ----------
        n : int, default 100
            Number of paths per series.
        h : int, optional
            Number of steps; `horizon_` by default, which recurrent forecasters cannot exceed.
        X, X_future : frame, optional
            As in `predict`.
        random_state : int, numpy random generator or None
            Source of randomness; by default that of the fit.
        ids : id or list of ids, optional
            Series of a long frame, as in `predict`. With the same seed, another selection gives
            other paths.

        Returns
        -------
        frame
            Frame of `predict` with a column ``path`` from 1 to n, path by path.

        Raises
        ------
        ValueError
            If h is too large for the model, or no origin of the validation part of a recurrent
            forecaster has errors at all steps.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from tsrnn.linear import ARMA
        >>> y = pd.Series(np.random.default_rng(0).normal(size=100), name="y")
        >>> paths = ARMA(order=(1, 0), random_state=0).fit(y).sample_paths(50, h=3)
        >>> paths.groupby("path")["y"].sum().shape
        (50,)
        """
        fitted: Any = self._fitted_model()  # has `simulate`, which FittedModel does not declare
        n, h = positive_integer("n", n), fitted.steps("sample_paths", h)
        (state, limits, _), data = self._state_and_limits(X, ids), fitted.data
        check_steps_fit(h, len(state.ids), n * data.n_targets, f"n={n} paths of ")
        future = data.read_future(X_future, state.ids, state.last_times, h)
        given = fitted.arguments.random_state if random_state is None else random_state
        rng = np.random.default_rng(seed_of(given))
        paths = paths_within(fitted.simulate(state, h, n, future, rng), limits.supports)
        times = data.times_ahead(state, h)
        return write_paths(data.layout, state.ids, times, paths, model=self.column_name)

    @offered_by_some
    def predict_variance(
        self, h: int | None = None, X: Any = None, *, of: str = "residual", ids: Any = None
    ) -> Any:
        """Forecast the variance of residuals or of forecast errors.

        Parameters
        ----------
        h : int, optional
            Number of steps; `horizon_` by default.
        X : frame, optional
            Data after which to forecast; by default the data seen so far.
        of : {"residual", "forecast"}
            Conditional variance of the residual at the step, or of the error of the forecast of y,
            to which earlier residuals contribute through lags of the mean. Both are equal at the
            first step, and without such lags.
        ids : id or list of ids, optional
            Series of a long frame to forecast, as in `predict`.

        Returns
        -------
        frame
            Variances in the shape of the data; a column ``variance`` in a long frame.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from tsrnn.linear import CCC
        >>> y = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=["a", "b"])
        >>> CCC().fit(y).predict_variance(h=3).shape
        (3, 2)
        """
        return self._variance_frame(h, X, ids, of)

    @offered_by_some
    def predict_covariances(
        self, h: int | None = None, X: Any = None, *, of: str = "residual"
    ) -> Any:
        """Forecast variances and covariances of residuals or of forecast errors.

        Parameters
        ----------
        h : int, optional
            Number of steps; `horizon_` by default.
        X : frame, optional
            Data after which to forecast; by default the data seen so far.
        of : {"residual", "forecast"}
            As in `predict_variance`.

        Returns
        -------
        frame
            One row per time and pair of targets, in the library of the data.
        """
        raise NotImplementedError

    @offered_by_some
    def components(self, df: Any = None) -> Any:
        """Return level, trend and season after every row."""
        raise NotImplementedError

    @offered_by_some
    def effect_curves(self) -> pd.DataFrame:
        """Return the effects of columns over their values and by lag."""
        raise NotImplementedError

    @offered_by_some
    def plot_components(
        self,
        X: Any = None,
        h: int | None = None,
        X_future: Any = None,
        *,
        series: Any = None,
        target: Any = None,
        last: int | None = None,
        n: int = 8,
        ax: Any = None,
    ) -> np.ndarray:
        """Plot `components` of one series and its forecast, one panel each.

        The horizon is shaded; bands have level 80 percent, 1.28 standard errors to either side.

        Parameters
        ----------
        X, h, X_future
            As in `components`.
        series : id, optional
            Series of a long frame; the first by default.
        target : str, optional
            Target to draw; the first by default.
        last : int, optional
            Rows of the data to draw; by default all that the model keeps.
        n : int, default 8
            Number of columns to draw, those with the largest effects.
        ax : sequence of matplotlib Axes, optional
            Where to draw, one a panel; a new figure by default.

        Returns
        -------
        ndarray of matplotlib Axes, of shape (panels,)

        Raises
        ------
        ValueError
            If the series or target is unknown, or as in `components`.

        Examples
        --------
        >>> from tsrnn import ParaRNNForecaster
        >>> from tsrnn.datasets import load_nile
        >>> axes = ParaRNNForecaster(horizon=4).fit(load_nile()).plot_components()
        >>> [ax.get_ylabel() for ax in axes]
        ['Data and fit', 'Level', 'Trend', 'Cycle']
        """
        from tsrnn.plotting import plot_components  # matplotlib is loaded when something is drawn

        layout = replace(self._fitted_model().data.layout, backend="pandas")
        if layout.time_kind == "datetime":  # an axis of dates, however the data write them
            layout = replace(layout, time_dtype="datetime64[ns]")
        if layout.id_col is not None and series is None:
            series = (self.state_ if X is None else self._read(X)).ids[0]
        ids = None if series is None else [series]
        frame = self._component_frame(X, h, X_future, ids, layout)
        frame = _of_target(frame, layout.target_names, target)
        return plot_components(frame, ax, last=last, n=n)

    @offered_by_some
    def plot_effects(
        self, columns: Any = None, *, target: Any = None, n: int = 8, ax: Any = None
    ) -> np.ndarray:
        """Plot `effect_curves`: the effect of each column over its values, and by lag.

        Bands are pointwise, of level 80 percent. Marks on the axis are quantiles of the column from
        5 to 95 percent.

        Parameters
        ----------
        columns : str or list of str, optional
            Columns to draw.
        target : str, optional
            Target to draw; the first by default.
        n : int, default 8
            Number of columns to draw if none are named, those with the largest effects.
        ax : sequence of matplotlib Axes, optional
            Where to draw, one a panel; a new figure by default.

        Returns
        -------
        ndarray of matplotlib Axes, of shape (panels,)

        Raises
        ------
        ValueError
            If a column has no effect, or as in `effect_curves`.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from tsrnn import ParaRNNForecaster
        >>> heat = np.random.default_rng(0).normal(size=60)
        >>> df = pd.DataFrame({"sales": 9 + 2 * heat, "heat": heat})
        >>> model = ParaRNNForecaster(target="sales", known_ahead="heat").fit(df)
        >>> [ax.get_xlabel() for ax in model.plot_effects()]
        ['heat']
        """
        from tsrnn.plotting import plot_effects  # matplotlib is loaded when something is drawn

        layout = self._fitted_model().data.layout
        frame = _of_target(self.effect_curves(), layout.target_names, target)
        return plot_effects(frame, columns, ax, n=n)

    @offered_by_some
    def recurrent_blocks(self) -> Any:
        """Return the recurrent matrices of the fitted model, for `tsrnn.recurrence_features`.

        Returns
        -------
        list
            Stacks of square matrices by layer, or dicts of them by name.
        """
        raise NotImplementedError

    def _variance_frame(self, h: int | None, X: Any, ids: Any, of: str, **options: Any) -> Any:
        if choice("of", of, VARIANCES_OF) != VARIANCES_OF[0]:  # a model of one's own may have one
            options["of"] = of
        fitted: Any = self._fitted_model()  # one that has `variances`
        h, data = fitted.steps("predict_variance", h), fitted.data
        state = self._state_after(X, ids)
        check_steps_fit(h, len(state.ids), data.n_targets)
        variances, times = fitted.variances(state, h, **options), data.times_ahead(state, h)
        return write_frame(data.layout, state.ids, times, {"": variances}, model="variance")


def _of_target(frame: pd.DataFrame, targets: Sequence[Any], target: Any) -> pd.DataFrame:
    """Return the rows of one target, the first by default."""
    target = targets[0] if target is None else target
    if not isinstance(target, Hashable) or target not in {*targets}:
        raise ValueError(f"target must be one of {quote(list(targets))}; got {quote(target)}")
    return frame if len(targets) == 1 else frame[frame["target"] == target]
