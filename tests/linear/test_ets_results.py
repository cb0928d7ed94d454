"""Exponential smoothing: layers, features, components, criteria, intervals and the summary."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from statsmodels.tsa.exponential_smoothing.ets import ETSModel

from tsrnn import recurrence_features
from tsrnn.datasets import load_elec_equip
from tsrnn.linear import ETS

from .examples import ets_peer, ets_values
from .examples import seasonal as example

LINEAR = [
    (error, trend, damped, seasonal)
    for error in ("add", "mul")
    for trend, damped in (("none", False), ("add", False), ("add", True))
    for seasonal in ("none", "add")
]


def quarterly(n=60, seed=0):
    return example(n, seed, level=80, slope=0.4, wave=7)


def fitted(error, trend, damped, seasonal, series=None, **arguments):
    model = ETS(error, trend, seasonal, damped=damped, random_state=0, **arguments)
    return model.fit(quarterly() if series is None else series)


class TestLayers:
    @pytest.mark.few("add-none-False-add", "add-add-True-none", "mul-add-False-add")
    @pytest.mark.parametrize(("error", "trend", "damped", "seasonal"), LINEAR)
    def test_the_layer_gives_the_fitted_values(self, error, trend, damped, seasonal):
        series = quarterly()
        model = fitted(error, trend, damped, seasonal, series)
        layer, start = model.to_rnn(), model.rnn_start()
        with torch.no_grad():
            ahead, _ = layer(torch.tensor(series.to_numpy()).reshape(1, -1, 1), start)
        values = np.concatenate([start[0, 0, :1].numpy(), ahead[0, :, 0].numpy()])
        np.testing.assert_allclose(values[:-1], model.fittedvalues().to_numpy(), rtol=1e-10)
        np.testing.assert_allclose(values[-1], model.predict(1).to_numpy().item(), rtol=1e-10)
        # level and season share a root: the state is one smaller than that of the model
        assert layer.hidden_size == (trend != "none") + (4 if seasonal == "add" else 1)

    @pytest.mark.few("add-add-False-none", "add-none-False-add")
    @pytest.mark.parametrize(("error", "trend", "damped", "seasonal"), LINEAR[:6])
    def test_variances_are_those_of_the_arima(self, error, trend, damped, seasonal):
        model = fitted(error, trend, damped, seasonal, parameter_uncertainty=False)
        forecast, (a, theta) = model.predict(12, level=[95]), polynomials_of(model)
        psi = np.zeros(12)
        for j in range(12):
            psi[j] = theta[j] if j < len(theta) else 0.0
            psi[j] -= sum(a[i] * psi[j - i] for i in range(1, min(j, len(a) - 1) + 1))
        # of 60 rows less as many degrees of freedom as there are parameters of the means
        k = 1 + 2 * (trend != "none") + damped + 4 * (seasonal != "none") + 1
        root = np.sqrt(model.params_["sigma2"].item() * 60 / (60 - k) * (psi**2).cumsum())
        half = (forecast["y-hi-95"] - forecast["y-lo-95"]).to_numpy() / 2
        np.testing.assert_allclose(half, 1.959963984540054 * root, rtol=1e-9)

    @pytest.mark.parametrize(
        ("error", "trend", "seasonal"), [("mul", "none", "mul"), ("mul", "mul", "none")]
    )
    def test_products_are_no_layer(self, error, trend, seasonal):
        model = fitted(error, trend, False, seasonal)
        for ask in (model.to_rnn, model.rnn_start, model.recurrent_blocks):
            with pytest.raises(ValueError, match="multiplies components: its recursion is not lin"):
                ask()


def polynomials_of(model):
    """Return a and theta of the only unit, from its companion matrices."""
    (blocks,) = model.recurrent_blocks()
    return [np.concatenate([[1.0], -blocks[name][0][:, 0]]) for name in ("transition", "discount")]


class TestFeatures:
    def test_a_season_is_on_the_unit_circle(self):
        features = recurrence_features(fitted("add", "none", False, "add", load_elec_equip()))
        transition = features[features["matrix"] == "transition"]
        np.testing.assert_allclose(transition["modulus"], 1)
        pairs = transition[transition["type"] == "C-1"]
        expected = 2 * np.pi * np.arange(1, 6) / 12
        np.testing.assert_allclose(np.sort(pairs["angle"]), expected, rtol=1e-9)
        real = transition[transition["type"] == "R-1"]
        np.testing.assert_allclose(np.sort(real["angle"]), [0, np.pi], atol=1e-9)

    def test_a_damped_trend_is_a_decay(self):
        model = fitted("add", "add", True, "none")
        features = recurrence_features(model)
        moduli = features.loc[features["matrix"] == "transition", "modulus"]
        np.testing.assert_allclose(moduli, [1, model.params_["phi"].item()], rtol=1e-9)

    def test_a_trend_is_a_double_root(self):
        features = recurrence_features(fitted("add", "add", False, "none"))
        transition = features[features["matrix"] == "transition"]
        assert transition["type"].tolist() == ["R-2"]

    def test_simple_smoothing_forgets_by_one_less_alpha(self):
        model = fitted("add", "none", False, "none")
        (blocks,) = model.recurrent_blocks()
        np.testing.assert_allclose(blocks["discount"].item(), 1 - model.params_["alpha"].item())

    def test_models_have_names_where_there_are_several(self):
        frame = pd.DataFrame({"a": quarterly(), "b": 90 - quarterly(seed=3)})
        model = ETS(seasonal="none").fit(frame)
        (blocks,) = model.recurrent_blocks()
        titles = set(model.models_)
        assert {name.partition(", ")[2] for name in blocks} == titles
        assert sum(len(part) for part in blocks.values()) == 4


def components_by_loop(values, model):
    """Return level, trend and season after every row, by the equations."""
    row = model.params_.iloc[0].to_dict()
    alpha, beta, gamma = (row.get(name, 0.0) for name in ("alpha", "beta", "gamma"))
    phi, level, trend = row.get("phi", 1.0), row["level"], row.get("trend", 0.0)
    season = [row[f"season[{i}]"] for i in (1, 2, 3)]
    season.append(4 - sum(season))
    table = []
    for y in values:
        ahead = level + phi * trend
        r = y - ahead * season[0]
        c = season[0]
        season = [*season[1:], season[0] + gamma * r / ahead]
        level, trend = ahead + alpha * r / c, phi * trend + beta * r / c
        table.append([level, trend, season[-1]])
    return np.array(table)


class TestComponents:
    def test_are_those_of_a_loop(self):
        series = quarterly()
        model = fitted("mul", "add", False, "mul", series)
        frame = model.components()
        assert list(frame) == ["time", "level", "trend", "season"]
        assert frame["time"].tolist() == series.index.tolist()
        expected = components_by_loop(series.to_numpy(), model)
        np.testing.assert_allclose(frame.iloc[:, 1:], expected, rtol=1e-10)

    @pytest.mark.few("add-none-False-add", "add-add-True-none", "mul-add-False-add")
    @pytest.mark.parametrize(("error", "trend", "damped", "seasonal"), LINEAR)
    def test_are_those_of_statsmodels(self, error, trend, damped, seasonal):
        series = quarterly()
        model = fitted(error, trend, damped, seasonal, series)
        values = ets_values(model.params_.iloc[0])
        expected = ets_peer(series, error, trend, damped, seasonal).smooth(values)
        frame = model.components()
        np.testing.assert_allclose(frame["level"], expected.level, rtol=1e-9)
        for name, part in (("trend", trend), ("season", seasonal)):
            if part == "none":
                assert frame[name].isna().all()
            else:
                theirs = expected.slope if name == "trend" else expected.season
                np.testing.assert_allclose(frame[name], theirs, rtol=1e-7, atol=1e-9)

    def test_of_a_long_frame_of_several_targets(self):
        parts = [
            pd.DataFrame({
                "unique_id": name, "ds": quarterly(n).index, "y": quarterly(n, seed).to_numpy(),
                "z": quarterly(n, seed + 5).to_numpy(),
            })
            for seed, (name, n) in enumerate([("a", 40), ("b", 33)])
        ]  # fmt: skip
        frame = pd.concat(parts, ignore_index=True)
        model = ETS("add", "none", "none", target=["y", "z"]).fit(frame)
        table = model.components()
        assert list(table) == ["unique_id", "ds", "target", "level", "trend", "season"]
        assert len(table) == 2 * 73
        for (name, target), rows in table.groupby(["unique_id", "target"]):
            own = frame[frame["unique_id"] == name]
            alone = ETS("add", "none", "none").fit(own.set_index("ds")[target]).components()
            assert rows["ds"].tolist() == own["ds"].tolist()
            np.testing.assert_allclose(rows["level"], alone["level"], rtol=1e-6)

    def test_of_other_data_begin_from_their_decomposition(self):
        model = fitted("add", "none", False, "none")
        later = quarterly(n=80).iloc[40:]
        assert np.isfinite(model.components(later)["level"]).all()

    def test_the_last_ones_are_the_state(self):
        model = fitted("add", "add", True, "add")
        last = model.components().iloc[-1]
        memory = model.state_.arrays["memory"].ravel()
        np.testing.assert_allclose(last[["level", "trend"]].astype(float), memory[:2])
        np.testing.assert_allclose(last["season"], memory[-1])


class TestCriteria:
    @pytest.mark.few("add-none-False-add", "add-add-True-none", "mul-none-False-none")
    @pytest.mark.parametrize(("error", "trend", "damped", "seasonal"), LINEAR)
    def test_count_as_r_does(self, error, trend, damped, seasonal):
        """Smoothing parameters, states before the first row, and sigma2."""
        model = fitted(error, trend, damped, seasonal)
        k = 2 + 1 + 2 * (trend != "none") + damped + 4 * (seasonal != "none")
        n, loglik = 60, model.loglik_.item()
        np.testing.assert_allclose(model.aic_.item(), 2 * k - 2 * loglik)
        np.testing.assert_allclose(model.bic_.item(), k * np.log(n) - 2 * loglik)
        aicc = 2 * k - 2 * loglik + 2 * k * (k + 1) / (n - k - 1)
        np.testing.assert_allclose(model.aicc_.item(), aicc)
        np.testing.assert_allclose(model.candidates_.to_numpy().item(), aicc, rtol=1e-9)

    @pytest.mark.slow
    def test_a_choice_has_the_lowest_that_models_have_by_themselves(self):
        series = quarterly()
        chosen = ETS().fit(series)
        best = np.inf
        products = [("mul", "none", False), ("mul", "add", False), ("mul", "add", True)]
        for error, trend, damped, seasonal in [*LINEAR, *((*each, "mul") for each in products)]:
            if (error, trend, seasonal) != ("mul", "add", "add") or damped:
                best = min(best, fitted(error, trend, damped, seasonal, series).aicc_.item())
        assert chosen.aicc_.item() <= best + 1e-3
        np.testing.assert_allclose(chosen.candidates_.iloc[0].min(), chosen.aicc_.item(), rtol=1e-9)

    def test_scale_moves_all_candidates_alike(self):
        series = quarterly()
        one, thousand = (ETS().fit(series * c) for c in (1, 1000))
        difference = thousand.candidates_ - one.candidates_
        likely = one.candidates_.iloc[0] < one.candidates_.iloc[0].min() + 2
        np.testing.assert_allclose(difference.iloc[0][likely], 2 * 60 * np.log(1000), rtol=1e-6)

    def test_aic_is_that_of_statsmodels_without_a_season(self):
        series = quarterly()
        peer = ETSModel(series, "add", "add", True).fit(disp=False)
        model = fitted("add", "add", True, "none", series, bounds="usual")
        assert model.aic_.item() <= peer.aic + 1e-4


class TestIntervals:
    @pytest.mark.few(
        "add-none-False-add", "add-add-True-none", "mul-add-False-add", "mul-none-False-mul"
    )
    @pytest.mark.parametrize(
        ("error", "trend", "damped", "seasonal"),
        [*LINEAR, ("mul", "none", False, "mul"), ("mul", "add", True, "mul"),
         ("add", "mul", False, "none"), ("mul", "mul", True, "mul")],
    )  # fmt: skip
    def test_cover_simulated_paths(self, error, trend, damped, seasonal):
        model = fitted(error, trend, damped, seasonal, n_simulations=20000)
        h, n = 9, 20000
        paths = model.sample_paths(n, h=h, random_state=1)["y"].to_numpy().reshape(n, h)
        forecast = model.predict(h, level=[80, 95])
        spread = paths.std(0)
        for level in (80, 95):
            low, high = (forecast[f"y-{side}-{level}"].to_numpy() for side in ("lo", "hi"))
            inside = ((paths >= low) & (paths <= high)).mean(0)
            # multiplicative errors are not quite normal some steps ahead
            np.testing.assert_allclose(inside, level / 100, atol=0.012)
        if trend != "mul" and seasonal != "mul":
            np.testing.assert_allclose(paths.mean(0), forecast["y"], atol=0.05 * spread.max())
            width = (forecast["y-hi-95"] - forecast["y-lo-95"]) / (2 * 1.959963984540054)
            np.testing.assert_allclose(width, spread, rtol=0.03)

    def test_the_guarantee_says_what_they_rest_on(self):
        assert "taken as known" in fitted("add", "none", False, "none").interval_guarantee_


class TestInference:
    @pytest.mark.parametrize("kind", ["hessian", "opg", "information", "robust"])
    def test_kinds_of_standard_errors(self, kind):
        model = fitted("mul", "none", False, "none", cov_type=kind)
        assert (model.bse_ > 0).all(axis=None)

    def test_on_a_bound_there_is_no_standard_error(self):
        values = np.arange(80.0) % 4 + np.random.default_rng(0).normal(size=80) / 9
        model = fitted("add", "none", False, "add", pd.Series(values), season_length=4)
        text = model.messages_.iloc[0][0]
        assert text.startswith("On the boundary: ")
        for name in text.removeprefix("On the boundary: ").partition(".")[0].split(", "):
            assert np.isnan(model.bse_[name].item())
            assert np.isnan(model.conf_int().loc[(slice(None), name), "lower"]).all()
        assert np.isfinite(model.bse_["level"].item())

    def test_along_a_bound_the_gradient_is_zero(self):
        """With gamma at 1 - alpha the likelihood is maximal along that line."""
        model = fitted("add", "none", False, "add", load_elec_equip())
        row, fixed = model.params_.iloc[0], model.estimates_.fixed[0]
        assert row["alpha"] + row["gamma"] > 0.9999
        assert np.abs(model.estimates_.gradient[0][~fixed]).max() < 1e-3
        half = 3e-4

        def along(alpha):
            moved = row.copy()
            share = row["gamma"] / (1 - row["alpha"])
            moved["alpha"], moved["gamma"] = alpha, share * (1 - alpha)
            return ETS("add", "none", "add").filter(load_elec_equip(), moved).loglik_.item()

        values = [along(row["alpha"] + step) for step in (-half, 0, half)]
        curvature = -(values[0] - 2 * values[1] + values[2]) / half**2
        information = -model.estimates_.hessian[0][0, 0]
        np.testing.assert_allclose(curvature, information, rtol=1e-4)

    def test_nested_models_are_known_and_have_no_limit(self):
        small, large = (fitted("add", trend, False, "none") for trend in ("none", "add"))
        test = large.lr_test(small)
        assert np.isnan(test["p_value"].item())
        with pytest.raises(ValueError, match="negative|nested|fewer|more parameters"):
            small.lr_test(large)


class TestSummary:
    def text(self, model):
        return " ".join(str(model.summary()).split())

    def test_of_a_choice(self):
        model = ETS().fit(quarterly())
        text, best = self.text(model), model.candidates_.iloc[0].nsmallest(3)
        shown = ", ".join(f"{title} {value:.2f}" for title, value in best.items())
        for words in (
            f"Chosen: {model.models_.item()}", "of: 15 by AICc",
            f"AICc of the best of 15 models: {shown}.", f"AICc: {model.aicc_.item():.3f}",
            f"level {model.components()['level'].iloc[-1]:.4g}",
        ):  # fmt: skip
            assert words in text

    def test_of_a_season(self):
        model = fitted("add", "none", False, "add")
        season = model.components()["season"].iloc[-4:]
        shown = " ".join(f"{value:.4g}" for value in season)
        assert f"season of the rows that follow {shown}." in self.text(model)

    def test_of_many(self):
        frame = pd.DataFrame({name: quarterly(seed=i) for i, name in enumerate("abcde")})
        model = ETS().fit(frame)
        title, count = next(iter(model.models_.value_counts().items()))
        assert f"Commonest: {title}, {count} units" in self.text(model)
        assert "AICc of the best" in str(model.summary("c"))

    def test_of_a_season_that_is_left_out(self):
        weeks = pd.date_range("2020-01-05", periods=150, freq="W")
        series = pd.Series(np.random.default_rng(0).normal(50, 1, 150), weeks, name="y")
        assert "The season of 52 rows is left out" in self.text(ETS("add", "none").fit(series))
