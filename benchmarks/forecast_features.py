"""Features of whole forecasts against processes with known roots, and on real data.

Autoregressions whose roots are waves and decays are simulated many times and forecast by a
ParaRNN each; the features of its forecasts are held against the roots, at the order of the process.
Real data are monthly, weekly and hourly: which features come first. ``--data-home`` names a
folder with the files of ETT; without it the hourly rows are left out.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _timing import option_parser, print_machine, print_table, read_options

from tsrnn import ParaRNNForecaster, forecast_features
from tsrnn.datasets import load_co2, load_elec_equip, load_elnino, load_ett, load_sunspots
from tsrnn.interpret import match_features

LOCAL_COPY = Path(__file__).resolve().parents[2] / "shared" / "data" / "ett"
# Waves (modulus, period in steps) and decays (modulus) of autoregressions.
PROCESSES: dict[str, tuple[list[tuple[float, float]], list[float]]] = {
    "wave of 12": ([(0.95, 12.0)], []),
    "waves of 24 and 7": ([(0.97, 24.0), (0.93, 7.0)], []),
    "wave of 12, decay": ([(0.95, 12.0)], [0.8]),
    "decay": ([], [0.9]),
}


def roots_of(waves: list[tuple[float, float]], decays: list[float]) -> np.ndarray:
    """Eigenvalues of a process, one of each conjugate pair."""
    return np.array(
        [m * np.exp(2j * np.pi / period) for m, period in waves] + [complex(m) for m in decays]
    )


def simulated(roots: np.ndarray, n_rows: int, n_series: int, seed: int) -> pd.DataFrame:
    """Autoregressions with these roots, a column each."""
    pairs = np.concatenate([roots, roots[roots.imag > 0].conj()])
    coefficients = -np.poly(pairs).real[1:]
    noise = np.random.default_rng(seed).standard_normal((n_rows + 500, n_series))
    y = noise.copy()
    for t in range(len(coefficients), len(y)):
        y[t] += coefficients @ y[t - len(coefficients) : t][::-1]
    index = pd.RangeIndex(n_rows)
    return pd.DataFrame(y[500:], index, [f"series {i}" for i in range(n_series)])


def against_roots(name: str, n_rows: int, n_series: int, network: Any) -> list[Any]:
    """Errors of moduli and periods over replications of one process."""
    roots = roots_of(*PROCESSES[name])
    order = len(roots) + int((roots.imag > 0).sum())
    frame = simulated(roots, n_rows, n_series, 0)
    start = time.perf_counter()
    model = ParaRNNForecaster(
        horizon=12, prior=None, network=network, per_series=True, random_state=0
    ).fit(frame)
    seconds = time.perf_counter() - start
    known = pd.DataFrame(
        {"modulus": np.abs(roots), "angle": np.angle(roots), "share": 1 / len(roots)}
    )
    moduli, periods, missed = [], [], 0
    for column in frame:
        features = forecast_features(model.for_series(column), order=order)
        for root, place in zip(roots, match_features(known, features), strict=True):
            if place < 0:
                missed += 1
                continue
            moduli.append(features["modulus"].iloc[place] - abs(root))
            if root.imag > 0:
                period = 2 * np.pi / np.angle(root)
                periods.append(features["period"].iloc[place] / period - 1)
    size = np.abs(moduli)
    return [
        name, n_rows, n_series, missed, f"{np.mean(moduli):+.4f}", f"{np.median(size):.4f}",
        f"{np.quantile(size, 0.9):.4f}", f"{np.mean(size <= 0.02):.0%}",
        f"{np.quantile(np.abs(periods), 0.9):.2%}" if periods else "",
        f"{np.mean(np.abs(periods) <= 0.03):.0%}" if periods else "", f"{seconds:.0f}",
    ]  # fmt: skip


def real(name: str, data: pd.DataFrame, horizon: int, **arguments: Any) -> list[list[Any]]:
    """First features of the forecasts of one data set."""
    model = ParaRNNForecaster(horizon=horizon, random_state=0, **arguments).fit(data)
    fitted = time.perf_counter()
    features = forecast_features(model)
    seconds = time.perf_counter() - fitted
    attrs = features.attrs
    return [
        [
            name if i == 0 else "", row.type, f"{row.period:.4g}", f"{row.half_life:.4g}",
            f"{row.share:.1%}", attrs["time_unit"],
            *([attrs["realisation_order"], f"{attrs['realisation_error']:.1%}",
               f"{attrs['linearisation_error']:.1%}", f"{seconds:.2f}"] if i == 0 else [""] * 4),
        ]
        for i, row in enumerate(features.head(3).itertuples())
    ]  # fmt: skip


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--series", type=int, default=100)
    parser.add_argument("--network", action="store_true", help="train networks, too")
    parser.add_argument("--data-home", default=LOCAL_COPY if LOCAL_COPY.is_dir() else None)
    options = read_options(parser, series=4)
    warnings.simplefilter("ignore")
    print_machine()
    header = ["process", "rows", "series", "missed", "mean error of modulus", "median size",
              "90 % of sizes", "within 0.02", "90 % of periods", "within 3 %",
              "seconds"]  # fmt: skip
    network = "auto" if options.network else False
    rows = [against_roots(name, options.rows, options.series, network) for name in PROCESSES]
    print_table(header, rows)
    if options.smoke:
        return
    rows = real("El Niño, prior network", load_elnino(), 12)
    rows += real("El Niño, trained", load_elnino(), 12, prior=None)
    rows += real("electrical equipment", load_elec_equip(), 12, prior=None)
    rows += real("CO2, weeks", load_co2(), 13, missing="interpolate")
    rows += real("sunspots, root", np.sqrt(load_sunspots()), 6, prior=None)
    if options.data_home is not None:
        ett = load_ett("ETTh1", data_home=options.data_home)[:8000]
        for name in ("HUFL", "OT"):
            rows += real(f"ETTh1 {name}", ett[[name]], 24, network=False)
    print()
    print_table(["data", "type", "period", "half-life", "share", "unit", "order", "left out",
                 "not linear", "seconds"], rows)  # fmt: skip


if __name__ == "__main__":
    main()
