"""Conformal intervals of every forecaster: their quantile, their coverage, what they promise."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn import ARMA, ETS, ParaRNNForecaster
from tsrnn.baselines import Drift, Mean, Naive
from tsrnn.contract import (
    Calibration,
    Classical,
    DamagedFileError,
    IntervalWarning,
    conformal_quantile,
    effective_number,
)
from tsrnn.contract._conformal import calibration_rows, interval_scale, naive_errors
from tsrnn.data import read_panel
from tsrnn.evaluation import Combination, backtest

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
LEVELS = [50, 80, 95, 99.9]


def conformal(example):
    """Fit an example with conformal intervals."""
    return example.fit(example.make().set_params(intervals="conformal"))


# Networks have intervals of errors of their own.
@pytest.mark.where.with_args(lambda example: issubclass(example.cls, Classical))
class TestEveryForecaster:
    @pytest.mark.few
    def test_has_them(self, example, contract):
        model = conformal(example)
        found = model.predict(h=2, level=LEVELS, **example.ahead(2))
        names = [name for name in found if "-lo-" in str(name)]
        widths = [(found[n.replace("-lo-", "-hi-")] - found[n]).to_numpy() for n in names]
        targets = len(names) // len(LEVELS)
        for i in range(targets):
            each = [w for w, n in zip(widths, names, strict=True) if n in names[i::targets]]
            assert (np.diff(np.sort(each, axis=0), axis=0) >= 0).all()
        assert np.isfinite(found[names].to_numpy()).all()
        assert found.attrs["guarantee"] == model.interval_guarantee_
        assert "split conformal" in model.interval_guarantee_
        # around the forecasts of the model as it is
        plain = example.fit(example.make()).predict(h=2, **example.ahead(2))
        pd.testing.assert_frame_equal(found[list(plain)], plain)
        loaded = contract.loaded(model)
        assert loaded.interval_guarantee_ == model.interval_guarantee_
        after = loaded.predict(h=2, level=LEVELS, **example.ahead(2))
        tolerance = 1e-8 if example.arguments.get("random_state") == 0 else 0.2
        pd.testing.assert_frame_equal(after, found, rtol=tolerance)

    @pytest.mark.few
    def test_rolls_and_goes_on(self, example):
        model = conformal(example)
        rolled = model.predict_rolling(example.later, h=2, level=80)
        assert rolled.attrs["guarantee"] == model.interval_guarantee_
        before = model.interval_guarantee_
        assert example.goes_on(model).interval_guarantee_ == before
        ends = rolled[[name for name in rolled if "-80" in str(name)]]
        assert np.isfinite(ends.to_numpy()).all()


def test_the_scale_grows_by_whole_seasons():
    """Errors of the seasonal naive method are those of a random walk with a step a season."""
    nan, naive = np.full((1, 7, 1), np.nan), np.array([[2.0]])
    ends = {"-hi-80": nan, "-lo-80": nan}  # no widths: the scale is that of the naive method
    scale = interval_scale(ends, naive, 3, by_width=False)
    expected = 2 * np.sqrt([1, 1, 1, 2, 2, 2, 3])
    np.testing.assert_allclose(scale.ravel(), expected)


class TestEffectiveNumber:
    @pytest.mark.parametrize(("n", "k"), [(1, 1), (30, 1), (5, 9), (40, 6), (300, 12), (12, 12)])
    def test_is_that_of_the_variance_of_a_share(self, n, k):
        j = np.arange(1, min(n, k))
        inflation = 1 + 2 * np.sum((1 - j / n) * (1 - j / k))
        assert effective_number(n, k) == pytest.approx(n / inflation)

    def test_bounds_the_variance_of_the_distribution_function(self):
        rng, n, k = np.random.default_rng(0), 60, 6
        walks = rng.normal(size=(20_000, n + k)).cumsum(1)
        errors = np.abs(walks[:, k:] - walks[:, :-k]) / np.sqrt(k)
        share = (errors < 1.2816).mean(1)
        independent = 0.8 * 0.2 / share.var()
        assert effective_number(n, k) < independent < n

    @given(st.integers(1, 500), st.integers(1, 60))
    def test_grows_with_errors_and_falls_with_steps(self, n, k):
        m = effective_number(n, k)
        assert n / k - 1e-9 <= m <= n + 1e-9
        assert effective_number(n, k + 1) <= m + 1e-9
        assert m <= effective_number(n + 1, k) + 1e-9


class TestQuantile:
    @settings(max_examples=50, deadline=None)
    @given(
        st.lists(st.floats(0, 1e6), min_size=1, max_size=60), st.floats(1, 99.9), st.floats(0.05, 1)
    )
    def test_is_the_order_statistic_of_its_rank(self, sizes, level, share):
        n, m = len(sizes), max(share * len(sizes), 1e-3)
        found = conformal_quantile(np.array(sizes)[None], level, np.array([m])).item()
        rank = int(np.ceil(n * level / 100 * (1 + 1 / m) - 1e-9))
        if rank > n:
            assert np.isnan(found)
        else:
            assert found == sorted(sizes)[max(rank, 1) - 1]

    @pytest.mark.parametrize(("n", "level"), [(9, 80), (19, 95), (40, 90), (25, 50)])
    def test_covers_exchangeable_errors_of_any_distribution(self, n, level):
        draws = 20_000
        sizes = np.abs(np.random.default_rng(0).standard_cauchy((draws, n + 1)))
        q = conformal_quantile(sizes[:, :n], level, np.full(draws, float(n)))
        expected = np.ceil((n + 1) * level / 100 - 1e-9) / (n + 1)
        deviation = np.sqrt(expected * (1 - expected) / draws)
        assert np.mean(sizes[:, n] <= q) == pytest.approx(expected, abs=4 * deviation)

    @pytest.mark.parametrize(("n", "k"), [(60, 4), (120, 12)])
    def test_covers_overlapping_errors(self, n, k):
        """Errors of k steps of random walks, the coming one k rows after the last."""
        rng, draws = np.random.default_rng(1), 4000
        walks = rng.normal(size=(draws, n + 2 * k)).cumsum(1)
        errors = np.abs(walks[:, k:] - walks[:, :-k])
        m = np.full(draws, effective_number(n, k))
        q = conformal_quantile(errors[:, :n], 80, m)
        covered = np.mean(errors[:, n + k - 1] <= q)
        assert 0.8 - 0.025 < covered < 0.9
        assert covered > np.mean(errors[:, n + k - 1] <= np.quantile(errors[:, :n], 0.8, axis=1))


class TestCoverage:
    @pytest.mark.parametrize("model", [Naive, Mean, Drift])
    @pytest.mark.parametrize("level", [80, 95])
    def test_of_many_short_series_is_the_level(self, model, level):
        """Errors that are not normal, series of unequal scale; 2,000 values, error one percent."""
        rng, rows, h, n = np.random.default_rng(2), 24, 4, 2000
        noise = rng.standard_t(3, size=(n, rows + h)) * np.exp(rng.normal(size=n))[:, None]
        values = noise if model is Mean else noise.cumsum(1)
        frame = long_frame(values)
        past, future = frame[frame["ds"] < rows], values[:, rows:]
        forecaster = model(horizon=h, freq=1, intervals="conformal").fit(past)
        found = forecaster.predict(level=level)
        name = model.column_name
        low, high = (
            found[f"{name}-{end}-{level}"].to_numpy().reshape(n, h) for end in ("lo", "hi")
        )
        covered = ((low <= future) & (future <= high)).mean(0)
        np.testing.assert_allclose(covered, level / 100, atol=0.035)

    def test_of_a_model_that_is_wrong(self):
        """Intervals of an AR(1) fitted to random walks with jumps: the model's cover too little."""
        rng, rows, n, h = np.random.default_rng(3), 30, 400, 3
        jumps = rng.normal(size=(n, rows + h)) * np.where(rng.random((n, rows + h)) < 0.1, 8, 1)
        values = jumps.cumsum(1)
        frame = long_frame(values)
        past, future = frame[frame["ds"] < rows], values[:, rows:]
        shares = {}
        for intervals in ("model", "conformal"):
            model = ARMA(order=(1, 0), horizon=h, freq=1, intervals=intervals).fit(past)
            found = model.predict(level=80)
            low, high = (found[f"ARMA-{end}-80"].to_numpy().reshape(n, h) for end in ("lo", "hi"))
            shares[intervals] = ((low <= future) & (future <= high)).mean()
        assert shares["conformal"] == pytest.approx(0.8, abs=0.06)


