"""Course of a fit: from data and arguments to trained networks and the state of the series."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from tsrnn.contract import Arguments, FittedData, seed_of
from tsrnn.data import Panel, Scaler
from tsrnn.forecasters._columns import FittedColumns
from tsrnn.forecasters._distribution import HEADS
from tsrnn.forecasters._factors import choose_structure
from tsrnn.forecasters._fitted import FittedNetworks
from tsrnn.forecasters._gain import network_helps
from tsrnn.forecasters._intervals import ValidationErrors
from tsrnn.forecasters._linear_path import choose_linear_paths
from tsrnn.forecasters._model import ForecastModel, empty_model, model_without_values
from tsrnn.forecasters._scaling import Scaling, Standardised, fit_scaling, standardise
from tsrnn.forecasters._settings import Settings, settings_for
from tsrnn.forecasters._state import RecurrentState, run_filter
from tsrnn.forecasters._training import (
    Estimate,
    Training,
    check_model_size,
    estimate,
    estimate_on_all,
)
from tsrnn.forecasters._units import (
    SAMPLE_ROWS,
    sample_rows,
    units_of_each,
    validation_starts,
)
from tsrnn.forecasters._with_columns import (
    FittedWithColumns,
    StateWithColumns,
    fit_columns,
    last_rows,
)
from tsrnn.layers import LayerChoice
from tsrnn.training import checked_device, checked_processes

WINDOWS_KEPT = 4  # of rows by which whole forecasts are judged: origins of several windows


Fit = tuple[FittedNetworks, RecurrentState] | tuple[FittedWithColumns, StateWithColumns]


class Judged(NamedTuple):
    """Trained networks of a fit, their errors, and what each part of the forecasts brings."""

    trained: Estimate
    errors: ValidationErrors
    tests: pd.DataFrame


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
        On what the effects of columns leave.
    columns : FittedColumns or None
        Effects of columns, where they have any.
    """

    arguments: Arguments
    data: FittedData
    panel: Panel
    settings: Settings
    sizes: tuple[int, int, list[int]]
    scaling: Scaling
    training: Training
    columns: FittedColumns | None

    def merged(self, members: Sequence[ForecastModel]) -> ForecastModel:
        """Networks of the fit as one model, whose forecast is their mean."""
        return ForecastModel.merged(
            members, partial(empty_model, self.settings, *self.sizes)
        ).eval()

    def without_network(self) -> Preparation:
        """Fit of the local level and the linear path alone, which nothing is trained for."""
        settings = replace(self.settings, network=False)
        training = replace(
            self.training,
            settings=settings,
            generators=[g.clone_state() for g in self.training.generators],
        )
        return replace(self, settings=settings, training=training)

    def judged(self, trained: Estimate) -> Judged:
        """Trained networks with their validation errors, dropped where they do not help."""
        training, settings = self.training, self.settings

        def errors_of(members: Sequence[ForecastModel]) -> ValidationErrors:
            return ValidationErrors(
                self.merged(members), trained.start, training.single, training.split, settings
            )

        errors = errors_of(trained.members)
        tests = errors.tests()
        # Learned intervals are the network's, and so is everything without a linear path.
        droppable = settings.network == "auto" and settings.linear_path
        droppable &= settings.intervals not in HEADS
        if droppable and any(trained.best_epochs) and network_helps(tests) is False:
            count = len(trained.members)
            members = [copy.deepcopy(trained.start) for _ in range(count)]
            trained = replace(trained, members=members, best_epochs=[0] * count)
            errors = errors_of(members)
        return Judged(trained, errors, tests)

    def finished(self, judged: Judged, on_all: Sequence[ForecastModel] | None) -> Fit:
        """Fitted networks, and the state of the series after their last rows.

        `on_all` are the networks that were trained again on all rows.
        """
        training, settings = self.training, self.settings
        trained, errors, tests = judged
        # The errors of the best epochs calibrate the intervals, also of networks trained again.
        model, hidden = self.merged(trained.members), errors.state
        if on_all is not None:
            model, values = self.merged(on_all), training.single
            hidden = run_filter(model, values, values.indptr[1:])
        kept_rows = max(SAMPLE_ROWS, WINDOWS_KEPT * settings.input_size)
        fitted = FittedNetworks(
            arguments=self.arguments,
            data=self.data,
            settings=settings,
            model=model,
            calibration=errors.calibration(),
            scaling=self.scaling,
            history=trained.history,
            best_epochs=trained.best_epochs,
            linear_path=training.linear_path,
            validation=errors.table(),
            tests=tests,
            sample=training.units.inputs(sample_rows(training.units, SAMPLE_ROWS)).float(),
            sample_rows=training.units.values[sample_rows(training.units, kept_rows)].float(),
            sample_length=int(self.panel.lengths.max()),
        )
        series, columns, left = np.arange(self.panel.n_series), self.columns, self.panel
        if columns is not None:
            left, of_columns = columns.advance(columns.begin(self.panel), self.panel)
        state = RecurrentState.after(left, series, self.scaling, hidden, settings.input_size)
        if columns is None:
            return fitted, state
        scale = Scaler.fit(self.panel.values, self.panel.indptr).scale
        return (
            FittedWithColumns(columns, fitted, scale),
            StateWithColumns(state, of_columns, last_rows(self.panel), scale),
        )


