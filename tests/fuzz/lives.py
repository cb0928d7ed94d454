"""The life of a forecaster: fit, predict, update, score, save and load, over one frame."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tsrnn

from .answers import LEVELS, check_forecast, to_pandas
from .asking import RefusalError, ask


def live(make, case, h=2):
    """Live through a frame; the names of what was answered."""
    model, answered = make(), []
    try:
        _, told = ask(model.fit, case.first)
    except RefusalError:
        return answered
    answered.append("fit")
    predicted(model, case.first, h, told, answered)
    stored(model, h, answered)
    retyped(model, case.later)
    scored(model, case.later, told, answered)
    try:
        _, more = ask(model.update, case.later)
    except RefusalError:
        return answered
    answered.append("update")
    predicted(model, case.whole(), h, told + more, answered)
    return answered


def predicted(model, data, h, told, answered):
    """Forecasts with intervals, or where these need more rows, points alone."""
    for levels in (LEVELS, []):
        try:
            forecast, more = ask(model.predict, h=h, level=levels)
        except RefusalError:
            continue
        answered.append("predict")
        return check_forecast(model, data, forecast, h, levels, told + more)


def retyped(model, later):
    """Ids that are text where those fitted to are numbers are refused, and converted taken."""
    name = model.fitted_.data.layout.id_col
    if not isinstance(later, pd.DataFrame) or name is None or later[name].dtype.kind != "i":
        return
    text = later.assign(**{name: later[name].astype(str)})
    with pytest.raises(RefusalError, match=r"must have no|must be|must follow|Ids differ in type"):
        ask(model.update, text)


def scored(model, later, told, answered):
    try:
        score, more = ask(model.score, later)
    except RefusalError:
        return
    assert np.isfinite(score) or told + more
    answered.append("score")


def stored(model, h, answered):
    """What was saved and loaded forecasts the same."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tsrnn"
        try:
            ask(model.save, path)
        except RefusalError:
            return
        loaded, _ = ask(tsrnn.load, path)
    try:
        before, _ = ask(model.predict, h=h)
    except RefusalError:
        return
    after, _ = ask(loaded.predict, h=h)
    before, after = to_pandas(before), to_pandas(after)
    equal = pd.testing.assert_series_equal if before.ndim == 1 else pd.testing.assert_frame_equal
    equal(after, before)
    answered.append("load")
