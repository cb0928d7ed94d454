"""The linear path in closed form, training by Lightning, and what follows from settings."""

import logging
import signal
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
import torch
from lightning.pytorch.callbacks import Callback
from sklearn.linear_model import Ridge

from tsrnn.forecasters import _segments
from tsrnn.forecasters._linear_path import PENALTIES, best_forms, fit_linear_paths
from tsrnn.forecasters._model import empty_model
from tsrnn.forecasters._units import full_origins, make_units
from tsrnn.training import _lightning, _side_effects


class TestLinearPath:
    """Against scikit-learn on a design that is laid out row by row."""

    W, H, SEASON, SPLIT = 6, 3, 4, 130

    @pytest.fixture(
        params=[(1, 0, [], ()), (2, 1, [], ()), (2, 1, [], (1,)), (1, 2, [1], (1, 2))],
        ids=["one", "joint", "varying", "known and varying"],
    )
    def case(self, request, small, wave):
        n_targets, n_exog, known, seasons = request.param
        settings = replace(
            small().fit(wave).settings_,
            horizon=self.H, input_size=self.W, multivariate="joint", seasons=seasons,
            val_size=10 * (self.H + self.W),
        )  # fmt: skip
        draw = np.random.default_rng(0)
        values = draw.normal(size=(180, n_targets + n_exog)).cumsum(0) / 4
        if seasons:  # stretches that alternate and stretches of noise
            waves = (-1.0) ** np.arange(180) * (np.arange(180) // 15 % 2)
            noise = 0.3 * draw.normal(size=(180, n_targets))
            values[:, :n_targets] = noise + 2 * waves[:, None]
        model = empty_model(settings, n_targets, n_exog, known)
        model.reset_parameters(torch.Generator().manual_seed(0), zero_output=True)
        constant = np.zeros((1, n_targets), bool)
        indptr = np.array([0, 180])
        units = make_units(
            values, indptr, window=self.W, n_targets=n_targets, constant=constant, local_level=True
        )
        return model.double(), units, values

    def design(self, values, model, origins):
        """Return lags and targets (n, h, C), minus the level; levels."""
        values = values[:, model.lagged]
        level = pd.DataFrame(values).rolling(self.W, min_periods=1).mean().to_numpy()
        lags, targets, season_lags = [], [], []
        for t in origins:
            window = np.zeros((self.W, values.shape[1]))
            n = min(self.W, t + 1)
            window[-n:] = values[t - n + 1 : t + 1] - level[t]
            ahead = values[t + 1 : t + 1 + self.H] - level[t]
            lags.append(window.T.ravel())
            own = window[:, : model.n_targets].T
            strength = [
                np.mean([self.correlation(row[k:], row[:-k]) for row in own]) for k in model.seasons
            ]
            season_lags.append(np.outer(strength, own.ravel()).ravel())
            targets.append(ahead[:, : model.n_targets])
        levels = level[list(origins), : model.n_targets]
        return tuple(np.array(part) for part in (lags, season_lags, targets, levels))

    def correlation(self, x, y):
        size = np.sqrt((x @ x) * (y @ y))
        return x @ y / size if size > 0 else 0.0

    def naive(self, name, n_lags, n_targets):
        weights = np.zeros((n_lags, self.H, n_targets))
        period = {"local level": None, "last value": 1, "seasonal naive": self.SEASON}[name]
        if period is not None:
            for k in range(self.H):
                for c in range(n_targets):
                    weights[c * self.W + self.W - period + k % period, k, c] = 1
        return weights

    def ridge(self, model, design, name, penalty, varying, reverting):
        """Return weights of lags, those times each season, and levels, by step."""
        lags, season_lags, targets, levels = design
        prior = self.naive(name, lags.shape[1], model.n_targets)
        season_lags = season_lags if varying else season_lags[:, :0]
        levels = levels if reverting else levels[:, :0]
        parts = []
        for k in range(self.H):
            x = np.hstack([lags, season_lags, levels])
            unit = np.linalg.eigvalsh(x.T @ x).mean()
            fit = Ridge(alpha=penalty * unit, fit_intercept=False)
            weights = fit.fit(x, targets[:, k] - lags @ prior[:, k]).coef_
            weights = np.atleast_2d(weights)
            sizes = lags.shape[1], season_lags.shape[1]
            by_lag, by_season, by_level = np.split(weights.T, np.cumsum(sizes))
            parts.append((by_lag + prior[:, k], by_season, by_level))
        return tuple(np.stack(part, 1) for part in zip(*parts, strict=True))

    @pytest.fixture
    def chosen(self, case):
        """Return what is chosen on the validation rows, with every form's error there."""
        model, units, _ = case
        split = torch.tensor([self.SPLIT])
        train = full_origins(units.starts, split, self.H)
        held = full_origins(split - 1, units.indptr[1:], self.H, units.starts)
        (form,) = best_forms(model, [units], [train], [held], self.SEASON)
        return form, train, held

    def test_is_the_ridge_regression_that_validates_best(self, case, chosen):
        model, units, values = case
        form, train, _ = chosen
        fitted = self.design(values, model, range(self.SPLIT - self.H))
        lags, season_lags, targets, levels = self.design(
            values, model, range(self.SPLIT - 1, 180 - self.H)
        )
        errors = {}
        forms = product(
            ("local level", "last value", "seasonal naive"), PENALTIES,
            (False, True)[: 1 + bool(model.seasons)], (False, True),
        )  # fmt: skip
        for tried in forms:
            a, s, g = self.ridge(model, fitted, *tried)
            forecast = np.einsum("np,phc->nhc", lags, a)
            if tried[2]:
                forecast += np.einsum("np,phc->nhc", season_lags, s)
            if tried[3]:
                forecast += np.einsum("nd,dhc->nhc", levels, g)
            errors[tried] = np.mean((targets - forecast) ** 2)
        best = min(errors, key=errors.get)
        assert tuple(form.values()) == (*best, pytest.approx(errors[best]))
        fit_linear_paths([[model]], [units], [train], self.SEASON, [form])
        for name, parameter in (
            ("varying", model.linear_varying), ("reverting", model.linear_level)
        ):  # fmt: skip
            if parameter is not None:
                assert parameter.requires_grad == bool(parameter.any()) == form[name]

    def test_few_windows_do_not_say_whether_there_is_a_mean(self, small, wave):
        settings = small().fit(wave).settings_
        needed = 10 * (settings.horizon + settings.input_size)
        for val_size, judged in ((needed, True), (needed - 1, False)):
            model = empty_model(replace(settings, val_size=val_size), 1, 0, [])
            assert (model.linear_level is not None) == judged

    @pytest.mark.parametrize("reverting", [False, True])
    def test_holds_the_coefficients_of_a_form(self, case, chosen, reverting):
        model, units, values = case
        choice, train, (rows, starts) = chosen
        choice |= {"varying": bool(model.seasons), "reverting": reverting}
        fit_linear_paths([[model]], [units], [train], self.SEASON, [choice])
        fitted = self.design(values, model, range(self.SPLIT - self.H))
        parts = choice["prior"], choice["penalty"], choice["varying"], choice["reverting"]
        a, s, g = self.ridge(model, fitted, *parts)
        np.testing.assert_allclose(model.linear.detach(), a.reshape(len(a), -1), atol=1e-9)
        if model.linear_varying is not None:
            by_season = s.reshape(len(model.seasons), -1, s[0].size)
            expected = by_season.transpose(1, 0, 2).reshape(by_season.shape[1], -1)
            np.testing.assert_allclose(model.linear_varying.detach(), expected, atol=1e-9)
        expected = g.reshape(len(g), -1) if reverting else 0.0
        np.testing.assert_allclose(model.linear_level.detach(), expected, atol=1e-9)
        states = torch.zeros(len(rows), 8, dtype=torch.float64)
        with torch.no_grad():
            parts = model.parts(units.at(rows, starts), states, model.columns_ahead(units, rows))
        ours = (parts.total() - parts.level).numpy()
        held = self.design(values, model, range(self.SPLIT - 1, 180 - self.H))
        lags, season_lags, _, levels = held
        forecast = np.einsum("np,phc->nhc", lags, a)
        if model.seasons:
            forecast += np.einsum("np,phc->nhc", season_lags, s)
        if reverting:
            forecast += np.einsum("nd,dhc->nhc", levels, g)
        np.testing.assert_allclose(ours, forecast, atol=1e-9)


class Raiser(Callback):
    """Break training off in its second epoch."""

    def __init__(self, error):
        self.error = error

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if trainer.current_epoch == 1:
            raise self.error


class Recorder(Callback):
    """Keep the weights after every epoch, and which hooks were called."""

    def __init__(self, spoil_from=None):
        self.weights, self.losses, self.hooks = [], [], []
        self.spoil_from = spoil_from

    def on_fit_start(self, trainer, pl_module):
        self.hooks.append("fit start")

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if self.spoil_from is not None and trainer.current_epoch >= self.spoil_from:
            with torch.no_grad():
                pl_module.model.network.output.bias.add_(1.0)

    def on_train_epoch_end(self, trainer, pl_module):
        self.hooks.append("epoch end")
        state = pl_module.model.state_dict()
        self.weights.append({name: value.clone() for name, value in state.items()})
        self.losses.append(float(trainer.callback_metrics["val_loss"]))

    def on_fit_end(self, trainer, pl_module):
        self.hooks.append("fit end")


class TestTraining:
    def test_callbacks_see_lightning(self, small, wave):
        recorder = Recorder()
        model = small(callbacks=[recorder], max_epochs=3).fit(wave)
        assert recorder.hooks == ["fit start", *["epoch end"] * 3, "fit end"]
        np.testing.assert_allclose(recorder.losses, [e["val_loss"] for e in model.history_])
        assert [e["epoch"] for e in model.history_] == [1, 2, 3]

    def test_the_best_weights_are_kept(self, small, wave):
        recorder = Recorder(spoil_from=3)
        model = small(
            callbacks=[recorder], max_epochs=6, linear_path=False, learning_rate=1e-2
        ).fit(wave)
        best = int(np.argmin(recorder.losses))
        assert best < 3
        assert model.best_epoch_ == best + 1
        for name, value in model.model_.state_dict().items():
            assert torch.equal(value, recorder.weights[best][name]), name

    def test_no_better_epoch_leaves_the_linear_path(self, small, wave):
        model = small(callbacks=[Recorder(spoil_from=0)], max_epochs=2).fit(wave)
        assert model.best_epoch_ == 0
        assert (model.network_.output.weight == 0).all()
        assert "The network contributes nothing: none of 2 epochs was better" in " ".join(
            str(model.summary()).split()
        )

    @pytest.mark.parametrize(
        "error", [KeyboardInterrupt(), RuntimeError("mine"), SystemExit(3)], ids=repr
    )
    def test_that_breaks_off(self, small, wave, error):
        model = small().fit(wave)
        before, handler = model.predict(), signal.getsignal(signal.SIGINT)
        with pytest.raises(type(error)) as caught:
            model.set_params(callbacks=[Raiser(error)]).fit(wave + 1)
        assert caught.value is error
        assert signal.getsignal(signal.SIGINT) is handler
        pd.testing.assert_series_equal(model.predict(), before)

    @pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("mine")], ids=repr)
    def test_that_breaks_off_closes_its_bar(self, small, wave, monkeypatch, error):
        bars = []

        class Bar(_lightning.tqdm):
            def __init__(self, *args, **kwargs):
                super().__init__(*args, **kwargs)
                self.closed = 0
                bars.append(self)

            def close(self):
                self.closed = True
                super().close()

        monkeypatch.setattr(_lightning, "tqdm", Bar)
        with pytest.raises(type(error)):
            small(callbacks=[Raiser(error)], verbose=1).fit(wave)
        assert [bar.closed for bar in bars] == [True]

    def test_that_breaks_off_before_its_bar(self, small, wave):
        class Early(Callback):
            def setup(self, trainer, pl_module, stage):
                raise RuntimeError("early")

        with pytest.raises(RuntimeError, match="early"):
            small(callbacks=[Early()], verbose=1).fit(wave)

    def test_loggers_that_appear_meanwhile(self, monkeypatch):
        loggers = {}

        class Name(str):
            def startswith(self, *_):
                loggers[f"another {len(loggers)}"] = None
                return False

        loggers |= {Name("one"): None, Name("two"): None}
        monkeypatch.setattr(logging.root.manager, "loggerDict", loggers)
        with _side_effects.quiet():
            pass
        assert len(loggers) > 2  # some appeared while it went through them

    def test_patience(self, small, wave):
        model = small(callbacks=[Recorder(spoil_from=0)], max_epochs=50, patience=2).fit(wave)
        assert len(model.history_) <= 4

    def test_learning_rate_is_halved_when_validation_stalls(self, small, wave):
        model = small(callbacks=[Recorder(spoil_from=0)], max_epochs=8, patience=9).fit(wave)
        rates = [entry["learning_rate"] for entry in model.history_]
        assert rates[0] == 1e-3
        assert rates[-1] <= 2.5e-4
        steps = {round(late / early, 9) for early, late in pairwise(rates)}
        assert steps == {1.0, 0.5}

    def test_training_does_not_see_the_validation_part(self, small, wave):
        def weights(series):
            recorder = Recorder()
            settings = {"val_size": 20, "linear_path": False, "callbacks": [recorder]}
            small(**settings).fit(series)
            return recorder.weights[-1]

        planted = wave.copy()
        planted.iloc[-20:] = 1e4 * np.random.default_rng(0).normal(size=20)
        one, other = weights(wave), weights(planted)
        assert all(torch.equal(one[name], other[name]) for name in one)
        planted.iloc[-21] += 1e-3
        seen = weights(planted)
        assert not all(torch.equal(one[name], seen[name]) for name in one)

    def test_scaling_does_not_see_the_validation_part(self, small, wave):
        planted = wave.copy()
        planted.iloc[-20:] = 1e4
        model = small(val_size=20).fit(planted)
        assert model.state_.scaling.target.location.item() == pytest.approx(wave[:-20].mean())

    @pytest.mark.slow
    def test_absolute_loss_is_robust(self, small):
        draw = np.random.default_rng(0)
        values = pd.Series(100 + np.where(draw.random(400) < 0.3, 20.0, draw.normal(size=400)))
        settings = {"local_level": False, "linear_path": False, "learning_rate": 0.01}
        means = {
            loss: small(loss=loss, max_epochs=10, **settings).fit(values).predict().mean()
            for loss in ("mse", "mae")
        }
        assert means["mae"] < means["mse"] - 1


