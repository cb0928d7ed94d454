"""Intervals and standard errors beside their level, where the process is known.

Three tables: first steps of the prior network on an AR(1) at several levels; first steps of `ARMA`
on short AR(1), by the degrees of freedom of the variance; and the standard error of the mean of
volatility models whose likelihood has kinks.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from _m4 import long_frame
from _timing import option_parser, print_machine, print_table, read_options

from tsrnn import GARCH, ParaRNNForecaster
from tsrnn.linear import ARMA

LEVELS = (0.0, 20.0, 1e4, 1e6, 1e9)
PROCESSES = ((0.5, 100), (0.8, 50))  # coefficient and rows
RIGHT = 2 * 1.2816  # width of 80 percent of a standard normal error
SHORT = (12, 20)  # rows
MEAN_PARAMETERS = 2  # of an AR(1): its mean and its coefficient
VOLATILITIES = {
    "egarch": ([0.05, -0.1, 0.15, -0.08, 0.95], 4000),
    "tgarch": ([0.05, 0.05, 0.1, 0.1, 0.85], 1000),
}


def autoregressions(phi: float, rows: int, count: int, seed: int) -> np.ndarray:
    """Stationary AR(1) with innovations of variance one, shape (count, rows)."""
    noise = np.random.default_rng(seed).normal(size=(count, 50 + rows))
    y = np.zeros_like(noise)
    for t in range(1, y.shape[1]):
        y[:, t] = phi * y[:, t - 1] + noise[:, t]
    return y[:, 50:]


def by_level(count: int) -> list[list[str]]:
    """Coverage and width of 80 percent of the prior network, by level."""
    table = []
    for level in LEVELS:
        row = [f"{level:g}"]
        for phi, rows in PROCESSES:
            y = level + autoregressions(phi, rows + 1, count, seed=0)
            model = ParaRNNForecaster(prior="only").fit(long_frame(dict(enumerate(y[:, :-1]))))
            first = model.predict(1, level=80)
            low, high = (first[f"{model.column_name}-{end}-80"].to_numpy() for end in ("lo", "hi"))
            inside = (low <= y[:, -1]) & (y[:, -1] <= high)
            row += [f"{100 * inside.mean():.0f}", f"{(high - low).mean():.2f}"]
        table.append(row)
    return table


def by_degrees_of_freedom(count: int) -> list[list[str]]:
    """Coverage of 95 percent of an AR(1) with a mean, by rows."""
    table = []
    for rows in SHORT:
        y = autoregressions(0.5, rows + 1, count, seed=2)
        frame, actual, shares = long_frame(dict(enumerate(y[:, :-1]))), y[:, -1], []
        for uncertain in (False, True):
            model = ARMA(order=(1, 0), parameter_uncertainty=uncertain).fit(frame)
            first = model.predict(1, level=95)
            away, half = np.abs(actual - first["ARMA"]), first["ARMA-hi-95"] - first["ARMA"]
            if not uncertain:
                by_n = half * np.sqrt((rows - MEAN_PARAMETERS) / rows)
                shares.append((away <= by_n).mean())
            shares.append((away <= half).mean())
        table.append([str(rows), *(f"{100 * share:.1f}" for share in shares)])
    return table


def by_kinks(smallest: bool) -> list[list[str]]:
    """Standard error of mu over its standard deviation, and coverage of 95 percent."""
    table = []
    for vol, (truth, count) in VOLATILITIES.items():
        count, rows = (4, 200) if smallest else (count, 1000)
        noise = pd.DataFrame(np.random.default_rng(0).standard_normal((50, count)))
        drawn = GARCH(vol=vol, random_state=1).filter(noise, truth)
        fit = GARCH(vol=vol, cov_type="hessian").fit(drawn.simulate(rows, burn=200, random_state=5))
        good = fit.converged_.to_numpy()
        mu, error = (part["mu"].to_numpy()[good] for part in (fit.params_, fit.bse_))
        inside = np.abs(mu - truth[0]) <= 1.96 * error
        ratio = np.nanmedian(error) / mu.std(ddof=1)
        table.append([vol, str(good.sum()), f"{ratio:.2f}", f"{100 * inside.mean():.1f}"])
    return table


def main() -> None:
    options = read_options(option_parser(__doc__))
    print_machine()
    warnings.simplefilter("ignore")  # about single series, which are thousands
    names = [f"phi {phi:g}, {rows} rows" for phi, rows in PROCESSES]
    head = [text for name in names for text in (f"{name}: covered", "width")]
    print_table(["level", *head], by_level(4 if options.smoke else 300))
    print(f"\nThe right width is {RIGHT:.2f}.\n")
    head = ["over n", "over n - k", "default"]
    print_table(["rows", *head], by_degrees_of_freedom(20 if options.smoke else 3000))
    print()
    head = ["converged", "standard error of mu over its deviation", "covered"]
    print_table(["volatility", *head], by_kinks(options.smoke))


if __name__ == "__main__":
    main()
