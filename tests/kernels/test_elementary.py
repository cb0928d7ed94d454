"""Compiled elementary functions: errors in units in the last place, and the special values."""

import functools
import itertools

import mpmath
import numpy as np
import pytest
import torch

from tsrnn.kernels import Cell, recurrence
from tsrnn.kernels._graph import OPERATIONS

DTYPES = (np.float32, np.float64)
EDGES = (0.0, np.inf, -np.inf, np.nan)
# Largest error in units in the last place. sin, cos and pow are the C library's.
BOUNDS = {
    "tanh": 2.6, "sigmoid": 2.6, "exp": 1.1, "expm1": 2.0, "sqrt": 0.5,
    "log": 1.0, "sin": 2.0, "cos": 2.0,
}  # fmt: skip
EXACT = {
    "tanh": mpmath.tanh,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "exp": mpmath.exp,
    "expm1": mpmath.expm1,
    "sqrt": mpmath.sqrt,
    "log": mpmath.log,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
}
UNARY = {
    "neg": torch.neg, "relu": torch.relu, "sign": torch.sign, "sgn": torch.sgn,
    "abs": torch.abs, "square": torch.square, "reciprocal": torch.reciprocal,
}  # fmt: skip
BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div,
    "rsub": torch.rsub,
}  # fmt: skip
COMPARISONS = {name: getattr(torch, name) for name in ("gt", "ge", "lt", "le", "eq", "ne")}
POWERS = (-2.0, -1.0, 0.5, 1.0, 2.0, 3.0)
BACKWARD = {"tanh_backward", "sigmoid_backward", "threshold_backward"}  # of tanh, sigmoid, relu


def choice(compare):
    return lambda a, b: torch.where(compare(a, b), a, b)


def power(exponent):
    return lambda a: a**exponent


# Each group is one cell, a field a function: they are compiled together.
GROUPS = {
    "rounded": {name: getattr(torch, name) for name in BOUNDS},
    "exact": UNARY,
    "arithmetic": BINARY,
    "choices": {name: choice(compare) for name, compare in COMPARISONS.items()},
    "powers": {exponent: power(exponent) for exponent in POWERS},
}
POSITIVE = {"sqrt", "log", 0.5}


def points(dtype, positive=False):
    """Numbers of every size, denser where exponentials change, and the special ones."""
    tiny, huge = (1.2e-38, 3e38) if dtype == np.float32 else (2.3e-308, 1e308)
    sizes = np.exp(np.linspace(np.log(tiny), np.log(huge), 401))
    limit = 110 if dtype == np.float32 else 760
    x = np.concatenate([
        sizes, -sizes, np.linspace(-limit, limit, 801), np.linspace(-1, 1, 401),
        [1e-30, -1e-30, 88.5, 88.8, -87.5, -103.0, 709.5, 709.8, -745.0], EDGES,
    ]).astype(dtype)  # fmt: skip
    return np.abs(x) if positive else x


def flushed(values, dtype):
    """Zero for what is below the smallest normal number."""
    with np.errstate(invalid="ignore"):  # NaN among exact numbers
        return np.where(np.abs(values) < np.finfo(dtype).tiny, 0.0, values)


def arguments(group, name, dtype):
    x = points(dtype, positive=name in POSITIVE)
    if group not in ("arithmetic", "choices"):
        return (x,)
    y = np.random.default_rng(0).permutation(x)
    # Comparisons also meet equal numbers.
    return x, np.where(np.arange(len(x)) % 3 == 0, x, y) if group == "choices" else y


def run(functions, columns):
    """Values of functions of their own arguments, and the gradients of the values' sums."""
    starts = np.cumsum([0, *(len(columns[name]) for name in functions)])

    def step(h, u, w):
        parts = (u[lo:hi] for lo, hi in itertools.pairwise(starts))
        return tuple(f(*part) for f, part in zip(functions.values(), parts, strict=True))

    cell = Cell("elementary", n=len(functions), m=int(starts[-1]), p=0, step=step)
    rows = np.stack([row for name in functions for row in columns[name]])
    inputs = torch.from_numpy(rows)[None, None].requires_grad_()
    params = inputs.new_zeros(0, inputs.shape[3])
    states, _ = recurrence(cell, inputs, params, engine="sequential")
    states.sum().backward()
    values, gradients = states.detach()[0, 0].numpy(), inputs.grad[0, 0].numpy()
    return {
        name: (values[i], gradients[starts[i] : starts[i + 1]]) for i, name in enumerate(functions)
    }


@functools.cache
def compiled(group, dtype):
    """Values and gradients of a group's functions by name."""
    functions = GROUPS[group]
    return run(functions, {name: arguments(group, name, dtype) for name in functions})


def oracle(group, name, dtype):
    """Arguments, and torch's values and gradients."""
    columns = arguments(group, name, dtype)
    leaves = [torch.from_numpy(column).requires_grad_() for column in columns]
    values = GROUPS[group][name](*leaves)
    values.sum().backward()
    gradients = [flushed(leaf.grad.numpy(force=True), dtype) for leaf in leaves]
    return flushed(values.numpy(force=True), dtype), gradients


