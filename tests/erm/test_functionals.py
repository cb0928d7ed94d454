"""Functionals of functions with known answers, against closed forms, loops and scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import inspection
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from tsrnn.erm import Refits, block_bootstrap, impulse_response, memory, partial_dependence


class Known(RegressorMixin, BaseEstimator):
    """A given function of each sequence, (T_i, d_in) or (T_i,)."""

    def __init__(self, function):
        self.function = function
        self.sizes_ = []

    def fit(self, X, z):
        return self

    def predict(self, X):
        sequences = X.to_numpy() if hasattr(X, "to_numpy") else X
        self.sizes_.append(sum(np.size(sequence) for sequence in sequences))
        return np.array([self.function(sequence) for sequence in sequences])


class Filter(RegressorMixin, BaseEstimator):
    """Weights of lags 0, 1, ... of univariate series of one length."""

    def __init__(self, weights):
        self.weights = weights
        self.weights_ = np.asarray(weights, dtype=float)

    def fit(self, X, z):
        return self

    def predict(self, X):
        X = np.asarray(X).reshape(len(X), -1)
        return X[:, ::-1][:, : len(self.weights_)] @ self.weights_


class LeastSquares(RegressorMixin, BaseEstimator):
    """Without intercept, on all lags."""

    def fit(self, X, z):
        self.coef_ = np.linalg.solve(X.T @ X, X.T @ z)
        return self

    def predict(self, X):
        return X @ self.coef_


def smooth(sequence, alpha=0.3):
    """Exponential smoothing of the first channel, from 0."""
    state = 0.0
    for value in np.reshape(sequence, (len(sequence), -1))[:, 0]:
        state += alpha * (value - state)
    return state


def uneven(sequence):
    """A nonlinear function of all inputs, lags and channels."""
    x = np.reshape(sequence, (len(sequence), -1))
    return float(np.sin(x[-1].sum()) + x[0, 0] * x[-1, -1] + 0.1 * (x**2).sum() + len(x))


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def shifted_refits(n, weights=(1.0, 0.5)):
    """Refits whose impulse response at lag 0 is 1 + 0, 1 + 1, ..., in no order."""
    order = np.random.default_rng(0).permutation(n)
    members = [Filter((weights[0] + shift, *weights[1:])) for shift in order]
    return Refits(Filter(weights), tuple(members), "by hand", f"{n} by hand: known; and so on.")


@st.composite
def samples(draw):
    """Sequences in each form that an estimator takes, and as a plain list."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    form = draw(st.sampled_from(["table", "frame", "array", "list", "flat list"]))
    n, length = draw(st.integers(2, 6)), draw(st.integers(1, 5))
    channels = draw(st.integers(1, 3)) if form in ("array", "list") else 1
    if "list" in form:
        listed = [rng.normal(size=(length + rng.integers(4), channels)) for _ in range(n)]
        return ([part[:, 0] for part in listed] if form == "flat list" else listed), listed
    values = rng.normal(size=(n, length, channels))
    given_ = {"table": values[..., 0], "array": values, "frame": pd.DataFrame(values[..., 0])}
    return given_[form], list(values)


def steps_of(listed):
    return min(len(sequence) for sequence in listed)


