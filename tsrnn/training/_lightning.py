"""Training by Lightning; no other room trains."""

from __future__ import annotations

import contextlib
import copy
import io
import logging
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping
from lightning.pytorch.plugins.environments import LightningEnvironment
from lightning.pytorch.strategies import DDPStrategy
from torch import Tensor, nn
from torch.multiprocessing import ProcessRaisedException
from tqdm import tqdm

from tsrnn.training._epoch import Epoch, Share
from tsrnn.training._processes import Processes

SMALLEST_LEARNING_RATE = 1e-6
STALLED_EPOCHS = 2  # epochs without a better validation error before the learning rate is halved
CLIP_NORM = 1.0

ALONE = Processes()
LIGHTNINGS_OWN = (  # warnings that its use of torch gives, not ours
    r".*treespec.*is deprecated",
    "Grad strides do not match bucket view strides",
    r"It is recommended to use `self.log\('val_loss'",
)

History = list[dict[str, float]]


class Task(pl.LightningModule):
    """A model, what it is trained on, how to compute its loss, and its learning rates.

    Parameters
    ----------
    model : nn.Module
    epoch : Epoch
        Iterated anew for each.
    loss : callable
        Batch to scalar tensor.
    groups : list of dict
        Parameter groups of the optimiser.
    callbacks : sequence of lightning callbacks
        Those of the user, whose state is that of the training.
    """

    def __init__(
        self,
        model: nn.Module,
        epoch: Epoch,
        loss: Callable[[Any], Tensor],
        groups: list[dict[str, Any]],
        callbacks: Sequence[Callback] = (),
    ) -> None:
        super().__init__()
        self.model = model
        self._epoch = epoch
        self._loss = loss
        self._groups = groups
        self._callbacks = callbacks
        self.history: History = []
        self.best_epoch = 0

    def train_dataloader(self) -> Share:
        """The batches of this process."""
        return self._epoch.share(self.trainer.global_rank, self.trainer.world_size)

    def get_extra_state(self) -> dict[str, Any]:
        """What comes back, beside the weights, from a process that has trained."""
        return {
            "history": self.history,
            "best_epoch": self.best_epoch,
            "drawn": self._epoch.generator.get_state(),
            "callbacks": _packed([callback.state_dict() for callback in self._callbacks]),
        }

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take that over."""
        self.history, self.best_epoch = state["history"], state["best_epoch"]
        self._epoch.generator.set_state(state["drawn"])
        for callback, own in zip(self._callbacks, _unpacked(state["callbacks"]), strict=True):
            if own:  # as Lightning does it
                callback.load_state_dict(own)

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
            f"learning_rate={rate:g}. Take a smaller learning_rate, or look for values far from "
            "all others in the data; nothing was fitted"
        )


def _packed(states: list[dict[str, Any]]) -> bytes:
    """States in bytes: Lightning reads no other objects back."""
    buffer = io.BytesIO()
    torch.save(states, buffer)
    return buffer.getvalue()


def _unpacked(states: bytes) -> list[dict[str, Any]]:
    """The states, without a GPU that the training may have been on."""
    found = torch.load(io.BytesIO(states), map_location="cpu", weights_only=False)
    return cast("list[dict[str, Any]]", found)


class ValidatedTask(Task):
    """A task whose learning rate follows the validation error.

    Parameters
    ----------
    model, epoch, loss, groups, callbacks
        See `Task`.
    validate : callable
        To the validation error, a number.
    """

    def __init__(
        self,
        model: nn.Module,
        epoch: Epoch,
        loss: Callable[[Any], Tensor],
        groups: list[dict[str, Any]],
        validate: Callable[[], float],
        callbacks: Sequence[Callback] = (),
    ) -> None:
        super().__init__(model, epoch, loss, groups, callbacks)
        self._validate = validate
        self._losses: list[Tensor] = []

    def training_step(self, batch: Any, _: int) -> Tensor:
        """Training loss of a batch."""
        loss = super().training_step(batch, _)
        self._losses.append(loss.detach())
        return loss

    def validation_step(self, _batch: Any, _: int) -> None:
        """Validation error, that of the first process in all; the batch only says it is time."""
        together = self.trainer.strategy
        error = together.broadcast(self._validate() if self.global_rank == 0 else 0.0)
        self.log("val_loss", error, prog_bar=True, batch_size=1, sync_dist=True)
        rate = self.optimizers().param_groups[0]["lr"]  # type: ignore[union-attr]
        mean = torch.stack(self._losses).mean() if self._losses else torch.tensor(torch.nan)
        train = float(together.reduce(mean, reduce_op="mean"))
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
    model, epoch, loss, groups, callbacks
        See `Task`.
    rates : sequence of float
        Of the first group; others keep their ratio to it.
    moments : dict, optional
        State of the optimiser to go on from, by parameter.
    """

    def __init__(
        self,
        model: nn.Module,
        epoch: Epoch,
        loss: Callable[[Any], Tensor],
        groups: list[dict[str, Any]],
        rates: Sequence[float],
        callbacks: Sequence[Callback] = (),
        moments: dict[Any, Any] | None = None,
    ) -> None:
        super().__init__(model, epoch, loss, groups, callbacks)
        self._rates = rates
        self.moments = moments

    def configure_optimizers(self) -> Any:
        """Adam, with decoupled weight decay, at the planned rates."""
        optimizer = torch.optim.AdamW(self._groups)
        if self.moments is not None:
            fresh = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": self.moments, "param_groups": fresh})
        first, last = self._groups[0]["lr"], len(self._rates) - 1
        planned = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda epoch: self._rates[min(epoch, last)] / first
        )
        return {"optimizer": optimizer, "lr_scheduler": planned}

    def on_train_epoch_end(self) -> None:
        """Without validation the last epoch is the one that is kept."""
        self.best_epoch = self.current_epoch + 1

    def on_fit_end(self) -> None:
        """Keep the state of the optimiser."""
        self.moments = self.trainer.optimizers[0].state_dict()["state"]


