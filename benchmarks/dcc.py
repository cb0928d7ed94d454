"""DCC: time of a fit, and by ``--replications 200`` recovery of parameters and coverage.

A fit is that of the class on a frame: five GARCH(1, 1) with constant means, then the
correlations, then standard errors of all steps. The second part simulates series, fits all of
them as one panel and says how often the 95% intervals hold the true value.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from _timing import median_ms, option_parser, print_machine, print_table, read_options

from tsrnn.linear.dcc import CCC, DCC

A, B, OMEGA, ALPHA, BETA, MU = 0.05, 0.90, 0.10, 0.10, 0.80, 0.05


def template(n: int, corrected: bool) -> tuple[DCC, pd.Series]:
    """A fitted model to simulate from, and the true parameters."""
    names = [f"y{i + 1}" for i in range(n)]
    noise = np.random.default_rng(0).standard_normal((300, n))
    model = DCC(corrected=corrected)
    some = pd.DataFrame(noise, columns=names)
    values = {"intercept": MU, "omega": OMEGA, "alpha[1]": ALPHA, "beta[1]": BETA}
    truth = {f"{key}.{name}": value for name in names for key, value in values.items()}
    for i in range(n):
        for j in range(i + 1, n):
            truth[f"rho.{names[i]}.{names[j]}"] = 0.5 ** (j - i)
    truth |= {"a[1]": A, "b[1]": B}
    return model.filter(some, truth), pd.Series(truth)


def panel(model: DCC, rows: int, replications: int) -> pd.DataFrame:
    """Simulated series as a long frame."""
    parts = []
    for i in range(replications):
        drawn = model.simulate(rows, random_state=i)
        parts.append(drawn.assign(unique_id=i, ds=np.arange(rows)))
    return pd.concat(parts, ignore_index=True)


def speed(n: int, rows: int) -> None:
    model, _ = template(n, False)
    data = model.simulate(rows, random_state=1)
    print(f"{n} variables, {rows} rows, fit with standard errors\n")
    table = []
    for name, one in (("CCC", CCC()), ("DCC", DCC()), ("cDCC", DCC(corrected=True))):
        start = time.perf_counter()
        one.fit(data)
        first = 1e3 * (time.perf_counter() - start)
        ms = median_ms(lambda one=one: one.fit(data), 3, warm_up=0)
        loglik, converged = one.loglik_.iloc[0], bool(one.converged_.iloc[0])
        table.append((name, f"{ms:.1f}", f"{first:.1f}", f"{loglik:.4f}", converged))
    print_table(("model", "ms", "first fit, ms", "loglik", "converged"), table)


def coverage(n: int, rows: int, replications: int, corrected: bool) -> None:
    model, truth = template(n, corrected)
    data = panel(model, rows, replications)
    targets = [c for c in data if c not in ("unique_id", "ds")]
    start = time.perf_counter()
    fitted = DCC(corrected=corrected, target=targets).fit(data)
    seconds = time.perf_counter() - start
    print(f"\n{'cDCC' if corrected else 'DCC'}: {replications} series of {n} x {rows}, fit in "
          f"{seconds:.1f} s, {int(fitted.converged_.sum())} converged")  # fmt: skip
    found = rows_of(fitted, truth)
    cells = [[f"{x:.3f}" if isinstance(x, float) else x for x in row.values()] for row in found]
    print_table(list(found[0]), cells)


def rows_of(fitted: DCC, truth: pd.Series) -> list[dict[str, object]]:
    """Mean and spread of estimates, mean standard error, coverage, by kind of parameter."""
    made = []
    kinds = pd.Series([name.split(".")[0] for name in truth.index], index=truth.index)
    for kind in kinds.unique():
        names = kinds.index[kinds == kind]
        params, errors = fitted.params_[names], fitted.bse_[names]
        own = truth[names]
        made.append({
            "parameter": kind,
            "bias": float((params - own).mean().mean()),
            "std": float(params.std().mean()),
            "std err": float(errors.median().mean()),
            **{f"cover {c}": cover(fitted, own, c) for c in ("robust", "hessian")},
            "no error": int(errors.isna().sum().sum()),
        })  # fmt: skip
    return made


def cover(fitted: DCC, truth: pd.Series, cov_type: str) -> float:
    """Share of 95% intervals that hold the true value, of those that exist."""
    ends = fitted.conf_int(cov_type=cov_type)
    own = ends.loc[ends.index.get_level_values("parameter").isin(truth.index)].dropna()
    true = truth[own.index.get_level_values("parameter")].to_numpy()
    return float(((own["lower"] <= true) & (true <= own["upper"])).mean())


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--replications", type=int, default=0)
    parser.add_argument("--variables", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1000)
    given = read_options(parser, rows=200, variables=2)
    print_machine()
    if not given.replications:
        speed(given.variables, given.rows)
        return
    for corrected in (False, True):
        coverage(given.variables, given.rows, given.replications, corrected)


if __name__ == "__main__":
    main()
