"""
Is a network better than ARMA?
==============================

Monthly temperatures, hourly oil temperatures of a transformer and daily returns of shares: a
ParaRNN beside ARMA and other models, forecasting from many origins in the past, with the tests
that say whether a difference is more than luck. Three lines do it: `backtest`, `compare`, and
`report`, which writes a page for the browser. Nothing was tuned: settings are the defaults or the
usual ones.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd

from tsrnn import ARMA, GARCH, Combination, ParaRNNForecaster, backtest, compare, datasets, report
from tsrnn.baselines import SARIMAX, SeasonalNaive, StatsmodelsETS

OUTPUT = Path(os.environ.get("TSRNN_OUTPUT") or Path(__file__).parent / "output")
OUTPUT.mkdir(parents=True, exist_ok=True)


def say(text):
    """Print a line at once, before the work it announces."""
    print(f"\n{text}\n", flush=True)


# %%
# Monthly: sea surface temperature
# --------------------------------
# Sixty windows of twelve months, the last twenty years. Models are estimated before them, once, and
# take in the new months as they come (``refit=False``).

temperature = datasets.load_elnino()
monthly = {
    "ParaRNN": ParaRNNForecaster(horizon=12, random_state=0),
    "ARMA(2,1)": ARMA(order=(2, 1)),
    "SARIMA": SARIMAX(order=(1, 0, 1), seasonal_order=(0, 1, 1, 12)),
    "StatsmodelsETS": StatsmodelsETS(seasonal="add"),
    "seasonal naive": SeasonalNaive(),
}
monthly["mean of two"] = Combination({name: monthly[name] for name in ("ParaRNN", "SARIMA")})

say("Monthly temperature: six models, 60 windows of 12 months ...")
forecasts = backtest(
    monthly, temperature, h=12, n_windows=60, step_size=4, refit=False, level=[80, 95]
)
result = compare(forecasts, benchmark="ARMA(2,1)")
print(result.summary())

fitted = {"ParaRNN": ParaRNNForecaster(horizon=12, random_state=0).fit(temperature)}
page = report(
    result, OUTPUT / "compare_monthly.html", models=fitted, title="El Niño, 12 months ahead"
)
print(f"\nThe same with drawings: {page}")

# %%
# Hourly: oil temperature of a transformer
# ----------------------------------------
# A day ahead from every midnight of two months. The data are downloaded once; without a network
# this part is left out.

try:
    hourly = datasets.load_ett("ETTh1", data_home=os.environ.get("TSRNN_ETT_HOME"))["OT"].iloc[
        :8640
    ]
except OSError:
    say("Hourly oil temperature is left out: the data are not there and cannot be downloaded.")
else:
    models = {
        "ParaRNN": ParaRNNForecaster(horizon=24, random_state=0),
        "ARMA(3,1)": ARMA(order=(3, 1)),
        "seasonal naive": SeasonalNaive(),
    }
    say("Hourly oil temperature: three models, 60 days ...")
    forecasts = backtest(models, hourly, h=24, n_windows=60, refit=False, level=80)
    result = compare(forecasts)
    print(result.summary())
    report(result, OUTPUT / "compare_hourly.html", title="Oil temperature, a day ahead")

# %%
# Daily returns: the variance
# ---------------------------
# The mean of returns cannot be forecast, their variance can. Forecasts of variances are compared by
# QLIKE, which ranks them rightly although the squared return is a noisy stand-in for the variance
# (Patton, 2011).

close = datasets.load_sp500()["Adj Close"]
returns = pd.Series(100 * np.log(close).diff().dropna().to_numpy(), name="S&P 500")
volatility = {
    "GARCH": GARCH(),
    "GJR-GARCH": GARCH(vol="gjr"),
    "GARCH-t": GARCH(distribution="t"),
    "ARCH(1)": GARCH(order=(1, 0)),
}
say("Daily returns of the S&P 500: four models of the variance, 1000 days ...")
forecasts = backtest(volatility, returns, h=1, n_windows=1000, refit=250, kind="variance")
result = compare(forecasts)
print(result.summary())
report(result, OUTPUT / "compare_variance.html", title="Variance of the S&P 500, a day ahead")
