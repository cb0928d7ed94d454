"""Sizes beyond the data or the memory of the machine are refused before anything is made."""

import pytest

from tsrnn.contract import _checks
from tsrnn.forecasters import _training

EVERY_NETWORK = True
NETWORK = pytest.mark.where.with_args(lambda entry: "hidden_size" in entry.settings)


@pytest.mark.parametrize("size", [97, 10**6])
@NETWORK
def test_a_window_longer_than_the_series(make, wave, size):
    message = rf"input_size={size} is a window of .* rows; this series has 96\. Take a smaller"
    with pytest.raises(ValueError, match=message):
        make(input_size=size).fit(wave)


@pytest.mark.parametrize("sizes", [{"hidden_size": 10**6, "n_layers": 2}, {"n_layers": 10**6}])
@NETWORK
def test_a_network_beyond_the_memory(make, wave, sizes):
    name = next(iter(sizes))
    message = rf"{name}={10**6}.* would take about .* of memory; this machine has .*Take smaller"
    with pytest.raises(ValueError, match=message):
        make(**sizes).fit(wave)


@NETWORK
def test_a_horizon_beyond_the_data(make, wave):
    with pytest.raises(ValueError, match="this series has 96. Give more rows, or take a smaller"):
        make(horizon=10**6).fit(wave)


@pytest.mark.few
@NETWORK
def test_parameters_are_counted_without_making_them(make, wave):
    model = make().fit(wave)
    inputs = 1, 0, []
    count = sum(parameter.numel() for parameter in model.model_.parameters())
    assert _training._parameter_count(model.settings_, *inputs) == pytest.approx(count)


@pytest.mark.few
def test_a_horizon_of_predict_beyond_the_memory(make, wave, monkeypatch):
    model = make().fit(wave)
    monkeypatch.setattr(_checks, "_memory", lambda: 2.0**20)
    assert len(model.predict(12)) == 12
    message = r"h=100000 steps of 1 series would take about .*; this machine has .* smaller h"
    with pytest.raises(ValueError, match=message):
        model.predict(100_000)
