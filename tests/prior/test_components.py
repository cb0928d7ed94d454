"""Components of the prior: shapes, seeds, and the moments that their docstrings say."""

import numpy as np
import pytest
from statsmodels.tsa.arima_process import ArmaProcess
from statsmodels.tsa.exponential_smoothing.ets import ETSModel

from tsrnn import prior
from tsrnn.prior import COMPONENTS, compose, draw_poles, hyperprior, innovations, season_shapes
from tsrnn.prior._linear import ets_paths

CALLS = {name: component for name, (component, _) in COMPONENTS.items()}
COUNTED = ("counts", "intermittent")


def rng(seed=0):
    return np.random.default_rng(seed)


def finite(values):
    return values[np.isfinite(values).all(1)]


def autocorrelation(x, lag):
    """Autocorrelations of mean-zero columns of x (T, N), pooled."""
    return (x[lag:] * x[:-lag]).sum() / (x * x).sum() * len(x) / (len(x) - lag)


@pytest.mark.parametrize("season_length", [1, 2, 4, 7, 12, 24, 52, 365])
@pytest.mark.parametrize("n_rows", [2, 8, 100])
@pytest.mark.parametrize("name", CALLS)
def test_a_component_gives_series_most_of_which_are_positive(name, n_rows, season_length):
    values = CALLS[name](rng(), 40, n_rows, season_length)
    assert (values.shape, values.dtype) == ((40, n_rows), np.float64)
    kept = finite(values)
    # Counts of few rows are often constant, which is drawn again.
    assert len(kept) >= (4 if name in COUNTED else 24)
    assert (kept >= 0).all()
    assert name in COUNTED or (kept > 0).all()


@pytest.mark.parametrize("name", CALLS)
def test_the_same_generator_gives_the_same_series(name):
    first, second = (CALLS[name](rng(3), 30, 40, 12) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, CALLS[name](rng(4), 30, 40, 12), equal_nan=True)


@pytest.mark.parametrize("name", COUNTED)
def test_counts_are_whole_and_not_constant(name):
    values = finite(CALLS[name](rng(), 300, 36, 12))
    assert (values % 1 == 0).all()
    assert (np.ptp(values, axis=1) > 0).all()


def test_intermittent_series_are_mostly_zero():
    assert 0.4 < (finite(CALLS["intermittent"](rng(), 500, 60, 1)) == 0).mean() < 0.9


def test_poles_are_drawn_inside_the_circle_and_near_to_it():
    phi = draw_poles(rng(), 400, 0.95)
    moduli = np.array([np.abs(np.roots([1, *-column])).max() for column in phi.T])
    assert moduli.max() < 0.95
    assert (moduli > 0.8).mean() > 0.2
    assert (moduli < 1e-6).mean() == pytest.approx(0.4 * 0.85 * 0.75, abs=0.07)


def test_a_pole_alone_is_the_first_coefficient():
    phi = draw_poles(rng(), 2000)
    alone = phi[:, (phi[1:] == 0).all(0) & (phi[0] != 0)]
    assert alone.shape[1] > 200
    assert (alone[0] < 0).mean() == pytest.approx(0.25, abs=0.1)


@pytest.mark.parametrize(
    ("ar", "ma"), [([0.8], []), ([1.2, -0.7], []), ([0.5], [0.6]), ([], [-0.7])]
)
def test_arma_paths_have_the_autocorrelations_of_the_process(ar, ma):
    n_series = 300
    coefficients = [np.array(c)[:, None] * np.ones(n_series) for c in (ar, ma)]
    paths = prior.arma_paths(*coefficients, rng().standard_normal((600, n_series)))[200:]
    process = ArmaProcess(np.r_[1, -np.array(ar)], np.r_[1, np.array(ma)])
    expected = process.acf(6)
    for lag in range(1, 6):
        assert autocorrelation(paths, lag) == pytest.approx(expected[lag], abs=0.03)
    assert paths.var() == pytest.approx(process.acovf(1)[0], rel=0.05)