def prepare_all(
    described: Sequence[tuple[Arguments, FittedData]],
    panels: Sequence[Panel],
    filled: dict[str, Any],
    layer: LayerChoice,
    where: Sequence[str] = ("",),
) -> list[Preparation]:
    """Prepare fits with the same arguments to panels with the same columns.

    Parameters
    ----------
    described : sequence of (Arguments, FittedData)
        Of each fit.
    panels : sequence of Panel
    filled : dict
        The arguments, filled by `resolve`.
    layer : LayerChoice
    where : sequence of str
        Before messages of each fit: the series, where there are several fits.
    """
    arguments, data = described[0]
    device = checked_device(arguments.device)
    processes = checked_processes(arguments.strategy, arguments.devices, arguments.device)
    known = [panels[0].exog_names.index(name) for name in data.known_ahead]
    sizes = data.n_targets, len(panels[0].exog_names), known
    settings, rows, effects, checked = [], [], [], set()
    for (arguments, data), panel, name in zip(described, panels, where, strict=True):
        try:
            of_fit = settings_for(filled, layer, panel)
            if of_fit.input_size not in checked:
                check_model_size(of_fit, *sizes)
                checked.add(of_fit.input_size)
            columns = fit_columns(arguments, data, panel, of_fit)
            if columns is not None:
                panel, _ = columns.advance(columns.begin(panel), panel)
            effects.append(columns)
            # Scaling and linear path are those of the rows before the validation part.
            training_rows = of_fit.training_rows(panel.lengths)
            scaling = fit_scaling(panel, training_rows, of_fit.season, of_fit.boxcox)
            rows.append(Standardised(standardise(panel, scaling), panel.indptr, scaling))
        except ValueError as error:
            raise ValueError(f"{name}{error}") from error
        settings.append(of_fit)
    forms: list[dict[str, Any]] = [{} for _ in panels]
    starts: list[ForecastModel | None] = [None for _ in panels]
    if settings[0].linear_path:
        independent = [replace(s, multivariate="independent") if s.factor else s for s in settings]
        chosen = choose_linear_paths(
            independent, rows, lambda tried: model_without_values(tried, *sizes)
        )
        settings, forms = [list(part) for part in zip(*chosen, strict=True)]
        for i, of_fit in enumerate(settings):
            if of_fit.factor_lags:  # so far each target by itself
                settings[i], forms[i], starts[i] = choose_structure(
                    replace(of_fit, multivariate=filled["multivariate"]),
                    forms[i],
                    rows[i],
                    lambda tried: empty_model(replace(tried, n_estimators=1), *sizes),
                )
    prepared = []
    for i, units in enumerate(units_of_each(rows, settings)):
        of_fit, (arguments, data) = settings[i], described[i]
        generator = torch.Generator().manual_seed(seed_of(arguments.random_state))
        training = Training(
            units,
            validation_starts(units, of_fit),
            of_fit,
            partial(empty_model, replace(of_fit, n_estimators=1), *sizes),
            forms[i],
            _generators(generator, of_fit.n_estimators),
            starts[i],
            partial(
                empty_model,
                replace(of_fit, n_estimators=1, multivariate="independent", factor_lags=0),
                *sizes,
            ),
            device,
            processes,
            () if arguments.callbacks is None else arguments.callbacks,
            arguments.verbose,
            where[i],
        )
        prepared.append(
            Preparation(
                arguments, data, panels[i], of_fit, sizes, rows[i].scaling, training, effects[i]
            )
        )
    return prepared


def fit_all(prepared: Sequence[Preparation]) -> list[Fit]:
    """Train the networks of all fits, those of one shape side by side, and finish the fits.

    The fits have the same arguments.
    """
    return finish_all(prepared, judge_all(prepared))


def judge_all(prepared: Sequence[Preparation]) -> list[Judged]:
    """Train the networks of all fits on the rows before their validation parts, and judge them."""
    estimates = estimate([fit.training for fit in prepared])
    return [fit.judged(trained) for fit, trained in zip(prepared, estimates, strict=True)]


def finish_all(prepared: Sequence[Preparation], judged: Sequence[Judged]) -> list[Fit]:
    """Finish all fits, with networks trained again on all rows where the settings say so."""
    refitted: Sequence[Any] = [None] * len(prepared)
    if prepared[0].settings.refit:
        trained = [part.trained for part in judged]
        refitted = estimate_on_all([fit.training for fit in prepared], trained)
    return [
        fit.finished(of_fit, on_all)
        for fit, of_fit, on_all in zip(prepared, judged, refitted, strict=True)
    ]


def _generators(generator: torch.Generator, count: int) -> list[torch.Generator]:
    """A generator for each network, so that the order of their training does not matter.

    The first has that of a single network, and so is the one trained alone.
    """
    of_seeds = torch.Generator().manual_seed(generator.initial_seed())
    seeds = torch.randint(2**62, (count - 1,), generator=of_seeds).tolist()
    return [generator, *(torch.Generator().manual_seed(seed) for seed in seeds)]
