"""Training by Lightning; no other room trains."""

from __future__ import annotations

import copy
import io
import math
from collections.abc import Callable, Sequence
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.plugins.environments import LightningEnvironment
from lightning.pytorch.strategies import DDPStrategy
from torch import Tensor, nn
from tqdm import tqdm

from tsrnn.training._epoch import Epoch, Share
from tsrnn.training._machine import Processes
from tsrnn.training._side_effects import contained, quiet

SMALLEST_LEARNING_RATE = 1e-6  # where Cai et al. (2026), supplement D.3, stop
STALLED_EPOCHS = 2  # epochs without a better validation error before the learning rate is halved
CLIP_NORM = 1.0  # of the gradient: where a recurrence explodes, Adam's moments stay bounded

ALONE = Processes()
IT_IS_TIME = torch.zeros(1)  # data for Lightning's loops where a task has its own: one empty batch

History = list[dict[str, float]]


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
        Iterated anew in every epoch.
    loss : callable
        Batch to training loss.
    validate : callable
        Gives the validation error.
    groups : list of dict
        Parameter groups of the optimiser, each with its "lr" and "weight_decay".
    max_epochs : int
    patience : int or None
        Epochs without improvement before training stops; None trains until the
        learning rate is below 1e-6.
    device : str
    processes : Processes
        Each takes its step on its own batch, and the gradients are averaged.
    callbacks : sequence of lightning callbacks
        Processes started for the training hand back the state of the first one's callbacks.
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
        If a callback is not one of Lightning's.

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
    with contained(processes):
        task = ValidatedTask(
            model, epoch, loss, groups, callbacks, by_epochs=_by_epochs(processes, callbacks),
            validate=validate, start=validate(), patience=patience,
        )  # fmt: skip
        trainer = _trainer(task, device, processes, max_epochs, callbacks, verbose)
        trainer.fit(task, val_dataloaders=[IT_IS_TIME] if task.automatic_optimization else None)
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
        Iterated anew in every epoch.
    loss : callable
        Batch to training loss.
    groups : list of dict
        Parameter groups of the optimiser, each with its "lr" and "weight_decay".
    rates : sequence of float
        Learning rates of the first group, epoch by epoch; the others move in proportion.
    device : str
    processes : Processes
        Each takes its step on its own batch, and the gradients are averaged.
    callbacks : sequence of lightning callbacks
        Processes started for the training hand back the state of the first one's callbacks.
    verbose : int
        1 shows a progress bar over epochs.
    moments : dict, optional
        State of the optimiser to continue from.

    Returns
    -------
    dict or None
        State of the optimiser after the last epoch, so that training can continue.

    Raises
    ------
    FloatingPointError
        If the training loss is not finite.
    TypeError
        If a callback is not one of Lightning's.

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
    task = PlannedTask(
        model, epoch, loss, groups, callbacks, by_epochs=_by_epochs(processes, callbacks),
        rates=rates, moments=moments,
    )  # fmt: skip
    with contained(processes):
        _trainer(task, device, processes, len(rates), callbacks, verbose).fit(task)
    model.to("cpu")
    return task.moments


def _by_epochs(processes: Processes, callbacks: Sequence[Callback]) -> bool:
    """Whether Lightning can take an epoch for one step, because nobody looks between its steps.

    Its loop over batches calls some forty hooks a step, longer than a step on a short series.
    """
    return processes.start is None and not callbacks


def _trainer(
    task: Task,
    device: str,
    processes: Processes,
    max_epochs: int,
    callbacks: Sequence[Callback],
    verbose: int,
) -> pl.Trainer:
    """A trainer that writes nothing."""
    place = torch.device(device)
    devices: int | list[int] = 1 if place.index is None else [place.index]
    strategy: str | DDPStrategy = "auto"
    bar = [_EpochBar()] if verbose else []
    if processes.start is not None:
        devices, strategy = processes.count, _Averaged(start_method=processes.start)
    return pl.Trainer(
        accelerator=place.type,
        devices=devices,
        strategy=strategy,
        max_epochs=max_epochs,
        callbacks=[*bar, *callbacks],
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
        num_sanity_val_steps=0,
        gradient_clip_val=CLIP_NORM if task.automatic_optimization else None,
        plugins=[LightningEnvironment()],
    )


def _check_callbacks(callbacks: Any) -> None:
    listed = isinstance(callbacks, Sequence) and not isinstance(callbacks, str)
    if not listed or not all(isinstance(item, Callback) for item in callbacks):
        raise TypeError(
            f"callbacks must be a list of lightning.pytorch.Callback objects; got {callbacks!r}"
        )


