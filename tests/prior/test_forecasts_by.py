"""Forecasts of several prior networks at once: those of each network and unit alone."""

from dataclasses import replace

import numpy as np
import pytest

from tsrnn.prior import forecasts_by, trained_prior

PRIOR = trained_prior()
OTHER = replace(PRIOR, weights={name: 1.1 * array for name, array in PRIOR.weights.items()})
LENGTHS = np.array([30, 17, 44, 9, 30])


def units(missing, seed=0):
    """Units of unequal lengths, and rows before them; NaN where missing."""
    rng = np.random.default_rng(seed)
    season = 5 * np.sin(np.pi * np.arange(44) / 2)
    values = 100 + season + rng.standard_normal((5, 44)).cumsum(1)
    if missing:
        values[0, 3:6] = np.nan
        values[2, 42:] = np.nan  # at the end: further steps from the last observed row
        values[4, 29] = np.nan
    earlier = np.full((5, 20), np.nan)
    earlier[2] = 100 + rng.standard_normal(20)
    return np.where(np.arange(44) < LENGTHS[:, None], values, 0.0), earlier


@pytest.mark.parametrize("autoregression", [True, False])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("season_length", [1, 4])
def test_are_those_of_each_alone(season_length, missing, autoregression):
    priors = [replace(prior, autoregression=autoregression) for prior in (PRIOR, OTHER)]
    values, earlier = units(missing)
    widths = [np.array([1.0, 1.5]), np.array([0.5])]
    together = forecasts_by(priors, values, LENGTHS, season_length, 6, widths, earlier)
    assert len(together) == 2
    assert (together[0].median != together[1].median).all()
    for prior, of_prior, factors in zip(priors, together, widths, strict=True):
        weights = 0.0
        for unit, n in enumerate(LENGTHS.tolist()):
            alone = prior.forecast(
                values[[unit], :n], LENGTHS[[unit]], season_length, 6, factors, earlier[[unit]]
            )
            np.testing.assert_allclose(of_prior.median[unit], alone.median[0], rtol=1e-7)
            ends = of_prior.at([0.1, 0.9])[unit]
            np.testing.assert_allclose(ends, alone.at([0.1, 0.9])[0], rtol=1e-7)
            weights = alone.weights.add(weights, fill_value=0.0)
        np.testing.assert_allclose(
            of_prior.weights, (weights / 5)[of_prior.weights.index], rtol=1e-6, atol=1e-9
        )
