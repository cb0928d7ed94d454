"""Missing returns in models of conditional correlation: rows with one bring no news of Q."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tsrnn import CCC, DCC, GARCH, load

RHO = np.array([[1, 0.5, 0.3], [0.5, 1, 0.2], [0.3, 0.2, 1]])
A, B, BEFORE = 0.05, 0.9, 1.1


def draws(n, series, share, corrected=False):
    """Returns (series, n, 3) of the model, and the same with missing values and missing rows."""
    rng = np.random.default_rng(0)
    q, h, y = np.tile(RHO, (series, 1, 1)), np.ones((series, 3)), np.empty((series, n, 3))
    for t in range(-200, n):
        root = np.sqrt(np.diagonal(q, axis1=1, axis2=2))
        factor = np.linalg.cholesky(q / (root[:, :, None] * root[:, None]))
        z = (factor @ rng.standard_normal((series, 3, 1)))[..., 0]
        e = np.sqrt(h) * z
        y[:, max(t, 0)] = 0.05 + e
        u = z * root if corrected else z
        q = (1 - A - B) * RHO + A * u[:, :, None] * u[:, None] + B * q
        h = 0.05 + 0.08 * e**2 + 0.87 * h
    gone = (rng.random(y.shape) < share) | (rng.random((series, n, 1)) < share / 2)
    return y, np.where(gone, np.nan, y)


def parameters():
    """Parameters of a DCC by name."""
    values = {}
    for name in ("y1", "y2", "y3"):
        values |= {f"intercept.{name}": 0.05, f"omega.{name}": 0.05}
        values |= {f"alpha[1].{name}": 0.08, f"beta[1].{name}": 0.87}
    for i, j in ((0, 1), (0, 2), (1, 2)):
        values[f"rho.y{i + 1}.y{j + 1}"] = RHO[i, j]
    return values | {"a[1]": A, "b[1]": B}


def loop(y, corrected):
    """Log-likelihood of rows (T, 3), covariances, and Q after the last row."""
    n = y.shape[1]
    h = np.full(n, 0.05 + 0.95 * BEFORE)
    q, total, covariances = RHO.copy(), 0.0, []
    for row in y:
        root = np.sqrt(np.diag(q))
        correlation = q / np.outer(root, root)
        covariance = correlation * np.sqrt(np.outer(h, h))
        covariances.append(covariance)
        e, seen = row - 0.05, np.isfinite(row)
        if seen.any():
            part = covariance[np.ix_(seen, seen)]
            total += stats.multivariate_normal(cov=part).logpdf(e[seen])
        u = e / np.sqrt(h) * (root if corrected else 1.0)
        outer = np.outer(u, u) if seen.all() else q
        q = (1 - A - B) * RHO + A * outer + B * q
        h = 0.05 + 0.08 * np.where(seen, e**2, h) + 0.87 * h
    return total, np.array(covariances), q


@pytest.fixture(scope="module")
def data():
    return [pd.DataFrame(y[0], columns=["y1", "y2", "y3"]) for y in draws(250, 1, 0.1)]


@pytest.mark.parametrize("corrected", [False, True])
def test_against_a_loop(data, corrected):
    y, params = data[1].copy(), parameters()
    y.iloc[0] = 0.1
    given = [params[name] for name in DCC(corrected=corrected).fit(data[0]).params_.columns]
    model = DCC(corrected=corrected, initial_variance=BEFORE).filter(y, given)
    total, covariances, _ = loop(y.to_numpy(), corrected)
    np.testing.assert_allclose(model.loglik_.iloc[0], total, rtol=1e-11)
    ours = model.covariances()["covariance"].to_numpy().reshape(len(y), -1)
    rows, columns = np.triu_indices(3)
    np.testing.assert_allclose(ours, covariances[:, rows, columns], rtol=1e-9)
    assert model.nobs_.iloc[0] == y.notna().any(axis=1).sum()
    # Rows one by one lead to the same state.
    updated = DCC(corrected=corrected, initial_variance=BEFORE).filter(y[:100], given)
    for start, end in ((100, 101), (101, 180), (180, 250)):
        updated.update(y[start:end])
    pd.testing.assert_frame_equal(
        updated.predict_covariances(3), model.predict_covariances(3), rtol=1e-10
    )
    later = updated.update(pd.DataFrame(np.nan, range(250, 252), y.columns))
    ahead = model.predict_covariances(4)["covariance"].to_numpy()[-12:]
    np.testing.assert_allclose(later.predict_covariances(2)["covariance"], ahead, rtol=1e-10)


@pytest.mark.parametrize(
    "maker", [CCC, DCC, lambda: DCC(corrected=True)], ids=["CCC", "DCC", "cDCC"]
)
def test_missing_rows_at_the_ends(data, maker):
    """Before the first row they change nothing; after the last they are further steps."""
    y = data[0]
    padded = y.reindex(range(-20, 253))
    plain, longer = maker().fit(y), maker().fit(padded)
    np.testing.assert_allclose(longer.params_, plain.params_, rtol=1e-6)
    np.testing.assert_allclose(longer.loglik_, plain.loglik_, rtol=1e-10)
    np.testing.assert_allclose(longer.bse_, plain.bse_, rtol=1e-4)
    ahead = plain.predict_covariances(5)["covariance"].to_numpy()[-12:]
    np.testing.assert_allclose(longer.predict_covariances(2)["covariance"], ahead, rtol=1e-6)


def test_variances_are_those_of_garch(data):
    y = data[1]
    model = DCC().fit(y)
    for name in y.columns:
        alone = GARCH().fit(y[name])
        ours = model.params_[f"alpha[1].{name}"].iloc[0]
        np.testing.assert_allclose(ours, alone.params_["alpha[1]"].iloc[0], rtol=1e-8)
    residuals = model.residuals(standardized=True)
    np.testing.assert_array_equal(residuals.isna(), y.isna())


@pytest.mark.few("False")
@pytest.mark.parametrize("corrected", [False, True])
def test_estimates_and_errors_of_many_draws(corrected):
    """Without a tenth of the values estimates are near those of all; errors are their spread."""
    fits = []
    for values in draws(1500, 40, 0.05, corrected):
        frame = pd.DataFrame(values.reshape(-1, 3), columns=["y1", "y2", "y3"])
        frame.insert(0, "unique_id", np.repeat(np.arange(40), 1500))
        frame.insert(1, "ds", np.tile(np.arange(1500), 40))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fits.append(DCC(corrected=corrected, target=["y1", "y2", "y3"]).fit(frame))
    whole, gaps = fits
    names = [name for name in whole.params_.columns if name[:3] in ("rho", "a[1", "b[1")]
    spread = gaps.params_[names].std()
    moved = (gaps.params_[names].mean() - whole.params_[names].mean()) / spread
    assert moved.abs().max() < 0.4
    assert (gaps.bse_[names].median() / spread).between(0.6, 1.6).all()


def test_the_file_and_what_is_refused(data, tmp_path):
    y = data[1]
    model = DCC(horizon=2).fit(y)
    model.save(tmp_path / "model")
    pd.testing.assert_frame_equal(
        load(tmp_path / "model").predict(level=80), model.predict(level=80)
    )
    assert np.isfinite(model.constant_correlation_test()["statistic"]).all()
    with pytest.raises(ValueError, match=r"missing='keep' needs mean='constant' or 'zero'"):
        DCC(mean="var", missing="keep").fit(y)
