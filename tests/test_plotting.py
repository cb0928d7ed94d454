"""Plots: the artists carry the numbers of the frames they were given."""

import subprocess
import sys
from itertools import pairwise
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib import dates

from tsrnn import ARMA, backtest, diagnose
from tsrnn.interpret import jordan_block, recurrence_features
from tsrnn.plotting import (
    figure_svg,
    plot_backtest,
    plot_components,
    plot_contributions,
    plot_correlations,
    plot_diagnostics,
    plot_features,
    plot_forecast,
    plot_forecasts,
    plot_lag_curves,
)


@pytest.fixture(autouse=True)
def _no_figure_or_setting_stays():
    before = dict(mpl.rcParams)
    yield
    plt.close("all")
    assert dict(mpl.rcParams) == before


def stack(*parts):
    return np.stack([jordan_block(*part) for part in parts])


@pytest.fixture
def features():
    """Two waves and one double decay, with shares, in months."""
    frame = recurrence_features(
        stack((0.9, np.pi / 6), (0.95, np.pi / 2), (0.8, 0.0, 2)), freq="MS"
    )
    frame["share"] = [0.5, 0.1, 0.4]
    return frame


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def curves(ax):
    return {line.get_label(): line for line in ax.get_lines()}


class TestFeatures:
    def test_pairs_show_both_eigenvalues(self, features):
        ax = plot_features(features)
        points = ax.collections[0].get_offsets().data
        wave = 0.9 * np.exp(1j * np.pi / 6)
        expected = [wave, wave.conj(), 0.95j, -0.95j, 0.8]
        found = points[:, 0] + 1j * points[:, 1]
        np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(expected), atol=1e-12)

    def test_areas_are_proportional_to_shares(self, features):
        areas = plot_features(features).collections[0].get_sizes()
        np.testing.assert_allclose(areas / areas.max(), [1.0, 0.2, 0.8, 1.0, 0.2])

    def test_the_slowest_are_named_with_time_and_unit(self, features):
        ax = plot_features(features, n_labels=2)
        assert {text.get_text() for text in ax.texts} == {
            "C-1, half-life 13.5, period 4 months",
            "C-1, half-life 6.58, period 12 months",
        }

    def test_names_do_not_overlap(self):
        close = recurrence_features(stack(*((0.9 + k / 100, 0.3 + k / 1000) for k in range(6))))
        ax = plot_features(close, n_labels=6)
        ax.figure.canvas.draw()
        renderer = ax.figure.canvas.get_renderer()
        # The words alone, without the line that ties them to their point.
        boxes = [mpl.text.Text.get_window_extent(text, renderer).extents for text in ax.texts]
        boxes.sort(key=lambda box: box[1])
        assert all(low[3] <= high[1] for low, high in pairwise(boxes))

    @pytest.mark.few("0", "1", "4", "12")
    @pytest.mark.parametrize("seed", range(30))
    def test_names_stay_inside_the_figure_and_apart(self, seed):
        draw = np.random.default_rng(seed)
        n = int(draw.integers(1, 12))
        moduli = 1 - 10.0 ** draw.uniform(-7, -0.2, n)
        angles = draw.choice([0.0, np.pi, *draw.uniform(0.01, 3.13, 4)], n)
        angles = np.where(angles == 0, 0.01, np.where(angles == np.pi, 3.1, angles))
        frame = recurrence_features(stack(*zip(moduli, angles, strict=True)), freq="15min")
        if draw.random() < 0.5:
            frame["share"] = 1 / n
        ax = None
        if draw.random() < 0.5:
            ax = plt.subplots(2, 2, dpi=draw.choice([72, 150]))[1][1, 0]
        ax = plot_features(frame, ax, n_labels=int(draw.integers(1, 13)))
        figure = ax.figure
        figure.canvas.draw()
        boxes = [mpl.text.Text.get_window_extent(text).extents for text in ax.texts]
        assert boxes
        for x0, y0, x1, y1 in boxes:
            assert x0 >= -1
            assert y0 >= -1
            assert x1 <= figure.bbox.width + 1
            assert y1 <= figure.bbox.height + 1
        ticks = [tick.get_window_extent().extents for tick in ax.get_yticklabels()]
        for i, a in enumerate(boxes):
            for b in [*boxes[i + 1 :], *ticks]:
                across = min(a[2], b[2]) - max(a[0], b[0])
                down = min(a[3], b[3]) - max(a[1], b[1])
                assert across <= 1 or down <= 1

    def test_layers_have_colours_of_their_own(self):
        class Network:
            def recurrent_blocks(self):
                return [stack((0.5, 0.0), (0.4, 0.0)), stack((0.3, 1.0))]

        ax = plot_features(Network())
        assert legend_texts(ax) == ["layer 1", "layer 2"]
        colours = {tuple(layer.get_facecolor()[0]) for layer in ax.collections}
        assert len(colours) == 2

    def test_growing_features_lie_inside_the_picture(self):
        ax = plot_features(recurrence_features(stack((1.5, 1.0))))
        assert ax.get_ylim()[1] > 1.5
        assert "growing" in ax.texts[0].get_text()

    def test_zeros_are_drawn_but_not_named(self):
        ax = plot_features(np.zeros((2, 2)))
        np.testing.assert_array_equal(ax.collections[0].get_offsets(), np.zeros((2, 2)))
        assert not ax.texts


