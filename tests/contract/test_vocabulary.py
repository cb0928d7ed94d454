"""One vocabulary: the same methods of all classes for which they make sense, and one refusal."""

import copy
from itertools import takewhile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tsrnn import recurrence_features
from tsrnn.baselines import (
    SARIMAX,
    Drift,
    Naive,
    StatsmodelsETS,
    StatsmodelsTheta,
    UnobservedComponents,
)
from tsrnn.contract import Forecaster, classes_with
from tsrnn.evaluation import backtest
from tsrnn.forecasters import ParaRNNForecaster, RecurrentForecaster
from tsrnn.linear import ARMA, CCC, DCC, GARCH, VARMA, VECMGARCH

pytestmark = pytest.mark.where.with_args(lambda example: example.is_forecaster)
WITH_PATHS = pytest.mark.where.with_args(lambda example: hasattr(example.make(), "sample_paths"))
H = 2


@pytest.fixture
def forecaster(fitted):
    return fitted


def one_by_one(model, example, rows, step):
    """Return forecasts of copies that are updated row by row, origin by origin."""
    found = []
    for name, own in rows.groupby("unique_id", sort=False):
        model_of_one = copy.deepcopy(model)
        for origin in range(0, len(own) - H + 1, step):
            if origin:
                model_of_one.update(own.iloc[origin - step : origin])
            future = {}
            if "x" in example.columns:
                # of the other series, which predict forecasts as well, the future does not matter
                times = sorted(set(model_of_one.state_.last_times))
                days = pd.date_range(times[0], periods=60)[1:]
                parts = [
                    pd.DataFrame({"unique_id": i, "ds": days, "x": 0.0})
                    for i in model_of_one.state_.ids
                ]
                whole = pd.concat(parts).set_index(["unique_id", "ds"])
                ahead = own.iloc[origin : origin + H].set_index(["unique_id", "ds"])[["x"]]
                whole.update(ahead)
                future = {"X_future": whole.reset_index()}
            forecast = model_of_one.predict(h=H, level=[80], **future)
            forecast = forecast[forecast["unique_id"] == name]
            last = own["ds"].iloc[0] + pd.Timedelta(days=origin - 1)
            forecast.insert(2, "cutoff", last)
            found.append(forecast)
    return pd.concat(found, ignore_index=True)


@pytest.mark.few
@pytest.mark.parametrize("step", [1, 2])
def test_rolling_forecasts_are_those_of_updates(forecaster, example, contract, step):
    rows = example.later
    rows = rows.drop(rows[rows["unique_id"] == "s1"].tail(2).index)  # unequal numbers of new rows
    before = contract.content(forecaster)
    found = forecaster.predict_rolling(rows, h=H, step_size=step, level=80)
    contract.same(contract.content(forecaster), before)
    expected = one_by_one(forecaster, example, rows, step)
    in_float32 = isinstance(forecaster, RecurrentForecaster)
    pd.testing.assert_frame_equal(found, expected, rtol=2e-5 if in_float32 else 1e-8)
    one = rows[rows["unique_id"] == rows["unique_id"].iloc[-1]]
    alone = forecaster.predict_rolling(one, h=H, step_size=step, level=80)
    expected = found[found["unique_id"] == one["unique_id"].iloc[0]].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, expected, rtol=2e-5 if in_float32 else 1e-10)


def test_rolling_forecasts_need_rows(forecaster, example):
    with pytest.raises(ValueError, match="at least 2 new rows; there are 1"):
        forecaster.predict_rolling(example.later.groupby("unique_id").head(1), h=2)
    with pytest.raises(ValueError, match="step_size must"):
        forecaster.predict_rolling(example.later, h=2, step_size=0)