class TestSettings:
    @pytest.mark.parametrize("value", [0, 1, True, False, 3, np.int64(1), np.True_])
    def test_verbose(self, small, wave, capsys, value):
        small(verbose=value, max_epochs=1).fit(wave)
        assert ("Training: 100%" in capsys.readouterr().err) == bool(value)

    def test_at_most_a_third_of_the_shortest(self, small, wave):
        model = small(horizon=None, input_size=None).fit(wave.iloc[:30])
        assert model.horizon_ == 10
        settings = model.settings_
        assert settings.val_size == 10
        assert settings.input_size == 10

    def test_paper(self, small, wide):
        model = small(preset="paper", hidden_size=None, n_layers=None, max_epochs=1).fit(wide)
        expected = {
            "hidden_size": 128,
            "block_size": 2,
            "n_layers": 2,
            "nonlinearity": "tanh",
            "aggregation": "ffn",
            "input_projection": True,
            "linear_path": False,
            "multivariate": "joint",
            "learning_rate": 0.002,
            "weight_decay": 0.0,
            "patience": None,
            "max_epochs": 1,
        }
        settings = vars(model.settings_) | model.settings_.options
        assert {name: settings[name] for name in expected} == expected
        assert model.linear_path_ == {}
        assert model.model_.linear is None

    def test_explicit_arguments_win(self, small, wide):
        chosen = {
            "hidden_size": 12,
            "block_size": 3,
            "n_layers": 1,
            "aggregation": "linear",
            "linear_path": True,
            "local_level": False,
            "multivariate": "independent",
            "learning_rate": 0.01,
            "weight_decay": 0.1,
            "max_epochs": 1,
            "patience": 3,
            "nonlinearity": "relu",
        }
        used = small(preset="paper", **chosen).fit(wide).settings_
        settings = vars(used) | used.options
        assert {name: settings[name] for name in chosen} == chosen

    @pytest.mark.parametrize("block_size", [1, 4, 16])
    @pytest.mark.parametrize("nonlinearity", ["tanh", "relu", "identity"])
    def test_networks(self, small, wave, block_size, nonlinearity):
        settings = {"hidden_size": 16, "block_size": block_size, "nonlinearity": nonlinearity}
        model = small(**settings, max_epochs=1).fit(wave)
        assert np.isfinite(model.predict(12)).all()
        assert model.network_.rnn.n_blocks == 16 // block_size


