"""What `compare` accepts, refuses, leaves out and prints."""

import numpy as np
import pandas as pd
import pytest

from tsrnn.evaluation import compare


def made(n_series=1, n_windows=25, steps=3, models=("A", "B", "C"), levels=(), step_size=1, seed=0):
    rng = np.random.default_rng(seed)
    s, w, h = (i.ravel() for i in np.indices((n_series, n_windows, steps)))
    start = pd.Timestamp("2020-01-01")
    frame = pd.DataFrame(
        {
            "unique_id": np.array([f"s{i}" for i in range(n_series)])[s],
            "ds": start + pd.to_timedelta(w * step_size + h + 1, unit="D"),
            "cutoff": start + pd.to_timedelta(w * step_size, unit="D"),
            "y": rng.normal(size=len(s)),
        }
    )
    for i, name in enumerate(models):
        frame[name] = frame["y"] + (1 + 0.2 * i) * rng.normal(size=len(s))
        for level in levels:
            frame[f"{name}-lo-{level}"] = frame[name] - level / 50
            frame[f"{name}-hi-{level}"] = frame[name] + level / 50
    ids = frame["unique_id"].unique().tolist()
    frame.attrs["backtest"] = {
        "h": steps, "season_length": 7, "kind": "mean", "failures": [],
        "scale": {"unique_id": ids, "mae": [1.0] * len(ids), "mse": [2.0] * len(ids)},
    }  # fmt: skip
    return frame


def fast(frame, **arguments):
    return compare(frame, n_boot=20, **arguments)


class TestLeftOut:
    def test_missing_actuals_are_left_out_and_counted(self):
        frame = made(2)
        frame.loc[frame.index[[0, 1, 80]], "y"] = np.nan
        result = fast(frame)
        rest = fast(frame.dropna(subset="y").groupby(["unique_id", "cutoff"]).filter(
            lambda rows: len(rows) == 3
        ))  # fmt: skip
        assert rest.n_windows == 48
        assert result.n_windows == 50
        assert "3 rows without an actual value left out for every model, of s0, s1." in result.notes
        error = (frame["y"] - frame["B"]).abs()
        wanted = error.groupby(frame["unique_id"]).mean().mean()
        assert result.accuracy.loc["B", "MAE"] == pytest.approx(wanted, rel=1e-12)

    def test_windows_in_which_a_model_failed_are_left_out_for_all(self):
        frame = made()
        frame.loc[6:8, "B"] = np.nan
        frame.attrs["backtest"]["failures"] = [
            {"model": "B", "cutoff": "2020-01-03", "error": "LinAlgError: singular"}
        ]
        result = fast(frame)
        note = (
            "B has no forecast in 1 window (s0 at 2020-01-03): LinAlgError: singular; left out for "
            "every model."
        )
        assert note in result.notes
        other = fast(frame.drop(range(6, 9)))
        pd.testing.assert_frame_equal(result.accuracy, other.accuracy)
        assert result.n_windows == 24

    def test_reasons_are_those_of_the_series_without_repeats_and_dots(self):
        frame = made(2)
        frame.loc[(frame["unique_id"] == "s1") & (frame.index < 81), "B"] = np.nan
        again = "RuntimeError: not fitted, as in an earlier window: ValueError: too short."
        frame.attrs["backtest"]["failures"] = [
            {"model": "B", "unique_id": "s0", "cutoff": "2020-01-01", "error": "of another"},
            {"model": "B", "unique_id": "s1", "cutoff": "2020-01-01", "error": again},
        ]
        assert any(
            "(s1 at 2020-01-01, s1 at 2020-01-02): ValueError: too short; left out for every" in n
            for n in fast(frame).notes
        )
        frame["C"] = np.nan
        frame.attrs["backtest"]["failures"] = [{"model": "C", "error": "ValueError: short."}]
        assert "C has no forecast at all and is left out: ValueError: short." in fast(frame).notes

    def test_single_missing_forecasts_leave_out_their_rows_for_all(self):
        frame = made()
        frame.loc[7, "B"] = np.nan
        result = fast(frame)
        error = (frame["y"] - frame["A"]).drop(7)
        assert result.accuracy.loc["A", "MAE"] == pytest.approx(error.abs().mean(), rel=1e-12)
        assert any(
            n.startswith("B lacks 1 forecast in windows it has otherwise") for n in result.notes
        )

    def test_a_model_without_any_forecast_is_left_out(self):
        frame = made()
        frame["B"] = np.nan
        result = fast(frame, benchmark="B")
        assert sorted(result.models) == ["A", "C"]
        assert "B has no forecast at all and is left out." in result.notes

    def test_a_series_without_rows_is_named(self):
        frame = made(3)
        frame.loc[frame["unique_id"] == "s1", "y"] = np.nan
        result = fast(frame)
        assert result.n_series == 2
        assert "1 series without a row left: s1." in result.notes

    def test_one_model_is_measured_but_not_tested(self):
        result = fast(made(models=("A",)))
        assert result.models == ["A"]
        assert result.over is None
        assert result.words() == [
            "A is measured over 25 windows of 3 steps, of one series; there is no other model to "
            "test it against."
        ]
        assert "MAE" in str(result.summary())

    def test_series_without_a_scale_are_said_to_leave_tests_and_ranks(self):
        frame = made(25)
        facts = frame.attrs["backtest"]
        facts["scale"]["mse"][5:] = [0.0] * 20
        result = fast(frame, over="series")
        assert set(result.diebold_mariano["n"]) == {5}
        assert "Ranks rest on 5 series only." in result.notes
        assert any(
            n.startswith("20 series without a positive scale before the first cutoff left out of "
                         "MASE, RMSSE and OWA, and of the tests and the ranks")
            and n.endswith("The other measures are of all 25 series, these of 5.")
            for n in result.notes
        )  # fmt: skip
        assert not any("Windows hold between" in n for n in fast(frame).notes)

    def test_panels_without_scales_are_said_to_be_unscaled(self):
        frame = made(3)
        frame.attrs = {}
        assert any("not scaled" in note for note in fast(frame).notes)
        assert not any("not scaled" in note for note in fast(made(3)).notes)


