"""Constructor arguments that all recurrent forecasters have."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)


class SharedArguments:
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
        multivariate: str | None = None,
        target: Any = None,
        known_ahead: str | Sequence[str] | None = None,
        id_col: str = "unique_id",
        time_col: str = "ds",
        freq: str | int | None = None,
        missing: str = "error",
        intervals: str = "conformal",
        val_size: int | None = None,
        loss: str | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        batch_size: int = 32,
        max_epochs: int | None = None,
        patience: int | None = None,
        n_estimators: int = 1,
        refit: bool = False,
        device: str = "cpu",
        callbacks: Sequence[Any] | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.horizon = horizon
        self.input_size = input_size
        self.preset = preset
        self.hidden_size = hidden_size
        self.n_layers = n_layers
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
        self.n_estimators = n_estimators
        self.refit = refit
        self.device = device
        self.callbacks = callbacks
        self.random_state = random_state
        self.verbose = verbose


def with_shared_arguments(cls: Class) -> Class:
    """Class decorator: the arguments behind ``**shared`` become part of the signature.

    scikit-learn and help() read the names of arguments there.
    """
    init = cls.__dict__["__init__"]
    own = inspect.signature(init).parameters
    shared = inspect.signature(SharedArguments.__init__).parameters
    named = {k: v for k, v in own.items() if v.kind is not v.VAR_KEYWORD}
    rest = {k: v for k, v in shared.items() if k not in named}
    init.__signature__ = inspect.Signature([*named.values(), *rest.values()])
    return cls
