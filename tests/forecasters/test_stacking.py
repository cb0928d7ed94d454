"""Stacked forecasts: weights by rolling forecasts, and everything that a forecaster can do."""

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tsrnn import LRUForecaster, ParaRNNForecaster, load
from tsrnn.contract import DamagedFileError, read_file, write_file
from tsrnn.data import read_panel
from tsrnn.export import export_torch
from tsrnn.forecasters import FittedPrior, FittedStacked
from tsrnn.forecasters._stacking import ValidationPart
from tsrnn.forecasters._validation_part import independent_horizons

NEW = 4


def wave(rows, seed=0, name="a"):
    rng = np.random.default_rng(seed)
    t = np.arange(rows)
    values = 50 + 10 * np.sin(2 * np.pi * t / 7) + 0.1 * rng.standard_normal(rows).cumsum()
    days = pd.date_range("2020-01-01", periods=rows)
    return pd.DataFrame({"unique_id": name, "ds": days, "y": values + rng.standard_normal(rows)})


FRAME = pd.concat([wave(330), wave(300, 1, "b")], ignore_index=True)
LATE = FRAME.groupby("unique_id").cumcount(ascending=False) < NEW
PAST, LATER = FRAME[~LATE].reset_index(drop=True), FRAME[LATE].reset_index(drop=True)


@pytest.fixture(scope="module")
def model():
    return ParaRNNForecaster(NEW, random_state=0).fit(PAST)


def numbers(frame):
    return frame.drop(columns=["unique_id", "ds", "cutoff"], errors="ignore").to_numpy(float)


# Weights


def part_of(errors, scale=1.0):
    """Validation part of a series whose values are errors of forecasts of zero."""
    rows = len(errors) * 2
    series = np.zeros(rows)
    series[-len(errors) :] = errors
    series[: rows - len(errors)] = scale * (np.arange(rows - len(errors)) % 2)
    panel = read_panel(pd.Series(series, pd.date_range("2020-01-01", periods=rows)))
    return ValidationPart.of(panel, np.array([rows - len(errors)]), 1, 1)


def candidates(part, *centres):
    shape = part.actual.shape
    return [{"": np.full(shape, centre)} for centre in centres]


def test_weights_are_the_posterior_mean_under_errors_of_laplace():
    rng = np.random.default_rng(0)
    part = part_of(rng.standard_normal(40))
    forecasts = candidates(part, 0.3, -0.5)
    weights = part.weights(forecasts)
    # The same integral on another grid, a finer one.
    grid = np.linspace(0, 1, 2001)
    losses = np.array([np.abs(part.actual - (w * 0.3 - (1 - w) * 0.5)).mean() for w in grid])
    density = grid**2 * losses ** (-8 * part.n_horizons)
    assert weights[0] == pytest.approx((grid * density).sum() / density.sum(), abs=0.01)


def test_of_candidates_that_are_alike_the_first_has_three_shares():
    part = part_of(np.random.default_rng(0).standard_normal(60))
    weights = part.weights(candidates(part, 0.1, 0.1, 0.1))
    np.testing.assert_allclose(weights, [0.6, 0.2, 0.2], atol=0.04)


def test_a_candidate_that_is_clearly_worse_has_no_weight():
    part = part_of(np.random.default_rng(0).standard_normal(90))
    assert part.weights(candidates(part, 0.0, 9.0)).tolist() == [1, 0]
    assert part.weights(candidates(part, 9.0, 0.0))[1] > 0.9


def test_weights_do_not_depend_on_the_unit_of_the_data():
    errors = np.random.default_rng(0).standard_normal(60)
    weights = []
    for unit in (1.0, 1e6):
        part = part_of(unit * errors, unit)
        weights.append(part.weights(candidates(part, 0.2 * unit, -0.9 * unit)))
    np.testing.assert_allclose(*weights, rtol=1e-6)


def test_widths_follow_the_errors():
    part = part_of(3 * np.random.default_rng(0).standard_normal(400))
    shape = part.actual.shape
    narrow = {
        "": np.zeros(shape), "-lo-80": np.full(shape, -1.2816), "-hi-80": np.full(shape, 1.2816),
    }  # fmt: skip
    assert part.widths(narrow)[0] == pytest.approx(3, rel=0.15)


@pytest.mark.parametrize(("length", "count"), [(30, 0), (60, 1), (900, 14)])
def test_horizons_of_a_validation_part(length, count):
    assert independent_horizons(np.array([length]), 12) == pytest.approx(count, abs=0.6)


# The default


