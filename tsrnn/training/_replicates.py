"""Training of replicates: many small models of one shape in one batched pass."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten
from tqdm import tqdm

from tsrnn.training._course import Course, PlannedCourse, ValidatedCourse
from tsrnn.training._epoch import Epoch
from tsrnn.training._parameter_groups import CLIP_NORM, descend

AT_ONCE = 256  # replicates in one pass, which share its overhead and its memory
WORTH_REPLACING = 0.125  # share of stopped replicates that makes a copy of the others pay
CLIP_EPSILON = 1e-6  # as in torch's clip_grad_norm_

Loss = Callable[[Any], Tensor]
Groups = list[dict[str, Any]]
Collate = Callable[[Sequence[Any]], Any]


class TrainedReplicate(NamedTuple):
    """Result of the training of one replicate.

    Parameters
    ----------
    history : list of dict
        Losses and learning rate of each epoch; empty without validation.
    best_epoch : int
        Epoch of the model's weights; 0 is the start.
    failure : FloatingPointError or None
        Error if the training loss was not finite; the model is then unchanged.

    Examples
    --------
    >>> from tsrnn.training import TrainedReplicate
    >>> TrainedReplicate([], best_epoch=0, failure=None).failure is None
    True
    """

    history: list[dict[str, float]]
    best_epoch: int
    failure: FloatingPointError | None


def stack_batches(batches: Sequence[Any]) -> Any:
    """Stack the tensors of the batches of all replicates along a new first axis.

    Batches are tensors, or tuples, lists and dicts of tensors, of equal shapes: pad them first,
    with zero weights in the loss. Other objects are taken from the first batch.
    """
    flat = [tree_flatten(batch) for batch in batches]
    stacked = []
    for parts in zip(*(leaves for leaves, _ in flat), strict=True):
        if not isinstance(parts[0], Tensor):
            stacked.append(parts[0])
            continue
        shapes = {tuple(part.shape) for part in parts}
        if len(shapes) > 1:
            raise ValueError(
                "batches of replicates must have the same shapes; got "
                f"{' and '.join(map(str, sorted(shapes)[:2]))}. Pad them, with a weight of zero "
                "in the loss, in a collate= of your own"
            )
        stacked.append(torch.stack(parts))
    return tree_unflatten(stacked, flat[0][1])


def train_replicates(
    models: Sequence[nn.Module],
    epochs: Sequence[Epoch],
    *,
    loss: Loss,
    validate: Loss,
    held_out: Sequence[Any],
    groups: Sequence[Groups],
    max_epochs: int,
    patience: int | None,
    device: str = "cpu",
    collate: Collate = stack_batches,
    stacked: bool = False,
    at_once: int = AT_ONCE,
    verbose: int = 0,
) -> list[TrainedReplicate]:
    """Train models of one shape in place, with the results of `train` for each.

    Every replicate has its own batches, gradient clipping, learning rate, early stopping and best
    weights; results equal those of `train` up to rounding. Models are computed in one batched
    pass, in which waiting replicates replace stopped ones.

    Parameters
    ----------
    models : sequence of R nn.Module
        Models whose parameters and buffers have equal names and shapes.
    epochs : sequence of R Epoch
        Batches of one epoch of each replicate.
    loss : callable
        Function from the batch of one replicate to its training loss, computed with ``models[0]``,
        whose parameters and buffers are replaced by those of each replicate. It must run under
        `torch.vmap` (no ``.item()``, no ``int()`` of a tensor, no boolean indexing, no shapes that
        depend on values) or be `stacked`.
    validate : callable
        Function from the held-out batch of one replicate to its validation error, under the same
        conditions.
    held_out : sequence of R batches
        Validation data of each replicate.
    groups : sequence of R lists of dict
        Parameter groups of each model, each with its "params", "lr" and "weight_decay". Parameters
        that need no gradient in a model stay unchanged in it.
    max_epochs : int
    patience : int or None
        Epochs without improvement before a replicate stops; None trains until its
        learning rate is below 1e-6.
    device : str
    collate : callable, default `stack_batches`
        Function from the batches of several replicates to one batch with a new first axis.
    stacked : bool, default False
        True if `loss` and `validate` take the collated batch of all replicates and parameters with
        a first axis of replicates, and return values (R,). This saves the overhead of
        `torch.vmap`, some milliseconds a step.
    at_once : int, default 256
        Replicates in one pass.
    verbose : int
        1 shows a progress bar over replicates.

    Returns
    -------
    list of R TrainedReplicate

    Raises
    ------
    ValueError
        If the models are not of one shape, or batches cannot be stacked.

    Notes
    -----
    Dropout draws from torch's global generator for all replicates at once, unlike in single
    trainings. Replicates with fewer batches in an epoch wait for the others.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.training import Epoch, parameter_groups, train_replicates
    >>> class Points(Epoch):
    ...     def __init__(self, slope):
    ...         self.slope, self.generator = slope, torch.Generator().manual_seed(0)
    ...     def __len__(self):
    ...         return 1
    ...     def batches(self):
    ...         x = torch.linspace(-1, 1, 20)[:, None]
    ...         yield x, self.slope * x
    >>> models = [torch.nn.Linear(1, 1, bias=False) for _ in range(3)]
    >>> epochs = [Points(slope) for slope in (1.0, 2.0, 3.0)]
    >>> def loss(batch):
    ...     return (models[0](batch[0]) - batch[1]).square().mean()
    >>> results = train_replicates(
    ...     models, epochs, loss=loss, validate=loss, held_out=[next(iter(e)) for e in epochs],
    ...     groups=[parameter_groups(m, [], learning_rate=0.1, weight_decay=0.0) for m in models],
    ...     max_epochs=20, patience=None,
    ... )
    >>> [result.best_epoch > 0 for result in results], results[0].failure
    ([True, True, True], None)
    """

    def course(i: int, error: float) -> Course:
        return ValidatedCourse([group["lr"] for group in groups[i]], patience, error)

    stack = Stack(models, groups, loss, validate, device, stacked)
    return _train(stack, epochs, course, collate, held_out, max_epochs, at_once, verbose)


def train_replicates_for(
    models: Sequence[nn.Module],
    epochs: Sequence[Epoch],
    *,
    loss: Loss,
    groups: Sequence[Groups],
    rates: Sequence[Sequence[float]],
    device: str = "cpu",
    collate: Collate = stack_batches,
    stacked: bool = False,
    at_once: int = AT_ONCE,
    verbose: int = 0,
) -> list[TrainedReplicate]:
    """Train models of one shape in place, with the results of `train_for`, without histories.

    `rates` are learning rates of the first group of each replicate by epoch; other groups change in
    proportion. A replicate without rates stays unchanged. All else is as in `train_replicates`.
    """

    def course(i: int, _: float) -> Course:
        return PlannedCourse([group["lr"] for group in groups[i]], rates[i])

    stack = Stack(models, groups, loss, None, device, stacked)
    longest = max(map(len, rates), default=0)
    return _train(stack, epochs, course, collate, None, longest, at_once, verbose)


# Lightning's Trainer cannot do this: it has one learning rate, one stop and one best epoch.
def _train(
    stack: Stack,
    epochs: Sequence[Epoch],
    start: Callable[[int, float], Course],
    collate: Collate,
    held_out: Sequence[Any] | None,
    max_epochs: int,
    at_once: int,
    verbose: int,
) -> list[TrainedReplicate]:
    """Train all replicates, `at_once` in a pass; `start` makes a course from number and error."""
    courses: dict[int, Course] = {}
    failures: dict[int, FloatingPointError] = {}
    waiting, running = deque(range(len(epochs))), list[int]()
    batches: dict[int, Any] = {}
    data = None
    bar = tqdm(total=len(epochs), desc="Training", unit="model", disable=not verbose)
    with bar, stack.in_place():
        while running or waiting:
            ended = {i for i in running if courses[i].stopped or courses[i].epoch == max_epochs}
            # Stopped replicates are computed in vain until a copy of the others pays.
            if len(ended) >= WORTH_REPLACING * len(running):
                stack.write(
                    k for k, i in enumerate(running)
                    if i in ended and i not in failures and courses[i].best_epoch > 0
                )  # fmt: skip
                bar.update(len(ended))
                kept = [k for k, i in enumerate(running) if i not in ended]
                room = at_once - len(kept)
                new = [waiting.popleft() for _ in range(min(room, len(waiting)))]
                stack.replace(kept, new)
                running = [running[k] for k in kept] + new
                if not running:
                    break
                errors = [0.0] * len(running)
                if held_out is not None:
                    data = on_device(collate([held_out[i] for i in running]), stack.device)
                    if new:
                        errors = stack.errors(data)
                courses |= {
                    i: start(i, e) for i, e in zip(running, errors, strict=True) if i in new
                }
                ended = {i for i in new if courses[i].stopped}
            going = [i for i in running if i not in ended]
            if not going:
                continue
            batches = {i: batch for i, batch in batches.items() if i in running}
            stack.set_rates([courses[i].rates for i in running])
            losses, moved = _epoch_of_all(stack, running, going, epochs, batches, collate)
            errors = [0.0] * len(running) if data is None else stack.errors(data)
            better = []
            for i, of_steps, taken, error in zip(running, losses, moved, errors, strict=True):
                course, of_epoch = courses[i], of_steps[taken]
                wrong = of_epoch[~of_epoch.isfinite()].tolist()
                if wrong and i not in ended:
                    failures[i], course.stopped = course.diverged(wrong[0]), True
                going_on = i not in ended and not course.stopped
                better.append(going_on and course.proceed(float(of_epoch.mean()), error))
            stack.keep(better)
    return [
        TrainedReplicate(courses[i].history, courses[i].best_epoch, failures.get(i))
        for i in range(len(epochs))
    ]


def _epoch_of_all(
    stack: Stack,
    running: Sequence[int],
    going: Sequence[int],
    epochs: Sequence[Epoch],
    batches: dict[int, Any],
    collate: Collate,
) -> tuple[Tensor, Tensor]:
    """Losses (R, steps) of an epoch of running replicates, and a mask of the steps taken.

    `batches` keeps the last batch of each replicate.
    """
    passes = {i: iter(epochs[i]) for i in going}
    steps = {i: len(epochs[i]) for i in going}
    losses, moved = [], []
    for step in range(max(steps.values())):
        moves = [steps.get(i, 0) > step for i in running]
        batches |= {i: next(passes[i]) for i in going if steps[i] > step}
        # Replicates without a batch compute with an old one, or another's, and do not move.
        given = [batches.get(i, batches[going[0]]) for i in running]
        losses.append(stack.step(on_device(collate(given), stack.device), moves))
        moved.append(moves)
    return torch.stack(losses).T.cpu(), torch.tensor(moved).T


class Stack:
    """Weights and moments of the replicates of one pass, a row of parameters for each.

    Arguments are as in `train_replicates`; `validate` may be None.
    """

    def __init__(
        self,
        models: Sequence[nn.Module],
        groups: Sequence[Groups],
        loss: Loss,
        validate: Loss | None,
        device: str,
        stacked: bool,
    ) -> None:
        _check_shapes(models, groups)
        self.device, self._models, self._groups = device, models, groups
        self._loss, self._validate, self._stacked = loss, validate, stacked
        self._computes = models[0]
        tensors = dict(models[0].named_parameters()) | dict(models[0].named_buffers())
        names = {id(tensor): name for name, tensor in tensors.items()}
        of_groups = [[names[id(p)] for p in group["params"]] for group in groups[0]]
        self._names = [name for of_group in of_groups for name in of_group]
        self._group_of = [g for g, of_group in enumerate(of_groups) for _ in of_group]
        self._shapes = [tensors[name].shape for name in self._names]
        self._sizes = [shape.numel() for shape in self._shapes]
        moved = set(self._names)
        self._constants = {
            name: tensor.new_empty(0, *tensor.shape, device=device)
            for name, tensor in tensors.items()
            if name not in moved
        }
        numbers = {id(tensors[n]): i for i, n in enumerate([*self._names, *self._constants])}
        self._places: list[tuple[dict[str, Any], str, int]] = [
            (of_module, name, numbers[id(tensor)])
            for module in self._computes.modules()
            for of_module in (module._parameters, module._buffers)
            for name, tensor in of_module.items()
            if tensor is not None
        ]
        like = tensors[self._names[0]]
        self._weights = like.detach().new_empty(0, sum(self._sizes), device=device)
        self._best = self._mean = self._square = self._trains = self._weights
        self._steps = torch.zeros(0, device=device)
        self._numbers: list[int] = []

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Restore the mode of the first model, which computes."""
        training = self._computes.training
        try:
            yield
        finally:
            self._computes.train(training)

    @torch.no_grad()
    def replace(self, kept: Sequence[int], new: Sequence[int]) -> None:
        """Keep the rows `kept`, and start the replicates with the numbers `new`."""
        tensors = [
            dict(self._models[i].named_parameters()) | dict(self._models[i].named_buffers())
            for i in new
        ]
        rows = [torch.cat([of[name].flatten() for name in self._names]) for of in tensors]
        of_new = torch.stack(rows).to(self.device) if rows else self._weights[:0]
        trains = [[float(of[name].requires_grad) for name in self._names] for of in tensors]
        is_trained = torch.tensor(trains).view(len(new), len(self._names)).to(of_new)
        is_trained = is_trained.repeat_interleave(torch.tensor(self._sizes, device=self.device), 1)
        nothing = torch.zeros_like(of_new)
        self._weights = torch.cat([self._weights[kept], of_new])
        self._best = torch.cat([self._best[kept], of_new])
        self._trains = torch.cat([self._trains[kept], is_trained])
        self._mean = torch.cat([self._mean[kept], nothing])
        self._square = torch.cat([self._square[kept], nothing])
        self._steps = torch.cat([self._steps[kept], self._steps.new_zeros(len(new))])
        for name, before in self._constants.items():
            stacked = [of[name].detach().to(self.device) for of in tensors]
            self._constants[name] = torch.cat([before[kept], *(t[None] for t in stacked)])
        self._numbers = [self._numbers[k] for k in kept] + list(new)
        self._some_are_frozen = not bool(self._trains.all())
        self._gradient = torch.empty_like(self._weights)
        self._runs = [self._runs_of(k) for k in range(len(self._numbers))]

    def _runs_of(self, k: int) -> list[tuple[int, list[Tensor]]]:
        """Parts of row k with one parameter group: the group, and the arguments of AdamW."""
        model, begin, runs = self._models[self._numbers[k]], 0, []
        rows = self._weights, self._gradient, self._mean, self._square
        moving = (model.get_parameter(name).requires_grad for name in self._names)
        of_each = zip(self._group_of, moving, self._sizes, strict=True)
        for (group, moves), parts in groupby(of_each, key=lambda part: part[:2]):
            end = begin + sum(size for *_, size in parts)
            if moves:
                runs.append((group, [*(t[k, begin:end] for t in rows), self._steps[k]]))
            begin = end
        return runs

    def set_rates(self, rates: Sequence[Sequence[float]]) -> None:
        """Set the learning rates by replicate and group."""
        self._plan: dict[tuple[float, float], list[tuple[int, list[Tensor]]]] = defaultdict(list)
        for k, (number, of_replicate) in enumerate(zip(self._numbers, rates, strict=True)):
            for g, run in self._runs[k]:
                decay = self._groups[number][g]["weight_decay"]
                self._plan[of_replicate[g], decay].append((k, run))

    def step(self, batch: Any, moves: Sequence[bool]) -> Tensor:
        """Take a step in the replicates that move, and return the losses (R,) of the batch."""
        if not self._computes.training:
            self._computes.train()
        weights = self._weights.detach().requires_grad_()
        losses = self._call(self._loss, weights, batch)
        (gradient,) = torch.autograd.grad(losses.sum(), weights)
        if self._some_are_frozen:
            gradient *= self._trains
        norm = gradient.norm(dim=1, keepdim=True)
        factor = (CLIP_NORM / (norm + CLIP_EPSILON)).clamp(max=1.0)
        torch.mul(gradient, factor, out=self._gradient)
        self._descend(moves)
        return losses.detach()

    @torch.no_grad()
    def _descend(self, moves: Sequence[bool]) -> None:
        """Take a step of AdamW, in one call for all rows with the same rate and decay."""
        all_move = all(moves)
        self._steps += 1 if all_move else torch.tensor(moves).to(self._steps)
        for (rate, decay), runs in self._plan.items():
            chosen = [run for k, run in runs if all_move or moves[k]]
            if chosen:
                descend([list(part) for part in zip(*chosen, strict=True)], rate, decay)

    @torch.no_grad()
    def errors(self, batch: Any) -> list[float]:
        """Validation errors on the collated held-out batch."""
        assert self._validate is not None
        self._computes.eval()
        errors: list[float] = self._call(self._validate, self._weights, batch).tolist()
        return errors

    def _call(self, function: Loss, weights: Tensor, batch: Any) -> Tensor:
        parts = zip(weights.split(self._sizes, 1), self._shapes, strict=True)
        tensors = [part.unflatten(1, shape) for part, shape in parts]
        tensors += self._constants.values()
        before = [of_module[name] for of_module, name, _ in self._places]
        # Flat lists, because torch.vmap traverses nested ones in Python at each step.
        leaves, structure = ([], None) if self._stacked else tree_flatten(batch)
        count = len(tensors)

        def of_one(*flat: Any) -> Tensor:
            # Like torch.func.functional_call, without its search for tied parameters.
            for of_module, name, i in self._places:
                of_module[name] = flat[i]
            return function(batch if structure is None else tree_unflatten(flat[count:], structure))

        try:
            if self._stacked:
                return of_one(*tensors)
            dims = tuple(0 if isinstance(leaf, Tensor) else None for leaf in (*tensors, *leaves))
            return torch.vmap(of_one, in_dims=dims, randomness="different")(*tensors, *leaves)
        finally:
            for (of_module, name, _), tensor in zip(self._places, before, strict=True):
                of_module[name] = tensor

    def keep(self, better: Sequence[bool]) -> None:
        """Store the present weights of the replicates that improved."""
        chosen = torch.tensor(better)
        self._best[chosen] = self._weights[chosen]

    @torch.no_grad()
    def write(self, trained: Iterator[int]) -> None:
        """Write the best weights of the given rows into their models."""
        for k in trained:
            model, parts = self._models[self._numbers[k]], self._best[k].split(self._sizes)
            for name, part, shape in zip(self._names, parts, self._shapes, strict=True):
                model.get_parameter(name).copy_(part.unflatten(0, shape))


def on_device(batch: Any, device: str) -> Any:
    """Move the tensors of a batch to a device."""
    if device == "cpu":
        return batch
    return tree_map(lambda x: x.to(device) if isinstance(x, Tensor) else x, batch)


def _check_shapes(models: Sequence[nn.Module], groups: Sequence[Groups]) -> None:
    """Refuse models that differ in shape from the first."""
    first: Any = None
    for number, (model, of_each) in enumerate(zip(models, groups, strict=True)):
        names = {id(p): name for name, p in model.named_parameters()}
        tensors = (*model.named_parameters(), *model.named_buffers())
        shapes = {name: (tuple(t.shape), t.dtype) for name, t in tensors}
        shape = (shapes, [[names[id(p)] for p in group["params"]] for group in of_each])
        first = shape if first is None else first
        if shape != first:
            raise ValueError(
                "models of replicates must have parameters, buffers and groups of the same names, "
                f"shapes and dtypes; those of models[{number}] differ from those of models[0]. "
                "Train models of another shape by themselves"
            )
