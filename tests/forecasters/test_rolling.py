"""Rolling forecasts are those of a forecaster updated row by row; contributions sum up."""

import copy

import numpy as np
import pandas as pd
import pytest


def one_by_one(model, rows, h, step, level=None, ahead=()):
    """Return the forecasts of a loop over origins, in the order of rolling forecasts."""
    found = []
    model = copy.deepcopy(model)
    for origin in range(0, len(rows) - h + 1, step):
        if origin:
            model.update(rows.iloc[origin - step : origin])
        future = rows.iloc[origin : origin + h][list(ahead)] if ahead else None
        found.append(model.predict(h=h, level=level, X_future=future))
    return pd.concat(found)


def close(rolling, looped, scale):
    numbers = rolling.select_dtypes("number").to_numpy()
    expected = pd.DataFrame(looped).select_dtypes("number").to_numpy()
    np.testing.assert_allclose(numbers, expected, rtol=0, atol=2e-5 * scale)


@pytest.mark.filterwarnings("ignore:intervals are calibrated for 6 steps")
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("h", [1, 4, 6, 9])  # the network forecasts six steps directly
def test_of_one_series(small, wave, h, step):
    model = small().fit(wave.iloc[:-20])
    rolling = model.predict_rolling(wave.iloc[-20:], h=h, step_size=step, level=[80])
    looped = one_by_one(model, wave.iloc[-20:], h, step, level=[80])
    close(rolling, looped, wave.std())
    assert list(rolling.index) == list(looped.index)
    assert list(rolling["cutoff"][::h]) == list(wave.index[-21:-h:step])


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("multivariate", ["joint", "independent"])
def test_of_many_targets(small, wide, multivariate, step):
    model = small(multivariate=multivariate).fit(wide.iloc[:-17])
    rolling = model.predict_rolling(wide.iloc[-17:], step_size=step, level=[50])
    close(rolling, one_by_one(model, wide.iloc[-17:], 6, step, level=[50]), 5)


@pytest.mark.parametrize("step", [1, 3])
def test_of_unequal_lengths(small, panel, cut, step):
    past, future = cut(panel, 15)
    model = small().fit(past)
    groups = {name: rows for name, rows in future.groupby("unique_id", sort=False)}
    groups["b"] = groups["b"].iloc[:7]
    rolling = model.predict_rolling(pd.concat(groups.values()), step_size=step, level=[80])
    assert list(rolling["unique_id"].unique()) == ["a", "b", "c"]
    for name, rows in groups.items():
        expected = one_by_one(model, rows, 6, step, level=[80])
        expected = expected[expected["unique_id"] == name]
        close(rolling[rolling["unique_id"] == name], expected, rows["y"].abs().mean())


def test_of_many_targets_of_many_series(small, panel, cut):
    past, future = cut(panel.assign(v=np.sqrt(panel["y"])), 9)
    model = small(target=["y", "v"]).fit(past)
    rolling = model.predict_rolling(future, h=3, step_size=2, level=[80])
    for name, rows in future.groupby("unique_id"):
        expected = one_by_one(model, rows, 3, 2, level=[80])
        expected = expected[expected["unique_id"] == name]
        close(rolling[rolling["unique_id"] == name], expected, rows["y"].abs().mean())


@pytest.mark.filterwarnings("ignore:intervals are calibrated for 6 steps")
@pytest.mark.parametrize("h", [5, 8])
@pytest.mark.parametrize("multivariate", ["joint", "independent"])
def test_with_columns_known_ahead(small, wide, multivariate, h):
    frame = wide.assign(x=np.sin(np.arange(len(wide))))
    model = small(target=["u", "v"], known_ahead=["x", "w"], multivariate=multivariate)
    model.fit(frame.iloc[:-12])
    rolling = model.predict_rolling(frame.iloc[-12:], h=h, level=[80])
    looped = one_by_one(model, frame.iloc[-12:], h, 1, level=[80], ahead=("x", "w"))
    close(rolling, looped, 5)


def test_leaves_the_forecaster_as_it_is(small, panel, cut, same):
    past, future = cut(panel, 9)
    model = small().fit(past)
    before = model.predict()
    model.predict_rolling(future)
    same(model.predict(), before, rtol=0)


class TestContributions:
    def sums(self, model, expected, **future):
        parts = model.contributions(**future)
        total = parts.sum(axis=1).to_numpy()
        np.testing.assert_allclose(total, expected.to_numpy().T.ravel(), rtol=1e-9)
        return parts

    def test_of_one_series(self, small, wave):
        model = small().fit(wave)
        parts = self.sums(model, model.predict())
        assert parts.index.name == "step"
        blocks = [f"block {k}" for k in range(1, 5)]
        assert list(parts.columns) == ["level", "linear path", *blocks, "constant"]
        np.testing.assert_allclose(parts["level"], wave.iloc[-12:].mean(), rtol=1e-12)

    @pytest.mark.parametrize(
        "changes",
        [{"aggregation": "ffn"}, {"cell": "attention"}, {"cell": "attention", "n_estimators": 2}],
    )
    def test_of_a_network_without_a_sum_of_blocks(self, small, wave, changes):
        model = small(**changes).fit(wave)
        parts = self.sums(model, model.predict())
        assert list(parts.columns) == ["level", "linear path", "network"]

    @pytest.mark.parametrize("multivariate", ["joint", "independent"])
    def test_of_many_targets(self, small, wide, multivariate):
        model = small(multivariate=multivariate, linear_path=False).fit(wide)
        parts = self.sums(model, model.predict())
        assert parts.index.names == ["unique_id", "target", "step"]
        assert "linear path" not in parts

    def test_of_a_panel(self, small, panel):
        model = small(local_level=False).fit(panel)
        parts = self.sums(model, model.predict()["ParaRNN"])
        assert list(parts.index.unique("unique_id")) == ["a", "b", "c"]

    def test_with_columns_known_ahead(self, small, exog, cut):
        past, future = cut(exog, 6)
        model = small(known_ahead="x").fit(past)
        ahead = future[["unique_id", "ds", "x"]]
        forecast = model.predict(X_future=ahead)["ParaRNN"]
        assert "known ahead" in self.sums(model, forecast, X_future=ahead)

    def test_after_other_data(self, small, panel):
        model = small().fit(panel)
        new = panel[panel["unique_id"] == "a"].assign(unique_id="new")
        self.sums(model, model.predict(new)["ParaRNN"], X=new)


class TestShares:
    def test_of_the_last_layer_sum_to_one(self, small, panel):
        model = small(n_layers=2).fit(panel)
        shares = model.block_shares_()
        assert [share.shape for share in shares] == [(4,), (4,)]
        assert shares[-1].sum() == pytest.approx(1, abs=1e-6)

    def test_survive_storage_in_the_summary(self, small, panel):
        features = small().fit(panel).summary().features
        assert features["share"].notna().all()
