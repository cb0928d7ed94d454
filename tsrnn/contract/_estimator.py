"""Constructor arguments of estimators: shared, frozen at a fit; methods that only some offer."""

from __future__ import annotations

import contextlib
import copy
import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import update_wrapper
from importlib import import_module
from types import MethodType
from typing import Any, NoReturn, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, clone

Class = TypeVar("Class", bound=type)

LIKE_A_SLIP = 0.75  # below it, names of two arguments are as close: block_size and batch_size


class CommonArguments:
    """Stores the constructor arguments that every forecaster has.

    Parameters
    ----------
    horizon : int, optional
        Steps that `predict` gives without h; by frequency.
    target : str or list of str, optional
        Columns to forecast; by default all columns of a wide frame, "y" of a long one.
    known_ahead : str or list of str, optional
        Exogenous columns whose future is given to `predict` as `X_future`.
    static : str or list of str, optional
        Exogenous columns that are constant within each series.
    calendar : bool, str or list of str, optional
        Cycles of the calendar that enter as columns known ahead; True chooses by frequency.
    id_col, time_col : str
        Columns of a long frame.
    freq : str or int, optional
        Frequency of the data, where it cannot be inferred.
    missing : str
        Treatment of missing values, one of `legal_missing`.
    random_state : int, numpy random generator or None
        What is drawn from.
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
        id_col: str = "unique_id",
        time_col: str = "ds",
        freq: str | int | None = None,
        missing: str = "error",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.horizon = horizon
        self.target = target
        self.known_ahead = known_ahead
        self.static = static
        self.calendar = calendar
        self.id_col = id_col
        self.time_col = time_col
        self.freq = freq
        self.missing = missing
        self.random_state = random_state
        self.verbose = verbose


def with_shared_arguments(cls: Class) -> Class:
    """Class decorator: the arguments behind ``**shared`` become part of the signature.

    They are those of the next `__init__` among the bases, to which ``**shared`` is passed on.
    scikit-learn and help() read names in the signature. An argument that is not there is refused
    in the name of the class that was called.

    Parameters
    ----------
    cls : type
        With an `__init__` of its own that ends in ``**shared``.

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
    init = cls.__dict__["__init__"]
    parameters = inspect.signature(init).parameters.values()
    named = {p.name: p for p in parameters if p.kind is not p.VAR_KEYWORD}
    above = super(cls, cls).__init__  # type: ignore[arg-type]
    passed_on = inspect.signature(above).parameters.values()
    rest = {p.name: p.replace(kind=p.KEYWORD_ONLY) for p in passed_on if p.name not in named}

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in kwargs:
            if name not in named and name not in rest:
                raise TypeError(_unexpected(type(self).__name__, name, [*named, *rest][1:]))
        init(self, *args, **kwargs)

    whole = inspect.Signature([*named.values(), *rest.values()])
    checked.__signature__ = whole  # type: ignore[attr-defined]
    cls.__init__ = checked  # type: ignore[misc]
    return cls


def _unexpected(called: str, name: str, legal: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, legal, n=1, cutoff=LIKE_A_SLIP)
    advice = f"did you mean {near[0]!r}?" if near else f"help({called}) lists those there are"
    return f"{called}() got an unexpected argument {name!r}; {advice}"


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

    @classmethod
    def _update_header(cls, header: dict[str, Any]) -> None:
        """Bring the header of a file of format 2 to the present format, in place."""

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


F = TypeVar("F", bound=Callable[..., Any])


def offered_with(question: str) -> Callable[[F], F]:
    """Decorate a method of the base class that only those classes have that answer a question.

    Of an instance of another class `hasattr` is False, and the error names those that have it.

    Parameters
    ----------
    question : str
        Name of the method that a class defines to have the one decorated.

    Examples
    --------
    >>> from tsrnn.baselines import Theta
    >>> from tsrnn.linear import GARCH
    >>> hasattr(GARCH(), "predict_variance"), hasattr(Theta(), "predict_variance")
    (True, False)
    """
    return cast(Callable[[F], F], lambda function: _OfSome(function, question))


def classes_with(method: str) -> list[str]:
    """Names of the forecasters of the package that have a method, by alphabet.

    Parameters
    ----------
    method : str

    Returns
    -------
    list of str

    Examples
    --------
    >>> from tsrnn.contract import classes_with
    >>> classes_with("predict_covariances")
    ['CCC', 'DCC', 'VECMGARCH']
    """
    # The table of all classes lies above this room: it is asked for when a message is read.
    homes = import_module(f"{__name__.partition('.')[0]}.storage").HOMES
    classes = (getattr(import_module(room), name) for name, room in sorted(homes.items()))
    return [cls.__name__ for cls in classes if hasattr(cls, "_forecast") and _has(cls, method)]


class _NotOfferedError(AttributeError):
    """Names the classes that have the method, which only reading the message has to find."""

    def __init__(self, cls: str, method: str) -> None:
        super().__init__(cls, method)

    def __str__(self) -> str:
        cls, method = self.args
        return f"{cls} has no {method}; those that have it are {', '.join(classes_with(method))}"


class _OfSome:
    """Descriptor of `offered_with`."""

    def __init__(self, function: Callable[..., Any], question: str) -> None:
        self.function, self.question = function, question
        update_wrapper(cast(Any, self), function)  # so that documentation finds its text

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self.function
        if not _answers(owner, self.question):
            raise _NotOfferedError(owner.__name__, self.function.__name__)
        return MethodType(self.function, instance)


def _has(cls: type, method: str) -> bool:
    first = next(_definitions(cls, method), None)
    return _answers(cls, first.question) if isinstance(first, _OfSome) else first is not None


def _answers(cls: type, question: str) -> bool:
    """Whether a class defines a method, which is neither None nor such a descriptor."""
    first = next(_definitions(cls, question), None)
    return not (first is None or isinstance(first, _OfSome))


def _definitions(cls: type, name: str) -> Iterator[Any]:
    return (vars(base)[name] for base in cls.__mro__ if name in vars(base))


def last_step(model: Any) -> Any:
    """The forecaster of a pipeline, or the model itself.

    Parameters
    ----------
    model : object
        A forecaster, or a pipeline of scikit-learn that ends in one.

    Returns
    -------
    object

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from tsrnn.baselines import Naive
    >>> from tsrnn.contract import last_step
    >>> last_step(make_pipeline(Naive()))
    Naive()
    """
    steps = getattr(model, "steps", None)
    return steps[-1][1] if isinstance(steps, list) and steps else model
