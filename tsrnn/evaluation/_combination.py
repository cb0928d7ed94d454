"""Combination of forecasters: means and medians of their forecasts."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import clone

from tsrnn.contract import (
    MOST_STEPS,
    Arguments,
    Classical,
    DamagedFileError,
    FittedData,
    Forecaster,
    Kind,
    anything,
    arrays_by_part,
    as_saved,
    by_name,
    check_arrays,
    check_is_fitted,
    integer,
    most_fits_together,
    optional,
    record,
    refuse,
    text,
    truth,
    unit_index,
    with_shared_arguments,
)
from tsrnn.data import Panel, quote
from tsrnn.evaluation._fitted_combination import CombinedState, FittedCombination
from tsrnn.evaluation._models import fit_member, known_ahead, named_models, panel_shown
from tsrnn.evaluation._recurrent import NETWORK, PRIOR, check_members, network_places
from tsrnn.evaluation._weights import (
    AICC,
    RollingErrors,
    check_criteria,
    criterion_weights,
    given_weights,
    of_each_series,
    rolling_errors,
)
from tsrnn.models import model_class

if TYPE_CHECKING:
    from tsrnn.prior import TrainedCombiner

CLASSICAL = ("ETS", "Theta", "CES", "AutoARIMA")
# Fields of a file beside those of every forecaster.
FITTED: dict[str, Kind] = {
    "horizon": integer(1, MOST_STEPS),
    "members": by_name(by_name(anything)),
    "horizons": by_name(anything),
    "validated": truth,
}
COMBINER: dict[str, Kind] = {
    "combiner": record({"size": by_name(integer(0, 1024)), "description": text})
}


@with_shared_arguments
class Combination(Classical[CombinedState]):
    r"""Mean or median of the forecasts of several forecasters.

    .. math:: \hat y_{t+k} = \sum_i w_i \hat y_{i, t+k}, \quad \sum_i w_i = 1,
              \qquad \text{or} \qquad \hat y_{t+k} = \operatorname{median}_i \hat y_{i, t+k}

    The end of an interval is the mean or the median of the members' ends: quantiles of one
    probability are combined (Vincentization), not widths. Where a member has no forecast of a
    series, the others stand in, with a warning that names it; one that can be fitted to no series
    is left out of the fitted combination. Series that no member can be fitted to have no forecast,
    and where there are no others the fit is refused.

    Parameters
    ----------
    forecasters : mapping of str to forecaster, or sequence of forecasters
        Forecasters of tsrnn. `horizon` and the reading of data come from the combination.
    weights : {"equal", "inverse-error", "stacked", "aicc", "network"}, mapping or sequence of float
        "equal"; "inverse-error", proportional to 1 / MSE (Bates and Granger, 1969); "stacked",
        not negative, summing to one, with the least squared error of the combination (Breiman,
        1996); "aicc", by the corrected information criterion of Akaike, each series by itself, for
        members with likelihoods of the same observations; "network", by a pretrained network, for
        the members of `recurrent`; or numbers, for the members by name or in their order.
    n_windows : int, default 5
        Number of horizons whose errors estimate the weights.
    combine : {"mean", "median"}
        The median has no weights.
    by_series : bool, default False
        Whether weights that come from errors are estimated for each target of each series, rather
        than once for all.
    known_ahead : str or list of str, optional
        Given to members that name the same columns; one that takes no exogenous columns is not
        shown them.
    **shared
        As in all forecasters. ``missing="keep"`` needs members that take it.

    Attributes
    ----------
    forecasters_ : dict
        The fitted members, copies: what is done to them does not reach the combination.
    weights_ : Series, or DataFrame with a row a series
    messages_ : Series
        Reasons why members could not be fitted to a series, and their warnings.
    validation_ : Series or None
        Root mean squared scaled error of each member, and of the combination with these weights
        on the same errors, which flatters it.

    Notes
    -----
    Weights that come from errors are estimated from rolling forecasts of the last `n_windows`
    horizons of the data, divided by the standard deviation of the series; for them the members
    are fitted once more, to the rows before.

    Equal weights are hard to beat where there are few errors to estimate others from ("forecast
    combination puzzle", Stock and Watson, 2004). A combined end lies between those of the
    members, and levels do not cross; nothing more is guaranteed. Means of quantiles of
    calibrated intervals tend to cover too much (Lichtendahl et al., 2013).

    References
    ----------
    Bates, J. M., Granger, C. W. J. (1969). The combination of forecasts.
    Breiman, L. (1996). Stacked regressions. Machine Learning.
    Burnham, K. P., Anderson, D. R. (2002). Model Selection and Multimodel Inference.
    Lichtendahl, K. C., Grushka-Cockayne, Y., Winkler, R. L. (2013). Is it better to average
    probabilities or quantiles? Management Science.
    Petropoulos, F., Svetunkov, I. (2020). A simple combination of univariate models.
    International Journal of Forecasting.

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
    takes_exog: ClassVar[bool] = True  # passed on to members that take them
    not_saved: ClassVar[tuple[str, ...]] = ("forecasters",)  # they are parts of the file
    legal_missing: ClassVar[tuple[str, ...]] = ("auto", "error", "interpolate", "keep")
    fitted_: FittedCombination

    def __init__(
        self,
        forecasters: Any,
        weights: Any = "equal",
        n_windows: int = 5,
        combine: str = "mean",
        by_series: bool = False,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.forecasters = forecasters
        self.weights = weights
        self.n_windows = n_windows
        self.combine = combine
        self.by_series = by_series

    @classmethod
    def classical(cls, season_length: int | None = None, **arguments: Any) -> Self:
        """Median of exponential smoothing, Theta, CES and seasonal ARIMA, each chosen by itself.

        The combination of Petropoulos and Svetunkov (2020), sixth in the M4 competition.

        Parameters
        ----------
        season_length : int, optional
            Rows of a season, for all of them; by frequency where it is None.
        **arguments
            Of the combination, such as `horizon` or ``combine="mean"``. All members have its
            `known_ahead`: exogenous columns are regressors of each.

        Returns
        -------
        Combination
            Not fitted, of `ETS`, `Theta`, `CES` and `AutoARIMA` with their defaults.

        Examples
        --------
        >>> from tsrnn import Combination
        >>> from tsrnn.datasets import load_nile
        >>> model = Combination.classical(horizon=3).fit(load_nile())
        >>> model.predict().shape
        (3, 1)
        """
        shared = {"season_length": season_length, "known_ahead": arguments.get("known_ahead")}
        members = {name: model_class(name)(**shared) for name in CLASSICAL}
        return cls(members, **({"combine": "median"} | arguments))

    @classmethod
    def recurrent(cls, season_length: int | None = None, **arguments: Any) -> Self:
        """Combination of `classical` and the prior network, by weights of a recurrent network.

        The network sees each series through the recurrent state of the prior network, and by step
        how far the forecasts are from each other. Its quantiles are learned as well.

        Parameters
        ----------
        season_length : int, optional
            Rows of a season, for all members; by frequency where it is None.
        **arguments
            Of the combination, such as `horizon`. All members have its `known_ahead`: the
            network weighs their forecasts with the effects of columns.

        Returns
        -------
        Combination
            Not fitted, of `ETS`, `Theta`, `CES`, `AutoARIMA` and
            ``ParaRNNForecaster(prior="only")``.

        Examples
        --------
        >>> from tsrnn import Combination
        >>> from tsrnn.datasets import load_nile
        >>> model = Combination.recurrent(horizon=3).fit(load_nile())
        >>> model.predict(level=80).shape
        (3, 3)
        """
        shared = {"season_length": season_length, "known_ahead": arguments.get("known_ahead")}
        members = {name: model_class(name)(**shared) for name in CLASSICAL}
        members["prior"] = model_class(PRIOR)(prior="only", **shared)
        return cls(members, **({"weights": NETWORK} | arguments))

    @property
    def forecasters_(self) -> dict[str, Forecaster]:
        """Copies of the fitted members, after the rows that the combination has seen."""
        check_is_fitted(self)
        pairs = zip(self.fitted_.members.items(), self.state_.members, strict=True)
        return {name: member._at(state, self._history) for (name, member), state in pairs}

    @property
    def weights_(self) -> pd.Series | pd.DataFrame:
        """Weights of the members, which sum to one; a row a series where each has its own.

        A median has equal weights. Weights of a network are means over the steps of the horizon,
        with the last values of columns known ahead.
        """
        check_is_fitted(self)
        weights, data, names = self.fitted_.weights, self.fitted_.data, list(self.fitted_.members)
        if self.fitted_.combiner is not None:
            weights = self.fitted_.weights_by_network(self.state_)
        if weights.ndim == 1:
            return pd.Series(weights.copy(), names)
        labels = unit_index(data.layout, data.ids, multivariate=False)
        return pd.DataFrame(weights.reshape(len(names), -1).T.copy(), labels, names)

    @property
    def validation_(self) -> pd.Series | None:
        """Errors of the members and of the combination; None where weights were not estimated."""
        check_is_fitted(self)
        rmse = self.fitted_.validation
        names = [*self.fitted_.members, "Combination"]
        return None if rmse is None else pd.Series(rmse.copy(), names)

    @property
    def messages_(self) -> pd.Series:
        """Reasons and warnings of the members of each target of each series: a tuple of texts."""
        check_is_fitted(self)
        data = self.fitted_.data
        labels = unit_index(data.layout, data.ids, multivariate=False)
        return pd.Series(self.fitted_.messages, labels, object, "messages")

    def summary(self) -> str:
        """Members and their weights, and their errors where weights were estimated from them."""
        weights, validation, arguments = self.weights_, self.validation_, self.arguments_
        names, notes = list(self.fitted_.members), map(textwrap.fill, self.fitted_.support_notes)
        if arguments.combine == "median":
            title = f"Combination of {len(names)} forecasters, median of {', '.join(names)}"
            return "\n".join([title, *notes])
        if isinstance(weights, pd.Series):
            table = pd.DataFrame({"weight": weights})
        else:
            table = weights.agg(["mean", "min", "max"]).T
            table.columns = [f"{name} weight" for name in table.columns]
        if validation is not None:
            table = table.reindex(validation.index)
            table["RMSE of validation, scaled"] = validation
        rule = arguments.weights if isinstance(arguments.weights, str) else "given"
        of_each = ", of each series" * isinstance(weights, pd.DataFrame)
        lines = [
            f"Combination of {len(names)} forecasters, weights: {rule}{of_each}",
            table.to_string(float_format="{:.4f}".format, na_rep="-"),
        ]
        if validation is not None:
            lines.append(
                f"Errors of {arguments.n_windows} windows of {self.horizon_} steps, over the "
                "standard deviation of the series;\nthat of the combination is on the errors from "
                "which its weights come."
            )
        return "\n".join([*lines, *notes])

    def _skips_missing(self, arguments: Arguments) -> bool:
        members = named_models(arguments.forecasters).values()
        return all(_keeps_gaps(member) for member in members if isinstance(member, Forecaster))

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
        names = list(unfitted)
        given = given_weights(arguments, names)
        combiner: TrainedCombiner | None = None
        if isinstance(arguments.weights, str) and arguments.weights == NETWORK:
            from tsrnn.prior import trained_combiner  # loads torch

            check_members(unfitted)
            combiner = trained_combiner()
        errors: list[RollingErrors | None] = [None] * len(fits)
        if given is None and arguments.weights == AICC:
            check_criteria(unfitted)
        elif given is None:
            errors = [*rolling_errors(panels, unfitted, horizon, arguments.n_windows)]
        fitted = {name: fit_member(name, member, panels) for name, member in unfitted.items()}
        results = []
        for i, ((arguments, data, panel), rolled) in enumerate(zip(fits, errors, strict=True)):
            members, left_out = _fitted_members({name: parts[i] for name, parts in fitted.items()})
            if combiner is not None:
                network_places(members)
            places = [names.index(name) for name in members]
            arguments = restricted(arguments, list(members), given)
            weights, validation = given_weights(arguments, list(members)), None
            if rolled is not None:
                rolled = rolled.of_members(places)
                weights = rolled.weights(arguments.weights, panel, by_unit=arguments.by_series)
                validation = rolled.rmse(weights)
            elif weights is None:
                weights = criterion_weights(members, panel)
            if weights.ndim > 1:
                weights = weights.reshape(len(members), panel.n_series, -1)
            model = FittedCombination(
                arguments, data, horizon, members, weights, validation, combiner, left_out
            )
            model.warn_of_left_out()
            states = CombinedState(tuple(member.state_ for member in members.values()))
            results.append((model, states))
        return results

    def _fits_together(self) -> int:
        members = map(most_fits_together, named_models(Arguments.of(self).forecasters).values())
        return min((most for most in members if most > 1), default=1)

    def _filter(self, panel: Panel) -> CombinedState:
        # The state of a member knows the rows that the combination has seen since the fit.
        pairs = zip(self.fitted_.members.values(), self.state_.members, strict=True)
        return CombinedState(tuple(m._at(s)._filter(panel_shown(m, panel)) for m, s in pairs))

    @classmethod
    def _update_header(cls, header: dict[str, Any]) -> None:
        super()._update_header(header)
        header["params"].setdefault("combine", "mean")
        header["params"].setdefault("by_series", False)

    @classmethod
    def _inner_arguments(
        cls, header: dict[str, Any], arrays: dict[str, np.ndarray], restore: Any
    ) -> dict[str, Any]:
        record(FITTED | (COMBINER if "combiner" in header else {}))(header, "fitted")
        parts, _ = arrays_by_part(arrays, len(header["members"]), "members")
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
        shapes: dict[str, tuple[str, tuple[int, ...]]] = {"weights": ("float64", (len(names),))}
        if of_each_series(arguments):
            shapes["weights"] = "float64", (len(names), len(data.ids), data.n_targets)
        if header["validated"]:
            shapes["validation"] = "float64", (len(names) + 1,)
        network = isinstance(arguments.weights, str) and arguments.weights == NETWORK
        if network != ("combiner" in header):
            raise refuse("fitted.combiner", f"there for weights={NETWORK!r} alone", [*header])
        combiner = None
        if network:
            from tsrnn.prior import TrainedCombiner  # loads torch

            with as_saved("fitted.combiner"):
                network_places(members)
                shapes |= TrainedCombiner.shapes(header["combiner"]["size"])
        check_arrays(unprefixed, shapes)
        if network:
            combiner = TrainedCombiner.from_file(header["combiner"], unprefixed)
        weights = arrays["weights"]
        if not np.isfinite(weights).all() or not weights.any():
            raise refuse("the array 'weights'", "finite, and not all zero", weights.tolist())
        with as_saved("params"):
            given_weights(arguments, names)
        # members in the file carry the horizon and calendar of the fit; undo that
        self.forecasters = {
            name: clone(member).set_params(horizon=horizons[name], calendar=None, holidays=None)
            for name, member in members.items()
        }
        fitted = FittedCombination(
            Arguments.of(self), data, header["horizon"], members, weights,
            arrays.get("validation"), combiner,
        )  # fmt: skip
        return fitted, CombinedState(tuple(member.state_ for member in members.values()))


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
                f"{quote(ours)}; got {quote(theirs)}"
            )
        for argument in ("calendar", "holidays"):
            if value := getattr(member, argument):
                raise ValueError(
                    f"{argument} is an argument of the combination; the member {name!r} has "
                    f"{argument}={value!r}. Give it to the combination, and not to members"
                )
        if arguments.missing == "keep" and not _keeps_gaps(member):
            raise ValueError(
                "missing='keep' needs members that take it; "
                f"{name!r} takes one of {member.legal_missing}: {member!r}"
            )
        members[name] = clone(member).set_params(horizon=horizon)
        if member.takes_exog:
            members[name].set_params(calendar=arguments.calendar, holidays=arguments.holidays)
    return members


def _fitted_members(
    fitted: dict[str, Forecaster | Exception],
) -> tuple[dict[str, Forecaster], dict[str, str]]:
    """Split members into fitted ones and error texts of the others; ValueError if all failed."""
    members, left_out, first = {}, {}, None
    for name, result in fitted.items():
        if isinstance(result, Forecaster):
            members[name] = result
        else:
            first = first or result
            left_out[name] = f"{type(result).__name__}: {result}"
    if not members:
        reasons = "; ".join(f"{name!r}: {reason}" for name, reason in left_out.items())
        raise ValueError(f"no member of the combination could be fitted. {reasons}") from first
    return members, left_out


def restricted(arguments: Arguments, names: list[str], given: np.ndarray | None) -> Arguments:
    """Arguments of the combination of the members left, with given weights rescaled to one.

    ValueError if these members have no weight.
    """
    values = arguments.as_dict()
    forecasters = named_models(values["forecasters"])
    if len(names) == len(forecasters):
        return arguments
    values["forecasters"] = {name: forecasters[name] for name in names}
    if given is not None and not isinstance(values["weights"], str):
        weights = dict(zip(forecasters, given.tolist(), strict=True))
        total = sum(weights[name] for name in names)
        if not total > 0:
            raise ValueError(
                f"the members that could be fitted, {', '.join(map(repr, names))}, have no "
                f"weight; got weights={arguments.weights!r}. Give them some, or drop the others"
            )
        values["weights"] = {name: weights[name] / total for name in names}
    return Arguments(values, arguments.class_name)


def _keeps_gaps(member: Forecaster) -> bool:
    """True if a forecaster and all its members take missing values."""
    return member._skips_missing(Arguments.of(member))


def _check_member(name: str, member: Forecaster, data: FittedData, last_times: np.ndarray) -> None:
    """Refuse a member in a file that was fitted to other data than the combination."""
    theirs, state = member.fitted_.data, member.state_
    rules = {
        "layout": theirs.layout in (data.layout, replace(data.layout, categories=())),
        "exog_names": theirs.exog_names in ((), data.exog_names),
        "known_ahead": theirs.known_ahead in ([], data.known_ahead),
        "ids": state.ids.equals(data.ids),
        "last_times": np.array_equal(state.last_times, last_times),
    }
    for field, kept in rules.items():
        if not kept:
            raise refuse(f"fitted.members.{name}.{field}", "that of the combination", "another")
