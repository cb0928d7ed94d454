"""Kalman filter of structural models: kernels against the loop in numpy, and laws."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.kernels import kalman_errors, kalman_gains
from tsrnn.kernels._cpu import threads as pool

ALL = slice(None)


def by_model(gain, n_models):
    """Gains (T, d, J) of tiles."""
    return gain.transpose(1, 2, 0, 3).reshape(*gain.shape[1:3], -1)[..., :n_models]


def transition(damping, memory, size):
    A = np.eye(size)
    A[0, 1] = A[1, 1] = damping
    A[2, 2] = memory
    return A


def gains_in_numpy(noise, damping, memory, innovation, moves, effects, covariance):
    """Gains, variances and last covariances, model by model, with explicit matrices."""
    T, (d, J) = len(moves), innovation.shape
    gain, variance, last = np.empty((T, d, J)), np.empty((T, J)), covariance.copy()
    for j in range(J):
        A, P = transition(damping[j], memory[j], d), covariance[..., j]
        for t in range(T):
            for _ in range(moves[t]):
                P = A @ P @ A.T + np.diag(innovation[:, j])
            z = np.isin(np.arange(d), [0, 2, 3 + effects[t]]).astype(float)
            variance[t, j] = z @ P @ z + noise[j]
            gain[t, :, j] = P @ z / variance[t, j]
            P = P - np.outer(gain[t, :, j], P @ z)
        last[..., j] = P
    return gain, variance, last


def errors_in_numpy(values, damping, memory, moves, effects, gain, weight):
    """Weighted errors (L, T, J) and states (L, T, d, J), row by row."""
    state, errors, states = np.zeros((gain.shape[1], len(values), gain.shape[2])), [], []
    for t in range(values.shape[1]):
        for _ in range(moves[t]):
            slope = damping * state[1]
            state[0], state[1], state[2] = state[0] + slope, slope, memory * state[2]
        error = values[:, t, None] - (state[0] + state[2] + state[3 + effects[t]])
        error = np.where(np.isnan(error), 0.0, error)
        errors.append(weight[t] * error)
        state = state + gain[t][:, None] * error
        states.append(state.swapaxes(0, 1).copy())
    return np.stack(errors, 1), np.stack(states, 1)


class Problem:
    """Random models, series and observed rows; the same for the same arguments."""

    def __init__(self, n_rows, period, n_series=3, n_models=11, missing=0.2, seed=0):
        rng = np.random.default_rng(seed)
        d = 3 + period
        self.noise = rng.uniform(0.01, 1, n_models)
        self.damping, self.memory = rng.uniform(0.5, 1, n_models), rng.uniform(-0.9, 0.99, n_models)
        self.innovation = rng.uniform(0, 1, (d, n_models)) * (rng.random((d, n_models)) < 0.5)
        rows = rng.geometric(1 - missing, n_rows).cumsum()
        self.moves, self.effects = np.diff(rows, prepend=rows[:1]), rows % period
        first = rng.uniform(0, 30, (d, n_models))
        first[0] = 1e4
        self.covariance = np.eye(d)[..., None] * first
        self.values = rng.standard_normal((n_series, n_rows)).cumsum(1)
        self.lengths = rng.integers(0, n_rows + 1, n_series)
        self.values[np.arange(n_rows) >= self.lengths[:, None]] = np.nan
        self.weight = rng.uniform(0.1, 2, (n_rows, n_models))

    def gains(self, rows=ALL, covariance=None):
        covariance = self.covariance.copy() if covariance is None else covariance
        given = self.noise, self.damping, self.memory, self.innovation
        gain, variance = kalman_gains(*given, self.moves[rows], self.effects[rows], covariance)
        return gain, variance, covariance

    def errors(self, gain, series=ALL, kept=None):
        values = self.values[series]
        kept = np.full(values.shape, -1) if kept is None else kept
        given = self.damping, self.memory, self.moves, self.effects, gain, self.weight
        return kalman_errors(values, *given, kept)


problems = st.builds(
    Problem,
    st.integers(1, 40),
    st.integers(1, 60),
    st.integers(1, 19),
    st.integers(1, 20),
    st.sampled_from([0.0, 0.2, 0.7]),
    st.integers(0, 99),
)


@settings(max_examples=60, deadline=None)
@given(problem=problems)
def test_gains_are_those_of_explicit_matrices(problem):
    p = problem
    given = p.noise, p.damping, p.memory, p.innovation, p.moves, p.effects, p.covariance
    names = "gain", "variance", "covariance"
    results = (by_model(p.gains()[0], len(p.noise)), *p.gains()[1:])
    for name, ours, expected in zip(names, results, gains_in_numpy(*given), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-9, err_msg=name)


@settings(max_examples=60, deadline=None)
@given(problem=problems)
def test_errors_and_states_are_those_of_the_loop_in_numpy(problem):
    p = problem
    gain = p.gains()[0]
    rng = np.random.default_rng(p.values.size)
    kept = np.full(p.values.shape, -1)
    chosen = rng.permutation(p.values.size)[: p.values.size // 3]
    kept.flat[chosen] = np.arange(len(chosen))
    error, state = p.errors(gain, kept=kept)
    gain = by_model(gain, len(p.noise))
    given = p.damping, p.memory, p.moves, p.effects, gain, p.weight
    expected, states = errors_in_numpy(p.values, *given)
    np.testing.assert_allclose(error, expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(
        state, states.reshape(-1, *state.shape[1:])[chosen], rtol=1e-11, atol=1e-11
    )
    assert (error[np.isnan(p.values)] == 0).all()


@pytest.mark.parametrize("period", [1, 12])
def test_gains_of_two_parts_are_those_of_the_whole(period):
    p = Problem(30, period)
    gain, variance, covariance = p.gains()
    gain_1, variance_1, between = p.gains(slice(0, 13))
    gain_2, variance_2, end = p.gains(slice(13, 30), between)
    np.testing.assert_array_equal(np.concatenate([gain_1, gain_2], 1), gain)
    np.testing.assert_array_equal(np.concatenate([variance_1, variance_2]), variance)
    np.testing.assert_array_equal(end, covariance)


@settings(max_examples=30, deadline=None)
@given(problem=problems, data=st.data())
def test_covariances_at_stops_are_those_of_the_rows_before(problem, data):
    p, n_rows = problem, len(problem.moves)
    rows = data.draw(st.sets(st.integers(0, n_rows - 1)))
    covariance, kept = p.covariance.copy(), {}

    def keep(row):
        kept[row] = covariance.copy()

    given = p.noise, p.damping, p.memory, p.innovation, p.moves, p.effects
    stops = {row: functools.partial(keep, row) for row in rows}
    gain, variance = kalman_gains(*given, covariance, stops)
    assert list(kept) == sorted(rows)
    for row in rows:
        np.testing.assert_array_equal(kept[row], p.gains(slice(0, row + 1))[2])
    expected = p.gains()
    np.testing.assert_array_equal(by_model(gain, len(p.noise)), by_model(expected[0], len(p.noise)))
    np.testing.assert_array_equal(variance, expected[1])
    np.testing.assert_array_equal(covariance, expected[2])


@pytest.mark.parametrize("row", [-1, 5, 600])
def test_stops_beyond_the_rows_are_refused(row):
    p = Problem(5, 4)
    given = p.noise, p.damping, p.memory, p.innovation, p.moves, p.effects, p.covariance
    with pytest.raises(ValueError, match=rf"stops must be numbers of the 5 rows.*; got \[{row}\]"):
        kalman_gains(*given, {row: print})


def test_a_series_has_the_bits_that_it_has_alone(threads, monkeypatch):
    monkeypatch.setattr(pool, "_WORK_PER_THREAD", 1)
    p = Problem(30, 4, n_series=23, n_models=37)
    gain, ends = p.gains()[0], np.full((23, 30), -1)
    ends[:, -1] = np.arange(23)
    for count in (1, 2, 5):
        threads(count)
        np.testing.assert_array_equal(p.gains()[0], gain)
        error, state = p.errors(gain, kept=ends)
        for i in range(23):
            alone, its_state = p.errors(gain, slice(i, i + 1), ends[:1])
            np.testing.assert_array_equal(alone[0], error[i])
            np.testing.assert_array_equal(its_state[0], state[i])


def test_tables_of_more_rows_serve_shorter_series():
    p = Problem(30, 4)
    gain = p.gains()[0]
    error, _ = p.errors(gain)
    p.values, p.moves, p.effects = p.values[:, :17].copy(), p.moves[:17], p.effects[:17]
    np.testing.assert_array_equal(p.errors(gain)[0], error[:, :17])


def test_covariances_stay_symmetric_and_shrink_to_what_is_known():
    p = Problem(40, 5, missing=0.0)
    p.innovation[:], p.damping[:] = 0, 1
    _, variance, covariance = p.gains()
    np.testing.assert_array_equal(covariance, covariance.swapaxes(0, 1))
    assert (np.linalg.eigvalsh(covariance.transpose(2, 0, 1)) > -1e-9).all()
    assert (variance[-1] < 20 * p.noise).all()


def test_wrong_arrays_are_refused():
    p = Problem(6, 3)
    kept = np.full(p.values.shape, -1)
    models, tables = (p.damping, p.memory), (p.gains()[0], p.weight)
    given = (*models, p.moves, p.effects, *tables)
    with pytest.raises(ValueError, match=r"kept must be .* of shape \(3, 6\); got int64 of"):
        kalman_errors(p.values, *given, kept[:2])
    with pytest.raises(ValueError, match=r"values must be a contiguous array of float64"):
        kalman_errors(np.asfortranarray(p.values), *given, kept)
    with pytest.raises(ValueError, match=r"moves must be a contiguous array of int64"):
        kalman_errors(p.values, *models, p.moves * 1.0, p.effects, *tables, kept)
    effects = np.array([1, 2, 1, 1, 2, 4])
    with pytest.raises(ValueError, match=r"effects must lie between 0 and 2, .*; got 1 to 4"):
        kalman_errors(p.values, *models, p.moves, effects, *tables, kept)
    with pytest.raises(ValueError, match=r"gain must be .* of shape \(2, 6, 6, 8\); got .*5, 6, 8"):
        kalman_errors(p.values, *given[:4], tables[0][:, :5].copy(), p.weight, kept)
    with pytest.raises(ValueError, match=r"at most 128 fields, .*; got 129 fields\. Give a"):
        Problem(2, 126).gains()
