import doctest
import gzip
import hashlib
import http.server
import importlib
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pandas as pd
import pooch
import pytest

from tsrnn import datasets

_informer = datasets._informer

SHARED = Path(__file__).parents[2] / "shared" / "data"
ETT_HOME = SHARED / "ett"
SHIPPED = datasets.list_datasets().query("shipped_by in ('statsmodels', 'arch')")
ATTRS = {"name", "title", "units", "frequency", "source", "license", "notes"}
NAN_COUNTS = {"co2": 59, "vix": 46, "wti": 290, "fertility": 1542}

WTH_HOME = SHARED / "weather"
needs_ett = pytest.mark.skipif(not ETT_HOME.is_dir(), reason=f"the ETT files are not in {ETT_HOME}")
needs_wth = pytest.mark.skipif(not WTH_HOME.is_dir(), reason=f"the file is not in {WTH_HOME}")


@pytest.fixture(scope="module", params=SHIPPED.index)
def shipped(request):
    return SHIPPED.loc[request.param], getattr(datasets, SHIPPED.loc[request.param, "loader"])()


def assert_tidy(row, frame):
    assert frame.shape == (row["rows"], row["columns"])
    assert isinstance(frame.index, pd.DatetimeIndex)
    assert frame.index.name == "ds"
    assert frame.index.tz is None
    assert frame.index.dtype == "datetime64[ns]"
    assert frame.index.is_monotonic_increasing
    assert frame.index.is_unique
    assert (frame.dtypes == "float64").all()
    assert not np.isinf(frame.to_numpy()).any()


def test_frames_are_tidy_and_as_large_as_listed(shipped):
    assert_tidy(*shipped)


def test_frequency_is_set_exactly_where_the_rows_are_regular(shipped):
    row, frame = shipped
    if row["frequency"] == "irregular":
        assert frame.index.freq is None
        assert pd.infer_freq(frame.index) is None
    else:
        assert frame.index.freq == pd.tseries.frequencies.to_offset(row["frequency"])


def test_missing_values_are_kept_and_said(shipped):
    row, frame = shipped
    assert frame.isna().to_numpy().sum() == NAN_COUNTS.get(row.name, 0)
    if row.name in NAN_COUNTS:
        assert "NaN" in frame.attrs["notes"]
        assert "NaN" in getattr(datasets, row["loader"]).__doc__


def test_attrs_say_what_the_numbers_are(shipped):
    row, frame = shipped
    assert set(frame.attrs) == ATTRS
    assert frame.attrs["name"] == row.name
    assert list(frame.attrs["units"]) == list(frame.columns)
    assert all(frame.attrs["units"].values())
    assert frame.attrs["frequency"] == row["frequency"]
    assert frame.attrs["source"]


def test_a_changed_frame_leaves_the_next_load_untouched():
    first = datasets.load_nile()
    first.iloc[0, 0] = np.nan
    first.attrs["units"]["volume"] = "pints"
    second = datasets.load_nile()
    assert second.iloc[0, 0] == 1120.0
    assert second.attrs["units"]["volume"] == "10^8 cubic metres"


@pytest.mark.parametrize(
    ("name", "column", "first", "last", "stamps"),
    [
        ("co2", "co2", 316.1, 371.5, ("1958-03-29", "2001-12-29")),
        ("sunspots", "sunspots", 5.0, 2.9, ("1700-01-01", "2008-01-01")),
        ("nile", "volume", 1120.0, 740.0, ("1871-01-01", "1970-01-01")),
        ("macrodata", "realgdp", 2710.349, 12990.341, ("1959-01-01", "2009-07-01")),
        ("interest_inflation", "R", 0.083, 0.038, ("1972-04-01", "1998-10-01")),
        ("danish_data", "ide", 0.094, 0.075163, ("1974-01-01", "1987-07-01")),
        ("elec_equip", "turnover", 66.19, 97.86, ("1995-01-01", "2016-05-01")),
        ("elnino", "temperature", 23.11, 22.07, ("1950-01-01", "2010-12-01")),
        ("fertility", "Zambia", 7.018, np.nan, ("1960-01-01", "2013-01-01")),
        ("sp500", "Adj Close", 1228.1, 2506.85, ("1999-01-04", "2018-12-31")),
        ("nasdaq", "Adj Close", 2208.05, 6635.28, ("1999-01-04", "2018-12-31")),
        ("vix", "vix", 13.76, 25.45, ("2014-01-03", "2019-01-03")),
        ("wti", "wti", 25.56, 46.92, ("1986-01-02", "2019-01-03")),
        ("core_cpi", "core_cpi", 28.5, 259.481, ("1957-01-01", "2018-11-01")),
        ("crude", "WTI", 19.44, 57.52, ("1987-05-01", "2020-01-01")),
        ("corporate_yields", "BAA", 7.12, 5.13, ("1919-01-01", "2018-12-01")),
        ("frenchdata", "Mkt-RF", 2.96, 1.69, ("1926-07-01", "2018-11-01")),
    ],
)
def test_first_and_last_values_stand_at_their_stamps(name, column, first, last, stamps):
    series = getattr(datasets, f"load_{name}")()[column]
    assert [str(stamp.date()) for stamp in series.index[[0, -1]]] == list(stamps)
    np.testing.assert_allclose(series.iloc[[0, -1]], [first, last], rtol=1e-5)


