"""VECMGARCH: times of a fit, the optimum of a public data set, coverage of intervals.

The optimum is that of a BEKK(1, 1) with constant means for the daily log returns, in percent, of
the first two indices of R's EuStockMarkets (DAX and SMI, 1991 to 1998), with presample e e' and
H at the covariance of the returns. `--replications 200` adds Monte Carlo experiments.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _timing import median_ms, option_parser, print_machine, print_table, read_options
from scipy.special import ndtri

from tsrnn.linear.vech import VECMGARCH

SOURCE = Path(__file__).parents[2] / "shared/data/finance/EuStockMarkets.csv.gz"
KINDS = ("hessian", "opg", "information", "robust", "bollerslev-wooldridge")
BEKK = {
    "C[1,1]": 0.30, "C[2,1]": 0.10, "C[2,2]": 0.25,
    "A1[1,1]": 0.35, "A1[1,2]": 0.05, "A1[2,1]": -0.05, "A1[2,2]": 0.30,
    "G1[1,1]": 0.88, "G1[1,2]": 0.02, "G1[2,1]": 0.00, "G1[2,2]": 0.90,
}  # fmt: skip

DIAGONAL = {
    "b[1,1]": 0.05, "b[2,1]": 0.03, "b[2,2]": 0.04,
    "theta1[1,1]": 0.10, "theta1[2,1]": 0.05, "theta1[2,2]": 0.08,
    "phi1[1,1]": 0.85, "phi1[2,1]": 0.80, "phi1[2,2]": 0.88,
}  # fmt: skip
FACTORS = {  # of the full model: Theta and Phi map X to the sum of A'XA
    "theta1": (
        [[0.30, 0.0], [0.0, 0.30]],
        [[0.10, 0.05], [0.0, -0.10]],
        [[0.0, 0.10], [0.05, 0.0]],
    ),
    "phi1": ([[0.85, 0.0], [0.0, 0.85]], [[0.15, 0.10], [0.0, -0.15]], [[0.0, 0.15], [0.10, 0.0]]),
}


def full_truth() -> dict[str, float]:
    """Parameters of a full model whose maps are far from the boundary."""
    truth = {"b[1,1]": 0.10, "b[2,1]": 0.03, "b[2,2]": 0.10}
    pairs = [(0, 0), (1, 0), (1, 1)]
    for name, factors in FACTORS.items():
        for i, j in pairs:
            for k, m in pairs:
                unit = np.zeros((2, 2))
                unit[k, m] = unit[m, k] = 1.0
                effect = sum(np.transpose(a) @ unit @ np.asarray(a) for a in factors)
                truth[f"{name}[{i + 1}{j + 1},{k + 1}{m + 1}]"] = float(effect[i, j])
    return truth


def simulated(steps: int, n: int, seed: int) -> pd.DataFrame:
    """Draws of a BEKK with n variables."""
    rng = np.random.default_rng(seed)
    A, G = 0.25 * np.eye(n) + 0.05, 0.94 * np.eye(n) - 0.02
    C = 0.2 * np.linalg.cholesky(0.5 * np.eye(n) + 0.5)
    H, e, rows = np.eye(n), np.zeros(n), []
    for _ in range(steps + 200):
        H = C @ C.T + A.T @ np.outer(e, e) @ A + G.T @ H @ G
        e = np.linalg.cholesky(H) @ rng.standard_normal(n)
        rows.append(e)
    return pd.DataFrame(rows[200:])


def time_fits(steps: int, first_only: bool) -> None:
    cases = [("bekk", 2), ("scalar", 3), ("diagonal", 3), ("bekk", 3), ("full", 2), ("full", 3)]
    table = []
    for structure, n in cases[: 1 if first_only else None]:
        frame = simulated(steps, n, seed=0)
        model = VECMGARCH(structure=structure, mean="zero")
        ms = median_ms(lambda model=model, frame=frame: model.fit(frame), 1)
        table.append((
            structure, f"{n} x {steps}", model.params_.shape[1], f"{ms:.0f}",
            int(model.estimates_.iterations[0]),
            f"{model.agreement_.iloc[0]} of {model.starts_.iloc[0]}",
            f"{model.loglik_.iloc[0]:.4f}", bool(model.converged_.iloc[0]),
        ))  # fmt: skip
    header = ("structure", "data", "parameters", "ms", "iterations", "agree", "loglik", "converged")
    print_table(header, table)


def print_optimum() -> None:
    if not SOURCE.exists():
        print(f"\n{SOURCE.name} is not there: no optimum of a public data set")
        return
    prices = pd.read_csv(SOURCE).iloc[:, :2]
    returns = 100 * prices.apply(np.log).diff().iloc[1:].reset_index(drop=True)
    model = VECMGARCH().fit(returns)
    errors = [np.sqrt(np.diagonal(model.cov_params(cov_type=kind))) for kind in KINDS]
    rows = [
        (name, f"{value:.8f}", *(f"{column[j]:.8f}" for column in errors))
        for j, (name, value) in enumerate(model.params_.iloc[0].items())
    ]
    print(f"\nBEKK(1, 1), {SOURCE.name}, columns {list(prices.columns)}, {len(returns)} returns")
    print(f"log-likelihood {model.loglik_.iloc[0]:.8f}, starts that agree "
          f"{model.agreement_.iloc[0]} of {model.starts_.iloc[0]}, largest gradient "
          f"{np.abs(model.estimates_.gradient).max():.1e}")  # fmt: skip
    print_table(("parameter", "estimate", *KINDS), rows)


def monte_carlo(structure: str, given: dict[str, float], replications: int, steps: int) -> None:
    """Recovery of a bivariate model and coverage of its intervals of 95 percent."""
    settings = {"structure": structure, "mean": "zero"}
    origin = VECMGARCH(**settings).filter(simulated(50, 2, 0), given)
    names = list(origin.params_)
    truth = np.array([given[name] for name in names])
    estimates, inside = [], {"hessian": [], "robust": []}
    for i in range(replications):
        frame = origin.simulate(steps, random_state=i)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = VECMGARCH(**settings, n_starts=1).fit(frame)
        if not model.converged_.iloc[0]:
            continue
        params = model.params_.to_numpy()[0]
        estimates.append(params)
        for kind, rows in inside.items():
            half = ndtri(0.975) * np.sqrt(np.diagonal(model.cov_params(cov_type=kind)))
            covered = np.abs(params - truth) <= half
            rows.append(np.where(np.isfinite(half), covered, np.nan))
    found = np.array(estimates)
    error = found.std(0, ddof=1) / np.sqrt(len(found))
    print(f"\n{structure}, {len(found)} of {replications} replications converged, T = {steps}")
    table = [
        (name, f"{truth[j]:.4f}", f"{found[:, j].mean():.4f}", f"{found[:, j].std(ddof=1):.4f}",
         f"{(found[:, j].mean() - truth[j]) / error[j]:.1f}",
         *(f"{100 * np.nanmean(rows, 0)[j]:.1f}" for rows in inside.values()),
         f"{100 * np.isfinite(np.array(inside['robust'])[:, j]).mean():.0f}")
        for j, name in enumerate(names)
    ]  # fmt: skip
    header = ("parameter", "truth", "mean", "sd", "bias / error", "% hessian", "% robust",
              "% with an error")  # fmt: skip
    print_table(header, table)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--replications", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1000)
    given = read_options(parser, steps=300)
    print_machine()
    time_fits(given.steps, first_only=given.smoke)
    if not given.smoke:
        print_optimum()
    if given.replications:
        cases = {"bekk": BEKK, "diagonal": DIAGONAL, "full": full_truth()}
        for structure, truth in cases.items():
            monte_carlo(structure, truth, given.replications, given.steps)


if __name__ == "__main__":
    main()
