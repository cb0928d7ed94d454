"""What a fit leaves for the first question: the state after the last row, fingerprints, scores."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

from tsrnn.linear import ARMA, DCC, GARCH, VARMA, VECMGARCH, _fitted
from tsrnn.linear.varma import _fit
from tsrnn.storage import load

MODELS = [ARMA(order=(1, 1)), GARCH(), VARMA(order=(1, 1)), DCC(), VECMGARCH(random_state=0)]


@pytest.fixture
def frame():
    return pd.DataFrame(np.random.default_rng(2).standard_normal((120, 3)), columns=list("abc"))


@pytest.fixture
def calls(monkeypatch):
    """Names of the passes over the data after the search, in order."""
    made = []

    def counted(owner, name):
        function = getattr(owner, name)

        def call(*args):
            made.append(name)
            return function(*args)

        monkeypatch.setattr(owner, name, call)

    counted(_fitted, "fingerprint")
    counted(_fitted.FittedLinear, "state_after")
    return made


@pytest.mark.few("ARMA()", "GARCH()", "DCC()")
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_fit_makes_neither(model, frame, calls):
    model.fit(frame)
    assert not calls
    _ = model.params_, model.bse_, model.messages_, model.state_.ids, model.state_.last_times
    assert not calls
    model.predict(3)
    copy.copy(model).predict(3)  # copies share the state
    assert calls == ["state_after"]
    for _ in range(2):
        assert model.fitted_.digest
    assert calls == ["state_after", "fingerprint"]


@pytest.mark.few("model0-wide", "model1-wide", "model3-wide", "model5-long", "model6-long")
@pytest.mark.parametrize(
    ("model", "shape"), [(m, "wide") for m in MODELS] + [(m, "long") for m in MODELS[:2]]
)
def test_what_happens_to_the_frame_afterwards_does_not_matter(model, shape, frame):
    if shape == "long":
        frame = frame.melt(var_name="unique_id", value_name="y").assign(ds=[*range(120)] * 3)
    kept = model.fit(frame.copy())
    expected, state, digest = kept.predict(3), kept.state_.arrays, kept.fitted_.digest
    model.fit(frame)
    frame[frame.columns[-2]] = 0
    frame.iloc[:, -1] = 0
    frame.iloc[:, 0] = frame.iloc[0, 0]
    again = pickle.loads(pickle.dumps(model))
    for one in (model, again):
        pd.testing.assert_frame_equal(one.predict(3), expected)
        for name in state:
            np.testing.assert_array_equal(one.state_.arrays[name], state[name])
        assert one.fitted_.digest == digest


@pytest.mark.few("ARMA()", "GARCH()", "DCC()")
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_file_holds_them(model, frame, tmp_path):
    model.fit(frame).save(tmp_path / "model.tsrnn")
    loaded = load(tmp_path / "model.tsrnn")
    assert loaded.fitted_.digest == model.fitted_.digest
    pd.testing.assert_frame_equal(loaded.predict(3), model.predict(3))


@pytest.mark.few("1")
@pytest.mark.parametrize("n_series", [1, 2])
def test_scores_of_varma_are_computed_once_for_the_kinds_that_need_them(
    frame, monkeypatch, n_series
):
    calls = []

    def counted(at):
        calls.append(len(at.sample.y))
        return outer_products(at)

    outer_products = _fit.outer_products
    monkeypatch.setattr(_fit, "outer_products", counted)
    parts = [frame.iloc[: 120 - i].assign(unique_id=i, ds=range(120 - i)) for i in range(n_series)]
    model = VARMA(order=(1, 1), target=list("abc")).fit(pd.concat(parts))
    again = pickle.loads(pickle.dumps(model))
    _ = model.params_, model.bse_, model.messages_, model.predict(2)
    assert not calls
    robust = model.cov_params(0, "robust")
    _ = model.cov_params(0, "opg"), model.cov_params(0, "information")
    assert calls == [n_series]
    pd.testing.assert_frame_equal(again.cov_params(0, "robust"), robust)
