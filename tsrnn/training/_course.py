"""Course of the training of one model: its learning rates, its best epoch and its end."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

SMALLEST_RATE = 1e-6  # where Cai et al. (2026), supplement D.3, stop
STALLED_EPOCHS = 2  # epochs without a better validation error before the learning rate is halved
# Of torch's ReduceLROnPlateau: a bit better is not better, and rates do not move by less.
BETTER_BY, SMALLEST_CHANGE = 1e-4, 1e-8


class Course(ABC):
    """Learning rates epoch by epoch, the best epoch, and the end.

    Parameters
    ----------
    rates : list of float
        Learning rates of the groups of parameters in the next epoch.
    """

    def __init__(self, rates: list[float]) -> None:
        self.rates = rates
        self.stopped = False
        self.history: list[dict[str, float]] = []
        self.epoch = self.best_epoch = 0

    def proceed(self, loss: float, error: float) -> bool:
        """Record an epoch, its training loss and validation error; True if it is the best."""
        self.epoch += 1
        better = self._judge(loss, error)
        if better:
            self.best_epoch = self.epoch
        return better

    def diverged(self, loss: float) -> FloatingPointError:
        """Error for a loss in the next epoch that is not finite."""
        return FloatingPointError(
            f"training diverged: the loss was {loss} in epoch {self.epoch + 1} "
            f"at learning_rate={self.rates[0]:g}. Take a smaller learning_rate, or look for "
            "values far from all others in the data; nothing was fitted"
        )

    @abstractmethod
    def _judge(self, loss: float, error: float) -> bool:
        """Choose the rates of the next epoch, or stop; True if this one is the best."""


class ValidatedCourse(Course):
    """Course with validation: rates are halved and training ends where the error stalls.

    Parameters
    ----------
    rates : list of float
    patience : int or None
        Epochs without improvement before training stops; None goes on until the rates are below
        `SMALLEST_RATE`.
    error : float
        Before training, which counts as epoch 0.
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
        # Against other epochs, not the start: a network may have to get worse before it is better.
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
    """Course of epochs at known learning rates, the last of which counts.

    Parameters
    ----------
    rates : list of float
        Those of the groups, which keep their ratios.
    planned : sequence of float
        Of the first group in each epoch.
    """

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