@pytest.mark.parametrize("tz", ["Europe/Vienna", "America/New_York"])
def test_rolling_forecasts_over_a_change_of_clocks(tz):
    hours = pd.date_range("2024-03-30", periods=60, freq="h", tz=tz)
    y = pd.Series(np.arange(60.0), hours, name="y")
    found = Drift().fit(y[:20]).predict_rolling(y[20:], h=3, step_size=4)
    assert list(found["cutoff"][::3]) == list(hours[19:57:4])
    np.testing.assert_allclose(found["y"], y[found.index])


METHODS = ("sample_paths", "predict_variance", "predict_covariances", "recurrent_blocks")


@pytest.mark.parametrize(
    "method", [*METHODS, "components", "effect_curves", "plot_components", "plot_effects"]
)
def test_who_has_a_method_is_said_by_those_who_have_not(method, contract):
    classes = {example.cls for example in contract.examples.values()}
    those = {cls.__name__ for cls in classes if hasattr(contract_of(cls), method)}
    assert classes_with(method) == sorted(those)
    for cls in classes - {cls for cls in classes if cls.__name__ in those}:
        if issubclass(cls, Forecaster):
            with pytest.raises(AttributeError) as caught:
                getattr(contract_of(cls), method)
            expected = f"{cls.__name__} has no {method}; those that have it are "
            assert str(caught.value) == expected + ", ".join(classes_with(method))


def test_the_table_of_the_documentation(contract):
    page = Path(__file__).parents[2] / "docs" / "compare.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("| | `predict_rolling`"))
    table = takewhile(lambda line: line.startswith("|"), lines[first + 2 :])
    found = {}
    for line in table:
        names, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        for name in names.split(", "):
            found[name.strip("`")] = [cell == "yes" for cell in cells]
    forecasters = {e.cls.__name__ for e in contract.examples.values() if e.is_forecaster}
    expected = {
        name: [True, *(name in classes_with(method) for method in METHODS)] for name in forecasters
    }
    assert found == expected


def test_variances_of_several_targets_are_compared():
    y = pd.DataFrame(np.random.default_rng(0).normal(size=(120, 2)), columns=["a", "b"])
    found = backtest({"CCC": CCC(), "GARCH": GARCH()}, y, h=2, n_windows=2, kind="variance")
    for name, model in (("CCC", CCC()), ("GARCH", GARCH())):
        expected = model.fit(y[:-4]).predict_variance(2)
        first = found[found["cutoff"] == found["cutoff"].min()]
        np.testing.assert_allclose(first[name], expected.to_numpy().T.ravel())


def contract_of(cls):
    """Return an estimator that has not been fitted."""
    return cls.__new__(cls)


def test_recurrence_features_name_the_models_that_are_recurrences():
    y = pd.Series(np.random.default_rng(0).normal(size=30))
    with pytest.raises(TypeError, match=r"reads a recurrence: Naive has no .* ARMA,.* ParaRNN"):
        recurrence_features(Naive().fit(y))


def test_a_class_of_ones_own_has_what_it_answers():
    class Risky(Drift):
        offers = Drift.offers | {"predict_variance"}

        def _fit_panel(self, arguments, data, panel):
            fitted, state = super()._fit_panel(arguments, data, panel)

            class FittedRisky(type(fitted)):
                def variances(self, state, h):
                    return np.ones((len(state.ids), h, 1))

            return FittedRisky(**vars(fitted)), state

    y = pd.Series(np.arange(9.0), name="y")
    assert Risky().fit(y).predict_variance(3).tolist() == [1.0] * 3
    assert not hasattr(StatsmodelsTheta(), "predict_variance")
    assert hasattr(ParaRNNForecaster(), "sample_paths")
    assert hasattr(ARMA(), "recurrent_blocks")


