"""Regression with errors of fixed models: as generalised least squares, and laws of the effects."""

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline
from scipy.stats import multivariate_t

from tests.prior.test_structural import covariance
from tsrnn.prior import (
    LONGEST_LAG,
    SEASONS,
    TRENDS,
    ColumnMemory,
    Term,
    check_effects,
    fit_effects,
    widths_of,
)
from tsrnn.prior._effects import interpolated
from tsrnn.prior._regression import (
    FIRST_ROWS,
    PERSISTENCE,
    autoregressive_moments,
    averaged,
    likeliest,
    log_evidence,
    posterior,
    shared,
    structural_moments,
)
from tsrnn.prior._terms import CYCLES, calendar_functions, decays_of, design, natural_spline

DEGREES, FIRST_SCALE = 1.0, 0.1
close = np.testing.assert_allclose
ROWS, SEASON = 26, 4


def sample(n_rows=ROWS, n_columns=2, seed=0):
    rng = np.random.default_rng(seed)
    columns = rng.standard_normal((n_rows, n_columns)).cumsum(0)
    noise = rng.standard_normal(n_rows).cumsum()
    return 50 + columns @ np.linspace(-2, 3, n_columns) + noise, columns


def moments_of(target, columns, season_length=SEASON):
    return structural_moments([target[None]], [columns.T], np.zeros((1, 1)), season_length)


def whitened(rows, trend, season):
    """Innovations (T, L) over their standard deviation, by a factor of the covariance, and logs."""
    factor = np.linalg.cholesky(covariance(trend, season, SEASON, len(rows)))
    scaled = np.linalg.solve(factor, rows - rows[0])[FIRST_ROWS:]
    return scaled, np.log(np.diag(factor)[FIRST_ROWS:]).sum()


