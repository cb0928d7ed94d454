"""Estimates of many units by maximum likelihood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from tsrnn.contract import SeriesArrays

PERFECT = 1e-25  # mean square error of scaled rows below which the likelihood has no bound
# Beginning of the message on exogenous columns without a coefficient.
LEFT_OUT = "Left out"
# Message about a unit that varies no more than rounding around its means.
EXACT = "The model fits the series exactly: its variance is zero, and there are no standard errors."


def aicc_penalty(n_obs: np.ndarray, k: np.ndarray | int) -> np.ndarray:
    """Penalty of Akaike's corrected criterion, for k parameters."""
    return 2 * k + 2 * k * (k + 1) / np.maximum(n_obs - k - 1, 1)


def search_messages(
    fixed: dict[str, list[str]], converged: bool, *others: str, known: str = "them"
) -> tuple[str, ...]:
    """Warnings about a unit: fixed parameters by reason, `others`, and an unfinished search."""
    lines = [
        f"{reason}: {', '.join(names)}. These have no standard errors, and those of the others "
        f"take {known} as known."
        for reason, names in fixed.items()
        if names
    ]
    unfinished = [] if converged else ["The likelihood was not maximised to tolerance."]
    return (*lines, *others, *unfinished)


def deferred(function: Callable[..., dict[str, np.ndarray]], *args: Any) -> dict[str, Any]:
    """Fields of `Estimates` with derivatives, computed by ``function(*args)`` on first use."""
    names = ("gradient", "hessian", "opg", "information")
    return dict.fromkeys(names, Deferred(function, *args))


class Derivatives(NamedTuple):
    """Log-likelihood of one unit at some parameters."""

    value: float
    gradient: np.ndarray  # (k,)
    hessian: np.ndarray  # (k, k)
    opg: np.ndarray  # (k, k), sum of outer products of scores
    information: np.ndarray  # (k, k), expected information


class Deferred(SeriesArrays):
    """Matrices by name, computed by ``function(*args)`` on first use."""

    def __init__(self, function: Callable[..., dict[str, np.ndarray]], *args: Any) -> None:
        self._compute = partial(function, *args)

    @cached_property
    def matrices(self) -> dict[str, np.ndarray]:
        """The matrices."""
        compute: Callable[[], dict[str, np.ndarray]] = vars(self).pop("_compute")
        return compute()  # popped, so that the data it holds are freed

    def select(self, series: np.ndarray) -> Deferred:
        """Select units, still deferred: the matrices of all units are computed first."""
        return Deferred(_selected, self, series)  # no lambda: a fitted model can be pickled


def _selected(deferred: Deferred, series: np.ndarray) -> dict[str, np.ndarray]:
    return {name: each[series] for name, each in deferred.matrices.items()}


