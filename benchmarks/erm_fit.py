"""Seconds an epoch of ParaRNNRegressor, beside torch.nn.RNN of the same width.

10,000 sequences of 128 steps of one input, 128 units, batches of 64, a tenth held out to validate;
the target is a moving average of the inputs and noise. Layers: blocks of 2, one block of all
units, and torch.nn.RNN. Loops: that of ``ParaRNNRegressor.fit``, where torch's layer takes the
place of ours and all else stays, and a plain one in torch with the same head, optimiser, clipping
and validation. An epoch is a pass over 141 batches and a validation. Each number is a median over
epochs after the first of a fit, and layers and loops take turns, so that other work on the machine
falls on all of them. Before, torch's layer with the blocks in one matrix is compared with ours:
outputs of the network, and all gradients of the loss.

Floors of an epoch. Bytes: 8 a state trained on, as it is written and later read, and 4 a state of
validation, over what a copy moves; there is no gradient of single states to read, since the last
one alone is used. Arithmetic: forward, and twice that backward, the multiply-adds of the recurrent
matrix and the input, at the speed of a matrix product of the shape of a step. Blocks of 2 take no
such products; what their 3 multiply-adds a state would cost at that speed is not what holds them
up, a tanh costs more.

Last, a bootstrap of 200 refits of 200 windows of 12 steps with 16 units and the defaults: refits
trained together, and the first 10 of them one by one, whose predictions are compared. Seconds of
one by one are those of 10 refits times twenty. Then a cross-validation on the same windows, by
scikit-learn's ``cross_val_score`` and by ``cross_validated_risk``.

``--refits`` only runs these two.
"""

from __future__ import annotations

import time
from collections import defaultdict
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import lightning.pytorch as pl
import numpy as np
import torch
from _recurrences import full_matrices, torch_twin
from _timing import (
    copy_ms_a_byte,
    median_ms,
    option_parser,
    print_machine,
    print_table,
    read_options,
)
from sklearn.model_selection import KFold, cross_val_score
from torch import Tensor, nn

from tsrnn import ParaRNNRegressor
from tsrnn.erm import Refits, block_bootstrap, cross_validated_risk
from tsrnn.layers import LAYERS as BY_NAME
from tsrnn.layers import ParaRNN, Recurrent, RecurrentNetwork

N, STEPS, UNITS, BATCH, RATE, CLIP_NORM = 10_000, 128, 128, 64, 2e-3, 1.0
HELD_OUT = 0.1  # share
BLOCKS, FULL, TORCH = "blocks of 2", "one block", "torch.nn.RNN"
LAYERS = (BLOCKS, FULL, TORCH)
WEIGHTS_A_STATE = {BLOCKS: 3, FULL: UNITS + 1, TORCH: UNITS + 1}
Data = tuple[np.ndarray, np.ndarray]


class TorchRNN(Recurrent):
    """torch.nn.RNN as a layer of this package."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        block_size: int | None = None,  # taken as ParaRNN takes them, and not used
        num_layers: int = 1,
        *,
        cell: str = "rnn",
        nonlinearity: str = "tanh",
    ) -> None:
        assert (cell, nonlinearity) == ("rnn", "tanh")
        super().__init__()
        self.input_size, self.num_layers = input_size, num_layers
        self.hidden_size = self.state_size = hidden_size
        self.rnn = nn.RNN(input_size, hidden_size, num_layers, batch_first=True)

    def run(self, x: Tensor, hx: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """Outputs and final state; all sequences are as long."""
        assert lengths is None
        return self.rnn(x, hx)

    def outputs(self, states: Tensor) -> Tensor:
        """States are outputs."""
        return states

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw as torch does."""
        for parameter in self.parameters():
            parameter.uniform_(-(UNITS**-0.5), UNITS**-0.5, generator=generator)


class EpochClock(pl.Callback):
    """When epochs end, their validation included."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Look at the clock."""
        self.ends.append(time.perf_counter())