class TestLagCurves:
    def test_leading_features_come_first(self, features):
        labels = legend_texts(plot_lag_curves(features, n=2))
        assert labels == [
            "block 1: C-1, half-life 6.58, period 12 months (share 50%)",
            "block 3: R-2, half-life 3.11 months (share 40%)",
        ]

    def test_without_shares_the_slowest_lead(self, features):
        labels = legend_texts(plot_lag_curves(features.assign(share=np.nan), n=1))
        assert labels == ["block 2: C-1, half-life 13.5, period 4 months"]

    def test_curves_are_impulse_responses_in_units_of_time(self):
        ax = plot_lag_curves(recurrence_features(stack((0.9, 0.5)), freq="15min"), max_lag=10)
        curve = ax.get_lines()[1]
        j = np.arange(11)
        np.testing.assert_allclose(curve.get_xdata(), 15 * j)
        np.testing.assert_allclose(curve.get_ydata(), 0.9**j * np.cos(0.5 * j))
        assert ax.get_xlabel() == "Lag (minutes)"

    def test_higher_orders_show_their_binomial_curve_scaled_to_one(self):
        ax = plot_lag_curves(jordan_block(0.8, 0.0, 2), max_lag=30)
        j = np.arange(31)
        expected = j * 0.8 ** np.maximum(j - 1, 0)
        np.testing.assert_allclose(ax.get_lines()[1].get_ydata(), expected / expected.max())

    @pytest.mark.parametrize("angle", [np.pi, 2.9])
    def test_short_periods_are_dots_in_their_envelope(self, angle):
        blocks = recurrence_features(
            stack((0.95, angle)) if angle < 3 else np.diag([-0.95, 0.9])[None]
        )
        dotted, *rest = plot_lag_curves(blocks, max_lag=60).get_lines()[1:]
        ax = dotted.axes
        assert dotted.get_linestyle() == "None"
        assert dotted.get_marker() == "o"
        assert all(line.get_linestyle() == "-" for line in rest)
        j = np.arange(61)
        np.testing.assert_allclose(dotted.get_ydata(), 0.95**j * np.cos(angle * j), atol=1e-12)
        (band,) = ax.collections
        x, y = band.get_paths()[0].vertices.T
        np.testing.assert_allclose(np.abs(y), 0.95**x, rtol=1e-9)
        assert set(x) == set(j)

    @pytest.mark.parametrize(("modulus", "last"), [(0.1, 12), (0.9, 29), (0.9999, 200), (1.1, 200)])
    def test_the_last_lag_follows_the_slowest_feature(self, modulus, last):
        ax = plot_lag_curves(jordan_block(modulus))
        assert ax.get_xlim() == (0, last)

    def test_zeros_have_no_curve(self):
        with pytest.raises(ValueError, match='all features are of type "zero"'):
            plot_lag_curves(np.zeros((2, 2)))


