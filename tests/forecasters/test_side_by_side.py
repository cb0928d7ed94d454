"""Networks side by side, of an ensemble or one a series, are those of training one by one."""

import copy
import io

import numpy as np
import pandas as pd
import pytest

from tsrnn import LRUForecaster, NewtonForecaster, ParaRNNForecaster, load, recurrence_features
from tsrnn.forecasters import _training
from tsrnn.kernels import cells

SMALL = {
    "horizon": 3, "hidden_size": 8, "max_epochs": 3, "random_state": 0, "val_size": 12,
}  # fmt: skip
STEPS = 2e-3  # what sixty steps make of rounding


def wandering(lengths, seed=0):
    """Return a long frame of series of some lengths."""
    rng = np.random.default_rng(seed)
    parts = [
        pd.DataFrame(
            {
                "unique_id": f"s{i}",
                "ds": pd.date_range("2000", periods=n, freq="MS"),
                "y": 20 * (i + 1) + rng.normal(size=n).cumsum() + 3 * np.sin(np.arange(n) / 2),
            }
        )
        for i, n in enumerate(lengths)
    ]
    return pd.concat(parts, ignore_index=True)


def close(one, other, columns):
    """Compare forecasts in units of their spread."""
    one, other = one[columns].to_numpy(), other[columns].to_numpy()
    np.testing.assert_allclose(one, other, rtol=STEPS, atol=STEPS * other.std())


@pytest.fixture
def one_by_one(monkeypatch):
    """Let networks train one by one."""
    return lambda: monkeypatch.setattr("tsrnn.forecasters._training.AT_ONCE", 1)


CASES = {
    "default": {},
    "no linear path": {"linear_path": False},
    "student-t": {"intervals": "student-t", "linear_path": False},
    "quantile, joint": {"intervals": "quantile", "multivariate": "joint"},
    "mae, ffn": {"loss": "mae", "aggregation": "ffn"},
    "attention": {"cell": "attention", "n_heads": 2, "n_states": 2, "window": 4},
    "gru": {"cell": "gru", "linear_path": False},
    "lru": {"cell": "lru"},
    "own cell": {"cell": cells.para_gru(2), "linear_path": False},
    "reference": {"engine": "reference"},
    "small batches": {"batch_size": 2, "refit": False},
}


@pytest.mark.few("default", "gru")
@pytest.mark.parametrize("changes", CASES.values(), ids=CASES)
def test_estimators(one_by_one, monkeypatch, changes):
    frame = wandering([60, 45, 80])
    model = ParaRNNForecaster(**SMALL | changes, n_estimators=3)
    with monkeypatch.context() as context:
        for name in ("train", "train_for"):
            context.setattr(f"tsrnn.training.{name}", None)
        together = model.fit(frame).predict(level=80)
        history = pd.DataFrame(model.history_)
    one_by_one()
    alone = model.fit(frame).predict(level=80)
    close(together, alone, together.columns[2:])
    pd.testing.assert_frame_equal(history, pd.DataFrame(model.history_), rtol=STEPS)


@pytest.mark.slow
def test_estimators_of_long_series(one_by_one):
    """Segments are drawn by each network for itself."""
    frame = wandering([700, 300])
    model = NewtonForecaster(**SMALL | {"n_heads": 2}, n_estimators=2, input_size=24)
    together = model.fit(frame).predict()
    one_by_one()
    close(together, model.fit(frame).predict(), ["Newton"])


@pytest.mark.slow
def test_estimators_of_regressors_known_ahead(one_by_one):
    frame = wandering([60, 70]).assign(x=lambda df: np.cos(df.index))
    future = wandering([63, 73]).groupby("unique_id").tail(3)[["unique_id", "ds"]].assign(x=0.5)
    model = ParaRNNForecaster(**SMALL, n_estimators=2, known_ahead="x")
    together = model.fit(frame).predict(X_future=future)
    one_by_one()
    close(together, model.fit(frame).predict(X_future=future), ["ParaRNN"])


def test_a_training_that_diverges_says_so():
    model = ParaRNNForecaster(**SMALL | {"learning_rate": 1e30}, n_estimators=2, linear_path=False)
    with pytest.raises(FloatingPointError, match="training diverged"):
        model.fit(wandering([60]))


FRAME = wandering([62, 60, 45, 80])
FIRST = FRAME[FRAME.groupby("unique_id").cumcount(ascending=False) >= 6]
LAST = FRAME[FRAME.groupby("unique_id").cumcount(ascending=False) < 6]


def wide(frame):
    """Return the series as columns."""
    return frame.pivot(index="ds", columns="unique_id", values="y").dropna()


@pytest.fixture(scope="module")
def fitted():
    return ParaRNNForecaster(**SMALL, per_series=True).fit(FIRST)


@pytest.fixture
def model(fitted):
    return copy.deepcopy(fitted)


