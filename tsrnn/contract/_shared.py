"""Arguments that constructors share: stored in one class, named in every signature."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

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
    own = inspect.signature(init).parameters.values()
    named = {p.name: p for p in own if p.kind is not p.VAR_KEYWORD}
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
