"""Models of a backtest: their names, the data they are shown, and the forecasts they give."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from tsrnn.contract import Arguments, Forecaster, fit_panels_together, last_step
from tsrnn.data import Layout, Panel, quote, write_stamps
from tsrnn.evaluation._forecasts import KEYS
from tsrnn.models import MODELS

HOPELESS = 5  # series tried alone before a member is taken to fail on all
# Arguments by which forecasters read a frame, and their values where no model has them.
READING = {"target": None, "id_col": "unique_id", "time_col": "ds", "freq": None}


def named_models(models: Any) -> dict[str, Any]:
    """Check models and return them by column name, by default that of their forecasts."""
    if isinstance(models, Mapping):
        named = dict(models)
    else:
        alone = not isinstance(models, Sequence) or isinstance(models, str)
        listed = [models] if alone else list(models)
        for model in listed:  # a name, such as "ETS", is no forecaster and has no name of its own
            _check_forecasts(model, "got ")
        steps = [last_step(model) for model in listed]
        names = [str(getattr(step, "column_name", type(step).__name__)) for step in steps]
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise ValueError(
                f"{names.count(twice[0])} models have the name {twice[0]!r}. Name them: "
                f"models={{{twice[0] + ' A'!r}: ..., {twice[0] + ' B'!r}: ...}}"
            )
        named = dict(zip(names, listed, strict=True))
    if not named:
        raise ValueError("models must hold at least one forecaster; it is empty")
    for name, model in named.items():
        if not isinstance(name, str) or not name or name in KEYS:
            raise ValueError(
                f"names of models must be text other than {', '.join(KEYS)}; got {name!r}"
            )
        if "-lo-" in name or "-hi-" in name:
            raise ValueError(f"names of models must not contain -lo- or -hi-; got {name!r}")
        _check_forecasts(model, f"{name!r} is ")
        try:
            clone(model)
        except (TypeError, RuntimeError) as error:
            raise TypeError(f"the model {name!r} cannot be cloned: {error}") from error
    return named


def _check_forecasts(model: Any, received: str) -> None:
    """Refuse a model without `fit` and `predict`, with the way to construct one."""
    methods = (getattr(model, method, None) for method in ("fit", "predict"))
    if not isinstance(model, type) and all(map(callable, methods)):
        return
    if isinstance(model, type):
        text, advice = f"the class {model.__name__}", f"Construct it: {model.__name__}()"
    elif isinstance(model, str) and model in MODELS:
        text, advice = quote(model), f"Construct it: {model}()"
    else:
        text, advice = quote(model), "Give an object of a forecaster"
    raise TypeError(
        "models must be forecasters with fit and predict, such as ARMA(); "
        f"{received}{text}. {advice}"
    )


def reading_arguments(models: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that read the frame; refuse models that differ in one."""
    arguments = dict(READING)
    for argument in READING:
        values = {
            name: getattr(last_step(model), argument)
            for name, model in models.items()
            if hasattr(last_step(model), argument)
        }
        if not values:
            continue
        first, value = next(iter(values.items()))
        for name, other in values.items():
            if _as_list(other) != _as_list(value):  # ["y"] is "y"
                raise ValueError(
                    f"all models must forecast the same columns of the same data; {argument} is "
                    f"{value!r} in {first!r} and {other!r} in {name!r}"
                )
        arguments[argument] = value
    return arguments


def _as_list(columns: Any) -> list[Any]:
    return list(columns) if isinstance(columns, list | tuple) else [columns]


def panel_shown(model: Any, panel: Panel) -> Panel:
    """Drop the exogenous columns from a panel if the model takes none."""
    if getattr(last_step(model), "takes_exog", True) or not panel.exog_names:
        return panel
    layout = replace(panel.layout, categories=())
    return replace(panel, exog=panel.exog[:, :0], exog_names=(), layout=layout)


