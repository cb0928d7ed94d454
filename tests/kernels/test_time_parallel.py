"""Engines that are parallel in time: the same numbers as in time order, or a counted fall-back."""

import math
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.kernels import Cell, Convergence, cells, recurrence
from tsrnn.kernels import _time_parallel as time_parallel
from tsrnn.kernels._newton import iterate, parallel_reduce
from tsrnn.kernels._time_parallel import Chunks, solve_affine
from tsrnn.kernels._trace import is_linear


@pytest.fixture(autouse=True)
def _short_chunks(monkeypatch):
    monkeypatch.setattr(time_parallel, "SHORTEST_CHUNK", 3)


def engines_of(cell):
    return ["shooting", "newton", *(["scan"] if is_linear(cell) else [])]


@pytest.mark.few("dtype1")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_cell_agrees_with_the_loop(cell, dtype, draw, solve, agree):
    for units, lengths in ((2, None), (17, [20, 0, 7])):
        problem = draw(cell, 3, 20, units, dtype)
        expected = solve(cell, problem, "reference", lengths)
        scale = max(1.0, expected["states"].abs().max().item() ** 2)  # linear cells grow
        for engine in engines_of(cell):
            results = solve(cell, problem, engine, lengths)
            agree(results, expected, 1024 * scale)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_any_shape(data, draw, check):
    batch, steps = data.draw(st.integers(0, 3)), data.draw(st.integers(1, 40))
    cell = data.draw(st.sampled_from([cells.para_rnn(2), cells.newton_lstm(), cells.lru()]))
    lengths = data.draw(st.none() | st.lists(st.integers(0, steps), min_size=batch, max_size=batch))
    problem = draw(
        cell, batch, steps, data.draw(st.integers(1, 20)), seed=data.draw(st.integers(0, 9))
    )
    for engine in engines_of(cell):
        check(cell, problem, engine, lengths, roundings=1e4, oracle="sequential")


@pytest.mark.few("newton")
@pytest.mark.parametrize("engine", ["shooting", "newton"])
def test_gradients_are_those_of_finite_differences(engine, cell, draw):
    leaves = [t.requires_grad_() for t in draw(cell, 2, 7, 2)[:3]]
    assert torch.autograd.gradcheck(
        lambda *args: recurrence(cell, *args, lengths=[7, 2], engine=engine), leaves, fast_mode=True
    )


