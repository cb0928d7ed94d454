"""Refits trained in one pass, against each by itself."""

from unittest.mock import patch

import lightning.pytorch as pl
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from tsrnn.erm import (
    ParaRNNClassifier,
    ParaRNNRegressor,
    block_bootstrap,
    cross_validated_risk,
    deep_ensemble,
    excess_risk,
)
from tsrnn.training import train, train_replicates

ROUNDING = 1e-3  # of trained weights; another seed or sample changes predictions by tenths


def regressor(**arguments):
    # At this rate errors fall from epoch to epoch by far more than rounding.
    return ParaRNNRegressor(
        **({"hidden_size": 4, "max_epochs": 4, "learning_rate": 0.01} | arguments)
    )


def samples(n=60, lists=False):
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 9, size=n) if lists else np.full(n, 8)
    X = [rng.normal(size=(length, 2)) for length in lengths]
    z = np.array([x[-1, 0] - 0.5 * x[-2, 1] for x in X])
    return (X if lists else np.stack(X)), z + 0.1 * rng.normal(size=n)


def steps(lists=False):
    X, _ = samples(lists=lists)
    z = [x[:, 0].cumsum() / 4 for x in X]
    return X, (z if lists else np.stack(z))


def labels(n=60):
    X, z = samples(n)
    return X, np.where(z > 0.3, "up", np.where(z < -0.3, "down", "flat"))


CASES = {
    "array": (regressor(), samples()),
    "lists": (regressor(), samples(lists=True)),
    "mean over steps": (regressor(pooling="mean"), samples(lists=True)),
    "maximum over steps": (regressor(pooling="max", hidden_size=6), samples(lists=True)),
    "absolute errors within bounds": (
        regressor(loss="absolute_error", bound=0.4, nonlinearity="relu", input_projection=True),
        samples(),
    ),
    "steps": (regressor(many_to_many=True), steps()),
    "steps of lists": (regressor(many_to_many=True), steps(lists=True)),
    "without validation": (regressor(early_stopping=False, standardize=False), samples()),
    "several outputs": (
        regressor(n_layers=2, weight_decay=0.1, batch_size=7),
        (samples()[0], np.stack([samples()[1], -2 * samples()[1]], 1)),
    ),
    "last samples held out": (
        regressor(validation_split="last", patience=1, max_epochs=9), samples()
    ),
    "classes": (ParaRNNClassifier(4, max_epochs=4, learning_rate=0.01), labels()),
    "gates": (regressor(cell="gru"), samples(lists=True)),
}  # fmt: skip


def outputs(estimator, X):
    values = estimator.fitted_.outputs(X)
    return np.concatenate(values) if isinstance(values, list) else values


def assert_same_fit(one, other, X):
    np.testing.assert_allclose(outputs(one, X), outputs(other, X), rtol=0, atol=ROUNDING)
    assert one.best_epoch_ == other.best_epoch_
    assert (one.n_train_, one.n_validation_) == (other.n_train_, other.n_validation_)
    assert len(one.history_) == len(other.history_)
    for entry, expected in zip(one.history_, other.history_, strict=True):
        assert entry == pytest.approx(expected, rel=ROUNDING)
    assert one.training_risk_.value == pytest.approx(other.training_risk_.value, rel=ROUNDING)
    assert one.validation_skill_ == pytest.approx(other.validation_skill_, abs=ROUNDING)
    assert not one.network_.training
    assert one.arguments_.random_state == other.arguments_.random_state


def resample(n, block, n_estimators, seed):
    """Rows of the members of a bootstrap, as an estimator is given them that keeps them."""
    keeps = make_pipeline(FunctionTransformer(lambda rows: rows), LinearRegression())
    seen = []
    with patch.object(LinearRegression, "fit", lambda self, X, z: seen.append(z) or self):
        block_bootstrap(
            keeps, np.arange(float(n))[:, None], np.arange(n), n_estimators=n_estimators,
            block_length=block, random_state=seed,
        )  # fmt: skip
    return seen[1:]  # the first fit is to all samples


@pytest.mark.few("array", "lists", "classes")
@pytest.mark.parametrize("case", CASES)
def test_a_bootstrap_is_fits_one_by_one(case):
    estimator, (X, z) = CASES[case]
    refits = block_bootstrap(
        clone(estimator).fit(X, z), X, z, n_estimators=3, block_length=5, random_state=1
    )
    assert len(refits.members) == 3
    first = outputs(refits.members[0], X)
    assert np.abs(outputs(refits.members[1], X) - first).max() > 50 * ROUNDING
    for member, rows in zip(refits.members, resample(len(X), 5, 3, 1), strict=True):
        distinct, counts = np.unique(rows, return_counts=True)
        chosen = [X[i] for i in distinct], [z[i] for i in distinct]
        if not isinstance(X, list):
            chosen = np.stack(chosen[0]), np.array(chosen[1])
        alone = clone(member).fit(*chosen, sample_weight=counts.astype(float))
        assert_same_fit(member, alone, X)