def test_short_series_are_forecast_by_the_prior_network_alone():
    assert isinstance(ParaRNNForecaster(NEW).fit(wave(60)).fitted_, FittedPrior)


def test_a_series_that_moves_late_is_forecast_by_the_prior_network_alone():
    frame = wave(330)
    frame.loc[:299, "y"] = 7.5  # its errors have no scale
    model = ParaRNNForecaster(NEW).fit(frame)
    assert isinstance(model.fitted_, FittedPrior)
    assert np.isfinite(numbers(model.predict(level=80))).all()


@pytest.mark.slow
def test_a_panel_with_a_series_of_three_rows_is_forecast_by_the_prior_network():
    frame = pd.concat([PAST, wave(3, 2, "c")], ignore_index=True)
    model = ParaRNNForecaster(NEW).fit(frame)
    assert isinstance(model.fitted_, FittedPrior)
    assert np.isfinite(numbers(model.predict(level=80))).all()


@pytest.mark.slow
def test_the_horizon_is_that_of_the_frequency_whatever_the_shortest_series():
    frame = pd.concat([PAST, wave(20, 2, "c")], ignore_index=True)
    model = ParaRNNForecaster().fit(frame)
    assert isinstance(model.fitted_, FittedStacked)
    assert {part.horizon_ for part in model.parts_.values()} == {14}
    assert model.predict().shape == (42, 3)


def test_the_forecast_is_the_weighted_mean_of_those_of_its_parts(model):
    assert isinstance(model.fitted_, FittedStacked)
    assert model.fitted_.weights.sum() == pytest.approx(1)
    forecasts = [numbers(part.predict()) for part in model.parts_.values()]
    mean = sum(w * each for w, each in zip(model.fitted_.weights, forecasts, strict=True))
    np.testing.assert_allclose(numbers(model.predict()), mean)


def test_ends_are_weighted_means_moved_by_the_widths(model):
    levels = [50, 80]
    forecasts = [numbers(part.predict(level=levels)) for part in model.parts_.values()]
    mean = sum(w * each for w, each in zip(model.fitted_.weights, forecasts, strict=True))
    mean = mean.reshape(2, NEW, -1)
    point = mean[..., :1]
    expected = point + model.fitted_.widths[:, None] * (mean - point)
    np.testing.assert_allclose(numbers(model.predict(level=levels)).reshape(mean.shape), expected)


def test_contributions_add_up_to_the_forecast(model):
    total = model.contributions().sum(axis=1).to_numpy()
    np.testing.assert_allclose(total, numbers(model.predict()).ravel(), rtol=1e-5)


def test_a_file_has_all_parts(model, tmp_path):
    model.save(tmp_path / "model.tsrnn")
    again = load(tmp_path / "model.tsrnn")
    pd.testing.assert_frame_equal(again.predict(level=80), model.predict(level=80))
    pd.testing.assert_frame_equal(again.fitted_.candidates, model.fitted_.candidates)
    assert str(again.summary()) == str(model.summary())


def test_update_is_a_filter_of_all_rows(model, tmp_path):
    model.save(tmp_path / "model.tsrnn")
    updated = load(tmp_path / "model.tsrnn").update(LATER)
    np.testing.assert_allclose(
        numbers(updated.predict(level=80)), numbers(model.predict(X=FRAME, level=80)), rtol=1e-4
    )


@pytest.mark.slow
def test_a_support_that_later_values_widen_is_that_of_all_parts():
    values = np.random.default_rng(0).gamma(2, 1, 501)
    values[-1] = -2
    series = pd.Series(values, pd.date_range("2020-01-01", periods=501), name="y")
    model = ParaRNNForecaster(1, random_state=0).fit(series[:-1])
    assert isinstance(model.fitted_, FittedStacked)
    with pytest.warns(UserWarning, match="support='real' from here on"):
        model.update(series[-1:])
    assert [part.support_ for part in model.parts_.values()] == [{"y": "real"}] * len(model.parts_)
    assert (model.predict(level=99)["y-lo-99"] < 0).all()
    assert "trained network" in str(model.summary())  # which takes derivatives after a row


def test_the_statistic_of_parts_is_named(model):
    assert model.fitted_.point == "average of the parts"
    prior = replace(model.fitted_, parts={"prior network": model.parts_["prior network"].fitted_})
    assert prior.point == "median"


def test_rolling_forecasts_are_those_after_updates(model, tmp_path):
    model.save(tmp_path / "model.tsrnn")
    rolling = model.predict_rolling(LATER, 2, step_size=2, level=80)
    first = rolling[rolling["cutoff"] == rolling.groupby("unique_id")["cutoff"].transform("min")]
    expected = model.predict(2, level=80)
    columns = ["ParaRNN", "ParaRNN-lo-80", "ParaRNN-hi-80"]
    np.testing.assert_allclose(first[columns], expected[columns], rtol=1e-5)


