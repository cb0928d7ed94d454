"""Coverage of 95 percent intervals in dependent data: coefficients, impulse responses, quantiles.

Simulated series, T rows after 100 that are thrown away, 0.5 the coefficient of x:

    nonlinear  x = q + 0.5 tanh(y[t-2]) + v, y = 0.5 x + q + 0.3 y[t-1] + e, q = cos(1.5 y[t-1])
    linear     x = 0.5 y[t-1] - 0.3 y[t-2] + v, y = 0.5 x + 0.4 y[t-1] + 0.2 y[t-2] + e

with normal v and an AR(1) e of coefficient 0.5. ``--networks`` takes `ParaRNNRegressor` as
nuisance, ``--responses`` local projections, ``--quantiles`` the share of later values below
conditional quantiles; without them it is the coefficient, with boosted trees, splines and least
squares on the lags.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from _timing import option_parser, print_machine, print_table, read_options
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression, QuantileRegressor, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

from tsrnn import ParaRNNRegressor
from tsrnn.inference import ConditionalQuantiles, LocalProjections, PartiallyLinear

BETA, BURN_IN = 0.5, 100
DESIGNS = ("nonlinear", "linear")
COV_TYPES = ("EWC", "fixed-b", "HAC", "HC")
HORIZONS = 4


def simulate(T: int, design: str, generator: np.random.Generator, paths: int = 1) -> np.ndarray:
    """Series y, x, v and the innovations of e of some paths: shape (4, T, paths)."""
    n = T + BURN_IN
    v, shock = generator.normal(size=(2, n, paths))
    y, x, e = np.zeros((n, paths)), np.zeros((n, paths)), np.zeros(paths)
    for t in range(2, n):
        e = 0.5 * e + shock[t]
        if design == "linear":
            x[t] = 0.5 * y[t - 1] - 0.3 * y[t - 2] + v[t]
            y[t] = BETA * x[t] + 0.4 * y[t - 1] + 0.2 * y[t - 2] + e
        else:
            q = np.cos(1.5 * y[t - 1])
            x[t] = q + 0.5 * np.tanh(y[t - 2]) + v[t]
            y[t] = BETA * x[t] + q + 0.3 * y[t - 1] + e
    return np.stack([y, x, v, shock])[:, BURN_IN:]


def true_responses(design: str) -> np.ndarray:
    """Coefficients of v in y, h rows later, from 4 million rows: errors of 0.001."""
    y, _, v, _ = simulate(2_000, design, np.random.default_rng(1), 2_000)
    n = len(v) - HORIZONS
    return np.array([(v[:n] * y[h : n + h]).mean() for h in range(HORIZONS + 1)])


def splines() -> Any:
    """Additive cubic splines of each lag, with the penalty of the least error."""
    bases = SplineTransformer(n_knots=6, knots="quantile", extrapolation="constant")
    return make_pipeline(bases, StandardScaler(), RidgeCV(np.logspace(-1, 3, 9)))


def series(T: int, design: str, n: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Series y and x of each replication."""
    for i in range(n):
        y, x, _, _ = simulate(T, design, np.random.default_rng([i, T]))
        yield y[:, 0], x[:, 0]


def known_functions(T: int, design: str, n: int) -> list[object]:
    """Row of least squares of e's innovations plus 0.5 v on v: what no estimate can be better than.

    It shows the error of the simulation, as it is of the same series.
    """
    estimates, covered = [], []
    for i in range(n):
        _, _, v, innovation = simulate(T, design, np.random.default_rng([i, T]))[..., 0]
        error = v @ innovation / (v @ v)
        score = v * (innovation - error * v)
        se = np.sqrt(score @ score) / (v @ v)
        estimates.append((error, se))
        covered.append(abs(error) <= 1.96 * se)
    error, se = np.transpose(estimates)
    return [design, T, "(known)", n, f"{error.mean():+.3f}", f"{error.std():.3f}",
            f"{se.mean():.3f}", "", "", "", f"{100 * np.mean(covered):.1f}", ""]  # fmt: skip


def coefficients(
    models: dict[str, PartiallyLinear], sizes: list[int], n: int, designs: list[str]
) -> None:
    """Print bias, spread and coverage of intervals of the coefficient."""
    rows = []
    for design in designs:
        for T in sizes:
            rows.append(known_functions(T, design, n))
            print(*rows[-1], file=sys.stderr, flush=True)
            for name, model in models.items():
                start, estimates, covered = time.perf_counter(), [], []
                for y, x in series(T, design, n):
                    fit = model.fit(y, x)
                    ends = [fit.conf_int(cov_type=kind).to_numpy()[0] for kind in COV_TYPES]
                    covered.append([low <= BETA <= high for low, high in ends])
                    estimates.append((fit.params_.iloc[0], fit.bse_.iloc[0]))
                estimate, se = np.transpose(estimates)
                share = 100 * np.mean(covered, axis=0)
                seconds = (time.perf_counter() - start) / n
                rows.append(
                    [design, T, name, n, f"{estimate.mean() - BETA:+.3f}", f"{estimate.std():.3f}",
                     f"{se.mean():.3f}", *(f"{s:.1f}" for s in share), f"{seconds:.2f}"]
                )  # fmt: skip
                print(*rows[-1], file=sys.stderr, flush=True)
    head = ["design", "T", "nuisance", "n", "bias", "sd", "se", *COV_TYPES, "s"]
    print_table(head, rows)


