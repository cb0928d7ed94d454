"""Forecasts and intervals are those of statsmodels and arch, called by hand."""

import importlib.util
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from arch import arch_model
from sklearn.base import clone
from statsmodels.tsa.exponential_smoothing.ets import ETSModel
from statsmodels.tsa.vector_ar import var_model
from statsmodels.tsa.vector_ar.vecm import select_coint_rank

from tsrnn.baselines import (
    SARIMAX,
    VAR,
    VARMAX,
    VECM,
    ArchModel,
    StatsmodelsETS,
    StatsmodelsTheta,
    UnobservedComponents,
)

spec = importlib.util.spec_from_file_location("_direct", Path(__file__).with_name("_direct.py"))
direct = importlib.util.module_from_spec(spec)
spec.loader.exec_module(direct)

H = 14
pytestmark = pytest.mark.filterwarnings("ignore:.*came with warnings:UserWarning")


STEPS = 8  # of the optimiser: after any number of them both are at the same parameters


def sarimax(less=None, **settings):
    def call(y, new=None):
        return direct.statespace(direct.SARIMAX(y, **settings), H, new, maxiter=STEPS)

    return SARIMAX(**settings, max_iter=STEPS), in_scaled_units(call, less)


def components(level, **settings):
    def call(y, new=None):
        model = direct.UnobservedComponents(y, level, **settings)
        return direct.statespace(model, H, new, maxiter=STEPS)

    model = UnobservedComponents(level, **({"seasonal": None, "max_iter": STEPS} | settings))
    return model, in_scaled_units(call, "first")


def ets(season=None, **settings):
    def call(y, new=None):
        return direct.ets(y, H, new, seasonal_periods=season, **settings)

    given = {"season_length": season} if season else {}
    return StatsmodelsETS(**given, **({"seasonal": None} | settings)), in_scaled_units(call)


def in_scaled_units(call, less=None):
    scaled = partial(direct.scaled, call, less=less)
    scaled.plain = call
    return scaled


def arch(**settings):
    def call(y, new=None):
        return direct.arch(y, H, new=new, **settings)[:2]

    return ArchModel(**settings), call


MODELS = {
    "AR with constant": sarimax("mean", order=(1, 0, 0), trend="c"),
    "ARIMA with drift": sarimax("first", order=(0, 1, 1), trend="c"),
    "slope": sarimax("mean", order=(1, 0, 0), trend="ct"),
    "airline": sarimax("first", order=(0, 1, 1), seasonal_order=(0, 1, 1, 12)),
    "local level": components("local level"),
    "basic structural": components("local linear trend", seasonal=12),
    "cycle and AR": components("fixed intercept", cycle=True, autoregressive=1),
    "simple smoothing": ets(),
    "damped trend": ets(trend="add", damped_trend=True),
    "smoothing by default": (StatsmodelsETS(), ets(season=12, seasonal="add")[1]),
    "components by default": (
        UnobservedComponents(max_iter=STEPS),
        components("local level", seasonal=12)[1],
    ),
    "Holt-Winters": ets(season=12, trend="add", seasonal="add"),
    "GARCH": arch(mean="Constant"),
    "AR with GJR and t": arch(mean="AR", lags=1, o=1, dist="t"),
    "HAR with ARCH": arch(mean="HAR", lags=[1, 5], vol="ARCH", dist="skewt"),
}


@pytest.fixture(params=MODELS)
def case(request):
    return MODELS[request.param]


def assert_same(frame, name, expected, close):
    mean, ends = expected
    close(frame[name], mean[:, 0])
    close(frame[[f"{name}-lo-80", f"{name}-hi-80"]], ends[:, 0])


