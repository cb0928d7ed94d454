"""Training by Lightning: the only file that knows it."""

from __future__ import annotations

import contextlib
import copy
import logging
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping
from lightning.pytorch.plugins.environments import LightningEnvironment
from torch import Tensor, nn
from tqdm import tqdm

SMALLEST_LEARNING_RATE = 1e-6
STALLED_EPOCHS = 2  # epochs without a better validation error before the learning rate is halved
CLIP_NORM = 1.0

History = list[dict[str, float]]


class Task(pl.LightningModule):
    """A model, how to compute its training loss, and its learning rates.

    Parameters
    ----------
    model : nn.Module
    loss : callable
        Batch to scalar tensor.
    groups : list of dict
        Parameter groups of the optimiser.
    """

    def __init__(
        self, model: nn.Module, loss: Callable[[Any], Tensor], groups: list[dict[str, Any]]
    ) -> None:
        super().__init__()
        self.model = model
        self._loss = loss
        self._groups = groups
        self.history: History = []

    def training_step(self, batch: Any, _: int) -> Tensor:
        """Training loss of a batch."""
        loss = self._loss(batch)
        if not torch.isfinite(loss):
            raise FloatingPointError(self._diverged(loss.item()))
        return loss

    def _diverged(self, loss: float) -> str:
        rate = self.optimizers().param_groups[0]["lr"]  # type: ignore[union-attr]
        return (
            f"training diverged: the loss was {loss} in epoch {self.current_epoch + 1} at "
            f"learning_rate={rate:g}. Take a smaller learning_rate, look for values far from all "
            "others in the data, or keep local_level=True; nothing was fitted"
        )


class ValidatedTask(Task):
    """A task whose learning rate follows the validation error.

    Parameters
    ----------
    model, loss, groups
        See `Task`.
    validate : callable
        To the validation error, a number.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[[Any], Tensor],
        groups: list[dict[str, Any]],
        validate: Callable[[], float],
    ) -> None:
        super().__init__(model, loss, groups)
        self._validate = validate
        self._losses: list[Tensor] = []

    def training_step(self, batch: Any, _: int) -> Tensor:
        """Training loss of a batch."""
        loss = super().training_step(batch, _)
        self._losses.append(loss.detach())
        return loss

    def validation_step(self, _batch: Any, _: int) -> None:
        """Validation error; the batch only says that it is time."""
        error = self._validate()
        self.log("val_loss", error, prog_bar=True, batch_size=1)
        rate = self.optimizers().param_groups[0]["lr"]  # type: ignore[union-attr]
        train = float(torch.stack(self._losses).mean()) if self._losses else float("nan")
        self._losses.clear()
        entry = {"epoch": len(self.history) + 1, "train_loss": train, "val_loss": error}
        self.history.append(entry | {"learning_rate": rate})

    def configure_optimizers(self) -> Any:
        """Adam, with decoupled weight decay; the learning rate is halved when validation stalls."""
        optimizer = torch.optim.AdamW(self._groups)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, factor=0.5, patience=STALLED_EPOCHS
        )
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": scheduler, "monitor": "val_loss"},
        }


class PlannedTask(Task):
    """A task with a learning rate for every epoch.

    Parameters
    ----------
    model, loss, groups
        See `Task`.
    rates : sequence of float
        Of the first group; others keep their ratio to it.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[[Any], Tensor],
        groups: list[dict[str, Any]],
        rates: Sequence[float],
    ) -> None:
        super().__init__(model, loss, groups)
        self._rates = rates

    def configure_optimizers(self) -> Any:
        """Adam, with decoupled weight decay, at the planned rates."""
        optimizer = torch.optim.AdamW(self._groups)
        first, last = self._groups[0]["lr"], len(self._rates) - 1
        planned = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda epoch: self._rates[min(epoch, last)] / first
        )
        return {"optimizer": optimizer, "lr_scheduler": planned}


class _Best(Callback):
    """Keep the weights of the best epoch; the weights before training count as one."""

    def __init__(self, start: float, model: nn.Module) -> None:
        self.error = start
        self.epoch = 0
        self._model = model
        self.weights = copy.deepcopy(model.state_dict())

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        error = float(trainer.callback_metrics["val_loss"])
        if error < self.error:
            self.error, self.epoch = error, trainer.current_epoch + 1
            self.weights = copy.deepcopy(self._model.state_dict())


class _SmallestRate(Callback):
    """Stop when the learning rate has become negligible."""

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        rates = [group["lr"] for o in trainer.optimizers for group in o.param_groups]
        if max(rates) < SMALLEST_LEARNING_RATE:
            trainer.should_stop = True