class TestColumns:
    def test_models_are_the_numeric_columns_without_suffix(self):
        frame = made(levels=(80, 52.5)).assign(text="x", flag=True)
        assert sorted(fast(frame).models) == ["A", "B", "C"]
        assert {"Winkler-80", "coverage-52.5"} <= set(fast(frame).accuracy.columns)

    def test_models_can_be_chosen(self):
        assert sorted(fast(made(), models=["C", "A"]).models) == ["A", "C"]

    def test_other_types_of_time_and_numbers_give_the_same(self):
        frame = made(2)
        wanted = fast(frame).accuracy
        for name in ("ds", "cutoff"):
            days = (frame[name] - pd.Timestamp("2020-01-01")).dt.days
            frame = frame.assign(**{f"{name}_": days})
        numbered = frame.drop(columns=["ds", "cutoff"]).rename(
            columns={"ds_": "ds", "cutoff_": "cutoff"}
        )
        periods = frame.drop(columns=["ds_", "cutoff_"])
        periods = periods.assign(
            ds=periods["ds"].dt.to_period("D"), cutoff=periods["cutoff"].dt.to_period("D")
        )
        zoned = frame.drop(columns=["ds_", "cutoff_"])
        zoned = zoned.assign(
            ds=zoned["ds"].dt.tz_localize("UTC"), cutoff=zoned["cutoff"].dt.tz_localize("UTC")
        )
        nullable = made(2).astype({"y": "Float64", "A": "Float32", "unique_id": "category"})
        for other in (numbered, periods, zoned):
            other.attrs = made(2).attrs
            pd.testing.assert_frame_equal(fast(other).accuracy, wanted)
        nullable.attrs = made(2).attrs
        pd.testing.assert_frame_equal(fast(nullable).accuracy, wanted, rtol=1e-6)

    def test_the_frame_is_not_changed(self):
        frame = made(2, levels=(80,))
        copy = frame.copy(deep=True)
        result = fast(frame)
        pd.testing.assert_frame_equal(frame, copy)
        pd.testing.assert_frame_equal(result.forecasts, copy)


