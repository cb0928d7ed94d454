"""Two thousand odd frames; TSRNN_FUZZ=20000 asks for as many, drawn anew."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tsrnn import ARMA, ETS, GARCH, ParaRNNForecaster, Theta
from tsrnn.baselines import Drift, Mean, Naive, SeasonalNaive, StatsmodelsETS, StatsmodelsTheta
from tsrnn.data import read_panel
from tsrnn.evaluation import backtest, compare, diagnose
from tsrnn.linear import CES

from .asking import TOTAL, RefusalError, ask
from .frames import LENGTHS, cases
from .lives import live

LONG = (30, 40, 60, 25, 15, 3)  # rows for models that need many


def some(share):
    """Settings for a share of the frames in thousandths; the same ones each time by default."""
    return settings(
        max_examples=max(share * (TOTAL or 2000) // 1000, 1),
        derandomize=not TOTAL,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


def run(make, share, **drawn):
    """Live through a share of the frames; counts of what was answered."""
    counts = Counter()

    @some(share)
    @given(cases(**drawn))
    def over(case):
        counts.update(["asked", *live(make, case)])

    over()
    return counts


@pytest.mark.few("keep")
@pytest.mark.parametrize("missing", ["error", "interpolate", "keep"])
def test_reading(missing):
    counts = Counter()

    @some(90)
    @given(cases())
    def over(case):
        counts["asked"] += 1
        try:
            panel, _ = ask(read_panel, case.first, missing=missing)
        except RefusalError:
            return
        counts["read"] += 1
        assert missing == "keep" or not (panel.values != panel.values).any()

    over()
    assert counts["read"] > counts["asked"] / 4


METHODS = {
    "Naive": (Naive, 90),
    "Naive, interpolated": (lambda: Naive(missing="interpolate"), 100),
    "SeasonalNaive": (lambda: SeasonalNaive(season_length=3), 100),
    "Drift": (Drift, 65),
    "Mean": (Mean, 60),
    "ARMA": (lambda: ARMA(order=(1, 0)), 60),
    "ARMA, missing kept": (lambda: ARMA(order=(1, 1, 1), missing="keep"), 60),
    "ETS": (lambda: ETS(n_simulations=20, random_state=0), 25),
    "ETS, missing kept": (lambda: ETS("add", "auto", "none", missing="keep"), 40),
    "GARCH": (GARCH, 40),
    "CES": (lambda: CES(season_length=3, missing="keep"), 40),
    "Theta": (lambda: Theta(season_length=3), 60),
    "Theta, missing kept": (lambda: Theta(dynamic=False, season_length=2, missing="keep"), 60),
    "StatsmodelsTheta": (StatsmodelsTheta, 30),
    "StatsmodelsETS": (StatsmodelsETS, 20),
}


@pytest.mark.few("ARMA, missing kept", "ETS", "Theta")
@pytest.mark.parametrize("name", METHODS)
def test_lives(name):
    make, share = METHODS[name]
    counts = run(make, share, lengths=LONG if share < 50 else LENGTHS)
    assert counts["fit"] >= counts["asked"] / 10
    assert counts["update"] > 0


def judged(case):
    """What of a backtest, its comparison and its diagnosis was answered."""
    models, answered = {"naive": Naive(), "mean": Mean(), "drift": Drift()}, []
    try:
        forecasts, told = ask(
            backtest, models, case.first, h=2, n_windows=4, step_size=1, level=[80]
        )
    except RefusalError:
        return answered
    answered.append("backtest")
    numbers = forecasts[[*models]].to_numpy(float)
    assert np.isfinite(numbers).all() or told
    for call in (compare, diagnose):
        try:
            answer, _ = ask(call, forecasts)
        except RefusalError:
            continue
        assert len(str(answer))
        answered.append(call.__name__)
    return answered


@pytest.mark.slow
def test_evaluation():
    counts = Counter()

    @some(50)
    @given(cases())
    def over(case):
        counts.update(["asked", *judged(case)])

    over()
    assert counts["backtest"] > counts["asked"] / 10
    assert counts["compare"] > 0
    assert counts["diagnose"] > 0


def network():
    small = {"input_size": 4, "hidden_size": 4, "n_layers": 1, "max_epochs": 1, "refit": False}
    return ParaRNNForecaster(horizon=2, **small, random_state=0)


@pytest.mark.slow
def test_network():
    counts = run(network, 55, lengths=LONG)
    assert counts["fit"] >= counts["asked"] / 10
