"""Test error and execution time against the size of blocks (Section 6.1, Figure 2(c)).

One ParaRNN layer of d = 128 units in K = 128 / d_s blocks and a linear map of its last state, from
d_s = 1, a diagonal recurrent matrix, to d_s = 128, the ordinary network. ``--mse`` fits it to
z = W_y h_T + b_y + e in R^10 of a tanh network with 128 units, ARMA(1, 1) inputs and T = 128:

- ``printed``: all weights, biases and errors N(0, 1), as Section 6.1 prints it. The recurrent
  matrix has a spectral radius near 11 and the states are chaotic;
- ``scaled``: recurrent weights N(0, 1/d), a spectral radius near 1, input weights N(0, 0.1^2) and
  no biases of the states, as large ones would shorten their memory; readout and errors as above;
- ``waves``: as ``scaled``, with 0.98 times a random orthogonal matrix: all features are damped
  waves (C-1) with a half-life of 34 steps.

Adam starts at 0.001, halved when the validation error stalls, a fifth of the samples validates
(supplement D.3). A replicate draws process, sample and starting values anew, the same data for all
d_s. Every error is beside that of least squares on the 128 inputs as they are, the variance of z
and that of the errors. ``--init uniform`` takes other starting values, ``--no-clipping`` leaves
gradients as they are, by the private constant of the training loop. The paper has 40,000 samples
to train, 10,000 to validate, 10,000 to test and 25 replicates. It leaves open: batches, starting
values ("stable" here, contractions), whether gradients are clipped (at norm 1), whether data are
standardised (they are), when training ends (at ``--epochs`` or after 10 without improvement), and
whether a replicate has a process of its own. Defaults are two replicates of 2,500 samples, at most
25 epochs, and the first two processes.

``--time`` measures forward and backward passes of the layer, with a linear map of all states to
128 numbers (W_f of equation (7)), on 64 sequences, beside torch.nn.RNN. Layers are first compared
with torch.nn.RNN that has the same blocks in one matrix. Without options both parts run.
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import torch
from _recurrences import torch_twin
from _timing import option_parser, print_machine, print_table, read_options
from scipy.stats import ortho_group
from sklearn.linear_model import LinearRegression
from torch import Tensor, nn

from tsrnn.datasets import RNNProcess
from tsrnn.erm import ParaRNNRegressor
from tsrnn.layers import ParaRNN, RecurrentNetwork
from tsrnn.training import _lightning

D, LENGTH, OUTPUTS, BATCH = 128, 128, 10, 64
SIZES = [2**j for j in range(8)]
VALIDATION, RATE, PATIENCE = 0.2, 1e-3, 10
INPUT_STD = 0.1
MEMORIES = (5, 10, 20, 40, 80)


def with_recurrent_matrix(
    W_h: np.ndarray, generator: np.random.Generator, noise_std: float
) -> RNNProcess:
    """Small input weights, no bias, readout N(0, 1)."""
    normal = generator.standard_normal
    return RNNProcess(
        W_h, INPUT_STD * normal((D, 1)), None, normal((OUTPUTS, D)), normal(OUTPUTS),
        length=LENGTH, noise_std=noise_std,
    )  # fmt: skip


def printed(generator: np.random.Generator, noise_std: float) -> RNNProcess:
    return RNNProcess.standard_normal(
        D, LENGTH, n_outputs=OUTPUTS, noise_std=noise_std, random_state=generator
    )


def scaled(generator: np.random.Generator, noise_std: float) -> RNNProcess:
    W_h = generator.standard_normal((D, D)) / D**0.5
    return with_recurrent_matrix(W_h, generator, noise_std)


def waves(generator: np.random.Generator, noise_std: float) -> RNNProcess:
    W_h = 0.98 * ortho_group.rvs(D, random_state=generator)
    return with_recurrent_matrix(W_h, generator, noise_std)


PROCESSES: dict[str, Callable[[np.random.Generator, float], RNNProcess]] = {
    "printed": printed, "scaled": scaled, "waves": waves,
}  # fmt: skip


def shared_variance(process: RNNProcess) -> list[str]:
    """Share of the mean's variance that sequences with the same last inputs have in common."""
    X, other = (process.inputs(1024, random_state=seed) for seed in (1, 2))
    f = process.mean(X)
    shares = []
    for memory in MEMORIES:
        mixed = other.copy()
        mixed[:, -memory:] = X[:, -memory:]
        g = process.mean(mixed)
        common = ((f - f.mean(0)) * (g - g.mean(0))).mean(0).sum()
        shares.append(f"{common / f.var(0).sum():.3f}")
    return shares


