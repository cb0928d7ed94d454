"""Simulated regression problems against their equations, and streams against samples."""

import doctest
import importlib
import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import toeplitz
from statsmodels.tsa.arima_process import ArmaProcess

from tsrnn.datasets import (
    AddingProblem,
    HolderProcess,
    NoisePadded,
    RegressionProcess,
    RNNProcess,
    adding_problem,
    arma_inputs,
)
from tsrnn.interpret import jordan_block, recurrence_features

PROCESSES = {
    "adding": AddingProblem(9),
    "noisy adding": AddingProblem(6, noise_std=0.3),
    "padded": NoisePadded(AddingProblem(5, noise_std=0.2), 8),
    "padded twice": NoisePadded(NoisePadded(AddingProblem(5), 6), 8),
    "holder": HolderProcess(1.5, 2, 3, random_state=0),
    "readout": RNNProcess.standard_normal(5, 7, n_inputs=2, n_outputs=3, random_state=0),
    "one output": RNNProcess.standard_normal(5, 7, n_outputs=1, random_state=1),
    "state": RNNProcess.noisy_state(6, 5, random_state=0),
    "jordan": RNNProcess.noisy_jordan_state(8, 5, random_state=0),
}
each_process = pytest.mark.parametrize("process", PROCESSES.values(), ids=PROCESSES)


def shape_of(n, process):
    return (n,) if process.n_outputs == 1 else (n, process.n_outputs)


