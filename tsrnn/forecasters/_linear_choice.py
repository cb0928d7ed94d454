"""The window and the form of the linear path, chosen by how it forecasts the validation part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from tsrnn.data import Panel
from tsrnn.forecasters._linear_path import best_form
from tsrnn.forecasters._mapping import units_of
from tsrnn.forecasters._memory import Scaling, standardise
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._origins import regression_origins, validation_origins
from tsrnn.forecasters._settings import Settings
from tsrnn.forecasters._subset import subset

ROWS_TO_JUDGE = 500_000


def choose_linear_path(
    settings: Settings, panel: Panel, scaling: Scaling, make: Callable[[Settings], ForecastModel]
) -> tuple[Settings, dict[str, Any]]:
    """The input size and the form of the linear path with the least error on the validation part.

    Every size of `input_sizes` forecasts from the same origins. Of panels with more than
    500,000 rows a subset of the series decides.

    Parameters
    ----------
    settings : Settings
    panel : Panel
    scaling : Scaling
    make : callable
        Makes an empty model.

    Returns
    -------
    settings : Settings
        With the input size.
    form : dict
        What `best_form` gave.
    """
    panel, scaling = _some_series(settings, panel, scaling)
    values = standardise(panel, scaling)
    rows = torch.from_numpy(settings.training_rows(panel.lengths))
    found = []
    for size in settings.input_sizes:
        tried = replace(settings, input_size=size)
        units = units_of(values, panel.indptr, scaling, tried)
        split = units.starts + rows.repeat_interleave(len(units) // panel.n_series)
        train = regression_origins(units, split, tried.horizon)
        held = validation_origins(units, split, tried.horizon)
        found.append((tried, best_form(make(tried), units, train, held, tried.season)))
    return min(found, key=lambda pair: pair[1]["error"])


def _some_series(settings: Settings, panel: Panel, scaling: Scaling) -> tuple[Panel, Scaling]:
    """Series with a validation part, of many so many that they have 500,000 rows."""
    lengths = panel.lengths
    validated = np.flatnonzero(settings.training_rows(lengths) < lengths)
    most = max(1, len(validated) * ROWS_TO_JUDGE // int(lengths[validated].sum()))
    chosen = validated[subset(len(validated), most).numpy()]
    mask = np.zeros(panel.n_series, bool)
    mask[chosen] = True
    return panel.select(mask), scaling.select(chosen)
