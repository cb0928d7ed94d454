"""How many steps of a frequency lie between timestamps."""

from __future__ import annotations

import numpy as np

from tsrnn.data._alias import parse_freq
from tsrnn.data._grid import Count, Grid
from tsrnn.data._layout import Freq
from tsrnn.data._stamps import period_step


def steps_between(
    first: np.ndarray, later: np.ndarray, freq: Freq, tz: str | None = None
) -> np.ndarray:
    """Steps from one timestamp to another, whole ones, negative if it lies before.

    Parameters
    ----------
    first, later : ndarray, shape (S,)
        Of the kind of `Panel.times`.
    freq : str or int
        A pandas alias, or the step of an integer index.
    tz : str, optional
        Zone of the timestamps; days and months are those of its clock.

    Returns
    -------
    ndarray of int64, shape (S,)
        Rounded down where a timestamp lies between steps.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.data import steps_between
    >>> first = np.array(["2024-01-01", "2024-05-01"], "datetime64[ns]")
    >>> later = np.array(["2024-03-01", "2024-04-01"], "datetime64[ns]")
    >>> steps_between(first, later, "MS")
    array([ 2, -1])
    """
    grid: Grid
    if first.dtype.kind != "M" and isinstance(freq, str):
        grid = Count(period_step(freq), freq)
    else:
        grid = parse_freq(freq)
    return (grid.numbers(later, tz) - grid.numbers(first, tz)) // grid.step
