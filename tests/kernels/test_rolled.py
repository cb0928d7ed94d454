"""Blocks whose kernels loop over their units, against the loop in torch."""

import pytest
import torch

from tsrnn.kernels import MatrixForm, cells, recurrence
from tsrnn.kernels._matrix_form import is_rolled


def _unusual(states, inputs, matrices, vectors):
    """Matrices used twice or not at all, products of products, of inputs and of constants."""
    (h, c), (u,), (A, B, _unused, D), (w,) = states, inputs, matrices, vectors
    a = torch.tanh(A @ (B @ (w * h) + u))
    b = A @ u + B @ torch.ones_like(c) + D @ c
    return torch.sigmoid(a + B @ h), torch.where(h > 0, c / (1 + a * a), 0.5 * c) + 0.1 * b


def _delay(states, inputs, matrices, vectors):
    """New states that are inputs, old states and constants."""
    (h, c, _), (u,), (A, B) = states, inputs, matrices
    return u, h, torch.full_like(c, 0.25) + 0 * (A @ c) + 0 * (B @ u)


OWN = [
    MatrixForm("unusual", ("h", "c"), ("u",), ("A", "B", "_unused", "D"), _unusual, ("w",)),
    MatrixForm("delay", ("h", "c", "k"), ("u",), ("A", "B"), _delay),
]
CELLS = [
    cells.para_gru(5),
    cells.para_gru(6, reset_after=True),
    cells.para_lstm(7),
    cells.newton_lstm(8),
    cells.lem(5, dt=0.7, min_step=0.3),
    *(form.block(7) for form in OWN),
]
EVERY = pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
# Units in a part of a vector, beyond one and beyond two; steps around those summed together.
SHAPES = [(1, 16, [16, 16]), (17, 18, [18, 0, 17]), (40, 33, [33, 1])]


@pytest.mark.few("dtype1")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@EVERY
def test_every_size_agrees_with_the_reference(cell, dtype, poisoned, draw, check):
    assert is_rolled(cell)
    for units, steps, lengths in SHAPES:
        problem = draw(cell, len(lengths), steps, units, dtype)
        check(cell, problem, "sequential", lengths, roundings=512.0)
    assert poisoned


@EVERY
def test_chunks_of_time_agree_with_time_order(cell, draw, check):
    """Jacobians come column by column; in the default structure and in the diagonal one."""
    problem = draw(cell, 1, 200, 2)
    check(cell, problem, "shooting", roundings=4096.0, oracle="sequential")


def test_scan_of_a_linear_block(draw, solve, agree):
    form = MatrixForm(
        "two_steps", ("h", "c"), ("u",), ("A", "B"),
        lambda states, u, M, _: (u[0] + M[0] @ states[0] + M[1] @ states[1], states[0]),
    )  # fmt: skip
    cell = form.block(6)
    problem = draw(cell, 1, 150, 2)
    agree(solve(cell, problem, "scan"), solve(cell, problem, "reference"), 4096.0)


@pytest.mark.parametrize("cell", CELLS[:1] + CELLS[-2:-1], ids=lambda cell: cell.name)
def test_second_derivatives(cell, draw, check_second_derivatives):
    check_second_derivatives(cell, draw(cell, 2, 3, 2), "sequential", [3, 1])


def test_replicates_have_the_bits_that_they_have_alone(draw):
    cell = cells.para_lstm(5)
    problems = [draw(cell, 2, 5, 3, torch.float32, seed=i) for i in range(3)]
    inputs, params, initial = (
        torch.stack(parts) for parts in list(zip(*problems, strict=True))[:3]
    )

    def loss(u, w, h):
        states, final = recurrence(cell, u, w, h)
        return states.square().sum() + final.sum()

    params.requires_grad_()
    together = torch.vmap(loss)(inputs, params, initial)
    (g,) = torch.autograd.grad(together.sum(), params)
    for i in range(3):
        w = params[i].detach().requires_grad_()
        alone = loss(inputs[i], w, initial[i])
        assert torch.equal(alone, together[i])
        assert torch.equal(torch.autograd.grad(alone, w)[0], g[i])
