"""Statistics: processes whose best forecast is known are forecast nearly as well."""

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter

from tsrnn import ParaRNNForecaster


def autoregression(n, phi, seed, series=1):
    """Return stationary AR(1) paths with unit noise, (n, series)."""
    noise = np.random.default_rng(seed).normal(size=(n + 200, series))
    return lfilter([1], [1, -phi], noise, axis=0)[200:]


def rolled(model, frame, h, column="y"):
    """Return rolling forecasts of the rows of a wide frame, and what came: both (n, h)."""
    forecast = model.predict_rolling(frame, h=h)[column].to_numpy().reshape(-1, h)
    actual = np.lib.stride_tricks.sliding_window_view(frame[column].to_numpy(), h)
    return forecast, actual


def rmse(forecast, actual):
    return np.sqrt(np.mean((forecast - actual) ** 2, axis=0))


@pytest.fixture(scope="module")
def path():
    return pd.DataFrame({"y": autoregression(3000, 0.8, seed=0)[:, 0]})


@pytest.fixture(scope="module", params=[True, False], ids=["local level", "global level"])
def model(request, small, path):
    return small(input_size=24, local_level=request.param).fit(path.iloc[:2000])


@pytest.fixture(scope="module")
def lagged():
    """Return y1 white noise and y2_t = y1_{t-1} + 0.1 noise."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=501)
    return pd.DataFrame({"y1": x[1:], "y2": x[:-1] + 0.1 * draw.normal(size=500)})


class TestAutoregression:
    PHI, H = 0.8, 6

    def errors(self, model, path):
        forecast, actual = rolled(model, path.iloc[2000:], self.H)
        last = path["y"].to_numpy()[1999 : 1999 + len(forecast)]
        decay = self.PHI ** np.arange(1, self.H + 1)
        return forecast, last, rmse(forecast, actual), rmse(last[:, None] * decay, actual)

    def test_one_step_error_is_that_of_the_noise(self, model, path):
        *_, ours, best = self.errors(model, path)
        assert ours[0] == pytest.approx(1, rel=0.08)
        assert ours[0] < 1.04 * best[0]

    def test_no_step_is_much_worse_than_the_best_forecast(self, model, path):
        *_, ours, best = self.errors(model, path)
        # The level of 24 rows is not the mean that forecasts of an AR(1) go to.
        assert (ours < (1.15 if model.local_level else 1.04) * best).all()

    def test_forecasts_decay_as_powers(self, model, path):
        forecast, last, *_ = self.errors(model, path)
        slopes = np.polyfit(last, forecast, 1)[0]
        assert (np.diff(slopes) < 0).all()
        if not model.local_level:
            np.testing.assert_allclose(slopes, self.PHI ** np.arange(1, self.H + 1), atol=0.08)

    def test_white_noise_is_forecast_by_its_mean(self, small, path):
        noise = pd.DataFrame({"y": 5 + autoregression(1500, 0.0, seed=1)[:, 0]})
        model = small(input_size=24, local_level=False).fit(noise.iloc[:1000])
        forecast, actual = rolled(model, noise.iloc[1000:], 6)
        assert (rmse(forecast, actual) < 1.04 * rmse(np.mean(noise["y"]), actual)).all()


class TestBayesError:
    """With the defaults and 4,000 rows to fit to, within two percent of the best forecasts."""

    N, H = 4000, 6

    @pytest.mark.few("[1.2, -0.5]")
    @pytest.mark.parametrize(
        ("ar", "ma"), [([0.8], []), ([1.2, -0.5], [0.4]), ([0.5, 0.3], [-0.6])], ids=str
    )
    def test_of_arma(self, ar, ma):
        noise = np.random.default_rng(0).normal(size=self.N + 2500)
        y = lfilter([1, *ma], [1, *(-np.array(ar))], noise)[500:]
        noise = noise[500:]
        frame = pd.DataFrame({"y": y})
        model = ParaRNNForecaster(horizon=self.H, max_epochs=3, random_state=0)
        forecast, actual = rolled(model.fit(frame[: self.N]), frame[self.N :], self.H)
        best = self.best(y, noise, ar, ma)
        assert len(best) == len(forecast)
        assert (rmse(forecast, actual) < 1.02 * rmse(best, actual)).all()

    def best(self, y, noise, ar, ma):
        """Return the conditional means (n, h) given the past of the process and its noise."""
        found = []
        for t in range(self.N - 1, len(y) - self.H):
            values, shocks = list(y[: t + 1][-5:]), [*noise[: t + 1][-5:], *np.zeros(self.H)]
            for k in range(self.H):
                past = sum(phi * values[-1 - i] for i, phi in enumerate(ar))
                values.append(past + sum(m * shocks[4 + k - i] for i, m in enumerate(ma)))
            found.append(values[5:])
        return np.array(found)


class TestDeterministic:
    def test_a_sine_is_continued(self, small):
        steps = np.arange(340)
        sine = pd.Series(10 * np.sin(2 * np.pi * steps / 25))
        forecast = small(horizon=25, input_size=50).fit(sine.iloc[:280]).predict(60)
        np.testing.assert_allclose(forecast, sine.iloc[280:], atol=0.01)

    def test_a_sum_of_sines_is_continued_two_hundred_steps(self):
        steps = np.arange(1200)
        waves = 10 * np.sin(2 * np.pi * steps / 25) + 4 * np.cos(2 * np.pi * steps / 60 + 1)
        series = pd.Series(waves + 2 * np.sin(2 * np.pi * steps / 7.5))
        model = ParaRNNForecaster(horizon=50, input_size=150, max_epochs=2, random_state=0)
        forecast = model.fit(series.iloc[:1000]).predict(200)
        np.testing.assert_allclose(forecast, series.iloc[1000:], atol=0.01)

    def test_a_trend_is_continued(self, small):
        line = pd.Series(3 + 0.5 * np.arange(236.0))
        forecast = small().fit(line.iloc[:200]).predict(36)
        np.testing.assert_allclose(forecast, line.iloc[200:], atol=0.05)

    @pytest.mark.slow
    def test_a_nonlinear_map_needs_the_network(self, small):
        values = [0.3]
        for _ in range(899):
            values.append(3.8 * values[-1] * (1 - values[-1]))
        path = pd.DataFrame({"y": values})
        settings = {"horizon": 1, "input_size": 8, "hidden_size": 16, "learning_rate": 5e-3}
        model = small(**settings, max_epochs=15).fit(path.iloc[:700])
        forecast, actual = rolled(model, path.iloc[700:], 1)
        assert rmse(forecast, actual)[0] < 0.35 * path["y"].std()
        assert model.best_epoch_ > 0

    def test_the_last_observation_matters(self, small, wave):
        model = small().fit(wave)
        moved = wave.copy()
        moved.iloc[-1] += 3 * wave.std()
        change = model.predict(moved) - model.predict()
        assert abs(change.iloc[0]) > 0.1 * wave.std()


class TestEquivariance:
    @pytest.mark.parametrize(("shift", "factor"), [(1e3, 5.0), (-20.0, 0.01), (7.0, -3.0)])
    def test_of_level_and_unit(self, small, wave, shift, factor):
        base = small().fit(wave).predict(9)
        moved = small().fit(shift + factor * wave).predict(9)
        scale = abs(factor) * wave.std()
        np.testing.assert_allclose(moved, shift + factor * base, rtol=0, atol=1e-4 * scale)

    def test_of_intervals(self, small, wave):
        base = small().fit(wave).predict(6, level=[80])
        moved = small().fit(1e3 - 5 * wave).predict(6, level=[80])
        expected = 1e3 - 5 * base[["y", "y-hi-80", "y-lo-80"]]
        np.testing.assert_allclose(moved, expected, rtol=0, atol=1e-3 * wave.std())

    @pytest.mark.parametrize("factor", [1e-280, 1e280])
    def test_of_very_small_and_large_values(self, small, wave, factor):
        base, moved = small().fit(wave).predict(6), small().fit(factor * wave).predict(6)
        np.testing.assert_allclose(moved / factor, base, rtol=1e-4)

    def test_series_of_very_different_scales(self, small, panel):
        scaled = panel.copy()
        scaled["y"] *= panel["unique_id"].map({"a": 1e-6, "b": 1.0, "c": 1e9})
        base = small().fit(panel).predict(6).set_index("unique_id")["ParaRNN"]
        moved = small().fit(scaled).predict(6).set_index("unique_id")["ParaRNN"]
        for name, factor in {"a": 1e-6, "b": 1.0, "c": 1e9}.items():
            np.testing.assert_allclose(moved[name], factor * base[name], rtol=1e-5)


class TestMultivariate:
    def test_joint_uses_the_other_series(self, small, lagged):
        def error(multivariate):
            model = small(horizon=2, input_size=8, multivariate=multivariate)
            model.fit(lagged.iloc[:400])
            return rmse(*rolled(model, lagged.iloc[400:], 1, "y2"))[0]

        assert error("joint") < 0.15
        assert error("independent") > 0.8

    def test_independent_targets_do_not_look_at_each_other(self, small, wide):
        model = small(multivariate="independent").fit(wide)
        moved = wide.copy()
        moved.iloc[-5:, 0] += 10
        before, after = model.predict(wide), model.predict(moved)
        pd.testing.assert_frame_equal(before[["v", "w"]], after[["v", "w"]])
        assert (before["u"] != after["u"]).any()

    def test_independent_targets_share_the_parameters(self, small, wave):
        twin = pd.DataFrame({"p": wave, "q": wave})
        forecast = small(multivariate="independent").fit(twin).predict(8)
        np.testing.assert_array_equal(forecast["p"], forecast["q"])


class TestExogenous:
    def data(self, lag):
        draw = np.random.default_rng(1)
        x = draw.normal(size=500 + lag)
        noise = 0.1 * draw.normal(size=500)
        return pd.DataFrame({"y": 2 * x[: len(x) - lag] + noise, "x": x[lag:]})

    def test_known_ahead_effect_is_found(self, small):
        frame = self.data(lag=0)
        model = small(target="y", known_ahead="x", input_size=8).fit(frame.iloc[:400])
        errors = rmse(*rolled(model, frame.iloc[400:], 6))
        assert (errors < 0.15).all()

    def test_history_is_used(self, small):
        frame = self.data(lag=1)
        model = small(target="y", horizon=2, input_size=8).fit(frame.iloc[:400])
        forecast, actual = rolled(model, frame.iloc[400:], 2)
        errors = rmse(forecast, actual)
        assert errors[0] < 0.2
        assert errors[1] > 1.5  # what x will be is not known

    def test_known_futures_beyond_the_horizon(self, small):
        frame = self.data(lag=0)
        model = small(target="y", known_ahead="x", input_size=8).fit(frame.iloc[:400])
        forecast = model.predict(50, X_future=frame[["x"]].iloc[400:450])
        assert rmse(forecast["y"], frame["y"].iloc[400:450]) < 0.2


class TestConstantSeries:
    """Constant series are forecast as their constant and leave the others' intervals alone."""

    def frame(self, n_noise=4, n_constant=6, rows=60):
        draw = np.random.default_rng(0)
        noise = {f"noise {i}": draw.normal(size=rows) for i in range(n_noise)}
        constant = {f"constant {i}": np.full(rows, 5.0 + i) for i in range(n_constant)}
        long = pd.DataFrame(noise | constant).melt(var_name="unique_id", value_name="y")
        long["ds"] = np.tile(np.arange(rows), n_noise + n_constant)
        long["x"] = draw.normal(size=len(long))
        return long

    @pytest.mark.parametrize(
        "arguments", [{}, {"local_level": False}, {"known_ahead": "x"}, {"aggregation": "ffn"}]
    )
    def test_whatever_else_the_model_uses(self, small, arguments):
        long = self.frame()
        past, future = long[long["ds"] < 54], long[long["ds"] >= 54]
        model = small(horizon=4, freq=1, **arguments).fit(past)
        ahead = future[["unique_id", "ds", "x"]] if "known_ahead" in arguments else None
        forecast = model.predict(4, level=[50], X_future=ahead).set_index("unique_id")
        for i in range(6):
            rows = forecast.loc[f"constant {i}"].drop(columns="ds")
            np.testing.assert_allclose(rows, 5.0 + i, rtol=1e-12)
        noise = forecast.loc[[f"noise {i}" for i in range(4)]]
        assert (noise["ParaRNN-hi-50"] - noise["ParaRNN-lo-50"] > 0.5).all()