@pytest.mark.parametrize("targets", [["y"], ["y", "v"]])
def test_rolling_forecasts_of_unequal_series_with_gaps_are_those_after_updates(targets):
    rng, frames = np.random.default_rng(0), []
    for seed, rows in enumerate((340, 300, 260)):
        frame = wave(rows, seed, f"s{seed}")
        frame["v"] = frame["y"] / 2 + 5 * np.sin(np.arange(rows) / 9) + rng.standard_normal(rows)
        for target in targets:
            frame.loc[rng.random(rows) < 0.04, target] = np.nan
        frames.append(frame[["unique_id", "ds", *targets]])
    frame = pd.concat(frames)
    late = frame.groupby("unique_id").cumcount(ascending=False) < 14
    later = {name: rows for name, rows in frame[late].groupby("unique_id")}
    later["s1"] = later["s1"][:9]
    target = targets if len(targets) > 1 else "y"
    model = LRUForecaster(NEW, target=target, random_state=0).fit(frame[~late])
    assert isinstance(model.fitted_, FittedStacked)
    assert "trained network" in model.parts_
    rolling = model.predict_rolling(pd.concat(later.values()), step_size=3, level=80)
    for name, rows in later.items():
        updated, expected = copy.deepcopy(model), []
        for origin in range(0, len(rows) - NEW + 1, 3):
            if origin:
                updated.update(rows[origin - 3 : origin])
            expected.append(updated.predict(level=80, ids=[name]))
        ours = numbers(rolling[rolling["unique_id"] == name])
        np.testing.assert_allclose(ours, numbers(pd.concat(expected)), rtol=1e-5)


def test_a_series_is_forecast_alone_as_in_the_panel(model):
    alone = model.predict(ids=["b"], level=80)
    together = model.predict(level=80)
    together = together[together["unique_id"] == "b"]
    np.testing.assert_allclose(numbers(alone), numbers(together), rtol=1e-5)


def test_paths_have_the_centre_and_width_of_the_forecast(model):
    paths = model.sample_paths(4000, 2, random_state=0)
    values = paths["ParaRNN"].to_numpy()
    drawn = np.quantile(values.reshape(4000, -1), [0.1, 0.5, 0.9], axis=0)
    expected = numbers(model.predict(2, level=80)).T[[1, 0, 2]]
    width = expected[2] - expected[0]
    np.testing.assert_allclose(drawn / width, expected / width, atol=0.25)


def test_paths_of_a_series_that_stands_still_but_for_jumps_are_as_far_as_these():
    levels = np.random.default_rng(1).normal(100, 20, 11).repeat(50)
    steps = pd.Series(levels, pd.date_range("2020-01-01", periods=550), name="y")
    model = LRUForecaster(7, support="real", random_state=0).fit(steps)
    assert isinstance(model.fitted_, FittedStacked)
    assert max(zip(model.fitted_.weights, model.parts_, strict=True))[1] == "trained network"
    paths = model.sample_paths(200, random_state=0)["y"]
    largest = np.abs(np.diff(levels)).max()
    assert np.abs(paths - levels[-1]).max() < 2 * largest


def test_the_summary_says_what_was_tried_and_what_forecasts(model):
    summary = model.summary()
    assert set(summary.candidates.columns) == {"weight", "error", "seconds"}
    for name, weight in zip(model.fitted_.parts, model.fitted_.weights, strict=True):
        assert f"{name} ({weight:.2f})" in summary.composition


@pytest.mark.slow
def test_progress_is_shown_where_it_is_asked_for(capsys, monkeypatch):
    from tsrnn.forecasters import _candidates

    monkeypatch.setattr(_candidates, "SILENT_SECONDS", 0.0)
    ParaRNNForecaster(NEW, verbose=1).fit(PAST)
    assert "ParaRNNForecaster: trying the prior network" in capsys.readouterr().err


def test_parts_are_those_of_stacked_forecasts():
    with pytest.raises(AttributeError, match="one model forecasts here"):
        _ = LRUForecaster(NEW).fit(wave(60)).parts_


@pytest.mark.slow
def test_a_panel_gives_every_target_the_same_weights():
    wide = PAST.pivot(index="ds", columns="unique_id", values="y").dropna()
    model = ParaRNNForecaster(NEW).fit(wide)
    assert isinstance(model.fitted_, FittedStacked)
    assert model.predict(level=80).shape == (NEW, 6)


