"""Parameters on the boundary: no standard error, no t-value, no interval, in any model."""

import numpy as np
import pandas as pd
import pytest

from tsrnn.linear import CCC, DCC, GARCH, VARMA, VECMGARCH

ONE = {"n_starts": 1, "random_state": 0}


def frame_of(values):
    return pd.DataFrame(values, columns=["gold", "stocks", "bonds"][: values.shape[1]])


def alternating():
    """Neighbours of large squares are small ones: no effect of shocks has a positive sign."""
    y = np.random.default_rng(3).uniform(-1, 1, (400, 2))
    return frame_of(y * (1 + 0.3 * (np.arange(400) % 2)[:, None]))


def clustered(seed=0, alpha=0.1, beta=0.8):
    """GARCH(1, 1), so that further lags are of no use."""
    rng, e, h = np.random.default_rng(seed), np.zeros((500, 2)), np.ones(2)
    for t in range(500):
        e[t] = np.sqrt(h) * rng.standard_normal(2)
        h = 0.1 + alpha * e[t] ** 2 + beta * h
    return frame_of(e)


def singular_constant():
    """BEKK of three series with C[3,3] = 0."""
    rng, e, H = np.random.default_rng(1), np.zeros((600, 3)), np.eye(3)
    C = np.array([[0.2, 0, 0], [0.1, 0.15, 0], [0.05, 0.05, 0]])
    for t in range(600):
        e[t] = np.linalg.cholesky(H) @ rng.standard_normal(3)
        shock = 0.3 * e[t] * [1, 0.8, 0.7]
        decay = np.array([0.93, 0.95, 0.96])
        H = C @ C.T + np.outer(shock, shock) + decay[:, None] * H * decay
    return frame_of(e)


def overdifferenced():
    return frame_of(np.diff(np.random.default_rng(5).standard_normal((300, 2)), axis=0))


