"""Cells of one's own: traced, compiled and differentiated, or refused with the reason."""

import pytest
import torch

from tsrnn.kernels import Cell, cells, recurrence


def min_gru(h, u, w):
    z = torch.sigmoid(u[0])
    return ((1 - z) * h[0] + z * u[1],)


def coupled_gru(h, u, w):
    """GRU of Danieli et al. (2025): diagonal, z gates the candidate."""
    z = torch.sigmoid(u[0] + w[0] * h[0])
    r = torch.sigmoid(u[1] + w[1] * h[0])
    candidate = torch.tanh(u[2] + w[2] * (r * h[0]))
    return ((1 - z) * h[0] + z * candidate,)


def peephole_lstm(h, u, w):
    """LSTM of Danieli et al. (2025): coupled gates, the output gate sees the new cell."""
    c, y = h
    f = torch.sigmoid(u[0] + w[0] * y + w[3] * c)
    new = f * c + (1 - f) * torch.tanh(u[1] + w[1] * y)
    o = torch.sigmoid(u[2] + w[2] * y + w[4] * new)
    return new, o * torch.tanh(new)


def lem(h, u, w):
    """LEM of Rusch et al. (2022) with one pair (z, y) a unit."""
    y, z = h
    slow, fast = torch.sigmoid(w[0] * y + u[0]), torch.sigmoid(w[1] * y + u[1])
    z = (1 - slow) * z + slow * torch.tanh(w[2] * y + u[2])
    return (1 - fast) * y + fast * torch.tanh(w[3] * z + u[3]), z


def rotation(h, u, w):
    """LRU of Orvieto et al. (2023): a complex number times the state."""
    return w[0] * h[0] - w[1] * h[1] + u[0], w[1] * h[0] + w[0] * h[1] + u[1]


def softplus(h, u, w):
    """Its derivative needs the input, not only the new state."""
    return (torch.log(1 + torch.exp(u[0] + w[0] * h[0])),)


def garch(h, u, w):
    """Variance of a GARCH(1, 1) process given its values."""
    return (w[0] ** 2 + w[1] ** 2 * u[0] ** 2 + torch.abs(w[2]) * torch.abs(h[0]),)


def leaky(h, u, w):
    x = u[0] + w[0] * h[0]
    return (torch.where(x > 0, x, 0.1 * x),)


def shifted(h, u, w):
    """Delay line: a field that is an old one, one that is an input, one that is constant."""
    return u[0], h[0], torch.full_like(h[0], 0.25), h[2] * u[0]


