"""The streaming service: what it refuses, and that a kill at any moment changes nothing."""

import importlib.util
import io
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import tsrnn
from tsrnn import ARMA, GARCH, LEMForecaster, LRUForecaster, ParaRNNForecaster
from tsrnn.baselines import SeasonalNaive, StatsmodelsETS
from tsrnn.datasets import load_macrodata

SERVICE = Path(__file__).parents[2] / "examples" / "_service.py"
KILLER = Path(__file__).parent / "_killer.py"
FITTED, H = 120, 3
SMALL = {"hidden_size": 8, "max_epochs": 1, "random_state": 0}
ONE_THREAD = os.environ | {"OMP_NUM_THREADS": "1"}


def imported(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


service = imported(SERVICE)


def macro(*columns):
    """Quarterly series in long format."""
    frame = load_macrodata()[list(columns)].rename_axis("ds").reset_index()
    return frame.melt("ds", var_name="unique_id", value_name="y")[["unique_id", "ds", "y"]]


FRAME = macro("infl", "tbilrate", "unemp")
TRAIN = FRAME.groupby("unique_id").head(FITTED)
ROWS = FRAME.drop(TRAIN.index).sort_values("ds", kind="stable", ignore_index=True)


def line(i):
    """The i-th new row, as it stands in the stream."""
    row = ROWS.iloc[i]
    return f"{row['unique_id']},{row['ds'].date()},{float(row['y'])}\n".encode()


# Lines of a stream beside the row that they bring, or a word of the reason why they are refused.
SENT = [
    *((line(i), i) for i in range(5)),
    (line(3), "must begin at 1989-07-01"),  # sent twice
    (line(8), "must begin at 1989-04-01"),  # before its time
    (b"gold,1989-04-01,1.0\n", "unknown are 'gold'"),
    (b"\n", "3 fields"),
    (line(5)[:-4] + line(5), "3 fields"),  # a writer broke off and began again
    *((line(i), i) for i in range(5, 9)),
    (b"infl,1989-10-01,nan\n", "missing"),
    (b"infl,1989-10-01,inf\n", "finite"),
    (b"infl,1989-10-01,two\n", "could not convert"),
    (b"infl,now,2.0\n", "isoformat"),
    (b"\xff\xfe,1989-10-01,2.0\n", "codec"),
    (b"a\x00b,1989-10-01,2.0\n", "unknown"),
    (b'"infl,1989-10-01,2.0\n', "3 fields"),
    *((line(i), i) for i in range(9, 24)),
]
HEADER = b"unique_id,ds,y\n"
# Plans of `_killer.py` that kill twenty times: name, model, rows of a transaction.
KILLED_AGAIN = [("planned", "ARMA", 7), ("planned", "ParaRNN", 1), ("timed", "ARMA", 1)]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Files of an ARMA and of a small network."""
    folder = tmp_path_factory.mktemp("models")
    made = {"ARMA": ARMA(order=(1, 1), missing="error"), "ParaRNN": ParaRNNForecaster(**SMALL)}
    for name, model in made.items():
        model.fit(TRAIN).save(folder / name)
    return {name: folder / name for name in made}


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    path = tmp_path_factory.mktemp("stream") / "rows.csv"
    path.write_bytes(HEADER + b"".join(sent for sent, _ in SENT))
    return path


def run(model, stream, db, **settings):
    """Serve to the end of the stream; the tables."""
    running = service.Service(model, stream, db, h=H, **settings)
    while running.step():
        pass
    running.db.close()
    return tables(db)


def tables(db):
    with closing(sqlite3.connect(db)) as opened:
        return {
            name: opened.execute(f"SELECT * FROM {name} ORDER BY 1, 2, 3").fetchall()
            for name in ("forecasts", "rejected")
        }


@pytest.fixture(scope="module")
def killed(models, stream, tmp_path_factory):
    """Reports of `_killer.py` by the arguments of a plan, all of one process: it imports once."""
    folder = tmp_path_factory.mktemp("killed")
    short = folder / "rows.csv"
    short.write_bytes(HEADER + b"".join(sent for sent, _ in [*SENT[:2], SENT[6], SENT[0]]))
    plans = [("everywhere", "ARMA", 3), *KILLED_AGAIN]
    arguments = [folder]
    for plan, name, most in plans:
        arguments += [plan, models[name], short if plan == "everywhere" else stream, str(most)]
    done = subprocess.run(
        [sys.executable, KILLER, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env=ONE_THREAD,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(plans, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("name", ["ARMA", "ParaRNN"])
def test_forecasts_are_those_of_the_forecaster(models, stream, tmp_path, name):
    found = run(models[name], stream, tmp_path / "db")["forecasts"]
    forecaster, expected = tsrnn.load(models[name]), []
    for i in [what for _, what in SENT if isinstance(what, int)]:
        row = ROWS.iloc[i : i + 1]
        table = forecaster.update(row).predict(H, level=80)
        own = table[table["unique_id"] == row["unique_id"].iloc[0]]
        expected += [
            (unique_id, str(row["ds"].iloc[0]), str(ds), *numbers)
            for unique_id, ds, *numbers in own.itertuples(index=False)
        ]
    assert len(expected) == 24 * H
    assert found == sorted(expected)


def test_refused_rows_are_kept_with_place_and_reason(models, stream, tmp_path):
    rejected = run(models["ARMA"], stream, tmp_path / "db")["rejected"]
    content, reasons = stream.read_bytes(), [what for _, what in SENT if isinstance(what, str)]
    assert len(rejected) == len(reasons) == 12
    for (offset, text, reason), expected in zip(rejected, reasons, strict=True):
        sent = content[offset : content.index(b"\n", offset) + 1]
        assert text == sent.decode(errors="backslashreplace")
        assert expected in reason


@pytest.mark.parametrize("most", [1, 4, 7])
def test_the_size_of_transactions_changes_nothing(models, stream, tmp_path, most):
    whole = run(models["ParaRNN"], stream, tmp_path / "whole")
    assert run(models["ParaRNN"], stream, tmp_path / "parts", most=most) == whole


def test_lines_that_are_still_written_wait(models, stream, tmp_path):
    whole, content = run(models["ARMA"], stream, tmp_path / "whole"), stream.read_bytes()
    cuts = sorted(random.Random(0).sample(range(len(content)), 60))
    growing = tmp_path / "growing.csv"
    growing.touch()
    running = service.Service(models["ARMA"], growing, tmp_path / "db", h=H)
    for begin, end in zip([0, *cuts], [*cuts, None], strict=True):
        with growing.open("ab") as file:
            file.write(content[begin:end])
        while running.step():
            pass
    running.db.close()
    assert tables(tmp_path / "db") == whole


class Growing(io.BytesIO):
    """A file whose last line is finished between two reads of it."""

    def readline(self, *_):
        found = super().readline()
        if not found.endswith(b"\n"):
            end = self.tell()
            self.seek(0, 2)
            self.write(b"5\n")
            self.seek(end)
        return found


@pytest.mark.parametrize("content", [HEADER[:-1], HEADER + line(0) + b"tbilrate,1989-01-01,8."])
def test_a_line_that_grows_while_it_is_read_waits(models, tmp_path, content):
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    running = service.Service(models["ARMA"], path, tmp_path / "db")
    running.stream = SimpleNamespace(stat=path.stat, open=lambda _: Growing(content))
    assert running.step() == content.count(b"\n") // 2
    running.db.close()
    assert not tables(tmp_path / "db")["rejected"]


def test_what_is_kept_grows_by_the_rows_to_be_drawn_alone(models, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(HEADER + b"".join(map(line, range(120))))
    running, sizes = service.Service(models["ParaRNN"], path, tmp_path / "db", most=20), []
    while running.step():
        (size,) = running.db.execute("SELECT length(forecaster) FROM service").fetchone()
        sizes.append(size)
    running.db.close()
    assert len(sizes) > 5
    # a value and a time a row, of at most 500 rows, and numbers with more digits in the header
    assert max(sizes) - min(sizes) <= 16 * 20 * (len(sizes) - 1) + 16


FORECASTERS = [
    ARMA(order=(1, 0)),
    GARCH(random_state=0),
    ParaRNNForecaster(**SMALL, intervals="conformal"),
    LEMForecaster(**SMALL),
    LRUForecaster(**SMALL),
    StatsmodelsETS(),
    SeasonalNaive(),
]


@pytest.mark.parametrize("model", FORECASTERS, ids=lambda model: type(model).__name__)
def test_a_loaded_forecaster_goes_on_bit_by_bit(model):
    through = model.fit(TRAIN)
    for i in range(9):
        held = io.BytesIO()
        through.save(held)
        held.seek(0)
        loaded = tsrnn.load(held)
        row = ROWS.iloc[i : i + 1]
        pd.testing.assert_frame_equal(
            loaded.update(row).predict(H, level=80),
            through.update(row).predict(H, level=80),
            check_exact=True,
        )


def fitted(folder, ids=("a",), times=None, model=None, **columns):
    """The file of a model of series of forty days."""
    times = pd.date_range("2024-01-01", periods=40) if times is None else times
    names = {"unique_id": "unique_id", "ds": "ds"} | columns
    parts = [{"unique_id": i, "ds": times, "y": [t % 7 for t in range(40)]} for i in ids]
    frame = pd.concat(map(pd.DataFrame, parts), ignore_index=True).rename(columns=names)
    model = ARMA(order=(1, 0)) if model is None else model
    model.fit(frame).save(folder / "model")
    return folder / "model"


@pytest.mark.parametrize(
    ("kind", "rows", "reasons"),
    [
        (
            {"ids": (1, 20)},
            ["1,2024-02-10,1", "20,2024-02-10,1", "1,2024-02-11,1"],
            {"020,2024-02-11,1": "whole number: '020'", "x,2024-02-11,1": "whole number: 'x'"},
        ),
        (
            {"times": range(5, 45)},
            ["a,45,1", "a,46,1"],
            {f"a,{text},1": "whole number" for text in ("047", "47.0", "4_7", "2024-01-01")}
            | {"a," + "9" * 18 + ",1": "must begin at 47"},
        ),
        (
            {"times": pd.date_range("2024-01-01", periods=40, tz="Europe/Berlin")},
            ["a,2024-02-10T00:00:00+01:00,1", "a,2024-02-10T23:00:00+00:00,1"],
            {
                "a,2024-02-12,1": "must have an offset",
                "a,0001-01-01T00:00:00+14:00,1": "out of range",
                "a,9999-12-31T23:59:59-14:00,1": "out of range",
                "a,9999-12-31T00:00:00+00:00,1": "1678 and 2261",
            },
        ),
        ({}, ["a,2024-02-10,1"], {"a,2024-02-11,1_0": "to a number: '1_0'"}),
    ],
    ids=["integer ids", "integer times", "a time zone", "text"],
)
def test_ids_and_times_are_those_of_the_model(tmp_path, kind, rows, reasons):
    path = tmp_path / "rows.csv"
    path.write_text("unique_id,ds,y\n" + "".join(f"{row}\n" for row in [*rows, *reasons]))
    found = run(fitted(tmp_path, **kind), path, tmp_path / "db")
    assert len(found["forecasts"]) == len(rows) * H
    assert [text.rstrip() for _, text, _ in found["rejected"]] == list(reasons)
    for (*_, reason), expected in zip(found["rejected"], reasons.values(), strict=True):
        assert expected in reason


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ({"times": pd.period_range("2024-01", periods=40, freq="M")}, "not period"),
        ({"ids": (0.5, 1.5)}, "must be text or integers"),
        ({"unique_id": "shop", "model": ARMA(order=(1, 0), id_col="shop")}, "columns unique_id"),
    ],
    ids=["periods", "ids of another type", "other names"],
)
def test_other_models_are_refused_before_a_database_is_begun(tmp_path, kind, message):
    model = fitted(tmp_path, **kind)
    with pytest.raises(ValueError, match=message):
        service.Service(model, tmp_path / "rows.csv", tmp_path / "db")
    assert not (tmp_path / "db").exists()


def test_a_column_that_comes_twice_is_refused(models, tmp_path):
    (tmp_path / "rows.csv").write_text("unique_id,ds,y,y\ninfl,1989-01-01,1,2\n")
    running = service.Service(models["ARMA"], tmp_path / "rows.csv", tmp_path / "db")
    with pytest.raises(ValueError, match="no column twice; it has"):
        running.step()
    running.db.close()


def test_of_two_services_one_gives_way(models, stream, tmp_path):
    first, second = (
        service.Service(models["ARMA"], stream, tmp_path / "db", most=5, h=H) for _ in range(2)
    )
    first.step()
    with pytest.raises(RuntimeError, match="another service writes to this database"):
        second.step()
    while first.step():
        pass
    first.db.close(), second.db.close()
    assert tables(tmp_path / "db") == run(models["ARMA"], stream, tmp_path / "alone")


def test_a_database_of_another_model_or_stream_is_refused(models, stream, tmp_path):
    run(models["ARMA"], stream, tmp_path / "db")
    with pytest.raises(ValueError, match="begun with another model"):
        service.Service(models["ParaRNN"], stream, tmp_path / "db")
    shorter, other = tmp_path / "shorter.csv", tmp_path / "other.csv"
    shorter.write_bytes(stream.read_bytes()[:-1])
    with pytest.raises(ValueError, match="is shorter than what was read of it"):
        service.Service(models["ARMA"], shorter, tmp_path / "db").step()
    other.write_bytes(b"id,date,y\n")
    with pytest.raises(ValueError, match=r"must have columns unique_id and ds .*; it has \['id'"):
        service.Service(models["ARMA"], other, tmp_path / "new").step()


def test_a_log_that_was_written_in_part_is_gone_on_from(models, stream, tmp_path):
    """A power failure can leave any beginning of what followed the last sync."""
    whole = run(models["ARMA"], stream, tmp_path / "whole")
    running = service.Service(models["ARMA"], stream, tmp_path / "db", most=3, h=H)
    for _ in range(6):
        running.step()
    log = (tmp_path / "db-wal").read_bytes()
    draws, offsets = random.Random(0), set()
    for cut in (0, *(draws.randrange(len(log)) for _ in range(12))):
        copy = tmp_path / f"cut{cut}"
        shutil.copy(tmp_path / "db", copy)
        Path(f"{copy}-wal").write_bytes(log[:cut])
        with closing(sqlite3.connect(copy)) as opened:
            if opened.execute("SELECT name FROM sqlite_master").fetchall():
                offsets |= set(opened.execute("SELECT offset FROM service"))
        assert run(models["ARMA"], stream, copy) == whole
    running.db.close()
    assert len(offsets) > 3  # the cuts fell between different transactions


forks = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="kills forked processes")


@forks
@pytest.mark.slow
def test_killed_at_every_event(killed):
    report = killed["everywhere", "ARMA", 3]
    assert report["kills"] == report["events"] > 30
    assert len(report["ends"]) == 1


@forks
@pytest.mark.slow
@pytest.mark.parametrize("plan", KILLED_AGAIN, ids=lambda plan: "-".join(map(str, plan)))
def test_killed_twenty_times(killed, stream, plan):
    report = killed[plan]
    assert report["kills"] == 20
    (end,) = report["ends"]
    assert len(end["forecasts"]) == 24 * H
    assert end["offset"] == stream.stat().st_size


@pytest.mark.slow
def test_the_command_line_goes_on_after_a_kill(models, stream, tmp_path):
    rows, db, content = tmp_path / "rows.csv", tmp_path / "db", stream.read_bytes()
    for part in (content[: len(content) // 2], content):
        rows.write_bytes(part)
        consumed = part.rindex(b"\n") + 1
        arguments = {"model": models["ARMA"], "stream": rows, "db": db, "h": H, "poll": 0.05}
        command = [sys.executable, SERVICE]
        for name, value in arguments.items():
            command += [f"--{name}", str(value)]
        with subprocess.Popen(command, env=ONE_THREAD) as process:
            try:
                wait_for(db, consumed, process)
            finally:
                process.kill()
    assert tables(db) == run(models["ARMA"], stream, tmp_path / "undisturbed")


def offset_of(opened):
    return dict(opened.execute("SELECT id, offset FROM service")).get(1)


def wait_for(db, consumed, process):
    """Until the service has read so many bytes."""
    for _ in range(1200):
        assert process.poll() is None, "the service ended by itself"
        if db.exists():
            with closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as opened:
                made = opened.execute("SELECT 1 FROM sqlite_master WHERE name = 'rejected'")
                if made.fetchall() and offset_of(opened) == consumed:
                    return
        time.sleep(0.05)
    raise AssertionError("the service did not read the stream")
