"""Choice of an architecture: the grid, the rules in closed form, and risks fitted one by one."""

import pickle
import warnings
from fractions import Fraction

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, StratifiedKFold

mpl.use("Agg")

import matplotlib.pyplot as plt

from tsrnn.erm import (
    BlockedKFold,
    ParaRNNClassifier,
    ParaRNNRegressor,
    cross_validated_risk,
    select_architecture,
)
from tsrnn.interpret import jordan_block, recurrence_features
from tsrnn.plotting import plot_architectures


def shrunk_class():
    """A class that other processes get by value, without the imports above."""

    class Shrunk(RegressorMixin, BaseEstimator):
        """A multiple of the mean target that its sizes decide; it fails if told."""

        def __init__(
            self, block_size=None, hidden_size=8, n_layers=1, random_state=None, table=None
        ):
            self.block_size = block_size
            self.hidden_size = hidden_size
            self.n_layers = n_layers
            self.random_state = random_state
            self.table = table

        def fit(self, X, z):
            factor = (self.table or {}).get(self.block_size, 1.0 + 1.0 / self.block_size)
            if factor == "fails":
                raise FloatingPointError("diverged")
            self.mean_ = factor * np.mean(z)
            return self

        def predict(self, X):
            return np.full(len(X), self.mean_)

    return Shrunk


Shrunk = shrunk_class()


class Frequencies(ClassifierMixin, BaseEstimator):
    """Probabilities of two labels, given."""

    def __init__(self, block_size=None, hidden_size=2, n_layers=1):
        self.block_size = block_size
        self.hidden_size = hidden_size
        self.n_layers = n_layers

    def fit(self, X, z):
        self.classes_ = np.unique(z)
        return self

    def predict_proba(self, X):
        first = {1: 1.0, 2: 0.5}[self.block_size]
        return np.tile([first, 1 - first], (len(X), 1))


@pytest.fixture(scope="module")
def series():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(48, 6, 2))
    return X, X[:, -1, 0] + 0.5 * X[:, -2, 1] + 0.2 * rng.normal(size=48)


@pytest.fixture(scope="module")
def model():
    return ParaRNNRegressor(8, max_epochs=2, random_state=0)


@pytest.fixture(scope="module")
def selection(series, model):
    return select_architecture(*series, estimator=model, block_sizes=[1, 2, 8], cv=2)


@pytest.fixture(autouse=True)
def _no_figure_stays():
    yield
    plt.close("all")


def shrunk(series, **arguments):
    table = arguments.pop("table", None)
    estimator = arguments.pop("estimator", Shrunk(table=table))
    return select_architecture(*series, estimator=estimator, **arguments)


def sizes_tried(**arguments):
    """Block size, hidden size and number of layers of the candidates, in order."""
    own = {"hidden_size": arguments.pop("size", 8), "n_layers": arguments.pop("depth", 1)}
    data = np.zeros((3, 2, 1)), np.arange(3.0)
    parts = {"cv": [([0, 1], [2])], "refit": False}
    frame = shrunk(data, estimator=Shrunk(**own), **parts, **arguments).frame
    return [*frame[["block_size", "hidden_size", "n_layers"]].itertuples(index=False, name=None)]


class TestGrid:
    @given(st.integers(1, 300))
    @settings(max_examples=30, deadline=None)
    def test_default_block_sizes_are_the_powers_of_two_that_divide_and_the_size(self, d):
        expected = {1, d} | {2**i for i in range(12) if d % 2**i == 0}
        assert [block_size for block_size, *_ in sizes_tried(size=d)] == sorted(expected)

    @given(
        st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, unique=True),
        st.lists(st.sampled_from([12, 24, 36]), min_size=1, unique=True),
        st.lists(st.integers(1, 4), min_size=1, unique=True),
    )
    @settings(max_examples=20, deadline=None)
    def test_a_given_grid_is_the_product(self, blocks, hidden, layers):
        triples = sizes_tried(block_sizes=blocks, hidden_sizes=hidden, n_layers=layers)
        assert len(set(triples)) == len(triples) == len(blocks) * len(hidden) * len(layers)
        assert set(triples) == {(b, d, n) for b in blocks for d in hidden for n in layers}

    def test_the_estimators_sizes_are_the_default(self):
        assert sizes_tried(size=4, depth=3) == [(1, 4, 3), (2, 4, 3), (4, 4, 3)]

    @given(st.lists(st.integers(1, 9), min_size=1, unique=True), st.integers(1, 40))
    @settings(deadline=None)
    def test_sizes_that_do_not_divide_are_all_named(self, blocks, d):
        wrong = [size for size in blocks if d % size]
        assume(wrong)
        with pytest.raises(ValueError, match="block_sizes") as caught:
            sizes_tried(block_sizes=blocks, hidden_sizes=[d])
        for size in blocks:
            assert (f"{size} does not divide {d}" in str(caught.value)) == (size in wrong)

    @pytest.mark.parametrize("name", ["block_sizes", "hidden_sizes", "n_layers"])
    @pytest.mark.parametrize(
        ("values", "error"),
        [([], ValueError), ([0], ValueError), ([2, 2], ValueError), ([2.0], TypeError),
         (4, TypeError), ("4", TypeError), ([True], TypeError)],
    )  # fmt: skip
    def test_what_is_no_grid_is_refused(self, series, name, values, error):
        with pytest.raises(error, match=name):
            shrunk(series, **{name: values})


