"""Lyapunov exponents against closed forms, brute force and the HAC errors of arch."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from arch.covariance.kernel import Bartlett
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from tsrnn import LEMForecaster, LRUForecaster, ParaRNNForecaster
from tsrnn.interpret import (
    LyapunovExponents,
    UninformativeNetworkError,
    _lyapunov,
    lyapunov_exponent,
)
from tsrnn.layers import (
    LEM,
    LRU,
    BlockRecurrentAttention,
    Ensemble,
    NewtonBlocks,
    NewtonGRU,
    NewtonLSTM,
    ParaRNN,
    RecurrentNetwork,
)

DOUBLE = {"dtype": torch.float64}


def logistic(r):
    return lambda h: r * h * (1 - h)


def henon(s):
    return torch.stack([1 - 1.4 * s[0] ** 2 + s[1], 0.3 * s[0]])


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def seeded(layer, seed=0):
    layer.reset_parameters(torch.Generator().manual_seed(seed))
    return layer


def scaled(layer, gain):
    with torch.no_grad():
        for parameter in layer.recurrent_parameters() or layer.parameters():
            parameter *= gain
    return layer


class TestMaps:
    def test_logistic_map_at_4(self):
        result = lyapunov_exponent(logistic(4.0), state=[0.3], n_steps=6000)
        assert result.exponent == pytest.approx(math.log(2), rel=0.005)
        assert result.n_steps == 5400
        assert result.half_life != result.half_life  # it grows

    def test_logistic_map_with_a_stable_cycle(self):
        """Of four numbers at r = 3.5, by an orbit of long doubles."""
        h, total = np.longdouble(0.3), np.longdouble(0.0)
        for i in range(6000):
            h = np.longdouble(3.5) * h * (1 - h)
            total += np.log(abs(np.longdouble(3.5) * (1 - 2 * h))) * (i >= 2000)
        result = lyapunov_exponent(logistic(3.5), state=[0.3], n_steps=4000, burn_in=2000)
        assert result.exponent == pytest.approx(float(total) / 4000, abs=1e-10)
        assert result.words.startswith("Shocks die out: they halve every 0.794 steps")

    def test_henon_map(self):
        """0.41922 is published; both add up to the logarithm of the area's factor, 0.3."""
        result = lyapunov_exponent(henon, state=[0.1, 0.1], n_steps=10000, n_exponents=2)
        first, second = result.table["exponent"]
        assert first == pytest.approx(0.41922, abs=3 * result.standard_error)
        assert first == pytest.approx(0.41922, rel=0.02)
        assert first + second == pytest.approx(math.log(0.3), abs=1e-10)
        one = lyapunov_exponent(henon, state=[0.1, 0.1], n_steps=10000)
        assert one.exponent == pytest.approx(first, abs=1e-10)
        assert list(one.table) == ["exponent", "standard_error", "lower", "upper", "half_life"]

    @settings(deadline=None, max_examples=15)
    @given(
        st.integers(1, 4), st.floats(0.05, 3.0), st.integers(0, 100), st.sampled_from([1.0, -1.0])
    )
    def test_a_linear_map_is_exact(self, d, size, seed, sign):
        matrix = normal(d, d, seed=seed)
        radius = torch.linalg.eigvals(matrix).abs().max()
        matrix = sign * size * matrix / radius
        result = lyapunov_exponent(lambda h: matrix @ h, state=np.ones(d), n_steps=20)
        assert result.exponent == pytest.approx(math.log(size), abs=1e-10)
        assert result.conf_int() == (result.exponent, result.exponent)
        assert (result.n_series, result.n_steps, result.rates.shape) == (0, 0, (0, 0))

    @settings(deadline=None, max_examples=15)
    @given(st.floats(0, 6.3), st.integers(0, 100), st.integers(1, 3), st.booleans())
    def test_turns_that_stretch_by_the_data(self, angle, seed, batch, both):
        """The Jacobian e^(u_t) R: local rates are u_t themselves, in any direction."""
        cos, sin = math.cos(angle), math.sin(angle)
        turn = torch.tensor([[cos, -sin], [sin, cos]], **DOUBLE)
        u = normal(batch, 60, 1, seed=seed)
        result = lyapunov_exponent(
            lambda h, x: torch.exp(x[0]) * (turn @ h), u, state=[1.0, 0.5], n_exponents=1 + both
        )
        np.testing.assert_allclose(result.rates, u[:, 6:, 0], atol=1e-12)
        np.testing.assert_allclose(result.table["exponent"], u[:, 6:].mean(), atol=1e-12)

    def test_shocks_are_those_of_perturbed_orbits(self):
        """Of the oldest method: a second orbit, set back beside the first at every step."""
        orbit = torch.tensor([0.1, 0.1], **DOUBLE)
        result = lyapunov_exponent(henon, state=orbit, n_steps=60, burn_in=40)
        shock, growth = torch.tensor([1e-7, 0.0], **DOUBLE), []
        for _ in range(60):
            new = henon(orbit)
            moved = henon(orbit + shock) - new
            growth.append(math.log(moved.norm() / 1e-7))
            orbit, shock = new, 1e-7 * moved / moved.norm()
        np.testing.assert_allclose(result.rates[0], growth[40:], atol=1e-5)

    def test_larger_maps_by_the_loop(self):
        """Ten dimensions are not unrolled; by products in numpy."""
        matrix, steps = normal(10, 10) / 2, 80
        result = lyapunov_exponent(
            lambda h, u: torch.tanh(matrix @ h + u), normal(steps, 10, seed=1), state=np.zeros(10),
            n_exponents=10, burn_in=0,
        )  # fmt: skip
        h, total = np.zeros(10), 0.0
        for u in normal(steps, 10, seed=1).numpy():
            h = np.tanh(matrix.numpy() @ h + u)
            total += np.linalg.slogdet((1 - h**2)[:, None] * matrix.numpy())[1]
        assert result.table["exponent"].sum() == pytest.approx(total / steps, abs=1e-9)
        assert result.table["exponent"].is_monotonic_decreasing

    def test_products_that_no_number_holds(self):
        for rate in (-30.0, 30.0):
            result = lyapunov_exponent(
                lambda h, u: torch.exp(u) * torch.sin(h), rate + normal(500, 1), state=[0.0]
            )
            assert result.exponent == pytest.approx(rate, abs=0.2)

    def test_states_forgotten_at_once(self):
        result = lyapunov_exponent(lambda h, u: u + 0 * h, normal(50, 1), state=[0.5])
        assert result.exponent == -math.inf
        assert result.half_life == 0
        assert result.words.startswith("Shocks are forgotten at once")
        mixed = lyapunov_exponent(
            lambda h, u: torch.relu(u) * h, normal(50, 1), state=[0.5], n_exponents=1
        )
        assert mixed.exponent == -math.inf
        assert math.isnan(mixed.standard_error)