def long_frame(values):
    n, rows = values.shape
    return pd.DataFrame({
        "unique_id": np.repeat(np.arange(n), rows),
        "ds": np.tile(np.arange(rows), n),
        "y": values.ravel(),
    })  # fmt: skip


class TestDirectComputation:
    def test_of_a_naive_forecast(self):
        rng, h, n = np.random.default_rng(4), 3, 60
        y = rng.normal(size=n).cumsum()
        model = Naive(horizon=h, freq=1, intervals="conformal").fit(pd.Series(y, name="y"))
        found = model.predict(level=80)
        c = n // 3
        before = y[: n - c]
        sigma = np.sqrt(np.mean(np.diff(before) ** 2))
        degrees = lambda rows: rows - 1  # noqa: E731
        from scipy import stats

        def half(past):
            rows = len(past)
            size = np.sqrt(np.mean(np.diff(past) ** 2))
            z = stats.t.ppf(0.9, degrees(rows)) / stats.norm.ppf(0.9)
            return size * z * np.sqrt(np.arange(1, h + 1))

        walk = np.sqrt(np.arange(1, h + 1))
        assert sigma > 0
        expected = []
        for k in range(h):
            sizes = []
            for origin in range(n - c, n):
                if origin + k < n:
                    own = half(y[:origin])[k]
                    naive = np.mean(np.abs(np.diff(before))) * walk[k]
                    scale = np.sqrt(max(own, 0.3 * naive) * naive)
                    sizes.append(abs(y[origin + k] - y[origin - 1]) / scale)
            m = effective_number(len(sizes), k + 1)
            rank = int(np.ceil(len(sizes) * 0.8 * (1 + 1 / m) - 1e-9))
            naive = np.mean(np.abs(np.diff(y))) * walk[k]
            expected.append(sorted(sizes)[rank - 1] * np.sqrt(max(half(y)[k], 0.3 * naive) * naive))
        np.testing.assert_allclose((found["y-hi-80"] - found["y-lo-80"]) / 2, expected)