class Tabled(RegressorMixin, BaseEstimator):
    """Predicts what a table has for its block size, of samples that are numbered in X."""

    def __init__(self, block_size=None, hidden_size=8, n_layers=1, table=None):
        self.block_size = block_size
        self.hidden_size = hidden_size
        self.n_layers = n_layers
        self.table = table

    def fit(self, X, z):
        return self

    def predict(self, X):
        return np.array([self.table[self.block_size][int(i)] for i in X[:, 0, 0]])


def judged(losses):
    """Positions of the best and the chosen of candidates of these losses, the cheapest first."""
    sizes, n = [2**i for i in range(len(losses))], len(losses[0])
    model = Tabled(hidden_size=sizes[-1], table=dict(zip(sizes, losses, strict=True)))
    selection = select_architecture(
        np.arange(n + 1.0)[:, None, None],
        np.zeros(n + 1),
        estimator=model,
        loss=lambda _, prediction: prediction,
        cv=[([n], np.arange(n))],
        refit=False,
    )
    frame = selection.frame
    assert frame["block_size"].tolist() == sizes
    assert (frame["forward"] + frame["backward"]).is_monotonic_increasing
    return frame["best"].argmax(), frame["chosen"].argmax(), frame["within_one_std_error"].tolist()


def of_two(differences, errors):
    """Losses of two samples whose mean has these differences from 0.5 and standard errors."""
    return [[0.5 + d + e, 0.5 + d - e] for d, e in zip(differences, errors, strict=True)]