LAYERS = {
    "rnn": lambda: ParaRNN(2, 6, num_layers=2, **DOUBLE),
    "dense": lambda: ParaRNN(2, 10, 10, **DOUBLE),
    "relu": lambda: ParaRNN(2, 6, nonlinearity="relu", **DOUBLE),
    "gru": lambda: ParaRNN(2, 6, 3, cell="gru", **DOUBLE),
    "lstm": lambda: ParaRNN(2, 4, 1, num_layers=2, cell="lstm", **DOUBLE),
    "lem": lambda: LEM(2, 4, dt=0.5, **DOUBLE),
    "newton-gru": lambda: NewtonGRU(2, 4, num_layers=2, **DOUBLE),
    "newton-lstm": lambda: NewtonLSTM(2, 4, **DOUBLE),
    "newton-blocks": lambda: NewtonBlocks(2, 2, 2, cell="newton-lstm", conv_size=2, **DOUBLE),
    "lru": lambda: LRU(2, 3, num_layers=2, state_units=2, **DOUBLE),
}


def whole_spectrum(layer, x, burn_in, count):
    """Benettin's method on the Jacobian of the whole state of all layers, by brute force."""
    shape = (layer.num_layers, 1, layer.state_size)
    h = torch.zeros(shape, dtype=torch.float64)
    q = torch.linalg.qr(normal(h.numel(), count, seed=9))[0]
    rates = []
    for u in x[0]:
        step = lambda s, u=u: layer(u[None, None], s.reshape(shape))[1].flatten()  # noqa: E731
        jacobian = torch.autograd.functional.jacobian(step, h.flatten())
        h = step(h.flatten()).detach().reshape(shape)
        q, r = torch.linalg.qr(jacobian @ q)
        rates.append(r.diagonal().abs().log())
    return torch.stack(rates)[burn_in:].mean(0).numpy()


