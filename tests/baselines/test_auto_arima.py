"""Orders by criterion and by tests."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.statespace import sarimax
from statsmodels.tsa.stattools import kpss
from threadpoolctl import threadpool_limits

from tsrnn.baselines import SARIMAX, StatsmodelsAutoARIMA

pytestmark = pytest.mark.filterwarnings("ignore:.*came with warnings:UserWarning")


def series(n, seed, d=0):
    e = np.random.default_rng(seed).normal(size=n + 1)
    y = e[1:] + 0.8 * e[:-1]
    for _ in range(d):
        y = y.cumsum()
    return pd.Series(y + 10, pd.date_range("2010-01-01", periods=n, freq="MS"), name="y")


@pytest.fixture(scope="module")
def by_order():
    """Return statsmodels' results of a series for all small orders."""
    y, found = series(90, 0).to_numpy(), {}
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for p, q in itertools.product(range(3), range(3)):
            found[p, q] = sarimax.SARIMAX(y, order=(p, 0, q), trend="c").fit(disp=False)
    return found


@pytest.mark.parametrize("criterion", ["aic", "bic", "aicc"])
def test_orders_are_those_of_a_loop(criterion, by_order, close):
    y = series(90, 0)
    model = StatsmodelsAutoARIMA(1, d=0, criterion=criterion).fit(y)
    found = {order: getattr(results, criterion) for order, results in by_order.items()}
    p, q = min(found, key=found.get)
    assert model.spec_["y"]["order"] == [p, 0, q]
    if criterion != "aicc":
        close(getattr(model, f"{criterion}_")["y"], found[p, q])
    close(model.predict(5), SARIMAX((p, 0, q), trend="c").fit(y).predict(5))


def test_seasonal_orders_are_those_of_a_loop():
    steps = np.arange(60)
    season = pd.Series(np.sin(np.pi * steps / 2) * 5 + np.random.default_rng(1).normal(size=60))
    model = StatsmodelsAutoARIMA(4, max_p=1, max_q=0, d=0, D=0, criterion="bic").fit(season)
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for p, P, Q in itertools.product(range(2), range(2), range(2)):
            seasonal = (P, 0, Q, 4 if P or Q else 0)
            direct = sarimax.SARIMAX(season.to_numpy(), None, (p, 0, 0), seasonal, trend="c")
            found[p, P, Q] = direct.fit(disp=False).bic
    p, P, Q = min(found, key=found.get)
    assert model.spec_.iloc[0]["order"] == [p, 0, 0]
    assert model.spec_.iloc[0]["seasonal_order"][:3] == [P, 0, Q]


@pytest.mark.parametrize("d", [0, 1, 2])
def test_differences_by_test(d):
    y = series(200, 3, d)
    model = StatsmodelsAutoARIMA(1, max_p=0, max_q=1).fit(y)
    values = y.to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = 0
        while expected < 2 and kpss(values, nlags="auto")[1] < 0.05:
            values, expected = np.diff(values), expected + 1
    assert model.spec_["y"]["order"][1] == expected
    assert expected == d


def test_a_strong_season_is_differenced(wave):
    model = StatsmodelsAutoARIMA(max_p=0, max_q=1, max_P=0, max_Q=1).fit(wave)
    assert model.spec_["y"]["seasonal_order"][1:] in ([1, 1, 12], [1, 0, 12])
    noise = StatsmodelsAutoARIMA(max_p=0, max_q=1, max_P=0, max_Q=0).fit(series(120, 4))
    assert noise.spec_["y"]["seasonal_order"] == [0, 0, 0, 0]


def test_parameters_of_different_orders_share_a_frame():
    frame = pd.DataFrame({"u": series(90, 0), "v": series(90, 5, 1)})
    model = StatsmodelsAutoARIMA(1, max_p=1, max_q=1).fit(frame)
    assert model.params_.loc["u", "sigma2"] > 0
    for name in "uv":
        n_params = model.params_.loc[name].notna().sum()
        p, _, q = model.spec_[name]["order"]
        assert n_params == p + q + 2


def test_many_seasonal_differences_leave_no_other():
    y = series(90, 6)
    model = StatsmodelsAutoARIMA(4, max_p=0, max_q=1, max_P=0, max_Q=0, D=3).fit(y)
    spec = model.spec_["y"]
    assert spec["order"][1] == 0
    assert spec["seasonal_order"] == [0, 3, 0, 4]


def test_the_last_reason_is_told(monkeypatch):
    def refuse(self, rows, spec):
        raise ValueError(f"no {spec['order']}")

    model = StatsmodelsAutoARIMA(1, max_p=1, max_q=1, d=0)
    monkeypatch.setattr(type(model.fit(series(90, 0)).fitted_.model), "fit", refuse)
    told = r"none of the orders could be fitted; the last, \(1, 0, 1\): no \[1, 0, 1\]"
    with pytest.raises(ValueError, match=told):
        model.fit(series(90, 0))


def test_arguments(wave):
    for changes, told in (
        ({"max_p": -1}, "max_p must be an integer of at least 0; got -1"),
        ({"d": 1.5}, "d must be an integer"),
        ({"criterion": "best"}, "criterion must be one of"),
    ):
        with pytest.raises(ValueError, match=told):
            StatsmodelsAutoARIMA(**changes).fit(wave)
