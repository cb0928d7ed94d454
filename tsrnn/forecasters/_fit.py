"""Fit of networks: from data and arguments to trained networks and the state of the series."""

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
from tsrnn.forecasters._units import SAMPLE_ROWS, sample_rows, units_of_each, validation_starts
from tsrnn.forecasters._with_columns import (
    FittedWithColumns,
    StateWithColumns,
    fit_columns,
    last_rows,
)
from tsrnn.layers import LayerChoice
from tsrnn.training import checked_device, checked_processes

WINDOWS_KEPT = 4  # windows in the sample for forecast features, so that origins differ in phase

Fit = tuple[FittedNetworks, RecurrentState] | tuple[FittedWithColumns, StateWithColumns]


class ValidationResult(NamedTuple):
    """Trained networks of a fit, their validation errors, and tests of each forecast part."""

    trained: Estimate
    errors: ValidationErrors
    tests: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Preparation:
    """Fit before its networks are trained: settings, scaling, regression and training data.

    The settings have the chosen input size. `sizes` are the number of targets, the number of
    exogenous columns, and the positions of the columns known ahead. Networks train on the residuals
    of the regression on `columns`, which is None if no column has an effect.
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
        """Merge the networks of the fit into one model that forecasts their mean."""
        return ForecastModel.merged(
            members, partial(empty_model, self.settings, *self.sizes)
        ).eval()

    def without_network(self) -> Preparation:
        """Preparation of the local level and the linear path alone, without any training."""
        settings = replace(self.settings, network=False)
        training = replace(
            self.training,
            settings=settings,
            generators=[g.clone_state() for g in self.training.generators],
        )
        return replace(self, settings=settings, training=training)

    def validated(self, trained: Estimate) -> ValidationResult:
        """Validate trained networks, and drop them if they do not help."""
        training, settings = self.training, self.settings

        def errors_of(members: Sequence[ForecastModel]) -> ValidationErrors:
            return ValidationErrors(
                self.merged(members), trained.start, training.single, training.split, settings
            )

        errors = errors_of(trained.members)
        tests = errors.tests()
        # Without the network there would be no learned intervals; without a linear path, nothing.
        droppable = settings.network == "auto" and settings.linear_path
        droppable &= settings.intervals not in HEADS
        if droppable and any(trained.best_epochs) and network_helps(tests) is False:
            count = len(trained.members)
            members = [copy.deepcopy(trained.start) for _ in range(count)]
            trained = replace(trained, members=members, best_epochs=[0] * count)
            errors = errors_of(members)
        return ValidationResult(trained, errors, tests)

    def finished(
        self, result: ValidationResult, on_all: Sequence[ForecastModel] | None = None
    ) -> Fit:
        """Build the fitted networks and the state of the series after their last rows.

        `on_all` are the networks retrained on all rows, if any.
        """
        training, settings = self.training, self.settings
        trained, errors, tests = result
        # Retrained networks have no validation errors: the first training's calibrate.
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
    """Prepare fits with the same arguments, `filled` by `resolve`, to panels with the same columns.

    `where` are prefixes of the messages of each fit, which name the series if there are several
    fits.
    """
    first, data = described[0]
    known = [panels[0].exog_names.index(name) for name in data.known_ahead]
    sizes = data.n_targets, len(panels[0].exog_names), known
    # One set of devices for all fits, as networks are trained side by side.
    common: dict[str, Any] = {
        "device": checked_device(first.device),
        "processes": checked_processes(first.strategy, first.devices, first.device),
        "callbacks": () if first.callbacks is None else first.callbacks,
        "verbose": first.verbose,
    }
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
            # The scaling uses the training rows alone: the validation part must stay unseen.
            training_rows = of_fit.training_rows(panel.lengths)
            scaling = fit_scaling(panel, training_rows, of_fit.season, of_fit.boxcox)
            rows.append(Standardised(standardise(panel, scaling), panel.indptr, scaling))
        except ValueError as error:
            raise ValueError(f"{name}{error}") from error
        settings.append(of_fit)
    settings, forms, starts = choose_paths(settings, rows, sizes, filled["multivariate"])
    prepared = []
    for i, units in enumerate(units_of_each(rows, settings)):
        of_fit, (arguments, data) = settings[i], described[i]
        single = replace(of_fit, n_estimators=1)  # networks are trained one by one, then merged
        by_target = replace(single, multivariate="independent", factor_lags=0)
        training = Training(
            units=units,
            split=validation_starts(units, of_fit),
            settings=of_fit,
            make=partial(empty_model, single, *sizes),
            linear_path=forms[i],
            generators=_generators(seed_of(arguments.random_state), of_fit.n_estimators),
            start=starts[i],
            make_by_target=partial(empty_model, by_target, *sizes),
            where=where[i],
            **common,
        )
        scaling = rows[i].scaling
        prepared.append(
            Preparation(arguments, data, panels[i], of_fit, sizes, scaling, training, effects[i])
        )
    return prepared


def choose_paths(
    settings: Sequence[Settings],
    rows: Sequence[Standardised],
    sizes: tuple[int, int, list[int]],
    multivariate: str,
) -> tuple[list[Settings], list[dict[str, Any]], list[ForecastModel | None]]:
    """Choose the input size, form and structure of the linear path of each fit.

    Forms are empty without a linear path. The models have the linear path estimated from the
    training rows if factors were compared, and are None otherwise.
    """
    starts: list[ForecastModel | None] = [None for _ in rows]
    if not settings[0].linear_path:
        return list(settings), [{} for _ in rows], starts
    # First the path of each target by itself: factors are compared with the best of these.
    independent = [replace(s, multivariate="independent") if s.factor else s for s in settings]
    paths = choose_linear_paths(
        independent, rows, lambda candidate: model_without_values(candidate, *sizes)
    )
    chosen, forms = [list(part) for part in zip(*paths, strict=True)]
    for i, of_fit in enumerate(chosen):
        if of_fit.factor_lags:
            chosen[i], forms[i], starts[i] = choose_structure(
                replace(of_fit, multivariate=multivariate),
                forms[i],
                rows[i],
                lambda candidate: empty_model(replace(candidate, n_estimators=1), *sizes),
            )
    return chosen, forms, starts


def fit_all(prepared: Sequence[Preparation]) -> list[Fit]:
    """Fit all preparations, which have the same arguments; equal shapes train side by side."""
    return finish_all(prepared, validate_all(prepared))


def validate_all(prepared: Sequence[Preparation]) -> list[ValidationResult]:
    """Train the networks of all fits on their training rows and validate them on the rest."""
    estimates = estimate([fit.training for fit in prepared])
    return [fit.validated(trained) for fit, trained in zip(prepared, estimates, strict=True)]


def finish_all(prepared: Sequence[Preparation], results: Sequence[ValidationResult]) -> list[Fit]:
    """Finish all fits, with networks retrained on all rows if the settings say so."""
    refitted: Sequence[Any] = [None] * len(prepared)
    if prepared[0].settings.refit:
        trained = [result.trained for result in results]
        refitted = estimate_on_all([fit.training for fit in prepared], trained)
    return [
        fit.finished(result, on_all)
        for fit, result, on_all in zip(prepared, results, refitted, strict=True)
    ]


def _generators(seed: int, count: int) -> list[torch.Generator]:
    """Random generators, one for each network, so that the order of training does not matter.

    The first is seeded by `seed` itself, so that it equals the generator of a single network.
    """
    of_seeds = torch.Generator().manual_seed(seed)
    seeds = [seed, *torch.randint(2**62, (count - 1,), generator=of_seeds).tolist()]
    return [torch.Generator().manual_seed(number) for number in seeds]
