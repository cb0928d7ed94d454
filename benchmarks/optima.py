"""Optima beside those of statsmodels and arch, and beside those of nested models.

For every model and data set: how many series end below the other package's optimum by more than
1e-3, how many of that package's end below ours, and how many below the optimum of a model that is
nested in theirs. The stocks of the Dow Jones index are read from a folder given by ``--data``.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from _timing import option_parser, print_machine, print_table, read_options
from arch import arch_model
from statsmodels.tsa.arima.model import ARIMA

from tsrnn.datasets import load_macrodata, load_wti
from tsrnn.linear import ARMA, GARCH, VECMGARCH

SHORT = 1e-3  # difference of log-likelihoods that counts as another maximum
NESTED = 1e-6  # a nested model may be higher by rounding
WINDOW = 1500


class Shortfalls(NamedTuple):
    """Log-likelihoods of the same series, by ours, another package and the nested models."""

    case: str
    ours: np.ndarray
    oracle: np.ndarray
    nested: np.ndarray
    seconds: float

    def row(self) -> list[str]:
        """Counts of the table."""
        below, above = self.oracle - self.ours, self.ours - self.oracle
        inner = self.nested - self.ours
        largest = [f"{max(np.nanmax(part), 0):.3g}" for part in (below, above, inner)]
        return [
            self.case, str(len(self.ours)),
            str((below > SHORT).sum()), largest[0],
            str((above > SHORT).sum()), largest[1],
            str((inner > NESTED).sum()), largest[2],
            f"{1e3 * self.seconds / len(self.ours):.0f}",
        ]  # fmt: skip


def dow(folder: Path) -> pd.DataFrame:
    """Two windows of 30 stocks, in percent."""
    returns = 100 * pd.read_csv(folder / "dji30ret.csv.gz", index_col=0)
    ends = {"first": returns.iloc[:WINDOW], "last": returns.iloc[-WINDOW:]}
    frames = [part.reset_index(drop=True).add_suffix(f" {name}") for name, part in ends.items()]
    return pd.concat(frames, axis=1)


def garch(case: str, data: pd.DataFrame, vol: str, order: tuple[int, int]) -> Shortfalls:
    """GARCH models beside arch."""
    p, q = order
    start = time.perf_counter()
    ours = GARCH(order=order, vol=vol).fit(data).loglik_.to_numpy()
    seconds = time.perf_counter() - start
    smaller = {(max(p - 1, 1), q, vol), (p, max(q - 1, 0), vol)} - {(p, q, vol)}
    smaller |= {(p, q, "garch")} if vol == "gjr" else set()
    nested = [GARCH(order=(a, b), vol=kind).fit(data).loglik_ for a, b, kind in smaller]
    oracle = [
        arch_model(
            data[name], vol="EGARCH" if vol == "egarch" else "GARCH",
            p=p, o=0 if vol == "garch" else p, q=q, rescale=False,
        ).fit(disp="off", show_warning=False, tol=1e-10).loglikelihood
        for name in data
    ]  # fmt: skip
    name = f"{vol.upper()}{order}, {case}"
    return Shortfalls(name, ours, np.array(oracle), np.max(nested, axis=0), seconds)


def arma(case: str, data: pd.DataFrame, order: tuple[int, int]) -> Shortfalls:
    """ARMA models beside statsmodels."""
    p, q = order
    start = time.perf_counter()
    ours = ARMA(order=order).fit(data).loglik_.to_numpy()
    seconds = time.perf_counter() - start
    smaller = {(max(p - 1, 0), q), (p, max(q - 1, 0))} - {order}
    nested = [ARMA(order=inner).fit(data).loglik_ for inner in smaller]
    oracle = []
    for name in data:
        model = ARIMA(data[name].to_numpy(), order=(p, 0, q))
        params = model.fit().params
        model.ssm.tolerance = 0  # else variances count as settled early, and digits are lost
        oracle.append(model.loglike(params))
    name = f"ARMA{order}, {case}"
    return Shortfalls(name, ours, np.array(oracle), np.max(nested, axis=0), seconds)


def vech(case: str, frames: list[pd.DataFrame], kind: str, inner: tuple[str, ...]) -> Shortfalls:
    """Structures of a vech model beside those nested in it; there is no other package."""

    def logliks(structure: str) -> np.ndarray:
        fits = [VECMGARCH(structure=structure).fit(frame) for frame in frames]
        return np.array([fit.loglik_.iloc[0] for fit in fits])

    start = time.perf_counter()
    ours = logliks(kind)
    seconds = time.perf_counter() - start
    nested = np.max([logliks(structure) for structure in inner], axis=0)
    return Shortfalls(f"{kind} vech, {case}", ours, np.full(len(ours), np.nan), nested, seconds)


def arma_draws(phi: tuple[float, ...], theta: tuple[float, ...], n: int, T: int) -> pd.DataFrame:
    """Simulated series of an ARMA, a column each."""
    draws = np.random.default_rng(0).standard_normal((T + 200, n))
    y = np.zeros_like(draws)
    for t in range(T + 200):
        y[t] = draws[t]
        y[t] += sum((f * y[t - i] for i, f in enumerate(phi, 1) if t >= i), start=np.zeros(n))
        y[t] += sum((f * draws[t - j] for j, f in enumerate(theta, 1) if t >= j), start=np.zeros(n))
    return pd.DataFrame(y[200:])


def cases(folder: Path | None, first_only: bool) -> list[Shortfalls]:
    """All comparisons."""
    done = []

    def note(made: Shortfalls) -> None:
        done.append(made)
        print(" ".join(made.row()), file=sys.stderr)

    if folder is not None:
        stocks = dow(folder)
        for vol, order in (("garch", (1, 1)), ("garch", (1, 2)), ("garch", (2, 1)),
                           ("garch", (2, 2)), ("gjr", (1, 1)), ("gjr", (2, 1)), ("gjr", (2, 2)),
                           ("egarch", (1, 1)), ("egarch", (2, 2))):  # fmt: skip
            note(garch("Dow stocks", stocks, vol, order))
    oil = 100 * np.log(load_wti().iloc[:, 0].dropna()).diff().dropna().iloc[3000:4000]
    oil, bills = oil.reset_index(drop=True), load_macrodata()["tbilrate"].diff().dropna()
    for order in ((1, 1), (1, 2), (2, 2)):
        note(garch("WTI", oil.to_frame(), "garch", order))
        if first_only:
            return done
    for vol in ("garch", "gjr", "egarch"):
        note(garch("tbilrate", bills.to_frame(), vol, (1, 1)))
    draws = arma_draws((1.2, -0.5), (0.4,), 80, 300)
    for order in ((1, 1), (2, 1), (2, 2), (3, 3)):
        note(arma("ARMA(2, 1) draws", draws, order))
    noise = [
        pd.DataFrame(np.random.default_rng(seed).standard_normal((400, 2)), columns=["a", "b"])
        for seed in range(6)
    ]
    note(vech("independent", noise, "diagonal", ("scalar",)))
    note(vech("independent", noise, "bekk", ("scalar",)))
    note(vech("independent", noise, "full", ("bekk", "diagonal", "scalar")))
    return done


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--data", type=Path, help="folder that has dji30ret.csv.gz")
    options = read_options(parser)
    print_machine()
    header = ["model, data", "series", "below theirs", "most", "above", "most", "below nested",
              "most", "ms a series"]  # fmt: skip
    print_table(header, [made.row() for made in cases(options.data, first_only=options.smoke)])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
