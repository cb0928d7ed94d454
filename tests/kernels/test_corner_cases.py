"""Corners of the engines under autograd: where a derivative, a dtype or a mode is unusual."""

import copy
import itertools
import threading

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tsrnn.kernels import Cell, MatrixForm, cells, projected_recurrence, recurrence
from tsrnn.kernels._cell import registered
from tsrnn.kernels._trace import is_linear


@pytest.mark.parametrize("engine", ["sequential", "shooting", "newton"])
def test_outputs_alone(engine, draw, check_second_derivatives):
    """The gradient comes for some of the fields; derivatives of every order are the same."""
    cell = cells.para_lstm(2)
    problem = draw(cell, 2, 9, 3)
    outputs, _ = recurrence(cell, *problem[:3], [9, 4], engine, outputs_only=True)
    assert outputs.shape == (2, 9, 2, 3)
    check_second_derivatives(cell, problem, engine, [9, 4], 1024, outputs_only=True)


def test_second_derivatives_of_the_outputs_of_large_blocks(draw, assert_close):
    cell = cells.para_lstm(9)
    found = []
    for engine in ("reference", "dense"):
        leaves = [t.requires_grad_() for t in draw(cell, 2, 3, 2)[:3]]
        outputs, _ = recurrence(cell, *leaves, engine=engine, outputs_only=True)
        first = torch.autograd.grad(outputs.square().sum(), leaves, create_graph=True)
        found.append(torch.autograd.grad(sum(g.sin().sum() for g in first), leaves))
    for value, expected in zip(found[1], found[0], strict=True):
        assert_close(value, expected, 1024)


def test_a_gradient_that_comes_from_nowhere_is_zero():
    """A large block whose step does not look at its input."""
    form = MatrixForm("deaf", ("h",), ("u",), ("W",), lambda s, u, W, v: (torch.tanh(W[0] @ s[0]),))
    cell = form.block(9)
    leaves = [torch.randn(1, 2, 9, 1), torch.randn(81, 1), torch.randn(1, 9, 1)]
    leaves = [t.requires_grad_() for t in leaves]
    states, _ = recurrence(cell, *leaves, engine="dense")
    first = torch.autograd.grad(states.square().sum(), leaves, create_graph=True)
    second = torch.autograd.grad(sum(g.square().sum() for g in first), leaves[1:])
    assert not first[0].any()
    assert all(g.isfinite().all() for g in second)


def _of_vectors_alone(states, inputs, matrices, vectors):
    (w,) = vectors
    return (torch.exp(w),)


@pytest.mark.parametrize(
    ("size", "engine"),
    [
        *itertools.product((1, 3), ("reference", "sequential", "shooting", "newton", "dense")),
        *itertools.product((9,), ("reference", "newton", "dense")),
    ],
)
def test_a_state_of_parameters_alone(size, engine, draw, solve, assert_close):
    """It is the same for all sequences, more or fewer than there are units."""
    form = MatrixForm("level", ("h",), ("u",), ("W",), _of_vectors_alone, ("w",))
    cell = form.block(size)
    problem = draw(cell, 2, 5, 3)
    results = solve(cell, problem, engine)
    level, g = (
        problem.params[size**2 :].exp(),
        problem.g_states.sum((0, 1)) + problem.g_final.sum(0),
    )
    assert_close(results["states"], level.expand(2, 5, size, 3))
    assert_close(results["final"], level.expand(2, size, 3))
    assert_close(results["g_params"][size**2 :], level * g)
    for part in (results["g_inputs"], results["g_initial"], results["g_params"][: size**2]):
        assert not part.any()


def test_newton_of_a_large_block_that_forgets_its_state(draw, solve, agree):
    step = lambda s, u, W, v: (torch.tanh(W[0] @ u[0]),)  # noqa: E731
    cell = MatrixForm("forgetful", ("h",), ("u",), ("W",), step).block(9)
    problem = draw(cell, 2, 5, 3)
    agree(solve(cell, problem, "newton"), solve(cell, problem, "dense"))


def test_complex_numbers_take_the_loop():
    cell = cells.linear(1)
    inputs = torch.randn(2, 5, 1, 3, dtype=torch.complex128)
    params = torch.randn(1, 3, dtype=torch.complex128)
    states, _ = recurrence(cell, inputs, params)
    assert torch.equal(states, recurrence(cell, inputs, params, engine="reference")[0])
    for engine in ("sequential", "newton", "dense", "shooting"):
        with pytest.raises(ValueError, match="complex inputs run with engine='reference' only"):
            recurrence(cell, inputs, params, engine=engine)


def test_large_blocks_are_not_unrolled():
    cell = cells.para_lstm(64)
    inputs, params = torch.zeros(1, 2, 256, 1), torch.zeros(cell.p, 1)
    for engine in ("sequential", "shooting", "scan"):
        with pytest.raises(ValueError, match="larger. Use engine='dense'"):
            recurrence(cell, inputs, params, engine=engine)


