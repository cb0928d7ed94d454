"""A network that contributes nothing is not read: every reader says so, and what forecasts."""

import re
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from tsrnn import (
    ARMA,
    LEMForecaster,
    LRUForecaster,
    ParaRNNClassifier,
    ParaRNNForecaster,
    ParaRNNRegressor,
    load,
    recurrence_features,
)
from tsrnn.interpret import (
    UninformativeNetworkError,
    gradient_bound,
    hidden_state_bound,
    memory_lengths,
    reconstruct_input,
    time_scales,
    time_steps,
)
from tsrnn.plotting import plot_contributions, plot_features, plot_lag_curves

SMALL = {
    "horizon": 3, "hidden_size": 4, "n_layers": 1, "input_size": 6, "max_epochs": 2,
    "refit": False, "random_state": 0,
}  # fmt: skip
FAR = {"learning_rate": 30.0}  # the first step leaves all that forecasts well
OF_ALL = [recurrence_features]
READERS = [
    *((ParaRNNForecaster, reader) for reader in OF_ALL),
    *((LEMForecaster, r) for r in (*OF_ALL, time_steps, time_scales, hidden_state_bound)),
    (LEMForecaster, gradient_bound),
    *((LRUForecaster, reader) for reader in (*OF_ALL, memory_lengths, reconstruct_input)),
]


@pytest.fixture(autouse=True)
def _figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def sales():
    index = pd.date_range("2015-01-01", periods=80, freq="MS")
    draw = np.random.default_rng(0)
    return pd.Series(np.sin(np.arange(80) / 2) + draw.normal(size=80) / 5, index, name="sales")


@pytest.fixture(scope="module")
def fitted(sales):
    """Fit a forecaster once."""
    models = {}

    def fit(cls=ParaRNNForecaster, **changes):
        key = (cls, *changes.items())
        if key not in models:
            models[key] = cls(**SMALL | changes).fit(sales)
        return models[key]

    return fit


@pytest.fixture(scope="module")
def partly(sales):
    """Three networks of which the second alone is taken to have learned something."""
    model = ParaRNNForecaster(**SMALL | {"n_estimators": 3, "linear_path": False}).fit(sales)
    assert model.network_active_
    model.fitted_ = replace(model.fitted_, best_epochs=[0, 2, 0])
    for i in (0, 2):
        model.network_.members[i].output.weight.data.zero_()
        model.network_.members[i].output.bias.data.zero_()
    return model


class TestReaders:
    @pytest.mark.parametrize(("cls", "reader"), READERS)
    def test_refuse_start_values(self, fitted, cls, reader):
        model = fitted(cls, **FAR)
        assert model.best_epochs_ == [0]
        assert not model.network_active_
        with pytest.raises(UninformativeNetworkError) as caught:
            reader(model)
        for part in (
            f"network of this {cls.__name__} has learned nothing: none of its 2 epochs",
            "the local level and the linear path alone forecast",
            "linear_path=False leaves all beyond the local level to the network",
        ):
            assert part in str(caught.value)

    @pytest.mark.parametrize("cls", [ParaRNNForecaster, LEMForecaster])
    def test_block_shares_are_refused_alike(self, fitted, cls):
        with pytest.raises(UninformativeNetworkError, match="block_shares_ reads"):
            fitted(cls, **FAR).block_shares_()

    def test_start_values_are_read_by_who_asks_for_them(self, fitted):
        assert len(recurrence_features(fitted(**FAR).network_)) >= 2

    def test_a_file_remembers(self, fitted, tmp_path):
        model = fitted(**FAR)
        model.save(tmp_path / "model.tsrnn")
        loaded = load(tmp_path / "model.tsrnn")
        assert loaded.inactive_networks_ == model.inactive_networks_
        assert loaded.sample_length_ == 80
        with pytest.raises(UninformativeNetworkError):
            recurrence_features(loaded)

    def test_what_has_learned_is_read(self, fitted):
        model = fitted(linear_path=False)
        assert model.network_active_
        assert model.inactive_networks_ == {}
        assert len(recurrence_features(model)) >= 2

    def test_advice_without_a_linear_path_is_none_to_leave_it_out(self, fitted):
        with pytest.raises(
            UninformativeNetworkError, match="the local level alone forecast"
        ) as error:
            recurrence_features(fitted(linear_path=False, **FAR))
        assert "linear_path=False" not in str(error.value)

    def test_a_network_alone_at_its_start_forecasts(self, fitted):
        model = fitted(linear_path=False, local_level=False, **FAR)
        with pytest.raises(UninformativeNetworkError, match="an untrained network forecasts"):
            recurrence_features(model)
        assert "Forecasts: the network, at the random start" in str(model.summary())


