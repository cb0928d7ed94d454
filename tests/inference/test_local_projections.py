"""LocalProjections against ordinary least squares, known responses and known bands."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.linear_model import LinearRegression

from tsrnn.inference import LocalProjections

mpl.use("Agg")


def autoregression(n=300, seed=0, matrix=((0.5, 0.2), (-0.2, 0.6))):
    """Two series of a VAR(1) that a shock x enters with loadings (1, 0.5)."""
    rng, matrix = np.random.default_rng(seed), np.array(matrix)
    x, y = rng.normal(size=n), np.zeros((n, 2))
    for t in range(1, n):
        y[t] = matrix @ y[t - 1] + np.array([1.0, 0.5]) * x[t] + 0.5 * rng.normal(size=2)
    index = pd.period_range("1950Q1", periods=n, freq="Q")
    return pd.DataFrame(y, index, ["gdp", "prices"]), pd.Series(x, index, name="shock")


def true_responses(horizons, matrix=((0.5, 0.2), (-0.2, 0.6))):
    return np.array(
        [np.linalg.matrix_power(np.array(matrix), h) @ [1, 0.5] for h in range(horizons + 1)]
    )


def single_regression(y, x, h, n_lags):
    """Least squares of the response h rows ahead on x, a constant and the lags."""
    frame = pd.concat([y, x], axis=1)
    lags = [frame.shift(j).add_suffix(f".L{j}") for j in range(1, n_lags + 1)]
    exog = sm.add_constant(pd.concat([x, *lags], axis=1))
    sample = slice(n_lags, len(x) - h)
    return [
        sm.OLS(y[name].shift(-h).iloc[sample], exog.iloc[sample]).fit() for name in y
    ]  # fmt: skip


@pytest.mark.parametrize("cov_type", ["HC", "HAC"])
def test_ols_is_a_regression_for_each_horizon(cov_type):
    y, x = autoregression()
    fit = LocalProjections(
        "ols", horizons=4, n_lags=2, cov_type=cov_type, bandwidth=3
    ).fit(y, x)  # fmt: skip
    table = fit.irf_.set_index(["response", "horizon"])
    for h in range(5):
        for name, ols in zip(y, single_regression(y, x, h, 2), strict=True):
            kwds = {"maxlags": 3, "use_correction": True} if cov_type == "HAC" else {}
            robust = ols.get_robustcov_results(
                "HAC" if cov_type == "HAC" else "HC1", use_t=cov_type == "HC", **kwds
            )
            j, row = ols.model.exog_names.index("shock"), table.loc[(name, h)]
            assert_allclose(row["estimate"], ols.params["shock"], rtol=1e-10)
            assert_allclose(row["se"], robust.bse[j], rtol=1e-10)
            assert_allclose(row[["lower", "upper"]], robust.conf_int()[j], rtol=1e-8)
            assert fit.nobs_[h] == ols.nobs


def test_a_linear_nuisance_within_the_sample_is_ols():
    y, x = autoregression()
    ols = LocalProjections("ols", horizons=3, n_lags=2).fit(y, x)
    nuisance = LocalProjections(LinearRegression(), horizons=3, n_lags=2, n_folds=1).fit(y, x)
    pd.testing.assert_frame_equal(ols.irf_, nuisance.irf_)


@pytest.mark.parametrize("model", ["ols", LinearRegression()])
def test_responses_of_a_vector_autoregression(model):
    y, x = autoregression(n=4000)
    fit = LocalProjections(model, horizons=6, n_lags=2).fit(y, x)
    irf = fit.irf_.pivot(index="horizon", columns="response", values="estimate")[list(y)]
    assert_allclose(irf, true_responses(6), atol=0.06)
    se = fit.irf_["se"]
    assert ((irf.to_numpy().T.ravel() - true_responses(6).T.ravel()) / se).abs().max() < 4


def test_simultaneous_bands_lie_between_pointwise_and_bonferroni():
    y, x = autoregression()
    fit = LocalProjections("ols", horizons=8, n_lags=2, random_state=0).fit(y, x)
    df = fit.nobs_.min() - 2 - 2 * 3
    bonferroni = stats.t.ppf(1 - 0.025 / 9, df)
    assert ((fit.sup_t_ > 1.97) & (fit.sup_t_ < bonferroni + 0.02)).all()
    inside = fit.irf_["lower_simultaneous"] <= fit.irf_["lower"]
    assert inside.all()


@pytest.mark.parametrize("cov_type", ["HC", "EWC", "HAC", "fixed-b"])
def test_sup_t_of_one_horizon_is_the_pointwise_value(cov_type):
    y, x = autoregression()
    fit = LocalProjections("ols", horizons=0, n_lags=2, cov_type=cov_type).fit(y, x)
    row = fit.irf_.iloc[0]
    pointwise = (row["upper"] - row["estimate"]) / row["se"]
    assert_allclose(fit.sup_t_.iloc[0], pointwise, rtol=0.03)


@pytest.mark.slow
def test_the_correction_takes_bias_off():
    bias = {False: [], True: []}
    for seed in range(100):
        y, x = autoregression(n=80, seed=seed, matrix=((0.95, 0), (0, 0.95)))
        for correct in bias:
            model = LocalProjections("ols", horizons=6, n_lags=2, bias_correction=correct)
            irf = model.fit(y["gdp"], x).irf_["estimate"].to_numpy()
            bias[correct].append(irf - 0.95 ** np.arange(7))
    plain, corrected = (np.mean(bias[c], axis=0)[3:] for c in (False, True))
    assert (plain < -0.03).all()
    assert (np.abs(corrected) < 0.7 * np.abs(plain)).all()


def test_page_and_picture():
    y, x = autoregression()
    fit = LocalProjections("ols", horizons=3, n_lags=2).fit(y, x)
    page = fit.summary().as_text()
    for text in ("Local Projections", "gdp", "prices", "sup-t lo", "shock"):
        assert text in page
    ax = fit.plot("prices", simultaneous=True)
    assert ax.get_xlabel() == "Horizon (periods)"
    assert "simultaneous" in ax.get_title(loc="left")
    with pytest.raises(ValueError, match="response must be one of"):
        fit.plot("wages")


y0, x0 = autoregression(120)
REFUSED = {
    "two shocks": ((x0.rename("y"), y0), {}, ValueError, "x must be one column"),
    "horizons": ((y0, x0), {"horizons": -1}, ValueError, "horizons"),
    "fractional": ((y0, x0), {"horizons": 2.5}, TypeError, "horizons"),
    "far horizons": ((y0, x0), {"horizons": 110}, ValueError, "horizon of 110"),
    "word": ((y0, x0), {"model": "var"}, ValueError, "'ols'"),
    "alpha": ((y0, x0), {"alpha": 0}, ValueError, "alpha"),
    "correction": ((y0, x0), {"model": LinearRegression(), "bias_correction": True}, ValueError,
                   "bias_correction"),
    "missing": ((y0.mask(y0 > 2), x0), {}, ValueError, "missing or infinite"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_estimated_is_refused_by_name(case):
    data, arguments, error, text = REFUSED[case]
    with pytest.raises(error, match=text):
        LocalProjections(**{"model": "ols", "n_lags": 2, **arguments}).fit(*data)
