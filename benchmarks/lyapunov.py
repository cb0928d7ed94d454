"""Largest Lyapunov exponents against known ones, their intervals, and passes of Newton's method.

Three tables. (1) Maps and recurrences whose exponent is known. (2) How often intervals of 95
percent cover it, over replications of T steps. (3) Passes that Newton's method takes, on every step
("newton") and on the boundaries of chunks ("shooting"), for random blocks of tanh units, against
their exponent; ``--figure PATH`` draws them. Passes are counted up to a limit far above the 12
after which the engines run in time order. Blocks are told apart by the spectral radius of their
matrix: below 1 they contract at the state zero, too, which the guesses of both engines are near.
"""

from __future__ import annotations

import io
import itertools
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from _timing import option_parser, print_machine, print_table, read_options
from torch import Tensor

from tsrnn.interpret import LyapunovExponents, lyapunov_exponent
from tsrnn.kernels import _time_parallel, recurrence
from tsrnn.kernels._newton import iterate
from tsrnn.layers import LRU, ParaRNN

HENON = 0.41922  # published to this many digits for a = 1.4, b = 0.3
TENT = 0.3  # where the skew tent map has its peak
GAINS = np.geomspace(0.25, 6.0, 18)
NOISE = 0.1  # standard deviation of inputs, weak, so that blocks of large gain move by themselves
# Rows of a block, steps, draws of each gain. A dense block costs n^3 a step and pass.
SIZES = ((2, 2048, 12), (8, 2048, 12), (32, 512, 3))
LIMIT = 64  # passes counted; at T = 2048 there are 32 chunks
EDGES = (-math.inf, -1.0, -0.3, -0.1, 0.0, math.inf)


def logistic(r: float) -> Callable[[Tensor], Tensor]:
    return lambda h: r * h * (1 - h)


def henon(s: Tensor) -> Tensor:
    return torch.stack([1 - 1.4 * s[0] ** 2 + s[1], 0.3 * s[0]])


def skew_tent(h: Tensor) -> Tensor:
    return torch.where(h < TENT, h / TENT, (1 - h) / (1 - TENT))


def stretched(h: Tensor, u: Tensor) -> Tensor:
    """Linear recurrence whose factor depends on the data: local rates are u - 0.1."""
    return torch.exp(u - 0.1) * h + 1


def cycle_exponent(r: float) -> float:
    """Exponent of the logistic map with a stable cycle, by an orbit of long doubles."""
    factor, h, total = np.longdouble(r), np.longdouble(0.3), np.longdouble(0.0)
    for i in range(20_000):
        h = factor * h * (1 - h)
        total += np.log(abs(factor * (1 - 2 * h))) * (i >= 10_000)
    return float(total) / 10_000


def known_exponents(n_steps: int) -> None:
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(5, 5, generator=generator, dtype=torch.float64) / 4
    radius = torch.linalg.eigvals(matrix).abs().max().item()
    u = 0.3 * torch.randn(n_steps, 1, generator=generator, dtype=torch.float64)
    lru = LRU(1, 8, state_units=16, dtype=torch.float64)
    lru.reset_parameters(generator)
    largest = max(values.abs().max().item() for values in lru.eigenvalues())

    def turned(h: Tensor, x: Tensor) -> Tensor:
        return torch.exp(x) * (matrix @ h)

    entropy = -TENT * math.log(TENT) - (1 - TENT) * math.log(1 - TENT)
    burn_in = n_steps // 10
    cases: list[tuple[str, float, Callable[[], LyapunovExponents]]] = [
        ("logistic, r = 4", math.log(2), lambda: autonomous(logistic(4.0), [0.3], n_steps)),
        ("logistic, r = 3.5", cycle_exponent(3.5),
         lambda: autonomous(logistic(3.5), [0.3], n_steps)),
        ("skew tent", entropy, lambda: autonomous(skew_tent, [0.37], n_steps)),
        ("Henon", HENON, lambda: autonomous(henon, [0.1, 0.1], n_steps)),
        ("linear, 5 x 5", math.log(radius),
         lambda: autonomous(lambda h: matrix @ h, np.ones(5), n_steps)),
        ("the same, stretched by data", math.log(radius) + u[burn_in:].mean().item(),
         lambda: lyapunov_exponent(turned, u, state=np.ones(5))),
        ("linear recurrent units", math.log(largest), lambda: lyapunov_exponent(lru)),
    ]  # fmt: skip
    rows = []
    for name, truth, estimate in cases:
        start = time.perf_counter()
        result = estimate()
        seconds = time.perf_counter() - start
        error = abs(result.exponent - truth) / abs(truth)
        numbers = truth, result.exponent, result.standard_error
        rows.append([name, *(f"{n:.5f}" for n in numbers), f"{100 * error:.3f}", f"{seconds:.1f}"])
    print(f"Exponents known and estimated from {n_steps} steps, a tenth of them burn-in\n")
    header = ["recurrence", "known", "estimate", "standard error", "error, percent", "seconds"]
    print_table(header, rows)


