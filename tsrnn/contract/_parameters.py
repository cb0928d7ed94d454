"""scikit-learn's protocol of estimators, without an import of scikit-learn.

The import takes longer than a first forecast. The protocol, `get_params`, `set_params`, a
constructor that stores its arguments unchanged, and tags, suffices for pipelines, searches and
``clone``.
"""

from __future__ import annotations

import copy
import inspect
import textwrap
from collections import defaultdict
from functools import cache
from typing import Any, Self

LINE = 80  # characters per line of a printed estimator


class Parameters:
    """Base with scikit-learn's protocol for constructor arguments.

    Examples
    --------
    >>> from sklearn.base import clone
    >>> from tsrnn.contract import Parameters
    >>> class Smoother(Parameters):
    ...     def __init__(self, alpha=0.5, damped=False):
    ...         self.alpha, self.damped = alpha, damped
    >>> model = Smoother(alpha=0.2)
    >>> model
    Smoother(alpha=0.2)
    >>> clone(model).set_params(damped=True).get_params()
    {'alpha': 0.2, 'damped': True}
    """

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Return the sorted names of the constructor arguments."""
        return sorted(_constructor_arguments(cls.__init__))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return constructor arguments by name.

        Parameters
        ----------
        deep : bool, default True
            Include arguments of nested estimators as ``argument__name``.

        Returns
        -------
        dict
        """
        values: dict[str, Any] = {}
        for name in self._get_param_names():
            value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                values |= {f"{name}__{inner}": v for inner, v in value.get_params().items()}
            values[name] = value
        return values

    def set_params(self, **params: Any) -> Self:
        """Set constructor arguments, which act at the next fit.

        Parameters
        ----------
        **params
            Values by name; ``argument__name`` for a nested estimator.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If an argument is unknown.
        """
        known = self.get_params(deep=False) if params else {}
        inner: dict[str, dict[str, Any]] = defaultdict(dict)
        for key, value in params.items():
            name, nested, rest = key.partition("__")
            if name not in known:
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {self}. "
                    f"Valid parameters are: {self._get_param_names()!r}."
                )
            if nested:
                inner[name][rest] = value
            else:
                setattr(self, name, value)
                known[name] = value
        for name, values in inner.items():
            known[name].set_params(**values)
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()

    def __repr__(self) -> str:
        arguments = _constructor_arguments(type(self).__init__)
        values = self.get_params(deep=False)
        # Compare reprs, since comparisons of arrays and frames have no truth value.
        changed = [
            f"{name}={value!r}"
            for name, value in values.items()
            if repr(value) != repr(arguments[name].default)
        ]
        head = f"{type(self).__name__}("
        text = f"{head}{', '.join(changed)})"
        if len(text) <= LINE or "\n" in text:
            return text
        return textwrap.fill(
            text, LINE, subsequent_indent=" " * len(head), break_long_words=False,
            break_on_hyphens=False,
        )  # fmt: skip

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the diagram of scikit-learn for notebooks."""
        return _as_scikit_learn(self)._repr_mimebundle_(**kwargs)

    def __dir__(self) -> list[str]:
        # Hide optional methods that this class does not offer.
        return [name for name in super().__dir__() if hasattr(self, name)]


@cache
def _constructor_arguments(init: Any) -> dict[str, inspect.Parameter]:
    """Return the arguments of a constructor without `self`; empty for that of object."""
    if init is object.__init__:
        return {}
    parameters = inspect.signature(init).parameters.values()
    return {p.name: p for p in parameters if p.name != "self" and p.kind is not p.VAR_KEYWORD}


def _as_scikit_learn(estimator: Any) -> Any:
    """Return an estimator of the same name and attributes, derived from BaseEstimator."""
    from sklearn.base import BaseEstimator

    cls = type(estimator)
    metaclass: Any = type(cls)
    twin_class = metaclass(cls.__name__, (BaseEstimator, cls), {"__module__": cls.__module__})
    twin = object.__new__(twin_class)
    vars(twin).update(vars(estimator))
    return twin


def clone(estimator: Any) -> Any:
    """Return an unfitted estimator with the same arguments, as ``sklearn.base.clone`` does.

    Parameters
    ----------
    estimator : estimator
        Estimator of this package, or any with scikit-learn's `get_params`.

    Returns
    -------
    estimator
        Copy; estimators among the arguments are cloned, other arguments copied.

    Raises
    ------
    RuntimeError
        If the constructor changes an argument or does not store it.

    Examples
    --------
    >>> from tsrnn import ARMA
    >>> from tsrnn.contract import clone
    >>> clone(ARMA(order=(2, 1)))
    ARMA(order=(2, 1))
    """
    if not isinstance(estimator, Parameters) or hasattr(estimator, "__sklearn_clone__"):
        from sklearn.base import clone as clone_any

        return clone_any(estimator)
    arguments = {name: _copied(v) for name, v in estimator.get_params(deep=False).items()}
    other = type(estimator)(**arguments)
    stored = other.get_params(deep=False)
    for name, value in arguments.items():
        if stored[name] is not value:
            raise RuntimeError(
                f"Cannot clone object {estimator}, as the constructor either does not set or "
                f"modifies parameter {name}"
            )
    return other


def is_estimator(value: Any) -> bool:
    """Return True for an instance with scikit-learn's `get_params`."""
    return hasattr(value, "get_params") and not isinstance(value, type)


def _copied(value: Any) -> Any:
    """Return a clone of an estimator, also within containers; a deep copy of other values."""
    if is_estimator(value):
        return clone(value)
    if type(value) is dict:
        return {key: _copied(item) for key, item in value.items()}
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(_copied(item) for item in value)
    return copy.deepcopy(value)


def check_is_fitted(estimator: Any, attribute: str = "fitted_") -> None:
    """Refuse an estimator before its fit, which sets `attribute`."""
    if hasattr(estimator, attribute):
        return
    if isinstance(estimator, type):
        raise TypeError(f"{estimator} is a class, not an instance.")
    from sklearn.exceptions import NotFittedError

    raise NotFittedError(
        f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with appropriate "
        "arguments before using this estimator."
    )
