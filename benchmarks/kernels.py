"""Recurrences by themselves beside their floors, the obvious loop, and each other.

Measures the CPU; `gpu.py` does a GPU. Every row compares results and gradients with the reference
before it times anything. The floor is the time to copy the bytes that have to be moved: forward
reads u and writes h, backward reads h and its gradient and writes that of u. A private module says
what a backward pass reads.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from _recurrences import Problem, draw, needed_backward, results
from _timing import (
    copy_ms_a_byte,
    median_ms,
    option_parser,
    peak_bytes,
    print_machine,
    print_table,
    read_options,
)
from torch import Tensor

from tsrnn.kernels import Cell, cells, recurrence


def check(cell: Cell, problem: Problem, engine: str, expected: Sequence[Tensor]) -> None:
    """Compare states and gradients with other ones, relative to their largest value."""
    for value, wanted in zip(results(cell, problem, engine), expected, strict=True):
        scale = float(wanted.abs().max())
        torch.testing.assert_close(value, wanted, rtol=0, atol=1e-3 * scale)


def both_ways(cell: Cell, problem: Problem, engine: str, repeats: int) -> tuple[float, float]:
    """Median milliseconds forward and backward."""
    inputs, params, grad = problem
    leaves = (inputs.detach().requires_grad_(), params.detach().requires_grad_())
    forward = median_ms(lambda: recurrence(cell, *leaves, engine=engine), repeats)
    states, _ = recurrence(cell, *leaves, engine=engine)
    backward = median_ms(
        lambda: torch.autograd.grad(states, leaves, grad, retain_graph=True), repeats
    )
    return forward, backward


def every_cell(a_byte: float) -> None:
    """The catalogue at (B, T) = (64, 784) with 128 state fields a step."""
    rows = []
    catalogue = [
        cells.para_rnn(2), cells.para_rnn(8), cells.para_gru(1), cells.para_gru(2),
        cells.para_lstm(2), cells.newton_lstm(), cells.lem(), cells.lru(),
    ]  # fmt: skip
    for cell in catalogue:
        units = 128 // cell.n
        check_small(cell, units)
        problem = draw(cell, 64, 784, units)
        times = both_ways(cell, problem, "sequential", 15)
        numbers = 64 * 784 * units * 4 * a_byte
        floors = numbers * (cell.n + cell.m), numbers * (2 * cell.n + cell.m)
        if any(name.startswith("u") for name in needed_backward(cell)):
            floors = floors[0], floors[1] + numbers * cell.m  # gates are computed again from u
        pairs = zip(times, floors, strict=True)
        rows.append([cell.name, *(f"{t:.2f} ({f:.2f}, {t / f:.1f}x)" for t, f in pairs)])
    print("(64, 784), 128 state fields a step, float32: ms (floor ms, ratio)\n")
    print_table(["cell", "forward", "backward"], rows)


def check_small(cell: Cell, units: int) -> None:
    problem = draw(cell, 3, 40, units)
    check(cell, problem, "sequential", results(cell, problem, "reference"))


def lru_loop(problem: Problem) -> None:
    """The loop that one would write: a complex product a step, then backward."""
    inputs, params, grad = problem
    u = torch.complex(*inputs.unbind(2)).requires_grad_()
    eigenvalue = torch.complex(*params.unbind(0)).requires_grad_()
    state, states = torch.zeros_like(u[:, 0]), []
    for step in u.unbind(1):
        state = eigenvalue * state + step
        states.append(state)
    torch.stack(states, 1).backward(torch.complex(*grad.unbind(2)))


def lem_loop(problem: Problem, d: int) -> list[Tensor]:
    """The loop that one would write: the three products with y as one, then backward."""
    inputs, params, grad = problem
    u = inputs[..., 0].requires_grad_()
    w = params[:, 0].view(4, d, d).requires_grad_()
    early, late = w[:3].flatten(0, 1).T, w[3].T
    y = z = torch.zeros(len(u), d)
    states = []
    for x in u.unbind(1):
        a, b, c = (x[:, : 3 * d] + y @ early).chunk(3, 1)
        slow, fast = torch.sigmoid(a), torch.sigmoid(b)
        z = (1 - slow) * z + slow * torch.tanh(c)
        y = (1 - fast) * y + fast * torch.tanh(x[:, 3 * d :] + z @ late)
        states.append(torch.cat([y, z], 1))
    found = torch.stack(states, 1)
    return [found.detach(), *torch.autograd.grad(found, (u, w), grad[..., 0])]


def beside_loops() -> None:
    rows = []
    for batch, steps, d in ((8, 17984, 32), (50, 2000, 128)):
        cell = cells.lem(d)
        small = draw(cell, 2, 30, 1)
        for ours, theirs in zip(results(cell, small, "dense"), lem_loop(small, d), strict=True):
            torch.testing.assert_close(ours.flatten(), theirs.flatten(), rtol=1e-3, atol=1e-3)
        problem = draw(cell, batch, steps, 1)
        loop = median_ms(lambda p=problem, d=d: lem_loop(p, d), 1, warm_up=0)
        ours = sum(both_ways(cell, problem, "dense", 3))
        rows.append([f"LEM, full matrices, {(batch, steps, d)}", f"{loop:.0f}", f"{ours:.1f}",
                     f"{loop / ours:.1f}"])  # fmt: skip
    cell = cells.lru()
    problem = draw(cell, 8, 16384, 64)
    check_small(cell, 64)
    loop = median_ms(lambda: lru_loop(problem), 1, warm_up=0)
    ours = sum(both_ways(cell, problem, "auto", 7))
    rows.append(["LRU, (8, 16384, 128)", f"{loop:.0f}", f"{ours:.1f}", f"{loop / ours:.0f}"])
    loop = sum(both_ways(cell, problem, "reference", 1))
    name = "LRU, real and imaginary part by themselves"
    rows.append([name, f"{loop:.0f}", f"{ours:.1f}", f"{loop / ours:.0f}"])
    print("\nForward and backward beside the obvious loop in torch\n")
    print_table(["recurrence", "loop ms", "tsrnn ms", "ratio"], rows)


def time_in_chunks() -> None:
    """Where chunks of time pay on a CPU."""
    rows = []
    for cell in (cells.para_rnn(2), cells.newton_lstm(), cells.lru()):
        parallel = "scan" if cell.name == "lru" else "shooting"
        for batch, steps, units in (
            (1, 1024, 1), (1, 4096, 1), (1, 65536, 1), (1, 131072, 1), (1, 16384, 4),
            (1, 131072, 8), (4, 16384, 1), (8, 16384, 4), (1, 131072, 32),
        ):  # fmt: skip
            problem = draw(cell, batch, steps, units)
            check(cell, problem, parallel, results(cell, problem, "sequential"))
            in_order = both_ways(cell, problem, "sequential", 7)
            in_chunks = both_ways(cell, problem, parallel, 7)
            rows.append([cell.name, (batch, steps, units),
                         *(f"{t:.2f}" for t in (*in_order, *in_chunks)),
                         f"{sum(in_order) / sum(in_chunks):.1f}"])  # fmt: skip
    print("\nTime order beside chunks of time, ms\n")
    header = ["cell", "(B, T, K)", "in order forward", "backward", "in chunks forward", "backward",
              "ratio"]  # fmt: skip
    print_table(header, rows)


def memory() -> None:
    """Peak memory of a forward and backward pass beside what has to be there."""
    rows, batch = [], 8
    for make in (cells.para_rnn, cells.para_lstm, cells.lem):
        for steps, width in ((4096, 128), (8192, 128), (16384, 128), (8192, 256)):
            size = width if make is cells.lem else 2  # full matrices, as published
            cell, units = make(size), width // size
            numbers = batch * steps * units
            problem = draw(cell, batch, steps, units)
            due = 4 * numbers * 2 * (cell.m + cell.n)
            # Inputs and the gradient of the states are there before.
            there = 4 * numbers * (cell.m + cell.n)
            results(cell, draw(cell, 1, 3, units), "auto")
            peak = there + peak_bytes(lambda c=cell, p=problem: results(c, p, "auto"))
            rows.append([cell.name, (batch, steps, width), f"{due / 2**20:.0f}",
                         f"{peak / 2**20:.0f}", f"{peak / due:.2f}"])  # fmt: skip
            del problem
    print("\nPeak memory of forward and backward; due are inputs, states and their gradients\n")
    print_table(["cell", "(B, T, d)", "due MB", "peak MB", "ratio"], rows)


def main() -> None:
    options = read_options(option_parser(__doc__))
    print_machine()
    a_byte = copy_ms_a_byte()
    print(f"copy: {1e-6 / a_byte:.1f} GB/s read and written\n")
    every_cell(a_byte)
    if not options.smoke:
        beside_loops()
        time_in_chunks()
        memory()


if __name__ == "__main__":
    main()
