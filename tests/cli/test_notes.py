"""Notes on how data are read, each once; messages that name flags in place of arguments."""

import inspect
import warnings

import pytest

from tsrnn.cli import app
from tsrnn.cli._console import command, note
from tsrnn.cli._flags import FLAGS, OPTIONS, in_flags

DAYS = "".join(f"2024-01-{day:02d};{day}\n" for day in range(1, 29) if day != 9)


def flags_of(name):
    """Return the flags of a command."""
    callback = next(c.callback for c in app.registered_commands if c.callback.__name__ == name)
    parameters = inspect.signature(callback, eval_str=True).parameters.values()
    return {
        declared
        for parameter in parameters
        for meta in parameter.annotation.__metadata__
        for declared in [*(meta.param_decls or ()), "--" + parameter.name.replace("_", "-")]
    }


def test_all_flags_are_options_of_forecast():
    assert {*FLAGS.values(), *OPTIONS.values()} <= flags_of("forecast")


def test_every_argument_with_an_option_is_translated():
    """But for switches that are arguments in Python only, and files of the command itself."""
    others = {"--out", "--json", "--save", "--load", "--set", "--wide", "--drop", "--model"}
    lower = {flag for flag in flags_of("forecast") if flag.startswith("--")}
    named = lower - others - {"--settings", "--data", "--quiet", "--debug"}
    assert named == {*FLAGS.values()}


@pytest.mark.parametrize("name", [name for name in FLAGS if name != "strict"])
def test_a_value_follows_its_flag(name):
    flag = FLAGS[name]
    for value, written in (
        ("'a'", "a"),
        ('"a"', "a"),
        ("12", "12"),
        ("['a', 'b']", "a,b"),
        ("(0.5, None)", "0.5,"),
        ("';'", "';'"),
        ("'a b'", "'a b'"),
        ("...", "..."),
        ("'%d.%m.%Y'", "%d.%m.%Y"),
    ):
        assert in_flags(f"Give {name}={value}, or wait.") == f"Give {flag} {written}, or wait."
    assert in_flags(f"({name}='a')") == f"({flag} a)"
    assert in_flags(f"with {name}='a'.") == f"with {flag} a."
    if "_" in name:
        assert in_flags(f"Name it by {name}.") == f"Name it by {flag}."
        assert in_flags(f"the column {name!r}") == f"the column {name!r}"


def test_strict_is_a_switch():
    assert in_flags("with strict=True, this") == "with --strict, this"


@pytest.mark.parametrize("text", ["the target 'y'", "series h=a", "freq is MS", "a level of 3"])
def test_words_stay(text):
    assert in_flags(text) == text or "=" in text


def test_notes_are_said_once(tsrnn):
    done = tsrnn("forecast - --model naive --h 1", f"Visitors\nds;y\n{DAYS}Total;5\n")
    lines = done.stderr.splitlines()
    assert len(lines) == 5
    for part in (
        "note: Fields are separated by ';'.",
        "note: 1 line is skipped above the header: 'Visitors'.",
        "note: 1 line is left out below the table: 'Total 5'.",
        "warning: 1 row was missing at --freq D and inserted without values",
        "warning: Naive has no place for missing values",
    ):
        assert sum(line.startswith(part) for line in lines) == 1
    assert tsrnn("forecast - --model naive --h 1 -q", f"Visitors\nds;y\n{DAYS}").stderr == ""


def test_labels_and_trading_days_are_said(tsrnn):
    days = [day for day in range(1, 31) if day not in (6, 7, 13, 14, 20, 21, 27, 28, 24)]
    rows = "".join(f"2024-04-{day:02d},{day},{'ab'[day % 2]}\n" for day in days)
    days = [day for day in range(1, 32) if day not in (4, 5, 11, 12, 18, 19, 25, 26)]
    rows += "".join(f"2024-05-{day:02d},{day},{'ab'[day % 2]}\n" for day in days)
    done = tsrnn("forecast - --h 1", f"ds,y,shop\n{rows}")
    assert done.exit_code == 0, done.stderr
    assert "note: Rows are trading days (--freq C)" in done.stderr
    assert "note: The column 'shop' holds labels" in done.stderr


