"""A forecasting service: rows of a growing CSV file in, forecasts in SQLite out.

    python examples/_service.py --model jobs.tsrnn --stream rows.csv --db forecasts.sqlite

The table `service` has one row: how many bytes of the stream have been read, and the forecaster
after them, as `save` writes it. A transaction moves that row on together with the forecasts that
follow from it. Killed at any moment, the service goes on from the last transaction, and what it
had begun it does again.
"""

import argparse
import csv
import hashlib
import io
import re
import sqlite3
import time
from datetime import datetime
from itertools import islice, takewhile
from pathlib import Path

import pandas as pd
from pandas.api.types import is_integer_dtype, is_string_dtype

import tsrnn

# A write-ahead log lets others read while a transaction is written; FULL means that it is on the
# disk when it is said to be done.
SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE IF NOT EXISTS service (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    model TEXT NOT NULL, offset INTEGER NOT NULL, forecaster BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS forecasts (
    unique_id TEXT, cutoff TEXT, ds TEXT, value REAL, lo REAL, hi REAL,
    PRIMARY KEY (unique_id, cutoff, ds)
);
CREATE TABLE IF NOT EXISTS rejected (offset INTEGER PRIMARY KEY, line TEXT, reason TEXT);
"""
REFUSALS = (
    ValueError,
    TypeError,
    OverflowError,
    csv.Error,
)  # of a row; any other error ends the service


class Service:
    """Takes in rows one by one and commits what follows from them.

    Parameters
    ----------
    model : path
        A fitted forecaster, saved, of a long pandas frame with columns unique_id and ds, one
        target and no columns known ahead. A new database starts from it.
    stream : path
        CSV with a header, in UTF-8, a row a line, which others append to.
    db : path
        The SQLite database.
    h : int, optional
        Steps to forecast; those of the model by default.
    level : int, default 80
        Coverage of the intervals, in percent.
    most : int, default 100
        Rows of a transaction. It changes no result.
    """

    def __init__(self, model, stream, db, h=None, level=80, most=100):
        self.stream, self.level, self.most = Path(stream), level, most
        begun = Path(model).read_bytes()
        self.kinds = kinds_of(tsrnn.load(io.BytesIO(begun)))  # before a database is begun
        self.db = sqlite3.connect(db, timeout=60)
        self.db.executescript(SCHEMA)
        self.offset, content = self._begin(begun)
        self.forecaster = tsrnn.load(io.BytesIO(content))
        self.h = self.forecaster.horizon_ if h is None else h

    def step(self):
        """Take in rows that have arrived; their number. After an error, start anew."""
        columns, offset, lines = self._arrived()
        forecasts, rejected = [], []
        for line in lines:
            try:
                row = row_of(columns, line, *self.kinds)
                self.forecaster.update(row)
            except REFUSALS as error:
                rejected.append((offset, line.decode(errors="backslashreplace"), str(error)))
            else:
                forecasts += self._forecasts_after(row)
            offset += len(line)
        if lines:
            self._commit(offset, forecasts, rejected)
        return len(lines)

    def _begin(self, model):
        """Offset and forecaster where the service stopped, or those it starts from."""
        digest = hashlib.sha256(model).hexdigest()
        with self.db:
            self.db.execute("INSERT OR IGNORE INTO service VALUES (1, ?, 0, ?)", (digest, model))
        stored, *state = self.db.execute("SELECT model, offset, forecaster FROM service").fetchone()
        if stored != digest:
            raise ValueError("the database was begun with another model. Give a new database")
        return state

    def _arrived(self):
        """Columns, where new lines begin, and these; one that is still written has to wait."""
        if self.stream.stat().st_size < self.offset:
            raise ValueError(f"{self.stream} is shorter than what was read of it: {self.offset}")
        with self.stream.open("rb") as file:
            header = file.readline()
            if not header.endswith(b"\n"):
                return [], self.offset, []
            start = max(self.offset, len(header))
            file.seek(start)
            lines = islice(iter(file.readline, b""), self.most)
            whole = list(takewhile(lambda line: line.endswith(b"\n"), lines))
        columns = fields_of(header)
        if not {"unique_id", "ds"} <= set(columns) or len(set(columns)) < len(columns):
            raise ValueError(
                f"{self.stream} must have columns unique_id and ds and no column twice; it has "
                f"{columns}"
            )
        return columns, start, whole

    def _forecasts_after(self, row):
        """The forecasts of the series of a row."""
        table = self.forecaster.predict(self.h, level=self.level, ids=row["unique_id"])
        name, cutoff = str(table["unique_id"].iloc[0]), str(row["ds"].iloc[0])
        numbers = table.iloc[:, 2:5].to_numpy(dtype=float).tolist()
        return [(name, cutoff, str(ds), *n) for ds, n in zip(table["ds"], numbers, strict=True)]

    def _commit(self, offset, forecasts, rejected):
        state = io.BytesIO()
        self.forecaster.save(state)
        with self.db:
            moved = self.db.execute(
                "UPDATE service SET offset = ?, forecaster = ? WHERE offset = ?",
                (offset, state.getvalue(), self.offset),
            )
            if moved.rowcount != 1:
                raise RuntimeError("another service writes to this database. Stop one of them")
            self.db.executemany("INSERT INTO forecasts VALUES (?, ?, ?, ?, ?, ?)", forecasts)
            self.db.executemany("INSERT INTO rejected VALUES (?, ?, ?)", rejected)
        self.offset = offset


def fields_of(line):
    """Fields of a line of a CSV file."""
    return next(csv.reader([line.decode()]))


def kinds_of(forecaster):
    """Types of the ids and of the times of a forecaster, as its forecasts have them."""
    table = forecaster.predict(1)
    names = list(table.columns) if isinstance(table, pd.DataFrame) else []
    if len(names) != 3 or names[:2] != ["unique_id", "ds"]:
        raise ValueError(
            "the model must be fitted to a long pandas frame with columns unique_id and ds and "
            f"with one target; its forecasts are a {type(table).__name__} with columns {names}"
        )
    ids, times = table["unique_id"], table["ds"]
    if not (is_integer_dtype(ids) or is_string_dtype(ids)):
        raise ValueError(f"ids of the model must be text or integers; they are {ids.dtype}")
    if times.dtype.kind not in "iM":
        raise ValueError(f"times of the model must be timestamps or integers, not {times.dtype}")
    return ids.dtype, times.dtype


def row_of(columns, line, ids, times):
    """A line as a frame of one row, with ids and times of these types."""
    fields = fields_of(line)
    if len(fields) != len(columns):
        raise ValueError(f"a row has the {len(columns)} fields {columns}; this has {len(fields)}")
    row = dict(zip(columns, fields, strict=True))
    name, stamp = row.pop("unique_id"), row.pop("ds")
    key = {
        "unique_id": integer(name) if ids.kind == "i" else name,
        "ds": integer(stamp) if times.kind == "i" else time_of(stamp, getattr(times, "tz", None)),
    }
    return pd.DataFrame([key | {name: number(text) for name, text in row.items()}])


def time_of(text, zone):
    """A timestamp; with an offset where the model has a time zone."""
    stamp = datetime.fromisoformat(text)
    if zone is not None and stamp.tzinfo is None:
        raise ValueError(f"a timestamp must have an offset from UTC; this has none: {text!r}")
    return stamp if zone is None else stamp.astimezone(zone)


def integer(text):
    """An integer of at most 18 digits, written as Python writes it: 7, not 007."""
    if not re.fullmatch("0|-?[1-9][0-9]{0,17}", text):
        raise ValueError(f"could not convert to a whole number: {text!r}")
    return int(text)


def number(text):
    """A number; not 1_0, which is one to Python."""
    if "_" in text:
        raise ValueError(f"could not convert to a number: {text!r}")
    return float(text)


def main():
    """Serve until stopped, from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name in ("model", "stream", "db"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--h", type=int)
    parser.add_argument("--level", type=int, default=80)
    parser.add_argument("--most", type=int, default=100, help="rows of a transaction")
    parser.add_argument("--poll", type=float, default=1.0, help="seconds to wait for rows")
    arguments = vars(parser.parse_args())
    poll, service = arguments.pop("poll"), Service(**arguments)
    while True:
        if not service.step():
            time.sleep(poll)


if __name__ == "__main__":
    main()
