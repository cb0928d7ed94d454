"""Sources of every kind give the same forecasts, a partition at a time, and runs go on."""

import json
import lzma

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import threadpoolctl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tsrnn import ARMA
from tsrnn.baselines import Naive
from tsrnn.batch import forecast_batches
from tsrnn.data import to_polars

# pandas and numpy cut off what ends with a zero byte.
LETTERS = st.characters(exclude_categories=["Cc", "Cs"])


@pytest.fixture
def expected(panel, sort):
    return sort(ARMA(order=(1, 0), horizon=3).fit(panel).predict())


def names(run, folder="forecasts"):
    return sorted(path.name for path in (run.path / folder).iterdir())


def one_file(table, place):
    table.write_parquet(place / "all.parquet")
    return place / "all.parquet"


def by_series_in_files(table, place):
    for number in range(4):
        table[240 * number : 240 * (number + 1)].write_parquet(place / f"{number}.parquet")
    return place


def by_time_in_files(table, place):
    for number, rows in enumerate(table.partition_by("ds", maintain_order=True)):
        rows.write_parquet(place / f"day-{number:02d}.parquet")
    return str(place / "day-*.parquet")


def interleaved(table, place):
    table.sort("ds", "unique_id").write_parquet(place / "all.parquet")
    return place / "all.parquet"


def in_folders(table, place):
    for number in range(4):
        folder = place / f"region={number}"
        folder.mkdir()
        table[240 * number : 240 * (number + 1)].write_parquet(folder / "rows.parquet")
    return place


def as_csv(table, place):
    table.write_csv(place / "all.csv")
    return place / "all.csv"


def as_compressed_csv(table, place):
    for number in range(4):
        text = table[240 * number : 240 * (number + 1)].write_csv().encode()
        (place / f"{number}.csv.xz").write_bytes(lzma.compress(text))
    return place


def as_polars(table, place):
    return table


def as_iterator(table, place):
    return iter(table[240 * number : 240 * (number + 1)] for number in range(4))


SOURCES = [
    one_file,
    by_series_in_files,
    by_time_in_files,
    interleaved,
    in_folders,
    as_csv,
    as_compressed_csv,
    as_polars,
    as_iterator,
]


@pytest.mark.few("interleaved", "as_csv", "as_iterator")
@pytest.mark.parametrize("make", SOURCES, ids=lambda make: make.__name__)
def test_every_source_gives_the_forecasts_of_the_model_itself(
    make, panel, expected, arma, sort, tmp_path
):
    place = tmp_path / "source"
    place.mkdir()
    source = make(to_polars(panel), place)
    run = forecast_batches(source, arma, out=tmp_path / "out", rows_per_batch=200)
    pd.testing.assert_frame_equal(sort(run.forecasts()), expected, rtol=1e-12, check_dtype=False)
    assert (run.n_series, run.n_failed, run.n_resumed) == (24, 0, 0)
    assert run.n_partitions == (4 if make is as_iterator else 5)
    assert (run.path / "_SUCCESS").is_file()


