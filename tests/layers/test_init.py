"""How parameters are drawn: their distribution, and whose random numbers they use."""

import pytest
import torch
from scipy import stats

from tsrnn.layers import ParaRNN, RecurrentNetwork


def drawn(module, seed=0, **kwargs):
    module.reset_parameters(torch.Generator().manual_seed(seed), **kwargs)
    return module


@pytest.mark.parametrize("block_size", [1, 2, 4])
def test_stable_blocks_are_orthogonal_matrices_times_a_radius(block_size):
    size = 2000 * block_size
    (blocks,) = drawn(ParaRNN(1, size, block_size, dtype=torch.float64)).recurrent_blocks()
    squared = blocks.square().sum((1, 2)) / block_size  # r^2 as ||r Q||_F^2 = d_s r^2
    identity = torch.eye(block_size, dtype=torch.float64)
    torch.testing.assert_close(blocks.mT @ blocks, squared[:, None, None] * identity)
    assert torch.linalg.eigvals(blocks).abs().max() <= 1
    assert stats.kstest(squared.numpy(), "uniform").pvalue > 0.01


def test_stable_blocks_are_uniform_over_rotations_and_reflections():
    (blocks,) = drawn(ParaRNN(1, 4000, 2, dtype=torch.float64)).recurrent_blocks()
    angle = torch.atan2(blocks[:, 1, 0], blocks[:, 0, 0]) / (2 * torch.pi) + 0.5
    assert stats.kstest(angle.numpy(), "uniform").pvalue > 0.01
    rotations = int((torch.linalg.det(blocks) > 0).sum())
    assert stats.binomtest(rotations, len(blocks)).pvalue > 0.01
    (scalars,) = drawn(ParaRNN(1, 4000, 1)).recurrent_blocks()
    assert stats.binomtest(int((scalars > 0).sum()), 4000).pvalue > 0.01


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("block_size", [1, 2, 16])
@pytest.mark.parametrize("init", ["orthogonal", "identity"])
def test_matrices_start_orthogonal_or_as_the_identity(cell, block_size, init):
    rnn = drawn(ParaRNN(1, 16, block_size, 2, cell=cell, init=init, dtype=torch.float64))
    identity = torch.eye(block_size, dtype=torch.float64)
    for layer in rnn.recurrent_blocks():
        for blocks in layer.values() if isinstance(layer, dict) else [layer]:
            assert blocks.shape == (16 // block_size, block_size, block_size)
            expected = identity.expand_as(blocks)
            torch.testing.assert_close(blocks.mT @ blocks, expected)
            assert torch.equal(blocks, expected) == (init == "identity")


def test_orthogonal_matrices_are_uniform_over_all_of_them():
    (blocks,) = drawn(
        ParaRNN(1, 8000, 4, init="orthogonal", dtype=torch.float64)
    ).recurrent_blocks()
    # A column of a Haar matrix is uniform on the sphere: its squared entries are beta variables.
    for row, column in ((0, 0), (2, 3)):
        squared = blocks[:, row, column].square().numpy()
        assert stats.kstest(squared, stats.beta(0.5, 1.5).cdf).pvalue > 0.01
    assert stats.binomtest(int((torch.linalg.det(blocks) > 0).sum()), len(blocks)).pvalue > 0.01


@pytest.mark.parametrize("init", ["stable", "orthogonal", "identity", "uniform"])
def test_an_ordinary_linear_network_keeps_the_past_as_its_eigenvalues_say(init):
    size, steps = 32, 200
    rnn = ParaRNN(
        1, size, size, init=init, bias=False, nonlinearity="identity", dtype=torch.float64
    )
    (matrix,) = drawn(rnn).recurrent_blocks()
    impulse = torch.zeros(1, steps, 1, dtype=torch.float64)
    impulse[0, 0] = 1.0
    norms = rnn(impulse)[0].detach().square().sum(2).sqrt().squeeze(0)
    if init in ("orthogonal", "identity"):
        torch.testing.assert_close(norms, norms[:1].expand(steps))
    else:
        radius = torch.linalg.eigvals(matrix).abs().max()
        assert norms[-1] < norms[0] * (1.05 * radius) ** (steps - 1)


def test_slow_parameters_are_matrices_that_start_without_expansion():
    for init in ("stable", "orthogonal", "identity"):
        assert len(ParaRNN(1, 4, 2, 3, init=init).recurrent_parameters()) == 3
    assert not ParaRNN(1, 4, 2, 3, init="uniform").recurrent_parameters()


@pytest.mark.parametrize("init", ["stable", "orthogonal", "identity"])
def test_other_parameters_of_the_stable_start(init):
    rnn = drawn(ParaRNN(5, 2000, 2, init=init, dtype=torch.float64))
    bound = 5**-0.5
    scaled = (rnn.weight_ih_l0.detach().flatten() / bound + 1) / 2
    assert stats.kstest(scaled.numpy(), "uniform").pvalue > 0.01
    assert rnn.weight_ih_l0.var().item() == pytest.approx(1 / 15, rel=0.05)
    assert not rnn.bias_l0.any()


@pytest.mark.parametrize("block_size", [1, 4, 100])
def test_the_uniform_start_is_that_of_torch_for_blocks_by_themselves(block_size):
    rnn = drawn(ParaRNN(5, 100, block_size, 2, init="uniform", dtype=torch.float64))
    for name, parameter in rnn.named_parameters():
        fan_in = block_size if name.startswith("weight_hh") else 100
        scaled = (parameter.detach().flatten() * fan_in**0.5 + 1) / 2
        assert stats.kstest(scaled.numpy(), "uniform").pvalue > 0.001


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"init": "chrono", "cell": "lstm"}, "needs chrono_length"),
        ({"init": "chrono", "cell": "lstm", "chrono_length": 2.0}, "above 2; got 2.0"),
        ({"init": "chrono", "chrono_length": 9.0}, "gates, which cell='lstm' and 'gru' have"),
        ({"init": "chrono", "cell": "gru", "chrono_length": 9.0, "bias": False}, "got bias=False"),
        ({"cell": "lstm", "chrono_length": 9.0}, "an argument of init='chrono'"),
    ],
)
def test_chrono_needs_a_gate_and_a_length(kwargs, message):
    with pytest.raises(ValueError, match=message):
        ParaRNN(3, 8, **kwargs)