def print_processes(names: list[str]) -> None:
    rows = []
    for name in names:
        process = PROCESSES[name](np.random.default_rng(0), 1.0)
        radius = np.abs(np.linalg.eigvals(process.recurrent_matrix)).max()
        rows.append([name, f"{radius:.2f}", *shared_variance(process)])
    print("\nSpectral radius, and share of the variance that the last inputs determine; one draw\n")
    print_table(["process", "radius", *(f"last {m}" for m in MEMORIES)], rows)


def test_error(model: Any, X: np.ndarray, z: np.ndarray) -> float:
    """Mean squared error over samples and outputs."""
    return float(np.square(model.predict(X) - z).mean())


def fitted(block_size: int, seed: int, options: argparse.Namespace) -> ParaRNNRegressor:
    return ParaRNNRegressor(
        D, block_size=block_size, init=options.init, aggregation="linear", learning_rate=RATE,
        batch_size=BATCH, max_epochs=options.epochs, validation_fraction=VALIDATION,
        patience=PATIENCE, random_state=seed,
    )  # fmt: skip


def replicate(name: str, seed: int, options: argparse.Namespace) -> dict[str, float]:
    """Test error of every size, of least squares and of the best constant."""
    generator = np.random.default_rng(seed)
    process = PROCESSES[name](generator, options.variance**0.5)
    X, z = process.sample(options.samples, random_state=generator)
    X_test, z_test = process.sample(options.test, random_state=generator)
    lags, lags_test = X[..., 0], X_test[..., 0]
    errors = {
        "variance of z": float(np.square(z_test - z.mean(0)).mean()),
        "least squares": test_error(LinearRegression().fit(lags, z), lags_test, z_test),
    }
    for size in options.sizes:
        start = time.perf_counter()
        try:
            model = fitted(size, seed, options).fit(X, z)
            errors[str(size)] = test_error(model, X_test, z_test)
            epochs = f"best of {len(model.history_)} epochs {model.best_epoch_}"
        except FloatingPointError:
            errors[str(size)], epochs = float("nan"), "diverged"
        if options.verbose:
            print(f"{name}, replicate {seed}, d_s = {size}: {errors[str(size)]:.4f}, {epochs}, "
                  f"{time.perf_counter() - start:.0f} s", flush=True)  # fmt: skip
    return errors


def paired(values: np.ndarray, others: np.ndarray) -> str:
    """Mean difference with its standard error over replicates."""
    gap = values - others
    if len(gap) < 2:
        return f"{gap.mean():.4f}"
    return f"{gap.mean():.4f} ({gap.std(ddof=1) / len(gap) ** 0.5:.4f})"


