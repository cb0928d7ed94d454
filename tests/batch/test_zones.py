"""The time zone of the data is that of the forecasts; partitions of several zones are refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tsrnn.baselines import Naive
from tsrnn.batch import BatchRun, forecast_batches, forecast_frame
from tsrnn.data import to_pandas, to_polars

ZONES = (None, "UTC", "Europe/Berlin")
MIXED = [(None, "UTC"), ("UTC", None), ("UTC", "Europe/Berlin"), ("Europe/Berlin", "Asia/Tokyo")]


def series(name, tz):
    """Return hours of a day on which clocks change."""
    hours = pd.date_range("2024-03-30 12:00", periods=30, freq="h", tz=tz)
    return pd.DataFrame({"unique_id": name, "ds": hours, "y": np.arange(30.0)})


def zone(frame):
    """Return the time zone of a frame's timestamps."""
    times = to_pandas(frame)["ds"]
    return None if times.dt.tz is None else str(times.dt.tz)


def written(folder, kind, *frames):
    """Write frames as files of a folder."""
    folder.mkdir()
    for i, frame in enumerate(frames):
        if kind == "parquet":
            to_polars(frame).write_parquet(folder / f"{i}.parquet")
        else:
            frame.to_csv(folder / f"{i}.csv", index=False)
    return folder


@pytest.mark.few(
    "pandas-Europe/Berlin", "parquet-Europe/Berlin", "csv-Europe/Berlin", "csv-None", "iterator-UTC"
)
@pytest.mark.parametrize("tz", ZONES)
@pytest.mark.parametrize("kind", ["pandas", "polars", "iterator", "parquet", "csv"])
def test_the_zone_comes_back(tmp_path, kind, tz):
    frame = pd.concat([series("a", tz), series("b", tz)], ignore_index=True)
    sources = {
        "pandas": lambda: frame,
        "polars": lambda: to_polars(frame),
        "iterator": lambda: iter([series("a", tz), to_polars(series("b", tz))]),
        "parquet": lambda: written(tmp_path / "in", "parquet", frame),
        "csv": lambda: written(tmp_path / "in", "csv", frame),
    }
    run = forecast_batches(sources[kind](), Naive(), h=2, out=tmp_path / "out", rows_per_batch=10)
    expected = Naive().fit(frame).predict(h=2)
    assert run.n_partitions == 2
    # CSV holds offsets, not zones: instants are the same, on the clock of UTC
    assert zone(run.forecasts()) == ("UTC" if kind == "csv" and tz else tz)
    assert zone(run.forecasts(library="polars")) == zone(run.forecasts())
    assert (run.forecasts()["ds"] == expected["ds"]).all()


@pytest.mark.parametrize("tz", ZONES)
@pytest.mark.parametrize("convert", [lambda frame: frame, to_polars], ids=["pandas", "polars"])
def test_the_zone_of_a_frame_comes_back(convert, tz):
    assert zone(forecast_frame(convert(series("a", tz)), Naive(), h=2).forecasts) == tz
    assert zone(Naive().fit(convert(series("a", tz))).predict(h=2)) == tz


@pytest.mark.parametrize(("first", "second"), MIXED)
def test_frames_of_several_zones_are_refused(tmp_path, first, second):
    frames = iter([series("a", first), to_polars(series("b", second))])
    message = (
        f"the column 'ds' of partition 1 has {second or 'none'}, that of the first rows "
        f"{first or 'none'}. Convert all to one zone, such as UTC"
    )
    with pytest.raises(ValueError, match=message):
        forecast_batches(frames, Naive(), h=2, out=tmp_path / "out")


@pytest.mark.parametrize(("first", "second"), MIXED)
@pytest.mark.parametrize("rows", [10, 1000])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_files_of_several_zones_are_refused(tmp_path, kind, rows, first, second):
    source = written(tmp_path / "in", kind, series("a", first), series("b", second))
    if kind == "csv" and None not in (first, second):
        run = forecast_batches(source, Naive(), h=2, out=tmp_path / "out", rows_per_batch=rows)
        assert zone(run.forecasts()) == "UTC"  # the offsets of both are read
        return
    message = (
        f"the column 'ds' of .*0.{kind}' has {first or 'none'}, that of .*1.{kind}' "
        f"{second or 'none'}. Convert all to one zone"
    )
    with pytest.raises(ValueError, match=message):
        forecast_batches(source, Naive(), h=2, out=tmp_path / "out", rows_per_batch=rows)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("first", "second"), MIXED)
def test_a_model_is_not_fitted_to_files_of_several_zones(tmp_path, first, second):
    source = written(tmp_path / "in", "parquet", series("a", first), series("b", second))
    with pytest.raises(ValueError, match=r"one time zone; the column 'ds'|same types"):
        Naive().fit(source)


def test_a_folder_with_partitions_of_several_zones_is_not_read_as_one(tmp_path):
    (tmp_path / "forecasts").mkdir()
    for i, tz in enumerate((None, "UTC")):
        to_polars(series("a", tz)).write_parquet(tmp_path / "forecasts" / f"part-{i:05d}.parquet")
    with pytest.raises(ValueError, match="they have UTC and none. Run again with data of one zone"):
        BatchRun(tmp_path, 2, 0, 0, 2, 0, 0.0).forecasts()


def test_an_offset_is_no_zone_of_polars():
    frame = series("a", "+02:00")
    with pytest.raises(ValueError, match=r"the column 'ds' has UTC\+02:00. Convert it"):
        to_polars(frame)
    assert to_polars(frame.assign(ds=frame["ds"].dt.tz_convert("UTC"))).schema["ds"] == pl.Datetime(
        "us", "UTC"
    )
