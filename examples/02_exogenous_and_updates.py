"""
Columns known ahead, and new rows one at a time
===============================================

How many shares change hands in a week depends on how many days the exchange is open, and
that stands in its calendar years before. The panel holds the weekly volume of two US stock
indices in long format, with one column that is known ahead and one that is known up to the
last row only. A model is estimated once, takes in a year of new weeks one at a time, is
saved on the way, loaded, and goes on.
"""

import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import tsrnn
from tsrnn import ParaRNNForecaster, datasets
from tsrnn.plotting import plot_forecast

OUTPUT = Path(os.environ.get("TSRNN_OUTPUT") or Path(__file__).parent / "output")
OUTPUT.mkdir(parents=True, exist_ok=True)

# %%
# The panel
# ---------
# `y` is the logarithm of the shares traded in a week, in billions. `open_days` counts the
# weekdays for which the exchange had announced to be open, so it is *known ahead*. It also
# closed on four days that no calendar had (a hurricane, the mourning of two presidents);
# they count as open, since a forecast made weeks before could not have known.
# `range` is the logarithm of the week's highest price over its lowest: an exogenous column
# that is known when the week is over, *history only*.

UNANNOUNCED = pd.to_datetime(["2007-01-02", "2012-10-29", "2012-10-30", "2018-12-05"])


def weekly(quotes, name):
    """Weeks ending on Friday, from daily quotes."""
    weeks = quotes.resample("W-FRI")
    closures = pd.Series(1, UNANNOUNCED).resample("W-FRI").sum()
    open_days = weeks["Volume"].count()
    return pd.DataFrame(
        {
            "unique_id": name,
            "y": np.log(weeks["Volume"].sum() / 1e9),
            "open_days": open_days.add(closures, fill_value=0),
            "range": np.log(weeks["High"].max() / weeks["Low"].min()),
        }
    ).rename_axis("ds")[:"2018-12-28"]


panel = pd.concat(
    [weekly(datasets.load_nasdaq(), "NASDAQ Composite"), weekly(datasets.load_sp500(), "S&P 500")]
).reset_index()
panel = panel[panel["ds"] > "2004-12-31"]
is_new = panel["ds"] > "2017-12-31"
train, new = panel[~is_new], panel[is_new]
print(train.groupby("unique_id").tail(2).to_string(index=False, float_format="{:.3f}".format))

# %%
# What the calendar is worth
# --------------------------
# Columns besides `unique_id`, `ds` and `y` are exogenous; `known_ahead` names those whose
# future is given with each forecast. The same network is estimated with and without the
# calendar; there is no linear path, so that all memory beyond the level of the last half
# year is in the hidden state. `predict_rolling` then forecasts from every week of 2018,
# taking `open_days` of the weeks ahead from the frame.

settings = {
    "horizon": 3,
    "input_size": 26,
    "hidden_size": 16,
    "n_layers": 1,
    "linear_path": False,
    "learning_rate": 0.003,
    "batch_size": 8,
    "max_epochs": 3,
    "random_state": 0,
}
model = ParaRNNForecaster(known_ahead="open_days", **settings).fit(train)
blind = ParaRNNForecaster(**settings).fit(train.drop(columns="open_days"))


def rolled(forecaster, frame):
    """Forecasts from every week of `frame`, beside what came."""
    forecasts = forecaster.predict_rolling(frame, level=80)
    return forecasts.merge(new[["unique_id", "ds", "y"]], on=["unique_id", "ds"])


seen, unseen = rolled(model, new), rolled(blind, new.drop(columns="open_days"))
for name, table in {"with the calendar": seen, "without it": unseen}.items():
    rmse = np.sqrt(np.mean((table["y"] - table["ParaRNN"]) ** 2))
    covered = table["y"].between(table["ParaRNN-lo-80"], table["ParaRNN-hi-80"]).mean()
    print(f"RMSE {name}: {rmse:.3f} (covered by the 80% interval: {covered:.0%})")

# %%
# New rows, one at a time
# -----------------------
# `update` takes a row a series, carries the hidden state on by one step and estimates
# nothing. `X_future` holds the known columns of the weeks ahead; later rows do no harm, so
# the whole calendar of the year can be given.

calendar = new[["unique_id", "ds", "open_days"]]
weeks = new["ds"].unique()
half = len(weeks) // 2
one_ahead = []
for week in weeks[:half]:
    one_ahead.append(model.predict(h=1, X_future=calendar))
    model.update(new[new["ds"] == week])
one_ahead = pd.concat(one_ahead).merge(seen, on=["unique_id", "ds"], suffixes=("", "-rolled"))
first = one_ahead.groupby(["unique_id", "ds"]).last()  # of the latest cutoff
gap = np.abs(first["ParaRNN"] - first["ParaRNN-rolled"]).max()
print(f"Forecasts of {half} weeks, week by week and by predict_rolling, differ by {gap:.0e}")

# %%
# Save, load, go on
# -----------------
# The file holds parameters, states and the last rows of every series. The loaded model goes
# on with the second half of the year.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "volume.tsrnn"
    model.save(path)
    loaded = tsrnn.load(path)

for week in weeks[half:-3]:
    loaded.update(new[new["ds"] == week])
updated = loaded.predict(level=80, X_future=calendar)

# %%
# The same forecast from a new pass over all rows since 2005: `predict(df)` starts from a
# state of zero and filters `df` with the parameters as they were estimated.

history = panel[panel["ds"] <= weeks[-4]]
filtered = loaded.predict(history, level=80, X_future=calendar)
columns = ["ParaRNN", "ParaRNN-lo-80", "ParaRNN-hi-80"]
gap = np.abs(updated[columns] - filtered[columns]).to_numpy().max()
assert gap < 1e-4, gap
print(f"{len(weeks) - 3} updates against one pass over {len(history)} rows: differ by {gap:.0e}")

# %%
# The last forecast
# -----------------
# The fall in the last week of the year is in the calendar.

figure, axes = plt.subplots(2, 1, figsize=(8.6, 6), layout="constrained")
for ax, name in zip(axes, ["NASDAQ Composite", "S&P 500"], strict=True):
    plot_forecast(history, updated, ax, series=name, last=52, actual=new[new["ds"] > weeks[-4]])
    ax.set_ylabel("log of billion shares")
figure.savefig(OUTPUT / "volume.png", dpi=110)
print(OUTPUT / "volume.png")
