"""What each part of a forecast brings, and networks that are dropped where they bring nothing."""

import numpy as np
import pandas as pd
import pytest
import torch

import tsrnn
from tsrnn import ParaRNNForecaster
from tsrnn.datasets import load_elec_equip, load_nile, threshold_autoregression
from tsrnn.forecasters import _gain
from tsrnn.interpret import UninformativeNetworkError, recurrence_features

SMALL = {"prior": None, "hidden_size": 8, "n_layers": 1, "max_epochs": 5, "random_state": 0}


def daily(y):
    return pd.Series(y, pd.date_range("2000", periods=len(y), freq="D"), name="y")


def test_too_few_origins_and_no_variation_have_no_test():
    """With a network whose errors are those of the linear path, or seven origins."""
    rng = np.random.default_rng(0)
    for origins, gain in ((50, 0.0), (7, rng.normal(size=7)), (8, rng.normal(size=8))):
        losses, place = _gain.PartLosses(origins, 1), torch.arange(origins)
        errors = 3.0 + torch.zeros(origins, 1, 1)
        known = torch.ones_like(errors, dtype=torch.bool)
        losses.add("linear path", place, errors, known)
        losses.add(
            "model", place, errors + torch.tensor(gain * np.ones(origins))[:, None, None], known
        )
        tested = losses.tests().loc[("all", "model")]
        assert np.isfinite(tested["p_value"]) == (origins == 8)


def test_the_table_has_the_gains_of_the_validation_errors():
    model = ParaRNNForecaster(horizon=6, network=True, **SMALL).fit(load_elec_equip())
    tests, rmse = model.fitted_.tests, model.validation_
    assert tests.index.unique("step").tolist() == [*_gain.tested_steps(6), "all"]
    for step in _gain.tested_steps(6):
        gain = 1 - (rmse["linear path"][step] / rmse["level"][step]) ** 2
        assert tests.loc[(step, "linear path"), "gain"] == pytest.approx(gain, abs=1e-4)
    page = str(model.summary())
    assert "p(linear)" in page
    assert "Diebold and Mariano" in page


@pytest.fixture(scope="module")
def noise():
    return daily(np.random.default_rng(0).normal(size=400))


def test_a_network_that_does_not_help_is_dropped(monkeypatch):
    y, _ = threshold_autoregression(1500, 0)
    series, arguments = daily(y), SMALL | {"horizon": 1, "season_length": 1}
    kept = ParaRNNForecaster(network=True, **arguments).fit(series)
    alone = ParaRNNForecaster(network=False, **arguments).fit(series)
    assert (alone.best_epoch_, alone.history_) == (0, [])
    assert kept.network_active_
    # A network that helps is dropped as well where as much is asked of it.
    monkeypatch.setattr(_gain, "LEAST_STATISTIC", 1e9)
    dropped = ParaRNNForecaster(**arguments).fit(series)
    assert not dropped.network_active_
    assert dropped.fitted_.tests.equals(kept.fitted_.tests)
    pd.testing.assert_frame_equal(dropped.predict(4, level=[80]), alone.predict(4, level=[80]))
    with pytest.raises(UninformativeNetworkError, match="network=True keeps it"):
        recurrence_features(dropped)
    assert "it was dropped" in dropped.summary().composition
    with pytest.raises(UninformativeNetworkError, match="network=False"):
        recurrence_features(alone)


@pytest.mark.slow
def test_a_network_that_helps_is_kept():
    y, mean = threshold_autoregression(4000, 0)
    series = daily(y)
    arguments = {"horizon": 1, "prior": None, "season_length": 1, "random_state": 0}
    model = ParaRNNForecaster(**arguments).fit(series[:2000])
    linear = ParaRNNForecaster(network=False, **arguments).fit(series[:2000])
    assert model.network_active_
    assert not model.settings_.local_level  # thresholds are where they are
    errors = [
        np.mean((m.predict_rolling(series[2000:])["y"].to_numpy() - y[2000:]) ** 2)
        for m in (model, linear)
    ]
    bayes = np.mean((y - mean)[2000:] ** 2)
    assert errors[0] < errors[1] - 0.05 * bayes


def test_series_that_go_somewhere_keep_the_local_level():
    walk = daily(np.random.default_rng(1).normal(size=1500).cumsum())
    model = ParaRNNForecaster(horizon=2, network=False, **SMALL).fit(walk)
    assert model.settings_.local_level
    with pytest.raises(TypeError, match="local_level must be True, False"):
        ParaRNNForecaster(horizon=2, local_level="no", **SMALL).fit(walk)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"network": "yes"}, 'True, False or "auto"'),
        ({"network": 1}, 'True, False or "auto"'),
        ({"network": False, "local_level": False, "linear_path": False}, "Leave one of them out"),
        ({"network": False, "intervals": "quantile"}, "learned by the network"),
    ],
)
def test_bad_choices_are_refused(noise, arguments, words):
    with pytest.raises((TypeError, ValueError), match=words):
        ParaRNNForecaster(horizon=2, **(SMALL | arguments)).fit(noise)


def test_tests_and_rows_go_to_file(tmp_path):
    model = ParaRNNForecaster(horizon=3, prior=None, hidden_size=4, max_epochs=1).fit(load_nile())
    path = tmp_path / "model.tsrnn"
    model.save(path)
    loaded = tsrnn.load(path)
    pd.testing.assert_frame_equal(loaded.fitted_.tests, model.fitted_.tests)
    assert str(loaded.summary()) == str(model.summary())