class TestPartialDependence:
    def test_of_a_linear_filter_is_a_line(self):
        X, weights = normal(50, 6), np.array([1.0, -0.5, 0.25, 2.0])
        frame = partial_dependence(Filter(weights), X, lag=2, grid=[-3, 0.5, 8])
        means = X[:, ::-1].mean(axis=0)[:4]
        rest = means @ weights - means[2] * weights[2]
        np.testing.assert_allclose(frame["estimate"], rest + 0.25 * frame["value"], rtol=1e-12)
        assert list(frame) == ["value", "estimate"]

    def test_of_a_product_of_two_lags_is_the_mean_of_the_other(self):
        X = normal(40, 3, 2) + 1
        model = Known(lambda x: x[-1, 0] * x[-2, 1])
        newest = partial_dependence(model, X, lag=0, grid=[2.0, 3.0])["estimate"]
        np.testing.assert_allclose(newest, [2 * X[:, -2, 1].mean(), 3 * X[:, -2, 1].mean()])
        older = partial_dependence(model, X, lag=1, channel=1, grid=[2.0])["estimate"]
        np.testing.assert_allclose(older, 2 * X[:, -1, 0].mean())
        other = partial_dependence(model, X, lag=1, channel=0, grid=[-9.0, 9.0])["estimate"]
        np.testing.assert_allclose(other, np.mean(X[:, -1, 0] * X[:, -2, 1]))

    @pytest.mark.parametrize("lag", [0, 3])
    def test_agrees_with_scikit_learn(self, lag):
        X = pd.DataFrame(normal(80, 4), columns=list("abcd"))
        model = RandomForestRegressor(20, random_state=0).fit(X, np.prod(X, axis=1))
        frame = partial_dependence(model, X, lag=lag)
        values = {"dcba"[lag]: frame["value"].to_numpy()}
        theirs = inspection.partial_dependence(
            model, X, list(values), method="brute", custom_values=values
        )
        np.testing.assert_allclose(frame["estimate"], theirs["average"][0], rtol=1e-10)

    @pytest.mark.parametrize("output", [0, 2])
    def test_of_a_classifier_is_of_the_probability_of_a_class(self, output):
        X = normal(90, 3)
        labels = np.array(["low", "mid", "top"])[np.digitize(X[:, -1], [-0.5, 0.5])]
        model = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(X, labels)
        frame = partial_dependence(model, X, lag=0, output=output)
        theirs = inspection.partial_dependence(
            model, X, [2], method="brute", custom_values={2: frame["value"].to_numpy()}
        )
        np.testing.assert_allclose(frame["estimate"], theirs["average"][output], rtol=1e-10)
        assert frame.attrs["ylabel"] == f"Mean probability of class {model.classes_[output]}"

    @given(pair=samples(), data=st.data())
    @settings(max_examples=35, deadline=None)
    def test_agrees_with_a_loop_in_every_form_of_samples(self, pair, data):
        X, listed = pair
        lag = data.draw(st.integers(0, steps_of(listed) - 1))
        channel = data.draw(st.integers(0, listed[0].shape[1] - 1))
        frame = partial_dependence(Known(uneven), X, lag=lag, channel=channel, grid=[-1, 2])
        expected = []
        for value in (-1, 2):
            changed = [sequence.copy() for sequence in listed]
            for sequence in changed:
                sequence[len(sequence) - 1 - lag, channel] = value
            expected.append(np.mean([uneven(sequence) for sequence in changed]))
        np.testing.assert_allclose(frame["estimate"], expected, rtol=1e-10, atol=1e-12)

    def test_the_grid_is_of_quantiles_of_what_is_seen_at_the_lag(self):
        X = [normal(4 + i % 3, 2, seed=i) for i in range(30)]
        seen = np.array([sequence[-3, 1] for sequence in X])
        frame = partial_dependence(Known(smooth), X, lag=2, channel=1)
        np.testing.assert_allclose(frame["value"], np.quantile(seen, np.arange(1, 20) / 20))
        constant = partial_dependence(Filter([1.0]), np.ones((5, 2)), lag=0)
        assert constant["value"].tolist() == [1.0]

    def test_sequences_with_and_without_an_axis_of_inputs_are_alike(self):
        X = [normal(5 + i, seed=i) for i in range(4)]
        mixed = [x[:, None] if i % 2 else x for i, x in enumerate(X)]
        one, other = (partial_dependence(Known(smooth), samples, lag=1) for samples in (X, mixed))
        pd.testing.assert_frame_equal(one, other)

    def test_missing_values_are_the_concern_of_the_estimator(self):
        X = normal(30, 3)
        X[4, 0] = np.nan
        model = make_pipeline(SimpleImputer(), LinearRegression()).fit(X, X[:, -1])
        frame = partial_dependence(model, X, lag=0, grid=[1.0, 2.0])
        np.testing.assert_allclose(frame["estimate"], [1.0, 2.0], rtol=1e-10)

    def test_samples_are_left_as_they_are(self):
        X = [normal(4, 1, seed=i) for i in range(5)]
        before = [sequence.copy() for sequence in X]
        partial_dependence(Known(smooth), X, lag=2)
        impulse_response(Known(smooth), X, persistent=True)
        memory(Known(smooth), X)
        for sequence, kept in zip(X, before, strict=True):
            np.testing.assert_array_equal(sequence, kept)