def samples(count: int) -> Data:
    """Inputs (N, T, 1) and targets (N,), a tenth of them held out."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, STEPS, 1))
    return x, x[:, -8:, 0].mean(1) + 0.1 * rng.normal(size=count)


def estimator(layer: str, epochs: int, **further: Any) -> ParaRNNRegressor:
    return ParaRNNRegressor(
        UNITS, block_size=UNITS if layer == FULL else 2, batch_size=BATCH, learning_rate=RATE,
        validation_fraction=HELD_OUT, patience=None, max_epochs=epochs, random_state=0,
        **further,
    )  # fmt: skip


def fit(layer: str, data: Data, epochs: int) -> list[float]:
    """Seconds of the epochs of a fit but the first."""
    clock = EpochClock()
    with patch.dict(BY_NAME, {"ParaRNN": TorchRNN} if layer == TORCH else {}):
        model = estimator(layer, epochs, callbacks=[clock]).fit(*data)
    assert isinstance(model.network_.rnn, TorchRNN if layer == TORCH else ParaRNN)
    held_out = round(HELD_OUT * len(data[0]))
    assert (model.n_train_, model.n_validation_) == (len(data[0]) - held_out, held_out)
    return [after - before for before, after in pairwise(clock.ends)]


def make_network(layer: str) -> RecurrentNetwork:
    """The network that the estimator would make."""
    rnn = TorchRNN(1, UNITS) if layer == TORCH else ParaRNN(1, UNITS, UNITS if layer == FULL else 2)
    return RecurrentNetwork(rnn, 1, aggregation="fc")


def loss_of(network: RecurrentNetwork, x: Tensor, y: Tensor) -> Tensor:
    return (network.head(network.rnn(x)[1][-1]) - y).square().mean()


def plain(layer: str, data: Data, epochs: int) -> list[float]:
    """Seconds of the epochs of a loop in torch but the first."""
    torch.manual_seed(0)
    network = make_network(layer)
    x, y = (torch.from_numpy(part.astype(np.float32)) for part in data)
    x, y = (x - x.mean()) / x.std(), ((y - y.mean()) / y.std())[:, None]
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.0)
    ends, held_out = [], round(HELD_OUT * len(x))
    for _ in range(epochs):
        for rows in torch.randperm(len(x) - held_out).split(BATCH):
            optimiser.zero_grad()
            loss_of(network, x[rows], y[rows]).backward()
            nn.utils.clip_grad_norm_(network.parameters(), CLIP_NORM)
            optimiser.step()
        with torch.no_grad():
            error = float(loss_of(network, x[-held_out:], y[-held_out:]))
        ends.append(time.perf_counter())
    assert epochs < 2 or error < 1.0  # below the error of the mean: it has learnt
    return [after - before for before, after in pairwise(ends)]


@torch.no_grad()
def twin_of(network: RecurrentNetwork) -> RecurrentNetwork:
    """The same network in torch's layer, blocks of 2 laid into its matrix."""
    ours, twin = network.rnn, make_network(TORCH)
    assert isinstance(ours, ParaRNN)
    twin.load_state_dict(network.state_dict(), strict=False)  # the head
    twin.rnn.rnn = torch_twin(ours)
    return twin


def check_same(data: Data) -> None:
    """Compare outputs and all gradients of both of our layers with torch's."""
    x = torch.from_numpy(data[0][:BATCH].astype(np.float32))
    y = torch.from_numpy(data[1][:BATCH, None].astype(np.float32))
    for layer in (BLOCKS, FULL):
        network = make_network(layer)
        twin = twin_of(network)
        torch.testing.assert_close(network(x)[0], twin(x)[0], rtol=1e-4, atol=1e-5)
        loss_of(network, x, y).backward()
        loss_of(twin, x, y).backward()
        ours, theirs = network.rnn, twin.rnn.rnn
        inside = full_matrices(torch.ones_like(ours.weight_hh_l0))
        pairs = {
            "recurrent": (full_matrices(ours.weight_hh_l0.grad), theirs.weight_hh_l0.grad * inside),
            "input": (ours.weight_ih_l0.grad, theirs.weight_ih_l0.grad),
            "bias": (ours.bias_l0.grad, theirs.bias_ih_l0.grad),
            "head": (network.ffn[0].weight.grad, twin.ffn[0].weight.grad),
        }
        for a, b in pairs.values():
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4 * float(b.abs().max()))
    print("outputs and gradients agree with those of torch.nn.RNN on the same matrices\n")


def floors(count: int) -> dict[str, tuple[float, float]]:
    """Seconds of the bytes and of the multiply-adds of an epoch, layer by layer."""
    states, held_out = STEPS * UNITS, HELD_OUT * count
    moved = (8 * (count - held_out) + 4 * held_out) * states
    passes = 3 * (count - held_out) + held_out
    a, b = torch.randn(BATCH, UNITS), torch.randn(UNITS, UNITS)
    out = torch.empty(BATCH, UNITS)
    product = median_ms(lambda: [torch.mm(a, b, out=out) for _ in range(100)], 20) / 100
    a_multiply_add = product / (BATCH * UNITS * UNITS)
    a_byte = copy_ms_a_byte()
    print(f"copy: {1e-6 / a_byte:.1f} GB/s read and written; product of a step: "
          f"{1e-6 / a_multiply_add:.0f} G multiply-adds/s")  # fmt: skip
    print(f"an epoch moves {moved / 1e9:.2f} GB of states; multiply-adds: " + ", ".join(
        f"{layer} {passes * states * weights / 1e9:.1f} G"
        for layer, weights in WEIGHTS_A_STATE.items()) + "\n")  # fmt: skip
    return {
        layer: (moved * a_byte / 1e3, passes * states * weights * a_multiply_add / 1e3)
        for layer, weights in WEIGHTS_A_STATE.items()
    }


