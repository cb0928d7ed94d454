"""Candidates of the default forecast: fitted, judged by rolling forecasts, and stacked."""

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
from tsrnn.forecasters._fit import Preparation, finish_all, judge_all, prepare_all
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

# A network is not trained where the linear path that it starts from errs by so much more than the
# prior network: training does not make up for it, and the weight would be near zero.
HOPELESS = 1.25
# Least weight of the prior network with columns: a trained network errs more than the validation
# part says where columns take values that were never seen.
LEAST_WITH_COLUMNS = 0.4
SILENT_SECONDS, MOMENT = 2.0, 0.1  # after which progress is shown, of a fit and of a candidate


class Candidate(NamedTuple):
    """Forecast that may have a weight.

    Attributes
    ----------
    forecasts : dict of str to ndarray
        Of the validation part by a fit to the rows before, see `ValidationPart.forecasts`.
    finish : callable
        Gives the model fitted to all rows, and the state after them.
    """

    forecasts: dict[str, np.ndarray]
    finish: Callable[[], tuple[FittedModel[Any], Any]]


@dataclass
class Stopwatch:
    """Seconds of each candidate, and lines on standard error about what takes long.

    Attributes
    ----------
    name : str
        Of the forecaster.
    shown : bool
        False where nothing is to be shown.
    seconds : dict of str to float
    """

    name: str
    shown: bool
    seconds: dict[str, float] = field(default_factory=dict)
    begun: float = field(default_factory=time.perf_counter)

    @contextmanager
    def on(self, candidate: str) -> Iterator[None]:
        """Count the seconds of a candidate; after two seconds of the fit, say what is tried."""
        start = time.perf_counter()
        # A candidate that does not apply is left within a moment, and not announced.
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
    """Fit candidates to the rows before the validation part, weigh them there, fit those again.

    Tried are the prior network as it comes, the same adapted to the series, and a network trained
    on them. What has no weight is not fitted to the last rows. Where no error can be measured, the
    prior network forecasts alone.

    Parameters
    ----------
    arguments : Arguments
    data : FittedData
    panel : Panel
    prior : TrainedPrior
    layer_of : callable
        Gives the layers of the network that may be trained, from the arguments filled in.
    """
    defaults, filled = frequency_defaults(panel.layout), resolve(arguments.as_dict())
    filled["horizon"] = filled["horizon"] or defaults.horizon  # whatever the shortest series is
    complete = repeated(panel, filled["season_length"] or defaults.season)
    with recorded():  # series too short to train on are forecast all the same
        preparation = prepare_all([(arguments, data)], [complete], filled, layer_of(filled))[0]
    settings = preparation.settings
    starts = settings.training_rows(panel.lengths)
    part = ValidationPart.of(panel, starts, settings.horizon, settings.season)
    if not np.isfinite(part.actual / part.scale).any():  # constant before it, or missing within
        return FittedPrior.of(arguments, data, panel, prior, adapts=False)
    watch = Stopwatch(arguments.class_name, bool(arguments.verbose) or sys.stderr.isatty())
    candidates: dict[str, Candidate] = {}

    with watch.on(PRIOR):
        fitted, state, _ = FittedPrior.as_it_comes(arguments, data, panel, prior)
        earlier, before = fitted, panel.between(np.zeros_like(starts), starts)
        if fitted.columns is not None:  # effects of the calendar, estimated
            earlier, *_ = FittedPrior.as_it_comes(arguments, data, before, prior)

    with watch.on(ADAPTED):
        adapted = earlier.adapted_to(before)
    with watch.on(PRIOR):  # together: most of the time is for what they share
        networks = [earlier] if adapted is earlier else [earlier, adapted]
        forecasts = part.forecasts(networks)
    candidates[PRIOR] = Candidate(forecasts[0], lambda: (fitted, state))
    if adapted is not earlier:
        # States do not depend on the weights of a network.
        candidates[ADAPTED] = Candidate(forecasts[1], lambda: (fitted.adapted_to(panel), state))
    error = part.error(candidates[PRIOR].forecasts)

    with watch.on(TRAINED):
        if linear_error(preparation, part) < HOPELESS * error:
            candidates[TRAINED] = try_trained(preparation, part)

    weights = part.weights([candidate.forecasts for candidate in candidates.values()])
    if panel.exog_names and weights[0] < LEAST_WITH_COLUMNS:
        weights[1:] *= (1 - LEAST_WITH_COLUMNS) / weights[1:].sum()
        weights[0] = LEAST_WITH_COLUMNS
    shares = dict(zip(candidates, weights.tolist(), strict=True))
    kept = {name: candidate for name, candidate in candidates.items() if shares[name]}
    fits = {}
    for name, candidate in kept.items():
        with watch.on(name):
            fits[name] = candidate.finish()
    stacked = FittedStacked(
        {name: fit for name, (fit, _) in fits.items()},
        weights[weights > 0],
        np.ones(1),
        table_of(candidates, shares, part, watch),
        len(part.origins.series),
        panel.last_times.astype(np.int64),
        np.inf,
    )
    scale = earlier.empty_state(part.before).target_scale[part.origins.series]
    forecasts = [candidate.forecasts for candidate in kept.values()]
    away = np.max([departure(each, forecasts[0], scale).max() for each in forecasts])
    together = stacked.averaged(forecasts, scale)
    state_after = stacked.begin([state for _, state in fits.values()])
    farthest = FARTHEST * max(1.0, float(away))
    widths = stacked.widths if panel.exog_names else part.widths(together)
    return replace(stacked, widths=widths, farthest=farthest), state_after


def table_of(
    candidates: dict[str, Candidate],
    shares: dict[str, float],
    part: ValidationPart,
    watch: Stopwatch,
) -> pd.DataFrame:
    """Table of what was tried, see `FittedStacked`; a network that was given up has no error."""
    errors = {name: part.error(candidate.forecasts) for name, candidate in candidates.items()}
    rows = {
        name: [shares.get(name, 0.0), errors.get(name, np.nan), seconds]
        for name, seconds in watch.seconds.items()
        if name in candidates or name == TRAINED
    }
    return pd.DataFrame(rows.values(), list(rows), list(COLUMNS), dtype=float)


def try_trained(preparation: Preparation, part: ValidationPart) -> Candidate:
    """Network trained on the rows before the validation part."""
    judged = judge_all([preparation])
    earlier, _ = preparation.finished(judged[0], None)
    return Candidate(part.forecasts([earlier])[0], lambda: finish_all([preparation], judged)[0])


def linear_error(preparation: Preparation, part: ValidationPart) -> float:
    """Error of the linear path that the network would start from."""
    linear = preparation.without_network()
    fitted, _ = linear.finished(judge_all([linear])[0], None)
    return part.error(part.forecasts([fitted])[0])
