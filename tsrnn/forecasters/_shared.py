"""Constructor arguments that all recurrent forecasters have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tsrnn.contract import CommonArguments, with_shared_arguments


@with_shared_arguments
class SharedArguments(CommonArguments):
    """Stores them; see `ParaRNNForecaster` for what they mean."""

    def __init__(
        self,
        horizon: int | None = None,
        *,
        input_size: int | None = None,
        preset: str = "default",
        hidden_size: int | None = None,
        n_layers: int | None = None,
        aggregation: str | None = None,
        local_level: bool | None = None,
        linear_path: bool | None = None,
        use_boxcox: bool | str | float = False,
        multivariate: str | None = None,
        intervals: str = "conformal",
        val_size: int | None = None,
        loss: str | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        batch_size: int = 32,
        max_epochs: int | None = None,
        patience: int | None = None,
        n_estimators: int = 1,
        refit: bool | None = None,
        device: str = "cpu",
        strategy: str | None = None,
        devices: int | None = None,
        callbacks: Sequence[Any] | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(horizon=horizon, **shared)
        self.input_size = input_size
        self.preset = preset
        self.hidden_size = hidden_size
        self.n_layers = n_layers
        self.aggregation = aggregation
        self.local_level = local_level
        self.linear_path = linear_path
        self.use_boxcox = use_boxcox
        self.multivariate = multivariate
        self.intervals = intervals
        self.val_size = val_size
        self.loss = loss
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.n_estimators = n_estimators
        self.refit = refit
        self.device = device
        self.strategy = strategy
        self.devices = devices
        self.callbacks = callbacks
