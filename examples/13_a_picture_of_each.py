"""
A picture of each model
=======================

Every public model once, on data of its kind, in the shortest call that draws: a forecaster has
``plot``; impulse responses, correlations and predictions are frames that pandas draws. The decision
table "Which model for my data?" says when to take which.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tsrnn import (
    ARMA,
    CCC,
    CES,
    DCC,
    ETS,
    GARCH,
    TSB,
    VARMA,
    VECMGARCH,
    AutoARIMA,
    Combination,
    Croston,
    LEMForecaster,
    LocalProjections,
    LRUForecaster,
    NewtonForecaster,
    ParaRNNClassifier,
    ParaRNNForecaster,
    ParaRNNRegressor,
    PartiallyLinear,
    Theta,
    datasets,
)

OUTPUT = Path(os.environ.get("TSRNN_OUTPUT") or Path(__file__).parent / "output")
OUTPUT.mkdir(parents=True, exist_ok=True)


def draw_each(models, frame, horizon, name):
    """Fit models to a frame, and draw the forecasts of each in a panel."""
    n_columns = 2 if len(models) == 4 else 3
    n_rows = len(models) // n_columns
    figure, axes = plt.subplots(n_rows, n_columns, figsize=(11, 2.8 * n_rows), layout="constrained")
    for model, ax in zip(models, axes.flat, strict=True):
        model.fit(frame).plot(horizon, ax=ax)
        ax.get_legend().remove()  # black the history, blue the forecast with 80 percent intervals
        ax.set_title(type(model).__name__)
        print(f"{type(model).__name__}: {model.predict(1).iloc[0, -1]:.2f} ahead")
    figure.savefig(OUTPUT / f"{name}.png", dpi=110)


# %%
# Recurrent networks
# ------------------
# Sea surface temperature by month. Each cell has a network that was trained before; a training on
# these rows alone is one argument away, ``prior=None``.

water = datasets.load_elnino()[-150:]
networks = [ParaRNNForecaster(), LEMForecaster(), LRUForecaster(), NewtonForecaster()]
draw_each(networks, water, 12, "networks")

# %%
# Classical models
# ----------------

turnover = datasets.load_elec_equip()[-120:]
classical = [
    ARMA(order=(1, 0, 0), seasonal_order=(0, 1, 1, 12)),
    AutoARIMA(),
    ETS(),
    Theta(),
    CES(),
    Combination.classical(),
]
draw_each(classical, turnover, 12, "classical_models")

# %%
# Slow movers
# -----------

rng = np.random.default_rng(0)
months = pd.date_range("2019-01-01", periods=60, freq="MS")
parts = pd.DataFrame({"sold": rng.poisson(0.6, 60).astype(float)}, index=months)
draw_each([Croston(), TSB(), ParaRNNForecaster()], parts, 6, "slow_movers")

# %%
# Several series
# --------------

growth = 100 * np.log(datasets.load_macrodata()[["realgdp", "realcons"]]).diff().dropna()
rates = datasets.load_interest_inflation()
figure, axes = plt.subplots(2, 2, figsize=(11, 5.6), layout="constrained")
VARMA(order=(2, 0)).fit(growth).plot(8, ax=axes[0])
VECMGARCH(mean="vecm", mean_order=4, random_state=0).fit(rates).plot(8, ax=axes[1])
for row, model in zip(axes, (VARMA, VECMGARCH), strict=True):
    for ax in row:
        ax.get_legend().remove()
        ax.set_title(model.__name__)
figure.savefig(OUTPUT / "several_series.png", dpi=110)

# %%
# Volatility and correlations
# ---------------------------

factors = datasets.load_frenchdata().loc["2005":, ["Mkt-RF", "SMB"]]  # monthly, in percent
figure, axes = plt.subplots(3, 1, figsize=(11, 7), layout="constrained")
GARCH(random_state=0).fit(factors[["Mkt-RF"]]).plot(20, ax=axes[0])
axes[0].get_legend().remove()
axes[0].set_title("GARCH")
for ax, model in zip(axes[1:], (CCC(mean="zero"), DCC(mean="zero")), strict=True):
    model.fit(factors).correlations().plot(x="ds", y="correlation", ax=ax, legend=False)
    ax.set_title(f"{type(model).__name__}: correlation of the factors")
figure.savefig(OUTPUT / "volatility.png", dpi=110)

# %%
# Effects
# -------
# The response of unemployment to the interest rate, quarter by quarter, and the effect of
# unemployment on inflation beside a flexible control.

data = datasets.load_macrodata().iloc[1:]
figure, axes = plt.subplots(1, 2, figsize=(11, 3.4), layout="constrained")
responses = LocalProjections("ols", horizons=8, n_lags=4)
responses.fit(data["unemp"], data["tbilrate"], controls=data["infl"]).plot(ax=axes[0])
effect = PartiallyLinear(n_lags=4, random_state=0)
effect.fit(data["infl"], data["unemp"], controls=data["tbilrate"])
effect.params_.plot.bar(yerr=effect.bse_, ax=axes[1], title="PartiallyLinear: effect on inflation")
figure.savefig(OUTPUT / "effects_of_shocks.png", dpi=110)

# %%
# Sequences with a number or a label
# ----------------------------------

X = rng.normal(size=(300, 8))
number = X[:, -1] + 0.5 * X[:, -2] ** 2
regressor = ParaRNNRegressor(max_epochs=30, random_state=0).fit(X[:200], number[:200])
classifier = ParaRNNClassifier(max_epochs=30, random_state=0).fit(X[:200], number[:200] > 0.5)
figure, axes = plt.subplots(1, 2, figsize=(11, 3.4), layout="constrained")
axes[0].scatter(number[200:], regressor.predict(X[200:]), s=8)
axes[0].set(title="ParaRNNRegressor", xlabel="number", ylabel="prediction")
axes[1].scatter(number[200:], classifier.predict_proba(X[200:])[:, 1], s=8)
axes[1].set(title="ParaRNNClassifier", xlabel="number", ylabel="probability of more than 0.5")
figure.savefig(OUTPUT / "sequences.png", dpi=110)
print(f"Pictures: {OUTPUT}")
