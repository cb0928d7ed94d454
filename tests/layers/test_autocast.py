"""Layers behind and before torch's own under `torch.autocast`: float32 values up to rounding."""

import lightning.pytorch as pl
import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tsrnn import ParaRNNForecaster
from tsrnn.datasets import load_nile
from tsrnn.layers import CELLS, LayerChoice, RecurrentNetwork, layer_choice, make_layer

# Every cell in its common form, and the forms whose kernels differ: full matrices, wide inputs.
CHOICES = {cell: layer_choice(cell) for cell in CELLS} | {
    "gru, full": LayerChoice("ParaRNN", {"cell": "gru", "block_size": 8}),
    "lstm, blocks of 4": LayerChoice("ParaRNN", {"cell": "lstm", "block_size": 4}),
    "unequal": LayerChoice("UnequalParaRNN", {"cell": "rnn", "block_size": [1, 3, 4]}),
}
EVERY = pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES.keys())
ROUNDINGS = 8 * torch.finfo(torch.bfloat16).eps  # relative, of a norm


def network_of(choice, input_size=3):
    torch.manual_seed(0)
    layer = make_layer(choice, 12, 8, 2)
    return RecurrentNetwork(layer, 2, input_size=input_size, aggregation="ffn")


def results_of(network, x, hx=None, lengths=None):
    """Outputs, state and gradients as vectors of float32."""
    outputs, state = network(x, hx, lengths)
    loss = outputs.float().square().mean() + state.float().mean()
    gradients = torch.autograd.grad(loss, list(network.parameters()), materialize_grads=True)
    assert all(g.dtype == torch.float32 for g in gradients)
    return outputs.float().flatten(), state.flatten(), torch.cat([g.flatten() for g in gradients])


@EVERY
def test_values_and_gradients_are_those_of_float32_up_to_rounding(choice):
    network, x = network_of(choice), torch.randn(4, 20, 3)
    lengths = [20, 1, 0, 7]
    expected = results_of(network, x, lengths=lengths)
    with torch.autocast("cpu", torch.bfloat16):
        results = results_of(network, x, lengths=lengths)
        state = network(x)[1].detach()
        assert state.dtype == torch.float32  # as it is carried from step to step
        results_of(network, x, state)
        rounded = state.bfloat16()  # of a module before it, as an encoder's
        results_of(network, x.bfloat16(), rounded)
    for value, due in zip(results, expected, strict=True):
        assert (value - due).norm() <= ROUNDINGS * due.norm()
    assert not torch.equal(results[0], expected[0])


class Products(TorchDispatchMode):
    """Dtypes of the factors of matrix products."""

    def __init__(self):
        super().__init__()
        self.dtypes = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.overloadpacket.__name__ in ("mm", "addmm", "bmm", "baddbmm"):
            self.dtypes += [t.dtype for t in args if isinstance(t, torch.Tensor)]
        return function(*args, **(kwargs or {}))


@EVERY
@pytest.mark.parametrize("place", ["first", "behind a linear map"])
def test_every_product_is_rounded_and_results_have_the_dtype_of_the_layer(place, choice):
    torch.manual_seed(0)
    layer = make_layer(choice, 12, 8, 2)
    network = layer if place == "first" else nn.Sequential(nn.Linear(12, 12), layer)
    x = torch.randn(3, 20, 12, requires_grad=True)
    cotangent = torch.randn(3, 20, 8)
    expected = torch.autograd.grad(network(x)[0], x, cotangent)[0]
    with torch.autocast("cpu", torch.bfloat16), Products() as forward:
        output, state = network(x)
    with Products() as backward:
        gradient = torch.autograd.grad(output, x, cotangent)[0]
    assert output.dtype == state.dtype == gradient.dtype == torch.float32
    for products in (forward, backward):
        assert products.dtypes
        assert set(products.dtypes) == {torch.bfloat16}
    # Most entries: a few change much, where a rounding crosses the kink of a perceptron.
    assert (gradient - expected).abs().median() <= ROUNDINGS * expected.abs().median()


@pytest.mark.few("gru")
@pytest.mark.parametrize("kind", ["gru", "lem", "lru"])
def test_compiled_layers_follow_autocast_too(kind):
    torch.manual_seed(0)
    layer, x = make_layer(layer_choice(kind), 12, 8, 2), torch.randn(3, 20, 12)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    with torch.autocast("cpu", torch.bfloat16):
        outputs = [module(x)[0] for module in (layer, compiled)]
        gradients = [
            torch.autograd.grad(output.square().mean(), list(layer.parameters()))
            for output in outputs
        ]
    assert outputs[1].dtype == torch.float32
    for value, due in zip((outputs[1], *gradients[1]), (outputs[0], *gradients[0]), strict=True):
        assert (value - due).norm() <= ROUNDINGS * due.norm()


@pytest.mark.parametrize("cell", ["rnn", "lru"])
def test_a_forecaster_is_fitted_under_autocast(cell):
    series = load_nile()
    model = ParaRNNForecaster(cell=cell, horizon=2, max_epochs=2, random_state=0)
    expected = model.fit(series).predict()["volume"].to_numpy(float)
    with torch.autocast("cpu", torch.bfloat16):
        forecast = model.fit(series).predict()["volume"].to_numpy(float)
    np.testing.assert_allclose(forecast, expected, rtol=0.05)


@EVERY
def test_float16_is_refused_in_words(choice):
    layer, x = make_layer(choice, 12, 8, 1), torch.zeros(1, 2, 12)
    with torch.autocast("cpu", torch.float16):
        for given in (x, x.half()):
            with pytest.raises(ValueError, match="bfloat16, not in float16.*'bf16-mixed'"):
                layer(given)


class Regression(pl.LightningModule):
    """Mean squared error of a network's last output."""

    def __init__(self):
        super().__init__()
        self.network = network_of(layer_choice("lstm"))
        self.losses = []

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.mse_loss(self.network(x)[0][:, -1], y)
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-2)


def test_lightning_trains_in_mixed_precision():
    torch.manual_seed(0)
    x = torch.randn(64, 6, 3)
    y = x[:, -2:, :2].sum(1)
    batches = torch.utils.data.DataLoader(list(zip(x, y, strict=True)), batch_size=64)
    model = Regression()
    pl.Trainer(
        max_epochs=40, precision="bf16-mixed", accelerator="cpu", logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    ).fit(model, batches)  # fmt: skip
    assert model.losses[-1] < 0.3 * model.losses[0]
