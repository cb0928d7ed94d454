"""Widths that follow the errors of rows after a fit: held against a loop, in any portions."""

import copy

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.forecasters.test_stacking import wave
from tsrnn import LRUForecaster, load
from tsrnn.contract import DamagedFileError, read_file, write_file
from tsrnn.data import read_panel
from tsrnn.forecasters import FittedStacked
from tsrnn.forecasters._tracked_widths import FARTHEST, MISSES, RATE, TrackedWidths

H = 3


def panel_of(*series):
    """Panel of series of values, NaN where they are missing."""
    frames = [
        pd.DataFrame({"unique_id": str(i), "ds": np.arange(len(y)), "y": np.asarray(y, float)})
        for i, y in enumerate(series)
    ]
    return read_panel(pd.concat(frames), missing="keep")


def after(widths, panel, numbers, begin=0):
    """Widths and factors after the rows from `begin` on of series of these numbers."""
    origins = widths.origins(panel)
    first = numbers[origins.series] + begin + origins.offset
    point = np.sin(first[:, None] + np.arange(H))[..., None]
    return widths.after(panel, point, point - 0.5, point + 1.0)


def by_loop(y, i):
    """Logarithms of the factors before each row and after the last one, row by row."""
    theta, logs = 0.0, []
    for t, value in enumerate(y):
        logs.append(theta)
        if t % H == 0:
            centres, factor = np.sin(i + t + np.arange(H)), np.exp(theta)
        centre = centres[t % H]
        outside = not centre - 0.5 * factor <= value <= centre + factor
        if np.isfinite(value):
            theta = np.clip(theta + RATE / H * (outside - MISSES), -FARTHEST, FARTHEST)
    return np.array([*logs, theta])


VALUES = st.lists(st.one_of(st.floats(-3, 3), st.just(np.nan)), min_size=4, max_size=25)


@settings(deadline=None, max_examples=60)
@given(st.lists(VALUES, min_size=1, max_size=3), st.integers(1, 5))
def test_are_those_of_a_loop_in_any_portions(series, portion):
    series = [[0.0, *y, 0.0] for y in series]  # a series begins and ends with a known value
    whole, begun = panel_of(*series), TrackedWidths.begin(len(series), H, 1)
    together, factors = after(begun, whole, np.arange(len(series)))
    for i, y in enumerate(series):
        expected = by_loop(y, i)
        np.testing.assert_allclose(together.log_factors[i, 0], expected[-1], rtol=1e-12)
        rows = slice(whole.indptr[i], whole.indptr[i + 1])
        np.testing.assert_allclose(np.log(factors[rows, 0]), expected[:-1], atol=1e-12)
    widths = begun
    for begin in range(0, int(whole.lengths.max()), portion):
        on = np.flatnonzero(whole.lengths > begin)
        rows = whole.select(whole.lengths > begin)
        rows = rows.between(np.full(len(on), begin), np.minimum(begin + portion, rows.lengths))
        moved, _ = after(widths.select(on), rows, on, begin)
        widths = widths.replaced(on, moved)
    for name, values in vars(together).items():
        np.testing.assert_allclose(getattr(widths, name), values, atol=1e-12)


