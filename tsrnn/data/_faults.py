"""Faults of series: their names in messages and warnings, and the split of series by fault."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd

Label = TypeVar("Label")


def split_by_series(
    series: Sequence[Label], attempt: Callable[[list[Label]], Any], hopeless: int | None = None
) -> tuple[list[Any], dict[Label, Exception]]:
    """Call `attempt` on all series; where it raises, on halves, down to single series.

    Parameters
    ----------
    series : sequence
        Labels of the series.
    attempt : callable
        Function of a list of labels.
    hopeless : int, optional
        Number of single series (at most all) that may fail before anything succeeds. The fault is
        then taken to be common, such as an argument, and raised.

    Returns
    -------
    results : list
        Return values of `attempt`, in the order of the series.
    faults : dict
        Exception by label of each series that failed alone.

    Raises
    ------
    Exception
        Exception of all series together, if the fault is common.
    ImportError
        If a package is missing, which is no fault of a series.

    Examples
    --------
    >>> from tsrnn.data import split_by_series
    >>> results, faults = split_by_series([1, 2, 0, 4], lambda part: [8 // i for i in part])
    >>> results, list(faults)
    ([[8, 4], [2]], [0])
    """
    results: list[Any] = []
    faults: dict[Label, Exception] = {}
    raised: list[Exception] = []  # by all series together
    parts = [list(series)]
    while parts:
        part = parts.pop()
        try:
            results.append(attempt(part))
        except ImportError:
            raise
        except Exception as error:  # a model of the user may raise anything
            raised = raised or [error]
            if len(part) > 1:
                middle = len(part) // 2
                parts += [part[middle:], part[:middle]]
                continue
            faults[part[0]] = error
            if hopeless and not results and len(faults) == min(hopeless, len(series)):
                raise raised[0] from None
    return results, faults


def quote(label: object) -> str:
    """Return a label of a series, column or time for a message.

    Parameters
    ----------
    label : object

    Returns
    -------
    str
        Text in quotation marks; numbers and times without the names of their classes.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.data import quote
    >>> quote("1"), quote(np.int64(1)), quote(pd.Timestamp("2024-01-31"))
    ("'1'", '1', '2024-01-31')
    >>> quote(("north", np.int64(1)))
    "('north', 1)"
    """
    if isinstance(label, np.datetime64 | np.timedelta64):
        label = pd.Series([label])[0]  # `item` would give nanoseconds
    elif isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple | list):
        inner = ", ".join(map(quote, label))
        return f"[{inner}]" if isinstance(label, list) else f"({inner}{',' * (len(label) == 1)})"
    if type(label).__module__ == "builtins":
        return repr(label)
    return str(label).removesuffix(" 00:00:00")


def show_label(label: object) -> str:
    """Return a label for tables and notes: `quote`, but text without quotation marks."""
    return label if isinstance(label, str) else quote(label)


def type_advice(ids: Iterable[Any], known: Iterable[Any]) -> str:
    """Return advice, with a leading blank, if unknown ids differ from known ones in type alone."""
    by_text = {str(label): label for label in known}
    for label in ids:
        other = by_text.get(str(label))
        if other is not None and type(other) is not type(label):
            to = pd.Index([other]).dtype
            return (
                f" Ids differ in type: {quote(label)} here is {quote(other)} in the data fitted "
                f"to. Convert them by astype({'str' if isinstance(other, str) else str(to)!r})."
            )
    return ""


def array_advice(values: object, columns: Sequence[str] = ()) -> str:
    """Return advice on how to convert an array or a list to a frame.

    It begins with a blank, and is empty for objects other than arrays and lists of one or two axes.
    `columns` are those of a long frame, where only long frames are accepted.
    """
    shape = getattr(values, "shape", (0,) if isinstance(values, list | tuple) else ())
    if not isinstance(shape, tuple) or len(shape) not in (1, 2):
        return ""
    if columns:
        needed = ", ".join(f"{name!r}: ..." for name in columns)
        return f" Give a row for each series and time: pd.DataFrame({{{needed}}})."
    kind = "Series" if len(shape) == 1 else "DataFrame"
    return (
        f" Wrap it: pd.{kind}(values, pd.date_range('2020-01-31', periods=len(values), "
        f"freq='ME')) with its first date and frequency, or pd.{kind}(values), whose index counts "
        "the rows."
    )


def listed(items: Iterable[object], limit: int = 5, conjunction: str = "and") -> str:
    """Return the first `limit` items joined by commas, and the count of the others."""
    texts = [str(item) for item in items]
    shown = ", ".join(texts[:limit])
    more = len(texts) - limit
    return f"{shown} {conjunction} {more} more" if more > 0 else shown


def quoted(names: Iterable[object], limit: int = 5) -> str:
    """Return the first labels, quoted and joined, and the count of the others."""
    return listed((quote(name) for name in names), limit)


def quote_series(labels: Iterable[object], limit: int = 3) -> str:
    """Join the first labels of series by commas; put "series" before numbers, "first" if cut.

    The text cannot be read as a count when it follows "of". Labels are ids, names of targets, or
    pairs of both.
    """
    labels = list(labels)
    first = labels[:limit]
    shown = ", ".join(map(quote, first))
    if not all(isinstance(label, str | tuple) for label in first):
        shown = f"series {shown}"
    return shown if len(labels) <= limit else f"first {shown}"


class MissingValuesWarning(UserWarning):
    """Warning of rows that were inserted, or of missing values that were interpolated.

    Parameters
    ----------
    message : str

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> from tsrnn.baselines import Naive
    >>> from tsrnn.data import MissingValuesWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", MissingValuesWarning)
    ...     try:
    ...         Naive().fit(pd.Series([3.0, None, 5.0]))
    ...     except MissingValuesWarning as warning:
    ...         print(str(warning)[:57])
    Naive has no place for missing values: 1 missing value is
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)


def warn_user(message: str, category: type[UserWarning] = UserWarning) -> None:
    """Warn at the first line outside the package."""
    level, frame = 1, sys._getframe()
    # Decorators of torch stand between functions of the package.
    packages = __name__.partition(".")[0], "torch"
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in packages:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