@pytest.mark.slow
def test_partitions_hold_whole_series_within_the_number_of_rows(panel, arma, tmp_path):
    run = forecast_batches(panel, arma, out=tmp_path, rows_per_batch=130)
    sizes = [pl.read_parquet(tmp_path / "forecasts" / name).height // 3 for name in names(run)]
    assert sizes == [3] * 8
    long_series = forecast_batches(panel, arma, out=tmp_path / "b", rows_per_batch=1)
    assert long_series.n_partitions == 24


def test_errors_stand_beside_and_stop_nothing(broken, arma, tmp_path):
    run = forecast_batches(broken, arma, out=tmp_path, rows_per_batch=200, level=80)
    assert (run.n_series, run.n_failed) == (24, 3)
    errors = run.errors()
    assert list(errors["unique_id"]) == ["s5", "s7", "s11"]
    assert set(errors["kind"]) == {"error"}
    assert set(run.forecasts()["unique_id"]) == set(broken["unique_id"]) - {"s5", "s7", "s11"}
    assert "21 forecast, 3 failed" in str(run)


def test_partitions_without_forecasts_have_the_same_columns(panel, arma, tmp_path):
    frame = panel.assign(y=panel["y"].where(panel["unique_id"] > "s2"))
    run = forecast_batches(frame, arma, out=tmp_path, rows_per_batch=40, level=[80, 97.5])
    schemas = {str(pl.read_parquet_schema(tmp_path / "forecasts" / name)) for name in names(run)}
    assert len(schemas) == 1
    assert run.forecasts("polars").columns[2:4] == ["ARMA", "ARMA-lo-80"]


def test_all_series_have_one_frequency(panel, arma, tmp_path):
    weekly = panel["unique_id"] == "s3"
    start = panel["ds"].min()
    stretched = start + 7 * (panel["ds"] - start)
    frame = panel.assign(ds=panel["ds"].where(~weekly, stretched))
    run = forecast_batches(frame, arma, out=tmp_path, rows_per_batch=40)
    assert list(run.errors()["unique_id"]) == ["s3"]
    assert "freq" in run.errors()["message"][0]


def test_a_finished_run_is_not_done_again(panel, arma, tmp_path):
    first = forecast_batches(panel, arma, out=tmp_path, rows_per_batch=200)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "forecasts").iterdir()}
    again = forecast_batches(panel, arma, out=tmp_path, rows_per_batch=200)
    assert (again.n_resumed, again.n_partitions) == (5, 5)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "forecasts").iterdir()} == before
    assert (again.n_series, again.n_failed) == (first.n_series, first.n_failed)


def test_only_what_is_missing_is_done(panel, arma, expected, sort, tmp_path):
    forecast_batches(panel, arma, out=tmp_path, rows_per_batch=200)
    (tmp_path / "forecasts" / "part-00003.parquet").unlink()
    (
        tmp_path / "forecasts" / ".part-00003.parquet.0123456789abcdef0123456789abcdef.tmp"
    ).write_text("half")
    run = forecast_batches(panel, arma, out=tmp_path, rows_per_batch=200)
    assert run.n_resumed == 4
    pd.testing.assert_frame_equal(sort(run.forecasts()), expected, check_dtype=False)
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.few("change0-h")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"h": 4}, "h"),
        ({"level": 80}, "level"),
        ({"rows_per_batch": 100}, "n_partitions, rows_per_batch"),
        ({"model": ARMA(order=(2, 0), horizon=3)}, "model"),
        ({"source": "other rows"}, "source"),
    ],
)
def test_a_run_of_something_else_is_refused_and_replaced_on_demand(
    panel, arma, change, said, tmp_path
):
    asked = {"source": panel, "model": arma, "out": tmp_path, "rows_per_batch": 200}
    forecast_batches(**asked)
    if "source" in change:
        change = {"source": panel.assign(y=panel["y"] + 1e-9)}
    with pytest.raises(ValueError, match=f"holds a run with other {said}. Name another"):
        forecast_batches(**(asked | change))
    replaced = forecast_batches(**(asked | change), overwrite=True)
    assert replaced.n_resumed == 0


def test_a_fitted_model_with_other_parameters_is_another_model(panel, network, tmp_path):
    from sklearn.base import clone

    forecast_batches(panel, network, out=tmp_path)
    assert forecast_batches(panel, network, out=tmp_path).n_resumed == 1
    other = clone(network).set_params(random_state=1).fit(panel.head(320))
    with pytest.raises(ValueError, match="with other model"):
        forecast_batches(panel, other, out=tmp_path)


def test_a_network_forecasts_all_series_as_it_does_at_once(panel, network, sort, tmp_path):
    run = forecast_batches(panel, network, level=[80], out=tmp_path, rows_per_batch=200)
    expected = sort(network.predict(panel, level=[80]))
    pd.testing.assert_frame_equal(sort(run.forecasts()), expected, rtol=1e-5, check_dtype=False)


