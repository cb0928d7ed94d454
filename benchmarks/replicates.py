"""Many small networks: trained in one pass against one after the other, beside the floor of a step.

Networks of two layers with blocks of 2, each on a series of 200 rows of its own, with 12 outputs.
"stacked" is how layers are trained whose kernels run in time order; "vmap" is for all others. The
floor of a network and step is made of its operations at the rates of one thread, measured here:
three matrix products of the second layer and three of the head, the recurrences of both layers
forward and backward, in the caches.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial

import torch
from _timing import median_ms, print_machine, print_table, read_options
from torch import Tensor, nn

from tsrnn.kernels import cells, recurrence
from tsrnn.layers import ParaRNN, RecurrentNetwork
from tsrnn.training import Epoch, parameter_groups, train, train_replicates

ROWS, OUTPUTS, EPOCHS, STEPS = 200, 12, 5, 20
ALONE, TOGETHER = 4, 128
Batch = tuple[Tensor, Tensor]


class Series(Epoch):
    """One series, in every step."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        x = torch.randn(1, ROWS, 1, generator=self.generator)
        self.batch = x, x.cumsum(1).tanh().expand(-1, -1, OUTPUTS)

    def __len__(self) -> int:
        return STEPS

    def batches(self) -> Iterator[Batch]:
        """The series."""
        while True:
            yield self.batch


def networks(hidden: int, count: int) -> list[RecurrentNetwork]:
    torch.manual_seed(0)
    return [RecurrentNetwork(ParaRNN(1, hidden, num_layers=2), OUTPUTS) for _ in range(count)]


def loss_of(model: nn.Module) -> Callable[[Batch], Tensor]:
    return lambda batch: (model(batch[0])[0] - batch[1]).square().mean()


def losses_of(model: nn.Module) -> Callable[[Batch], Tensor]:
    """Losses of all replicates, whose series stand one below the other."""

    def losses(batch: Batch) -> Tensor:
        x, target = (part.flatten(0, 1) for part in batch)
        return (model(x)[0] - target).square().mean((1, 2))

    return losses


def one_by_one(hidden: int) -> tuple[float, list[float]]:
    """Milliseconds a network and step, and the last validation errors."""
    models, errors = networks(hidden, ALONE), []
    start = time.process_time()
    for seed, model in enumerate(models):
        epoch, loss = Series(seed), loss_of(model)

        def validate(loss: Callable[[Batch], Tensor] = loss, epoch: Series = epoch) -> float:
            with torch.no_grad():
                return float(loss(epoch.batch))

        history, _ = train(
            model, epoch, loss=loss, validate=validate, max_epochs=EPOCHS, patience=None,
            groups=parameter_groups(model, [], 0.001, 0.01),
        )  # fmt: skip
        errors.append(history[-1]["val_loss"])
    return 1e3 * (time.process_time() - start) / (ALONE * EPOCHS * STEPS), errors


def in_one_pass(hidden: int, at_once: int, stacked: bool) -> tuple[float, list[float]]:
    """Milliseconds a network and step, and the last validation errors."""
    models = networks(hidden, TOGETHER if at_once > ALONE else ALONE)
    epochs = [Series(seed) for seed in range(len(models))]
    loss = (losses_of if stacked else loss_of)(models[0])
    start = time.process_time()
    results = train_replicates(
        models, epochs, loss=loss, validate=loss, held_out=[epoch.batch for epoch in epochs],
        groups=[parameter_groups(model, [], 0.001, 0.01) for model in models],
        max_epochs=EPOCHS, patience=None, at_once=at_once, stacked=stacked,
    )  # fmt: skip
    took = 1e3 * (time.process_time() - start) / (len(models) * EPOCHS * STEPS)
    return took, [result.history[-1]["val_loss"] for result in results]


def floor_of_a_step(hidden: int, count: int = 16) -> tuple[float, float]:
    """Milliseconds of the matrix products and of the recurrences of a network and step."""
    shapes = (  # rows, inner size, columns
        (ROWS, hidden, hidden), (ROWS, hidden, hidden), (hidden, ROWS, hidden),
        (ROWS, hidden, OUTPUTS), (ROWS, OUTPUTS, hidden), (OUTPUTS, ROWS, hidden),
    )  # fmt: skip
    products = 0.0
    for m, k, n in shapes:
        a, b, out = torch.randn(count, m, k), torch.randn(count, k, n), torch.empty(count, m, n)
        products += median_ms(partial(torch.bmm, a, b, out=out), 30) / count
    u = torch.randn(count, ROWS, 2, hidden // 2, requires_grad=True)
    w = (0.3 * torch.randn(4, hidden // 2)).requires_grad_()
    states = recurrence(cells.para_rnn(2), u, w)[0]
    gradient = torch.ones_like(states)
    passes = median_ms(lambda: recurrence(cells.para_rnn(2), u, w), 30)
    passes += median_ms(
        lambda: torch.autograd.grad(states, (u, w), gradient, retain_graph=True), 30
    )
    return products, 2 * passes / count


def main() -> None:
    options = read_options(argparse.ArgumentParser(description=__doc__))
    torch.set_num_threads(1)
    print_machine()
    sizes, rows = (1, 4) if options.smoke else (1, 8, 32, 128), []
    for hidden in (16,) if options.smoke else (64, 16):
        alone, expected = one_by_one(hidden)
        floor = floor_of_a_step(hidden)
        for stacked in (True, False):
            times = []
            for at_once in sizes:
                took, errors = in_one_pass(hidden, at_once, stacked)
                # A hundred steps on 200 rows make a difference in rounding this large.
                torch.testing.assert_close(errors[:ALONE], expected, rtol=0.1, atol=0.0)
                times.append(took)
            rows.append([
                hidden, "stacked" if stacked else "vmap", *(f"{part:.3f}" for part in floor),
                f"{alone:.2f}", *(f"{t:.3f}" for t in times), f"{alone / min(times):.0f}",
            ])  # fmt: skip
    print_table(["hidden", "how", "floor: products", "recurrences", "one by one",
                 *(f"{n} at once" for n in sizes), "ratio"], rows)  # fmt: skip


if __name__ == "__main__":
    main()
