"""Forecasters with a recurrent network: arguments, frames and the course of a fit."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from tsrnn.contract import (
    Arguments,
    FittedData,
    Forecaster,
    as_saved,
    check_not_too_large,
    with_shared_arguments,
)
from tsrnn.data import Panel
from tsrnn.forecasters._file import check_settings, from_file
from tsrnn.forecasters._fit import Preparation, fit_all
from tsrnn.forecasters._fitted import FittedNetworks
from tsrnn.forecasters._intervals import Calibration
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._scaling import boxcox_lambda, check_positive
from tsrnn.forecasters._settings import Settings, resolve
from tsrnn.forecasters._state import RecurrentState
from tsrnn.forecasters._summary import NetworkSummary, reason_of_inactivity, summarise
from tsrnn.interpret import active_networks, block_shares, recurrence_features
from tsrnn.layers import CellStack, Ensemble, LayerChoice, RecurrentNetwork

LARGEST = 1e290  # value of which differences and means are finite


@with_shared_arguments
class RecurrentForecaster(Forecaster[RecurrentState]):
    """Base of the forecasters with a recurrent network; not to be used by itself.

    A subclass names its layers (`_layer`).

    Parameters
    ----------
    horizon : int, optional
        Steps forecast directly; by frequency.
    input_size, preset, hidden_size, n_layers, engine, aggregation, multivariate
        Network, as in `ParaRNNForecaster`.
    local_level, linear_path, use_boxcox, intervals
        Parts around the network, likewise.
    val_size, loss, learning_rate, weight_decay, batch_size, max_epochs, patience, n_estimators
        Training, likewise.
    refit, device, strategy, devices, callbacks, random_state, verbose
        Course of the training, likewise.
    target, known_ahead, static, calendar, id_col, time_col, freq, missing
        Data, likewise.

    Examples
    --------
    >>> from tsrnn import ARMA, LRUForecaster
    >>> from tsrnn.forecasters import RecurrentForecaster
    >>> [issubclass(model, RecurrentForecaster) for model in (LRUForecaster, ARMA)]
    [True, False]
    """

    not_saved = ("callbacks",)
    takes_static = True
    offers = frozenset({"sample_paths"})
    fitted_: FittedNetworks

    def __init__(
        self,
        horizon: int | None = None,
        *,
        input_size: int | None = None,
        preset: str = "default",
        hidden_size: int | None = None,
        n_layers: int | None = None,
        engine: str = "auto",
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
        self.engine = engine
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

    @classmethod
    def _update_header(cls, header: dict[str, Any]) -> None:
        header["params"].setdefault("engine", "auto")

    @staticmethod
    @abstractmethod
    def _layer(filled: dict[str, Any]) -> LayerChoice:
        """Layers that the arguments of a fit, filled from the preset, describe."""

    def _fit_panel(
        self, arguments: Arguments, data: FittedData, panel: Panel
    ) -> tuple[FittedNetworks, RecurrentState]:
        filled = resolve(arguments.as_dict())
        (fitted,) = fit_all([Preparation.of(arguments, data, panel, filled, self._layer(filled))])
        return fitted

    def _from_file(
        self,
        arguments: Arguments,
        data: FittedData,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        last_times: np.ndarray,
    ) -> tuple[FittedNetworks, RecurrentState]:
        check_settings(header, arrays)
        with as_saved("params"):
            filled = resolve(arguments.as_dict())
            self._layer(filled)
        return from_file(arguments, data, filled, header, arrays, last_times)

    def _read_frame(self, df: Any, arguments: Arguments, **shape: Any) -> Panel:
        panel = super()._read_frame(df, arguments, **shape)
        check_not_too_large(panel, LARGEST)
        if boxcox_lambda(arguments.use_boxcox) is not None:
            check_positive(panel)
        return panel

    def _filter(self, panel: Panel) -> RecurrentState:
        return self.fitted_.filter(panel, self.state_)

    def recurrent_blocks(self) -> Any:
        """Recurrent matrices of the network, for `tsrnn.recurrence_features`.

        Returns
        -------
        list
            By layer, those of all networks where `n_estimators` is more than one.
        """
        return copy.deepcopy(self.network_.recurrent_blocks())  # the network has views of weights

    def contributions(self, X: Any = None, X_future: Any = None) -> pd.DataFrame:
        r"""Additive parts of the forecasts of the next `horizon_` steps.

        The local level, the linear path, columns known ahead, each block of the last
        layer (the equation after (7) of Cai et al., 2026) and the constant, in the
        units of the data. The network is one part where its layers have no blocks, the
        aggregation is not linear, or it contributes nothing (``network_active_`` is False): then
        its part is zero. They sum to `predict` to rounding; with ``use_boxcox``, to the
        transform of its forecast.

        Parameters
        ----------
        X : frame, optional
            Data to forecast after, as in `predict`.
        X_future : frame, optional
            As in `predict`.

        Returns
        -------
        DataFrame
            A row a series, target and step (index levels `unique_id`, `target`,
            `step`; only `step` for one target of one series), a column a part.
        """
        check_is_fitted(self, "fitted_")
        fitted, data, state = self.fitted_, self.fitted_.data, self._state_after(X)
        future = data.read_future(X_future, state.ids, state.last_times, fitted.horizon)
        parts = fitted.contributions(state, future)
        columns = {name: np.moveaxis(part, 2, 1).ravel() for name, part in parts.items()}
        names, steps = data.layout.target_names, range(1, fitted.horizon + 1)
        if len(state.ids) * len(names) == 1:
            return pd.DataFrame(columns, index=pd.Index(steps, name="step"))
        levels = [fitted.arguments.id_col, "target", "step"]
        index = pd.MultiIndex.from_product([state.ids, names, steps], names=levels)
        return pd.DataFrame(columns, index=index)

    def summary(self) -> NetworkSummary:
        """Summary of the fit, its accuracy and its recurrence features; print the result."""
        check_is_fitted(self, "fitted_")
        readable = self.network_active_ and self.network_.matrix_names
        features = recurrence_features(self) if readable else None
        return summarise(self.fitted_, self.state_, features)

    def block_shares_(self) -> list[np.ndarray] | None:
        """Share of the network's output variance by block, an array a layer of every network.

        Judged on the last rows of the data fitted to, without networks that contribute nothing;
        see `tsrnn.recurrence_features`. None where the layers have no blocks.

        Raises
        ------
        tsrnn.interpret.UninformativeNetworkError
            If no network contributes.
        """
        members = [network for _, network in active_networks(self, "block_shares_")]
        if not all(isinstance(member.rnn, CellStack) for member in members):
            return None
        return [share.numpy() for member in members for share in block_shares(member, self.sample_)]

    def _fitted_model(self) -> FittedNetworks:
        check_is_fitted(self, "fitted_")
        return self.fitted_

    @property
    def settings_(self) -> Settings:
        """Arguments as they were used, defaults filled in."""
        settings = self._fitted_model().settings
        return replace(settings, options=dict(settings.options))

    @property
    def model_(self) -> ForecastModel:
        """Local level, linear path, network and effect of columns known ahead."""
        return self._fitted_model().model

    @property
    def network_(self) -> RecurrentNetwork | Ensemble:
        """Recurrent network, an ensemble of several."""
        return self._fitted_model().model.network

    @property
    def calibration_(self) -> Calibration:
        """Errors of the validation part, of which intervals are made."""
        return self._fitted_model().calibration

    @property
    def history_(self) -> list[dict[str, float]]:
        """Losses and learning rate of every epoch."""
        return [dict(epoch) for epoch in self._fitted_model().history]

    @property
    def linear_path_(self) -> dict[str, Any]:
        """Form of the linear path; empty without one."""
        return dict(self._fitted_model().linear_path)

    @property
    def validation_(self) -> pd.DataFrame:
        """Root mean squared error by step on the validation part."""
        return self._fitted_model().validation.copy()

    @property
    def sample_(self) -> Tensor:
        """Inputs of the network, by which blocks are judged."""
        return self._fitted_model().sample.clone()

    @property
    def sample_length_(self) -> int:
        """Rows of the longest series fitted to."""
        return self._fitted_model().sample_length

    @property
    def best_epochs_(self) -> list[int]:
        """Epoch of each network whose parameters are kept; 0 is the start."""
        return list(self._fitted_model().best_epochs)

    @property
    def best_epoch_(self) -> int:
        """The epoch whose parameters are kept, of several networks the largest."""
        return max(self.best_epochs_)

    @property
    def network_active_(self) -> bool:
        """Whether a network takes part in the forecasts: not where epoch 0 was best."""
        return self.best_epoch_ > 0

    @property
    def inactive_networks_(self) -> dict[int, str]:
        """Networks, counted from 1, that contribute nothing to the forecasts, and why."""
        return {
            number: reason_of_inactivity(self.fitted_, number)
            for number, best in enumerate(self.best_epochs_, start=1)
            if best == 0
        }
