"""Intervals cover as often as they say, and are those of a direct computation."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.signal import lfilter

from tsrnn.contract import (
    MOST_ERRORS,
    OWN_ERRORS,
    Calibration,
    IntervalWarning,
    check_levels,
    effective_number,
    level_name,
)
from tsrnn.forecasters._intervals import growth_beyond


def panel_of(n_series, rows, seed, phi=0.6):
    """Return a long frame of AR(1) series, each of its own scale and level."""
    draw = np.random.default_rng(seed)
    noise = draw.normal(size=(rows + 100, n_series))
    paths = lfilter([1], [1, -phi], noise, axis=0)[100:]
    paths = paths * np.exp(draw.normal(size=n_series)) + 10 * draw.normal(size=n_series)
    return pd.DataFrame({
        "unique_id": np.repeat(np.arange(n_series), rows),
        "ds": np.tile(np.arange(rows), n_series),
        "y": paths.T.ravel(),
    })  # fmt: skip


def coverage(model, future, level, h):
    """Return the share of values inside, by step, over many origins."""
    forecast = model.predict_rolling(future, h=h, step_size=3, level=[level])
    name = "ParaRNN"
    both = forecast.merge(future, on=["unique_id", "ds"])
    inside = both["y"].between(both[f"{name}-lo-{level}"], both[f"{name}-hi-{level}"])
    return inside.to_numpy().reshape(-1, h).mean(0)


@pytest.fixture(scope="module", params=["conformal", "gaussian"])
def model(request, small):
    frame = panel_of(40, 200, seed=0)
    past = frame[frame["ds"] < 140]
    settings = {"horizon": 4, "input_size": 16, "val_size": 40, "freq": 1}
    return small(**settings, intervals=request.param).fit(past), frame[frame["ds"] >= 140]


@pytest.fixture(scope="module")
def errors():
    errors = np.random.default_rng(0).normal(size=(3, 150, 4, 2))
    for step in range(4):
        errors[:, 150 - step :, step] = np.nan
    return errors


class TestCoverage:
    H = 4

    # Over seeds the coverage of a step has a standard deviation of 0.015 at 80 and 0.01 at 95.
    @pytest.mark.parametrize(("level", "band"), [(80, 0.05), (95, 0.035)])
    def test_is_near_its_level(self, model, level, band):
        covered = coverage(*model, level, self.H)
        np.testing.assert_allclose(covered, level / 100, atol=band)
        assert covered.mean() == pytest.approx(level / 100, abs=0.7 * band)

    def test_of_one_series_by_its_own_errors(self, small):
        frame = panel_of(1, 3000, seed=3)
        model = small(horizon=self.H, freq=1, val_size=500).fit(frame[frame["ds"] < 1800])
        covered = coverage(model, frame[frame["ds"] >= 1800], 80, self.H)
        np.testing.assert_allclose(covered, 0.8, atol=0.06)

    def test_widths_follow_the_local_spread(self, small):
        draw = np.random.default_rng(4)
        calm, wild = draw.normal(size=(2, 400))
        model = small(freq=1).fit(pd.Series(np.concatenate([calm, 10 * wild]) + 100.0))

        def width(values):
            forecast = model.predict(pd.Series(values + 100.0), level=80)
            return (forecast.iloc[:, 2] - forecast.iloc[:, 1]).to_numpy()

        assert (width(10 * wild) > 5 * width(calm)).all()


class TestHalfWidths:
    @pytest.mark.parametrize("level", [10, 50, 80, 90, 95, 97])
    def test_conformal_is_an_order_statistic(self, errors, level):
        halves = Calibration(errors, "conformal").half_widths(level, np.array([2, 0]))
        assert halves.shape == (2, 4, 2)
        for i, unit in enumerate((2, 0)):
            for step in range(4):
                for target in range(2):
                    sizes = np.sort(np.abs(errors[unit, : 150 - step, step, target]))
                    m = effective_number(len(sizes), step + 1)
                    rank = int(np.ceil(len(sizes) * level / 100 * (m + 1) / m - 1e-9))
                    expected = sizes[rank - 1]
                    assert halves[i, step, target] == pytest.approx(expected, rel=1e-12)

    def test_of_the_first_step_it_is_that_of_exchangeable_errors(self, errors):
        halves = Calibration(errors, "conformal").half_widths(90, np.array([1]))[0, 0, 0]
        sizes = np.sort(np.abs(errors[1, :, 0, 0]))
        assert halves == sizes[int(np.ceil(0.9 * 151)) - 1]

    @pytest.mark.parametrize("level", [50, 80, 95])
    def test_gaussian_is_a_quantile_times_the_size(self, errors, level):
        halves = Calibration(errors, "gaussian").half_widths(level, np.array([1]))
        rms = np.sqrt(np.nanmean(errors[1] ** 2, axis=0))
        expected = stats.norm.ppf(0.5 + level / 200) * rms
        np.testing.assert_allclose(halves[0], expected, rtol=1e-12)

    @pytest.mark.parametrize("method", ["conformal", "gaussian"])
    def test_new_series_have_those_of_all(self, errors, method):
        halves = Calibration(errors, method).half_widths(80, np.array([-1, 1]))
        pooled = Calibration(errors.reshape(1, -1, 4, 2), method).half_widths(80, np.array([0]))
        np.testing.assert_array_equal(halves[0], pooled[0])
        assert not np.array_equal(halves[1], pooled[0])

    @pytest.mark.parametrize("method", ["conformal", "gaussian"])
    def test_are_nested(self, errors, method):
        calibration = Calibration(errors, method)
        widths = [calibration.half_widths(level, np.arange(3)) for level in range(5, 99, 6)]
        assert (np.diff(widths, axis=0) >= 0).all()

    @pytest.mark.parametrize(("n", "level"), [(19, 95), (4, 80), (99, 99)])
    def test_fewest_errors_of_a_level(self, n, level):
        errors = np.arange(1.0, n + 1)[None, :, None, None]
        halves = Calibration(errors, "conformal").half_widths(level, np.array([0]))
        assert halves.item() == n
        with pytest.warns(IntervalWarning, match=f"level {level} are guaranteed for 0 of 1 steps"):
            wider = Calibration(errors[:, 1:], "conformal").half_widths(level, np.array([0]))
        assert wider.item() >= n


class TestFewErrors:
    """Later steps have fewer errors: step k of 30 origins has 31 - k, which count as fewer."""

    @pytest.fixture
    def few(self):
        errors = np.random.default_rng(1).normal(size=(1, 30, 20, 1)) * np.arange(1, 21)[:, None]
        for step in range(20):
            errors[:, 30 - step :, step] = np.nan
        return Calibration(errors, "conformal")

    def test_tails_are_those_of_student_s_t(self, few):
        with pytest.warns(IntervalWarning, match="level 80 are guaranteed for 6 of 20 steps"):
            widths = few.half_widths(80, np.array([0]))[0, :, 0]
        sizes = np.abs(few.errors[0, :, :, 0])
        rms = np.sqrt(np.nanmean(sizes**2, axis=0))
        tails = np.maximum(stats.t.ppf(0.9, 30) * rms, np.nanmax(sizes, 0))
        expected = np.maximum.accumulate(np.r_[widths[5], tails[6:]])[1:]
        np.testing.assert_allclose(widths[6:], expected)
        order = np.sort(sizes[:30, 0])
        assert widths[0] == order[int(np.ceil(31 * 0.8)) - 1]

    @pytest.mark.parametrize("method", ["conformal", "rolling"])
    @pytest.mark.filterwarnings("ignore::tsrnn.contract.IntervalWarning")
    def test_widths_grow_with_the_level(self, few, method):
        calibration = Calibration(few.errors, method)
        widths = [calibration.half_widths(p, np.array([0])) for p in np.arange(5, 99.9, 0.5)]
        assert np.isfinite(widths).all()
        assert (np.diff(widths, axis=0) >= 0).all()

    @pytest.mark.filterwarnings("ignore::tsrnn.contract.IntervalWarning")
    def test_steps_without_guarantee_are_no_narrower_than_the_step_before(self, few):
        widths = few.half_widths(99, np.array([0]))[0, :, 0]
        assert (np.diff(widths) >= 0).all()

    def test_steps_with_enough_do_not_warn(self, few, recwarn):
        few.half_widths(50, np.array([0]))
        assert [str(w.message) for w in recwarn] == []

    @pytest.mark.filterwarnings("ignore::tsrnn.contract.IntervalWarning")
    def test_steps_without_errors_grow_as_a_random_walk(self, few):
        errors = few.errors.copy()
        errors[:, :, 10:] = np.nan
        widths = Calibration(errors, "conformal").half_widths(80, np.array([0]))[0, :, 0]
        rms = np.sqrt(np.nanmean(errors[0, :, 9, 0] ** 2))
        expected = stats.t.ppf(0.9, 30) * rms * np.sqrt(np.arange(11, 21) / 10)
        np.testing.assert_allclose(widths[10:], np.maximum(expected, widths[9]))

    def test_no_error_at_all_is_an_error(self):
        none = Calibration(np.full((1, 3, 2, 1), np.nan), "conformal")
        with pytest.raises(ValueError, match="gives no forecast error"):
            none.half_widths(80, np.array([0]))


class TestPooling:
    def errors(self, units, rows):
        return np.random.default_rng(0).normal(size=(units, rows, 2, 1))

    def test_few_errors_are_pooled(self):
        errors = self.errors(3, OWN_ERRORS - 1)
        pooled = Calibration.of(errors, "conformal").errors
        assert pooled.shape == (1, 3 * (OWN_ERRORS - 1), 2, 1)
        assert sorted(pooled.ravel()) == sorted(errors.ravel())

    def test_many_stay_with_their_series(self):
        errors = self.errors(3, OWN_ERRORS)
        np.testing.assert_array_equal(Calibration.of(errors, "conformal").errors, errors)

    def test_one_series_keeps_its_few(self):
        errors = self.errors(1, 5)
        np.testing.assert_array_equal(Calibration.of(errors, "conformal").errors, errors)

    @pytest.mark.parametrize(("units", "rows"), [(3000, 20), (1, 70_000), (2, 50_000)])
    def test_very_many_are_thinned_evenly(self, units, rows):
        errors = self.errors(units, rows)
        kept = Calibration.of(errors, "conformal").errors
        per_unit = kept.shape[0] * kept.shape[1] / (1 if len(kept) == 1 else units)
        assert MOST_ERRORS / 2 <= per_unit <= MOST_ERRORS
        assert np.abs(kept).mean() == pytest.approx(np.abs(errors).mean(), rel=0.02)


@pytest.mark.parametrize("intervals", ["conformal", "gaussian"])
def test_a_constant_target_beside_another(small, wave, intervals):
    """It has intervals of no width; the other's are as without it."""
    both = pd.DataFrame({"y": np.asarray(wave, dtype=float).ravel(), "k": 3.0}, index=wave.index)
    model = small(multivariate="joint", intervals=intervals).fit(both)
    found = model.predict(2, level=80)
    assert (found[["k", "k-lo-80", "k-hi-80"]] == 3).all(axis=None)
    assert (found["y-lo-80"] < found["y-hi-80"]).all()
    errors = model.calibration_.errors
    alone = Calibration(errors[..., :1], intervals).half_widths(80, np.array([0]))
    np.testing.assert_array_equal(model.calibration_.half_widths(80, np.array([0]))[..., :1], alone)
    assert np.isfinite(model.sample_paths(3)["y"]).all()


