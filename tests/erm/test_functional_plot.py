"""The plot of a functional carries the numbers of its frame and says what its band is."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt
from sklearn.linear_model import LinearRegression

from tsrnn.erm import block_bootstrap, impulse_response, memory, partial_dependence
from tsrnn.plotting import figure_svg, plot_functional


@pytest.fixture(autouse=True)
def _no_figure_or_setting_stays():
    before = dict(mpl.rcParams)
    yield
    plt.close("all")
    assert dict(mpl.rcParams) == before


@pytest.fixture(scope="module")
def frames():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4))
    z = X @ [0.0, 0.25, 0.5, 1.0] + rng.normal(size=100)
    refits = block_bootstrap(LinearRegression(), X, z, n_estimators=19, random_state=0)
    return {
        "dependence": partial_dependence(refits, X, lag=1),
        "impulse": impulse_response(refits, X),
        "step": impulse_response(refits, X, persistent=True),
        "memory": memory(refits, X, random_state=0),
        "bare": impulse_response(refits.estimator, X),
        "few": impulse_response(refits, X, level=95),
    }


def curve(ax):
    return next(line for line in ax.get_lines() if line.get_label() == "Estimate")


def legend_texts(ax):
    return {text.get_text() for text in ax.get_legend().get_texts()}


def title(ax):
    return " ".join(ax.get_title(loc="left").split())


@pytest.mark.parametrize("kind", ["dependence", "impulse", "step", "memory"])
def test_curve_and_band_are_those_of_the_frame(frames, kind):
    frame = frames[kind]
    ax = plot_functional(frame)
    points = frame.iloc[:, 0]
    np.testing.assert_array_equal(curve(ax).get_xdata(), points)
    np.testing.assert_array_equal(curve(ax).get_ydata(), frame["estimate"])
    (band,) = ax.collections
    corners = {tuple(corner) for corner in band.get_paths()[0].vertices.tolist()}
    for side in ("lower", "upper"):
        assert set(zip(points, frame[side], strict=True)) <= corners
    assert {"Estimate", "90% band"} <= legend_texts(ax)
    assert title(ax) == (
        "90% band from 19 block bootstrap refits (block length 1): pointwise and asymptotic"
    )
    assert (ax.get_xlabel(), ax.get_ylabel()) == (frame.attrs["xlabel"], frame.attrs["ylabel"])
    assert ax.get_xlabel()
    assert ax.get_ylabel()


def test_axes_are_named_for_what_they_show(frames):
    assert plot_functional(frames["dependence"]).get_xlabel() == "Value at lag 1"
    assert plot_functional(frames["impulse"]).get_ylabel() == "Mean change of prediction"


def test_memory_shows_its_threshold_and_length(frames):
    length = frames["memory"].attrs["memory_length"]
    texts = legend_texts(plot_functional(frames["memory"]))
    assert {"Threshold 0.05", f"Memory length {length}"} <= texts
    longer = frames["memory"].copy()
    longer.attrs["memory_length"] = None
    assert not any(text.startswith("Memory") for text in legend_texts(plot_functional(longer)))


def test_without_refits_there_is_no_band_and_it_says_so(frames):
    ax = plot_functional(frames["bare"])
    assert not ax.collections
    assert title(ax) == "No band: of one fitted estimator"


def test_too_few_refits_are_called_a_range(frames):
    ax = plot_functional(frames["few"])
    assert "Range of refits" in legend_texts(ax)
    assert title(ax).startswith("Range of 19 block bootstrap refits")


def test_axes_of_the_user_are_used_and_figures_can_be_written(frames):
    _, axes = plt.subplots(1, 2, layout="constrained")
    assert plot_functional(frames["memory"], axes[1]) is axes[1]
    assert not axes[0].get_lines()
    assert figure_svg(axes).startswith("<?xml")


def test_what_cannot_be_drawn_is_refused(frames):
    with pytest.raises(TypeError, match="must be a DataFrame; got dict"):
        plot_functional({})
    with pytest.raises(ValueError, match="with its attrs; got columns"):
        plot_functional(pd.DataFrame({"lag": [0], "estimate": [1.0]}))
    with pytest.raises(ValueError, match="no rows"):
        plot_functional(frames["impulse"].iloc[:0])
