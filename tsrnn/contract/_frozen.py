"""Constructor arguments as a fit has read them; everything after the fit reads these."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import numpy as np
from sklearn.base import BaseEstimator, clone


class Arguments:
    """Constructor arguments by name, as they were when the record was made.

    Neither `set_params` nor a change of a list, array or nested estimator reaches the record, and
    what is read from it is a copy of those. Generators, callbacks and cells are the objects given.

    Parameters
    ----------
    values : mapping of str to object

    Examples
    --------
    >>> from tsrnn.contract import Arguments
    >>> order = [1, 1]
    >>> arguments = Arguments({"order": order, "trend": "c"})
    >>> order.append(2)
    >>> arguments
    Arguments(order=[1, 1], trend='c')
    >>> arguments.trend
    'c'
    """

    __slots__ = ("_values",)
    _values: dict[str, Any]

    def __init__(self, values: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_values", {name: _detached(v) for name, v in values.items()})

    @classmethod
    def of(cls, estimator: Any) -> Arguments:
        """Arguments of an estimator as they stand.

        Parameters
        ----------
        estimator : estimator
            With scikit-learn's `get_params`.
        """
        return cls(estimator.get_params(deep=False))

    def as_dict(self) -> dict[str, Any]:
        """Copies of all values by name."""
        return {name: _detached(value) for name, value in self._values.items()}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self._values:
            raise AttributeError(f"no argument is called {name!r}")
        return _detached(self._values[name])

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(
            f"the arguments of a fit cannot be changed; got {name}={value!r}. Give it to "
            "set_params and fit again"
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"the arguments of a fit cannot be deleted; got {name!r}")

    def __reduce__(self) -> tuple[type[Arguments], tuple[dict[str, Any]]]:
        return type(self), (self._values,)

    def __repr__(self) -> str:
        return f"Arguments({', '.join(f'{k}={v!r}' for k, v in self._values.items())})"


class Frozen:
    """Freezes the constructor arguments at a fit; a part of every estimator.

    After its `__init__` a class reads an argument as ``self.arguments_.order``, never as
    ``self.order``: before a fit that is the argument as it stands, afterwards that of the fit.

    Attributes
    ----------
    arguments_ : Arguments

    Examples
    --------
    >>> from tsrnn import ARMA
    >>> from tsrnn.datasets import load_nile
    >>> model = ARMA(order=(1, 0)).fit(load_nile())
    >>> _ = model.set_params(order=(2, 0))
    >>> model.order, model.arguments_.order
    ((2, 0), (1, 0))
    """

    _frozen: Arguments | None = None

    @property
    def arguments_(self) -> Arguments:
        """Constructor arguments of the last fit; as they stand where there was none."""
        return Arguments.of(self) if self._frozen is None else self._frozen

    def _freeze(self) -> None:
        self._frozen = Arguments.of(self)

    @contextlib.contextmanager
    def _fitting(self) -> Iterator[None]:
        """Freeze the arguments for a fit; one that fails leaves the estimator as it was."""
        before = self.__dict__.copy()
        try:
            self._freeze()
            yield
        except BaseException:
            self.__dict__ = before
            raise


def _detached(value: Any) -> Any:
    """A copy of what can change in place, estimators not fitted; anything else as it is."""
    if isinstance(value, BaseEstimator):
        return clone(value)
    if isinstance(value, Mapping):
        return {key: _detached(item) for key, item in value.items()}
    if type(value) in (list, tuple, set):
        return type(value)(_detached(item) for item in value)
    if isinstance(value, np.ndarray):
        return copy.copy(value)
    return value
