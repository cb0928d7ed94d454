"""What cannot be used is refused in one line, with exit code 1; wrong usage with 2."""

import os

import pandas as pd
import pytest

from tsrnn.baselines import Naive

pytestmark = pytest.mark.usefixtures("files")

DAYS = "ds,y\n2024-01-01,1\n2024-01-02,{}\n2024-01-03,3\n2024-01-04,4\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "must hold a table; it is empty"),
        ("\n \n", "must hold a table; it is empty"),
        ("ds,y\n", "must have rows below its header"),
        ("ds,y\n2024-01-01,1\n", "no series has two rows"),
        (
            DAYS.format("abc"),
            "column 'y' must hold numbers in every row; no number is 'abc' in line 3",
        ),
        (DAYS.format("inf"), "must be finite"),
        (DAYS.format("2,7"), "cannot be read as CSV"),
        (DAYS.format(2).replace("-02", "-01"), "timestamps"),
        (
            DAYS.format(2).replace("2024-01-02", "soon"),
            "no such date is 'soon' in line 3. Drop these rows",
        ),
        (DAYS.format(2).replace("2024-01-02", ""), "must have no missing timestamps"),
        (DAYS.format(2).replace("ds", "y", 1), "must name its columns apart; 'y' comes twice"),
        ("ds,y,\n2024-01-01,1,2\n", "must name its columns; number 3 has no name"),
        ("ds,y\n2024-01-01,1,7\n2024-01-02,2,7\n", "must have a header with the 3 fields"),
        ("a,b\nx,1\nz,2\n", "which column of stdin holds time is not known"),
        (DAYS.format('"2'), "quotes must come in pairs; that of line 3 is not closed"),
        ("ds y\n2024-01-01 1\n2024-01-02 2\n", "separates fields, say so by --sep ' '"),
        ("PK\3\4\0\0ds,y", "it is no text. Give a compressed file its suffix"),
        ("a,b\n1,1\n2,2\n", "say --wide if time is in the first column"),
        ("unique_id,y\na,1\na,2\n", "stdin has no column 'ds'; its columns are 'unique_id', 'y'"),
        ("unique_id,ds\na,2024-01-01\na,2024-01-02\n", "the target 'y' is not a column"),
    ],
)
def test_data(refused, content, message):
    assert message in refused("forecast - --model naive --h 1", content)


@pytest.mark.parametrize("value", ["NaN", ""])
def test_missing_values_where_they_are_errors(refused, value):
    call = "forecast - --model naive --h 1 --missing error"
    message = refused(call, DAYS.format(value))
    assert "must have no missing values (NaN); missing are 1 row at 2024-01-02" in message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("ds;y\n2024-01-01;1\n2024-01-02;2\n", "are parted by ';', say so by --sep ';'"),
        ("ds;y\n2024-01-01;1,5\n2024-01-02;2,5\n", "are parted by ';', say so by --sep ';'"),
        ("ds\ty\n2024-01-01\t1\n2024-01-02\t2\n", "are parted by '\\t', say so by --sep '\\t'"),
        ("A title\nds,y\n2024-01-01,1\n2024-01-02,2\n", "header and rows alone with --strict"),
        (DAYS.format(2) + "Total,10\n", "left out below the table: 'Total 10'"),
    ],
)
def test_strict(refused, content, message):
    assert message in refused("forecast - --model naive --h 1 --strict", content)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_binary_garbage(refused, tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("polars", reason="parquet is read by polars")
    (tmp_path / f"data.{suffix}").write_bytes(bytes(range(255, 0, -1)) * 9)
    message = refused(f"forecast data.{suffix} --model naive")
    assert f"data.{suffix} cannot be read as" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("none.csv --model naive", "no parquet or CSV file is at 'none.csv'"),
        (". --model naive", "must have the columns of"),
        ("panel.csv --model naive --target z", "no column 'z'; its columns are"),
        ("panel.csv --model naive --id-col shop", "no column 'shop'"),
        ("panel.csv --model naive --time-col when", "no column 'when'"),
        ("panel.csv --model naive --drop z", "Name columns that are there by --drop"),
        ("panel.csv --model naive --drop y", "the target 'y' is not a column"),
        ("panel.csv --model naive --freq D", "rows must be one step of --freq D apart"),
        ("panel.csv --model naive --freq often", "--freq often is not understood"),
        ("panel.csv --model naive --freq 2", "--freq 2 does not fit datetime timestamps"),
        ("panel.csv --model naive --level 180", "level must lie strictly between 0 and 100"),
        ("panel.csv --model naive --level 0.8", "write 80"),
        ("panel.csv --model naive --known-ahead x", "--known-ahead must name exogenous columns"),
        ("panel.csv --model naive --future panel.csv", "no column was declared known ahead"),
        ("panel.csv --model naive --set nonesuch=1", "'tsrnn models naive' lists the arguments"),
        ("panel.csv --model pararnn --set hiden_size=1", "did you mean 'hidden_size'?"),
        ("panel.csv --model pararnn --set hidden_size=x", "hidden_size must be a positive integer"),
        ("panel.csv --model naive --out no/f.csv", "the folder no does not exist"),
        ("panel.csv --model naive --save no/m.tsrnn", "the folder no does not exist"),
        ("panel.csv --model naive --save .", ". is a folder; name a file in it"),
        ("panel.csv --load none.tsrnn", "no saved model at 'none.tsrnn'"),
        ("panel.csv --load panel.csv", "damaged or no model saved by tsrnn"),
    ],
)
def test_options_of_forecast(refused, options, message):
    assert message in refused(f"forecast {options} --h 2")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "a model needs DATA to be fitted to"),
        ("panel.csv --model niave", "there is no model 'niave'. Did you mean 'naive'?"),
        ("panel.csv --model xyz", "There are pararnn, lem"),
        ("panel.csv --h 0", "Invalid value for '--h'"),
        ("panel.csv --h two", "Invalid value for '--h'"),
        ("panel.csv --level high", "'high' is not a percentage such as 80"),
        ("panel.csv --set hidden_size", "is not NAME=VALUE"),
        ("panel.csv --set cell=gru --set cell=lstm", "cell is set twice"),
        ("panel.csv --set freq=MS", "freq has an option of its own: --freq"),
        ("panel.csv --out f.xls", "must end in .csv or .parquet"),
        ("panel.csv --load m.tsrnn --model naive", "use either --model or --load"),
        ("panel.csv --load m.tsrnn --set cell=gru --freq D", "leave --set, --freq out"),
        ("panel.csv --load m.tsrnn --random-state 0 --save n", "leave --save, --random-state out"),
        ("panel.csv --model m.tsrnn --target y --known-ahead x", "leave --target, --known-ahead"),
        ("panel.csv --nonesuch", "No such option"),
    ],
)
def test_wrong_usage_of_forecast(misused, options, message):
    assert message in misused(f"forecast {options}")


