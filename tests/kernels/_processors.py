"""Solutions of some problems, with one, two and five threads, written to the file named.

A program, so that it can run for another processor than the tests: `TSRNN_CPU` says which.
"""

import sys
from typing import NamedTuple

import torch

from tsrnn.kernels import Cell, cells, recurrence
from tsrnn.kernels._cpu import threads

THREADS = (1, 2, 5)


def elementary(h, u, w):
    (h,), (u,) = h, u
    x = torch.exp(-(u**2)) * torch.sin(h) + torch.log(1.5 + torch.cos(u)) * w[0]
    y = torch.where(u > h, torch.expm1(x), torch.sqrt(1 + x**2) - torch.abs(h))
    return (torch.sigmoid(y - w[1] * h) * torch.tanh(y * w[0] + u * h) + torch.relu(x) / 4,)


class Case(NamedTuple):
    """A problem; widths leave a remainder of every size of vector, lengths reach every end."""

    cell: Cell
    engine: str
    dtype: torch.dtype
    batch: int
    steps: int
    units: int
    lengths: list[int] | None = None

    def solve(self, engine: str | None = None) -> dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(0)
        n, m, p = self.cell.n, self.cell.m, self.cell.p

        def normal(*shape, scale=1.0):
            drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
            return (scale * drawn).to(self.dtype)

        leaves = [
            normal(self.batch, self.steps, m, self.units),
            normal(p, self.units, scale=0.8 / n),
            normal(self.batch, n, self.units),
        ]
        leaves = [t.requires_grad_() for t in leaves]
        results = recurrence(self.cell, *leaves, lengths=self.lengths, engine=engine or self.engine)
        weights = [normal(*t.shape) for t in results]
        gradients = torch.autograd.grad(results, leaves, weights)
        names = ("states", "final", "g_inputs", "g_params", "g_initial")
        values = (t.detach() for t in (*results, *gradients))
        return dict(zip(names, values, strict=True))


ELEMENTARY = Cell("elementary", 1, 1, 2, elementary)
CASES = {
    "one thread's remainder": Case(cells.para_rnn(1), "sequential", torch.float32, 1, 60, 130),
    "gates": Case(cells.para_gru(2), "sequential", torch.float32, 1, 9, 101),
    "lengths": Case(cells.newton_lstm(), "sequential", torch.float64, 4, 9, 29, [9, 0, 1, 5]),
    "elementary": Case(ELEMENTARY, "sequential", torch.float32, 2, 9, 61),
    "elementary, double": Case(ELEMENTARY, "sequential", torch.float64, 2, 9, 61),
    "chunks": Case(cells.para_rnn(2), "shooting", torch.float32, 1, 300, 3),
    "matrices": Case(cells.lem(10), "dense", torch.float32, 7, 9, 1, [9, 3, 0, 9, 1, 7, 9]),
    "matrices, double": Case(cells.para_rnn(19), "dense", torch.float64, 5, 4, 2),
}


def solutions() -> dict[str, dict[int, dict[str, torch.Tensor]]]:
    """Solutions of every case by number of threads; small problems are spread as well."""
    before, threads._WORK_PER_THREAD = threads._WORK_PER_THREAD, 1
    count_before = torch.get_num_threads()
    found = {}
    for name, case in CASES.items():
        found[name] = {}
        for count in THREADS:
            torch.set_num_threads(count)
            found[name][count] = case.solve()
    torch.set_num_threads(count_before)
    threads._WORK_PER_THREAD = before
    return found


if __name__ == "__main__":
    torch.save(solutions(), sys.argv[1])
