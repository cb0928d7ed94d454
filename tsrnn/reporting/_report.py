"""A comparison as one page for a browser, a phone or a printer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tsrnn.contract import file_place, positive_integer, put_file
from tsrnn.evaluation import Comparison
from tsrnn.reporting._html import page, paragraph
from tsrnn.reporting._sections import (
    accuracy_section,
    composition_section,
    data_section,
    diagnostics_section,
    forecast_section,
    models_section,
    notes_section,
    set_aside_section,
    tests_section,
    words_section,
)


def report(
    result: Comparison,
    path: str | os.PathLike[str],
    *,
    models: Mapping[str, Any] | None = None,
    title: str = "Comparison of forecasts",
    n_series: int = 2,
) -> Path:
    """Write a comparison as one HTML file that needs nothing beside it.

    It has the tests in words, accuracy over all and by step, tests of equal accuracy, forecasts
    over what came, coverage by step, diagnostics of errors one step ahead and the notes; of fitted
    models their summaries, and of networks recurrence features and contributions. Drawings are
    inside the file, there are no scripts, and nothing is fetched.

    Parameters
    ----------
    result : Comparison
        What `compare` gave.
    path : path
        File to write, such as "report.html"; one of that name is replaced.
    models : mapping of str to forecaster, optional
        Fitted forecasters to describe, by the names that they shall have.
    title : str
    n_series : int, default 2
        Series of which forecasts are drawn, the first ones.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    TypeError
        If `result` is no comparison, a model is not fitted, a name or the title is no text, or
        `n_series` no integer.
    ValueError
        If `n_series` is not positive.
    FileNotFoundError
        If the folder does not exist.

    Examples
    --------
    >>> import numpy as np, pandas as pd, tempfile
    >>> from tsrnn import ARMA, backtest, compare, report
    >>> y = pd.Series(np.random.default_rng(0).normal(size=120).cumsum())
    >>> models = {"walk": ARMA(order=(0, 1, 0)), "AR": ARMA(order=(1, 0))}
    >>> result = compare(backtest(models, y, h=2, n_windows=25, step_size=2, refit=False))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report(result, f"{folder}/report.html").stat().st_size > 10_000
    True
    """
    if not isinstance(result, Comparison):
        raise TypeError(f"result must be what compare gave; got {type(result).__name__}")
    if not isinstance(title, str):
        raise TypeError(f"title must be text; got {title!r}")
    n_series = positive_integer("n_series", n_series)
    models = _checked(models)
    path = file_place(path)
    body = [
        *data_section(result),
        *composition_section(models),
        *words_section(result),
        *accuracy_section(result),
        *tests_section(result),
        *forecast_section(result, n_series),
        *diagnostics_section(result),
        *models_section(models),
        *set_aside_section(result),
        *notes_section(result),
        paragraph(f"Made by tsrnn {version('tsrnn')}.", small=True),
    ]
    text = page(title, body).encode("utf-8", "backslashreplace")  # names may hold lone surrogates
    put_file(path, lambda place: place.write_bytes(text))
    return path


def _checked(models: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if models is None:
        return {}
    if not isinstance(models, Mapping):
        raise TypeError(f"models must be forecasters by name; got {type(models).__name__}")
    for name, model in models.items():
        if not isinstance(name, str):
            raise TypeError(f"names of models must be text; got {name!r}")
        if not hasattr(model, "memory_") or not hasattr(model, "summary"):
            raise TypeError(f"models must be fitted forecasters of tsrnn; {name!r} is {model!r}")
    return models