class TestRules:
    def test_closed_form(self):
        # Risks 1.0, 0.55, 0.5, 0.52 and errors of the difference such that 1 and 2 are near.
        losses = of_two([0.5, 0.05, 0.0, 0.02], [0.1, 0.06, 0.0, 0.01])
        assert judged(losses) == (2, 1, [False, True, True, False])
        assert judged(losses[::-1]) == (1, 1, [False, True, True, False])
        losses = of_two([0.5, 0.05, 0.0, 0.02], [0.1, 0.04, 0.0, 0.01])
        assert judged(losses) == (2, 2, [False, False, True, False])

    def test_a_difference_of_one_standard_error_is_within(self):
        assert judged(of_two([0.25, 0.0], [0.25, 0.0]))[1] == 0
        assert judged(of_two([0.25, 0.0], [0.25 * (1 - 1e-9), 0.0]))[1] == 1

    def test_ties(self):
        assert judged(of_two([0.5, 0.0, 0.0], [0.0, 0.0, 0.0]))[:2] == (1, 1)
        assert judged(of_two([0.1, 0.0, 0.05], [1.0, 0.0, 1.0]))[:2] == (1, 0)

    def test_what_is_unknown_or_infinite(self):
        assert judged([[np.inf, 1.0], [2.0, 2.0]]) == (1, 1, [False, True])
        assert judged([[0.1], [0.0]]) == (1, 1, [False, True])
        with pytest.raises(ValueError, match="finite"):
            judged([[np.inf, 1.0], [1.0, np.inf]])

    @given(st.lists(st.tuples(*[st.integers(-50, 50).map(float)] * 2), min_size=1, max_size=5))
    @settings(max_examples=40, deadline=None)
    def test_nothing_cheaper_is_near(self, losses):
        """Of two samples the error of their mean difference is half of what they lie apart."""
        best, chosen, near = judged(losses)
        losses = np.array(losses)
        assert best == losses.mean(1).argmin()
        apart = losses - losses[best]
        assert near == (apart.mean(1) <= np.abs(apart[:, 0] - apart[:, 1]) / 2).tolist()
        assert chosen == near.index(True) <= best

    def test_the_rule_on_fitted_candidates(self, series):
        """Prediction c times the mean m of z: by hand, on one held-out part."""
        X, z = series
        z = z + 10.0
        train, test = np.arange(30), np.arange(30, 48)
        table = {1: 1.004, 2: 1.003, 4: 1.0, 8: 2.0}
        selection = shrunk((X, z), table=table, cv=[(train, test)])
        losses = np.array([(z[test] - c * z[train].mean()) ** 2 for c in table.values()])
        best = int(losses.mean(1).argmin())
        apart = losses - losses[best]
        errors = apart.std(1, ddof=1) / np.sqrt(18)
        near = apart.mean(1) <= errors
        frame = selection.frame
        np.testing.assert_allclose(frame["risk"], losses.mean(1))
        np.testing.assert_allclose(frame["difference"], apart.mean(1), atol=1e-12)
        np.testing.assert_allclose(frame["difference_std_error"], errors, atol=1e-12)
        assert frame["within_one_std_error"].tolist() == near.tolist()
        assert 0 < near.sum() < 4
        assert selection.chosen["block_size"] == [*table][int(np.argmax(near))]
        assert selection.best["block_size"] == [*table][best]

    def test_rules_differ_where_the_cheap_one_is_near(self, series):
        X, z = series
        z = np.tile([1.0, 3.0], 24)
        cv = [(np.arange(24), np.arange(24, 48))]
        table = {1: 1.1, 2: 1.0, 4: 1.5, 8: 2.0}
        one, other = (
            shrunk((X, z), table=table, cv=cv, rule=rule) for rule in ("one_std_error", "smallest")
        )
        assert one.best == other.best == other.chosen
        # Difference 0.04, losses of the two kinds of samples 1.44 - 1 and 0.64 - 1: se of 24.
        error = np.std([0.44, -0.36] * 12, ddof=1) / np.sqrt(24)
        assert one.frame["difference_std_error"][0] == pytest.approx(error)
        assert one.frame["difference"][0] == pytest.approx(0.04)
        assert one.chosen["block_size"] == 1
        assert other.chosen["block_size"] == 2


