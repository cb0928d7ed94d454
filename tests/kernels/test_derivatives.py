"""Derivatives of second and higher order: the backward pass is a recurrence too."""

import pytest
import torch
from torch.autograd import forward_ad

from tsrnn.kernels import Cell, cells, recurrence
from tsrnn.kernels._cpu import time_order
from tsrnn.layers import LEM, ParaRNN

SMOOTH = [
    cells.para_rnn(2),
    cells.linear(2),
    cells.para_gru(1),
    cells.para_gru(2),
    cells.para_lstm(1),
    cells.newton_lstm(),
    cells.lem(),
    cells.lru(),
    Cell("softplus", 1, 1, 1, lambda h, u, w: (torch.log(1 + torch.exp(u[0] + w[0] * h[0])),)),
]


def leaves_of(cell, draw, batch=2, steps=3, units=2):
    return [t.requires_grad_() for t in draw(cell, batch, steps, units)[:3]]


@pytest.mark.few(
    "para_rnn_tanh_2", "para_gru_1", "lem_1-sequential", "lru", "newton_lstm_1-sequential"
)
@pytest.mark.parametrize("engine", ["sequential", "newton"])
@pytest.mark.parametrize("cell", SMOOTH, ids=lambda cell: cell.name)
def test_second_derivatives_are_those_of_finite_differences(cell, engine, draw):
    # Entry by entry for one unit, along random directions for two: a unit does not know of others.
    for lengths, units in (([3, 1], 1), (None, 2)):
        assert torch.autograd.gradgradcheck(
            lambda *args, given=lengths: recurrence(cell, *args, lengths=given, engine=engine),
            leaves_of(cell, draw, units=units),
            fast_mode=units > 1,
        )


@pytest.mark.parametrize("cell", SMOOTH, ids=lambda cell: cell.name)
def test_hessian_vector_products(cell, draw, assert_close):
    """Through long sequences, which finite differences would not survive."""
    products = []
    for engine in ("reference", "sequential"):
        leaves = leaves_of(cell, draw, 3, 40, 5)
        with torch.no_grad():
            leaves[1] *= 0.5  # of a stable recurrence
        states, final = recurrence(cell, *leaves, lengths=[40, 0, 17], engine=engine)
        loss = states.square().sum() + final.sin().sum()
        gradients = torch.autograd.grad(loss, leaves, create_graph=True)
        dot = sum((g * g.detach().cos()).sum() for g in gradients)
        products.append(torch.autograd.grad(dot, leaves))
    for value, expected in zip(products[1], products[0], strict=True):
        assert_close(value, expected, 2048)


@pytest.mark.parametrize("lengths", [None, [5, 0, 9]], ids=["whole", "lengths"])
@pytest.mark.parametrize("cell", SMOOTH, ids=lambda cell: cell.name)
def test_derivatives_of_the_final_state_alone(cell, lengths, draw, assert_close, monkeypatch):
    """No gradient of states is filled with zeros for them."""
    read, original = [], time_order.backward

    def backward(problem, states, g_states, *rest, **kwargs):
        read.append(g_states.shape[2])
        return original(problem, states, g_states, *rest, **kwargs)

    monkeypatch.setattr(time_order, "backward", backward)
    values = []
    for engine in ("reference", "sequential"):
        leaves = leaves_of(cell, draw, 3, 9, 5)
        final = recurrence(cell, *leaves, lengths=lengths, engine=engine)[1]
        plain = torch.autograd.grad(final.sin().sum(), leaves, retain_graph=True)
        again = torch.autograd.grad(final.sin().sum(), leaves, create_graph=True)
        dot = sum((g * g.detach().cos()).sum() for g in again)
        values.append([*plain, *torch.autograd.grad(dot, leaves)])
    for value, expected in zip(values[1], values[0], strict=True):
        assert_close(value, expected, 2048)
    assert read[0] == 0


def test_third_derivatives(draw, assert_close):
    cell = cells.para_rnn(2)
    found = []
    for engine in ("reference", "sequential"):
        value = recurrence(cell, *(leaves := leaves_of(cell, draw, 2, 6, 3)), engine=engine)[0]
        for _ in range(3):
            value = sum(
                g.sin().sum() for g in torch.autograd.grad(value.sum(), leaves, create_graph=True)
            )
        found.append(value.detach())
    assert_close(found[1], found[0], 1024)