class OnDemand:
    """Field of a frozen dataclass that holds an array or a `Deferred`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, record: Any, kind: type) -> Any:
        if record is None:
            return self
        value = vars(record)[self._name]
        if isinstance(value, Deferred):
            value = vars(record)[self._name] = value.matrices[self._name]
        return value

    def __set__(self, record: Any, value: Any) -> None:
        vars(record)[self._name] = value


@dataclass(frozen=True, eq=False)
class Estimates(SeriesArrays):
    """Fitted parameters of N units and the matrices that inference needs.

    All numbers are in the units of the data. A unit that could not be fitted has NaN in `params`
    and the reason in `messages`. Derivatives may be `Deferred`.
    """

    names: tuple[str, ...]  # spelled as in statsmodels (means) and arch (volatilities)
    params: np.ndarray  # (N, k)
    loglik: np.ndarray  # (N,)
    n_obs: np.ndarray  # (N,), observations in the likelihood, missing ones not counted
    gradient: np.ndarray  # (N, k), of the log-likelihood
    hessian: np.ndarray  # (N, k, k), exact
    opg: np.ndarray  # (N, k, k), sum over time of outer products of the scores
    information: np.ndarray | None  # (N, k, k), expected information; None if the model lacks it
    iterations: np.ndarray  # (N,)
    converged: np.ndarray  # (N,)
    fixed: np.ndarray  # (N, k), on the boundary, not identified or imposed: no standard error
    messages: tuple[tuple[str, ...], ...]  # warnings by unit
    starts: np.ndarray | None = None  # (N,), starting values tried
    agreement: np.ndarray | None = (
        None  # (N,), how many of them ended near the highest log-likelihood
    )
    n_params: np.ndarray | None = None  # (N,), estimated parameters, if units differ

    @classmethod
    def empty(cls, names: tuple[str, ...]) -> Estimates:
        """Estimates of zero units, for `placed`."""
        k = len(names)
        numbers, rows, square = np.empty(0, np.int64), np.empty((0, k)), np.empty((0, k, k))
        return cls(
            names, rows, np.empty(0), numbers, rows, square, square, square, numbers,
            np.empty(0, bool), np.empty((0, k), bool), (), numbers, numbers,
        )  # fmt: skip

    @classmethod
    def of_unit(
        cls, names: tuple[str, ...], params: np.ndarray, n_obs: int, at: Derivatives, **search: Any
    ) -> Estimates:
        """Estimates (k,) of one unit; `search` overrides the fields on the search."""
        about: dict[str, Any] = {
            "iterations": np.zeros(1, np.int64),
            "converged": np.ones(1, bool),
            "fixed": np.zeros((1, len(params)), bool),
            "messages": ((),),
            "starts": np.zeros(1, np.int64),
            "agreement": np.zeros(1, np.int64),
        }
        return cls(
            names, params[None], np.array([at.value]), np.array([n_obs]), at.gradient[None],
            at.hessian[None], at.opg[None], at.information[None], **about | search,
        )  # fmt: skip

    @property
    def fitted(self) -> np.ndarray:
        """Mask (N,) of units with parameters."""
        return np.isfinite(self.params).all(1)

    def select(self, units: np.ndarray) -> Estimates:
        """Select units by position."""
        selected = super().select(units)
        messages = tuple(self.messages[i] for i in units)
        # By `vars`: reading the fields would compute deferred derivatives.
        return replace(
            selected, messages=messages, **{name: vars(selected)[name] for name in DERIVATIVES}
        )

    def with_held(self, names: tuple[str, ...], values: np.ndarray) -> Estimates:
        """Append parameters (N, m) held at the values of an earlier step."""
        m, k = values.shape[1], len(self.names)
        arrays: dict[str, Any] = {
            name: np.pad(array, [(0, 0)] + [(0, m)] * (array.ndim - 1))
            for name in ("gradient", "hessian", "opg", "information")
            if (array := getattr(self, name)) is not None
        }
        fixed = np.ones((len(values), k + m), dtype=bool)
        fixed[:, :k] = self.fixed
        params = np.hstack([self.params, values])
        return replace(self, names=(*self.names, *names), params=params, fixed=fixed, **arrays)

    def first(self, k: int) -> Estimates:
        """Keep the first k parameters only."""
        arrays: dict[str, Any] = {
            name: None if (array := getattr(self, name)) is None else array[:, *(np.s_[:k],) * d]
            for name, d in (("params", 1), ("gradient", 1), ("fixed", 1), ("hessian", 2),
                            ("opg", 2), ("information", 2))
        }  # fmt: skip
        return replace(self, names=self.names[:k], **arrays)

    def placed(self, n_units: int, units: np.ndarray, reasons: dict[int, str]) -> Estimates:
        """Spread the estimates of `units` over `n_units` units; others failed for `reasons`."""
        if np.array_equal(units, np.arange(n_units)):
            return self  # keeps deferred matrices
        arrays = _by_unit([self], partial(_spread, n_units=n_units, units=units))
        messages: list[tuple[str, ...]] = [()] * n_units
        for i, reason in reasons.items():
            messages[i] = (reason,)
        for i, texts in zip(units.tolist(), self.messages, strict=True):
            messages[i] = texts
        return replace(self, **arrays, messages=tuple(messages))


DERIVATIVES = ("gradient", "hessian", "opg", "information")
# Set outside the class, where dataclass would take them for defaults.
for _name in DERIVATIVES:
    setattr(Estimates, _name, OnDemand(_name))


def concatenated(parts: list[Estimates]) -> Estimates:
    """Concatenate the units of several estimates of one model."""
    if len(parts) == 1:
        return parts[0]
    arrays = _by_unit(parts, np.concatenate)
    messages = tuple(chain.from_iterable(part.messages for part in parts))
    return replace(parts[0], **arrays, messages=messages)


BY_UNIT = (
    "params", "loglik", "n_obs", *DERIVATIVES, "iterations", "converged", "fixed", "starts",
    "agreement", "n_params",
)  # fmt: skip


def _by_unit(
    parts: list[Estimates], join: Callable[[list[np.ndarray]], np.ndarray]
) -> dict[str, Any]:
    """Join the arrays by unit; a field deferred in any part stays deferred."""
    fields: dict[str, list[Any]] = {name: [vars(part)[name] for part in parts] for name in BY_UNIT}
    waiting = [
        name for name, values in fields.items() if any(isinstance(v, Deferred) for v in values)
    ]
    later = Deferred(_joined, parts, waiting, join)
    return {
        name: later if name in waiting else None if values[0] is None else join(values)
        for name, values in fields.items()
    }


def _joined(
    parts: list[Estimates], names: list[str], join: Callable[[list[np.ndarray]], np.ndarray]
) -> dict[str, np.ndarray]:
    return {name: join([getattr(part, name) for part in parts]) for name in names}


def _spread(parts: list[np.ndarray], n_units: int, units: np.ndarray) -> np.ndarray:
    (array,) = parts
    missing = np.nan if array.dtype.kind == "f" else 0
    full = np.full((n_units, *array.shape[1:]), missing, array.dtype)
    full[units] = array
    return full
