"""Excess risks against closed forms of linear models."""

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from tsrnn.erm import ParaRNNRegressor, excess_risk

SIGMA = 0.5
BETA = np.array([1.0, -0.5, 0.25])
SIZE = float(BETA @ BETA)


def mean(X):
    return X @ BETA


def sample(n, random_state):
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(n, 3))
    return X, mean(X) + SIGMA * rng.normal(size=n)


def sequences(n, random_state):
    """Lists of 1 to 5 steps, with a target for every step."""
    rng = np.random.default_rng(random_state)
    X = [rng.normal(size=(t, 1)) for t in rng.integers(1, 6, size=n)]
    return X, [x[:, 0] + rng.normal(size=len(x)) for x in X]


class Scaled(RegressorMixin, BaseEstimator):
    """The first variable times a constant that is the ratio of means of squares, or is given."""

    def __init__(self, factor=None):
        self.factor = factor

    def fit(self, X, z):
        pairs = [(x[..., 0], target) for x, target in zip(X, z, strict=True)]
        self.factor_ = self.factor
        if self.factor is None:
            cross = sum((a * b).mean() for a, b in pairs)
            self.factor_ = cross / sum((a * a).mean() for a, _ in pairs)
        return self

    def predict(self, X):
        made = [self.factor_ * x[..., 0] for x in X]
        return np.array(made) if hasattr(X, "shape") else made