def test_another_wide_series_has_the_widths_of_all_targets(small):
    """As one with a new id has in a long frame."""
    draw = np.random.default_rng(0)
    values = np.cumsum(draw.normal(size=(600, 2)) * [1, 5], axis=0)
    times = pd.RangeIndex(600, name="ds")
    wide = pd.DataFrame(values[:500], columns=["y", "z"], index=times[:500])
    other = pd.DataFrame(draw.normal(size=(50, 2)), columns=["y", "z"], index=times[550:])
    settings = {"horizon": 4, "val_size": 150, "freq": 1}
    by_wide = small(**settings).fit(wide)
    by_long = small(**settings, target=["y", "z"]).fit(wide.reset_index().assign(unique_id="a"))
    new = other.reset_index().assign(unique_id="b")
    expected = by_long.predict(new, level=80)
    found = by_wide.predict(other, level=80)
    for name in ("y", "z"):
        widths = [frame[f"{name}-hi-80"] - frame[f"{name}-lo-80"] for frame in (found, expected)]
        np.testing.assert_allclose(*widths)
    assert len(by_wide.calibration_.errors) == 2  # each target has widths of its own


class TestBeyondTheHorizon:
    def test_widens_and_says_so(self, small, wave):
        model = small().fit(wave)
        with pytest.warns(UserWarning, match="calibrated for 6 steps; beyond them") as caught:
            forecast = model.predict(18, level=[80])
        assert caught[0].filename == __file__
        width = (forecast["y-hi-80"] - forecast["y-lo-80"]).to_numpy()
        np.testing.assert_allclose(width[6:], width[5] * np.sqrt(np.arange(7, 19) / 6))
        inside = model.predict(6, level=[80])
        pd.testing.assert_frame_equal(forecast.iloc[:6], inside, check_freq=False)

    def test_point_forecasts_do_not_warn(self, small, wave, recwarn):
        small().fit(wave).predict(18)
        assert [str(w.message) for w in recwarn] == []

    def test_factors(self):
        np.testing.assert_array_equal(growth_beyond(5, 3), np.ones(3))
        np.testing.assert_array_equal(growth_beyond(5, 5), np.ones(5))


