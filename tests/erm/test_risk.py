"""Risks against scikit-learn, statsmodels, scipy and direct formulas."""

import os
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from sklearn import metrics
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import (
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.tree import DecisionTreeClassifier

from tsrnn.erm import BlockedKFold, ParaRNNRegressor, cross_validated_risk, empirical_risk


def thread_counter():
    """An estimator that predicts its threads; other processes get its class by value."""

    class Threads(RegressorMixin, BaseEstimator):
        def fit(self, X, z):
            self.threads_ = float(os.environ["OMP_NUM_THREADS"])
            return self

        def predict(self, X):
            return np.full(len(X), self.threads_)

    return Threads()


class Given:
    """Predicts what it was made with."""

    def __init__(self, prediction, classes=None):
        self.prediction = prediction
        if classes is not None:
            self.classes_ = np.asarray(classes)

    def predict(self, X):
        return self.prediction

    def predict_proba(self, X):
        return self.prediction


class StepMean(RegressorMixin, BaseEstimator):
    """Running means of the first variable, times the mean target; a value for every step."""

    def fit(self, X, z, sample_weight=None):
        self.scale_ = np.average([np.mean(own) for own in z], weights=sample_weight)
        return self

    def predict(self, X):
        steps = [self.scale_ * np.cumsum(x[:, 0]) / np.arange(1, len(x) + 1) for x in X]
        return np.array(steps) if hasattr(X, "shape") else steps


class StepClassifier(ClassifierMixin, BaseEstimator):
    """Frequencies of labels, the same for every step of sequences in a list."""

    def fit(self, X, z):
        self.classes_, number = np.unique(np.concatenate(z), return_counts=True)
        self.frequency_ = number / number.sum()
        return self

    def predict(self, X):
        return [np.full(len(x), self.classes_[self.frequency_.argmax()]) for x in X]

    def predict_proba(self, X):
        return [np.tile(self.frequency_, (len(x), 1)) for x in X]


def risk_of(z, prediction, classes=None, **arguments):
    return empirical_risk(Given(prediction, classes), np.zeros(len(z)), z, **arguments)


def losses_as_they_are(losses, **arguments):
    return empirical_risk(
        Given(losses), losses, losses, loss=lambda z, prediction: prediction, **arguments
    )


@pytest.fixture
def line():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 3))
    return X, X @ [1.0, -0.5, 0.0] + rng.normal(size=90)


@pytest.mark.parametrize("shape", [(7,), (7, 3), (7, 5), (7, 5, 2)])
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_loss_of_a_sample_is_the_mean_over_its_entries(shape, loss):
    rng = np.random.default_rng(0)
    z, prediction = rng.normal(size=shape), rng.normal(size=shape)
    risk = risk_of(z, prediction, loss=loss)
    measure = {"squared_error": np.square, "absolute_error": np.abs}[loss]
    expected = [measure(z[i] - prediction[i]).mean() for i in range(7)]
    np.testing.assert_allclose(risk.losses, expected)
    assert risk.value == pytest.approx(np.mean(expected))
    reference = {
        "squared_error": metrics.mean_squared_error,
        "absolute_error": metrics.mean_absolute_error,
    }[loss]
    assert risk.value == pytest.approx(reference(z.reshape(7, -1), prediction.reshape(7, -1)))


@settings(deadline=None)
@given(
    st.lists(
        hnp.arrays(float, st.tuples(st.integers(1, 4)), elements=st.floats(-9, 9)),
        min_size=1,
        max_size=6,
    ),
    st.booleans(),
)
def test_lists_of_sequences_of_any_length(sequences, column):
    z = [own[:, None] for own in sequences] if column else sequences
    risk = risk_of(z, [own + 2.0 for own in sequences])
    np.testing.assert_allclose(risk.losses, 4.0)
    uneven = risk_of(z, [np.zeros(len(own)) for own in sequences])
    np.testing.assert_allclose(uneven.losses, [np.mean(own**2) for own in sequences])


def test_lists_and_arrays_of_the_same_values_agree():
    rng = np.random.default_rng(0)
    z, prediction = rng.normal(size=(2, 6, 4, 2))
    whole = risk_of(z, prediction)
    for pair in [(list(z), prediction), (z, list(prediction)), (list(z), list(prediction))]:
        np.testing.assert_allclose(risk_of(*pair).losses, whole.losses)


