"""Warnings that point at the user's line."""

import sys
import warnings


def warn_user(message: str) -> None:
    """Warn at the first line outside the package.

    Parameters
    ----------
    message : str
        Of a UserWarning.

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
    warnings.warn(message, stacklevel=level)