class TestLayers:
    @pytest.mark.few("rnn", "gru", "lem", "newton-lstm")
    @pytest.mark.parametrize("name", LAYERS)
    def test_exponents_are_those_of_the_whole_state(self, name):
        """Block by block and layer by layer, or of all at once, to what the start leaves."""
        layer, x = seeded(LAYERS[name]()), normal(1, 200, 2)
        result = lyapunov_exponent(layer, x, n_exponents=3, burn_in=50)
        expected = whole_spectrum(layer, x, 50, 3)
        np.testing.assert_allclose(result.table["exponent"], expected, atol=0.03)
        assert list(result.table)[:2] == ["layer", "block"]

    @pytest.mark.parametrize("name", ["gru", "dense"])
    def test_all_exponents_add_up_to_the_determinants(self, name):
        layer, x = seeded(LAYERS[name]()), normal(2, 40, 2)
        total = layer.num_layers * layer.state_size
        result = lyapunov_exponent(layer, x, n_exponents=total, burn_in=0)
        logarithms = []
        for series in x:
            h = layer.initial_state(1)
            for u in series:
                step = lambda s, u=u: layer(u[None, None], s[None, None])[1].flatten()  # noqa: E731
                jacobian = torch.autograd.functional.jacobian(step, h.flatten())
                logarithms.append(torch.linalg.slogdet(jacobian)[1].item())
                h = step(h.flatten()).detach().reshape(h.shape)
        assert result.table["exponent"].sum() == pytest.approx(np.mean(logarithms), abs=1e-8)
        with pytest.raises(ValueError, match=f"n_exponents must be at most {total}"):
            lyapunov_exponent(layer, x, n_exponents=total + 1)

    def test_linear_layers_are_exact(self):
        lru = seeded(LRU(2, 3, state_units=5, num_layers=2, **DOUBLE))
        modulus = max(values.abs().max().item() for values in lru.eigenvalues())
        for x in (None, normal(30, 2)):
            result = lyapunov_exponent(lru, x)
            assert result.exponent == pytest.approx(math.log(modulus), rel=1e-9)
            assert result.standard_error == 0
            assert "exact" in result.words
        layer = seeded(ParaRNN(2, 8, 4, num_layers=2, nonlinearity="identity", **DOUBLE))
        radii = [np.abs(np.linalg.eigvals(b.numpy())).max() for b in layer.recurrent_blocks()]
        result = lyapunov_exponent(layer, normal(30, 2))
        assert result.exponent == pytest.approx(math.log(max(radii)), rel=1e-9)

    def test_a_turn_is_marginal(self):
        layer = seeded(ParaRNN(1, 2, nonlinearity="identity", **DOUBLE))
        layer.weight_hh_l0.data[..., 0] = torch.tensor([[0.6, -0.8], [0.8, 0.6]], **DOUBLE)
        result = lyapunov_exponent(layer, normal(30, 1))
        assert (result.exponent, result.half_life) == (0.0, math.inf)
        assert result.words == "Shocks neither die out nor grow (exponent 0.000 a step, exact)."

    def test_the_largest_block_is_named(self):
        layer = scaled(seeded(ParaRNN(2, 8, **DOUBLE)), 0.1)
        layer.weight_hh_l0.data[..., 2] = 0.8 * torch.eye(2).double()
        result = lyapunov_exponent(layer, 0.1 * normal(3, 200, 2), n_exponents=4)
        assert result.table["block"].tolist()[:2] == [3, 3]
        assert result.exponent == pytest.approx(math.log(0.8), abs=0.1)
        assert result.exponent < math.log(0.8)  # tanh has slopes below 1

    def test_gain_takes_a_network_from_forgetting_to_chaos(self):
        x = 0.1 * normal(2, 400, 1)
        exponents = []
        for gain in (0.5, 1.0, 3.0):
            layer = ParaRNN(1, 40, 40, **DOUBLE)
            generator = torch.Generator().manual_seed(0)
            layer.weight_hh_l0.data.normal_(0, gain / 40**0.5, generator=generator)
            exponents.append(lyapunov_exponent(layer, x).exponent)
        assert exponents[0] == pytest.approx(math.log(0.5), abs=0.1)
        assert exponents == sorted(exponents)
        assert exponents[2] > 0.1

    def test_single_precision_and_few_numbers_at_once(self, monkeypatch):
        layer, x = seeded(LAYERS["gru"]()), normal(2, 200, 2)
        expected = lyapunov_exponent(layer, x, n_exponents=2)
        monkeypatch.setattr(_lyapunov, "NUMBERS_AT_ONCE", 300)
        for n_exponents in (1, 2):
            pieces = lyapunov_exponent(layer, x, n_exponents=n_exponents)
            # Rates along one direction and the first of a QR differ by rounding.
            np.testing.assert_allclose(pieces.rates, expected.rates, atol=1e-12)
        single = lyapunov_exponent(layer.float(), x.float())
        assert single.exponent == pytest.approx(expected.exponent, abs=1e-5)
        assert layer.weight_ih_l0.dtype == torch.float32

    def test_networks_and_ensembles(self):
        members = [
            scaled(
                seeded(RecurrentNetwork(ParaRNN(3, 4, **DOUBLE), 1, input_size=2).double(), i), g
            )
            for i, g in enumerate([0.5, 0.9, 0.7])
        ]
        x = normal(2, 100, 2)
        each = [lyapunov_exponent(member, x) for member in members]
        result = lyapunov_exponent(Ensemble(members), x)
        assert result.table["network"].tolist() == [1, 2, 3]
        assert result.table["exponent"].tolist() == [r.exponent for r in each]
        best = max(each, key=lambda r: r.exponent)
        assert (result.exponent, result.conf_int(0.1)) == (best.exponent, best.conf_int(0.1))
        with torch.no_grad():
            inputs = members[0].input(x)
        assert lyapunov_exponent(members[0].rnn, inputs).exponent == each[0].exponent