@pytest.mark.parametrize("plot", [plot_features, plot_lag_curves])
class TestFeatureFrames:
    def test_a_frame_that_lost_its_columns_is_refused(self, plot, features):
        with pytest.raises(ValueError, match=r"lacks the columns \['period', 'share'\]"):
            plot(features.drop(columns=["period", "share"]))

    def test_a_frame_that_lost_its_unit_is_refused(self, plot, features):
        features.attrs = {}
        with pytest.raises(ValueError, match="Copy the attrs over"):
            plot(features)

    def test_an_empty_frame_is_refused(self, plot, features):
        with pytest.raises(ValueError, match="has no rows"):
            plot(features.head(0))

    def test_selected_rows_keep_their_unit(self, plot, features):
        chosen = features[features.modulus > 0.85]
        assert 0 < len(chosen) < len(features)
        ax = plot(chosen)
        labels = {ax.get_xlabel(), ax.get_ylabel()}
        whole = plot(features)
        assert labels == {whole.get_xlabel(), whole.get_ylabel()}

    def test_what_is_no_model_is_refused(self, plot):
        with pytest.raises(TypeError, match="must be a square matrix"):
            plot("ParaRNN")


def history(n=36, freq="MS"):
    index = pd.date_range("2020-01-01", periods=n, freq=freq, name="ds")
    return pd.Series(np.arange(n, dtype=float), index=index, name="sales")


def forecast(past, h=6, name="sales", levels=(80, 95)):
    index = pd.date_range(past.index[-1], periods=h + 1, freq=past.index.freq)[1:]
    point = past.iloc[-1] + np.arange(1.0, h + 1)
    columns = {name: point}
    for level in levels:
        columns[f"{name}-lo-{level}"] = point - level / 10
        columns[f"{name}-hi-{level}"] = point + level / 10
    return pd.DataFrame(columns, index=index)


def long(frame, ids=("a", "b"), **columns):
    """The same values for each id, shifted by 100."""
    parts = [
        (frame.to_frame() if isinstance(frame, pd.Series) else frame)
        .rename(columns=columns.get("rename", {}))
        .add(100.0 * i)
        .rename_axis("ds")
        .reset_index()
        .assign(unique_id=key)
        for i, key in enumerate(ids)
    ]
    return pd.concat(parts, ignore_index=True)


def band(ax, level):
    """Vertices of a shaded interval as a set of (x, y)."""
    (found,) = [c for c in ax.collections if c.get_label() == f"{level}% interval"]
    return {(round(x, 6), round(y, 6)) for x, y in found.get_paths()[0].vertices}


