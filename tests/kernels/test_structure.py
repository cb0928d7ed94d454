"""A cell's Jacobian and its structure: other iterations, the same states and gradients."""

import dataclasses
import pickle
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.kernels import Cell, cells, recurrence
from tsrnn.kernels import _time_parallel as time_parallel
from tsrnn.kernels._newton import iterate
from tsrnn.layers import ParaRNN

PARALLEL = ("shooting", "newton")


@pytest.fixture(autouse=True)
def _short_chunks(monkeypatch):
    monkeypatch.setattr(time_parallel, "SHORTEST_CHUNK", 3)


def gru_step(state, inputs, params):
    (h,), (u_z, u_r, u_c), (a_z, a_r, a_c) = state, inputs, params
    z, r = torch.sigmoid(u_z + a_z * h), torch.sigmoid(u_r + a_r * h)
    c = torch.tanh(u_c + a_c * (h * r))
    return ((1 - z) * h + z * c,)


def gru_jacobian(state, inputs, params):
    """Equation (8a) of Danieli et al. (2025) with (9)."""
    (h,), (u_z, u_r, u_c), (a_z, a_r, a_c) = state, inputs, params
    z, r = torch.sigmoid(u_z + a_z * h), torch.sigmoid(u_r + a_r * h)
    c = torch.tanh(u_c + a_c * (h * r))
    slope = 1 - c**2
    return (
        (
            (1 - z)
            + (c - h) * (z * (1 - z)) * a_z
            + z * slope * a_c * (r + h * (r * (1 - r)) * a_r),
        ),
    )


def lstm_step(state, inputs, params):
    (h, c), (u_f, u_z, u_o), (a_f, a_z, a_o, c_f, c_o) = state, inputs, params
    f, z = torch.sigmoid(u_f + a_f * h + c_f * c), torch.tanh(u_z + a_z * h)
    new = f * c + (1 - f) * z
    o = torch.sigmoid(u_o + a_o * h + c_o * new)
    return o * torch.tanh(new), new


def lstm_jacobian(state, inputs, params):
    """Equation (8b) of Danieli et al. (2025) with (9), in our order of h and c."""
    (h, c), (u_f, u_z, u_o), (a_f, a_z, a_o, c_f, c_o) = state, inputs, params
    f, z = torch.sigmoid(u_f + a_f * h + c_f * c), torch.tanh(u_z + a_z * h)
    new = f * c + (1 - f) * z
    o, tanh = torch.sigmoid(u_o + a_o * h + c_o * new), torch.tanh(new)
    f_slope, o_slope = f * (1 - f), o * (1 - o)
    j_cc = f + (c - z) * f_slope * c_f
    j_ch = (c - z) * f_slope * a_f + (1 - f) * (1 - z**2) * a_z
    j_hc = (tanh * o_slope * c_o + o * (1 - tanh**2)) * j_cc
    j_hh = tanh * o_slope * (a_o + c_o * j_ch) + o * (1 - tanh**2) * j_ch
    return (j_hh, j_hc), (j_ch, j_cc)


def delay_step(state, inputs, params):
    """A field that does not see the state, one that is an old one, one that is nonlinear."""
    a, b, c = state
    return inputs[0], a, torch.tanh(params[0] * (b + c) + inputs[0])


def delay_jacobian(state, inputs, params):
    _, b, c = state
    slope = params[0] * (1 - torch.tanh(params[0] * (b + c) + inputs[0]) ** 2)
    return (0, 0.0, 0), (1, 0, 0.0), (0, slope, slope)


def root_step(state, inputs, params):
    return (torch.sqrt(params[0] ** 2 + state[0]) + 0 * inputs[0],)


def root_jacobian(state, inputs, params):
    return ((0.5 / torch.sqrt(params[0] ** 2 + state[0]),),)