def exact(name, x, dtype):
    """Values as exact numbers: from double precision, or from mpmath for double precision."""
    with np.errstate(all="ignore"):
        special = getattr(torch, name)(torch.from_numpy(x).double()).numpy()
    if dtype == np.float32:
        return flushed(special, dtype)
    # Beyond 1000 exponentials have reached their limits.
    largest = np.inf if name in ("sqrt", "log", "sin", "cos") else 1000.0
    usual = np.isfinite(x) & (x != 0) & (np.abs(x) < largest)
    with mpmath.workprec(1200):
        values = np.array([
            EXACT[name](mpmath.mpf(float(v))) if ok else s
            for v, s, ok in zip(x, special, usual, strict=True)
        ], dtype=object)  # fmt: skip
        return flushed(values, dtype)


@pytest.mark.few("exp", "tanh", "sigmoid")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BOUNDS)
def test_errors_in_units_in_the_last_place(name, dtype):
    (x,) = arguments("rounded", name, dtype)
    values, _ = compiled("rounded", dtype)[name]
    truth = exact(name, x, dtype)
    with np.errstate(over="ignore"):
        expected = np.array([dtype(float(v)) for v in truth])
    finite = np.isfinite(expected) & np.isfinite(values)
    np.testing.assert_array_equal(values[~finite], expected[~finite])
    pairs = zip(values[finite], truth[finite], strict=True)
    distance = np.array([abs(float(mpmath.mpf(float(a)) - b)) for a, b in pairs])
    errors = distance / np.spacing(np.abs(expected[finite]))
    worst = errors.argmax()
    assert errors[worst] <= BOUNDS[name] + 1e-6, (x[finite][worst], values[finite][worst])


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "exp", "expm1"])
def test_errors_at_every_thousandth_number(name):
    first, last = (int(np.float32(x).view(np.int32)) for x in (1e-10, 100.0))
    x = np.arange(first, last, 997, dtype=np.int32).view(np.float32)
    x = np.concatenate([x, -x])
    values, _ = run({name: getattr(torch, name)}, {name: (x,)})[name]
    expected = flushed(getattr(torch, name)(torch.from_numpy(x).double()).numpy(), np.float32)
    usual = np.abs(expected) < np.finfo(np.float32).max
    units = np.spacing(np.abs(expected[usual]).astype(np.float32)).astype(np.float64)
    errors = np.abs(values[usual] - expected[usual]) / units
    assert errors.max() <= BOUNDS[name], x[usual][errors.argmax()]


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values(dtype):
    inf, nan = np.inf, np.nan
    for group, name, expected in (
        ("rounded", "tanh", [0, 1, -1, nan]),
        ("rounded", "sigmoid", [0.5, 1, 0, nan]),
        ("rounded", "exp", [1, inf, 0, nan]),
        ("rounded", "expm1", [0, inf, -1, nan]),
        ("exact", "relu", [0, inf, 0, nan]),
    ):
        values, _ = compiled(group, dtype)[name]
        np.testing.assert_array_equal(values[-len(EDGES) :], expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("group", "name"), [(g, name) for g in ("rounded", "exact") for name in GROUPS[g]]
)
def test_derivatives(group, name, dtype):
    _, (gradient,) = compiled(group, dtype)[name]
    _, (expected,) = oracle(group, name, dtype)
    special = ~np.isfinite(expected)
    np.testing.assert_array_equal(gradient[special], expected[special])
    # 1 - y^2 and y (1 - y) cancel near |y| = 1 whatever y's own rounding: compare absolutely.
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(gradient[~special], expected[~special], 8 * eps, 8 * eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("group", "name"), [(g, name) for g in ("exact", "arithmetic", "choices") for name in GROUPS[g]]
)
def test_functions_without_rounding_of_their_own(group, name, dtype):
    values, gradients = compiled(group, dtype)[name]
    expected, expected_gradients = oracle(group, name, dtype)
    np.testing.assert_array_equal(values, expected)
    if group == "exact":  # with gradients in `test_derivatives`
        return
    rtol = 4 * np.finfo(dtype).eps if group == "arithmetic" else 0
    for gradient, other in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(gradient, other, rtol, 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", POWERS)
def test_powers(exponent, dtype):
    values, (gradient,) = compiled("powers", dtype)[exponent]
    expected, (expected_gradient,) = oracle("powers", exponent, dtype)
    eps = np.finfo(dtype).eps
    small = 3 * np.finfo(dtype).tiny  # a power that has become zero, times the exponent
    np.testing.assert_allclose(values, expected, 4 * eps, small)
    np.testing.assert_allclose(gradient, expected_gradient, 4 * eps, small)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_number_to_a_variable_power(dtype):
    x = np.linspace(-30, 30, 301).astype(dtype)
    values, (gradient,) = run({"power": lambda a: 2**a}, {"power": (x,)})["power"]
    np.testing.assert_allclose(values, 2.0 ** x.astype(np.float64), 4 * np.finfo(dtype).eps)
    np.testing.assert_allclose(gradient, np.log(2) * values, 8 * np.finfo(dtype).eps)


def test_every_operation_is_tested():
    tested = {*BOUNDS, *UNARY, *BINARY, *COMPARISONS, *BACKWARD, "pow", "where"}
    assert tested == OPERATIONS
