"""Constructor arguments of GARCH, checked and put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tsrnn.contract import choice, number, positive_integer
from tsrnn.linear._arguments import order_of
from tsrnn.linear.garch._mean import Mean
from tsrnn.linear.garch._model import DENSITIES, VOLATILITIES, Model
from tsrnn.linear.garch._presample import INITIAL_VARIANCES, MOVING

MEANS = ("constant", "zero", "ar", "arma")


def model_of(
    order: Any, mean: Any, mean_order: Any, distribution: Any, vol: Any, padded: bool
) -> Model:
    """Check the arguments that make the model, and make it."""
    p, q = order_of(
        "order", order, "p lags of squared residuals (alpha) and q of the variance (beta)"
    )
    made = mean_of(choice("mean", mean, MEANS), mean_order)
    density = DENSITIES[choice("distribution", distribution, tuple(DENSITIES))]
    return Model(made, VOLATILITIES[choice("vol", vol, tuple(VOLATILITIES))], density, p, q, padded)


def mean_of(mean: str, mean_order: Any) -> Mean:
    """Mean by name, with the orders that it has."""
    if mean in ("constant", "zero"):
        if mean_order is not None:
            raise ValueError(
                f"mean={mean!r} has no order; got mean_order={mean_order!r}. Leave it out, or "
                "take mean='ar' or 'arma'"
            )
        return Mean(mean == "constant")
    if mean == "ar":
        return Mean(True, _lags(1 if mean_order is None else mean_order))
    orders = (1, 1) if mean_order is None else mean_order
    p, q = order_of("mean_order", orders, "p lags of y and q of its innovations", least=(0, 1))
    return Mean(True, tuple(range(1, p + 1)), q)


def initial_of(initial_variance: Any, mean: Mean, vol: str) -> str | float:
    """Check the presample variance."""
    if not isinstance(initial_variance, str):
        return number("initial_variance", initial_variance, lowest=0.0, open_=True)
    kind = choice("initial_variance", initial_variance, INITIAL_VARIANCES)
    if kind == "tsp" and vol != "egarch":
        raise ValueError(
            "initial_variance='tsp' is for vol='egarch', in which TSP takes residuals of zero "
            f"before the first; with vol={vol!r} TSP's default is 'fcp', HINIT=OLS is 'sample' "
            "and HINIT=STEADY is 'unconditional'"
        )
    if kind in MOVING and mean.n_ma:
        raise ValueError(
            f"initial_variance={kind!r} is for means that are regressions; with mean='arma' take "
            f"one of {tuple(k for k in INITIAL_VARIANCES if k not in MOVING)}"
        )
    return kind


def _lags(value: Any) -> tuple[int, ...]:
    """Lags 1 to p from p, or those of a list."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return tuple(range(1, positive_integer("mean_order", value) + 1))
    lags = tuple(positive_integer("mean_order", lag) for lag in value)
    if not lags or tuple(sorted(set(lags))) != lags:
        raise ValueError(f"mean_order must be rising lags such as [1, 5]; got {value!r}")
    return lags
