"""VARMA behind the forecaster contract: frames, theory, simulation, files, refusals."""

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.api import VAR
from statsmodels.tsa.statespace.varmax import VARMAX

from tsrnn.contract import read_file
from tsrnn.interpret import recurrence_features
from tsrnn.linear.varma import VARMA
from tsrnn.linear.varma._filter import simulate_paths
from tsrnn.linear.varma._specification import Shape

from .references import long_of

pytestmark = pytest.mark.filterwarnings("ignore:Estimation of VARMA")

AR = np.array([[0.6, 0.2], [-0.1, 0.4]])
MA = np.array([[0.4, -0.1], [0.2, 0.3]])
CHOL = np.array([[1.0, 0.0], [0.5, 0.8]])
TRUE = np.concatenate([[1.0, -2.0], AR.ravel(), MA.ravel(), CHOL[np.tril_indices(2)]])


def given(params, frame):
    return VARMA((1, 1), random_state=3).filter(frame, params)


def frame_of(seed=0, rows=150):
    noise = pd.DataFrame(np.random.default_rng(seed).normal(size=(9, 2)), columns=["a", "b"])
    y = given(TRUE, noise).simulate(rows, random_state=seed)
    return y.set_axis(pd.date_range("2010-01-01", periods=rows, freq="MS"))


LONG = {"target": ["a", "b"], "freq": "MS"}


@pytest.fixture(scope="module")
def frame():
    return frame_of()


@pytest.fixture(scope="module")
def model(frame):
    return VARMA((1, 1), horizon=4).fit(frame)


def test_summary_and_frames(model, frame):
    text = str(model.summary())
    for words in ("VARMA(1, 1)", "L1.e(b).a", "sqrt.cov.a.b", "Largest MA root", "exact"):
        assert words in text
    assert model.params_.shape == (1, 13)
    assert model.nobs_.iloc[0] == len(frame)
    assert np.isfinite(model.bse_).all(axis=None)
    assert model.converged_.all()
    z = (model.params_ - TRUE) / model.bse_
    assert (z.abs() < 4).all(axis=None)
    assert model.diagnostics()["ljung_box_pvalue"].gt(1e-4).all()


def test_the_fit_is_a_maximum_of_varmax(model, frame):
    varmax = VARMAX(frame, order=(1, 1))
    varmax.ssm.tolerance = 0
    params = model.params_.to_numpy()[0]
    best = varmax.loglike(params)
    np.testing.assert_allclose(model.loglik_.iloc[0], best, rtol=1e-9)
    for step in 0.02 * np.diag(model.bse_.to_numpy()[0]):
        assert max(varmax.loglike(params + step), varmax.loglike(params - step)) < best


def test_filter_gives_the_same_state(model, frame):
    again = VARMA((1, 1), horizon=4).filter(frame, model.params_)
    # Intervals of parameters that are given know no degrees of freedom lost.
    pd.testing.assert_frame_equal(again.predict(), model.predict())
    np.testing.assert_allclose(again.loglik_, model.loglik_, rtol=1e-12)
    assert again.bse_.isna().all(axis=None)


