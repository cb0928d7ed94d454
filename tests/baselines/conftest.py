"""Series to compare with the libraries on, and helpers."""

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="session")
def wave():
    """Return a monthly Series: a season, a trend and noise."""
    return monthly(96, 1)


@pytest.fixture(scope="session")
def panel():
    """Return a long frame of monthly series "a", "b", "c" of unequal lengths and scales."""
    return long({"a": monthly(80, 2), "b": 100 * monthly(72, 3), "c": 0.1 * monthly(91, 4)})


@pytest.fixture(scope="session")
def exog():
    """Return a long frame of two series with a regressor `x`."""
    frame = long({"a": monthly(80, 5), "b": monthly(70, 6)})
    frame["x"] = np.random.default_rng(7).normal(size=len(frame))
    frame["y"] += 4 * frame["x"]
    return frame


@pytest.fixture(scope="session")
def pair():
    """Return a wide monthly frame of two series that depend on each other."""
    draw = np.random.default_rng(8).normal(size=(120, 2))
    values = np.zeros((120, 2))
    for t in range(1, 120):
        values[t] = [[0.5, 0.2], [-0.3, 0.4]] @ values[t - 1] + draw[t]
    index = pd.date_range("2010-01-01", periods=120, freq="MS")
    return pd.DataFrame(values + np.array([3.0, -2.0]), index, columns=["u", "v"])


@pytest.fixture(scope="session")
def close():
    """Compare numbers to eight digits."""

    def check(actual, expected, rtol=1e-8):
        np.testing.assert_allclose(
            np.asarray(actual, float), np.asarray(expected, float), rtol=rtol, atol=1e-12
        )

    return check


@pytest.fixture(scope="session")
def ends():
    """Return the ends of the 80 percent interval of a long forecast, or a wide one, (h, 2)."""

    def of(frame, name):
        return frame[[f"{name}-lo-80", f"{name}-hi-80"]].to_numpy()

    return of


def monthly(n, seed):
    draw = np.random.default_rng(seed)
    steps = np.arange(n)
    values = 50 + 0.1 * steps + 5 * np.sin(2 * np.pi * steps / 12) + draw.normal(size=n)
    return pd.Series(values, pd.date_range("2015-01-01", periods=n, freq="MS"), name="y")


def long(series):
    parts = [
        pd.DataFrame({"unique_id": name, "ds": own.index, "y": own.to_numpy()})
        for name, own in series.items()
    ]
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(autouse=True)
def _one_thread():
    """Direct calls work with one thread, as baselines do.

    The optimisers of arch stop elsewhere where sums are rounded otherwise.
    """
    with threadpool_limits(1):
        yield
