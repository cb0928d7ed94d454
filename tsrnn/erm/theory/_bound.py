"""Upper bounds of theorems, in logarithms, with their terms and conditions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

__all__ = ["Bound", "log_of", "log_sum"]

SOURCE = "Cai, Li, Huang and Li (2026), ParaRNN"


@dataclass(frozen=True, repr=False)
class Bound:
    """Right side of an inequality, stored as a logarithm to avoid overflow.

    Attributes
    ----------
    theorem : str
        Statement of Cai, Li, Huang and Li (2026), such as "Theorem 5".
    quantity : str
        Bounded quantity.
    log_terms : mapping of str to float
        Natural logarithm of each term of the sum.
    conditions : mapping of str to bool
        Computable conditions, True if met.
    assumptions : tuple of str
        Assumptions on the data, which are not checked.
    constants : mapping of str to float
        Constants that the theorem leaves unspecified, with the assumed values. The value of the
        bound depends on them; its growth in the other quantities does not.

    Notes
    -----
    If `holds` is False, the theorem does not apply, and the value is only that of its formula.

    Examples
    --------
    >>> from tsrnn.erm import Bound
    >>> bound = Bound("Theorem 0", "error", {"a": 0.0, "b": 0.0}, {"N >= 1": True})
    >>> round(bound.value, 12), bound.holds
    (2.0, True)
    """

    theorem: str
    quantity: str
    log_terms: Mapping[str, float]
    conditions: Mapping[str, bool] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    constants: Mapping[str, float] = field(default_factory=dict)

    @property
    def log_value(self) -> float:
        """Natural logarithm of the sum of the terms."""
        return log_sum(self.log_terms.values())

    @property
    def value(self) -> float:
        """Sum of the terms, infinite at overflow and zero at underflow."""
        return _exp(self.log_value)

    @property
    def holds(self) -> bool:
        """True if all computable conditions are met, with 1 for unspecified constants."""
        return all(self.conditions.values())

    def __repr__(self) -> str:
        taken = "".join(f", {name}={value:g} taken" for name, value in self.constants.items())
        return (
            f"Bound({self.theorem}: log_value={self.log_value:.6g}, "
            f"value={_decimal(self.log_value)}, holds={self.holds}{taken})"
        )

    def __str__(self) -> str:
        lines = [f"{self.theorem}, {SOURCE}", f"{self.quantity} <= {_decimal(self.log_value)}"]
        lines += [f"  {name}: {_decimal(log)}" for name, log in self.log_terms.items()]
        lines += [f"condition, {'met' if met else 'NOT met'}: {c}"
                  for c, met in self.conditions.items()]  # fmt: skip
        lines += [f"assumed, not checked: {assumption}" for assumption in self.assumptions]
        lines += [f"constant not given by the theorem: {name}, taken as {value:g}"
                  for name, value in self.constants.items()]  # fmt: skip
        return "\n".join(lines)


def log_of(value: float) -> float:
    """Return the natural logarithm of a float or an integer of any size; -inf for 0."""
    return math.log(value) if value else -math.inf


def log_sum(logs: Iterable[float]) -> float:
    """Return the logarithm of a sum, given the logarithms of its terms."""
    values = list(logs)
    largest = max(values, default=-math.inf)
    if math.isinf(largest):
        return largest
    # Relative to the largest, no term overflows, and terms that underflow are negligible.
    return largest + math.log(math.fsum(math.exp(value - largest) for value in values))


def _exp(log: float) -> float:
    try:
        return math.exp(log)
    except OverflowError:
        return math.inf


def _decimal(log: float) -> str:
    """Return exp(log) as text, a power of ten if it exceeds the range of floats."""
    if -700 < log < 700 or log == -math.inf:  # floats reach from about exp(-745) to exp(709)
        return f"{_exp(log):.4g}"
    return f"10^{log / math.log(10):.1f}"