CELLS = [
    Cell("min_gru", 1, 2, 0, min_gru),
    Cell("coupled_gru", 1, 3, 3, coupled_gru),
    Cell("peephole_lstm", 2, 3, 5, peephole_lstm),
    Cell("lem", 2, 4, 4, lem),
    Cell("lru", 2, 2, 2, rotation),
    Cell("softplus", 1, 1, 1, softplus),
    Cell("garch", 1, 1, 3, garch),
    Cell("leaky", 1, 1, 1, leaky),
    Cell("shifted", 4, 1, 0, shifted),
    Cell("power", 1, 0, 1, lambda h, u, w: (w[0] ** 2 * torch.sin(h[0]),)),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_own_cells(cell, dtype, draw, check):
    problem = draw(cell, 4, 6, 19, dtype)
    for lengths in (None, [6, 0, 3, 1]):
        check(cell, problem, "sequential", lengths, roundings=128)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_gradients_of_own_cells_are_those_of_finite_differences(cell, draw):
    leaves = [t.requires_grad_() for t in draw(cell, 2, 4, 2)[:3]]
    assert torch.autograd.gradcheck(
        lambda *args: recurrence(cell, *args, lengths=[4, 2], engine="sequential"), leaves
    )


def test_a_cell_may_be_first_met_without_gradients(draw, solve, assert_close):
    cell = Cell("first_met", 1, 1, 1, lambda h, u, w: (torch.tanh(w[0] * h[0]) + 0.5 * u[0],))
    problem = draw(cell)
    with torch.inference_mode():
        states, _ = recurrence(cell, *problem[:3], engine="sequential")
    expected = solve(cell, problem, "reference")
    assert_close(states.clone(), expected["states"])
    results = solve(cell, problem, "sequential")
    assert_close(results["g_params"], expected["g_params"])


def test_a_cell_may_be_first_met_under_another_default_device(draw, assert_close):
    def step(h, u, w):
        return (w[0] * h[0] + torch.full_like(u[0], 0.25) * u[0],)

    cell = Cell("elsewhere", 1, 1, 1, step)
    problem = draw(cell)[:3]
    with torch.device("meta"):
        states, _ = recurrence(cell, *problem, engine="sequential")
    assert_close(states, recurrence(cell, *problem, engine="reference")[0])


def test_constants_are_rounded_to_the_format(assert_close):
    cell = Cell("constants", 1, 1, 0, lambda h, u, w: (h[0] * 1e300 + u[0] / 3 + 1e-300,))
    inputs, params = torch.ones(1, 1, 1, 1), torch.ones(0, 1)
    states, _ = recurrence(cell, inputs, params, torch.ones(1, 1, 1), engine="sequential")
    assert states.item() == float("inf")
    with_zero, _ = recurrence(cell, inputs.double(), params.double(), engine="sequential")
    assert with_zero.item() == 1 / 3


def step_of(function):
    return lambda h, u, w: (function(h[0], u[0]),)


PARAMETER = torch.tensor(0.5, requires_grad=True)
FORBIDDEN = {
    "no compiled form": (step_of(torch.atan2), "'atan2', which has no compiled form. Write it"),
    "fused": (step_of(lambda h, u: torch.nn.functional.gelu(h + u)), "'gelu'"),
    "its gradient": (step_of(lambda h, u: torch.clamp(h, 0, 1)), "'clamp'"),
    "other dtype": (step_of(lambda h, u: h.float()), "'_to_copy'"),
    "if": (lambda h, u, w: (u[0] if h[0] > 0 else h[0],), r"Write torch\.where\(condition, a, b\)"),
    "float": (step_of(lambda h, u: u * h.detach().item()), "asks for the value of a tensor"),
    "mask": (step_of(lambda h, u: (h > 0) * u), "mul computes with a comparison"),
    "in place": (step_of(lambda h, u: (h * u).add_(u)), "add_ works in place"),
    "argument in place": (step_of(lambda h, u: h.mul_(u)), "'refused'.*in-place"),
    "reduction": (step_of(lambda h, u: (h * u).sum()), "'sum'"),
    "stack": (step_of(lambda h, u: torch.stack([h, u]).sum()), "stack does not give a scalar"),
    "matrix": (step_of(lambda h, u: h.view(1, 1) @ u.view(1, 1)), "does not give a scalar"),
    "random": (step_of(lambda h, u: h + torch.rand_like(u)), "rand_like draws a random number"),
    "dropout": (step_of(lambda h, u: torch.nn.functional.dropout(h)), "draws a random number"),
    "rounding": (step_of(lambda h, u: torch.div(h, u, rounding_mode="floor")), "rounding_mode"),
    "alpha": (step_of(lambda h, u: torch.add(h, u, alpha=2)), "add takes alpha"),
    "parameter": (step_of(lambda h, u: h * PARAMETER + u), "pass it in params"),
    "list": (lambda h, u, w: [h[0]], "must return a tuple of n=1 tensors.*got a list"),
    "tensor": (lambda h, u, w: h[0], "must return a tuple of n=1 tensors.*got a Tensor"),
    "too many": (lambda h, u, w: (h[0], u[0]), "must return a tuple of n=1 tensors.*got 2 values"),
    "number": (lambda h, u, w: (0.0,), "field 0 of the new state.*got float"),
    "truth": (lambda h, u, w: (h[0] > 0,), r"field 0 of the new state.*got torch\.bool"),
}


@pytest.mark.parametrize(("step", "message"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_what_cannot_be_compiled_is_refused(step, message):
    cell = Cell("refused", 1, 1, 0, step)
    with pytest.raises(ValueError, match=message) as caught:
        recurrence(cell, torch.rand(1, 2, 1, 3), torch.rand(0, 3), engine="sequential")
    assert "'refused'" in str(caught.value)


def test_an_error_inside_a_step_is_the_users_own():
    cell = Cell("broken", 1, 1, 0, lambda h, u, w: (h[0] + u[1],))
    with pytest.raises(IndexError):
        recurrence(cell, torch.rand(1, 2, 1, 3), torch.rand(0, 3), engine="sequential")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "needs n >= 1.*got n=0"),
        ({"m": -1}, "got n=1, m=-1"),
        ({"p": -2}, "p=-2"),
        ({"name": "a/b"}, "letters, digits.*got 'a/b'"),
        ({"name": ""}, "letters, digits.*got ''"),
    ],
)
def test_errors_of_a_cell(arguments, message):
    legal = {"name": "cell", "n": 1, "m": 1, "p": 1, "step": min_gru}
    with pytest.raises(ValueError, match=message):
        Cell(**(legal | arguments))


def test_the_para_rnn_cell():
    cell = cells.para_rnn(3, "relu")
    assert (cell.n, cell.m, cell.p) == (3, 3, 9)
    assert cells.para_rnn(3, "relu") is cell
    with pytest.raises(ValueError, match="one of .*'tanh'.*got 'softplus'"):
        cells.para_rnn(2, "softplus")