class TestForecast:
    def test_lines_and_bands_carry_the_frames_numbers(self):
        past = history()
        future = forecast(past)
        ax = plot_forecast(past, future)
        lines = curves(ax)
        np.testing.assert_array_equal(lines["history"].get_ydata(), past)
        np.testing.assert_array_equal(lines["forecast"].get_ydata(), future["sales"])
        np.testing.assert_array_equal(lines["forecast"].get_xdata(), dates.date2num(future.index))
        for level in (80, 95):
            for side in ("lo", "hi"):
                x = dates.date2num(future.index)
                y = future[f"sales-{side}-{level}"]
                corners = {(round(a, 6), round(b, 6)) for a, b in zip(x, y, strict=True)}
                assert corners <= band(ax, level)
        assert legend_texts(ax) == ["history", "95% interval", "80% interval", "forecast"]
        assert ax.get_ylabel() == "sales"

    @pytest.mark.parametrize("levels", [80, 80.0, np.float64(80), (80,)])
    def test_a_level_is_a_list_of_one(self, levels):
        ax = plot_forecast(history(), forecast(history()), levels=levels)
        assert legend_texts(ax) == ["history", "80% interval", "forecast"]

    def test_levels_and_length_of_history_can_be_chosen(self):
        past = history()
        ax = plot_forecast(past, forecast(past), last=10, levels=[80])
        assert legend_texts(ax) == ["history", "80% interval", "forecast"]
        assert len(curves(ax)["history"].get_ydata()) == 10

    def test_a_point_forecast_is_a_series(self):
        past = history()
        ax = plot_forecast(past, forecast(past)["sales"], actual=forecast(past)["sales"] + 1)
        assert legend_texts(ax) == ["history", "forecast", "actual"]
        np.testing.assert_array_equal(curves(ax)["actual"].get_ydata(), np.arange(37.0, 43.0))

    def test_wide_frames_need_a_column_where_there_are_several(self):
        past = history()
        both = pd.concat([forecast(past), forecast(past, name="costs")], axis=1)
        wide = pd.DataFrame({"sales": past, "costs": -past})
        ax = plot_forecast(wide, both, column="costs", actual=wide)
        np.testing.assert_array_equal(curves(ax)["history"].get_ydata(), -past)
        assert ax.get_ylabel() == "costs"
        with pytest.raises(ValueError, match=r"one of .*\('sales', 'costs'\); none was given"):
            plot_forecast(wide, both)
        with pytest.raises(ValueError, match="got 'cost'"):
            plot_forecast(wide, both, column="cost")

    def test_long_frames_need_a_series_where_there_are_several(self):
        past = history()
        rows = long(past, rename={"sales": "y"})
        future = long(forecast(past, name="ParaRNN"))
        ax = plot_forecast(rows, future, series="b", actual=rows)
        np.testing.assert_array_equal(curves(ax)["history"].get_ydata(), past + 100)
        np.testing.assert_array_equal(curves(ax)["forecast"].get_ydata(), np.arange(136.0, 142.0))
        assert ax.get_ylabel() == "b"
        with pytest.raises(ValueError, match=r"one of the 2 series .*'a', 'b'\); none was given"):
            plot_forecast(rows, future)
        with pytest.raises(ValueError, match="got 'c'"):
            plot_forecast(rows, future, series="c")
        with pytest.raises(ValueError, match="`history` has no rows of the series 'b'"):
            plot_forecast(rows[rows.unique_id == "a"], future, series="b")

    def test_a_backtest_frame_shows_the_model_that_is_chosen(self):
        past = history()
        future = long(forecast(past, name="ParaRNN")).assign(y=1.0, cutoff=past.index[-1])
        rows = long(past, rename={"sales": "y"})
        ax = plot_forecast(rows, future, series="a")
        np.testing.assert_array_equal(curves(ax)["forecast"].get_ydata(), np.arange(36.0, 42.0))
        two = future.assign(ARMA=2.0)
        ax = plot_forecast(rows, two, series="a", column="ARMA")
        assert legend_texts(ax) == ["history", "forecast"]

    def test_long_frames_of_one_series_without_ids(self):
        past = history()
        rows = long(past, ids=["a"], rename={"sales": "y"}).drop(columns="unique_id")
        future = long(forecast(past, name="ParaRNN"), ids=["a"]).drop(columns="unique_id")
        assert plot_forecast(rows, future).get_ylabel() == "y"

    def test_periods_and_integers_are_placed_on_the_axis(self):
        past = history()
        future = forecast(past)
        plot_forecast(past.to_period("M"), future.to_period("M")).figure.canvas.draw()
        ax = plot_forecast(past.reset_index(drop=True), future.set_index(pd.RangeIndex(36, 42)))
        np.testing.assert_array_equal(curves(ax)["forecast"].get_xdata(), np.arange(36, 42))
        assert ax.get_xlabel() == "Time step"

    def test_time_zones_keep_their_local_clock(self):
        past = history(freq="h").tz_localize("Europe/Berlin")
        ax = plot_forecast(past, forecast(past))
        assert curves(ax)["history"].get_xdata()[0] == dates.date2num(np.datetime64("2020-01-01"))

    def test_one_step_ahead_is_visible(self):
        past = history()
        ax = plot_forecast(past, forecast(past, h=1, levels=(80,)))
        assert curves(ax)["forecast"].get_marker() == "o"
        (segment,) = ax.collections[0].get_segments()
        np.testing.assert_allclose(segment[:, 1], [28.0, 44.0])

    def test_units_of_the_data_set_stand_on_the_axis(self):
        past = history()
        past.attrs["units"] = {"sales": "million euros"}
        assert plot_forecast(past, forecast(past)).get_ylabel() == "sales (million euros)"

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"history": [1, 2]}, TypeError, "`history` must be a pandas Series .* got list"),
            ({"forecast": np.zeros(3)}, TypeError, "`forecast` must be a pandas .* got ndarray"),
            ({"actual": 3}, TypeError, "`actual` must be a pandas .* got int"),
            ({"levels": [90]}, ValueError, r"those of the forecast, \[80, 95\]; got \[90\]"),
            ({"last": 0}, ValueError, "`last` must be a positive whole number; got 0"),
            ({"last": True}, ValueError, "`last` must be a positive whole number; got True"),
            ({"series": "a"}, ValueError, "`series` selects from long frames"),
            ({"history": pd.DataFrame({"p": [1], "q": [2]})}, ValueError, "it has 'p', 'q'"),
        ],
    )
    def test_bad_input_is_refused(self, change, error, message):
        past = history()
        arguments = {"history": past, "forecast": forecast(past), **change}
        with pytest.raises(error, match=message):
            plot_forecast(**arguments)

    def test_half_an_interval_is_refused(self):
        past = history()
        with pytest.raises(ValueError, match=r"only one at the levels \['80'\]"):
            plot_forecast(past, forecast(past).drop(columns="sales-hi-80"))


