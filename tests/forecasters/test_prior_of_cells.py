"""Forecasters of every cell with a prior network: the same questions have the same answers."""

import numpy as np
import pandas as pd
import pytest

from tsrnn import (
    Combination,
    LEMForecaster,
    LRUForecaster,
    NewtonForecaster,
    ParaRNNForecaster,
    forecast_features,
    load,
    recurrence_features,
)
from tsrnn.baselines import Naive
from tsrnn.contract import DamagedFileError, read_file, write_file
from tsrnn.export import export_torch
from tsrnn.forecasters import FittedNetworks, FittedPrior
from tsrnn.interpret import UninformativeNetworkError, memory_lengths, time_scales
from tsrnn.kernels import cells
from tsrnn.prior import trained_prior

H = 4
# Class, its arguments, and the cell of the network that forecasts.
MAKERS = {
    "ParaRNN": (ParaRNNForecaster, {}, "rnn"),
    "LEM": (LEMForecaster, {}, "lem"),
    "LRU": (LRUForecaster, {}, "lru"),
    "Newton": (NewtonForecaster, {}, "newton-gru"),
    "Newton, LSTM": (NewtonForecaster, {"cell": "newton-lstm"}, "newton-lstm"),
    "ParaRNN, LRU": (ParaRNNForecaster, {"cell": "lru"}, "lru"),
}


@pytest.fixture(params=MAKERS)
def kind(request):
    return MAKERS[request.param]


@pytest.fixture
def make(kind):
    cls, arguments, _ = kind
    return lambda **changes: cls(**{"horizon": H} | arguments | changes)


