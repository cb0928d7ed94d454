"""Regressor and classifier against loops over steps, scikit-learn's metrics and least squares."""

import copy
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.exceptions import NotFittedError
from sklearn.metrics import (
    accuracy_score,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
)

from tsrnn.erm import ParaRNNClassifier, ParaRNNRegressor
from tsrnn.erm._sequences import read_sequences
from tsrnn.erm._training import (
    LOSSES,
    EmpiricalRisk,
    RiskOfSamples,
    SampleEpoch,
    TrainingData,
    scaled,
    squared_error,
)
from tsrnn.kernels import Cell
from tsrnn.layers import CELLS

RNG = np.random.default_rng(2)
LENGTHS = (3, 1, 4, 1, 5, 9, 2, 6, 5, 3)
RAGGED = [RNG.normal(loc=3.0, scale=2.0, size=(n, 2)) for n in LENGTHS]
ARRAY = RNG.normal(loc=-1.0, scale=5.0, size=(10, 4, 2))
Z = RNG.normal(loc=20.0, scale=3.0, size=10)
LABELS = np.array(list("abcabcabca"))
STEPS = [part.sum(1) for part in RAGGED]
SMALL = {"hidden_size": 4, "max_epochs": 1, "random_state": 0}


def _leaky(h, u, w):
    return (w[0] * h[0] + u[0],)


LEAKY = Cell("leaky_sum", n=1, m=1, p=1, step=_leaky)


def regressor(**params):
    return ParaRNNRegressor(**SMALL | params)


def classifier(**params):
    return ParaRNNClassifier(**SMALL | params)


def by_loop(model, sequence):
    """Outputs at every step of the network of a fitted model, by the equations, in float64."""
    network = model.network_
    own = {name: p.numpy().astype(float) for name, p in network.state_dict().items()}
    x = np.asarray(sequence, float)
    if model.input_scaler_ is not None:
        x = (x - model.input_scaler_.mean_) / model.input_scaler_.scale_
    if "input.weight" in own:
        x = x @ own["input.weight"].T + own["input.bias"]
    size, blocks = network.rnn.block_size, network.rnn.n_blocks
    activation = {"tanh": np.tanh, "relu": lambda v: v.clip(0), "identity": lambda v: v}
    sigma = activation[network.rnn.nonlinearity]
    for layer in range(network.rnn.num_layers):
        U, W, b = (own[f"rnn.{part}_l{layer}"] for part in ("weight_ih", "weight_hh", "bias"))
        whole = np.zeros((size * blocks, size * blocks))
        for k in range(blocks):
            places = np.arange(size) * blocks + k
            whole[np.ix_(places, places)] = W[..., k]
        h, states = np.zeros(size * blocks), []
        for x_t in x:
            h = sigma(whole @ h + U @ x_t + b)
            states.append(h)
        x = np.array(states)
    if network.aggregation == "fc":
        x = (x @ own["ffn.0.weight"].T + own["ffn.0.bias"]).clip(0)
    return x @ own["output.weight"].T + own["output.bias"]


def values_by_loop(model, sequence):
    """Predictions of a regressor at every step."""
    found = by_loop(model, sequence) * model.target_scaler_.scale_ + model.target_scaler_.mean_
    return found if model.bound is None else found.clip(-model.bound, model.bound)


class TestOutputs:
    @pytest.mark.parametrize("X", [ARRAY, RAGGED], ids=["equal", "unequal"])
    @pytest.mark.parametrize("many", [False, True], ids=["last", "steps"])
    @pytest.mark.parametrize(
        "params",
        [
            {},
            {"n_layers": 2, "block_size": 1, "aggregation": "linear"},
            {"nonlinearity": "relu", "input_projection": True, "bound": 20.0},
            {"block_size": 4, "standardize": False, "nonlinearity": "identity"},
        ],
    )
    def test_are_those_of_a_loop_over_steps(self, X, many, params):
        y = ([part.sum(1) + 15 for part in X]) if many else Z
        model = regressor(many_to_many=many, **params).fit(X, y)
        found = model.predict(X)
        for i, sequence in enumerate(X):
            expected = values_by_loop(model, sequence)[:, 0]
            assert_allclose(found[i], expected if many else expected[-1], rtol=3e-5, atol=1e-4)

    def test_are_of_the_layer_alone_without_an_aggregation(self):
        model = regressor(n_layers=3, aggregation="linear").fit(RAGGED, Z)
        assert_allclose(
            model.predict(RAGGED), [values_by_loop(model, x)[-1, 0] for x in RAGGED], rtol=1e-5
        )

    @pytest.mark.parametrize("bound", [None, 0.1])
    def test_probabilities_are_a_softmax_of_truncated_outputs(self, bound):
        model = classifier(bound=bound).fit(RAGGED, LABELS)
        outputs = np.array([by_loop(model, x)[-1] for x in RAGGED])
        if bound:
            assert np.abs(outputs).max() > bound
            outputs = outputs.clip(-bound, bound)
        assert_allclose(model.predict_proba(RAGGED), softmax(outputs, axis=1), atol=1e-5)
        assert_allclose(model.predict_proba(RAGGED).sum(1), 1.0)
        assert_allclose(np.exp(model.predict_log_proba(RAGGED)), model.predict_proba(RAGGED))
        assert_array_equal(
            model.predict(RAGGED), model.classes_[model.predict_proba(RAGGED).argmax(1)]
        )


