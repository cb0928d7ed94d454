"""Exponential smoothing of odd series and arguments: what is refused, and what goes on."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.linear import ETS


def months(values):
    values = np.asarray(values, float)
    return pd.Series(values, pd.date_range("2000-01", periods=len(values), freq="MS"), name="y")


def walk(n=60, seed=0):
    return months(50 + np.random.default_rng(seed).normal(size=n).cumsum())


def counts(n=60):
    return months(np.random.default_rng(0).poisson(0.3, n))


def with_columns():
    return walk().rename_axis("ds").reset_index().assign(unique_id="a", x=1.0)


def with_infinity():
    series = walk()
    series.iloc[5] = np.inf
    return series


REFUSED = [
    # series
    (counts(), {"error": "mul"},
     r"ETS\(M, N, N\) needs positive values; the lowest is 0. Take additive components"),
    (walk() - 60, {"error": "mul", "seasonal": "mul"}, "needs positive values; the lowest is -"),
    (walk() - 60, {"trend": "mul", "seasonal": "none"}, "needs positive values"),
    (months([3.0]), {}, r"ETS\(A, N, N\) needs at least 5 observations; the series has 1"),
    (months([3.0, 4, 3, 5]), {}, "needs at least 5 observations; the series has 4"),
    (walk(11), {"error": "add", "trend": "none", "seasonal": "add"},
     r"ETS\(A, N, A\) needs at least 24 observations; the series has 11"),
    (months(np.full(20, np.nan)), {"missing": "keep"}, "the series has 0"),
    (with_infinity(), {"missing": "keep"}, "must be finite; infinite are 1 row"),
    (months([np.nan, *range(20)]), {"missing": "error"}, "must have no missing values"),
    (walk().map("{:.2f} kg".format), {"strict": True}, "must be numeric"),
    # arguments
    (walk(), {"error": "A"}, r"error must be one of \('auto', 'add', 'mul'\); got 'A'"),
    (walk(), {"error": None}, "error must be one of"),
    (walk(), {"trend": True}, r"trend must be one of \('auto', 'none', 'add', 'mul'\); got True"),
    (walk(), {"seasonal": 12}, "seasonal must be one of .* got 12"),
    (walk(), {"damped": "yes"}, "damped must be True or False; got 'yes'"),
    (walk(), {"trend": "none", "damped": True}, "damped=True needs a trend; got trend='none'"),
    (walk(), {"season_length": 0}, "season_length must be a positive integer; got 0"),
    (walk(), {"seasonal": "add", "season_length": 1}, "needs a season of at least two rows"),
    (walk(), {"bounds": "both"},
     r"bounds must be one of \('slow', 'usual', 'admissible'\); got 'both'"),
    (walk(), {"initialization": "known"},
     r"must be one of \('estimated', 'heuristic'\); got 'known'"),
    (walk(), {"n_simulations": 0}, "n_simulations must be a positive integer; got 0"),
    (with_columns(), {"known_ahead": ["z"]},
     r"known_ahead must name exogenous columns of the data, which are"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "arguments", "message"), REFUSED)
def test_refusals(data, arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ETS(**arguments).fit(data)


def test_an_automatic_choice_leaves_out_what_a_series_cannot_have():
    for series in (counts(), walk() - 60):
        model = ETS().fit(series)
        table = model.candidates_.iloc[0]
        assert model.models_.item().startswith("ETS(A")
        products = [title for title in table.index if "M" in title]
        assert np.isinf(table[products]).all()
        assert np.isfinite(table.drop(products)).any()
    short = ETS().fit(walk(20))  # of a season two are needed
    assert short.models_.item().endswith("N)")


def test_one_bad_series_costs_no_other():
    frame = pd.DataFrame({"good": walk(), "constant": 1.0, "short": np.nan, "negative": -walk()})
    frame.loc[frame.index[-3:], "short"] = [1.0, 2, 1]
    with pytest.warns(UserWarning, match="1 of 4 units could not be fitted, 'short'"):
        model = ETS(missing="keep").fit(frame)
    alone = ETS(missing="keep").fit(frame["good"])
    np.testing.assert_allclose(model.loglik_["good"], alone.loglik_.item(), rtol=1e-9)
    assert model.models_["constant"] == "ETS(A, N, N)"
    assert "exactly" in model.messages_["constant"][0]
    assert model.models_["short"] == ""
    assert "at least 5 observations" in model.messages_["short"][0]
    forecast = model.predict(2)
    assert forecast["short"].isna().all()
    assert (forecast["constant"] == 1).all()
    assert forecast[["good", "negative"]].notna().all().all()
    assert model.components().groupby("target")["level"].count()["short"] == 0
    for unit in ("constant", "short", "good"):
        assert str(model.summary(unit))
    with pytest.raises(ValueError, match="'short' has no parameters"):
        model.to_rnn("short")


def test_rows_that_a_model_with_products_cannot_have():
    model = ETS("mul", "none", "mul").fit(walk())
    later = pd.Series([49.0, -1.0], pd.date_range("2005-01", periods=2, freq="MS"), name="y")
    message = r"ETS\(M, N, M\) of 'y' needs positive values; the lowest of these rows is -1"
    before = model.predict(2)
    for ask in (model.update, model.fittedvalues, lambda rows: model.predict(rows, h=2)):
        with pytest.raises(ValueError, match=message):
            ask(later)
    assert model.predict(2).equals(before)


PARAMS = [
    ("add", "none", {"alpha": 0.5, "level": 50, "sigma2": -1.0}),
    ("add", "none", {"alpha": 7.0, "level": 50, "sigma2": 1.0}),
    ("mul", "none", {"alpha": 0.5, "level": -50, "sigma2": 1.0}),
    ("mul", "mul", {"alpha": 0.5, "beta": 0.1, "level": 50, "trend": -1.0, "sigma2": 0.1}),
]


@pytest.mark.parametrize(("error", "trend", "params"), PARAMS)
def test_parameters_that_are_refused(error, trend, params):
    with pytest.raises(ValueError, match="must have sigma2 and phi above zero, smoothing param"):
        ETS(error, trend, "none", damped=False).filter(walk(), params)
    with pytest.raises(ValueError, match="parameters are those of one model; got 'auto'"):
        ETS(seasonal="none").filter(walk(), [0.5, 0.1, 0.9, 50, 0.1, 1])


EXACT = {
    "line": (np.arange(40) + 1.0, {}, [41, 42, 43]),
    "line through zero": (np.arange(40) - 20.0, {}, [20, 21, 22]),
    "line, one model": (
        np.arange(40) + 1.0, {"error": "add", "trend": "add", "damped": False}, [41, 42, 43],
    ),
    "season": (np.tile(np.arange(1.0, 13), 6), {}, [1, 2, 3]),
    "season and line": (np.tile(np.arange(1.0, 13), 6) + np.arange(72) / 2, {}, [37, 38.5, 40]),
    "line, admissible": (
        np.arange(40) + 1.0, {"bounds": "admissible", "season_length": 1}, [41, 42, 43],
    ),
    "line times season": (  # of a search that ends in rounding
        np.tile([1.0, 2.0, 4.0, 3.0], 10) * (np.arange(40) + 20), {"season_length": 4},
        [60, 122, 248],
    ),
    "line, states held": (np.arange(40) + 1.0, {"initialization": "heuristic"}, [41, 42, 43]),
}  # fmt: skip


@pytest.mark.few("line", "line through zero", "season", "line, states held")
@pytest.mark.filterwarnings("ignore::tsrnn.contract.IntervalWarning")
@pytest.mark.parametrize("name", EXACT)
def test_a_series_that_a_model_fits_exactly(name):
    values, arguments, ahead = EXACT[name]
    model = ETS(**arguments).fit(months(values))
    np.testing.assert_allclose(model.predict(3, level=[80])["y"], ahead, rtol=1e-9)
    assert "fits the series exactly" in model.messages_.item()[0]
    assert model.bse_.isna().all().all()
    assert str(model.summary())
    beside = pd.DataFrame({"exact": months(values), "other": walk(len(values))})
    both, alone = ETS(**arguments).fit(beside), ETS(**arguments).fit(beside["other"])
    np.testing.assert_allclose(both.predict(3)["exact"], ahead, rtol=1e-9)
    np.testing.assert_allclose(both.loglik_["other"], alone.loglik_.item(), rtol=1e-6)


def quiet(model, series):
    """Fit without the warnings of a search that ends before it is done."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(series)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 60), share=st.sampled_from([0.0, 0.2, 0.6]), seed=st.integers(0, 10**6),
    level=st.sampled_from([0.0, 5.0, 1e6]), period=st.sampled_from([1, 2, 4, 7]),
)  # fmt: skip
def test_any_length_and_gaps(n, share, seed, level, period):
    """A fit, its forecasts and its state, or a refusal in words."""
    rng = np.random.default_rng(seed)
    values = level + rng.normal(size=n).cumsum()
    values[rng.random(n) < share] = np.nan
    model = ETS(season_length=period, missing="keep", n_simulations=50, random_state=0)
    if np.isfinite(values).sum() < 5:
        with pytest.raises(ValueError, match=r"at least 5 observations|at least one|no rows|empty"):
            model.fit(months(values))
        return
    quiet(model, months(values))
    forecast = model.predict(3, level=[80]).to_numpy()
    assert np.isfinite(forecast).all()
    assert (forecast[:, 1] <= forecast[:, 2]).all()
    assert np.isfinite(model.loglik_.item())
    assert np.isfinite(model.aicc_.item())
    begun = np.maximum.accumulate(np.isfinite(values))  # before there are no states
    np.testing.assert_array_equal(np.isfinite(model.components()["level"]), begun)
    assert str(model.summary())
    row = model.params_.iloc[0]
    assert 0 < row["alpha"] < 1


