"""Fitted models as linear layers: the layer gives the model's numbers, and gives it back."""

import numpy as np
import pandas as pd
import pytest
import torch

from tsrnn.layers import ParaRNN
from tsrnn.linear.arma import ARMA
from tsrnn.linear.dcc import CCC, DCC
from tsrnn.linear.garch import GARCH
from tsrnn.linear.varma import VARMA
from tsrnn.linear.vech import VECMGARCH


def run(layer, start, x):
    """Return the layer's first output after each input, the value before the first in front."""
    with torch.no_grad():
        output, _ = layer(torch.tensor(x)[None], start)
    n = start.shape[-1] if layer.hidden_size == 1 else 1
    first = start[0, :, :n].numpy()
    return np.concatenate([first, output[0, :, :n].numpy()])[:, 0]


@pytest.fixture(scope="module")
def returns():
    draw = np.random.default_rng(0)
    scale = np.exp(0.5 * np.sin(np.arange(600) / 40))
    return pd.Series(0.1 + scale * draw.standard_t(6, 600), name="r")


class TestGARCH:
    @pytest.mark.parametrize("vol", ["garch", "gjr"])
    @pytest.mark.parametrize("order", [(1, 1), (2, 1), (1, 2)])
    def test_the_layer_gives_the_variances(self, returns, vol, order):
        model = GARCH(order=order, vol=vol).fit(returns)
        e = model.residuals().to_numpy()
        x = np.stack([e**2, e**2 * (e < 0)], 1)[:, : 1 + (vol == "gjr")]
        variances = run(model.to_rnn(), model.rnn_start(), x)
        np.testing.assert_allclose(
            np.sqrt(variances[:-1]), model.conditional_volatility().to_numpy(), rtol=1e-10
        )
        expected = model.predict_variance(1).to_numpy().ravel()[-1]
        np.testing.assert_allclose(variances[-1], expected, rtol=1e-10)

    @pytest.mark.parametrize("vol", ["garch", "gjr"])
    def test_and_back(self, returns, vol):
        model = GARCH(order=(1, 1), vol=vol).fit(returns)
        found = GARCH.from_rnn(model.to_rnn())
        np.testing.assert_allclose(found, model.params_[found.index].iloc[0], rtol=1e-12)

    def test_an_egarch_is_none(self, returns):
        with pytest.raises(ValueError, match="an EGARCH is no linear network"):
            GARCH(vol="egarch").fit(returns).to_rnn()

    def test_a_layer_that_is_not_linear_is_refused(self):
        with pytest.raises(TypeError, match="must be one linear layer"):
            GARCH.from_rnn(ParaRNN(1, 2, 2))


