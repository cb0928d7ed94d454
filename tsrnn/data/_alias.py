"""Frequency aliases of pandas and the grids they name."""

from __future__ import annotations

import re

import numpy as np

from tsrnn.data._grid import Business, Count, Days, Grid, Months, Tick

__all__ = ["TICKS", "day_grid", "month_grid", "parse_freq", "tick_grid", "week_grid"]

TICKS = {
    "h": 3_600_000_000_000,
    "min": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}
LONGEST = 2**61  # step of integers or nanoseconds
WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_RULES = {"S": "start", "E": "end", "BS": "business start", "BE": "business end"}
_MODULI = {"M": 1, "Q": 3, "Y": 12}
_OLD = {
    "M": "'ME' (month end) or 'MS' (month start)",
    "Q": "'QE' (quarter end) or 'QS' (quarter start)",
    "A": "'YE' (year end) or 'YS' (year start)",
    "Y": "'YE' (year end) or 'YS' (year start)",
    "BM": "'BME'",
    "H": "'h'",
    "T": "'min'",
    "S": "'s'",
    "L": "'ms'",
    "U": "'us'",
    "N": "'ns'",
    "d": "'D'",
}
_ALIAS = re.compile(r"(?P<n>\d{0,9})(?P<base>[A-Za-z]+)(?:-(?P<anchor>[A-Z]{3}))?")
_MONTHLY = re.compile(r"(?P<business>B?)(?P<unit>[MQY])(?P<side>[SE])")


def parse_freq(freq: object) -> Grid:
    """Return the grid that a frequency for datetimes or integers names.

    Parameters
    ----------
    freq : str, int or pandas offset
        An integer is the step of an integer index. Aliases: D, W-SUN, B, h, min, s, ms, us, ns,
        MS, ME, QS-JAN, QE-DEC, YS-JAN, YE-DEC and the business variants BMS, BME, BQS-JAN, ...,
        each with a multiple in front. Anchors that mean the same grid (QS-JAN, QS-APR) get the
        same name (QS-JAN).

    Raises
    ------
    ValueError
        If the frequency is not one of these.
    """
    if isinstance(freq, int | np.integer) and not isinstance(freq, bool):
        return _integer_grid(int(freq))
    text = freq if isinstance(freq, str) else getattr(freq, "freqstr", None)
    match = _ALIAS.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise _not_understood(freq)
    n = int(match["n"] or 1)
    grid = _named_grid(n, match["base"], match["anchor"]) if n > 0 else None
    if grid is None:
        raise _not_understood(freq, match["base"])
    return grid


def tick_grid(nanoseconds: int) -> Grid:
    """Return the grid of a fixed step, named by the largest unit from hours down."""
    for unit, size in TICKS.items():
        if nanoseconds % size == 0:
            return Tick(nanoseconds, _multiple(nanoseconds // size, unit))
    raise AssertionError("every integer is a multiple of a nanosecond")


def day_grid(n: int) -> Grid:
    """Return the grid of every n-th day."""
    return Days(n, _multiple(n, "D"))


def week_grid(n: int, weekday: int) -> Grid:
    """Return the grid of every n-th week on a weekday, 0 for Monday."""
    return Days(7 * n, _multiple(n, f"W-{WEEKDAYS[weekday]}"), weekday)


def month_grid(step: int, rule: str, residue: int) -> Grid:
    """Return the grid of a day in every `step`-th month, in the largest unit that divides it."""
    unit = next(unit for unit in ("Y", "Q", "M") if step % _MODULI[unit] == 0)
    modulus = _MODULI[unit]
    residue %= modulus
    code = next(code for code, name in _RULES.items() if name == rule)
    base = f"{code[:-1]}{unit}{code[-1]}"
    if modulus > 1:
        base += f"-{MONTHS[residue if rule.endswith('start') else residue + 12 - modulus]}"
    return Months(step, _multiple(step // modulus, base), rule, modulus, residue)


def _integer_grid(step: int) -> Grid:
    if not 1 <= step <= LONGEST:
        raise ValueError(
            f"freq of an integer index must be a step of at least 1 and at most 2**61; got {step}. "
            "Give the difference of neighbouring timestamps, sorted in rising order."
        )
    return Count(step, step)


def _named_grid(n: int, base: str, anchor: str | None) -> Grid | None:
    if base == "W" and (anchor is None or anchor in WEEKDAYS):
        return week_grid(n, WEEKDAYS.index(anchor or "SUN"))
    monthly = _MONTHLY.fullmatch(base)
    if monthly is not None:
        return _monthly_grid(n, monthly, anchor)
    if anchor is not None:
        return None
    if base == "D":
        return day_grid(n)
    if base == "B":
        return Business(n, _multiple(n, "B"))
    return tick_grid(n * TICKS[base]) if base in TICKS and n * TICKS[base] <= LONGEST else None


def _monthly_grid(n: int, match: re.Match[str], anchor: str | None) -> Grid | None:
    modulus = _MODULI[match["unit"]]
    rule = _RULES[match["business"] + match["side"]]
    if anchor is not None and (modulus == 1 or anchor not in MONTHS):
        return None
    month = MONTHS.index(anchor) if anchor else (0 if match["side"] == "S" else 11)
    step = n * modulus
    alias = str(month_grid(modulus, rule, month).alias)
    return Months(step, _multiple(n, alias), rule, modulus, month % modulus)


def _multiple(n: int, base: str) -> str:
    return base if n == 1 else f"{n}{base}"


def _not_understood(freq: object, base: str = "") -> ValueError:
    hint = f" Instead of {base!r} use {_OLD[base]}." if base in _OLD else ""
    return ValueError(
        f"freq={freq!r} is not understood.{hint} Give a pandas alias such as 'MS', 'ME', 'QS', "
        "'YS', 'W-SUN', 'D', 'B', 'h' or '15min', or the integer step of an integer index."
    )
