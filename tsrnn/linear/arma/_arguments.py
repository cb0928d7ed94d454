"""Constructor arguments of ARMA as a specification; the messages name them."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from tsrnn.contract import choice
from tsrnn.linear.arma._specification import TRENDS, Specification

LIKELIHOODS = ("exact", "conditional")
MOST_LAGS, MOST_MIXED = 12, 6  # beyond, compiling the exact likelihood takes minutes


def specification(
    order: Any, trend: Any, likelihood: Any, missing: str, regressors: tuple[str | int, ...]
) -> Specification:
    """Check the arguments.

    Raises
    ------
    TypeError, ValueError
        If one is not legal, or they do not go together.
    """
    p, d, q = _orders(order)
    exact = choice("likelihood", likelihood, LIKELIHOODS) == "exact"
    most = MOST_MIXED if exact and q else MOST_LAGS
    if max(p, q) > most:
        raise ValueError(
            f"order may have up to {MOST_LAGS} lags, and with the exact likelihood and a moving "
            f"average up to {MOST_MIXED}; got {order!r}. Take fewer lags, or "
            "likelihood='conditional' for long moving averages"
        )
    if missing == "keep" and not exact:
        raise ValueError(
            "missing='keep' needs likelihood='exact': the conditional one has no place for "
            "missing values. Take that, or missing='interpolate'"
        )
    trend = ("n" if d else "c") if trend is None else choice("trend", trend, TRENDS)
    eliminated = [part for power, part in enumerate("ct") if part in trend and power < d]
    if eliminated:
        raise ValueError(
            f"trend={trend!r} has terms of an order below d = {d}, which differencing removes; "
            f"take trend={'t' if d == 1 else 'n'!r} or 'n'"
        )
    names = tuple(str(name) for name in regressors)
    spec = Specification(p, d, q, trend, exact, names)
    if len(set(spec.names)) < len(spec.names):
        raise ValueError(
            f"names of exogenous columns must differ from those of parameters; got {list(names)} "
            f"beside {[name for name in spec.names if name not in names]}. Rename the columns"
        )
    return spec


def _orders(order: Any) -> tuple[int, int, int]:
    if not isinstance(order, Sequence) or isinstance(order, str) or len(order) not in (2, 3):
        raise TypeError(f"order must be (p, q) or (p, d, q); got {order!r}")
    for value in order:
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 0:
            raise ValueError(f"order must be of integers of at least 0; got {order!r}")
    p, d, q = (order[0], 0, order[1]) if len(order) == 2 else order
    return int(p), int(d), int(q)
