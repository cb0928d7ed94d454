"""The forecaster of linear recurrent units with an input that tells the time."""

import numpy as np
import pandas as pd
import pytest
import torch

from tsrnn import LRUForecaster, load
from tsrnn.interpret import elapsed_steps, reconstruct_input

SERIES = pd.DataFrame(
    np.sin(np.arange(70.0))[:, None], columns=["y"],
    index=pd.period_range("2000-01", periods=70, freq="M").to_timestamp(),
)  # fmt: skip
SMALL = {
    "horizon": 2, "input_size": 6, "hidden_size": 8, "n_layers": 2, "max_epochs": 5, "r_min": 0.9,
    "refit": False, "random_state": 0, "constant_input": True, "linear_path": False,
}  # fmt: skip


def test_a_constant_input_is_fitted_saved_and_carried_on(tmp_path):
    model = LRUForecaster(**SMALL).fit(SERIES.iloc[:60])
    assert model.network_.rnn.constant_input
    assert model.settings_.options["constant_input"] is True
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.constant_input is True
    assert loaded.predict(5).equals(model.predict(5))
    whole = model.predict(SERIES, h=3)
    parts = model.update(SERIES.iloc[60:]).predict(3)
    pd.testing.assert_frame_equal(parts, whole, rtol=1e-4)
    plain = LRUForecaster(**SMALL | {"constant_input": False}).fit(SERIES.iloc[:60])
    assert not plain.predict(5).equals(loaded.predict(5))


def test_the_time_is_read_from_states_of_a_forecaster():
    model = LRUForecaster(**SMALL).fit(SERIES)
    rnn = model.network_.rnn
    _, state = rnn(torch.zeros(1, 12, rnn.input_size))
    assert elapsed_steps(model, state.detach()).tolist() == [12]
    assert reconstruct_input(model, state.detach()).inputs.shape == (1, 12, rnn.input_size)


def test_a_flag_is_true_or_false():
    with pytest.raises((TypeError, ValueError), match="constant_input must be"):
        LRUForecaster(**SMALL | {"constant_input": "yes"}).fit(SERIES)