def test_columns_and_frames():
    z, prediction = np.arange(5.0), np.arange(5.0) + np.arange(5)
    expected = np.arange(5) ** 2
    for target in (pd.Series(z), z[:, None], pd.DataFrame({"z": z}), z.tolist(), z.astype(object)):
        np.testing.assert_array_equal(risk_of(target, prediction).losses, expected)


@pytest.mark.parametrize(
    ("z", "prediction", "message"),
    [
        (np.zeros((4, 3)), np.zeros((4, 2)), r"shape \(4, 3\) of their targets; got \(4, 2\)"),
        (np.zeros((4, 3)), np.zeros(4), r"got \(4,\)"),
        (np.zeros(4), np.zeros(3), "got 3 for 4 samples"),
        ([np.zeros(2), np.zeros(3)], [np.zeros(2), np.zeros(2)], "sample 1"),
        ([np.zeros(0), np.zeros(3)], [np.zeros(0), np.zeros(3)], "sample 0 has none"),
        (np.zeros((4, 0)), np.zeros((4, 0)), "at least one value"),
        (np.array([0.0, np.nan]), np.zeros(2), "nan for 1 of 2 samples, the first sample 1"),
    ],
)
def test_targets_and_predictions_that_do_not_fit_are_refused(z, prediction, message):
    with pytest.raises(ValueError, match=message):
        risk_of(z, prediction)


def test_labels_are_no_numbers():
    with pytest.raises(TypeError, match="targets must be numbers"):
        risk_of(np.array(["a", "b"]), np.zeros(2))
    with pytest.raises(TypeError, match="both be numbers or both be text"):
        risk_of(pd.Series(["0", "1"]), np.array([0, 1]), loss="zero_one")
    with pytest.raises(ValueError, match="loss must be one of"):
        risk_of(np.zeros(2), np.zeros(2), loss="mse")


@pytest.mark.parametrize("labels", [[0, 1, 2], ["c", "a", "b"]])
def test_losses_of_a_classifier_are_those_of_scikit_learn(labels):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    z = np.array(labels)[(X.sum(1) + rng.normal(size=120) > 0).astype(int) + (X[:, 0] > 1)]
    w = rng.random(120)
    model = LogisticRegression().fit(X, z)
    log = empirical_risk(model, X, z, loss="log_loss", sample_weight=w)
    expected = metrics.log_loss(z, model.predict_proba(X), sample_weight=w, labels=model.classes_)
    assert log.value == pytest.approx(expected)
    zero_one = empirical_risk(model, X, pd.Series(z), loss="zero_one")
    assert zero_one.value == pytest.approx(metrics.zero_one_loss(z, model.predict(X)))


def test_labels_of_every_step():
    z = [np.array(["b", "a"]), np.array(["a", "a", "b"])]
    p = [np.array([[0.2, 0.8], [0.5, 0.5]]), np.array([[1.0, 0.0], [0.25, 0.75], [0.9, 0.1]])]
    risk = risk_of(z, p, ["a", "b"], loss="log_loss")
    expected = [-np.log([0.8, 0.5]).mean(), -np.log([1.0, 0.25, 0.1]).mean()]
    np.testing.assert_allclose(risk.losses, expected)
    both = risk_of(np.array([["b", "a"]]), p[0][None], ["a", "b"], loss="log_loss")
    np.testing.assert_allclose(both.losses, expected[:1])
    wrong = risk_of(z, [np.array(["b", "b"]), np.array(["a", "a", "a"])], loss="zero_one")
    np.testing.assert_allclose(wrong.losses, [1 / 2, 1 / 3])


def test_log_loss_follows_the_order_of_classes():
    p = np.array([[0.1, 0.9], [0.4, 0.6]])
    risk = risk_of([1, 0], p, [1, 0], loss="log_loss")
    np.testing.assert_allclose(risk.losses, -np.log([0.1, 0.6]))


def test_a_label_without_probability_has_infinite_loss():
    risk = risk_of([0, 1], np.array([[1.0, 0.0], [1.0, 0.0]]), [0, 1], loss="log_loss")
    assert risk.losses.tolist() == [0.0, np.inf]
    assert risk.value == np.inf
    assert np.isnan(risk.std_error)
    with pytest.raises(ValueError, match="infinite losses"):
        risk.minus(risk)
    without = risk_of(
        [0, 1], np.array([[1.0, 0.0]] * 2), [0, 1], loss="log_loss", sample_weight=[1, 0]
    )
    assert without.value == 0.0
    assert np.isnan(without.std_error)  # of one sample