@pytest.mark.few("lstm", "lru")
@pytest.mark.parametrize("cell", CELLS)
def test_predictions_do_not_depend_on_the_samples_beside_them(cell):
    X = np.random.default_rng(0).normal(size=(40, 5, 2))
    model = regressor(cell=cell, hidden_size=24).fit(X, X[:, -1, 0])
    alone = np.concatenate([model.predict(x[None]) for x in X])
    # A layer of blocks projects in the kernel; others by torch's products, in float32.
    rounding = 1e-12 if cell in ("rnn", "gru", "lstm") else 2e-6
    assert_allclose(alone, model.predict(X), rtol=0, atol=rounding)


class TestPadding:
    @pytest.mark.few("rnn", "lstm", "lru", "cell8")
    @pytest.mark.parametrize("cell", [*CELLS, LEAKY])
    def test_a_sequence_alone_has_the_same_prediction(self, cell):
        last = regressor(cell=cell, n_layers=2).fit(RAGGED, Z)
        steps = [np.full(len(sequence), z) for sequence, z in zip(RAGGED, Z, strict=True)]
        every = regressor(cell=cell, n_layers=2, many_to_many=True).fit(RAGGED, steps)
        assert np.ptp(last.predict(RAGGED)) > 0
        for model in (last, every):
            found = model.predict(RAGGED)
            for i, sequence in enumerate(RAGGED):
                assert_allclose(found[i], model.predict([sequence])[0], rtol=2e-5, atol=2e-5)

    @pytest.mark.parametrize("cell", CELLS)
    def test_the_rest_of_a_batch_does_not_matter_for_training(self, cell):
        """A batch's risk is the mean of those of its sequences alone, so are gradients."""
        model = regressor(cell=cell).fit(RAGGED, Z)
        network = model.network_
        data = TrainingData(
            scaled(read_sequences(RAGGED, "ParaRNNRegressor"), model.input_scaler_),
            torch.tensor(Z[:, None] / 20, dtype=torch.float32),
            None,
            False,
        )
        risk = EmpiricalRisk(network, "squared_error", "last")

        def gradients(samples):
            network.zero_grad()
            risk(data.batch(samples)).backward()
            return [p.grad.clone() for p in network.parameters() if p.grad is not None]

        together = gradients(torch.arange(10))
        alone = [gradients(torch.tensor([i])) for i in range(10)]
        for whole, *parts in zip(together, *alone, strict=True):
            torch.testing.assert_close(whole, torch.stack(parts).mean(0), rtol=1e-4, atol=1e-5)

    @given(lengths=st.lists(st.integers(1, 6), min_size=2, max_size=5), k=st.integers(1, 2))
    @settings(max_examples=6, deadline=None)
    def test_shapes_follow_those_of_the_samples(self, lengths, k):
        rng = np.random.default_rng(0)
        X = [rng.normal(size=(n, 3)) for n in lengths]
        y = [rng.normal(size=(n, k)) for n in lengths]
        model = regressor(many_to_many=True).fit(X, y)
        assert [part.shape for part in model.predict(X)] == [(n, k) for n in lengths]
        assert np.isfinite(model.score(X, y))
        flat = regressor().fit(X, rng.normal(size=(len(X), k)))
        assert flat.predict(X).shape == (len(X), k)


