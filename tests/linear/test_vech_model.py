"""VECMGARCH behind the forecaster contract: frames, forecasts, responses, simulation, files."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

from tsrnn.contract import read_file
from tsrnn.linear._mean import paths
from tsrnn.linear.vech import VECMGARCH
from tsrnn.linear.vech._filter import CovarianceState, advance_vech, forecast_vech
from tsrnn.linear.vech._structure import unvech, vech

from .references import long_of, matrices_of

OPTIONS = {"random_state": 0, "n_starts": 1}


def frame_of(steps=400, n=2, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    mixed = rng.standard_normal((n, n)) / 3 + np.eye(n)
    e, h = np.zeros((steps, n)), np.ones(n)
    for t in range(steps):
        h = 0.1 + 0.15 * (e[t - 1] ** 2 if t else h) + 0.75 * h
        e[t] = np.sqrt(h) * rng.standard_normal(n)
    index = pd.date_range("2020-01-01", periods=steps, freq="D")
    return pd.DataFrame(scale * e @ mixed, index=index, columns=list("abcde")[:n])


@pytest.fixture(scope="module")
def frame():
    return frame_of()


@pytest.fixture(scope="module")
def model(frame):
    return VECMGARCH(mean="var", **OPTIONS).fit(frame)


def test_summary_and_frames(model, frame):
    text = str(model.summary())
    for words in ("BEKK(1, 1), var mean", "A1[1,2]", "L1.b.a", "Spectral radius", "agree"):
        assert words in text
    assert list(model.params_.columns[:3]) == ["intercept.a", "L1.a.a", "L1.b.a"]
    assert model.params_.shape == (1, 6 + 11)
    assert model.nobs_.iloc[0] == len(frame) - 1
    assert model.starts_.iloc[0] == 2  # one, and the diagonal BEKK
    assert 1 <= model.agreement_.iloc[0] <= 2
    at_zero = ["C[2,2]"]  # CC' has rank one
    assert model.params_[at_zero].eq(0).all(axis=None)
    assert list(model.bse_.columns[model.bse_.isna().iloc[0]]) == at_zero
    assert 0 < model.coefficients()["persistence"] < 1


def test_covariances_are_those_of_the_recursion(model, frame):
    H = matrices_of(model.covariances(), "covariance", 2)
    e = model.residuals().to_numpy()[1:]
    C, A, G = np.zeros((2, 2)), *model.params_.to_numpy()[0, -8:].reshape(2, 2, 2)
    C[np.tril_indices(2)] = model.params_.to_numpy()[0, -11:-8]
    for t in (1, 50, len(e) - 1):
        now = C @ C.T + A.T @ np.outer(e[t - 1], e[t - 1]) @ A + G.T @ H[t - 1] @ G
        np.testing.assert_allclose(H[t], now, rtol=1e-10)
    R = model.correlations()
    assert list(R.columns) == ["time", "first", "second", "correlation"]
    assert len(R) == len(frame) - 1
    np.testing.assert_allclose(
        R["correlation"], H[:, 0, 1] / np.sqrt(H[:, 0, 0] * H[:, 1, 1]), rtol=1e-12
    )
    z = model.residuals(standardized=True).to_numpy()[1:]
    np.testing.assert_allclose(np.linalg.cholesky(H) @ z[..., None], e[..., None], atol=1e-10)
    value = -0.5 * (2 * np.log(2 * np.pi) + np.linalg.slogdet(H)[1] + (z**2).sum(1)).sum()
    np.testing.assert_allclose(model.loglik_.iloc[0], value, rtol=1e-12)


def test_forecasts_are_those_of_the_recursions(model, frame):
    """Means by the VAR, covariances by the vech form, errors by its moving average."""
    p = model.params_.to_numpy()[0]
    intercept, lag = p[[0, 3]], p[[1, 2, 4, 5]].reshape(2, 2)
    parts = model.coefficients()
    H = matrices_of(model.predict_covariances(4), "covariance", 2)
    last_e = model.residuals().to_numpy()[-1]
    h = vech(matrices_of(model.covariances(), "covariance", 2)[-1])
    x, y, error = vech(np.outer(last_e, last_e)), frame.to_numpy()[-1], np.zeros((2, 2))
    found = model.predict(4, level=[80])
    total = matrices_of(model.predict_covariances(4, of="forecast"), "covariance", 2)
    diagonal = np.diagonal(total, axis1=1, axis2=2)
    np.testing.assert_allclose(model.predict_variance(4, of="forecast"), diagonal, rtol=1e-12)
    for k in range(4):
        h = parts["b"] + parts["theta"][0] @ x + parts["phi"][0] @ h
        x = h
        y = intercept + lag @ y
        np.testing.assert_allclose(H[k], unvech(h), rtol=1e-10)
        np.testing.assert_allclose(found[["a", "b"]].to_numpy()[k], y, rtol=1e-9)
        error = lag @ error @ lag.T + unvech(h)
        np.testing.assert_allclose(total[k], error, rtol=1e-9)
        half = ndtri(0.9) * np.sqrt(error[0, 0])
        np.testing.assert_allclose(found["a-hi-80"].iloc[k] - found["a"].iloc[k], half, rtol=1e-9)


def test_forecast_variance_is_that_of_simulated_paths(model):
    family, arrays = model.fitted_.family, model.state_.arrays
    one = family.model(*model.fitted_.unit(0))
    state = CovarianceState(**{name: array[0] for name, array in arrays.items()})
    rng, h, many = np.random.default_rng(0), 3, 20_000
    past = np.repeat(state.squares[0][None], many, 0)
    before = np.repeat(state.states[0][None], many, 0)
    errors = np.empty((many, h, 2))
    for k in range(h):
        before = one.constant + past @ one.theta[0].T + before @ one.phi[0].T
        root = np.linalg.cholesky(unvech(before))
        errors[:, k] = (root @ rng.standard_normal((many, 2, 1)))[..., 0]
        past = vech(errors[:, k, :, None] * errors[:, k, None])
    y = paths(np.repeat(state.history[None], many, 0), np.repeat(one.intercept[None], many, 0),
              np.repeat(one.lags[None], many, 0), errors)  # fmt: skip
    found = family.forecasts(arrays, model.fitted_.units_of(model.state_.ids), h)
    for k in range(h):
        np.testing.assert_allclose(np.cov(y[:, k].T), found.total[0, k], rtol=0.06, atol=0.01)


def test_update_is_running_over_all_rows(frame):
    model = VECMGARCH(mean="var", mean_order=2, **OPTIONS).fit(frame.iloc[:300])
    whole = model.predict(frame, h=3, level=90)
    model.update(frame.iloc[300:301]).update(frame.iloc[301:])
    pd.testing.assert_frame_equal(model.predict(3, level=90), whole, rtol=1e-9)


def test_volatility_response_is_the_change_of_the_forecast(model):
    shock = np.array([2.0, -1.0])
    found = matrices_of(model.volatility_response(shock, 3), "response", 2)
    one = model.fitted_.family.model(*model.fitted_.unit(0))
    state = CovarianceState(**{name: array[0] for name, array in model.state_.arrays.items()})
    before = forecast_vech(
        type(one)(*(a[None] for a in one)), CovarianceState(*(a[None] for a in state)), 4
    )
    row = one.intercept + one.lags[0] @ state.history[-1] + shock
    _, after = advance_vech(one, state, row[None])
    moved = forecast_vech(
        type(one)(*(a[None] for a in one)), CovarianceState(*(a[None] for a in after)), 3
    )
    np.testing.assert_allclose(found, moved.covariance[0] - before.covariance[0, 1:], atol=1e-10)


def test_the_layer_of_linear_units_runs_the_same_recursion(model):
    torch = pytest.importorskip("torch")
    e = model.residuals().to_numpy()[1:]
    H = vech(matrices_of(model.covariances(), "covariance", 2))
    x = torch.from_numpy(vech(e[:, :, None] * e[:, None]))[None]
    start = torch.from_numpy(H[:1])[None]
    with torch.no_grad():
        states, _ = model.to_rnn()(x, start)
    np.testing.assert_allclose(states[0, :-1], H[1:], rtol=1e-10)


def test_simulated_series_have_the_stationary_covariance(frame):
    model = VECMGARCH(structure="scalar", targeting=True, mean="zero", **OPTIONS).fit(frame)
    draws = model.simulate(10_000)
    expected = frame.to_numpy().T @ frame.to_numpy() / len(frame)
    np.testing.assert_allclose(np.cov(draws.to_numpy().T), expected, rtol=0.15, atol=0.03)
    pd.testing.assert_frame_equal(model.simulate(50), model.simulate(50))
    given = model.simulate(50, params={"theta1": 0.0, "phi1": 0.0}, burn=0)
    assert given.shape == (50, 2)


def test_vecm_mean(frame):
    levels = frame.cumsum()
    levels["b"] = 0.5 * levels["a"] + frame["b"]
    model = VECMGARCH(structure="scalar", mean="vecm", mean_order=1, **OPTIONS).fit(levels)
    assert "alpha.ec1.a" in model.params_.columns
    fitted, rest = model.fittedvalues(), model.residuals()
    np.testing.assert_allclose((fitted + rest).iloc[2:], levels.iloc[2:], rtol=1e-12)
    assert fitted.iloc[:2].isna().all(axis=None)
    far = model.predict(200)
    gap = far["b"] - 0.5 * far["a"]
    assert abs(gap.iloc[-1] - gap.iloc[-2]) < 1e-3  # the relation holds in the long run
    assert np.isfinite(model.bse_.drop(columns="beta.ec1.b")).all(axis=None)


@pytest.fixture(scope="module")
def panel():
    good, other = frame_of(300, seed=1), frame_of(260, seed=2, scale=1e-3)
    bad = good.assign(b=2 * good["a"])
    parts = {"x": good, "bad": bad, "z": other}
    return long_of(parts)


def test_a_panel_is_fitted_series_by_series(panel):
    model = VECMGARCH(structure="scalar", target=["a", "b"], **OPTIONS)
    with pytest.warns(UserWarning, match="1 of 3 units could not be fitted, 'bad'"):
        model.fit(panel)
    assert list(model.converged_) == [True, False, True]
    assert "perfectly collinear" in model.estimates_.messages[1][0]
    alone = VECMGARCH(structure="scalar", **OPTIONS).fit(frame_of(260, seed=2, scale=1e-3))
    np.testing.assert_allclose(model.params_.loc["z"], alone.params_.iloc[0], rtol=1e-7)
    found = model.predict(2, level=90)
    assert found[found["unique_id"] == "bad"].isna().any(axis=None)
    assert found[found["unique_id"] != "bad"].notna().all(axis=None)
    assert set(model.covariances()["unique_id"]) == {"x", "z"}
    assert set(model.predict_covariances(2)["unique_id"]) == {"x", "bad", "z"}
    assert model.simulate(5).shape == (5, 6)
    with pytest.raises(ValueError, match="name one of 3 units"):
        model.coefficients()
    for call in (model.coefficients, lambda unit: model.volatility_response([1, 1], unit=unit)):
        with pytest.raises(ValueError, match="unit 'bad' could not be fitted"):
            call("bad")
    with pytest.raises(ValueError, match=r"none of the series 'bad' could be fitted"):
        model.covariances(panel[panel["unique_id"] == "bad"])
    assert model.agreement_.to_dict() == {"x": 1, "bad": 0, "z": 1}
    assert model.agreement_.dtype == np.int64


def test_a_panel_of_bad_series_is_refused_by_name(panel):
    bad = panel[panel["unique_id"] == "bad"]
    with pytest.raises(ValueError, match=r"no series could be fitted; 'bad': \['a', 'b'\] are"):
        VECMGARCH(target=["a", "b"]).fit(bad)


def test_few_rows_are_refused_by_fit_and_not_by_filter(model, frame):
    with pytest.raises(ValueError, match="13 parameters need at least 26 values; there are 10 row"):
        VECMGARCH().fit(frame[:10])
    with pytest.raises(ValueError, match="needs at least 4 rows; got 1"):
        VECMGARCH().fit(frame[:1])
    assert len(VECMGARCH(mean="var").filter(frame[:8], model.params_).covariances()) == 3 * 7


def test_arguments_of_what_a_model_does(model):
    for shock in ([1], "x", [1, np.nan]):
        with pytest.raises(ValueError, match="shock must be 2 finite numbers, one a target; got"):
            model.volatility_response(shock)
    with pytest.raises(ValueError, match="burn must be an integer of at least 0; got -1"):
        model.simulate(3, burn=-1)
    explosive = model.params_.copy()
    explosive["G1[1,1]"] = 3.0
    with pytest.raises(ValueError, match="too large for a number after"):
        model.simulate(2000, params=explosive)


def test_saved_and_loaded(frame, tmp_path):
    for structure in ("diagonal", "scalar"):
        model = VECMGARCH(structure=structure, mean="zero", **OPTIONS).fit(frame)
        model.save(tmp_path / "model")
        again = VECMGARCH._restore(*read_file(tmp_path / "model"))
        pd.testing.assert_frame_equal(again.predict(3, level=90), model.predict(3, level=90))
        pd.testing.assert_frame_equal(again.bse_, model.bse_)
        assert again.agreement_.equals(model.agreement_)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": (0, 1)}, "p >= 1"),
        ({"structure": "dvech"}, "structure must be one of"),
        ({"mean": "ar"}, "mean must be one of"),
        ({"n_starts": 0}, "n_starts must be"),
        ({"targeting": 1}, "targeting must be True or False"),
        ({"mean": "vecm", "coint_rank": 2}, "coint_rank must lie between 1 and 1"),
        ({"cov_type": "hc0"}, "cov_type must be one of"),
    ],
)
def test_arguments_that_make_no_sense(frame, arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        VECMGARCH(**arguments).fit(frame)


def test_data_that_cannot_be_fitted(frame):
    with pytest.raises(ValueError, match="perfectly collinear"):
        VECMGARCH().fit(frame.assign(c=frame["a"] - frame["b"]))
    with pytest.raises(ValueError, match="takes no exogenous columns"):
        VECMGARCH(target=["a"]).fit(frame)
    model = VECMGARCH(structure="scalar", mean="var", mean_order=3, **OPTIONS).fit(frame)
    with pytest.raises(ValueError, match="at least 3 rows"):
        model.predict(frame.iloc[:2], h=1)