class TestSamplePaths:
    """Quantiles of many paths are the ends of intervals; steps go together as the model has it."""

    N = 10000

    def of_steps(self, paths, columns):
        """Return draws (series, n, h) of each column."""
        shape = len(paths[paths["path"] == 1].groupby("unique_id")), -1
        found = {}
        for column in columns:
            wide = paths.pivot(index=["unique_id", "path"], columns="ds", values=column)
            assert wide.index.is_unique
            groups = [own.dropna(axis=1).to_numpy() for _, own in wide.groupby("unique_id")]
            found[column] = np.stack(groups)
            assert len(found[column]) == shape[0]
        return found

    # Networks draw errors of the validation part: tests/forecasters/test_sample_paths.py. Conformal
    # intervals are not of the model; test_of_exponential_smoothing has more draws.
    @WITH_PATHS
    @pytest.mark.where.with_args(
        lambda example: not issubclass(example.cls, RecurrentForecaster | StatsmodelsETS)
    )
    @pytest.mark.where.with_args(lambda example: example.arguments.get("intervals") != "conformal")
    @pytest.mark.few
    def test_have_the_marginals_of_the_intervals(self, forecaster, example):
        # variances that change make later steps no longer normal, as the intervals take them
        exact = 1 if hasattr(forecaster, "predict_variance") else H
        ahead = example.ahead(H)
        paths = forecaster.sample_paths(self.N, h=H, random_state=5, **ahead)
        forecast = forecaster.predict(h=H, level=[80], **ahead)
        columns = [name for name in forecast.columns[2:] if f"{name}-lo-80" in forecast.columns]
        observed_zeros = example.training[0][[*example.columns]].min().min() <= 0
        for column, draws in self.of_steps(paths, columns).items():
            mean, low, high = (
                forecast[column + end].to_numpy().reshape(-1, H) for end in ("", "-lo-80", "-hi-80")
            )
            scale = draws.std(1) + 1e-9 * np.abs(mean)
            # draws below the support of positive data are set to zero, their mean is not
            whole = (draws > 0).all(1) | observed_zeros
            assert whole.any()
            assert np.abs((draws.mean(1) - mean) / scale)[whole].max() < 0.05
            for end, probability in ((low, 0.1), (high, 0.9)):
                gap = (np.quantile(draws, probability, axis=1) - end) / scale
                assert np.abs(gap[:, :exact]).max() < 0.08

    @WITH_PATHS
    def test_are_drawn_by_the_seed(self, forecaster, example, contract):
        first, same, other = (
            forecaster.sample_paths(3, h=H, random_state=seed, **example.ahead(H))
            for seed in (1, 1, 2)
        )
        contract.same(first, same)
        assert not first.equals(other)
        past = example.training[0]
        of_past = forecaster.sample_paths(3, h=H, X=past, random_state=1, **example.ahead(H))
        values = first.select_dtypes("number").to_numpy()
        np.testing.assert_allclose(of_past.select_dtypes("number"), values, rtol=1e-5)

    def draws(self, model, h):
        paths = model.sample_paths(self.N, h=h, random_state=3)
        return paths.drop(columns="path").to_numpy().reshape(self.N, h, -1)

    def test_more_than_fit_in_memory_are_refused(self):
        model = Naive().fit(pd.Series(np.arange(9.0)))
        with pytest.raises(ValueError, match="n=1000000000000 paths .* a smaller n or h"):
            model.sample_paths(10**12, h=2)
        with pytest.raises(ValueError, match="h=1000000000000 steps of 1 series would take about"):
            model.plot(h=10**12)

    def test_errors_of_an_ar_go_on(self):
        y = pd.Series(np.random.default_rng(0).normal(size=40))
        draws = self.draws(ARMA((1, 0)).filter(y, [0.0, 0.8, 2.0]), 3)[..., 0]
        weights = np.array([[1, 0, 0], [0.8, 1, 0], [0.64, 0.8, 1]])
        np.testing.assert_allclose(np.cov(draws.T), 2 * weights @ weights.T, atol=0.2)

    def test_errors_of_a_var_go_on(self):
        y = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
        model = VARMA((1, 0), trend="n").filter(y, [0.5, 0.3, -0.2, 0.4, 1.0, 0.5, 1.2])
        draws, (phi, sigma) = self.draws(model, 2), var_of(model)
        cross = np.cov(draws.reshape(self.N, -1).T)
        np.testing.assert_allclose(cross[:2, :2], sigma, atol=0.12)
        np.testing.assert_allclose(cross[2:, :2], phi @ sigma, atol=0.12)
        np.testing.assert_allclose(cross[2:, 2:], phi @ sigma @ phi.T + sigma, atol=0.12)

    def test_start_from_what_missing_values_leave_open(self):
        y = pd.Series(np.random.default_rng(0).normal(size=40))
        y[-2:] = np.nan
        model = ARMA((1, 0), missing="keep").filter(y, [0.0, 0.8, 1.0])
        variance = 1 + 0.8**2 + 0.8**4
        np.testing.assert_allclose(self.draws(model, 1).var(), variance, rtol=0.06)

    @pytest.mark.parametrize("error", ["add", "mul"])
    def test_of_exponential_smoothing(self, error):
        y = pd.Series(50 + np.random.default_rng(0).normal(size=60).cumsum(), name="y")
        model = StatsmodelsETS(error=error, n_simulations=self.N, random_state=0).fit(y)
        draws, forecast = self.draws(model, 3)[..., 0], model.predict(3, level=80)
        ends = np.quantile(draws, [0.1, 0.9], axis=0).T
        expected = forecast[["y-lo-80", "y-hi-80"]].to_numpy()
        np.testing.assert_allclose(ends, expected, atol=0.1 * draws.std(0).max())
        assert np.corrcoef(draws.T)[0, 1] > 0.5  # of a level that is nearly a random walk

    @pytest.mark.parametrize("name", ["Naive", "SeasonalNaive", "Drift", "Mean"])
    def test_of_naive_methods_have_their_equations(self, name, contract):
        model = contract.examples[name].fit(contract.examples[name].make())
        state, rule, h = model.state_, model.fitted_.rule, 7
        _, error = rule.ahead(state, h)
        for i, length in enumerate(state.lengths):
            size = np.linalg.norm(rule.factor(length, h), axis=1)
            np.testing.assert_allclose(error[i, :, 0] / error[i, 0, 0], size / size[0])

    def test_of_a_random_walk_with_drift_add_up(self):
        y = pd.Series(np.random.default_rng(0).normal(size=11).cumsum())
        draws = self.draws(Drift().fit(y), 3)[..., 0]
        errors = y.diff()[1:] - y.diff()[1:].mean()
        sigma2 = (errors**2).sum() / 7  # of Student's t with 9 degrees of freedom
        steps = np.arange(1, 4)
        expected = np.minimum.outer(steps, steps) + np.outer(steps, steps) / 10
        np.testing.assert_allclose(np.cov(draws.T), sigma2 * expected, rtol=0.1)

    @pytest.mark.few("GARCH", "CCC", "DCC")
    @pytest.mark.parametrize("make", [GARCH, CCC, DCC, VECMGARCH])
    def test_variances_move_with_the_shocks(self, make):
        arguments = {} if make is not VECMGARCH else {"structure": "diagonal", "random_state": 0}
        rng = np.random.default_rng(4)
        h, e = np.ones(2), np.zeros((400, 2))
        for t in range(400):
            e[t] = np.sqrt(h) * rng.normal(size=2)
            h = 0.3 + 0.3 * e[t] ** 2 + 0.4 * h
        y = pd.DataFrame(e, columns=["a", "b"])
        model = make(**arguments).fit(y)
        draws = self.draws(model, 3)
        expected = model.predict_variance(3).to_numpy()
        np.testing.assert_allclose(draws.var(0), expected, rtol=0.12)
        # squares of a step and the next are correlated: drawn from variances that react
        squares = (draws[:, :2] - draws[:, :2].mean(0)) ** 2
        assert min(np.corrcoef(squares[..., i].T)[0, 1] for i in range(2)) > 0.05