def strong(cell, scale, steps=512, units=16, dtype=torch.float64):
    """Weights of a scale at which Newton's method has its troubles."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(1, steps, cell.m, units, generator=generator, dtype=dtype)
    return inputs, scale * torch.randn(cell.p, units, generator=generator, dtype=dtype)


@pytest.mark.few("rnn", "gru-1.0", "gru-2.0-shooting")
@pytest.mark.parametrize("engine", ["shooting", "newton"])
@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("make", [cells.para_rnn, cells.para_gru], ids=["rnn", "gru"])
def test_the_answer_is_exact_at_any_scale_of_the_weights(make, scale, engine):
    """Where time order itself is not chaotic, to rounding; else lane by lane in time order."""
    cell = make(2)
    inputs, params = strong(cell, scale)
    expected, _ = recurrence(cell, inputs, params, engine="sequential")
    states, _, convergence = recurrence(cell, inputs, params, engine=engine, full_output=True)
    nudged, _ = recurrence(cell, inputs * (1 + 1e-15), params, engine="sequential")
    conditioning = (nudged - expected).abs().amax((0, 1, 2)) / 1e-15
    error = (states - expected).abs().amax((0, 1, 2))
    assert (error <= 1e-12 * (1 + conditioning)).all()
    assert (convergence.residual[~convergence.fell_back] <= 1e-13).all()


def test_fall_back_is_counted_and_exact():
    cell = cells.para_rnn(2)
    inputs, params = strong(cell, 4.0)
    expected, last = recurrence(cell, inputs, params, engine="sequential")
    states, final, convergence = recurrence(cell, inputs, params, engine="newton", full_output=True)
    lanes = convergence.fell_back[0]
    assert 0 < lanes.sum() < len(lanes)
    assert (convergence.passes[0, lanes] > 0).all()
    torch.testing.assert_close(states[..., lanes], expected[..., lanes], rtol=0, atol=1e-9)
    torch.testing.assert_close(final[..., lanes], last[..., lanes], rtol=0, atol=1e-9)
    assert f"{int(lanes.sum())} run in time order" in str(convergence)


def logistic(r, steps=600):
    """The logistic map, from a guess that is its unstable fixed point."""
    cell = Cell("logistic", 1, 1, 1, lambda h, u, w: (w[0] * h[0] * (1 - h[0]) + 0 * u[0],))
    inputs, params = torch.zeros(1, steps, 1, 1), torch.full((1, 1), r)
    return cell, inputs.double(), params.double(), torch.full((1, 1, 1), 0.3).double()


def reason_of(*problem, engine, **options):
    return recurrence(*problem, engine=engine, full_output=True, **options)[2].reason


@pytest.mark.parametrize("engine", ["shooting", "newton"])
class TestReason:
    def test_none_where_nothing_fell_back(self, engine):
        cell = cells.para_rnn(2)
        assert reason_of(cell, *strong(cell, 0.5), engine=engine) == ""

    def test_an_expanding_recurrence(self, engine):
        """Logistic map at r = 4: log 2, and e^(log 2 T) over the steps between boundaries."""
        reason = reason_of(*logistic(4.0), engine=engine)
        assert "1 of 1 lanes run in time order: the recurrence expands" in reason
        exponent = float(re.search(r"exponent about (\+[\d.]+) a step", reason)[1])
        assert exponent == pytest.approx(math.log(2), abs=0.01)
        steps = int(re.search(r"over (\d+) steps", reason)[1])
        growth = float(re.search(r"grow by e\^([\d.]+)", reason)[1])
        assert growth == pytest.approx(math.log(2) * steps, rel=0.06)
        assert steps == (600 if engine == "newton" else 600 // 200)

    def test_a_marginal_recurrence(self, engine):
        """Feigenbaum's point, where periods have doubled infinitely often."""
        reason = reason_of(*logistic(3.569945671870945), engine=engine)
        assert "neither contracts nor expands (largest Lyapunov exponent about" in reason

    def test_a_recurrence_that_contracts_away_from_the_guess(self, engine):
        """At r = 3.5 the cycle is stable; at the guess, zero, the slope is 3.5."""
        reason = reason_of(*logistic(3.5), engine=engine)
        assert "the recurrence contracts (largest Lyapunov exponent about -0.8" in reason
        assert reason.endswith("but it expands along the first guess (about +1.3 a step).")
        assert math.log(3.5) == pytest.approx(1.3, abs=0.05)

    def test_states_that_are_not_finite(self, engine):
        cell = cells.para_rnn(2)
        inputs, params = strong(cell, 0.5)
        inputs[0, 3, 0, 5] = math.nan
        reason = reason_of(cell, inputs, params, engine=engine)
        assert reason == "1 of 16 lanes run in time order: their states are not finite."

    def test_lanes_and_lengths_and_outputs(self, engine):
        cell, inputs, params, initial = logistic(4.0)
        inputs, initial = inputs.expand(2, -1, -1, 3), initial.expand(2, -1, 3)
        params = torch.tensor([[4.0, 0.5, 0.5]]).double()
        reason = reason_of(
            cell, inputs, params, initial, [600, 300], engine=engine, outputs_only=True
        )
        assert "2 of 6 lanes run in time order: the recurrence expands" in reason


def test_the_reason_of_large_blocks():
    """Newton's method alone runs them in parallel."""
    generator = torch.Generator().manual_seed(0)
    inputs = 0.1 * torch.randn(1, 300, 32, 1, generator=generator, dtype=torch.float64)
    params = 4 * torch.randn(1024, 1, generator=generator, dtype=torch.float64) / 32**0.5
    reason = reason_of(cells.para_rnn(32), inputs, params, engine="newton")
    assert "the recurrence expands" in reason
    assert "over 300 steps" in reason


def test_the_reason_is_part_of_the_text():
    *_, convergence = recurrence(*logistic(4.0), engine="newton", full_output=True)
    assert str(convergence).endswith(convergence.reason)
    assert Convergence(*[torch.zeros(1, 1)] * 3).reason == ""


