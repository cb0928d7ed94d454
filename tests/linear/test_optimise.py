"""The optimiser, and small systems of equations, on problems whose answer is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.linear._optimise import (
    Evaluation,
    Objective,
    maximise,
    maximise_together,
    solve_positive,
)


def gaussian(series):
    """Return the likelihood of a mean and the logarithm of a standard deviation."""

    def evaluate(params, units, exact):
        mean, log_scale = params.T
        with np.errstate(all="ignore"):
            z = (series[units] - mean[:, None]) / np.exp(log_scale)[:, None]
            first, second, n = z.sum(1), (z**2).sum(1), series.shape[1]
            gradient = np.stack([first / np.exp(log_scale), second - n], 1)
            curvature = np.empty((len(units), 2, 2))
            curvature[:, 0, 0] = n / np.exp(2 * log_scale)
            curvature[:, 1, 1] = 2 * second if exact else 2 * n
            off = 2 * first / np.exp(log_scale) if exact else 0.0
            curvature[:, 0, 1] = curvature[:, 1, 0] = off
            return Evaluation(-second / 2 - n * log_scale, gradient, curvature)

    return evaluate


@pytest.fixture
def series():
    return np.random.default_rng(0).normal(1.0, 3.0, size=(40, 100))


def fit(series, **options):
    return maximise(gaussian(series), np.tile([5.0, 3.0], (len(series), 1)), **options)


class TestMaximise:
    @pytest.mark.parametrize("scoring", [0, 20])
    def test_finds_a_closed_form(self, series, scoring):
        found = fit(series, scoring=scoring)
        assert found.converged.all()
        np.testing.assert_allclose(found.params[:, 0], series.mean(1), rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(np.exp(found.params[:, 1]), series.std(1), rtol=1e-11)
        assert (found.decrement < 1e-14).all()

    def test_holds_bounds_and_says_so(self, series):
        found = fit(series, lower=np.array([1.0, -np.inf]))
        below = series.mean(1) < 1
        assert found.converged.all()
        np.testing.assert_array_equal(found.at_bound[:, 0], below)
        np.testing.assert_allclose(found.params[:, 0], np.maximum(series.mean(1), 1), rtol=1e-10)
        spread = np.sqrt(((series - found.params[:, :1]) ** 2).mean(1))
        np.testing.assert_allclose(np.exp(found.params[:, 1]), spread, rtol=1e-10)

    @pytest.mark.parametrize("evaluations", [0, 3])
    def test_units_without_curvature_do_not_converge(self, series, evaluations):
        calls = []

        def evaluate(params, units, exact):
            result = gaussian(series)(params, units, exact)
            calls.append(units)
            if len(calls) > evaluations:
                result.curvature[units < 5] = np.nan
            return result

        ends = maximise(evaluate, np.tile([5.0, 3.0], (len(series), 1)))
        np.testing.assert_array_equal(ends.converged, np.arange(len(series)) >= 5)

    def test_units_do_not_know_of_each_other(self, series):
        with_bad = series.copy()
        with_bad[3] = np.nan
        found, alone = fit(with_bad), fit(series)
        good = np.arange(len(series)) != 3
        np.testing.assert_array_equal(found.params[good], alone.params[good])
        assert not found.converged[3]
        assert found.value[3] == -np.inf

    def test_steps_back_from_what_is_not_admissible(self):
        def evaluate(params, units, exact):
            x = params[:, 0]  # log x - x: Newton's first steps from 5 lead below zero
            with np.errstate(invalid="ignore", divide="ignore"):
                value = np.where(x > 0, np.log(x) - x, np.nan)
                return Evaluation(value, (1 / x - 1)[:, None], (1 / x**2)[:, None, None])

        found = maximise(evaluate, np.array([[5.0], [0.01], [-1.0]]))
        assert found.converged.tolist() == [True, True, False]
        np.testing.assert_allclose(found.params[:2, 0], 1.0, rtol=1e-9)

    def test_leaves_a_saddle(self):
        def evaluate(params, units, exact):
            x, y = params.T  # maxima at x = +-1, a saddle at 0
            value = x**2 - x**4 / 2 - y**2
            gradient = np.stack([2 * x - 2 * x**3, -2 * y], 1)
            curvature = np.zeros((len(x), 2, 2))
            curvature[:, 0, 0], curvature[:, 1, 1] = 6 * x**2 - 2, 2.0
            return Evaluation(value, gradient, curvature)

        found = maximise(evaluate, np.array([[0.01, 1.0], [-0.01, -2.0]]), scoring=0)
        np.testing.assert_allclose(found.params, [[1, 0], [-1, 0]], atol=1e-8)

    def test_says_what_has_not_converged(self, series):
        found = fit(series, max_iter=2)
        assert not found.converged.any()
        assert (found.iterations == 2).all()

    def test_curvature_of_each_stage_is_asked_for(self, series):
        stages = []
        evaluate = gaussian(series)

        def noted(params, units, exact):
            stages.append(exact)
            return evaluate(params, units, exact)

        maximise(noted, np.array([[5.0, 3.0]]))
        assert stages[0] is False
        assert stages[-1] is True


class TestTogether:
    def objective(self, series, **options):
        return Objective(gaussian(series), np.tile([5.0, 3.0], (len(series), 1)), **options)

    @pytest.mark.parametrize("at_once", [None, 1, 7])
    def test_each_is_as_by_itself(self, series, at_once):
        first, second = maximise_together(
            [
                self.objective(series[:25], at_once=at_once),
                self.objective(series[25:], lower=np.array([1.0, -np.inf]), at_once=at_once),
            ]
        )
        bounded = fit(series[25:], lower=np.array([1.0, -np.inf]))
        for ours, alone in ((first, fit(series[:25])), (second, bounded)):
            for part, expected in zip(ours, alone, strict=True):
                np.testing.assert_allclose(part, expected, rtol=1e-12, atol=1e-9)

    def test_units_are_numbered_one_after_the_other_and_given_up(self, series):
        seen = []

        def give_up(units, value, decrement):
            seen.append(units)
            assert len(units) == len(value) == len(decrement)
            return (units == 3) | (units == 27)

        parts = maximise_together(
            [self.objective(series[:25]), self.objective(series[25:])], give_up=give_up
        )
        np.testing.assert_array_equal(seen[0], np.arange(40))
        assert not any(np.isin([3, 27], units).any() for units in seen[1:])
        converged = np.concatenate([part.converged for part in parts])
        np.testing.assert_array_equal(np.flatnonzero(~converged), [3, 27])
        assert np.isfinite(np.concatenate([part.value for part in parts])).all()

    def test_units_that_join_later(self, series):
        joins, seen = np.repeat([0, 2, 50], [20, 10, 10]), []

        def give_up(units, value, decrement):
            seen.append(np.isinf(decrement).sum())
            return np.isinf(decrement) & (units % 2 == 0)

        (best,) = maximise_together([self.objective(series, joins=joins)], give_up=give_up)
        assert seen[:3] == [0, 10, 0]
        expected = np.where(np.arange(40) < 20, True, np.arange(40) % 2 == 1)
        np.testing.assert_array_equal(best.converged, expected)
        np.testing.assert_allclose(best.params[expected], fit(series).params[expected])
        assert np.isneginf(best.value[~expected]).all()


def draw(n, k, seed):
    generator = np.random.default_rng(seed)
    roots = generator.normal(size=(n, k, k + 2))
    matrices = roots @ roots.swapaxes(1, 2) / k
    return matrices, generator.normal(size=(n, k))


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 60), k=st.integers(1, 9), seed=st.integers(0, 5))
def test_solutions_of_positive_systems(n, k, seed):
    matrices, right = draw(n, k, seed)
    before = matrices.copy()
    found, failed = solve_positive(matrices, right)
    np.testing.assert_array_equal(matrices, before)
    good = np.linalg.cond(matrices) < 1e6
    assert not failed[good].any()
    expected = np.linalg.solve(matrices, right[..., None])[..., 0]
    np.testing.assert_allclose(found[good], expected[good], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("n", [3, 60])
def test_what_is_not_positive_definite_is_told_and_alone(n):
    matrices, right = draw(n, 4, 0)
    alone = solve_positive(matrices, right)[0]
    matrices[0, 3, 3] = -1.0
    matrices[1] = 1.0
    matrices[2] = np.nan
    found, failed = solve_positive(matrices, right)
    np.testing.assert_array_equal(failed, np.arange(n) < 3)
    np.testing.assert_array_equal(found[3:], alone[3:])