@pytest.mark.slow
def test_workers_write_the_same_bytes(broken, arma, tmp_path):
    one = forecast_batches(broken, arma, out=tmp_path / "one", rows_per_batch=200)
    two = forecast_batches(broken, arma, out=tmp_path / "two", rows_per_batch=200, n_jobs=2)
    for folder in ("forecasts", "errors"):
        assert names(one, folder) == names(two, folder)
        for name in names(one, folder):
            assert (one.path / folder / name).read_bytes() == (
                two.path / folder / name
            ).read_bytes()


def test_relative_paths_are_those_of_the_caller(panel, arma, tmp_path, monkeypatch):
    table = to_polars(panel)
    for number in range(2):  # workers of the first run are those of the second
        place = tmp_path / str(number)
        place.mkdir()
        monkeypatch.chdir(place)
        table.write_parquet("all.parquet")
        run = forecast_batches("*.parquet", arma, out="out", rows_per_batch=200, n_jobs=2)
        assert run.path == place / "out"
        assert len(run.forecasts()) == 72


def test_an_iterator_that_gives_other_rows_is_refused(panel, arma, tmp_path):
    halves = [panel[:480], panel[480:]]
    forecast_batches(iter(halves), arma, out=tmp_path)
    assert forecast_batches(iter(halves), arma, out=tmp_path).n_resumed == 2
    with pytest.raises(ValueError, match="partition 0 .* is of other rows"):
        forecast_batches(iter(halves[::-1]), arma, out=tmp_path)
    with pytest.raises(ValueError, match="holds 2 partitions, the iterator now gave 1"):
        forecast_batches(iter(halves[:1]), arma, out=tmp_path)
    run = forecast_batches(iter(halves[:1]), arma, out=tmp_path, overwrite=True)
    assert (run.n_resumed, run.n_partitions, len(names(run))) == (0, 1, 1)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_of_the_iterator_comes_through(panel, arma, n_jobs, tmp_path):
    def frames():
        for start in range(0, 960, 80):
            yield panel[start : start + 80]
        raise OSError("the line is dead")

    with pytest.raises(OSError, match="the line is dead"):
        forecast_batches(frames(), arma, out=tmp_path, n_jobs=n_jobs)
    assert not (tmp_path / "_SUCCESS").exists()


def test_a_frame_of_an_iterator_without_the_columns_is_an_error_of_the_frame(panel, arma, tmp_path):
    frames = [panel[:480], panel[480:].rename(columns={"y": "sales"})]
    run = forecast_batches(iter(frames), arma, out=tmp_path)
    assert (run.n_partitions, run.n_series, run.n_failed, run.n_unread) == (2, 12, 0, 1)
    error = run.errors().iloc[0]
    assert error["kind"] == "error"
    assert "need the columns ['y']" in error["message"]


def test_columns_that_no_file_can_hold_are_no_matter(panel, arma, tmp_path):
    frame = panel.assign(note=[object()] * len(panel), **{"1": 0.0}).rename(columns={"note": 1})
    run = forecast_batches(iter([frame]), arma, out=tmp_path)
    assert (run.n_failed, len(run.forecasts())) == (0, 72)


def test_text_in_a_csv_file_is_an_error_of_its_series(panel, arma, tmp_path):
    frame = panel.assign(y=panel["y"].astype(str), unique_id=panel["unique_id"].str[1:])
    frame.loc[100, "y"] = "n/a?"
    frame.to_csv(tmp_path / "a.csv", index=False)
    run = forecast_batches(tmp_path / "a.csv", arma, out=tmp_path / "out")
    error = run.errors().iloc[0]
    assert error["unique_id"] == "2"  # text as it stands
    assert "must hold numbers; got 'n/a?'" in error["message"]
    assert run.forecasts()["unique_id"].nunique() == 23


@pytest.mark.few("NA")
@pytest.mark.parametrize("field", ["", "NA", "null", " NaN "])
def test_fields_of_csv_files_that_are_missing(panel, arma, field, tmp_path):
    texts = panel["y"].astype(str)
    frame = panel.assign(y=texts.where(panel.index != 100, field))
    frame.to_csv(tmp_path / "a.csv", index=False)
    run = forecast_batches(tmp_path / "a.csv", arma, out=tmp_path / "out")
    expected = forecast_batches(
        panel.assign(y=panel["y"].where(panel.index != 100)), arma, out=tmp_path / "b"
    )
    assert list(run.errors()["message"]) == list(expected.errors()["message"])
    np.testing.assert_allclose(run.forecasts()["ARMA"], expected.forecasts()["ARMA"], rtol=1e-12)


