"""Covariance models of one's own: the RiskMetrics of the guide, and the derivatives it rests on."""

import dataclasses
import importlib
import pkgutil
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

import tsrnn.linear
from tsrnn.contract import read_file
from tsrnn.linear import (
    CCC,
    DCC,
    GARCH,
    VECMGARCH,
    CovarianceFamily,
    MatrixForecaster,
    normal_derivatives,
)

from .references import long_of

GUIDE = Path(__file__).parents[2] / "docs" / "extending.md"


@pytest.fixture(scope="module")
def RiskMetrics():
    """Return the class that the guide writes."""
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.M | re.S)
    namespace = {"__name__": __name__}
    for block in blocks:
        if re.search(r"^class RiskMetrics", block, re.MULTILINE):
            exec(block, namespace)
    return namespace["RiskMetrics"]


def frame_of(rows=300, seed=0, n=2):
    rng = np.random.default_rng(seed)
    e, H = np.empty((rows, n)), np.eye(n) + 0.3
    for t in range(rows):
        e[t] = np.linalg.cholesky(H) @ rng.standard_normal(n)
        H = 0.93 * H + 0.07 * np.outer(e[t], e[t])
    return pd.DataFrame(e, columns=list("abc")[:n])


@pytest.fixture(scope="module")
def frame():
    return frame_of()


@pytest.fixture(scope="module")
def model(RiskMetrics, frame):
    return RiskMetrics().fit(frame)


def covariances(y, decay, rows=None):
    """Return all covariances as the recursion is printed, and the one ahead."""
    H = [y[:rows].T @ y[:rows] / len(y[:rows])]
    for row in y:
        H.append(decay * H[-1] + (1 - decay) * np.outer(row, row))
    return np.array(H[:-1]), H[-1]


def loglik(y, decay):
    """Return the log-density of every row."""
    H, _ = covariances(y, decay)
    distances = np.einsum("ti,tij,tj->t", y, np.linalg.inv(H), y)
    return -0.5 * (y.shape[1] * np.log(2 * np.pi) + np.linalg.slogdet(H)[1] + distances)


def test_the_estimate_is_the_maximum_of_the_likelihood_of_a_loop(model, frame):
    y, (decay,) = frame.to_numpy(), model.params_.to_numpy()[0]
    np.testing.assert_allclose(model.loglik_[0], loglik(y, decay).sum(), rtol=1e-12)
    step = 1e-4
    below, at, above = (loglik(y, decay + move) for move in (-step, 0.0, step))
    scores = (above - below) / (2 * step)
    assert abs(scores.sum()) < 1e-3
    curvature = (above.sum() - 2 * at.sum() + below.sum()) / step**2
    hessian = np.sqrt(-1 / curvature)
    robust = np.sqrt((scores**2).sum()) / -curvature
    for kind, error in (("hessian", hessian), ("robust", robust)):
        np.testing.assert_allclose(model.cov_params(cov_type=kind) ** 0.5, error, rtol=1e-4)
    assert model.converged_.all()


def test_one_series_is_the_variance_of_arch(RiskMetrics):
    arch = pytest.importorskip("arch.univariate")
    y = frame_of(500, seed=3, n=1)
    start = float((y**2).mean().iloc[0])
    oracle = arch.ZeroMean(y["a"], volatility=arch.EWMAVariance(None)).fit(
        disp="off", backcast=start, tol=1e-13
    )
    model = RiskMetrics(cov_type="hessian").fit(y)
    np.testing.assert_allclose(model.loglik_[0], oracle.loglikelihood, rtol=1e-9)
    np.testing.assert_allclose(model.params_["decay"], oracle.params["lam"], atol=1e-4)


def test_covariances_and_forecasts_are_those_of_the_loop(model, frame):
    y, (decay,) = frame.to_numpy(), model.params_.to_numpy()[0]
    within, ahead = covariances(y, decay)
    pairs = np.triu_indices(2)
    found = model.covariances()["covariance"].to_numpy().reshape(-1, 3)
    np.testing.assert_allclose(found, within[:, *pairs], rtol=1e-10)
    found = model.predict_covariances(3)["covariance"].to_numpy().reshape(-1, 3)
    np.testing.assert_allclose(found, np.tile(ahead[pairs], (3, 1)), rtol=1e-10)
    forecast = model.predict(2, level=80)
    assert (forecast[["a", "b"]] == 0).all(axis=None)
    np.testing.assert_allclose(forecast["b-hi-80"], ndtri(0.9) * ahead[1, 1] ** 0.5, rtol=1e-10)
    z = model.residuals(standardized=True).to_numpy()
    np.testing.assert_allclose(np.linalg.cholesky(within) @ z[..., None], y[..., None], atol=1e-10)