@pytest.mark.few("default")
@pytest.mark.parametrize(
    "changes",
    [CASES["default"], CASES["student-t"], CASES["small batches"], {"n_estimators": 2}],
    ids=["default", "student-t", "small batches", "estimators"],
)
def test_is_that_of_a_fit_alone(changes):
    model = ParaRNNForecaster(**SMALL | changes, per_series=True).fit(FIRST)
    whole, rolled = model.predict(level=80), model.predict_rolling(LAST, level=80)
    for name in FIRST["unique_id"].unique():
        alone = ParaRNNForecaster(**SMALL | changes).fit(FIRST[FIRST["unique_id"] == name])
        expected = alone.predict(level=80)
        close(whole[whole["unique_id"] == name], expected, expected.columns[2:])
        expected = alone.predict_rolling(LAST[LAST["unique_id"] == name], level=80)
        close(rolled[rolled["unique_id"] == name], expected, expected.columns[3:])
        of_series = model.for_series(name)
        assert of_series.settings_ == alone.settings_
        assert of_series.best_epochs_ == alone.best_epochs_
        pd.testing.assert_frame_equal(of_series.validation_, alone.validation_, rtol=STEPS)


def test_networks_of_other_forms_of_the_linear_path_are_trained_together(monkeypatch):
    trained = []

    def counted(models, *args, original=_training.train_replicates, **kwargs):
        trained.append(models)
        return original(models, *args, **kwargs)

    monkeypatch.setattr(_training, "train_replicates", counted)
    ParaRNNForecaster(**SMALL | {"refit": False}, input_size=24, per_series=True).fit(FIRST)
    assert [len(models) for models in trained] == [4]
    forms = {tuple(p.requires_grad for p in model.linear_parameters()) for model in trained[0]}
    assert len(forms) > 1


@pytest.mark.slow
def test_columns_of_a_wide_frame():
    first = wide(FIRST)
    model = LRUForecaster(**SMALL, per_series=True).fit(first)
    for name in first:
        expected = LRUForecaster(**SMALL).fit(first[[name]]).predict(level=80)
        close(model.predict(level=80), expected, expected.columns)
    assert model.for_series("s0").predict().columns.tolist() == ["s0"]
    assert model.sample_paths(3, random_state=0)["path"].nunique() == 3


@pytest.mark.slow
def test_regressors_known_ahead():
    frame = FIRST.assign(x=np.cos(np.arange(len(FIRST))))
    future = LAST.groupby("unique_id").head(3)[["unique_id", "ds"]].assign(x=0.5)
    whole = ParaRNNForecaster(**SMALL, known_ahead="x", per_series=True).fit(frame)
    for name in ("s0", "s3"):
        alone = ParaRNNForecaster(**SMALL, known_ahead="x")
        alone = alone.fit(frame[frame["unique_id"] == name])
        expected = alone.predict(X_future=future[future["unique_id"] == name])
        forecast = whole.predict(X_future=future)
        close(forecast[forecast["unique_id"] == name], expected, ["ParaRNN"])


def test_goes_on_and_comes_back_from_a_file(model):
    some = LAST[LAST["unique_id"].isin(["s1", "s3"])]
    after = model.for_series("s3").update(some[some["unique_id"] == "s3"]).predict(level=80)
    forecast = model.update(some).predict(level=80)
    np.testing.assert_array_equal(forecast[forecast["unique_id"] == "s3"], after)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    pd.testing.assert_frame_equal(load(file).predict(level=80), forecast)


def test_score(model):
    assert np.isfinite(model.score(LAST.groupby("unique_id").head(3)))


def test_contributions_sum_to_the_forecast(model):
    parts, forecast = model.contributions(), model.predict()
    np.testing.assert_allclose(parts.sum(axis=1), forecast["ParaRNN"], rtol=1e-10)


def test_forecasts_after_other_rows(model):
    assert model.predict(FRAME[FRAME["unique_id"] == "s2"]).shape == (3, 3)
    new = FRAME[FRAME["unique_id"] == "s2"].assign(unique_id="new")
    with pytest.raises(ValueError, match="1 are new, 'new'. Fit to them"):
        model.predict(new)


def test_summary(model):
    table = model.summary().table
    assert table.index.tolist() == ["s0", "s1", "s2", "s3"]
    assert table["rows"].tolist() == [56, 54, 39, 74]
    assert "Active networks" in str(model.summary())


def test_what_a_network_has_is_asked_by_series(model):
    for question in (lambda: model.network_, lambda: recurrence_features(model)):
        with pytest.raises(ValueError, match=r"such as for_series\('s0'\)"):
            question()
    model.set_params(linear_path=False).fit(FIRST)
    active = model.summary().table.query("active").index[0]
    assert len(recurrence_features(model.for_series(active)))


REFUSED = {
    "short": (FIRST.groupby("unique_id").head(40).iloc[:-33], {}, "series 's3': a series needs at"),
    "static": (FIRST.assign(x=1.0), {"static": ["x"]}, "leave per_series out"),
    "flag": (FIRST, {"per_series": "yes"}, "per_series"),
}


@pytest.mark.parametrize(("frame", "changes", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals(frame, changes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ParaRNNForecaster(**SMALL | {"per_series": True} | changes).fit(frame)


def test_for_series_names_what_there_is(model):
    with pytest.raises(ValueError, match="'x' is not a series that was fitted to"):
        model.for_series("x")
    with pytest.raises(ValueError, match="construct with per_series=True"):
        model.for_series("s0").for_series("s0")


def test_for_series_compares_ids_as_wholes():
    frame = FIRST.assign(unique_id=[(name, 1) for name in FIRST["unique_id"]])
    tuples = ParaRNNForecaster(**SMALL | {"per_series": True}).fit(frame)
    with pytest.raises(ValueError, match=r"^7 is not a series .* \('s0', 1\)"):
        tuples.for_series(np.int64(7))