def test_a_comparison_says_them_too(tsrnn):
    done = tsrnn("compare - --model naive,drift --h 1 --windows 3", f"ds;y\n{DAYS}")
    assert done.exit_code == 0, done.stderr
    assert done.stderr.count("Fields are separated by ';'.") == 1
    assert done.stderr.count("1 row was missing") == 1


def test_what_a_warning_said_is_no_note(capsys):
    def work():
        warnings.warn("A row was inserted", stacklevel=1)
        note("A row was inserted.")
        return ""

    command(work)(quiet=False, debug=False)
    assert capsys.readouterr().err == "warning: A row was inserted\n"


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("ds,y\n2024-01-01,x\n2024-01-02,z\n2024-01-03,z\n", ["leave fields without one empty"]),
        ("ds,y\n2024-01-01,1\n2024-01-02,2\n2024-01-03,1O\n", ["'1O' in line 4", "drop them."]),
        ("ds,y\n2024-01-01,007\n2024-01-02,008\n2024-01-03,008\n", ["'007'", "give --decimal ,"]),
        ("day,a,b\n2024-01-01,1,x\n2024-01-02,2,z\n", ["by --target,", "by --drop"]),
    ],
)
def test_advice_is_not_in_python(refused, content, parts):
    message = refused("forecast - --model naive --h 1", content)
    for part in parts:
        assert part in message
    for word in ("astype", "pd.", "df."):
        assert word not in message


def test_columns_of_labels_are_named_as_in_the_file(refused):
    rows = [f"2024-01-{day:02d},{day * day % 7},{'ab'[day % 3 == 0]}\n" for day in range(1, 29)]
    message = refused("forecast - --model arma --h 1", "ds,y,promo day\n" + "".join(rows))
    assert "not known ahead are ['promo day']. Give --known-ahead 'promo day', and their" in message


def test_series_that_end_before_are_named_with_the_option(tsrnn):
    rows = [f"{s},2024-01-{day:02d},{day}" for s in "ab" for day in range(1, 9 - (s == "b"))]
    done = tsrnn("forecast - --model naive --h 1", "unique_id,ds,y\n" + "\n".join(rows))
    assert "; --align has the steps after the last." in done.stderr


def test_advice_is_in_flags(refused):
    message = refused("forecast - --model naive --h 1 --missing error", f"ds;y\n{DAYS}")
    assert "or read with --missing interpolate" in message
    assert "missing=" not in message


@pytest.mark.parametrize(
    ("content", "decimal", "first"),
    [
        ("ds;y;unique_id\n{}", ",", 1.5),
        ("ds,y,unique_id\n{}", ".", 1.5),
        ("ds\ty\tunique_id\n{}", ".", 1.5),
        ("ds|y|unique_id\n{}", ",", 1.5),
    ],
)
def test_batches_see_the_marks(answer, tmp_path, content, decimal, first):
    polars = pytest.importorskip("polars", reason="batches are read by polars")
    sep = content[2]
    rows = [f"2024-01-{d:02d}{sep}1{decimal}5{sep}a\n" for d in range(1, 20)]
    (tmp_path / "sales.csv").write_text(content.format("".join(rows)))
    answer("batch sales.csv --model naive --h 1 --out out")
    forecasts = polars.read_parquet(tmp_path / "out" / "forecasts")
    assert forecasts["Naive"].to_list() == [first]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "unique_id;ds;y\na;2024-01-01;1.234\na;2024-01-02;2.345\n",
            "'1.234' could be 1.234 or 1234",
        ),
        ("A title\nunique_id,ds,y\na,2024-01-01,1\na,2024-01-02,2\n", "must be a header and rows"),
        ("unique_id,2024-01,2024-02,2024-03\na,1,2,3\n", "must be a header and rows"),
    ],
)
def test_batches_refuse_what_is_no_plain_table(refused, tmp_path, content, message):
    pytest.importorskip("polars", reason="batches are read by polars")
    (tmp_path / "sales.csv").write_text(content)
    assert message in refused("batch sales.csv --model naive --h 1 --out out")