@pytest.mark.parametrize(
    ("z", "p", "classes", "message"),
    [
        ([0, 2], [[0.5, 0.5]] * 2, [0, 1], r"got \[2\]"),
        (["0", "1"], [[0.5, 0.5]] * 2, [0, 1], r"got \['0', '1'\]"),
        ([0, 1], [[0.5, 0.2]] * 2, [0, 1], "sum to 1"),
        ([0, 1], [[1.5, -0.5]] * 2, [0, 1], "not be negative"),
        ([0, 1], [[1.0]] * 2, [0, 1], r"must have \(2, 2\); got \(2, 1\)"),
        ([0, 1], [[0.5, 0.5]], [0, 1], "got 1 for 2"),
        ([0, 1], [[0.5, 0.5]] * 2, [[0, 1], [0, 1]], "one output"),
    ],
)
def test_labels_and_probabilities_that_do_not_fit_are_refused(z, p, classes, message):
    with pytest.raises(ValueError, match=message):
        risk_of(z, np.array(p), classes, loss="log_loss")


def test_log_loss_needs_probabilities(line):
    with pytest.raises(TypeError, match="LinearRegression has not"):
        empirical_risk(LinearRegression().fit(*line), *line, loss="log_loss")


def test_a_loss_of_ones_own():
    z, prediction = np.array([1.0, 2.0, 4.0]), np.array([2.0, 2.0, 2.0])

    def asymmetric(z, prediction):
        return np.where(prediction > z, 10.0, 1.0) * np.abs(z - prediction)

    risk = risk_of(z, prediction, loss=asymmetric)
    assert risk.loss == "asymmetric"
    assert risk.losses.tolist() == [10.0, 0.0, 2.0]
    with pytest.raises(ValueError, match="one per sample"):
        risk_of(z, prediction, loss=lambda z, prediction: 1.0)


def direct_std_error(losses, w, lags):
    n, mean = len(losses), np.average(losses, weights=w)
    u = w * (losses - mean)
    total = 0.0
    for i in range(n):
        for j in range(n):
            total += u[i] * u[j] * max(0.0, 1 - abs(i - j) / (lags + 1))
    return np.sqrt(total * n / (n - 1)) / w.sum()


@pytest.mark.parametrize("lags", [0, 1, 4, 39])
@pytest.mark.parametrize("weighted", [False, True])
def test_standard_errors_are_those_of_the_formula_and_of_statsmodels(lags, weighted):
    rng = np.random.default_rng(lags)
    losses = np.convolve(rng.exponential(size=43), [1, 1, 1, 1], "valid")
    w = rng.random(40) if weighted else np.ones(40)
    risk = losses_as_they_are(losses, sample_weight=w if weighted else None, lags=lags)
    assert risk.std_error == pytest.approx(direct_std_error(losses, w, lags))
    fit = sm.WLS(losses, np.ones(40), weights=w).fit(
        cov_type="HAC", cov_kwds={"maxlags": lags, "use_correction": True}
    )
    assert (risk.value, risk.std_error) == pytest.approx((fit.params[0], fit.bse[0]))


def test_standard_error_of_independent_samples():
    losses = np.random.default_rng(0).exponential(size=50)
    risk = losses_as_they_are(losses)
    assert risk.std_error == pytest.approx(stats.sem(losses))
    assert np.isnan(losses_as_they_are(losses[:1]).std_error)


@given(st.floats(0.01, 100))
def test_only_ratios_of_weights_matter(scale):
    rng = np.random.default_rng(0)
    losses, w = rng.random((2, 20))
    a = losses_as_they_are(losses, sample_weight=w, lags=2)
    b = losses_as_they_are(losses, sample_weight=scale * w, lags=2)
    assert (a.value, a.std_error) == pytest.approx((b.value, b.std_error))