@pytest.mark.few("columns1")
@pytest.mark.parametrize(
    ("columns", "kind"), [(["wave", "sales"], FittedStacked), (["sales", "visits"], FittedPrior)]
)
def test_counts_alone_are_forecast_by_models_of_counts(columns, kind):
    rng = np.random.default_rng(0)
    sales, visits = rng.poisson(2.0, (2, 300))
    frame = pd.DataFrame({"sales": sales, "visits": visits, "wave": wave(300)["y"].to_numpy()})
    model = ParaRNNForecaster(NEW, random_state=0).fit(frame[columns])
    assert isinstance(model.fitted_, kind)
    forecast = model.predict(level=80)
    ends = forecast[["sales-lo-80", "sales-hi-80"]].to_numpy()
    assert (ends == np.rint(ends)).all()
    assert (ends >= 0).all()
    # An approximation beside other targets: the probability of a Poisson count of 2 is exp(-2).
    zero = model.predict_zero()["sales"].to_numpy()
    assert ((zero > 0.02) & (zero < 0.3)).all()


# Refusals, and values that were not expected


def test_update_with_a_negative_value_widens_the_support_of_all_parts(model, tmp_path):
    model.save(tmp_path / "model.tsrnn")
    updated = load(tmp_path / "model.tsrnn")
    assert updated.support_ == {"y": "nonnegative"}
    later = LATER.assign(y=-LATER["y"])
    with pytest.warns(UserWarning, match="support='real'"):
        updated.update(later)
    assert updated.support_ == {"y": "real"}
    assert {part.support_["y"] for part in updated.parts_.values()} == {"real"}
    assert np.isfinite(numbers(updated.predict(level=80))).all()


@pytest.mark.filterwarnings("ignore:intervals are calibrated for 4 steps")
def test_rolling_forecasts_beyond_the_horizon_are_those_after_updates(model):
    assert "trained network" in model.parts_
    later = pd.concat([wave(336), wave(306, 1, "b")])
    later = later.groupby("unique_id").tail(NEW + 6)
    rolling = model.predict_rolling(later, 9, level=80)
    updated = copy.deepcopy(model).update(later.groupby("unique_id").head(1))
    expected = pd.concat([model.predict(9, level=80), updated.predict(9, level=80)])
    last = rolling.groupby("unique_id")["cutoff"].transform("max")
    both = pd.concat([rolling[rolling["cutoff"] < last], rolling[rolling["cutoff"] == last]])
    np.testing.assert_allclose(numbers(both), numbers(expected), rtol=1e-5)


@pytest.mark.parametrize(
    "changes", [{}, {"prior": None, "network": True, "max_epochs": 2, "batch_size": 4}]
)
def test_neither_order_nor_names_of_series_change_a_forecast(changes):
    """A network is trained on the same segments in the same order."""
    frames = [wave(130, seed, f"s{seed}") for seed in range(9)]
    renamed = [frame.assign(unique_id="x" + frame["unique_id"]) for frame in frames]
    first, second = (
        LRUForecaster(NEW, random_state=0, **changes).fit(pd.concat(order)).predict(level=80)
        for order in (frames, [renamed[i] for i in (3, 8, 0, 2, 7, 1, 5, 6, 4)])
    )
    assert second["unique_id"].unique().tolist()[:2] == ["xs3", "xs8"]
    second = second.sort_values(["unique_id", "ds"])
    np.testing.assert_allclose(numbers(first), numbers(second), rtol=1e-5)


def test_steps_beyond_the_calendar_are_refused_before_they_are_forecast(model, monkeypatch):
    monkeypatch.setattr(FittedStacked, "forecast", None)
    with pytest.raises(ValueError, match="between the years 1678 and 2261"):
        model.predict(100_000)


def test_a_network_without_effect_is_named_as_a_part_of_the_forecast():
    line = pd.Series(np.random.default_rng(0).normal(9, 1, 500).cumsum(), name="y")
    model = ParaRNNForecaster(4, random_state=0).fit(line)
    assert model.best_epochs_ == [0]
    (reason,) = model.inactive_networks_.values()
    weight = model.fitted_.candidates.loc["trained network", "weight"]
    assert f"the trained network alone, with weight {weight:.2f} in the forecast" in reason
    assert ("the prior network (" in reason) == ("prior network" in model.parts_)


def test_a_series_of_a_stacked_panel_is_forecast_by_its_id(model):
    with pytest.raises(ValueError, match=r"all series share .* predict\(ids=\.\.\.\)"):
        model.for_series("a")