OWN = {
    "gru": Cell("own_gru", 1, 3, 3, gru_step, jacobian=gru_jacobian, structure="diagonal"),
    "lstm": Cell("own_lstm", 2, 3, 5, lstm_step, outputs=1, jacobian=lstm_jacobian),
    "delay": Cell("own_delay", 3, 1, 1, delay_step, jacobian=delay_jacobian),
    "root": Cell("own_root", 1, 1, 1, root_step, jacobian=root_jacobian),
}
# Structures that leave entries out, but for the last, which has all that there are.
PARTIAL = {
    "rnn": (cells.para_rnn(2), "diagonal"),
    "relu": (cells.para_rnn(4, "relu"), ((0, 3), (1, 2))),
    "gru": (cells.para_gru(2), "diagonal"),
    "lstm": (cells.newton_lstm(2), ((0, 2), (1, 3))),
    "lstm, diagonal": (cells.para_lstm(2), "diagonal"),
    "lem": (cells.lem(), "diagonal"),
    "large": (cells.para_gru(9), "diagonal"),
    "large, in blocks": (cells.para_rnn(10), ((0, 1, 2, 3, 4), (9, 8, 7, 6, 5))),
    "complete": (cells.newton_lstm(), ((1, 0),)),
}


def engines_of(cell):
    return ["newton"] if cell.n > 8 else PARALLEL


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", OWN)
def test_jacobians_of_cells(name, dtype, draw, solve, agree):
    cell = OWN[name]
    traced = dataclasses.replace(cell, jacobian=None, structure="dense")
    for units, lengths in ((2, None), (17, [20, 0, 7])):
        problem = draw(cell, 3, 20, units, dtype)
        if name == "root":
            problem = problem._replace(initial=problem.initial.exp())
        expected = solve(traced, problem, "reference", lengths)
        for engine in PARALLEL:
            agree(solve(cell, problem, engine, lengths), expected, 1024)
            passes = [
                recurrence(each, *problem[:3], lengths, engine, full_output=True)[2].passes
                for each in (cell, traced)
            ]
            # the same iteration, up to a pass that rounding decides
            assert (passes[0] - passes[1]).abs().max() <= 1


@pytest.mark.few("rnn", "gru", "lem", "complete", "large-dtype0")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", PARTIAL)
def test_results_do_not_depend_on_the_structure(name, dtype, draw, solve, agree):
    whole, structure = PARTIAL[name]
    cell = dataclasses.replace(whole, structure=structure)
    for units, lengths in ((2, None), (17, [20, 0, 7])):
        problem = draw(whole, 3, 20, units, dtype)
        expected = solve(whole, problem, "reference", lengths)
        for engine in engines_of(whole):
            agree(solve(cell, problem, engine, lengths), expected, 1024)


@pytest.mark.parametrize("name", ["rnn", "gru", "lstm", "lem"])
@pytest.mark.parametrize("engine", PARALLEL)
def test_gradients_are_those_of_finite_differences(name, engine, draw):
    whole, structure = PARTIAL[name]
    cell = dataclasses.replace(whole, structure=structure)
    leaves = [t.requires_grad_() for t in draw(whole, 2, 7, 2)[:3]]
    assert torch.autograd.gradcheck(
        lambda *args: recurrence(cell, *args, lengths=[7, 2], engine=engine), leaves, fast_mode=True
    )


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_any_groups(data, draw, solve, agree):
    size, groups = data.draw(st.sampled_from([(1, 4), (2, 2), (4, 1), (2, 3), (3, 2)]))
    n = size * groups
    order = data.draw(st.permutations(range(n)))
    structure = tuple(tuple(order[i : i + size]) for i in range(0, n, size))
    whole = cells.para_rnn(n)
    problem = draw(whole, 2, data.draw(st.integers(1, 30)), 3, seed=data.draw(st.integers(0, 9)))
    expected = solve(whole, problem, "sequential")
    cell = dataclasses.replace(whole, structure=structure)
    for engine in PARALLEL:
        agree(solve(cell, problem, engine), expected, 1e4)


@pytest.mark.parametrize("name", PARTIAL)
def test_after_k_passes_the_first_k_steps_are_exact(name, draw, assert_close):
    """Whatever matrix the iteration takes: the first equation has no unknown before it."""
    whole, structure = PARTIAL[name]
    cell = dataclasses.replace(whole, structure=structure)
    inputs, params, initial, *_ = draw(whole, 2, 12, 3)
    exact, _ = recurrence(whole, inputs, params, initial, engine="reference")
    for passes in (1, 4, 11):
        states, _ = iterate(cell, inputs, params, initial, passes)
        assert_close(states[:, :passes], exact[:, :passes], 1024)


