"""Recurrence features while an RNN learns the RNN that made its data (supplement A).

The data are z = h_T + e with h_t = tanh(W_h* h_{t-1} + W_x* x_t), equation (A.1), where W_h* has
entries N(0, 0.1^2) (``normal``) or is a direct sum of R-4 and C-2 blocks (``jordan``); W_x* has
entries N(2, 2^2), e N(0, 0.01^2). The model is the same recurrence, its last state the output. It
starts from recurrent weights uniform on (-1/sqrt(d), 1/sqrt(d)), from the identity, or from R-4
and C-2 blocks other than those of W_h*; its input weights start uniform on the same interval.
Printed by epoch: errors, the Frobenius distances of both matrices, percentiles of the moduli of
the eigenvalues, and how many features there are of each type; in the last rows those of W_h* and
of W_h* with N(0, 0.001^2) added to its entries. The truth has an error of 0.0001: before training
it is put into the model and must have that.

The paper has d = 128, T = 128, N = 50,000, Adam from 0.0001, halved after three epochs without
improvement. It leaves open how inputs are distributed (ARMA(1, 1), as in Section 6.1), which blocks
the second matrix has, where the input weights start, batches (64 here), epochs, and whether
gradients are clipped (they are not). By default sizes are smaller and the rate is larger, so that
runs end in minutes.
"""

from __future__ import annotations

import argparse
import logging
import warnings
from pathlib import Path

import lightning.pytorch as pl
import numpy as np
import pandas as pd
import torch
from _timing import option_parser, print_machine, print_table, read_options
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
)

from tsrnn.datasets import RNNProcess
from tsrnn.interpret import FeatureHistory, recurrence_features
from tsrnn.layers import ParaRNN
from tsrnn.plotting import plot_feature_history

STARTS = ("uniform", "identity", "blocks")
PROCESSES = ("normal", "jordan")
TYPES = ("R-1", "C-1", "R-2", "C-2", "R-3", "R-4", "zero")
PERCENTILES = (10, 50, 90, 100)
NOISE_STD, STALLED_EPOCHS = 0.01, 2
NEAR = 1e-3  # standard deviation of what disturbs the truth in the last row
Data = tuple[Tensor, Tensor]


def process_of(name: str, options: argparse.Namespace, seed: int) -> RNNProcess:
    make = RNNProcess.noisy_state if name == "normal" else RNNProcess.noisy_jordan_state
    return make(options.hidden, options.length, noise_std=NOISE_STD, random_state=seed)


def drawn(process: RNNProcess, n: int, seed: int) -> Data:
    X, z = process.sample(n, random_state=seed)
    return torch.from_numpy(X).float(), torch.from_numpy(z).float()


def batches(data: Data, size: int, generator: torch.Generator | None = None) -> DataLoader:
    """Batches in a new order each epoch, if there is a generator."""
    rows = RandomSampler(data[1], generator=generator) if generator else SequentialSampler(data[1])
    sampler = BatchSampler(rows, size, drop_last=False)
    return DataLoader(TensorDataset(*data), batch_size=None, sampler=sampler)


def recurrence(options: argparse.Namespace) -> ParaRNN:
    """An ordinary network without biases, its last state the output."""
    rnn = ParaRNN(1, options.hidden, options.hidden, bias=False, init="uniform")
    rnn.reset_parameters(torch.Generator().manual_seed(options.seed))
    rnn.prepare()
    return rnn


@torch.no_grad()
def set_recurrent_matrix(rnn: ParaRNN, matrix: np.ndarray) -> None:
    rnn.weight_hh_l0.copy_(torch.tensor(matrix)[..., None])


@torch.no_grad()
def check_truth(process: RNNProcess, data: Data, options: argparse.Namespace) -> None:
    """The model with the weights of the process has the error of the noise alone."""
    rnn = recurrence(options)
    set_recurrent_matrix(rnn, process.recurrent_matrix)
    rnn.weight_ih_l0.copy_(torch.tensor(process.input_matrix))
    error = float((rnn(data[0])[1][0] - data[1]).square().mean())
    assert abs(error / NOISE_STD**2 - 1) < 0.05, f"the truth has an error of {error:.2e}"


class Learner(pl.LightningModule):
    """The recurrence, trained to its last state; a row of the table after each epoch."""

    def __init__(self, rnn: ParaRNN, process: RNNProcess, rate: float) -> None:
        super().__init__()
        self.rnn, self.rate = rnn, rate
        self.truth = process.recurrent_matrix, process.input_matrix
        self.rows: list[dict[str, float]] = []
        self.losses: list[float] = []
        self.sums = [0.0, 0]

    def error(self, batch: Data) -> Tensor:
        """Mean squared error of the last states."""
        return (self.rnn(batch[0])[1][0] - batch[1]).square().mean()

    def training_step(self, batch: Data, _: int) -> Tensor:
        """Error of a batch."""
        loss = self.error(batch)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch: Data, _: int) -> None:
        """Add a batch."""
        self.sums[0] += self.error(batch).item() * len(batch[0])
        self.sums[1] += len(batch[0])

    def on_validation_epoch_end(self) -> None:
        """Add a row."""
        validation = self.sums[0] / self.sums[1]
        self.log("loss", validation)
        W = self.rnn.weight_hh_l0.detach().double().numpy()[..., 0]
        V = self.rnn.weight_ih_l0.detach().double().numpy()
        self.rows.append({
            "epoch": len(self.rows),
            "training": float(np.mean(self.losses)) if self.losses else float("nan"),
            "validation": validation,
            "distance": float(np.linalg.norm(W - self.truth[0])),
            "input distance": float(np.linalg.norm(V - self.truth[1])),
            "rate": self.optimizers().param_groups[0]["lr"],
        })  # fmt: skip
        self.losses, self.sums = [], [0.0, 0]

    def configure_optimizers(self) -> dict:
        """Adam, its rate halved when the validation error stalls."""
        optimizer = torch.optim.Adam(self.parameters(), lr=self.rate)
        halved = torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, factor=0.5, patience=STALLED_EPOCHS
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": halved, "monitor": "loss"}}