class TestImpulseResponse:
    @pytest.mark.parametrize("size", [1.0, -0.3, 1e3])
    def test_of_a_linear_filter_is_its_weights(self, size):
        weights = np.array([1.0, -0.5, 0.0, 0.25])
        frame = impulse_response(Filter(weights), normal(30, 6), size=size)
        np.testing.assert_allclose(
            frame["estimate"], size * np.append(weights, [0, 0]), rtol=1e-12, atol=1e-12
        )
        step = impulse_response(Filter(weights), normal(30, 6), size=size, persistent=True)
        expected = size * np.cumsum(np.append(weights, [0, 0]))
        np.testing.assert_allclose(step["estimate"], expected, rtol=1e-12, atol=1e-12)

    def test_of_exponential_smoothing_decays_whatever_the_lengths(self):
        X = [normal(5 + i % 4, 2, seed=i) for i in range(12)]
        frame = impulse_response(Known(smooth), X, size=1.0)
        assert frame["lag"].tolist() == [0, 1, 2, 3, 4]
        np.testing.assert_allclose(frame["estimate"], 0.3 * 0.7 ** np.arange(5), rtol=1e-10)
        other = impulse_response(Known(smooth), X, size=1.0, channel=1)
        np.testing.assert_array_equal(other["estimate"], 0)

    def test_of_a_product_and_of_a_square_depends_on_the_samples(self):
        X, size = normal(40, 3) + 1, 0.7
        frame = impulse_response(Known(lambda x: x[-1] * x[-2] + x[-3] ** 2), X, size=size)
        expected = size * np.array([X[:, 1].mean(), X[:, 2].mean(), 2 * X[:, 0].mean() + size])
        np.testing.assert_allclose(frame["estimate"], expected, rtol=1e-10)

    def test_the_usual_shock_is_a_standard_deviation(self):
        X = [3 * normal(4 + i % 2, 2, seed=i) for i in range(9)]
        frame = impulse_response(Known(smooth), X, max_lag=0)
        size = np.std(np.concatenate(X)[:, 0], ddof=1)
        assert frame.attrs["size"] == pytest.approx(size)
        np.testing.assert_allclose(frame["estimate"], [0.3 * size], rtol=1e-10)

    @given(pair=samples(), persistent=st.booleans(), data=st.data())
    @settings(max_examples=35, deadline=None)
    def test_agrees_with_a_loop_in_every_form_of_samples(self, pair, persistent, data):
        X, listed = pair
        channel = data.draw(st.integers(0, listed[0].shape[1] - 1))
        frame = impulse_response(Known(uneven), X, size=0.4, channel=channel, persistent=persistent)
        expected = []
        for lag in range(steps_of(listed)):
            changes = []
            for sequence in listed:
                shocked, at = sequence.copy(), len(sequence) - 1 - lag
                shocked[at : None if persistent else at + 1, channel] += 0.4
                changes.append(uneven(shocked) - uneven(sequence))
            expected.append(np.mean(changes))
        np.testing.assert_allclose(frame["estimate"], expected, rtol=1e-9, atol=1e-10)

    def test_columns_of_predictions_are_chosen_by_output(self):
        X = normal(30, 3)
        model = LinearRegression().fit(X, X @ np.array([[1.0, 2], [3, 4], [5, 6]]))
        frame = impulse_response(model, X, size=1.0, output=1)
        np.testing.assert_allclose(frame["estimate"], [6, 4, 2], rtol=1e-10)
        assert frame.attrs["ylabel"] == "Mean change of prediction of output 1"