def test_update_filter_and_file_go_on_from_the_same_state(RiskMetrics, frame, tmp_path):
    whole = RiskMetrics(first_rows=50).filter(frame, {"decay": 0.9})
    parts = RiskMetrics(first_rows=50).filter(frame[:200], {"decay": 0.9}).update(frame[200:])
    expected = covariances(frame.to_numpy(), 0.9, rows=50)[1]
    for model in (whole, parts):
        np.testing.assert_allclose(model.state_.arrays["covariance"][0], expected, rtol=1e-12)
    whole.save(tmp_path / "model")
    restored = RiskMetrics._restore(*read_file(tmp_path / "model"))
    pd.testing.assert_frame_equal(restored.predict(2, level=90), whole.predict(2, level=90))
    pd.testing.assert_frame_equal(restored.covariances(frame), whole.covariances())


def test_paths_have_the_covariances_that_are_forecast(RiskMetrics, frame):
    """At the second step as well, where the path before has moved the covariance."""
    model = RiskMetrics().filter(frame, {"decay": 0.6})
    paths = model.sample_paths(3000, h=2, random_state=0)
    expected = covariances(frame.to_numpy(), 0.6)[1]
    for _, step in paths.groupby(paths.index):
        np.testing.assert_allclose(step[["a", "b"]].cov(), expected, rtol=0.08, atol=0.05)
    draws = model.simulate(4, burn=0, random_state=1)
    z = np.random.default_rng(1).standard_normal((1, 4, 2))[0]
    H, first = covariances(frame.to_numpy(), 0.6)[0][0], []
    for row in z:
        first.append(np.linalg.cholesky(H) @ row)
        H = 0.6 * H + 0.4 * np.outer(first[-1], first[-1])
    np.testing.assert_allclose(draws, first, rtol=1e-10)


def test_a_panel_is_fitted_series_by_series(RiskMetrics, model, frame):
    bad = frame.assign(b=2 * frame["a"])
    parts = {"x": frame, "bad": bad, "short": frame[:1][["a", "b"]], "z": frame_of(200, seed=1)}
    panel = long_of(parts)
    several = RiskMetrics(target=["a", "b"])
    with pytest.warns(UserWarning, match="2 of 4 units could not be fitted, 'bad', 'short'"):
        several.fit(panel)
    assert "not positive definite at the starting values" in several.messages_["bad"][0]
    np.testing.assert_array_equal(several.params_.loc["x"], model.params_.iloc[0])
    forecast = several.predict(2, level=90).set_index("unique_id")
    assert forecast.loc[["bad", "short"], ["a", "b", "a-lo-90"]].isna().all(axis=None)
    assert forecast.loc[["x", "z"]].notna().all(axis=None)
    paths = several.sample_paths(3, h=2).set_index("unique_id")
    assert paths.loc["bad", ["a", "b"]].isna().all(axis=None)
    assert paths.loc["z", ["a", "b"]].notna().all(axis=None)


def test_an_estimate_on_its_bound_has_no_error(RiskMetrics):
    y = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    y *= 1 + 0.5 * (np.arange(200) % 2)[:, None]  # a large square after a small one
    model = RiskMetrics().fit(pd.DataFrame(y, columns=["a", "b"]))
    assert model.params_["decay"].iloc[0] == 1
    assert model.bse_["decay"].isna().all()
    assert "decay is on its bound" in model.messages_.iloc[0][0]


def test_arguments_are_checked_and_likelihoods_compared(RiskMetrics, model, frame):
    with pytest.raises(ValueError, match="first_rows must be a positive integer; got 0"):
        RiskMetrics(first_rows=0).fit(frame)
    with pytest.raises(ValueError, match="no series could be fitted; the covariances are not"):
        RiskMetrics().filter(frame, {"decay": 1.5})
    with pytest.raises(ValueError, match="Neither is nested"):
        model.lr_test(model)
    with pytest.raises(ValueError, match="the recursion of RiskMetrics is not linear"):
        model.to_rnn()