def test_transforms_have_no_reason():
    cell, inputs, params, initial = logistic(4.0)

    def fallen(r):
        result = recurrence(cell, inputs, params + r, initial, engine="shooting", full_output=True)
        assert result[2].reason == ""
        return result[2].fell_back

    assert torch.vmap(fallen)(torch.tensor([0.0, -0.01]).double()).all()


def test_three_iterations_of_newton_are_silently_wrong_where_ours_are_not():
    """Appendix A of Danieli et al. holds for small recurrent weights."""
    cell = cells.newton_gru()
    errors = []
    for scale in (0.1, 2.0):
        inputs, params = strong(cell, scale, steps=1024, units=64, dtype=torch.float32)
        expected, _ = recurrence(cell, inputs, params, engine="sequential")
        three, _ = iterate(cell, inputs, params, torch.zeros(1, 1, 64), passes=3)
        errors.append((three - expected).abs().nan_to_num(nan=torch.inf).max().item())
        ours, _ = recurrence(cell, inputs, params, engine="newton")
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-4)
    assert errors[0] < 1e-5
    assert errors[1] > 0.1


def test_shooting_needs_fewer_passes_than_newton(draw):
    cell = cells.para_rnn(2)
    inputs, params = strong(cell, 0.7, steps=1024, units=100)
    passes = {
        engine: recurrence(cell, inputs, params, engine=engine, full_output=True)[2].passes
        for engine in ("shooting", "newton")
    }
    assert passes["shooting"].double().mean() < passes["newton"].double().mean()


def test_a_linear_cell_takes_one_pass(draw):
    for engine in ("scan", "shooting"):
        *_, convergence = recurrence(
            cells.lru(), *draw(cells.lru(), 2, 30, 3)[:3], engine=engine, full_output=True
        )
        assert (convergence.passes == 1).all()
        assert not convergence.fell_back.any()


def test_a_linear_cell_whose_products_overflow():
    """A chunk's Jacobian is infinite where its states are not; what it multiplies is zero."""
    cell = cells.linear(1)
    inputs = torch.zeros(1, 40, 1, 2)
    params = torch.tensor([[1e30, 0.5]])
    initial = torch.tensor([[[0.0, 1.0]]])
    expected, _ = recurrence(cell, inputs, params, initial, engine="sequential")
    leaf = initial.clone().requires_grad_()
    states, final = recurrence(cell, inputs, params, leaf, engine="scan")
    assert torch.equal(states, expected)
    final[..., 1].sum().backward()
    assert leaf.grad[0, 0, 1] == 0.5**40


def test_chaos_overflows_nothing(draw):
    """Products of Jacobians grow without bound while the states stay bounded."""
    cell = Cell("logistic", 1, 1, 1, lambda h, u, w: (w[0] * h[0] * (1 - h[0]) + 0 * u[0],))
    inputs, params = torch.zeros(1, 3000, 1, 1), torch.full((1, 1), 3.99)
    initial = torch.full((1, 1, 1), 0.3)
    expected, _ = recurrence(cell, inputs, params, initial, engine="sequential")
    states, _, convergence = recurrence(
        cell, inputs, params, initial, engine="shooting", full_output=True
    )
    assert torch.equal(states, expected)
    assert convergence.fell_back.all()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_goes_the_way_it_goes_in_time_order(value, cell, draw):
    for engine in engines_of(cell):
        inputs, params, initial, *_ = draw(cell, 2, 24, 3)
        inputs[0, 9, 0, 1] = value
        expected = recurrence(cell, inputs, params, initial, engine="sequential")
        results = recurrence(cell, inputs, params, initial, engine=engine, full_output=True)
        for got, wanted in zip(results, expected, strict=False):
            torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-9, equal_nan=True)
        assert results[2].passes.max() <= time_parallel.MAX_PASSES


def test_padding_may_hold_anything(draw):
    cell = cells.para_gru(1)
    inputs, params, initial, *_ = draw(cell, 2, 12, 3)
    leaf = inputs.clone().requires_grad_()
    spoiled = inputs.clone()
    spoiled[1, 5:] = float("nan")
    spoiled.requires_grad_()
    for engine in ("shooting", "newton"):
        gradients = []
        for x in (leaf, spoiled):
            states, final = recurrence(cell, x, params, initial, [12, 5], engine=engine)
            gradients += torch.autograd.grad(states.square().sum() + final.sum(), x)
        assert torch.equal(*gradients)