# Model, data, and parameters of the last unit that end on the boundary or follow from it.
CASES = {
    "GARCH": (GARCH(), alternating, ["omega", "alpha[1]", "beta[1]"]),
    "GARCH of two lags": (GARCH(order=(2, 2)), clustered, ["alpha[2]"]),
    "GJR": (GARCH((2, 1), vol="gjr"), lambda: clustered(1), ["gamma[2]"]),
    "Student's t": (
        GARCH(distribution="t"), alternating, ["omega", "alpha[1]", "beta[1]", "nu"],
    ),
    "persistence of one": (GARCH(), lambda: clustered(0, 0.3, 0.75), ["beta[1]"]),
    "BEKK": (VECMGARCH(mean="zero", **ONE), singular_constant, ["C[3,3]"]),
    "scalar": (VECMGARCH(structure="scalar", **ONE), alternating, ["theta1", "phi1"]),
    "scalar of two lags": (
        VECMGARCH((2, 2), structure="scalar", **ONE), clustered, ["theta2"],
    ),
    "diagonal": (
        VECMGARCH((2, 1), structure="diagonal", **ONE), clustered,
        ["theta2[1,1]", "theta2[2,1]", "theta2[2,2]"],
    ),
    "CCC": (CCC(order=(2, 1)), clustered, ["alpha[2].gold", "alpha[2].stocks"]),
    "DCC": (DCC(order=(2, 2)), lambda: clustered(4), ["a[2]", "b[1]"]),
    "VARMA": (
        VARMA(order=(0, 1)), overdifferenced,
        [f"L1.e({a}).{b}" for b in ("gold", "stocks") for a in ("gold", "stocks")],
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=CASES)
def case(request):
    model, data, names = CASES[request.param]
    return model.fit(data()), names


@pytest.mark.few(
    "GARCH",
    "GARCH of two lags",
    "GJR",
    "Student's t",
    "persistence of one",
    "BEKK",
    "scalar",
    "CCC",
    "VARMA",
)
def test_nothing_is_told_of_parameters_on_the_boundary(case):
    model, names = case
    estimates, covariances = model.estimates_, ["robust", "hessian"]
    held = estimates.fixed | (estimates.params == 0)
    assert [estimates.names[i] for i in np.flatnonzero(held[-1])] == names
    for frame in (model.bse_, model.tvalues_, model.pvalues_):
        assert np.isnan(frame.to_numpy()[held]).all()
    if not isinstance(model, CCC | DCC):
        covariances.append("opg")
    for kind in covariances:
        ends = model.conf_int(cov_type=kind).to_numpy().reshape(*held.shape, 2)
        assert np.isnan(ends[held]).all()
        unit = model.units_[-1]
        cov = model.cov_params(unit, cov_type=kind).to_numpy()
        assert np.isnan(cov[held[-1]]).all()
        assert np.isfinite(cov[np.ix_(~held[-1], ~held[-1])]).all()
        table = model.summary(unit, cov_type=kind).params.drop(columns="coef")
        assert table.loc[names].isna().all(axis=None)
        assert table.drop(index=names).notna().all(axis=None)
    said = " ".join(model.messages_.iloc[-1])
    assert any(word in said for word in ("bound", "zero", "imposed", "edge of invertibility"))


def test_others_have_the_errors_of_the_model_with_these_held(case):
    model, _ = case
    estimates = model.estimates_.select(np.array([len(model.units_) - 1]))
    free, hessian = ~estimates.fixed[0], estimates.hessian[0]
    if isinstance(model, VECMGARCH) and model.structure == "diagonal":
        pytest.skip("errors along the face are tested beside the structures")
    cov = model.cov_params(model.units_[-1], cov_type="hessian").to_numpy()
    expected = np.linalg.inv(-hessian[np.ix_(free, free)])
    np.testing.assert_allclose(cov[np.ix_(free, free)], expected, rtol=1e-6, atol=1e-12)


def test_a_singular_constant_has_whole_columns_at_zero():
    """C C' of rank two of three, its second pivot zero: the second column is, not only C[2,2]."""
    from tsrnn.linear._mean import Mean
    from tsrnn.linear.vech._inference import canonical, fixed
    from tsrnn.linear.vech._specification import Specification
    from tsrnn.linear.vech._structure import pairs

    spec = Specification("bekk", 1, 1, False, Mean("zero"), tuple("abc"), False, 1)
    C = np.array([[0.3, 0, 0], [0.1, 1e-9, 0], [0.05, -0.2, 0.1]])
    params = np.concatenate([C[np.tril_indices(3)], np.eye(3).ravel() / 4, np.eye(3).ravel() / 2])
    found = canonical(spec, params)
    factor = np.zeros((3, 3))
    factor[np.tril_indices(3)] = found[: len(pairs(3)[0])]
    np.testing.assert_allclose(factor @ factor.T, C @ C.T, atol=1e-9)
    assert not factor[:, 1].any()
    held = [spec.names[i] for i in np.flatnonzero(fixed(spec, found))]
    assert held == ["C[2,2]", "C[3,2]"]


def test_a_singular_constant_of_coefficients():
    """A b of rank one has errors along the b of rank one: its determinant has none."""
    rng, e, H = np.random.default_rng(0), np.zeros((600, 2)), np.eye(2)
    c, shock, decay = np.array([0.3, 0.2]), np.array([0.35, 0.25]), np.array([0.85, 0.95])
    for t in range(600):
        e[t] = np.linalg.cholesky(H) @ rng.standard_normal(2)
        H = np.outer(c, c) + np.outer(shock * e[t], shock * e[t]) + decay[:, None] * H * decay
    model = VECMGARCH(structure="diagonal", mean="zero", **ONE).fit(frame_of(e))
    (told,) = model.messages_.iloc[0]
    assert "constant b is on the boundary" in told
    assert "rank 1 of 2" in told
    b, cov = model.params_.iloc[0, :3].to_numpy(), model.cov_params().to_numpy()
    slope = np.array([b[2], -2 * b[1], b[0]])
    assert abs(slope @ cov[:3, :3] @ slope) < 1e-12 * slope @ slope * np.trace(cov[:3, :3])
    assert np.linalg.matrix_rank(cov / np.sqrt(np.outer(*2 * [np.diagonal(cov)])), 1e-8) == 8


def test_the_limit_of_stationarity_holds_the_dynamics():
    model = VECMGARCH(structure="scalar", stationary=True, mean="zero", n_starts=3, random_state=0)
    with pytest.warns(UserWarning, match="not maximised to tolerance"):
        model.fit(clustered(0, 0.3, 0.75))
    told = model.bse_.iloc[0].notna()
    assert list(told.index[~told]) == ["theta1", "phi1"]
    assert any("limit of stationarity" in said for said in model.messages_.iloc[0])
