"""Weights of a combination: given, from errors of rolling forecasts, from information criteria."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from tsrnn.contract import (
    Arguments,
    Forecaster,
    Origins,
    choice,
    classes_with,
    flag,
    positive_integer,
    unit_index,
)
from tsrnn.data import Panel, quote, quote_series, warn_user
from tsrnn.evaluation._models import fit_member, panel_shown
from tsrnn.evaluation._recurrent import NETWORK
from tsrnn.evaluation._windows import make_plan

# Weight of the equation that weights sum to one, against errors of size one: its residual is of
# the order of the inverse square, 1e-8, and as many digits are left for the errors.
_HEAVY = 1e4
AICC = "aicc"
EQUAL = ("equal", NETWORK)  # or not known before the forecasts
ESTIMATED = ("inverse-error", "stacked", AICC)


def given_weights(arguments: Arguments, names: list[str]) -> np.ndarray | None:
    """Check all arguments about weights; return given ones (k,), None if they are estimated."""
    combine = choice("combine", arguments.combine, ("mean", "median"))
    by_series = flag("by_series", arguments.by_series)
    positive_integer("n_windows", arguments.n_windows)
    weights = arguments.weights
    rule = weights if isinstance(weights, str) else None
    if rule not in (None, *EQUAL, *ESTIMATED):
        raise ValueError(
            f"weights must be one of {('equal', *ESTIMATED, NETWORK)} or numbers; got "
            f"{quote(weights)}"
        )
    if combine == "median" and rule != "equal":
        raise ValueError(f"the median has no weights; got weights={quote(weights)}. Leave them out")
    if by_series and rule not in ESTIMATED:
        raise ValueError(
            f"by_series=True needs weights that are estimated, one of {ESTIMATED}; got "
            f"weights={weights!r}"
        )
    if rule in ESTIMATED:
        return None
    return np.full(len(names), 1 / len(names)) if rule in EQUAL else _as_array(weights, names)


def _as_array(weights: Any, names: list[str]) -> np.ndarray:
    """Weights of a user as an array, in the order of the members."""
    given = weights
    if isinstance(weights, Mapping):
        if set(weights) != set(names):
            raise ValueError(f"weights must be those of {names}; got {list(weights)}")
        weights = [weights[name] for name in names]
    try:
        values = np.array(weights, dtype=float)
    except (TypeError, ValueError):
        values = np.empty(0)
    if isinstance(weights, pd.Series | set) or values.shape != (len(names),):
        raise ValueError(f"weights must be {len(names)} numbers, for {names}; got {quote(weights)}")
    if not np.isfinite(values).all() or not np.isclose(values.sum(), 1):
        raise ValueError(f"weights must be finite and sum to one; got {quote(given)}")
    return values


def of_each_series(arguments: Arguments) -> bool:
    """True if every series has weights of its own."""
    weights = arguments.weights
    return bool(arguments.by_series) or (isinstance(weights, str) and weights == AICC)


class RollingErrors(NamedTuple):
    """Errors of rolling forecasts over the standard deviation of their series.

    `errors` (n, k) are NaN where a member has no forecast, or there is no value; `unit` (n,) is the
    number of the target of each row, series by series.
    """

    errors: np.ndarray
    unit: np.ndarray

    def of_members(self, places: Sequence[int]) -> RollingErrors:
        """Select members by column."""
        return RollingErrors(self.errors[:, places], self.unit)

    def weights(self, rule: str, panel: Panel, *, by_unit: bool) -> np.ndarray:
        """Weights (k,) by a rule from rows that all members forecast, or by unit (k, N).

        A member without a forecast, of any row or of a unit, has weight zero there.
        """
        if not by_unit:
            common_weights = np.zeros(self.errors.shape[1])
            common_weights[self.there] = RULES[rule](self.common)
            return common_weights
        labels = unit_index(panel.layout, panel.ids, multivariate=False)
        k, blank = self.errors.shape[1], []
        weights = np.zeros((k, len(labels)))
        order = np.argsort(self.unit, kind="stable")
        ends = np.searchsorted(self.unit[order], np.arange(len(labels)), side="right")
        for i, rows in enumerate(np.split(self.errors[order], ends[:-1])):
            there = np.isfinite(rows).any(0)
            rows = rows[:, there][np.isfinite(rows[:, there]).all(1)]
            if len(rows):
                weights[there, i] = RULES[rule](rows)
            else:
                weights[:, i] = 1 / k
                blank.append(i)
        if blank:
            first = quote_series(labels[blank[:1]])
            warn_user(
                f"{len(blank)} of {len(labels)} series, the first {first}, have "
                "no row of the validation windows that the members forecast: their weights are "
                "equal"
            )
        return weights

    @property
    def there(self) -> np.ndarray:
        """Mask (k,) of members with a forecast of some row."""
        there: np.ndarray = np.isfinite(self.errors).any(0)
        return there

    @property
    def seen(self) -> np.ndarray:
        """Mask (n,) of rows that all these members forecast."""
        seen: np.ndarray = np.isfinite(self.errors[:, self.there]).all(1)
        if not self.there.any() or not seen.any():
            raise ValueError("no row of the validation windows was forecast by all members")
        return seen

    @property
    def common(self) -> np.ndarray:
        """Errors of these rows and members."""
        return self.errors[self.seen][:, self.there]

    def rmse(self, weights: np.ndarray) -> np.ndarray:
        """Root mean squares (k + 1,) of members and combination, with weights (k,) or (k, N).

        NaN of a member that has forecast no row.
        """
        if weights.ndim == 1:
            combined = self.common @ weights[self.there]
        else:
            of_rows = weights[self.there][:, self.unit[self.seen]]
            combined = np.einsum("nk,kn->n", self.common, of_rows)
        rmse = np.full(len(weights) + 1, np.nan)
        rmse[:-1][self.there] = np.sqrt((self.common**2).mean(0))
        rmse[-1] = np.sqrt((combined**2).mean())
        return rmse


def rolling_errors(
    panels: Sequence[Panel], members: Mapping[str, Forecaster], h: int, n_windows: int
) -> list[RollingErrors]:
    """Scaled errors of rolling forecasts of the last windows of each panel.

    For them the members are fitted to the rows before.
    """
    plans = [make_plan(panel, h, n_windows, h, n_windows, [], "mean") for panel in panels]
    pasts = [plan.first_past() for plan in plans]
    fitted = [fit_member(name, member, pasts) for name, member in members.items()]
    scaled = []
    for panel, plan, *of_panel in zip(panels, plans, *fitted, strict=True):
        validation = panel.between(plan.known[0], panel.lengths)
        origins = Origins.of(validation, h, h)
        actual = validation.values[origins.first[:, None] + np.arange(h)]
        by_window = np.argsort(origins.ordinal, kind="stable")
        errors = []
        for member in of_panel:
            if isinstance(member, Exception):  # it forecasts no row of the windows
                errors.append(np.full(actual.size, np.nan))
                continue
            rows, state = panel_shown(member, validation), member.state_
            point = member.fitted_.rolling(state, rows, origins, h, [])[""]
            scale = state.target_scale[origins.series][:, None]
            errors.append(((actual - point) / scale)[by_window].ravel())
        n_targets = actual.shape[2]
        unit = origins.series[by_window][:, None, None] * n_targets + np.arange(n_targets)
        unit = np.broadcast_to(unit, actual.shape).ravel()
        scaled.append(RollingErrors(np.column_stack(errors), unit))
    return scaled


def criterion_weights(members: Mapping[str, Forecaster], panel: Panel) -> np.ndarray:
    """Akaike weights (k, N) of each target of each series, of fitted members.

    ValueError if the criteria are not of likelihoods of the same observations.
    """
    labels = unit_index(panel.layout, panel.ids, multivariate=False)
    criteria, counts, kinds = [], [], {}
    for name, fitted in members.items():
        member: Any = fitted
        if len(member.aicc_) != len(labels):
            raise ValueError(
                f"weights={AICC!r} needs likelihoods of one target each; that of {name!r} is of "
                "all targets of a series together. Give one target, or take "
                "weights='inverse-error'"
            )
        criteria.append(member.aicc_.to_numpy())
        counts.append(np.where(np.isfinite(criteria[-1]), member.nobs_.to_numpy(), np.nan))
        kinds[name] = {"Likelihood": "exact"} | member.fitted_.family.conventions
        # A stationary and an estimated initial state both give a density of all rows.
        for convention in ("Initial state", "Initial states", "Region"):
            kinds[name].pop(convention, None)
    names, advice = list(members), "Leave one of them out, or take weights='inverse-error'"
    for name in names[1:]:
        if kinds[name] != kinds[names[0]]:
            raise ValueError(
                f"weights={AICC!r} needs likelihoods of the same data by the same conventions; "
                f"that of {names[0]!r} is {kinds[names[0]]}, that of {name!r} {kinds[name]}. "
                f"{advice}"
            )
    n_obs = np.array(counts)
    highest = np.where(np.isnan(n_obs), -np.inf, n_obs).max(0)
    differ = np.argwhere(n_obs < highest)  # false where one is NaN
    if len(differ):
        other, i = differ[0]
        most = names[int(np.nanargmax(n_obs[:, i]))]
        raise ValueError(
            f"weights={AICC!r} needs likelihoods of the same observations; in "
            f"{len(np.unique(differ[:, 1]))} of {len(labels)} series, the first "
            f"{quote(labels[i])}, that of {most!r} is of {highest[i]:.0f} rows and that of "
            f"{names[other]!r} of {n_obs[other, i]:.0f}: one of differences is of other data. "
            f"{advice}"
        )
    return akaike_weights(np.array(criteria).T).T


def check_criteria(members: Mapping[str, Forecaster]) -> None:
    """Refuse members that have no corrected information criterion."""
    for name, member in members.items():
        if not hasattr(type(member), "aicc_"):
            raise TypeError(
                f"weights={AICC!r} needs members with a likelihood, of "
                f"{', '.join(classes_with('aicc_'))}; {name!r} is {member!r}"
            )


def akaike_weights(criteria: np.ndarray) -> np.ndarray:
    r"""Weights by an information criterion (Akaike, 1978; Burnham and Anderson, 2002).

    .. math:: w_i = \frac{\exp(-\Delta_i / 2)}{\sum_j \exp(-\Delta_j / 2)}, \qquad
              \Delta_i = \mathrm{AICc}_i - \min_j \mathrm{AICc}_j

    The criteria must be of likelihoods of the same observations, neither transformed nor
    differenced in one model alone.

    Parameters
    ----------
    criteria : ndarray of shape (..., k)
        Criteria of k models; one that is not finite gets weight zero.

    Returns
    -------
    ndarray of shape (..., k)
        Zero where no criterion is finite.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.evaluation import akaike_weights
    >>> akaike_weights(np.array([100.0, 100.0, 104.0])).round(3)
    array([0.468, 0.468, 0.063])
    """
    there = np.isfinite(criteria)
    values = np.where(there, criteria, np.inf)
    lowest = values.min(-1, keepdims=True)
    behind = np.where(there, criteria, 0.0) - np.where(np.isfinite(lowest), lowest, 0.0)
    shares = np.where(there, np.exp(-np.maximum(behind, 0.0) / 2), 0.0)
    total = shares.sum(-1, keepdims=True)
    weights: np.ndarray = shares / np.where(total > 0, total, 1.0)
    return weights


def inverse_error_weights(errors: np.ndarray) -> np.ndarray:
    r"""Weights proportional to one over the mean squared error (Bates and Granger, 1969).

    .. math:: w_i = \frac{1 / \mathrm{MSE}_i}{\sum_j 1 / \mathrm{MSE}_j}

    The best weights if errors of different models are uncorrelated.

    Parameters
    ----------
    errors : ndarray of shape (n, k)
        Finite errors of k models.

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
        Finite errors of k models.

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
    # Scaled to size one, so that _HEAVY dominates whatever the unit of the data.
    size = np.sqrt((errors**2).sum(0).max())
    if size == 0:
        return np.full(k, 1 / k)
    # The triangle of a QR decomposition has the same sums of squares in k rows.
    triangle = np.linalg.qr(errors / size, mode="r")
    rows = np.vstack([triangle, np.full((1, k), _HEAVY)])
    weights = nnls(rows, np.append(np.zeros(len(triangle)), _HEAVY))[0]
    return weights / weights.sum()


RULES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "inverse-error": inverse_error_weights,
    "stacked": stacked_weights,
}