class TestSummary:
    def head(self, model):
        lines = str(model.summary()).splitlines()
        return " ".join(lines[2 : lines.index("-" * 78)])

    def test_begins_with_what_forecasts(self, fitted):
        assert self.head(fitted(**FAR)) == (
            "Forecasts: the local level and the linear path alone. The network contributes "
            "nothing: none of 2 epochs was better on the validation part (best epoch 0)."
        )
        assert fitted(**FAR).summary().network_features is None
        assert fitted(**FAR).summary().features is not None  # of what does forecast

    def test_has_the_errors_with_and_without_the_network(self, fitted):
        model = fitted(linear_path=False)
        rmse = model.validation_.mean()
        said = self.head(model)
        assert "Forecasts: the local level and the network." in said
        assert f"is {rmse['model']:.3f} with and {rmse['level']:.3f} without it" in said

    def test_of_an_ensemble_names_those_that_contribute_nothing(self, partly):
        said = self.head(partly)
        assert "the mean of 3 networks. Of these 2 contribute nothing: 1, 3." in said


class TestValidation:
    def test_the_linear_path_alone_is_the_model_whose_network_is_off(self, fitted):
        off, on = fitted(**FAR), fitted(learning_rate=1e-2, max_epochs=6, network=True)
        columns = ["level", "linear path", "last value", "seasonal naive"]
        pd.testing.assert_frame_equal(off.validation_[columns], on.validation_[columns])
        np.testing.assert_allclose(off.validation_["model"], off.validation_["linear path"])
        assert on.network_active_
        assert not np.allclose(on.validation_["model"], on.validation_["linear path"], rtol=1e-3)

    def test_of_columns_known_ahead_too(self, sales):
        frame = sales.to_frame().assign(x=np.random.default_rng(1).normal(size=80))
        frame["sales"] += 3 * frame["x"]
        model = ParaRNNForecaster(**SMALL | FAR, target="sales", known_ahead="x").fit(frame)
        assert not model.network_active_
        rmse = model.validation_
        np.testing.assert_allclose(rmse["model"], rmse["linear path"], rtol=1e-5)
        assert (rmse["linear path"] < 0.7 * rmse["level"]).all()


class TestContributions:
    def test_a_network_that_is_off_is_one_part_and_zero(self, fitted):
        model = fitted(**FAR)
        parts = model.contributions()
        assert list(parts) == ["level", "linear path", "network"]
        assert (parts["network"] == 0).all()
        np.testing.assert_allclose(parts.sum(axis=1), model.predict(), rtol=1e-6)
        labels = plot_contributions(parts).get_legend_handles_labels()[1]
        assert "zero: network" in labels

    def test_networks_that_are_off_have_no_blocks(self, partly):
        parts = partly.contributions()
        assert list(parts) == ["level", "block 3", "block 4", "constant"]
        np.testing.assert_allclose(parts.sum(axis=1), partly.predict(), rtol=1e-6)


class TestEnsembles:
    def test_networks_that_are_off_have_no_features(self, partly):
        features = recurrence_features(partly)
        assert features["network"].unique().tolist() == [2]
        alone = recurrence_features(partly.network_.networks[1])
        np.testing.assert_array_equal(features["modulus"], alone["modulus"])
        assert features.groupby("block")["share"].first().sum() == pytest.approx(1)
        assert sorted(partly.inactive_networks_) == [1, 3]
        assert partly.inactive_networks_[3].startswith("network 3 of this ParaRNNForecaster")

    def test_one_that_is_left_is_read_alone(self, sales):
        model = LRUForecaster(**SMALL | {"n_estimators": 2, "linear_path": False}).fit(sales)
        model.fitted_ = replace(model.fitted_, best_epochs=[0, 1])
        table = memory_lengths(model)
        assert set(table["network"]) == {2}
        alone = memory_lengths(model.network_.networks[1].rnn, freq="MS")
        pd.testing.assert_frame_equal(table.drop(columns="network"), alone)


