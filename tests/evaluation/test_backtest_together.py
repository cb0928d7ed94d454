"""Fits at several origins: made together, they are those of a loop over the origins."""

import warnings

import numpy as np
import pandas as pd
import pytest
from lightning.pytorch.callbacks import Callback
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from tsrnn import ARMA, DCC, GARCH, VARMA, Combination, LRUForecaster, ParaRNNForecaster, backtest
from tsrnn.baselines import Naive
from tsrnn.contract import fit_together, most_fits_together
from tsrnn.evaluation import _backtest
from tsrnn.linear import VECMGARCH
from tsrnn.linear._base import LinearForecaster

SMALL = {
    "horizon": 3, "hidden_size": 8, "max_epochs": 3, "random_state": 0, "val_size": 12,
}  # fmt: skip
STEPS = 2e-3  # what sixty steps make of rounding


def wandering(n=100, seed=0, freq="MS"):
    rng = np.random.default_rng(seed)
    y = 20 + rng.normal(size=n).cumsum() + 3 * np.sin(np.arange(n) / 2)
    return pd.Series(y, pd.date_range("2000", periods=n, freq=freq), name="y")


def long_frame(lengths=(100, 91, 96)):
    parts = [
        wandering(n, seed).rename_axis("ds").reset_index().assign(unique_id=f"s{seed}")
        for seed, n in enumerate(lengths)
    ]
    return pd.concat(parts, ignore_index=True).assign(x=lambda df: np.cos(df.index))


def with_gaps():
    y = wandering()
    y.iloc[[10, 40, 41]] = np.nan
    return y


def pair(n=100):
    return pd.DataFrame({"a": wandering(n), "b": wandering(n, 1)})


def returns(n=300):
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.standard_t(5, size=(n, 2)), columns=["a", "b"])


AR, NETWORK = ARMA(order=(1, 0)), ParaRNNForecaster(**SMALL)
CASES = {
    "ARMA": (ARMA(order=(1, 1)), wandering),
    "ARMA, gaps and differences": (ARMA(order=(1, 1, 1), missing="keep"), with_gaps),
    "ARMA, panel and regressor": (ARMA(order=(1, 0), trend="ct", known_ahead="x"), long_frame),
    "ARMA, starts": (ARMA(order=(1, 1), n_starts=4), wandering),
    "VARMA": (VARMA(order=(1, 0)), pair),
    "GARCH": (GARCH(distribution="t", random_state=0), returns),
    "DCC": (DCC(random_state=0), returns),
    "network": (NETWORK, wandering),
    "network, panel": (ParaRNNForecaster(**SMALL, known_ahead="x"), long_frame),
    "networks of series": (
        LRUForecaster(**SMALL, per_series=True), lambda: long_frame().drop(columns="x"),
    ),
    "networks of columns": (LRUForecaster(**SMALL, per_series=True, refit=False), pair),
    "ensemble": (ParaRNNForecaster(**SMALL, n_estimators=2, intervals="student-t"), wandering),
    "pipeline": (make_pipeline(FunctionTransformer(np.log), ARMA(order=(2, 0))), pair),
    "pipeline of one step": (make_pipeline(AR), pair),
    "combination": (
        Combination({"AR": AR, "naive": Naive()}, weights="stacked", horizon=3), wandering,
    ),
    "combination of networks": (Combination({"AR": AR, "network": NETWORK}, horizon=3), wandering),
}  # fmt: skip


@pytest.fixture
def one_by_one(monkeypatch):
    """Let models be fitted one by one."""
    return lambda: monkeypatch.setattr(_backtest, "most_fits_together", lambda model: 1)


@pytest.fixture
def fitted_together(monkeypatch):
    """Numbers of models of each call that fits them together."""
    counts = []

    def counted(model, frames):
        counts.append(len(frames))
        return fit_together(model, frames)

    monkeypatch.setattr(_backtest, "fit_together", counted)
    return counts


def close(frame, other, rtol=STEPS):
    """Compare forecasts in units of their spread."""
    pd.testing.assert_frame_equal(frame.iloc[:, :4], other.iloc[:, :4])
    assert list(frame.columns) == list(other.columns)
    for name in frame.columns[4:]:
        np.testing.assert_allclose(
            frame[name], other[name], rtol=rtol, atol=rtol * other[name].std()
        )