def test_gradients_of_newton_whose_products_overflow(draw, assert_close):
    cell = cells.linear(5)
    inputs = torch.zeros(1, 512, 5, 1)
    inputs[:, -20:] = 1.0
    params = (1.5 * torch.eye(5)).reshape(25, 1)
    found = []
    for engine in ("sequential", "newton"):
        leaves = [inputs.clone().requires_grad_(), params.clone().requires_grad_()]
        states, _ = recurrence(cell, *leaves, engine=engine)
        found.append(torch.autograd.grad(states[:, 0].sum(), leaves))
    for value, expected in zip(found[1], found[0], strict=True):
        assert expected.isfinite().all()
        torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-4)


def test_newton_of_large_blocks_without_gradients(draw):
    cell = cells.para_rnn(9)
    problem = draw(cell, 1, 6, 2)[:3]
    expected = recurrence(cell, *problem, engine="dense")[0]
    with torch.inference_mode():
        states, _ = recurrence(cell, *problem, engine="newton")
    torch.testing.assert_close(states.clone(), expected)


def test_a_negated_view_is_not_read_as_it_lies_in_memory(draw):
    cell = cells.para_rnn(2)
    inputs, params, *_ = draw(cell)
    states, _ = recurrence(cell, torch._neg_view(inputs), params)
    assert torch.equal(states, recurrence(cell, -inputs, params)[0])


def test_gradients_do_not_keep_those_of_all_sequences_in_memory(draw):
    inputs, params, *_ = draw(cells.para_rnn(2), 64)
    recurrence(cells.para_rnn(2), inputs, params.requires_grad_())[0].sum().backward()
    assert params.grad.untyped_storage().nbytes() == params.grad.nbytes


def test_projections_follow_autocast_and_recurrences_do_not():
    """A narrow projection is part of the kernel, a wide one a matrix product of torch."""
    cell = cells.para_rnn(2)
    params, initial = torch.randn(4, 3), torch.zeros(2, 2, 3)
    for width in (2, 12):
        x, weight = torch.randn(2, 5, width), torch.randn(6, width)
        with torch.autocast("cpu", torch.bfloat16):
            outputs, final = projected_recurrence(cell, x, weight, None, params, initial)
            product = torch.nn.functional.linear(x, weight).float()
            rounded = recurrence(cell, product.bfloat16().unflatten(2, (2, 3)), params)[0]
        kernel, _ = projected_recurrence(cell, x, weight, None, params, initial)
        apart, _ = recurrence(cell, product.unflatten(2, (2, 3)), params)
        assert outputs.dtype == final.dtype == torch.float32
        assert torch.equal(outputs, kernel if width == 2 else apart)
        assert torch.equal(rounded, apart)


def test_autocast_in_float16_is_refused_in_words():
    cell = cells.para_rnn(2)
    arguments = torch.zeros(1, 3, 2, 4), torch.zeros(4, 4)
    x, weight, start = torch.zeros(1, 3, 2), torch.zeros(8, 2), torch.zeros(1, 2, 4)
    with torch.autocast("cpu", torch.float16):
        with pytest.raises(ValueError, match="bfloat16, not in float16.*'bf16-mixed'"):
            recurrence(cell, *arguments)
        with pytest.raises(ValueError, match="bfloat16, not in float16.*'bf16-mixed'"):
            projected_recurrence(cell, x, weight, None, arguments[1], start)
    with pytest.raises(ValueError, match="dtype and device of inputs, torch.bfloat16"):
        recurrence(cell, arguments[0].bfloat16(), arguments[1])  # nothing has rounded it here


@pytest.mark.parametrize("cell", [cells.para_rnn(2), cells.para_gru(9)], ids=lambda c: c.name)
def test_float16_on_a_gpu_is_refused_in_words(cell):
    """In tensors that have a device and no values; elsewhere there is a loop in torch for it."""
    with FakeTensorMode():
        shapes = (1, 3, cell.m, 4), (cell.p, 4), (1, cell.n, 4)
        problem = [torch.empty(s, dtype=torch.float16, device="cuda:0") for s in shapes]
        with pytest.raises(ValueError, match="no kernels in float16.* on cuda:0. Use bfloat16"):
            recurrence(cell, *problem)
    problem = [torch.zeros(s, dtype=torch.float16) for s in shapes]
    assert recurrence(cell, *problem)[0].dtype == torch.float16


