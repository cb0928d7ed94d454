"""Forecasters at the end of scikit-learn's pipelines."""

from __future__ import annotations

from typing import Any


def last_step(model: Any) -> Any:
    """The forecaster of a pipeline, or the model itself.

    Parameters
    ----------
    model : object
        A forecaster, or a pipeline of scikit-learn that ends in one.

    Returns
    -------
    object

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from tsrnn.baselines import Naive
    >>> from tsrnn.contract import last_step
    >>> last_step(make_pipeline(Naive()))
    Naive()
    """
    steps = getattr(model, "steps", None)
    return steps[-1][1] if isinstance(steps, list) and steps else model