class TestManySeries:
    def test_of_short_length(self, small):
        draw = np.random.default_rng(0)
        n, rows = 500, 24
        frame = pd.DataFrame({
            "unique_id": np.repeat(np.arange(n), rows),
            "ds": np.tile(np.arange(rows), n),
            "y": np.repeat(draw.normal(size=n), rows) + 0.1 * draw.normal(size=n * rows),
        })  # fmt: skip
        model = small(freq=1, horizon=4, input_size=6, max_epochs=1).fit(frame)
        forecast = model.predict(level=[80])
        assert len(forecast) == 4 * n
        levels = frame.groupby("unique_id")["y"].mean()
        error = forecast.groupby("unique_id")["ParaRNN"].mean() - levels
        assert error.std() < 0.1


@pytest.mark.few("default", "loss", "intervals")
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"loss": "mae"},
        {"intervals": "quantile"},
        {"intervals": "quantile", "n_estimators": 2},
        {"intervals": "student-t", "network": True},
        {"target": ["y", "z"], "multivariate": "joint", "network": True},
        {"known_ahead": ["x"], "target": ["y", "z"], "network": True},
        {"preset": "paper", "target": ["y", "z", "x"], "max_epochs": 2},
    ],
    ids=lambda settings: "-".join(map(str, settings)) or "default",
)
def test_loss_in_blocks_of_forecasts(settings, small, wave, monkeypatch):
    """Forecasts and gradients of many rows, some rows at a time, are those of all at once."""
    draw = np.random.default_rng(0)
    data = pd.DataFrame({"y": np.ravel(wave)}, index=wave.index)
    data["z"] = data["y"].shift(1).bfill() + 0.1 * draw.normal(size=len(data))
    data["x"] = draw.normal(size=len(data))
    ahead = pd.date_range(data.index[-1], periods=7, freq=data.index.freq)[1:]
    future = pd.DataFrame({"x": draw.normal(size=6)}, index=ahead)
    settings = {"target": "y"} | settings
    forecasts, blocks = [], []
    block_of = _segments.StepData._block
    monkeypatch.setattr(
        _segments.StepData, "_block", lambda self, part: blocks.append(part) or block_of(self, part)
    )
    for most, block in ((2**40, 2**40), (0, 50)):
        assert not blocks
        monkeypatch.setattr(_segments, "MANY_AT_ONCE", most)
        monkeypatch.setattr(_segments, "AT_ONCE", block)
        model = small(**settings).fit(data)
        known = {"X_future": future} if "known_ahead" in settings else {}
        forecasts.append(model.predict(6, **known).select_dtypes("number"))
    assert len(blocks) > 40 or "n_estimators" in settings  # trained together, by torch.vmap
    pd.testing.assert_frame_equal(*forecasts, rtol=1e-4, atol=1e-4)