class TestLoss:
    """What is lowered, by scikit-learn's metrics."""

    @pytest.mark.parametrize("many", [False, True])
    @pytest.mark.parametrize(
        ("loss", "metric"),
        [("squared_error", mean_squared_error), ("absolute_error", mean_absolute_error)],
    )
    def test_is_the_weighted_mean_error(self, loss, metric, many):
        y = [np.column_stack([part, -part]) for part in STEPS] if many else np.c_[Z, -Z]
        model = regressor(many_to_many=many, standardize=False, loss=loss).fit(RAGGED, y)
        reading = "every" if many else "last"
        rows = np.concatenate(y) if many else y
        weights = RNG.uniform(0.1, 2.0, size=len(rows))
        data = TrainingData(
            read_sequences(RAGGED, type(model).__name__), torch.tensor(rows).float(), weights, many
        )
        found = np.concatenate(model.predict(RAGGED)) if many else model.predict(RAGGED)
        expected = metric(rows, found, sample_weight=weights)
        samples = torch.arange(10)
        lowered = EmpiricalRisk(model.network_, loss, reading)(data.batch(samples))
        assert_allclose(lowered.item(), expected, rtol=1e-5)
        held_out = RiskOfSamples(model.network_, data, samples, loss, reading, None)()
        assert_allclose(held_out, expected, rtol=1e-5)

    def test_is_the_weighted_cross_entropy(self):
        model = classifier(standardize=False).fit(RAGGED, LABELS)
        codes = np.searchsorted(model.classes_, LABELS)
        weights = RNG.uniform(size=10)
        data = TrainingData(
            read_sequences(RAGGED, type(model).__name__), torch.tensor(codes), weights, False
        )
        lowered = EmpiricalRisk(model.network_, "log_loss", "last")(data.batch(torch.arange(10)))
        expected = log_loss(LABELS, model.predict_proba(RAGGED), sample_weight=weights)
        assert_allclose(lowered.item(), expected, rtol=1e-5)

    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize(
        ("loss", "metric"),
        [("squared_error", mean_squared_error), ("absolute_error", mean_absolute_error)],
    )
    def test_reported_risks_are_of_the_parts(self, loss, metric, weighted):
        weights = np.arange(1.0, 11.0) if weighted else None
        model = regressor(
            loss=loss, validation_split="last", validation_fraction=0.3, bound=21.0
        ).fit(RAGGED, Z, weights)
        found = model.predict(RAGGED)
        assert (model.n_train_, model.n_validation_) == (7, 3)
        for risk, part in (
            (model.training_risk_, slice(0, 7)),
            (model.validation_risk_, slice(7, 10)),
        ):
            own = None if weights is None else weights[part]
            assert_allclose(risk.value, metric(Z[part], found[part], sample_weight=own))

    def test_reported_risks_of_classes_are_of_the_parts(self):
        model = classifier(validation_split="last").fit(RAGGED, LABELS)
        expected = log_loss(LABELS[:9], model.predict_proba(RAGGED[:9]), labels=model.classes_)
        assert_allclose(model.training_risk_.value, expected)
        assert_allclose(
            model.validation_risk_.value,
            log_loss(LABELS[9:], model.predict_proba(RAGGED[9:]), labels=model.classes_),
        )

    def test_reported_risks_of_steps_are_means_over_all_steps(self):
        model = regressor(many_to_many=True, early_stopping=False).fit(RAGGED, STEPS)
        losses = [
            mean_squared_error(y, found)
            for y, found in zip(STEPS, model.predict(RAGGED), strict=True)
        ]
        assert_allclose(model.training_risk_.value, np.average(losses, weights=LENGTHS))
        assert_allclose(model.training_risk_.losses, losses)

    @pytest.mark.parametrize("kind", ["regressor", "classifier"])
    def test_reported_risks_count_steps_by_their_weights(self, kind):
        weights = [RNG.uniform(0.5, 1.0, size=n) for n in LENGTHS]
        weights[5][2:] = 0.0
        if kind == "regressor":
            y = [part.copy() for part in STEPS]
            y[5][2:] = 1e15
            model = regressor(many_to_many=True, early_stopping=False).fit(RAGGED, y, weights)
            found = model.predict(RAGGED)
            losses = [
                mean_squared_error(a, b, sample_weight=w)
                for a, b, w in zip(y, found, weights, strict=True)
            ]
        else:
            y = [np.where(part > 6, "up", "down") for part in STEPS]
            model = classifier(many_to_many=True, early_stopping=False).fit(RAGGED, y, weights)
            found = model.predict_proba(RAGGED)
            losses = [
                log_loss(a, p, sample_weight=w, labels=model.classes_)
                for a, p, w in zip(y, found, weights, strict=True)
            ]
        own = [part.sum() for part in weights]
        assert_allclose(model.training_risk_.value, np.average(losses, weights=own), rtol=1e-6)
        assert_allclose(model.training_risk_.losses, losses, rtol=1e-6)

    def test_scores_are_over_all_steps(self):
        weights = [RNG.uniform(0.5, 1.0, size=n) for n in LENGTHS]
        model = regressor(many_to_many=True).fit(RAGGED, STEPS)
        y, found = np.concatenate(STEPS), np.concatenate(model.predict(RAGGED))
        assert_allclose(model.score(RAGGED, STEPS), r2_score(y, found))
        assert_allclose(
            model.score(RAGGED, STEPS, weights),
            r2_score(y, found, sample_weight=np.concatenate(weights)),
        )
        y = [np.where(part > 6, "up", "down") for part in STEPS]
        model = classifier(many_to_many=True).fit(RAGGED, y)
        expected = accuracy_score(np.concatenate(y), np.concatenate(model.predict(RAGGED)))
        assert model.score(RAGGED, y) == expected


