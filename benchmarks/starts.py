"""Fits of the classical families beside the best of many random starts.

A file ``_starts_<family>.py`` beside this one has a family: ``cases(n_series, n_starts, only)``
yields the name of a case that the regular expression ``only`` is found in, the log-likelihoods of
the package's fits, and the best log-likelihoods of ``n_starts`` random starts each, of the same
likelihood. The table counts the fits that are lower
by more than 1e-3. Seconds are those of a series, its fit and all its starts.
"""

from __future__ import annotations

import time
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
from _timing import option_parser, print_machine, print_table, read_options

SMALLEST = r"^ARMA\(1,1\)|^VARMA\(0|^ETS\(A, N, N\)|^Theta\(2|^CES\(none|^garch\(1, 1\), n|^scalar"
SHORT = 1e-3  # difference of log-likelihoods that counts as another maximum
PREFIX = "_starts_"
FAMILIES = sorted(
    path.stem.removeprefix(PREFIX) for path in Path(__file__).parent.glob(f"{PREFIX}*.py")
)


def family_rows(family: str, n_series: int, n_starts: int, only: str) -> list[list[object]]:
    """Rows of the cases of a family."""
    rows: list[list[object]] = []
    begin = time.perf_counter()
    module = import_module(f"{PREFIX}{family}")
    for case, fits, best in module.cases(n_series, n_starts, only):
        fits, best = np.asarray(fits), np.asarray(best)
        if fits.shape != best.shape or fits.ndim != 1 or not np.isfinite(fits).all():
            raise ValueError(
                f"a case must have a finite log-likelihood a series, of fits and of starts; "
                f"{case} of {family} has {fits} and {best}"
            )
        # A series on which no random start ends has no optimum to fall short of.
        short = np.where(np.isfinite(best), best - fits, -np.inf)
        seconds = (time.perf_counter() - begin) / len(fits)
        rows.append([family, case, len(fits), int((short > SHORT).sum()),
                     f"{max(short.max(), 0.0):.3g}", f"{seconds:.2f}"])  # fmt: skip
        begin = time.perf_counter()
    return rows


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=FAMILIES)
    parser.add_argument("--series", type=int, default=50, help="of each case")
    parser.add_argument("--starts", type=int, default=30, help="random ones of each series")
    parser.add_argument("--cases", default="", help="regular expression found in their names")
    options = read_options(parser, series=1, starts=1, cases=SMALLEST)
    warnings.simplefilter("ignore")  # of starts, most of which are far from any optimum
    print_machine()
    rows = []
    for family in options.families:
        rows += family_rows(family, options.series, options.starts, options.cases)
    header = ["family", "case", "series", "fits lower by 1e-3", "largest shortfall",
              "seconds a series"]  # fmt: skip
    print_table(header, rows)


if __name__ == "__main__":
    main()