def responses(models: dict[str, LocalProjections], sizes: list[int], n: int) -> None:
    """Print coverage of bands of impulse responses, pointwise by horizon and simultaneous."""
    rows = []
    for design in DESIGNS:
        truth = true_responses(design)
        for T in sizes:
            for name, model in models.items():
                pointwise, together, errors = [], [], []
                for y, x in series(T, design, n):
                    irf = model.fit(y, x).irf_
                    pointwise.append((irf["lower"] <= truth) & (truth <= irf["upper"]))
                    ends = irf["lower_simultaneous"], irf["upper_simultaneous"]
                    together.append(((ends[0] <= truth) & (truth <= ends[1])).all())
                    errors.append(irf["estimate"] - truth)
                share, bias = 100 * np.mean(pointwise, axis=0), np.mean(errors, axis=0)
                rows.append(
                    [design, T, name, n, " ".join(f"{b:+.2f}" for b in bias),
                     *(f"{s:.1f}" for s in share), f"{100 * np.mean(together):.1f}"]
                )  # fmt: skip
                print(*rows[-1], file=sys.stderr, flush=True)
    print_table(
        ["design", "T", "nuisance", "n", "bias", *(f"h={h}" for h in range(HORIZONS + 1)), "all"],
        rows,
    )


def quantiles(sizes: list[int], n: int) -> None:
    """Print shares of 200 later values below quantiles of 5, 50 and 95 percent."""
    rows, levels = [], [0.05, 0.5, 0.95]
    linear = make_pipeline(StandardScaler(), QuantileRegressor(alpha=0, solver="highs"))
    for name, model in {"boosted trees": None, "linear": linear}.items():
        for T in sizes:
            for calibrate in (True, False):
                fit = ConditionalQuantiles(
                    model, quantiles=levels, n_lags=2, calibrate=calibrate, random_state=0
                )
                below, inside = [], []
                for y, x in series(T + 200, "nonlinear", n):
                    ahead = fit.fit(y[:T], x[:T]).predict(y[T - 2 : -1], x[T - 2 : -1]).to_numpy()
                    below.append((y[T:, None] <= ahead).mean(axis=0))
                    inside.append(below[-1][2] - below[-1][0])
                share = [f"{100 * s:.1f}" for s in np.mean(below, axis=0)]
                kind = "calibrated" if calibrate else "of the model"
                rows.append([name, T, kind, n, *share, f"{100 * np.mean(inside):.1f}"])
                print(*rows[-1], file=sys.stderr, flush=True)
    print_table(["model", "T", "quantiles", "n", "5%", "50%", "95%", "90% interval"], rows)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--replications", type=int, default=50)
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 500, 1_000])
    parser.add_argument("--models", nargs="+", default=["ols", "ridge, trees"])
    parser.add_argument("--designs", nargs="+", default=DESIGNS, choices=DESIGNS)
    parser.add_argument("--networks", action="store_true")
    parser.add_argument("--responses", action="store_true")
    parser.add_argument("--quantiles", action="store_true")
    options = read_options(parser, replications=2, sizes=[200], models=["ols"])
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # of single fits, of which there are thousands
    print_machine()
    n, sizes = options.replications, options.sizes
    network = ParaRNNRegressor(16, learning_rate=0.01, patience=20, validation_fraction=0.15)
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 4, 13)))
    trees = GradientBoostingRegressor(
        n_estimators=60, learning_rate=0.15, max_depth=2, subsample=0.5
    )
    if options.responses:
        kinds = {"ols": "ols", "splines": splines(), "trees": trees, "ridge, trees": [ridge, trees]}
        shared = {"horizons": HORIZONS, "n_lags": 2, "random_state": 0}
        chosen = {name: LocalProjections(kinds[name], **shared) for name in options.models}
        responses(chosen, sizes, n)
        return
    if options.quantiles:
        quantiles(sizes, n)
        return
    shared = {"n_lags": 2, "random_state": 0}
    models = {
        "ols": PartiallyLinear(LinearRegression(), n_folds=1, **shared),
        "splines": PartiallyLinear(splines(), **shared),
        "trees": PartiallyLinear(trees, **shared),
        "ridge, trees": PartiallyLinear([ridge, trees], **shared),
        "network": PartiallyLinear(network, **shared),
        "ridge, network": PartiallyLinear([ridge, network], **shared),
    }
    names = ["ridge, network"] if options.networks else options.models
    coefficients({name: models[name] for name in names}, sizes, n, options.designs)


if __name__ == "__main__":
    main()