class _Best(Callback):
    """Leave the weights of the best epoch; the weights before training count as one."""

    def __init__(self, start: float) -> None:
        self._error = start

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        assert isinstance(pl_module, Task)
        # All processes begin with the weights of the first one.
        self._error = trainer.strategy.broadcast(self._error)
        self._weights = copy.deepcopy(pl_module.model.state_dict())

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        assert isinstance(pl_module, Task)
        error = float(trainer.callback_metrics["val_loss"])
        if error < self._error:
            self._error, pl_module.best_epoch = error, trainer.current_epoch + 1
            self._weights = copy.deepcopy(pl_module.model.state_dict())

    def on_fit_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        assert isinstance(pl_module, Task)
        pl_module.model.load_state_dict(self._weights)


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
        hidden = trainer.global_rank > 0
        self._bar = tqdm(total=trainer.max_epochs, desc="Training", unit="epoch", disable=hidden)

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
    epoch: Epoch,
    *,
    loss: Callable[[Any], Tensor],
    validate: Callable[[], float],
    groups: list[dict[str, Any]],
    max_epochs: int,
    patience: int | None,
    device: str = "cpu",
    processes: Processes = ALONE,
    callbacks: Sequence[Callback] = (),
    verbose: int = 0,
) -> tuple[History, int]:
    """Train `model` in place and leave it with its best weights on the validation part.

    Parameters
    ----------
    model : nn.Module
    epoch : Epoch
        Iterated anew for each.
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
    processes : Processes
        Each takes a step on a batch of its own, and their gradients are averaged.
    callbacks : sequence of lightning callbacks
        Those of processes started for the training leave here the state of the first one.
    verbose : int
        1 shows a progress bar over epochs.

    Returns
    -------
    history : list of dict
        Losses and learning rate of each epoch.
    best_epoch : int
        0 where training did not improve on the start.

    Raises
    ------
    FloatingPointError
        If the training loss is not finite.
    TypeError
        If a callback is none of Lightning's.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.training import Epoch, parameter_groups, train
    >>> class Points(Epoch):
    ...     generator = torch.Generator()
    ...     def __len__(self):
    ...         return 1
    ...     def batches(self):
    ...         x = torch.linspace(-1, 1, 20)[:, None]
    ...         yield x, 3 * x
    >>> model, points = torch.nn.Linear(1, 1, bias=False), Points()
    >>> def loss(batch):
    ...     return (model(batch[0]) - batch[1]).square().mean()
    >>> def validate():
    ...     with torch.no_grad():
    ...         return sum(float(loss(batch)) for batch in points)
    >>> groups = parameter_groups(model, [], learning_rate=0.5, weight_decay=0.0)
    >>> history, best_epoch = train(model, points, loss=loss, validate=validate, groups=groups,
    ...                             max_epochs=2, patience=None)
    >>> len(history), best_epoch
    (2, 2)
    """
    _check_callbacks(callbacks)
    task = ValidatedTask(model, epoch, loss, groups, validate, callbacks)
    stop: list[Callback] = [_SmallestRate()]
    if patience is not None:
        stop.append(EarlyStopping("val_loss", patience=patience))
    bar: list[Callback] = [_EpochBar()] if verbose else []
    with _quiet(), _as_before(processes):
        best = _Best(validate())
        trainer = _trainer(device, processes, max_epochs, [best, *stop, *bar, *callbacks])
        with _interruptible(), _own_errors():
            trainer.fit(task, val_dataloaders=[torch.zeros(1)])
    model.to("cpu")
    return task.history, task.best_epoch