class TestEstimates:
    """Functions that are known."""

    def test_a_linear_network_comes_to_least_squares_on_lags(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 4))
        z = X @ [0.0, 0.3, -0.5, 1.0] + 1.0 + 0.5 * rng.normal(size=300)
        linear = {"nonlinearity": "identity", "aggregation": "linear", "early_stopping": False}
        model = regressor(hidden_size=12, learning_rate=0.02, max_epochs=40, **linear).fit(X, z)
        lags = np.column_stack([np.ones(300), X])
        least = lags @ np.linalg.lstsq(lags, z, rcond=None)[0]
        distance = np.mean((model.predict(X) - least) ** 2) / np.var(least)
        assert distance < 1e-3
        assert 0.999 < model.training_risk_.value / np.mean((z - least) ** 2) < 1.02

    @pytest.mark.slow
    def test_absolute_errors_give_the_median(self):
        rng = np.random.default_rng(1)
        z = 2.0 + rng.exponential(size=500)
        X = np.ones((500, 2, 1))
        fit = {"early_stopping": False, "learning_rate": 0.02, "max_epochs": 15}
        median = regressor(loss="absolute_error", **fit).fit(X, z).predict(X[:1])
        mean = regressor(loss="squared_error", **fit).fit(X, z).predict(X[:1])
        assert_allclose(median, np.median(z), atol=0.03)
        assert_allclose(mean, np.mean(z), atol=0.03)

    def test_log_loss_gives_the_share_of_classes(self):
        y = np.random.default_rng(2).choice(3, size=500, p=[0.6, 0.3, 0.1])
        X = np.ones((500, 2, 1))
        model = classifier(early_stopping=False, learning_rate=0.02, max_epochs=15).fit(X, y)
        assert_allclose(model.predict_proba(X[:1])[0], np.bincount(y) / 500, atol=0.03)

    def test_weights_move_the_mean(self):
        z = np.repeat([0.0, 1.0], 200)
        weights = np.where(z == 1, 3.0, 1.0)
        model = regressor(early_stopping=False, learning_rate=0.02, max_epochs=12)
        found = model.fit(np.ones((400, 2, 1)), z, weights).predict(np.ones((1, 2, 1)))
        assert_allclose(found, 0.75, atol=0.03)

    def test_a_constant_target_is_learned(self):
        model = regressor(max_epochs=15, learning_rate=0.02).fit(ARRAY, np.full(10, 7.0))
        assert_allclose(model.predict(ARRAY), 7.0, atol=0.1)

    def test_a_task_of_one_step(self):
        X = np.random.default_rng(3).normal(size=(200, 1, 1))
        model = regressor(hidden_size=16, max_epochs=20, learning_rate=0.02).fit(X, X[:, 0, 0])
        assert model.score(X, X[:, 0, 0]) > 0.98