class TestCorrelations:
    @pytest.fixture(scope="class")
    @classmethod
    def pair(cls):
        draw = np.random.default_rng(1)
        common = draw.normal(size=(500, 1))
        weight = np.sin(np.arange(500) / 50)[:, None]
        values = draw.normal(size=(500, 2)) + weight * common
        return pd.DataFrame(values, columns=["u", "v"])

    @pytest.mark.parametrize("vol", ["garch", "gjr"])
    def test_variances_of_a_ccc(self, pair, vol):
        model = CCC(vol=vol).fit(pair)
        e = (pair - model.fittedvalues()).to_numpy()
        x = e**2 if vol == "garch" else np.hstack([e**2, e**2 * (e < 0)])
        with torch.no_grad():
            output, _ = model.to_rnn()(torch.from_numpy(x)[None], model.rnn_start())
        both = np.concatenate([model.rnn_start()[0], output[0]])[:-1]
        frame = model.covariances().query("first == second")
        for i, name in enumerate("uv"):
            expected = frame.loc[frame["first"] == name, "covariance"]
            np.testing.assert_allclose(both[:, i], expected, rtol=1e-10)

    @pytest.mark.few("order0-gjr")
    @pytest.mark.parametrize("vol", ["garch", "gjr"])
    @pytest.mark.parametrize("order", [(1, 1), (1, 2)])
    def test_a_ccc_is_read_back(self, pair, vol, order):
        named = pair.rename(columns={"u": "y1", "v": "y2"})
        model = CCC(order, vol).fit(named)
        layer = model.to_rnn()
        found = CCC.from_rnn(layer, np.eye(2, layer.hidden_size))
        shared = found.index.intersection(model.params_.columns)
        assert len(shared) == model.params_.shape[1] - 3  # all but two means and a correlation
        np.testing.assert_allclose(found[shared], model.params_[shared].iloc[0], atol=1e-10)
        assert found.drop(shared).abs().max() < 1e-10 or order == (1, 1)
        if order == (1, 1):
            pd.testing.assert_series_equal(CCC.from_rnn(layer), found)

    def test_variances_that_depend_on_each_other_are_no_ccc(self):
        layer = ParaRNN(2, 2, 2, nonlinearity="identity").double()
        with pytest.raises(ValueError, match="depends on another"):
            CCC.from_rnn(layer)

    @pytest.mark.few("order0")
    @pytest.mark.parametrize("order", [(1, 1), (2, 1), (1, 2)])
    def test_correlations_of_a_dcc(self, pair, order):
        model = DCC(order=order).fit(pair)
        e = (pair - model.fittedvalues()).to_numpy()
        frame = model.covariances().query("first == second")
        h = np.stack([frame.loc[frame["first"] == name, "covariance"] for name in "uv"], 1)
        z = e / np.sqrt(h)
        x = np.stack([z[:, 0] ** 2, z[:, 0] * z[:, 1], z[:, 1] ** 2], 1)
        with torch.no_grad():
            output, _ = model.to_rnn()(torch.from_numpy(x)[None], model.rnn_start())
        q = np.concatenate([model.rnn_start()[0, :, :3], output[0, :-1, :3]])
        np.testing.assert_allclose(
            q[:, 1] / np.sqrt(q[:, 0] * q[:, 2]), model.correlations()["correlation"], rtol=1e-10
        )
        found = DCC.from_rnn(model.to_rnn())
        given = found.index.intersection(model.params_.columns)
        np.testing.assert_allclose(found[given], model.params_[given].iloc[0], atol=1e-10)

    def test_a_corrected_one_is_none(self, pair):
        with pytest.raises(ValueError, match="a corrected DCC is no linear network"):
            DCC(corrected=True).fit(pair).to_rnn()


class TestVECMGARCH:
    @pytest.mark.few("order1-scalar")
    @pytest.mark.parametrize(("order", "structure"), [((1, 1), "bekk"), ((2, 1), "scalar")])
    def test_the_layer_gives_the_covariances_and_is_read_back(self, order, structure):
        draw = np.random.default_rng(2)
        frame = pd.DataFrame(draw.normal(size=(300, 2)) @ [[1, 0.5], [0, 1]], columns=["u", "v"])
        model = VECMGARCH(order, structure=structure, n_starts=1).fit(frame)
        e = (frame - model.fittedvalues()).to_numpy()
        x = np.stack([e[:, 0] ** 2, e[:, 0] * e[:, 1], e[:, 1] ** 2], 1)
        layer, start = model.to_rnn(), model.rnn_start()
        with torch.no_grad():
            output, _ = layer(torch.from_numpy(x)[None], start)
        h = np.concatenate([start[0, :, :3], output[0, :-1, :3]])
        expected = model.covariances()["covariance"].to_numpy().reshape(-1, 3)
        np.testing.assert_allclose(h, expected, rtol=1e-10)
        found, r = VECMGARCH.from_rnn(layer), max(order)
        given = model.coefficients()
        np.testing.assert_allclose(found.iloc[:3], given["b"], rtol=1e-9)
        assert len(found) == 3 + 2 * r * 9
        np.testing.assert_allclose(
            found.iloc[3:12].to_numpy().reshape(3, 3), given["theta"][0], atol=1e-10
        )