def test_macrodata_columns_agree_with_their_definitions():
    macro = datasets.load_macrodata().iloc[1:]
    inflation = 400 * np.log(datasets.load_macrodata()["cpi"]).diff().iloc[1:]
    np.testing.assert_allclose(macro["infl"], inflation, atol=0.006)
    np.testing.assert_allclose(macro["realint"], macro["tbilrate"] - macro["infl"], atol=0.0101)


def test_elnino_is_read_along_the_months_of_each_year():
    from statsmodels.datasets import elnino

    table = elnino.load_pandas().data.set_index("YEAR")
    series = datasets.load_elnino()["temperature"]
    for stamp in (pd.Timestamp("1983-06-01"), pd.Timestamp("1998-12-01")):
        assert series[stamp] == table.loc[stamp.year, stamp.strftime("%b").upper()]


def test_elec_equip_has_the_base_that_its_unit_states():
    assert datasets.load_elec_equip().loc["2010", "turnover"].mean() == pytest.approx(100, abs=0.01)


def test_market_holidays_have_no_row_in_the_index_and_no_value_in_the_vix():
    assert pd.Timestamp("2018-12-25") not in datasets.load_sp500().index
    assert np.isnan(datasets.load_vix().loc["2018-12-25", "vix"])


def test_corporate_yields_agree_with_fred():
    path = SHARED / "macro" / "fredmd_2026-02.csv.gz"
    if not path.is_file():
        pytest.skip(f"FRED-MD is not at {path}")
    fred = pd.read_csv(path, index_col="sasdate").iloc[1:]
    fred.index = pd.to_datetime(fred.index, format="%m/%d/%Y")
    ours = datasets.load_corporate_yields()
    common = ours.index.intersection(fred.index)
    assert len(common) > 700
    difference = (ours.loc[common] - fred.loc[common, ["AAA", "BAA"]]).abs()
    # A few months were revised by the publisher after the shipped vintage.
    assert (difference < 0.005).mean().min() > 0.99


def test_every_loader_of_a_frame_is_listed_and_public():
    listing = datasets.list_datasets()
    assert listing.index.is_unique
    loaders = {name for name in datasets.__all__ if name.startswith("load_")}
    frames = {
        name
        for name in loaders
        if get_type_hints(getattr(datasets, name))["return"] is pd.DataFrame
    }
    assert set(listing["loader"]) == frames
    assert loaders - frames == {
        *("load_cifar10", "load_eigenworms", "load_google12", "load_heart_rate", "load_mnist"),
        "load_penn_treebank",
    }


