"""
A forecasting service that may be killed
========================================

Rows arrive one at a time, and each moves the forecasts of its series. A model is estimated once;
a service takes in the rows by `update`, one step of work each, and writes forecasts to a SQLite
database. Here the last five years of three macroeconomic series are sent to it, it is killed on
the way, and its database ends as that of a service left in peace.

The service is the file `_service.py` beside this one, written to be copied;
``docs/howto/stream.md`` says why it is built as it is.
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import _service
import matplotlib.pyplot as plt
import pandas as pd
from _service import Service

from tsrnn import ParaRNNForecaster, datasets

OUTPUT = Path(os.environ.get("TSRNN_OUTPUT") or Path(__file__).parent / "output")
OUTPUT.mkdir(parents=True, exist_ok=True)
SERVICE = Path(_service.__file__)

# %%
# The model
# ---------
# Inflation, the unemployment rate and the rate of treasury bills of the United States, in percent,
# every quarter from 1959. One small network for the three is estimated on the years to 2004
# and saved.

macro = datasets.load_macrodata()[["infl", "unemp", "tbilrate"]]
series = {"infl": "inflation", "unemp": "unemployment", "tbilrate": "bill rate"}
panel = macro.rename(columns=series).reset_index().melt("ds", var_name="unique_id", value_name="y")
panel = panel[["unique_id", "ds", "y"]]
is_new = panel["ds"] >= "2005-01-01"

temporary = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
folder = Path(temporary.name)
model = folder / "macro.tsrnn"
network = ParaRNNForecaster(horizon=4, input_size=12, hidden_size=8, max_epochs=5, random_state=0)
network.fit(panel[~is_new]).save(model)

# %%
# The stream
# ----------
# A CSV file that only grows. The rows are those of 2005 to 2009, in the order of time, and beside
# them what streams bring: a row that is sent twice, one of an unknown series, one without a value.

rows = panel[is_new].sort_values("ds", kind="stable")
lines = rows.to_csv(index=False, header=False, lineterminator="\n").splitlines(keepends=True)
lines.insert(10, lines[9])
lines.insert(20, "gold,2006-07-01,271.5\n")
lines.insert(30, "inflation,2007-04-01,\n")
header, content = "unique_id,ds,y\n", "".join(lines)

# %%
# In peace
# --------
# `step` takes in what has arrived.

stream = folder / "whole.csv"
stream.write_text(header + content)
undisturbed = Service(model, stream, folder / "undisturbed.sqlite", most=1)
began = time.perf_counter()
taken = 0
while undisturbed.step():
    taken += 1
each = (time.perf_counter() - began) / taken
undisturbed.db.close()
print(f"{taken} rows, {1000 * each:.0f} ms each, with a transaction for every row")

# %%
# Killed
# ------
# The service as a process of its own. Two thirds of the file are there at first, and they end in
# the middle of a row, which is left until the rest of it comes. The process is killed when it has
# written 100 forecasts, without a word of warning, and started again.


def query(db, text):
    """Rows of a query; none before the tables are there."""
    with closing(sqlite3.connect(db)) as opened:
        tables = opened.execute("SELECT name FROM sqlite_master").fetchall()
        return opened.execute(text).fetchall() if ("rejected",) in tables else []


def serve(until):
    """Start the service, and kill it when `until` is true."""
    command = [sys.executable, SERVICE, "--model", model, "--stream", stream, "--db", db]
    with subprocess.Popen([*command, "--most", "1", "--poll", "0.1"]) as process:
        try:
            while not until():
                if process.poll() is not None:
                    raise RuntimeError("the service ended by itself")
                time.sleep(0.05)
        finally:
            process.kill()


def n_forecasts():
    """Forecasts that have been written."""
    return sum(n for (n,) in query(db, "SELECT count(*) FROM forecasts"))


stream, db = folder / "growing.csv", folder / "killed.sqlite"
stream.write_text(header + content[: 2 * len(content) // 3])
serve(until=lambda: n_forecasts() >= 100)
print(f"killed after {n_forecasts()} forecasts")
with stream.open("a") as file:
    file.write(content[2 * len(content) // 3 :])
end = [(stream.stat().st_size,)]
serve(until=lambda: query(db, "SELECT offset FROM service") == end)

# %%
# Both databases hold the same, digit by digit, and say which rows were refused.

for table in ("forecasts", "rejected"):
    text = f"SELECT * FROM {table} ORDER BY 1, 2, 3"
    same = query(db, text) == query(folder / "undisturbed.sqlite", text)
    print(f"{table}: {len(query(db, text))} rows, the same in both: {same}")
    assert same
for line, reason in query(db, "SELECT line, reason FROM rejected"):
    print(f"- {line.strip()}: {reason}")

# %%
# What stands in the database
# ---------------------------
# The forecasts of a quarter before, made when its last row had come, and what then came.

text = "SELECT * FROM forecasts WHERE unique_id = 'unemployment' ORDER BY cutoff, ds"
with closing(sqlite3.connect(db)) as opened:
    ahead = pd.read_sql(text, opened, parse_dates=["cutoff", "ds"]).groupby("cutoff").first()
came = macro["unemp"]["2005":]
figure, ax = plt.subplots(figsize=(8.6, 3.6), layout="constrained")
ax.fill_between(ahead["ds"], ahead["lo"], ahead["hi"], alpha=0.25, lw=0, label="80% interval")
ax.plot(ahead["ds"], ahead["value"], label="forecast of the quarter before")
ax.plot(came.index, came, "k.", label="what came")
ax.set_ylabel("unemployment, percent")
ax.legend()
figure.savefig(OUTPUT / "stream.png", dpi=110)
print(OUTPUT / "stream.png")
temporary.cleanup()