class TestStandardError:
    def result(self, u):
        """Result whose local rates are numbers given."""
        return lyapunov_exponent(
            lambda h, x: torch.exp(x[0]) * h, u[..., None], state=[1e-3], burn_in=0
        )

    @pytest.mark.parametrize("phi", [-0.5, 0.0, 0.7])
    def test_of_one_series_is_that_of_arch(self, phi):
        e = normal(800).numpy()
        u = np.zeros(800)
        for t in range(1, 800):
            u[t] = phi * u[t - 1] + e[t]
        result = self.result(u)
        np.testing.assert_allclose(result.rates[0], u, atol=1e-12)
        estimator = Bartlett(u, force_int=True)
        assert result.bandwidth == estimator.bandwidth
        b = (result.bandwidth + 1) / 800
        variance = float(np.squeeze(estimator.cov.long_run)) / 800 / (1 - b + b**2 / 3)
        assert result.standard_error == pytest.approx(variance**0.5, rel=1e-10)

    def test_rates_that_are_all_the_same(self):
        """Quarter turns of the plane by signs of the data, twice as large at each."""
        turn = torch.tensor([[0.0, -2.0], [2.0, 0.0]], **DOUBLE)
        result = lyapunov_exponent(
            lambda h, x: torch.sign(x) * (turn @ h), normal(60, 1), state=[1e-9, 0.0]
        )
        assert result.exponent == pytest.approx(math.log(2), abs=1e-12)
        assert result.standard_error == pytest.approx(0, abs=1e-12)
        assert result.n_steps == 54

    def test_series_are_pooled(self):
        result = self.result(normal(50, 200))
        assert result.rates.shape == (50, 200)
        assert result.standard_error == pytest.approx(1e-2, rel=0.1)

    def test_intervals_widen_with_their_level(self):
        result = self.result(normal(40))
        assert result.degrees_of_freedom <= 40
        lower, upper = result.conf_int(0.01)
        assert lower < result.conf_int()[0] < result.exponent < result.conf_int()[1] < upper

    def test_covers_the_skew_tent_map(self):
        """Its rates are independent, its exponent the entropy of 0.3 and 0.7."""
        a = 0.3
        truth = -a * math.log(a) - (1 - a) * math.log(1 - a)
        starts = np.random.default_rng(0).uniform(size=100)
        covered = 0
        for start in starts:
            result = lyapunov_exponent(
                lambda h: torch.where(h < a, h / a, (1 - h) / (1 - a)), state=[start], n_steps=300
            )
            lower, upper = result.conf_int()
            covered += lower <= truth <= upper
        assert 88 <= covered <= 100


