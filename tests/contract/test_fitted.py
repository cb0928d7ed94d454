"""What a fit returns: a fitted model that nothing changes, and the state of the series."""

import copy
import dataclasses

import numpy as np
import pytest

from tsrnn.contract import Arguments, FittedData
from tsrnn.data import read_panel

pytestmark = pytest.mark.where.with_args(lambda example: example.is_forecaster)
QUESTIONS = ("filter", "advance", "forecast", "rolling", "steps", "to_file")


def panel_of(model, frame):
    """Read a frame in the shape of the data fitted to."""
    data = model.fitted_.data
    panel = read_panel(
        frame, layout=data.layout, freq=data.freq, exog=data.given_columns,
        id_col=model.arguments_.id_col, time_col=model.arguments_.time_col,
        missing=model.arguments_.missing,
    )  # fmt: skip
    return data.complete(panel)


def future_of(model, example, h):
    state = model.state_
    ahead = example.ahead(h).get("X_future")
    return model.fitted_.data.read_future(ahead, state.ids, state.last_times, h)


def test_has_what_the_protocol_says(fitted):
    model = fitted.fitted_
    assert isinstance(model.arguments, Arguments)
    assert isinstance(model.data, FittedData)
    assert (model.horizon, model.guarantee) == (fitted.horizon_, fitted.interval_guarantee_)
    assert all(callable(getattr(model, name)) for name in QUESTIONS)
    assert hasattr(fitted, "sample_paths") == ("sample_paths" in type(fitted).offers)


def test_is_frozen(fitted):
    model = fitted.fitted_
    assert dataclasses.is_dataclass(model)
    for field in dataclasses.fields(model):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(model, field.name, None)


def test_is_compared_by_identity(original):
    twin = copy.deepcopy(original)
    for record in (lambda m: m.fitted_, lambda m: m.fitted_.data, lambda m: m.state_):
        assert record(original) == record(original) != record(twin)
        assert len({record(original), record(twin)}) == 2


def test_an_estimator_has_no_other_fitted_attributes(fitted):
    arguments = set(fitted.get_params(deep=False))
    assert vars(fitted).keys() - arguments == {"fitted_", "state_", "_history"}


@pytest.mark.few
def test_no_question_changes_it(original, asked, contract):
    contract.same(contract.content(asked[0]), contract.content(original))


def test_filtering_the_data_gives_the_state_of_the_fit(fitted, example, contract):
    state = fitted.fitted_.filter(panel_of(fitted, example.training[0]))
    found, expected = (fitted._at(s) for s in (state, fitted.state_))
    contract.same(contract.forecast(found, example), contract.forecast(expected, example))


def test_forecasts_have_a_row_a_series_and_a_column_a_target(fitted, example):
    model, state, h = fitted.fitted_, fitted.state_, 2
    forecasts = model.forecast(state, h, [80], future_of(fitted, example, h))
    assert list(forecasts) == ["", "-lo-80", "-hi-80"]
    shape = len(state.ids), h, model.data.n_targets
    assert {values.shape for values in forecasts.values()} == {shape}
    np.testing.assert_array_equal(state.target_scale.shape, [shape[0], shape[2]])


def test_advancing_leaves_the_state_before(fitted, example, contract):
    model, before = fitted.fitted_, contract.content(fitted)
    after = model.advance(fitted.state_, panel_of(fitted, example.later))
    contract.same(contract.content(fitted), before)
    expected = copy.copy(fitted).update(example.later)
    np.testing.assert_array_equal(after.last_times, expected.state_.last_times)
    h = 2
    if "x" not in example.columns:
        forecasts = (model.forecast(s, h, [], None)[""] for s in (after, expected.state_))
        np.testing.assert_array_equal(*forecasts)


def test_a_state_is_selected_and_replaced_series_by_series(fitted, example):
    state, model = fitted.state_, fitted.fitted_
    n = len(state.ids)
    reversed_ = state.select(np.arange(n)[::-1])
    assert list(reversed_.ids) == list(state.ids)[::-1]
    back = state.replaced(np.arange(n)[::-1], reversed_)
    future = future_of(fitted, example, 2)
    same, turned = (model.forecast(s, 2, [], future)[""] for s in (state, back))
    np.testing.assert_array_equal(turned, same)