def network(aggregation):
    return lambda: RecurrentNetwork(ParaRNN(8, 8, 2, 2), 2, aggregation=aggregation, input_size=3)


MAKERS = [
    lambda: ParaRNN(3, 8, 2, 2),
    lambda: ParaRNN(3, 8, 2, 2, init="uniform", bias=False),
    lambda: ParaRNN(3, 8, 8, 2, init="orthogonal"),
    network("linear"),
    network("ffn"),
]


@pytest.mark.parametrize("make", MAKERS)
def test_a_seed_gives_the_same_parameters_and_spares_the_global_one(make):
    layers = [make() for _ in range(3)]
    before = torch.get_rng_state()
    one, other, third = (
        drawn(layer, seed).state_dict() for layer, seed in zip(layers, (7, 7, 8), strict=True)
    )
    assert torch.equal(torch.get_rng_state(), before)
    for name, value in one.items():
        assert torch.equal(value, other[name]), name
        assert torch.equal(value, third[name]) == (not value.any()), name


@pytest.mark.parametrize("make", MAKERS)
def test_made_on_the_meta_device_nothing_is_drawn_from_the_global_generator(make):
    before = torch.get_rng_state()
    with torch.device("meta"):
        module = make()
    assert all(p.is_meta for p in module.parameters())
    drawn(module.to_empty(device="cpu"), 7)
    assert torch.equal(torch.get_rng_state(), before)
    expected = drawn(make(), 7).state_dict()
    for name, value in module.state_dict().items():
        assert torch.equal(value, expected[name]), name


@pytest.mark.parametrize("make", MAKERS)
def test_without_a_generator_the_global_one_is_used_like_in_torch(make):
    torch.manual_seed(3)
    one = make().state_dict()
    torch.manual_seed(3)
    other = make().state_dict()
    for name, value in one.items():
        assert torch.equal(value, other[name]), name


def test_states_stay_bounded_from_the_stable_start():
    rnn = drawn(ParaRNN(1, 64, 2, nonlinearity="identity", dtype=torch.float64))
    impulse = torch.zeros(1, 500, 1, dtype=torch.float64)
    impulse[0, 0] = 1.0
    norms = rnn(impulse)[0].detach().square().sum(2).sqrt().squeeze(0)
    assert (norms.diff() <= 1e-12).all()
    assert norms[-1] > 0