def test_paths_beyond_the_horizon_of_the_heaviest_part_are_refused(model):
    trained = copy.copy(model)
    weights = np.where(np.array(list(model.parts_)) == "trained network", 0.9, 0.05)
    trained.fitted_ = replace(model.fitted_, weights=weights)
    with pytest.raises(ValueError, match="needs h of at most the fitted horizon, 4; got 9"):
        trained.sample_paths(3, 9)


@pytest.mark.parametrize("method", ["components", "plot_components"])
def test_components_name_the_part_that_has_them(model, method):
    assert "prior network" in model.parts_
    with pytest.raises(ValueError, match=r"parts_\['prior network'\]\.components\(\)"):
        getattr(model, method)()


def test_export_of_several_parts_names_them(model, tmp_path):
    advice = r"'trained network' forecast together.* model\.parts_\['trained network'\]"
    with pytest.raises(ValueError, match=advice):
        export_torch(model, tmp_path / "model.pt2")


def test_a_gross_error_among_later_rows_leaves_the_forecast_to_the_prior_network(model):
    later = LATER.copy()
    later.loc[0, "y"] = 1e6  # of series "a"
    usual, wrong = (copy.deepcopy(model).update(rows) for rows in (LATER, later))
    alone = wrong.parts_["trained network"].predict()
    assert numbers(alone)[:NEW].max() > 1000
    before, after = (numbers(m.predict(level=80)) for m in (usual, wrong))
    names, weights = list(model.parts_), wrong.fitted_.weights[:, None, None]
    rest = np.delete(np.arange(len(names)), names.index("trained network"))
    both = np.array([numbers(part.predict()) for part in wrong.parts_.values()])
    expected = (weights * both)[rest].sum(0) / weights[rest].sum()
    np.testing.assert_allclose(after[:NEW, :1], expected[:NEW])
    np.testing.assert_allclose(after[NEW:], before[NEW:])  # series "b"
    shares = wrong.contributions().filter(like="trained network").iloc[:NEW].to_numpy(float)
    assert not shares.any()
    wrong.update(pd.concat([wave(530), wave(500, 1, "b")]).groupby("unique_id").tail(200))
    both = np.array([numbers(part.predict()) for part in wrong.parts_.values()])
    np.testing.assert_allclose(numbers(wrong.predict()), (weights * both).sum(0))


FORGED = {
    "far": lambda fitted, arrays: fitted.update(farthest=-1.0),
    "far nothing": lambda fitted, arrays: fitted.update(farthest=float("nan")),
    "text": lambda fitted, arrays: fitted["candidates"]["prior network"].__setitem__(1, "a"),
    "list": lambda fitted, arrays: fitted["candidates"]["prior network"].__setitem__(1, [1.0]),
    "huge": lambda fitted, arrays: fitted["candidates"]["prior network"].__setitem__(1, 10**400),
    "null": lambda fitted, arrays: fitted["candidates"]["prior network"].__setitem__(1, None),
    "weight": lambda fitted, arrays: fitted["candidates"]["prior network"].__setitem__(0, 0.9),
    "stranger": lambda fitted, arrays: fitted["candidates"].update(other=[9.0, 1.0, 1.0]),
    "nested": lambda fitted, arrays: fitted["parts"].update({"prior network": {"parts": {}}}),
    "horizon": lambda fitted, arrays: fitted["parts"]["prior network"].update(horizon=3),
    "negative": lambda fitted, arrays: arrays["stacking.weights"].__imul__(-1),
    "sum": lambda fitted, arrays: arrays["stacking.weights"].__imul__(5),
    "no weights": lambda fitted, arrays: arrays["stacking.weights"].fill(np.nan),
    "no widths": lambda fitted, arrays: arrays["stacking.widths"].fill(np.nan),
    "infinite widths": lambda fitted, arrays: arrays["stacking.widths"].fill(np.inf),
    "negative widths": lambda fitted, arrays: arrays["stacking.widths"].fill(-1),
    "rows of the prior": lambda fitted, arrays: arrays["0/n_rows"].fill(-5),
    "rows of the network": lambda fitted, arrays: arrays["1/n_rows"].fill(0),
}


@pytest.mark.parametrize("case", FORGED)
def test_forged_files_are_refused(model, tmp_path, case):
    place = tmp_path / "model.tsrnn"
    model.save(place)
    header, arrays = read_file(place)
    arrays = {name: array.copy() for name, array in arrays.items()}
    FORGED[case](header["fitted"], arrays)
    write_file(place, header, arrays)
    with pytest.raises(DamagedFileError, match="save the model again"):
        load(place)