@pytest.mark.few(
    "ARMA",
    "ARMA, gaps and differences",
    "ARMA, panel and regressor",
    "VARMA",
    "network",
    "pipeline",
    "combination",
)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_forecasts_are_those_of_fits_one_by_one(case, one_by_one, fitted_together):
    model, data = case
    has_network = "RNN" in repr(model) or "LRU" in repr(model)
    n_windows = 2 if has_network else 5
    given = {"h": 3, "n_windows": n_windows, "step_size": 2, "level": 80}
    together = backtest({"m": model}, data(), **given)
    one_by_one()
    alone = backtest({"m": model}, data(), **given)
    assert fitted_together == [n_windows]
    close(together, alone, STEPS if has_network else 1e-7)
    for key in ("failures", "inactive_networks", "set_aside", "scale"):
        assert together.attrs["backtest"][key] == alone.attrs["backtest"][key]


@pytest.mark.slow
def test_networks_that_contribute_are_the_same(one_by_one):
    """On a curve that no linear path follows."""
    y = np.empty(120)
    y[0] = 0.3
    for t in range(1, 120):
        y[t] = 3.7 * y[t - 1] * (1 - y[t - 1])
    model = ParaRNNForecaster(
        horizon=1, input_size=4, hidden_size=8, max_epochs=4, random_state=0, linear_path=False
    )
    given = {"h": 1, "n_windows": 2, "step_size": 1, "level": 80}
    together = backtest(model, pd.Series(y), **given)
    assert "ParaRNN" not in together.attrs["backtest"]["inactive_networks"]
    one_by_one()
    # Hundreds of steps on a chaotic map multiply rounding.
    close(together, backtest(model, pd.Series(y), **given), 0.05)


def test_the_state_of_each_goes_on(fitted_together):
    """Refits in every third window, updates between them."""
    y = wandering()
    frame = backtest(AR, y, h=2, n_windows=7, step_size=2, refit=3)
    assert fitted_together == [3]
    for window in range(7):
        end = 100 - 2 - 2 * (6 - window)
        fit_end = 100 - 2 - 2 * (6 - window + window % 3)
        model = clone(AR).fit(y.iloc[:fit_end])
        if end > fit_end:
            model.update(y.iloc[fit_end:end])
        rows = slice(2 * window, 2 * window + 2)
        np.testing.assert_allclose(frame["ARMA"].iloc[rows], model.predict(2))


def test_memory_bounds_how_many_there_are(monkeypatch, fitted_together):
    monkeypatch.setattr(_backtest, "_NUMBERS_TOGETHER", 300)
    whole = backtest(AR, wandering(), h=1, n_windows=8, step_size=1)
    assert fitted_together == [3, 3, 2]
    monkeypatch.setattr(_backtest, "_NUMBERS_TOGETHER", 10)
    pd.testing.assert_frame_equal(whole, backtest(AR, wandering(), h=1, n_windows=8, step_size=1))
    assert fitted_together == [3, 3, 2]


@pytest.mark.slow
def test_windows_that_fail_leave_the_others(one_by_one, fitted_together):
    """In the first window there are too few rows for the network."""
    model = ParaRNNForecaster(**SMALL | {"val_size": 16})
    given = {"h": 3, "n_windows": 4, "step_size": 3}
    y = wandering(32)
    with pytest.warns(UserWarning, match="1 of 4 windows") as warned:
        together = backtest(model, y, **given)
    assert max(fitted_together) == 4
    one_by_one()
    with pytest.warns(UserWarning, match="1 of 4 windows") as warned_alone:
        alone = backtest(model, y, **given)
    assert [str(w.message) for w in warned] == [str(w.message) for w in warned_alone]
    close(together, alone)
    assert together.attrs["backtest"]["failures"] == alone.attrs["backtest"]["failures"]


@pytest.mark.parametrize(
    "changes", [{"order": (1, -1)}, {"trend": "x"}, {"horizon": 0}], ids=["order", "trend", "h"]
)
def test_what_fails_everywhere_is_said_as_before(changes, fitted_together):
    with pytest.raises(RuntimeError, match="all models failed in all windows") as raised:
        backtest(ARMA(**changes), wandering(), h=2, n_windows=8)
    with pytest.raises((TypeError, ValueError)) as alone:
        ARMA(**changes).fit(wandering())
    assert str(alone.value) in str(raised.value)
    assert len(fitted_together) < 6