@pytest.mark.parametrize("error", ["add", "mul"])
@pytest.mark.parametrize("season", ["none", "add", "mul"])
@pytest.mark.parametrize(
    ("trend", "damped"), [("none", False), ("add", False), ("add", True), ("mul", False)]
)
def test_ets_paths_have_the_errors_that_statsmodels_finds(error, trend, damped, season):
    m, n_rows = 4, 40
    noise = 1e-4 * rng(2).standard_normal((n_rows, 1)) * (1 if error == "mul" else 10)
    alpha, beta, gamma, phi = 0.5, 0.2 * (trend != "none"), 0.2 * (season != "none"), 0.9**damped
    growth = {"none": 0, "add": 0.1, "mul": 1.01}[trend]
    pattern = {"none": np.zeros(m), "add": [1, -2, 0.5, 0.5], "mul": [1.2, 0.7, 1.0, 1.1]}[season]
    states = np.r_[10.0, growth, pattern][:, None]
    parameters = np.array([[alpha], [beta], [gamma], [phi]])
    path = ets_paths(noise, states, parameters, error, trend, season)[:, 0]
    model = ETSModel(
        path,
        error,
        trend=None if trend == "none" else trend,
        damped_trend=damped,
        seasonal=None if season == "none" else season,
        seasonal_periods=m if season != "none" else None,
        initialization_method="known",
        initial_level=10.0,
        initial_trend=growth if trend != "none" else None,
        initial_seasonal=np.array(pattern) if season != "none" else None,
    )
    names = {"smoothing_level": alpha, "smoothing_trend": beta, "smoothing_seasonal": gamma}
    values = names | {"damping_trend": phi}
    smoothed = model.smooth([values[name] for name in model.param_names if name in values])
    expected = path - smoothed.fittedvalues
    expected = expected / smoothed.fittedvalues if error == "mul" else expected
    # statsmodels smooths multiplicative seasons by the equation of Holt and Winters, which is that
    # of Hyndman et al. up to squares of errors.
    atol = 1e-6 if season == "mul" else 1e-10
    np.testing.assert_allclose(noise[:, 0], expected, rtol=0, atol=atol)


def test_ets_paths_with_large_errors_are_those_of_the_equations():
    noise, pattern = 0.3 * rng(1).standard_normal(30), np.array([1.2, 0.7, 1.1])
    alpha, beta, gamma, phi = 0.4, 0.1, 0.3, 0.95
    level, growth, season, expected = 5.0, 0.1, pattern.copy(), []
    for t, e in enumerate(noise):
        ahead, s = level + phi * growth, season[t % 3]
        expected.append(ahead * s + e)
        level, growth = ahead + alpha * e / s, phi * growth + beta * e / s
        season[t % 3] = s + gamma * e / ahead
    states = np.r_[5.0, 0.1, pattern][:, None]
    parameters = np.array([[alpha], [beta], [gamma], [phi]])
    path = ets_paths(noise[:, None], states, parameters, "add", "add", "mul")
    np.testing.assert_allclose(path[:, 0], expected)


def test_innovations_are_white_with_heavy_tails_and_clusters():
    noise = innovations(rng(), 3000, 200)
    assert noise.mean() == pytest.approx(0, abs=0.01)
    assert noise.var() == pytest.approx(1, abs=0.05)
    assert autocorrelation(noise, 1) == pytest.approx(0, abs=0.01)
    kurtosis = (noise**4).mean(0) / noise.var(0) ** 2
    assert (kurtosis > 4).mean() == pytest.approx(0.2, abs=0.1)
    assert np.median(kurtosis) == pytest.approx(3, abs=0.2)


def test_volatility_clusters():
    changes = np.diff(np.log(finite(CALLS["volatility"](rng(), 2000, 200, 1)))).T
    changes = changes - changes.mean(0)
    squares = changes**2 / (changes**2).mean(0) - 1
    assert autocorrelation(squares, 1) > 0.05