@pytest.mark.parametrize("number", range(0, len(TRENDS) * len(SEASONS), 7))
def test_evidence_and_coefficients_are_those_of_generalised_least_squares(number):
    trend, season = TRENDS[number // len(SEASONS)], SEASONS[number % len(SEASONS)]
    target, columns = sample()
    moments = moments_of(target, columns).models(np.array([number]))
    rows, logs = whitened(np.column_stack([target, columns]), trend, season)
    y, x = rows[:, 0], rows[:, 1:]
    close(moments.information[0, 0], x.T @ x, rtol=1e-8)

    strength = np.array([0.5, 3.0])
    degrees = len(y) + DEGREES
    information = np.diag(x.T @ x) / degrees
    known = DEGREES * (FIRST_SCALE * np.abs(np.diff(target)).mean()) ** 2
    # Coefficients and noise integrated out: a Student distribution of the innovations.
    spread = np.eye(len(y)) + x @ np.diag(1 / (strength * information)) @ x.T
    density = multivariate_t.logpdf(y, shape=spread * known / DEGREES, df=DEGREES) - logs
    nothing = multivariate_t.logpdf(y, shape=np.eye(len(y)) * known / DEGREES, df=DEGREES) - logs
    ratio = log_evidence(moments, strength) - log_evidence(moments, np.full(2, np.inf))
    close(ratio.item(), density - nothing, rtol=1e-8)

    result = posterior(moments, np.full(2, 1e-9))
    reference = sm.OLS(y, x).fit()
    close(result.coefficient[0], reference.params, rtol=1e-6)
    close(result.used, 2.0, rtol=1e-6)
    scale = (reference.ssr + known) / degrees
    close(result.covariance[0], scale * reference.normalized_cov_params, rtol=1e-6)


def test_a_column_left_out_is_one_that_is_not_there():
    target, columns = sample(n_columns=3)
    strength = np.array([1.0, np.inf, 2.0])
    whole, part = moments_of(target, columns), moments_of(target, columns[:, [0, 2]])
    close(log_evidence(whole, strength), log_evidence(part, strength[[0, 2]]))
    kept = posterior(whole, strength)
    assert kept.coefficient[0, 1] == 0
    close(kept.coefficient[0, [0, 2]], posterior(part, strength[[0, 2]]).coefficient[0])


def test_moments_around_coefficients_are_those_of_what_they_leave():
    target, columns = sample()
    given = np.array([0.7, -1.1])
    around = moments_of(target, columns).around(given[None])
    left = moments_of(target - columns @ given, columns)
    close(around.products, left.products, rtol=1e-6, atol=1e-6)
    # What counts as seen before the first row is that of the target as it is.
    assert np.abs(around.squares / left.squares - 1).max() < 0.05


@pytest.mark.parametrize("models", [[3], [0, 5, 88, 151, 152, 153, 154, 160], [*range(170, 5, -3)]])
def test_moments_under_chosen_models_are_those_among_all(models):
    target, columns = sample()
    given = [target[None]], [columns.T], np.zeros((1, 1)), SEASON
    chosen, every = structural_moments(*given, np.array(models)), structural_moments(*given)
    for name in ("information", "products", "squares", "constant"):
        ours, expected = getattr(chosen, name), getattr(every.models(np.array(models)), name)
        np.testing.assert_allclose(ours, expected, rtol=1e-12, err_msg=name)


def test_a_shorter_series_of_a_panel_is_itself_alone():
    target, columns = sample()
    panel = structural_moments(
        [target[None], target[None, :15]], [columns.T, columns.T[:, :15]], np.zeros((2, 1)), SEASON
    )
    alone = moments_of(target[:15], columns[:15])
    strength = np.ones(2)
    close(log_evidence(panel, strength)[1], log_evidence(alone, strength)[0])
    close(posterior(panel, strength).coefficient[1], posterior(alone, strength).coefficient[0])


@pytest.mark.parametrize("number", [0, 40, 88, 151])
def test_rows_without_target_or_column_do_not_count(number):
    target, columns = sample()
    target[[9, 10]] = columns[17, 1] = np.nan
    rows = np.setdiff1d(np.arange(ROWS), [9, 10, 17])
    trend, season = TRENDS[number // len(SEASONS)], SEASONS[number % len(SEASONS)]
    joint = covariance(trend, season, SEASON, ROWS)[np.ix_(rows, rows)]
    lanes = np.column_stack([target, columns])[rows]
    scaled = np.linalg.solve(np.linalg.cholesky(joint), lanes - lanes[0])[FIRST_ROWS:]
    moments = moments_of(target, columns)
    close(moments.information[0, number], scaled[:, 1:].T @ scaled[:, 1:], rtol=1e-6)
    close(moments.products[0, 0, number], scaled[:, 1:].T @ scaled[:, 0], rtol=1e-6, atol=1e-8)
    assert moments.degrees.item() == len(rows) - FIRST_ROWS + DEGREES


def test_autoregressions_skip_pairs_with_missing_rows():
    target, columns = sample(60)
    target[[7, 30, 31]] = np.nan
    moments = autoregressive_moments([target[None]], [columns.T], np.zeros((1, 1)))
    rows = np.column_stack([target, columns])
    rows = rows - np.nanmean(rows, 0)
    for number, rho in enumerate(PERSISTENCE):
        step = rows[1:] - rho * rows[:-1]
        step = step[np.isfinite(step).all(1)]
        cross = step.T @ step
        close(moments.information[0, number], cross[1:, 1:], rtol=1e-9)
        close(moments.products[0, 0, number], cross[0, 1:], rtol=1e-9)
    assert moments.degrees[0] == len(step) + DEGREES


def test_units_that_share_coefficients_are_likelier_as_one():
    rng = np.random.default_rng(0)
    columns = rng.standard_normal((12, 1, 40))
    for slopes, common in ((np.full(12, 2.0), True), (np.linspace(-4, 4, 12), False)):
        targets = 20 + slopes[:, None] * columns[:, 0] + rng.standard_normal((12, 40))
        moments = structural_moments(targets[:, None], columns, np.zeros((12, 1)), 1)
        strength = np.ones(1)
        together = shared(likeliest(moments, strength)[0])
        own = averaged(log_evidence(moments, strength)).sum()
        assert (log_evidence(together, strength).item() > own) == common
    flat = np.full(1, 1e-9)
    slope = posterior(shared(likeliest(moments, flat)[0]), flat).coefficient
    close(slope, 0.0, atol=0.5)


class TestTerms:
    def test_curves_are_natural_cubic_splines(self):
        knots = np.array([-2.0, -0.5, 0.1, 1.0, 3.0])
        at = np.linspace(-6, 6, 400)
        heights = np.array([1.0, -1.0, 0.5, 2.0, 0.0])
        spline = CubicSpline(knots, heights, bc_type="natural")
        slopes = spline(knots[[0, -1]], 1)
        beyond = np.where(at < knots[0], heights[0] + slopes[0] * (at - knots[0]), spline(at))
        beyond = np.where(at > knots[-1], heights[-1] + slopes[1] * (at - knots[-1]), beyond)
        basis = np.column_stack([np.ones_like(at), at, natural_spline(at, knots)])
        fitted = basis @ np.linalg.lstsq(basis, beyond, rcond=None)[0]
        close(fitted, beyond, atol=1e-10)

    @pytest.mark.parametrize("name", CYCLES)
    def test_a_cycle_has_its_period(self, name):
        hours = np.arange(24 * 14)
        phases = np.stack([hours / 24 % 1, hours // 24 / 7 % 1, hours / 8766 % 1], -1)
        functions = calendar_functions(CYCLES[name], phases)
        assert functions.shape == (len(hours), widths_of([Term(-1, cycle=name)])[0])
        if not CYCLES[name].year:
            close(functions[: 24 * 7], functions[24 * 7 :], atol=1e-12)
        if CYCLES[name].cells:
            assert (functions.sum(1) == 1).all()
            assert (functions.sum(0) > 0).all()

    @settings(max_examples=40, deadline=None)
    @given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**31))
    def test_rows_in_parts_are_rows_at_once(self, first, second, seed):
        rng = np.random.default_rng(seed)
        terms = [
            Term(0), Term(0, lag=2), Term(1, lag=LONGEST_LAG), Term(1, decay=0.6),
            Term(0, decay=0.9, knots=(0.0, 0.5, 1.0)), Term(1, knots=(0.2,), cycle="by hour"),
            Term(-1, cycle="weekday"),
        ]  # fmt: skip
        rows, phases = rng.standard_normal((first + second, 2)), rng.random((first + second, 3))
        before = ColumnMemory.before(rows[:1], len(decays_of(terms)))
        memory = before.recent[0], before.averages[0]
        whole, *end = design(terms, rows, phases, *memory)
        head, *middle = design(terms, rows[:first], phases[:first], *memory)
        tail, *last = design(terms, rows[first:], phases[first:], *middle)
        close(np.concatenate([head, tail]), whole, rtol=1e-10, atol=1e-12)
        for part, other in zip(last, end, strict=True):
            close(part, other, rtol=1e-10, atol=1e-12)

    def test_a_lag_is_the_row_before_and_an_average_sees_no_row_of_today(self):
        rows = np.arange(10.0)[:, None]
        memory = ColumnMemory.before(rows[:1], 1)
        terms = [Term(0, lag=3), Term(0, decay=0.5)]
        matrix = design(terms, rows, np.zeros((10, 3)), memory.recent[0], memory.averages[0])[0]
        assert matrix[:, 0].tolist() == [0, 0, 0, 0, 1, 2, 3, 4, 5, 6]
        assert matrix[:4, 1].tolist() == [0.0, 0.0, 0.5, 1.25]


def effects_of(target, columns, **options):
    k = columns.shape[1]
    arguments = {"known_ahead": [True] * k, "season_length": 1} | options
    return fit_effects(
        [target[:, None]], [columns], [np.zeros((len(target), 3))], list(range(k)), **arguments
    )


class TestEffects:
    def test_the_true_terms_are_found(self):
        rng = np.random.default_rng(1)
        columns = rng.standard_normal((150, 2))
        late = np.concatenate([columns[:2, 0], columns[:-2, 0]])
        noise = 0.3 * rng.standard_normal(150)
        for target, terms in (
            (3 * columns[:, 0] + noise, [Term(0)]),
            (2 * late + noise, [Term(0, lag=2)]),
        ):
            effects = effects_of(10 + target, columns)
            assert [term for term in terms if term not in effects.terms] == []
            place = effects.terms.index(terms[0])
            close(effects.slopes()[0, place], 3 if terms == [Term(0)] else 2, atol=0.12)
        curved = effects_of(10 + columns[:, 1] ** 2 + noise, columns)
        assert {term.column for term in curved.terms} == {1}
        assert any(term.knots for term in curved.terms)

    def test_noise_is_mostly_left_out(self):
        rng = np.random.default_rng(2)
        kept = [
            len(effects_of(rng.standard_normal(80).cumsum(), rng.standard_normal((80, 3))).terms)
            for _ in range(20)
        ]
        assert np.mean(kept) < 1.5

    @settings(max_examples=15, deadline=None)
    @given(st.floats(0.01, 1e4), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.integers(0, 10**6))
    def test_units_do_not_matter(self, size, offset, unit, seed):
        target, columns = sample(40, seed=seed % 50)
        target = target - target.min() - 1  # not positive: one scale
        plain = effects_of(target, columns)
        moved = effects_of(size * target, offset + unit * columns)
        assert moved.terms[:1] == plain.terms[:1]
        names = {(term.column, term.lag, term.decay) for term in plain.terms}
        assert {(term.column, term.lag, term.decay) for term in moved.terms} == names
        if len(plain.location) == len(moved.location):
            close(moved.coefficient, size * plain.coefficient, rtol=1e-4, atol=1e-6 * size)

    def test_factors_are_effects_on_logarithms(self):
        rng = np.random.default_rng(3)
        columns = (rng.random((120, 1)) < 0.3) * 1.0
        level = 5 + 0.05 * rng.standard_normal(120).cumsum()
        effects = effects_of(np.exp(level + 0.5 * columns[:, 0]), columns)
        assert effects.logarithms
        close(effects.slopes()[0, 0], 0.5, atol=0.03)

    @pytest.mark.parametrize(
        "columns",
        [
            np.ones((30, 2)),
            np.repeat(np.random.default_rng(0).standard_normal((30, 1)), 3, 1),
            np.random.default_rng(0).standard_normal((30, 45)),
            np.eye(30)[:, :2],
            1e12 * np.random.default_rng(0).standard_normal((30, 1)),
        ],
        ids=["constant", "collinear", "more columns than rows", "pulses", "large"],
    )
    def test_columns_that_least_squares_refuses(self, columns):
        target, _ = sample(30)
        effects = effects_of(target, columns)
        assert np.isfinite(effects.coefficient).all()
        shares = target - effects.without(target, np.zeros(30))
        assert np.isfinite(shares).all()
        assert (effects.widening >= 1).all()

    def test_panels_pool_and_keep_what_is_their_own(self):
        rng = np.random.default_rng(5)
        columns = [rng.standard_normal((25, 1)) for _ in range(30)]
        for spread in (0.0, 3.0):
            slopes = 2 + spread * rng.standard_normal(30)
            values = [
                (slope * rows[:, :1] + 3 * rng.standard_normal((25, 1)))
                for slope, rows in zip(slopes, columns, strict=True)
            ]
            panel = fit_effects(values, columns, [np.zeros((25, 3))] * 30, ["x"], [True], 1)
            error = np.sqrt(np.mean((panel.slopes()[:, 0] - slopes) ** 2))
            # Least squares of 25 rows has an error of .6 each. Units share effects in multiples of
            # their mean change, of which 25 rows tell a sixth less or more.
            assert error < (0.45 if spread == 0 else 0.75)

    def test_restored_is_the_inverse_of_without(self):
        target, columns = sample(50)
        effects = effects_of(np.exp(target / 20), columns)
        share = np.linspace(-1, 1, 50)
        close(effects.restored(effects.without(target, share), share), target)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ("smooth", TypeError, "effects must map columns"),
        ({"z": "linear"}, ValueError, "which are"),
        ({"x": "cubic"}, ValueError, "'cubic'"),
        ({"x": []}, ValueError, "effects must map"),
        ({"x": ["none", "linear"]}, ValueError, "effects must map"),
    ],
)
def test_wrong_effects_are_named(given, error, said):
    with pytest.raises(error, match=said):
        check_effects(given, ["x"], ["x"])
    assert check_effects({"x": "linear"}, ["x"], ["x"]) == {"x": ("linear",)}


def test_columns_are_interpolated_where_neighbours_predict_them():
    rng = np.random.default_rng(2)
    walk, noise = rng.standard_normal((2, 80))
    columns = np.column_stack([walk.cumsum(), noise])
    hidden = columns.copy()
    hidden[[0, 20, 21, 50]] = np.nan
    (filled,) = interpolated([hidden])
    expected = hidden[:, 0].copy()
    expected[[20, 21]] = np.interp([20, 21], [19, 22], hidden[[19, 22], 0])
    expected[50] = hidden[[49, 51], 0].mean()
    np.testing.assert_allclose(filled[:, 0], expected)
    np.testing.assert_array_equal(filled[:, 1], hidden[:, 1])
    y = 3 * columns[:, :1] + noise[:, None]
    effects = fit_effects([y], [hidden], [np.zeros((80, 3))], ["a", "b"], [True, True], 1)
    np.testing.assert_allclose(effects.slopes()[0, :2], [3, 1], atol=0.25)