@pytest.mark.parametrize("orthogonalised", [False, True])
def test_impulse_responses_are_those_of_varmax(model, frame, orthogonalised):
    oracle = VARMAX(frame, order=(1, 1)).filter(model.params_.to_numpy()[0])
    found = model.impulse_responses(6, orthogonalised)
    assert list(found.columns) == ["step", "impulse", "response", "value"]
    for j, name in enumerate("ab"):
        own = found[found["impulse"] == name].pivot(
            index="step", columns="response", values="value"
        )
        expected = oracle.impulse_responses(6, impulse=j, orthogonalized=orthogonalised)
        np.testing.assert_allclose(own, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("orthogonalised", [False, True])
def test_bands_are_those_of_a_difference_quotient(model, frame, orthogonalised):
    params = model.params_.to_numpy()[0]

    def responses(step):
        return given(params + step, frame).impulse_responses(5, orthogonalised)["value"]

    steps = 1e-6 * np.eye(len(params))
    jacobian = np.array([(responses(step) - responses(-step)) / 2e-6 for step in steps]).T
    cov = jacobian @ model.cov_params().to_numpy() @ jacobian.T
    found = model.impulse_responses(5, orthogonalised, level=[95])
    half = (found["hi-95"] - found["lo-95"]) / 2
    np.testing.assert_allclose(half, 1.959963985 * np.sqrt(np.diag(cov)), atol=1e-8)


def test_bands_of_a_var_are_near_those_of_statsmodels(frame):
    model = VARMA((2, 0)).fit(frame)
    errors = VAR(frame).fit(2).irf(5).stderr()
    found = model.impulse_responses(5, level=95)
    half = (found["hi-95"] - found["value"]).to_numpy().reshape(-1, 2, 2).swapaxes(1, 2)
    np.testing.assert_allclose(half / 1.959963985, errors, rtol=0.1, atol=0.002)


def test_roots_and_recurrence_features_are_eigenvalues(model):
    table = model.roots()
    ar, ma = model.params_.to_numpy()[0, 2:10].reshape(2, 2, 2)
    for part, matrix in (("AR", ar), ("MA", -ma)):
        mine = table[table["part"] == part]
        values = np.sort_complex((mine["real"] + 1j * mine["imag"]).to_numpy())
        np.testing.assert_allclose(values, np.sort_complex(np.linalg.eigvals(matrix)), atol=1e-12)
        assert mine["modulus"].is_monotonic_decreasing
        blocks = model.recurrent_blocks()[0][part]
        np.testing.assert_allclose(blocks, matrix[None])
    assert len(recurrence_features(model)) > 0
    pure = VARMA((2, 0)).filter(frame_of(), np.r_[1, 1, np.full(8, 0.1), 1, 0, 1])
    assert list(pure.recurrent_blocks()[0]) == ["AR"]
    assert pure.recurrent_blocks()[0]["AR"].shape == (1, 4, 4)
    values = np.abs(np.linalg.eigvals(pure.recurrent_blocks()[0]["AR"][0]))
    np.testing.assert_allclose(np.sort(pure.roots()["modulus"]), np.sort(values), atol=1e-8)
    assert set(pure.roots()["part"]) == {"AR"}


def test_draws_have_the_moments_of_the_model_from_the_first_row():
    units = 20_000
    shape = Shape(2, 1, 1, "c", 0, exact=True)
    y = simulate_paths(shape, np.tile(TRUE, (units, 1)), 3, np.random.default_rng(0))
    sigma = CHOL @ CHOL.T
    psi, variance, lagged = [np.eye(2), AR + MA], np.zeros((2, 2)), np.zeros((2, 2))
    psi += [np.linalg.matrix_power(AR, k) @ (AR + MA) for k in range(1, 60)]
    for late, early in zip(psi[1:], psi[:-1], strict=True):
        variance += early @ sigma @ early.T
        lagged += late @ sigma @ early.T
    mean = np.linalg.solve(np.eye(2) - AR, [1.0, -2.0])
    for t in (0, 2):
        np.testing.assert_allclose(y[:, t].mean(0), mean, atol=0.08)
        np.testing.assert_allclose(np.cov(y[:, t].T), variance, rtol=0.06, atol=0.05)
    across = np.cov(np.hstack([y[:, 1], y[:, 0]]).T)[:2, 2:]
    np.testing.assert_allclose(across, lagged, rtol=0.06, atol=0.05)


def test_simulate_frames(model, frame):
    drawn = given(TRUE, frame)
    first, again = drawn.simulate(5), drawn.simulate(5)
    pd.testing.assert_frame_equal(first, again)
    assert first.shape == (5, 2)
    assert list(first.columns) == ["a", "b"]
    unstable = dict(zip(model.params_.columns, TRUE, strict=True)) | {"L1.a.a": 1.2}
    with pytest.raises(ValueError, match="inverse roots below one"):
        drawn.simulate(5, unstable)


def test_a_panel_is_its_series_one_by_one_and_a_bad_one_costs_no_other(frame):
    parts = {"x": frame, "flat": frame.assign(a=1.0), "y": frame_of(7, 90)}
    with pytest.warns(UserWarning, match="could not be fitted, 'flat'"):
        panel = VARMA((1, 1), horizon=3, **LONG).fit(long_of(parts))
    assert panel.units_.tolist() == ["x", "flat", "y"]
    assert panel.params_.loc["flat"].isna().all()
    assert "does not vary" in panel.messages_["flat"][0]
    found = panel.predict(level=80)
    for name in ("x", "y"):
        alone = VARMA((1, 1), horizon=3, **LONG).fit(long_of({name: parts[name]}))
        np.testing.assert_allclose(panel.params_.loc[name], alone.params_.iloc[0], atol=1e-5)
        own = found[found["unique_id"] == name].drop(columns=["unique_id", "ds"])
        other = alone.predict(level=80).drop(columns=["unique_id", "ds"])
        np.testing.assert_allclose(own, other, atol=1e-4)
    assert found[found["unique_id"] == "flat"].iloc[:, 2:].isna().all(axis=None)
    assert panel.residuals()["a"].isna().sum() == len(frame)
    assert panel.simulate(4)["flat"].isna().all(axis=None)
    assert panel.recurrent_blocks()[0]["MA"].shape == (2, 2, 2)
    assert panel.roots()["unique_id"].tolist() == ["x"] * 4 + ["y"] * 4
    assert panel.impulse_responses(2, level=80)["unique_id"].unique().tolist() == ["x", "flat", "y"]
    assert (
        panel.forecast_covariance(2)["unique_id"].tolist() == ["x"] * 6 + ["flat"] * 6 + ["y"] * 6
    )
    panel.update(long_of({"y": frame_of(7, 92).iloc[90:]}))
    assert panel.predict()["ds"].nunique() == 6
    with pytest.raises(ValueError, match="not among them: 'new'"):
        panel.predict(long_of({"new": frame}))


def test_one_fitted_series_applies_to_others(model, frame):
    other = frame_of(5, 60)
    expected = VARMA((1, 1)).filter(other, model.params_.to_numpy()[0])
    pd.testing.assert_frame_equal(model.predict(other, 3), expected.predict(3))
    pd.testing.assert_frame_equal(model.residuals(df=other), expected.residuals())


def test_files_give_the_same(frame, tmp_path):
    model = VARMA((1, 1), "ct", "conditional", n_starts=1).fit(frame)
    model.save(tmp_path / "model")
    again = VARMA._restore(*read_file(tmp_path / "model"))
    pd.testing.assert_frame_equal(again.predict(3, level=90), model.predict(3, level=90))
    more = frame_of(0, 155).iloc[150:]
    pd.testing.assert_frame_equal(again.update(more).predict(3), model.update(more).predict(3))
    pd.testing.assert_frame_equal(again.impulse_responses(2), model.impulse_responses(2))


def test_wrong_arguments_are_refused_in_words(frame):
    for order in ((0, 0), (1,), (1, -1), (1.0, 1), "11", 1, (True, 1)):
        with pytest.raises(ValueError, match=r"order.*\(p, q\), p lags of y"):
            VARMA(order).fit(frame)
    with pytest.raises(ValueError, match=r"at least two targets; got one, 'a'. Take\s+ARMA"):
        VARMA((1, 1)).fit(frame["a"])
    with pytest.raises(ValueError, match="trend must be one of"):
        VARMA(trend="ctt").fit(frame)
    with pytest.raises(ValueError, match="likelihood must be one of"):
        VARMA(likelihood="full").fit(frame)
    with pytest.raises(ValueError, match="n_starts must be a positive integer"):
        VARMA(n_starts=0).fit(frame)
    with pytest.raises(ValueError, match="not admissible"):
        VARMA((1, 0)).filter(frame, [0, 0, 1.1, 0, 0, 0.5, 1, 0, 1])
    gap = frame.mask(np.arange(len(frame))[:, None] == [5, -1])
    for run in (lambda m: m.fit(gap), lambda m: m.filter(gap, [0, 0, 0.5, 0, 0, 0.5, 1, 0, 1])):
        with pytest.raises(ValueError, match="conditional likelihood needs every value"):
            run(VARMA(likelihood="conditional", missing="keep"))
    with pytest.raises(ValueError, match="collinear given the past"):
        VARMA().fit(frame.assign(c=frame["a"] + frame["b"]))


def test_missing_values_are_fitted_around(frame):
    gap = frame.copy()
    gap.iloc[20, 0] = gap.iloc[40:43, 1] = np.nan
    gap.iloc[70] = np.nan
    model = VARMA((1, 0), missing="keep").fit(gap)
    assert model.converged_.all()
    assert model.nobs_.iloc[0] == len(frame) - 1
    varmax = VARMAX(gap, order=(1, 0))
    value = varmax.fit(disp=False, maxiter=200).llf
    assert model.loglik_.iloc[0] > value - 1e-6
    residuals = model.residuals()
    assert residuals.isna().equals(gap.isna())
    assert model.fittedvalues().notna().all(axis=None)


def test_no_simulation_or_layer_with_exogenous_columns(frame):
    wide = frame.assign(x=np.arange(150.0) % 7)
    model = VARMA((1, 0), target=["a", "b"]).fit(wide)
    with pytest.raises(ValueError, match=r"exogenous columns \['x'\]"):
        model.simulate(3)
    with pytest.raises(ValueError, match="takes in the targets alone"):
        model.to_rnn()
    assert "beta.x.a" in model.params_
    assert model.forecast_covariance(2).shape == (6, 4)


def test_score_reads_the_known_columns_of_the_data(frame):
    x = np.random.default_rng(0).normal(size=(150, 1))
    wide = frame.assign(x=x[:, 0])
    wide["a"] += 5 * wide["x"]
    options = {"target": ["a", "b"]}
    with_x = VARMA((1, 1), known_ahead="x", **options).fit(wide.iloc[:100])
    assert with_x.score(wide.iloc[100:110]) > 0.4
    with pytest.raises(ValueError, match="not known ahead are"):
        VARMA((1, 1), **options).fit(wide.iloc[:100]).score(wide.iloc[100:110])


def test_the_conditional_likelihood_does_not_depend_on_the_level(frame):
    """A presample at zero would make outliers of the first rows."""
    for trend in ("c", "ct"):
        low, high = (
            VARMA((1, 1), trend, "conditional").fit(frame + level) for level in (0.0, 1000.0)
        )
        np.testing.assert_allclose(low.loglik_, high.loglik_, rtol=1e-8)
        np.testing.assert_allclose(low.predict(3) + 1000, high.predict(3), rtol=1e-6)


@pytest.mark.parametrize("likelihood", ["exact", "conditional"])
def test_a_trend_counts_from_the_first_row_fitted_to(frame, likelihood):
    trended = frame + np.arange(len(frame))[:, None]
    model = VARMA((1, 0), trend="ct", likelihood=likelihood).fit(trended)
    late = model.predict(trended[60:], h=3, level=80)
    pd.testing.assert_frame_equal(late, model.predict(h=3, level=80), rtol=1e-6)