class TestMemory:
    def test_of_a_linear_filter_is_the_share_of_squared_weights(self):
        weights = np.array([1.0, 0.8, 0.0, 0.5, 0.1])
        frame = memory(Filter(weights), normal(6000, 6), random_state=0)
        squares = np.append(weights**2, 0)
        expected = 1 - np.cumsum(squares) / squares.sum()
        np.testing.assert_allclose(frame["estimate"], expected, atol=0.03)
        assert frame["estimate"].iloc[-1] == 0
        assert frame.attrs["memory_length"] == 3
        loose = memory(Filter(weights), normal(6000, 6), random_state=0, threshold=0.3)
        assert loose.attrs["memory_length"] == 1

    def test_counts_interactions_with_what_is_new(self):
        model = Known(lambda x: x[-1] + x[-1] * x[-2])
        frame = memory(model, normal(4000, 3), random_state=1)
        np.testing.assert_allclose(frame["estimate"], [0.5, 0, 0], atol=0.04)

    def test_is_one_where_only_the_past_counts(self):
        X = normal(2, 3)
        frame = memory(Filter([0.0, 1.0]), X, random_state=0)
        np.testing.assert_allclose(frame["estimate"], [1, 0, 0], rtol=1e-12)
        many = memory(Filter([0.0, 0.0, 1.0]), normal(500, 3), n_swaps=200, random_state=0)
        error = many["monte_carlo_error"].to_numpy()
        assert np.all(np.abs(many["estimate"] - [1, 1, 0]) <= 4 * error)
        assert error[0] < 0.01

    def test_of_unequal_lengths_swaps_the_whole_past(self):
        """E Var(f | newest j + 1 inputs) / Var f, for inputs and lengths drawn apart."""
        rng, mean, lengths = np.random.default_rng(0), 0.7, np.array([2, 3, 6])
        drawn = rng.choice(lengths, size=6000)
        X = [mean + rng.normal(size=(length, 1)) for length in drawn]
        weights = 0.3 * 0.7 ** np.arange(6)

        def variance(j):
            """Of the sum of weighted inputs older than lag j, where there is lag j at all."""
            longer = lengths[lengths > j]
            parts = [weights[j + 1 : length] for length in longer]
            sums, squares = [p.sum() for p in parts], [(p**2).sum() for p in parts]
            return (np.mean(squares) + mean**2 * np.var(sums)) * len(longer) / len(lengths)

        frame = memory(Known(smooth), X, n_swaps=4, random_state=0)
        expected = [variance(j) / variance(-1) for j in range(6)]
        np.testing.assert_allclose(frame["estimate"], expected, atol=0.03)

    @given(pair=samples(), seed=st.integers(0, 1000))
    @settings(max_examples=35, deadline=None)
    def test_agrees_with_a_loop_in_every_form_of_samples(self, pair, seed):
        X, listed = pair
        frame = memory(Known(uneven), X, n_swaps=2, random_state=seed)
        values = [uneven(sequence) for sequence in listed]
        rng = np.random.default_rng(seed)
        total = np.zeros(len(frame))
        for order in (rng.permutation(len(listed)) for _ in range(2)):
            for lag in range(len(frame)):
                taking_part = [i for i in order if len(listed[i]) > lag]
                for place, i in enumerate(taking_part):
                    donor = listed[taking_part[(place + 1) % len(taking_part)]]
                    past, new = donor[: len(donor) - lag - 1], listed[i][-lag - 1 :]
                    total[lag] += (uneven(np.concatenate([past, new])) - values[i]) ** 2
        expected = total / (2 * len(listed)) / (2 * np.var(values, ddof=1))
        np.testing.assert_allclose(frame["estimate"], expected, rtol=1e-8, atol=1e-10)
        assert len(frame) == sorted(map(len, listed))[-2]

    def test_the_monte_carlo_error_is_that_of_other_swaps(self):
        X, model = normal(60, 3), Filter([1.0, 0.7, 0.4])
        frames = [memory(model, X, n_swaps=5, random_state=seed) for seed in range(200)]
        spread = np.std([frame["estimate"] for frame in frames], axis=0, ddof=1)
        said = np.sqrt(np.mean([frame["monte_carlo_error"] ** 2 for frame in frames], axis=0))
        np.testing.assert_allclose(said[:2], spread[:2], rtol=0.2)
        assert memory(model, X, n_swaps=1)["monte_carlo_error"].isna().all()

    def test_the_same_seed_gives_the_same_shares(self):
        X, model = normal(30, 4), Filter([1.0, 0.7])
        one, two, other = (memory(model, X, random_state=seed) for seed in (0, 0, 1))
        pd.testing.assert_frame_equal(one, two)
        assert not one["estimate"].equals(other["estimate"])

    def test_a_memory_longer_than_the_lags_asked_for_has_no_length(self):
        frame = memory(Filter([1.0, 0.0, 0.0, 1.0]), normal(200, 5), max_lag=2, random_state=0)
        assert frame.attrs["memory_length"] is None
        assert frame["lag"].tolist() == [0, 1, 2]

    def test_a_constant_function_has_no_memory(self):
        with pytest.raises(ValueError, match="of the estimator do not vary over the samples"):
            memory(Known(lambda x: 2.0), normal(9, 3))
        refits = Refits(Filter([1.0]), (Filter([1.0]), Filter([0.0])), "by hand", "none")
        with pytest.raises(ValueError, match="of refit 1 do not vary"):
            memory(refits, normal(9, 3))


