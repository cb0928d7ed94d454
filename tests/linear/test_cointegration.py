"""Error-correction means: the cointegrating vectors are parameters like others."""

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.vector_ar.vecm import VECM

from tsrnn.contract import read_file
from tsrnn.linear import CCC, DCC, VECMGARCH
from tsrnn.linear._mean import Mean
from tsrnn.storage import load

VECM_MEAN = {"mean": "vecm", "mean_order": 1}
MODELS = {
    "vech": VECMGARCH(structure="scalar", n_starts=1, random_state=0, **VECM_MEAN),
    "BEKK, two relations": VECMGARCH(n_starts=1, random_state=0, coint_rank=2, **VECM_MEAN),
    "CCC": CCC(order=(1, 0), **VECM_MEAN),
    "DCC, two relations": DCC(coint_rank=2, **VECM_MEAN),
}
FREE = {1: ["beta.ec1.b", "beta.ec1.c"], 2: ["beta.ec1.c", "beta.ec2.c"]}


def levels(seed=0, rows=320):
    rng = np.random.default_rng(seed)
    trend = rng.standard_normal(rows).cumsum()
    values = np.column_stack([trend, 0.5 * trend, -0.3 * trend]) + rng.standard_normal((rows, 3))
    return pd.DataFrame(values + np.array([5.0, 0.0, 2.0]), columns=list("abc"))


@pytest.fixture(scope="module")
def frame():
    return levels()


@pytest.fixture(scope="module", params=MODELS)
def model(request, frame):
    return MODELS[request.param].fit(frame)


def oracle_of(model, frame):
    return VECM(frame, k_ar_diff=1, coint_rank=model.coint_rank, deterministic="co").fit()


@pytest.mark.few("CCC", "DCC, two relations", "vech")
def test_beta_is_that_of_statsmodels(model, frame):
    names, oracle = FREE[model.coint_rank], oracle_of(model, frame)
    assert list(model.params_.columns[-2:]) == names
    rest = oracle.beta[model.coint_rank :].T.ravel()
    np.testing.assert_allclose(model.params_[names].iloc[0], rest, rtol=1e-6)


def test_alpha_and_gamma_are_those_of_statsmodels(frame):
    model = CCC(order=(1, 0), **VECM_MEAN).fit(frame)
    oracle, params = oracle_of(model, frame), model.params_.iloc[0]
    alpha = [params[f"alpha.ec1.{name}"] for name in "abc"]
    np.testing.assert_allclose(alpha, oracle.alpha[:, 0], rtol=1e-6)
    gamma = [[params[f"L1.D.{cause}.{effect}"] for cause in "abc"] for effect in "abc"]
    np.testing.assert_allclose(gamma, oracle.gamma, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.residuals().dropna(), oracle.resid, atol=1e-7)


def test_beta_is_held_and_the_summary_says_so(model):
    names = FREE[model.coint_rank]
    assert model.bse_[names].isna().all(axis=None)
    assert model.bse_.drop(columns=names).notna().sum(axis=None) > 10
    text = str(model.summary())
    for words in ("beta: cointegrating vectors, of which a has one in ec1", *names, "Johansen"):
        assert words in " ".join(text.split())


@pytest.mark.few("CCC", "DCC, two relations")
def test_filter_uses_the_beta_given(model, frame):
    other = levels(seed=7, rows=200)
    given = model.params_.iloc[0].copy()
    run = MODELS["vech"].__class__ if isinstance(model, VECMGARCH) else type(model)
    filtered = run(**model.get_params()).filter(other, given)
    pd.testing.assert_series_equal(filtered.params_.iloc[0], given, check_names=False)
    own = run(**model.get_params()).fit(other)
    names = FREE[model.coint_rank]
    assert (own.params_[names].iloc[0] - given[names]).abs().max() > 1e-4
    mean = Mean("vecm", 1, model.coint_rank)
    beta = mean.relations(given[names].to_numpy(), 3)
    change = other.diff().to_numpy()
    for k, name in enumerate("abc"):
        expected = given[f"intercept.{name}"] + sum(
            given[f"alpha.ec{i + 1}.{name}"] * (other.to_numpy() @ beta[:, i])[1:-1]
            for i in range(model.coint_rank)
        )
        expected = expected + sum(
            given[f"L1.D.{cause}.{name}"] * change[1:-1, j] for j, cause in enumerate("abc")
        )
        errors = filtered.residuals()[name].to_numpy()[2:]
        np.testing.assert_allclose(errors, change[2:, k] - expected, atol=1e-9)
    moved = given.copy()
    moved[names[0]] += 0.1
    assert run(**model.get_params()).filter(other, moved).loglik_.iloc[0] != pytest.approx(
        filtered.loglik_.iloc[0]
    )


def test_the_sum_of_a_and_b_is_theirs(frame):
    model = DCC(**VECM_MEAN).fit(frame)
    total = model.params_[["a[1]", "b[1]"]].iloc[0].sum()
    assert f"{total:.4f}" == model.summary().model["Sum of a and b"]


def test_filter_over_the_same_rows_is_the_fit(model, frame):
    again = type(model)(**model.get_params()).filter(frame, model.params_)
    np.testing.assert_allclose(again.loglik_, model.loglik_, rtol=1e-9)
    np.testing.assert_allclose(again.predict(5), model.predict(5), rtol=1e-9)


def test_files_and_simulation_keep_beta(model, frame, tmp_path):
    model.save(tmp_path / "m.tsrnn")
    back = load(tmp_path / "m.tsrnn")
    pd.testing.assert_frame_equal(back.params_, model.params_)
    np.testing.assert_array_equal(back.predict(3), model.predict(3))
    assert np.isfinite(back.update(levels(1, 330)[320:]).predict(2)).all(axis=None)
    arrays = read_file(tmp_path / "m.tsrnn")[1]
    assert "state.beta" not in arrays


def test_elements_and_relations_are_inverse():
    mean = Mean("vecm", 1, 2)
    beta = np.vstack([np.eye(2), np.arange(6.0).reshape(3, 2)])
    elements = mean.elements(beta)
    assert len(elements) == len(mean.relation_names(list("abcde")))
    np.testing.assert_array_equal(mean.relations(elements, 5), beta)
    place = mean.relation_names(list("abcde")).index("beta.ec2.d")
    assert elements[place] == beta[3, 1]