def test_an_ensemble_is_fits_one_by_one():
    X, z = samples()
    refits = deep_ensemble(regressor(), X, z, n_estimators=3, random_state=0)
    for member in refits.members:
        assert_same_fit(member, clone(member).fit(X, z), X)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_cross_validated_risk_is_of_fits_one_by_one(weighted):
    X, z = samples()
    weights = np.linspace(0, 1, len(X)) if weighted else None
    model = regressor(random_state=3)
    risk = cross_validated_risk(model, X, z, cv=3, sample_weight=weights)
    for fold in risk.folds:
        test = np.isin(np.arange(len(X)), fold.rows)
        of_fold = {} if weights is None else {"sample_weight": weights[~test]}
        alone = clone(model).fit(X[~test], z[~test], **of_fold)
        expected = (alone.predict(X[test]) - z[test]) ** 2
        np.testing.assert_allclose(risk.losses[test], expected, rtol=0, atol=10 * ROUNDING)


def draw(n, random_state):
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(n, 8, 2))
    return X, last_input(X) + 0.1 * rng.normal(size=n)


def last_input(X):
    return X[:, -1, 0]


@pytest.mark.slow
def test_an_excess_risk_is_of_fits_one_by_one():
    """Of training samples, and of the population that the best function is fitted to."""
    given = {
        "n_monte_carlo": 60, "n_train": 40, "n_replicates": 4, "n_population": 80, "n_starts": 3,
        "random_state": 0,
    }  # fmt: skip
    with patch(
        "tsrnn.erm._minimisation.train_replicates", side_effect=train_replicates
    ) as training:
        together = excess_risk(regressor(), last_input, draw, **given)
    assert [len(call.args[0]) for call in training.call_args_list] == [3, 4]
    with patch.object(ParaRNNRegressor, "_can_be_fitted_together", lambda self: False):
        alone = excess_risk(regressor(), last_input, draw, **given)
    np.testing.assert_allclose(together.by_replicate, alone.by_replicate, rtol=ROUNDING)
    assert np.std(alone.by_replicate) > 50 * ROUNDING * np.mean(alone.by_replicate)
    for name in ("excess", "estimation", "approximation"):
        one, other = getattr(together, name), getattr(alone, name)
        np.testing.assert_allclose(one, other, rtol=ROUNDING, atol=ROUNDING**2)


@pytest.mark.slow
def test_passes_and_processes_give_the_same_members():
    X, z = samples()
    model = regressor(max_epochs=2, random_state=0).fit(X, z)
    arguments = {"n_estimators": 4, "random_state": 0}
    whole = block_bootstrap(model, X, z, **arguments)
    with patch("tsrnn.erm._minimisation.NUMBERS_TOGETHER", 5_000):
        small = block_bootstrap(model, X, z, **arguments)
    spread = block_bootstrap(model, X, z, **arguments, n_jobs=2)
    for one, two, three in zip(whole.members, small.members, spread.members, strict=True):
        assert_same_fit(one, two, X)
        assert_same_fit(one, three, X)


def count_trainings(estimator, X, z):
    """Trainings by Lightning, and networks of each training in one pass, in a bootstrap."""
    with (
        patch("tsrnn.training.train", side_effect=train) as alone,
        patch("tsrnn.erm._minimisation.train_replicates", side_effect=train_replicates) as together,
    ):
        block_bootstrap(estimator, X, z, n_estimators=3, random_state=0)
    return alone.call_count, [len(call.args[0]) for call in together.call_args_list]


@pytest.mark.slow
def test_small_networks_are_trained_in_one_pass_and_others_one_by_one():
    X, z = samples()

    class Mine(ParaRNNRegressor):
        def fit(self, X, y, sample_weight=None):
            return super().fit(X, y, sample_weight)

    small = {"max_epochs": 1, "random_state": 0}
    assert count_trainings(regressor(**small).fit(X, z), X, z) == (0, [3])
    for alone in (
        regressor(**small, callbacks=[pl.Callback()]),
        regressor(**small, n_layers=2, layer_options={"dropout": 0.1}),
        Mine(4, **small),
    ):
        assert count_trainings(alone.fit(X, z), X, z) == (3, [])
    with patch("tsrnn.erm._minimisation.NUMBERS_TOGETHER", 1):
        assert count_trainings(regressor(**small).fit(X, z), X, z) == (3, [])


def test_resamples_without_a_class_are_trained_apart():
    X, y = labels(20)
    y = np.where(np.arange(20) == 7, "rare", np.where(y == "up", "up", "down"))
    model = ParaRNNClassifier(4, max_epochs=1, random_state=0).fit(X, y)
    refits = block_bootstrap(model, X, y, n_estimators=6, random_state=0)
    sizes = {len(member.classes_) for member in refits.members}
    assert sizes == {2, 3}


def test_a_failure_names_the_refit():
    X, z = samples(30)
    X[4] = 1e30  # far from all others, and in some resamples only
    model = regressor(max_epochs=2, standardize=False, nonlinearity="identity", random_state=0)
    fitted = clone(model).fit(X[5:], z[5:])
    with pytest.raises(FloatingPointError, match="training diverged: the loss was") as raised:
        block_bootstrap(fitted, X, z, n_estimators=4, random_state=0)
    with_it = [4 in rows for rows in resample(30, 1, 4, 0)]
    assert raised.value.__notes__ == [f"raised by refit {1 + with_it.index(True)} of 4"]