class TestWeights:
    ABSURD = (0, 4, 7)

    @pytest.mark.parametrize("split", ["random", "last"])
    @pytest.mark.parametrize("estimator", ["regressor", "classifier"])
    def test_samples_of_weight_0_are_as_if_left_out(self, split, estimator):
        make = regressor if estimator == "regressor" else classifier
        rows = np.setdiff1d(np.arange(10), self.ABSURD)
        weights = np.linspace(1, 2, 10)
        weights[[*self.ABSURD]] = 0.0
        y = Z.copy() if estimator == "regressor" else LABELS
        if estimator == "regressor":
            y[[*self.ABSURD]] = [1e300, -1e18, 1e9]
        model = make(validation_split=split, max_epochs=2).fit(ARRAY, y, weights)
        without = make(validation_split=split, max_epochs=2)
        without.fit(ARRAY[rows], y[rows], weights[rows])
        predict = "predict" if estimator == "regressor" else "predict_proba"
        assert_allclose(getattr(model, predict)(ARRAY), getattr(without, predict)(ARRAY), rtol=1e-6)
        assert model.n_train_ + model.n_validation_ == 7
        assert_allclose(model.training_risk_.value, without.training_risk_.value)
        assert_allclose(model.validation_risk_.value, without.validation_risk_.value)

    def test_steps_of_weight_0_may_have_any_target(self):
        weights = [np.ones(n) for n in LENGTHS]
        absurd = [part.copy() for part in STEPS]
        for i, step, value in ((4, 2, 1e300), (5, 8, -1e30), (0, 0, 5.0)):
            weights[i][step], absurd[i][step] = 0.0, value
        fits = [
            regressor(many_to_many=True, max_epochs=2, standardize=s).fit(RAGGED, y, weights)
            for y in (STEPS, absurd)
            for s in (True, False)
        ]
        for one, other in ((0, 2), (1, 3)):
            for a, b in zip(fits[one].predict(RAGGED), fits[other].predict(RAGGED), strict=True):
                assert_array_equal(a, b)
            assert fits[one].training_risk_.value == fits[other].training_risk_.value

    @pytest.mark.parametrize("many", [False, True])
    def test_only_ratios_of_weights_matter(self, many):
        y = STEPS if many else Z
        weights = [np.linspace(1, 2, n) for n in LENGTHS] if many else np.linspace(1, 2, 10)
        double = [2 * part for part in weights] if many else 2 * weights
        one = regressor(many_to_many=many).fit(RAGGED, y, weights).predict(RAGGED)
        two = regressor(many_to_many=many).fit(RAGGED, y, double).predict(RAGGED)
        assert_array_equal(np.hstack(one), np.hstack(two))

    def test_a_weight_of_a_sample_is_one_of_all_its_steps(self):
        own = np.linspace(1, 2, 10)
        of_steps = [np.full(n, w) for n, w in zip(LENGTHS, own, strict=True)]
        one = regressor(many_to_many=True).fit(RAGGED, STEPS, own)
        two = regressor(many_to_many=True).fit(RAGGED, STEPS, of_steps)
        assert_array_equal(np.hstack(one.predict(RAGGED)), np.hstack(two.predict(RAGGED)))
        assert one.training_risk_.value == two.training_risk_.value

    def test_validation_needs_two_samples_of_some_weight(self):
        weights = np.zeros(10)
        weights[3] = 1.0
        with pytest.raises(ValueError, match="n_samples = 1 of a weight above 0"):
            regressor().fit(ARRAY, Z, weights)


class TestBound:
    def test_training_goes_on_as_without_it(self):
        free = regressor(early_stopping=False, max_epochs=2).fit(ARRAY, Z)
        losses = [epoch["train_loss"] for epoch in free.history_]
        bound = regressor(early_stopping=False, max_epochs=2, bound=0.5).fit(ARRAY, Z)
        assert [epoch["train_loss"] for epoch in bound.history_] == losses

    @pytest.mark.parametrize("bound", [0.5, 19.9, 1e6])
    def test_predictions_are_truncated(self, bound):
        model = regressor(early_stopping=False).fit(ARRAY, Z)
        free = model.predict(ARRAY)
        found = regressor(early_stopping=False, bound=bound).fit(ARRAY, Z).predict(ARRAY)
        assert np.abs(found).max() <= bound
        assert_allclose(found, free.clip(-bound, bound), rtol=1e-6)

    def test_validation_judges_truncated_predictions(self):
        model = regressor(bound=0.5, validation_split="last").fit(ARRAY, Z)
        error = (Z[9] - 0.5) / model.target_scaler_.scale_[0]
        assert_allclose(model.history_[0]["val_loss"], error**2, rtol=1e-5)