class TestSelection:
    def test_risks_are_those_of_cross_validation_one_by_one(self, selection, series, model):
        for row, risk in zip(selection.frame.itertuples(), selection.risks, strict=True):
            sized = ParaRNNRegressor(8, block_size=row.block_size, max_epochs=2, random_state=0)
            alone = cross_validated_risk(sized, *series, cv=2)
            # Cross-validation trains the networks of its folds side by side, in float32.
            assert [fold.rows for fold in risk.folds] == [fold.rows for fold in alone.folds]
            np.testing.assert_allclose(risk.losses, alone.losses, rtol=1e-5, atol=1e-6)
            assert (risk.value, risk.std_error) == (row.risk, row.std_error)
            assert row.risk == pytest.approx(alone.value, rel=1e-6)
            best = selection.risks[int(selection.frame["risk"].argmin())]
            if risk is not best:
                difference = risk.minus(best)
                assert row.difference == difference.value
                assert row.difference_std_error == difference.std_error

    def test_the_choice_is_that_of_folds_side_by_side(self, selection, series):
        """Candidates are fitted one by one, for their seconds; cross-validation is not."""
        sized = [
            ParaRNNRegressor(8, block_size=size, max_epochs=2, random_state=0)
            for size in selection.frame["block_size"]
        ]
        risks = [cross_validated_risk(estimator, *series, cv=2) for estimator in sized]
        best = min(risks, key=lambda risk: risk.value)
        apart = [risk if risk is best else risk.minus(best) for risk in risks]
        near = [risk is best or risk.value <= risk.std_error for risk in apart]
        assert selection.best["block_size"] == sized[risks.index(best)].block_size
        assert selection.chosen["block_size"] == sized[near.index(True)].block_size

    def test_costs(self, selection):
        frame = selection.frame
        T, d_in, d = 6, 2, 8
        for row in frame.itertuples():
            s = row.block_size
            assert row.forward == T * s**2 + T * s * d_in + d**2
            assert row.backward == T**2 * s**3 + d * s**3
            assert row.n_blocks * s == d
            # Inputs and bias of d units, blocks; aggregation d x d and bias; output.
            assert row.n_parameters == d * d_in + d + d * s + d * d + d + d + 1
        assert (frame["seconds_per_fit"] > 0).all()
        np.testing.assert_allclose(
            frame["seconds_per_epoch"] * frame["epochs"], frame["seconds_per_fit"]
        )
        assert frame["epochs"].tolist() == [2.0] * 3

    def test_layers_above_take_the_hidden_size(self, series):
        kwargs = {"block_sizes": [2], "hidden_sizes": [4, 8], "n_layers": [1, 3], "refit": False}
        frame = shrunk(series, **kwargs).frame
        for row in frame.itertuples():
            d, upper = row.hidden_size, row.n_layers - 1
            inputs = [2] + [d] * upper
            assert row.forward == sum(6 * 4 + 6 * 2 * d_in + d**2 for d_in in inputs)
            assert row.backward == row.n_layers * (36 * 8 + d * 8)

    def test_with_an_input_projection_the_first_layer_takes_the_hidden_size_too(self, series):
        X, z = series[0][:20], series[1][:20]
        model = ParaRNNRegressor(4, input_projection=True, max_epochs=1, random_state=0)
        cv = [(np.arange(15), np.arange(15, 20))]
        found = select_architecture(X, z, estimator=model, block_sizes=[2], cv=cv, refit=False)
        assert found.frame["forward"].tolist() == [6 * 4 + 6 * 2 * 4 + 16]

    def test_feature_types_are_those_that_blocks_of_that_size_can_have(self, selection):
        """Against features read off Jordan blocks of every order."""
        for row in selection.frame.itertuples():
            s = row.block_size
            decays = [(0.5, 0.0, n) for n in range(1, s + 1)]
            waves = [(0.5, 1.0, n) for n in range(1, s // 2 + 1)]
            types = {
                recurrence_features(jordan_block(*part))["type"].iloc[0] for part in decays + waves
            }
            assert row.n_feature_types == len(types)
            assert row.cyclical == any(name.startswith("C") for name in types)
        assert selection.frame["feature_types"].tolist() == ["R-1", "R-1..2 C-1", "R-1..8 C-1..4"]
        assert selection.frame["cyclical"].tolist() == [False, True, True]

    def test_the_chosen_is_fitted_to_all_samples(self, selection, series):
        alone = ParaRNNRegressor(8, max_epochs=2, random_state=0).set_params(**selection.chosen)
        expected = alone.fit(*series).predict(series[0])
        np.testing.assert_array_equal(selection.estimator.predict(series[0]), expected)
        row = selection.frame[selection.frame["chosen"]]
        assert len(row) == selection.frame["best"].sum() == 1
        assert row[[*selection.chosen]].iloc[0].tolist() == [*selection.chosen.values()]

    def test_text_and_pickle(self, selection):
        text = repr(selection)
        assert text == str(selection)
        lines = text.splitlines()
        assert lines[0] == (
            "Choice of 3 architectures by the risk on 2 folds (squared_error, 48 samples)"
        )
        rows = selection.frame.itertuples()
        for line, row in zip(lines[2:5], rows, strict=True):
            assert ("best" in line, "chosen" in line) == (row.best, row.chosen)
            assert f"{row.risk:.3g}" in line
        assert "too small" in text
        assert "too short" in text
        back = pickle.loads(pickle.dumps(selection))
        pd.testing.assert_frame_equal(back.frame, selection.frame)
        assert back.frame.attrs == selection.frame.attrs

    def test_a_single_held_out_part_shares_nothing(self, series):
        text = str(shrunk(series, cv=[(np.arange(24), np.arange(24, 48))], refit=False))
        assert "a held-out part" in text
        assert "too short" not in text

    def test_nothing_given_is_changed(self, series, selection, model):
        assert model.block_size is None
        assert not hasattr(model, "network_")
        assert shrunk(series, refit=False).estimator is None

    def test_processes_give_the_same(self, series):
        one, two = (shrunk(series, n_jobs=n, cv=3) for n in (None, 2))
        columns = [name for name in one.frame if not name.startswith("seconds")]
        pd.testing.assert_frame_equal(one.frame[columns], two.frame[columns])

    @pytest.mark.parametrize("n_jobs", [None, 2])
    def test_progress_is_shown_if_asked_for(self, series, capsys, n_jobs):
        shrunk(series, n_jobs=n_jobs, cv=3)
        assert capsys.readouterr().err == ""
        shrunk(series, n_jobs=n_jobs, cv=3, verbose=1)
        assert "architectures" in capsys.readouterr().err

    def test_shuffling_splitters_give_all_candidates_the_same_folds(self, series):
        selection = shrunk(series, cv=KFold(3, shuffle=True))
        rows = {tuple(fold.rows for fold in risk.folds) for risk in selection.risks}
        assert len(rows) == 1

    def test_blocked_folds_and_lags(self, series):
        cv = BlockedKFold(4, h=5)
        selection = shrunk(series, cv=cv, lags=5, block_sizes=[2])
        alone = cross_validated_risk(Shrunk(block_size=2), *series, cv=cv, lags=5)
        assert selection.risks[0].std_error == alone.std_error
        assert selection.frame.attrs["n_folds"] == 4

    def test_sequences_of_different_lengths(self, series):
        X = [x[i % 4 :] for i, x in enumerate(series[0])]
        selection = shrunk((X, list(series[1])), block_sizes=[1])
        assert selection.frame.attrs["length"] == 6

    def test_own_loss(self, series):
        X, z = series
        model = ParaRNNRegressor(4, loss="absolute_error", max_epochs=1, random_state=0)
        cv = [(np.arange(24), np.arange(24, 48))]
        arguments = {"estimator": model, "block_sizes": [2], "cv": cv, "refit": False}
        assert select_architecture(X, z, **arguments).frame.attrs["loss"] == "absolute_error"
        named = select_architecture(X, z, loss="squared_error", **arguments)
        assert named.frame.attrs["loss"] == "squared_error"

    def test_seed_of_every_clone(self, series):
        X, z = series[0][:20], series[1][:20]
        cv = [(np.arange(15), np.arange(15, 20))]
        model = ParaRNNRegressor(4, max_epochs=1)
        arguments = {"estimator": model, "block_sizes": [1, 2], "cv": cv}
        one = select_architecture(X, z, random_state=5, **arguments)
        again = select_architecture(X, z, random_state=5, **arguments)
        assert one.frame["risk"].tolist() == again.frame["risk"].tolist()
        assert one.estimator.random_state == 5


class TestClasses:
    def test_infinite_risks_are_never_chosen(self):
        X, z = np.zeros((20, 3, 1)), np.array(["a", "b"] * 10)
        selection = select_architecture(X, z, estimator=Frequencies(), refit=False)
        frame = selection.frame
        assert frame.attrs["loss"] == "log_loss"
        np.testing.assert_allclose(frame["risk"], [np.inf, np.log(2)])
        assert frame["difference"].tolist() == [np.inf, 0.0]
        assert frame["chosen"].tolist() == [False, True]
        assert selection.risks[0].folds[0].rows == tuple(
            next(StratifiedKFold(5).split(X, z))[1].tolist()
        )
        with pytest.raises(ValueError, match="finite"):
            select_architecture(X, z, estimator=Frequencies(), block_sizes=[1])

    @pytest.mark.parametrize(
        ("z", "expected"),
        [
            (["a", "b", "a"], ParaRNNClassifier),
            (np.array([True, False, True]), ParaRNNClassifier),
            (np.array([0.0, 1.0, 2.0, 1.0, 0.0, 0.0]), ParaRNNClassifier),
            (np.array([0.5, 1.0, 2.0]), ParaRNNRegressor),
            (np.array([[0.5, 1.0], [1.0, 2.0]]), ParaRNNRegressor),
        ],
    )
    def test_default_estimator(self, z, expected, monkeypatch):
        def refuse(self, *_):
            raise LookupError(type(self).__name__)

        monkeypatch.setattr(expected, "fit", refuse)
        with pytest.raises(LookupError, match=expected.__name__):
            select_architecture(np.zeros((len(z), 2, 1)), z, cv=[([0], [1])])

    def test_ragged_targets_have_no_default(self):
        with pytest.raises(ValueError, match="estimator must be given"):
            select_architecture(np.zeros((2, 4, 1)), [np.zeros(3), np.zeros(4)])


class TestErrors:
    def test_estimator_without_the_parameters(self, series):
        with pytest.raises(ValueError, match="Ridge lacks block_size, hidden_size, n_layers"):
            shrunk(series, estimator=Ridge())

    def test_estimator_without_a_seed(self):
        X, z = np.zeros((20, 3, 1)), ["a", "b"] * 10
        with pytest.raises(ValueError, match="random_state"):
            select_architecture(X, z, estimator=Frequencies(), random_state=0)

    @pytest.mark.parametrize("n_jobs", [None, 2])
    def test_a_failing_fit_names_its_candidate(self, series, n_jobs):
        with pytest.raises(FloatingPointError) as caught:
            shrunk(series, table={4: "fails"}, n_jobs=n_jobs)
        assert "block_size=4, hidden_size=8, n_layers=1" in caught.value.__notes__[0]

    @pytest.mark.parametrize(
        ("arguments", "error"),
        [({"rule": "least"}, ValueError), ({"refit": 1}, TypeError), ({"lags": 99}, ValueError),
         ({"loss": "hinge"}, ValueError), ({"n_jobs": 0}, ValueError),
         ({"verbose": -1}, ValueError), ({"cv": 1}, ValueError)],
    )  # fmt: skip
    def test_arguments(self, series, arguments, error):
        with pytest.raises(error, match=next(iter(arguments)) if "cv" not in arguments else "fold"):
            shrunk(series, **arguments)

    def test_other_numbers_of_targets(self, series):
        with pytest.raises(ValueError, match="48 and 47"):
            shrunk((series[0], series[1][1:]))


class TestPlot:
    def test_lines_carry_the_numbers(self, selection):
        frame = selection.frame
        ax = plot_architectures(frame)
        (right,) = (other for other in ax.figure.axes if other is not ax)
        (bars,) = ax.containers
        line, _, (vertical,) = bars
        np.testing.assert_allclose(line.get_xdata(), [1, 2, 8])
        np.testing.assert_allclose(line.get_ydata(), frame["risk"])
        ends = np.array([path[:, 1] for path in vertical.get_segments()])
        np.testing.assert_allclose(ends[:, 1] - ends[:, 0], 2 * frame["std_error"])
        np.testing.assert_allclose(right.get_lines()[0].get_ydata(), frame["seconds_per_epoch"])
        assert right.get_ylabel() == "Seconds an epoch"
        chosen = frame[frame["chosen"]]
        (ring,) = ax.collections[-1].get_offsets().data
        assert ring.tolist() == [chosen["block_size"].iloc[0], chosen["risk"].iloc[0]]
        places = np.log2(ax.get_xticks())
        np.testing.assert_allclose(places, [0, 1, 3])
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2", "8"]
        transformed = ax.transData.transform([[1, 0.1], [2, 0.1], [8, 0.1]])[:, 0]
        assert Fraction(1, 3) == Fraction(
            (transformed[1] - transformed[0]) / (transformed[2] - transformed[0])
        ).limit_denominator(100)

    def test_a_line_for_each_hidden_size_and_depth(self, series):
        frame = shrunk(series, hidden_sizes=[4, 8], n_layers=[1, 2], refit=False).frame
        ax = plot_architectures(frame)
        texts = [text.get_text() for text in ax.get_legend().get_texts()]
        assert texts == [
            "Hidden size 4, layers 1", "Hidden size 8, layers 1", "Hidden size 4, layers 2",
            "Hidden size 8, layers 2", "Chosen",
        ]  # fmt: skip
        (right,) = (other for other in ax.figure.axes if other is not ax)
        assert right.get_ylabel() == "Seconds a fit"
        assert len(right.get_lines()) == len(ax.containers) == 4

    def test_only_risks(self, selection):
        needed = ["block_size", "hidden_size", "n_layers", "risk", "std_error"]
        figure, given_ax = plt.subplots()
        ax = plot_architectures(selection.frame[needed].sample(frac=1.0, random_state=0), given_ax)
        assert ax is given_ax
        assert figure.axes == [ax]
        assert ax.get_legend() is None
        np.testing.assert_allclose(ax.containers[0][0].get_xdata(), [1, 2, 8])

    def test_infinite_risks_leave_a_gap(self, selection):
        frame = selection.frame.copy()
        frame.loc[0, ["risk", "std_error"]] = [np.inf, np.nan]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ax = plot_architectures(frame)
            ax.figure.canvas.draw()
        assert np.isnan(ax.containers[0][0].get_ydata()[0])
        frame["risk"] = np.inf
        with pytest.raises(ValueError, match="finite"):
            plot_architectures(frame)

    def test_what_is_no_frame(self, selection):
        assert plot_architectures(selection).get_xlabel() == "Block size"
        with pytest.raises(TypeError, match="DataFrame"):
            plot_architectures(selection.risks)
        with pytest.raises(ValueError, match="std_error"):
            plot_architectures(selection.frame.drop(columns="std_error"))
