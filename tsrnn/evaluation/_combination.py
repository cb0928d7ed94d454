"""Combination of forecasters: weighted means of their forecasts, and rules for the weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from tsrnn.contract import (
    MOST_STEPS,
    Arguments,
    Classical,
    DamagedFileError,
    FittedData,
    FittedModel,
    Forecaster,
    Kind,
    Origins,
    anything,
    as_saved,
    by_name,
    check_arrays,
    fit_panels_together,
    integer,
    most_fits_together,
    optional,
    positive_integer,
    record,
    refuse,
    truth,
    warn_user,
    with_shared_arguments,
)
from tsrnn.data import Panel
from tsrnn.evaluation._models import known_ahead, named_models, panel_shown
from tsrnn.evaluation._windows import make_plan

# Weight of the equation that weights sum to one, against errors of size one: its residual is of
# the order of the inverse square, 1e-8, and as many digits are left for the errors.
_HEAVY = 1e4
# Fields of a file beside those of every forecaster.
FITTED: dict[str, Kind] = {
    "horizon": integer(1, MOST_STEPS),
    "members": by_name(by_name(anything)),
    "horizons": by_name(anything),
    "validated": truth,
}


@dataclass(frozen=True, eq=False)
class CombinedState:
    """States of all members after the same rows."""

    members: tuple[Any, ...]

    @property
    def ids(self) -> pd.Index:
        """Names of the series, (S,)."""
        return self.members[0].ids

    @property
    def last_times(self) -> np.ndarray:
        """Last times of the series, (S,)."""
        return self.members[0].last_times

    @property
    def target_scale(self) -> np.ndarray:
        """Standard deviations (S, C) in the data fitted to."""
        return self.members[0].target_scale

    def select(self, series: np.ndarray) -> CombinedState:
        """State of the series of these numbers, in that order."""
        return CombinedState(tuple(member.select(series) for member in self.members))

    def replaced(self, series: np.ndarray, new: CombinedState) -> CombinedState:
        """Copy in which the series of these numbers are those of `new`."""
        pairs = zip(self.members, new.members, strict=True)
        return CombinedState(tuple(old.replaced(series, newer) for old, newer in pairs))


@with_shared_arguments
class Combination(Classical[CombinedState]):
    r"""Weighted mean of the forecasts of several forecasters.

    .. math:: \hat y_{t+k} = \sum_i w_i \hat y_{i, t+k}, \qquad \sum_i w_i = 1

    The same weights for all series, targets and steps. Those that are estimated come from the
    errors of rolling forecasts of the last `n_windows` horizons of the data, divided by the
    standard deviation of the series; for them the members are fitted once more, to the rows
    before. Ends of intervals are averaged like the forecasts (quantile averaging).

    Parameters
    ----------
    forecasters : mapping of str to forecaster, or sequence of forecasters
        Of tsrnn. Their `horizon` is that of the combination, which also reads the data.
    weights : {"equal", "inverse-error", "stacked"}, mapping or sequence of float
        The mean; proportional to 1 / MSE (Bates and Granger, 1969); not negative, summing to
        one, with the least squared error of the combination (Breiman, 1996); or given, for the
        members by name or in their order.
    n_windows : int, default 5
        Horizons of which errors are taken to estimate weights.
    known_ahead : str or list of str, optional
        Given to members that name the same columns; one that takes no exogenous columns is not
        shown them.
    **shared
        As in all forecasters.

    Attributes
    ----------
    forecasters_ : dict
        The fitted members, copies: what is done to them does not reach the combination.
    weights_ : Series
    validation_ : Series or None
        Root mean squared scaled error of each member, and of the combination with these weights
        on the same errors, which flatters it.

    Notes
    -----
    Equal weights are hard to beat where there are few errors to estimate others from ("forecast
    combination puzzle", Stock and Watson, 2004). Quantile averages of calibrated intervals tend
    to cover too much (Lichtendahl et al., 2013).

    References
    ----------
    Bates, J. M., Granger, C. W. J. (1969). The combination of forecasts.
    Breiman, L. (1996). Stacked regressions. Machine Learning.
    Lichtendahl, K. C., Grushka-Cockayne, Y., Winkler, R. L. (2013). Is it better to average
    probabilities or quantiles? Management Science.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn import ARMA
    >>> from tsrnn.evaluation import Combination
    >>> y = pd.Series(np.random.default_rng(0).normal(size=120).cumsum())
    >>> members = {"AR": ARMA(order=(1, 0)), "ARI": ARMA(order=(1, 1, 0))}
    >>> model = Combination(members, weights="stacked", horizon=4).fit(y)
    >>> bool(np.isclose(model.weights_.sum(), 1))
    True
    """

    column_name: ClassVar[str] = "Combination"
    takes_exog: ClassVar[bool] = True  # of its members those that do
    not_saved: ClassVar[tuple[str, ...]] = ("forecasters",)  # they are parts of the file
    fitted_: FittedCombination

    def __init__(
        self,
        forecasters: Any,
        weights: Any = "equal",
        n_windows: int = 5,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.forecasters = forecasters
        self.weights = weights
        self.n_windows = n_windows

    @property
    def forecasters_(self) -> dict[str, Forecaster]:
        """The fitted members, after the rows that the combination has seen; copies of them."""
        check_is_fitted(self, "fitted_")
        pairs = zip(self.fitted_.members.items(), self.state_.members, strict=True)
        return {name: member._at(state, self._history) for (name, member), state in pairs}

    @property
    def weights_(self) -> pd.Series:
        """Weights of the members, which sum to one."""
        check_is_fitted(self, "fitted_")
        return pd.Series(self.fitted_.weights.copy(), list(self.fitted_.members))

    @property
    def validation_(self) -> pd.Series | None:
        """Errors of the members and of the combination; None where weights were not estimated."""
        check_is_fitted(self, "fitted_")
        rmse = self.fitted_.validation
        names = [*self.fitted_.members, "Combination"]
        return None if rmse is None else pd.Series(rmse.copy(), names)

    def summary(self) -> str:
        """Weights of the members, and their errors where weights were estimated."""
        table, validation = pd.DataFrame({"weight": self.weights_}), self.validation_
        if validation is not None:
            table = table.reindex(validation.index)
            table["RMSE of validation, scaled"] = validation
        rule = self.arguments_.weights
        lines = [
            f"Combination of {len(self.weights_)} forecasters, weights: "
            f"{rule if isinstance(rule, str) else 'given'}",
            table.to_string(float_format="{:.4f}".format, na_rep="-"),
        ]
        if validation is not None:
            lines.append(
                f"Errors of {self.arguments_.n_windows} windows of {self.horizon_} steps, over the "
                "standard deviation of the series;\nthat of the combination is on the errors from "
                "which its weights come."
            )
        return "\n".join(lines)

    def _fit_panel(
        self, arguments: Arguments, data: FittedData, panel: Panel
    ) -> tuple[FittedCombination, CombinedState]:
        (fitted,) = self._fit_panels([(arguments, data, panel)])
        return fitted

    def _fit_panels(
        self, fits: Sequence[tuple[Arguments, FittedData, Panel]]
    ) -> list[tuple[FittedCombination, CombinedState]]:
        arguments, data, _ = fits[0]
        horizon, panels = self._horizon(arguments, data.layout), [panel for _, _, panel in fits]
        unfitted = members_of(arguments, horizon)
        given, validation = given_weights(arguments, list(unfitted)), None
        weights: list[Any] = [given] * len(fits)
        errors: list[np.ndarray] = []
        if given is None:
            errors = rolling_errors(panels, unfitted, horizon, arguments.n_windows)
            weights = [_RULES[arguments.weights](of_panel) for of_panel in errors]
        fitted = {name: _fit_members(name, member, panels) for name, member in unfitted.items()}
        results = []
        for i, (arguments, data, _) in enumerate(fits):
            members = {name: of_panels[i] for name, of_panels in fitted.items()}
            if errors:
                both = np.column_stack([errors[i], errors[i] @ weights[i]])
                validation = np.sqrt((both**2).mean(0))
            model = FittedCombination(arguments, data, horizon, members, weights[i], validation)
            states = CombinedState(tuple(member.state_ for member in members.values()))
            results.append((model, states))
        return results

    def _fits_together(self) -> int:
        members = map(most_fits_together, named_models(Arguments.of(self).forecasters).values())
        return min((most for most in members if most > 1), default=1)

    def _filter(self, panel: Panel) -> CombinedState:
        # a member may know its series by the rows that the combination has seen, not by its own
        pairs = zip(self.fitted_.members.values(), self.state_.members, strict=True)
        return CombinedState(tuple(m._at(s)._filter(panel_shown(m, panel)) for m, s in pairs))

    @classmethod
    def _inner_arguments(
        cls, header: dict[str, Any], arrays: dict[str, np.ndarray], restore: Any
    ) -> dict[str, Any]:
        record(FITTED)(header, "fitted")
        parts: list[dict[str, np.ndarray]] = [{} for _ in header["members"]]
        for key, array in arrays.items():
            place, slash, name = key.partition("/")
            if slash:
                if not (place.isdecimal() and place.isascii() and int(place) < len(parts)):
                    raise refuse("the arrays", f"those of {len(parts)} members", key)
                parts[int(place)][name] = array
        members = {}
        for (name, part), part_arrays in zip(header["members"].items(), parts, strict=True):
            try:
                members[name] = restore(part, part_arrays)
            except DamagedFileError as error:
                raise DamagedFileError(f"the member {name!r}: {error}") from error
            if not isinstance(members[name], Forecaster):
                raise refuse(f"fitted.members.{name}.class", "a forecaster", part["class"])
        return {"forecasters": members}

    def _from_file(
        self,
        arguments: Arguments,
        data: FittedData,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        last_times: np.ndarray,
    ) -> tuple[FittedCombination, CombinedState]:
        members, horizons = self.forecasters, header["horizons"]
        names = list(members)
        record(dict.fromkeys(names, optional(integer(1, MOST_STEPS))))(horizons, "fitted.horizons")
        for name, member in members.items():
            _check_member(name, member, data, last_times)
        unprefixed = {key: array for key, array in arrays.items() if "/" not in key}
        shapes = {"weights": ("float64", (len(names),))}
        if header["validated"]:
            shapes["validation"] = "float64", (len(names) + 1,)
        check_arrays(unprefixed, shapes)
        weights = arrays["weights"]
        if not np.isfinite(weights).all() or not weights.any():
            raise refuse("the array 'weights'", "finite, and not all zero", weights.tolist())
        with as_saved("params"):
            given_weights(arguments, names)
            positive_integer("n_windows", arguments.n_windows)
        # as they were given, where the members of the file are as they were fitted
        self.forecasters = {
            name: clone(member).set_params(horizon=horizons[name], calendar=None)
            for name, member in members.items()
        }
        fitted = FittedCombination(
            Arguments.of(self), data, header["horizon"], members, weights, arrays.get("validation")
        )
        return fitted, CombinedState(tuple(member.state_ for member in members.values()))


@dataclass(frozen=True, eq=False)
class FittedCombination(FittedModel[CombinedState]):
    """Fitted members by name and their weights (k,).

    `validation` (k + 1,) are root mean squared scaled errors of the members and the combination.
    """

    arguments: Arguments
    data: FittedData
    horizon: int
    members: dict[str, Forecaster]
    weights: np.ndarray
    validation: np.ndarray | None
    guarantee: ClassVar[str] = (
        "None: the ends are averages of those of the members, which tends to cover too much where "
        "these are calibrated."
    )

    def filter(self, panel: Panel) -> CombinedState:
        members = self.members.values()
        return CombinedState(tuple(m.fitted_.filter(panel_shown(m, panel)) for m in members))

    def advance(self, state: CombinedState, panel: Panel) -> CombinedState:
        pairs = zip(self.members.values(), state.members, strict=True)
        return CombinedState(
            tuple(m.fitted_.advance(past, panel_shown(m, panel)) for m, past in pairs)
        )

    def forecast(
        self, state: CombinedState, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        forecasts = []
        for member, past, weight in zip(
            self.members.values(), state.members, self.weights, strict=True
        ):
            if weight != 0:
                columns = [self.data.known_ahead.index(name) for name in member.known_ahead_]
                known = future[..., columns] if future is not None and columns else None
                forecasts.append(member.fitted_.forecast(past, h, levels, known))
        shares = self.shares(state.ids, np.stack([parts[""] for parts in forecasts]))
        averages = {}
        for suffix in forecasts[0]:
            values = np.stack([np.nan_to_num(parts[suffix]) for parts in forecasts])
            averages[suffix] = (shares * values).sum(0)
        return averages

    def shares(self, ids: pd.Index, points: np.ndarray) -> np.ndarray:
        """Weights (k, S, 1, C) of the members that count; of those that forecast a series.

        Weights of members without a forecast go to the others, in proportion, with a warning.
        """
        names = [name for name, w in zip(self.members, self.weights, strict=True) if w != 0]
        there = np.isfinite(points).all(2, keepdims=True)
        weights = self.weights[self.weights != 0][:, None, None, None] * there
        total = weights.sum(0)
        lost = np.flatnonzero(~there.all((0, 2, 3)))
        if len(lost):
            members = [name for name, all_ in zip(names, there, strict=True) if not all_.all()]
            warn_user(
                f"{len(lost)} of {len(ids)} series, the first {ids[lost[0]]!r}, are not forecast "
                f"by {', '.join(map(repr, members))}: the weights go to the other members"
            )
        return weights / np.where(total != 0, total, np.nan)

    def to_file(self, state: CombinedState) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays, parts = {"weights": self.weights}, {}
        if self.validation is not None:
            arrays["validation"] = self.validation
        pairs = zip(self.members.items(), state.members, strict=True)
        for place, ((name, member), past) in enumerate(pairs):
            parts[name], member_arrays = member._at(past)._to_file()
            arrays |= {f"{place}/{key}": array for key, array in member_arrays.items()}
        given = named_models(self.arguments.forecasters)
        header = {
            "horizon": self.horizon,
            "members": parts,
            "horizons": {name: member.horizon for name, member in given.items()},
            "validated": self.validation is not None,
        }
        return header, arrays


def members_of(arguments: Arguments, horizon: int) -> dict[str, Forecaster]:
    """Clones of the members, not fitted, with the horizon and the calendar of the combination."""
    members = {}
    for name, member in named_models(arguments.forecasters).items():
        if not isinstance(member, Forecaster):
            raise TypeError(f"members must be forecasters of tsrnn; {name!r} is {member!r}")
        theirs, ours = known_ahead(member), known_ahead(arguments)
        if theirs and theirs != ours:
            raise ValueError(
                f"known_ahead of the member {name!r} must be None or that of the combination, "
                f"{ours}; got {theirs}"
            )
        if member.calendar:
            raise ValueError(
                f"calendar is an argument of the combination; the member {name!r} has "
                f"calendar={member.calendar!r}. Give it to the combination, and not to members"
            )
        members[name] = clone(member).set_params(horizon=horizon)
        if member.takes_exog:
            members[name].set_params(calendar=arguments.calendar)
    return members


def given_weights(arguments: Arguments, names: list[str]) -> np.ndarray | None:
    """Weights that need no data; None where they are estimated."""
    weights = given = arguments.weights
    if isinstance(weights, str):
        if weights == "equal":
            return np.full(len(names), 1 / len(names))
        if weights in _RULES:
            positive_integer("n_windows", arguments.n_windows)
            return None
        raise ValueError(f"weights must be one of {('equal', *_RULES)} or numbers; got {weights!r}")
    if isinstance(weights, Mapping):
        if set(weights) != set(names):
            raise ValueError(f"weights must be those of {names}; got {list(weights)}")
        weights = [weights[name] for name in names]
    try:
        values = np.array(weights, dtype=float)
    except (TypeError, ValueError):
        values = np.empty(0)
    if isinstance(weights, pd.Series | set) or values.shape != (len(names),):
        raise ValueError(f"weights must be {len(names)} numbers, for {names}; got {weights!r}")
    if not np.isfinite(values).all() or not np.isclose(values.sum(), 1):
        raise ValueError(f"weights must be finite and sum to one; got {given!r}")
    return values


def rolling_errors(
    panels: Sequence[Panel], members: Mapping[str, Forecaster], h: int, n_windows: int
) -> list[np.ndarray]:
    """Scaled errors (n, k) of rolling forecasts, of the rows of each panel that all forecast."""
    plans = [make_plan(panel, h, n_windows, h, n_windows, [], "mean") for panel in panels]
    pasts = [plan.first_past() for plan in plans]
    fitted = [_fit_members(name, member, pasts) for name, member in members.items()]
    scaled = []
    for panel, plan, *of_panel in zip(panels, plans, *fitted, strict=True):
        validation = panel.between(plan.known[0], panel.lengths)
        origins = Origins.of(validation, h, h)
        actual = validation.values[origins.first[:, None] + np.arange(h)]
        by_window = np.argsort(origins.ordinal, kind="stable")
        errors = []
        for member in of_panel:
            rows, state = panel_shown(member, validation), member.state_
            point = member.fitted_.rolling(state, rows, origins, h, [])[""]
            scale = state.target_scale[origins.series][:, None]
            errors.append(((actual - point) / scale)[by_window].ravel())
        columns = np.column_stack(errors)
        scaled.append(columns[np.isfinite(columns).all(1)])
        if not len(scaled[-1]):
            raise ValueError("no row of the validation windows was forecast by all members")
    return scaled


def _fit_members(name: str, member: Forecaster, panels: Sequence[Panel]) -> list[Forecaster]:
    """Clones of a member, each fitted to a panel."""
    try:
        return fit_panels_together(member, [panel_shown(member, panel) for panel in panels])
    except Exception as error:
        error.add_note(f"raised by the member {name!r} of the combination")
        raise


def _check_member(name: str, member: Forecaster, data: FittedData, last_times: np.ndarray) -> None:
    """Refuse a member of a file that is of other data than the combination."""
    theirs, state = member.fitted_.data, member.state_
    rules = {
        "layout": theirs.layout == data.layout,
        "exog_names": theirs.exog_names in ((), data.exog_names),
        "known_ahead": theirs.known_ahead in ([], data.known_ahead),
        "ids": state.ids.equals(data.ids),
        "last_times": np.array_equal(state.last_times, last_times),
    }
    for field, kept in rules.items():
        if not kept:
            raise refuse(f"fitted.members.{name}.{field}", "that of the combination", "another")


def inverse_error_weights(errors: np.ndarray) -> np.ndarray:
    r"""Weights proportional to one over the mean squared error (Bates and Granger, 1969).

    .. math:: w_i = \frac{1 / \mathrm{MSE}_i}{\sum_j 1 / \mathrm{MSE}_j}

    The best weights if errors of different models are uncorrelated.

    Parameters
    ----------
    errors : ndarray of shape (n, k)
        Of k models, finite.

    Returns
    -------
    ndarray of shape (k,)

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.evaluation import inverse_error_weights
    >>> inverse_error_weights(np.array([[1.0, 2.0], [-1.0, -2.0]]))
    array([0.8, 0.2])
    """
    mse = (errors**2).mean(0)
    best = mse.min()  # all are divided by it, so that the inverse of a small one is finite
    if best == 0:
        return (mse == 0) / (mse == 0).sum()
    return (best / mse) / (best / mse).sum()


def stacked_weights(errors: np.ndarray) -> np.ndarray:
    r"""Weights that make the mean squared error of the combination least (Breiman, 1996).

    .. math:: \min_w \sum_t \Big( \sum_i w_i e_{it} \Big)^2, \quad
              w_i \ge 0, \quad \sum_i w_i = 1

    As weights sum to one, the error of the combination is that of the errors.

    Parameters
    ----------
    errors : ndarray of shape (n, k)
        Of k models, finite.

    Returns
    -------
    ndarray of shape (k,)

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.evaluation import stacked_weights
    >>> stacked_weights(np.array([[1.0, -1.0], [-1.0, 1.0]])).round(3)
    array([0.5, 0.5])
    """
    k = errors.shape[1]
    # Errors of size one, beside which the weight of the other equation is large, whatever the data.
    size = np.sqrt((errors**2).sum(0).max())
    if size == 0:
        return np.full(k, 1 / k)
    # The triangle of a QR decomposition has the same sums of squares in k rows.
    triangle = np.linalg.qr(errors / size, mode="r")
    rows = np.vstack([triangle, np.full((1, k), _HEAVY)])
    weights = nnls(rows, np.append(np.zeros(len(triangle)), _HEAVY))[0]
    return weights / weights.sum()


_RULES = {"inverse-error": inverse_error_weights, "stacked": stacked_weights}
