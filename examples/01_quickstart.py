"""
Forecasts of three real data sets
=================================

A monthly, a weekly and a quarterly data set, each with its last years held out. A
ParaRNN is fitted once to what comes before and then forecasts from every month, week
or quarter of the held-out part, as do an ARIMA model by statsmodels and the seasonal
naive forecast. To the months a network that was trained before is adapted, on the weeks
one is trained, the quarters are forecast by the network as it comes. The tables show root
mean squared and mean absolute errors over all these forecasts, and how many values fell
into the 80 and 95 percent intervals. Nothing is downloaded, and nothing was tuned: the
settings of the network are the defaults.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from _baselines import accuracy, arima, seasonal_naive, var

from tsrnn import ParaRNNForecaster, datasets, forecast_features, recurrence_features
from tsrnn.plotting import plot_contributions, plot_features, plot_forecast, plot_lag_curves

LEVEL = [80, 95]
OUTPUT = Path(os.environ.get("TSRNN_OUTPUT") or Path(__file__).parent / "output")
OUTPUT.mkdir(parents=True, exist_ok=True)
tables = []


def say(text):
    """Print a line at once, before the work it announces."""
    print(f"\n{text}", flush=True)


# %%
# Monthly: sea surface temperature
# --------------------------------
# The temperature of the eastern Pacific, where El Niño shows. The last ten years are held
# out. The ARIMA model is seasonal, with seasonal differences and a seasonal moving
# average, and its order is chosen by AIC.

temperature = datasets.load_elnino()
train, test = temperature[:-120], temperature[-120:]

say("Monthly temperature: adapting a ParaRNN to 612 months ...")
monthly = ParaRNNForecaster(random_state=0).fit(train)
rolled = monthly.predict_rolling(test, level=LEVEL)

say("Monthly temperature: estimating three seasonal ARIMA models ...")
h = monthly.horizon_
orders = [(1, 0, 0), (2, 0, 0), (1, 0, 1)]
by_arima = arima(train, test, h, LEVEL, orders, seasonal_order=(0, 1, 1, 12))
p, d, q = by_arima.attrs["orders"]["temperature"]
forecasts = {
    "ParaRNN": rolled,
    f"ARIMA({p},{d},{q})(0,1,1)12": by_arima,
    "seasonal naive": seasonal_naive(train, test, h, LEVEL, season=12),
}
print(f"Errors in degrees Celsius, {len(test) - h + 1} origins, 1 to {h} months ahead:")
tables.append(accuracy(test, forecasts, LEVEL))
print(tables[-1].round(3).to_string())

# %%
# What forecasts: structural models, weighed by a network that has seen many series before and
# was moved a little towards this one.

print(monthly.summary())

# %%
# Weekly: carbon dioxide at Mauna Loa
# -----------------------------------
# 59 weeks were not measured, most of them before 1965. The network needs a value a row
# and is told to interpolate; the Kalman filter behind ARIMA passes over them. A season of
# 52.18 weeks is no matter for a seasonal ARIMA model: a trend and three pairs of sine and
# cosine are regressors instead. The last five years are held out.

co2 = datasets.load_co2()
train, test = co2[:-260], co2[-260:]
years = pd.Series((co2.index - co2.index[0]).days / 365.25, index=co2.index)
waves = {
    f"{wave.__name__} {k}": wave(2 * np.pi * k * years)
    for k in (1, 2, 3)
    for wave in (np.sin, np.cos)
}
calendar = pd.DataFrame({"trend": years, **waves})

say("Weekly CO2: estimating a ParaRNN on 2024 weeks ...")
weekly = ParaRNNForecaster(missing="interpolate", random_state=0).fit(train)
rolled = weekly.predict_rolling(test, level=LEVEL)

say("Weekly CO2: estimating two regressions with ARIMA errors ...")
h = weekly.horizon_
by_arima = arima(train, test, h, LEVEL, [(1, 1, 1), (2, 1, 1)], exog=calendar)
p, d, q = by_arima.attrs["orders"]["co2"]
forecasts = {
    "ParaRNN": rolled,
    f"waves + ARIMA({p},{d},{q})": by_arima,
    "seasonal naive": seasonal_naive(train, test, h, LEVEL, season=52),
}
print(f"Errors in parts per million, {len(test) - h + 1} origins, 1 to {h} weeks ahead:")
tables.append(accuracy(test, forecasts, LEVEL))
print(tables[-1].round(3).to_string())

# %%
# What was estimated. The first lines say what forecasts, and what the network brings on the
# validation part; where it brings nothing, the level and the linear path forecast alone.

print(weekly.summary())

# %%
# Quarterly: a macroeconomic panel
# --------------------------------
# Growth of output and consumption and inflation, all in percent a year, and the changes
# of the unemployment and the bill rate in percentage points: each is stationary or close
# to it. One network, trained before, forecasts the five variables; the rivals are an ARIMA
# model for each and a vector autoregression. The twelve years held out end in the recession
# of 2008-09.

raw = datasets.load_macrodata()
macro = pd.DataFrame(
    {
        "output": 400 * np.log(raw["realgdp"]).diff(),
        "consumption": 400 * np.log(raw["realcons"]).diff(),
        "inflation": 400 * np.log(raw["cpi"]).diff(),
        "unemployment": raw["unemp"].diff(),
        "bill rate": raw["tbilrate"].diff(),
    }
)[1:]
train, test = macro[:-48], macro[-48:]

say("Quarterly macroeconomic panel: a ParaRNN reads 154 quarters of 5 variables ...")
quarterly = ParaRNNForecaster(random_state=0).fit(train)
rolled = quarterly.predict_rolling(test, level=LEVEL)

say("Quarterly macroeconomic panel: estimating ARIMA models and a VAR ...")
h = quarterly.horizon_
by_arima = arima(train, test, h, LEVEL, [(p, 0, 0) for p in (1, 2, 3, 4)])
by_var = var(train, test, h, LEVEL)
forecasts = {
    "ParaRNN": rolled,
    "ARIMA(p,0,0)": by_arima,
    f"VAR({by_var.attrs['lags']})": by_var,
    "seasonal naive": seasonal_naive(train, test, h, LEVEL, season=4),
}
print(f"Errors in percentage points, {len(test) - h + 1} origins, 1 to {h} quarters ahead:")
tables.append(accuracy(test, forecasts, LEVEL))
print(tables[-1].round(3).to_string())
print("ARIMA orders by AIC:", by_arima.attrs["orders"])

# %%
# Which model came out best
# -------------------------
# One history of each series is little evidence: forecasts from neighbouring origins share
# most of their errors. On single series of rates, which return to a mean, a good ARIMA model
# is hard to beat.

best = pd.concat(tables)["RMSE"].unstack("series", sort=False).idxmin()
print("Smallest RMSE:")
print(best.to_string())

# %%
# Pictures
# --------
# Forecasts from the last origin that leaves the whole horizon to compare with.

say("Drawing three pictures ...")
panels = [
    (monthly, temperature, "temperature", 72, "Sea surface temperature"),
    (weekly, co2.interpolate(), "co2", 104, "Carbon dioxide at Mauna Loa"),
    (quarterly, macro, "output", 48, "Output growth of the United States"),
]
figure, axes = plt.subplots(3, 1, figsize=(8.6, 9), layout="constrained")
for ax, (model, data, column, shown, title) in zip(axes, panels, strict=True):
    past, future = data[: -model.horizon_], data[-model.horizon_ :]
    forecast = model.predict(past, level=LEVEL)
    plot_forecast(past, forecast, ax, column=column, last=shown, actual=future)
    ax.set_title(title, loc="left", pad=22, fontsize=11)
axes[0].set_ylabel("degrees Celsius")
axes[1].set_ylabel("parts per million")
axes[2].set_ylabel("percent a year")
figure.savefig(OUTPUT / "forecasts.png", dpi=110)

# %%
# What the forecasts of the temperature rest on: all their parts together as decays and damped
# waves, the year first. Each feature in the unit disk, and how the leading ones carry an impulse
# on as time passes.

features = forecast_features(monthly)
print(f"Features of the forecasts of the temperature, times in {features.attrs['time_unit']}:")
print(features.drop(columns=["order", "angle"]).round(2).to_string(index=False))

figure, (left, right) = plt.subplots(
    1, 2, figsize=(13, 4.6), layout="constrained", width_ratios=[1.25, 1]
)
plot_features(features, left, n_labels=4)
plot_lag_curves(features, n=3, ax=right, max_lag=48)
figure.savefig(OUTPUT / "memory.png", dpi=110)

# %%
# A network that does forecast, of a series whose dynamics are not linear: the map of Hénon.

henon = np.zeros(700)
for t in range(2, 700):
    henon[t] = 1 - 1.4 * henon[t - 1] ** 2 + 0.3 * henon[t - 2]
small = {"hidden_size": 16, "n_layers": 1, "learning_rate": 0.005, "max_epochs": 12}
nonlinear = ParaRNNForecaster(horizon=3, random_state=0, **small).fit(pd.Series(henon[100:]))
print(nonlinear.summary().composition)
features = recurrence_features(nonlinear)
print(f"\nThe blocks that its forecasts rest on most, times in {features.attrs['time_unit']}:")
last = features.nlargest(6, "share")
print(last.drop(columns=["order", "angle"]).round(2).to_string(index=False))

# %%
# What the last forecast of carbon dioxide is made of: the level of the window, the linear
# path and the network.

ax = plot_contributions(weekly.contributions(), n=6)
ax.set_ylabel("parts per million")
ax.figure.savefig(OUTPUT / "contributions.png", dpi=110)

for name in ("forecasts.png", "memory.png", "contributions.png"):
    print(OUTPUT / name)