class _EpochBar(Callback):
    """One line for the whole training: epochs, validation error, learning rate."""

    _bar: tqdm | None = None  # an error may come before the start

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._bar = tqdm(total=trainer.max_epochs, desc="Training", unit="epoch")

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        assert isinstance(pl_module, Task)
        assert self._bar is not None
        if pl_module.history:
            last = pl_module.history[-1]
            shown = {"val_loss": f"{last['val_loss']:.4g}", "lr": f"{last['learning_rate']:.1e}"}
            self._bar.set_postfix(shown, refresh=False)
        self._bar.update()

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        self._close()

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        self._close()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def train(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    loss: Callable[[Any], Tensor],
    validate: Callable[[], float],
    groups: list[dict[str, Any]],
    max_epochs: int,
    patience: int | None,
    device: str = "cpu",
    callbacks: Sequence[Callback] = (),
    verbose: int = 0,
) -> tuple[History, int]:
    """Train `model` in place and leave it with its best weights on the validation part.

    Parameters
    ----------
    model : nn.Module
    batches : iterable
        One epoch; iterated anew for each.
    loss : callable
        Batch to training loss.
    validate : callable
        To the validation error.
    groups : list of dict
        Parameter groups of the optimiser, each with its "lr" and "weight_decay".
    max_epochs : int
    patience : int or None
        Epochs without improvement before training stops; None trains until the
        learning rate is below 1e-6.
    device : str
    callbacks : sequence of lightning callbacks
    verbose : int
        1 shows a progress bar over epochs.

    Returns
    -------
    history : list of dict
        Losses and learning rate of each epoch.
    best_epoch : int
        0 where training did not improve on the start.
    """
    _check_callbacks(callbacks)
    task = ValidatedTask(model, loss, groups, validate)
    best = _Best(validate(), model)
    stop: list[Callback] = [_SmallestRate()]
    if patience is not None:
        stop.append(EarlyStopping("val_loss", patience=patience))
    bar: list[Callback] = [_EpochBar()] if verbose else []
    with _quiet():
        trainer = _trainer(device, max_epochs, [best, *stop, *bar, *callbacks])
        with _interruptible():
            trainer.fit(task, train_dataloaders=batches, val_dataloaders=[torch.zeros(1)])
    model.to("cpu")
    model.load_state_dict(best.weights)
    return task.history, best.epoch


def train_for(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    loss: Callable[[Any], Tensor],
    groups: list[dict[str, Any]],
    rates: Sequence[float],
    device: str = "cpu",
    callbacks: Sequence[Callback] = (),
    verbose: int = 0,
) -> None:
    """Train `model` in place for as many epochs as there are learning rates, without validation.

    Parameters as of `train`; rates are those of the first group, epoch by epoch.
    """
    if not rates:
        return
    _check_callbacks(callbacks)
    task = PlannedTask(model, loss, groups, rates)
    bar: list[Callback] = [_EpochBar()] if verbose else []
    with _quiet():
        trainer = _trainer(device, len(rates), [*bar, *callbacks])
        with _interruptible():
            trainer.fit(task, train_dataloaders=batches)
    model.to("cpu")


def _trainer(device: str, max_epochs: int, callbacks: list[Callback]) -> pl.Trainer:
    """A trainer on one device that writes nothing."""
    place = torch.device(device)
    return pl.Trainer(
        accelerator=place.type,
        devices=1 if place.index is None else [place.index],
        max_epochs=max_epochs,
        callbacks=callbacks,
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
        num_sanity_val_steps=0,
        gradient_clip_val=CLIP_NORM,
        plugins=[LightningEnvironment()],
    )


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Pass an interrupt on: Lightning makes it the end of Python and ignores the next ones."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit as end:
        interrupt = end.__context__
        if not isinstance(interrupt, KeyboardInterrupt):
            raise
        signal.signal(signal.SIGINT, handler)
        raise interrupt from None


def _check_callbacks(callbacks: Any) -> None:
    listed = isinstance(callbacks, Sequence) and not isinstance(callbacks, str)
    if not listed or not all(isinstance(item, Callback) for item in callbacks):
        raise TypeError(
            f"callbacks must be a list of lightning.pytorch.Callback objects; got {callbacks!r}"
        )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Hold back this thread's log lines about devices and reasons to stop."""
    here = threading.get_ident()

    def keep(record: logging.LogRecord) -> bool:
        return record.thread != here or record.levelno >= logging.WARNING

    names = [
        name
        for name in list(logging.root.manager.loggerDict)  # other threads may add to it
        if name.startswith(("lightning.pytorch", "lightning.fabric"))
    ]
    loggers = [logging.getLogger(name) for name in names]
    for logger in loggers:
        logger.addFilter(keep)
    try:
        with _own_deprecations:
            yield
    finally:
        for logger in loggers:
            logger.removeFilter(keep)


class _OwnDeprecations:
    """Ignore what Lightning's own use of torch is warned for, while any thread trains.

    Entering `warnings.catch_warnings` in several threads can leave the filters changed;
    this adds one filter with the first thread and takes it away with the last.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._filter: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                warnings.filterwarnings("ignore", message=r".*treespec.*is deprecated")
                self._filter = warnings.filters[0]

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._filter in warnings.filters:
                warnings.filters.remove(self._filter)  # type: ignore[attr-defined]


_own_deprecations = _OwnDeprecations()
