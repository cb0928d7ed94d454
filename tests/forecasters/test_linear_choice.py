"""The input size is that whose linear path forecasts the validation part best."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn import ParaRNNForecaster
from tsrnn.data import read_panel
from tsrnn.forecasters import _by_series, _linear_path, _scaling, _settings, _units
from tsrnn.forecasters._model import empty_model, model_without_values
from tsrnn.layers import LayerChoice

MONTHLY = (24, 36, 72, 120)


def quick(**changes):
    return ParaRNNForecaster(
        horizon=6, hidden_size=8, n_layers=1, max_epochs=1, refit=False, random_state=0, **changes
    )


def monthly(rows, lag=1, n=1, seed=0):
    """Return autoregressions on one lag, wide."""
    noise = np.random.default_rng(seed).normal(size=(rows + 500, n))
    values = noise.copy()
    for t in range(lag, len(values)):
        values[t] += 0.9 * values[t - lag]
    index = pd.date_range("1950-01-01", periods=rows, freq="MS")
    return pd.DataFrame(values[500:], index=index, columns=list("abcdef"[:n]))


@pytest.fixture(scope="module")
def frame():
    frame = monthly(500, n=3)
    frame["b"] = monthly(500, lag=12, seed=1)["a"].to_numpy()
    return frame


@pytest.mark.parametrize("multivariate", ["independent", "joint"])
def test_is_the_one_that_errs_least_when_given(frame, multivariate):
    chosen = quick(multivariate=multivariate).fit(frame)
    errors = {
        size: quick(multivariate=multivariate, input_size=size).fit(frame).linear_path_["error"]
        for size in MONTHLY
    }
    assert chosen.settings_.input_sizes == MONTHLY
    assert chosen.settings_.input_size == min(errors, key=errors.get)
    # To rounding: the order of a matrix product's sums depends on the threads that there are.
    assert chosen.linear_path_["error"] == pytest.approx(min(errors.values()), rel=1e-12)


def test_error_is_that_of_forecasts(frame):
    """The error of a forecaster that is its linear path, in naive errors, is the one chosen by."""
    model = quick(learning_rate=1e-12, val_size=100, input_size=24).fit(frame)
    known, held = frame[:-100], frame[-100:]
    model.state_ = model.fitted_.filter(model._read(known))
    rolled = model.predict_rolling(held)
    scale = model.state_.scaling.target.scale[0]
    error = (rolled[list(frame)] - held.loc[rolled.index]).to_numpy() / scale
    assert np.mean(error**2) == pytest.approx(model.linear_path_["error"], rel=1e-3)


def test_a_long_memory_takes_a_long_window():
    size = {lag: quick().fit(monthly(900, lag=lag)).settings_.input_size for lag in (1, 60)}
    assert size[1] < 60 <= size[60]


def test_at_most_half_of_the_training_part():
    settings = quick().fit(monthly(150)).settings_
    half = (150 - settings.val_size) // 2
    assert settings.input_sizes == (24, 36, half)


@pytest.mark.parametrize(
    ("changes", "size"), [({"input_size": 31}, 31), ({"linear_path": False}, 36)]
)
def test_is_not_chosen(changes, size):
    settings = quick(**changes).fit(monthly(300)).settings_
    assert settings.input_sizes == (settings.input_size,) == (size,)


def test_some_of_many_series_decide(frame, monkeypatch):
    seen = []
    best_forms = _linear_path.best_forms

    def counted(model, units, *rest):
        seen.extend(len(part) for part in units)
        return best_forms(model, units, *rest)

    monkeypatch.setattr(_linear_path, "best_forms", counted)
    long = frame.melt(var_name="unique_id", value_name="y", ignore_index=False)
    long = long.rename_axis("ds").reset_index()
    for rows, units in ((1500, 3), (1499, 2), (10, 1)):
        monkeypatch.setattr(_linear_path, "ROWS_TO_JUDGE", rows)
        quick().fit(long)
        assert seen[-len(MONTHLY) :] == [units] * len(MONTHLY)


ALL = slice(None)


class Fits:
    """Fits to series of a long frame, one each: everything before their linear paths."""

    def __init__(self, lengths, known=False, val_size=None):
        frames = [monthly(n, lag=1 + 11 * (i % 2), seed=i) for i, n in enumerate(lengths)]
        frame = pd.concat(frames, keys=range(len(lengths)), names=["unique_id", "ds"])
        frame = frame.rename(columns={"a": "y"}).reset_index()
        if known:
            frame["x"] = np.cos(np.arange(len(frame)))
        panels = _by_series.panels_of(read_panel(frame, id_col="unique_id", time_col="ds"))
        filled = _settings.resolve(quick(val_size=val_size).get_params())
        self.sizes = 1, int(known), [0] * known
        self.settings, self.rows = [], []
        for panel in panels:
            of_fit = _settings.settings_for(filled, LayerChoice("ParaRNN", {}), panel)
            scaling = _scaling.fit_scaling(panel, of_fit.training_rows(panel.lengths), 12)
            values = _scaling.standardise(panel, scaling)
            self.settings.append(of_fit)
            self.rows.append(_scaling.Standardised(values, panel.indptr, scaling))

    def chosen(self, numbers=ALL):
        """Settings and forms of some of the fits, chosen together."""
        return _linear_path.choose_linear_paths(
            self.settings[numbers],
            self.rows[numbers],
            lambda s: model_without_values(s, *self.sizes),
        )

    def coefficients(self, chosen, numbers=ALL):
        """Parameters of the linear paths of some of the fits, estimated together."""
        tried, forms = zip(*chosen[numbers], strict=True)
        units = _units.units_of_each(self.rows[numbers], tried)
        models = [empty_model(s, *self.sizes).double() for s in tried]
        origins = [
            _units.regression_origins(part, part.indptr[1:], s.horizon)
            for part, s in zip(units, tried, strict=True)
        ]
        _linear_path.fit_linear_paths([[m] for m in models], units, origins, 12, forms)
        return [[p.detach() for p in model.linear_parameters()] for model in models]


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    lengths=st.lists(st.integers(40, 260), min_size=2, max_size=5),
    known=st.booleans(),
    val_size=st.none() | st.just(12),
    at_once=st.sampled_from([1, 2**14, 2**20]),
    wide=st.sampled_from([0, 2**11]),
)
def test_of_many_fits_is_that_of_each(lengths, known, val_size, at_once, wide):
    """Also where they revert to their means, and in several batches."""
    fits = Fits(lengths, known, val_size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_linear_path, "VALUES_AT_ONCE", at_once)
        patch.setattr(_linear_path, "WIDE", wide)
        patch.setattr(_settings, "WINDOWS_TO_JUDGE", 0.1)
        together = fits.chosen()
        coefficients = fits.coefficients(together)
        for i, (of_fit, form) in enumerate(together):
            patch.setattr(_linear_path, "WIDE", 2**11)
            ((alone, expected),) = fits.chosen(slice(i, i + 1))
            assert of_fit == alone
            assert form == expected | {"error": pytest.approx(expected["error"], rel=1e-9)}
            (expected,) = fits.coefficients(together, slice(i, i + 1))
            for ours, theirs in zip(coefficients[i], expected, strict=True):
                torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-10)


def test_a_design_is_decomposed_once_for_all_fits(monkeypatch):
    """Once with and once without coefficients that vary, whatever the penalties and priors."""
    calls, eigh = [], torch.linalg.eigh
    monkeypatch.setattr(torch.linalg, "eigh", lambda gram: calls.append(len(gram)) or eigh(gram))
    fits = Fits([200] * 5)
    chosen = fits.chosen()
    assert calls == [5, 5] * len(fits.settings[0].input_sizes)
    calls.clear()
    fits.coefficients(chosen)
    assert sum(calls) == 5


def test_windows_of_all_fits_are_summed_together(monkeypatch):
    calls, moments = [], _units.window_moments
    monkeypatch.setattr(_units, "window_moments", lambda *args: calls.append(1) or moments(*args))
    fits = Fits([200] * 5)
    fits.chosen()
    assert len(calls) == len(fits.settings[0].input_sizes)
