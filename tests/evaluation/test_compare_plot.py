"""The plot of a comparison: its artists carry the numbers of the tables."""

from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

from tsrnn.plotting import plot_comparison


@pytest.fixture(autouse=True)
def _no_figure_stays():
    yield
    plt.close("all")


def result(coverage=True, ranks=True, n_models=3, steps=4):
    names = [f"M{i}" for i in range(n_models)]
    index = pd.MultiIndex.from_product([range(1, steps + 1), names], names=["step", "model"])
    draw = np.random.default_rng(0)
    columns = ["MAE", "RMSE", *(["coverage-52.5", "coverage-80"] if coverage else [])]
    table = pd.DataFrame(draw.uniform(size=(len(index), len(columns))), index, columns)
    mean = pd.Series(1.0 + np.arange(n_models), names)
    return SimpleNamespace(
        accuracy=table.groupby("model").mean().loc[names],
        by_step=table,
        measure="RMSE",
        ranks=pd.DataFrame({"mean_rank": mean, "near_best": mean < 2.5})[: n_models * ranks],
        critical_difference=1.5,
    )


def test_lines_are_the_measure_by_step():
    given = result()
    ax = plot_comparison(given)[0]
    for line, name in zip(ax.get_lines(), given.accuracy.index, strict=True):
        assert line.get_label() == name
        wanted = given.by_step["RMSE"].xs(name, level="model")
        np.testing.assert_array_equal(line.get_xdata(), wanted.index)
        np.testing.assert_array_equal(line.get_ydata(), wanted)
    assert ax.get_ylabel() == "RMSE"


def test_there_is_a_panel_for_each_coverage_and_for_ranks():
    axes = plot_comparison(result(), measure="MAE")
    labels = [ax.get_ylabel() for ax in axes[:3]]
    assert labels == ["MAE", "Coverage of the 52.5% interval", "Coverage of the 80% interval"]
    assert axes[2].get_lines()[0].get_ydata()[0] == 0.8
    assert len(axes) == 4
    assert len(axes[0].figure.axes) == 4
    assert len(plot_comparison(result(coverage=False, ranks=False))) == 1
    assert len(plot_comparison(result(coverage=False))[0].figure.axes) == 2


@pytest.mark.few("left_out0-True-True", "left_out1-False-False")
@pytest.mark.parametrize("coverage", [True, False])
@pytest.mark.parametrize("ranks", [True, False])
@pytest.mark.parametrize("left_out", [[], ["coverage-80"]])
def test_no_quadrant_is_empty(coverage, ranks, left_out):
    given = result(coverage, ranks)
    given.by_step = given.by_step.drop(columns=left_out, errors="ignore")
    axes = plot_comparison(given)
    figure = axes[0].figure
    figure.canvas.draw()
    assert len(figure.axes) == len(axes)
    assert all(ax.lines for ax in axes)
    cells = [cell for ax in axes for cell in range(ax.get_subplotspec().num1,
                                                   ax.get_subplotspec().num2 + 1)]  # fmt: skip
    rows, columns = axes[0].get_gridspec().get_geometry()
    assert cells == list(range(rows * columns))
    for ax in axes:
        box = ax.get_tightbbox()
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= figure.bbox.width + 1
        assert box.y1 <= figure.bbox.height + 1


def test_panels_can_be_chosen():
    given = result()
    (ax,) = plot_comparison(given, panels=["coverage-80"])
    assert ax.get_ylabel() == "Coverage of the 80% interval"
    (ax,) = plot_comparison(given, panels=["ranks"])
    assert ax.get_xlabel().startswith("Mean rank")
    assert not ax.figure.legends
    with pytest.raises(ValueError, match=r"`panels` must be among \['RMSE'.*got \['x'\]"):
        plot_comparison(given, panels=["x"])


def test_ranks_near_the_best_are_filled():
    given = result(coverage=False)
    ax = plot_comparison(given)[1]
    points = ax.get_lines()
    assert [point.get_xdata()[0] for point in points] == [1.0, 2.0, 3.0]
    assert [point.get_markerfacecolor() == "white" for point in points] == [False, False, True]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["M0", "M1", "M2"]
    (bar,) = ax.patches
    np.testing.assert_allclose([bar.get_x(), bar.get_width()], [1.0, 1.5])


def test_more_models_than_colours_differ_by_their_lines():
    lines = plot_comparison(result(n_models=13))[0].get_lines()
    styles = {(line.get_color(), line.get_linestyle()) for line in lines}
    assert len(styles) == 13


def test_more_models_than_colours_differ_by_their_markers_of_ranks():
    points = plot_comparison(result(n_models=13, coverage=False))[1].get_lines()
    assert len({(point.get_color(), point.get_marker()) for point in points}) == 13


def test_the_legend_fits_and_has_names_as_they_are():
    given = result(n_models=12, coverage=False)
    names = ["_hidden", "$x_1$", *(f"ParaRNN(hidden={i}), seasonal log" for i in range(10))]
    renamed = dict(zip(given.accuracy.index, names, strict=True))
    for name in ("accuracy", "by_step", "ranks"):
        setattr(given, name, getattr(given, name).rename(index=renamed))
    figure = plot_comparison(given)[0].figure
    figure.canvas.draw()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == names
    assert not any(text.get_parse_math() for text in legend.get_texts())
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
    ticks = figure.axes[1].get_yticklabels()
    assert not any(tick.get_parse_math() for tick in ticks)


def test_levels_of_coverage_have_no_place_in_the_legend():
    figure = plot_comparison(result(), measure="coverage-80")[0].figure
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["M0", "M1", "M2"]


def test_models_without_intervals_have_no_line_of_coverage():
    given = result()
    given.by_step.loc[(slice(None), "M1"), "coverage-80"] = np.nan
    labels = [line.get_label() for line in plot_comparison(given)[2].get_lines()[1:]]
    assert labels == ["M0", "M2"]


def test_comparisons_are_drawn():
    from tsrnn.evaluation import compare

    draw = np.random.default_rng(0)
    w, h = (i.ravel() for i in np.indices((25, 1)))
    frame = pd.DataFrame(
        {"unique_id": "a", "ds": w + h + 1, "cutoff": w, "y": draw.normal(size=25)}
    )
    frame = frame.assign(A=0.0, B=1.0, **{"A-lo-80": -1.0, "A-hi-80": 1.0})
    axes = plot_comparison(compare(frame, n_boot=10))
    assert len(axes) == 3
    axes[0].figure.canvas.draw()


def test_bad_arguments_are_refused():
    with pytest.raises(TypeError, match=r"must be what compare\(\) gives; got DataFrame"):
        plot_comparison(pd.DataFrame())
    with pytest.raises(ValueError, match=r"`measure` must be one of \['MAE'.*got 'R2'"):
        plot_comparison(result(), measure="R2")
