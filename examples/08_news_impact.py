"""
The news impact curve, without a model of it
============================================

How does today's return move tomorrow's risk? A GARCH model answers with a parabola, GJR-GARCH
with one that is steeper on the left. Here the answer is estimated: the expected absolute return
of tomorrow, given the returns of sixty days, is a regression function of a sequence, and a small
recurrent network is fitted to it by empirical risk minimisation (Cai, Li, Huang and Li, 2026,
section 4). Its risk is compared with that of a constant, of exponential smoothing and of
GJR-GARCH; then the function is read: as a news impact curve with a band, and by how far back it
looks.
"""

import os
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd

from tsrnn import GARCH, ParaRNNRegressor, backtest, datasets
from tsrnn.erm import (
    BlockedKFold,
    block_bootstrap,
    cross_validated_risk,
    empirical_risk,
    memory,
    partial_dependence,
)
from tsrnn.plotting import plot_functional

matplotlib.use("Agg")
import matplotlib.pyplot as plt

OUTPUT = Path(os.environ.get("TSRNN_OUTPUT") or Path(__file__).parent / "output")
OUTPUT.mkdir(parents=True, exist_ok=True)

# %%
# Sequences and targets
# ---------------------
# Daily returns of the S&P 500 in percent, 1999 to 2018. A sample is a window of 60 days; its target
# is the absolute return of the day after. The last 970 days are kept for the end.

STEPS, LAST = 60, 970
close = datasets.load_sp500()["Adj Close"]
returns = 100 * np.log(close).diff().dropna().to_numpy()
X = np.lib.stride_tricks.sliding_window_view(returns, STEPS)[:-1]
z = np.abs(returns[STEPS:])
X_train, z_train, X_test, z_test = X[:-LAST], z[:-LAST], X[-LAST:], z[-LAST:]
print(f"{len(X_train)} samples to estimate from, {len(X_test)} to judge by")

# %%
# The estimate
# ------------
# Windows of one series overlap, so that a random validation part would share days with the training
# part: it is the last fifth instead.

network = ParaRNNRegressor(
    hidden_size=16,
    learning_rate=1e-3,
    validation_split="last",
    validation_fraction=0.2,
    random_state=0,
)
network.fit(X_train, z_train)
print(network.summary())

# %%
# Its risk
# --------
# Mean squared error on the last days. Days in sequence have dependent errors: standard errors allow
# for correlation up to 20 days. Differences are of the same days.


class Smoothing:
    """E|r| as the exponentially weighted mean of past absolute returns."""

    def __init__(self, decay=0.94):
        weights = decay ** np.arange(STEPS)[::-1]
        self.weights = weights / weights.sum()

    def predict(self, X):
        return np.abs(X) @ self.weights


class Known:
    """Values computed elsewhere."""

    def __init__(self, values):
        self.values = values

    def predict(self, X):
        return self.values


series = pd.Series(returns, name="S&P 500")
variances = backtest(
    {"gjr": GARCH(vol="gjr")}, series, h=1, n_windows=LAST, refit=False, kind="variance"
)
gjr = Known(np.sqrt(2 / np.pi * variances["gjr"].to_numpy()))  # E|r| of a normal return

models = {
    "network": network,
    "GJR-GARCH": gjr,
    "exponential smoothing": Smoothing(),
    "constant": Known(np.full(LAST, z_train.mean())),
}
risks = {name: empirical_risk(m, X_test, z_test, lags=20) for name, m in models.items()}
print("\nrisk on the last days, and difference to the network")
for name, risk in risks.items():
    difference = risk.minus(risks["network"])
    print(
        f"{name:<22}{risk.value:7.3f} ({risk.std_error:.3f})"
        f"{difference.value:+9.3f} ({difference.std_error:.3f})"
    )

# %%
# The same from the training days alone: five blocks, each judged by a network fitted to the others,
# 60 days on either side left out so that no window is in both parts.

blocked = cross_validated_risk(network, X_train, z_train, cv=BlockedKFold(5, h=STEPS), lags=20)
print(f"\nby blocks of the training days: {blocked}")

# %%
# The news impact curve
# ---------------------
# Partial dependence on the newest return: the mean prediction over all days, had the last return
# been this. The band is of refits to blocks of 120 days, longer than a window, so that it stands
# for the sampling error of dependent days; what it does not contain is said with it.

refits = block_bootstrap(
    network, X_train, z_train, n_estimators=19, block_length=120, random_state=0, n_jobs=2
)
days = X_train[::5]
curve = partial_dependence(refits, days, lag=0, grid=np.linspace(-4, 4, 17), level=90)
print("\nexpected absolute return tomorrow, by the return today")
print(curve.iloc[::2].round(2).to_string(index=False))
print(curve.attrs["guarantee"])

fall, rise = curve["estimate"].iloc[[0, -1]]
print(f"\nafter a fall of 4 percent {fall:.2f}, after a rise of 4 percent {rise:.2f}")

# %%
# How far back it looks
# ---------------------
# How much predictions change, as a share of their variance, where all returns older than a lag are
# those of another day.

past = memory(network, days, max_lag=40, n_swaps=3, random_state=0)
lag = past.attrs["memory_length"]
reach = "more than 40 days" if lag is None else f"{lag} days"
print(f"\nthe network looks {reach} back; what is older is below 5 percent of the variance")

figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
plot_functional(curve, ax=axes[0])
axes[0].set_xlabel("Return today (percent)")
axes[0].set_ylabel("Expected absolute return tomorrow (percent)")
plot_functional(past, ax=axes[1])
figure.suptitle("S&P 500: the news impact curve, and how far back the network looks")
figure.savefig(OUTPUT / "news_impact.png", dpi=150)
print(f"drawn: {OUTPUT / 'news_impact.png'}")
