"""Panels of simulated series, some of which cannot be forecast."""

import numpy as np
import pandas as pd
import pytest

from tsrnn import ARMA, ParaRNNForecaster


def simulated(n_series, n_rows, seed=0):
    """Return a long frame of autoregressions around 10, with ids s0, s1, ..."""
    draw = np.random.default_rng(seed).normal(size=(n_series, n_rows))
    values = np.zeros_like(draw)
    for row in range(n_rows):
        values[:, row] = 0.6 * values[:, row - 1] + draw[:, row]
    return pd.DataFrame(
        {
            "unique_id": np.repeat([f"s{i}" for i in range(n_series)], n_rows),
            "ds": np.tile(pd.date_range("2024-01-01", periods=n_rows), n_series),
            "y": 10 + values.ravel(),
        }
    )


def by_series(frame):
    """Return a frame in the order of ids and times."""
    return frame.sort_values(["unique_id", "ds"], ignore_index=True)


@pytest.fixture(scope="session")
def simulate():
    return simulated


@pytest.fixture(scope="session")
def sort():
    return by_series


@pytest.fixture(scope="session")
def panel():
    """Return 24 series of 40 rows."""
    return simulated(24, 40)


@pytest.fixture
def broken(panel):
    """Return `panel` with a missing value in s5, a missing row in s11, and three rows of s7."""
    frame = panel.copy()
    frame.loc[frame.index[frame["unique_id"] == "s5"][3], "y"] = np.nan
    frame = frame.drop(index=frame.index[frame["unique_id"] == "s11"][8])
    return frame.drop(index=frame.index[frame["unique_id"] == "s7"][:-3]).reset_index(drop=True)


@pytest.fixture(scope="session")
def arma():
    """Return a model that has parameters for each series."""
    return ARMA(order=(1, 0), horizon=3, missing="error")


@pytest.fixture(scope="session")
def network():
    """Return a small network fitted to other series."""
    settings = {"hidden_size": 8, "n_layers": 1, "max_epochs": 1, "input_size": 8, "refit": False}
    model = ParaRNNForecaster(horizon=3, random_state=0, **settings)
    return model.fit(simulated(8, 40, seed=1))


@pytest.fixture
def with_x(panel):
    """Return rows with a column x, and those of the next three steps without y."""
    draw = np.random.default_rng(3).normal(size=len(panel))
    frame = panel.assign(x=draw, y=panel["y"] + 2 * draw)
    last = frame.groupby("unique_id").tail(3)
    return frame.drop(index=last.index), last.drop(columns="y")