def test_listing_reads_no_data_and_no_heavy_library():
    code = (
        "import sys; from tsrnn.datasets import list_datasets; list_datasets(); print(*sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not {"statsmodels", "arch", "pooch", "torch"} & set(loaded.stdout.split())


@pytest.mark.parametrize("module", ["_catalogue", "_shipped", "_informer"])
def test_docstring_examples_run(module):
    failed, _ = doctest.testmod(importlib.import_module(f"tsrnn.datasets.{module}"))
    assert failed == 0


@needs_ett
@pytest.mark.parametrize(
    ("name", "first"), [("ETTh1", 30.531), ("ETTh2", 38.662), ("ETTm1", 30.531)]
)
def test_ett_is_read_from_a_folder(name, first):
    frame = datasets.load_ett(name, data_home=ETT_HOME)
    row = datasets.list_datasets().loc[name]
    assert_tidy(row, frame)
    assert frame.index.freq == pd.tseries.frequencies.to_offset(row["frequency"])
    assert frame.attrs["license"] == "CC BY-ND 4.0"
    assert list(frame.attrs["units"]) == list(frame.columns)
    assert frame.iloc[0]["OT"] == pytest.approx(first, abs=1e-3)


@needs_ett
def test_hourly_rows_of_ett_lie_at_the_stamps_of_the_quarter_hours():
    hourly = datasets.load_ett("ETTh1", data_home=ETT_HOME)
    quarters = datasets.load_ett("ETTm1", data_home=ETT_HOME)
    assert hourly.index.isin(quarters.index).all()
    assert hourly["OT"].corr(quarters.loc[hourly.index, "OT"]) > 0.99


@needs_wth
def test_weather_is_read_from_a_folder_however_its_dates_are_written(tmp_path):
    frame = datasets.load_wth(data_home=WTH_HOME)
    assert_tidy(datasets.list_datasets().loc["WTH"], frame)
    assert frame.index.freqstr == "h"
    assert frame["WetBulbCelsius"].corr(frame["WetBulbFarenheit"]) > 0.98
    assert frame["WetBulbCelsius"].corr(frame["DryBulbCelsius"]) > 0.9
    frame.rename_axis("date").to_csv(tmp_path / "WTH.csv")
    pd.testing.assert_frame_equal(datasets.load_wth(data_home=tmp_path), frame)


@needs_wth
def test_weather_with_a_value_or_a_row_of_its_own_is_refused(tmp_path):
    frame = datasets.load_wth(data_home=WTH_HOME).rename_axis("date")
    frame.iloc[5, 3] += 0.1
    frame.to_csv(tmp_path / "WTH.csv")
    with pytest.raises(ValueError, match="is not the published WTH.csv"):
        datasets.load_wth(data_home=tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"date,Visibility\n2010-01-01,high\n", b"\xff\xfe\x00", b"a,b\n1,2\n"]
)
def test_weather_refuses_what_is_no_such_table(tmp_path, content):
    (tmp_path / "WTH.csv").write_bytes(content)
    with pytest.raises(ValueError, match=r"WTH.csv is no table of the columns of WTH"):
        datasets.load_wth(data_home=tmp_path)


@pytest.mark.filterwarnings("ignore:Could not infer format")  # of dates that are none
@pytest.mark.parametrize(
    ("dates", "message"),
    [
        (("a", "b"), "WTH.csv is no table of the columns of WTH"),
        (("True", "False"), "WTH.csv is no table of the columns of WTH"),
        (("2010-01-01 00:00Z", "2010-01-01 01:00Z"), "WTH.csv must have dates without time zone"),
    ],
)
def test_weather_refuses_other_dates(tmp_path, dates, message):
    columns = ",".join(_informer.RECORDS["WTH"].units)
    lines = [f"date,{columns}", *(date + ",1" * 12 for date in dates)]
    (tmp_path / "WTH.csv").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        datasets.load_wth(data_home=tmp_path)


def test_weather_names_its_publisher_where_there_is_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"WTH\.csv or WTH\.csv\.gz; found neither"):
        datasets.load_wth(data_home=tmp_path)


SMALL = b"date,HUFL,HULL,MUFL,MULL,LUFL,LULL,OT\n" + b"".join(
    b"2016-07-01 %02d:00:00,1.5,2,3,4,5,6,%d\n" % (hour, hour) for hour in range(5)
)


@pytest.fixture
def small_ett(monkeypatch):
    """Let a file of five rows be the published one."""
    monkeypatch.setitem(_informer._SHA256, "ETTh1", hashlib.sha256(SMALL).hexdigest())
    return SMALL


@pytest.mark.parametrize("as_text", [True, False])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_ett_reads_plain_and_compressed_files(small_ett, tmp_path, suffix, as_text):
    content = small_ett if suffix == ".csv" else gzip.compress(small_ett)
    (tmp_path / f"ETTh1{suffix}").write_bytes(content)
    frame = datasets.load_ett(data_home=str(tmp_path) if as_text else tmp_path)
    assert frame["OT"].tolist() == [0, 1, 2, 3, 4]
    assert frame.index.freqstr == "h"


