"""Training by Lightning; no other room trains."""

from __future__ import annotations

import copy
import io
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.plugins.environments import LightningEnvironment
from lightning.pytorch.strategies import DDPStrategy
from torch import Tensor, nn
from tqdm import tqdm

from tsrnn.training._course import Course, PlannedCourse, ValidatedCourse
from tsrnn.training._epoch import Epoch, Share
from tsrnn.training._machine import Processes
from tsrnn.training._parameter_groups import CLIP_NORM, descend
from tsrnn.training._side_effects import contained, quiet

ALONE = Processes()
IT_IS_TIME = torch.zeros(1)  # data for Lightning's loops where a task has its own: one empty batch


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
) -> tuple[list[dict[str, float]], int]:
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
        course = ValidatedCourse([group["lr"] for group in groups], patience, validate())
        task = ValidatedTask(
            model, epoch, loss, groups, course, validate=validate, callbacks=callbacks,
            by_epochs=_by_epochs(processes, callbacks),
        )  # fmt: skip
        trainer = _trainer(task, device, processes, max_epochs, callbacks, verbose)
        with _backward_in_this_thread():
            trainer.fit(task, val_dataloaders=[IT_IS_TIME] if task.automatic_optimization else None)
    model.to("cpu")
    return task.course.history, task.course.best_epoch


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
    course = PlannedCourse([group["lr"] for group in groups], rates)
    task = Task(
        model, epoch, loss, groups, course, moments=moments, callbacks=callbacks,
        by_epochs=_by_epochs(processes, callbacks),
    )  # fmt: skip
    with contained(processes), _backward_in_this_thread():
        _trainer(task, device, processes, len(rates), callbacks, verbose).fit(task)
    model.to("cpu")
    return task.moments


def _backward_in_this_thread() -> AbstractContextManager[object]:
    """Let backward passes on a GPU run in the thread that asks for them, as those on a CPU do.

    To wake the thread that torch has for a device takes several times as long as the kernels of a
    small network. Processes that are started for a training keep it.
    """
    context: AbstractContextManager[object] = torch.autograd.set_multithreading_enabled(False)
    return context


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


@torch.no_grad()
def _step(optimizer: torch.optim.Optimizer) -> None:
    """Step of AdamW, without the checks of its class, which cost more than a small network does."""
    groups = []
    for group in optimizer.param_groups:
        moving = [p for p in group["params"] if p.grad is not None]
        states = [optimizer.state[p] for p in moving]
        if not all(states):  # the first step, where the class makes them
            optimizer.step()
            return
        groups.append((group, moving, states))
    for group, moving, states in groups:
        if moving:
            gradients = [p.grad for p in moving if p.grad is not None]
            means, squares, steps = (
                [state[name] for state in states] for name in ("exp_avg", "exp_avg_sq", "step")
            )
            torch._foreach_add_(steps, 1)
            of_group = moving, gradients, means, squares, steps
            descend(of_group, group["lr"], group["weight_decay"])


