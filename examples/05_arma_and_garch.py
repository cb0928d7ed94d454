"""
ARMA and GARCH as recurrent networks
====================================

An ARMA(1,1) and a GARCH(1,1) are linear recurrent networks with one hidden state (Cai, Li,
Huang and Li, 2026, section 2.1). This example fits each of them three times: by `ARMA` and
`GARCH` of this package, by statsmodels and arch, and by training the linear ParaRNN layer with
Lightning. The three give the same numbers. Then it reads what was fitted.
"""

import logging
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from arch import arch_model
from lightning import LightningModule, Trainer
from statsmodels.tsa.statespace.sarimax import SARIMAX
from torch.utils.data import DataLoader, TensorDataset

from tsrnn import ARMA, GARCH, datasets, recurrence_features
from tsrnn.layers import ParaRNN

OUTPUT = Path(os.environ.get("TSRNN_OUTPUT") or Path(__file__).parent / "output")
OUTPUT.mkdir(parents=True, exist_ok=True)
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="lightning")

# %%
# A linear layer, trained
# -----------------------
# Both networks below are one linear layer, `h[t] = W_h h[t-1] + W_x x[t] + b`, with one
# hidden state. What differs is the input and the loss. Quasi-Newton steps on the whole
# series, in float64, take the loss to its minimum to many digits. They start from given
# weights of a stable recurrence: from random ones a first long step may leave the stable region,
# where the states of a long series overflow.


class Linear(LightningModule):
    """A linear recurrent layer of one state, and the mean of the series."""

    def __init__(self, y, bias):
        super().__init__()
        self.rnn = ParaRNN(1, 1, 1, nonlinearity="identity", bias=bias, dtype=torch.float64)
        self.mean = torch.nn.Parameter(torch.tensor(y.mean()))

    def configure_optimizers(self):
        return torch.optim.LBFGS(
            self.parameters(),
            max_iter=200,
            tolerance_grad=1e-10,
            tolerance_change=1e-15,
            line_search_fn="strong_wolfe",
        )


def trained(network, y):
    """Train on one series, (1, T, 1), and return the network."""
    series = DataLoader(TensorDataset(torch.tensor(y)[None, :, None]))
    trainer = Trainer(
        max_epochs=5,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(network, series)
    return network


def side_by_side(**columns):
    """Print estimates beside each other and return their largest difference."""
    table = pd.DataFrame(columns)
    print(table.to_string(float_format="{:.8f}".format))
    gap = table.sub(table.iloc[:, 0], axis=0).abs().to_numpy().max()
    print(f"largest difference: {gap:.1e}")
    return gap


# %%
# ARMA(1,1)
# ---------
# `h[t] = E(y[t] | past)` follows `h[t] = -theta h[t-1] + (phi + theta) y[t-1]`, here in
# deviations from the mean, where theta has the sign of statsmodels. The series is the
# quarterly inflation of the United States. The network starts from zero, that is from a state
# that is known: the likelihood is the conditional one, and its maximum is where the sum of
# squared one-step errors is least.


class OneStepErrors(Linear):
    def __init__(self, y):
        super().__init__(y, bias=False)
        self.rnn.weight_hh_l0.data.fill_(0.5)
        self.rnn.weight_ih_l0.data.fill_(0.3)

    def training_step(self, batch, _):
        deviation = batch[0] - self.mean
        past = torch.nn.functional.pad(deviation[:, :-1], (0, 0, 1, 0))
        return ((deviation - self.rnn(past)[0]) ** 2).mean()


class FromZero(SARIMAX):
    """statsmodels' filter, started from a known state: all that came before is zero."""

    def update(self, params, **kwargs):
        super().update(params, **kwargs)
        selection, variance = self.ssm["selection"], self.ssm["state_cov"]
        known = np.zeros(self.ssm.k_states)
        self.ssm.initialize_known(known, selection @ variance @ selection.T)


inflation = datasets.load_macrodata()["infl"]
y = inflation.to_numpy()
arma = ARMA(order=(1, 1), likelihood="conditional").fit(inflation)
other = FromZero(y, exog=np.ones(len(y)), order=(1, 0, 1)).fit(disp=0, method="bfgs", gtol=1e-8)
network = trained(OneStepErrors(y), y)

W_h, W_x = (float(w.detach()) for w in (network.rnn.weight_hh_l0, network.rnn.weight_ih_l0))
gap = side_by_side(
    ARMA=arma.params_.iloc[0][["const", "ar.L1", "ma.L1"]],
    statsmodels=dict(zip(["const", "ar.L1", "ma.L1"], other.params[:3], strict=True)),
    ParaRNN={"const": float(network.mean.detach()), "ar.L1": W_x + W_h, "ma.L1": -W_h},
)
assert gap < 1e-4, gap

# %%
# From one to the other and back: `to_rnn` gives the layer with the weights of the ARMA, and
# `from_rnn` reads the ARMA in a layer, whatever basis its states have.

layer = arma.to_rnn()
print(f"W_h = {layer.weight_hh_l0.item():.6f}, W_x = {layer.weight_ih_l0.item():.6f}")
print(ARMA.from_rnn(layer).round(6).to_string())
print(arma.summary())

# %%
# Its recurrence features are its roots. That of the autoregressive part says how fast a shock
# to inflation is forgotten, that of the moving average, W_h of the network, how far back the
# filter looks.

print(recurrence_features(arma)[["matrix", "type", "modulus", "half_life"]].to_string())

# %%
# GARCH(1,1)
# ----------
# The variance `h[t] = omega + alpha e[t-1]^2 + beta h[t-1]` is the same network: `W_h` is
# beta, `W_x` is alpha, `b` is omega, the input is the squared residual, and the loss is the
# Gaussian likelihood. All three start from the same variance, a weighted mean of the first 75
# squared residuals ("backcast").


class GaussianLikelihood(Linear):
    def __init__(self, y, backcast):
        super().__init__(y, bias=True)
        self.backcast = backcast
        start = {"weight_hh_l0": 0.9, "weight_ih_l0": 0.05, "bias_l0": 0.05 * y.var()}
        for name, value in start.items():
            getattr(self.rnn, name).data.fill_(value)

    def training_step(self, batch, _):
        squares = (batch[0] - self.mean) ** 2
        before = torch.full_like(squares[:, :1], self.backcast)
        variance, _ = self.rnn(torch.cat([before, squares[:, :-1]], 1), before)
        return (torch.log(variance) + squares / variance).mean() / 2


prices = datasets.load_sp500()["Adj Close"]
returns = (100 * np.log(prices).diff().dropna())[-1500:].reset_index(drop=True).rename("sp500")
y = returns.to_numpy()
weights = 0.94 ** np.arange(75)
backcast = float(weights @ (y - y.mean())[:75] ** 2 / weights.sum())

garch = GARCH(order=(1, 1)).fit(returns)
other = arch_model(y, rescale=False).fit(disp="off", tol=1e-13)
network = trained(GaussianLikelihood(y, backcast), y)

names = ["mu", "omega", "alpha[1]", "beta[1]"]
rnn = network.rnn
learned = (network.mean, rnn.bias_l0, rnn.weight_ih_l0, rnn.weight_hh_l0)
gap = side_by_side(
    GARCH=garch.params_.iloc[0][names],
    arch=other.params[names],
    ParaRNN={name: float(w.detach()) for name, w in zip(names, learned, strict=True)},
)
assert gap < 1e-5, gap
print(garch.summary())
