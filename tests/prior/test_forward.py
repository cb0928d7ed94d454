"""Forecasts of the prior network on arrays against those of the module of torch."""

import numpy as np
import pytest
import torch

from tsrnn.prior import (
    PRIOR_CELLS,
    PriorNetwork,
    SeriesPrior,
    TrainedPrior,
    structural_evidence,
    trained_prior,
)
from tsrnn.prior._forward import ON_ARRAYS, predict, weight_shapes
from tsrnn.prior._network import predict_arrays

LENGTHS = np.array([60, 3, 17, 60, 41])


def drawn(n_layers, hidden_size=6, seed=0):
    """Return a prior network with parameters that are far from zero."""
    torch.manual_seed(seed)
    size = {"hidden_size": hidden_size, "n_layers": n_layers, "width": 8}
    network = PriorNetwork(**size)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.5 * torch.randn_like(parameter)
    return TrainedPrior.of(network, size, "Of a test.")


PRIORS = {
    **{cell: trained_prior(cell=cell) for cell in ON_ARRAYS},
    **{f"{n} layers": drawn(n) for n in (0, 1, 3)},
}


def arguments(season_length, h, every=4):
    rows = SeriesPrior().sample(len(LENGTHS), 60, season_length, 1)
    origins = (np.arange(60) % every == 2) & (np.arange(60) < LENGTHS[:, None])
    evidence = structural_evidence(rows, LENGTHS, origins, season_length, h)
    features, forecasts, deviations, likelihood = (part.astype(float) for part in evidence[:4])
    series, rows = np.nonzero(origins)
    likelihood = np.maximum(likelihood, -1e4)
    return features, series, rows, season_length, forecasts, deviations, likelihood


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize(("season_length", "h"), [(1, 1), (1, 40), (4, 7), (12, 18)])
def test_both_forms_agree_in_double_precision(name, season_length, h):
    prior, given = PRIORS[name], arguments(season_length, h)
    expected = predict_arrays(prior.network.double(), *given)
    del prior.__dict__["network"]  # which is in double precision now
    weights = {name: array.astype(float) for name, array in prior.weights.items()}
    got = predict(weights, *given)
    for field, one, other in zip(got._fields, got, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12, err_msg=field)


def test_large_gaps_are_those_of_torch():
    prior, given = drawn(1), arguments(4, 3)
    prior.weights["head.2.bias"][-50:] += 40.0
    weights = {name: array.astype(float) for name, array in prior.weights.items()}
    got, expected = predict(weights, *given), predict_arrays(prior.network.double(), *given)
    np.testing.assert_allclose(got.quantiles, expected.quantiles, rtol=1e-12)


def test_arguments_stay_as_they_are():
    prior, given = drawn(2), arguments(4, 3)
    copies = [np.copy(part) for part in given]
    weights = {name: array.astype(float) for name, array in prior.weights.items()}
    predict(weights, *given)
    for part, copy in zip(given, copies, strict=True):
        np.testing.assert_array_equal(part, copy)


@pytest.mark.parametrize("size", [{}, {"n_layers": 0}, {"hidden_size": 4, "width": 3}])
def test_shapes_are_those_of_the_module(size):
    state = PriorNetwork(**size).state_dict()
    assert weight_shapes(**size) == {name: tuple(value.shape) for name, value in state.items()}


@pytest.mark.parametrize("cell", PRIOR_CELLS)
def test_networks_on_arrays_are_those_of_the_table(cell):
    prior = trained_prior(cell=cell)
    assert prior.network.cell == cell
    assert prior.state_size == prior.network.state_size
    assert prior.n_parameters == sum(p.numel() for p in prior.network.parameters())
    names = {name: tuple(value.shape) for name, value in prior.network.state_dict().items()}
    assert {name: array.shape for name, array in prior.weights.items()} == names


def test_an_odd_number_of_units_is_refused():
    with pytest.raises(ValueError, match="multiple of 2; got 5"):
        weight_shapes(hidden_size=5)