@pytest.mark.parametrize("kind", ["harmonics", "peak", "dip", "free", "block"])
@pytest.mark.parametrize("season_length", [2, 4, 12, 52])
def test_seasons_have_mean_zero_and_mean_square_one(kind, season_length):
    shapes = season_shapes(rng(), 200, season_length, (kind,))
    assert shapes.shape == (season_length, 200)
    np.testing.assert_allclose(shapes.mean(0), 0, atol=1e-10)
    square = (shapes**2).mean(0)
    flat = square < 1e-6  # harmonics that fall on their zeros
    assert flat.mean() < 0.1
    np.testing.assert_allclose(square[~flat], 1)


def test_peaks_are_above_and_dips_below():
    peak, dip = (season_shapes(rng(), 100, 24, (kind,)) for kind in ("peak", "dip"))
    assert ((peak**3).mean(0) > 0).all()
    assert ((dip**3).mean(0) < 0).all()


def test_a_path_alone_is_composed_to_sums_and_products():
    path = np.linspace(0, 0.5, 30)[:, None] * np.ones(200)
    series = compose(rng(), path, 12, seasonal=0, noisy=0)
    sums, products = (np.isclose(series, form(path.T)).all(1) for form in (np.exp, lambda x: 1 + x))
    assert (sums ^ products).all()
    assert 0.3 < sums.mean() < 0.7


def test_a_path_below_zero_is_an_exponential():
    path = np.linspace(0, -2, 30)[:, None] * np.ones(20)
    np.testing.assert_allclose(compose(rng(), path, 1, noisy=0), np.exp(path.T))


def test_explosive_paths_are_not_finite():
    path = np.linspace(0, 1, 30)[:, None] * np.array([0.1, 3.0, 30.0])
    kept = np.isfinite(compose(rng(), path, 1, noisy=0)).all(1)
    assert kept.tolist() == [True, True, False]


def test_seasons_of_a_composition_repeat():
    series = compose(rng(), np.zeros((120, 500)), 12, seasonal=1, noisy=0)
    logs = np.log(finite(series)).T
    logs -= logs.mean(0)
    assert autocorrelation(logs, 12) > 0.6
    assert autocorrelation(logs, 12) > autocorrelation(logs, 6)


def test_days_have_weeks_around_them():
    series = compose(rng(), np.zeros((24 * 28, 200)), 24, seasonal=1, noisy=0)
    logs = np.log(finite(series)).T
    logs -= logs.mean(0)
    assert autocorrelation(logs, 168) > autocorrelation(logs, 24) + 0.05
    assert autocorrelation(logs, 24) > autocorrelation(logs, 12) + 0.2


def test_years_grow_and_hours_have_larger_seasons_than_quarters():
    assert (
        hyperprior(1).growth > hyperprior(4).growth > hyperprior(12).growth > hyperprior(24).growth
    )
    assert hyperprior(24).amplitude > hyperprior(12).amplitude > hyperprior(4).amplitude
    assert hyperprior(3) == hyperprior(4)
    assert hyperprior(30) == hyperprior(24)


def test_regimes_have_two_levels():
    values = finite(CALLS["markov_switching"](rng(1), 2000, 200, 1))
    changes = np.abs(np.diff(np.log(values)))
    # Jumps between levels stand far outside what a Gaussian of the usual change gives.
    assert (changes.max(1) > 6 * np.median(changes, axis=1)).mean() > 0.2


def test_a_cycle_has_its_period():
    values = finite(CALLS["cycles"](rng(), 500, 200, 1))
    t = np.arange(200)
    residuals = np.log(values) - np.array(
        [np.polyval(np.polyfit(t, y, 2), t) for y in np.log(values)]
    )
    spectrum = np.abs(np.fft.rfft(residuals))[:, 1:] ** 2
    share = spectrum.max(1) / spectrum.sum(1)
    assert np.median(share) > 0.15  # white noise has less than 0.08
