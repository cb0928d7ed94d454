"""The engine for full matrices against the loop in torch and torch's own networks."""

import warnings

import pytest
import torch

from tsrnn.kernels import MatrixForm, _backend, _dense, cells, recurrence
from tsrnn.kernels._dense import cpu, ir
from tsrnn.kernels._dense.ir import Registers
from tsrnn.kernels._problem import Problem
from tsrnn.kernels._program import plan_of

NAN = float("nan")
DTYPES = (torch.float32, torch.float64)
FORMS = {
    "tanh": cells.para_rnn,
    "relu": lambda d: cells.para_rnn(d, "relu"),
    "identity": lambda d: cells.para_rnn(d, "identity"),
    "lstm": cells.para_lstm,
    "gru": cells.para_gru,
    "gru_reset_after": lambda d: cells.para_gru(d, reset_after=True),
    "newton_lstm": cells.newton_lstm,
    "lem": lambda d: cells.lem(d, dt=0.7),
}
# d around the lanes of a vector register, K, and the lengths of B sequences of T steps.
SHAPES = [
    (1, 3, 4, [4, 0, 1, 4, 2]),
    (3, 1, 3, [3] * 9),
    (16, 1, 4, [0, 4, 2, 1, 4, 3, 0, 1, 2]),
    (16, 3, 3, [2]),
    (17, 1, 5, [5] * 5),
    (17, 3, 4, [1, 4, 0, 3, 4]),
    (40, 1, 1, [1, 0, 1]),
    (40, 3, 3, [3] * 5),
    (40, 1, 3, [3, 1] * 13),
    (17, 3, 2, []),
]


@pytest.mark.few("dtype1")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMS)
def test_dense_agrees_with_the_reference(form, dtype, draw, check):
    for size, units, steps, lengths in SHAPES:
        cell = FORMS[form](size)
        problem = draw(cell, len(lengths), steps, units, dtype, seed=size)
        check(cell, problem, "dense", lengths)


@pytest.mark.few("tanh", "gru", "newton_lstm")
@pytest.mark.parametrize("form", FORMS)
def test_gradients_are_those_of_finite_differences(form, draw):
    cell = FORMS[form](2)
    leaves = [t.requires_grad_() for t in draw(cell, 3, 3, 2)[:3]]
    assert torch.autograd.gradcheck(
        lambda *args: recurrence(cell, *args, lengths=[3, 0, 2], engine="dense"), leaves
    )


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_dense_agrees_with_torchs_networks(kind, draw, assert_close):
    size, dtype = 20, torch.float64
    make = {"RNN": cells.para_rnn, "LSTM": cells.para_lstm}
    cell = cells.para_gru(size, True) if kind == "GRU" else make[kind](size)
    network = getattr(torch.nn, kind)(cell.m, size, bias=False, batch_first=True, dtype=dtype)
    matrices = network.weight_hh_l0.detach().clone()
    with torch.no_grad():
        network.weight_ih_l0.copy_(torch.eye(cell.m))
    inputs = draw(cell, 4, 6, 1).inputs[..., 0].requires_grad_()
    expected = network(inputs)[0]
    signs = torch.ones(cell.m, dtype=dtype)
    if kind == "GRU":  # torch's order is r, z, n, and its z is 1 - z here
        order = torch.arange(cell.m).view(3, size)[[1, 0, 2]].flatten()
        signs[:size] = -1.0
        inputs_here, matrices = inputs[..., order] * signs, matrices[order] * signs[:, None]
    else:
        inputs_here = inputs
    params = matrices.flatten()[:, None].requires_grad_()
    states, _ = recurrence(cell, inputs_here[..., None], params, engine="dense")
    states = states[:, :, :size, 0]
    assert_close(states, expected)
    cotangent = torch.randn_like(states)
    g_inputs, g_params = torch.autograd.grad(states, (inputs, params), cotangent)
    g_expected = torch.autograd.grad(expected, (inputs, network.weight_hh_l0), cotangent)
    assert_close(g_inputs, g_expected[0])
    g_matrices = g_expected[1]
    if kind == "GRU":
        g_matrices = g_matrices[order] * signs[:, None]
    assert_close(g_params.view_as(g_matrices), g_matrices)