class TestRows:
    def test_of_many_series_are_a_horizon(self):
        assert set(calibration_rows(np.full(500, 40), 6)) == {6}
        assert set(calibration_rows(np.full(3, 40), 6)) == {13}
        assert calibration_rows(np.array([5000]), 6).item() == 120
        assert calibration_rows(np.array([9, 3, 1]), 6).tolist() == [4, 1, 0]

    def test_own_errors_where_there_are_enough(self):
        values = np.random.default_rng(0).normal(size=(3, 900)) * [[1], [10], [100]]
        model = Mean(horizon=2, freq=1, intervals="conformal").fit(long_frame(values))
        assert len(model.fitted_.conformal.calibration.errors) == 3
        short = Mean(horizon=2, freq=1, intervals="conformal").fit(long_frame(values[:, :60]))
        assert len(short.fitted_.conformal.calibration.errors) == 1
        assert short.fitted_.conformal.calibration.n_pooled == 3

    def test_scale_has_a_floor_of_the_naive_error(self):
        forecasts = {"-hi-80": np.zeros((1, 2, 1)), "-lo-80": np.zeros((1, 2, 1))}
        scale = interval_scale(forecasts, np.array([[2.0]]), 1, by_width=False)
        np.testing.assert_allclose(scale[0, :, 0], 2 * np.sqrt(0.3) * np.sqrt([1, 2]))

    def test_naive_errors_leave_missing_values_out(self):
        panel = read_panel(pd.Series([1.0, 2, np.nan, 5, 6], name="y"), missing="keep")
        assert naive_errors(panel, 1).item() == 1