def test_a_point_is_no_decimal_mark_beside_a_comma(panel, arma, sort, expected, tmp_path):
    texts = panel["y"].map(repr).str.replace(".", ",")
    frame = panel.assign(y=texts.where(panel.index != 100, "1.234"))
    frame.to_csv(tmp_path / "a.csv", index=False, sep=";")
    run = forecast_batches(tmp_path / "a.csv", arma, out=tmp_path / "out", sep=";", decimal=",")
    assert run.errors()["unique_id"].tolist() == ["s2"]
    assert "must hold numbers; got '1.234'" in run.errors()["message"][0]
    others = expected[expected["unique_id"] != "s2"].reset_index(drop=True)
    pd.testing.assert_frame_equal(sort(run.forecasts()), others, rtol=1e-12, check_dtype=False)


def test_ids_of_csv_files_keep_their_zeros(panel, arma, tmp_path):
    panel.assign(unique_id="0" + panel["unique_id"].str[1:]).to_csv(tmp_path / "a.csv", index=False)
    run = forecast_batches(tmp_path / "a.csv", arma, out=tmp_path / "out")
    assert run.forecasts()["unique_id"].iloc[0] == "00"


def test_future_columns_from_files(with_x, sort, tmp_path):
    past, future = with_x
    to_polars(past).write_parquet(tmp_path / "past.parquet")
    to_polars(future).write_parquet(tmp_path / "future.parquet")
    model = ARMA(order=(1, 0), known_ahead="x", horizon=3)
    paths = {"source": tmp_path / "past.parquet", "X_future": tmp_path / "future.parquet"}
    for number, asked in enumerate((paths, {"source": past, "X_future": future})):
        run = forecast_batches(model=model, out=tmp_path / str(number), rows_per_batch=100, **asked)
        expected = sort(model.fit(past).predict(X_future=future))
        made = sort(run.forecasts())
        pd.testing.assert_frame_equal(made, expected, rtol=1e-9, check_dtype=False)


