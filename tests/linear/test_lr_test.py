"""Likelihood-ratio tests of pairs of models: which have a limit, and which are refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2
from sklearn.base import clone

from tsrnn.linear import ARMA, CCC, DCC, GARCH, VARMA, VECMGARCH


def returns(n=400, columns=1, seed=0):
    """Series with changing variance and fat tails."""
    rng = np.random.default_rng(seed)
    h, y = np.ones(columns), np.empty((n, columns))
    for t in range(n):
        y[t] = np.sqrt(h) * rng.standard_t(6, columns) * np.sqrt(4 / 6)
        h = 0.1 + 0.15 * y[t] ** 2 + 0.75 * h
    return pd.DataFrame(y, columns=[f"y{i}" for i in range(columns)])


ONE, TWO = returns(), returns(200, 2, 1)
AR = pd.DataFrame({"y": ONE["y0"] + 0.7 * ONE["y0"].shift(fill_value=0.0)})

CHI2 = {
    "ARMA, a lag": (AR, ARMA((1, 1)), ARMA((0, 1)), 1),
    "ARMA, the constant": (AR, ARMA((0, 1)), ARMA((0, 1), trend="n"), 1),
    "VARMA, a lag": (TWO, VARMA((2, 0)), VARMA((1, 0)), 4),
    "GARCH, leverage": (ONE, GARCH(vol="gjr"), GARCH(), 1),
    "EGARCH, a lag": (
        ONE,
        GARCH((1, 1), vol="egarch", mean="zero"),
        GARCH((1, 0), vol="egarch", mean="zero"),
        1,
    ),
    "BEKK, a scalar model": (TWO, VECMGARCH(), VECMGARCH(structure="scalar"), 6),
}
MIXTURE = {
    "GARCH, beta": (ONE, GARCH((1, 1)), GARCH((1, 0)), 1),
    "GARCH, alpha": (ONE, GARCH((2, 1)), GARCH((1, 1)), 1),
    "GARCH, Student's t": (ONE, GARCH(distribution="t"), GARCH(), 1),
    "GARCH, Student's t and leverage": (ONE, GARCH(vol="gjr", distribution="t"), GARCH(), 2),
    "vech, a lag of a scalar": (
        TWO,
        VECMGARCH(structure="scalar"),
        VECMGARCH((1, 0), structure="scalar"),
        1,
    ),
}
UNKNOWN = {
    "ARMA, a lag on both sides": (AR, ARMA((1, 1)), ARMA((0, 0)), "both sides"),
    "GARCH, a lag on both sides": (ONE, GARCH((2, 2)), GARCH((1, 1)), "both sides"),
    "GARCH, two on a boundary": (
        ONE,
        GARCH((2, 1), distribution="t"),
        GARCH((1, 1)),
        "2 restricted parameters are on a boundary",
    ),
    "vech, a BEKK": (
        TWO,
        VECMGARCH(structure="full"),
        VECMGARCH(),
        "edge of the positive semidefinite",
    ),
    "BEKK, a lag": (TWO, VECMGARCH(), VECMGARCH((1, 0)), "zero is their edge"),
    "DCC, a CCC": (TWO, DCC(), CCC(), "constant_correlation_test"),
    "CCC, leverage": (TWO, CCC(vol="gjr"), CCC(), "in steps"),
}
NOT_NESTED = {
    "ARMA, a lag for a lag": (AR, ARMA((2, 0)), ARMA((0, 1))),
    "GARCH, EGARCH": (ONE, GARCH(vol="egarch", mean="zero"), GARCH(mean="zero")),
    "GARCH, Student's t in normal": (ONE, GARCH((2, 2)), GARCH((1, 1), distribution="t")),
    "diagonal vech, BEKK": (TWO, VECMGARCH(), VECMGARCH(structure="diagonal")),
    "GARCH, held stationary": (ONE, GARCH((2, 1)), GARCH(stationary=False)),
}


def ratio_of(data, larger, smaller):
    for model in (larger, smaller):
        model.set_params(random_state=0)
        if isinstance(model, VECMGARCH):
            model.set_params(n_starts=1, mean="zero")
    return larger.fit(data).lr_test(smaller.fit(data)).iloc[0]


@pytest.mark.parametrize("pair", CHI2)
def test_a_chi_square_limit(pair):
    data, larger, smaller, df = CHI2[pair]
    test = ratio_of(data, larger, smaller)
    statistic = 2 * (larger.loglik_.iloc[0] - smaller.loglik_.iloc[0])
    assert test["statistic"] == pytest.approx(statistic, abs=1e-5)
    assert (test["df"], test["limit"]) == (df, f"chi2({df})")
    assert test["p_value"] == chi2.sf(test["statistic"], df)


@pytest.mark.parametrize("pair", MIXTURE)
def test_half_of_the_chi_squares_on_either_side_of_a_boundary(pair):
    data, larger, smaller, df = MIXTURE[pair]
    test = ratio_of(data, larger, smaller)
    assert (test["df"], test["limit"]) == (df, f"0.5 chi2({df - 1}) + 0.5 chi2({df})")
    upper, none = chi2.sf(test["statistic"], df), float(test["statistic"] == 0)
    lower = chi2.sf(test["statistic"], df - 1) if df > 1 else none
    assert test["p_value"] == pytest.approx((lower + upper) / 2)


@pytest.mark.few("GARCH, a lag on both sides", "DCC, a CCC", "ARMA, a lag on both sides")
@pytest.mark.parametrize("pair", UNKNOWN)
def test_no_limit_is_known(pair):
    data, larger, smaller, reason = UNKNOWN[pair]
    test = ratio_of(data, larger, smaller)
    assert np.isfinite(test["statistic"])
    assert np.isnan(test["p_value"])
    assert test["limit"].startswith("none: ")
    assert reason in test["limit"]


@pytest.mark.few("GARCH, EGARCH", "ARMA, a lag for a lag")
@pytest.mark.parametrize("pair", NOT_NESTED)
def test_models_that_are_not_nested_are_refused(pair):
    data, larger, smaller = NOT_NESTED[pair]
    with pytest.raises(ValueError, match="must be nested in the larger one"):
        ratio_of(data, larger, smaller)


def test_the_mixture_has_its_size():
    """Under the normal distribution half of the estimates of 1 / nu are on their bound."""
    noise = pd.DataFrame(np.random.default_rng(0).standard_normal((400, 200)))
    arguments = {"mean": "zero", "order": (1, 0)}
    larger = GARCH(distribution="t", **arguments).fit(noise)
    test = larger.lr_test(GARCH(**arguments).fit(noise))
    known = test[test["p_value"].notna()]  # alpha is at zero in the others
    assert len(known) > 60
    assert (known["statistic"] >= 0).all()
    assert 0.3 < (known["p_value"] > 0.99).mean() < 0.75
    assert (known["p_value"] < 0.1).mean() < 0.2


def test_a_smaller_model_on_a_boundary_has_no_limit():
    noise = pd.Series(np.random.default_rng(3).standard_normal(300), name="y")
    smaller = GARCH((1, 0)).fit(noise)
    assert smaller.params_["alpha[1]"].iloc[0] == 0
    test = GARCH((1, 1)).fit(noise).lr_test(smaller).iloc[0]
    assert np.isnan(test["p_value"])
    assert "alpha[1]" in test["limit"]


@pytest.mark.parametrize("model", [ARMA, GARCH])
def test_other_data_of_the_same_scale_are_refused(model):
    shuffled = ONE.sample(frac=1, random_state=0).reset_index(drop=True)
    larger = model(order=(1, 1)).fit(ONE)
    with pytest.raises(ValueError, match="same values in the same order"):
        larger.lr_test(model(order=(1, 0)).fit(shuffled))


def test_another_regressor_of_the_same_name_is_refused():
    frame = AR.assign(x=np.arange(len(AR)) ** 0.5)
    larger = ARMA((1, 1), target="y").fit(frame)
    assert np.isfinite(larger.lr_test(ARMA((1, 1)).fit(AR))["p_value"].iloc[0])
    other = ARMA((1, 0), target="y").fit(frame.assign(x=frame["x"] ** 2))
    with pytest.raises(ValueError, match="exogenous column 'x' differs"):
        larger.lr_test(other)


def test_given_parameters_are_refused():
    larger, smaller = GARCH(vol="gjr").fit(ONE), GARCH().fit(ONE)
    given = GARCH().filter(ONE, smaller.params_)
    with pytest.raises(ValueError, match="smaller model was given its parameters"):
        larger.lr_test(given)


def test_a_negative_statistic_is_an_error_or_costs_its_unit_alone():
    data = returns(300, 3, 2)
    larger, smaller = GARCH(vol="gjr").fit(data), GARCH().fit(data)
    loglik = larger.estimates_.loglik
    loglik[1] = smaller.estimates_.loglik[1] - 0.5
    with pytest.warns(UserWarning, match="'y1' is -1, below zero.*1 of 3 units"):
        test = larger.lr_test(smaller)
    assert np.isnan(test["p_value"]).tolist() == [False, True, False]
    loglik[:] = smaller.estimates_.loglik - 0.5
    with pytest.raises(ValueError, match="'y0' is -1, below zero: .* larger n_starts"):
        larger.lr_test(smaller)


def test_cointegrating_vectors_that_both_models_hold_are_no_boundary():
    data = returns(200, 3, 2).assign(y0=lambda frame: frame["y0"].cumsum())
    data = data.assign(y1=data["y0"] + data["y1"], y2=data["y0"] + data["y2"])
    model = VECMGARCH(mean="vecm", coint_rank=2, n_starts=1, random_state=0, structure="scalar")
    arch, one = clone(model).set_params(order=(1, 0)), clone(model).set_params(coint_rank=1)
    model.fit(data)
    assert "beta" not in model.lr_test(arch.fit(data))["limit"].iloc[0]
    other_rank = model.lr_test(one.fit(data)).iloc[0]
    assert other_rank["limit"].startswith("none: the number of cointegrating relations")
    assert np.isnan(other_rank["p_value"])