class TestOneTarget:
    @pytest.mark.few(
        "AR with constant", "ARIMA with drift", "local level", "damped trend",
        "components by default", "GARCH", "HAR with ARCH",
    )  # fmt: skip
    def test_of_a_panel(self, case, panel, close):
        model, call = case
        forecast = model.fit(panel).predict(H, level=80)
        for label, own in panel.groupby("unique_id"):
            frame = forecast[forecast["unique_id"] == label]
            assert_same(frame, model.column_name, call(own["y"].to_numpy()), close)

    def test_of_one_series_after_an_update(self, case, wave, close):
        model, call = case
        y = wave.to_numpy()
        forecast = model.fit(wave.iloc[:-9]).update(wave.iloc[-9:]).predict(H, level=80)
        assert_same(forecast, "y", call(y[:-9], y[-9:]), close)

    @pytest.mark.few(
        "AR with constant", "ARIMA with drift", "local level", "damped trend",
        "components by default",
    )  # fmt: skip
    @pytest.mark.parametrize("name", [name for name in MODELS if hasattr(MODELS[name][1], "plain")])
    def test_on_the_same_data_without_standardizing(self, name, panel, wave, close):
        model, call = MODELS[name]
        plain, model = call.plain, clone(model).set_params(standardize=False)
        forecast = model.fit(panel).predict(H, level=80)
        for label, own in panel.groupby("unique_id"):
            frame = forecast[forecast["unique_id"] == label]
            assert_same(frame, model.column_name, plain(own["y"].to_numpy()), close)
        y = wave.to_numpy()
        forecast = model.fit(wave.iloc[:-9]).update(wave.iloc[-9:]).predict(H, level=80)
        assert_same(forecast, "y", plain(y[:-9], y[-9:]), close)

    @pytest.mark.few("AR with constant", "Holt-Winters", "GARCH")
    def test_of_several_targets(self, case, wave, close):
        model, call = case
        frame = pd.DataFrame({"u": wave, "v": wave[::-1].to_numpy()})
        forecast = model.fit(frame).predict(H, level=80)
        for name in "uv":
            assert_same(forecast, name, call(frame[name].to_numpy()), close)


class TestTheta:
    @pytest.mark.few("12-auto")
    @pytest.mark.parametrize("method", ["auto", "additive"])
    @pytest.mark.parametrize("season", [12, 1])
    def test_of_a_panel(self, panel, close, season, method):
        def call(y, _):
            return direct.theta(y, H, period=season, deseasonalize=season > 1, method=method)

        model = StatsmodelsTheta(season_length=season, method=method)
        forecast = model.fit(panel).predict(H, level=80)
        plain = model.set_params(standardize=False).fit(panel).predict(H, level=80)
        for label, own in panel.groupby("unique_id"):
            y, rows = own["y"].to_numpy(), forecast["unique_id"] == label
            assert_same(forecast[rows], "StatsmodelsTheta", direct.scaled(call, y), close)
            assert_same(plain[rows], "StatsmodelsTheta", call(y, None), close)

    def test_an_update_keeps_slope_smoothing_and_indices(self, wave, close):
        model = StatsmodelsTheta().fit(wave.iloc[:-9])
        params = model.params_.loc["y"]
        forecast = model.update(wave.iloc[-9:]).predict(3)
        s = params.filter(like="seasonal").to_numpy()[np.arange(99) % 12]
        level = wave.iloc[0] / s[0]
        for y, index in zip(wave, s, strict=False):
            level += params["alpha"] * (y / index - level)
        alpha, h = params["alpha"], np.arange(1, 4)
        line = h - 1 + 1 / alpha - (1 - alpha) ** 96 / alpha
        close(forecast, s[96:] * (level + params["b0"] / 2 * line))

    def test_indices_follow_the_calendar(self, wave):
        model = StatsmodelsTheta().fit(wave)
        late = model.predict(wave.iloc[5:], h=12)
        np.testing.assert_allclose(late, model.predict(12), rtol=0.01)


