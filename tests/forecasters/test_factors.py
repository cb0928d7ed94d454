"""Common factors of several targets: reduced-rank ridge regression, and when it is chosen."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn import ParaRNNForecaster, load
from tsrnn.contract import read_file, write_file
from tsrnn.forecasters._factors import (
    NUMBERS,
    Moments,
    ReducedRankRidge,
    choose_factors,
    squared_errors,
)
from tsrnn.forecasters._linear_path import NEAR_TIE, PENALTIES


def moments_of(x, y):
    x, y = torch.as_tensor(x), torch.as_tensor(y)
    return Moments(x.mT @ x, x.mT @ y, y.square().sum())


def ridge(x, y, penalty):
    """Return ridge coefficients by least squares on rows for the penalty below the data."""
    root = np.sqrt(penalty * np.linalg.eigvalsh(x.T @ x).mean())
    below = np.vstack([x, root * np.eye(x.shape[1])])
    targets = np.vstack([y, np.zeros((x.shape[1], y.shape[1]))])
    return below, targets, np.linalg.lstsq(below, targets, rcond=None)[0]


def estimate(x, y, penalty, rank):
    weights, loadings = ReducedRankRidge(moments_of(x, y)).factors(penalty, rank)
    return (weights @ loadings).numpy()


shapes = st.tuples(st.integers(1, 9), st.integers(1, 9))


@given(shapes, st.integers(1, 9), st.sampled_from([1e-3, 0.1, 10.0]), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_is_the_projection_of_ridge_on_the_first_vectors_of_fitted_values(
    sizes, rank, penalty, seed
):
    p, m = sizes
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(40, p)), rng.normal(size=(40, m))
    below, _, full = ridge(x, y, penalty)
    _, _, vectors = np.linalg.svd(below @ full, full_matrices=False)
    first = vectors[:rank].T
    np.testing.assert_allclose(estimate(x, y, penalty, rank), full @ first @ first.T, atol=1e-8)


def test_of_full_rank_is_ridge():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 7)), rng.normal(size=(60, 4))
    np.testing.assert_allclose(estimate(x, y, 0.1, 7), ridge(x, y, 0.1)[2], atol=1e-10)


def test_a_low_rank_is_recovered():
    rng = np.random.default_rng(1)
    x, b = rng.normal(size=(5000, 8)), rng.normal(size=(8, 2)) @ rng.normal(size=(2, 6))
    y = x @ b + 0.1 * rng.normal(size=(5000, 6))
    np.testing.assert_allclose(estimate(x, y, 1e-6, 2), b, atol=0.02)


def test_squared_errors_are_those_of_the_first_factors():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(50, 6)), rng.normal(size=(50, 5))
    new_x, new_y = rng.normal(size=(30, 6)), rng.normal(size=(30, 5))
    weights, loadings = ReducedRankRidge(moments_of(x, y)).factors(0.1, 5)
    w, b = weights.numpy(), loadings.numpy()
    expected = [((new_y - new_x @ w[:, :r] @ b[:r]) ** 2).sum() for r in range(1, 6)]
    errors = squared_errors(moments_of(new_x, new_y), weights, loadings)
    np.testing.assert_allclose(errors, expected, rtol=1e-10)


def test_regressors_of_zeros():
    y = np.random.default_rng(3).normal(size=(20, 3))
    assert (estimate(np.zeros((20, 4)), y, 0.1, 3) == 0).all()


def errors_by_penalty(x, y, new_x, new_y):
    """Return the squared errors on new rows by penalty and rank, each fitted by least squares."""
    errors = {}
    for penalty in PENALTIES:
        below, _, full = ridge(x, y, penalty)
        vectors = np.linalg.svd(below @ full, full_matrices=False)[2]
        for rank in (number for number in NUMBERS if number <= x.shape[1]):
            first = vectors[:rank].T
            errors[penalty, rank] = ((new_y - new_x @ full @ first @ first.T) ** 2).sum()
    return errors


@pytest.mark.parametrize("noise", [0.3, 3.0, 10.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_penalty_is_the_largest_within_a_percent_of_the_least_error(noise, seed):
    rng = np.random.default_rng(seed)
    b = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 5))
    x, new_x = rng.normal(size=(60, 6)), rng.normal(size=(40, 6))
    x[:, 5], new_x[:, 5] = x[:, 4] + 0.001 * x[:, 5], new_x[:, 4] + 0.001 * new_x[:, 5]
    y, new_y = (rows @ b + noise * rng.normal(size=(len(rows), 5)) for rows in (x, new_x))
    errors = errors_by_penalty(x, y, new_x, new_y)
    least = min(errors.values())
    penalty = max(penalty for (penalty, _), e in errors.items() if e <= 1.01 * least)
    rank = min((e, r) for (p, r), e in errors.items() if p == penalty)[1]
    chosen = choose_factors(moments_of(x, y), moments_of(new_x, new_y), [6])
    assert (NEAR_TIE, chosen.penalty, len(chosen.loadings)) == (0.01, penalty, rank)
    np.testing.assert_allclose(chosen.error, errors[penalty, rank], rtol=1e-6)


def test_the_largest_penalty_is_not_that_of_the_least_error():
    rng = np.random.default_rng(0)
    x, new_x = rng.normal(size=(2, 500, 3))
    y, new_y = (0.3 * rows.sum(1, keepdims=True) + rng.normal(size=(500, 2)) for rows in (x, new_x))
    moments = moments_of(x, y), moments_of(new_x, new_y)
    assert choose_factors(*moments, [3]).penalty > choose_factors(*moments, [3], 0.0).penalty


def autoregression(cross, rows=700, n=4, seed=0):
    """Return a wide frame in which each column leads the next with a coefficient."""
    rng = np.random.default_rng(seed)
    transition = 0.4 * np.eye(n) + cross * np.roll(np.eye(n), 1, axis=1)
    values = np.zeros((rows + 100, n))
    for t in range(1, len(values)):
        values[t] = values[t - 1] @ transition + rng.normal(size=n)
    return pd.DataFrame(values[100:], columns=list("abcdefgh"[:n]))


def fit(frame, **changes):
    arguments = {"horizon": 2, "network": False, "prior": None, "random_state": 0} | changes
    return ParaRNNForecaster(**arguments).fit(frame)


class TestChoice:
    def test_factors_where_targets_lead_each_other(self):
        frame = autoregression(0.5, rows=1500)
        errors = {}
        for structure in ("auto", "independent"):
            model = fit(frame[:1000], multivariate=structure)
            forecasts = model.predict_rolling(frame[1000:], h=1).drop(columns="cutoff")
            errors[structure] = ((forecasts - frame.loc[forecasts.index]) ** 2).to_numpy().mean()
            if structure == "auto":
                assert model.settings_.multivariate == "factor"
                assert model.linear_path_["factor_statistic"] > 2
        # The least possible is 1, the variance of the shocks.
        assert errors["auto"] < 1.1
        assert errors["independent"] > 1.15

    @pytest.mark.parametrize("seed", range(4))
    def test_none_where_they_do_not(self, seed):
        model = fit(autoregression(0.0, seed=seed))
        assert model.settings_.multivariate == "independent"
        assert model.settings_.n_factors == model.settings_.factor_lags == 0

    def test_files_without_factors_are_read(self, tmp_path):
        frame = autoregression(0.0)
        model, path = fit(frame), tmp_path / "model"
        model.save(path)
        header, arrays = read_file(path)
        for name in ("factor_lags", "n_factors"):
            del header["fitted"]["settings"][name]
        write_file(path, header | {"format": 8}, arrays)
        loaded = load(path)
        assert loaded.settings_ == model.settings_
        pd.testing.assert_frame_equal(loaded.predict(2), model.predict(2))

    def test_none_on_random_walks(self):
        walks = pd.DataFrame(np.random.default_rng(5).normal(size=(600, 5)).cumsum(0))
        walks.columns = list("abcde")
        assert fit(walks).settings_.multivariate == "independent"

    def test_independent_forecasts_are_those_asked_for(self):
        frame = autoregression(0.0)
        chosen, asked = fit(frame), fit(frame, multivariate="independent")
        pd.testing.assert_frame_equal(chosen.predict(2), asked.predict(2))

    def test_the_validation_part_alone_decides(self):
        """Rows of the validation part without a lead undo it, whatever the training part has."""
        led, apart = autoregression(0.5), autoregression(0.0, rows=150, seed=2)
        frame = pd.concat([led, apart], ignore_index=True)
        assert fit(frame, val_size=150).settings_.multivariate == "independent"

    @pytest.mark.parametrize("changes", [{"linear_path": False}, {"per_series": True}])
    def test_is_not_made(self, changes):
        frame = autoregression(0.5, rows=200)
        model = fit(frame, network=True, max_epochs=1, hidden_size=4, refit=False, **changes)
        settings = model.for_series("a").settings_ if "per_series" in changes else model.settings_
        assert settings.multivariate == "independent"

    def test_of_one_target(self):
        model = fit(autoregression(0.5)[["a"]], multivariate="factor")
        assert model.settings_.multivariate == "independent"

    def test_of_more_columns_than_regressors(self):
        wide = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 1100))).add_prefix("c")
        assert fit(wide).settings_.multivariate == "independent"
        with pytest.raises(ValueError, match="at most 1024 targets and exogenous columns; got"):
            fit(wide, multivariate="factor")

    def test_needs_a_linear_path(self):
        with pytest.raises(ValueError, match="needs a linear path"):
            fit(autoregression(0.5), multivariate="factor", linear_path=False, network=True)


class TestWithANetwork:
    @pytest.fixture(scope="class")
    def model(self):
        changes = {"network": True, "max_epochs": 2, "hidden_size": 8, "horizon": 3}
        return fit(autoregression(0.5), multivariate="factor", **changes)

    def test_parts_add_up(self, model):
        parts = model.contributions()
        total = parts.sum(axis=1).unstack("target")[list("abcd")]
        np.testing.assert_allclose(total, model.predict(3), rtol=1e-4, atol=1e-5)

    def test_update_is_the_filter_over_all_rows(self, model, tmp_path):
        frame = autoregression(0.5)
        later = autoregression(0.5, seed=3)[:9]
        later.index += len(frame)
        file = tmp_path / "factors"
        model.save(file)
        other = load(file)
        assert other.settings_ == model.settings_
        assert other.linear_path_ == model.linear_path_
        np.testing.assert_allclose(
            other.update(later).predict(3),
            model.predict(pd.concat([frame, later]), h=3),
            rtol=1e-4,
            atol=1e-5,
        )

    def test_known_paths_change_nothing(self, monkeypatch):
        """Training looks the linear path up, or computes it where memory is short."""
        changes = {"network": True, "max_epochs": 2, "hidden_size": 8, "multivariate": "factor"}
        frame = autoregression(0.5)
        known = fit(frame, **changes)
        monkeypatch.setattr("tsrnn.forecasters._factors.MOST_FORECASTS", 0)
        computed = fit(frame, **changes)
        np.testing.assert_allclose(known.predict(2), computed.predict(2), rtol=1e-4)

    def test_side_by_side(self):
        changes = {"network": True, "max_epochs": 2, "hidden_size": 8, "multivariate": "factor"}
        frame = autoregression(0.5, rows=300)
        model = fit(frame, n_estimators=2, **changes)
        assert len(model.network_.networks) == 2
        assert np.isfinite(model.predict(2)).all(axis=None)

    def test_summary_says_it(self, model):
        text = str(model.summary())
        assert f"own past and {model.settings_.n_factors} factors" in text
        assert "Gain by factors" in text


def test_exogenous_columns_and_several_series():
    frames = []
    for seed in range(3):
        frame = autoregression(0.5, rows=250, n=2, seed=seed)
        frame["x"] = np.random.default_rng(seed).normal(size=250)
        frame["b"] += 2 * frame["x"].shift(fill_value=0)
        frames.append(frame.assign(unique_id=f"s{seed}", ds=range(250)))
    panel = pd.concat(frames, ignore_index=True)
    model = fit(panel, target=["a", "b"], multivariate="factor", effects={"x": "none"})
    assert model.predict(2).shape == (6, 4)
