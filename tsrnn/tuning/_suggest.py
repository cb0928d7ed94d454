"""A forecaster with the arguments of a trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.base import clone

from tsrnn.contract import last_step
from tsrnn.tuning._distributions import Choice, Distribution
from tsrnn.tuning._spaces import Space, default_space


def suggest(trial: Any, forecaster: Any, space: Mapping[str, Any] | None = None) -> Any:
    """A clone of a forecaster with constructor arguments that a trial suggests.

    Parameters
    ----------
    trial : optuna.trial.Trial
        Or anything with `suggest_categorical`, `suggest_int` and `suggest_float`.
    forecaster : forecaster or Pipeline that ends with one
        Left as it is. Arguments outside the space keep its values.
    space : mapping of str, optional
        Changes to `default_space`: an argument as in `set_params`, and a `Choice`, `Integer`,
        `Real` or `Order`, a list of values for a `Choice`, or None to leave the argument alone.

    Returns
    -------
    forecaster
        Not fitted.

    Raises
    ------
    TypeError, ValueError
        If the space cannot be used, or names no argument of the forecaster.

    Examples
    --------
    >>> from optuna.trial import FixedTrial
    >>> from tsrnn import ARMA
    >>> from tsrnn.tuning import suggest
    >>> trial = FixedTrial({"order.p": 2, "order.d": 0, "order.q": 1, "trend": "n"})
    >>> suggest(trial, ARMA(), space={"trend": ["n", "c"]})
    ARMA(order=(2, 0, 1), trend='n')
    """
    whole = whole_space(forecaster, space)
    values = {name: own.suggest(trial, name) for name, own in whole.items()}
    return clone(forecaster).set_params(**values)


def whole_space(forecaster: Any, space: Mapping[str, Any] | None) -> Space:
    """The default space with changes.

    Raises
    ------
    TypeError, ValueError
        If a change cannot be used, or nothing is left to search.
    """
    changes = {} if space is None else dict(space)
    whole = _defaults(forecaster, needed=not changes)
    for name, own in changes.items():
        whole.pop(name, None)
        if own is not None:
            whole[name] = _distribution(name, own)
    if not whole:
        raise ValueError(
            "there is nothing to search: all arguments of the default space were given to the "
            "forecaster. Name some in space={...}"
        )
    return whole


def _defaults(forecaster: Any, needed: bool) -> Space:
    """The default space of a forecaster, or of the one that a pipeline ends with."""
    final = last_step(forecaster)
    prefix = "" if final is forecaster else f"{forecaster.steps[-1][0]}__"
    try:
        return {f"{prefix}{name}": own for name, own in default_space(final).items()}
    except ValueError:
        if needed:
            raise
        return {}


def _distribution(name: str, own: Any) -> Distribution:
    if isinstance(own, list):
        return Choice(tuple(own))
    if isinstance(own, type) or not hasattr(own, "suggest"):
        raise TypeError(
            f"space[{name!r}] must be a Choice, Integer, Real or Order of tsrnn.tuning, a list of "
            f"values or None; got {own!r}"
        )
    return own
