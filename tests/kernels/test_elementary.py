"""Compiled elementary functions: errors in units in the last place, and the special values."""

import mpmath
import numpy as np
import pytest
import torch

from tsrnn.kernels import Cell, recurrence
from tsrnn.kernels._vector_ir import OPERATIONS

DTYPES = (np.float32, np.float64)
EDGES = (0.0, np.inf, -np.inf, np.nan)
# Largest error in units in the last place. log, sin, cos and pow are the C library's.
BOUNDS = {
    "tanh": 3.0, "sigmoid": 2.0, "exp": 1.0, "expm1": 2.0, "sqrt": 0.5,
    "log": 2.0, "sin": 2.0, "cos": 2.0,
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


def points(dtype, positive=False):
    """Numbers of every size, denser where exponentials change, and the special ones."""
    tiny, huge = (1e-44, 3e38) if dtype == np.float32 else (1e-307, 1e308)
    sizes = np.exp(np.linspace(np.log(tiny), np.log(huge), 401))
    limit = 110 if dtype == np.float32 else 760
    x = np.concatenate([
        sizes, -sizes, np.linspace(-limit, limit, 801), np.linspace(-1, 1, 401),
        [1e-30, -1e-30, 88.5, 88.8, -87.5, -103.0, 709.5, 709.8, -745.0], EDGES,
    ]).astype(dtype)  # fmt: skip
    return np.abs(x) if positive else x


def compiled(function, *arguments):
    """Values of a function of one or two arguments, and the gradient of their sum by each."""
    m = len(arguments)
    cell = Cell("elementary", n=1, m=m, p=0, step=lambda h, u, w: (function(*u),))
    inputs = torch.from_numpy(np.stack(arguments))[None, None].requires_grad_()
    params = inputs.new_zeros(0, inputs.shape[3])
    states, _ = recurrence(cell, inputs, params, engine="sequential")
    states.sum().backward()
    return states.detach().flatten().numpy(), inputs.grad[0, 0].numpy()


def exact(name, x, dtype):
    """Values as exact numbers: from double precision, or from mpmath for double precision."""
    with np.errstate(all="ignore"):
        special = getattr(torch, name)(torch.from_numpy(x).double()).numpy()
    if dtype == np.float32:
        return special
    # Beyond 1000 exponentials have reached their limits.
    largest = np.inf if name in ("sqrt", "log", "sin", "cos") else 1000.0
    usual = np.isfinite(x) & (x != 0) & (np.abs(x) < largest)
    with mpmath.workprec(1200):
        return np.array([
            EXACT[name](mpmath.mpf(float(v))) if ok else s
            for v, s, ok in zip(x, special, usual, strict=True)
        ], dtype=object)  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BOUNDS)
def test_errors_in_units_in_the_last_place(name, dtype):
    x = points(dtype, positive=name in ("sqrt", "log"))
    values, _ = compiled(getattr(torch, name), x)
    truth = exact(name, x, dtype)
    with np.errstate(over="ignore"):
        expected = np.array([dtype(float(v)) for v in truth])
    finite = np.isfinite(expected) & np.isfinite(values)
    np.testing.assert_array_equal(values[~finite], expected[~finite])
    distance = np.array(
        [abs(float(mpmath.mpf(float(a)) - b)) for a, b in zip(values[finite], truth[finite],
                                                             strict=True)]
    )  # fmt: skip
    errors = distance / np.spacing(np.abs(expected[finite]))
    worst = errors.argmax()
    assert errors[worst] <= BOUNDS[name] + 1e-6, (x[finite][worst], values[finite][worst])


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values(dtype):
    x = np.array(EDGES, dtype)
    inf, nan = np.inf, np.nan
    for function, expected in (
        (torch.tanh, [0, 1, -1, nan]),
        (torch.sigmoid, [0.5, 1, 0, nan]),
        (torch.exp, [1, inf, 0, nan]),
        (torch.expm1, [0, inf, -1, nan]),
        (torch.relu, [0, inf, 0, nan]),
    ):
        np.testing.assert_array_equal(compiled(function, x)[0], expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*BOUNDS, *UNARY])
def test_derivatives(name, dtype):
    function = getattr(torch, name)
    x = points(dtype, positive=name in ("sqrt", "log"))
    _, (gradient,) = compiled(function, x)
    leaf = torch.from_numpy(x).requires_grad_()
    function(leaf).sum().backward()
    expected = leaf.grad.numpy(force=True)
    special = ~np.isfinite(expected)
    np.testing.assert_array_equal(gradient[special], expected[special])
    # 1 - y^2 and y (1 - y) cancel near |y| = 1 whatever y's own rounding: compare absolutely.
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(gradient[~special], expected[~special], 8 * eps, 8 * eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_exact_functions_of_one_argument(name, dtype):
    x = points(dtype)
    with np.errstate(all="ignore"):
        expected = UNARY[name](torch.from_numpy(x)).numpy()
    np.testing.assert_array_equal(compiled(UNARY[name], x)[0], expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_arithmetic(name, dtype):
    x = points(dtype)
    y = np.random.default_rng(0).permutation(x)
    values, gradients = compiled(BINARY[name], x, y)
    leaves = [torch.from_numpy(v).requires_grad_() for v in (x, y)]
    expected = BINARY[name](*leaves)
    expected.sum().backward()
    np.testing.assert_array_equal(values, expected.detach().numpy())
    eps = np.finfo(dtype).eps
    for gradient, leaf in zip(gradients, leaves, strict=True):
        np.testing.assert_allclose(gradient, leaf.grad.numpy(), 4 * eps, 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_choose(name, dtype):
    x = points(dtype)
    y = np.where(np.arange(len(x)) % 3 == 0, x, np.random.default_rng(0).permutation(x))

    def choose(a, b):
        return torch.where(COMPARISONS[name](a, b), a, b)

    values, gradients = compiled(choose, x, y)
    leaves = [torch.from_numpy(v).requires_grad_() for v in (x, y)]
    expected = choose(*leaves)
    expected.sum().backward()
    np.testing.assert_array_equal(values, expected.detach().numpy())
    for gradient, leaf in zip(gradients, leaves, strict=True):
        np.testing.assert_array_equal(gradient, leaf.grad.numpy())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", POWERS)
def test_powers(exponent, dtype):
    x = points(dtype, positive=exponent == 0.5)
    values, (gradient,) = compiled(lambda a: a**exponent, x)
    leaf = torch.from_numpy(x).requires_grad_()
    expected = leaf**exponent
    expected.sum().backward()
    eps = np.finfo(dtype).eps
    tiny = np.finfo(dtype).tiny  # products of the C library's powf and torch's round differently
    np.testing.assert_allclose(values, expected.detach().numpy(), 4 * eps, tiny)
    np.testing.assert_allclose(gradient, leaf.grad.numpy(), 4 * eps, tiny)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_number_to_a_variable_power(dtype):
    x = np.linspace(-30, 30, 301).astype(dtype)
    values, (gradient,) = compiled(lambda a: 2**a, x)
    np.testing.assert_allclose(values, 2.0 ** x.astype(np.float64), 4 * np.finfo(dtype).eps)
    np.testing.assert_allclose(gradient, np.log(2) * values, 8 * np.finfo(dtype).eps)


def test_every_operation_is_tested():
    tested = {*BOUNDS, *UNARY, *BINARY, *COMPARISONS, *BACKWARD, "pow", "where"}
    assert tested == OPERATIONS