def test_another_wide_series_is_scaled_by_its_own_rows(small):
    draw = np.random.default_rng(0)
    known = pd.Series(1000 + 70 * draw.normal(size=120), name="y")
    model = small(horizon=4, freq=None).fit(known)
    other = pd.Series(0.008 * draw.normal(size=100), name="y")
    forecast = model.predict(other, level=80)
    assert ((forecast["y-hi-80"] - forecast["y-lo-80"]) < 0.1).all()
    pd.testing.assert_frame_equal(model.predict(known, level=80), model.predict(level=80))


def test_a_new_series_without_spread_is_said_to_be_so(small):
    draw = np.random.default_rng(0)
    long = pd.DataFrame({"unique_id": "a", "ds": np.arange(80), "y": draw.normal(size=80)})
    model = small(horizon=4, freq=1).fit(long)
    with pytest.warns(UserWarning, match="intervals of 'b' have no width"):
        model.predict(pd.concat([long, long[:1].assign(unique_id="b")]), level=80)
    wide = pd.Series(long["y"].to_numpy(), name="y")
    model = small(horizon=4, freq=None).fit(wide)
    with pytest.warns(
        UserWarning, match="intervals of 'y' have no width.* Give rows in which the series varies"
    ):
        model.predict(wide[:1] + 100, level=80)
