"""
Correlations over time
======================

How the S&P 500, the NASDAQ and the price of oil move together, day by day: a VECM-GARCH model,
which is a linear recurrent network for the covariance matrix (Cai, Li, Huang and Li, 2026,
section 2.1), beside a model of dynamic conditional correlations (Engle, 2002).
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd

from tsrnn import CCC, DCC, VECMGARCH, datasets
from tsrnn.plotting import plot_correlations

OUTPUT = Path(os.environ.get("TSRNN_OUTPUT") or Path(__file__).parent / "output")
OUTPUT.mkdir(parents=True, exist_ok=True)

# %%
# The data
# --------
# Daily returns in percent on days on which all three were traded, by number of the trading
# day: weekends and holidays leave gaps in the calendar, but none in the market.

prices = pd.DataFrame(
    {
        "sp500": datasets.load_sp500()["Adj Close"],
        "nasdaq": datasets.load_nasdaq()["Adj Close"],
        "oil": datasets.load_wti()["wti"],
    }
).dropna()
returns = (100 * np.log(prices).diff()).iloc[-1200:]
days = returns.index
returns = returns.reset_index(drop=True)
print(returns.describe().loc[["mean", "std", "min", "max"]].round(2))
print(f"{len(returns)} trading days, {days[0].date()} to {days[-1].date()}")

# %%
# VECM-GARCH
# ----------
# `vech(H[t]) = b + Theta vech(e[t-1] e[t-1]') + Phi vech(H[t-1])`. Without a restriction three
# series have 78 coefficients; the BEKK form has 24 and is positive definite by construction.
# As a network it has a hidden state of six numbers.

bekk = VECMGARCH(structure="bekk").fit(returns)
print(bekk.summary())
print(f"starts that agree: {bekk.agreement_.iloc[0]}")
print(bekk.to_rnn())

# %%
# DCC
# ---
# One GARCH for each series, then two parameters for all correlations. The test says whether
# correlations are constant; CCC is the model in which they are.

dcc = DCC().fit(returns)
ccc = CCC().fit(returns)
print(dcc.params_.iloc[0][["a[1]", "b[1]"]].round(4).to_string())
print(dcc.constant_correlation_test(lags=5).round(4).to_string())
models = {"BEKK": bekk, "DCC": dcc, "CCC": ccc}
table = pd.DataFrame(
    {
        "log-likelihood": [model.loglik_.iloc[0] for model in models.values()],
        "parameters": [model.params_.shape[1] for model in models.values()],
        "BIC": [model.bic_.iloc[0] for model in models.values()],
    },
    index=list(models),
)
print(table.round(1).to_string())

# %%
# Correlations over time
# ----------------------
# Both models tell the same story: stocks move together all the time, stocks and oil in
# some years and not in others.

for name, model in (("bekk", bekk), ("dcc", dcc)):
    paths = model.correlations()
    paths["time"] = days[paths["time"]]
    ax = plot_correlations(paths)
    ax.set_title(f"Conditional correlations, {name.upper()}", loc="left")
    ax.figure.savefig(OUTPUT / f"correlations_{name}.png", dpi=110)

# %%
# Forecasts of the covariance matrix, and what a day on which oil alone falls by 5 percent
# does to the variances and covariances after it (Hafner and Herwartz, 2006).

print(bekk.predict_correlations(h=3).round(3).to_string(index=False))
print(bekk.volatility_response([0.0, 0.0, -5.0], h=4).round(3).to_string())
for name in ("correlations_bekk.png", "correlations_dcc.png"):
    print(OUTPUT / name)
