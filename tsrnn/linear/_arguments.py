"""Constructor arguments that several models have, checked."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

from tsrnn.contract import FittedData, frequency_defaults, positive_integer
from tsrnn.data import quote

# Far beyond any use, yet small enough to allocate before a check refuses the value.
MOST_LAGS, MOST_ROWS = 10_000, 10**9


def order_of(name: str, value: Any, what: str, least: tuple[int, int] = (1, 0)) -> tuple[int, int]:
    """Check an order (p, q): each at least `least`, not both zero."""
    legal = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2
    if not legal or not all(_is_count(n) for n in value):
        raise ValueError(f"{name} must be two integers (p, q), {what}; got {quote(value)}")
    if max(value) > MOST_LAGS:
        raise ValueError(
            f"{name}=(p, q), {what}, must be at most {MOST_LAGS:,}; got {quote(value)}"
        )
    for letter, n, lowest in zip("pq", value, least, strict=True):
        if n < lowest:
            raise ValueError(
                f"{name}=(p, q), {what}, needs {letter} >= {lowest}; got {quote(value)}"
            )
    if not any(value):
        raise ValueError(f"{name}=(p, q), {what}, needs a lag of either; got {quote(value)}")
    return int(value[0]), int(value[1])


def check_season(seasonal: str, period: int, length: Any, data: FittedData) -> None:
    """Refuse a season of one row; `length` is the argument `season_length`."""
    if period == 1:
        raise ValueError(
            f"seasonal={seasonal!r} needs a season of at least two rows; got season_length="
            f"{quote(length)} and the frequency {data.freq!r}"
        )


def season_length(length: Any, data: FittedData, longest: float = math.inf) -> int:
    """Rows of a season: given, or by frequency, where one of more than `longest` rows is none."""
    if length is not None:
        return positive_integer("season_length", length)
    season = frequency_defaults(data.layout).season
    return season if season <= longest else 1


def burn_of(value: Any) -> int:
    """Check the number of rows drawn and dropped before a simulation."""
    if not _is_count(value):
        raise ValueError(f"burn must be an integer of at least 0; got {quote(value)}")
    if value > MOST_ROWS:
        raise ValueError(f"burn must be at most {MOST_ROWS:,} rows; got {quote(value)}")
    return int(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 0
