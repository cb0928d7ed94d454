"""Numbers written as text: decimal and thousands marks, signs and units."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

Decimal = Literal[".", ","]

# Texts among numbers that mean a missing value, in upper case.
_MISSING_WORDS = {
    *("NA", "N/A", "N.A.", "NAN", "NULL", "NONE", "NIL", "K.A.", "K. A."),
    *("<NA>", "#NA", "#N/A", "#NV", "#DIV/0!", "#VALUE!"),
}
_MISSING_SIGNS = {"", "-", "--", "---", "\u2013", "\u2014", ".", "..", "...", "\u2026", ":", "?"}
MISSING_MARKS = _MISSING_WORDS | _MISSING_SIGNS
# Non-breaking blanks, the typographic minus and the Swiss apostrophe.
_PLAIN = dict.fromkeys(map(ord, "\u00a0\u2007\u2009\u202f"), " ") | {0x2212: "-", 0x2019: "'"}
_CURRENCIES = (
    "US[$]|R[$]|[$€£¥₹₩₽₺]|kr|zł|EUR|USD|GBP|JPY|CHF|CNY|RMB|INR|KRW|BRL|CAD|AUD|NZD|SEK|NOK|DKK|"
    "PLN|CZK|HUF|RUB|TRY|MXN|ZAR|SGD|HKD"
)
# Letters are a unit only after a blank: 10Y and 5G are labels. `parse_numbers` decides whether a
# capital K, M or B is a thousand, a million or a billion.
_NUMBER = re.compile(
    rf"(?P<sign>[-+]?) ?(?:(?P<before>{_CURRENCIES}) ?)?(?P<inner>[-+]?)"
    r"(?P<body>[.,]?[0-9](?:[0-9.,' ]*[0-9.,])?(?:[eE][-+]?[0-9]{1,3})?)"
    r"(?P<power>[KMB]?)(?P<last>-?)"
    rf"(?: ?(?P<behind>[%‰]|{_CURRENCIES})| (?P<unit>[^\W\d_]{{1,6}}[²³]?))?"
)
# Units that abbreviate a factor: without multiplication the values would be wrong.
_POWERS = {"": 0, "K": 3, "M": 6, "B": 9}
_FACTORS = frozenset(["k", "m", "b", "t", "mn", "bn", "mio", "mrd", "tsd"])
# Decimal mark -> pattern of digits; groups of two digits are Indian.
_EXPONENT = r"(?:[eE][-+]?\d{1,3})?"
_GROUPS = r"(?!0)\d{{1,3}}(?P<mark>[{} '])\d{{3}}(?:(?P=mark)\d{{3}})*"
_INDIAN = r"[1-9]\d?(?:,\d\d)+,\d{3}"
_BODIES: dict[Decimal, re.Pattern[str]] = {
    ".": re.compile(rf"(?:\d*|{_GROUPS.format(',')}|{_INDIAN})(?:\.\d*)?{_EXPONENT}"),
    ",": re.compile(rf"(?:\d*|{_GROUPS.format('.')})(?:,\d*)?{_EXPONENT}"),
}


@dataclass(frozen=True)
class NumberText:
    """Number written as text, with a value for each decimal mark that fits.

    `values` is empty if the text is no number, NaN if it means a missing value. `power` is the
    power of ten of a final K, M or B.
    """

    values: dict[Decimal, float]
    unit: str = ""
    missing: bool = False
    power: int = 0


@lru_cache(maxsize=2**16)
def _parse(text: str) -> NumberText:
    plain = text.strip().translate(_PLAIN)
    if plain.upper() in MISSING_MARKS:
        return NumberText(dict.fromkeys(_BODIES, np.nan), missing=True)
    bracket = plain.startswith("(") and plain.endswith(")")  # accountants' negative numbers
    match = _NUMBER.fullmatch(plain[1:-1] if bracket else plain)
    if match is None:
        return NumberText({})
    signs = [bracket, *(match[name] == "-" for name in ("sign", "inner", "last"))]
    units = [match[name] for name in ("before", "behind", "unit") if match[name]]
    body = match["body"]
    code = len(body) > 1 and body[0] == "0" and body[1].isdecimal()  # such as 007
    if sum(signs) > 1 or len(units) > 1 or code or (units and units[0].lower() in _FACTORS):
        return NumberText({})
    sign = -1.0 if any(signs) else 1.0
    power = _POWERS[match["power"]]
    if power and "e" in body.lower():
        return NumberText({})
    end = f"e{power}" if power else ""
    values = {
        mark: sign * float(re.sub(f"[^0-9eE+{mark}-]", "", body).replace(mark, ".") + end)
        for mark, pattern in _BODIES.items()
        if pattern.fullmatch(body)
    }
    return NumberText(values, units[0] if units else "", power=power)


def parse_numbers(texts: Sequence[str], counts: np.ndarray) -> list[NumberText] | None:
    """Parse the distinct texts of a column; return None if it does not hold numbers.

    `counts` are the rows of each text. A column holds numbers if more than half of its rows that
    are not missing do, and if they share one unit. Numbers with K, M or B are labels, such as the
    maturities 3M and 12M, unless all have such a letter and some have decimals.
    """
    parsed = [_parse(text) for text in texts]
    powers = {each.power for each in parsed if each.values and not each.missing}
    with_decimals = any(
        each.power and ("." in text or "," in text)
        for text, each in zip(texts, parsed, strict=True)
    )
    if powers - {0} and (0 in powers or not with_decimals):
        return None
    is_number = np.array([bool(each.values) and not each.missing for each in parsed])
    is_missing = np.array([each.missing for each in parsed])
    units = {each.unit for each, number in zip(parsed, is_number, strict=True) if number}
    if 2 * counts[is_number].sum() <= counts[~is_missing].sum() or len(units) > 1:
        return None
    return parsed
