"""Random problems for a recurrence, and everything an engine makes of them."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from tsrnn.kernels import cells, recurrence

CATALOGUE = {
    cell.name: cell
    for cell in (
        cells.para_rnn(1),
        cells.para_rnn(2),
        cells.para_rnn(4, "relu"),
        cells.linear(3),
        cells.para_gru(1),
        cells.para_gru(2),
        cells.para_gru(3, reset_after=True),
        cells.para_lstm(1),
        cells.para_lstm(2),
        cells.newton_gru(),
        cells.newton_lstm(),
        cells.newton_lstm(2),
        cells.lem(),
        cells.lem(2, dt=0.3),
        cells.lru(),
    )
}


@pytest.fixture(params=CATALOGUE.values(), ids=CATALOGUE.keys())
def cell(request):
    """Every cell of the catalogue, some with more than one block size."""
    return request.param


class Problem(NamedTuple):
    """Arguments of `recurrence` and cotangents of its two results."""

    inputs: Tensor
    params: Tensor
    initial: Tensor
    g_states: Tensor
    g_final: Tensor


@pytest.fixture(scope="session")
def draw():
    """Draw a problem of a cell; parameters are small enough for the states to stay bounded."""

    def draw(cell, batch=3, steps=5, units=17, dtype=torch.float64, seed=0):
        generator = torch.Generator().manual_seed(seed)

        def normal(*shape):
            return torch.randn(shape, generator=generator, dtype=dtype)

        return Problem(
            normal(batch, steps, cell.m, units),
            normal(cell.p, units) * (0.8 / cell.n),
            normal(batch, cell.n, units),
            normal(batch, steps, cell.n, units),
            normal(batch, cell.n, units),
        )

    return draw


@pytest.fixture(scope="session")
def solve():
    """Run an engine; returns states, final and the gradients of inputs, params, initial."""

    def solve(cell, problem, engine, lengths=None):
        leaves = [t.detach().clone().requires_grad_() for t in problem[:3]]
        results = recurrence(cell, *leaves, lengths=lengths, engine=engine)
        gradients = torch.autograd.grad(
            results, leaves, [problem.g_states, problem.g_final], materialize_grads=True
        )
        names = ("states", "final", "g_inputs", "g_params", "g_initial")
        values = [t.detach() for t in (*results, *gradients)]
        return dict(zip(names, values, strict=True))

    return solve


@pytest.fixture
def poisoned(monkeypatch):
    """Fill every new buffer with NaN, so that what is never written shows."""
    count = []

    def wrapped(make):
        def poison(*args, **kwargs):
            count.append(make)
            return make(*args, **kwargs).fill_(torch.nan)

        return poison

    for owner, name in (
        (torch, "empty"), (torch, "empty_like"), (torch.Tensor, "new_empty")
    ):  # fmt: skip
        monkeypatch.setattr(owner, name, wrapped(getattr(owner, name)))
    return count


@pytest.fixture(scope="session")
def agree(assert_close):
    """Compare all results by name; the one that differs is named."""

    def agree(results, expected, roundings=256.0):
        for name, value in expected.items():
            try:
                assert_close(results[name], value, roundings)
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from None

    return agree


@pytest.fixture(scope="session")
def check(solve, agree):
    """Compare states, final state and all gradients of an engine with the loop in torch."""

    def check(cell, problem, engine, lengths=None, roundings=256.0, oracle="reference"):
        expected = solve(cell, problem, oracle, lengths)
        agree(solve(cell, problem, engine, lengths), expected, roundings)

    return check


@pytest.fixture(scope="session")
def check_second_derivatives(assert_close):
    """Compare states, first and second derivatives of an engine with the loop in torch."""

    def derivatives(cell, problem, lengths, engine, options):
        leaves = [t.detach().clone().requires_grad_() for t in problem[:3]]
        states, final = recurrence(cell, *leaves, lengths, engine, **options)
        loss = states.square().sum() + final.sin().sum()
        first = torch.autograd.grad(loss, leaves, create_graph=True)
        second = torch.autograd.grad(sum(g.sin().sum() for g in first), leaves)
        return [states.detach(), *(g.detach() for g in first), *second]

    def check(cell, problem, engine, lengths=None, roundings=64.0, **options):
        results, expected = (
            derivatives(cell, problem, lengths, each, options) for each in (engine, "reference")
        )
        for value, due in zip(results, expected, strict=True):
            assert_close(value, due, roundings)

    return check


@pytest.fixture
def threads():
    """Set the number of torch's threads for the time of a test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)