def compare(data: Data, rounds: int, epochs: int) -> None:
    floor = floors(len(data[0]))
    seconds: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for _ in range(rounds):
        for layer in LAYERS:
            seconds[layer]["fit"] += fit(layer, data, 1 + epochs)
            seconds[layer]["plain"] += plain(layer, data, 1 + epochs)
    best = {layer: {loop: np.median(s) for loop, s in seconds[layer].items()} for layer in LAYERS}
    rows = [
        [layer, f"{best[layer]['fit']:.3f}", f"{best[layer]['plain']:.3f}",
         f"{best[layer]['fit'] / best[BLOCKS]['fit']:.1f}",
         f"{best[layer]['plain'] / best[BLOCKS]['plain']:.1f}",
         *(f"{part:.3f}" for part in floor[layer]),
         f"{100 * max(floor[layer][: 1 if layer == BLOCKS else 2]) / best[layer]['fit']:.0f} %"]
        for layer in LAYERS
    ]  # fmt: skip
    print_table(["layer", "fit s", "plain loop s", "fit, times", "plain, times", "floor: bytes s",
                 "floor: products s", "fit reaches"], rows)  # fmt: skip


def windows(length: int = 12, count: int = 200) -> Data:
    """Windows of a threshold-like series and the values after them."""
    rng = np.random.default_rng(0)
    y = np.zeros(count + length)
    for t in range(1, len(y)):
        y[t] = np.sin(2 * y[t - 1]) + 0.5 * rng.normal()
    x = np.lib.stride_tricks.sliding_window_view(y, length)[:count, :, None]
    return x.copy(), y[length:]


class ByItself(ParaRNNRegressor):
    """Estimator with a fit of its own, which refits therefore call one by one."""

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: Any = None) -> ByItself:
        """Fit as the class above does."""
        return super().fit(X, y, sample_weight)


def bootstrap(data: Data, refits: int, *, together: bool) -> tuple[Refits, float, float]:
    """Refits, with the seconds of the clock and of the processor that they take."""
    model = (ParaRNNRegressor if together else ByItself)(16, random_state=0).fit(*data)
    clock, processor = time.perf_counter(), time.process_time()
    members = block_bootstrap(model, *data, n_estimators=refits, block_length=12, random_state=0)
    return members, time.perf_counter() - clock, time.process_time() - processor


def compare_refits(refits: int, alone: int) -> None:
    data = windows()
    bootstrap(data, 2, together=True)  # loads everything
    joined, *of_joined = bootstrap(data, refits, together=True)
    single, *of_single = bootstrap(data, alone, together=False)
    # Of some, rounding makes another epoch the best.
    apart = [
        float(np.abs(one.predict(data[0]) - other.predict(data[0])).max())
        for one, other in zip(joined.members, single.members, strict=False)
    ]
    spread = float(np.std([member.predict(data[0]) for member in joined.members], axis=0).mean())
    assert np.median(apart) < 0.05 * spread, (apart, spread)
    assert max(apart) < spread, (apart, spread)
    print(f"\nBootstrap of {refits} refits; predictions of the first {alone} agree to "
          f"{np.median(apart):.1g} in the median refit, {max(apart):.1g} in the worst; their "
          f"standard deviation over refits is {spread:.2g}\n")  # fmt: skip
    of_single = [seconds * refits / alone for seconds in of_single]
    rows = [[name, *(f"{seconds:.1f}" for seconds in of)] for name, of in (
        ("together", of_joined), ("one by one", of_single))]  # fmt: skip
    rows.append(["times", *(f"{b / a:.1f}" for a, b in zip(of_joined, of_single, strict=True))])
    print_table([f"{refits} refits", "s", "s of processor time"], rows)


def compare_folds(n_folds: int) -> None:
    """Cross-validation by scikit-learn, a clone after the other, and of all folds together."""
    data, model = windows(), ParaRNNRegressor(16, random_state=0)
    seconds = []
    start = time.process_time()
    scores = cross_val_score(model, *data, cv=KFold(n_folds), scoring="neg_mean_squared_error")
    seconds.append(time.process_time() - start)
    start = time.process_time()
    risk = cross_validated_risk(model, *data, cv=KFold(n_folds))
    seconds.append(time.process_time() - start)
    apart = abs(risk.value + scores.mean()) / risk.value
    assert apart < 1e-3, apart
    print(f"\nCross-validation on {n_folds} folds; mean squared errors agree to {apart:.1g}\n")
    rows = [[name, f"{of:.1f}"] for name, of in zip(
        ("cross_val_score", "cross_validated_risk"), seconds, strict=True)]  # fmt: skip
    rows.append(["times", f"{seconds[0] / seconds[1]:.1f}"])
    print_table([f"{n_folds} folds", "s of processor time"], rows)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=2, help="fits of each layer in each loop")
    parser.add_argument("--epochs", type=int, default=3, help="timed in each of them")
    parser.add_argument("--refits", action="store_true", help="only run bootstrap and folds")
    parser.add_argument("--threads", type=int, help="of torch; its own choice by default")
    options = read_options(parser, rounds=1, epochs=1)
    if options.threads:
        torch.set_num_threads(options.threads)
    print_machine()
    if not options.refits:
        data = samples(400 if options.smoke else N)
        check_same(data)
        compare(data, options.rounds, options.epochs)
    compare_refits(*((4, 2) if options.smoke else (200, 10)))
    compare_folds(2 if options.smoke else 10)


if __name__ == "__main__":
    main()