def autonomous(
    function: Callable[[Tensor], Tensor], state: Sequence[float] | np.ndarray, n_steps: int
) -> LyapunovExponents:
    return lyapunov_exponent(function, state=state, n_steps=n_steps)


def autoregression(phi: float, n_steps: int, rng: np.random.Generator) -> np.ndarray:
    """Stationary series of mean zero, (T, 1)."""
    u = np.empty(n_steps)
    u[0] = 0.3 * rng.normal() / math.sqrt(1 - phi**2)
    for t in range(1, n_steps):
        u[t] = phi * u[t - 1] + 0.3 * rng.normal()
    return u[:, None]


def coverage(replications: int, n_steps: int) -> None:
    rng = np.random.default_rng(0)
    entropy = -TENT * math.log(TENT) - (1 - TENT) * math.log(1 - TENT)
    cases: list[tuple[str, float, Callable[[], LyapunovExponents]]] = [
        ("skew tent", entropy, lambda: autonomous(skew_tent, rng.uniform(size=1), n_steps)),
        *(
            (f"data, AR({phi})", -0.1, lambda phi=phi: lyapunov_exponent(
                stretched, autoregression(phi, n_steps, rng), state=[1.0]
            ))
            for phi in (-0.5, 0.0, 0.5, 0.8)
        ),
        ("Henon", HENON, lambda: autonomous(henon, rng.uniform(-0.1, 0.1, 2), n_steps)),
        ("logistic, r = 4", math.log(2),
         lambda: autonomous(logistic(4.0), rng.uniform(size=1), n_steps)),
    ]  # fmt: skip
    rows = []
    for name, truth, estimate in cases:
        results = [estimate() for _ in range(replications)]
        exponents = np.array([result.exponent for result in results])
        errors = np.mean([result.standard_error for result in results])
        ends = np.array([result.conf_int() for result in results])
        covered = ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean()
        bandwidth = int(np.median([result.bandwidth for result in results]))
        rows.append([name, f"{truth:.5f}", f"{exponents.mean() - truth:.5f}",
                     f"{exponents.std():.5f}", f"{errors:.5f}", bandwidth,
                     f"{100 * covered:.1f}"])  # fmt: skip
    print(f"\nIntervals of 95 percent, {replications} replications of {n_steps} steps\n")
    header = ["recurrence", "known", "bias", "standard deviation", "mean standard error",
              "bandwidth", "coverage, percent"]  # fmt: skip
    print_table(header, rows)


class Point(NamedTuple):
    """A random block and passes of an engine, LIMIT + 1 where there were more."""

    size: int
    engine: str
    exponent: float
    rests: bool  # spectral radius below 1
    passes: int


def random_blocks(noise: float) -> list[Point]:
    """Blocks of tanh units, entries normal with variance gain^2 / n, driven by noise."""
    points = []
    for size, steps, draws in SIZES:
        generator = torch.Generator().manual_seed(size)
        for gain in np.repeat(GAINS, draws):
            layer = ParaRNN(1, size, size, bias=False, dtype=torch.float64)
            weight_ih, weight_hh, _ = layer.weights(0)
            weight_ih.data.normal_(generator=generator)
            weight_hh.data.normal_(0, gain / size**0.5, generator=generator)
            (matrix,) = layer.recurrent_blocks()
            rests = bool(torch.linalg.eigvals(matrix).abs().max() < 1)
            x = noise * torch.randn(1, steps, 1, generator=generator, dtype=torch.float64)
            exponent = lyapunov_exponent(layer, x).exponent
            passes = engine_passes(layer, x)
            points += [Point(size, name, exponent, rests, k) for name, k in passes.items()]
    return points


@torch.no_grad()
def engine_passes(layer: ParaRNN, x: Tensor) -> dict[str, int]:
    """Passes of every engine that runs the block."""
    size = layer.block_size
    weight_ih, weight_hh, _ = layer.weights(0)
    inputs, params = (x @ weight_ih.T).unflatten(-1, (size, 1)), weight_hh.reshape(-1, 1)
    _, newton = iterate(layer.cell, inputs, params, x.new_zeros(1, size, 1), LIMIT)
    results = {"newton": newton}
    if size <= 8:
        with patch.object(_time_parallel, "MAX_PASSES", LIMIT):
            *_, results["shooting"] = recurrence(
                layer.cell, inputs, params, engine="shooting", full_output=True
            )
    return {
        name: LIMIT + 1 if bool(result.fell_back) else int(result.passes)
        for name, result in results.items()
    }


