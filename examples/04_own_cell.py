"""
A recurrence of one's own
=========================

A cell is one step of a recurrence, written down once as a function of scalars. Everything else
follows from it: the kernels, their derivatives, the layer and the forecaster. Two recurrences
from the literature, ten lines each, are compared with the obvious loop, differentiated, and
then trained as the network of a forecaster, beside the default one and the seasonal naive
forecast.
"""

import time

import torch
from _baselines import accuracy, seasonal_naive
from torch import sigmoid, tanh

from tsrnn import ParaRNNForecaster, datasets
from tsrnn.kernels import Cell, recurrence
from tsrnn.layers import ParaRNN

# %%
# Two cells
# ---------
# The minimal gated recurrent unit of Feng et al. (2024): the gate and the candidate depend on
# the input alone, so there is nothing but the projections to estimate, and p = 0.


def min_gru_step(state, inputs, params):
    """Gate by the input alone: h' = (1 - z) h + z candidate, with z = sigmoid(gate)."""
    (h,), (gate, candidate) = state, inputs
    z = sigmoid(gate)
    return ((1 - z) * h + z * candidate,)


min_gru = Cell("min_gru", n=1, m=2, p=0, step=min_gru_step)

# %%
# UnICORNN (Rusch and Mishra, 2021): an undamped oscillator driven by the input, one a unit,
# with a frequency w and a time scale c of its own. Position y and velocity z are the state;
# the layer hands on the position.

DT, ALPHA = 0.3, 1.0


def unicornn_step(state, inputs, params):
    """Accelerate, then move: z' = z - dt (tanh(w y + u) + alpha y), y' = y + dt z'."""
    (y, z), (u,), (w, c) = state, inputs, params
    dt = DT * sigmoid(c)
    z = z - dt * (tanh(w * y + u) + ALPHA * y)
    return y + dt * z, z


names = (("y", "z"), ("u",), ("w", "c"))
unicornn = Cell("unicornn", n=2, m=1, p=2, step=unicornn_step, outputs=1, names=names)

# %%
# The obvious loop
# ----------------
# `recurrence` runs a cell for K units at once. The step is an ordinary function of torch too,
# so a loop over time is the check: states, and the gradient of every argument.

torch.manual_seed(0)
batch, steps, units = 4, 50, 6
for cell in (min_gru, unicornn):
    inputs = torch.randn(batch, steps, cell.m, units, dtype=torch.float64, requires_grad=True)
    params = torch.randn(cell.p, units, dtype=torch.float64, requires_grad=True)
    initial = torch.randn(batch, cell.n, units, dtype=torch.float64, requires_grad=True)
    state, looped = initial.unbind(1), []
    for t in range(steps):
        state = cell.step(state, inputs[:, t].unbind(1), params.unbind())
        looped.append(torch.stack(state, 1))
    loop = torch.stack(looped, 1)
    states, final = recurrence(cell, inputs, params, initial)
    weights = torch.randn_like(loop)
    leaves = (inputs, params, initial) if cell.p else (inputs, initial)
    compiled = torch.autograd.grad((states * weights).sum(), leaves)
    expected = torch.autograd.grad((loop * weights).sum(), leaves)
    gaps = [(a - b).abs().max() for a, b in zip(compiled, expected, strict=True)]
    gap = (states - loop).abs().max()
    print(f"{cell.name} and its loop: states differ by {gap:.0e}, gradients by {max(gaps):.0e}")

# %%
# A layer
# -------
# The layer projects its inputs to the m fields of every unit. What it carries from step to step
# are all n fields: twice the outputs for the oscillator.

layer = ParaRNN(input_size=3, hidden_size=16, num_layers=2, cell=unicornn)
output, h_n = layer(torch.randn(8, 100, 3))
print(layer)
print(f"output {tuple(output.shape)}, state {tuple(h_n.shape)}")

# %%
# A forecaster
# ------------
# The sea surface temperature of the eastern Pacific, monthly. The last ten years are held out,
# and every month of them is forecast from. Nothing is tuned: networks are small, to be quick, and
# differ in their cell alone.

temperature = datasets.load_elnino()
train, test = temperature[:-120], temperature[-120:]
small = {"horizon": 12, "hidden_size": 16, "n_layers": 1, "random_state": 0}
forecasts = {}
for cell in ("rnn", min_gru, unicornn):
    name = cell if isinstance(cell, str) else cell.name
    start = time.perf_counter()
    model = ParaRNNForecaster(cell=cell, **small).fit(train)
    forecasts[name] = model.predict_rolling(test, level=[80])
    epochs = f"best epoch {model.best_epoch_} of {len(model.history_)}"
    print(f"{name}: {epochs}, {time.perf_counter() - start:.1f} s", flush=True)
forecasts["seasonal naive"] = seasonal_naive(train, test, 12, [80], season=12)
table = accuracy(test, forecasts, [80]).loc["temperature"].sort_values("RMSE")
print(f"\nErrors in degrees Celsius, {len(test) - 11} origins, 1 to 12 months ahead:")
print(table.round(3).to_string())

# %%
# One history of one series is little evidence for one cell over another: forecasts from
# neighbouring months share most of their errors, and all three networks stand beside the same
# linear path. An undamped oscillator never forgets; where series are long, its state may leave
# the range that the segments it was trained on have shown to the layers above.

# %%
# A forecaster with an own cell is kept by pickle, since the cell is code; `save` writes data
# only and says so.

try:
    model.save("forecaster.tsrnn")
except TypeError as error:
    print(f"\n{error}")
