"""Training by Lightning."""

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

from tsrnn.training._course import Course, PlannedCourse, ValidatedCourse
from tsrnn.training._epoch import Epoch, Share
from tsrnn.training._machine import Processes
from tsrnn.training._parameter_groups import CLIP_NORM, descend
from tsrnn.training._side_effects import contained, quiet

ALONE = Processes()
IT_IS_TIME = torch.zeros(1)  # one dummy batch for Lightning's loops around a task's own epoch


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
        Batches of one epoch.
    loss : callable
        Function from a batch to the training loss.
    validate : callable
        Function without arguments that returns the validation error.
    groups : list of dict
        Parameter groups of the optimiser, each with its "lr" and "weight_decay".
    max_epochs : int
    patience : int or None
        Epochs without improvement before training stops; None trains until the
        learning rate is below 1e-6.
    device : str
    processes : Processes
        Processes that step on their own batches with averaged gradients.
    callbacks : sequence of lightning callbacks
        Callbacks; after training in started processes they have the state of the first process.
    verbose : int
        1 shows a progress bar over epochs.

    Returns
    -------
    history : list of dict
        Losses and learning rate of each epoch.
    best_epoch : int
        Epoch of the weights; 0 if training did not improve on the start.

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
            model, epoch, loss, groups, course, processes, callbacks, validate=validate
        )
        _fit(task, device, processes, max_epochs, callbacks, verbose)
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
    """Train `model` in place without validation, one epoch for each learning rate.

    The rates are of the first group; other groups change in proportion; all other arguments are
    those of `train`. `moments` is the state of the optimiser to continue from, and the result its
    state after the last epoch.
    """
    if not rates:
        return moments
    _check_callbacks(callbacks)
    course = PlannedCourse([group["lr"] for group in groups], rates)
    task = Task(model, epoch, loss, groups, course, processes, callbacks, moments=moments)
    with contained(processes):
        _fit(task, device, processes, len(rates), callbacks, verbose)
    return task.moments


