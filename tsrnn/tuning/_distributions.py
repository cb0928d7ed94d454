"""What one argument is drawn from, in terms of the methods that a trial of Optuna has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


class Distribution(Protocol):
    """Whatever can ask a trial for a value."""

    def suggest(self, trial: Any, name: str) -> Any:
        """Value of the argument `name` in a trial."""


@dataclass(frozen=True)
class Choice:
    """One of several values: None, bool, int, float or str.

    Parameters
    ----------
    values : tuple

    Examples
    --------
    >>> from optuna.trial import FixedTrial
    >>> from tsrnn.tuning import Choice
    >>> Choice(("rnn", "gru")).suggest(FixedTrial({"x": "gru"}), "x")
    'gru'
    """

    values: tuple[Any, ...]

    def suggest(self, trial: Any, name: str) -> Any:
        """Value of the argument `name` in a trial."""
        return trial.suggest_categorical(name, list(self.values))


@dataclass(frozen=True)
class Integer:
    """An integer from `low` to `high`, both included.

    Parameters
    ----------
    low, high : int
    log : bool, default False
        Whether its logarithm is uniform.

    Examples
    --------
    >>> from optuna.trial import FixedTrial
    >>> from tsrnn.tuning import Integer
    >>> Integer(1, 4).suggest(FixedTrial({"x": 3}), "x")
    3
    """

    low: int
    high: int
    log: bool = False

    def suggest(self, trial: Any, name: str) -> int:
        """Value of the argument `name` in a trial."""
        return trial.suggest_int(name, self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Real:
    """A number from `low` to `high`.

    Parameters
    ----------
    low, high : float
    log : bool, default False
        Whether its logarithm is uniform.

    Examples
    --------
    >>> from optuna.trial import FixedTrial
    >>> from tsrnn.tuning import Real
    >>> Real(0.1, 1.0).suggest(FixedTrial({"x": 0.5}), "x")
    0.5
    """

    low: float
    high: float
    log: bool = False

    def suggest(self, trial: Any, name: str) -> float:
        """Value of the argument `name` in a trial."""
        return trial.suggest_float(name, self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Order:
    """A tuple of integers such as (p, d, q), of which a trial draws each by itself.

    Parameters
    ----------
    parts : tuple of (str, int, int)
        Name, lowest and highest value of each: ``Order((("p", 0, 3), ("q", 0, 3)))``. In a trial
        they are called ``order.p`` and ``order.q``.

    Examples
    --------
    >>> from optuna.trial import FixedTrial
    >>> from tsrnn.tuning import Order
    >>> Order((("p", 0, 3), ("q", 0, 3))).suggest(FixedTrial({"x.p": 1, "x.q": 0}), "x")
    (1, 0)
    """

    parts: tuple[tuple[str, int, int], ...]

    def suggest(self, trial: Any, name: str) -> tuple[int, ...]:
        """Value of the argument `name` in a trial."""
        return tuple(
            trial.suggest_int(f"{name}.{part}", low, high) for part, low, high in self.parts
        )