def var_of(model):
    """Return coefficients and covariance of a VAR(1) of two targets without a trend."""
    values = model.params_.iloc[0]
    phi = np.array([[values[f"L1.{j}.{i}"] for j in "ab"] for i in "ab"])
    root = np.array([
        [values["sqrt.var.a"], 0.0],
        [values["sqrt.cov.a.b"], values["sqrt.var.b"]],
    ])  # fmt: skip
    return phi, root @ root.T


class TestRecurrences:
    """Recurrent matrices have the roots of the model."""

    def moduli(self, model, matrix):
        features = recurrence_features(model)
        return features.loc[features["matrix"] == matrix, "modulus"].to_numpy()

    def test_of_variances(self):
        y = pd.Series(np.random.default_rng(0).normal(size=300))
        model = GARCH(vol="gjr").filter(y, [0.0, 0.1, 0.05, 0.1, 0.8])
        np.testing.assert_allclose(self.moduli(model, "variance"), [0.05 + 0.05 + 0.8])
        np.testing.assert_allclose(self.moduli(model, "beta"), [0.8])
        assert model.persistence_.item() == pytest.approx(0.9)
        two = GARCH((2, 1)).filter(y, [0.0, 0.1, 0.1, 0.2, 0.6])
        expected = np.sort(np.abs(np.roots([1, -0.7, -0.2])))
        np.testing.assert_allclose(np.sort(self.moduli(two, "variance")), expected)
        log = GARCH(vol="egarch").filter(y, [0.0, 0.01, 0.1, -0.05, 0.9])
        np.testing.assert_allclose(self.moduli(log, "variance"), [0.9])
        ahead = model.predict_variance(12).to_numpy()
        rest = 0.1 / (1 - 0.9)
        np.testing.assert_allclose((ahead[1:] - rest) / (ahead[:-1] - rest), 0.9)

    @pytest.mark.parametrize("make", [CCC, DCC])
    def test_of_correlations(self, make):
        y = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=["a", "b"])
        params = [0.0, 0.1, 0.1, 0.8, 0.0, 0.2, 0.05, 0.7, 0.3, 0.04, 0.9][: 9 + 2 * (make is DCC)]
        model = make().filter(y, params)
        np.testing.assert_allclose(np.sort(self.moduli(model, "variance")), [0.75, 0.9])
        expected = [0.94] if make is DCC else []
        np.testing.assert_allclose(self.moduli(model, "correlation"), expected)

    def test_of_covariances(self):
        y = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=["a", "b"])
        model = VECMGARCH(structure="scalar", targeting=True, random_state=0).fit(y)
        theta, phi = (model.coefficients()[name][0, 0, 0] for name in ("theta", "phi"))
        np.testing.assert_allclose(self.moduli(model, "covariance"), [theta + phi] * 3)
        np.testing.assert_allclose(self.moduli(model, "Phi"), [phi] * 3)
        assert model.coefficients()["persistence"] == pytest.approx(theta + phi)

    def test_of_state_spaces(self):
        y = pd.Series(np.random.default_rng(0).normal(size=80).cumsum())
        lags = {"order": (2, 1, 0), "seasonal_order": (0, 1, 0, 4)}
        model = SARIMAX(**lags).fit(y)
        ar = [-model.params_.iloc[0][f"ar.L{i}"] for i in (1, 2)]
        polynomial = np.polymul(np.polymul([1, *ar], [1, -1]), [1, 0, 0, 0, -1])
        found = np.sort(self.eigenvalues(model))
        np.testing.assert_allclose(np.abs(found), np.sort(np.abs(np.roots(polynomial))), atol=2e-3)
        level = UnobservedComponents(level="local linear trend").fit(y)
        np.testing.assert_allclose(self.eigenvalues(level), [1, 1], atol=1e-6)

    def eigenvalues(self, model):
        (blocks,) = model.recurrent_blocks()
        return np.sort(np.abs(np.linalg.eigvals(blocks["transition"][0])))