class TestValidation:
    def test_last_is_the_last(self):
        """What the last samples say is not learned from."""
        other = Z.copy()
        other[-3:] *= -100
        params = {"validation_split": "last", "validation_fraction": 0.3, "patience": None}
        a, b = (regressor(**params).fit(ARRAY, z) for z in (Z, other))
        assert a.n_validation_ == 3
        assert a.history_[0]["train_loss"] == b.history_[0]["train_loss"]
        assert a.history_[0]["val_loss"] != b.history_[0]["val_loss"]
        assert_allclose(a.target_scaler_.mean_, Z[:-3].mean())
        assert_allclose(a.input_scaler_.mean_, ARRAY[:-3].mean((0, 1)))

    def test_without_early_stopping_all_samples_are_learned_from(self):
        model = regressor(early_stopping=False, max_epochs=3).fit(ARRAY, Z)
        assert (model.n_train_, model.n_validation_) == (10, 0)
        assert model.validation_risk_ is None
        assert len(model.history_) == 3
        assert_allclose(model.target_scaler_.mean_, Z.mean())
        assert "No samples were held out" in str(model.summary())

    def test_a_partial_fit_has_no_held_out_part(self):
        model = regressor().fit(ARRAY, Z).partial_fit(ARRAY[:4], Z[:4])
        assert (model.n_train_, model.n_validation_) == (13, 0)
        assert model.validation_risk_ is None
        assert model.summary().facts["Samples"] == 13

    def test_a_random_part_keeps_the_shares_of_classes(self):
        y = np.repeat([0, 1], [160, 40])
        X = y[:, None] * np.ones((200, 2))
        for seed in range(3):
            model = classifier(random_state=seed, validation_fraction=0.2).fit(X, y)
            assert (model.n_train_, model.n_validation_) == (160, 40)
            assert_allclose(model.input_scaler_.mean_, 0.2)

    def test_the_best_epoch_is_kept(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(40, 4, 2))
        z = X[:, -1].sum(1) + 2 * rng.normal(size=40)
        model = regressor(
            hidden_size=8, max_epochs=8, learning_rate=0.01, validation_fraction=0.5
        ).fit(X, z)
        losses = [epoch["val_loss"] for epoch in model.history_]
        assert 0 < model.best_epoch_ < 8
        assert model.best_epoch_ == np.argmin(losses) + 1
        scale = model.target_scaler_.scale_[0]
        assert_allclose(model.validation_risk_.value, min(losses) * scale**2, rtol=1e-5)

    def test_patience_ends_it(self):
        model = regressor(max_epochs=50, patience=2, learning_rate=0.5).fit(ARRAY, Z)
        losses = [epoch["val_loss"] for epoch in model.history_]
        assert len(losses) < 50
        assert len(losses) - model.best_epoch_ == 2

    @pytest.mark.parametrize("n", [1, 2, 3])
    def test_few_samples(self, n):
        model = regressor(early_stopping=False).fit(ARRAY[:n], Z[:n])
        assert np.isfinite(model.predict(ARRAY)).all()
        if n > 1:
            assert regressor().fit(ARRAY[:n], Z[:n]).n_train_ == n - 1
            assert classifier().fit(ARRAY[:n], LABELS[:n]).predict(ARRAY).shape == (10,)
        else:
            with pytest.raises(ValueError, match="set early_stopping=False"):
                regressor().fit(ARRAY[:n], Z[:n])


class TestReproducibility:
    @pytest.mark.parametrize("seed", [7, np.random.default_rng, np.random.RandomState])
    def test_the_same_random_state_gives_the_same_estimate(self, seed):
        fits = [
            regressor(random_state=seed if seed == 7 else seed(7)).fit(RAGGED, Z) for _ in range(2)
        ]
        assert_array_equal(fits[0].predict(RAGGED), fits[1].predict(RAGGED))
        assert fits[0].history_ == fits[1].history_

    def test_others_give_others(self):
        found = [regressor(random_state=s).fit(RAGGED, Z).predict(RAGGED) for s in (1, 2, None)]
        assert np.ptp(found, axis=0).min() > 0

    def test_nothing_global_is_touched(self, tmp_path, monkeypatch, capfd):
        regressor().fit(RAGGED, Z)
        monkeypatch.chdir(tmp_path)

        def state():
            return (
                torch.get_rng_state().tolist(),
                np.random.get_state()[1].tolist(),  # noqa: NPY002
                torch.get_num_threads(),
                torch.get_default_dtype(),
                list(warnings.filters),
            )

        before = state()
        capfd.readouterr()
        model = regressor().fit(RAGGED, Z).partial_fit(RAGGED, Z)
        classifier(many_to_many=True).fit(RAGGED, [part > 6 for part in STEPS]).predict(RAGGED)
        model.predict(RAGGED)
        assert state() == before
        assert capfd.readouterr() == ("", "")
        assert not [*tmp_path.iterdir()]

    def test_arguments_are_stored_as_they_came(self):
        options = {"dropout": 0.1}
        model = regressor(layer_options=options, n_layers=2)
        model.fit(RAGGED, Z)
        assert model.layer_options is options
        assert options == {"dropout": 0.1}


