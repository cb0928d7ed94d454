"""
Reading a fitted network
========================

What a recurrent network remembers stands in its recurrent matrix. This example reads one:
first a matrix whose answer is known, then a network fitted to the sea surface temperature
of the eastern Pacific, its recurrence features, the share of each block in the forecast,
and the forecast taken apart. At the end the same network is fitted several times more from other
random numbers, which shows what may be read and what may not.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd

from tsrnn import ParaRNNForecaster, datasets, recurrence_features
from tsrnn.forecasters import feature_stability
from tsrnn.plotting import plot_contributions, plot_features, plot_lag_curves

OUTPUT = Path(os.environ.get("TSRNN_OUTPUT") or Path(__file__).parent / "output")
OUTPUT.mkdir(parents=True, exist_ok=True)

# %%
# A matrix whose answer is known
# ------------------------------
# An autoregression of order two with complex roots is a damped wave:
# `y[t] = 2 g cos(a) y[t-1] - g^2 y[t-2] + e[t]` has the modulus `g` and the angle `a`. As a
# linear recurrence its matrix is the companion matrix, a single 2 x 2 block. With a period
# of 40 quarters and a half-life of 8 quarters, reading the matrix gives both back.

g, a = 0.5 ** (1 / 8), 2 * np.pi / 40
companion = np.array([[2 * g * np.cos(a), -(g**2)], [1, 0]])
known = recurrence_features(companion, freq="QS").iloc[0]
print(f"{known['type']}: half-life {known['half_life']:.1f}, period {known['period']:.1f} quarters")
np.testing.assert_allclose([known["half_life"], known["period"]], [8, 40], rtol=1e-6)

# %%
# A network to read
# -----------------
# For reading rather than for the best forecast: one layer, eight blocks of two units, and
# no linear path, so that everything beyond the level of the last three years goes through
# the recurrent matrix. The last ten years are held out.

temperature = datasets.load_elnino()
train, test = temperature[:-120], temperature[-120:]
settings = {
    "horizon": 12,
    "hidden_size": 16,
    "n_layers": 1,
    "linear_path": False,
    "learning_rate": 0.003,
    "batch_size": 8,
    "max_epochs": 6,
}


def fitted(random_state):
    """Fit a forecaster; returns it and its error on the held-out years."""
    model = ParaRNNForecaster(**settings, random_state=random_state).fit(train)
    forecast = model.predict_rolling(test)["temperature"]
    error = test["temperature"].loc[forecast.index].to_numpy() - forecast
    return model, np.sqrt(np.mean(error**2))


model, rmse = fitted(0)
print(f"RMSE of the first network: {rmse:.2f} degrees Celsius, 1 to 12 months ahead")

# %%
# Recurrence features
# -------------------
# A real eigenvalue of a block is a decay, a pair of complex ones a damped wave (C-1).
# `half_life` and `period` are in months. `share` is the share of the variance of the
# network's output that comes from the block; both features of a block carry the same one.

features = recurrence_features(model)
columns = ["block", "type", "modulus", "half_life", "period", "share"]
by_share = features.sort_values(["share", "block"], ascending=False, kind="stable")
print(by_share[columns].head(8).to_string(index=False, float_format="{:.2f}".format))

# %%
# Under a linear aggregation the output is a sum over the blocks of the last layer, and the
# shares sum to one.

shares = features.groupby("block")["share"].first()
np.testing.assert_allclose(shares.sum(), 1, atol=1e-6)
print(f"Shares of {len(shares)} blocks sum to {shares.sum():.3f}")

ax = plot_features(features, n_labels=4)
ax.figure.savefig(OUTPUT / "features.png", dpi=110)

# %%
# The four strongest as they weigh the past.

ax = plot_lag_curves(by_share, n=4, max_lag=36)
ax.figure.savefig(OUTPUT / "lag_curves.png", dpi=110)

# %%
# Half-lives and periods belong to the matrix itself, that is, to the recurrence while the
# state is small. The slope of tanh, at most 1, multiplies the matrix at every other state.
# An eigenvalue outside the unit circle is therefore no explosion: the state grows until the
# slopes hold it.

# %%
# The forecast taken apart
# ------------------------
# Level, blocks and constant sum to the forecast, step by step, in degrees Celsius.

parts = model.contributions()
forecast = model.predict()["temperature"].to_numpy()
gap = np.abs(parts.sum(axis=1) - forecast).max()
assert gap < 1e-6, gap
blocks = parts.drop(columns=["level", "constant"])
strongest = blocks.abs().mean().nlargest(3).index
print(parts[["level", *strongest]].assign(forecast=forecast).iloc[::3].round(2).to_string())
print(f"The parts sum to the forecast, to {gap:.0e}")

ax = plot_contributions(parts, n=5)
ax.set_ylabel("degrees Celsius")
ax.figure.savefig(OUTPUT / "parts.png", dpi=110)

# %%
# What may be read, and what may not
# ----------------------------------
# The same network from other random numbers forecasts about as well, and nearly the same
# values, but it shares the work between its blocks differently: neither the order of the
# blocks nor how many of them serve one purpose is determined by the data. What fits from
# several random states have in common is worth an interpretation, what only one has is not.

# `feature_stability` counts it: the forecaster is refitted to stretches of the data, each from
# another start, and every feature of the whole forecast is looked for in the refits. With
# ``of="network"`` it looks for those of the blocks.

whole = feature_stability(model, train, n_refits=8)
print(whole)

other, other_rmse = fitted(1)
second = other.predict()["temperature"].to_numpy()
print(f"RMSE of the second network: {other_rmse:.2f} degrees Celsius")
print(f"Correlation of their next 12 forecasts: {np.corrcoef(forecast, second)[0, 1]:.2f}")
largest = pd.DataFrame(
    {
        "first": shares.sort_values(ascending=False).to_numpy(),
        "second": np.sort(recurrence_features(other).groupby("block")["share"].first())[::-1],
    },
    index=pd.RangeIndex(1, len(shares) + 1, name="rank"),
)
print("Shares of the blocks, largest first:")
print(largest.round(2).to_string())
for name in ("features.png", "lag_curves.png", "parts.png"):
    print(OUTPUT / name)