class TestLevels:
    @pytest.mark.parametrize(
        ("level", "expected"),
        [
            (None, []),
            (80, [80]),
            ([80, 95.5], [80, 95.5]),
            ((80,), [80]),
            (np.array([80, 90]), [80, 90]),
            (range(80, 82), [80, 81]),
            (np.float64(80), [80]),
        ],
    )
    def test_forms(self, level, expected):
        assert check_levels(level) == expected

    @pytest.mark.parametrize(
        ("level", "name"), [(80, "80"), (80.0, "80"), (99.5, "99.5"), (99.99999, "99.99999")]
    )
    def test_names(self, level, name):
        assert level_name(level) == name


class TestTooFewErrorsAtLateSteps:
    def test_a_short_monthly_series_gets_its_intervals(self, small):
        index = pd.date_range("2000", periods=60, freq="MS")
        values = np.random.default_rng(0).normal(size=60).cumsum()
        model = small(horizon=18, freq=None).fit(pd.Series(values, index, name="y"))
        with pytest.warns(UserWarning, match="carry no guarantee") as caught:
            forecast = model.predict(level=[80, 95])
        assert caught[0].filename == __file__
        widths = [forecast[f"y-hi-{n}"] - forecast[f"y-lo-{n}"] for n in (80, 95)]
        assert (widths[1] >= widths[0]).all()
