"""Permuted sequential MNIST: ParaRNN beside the ordinary RNN of the same size.

Section 6.3 and supplements D.2 and D.3 of Cai et al. (2026): images as sequences of 784 pixels in
one fixed random order, read by two recurrent layers of 128 units; 57,000 images train, 3,000
validate, 10,000 test; Adam from a learning rate of 0.002, halved when the validation loss no
longer improves, until 1e-6 or 800 epochs. The ParaRNN has blocks of two units and a feedforward
network that aggregates them, the RNN has neither. The paper leaves open: batches (64 here), how
pixels are scaled (to [0, 1]), the initialisation (blocks "stable", the RNN as torch.nn.RNN), the
epochs without improvement before the rate is halved (3, as in supplement A) and whether gradients
are clipped (at norm 1). Before training the ParaRNN is compared with an RNN that has its blocks as
one matrix. ``--minutes`` ends a training wherever it stands; ``--plot DIR`` draws Figure 3. Time
is that of the processor by thread, so that other work on the machine does not shorten a training.
"""

from __future__ import annotations

import argparse
import gzip
import logging
import time
import warnings
from pathlib import Path

import lightning.pytorch as pl
import numpy as np
import torch
from _timing import print_machine, print_table
from torch import Tensor, nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
)

from tsrnn.interpret import FeatureHistory
from tsrnn.layers import ParaRNN, RecurrentNetwork
from tsrnn.plotting import plot_feature_history

LOCAL_COPY = Path(__file__).resolve().parents[2] / "shared" / "data" / "mnist"
PARTS = {"train": 60_000, "t10k": 10_000}
VALIDATION, UNITS, LAYERS, CLASSES, CLIP_NORM = 3_000, 128, 2, 10, 1.0
FIRST_RATE, LAST_RATE, STALLED_EPOCHS, MOST_EPOCHS = 0.002, 1e-6, 2, 800
# Block size, initialisation, aggregation and the paper's test accuracy in percent.
MODELS = {"ParaRNN": (2, "stable", "ffn", 93.93), "RNN": (UNITS, "uniform", "linear", 90.31)}
HEADER = ["model", "epochs", "training loss", "validation loss", "test accuracy (%)", "rate",
          "minutes", "images a second"]  # fmt: skip


def batches(
    x: Tensor, y: Tensor, size: int, generator: torch.Generator | None = None
) -> DataLoader:
    """Batches in a new order each epoch, if there is a generator."""
    rows = RandomSampler(y, generator=generator) if generator else SequentialSampler(y)
    sampler = BatchSampler(rows, size, drop_last=False)
    return DataLoader(TensorDataset(x, y), batch_size=None, sampler=sampler, generator=generator)


def load(folder: Path, part: str, order: np.ndarray) -> tuple[Tensor, Tensor]:
    """Permuted images (N, 784, 1) in [0, 1] and digits (N,)."""
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(PARTS[part], -1)
    with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as file:
        digits = np.frombuffer(file.read(), np.uint8, offset=8)
    assert pixels.shape == (PARTS[part], len(order))
    assert digits.shape == (PARTS[part],)
    x = (pixels[:, order] / np.float32(255))[..., None]
    return torch.from_numpy(x), torch.from_numpy(digits.astype(np.int64))


def make(name: str, seed: int) -> RecurrentNetwork:
    block_size, init, aggregation, _ = MODELS[name]
    rnn = ParaRNN(1, UNITS, block_size, LAYERS, init=init)
    network = RecurrentNetwork(rnn, CLASSES, aggregation=aggregation)
    network.reset_parameters(torch.Generator().manual_seed(seed))
    network.prepare()
    return network


@torch.no_grad()
def with_one_matrix(network: RecurrentNetwork) -> RecurrentNetwork:
    """The same network, its blocks laid into full recurrent matrices."""
    whole = RecurrentNetwork(ParaRNN(1, UNITS, UNITS, LAYERS), CLASSES, aggregation="ffn")
    values = network.state_dict()
    for layer in range(LAYERS):
        blocks = values[f"rnn.weight_hh_l{layer}"]
        size, count = blocks.shape[1:]
        full, units = torch.zeros(size, count, size, count), torch.arange(count)
        full[:, units, :, units] = blocks.permute(2, 0, 1)
        values[f"rnn.weight_hh_l{layer}"] = full.reshape(UNITS, UNITS, 1)
    whole.load_state_dict(values)
    return whole


def check_same(x: Tensor, seed: int) -> None:
    network = make("ParaRNN", seed)
    with torch.no_grad():
        ours, theirs = network(x)[0], with_one_matrix(network)(x)[0]
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    print(f"largest difference to an RNN with the same matrices: {(ours - theirs).abs().max():.1e}")


def seconds() -> float:
    """Of the processor, by thread."""
    return time.process_time() / torch.get_num_threads()


