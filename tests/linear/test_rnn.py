"""Difference equations as linear layers: the same numbers, and back again."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.layers import ParaRNN
from tsrnn.linear._as_rnn import DifferenceEquation, equation_of, layer_of

SIZES = {"n": st.integers(1, 3), "m": st.integers(1, 3), "r": st.integers(1, 4)}


def draw_equation(n, m, r, seed):
    draw = np.random.default_rng(seed)
    return DifferenceEquation(
        0.3 * draw.normal(size=(r, n, n)), draw.normal(size=(r, n, m)), draw.normal(size=n)
    )


def by_loop(equation, x):
    """Return h_1, ..., h_T from zero: h_{t+1} takes in x_t and before."""
    r, n, _ = equation.inputs.shape
    h = np.zeros((len(x) + r, n))
    past = np.vstack([np.zeros((r - 1, x.shape[1])), x])
    for t in range(len(x)):
        h[t + r] = equation.intercept
        for i in range(r):
            h[t + r] += equation.recurrent[i] @ h[t + r - 1 - i]
            h[t + r] += equation.inputs[i] @ past[t + r - 1 - i]
    return h[r:]


@settings(max_examples=30, deadline=None)
@given(**SIZES, seed=st.integers(0, 5))
def test_a_layer_follows_its_equation(n, m, r, seed):
    equation = draw_equation(n, m, r, seed)
    x = np.random.default_rng(1).normal(size=(25, m))
    output, _ = layer_of(equation)(torch.from_numpy(x)[None])
    # At the start the equation has its intercept at once, as the layer has.
    np.testing.assert_allclose(
        output[0, :, :n].detach(), by_loop(equation, x), rtol=1e-10, atol=1e-10
    )


@settings(max_examples=30, deadline=None)
@given(**SIZES, seed=st.integers(0, 5))
def test_the_equation_of_a_layer_in_another_basis(n, m, r, seed):
    equation = draw_equation(n, m, r, seed)
    layer = layer_of(equation)
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(n * r, n * r)))[0]
    with torch.no_grad():
        turned = torch.from_numpy(turn)
        layer.weight_hh_l0[..., 0] = turned @ layer.weight_hh_l0[..., 0] @ turned.T
        layer.weight_ih_l0[:] = turned @ layer.weight_ih_l0
        layer.bias_l0[:] = turned @ layer.bias_l0
    found = equation_of(layer, readout=np.eye(n, n * r) @ turn.T)
    for ours, expected in zip(found, equation, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-7, atol=1e-7)


def test_blocks_side_by_side_are_one_equation():
    layer = ParaRNN(1, 4, 2, nonlinearity="identity", dtype=torch.float64)
    x = torch.randn(1, 30, 1, dtype=torch.float64)
    output, _ = layer(x)
    equation = equation_of(layer, readout=np.ones((1, 4)))
    expected = by_loop(equation, x[0].numpy())[:, 0]
    # The layer adds b at every step from a state of zero, the equation its sum from the start:
    # after a shift of the start they follow the same recurrence.
    both = output.sum(-1)[0].detach().numpy() - expected
    residual = both[4:] - sum(equation.recurrent[i, 0, 0] * both[3 - i : -1 - i] for i in range(4))
    np.testing.assert_allclose(residual, 0, atol=1e-9)


class TestRefusals:
    def test_what_is_no_linear_layer(self):
        with pytest.raises(TypeError, match="must be a tsrnn.layers.ParaRNN; got a GRU"):
            equation_of(torch.nn.GRU(1, 1))
        with pytest.raises(TypeError, match="must be one linear layer"):
            equation_of(ParaRNN(1, 2))

    def test_a_readout_that_does_not_fit(self):
        layer = ParaRNN(1, 3, 3, nonlinearity="identity")
        with pytest.raises(ValueError, match=r"must have shape \(n, 3\)"):
            equation_of(layer, n=2)

    def test_states_that_cannot_be_told_apart(self):
        layer = layer_of(draw_equation(1, 1, 2, 0))
        with torch.no_grad():
            layer.weight_hh_l0.zero_()
        with pytest.raises(ValueError, match="never reach its output"):
            equation_of(layer)