SMALL = {
    "horizon": 2, "hidden_size": 4, "n_layers": 1, "input_size": 6, "max_epochs": 1,
    "refit": False, "random_state": 0, "linear_path": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def sales():
    t = np.arange(80)
    return pd.Series(np.sin(t / 3) + t / 50, pd.date_range("2010", periods=80, freq="QS"), name="a")


class TestForecasters:
    @pytest.mark.parametrize(
        ("kind", "options"),
        [
            (ParaRNNForecaster, {"n_layers": 2}),
            (ParaRNNForecaster, {"cell": "newton-gru"}),
            (ParaRNNForecaster, {"preset": "paper"}),
            (LEMForecaster, {}),
            (LRUForecaster, {}),
        ],
        ids=str,
    )
    def test_are_read_along_their_sample(self, sales, kind, options):
        model = kind(**SMALL | options).fit(sales)
        result = lyapunov_exponent(model)
        assert isinstance(result, LyapunovExponents)
        expected = lyapunov_exponent(model.network_, model.sample_)
        assert result.exponent == expected.exponent
        assert (result.time_unit, result.time_step) == ("quarters", 1.0)
        assert result.half_life == pytest.approx(math.log(2) / -result.exponent)
        assert lyapunov_exponent(model, freq="15min").half_life == 15 * result.half_life
        assert "quarters" in result.words
        assert str(result).startswith("Largest Lyapunov exponent: -")

    def test_ensembles_have_a_row_a_network(self, sales):
        model = ParaRNNForecaster(**SMALL | {"n_estimators": 3}).fit(sales)
        model.fitted_ = replace(model.fitted_, best_epochs=[1, 0, 1])
        model.network_.members[1].output.weight.data.zero_()
        model.network_.members[1].output.bias.data.zero_()
        assert lyapunov_exponent(model).table["network"].tolist() == [1, 3]

    def test_inactive_networks_are_not_read(self, sales):
        model = ParaRNNForecaster(**SMALL | {"linear_path": True, "learning_rate": 30.0}).fit(sales)
        assert not model.network_active_
        with pytest.raises(UninformativeNetworkError, match="lyapunov_exponent reads what"):
            lyapunov_exponent(model)
        with pytest.raises(NotFittedError, match="lyapunov_exponent needs a fitted model"):
            lyapunov_exponent(ParaRNNForecaster())


X = normal(50, 2)


class TestErrors:
    @pytest.mark.parametrize(
        ("model", "error", "message"),
        [
            (BlockRecurrentAttention(2, 8), TypeError, "reads layers .*; got BlockRecurrentAtt"),
            (torch.nn.Linear(2, 2), TypeError, "must be a tsrnn.layers.Recurrent, .* got Linear"),
            (ParaRNN, TypeError, "the class ParaRNN itself"),
            ([[0.5]], TypeError, "got list"),
        ],
    )
    def test_models(self, model, error, message):
        with pytest.raises(error, match=message):
            lyapunov_exponent(model, X)

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"x": None}, TypeError, "x, the inputs to run over, must be given"),
            ({"x": X.numpy()}, TypeError, "x must be a torch.Tensor; got ndarray"),
            ({"x": normal(50, 3)}, ValueError, r"x must have shape \(B, T, 2\)"),
            ({"x": X[:5]}, ValueError, "at least 10 steps .* got T=5 and burn_in=0"),
            ({"x": X.where(X < 2, math.nan)}, ValueError, "x must be finite"),
            ({"burn_in": 45}, ValueError, "got T=50 and burn_in=45"),
            ({"burn_in": -1}, ValueError, "burn_in must be a number of steps"),
            ({"burn_in": "a"}, ValueError, "burn_in must be a number of steps"),
            ({"n_exponents": 0}, ValueError, "n_exponents must be a positive integer; got 0"),
            ({"n_exponents": 9}, ValueError, "n_exponents must be at most 4, .* got 9"),
            ({"state": [0.0]}, TypeError, "state belongs to maps"),
            ({"n_steps": 5}, TypeError, "n_steps belongs to maps"),
            ({"freq": "SMS"}, ValueError, "`freq` must be"),
        ],
    )
    def test_of_layers(self, arguments, error, message):
        with pytest.raises(error, match=message):
            lyapunov_exponent(ParaRNN(2, 4, **DOUBLE), **{"x": X} | arguments)

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"state": None}, TypeError, "a map needs its start, state"),
            ({"state": "a"}, ValueError, r"state of a map must be numbers .* got 'a'"),
            ({"state": []}, ValueError, r"got an array of shape \(0,\)"),
            ({"state": [math.nan]}, ValueError, "state must be finite"),
            ({"n_steps": 0}, ValueError, "n_steps must be a positive integer; got 0"),
            ({"x": X}, TypeError, "n_steps is of a map without inputs"),
            ({"x": X[0], "n_steps": None}, ValueError, r"x of a map .* got an array of shape"),
            (
                {"x": normal(3, 20, 1), "state": np.zeros((2, 1)), "n_steps": None},
                ValueError,
                "as many series; got 2, 3",
            ),
            ({"model": lambda h: 0.5}, TypeError, "must return a torch.Tensor, .* got float"),
            ({"model": lambda h: h.sum()}, ValueError, r"state of shape \(1,\); got \(\)"),
            ({"model": lambda h: h**2, "state": [5.0]}, ValueError, "the finite numbers at step 9"),
        ],
    )
    def test_of_maps(self, arguments, error, message):
        given = {"model": logistic(3.5), "state": [0.3], "n_steps": 100} | arguments
        with pytest.raises(error, match=message):
            lyapunov_exponent(given.pop("model"), **given)

    def test_a_network_that_overflows(self):
        layer = seeded(ParaRNN(1, 2, nonlinearity="relu", **DOUBLE))
        layer.weight_hh_l0.data[..., 0] = 3 * torch.eye(2).double()
        with pytest.raises(ValueError, match="overflows"):
            lyapunov_exponent(layer, normal(800, 1))

    @pytest.mark.parametrize("alpha", [0, 1, "a", None, [0.1]])
    def test_levels(self, alpha):
        result = lyapunov_exponent(logistic(3.5), state=[0.3], n_steps=100)
        with pytest.raises(ValueError, match="alpha must be a number between 0 and 1"):
            result.conf_int(alpha)
