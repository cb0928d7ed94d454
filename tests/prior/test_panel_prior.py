"""Prior of a panel's coefficients by static columns, as the posterior of the hierarchical model."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag

from tsrnn.prior import PanelPrior, Product, fit_effects
from tsrnn.prior._panel_prior import by_static, standardise, static_scaling
from tsrnn.prior._regression import Moments, log_evidence, posterior

close = np.testing.assert_allclose
UNITS, ROWS = 6, 9


def hierarchy(seed=0):
    """Design (U, T, p), targets (U, T), static column (U,) and noise variances (U,)."""
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(UNITS, ROWS, 2)), rng.normal(size=UNITS)
    z = (z - z.mean()) / z.std()
    variance = rng.uniform(0.5, 2.0, UNITS)
    slopes = [1.0, -2.0] + z[:, None] * [1.5, 0.0] + 0.5 * rng.normal(size=(UNITS, 2))
    y = np.einsum("utp,up->ut", x, slopes) + np.sqrt(variance)[:, None] * rng.normal(size=(6, 9))
    return x, y, z, variance


def white_moments(x, y, variance):
    """Moments of units whose noise is white, with given variances."""
    return Moments(
        (np.einsum("utp,utq->upq", x, x) / variance[:, None, None])[:, None],
        (np.einsum("utp,ut->up", x, y) / variance[:, None])[:, None, None],
        ((y**2).sum(1) / variance)[:, None, None],
        np.zeros((len(y), 1, 1)),
        np.full(len(y), float(ROWS)),
    )


@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0, np.inf])
def test_centre_and_coefficients_are_those_of_the_joint_posterior(spread):
    x, y, z, variance = hierarchy()
    units = white_moments(x, y, variance)
    common = by_static(units, z[:, None], np.full((1, 2), spread))
    regressors = np.concatenate([np.concatenate([part, part * value], 1)
                                 for part, value in zip(x, z, strict=True)])  # fmt: skip
    noise = np.diag(variance.repeat(ROWS))
    information = units.unit_information[:, 0]
    strengths = spread * information.mean(0) / information  # of the prior that units share
    apart = np.diag(1 / (strengths * information).ravel())  # of infinite strengths 0
    own = block_diag(*x)
    errors = noise + own @ apart @ own.T

    scores, expected = [], []
    for strength in (
        [1, 1, np.inf, np.inf],
        [1, 1, 10, np.inf],
        [1, 1, 10, 100],
        [1, 1, np.inf, 1],
    ):
        strength = np.array(strength, float)
        kept = np.isfinite(strength)
        precision = (strength * common.unit_information[0, 0])[kept]
        part = regressors[:, kept]
        joint = errors + part @ np.diag(1 / precision) @ part.T
        left = y.ravel() @ np.linalg.solve(joint, y.ravel())
        expected.append(-np.linalg.slogdet(joint)[1] / 2 - UNITS * ROWS / 2 * np.log(left))
        scores.append(log_evidence(common, strength).item())
        mean = part.T @ np.linalg.solve(joint, y.ravel()) / precision
        result = posterior(common, strength)
        close(result.coefficient[0, kept], mean, rtol=1e-8)
        inverse = np.linalg.inv(part.T @ np.linalg.solve(errors, part) + np.diag(precision))
        close(result.covariance[0][np.ix_(kept, kept)], inverse * left / (UNITS * ROWS), rtol=1e-8)
        if np.isfinite(spread):
            products = [Product(0, number) for number in range(2) if kept[2 + number]]
            panel = PanelPrior(
                np.ones(2, int), tuple(products), np.zeros(1), np.ones(1),
                result.coefficient[0, kept], result.covariance[0][np.ix_(kept, kept)], np.zeros(2),
            )  # fmt: skip
            centres = panel.centres(z[:, None])
            around = [
                posterior(white_moments(*(part[i : i + 1] for part in (x, y, variance)))
                          .around(centres[i : i + 1]), strengths[i]).coefficient[0]
                for i in range(UNITS)
            ]  # fmt: skip
            of_own = apart @ own.T @ np.linalg.solve(joint, y.ravel())
            close(centres + around, centres + of_own.reshape(UNITS, 2), rtol=1e-8)
            deviations = panel.multipliers(z[:, None])
            close(np.einsum("utp,upk->utk", x, deviations).reshape(-1, kept.sum()), part)
    close(np.diff(scores), np.diff(expected), rtol=1e-8)


def series(rng, n_series, n_rows, static, slope=0.0):
    """Targets and columns whose first coefficient is 2 and `slope` times the first static one."""
    columns = [(rng.random((n_rows, 2)) < 0.2).astype(float) for _ in range(n_series)]
    effects = 2 + slope * static[:, 0] + 0.3 * rng.normal(size=n_series)
    values = [
        20 + (effect * x[:, 0] - x[:, 1])[:, None] + rng.normal(size=(n_rows, 1))
        for effect, x in zip(effects, columns, strict=True)
    ]
    return values, columns


def fit(values, columns, static):
    phases = [np.zeros((len(rows), 3)) for rows in values]
    return fit_effects(values, columns, phases, ["x", "w"], [True] * 2, 1, static=static)


def panel_alike(scale, rng, n_series=25, n_rows=50):
    """Targets and columns, equal but for small deviations on a scale, with unequal changes."""
    columns = [(rng.random((n_rows, 2)) < 0.2).astype(float) for _ in range(n_series)]
    sizes = np.exp(rng.normal(0, 0.7, n_series))
    units = {"changes": sizes, "units": np.ones(n_series), "logarithms": 0.2 * np.ones(n_series)}
    values = []
    for x, size, unit in zip(columns, sizes, units[scale], strict=True):
        effect = x @ ([2, -1] + 0.3 * rng.normal(size=2)) * unit
        noise = rng.normal(size=n_rows)
        level = 30 * np.exp(rng.normal(0, 0.5)) + 20 * size
        logs = rng.normal(5, 0.7) + 0.1 * noise + effect
        values.append(np.exp(logs) if scale == "logarithms" else level + size * noise + effect)
    return [rows[:, None] for rows in values], columns


@pytest.mark.few("units")
@pytest.mark.parametrize("scale", ["changes", "units", "logarithms"])
def test_series_are_found_alike_on_the_right_scale(scale):
    chosen = [fit(*panel_alike(scale, np.random.default_rng(seed)), None) for seed in range(5)]
    assert [effects.alike for effects in chosen] == [scale] * 5


def test_each_term_has_its_own_strength_of_shrinkage():
    rng = np.random.default_rng(0)
    columns = [(rng.random((60, 2)) < 0.2).astype(float) for _ in range(40)]
    effects = np.column_stack([rng.normal(2, 0.8, 40), np.full(40, 2.0)])
    sizes = np.exp(rng.normal(0, 0.7, 40))
    values = [
        size * (30 + x @ effect + rng.normal(size=60))[:, None]
        for x, effect, size in zip(columns, effects, sizes, strict=True)
    ]
    fitted = fit(values, columns, None)
    changes = np.array([np.abs(np.diff(y[:, 0])).mean() for y in values])
    assert fitted.alike == "changes"
    alike = fitted.slopes() / changes[:, None]
    np.testing.assert_allclose(alike[:, 1], alike[0, 1])
    assert np.corrcoef(alike[:, 0], sizes * effects[:, 0] / changes)[0, 1] > 0.75


@pytest.mark.slow
def test_static_columns_that_say_nothing_change_nothing():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        static = rng.normal(size=(30, 3))
        data = series(rng, 30, 40, static)
        with_static, without = fit(*data, static), fit(*data, None)
        assert with_static.panel is None
        np.testing.assert_array_equal(with_static.coefficient, without.coefficient)
        np.testing.assert_array_equal(with_static.covariance, without.covariance)


def test_the_right_product_is_found_among_several():
    rng = np.random.default_rng(0)
    static = rng.normal(5, 2, size=(60, 3))
    effects = fit(*series(rng, 60, 40, static, slope=0.8), static)
    assert effects.panel.products == (Product(0, 0),)


def test_fewer_rows_lie_nearer_to_what_static_columns_say():
    rng = np.random.default_rng(1)
    static = np.arange(40.0)[:, None] % 2
    values, columns = series(rng, 40, 60, static, slope=4.0)
    short = (
        [rows[:8] for rows in values[:2]] + values[2:],
        [x[:8] for x in columns[:2]] + columns[2:],
    )
    for number in range(2):
        # An outlier is no effect.
        short[0][number][short[1][number][:, 0] > 0] += 20 * (1 - 2 * number)
    effects = fit(*short, static)
    types = effects.slopes()[2:, 0].reshape(-1, 2).mean(0)
    assert effects.panel is not None
    assert types[1] - types[0] > 3


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(0, 15), st.integers(0, 2**31), st.data())
def test_static_columns_of_any_values_are_answered(n_series, n_static, seed, data):
    rng = np.random.default_rng(seed)
    odd = st.sampled_from([np.nan, 0.0, 1.0, -1e300, 1e300, 1e-300, 3.5])
    cells = data.draw(st.lists(odd, min_size=n_series * n_static, max_size=n_series * n_static))
    static = np.array(cells).reshape(n_series, n_static)
    values, columns = series(rng, n_series, 20, np.zeros((n_series, 1)))
    effects = fit(values, columns, static)
    assert np.isfinite(effects.coefficient).all()
    assert np.isfinite(effects.covariance).all()
    if effects.panel is not None:
        assert np.isfinite(effects.panel.centres(static)).all()


def test_scaling_of_static_columns_skips_what_is_missing():
    static = np.array([[1.0, np.nan, 7.0], [3.0, np.nan, 7.0], [np.nan, np.nan, 7.0]])
    location, scale = static_scaling(static)
    close(location, [2.0, 0.0, 7.0])
    close(scale, [1.0, 1.0, 1.0])
    close(standardise(static, location, scale), [[-1, 0, 0], [1, 0, 0], [0, 0, 0]])
