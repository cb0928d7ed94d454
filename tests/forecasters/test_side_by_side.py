"""Networks trained side by side are those of training one by one, to rounding."""

import numpy as np
import pandas as pd
import pytest

from tsrnn import NewtonForecaster, ParaRNNForecaster
from tsrnn.kernels import cells

SMALL = {
    "horizon": 3, "hidden_size": 8, "max_epochs": 3, "random_state": 0, "val_size": 12,
}  # fmt: skip
STEPS = 2e-3  # what sixty steps make of rounding


def wandering(lengths, seed=0):
    """Return a long frame of series of some lengths."""
    rng = np.random.default_rng(seed)
    parts = [
        pd.DataFrame(
            {
                "unique_id": f"s{i}",
                "ds": pd.date_range("2000", periods=n, freq="MS"),
                "y": 20 * (i + 1) + rng.normal(size=n).cumsum() + 3 * np.sin(np.arange(n) / 2),
            }
        )
        for i, n in enumerate(lengths)
    ]
    return pd.concat(parts, ignore_index=True)


def close(one, other, columns):
    """Compare forecasts in units of their spread."""
    one, other = one[columns].to_numpy(), other[columns].to_numpy()
    np.testing.assert_allclose(one, other, rtol=STEPS, atol=STEPS * other.std())


@pytest.fixture
def one_by_one(monkeypatch):
    """Let networks train one by one."""
    return lambda: monkeypatch.setattr("tsrnn.forecasters._training.AT_ONCE", 1)


CASES = {
    "default": {},
    "no linear path": {"linear_path": False},
    "student-t": {"intervals": "student-t", "linear_path": False},
    "quantile, joint": {"intervals": "quantile", "multivariate": "joint"},
    "mae, ffn": {"loss": "mae", "aggregation": "ffn"},
    "attention": {"cell": "attention", "n_heads": 2, "n_states": 2, "window": 4},
    "gru": {"cell": "gru", "linear_path": False},
    "lru": {"cell": "lru"},
    "own cell": {"cell": cells.para_gru(2), "linear_path": False},
    "reference": {"engine": "reference"},
    "small batches": {"batch_size": 2, "refit": False},
}


@pytest.mark.parametrize("changes", CASES.values(), ids=CASES)
def test_estimators(one_by_one, monkeypatch, changes):
    frame = wandering([60, 45, 80])
    model = ParaRNNForecaster(**SMALL | changes, n_estimators=3)
    with monkeypatch.context() as context:
        for name in ("train", "train_for"):
            context.setattr(f"tsrnn.training.{name}", None)
        together = model.fit(frame).predict(level=80)
        history = pd.DataFrame(model.history_)
    one_by_one()
    alone = model.fit(frame).predict(level=80)
    close(together, alone, together.columns[2:])
    pd.testing.assert_frame_equal(history, pd.DataFrame(model.history_), rtol=STEPS)


def test_estimators_of_long_series(one_by_one):
    """Segments are drawn by each network for itself."""
    frame = wandering([700, 300])
    model = NewtonForecaster(**SMALL | {"n_heads": 2}, n_estimators=2, input_size=24)
    together = model.fit(frame).predict()
    one_by_one()
    close(together, model.fit(frame).predict(), ["Newton"])


def test_estimators_of_regressors_known_ahead(one_by_one):
    frame = wandering([60, 70]).assign(x=lambda df: np.cos(df.index))
    future = wandering([63, 73]).groupby("unique_id").tail(3)[["unique_id", "ds"]].assign(x=0.5)
    model = ParaRNNForecaster(**SMALL, n_estimators=2, known_ahead="x")
    together = model.fit(frame).predict(X_future=future)
    one_by_one()
    close(together, model.fit(frame).predict(X_future=future), ["ParaRNN"])


def test_a_training_that_diverges_says_so():
    model = ParaRNNForecaster(**SMALL | {"learning_rate": 1e30}, n_estimators=2, linear_path=False)
    with pytest.raises(FloatingPointError, match="training diverged"):
        model.fit(wandering([60]))
