"""The ParaRNN forecaster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tsrnn.forecasters._recurrent import RecurrentForecaster


class ParaRNNForecaster(RecurrentForecaster):
    column_name = "ParaRNN"

    def __init__(
        self,
        horizon: int | None = None,
        *,
        input_size: int | None = None,
        preset: str = "default",
        hidden_size: int | None = None,
        block_size: int | None = None,
        n_layers: int | None = None,
        nonlinearity: str | None = None,
        aggregation: str | None = None,
        local_level: bool | None = None,
        linear_path: bool | None = None,
        multivariate: str | None = None,
        target: Any = None,
        known_ahead: str | Sequence[str] | None = None,
        id_col: str = "unique_id",
        time_col: str = "ds",
        freq: str | int | None = None,
        missing: str = "error",
        intervals: str = "conformal",
        val_size: int | None = None,
        loss: str = "mse",
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        batch_size: int = 32,
        max_epochs: int | None = None,
        patience: int | None = None,
        device: str = "cpu",
        callbacks: Sequence[Any] | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.horizon = horizon
        self.input_size = input_size
        self.preset = preset
        self.hidden_size = hidden_size
        self.block_size = block_size
        self.n_layers = n_layers
        self.nonlinearity = nonlinearity
        self.aggregation = aggregation
        self.local_level = local_level
        self.linear_path = linear_path
        self.multivariate = multivariate
        self.target = target
        self.known_ahead = known_ahead
        self.id_col = id_col
        self.time_col = time_col
        self.freq = freq
        self.missing = missing
        self.intervals = intervals
        self.val_size = val_size
        self.loss = loss
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.device = device
        self.callbacks = callbacks
        self.random_state = random_state
        self.verbose = verbose