def _clip_gradient(parameters: Sequence[nn.Parameter]) -> None:
    """Scale a long gradient down to `CLIP_NORM`, as `torch.nn.utils.clip_grad_norm_` does.

    Without its decorators, and without a product by 1 where the gradient is short.
    """
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    factor = CLIP_NORM / (norm + 1e-6)
    if not factor > 1:  # of a gradient that is not finite, too
        torch._foreach_mul_(gradients, factor)


class Task(pl.LightningModule):
    """A model with its batches, its loss and its learning rates.

    Parameters
    ----------
    model : nn.Module
    epoch : Epoch
        Iterated anew in every epoch.
    loss : callable
        Batch to scalar tensor.
    groups : list of dict
        Parameter groups of the optimiser.
    callbacks : sequence of lightning callbacks
        Callbacks of the user, whose state comes back from a process that has trained.
    by_epochs : bool
        Whether a step of Lightning's is an epoch of optimiser steps; else it is one of them.
    """

    def __init__(
        self,
        model: nn.Module,
        epoch: Epoch,
        loss: Callable[[Any], Tensor],
        groups: list[dict[str, Any]],
        callbacks: Sequence[Callback] = (),
        *,
        by_epochs: bool = False,
    ) -> None:
        super().__init__()
        self.automatic_optimization = not by_epochs
        self.model = model
        self._epoch = epoch
        self._loss = loss
        self._groups = groups
        self._callbacks = callbacks
        self.history: History = []
        self.best_epoch = 0

    def train_dataloader(self) -> Share | Tensor:
        """The batches of this process; one empty one where the task takes an epoch by itself."""
        if not self.automatic_optimization:
            return IT_IS_TIME
        return self._epoch.share(self.trainer.global_rank, self.trainer.world_size)

    def get_extra_state(self) -> dict[str, Any]:
        """State that comes back, beside the weights, from a process that has trained."""
        # As bytes, since Lightning reads no other objects back.
        buffer = io.BytesIO()
        torch.save([callback.state_dict() for callback in self._callbacks], buffer)
        return {
            "history": self.history,
            "best_epoch": self.best_epoch,
            "drawn": self._epoch.generator.get_state(),
            "callbacks": buffer.getvalue(),
        }

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take over the state of the process that has trained."""
        self.history, self.best_epoch = state["history"], state["best_epoch"]
        self._epoch.generator.set_state(state["drawn"])
        buffer = io.BytesIO(state["callbacks"])
        # Onto the CPU: the GPU that the training ran on need not be here.
        saved = torch.load(buffer, map_location="cpu", weights_only=False)
        for callback, callback_state in zip(self._callbacks, saved, strict=True):
            if callback_state:  # as Lightning does it
                callback.load_state_dict(callback_state)

    def training_step(self, batch: Any, _: int) -> Tensor | None:
        """Training loss of a batch; None after a whole epoch."""
        if self.automatic_optimization:
            return self.checked_loss(batch)
        optimizer = self._optimizer()
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        for batch in self._epoch:
            # The steps of Lightning's own loop, in its order.
            loss = self.checked_loss(self._on_device(batch))
            for parameter in parameters:
                parameter.grad = None
            loss.backward()
            _clip_gradient(parameters)
            optimizer.step()
        return None

    def checked_loss(self, batch: Any) -> Tensor:
        """Loss of a batch, which is finite."""
        loss = self._loss(batch)
        if not math.isfinite(loss.item()):
            raise FloatingPointError(
                f"training diverged: the loss was {loss.item()} in epoch {self.current_epoch + 1} "
                f"at learning_rate={self._rate():g}. Take a smaller learning_rate, or look for "
                "values far from all others in the data; nothing was fitted"
            )
        return loss

    def _on_device(self, batch: Any) -> Any:
        if self.device.type == "cpu":
            return batch
        return self.trainer.strategy.batch_to_device(batch)

    def _optimizer(self) -> torch.optim.Optimizer:
        (optimizer,) = self.trainer.optimizers
        return optimizer

    def _rate(self) -> float:
        """Learning rate of the first group."""
        return self._optimizer().param_groups[0]["lr"]


class ValidatedTask(Task):
    """A task that follows the validation error: its learning rate, its end, the weights it leaves.

    Parameters
    ----------
    *task, by_epochs
        Arguments of `Task`.
    validate : callable
        Gives the validation error, a number.
    start : float
        Validation error before training, which counts as epoch 0.
    patience : int or None
        Epochs without improvement before training stops.
    """

    def __init__(
        self,
        *task: Any,
        by_epochs: bool = False,
        validate: Callable[[], float],
        start: float,
        patience: int | None,
    ) -> None:
        super().__init__(*task, by_epochs=by_epochs)
        self._validate, self._patience = validate, patience
        self._error = start  # of the weights kept
        self._least, self._stalled = math.inf, 0  # error while training, epochs since
        self._losses: list[Tensor] = []

    def on_fit_start(self) -> None:
        """Keep the weights of the start."""
        # All processes begin with the weights of the first one.
        self._error = self.trainer.strategy.broadcast(self._error)
        self._weights = copy.deepcopy(self.model.state_dict())

    def on_fit_end(self) -> None:
        """Leave the weights of the best epoch."""
        self.model.load_state_dict(self._weights)

    def training_step(self, batch: Any, _: int) -> Tensor | None:
        """Training loss of a batch; a whole epoch is validated at once."""
        loss = super().training_step(batch, _)
        if loss is None:
            with torch.no_grad():
                self._judge()
        return loss

    def checked_loss(self, batch: Any) -> Tensor:
        """Loss of a batch, which counts among those of its epoch."""
        loss = super().checked_loss(batch)
        self._losses.append(loss.detach())
        return loss

    def validation_step(self, _batch: Any, _: int) -> None:
        """Validation error, for the callbacks of users as well; the batch holds nothing."""
        self.log("val_loss", self._judge(), prog_bar=True, batch_size=1, sync_dist=True)

    def _judge(self) -> float:
        """Validate an epoch, note it, keep its weights if it is the best; end where due.

        The validation error is that of the first process in all of them.
        """
        processes = self.trainer.strategy
        error = processes.broadcast(self._validate() if self.global_rank == 0 else 0.0)
        mean = torch.stack(self._losses).mean() if self._losses else torch.tensor(torch.nan)
        train = float(processes.reduce(mean, reduce_op="mean"))
        self._losses.clear()
        entry = {"epoch": len(self.history) + 1, "train_loss": train, "val_loss": error}
        self.history.append(entry | {"learning_rate": self._rate()})
        if error < self._error:
            self._error, self.best_epoch = error, len(self.history)
            self._weights = copy.deepcopy(self.model.state_dict())
        # Against other epochs, not the start: a network may have to get worse before it is better.
        self._stalled = 0 if error < self._least else self._stalled + 1
        self._least = min(error, self._least)
        impatient = self._patience is not None and (
            self._stalled >= self._patience or not math.isfinite(error)
        )
        rates = [group["lr"] for group in self._optimizer().param_groups]
        if impatient or max(rates) < SMALLEST_LEARNING_RATE:
            self.trainer.should_stop = True
        return error

    def configure_optimizers(self) -> Any:
        """Adam, with decoupled weight decay; the learning rate is halved when validation stalls."""
        optimizer = torch.optim.AdamW(self._groups, fused=True)
        stalling: Any = torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, factor=0.5, patience=STALLED_EPOCHS
        )
        if self.automatic_optimization:  # else it is stepped here, at the end of an epoch
            stalling = {"scheduler": stalling, "monitor": "val_loss"}
        return {"optimizer": optimizer, "lr_scheduler": stalling}

    def on_train_epoch_end(self) -> None:
        """Halve the learning rate where validation has stalled."""
        if not self.automatic_optimization:
            stalling: Any = self.lr_schedulers()
            stalling.step(self.history[-1]["val_loss"])


class PlannedTask(Task):
    """A task with a learning rate for every epoch.

    Parameters
    ----------
    *task, by_epochs
        Arguments of `Task`.
    rates : sequence of float
        Rates of the first group; others keep their ratio to it.
    moments : dict, optional
        State of the optimiser to continue from, by parameter.
    """

    def __init__(
        self,
        *task: Any,
        by_epochs: bool = False,
        rates: Sequence[float],
        moments: dict[Any, Any] | None = None,
    ) -> None:
        super().__init__(*task, by_epochs=by_epochs)
        self._rates = rates
        self.moments = moments

    def configure_optimizers(self) -> Any:
        """Adam, with decoupled weight decay, at the planned rates."""
        optimizer = torch.optim.AdamW(self._groups, fused=True)
        if self.moments is not None:
            fresh = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": self.moments, "param_groups": fresh})
        first, last = self._groups[0]["lr"], len(self._rates) - 1
        planned = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda epoch: self._rates[min(epoch, last)] / first
        )
        return {"optimizer": optimizer, "lr_scheduler": planned}

    def on_train_epoch_end(self) -> None:
        """Go on to the next rate. The last epoch is kept: without validation none is better."""
        if not self.automatic_optimization:
            planned: Any = self.lr_schedulers()
            planned.step()
        self.best_epoch = self.current_epoch + 1

    def on_fit_end(self) -> None:
        """Keep the state of the optimiser."""
        self.moments = self.trainer.optimizers[0].state_dict()["state"]


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


class _Averaged(DDPStrategy):
    """Several processes whose gradients are averaged."""

    def setup_environment(self) -> None:
        if self._start_method == "spawn":
            self._silence = quiet()
            self._silence.__enter__()  # for the life of this process
        if self._start_method == "fork" and self.root_device.type == "cpu":
            torch.set_num_threads(1)  # torch's pool of threads does not outlive a fork
        super().setup_environment()
