"""Support of targets: their possible values, and forecasts within it."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tsrnn.contract._schema import refuse
from tsrnn.data import Panel, quote, warn_user

NAMES = ("real", "nonnegative", "count", "binary")
# Larger whole numbers are often rounded measurements; rounding hardly changes their quantiles.
MOST_COUNTED = 20  # largest median of counts
SHARES = (1.0, 100.0)  # upper bounds of shares and percentages
FEWEST_AT_BOUNDS = 3  # rows at each bound: a maximum attained once is no bound
ON_LINE = 1e-9  # relative rounding error of an interpolated value
# Every 4 percent from 2 on: quantiles 2 percent apart, and tails of half a percent.
ZERO_LEVELS = [*range(2, 100, 4), 99]


@dataclass(frozen=True)
class Support:
    """Possible values of a target.

    Parameters
    ----------
    name : {"real", "nonnegative", "count", "binary", "bounds"}
        Any number; 0 and above; whole numbers from 0; 0 and 1; numbers between bounds.
    lower, upper : float
        Bounds, infinite if absent.

    Examples
    --------
    >>> from tsrnn.contract import Support
    >>> Support.of("count")
    Support(name='count', lower=0.0, upper=inf)
    >>> Support.of((0, 100)).value
    (0.0, 100.0)
    """

    name: str
    lower: float = -math.inf
    upper: float = math.inf

    @classmethod
    def of(cls, value: Any) -> Support:
        """Return the support of a value of the argument `support` other than "auto".

        Raises
        ------
        ValueError
            If the value is neither a name of a support nor a pair of bounds.
        """
        if isinstance(value, str) and value in NAMES:
            lower = -math.inf if value == "real" else 0.0
            return cls(value, lower, 1.0 if value == "binary" else math.inf)
        pair = list(value) if isinstance(value, list | tuple) else []
        known = [bound for bound in pair if bound is not None]
        legal = all(
            isinstance(bound, numbers.Real) and not isinstance(bound, bool) and math.isfinite(bound)
            for bound in known
        )
        if len(pair) != 2 or not known or not legal or (len(known) == 2 and pair[0] >= pair[1]):
            raise ValueError(
                f"support must be one of {('auto', *NAMES)}, or a pair of bounds such as (0, 100), "
                f"the lower first and None where there is none; got {quote(value)}"
            )
        lower, upper = (
            float(end) if end is not None else side * math.inf
            for side, end in zip((-1, 1), pair, strict=True)
        )
        return cls("bounds", lower, upper)

    @property
    def value(self) -> str | tuple[float | None, float | None]:
        """Value of the argument `support`."""
        if self.name != "bounds":
            return self.name
        lower, upper = (end if math.isfinite(end) else None for end in (self.lower, self.upper))
        return lower, upper

    @property
    def whole(self) -> bool:
        """True if the values are whole numbers."""
        return self.name in ("count", "binary")

    def contains(self, values: np.ndarray) -> np.ndarray:
        """Return the mask of values in the support; NaN counts as inside."""
        inside = ~((values < self.lower) | (values > self.upper))
        return inside & ((values == np.rint(values)) | np.isnan(values)) if self.whole else inside

    def widened(self, values: np.ndarray) -> Support:
        """Return the smallest named support that contains this one and `values`."""
        outside = values[~self.contains(values)]
        if not len(outside):
            return self
        if self.lower < 0 or outside.min() < 0:
            return Support.of("real")
        counted = self.whole and (outside == np.rint(outside)).all()
        return Support.of("count" if counted else "nonnegative")


class Limits(NamedTuple):
    """Share of zeros in the history of each target, shape (S, C), and the supports of C targets."""

    zeros: np.ndarray
    supports: tuple[Support, ...]


def supports_of(panel: Panel, argument: Any) -> tuple[Support, ...]:
    """Return the supports of the targets of a panel for the argument `support`."""
    if isinstance(argument, str) and argument == "auto":
        return tuple(_recognise(_observed(panel, j)) for j in range(panel.values.shape[1]))
    supports = (Support.of(argument),) * panel.values.shape[1]
    check_in_supports(panel, supports)
    return supports


def _recognise(values: np.ndarray) -> Support:
    """Return the support of a target, recognised from its known values."""
    if not len(values) or values.min() < 0:
        return Support.of("real")
    lowest, highest = values.min(), values.max()
    whole = bool((values == np.rint(values)).all())
    if whole and lowest == 0 and highest == 1:
        return Support.of("binary")
    # Whole numbers up to 100 may as well be counts of 100 pieces as percentages.
    if lowest == 0 and highest in SHARES and not whole:
        at_bounds = min(np.sum(values == lowest), np.sum(values == highest))
        if at_bounds >= FEWEST_AT_BOUNDS:
            return Support.of((0.0, float(highest)))
    return Support.of("count" if whole and np.median(values) <= MOST_COUNTED else "nonnegative")


def _observed(panel: Panel, target: int) -> np.ndarray:
    """Return the values of a target without missing and possibly interpolated ones.

    Interpolation between two counts gives numbers that are not whole.
    """
    y = panel.values[:, target]
    finite = np.isfinite(y)
    broken = finite & (y != np.rint(y))
    if not broken.any() or 2 * broken.sum() > finite.sum():
        return y[finite]
    on_line = np.zeros(len(y), bool)
    distances = np.abs(y[:-2] - 2 * y[1:-1] + y[2:])  # second difference; NaN at missing values
    on_line[1:-1] = distances <= ON_LINE * np.abs(y[1:-1])
    on_line[panel.indptr[:-1]] = on_line[panel.indptr[1:] - 1] = False
    return y[finite & ~(broken & on_line)]


def check_in_supports(panel: Panel, supports: Sequence[Support]) -> None:
    """Refuse values outside a given support."""
    for j, support in enumerate(supports):
        if support.contains(panel.values[:, j]).all():
            continue
        if support.contains(_observed(panel, j)).all():  # others are interpolated
            continue
        rows = np.flatnonzero(~support.contains(panel.values[:, j]))
        raise ValueError(
            f"the column {quote(panel.target_names[j])} must be {_required(support)}, by "
            f"support={support.value!r}; it is {panel.values[rows[0], j]:g} at "
            f"{panel.axis.describe(rows)}. Correct these values, or give another support, such as "
            "support='real'"
        )


def widened_supports(
    panel: Panel, supports: tuple[Support, ...], recognised: bool
) -> tuple[Support, ...]:
    """Widen recognised supports, with a warning, to contain the values of a panel.

    Values outside supports that were given, not `recognised`, are refused.
    """
    if not recognised:
        check_in_supports(panel, supports)
        return supports
    wider = tuple(support.widened(_observed(panel, j)) for j, support in enumerate(supports))
    _warn_of_outside(panel, supports, wider, "forecasts go by {} from here on")
    return wider


def warn_of_cut(panel: Panel, supports: tuple[Support, ...], recognised: bool) -> None:
    """Warn of values outside a recognised support, to which forecasts are cut.

    Values outside supports that were given, not `recognised`, are refused.
    """
    if not recognised:
        return check_in_supports(panel, supports)
    wider = tuple(support.widened(_observed(panel, j)) for j, support in enumerate(supports))
    _warn_of_outside(
        panel, supports, wider, "forecasts stay as the model knew it; by {} they would not be cut"
    )


def _warn_of_outside(
    panel: Panel, supports: Sequence[Support], wider: Sequence[Support], consequence: str
) -> None:
    for j, (support, other) in enumerate(zip(supports, wider, strict=True)):
        if other == support:
            continue
        rows = np.flatnonzero(~support.contains(panel.values[:, j]))
        warn_user(
            f"the column {quote(panel.target_names[j])} was {_required(support)} in all rows "
            f"fitted to; it is {panel.values[rows[0], j]:g} at {panel.axis.describe(rows)}: "
            f"{consequence.format(f'support={other.value!r}')}. Construct with that argument to "
            "say what the values can be"
        )


def _required(support: Support) -> str:
    """Return the requirement of a support as text."""
    if support.name != "bounds":
        return {
            "real": "a number", "nonnegative": "not negative",
            "count": "a whole number and not negative", "binary": "0 or 1",
        }[support.name]  # fmt: skip
    if math.isfinite(support.lower) and math.isfinite(support.upper):
        return f"between {support.lower:g} and {support.upper:g}"
    low = math.isfinite(support.lower)
    return f"at least {support.lower:g}" if low else f"at most {support.upper:g}"


def within_supports(
    forecasts: dict[str, np.ndarray], supports: Sequence[Support]
) -> dict[str, np.ndarray]:
    """Cut forecasts at the bounds of supports, and round the ends of intervals of whole values.

    A whole value is modelled as round(X) of the model's continuous X. Rounding is monotone, so that
    the quantiles of round(X) are the rounded quantiles of X, and the interval contains all whole
    numbers in the interval of X. Ends midway between two whole numbers are moved outwards.

    Forecasts of shape (..., C) are given by suffix. The point forecast "" is not rounded, since a
    mean of counts need not be whole.
    """
    if all(support.name == "real" for support in supports):
        return dict(forecasts)
    lower, upper = (np.array([getattr(s, end) for s in supports]) for end in ("lower", "upper"))
    whole = np.array([support.whole for support in supports])
    inside = {}
    for suffix, values in forecasts.items():
        if whole.any() and suffix:
            outwards = np.ceil(values - 0.5) if "-lo-" in suffix else np.floor(values + 0.5)
            values = np.where(whole, outwards, values)
        inside[suffix] = np.clip(values, lower, upper) + 0.0  # turns -0.0, as of ceil(-0.3), to 0.0
    return inside


def paths_within(paths: np.ndarray, supports: Sequence[Support]) -> np.ndarray:
    """Cut paths (..., C) at the bounds of supports, and round those of whole values."""
    return within_supports({"-hi-": paths}, supports)["-hi-"]


def zero_probability(forecasts: dict[str, np.ndarray], supports: Sequence[Support]) -> np.ndarray:
    """Return the probabilities of zero (S, h, C) from intervals of `ZERO_LEVELS`.

    For binary targets it is 1 less the mean. For counts it is the distribution function of the
    continuous forecast at 1/2, since `within_supports` rounds: linear between quantiles, 0 and 1
    beyond.
    """
    point = forecasts[""]
    probability = 1 - np.clip(point, 0, 1)
    ends = [(0.5 - level / 200, f"-lo-{level}") for level in reversed(ZERO_LEVELS)]
    ends += [(0.5 + level / 200, f"-hi-{level}") for level in ZERO_LEVELS]
    shares = np.array([share for share, _ in ends])
    quantiles = np.stack([forecasts[suffix] for _, suffix in ends])
    quantiles = np.maximum.accumulate(quantiles, axis=0)
    below = (quantiles <= 0.5).sum(0)  # NaN is never below
    first, last = np.maximum(below - 1, 0), np.minimum(below, len(ends) - 1)
    low, high = (np.take_along_axis(quantiles, place[None], 0)[0] for place in (first, last))
    gap = np.where(high > low, high - low, 1.0)
    between = shares[first] + (shares[last] - shares[first]) * (0.5 - low) / gap
    counted = np.where(below == 0, 0.0, np.where(below == len(ends), 1.0, between))
    counted = np.where(np.isnan(point) | np.isnan(quantiles).any(0), np.nan, counted)
    of_counts = np.array([support.name == "count" for support in supports])
    result: np.ndarray = np.where(of_counts, counted, probability)
    return result


def support_notes(
    supports: Sequence[Support], names: Sequence[Any], recognised: bool, point: str
) -> list[str]:
    """Return a sentence for a summary on the support of each target other than "real".

    `point` is the statistic of the point forecast, such as "mean".
    """
    origin = "recognised from the data" if recognised else "as given"
    notes = []
    for support in dict.fromkeys(supports):
        if support.name == "real":
            continue
        alike = [n for n, other in zip(names, supports, strict=True) if other == support]
        whose = f" of {', '.join(map(quote, alike))}" if len(alike) < len(names) else ""
        effect = (
            "ends of intervals and paths are whole numbers; point forecasts, of "
            f"the {point}, are not rounded"
            if support.whole
            else "forecasts, ends of intervals and paths are cut there"
        )
        notes.append(f"Values{whose} are {_required(support)} ({origin}): {effect}.")
    return notes


def support_kind(value: Any, place: str) -> None:
    """Check a support in a file."""
    try:
        Support.of(value)
    except ValueError:
        raise refuse(place, "the name of a support, or a pair of bounds", value) from None