@pytest.mark.parametrize("arguments", [{"error": "add", "trend": "none"}, {"trend": "add"}])
def test_additive_models_move_with_data_far_from_zero(arguments):
    arguments = {"error": "add", "seasonal": "add", "damped": False} | arguments
    far = walk() + 2.0**40  # whole numbers of the last digit: 2e-4
    near = far - 2.0**40
    models = [ETS(**arguments).fit(series) for series in (near, far)]
    for model in models:
        assert model.converged_.all()
    assert models[1].loglik_.item() == pytest.approx(models[0].loglik_.item(), abs=1e-5)
    ahead = [model.predict(6, level=[80]) for model in models]
    np.testing.assert_allclose(ahead[1] - 2.0**40, ahead[0], atol=2e-2)
    again = ETS(**arguments).filter(far, models[1].params_)
    assert again.loglik_.item() == pytest.approx(models[1].loglik_.item(), abs=1e-3)


SCALES = [1e-6, 0.1, 3.0, 1e7]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), c=st.sampled_from(SCALES), period=st.sampled_from([1, 4]))
def test_the_scale_of_the_data_does_not_matter(seed, c, period):
    series = months(30 + np.random.default_rng(seed).normal(size=36).cumsum())
    arguments = {"season_length": period, "random_state": 0, "n_simulations": 50}
    one, other = (quiet(ETS(**arguments), part) for part in (series, c * series))
    assert one.models_.item() == other.models_.item()
    np.testing.assert_allclose(other.loglik_.item(), one.loglik_.item() - 36 * np.log(c), atol=1e-5)
    ours, theirs = (model.predict(5, level=[80]).to_numpy() for model in (one, other))
    np.testing.assert_allclose(theirs, c * ours, rtol=1e-3)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6), shift=st.sampled_from([-300.0, 40.0, 1000.0]),
    trend=st.sampled_from(["none", "add"]), period=st.sampled_from([1, 4]),
)  # fmt: skip
def test_a_shift_of_the_data_does_not_matter_to_additive_models(seed, shift, trend, period):
    series = months(30 + np.random.default_rng(seed).normal(size=36).cumsum())
    seasonal = "add" if period > 1 else "none"
    arguments = {"damped": False, "season_length": period}
    one, other = (
        quiet(ETS("add", trend, seasonal, **arguments), part) for part in (series, series + shift)
    )
    np.testing.assert_allclose(other.loglik_.item(), one.loglik_.item(), atol=0.02)
    ours, theirs = (model.predict(5).to_numpy() for model in (one, other))
    np.testing.assert_allclose(theirs, ours + shift, atol=0.05 * np.std(series))
