"""What is written, and what NaN and infinity do."""

import pytest
import torch

from tsrnn.kernels import _cpu, cells, recurrence
from tsrnn.kernels._derived import adjoint, affine, tangent
from tsrnn.kernels._problem import Problem

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("units", [1, 15, 16, 33])
@pytest.mark.parametrize("lengths", [None, [5, 0, 2]])
def test_every_buffer_is_written_completely(poisoned, units, lengths, draw, solve):
    cell = cells.para_rnn(2)
    results = solve(cell, draw(cell, units=units), "sequential", lengths)
    assert poisoned
    for name, value in results.items():
        assert torch.isfinite(value).all(), name


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu", "identity"])
@pytest.mark.parametrize("engine", ["reference", "sequential"])
def test_nan_goes_on_in_its_unit_and_nowhere_else(engine, nonlinearity, draw, solve):
    cell = cells.para_rnn(2, nonlinearity)
    problem = draw(cell, batch=3, steps=5, units=17)
    clean = solve(cell, problem, engine)
    problem.inputs[1, 2, 0, 4] = NAN
    results = solve(cell, problem, engine)
    expected = torch.zeros_like(clean["states"], dtype=torch.bool)
    expected[1, 3:, :, 4] = True
    expected[1, 2, 0, 4] = True
    assert torch.equal(results["states"].isnan(), expected)
    assert results["final"].isnan().nonzero().tolist() == [[1, 0, 4], [1, 1, 4]]
    assert torch.equal(results["states"][~expected], clean["states"][~expected])
    elsewhere = [k for k in range(17) if k != 4]
    for name in ("g_inputs", "g_params", "g_initial"):
        assert torch.equal(results[name][..., elsewhere], clean[name][..., elsewhere]), name
    assert results["g_params"][..., 4].isnan().any()


@pytest.mark.parametrize("engine", ["reference", "sequential"])
def test_padding_may_hold_nan(engine, draw, solve):
    cell = cells.para_rnn(2)
    problem = draw(cell)
    clean = solve(cell, problem, engine, [5, 0, 2])
    problem.inputs[1] = problem.inputs[2, 2:] = NAN
    problem.g_states[1] = problem.g_states[2, 2:] = 1e30
    results = solve(cell, problem, engine, [5, 0, 2])
    for name, value in results.items():
        assert torch.equal(value, clean[name]), name


@pytest.mark.parametrize("engine", ["reference", "sequential"])
def test_infinite_inputs(engine):
    inputs = torch.tensor([INF, -INF]).view(1, 1, 1, 2)
    params = torch.zeros(1, 2)
    for nonlinearity, expected in (
        ("tanh", [1.0, -1.0]),
        ("relu", [INF, 0.0]),
        ("identity", [INF, -INF]),
    ):
        cell = cells.para_rnn(1, nonlinearity)
        states, _ = recurrence(cell, inputs, params, engine=engine)
        assert states.flatten().tolist() == expected


def test_arguments_are_not_written_to(draw):
    cell = cells.para_rnn(2)
    problem = draw(cell)
    copies = [t.clone() for t in problem]
    leaves = [t.requires_grad_() for t in problem[:3]]
    results = recurrence(cell, *leaves, engine="sequential")
    torch.autograd.backward(results, [problem.g_states, problem.g_final])
    for value, copy in zip(problem, copies, strict=True):
        assert torch.equal(value.detach(), copy)


def test_a_changed_result_is_noticed_in_the_backward_pass(draw):
    cell = cells.para_rnn(2)
    inputs, params, *_ = draw(cell)
    states, _ = recurrence(cell, inputs.requires_grad_(), params, engine="sequential")
    loss = states.sum()
    with torch.no_grad():
        states.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


CELLS = [
    cells.para_rnn(2), cells.para_rnn(8), cells.para_lstm(2), cells.lem(1), cells.lru(),
    tangent(cells.para_gru(2)), adjoint(cells.para_lstm(1)), affine(3),
]  # fmt: skip


@pytest.mark.parametrize("lengths", [[5, 5, 5], [5, 0, 2]])
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_variants_compute_the_same_bits(poisoned, cell, lengths, draw):
    inputs, params, initial, g_states, g_final = draw(cell, units=50, dtype=torch.float32)
    problem = Problem(cell, inputs, params, initial, torch.tensor(lengths))
    states, final = _cpu.forward(problem)
    none, only_final = _cpu.forward(problem, keep=False)
    assert none.shape == (3, 0, cell.n, 50)
    assert torch.equal(only_final, final)
    _, _, g_initial = _cpu.backward(problem, states, g_states, g_final)
    results = _cpu.backward(problem, states, g_states, g_final, only_initial=True)
    assert results[:2] == (None, None)
    assert torch.equal(results[2], g_initial)
    assert torch.isfinite(final).all()
    assert torch.isfinite(g_initial).all()


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_results_of_a_unit_do_not_depend_on_its_place(cell, draw, solve):
    # Wide, whole and partial tiles: 32, 16 and 15 units.
    one = draw(cell, units=1, dtype=torch.float32)
    results = solve(cell, type(one)(*(t.expand(*t.shape[:-1], 63) for t in one)), "sequential")
    for name, value in results.items():
        assert torch.equal(value, value[..., :1].expand_as(value)), name


def test_large_buffers_lie_on_large_pages(monkeypatch):
    advised = []
    monkeypatch.setattr(_cpu, "_advise", lambda *args: advised.append(args))
    assert _cpu.new_empty(torch.zeros(1), (100,)).shape == (100,)
    assert not advised
    large = _cpu.new_empty(torch.zeros(1), (2, 2**20))
    assert large.dtype == torch.float32
    ((start, size, _),) = advised
    assert large.data_ptr() <= start
    assert start + size <= large.data_ptr() + large.nbytes
    assert start % _cpu._LARGE_PAGE == size % _cpu._LARGE_PAGE == 0
    assert size >= _cpu._LARGE_PAGE


def test_a_large_buffer_on_this_system():
    buffer = _cpu.new_empty(torch.zeros(1), (2**21,))
    assert buffer.fill_(1.0).sum() == 2**21