def unusual(states, inputs, matrices, vectors):
    """Matrices used twice or not at all, products of products, of inputs and of constants."""
    (h, c), (u,), (A, B, _unused), (w,) = states, inputs, matrices, vectors
    a = torch.tanh(A @ (B @ (w * h) + u))
    b = A @ u + B @ torch.ones_like(c)
    return torch.sigmoid(a + B @ h), c / (1 + a * a) + 0.1 * b


def delay(states, inputs, matrices, vectors):
    """New states that are inputs, old states and constants."""
    (h, c, _), (u,), (A,) = states, inputs, matrices
    return u, h, torch.full_like(c, 0.25) + 0 * (A @ c)


def chained(states, inputs, matrices, vectors):
    """Products of products, with nothing between them."""
    (h,), (u,), (A, B) = states, inputs, matrices
    return (A @ (B @ h) + B @ (A @ h) + u,)


def diagonal(states, inputs, matrices, vectors):
    """No matrix at all."""
    (h,), (u,), (w,) = states, inputs, vectors
    return (torch.tanh(w * h + u),)


OWN_FORMS = [
    MatrixForm("unusual", ("h", "c"), ("u",), ("A", "B", "_unused"), unusual, vectors=("w",)),
    MatrixForm("delay", ("h", "c", "k"), ("u",), ("A",), delay),
    MatrixForm("chained", ("h",), ("u",), ("A", "B"), chained),
    MatrixForm("diagonal", ("h",), ("u",), (), diagonal, vectors=("w",)),
]


@pytest.mark.parametrize("size", [2, 19])
@pytest.mark.parametrize("form", OWN_FORMS, ids=lambda form: form.name)
def test_own_forms(form, size, draw, check):
    cell = form.block(size)
    problem = draw(cell, 3, 4, 2)
    check(cell, problem, "dense", [4, 0, 3])


def test_a_form_without_compiled_form_is_refused_with_its_name(draw):
    form = MatrixForm(
        "arctan", ("h",), ("u",), ("W",), lambda h, u, W, _: (torch.atan(u[0] + W[0] @ h[0]),)
    )
    cell = form.block(12)
    with pytest.raises(ValueError, match=r"'arctan'.*'atan'.*engine='reference'"):
        recurrence(cell, *draw(cell)[:3], engine="dense")


def products(program):
    return [(p.matrices, p.transposed) for phase in program.phases for p in phase.products]


def test_products_wait_for_what_they_need_and_no_longer():
    lem = plan_of(cells.lem(2).step.form)
    assert products(lem.forward) == [((0, 1, 2), False), ((3,), False)]
    # The stored new z is the operand of W_y: both groups of products come first.
    assert [len(phase.products) for phase in lem.backward.phases] == [2, 1, 1, 0]
    gru = plan_of(cells.para_gru(2).step.form)
    assert products(gru.forward) == [((0, 1), False), ((2,), False)]
    assert len(gru.traced.vjp.results["x"]) == 1  # r * h is not among the states


def test_what_the_new_state_tells_is_not_computed_again():
    elman = plan_of(cells.para_rnn(2).step.form)
    assert products(elman.backward) == [((0,), True)]


@pytest.mark.parametrize("registers", [Registers(32, (6, 4, 2, 1)), Registers(16, (6, 4, 2, 1))])
def test_narrower_registers(registers, monkeypatch, draw, check):
    monkeypatch.setattr(ir, "registers", lambda: registers)
    cpu.kernels_of.cache_clear()
    for size in (3, 16, 21):
        cell = cells.lem(size)
        problem = draw(cell, 7, 3, 2, torch.float32)
        check(cell, problem, "dense")
    cpu.kernels_of.cache_clear()


