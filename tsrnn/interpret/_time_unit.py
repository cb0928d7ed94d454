"""Unit of time of a pandas frequency in words."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from pandas.tseries.frequencies import to_offset

from tsrnn.interpret._checks import is_count

_UNITS = {
    "ns": "nanoseconds",
    "us": "microseconds",
    "ms": "milliseconds",
    "s": "seconds",
    "min": "minutes",
    "h": "hours",
    "bh": "business hours",
    "cbh": "business hours",
    "D": "days",
    "B": "business days",
    "C": "business days",
    "W": "weeks",
    **dict.fromkeys(["M", "MS", "ME", "BMS", "BME", "CBMS", "CBME"], "months"),
    **dict.fromkeys(["Q", "QS", "QE", "BQS", "BQE"], "quarters"),
    **dict.fromkeys(["Y", "A", "YS", "YE", "AS", "BYS", "BYE"], "years"),
}
_ALIAS = re.compile(r"(?P<multiple>0*[1-9]\d*|)(?P<alias>[A-Za-z]+)(-[A-Z0-9]+)?")


class TimeUnit(NamedTuple):
    """Length of a time step, `step` times the unit `name`."""

    name: str
    step: float


def time_unit(freq: Any) -> TimeUnit:
    """Unit of time of a frequency: ("minutes", 15) for "15min", ("months", 1) for "MS".

    An integer k is the frequency of an integer index and gives ("index units", k). None and 1 give
    ("steps", 1).
    """
    if freq is None:
        return TimeUnit("steps", 1.0)
    if is_count(freq):
        return TimeUnit("steps" if freq == 1 else "index units", float(freq))
    text = freq if isinstance(freq, str) else getattr(freq, "freqstr", None)
    if text is None:
        raise _not_understood(freq)
    unit = _from_alias(text)
    if unit is None:
        try:
            unit = _from_alias(str(to_offset(text).freqstr))  # pandas turns "1h30min" into "90min"
        except (ValueError, AttributeError) as error:
            raise _not_understood(text) from error
    if unit is None:
        raise _not_understood(freq)
    return unit


def _from_alias(text: str) -> TimeUnit | None:
    match = _ALIAS.fullmatch(text)
    if match is None or match["alias"] not in _UNITS:
        return None
    return TimeUnit(_UNITS[match["alias"]], float(match["multiple"] or 1))


def _not_understood(freq: Any) -> ValueError:
    return ValueError(
        "`freq` must be a pandas frequency with a unit of time, such as 'MS', 'h', '15min' or "
        f"'W-SUN', or a positive integer for an integer index; got {freq!r}. "
        "Leave it out to get half-lives and periods in time steps."
    )
