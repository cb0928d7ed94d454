"""Sums along a recurrence and their derivatives, against autograd through a plain loop."""

import functools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.kernels import Cell, Lanes, Running, sums
from tsrnn.kernels._graph import COMPARISONS, OPERATIONS
from tsrnn.kernels._jets import _BINARY, _UNARY


def garch_step(state, inputs, params):
    h, e2 = state[:2]
    mu, omega, alpha, beta = params
    h = omega + alpha * e2 + beta * h
    e = inputs[0] - mu
    density = -0.5 * (math.log(2 * math.pi) + h.log() + e * e / h)
    return h, e * e, density, e, 1 / h, 0.5 / h**2


GARCH = Cell(
    "garch_of_tests",
    6,
    1,
    4,
    garch_step,
    names=(("h", "e2", "l", "e", "w_e", "w_h"), ("y",), ("mu", "omega", "alpha", "beta")),
)
PRODUCTS = (("l", None), ("e", "w_e"), ("h", "w_h"))


def many(state, inputs, params):
    """Every operation that has a rule, of values where it is smooth."""
    (x,), (u,), (a, b) = state[:1], inputs, params
    x = 0.3 * torch.tanh(a * x + u) + 0.1 * torch.sin(b * x) - 0.2 * torch.cos(a * b)
    y = torch.exp(0.1 * x * a) + torch.sigmoid(b - x) + torch.expm1(0.1 * x) + x**2 + a**3
    y = y + torch.sqrt(1 + x * x * b * b) + torch.log(2 + x * a) + (2 + a * x).reciprocal()
    y = y + torch.where(u > 0, x * a, b * b * x) + torch.abs(a * x - 3) - torch.relu(a - x)
    y = y / (3 + x * b) - (1 - x) / 4 + torch.square(a * b) - (-x) + 2 - a
    return x, y


MANY = Cell("many_of_tests", 2, 1, 2, many, names=(("x", "y"), ("u",), ("a", "b")))


def by_loop(cell, series, params, initial):
    """Return all fields after every step, (T, n), of one series."""
    state = [*initial, *[params.new_zeros(())] * (cell.n - len(initial))]
    rows = []
    for row in series:
        state = cell.step(tuple(state), tuple(row), tuple(params))
        rows.append(torch.stack(state))
    return torch.stack(rows)


def derivatives(function, params):
    jacobian = torch.autograd.functional.jacobian(function, params)
    total = lambda q: function(q).sum()  # noqa: E731
    hessian = torch.autograd.functional.hessian(total, params)
    return jacobian.numpy(), hessian.numpy()


def draw_garch(n, steps, seed=0):
    draw = np.random.default_rng(seed)
    y = draw.normal(size=(n, steps))
    params = np.column_stack([0.1 * draw.normal(size=n), draw.uniform(0.05, 1, (n, 3)) * 0.5])
    return y, params, draw.uniform(0.5, 2, (n, 2))


@pytest.mark.few("1-1", "16-5", "7-13")
@pytest.mark.parametrize(("n", "steps"), [(1, 1), (1, 40), (7, 13), (16, 5), (35, 9)])
def test_value_score_hessian_and_products_of_a_likelihood(n, steps):
    y, params, initial = draw_garch(n, steps)
    result = sums(GARCH, Lanes(y), params, initial, terms=("l",), products=PRODUCTS)
    for i in {0, n // 2, n - 1}:
        loop = functools.partial(
            by_loop, GARCH, torch.tensor(y[i, :, None]), initial=torch.tensor(initial[i])
        )
        at = torch.tensor(params[i])
        fields = loop(at).numpy()
        scores, hessian = derivatives(lambda q: loop(q)[:, 2], at)  # noqa: B023
        de, _ = derivatives(lambda q: loop(q)[:, 3], at)  # noqa: B023
        dh, _ = derivatives(lambda q: loop(q)[:, 0], at)  # noqa: B023
        close = functools.partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10)
        close(result.value[0, i], fields[:, 2].sum())
        close(result.gradient[0, i], scores.sum(0))
        close(result.hessian[0, i], hessian)
        close(result.products[0, i], scores.T @ scores)
        close(result.products[1, i], de.T @ (de * fields[:, 4:5]))
        close(result.products[2, i], dh.T @ (dh * fields[:, 5:6]))
        close(result.memory[:, i], fields[-1, :2])


def test_every_operation_that_has_a_rule():
    draw = np.random.default_rng(1)
    u, params = draw.normal(size=(3, 6)), draw.uniform(0.3, 1.2, (3, 2))
    result = sums(MANY, Lanes(u), params, np.zeros((3, 1)), terms=("y", "x"))
    for i in range(3):
        loop = lambda q: by_loop(MANY, torch.tensor(u[i, :, None]), q, [torch.tensor(0.0)])  # noqa
        for term, field in enumerate((1, 0)):
            at = torch.tensor(params[i])
            jacobian, hessian = derivatives(lambda q: loop(q)[:, field], at)  # noqa: B023
            np.testing.assert_allclose(result.gradient[term, i], jacobian.sum(0), rtol=1e-10)
            np.testing.assert_allclose(result.hessian[term, i], hessian, rtol=1e-9, atol=1e-11)


def test_every_operation_of_the_language_has_a_rule_or_is_a_gradient():
    without = OPERATIONS - _UNARY.keys() - _BINARY.keys() - COMPARISONS
    assert without == {"tanh_backward", "sigmoid_backward", "threshold_backward"}


