"""Where the time of a fit to a monthly series of 200 points goes, and of 200 fits in one.

Series by series with `per_series=True`, beside fits one by one; then the mean over 25 series.

Parts are packages and rooms, by the own time of their functions in a profiler, which makes a fit
slower than it is; seconds of whole fits are taken without. The first fit in a process also loads
torch's and Lightning's code: `import_time.py`.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd
from _parts import part_rows, seconds_by_part
from _timing import median_ms, print_machine, print_table, read_options

REPEATS = 5
LIGHTNING_AT_MOST = 0.2  # of a small fit, by the profiler
SAME_FORECASTS = 0.02  # deviations of a series: what some hundred steps make of rounding


def monthly_series(n: int = 200, seed: int = 0) -> pd.Series:
    """Trend, season and noise; of other seeds than 0 other ones, the noise correlated."""
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    slope, season, decay = (0.5, 20.0, 0.0) if seed == 0 else rng.uniform([0, 0, 0], [1, 20, 0.9])
    noise = 3 * rng.normal(size=n)
    for i in range(1, n):
        noise[i] += decay * noise[i - 1]
    values = 100 + slope * t + season * np.sin(2 * np.pi * t / 12) + noise
    return pd.Series(values, index=pd.date_range("2000-01", periods=n, freq="MS"), name="y")


def split_of_a_fit() -> float:
    """Print parts of a fit without and with a second training on all rows; share of Lightning."""
    from tsrnn import ParaRNNForecaster

    series = monthly_series()

    def fit() -> ParaRNNForecaster:
        return ParaRNNForecaster(prior=None, random_state=0).fit(series)

    epochs = len(fit().history_)  # loads and compiles everything
    print(f"fit of 200 points: {median_ms(fit, REPEATS, 0) / 1e3:.2f} s, {epochs} epochs\n")
    parts = seconds_by_part(fit)
    print_table(["part", "ms, profiled", "share"], part_rows(parts))
    return parts["Lightning"] / sum(parts.values())


def split_by_series(count: int = 200, alone: int = 5) -> None:
    """Print the parts of a fit of a network a series, and of a few of these series one by one.

    Raises
    ------
    AssertionError
        If forecasts of the two are not the same.
    """
    from tsrnn import ParaRNNForecaster

    series = [monthly_series(seed=seed) for seed in range(1, count + 1)]
    frame = pd.concat(series, keys=range(count), names=["unique_id", "ds"]).reset_index()

    def together() -> list[ParaRNNForecaster]:
        return [ParaRNNForecaster(random_state=0, per_series=True).fit(frame)]

    def one_by_one() -> list[ParaRNNForecaster]:
        return [ParaRNNForecaster(prior=None, random_state=0).fit(y) for y in series[:alone]]

    forecasts = []
    for label, fits, n in (("together", together, count), ("one by one", one_by_one, alone)):
        start = time.perf_counter()
        fitted = fits()
        seconds = time.perf_counter() - start
        print(f"\n{n} series of 200 points {label}: {1e3 * seconds / n:.1f} ms a series\n")
        rows = part_rows(seconds_by_part(fits), per=n)
        print_table(["part", "ms a series, profiled", "share"], rows)
        ahead = [model.predict() for model in fitted]
        forecasts.append(np.concatenate([np.ravel(one.get("ParaRNN", one)) for one in ahead]))
    steps = len(forecasts[1]) // alone
    for i, y in enumerate(series[:alone]):
        ours, theirs = (each[i * steps : (i + 1) * steps] for each in forecasts)
        difference = np.abs(ours - theirs).max() / y.std()
        assert difference < SAME_FORECASTS, f"forecasts differ by {difference:.2g} deviations"


def single_fits(count: int = 25) -> list[float]:
    """Seconds of a fit each to monthly series of 50 to 150 rows, one by one."""
    from tsrnn import ParaRNNForecaster

    seconds = []
    for seed in range(1, count + 1):
        series = monthly_series(int(np.random.default_rng(seed).integers(50, 151)), seed)
        start = time.perf_counter()
        ParaRNNForecaster(prior=None, random_state=0).fit(series)
        seconds.append(time.perf_counter() - start)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, help="only fit so many series at once")
    options = read_options(parser)
    print_machine()
    if options.series:
        split_by_series(options.series)
        return
    share = split_of_a_fit()
    if options.smoke:
        return
    split_by_series()
    seconds = single_fits()
    print(
        f"\n{len(seconds)} monthly series of 50 to 150 rows, each by itself: mean "
        f"{np.mean(seconds):.2f} s, longest {max(seconds):.2f} s"
    )
    assert share < LIGHTNING_AT_MOST, f"Lightning takes {100 * share:.0f} percent of a small fit"


if __name__ == "__main__":
    main()
