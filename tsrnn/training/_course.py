"""Learning rates, best epoch and stopping of the training of one model."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

SMALLEST_RATE = 1e-6  # at which training stops: Cai et al. (2026), supplement D.3
STALLED_EPOCHS = 2  # epochs without improvement before the learning rate is halved
# As in torch's ReduceLROnPlateau: relative improvement that counts, and smallest change of a rate.
BETTER_BY, SMALLEST_CHANGE = 1e-4, 1e-8


class Course(ABC):
    """Learning rates by epoch and parameter group, best epoch, and stopping rule."""

    def __init__(self, rates: list[float]) -> None:
        self.rates = rates
        self.stopped = False
        self.history: list[dict[str, float]] = []
        self.epoch = self.best_epoch = 0

    def proceed(self, loss: float, error: float) -> bool:
        """Record the loss and validation error of an epoch; return True if it is the best."""
        self.epoch += 1
        better = self._judge(loss, error)
        if better:
            self.best_epoch = self.epoch
        return better

    def diverged(self, loss: float) -> FloatingPointError:
        """Error for a loss that is not finite."""
        return FloatingPointError(
            f"training diverged: the loss was {loss} in epoch {self.epoch + 1} "
            f"at learning_rate={self.rates[0]:g}. Take a smaller learning_rate, or look for "
            "values far from all others in the data; nothing was fitted"
        )

    @abstractmethod
    def _judge(self, loss: float, error: float) -> bool:
        """Set the rates of the next epoch, or stop; return True if this one is the best."""


class ValidatedCourse(Course):
    """Course that halves the rates, and stops, if the validation error stalls.

    It stops after `patience` epochs without improvement; None waits for `SMALLEST_RATE`. `error`
    is the validation error at the start, epoch 0.
    """

    def __init__(self, rates: list[float], patience: int | None, error: float) -> None:
        super().__init__(rates)
        self.error = error  # of the best epoch
        self._patience = patience
        self._least, self._waited = math.inf, 0
        self._reference, self._stalled = math.inf, 0

    def _judge(self, loss: float, error: float) -> bool:
        entry = {"epoch": self.epoch, "train_loss": loss, "val_loss": error}
        self.history.append(entry | {"learning_rate": self.rates[0]})
        # Compared with other epochs, not the start: a network may get worse before it improves.
        self._waited += 1
        if error < self._least:
            self._least, self._waited = error, 0
        impatient = self._patience is not None and (
            self._waited >= self._patience or not math.isfinite(error)
        )
        self.stopped = impatient or max(self.rates) < SMALLEST_RATE
        if error < self._reference * (1 - BETTER_BY):
            self._reference, self._stalled = error, 0
        else:
            self._stalled += 1
        if self._stalled > STALLED_EPOCHS:
            self._stalled = 0
            self.rates = [
                0.5 * rate if 0.5 * rate > SMALLEST_CHANGE else rate for rate in self.rates
            ]
        better = error < self.error
        if better:
            self.error = error
        return better


class PlannedCourse(Course):
    """Course with `planned` rates of the first group by epoch; the groups keep their ratios."""

    def __init__(self, rates: list[float], planned: Sequence[float]) -> None:
        super().__init__(rates)
        self._planned = [[rate * (first / rates[0]) for rate in rates] for first in planned]
        self._next()

    def _judge(self, loss: float, error: float) -> bool:
        self._next()
        return True

    def _next(self) -> None:
        self.stopped = self.epoch == len(self._planned)
        self.rates = self.rates if self.stopped else self._planned[self.epoch]