def test_quasi_newton_takes_more_passes_and_ends_exactly(draw):
    """Entries that are left out make the error shrink by a factor a pass, not quadratically."""
    whole, passes = cells.para_gru(4), {}
    inputs, params, initial, *_ = draw(whole, 2, 200, 32)
    exact, _ = recurrence(whole, inputs, params, initial, engine="sequential")
    for structure in ("dense", ((0, 1), (2, 3)), "diagonal"):
        cell = dataclasses.replace(whole, structure=structure)
        states, _, convergence = recurrence(
            cell, inputs, params, initial, engine="newton", full_output=True
        )
        torch.testing.assert_close(states, exact, rtol=0, atol=1e-11)
        assert not convergence.fell_back.any()
        passes[structure] = convergence.passes.double().mean().item()
    assert passes["dense"] < passes[((0, 1), (2, 3))] < passes["diagonal"]
    assert passes["dense"] < 7
    assert passes["diagonal"] > 12


def test_a_linear_cell_with_entries_left_out_takes_more_than_one_pass(draw, solve, agree):
    whole = cells.linear(2)
    problem = draw(whole, 2, 30, 5)
    expected = solve(whole, problem, "sequential")
    for engine in ("scan", *PARALLEL):
        for structure, most in (("diagonal", 48), (((0, 1),), 1)):
            cell = dataclasses.replace(whole, structure=structure)
            *_, convergence = recurrence(cell, *problem[:3], engine=engine, full_output=True)
            assert (convergence.passes.max() == 1) == (most == 1)
            agree(solve(cell, problem, engine), expected, 1e4)


def test_what_does_not_converge_is_run_in_time_order(draw):
    cell = dataclasses.replace(cells.para_rnn(2), structure="diagonal")
    inputs, params, initial, *_ = draw(cell, 1, 300, 16)
    expected, _ = recurrence(cell, inputs, 10 * params, initial, engine="sequential")
    states, _, convergence = recurrence(
        cell, inputs, 10 * params, initial, engine="newton", full_output=True
    )
    assert convergence.fell_back.any()
    assert convergence.passes.max() == time_parallel.MAX_QUASI_PASSES
    assert torch.equal(states[0][..., convergence.fell_back[0]],
                       expected[0][..., convergence.fell_back[0]])  # fmt: skip
    assert "lanes run in time order" in convergence.reason


def test_second_derivatives(draw, check_second_derivatives):
    cell = dataclasses.replace(cells.para_rnn(2), structure="diagonal")
    check_second_derivatives(cell, draw(cell, 2, 5, 2), "newton", roundings=1024)


def wrong_gru(state, inputs, params):
    """The derivative with the reset gate forgotten."""
    (h,), (u_z, _, u_c), (a_z, _, a_c) = state, inputs, params
    z, c = torch.sigmoid(u_z + a_z * h), torch.tanh(u_c + a_c * h)
    return (((1 - z) + (c - h) * z * (1 - z) * a_z + z * (1 - c**2) * a_c,),)


def turned(state, inputs, params):
    (a, b), (c, d) = lstm_jacobian(state, inputs, params)
    return (a, c), (b, d)


@pytest.mark.parametrize("engine", PARALLEL)
def test_a_wrong_jacobian_is_named_with_its_entry(engine, draw):
    for n, m, p, step, jacobian, entry in (
        (1, 3, 3, gru_step, wrong_gru, r"\(0, 0\), of the new h0 by the old h0"),
        (2, 3, 5, lstm_step, turned, r"\(0, 1\), of the new h0 by the old h1"),
    ):
        cell = Cell("wrong", n, m, p, step, jacobian=jacobian)
        problem = draw(cell, 1, 30, 2)[:3]
        with pytest.raises(ValueError, match=entry) as caught:
            recurrence(cell, *problem, engine=engine)
        number = r"-?\d+\.?\d*(e-?\d+)?"
        assert re.search(
            rf"is {number} at h0={number}, .*w{p - 1}={number}; the step has {number}\. Correct it",
            str(caught.value),
        )
        recurrence(cell, *problem, engine="sequential")  # takes no Jacobian


def test_entries_outside_the_structure_are_not_compared(draw, check):
    """A quasi-Newton iteration of one's own: what is left out need not be computed."""

    def diagonal(state, inputs, params):
        (j_hh, _), (_, j_cc) = lstm_jacobian(state, inputs, params)
        return (j_hh, 0.0), (0.0, j_cc)

    whole = Cell("lstm_again", 2, 3, 5, lstm_step, jacobian=diagonal)
    problem = draw(whole, 2, 25, 3)
    with pytest.raises(ValueError, match=r"entry \(0, 1\), of the new h0 by the old h1, is 0 at"):
        recurrence(whole, *problem[:3], engine="newton")
    cell = dataclasses.replace(whole, structure="diagonal")
    for engine in PARALLEL:
        check(cell, problem, engine, roundings=1024, oracle="sequential")


