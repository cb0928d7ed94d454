"""Linear recurrences that store a sequence, and a perceptron that reads it (Orvieto et al., 2023).

``sparse``: their Figures 6 to 8. Inputs of 4096 steps, combinations of 32 Haar wavelets, are
reconstructed from the state of a random linear recurrence with N units and B = (1, ..., 1).
``vandermonde``: their Figures 2 to 5. Digits of MNIST, 784 pixels one after the other, are
reconstructed from the last state, for eigenvalues on rings and for roots of unity; without
``--mnist DIR`` the images are generated. Runs are kept, see `_runs.py`.
``volterra``: their Figure 9. A perceptron with two inner layers of 512 reads the trajectories of
the controlled Lotka-Volterra equations from the state of a random recurrence of 128 units,
(r_min, r_max) = (0.99, 1), at every one of 2048 steps. What the paper leaves open stands in
the constants below.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from _runs import read_result, read_run_options, run_all
from _timing import option_parser, print_table
from torch import nn

from tsrnn.datasets import load_mnist, lotka_volterra
from tsrnn.interpret import reconstruct_input
from tsrnn.kernels import cells, projected_recurrence
from tsrnn.layers import LRU

PARTS = ("sparse", "vandermonde", "volterra")
LENGTH, FUNCTIONS = 4096, 32
SPARSE_UNITS = (32, 64, 128, 256)
CONDITION_LENGTH, CONDITION_UNITS, CONDITION_FUNCTIONS = 512, (64, 128, 256, 512), (8, 32, 128, 512)
PIXELS, IMAGES, SAMPLINGS = 784, 10_000, 10
RINGS, VANDERMONDE_UNITS = (0.0, 0.5, 0.9, 0.99, 0.999), (128, 256, 512, 784, 1024)
QUARTERS = ("first", "second", "third", "last")  # of the image, in the order of its rows
TRAJECTORIES, TRAINING, WIDTH, UNITS = 1024, 717, 512, 128
BATCH, SAMPLED = 512, 512  # steps of an update; of every trajectory, at random, for training
DAMPING = 1e-4  # of the variances of states, relative to the largest


def haar(length: int, count: int) -> np.ndarray:
    """The `count` coarsest orthonormal Haar wavelets (count, length), the constant first."""
    functions = [np.full(length, length**-0.5)]
    for scale in range(length.bit_length()):
        support = length >> scale
        for start in range(0, length if len(functions) < count else 0, max(support, 1)):
            wavelet = np.zeros(length)
            wavelet[start : start + support // 2] = support**-0.5
            wavelet[start + support // 2 : start + support] = -(support**-0.5)
            functions.append(wavelet)
    basis = np.array(functions[:count])
    assert np.allclose(basis @ basis.T, np.eye(count))
    return basis


def random_recurrence(units: int, r_min: float, seed: int) -> LRU:
    """One input, B = (1, ..., 1) without normalisation, in float64."""
    layer = LRU(1, 1, state_units=units, r_min=r_min, mlp=False, trainable_recurrence=False,
                dtype=torch.float64)  # fmt: skip
    layer.reset_parameters(torch.Generator().manual_seed(seed))
    layer.gamma_log_l0.zero_()
    layer.B_l0.copy_(torch.arange(2 * units)[:, None] < units)
    return layer


def all_states(layer: LRU, x: np.ndarray) -> np.ndarray:
    """Complex states (n, T, N) at every step of inputs (n, T)."""
    states = states_of(layer, torch.from_numpy(x)[:, :, None]).numpy()
    return states[..., : layer.state_units] + 1j * states[..., layer.state_units :]


def as_real(matrix: np.ndarray) -> np.ndarray:
    return np.concatenate([matrix.real, matrix.imag])


def sparse_curves(units: int, r_min: float, steps: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Ranks and errors after each of `steps`, one random input."""
    layer, basis = random_recurrence(units, r_min, seed), haar(LENGTH, FUNCTIONS)
    alpha = np.random.default_rng(seed).standard_normal(FUNCTIONS)
    signal = alpha @ basis
    omega = all_states(layer, basis)  # Omega_k is the response to the basis functions
    state = all_states(layer, signal[None])[0]
    powers = layer.eigenvalues()[0].numpy()[:, None] ** np.arange(LENGTH)
    curves = {name: np.empty(len(steps)) for name in ("V", "Psi", "Omega", "complex", "real")}
    for i, k in enumerate(steps):
        matrix, x, functions = omega[:, k - 1].T, state[k - 1], basis[:, :k].T
        # A singular value decomposition of V_k takes longer than all the rest.
        curves["V"][i] = np.linalg.matrix_rank(powers[:, :k]) if i % 6 == 5 and not seed else np.nan
        curves["Psi"][i] = np.linalg.matrix_rank(functions)
        curves["Omega"][i] = np.linalg.matrix_rank(matrix)
        estimates = {
            "complex": (np.linalg.pinv(matrix) @ x).real,
            "real": np.linalg.pinv(as_real(matrix)) @ as_real(x),
        }
        for name, coefficients in estimates.items():
            error = functions @ coefficients - signal[:k]
            curves[name][i] = np.sqrt(np.mean(error**2) / np.mean(signal[:k] ** 2))
    _check_package(layer, basis, signal, as_real(omega[:, -1].T))
    return curves


