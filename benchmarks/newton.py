"""How Newton's method converges: on every step, as in Danieli et al. (2025), and on chunks.

Six tables. (1) Their appendix A, Figure 4 on the left: the residual after each iteration for cells
drawn as they initialise them. (2) The error that three fixed iterations leave, as their
implementation runs, when recurrent weights are larger, beside the engines of this package, which
iterate until the residual is at rounding and run in time order what does not get there. (3) Passes
that the two methods take on the same 2 x 2 blocks. (4) Passes with Jacobians of which a structure
leaves entries out, quasi-Newton. (5) Figure 4 on the right: the residual on cells before and after
training on the tasks of `tasks.py`, beside their largest Lyapunov exponent; runs of minutes, whose
results are kept. (6) Figure 9: peak memory of a forward and backward pass by the number of steps
and of units, above the inputs, which are there. What a fixed number of iterations leaves is that of
the private `iterate`, of which the engine "newton" asks as many as it needs.
"""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

import numpy as np
import tasks
import torch
from _runs import Key, read_result, read_run_options, run_all
from _timing import option_parser, peak_bytes, print_table
from torch import Tensor, nn

from tsrnn.interpret import lyapunov_exponent
from tsrnn.kernels import Cell, cells, recurrence
from tsrnn.kernels._newton import iterate
from tsrnn.layers import CellStack

CELLS = {"GRU": cells.newton_gru(), "LSTM": cells.newton_lstm()}
UNITS = 256
TASKS = ("parity", "cycle", "keep 5th", "copy")
MODELS = ("GRU", "LSTM", "GRU 2x2", "LSTM 2x2")
SEQUENCES, LENGTHS = 8, (128, 512, 2048)  # of a batch, as in Figure 4: the largest residual counts
MOST = 12  # iterations
ENGINES = ("sequential", "shooting", "newton")


