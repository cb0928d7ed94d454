"""Course of a fit: from data and arguments to trained networks and the state of the series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from tsrnn.contract import Arguments, FittedData, seed_of
from tsrnn.data import Panel
from tsrnn.forecasters._fitted import FittedNetworks
from tsrnn.forecasters._intervals import ValidationErrors, calibrate
from tsrnn.forecasters._linear_path import choose_linear_path
from tsrnn.forecasters._model import ForecastModel, empty_model
from tsrnn.forecasters._scaling import Scaling, fit_scaling, standardise
from tsrnn.forecasters._settings import Settings, settings_for
from tsrnn.forecasters._state import RecurrentState, run_filter
from tsrnn.forecasters._training import (
    Estimate,
    Training,
    check_model_size,
    estimate,
    estimate_on_all,
)
from tsrnn.forecasters._units import sample_inputs, units_of
from tsrnn.layers import LayerChoice
from tsrnn.training import checked_device, checked_processes


@dataclass(frozen=True, eq=False)
class Preparation:
    """Everything of a fit that is decided before networks are trained.

    Attributes
    ----------
    arguments : Arguments
    data : FittedData
    panel : Panel
    settings : Settings
        With the input size that was chosen.
    sizes : tuple
        Targets, exogenous columns, and the numbers of those known ahead.
    scaling : Scaling
    training : Training
    """

    arguments: Arguments
    data: FittedData
    panel: Panel
    settings: Settings
    sizes: tuple[int, int, list[int]]
    scaling: Scaling
    training: Training

    @classmethod
    def of(
        cls,
        arguments: Arguments,
        data: FittedData,
        panel: Panel,
        filled: dict[str, Any],
        layer: LayerChoice,
        where: str = "",
    ) -> Preparation:
        """Prepare the fit to a panel.

        Parameters
        ----------
        arguments : Arguments
        data : FittedData
        panel : Panel
        filled : dict
            The arguments, filled by `resolve`.
        layer : LayerChoice
        where : str
            Before messages of the training: the series, where there are several fits.
        """
        settings = settings_for(filled, layer, panel)
        known = [panel.exog_names.index(name) for name in data.known_ahead]
        sizes = data.n_targets, len(panel.exog_names), known
        check_model_size(settings, *sizes)
        device = checked_device(arguments.device)
        processes = checked_processes(arguments.strategy, arguments.devices, arguments.device)
        generator = torch.Generator().manual_seed(seed_of(arguments.random_state))
        # Scaling and linear path are those of the rows before the validation part.
        scaling = fit_scaling(
            panel, settings.training_rows(panel.lengths), settings.season, settings.boxcox
        )
        linear_path: dict[str, Any] = {}
        if settings.linear_path:
            settings, linear_path = choose_linear_path(
                settings, panel, scaling, lambda tried: empty_model(tried, *sizes)
            )
        units = units_of(standardise(panel, scaling), panel.indptr, scaling, settings)
        training = Training(
            units,
            units.starts + torch.from_numpy(settings.training_rows(units.lengths.numpy())),
            settings,
            partial(empty_model, replace(settings, n_estimators=1), *sizes),
            linear_path,
            _generators(generator, settings.n_estimators),
            device,
            processes,
            () if arguments.callbacks is None else arguments.callbacks,
            arguments.verbose,
            where,
        )
        return cls(arguments, data, panel, settings, sizes, scaling, training)

    def finished(
        self, trained: Estimate, on_all: Sequence[ForecastModel] | None
    ) -> tuple[FittedNetworks, RecurrentState]:
        """Fitted networks, and the state of the series after their last rows.

        `on_all` are the networks that were trained again on all rows.
        """
        training, settings = self.training, self.settings
        whole, values = partial(empty_model, settings, *self.sizes), training.single
        model = ForecastModel.merged(trained.members, whole).eval()
        # The errors of the best epochs calibrate the intervals, also of networks trained again.
        errors = ValidationErrors(model, trained.start, values, training.split, settings)
        hidden = errors.state
        if on_all is not None:
            model = ForecastModel.merged(on_all, whole).eval()
            hidden = run_filter(model, values, values.indptr[1:])
        fitted = FittedNetworks(
            arguments=self.arguments,
            data=self.data,
            settings=settings,
            model=model,
            calibration=calibrate(errors.scaled, settings.intervals),
            scaling=self.scaling,
            history=trained.history,
            best_epochs=trained.best_epochs,
            linear_path=training.linear_path,
            validation=errors.table(),
            sample=sample_inputs(training.units),
            sample_length=int(self.panel.lengths.max()),
        )
        series = np.arange(self.panel.n_series)
        return fitted, RecurrentState.after(
            self.panel, series, self.scaling, hidden, settings.input_size
        )


def fit_all(prepared: Sequence[Preparation]) -> list[tuple[FittedNetworks, RecurrentState]]:
    """Train the networks of all fits, those of one shape side by side, and finish the fits.

    The fits have the same arguments.
    """
    trainings = [fit.training for fit in prepared]
    estimates = estimate(trainings)
    refitted: Sequence[Any] = [None] * len(prepared)
    if prepared[0].settings.refit:
        refitted = estimate_on_all(trainings, estimates)
    return [
        fit.finished(trained, on_all)
        for fit, trained, on_all in zip(prepared, estimates, refitted, strict=True)
    ]


def _generators(generator: torch.Generator, count: int) -> list[torch.Generator]:
    """A generator for each network, so that the order of their training does not matter.

    The first has that of a single network, and so is the one trained alone.
    """
    of_seeds = torch.Generator().manual_seed(generator.initial_seed())
    seeds = torch.randint(2**62, (count - 1,), generator=of_seeds).tolist()
    return [generator, *(torch.Generator().manual_seed(seed) for seed in seeds)]