class TestBands:
    @pytest.mark.parametrize(("n", "level", "ends"), [(19, 90, (1, 19)), (39, 90, (2, 38))])
    def test_ends_are_order_statistics_of_the_refits(self, n, level, ends):
        frame = impulse_response(shifted_refits(n), normal(9, 2), size=1.0, level=level)
        np.testing.assert_allclose(frame.loc[0, ["lower", "upper"]].tolist(), ends)
        assert frame.loc[0, "estimate"] == pytest.approx(1.0)
        assert frame.loc[0, "std_error"] == pytest.approx(np.std(np.arange(n), ddof=1))
        np.testing.assert_allclose(
            frame.loc[1, ["estimate", "lower", "upper", "std_error"]].tolist(),
            [0.5, 0.5, 0.5, 0],
            atol=1e-12,
        )
        assert frame.attrs["guarantee"] == f"90% band from {n} by hand: known; and so on."

    def test_too_few_refits_are_said_to_give_their_range(self):
        frame = impulse_response(shifted_refits(18), normal(9, 2), size=1.0)
        np.testing.assert_allclose(frame.loc[0, ["lower", "upper"]].tolist(), [1, 18])
        assert frame.attrs["band"] == "Range of refits"
        assert frame.attrs["guarantee"].startswith("range of 18 by hand")
        assert "18 refits are too few for 90 percent, which takes 19" in frame.attrs["guarantee"]
        more = impulse_response(shifted_refits(39), normal(9, 2), size=1.0, level=95)
        assert more.attrs["band"] == "95% band"

    def test_all_three_have_one(self):
        X, refits = normal(30, 3), shifted_refits(19)
        band = {"estimate", "lower", "upper", "std_error"}
        for frame in (
            partial_dependence(refits, X, lag=0),
            impulse_response(refits, X),
            memory(refits, X),
        ):
            assert band <= set(frame)
            assert (frame["lower"] <= frame["upper"]).all()
        bare = memory(refits.estimator, X)
        assert not {"lower", "upper", "std_error"} & set(bare)
        assert bare.attrs["guarantee"].startswith("no band")

    def test_partial_dependence_of_refits_is_that_of_each(self):
        X, refits = normal(30, 3), shifted_refits(5)
        frame = partial_dependence(refits, X, lag=0, grid=[1.0, 2.0])
        each = [
            partial_dependence(member, X, lag=0, grid=[1.0, 2.0])["estimate"]
            for member in refits.members
        ]
        np.testing.assert_allclose(frame["std_error"], np.std(each, axis=0, ddof=1))
        np.testing.assert_allclose(frame["upper"], np.max(each, axis=0))

    @pytest.mark.slow
    def test_bootstrap_errors_of_least_squares_are_the_sandwich(self):
        X, n = normal(400, 3), 400
        z = X @ [0.2, 0.5, 1.0] + (0.5 + np.abs(X[:, 2])) * normal(n, seed=1)
        refits = block_bootstrap(LinearRegression(), X, z, n_estimators=500, random_state=0)
        frame = impulse_response(refits, X, size=1.0)
        design = np.column_stack([np.ones(n), X])
        bread = np.linalg.inv(design.T @ design)
        residuals = z - refits.estimator.predict(X)
        sandwich = bread @ (design.T * residuals**2) @ design @ bread
        errors = np.sqrt(np.diag(sandwich))[:0:-1]
        np.testing.assert_allclose(frame["std_error"], errors, rtol=0.15)
        np.testing.assert_allclose(frame["estimate"], refits.estimator.coef_[::-1], rtol=1e-9)

    def test_bands_of_least_squares_cover_about_as_often_as_they_say(self):
        rng, hits, weights = np.random.default_rng(0), [], np.array([0.2, 0.5, 1.0])
        for _ in range(120):
            X = rng.normal(size=(80, 3))
            z = X @ weights + rng.normal(size=80)
            refits = block_bootstrap(LeastSquares(), X, z, n_estimators=39, random_state=rng)
            frame = impulse_response(refits, X[:5], size=1.0)
            hits.append(frame["lower"].le(weights[::-1]) & frame["upper"].ge(weights[::-1]))
        assert abs(np.mean(hits) - 0.9) < 0.06

    def test_a_class_that_a_refit_never_met_has_probability_zero_from_it(self):
        X = normal(60, 2)
        labels = np.digitize(X[:, 1], [-1, 1])
        whole = LogisticRegression().fit(X, labels)
        lacking = LogisticRegression().fit(X[labels > 0], labels[labels > 0])
        refits = Refits(whole, (lacking, lacking), "by hand", "none")
        frames = [partial_dependence(refits, X, lag=0, grid=[0.5], output=i) for i in range(3)]
        assert frames[0].loc[0, "upper"] == 0
        assert frames[0].loc[0, "estimate"] > 0
        alone = partial_dependence(lacking, X, lag=0, grid=[0.5], output=1)["estimate"]
        np.testing.assert_allclose(frames[2]["lower"], alone)


