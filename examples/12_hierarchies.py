"""
Forecasts that add up
=====================

Visitors to four states for two purposes are series, and so are their sums: a state, a purpose, the
country. Forecasts of all of them, made one by one, do not add up. `reconcile` fits a forecaster to
every level in one batch and lets the levels learn from each other (Wickramasuriya, Athanasopoulos
and Hyndman, 2019), intervals included.
"""

import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tsrnn import hierarchy
from tsrnn.linear import ETS
from tsrnn.plotting import plot_forecasts

OUTPUT = Path(os.environ.get("TSRNN_OUTPUT") or Path(__file__).parent / "output")
OUTPUT.mkdir(parents=True, exist_ok=True)
warnings.filterwarnings("ignore", message=".*was not maximised")

# %%
# The data
# --------
# Fifteen years of quarters, simulated: every series has a level that walks, a season of its state,
# and a part of a cycle that all have in common, so that errors of series are correlated.

rng = np.random.default_rng(0)
quarters = pd.date_range("2008-01-01", periods=60, freq="QS")
cycle = np.cumsum(rng.normal(size=60))
parts = []
for state, size in {"North": 90, "East": 60, "South": 40, "West": 25}.items():
    season = np.tile(rng.normal(scale=0.1, size=4), 15)
    for purpose, share in {"holiday": 0.6, "business": 0.4}.items():
        level = 1 + np.cumsum(rng.normal(scale=0.02, size=60)) + 0.02 * cycle
        noise = rng.normal(scale=0.06, size=60)
        visitors = size * share * (level + season + noise)
        columns = {"country": "All", "state": state, "purpose": purpose}
        parts.append(pd.DataFrame({**columns, "ds": quarters, "y": visitors}))
frame = pd.concat(parts, ignore_index=True)
early = frame[frame["ds"] < "2021"]
print(frame.head(3).to_string(index=False))

# %%
# Levels
# ------
# A level is a list of columns; the last has all of them. States and purposes cross each other.

spec = [["country"], ["country", "state"], ["country", "purpose"], ["country", "state", "purpose"]]
model = ETS("add", "none", "add", season_length=4)
forecasts = hierarchy.reconcile(model, early, spec, h=8, level=[80, 95])
wide = forecasts.pivot(index="ds", columns="unique_id", values="ETS")
states = [f"All/{name}" for name in ("North", "East", "South", "West")]
print(f"{wide.shape[1]} series; the states add up to {wide[states].sum(axis=1).iloc[0]:.6f}")
print(f"and the country is forecast as {wide['All'].iloc[0]:.6f}")
shown = forecasts[["ds", "ETS", "ETS-lo-80", "ETS-hi-80"]].head(4)
print(shown.to_string(index=False, float_format="%.1f"))
print(forecasts.attrs["guarantee"])

# %%
# Methods
# -------
# Mean absolute errors of the last two years, relative to those of sums of the lowest forecasts. One
# cutoff of one draw ranks no methods; the table shows what they change.


def level_errors(result):
    """Mean absolute error of each level, by the number of columns that name it."""
    errors = {}
    for columns in spec:
        truth = frame.groupby([*columns, "ds"], as_index=False)["y"].sum()
        truth["unique_id"] = truth[columns].agg("/".join, axis=1)
        both = result.merge(truth, on=["unique_id", "ds"])
        errors[columns[-1] if columns != spec[-1] else "all"] = (both["ETS"] - both["y"]).abs()
    return pd.Series({name: values.mean() for name, values in errors.items()})


methods = ("bottom_up", "ols", "wls_struct", "mint_shrink")
table = pd.DataFrame(
    {name: level_errors(hierarchy.reconcile(model, early, spec, h=8, method=name))
     for name in methods}
)  # fmt: skip
print(table.div(table["bottom_up"], axis=0).round(2).to_string())

# %%
# Intervals of the country, which know how the errors of its parts are correlated:

lowest = hierarchy.reconcile(model, early, spec, h=8, level=80, method="bottom_up")
for name, result in {"mint_shrink": forecasts, "bottom_up": lowest}.items():
    top = result[result["unique_id"] == "All"]
    print(f"{name}: width of 80 percent {(top['ETS-hi-80'] - top['ETS-lo-80']).mean():.1f}")

past = early.groupby("ds", as_index=False)["y"].sum().assign(unique_id="All")
axes = plot_forecasts(
    past[["unique_id", "ds", "y"]], forecasts[forecasts["unique_id"] == "All"], last=32
)
axes[0].figure.savefig(OUTPUT / "country.png")
plt.close(axes[0].figure)