def bad_rows(result):
    return Cell("bad", 2, 3, 5, lstm_step, jacobian=lambda h, u, w: result(h))


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda h: ((h[0], h[0]),), r"tuple of n=2 rows, tuples of 2 entries; got \[2\]"),
        (lambda h: ((h[0],), (h[0],)), r"got \[1, 1\]"),
        (lambda h: [(h[0], 1), (1, h[0])], "got list"),
        (lambda h: (h[0], h[1]), r"got \['Tensor', 'Tensor'\]"),
        (lambda h: ((h[0], "x"), (1, 1)), "must be tensors or numbers; got 'x'"),
        (lambda h: ((torch.erf(h[0]), 0), (1, 1)), "'erf', which has no compiled form"),
        (lambda h: ((torch.rand_like(h[0]), 0), (1, 1)), "jacobian of cell 'bad': rand_like draws"),
        (lambda h: ((h[0] if h[0] > 0 else 1, 0), (1, 1)), "jacobian of cell 'bad': if or float"),
    ],
)
def test_results_that_are_no_jacobian(result, message, draw):
    cell = bad_rows(result)
    with pytest.raises(ValueError, match=message):
        recurrence(cell, *draw(cell)[:3], engine="newton")


@pytest.mark.parametrize(
    "structure",
    ["block", None, 2, (), ((0,),), ((0, 1), (2,)), ((0, 1), (1, 2)), ([0], [1], [2]), (0, 1, 2),
     ((0.0,), (1.0,), (2.0,)), ((True,), (0,), (2,)), [[0], [1], [2]]],
)  # fmt: skip
def test_structures_that_are_none(structure):
    message = r"structure of cell 'three' must be one of .* fields 0 to 2 once, such as \(\(0,\)"
    with pytest.raises(ValueError, match=message):
        Cell("three", 3, 1, 1, delay_step, structure=structure)


def test_a_jacobian_must_be_a_function():
    with pytest.raises(ValueError, match="jacobian of cell 'x' must be a function or None; got 3"):
        Cell("x", 3, 1, 1, delay_step, jacobian=3)


def test_a_jacobian_of_large_blocks_is_refused(draw):
    cell = dataclasses.replace(cells.para_rnn(9), jacobian=lambda h, u, w: (h,) * 9)
    with pytest.raises(ValueError, match="more than 8 rows are not. Leave it out; structure is"):
        recurrence(cell, *draw(cell)[:3], engine="newton")
    recurrence(cell, *draw(cell)[:3], engine="dense")


def test_cells_are_told_apart_by_both_and_survive_pickling():
    cell = OWN["lstm"]
    loaded = pickle.loads(pickle.dumps(cell))
    assert loaded == cell
    assert (loaded.jacobian, loaded.groups) == (lstm_jacobian, ((0, 1),))
    plain = dataclasses.replace(cell, jacobian=None)
    diagonal = dataclasses.replace(cell, structure="diagonal")
    assert len({cell, plain, diagonal}) == len({cell.key, plain.key, diagonal.key}) == 3
    assert diagonal.groups == ((0,), (1,))
    assert (plain.has_newton_matrix, cell.has_newton_matrix) == (False, True)


@pytest.mark.parametrize("engine", PARALLEL)
def test_layers_run_them(engine):
    torch.manual_seed(0)
    make = lambda engine: ParaRNN(  # noqa: E731
        2, 6, num_layers=2, cell=dataclasses.replace(cells.para_gru(3), structure="diagonal"),
        engine=engine, dtype=torch.float64,
    )  # fmt: skip
    layer, in_order = make(engine), make("sequential")
    in_order.load_state_dict(layer.state_dict())
    x = torch.randn(3, 40, 2, dtype=torch.float64)
    results = []
    for each in (layer, in_order):
        output, last = each(x, None, [40, 0, 11])
        loss = output.square().sum() + last.sum()
        results.append([output, last, *torch.autograd.grad(loss, list(each.parameters()))])
    for ours, expected in zip(*results, strict=True):
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-11)