def test_an_argument_that_is_not_legal_is_said_as_before():
    with pytest.raises(RuntimeError, match="n_estimators must be a positive integer"):
        backtest(ParaRNNForecaster(n_estimators="two"), wandering(), h=2, n_windows=3)


def test_a_series_at_fault_is_set_aside_as_before(one_by_one):
    long = long_frame().drop(columns="x")
    long.loc[long["unique_id"] == "s1", "y"] = 3.0
    given = {"h": 2, "n_windows": 4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        together = backtest(AR, long, **given)
        one_by_one()
        alone = backtest(AR, long, **given)
    close(together, alone, 1e-7)
    assert together.attrs["backtest"]["set_aside"] == alone.attrs["backtest"]["set_aside"]


class Changed(ARMA):
    """Fits to differences."""

    def fit(self, df, y=None):
        return super().fit(df.diff().dropna())


class Rewritten(ParaRNNForecaster):
    """Fits as its base, but for what a user adds."""

    def _fit_panel(self, arguments, data, panel):
        return super()._fit_panel(arguments, data, panel)


ALONE = {
    "a fit of its own": Changed(),
    "a fit of a panel of its own": Rewritten(),
    "a baseline": Naive(),
    "starts drawn for each": VECMGARCH(),
    "callbacks": ParaRNNForecaster(callbacks=[Callback()]),
    "a device": ParaRNNForecaster(device="cuda"),
    "processes": ParaRNNForecaster(strategy="ddp", devices=2),
    "a member of its own": Combination([Naive(), Changed()]),
    "a pipeline": make_pipeline(FunctionTransformer(), Naive()),
    "a function": clone,
}


@pytest.mark.parametrize("model", ALONE.values(), ids=ALONE)
def test_fitted_one_by_one(model):
    assert most_fits_together(model) == 1


@pytest.mark.slow
def test_a_generator_draws_for_each_what_it_draws_for_one(one_by_one):
    model = ParaRNNForecaster(**SMALL | {"random_state": np.random.default_rng(3)})
    together = backtest(model, wandering(), h=3, n_windows=3)
    one_by_one()
    close(together, backtest(model, wandering(), h=3, n_windows=3))


def test_the_likelihoods_of_all_origins_are_searched_at_once(monkeypatch):
    panels = []
    given = LinearForecaster._fit_panels

    def counted(self, fits):
        panels.append(len(fits))
        return given(self, fits)

    monkeypatch.setattr(LinearForecaster, "_fit_panels", counted)
    monkeypatch.setattr(LinearForecaster, "_fit_panel", None)
    backtest(AR, wandering(), h=1, n_windows=40, step_size=1)
    assert panels == [40]


def test_a_unit_at_fault_does_not_reach_another_panel(monkeypatch):
    """A batch whose matrix cannot be factored says so of all its units."""
    family = clone(AR).fit(wandering()).fitted_.family
    infer = type(family).infer

    def fails_for_many(self, sample, optimum):
        if len(sample.units) > 1:
            raise np.linalg.LinAlgError("singular")
        return infer(self, sample, optimum)

    y = wandering()
    monkeypatch.setattr(type(family), "infer", fails_for_many)
    frame = backtest(AR, y, h=1, n_windows=3)
    expected = [clone(AR).fit(y.iloc[:end]).predict(1).iloc[0] for end in (97, 98, 99)]
    np.testing.assert_allclose(frame["ARMA"], expected)


def test_arguments_of_the_models_given_are_left():
    model = clone(AR).fit(wandering())
    before = model.predict(2)
    model.set_params(order=(2, 0))
    frame = backtest(model, wandering(), h=2, n_windows=3)
    assert model.freq is None
    pd.testing.assert_series_equal(model.predict(2), before)
    expected = ARMA(order=(2, 0)).fit(wandering().iloc[:-2]).predict(2)
    np.testing.assert_allclose(frame["ARMA"].iloc[-2:], expected)