def _unequal(frame):
    return frame.drop(4)


def _two(frame):
    return pd.concat([frame, frame.iloc[[4]]])


BAD_FRAMES = {
    "list": (lambda f: [1], TypeError, "frame must be a pandas DataFrame.*got list"),
    "no cutoff": (lambda f: f.drop(columns="cutoff"), ValueError, r"lacks \['cutoff'\]"),
    "index": (lambda f: f.set_index("unique_id"), ValueError, r"reset_index\(\)"),
    "empty": (lambda f: f.iloc[:0], ValueError, "at least one row"),
    "no model": (lambda f: f[["unique_id", "ds", "cutoff", "y"]], ValueError, "a numeric column"),
    "twice a column": (lambda f: f[[*f.columns, "A"]], ValueError, "different names; twice: A"),
    "repeated": (_two, ValueError, "one row; 1 are repeated, the first of series 's0', cutoff"),
    "no actual": (lambda f: f.assign(y=np.nan), ValueError, "all of column 'y' is missing"),
    "text y": (lambda f: f.assign(y="a"), TypeError, "column 'y' must be numbers"),
    "infinite": (lambda f: f.assign(B=f["B"].where(f.index != 4, np.inf)), ValueError,
                 "column 'B' must be finite; 1 rows are not"),
    "unequal": (_unequal, ValueError, r"same number of steps, 3 as most have; 1 have not: 's0' at "
                r"2020-01-02 \(2 steps\)"),
    "half interval": (lambda f: f.assign(**{"A-lo-80": f["A"]}), ValueError,
                      "both ends, -lo- and -hi-; of 'A-lo-80'"),
    "interval of nothing": (lambda f: f.assign(**{"X-lo-80": 1.0}), ValueError,
                            "model 'X', of which frame has no column"),
    "too large": (lambda f: f.assign(A=1e160), ValueError, r"exceed 1e\+150 in size"),
    "before cutoff": (lambda f: f.assign(ds=f["cutoff"]), ValueError, "must lie after its cutoff"),
    "types of time": (lambda f: f.assign(cutoff=1), TypeError, "must be of one type"),
    "no id": (lambda f: f.assign(unique_id=None), ValueError, "'unique_id' must have no missing"),
    "no forecasts": (lambda f: f.assign(A=np.nan, B=np.nan, C=np.nan), ValueError,
                     "at least one model must have forecasts"),
    "nothing in common": (
        lambda f: f.assign(A=f["A"].where(f.index < 30), B=f["B"].where(f.index >= 30)), ValueError,
        "there is none for A, B, C. Choose fewer with models="),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_FRAMES)
def test_bad_frames_are_refused(case):
    change, error, message = BAD_FRAMES[case]
    with pytest.raises(error, match=message):
        compare(change(made()))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"models": ["A", "Z"]}, ValueError, r"among \['A', 'B', 'C'\]; got \['Z'\]"),
        ({"models": "A"}, ValueError, r'a list of columns such as \["ARMA"\]'),
        ({"models": ["A", "A"]}, ValueError, "each column once"),
        ({"models": []}, ValueError, "a list of columns"),
        ({"benchmark": "Z"}, ValueError, "benchmark must be one of"),
        ({"loss": "cubic"}, ValueError, "loss must be one of"),
        ({"alpha": 0}, ValueError, "alpha must be a number greater than 0"),
        ({"alpha": 1}, ValueError, "alpha must be below 1"),
        ({"alpha": 5}, ValueError, "alpha must be a number of at most 1; got 5"),
        ({"over": "space"}, ValueError, "over must be one of"),
        ({"n_boot": 0}, ValueError, "n_boot must be a positive integer"),
        ({"random_state": "a"}, TypeError, "random_state must be"),
        ({"season_length": 12}, ValueError, "must be that of the backtest, 7"),
        ({"train": [1]}, TypeError, "train must be a long pandas DataFrame"),
        ({"train": pd.DataFrame({"y": [1.0]})}, ValueError, "train must have the columns"),
        ({"loss": "qlike"}, ValueError, r"must be positive; \d+ of A are not, the first of series"),
    ],
)
def test_bad_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        compare(made(), **arguments)


