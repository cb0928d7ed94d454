"""The input size is that whose linear path forecasts the validation part best."""

import numpy as np
import pandas as pd
import pytest

from tsrnn import ParaRNNForecaster
from tsrnn.forecasters import _linear_path

MONTHLY = (24, 36, 72, 120)


def quick(**changes):
    return ParaRNNForecaster(
        horizon=6, hidden_size=8, n_layers=1, max_epochs=1, refit=False, random_state=0, **changes
    )


def monthly(rows, lag=1, n=1, seed=0):
    """Return autoregressions on one lag, wide."""
    noise = np.random.default_rng(seed).normal(size=(rows + 500, n))
    values = noise.copy()
    for t in range(lag, len(values)):
        values[t] += 0.9 * values[t - lag]
    index = pd.date_range("1950-01-01", periods=rows, freq="MS")
    return pd.DataFrame(values[500:], index=index, columns=list("abcdef"[:n]))


@pytest.fixture(scope="module")
def frame():
    frame = monthly(500, n=3)
    frame["b"] = monthly(500, lag=12, seed=1)["a"].to_numpy()
    return frame


@pytest.mark.parametrize("multivariate", ["independent", "joint"])
def test_is_the_one_that_errs_least_when_given(frame, multivariate):
    chosen = quick(multivariate=multivariate).fit(frame)
    errors = {
        size: quick(multivariate=multivariate, input_size=size).fit(frame).linear_path_["error"]
        for size in MONTHLY
    }
    assert chosen.settings_.input_sizes == MONTHLY
    assert chosen.settings_.input_size == min(errors, key=errors.get)
    assert chosen.linear_path_["error"] == min(errors.values())


def test_error_is_that_of_forecasts(frame):
    """The error of a forecaster that is its linear path, in naive errors, is the one chosen by."""
    model = quick(learning_rate=1e-12, val_size=100, input_size=24).fit(frame)
    known, held = frame[:-100], frame[-100:]
    model.state_ = model.fitted_.filter(model._read(known))
    rolled = model.predict_rolling(held)
    scale = model.state_.scaling.target.scale[0]
    error = (rolled[list(frame)] - held.loc[rolled.index]).to_numpy() / scale
    assert np.mean(error**2) == pytest.approx(model.linear_path_["error"], rel=1e-3)


def test_a_long_memory_takes_a_long_window():
    size = {lag: quick().fit(monthly(900, lag=lag)).settings_.input_size for lag in (1, 60)}
    assert size[1] < 60 <= size[60]


def test_at_most_half_of_the_training_part():
    settings = quick().fit(monthly(150)).settings_
    half = (150 - settings.val_size) // 2
    assert settings.input_sizes == (24, 36, half)


@pytest.mark.parametrize(
    ("changes", "size"), [({"input_size": 31}, 31), ({"linear_path": False}, 36)]
)
def test_is_not_chosen(changes, size):
    settings = quick(**changes).fit(monthly(300)).settings_
    assert settings.input_sizes == (settings.input_size,) == (size,)


def test_some_of_many_series_decide(frame, monkeypatch):
    seen = []
    best_form = _linear_path.best_form

    def counted(model, units, *rest):
        seen.append(len(units))
        return best_form(model, units, *rest)

    monkeypatch.setattr(_linear_path, "best_form", counted)
    long = frame.melt(var_name="unique_id", value_name="y", ignore_index=False)
    long = long.rename_axis("ds").reset_index()
    for rows, units in ((1500, 3), (1499, 2), (10, 1)):
        monkeypatch.setattr(_linear_path, "ROWS_TO_JUDGE", rows)
        quick().fit(long)
        assert seen[-len(MONTHLY) :] == [units] * len(MONTHLY)