def test_ett_refuses_other_content_and_states_both_hashes(small_ett, tmp_path):
    damaged = small_ett.replace(b"1.5", b"1.6")
    (tmp_path / "ETTh1.csv").write_bytes(damaged)
    with pytest.raises(ValueError, match="is not the published") as caught:
        datasets.load_ett(data_home=tmp_path)
    assert hashlib.sha256(small_ett).hexdigest() in str(caught.value)
    assert hashlib.sha256(damaged).hexdigest() in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"no gzip", gzip.compress(SMALL, mtime=0)[:-20]], ids=["no gzip", "cut off"]
)
def test_ett_refuses_a_file_that_does_not_decompress(small_ett, tmp_path, content):
    (tmp_path / "ETTh1.csv.gz").write_bytes(content)
    with pytest.raises(ValueError, match=r"ETTh1\.csv\.gz must be a complete gzip file"):
        datasets.load_ett(data_home=tmp_path)


def test_ett_says_which_file_it_looked_for(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"ETTm1\.csv or ETTm1\.csv\.gz; found neither"):
        datasets.load_ett("ETTm1", data_home=tmp_path)


def test_tables_that_are_too_long_are_refused_before_they_are_read(tmp_path):
    for name, load in (("ETTh1", datasets.load_ett), ("WTH", datasets.load_wth)):
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress(bytes(2**25 + 1)))
        with pytest.raises(ValueError, match=rf"{name}\.csv\.gz must hold at most 33554432 bytes"):
            load(data_home=tmp_path)


@pytest.mark.parametrize("data_home", [3, b"folder"])
def test_folders_of_tables_must_be_paths(data_home):
    for load in (datasets.load_ett, datasets.load_wth):
        with pytest.raises(TypeError, match="data_home must be a path; got"):
            load(data_home=data_home)
    with pytest.raises(TypeError, match="data_home must be a path; got None"):
        datasets.load_wth(data_home=None)


@pytest.mark.parametrize("name", ["ETTm2", "etth1", None, ["a"]])
def test_ett_offers_only_names_whose_checksum_is_known(name):
    with pytest.raises(ValueError, match=r"must be one of \['ETTh1', 'ETTh2', 'ETTm1'\]; got "):
        datasets.load_ett(name)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Serve a folder on this machine as if it were the publisher; return folder and requests."""
    folder, requests = tmp_path / "published", []
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            requests.append(self.path)

    handler = partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setattr(_informer, "_BASE_URL", f"http://127.0.0.1:{running.server_port}/")
        monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache" / project)
        yield folder, requests
        running.shutdown()
        thread.join()


def test_ett_downloads_once_into_the_cache(small_ett, server, tmp_path):
    folder, requests = server
    (folder / "ETTh1.csv").write_bytes(small_ett)
    first, second = datasets.load_ett(), datasets.load_ett()
    pd.testing.assert_frame_equal(first, second)
    assert first["OT"].tolist() == [0, 1, 2, 3, 4]
    assert requests == ["/ETTh1.csv"]
    assert (tmp_path / "cache" / "tsrnn" / "ETTh1.csv").read_bytes() == small_ett


def test_ett_refuses_a_damaged_download_and_keeps_nothing(small_ett, server, tmp_path):
    folder, _ = server
    (folder / "ETTh1.csv").write_bytes(small_ett[:-3])
    with pytest.raises(ValueError, match="hash") as caught:
        datasets.load_ett()
    assert hashlib.sha256(small_ett).hexdigest() in str(caught.value)
    assert hashlib.sha256(small_ett[:-3]).hexdigest() in str(caught.value)
    assert not (tmp_path / "cache" / "tsrnn" / "ETTh1.csv").exists()


def test_ett_fetches_again_what_was_damaged_in_the_cache(small_ett, server, tmp_path):
    folder, _ = server
    (folder / "ETTh1.csv").write_bytes(small_ett)
    cached = tmp_path / "cache" / "tsrnn" / "ETTh1.csv"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(b"damaged")
    assert len(datasets.load_ett()) == 5


def test_ett_without_network_says_to_give_data_home(small_ett, server):
    with pytest.raises(ConnectionError, match="pass its folder as data_home"):
        datasets.load_ett()


def test_ett_address_names_the_published_file():
    assert _informer._BASE_URL.startswith("https://raw.githubusercontent.com/zhouhaoyi/ETDataset/")
    assert _informer._BASE_URL.endswith("/ETT-small/")