class TestVARMA:
    @pytest.mark.parametrize("n", [2, 3])
    @pytest.mark.parametrize("order", [(1, 1), (2, 1), (1, 2), (2, 0), (0, 1)])
    def test_the_layer_gives_the_one_step_predictions_and_is_read_back(self, order, n):
        draw, (p, q) = np.random.default_rng(n), order
        names = [f"y{i + 1}" for i in range(n)]
        frame = pd.DataFrame(draw.normal(size=(80, n)).cumsum(0) / 3 + 5, columns=names)
        coefficients = np.r_[draw.normal(size=n), draw.normal(size=(p + q) * n * n) / 8]
        params = np.r_[coefficients, np.eye(n)[np.tril_indices(n)]]
        model = VARMA(order, likelihood="conditional", support="real").filter(frame, params)
        layer, start = model.to_rnn(), model.rnn_start()
        with torch.no_grad():
            output, _ = layer(torch.tensor(frame.to_numpy())[None], start)
        found = np.concatenate([start[0, :, :n], output[0, :, :n]])
        np.testing.assert_allclose(found[:-1], model.fittedvalues(), rtol=0, atol=1e-10)
        np.testing.assert_allclose(found[-1:], model.predict(1), rtol=0, atol=1e-10)
        read = VARMA.from_rnn(layer)
        given = model.params_.iloc[0, : len(coefficients)]
        np.testing.assert_allclose(read[given.index], given, atol=1e-10)
        np.testing.assert_allclose(read.drop(given.index), 0.0, atol=1e-10)

    def test_a_stationary_one_starts_at_its_mean_and_catches_up(self):
        draw = np.random.default_rng(0).normal(size=(300, 2))
        frame = pd.DataFrame(draw + np.array([3.0, -1.0]), columns=["u", "v"])
        params = [1, 0, 0.6, 0.1, 0, 0.5, 0.3, 0, 0.1, 0.2, 1, 0.3, 1]
        model = VARMA((1, 1)).filter(frame, params)
        first = model.rnn_start()[0, 0, :2].numpy()
        phi = np.array([[0.6, 0.1], [0, 0.5]])
        np.testing.assert_allclose(phi @ first + [1, 0], first, rtol=1e-12)
        with torch.no_grad():
            values = torch.tensor(frame.to_numpy())[None]
            output, _ = model.to_rnn()(values, model.rnn_start())
        np.testing.assert_allclose(output[0, -1:, :2], model.predict(1), rtol=0, atol=1e-10)

    def test_a_trend_is_no_input_of_the_layer(self):
        frame = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 2)), columns=["u", "v"])
        with pytest.raises(ValueError, match="takes in the targets alone"):
            VARMA(trend="ct").fit(frame).to_rnn()


class TestARMA:
    PHI, THETA = (0.5, 0.2, -0.1), (0.4, 0.3, 0.2)

    def given(self, y, p, q, d=0):
        const = [] if d else [2.0]
        params = [*const, *self.PHI[:p], *self.THETA[:q], 1.7]
        return ARMA((p, d, q), likelihood="conditional").filter(y, params)

    @pytest.mark.parametrize("p", range(4))
    @pytest.mark.parametrize("q", range(4))
    def test_the_layer_gives_the_one_step_forecasts(self, returns, p, q):
        model = self.given(returns, p, q)
        forecasts = run(model.to_rnn(), model.rnn_start(), returns.to_numpy()[:, None])
        expected = [*model.fittedvalues(), *model.predict(1).to_numpy().ravel()[-1:]]
        np.testing.assert_allclose(forecasts, expected, rtol=0, atol=1e-10)

    def test_of_the_differences(self, returns):
        levels = returns.cumsum()
        model = self.given(levels, 2, 1, d=1)
        x = np.diff(levels)
        forecasts = run(model.to_rnn(), model.rnn_start(), x[:, None])
        ahead = model.fittedvalues().to_numpy()[1:] - levels.to_numpy()[:-1]
        np.testing.assert_allclose(forecasts[:-1], ahead, rtol=0, atol=1e-10)

    @pytest.mark.parametrize(("p", "q"), [(1, 1), (3, 3), (2, 2)])
    def test_and_back(self, returns, p, q):
        model = self.given(returns, p, q)
        found = ARMA.from_rnn(model.to_rnn())
        np.testing.assert_allclose(found, model.params_[found.index].iloc[0], rtol=1e-10)