def test_an_initial_state_that_depends_on_the_parameters():
    y, params, _ = draw_garch(5, 20, seed=2)
    mu = params[:, 0]
    start = ((y - mu[:, None]) ** 2).mean(1)
    slope, bend = -2 * (y.mean(1) - mu), np.full(5, 2.0)
    result = sums(
        GARCH, Lanes(y), params, np.stack([start, start], 1), terms=("l",),
        d_initial={(0, 0): slope, (1, 0): slope}, dd_initial={(0, 0, 0): bend, (1, 0, 0): bend},
    )  # fmt: skip
    for i in range(5):
        rows = torch.tensor(y[i, :, None])

        def contributions(q):
            first = ((rows[:, 0] - q[0]) ** 2).mean()  # noqa: B023
            return by_loop(GARCH, rows, q, [first, first])[:, 2]  # noqa: B023

        scores, hessian = derivatives(contributions, torch.tensor(params[i]))
        np.testing.assert_allclose(result.gradient[0, i], scores.sum(0), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(result.hessian[0, i], hessian, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("order", [0, 1])
def test_lower_orders_agree_with_the_highest(order):
    y, params, initial = draw_garch(9, 30)
    given = GARCH, Lanes(y), params, initial
    whole, part = sums(*given, terms=("l",)), sums(*given, terms=("l",), order=order)
    np.testing.assert_allclose(part.value, whole.value, rtol=1e-13)
    assert part.hessian is None
    assert part.products is None
    if order:
        np.testing.assert_allclose(part.gradient, whole.gradient, rtol=1e-11, atol=1e-11)
    else:
        assert part.gradient is None


@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 40), steps=st.integers(1, 8), seed=st.integers(0, 9))
def test_a_series_does_not_know_of_its_neighbours(n, steps, seed):
    y, params, initial = draw_garch(n, steps, seed)
    y[0] = np.nan
    together = sums(GARCH, Lanes(y), params, initial, terms=("l",), products=PRODUCTS)
    last = slice(n - 1, n)
    alone = sums(
        GARCH, Lanes(y[last]), params[last], initial[last], terms=("l",), products=PRODUCTS
    )
    np.testing.assert_array_equal(together.gradient[:, last], alone.gradient)
    np.testing.assert_array_equal(together.products[:, last], alone.products)


def test_the_number_of_threads_does_not_matter(threads):
    y, params, initial = draw_garch(100, 200)
    results = []
    for count in (1, 2):
        threads(count)
        results.append(sums(GARCH, Lanes(y), params, initial, terms=("l",)).hessian)
    np.testing.assert_array_equal(*results)


def test_running_lanes_cover_what_is_asked():
    y = np.random.default_rng(0).normal(size=(100, 3))
    running = Running(Lanes(y))
    for units in (np.arange(100), np.arange(0, 100, 2), np.array([3, 70]), np.arange(60)):
        lanes, places = running.covering(units)
        rows = lanes.unpack(lanes.blocks[:, :, 0])
        np.testing.assert_array_equal(rows[:, places].T, y[units])


class TestRefusals:
    def test_unknown_field(self):
        y, params, initial = draw_garch(1, 4)
        with pytest.raises(ValueError, match="'loglik' must be a state field of cell"):
            sums(GARCH, Lanes(y), params, initial, terms=("loglik",))

    def test_shapes(self):
        y, params, initial = draw_garch(3, 4)
        with pytest.raises(ValueError, match=r"params .* must have shape \(3, 4\)"):
            sums(GARCH, Lanes(y), params[:2], initial, terms=("l",))
        with pytest.raises(ValueError, match=r"initial .* must have shape \(3, 2\)"):
            sums(GARCH, Lanes(y), params, initial[:, :1], terms=("l",))
        with pytest.raises(ValueError, match="must have 1 input fields; got 2"):
            sums(GARCH, Lanes(np.ones((3, 4, 2))), params, initial, terms=("l",))
        with pytest.raises(ValueError, match=r"must have shape \(N, T, m\)"):
            Lanes(np.ones((0, 4)))

    def test_an_exponent_that_varies(self):
        step = lambda h, u, w: (h[0] + u[0], (2 + h[0]) ** w[0])  # noqa: E731
        cell = Cell("power_of_tests", 2, 1, 1, step, names=(("h", "l"), ("u",), ("w",)))
        with pytest.raises(ValueError, match="exponent of a power must be a number"):
            sums(cell, Lanes(np.ones((1, 3))), np.ones((1, 1)), np.ones((1, 1)), terms=("l",))


@pytest.mark.parametrize("n", [1, 3, 20])
def test_lanes_keep_no_array_of_their_caller(n):
    series = np.arange(5.0 * n).reshape(n, 5)
    series.flags.writeable = False  # as those of a frame may be
    lanes = Lanes(series)
    series.flags.writeable = True
    series[:] = np.nan
    last = lanes.select(np.array([n - 1]))
    np.testing.assert_array_equal(last.blocks.flatten(), np.arange(5.0) + 5 * (n - 1))
    assert lanes.blocks.isfinite().all()


@pytest.mark.parametrize("order", [-1, 3, None])
def test_orders_that_there_are_not(order):
    cell = Cell("total", 1, 1, 0, lambda h, u, w: (u[0],))
    nothing = np.empty((1, 0))
    with pytest.raises(ValueError, match=f"order must be 0, 1 or 2; got {order!r}"):
        sums(cell, Lanes(np.ones((1, 2))), nothing, nothing, terms=["h0"], order=order)