@pytest.mark.parametrize("shape", ["normal", "heavy", "drifting"])
def test_intervals_miss_a_fifth_in_the_long_run(shape):
    rng, n = np.random.default_rng(0), 6000
    y = {
        "normal": rng.standard_normal(n),
        "heavy": rng.standard_t(2, n),
        "drifting": rng.standard_normal(n) * np.linspace(0.6, 2.5, n),
    }[shape]
    panel, fixed = panel_of(y), 1.2816

    point = np.zeros((n // H, H, 1))
    _, factors = TrackedWidths.begin(1, H, 1).after(panel, point, point - fixed, point + fixed)
    held = np.repeat(factors[::H, 0], H)[:n]  # a forecast keeps the width of its origin
    missed = np.mean(np.abs(y) > fixed * held)
    # Changes add up to that of the logarithm, which stays within its limits.
    assert abs(missed - MISSES) <= FARTHEST * H / (RATE * n) < 0.01


# In the default forecast


@pytest.fixture(scope="module")
def frame():
    rows = pd.concat([wave(440), wave(400, 1, "b")], ignore_index=True)
    late = rows.groupby("unique_id").cumcount() >= 330
    noise = 4 * np.random.default_rng(5).standard_normal(len(rows))
    return rows.assign(y=rows["y"] + np.where(late, noise, 0.0), late=late)


@pytest.fixture(scope="module")
def model(frame):
    return LRUForecaster(4, random_state=0).fit(frame[~frame["late"]].drop(columns="late"))


@pytest.fixture(scope="module")
def later(frame):
    return frame[frame["late"]].drop(columns="late").reset_index(drop=True)


def test_grow_where_errors_do(model, later):
    assert isinstance(model.fitted_, FittedStacked)
    assert (model.state_.widths.factors == 1).all()
    updated = copy.deepcopy(model).update(later)
    assert (updated.state_.widths.factors > 1.3).all()
    before, after = (m.predict(level=80).iloc[:, -2:].diff(axis=1).mean() for m in (model, updated))
    assert after.iloc[-1] > 1.3 * before.iloc[-1]


def test_rolling_forecasts_widen_as_rows_come(model, later):
    rolling = model.predict_rolling(later, 4, 4, level=80)
    low, high = rolling.columns[-2:]
    for _, rows in rolling.groupby("unique_id"):
        width = rows[high] - rows[low]
        assert width.iloc[-8:].mean() > 1.2 * width.iloc[:4].mean()


@pytest.mark.parametrize("rows", [1, 4, 6, 37])
def test_rolling_updates_and_given_rows_agree(model, frame, later, rows):
    count = later.groupby("unique_id").cumcount()
    new, following = later[count < rows], later[(count >= rows) & (count < rows + 4)]
    updated = copy.deepcopy(model).update(new)
    expected = updated.predict(4, level=80)
    given = frame.drop(columns="late")
    given = given[given.groupby("unique_id").cumcount() < 330 + rows]
    pd.testing.assert_frame_equal(model.predict(given, 4, level=80), expected, rtol=1e-4)
    rolling = model.predict_rolling(pd.concat([new, following]), 4, rows, level=80)
    last = rolling.groupby("unique_id").tail(4).drop(columns="cutoff").reset_index(drop=True)
    last = last.sort_values(["unique_id", "ds"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(last, expected, rtol=1e-4)


def test_are_saved_within_a_horizon(model, later, tmp_path):
    updated = copy.deepcopy(model).update(later[later.groupby("unique_id").cumcount() < 6])
    updated.save(tmp_path / "model.tsrnn")
    loaded = load(tmp_path / "model.tsrnn")
    rest = later[later.groupby("unique_id").cumcount() >= 6]
    pd.testing.assert_frame_equal(
        loaded.update(rest).predict(level=80), updated.update(rest).predict(level=80)
    )


FORGED = {
    "factor": ("log_factors", 9.0),
    "no factor": ("log_factors", np.nan),
    "age": ("age", 4),
    "no age": ("age", -1),
    "ends": ("low", 1e9),
    "no ends": ("high", np.inf),
}


@pytest.mark.parametrize("case", FORGED)
def test_forged_widths_are_refused(model, tmp_path, case):
    place = tmp_path / "model.tsrnn"
    model.save(place)
    header, arrays = read_file(place)
    name, value = FORGED[case]
    arrays = {key: array.copy() for key, array in arrays.items()}
    arrays[f"stacking.tracked.{name}"][:] = value
    write_file(place, header, arrays)
    with pytest.raises(DamagedFileError, match="save the model again"):
        load(place)


def test_a_series_with_no_row_until_the_fit_ended_has_the_widths_of_the_fit(model, later):
    other = later[later["unique_id"] == "a"].assign(unique_id="new")
    assert model.fitted_.filter(read_panel(other)).widths.factors.tolist() == [[1.0]]
    assert len(model.predict(other, 4, level=80)) == 4
