"""Sample paths: their distribution, their shape, their draws."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tsrnn import ParaRNNForecaster


@pytest.fixture(scope="module")
def autoregression():
    """Return an AR(1) with coefficient 0.8."""
    draw = np.random.default_rng(0).normal(size=2000)
    y = np.zeros(2000)
    for t in range(1, 2000):
        y[t] = 0.8 * y[t - 1] + draw[t]
    return pd.Series(y, index=pd.date_range("2000-01-01", periods=2000, freq="D"), name="y")


def settings(**changes):
    small = {"horizon": 4, "input_size": 12, "hidden_size": 8, "n_layers": 1, "max_epochs": 2}
    return ParaRNNForecaster(**(small | {"random_state": 0} | changes))


@pytest.mark.parametrize("intervals", ["conformal", "student-t", "quantile"])
def test_paths_have_the_intervals_and_hang_together(autoregression, intervals):
    model = settings(intervals=intervals).fit(autoregression)
    paths = model.sample_paths(3000).set_index("path", append=True)["y"].unstack("path")
    frame = model.predict(level=80)
    width = frame["y-hi-80"] - frame["y-lo-80"]
    for side, quantile in (("lo", 0.1), ("hi", 0.9)):
        gap = (paths.quantile(quantile, axis=1) - frame[f"y-{side}-80"]) / width
        assert gap.abs().max() < 0.15
    # Errors of step k are sums of k innovations: steps 1 and k correlate as these do.
    weights = 0.8 ** np.arange(4)
    expected = weights / np.sqrt(np.cumsum(weights**2))
    np.testing.assert_allclose(np.corrcoef(paths.to_numpy())[0], expected, atol=0.12)


def test_shapes_and_draws(autoregression):
    wide = pd.DataFrame({"a": autoregression, "b": 3 * autoregression})
    model = settings().fit(wide)
    found = model.sample_paths(2, h=3)
    assert found.columns.tolist() == ["path", "a", "b"]
    assert found["path"].tolist() == [1, 1, 1, 2, 2, 2]
    assert found.index[:3].equals(model.predict(3).index)
    pd.testing.assert_frame_equal(model.sample_paths(2, h=3), found)
    other = model.sample_paths(2, h=3, random_state=1)
    assert not np.allclose(other["a"], found["a"])


def test_a_long_frame(autoregression):
    parts = [
        pd.DataFrame({"unique_id": name, "ds": autoregression.index, "y": scale * autoregression})
        for name, scale in (("u", 1.0), ("v", 10.0))
    ]
    found = settings().fit(pd.concat(parts, ignore_index=True)).sample_paths(200)
    assert found.columns.tolist() == ["unique_id", "ds", "path", "ParaRNN"]
    spread = found.groupby(["unique_id", "ds"])["ParaRNN"].std().groupby("unique_id").mean()
    assert spread["v"] / spread["u"] == pytest.approx(10, rel=0.3)


@pytest.mark.parametrize("tz", [None, "Europe/Vienna"])
def test_polars_come_back_as_polars(autoregression, tz):
    frame = pd.DataFrame({
        "unique_id": np.repeat(["u", "v"], 100),
        "ds": np.tile(autoregression.index[:100].tz_localize(tz), 2),
        "y": autoregression.to_numpy()[:200],
    })  # fmt: skip
    ds = pl.Series(frame["ds"].dt.tz_localize(None).to_numpy()).dt.replace_time_zone(tz)
    rows = pl.DataFrame({"unique_id": frame["unique_id"].to_list(), "ds": ds, "y": frame["y"]})
    expected = settings().fit(frame).sample_paths(3, h=2)
    model = settings().fit(rows)
    found = model.sample_paths(3, h=2)
    assert isinstance(found, pl.DataFrame)
    assert found.columns == ["unique_id", "ds", "path", "ParaRNN"]
    point = model.predict(2)
    assert dict(found.schema) == {**point.schema, "path": pl.Int64}
    assert found.filter(pl.col("path") == 3)["ds"].equals(point["ds"])
    assert found["path"].to_list() == expected["path"].tolist()
    assert found["unique_id"].to_list() == expected["unique_id"].tolist()
    np.testing.assert_array_equal(found["ParaRNN"], expected["ParaRNN"])


def test_dates_of_polars_stay_dates(autoregression):
    days = pl.Series(autoregression.index[:100].to_numpy()).cast(pl.Date)
    rows = pl.DataFrame({"ds": days, "y": autoregression.to_numpy()[:100]})
    model = settings().fit(rows)
    found = model.sample_paths(2, h=3)
    assert found["ds"].dtype == pl.Date
    assert found["ds"].to_list() == 2 * model.predict(3)["ds"].to_list()


def test_what_is_refused(autoregression):
    model = settings().fit(autoregression)
    with pytest.raises(ValueError, match="sample_paths needs h of at most the fitted horizon, 4"):
        model.sample_paths(h=5)
    with pytest.raises(ValueError, match="n must be a positive integer"):
        model.sample_paths(0)