class Lottery(RegressorMixin, BaseEstimator):
    """Predicts a constant that its seed alone decides: an optimiser that ends anywhere."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, z):
        self.constant_ = np.random.default_rng(self.random_state).normal()
        return self

    def predict(self, X):
        return np.full(len(X), self.constant_)


def within(estimate, expected, errors=4.0):
    return abs(estimate.value - expected) < errors * estimate.std_error


def test_given_the_training_sample_it_is_the_distance_of_the_coefficients():
    line = LinearRegression(fit_intercept=False).fit(*sample(40, 1))
    found = excess_risk(line, mean, sample, n_monte_carlo=50_000, random_state=0)
    exact = float(((line.coef_ - BETA) ** 2).sum())
    # (b'x)^2 with x normal has variance 2 |b|^4.
    assert found.excess.std_error == pytest.approx(exact * np.sqrt(2 / 50_000), rel=0.05)
    assert within(found.excess, exact)
    assert found.estimation is None
    assert found.approximation is None
    assert found.by_replicate == ()


def test_monte_carlo_errors_cover():
    line = LinearRegression(fit_intercept=False).fit(*sample(40, 1))
    exact = float(((line.coef_ - BETA) ** 2).sum())
    found = [
        excess_risk(line, mean, sample, n_monte_carlo=2000, random_state=seed).excess
        for seed in range(300)
    ]
    scores = np.array([(value - exact) / error for value, error in found])
    assert stats.binomtest(int((abs(scores) < 1.96).sum()), 300, 0.95).pvalue > 0.001
    assert scores.std() == pytest.approx(1.0, abs=0.15)


@pytest.mark.few("12")
@pytest.mark.parametrize("n", [12, 40])
def test_expected_excess_risk_of_least_squares(n):
    exact = SIGMA**2 * 3 / (n - 3 - 1)
    line = LinearRegression(fit_intercept=False)
    found = excess_risk(
        line, mean, sample, n_monte_carlo=500, n_train=n, n_replicates=600, random_state=n
    )
    assert within(found.excess, exact)
    assert found.excess.std_error < 0.06 * exact
    assert found.excess.value == pytest.approx(np.mean(found.by_replicate))
    assert found.excess.std_error == pytest.approx(stats.sem(found.by_replicate))


@pytest.mark.slow
def test_errors_over_training_samples_cover():
    """A mean of n numbers: its excess risk is chi-squared, SIGMA^2 / n in expectation."""

    def noise(n, random_state):
        rng = np.random.default_rng(random_state)
        return np.zeros((n, 1)), SIGMA * rng.normal(size=n)

    sizes = {"n_monte_carlo": 2, "n_train": 10, "n_replicates": 40}
    zero = lambda X: np.zeros(len(X))  # noqa: E731
    found = [
        excess_risk(DummyRegressor(), zero, noise, **sizes, random_state=seed).excess
        for seed in range(60)
    ]
    covered = sum(abs(value - SIGMA**2 / 10) < 2 * error for value, error in found)
    # Means of 40 skewed values: their intervals cover about 0.91.
    assert stats.binomtest(covered, 60, 0.91).pvalue > 0.001


def test_a_constant_for_a_line_has_the_variance_of_the_line_as_approximation_error():
    constant = DummyRegressor().fit(*sample(30, 3))
    found = excess_risk(
        constant, mean, sample, n_monte_carlo=100_000, n_population=200_000, random_state=0
    )
    estimation = float(constant.constant_.item() ** 2)
    assert within(found.excess, SIZE + estimation)
    assert within(found.approximation, SIZE)
    assert within(found.estimation, estimation)
    assert found.estimation.std_error < 0.2 * found.excess.std_error
    total = found.estimation.value + found.approximation.value
    assert total == pytest.approx(found.excess.value, rel=1e-12)


def test_expected_parts_of_a_constant_for_a_line():
    sizes = {"n_monte_carlo": 1000, "n_train": 20, "n_replicates": 300, "n_population": 200_000}
    found = excess_risk(DummyRegressor(), mean, sample, **sizes, random_state=0)
    assert within(found.estimation, (SIZE + SIGMA**2) / 20)
    assert within(found.approximation, SIZE)
    assert within(found.excess, SIZE + (SIZE + SIGMA**2) / 20)
    total = found.estimation.value + found.approximation.value
    assert total == pytest.approx(found.excess.value, rel=1e-12)


def test_a_class_that_holds_the_truth_has_no_approximation_error():
    line = LinearRegression().fit(*sample(30, 0))
    found = excess_risk(
        line, mean, sample, n_monte_carlo=1000, n_population=50, n_starts=1, random_state=0
    )
    assert found.approximation.value < 1e-25
    assert found.estimation.value == pytest.approx(found.excess.value)


def test_the_best_of_the_starts_is_taken_and_bounds_the_approximation_error_from_above():
    def of(n_starts):
        lottery = Lottery(random_state=0).fit(*sample(5, 0))
        arguments = {"n_monte_carlo": 20_000, "n_population": 20_000, "random_state": 1}
        return excess_risk(lottery, mean, sample, n_starts=n_starts, **arguments)

    one, many = of(1), of(40)
    assert many.approximation.value < one.approximation.value
    # The best constant is 0; the nearest of 40 normal numbers lies within 0.2 of it.
    assert SIZE - 4 * many.approximation.std_error < many.approximation.value < SIZE + 0.04
    assert one.excess == many.excess
    assert (one.n_starts, many.n_starts) == (1, 40)


def test_replicates_have_seeds_of_their_own():
    sizes = {"n_monte_carlo": 200, "n_train": 2, "n_replicates": 200, "random_state": 0}
    found = excess_risk(Lottery(random_state=0), mean, sample, **sizes)
    assert within(found.excess, SIZE + 1.0)
    nested = make_pipeline(PolynomialFeatures(), Lottery(random_state=0))
    assert excess_risk(nested, mean, sample, **sizes) == found
    assert nested.get_params()["lottery__random_state"] == 0


def test_the_class_of_a_fitted_estimator_is_that_of_its_fit():
    def draw(n, random_state):
        X = np.random.default_rng(random_state).normal(size=(n, 2, 1))
        return X, last(X)

    def last(X):
        return X[:, -1, 0]

    def risk():
        sizes = {"n_monte_carlo": 20, "n_population": 20, "n_starts": 1, "random_state": 0}
        return excess_risk(model, last, draw, **sizes)

    model = ParaRNNRegressor(2, max_epochs=1, random_state=0).fit(*draw(20, 0))
    before = risk()
    model.set_params(hidden_size=6, bound=0.01)
    assert risk() == before


def test_batches_do_not_change_the_moments():
    """Moments merged over batches are those of all the values."""
    kept = []

    def keeping(n, random_state):
        kept.append(sample(n, random_state))
        return kept[-1]

    line = LinearRegression().fit(*sample(20, 0))
    found = excess_risk(line, mean, keeping, n_monte_carlo=1003, batch_size=100, random_state=0)
    assert [len(z) for _, z in kept] == [100] * 10 + [3]
    X = np.concatenate([X for X, _ in kept])
    assert len(np.unique(X[:, 0])) == 1003
    errors = (line.predict(X) - mean(X)) ** 2
    assert found.excess == pytest.approx((errors.mean(), stats.sem(errors)))


def test_sequences_of_any_length_with_a_target_for_every_step():
    """The factor c has excess risk (c - 1)^2 whatever the lengths are."""
    found = excess_risk(
        Scaled(factor=1.5).fit(*sequences(3, 0)),
        lambda X: [x[:, 0] for x in X],
        sequences,
        n_monte_carlo=4000,
        n_population=20,
        random_state=0,
    )
    assert within(found.excess, 0.25)
    assert found.approximation.value == pytest.approx(found.excess.value)
    fitted = excess_risk(
        Scaled(),
        lambda X: [x[:, 0] for x in X],
        sequences,
        n_monte_carlo=200,
        n_train=30,
        n_replicates=20,
        n_population=20,
        random_state=0,
    )
    assert fitted.approximation.value < 1e-25
    assert 0 < fitted.excess.value < 0.2


def test_the_population_may_be_fitted_with_other_arguments():
    poor = Scaled(factor=0.0).fit(*sequences(3, 0))
    found = excess_risk(
        poor,
        lambda X: [x[:, 0] for x in X],
        sequences,
        n_monte_carlo=500,
        n_population=20,
        population_params={"factor": None},
        random_state=0,
    )
    assert found.approximation.value < 1e-25
    assert within(found.estimation, 1.0)
    assert poor.factor == 0.0
    with pytest.raises(ValueError, match="Invalid parameter 'epochs'"):
        excess_risk(
            poor, mean, sample, n_population=9, population_params={"epochs": 9}, n_monte_carlo=9
        )


def test_arrays_of_sequences():
    def cube(n, random_state):
        rng = np.random.default_rng(random_state)
        X = rng.normal(size=(n, 4, 2))
        return X, X[..., 0] + rng.normal(size=(n, 4))

    model = Scaled(factor=0.0).fit(*cube(5, 0))
    found = excess_risk(model, lambda X: X[..., 0], cube, n_monte_carlo=5000, random_state=0)
    assert within(found.excess, 1.0)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers_in_one_process_and_in_two():
    # Local functions travel to other processes whole; those of this file need not be found there.
    beta = BETA

    def local_mean(X):
        return X @ beta

    def local_sample(n, random_state):
        rng = np.random.default_rng(random_state)
        X = rng.normal(size=(n, 3))
        return X, local_mean(X) + rng.normal(size=n)

    arguments = {
        "n_monte_carlo": 300,
        "n_train": 20,
        "n_replicates": 4,
        "n_population": 100,
        "n_starts": 2,
    }
    alone, two, other = (
        excess_risk(
            LinearRegression(), local_mean, local_sample, **arguments, random_state=s, n_jobs=n
        )
        for s, n in [(0, None), (0, 2), (1, None)]
    )
    np.testing.assert_allclose(two.by_replicate, alone.by_replicate, rtol=1e-9)
    assert alone.excess != other.excess
    generator = excess_risk(
        LinearRegression(),
        local_mean,
        local_sample,
        **arguments,
        random_state=np.random.default_rng(0),
    )
    assert generator.excess.value > 0


def test_the_decomposition_does_not_change_the_excess_risk():
    arguments = {"n_monte_carlo": 300, "n_train": 20, "n_replicates": 4, "random_state": 0}
    plain = excess_risk(LinearRegression(), mean, sample, **arguments)
    parts = excess_risk(LinearRegression(), mean, sample, **arguments, n_population=50)
    assert plain.by_replicate == parts.by_replicate


def test_the_estimator_is_left_alone():
    model = LinearRegression()
    excess_risk(model, mean, sample, n_monte_carlo=10, n_train=9, n_replicates=2, n_population=9)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_train": 10}, "both, or none"),
        ({"n_replicates": 10}, "both, or none"),
        ({"n_train": 10, "n_replicates": 1}, "n_replicates must be at least 2"),
        ({"n_monte_carlo": 1}, "n_monte_carlo must be at least 2"),
        ({"n_population": 0}, "n_population"),
        ({"n_population": 10, "n_starts": 0}, "n_starts"),
        ({"batch_size": 0}, "batch_size"),
        ({"f0": lambda X: X}, r"shape \(20, 3\) of their targets; got \(20,\)"),
        ({"f0": lambda X: np.full(len(X), np.nan)}, "nan for 20 of 20"),
        ({"sampler": lambda n, random_state: sample(n + 1, 0)}, "asked for 20 pairs"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, message):
    model = LinearRegression().fit(*sample(10, 0))
    given = {"f0": mean, "sampler": sample, "n_monte_carlo": 20} | arguments
    with pytest.raises(ValueError, match=message):
        excess_risk(model, **given)


def test_classifiers_and_samplers_of_x_alone_are_refused():
    with pytest.raises(TypeError, match="LogisticRegression is a classifier"):
        excess_risk(LogisticRegression(), mean, sample)
    with pytest.raises(TypeError, match="tuple"):
        excess_risk(LinearRegression(), mean, lambda n, random_state: sample(n, 0)[0])


def test_the_result_is_plain_frozen_and_says_what_it_is():
    model = DummyRegressor().fit(*sample(10, 0))
    given = excess_risk(model, mean, sample, n_monte_carlo=50, random_state=0)
    sizes = {"n_monte_carlo": 50, "n_train": 10, "n_replicates": 3, "n_population": 40}
    over = excess_risk(model, mean, sample, **sizes, random_state=0)
    with pytest.raises(FrozenInstanceError):
        given.excess = None
    assert pickle.loads(pickle.dumps(over)) == over
    assert "given the training sample, on 50 new pairs" in repr(given)
    text = repr(over)
    assert "mean of 3 training samples of 10, 50 new pairs each" in text
    assert "estimation error    at least" in text
    assert "approximation error at most" in text
    assert "best of 5 fits to 40 pairs without noise" in text
    table = pd.DataFrame([given.to_dict(), over.to_dict()])
    assert table["excess"].tolist() == [given.excess.value, over.excess.value]
    assert table["approximation"].isna().tolist() == [True, False]
    assert all(type(v) in (int, float, type(None)) for v in over.to_dict().values())