@pytest.mark.parametrize(
    ("engine", "size", "shape", "unit"),
    [("dense", 17, (14, 5, 2), 1), ("sequential", 5, (3, 6, 19), 17)],
    ids=["dense", "rolled"],
)
def test_nan_stays_in_its_sequence_and_unit(draw, solve, engine, size, shape, unit):
    cell, (batch, _, units) = cells.para_lstm(size), shape
    problem, sequence = draw(cell, *shape), 1
    clean = solve(cell, problem, engine)
    problem.inputs[sequence, 2, 0, unit] = NAN
    results = solve(cell, problem, engine)
    assert results["states"][sequence, 3:, :, unit].isnan().all()
    elsewhere = torch.ones(batch, units, dtype=torch.bool)
    elsewhere[sequence, unit] = False
    for name in ("states", "g_inputs"):
        moved = results[name].movedim(-1, 1)[elsewhere]
        assert torch.equal(moved, clean[name].movedim(-1, 1)[elsewhere]), name
    others = torch.arange(units) != unit
    assert torch.equal(results["g_params"][:, others], clean["g_params"][:, others])
    assert results["g_params"][:, unit].isnan().any()


def test_results_do_not_depend_on_the_number_of_threads(threads, draw, solve, assert_close):
    cell = cells.lem(17)
    problem = draw(cell, 150, 9, 1, torch.float32)
    results = []
    for count in (1, 2, 3):
        threads(count)
        results.append(solve(cell, problem, "dense", [9, 4, 0] * 50))
    for name, value in results[0].items():
        for other in results[1:]:
            if name == "g_params":  # one product over all steps, by torch
                assert_close(other[name], value)
            else:
                assert torch.equal(other[name], value), name


def test_large_blocks_take_this_engine(draw):
    cell = cells.para_lstm(9)
    problem = draw(cell)[:3]
    assert torch.equal(recurrence(cell, *problem)[0], recurrence(cell, *problem, engine="dense")[0])


def test_other_dtypes_run_the_loop_in_torch(draw, solve):
    cell = cells.para_gru(9)
    problem = type(draw(cell))(*(t.to(torch.bfloat16) for t in draw(cell)))
    expected = solve(cell, problem, "reference", [5, 0, 2])
    for name, value in solve(cell, problem, "dense", [5, 0, 2]).items():
        assert torch.equal(value, expected[name]), name


@pytest.mark.parametrize("dtype", DTYPES)
def test_parts_of_time_and_of_a_batch_have_the_bits_of_the_whole(dtype, draw):
    cell = FORMS["lem"](17)
    inputs, params, initial, *_ = draw(cell, 9, 8, 2, dtype)
    states, final = recurrence(cell, inputs, params, initial, engine="dense")
    first, middle = recurrence(cell, inputs[:, :3], params, initial, engine="dense")
    second, last = recurrence(cell, inputs[:, 3:], params, middle, engine="dense")
    assert torch.equal(torch.cat([first, second], 1), states)
    assert torch.equal(last, final)
    for i in range(9):
        alone, _ = recurrence(cell, inputs[i : i + 1], params, initial[i : i + 1], engine="dense")
        assert torch.equal(alone[0], states[i])


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("size", [2, 9])
def test_a_last_state_that_is_infinite_stays_in_its_sequence(steps, size, draw, solve, agree):
    """It meets no gradient: the row after it is the first of another sequence."""
    cell = cells.linear(size)
    problem = draw(cell, 3, steps, 2)
    problem.inputs[:2, -1] = torch.inf
    problem.g_states[:, -1] = problem.g_final[:] = 0.0
    expected = solve(cell, problem, "reference")
    assert expected["g_params"].isfinite().all()
    agree(solve(cell, problem, "dense"), expected)


def test_blocks_too_large_for_kernels_of_a_gpu_are_said_once(monkeypatch):
    pytest.importorskip("triton", reason="Triton is made for Linux only")
    # The device "meta" stands for one of CUDA: nothing is computed.
    monkeypatch.setitem(_backend.DTYPES, "meta", (torch.float32,))
    monkeypatch.setitem(_backend._MODULES, "meta", "tsrnn.kernels._gpu")
    _dense._warn_of_loop.cache_clear()

    def kernels_of(size):
        cell = cells.para_rnn(size)
        inputs = torch.empty(1, 2, cell.m, 1, device="meta")
        return _dense._kernels(Problem(cell, inputs, inputs, inputs))

    assert kernels_of(512) is not None
    with pytest.warns(RuntimeWarning, match="at most 512 units; got 513.*loop in torch"):
        assert kernels_of(513) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kernels_of(513) is None
