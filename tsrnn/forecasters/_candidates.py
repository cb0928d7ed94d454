"""Candidates of the default forecast: fitted, validated by rolling forecasts, and stacked."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tsrnn.contract import Arguments, FittedData, FittedModel, frequency_defaults, recorded
from tsrnn.data import Panel
from tsrnn.forecasters._fit import finish_all, prepare_all, validate_all
from tsrnn.forecasters._prior import FittedPrior, PriorState
from tsrnn.forecasters._repeated import repeated
from tsrnn.forecasters._settings import resolve
from tsrnn.forecasters._stacking import (
    ADAPTED,
    COLUMNS,
    FARTHEST,
    PRIOR,
    TRAINED,
    FittedStacked,
    StackedState,
    ValidationPart,
    departure,
)
from tsrnn.layers import LayerChoice
from tsrnn.prior import TrainedPrior

# No network is trained if the error of its linear path exceeds the pretrained network's by this
# factor: training does not make up for it, and the weight would be near zero.
HOPELESS = 1.25
# Least weight of the pretrained network with columns: if columns take new values, a trained network
# has larger errors than in the validation part.
LEAST_WITH_COLUMNS = 0.4
SILENT_SECONDS, MOMENT = 2.0, 0.1  # before progress is shown: since the fit began, of a candidate


class Candidate(NamedTuple):
    """Candidate model of a stacked forecast.

    `forecasts` are those of `ValidationPart.forecasts`. `finish` fits the model to all rows; it
    returns the model and the state after them.
    """

    forecasts: dict[str, np.ndarray]
    finish: Callable[[], tuple[FittedModel[Any], Any]]


@dataclass
class Stopwatch:
    """Seconds of each candidate, and progress of slow ones on standard error if `shown`."""

    name: str
    shown: bool
    seconds: dict[str, float] = field(default_factory=dict)
    begun: float = field(default_factory=time.perf_counter)

    @contextmanager
    def on(self, candidate: str) -> Iterator[None]:
        """Add to the seconds of a candidate, and print its name once the fit takes two seconds."""
        start = time.perf_counter()
        # Candidates that do not apply end within a moment and are not announced.
        silent = max(SILENT_SECONDS - (start - self.begun), MOMENT)
        line = threading.Timer(silent, self._show, [candidate])
        line.daemon = True
        if self.shown:
            line.start()
        try:
            yield
        finally:
            line.cancel()
            took = time.perf_counter() - start
            self.seconds[candidate] = self.seconds.get(candidate, 0.0) + took

    def _show(self, candidate: str) -> None:
        print(f"{self.name}: trying the {candidate}", file=sys.stderr, flush=True)


def fit_stacked(
    arguments: Arguments,
    data: FittedData,
    panel: Panel,
    prior: TrainedPrior,
    layer_of: Callable[[dict[str, Any]], LayerChoice],
) -> tuple[FittedStacked, StackedState] | tuple[FittedPrior, PriorState]:
    """Fit candidates to the rows before the validation part, weight them on it, and refit them.

    Candidates are the pretrained network, the same network adapted to the series, and a network
    trained on the series, with layers by `layer_of` from the arguments filled in. Only candidates
    with a weight are refitted to all rows. If no error can be measured, the pretrained network
    forecasts alone.
    """
    defaults, filled = frequency_defaults(panel.layout), resolve(arguments.as_dict())
    # The default does not depend on the shortest series.
    filled["horizon"] = filled["horizon"] or defaults.horizon
    complete = repeated(panel, filled["season_length"] or defaults.season)
    with recorded():  # no warning of series too short to train on: they are forecast all the same
        preparation = prepare_all([(arguments, data)], [complete], filled, layer_of(filled))[0]
    settings = preparation.settings
    starts = settings.training_rows(panel.lengths)
    part = ValidationPart.of(panel, starts, settings.horizon, settings.season)
    # No error has a scale if the series are constant before the part or missing within it.
    if not np.isfinite(part.actual / part.scale).any():
        return FittedPrior.of(arguments, data, panel, prior, adapts=False)
    watch = Stopwatch(arguments.class_name, bool(arguments.verbose) or sys.stderr.isatty())
    candidates: dict[str, Candidate] = {}

    with watch.on(PRIOR):
        fitted, state, _ = FittedPrior.unadapted(arguments, data, panel, prior)
        before = panel.between(np.zeros_like(starts), starts)
        earlier = fitted
        if fitted.columns is not None:  # whose effects must not have seen the validation part
            earlier, *_ = FittedPrior.unadapted(arguments, data, before, prior)
    with watch.on(ADAPTED):
        adapted = earlier.adapted_to(before)
    with watch.on(PRIOR):  # both in one call, which computes their structural models once
        networks = [earlier] if adapted is earlier else [earlier, adapted]
        forecasts = part.forecasts(networks)
    candidates[PRIOR] = Candidate(forecasts[0], lambda: (fitted, state))
    if adapted is not earlier:  # with the same state, which does not depend on the weights
        candidates[ADAPTED] = Candidate(forecasts[1], lambda: (fitted.adapted_to(panel), state))

    with watch.on(TRAINED):
        # The linear path, estimated in closed form, tells if training a network is worth its time.
        linear = preparation.without_network()
        path, _ = linear.finished(validate_all([linear])[0])
        error = part.error(part.forecasts([path])[0])
        if error < HOPELESS * part.error(candidates[PRIOR].forecasts):
            results = validate_all([preparation])
            network, _ = preparation.finished(results[0])
            candidates[TRAINED] = Candidate(
                part.forecasts([network])[0], lambda: finish_all([preparation], results)[0]
            )

    # With columns the pretrained network keeps a least weight, and gives the intervals.
    least = LEAST_WITH_COLUMNS if panel.exog_names else 0.0
    weights = part.weights([candidate.forecasts for candidate in candidates.values()], least)
    shares = dict(zip(candidates, weights.tolist(), strict=True))
    fits = {}
    for name in (name for name in candidates if shares[name]):
        with watch.on(name):
            fits[name] = candidates[name].finish()
    errors = {name: part.error(candidate.forecasts) for name, candidate in candidates.items()}
    # A trained network that was given up has seconds and no weight, but no error.
    tried = [name for name in watch.seconds if name in candidates or name == TRAINED]
    columns = [{TRAINED: 0.0} | shares, errors, watch.seconds]
    table = pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)), index=tried, dtype=float)
    stacked = FittedStacked(
        parts={name: fit for name, (fit, _) in fits.items()},
        weights=weights[weights > 0],
        widths=np.ones(1),
        candidates=table,
        n_origins=len(part.origins.series),
        fitted_until=panel.last_times.astype(np.int64),
        farthest=np.inf,
    )
    # The limit of the distance and the widths follow from the validation forecasts.
    scale = earlier.empty_state(part.before).target_scale[part.origins.series]
    forecasts = [candidates[name].forecasts for name in fits]
    away = np.max([departure(each, forecasts[0], scale).max() for each in forecasts])
    if not stacked.has_columns:
        stacked = replace(stacked, widths=part.widths(stacked.averaged(forecasts, scale)))
    stacked = replace(stacked, farthest=FARTHEST * max(1.0, float(away)))
    return stacked, stacked.begin([state for _, state in fits.values()])
