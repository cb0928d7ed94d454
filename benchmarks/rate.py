"""How the excess risk falls with the sample: Corollary 1, Theorem 5 and Proposition 2.

The regression functions are those of HolderProcess with one input at each of T steps and a known
smoothness beta, scaled by U so that signal and noise both have a variance of 1. The estimator is of
the class of Section 4: ReLU, a projection of the inputs, a fully connected aggregation, outputs
within [-U, U], blocks of 2. Width and depth grow by Corollary 1, all of the power of N in the
width; the corollary gives orders only, so the factors are those of ``--width-scale`` and
``--depth-scale`` and not the ones of its proof, whose smallest network is printed. A tenth of the
sample validates and chooses the epoch, so that this is empirical risk minimisation only nearly, and
gradients find no global minimum.

The slope of the logarithm of the mean excess risk on that of N, by least squares, stands beside
-2 beta / (d_in T + 2 beta); its standard error is that of the means over replicates. The rate is an
upper bound for the worst function of a class as N grows, up to (log N)^10. A slope over a few N is
no test of it: a sum of finitely many waves is smooth below its shortest one, waves are not the
worst functions, and optimisation leaves an error that does not fall with N. Beside the network
stand nearest neighbours, N^(2 s / (2 s + d_in T)) of them with s = min(beta, 1), which have the
rate for beta up to 1. The bound of equation (10) with C = 1 at J = I = 1 is checked to lie above
every mean; where N is too small for the theorem, it says nothing.

The last table is of Proposition 2: how often a matrix of standard normal numbers has real
eigenvalues only.
"""

from __future__ import annotations

import argparse
import logging
import math
import time
import warnings
from typing import Any

import numpy as np
from _timing import option_parser, print_machine, print_table, read_options
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from tsrnn.datasets import HolderProcess
from tsrnn.erm import (
    Estimate,
    NetworkSize,
    ParaRNNRegressor,
    excess_risk,
    network_schedule,
    network_size,
    prediction_bound,
    probability_real_spectrum,
    rate_exponent,
)

D_IN = 1
MONTE_CARLO = 20_000


def process_of(beta: float, length: int, seed: int) -> HolderProcess:
    """Of signal and noise variance 1."""
    unscaled = HolderProcess(beta, D_IN, length, random_state=seed)
    return HolderProcess(beta, D_IN, length, U=1 / unscaled.signal_std, random_state=seed)


def size_of(n: int, beta: float, options: argparse.Namespace) -> NetworkSize:
    inputs = D_IN * options.length
    return network_schedule(
        n, beta, D_IN, options.length, inputs / (2 * inputs + 4 * beta),
        width_scale=options.width_scale, depth_scale=options.depth_scale,
    )  # fmt: skip


def network(size: NetworkSize, U: float, options: argparse.Namespace) -> ParaRNNRegressor:
    return ParaRNNRegressor(
        size.width, n_layers=size.depth, nonlinearity="relu", input_projection=True, bound=U,
        learning_rate=options.rate, max_epochs=options.epochs, patience=options.patience,
    )  # fmt: skip


def neighbours(n: int, beta: float, length: int) -> Any:
    """Means of the nearest responses, as many as is best for a smoothness of up to 1."""
    k = max(1, round(n ** rate_exponent(min(beta, 1.0), D_IN, length)))
    return make_pipeline(FunctionTransformer(_as_vectors), KNeighborsRegressor(k))


def _as_vectors(X: np.ndarray) -> np.ndarray:
    return X.reshape(len(X), -1)


def mean_excess(
    estimator: Any, process: HolderProcess, n: int, options: argparse.Namespace
) -> Estimate:
    """Over fresh training samples."""
    return excess_risk(
        estimator, process.mean, process.sample, n_monte_carlo=MONTE_CARLO,
        batch_size=MONTE_CARLO, n_train=n, n_replicates=options.replicates,
        random_state=options.seed,
    ).excess  # fmt: skip


def slope(sizes: list[int], found: list[Estimate]) -> Estimate:
    """Least squares of log means on log N; the error is propagated from those of the means."""
    x = np.log(sizes)
    values, errors = np.array(found).T
    share = (x - x.mean()) / np.square(x - x.mean()).sum()
    error = math.sqrt(np.square(share * errors / values).sum())
    return Estimate(float(share @ np.log(values)), error)


