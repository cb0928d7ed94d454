"""Forecasts of the command line are those of Python."""

import numpy as np
import pandas as pd
import pytest

from tsrnn import ARMA, ETS, GARCH, ParaRNNForecaster, load
from tsrnn.baselines import Naive
from tsrnn.data import to_polars

pytestmark = pytest.mark.usefixtures("files")

SMALL = "--set max_epochs=1 --set hidden_size=8 --random-state 0"


def agree(table, frame, time="ds"):
    """Hold a table of texts against a frame of forecasts."""
    expected = frame if time in frame else frame.rename_axis(time).reset_index()
    assert list(table.columns) == list(expected.columns)
    assert pd.to_datetime(table[time]).tolist() == expected[time].tolist()
    numbers = expected.select_dtypes("number").columns
    np.testing.assert_allclose(table[numbers], expected[numbers], rtol=1e-9)


def test_a_single_series_in_a_wide_file(table, elnino):
    given = table("forecast elnino.csv --h 5 --level 80,95 --model arma")
    agree(given, ARMA().fit(elnino).predict(5, level=[80, 95]))


@pytest.mark.parametrize(
    ("option", "support"), [("real", "real"), ("10,", (10, None)), ("0,30.5", (0, 30.5))]
)
def test_what_a_value_can_be(table, elnino, option, support):
    given = table(f"forecast elnino.csv --h 5 --level 95 --model arma --support {option}")
    agree(given, ARMA(support=support).fit(elnino).predict(5, level=95))


def test_several_variables_in_a_wide_file(table, macro):
    given = table("forecast macro.csv --h 3 --level 80 --level 95 --model arma")
    agree(given, ARMA().fit(macro).predict(3, level=[80, 95]))


def test_a_long_file_of_several_series(table, panel):
    given = table("forecast panel.csv --h 4 --level 90 --model arma")
    assert given["unique_id"].tolist() == np.repeat(["007", "NA", "b"], 4).tolist()
    agree(given, ARMA().fit(panel).predict(4, level=90))


def test_a_single_series_in_a_long_file(table, panel, tmp_path):
    one = panel[panel["unique_id"] == "b"][["ds", "y"]]
    one.to_csv(tmp_path / "one.csv", index=False)
    agree(table("forecast one.csv --h 4 --model naive"), Naive().fit(one).predict(4))


def test_the_network_is_the_default(table, panel):
    given = table(f"forecast panel.csv --h 3 --level 80 {SMALL}")
    model = ParaRNNForecaster(3, max_epochs=1, hidden_size=8, random_state=0)
    agree(given, model.fit(panel).predict(3, level=80))


@pytest.mark.few("panel")
@pytest.mark.parametrize("shape", ["panel", "macro"])
def test_networks_by_series(request, table, refused, tmp_path, shape):
    frame = request.getfixturevalue(shape)
    wide = "--wide " if shape == "macro" else ""
    command = f"forecast {shape}.csv {wide}--h 3 --level 80 {SMALL} --set per_series=true"
    given = table(f"{command} --save by_series.tsrnn")
    settings = {"max_epochs": 1, "hidden_size": 8, "random_state": 0, "per_series": True}
    model = ParaRNNForecaster(3, **settings).fit(frame)
    agree(given, model.predict(3, level=80))
    agree(table("forecast --load by_series.tsrnn --h 2"), model.predict(2))
    if shape == "panel":
        new = frame.replace({"unique_id": {"b": "new"}})
        new.to_csv(tmp_path / "new.csv", index=False)
        assert "a network for each series fitted to" in refused(
            "forecast new.csv --load by_series.tsrnn"
        )
    assert "per_series must be True or False" in refused(command.replace("=true", "=yes"))


def test_the_same_seed_gives_the_same_forecasts(answer):
    command = f"forecast panel.csv --h 3 {SMALL}"
    assert answer(command) == answer(command)


def test_csv_from_stdin(table, files, panel):
    given = table("forecast - --h 2 --model naive", (files / "panel.csv").read_text())
    agree(given, Naive().fit(panel).predict(2))


def test_settings_are_json_or_text_or_words_of_python(table, elnino):
    set_ = "--set trend=add --set damped=True --set seasonal=none"
    given = table(f"forecast elnino.csv --h 3 --model ets {set_}")
    model = ETS(trend="add", damped=True, seasonal="none")
    agree(given, model.fit(elnino).predict(3))


