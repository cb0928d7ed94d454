"""Fits of one forecaster to many data sets: together where its class knows how."""

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
    """Number of fits that `fit_together` makes in little more time than one, as memory allows.

    It is that of `_fits_together` where a class of forecasters answers this and `_fit_panels`,
    which takes a sequence of what `_fit_panel` takes and gives a list of its results. Others are
    fitted one by one, and so is a subclass that changes what happens at one fit and does not answer
    `_fit_panels` anew.

    Parameters
    ----------
    model : object
        A forecaster, a pipeline of scikit-learn that ends in one, or anything else.

    Returns
    -------
    int
        1 where fits are made one by one.

    Examples
    --------
    >>> from tsrnn import ARMA
    >>> from tsrnn.baselines import Naive
    >>> from tsrnn.contract import most_fits_together
    >>> most_fits_together(ARMA()), most_fits_together(Naive())
    (256, 1)
    """
    forecaster = last_step(model)
    if not isinstance(forecaster, Forecaster) or not (model is forecaster or _is_pipeline(model)):
        return 1
    home = _home(forecaster, "_fit_panels")
    if not all(issubclass(home, _home(forecaster, name)) for name in _OF_ONE_FIT):
        return 1
    most: int = forecaster._fits_together()  # type: ignore[attr-defined]
    return most


def fit_together(model: Any, frames: Sequence[Any]) -> list[Any]:
    """Clones of a model, each fitted to a frame of its own, as `fit` does to rounding.

    Networks are trained side by side, linear models searched for in one batch. Where one of the
    fits fails, so do all: `tsrnn.data.split_by_series` says which.

    Parameters
    ----------
    model : forecaster, or pipeline of scikit-learn that ends in one
        Left as it is.
    frames : sequence of frames
        As for `fit`.

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
            pipeline.steps[:-1] = head.steps  # other objects, where the pipeline has a memory
    name, forecaster = model.steps[-1]
    for pipeline, fitted in zip(pipelines, fit_together(forecaster, frames), strict=True):
        pipeline.steps[-1] = name, fitted
    return pipelines


def fit_panels_together(
    forecaster: Any, panels: Sequence[Panel], changes: Sequence[dict[str, Any]] | None = None
) -> list[Any]:
    """Clones of a forecaster, each fitted to a panel of its own; see `fit_together`.

    Parameters
    ----------
    forecaster : Forecaster
        Left as it is.
    panels : sequence of Panel
        With the columns of the calendar.
    changes : sequence of dict, optional
        Arguments in which the clones differ, such as their ``random_state``: none that decides
        what is fitted together.

    Returns
    -------
    list of fitted forecasters

    Raises
    ------
    TypeError, ValueError
        As `fit` of any of them.

    Examples
    --------
    >>> from tsrnn import ARMA
    >>> from tsrnn.contract import fit_panels_together
    >>> from tsrnn.data import read_panel
    >>> from tsrnn.datasets import load_nile
    >>> panels = [read_panel(load_nile()[:n]) for n in (80, 100)]
    >>> models = fit_panels_together(ARMA(order=(1, 0)), panels)
    >>> [int(model.nobs_.iloc[0]) for model in models]
    [80, 100]
    """
    models = [clone(forecaster) for _ in panels]
    for model, change in zip(models, changes or [], strict=changes is not None):
        model.set_params(**change)
    # Of each by itself: a generator as random_state is that of its fit.
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


def _is_pipeline(model: Any) -> bool:
    """Return True for a pipeline of scikit-learn itself, not of a class derived from it."""
    from sklearn.pipeline import Pipeline

    return type(model) is Pipeline


def _home(forecaster: Forecaster[Any], method: str) -> type:
    """Class that a method of a forecaster comes from; object where there is none."""
    return next((cls for cls in type(forecaster).__mro__ if method in vars(cls)), object)
