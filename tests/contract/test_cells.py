"""One vocabulary of cells: a name, an option and a refusal mean the same in every model."""

import inspect
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.erm import ParaRNNClassifier, ParaRNNRegressor
from tsrnn.forecasters import LEMForecaster, LRUForecaster, NewtonForecaster, ParaRNNForecaster
from tsrnn.kernels import Cell
from tsrnn.layers import CELLS, LAYERS, LayerChoice, NewtonBlocks, ParaRNN, layer_choice, make_layer
from tsrnn.tuning import default_space

USER = Cell("average", n=1, m=1, p=1, step=lambda h, u, w: (w[0] * h[0] + u[0],))
SERIES = pd.Series(np.random.default_rng(0).normal(size=60), name="y")
SAMPLES = np.random.default_rng(1).normal(size=(12, 5, 2))
# Another value of every option of a cell.
OPTIONS = {
    "block_size": 4, "nonlinearity": "relu", "init": "uniform", "n_states": 3, "window": 5,
    "n_heads": 2, "engine": "sequential",
}  # fmt: skip


def forecaster(**arguments):
    sizes = {"horizon": 2, "input_size": 4, "hidden_size": 8, "n_layers": 1, "refit": False}
    return ParaRNNForecaster(**sizes, max_epochs=1, random_state=0, **arguments).fit(SERIES)


def regressor(**arguments):
    model = ParaRNNRegressor(8, max_epochs=1, random_state=0, **arguments)
    return model.fit(SAMPLES, SAMPLES[:, -1, 0])


def classifier(**arguments):
    model = ParaRNNClassifier(8, max_epochs=1, random_state=0, **arguments)
    return model.fit(SAMPLES, SAMPLES[:, -1, 0] > 0)


MODELS = (forecaster, regressor, classifier)


def refusal(make, **arguments):
    """Return the message of the error that a fit raises."""
    with pytest.raises(ValueError, match="got") as caught:
        make(**arguments)
    return str(caught.value)


def takes(cell, option):
    legal = inspect.signature(LAYERS[CELLS[cell].layer]).parameters
    one_layer_only = {"nonlinearity": cell == "rnn", "engine": cell != "attention"}
    return option in legal and one_layer_only.get(option, True)


@pytest.mark.few("rnn", "lstm", "lru", "cell8")
@pytest.mark.parametrize("cell", [*CELLS, USER])
def test_a_cell_is_the_same_layer_everywhere(cell):
    expected = "ParaRNN" if cell is USER else CELLS[cell].layer
    shapes = []
    for make in MODELS:
        rnn = make(cell=cell).network_.rnn
        assert type(rnn).__name__ == expected
        shapes.append(sorted(rnn.state_dict()))
    assert shapes[0] == shapes[1] == shapes[2]


@pytest.mark.few("rnn", "lem", "newton-gru")
@pytest.mark.parametrize("cell", CELLS)
def test_an_option_is_taken_everywhere_or_nowhere(cell):
    taken = {option: value for option, value in OPTIONS.items() if takes(cell, option)}
    for make in (forecaster, regressor):
        rnn = make(cell=cell, **taken).network_.rnn
        for option, value in taken.items():
            assert getattr(rnn, option, value) == value
    for option in OPTIONS.keys() - taken.keys():
        (message,) = {refusal(make, cell=cell, **{option: OPTIONS[option]}) for make in MODELS}
        for word in (option, f"cell={cell!r}", repr(OPTIONS[option])):
            assert word in message


@given(name=st.text(max_size=8).filter(lambda name: name not in CELLS))
@settings(max_examples=10, deadline=None)
def test_other_names_are_refused_everywhere(name):
    names = re.escape(str(tuple(CELLS)))
    messages = {refusal(make, cell=name) for make in MODELS}
    assert len(messages) == 1
    assert re.match(f"cell must be one of {names} or a tsrnn.kernels.Cell; got ", messages.pop())


