"""How Newton's method converges: on every step, as in Danieli et al. (2025), and on chunks.

Three tables. (1) Their appendix A: the residual after each iteration for cells drawn as they
initialise them. (2) The error that three fixed iterations leave, as their implementation runs,
when recurrent weights are larger, beside the engines of this package, which iterate until the
residual is at rounding and run in time order what does not get there. (3) Passes that the two
methods take on the same 2 x 2 blocks. What a fixed number of iterations leaves is that of the
private `iterate`, of which the engine "newton" asks as many as it needs.
"""

from __future__ import annotations

import torch
from _timing import print_machine, print_table
from torch import Tensor

from tsrnn.kernels import Cell, cells, recurrence
from tsrnn.kernels._newton import iterate

CELLS = {"GRU": cells.newton_gru(), "LSTM": cells.newton_lstm()}
UNITS = 256


def draw(cell: Cell, steps: int, scale: float, units: int = UNITS) -> tuple[Tensor, Tensor]:
    """Standard normal inputs, recurrent weights normal with a standard deviation."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(1, steps, cell.m, units, generator=generator)
    return inputs, scale * torch.randn(cell.p, units, generator=generator)


def residual(cell: Cell, inputs: Tensor, params: Tensor, passes: int) -> float:
    """Largest residual after some iterations."""
    initial = inputs.new_zeros(1, cell.n, inputs.shape[3])
    _, convergence = iterate(cell, inputs, params, initial, passes)
    return convergence.residual.nan_to_num(nan=torch.inf).max().item()


def at_initialisation() -> None:
    """Weights normal with variance 1 / d for d = 256 units, clipped to 0.5 (appendix C.1)."""
    rows = []
    for name, cell in CELLS.items():
        for steps in (2**9, 2**11, 2**13):
            inputs, params = draw(cell, steps, UNITS**-0.5)
            params = params.clamp(-0.5, 0.5)
            found = [f"{residual(cell, inputs, params, k):.0e}" for k in range(6)]
            rows.append([name, steps, *found])
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
            row += [
                f"{int(kept.median())} / {int(kept.max())}",
                f"{len(kept)} of {UNITS}",
            ]
        rows.append(row)
    print("\nPasses (median / most of the blocks that converged) on 256 random 2 x 2 blocks, tanh,")
    print("T = 2048, float32\n")
    print_table(["scale", "shooting", "converged", "newton", "converged"], rows)


def main() -> None:
    print_machine()
    print()
    at_initialisation()
    three_iterations()
    passes_of_blocks()


if __name__ == "__main__":
    main()