class TestWork:
    @pytest.mark.parametrize("listed", [True, False])
    def test_calls_stay_small_and_give_the_same(self, listed):
        """Whatever needs more than two million numbers is not asked for at once."""
        X = normal(5, 450_000)
        X = [part[i:] for i, part in enumerate(X)] if listed else X
        model = Known(lambda x: x[-1] + 0.5 * x[-2])
        newest, before = (np.array([part[-lag] for part in X]) for lag in (1, 2))
        frame = partial_dependence(model, X, lag=1, grid=[2.0])
        np.testing.assert_allclose(frame["estimate"], [newest.mean() + 1.0], rtol=1e-12)
        frame = impulse_response(model, X, size=2.0, max_lag=1)
        np.testing.assert_allclose(frame["estimate"], [2.0, 1.0], rtol=1e-12)
        frame = memory(model, X, max_lag=1, random_state=0, n_swaps=1)
        order = np.random.default_rng(0).permutation(5)
        steps = before[np.roll(order, -1)] - before[order]
        expected = np.mean((0.5 * steps) ** 2) / (2 * np.var(newest + 0.5 * before, ddof=1))
        np.testing.assert_allclose(frame["estimate"], [expected, 0.0], rtol=1e-12, atol=1e-13)
        assert 1_500_000 < max(model.sizes_) <= 2_000_000