def test_the_hessian_of_a_likelihood(draw, assert_close):
    """Parameters of a linear recurrence by torch's own Hessian."""
    cell = cells.linear(1)
    inputs, params, initial, *_ = draw(cell, 1, 30, 2)

    def loss(engine):
        def value(w):
            return recurrence(cell, inputs, w, initial, engine=engine)[0].square().sum().log()

        return torch.autograd.functional.hessian(value, params)

    assert_close(loss("sequential"), loss("reference"), 1024)


def test_second_derivatives_of_a_large_block(draw):
    cell = cells.para_rnn(9)
    leaves = leaves_of(cell, draw, 1, 2, 1)
    assert torch.autograd.gradgradcheck(lambda *args: recurrence(cell, *args), leaves)
    only_params = [t.detach().requires_grad_(i == 1) for i, t in enumerate(leaves)]
    (g,) = torch.autograd.grad(
        recurrence(cell, *only_params)[0].square().sum(), only_params[1], create_graph=True
    )
    assert torch.autograd.grad(g.sum(), only_params[1])[0].isfinite().all()


def test_nan_in_the_padding_stays_there(draw):
    cell = cells.para_gru(1)
    inputs, params, initial = leaves_of(cell, draw)
    with torch.no_grad():
        inputs[1, 1:] = float("nan")
    states, _ = recurrence(cell, inputs, params, initial, lengths=[3, 1])
    gradients = torch.autograd.grad(states.square().sum(), (params, initial), create_graph=True)
    second = torch.autograd.grad(sum(g.square().sum() for g in gradients), (inputs, params))
    assert all(g.isfinite().all() for g in second)


def _dual(function, x):
    with forward_ad.dual_level():
        return function(forward_ad.make_dual(x, torch.ones_like(x)))


TRANSFORMS = {
    "is_grads_batched": lambda f, x: torch.autograd.grad(
        f(x.requires_grad_()), x, torch.ones(2, *f(x).shape), is_grads_batched=True
    ),
    "vectorized": lambda f, x: torch.autograd.functional.jacobian(f, x, vectorize=True),
    "forward-mode": lambda f, x: torch.autograd.functional.jacobian(
        f, x, vectorize=True, strategy="forward-mode"
    ),
    "dual numbers": _dual,
    "dual numbers without autograd": torch.no_grad()(_dual),
    "grad of vmap": lambda f, x: torch.func.grad(
        lambda x: torch.func.vmap(f)(torch.stack([x, x])).sum()
    )(x),
    "jvp": lambda f, x: torch.func.jvp(f, (x,), (torch.ones_like(x),)),
    "grad": lambda f, x: torch.func.grad(lambda x: f(x).sum())(x),
    "jacrev": lambda f, x: torch.func.jacrev(f)(x),
}
ADVICE = r"vectorize=False.*engine='reference'"


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("engine", ["sequential", "newton", "shooting"])
def test_transforms_say_what_to_do_instead(transform, engine, draw):
    cell = cells.para_rnn(2)
    x, params, initial, *_ = draw(cell, 1, 3, 2, torch.float32)

    def states(x, engine=engine):
        return recurrence(cell, x, params, initial, engine=engine)[0]

    with pytest.raises(NotImplementedError, match=ADVICE):
        TRANSFORMS[transform](states, x)
    TRANSFORMS[transform](lambda x: states(x, "reference"), x)  # as the message says


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("layer", [ParaRNN(2, 4), ParaRNN(9, 4), LEM(2, 10)], ids=repr)
def test_transforms_of_layers_too(transform, layer):
    x = torch.ones(1, 3, layer.input_size)
    with pytest.raises(NotImplementedError, match=ADVICE):
        TRANSFORMS[transform](lambda x: layer(x)[0], x)
    torch.autograd.functional.jacobian(lambda x: layer(x)[0], x)


def test_batches_of_second_derivatives_are_refused_too(draw):
    cell = cells.para_rnn(2)
    x, params, initial, *_ = draw(cell, 1, 3, 2, torch.float32)
    x.requires_grad_()
    states, _ = recurrence(cell, x, params, initial)
    (g,) = torch.autograd.grad(states.square().sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match=ADVICE):
        torch.autograd.grad(g, x, torch.ones(2, *g.shape), is_grads_batched=True)