def test_a_list_is_an_order(table, elnino):
    given = table(["forecast", "elnino.csv", "--h", 3, "--model", "arma", "--set", "order=[2, 0]"])
    agree(given, ARMA(order=(2, 0)).fit(elnino).predict(3))
    given = table(["forecast", "elnino.csv", "--h", 3, "--model", "garch", "--set", "order=[1, 2]"])
    agree(given, GARCH(order=(1, 2), random_state=0).fit(elnino).predict(3))


def test_names_of_columns(table, panel, tmp_path):
    renamed = {"unique_id": "store", "ds": "when", "y": "sales"}
    panel.assign(note="x").rename(columns=renamed).to_csv(tmp_path / "sales.csv", index=False)
    options = "--id-col store --time-col when --target sales --drop note"
    given = table(f"forecast sales.csv --h 2 --model naive {options}")
    expected = Naive().fit(panel).predict(2)
    assert list(given.columns) == ["store", "when", "Naive"]
    np.testing.assert_allclose(given["Naive"], expected["Naive"])


def test_columns_known_ahead_come_from_a_file(table, tmp_path):
    draw = np.random.default_rng(1)
    days = pd.date_range("2024-01-01", periods=83)
    x = draw.normal(size=83)
    frame = pd.DataFrame({"ds": days, "y": 3 * x + draw.normal(size=83) / 10, "x": x})
    frame[:80].assign(note="a").to_csv(tmp_path / "past.csv", index=False)
    frame[80:][["ds", "x"]].to_csv(tmp_path / "ahead.csv", index=False)
    ahead = "--future ahead.csv --drop note"  # which the file of the future does not have
    given = table(f"forecast past.csv --h 3 --model arma --known-ahead x {ahead} --save m.tsrnn")
    model = ARMA(known_ahead=["x"]).fit(frame[:80])
    agree(given, model.predict(3, X_future=frame[80:][["ds", "x"]]))
    again = table(f"forecast past.csv --h 3 --load m.tsrnn {ahead}")
    pd.testing.assert_frame_equal(again, given)


@pytest.mark.parametrize("how", ["--load model.tsrnn", "--model model.tsrnn"])
def test_a_saved_model_forecasts_after_other_data(how, table, panel, tmp_path):
    table(f"forecast panel.csv --h 3 {SMALL} --save model.tsrnn")
    other = panel.assign(unique_id="new " + panel["unique_id"], y=5 + panel["y"])
    other.to_csv(tmp_path / "other.csv", index=False)
    given = table(f"forecast other.csv --h 2 --level 80 {how}")
    agree(given, load(tmp_path / "model.tsrnn").predict(other, h=2, level=80))


def test_a_saved_model_without_data_forecasts_after_its_own(table, answer):
    first = answer("forecast panel.csv --h 3 --model arma --save model.tsrnn")
    assert answer("forecast --load model.tsrnn --h 3") == first


def test_a_saved_model_has_no_progress_bar_of_a_terminal(answer, tmp_path, monkeypatch):
    monkeypatch.setattr("tsrnn.cli._forecast.verbosity", lambda: 1)
    answer(f"forecast panel.csv --h 3 {SMALL} --save model.tsrnn")
    assert load(tmp_path / "model.tsrnn").verbose == 0


def test_a_model_of_a_series_of_periods_reads_csv(table, elnino, tmp_path):
    series = elnino["temperature"].to_period("M")
    model = Naive().fit(series)
    model.save(tmp_path / "model.tsrnn")
    given = table("forecast elnino.csv --h 2 --load model.tsrnn")
    assert given["ds"].tolist() == ["2011-01", "2011-02"]
    np.testing.assert_allclose(given["temperature"], model.predict(2))


def test_a_model_of_integer_ids_and_a_zone_reads_csv(table, tmp_path):
    hours = pd.date_range("2024-01-01", periods=30, freq="h", tz="Europe/Berlin")
    ids = np.repeat([7, 11], 30)
    frame = pd.DataFrame({"unique_id": ids, "ds": [*hours, *hours], "y": np.arange(60.0) ** 0.5})
    model = ARMA(order=(1, 0)).fit(frame)
    model.save(tmp_path / "model.tsrnn")
    frame.assign(ds=frame["ds"].dt.tz_convert("UTC")).to_csv(tmp_path / "utc.csv", index=False)
    given = table("forecast utc.csv --h 2 --load model.tsrnn")
    assert given["ds"].tolist()[:2] == ["2024-01-02 06:00:00+01:00", "2024-01-02 07:00:00+01:00"]
    np.testing.assert_allclose(given["ARMA"], model.predict(2)["ARMA"])