class Classifier(pl.LightningModule):
    """Digits from the last step; a row of the table after each epoch."""

    def __init__(self, name: str, network: RecurrentNetwork, minutes: float) -> None:
        super().__init__()
        self.name, self.network, self.minutes = name, network, minutes
        self.rows: list[list[str]] = []
        self.started, self.training_seconds, self.seen = seconds(), 0.0, 0
        self.losses: list[float] = []
        self.tests: list[list[tuple[float, int]]] = [[], []]  # of validation and test

    def logits(self, x: Tensor) -> Tensor:
        """Of the ten digits, (B, 10)."""
        return self.network(x, start=-1)[0][:, 0]

    def on_train_batch_start(self, batch: object, number: int) -> None:
        """Start the clock."""
        self.begun = seconds()

    def training_step(self, batch: tuple[Tensor, Tensor], _: int) -> Tensor:
        """Cross-entropy."""
        loss = nn.functional.cross_entropy(self.logits(batch[0]), batch[1])
        if not torch.isfinite(loss):
            raise FloatingPointError(f"{self.name} diverged in epoch {self.current_epoch + 1}")
        self.losses.append(loss.item())
        return loss

    def on_train_batch_end(self, outputs: object, batch: tuple[Tensor, Tensor], _: int) -> None:
        """Stop the clock, and training if it is time."""
        now = seconds()
        self.training_seconds += now - self.begun
        self.seen += len(batch[0])
        self.trainer.should_stop |= now - self.started > 60 * self.minutes

    def validation_step(self, batch: tuple[Tensor, Tensor], _: int, dataloader_idx: int) -> None:
        """Loss and right answers of a batch of the validation or the test images."""
        logits, digits = self.logits(batch[0]), batch[1]
        loss = nn.functional.cross_entropy(logits, digits, reduction="sum").item()
        self.tests[dataloader_idx].append((loss, int((logits.argmax(1) == digits).sum())))

    def on_validation_epoch_end(self) -> None:
        """Add and print a row."""
        loss, test = (np.sum(sums, 0) for sums in self.tests)
        rate = self.optimizers().param_groups[0]["lr"]
        self.log("loss", loss[0] / VALIDATION)
        self.trainer.should_stop |= rate < LAST_RATE
        row = [self.name, f"{self.seen / (PARTS['train'] - VALIDATION):.2f}",
               f"{np.mean(self.losses):.4f}", f"{loss[0] / VALIDATION:.4f}",
               f"{100 * test[1] / PARTS['t10k']:.2f}", f"{rate:.1e}",
               f"{(seconds() - self.started) / 60:.1f}",
               f"{self.seen / self.training_seconds:.0f}"]  # fmt: skip
        self.rows.append(row)
        self.losses, self.tests = [], [[], []]
        print(", ".join(f"{key} {cell}" for key, cell in zip(HEADER, row, strict=True)), flush=True)

    def configure_optimizers(self) -> dict:
        """Adam, its rate halved when the validation loss stalls."""
        optimizer = torch.optim.Adam(self.parameters(), lr=FIRST_RATE)
        halved = torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, factor=0.5, patience=STALLED_EPOCHS
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": halved, "monitor": "loss"}}


def train(
    name: str, data: dict[str, tuple[Tensor, Tensor]], options: argparse.Namespace
) -> list[list[str]]:
    """Rows of the table, an epoch each."""
    generator = torch.Generator().manual_seed(options.seed)
    x, y = data["train"]
    history = FeatureHistory()
    model = Classifier(name, make(name, options.seed), options.minutes)
    trainer = pl.Trainer(
        accelerator="cpu", max_epochs=MOST_EPOCHS, gradient_clip_val=CLIP_NORM, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        num_sanity_val_steps=0, callbacks=[history] if options.plot else [],
    )  # fmt: skip
    trainer.fit(
        model,
        batches(x[:-VALIDATION], y[:-VALIDATION], options.batch_size, generator),
        [batches(x[-VALIDATION:], y[-VALIDATION:], 500), batches(*data["t10k"], 500)],
    )
    if options.plot:
        options.plot.mkdir(parents=True, exist_ok=True)
        figure = plot_feature_history(history.frame)[0, 0].figure
        figure.savefig(options.plot / f"mnist_{name}.png", dpi=150)
    return model.rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-home", type=Path, default=LOCAL_COPY)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--minutes", type=float, default=30.0, help="of each model")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--plot", type=Path, help="folder for the figures")
    options = parser.parse_args()
    if not (options.data_home / "train-images-idx3-ubyte.gz").is_file():
        print(f"skipped: {options.data_home} has no train-images-idx3-ubyte.gz; give the folder "
              "with the four files of MNIST by --data-home")  # fmt: skip
        return
    torch.set_num_threads(options.threads)
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module="lightning")
    print_machine()
    print(__doc__.split("\n\n")[1])
    print(f"seed {options.seed}, batches of {options.batch_size}, {options.minutes:g} minutes each")
    order = np.random.default_rng(options.seed).permutation(784)
    data = {part: load(options.data_home, part, order) for part in PARTS}
    check_same(data["t10k"][0][: options.batch_size], options.seed)
    rows = [row for name in options.models for row in train(name, data, options)]
    print_table(HEADER, rows)
    for name in options.models:
        print(f"Cai et al., Table 1(b), {name}: {MODELS[name][3]} %")


if __name__ == "__main__":
    main()