@pytest.mark.parametrize(
    ("cell", "engine"),
    [
        (cells.para_gru(9), "dense"),
        (cells.para_gru(9), "newton"),
        (cells.linear(5), "newton"),
        (cells.para_rnn(2), "shooting"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_mixed_precision_around_forward_and_backward_pass(cell, engine, draw, solve):
    problem = draw(cell, 2, 9, 2, torch.float32)
    expected = solve(cell, problem, engine)
    with torch.autocast("cpu", torch.bfloat16):
        results = solve(cell, problem, engine)
        states, _ = recurrence(cell, *problem[:3], engine="reference")
    for name, value in expected.items():
        assert torch.equal(results[name], value), name
    assert torch.equal(states, recurrence(cell, *problem[:3], engine="reference")[0])


def test_cells_made_at_once_keep_their_own_equations():
    made, barrier = [], threading.Barrier(4)

    def make(number):
        barrier.wait()
        for k in range(200):
            factor = 200.0 * number + k
            made.append(Cell("user", 1, 1, 0, lambda h, u, w, f=factor: (f * h[0] + u[0],)))

    threads = [threading.Thread(target=make, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 800
    assert all(registered(cell.key) is cell for cell in made)


def test_a_key_of_another_process():
    with pytest.raises(ValueError, match="no cell of key 'gone#0' in this process"):
        registered("gone#0")


def test_a_copy_of_a_cell_is_the_cell():
    class Step:
        def __call__(self, h, u, w):
            return (w[0] * h[0] + u[0],)

    cell = Cell("object", 1, 1, 1, Step())
    assert copy.deepcopy(cell) is cell
    assert copy.copy(cell) is cell


def test_names_of_the_user_may_be_ours(draw, solve, assert_close, agree):
    names = (("x0", "old_u"), ("u", "M_0_0"), ("V_u_0",))
    cell = Cell(
        "clash", 2, 2, 1, lambda h, u, w: (torch.tanh(w[0] * h[1] + u[0]), h[0] + u[1]), names=names
    )
    problem = draw(cell, 2, 20, 2)
    expected = solve(cell, problem, "reference")
    for engine in ("sequential", "shooting"):
        agree(solve(cell, problem, engine), expected, 2048)
    x, weight, bias = torch.randn(2, 4, 3), torch.randn(4, 3), torch.randn(4)
    params, initial = torch.randn(1, 2), torch.zeros(2, 2, 2)
    outputs, _ = projected_recurrence(cell, x, weight, bias, params, initial)
    u = torch.nn.functional.linear(x, weight, bias).unflatten(-1, (2, 2))
    assert_close(outputs, recurrence(cell, u, params, initial)[0])


def test_what_is_flat_is_not_linear():
    """A sign has no slope and is no line."""
    assert not is_linear(Cell("sign", 1, 1, 0, lambda h, u, w: (torch.sign(h[0]) + u[0],)))
    one = torch.tensor(1.0)
    step = Cell("step", 1, 1, 0, lambda h, u, w: (torch.where(h[0] > 0, one, -one) + u[0],))
    assert not is_linear(step)


def vector_form(step, name="form", states=("h",)):
    return MatrixForm(name, states, ("u",), ("W",), step)


def test_arithmetic_of_vectors_is_that_of_tensors(assert_close):
    """In a small block vectors are tuples of scalars, in a large one tensors."""

    def step(states, inputs, matrices, vectors):
        (h,), (u,), (W,) = states, inputs, matrices
        x = 1 / (2 + h**2) - (-u) / 3 + torch.where(h >= 0, h, 0.5 * h) * (1 - (W @ h))
        return (torch.tanh(torch.where(x <= 1, x, torch.sigmoid(x))),)

    cell = vector_form(step).block(3)
    inputs, params = torch.randn(2, 4, 3, 2).double(), torch.randn(9, 2).double()
    dense, _ = recurrence(cell, inputs, params, engine="dense")
    for engine in ("sequential", "reference"):
        assert_close(dense, recurrence(cell, inputs, params, engine=engine)[0])


@pytest.mark.parametrize("size", [2, 9])
@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda s, u, W, v: s[0] + u[0], "must return a tuple of 1 vectors.*got a "),
        (lambda s, u, W, v: (s[0], u[0]), "must return a tuple of 1 vectors.*got 2 values"),
    ],
)
def test_a_step_in_matrix_form_that_returns_something_else(size, step, message):
    cell = vector_form(step).block(size)
    with pytest.raises(ValueError, match=message):
        recurrence(cell, torch.zeros(1, 2, size, 1), torch.zeros(size**2, 1))


def test_errors_of_a_matrix_form_and_a_cell():
    with pytest.raises(ValueError, match=r"states of 'form' must be a tuple of names; got \['h'\]"):
        vector_form(lambda *_: None, states=["h"])
    with pytest.raises(ValueError, match="step of cell 'none' must be a function; got None"):
        Cell("none", 1, 1, 1, None)
    with pytest.raises(ValueError, match="got n=1, m='1', p=0"):
        Cell("text", 1, "1", 0, lambda h, u, w: h)
    with pytest.raises(ValueError, match="cell must be a tsrnn.kernels.Cell; got 'rnn'"):
        projected_recurrence("rnn", *[torch.zeros(1)] * 5)