class TestSimulatedIntervals:
    def test_of_multiplicative_smoothing(self, wave, close):
        model = StatsmodelsETS("mul", "add", seasonal="mul", n_simulations=200, random_state=3).fit(
            wave
        )
        forecast = model.predict(H, level=80)
        scale = wave.std(ddof=0)
        by_hand = ETSModel(
            wave.to_numpy() / scale, "mul", "add", seasonal="mul", seasonal_periods=12
        )
        results = by_hand.fit(disp=False)
        errors = np.sqrt(results.mse) * np.random.default_rng(3).normal(size=(H, 200))
        paths = scale * results.simulate(H, anchor="end", repetitions=200, random_errors=errors)
        close(forecast["y"], scale * results.forecast(H))
        close(forecast["y-lo-80"], np.quantile(paths, 0.1, axis=1))
        close(forecast["y-hi-80"], np.quantile(paths, 0.9, axis=1))

    def test_of_an_exponential_variance(self, wave, close):
        model = ArchModel(vol="EGARCH", random_state=4, n_simulations=300).fit(wave)
        by_hand = arch_model(wave.to_numpy(), vol="EGARCH")
        results = by_hand.fit(disp="off")
        by_hand.distribution = type(by_hand.distribution)(seed=np.random.default_rng(4))
        fixed = by_hand.fix(results.params)
        forecast = fixed.forecast(horizon=H, method="simulation", simulations=300)
        close(model.predict_variance(H), forecast.residual_variance.to_numpy()[0])
        close(model.predict_variance(H, of="forecast"), forecast.variance.to_numpy()[0])
        close(model.predict(H), forecast.mean.to_numpy()[0])
        pd.testing.assert_series_equal(model.predict(H), model.predict(H, level=80)["y"])


class TestVariance:
    def test_of_a_panel(self, panel, close):
        model = ArchModel(mean="AR", lags=1).fit(panel)
        forecast = model.predict_variance(H)
        assert list(forecast.columns) == ["unique_id", "ds", "variance"]
        for label, own in panel.groupby("unique_id"):
            expected = direct.arch(own["y"].to_numpy(), H, mean="AR", lags=1)[2]
            close(forecast.loc[forecast["unique_id"] == label, "variance"], expected)

    def test_after_other_data(self, wave, close):
        model = ArchModel().fit(wave.iloc[:-9])
        given = model.predict_variance(5, wave)
        close(given, model.update(wave.iloc[-9:]).predict_variance(5))

    def test_rescaled(self, wave, close):
        small = wave / 1000
        with pytest.warns(UserWarning, match="poorly scaled"):
            ArchModel(mean="AR", lags=1).fit(small)
        model = ArchModel(mean="AR", lags=1, rescale=True).fit(small)
        results = arch_model(small.to_numpy(), mean="AR", lags=1, rescale=True).fit(disp="off")
        assert model.spec_["y"]["scale"] == results.scale > 1
        forecast = results.forecast(horizon=5)
        close(model.predict(5), forecast.mean.to_numpy()[0] / results.scale)
        expected = forecast.residual_variance.to_numpy()[0] / results.scale**2
        close(model.predict_variance(5), expected)


@pytest.fixture(scope="module")
def ahead(exog):
    draw = np.random.default_rng(1)
    last = exog.groupby("unique_id")["ds"].max()
    frames = []
    for label, end in last.items():
        times = pd.date_range(end, periods=H + 1, freq="MS")[1:]
        frames.append(pd.DataFrame({"unique_id": label, "ds": times, "x": draw.normal(size=H)}))
    return pd.concat(frames)


def with_regressors(build, x, future, y, _):
    scale = x.std(axis=0)
    return direct.statespace(build(y, x / scale), H, exog=future / scale)


