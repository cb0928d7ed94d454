"""Forecasts of networks of y, y + c and a y: the same but for level and unit."""

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter

from tsrnn import Combination, LEMForecaster, LRUForecaster, NewtonForecaster, ParaRNNForecaster
from tsrnn.prior import Forecasts, trained_combiner, trained_prior

H = 4
MONTHS = pd.date_range("2010-01-01", periods=120, freq="MS")
SMALL = {
    "horizon": H, "input_size": 6, "hidden_size": 8, "n_layers": 1, "max_epochs": 2,
    "refit": False, "random_state": 0,
}  # fmt: skip
TRAINED = {
    "ParaRNN": lambda: ParaRNNForecaster(prior=None, **SMALL),
    "attention": lambda: ParaRNNForecaster(cell="attention", **SMALL),
    "LEM": lambda: LEMForecaster(**SMALL),
    "LRU": lambda: LRUForecaster(**SMALL),
    "Newton": lambda: NewtonForecaster(**SMALL),
    "Combination": lambda: Combination(
        {"LEM": LEMForecaster(**SMALL), "LRU": LRUForecaster(**SMALL)}, horizon=H
    ),
}
UNTRAINED = {
    "auto": lambda: ParaRNNForecaster(H),
    "only": lambda: ParaRNNForecaster(H, prior="only"),
    "season": lambda: ParaRNNForecaster(H, prior="only", season_length=12),
    "Combination": lambda: Combination(
        {"prior": ParaRNNForecaster(), "season": ParaRNNForecaster(season_length=12)}, horizon=H
    ),
}
PROBABILITIES = [0.1, 0.5, 0.9]


def autoregression(n_series, n_rows, coefficient=0.5, seed=0):
    """Stationary AR(1) of unit innovations, (n_series, n_rows)."""
    noise = np.random.default_rng(seed).standard_normal((n_series, n_rows + 100))
    return lfilter([1], [1, -coefficient], noise)[:, 100:]


def forecast_of(make, values):
    """Point forecasts and ends of 80 percent intervals (H, 3) of one series."""
    series = pd.Series(values, MONTHS[: len(values)], name="y")
    return make().fit(series).predict(H, level=80)[["y", "y-lo-80", "y-hi-80"]].to_numpy()


@pytest.mark.few("ParaRNN", "LRU", "Combination")
@pytest.mark.parametrize("name", TRAINED)
def test_trained_networks_move_with_level_and_unit(name):
    values = autoregression(1, 120)[0]
    base = forecast_of(TRAINED[name], values)
    for factor, level in ((1.0, -1e9), (1e6, -1e3)):
        moved = (forecast_of(TRAINED[name], factor * values + level) - level) / factor
        # Training in float32 carries the rounding of the inputs further.
        tolerance = 1e-3 + 4e-16 * abs(level) / factor
        np.testing.assert_allclose(moved, base, atol=tolerance, err_msg=f"{factor} y + {level}")


@pytest.mark.parametrize("name", UNTRAINED)
@pytest.mark.parametrize("factor", [1 / 3, 1e9])
@pytest.mark.parametrize("kind", ["positive", "of both signs", "with zeros"])
def test_the_prior_network_moves_with_the_unit(name, factor, kind):
    values = autoregression(1, 60)[0]
    if kind == "positive":
        values = np.exp(values)
    elif kind == "with zeros":
        values = np.maximum(values, 0.0)  # whole numbers would be counts, in one unit alone
    base = forecast_of(UNTRAINED[name], values)
    np.testing.assert_allclose(forecast_of(UNTRAINED[name], factor * values) / factor, base, 1e-6)


@pytest.mark.parametrize("name", UNTRAINED)
@pytest.mark.parametrize("sign", [1, -1])
def test_the_prior_network_moves_with_the_level_where_logarithms_are_lines(name, sign):
    values = autoregression(1, 60)[0]
    base = forecast_of(UNTRAINED[name], values + sign * 1e6) - sign * 1e6
    # At 1e4 logarithms bend by a ten-thousandth of a change; at 1e9 values have seven digits.
    for level, tolerance in ((1e4, 5e-3), (1e9, 1e-4), (1e11, 5e-3)):
        moved = forecast_of(UNTRAINED[name], values + sign * level) - sign * level
        np.testing.assert_allclose(moved, base, atol=tolerance, err_msg=str(level))


@pytest.mark.few("0.5-100-1000000.0")
@pytest.mark.parametrize("level", [1e4, 1e6, 1e9])
@pytest.mark.parametrize(("coefficient", "n_rows"), [(0.5, 100), (0.8, 50)])
def test_widths_of_an_autoregression_are_near_those_of_its_distribution(level, coefficient, n_rows):
    values = autoregression(300, n_rows + 1, coefficient, seed=1) + level
    past, coming = values[:, :n_rows], values[:, n_rows]
    low, _, high = trained_prior().forecast(past, np.full(300, n_rows), 1, 1).at(PROBABILITIES).T[0]
    # Of innovations of variance one the interval of 80 percent is 2.563 wide. Four standard
    # errors of the share are 0.09; at 1e9 intervals were once half as wide again.
    assert 0.71 < ((low < coming) & (coming < high)).mean() < 0.89
    assert 2.3 < (high - low).mean() < 2.9


def test_the_combiner_moves_with_level_and_unit():
    values = autoregression(5, 60)
    given = values[:, -1:, None] + np.random.default_rng(1).normal(size=(5, 4, H))
    prior = trained_prior().forecast(values, np.full(5, 60), 1, H)

    def combined(factor, level):
        moved = Forecasts(
            factor * prior.median + level, factor * prior.quantiles + level, prior.weights,
            prior.state,
        )  # fmt: skip
        return trained_combiner().combine(moved, factor * given + level, 1).quantiles

    base = combined(1.0, 0.0)
    for factor, level in ((1e-6, 0.0), (1e6, 0.0), (1.0, 1e6), (1.0, -1e9), (1.0, 1e11)):
        moved = (combined(factor, level) - level) / factor
        tolerance = 1e-9 + 1e-14 * abs(level) / factor
        np.testing.assert_allclose(moved, base, atol=tolerance, err_msg=f"{factor} y + {level}")