@pytest.mark.parametrize("times", [["a", "b"], ["2024-01-01", "2024-01-02"]])
def test_times_as_text_are_refused(times):
    past = pd.Series([1.0, 2.0], times, name="sales")
    with pytest.raises(TypeError, match=f"such as '{times[0]}'. Convert them by pd.to_datetime"):
        plot_forecast(past, forecast(history()))


class TestForecasts:
    def test_a_panel_a_series_with_one_legend(self):
        past = history()
        rows = long(past, rename={"sales": "y"})
        axes = plot_forecasts(rows, long(forecast(past, name="ParaRNN")))
        assert [ax.get_ylabel() for ax in axes] == ["a", "b"]
        assert [ax.get_legend() is None for ax in axes] == [False, True]
        np.testing.assert_array_equal(curves(axes[1])["history"].get_ydata(), past + 100)

    @pytest.mark.few("4-4", "5-4")
    @pytest.mark.parametrize(("count", "drawn"), [(4, 4), (5, 4), (1200, 4)])
    def test_of_many_the_first_with_advice(self, count, drawn):
        past, ids = history(12), [f"s{i}" for i in range(count)]
        rows = long(past, ids, rename={"sales": "y"})
        axes = plot_forecasts(rows, long(forecast(past, 2, name="ParaRNN"), ids))
        assert [ax.get_ylabel() for ax in axes] == ids[:drawn]
        advice = f"4 of {count:,} series; name others by series="
        assert axes[0].figure.get_supxlabel() == (advice if count > drawn else "")

    @pytest.mark.parametrize("count", [1, 2, 5, 6, 8])
    def test_no_place_is_empty(self, count):
        past, ids = history(12), [f"s{i}" for i in range(count)]
        rows = long(past, ids, rename={"sales": "y"})
        made = long(forecast(past, 2, name="ParaRNN"), ids)
        axes = plot_forecasts(rows, made, series=ids)
        assert len(axes) == count
        rows, columns = axes[0].get_gridspec().get_geometry()
        assert rows * columns == count

    def test_columns_of_a_wide_frame(self):
        past = history()
        both = pd.concat([forecast(past), forecast(past, name="costs")], axis=1)
        wide = pd.DataFrame({"sales": past, "costs": -past})
        _, given = plt.subplots(1, 2)
        axes = plot_forecasts(wide, both, given, levels=[80], last=5)
        assert [ax.get_ylabel() for ax in axes] == ["sales", "costs"]
        assert list(axes) == list(given)
        with pytest.raises(ValueError, match="`ax` must be one axes a panel, 1; got 2"):
            plot_forecasts(wide, both, given, columns="costs")


@pytest.fixture
def parts():
    steps = np.arange(1, 13)
    columns = {
        "level": 100.0,
        "bias": 0.5,
        "linear path": np.sin(steps),
        "layer 1 block 2 (C-1, period 12)": 3 * np.cos(steps),
        "small": 0.01 * steps,
        "smaller": -0.001 * steps,
    }
    return pd.DataFrame(columns, index=pd.Index(steps, name="step"))


