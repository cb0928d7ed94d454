"""Size of the Diebold-Mariano tests of `compare`: how often they reject equal accuracy.

Two forecasts err by independent sums of k standard normal shocks, as forecasts of a random walk k
steps ahead do, so that losses are equal in expectation and errors of windows that overlap are
correlated. Each pair is tested with every estimator of the variance, by `diebold_mariano` of
`tsrnn.contract`. Shares of rejections at 5 percent at the last step and over the mean of all steps,
and the share of pairs whose rectangular variance was not positive (and Newey and West's was taken);
the standard error of a share of 5 percent is 0.2 for 10,000 pairs, 0.5 for 2,000.
"""

from __future__ import annotations

import numpy as np
from _timing import option_parser, print_machine, print_table, read_options

from tsrnn.contract import DM_VARIANCES, diebold_mariano

SETTINGS = [(n, h) for n in (20, 50, 100, 200, 1000) for h in (1, 4, 12) if h < n / 2]


def differences(n: int, h: int, pairs: int, random: np.random.Generator) -> np.ndarray:
    """Differences of squared errors at the last step and of their means over all: (2, pairs, n)."""
    walk = random.normal(size=(n + h, 2, pairs)).cumsum(axis=0)
    squares = np.stack([(walk[k : n + k] - walk[:n]) ** 2 for k in range(1, h + 1)])
    losses = np.stack([squares[-1], squares.mean(axis=0)])
    return np.moveaxis(losses[:, :, 0] - losses[:, :, 1], 1, 2)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--pairs", type=int, default=2000)
    pairs = read_options(parser, pairs=20).pairs
    random = np.random.default_rng(0)
    print_machine()
    rows: list[tuple[object, ...]] = []
    for n, h in SETTINGS:
        given, row, replaced = differences(n, h, pairs, random), [], np.nan
        for variance in DM_VARIANCES:
            tests = [[diebold_mariano(d, h - 1, variance) for d in part] for part in given]
            shares = [100 * np.mean([test.p_value < 0.05 for test in part]) for part in tests]
            row.append(" / ".join(f"{share:.1f}" for share in shares))
            if variance == "rectangular":
                other = [[test.variance != variance for test in part] for part in tests]
                replaced = " / ".join(f"{100 * np.mean(part):.1f}" for part in other)
        rows.append((n, h, *row, replaced))
    print_table(
        ("windows", "steps", *(f"{name}, %" for name in DM_VARIANCES), "not positive, %"), rows
    )


if __name__ == "__main__":
    main()