def train_for(
    model: nn.Module,
    epoch: Epoch,
    *,
    loss: Callable[[Any], Tensor],
    groups: list[dict[str, Any]],
    rates: Sequence[float],
    device: str = "cpu",
    processes: Processes = ALONE,
    callbacks: Sequence[Callback] = (),
    verbose: int = 0,
    moments: dict[Any, Any] | None = None,
) -> dict[Any, Any] | None:
    """Train `model` in place for as many epochs as there are learning rates, without validation.

    Parameters
    ----------
    model : nn.Module
    epoch : Epoch
        Iterated anew for each.
    loss : callable
        Batch to training loss.
    groups : list of dict
        Parameter groups of the optimiser, each with its "lr" and "weight_decay".
    rates : sequence of float
        Learning rates of the first group, epoch by epoch; the others move in proportion.
    device : str
    processes : Processes
        Each takes a step on a batch of its own, and their gradients are averaged.
    callbacks : sequence of lightning callbacks
        Those of processes started for the training leave here the state of the first one.
    verbose : int
        1 shows a progress bar over epochs.
    moments : dict, optional
        State of the optimiser to go on from.

    Returns
    -------
    dict or None
        State of the optimiser after the last epoch, so that training can go on.

    Raises
    ------
    FloatingPointError
        If the training loss is not finite.
    TypeError
        If a callback is none of Lightning's.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.training import Epoch, parameter_groups, train_for
    >>> class Points(Epoch):
    ...     generator = torch.Generator()
    ...     def __len__(self):
    ...         return 1
    ...     def batches(self):
    ...         x = torch.linspace(-1, 1, 20)[:, None]
    ...         yield x, 3 * x
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> def loss(batch):
    ...     return (model(batch[0]) - batch[1]).square().mean()
    >>> groups = parameter_groups(model, [], learning_rate=0.5, weight_decay=0.0)
    >>> moments = train_for(model, Points(), loss=loss, groups=groups, rates=[0.5] * 3)
    """
    if not rates:
        return moments
    _check_callbacks(callbacks)
    task = PlannedTask(model, epoch, loss, groups, rates, callbacks, moments)
    bar: list[Callback] = [_EpochBar()] if verbose else []
    with _quiet(), _as_before(processes):
        trainer = _trainer(device, processes, len(rates), [*bar, *callbacks])
        with _interruptible(), _own_errors():
            trainer.fit(task)
    model.to("cpu")
    return task.moments


def _trainer(
    device: str, processes: Processes, max_epochs: int, callbacks: list[Callback]
) -> pl.Trainer:
    """A trainer that writes nothing."""
    place = torch.device(device)
    devices: int | list[int] = 1 if place.index is None else [place.index]
    strategy: str | DDPStrategy = "auto"
    if processes.start is not None:
        devices, strategy = processes.count, _Together(start_method=processes.start)
    return pl.Trainer(
        accelerator=place.type,
        devices=devices,
        strategy=strategy,
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


class _Together(DDPStrategy):
    """Several processes whose gradients are averaged."""

    def setup_environment(self) -> None:
        if self._start_method == "spawn":
            self._silence = _quiet()
            self._silence.__enter__()  # for the life of this process
        if self._start_method == "fork" and self.root_device.type == "cpu":
            torch.set_num_threads(1)  # torch's pool of threads does not outlive a fork
        super().setup_environment()


@contextlib.contextmanager
def _as_before(processes: Processes) -> Iterator[None]:
    """Put back what Lightning sets to start processes and to share the cores among them."""
    names = [] if processes.start is None else ["OMP_NUM_THREADS"]
    if processes.start in ("spawn", "fork"):  # else all that follow meet again at this port
        names.append("MASTER_PORT")
    threads, before = torch.get_num_threads(), {name: os.environ.get(name) for name in names}
    try:
        yield
    finally:
        if names:
            torch.set_num_threads(threads)
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextlib.contextmanager
def _own_errors() -> Iterator[None]:
    """Raise what stopped a started process as if it had been this one."""
    try:
        yield
    except ProcessRaisedException as error:
        kind, _, message = str(error).rstrip().rpartition("\n")[2].partition(": ")
        if kind != FloatingPointError.__name__:
            raise
        raise FloatingPointError(message) from error


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
        with _own_warnings:
            yield
    finally:
        for logger in loggers:
            logger.removeFilter(keep)


class _OwnWarnings:
    """Ignore what Lightning's own use of torch is warned for, while any thread trains.

    Entering `warnings.catch_warnings` in several threads can leave the filters changed;
    this adds filters with the first thread and takes them away with the last.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._filters: list[Any] = []

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                for message in LIGHTNINGS_OWN:
                    warnings.filterwarnings("ignore", message)
                self._filters = list(warnings.filters[: len(LIGHTNINGS_OWN)])

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                for added in self._filters:
                    if added in warnings.filters:
                        warnings.filters.remove(added)  # type: ignore[attr-defined]


_own_warnings = _OwnWarnings()