def test_a_layer_says_which_other_one_runs_a_cell():
    for cell, entry in CELLS.items():
        for layer in (ParaRNN, NewtonBlocks):
            if layer.__name__ == entry.layer:
                layer(2, 4, cell=cell)
            else:
                message = refusal(layer, input_size=2, hidden_size=4, cell=cell)
                assert (
                    f"got {cell!r} ({entry.words}), a cell of tsrnn.layers.{entry.layer}."
                    in message
                )
    assert "got 'average' (a user's), a cell of tsrnn.layers.ParaRNN" in refusal(
        lambda **k: NewtonForecaster(**k).fit(SERIES), cell=USER
    )
    old = refusal(lambda **k: NewtonForecaster(**k).fit(SERIES), cell="gru")
    assert old.startswith("cell of NewtonBlocks must be one of ('newton-gru', 'newton-lstm'); got")


@pytest.mark.parametrize(
    ("cls", "cell"),
    [(LEMForecaster, "lem"), (LRUForecaster, "lru"), (NewtonForecaster, "newton-gru")],
)
def test_forecasters_of_a_cell_are_those_with_its_name(cls, cell):
    sizes = {"horizon": 2, "input_size": 4, "hidden_size": 8, "n_layers": 1, "refit": False}
    shared = {"max_epochs": 1, "random_state": 0, "linear_path": False}
    heads = {"n_heads": 4} if cell == "newton-gru" else {}
    one = cls(**sizes, **shared).fit(SERIES)
    other = ParaRNNForecaster(**sizes, **shared, cell=cell, **heads).fit(SERIES)
    assert one.predict(5).equals(other.predict(5))


@pytest.mark.parametrize("cell", CELLS)
def test_search_spaces_have_blocks_where_the_layer_has(cell):
    assert ("block_size" in default_space(ParaRNNForecaster(cell=cell))) == takes(
        cell, "block_size"
    )


@pytest.mark.slow
def test_table_s1_is_within_reach():
    """Settings of the block-recurrent transformers of Cai et al. (2026), supplement D.2."""
    forecasting = layer_choice("attention", {"n_states": 128, "window": 56, "n_heads": 8})
    assert make_layer(forecasting, 12, 512, 5).recurrent_layer == 4
    choice = layer_choice("attention", {"n_states": 32, "window": 999, "n_heads": 8})
    worms = choice._replace(options=choice.options | {"recurrent_layer": "all"})
    assert len(make_layer(worms, 6, 256, 4).recurrent_blocks()) == 4
    model = ParaRNNForecaster(
        horizon=2, cell="attention", hidden_size=16, n_layers=5, n_states=6, window=3, n_heads=8,
        aggregation="ffn", max_epochs=1, refit=False, random_state=0,
    ).fit(SERIES)  # fmt: skip
    assert model.settings_.options == {
        "block_size": 2, "n_states": 6, "window": 3, "n_heads": 8,
    }  # fmt: skip
    np.testing.assert_allclose(model.predict(SERIES), model.predict(), rtol=1e-6)
    sequences = classifier(
        cell="attention", n_layers=4, n_states=3, window=2, layer_options={"recurrent_layer": "all"}
    )
    assert len(sequences.network_.recurrent_blocks()) == 4


def test_sizes_that_heads_divide_are_counted():
    """Memory is estimated by networks of other widths, which must be legal as well."""
    for arguments in ({"cell": "attention", "n_heads": 5}, {"cell": "newton-gru", "n_heads": 5}):
        model = forecaster_of(1000, block_size=None, **arguments)
        with pytest.raises(ValueError, match="hidden_size=1000"):
            model.fit(SERIES)


def forecaster_of(hidden_size, **arguments):
    # far too many networks for any machine, so that the count is what is said
    return ParaRNNForecaster(
        horizon=2, hidden_size=hidden_size, n_layers=10**6, max_epochs=1, **arguments
    )


def test_layer_options_hold_what_is_no_argument():
    with pytest.raises(ValueError, match="got 'window'; give window by itself"):
        regressor(cell="attention", layer_options={"window": 3})
    with pytest.raises(ValueError, match="may hold .* got 'engine'"):
        regressor(layer_options={"engine": "newton"})


def test_make_layer_takes_each_choice():
    for cell in CELLS:
        layer = make_layer(layer_choice(cell), 3, 8, 2)
        assert type(layer) is LAYERS[layer_choice(cell).name]
    assert isinstance(layer_choice(USER), LayerChoice)
