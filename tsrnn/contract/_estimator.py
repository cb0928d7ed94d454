"""Constructor arguments of estimators: shared between classes, and recorded at a fit."""

from __future__ import annotations

import copy
import difflib
import functools
import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from tsrnn.contract._parameters import clone, is_estimator

Class = TypeVar("Class", bound=type)

LIKE_A_SLIP = 0.75  # similarity of a typing error; block_size and batch_size are less similar


class CommonArguments:
    """Constructor arguments of every forecaster.

    Parameters
    ----------
    horizon : int, optional
        Default number of steps of `predict`; by default chosen by frequency.
    target : str or list of str, optional
        Columns to forecast; by default all columns of a wide frame, "y" of a long one.
    known_ahead : str or list of str, optional
        Exogenous columns with a known future, given to `predict` as `X_future`: numbers, booleans,
        or labels, which enter as dummies of all levels but the first.
    static : str or list of str, optional
        Exogenous columns that are constant within each series; numbers, booleans or labels.
    calendar : bool, str or list of str, optional
        Calendar cycles that enter as columns known ahead; True chooses them by frequency.
    holidays : str or list of str, optional
        Countries, such as "DE" or "US-CA", whose public holidays and working days enter as columns
        known ahead.
    id_col, time_col : str
        Columns of a long frame.
    freq : str or int, optional
        Frequency of the data; inferred by default.
    missing : str, default "auto"
        Treatment of missing values and rows, one of `legal_missing`. "auto" is "keep" if the model
        can skip missing values; otherwise they are interpolated with a warning.
    strict : bool, default False
        Refuse input that has to be recognised: arrays, columns of labels, numbers as text, dates
        other than ISO 8601, rows in decreasing time, and files with lines other than a header and
        rows.
    support : {"auto", "real", "nonnegative", "count", "binary"} or pair of bounds, default "auto"
        Possible values of the targets, which bound forecasts, intervals and paths: all numbers,
        numbers from 0, whole numbers from 0, 0 and 1, or a range such as ``(0, 100)``, where one
        bound may be None. "auto" recognises the support of each target.
    random_state : int, numpy random generator or None
        Source of randomness.
    verbose : int
        1 shows a progress bar on long work.

    Examples
    --------
    >>> from tsrnn.contract import CommonArguments
    >>> CommonArguments(horizon=12, target="sales").horizon
    12
    """

    def __init__(
        self,
        *,
        horizon: int | None = None,
        target: Any = None,
        known_ahead: str | Sequence[str] | None = None,
        static: str | Sequence[str] | None = None,
        calendar: bool | str | Sequence[str] | None = None,
        holidays: str | Sequence[str] | None = None,
        id_col: str = "unique_id",
        time_col: str = "ds",
        freq: str | int | None = None,
        missing: str = "auto",
        strict: bool = False,
        support: Any = "auto",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.horizon = horizon
        self.target = target
        self.known_ahead = known_ahead
        self.static = static
        self.calendar = calendar
        self.holidays = holidays
        self.id_col = id_col
        self.time_col = time_col
        self.freq = freq
        self.missing = missing
        self.strict = strict
        self.support = support
        self.random_state = random_state
        self.verbose = verbose


def with_shared_arguments(cls: Class) -> Class:
    """Replace ``**shared`` in the signature and docstring of a class by the base's arguments.

    They come from the next `__init__` among the bases, which receives ``**shared``. scikit-learn
    and help() read them in the signature. Unknown arguments raise in the name of the called class.
    In the docstring, a parameter ``**shared`` "As in all forecasters." is replaced by the base's
    entries for arguments that the class does not describe.

    Parameters
    ----------
    cls : type
        Its `__init__` ends in ``**shared``; without one, the docstring alone is completed.

    Returns
    -------
    type
        The same class.

    Examples
    --------
    >>> import inspect
    >>> from tsrnn.contract import CommonArguments, with_shared_arguments
    >>> @with_shared_arguments
    ... class Own(CommonArguments):
    ...     def __init__(self, order=1, **shared):
    ...         super().__init__(**shared)
    ...         self.order = order
    >>> list(inspect.signature(Own).parameters)[:3]
    ['order', 'horizon', 'target']
    """
    above = next(base for base in cls.__mro__[1:] if "__init__" in vars(base))
    doc = inspect.cleandoc(cls.__doc__ or "")  # None under python -OO
    if _SHARED in doc:
        here, there = _described(doc), _described(inspect.cleandoc(above.__doc__ or ""))
        entries = [entry for heading, entry in there.items() if heading not in here]
        cls.__doc__ = doc.replace(_SHARED, "\n".join(entries))
    if "__init__" not in vars(cls):
        return cls
    init = cls.__dict__["__init__"]
    parameters = inspect.signature(init).parameters.values()
    named = {p.name: p for p in parameters if p.kind is not p.VAR_KEYWORD}
    passed_on = inspect.signature(above.__init__).parameters.values()  # type: ignore[misc]
    rest = {p.name: p.replace(kind=p.KEYWORD_ONLY) for p in passed_on if p.name not in named}

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in kwargs:
            if name not in named and name not in rest:
                called, legal = type(self).__name__, [*named, *rest][1:]  # without self
                near = difflib.get_close_matches(name, legal, n=1, cutoff=LIKE_A_SLIP)
                advice = (
                    f"did you mean {near[0]!r}?"
                    if near
                    else f"help({called}) lists those there are"
                )
                raise TypeError(f"{called}() got an unexpected argument {name!r}; {advice}")
        init(self, *args, **kwargs)

    whole = inspect.Signature([*named.values(), *rest.values()])
    checked.__signature__ = whole  # type: ignore[attr-defined]
    cls.__init__ = checked  # type: ignore[misc]
    return cls


_SHARED = "**shared\n    As in all forecasters."


def _described(doc: str) -> dict[str, str]:
    """Return the entries of the section "Parameters" of a docstring, by their names."""
    section = doc.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    entries = re.findall(r"^\S.*(?:\n .*)*", section, re.MULTILINE)
    return {entry.partition("\n")[0].partition(" : ")[0]: entry for entry in entries}


class Arguments:
    """Record of constructor arguments by name.

    Later changes by `set_params`, or of a list, array or nested estimator, do not affect the
    record, and reading returns copies. Generators, callbacks and cells are not copied.

    Parameters
    ----------
    values : mapping of str to object
    class_name : str
        Name of the estimator's class, for errors about the data.

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

    __slots__ = ("_values", "class_name")
    _values: dict[str, Any]
    class_name: str

    def __init__(self, values: Mapping[str, Any], class_name: str = "Arguments") -> None:
        object.__setattr__(self, "_values", {name: _detached(v) for name, v in values.items()})
        object.__setattr__(self, "class_name", class_name)

    @classmethod
    def of(cls, estimator: Any) -> Arguments:
        """Record the current arguments of an estimator.

        Parameters
        ----------
        estimator : estimator
            Object with scikit-learn's `get_params`.
        """
        return cls(estimator.get_params(deep=False), type(estimator).__name__)

    def as_dict(self) -> dict[str, Any]:
        """Return copies of all values by name."""
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

    def __reduce__(self) -> tuple[type[Arguments], tuple[dict[str, Any], str]]:
        return type(self), (self._values, self.class_name)

    def __repr__(self) -> str:
        return f"Arguments({', '.join(f'{k}={v!r}' for k, v in self._values.items())})"


def _detached(value: Any) -> Any:
    """Return copies of mutable values and unfitted clones of estimators, other values unchanged."""
    if is_estimator(value):
        return clone(value)
    if isinstance(value, Mapping):
        return {key: _detached(item) for key, item in value.items()}
    if type(value) in (list, tuple, set):
        return type(value)(_detached(item) for item in value)
    if isinstance(value, np.ndarray):
        return copy.copy(value)
    return value


def last_step(model: Any) -> Any:
    """Return the forecaster at the end of a scikit-learn pipeline, or the model itself."""
    steps = getattr(model, "steps", None)
    return steps[-1][1] if isinstance(steps, list) and steps else model