def test_normal_derivatives_are_those_of_differences():
    """Of H = A + a B + b C + a b I, with several parameters."""
    rng = np.random.default_rng(0)
    e, (A, B, C) = rng.normal(size=(30, 3)), rng.normal(size=(3, 30, 3, 3))
    A, B, C = A @ A.swapaxes(1, 2) + 3 * np.eye(3), B + B.swapaxes(1, 2), C + C.swapaxes(1, 2)

    def at(a, b):
        slopes = np.stack([B + b * np.eye(3), C + a * np.eye(3)], axis=-1)
        curvatures = np.zeros((30, 3, 3, 2, 2))
        curvatures[..., 0, 1] = curvatures[..., 1, 0] = np.eye(3)
        return normal_derivatives(e, A + a * B + b * C + a * b * np.eye(3), slopes, curvatures)

    point, step = np.array([0.1, -0.05]), 1e-5
    moves = [(at(*(point + move)), at(*(point - move))) for move in step * np.eye(2)]
    here = at(*point)
    gradient = [(up.value - down.value) / (2 * step) for up, down in moves]
    hessian = [(up.gradient - down.gradient) / (2 * step) for up, down in moves]
    np.testing.assert_allclose(here.gradient, gradient, rtol=1e-6)
    np.testing.assert_allclose(here.hessian, hessian, rtol=1e-5, atol=1e-4)
    assert at(100.0, 0.0) is None
    assert normal_derivatives(e, A * np.nan, B[..., None], B[..., None, None]) is None


class Level(CovarianceFamily):
    """Covariance s m I with s estimated and m known, the rows seen counted in the state."""

    n, names, title, bounds = 2, ("s",), "Level", (0.0, 10.0)
    state_shapes, constant_shapes = {"rows": (), "last": (2,)}, {"m": ()}

    def presample(self, values):
        return {"m": 2}

    def start(self, values, constants):
        return np.array([values.var()])

    def derivatives(self, values, params, constants):
        H = np.tile(constants["m"] * np.eye(2), (len(values), 1, 1))
        curvatures = np.zeros((*H.shape, 1, 1))
        return normal_derivatives(values, params[0] * H, H[..., None], curvatures)

    def begin(self, history, params, constants):
        return {"rows": 0, "last": np.zeros(2, int)}

    def run(self, values, params, constants, state):
        H = np.tile(params[0] * constants["m"] * np.eye(2), (len(values), 1, 1))
        return values, H, {"rows": state["rows"] + len(values), "last": values[-1]}

    def ahead(self, h, params, constants, state):
        root = np.linalg.cholesky(params[0] * constants["m"] * np.eye(2))
        H = np.tile(root @ root.T, (h, 1, 1))
        return np.tile(0.5 * state["last"], (h, 1)), H, H


class LevelForecaster(MatrixForecaster):
    def _family(self, arguments, data):
        return Level()


@pytest.fixture(scope="module")
def panel(frame):
    parts = {"x": frame, "still": 0 * frame, "z": 2 * frame[:90]}
    return long_of(parts)


@pytest.fixture(scope="module")
def level(panel):
    with pytest.warns(UserWarning, match="1 of 3 units could not be fitted, 'still'"):
        return LevelForecaster(target=["a", "b"]).fit(panel)


def test_numbers_and_integers_are_a_state(level, frame):
    assert level.params_["s"]["x"] == pytest.approx((frame**2).to_numpy().mean() / 2)
    np.testing.assert_array_equal(level.state_.arrays["rows"], [300, np.nan, 90])


def test_series_without_parameters_are_not_asked_ahead(level):
    forecast = level.predict(2, level=80).set_index("unique_id")
    assert forecast.loc["still", ["a", "b-hi-80"]].isna().all(axis=None)
    covariances = level.predict_covariances(2).set_index("unique_id")["covariance"]
    assert covariances.isna().groupby(level=0).all().to_dict() == {"x": 0, "still": 1, "z": 0}


def test_draws_of_a_state_of_integers_are_not_cut_off(level):
    draws = level.simulate(400, burn=0, random_state=0)["z"]
    after = draws.to_numpy()[:-1]
    errors = draws.to_numpy()[1:] - 0.5 * after
    np.testing.assert_allclose((errors * after).mean(0), 0, atol=0.3)