def _root(h, u, w):
    return (u[0] ** 2 + w[0] ** 2 * torch.sqrt(h[0]),)


@pytest.mark.parametrize("engine", ["shooting", "newton"])
def test_cells_without_a_slope_at_zero_where_sequences_end(engine, draw, solve, agree):
    """States are zero in the padding, and no step may be differentiated there."""
    cell = Cell("root", 1, 1, 1, _root)
    problem = draw(cell, 3, 20, 2)
    problem = problem._replace(inputs=0.5 + problem.inputs.abs(), initial=problem.initial.exp())
    expected = solve(cell, problem, "reference", [20, 0, 7])
    assert all(value.isfinite().all() for value in expected.values())
    agree(solve(cell, problem, engine, [20, 0, 7]), expected, 1024)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_parallel_reduction(n, assert_close):
    generator = torch.Generator().manual_seed(n)
    matrices = 0.5 * torch.randn(2, 13, n, n, 3, generator=generator, dtype=torch.float64)
    offsets = torch.randn(2, 13, n, 3, generator=generator, dtype=torch.float64)
    x, expected = torch.zeros(2, n, 3, dtype=torch.float64), []
    for a, b in zip(matrices.unbind(1), offsets.unbind(1), strict=True):
        x = torch.einsum("bijk,bjk->bik", a, x) + b
        expected.append(x)
    assert_close(parallel_reduce(matrices, offsets), torch.stack(expected, 1))
    assert_close(solve_affine(matrices, offsets, torch.zeros_like(x)), torch.stack(expected, 1))


def test_newton_with_dense_jacobians(draw, check):
    cell = cells.para_gru(9)
    problem = draw(cell, 2, 12, 2)
    check(cell, problem, "newton", [12, 5], roundings=1024)


def test_newton_needs_the_traced_cell_too(draw, assert_close):
    cell = Cell("atan", 1, 1, 1, lambda h, u, w: (torch.atan2(u[0] + w[0] * h[0], 2 + h[0] ** 2),))
    inputs, params, initial, *_ = draw(cell, 2, 9, 3)
    with pytest.raises(ValueError, match="'atan2', which has no compiled form"):
        recurrence(cell, inputs, params, initial, engine="newton")


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 5), st.integers(1, 4), st.booleans(), st.integers(1, 3), st.integers(1, 3))
def test_chunks_are_put_together_as_they_were(count, steps, as_units, batch, units):
    chunks = Chunks(count, steps, as_units)
    x = torch.randn(batch, count * steps, 2, units)
    pieces = chunks.split(x)
    assert pieces.shape[1] == steps
    assert torch.equal(chunks.join(pieces), x)
    starts = torch.randn(batch, count, 2, units)
    flat = chunks.split_boundaries(starts)
    assert torch.equal(chunks.join_boundaries(flat), starts)
    # A boundary stands where the first step of its chunk does.
    first = chunks.split_boundaries(x[:, ::steps])
    assert torch.equal(first, pieces[:, 0])


def test_auto_takes_chunks_for_one_long_series(monkeypatch, draw):
    seen = []
    original = time_parallel.forward
    monkeypatch.setattr(
        time_parallel, "forward", lambda *args: seen.append(args[0].cell.name) or original(*args)
    )
    cell = cells.para_gru(1)
    recurrence(cell, *draw(cell, 1, 65536, 1)[:3])
    assert seen == [cell.name]
    for cheap in (cells.para_rnn(2), cells.lru()):
        recurrence(cheap, *draw(cheap, 1, 65536, 1)[:3])
    recurrence(cell, *draw(cell, 1, 100, 1)[:3])
    recurrence(cell, *draw(cell, 2, 65536, 2)[:3])
    assert len(seen) == 1


def test_newton_counts_its_passes_from_the_guess_of_the_paper(draw):
    """Equation (10): with zero recurrent weights f(0, u) is the answer already."""
    cell = cells.para_rnn(2)
    inputs = draw(cell)[0]
    params = torch.zeros(4, 17, dtype=torch.float64)
    *_, convergence = recurrence(cell, inputs, params, engine="newton", full_output=True)
    assert (convergence.passes == 0).all()
    assert time_parallel.MAX_PASSES >= 3