class TestFewRows:
    def test_a_level_beyond_the_errors_warns_and_is_given(self):
        y = pd.Series(np.random.default_rng(0).normal(size=20).cumsum(), name="y")
        model = ETS(horizon=4, freq=1, seasonal="none", intervals="conformal").fit(y)
        with pytest.warns(IntervalWarning, match="level 95 are guaranteed for 0 of 4 steps"):
            wide = model.predict(level=95)
        assert np.isfinite(wide.to_numpy()).all()
        assert "count as" in model.interval_guarantee_

    def test_without_an_error_the_model_s_are_given(self):
        model = Naive(horizon=2, freq=1, intervals="conformal").fit(pd.Series([1.0, 3]))
        plain = Naive(horizon=2, freq=1).fit(pd.Series([1.0, 3])).predict(level=80)
        with pytest.warns(IntervalWarning, match="too few rows for a single forecast error"):
            found = model.predict(level=80)
        pd.testing.assert_frame_equal(found, plain)
        assert model.interval_guarantee_.startswith("None")

    def test_a_short_series_of_a_panel_takes_the_errors_of_all(self):
        values = np.random.default_rng(0).normal(size=(5, 30)).cumsum(1)
        frame = long_frame(values)
        frame = frame[(frame["unique_id"] < 4) | (frame["ds"] < 3)]
        found = Naive(horizon=2, freq=1, intervals="conformal").fit(frame).predict(level=80)
        assert (found["Naive-hi-80"] > found["Naive-lo-80"]).all()


class TestElsewhere:
    y = pd.Series(
        np.random.default_rng(5).normal(size=60).cumsum(),
        pd.date_range("2020-01-01", periods=60, freq="MS"),
        name="y",
    )

    def test_in_a_backtest(self):
        model = ARMA(order=(1, 0), horizon=2, intervals="conformal")
        result = backtest(model, self.y, h=2, n_windows=3, level=[80])
        assert np.isfinite(result.filter(like="-80").to_numpy()).all()

    def test_of_a_combination_and_of_its_members(self):
        members = [Naive(intervals="conformal"), Drift()]
        own = Combination(members, horizon=3).fit(self.y).predict(level=80)
        all_ = Combination(members, horizon=3, intervals="conformal").fit(self.y)
        plain = Combination([Naive(), Drift()], horizon=3).fit(self.y).predict(level=80)
        found = all_.predict(level=80)
        assert "split conformal" in all_.interval_guarantee_
        for other in (plain, own):
            assert not np.allclose(found["y-hi-80"], other["y-hi-80"])
        assert not np.allclose(own["y-hi-80"], plain["y-hi-80"])

    def test_another_value_is_refused(self):
        with pytest.raises(ValueError, match="intervals must be one of"):
            Naive(intervals="exact").fit(self.y)

    def test_beyond_the_horizon_there_is_no_guarantee(self):
        model = Naive(horizon=3, intervals="conformal").fit(self.y)
        with pytest.warns(IntervalWarning, match="calibrated for 3 steps"):
            found = model.predict(6, level=50)
        assert np.isfinite(found.to_numpy()).all()

    def test_of_another_series(self):
        model = Naive(horizon=3, freq=1, intervals="conformal")
        model.fit(long_frame(self.y.to_numpy()[None]))
        other = long_frame(10 * self.y.to_numpy()[None]).assign(unique_id="other")
        widths = [
            (f["Naive-hi-50"] - f["Naive-lo-50"]).to_numpy()
            for f in (model.predict(level=50), model.predict(other, level=50))
        ]
        np.testing.assert_allclose(widths[1], 10 * widths[0])

    @pytest.mark.parametrize("change", ["errors", "numbers", "naive"])
    def test_files_are_checked(self, change, contract):
        def damage(header, arrays):
            arrays[f"conformal.{change}"] = -arrays[f"conformal.{change}"][..., None]

        with pytest.raises(DamagedFileError, match="conformal"):
            contract.rewritten(Naive(horizon=3, intervals="conformal").fit(self.y), damage)

    def test_networks_share_the_calibration(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = ParaRNNForecaster(
                horizon=2, hidden_size=4, max_epochs=1, refit=False, random_state=0
            ).fit(self.y)
        assert isinstance(model.calibration_, Calibration)
