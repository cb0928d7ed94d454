"""Many small networks: trained in one pass against one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import torch
from _timing import print_machine, print_table
from torch import Tensor, nn

from tsrnn.layers import ParaRNN, RecurrentNetwork
from tsrnn.training import Epoch, parameter_groups, train, train_replicates

ROWS, OUTPUTS, EPOCHS, STEPS = 200, 12, 5, 20
ALONE, TOGETHER = 4, 256
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


def networks(hidden: int, count: int) -> list[nn.Module]:
    torch.manual_seed(0)
    return [RecurrentNetwork(ParaRNN(1, hidden, num_layers=2), OUTPUTS) for _ in range(count)]


def loss_of(model: nn.Module) -> Callable[[Batch], Tensor]:
    return lambda batch: (model(batch[0])[0] - batch[1]).square().mean()


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


def in_one_pass(hidden: int, at_once: int) -> tuple[float, list[float]]:
    """Milliseconds a network and step, and the last validation errors."""
    models = networks(hidden, TOGETHER)
    epochs, loss = [Series(seed) for seed in range(TOGETHER)], loss_of(models[0])
    start = time.process_time()
    results = train_replicates(
        models, epochs, loss=loss, validate=loss, held_out=[epoch.batch for epoch in epochs],
        groups=[parameter_groups(model, [], 0.001, 0.01) for model in models],
        max_epochs=EPOCHS, patience=None, at_once=at_once,
    )  # fmt: skip
    took = 1e3 * (time.process_time() - start) / (TOGETHER * EPOCHS * STEPS)
    return took, [result.history[-1]["val_loss"] for result in results]


def main() -> None:
    torch.set_num_threads(1)
    print_machine()
    sizes, rows = (16, 64, 256), []
    for hidden in (64, 16):
        alone, expected = one_by_one(hidden)
        times = []
        for at_once in sizes:
            took, errors = in_one_pass(hidden, at_once)
            # A hundred steps on 200 rows make a difference in rounding this large.
            torch.testing.assert_close(errors[:ALONE], expected, rtol=0.1, atol=0.0)
            times.append(took)
        row = [hidden, f"{alone:.2f}", *(f"{t:.2f}" for t in times), f"{alone / min(times):.0f}"]
        rows.append(row)
    print_table(["hidden", "one by one", *(f"{n} at once" for n in sizes), "ratio"], rows)


if __name__ == "__main__":
    main()
