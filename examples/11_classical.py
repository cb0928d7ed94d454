"""
Four classical models and their median
======================================

On monthly series the thing to beat is simple: exponential smoothing, the Theta method, complex
smoothing and seasonal ARIMA, and the median of their forecasts. Here three series of unequal
lengths are one panel; every model is fitted to all of them at once, and a `Combination` is one more
model.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from tsrnn import Combination, datasets
from tsrnn.evaluation import accuracy

OUTPUT = Path(os.environ.get("TSRNN_OUTPUT") or Path(__file__).parent / "output")
OUTPUT.mkdir(parents=True, exist_ok=True)
HORIZON = 24

# %%
# A panel
# -------
# Turnover of electrical equipment, the sea surface temperature of El Niño, and core consumer
# prices. The last two years are held out.

series = {
    "turnover": datasets.load_elec_equip()["turnover"],
    "El Niño": datasets.load_elnino()["temperature"]["1985":],
    "core prices": datasets.load_core_cpi()["core_cpi"]["1992":],
}
frame = pd.concat(
    [pd.DataFrame({"unique_id": name, "ds": y.index, "y": y.array}) for name, y in series.items()],
    ignore_index=True,
)
late = frame.groupby("unique_id").cumcount(ascending=False) < HORIZON
train, test = frame[~late], frame[late]
print(train.groupby("unique_id", sort=False)["ds"].agg(["size", "max"]).to_string())

# %%
# Models and their median
# -----------------------
# One line makes the combination of the four. Intervals are
# combined as the forecasts are: the upper end is the median of the members' upper ends.

median = Combination.classical(horizon=HORIZON).fit(train)
print(median.summary())
print(median.forecasters_["ETS"].models_.to_string())
print(median.forecasters_["AutoARIMA"].orders_.to_string())

# %%
# What came
# ---------
# `accuracy` holds the forecasts of all of them against the held-out rows: errors over those of the
# seasonal naive forecast, and the share of rows that the intervals cover.

parts = [(median, "median"), *((m, name) for name, m in median.forecasters_.items())]
forecasts = test[["unique_id", "ds"]]
for model, name in parts:
    made = model.predict(HORIZON, level=[80, 95])
    made.columns = [column.replace(model.column_name, name) for column in made.columns]
    forecasts = forecasts.merge(made, on=["unique_id", "ds"])
table = accuracy(forecasts, test, train=train, season_length=12)
print(table[["MASE", "sMAPE", "coverage-80", "coverage-95", "MSIS-95"]].round(3).to_string())

# %%
# A picture
# ---------

figure, axes = plt.subplots(3, 1, figsize=(8.6, 8), layout="constrained")
colors = dict(
    zip(median.forecasters_, ("tab:blue", "tab:orange", "tab:green", "tab:purple"), strict=True)
)
for ax, (label, y) in zip(axes, series.items(), strict=True):
    own = forecasts[forecasts["unique_id"] == label].set_index("ds")
    y[-4 * HORIZON :].plot(ax=ax, color="black", linewidth=1, label="series")
    for name, color in colors.items():
        own[name].plot(ax=ax, color=color, linewidth=0.8, label=name)
    own["median"].plot(ax=ax, color="tab:red", linewidth=2, label="median")
    for level, alpha in ((95, 0.12), (80, 0.2)):
        low, high = own[f"median-lo-{level}"], own[f"median-hi-{level}"]
        ax.fill_between(own.index, low, high, color="tab:red", alpha=alpha, linewidth=0)
    ax.set(title=label, xlabel="")
axes[0].legend(ncols=3, fontsize="small", loc="lower left")
figure.savefig(OUTPUT / "classical.png", dpi=110)
print(f"The picture: {OUTPUT / 'classical.png'}")