class TestContributions:
    def test_the_line_is_the_sum_and_the_bars_reach_it(self, parts):
        ax = plot_contributions(parts)
        np.testing.assert_allclose(curves(ax)["forecast"].get_ydata(), parts.sum(axis=1))
        heights = sum(
            np.array([bar.get_height() for bar in container]) for container in ax.containers
        )
        np.testing.assert_allclose(100.5 + heights, parts.sum(axis=1))

    def test_bars_stack_without_overlap_on_either_side(self, parts):
        ax = plot_contributions(parts)
        for step in range(len(parts)):
            edges = [
                (bar.get_y(), bar.get_y() + bar.get_height())
                for bar in (container[step] for container in ax.containers)
            ]
            spans = sorted((min(edge), max(edge)) for edge in edges)
            ends = [high for _, high in spans[:-1]]
            starts = [low for low, _ in spans[1:]]
            np.testing.assert_allclose(ends, starts, atol=1e-9)

    def test_constant_parts_form_the_base_and_the_rest_comes_by_size(self, parts):
        assert legend_texts(plot_contributions(parts, n=2)) == [
            "forecast",
            "base: level + bias (100.5)",
            "layer 1 block 2 (C-1, period 12)",
            "linear path",
            "2 other parts",
        ]

    def test_of_many_constant_parts_the_largest_are_named(self, parts):
        zeros = {f"block {i}": 0.0 for i in range(40)}
        assert "base: level + bias (100.5)" in legend_texts(
            plot_contributions(parts.assign(**zeros))
        )
        more = {f"block {i}": 1.0 + i for i in range(40)}
        (base,) = (t for t in legend_texts(plot_contributions(parts.assign(**more))) if "base" in t)
        assert base == "base: level + block 39 + block 38 + 39 other parts (920.5)"

    def test_one_part_left_over_keeps_its_name(self, parts):
        assert "smaller" in legend_texts(plot_contributions(parts, n=3))

    def test_where_nothing_varies_all_is_stacked(self):
        frame = pd.DataFrame({"level": [1.0, 1.0], "bias": [2.0, 2.0]})
        ax = plot_contributions(frame)
        assert legend_texts(ax) == ["forecast", "bias", "level"]

    @pytest.mark.parametrize("name", ["ds", "step", "h"])
    def test_steps_or_times_may_be_a_column(self, parts, name):
        times = pd.date_range("2024-01-01", periods=12, freq="MS")
        frame = parts.reset_index(drop=True).assign(**{name: times if name == "ds" else range(12)})
        x = curves(plot_contributions(frame))["forecast"].get_xdata()
        np.testing.assert_array_equal(x, dates.date2num(times) if name == "ds" else np.arange(12))

    def test_the_axis_says_what_it_shows(self, parts):
        assert plot_contributions(parts).get_xlabel() == "Steps ahead"
        parts.attrs["units"] = "MW"
        assert plot_contributions(parts).get_ylabel() == "Forecast (MW)"

    @pytest.mark.parametrize(
        ("spoil", "error", "message"),
        [
            (lambda f: f.to_numpy(), TypeError, "must be a DataFrame .* got ndarray"),
            (lambda f: f.head(0), ValueError, "at least one row .* got 0 rows"),
            (lambda f: f[[]], ValueError, "at least one row"),
            (lambda f: f.assign(unique_id="a"), ValueError, r"\['unique_id'\] are not"),
            (lambda f: f.assign(bias=np.nan), ValueError, r"the parts \['bias'\] do"),
            (lambda f: f.assign(bias=np.inf), ValueError, r"infinite values; the parts \['bias'\]"),
        ],
    )
    def test_bad_frames_are_refused(self, parts, spoil, error, message):
        with pytest.raises(error, match=message):
            plot_contributions(spoil(parts))

    def test_n_is_checked(self, parts):
        with pytest.raises(ValueError, match="`n` must be a positive whole number; got 0"):
            plot_contributions(parts, n=0)


class TestCorrelations:
    @pytest.fixture
    def pairs(self):
        days = pd.date_range("2020-01-01", periods=5)
        parts = [
            pd.DataFrame({"ds": days, "first": a, "second": b, "correlation": level + 0.1 * i})
            for i, (a, b, level) in enumerate([("x", "y", np.arange(5) / 9), ("x", "z", 0.2)])
        ]
        return pd.concat(parts, ignore_index=True)

    def test_a_line_a_pair(self, pairs):
        drawn = curves(plot_correlations(pairs))
        first = pairs[pairs["second"] == "y"]
        line = drawn["x, y"]
        np.testing.assert_allclose(line.get_ydata(), first["correlation"])
        np.testing.assert_allclose(line.get_xdata(), dates.date2num(first["ds"]))
        assert legend_texts(plot_correlations(pairs)) == ["x, y", "x, z"]

    def test_covariances(self, pairs):
        ax = plot_correlations(pairs.rename(columns={"correlation": "covariance"}))
        assert ax.get_ylabel() == "Covariance"

    def test_other_frames_are_refused(self, pairs):
        with pytest.raises(ValueError, match="must be what correlations"):
            plot_correlations(pairs.drop(columns="first"))
        with pytest.raises(ValueError, match="has no rows"):
            plot_correlations(pairs.iloc[:0])
        two = pd.concat([pairs.assign(unique_id=i) for i in "ab"])
        two = two[["unique_id", *pairs.columns]]
        with pytest.raises(ValueError, match="several series"):
            plot_correlations(two)


