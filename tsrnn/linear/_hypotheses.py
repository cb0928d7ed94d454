"""Restrictions stated by users, and checks that two models may be compared."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import chi2

from tsrnn.contract import real_array
from tsrnn.data import Panel, quote, warn_user
from tsrnn.linear._estimates import Estimates
from tsrnn.linear._inference import ChiSquareTest


def restriction_matrix(restrictions: Any, names: Sequence[str]) -> np.ndarray:
    """Matrix (J, k) of linear restrictions, from names of parameters or a matrix."""
    if isinstance(restrictions, str):
        restrictions = [restrictions]
    if isinstance(restrictions, pd.Series) and pd.api.types.is_numeric_dtype(restrictions):
        restrictions = restrictions.to_frame().T
    listed = isinstance(restrictions, Sequence | pd.Index | pd.Series | pd.DataFrame)
    listed |= isinstance(restrictions, np.ndarray) and restrictions.ndim > 0
    if not listed or len(restrictions) == 0:
        raise ValueError(
            f"restrictions must be names of parameters, some of {tuple(names)}, or a matrix with a "
            f"column for each; got {restrictions!r}"
        )
    if isinstance(restrictions, pd.DataFrame):
        if any(isinstance(column, str) for column in restrictions.columns):
            if sorted(map(str, restrictions.columns)) != sorted(names):
                raise ValueError(
                    f"restrictions must have a column for each parameter, {tuple(names)}; got "
                    f"{quote(list(restrictions.columns))}"
                )
            restrictions = restrictions[list(names)]
        return real_array("restrictions", restrictions)
    if not all(isinstance(item, str) for item in restrictions):
        return np.atleast_2d(real_array("restrictions", restrictions))
    unknown = [name for name in restrictions if name not in names]
    if unknown:
        raise ValueError(f"restrictions must name some of {tuple(names)}; got {unknown}")
    return np.eye(len(names))[[names.index(name) for name in restrictions]]


def restriction_values(values: Any, n: int) -> np.ndarray:
    """Right-hand sides (n,) of restrictions; one number is broadcast."""
    array = real_array("values", values)
    if array.shape not in {(), (n,)}:
        raise ValueError(
            f"values must be one number or {n}, one for each restriction; got shape {array.shape}"
        )
    return np.broadcast_to(array, n)


class Restriction(NamedTuple):
    """Restriction of a larger model to a smaller one, and the limit of its likelihood ratio."""

    boundary: int = 0  # parameters restricted to a boundary of the parameter space
    reason: str = ""  # why no limit is known; empty if one is
    joint: bool = True  # all parameters maximise one likelihood: the ratio is not negative
    reached: np.ndarray | None = (
        None  # (N,), units where the larger model's estimates satisfy the restriction
    )
    known: tuple[
        str, ...
    ] = ()  # parameters that both likelihoods take as known from an earlier step


COMMON_FACTORS = (
    "with a lag more on both sides common factors cancel: the larger model is not identified under "
    "the smaller one"
)
_ROUNDING = 1e-6  # a ratio this far below zero is within the tolerance of the optimiser


def fingerprint(panel: Panel) -> dict[str, str]:
    """Digests of the targets and of each exogenous column."""
    lengths = panel.lengths.astype(np.int64).tobytes()
    columns = {"": panel.values} | dict(zip(map(str, panel.exog_names), panel.exog.T, strict=True))
    return {name: _digest(values, lengths) for name, values in columns.items()}


def _digest(values: np.ndarray, lengths: bytes) -> str:
    numbers = np.where(np.isnan(values), np.nan, values + 0.0)  # one NaN, one zero
    return hashlib.sha256(lengths + np.ascontiguousarray(numbers).tobytes()).hexdigest()[:32]


def check_same_data(
    ours: pd.Index, theirs: pd.Index, our_data: dict[str, str], their_data: dict[str, str]
) -> None:
    """Refuse models of different units or values, by the fingerprints of their data."""
    if not ours.equals(theirs):
        raise ValueError(
            f"both models must be fitted to the same series; the units of the one are "
            f"{list(ours[:3])}..., of the other {list(theirs[:3])}..."
        )
    if our_data[""] != their_data[""]:
        raise ValueError(
            "both models must be fitted to the same values in the same order; those of the "
            "targets differ. Fit both to one frame"
        )
    for name in our_data.keys() & their_data.keys():
        if our_data[name] != their_data[name]:
            raise ValueError(
                f"both models must be fitted to the same values; exogenous column {quote(name)} "
                "differs. Fit both to one frame"
            )


def check_same_sample(units: pd.Index, ours: Estimates, theirs: Estimates) -> None:
    """Refuse likelihoods of different rows, as lags drop some."""
    differ = np.flatnonzero((ours.n_obs != theirs.n_obs) & ours.fitted & theirs.fitted)
    if len(differ):
        i = differ[0]
        raise ValueError(
            f"both likelihoods must be of the same observations; in {len(differ)} of {len(units)} "
            f"units, first {quote(units[i])}, the one has {ours.n_obs[i]} and the other "
            f"{theirs.n_obs[i]}. Fit both to the same rows (lags and differences drop the first "
            "ones)"
        )


def check_same_likelihood(ours: dict[str, str], theirs: dict[str, str]) -> None:
    """Refuse likelihoods of different conventions."""
    if ours != theirs:
        raise ValueError(
            f"both likelihoods must follow the same conventions; they are {ours} and {theirs}"
        )


def limited(
    units: pd.Index, test: ChiSquareTest, restriction: Restriction, restricted: Estimates
) -> pd.DataFrame:
    """Likelihood-ratio test with the limit distribution of each unit, a row a unit.

    Statistics below zero raise an error if all are, else a warning.
    """
    statistic = test.statistic.copy()
    if restriction.reached is not None:
        statistic[restriction.reached] = np.maximum(statistic[restriction.reached], 0.0)
    noise = _ROUNDING + 1e-10 * np.abs(restricted.loglik)
    statistic[(statistic < 0) & (statistic >= -noise)] = 0.0
    limit, p_value = _limit(restriction.boundary, test.df, statistic)
    reason = restriction.reason
    if restriction.boundary > 1 and not reason:
        reason = (
            f"{restriction.boundary} restricted parameters are on a boundary, and the mixture of "
            "chi-squares depends on the parameters"
        )
    limits = np.full(len(units), f"none: {reason}" if reason else limit, dtype=object)
    if reason:
        p_value[:] = np.nan
    limits[np.isnan(statistic)] = "none: a model was not fitted"
    fixed = restricted.fixed & ~np.isin(restricted.names, restriction.known)
    for i in () if reason else np.flatnonzero(fixed.any(1) & restricted.fitted):
        names = [name for name, at in zip(restricted.names, fixed[i], strict=True) if at]
        limits[i] = f"none: {names} of the smaller model are on a boundary or not identified"
        p_value[i] = np.nan
    negative = np.flatnonzero(statistic < 0) if restriction.joint else np.empty(0, dtype=int)
    if len(negative):
        i = negative[0]
        text = (
            f"the likelihood ratio of unit {quote(units[i])} is {statistic[i]:.4g}, below zero: "
            "the larger model's optimum is a local one, or its likelihood is of another start (a "
            "presample variance that follows the mean). Fit it with a larger n_starts"
        )
        if len(negative) == np.isfinite(statistic).sum():
            raise ValueError(text)
        warn_user(f"{text}. So it is in {len(negative)} of {len(units)} units; their p-values are "
                  "NaN")  # fmt: skip
        limits[negative] = "none: the larger model's optimum is a local one"
        p_value[negative] = np.nan
    columns = {"statistic": statistic, "df": test.df, "p_value": p_value, "limit": limits}
    return pd.DataFrame(columns, index=units)


def _limit(boundary: int, df: int, statistic: np.ndarray) -> tuple[str, np.ndarray]:
    """Name of the limit, and p-values (N,), with at most one parameter on a boundary.

    With one, the estimate lies on the boundary half of the time (Self and Liang, 1987).
    """
    upper = chi2.sf(statistic, df)
    if not boundary:
        return f"chi2({df})", upper
    lower = chi2.sf(statistic, df - 1) if df > 1 else (statistic <= 0).astype(float)
    return f"0.5 chi2({df - 1}) + 0.5 chi2({df})", 0.5 * (lower + upper)
