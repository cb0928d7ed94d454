"""Methods that only some forecasters have, by what a class answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import update_wrapper
from importlib import import_module
from types import MethodType
from typing import Any, TypeVar, cast

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
    found = next(_definitions(cls, method), None)
    return _answers(cls, found.question) if isinstance(found, _OfSome) else found is not None


def _answers(cls: type, question: str) -> bool:
    """Whether a class defines a method, which is neither None nor such a descriptor."""
    found = next(_definitions(cls, question), None)
    return not (found is None or isinstance(found, _OfSome))


def _definitions(cls: type, name: str) -> Iterator[Any]:
    return (vars(base)[name] for base in cls.__mro__ if name in vars(base))