def known_ahead(model: Any) -> list[Any]:
    """Columns whose future a model is given."""
    columns = getattr(last_step(model), "known_ahead", None)
    return [] if columns is None else _as_list(columns)


def read_forecasts(
    forecasts: Any, layout: Layout, ids: pd.Index, times: np.ndarray, wanted: Sequence[str]
) -> dict[str, np.ndarray]:
    """Read a frame from `predict` into arrays (S, h, C) by suffix.

    Its rows must match `ids` and `times` (S, h), and its columns all suffixes wanted.
    """
    frame = forecasts.to_frame() if isinstance(forecasts, pd.Series) else forecasts
    n_series, h = times.shape
    if not isinstance(frame, pd.DataFrame) or len(frame) != times.size:
        raise ValueError(
            f"predict must give a frame of {times.size} rows, {h} of each series; got "
            f"{type(forecasts).__name__} of shape {getattr(forecasts, 'shape', None)}"
        )
    stamps = frame.index if layout.time_col is None else frame[layout.time_col]
    if not layout.observed:  # else models do not know the times of later rows
        _check_equal(stamps, write_stamps(times.ravel(), layout), "timestamps")
    if layout.id_col is not None:
        _check_equal(frame[layout.id_col], ids.repeat(h), "series")
    front = {layout.id_col, layout.time_col} - {None}
    rest = [column for column in frame.columns if column not in front]
    bases: list[Any] = list(layout.target_names)
    if len(bases) == 1 and rest and bases[0] not in rest:
        bases = rest[:1]  # long frames name the model in place of the target
    arrays = {}
    for suffix in wanted:
        columns = [f"{base}{suffix}" if suffix else base for base in bases]
        for column in columns:
            if column not in rest:
                raise ValueError(
                    f"the forecasts have no column {quote(column)}; there are {quote(rest)}"
                )
        arrays[suffix] = frame[columns].to_numpy(dtype=float).reshape(n_series, h, len(columns))
    return arrays


def _check_equal(values: Any, expected: pd.Index, noun: str) -> None:
    values = pd.Index(values)
    wrong = np.flatnonzero(np.asarray(values != expected))
    if len(wrong):
        row = wrong[0]
        raise ValueError(
            f"forecasts are of other {noun} than asked for: {quote(values[row])} in place of "
            f"{quote(expected[row])} in row {row}"
        )


def fit_member(
    name: str, member: Forecaster, panels: Sequence[Panel]
) -> list[Forecaster | Exception]:
    """Fit a clone of a member to each panel; return the error in its place where that fails.

    It raises if arguments cannot be used, a package is missing, or one network of all series fails
    although it can be fitted to some of them.
    """
    panels = [panel_shown(member, panel) for panel in panels]
    try:
        for panel in panels:
            member._check(Arguments.of(member), panel)
        try:
            return list(fit_panels_together(member, panels))
        except ImportError:
            raise
        except Exception:  # of one panel at least; whatever a member of the user's raises
            return [_fitted_alone(member, panel) for panel in panels]
    except Exception as error:
        error.add_note(f"raised by the member {name!r} of the combination")
        raise


def _fitted_alone(member: Forecaster, panel: Panel) -> Forecaster | Exception:
    """Fit a clone to a panel; return the error if no series can be fitted."""
    try:
        return fit_panels_together(member, [panel])[0]
    except Exception as error:
        # A model with parameters per series raises only if all series fail. One network of all
        # series fails for a single bad one: raise, so that the user learns which.
        if panel.n_series > 1 and _fits_a_series(member, panel):
            raise
        return error


def _fits_a_series(member: Forecaster, panel: Panel) -> bool:
    """True if a member can be fitted to one of the first series of a panel."""
    for i in range(min(panel.n_series, HOPELESS)):
        try:
            with warnings.catch_warnings():  # warnings of a trial would count one series
                warnings.simplefilter("ignore")
                fit_panels_together(member, [panel.select(panel.ids[[i]])])
        except Exception:
            continue
        return True
    return False