def test_standard_errors_say_how_much_the_mean_varies():
    rng = np.random.default_rng(0)
    n, runs = 400, 1500
    losses = rng.exponential(size=(runs, n + 2))
    losses = losses[:, 2:] + losses[:, 1:-1] + losses[:, :-2]
    w = rng.exponential(size=(runs, n))
    in_order = [losses_as_they_are(own, lags=12) for own in losses]
    spread = np.std([risk.value for risk in in_order])
    assert np.mean([risk.std_error for risk in in_order]) == pytest.approx(spread, rel=0.1)
    naive = np.mean([losses_as_they_are(own).std_error for own in losses])
    assert naive < 0.65 * spread
    weighted = [
        losses_as_they_are(own[::4], sample_weight=weights[::4])
        for own, weights in zip(losses, w, strict=True)
    ]
    spread = np.std([risk.value for risk in weighted])
    assert np.mean([risk.std_error for risk in weighted]) == pytest.approx(spread, rel=0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lags": -1}, "between 0 and 3"),
        ({"lags": 4}, "between 0 and 3"),
        ({"sample_weight": [1, 1, 1]}, r"shape \(4,\)"),
        ({"sample_weight": [1, 1, 1, -1]}, "not negative"),
        ({"sample_weight": [0, 0, 0, 0]}, "not 0 for all"),
        ({"sample_weight": [1, 1, 1, np.inf]}, "finite"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        losses_as_they_are(np.ones(4), **arguments)


def test_numbers_of_samples_must_agree(line):
    X, z = line
    model = LinearRegression().fit(X, z)
    for call in (empirical_risk, cross_validated_risk):
        with pytest.raises(ValueError, match="got 90 and 80"):
            call(model, X, z[:80])


def test_the_training_sample_is_optimistic():
    """Least squares: E R_N(f^) = s2 (1 - d / n), E R(f^) = s2 (1 + d / (n - d - 1))."""
    rng = np.random.default_rng(0)
    n, d = 30, 6
    training, held_out = [], []
    for _ in range(400):
        X, noise = rng.normal(size=(2 * n, d)), rng.normal(size=2 * n)
        model = LinearRegression(fit_intercept=False).fit(X[:n], noise[:n])
        training.append(empirical_risk(model, X[:n], noise[:n]).value)
        held_out.append(empirical_risk(model, X[n:], noise[n:]).value)
    for values, expected in [(training, 1 - d / n), (held_out, 1 + d / (n - d - 1))]:
        assert abs(np.mean(values) - expected) < 4 * stats.sem(values)


@pytest.mark.parametrize(
    "cv", [5, KFold(4, shuffle=True, random_state=0), BlockedKFold(6, h=4), TimeSeriesSplit(3)]
)
def test_cross_validated_losses_are_those_of_clones_fitted_without_the_sample(line, cv):
    X, z = line
    risk = cross_validated_risk(Ridge(), X, z, cv=cv)
    losses = np.full(90, np.nan)
    splitter = KFold(5) if cv == 5 else cv
    folds = list(splitter.split(X))
    for (train, test), fold in zip(folds, risk.folds, strict=True):
        losses[test] = (z[test] - Ridge().fit(X[train], z[train]).predict(X[test])) ** 2
        assert fold.risk == pytest.approx(losses[test].mean())
        assert (fold.n_train, fold.rows) == (len(train), tuple(test))
    known = losses[~np.isnan(losses)]
    np.testing.assert_allclose(risk.losses, known)
    assert (risk.n, risk.value) == (len(known), pytest.approx(known.mean()))
    assert risk.std_error == pytest.approx(stats.sem(known))


def test_cross_validation_with_weights_gives_them_to_fit(line):
    X, z = line
    w = np.random.default_rng(0).exponential(size=90)
    w[:20] = 0.0
    risk = cross_validated_risk(Ridge(), X, z, cv=5, sample_weight=w)
    made = np.empty(90)
    for train, test in KFold(5).split(X):
        made[test] = Ridge().fit(X[train], z[train], sample_weight=w[train]).predict(X[test])
    assert risk.value == pytest.approx(np.average((z - made) ** 2, weights=w))
    assert np.isnan(risk.folds[0].risk)

    class Bare(StepMean):
        def fit(self, X, z):
            return self

    with pytest.raises(TypeError, match="fit of Bare takes no sample_weight"):
        cross_validated_risk(Bare(), X, z, sample_weight=w)


def test_labels_are_cross_validated_in_strata():
    rng = np.random.default_rng(0)
    z = np.repeat(["x", "y", "z"], 20)
    X = rng.normal(size=(60, 2)) + (z == "y")[:, None]
    risk = cross_validated_risk(LogisticRegression(), X, z, cv=4, loss="log_loss")
    p = cross_val_predict(LogisticRegression(), X, z, cv=StratifiedKFold(4), method="predict_proba")
    assert risk.value == pytest.approx(metrics.log_loss(z, p))
    with pytest.raises(ValueError, match=r"got \['x'\]. In cross-validation a stratified"):
        cross_validated_risk(DecisionTreeClassifier(), X, z, cv=KFold(3), loss="log_loss")


@pytest.mark.parametrize("in_list", [False, True])
def test_sequences_with_a_target_for_every_step(in_list):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 5, 2))
    z = rng.normal(size=(12, 5)) + 1
    if in_list:
        lengths = rng.integers(1, 6, size=12)
        X = [own[:length] for own, length in zip(X, lengths, strict=True)]
        z = [own[:length] for own, length in zip(z, lengths, strict=True)]
    risk = cross_validated_risk(StepMean(), X, z, cv=BlockedKFold(3, h=1))
    model = StepMean()
    model.scale_ = np.mean([own.mean() for own in z[5:]])
    expected = [np.mean((own - made) ** 2) for own, made in zip(z, model.predict(X), strict=True)]
    np.testing.assert_allclose(risk.losses[:4], expected[:4])


