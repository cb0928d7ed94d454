"""Training on a CUDA device, beside the CPU."""

import pandas as pd
import pytest
import torch

from tsrnn import LEMForecaster, LRUForecaster, NewtonForecaster, ParaRNNForecaster

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        (ParaRNNForecaster, {}),
        (ParaRNNForecaster, {"cell": "lstm", "block_size": 8}),
        (ParaRNNForecaster, {"preset": "paper", "max_epochs": 2, "hidden_size": 8}),
        (LEMForecaster, {}),
        (LRUForecaster, {}),
        (NewtonForecaster, {}),
    ],
    ids=["ParaRNN", "ParaLSTM", "paper", "LEM", "LRU", "Newton"],
)
def test_forecasts_are_those_of_the_cpu(cls, settings, wave):
    small = {
        "horizon": 6, "input_size": 12, "hidden_size": 8, "n_layers": 1, "max_epochs": 3,
        "network": True, "refit": False, "random_state": 0,
    }  # fmt: skip
    on_cpu, on_device = (
        cls(**(small | settings), device=device).fit(wave).predict() for device in ("cpu", "cuda")
    )
    pd.testing.assert_series_equal(on_device, on_cpu, rtol=1e-2)