def _check_package(layer: LRU, basis: np.ndarray, signal: np.ndarray, matrix: np.ndarray) -> None:
    """`reconstruct_input` inverts this matrix, and finds the input where that can be done."""
    h_n = layer(torch.from_numpy(signal)[None, :, None])[1]
    reconstruction = reconstruct_input(layer, h_n, LENGTH, basis=basis[:, :, None])
    condition = np.linalg.cond(matrix)
    if condition < 1e8:
        assert np.isclose(reconstruction.condition_number, condition, rtol=1e-5)
        assert np.abs(reconstruction.inputs[0, :, 0] - signal).max() < 1e-6


def sparse(seeds: int) -> None:
    steps = np.unique(np.linspace(LENGTH / 24, LENGTH, 24).astype(int))
    rows = []
    for r_min in (0.95, 0.99):
        for units in SPARSE_UNITS:
            start = time.perf_counter()
            every = [sparse_curves(units, r_min, steps, seed) for seed in range(seeds)]
            curves = {name: np.median([c[name] for c in every], 0) for name in every[0]}
            curves["V"] = every[0]["V"]
            ranks = [f"{curves[name][-1]:.0f}" for name in ("V", "Psi", "Omega")]
            errors = [f"{curves[name].max():.1e}" for name in ("complex", "real")]
            ends = [f"{curves[name][-1]:.1e}" for name in ("complex", "real")]
            seconds = f"{time.perf_counter() - start:.0f}"
            rows.append([r_min, units, *ranks, *errors, *ends, seconds])
    print(f"\nReconstruction of u_1..u_k from x_k, L = {LENGTH}, P = {FUNCTIONS} Haar wavelets: "
          f"relative error, median of {seeds} seeds")  # fmt: skip
    print_table(
        ["r_min", "N", "rank V_L", "rank Psi_L", "rank Omega_L", "largest over k", "real form",
         "k = L", "real form", "seconds"],
        rows,
    )  # fmt: skip
    conditions = {r_min: condition_numbers(r_min, seeds) for r_min in (0.0, 0.9, 0.99)}
    print(f"\nlog10 of the condition number of Omega* Omega, L = {CONDITION_LENGTH}, "
          f"mean of {seeds} seeds")  # fmt: skip
    print_table(
        ["r_min", "N", *(f"P = {count}" for count in CONDITION_FUNCTIONS)],
        [[r_min, units, *("" if np.isnan(v) else f"{v:.1f}" for v in row)]
         for r_min, table in conditions.items()
         for units, row in zip(CONDITION_UNITS, table, strict=True)],
    )  # fmt: skip


def condition_numbers(r_min: float, seeds: int) -> np.ndarray:
    """log10 for N down and P across; what lies beyond float64 is about 32."""
    table = np.zeros((len(CONDITION_UNITS), len(CONDITION_FUNCTIONS)))
    for seed in range(seeds):
        for i, units in enumerate(CONDITION_UNITS):
            layer = random_recurrence(units, r_min, seed)
            eigenvalues = layer.eigenvalues()[0].numpy()[:, None]
            matrix = eigenvalues ** np.arange(CONDITION_LENGTH - 1, -1, -1)
            for j, count in enumerate(CONDITION_FUNCTIONS):
                if count > units:
                    table[i, j] = np.nan
                    continue
                values = np.linalg.svd(matrix @ haar(CONDITION_LENGTH, count).T, compute_uv=False)
                table[i, j] += 2 * np.log10(values[0] / values[-1]) / seeds
    return table