class TestRegressors:
    def each(self, exog, ahead, forecast):
        for label, own in exog.groupby("unique_id"):
            future = ahead.loc[ahead["unique_id"] == label, ["x"]].to_numpy()
            rows = own["y"].to_numpy(), own[["x"]].to_numpy()
            yield *rows, future, forecast[forecast["unique_id"] == label]

    @pytest.mark.parametrize(
        ("model", "build", "less"),
        [
            (
                SARIMAX((1, 0, 1), trend="c", known_ahead="x"),
                lambda y, x: direct.SARIMAX(y, x, order=(1, 0, 1), trend="c"),
                "mean",
            ),
            (
                UnobservedComponents("local level", seasonal=None, known_ahead="x"),
                lambda y, x: direct.UnobservedComponents(y, "local level", exog=x),
                "first",
            ),
        ],
    )
    def test_of_state_space_models(self, exog, ahead, close, model, build, less):
        forecast = model.fit(exog).predict(H, level=80, X_future=ahead)
        for y, x, future, frame in self.each(exog, ahead, forecast):
            call = partial(with_regressors, build, x, future)
            expected = direct.scaled(call, y, less=less)
            assert_same(frame, model.column_name, expected, close)

    def test_of_arch(self, exog, ahead, close):
        model = ArchModel(mean="ARX", lags=1, known_ahead="x").fit(exog)
        forecast = model.predict(H, level=80, X_future=ahead)
        variance = model.predict_variance(H)
        for y, x, future, frame in self.each(exog, ahead, forecast):
            mean, ends, expected = direct.arch(y, H, x, future, mean="ARX", lags=1)
            assert_same(frame, "ArchModel", (mean, ends), close)
            label = frame["unique_id"].iloc[0]
            close(variance.loc[variance["unique_id"] == label, "variance"], expected)

    def test_of_a_vector_autoregression(self, pair, close):
        x = np.random.default_rng(2).normal(size=(120 + H, 1))
        frame = pair.assign(x=x[:120]) + 0.0
        frame["u"] += frame["x"]
        future = pd.DataFrame({"x": x[120:, 0]}, pd.date_range("2020-01-01", periods=H, freq="MS"))
        model = VAR(2, target=["u", "v"], known_ahead="x").fit(frame)
        forecast = model.predict(H, level=80, X_future=future)
        rows = frame[["u", "v"]].to_numpy()
        mean, ends = direct.var(rows, H, 2, x[:120], x[120:])
        for i, name in enumerate("uv"):
            assert_same(forecast, name, (mean[:, [i]], ends[:, [i]]), close)

    def test_of_a_vector_arma(self, pair, close):
        x = np.random.default_rng(2).normal(size=(120 + H, 1))
        frame = pair.assign(x=x[:120])
        future = pd.DataFrame({"x": x[120:, 0]}, pd.date_range("2020-01-01", periods=H, freq="MS"))
        model = VARMAX(target=["u", "v"], known_ahead="x", max_iter=50).fit(frame)
        forecast = model.predict(H, level=80, X_future=future)
        build = partial(direct.VARMAX, order=(1, 0))
        call = partial(with_regressors, build, x[:120], x[120:])
        mean, ends = direct.scaled(call, pair.to_numpy())
        for i, name in enumerate("uv"):
            assert_same(forecast, name, (mean[:, [i]], ends[:, [i]]), close)

    def test_all_must_be_known_ahead(self, exog):
        model = SARIMAX().fit(exog)
        with pytest.raises(ValueError, match=r"not known ahead are \['x'\]. Construct with"):
            model.predict(3)

    def test_are_named_once(self, exog):
        with pytest.raises(ValueError, match=r"known_ahead must name each column once; got \['x'"):
            SARIMAX(known_ahead=["x", "x"]).fit(exog)

    def test_are_refused_where_there_are_none(self, exog):
        with pytest.raises(ValueError, match="StatsmodelsETS takes no exogenous columns"):
            StatsmodelsETS().fit(exog)
        with pytest.raises(ValueError, match="'LS', 'ARX', 'HARX'.*got 'Constant'"):
            ArchModel().fit(exog)


def assert_pair(forecast, expected, close):
    mean, ends = expected
    for i, name in enumerate("uv"):
        assert_same(forecast, name, (mean[:, [i]], ends[:, [i]]), close)