class TestComponents:
    @pytest.fixture
    def frame(self):
        days = pd.date_range("2020-01-01", periods=5, name="ds")
        numbers = np.arange(5.0)
        return pd.DataFrame({
            "unique_id": "a", "ds": days, "level": numbers, "trend": np.nan, "season": -numbers,
        })  # fmt: skip

    def test_a_panel_each_that_is_there(self, frame):
        axes = plot_components(frame)
        assert [ax.get_ylabel() for ax in axes] == ["Level", "Season"]
        for ax, name in zip(axes, ("level", "season"), strict=True):
            (line,) = ax.get_lines()
            np.testing.assert_allclose(line.get_ydata(), frame[name])
            np.testing.assert_allclose(line.get_xdata(), dates.date2num(frame["ds"]))

    def test_on_given_axes(self, frame):
        _, axes = plt.subplots(2)
        assert list(plot_components(frame, axes)) == list(axes)
        with pytest.raises(ValueError, match="one axes a panel, 2; got 1"):
            plot_components(frame, axes[0])

    def test_other_frames_are_refused(self, frame):
        with pytest.raises(ValueError, match="must be what components"):
            plot_components(frame[["ds"]])
        with pytest.raises(ValueError, match=r"must be what components.* got list"):
            plot_components([1.0])
        with pytest.raises(ValueError, match="nothing to draw"):
            plot_components(frame.iloc[:0])
        with pytest.raises(ValueError, match="several series"):
            plot_components(pd.concat([frame, frame]))


def test_all_plots_draw_on_given_axes_and_return_them(features, parts):
    past = history()
    figure, axes = plt.subplots(2, 2)
    a, b, c, d = axes.ravel()
    assert plot_features(features, a) is a
    assert plot_lag_curves(features, ax=b) is b
    assert plot_forecast(past, forecast(past), c) is c
    assert plot_contributions(parts, d) is d
    figure.canvas.draw()
    assert plt.get_fignums() == [figure.number]


def test_inputs_are_left_as_they_are(features, parts):
    past = history()
    future = forecast(past)
    frames = [features, parts, past, future]
    copies = [frame.copy() for frame in frames]
    plot_features(features)
    plot_lag_curves(features)
    plot_forecast(past, future)
    plot_contributions(parts)
    for frame, copy in zip(frames, copies, strict=True):
        assert frame.equals(copy)


def test_importing_the_plots_does_not_load_matplotlib():
    code = "import sys, tsrnn.plotting; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture(scope="module")
def backtested():
    rng = np.random.default_rng(0)
    index = pd.date_range("2001-01", periods=90, freq="MS")
    wide = pd.DataFrame(rng.normal(size=(90, 2)).cumsum(0), index, columns=["north", "south"])
    models = {"AR": ARMA(order=(1, 0)), "walk": ARMA(order=(0, 1, 0))}
    return backtest(models, wide, h=3, n_windows=12, step_size=1, refit=False, level=[50, 80])