def images_of(mnist: Path | None, count: int) -> np.ndarray:
    """Test digits (count, 784) in [0, 1]; without a folder smooth blots, dark at the border."""
    if mnist:
        pixels = load_mnist("test", data_home=mnist).images[:count].reshape(-1, PIXELS)
        return pixels.astype(np.float64) / 255
    rng, place = np.random.default_rng(0), np.arange(28)
    images = np.zeros((count, 28, 28))
    for _ in range(3):
        centres, width = rng.uniform(8, 20, (2, count, 1)), rng.uniform(1.5, 4, (count, 1))
        row, column = np.exp(-0.5 * ((place - centres) / width) ** 2)
        images += row[:, :, None] * column[:, None]
    return np.minimum(images, 1).reshape(-1, PIXELS)


def eigenvalues_of(ring: float | str, units: int, seed: int) -> np.ndarray:
    if ring == "roots":
        return np.exp(2j * np.pi * np.arange(units) / units)
    return random_recurrence(units, ring, seed).eigenvalues()[0].numpy()


def read_back(eigenvalues: np.ndarray, images: np.ndarray) -> dict[str, tuple[float, np.ndarray]]:
    """Condition number of V* V, and images read from the last state by the two inverses.

    The state is that of single precision, in which networks run; singular values that its rounding
    hides are left out.
    """
    V = eigenvalues[:, None] ** np.arange(PIXELS - 1, -1, -1)
    x = (images.astype(np.float32) @ V.T.astype(np.complex64)).astype(np.complex128)
    results = {}
    for name, matrix, state in (("complex", V, x), ("real", as_real(V), as_real(x.T).T)):
        left, values, right = np.linalg.svd(matrix, full_matrices=False)
        kept = values > max(matrix.shape) * np.finfo(np.float32).eps * values[0]
        inverse = (right[kept].conj().T / values[kept]) @ left[:, kept].conj().T
        smallest = values[-1] if len(values) == PIXELS else 0.0  # fewer equations than pixels
        condition = (values[0] / smallest) ** 2 if smallest else np.inf
        results[name] = condition, (state @ inverse.T).real
    return results


def vandermonde_run(key: dict, images: np.ndarray) -> dict:
    """Errors over all images and samplings, of the whole and by quarter of the sequence."""
    samplings = 1 if key["r_min"] == "roots" else key["samplings"]
    square, squares, conditions = np.mean(images**2), {}, {}
    for seed in range(samplings):
        for name, (condition, read) in read_back(
            eigenvalues_of(key["r_min"], key["N"], seed), images
        ).items():
            error = np.mean((read - images) ** 2, 0).reshape(len(QUARTERS), -1).mean(1)
            squares.setdefault(name, []).append(error)
            conditions.setdefault(name, []).append(min(np.log10(condition), 99.0))
    result = {}
    for name, errors in squares.items():
        mean = np.mean(errors, 0)
        result[name] = {
            "mean squared error": float(mean.mean()),
            "relative error": float(np.sqrt(mean.mean() / square)),
            "by quarter": [float(np.sqrt(value / square)) for value in mean],
            "log10 condition": float(np.mean(conditions[name])),
        }
    return result


def vandermonde(options: argparse.Namespace) -> None:
    data = "mnist" if options.mnist else "generated"
    keys = [
        {"part": "vandermonde", "data": data, "r_min": ring, "N": units,
         "images": options.images, "samplings": options.samplings}
        for ring in (*RINGS, "roots") for units in VANDERMONDE_UNITS
    ]  # fmt: skip
    if not options.print_only:
        images = images_of(options.mnist, options.images)
        run_all(options, keys, lambda key: vandermonde_run(key, images))
    rows = []
    for ring in (*RINGS, "roots"):
        results = [read_result(options.results, key) for key in keys if key["r_min"] == ring]
        for name in ("complex", "real"):
            errors = ["" if r is None else f"{r[name]['relative error']:.2g}" for r in results]
            rows.append([ring, name, *errors])
    print(f"\n{data} from the last state: root mean squared error over that of the pixels, "
          f"{options.images} images, {options.samplings} samplings\n")  # fmt: skip
    print_table(["r_min", "inverse", *(f"N = {units}" for units in VANDERMONDE_UNITS)], rows)


