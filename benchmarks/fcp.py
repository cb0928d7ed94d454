"""The published benchmark of GARCH(1,1) estimation, digit by digit.

Fiorentini, Calzolari and Panattoni (1996): the DM/GBP returns of Bollerslev and Ghysels, 1974
observations, a constant mean, normal innovations, and a presample variance and squared residual
of SSR(mu) / T. Printed are parameters and standard errors of all kinds beside the published ones,
with the log relative error, the number of digits that agree: minus log10 |ours - published| /
|published|. A published number of d digits can agree to d at most. The published mu is 1e-11 of
itself away from the optimum, which in arithmetic of 30 digits is the last column of the second
table.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from _timing import option_parser, print_table, read_options

from tsrnn.linear.garch import GARCH

DATA = Path(__file__).parents[1] / "../shared/data/finance/dem2gbp.csv.gz"
NAMES = ("mu", "omega", "alpha[1]", "beta[1]")
PARAMS = ("-0.006190408379994", "0.0107613978518", "0.153134061820", "0.805973670305")
OPTIMUM = (
    "-0.006190408379937541",
    "0.01076139785181782",
    "0.153134061820467",
    "0.8059736703053702",
)
LOGLIK = "-1106.607881041288"
ERRORS = {
    "hessian": (".00846212", ".00285271", ".0265228", ".0335527"),
    "opg": (".00843359", ".00132298", ".0139738", ".0165604"),
    "information": (".0083762856", ".00192880806", ".019401186", ".0218398722"),
    "bollerslev-wooldridge": (".008730924687", ".00312363751", ".027321934", ".030150886"),
    "robust": (".0091893540", ".006493186", ".053531703", ".07246145"),
}


def digits(text: str) -> int:
    """Significant digits of a published number."""
    return len(text.lstrip("-0.").replace(".", "").lstrip("0"))


def log_relative_error(ours: float, published: str) -> float:
    error = abs(ours - float(published)) / abs(float(published))
    return -np.log10(max(error, 10.0 ** -digits(published)))


def row(kind: str, name: str, ours: float, published: str) -> list[str]:
    return [kind, name, f"{ours:.14g}", published, f"{digits(published)}",
            f"{log_relative_error(ours, published):.1f}"]  # fmt: skip


def main() -> None:
    read_options(option_parser(__doc__))  # the smallest run is the whole
    if not DATA.exists():
        print(f"skipped: {DATA.name} is not there; the returns are not part of the package")
        return
    returns = pd.read_csv(DATA).iloc[:, 0].rename("DEM/GBP")
    model = GARCH(initial_variance="fcp").fit(returns)
    params = model.params_.iloc[0]
    rows = [row("parameter", n, params[n], p) for n, p in zip(NAMES, PARAMS, strict=True)]
    rows.append(row("log-likelihood", "", model.loglik_.iloc[0], LOGLIK))
    for kind, published in ERRORS.items():
        errors = np.sqrt(np.diagonal(model.cov_params(cov_type=kind)))
        rows += [
            row(f"std err, {kind}", *which) for which in zip(NAMES, errors, published, strict=True)
        ]
    print_table(["", "name", "tsrnn", "published", "digits", "agree"], rows)
    print()
    exact = [row("parameter", n, params[n], p) for n, p in zip(NAMES, OPTIMUM, strict=True)]
    print_table(["", "name", "tsrnn", "optimum", "digits", "agree"], exact)
    slope = np.abs(model.estimates_.gradient).max()
    print(f"largest derivative of the log-likelihood {slope:.1e}, "
          f"{model.estimates_.iterations[0]} iterations")  # fmt: skip


if __name__ == "__main__":
    main()
