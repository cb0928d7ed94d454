"""Defaults by frequency: horizon, season and windows of the past."""

import re
from typing import NamedTuple

from tsrnn.data import Layout


class FrequencyDefaults(NamedTuple):
    """Horizon, season (1 for none) and windows of the past for data of one frequency, in steps.

    `longer` has further seasons, multiples of the first; `input_sizes` are candidates of
    `input_size`.
    """

    horizon: int
    season: int
    input_sizes: tuple[int, ...]
    longer: tuple[int, ...] = ()

    @property
    def input_size(self) -> int:
        """Default window: the second candidate."""
        return self.input_sizes[:2][-1]

    @property
    def seasons(self) -> tuple[int, ...]:
        """Steps of every season; empty without a season."""
        return (self.season, *self.longer) if self.season > 1 else ()


# Letters of the pandas alias -> defaults. "MS", "BME" and others reduce to "M", "Q" or "Y".
_BY_ALIAS = {
    "h": FrequencyDefaults(48, 24, (168, 336), (168,)),
    "D": FrequencyDefaults(14, 7, (28, 56, 112)),
    "B": FrequencyDefaults(14, 5, (20, 40, 80)),
    "C": FrequencyDefaults(14, 5, (20, 40, 80)),
    "W": FrequencyDefaults(13, 52, (52, 104, 208)),
    "M": FrequencyDefaults(18, 12, (24, 36, 72, 120)),
    "Q": FrequencyDefaults(8, 4, (8, 16, 32)),
    "Y": FrequencyDefaults(6, 1, (5, 10, 20)),
}
_PER_DAY = {"min": 1440, "s": 86400}
_OTHER = FrequencyDefaults(10, 1, (16, 32, 64))
_SHORTEST_WINDOW = 8
_LONGEST_SEASON = 288


def frequency_defaults(freq: str | int | Layout) -> FrequencyDefaults:
    """Return horizon, season and input sizes for a frequency.

    It is a pandas alias, the step of an integer index, or a layout, which also has the working days
    of a week. A multiple such as "2h" has a season if its steps divide the period. Steps below an
    hour have a daily season of at most 288 steps. Unknown frequencies have no season and a horizon
    of 10.
    """
    if isinstance(freq, Layout):
        defaults, week = frequency_defaults(freq.freq), freq.weekmask.count("1")
        return defaults if week == 5 else defaults._replace(season=week)
    if isinstance(freq, int):
        return _OTHER
    match = re.fullmatch(r"(\d*)([A-Za-z]+)(-.*)?", freq)
    if match is None:
        return _OTHER
    multiple, letters = int(match[1] or 1), match[2]
    if letters in _PER_DAY:
        return _within_a_day(_PER_DAY[letters], multiple)
    base = _BY_ALIAS.get(letters) or _BY_ALIAS.get(letters.removesuffix("S").removesuffix("E")[-1:])
    if base is None or multiple == 1:
        return base or _OTHER
    season = _season(base.season, multiple)
    longer = tuple(_season(period, multiple) for period in base.longer) if season > 1 else ()
    return FrequencyDefaults(
        base.horizon, season, _windows(*(s // multiple for s in base.input_sizes)), longer
    )


def _windows(*sizes: int) -> tuple[int, ...]:
    """Return input sizes of at least `_SHORTEST_WINDOW`; sizes may repeat."""
    return tuple(max(size, _SHORTEST_WINDOW) for size in sizes)


def _season(period: int, multiple: int) -> int:
    """Return the steps of `multiple` in a period; 1 if they do not divide it."""
    return period // multiple if period % multiple == 0 else 1


def _within_a_day(per_day: int, multiple: int) -> FrequencyDefaults:
    """Return windows of one and two days, or without a daily season one of 32 to 96 steps."""
    season, two_days = _season(per_day, multiple), 2 * per_day // multiple
    if 1 < season <= _LONGEST_SEASON:
        return FrequencyDefaults(48, season, _windows(two_days // 2, two_days), (7 * season,))
    return FrequencyDefaults(48, 1, (min(max(two_days, _OTHER.input_size), 96),))
