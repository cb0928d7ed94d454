"""Intervals of a panel of smooth and of rough series, from pooled errors."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn import load
from tsrnn.contract import Calibration, DamagedFileError, read_file, relative_sizes, write_file

RNG = np.random.default_rng


def halves(errors):
    """Return sums and numbers of absolute errors (U, n, h, C) in both halves of the origins."""
    parts = np.array_split(np.abs(errors), 2, axis=1)
    sums = np.stack([np.nansum(part, axis=1) for part in parts])
    return sums, np.stack([np.isfinite(part).sum(1) for part in parts])


def rough_and_smooth(n_series, rows, seed=0):
    """Return a long frame of sine waves of the same range, half of them with much noise."""
    draw, t = RNG(seed), np.arange(rows)
    noise = np.where(np.arange(n_series) % 2, 0.02, 0.7)
    wave = np.sin(2 * np.pi * t / 12 + draw.uniform(0, 6, size=(n_series, 1)))
    values = wave + noise[:, None] * draw.normal(size=(n_series, rows))
    ids, ds = np.repeat(np.arange(n_series), rows), np.tile(t, n_series)
    return pd.DataFrame({"unique_id": ids, "ds": ds, "y": values.ravel()})


@pytest.fixture(scope="module")
def fitted(small):
    """Return a model of forty series, and the rows after those fitted to."""
    frame = rough_and_smooth(40, 160)
    model = small(horizon=4, freq=1, season_length=12, val_size=24, input_size=12, max_epochs=3)
    return model.fit(frame[frame["ds"] < 110]), frame[frame["ds"] >= 110]


class TestRelativeSizes:
    def test_are_the_sizes_where_these_last(self):
        sizes = np.exp(RNG(0).normal(size=(300, 1)))
        errors = sizes[:, None, None] * RNG(1).normal(size=(300, 400, 3, 1))
        expected = sizes / np.exp(np.log(sizes).mean())
        np.testing.assert_allclose(relative_sizes(*halves(errors)), expected, rtol=0.2)

    def test_are_between_equal_and_measured_ones(self):
        sizes = np.exp(0.3 * RNG(0).normal(size=(300, 1)))
        errors = sizes[:, None, None] * RNG(1).normal(size=(300, 10, 1, 1))
        found, measured = (
            np.log(relative_sizes(*halves(errors))),
            np.log(np.abs(errors).mean((1, 2))),
        )
        assert 0.2 < found.std() / measured.std() < 0.8
        # Shrunk ones are nearer to the true ones than measured ones are, and than equal ones.
        truth = np.log(sizes) - np.log(sizes).mean()
        gap = np.abs(found - truth).mean()
        assert gap < np.abs(measured - measured.mean() - truth).mean()
        assert gap < np.abs(truth).mean()

    def test_of_units_alike_are_near_one(self):
        errors = RNG(0).normal(size=(400, 20, 2, 1))
        sizes = relative_sizes(*halves(errors))
        assert sizes is None or np.abs(np.log(sizes)).max() < 0.1

    def test_of_one_unit_there_are_none(self):
        assert relative_sizes(*halves(RNG(0).normal(size=(1, 50, 2, 1)))) is None

    @given(st.integers(2, 30), st.integers(2, 12), st.integers(1, 3), st.integers(1, 2))
    @settings(max_examples=60, deadline=None)
    def test_with_missing_errors(self, n_units, n, h, c):
        """Sizes are positive, bounded, and unknown of units without an error alone."""
        draw = RNG(n_units + 31 * n)
        scale = np.exp(9 * draw.normal(size=(n_units, 1, 1, 1)))
        errors = scale * draw.normal(size=(n_units, n, h, c))
        errors[draw.uniform(size=errors.shape) < 0.3] = np.nan
        errors[0] = np.nan
        errors[1] = 0.0
        sizes = relative_sizes(*halves(errors))
        if sizes is not None:
            assert np.isnan(sizes[0]).all()
            known = sizes[
                np.isfinite(errors).any((1, 2)) & (np.nan_to_num(errors) != 0).any((1, 2))
            ]
            assert ((known > 0.009) & (known < 101)).all()

    def test_do_not_depend_on_the_unit_of_measure_by_step(self):
        errors = RNG(0).normal(size=(50, 20, 3, 1)) * np.exp(RNG(1).normal(size=(50, 1, 1, 1)))
        scaled = errors * np.array([1.0, 10.0, 100.0])[:, None]
        np.testing.assert_allclose(
            relative_sizes(*halves(errors)), relative_sizes(*halves(scaled)), rtol=1e-12
        )


class TestCalibration:
    @pytest.mark.parametrize("method", ["conformal", "gaussian"])
    def test_widths_are_those_of_relative_errors_times_the_size(self, method):
        errors = RNG(0).normal(size=(1, 600, 2, 1))
        units, sizes = np.repeat(np.arange(3), 200), np.array([[0.5], [2.0], [np.nan]])
        calibration = Calibration(errors, method, 3, units=units, sizes=sizes)
        found = calibration.half_widths(80, np.array([1, 0, 2, -1]))
        known = errors[:, :400] / sizes[units[:400]][:, None]
        relative = Calibration(known, method, 3).half_widths(80, np.array([0]))[0]
        mixture = Calibration(errors, method, 3).half_widths(80, np.array([0]))[0]
        for width, expected in zip(
            found, [2 * relative, 0.5 * relative, mixture, mixture], strict=True
        ):
            np.testing.assert_allclose(width, expected, rtol=0.02)

    def test_paths_of_a_target_without_a_size_alone_have_the_errors_of_all(self):
        errors = RNG(0).normal(size=(1, 60, 3, 2))
        units, sizes = np.repeat(np.arange(3), 20), np.array([[0.5, np.nan], [2, 3], [1, 0.5]])
        calibration = Calibration(errors, "conformal", 3, units=units, sizes=sizes)
        for unit in (0, 1, -1):
            expected = errors[0].copy()
            for target in range(2):
                size = np.nan if unit < 0 else sizes[unit, target]
                if np.isfinite(size):
                    expected[..., target] *= size / sizes[units, target][:, None]
            expected = expected[np.isfinite(expected).all((1, 2))]
            rows = RNG(1).integers(len(expected), size=30)
            np.testing.assert_allclose(calibration.draw(unit, 30, RNG(1)), expected[rows])


class TestPanel:
    def test_each_series_has_its_coverage(self, fitted):
        model, future = fitted
        forecast = model.predict_rolling(future, step_size=2, level=80)
        both = forecast.merge(future, on=["unique_id", "ds"])
        inside = both["y"].between(both["ParaRNN-lo-80"], both["ParaRNN-hi-80"])
        rough = inside[both["unique_id"] % 2 == 0].mean()
        smooth = inside[both["unique_id"] % 2 == 1].mean()
        assert rough == pytest.approx(0.8, abs=0.07)
        assert smooth == pytest.approx(0.8, abs=0.07)
        assert "over the size of each series' errors" in model.interval_guarantee_

    def test_new_series_have_the_widths_of_all(self, fitted):
        """Nobody has seen its errors: smooth or rough, the ends are those of a mixture."""
        model, future = fitted
        new = future[future["unique_id"] == 1].assign(unique_id=-1)
        known, other = (
            model.predict(frame, level=80) for frame in (future[future["unique_id"] == 1], new)
        )
        widths = [(f["ParaRNN-hi-80"] - f["ParaRNN-lo-80"]).to_numpy() for f in (known, other)]
        assert (widths[1] > 3 * widths[0]).all()

    def test_paths_are_as_wide_as_the_intervals(self, fitted):
        model, _ = fitted
        paths = model.sample_paths(2000, random_state=0)
        ends = paths.groupby(["unique_id", "ds"])["ParaRNN"].quantile([0.1, 0.9]).unstack()
        forecast = model.predict(level=80).set_index(["unique_id", "ds"])
        width = forecast["ParaRNN-hi-80"] - forecast["ParaRNN-lo-80"]
        ratio = (ends[0.9] - ends[0.1]) / width
        assert ratio.groupby("unique_id").mean().between(0.75, 1.3).all()

    def test_of_a_file_are_those_of_the_model(self, fitted, tmp_path):
        model, _ = fitted
        model.save(tmp_path / "model")
        loaded = load(tmp_path / "model")
        pd.testing.assert_frame_equal(loaded.predict(level=80), model.predict(level=80))
        assert loaded.interval_guarantee_ == model.interval_guarantee_

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("error_sizes", np.ones((3, 1))),
            ("error_sizes", -np.ones((40, 1))),
            ("error_sizes", np.full((40, 1), np.inf)),
            ("error_units", np.zeros(3, np.int64)),
            ("error_units", None),
        ],
    )
    def test_of_a_forged_file_are_refused(self, fitted, tmp_path, name, value):
        fitted[0].save(tmp_path / "model")
        header, arrays = read_file(tmp_path / "model")
        value = arrays[name] + 40 if value is None else value
        write_file(tmp_path / "model", header, arrays | {name: value})
        with pytest.raises(DamagedFileError, match=name):
            load(tmp_path / "model")