def passes_by_exponent(points: Sequence[Point], heading: str) -> None:
    rows = []
    for (low, high), rests in itertools.product(itertools.pairwise(EDGES), (True, False)):
        row: list[object] = [f"{low:g} to {high:g}", "below 1" if rests else "above 1"]
        chosen = [p for p in points if p.rests == rests and low <= p.exponent < high]
        for engine in ("newton", "shooting"):
            passes = [p.passes for p in chosen if p.engine == engine]
            late = 100 * np.mean(np.array(passes) > _time_parallel.MAX_PASSES) if passes else 0
            row += (
                [len(passes), shown(np.median(passes)), shown(max(passes)), f"{late:.0f}"]
                if passes
                else ["", "", "", ""]
            )
        if chosen:
            rows.append(row)
    print(f"\n{heading}\n")
    print_table(["exponent", "radius of W", "newton: blocks", "median", "most", "late, percent",
                 "shooting: blocks", "median", "most", "late, percent"], rows)  # fmt: skip


def shown(passes: float) -> str:
    return f"> {LIMIT}" if passes > LIMIT else f"{passes:g}"


def draw(points: Sequence[Point], path: Path) -> None:
    """Passes of every block against its exponent, an engine a panel."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D
    from PIL import Image

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True, layout="constrained")
    styles = {2: ("o", "tab:blue"), 8: ("^", "tab:orange"), 32: ("s", "tab:green")}
    jitter = np.random.default_rng(0)
    for ax, engine in zip(axes, ("newton", "shooting"), strict=True):
        for p in points:
            if p.engine != engine or not -2 <= p.exponent <= 0.6:
                continue
            marker, colour = styles[p.size]
            # Moved a little up or down: counts are integers and would hide each other.
            height = min(p.passes, LIMIT) * 1.06 ** jitter.uniform(-1, 1)
            face = colour if p.rests else "none"
            ax.plot(p.exponent, height, marker, ms=4, mfc=face, mec=colour, mew=0.7, alpha=0.7)
        ax.axvline(0, color="0.3", lw=0.8)
        ax.axhline(_time_parallel.MAX_PASSES, color="0.3", lw=0.8, ls=":")
        ax.set(title=f'engine="{engine}"', xlabel="largest Lyapunov exponent, a step")
        ax.set(yscale="log", xlim=(-2.05, 0.65), ylim=(0.8, 90))
    ticks = [1, 2, 4, 8, 12, 16, 32, LIMIT]
    labels = [*map(str, ticks[:-1]), f"{LIMIT} +"]
    axes[0].set(ylabel="passes until converged")
    axes[0].set_yticks(ticks, labels)
    axes[0].minorticks_off()
    axes[1].text(-2, 12.8, "engines give up and run in time order", size=8, color="0.3")
    handles = [
        Line2D([], [], marker=marker, color=colour, ls="", ms=5, label=f"{size} x {size}")
        for size, (marker, colour) in styles.items()
    ] + [
        Line2D([], [], marker="o", color="0.4", ls="", ms=5, label="radius of W below 1"),
        Line2D([], [], marker="o", color="0.4", mfc="none", ls="", ms=5, label="above 1"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=110)
    # A palette takes a third of the bytes.
    Image.open(picture).convert("RGB").quantize(64).save(path, optimize=True)
    print(f"\nwritten to {path}")


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--steps", type=int, default=20_000, help="of recurrences that are known")
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--length", type=int, default=1000, help="steps of a replication")
    parser.add_argument("--noise", type=float, default=NOISE, help="in the inputs of blocks")
    parser.add_argument("--figure", type=Path, help="where to draw passes, a PNG file")
    arguments = read_options(parser, steps=1000, replications=3, length=200)
    torch.set_num_threads(1)
    print_machine()
    print()
    known_exponents(arguments.steps)
    coverage(arguments.replications, arguments.length)
    if arguments.smoke:
        return
    points = random_blocks(arguments.noise)
    print(f"\nPasses of random blocks until converged, counted up to {LIMIT}; late: more than "
          f"{_time_parallel.MAX_PASSES}")  # fmt: skip
    for size, steps, _ in SIZES:
        of_size = [p for p in points if p.size == size]
        passes_by_exponent(of_size, f"Blocks of {size} x {size}, T = {steps}")
    passes_by_exponent(points, "All blocks")
    if arguments.figure is not None:
        draw(points, arguments.figure)


if __name__ == "__main__":
    main()