class TestRegressors:
    X = np.random.default_rng(0).normal(size=(120, 5, 1))
    NOISE = np.random.default_rng(1).normal(size=120)

    def test_no_better_than_the_start(self):
        model = ParaRNNRegressor(4, max_epochs=2, learning_rate=30.0, random_state=0)
        model.fit(self.X, self.X[:, -1, 0])
        assert model.best_epoch_ == 0
        with pytest.raises(UninformativeNetworkError, match="none of its 2 epochs was better"):
            recurrence_features(model)
        assert "network at its random start" in str(model.summary()).splitlines()[2]

    @pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
    def test_no_better_than_a_constant(self, loss, tmp_path):
        y = 2 * self.X[:, -1, 0] * np.where(np.arange(120) < 60, 1, -1)  # held out, it turns
        model = ParaRNNRegressor(
            4, loss=loss, max_epochs=4, validation_fraction=0.5, validation_split="last",
            random_state=2,
        ).fit(self.X, y)  # fmt: skip
        assert model.best_epoch_ == 1
        assert model.validation_skill_ < 0
        assert not model.network_active_
        with pytest.raises(UninformativeNetworkError, match="no better than a constant"):
            recurrence_features(model)
        assert "contributes nothing" in " ".join(str(model.summary()).split())
        model.save(tmp_path / "model.tsrnn")
        assert load(tmp_path / "model.tsrnn").inactive_networks_ == model.inactive_networks_

    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("many", [False, True])
    def test_skill_is_one_less_the_ratio_of_risks(self, many, weighted):
        y = self.X[..., 0].cumsum(1) if many else self.X[:, -1, 0]
        weights = np.random.default_rng(2).uniform(0.5, 2, 120) if weighted else None
        fit = {"max_epochs": 3, "learning_rate": 0.01, "validation_split": "last"}
        model = ParaRNNRegressor(8, many_to_many=many, random_state=0, **fit)
        model.fit(self.X, y, sample_weight=weights)
        own = np.ones(120) if weights is None else weights
        own = np.repeat(own, 5) if many else own
        train = len(own) * model.n_train_ // 120
        y = y.ravel()
        mean = np.average(y[:train], weights=own[:train])
        constant = np.average((y[train:] - mean) ** 2, weights=own[train:])
        expected = 1 - model.validation_risk_.value / constant
        assert model.validation_skill_ == pytest.approx(expected, rel=1e-4)
        assert model.network_active_ == (expected > 0)

    def test_skill_of_a_classifier_is_against_the_shares_of_classes(self):
        y = np.where(self.X[:, -1, 0] > 0.3, "up", "down")
        fit = {"max_epochs": 3, "learning_rate": 0.01, "validation_split": "last"}
        model = ParaRNNClassifier(8, random_state=0, **fit)
        model.fit(self.X, y)
        train = model.n_train_
        shares = {label: np.mean(y[:train] == label) for label in ("up", "down")}
        constant = -np.mean([np.log(shares[label]) for label in y[train:]])
        expected = 1 - model.validation_risk_.value / constant
        assert model.validation_skill_ == pytest.approx(expected, rel=1e-4)

    def test_what_was_not_judged_is_read(self):
        model = ParaRNNRegressor(4, max_epochs=2, early_stopping=False, random_state=0)
        model.fit(self.X, self.NOISE)
        assert model.validation_skill_ is None
        if model.best_epoch_:
            assert len(recurrence_features(model)) >= 2
        model.partial_fit(self.X, self.NOISE)
        assert model.network_active_
        assert len(recurrence_features(model)) >= 2


class TestBeyondTheSample:
    """Two rows with moduli of half-lives 53 and 69,000 months, of 80 months of data."""

    @pytest.fixture
    def slow(self, fitted):
        model = fitted(linear_path=False, block_size=1, cell="rnn")
        blocks = model.network_.rnn.weight_hh_l0
        blocks.data[..., :2] = blocks.new_tensor([0.987, 0.99999])
        return model

    def test_is_marked(self, slow):
        features = recurrence_features(slow)
        assert features.attrs["sample_length"] == 80
        assert (features["beyond_sample"] == (features["half_life"] > 80)).all()
        assert features["beyond_sample"].sum() == 1
        in_years = recurrence_features(slow, freq="YS")
        assert in_years.attrs["sample_length"] == 80
        assert recurrence_features(slow, freq="3MS").attrs["sample_length"] == 240
        assert "beyond_sample" not in recurrence_features([[0.99999]])

    def test_a_long_period_is_too_and_none_is_not(self, fitted):
        model = fitted(linear_path=False)
        turn = 0.5 * np.exp(1j * 2 * np.pi / 100)
        block = np.array([[turn.real, turn.imag], [-turn.imag, turn.real]])
        before = model.network_.rnn.weight_hh_l0.data.clone()
        try:
            model.network_.rnn.weight_hh_l0.data[..., 0] = before.new_tensor(block)
            model.network_.rnn.weight_hh_l0.data[..., 1] = before.new_tensor(np.diag([0.5, 0.4]))
            features = recurrence_features(model)
        finally:
            model.network_.rnn.weight_hh_l0.data = before
        assert features.loc[features["period"] > 80, "beyond_sample"].tolist() == [
            True,
            False,
            False,
        ]
        assert np.isinf(features["period"]).sum() == 2

    def test_is_said_in_the_summary(self, slow):
        page = str(slow.summary())
        assert re.search(r"R-1 +1 +0 +>80 +inf", page)
        assert ">80: beyond the sample, longer than any series; not identified." in page

    def test_is_said_in_plots(self, slow):
        features = recurrence_features(slow)
        texts = [text.get_text() for text in plot_features(features).texts]
        assert "R-1, half-life beyond the sample of 80 months" in texts
        assert "R-1, half-life 53 months" in texts
        labels = plot_lag_curves(features).get_legend_handles_labels()[1]
        assert any("beyond the sample of 80 months" in label for label in labels)

    def test_of_a_classical_model_too(self, sales):
        walk = pd.Series(np.random.default_rng(0).normal(size=60).cumsum())
        features = recurrence_features(ARMA(order=(1, 0)).fit(walk))
        assert features.attrs["sample_length"] == 60
        assert features["beyond_sample"].tolist() == (features["half_life"] > 60).tolist()
