"""Layers of the prior: what they change, of how many series."""

import numpy as np
import pytest

from tsrnn.prior import LAYERS, calendar, level_shifts, outliers, rounding, scale, zeros

N = 4000


def rng(seed=0):
    return np.random.default_rng(seed)


def walks(n_rows=60):
    return 100 + rng(9).standard_normal((N, n_rows)).cumsum(1)


def changed(layer, values, season_length=12):
    result = layer(rng(), values, season_length)
    return result, (result != values).any(1)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("n_rows", [2, 9, 60])
@pytest.mark.parametrize("season_length", [1, 4, 12, 24])
def test_a_layer_keeps_shape_and_values_finite_and_its_argument(layer, n_rows, season_length):
    values = walks(n_rows)[:300]
    before = values.copy()
    result = layer(rng(), values, season_length)
    assert result.shape == values.shape
    assert np.isfinite(result).all()
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize(
    ("layer", "share"), [(calendar, 0.15), (level_shifts, 0.08), (outliers, 0.12), (zeros, 0.02)]
)
def test_a_layer_changes_its_share_of_the_series(layer, share):
    _, rows = changed(layer, walks())
    assert rows.mean() == pytest.approx(share, abs=0.02)


def test_month_lengths_are_those_of_a_calendar():
    result, rows = changed(calendar, np.ones((N, 48)))
    days = result[rows] * 30.4375
    lengths = days[np.isclose(days, days.round()).all(1)].round()
    assert len(lengths) > 200
    assert set(np.unique(lengths)) <= {28, 29, 30, 31}
    assert (lengths.reshape(-1, 4, 12).sum(2) >= 365).all()
    assert ((lengths == 28) | (lengths == 29)).sum(1).tolist() == [4] * len(lengths)


def test_trading_days_keep_the_level():
    result, rows = changed(calendar, np.ones((N, 280)), 4)
    np.testing.assert_allclose(result[rows].mean(1), 1, atol=0.01)


def test_a_calendar_is_for_months_and_quarters():
    values = walks()
    np.testing.assert_array_equal(calendar(rng(), values, 7), values)


def test_a_level_shift_has_two_levels():
    result, rows = changed(level_shifts, np.ones((N, 40)))
    for series in result[rows]:
        assert len(np.unique(series)) <= 2
        assert (np.diff(series) != 0).sum() <= 1


def test_outliers_are_several_times_the_usual_change():
    values = walks()
    result, rows = changed(outliers, values)
    change = np.median(np.abs(np.diff(values[rows])), axis=1)
    size = np.abs(result[rows] - values[rows]).max(1) / change
    assert size.min() > 2.9
    assert np.median(size) < 13


def test_outliers_keep_positive_values_positive():
    noisy = np.exp(rng().standard_normal((N, 30)))
    assert (outliers(rng(), noisy, 1) > 0).all()


def test_levels_span_the_orders_of_magnitude():
    level = scale(rng(), np.ones((N, 5)), 1)
    kept = level[(level != 0).all(1)][:, 0]
    assert len(kept) / N == pytest.approx(0.97, abs=0.02)
    assert np.log10(kept).min() == pytest.approx(1, abs=0.05)
    assert np.log10(kept).max() == pytest.approx(5, abs=0.05)


def test_rounding_leaves_small_series_as_they_are():
    large, small = 1e4 * walks(), 1e-3 * walks()
    whole = (rounding(rng(), large, 1) % 1 == 0).all(1)
    assert whole.mean() == pytest.approx(0.5, abs=0.05)
    np.testing.assert_array_equal(rounding(rng(), small, 1), small)