def print_rate(beta: float, options: argparse.Namespace) -> list[list[str]]:
    """Table of one smoothness; rows of slopes."""
    process = process_of(beta, options.length, options.seed)
    U, task = process.holder_norm, (beta, D_IN, options.length, 1, 1)
    rows, ours, theirs = [], [], []
    for n in options.sizes:
        begun = time.perf_counter()
        size = size_of(n, beta, options)
        ours.append(mean_excess(network(size, U, options), process, n, options))
        theirs.append(mean_excess(neighbours(n, beta, options.length), process, n, options))
        bound = prediction_bound(n, *task, bound=U)
        for estimate in (ours[-1], theirs[-1]):
            assert math.log(estimate.value + 3 * estimate.std_error) < bound.log_value
        step = slope(options.sizes[len(ours) - 2 : len(ours)], ours[-2:]) if rows else None
        rows.append([
            str(n), str(size.width), str(size.depth), f"{ours[-1].value:.4f}",
            f"{ours[-1].std_error:.4f}", "" if step is None else f"{step.value:.2f}",
            f"{theirs[-1].value:.4f}", f"{theirs[-1].std_error:.4f}",
            f"10^{bound.log_value / math.log(10):.1f}", "yes" if bound.holds else "no",
            f"{time.perf_counter() - begun:.0f}",
        ])  # fmt: skip
        if options.verbose:
            print(*rows[-1], flush=True)
    print(f"\nbeta = {beta:g}, d_in T = {D_IN * options.length}, U = {U:.1f}, noise variance 1, "
          f"variance of f0(X) 1, {options.replicates} replicates\n")  # fmt: skip
    header = ["N", "width", "depth", "excess risk", "std error", "slope from above",
              "nearest neighbours", "std error", "bound (10)", "theorem applies",
              "seconds"]  # fmt: skip
    print_table(header, rows)
    expected = f"{-rate_exponent(beta, D_IN, options.length):.3f}"
    return [
        [f"{beta:g}", name, f"{found.value:.3f}", f"{found.std_error:.3f}", expected]
        for name, found in (
            ("network", slope(options.sizes, ours)),
            ("nearest neighbours", slope(options.sizes, theirs)),
        )
    ]


def print_theorem(betas: list[float], length: int) -> None:
    """Smallest networks of Theorem 5, and what N they need."""
    rows = []
    for beta in betas:
        size = network_size(beta, D_IN, length, 1, 1)
        larger = max(size.width, size.depth)
        needed = (size.width * size.depth) ** 2 * math.log(larger)
        rows.append([f"{beta:g}", str(size.width), str(size.depth), f"{needed:.1e}"])
    print(f"\nNetwork of Theorem 5 with J = I = 1, d_in T = {D_IN * length}, and "
          "d^2 L^2 log max(d, L), which N is to exceed\n")  # fmt: skip
    print_table(["beta", "width", "depth", "N needed"], rows)


def print_real_spectra(draws: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    rows = []
    for d in (2, 3, 4, 5):
        exact = probability_real_spectrum(d)
        eigenvalues = np.linalg.eigvals(generator.standard_normal((draws, d, d)))
        real = int((eigenvalues.imag == 0).all(-1).sum())
        error = math.sqrt(exact * (1 - exact) / draws)
        gap = (real / draws - exact) / error
        assert abs(gap) < 4, f"d = {d}: the frequency is {gap:.1f} standard errors off"
        rows.append([str(d), f"{exact:.6f}", f"{real / draws:.6f}", f"{error:.6f}", f"{gap:.1f}"])
    print(f"\nReal eigenvalues only, of {draws:,} matrices of standard normal numbers\n")
    print_table(["size", "Proposition 2", "frequency", "std error", "gap / std error"], rows)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--betas", type=float, nargs="+", default=[0.5, 1.0, 2.0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 400, 1600])
    parser.add_argument("--length", type=int, default=2, help="T")
    parser.add_argument("--replicates", type=int, default=3)
    parser.add_argument("--width-scale", type=float, default=1.0)
    parser.add_argument("--depth-scale", type=float, default=0.2)
    parser.add_argument("--rate", type=float, default=5e-3)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--patience", type=int, default=15)
    parser.add_argument("--draws", type=int, default=200_000, help="of matrices")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="rows as they are found")
    options = read_options(parser, betas=[1.0], sizes=[100], replicates=2, epochs=1, draws=1000)
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module="lightning")
    print_machine()
    print_theorem(options.betas, options.length)
    slopes = [row for beta in options.betas for row in print_rate(beta, options)]
    print("\nSlope of log excess risk on log N\n")
    print_table(["beta", "estimator", "slope", "std error", "rate of Corollary 1"], slopes)
    print_real_spectra(options.draws, options.seed)


if __name__ == "__main__":
    main()
