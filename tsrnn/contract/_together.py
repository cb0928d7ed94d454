"""Fits of one forecaster to many data sets, in one batch if its class can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tsrnn.contract._base import Forecaster
from tsrnn.contract._estimator import Arguments, last_step
from tsrnn.contract._fitted_data import FittedData
from tsrnn.contract._parameters import clone
from tsrnn.contract._plot import History
from tsrnn.data import Panel

_OF_ONE_FIT = ("fit", "_read_training", "_fit_to", "_fit_panel")


def most_fits_together(model: Any) -> int:
    """Return the number of fits that `fit_together` batches.

    It is the result of `_fits_together`, limited by memory, for a forecaster, also at the end of a
    pipeline, with this method and `_fit_panels`, the batched form of `_fit_panel`. Other classes
    are fitted one by one, also subclasses that override a method of a single fit without
    `_fit_panels`.
    """
    forecaster = last_step(model)
    if not isinstance(forecaster, Forecaster):
        return 1
    if model is not forecaster:
        from sklearn.pipeline import Pipeline

        if type(model) is not Pipeline:  # a subclass may change the fit
            return 1

    def defining_class(method: str) -> type:
        return next((cls for cls in type(forecaster).__mro__ if method in vars(cls)), object)

    batched = defining_class("_fit_panels")
    if not all(issubclass(batched, defining_class(name)) for name in _OF_ONE_FIT):
        return 1
    most: int = forecaster._fits_together()  # type: ignore[attr-defined]
    return most


def fit_together(model: Any, frames: Sequence[Any]) -> list[Any]:
    """Return clones of a model, each fitted to one frame; equal to `fit` up to rounding.

    Networks are trained, and linear models optimised, in one batch. If one fit fails, all fail;
    `tsrnn.data.split_by_series` finds the one at fault.

    Parameters
    ----------
    model : forecaster, or scikit-learn pipeline that ends in one
        Model to clone.
    frames : sequence of frames
        Training frames, see `fit`.

    Returns
    -------
    list of fitted models

    Raises
    ------
    TypeError, ValueError
        As `fit` of any of them.

    Examples
    --------
    >>> from tsrnn import ARMA
    >>> from tsrnn.contract import fit_together
    >>> from tsrnn.datasets import load_nile
    >>> flow = load_nile()
    >>> models = fit_together(ARMA(order=(1, 0)), [flow[:n] for n in (60, 80, 100)])
    >>> [int(model.nobs_.iloc[0]) for model in models]
    [60, 80, 100]
    """
    if last_step(model) is model:
        arguments = Arguments.of(model)
        return fit_panels_together(model, [model._read_training(df, arguments) for df in frames])
    pipelines = [clone(model) for _ in frames]
    if len(model.steps) > 1:
        heads = [pipeline[:-1] for pipeline in pipelines]
        frames = [head.fit_transform(df) for head, df in zip(heads, frames, strict=True)]
        for pipeline, head in zip(pipelines, heads, strict=True):
            pipeline.steps[:-1] = head.steps  # new objects if the pipeline has a memory
    name, forecaster = model.steps[-1]
    for pipeline, fitted in zip(pipelines, fit_together(forecaster, frames), strict=True):
        pipeline.steps[-1] = name, fitted
    return pipelines


def fit_panels_together(
    forecaster: Any, panels: Sequence[Panel], changes: Sequence[dict[str, Any]] | None = None
) -> list[Any]:
    """Return clones of a forecaster, each fitted to one panel; see `fit_together`.

    Panels have their calendar columns. Clones differ by `changes` of arguments that do not affect
    batching, such as ``random_state``.
    """
    models = [clone(forecaster) for _ in panels]
    for model, change in zip(models, changes or [], strict=changes is not None):
        model.set_params(**change)
    # Arguments of each clone, since a generator as random_state is advanced by its fit.
    pairs = [(Arguments.of(model), panel) for model, panel in zip(models, panels, strict=True)]
    if most_fits_together(forecaster) == 1:
        return [model._fit_to(panel, a) for model, (a, panel) in zip(models, pairs, strict=True)]
    for arguments, panel in pairs:
        forecaster._check(arguments, panel)
    fits = [(arguments, FittedData.of(panel, arguments), panel) for arguments, panel in pairs]
    results = forecaster._with_intervals(fits, forecaster._fit_panels(fits))
    for model, panel, result in zip(models, panels, results, strict=True):
        model.fitted_, model.state_ = result
        model._history = History.of(panel)
    return models
