"""Seconds of a fit of a network to a monthly series, and of many series in one fit.

A series of 200 rows by itself; 200 of them with ``per_series=True`` beside five one by one, whose
forecasts must be the same; and 25 series of 50 to 150 rows, one by one. The first fit in a process
also loads torch's and Lightning's code: `import_time.py`.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from _timing import median_ms, option_parser, print_machine, print_table, read_options

from tsrnn import ParaRNNForecaster

SAME_FORECASTS = 0.02  # deviations of a series: what some hundred steps make of rounding


def monthly_series(n: int = 200, seed: int = 0) -> pd.Series:
    """Trend, season and correlated noise, whose sizes are drawn."""
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    slope, season, decay = rng.uniform([0, 0, 0], [1, 20, 0.9])
    noise = 3 * rng.normal(size=n)
    for i in range(1, n):
        noise[i] += decay * noise[i - 1]
    values = 100 + slope * t + season * np.sin(2 * np.pi * t / 12) + noise
    return pd.Series(values, index=pd.date_range("2000-01", periods=n, freq="MS"), name="y")


def fit(series: pd.Series) -> ParaRNNForecaster:
    return ParaRNNForecaster(prior=None, random_state=0).fit(series)


def seconds_together(count: int, alone: int) -> tuple[float, float]:
    """Seconds a series of one fit of a network each, and of fits one by one."""
    series = [monthly_series(seed=seed) for seed in range(1, count + 1)]
    frame = pd.concat(series, keys=range(count), names=["unique_id", "ds"]).reset_index()
    start = time.perf_counter()
    together = ParaRNNForecaster(prior=None, random_state=0, per_series=True).fit(frame)
    middle = time.perf_counter()
    single = [fit(y) for y in series[:alone]]
    end = time.perf_counter()
    forecasts = together.predict().set_index("unique_id")["ParaRNN"]
    for i, (y, model) in enumerate(zip(series, single, strict=False)):
        apart = np.abs(forecasts[i].to_numpy() - model.predict().to_numpy().ravel()).max() / y.std()
        assert apart < SAME_FORECASTS, f"forecasts differ by {apart:.2g} deviations"
    return (middle - start) / count, (end - middle) / alone


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--series", type=int, default=200, help="fitted together")
    parser.add_argument("--short", type=int, default=25, help="short series, one by one")
    options = read_options(parser, series=3, short=1)
    print_machine()
    series = monthly_series()
    fit(series)  # loads and compiles everything
    rows = [["one series of 200 rows", f"{median_ms(lambda: fit(series), 5, 0) / 1e3:.2f}", ""]]
    together, alone = seconds_together(options.series, min(options.series, 5))
    rows.append([f"each of {options.series} in one fit", f"{together:.2f}", ""])
    rows.append(["the same one by one", f"{alone:.2f}", ""])
    seconds = []
    for seed in range(1, options.short + 1):
        short = monthly_series(int(np.random.default_rng(seed).integers(50, 151)), seed)
        seconds.append(median_ms(lambda y=short: fit(y), 1, 0) / 1e3)
    rows.append(["50 to 150 rows, mean and most", f"{np.mean(seconds):.2f}", f"{max(seconds):.2f}"])
    print_table(["fit", "s", "most"], rows)


if __name__ == "__main__":
    main()