def test_train_needs_a_season():
    frame = made()
    frame.attrs = {}
    train = pd.DataFrame({"unique_id": "s0", "ds": frame["ds"][:9], "y": 1.0})
    with pytest.raises(ValueError, match="season_length= must be given"):
        compare(frame, train=train.drop_duplicates())


def test_variances_must_not_be_negative():
    frame = made(models=("A",))
    frame["A"] = 1.0
    with pytest.raises(ValueError, match="must not be negative"):
        compare(frame, loss="qlike")


class TestPage:
    @pytest.mark.few("25-12", "1-2")
    @pytest.mark.parametrize("n_models", [1, 2, 5, 12])
    @pytest.mark.parametrize("n_series", [1, 25])
    def test_fits_a_hundred_columns_and_has_all_parts(self, n_models, n_series):
        names = [f"A model with a name rather longer than a page of tables likes {i}"
                 for i in range(n_models)]  # fmt: skip
        if n_models < 5:
            names = [f"M{i}" for i in range(n_models)]
        result = fast(made(n_series, models=names, levels=(80, 95)))
        text = str(result.summary())
        assert max(map(len, text.splitlines())) <= 100
        headings = ["Accuracy, sorted by", "Notes:"]
        if n_models > 1:
            headings += [
                "Diebold-Mariano",
                "Model confidence set",
                "Mean ranks",
                "critical difference",
            ]
        assert all(heading in text for heading in headings)
        flat = " ".join(text.split())
        assert all(" ".join(note.split()) in flat for note in result.notes)
        assert all(" ".join(sentence.split()) in flat for sentence in result.words())
        assert str(result) == text
        assert result.summary()._repr_html_().startswith("<pre>")

    def test_matrix_holds_p_values_and_below_the_adjusted_ones(self):
        result = fast(made())
        (table,) = (t for h, t in result.summary().tables.items() if h.startswith("Diebold"))
        tests = result.diebold_mariano
        for row in tests[tests["step"] == "all"].itertuples():
            for cell, value in (
                (table.loc[row.model_a, row.model_b], row.p_value),
                (table.loc[row.model_b, row.model_a], row.p_adjusted),
            ):
                assert cell == ("<0.001" if value < 0.001 else f"{value:.3f}")

    def test_representation_is_one_line(self):
        text = repr(fast(made(2)))
        assert text.endswith(": 2 series, 50 windows of 3 steps>")
        assert "\n" not in text


def test_long_names_that_begin_alike_have_a_column_each():
    models = [f"forecaster with the same first letters {i}" for i in range(2)]
    lines = str(fast(made(models=models))).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Diebold-Mariano"))
    assert lines[start + 1].count("forecaster with the s...") == 2
    assert [line.count("-") for line in lines[start + 2 : start + 4]] == [1, 1]


def test_frames_of_backtest_are_compared():
    from tsrnn import ARMA
    from tsrnn.evaluation import backtest

    y = pd.Series(np.random.default_rng(0).normal(size=90).cumsum(), name="y")
    models = {"walk": ARMA(order=(1, 0)), "noise": ARMA(order=(0, 1))}
    frame = backtest(models, y, h=3, n_windows=25, step_size=1, refit=False, level=80)
    result = fast(frame)
    assert result.models == ["walk", "noise"]
    assert (result.n_windows, result.horizon, result.over) == (25, 3, "time")
    assert {"MASE", "CRPS", "coverage-80"} <= set(result.accuracy.columns)