@pytest.mark.skipif(os.name == "nt", reason="folders of Windows have no such permission")
def test_no_permission_to_write(refused, tmp_path, monkeypatch):
    """A folder that the superuser may write to as well, so that the system's refusal is played."""

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", "f.csv")

    (tmp_path / "f.csv").write_text("before")
    monkeypatch.setattr("pathlib.Path.write_text", refuse)
    assert "Permission denied" in refused("forecast panel.csv --model naive --h 1 --out f.csv")
    assert (tmp_path / "f.csv").read_text() == "before"
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_that_must_not_be_written_to(refused, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    assert "denied" in refused("forecast panel.csv --model naive --h 1 --out closed/f.csv")


def test_debug_shows_the_traceback(tsrnn):
    done = tsrnn("forecast none.csv --debug")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("Traceback (most recent call last):")
    assert done.stderr.splitlines()[-1].startswith("error: no parquet or CSV file is at 'none.csv'")


def test_a_defect_is_named_by_its_type(refused, monkeypatch):
    monkeypatch.setattr(Naive, "fit", lambda self, df: {}["lost"])
    assert refused("forecast panel.csv --model naive") == "KeyError: 'lost'. --debug shows where"


def test_quiet_does_not_hide_errors(refused):
    message = refused("forecast none.csv --quiet")
    assert message.startswith("no parquet or CSV file is at 'none.csv'. Give the path")


def test_an_interrupt(tsrnn, monkeypatch):
    def interrupt(self, df):
        raise KeyboardInterrupt

    monkeypatch.setattr(Naive, "fit", interrupt)
    done = tsrnn("forecast panel.csv --model naive")
    assert (done.exit_code, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_an_advice_on_missing_values_can_be_followed(tsrnn):
    """By --missing, as the help says."""
    command = "forecast - --model naive --h 1 --missing interpolate"
    done = tsrnn(command, DAYS.format(""))
    assert (done.exit_code, done.stdout) == (0, "ds,Naive\n2024-01-05,4.0\n")


def test_a_file_of_a_regressor_does_not_forecast(refused, tmp_path):
    from tsrnn import ParaRNNRegressor

    model = ParaRNNRegressor(hidden_size=2, max_epochs=1, random_state=0)
    model.fit(pd.DataFrame({"a": range(20)}).to_numpy()[:, None] / 10, range(20))
    model.save(tmp_path / "model.tsrnn")
    assert "holds a ParaRNNRegressor" in refused("forecast --load model.tsrnn")