class Task(pl.LightningModule):
    """A model with its batches, its loss and the course of its training.

    Parameters
    ----------
    model : nn.Module
    epoch : Epoch
        Iterated anew in every epoch.
    loss : callable
        Batch to scalar tensor.
    groups : list of dict
        Parameter groups of the optimiser.
    course : Course
    validate : callable, optional
        Gives the validation error; the weights of the best epoch are left. Without it those of
        the last one are.
    moments : dict, optional
        State of the optimiser to continue from, by parameter; after the fit that of its end.
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
        course: Course,
        *,
        validate: Callable[[], float] | None = None,
        moments: dict[Any, Any] | None = None,
        callbacks: Sequence[Callback] = (),
        by_epochs: bool = False,
    ) -> None:
        super().__init__()
        self.automatic_optimization = not by_epochs
        self.model, self.course, self.moments = model, course, moments
        self._epoch = epoch
        self._loss = loss
        self._groups = groups
        self._validate = validate
        self._callbacks = callbacks
        self._losses: list[Tensor] = []

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam, with decoupled weight decay."""
        optimizer = torch.optim.AdamW(self._groups, fused=True)
        if self.moments is not None:
            fresh = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": self.moments, "param_groups": fresh})
        return optimizer

    def train_dataloader(self) -> Share | Tensor:
        """The batches of this process; one empty one where the task takes an epoch by itself."""
        if not self.automatic_optimization:
            return IT_IS_TIME
        return self._epoch.share(self.trainer.global_rank, self.trainer.world_size)

    def on_fit_start(self) -> None:
        """Keep the weights of the start, and begin at the first rates."""
        if isinstance(self.course, ValidatedCourse):
            # All processes begin with the weights of the first one.
            self.course.error = self.trainer.strategy.broadcast(self.course.error)
            self._weights = copy.deepcopy(self.model.state_dict())
        self._set_rates()

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
            _step(optimizer)
        with torch.no_grad():
            self.end_epoch()
        return None

    def checked_loss(self, batch: Any) -> Tensor:
        """Loss of a batch, which is finite and counts among those of its epoch."""
        loss = self._loss(batch)
        if not math.isfinite(loss.item()):
            raise self.course.diverged(loss.item())
        self._losses.append(loss.detach())
        return loss

    def on_train_epoch_end(self) -> None:
        """End of an epoch that neither validation nor the step has ended."""
        if self.automatic_optimization and self._validate is None:
            self.end_epoch()

    def end_epoch(self) -> float:
        """Validate, keep the weights of the best epoch, go on to the next rates or end.

        The validation error is that of the first process in all of them.
        """
        processes, error = self.trainer.strategy, math.nan
        if self._validate is not None:
            error = processes.broadcast(self._validate() if self.global_rank == 0 else 0.0)
        mean = torch.stack(self._losses).mean() if self._losses else torch.tensor(torch.nan)
        loss = float(processes.reduce(mean, reduce_op="mean"))
        self._losses.clear()
        if self.course.proceed(loss, error) and self._validate is not None:
            self._weights = copy.deepcopy(self.model.state_dict())
        self._set_rates()
        if self.course.stopped:
            self.trainer.should_stop = True
        return error

    def on_fit_end(self) -> None:
        """Leave the weights of the best epoch, no gradients, and the state of the optimiser."""
        self.model.zero_grad()
        if self._validate is not None:
            self.model.load_state_dict(self._weights)
        self.moments = self._optimizer().state_dict()["state"]

    def get_extra_state(self) -> dict[str, Any]:
        """State that comes back, beside the weights, from a process that has trained."""
        # As bytes, since Lightning reads no other objects back.
        buffer = io.BytesIO()
        torch.save([callback.state_dict() for callback in self._callbacks], buffer)
        return {
            "history": self.course.history,
            "best_epoch": self.course.best_epoch,
            "drawn": self._epoch.generator.get_state(),
            "callbacks": buffer.getvalue(),
        }

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take over the state of the process that has trained."""
        self.course.history, self.course.best_epoch = state["history"], state["best_epoch"]
        self._epoch.generator.set_state(state["drawn"])
        buffer = io.BytesIO(state["callbacks"])
        # Onto the CPU: the GPU that the training ran on need not be here.
        saved = torch.load(buffer, map_location="cpu", weights_only=False)
        for callback, callback_state in zip(self._callbacks, saved, strict=True):
            if callback_state:  # as Lightning does it
                callback.load_state_dict(callback_state)

    def _on_device(self, batch: Any) -> Any:
        if self.device.type == "cpu":
            return batch
        return self.trainer.strategy.batch_to_device(batch)

    def _optimizer(self) -> torch.optim.Optimizer:
        (optimizer,) = self.trainer.optimizers
        return optimizer

    def _set_rates(self) -> None:
        for group, rate in zip(self._optimizer().param_groups, self.course.rates, strict=True):
            group["lr"] = rate


class ValidatedTask(Task):
    """A task with a validation step, of which Lightning warns where there is none to take."""

    def validation_step(self, _batch: Any, _: int) -> None:
        """Validation error, for the callbacks of users as well; the batch holds nothing."""
        self.log("val_loss", self.end_epoch(), prog_bar=True, batch_size=1, sync_dist=True)


class _EpochBar(Callback):
    """One line for the whole training: epochs, validation error, learning rate."""

    _bar: tqdm | None = None  # an error may come before the start

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        hidden = trainer.global_rank > 0
        self._bar = tqdm(total=trainer.max_epochs, desc="Training", unit="epoch", disable=hidden)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        assert isinstance(pl_module, Task)
        assert self._bar is not None
        if pl_module.course.history:
            last = pl_module.course.history[-1]
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
            torch.set_num_threads(1)  # Lightning shares the cores among spawned processes only
        super().setup_environment()