def test_labels_for_every_step_of_sequences_in_a_list():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(t, 1)) for t in (3, 5, 2, 4)]
    z = [rng.permutation(np.arange(len(x)) % 2) for x in X]
    risk = cross_validated_risk(StepClassifier(), X, z, cv=2, loss="log_loss")
    share = np.concatenate(z[2:]).mean()
    expected = -np.mean(np.log(np.where(z[0] == 1, share, 1 - share)))
    assert risk.losses[0] == pytest.approx(expected)
    assert cross_validated_risk(StepClassifier(), X, z, cv=2, loss="zero_one").n == 4


def test_splits_that_give_no_risk_are_refused(line):
    X, z = line
    with pytest.raises(ValueError, match="at most once"):
        cross_validated_risk(Ridge(), X, z, cv=ShuffleSplit(9, random_state=0))
    everything = np.arange(90)
    for cv, message in [
        ([(everything, everything[:3])], "trains on"),
        ([(everything[:80], everything[80:80])], "80 training and 0 test"),
        ([(everything[:80], everything[80:] + 1)], "positions from 0 to 89"),
        ([], "0 folds"),
    ]:
        with pytest.raises(ValueError, match=message):
            cross_validated_risk(Ridge(), X, z, cv=cv)
    gap = [(everything[30:], everything[:10]), (everything[30:], everything[20:30])]
    assert cross_validated_risk(Ridge(), X, z, cv=gap).n == 20
    with pytest.raises(ValueError, match="10 samples in between"):
        cross_validated_risk(Ridge(), X, z, cv=gap, lags=1)


def test_masks_are_positions_too(line):
    X, z = line
    test = np.arange(90) < 30
    risk = cross_validated_risk(Ridge(), X, z, cv=[(~test, test)])
    assert risk.value == cross_validated_risk(Ridge(), X, z, cv=3).folds[0].risk


def test_the_estimator_is_left_alone(line):
    model = Ridge()
    cross_validated_risk(model, *line)
    assert not hasattr(model, "coef_")


def test_processes_give_the_same_and_have_one_thread(line, monkeypatch):
    alone = cross_validated_risk(Ridge(), *line)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    together = cross_validated_risk(Ridge(), *line, n_jobs=2)
    np.testing.assert_allclose(together.losses, alone.losses, rtol=1e-12)
    threads = cross_validated_risk(thread_counter(), line[0], np.ones(len(line[0])), n_jobs=2)
    assert threads.value == 0.0
    assert os.environ["OMP_NUM_THREADS"] == "2"
    with pytest.raises(ValueError, match="n_jobs"):
        cross_validated_risk(Ridge(), *line, n_jobs=0)


def test_difference_of_risks_is_the_paired_test(line):
    X, z = line
    a, b = (Ridge(alpha).fit(X[:40], z[:40]) for alpha in (1.0, 30.0))
    new = X[40:], z[40:]
    risks = [empirical_risk(model, *new) for model in (a, b)]
    difference = risks[0].minus(risks[1])
    paired = stats.ttest_rel(risks[0].losses, risks[1].losses)
    assert difference.value / difference.std_error == pytest.approx(paired.statistic)
    assert difference.value == pytest.approx(risks[0].value - risks[1].value)
    assert difference.is_difference
    back = risks[1].minus(risks[0])
    assert (back.value, back.std_error) == pytest.approx((-difference.value, difference.std_error))
    assert risks[0].minus(risks[0]).std_error == 0.0


