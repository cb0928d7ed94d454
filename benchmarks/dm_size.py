"""Size of the Diebold-Mariano tests of `compare`: how often they reject equal accuracy.

Two forecasts err by independent sums of k standard normal shocks, as forecasts of a random walk k
steps ahead do, so that losses are equal in expectation and errors of windows that overlap are
correlated. All pairs are tested at once, by the private function behind `compare`. Shares of
rejections at 5 percent, over simulated pairs; the standard error of a share of 5 percent is 0.2
for 10,000 pairs, 0.5 for 2,000.
"""

from __future__ import annotations

import argparse

import numpy as np
from _timing import print_machine, print_table

from tsrnn.contract import newey_west_lags
from tsrnn.evaluation._losses import Observations
from tsrnn.evaluation._tests import diebold_mariano

SETTINGS = [(n, h) for n in (20, 50, 100, 200, 1000) for h in (1, 4, 12) if h < n / 2]


def losses(n: int, h: int, pairs: int, random: np.random.Generator) -> np.ndarray:
    """Squared errors of both forecasts at the last step, then means over all: (n, 2, 2 pairs)."""
    walk = random.normal(size=(n + h, 2, pairs)).cumsum(axis=0)
    squares = np.stack([(walk[k : n + k] - walk[:n]) ** 2 for k in range(1, h + 1)])
    return np.concatenate([squares[-1], squares.mean(axis=0)], axis=2)


def rejected(n: int, h: int, pairs: int, random: np.random.Generator) -> np.ndarray:
    """Percent of the pairs told apart at the last step and over all steps."""
    values = losses(n, h, pairs, random)
    observations = Observations("time", values, np.full(2 * pairs, h - 1), np.arange(n))
    found = diebold_mariano(observations, ["a", "b"])["p_value"].to_numpy() < 0.05
    return 100 * found.reshape(2, pairs).mean(axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=2000)
    pairs = parser.parse_args().pairs
    random = np.random.default_rng(0)
    print_machine()
    rows = [
        (n, h, newey_west_lags(h - 1, n), *rejected(n, h, pairs, random).round(1))
        for n, h in SETTINGS
    ]
    print_table(("windows", "steps", "lags", "last step, %", "all steps, %"), rows)


if __name__ == "__main__":
    main()