class TestSeveralTargets:
    @pytest.mark.parametrize("trend", ["n", "c", "ct", "ctt"])
    def test_vector_autoregression(self, pair, close, trend):
        forecast = VAR(2, trend=trend).fit(pair).predict(H, level=80)
        assert_pair(forecast, direct.var(pair.to_numpy(), H, 2, trend=trend), close)

    @pytest.mark.parametrize("criterion", ["aic", "bic", "hqic", "fpe"])
    def test_order_of_a_vector_autoregression(self, pair, close, criterion):
        model = VAR(criterion=criterion, max_lags=5).fit(pair)
        y = pair.to_numpy()
        lags = var_model.VAR(y).select_order(5).selected_orders[criterion]
        assert model.spec_.iloc[0]["lags"] == lags
        assert_pair(model.predict(H, level=80), direct.var(y, H, lags), close)

    def test_an_update_of_a_vector_autoregression(self, pair, close):
        model = VAR(2).fit(pair.iloc[:-9]).update(pair.iloc[-9:])
        y = pair.to_numpy()
        mean, low, high = var_model.VAR(y[:-9]).fit(2).forecast_interval(y[-2:], H, alpha=0.2)
        assert_pair(model.predict(H, level=80), (mean, np.stack([low, high], -1)), close)

    @pytest.mark.parametrize(("order", "trend"), [((1, 0), "c"), ((1, 0), "ct"), ((0, 1), "c")])
    def test_vector_arma(self, pair, close, order, trend):
        y = pair.to_numpy()
        settings = {"order": order, "trend": trend}
        forecast = VARMAX(**settings).fit(pair.iloc[:-9]).update(pair.iloc[-9:])

        def call(y, new):
            return direct.statespace(direct.VARMAX(y, **settings), H, new, maxiter=200)

        expected = direct.scaled(call, y[:-9], y[-9:])
        assert_pair(forecast.predict(H, level=80), expected, close)

    @pytest.mark.parametrize("deterministic", ["n", "ci", "co", "colo", "cili", "coli", "li"])
    @pytest.mark.parametrize("rank", [0, 1, 2])
    def test_error_correction(self, pair, close, rank, deterministic):
        frame = pair.cumsum()
        model = VECM(2, rank, deterministic).fit(frame)
        expected = direct.vecm(
            frame.to_numpy(), H, k_ar_diff=2, coint_rank=rank, deterministic=deterministic
        )
        assert_pair(model.predict(H, level=80), expected, close)

    def test_rank_by_the_trace_test(self, pair):
        walk = pair["u"].cumsum()
        frame = pd.DataFrame({"u": walk, "v": walk + pair["v"]})
        for data in (frame, pair, pair.cumsum()):
            expected = select_coint_rank(data.to_numpy(), 0, 1, signif=0.05).rank
            assert VECM().fit(data).spec_.iloc[0]["rank"] == expected

    def test_one_target_is_too_few(self, wave):
        for cls in (VAR, VARMAX, VECM):
            with pytest.raises(ValueError, match="at least 2 targets; got"):
                cls().fit(wave)


class TestTimeIsThatOfTheCalendar:
    """Data that begin later than those fitted to have trends of their place in time."""

    def test_of_a_deterministic_slope(self, wave):
        model = SARIMAX((1, 0, 0), trend="ct").fit(wave)
        late = model.predict(wave.iloc[40:], h=5)
        np.testing.assert_allclose(late, model.predict(5), rtol=1e-6)

    def test_of_a_vector_autoregression(self, pair, close):
        model = VAR(1, trend="ctt").fit(pair)
        close(model.predict(pair.iloc[40:], h=5), model.predict(5))

    def test_of_error_correction(self, pair, close):
        model = VECM(1, 1, "cili").fit(pair.cumsum())
        close(model.predict(pair.cumsum().iloc[40:], h=5), model.predict(5))

    def test_of_a_season_that_is_smoothed(self, wave):
        model = StatsmodelsETS(seasonal="add", trend="add").fit(wave)
        late = model.predict(wave.iloc[5:], h=12)
        assert np.corrcoef(late, model.predict(12))[0, 1] > 0.97
