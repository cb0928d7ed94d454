"""Orders of seasonal ARIMA models, and the search for the orders of many series."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

MOST_MODELS = 94  # models of a series in a stepwise search, as in R's forecast


class Order(NamedTuple):
    """Orders of a seasonal ARIMA without its differences."""

    p: int
    q: int
    P: int
    Q: int
    constant: bool  # mean of the differenced series, a drift after one difference


class Limits(NamedTuple):
    """Highest orders of one series."""

    p: int
    q: int
    P: int
    Q: int
    constant: bool  # try a constant
    n_obs: int  # observations after differencing

    def allow(self, order: Order) -> bool:
        """True if the orders are within these limits."""
        lags = all(0 <= lag <= most for lag, most in zip(order[:4], self[:4], strict=True))
        return lags and (self.constant or not order.constant)


Pair = tuple[int, Order]  # number of a series, and orders to fit to it
Evaluate = Callable[[list[Pair]], np.ndarray]

# Hyndman and Khandakar (2008), step 2: one order up or down, or p and q, or P and Q, together.
_MOVES = (
    (1, 0, 0, 0), (0, 1, 0, 0), (1, 1, 0, 0), (1, -1, 0, 0),
    (0, 0, 1, 0), (0, 0, 0, 1), (0, 0, 1, 1), (0, 0, 1, -1),
)  # fmt: skip


def starts(limits: Limits, start: Order) -> list[Order]:
    """Models from which a stepwise search begins; the first is `start`."""
    season, constant = int(limits.P > 0 or limits.Q > 0), limits.constant
    models = [
        start,
        Order(0, 0, 0, 0, constant),
        Order(1, 0, season, 0, constant),
        Order(0, 1, 0, season, constant),
        Order(0, 0, 0, 0, False),
        # Added to Hyndman and Khandakar's: steps seldom lead from a seasonal AR to a seasonal MA.
        Order(1, 0, 0, season, constant),
        Order(1, 1, 0, season, constant),
    ]
    return list(dict.fromkeys(_within(limits, model) for model in models))


def _within(limits: Limits, order: Order) -> Order:
    p, q, P, Q = (min(lag, most) for lag, most in zip(order[:4], limits[:4], strict=True))
    return Order(p, q, P, Q, order.constant and limits.constant)


def neighbours(order: Order, limits: Limits) -> Iterator[Order]:
    """Models one step away."""
    for move in _MOVES:
        for sign in (1, -1):
            p, q, P, Q = (o + sign * step for o, step in zip(order[:4], move, strict=True))
            moved = Order(p, q, P, Q, order.constant)
            if limits.allow(moved):
                yield moved
    if limits.constant:
        yield order._replace(constant=not order.constant)


def stepwise(
    evaluate: Evaluate, limits: Sequence[Limits], start: Order
) -> list[dict[Order, float]]:
    """Criteria of the models that a stepwise search fits to each series, within its `limits`.

    All series advance together: `evaluate` returns the criteria of a stage's pairs, infinite for a
    model that is not usable. A series moves to the best of all models one step away from its best
    model, until none is better.
    """
    trace: list[dict[Order, float]] = [{} for _ in limits]
    best: dict[int, Order] = {}
    pairs = [(i, order) for i, each in enumerate(limits) for order in starts(each, start)]
    while pairs:
        for (i, order), value in zip(pairs, evaluate(pairs).tolist(), strict=True):
            trace[i][order] = value
        tried, pairs = dict.fromkeys(i for i, _ in pairs), []
        for i in tried:
            lowest = min(trace[i], key=trace[i].__getitem__)
            if lowest != best.get(i):
                near = [o for o in neighbours(lowest, limits[i]) if o not in trace[i]]
                pairs += [(i, order) for order in near[: MOST_MODELS - len(trace[i])]]
            best[i] = lowest
    return trace


def full(evaluate: Evaluate, limits: Sequence[Limits], max_order: int) -> list[dict[Order, float]]:
    """Criteria of all models within the limits of each series with p + q + P + Q <= `max_order`.

    Other arguments are as in `stepwise`.
    """
    pairs = [
        (i, Order(p, q, P, Q, constant))
        for i, each in enumerate(limits)
        for p, q, P, Q in lags_within(each[:4], max_order)
        for constant in (False, True)[: 1 + each.constant]
    ]
    trace: list[dict[Order, float]] = [{} for _ in limits]
    for (i, order), value in zip(pairs, evaluate(pairs).tolist(), strict=True):
        trace[i][order] = value
    return trace


def lags_within(highest: Sequence[int], max_order: int) -> Iterator[tuple[int, ...]]:
    """Orders up to the highest of each kind, with a sum of at most `max_order`."""
    for lags in product(*(range(most + 1) for most in highest)):
        if sum(lags) <= max_order:
            yield lags


def criterion_values(
    kind: str, loglik: np.ndarray, n_params: np.ndarray, n_obs: np.ndarray
) -> np.ndarray:
    r"""Information criteria (n,), infinite with too few observations.

    .. math:: \mathrm{AICc} = -2 \ell + 2 k + \frac{2 k (k + 1)}{n - k - 1}
    """
    if kind == "bic":
        return -2 * loglik + np.log(n_obs) * n_params
    aic = -2 * loglik + 2 * n_params
    if kind == "aic":
        return aic
    left = n_obs - n_params - 1
    correction = 2 * n_params * (n_params + 1) / np.where(left > 0, left, 1)
    return np.where(left > 0, aic + correction, np.inf)
