"""Powers of the Box-Cox transformation against statsmodels."""

import numpy as np
import pandas as pd
import pytest
from statsmodels.base.transform import BoxCox

from tsrnn.preprocessing import boxcox_lambda


def growing(n=120, seed=0):
    rng = np.random.default_rng(seed)
    values = np.exp(0.02 * np.arange(n) + 0.2 * rng.normal(size=n))
    return pd.Series(values, pd.date_range("2010-01", periods=n, freq="MS"), name="y")


@pytest.mark.parametrize("seed", range(4))
def test_guerrero_is_that_of_statsmodels(seed):
    y = growing(seed=seed) ** (seed + 1)
    expected = BoxCox()._est_lambda(y.to_numpy(), method="guerrero", window_length=12)
    np.testing.assert_allclose(boxcox_lambda(y).item(), expected, atol=1e-4)


def test_likelihood_is_that_of_statsmodels():
    y = growing()
    expected = BoxCox()._est_lambda(y.to_numpy(), method="loglik")
    np.testing.assert_allclose(boxcox_lambda(y, method="loglik").item(), expected, atol=1e-4)


def test_the_scale_of_the_data_does_not_matter():
    y = growing()
    for method in ("guerrero", "loglik"):
        powers = [boxcox_lambda(scale * y, method=method).item() for scale in (1e-6, 1.0, 1e6)]
        np.testing.assert_allclose(powers, powers[1], atol=1e-4)


@pytest.mark.parametrize("method", ["guerrero", "loglik"])
def test_far_away_the_power_goes_on_to_its_bound(method):
    """Values that are skewed to the right at a level that grows need an ever lower power."""
    skewed = np.exp(np.random.default_rng(0).normal(size=120) / 3)
    powers = [boxcox_lambda(pd.Series(skewed + c), 4, method).item() for c in (1e2, 1e5, 1e8)]
    np.testing.assert_allclose(powers, -1, atol=1e-3)


def test_a_row_a_series_and_nothing_of_constant_or_short_ones():
    frame = pd.DataFrame({"y": growing(), "constant": 3.0, "short": growing()})
    frame.loc[frame.index[10:], "short"] = np.nan
    powers = boxcox_lambda(frame, bounds=(0, 1))
    assert powers.index.tolist() == ["y", "constant", "short"]
    assert 0 <= powers["y"] <= 1
    assert powers[1:].isna().all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"bounds": (1, 1)}, "low < high"), ({"method": "mle"}, "method must be"), ({}, "'y' is -2")],
)
def test_bad_calls_are_refused(arguments, words):
    y = growing()
    y.iloc[3] = -2.0
    with pytest.raises(ValueError, match=words):
        boxcox_lambda(y, **arguments)