@pytest.fixture
def numbered(panel, tmp_path):
    """Save a model of the ids 1, 2 and 10 to the ninth; write other.csv with other ids."""
    names = {"007": 1, "NA": 2, "b": 10**9}
    frame = panel.assign(unique_id=panel["unique_id"].map(names))
    model = ARMA(order=(1, 0)).fit(frame)
    model.save(tmp_path / "model.tsrnn")

    def write(**ids):
        other = frame.assign(unique_id=frame["unique_id"].astype(str).replace(ids))
        other.to_csv(tmp_path / "other.csv", index=False)
        return model

    return write


def test_ids_of_a_model_of_integers_are_integers(table, refused, numbered):
    model = numbered()
    given = table("forecast other.csv --h 1 --load model.tsrnn")
    assert given["unique_id"].tolist() == ["1", "2", "1000000000"]
    np.testing.assert_allclose(given["ARMA"], model.predict(h=1)["ARMA"])
    numbered(**{"2": "-3"})
    assert "not among them: -3. Fit" in refused("forecast other.csv --h 1 --load model.tsrnn")


@pytest.mark.parametrize("text", ["x", "007", "1e3", "1.0", "+1", "1_0", "9" * 19, "9" * 5000])
def test_other_ids_are_refused_by_a_model_of_integers(refused, numbered, text):
    numbered(**{"2": text})
    message = refused("forecast other.csv --h 1 --load model.tsrnn")
    assert f"not of the type of the ids fitted to: {text!r}. Mend" in message


def test_a_model_of_a_series_reads_a_file_of_ds_and_y(table, elnino, tmp_path):
    model = Naive().fit(elnino["temperature"])
    model.save(tmp_path / "model.tsrnn")
    long = pd.DataFrame({"ds": elnino.index, "y": 1 + elnino["temperature"].to_numpy()})
    long.to_csv(tmp_path / "long.csv", index=False)
    given = table("forecast long.csv --h 2 --load model.tsrnn")
    np.testing.assert_allclose(given["temperature"], model.predict(h=2) + 1)


def test_a_model_of_polars_frames(table, panel, tmp_path):
    polars = pytest.importorskip("polars", reason="the model is fitted to a frame of polars")
    model = Naive().fit(polars.from_dict(panel.to_dict("list")))
    model.save(tmp_path / "model.tsrnn")
    given = table("forecast panel.csv --h 2 --load model.tsrnn")
    np.testing.assert_allclose(given["Naive"], model.predict(h=2)["Naive"])


def test_json(document, panel):
    given = document("forecast panel.csv --h 2 --level 80 --model arma --json")
    forecasts = given.pop("forecasts")
    assert given.pop("version")
    assert given == {
        "command": "forecast",
        "model": "ARMA",
        "freq": "MS",
        "h": 2,
        "level": [80],
        "columns": ["unique_id", "ds", "ARMA", "ARMA-lo-80", "ARMA-hi-80"],
    }
    expected = ARMA().fit(panel).predict(2, level=80)
    assert [row["ds"] for row in forecasts[:2]] == ["2024-01-01T00:00:00", "2024-02-01T00:00:00"]
    assert [row["unique_id"] for row in forecasts] == expected["unique_id"].tolist()
    np.testing.assert_allclose([row["ARMA-lo-80"] for row in forecasts], expected["ARMA-lo-80"])


def test_forecasts_that_are_missing_are_null_and_empty(document, table, panel, tmp_path):
    short = pd.concat([panel, pd.DataFrame({"unique_id": ["s"], "ds": "2020-01-01", "y": [1.0]})])
    short.to_csv(tmp_path / "short.csv", index=False, date_format="%Y-%m-%d")
    rows = document("forecast short.csv --h 1 --model naive --json")["forecasts"]
    assert [row["Naive"] is None for row in rows] == [False, False, False, True]
    assert table("forecast short.csv --h 1 --model naive")["Naive"].iloc[-1] == ""


def test_a_csv_file(tsrnn, files):
    done = tsrnn("forecast panel.csv --h 2 --model naive --out f.csv")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "wrote 6 rows to f.csv\n")
    assert (files / "f.csv").read_text() == tsrnn("forecast panel.csv --h 2 --model naive").stdout
    assert sorted(path.name for path in files.iterdir()) == [
        "elnino.csv",
        "f.csv",
        "macro.csv",
        "panel.csv",
    ]


def test_parquet_out_is_parquet_in(answer, table):
    pytest.importorskip("polars", reason="parquet is read and written by polars")
    answer("forecast panel.csv --h 5 --model naive --out f.parquet")
    given = table("forecast f.parquet --target Naive --h 1 --model drift")
    straight = table("forecast panel.csv --h 5 --model naive").query("ds == '2024-05-01'")
    np.testing.assert_allclose(given["Drift"], straight["Naive"])