def draw(cell: Cell, steps: int, scale: float, units: int = UNITS) -> tuple[Tensor, Tensor]:
    """Standard normal inputs, recurrent weights normal with a standard deviation."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(1, steps, cell.m, units, generator=generator)
    return inputs, scale * torch.randn(cell.p, units, generator=generator)


def residual(cell: Cell, inputs: Tensor, params: Tensor, passes: int) -> float:
    """Largest residual after some iterations from zero states before the first step."""
    initial = inputs.new_zeros(len(inputs), cell.n, inputs.shape[3])
    _, convergence = iterate(cell, inputs, params, initial, passes)
    return convergence.residual.nan_to_num(nan=torch.inf).max().item()


def at_initialisation() -> None:
    """Weights normal with variance 1 / d for d = 256 units, clipped to 0.5 (appendix C.1)."""
    rows = []
    for name, cell in CELLS.items():
        for steps in (2**9, 2**11, 2**13):
            inputs, params = draw(cell, steps, UNITS**-0.5)
            params = params.clamp(-0.5, 0.5)
            residuals = [f"{residual(cell, inputs, params, k):.0e}" for k in range(6)]
            rows.append([name, steps, *residuals])
    print("Largest residual after k iterations, freshly initialised cells, float32\n")
    print_table(["cell", "T", *(f"k = {k}" for k in range(6))], rows)


def three_iterations() -> None:
    rows = []
    for name, cell in CELLS.items():
        for scale in (0.5, 1.0, 2.0, 4.0):
            inputs, params = draw(cell, 1024, scale)
            exact, _ = recurrence(cell, inputs, params, engine="sequential")
            initial = inputs.new_zeros(1, cell.n, UNITS)
            fixed, _ = iterate(cell, inputs, params, initial, 3)
            row = [name, scale, error(fixed, exact)]
            for engine in ("newton", "shooting"):
                states, _, convergence = recurrence(
                    cell, inputs, params, engine=engine, full_output=True
                )
                passes = f"{int(convergence.passes.median())} / {int(convergence.passes.max())}"
                row += [error(states, exact), passes, int(convergence.fell_back.sum())]
            rows.append(row)
    print("\nLargest error at T = 1024, float32, 256 units: three fixed iterations; then passes")
    print("(median / most) and units run in time order of the engines\n")
    header = ["cell", "scale", "three iterations", "newton", "passes", "in time order",
              "shooting", "passes", "in time order"]  # fmt: skip
    print_table(header, rows)


def error(states: Tensor, exact: Tensor) -> str:
    """Largest difference."""
    return f"{(states - exact).abs().max().item():.0e}"


def passes_of_blocks() -> None:
    cell = cells.para_rnn(2)
    rows = []
    for scale in (0.5, 1.0, 1.5):
        inputs, params = draw(cell, 2048, scale)
        row: list[object] = [scale]
        for engine in ("shooting", "newton"):
            *_, convergence = recurrence(cell, inputs, params, engine=engine, full_output=True)
            kept = convergence.passes[~convergence.fell_back]
            row += [f"{int(kept.median())} / {int(kept.max())}", f"{len(kept)} of {UNITS}"]
        rows.append(row)
    print("\nPasses (median / most of the blocks that converged) on 256 random 2 x 2 blocks, tanh,")
    print("T = 2048, float32\n")
    print_table(["scale", "shooting", "converged", "newton", "converged"], rows)


def structures() -> None:
    """Passes with the whole Jacobian, parts of it, and its diagonal."""
    cases = (
        ("GRU, 4 x 4", cells.para_gru(4), ("dense", ((0, 1), (2, 3)), "diagonal")),
        ("LSTM, 2 x 2", cells.newton_lstm(2), ("dense", ((0, 2), (1, 3)), "diagonal")),
        ("GRU, 32 x 32", cells.para_gru(32), ("dense", "diagonal")),
    )
    rows = []
    for name, whole, kinds in cases:
        for scale in (0.5, 1.0, 2.0):
            # Matrices whose spectral radius does not depend on their size.
            size = cells.newton_lstm(2).n_outputs if "LSTM" in name else whole.n
            inputs, params = draw(whole, 256, scale / size**0.5, 256 // size)
            exact, _ = recurrence(whole, inputs, params)
            for structure in kinds:
                cell = dataclasses.replace(whole, structure=structure)
                states, _, convergence = recurrence(
                    cell, inputs, params, engine="newton", full_output=True
                )
                passes = convergence.passes
                words = structure if isinstance(structure, str) else "pairs"
                rows.append([
                    name, scale, words, f"{int(passes.median())} / {int(passes.max())}",
                    int(convergence.fell_back.sum()), passes.numel(), error(states, exact),
                ])  # fmt: skip
    print("\nPasses (median / most) of newton by the structure of the Jacobian, T = 256, float32;")
    print("weights normal with standard deviation scale / sqrt(d_s)\n")
    header = ["cell", "scale", "structure", "passes", "in time order", "of blocks", "error"]
    print_table(header, rows)


def memory() -> None:
    """Peak memory of the engines, linear in steps and units."""
    rows = []
    for name, cell in CELLS.items():
        for steps, units in ((512, 256), (1024, 256), (2048, 256), (4096, 256), (2048, 128),
                             (2048, 512), (2048, 1024)):  # fmt: skip
            inputs, params = draw(cell, steps, UNITS**-0.5, units)
            row: list[object] = [name, steps, units]
            for engine in ENGINES:
                both_ways(cell, inputs[:, :256, :, :8].clone(), params[:, :8], engine)  # compile
                peak = peak_bytes(
                    lambda e=engine, u=inputs, w=params, c=cell: both_ways(c, u, w, e)
                )
                row += [f"{peak / 2**20:.1f}", f"{peak / (4 * steps * units):.1f}"]
            rows.append(row)
    print("\nPeak memory of a forward and backward pass of one sequence, MB, and numbers of "
          "float32 a\nstep and unit\n")  # fmt: skip
    header = ["cell", "T", "d_h", *(name for engine in ENGINES for name in (engine, "a step"))]
    print_table(header, rows)


def both_ways(cell: Cell, inputs: Tensor, params: Tensor, engine: str) -> list[Tensor]:
    """Gradients of the sum of squared states."""
    leaves = [inputs.detach().requires_grad_(), params.detach().requires_grad_()]
    states, _ = recurrence(cell, *leaves, engine=engine)
    return [states.detach(), *torch.autograd.grad(states, leaves, 2 * states.detach())]


def on_a_task(key: Key) -> dict[str, Any]:
    """Train a cell on a task; its convergence before and after."""
    task, seed = tasks.TASKS[key["task"]], key["seed"]
    model = tasks.new_model(key["task"], key["model"], seed)
    before = converging(model, task)
    recipe = tasks.recipe_of("small", task)
    options = task.options | task.training
    data = task.draw(recipe.samples, task.small, **options, random_state=2 * seed)
    steps = tasks.train(model, data, recipe, seed)
    test = task.draw(recipe.test, task.small, **task.options, random_state=2 * seed + 1)
    return {"steps": steps, "accuracy": tasks.accuracy(model, test), "before": before,
            "after": converging(model, task)}  # fmt: skip


@torch.no_grad()
def converging(model: tasks.Tagger, task: tasks.Task) -> dict[str, Any]:
    """Residuals after 0 to 12 iterations at each length, and the Lyapunov exponent of the layer."""
    layer, residuals = model.rnn, {}
    assert isinstance(layer, CellStack)
    weight_ih, weight_hh, bias = layer.weights(0)
    for steps in LENGTHS:
        data = task.draw(SEQUENCES, steps, **task.options, random_state=12345)
        x = model.inputs(torch.from_numpy(data.tokens))
        inputs = nn.functional.linear(x, weight_ih, bias).unflatten(-1, (layer.cell.m, -1))
        params = weight_hh.reshape(layer.cell.p, layer.n_blocks)
        residuals[str(steps)] = [
            float(f"{residual(layer.cell, inputs, params, k):.3g}") for k in range(MOST + 1)
        ]
    exponents = lyapunov_exponent(layer, x)
    return {"residuals": residuals, "exponent": float(exponents.exponent),
            "standard error": float(exponents.standard_error)}  # fmt: skip


def trained(options: argparse.Namespace) -> None:
    """Runs of Figure 4 that are missing, and their table."""
    keys = [{"task": task, "model": model, "seed": 0} for task in options.tasks for model in MODELS]
    run_all(options, keys, on_a_task)
    shown = (0, 1, 2, 3, 4, 6, 8, 12)
    rows = []
    for task in TASKS:
        for model in MODELS:
            result = read_result(options.results, {"task": task, "model": model, "seed": 0})
            for stage in ("before", "after") if result else ():
                part = result[stage]
                exponent = f"{part['exponent']:+.2g} ({part['standard error']:.1g})"
                correct = f"{result['accuracy']:.0f}" if stage == "after" else ""
                for steps in LENGTHS:
                    # An infinite residual is NaN in what is read back.
                    residuals = np.nan_to_num(part["residuals"][str(steps)], nan=np.inf)
                    first = steps == LENGTHS[0]
                    rows.append([
                        *((task, model, stage, correct, exponent) if first else [""] * 5), steps,
                        *(f"{residuals[k]:.0e}" for k in shown),
                    ])  # fmt: skip
    print("\nLargest residual after k iterations over 8 sequences, cells before and after training")
    print("(accuracy in percent at the length of training; exponent a step and standard error)\n")
    header = ["task", "cell", "training", "accuracy", "Lyapunov exponent", "T"]
    print_table([*header, *(f"k = {k}" for k in shown)], rows)


def main() -> None:
    parser = option_parser(__doc__)
    parts = ("drawn", "trained", "memory")
    parser.add_argument("--parts", nargs="+", default=list(parts), choices=parts,
                        help="tables 1 to 4, table 5, table 6")  # fmt: skip
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    options = read_run_options(parser, "newton", parts=["trained"])
    print()
    if "drawn" in options.parts and not options.print_only:
        at_initialisation()
        three_iterations()
        passes_of_blocks()
        structures()
    if "trained" in options.parts:
        trained(options)
    if "memory" in options.parts and not options.print_only:
        memory()


if __name__ == "__main__":
    main()
