"""Comparison of the forecasts of several models: their accuracy, and tests of the differences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tsrnn.contract import DM_VARIANCES, choice, number, positive_integer, seed_of
from tsrnn.evaluation._comparison import Comparison
from tsrnn.evaluation._forecasts import Forecasts, common_rows, lay_out
from tsrnn.evaluation._linearity import nonlinearity_left
from tsrnn.evaluation._losses import (
    LOSSES,
    OVER,
    check_variances,
    choose_observations,
    mean_losses,
    window_losses,
)
from tsrnn.evaluation._measures import measure
from tsrnn.evaluation._scale import read_scale
from tsrnn.evaluation._tests import (
    ALL,
    Ranks,
    confidence_set,
    encompassing,
    pairwise_tests,
    rank_models,
    superior_predictive_ability,
)
from tsrnn.evaluation._words import scope, set_aside

FEW_RANKED = 10


def compare(
    frame: pd.DataFrame,
    *,
    models: Sequence[str] | None = None,
    benchmark: str | None = None,
    loss: str | None = None,
    train: pd.DataFrame | None = None,
    season_length: int | None = None,
    alpha: float = 0.05,
    over: str = "auto",
    dm_variance: str = "rectangular",
    n_boot: int = 1000,
    random_state: int | np.random.Generator | None = 0,
    owa_benchmark: str = "Naive2",
) -> Comparison:
    r"""Compare the accuracy of models on the forecasts of a backtest, and test the differences.

    All models are measured on the same rows: those with an actual value and a forecast of every
    model. The tests compare the loss of each observation, as :math:`\bar d = n^{-1} \sum_t
    (L_{at} - L_{bt})`; an observation is a window of one series, or of a panel

    - over time: the windows of all series at the same time, with the mean of their losses. Series
      may err together. Windows of different series are matched by cutoff, or counted from the last
      where no series has all cutoffs.
    - over series: a series, with the mean loss over its windows. That takes series to err
      independently.

    In a panel the losses of a series are divided by its scale, the mean squared (or absolute)
    seasonal difference before the first cutoff, so that no series decides by its unit. The scale
    of variances that a backtest forecasts is the mean squared difference of the series (for the
    squared loss, its square); QLIKE needs none.

    Parameters
    ----------
    frame : DataFrame
        As `backtest` gives it: columns ``unique_id, ds, cutoff, y``, a column of point forecasts
        for each model and of intervals ``name-lo-80, name-hi-80``.
    models : list of str, optional
        Columns to compare; by default all numeric ones without ``-lo-`` or ``-hi-``.
    benchmark : str, optional
        Model that `Comparison.words` holds the others against.
    loss : {"squared", "absolute", "qlike"}, optional
        Loss of the tests: "squared" by default, "qlike" for forecasts of variances. "qlike"
        declares the forecasts to be of variances.
    train : DataFrame, optional
        Rows ``unique_id, ds, y`` before the first cutoff (later ones are not used), for the
        scales where the frame does not carry them; with a frame of variances, of variances too.
        Of means, they also tell whether a linear model leaves nonlinearity (`Comparison.linearity`,
        and a sentence in `words`).
    season_length : int, optional
        Steps of a season, with `train`.
    alpha : float, default 0.05
        Level of the tests; the confidence set has level 1 - alpha.
    over : {"auto", "time", "series"}
        Observations of the tests. "auto" takes time where there are 20 windows, else series where
        there are 20, else no tests; asked for, five are enough.
    dm_variance : {"rectangular", "bartlett", "cosines"}
        Variance of the tests of Diebold and Mariano where windows overlap: the autocovariances up
        to the overlap, as Diebold and Mariano and Harvey, Leybourne and Newbold have it, and where
        that is not positive the next one, which a note reports; Newey and West's with more lags;
        or equally weighted cosines, with fewer degrees of freedom. See
        `tsrnn.contract.diebold_mariano`.
    n_boot : int, default 1000
        Bootstrap samples.
    random_state : int, Generator or None, default 0
        Seed of the bootstrap.
    owa_benchmark : str, default "Naive2"
        Model whose sMAPE and MASE are 1 in OWA.

    Returns
    -------
    Comparison

    Raises
    ------
    TypeError, ValueError
        If the frame or an argument is not as described; the message says what to do.

    Notes
    -----
    Measures of a model are means over series of the measure of each series, over all its windows
    and steps. sMAPE is in percent, :math:`200 |y - f| / (|y| + |f|)`. CRPS is an approximation by
    the mean pinball loss of the quantiles that the intervals give, with the point as the median.
    MSIS is the Winkler score of an interval over the scale of MASE.
    Models are sorted by the measure that is next to the loss: RMSE or MAE, RMSSE or MASE in a
    panel with scales, QLIKE.

    With windows that do not overlap, tests of Diebold and Mariano at 5 percent reject 4 to 5
    percent of true hypotheses. With windows that do, they reject 5 to 7 percent where there are
    200, but up to 15 percent where 50 overlap by 11 steps (benchmarks/dm_size.py), so that a
    p-value near the level is no evidence then; ``dm_variance="cosines"`` rejects 4 to 6 percent in
    all these cases.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.evaluation import compare
    >>> rng, cutoff = np.random.default_rng(0), np.arange(60)
    >>> y = rng.normal(size=60)
    >>> frame = pd.DataFrame({"unique_id": "a", "ds": cutoff + 1, "cutoff": cutoff, "y": y})
    >>> frame = frame.assign(Mean=0.0, Naive=rng.normal(size=60))
    >>> first, second, *_ = compare(frame).words()
    >>> first.split(";")[0]
    'Mean and Naive are compared over 60 windows of 1 step, of one series'
    >>> second
    'Mean is better than Naive at 5 percent.'
    """
    forecasts = lay_out(frame, models)
    attrs = frame.attrs.get("backtest")
    facts: dict[str, Any] = attrs if isinstance(attrs, dict) else {}
    settings = _read_settings(facts, loss, alpha, over, dm_variance, n_boot, random_state)
    kind, loss, alpha = settings.kind, settings.loss, settings.alpha
    if benchmark is not None:
        choice("benchmark", benchmark, forecasts.models)
    if not isinstance(owa_benchmark, str):
        raise TypeError(f"owa_benchmark must be the name of a model; got {owa_benchmark!r}")
    forecasts, notes = common_rows(forecasts, facts)
    if kind == "variance":
        check_variances(forecasts)
    scale, unscaled = read_scale(frame, forecasts, facts, train, season_length, kind, loss)
    sort_by = _measure_of(loss, kind, scaled=scale is not None and forecasts.n_series > 1)
    tables = measure(forecasts, scale, kind, owa_benchmark, sort_by)
    forecasts = forecasts.choose_models(list(tables.accuracy.index))
    notes += unscaled + tables.notes + _inactive_networks(facts, forecasts.models)
    losses = window_losses(forecasts, loss, scale)
    observations, why = None, ""
    if len(forecasts.models) > 1:
        observations, why, tested = choose_observations(forecasts, losses, settings.over)
        notes += tested
    pooled = observations  # None where errors of all series have no common unit
    if observations is not None and forecasts.n_series > 1 and scale is None:
        notes += _unscaled_notes(kind, loss)
        pooled = None if kind == "variance" else observations
    names, n_boot, seed = forecasts.models, settings.n_boot, settings.seed
    tests = pairwise_tests(observations, names, settings.dm_variance)
    notes += _variance_notes(tests, settings.dm_variance)
    best, reasons = confidence_set(observations, names, alpha, n_boot, seed)
    ability = superior_predictive_ability(observations, names, n_boot, seed)
    ranks = rank_models(mean_losses(forecasts, losses), names, alpha)
    tested_over = None if observations is None else observations.over
    sentences, aside = _scope(forecasts, facts, tested_over, why)
    return Comparison(
        forecasts=frame.copy(deep=False),
        accuracy=tables.accuracy,
        by_step=tables.by_step,
        by_series=tables.by_series,
        diebold_mariano=tests,
        confidence_set=best,
        superior_predictive_ability=ability,
        ranks=ranks.table,
        friedman_p_value=ranks.friedman_p_value,
        critical_difference=ranks.critical_difference,
        encompassing=encompassing(forecasts, pooled, scale, alpha),
        linearity=nonlinearity_left(
            frame, train if kind == "mean" else None, forecasts.ids, settings.seed
        ),
        scope=sentences,
        set_aside=aside,
        notes=notes + reasons + _rank_notes(ranks, forecasts) + _ties(forecasts),
        kind=kind,
        loss=loss,
        measure=sort_by,
        alpha=alpha,
        benchmark=benchmark if benchmark in forecasts.models else None,
        over=tested_over,
        n_series=forecasts.n_series,
        n_windows=len(forecasts.series),
        horizon=forecasts.horizon,
    )


class _Settings(NamedTuple):
    """Arguments of `compare`, checked."""

    kind: str
    loss: str
    alpha: float
    over: str
    dm_variance: str
    n_boot: int
    seed: int


def _read_settings(
    facts: dict[str, Any],
    loss: Any,
    alpha: Any,
    over: Any,
    dm_variance: Any,
    n_boot: Any,
    random_state: Any,
) -> _Settings:
    kind = choice("kind of a backtest", facts.get("kind", "mean"), ("mean", "variance"))
    if loss is None:
        loss = "qlike" if kind == "variance" else "squared"
    loss = choice("loss", loss, LOSSES)
    alpha = number("alpha", alpha, lowest=0, open_=True, highest=1)
    if alpha == 1:
        raise ValueError("alpha must be below 1, such as 0.05; got 1")
    return _Settings(
        kind="variance" if loss == "qlike" else kind,
        loss=loss,
        alpha=alpha,
        over=choice("over", over, OVER),
        dm_variance=choice("dm_variance", dm_variance, DM_VARIANCES),
        n_boot=positive_integer("n_boot", n_boot),
        seed=seed_of(random_state),
    )


def _measure_of(loss: str, kind: str, *, scaled: bool) -> str:
    """Measure closest to the loss of the tests, which sorts the models."""
    if kind == "variance":
        return {"qlike": "QLIKE", "squared": "MSE", "absolute": "MAE"}[loss]
    if loss == "squared":
        return "RMSSE" if scaled else "RMSE"
    return "MASE" if scaled else "MAE"


def _unscaled_notes(kind: str, loss: str) -> list[str]:
    """Notes on tests of several series without a scale."""
    notes = []
    if kind == "variance":
        notes.append(
            "Encompassing is left out: errors of variances of several series are in units of "
            "their own, and there is no scale; see train=."
        )
    if loss != "qlike":
        notes.append(
            "The losses of the series are not scaled, for lack of rows before the first cutoff: "
            "series of large values decide the tests."
        )
    return notes


def _variance_notes(tests: pd.DataFrame, variance: str) -> list[str]:
    """Note on tests whose variance was not positive and was replaced."""
    others = tests[tests["variance"] != variance]
    if not len(others):
        return []
    first = others.iloc[0]
    where = "all steps together" if first["step"] == ALL else f"step {first['step']}"
    return [
        f"In {len(others)} of {len(tests)} tests of Diebold and Mariano the variance of Harvey, "
        "Leybourne and Newbold is not positive, and they rest on that of Newey and West, the first "
        f"of {first['model_a']} and {first['model_b']} at {where}: see the column 'variance', and "
        'dm_variance="cosines", which cannot be negative.'
    ]


def _scope(
    forecasts: Forecasts, facts: dict[str, Any], over: str | None, why: str
) -> tuple[list[str], pd.DataFrame]:
    """Opening sentences of `words`, and the table of series set aside."""
    aside = pd.DataFrame(
        facts.get("set_aside") or [], columns=["unique_id", "model", "n_windows", "error"]
    )
    aside = aside[aside["model"].isna() | aside["model"].isin(forecasts.models)]
    compared = forecasts.ids[np.unique(forecasts.series)]
    lost = aside[~aside["unique_id"].isin(compared)].drop_duplicates("unique_id")
    n_times = len(np.unique(forecasts.time))
    first = scope(forecasts.models, n_times, forecasts.horizon, len(compared), over, why)
    sentences = [first, *filter(None, [facts.get("remark")]), *set_aside(lost)]
    return sentences, aside.reset_index(drop=True)


def _inactive_networks(facts: dict[str, Any], models: Sequence[str]) -> list[str]:
    """Notes on models whose network contributed nothing."""
    return [
        f"In {count} of {fits} fits the network of {model} contributed nothing (epoch 0 was best): "
        "what it starts from, by default the local level and the linear path, forecast alone."
        for model, (count, fits) in (facts.get("inactive_networks") or {}).items()
        if model in models
    ]


def _rank_notes(ranks: Ranks, forecasts: Forecasts) -> list[str]:
    if not len(ranks.table):
        return ["No ranks: they need two series, or two windows of one."] * (
            len(forecasts.models) > 1
        )
    alone = forecasts.n_series == 1
    notes = []
    if ranks.n < FEW_RANKED:
        notes.append(f"Ranks rest on {ranks.n} {'windows' if alone else 'series'} only.")
    if alone and (forecasts.step_size or forecasts.horizon) < forecasts.horizon:
        notes.append(
            "The test of ranks and its critical difference take windows to be independent, which "
            "overlapping ones are not."
        )
    return notes


def _ties(forecasts: Forecasts) -> list[str]:
    """Note on pairs of models that forecast the same."""
    points = zip(forecasts.models, forecasts.point[:, forecasts.known], strict=True)
    same = [f"{a} and {b}" for (a, x), (b, y) in combinations(points, 2) if np.array_equal(x, y)]
    return [f"The same forecasts, which no test tells apart: {'; '.join(same)}."] if same else []