class TestPartialFit:
    def test_is_adam_on_the_mean_loss(self):
        """Against a loop in torch, over two calls: the optimiser's moments are carried on."""
        X, z = ARRAY.astype("f4"), Z[:, None]
        model = regressor(standardize=False, learning_rate=0.01, weight_decay=0.1)
        model.partial_fit(X, z / 20)
        network = copy.deepcopy(model.network_)
        moments = copy.deepcopy(model.fitted_.course.moments)
        model.partial_fit(X[:6], z[:6] / 20)

        parameters = [*network.parameters()]
        optimizer = torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.1)
        state = optimizer.state_dict()
        optimizer.load_state_dict({"state": moments, "param_groups": state["param_groups"]})
        output = network(torch.tensor(X[:6]))[0][:, -1]
        (output - torch.tensor(z[:6] / 20).float()).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        for mine, loops in zip(model.network_.parameters(), parameters, strict=True):
            torch.testing.assert_close(mine, loops, rtol=1e-4, atol=1e-5)

    def test_the_first_call_learns_the_scales(self):
        model = regressor().partial_fit(ARRAY, Z)
        assert_allclose(model.target_scaler_.mean_, Z.mean())
        scaler = model.target_scaler_
        model.partial_fit(10 * ARRAY, 100 + Z)
        assert model.target_scaler_ is scaler
        assert model.n_train_ == 20
        assert_allclose(
            model.training_risk_.value, mean_squared_error(100 + Z, model.predict(10 * ARRAY))
        )

    def test_goes_on_from_a_fit(self):
        model = regressor().fit(ARRAY, Z)
        before = model.predict(ARRAY)
        risk = model.training_risk_.value
        for _ in range(5):
            model.partial_fit(ARRAY, Z)
        assert model.training_risk_.value < risk
        assert (model.predict(ARRAY) != before).any()

    def test_a_fit_begins_anew(self):
        model = regressor().partial_fit(ARRAY, 5 * Z)
        assert_array_equal(
            model.fit(RAGGED, Z).predict(RAGGED), regressor().fit(RAGGED, Z).predict(RAGGED)
        )

    def test_classes_of_later_calls_are_named_in_the_first(self):
        model = classifier().partial_fit(ARRAY, np.zeros(10, int), classes=[2, 0, 1])
        assert_array_equal(model.classes_, [0, 1, 2])
        assert model.predict_proba(ARRAY).shape == (10, 3)
        model.partial_fit(ARRAY, np.full(10, 2))
        with pytest.raises(ValueError, match=r"among \[0, 1, 2\]; at sample 0 it has 3, unseen"):
            model.partial_fit(ARRAY, np.full(10, 3))
        with pytest.raises(ValueError, match=r"those of the first call, \[0, 1, 2\]; got \[0, 1\]"):
            model.partial_fit(ARRAY, np.zeros(10, int), classes=[0, 1])

    @pytest.mark.parametrize("classes", [[1], []])
    def test_one_class_is_too_few(self, classes):
        with pytest.raises(ValueError, match="at least 2 classes"):
            classifier().partial_fit(ARRAY, np.ones(10, int), classes=classes)

    def test_an_unseen_label_of_a_step_is_named(self):
        y = [np.arange(n) % 2 for n in LENGTHS]
        model = classifier(many_to_many=True).partial_fit(RAGGED, y)
        y[5][7] = 9
        with pytest.raises(ValueError, match="at sample 5, step 7 it has 9, unseen before"):
            model.partial_fit(RAGGED, y)

    def test_targets_keep_their_shape(self):
        model = regressor().partial_fit(ARRAY, Z)
        with pytest.raises(ValueError, match=r"must have shape \(\), as in the first fit"):
            model.partial_fit(ARRAY, np.c_[Z, Z])


class TestFailures:
    """A fit that fails leaves the estimator as it was."""

    def test_what_was_never_fitted_is_not(self):
        model = regressor(learning_rate=1e30, nonlinearity="identity", max_epochs=3)
        with pytest.raises(FloatingPointError, match="training diverged"):
            model.fit(ARRAY, Z)
        with pytest.raises(NotFittedError):
            model.predict(ARRAY)

    @pytest.mark.parametrize("method", ["fit", "partial_fit"])
    def test_what_was_fitted_stays(self, method):
        model = regressor(nonlinearity="identity").fit(ARRAY, Z).partial_fit(ARRAY, Z)
        before, moments = model.predict(ARRAY), copy.deepcopy(model.fitted_.course.moments)
        model.set_params(learning_rate=1e30)
        with pytest.raises(FloatingPointError):
            getattr(model, method)(ARRAY, Z)
        with pytest.raises(ValueError, match="inconsistent numbers"):
            getattr(model, method)(ARRAY, Z[:3])
        assert_array_equal(model.predict(ARRAY), before)
        assert model.n_features_in_ == 2
        for parameter, own in moments.items():
            for name, value in own.items():
                assert torch.equal(value, model.fitted_.course.moments[parameter][name])

    def test_a_prediction_that_is_no_number_is_an_error(self):
        """Not NaN, nor the first class."""
        far = [part * 1e30 if i in (5, 7) else part for i, part in enumerate(RAGGED)]
        for make, y in ((regressor, Z), (classifier, LABELS)):
            model = make(cell="attention").fit(RAGGED, y)
            with pytest.raises(FloatingPointError, match="2 of 10 targets, the first at sample 5:"):
                model.predict(far)

    @pytest.mark.parametrize("method", ["predict", "score", "summary", "save", "block_shares_"])
    def test_without_a_fit_there_is_nothing(self, method):
        given_arguments = {"predict": (ARRAY,), "score": (ARRAY, Z), "save": ("nowhere",)}
        with pytest.raises(NotFittedError, match="This ParaRNNRegressor instance is not fitted"):
            getattr(regressor(), method)(*given_arguments.get(method, ()))

    @pytest.mark.parametrize(
        ("params", "error", "message"),
        [
            ({"hidden_size": 5}, ValueError, "hidden_size=5, block_size=2"),
            ({"hidden_size": 2.0}, TypeError, "hidden_size must be a positive integer; got 2.0"),
            ({"cell": "x"}, ValueError, "cell must be one of .* got 'x'"),
            ({"cell": "lru", "nonlinearity": "relu"}, ValueError, "no choice of cell='lru'"),
            ({"layer_options": {"dt": 1}}, ValueError, "layer_options of cell='rnn' may hold"),
            ({"aggregation": "sum"}, ValueError, "aggregation must be one of"),
            ({"bound": 0}, ValueError, "bound must be a number greater than 0; got 0"),
            ({"loss": "huber"}, ValueError, "loss must be one of"),
            ({"validation_fraction": 0.7}, ValueError, "at most 0.5; got 0.7"),
            ({"validation_split": "first"}, ValueError, "validation_split must be one of"),
            ({"standardize": 1}, TypeError, "standardize must be True or False"),
            ({"patience": 0}, ValueError, "patience must be a positive integer"),
            ({"random_state": "x"}, TypeError, "random_state must be an integer"),
            ({"callbacks": 3}, TypeError, "callbacks must be a list"),
            (
                {"pooling": "sum"},
                ValueError,
                r"pooling must be one of \('last', 'mean', 'max'\); got 'sum'",
            ),
            (
                {"pooling": "mean", "many_to_many": True},
                ValueError,
                "pooling is for one target per sample",
            ),
            ({"device": "abacus"}, ValueError, "device must be .* got 'abacus'"),
        ],
    )
    def test_arguments_are_checked_in_fit(self, params, error, message):
        model = regressor(**params)
        with pytest.raises(error, match=message):
            model.fit(ARRAY, Z)


