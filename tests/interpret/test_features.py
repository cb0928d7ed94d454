"""What recurrence_features accepts, the columns it gives and the errors it raises."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError

from tsrnn.interpret import jordan_block, recurrence_features

COLUMNS = ["layer", "block", "type", "order", "modulus", "angle", "half_life", "period", "share"]


class Network:
    def __init__(self, *layers):
        self.layers = layers

    def recurrent_blocks(self):
        return list(self.layers)


class Several:
    def __init__(self, networks):
        self.networks = networks


class Forecaster:
    freq = None

    def fit(self, df):
        self.network_ = Network(torch.rand(3, 2, 2), torch.rand(2, 2, 2))
        self.freq_ = "15min"
        return self

    def predict(self, h):
        raise AssertionError

    def block_shares_(self):
        return [np.array([0.5, 0.25, 0.25]), None]


def test_a_damped_wave_is_read_from_its_matrix():
    features = recurrence_features(jordan_block(0.9, 2 * np.pi / 12))
    assert list(features.columns) == COLUMNS
    (row,) = features.itertuples()
    assert (row.layer, row.block, row.type, row.order) == (1, 1, "C-1", 1)
    assert row.modulus == pytest.approx(0.9)
    assert row.angle == pytest.approx(np.pi / 6)
    assert row.period == pytest.approx(12)
    assert 0.9**row.half_life == pytest.approx(0.5)
    assert np.isnan(row.share)
    assert features.attrs == {"time_unit": "steps", "time_step": 1.0}


def test_real_eigenvalues_of_either_sign_and_beyond_the_unit_circle():
    features = recurrence_features(np.diag([1.25, 1.0, 0.5, -0.25, 0.0]))
    assert list(features.type) == ["R-1", "R-1", "R-1", "R-1", "zero"]
    np.testing.assert_array_equal(features.modulus, [1.25, 1.0, 0.5, 0.25, 0.0])
    np.testing.assert_array_equal(features.angle, [0, 0, 0, np.pi, np.nan])
    np.testing.assert_allclose(features.half_life, [np.nan, np.inf, 1.0, 0.5, 0.0])
    np.testing.assert_array_equal(features.period, [np.inf, np.inf, np.inf, 2, np.nan])


def test_a_delay_line_is_zero_of_the_order_of_its_memory():
    delay = np.eye(3, k=1)
    features = recurrence_features(delay)
    assert list(features.type) == ["zero"]
    assert list(features.order) == [3]
    assert not np.linalg.matrix_power(delay, 3).any()


def test_rows_come_by_layer_block_and_falling_modulus():
    features = recurrence_features(Network(np.random.default_rng(0).normal(size=(5, 4, 4))))
    for _, block in features.groupby(["layer", "block"]):
        assert block.modulus.is_monotonic_decreasing
    assert features.block.is_monotonic_increasing


def test_negative_zero_is_no_turn_by_half_a_circle():
    features = recurrence_features([[-0.0]])
    assert list(features.type) == ["zero"]
    assert recurrence_features([[0.5, -0.0], [-0.0, 0.5]]).angle.tolist() == [0.0, 0.0]


def test_layers_of_several_matrices_are_read_matrix_by_matrix():
    draw = np.random.default_rng(0)
    layers = [{name: draw.normal(size=(3, 2, 2)) for name in ("A_z", "A_c")} for _ in range(2)]
    features = recurrence_features(Network(*layers))
    assert list(features.columns) == ["layer", "matrix", *COLUMNS[1:]]
    assert features[["layer", "matrix"]].drop_duplicates().values.tolist() == [
        [1, "A_z"], [1, "A_c"], [2, "A_z"], [2, "A_c"],
    ]  # fmt: skip
    for (layer, matrix), table in features.groupby(["layer", "matrix"]):
        alone = recurrence_features(layers[layer - 1][matrix])
        np.testing.assert_array_equal(table[COLUMNS[1:5]], alone[COLUMNS[1:5]])


def test_every_matrix_of_a_layer_has_the_shares_of_its_blocks():
    forecaster = Forecaster().fit(None)
    forecaster.network_ = Network({"A": np.ones((3, 2, 2)), "B": np.ones((3, 1, 1))})
    forecaster.block_shares_ = lambda: [np.array([0.5, 0.3, 0.2])]
    shares = recurrence_features(forecaster).groupby(["matrix", "block"])["share"].first()
    assert shares.loc["A"].tolist() == shares.loc["B"].tolist() == [0.5, 0.3, 0.2]


def test_networks_are_numbered_and_their_layers_begin_anew():
    draw = np.random.default_rng(0)
    networks = [Network(*draw.normal(size=(2, 3, 2, 2))) for _ in range(3)]
    forecaster = Forecaster().fit(None)
    forecaster.network_ = Several(networks)
    shares = draw.random((6, 3))
    forecaster.block_shares_ = lambda: list(shares)
    features = recurrence_features(forecaster)
    assert list(features.columns) == ["network", *COLUMNS]
    assert features.attrs == {"time_unit": "minutes", "time_step": 15.0}
    assert features["network"].is_monotonic_increasing
    for i, (network, table) in enumerate(features.groupby("network")):
        alone = recurrence_features(networks[i], freq="15min")
        found = table[COLUMNS[:-1]].reset_index(drop=True)
        pd.testing.assert_frame_equal(found, alone[COLUMNS[:-1]], check_dtype=False)
        given = table.groupby(["layer", "block"])["share"].first()
        assert network == i + 1
        np.testing.assert_array_equal(given, shares[2 * i : 2 * i + 2].ravel())


def test_an_ensemble_of_one_network_has_the_frame_of_a_network():
    network = Network(np.eye(2))
    pd.testing.assert_frame_equal(
        recurrence_features(Several([network])), recurrence_features(network)
    )


@pytest.mark.parametrize("wrap", [np.asarray, list, torch.tensor, pd.DataFrame])
def test_a_matrix_may_come_in_any_container(wrap):
    matrix = [[0.9, 0.1], [-0.2, 0.7]]
    expected = recurrence_features(matrix)
    np.testing.assert_allclose(
        recurrence_features(wrap(matrix)).modulus, expected.modulus, rtol=1e-6
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_tensors_of_any_precision(dtype):
    wave = torch.tensor(jordan_block(0.5, np.pi / 2)).to(dtype).requires_grad_()
    assert list(recurrence_features(wave).type) == ["C-1"]


def test_torch_rnn_is_read_layer_by_layer():
    rnn = torch.nn.RNN(3, 5, num_layers=2)
    features = recurrence_features(rnn)
    for layer, weight in enumerate([rnn.weight_hh_l0, rnn.weight_hh_l1], start=1):
        alone = recurrence_features(weight)
        np.testing.assert_array_equal(features[features.layer == layer].modulus, alone.modulus)
    cell = torch.nn.RNNCell(3, 5)
    assert recurrence_features(cell).modulus.max() == recurrence_features(cell.weight_hh).modulus[0]


def test_a_fitted_forecaster_gives_its_shares_and_its_unit_of_time():
    forecaster = Forecaster().fit(None)
    features = recurrence_features(forecaster)
    shares = features.groupby(["layer", "block"]).share.first()
    assert shares.loc[1].tolist() == [0.5, 0.25, 0.25]
    assert shares.loc[2].isna().all()
    assert features.attrs == {"time_unit": "minutes", "time_step": 15.0}
    in_steps = recurrence_features(forecaster, freq=1)
    np.testing.assert_allclose(features.half_life, 15 * in_steps.half_life)
    np.testing.assert_allclose(features.period, 15 * in_steps.period)


@pytest.mark.parametrize(
    ("freq", "unit", "step"),
    [
        ("MS", "months", 1), ("ME", "months", 1), ("M", "months", 1), ("3MS", "months", 3),
        (pd.offsets.MonthBegin(), "months", 1), ("QS-DEC", "quarters", 1),
        (pd.period_range("2000", periods=3, freq="Q").freq, "quarters", 1),
        ("YE-MAR", "years", 1), ("W-SUN", "weeks", 1), ("4W", "weeks", 4),
        ("B", "business days", 1), ("D", "days", 1), ("h", "hours", 1), ("s", "seconds", 1),
        ("15min", "minutes", 15), ("1h30min", "minutes", 90),
        (pd.offsets.Minute(10), "minutes", 10), (1, "steps", 1), (None, "steps", 1),
        (np.int64(5), "index units", 5), (5, "index units", 5),
    ],
)  # fmt: skip
def test_frequencies_become_units_people_use(freq, unit, step):
    features = recurrence_features(jordan_block(0.9, np.pi / 2), freq=freq)
    assert features.attrs == {"time_unit": unit, "time_step": step}
    assert features.period[0] == pytest.approx(4 * step)


@pytest.mark.parametrize("freq", ["fortnight", "", "SMS", "0D", 0, -1, True, 1.5, object()])
def test_a_frequency_without_unit_is_refused(freq):
    with pytest.raises(ValueError, match="`freq` must be a pandas frequency"):
        recurrence_features(np.eye(2), freq=freq)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        ("abc", TypeError, r"must be a square matrix .* got str 'abc'"),
        (None, TypeError, "got NoneType None"),
        (3.5, TypeError, "got float 3.5"),
        (torch.nn.RNN, TypeError, "got the class RNN itself"),
        (Forecaster, TypeError, "got the class Forecaster itself"),
        (np.zeros((2, 3)), ValueError, r"must be square: .* the matrix has shape \(2, 3\)"),
        (np.zeros(4), ValueError, r"has shape \(4,\)"),
        (np.zeros((0, 0)), ValueError, r"has shape \(0, 0\)"),
        ([], ValueError, r"has shape \(0,\)"),
        ([[1.0, 2.0], [3.0]], ValueError, "rows of the matrix differ in length"),
        ([["a"]], TypeError, "must hold real numbers; the matrix has dtype"),
        (1j * np.eye(2), TypeError, "has dtype complex128"),
        (torch.eye(2) * 1j, TypeError, "has dtype torch.complex64"),
        ([torch.eye(2), torch.eye(2)], TypeError, "got a list of tensors. .*torch.stack"),
        ([[1.0, 0.0], [np.nan, 1.0]], ValueError, "1 NaN or infinite .* block 1, row 2, column 1"),
        (torch.nn.LSTM(2, 3), ValueError, r"this LSTM has 4 \(one a gate\)"),
        (torch.nn.GRUCell(2, 3), ValueError, r"this GRUCell has 3 .*chunk\(3\)"),
        (torch.nn.RNN(2, 3, bidirectional=True), ValueError, "this RNN is bidirectional"),
        (Network(), ValueError, "Network has no recurrent layer"),
        (Network(np.eye(2), np.full((1, 1), np.inf)), ValueError, "layer 2 has 1 NaN"),
        (Several([Network(np.eye(2)), Network(np.ones(3))]), ValueError, "layer 1 of network 2"),
        (Several([]), ValueError, "Several has no recurrent layer"),
        (Network({"A_z": np.ones((1, 2))}), ValueError, r"A_z of layer 1 has shape \(1, 2\)"),
        (Forecaster(), NotFittedError, "this Forecaster is not fitted yet. Call fit"),
    ],
)
def test_bad_models_are_refused_in_words(model, error, message):
    with pytest.raises(error, match=message):
        recurrence_features(model)


@pytest.mark.parametrize("tol", [-1e-9, 1.0, np.nan, "a"])
def test_a_tolerance_outside_its_range_is_refused(tol):
    with pytest.raises(ValueError, match=r"`tol` must be a number in \[0, 1\)"):
        recurrence_features(np.eye(2), tol=tol)


def test_a_wider_tolerance_joins_what_a_narrow_one_keeps_apart():
    matrix = [[0.9, 1.0], [1e-6, 0.9]]
    assert list(recurrence_features(matrix).type) == ["R-1", "R-1"]
    assert list(recurrence_features(matrix, tol=1e-4).type) == ["R-2"]


@pytest.mark.parametrize("shares", [[[0.5, 0.5]], [[1.0], None], [None]])
def test_shares_that_do_not_fit_the_blocks_are_refused(shares):
    forecaster = Forecaster().fit(None)
    forecaster.block_shares_ = lambda: shares
    with pytest.raises(ValueError, match="one number a block and one array"):
        recurrence_features(forecaster)


def test_a_numpy_matrix_needs_no_torch():
    code = (
        "import sys, numpy as np\n"
        "from tsrnn.interpret import recurrence_features\n"
        "recurrence_features(np.eye(3))\n"
        "sys.exit(any(m in sys.modules for m in ('torch', 'matplotlib', 'lightning', 'sklearn')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