def volterra(seed: int, updates: int) -> None:
    start = time.perf_counter()
    u, z = lotka_volterra(TRAJECTORIES, random_state=seed)
    layer = LRU(2, 1, state_units=UNITS, r_min=0.99, mlp=False, trainable_recurrence=False)
    layer.reset_parameters(torch.Generator().manual_seed(seed))
    x = torch.from_numpy(np.stack([np.ones_like(u), u], -1)).float()  # Proposition 7: 1 tells time
    centre, scale = z[:TRAINING].mean((0, 1)), z[:TRAINING].std((0, 1))
    y = torch.from_numpy((z - centre) / scale).float()
    generator = torch.Generator().manual_seed(seed)
    steps = torch.randint(y.shape[1], (TRAINING, SAMPLED, 1), generator=generator)
    known = torch.take_along_dim(states_of(layer, x[:TRAINING]), steps, 1).flatten(0, 1)
    answers = torch.take_along_dim(y[:TRAINING], steps, 1).flatten(0, 1)
    readout = whitening(known)
    known, unseen = readout(known), readout(states_of(layer, x[TRAINING:]))
    truth = y[TRAINING:]
    mlp = perceptron(seed)
    train(mlp, known, answers, updates, generator)
    readers = {"linear map": least_squares(known, answers), "perceptron": mlp}
    with torch.no_grad():
        forecasts = {name: reader(unseen) for name, reader in readers.items()}
    forecasts = {"mean": torch.zeros_like(truth)} | forecasts
    print(f"\nLotka-Volterra, {len(truth)} trajectories not trained on, seed {seed}, "
          f"{updates} updates of {BATCH} steps, {time.perf_counter() - start:.0f} s: "
          "root mean squared error over standard deviation")  # fmt: skip
    print_table(
        ["read by", "z1", "z2", "95th percentile of trajectories"],
        [[name, *errors_of(forecast - truth)] for name, forecast in forecasts.items()],
    )


def states_of(layer: LRU, x: torch.Tensor) -> torch.Tensor:
    """Real and imaginary parts (n, T, 2 N) at every step of inputs (n, T, in)."""
    weights, (eigenvalues,) = layer.input_weights(), layer.eigenvalues()
    weight = torch.cat([weights.real, weights.imag])
    params = torch.stack([eigenvalues.real, eigenvalues.imag])
    initial = x.new_zeros(len(x), 2, layer.state_units)
    return projected_recurrence(cells.lru(), x, weight, None, params, initial)[0].flatten(-2)


def errors_of(error: torch.Tensor) -> list[str]:
    by_variable = error.square().mean((0, 1)).sqrt().tolist()
    by_trajectory = error.square().mean((1, 2)).sqrt().quantile(0.95).item()
    return [f"{value:.4f}" for value in (*by_variable, by_trajectory)]


def perceptron(seed: int) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Linear(2 * UNITS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(),
            nn.Linear(WIDTH, 2),
        )  # fmt: skip


def whitening(x: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """A readout C and a constant for states (n, 2 N), which are collinear: nearly uncorrelated."""
    mean, (_, values, right) = x.mean(0), torch.linalg.svd((x - x.mean(0)).T.cov().double())
    damped = values + DAMPING * values[0]  # what is smaller is mostly rounding
    C = (right / damped.sqrt()[:, None]).float()
    return lambda states: (states - mean) @ C.T


def least_squares(x: torch.Tensor, y: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """The best linear reader of states (n, 2 N) of mean zero."""
    weight, constant = torch.linalg.lstsq(x, y - y.mean(0)).solution, y.mean(0)
    return lambda states: states @ weight + constant


def train(
    mlp: nn.Module, x: torch.Tensor, y: torch.Tensor, updates: int, generator: torch.Generator
) -> None:
    """Adam, the learning rate rising and falling, on random steps of random trajectories."""
    optimiser = torch.optim.Adam(mlp.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=updates)
    for update in range(updates):
        rows = torch.randint(len(x), (BATCH,), generator=generator)
        loss = (mlp(x[rows]) - y[rows]).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if update % 500 == 0:
            print(f"update {update}: {loss.item():.5f}", file=sys.stderr, flush=True)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("parts", nargs="*", default=PARTS, metavar="part", help=", ".join(PARTS))
    parser.add_argument("--seeds", type=int, default=3, help="of the reconstruction")
    parser.add_argument("--updates", type=int, default=4000, help="of the perceptron")
    parser.add_argument("--mnist", type=Path, metavar="DIR", help="see tsrnn.datasets.load_mnist")
    parser.add_argument("--images", type=int, default=IMAGES, help="of vandermonde")
    parser.add_argument("--samplings", type=int, default=SAMPLINGS, help="of vandermonde")
    options = read_run_options(parser, "lru", threads=None)
    # With "choices", argparse of Python 3.11 refuses a default of several.
    if wrong := sorted(set(options.parts) - set(PARTS)):
        parser.error(f"parts are {', '.join(PARTS)}; got {', '.join(wrong)}")
    if "sparse" in options.parts and not options.print_only:
        sparse(options.seeds)
    if "vandermonde" in options.parts:
        vandermonde(options)
    if "volterra" in options.parts and not options.print_only:
        volterra(0, options.updates)


if __name__ == "__main__":
    main()