class TestLosses:
    @given(output=st.lists(st.floats(-50, 50), min_size=2, max_size=5), place=st.integers(0, 10))
    @settings(max_examples=50, deadline=None)
    def test_cross_entropy_is_minus_the_log_of_a_softmax(self, output, place):
        place %= len(output)
        found = LOSSES["log_loss"](torch.tensor([output]), torch.tensor([place])).item()
        # float32: an error in the largest output is one in the loss
        assert_allclose(found, -np.log(softmax(output)[place]), rtol=1e-4, atol=1e-4)

    def test_squared_errors_are_means_over_outputs(self):
        assert squared_error(torch.tensor([[1.0, 3.0]]), torch.zeros(1, 2)).tolist() == [5.0]


class TestEpochs:
    @given(n=st.integers(1, 30), size=st.integers(1, 10), seed=st.integers(0, 99))
    @settings(max_examples=25, deadline=None)
    def test_a_pass_has_every_sample_once(self, n, size, seed):
        X = np.arange(float(n))[:, None] * np.ones((1, 2))
        sequences = read_sequences(X[:, :, None], "ParaRNNRegressor")
        data = TrainingData(sequences, torch.zeros(n, 1), None, False)
        generator = torch.Generator().manual_seed(seed)
        epoch = SampleEpoch(data, torch.arange(n), size, generator)
        steps = -(-n // size)
        assert len(epoch) == max(steps, 20)
        batches = epoch.batches()
        for _ in range(2):
            seen = torch.cat([next(batches).x[:, 0, 0] for _ in range(steps)])
            assert sorted(seen.tolist()) == list(range(n))


class TestPooling:
    """States that are read for one target per sample."""

    @pytest.mark.parametrize("pooling", ["last", "mean", "max"])
    @pytest.mark.parametrize("X", [RAGGED, RNG.normal(size=(10, 4, 2))])
    def test_is_that_of_the_states_of_each_sample_alone(self, pooling, X):
        model = regressor(pooling=pooling).fit(X, Z)
        scaler, network = model.input_scaler_, model.network_
        expected = []
        for sequence in X:
            x = torch.from_numpy(scaler.transform(sequence).astype(np.float32))
            states = network.run(x[None])[0][0].detach()
            read = {"last": states[-1], "mean": states.mean(0), "max": states.amax(0)}[pooling]
            expected.append(network.head(read).detach().numpy())
        expected = model.target_scaler_.inverse_transform(np.array(expected))[:, 0]
        assert_allclose(model.predict(X), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("n", "given", "expected"),
    [(100, None, 64), (13_000, None, 65), (10**6, None, 1024), (10**6, 32, 32)],
)
def test_batches_grow_with_the_sample(n, given, expected):
    epoch = SampleEpoch(None, torch.arange(n), given, torch.Generator())
    assert epoch.batch_size == expected
    assert len(epoch) == max(20, -(-n // expected))