LISTED = [normal(5, 2), normal(3, 2), normal(4, 2)]


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"lag": 3}, ValueError, "lag must be .* 0 to 2; sample 1 is the shortest, with 3 st"),
            ({"lag": -1}, ValueError, "lag must be a whole number from 0 to 2.*got -1"),
            ({"lag": 1.0}, TypeError, "lag must be a whole number"),
            ({"lag": True}, TypeError, "lag must be a whole number"),
            ({"channel": 2}, ValueError, "channel must be a whole number from 0 to 1"),
            ({"output": 1}, ValueError, "output must be .* 0 to 0; predictions have 1 column"),
            ({"output": -1}, ValueError, "output must be"),
            ({"grid": []}, ValueError, "grid must be a vector of at least one finite"),
            ({"grid": [0.0, np.nan]}, ValueError, "grid must be a vector"),
            ({"grid": [[0.0]]}, ValueError, "grid must be a vector"),
            ({"level": 100}, ValueError, "strictly between 0 and 100 percent; got 100"),
            ({"level": 0.9}, ValueError, "for a coverage of 0.9 write 90"),
            ({"level": [80, 90]}, TypeError, "level must be one percentage"),
            ({"level": None}, TypeError, "level must be one percentage"),
        ],
    )
    def test_of_partial_dependence(self, arguments, error, message):
        with pytest.raises(error, match=message):
            partial_dependence(Known(smooth), LISTED, **{"lag": 0} | arguments)

    @pytest.mark.parametrize(
        ("call", "arguments", "error", "message"),
        [
            (
                impulse_response,
                {"max_lag": 3},
                ValueError,
                "max_lag must be .* 0 to 2; sample 1 is the shortest",
            ),
            (impulse_response, {"size": 0}, ValueError, 'size must be "std" or a finite number'),
            (impulse_response, {"size": np.inf}, ValueError, 'size must be "std"'),
            (impulse_response, {"size": "sd"}, ValueError, "got 'sd'"),
            (impulse_response, {"persistent": 1}, TypeError, "persistent must be True or False"),
            (impulse_response, {"channel": "x"}, TypeError, "channel must be a whole number"),
            (
                memory,
                {"max_lag": 4},
                ValueError,
                "0 to 3, the longest that two samples have.*got 4",
            ),
            (memory, {"n_swaps": 0}, ValueError, "n_swaps must be a positive"),
            (memory, {"threshold": 0}, ValueError, "threshold must be a number greater than 0"),
            (memory, {"threshold": 5}, ValueError, "threshold must be a number of at most 1"),
            (memory, {"random_state": -1}, ValueError, "random_state"),
        ],
    )
    def test_of_impulse_responses_and_memory(self, call, arguments, error, message):
        with pytest.raises(error, match=message):
            call(Known(smooth), LISTED, **arguments)

    def test_of_samples(self):
        for X, message in [
            ([], "X must be a table.* got an empty list"),
            (np.ones(4), "Expected 2D array, got 1D array"),
            (np.ones((4, 0)), r"0 feature\(s\)"),
            ([np.ones((2, 1)), np.ones((2, 3))], "sequence 0 has 1, sequence 1 has 3"),
            ([np.ones((2, 1)), np.ones((0, 1))], r"sequence 1 has shape \(0, 1\)"),
            ([np.ones((2, 2)), np.ones(2)], "sequence 0 has 2, sequence 1 has 1"),
        ]:
            with pytest.raises(ValueError, match=message):
                partial_dependence(Known(smooth), X, lag=0)
        with pytest.raises(ValueError, match="standard deviation 0, which is no size"):
            impulse_response(Known(smooth), np.ones((4, 3)))
        with pytest.raises(ValueError, match="not all finite and have no quantiles"):
            partial_dependence(Known(smooth), np.full((4, 3), np.nan), lag=0)
        with pytest.raises(ValueError, match="at least 2 samples"):
            memory(Known(smooth), np.ones((1, 3)))

    def test_of_estimators(self):
        X = normal(9, 3)
        unfitted = LinearRegression()
        half = Refits(Filter([1.0]), (unfitted,), "by hand", "none")
        for model in (unfitted, half):
            for call in (impulse_response, memory, lambda m, x: partial_dependence(m, x, lag=0)):
                with pytest.raises(NotFittedError):
                    call(model, X)
        labels = (X[:, 0] > 0).astype(int)
        with pytest.raises(TypeError, match="LinearSVC has none"):
            impulse_response(LinearSVC().fit(X, labels), X)
        with pytest.raises(ValueError, match=r"0 to 1, a place in classes_ \(0, 1\); got 2"):
            impulse_response(LogisticRegression().fit(X, labels), X, output=2)
        with pytest.raises(ValueError, match=r"must have the shape \(N,\) or"):
            impulse_response(Known(lambda x: np.ones((2, 2))), X)


def test_the_memory_length_is_where_the_curve_stays_below():
    """Of dependent inputs the curve need not fall."""

    rng = np.random.default_rng(0)
    X = np.zeros((2000, 4))
    X[:, 0] = rng.normal(size=2000) * 5
    for step in range(1, 4):
        X[:, step] = 0.98 * X[:, step - 1] + rng.normal(size=2000)
    model = Filter([1.0, -1.0, 1.0]).fit(X, None)
    frame = memory(model, X, random_state=0)
    assert frame["estimate"][0] < 0.05 < frame["estimate"][1]
    assert frame.attrs["memory_length"] == 2