def start(rnn: ParaRNN, name: str, options: argparse.Namespace) -> None:
    if name == "identity":
        set_recurrent_matrix(rnn, np.eye(options.hidden))
    elif name == "blocks":
        other = process_of("jordan", options, options.seed + 2)
        set_recurrent_matrix(rnn, other.recurrent_matrix)


def train(
    process: RNNProcess, name: str, parts: list[Data], options: argparse.Namespace
) -> tuple[list[dict[str, float]], pd.DataFrame]:
    """Rows of errors, the start among them, and features by epoch."""
    rnn = recurrence(options)
    start(rnn, name, options)
    model, history = Learner(rnn, process, options.rate), FeatureHistory()
    trainer = pl.Trainer(
        accelerator="cpu", max_epochs=options.epochs, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=-1,
        callbacks=[history],
    )  # fmt: skip
    generator = torch.Generator().manual_seed(options.seed)
    trainer.fit(model, batches(parts[0], options.batch_size, generator), batches(parts[1], 500))
    return model.rows, history.frame


def feature_cells(features: pd.DataFrame) -> list[str]:
    """Percentiles of moduli over features, then counts of types."""
    moduli = np.percentile(features["modulus"], PERCENTILES)
    counts = features["type"].value_counts()
    unknown = set(counts.index) - set(TYPES)
    assert not unknown, f"types without a column: {unknown}"
    return [*(f"{m:.2f}" for m in moduli), *(str(counts.get(t, 0)) for t in TYPES)]


def print_training(
    rows: list[dict[str, float]], features: pd.DataFrame, process: RNNProcess, every: int
) -> None:
    W_h = process.recurrent_matrix
    near = W_h + NEAR * np.random.default_rng(0).standard_normal(W_h.shape)
    table: list[list[str]] = []
    for row in rows:
        epoch = int(row["epoch"])
        if epoch > 3 and epoch % every and epoch != len(rows) - 1:
            continue
        table.append([
            str(epoch), f"{row['training']:.5f}" if epoch else "", f"{row['validation']:.5f}",
            f"{row['distance']:.3f}", f"{row['input distance']:.3f}", f"{row['rate']:.1e}",
            *feature_cells(features[features["epoch"] == epoch]),
        ])  # fmt: skip
    for label, matrix in (("truth", W_h), ("near truth", near)):
        distance = f"{np.linalg.norm(matrix - W_h):.3f}"
        features = recurrence_features(matrix)
        table.append([label, "", "", distance, "", "", *feature_cells(features)])
    header = ["epoch", "training", "validation", "to W_h*", "to W_x*", "rate",
              *(f"{p} %" for p in PERCENTILES), *TYPES]  # fmt: skip
    print_table(header, table)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--processes", nargs="+", choices=PROCESSES, default=list(PROCESSES))
    parser.add_argument("--starts", nargs="+", choices=STARTS, default=list(STARTS))
    parser.add_argument("--hidden", type=int, default=32, help="d, a multiple of 4")
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--samples", type=int, default=5000, help="to train; a fifth to validate")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--rate", type=float, default=1e-2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=10, help="epochs between rows")
    parser.add_argument("--plot", type=Path, help="folder for the figures")
    options = read_options(
        parser, processes=["normal"], starts=["blocks"], hidden=8, samples=200, epochs=1
    )
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module="lightning")
    print_machine()
    for name in options.processes:
        process = process_of(name, options, options.seed)
        parts = [drawn(process, options.samples, 1), drawn(process, options.samples // 5, 2)]
        check_truth(process, parts[1], options)
        print(f"\nW_h* {name}, d = {options.hidden}, T = {options.length}, N = {options.samples}, "
              f"variance of z {float(parts[1][1].var(0).mean()):.3f}")  # fmt: skip
        for first in options.starts:
            rows, features = train(process, first, parts, options)
            print(f"\nstart: {first}\n")
            print_training(rows, features, process, options.every)
            if options.plot:
                options.plot.mkdir(parents=True, exist_ok=True)
                figure = plot_feature_history(features)[0, 0].figure
                figure.savefig(options.plot / f"features_{name}_{first}.png", dpi=150)


if __name__ == "__main__":
    main()