@pytest.mark.slow
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_order_of_rows_over_any_files_is_the_same_source(data, tmp_path_factory):
    lengths = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    names = data.draw(
        st.lists(
            st.text(LETTERS, min_size=1, max_size=4),
            min_size=len(lengths),
            max_size=len(lengths),
            unique=True,
        )
    )
    frame = pd.concat(
        [
            pd.DataFrame({"unique_id": name, "ds": range(n), "y": np.arange(n) + 10.0 * i})
            for i, (name, n) in enumerate(zip(names, lengths, strict=True))
        ]
    ).reset_index(drop=True)
    files = data.draw(st.lists(st.integers(0, 2), min_size=len(frame), max_size=len(frame)))
    place = tmp_path_factory.mktemp("source")
    table = to_polars(frame.assign(file=files)).sort("file", "ds", "unique_id")
    for (number,), rows in table.sort("ds").group_by("file"):
        rows.sort("ds").drop("file").write_parquet(place / f"{number}.parquet")
    run = forecast_batches(
        place,
        Naive(freq=1),
        h=2,
        out=tmp_path_factory.mktemp("out"),
        rows_per_batch=data.draw(st.integers(4, 30)),
    )
    made, errors = run.forecasts(), run.errors()
    assert run.n_series == len(lengths)
    last = dict(zip(names, [n - 1 + 10.0 * i for i, n in enumerate(lengths)], strict=True))
    told = set(errors["unique_id"])
    assert {*made["unique_id"], *told} == set(names)
    for name, own in made.groupby("unique_id"):
        assert list(own["Naive"]) == [last[name]] * 2


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (3, TypeError, "must be a long frame, an iterator"),
        (b"x", TypeError, "must be a long frame, an iterator"),
        ("nowhere/*.parquet", FileNotFoundError, "no parquet or CSV file is at"),
        (iter([]), ValueError, "gave none"),
        (pd.DataFrame({"unique_id": [], "ds": [], "y": []}), ValueError, "it is empty"),
        (pd.DataFrame({"y": [1.0]}), ValueError, "need the columns"),
        (pl.DataFrame({"y": [1.0]}).lazy(), TypeError, "must be a long frame"),
    ],
)
def test_what_is_no_source_is_refused_before_anything_is_written(
    source, error, message, arma, tmp_path
):
    with pytest.raises(error, match=message):
        forecast_batches(source, arma, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_files_that_cannot_be_read_are_named(panel, arma, tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"no parquet")
    with pytest.raises(
        ValueError, match=r"a\.parquet cannot be read as parquet.* must be files of one kind"
    ):
        forecast_batches(tmp_path / "a.parquet", arma, out=tmp_path / "out")
    to_polars(panel).write_parquet(tmp_path / "b.parquet")
    panel.to_csv(tmp_path / "c.csv")
    with pytest.raises(ValueError, match="all be parquet, or all be CSV"):
        forecast_batches(tmp_path, arma, out=tmp_path / "out")


@pytest.mark.parametrize("name", ["letter.txt", "plan.json"])
def test_a_folder_with_other_files_is_left_alone(panel, arma, name, tmp_path):
    (tmp_path / name).write_text("[1]")
    for overwrite in (False, True):
        with pytest.raises(ValueError, match="holds other files"):
            forecast_batches(panel, arma, out=tmp_path, overwrite=overwrite)
    assert (tmp_path / name).read_text() == "[1]"


def test_the_plan_is_plain_json(panel, arma, tmp_path):
    forecast_batches(panel, arma, h=2, level=80, out=tmp_path)
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert (plan["h"], plan["level"], plan["n_partitions"]) == (2, [80], 1)


@pytest.mark.few("parquet")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_future_columns_of_some_series_only(with_x, suffix, tmp_path):
    past, future = with_x
    few = future[future["unique_id"].isin(["s0", "s1"])]
    for name, frame in (("past", past), ("few", few)):
        table = to_polars(frame)
        path = tmp_path / f"{name}.{suffix}"
        table.write_csv(path) if suffix == "csv" else table.write_parquet(path)
    model = ARMA(order=(1, 0), known_ahead="x", horizon=3)
    asked = {"model": model, "rows_per_batch": 40}
    frames = forecast_batches(past, X_future=few, out=tmp_path / "a", **asked)
    source, ahead = tmp_path / f"past.{suffix}", tmp_path / f"few.{suffix}"
    files = forecast_batches(source, X_future=ahead, out=tmp_path / "b", **asked)
    for run in (frames, files):
        assert (run.n_series, run.n_failed) == (24, 22)
        assert set(run.forecasts()["unique_id"]) == {"s0", "s1"}
        assert set(run.errors()["unique_id"]) == set(past["unique_id"]) - {"s0", "s1"}
        assert run.errors()["message"].str.contains("X_future").all()


def test_future_columns_that_are_missing_or_of_others_are_refused_at_once(with_x, tmp_path):
    past, future = with_x
    model = ARMA(order=(1, 0), known_ahead="x", horizon=3)
    with pytest.raises(ValueError, match="give them as X_future"):
        forecast_batches(past, model, out=tmp_path / "out")
    with pytest.raises(ValueError, match="no column known ahead"):
        forecast_batches(past, ARMA(), X_future=future, out=tmp_path / "out")
    other = future.assign(unique_id=range(len(future)))
    with pytest.raises(ValueError, match="X_future must hold the series of the source"):
        forecast_batches(past, model, X_future=other, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_series_in_two_frames_of_an_iterator_is_refused(panel, arma, tmp_path):
    with pytest.raises(ValueError, match="'s6' is in frame 0 and in frame 1"):
        forecast_batches(iter([panel[:250], panel[250:]]), arma, out=tmp_path)


@pytest.mark.slow
def test_folders_named_after_the_series(panel, arma, expected, sort, tmp_path):
    for name, own in panel.groupby("unique_id"):
        folder = tmp_path / "source" / f"unique_id={name}"
        folder.mkdir(parents=True)
        to_polars(own.drop(columns="unique_id")).write_parquet(folder / "rows.parquet")
    run = forecast_batches(tmp_path / "source", arma, out=tmp_path / "out", rows_per_batch=40)
    pd.testing.assert_frame_equal(sort(run.forecasts()), expected, check_dtype=False)


def test_what_other_tools_leave_aside_is_not_read(panel, arma, tmp_path):
    table = to_polars(panel)
    for place in ("a.PARQUET", "_temporary/0/b.parquet", ".hidden/c.parquet", ".d.parquet"):
        path = tmp_path / "source" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        table.write_parquet(path)
    run = forecast_batches(tmp_path / "source", arma, out=tmp_path / "out")
    assert (run.n_series, len(run.forecasts())) == (24, 72)


def test_ids_of_csv_files_are_whole_numbers_if_those_fitted_to_are(panel, arma, tmp_path):
    frame = panel.assign(unique_id=panel["unique_id"].str[1:].astype(int))
    frame.to_csv(tmp_path / "a.csv", index=False)
    model = ARMA(order=(1, 0), horizon=3).fit(frame)
    run = forecast_batches(tmp_path / "a.csv", model, out=tmp_path / "out")
    assert run.n_failed == 0
    np.testing.assert_allclose(run.forecasts()["ARMA"], model.predict()["ARMA"], rtol=1e-12)
    with (tmp_path / "a.csv").open("a") as file:
        file.write("007,2024-01-01,1.0\n")
    with pytest.raises(ValueError, match="got '007'"):
        forecast_batches(tmp_path / "a.csv", model, out=tmp_path / "other")


def test_frames_of_other_units_of_time_are_one_run(panel, arma, tmp_path):
    later = panel[480:].assign(ds=panel["ds"][480:].astype("datetime64[ns]"))
    broken = panel[:40].drop(columns="ds").assign(unique_id="t")
    frames = [panel[:480].assign(ds=panel["ds"][:480].astype("datetime64[s]")), broken, later]
    run = forecast_batches(iter(frames), arma, out=tmp_path / "a")
    assert len(run.forecasts()) == 72
    assert run.n_unread == 1
    with pytest.raises(ValueError, match="need the columns"):
        forecast_batches(iter(frames[1:]), arma, out=tmp_path / "b")


def test_ids_of_several_types_are_refused(panel, arma, tmp_path):
    ids = panel["unique_id"].astype(object).where(panel.index >= 40, 0)
    with pytest.raises(TypeError, match=r"of one type; they are of int, str"):
        forecast_batches(panel.assign(unique_id=ids), arma, out=tmp_path / "out")


def test_threads_are_as_they_were(panel, arma, tmp_path):
    with joblib.parallel_config(backend="threading"):
        before = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
        run = forecast_batches(panel, arma, out=tmp_path, n_jobs=2, rows_per_batch=80)
        assert [pool["num_threads"] for pool in threadpoolctl.threadpool_info()] == before
    assert (run.n_failed, run.n_partitions) == (0, 12)


@pytest.mark.few("True")
@pytest.mark.parametrize("lost", ["errors/part-00001.parquet", "forecasts/part-00001.parquet"])
@pytest.mark.parametrize("damaged", [False, True])
def test_a_partition_that_is_not_whole_is_done_again(panel, arma, lost, damaged, tmp_path):
    forecast_batches(panel, arma, out=tmp_path, rows_per_batch=200)
    whole = (tmp_path / lost).read_bytes()
    (tmp_path / lost).unlink()
    if damaged and lost.startswith("forecasts"):
        (tmp_path / lost).write_bytes(whole[:40])
    run = forecast_batches(panel, arma, out=tmp_path, rows_per_batch=200)
    assert run.n_resumed == 4
    assert (tmp_path / lost).read_bytes() == whole
