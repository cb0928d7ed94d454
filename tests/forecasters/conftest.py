"""Simulated data, forecasters in small settings, and what compares their frames."""

import numpy as np
import pandas as pd
import pytest

from tsrnn import ParaRNNForecaster

SMALL = {
    "horizon": 6,
    "input_size": 12,
    "hidden_size": 8,
    "n_layers": 1,
    "max_epochs": 2,
    "random_state": 0,
}
# Every forecaster of the package in settings that fit in a moment: the contract runs over all.
FORECASTERS = {"ParaRNN": (ParaRNNForecaster, SMALL)}


@pytest.fixture(scope="session", params=FORECASTERS)
def make(request):
    """Return a constructor with small settings; keywords replace some of them."""
    cls, settings = FORECASTERS[request.param]
    return lambda **changes: cls(**(settings | changes))


@pytest.fixture(scope="session")
def small():
    """Return a constructor of a small ParaRNNForecaster."""
    return lambda **changes: ParaRNNForecaster(**(SMALL | changes))


@pytest.fixture(scope="session")
def wave():
    """Return a monthly Series: a season, a trend and noise."""
    return monthly(96, seed=1)


@pytest.fixture(scope="session")
def panel():
    """Return a long frame of monthly series "a", "b", "c" of unequal lengths and scales."""
    return long_panel()


@pytest.fixture(scope="session")
def wide():
    """Return a wide frame of three monthly columns."""
    columns = {name: monthly(90, seed) for seed, name in enumerate("uvw")}
    return pd.DataFrame(columns)


@pytest.fixture(scope="session")
def exog():
    """Return a long frame with a column `x` known ahead and a column `z` of history only."""
    frame = long_panel()
    draw = np.random.default_rng(5)
    frame["x"], frame["z"] = draw.normal(size=(2, len(frame)))
    frame["y"] += 3 * frame["x"]
    return frame


@pytest.fixture(scope="session")
def cut():
    """Return a function that splits a frame before the last n rows of every series."""

    def split(frame, n):
        if "unique_id" not in frame:
            return frame.iloc[:-n], frame.iloc[-n:]
        groups = frame.groupby("unique_id", sort=False)
        late = groups.cumcount(ascending=False) < n
        return frame[~late], frame[late]

    return split


@pytest.fixture(scope="session")
def same():
    """Compare frames: equal in shape, labels and dtypes, and in numbers up to `rtol`."""

    def check(actual, expected, rtol=1e-6):
        assert type(actual) is type(expected)
        compare = pd.testing.assert_frame_equal
        if isinstance(actual, pd.Series):
            compare = pd.testing.assert_series_equal
        compare(actual, expected, rtol=rtol, atol=0, check_freq=False)

    return check


def monthly(n, seed):
    draw = np.random.default_rng(seed)
    steps = np.arange(n)
    values = 50 + 0.1 * steps + 5 * np.sin(2 * np.pi * steps / 12) + draw.normal(size=n)
    return pd.Series(values, pd.date_range("2015-01-01", periods=n, freq="MS"), name="y")


def long_panel():
    parts = [
        pd.DataFrame({"unique_id": name, "ds": series.index, "y": scale * series.to_numpy()})
        for name, scale, series in (
            ("a", 1.0, monthly(70, 2)),
            ("b", 100.0, monthly(60, 3)),
            ("c", 0.01, monthly(82, 4)),
        )
    ]
    return pd.concat(parts, ignore_index=True)
