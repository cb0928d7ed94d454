"""Warnings that point at the user's line."""

import sys
import warnings


class IntervalWarning(UserWarning):
    """A prediction interval that promises less than its level says, or was widened.

    Parameters
    ----------
    message : str

    Examples
    --------
    >>> import warnings
    >>> from tsrnn.baselines import Naive
    >>> from tsrnn.contract import IntervalWarning
    >>> import pandas as pd
    >>> model = Naive().fit(pd.Series([3.0, 5.0], pd.RangeIndex(2)))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", IntervalWarning)
    ...     try:
    ...         model.predict(1, level=80)
    ...     except IntervalWarning as warning:
    ...         print(str(warning)[:56])
    the intervals of the series rest on 1 error: they follow
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)


def warn_user(message: str, category: type[UserWarning] = UserWarning) -> None:
    """Warn at the first line outside the package.

    Parameters
    ----------
    message : str
    category : type, optional
        Of the warning; UserWarning by default.

    Examples
    --------
    >>> import warnings
    >>> from tsrnn.contract import warn_user
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_user("a series is short")
    >>> str(caught[0].message)
    'a series is short'
    """
    level, frame = 1, sys._getframe()
    package = __name__.partition(".")[0]
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