def test_a_wide_parquet_file_whose_time_comes_last(table, macro, tmp_path):
    polars = pytest.importorskip("polars", reason="parquet is read and written by polars")
    columns = {name: column.to_numpy() for name, column in macro.items()}
    frame = polars.DataFrame(columns | {"ds": macro.index.to_numpy()})
    frame.write_parquet(tmp_path / "macro.parquet")
    agree(table("forecast macro.parquet --h 2 --model naive"), Naive().fit(macro).predict(2))


def test_quiet_says_nothing(tsrnn, tmp_path, panel):
    short = pd.concat([panel, pd.DataFrame({"unique_id": ["s"], "ds": "2020-01-01", "y": [1.0]})])
    short.to_csv(tmp_path / "short.csv", index=False, date_format="%Y-%m-%d")
    loud = tsrnn("forecast short.csv --h 1 --model naive --out f.csv")
    quiet = tsrnn("forecast short.csv --h 1 --model naive --out f.csv --quiet")
    assert loud.stderr.startswith("warning: Naive needs at least 2 rows of a series; 's' has 1")
    assert (quiet.exit_code, quiet.stdout, quiet.stderr) == (0, "", "")


def test_what_libraries_print_does_not_reach_stdout(tsrnn, monkeypatch):
    fit = Naive.fit

    def chatty(self, df, y=None):
        print("fitting")
        return fit(self, df)

    monkeypatch.setattr(Naive, "fit", chatty)
    done = tsrnn("forecast panel.csv --h 1 --model naive")
    assert done.stdout.startswith("unique_id,ds,Naive\n")
    assert done.stderr == "fitting\n"


@pytest.mark.parametrize("tz", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_time_zone_comes_back(table, answer, tmp_path, tz, suffix):
    polars = pytest.importorskip("polars", reason="parquet is read and written by polars")
    hours = pd.date_range("2024-01-30", periods=30, freq="h", tz=tz)  # of one offset
    frame = pd.DataFrame({"unique_id": "a", "ds": hours, "y": np.arange(30.0)})
    if suffix == "csv":
        frame.to_csv(tmp_path / "in.csv", index=False)
    else:
        to_polars(frame).write_parquet(tmp_path / "in.parquet")
    expected = Naive().fit(frame).predict(2)["ds"]
    given = table(f"forecast in.{suffix} --h 2 --model naive")
    assert given["ds"].tolist() == expected.astype(str).tolist()
    if suffix == "parquet":
        answer("forecast in.parquet --h 2 --model naive --out out.parquet")
        zone = polars.read_parquet(tmp_path / "out.parquet").schema["ds"].time_zone
        assert zone == tz


def test_conformal_intervals_and_their_file(table, panel):
    command = "forecast panel.csv --h 3 --level 80 --model naive --set intervals=conformal"
    model = Naive(horizon=3, intervals="conformal").fit(panel)
    agree(table(f"{command} --save naive.tsrnn"), model.predict(3, level=80))
    agree(table("forecast --load naive.tsrnn --h 3 --level 80"), model.predict(3, level=80))


def test_holidays_are_set_as_an_argument(table):
    days = pd.date_range("2022-01-01", "2022-12-20", freq="D")
    y = np.where(days.isin(pd.to_datetime(["2022-07-04", "2022-09-05", "2022-11-24"])), 12.0, 20.0)
    y += np.random.default_rng(0).normal(0, 0.1, len(days))
    pd.DataFrame({"ds": days, "y": y}).to_csv("days.csv", index=False)
    forecasts = table("forecast days.csv --h 7 --model arma --set order=[1,0] --set holidays=US")
    closed = forecasts.set_index("ds").iloc[:, -1].astype(float) < 18
    assert closed[closed].index.tolist() == ["2022-12-26"]


def test_series_that_end_at_different_times(table, panel, tmp_path):
    uneven = panel[(panel["unique_id"] != "b") | (panel["ds"] < panel["ds"].max())]
    uneven.to_csv(tmp_path / "uneven.csv", index=False)
    expected = Naive().fit(uneven).predict(2, align=True)
    assert expected["ds"].nunique() == 2
    agree(table("forecast uneven.csv --h 2 --align --model naive"), expected)
    table("forecast uneven.csv --h 2 --model naive --save naive.tsrnn")
    agree(table("forecast --load naive.tsrnn --h 2 --align"), expected)