@each_process
@settings(deadline=None, max_examples=8)
@given(n=st.integers(1, 200), size=st.integers(1, 150), seed=st.integers(0, 2**64))
def test_batches_of_any_size_begin_with_the_sample(process, n, size, seed):
    X, z = process.sample(n, seed)
    assert X.shape == (n, process.length, process.n_inputs)
    assert z.shape == shape_of(n, process)
    assert X.dtype == z.dtype == np.float64
    batches = list(itertools.islice(process.stream(size, seed), -(-n // size)))
    assert all(len(x) == len(response) == size for x, response in batches)
    np.testing.assert_array_equal(np.concatenate([x for x, _ in batches])[:n], X)
    np.testing.assert_array_equal(np.concatenate([r for _, r in batches])[:n], z)
    np.testing.assert_array_equal(process.inputs(n, seed), X)


@pytest.mark.parametrize("name", ["adding", "padded twice"])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_without_errors_the_response_is_the_mean(name, n):
    X, z = PROCESSES[name].sample(n, 0)
    np.testing.assert_array_equal(PROCESSES[name].mean(X), z)


@each_process
def test_the_mean_of_a_sequence_does_not_depend_on_those_around_it(process):
    X = process.inputs(150, 2)
    order = np.random.default_rng(0).permutation(150)[:70]
    means = process.mean(X)
    assert means.shape == shape_of(150, process)
    np.testing.assert_allclose(process.mean(X[order]), means[order], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(process.mean(X[:1].tolist()), means[:1], rtol=1e-9, atol=1e-12)
    assert process.mean(X[:0]).shape == shape_of(0, process)


@each_process
def test_errors_are_normal_with_the_standard_deviation_given(process):
    X, z = process.sample(4000, 3)
    errors = (z - process.mean(X)).reshape(4000, -1)
    se = process.noise_std / math.sqrt(4000)
    assert (np.abs(errors.mean(0)) <= 5 * se).all()
    np.testing.assert_allclose(errors.std(0), process.noise_std, rtol=5 / math.sqrt(8000))
    if process.n_outputs > 1:
        correlations = np.corrcoef(errors.T)[np.triu_indices(process.n_outputs, 1)]
        assert np.abs(correlations).max() < 5 / math.sqrt(4000)


def test_samples_of_a_process_are_independent_of_each_other():
    X, z = PROCESSES["holder"].sample(4000, 1)
    errors = z - PROCESSES["holder"].mean(X)
    for series in (X[:, 0, 0], errors):
        for lag in (1, 64):
            assert abs(np.corrcoef(series[lag:], series[:-lag])[0, 1]) < 5 / math.sqrt(4000)
    assert abs(np.corrcoef(X[:, 0, 0], errors)[0, 1]) < 5 / math.sqrt(4000)


def test_inputs_do_not_depend_on_the_errors():
    quiet, noisy = AddingProblem(9), AddingProblem(9, noise_std=1.0)
    np.testing.assert_array_equal(quiet.sample(100, 5)[0], noisy.sample(100, 5)[0])


@each_process
def test_the_seed_decides_and_a_generator_goes_on(process):
    def draw(random_state):
        return process.sample(5, random_state)[0]

    np.testing.assert_array_equal(draw(3), draw(np.int64(3)))
    assert not np.array_equal(draw(3), draw(4))
    assert not np.array_equal(draw(None), draw(None))
    generator, twin = np.random.default_rng(3), np.random.default_rng(3)
    first, second = draw(generator), draw(generator)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(draw(twin), first)
    np.testing.assert_array_equal(draw(twin), second)


@each_process
def test_a_process_does_not_change_and_can_be_pickled(process):
    with pytest.raises(AttributeError, match="a process does not change; make another"):
        process.noise_std = 1.0
    arrays = [value for value in vars(process).values() if isinstance(value, np.ndarray)]
    assert not any(array.flags.writeable for array in arrays)
    copy = pickle.loads(pickle.dumps(process))
    np.testing.assert_array_equal(copy.sample(20, 0)[1], process.sample(20, 0)[1])


def test_batches_can_be_written_to_without_a_trace():
    process = PROCESSES["noisy adding"]
    stream = process.stream(10, 0)
    X, z = next(stream)
    X[:], z[:] = np.nan, np.nan
    np.testing.assert_array_equal(next(stream)[0], process.sample(20, 0)[0][10:])


def test_the_matrices_given_are_copied():
    recurrent = np.eye(2)
    process = RNNProcess(recurrent, np.ones((2, 1)))
    recurrent[:] = 7.0
    np.testing.assert_array_equal(process.recurrent_matrix, np.eye(2))


def states_by_hand(process, sequence):
    """Last state, an entry at a time."""
    W, U, b = process.recurrent_matrix, process.input_matrix, process.bias
    state = [0.0] * len(W)
    for x in sequence:
        state = [
            math.tanh(
                sum(W[i, j] * state[j] for j in range(len(W)))
                + sum(U[i, j] * x[j] for j in range(len(x)))
                + b[i]
            )
            for i in range(len(W))
        ]
    return np.array(state)


@pytest.mark.parametrize("name", ["readout", "one output", "state", "jordan"])
def test_the_mean_of_an_rnn_is_its_recurrence(name):
    process = PROCESSES[name]
    X = process.inputs(3, 0)
    expected = np.array([states_by_hand(process, sequence) for sequence in X])
    if process.readout_matrix is not None:
        expected = expected @ process.readout_matrix.T + process.readout_bias
    np.testing.assert_allclose(
        process.mean(X).reshape(3, -1), expected.reshape(3, -1), rtol=1e-8, atol=1e-10
    )


def assert_normal(values, mean, std):
    """Mean and standard deviation within five standard errors."""
    n = np.size(values)
    assert np.mean(values) == pytest.approx(mean, abs=5 * std / math.sqrt(n))
    assert np.std(values) == pytest.approx(std, rel=5 / math.sqrt(2 * n))


def test_the_simulation_of_section_6_1():
    process = RNNProcess.standard_normal(random_state=0)
    assert (process.length, process.n_inputs, process.n_outputs) == (128, 1, 10)
    assert process.noise_std == 1.0
    shapes = {
        "recurrent_matrix": (128, 128),
        "input_matrix": (128, 1),
        "bias": (128,),
        "readout_matrix": (10, 128),
        "readout_bias": (10,),
    }
    for name, shape in shapes.items():
        assert getattr(process, name).shape == shape
        assert_normal(getattr(process, name), 0.0, 1.0)
    # AR 0.7 and MA 0.3, both added: (1 + 0.3^2 + 2 0.7 0.3) / (1 - 0.7^2).
    assert process.inputs(2000, 0).var() == pytest.approx(1.51 / 0.51, rel=0.05)


def test_its_mean_is_chaotic_as_documented():
    process = RNNProcess.standard_normal(length=40, random_state=0)
    X = process.inputs(20, 0)
    moved = X.copy()
    moved[:, 0] += 1e-10
    state = RNNProcess(process.recurrent_matrix, process.input_matrix, process.bias, length=40)
    assert np.median(np.abs(state.mean(moved) - state.mean(X)).max(1)) > 1


def shared_variance(first, second):
    """Share of the variance of all columns that two arrays have in common."""
    first, second = first - first.mean(0), second - second.mean(0)
    return (first * second).mean(0).sum() / (first**2).mean(0).sum()


def test_little_of_it_can_be_learned_unlike_that_of_supplement_a():
    chaotic = RNNProcess.standard_normal(random_state=0)
    state = RNNProcess(chaotic.recurrent_matrix, chaotic.input_matrix, chaotic.bias)
    X = state.inputs(256, 0)
    rounded = X + 1e-16 * np.random.default_rng(0).standard_normal(X.shape)
    other = state.inputs(256, 1)
    other[:, -10:] = X[:, -10:]
    for Y in (rounded, other):
        assert 0.01 < shared_variance(state.mean(X), state.mean(Y)) < 0.12
    calm = RNNProcess.noisy_state(random_state=0)
    for Y in (rounded, other):
        assert shared_variance(calm.mean(X), calm.mean(Y)) > 0.99


def test_the_first_simulation_of_supplement_a():
    process = RNNProcess.noisy_state(random_state=0)
    assert (process.length, process.n_inputs, process.n_outputs) == (128, 1, 128)
    assert_normal(process.recurrent_matrix, 0.0, 0.1)
    assert_normal(process.input_matrix, 2.0, 2.0)
    assert not process.bias.any()
    assert process.noise_std == 0.01
    assert process.readout_matrix is None
    assert set(recurrence_features(process.recurrent_matrix)["type"]) == {"R-1", "C-1"}


@pytest.mark.parametrize("n_waves", [None, 0, 5, 32])
def test_the_second_simulation_of_supplement_a(n_waves):
    process = RNNProcess.noisy_jordan_state(n_waves=n_waves, random_state=0)
    features = recurrence_features(process.recurrent_matrix)
    waves = 16 if n_waves is None else n_waves
    assert (features["type"] == "C-2").sum() == waves
    assert (features["type"] == "R-4").sum() == len(features) - waves == 32 - waves
    assert features["modulus"].between(0.5, 0.95).all()
    angles = features.loc[features["type"] == "C-2", "angle"]
    assert angles.between(math.pi / 8, 7 * math.pi / 8).all()
    assert_normal(process.input_matrix, 2.0, 2.0)


def test_its_blocks_are_those_of_the_real_jordan_form():
    process = RNNProcess.noisy_jordan_state(
        8, n_waves=1, moduli=(0.6, 0.6), angles=(1.0, 1.0), random_state=0
    )
    matrix = process.recurrent_matrix
    angle = 0.0 if matrix[0, 0] > 0 else math.pi
    np.testing.assert_allclose(matrix[:4, :4], jordan_block(0.6, angle, 4))
    np.testing.assert_allclose(matrix[4:, 4:], jordan_block(0.6, 1.0, 2))
    assert not matrix[:4, 4:].any()
    assert not matrix[4:, :4].any()


def test_real_eigenvalues_have_both_signs():
    process = RNNProcess.noisy_jordan_state(n_waves=0, random_state=0)
    assert 6 <= (np.diag(process.recurrent_matrix)[::4] > 0).sum() <= 26


def test_an_rnn_takes_inputs_of_its_own():
    def uniform(n, length, n_inputs, random_state):
        return random_state.random((n, length, n_inputs))

    process = RNNProcess([[0.5]], [[1.0, 2.0]], length=4, draw_inputs=uniform)
    X = process.inputs(500, 0)
    assert X.shape == (500, 4, 2)
    assert 0 <= X.min() < 0.01 < 0.99 < X.max() < 1
    wrong = RNNProcess([[0.5]], [[1.0]], length=4, draw_inputs=lambda n, *_, **__: np.zeros(n))
    with pytest.raises(ValueError, match=r"inputs drawn must be of shape .64, 4, 1.*got .64,."):
        wrong.sample(2)


ARMA = {
    "paper": ([0.7], [0.3]),
    "minus": ([0.7], [-0.3]),
    "white": ([], []),
    "ma": ([], [0.5, -0.8]),
    "ar": ([0.9, -0.5], []),
    "p < q": ([-0.4], [0.2, 0.3, 0.9]),
    "p > q": ([0.3, 0.2, -0.6], [0.5]),
    "common factor": ([0.5], [-0.5]),
    "persistent": ([0.98], [0.4]),
}


@pytest.mark.parametrize(("ar", "ma"), ARMA.values(), ids=ARMA)
def test_arma_inputs_have_the_autocovariances_of_statsmodels_from_the_first_step(ar, ma):
    n, length = 40_000, 6
    y = arma_inputs(n, length, ar, ma, innovation_std=2.0, random_state=0)[..., 0]
    gamma = 4.0 * ArmaProcess.from_coeffs(ar, ma).acovf(length)
    expected = toeplitz(gamma)
    # Normal moments: var(y_s y_t) = gamma_0^2 + gamma_{s-t}^2.
    se = np.sqrt((gamma[0] ** 2 + expected**2) / n)
    assert (np.abs(y.T @ y / n - expected) <= 5 * se).all()
    assert (np.abs(y.mean(0)) <= 5 * np.sqrt(gamma[0] / n)).all()


def test_arma_inputs_solve_their_equation():
    ar, ma = np.array([0.5, 0.2]), np.array([0.4, 0.3, -0.2])
    y = arma_inputs(1, 400, ar, ma, random_state=0)[0, :, 0]
    # Innovations are found back but for a start that dies out.
    e = np.zeros(400)
    for t in range(3, 400):
        e[t] = y[t] - ar @ y[t - 2 : t][::-1] - ma @ e[t - 3 : t][::-1]
    drawn = np.random.default_rng(0).standard_normal(3 + 400)[3:]
    np.testing.assert_allclose(e[200:], drawn[200:], atol=1e-8)


@settings(deadline=None, max_examples=30)
@given(
    n=st.integers(1, 8),
    more=st.integers(0, 5),
    length=st.integers(1, 12),
    n_inputs=st.integers(1, 3),
    phi=st.floats(-0.99, 0.99),
    ma=st.lists(st.floats(-3, 3), max_size=3),
)
def test_the_first_rows_of_a_seed_are_the_same(n, more, length, n_inputs, phi, ma):
    few = arma_inputs(n, length, phi, ma, n_inputs=n_inputs, random_state=1)
    many = arma_inputs(n + more, length, phi, ma, n_inputs=n_inputs, random_state=1)
    assert few.shape == (n, length, n_inputs)
    np.testing.assert_allclose(many[:n], few, rtol=1e-12, atol=1e-12)


def test_sequences_of_a_sample_are_independent():
    y = arma_inputs(5000, 2, n_inputs=2, random_state=0).reshape(5000, -1)
    correlations = np.corrcoef(y.T)  # t = 1, 2 of each of two sequences
    assert abs(correlations[0, 1]) < 5 / math.sqrt(5000)
    assert correlations[0, 2] > 0.7


def test_padding_leaves_the_process_as_it_is():
    inner = RNNProcess.noisy_state(4, 6, n_inputs=2, random_state=0)
    padded = NoisePadded(inner, 30, padding_std=2.0)
    X, z = padded.sample(300, 1)
    inner_X, inner_z = inner.sample(300, 1)
    assert (padded.length, padded.n_inputs, padded.n_outputs) == (30, 2, 4)
    np.testing.assert_array_equal(X[:, :6], inner_X)
    np.testing.assert_array_equal(z, inner_z)
    assert_normal(X[:, 6:], 0.0, 2.0)
    assert len(np.unique(X[:, 6:])) == X[:, 6:].size
    other = np.concatenate([X[:, :6], np.zeros_like(X[:, 6:])], axis=1)
    np.testing.assert_array_equal(padded.mean(other), inner.mean(inner_X))


def test_a_length_of_the_process_pads_nothing():
    inner = AddingProblem(5)
    np.testing.assert_array_equal(NoisePadded(inner, 5).inputs(3, 0), inner.inputs(3, 0))


def test_the_adding_process_is_the_adding_problem():
    X, y = adding_problem(500, 11, 0)
    np.testing.assert_array_equal(AddingProblem(11).mean(X), y)
    X, z = AddingProblem(11).sample(20_000, 0)
    assert (X[:, :5, 1].sum(1) == 1).all()
    assert (X[:, 5:, 1].sum(1) == 1).all()
    assert z.var() == pytest.approx(1 / 6, abs=0.01)


def test_the_mean_is_the_series():
    process = HolderProcess(1.3, 2, 3, n_terms=10, random_state=3)
    X = process.inputs(40, 0)
    expected = [
        sum(
            process.amplitudes[j]
            * math.cos(2 * math.pi * 2**j * float(process.directions[j] @ x) + process.phases[j])
            for j in range(10)
        )
        for x in X.reshape(40, 6)
    ]
    np.testing.assert_allclose(process.mean(X), expected, atol=1e-12 * process.sup_bound)
    assert set(np.unique(process.directions)) == {-1.0, 1.0}


TAU = 2 * math.pi
NORMS_OF_ONE_WAVE = [
    (1.0, 1, 1 + TAU),
    (1.0, 4, 1 + 2 * TAU),
    (2.0, 1, 1 + TAU + TAU**2),
    (2.0, 2, 1 + 2 * TAU + 2 * TAU**2 * math.sqrt(2)),
    # With two coordinates there are three derivatives of order 2.
    (3.0, 2, 1 + 2 * TAU + 3 * TAU**2 + 3 * TAU**3 * math.sqrt(2)),
]


@pytest.mark.parametrize(("beta", "dimension", "norm"), NORMS_OF_ONE_WAVE)
def test_the_bound_is_the_norm_of_a_single_wave(beta, dimension, norm):
    process = HolderProcess(beta, 1, dimension, U=3.0, n_terms=1, random_state=0)
    assert process.holder_norm == 3.0
    assert process.amplitudes[0] == pytest.approx(3.0 / norm, rel=1e-12)


def pairs_of_points(dimension, n=40_000):
    """Points of the cube, and others at distances of all scales, in all and in the worst ways."""
    generator = np.random.default_rng(0)
    x = generator.random((n, dimension))
    step = generator.standard_normal((n, dimension))
    diagonal = generator.choice([-1.0, 1.0], (n, dimension))
    step[::2] = diagonal[::2]
    step *= (10 ** generator.uniform(-5, 0, n) / np.linalg.norm(step, axis=1))[:, None]
    y = np.clip(x + step, 0, 1)
    return x, y


def hoelder_quotient(function, omega, dimension):
    x, y = pairs_of_points(dimension)
    return (np.abs(function(x) - function(y)) / np.linalg.norm(x - y, axis=1) ** omega).max()


@pytest.mark.parametrize("beta", [0.3, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("dimension", [1, 3])
def test_a_rough_function_stays_below_its_norm(beta, dimension):
    process = HolderProcess(beta, 1, dimension, U=2.0, random_state=1)

    def f(x):
        return process.mean(x[:, :, None])

    found = np.abs(f(pairs_of_points(dimension)[0])).max() + hoelder_quotient(f, beta, dimension)
    assert 0.1 * process.holder_norm < found <= process.holder_norm


@pytest.mark.parametrize("beta", [1.4, 2.0])
@pytest.mark.parametrize("dimension", [1, 2])
def test_a_differentiable_function_stays_below_its_norm(beta, dimension):
    process = HolderProcess(beta, dimension, 1, U=2.0, n_terms=8, random_state=1)

    def f(x):
        return process.mean(x[:, None, :])

    def derivative(i):
        step = 1e-6 * np.eye(dimension)[i]
        return lambda x: (f(x + step) - f(x - step)) / 2e-6

    x, _ = pairs_of_points(dimension)
    found = np.abs(f(x)).max()
    for i in range(dimension):
        found += np.abs(derivative(i)(x)).max()
        found += hoelder_quotient(derivative(i), beta - 1, dimension)
    assert 0.05 * process.holder_norm < found <= 1.001 * process.holder_norm


@pytest.mark.few("0-2.0", "2-1.0")
@pytest.mark.parametrize("beta", [0.3, 0.5, 0.9, 1.0, 1.5, 2.0, 2.5])
@pytest.mark.parametrize("coordinate", [0, 2])
def test_differences_along_a_coordinate_fall_with_the_power_beta(beta, coordinate):
    process = HolderProcess(beta, 1, 3, n_terms=20, random_state=2)
    x = np.random.default_rng(0).random((4000, 3))

    def size(m, order=5):
        step = 2.0**-m / 3
        total = np.zeros(4000)
        for i in range(order + 1):
            moved = x.copy()
            moved[:, coordinate] += i * step
            total += (-1) ** i * math.comb(order, i) * process.mean(moved[:, :, None])
        # Weights of the waves at this scale, where beta is a whole number.
        return math.sqrt((total**2).mean()) * ((m + 1) ** 2 if beta % 1 == 0 else 1)

    slope = np.polyfit(range(5, 11), [math.log2(size(m)) for m in range(5, 11)], 1)[0]
    assert -slope == pytest.approx(beta, abs=0.1)


@pytest.mark.parametrize("beta", [0.7, 1.0, 1.6])
def test_the_norm_does_not_grow_without_bound_with_the_terms(beta):
    first = [HolderProcess(beta, 1, 2, n_terms=n, random_state=0).amplitudes[0] for n in (12, 30)]
    assert first[1] == pytest.approx(first[0], rel=0.05)


@pytest.mark.parametrize("beta", [0.5, 1.0, 1.8])
def test_the_signal_is_known(beta):
    process = HolderProcess(beta, 2, 4, random_state=0)
    X = process.inputs(20_000, 0)
    f = process.mean(X)
    assert X.min() >= 0
    assert X.max() < 1
    assert f.mean() == pytest.approx(0.0, abs=5 * process.signal_std / math.sqrt(20_000))
    assert f.std() == pytest.approx(process.signal_std, rel=0.03)
    assert 0.5 * process.sup_bound < np.abs(f).max() <= process.sup_bound
    assert process.sup_bound <= process.holder_norm
    assert process.noise_std == process.signal_std


def test_a_function_is_scaled_by_its_norm_and_not_by_the_noise():
    one, ten = (HolderProcess(0.5, 1, 2, U=u, noise_std=0.1, random_state=0) for u in (1, 10))
    X = one.inputs(10, 0)
    np.testing.assert_allclose(ten.mean(X), 10 * one.mean(X))
    assert one.noise_std == ten.noise_std == 0.1


def test_the_signal_printed_in_the_documentation():
    rows = [line.split() for line in HolderProcess.__doc__.splitlines()]
    printed = [row for row in rows if len(row) == 4 and row[0] in ("0.5", "1", "1.5", "2")]
    assert len(printed) == 4
    for beta, *values in printed:
        actual = [HolderProcess(float(beta), 1, d).signal_std for d in (1, 4, 16)]
        np.testing.assert_allclose(actual, [float(value) for value in values], rtol=0.05)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((4, 9)), r"X must be of shape \(n, 9, 2\).*got \(4, 9\)"),
        (np.zeros((4, 2, 9)), r"X must be of shape \(n, 9, 2\).*got \(4, 2, 9\)"),
        (np.full((1, 9, 2), np.nan), r"X must be finite; got nan at \(0, 0, 0\)"),
        (np.full((1, 9, 2), "a"), "X must hold real numbers; got an array of type <U1"),
        (np.zeros((1, 9, 2), complex), "X must hold real numbers"),
    ],
)
def test_inputs_that_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        PROCESSES["adding"].mean(X)


EYE = np.eye(2)


@pytest.mark.parametrize(
    ("error", "call", "message"),
    [
        (TypeError, lambda: RegressionProcess(3, 1), "abstract"),
        (ValueError, lambda: AddingProblem(5).sample(0), "n must be an integer of at least 1"),
        (ValueError, lambda: AddingProblem(5).inputs(True), "n must be an integer.*got True"),
        (ValueError, lambda: AddingProblem(5).stream(2.0), r"batch_size must be.*got 2\.0"),
        (ValueError, lambda: AddingProblem(5).stream(2, -1), "random_state must not be neg.*-1"),
        (TypeError, lambda: AddingProblem(5).sample(2, 1.5), r"random_state must be .*got 1\.5"),
        (ValueError, lambda: AddingProblem(1), "length must be an integer of at least 2; got 1"),
        (ValueError, lambda: AddingProblem(5, noise_std=-1), "noise_std must be finite and not"),
        (ValueError, lambda: NoisePadded(AddingProblem(5), 4), "length .* at least 5; got 4"),
        (TypeError, lambda: NoisePadded("adding", 4), "process must be a RegressionProcess"),
        (ValueError, lambda: NoisePadded(AddingProblem(5), 6, padding_std=np.nan), "padding_std"),
        (ValueError, lambda: RNNProcess(np.ones((2, 3)), EYE), r"shape \(d, d\); got \(2, 3\)"),
        (ValueError, lambda: RNNProcess(np.ones(4), EYE), r"shape \(d, d\); got \(4,\)"),
        (ValueError, lambda: RNNProcess(EYE, [[1.0]]), r"input.*shape \(2, d_in\); got \(1, 1\)"),
        (ValueError, lambda: RNNProcess(EYE, EYE, [1.0]), r"bias.*shape \(2,\); got \(1,\)"),
        (
            ValueError,
            lambda: RNNProcess(np.full((2, 2), np.inf), EYE),
            "recurrent_matrix must be finite",
        ),
        (ValueError, lambda: RNNProcess(EYE, EYE, None, [1, 2]), r"readout_matrix.*\(d_out, 2\)"),
        (ValueError, lambda: RNNProcess(EYE, EYE, readout_bias=[1]), "needs a readout_matrix"),
        (TypeError, lambda: RNNProcess(EYE, EYE, draw_inputs=3), "draw_inputs must be callable"),
        (ValueError, lambda: RNNProcess.standard_normal(0), "hidden_size must be an integer"),
        (ValueError, lambda: RNNProcess.noisy_jordan_state(10), "multiple of 4.*got 10"),
        (ValueError, lambda: RNNProcess.noisy_jordan_state(8, n_waves=3), "at most .* 2; got 3"),
        (ValueError, lambda: RNNProcess.noisy_jordan_state(moduli=(0.9, 0.5)), "moduli must be"),
        (ValueError, lambda: RNNProcess.noisy_jordan_state(angles=(1, 4)), r"angles.*\(0, pi\)"),
        (ValueError, lambda: arma_inputs(2, 5, [1.0]), "stationary.*root 1 of modulus 1"),
        (ValueError, lambda: arma_inputs(2, 5, [0.5, 0.6]), r"root 0\.9399"),
        (ValueError, lambda: arma_inputs(2, 5, [0, -4]), r"stationary.*modulus 0\.5"),
        (ValueError, lambda: arma_inputs(2, 5, ma=[[1.0]]), "ma must be a vector of finite"),
        (ValueError, lambda: arma_inputs(2, 5, ar=np.nan), "ar must be a vector of finite"),
        (ValueError, lambda: arma_inputs(2, 0), "length must be an integer of at least 1"),
        (ValueError, lambda: HolderProcess(0, 1, 2), "beta must be a number above 0 .* got 0"),
        (ValueError, lambda: HolderProcess(11, 1, 2), "beta must .* at most 10; got 11"),
        (ValueError, lambda: HolderProcess(1, 1, 2, U=np.inf), "U must be .* finite; got inf"),
        (ValueError, lambda: HolderProcess(1, 0, 2), "n_inputs must be an integer of at least 1"),
        (ValueError, lambda: HolderProcess(1, 1, 2, n_terms=31), "n_terms must be at most 30"),
    ],
)
def test_what_is_refused(error, call, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "module", ["_adding", "_arma_inputs", "_holder", "_regression", "_rnn_process"]
)
def test_docstring_examples_run(module):
    failed, run = doctest.testmod(importlib.import_module(f"tsrnn.datasets.{module}"))
    assert run
    assert failed == 0