def test_given_parameters_lie_within_the_bounds(frame):
    with pytest.raises(
        ValueError,
        match=r"no series could be fitted; parameters must lie .*10\.0; beyond .* \['s'\]",
    ):
        LevelForecaster().filter(frame, [11.0])


@pytest.mark.parametrize(("method", "shapes"), [("begin", "state"), ("presample", "constant")])
def test_arrays_that_a_family_has_not_announced_are_refused(RiskMetrics, frame, method, shapes):
    class Family(RiskMetrics.family_class):
        pass

    class Forecaster(RiskMetrics):
        def _family(self, arguments, data):
            return Family(data.n_targets, None)

    setattr(Family, f"{shapes}_shapes", {})
    with pytest.raises(TypeError, match=rf"{method} must give arrays of the {shapes}_shapes {{}}"):
        Forecaster().fit(frame)


LAGGED = {
    "GARCH": (GARCH, {"mean": "ar", "mean_order": 3}),
    "CCC": (CCC, {"mean": "var", "mean_order": 3}),
    "DCC": (DCC, {"mean": "vecm", "mean_order": 2}),
    "VECMGARCH": (VECMGARCH, {"mean": "var", "mean_order": 3, "structure": "scalar"}),
}


@pytest.fixture(scope="module", params=list(LAGGED))
def lagged(request, frame):
    """Return a model whose mean has three lags, of a long series and one of two rows."""
    cls, arguments = LAGGED[request.param]
    targets = ["a"] if cls is GARCH else ["a", "b"]
    parts = {"long": frame[targets], "short": frame[targets][:2]}
    panel = long_of(parts)
    with pytest.warns(UserWarning, match="1 of 2 units could not be fitted, 'short'"):
        return cls(target=targets, random_state=0, **arguments).fit(panel), panel


def test_a_series_shorter_than_the_lags_costs_none_of_the_others(lagged):
    model, panel = lagged
    forecast = model.predict(2, level=80).set_index("unique_id").drop(columns="ds")
    assert forecast.loc["long"].notna().all(axis=None)
    assert forecast.loc["short"].isna().all(axis=None)
    alone = model.predict(panel[panel["unique_id"] == "short"], h=2).drop(columns="unique_id")
    assert alone.drop(columns="ds").isna().all(axis=None)
    with pytest.raises(ValueError, match="at least 3 rows of each series; series 'long' has 2"):
        model.predict(panel[:2], h=2)


def test_rows_that_the_lags_take_are_enough_to_forecast(lagged):
    model, panel = lagged
    forecast = model.predict(panel[:3], h=2, level=80).drop(columns=["unique_id", "ds"])
    assert forecast.notna().all(axis=None)
    if isinstance(model, GARCH):
        assert model.conditional_volatility(panel[:3])["volatility"].isna().all()
    else:
        with pytest.raises(ValueError, match="correlations need rows beyond those that lags"):
            model.correlations(panel[:3])
        assert len(model.correlations(panel[:4])) == 1


def test_draws_from_given_parameters_need_no_fit_but_a_presample(lagged):
    model, _ = lagged
    if isinstance(model, GARCH):
        return
    drawn = model.simulate(5, params=model.params_.loc["long"])
    assert drawn["long"].notna().all(axis=None)
    presample = isinstance(model, VECMGARCH)
    assert drawn["short"].isna().all(axis=None) == presample


def test_dataclasses_of_arrays_are_compared_by_identity():
    """Equality of their fields would be an array, which is neither true nor false."""
    rooms = [importlib.import_module(f"tsrnn.linear.{room}") for room in ("garch", "dcc", "vech")]
    modules = [
        importlib.import_module(f"{room.__name__}.{name}")
        for room in rooms
        for _, name, _ in pkgutil.iter_modules(room.__path__)
    ]
    classes = {
        cls
        for module in [*modules, tsrnn.linear._covariance]
        for cls in vars(module).values()
        if isinstance(cls, type) and dataclasses.is_dataclass(cls)
        if cls.__module__ == module.__name__
        if any(re.match(r"np\.ndarray|Tensor", field.type) for field in dataclasses.fields(cls))
    }
    assert len(classes) >= 10
    assert [cls for cls in classes if cls.__eq__ is not object.__eq__] == []