def quarterly(rows, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(rows)
    values = 50 + t + 6 * np.sin(np.pi * t / 2) + rng.standard_normal(rows).cumsum()
    days = pd.date_range("2010-01-01", periods=rows, freq="QS")
    return pd.DataFrame({"unique_id": f"s{seed}", "ds": days, "y": values})


FRAME = pd.concat([quarterly(24), quarterly(17, 1), quarterly(11, 2)], ignore_index=True)
LATE = FRAME.groupby("unique_id").cumcount(ascending=False) < 3
PAST, LATER = FRAME[~LATE].reset_index(drop=True), FRAME[LATE].reset_index(drop=True)
SHORT = quarterly(20)


def close(one, other):
    pd.testing.assert_frame_equal(
        one.reset_index(drop=True), other.reset_index(drop=True), rtol=1e-9
    )


def test_twenty_rows_are_forecast_by_the_network_of_the_cell(make, kind):
    model = make().fit(SHORT)
    assert isinstance(model.fitted_, FittedPrior)
    assert model.fitted_.prior is trained_prior(cell=kind[2])
    forecasts = model.predict(level=[80, 95])
    name = kind[0].column_name
    ends = [f"{name}-lo-95", f"{name}-lo-80", name, f"{name}-hi-80", f"{name}-hi-95"]
    assert (forecasts[ends].diff(axis=1).iloc[:, 1:] > 0).to_numpy().all()
    error = np.abs(model.predict(8)[name] - quarterly(28)["y"][-8:].to_numpy())
    assert error.mean() < 10


def test_a_panel_and_its_series_alone(make):
    together = make(prior="only").fit(PAST).predict(level=80)
    for name, part in PAST.groupby("unique_id"):
        alone = make(prior="only").fit(part).predict(level=80)
        close(together[together["unique_id"] == name][alone.columns], alone)


@pytest.mark.few("ParaRNN", "LRU")
def test_a_panel_adapts_the_network(make):
    frame = pd.concat([quarterly(20, seed) for seed in range(30)])
    model = make(season_length=1, missing="keep").fit(frame)
    assert model.fitted_.adapted
    assert model.fitted_.prior.cell == make().fit(SHORT).fitted_.prior.cell


def test_an_update_is_a_fit_to_all_rows(make):
    updated = make(prior="only").fit(PAST).update(LATER)
    close(updated.predict(level=80), make(prior="only").fit(FRAME).predict(level=80))


def test_rolling_forecasts_are_a_loop_of_fits(make):
    rolling = make(prior="only").fit(PAST).predict_rolling(LATER, h=1, level=80)
    for (cutoff, name), part in rolling.groupby(["cutoff", "unique_id"]):
        seen = FRAME[(FRAME["unique_id"] == name) & (FRAME["ds"] <= cutoff)]
        alone = make(prior="only").fit(seen).predict(h=1, level=80)
        close(part[alone.columns], alone)


def test_missing_rows_are_skipped(make):
    holes = SHORT.assign(y=SHORT["y"].where(SHORT.index % 7 != 3))
    forecasts = make(missing="keep").fit(holes).predict()
    assert np.isfinite(forecasts.iloc[:, -1]).all()
    with pytest.raises(ValueError, match="is for the prior network"):
        make(missing="keep", prior=None).fit(holes)


def test_errors_are_skipped(make):
    wrong = SHORT.copy()
    wrong.loc[9, "y"] += 200
    model = make().fit(wrong)
    assert model.outliers_["kind"].tolist() == ["error"]
    skipped = make(missing="keep").fit(wrong.assign(y=wrong["y"].where(wrong.index != 9)))
    np.testing.assert_allclose(
        model.predict().iloc[:, -1], skipped.predict().iloc[:, -1], rtol=1e-9
    )
    assert make(outliers=None).fit(wrong).outliers_.empty


def test_columns_have_effects(make):
    x = np.random.default_rng(0).normal(size=28)
    frame = quarterly(28).assign(x=x, y=lambda d: d["y"] + 20 * x)
    model = make(known_ahead="x", target="y").fit(frame[:24])
    assert model.summary().effects.set_index("effect of")["coef"]["x"] == pytest.approx(20, abs=2)
    future = frame[24:][["unique_id", "ds", "x"]]
    parts = model.contributions(X_future=future)
    forecasts = model.predict(X_future=future)
    np.testing.assert_allclose(parts.sum(axis=1), forecasts.iloc[:, -1], rtol=1e-9)
    components = model.components(X_future=future)
    np.testing.assert_allclose(components["fit"][-H:], forecasts.iloc[:, -1], rtol=1e-9)


def test_a_file_has_the_network(make, tmp_path, kind):
    model = make().fit(PAST)
    model.save(tmp_path / "model")
    read = load(tmp_path / "model")
    close(read.predict(level=80), model.predict(level=80))
    assert read.fitted_.prior.cell == kind[2]
    close(read.update(LATER).predict(), model.update(LATER).predict())


@pytest.mark.parametrize("size", [{"cell": "gru"}, {"cell": 3}, {"hidden_size": 2000}])
def test_a_damaged_size_is_refused(tmp_path, size):
    LEMForecaster(H).fit(SHORT).save(tmp_path / "model")
    header, arrays = read_file(tmp_path / "model")
    header["fitted"]["size"] |= size
    write_file(tmp_path / "model", header, arrays)
    with pytest.raises(DamagedFileError, match=r"fitted\.size"):
        load(tmp_path / "model")


def test_summary_and_features_are_of_the_forecasts(make, kind):
    model = make().fit(SHORT)
    text = str(model.summary())
    assert trained_prior(cell=kind[2]).description[:40] in text.replace("\n", " ")
    features = forecast_features(model)
    assert features["share"].sum() == pytest.approx(1, abs=0.05)
    for ask in (recurrence_features, lambda m: m.network_, lambda m: m.settings_):
        with pytest.raises(UninformativeNetworkError, match="prior=None"):
            ask(model)
    with pytest.raises(ValueError, match="prior=None"):
        export_torch(model, "x")


@pytest.mark.parametrize(("cls", "reader"), [(LEMForecaster, time_scales),
                                             (LRUForecaster, memory_lengths)])  # fmt: skip
def test_readers_of_a_layer_ask_for_training(cls, reader):
    with pytest.raises(UninformativeNetworkError, match="prior=None"):
        reader(cls(H).fit(SHORT))


def test_a_file_of_any_cell_forecasts(make, tmp_path):
    trained_prior(cell="newton-gru").save(tmp_path / "x.safetensors")
    model = make(prior=tmp_path / "x.safetensors").fit(SHORT)
    other = NewtonForecaster(H).fit(SHORT)
    np.testing.assert_allclose(model.predict().iloc[:, -1], other.predict().iloc[:, -1], rtol=1e-9)


SMALL = {"hidden_size": 4, "max_epochs": 1, "refit": False, "random_state": 0}


@pytest.mark.parametrize(
    ("cls", "arguments"),
    [
        (LEMForecaster, {"dt": 0.5}), (LEMForecaster, {"block_size": 2}),
        (LRUForecaster, {"state_units": 3}), (LRUForecaster, {"mlp": (2, 2)}),
        (NewtonForecaster, {"conv_size": 2}), (NewtonForecaster, {"n_heads": 2}),
        (NewtonForecaster, {"per_series": True}), (ParaRNNForecaster, {"cell": "gru"}),
        (ParaRNNForecaster, {"cell": "attention"}),
        (ParaRNNForecaster, {"cell": cells.para_gru(2)}),
        (ParaRNNForecaster, {"chrono_length": 9.0, "init": "chrono", "cell": "lem"}),
    ],
)  # fmt: skip
def test_arguments_of_a_layer_ask_for_training(cls, arguments):
    with pytest.raises(ValueError, match=f"prior='only' .*{next(iter(arguments))}="):
        cls(H, prior="only", **arguments).fit(SHORT)
    model = cls(H, **SMALL, **arguments).fit(quarterly(60))
    assert not isinstance(model.fitted_, FittedPrior)


def test_a_cell_without_a_network_is_refused_in_words():
    with pytest.raises(ValueError, match=r"got cell='gru', for which none was trained.*prior=None"):
        ParaRNNForecaster(prior="only", cell="gru").fit(SHORT)


def test_training_is_asked_for_by_none(make):
    model = make(prior=None, **SMALL).fit(quarterly(60))
    assert isinstance(model.fitted_, FittedNetworks)


def test_a_learned_combination_is_for_the_first_cell():
    other = ParaRNNForecaster(prior="only", cell="lem")
    members = [*Combination.recurrent().forecasters.values()][:-1]
    with pytest.raises(ValueError, match="cell='lem'"):
        Combination([*members, other], weights="network", horizon=2).fit(SHORT)


def test_a_combination_with_other_models(make):
    combined = Combination([make(), Naive()], weights=[0.5, 0.5], horizon=3).fit(PAST).predict(3)
    parts = [m.fit(PAST).predict(3).iloc[:, -1] for m in (make(horizon=3), Naive())]
    np.testing.assert_allclose(combined.iloc[:, -1], (parts[0] + parts[1]) / 2, rtol=1e-9)


def test_layers_of_a_user_are_trained():
    class Own(LRUForecaster):
        @staticmethod
        def _cell(arguments):
            return None

    model = Own(H, **SMALL).fit(quarterly(60))
    assert isinstance(model.fitted_, FittedNetworks)
    with pytest.raises(ValueError, match="got the layers of Own, for which none was trained"):
        Own(H, prior="only").fit(SHORT)
