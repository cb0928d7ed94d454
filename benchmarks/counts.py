"""Forecasts of counts against the distributions that the counts were drawn from.

Panels of Poisson, negative binomial, zero-inflated, seasonal and slowly moving counts at five
means. Scores are expectations under the true predictive distribution, with its parameters known,
so that no draw of the future adds noise: CRPS and log score over the truth's, and coverage of
intervals with whole ends beside that of the true quantiles. ``--seed`` draws other panels:
constants were chosen on seeds from 1 on, seed 0 is the one that is shown.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from _timing import print_machine, print_table, read_options
from scipy.stats import nbinom, norm, poisson

from tsrnn import TSB, Croston, ParaRNNForecaster
from tsrnn.prior import CountForecasts, count_forecasts, count_hyper

SEASON = 12
STEPS = 6
SPREAD = 0.5  # standard deviation of the logarithms of the means of series
WALK = 0.1  # standard deviation of the changes of a moving logarithm
LEVELS = (80, 95)
QUANTILES = np.arange(1, 50) / 50  # by which forecasts without probabilities are scored
MEANS = (0.1, 0.3, 1.0, 3.0, 10.0)


class Counts(NamedTuple):
    """Panel of counts: rows (U, T) and true probabilities (U, h, M) of the steps after them."""

    values: np.ndarray
    truth: np.ndarray
    season_length: int = 1


def support(mean: float) -> np.ndarray:
    """Counts with all but a negligible probability."""
    return np.arange(int(60 + 80 * mean))


def level(rng: np.random.Generator, mean: float, n: int) -> np.ndarray:
    """Means of the series."""
    return mean * np.exp(SPREAD * rng.standard_normal((n, 1)))


def poisson_counts(rng: np.random.Generator, mean: float, n: int, rows: int) -> Counts:
    mu = np.repeat(level(rng, mean, n), rows + STEPS, 1)
    return Counts(rng.poisson(mu[:, :rows]).astype(float), poisson_truth(mu[:, rows:], mean))


def poisson_truth(mu: np.ndarray, mean: float) -> np.ndarray:
    return poisson.pmf(support(mean), mu[..., None])


def negative_binomial(rng: np.random.Generator, mean: float, n: int, rows: int) -> Counts:
    mu = level(rng, mean, n)
    size = np.exp(rng.uniform(np.log(0.5), np.log(5), (n, 1)))
    values = rng.poisson(mu * rng.standard_gamma(np.repeat(size, rows, 1)) / size)
    truth = nbinom.pmf(support(mean), size[..., None], (size / (size + mu))[..., None])
    return Counts(values.astype(float), np.repeat(truth, STEPS, 1))


def zero_inflated(rng: np.random.Generator, mean: float, n: int, rows: int) -> Counts:
    share = rng.uniform(0.3, 0.7, (n, 1))
    mu = np.repeat(level(rng, mean, n) / (1 - share), rows + STEPS, 1)
    values = rng.poisson(mu[:, :rows]) * (rng.random((n, rows)) >= share)
    truth = (1 - share[..., None]) * poisson_truth(mu[:, rows:], mean / 0.3)
    truth[..., 0] += share
    return Counts(values.astype(float), truth)


def seasonal(rng: np.random.Generator, mean: float, n: int, rows: int) -> Counts:
    amplitude, phase = rng.uniform(0.3, 1, (n, 1)), rng.uniform(0, 2 * np.pi, (n, 1))
    places = np.arange(rows + STEPS) % SEASON
    irregular = 0.2 * rng.standard_normal((n, SEASON))[:, places]
    mu = level(rng, mean, n) * np.exp(
        amplitude * np.sin(2 * np.pi * places / SEASON + phase) + irregular
    )
    values = rng.poisson(mu[:, :rows]).astype(float)
    return Counts(values, poisson_truth(mu[:, rows:], 2 * mean), SEASON)


def moving(rng: np.random.Generator, mean: float, n: int, rows: int) -> Counts:
    """Poisson counts around a random walk; the truth by a filter on a grid of the logarithm."""
    walk = (WALK * rng.standard_normal((n, rows))).cumsum(1)
    values = rng.poisson(level(rng, mean, n) * np.exp(walk)).astype(float)
    grid = np.arange(-5, 5, 0.04)
    rates = mean * np.exp(grid)
    moves = norm.pdf(grid[:, None], grid, WALK)
    moves /= moves.sum(1, keepdims=True)
    state = np.repeat(norm.pdf(grid, 0, SPREAD)[None], n, 0)
    for t in range(rows):
        state = (state @ moves) * poisson.pmf(values[:, t, None], rates)
        state /= state.sum(1, keepdims=True)
    probabilities = poisson.pmf(support(2 * mean), rates[:, None])
    truth = np.empty((n, STEPS, probabilities.shape[1]))
    for k in range(STEPS):
        state = state @ moves
        truth[:, k] = state @ probabilities
    return Counts(values, truth)


PROCESSES: dict[str, Callable[..., Counts]] = {
    "Poisson": poisson_counts,
    "negative binomial": negative_binomial,
    "zero-inflated": zero_inflated,
    "seasonal": seasonal,
    "moving": moving,
}


class Scored(NamedTuple):
    """Expected CRPS and log score, NaN without probabilities, and coverage by level."""

    crps: float
    log_score: float
    coverage: dict[int, float]


def expected_scores(panel: Counts, below: np.ndarray, pmf: np.ndarray | None = None) -> Scored:
    """Scores of distribution functions (U, h, M) in expectation under the truth."""
    truth = panel.truth.cumsum(-1)
    crps = ((below - truth) ** 2 + truth * (1 - truth)).sum(-1).mean()
    log_score = np.nan
    if pmf is not None:
        tiny = np.finfo(float).tiny
        log_score = -(panel.truth * np.log(np.maximum(pmf, tiny))).sum(-1).mean()
    coverage = {}
    for percent in LEVELS:
        tail = (1 - percent / 100) / 2
        low, high = ((below < p - 1e-12).sum(-1, keepdims=True) for p in (tail, 1 - tail))
        high = np.minimum(high, truth.shape[-1] - 1)
        upper = np.take_along_axis(truth, high, -1)
        lower = np.take_along_axis(truth, np.maximum(low - 1, 0), -1) * (low > 0)
        coverage[percent] = 100 * float((upper - lower).mean())
    return Scored(float(crps), float(log_score), coverage)


def of_forecasts(panel: Counts, forecasts: CountForecasts) -> Scored:
    pmf = forecasts.pmf(panel.truth.shape[-1])
    return expected_scores(panel, pmf.cumsum(-1), pmf)


def of_quantiles(panel: Counts, quantiles: np.ndarray) -> Scored:
    """Scores of continuous quantiles (U, h, n), rounded to whole numbers."""
    halves = np.arange(panel.truth.shape[-1]) + 0.5
    below = np.array(
        [[np.interp(halves, q, QUANTILES, 0.0, 1.0) for q in series] for series in quantiles]
    )
    return expected_scores(panel, below)


def by_count_models(panel: Counts) -> Scored:
    lengths = np.full(len(panel.values), panel.values.shape[1])
    hyper = count_hyper(panel.values, lengths, panel.season_length)
    forecasts = count_forecasts(panel.values, lengths, panel.season_length, STEPS, hyper)
    return of_forecasts(panel, forecasts)


def by_count_models_alone(panel: Counts) -> Scored:
    """Count models without a panel: the hyperprior is learned from each series by itself."""
    n = panel.truth.shape[-1]
    pmf = np.concatenate(
        [
            count_forecasts(row[None], np.array([len(row)]), panel.season_length, STEPS).pmf(n)
            for row in panel.values
        ]
    )
    return expected_scores(panel, pmf.cumsum(-1), pmf)


def by_empirical(panel: Counts) -> Scored:
    """Distribution of the rows of each series."""
    halves = np.arange(panel.truth.shape[-1])
    below = (panel.values[:, :, None] <= halves).mean(1)
    return expected_scores(panel, np.repeat(below[:, None], STEPS, 1))


def by_estimator(panel: Counts, model: Croston | TSB | ParaRNNForecaster) -> Scored:
    frame = pd.DataFrame(panel.values.T, columns=[f"y{i}" for i in range(len(panel.values))])
    levels = [round(100 * (1 - 2 * p)) for p in QUANTILES[: len(QUANTILES) // 2]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about single series without demand
        forecasts = model.fit(frame.melt(var_name="unique_id", value_name="y").assign(
            ds=np.tile(np.arange(len(frame)), frame.shape[1])
        )).predict(STEPS, level=levels)  # fmt: skip
    name = model.column_name
    columns = [
        *(f"{name}-lo-{percent}" for percent in levels),
        name,
        *(f"{name}-hi-{percent}" for percent in levels[::-1]),
    ]
    order = forecasts["unique_id"].str[1:].astype(int).to_numpy() * STEPS
    order += np.tile(np.arange(STEPS), len(panel.values))
    quantiles = np.empty((len(forecasts), len(QUANTILES)))
    quantiles[order] = np.sort(forecasts[columns].to_numpy(float), 1)
    return of_quantiles(panel, quantiles.reshape(len(panel.values), STEPS, -1))


METHODS: dict[str, Callable[[Counts], Scored]] = {
    "count models": by_count_models,
    "alone": by_count_models_alone,
    "Croston": lambda panel: by_estimator(panel, Croston("sba")),
    "TSB": lambda panel: by_estimator(panel, TSB()),
    "empirical": by_empirical,
    "prior network": lambda panel: by_estimator(
        panel, ParaRNNForecaster(STEPS, season_length=panel.season_length)
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--series", type=int, default=300)
    parser.add_argument("--alone", type=int, default=100, help="series that are forecast alone")
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", nargs="+", default=[*METHODS], choices=METHODS)
    parser.add_argument("--means", nargs="+", type=float, default=MEANS)
    options = read_options(parser, series=4, alone=1, rows=36, means=[1.0])
    torch.set_num_threads(1)
    print_machine()
    rows, seconds = [], dict.fromkeys(options.methods, 0.0)
    ratios: dict[str, list[list[float]]] = {name: [] for name in options.methods}
    for number, (process, draw) in enumerate(PROCESSES.items()):
        for mean in options.means:
            rng = np.random.default_rng([options.seed, number, round(10 * mean)])
            full = draw(rng, mean, options.series, options.rows)
            for name in options.methods:
                n = min(options.alone if name == "alone" else options.series, options.series)
                panel = Counts(full.values[:n], full.truth[:n], full.season_length)
                start = time.process_time()
                scored = METHODS[name](panel)
                seconds[name] += 1e3 * (time.process_time() - start) / n
                best = expected_scores(panel, panel.truth.cumsum(-1), panel.truth)
                ratio = [scored.crps / best.crps, scored.log_score / best.log_score]
                gaps = [scored.coverage[p] - best.coverage[p] for p in LEVELS]
                ratios[name].append(ratio + gaps)
                rows.append([process, f"{mean:g}", name, *(f"{r:.3f}" for r in ratio),
                             *(f"{scored.coverage[p]:.1f} ({best.coverage[p]:.1f})"
                               for p in LEVELS)])  # fmt: skip
    header = ["counts", "mean", "forecasts", "CRPS", "log score",
              *(f"covers at {p} (truth)" for p in LEVELS)]  # fmt: skip
    print_table(header, rows)
    print()
    print_table(
        ["forecasts", "CRPS", "log score", *(f"coverage at {p} less truth's" for p in LEVELS),
         "ms a series"],
        [[name, *(f"{v:.3f}" for v in np.mean(ratios[name], 0)[:2]),
          *(f"{v:+.1f}" for v in np.mean(ratios[name], 0)[2:]),
          f"{seconds[name] / len(ratios[name]):.2f}"] for name in options.methods],
    )  # fmt: skip


if __name__ == "__main__":
    main()
