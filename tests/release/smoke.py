"""Run in an environment with the wheel alone: import, fit, predict, save, load, the command."""

import sysconfig
from pathlib import Path

import numpy as np
import pandas as pd

import tsrnn
from tsrnn import ARMA, ParaRNNForecaster
from tsrnn.datasets import load_macrodata

home = Path(sysconfig.get_path("purelib")) / "tsrnn"
for module in (tsrnn, tsrnn.kernels, tsrnn.datasets):
    assert module.__file__ is not None
    assert home in Path(module.__file__).parents, module.__file__

inflation = load_macrodata()[["infl"]]
network = ParaRNNForecaster(hidden_size=4, horizon=4, max_epochs=2, random_state=0)
for model in (ARMA(order=(1, 1)), network):
    forecast = model.fit(inflation).predict(4)
    assert np.isfinite(forecast.to_numpy()).all()
    model.save("model")
    pd.testing.assert_frame_equal(tsrnn.load("model").predict(4), forecast)
    print(type(model).__name__, "fitted, saved and loaded")