def print_errors(name: str, options: argparse.Namespace) -> None:
    replicates = [replicate(name, seed, options) for seed in range(options.replicates)]
    errors = {key: np.array([row[key] for row in replicates]) for key in replicates[0]}
    variance, base = errors["variance of z"], errors[str(options.sizes[-1])]
    before: np.ndarray | None = None
    rows = []
    for key, values in errors.items():
        explained = 1 - (values - options.variance) / (variance - options.variance)
        spread = f"{values.std(ddof=1):.4f}" if len(values) > 1 else ""
        step = "" if before is None or not key.isdigit() else paired(values, before)
        rows.append([f"d_s = {key}" if key.isdigit() else key, f"{values.mean():.4f}", spread,
                     f"{100 * explained.mean():.2f}", paired(values, base), step])  # fmt: skip
        before = values if key.isdigit() else None
    print(
        f"\nProcess {name}, {options.replicates} replicates, N = {options.samples} of which a "
        f"fifth validates, {options.test} to test, at most {options.epochs} epochs, init "
        f"{options.init}, {'no ' if options.no_clipping else ''}clipping; "
        f"error variance {options.variance:g}\n"
    )
    header = ["model", "test MSE", "std", "explained, %", f"less d_s = {options.sizes[-1]} (se)",
              "less next smaller (se)"]  # fmt: skip
    print_table(header, rows)


def pass_ms(forward: Callable[[], Tensor], repeats: int) -> list[str]:
    """Median milliseconds forward, backward and in sum, with their standard deviations."""
    times = []
    for i in range(repeats + 2):
        start = time.perf_counter()
        output = forward()
        middle = time.perf_counter()
        output.sum().backward()
        end = time.perf_counter()
        if i >= 2:
            times.append((middle - start, end - middle, end - start))
    medians, spreads = 1e3 * np.median(times, axis=0), 1e3 * np.std(times, axis=0, ddof=1)
    return [f"{ms:.1f} ({sd:.2f})" for ms, sd in zip(medians, spreads, strict=True)]


def print_times(repeats: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(BATCH, LENGTH, 1)
    rows = []
    for size in SIZES:
        network = RecurrentNetwork(ParaRNN(1, D, size), D)
        network.prepare()
        whole = torch_twin(network.rnn)
        with torch.no_grad():
            gap = float((network.rnn(x)[0] - whole(x)[0]).abs().max())
        assert gap < 1e-4, f"d_s = {size}: states differ from torch.nn.RNN by {gap:.1e}"
        ours = pass_ms(lambda network=network: network(x)[0], repeats)
        rows.append([f"d_s = {size}", *ours, f"{gap:.0e}"])
    output = nn.Linear(D, D)
    theirs = pass_ms(lambda: output(whole(x)[0]), repeats)
    rows.append(["torch.nn.RNN", *theirs, ""])
    print(f"\nMilliseconds, medians of {repeats} (standard deviation); B = {BATCH}, "
          f"T = {LENGTH}, d = {D}\n")  # fmt: skip
    print_table(["layer", "forward", "backward", "both", "largest difference"], rows)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--mse", action="store_true", help="only this part")
    parser.add_argument("--time", action="store_true", help="only this part")
    parser.add_argument("--processes", nargs="+", choices=PROCESSES, default=["printed", "scaled"])
    parser.add_argument("--sizes", nargs="+", type=int, choices=SIZES, default=SIZES)
    parser.add_argument("--variance", type=float, default=1.0, help="of the errors; 5 in D.4")
    parser.add_argument("--samples", type=int, default=2500, help="to train and validate")
    parser.add_argument("--test", type=int, default=5000)
    parser.add_argument("--replicates", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--init", choices=["stable", "uniform"], default="stable")
    parser.add_argument("--no-clipping", action="store_true")
    parser.add_argument("--repeats", type=int, default=30, help="of --time")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--verbose", action="store_true", help="a line a fit")
    options = read_options(
        parser, mse=True, processes=["printed"], sizes=[2], samples=100, test=100, replicates=1,
        epochs=1,
    )  # fmt: skip
    torch.set_num_threads(options.threads)
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module="lightning")
    print_machine()
    if options.time or not options.mse:
        print_times(options.repeats)
    if options.mse or not options.time:
        print_processes(options.processes)
        norm = None if options.no_clipping else _lightning.CLIP_NORM
        with mock.patch.object(_lightning, "CLIP_NORM", norm):
            for name in options.processes:
                print_errors(name, options)


if __name__ == "__main__":
    main()
