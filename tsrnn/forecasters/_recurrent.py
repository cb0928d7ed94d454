"""Forecasters with a recurrent network: fit, state and forecasts on panels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_is_fitted

from tsrnn.contract import (
    Forecaster,
    Origins,
    check_not_too_large,
    seed_of,
    with_intervals,
    with_shared_arguments,
)
from tsrnn.data import Panel
from tsrnn.forecasters._distribution import HEADS
from tsrnn.forecasters._file import arrays_of, header_of, revive, revived_memory
from tsrnn.forecasters._forecast import (
    contribution_frame,
    drawn_paths,
    look_ahead,
    of_series,
    point_forecasts,
    rolling_forecasts,
    within_horizon,
)
from tsrnn.forecasters._intervals import (
    Ends,
    ValidationErrors,
    calibrate,
    each_end,
    local_spread,
    scaled_ends,
    steps_ahead,
)
from tsrnn.forecasters._linear_path import choose_linear_path
from tsrnn.forecasters._memory import (
    Memory,
    carried_on,
    continued_units,
    fitted_units,
    memory_after,
    memory_of,
    run_filter,
)
from tsrnn.forecasters._model import ForecastModel, empty_model
from tsrnn.forecasters._scaling import boxcox_lambda, check_positive, fit_scaling, standardise
from tsrnn.forecasters._settings import Presets, Settings, resolve, settings_for
from tsrnn.forecasters._summary import Summary, guarantee, reason_of_inactivity, summarise
from tsrnn.forecasters._training import Training, check_model_size
from tsrnn.forecasters._units import sample_inputs, units_of
from tsrnn.interpret import active_networks, block_shares
from tsrnn.layers import CellStack, LayerChoice
from tsrnn.training import checked_device, checked_processes

LARGEST = 1e290  # value of which differences and means are finite


@with_shared_arguments
class RecurrentForecaster(Forecaster[Memory]):
    """Base of the forecasters with a recurrent network; not to be used by itself.

    A subclass names its layers (`_layer`) and the defaults that differ (`presets`).

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
    presets: ClassVar[Presets] = {}

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

    @abstractmethod
    def _layer(self, filled: dict[str, Any]) -> LayerChoice:
        """Layers that the arguments, filled from the preset, describe."""

    def _fit_panel(self, panel: Panel) -> Memory:
        params = self.arguments_.as_dict()
        filled = resolve(params, self.presets)
        settings = settings_for(filled, self._layer(filled), panel)
        known = [panel.exog_names.index(name) for name in self.known_ahead_]
        check_model_size(settings, len(panel.target_names), len(panel.exog_names), known)
        device = checked_device(params["device"])
        processes = checked_processes(params["strategy"], params["devices"], params["device"])
        generator = torch.Generator().manual_seed(seed_of(params["random_state"]))
        rows = settings.training_rows(panel.lengths)
        scaling = fit_scaling(panel, rows, settings.season, settings.boxcox)

        def make(settings: Settings) -> ForecastModel:
            return empty_model(settings, len(panel.target_names), len(panel.exog_names), known)

        self.linear_path_: dict[str, Any] = {}
        if settings.linear_path:
            settings, self.linear_path_ = choose_linear_path(settings, panel, scaling, make)
        units = units_of(standardise(panel, scaling), panel.indptr, scaling, settings)
        split = units.starts + torch.from_numpy(settings.training_rows(units.lengths.numpy()))
        callbacks = () if params["callbacks"] is None else params["callbacks"]
        single = partial(make, replace(settings, n_estimators=1))
        training = Training(
            units, split, settings, single, self.linear_path_, generator, device, processes,
            callbacks, params["verbose"],
        )  # fmt: skip
        estimate, values = training.estimate(), units.to(torch.float32)
        model = ForecastModel.merged(estimate.members, partial(make, settings)).eval()
        errors = ValidationErrors(model, estimate.start, values, split, settings)
        state = errors.state
        if settings.refit:
            members = training.estimate_on_all(estimate)
            model = ForecastModel.merged(members, partial(make, settings)).eval()
            state = run_filter(model, values, values.indptr[1:])
        self._set_model(settings, model)
        self.history_, self.best_epochs_ = estimate.history, estimate.best_epochs
        self.sample_length_ = int(panel.lengths.max())
        self.validation_ = errors.table()
        self.calibration_ = calibrate(errors.scaled, settings.intervals)
        self.sample_ = sample_inputs(units)
        return memory_after(panel, np.arange(panel.n_series), scaling, state, settings)

    def _set_model(self, settings: Settings, model: ForecastModel) -> None:
        self.settings_, self.model_ = settings, model
        self.network_, self.horizon_ = model.network, settings.horizon

    def _read_frame(self, df: Any, **shape: Any) -> Panel:
        panel = super()._read_frame(df, **shape)
        check_not_too_large(panel, LARGEST)
        if boxcox_lambda(self.arguments_.use_boxcox) is not None:
            check_positive(panel)
        return panel

    def _memory_of(self, panel: Panel) -> Memory:
        return memory_of(self.model_, self.settings_, panel, self.memory_)

    def _advance(self, memory: Memory, panel: Panel) -> Memory:
        return carried_on(self.model_, self.settings_, memory, panel)

    def _forecast(
        self, memory: Memory, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        ends: Ends = {}
        if levels:
            spread = local_spread(self.settings_, memory)
            ends = steps_ahead(self._scaled_ends(memory, levels), spread, self.horizon_, h)
        point = point_forecasts(self.model_, self.settings_, memory, h, future, self._panel_shape)
        forecasts = with_intervals(point, ends)
        return {name: memory.scaling.back(values) for name, values in forecasts.items()}

    def _scaled_ends(self, memory: Memory, levels: list[float]) -> Ends:
        return scaled_ends(self.model_, self.calibration_, memory, levels)

    def _steps(self, method: str, h: int | None) -> int:
        return within_horizon(method, h, self.horizon_)

    def _rolling(
        self, memory: Memory, panel: Panel, origins: Origins, h: int, levels: list[float]
    ) -> dict[str, np.ndarray]:
        units, begin = continued_units(memory, panel, self.settings_)
        learned = self.settings_.intervals in HEADS
        rolling = rolling_forecasts(
            self.model_, memory, units.to(torch.float32), begin, origins, h,
            levels if learned else [],
        )  # fmt: skip
        scaling = memory.scaling.target
        spreads = rolling.spreads * scaling.scale[origins.series][:, None]
        ends = rolling.bounds
        if not learned:
            by_series = self._scaled_ends(memory, levels)
            ends = each_end(by_series, lambda end: end[origins.series, :h])
        point = scaling.inverse(rolling.points, series=origins.series)
        forecasts = with_intervals(point, each_end(ends, lambda end: end * spreads))
        return {name: memory.scaling.back(values) for name, values in forecasts.items()}

    def _draw_paths(
        self,
        memory: Memory,
        h: int,
        n: int,
        future: np.ndarray | None,
        rng: np.random.Generator,
    ) -> np.ndarray:
        ahead = look_ahead(self.model_, self.settings_, memory, future)
        paths = drawn_paths(self.model_, self.calibration_, ahead, fitted_units(memory), n, rng)
        return np.stack(
            [memory.scaling.back(of_series(paths[:, i], memory))[:, :h] for i in range(n)]
        )

    def recurrent_blocks(self) -> Any:
        """Recurrent matrices of the network, for `tsrnn.recurrence_features`.

        Returns
        -------
        list
            By layer, those of all networks where `n_estimators` is more than one.
        """
        check_is_fitted(self, "memory_")
        return self.network_.recurrent_blocks()

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
        check_is_fitted(self, "memory_")
        memory = self.memory_ if X is None else self._memory_of(self._read(X))
        future = self._read_future(X_future, memory, self.horizon_)
        ahead = look_ahead(self.model_, self.settings_, memory, future)
        names, id_name = self._panel_shape[0].target_names, self.arguments_.id_col
        return contribution_frame(ahead, self.best_epochs_, memory, names, id_name)

    def summary(self) -> Summary:
        """Summary of the fit, its accuracy and its recurrence features; print the result."""
        check_is_fitted(self, "memory_")
        return summarise(self)

    def _header(self) -> dict[str, Any]:
        return header_of(self)

    def _arrays(self) -> dict[str, np.ndarray]:
        return arrays_of(self)

    def _revive(
        self,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        ids: pd.Index,
        last_times: np.ndarray,
    ) -> Memory:
        revive(self, header, arrays, len(ids))
        return revived_memory(arrays, ids, last_times, self.settings_.boxcox)

    @property
    def interval_guarantee_(self) -> str:
        """Guarantee of the prediction intervals, and the assumptions behind it."""
        return guarantee(self)

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
            number: reason_of_inactivity(self, number)
            for number, best in enumerate(self.best_epochs_, start=1)
            if best == 0
        }

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
