"""ParaRNNForecaster with the prior network: when it forecasts, from what, and what it refuses."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from tsrnn import (
    Combination,
    ParaRNNForecaster,
    backtest,
    compare,
    load,
    recurrence_features,
    report,
)
from tsrnn.baselines import Naive
from tsrnn.contract import DamagedFileError, read_file, write_file
from tsrnn.datasets import load_elnino
from tsrnn.export import export_onnx, export_torch
from tsrnn.forecasters import FittedPrior, FittedStacked, RecurrentForecaster, _candidates
from tsrnn.interpret import UninformativeNetworkError
from tsrnn.prior import PriorNetwork, TrainedPrior, trained_prior

NEW = 6


def monthly(rows, seed=0, start="2010-01-01"):
    rng = np.random.default_rng(seed)
    t = np.arange(rows)
    values = 100 + t + 10 * np.sin(2 * np.pi * t / 12) + rng.standard_normal(rows).cumsum()
    days = pd.date_range(start, periods=rows, freq="MS")
    return pd.DataFrame({"unique_id": f"s{seed}", "ds": days, "y": values})


FRAME = pd.concat([monthly(40), monthly(31, 1), monthly(9, 2)], ignore_index=True)
LATE = FRAME.groupby("unique_id").cumcount(ascending=False) < NEW
PAST, LATER = FRAME[~LATE].reset_index(drop=True), FRAME[LATE].reset_index(drop=True)
LONG = FRAME[FRAME["unique_id"] == "s0"].reset_index(drop=True)


@pytest.fixture
def model():
    return ParaRNNForecaster(NEW, random_state=0).fit(PAST)


@pytest.fixture
def plain():
    """Of which nothing is fitted, so that a panel is its series alone."""
    return ParaRNNForecaster(NEW, prior="only").fit(PAST)


def adapting(horizon=None, **arguments):
    """Forecaster that is adapted by the rules on rows, as to series with missing values."""
    return ParaRNNForecaster(horizon, missing="keep", **arguments)


@pytest.fixture
def file_of_a_network(tmp_path):
    torch.manual_seed(0)
    size = {"hidden_size": 4, "n_layers": 1, "width": 8}
    network = PriorNetwork(**size).eval().requires_grad_(False)
    path = tmp_path / "mine.safetensors"
    TrainedPrior.of(network, size, "It was not trained.").save(path)
    return path


def close(one, other, rtol=1e-9):
    pd.testing.assert_frame_equal(
        one.reset_index(drop=True), other.reset_index(drop=True), rtol=rtol
    )


def test_forecasts_are_those_of_the_network_of_the_package(plain):
    forecasts = plain.predict(level=[80])
    for i, name in enumerate(["s0", "s1", "s2"]):
        rows = PAST.loc[PAST["unique_id"] == name, "y"].to_numpy()
        expected = trained_prior().forecast(rows[None], np.array([len(rows)]), 12, NEW)
        part = forecasts.iloc[NEW * i : NEW * (i + 1)]
        np.testing.assert_allclose(part["ParaRNN"], expected.median[0], rtol=1e-9)
        ends = part[["ParaRNN-lo-80", "ParaRNN-hi-80"]].to_numpy().T
        np.testing.assert_allclose(ends, expected.at([0.1, 0.9])[0], rtol=1e-9)


def test_a_panel_is_its_series_alone(plain):
    together = plain.predict(level=[50, 95])
    for name, rows in PAST.groupby("unique_id"):
        alone = ParaRNNForecaster(NEW).fit(rows).predict(level=[50, 95])
        close(together[together["unique_id"] == name], alone)
        close(plain.predict(level=[50, 95], ids=name), alone)


def test_a_panel_shares_the_widths_of_its_intervals(model, plain):
    forecasts, own = model.predict(level=80), plain.predict(level=80)
    close(forecasts[["unique_id", "ds", "ParaRNN"]], own[["unique_id", "ds", "ParaRNN"]])
    rows, counts = model.state_.last_rows
    widths = trained_prior().panel_widths(rows, counts, 12)
    np.testing.assert_allclose(model.fitted_.widths, widths)
    assert not np.allclose(widths, 1)
    expected = trained_prior().forecast(rows, counts, 12, NEW, widths).at([0.1, 0.9])
    ends = forecasts[["ParaRNN-lo-80", "ParaRNN-hi-80"]].to_numpy().reshape(3, NEW, 2)
    np.testing.assert_allclose(ends.swapaxes(1, 2), expected, rtol=1e-9)
    # Other rows and other series are forecast with the widths of the fit.
    alone = model.predict(level=80, ids="s1")
    close(alone, forecasts[forecasts["unique_id"] == "s1"])
    close(model.predict(PAST[PAST["unique_id"] == "s1"], level=80), alone)


class TestAdaptation:
    """A panel without seasons, which the network is adapted to."""

    @staticmethod
    def years(n, rows=20, seed=0):
        rng = np.random.default_rng(seed)
        values = 100 * np.exp(0.05 * np.arange(rows) + 0.03 * rng.standard_normal((n, rows)))
        days = pd.date_range("1990", periods=rows, freq="YS")
        return pd.concat(
            [
                pd.DataFrame({"unique_id": f"y{i:02}", "ds": days, "y": y})
                for i, y in enumerate(values)
            ],
            ignore_index=True,
        )

    def test_thirty_series_adapt_the_network(self):
        fits = [adapting(4).fit(self.years(n)) for n in (29, 30)]
        assert [fit.fitted_.adapted for fit in fits] == [False, True]
        said = [fit.summary().composition for fit in fits]
        assert "of these only the widths of its intervals are estimated" in said[0]
        assert "adapted to these by 60 small steps" in said[1]
        assert "was adapted to the rows" in fits[1].interval_guarantee_
        assert "was adapted to the rows" not in fits[0].interval_guarantee_
        shipped = trained_prior().network.state_dict()
        adapted = fits[1].fitted_.prior.network.state_dict()
        assert all(torch.equal(shipped[name], fits[0].fitted_.prior.network.state_dict()[name])
                   for name in shipped)  # fmt: skip
        change = {name: float((adapted[name] - shipped[name]).abs().max()) for name in shipped}
        assert 0 < max(change.values()) < 0.02

    def test_the_same_series_adapt_it_to_the_same_network(self):
        frame = self.years(40)
        one, other = (adapting(4).fit(frame).predict(level=80) for _ in range(2))
        close(one, other, rtol=1e-12)

    def test_it_learns_what_the_series_share(self):
        frame = self.years(60, 26)
        year = frame.groupby("unique_id").cumcount()
        frame["y"] = 100 + 10 * (year % 2 == 0) + frame["y"] / 1000  # every second year
        series = [rows.to_numpy() for _, rows in frame.groupby("unique_id")["y"]]
        # Autoregressions learn it of each series alone.
        network = replace(trained_prior(), autoregression=False)
        adapted = network.adapted_to([rows[:22] for rows in series], 1)
        past, coming = np.array(series)[:, :22], np.array(series)[:, 22:]
        learned, before = (
            np.abs(prior.forecast(past, np.full(60, 22), 1, 4).median - coming).mean()
            for prior in (adapted, network)
        )
        assert learned < before

    @pytest.mark.few("299", "300-1-False", "324")
    @pytest.mark.parametrize(
        ("rows", "season", "adapted"),
        [(299, 12, False), (300, 12, True), (300, 1, False), (324, 13, False)],
    )
    def test_a_long_series_with_a_season_adapts_the_network(self, rows, season, adapted):
        model = adapting(NEW, season_length=season).fit(monthly(rows))
        assert model.fitted_.adapted == adapted

    @pytest.mark.slow
    def test_intervals_of_one_series_allow_for_known_rows(self):
        model = adapting(NEW).fit(monthly(310))
        rows, counts = model.state_.last_rows
        expected = model.fitted_.prior.forecast(rows, counts, 12, NEW, np.full(12, 1.1))
        ends = model.predict(level=80)[["ParaRNN-lo-80", "ParaRNN-hi-80"]].to_numpy().T
        np.testing.assert_allclose(ends, expected.at([0.1, 0.9])[0], rtol=1e-9)

    @pytest.mark.slow
    def test_of_a_panel_the_long_series_alone_adapt_it(self):
        short = pd.concat([monthly(40, seed) for seed in range(1, 4)])
        together, alone = (
            adapting(NEW).fit(frame).fitted_.prior.network.state_dict()
            for frame in (pd.concat([monthly(300), short]), monthly(300))
        )
        assert all(torch.equal(together[name], alone[name]) for name in alone)
        constant = monthly(310, 9).assign(y=4.0)
        assert not adapting(NEW).fit(pd.concat([short, constant])).fitted_.adapted

    @pytest.mark.slow
    def test_nothing_global_is_drawn_from_or_set(self):
        frame = self.years(40)
        state = torch.get_rng_state()
        expected = adapting(4).fit(frame).predict(level=80)
        with torch.inference_mode():
            close(adapting(4).fit(frame).predict(level=80), expected, rtol=1e-12)
        with ThreadPoolExecutor(2) as pool:
            fits = list(pool.map(lambda _: adapting(4).fit(frame), range(2)))
        for fit in fits:
            close(fit.predict(level=80), expected, rtol=1e-12)
        assert torch.equal(torch.get_rng_state(), state)

    @pytest.mark.slow
    def test_what_a_long_series_repeats_is_learned(self):
        temperature = load_elnino()
        past, coming = temperature[:-120], temperature[-120:]
        errors = {}
        for prior in ("auto", "only"):
            rolled = adapting(prior=prior).fit(past).predict_rolling(coming, h=12)
            actual = coming["temperature"].reindex(rolled.index).to_numpy()
            errors[prior] = np.sqrt(np.mean((rolled["temperature"] - actual) ** 2))
        assert errors["auto"] < 0.93 * errors["only"]

    @pytest.mark.few("thirty series")
    @pytest.mark.parametrize("name", ["thirty series", "long series"])
    def test_complete_series_that_cannot_be_judged_are_adapted_to_by_rule(self, name):
        frame = self.years(30) if name == "thirty series" else monthly(300)
        model = ParaRNNForecaster(12).fit(frame)
        assert isinstance(model.fitted_, FittedPrior)
        assert model.fitted_.adapted

    def test_nothing_is_fitted_where_only_the_prior_is_asked_for(self):
        fitted = ParaRNNForecaster(4, prior="only").fit(self.years(30)).fitted_
        assert not fitted.adapted
        np.testing.assert_array_equal(fitted.widths, 1)

    @pytest.mark.filterwarnings("ignore::tsrnn.contract.IntervalWarning")
    @pytest.mark.parametrize("rows", [3, 7, 8])
    def test_constant_and_tiny_series_of_a_panel(self, rows):
        frame = self.years(65, rows)
        frame.loc[frame["unique_id"] < "y30", "y"] = 5.0
        model = adapting(4).fit(frame)
        assert model.fitted_.adapted == (rows > 3)
        forecasts = model.predict(level=80)
        assert np.isfinite(forecasts.iloc[:, 2:].to_numpy()).all()
        constant = forecasts["unique_id"] < "y30"
        np.testing.assert_allclose(forecasts[constant].iloc[:, 2:], 5.0)
        # Constants say nothing about the others, but that there are more series.
        without = adapting(4).fit(frame[frame["unique_id"] >= "y30"])
        close(without.predict(level=80), forecasts[~constant], rtol=1e-2)

    @pytest.mark.parametrize("moves_from", [320, 316])
    def test_a_long_series_that_moves_late_says_nothing(self, moves_from):
        frame = monthly(320)
        frame.loc[: moves_from - 1, "y"] = 7.0
        fitted = adapting(4).fit(frame)
        assert not fitted.fitted_.adapted
        assert np.isfinite(fitted.predict()["ParaRNN"]).all()

    def test_it_goes_into_the_file_and_on(self, tmp_path):
        frame = self.years(32)
        model = adapting(4).fit(frame[frame["ds"] < "2008"])
        model.save(tmp_path / "model")
        read = load(tmp_path / "model")
        later = frame[frame["ds"] >= "2008"]
        for each in (model, read):
            each.update(later)
        close(read.predict(level=80), model.predict(level=80), rtol=1e-12)
        assert read.fitted_.adapted
        np.testing.assert_array_equal(read.fitted_.widths, model.fitted_.widths)


def test_an_update_is_a_fit_to_all_rows(plain):
    whole = ParaRNNForecaster(NEW, prior="only").fit(FRAME)
    close(plain.update(LATER).predict(level=80), whole.predict(level=80))


def test_long_series_are_read_from_their_last_rows():
    rows = monthly(600)
    whole = ParaRNNForecaster(NEW, prior="only").fit(rows)
    last = ParaRNNForecaster(NEW, prior="only").fit(rows[-300:])
    close(whole.predict(level=80), last.predict(level=80))
    updated = ParaRNNForecaster(NEW, prior="only").fit(rows[:500]).update(rows[500:])
    close(updated.predict(level=80), whole.predict(level=80))


def test_other_rows_are_forecast_without_a_fit(plain):
    other = monthly(25, 7)
    close(plain.predict(other, level=80), ParaRNNForecaster(NEW).fit(other).predict(level=80))


def test_rolling_forecasts_are_a_loop_of_fits(plain):
    rolling = plain.predict_rolling(LATER, h=2, level=80)
    for cutoff, forecasts in rolling.groupby("cutoff"):
        for name, part in forecasts.groupby("unique_id"):
            seen = FRAME[(FRAME["unique_id"] == name) & (FRAME["ds"] <= cutoff)]
            alone = ParaRNNForecaster(NEW).fit(seen).predict(h=2, level=80)
            close(part[alone.columns], alone)


def test_a_backtest_fits_at_every_origin():
    forecasts = backtest({"prior": ParaRNNForecaster()}, LONG, h=3, n_windows=3, level=80)
    for cutoff, part in forecasts.groupby("cutoff"):
        alone = ParaRNNForecaster(3).fit(LONG[LONG["ds"] <= cutoff]).predict(level=80)
        np.testing.assert_allclose(part["prior"], alone["ParaRNN"], rtol=1e-9)


def test_paths_have_the_quantiles_of_the_forecasts(model):
    paths = model.sample_paths(3000, h=4, random_state=0).groupby(["unique_id", "ds"])["ParaRNN"]
    forecasts = model.predict(4, level=80).set_index(["unique_id", "ds"])
    low, high = (forecasts[f"ParaRNN-{end}-80"] for end in ("lo", "hi"))
    for share, end in ((0.1, low), (0.9, high)):
        error = (paths.quantile(share) - end).abs() / (high - low)
        assert error.max() < 0.06


def test_several_targets_are_forecast_each_alone():
    wide = pd.DataFrame(
        {"a": monthly(30)["y"].to_numpy(), "b": monthly(30, 1)["y"].to_numpy()},
        index=pd.date_range("2010-01-01", periods=30, freq="MS"),
    )
    both = ParaRNNForecaster(4, prior="only").fit(wide).predict(level=80)
    for name in wide:
        alone = ParaRNNForecaster(4).fit(wide[[name]]).predict(level=80)
        pd.testing.assert_frame_equal(both[alone.columns], alone, rtol=1e-9, check_freq=False)


def test_a_series_needs_three_rows():
    assert len(ParaRNNForecaster(4).fit(monthly(3)).predict()) == 4
    with pytest.raises(
        ValueError, match=r"series 's0': .* at least 3 observed rows .* there are 2"
    ):
        ParaRNNForecaster(4, freq="MS").fit(monthly(2))


class TestWhatForecasts:
    """Which fits train a network, and which use the prior network."""

    @pytest.fixture
    def trains(self, monkeypatch):
        """True if a fit trains; nothing is trained."""

        class TrainsError(Exception):
            pass

        def refuse(self, fits):
            raise TrainsError

        monkeypatch.setattr(RecurrentForecaster, "_train_panels", refuse)

        def trains(frame, **arguments):
            try:
                fitted = ParaRNNForecaster(**arguments).fit(frame)
            except TrainsError:
                return True
            assert isinstance(fitted.fitted_, FittedPrior)
            return False

        return trains

    @pytest.mark.few("501", "60")
    @pytest.mark.parametrize(
        ("rows", "horizon", "n_series", "expected"),
        [
            # A fifth of the rows validates, in which forecasts of 18 months overlap, the usual
            # horizon, whatever is forecast.
            (500, 1, 1, False), (501, 1, 1, True), (500, 18, 1, False), (501, 18, 1, True),
            # Series share the shocks of their time: 23 count as the root of 23.
            (60, 18, 22, False), (60, 18, 23, True), (60, 3, 23, True),
        ],
    )  # fmt: skip
    def test_five_independent_horizons_judge_candidates(
        self, monkeypatch, rows, horizon, n_series, expected
    ):
        class JudgesError(Exception):
            pass

        def judge(*_):
            raise JudgesError

        monkeypatch.setattr(_candidates, "fit_stacked", judge)
        frame = pd.concat([monthly(rows, seed) for seed in range(n_series)])
        for arguments in ({}, {"season_length": 1}):  # the season decides nothing
            model = ParaRNNForecaster(horizon, **arguments)
            if expected:
                with pytest.raises(JudgesError):
                    model.fit(frame)
            else:
                assert isinstance(model.fit(frame).fitted_, FittedPrior)
        only = ParaRNNForecaster(horizon, prior="only").fit(frame)
        assert isinstance(only.fitted_, FittedPrior)

    @pytest.mark.parametrize(
        "argument",
        [
            {"hidden_size": 4}, {"cell": "lstm"}, {"max_epochs": 2}, {"val_size": 9},
            {"input_size": 12}, {"per_series": True}, {"linear_path": False}, {"n_estimators": 2},
            {"use_boxcox": "log"}, {"preset": "paper"}, {"loss": "mae"}, {"prior": None},
            {"intervals": "gaussian"},
        ],
    )  # fmt: skip
    def test_arguments_of_a_network_train_one(self, trains, argument):
        assert trains(LONG, **argument)

    @pytest.mark.parametrize(
        "argument",
        [
            {}, {"horizon": 3}, {"target": "y"}, {"freq": "MS"}, {"missing": "interpolate"},
            {"random_state": 3}, {"verbose": 1}, {"intervals": "quantile"}, {"season_length": 4},
            {"known_ahead": []}, {"preset": "default"}, {"n_estimators": np.int64(1)},
        ],
    )  # fmt: skip
    def test_other_arguments_do_not(self, trains, argument):
        assert not trains(LONG, **argument)
        assert not trains(monthly(60), prior="only", **argument)

    def test_exogenous_columns_do_not_train_a_network(self, trains):
        frame = LONG.assign(x=np.arange(len(LONG)) % 5.0)
        assert not trains(frame)
        assert not trains(frame, known_ahead="x")
        assert not trains(frame, known_ahead="x", prior="only")
        assert not trains(LONG, calendar=["month"])
        assert trains(frame, known_ahead="x", prior=None)

    @pytest.mark.parametrize(
        ("prior", "error", "message"),
        [
            (3, TypeError, "got 3"),
            (True, TypeError, "got True"),
            (["auto"], TypeError, r"got \['auto'\]"),
            ("x", FileNotFoundError, "there is no file 'x'"),
            ("", FileNotFoundError, "there is no file"),
            (Path("x"), FileNotFoundError, "there is no file 'x'"),
            (Path("."), FileNotFoundError, r"there is no file '\.'"),
        ],
    )
    def test_a_prior_that_is_not_legal(self, trains, prior, error, message):
        legal = r'prior must be "auto", "only", None or a file that .*TrainedPrior\.save wrote; '
        for frame in (LONG, monthly(60)):
            with pytest.raises(error, match=legal + message):
                trains(frame, prior=prior)

    def test_a_file_that_is_no_network(self, trains, tmp_path):
        (tmp_path / "x").write_text("text")
        with pytest.raises(ValueError, match="x' is no prior network"):
            trains(LONG, prior=tmp_path / "x")

    def test_only_with_arguments_of_a_network(self, trains):
        with pytest.raises(ValueError, match=r"prior='only' .*; got hidden_size=3; n_layers=1\. L"):
            trains(LONG, prior="only", hidden_size=3, n_layers=1)

    @pytest.mark.parametrize("argument", ["hidden_size", "intervals", "season_length", "cell"])
    @pytest.mark.parametrize("prior", ["auto", "only", None])
    def test_arguments_that_are_not_legal(self, trains, argument, prior):
        with pytest.raises((TypeError, ValueError), match=f"^{argument} must|{argument}"):
            trains(LONG, prior=prior, **{argument: "many"})


@pytest.mark.slow
def test_fewer_rows_than_judge_are_forecast_by_the_prior_and_more_stacked():
    model = ParaRNNForecaster(1, random_state=0)
    fits = [copy.copy(model).fit(monthly(rows)) for rows in (500, 501)]
    assert [type(fit.fitted_) for fit in fits] == [FittedPrior, FittedStacked]
    # A backtest whose origins are on both sides fits each by its rows.
    forecasts = backtest({"auto": model}, monthly(502), h=1, n_windows=2, step_size=1)
    assert forecasts["cutoff"].nunique() == 2
    for fit, (_, part) in zip(fits, forecasts.groupby("cutoff"), strict=True):
        np.testing.assert_allclose(part["auto"], fit.predict()["ParaRNN"], rtol=1e-4)


class TestSeasons:
    """`season_length`: of the prior network and of the linear path."""

    def test_an_index_of_integers_has_the_season_that_is_said(self):
        numbered = pd.Series(LONG["y"].to_numpy(), name="y")
        dated = ParaRNNForecaster(NEW).fit(LONG).predict()["ParaRNN"].to_numpy()
        said = ParaRNNForecaster(NEW, season_length=12).fit(numbered)
        np.testing.assert_allclose(said.predict().to_numpy().ravel(), dated)
        assert said.fitted_.season_length == 12
        assert ParaRNNForecaster(NEW).fit(numbered).fitted_.season_length == 1
        assert ParaRNNForecaster(NEW, season_length=1).fit(LONG).fitted_.season_length == 1

    def test_a_longer_season_than_the_network_has_is_none(self):
        model = ParaRNNForecaster(NEW, season_length=61).fit(LONG)
        expected = ParaRNNForecaster(NEW, season_length=1).fit(LONG).predict()
        close(model.predict(), expected)

    def test_a_network_that_is_trained_knows_it(self):
        numbered = pd.Series(monthly(96)["y"].to_numpy(), name="y")
        model = ParaRNNForecaster(
            NEW, season_length=12, hidden_size=4, max_epochs=1, random_state=0
        )
        settings = model.fit(numbered).settings_
        assert (settings.season, settings.seasons) == (12, (12,))
        dated = model.set_params(season_length=None).fit(monthly(96)).settings_
        assert (dated.season, dated.seasons) == (12, (12,))


class TestFile:
    """The file of a forecaster has the network, whichever it was."""

    @pytest.mark.parametrize("kind", [str, Path])
    def test_a_network_of_a_file_goes_with_the_forecaster(self, file_of_a_network, tmp_path, kind):
        model = ParaRNNForecaster(NEW, prior=kind(file_of_a_network)).fit(PAST)
        expected = model.predict(level=80)
        assert not np.allclose(
            expected["ParaRNN"], ParaRNNForecaster(NEW).fit(PAST).predict()["ParaRNN"]
        )
        model.save(tmp_path / "model")
        file_of_a_network.unlink()
        read = load(tmp_path / "model")
        close(read.predict(level=80), expected)
        assert read.fitted_.prior.description == "It was not trained."

    @pytest.mark.parametrize(
        "way", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
    )
    def test_copies_forecast_the_same(self, model, way):
        other = way(model)
        close(other.predict(level=80), model.predict(level=80), rtol=1e-12)
        other.update(LATER)
        close(model.predict(), ParaRNNForecaster(NEW).fit(PAST).predict())

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("season_length", 61), ("season_length", 4), ("horizon", 0), ("size", {"width": -1}),
            ("size", {"depth": 3}), ("size", None), ("description", 3), ("prior", 1),
            ("adapted", 2),
        ],
    )  # fmt: skip
    def test_a_damaged_header_is_refused(self, model, tmp_path, field, value):
        model.save(tmp_path / "model")
        header, arrays = read_file(tmp_path / "model")
        header["fitted"][field] = value
        write_file(tmp_path / "model", header, arrays)
        with pytest.raises(DamagedFileError):
            load(tmp_path / "model")

    @pytest.mark.parametrize(
        "name", ["tail", "n_rows", "target_scale", "widths", "prior.norm.weight"]
    )
    @pytest.mark.parametrize("damage", ["missing", "shape", "type"])
    def test_a_damaged_array_is_refused(self, model, tmp_path, name, damage):
        model.save(tmp_path / "model")
        header, arrays = read_file(tmp_path / "model")
        value = arrays.pop(name)
        if damage != "missing":
            arrays[name] = value[:1] if damage == "shape" else value.astype("float16")
        write_file(tmp_path / "model", header, arrays)
        with pytest.raises(DamagedFileError, match=name):
            load(tmp_path / "model")


class TestAround:
    """What reads a fitted forecaster says that there is no network of these series."""

    @pytest.mark.parametrize(
        "ask",
        [
            recurrence_features, lambda m: m.network_, lambda m: m.history_, lambda m: m.settings_,
            lambda m: m.recurrent_blocks(), lambda m: m.validation_,
        ],
    )  # fmt: skip
    def test_questions_about_a_trained_network(self, model, ask):
        with pytest.raises(UninformativeNetworkError, match="prior network.*prior=None"):
            ask(model)

    @pytest.mark.parametrize("export", [export_onnx, export_torch])
    def test_a_program(self, model, tmp_path, export):
        with pytest.raises(ValueError, match="uses the prior network. Fit with prior=None"):
            export(model, tmp_path / "x.onnx")

    @pytest.mark.slow
    def test_a_report(self, model, tmp_path):
        forecasts = backtest({"prior": ParaRNNForecaster()}, LONG, h=3, n_windows=4, level=80)
        page = report(compare(forecasts), tmp_path / "page.html", models={"prior": model})
        text = page.read_text()
        assert "the prior network, trained before" in text
        assert "recurrence features of the forecasts of prior" in text

    def test_a_combination(self):
        combined = Combination([ParaRNNForecaster(), Naive()], weights=[0.5, 0.5], horizon=3).fit(
            PAST
        )
        parts = [m.fit(PAST).predict(3) for m in (ParaRNNForecaster(3), Naive())]
        mean = (parts[0]["ParaRNN"] + parts[1]["Naive"]) / 2
        np.testing.assert_allclose(combined.predict(3)["Combination"], mean, rtol=1e-9)

    def test_a_summary_has_the_models_that_forecast(self, model):
        summary = model.summary()
        assert summary.weights.sum() == pytest.approx(1)
        assert (summary.weights.diff().dropna() <= 0).all()
        assert "the prior network, trained before" in str(summary)
        assert "12" in str(summary)

    @pytest.mark.filterwarnings("ignore::tsrnn.contract.IntervalWarning")
    def test_zeros_of_demand_are_in_the_intervals(self):
        demand = LONG.assign(y=np.where(np.arange(len(LONG)) % 3, 0.0, 4.0))
        forecasts = ParaRNNForecaster(3).fit(demand).predict(level=80)
        assert (forecasts["ParaRNN-lo-80"] <= 0).all()


# Counts, before values that are none


def counts_of_days(values):
    return pd.Series(
        values, pd.date_range("2020-01-01", periods=len(values)), name="c", dtype=float
    )


COUNTS = counts_of_days(np.random.default_rng(0).poisson(0.5, 60))


@pytest.mark.parametrize(("shift", "support"), [(-1, "real"), (0.5, "nonnegative")])
def test_other_series_that_are_no_counts_are_forecast_by_the_network(shift, support):
    model = ParaRNNForecaster(horizon=3).fit(COUNTS)
    with pytest.warns(UserWarning, match="from here on"):
        ahead = model.predict(COUNTS + shift, level=80)
    wider = ParaRNNForecaster(horizon=3, support=support).fit(COUNTS + shift)
    np.testing.assert_allclose(ahead, wider.predict(level=80), rtol=1e-9)


@pytest.mark.parametrize("size", [1e15, 1e17, 1e30, 1e200])
def test_whole_values_that_are_too_large_for_models_of_counts_are_forecast(size):
    model = ParaRNNForecaster(horizon=3).fit(counts_of_days([*COUNTS, size]))
    assert model.support_ == {"c": "count"}
    ahead = model.predict(level=80)
    assert np.isfinite(ahead).all(axis=None)
    assert (ahead >= 0).all(axis=None)
    assert np.isfinite(model.predict_zero()).all()


def test_rolling_forecasts_go_on_after_a_value_that_is_no_count():
    model = ParaRNNForecaster(horizon=1).fit(COUNTS[:50])
    later = COUNTS[50:].copy()
    later.iloc[5] = -1
    with pytest.warns(UserWarning, match="forecasts stay as the model knew it"):
        rolling = model.predict_rolling(later, level=80)
    before = model.predict_rolling(COUNTS[50:55], level=80)
    columns = ["c", "c-lo-80", "c-hi-80"]
    np.testing.assert_allclose(rolling[columns][:5], before[columns])
    assert (rolling[columns] >= 0).all(axis=None)


def test_a_summary_after_a_widened_support_knows_no_models_of_counts():
    model = ParaRNNForecaster(horizon=1).fit(COUNTS[:-1])
    with pytest.warns(UserWarning, match="support='real'"):
        model.update(-1 - COUNTS[-1:])
    assert "ounts" not in model.summary().as_text()
    assert model.fitted_.point == "median"