def _fit(
    task: Task,
    device: str,
    processes: Processes,
    max_epochs: int,
    callbacks: Sequence[Callback],
    verbose: int,
) -> None:
    """Run a task by a trainer that writes nothing, and return its model to the CPU."""
    place = torch.device(device)
    devices: int | list[int] = 1 if place.index is None else [place.index]
    strategy: str | DDPStrategy = "auto"
    bar = [_EpochBar()] if verbose else []
    if processes.start is not None:
        devices, strategy = processes.count, _Averaged(start_method=processes.start)
    trainer = pl.Trainer(
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
    validated = isinstance(task, ValidatedTask) and task.automatic_optimization
    # Backward passes on a GPU run in this thread: waking torch's device thread takes several times
    # as long as the kernels of a small network.
    with torch.autograd.set_multithreading_enabled(False):
        trainer.fit(task, val_dataloaders=[IT_IS_TIME] if validated else None)
    task.model.to("cpu")


def _check_callbacks(callbacks: Any) -> None:
    listed = isinstance(callbacks, Sequence) and not isinstance(callbacks, str)
    if not listed or not all(isinstance(item, Callback) for item in callbacks):
        raise TypeError(
            f"callbacks must be a list of lightning.pytorch.Callback objects; got {callbacks!r}"
        )


def _clip_gradient(parameters: Sequence[nn.Parameter]) -> None:
    """Clip the gradient to `CLIP_NORM` like torch's `clip_grad_norm_`, with less overhead."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    factor = CLIP_NORM / (norm + 1e-6)
    if not factor > 1:  # also true for NaN
        torch._foreach_mul_(gradients, factor)


@torch.no_grad()
def _step(optimizer: torch.optim.Optimizer) -> None:
    """Take a step of AdamW without the checks of its class, which outweigh a small network."""
    groups = []
    for group in optimizer.param_groups:
        moving = [p for p in group["params"] if p.grad is not None]
        states = [optimizer.state[p] for p in moving]
        if not all(states):  # the first step creates the states
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
    """Model with its batches, its loss and the course of its training.

    Arguments are as in `train`. With `validate` the model ends with the weights of the best epoch,
    without it with the last ones. `moments` is the state of the optimiser before and after the fit.
    """

    def __init__(
        self,
        model: nn.Module,
        epoch: Epoch,
        loss: Callable[[Any], Tensor],
        groups: list[dict[str, Any]],
        course: Course,
        processes: Processes,
        callbacks: Sequence[Callback],
        *,
        validate: Callable[[], float] | None = None,
        moments: dict[Any, Any] | None = None,
    ) -> None:
        super().__init__()
        # Lightning calls some forty hooks a step, which take longer than a step on a short series.
        # Without processes and callbacks, one of its steps is a whole epoch.
        self.automatic_optimization = processes.start is not None or bool(callbacks)
        self.model, self.course, self.moments = model, course, moments
        self._epoch = epoch
        self._loss = loss
        self._groups = groups
        self._validate = validate
        self._callbacks = callbacks
        self._losses: list[Tensor] = []

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """AdamW, with the moments of an earlier training."""
        optimizer = torch.optim.AdamW(self._groups, fused=True)
        if self.moments is not None:
            fresh = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": self.moments, "param_groups": fresh})
        return optimizer

    def train_dataloader(self) -> Share | Tensor:
        """Batches of this process, or a dummy batch if a step is an epoch."""
        if not self.automatic_optimization:
            return IT_IS_TIME
        return self._epoch.share(self.trainer.global_rank, self.trainer.world_size)

    def on_fit_start(self) -> None:
        """Store the initial weights and set the first rates."""
        if isinstance(self.course, ValidatedCourse):
            # All processes start with the weights of the first one.
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
            # In the order of Lightning's loop.
            if self.device.type != "cpu":
                batch = self.trainer.strategy.batch_to_device(batch)
            loss = self.checked_loss(batch)
            for parameter in parameters:
                parameter.grad = None
            loss.backward()
            _clip_gradient(parameters)
            _step(optimizer)
        with torch.no_grad():
            self.end_epoch()
        return None

    def checked_loss(self, batch: Any) -> Tensor:
        """Record the loss of a batch; raise if it is not finite."""
        loss = self._loss(batch)
        if not math.isfinite(loss.item()):
            raise self.course.diverged(loss.item())
        self._losses.append(loss.detach())
        return loss

    def on_train_epoch_end(self) -> None:
        """End the epoch, unless validation or the step has done so."""
        if self.automatic_optimization and self._validate is None:
            self.end_epoch()

    def end_epoch(self) -> float:
        """Validate in the first process, store the best weights, set the next rates or stop."""
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
        """Load the best weights, free the gradients, and store the state of the optimiser."""
        self.model.zero_grad()
        if self._validate is not None:
            self.model.load_state_dict(self._weights)
        self.moments = self._optimizer().state_dict()["state"]

    def get_extra_state(self) -> dict[str, Any]:
        """State that a training process returns beside the weights."""
        # As bytes, because Lightning loads no other objects.
        buffer = io.BytesIO()
        torch.save([callback.state_dict() for callback in self._callbacks], buffer)
        return {
            "history": self.course.history,
            "best_epoch": self.course.best_epoch,
            "drawn": self._epoch.generator.get_state(),
            "callbacks": buffer.getvalue(),
        }

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take over the state of the training process."""
        self.course.history, self.course.best_epoch = state["history"], state["best_epoch"]
        self._epoch.generator.set_state(state["drawn"])
        buffer = io.BytesIO(state["callbacks"])
        # To the CPU, because this process may not have the GPU.
        saved = torch.load(buffer, map_location="cpu", weights_only=False)
        for callback, callback_state in zip(self._callbacks, saved, strict=True):
            if callback_state:  # as in Lightning
                callback.load_state_dict(callback_state)

    def _optimizer(self) -> torch.optim.Optimizer:
        (optimizer,) = self.trainer.optimizers
        return optimizer

    def _set_rates(self) -> None:
        for group, rate in zip(self._optimizer().param_groups, self.course.rates, strict=True):
            group["lr"] = rate


class ValidatedTask(Task):
    """Task with a validation step, which Lightning warns of in a task without validation data."""

    def validation_step(self, _batch: Any, _: int) -> None:
        """Validate, and log the error for callbacks."""
        self.log("val_loss", self.end_epoch(), prog_bar=True, batch_size=1, sync_dist=True)


class _EpochBar(Callback):
    """Progress bar of epochs with validation error and learning rate."""

    _bar: tqdm | None = None  # until the fit starts

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

    def teardown(self, trainer: pl.Trainer, *_: Any, **__: Any) -> None:
        if self._bar is not None:
            self._bar.close()

    on_exception = teardown


class _Averaged(DDPStrategy):
    """Data-parallel processes with averaged gradients."""

    def setup_environment(self) -> None:
        if self._start_method == "spawn":
            self._silence = quiet()
            self._silence.__enter__()  # for the life of this process
        if self._start_method == "fork" and self.root_device.type == "cpu":
            torch.set_num_threads(1)  # Lightning limits the threads of spawned processes only
        super().setup_environment()