class TestBacktest:
    def test_draws_windows_that_do_not_overlap(self, backtested):
        axes = plot_backtest(backtested, "south")
        assert [ax.get_title(loc="left") for ax in axes] == ["AR", "walk"]
        actual, *forecasts = axes[0].get_lines()
        rows = backtested[backtested["unique_id"] == "south"]
        assert len(forecasts) == 4
        spans = [line.get_xdata()[[0, -1]] for line in forecasts]
        assert all(later[0] > earlier[1] for earlier, later in pairwise(spans))
        last = rows[rows["cutoff"] == rows["cutoff"].max()]
        np.testing.assert_array_equal(forecasts[-1].get_ydata(), last["AR"])
        kept = rows.drop_duplicates("ds").set_index("ds")["y"]
        assert set(actual.get_ydata()) <= set(kept)
        assert len(axes[0].collections) == 2 * 4  # bands of both levels

    def test_the_axis_has_the_name_of_the_series(self, backtested):
        axes = plot_backtest(backtested, "south")
        assert [ax.get_ylabel() for ax in axes] == ["south", "south"]

    @pytest.mark.parametrize(("h", "step_size", "gaps"), [(2, 5, 3), (2, 2, 0), (3, 2, 0)])
    def test_actual_values_have_gaps_where_no_window_is(self, h, step_size, gaps):
        w, step = (i.ravel() for i in np.indices((4, h)))
        frame = pd.DataFrame({"unique_id": "a", "cutoff": step_size * w})
        frame = frame.assign(ds=frame["cutoff"] + step + 1, y=1.0, A=2.0, text="x", flag=True)
        (ax,) = plot_backtest(frame)
        assert ax.get_title(loc="left") == "A"
        x = ax.get_lines()[0].get_xdata()
        assert np.isnan(x).sum() == gaps
        np.testing.assert_array_equal(x[np.isfinite(x)], np.unique(frame["ds"]))
        if gaps:
            np.testing.assert_array_equal(np.flatnonzero(np.isnan(x)), [2, 5, 8])

    def test_single_actual_values_are_seen(self):
        frame = pd.DataFrame({"unique_id": "a", "cutoff": [0, 3], "ds": [1, 4], "y": 1.0, "A": 2.0})
        (ax,) = plot_backtest(frame)
        assert ax.get_lines()[0].get_marker() == "."

    def test_first_series_and_some_models(self, backtested):
        (ax,) = plot_backtest(backtested, models=["walk"])
        assert ax.get_ylabel() == "north"

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [({"series": "east"}, "no series 'east'"), ({"models": ["x"]}, "must be among")],
    )
    def test_refuses(self, backtested, arguments, message):
        with pytest.raises(ValueError, match=message):
            plot_backtest(backtested, **arguments)
        with pytest.raises(ValueError, match="a backtest has the columns"):
            plot_backtest(backtested.drop(columns="cutoff"))
        with pytest.raises(ValueError, match="the frame has no rows"):
            plot_backtest(backtested[:0])


class TestDiagnostics:
    def test_bars_are_the_numbers(self, backtested):
        found = diagnose(backtested)
        axes = plot_diagnostics(found, "north")
        assert axes.shape == (2, 2)
        heights = [bar.get_height() for bar in axes[0, 1].patches]
        np.testing.assert_allclose(heights, found.pit.loc[("AR", "north"), "density"])
        segments = axes[1, 0].collections[1].get_segments()
        tips = [segment[1][1] for segment in segments]
        np.testing.assert_allclose(tips, found.acf.loc[("walk", "north"), "acf"])

    def test_of_several_series_the_mean(self, backtested):
        found = diagnose(backtested)
        axes = plot_diagnostics(found)
        tips = [segment[1][1] for segment in axes[0, 0].collections[1].get_segments()]
        expected = found.acf.loc["AR", "acf"].groupby("lag").mean()
        np.testing.assert_allclose(tips, expected)

    def test_too_few_errors_are_said(self, backtested):
        short = backtested[backtested["cutoff"] == backtested["cutoff"].min()]
        axes = plot_diagnostics(diagnose(short))
        assert [text.get_text() for text in axes[0, 0].texts] == [
            "too few errors, or none that vary"
        ]
        assert list(axes[0, 0].get_xticks()) == []

    def test_lags_of_origins_apart(self, backtested):
        found = diagnose(backtested)
        apart = SimpleNamespace(acf=found.acf, pit=found.pit, steps_apart=5)
        axes = plot_diagnostics(apart)
        assert axes[-1, 0].get_xlabel() == "lag, in origins 5 steps apart"
        assert all(tick == int(tick) for tick in axes[-1, 0].get_xticks())

    def test_refuses_an_unknown_series(self, backtested):
        with pytest.raises(ValueError, match="no series 'east'"):
            plot_diagnostics(diagnose(backtested), "east")


def test_a_figure_as_text():
    fig, ax = plt.subplots()
    ax.plot([0, 1], [0, 1])
    text = figure_svg(ax)
    assert text.startswith("<?xml")
    assert text.rstrip().endswith("</svg>")
    assert not plt.fignum_exists(fig.number)
