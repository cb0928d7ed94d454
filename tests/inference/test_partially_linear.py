"""PartiallyLinear against ordinary least squares, and its refusals."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tsrnn.inference import PartiallyLinear, left_out_residuals


def series(n=200, k=2, seed=0):
    rng = np.random.default_rng(seed)
    y, X = np.zeros(n), rng.normal(size=(n, k))
    for t in range(2, n):
        X[t] += 0.4 * y[t - 1]
        y[t] = X[t].sum() * 0.5 + 0.4 * y[t - 1] - 0.2 * y[t - 2] + rng.normal()
    index = pd.date_range("1980-01-01", periods=n, freq="MS")
    return pd.Series(y, index, name="y"), pd.DataFrame(X, index, [f"x{i}" for i in range(k)])


def full_regression(y, X, n_lags, controls=None):
    """Ordinary least squares of y on X, a constant and all lags."""
    frame = pd.concat([y, X] + ([] if controls is None else [controls]), axis=1)
    lags = [frame.shift(j).add_suffix(f".L{j}") for j in range(1, n_lags + 1)]
    exog = sm.add_constant(pd.concat([X, *lags], axis=1).iloc[n_lags:])
    return sm.OLS(y.iloc[n_lags:], exog).fit()


def test_linear_nuisances_within_the_sample_are_ordinary_least_squares():
    y, X = series()
    ols = full_regression(y, X, 3)
    fit = PartiallyLinear(LinearRegression(), n_lags=3, n_folds=1).fit(y, X)
    assert_allclose(fit.params_, ols.params[X.columns], rtol=1e-10)
    assert_allclose(fit.resid_, ols.resid, atol=1e-10)
    assert fit.nobs_ == ols.nobs
    assert fit.resid_.index.equals(y.index[3:])


@pytest.mark.parametrize(("cov_type", "maxlags"), [("HAC", 5), ("HAC", 1), ("fixed-b", 12)])
def test_newey_west_errors_are_those_of_statsmodels(cov_type, maxlags):
    y, X = series()
    ols = full_regression(y, X, 3).get_robustcov_results(
        "HAC", maxlags=maxlags, use_correction=True, use_t=False
    )
    fit = PartiallyLinear(
        LinearRegression(), n_lags=3, n_folds=1, cov_type=cov_type, bandwidth=maxlags
    ).fit(y, X)
    names = [ols.model.exog_names.index(name) for name in X]
    assert_allclose(fit.cov_params(), ols.cov_params()[np.ix_(names, names)], rtol=1e-10)
    if cov_type == "HAC":
        assert_allclose(fit.pvalues_, ols.pvalues[names], rtol=1e-8, atol=1e-15)
        assert_allclose(fit.conf_int(0.1), ols.conf_int(0.1)[names], rtol=1e-10)


def test_errors_of_uncorrelated_scores_are_hc1_of_statsmodels():
    y, X = series()
    ols = full_regression(y, X, 2).get_robustcov_results("HC1", use_t=True)
    fit = PartiallyLinear(LinearRegression(), n_lags=2, n_folds=1, cov_type="HC").fit(y, X)
    names = [ols.model.exog_names.index(name) for name in X]
    assert_allclose(fit.bse_, ols.bse[names], rtol=1e-10)
    assert_allclose(fit.pvalues_, ols.pvalues[names], rtol=1e-8, atol=1e-15)


def test_cosines_are_the_sums_of_their_definition():
    y, X = series(k=1)
    fit = PartiallyLinear(LinearRegression(), n_lags=2, n_folds=1, bandwidth=6).fit(y, X)
    ols = full_regression(y, X, 2)
    rest = sm.OLS(X.iloc[2:], ols.model.exog[:, ols.model.exog_names.index("x0") != np.arange(
        ols.model.exog.shape[1])]).fit().resid.to_numpy()  # fmt: skip
    scores, n = rest * ols.resid.to_numpy(), len(rest)
    omega = 0.0
    for j in range(1, 7):
        omega += 2 / n * sum(
            np.cos(np.pi * j * (t + 0.5) / n) * scores[t] for t in range(n)
        ) ** 2 / 6  # fmt: skip
    k = ols.model.exog.shape[1]
    assert_allclose(fit.bse_["x0"], np.sqrt(n * omega * n / (n - k)) / (rest @ rest), rtol=1e-10)


# Table of Kiefer and Vogelsang (2005) for the Bartlett kernel, as its cubic fit.
@pytest.mark.parametrize(
    ("alpha", "a"),
    [(0.1, (1.6449, 2.1859, 0.3142, -0.3427)), (0.05, (1.96, 2.9694, 0.4160, -0.5324))],
)
@pytest.mark.parametrize("b", [0.1, 0.3])
def test_fixed_b_critical_values_are_the_published_ones(alpha, a, b):
    y, X = series(n=203, k=1)
    lags = round(b * 200) - 1
    options = {"n_lags": 3, "n_folds": 1, "cov_type": "fixed-b", "bandwidth": lags}
    fit = PartiallyLinear(LinearRegression(), **options).fit(y, X)
    critical = (fit.conf_int(alpha)["upper"] - fit.params_) / fit.bse_
    assert_allclose(critical, np.polyval(a[::-1], b), rtol=0.02)


def test_default_bandwidths():
    y, X = series()
    bandwidths = {}
    for cov_type in ("EWC", "fixed-b", "HC", "HAC"):
        fit = PartiallyLinear(LinearRegression(), n_lags=3, n_folds=1, cov_type=cov_type).fit(y, X)
        bandwidths[cov_type] = fit.bandwidth_
    n = 197
    assert bandwidths["EWC"] == int(0.41 * n ** (2 / 3))
    assert bandwidths["fixed-b"] == int(1.3 * n**0.5)
    assert bandwidths["HC"] == 0
    assert 0 < bandwidths["HAC"] < 20


def test_residuals_are_of_fits_without_the_block_and_its_neighbours():
    rng = np.random.default_rng(0)
    windows, target = rng.normal(size=(60, 2, 2)), rng.normal(size=60)
    residuals = left_out_residuals(LinearRegression(), windows, target, n_folds=3, gap=4)
    table = windows.reshape(60, 4)
    for block in (range(20), range(20, 40), range(40, 60)):
        far = [i for i in range(60) if i < block[0] - 4 or i > block[-1] + 4]
        model = LinearRegression().fit(table[far], target[far])
        assert_allclose(residuals[block], (target - model.predict(table))[block], rtol=1e-10)


def test_weights_of_several_models_are_not_negative_and_sum_to_one():
    rng = np.random.default_rng(1)
    windows = rng.normal(size=(300, 2, 1))
    target = windows[:, 0, 0] + rng.normal(size=300)
    good, poor = LinearRegression(), RidgeCV([1e8])
    single = left_out_residuals(good, windows, target)
    both = left_out_residuals([good, poor], windows, target)
    assert (both**2).sum() <= (single**2).sum() * (1 + 1e-9)
    assert_allclose(both, single, atol=0.1)


@pytest.mark.slow
def test_networks_take_the_history_as_sequences_and_a_seed_repeats_them():
    from tsrnn import ParaRNNRegressor

    y, X = series(n=120, k=1)
    network = ParaRNNRegressor(4, max_epochs=2)
    fits = [PartiallyLinear(network, n_lags=4, random_state=3).fit(y, X) for _ in range(2)]
    assert fits[0].params_.equals(fits[1].params_)
    other = PartiallyLinear(network, n_lags=4, random_state=4).fit(y, X)
    assert other.params_["x0"] != fits[0].params_["x0"]
    wrapped = PartiallyLinear(make_pipeline(network), n_lags=4, random_state=3).fit(y, X)
    assert_allclose(wrapped.params_, fits[0].params_, rtol=1e-4)


def test_contemporaneous_controls_are_those_of_the_same_row():
    y, X = series(k=1)
    z = pd.Series(np.random.default_rng(5).normal(size=len(y)), y.index, name="z")
    y = y + z
    options = {"n_lags": 2, "n_folds": 1, "contemporaneous": True}
    fit = PartiallyLinear(LinearRegression(), **options).fit(y, X, z)
    frame = pd.concat([y, X], axis=1)
    lags = [frame.shift(j).add_suffix(f".L{j}") for j in (1, 2)]
    exog = sm.add_constant(pd.concat([X, z, z.shift(1).rename("z1"), *lags], axis=1).iloc[2:])
    assert_allclose(fit.params_["x0"], sm.OLS(y.iloc[2:], exog).fit().params["x0"], rtol=1e-10)
    assert "z.L0" in fit.history_names_
    assert "z.L2" not in fit.history_names_


def test_units_of_measurement_do_not_matter():
    y, X = series(k=1)
    model = PartiallyLinear(make_pipeline(StandardScaler(), LinearRegression()), n_lags=2)
    fit, scaled = clone(model).fit(y, X), clone(model).fit(1e4 * y, 1e-3 * X)
    assert_allclose(scaled.params_, 1e7 * fit.params_, rtol=1e-8)
    assert_allclose(scaled.tvalues_, fit.tvalues_, rtol=1e-8)


def test_arrays_and_frames_give_the_same():
    y, X = series()
    model = PartiallyLinear(LinearRegression(), n_lags=2)
    frames, arrays = clone(model).fit(y, X), clone(model).fit(y.to_numpy(), X.to_numpy())
    assert_allclose(arrays.params_, frames.params_)
    assert list(arrays.params_.index) == ["x1", "x2"]


def test_the_page():
    y, X = series()
    page = PartiallyLinear(LinearRegression(), n_lags=2).fit(y, X).summary().as_text()
    for text in ("Partially Linear Regression Results", "x0", "EWC", "[0.025", "No. Observations"):
        assert text in page
    assert max(map(len, page.splitlines())) <= 78


def changed(frame, row, value):
    frame = frame.copy()
    frame.iloc[row] = value
    return frame


y0, X0 = series(120)
REFUSED = {
    "NaN in y": ((changed(y0, 7, np.nan), X0), {}, ValueError, "1980-08-01"),
    "infinite X": ((y0, changed(X0, 3, np.inf)), {}, ValueError, "1980-04-01"),
    "constant": ((y0, X0.assign(x1=1.0)), {}, ValueError, r"constant are \['x1'\]"),
    "collinear": ((y0, X0.assign(s=X0.sum(axis=1))), {}, ValueError, r"\['s'\] are linear"),
    "predicted": ((y0, X0["x0"].shift(1, fill_value=0.0).rename("lagged"), X0["x0"]), {},
                  ValueError, r"predicts \['lagged'\]"),
    "few rows": ((y0[:25], X0[:25]), {}, ValueError, r"at least \d+ rows are needed"),
    "other rows": ((y0, X0[:-1]), {}, ValueError, "must have the rows of y"),
    "unsorted": ((y0[::-1], X0[::-1]), {}, ValueError, "must increase"),
    "strings": ((y0, X0.assign(x0="a")), {}, TypeError, "must be of numbers"),
    "one name twice": ((y0, X0, X0), {}, ValueError, "distinct names"),
    "two outcomes": ((X0, y0), {}, ValueError, "one column"),
    "empty": ((y0[:0], X0[:0]), {}, ValueError, "rows and columns"),
    "no lags": ((y0, X0), {"n_lags": 0}, ValueError, "n_lags"),
    "negative gap": ((y0, X0), {"gap": -1}, ValueError, "gap"),
    "gap too large": ((y0, X0), {"gap": 60}, ValueError, "rows are needed"),
    "cov_type": ((y0, X0), {"cov_type": "HC9"}, ValueError, "cov_type"),
    "bandwidth": ((y0, X0), {"bandwidth": 500}, ValueError, "bandwidth must be below"),
    "model": ((y0, X0), {"model": "lasso"}, TypeError, "model must be"),
    "default within the sample": ((y0, X0), {"model": None, "n_folds": 1}, ValueError, "n_folds=1"),
    "contemporaneous": ((y0, X0), {"contemporaneous": True}, ValueError, "controls=None"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_estimated_is_refused_by_name(case):
    data, arguments, error, text = REFUSED[case]
    model = PartiallyLinear(**{"model": LinearRegression(), "n_lags": 2, **arguments})
    with pytest.raises(error, match=text):
        model.fit(*data)
    assert not hasattr(model, "params_")


def test_degrees_of_freedom_of_a_linear_nuisance_are_its_number_of_regressors():
    rng = np.random.default_rng(0)
    y, x = rng.normal(size=(2, 600))
    fit = PartiallyLinear(LinearRegression(), n_lags=30, gap=0).fit(y, x)
    n, k = fit.nobs_, 61
    # A block is predicted from four fifths of the rows, by which the error is a little larger.
    assert_allclose(fit.inflation_["x"] ** 2, n / (n - k), rtol=0.05)


def test_intervals_of_another_covariance_come_from_the_same_fit():
    y, X = series(k=1)
    fit = PartiallyLinear(LinearRegression(), n_lags=2).fit(y, X)
    other = PartiallyLinear(LinearRegression(), n_lags=2, cov_type="HC").fit(y, X)
    assert_allclose(fit.conf_int(cov_type="HC"), other.conf_int())
    assert_allclose(fit.cov_params("HC"), other.cov_params())
