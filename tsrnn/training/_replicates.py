"""Training of replicates: many small models of one shape side by side, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten
from tqdm import tqdm

from tsrnn.training._course import Course, PlannedCourse, ValidatedCourse
from tsrnn.training._epoch import Epoch
from tsrnn.training._parameter_groups import CLIP_NORM

AT_ONCE = 256  # replicates in one pass: they share its overhead of 3 ms, and its memory
WORTH_DROPPING = 0.25  # share of the replicates in a pass that have stopped
BETAS, EPSILON = (0.9, 0.999), 1e-8  # of torch's AdamW
CLIP_EPSILON = 1e-6  # of torch's clip_grad_norm_

Loss = Callable[[Any], Tensor]
Groups = list[dict[str, Any]]
Collate = Callable[[Sequence[Any]], Any]


class TrainedReplicate(NamedTuple):
    """Course of the training of one of many replicates.

    Parameters
    ----------
    history : list of dict
        Losses and learning rate of each epoch; empty where nothing was validated.
    best_epoch : int
        Epoch whose weights the model has; 0 is the start.
    failure : FloatingPointError or None
        Set where the training loss was not finite: the model is as it was before.

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

    Parameters
    ----------
    batches : sequence
        Tensors, or tuples, lists and dicts of them, of the same shapes; anything else in them is
        that of the first.

    Returns
    -------
    batch of the same structure

    Raises
    ------
    ValueError
        If shapes differ. Pad them first, with a weight of zero in the loss.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.training import stack_batches
    >>> x, y = stack_batches([(torch.zeros(5, 2), torch.ones(5)) for _ in range(3)])
    >>> x.shape, y.shape
    (torch.Size([3, 5, 2]), torch.Size([3, 5]))
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
    at_once: int = AT_ONCE,
    verbose: int = 0,
) -> list[TrainedReplicate]:
    """Train models of one shape in place, each as `train` would by itself.

    Every replicate draws its batches from the generator of its epoch, and has its gradient norm
    clipped, its learning rate halved, its training stopped and its best weights kept by itself;
    the numbers are those of `train`, to rounding. What the models compute runs in one pass under
    `torch.vmap`.

    Parameters
    ----------
    models : sequence of R nn.Module
        With parameters and buffers of the same names and shapes.
    epochs : sequence of R Epoch
        Iterated anew in every epoch, until a replicate stops.
    loss : callable
        Batch of one replicate to its training loss, computed with ``models[0]``, whose parameters
        and buffers are exchanged for those of each replicate. It must run under `torch.vmap`: no
        ``.item()``, no ``int()`` of a tensor, no boolean indexing, no shapes that depend on values.
    validate : callable
        Held-out batch of one replicate to its validation error, likewise.
    held_out : sequence of R batches
        Validation part of each.
    groups : sequence of R lists of dict
        Parameter groups of each model, each with its "params", "lr" and "weight_decay".
    max_epochs : int
    patience : int or None
        Epochs without improvement before a replicate stops; None trains until its
        learning rate is below 1e-6.
    device : str
    collate : callable, default `stack_batches`
        Batches of some replicates to one with a new first axis; it pads them to one shape.
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
    Dropout draws from torch's global generator for all replicates at once: other numbers than in
    training one by one. Replicates whose epochs have unequal numbers of batches wait for the one
    with most.

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
    results: list[TrainedReplicate] = []
    for part in _parts(models, groups, at_once, verbose):
        chosen = [models[i] for i in part], [groups[i] for i in part]
        stack = Stack(models[0], *chosen, loss, validate, device)
        data = on_device(collate([held_out[i] for i in part]), device)
        started = [
            ValidatedCourse([group["lr"] for group in groups[i]], patience, error)
            for i, error in zip(part, stack.errors(data), strict=True)
        ]
        results += _train_stack(
            stack, [epochs[i] for i in part], started, collate, max_epochs, data
        )
    return results


def train_replicates_for(
    models: Sequence[nn.Module],
    epochs: Sequence[Epoch],
    *,
    loss: Loss,
    groups: Sequence[Groups],
    rates: Sequence[Sequence[float]],
    device: str = "cpu",
    collate: Collate = stack_batches,
    at_once: int = AT_ONCE,
    verbose: int = 0,
) -> list[TrainedReplicate]:
    """Train models of one shape in place, each as `train_for` would by itself.

    Parameters
    ----------
    models, epochs, loss, groups, device, collate, at_once, verbose
        As of `train_replicates`.
    rates : sequence of R sequences of float
        Learning rates of the first group of each replicate, epoch by epoch; the others move in
        proportion. A replicate without any stays as it is.

    Returns
    -------
    list of R TrainedReplicate
        Without histories.

    Raises
    ------
    ValueError
        If the models are not of one shape, or batches cannot be stacked.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.training import Epoch, parameter_groups, train_replicates_for
    >>> class Points(Epoch):
    ...     generator = torch.Generator()
    ...     def __len__(self):
    ...         return 1
    ...     def batches(self):
    ...         x = torch.linspace(-1, 1, 20)[:, None]
    ...         yield x, 3 * x
    >>> models = [torch.nn.Linear(1, 1, bias=False) for _ in range(2)]
    >>> def loss(batch):
    ...     return (models[0](batch[0]) - batch[1]).square().mean()
    >>> groups = [parameter_groups(m, [], learning_rate=0.1, weight_decay=0.0) for m in models]
    >>> results = train_replicates_for(models, [Points(), Points()], loss=loss, groups=groups,
    ...                                rates=[[0.1] * 3, [0.1] * 5])
    >>> [result.best_epoch for result in results]
    [3, 5]
    """
    results: list[TrainedReplicate] = []
    for part in _parts(models, groups, at_once, verbose):
        chosen = [models[i] for i in part], [groups[i] for i in part]
        stack = Stack(models[0], *chosen, loss, None, device)
        planned = [PlannedCourse([group["lr"] for group in groups[i]], rates[i]) for i in part]
        longest = max(len(rates[i]) for i in part)
        results += _train_stack(stack, [epochs[i] for i in part], planned, collate, longest)
    return results


# Not by Lightning's Trainer: it has one learning rate, one end and one best epoch for what it
# trains, and each of these is one a replicate here; what it gives beside them, callbacks and
# processes, is for models trained one by one.
def _train_stack(
    stack: Stack,
    epochs: Sequence[Epoch],
    courses: Sequence[Course],
    collate: Collate,
    max_epochs: int,
    data: Any = None,
) -> list[TrainedReplicate]:
    """Train the replicates of a stack to their ends and write the weights to the models."""
    failures: dict[int, FloatingPointError] = {}
    running, batches = list(range(len(courses))), [None] * len(courses)
    for _ in range(max_epochs):
        going = [i for i in running if not courses[i].stopped]
        if not going:
            break
        # Results of those that have stopped are computed and not looked at, until it pays to
        # copy the rest.
        if len(going) <= (1 - WORTH_DROPPING) * len(running):
            kept = torch.tensor([running.index(i) for i in going])
            stack.select(kept)
            data = selected(data, kept)
            running = going
        passes = {i: iter(epochs[i]) for i in going}
        steps = {i: len(epochs[i]) for i in going}
        losses, moved = [], []
        rates = torch.tensor([courses[i].rates for i in running], dtype=torch.float64)
        for step in range(max(steps.values())):
            moves = torch.tensor([steps.get(i, 0) > step for i in running])
            for i in going:
                if steps[i] > step:
                    batches[i] = next(passes[i])
            # Whoever has no batch left goes along with an old one, or another's, and stays.
            given = [batches[i] if batches[i] is not None else batches[going[0]] for i in running]
            losses.append(stack.step(on_device(collate(given), stack.device), rates, moves))
            moved.append(moves)
        by_replicate = torch.stack(losses).T.cpu()
        errors = stack.errors(data) if data is not None else [0.0] * len(running)
        better = []
        of_all = zip(running, by_replicate, torch.stack(moved).T, errors, strict=True)
        for i, of_steps, taken, error in of_all:
            course, of_epoch = courses[i], of_steps[taken]
            wrong = of_epoch[~of_epoch.isfinite()].tolist()
            if wrong and not course.stopped:
                failures[i], course.stopped = course.diverged(wrong[0]), True
            better.append(not course.stopped and course.proceed(float(of_epoch.mean()), error))
        stack.keep(better)
    results = [
        TrainedReplicate(course.history, course.best_epoch, failures.get(i))
        for i, course in enumerate(courses)
    ]
    stack.write([result.failure is None and result.best_epoch > 0 for result in results])
    return results


class Stack:
    """Weights and moments of the replicates of one pass, all parameters of each in a row.

    Parameters
    ----------
    computes : nn.Module
        Model that `loss` and `validate` compute with.
    models : sequence of R nn.Module
    groups : sequence of R lists of dict
    loss : callable
    validate : callable or None
    device : str
    """

    def __init__(
        self,
        computes: nn.Module,
        models: Sequence[nn.Module],
        groups: Sequence[Groups],
        loss: Loss,
        validate: Loss | None,
        device: str,
    ) -> None:
        self.device = device
        self._models, self._loss, self._validate = models, loss, validate
        self._computes, self._training = computes, computes.training
        tensors = [dict(m.named_parameters()) | dict(m.named_buffers()) for m in models]
        names = {id(tensor): name for name, tensor in tensors[0].items()}
        of_groups = [[names[id(p)] for p in group["params"]] for group in groups[0]]
        self._names = [name for names in of_groups for name in names]
        self._shapes = [tensors[0][name].shape for name in self._names]
        sizes = [sum(tensors[0][name].numel() for name in names) for names in of_groups]
        ends = np.cumsum([0, *sizes])
        self._columns = [slice(int(first), int(end)) for first, end in pairwise(ends)]
        decay = [[group["weight_decay"] for group in of_each] for of_each in groups]
        self._decay = torch.tensor(decay, dtype=torch.float64)
        rows = [torch.cat([of[name].detach().flatten() for name in self._names]) for of in tensors]
        self._weights = torch.stack(rows).to(device)
        self._mean, self._square = torch.zeros_like(self._weights), torch.zeros_like(self._weights)
        self._steps = torch.zeros(len(models), 1, dtype=torch.float64)
        self._rows, self._best = torch.arange(len(models)), self._weights.clone()
        self._constants = {
            name: torch.stack([of[name].detach() for of in tensors]).to(device)
            for name in tensors[0]
            if name not in set(self._names)
        }
        of_first = dict(computes.named_parameters()) | dict(computes.named_buffers())
        numbers = {id(of_first[n]): i for i, n in enumerate([*self._names, *self._constants])}
        self._places: list[tuple[dict[str, Any], str, int]] = [
            (of_module, name, numbers[id(tensor)])
            for module in computes.modules()
            for of_module in (module._parameters, module._buffers)
            for name, tensor in of_module.items()
            if tensor is not None
        ]

    def step(self, batch: Any, rates: Tensor, moves: Tensor) -> Tensor:
        """Losses (R,) of a batch, and a step of the optimiser in the replicates that move."""
        if not self._computes.training:
            self._computes.train()
        weights = self._weights.requires_grad_()
        losses = self._call(self._loss, weights, batch)
        (gradient,) = torch.autograd.grad(losses.sum(), weights)
        self._weights = weights.detach()
        norm = gradient.norm(dim=1, keepdim=True)
        gradient *= (CLIP_NORM / (norm + CLIP_EPSILON)).clamp(max=1.0)
        self._descend(gradient, rates, slice(None) if moves.all() else moves.nonzero()[:, 0])
        return losses.detach()

    def _descend(self, gradient: Tensor, rates: Tensor, rows: Tensor | slice) -> None:
        """Move by AdamW of torch, with a rate and a decay for each replicate and group."""
        self._steps[rows] += 1
        steps, rates, decay = self._steps[rows], rates[rows], self._decay[rows]
        weights, mean, square, gradient = (
            t[rows] for t in (self._weights, self._mean, self._square, gradient)
        )
        mean.lerp_(gradient, 1 - BETAS[0])
        square.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        root = (1 - BETAS[1] ** steps).sqrt().to(weights)
        update = mean / square.sqrt().div_(root).add_(EPSILON)
        lengths = (rates / (1 - BETAS[0] ** steps)).to(weights)
        kept = (1 - rates * decay).to(weights)
        for i, columns in enumerate(self._columns):
            weights[:, columns] *= kept[:, i, None]
            weights[:, columns] -= update[:, columns].mul_(lengths[:, i, None])
        if isinstance(rows, Tensor):  # which made copies
            self._weights[rows], self._mean[rows], self._square[rows] = weights, mean, square

    @torch.no_grad()
    def errors(self, batch: Any) -> list[float]:
        """Validation errors on the held-out batches."""
        assert self._validate is not None
        self._computes.eval()
        errors: list[float] = self._call(self._validate, self._weights, batch).tolist()
        return errors

    def _call(self, function: Loss, weights: Tensor, batch: Any) -> Tensor:
        parts = weights.split([shape.numel() for shape in self._shapes], 1)
        named = zip(self._names, parts, self._shapes, strict=True)
        tensors = [part.unflatten(1, shape) for _, part, shape in named]
        tensors += self._constants.values()
        # Flat lists: torch.vmap walks through nested ones in Python, at each step.
        leaves, structure = tree_flatten(batch)
        count = len(tensors)

        def of_one(*flat: Any) -> Tensor:
            # As torch.func.functional_call, which looks for tied parameters at each call.
            for of_module, name, i in self._places:
                of_module[name] = flat[i]
            return function(tree_unflatten(flat[count:], structure))

        dims = tuple(0 if isinstance(leaf, Tensor) else None for leaf in (*tensors, *leaves))
        before = [of_module[name] for of_module, name, _ in self._places]
        try:
            return torch.vmap(of_one, in_dims=dims, randomness="different")(*tensors, *leaves)
        finally:
            for (of_module, name, _), tensor in zip(self._places, before, strict=True):
                of_module[name] = tensor

    def keep(self, better: Sequence[bool]) -> None:
        """Take the present weights of some replicates for their best."""
        chosen = torch.tensor(better)
        self._best[self._rows[chosen]] = self._weights[chosen]

    def select(self, kept: Tensor) -> None:
        """Go on with some of the replicates."""
        for name in ("_weights", "_mean", "_square", "_steps", "_decay", "_rows"):
            setattr(self, name, getattr(self, name)[kept])
        self._constants = {name: tensor[kept] for name, tensor in self._constants.items()}

    @torch.no_grad()
    def write(self, trained: Sequence[bool]) -> None:
        """Write the best weights into the models that have been trained."""
        self._computes.train(self._training)
        for model, row, is_trained in zip(self._models, self._best, trained, strict=True):
            if is_trained:
                parts = row.split([shape.numel() for shape in self._shapes])
                for name, part, shape in zip(self._names, parts, self._shapes, strict=True):
                    model.get_parameter(name).copy_(part.unflatten(0, shape))


def selected(batch: Any, kept: Tensor) -> Any:
    """Batch of some of the replicates."""
    return tree_map(lambda x: x[kept.to(x.device)] if isinstance(x, Tensor) else x, batch)


def on_device(batch: Any, device: str) -> Any:
    """Batch with its tensors on a device."""
    if device == "cpu":
        return batch
    return tree_map(lambda x: x.to(device) if isinstance(x, Tensor) else x, batch)


def _parts(
    models: Sequence[nn.Module], groups: Sequence[Groups], at_once: int, verbose: int
) -> Iterator[range]:
    """Numbers of the replicates of each pass, of models that have been checked."""
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
    with tqdm(total=len(models), desc="Training", unit="model", disable=not verbose) as bar:
        for begin in range(0, len(models), at_once):
            part = range(begin, min(begin + at_once, len(models)))
            yield part
            bar.update(len(part))