def test_difference_of_cross_validated_risks_keeps_the_folds(line):
    X, z = line
    cv = KFold(4, shuffle=True, random_state=0)
    a, b = (cross_validated_risk(Ridge(alpha), X, z, cv=cv, lags=3) for alpha in (1.0, 30.0))
    difference = a.minus(b)
    for fold, mine, other in zip(difference.folds, a.folds, b.folds, strict=True):
        assert fold.risk == pytest.approx(mine.risk - other.risk)
    assert "although 4 folds share training samples" in repr(difference)
    optimism = a.minus(empirical_risk(Ridge(1.0).fit(X, z), X, z, lags=3))
    assert optimism.folds
    assert optimism.value > 0


def test_risks_that_cannot_be_compared_are_refused(line):
    X, z = line
    model = Ridge().fit(X, z)
    risk = empirical_risk(model, X, z)
    w = np.arange(1.0, 91.0)
    for other, message in [
        (empirical_risk(model, X[1:], z[1:]), "same n; got 90 and 89"),
        (empirical_risk(model, X, z, loss="absolute_error"), "same loss"),
        (empirical_risk(model, X, z, lags=2), "same lags"),
        (empirical_risk(model, X, z, sample_weight=w), "same weights"),
    ]:
        with pytest.raises(ValueError, match=message):
            risk.minus(other)
    a, b = (cross_validated_risk(model, X, z, cv=k) for k in (3, 5))
    with pytest.raises(ValueError, match="same folds"):
        a.minus(b)
    with pytest.raises(TypeError, match="must be a Risk; got float"):
        risk.minus(1.0)


def test_a_risk_cannot_be_changed_and_is_copied(line):
    risk = cross_validated_risk(Ridge(), *line, cv=3, sample_weight=np.arange(90.0))
    with pytest.raises(FrozenInstanceError):
        risk.value = 0.0
    for array in (risk.losses, risk.weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0
    copy = pickle.loads(pickle.dumps(risk))
    assert copy.to_dict() == risk.to_dict()
    assert pd.DataFrame([risk.to_dict(), copy.to_dict()]).shape == (2, 6)


def test_it_says_what_the_standard_error_assumes(line):
    X, z = line
    model = Ridge().fit(X, z)
    plain = repr(empirical_risk(model, X, z))
    assert plain.startswith("Risk ")
    assert plain.endswith("squared_error, 90 samples, taken as independent)")
    ordered = repr(empirical_risk(model, X, z, lags=3, sample_weight=np.ones(90)))
    assert ordered.endswith("90 weighted samples, in time order, correlated up to lag 3)")
    held_out = repr(cross_validated_risk(model, X, z))
    assert held_out.startswith("Cross-validated risk ")
    assert held_out.endswith("taken as independent although 5 folds share training samples)")


def test_the_standard_error_of_losses_whose_squares_overflow():
    X, z = np.zeros((4, 1)), np.array([1.0, 2.0, 3.0, 5.0])
    model = LinearRegression().fit(X, np.zeros(4))
    small, large = (empirical_risk(model, X, z * unit) for unit in (1.0, 1e100))
    assert large.std_error == pytest.approx(1e200 * small.std_error)


def test_samples_of_weight_zero_are_not_counted():
    X, z = np.zeros((4, 1)), np.array([1.0, 2.0, 3.0, 5.0])
    model = LinearRegression().fit(X, np.zeros(4))
    weighted = empirical_risk(model, X, z, sample_weight=[1, 1, 1, 0])
    alone = empirical_risk(model, X[:3], z[:3])
    assert weighted.value == pytest.approx(alone.value)
    assert weighted.std_error == pytest.approx(alone.std_error)


def test_cross_validation_judges_by_the_loss_that_its_clones_minimise():
    """The estimator may have been fitted with another one."""
    X = np.random.default_rng(0).normal(size=(12, 3, 1))
    model = ParaRNNRegressor(2, max_epochs=1, random_state=0).fit(X, X[:, -1, 0])
    model.set_params(loss="absolute_error")
    assert cross_validated_risk(model, X, X[:, -1, 0], cv=2).loss == "absolute_error"
    assert empirical_risk(model, X, X[:, -1, 0]).loss == "squared_error"


def test_the_loss_by_default_is_that_of_the_estimator():
    X, counts = np.arange(12.0)[:, None], np.repeat([0, 1, 5], 4)
    model = LogisticRegression().fit(X, counts)
    assert empirical_risk(model, X, counts).loss == "log_loss"
    assert empirical_risk(LinearRegression().fit(X, counts), X, counts).loss == "squared_error"
    assert cross_validated_risk(model, X, counts, cv=2).loss == "log_loss"
