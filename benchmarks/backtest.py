"""A backtest that refits at every origin: fits of all origins together against a loop over them.

One monthly series of 200 rows, 12 steps ahead from 20 origins, ParaRNNForecaster with the defaults,
which choose another input_size at most origins, so that the networks are of many shapes; with one
that is given; and without the linear path, where every network contributes. One of 600 rows, a step
ahead from 200 origins, ARMA(1, 1); its differences, GARCH(1, 1). In the loop every model is fitted
by itself, as scikit-learn fits clones. Forecasts and ends of intervals of both are compared in
units of the spread of the series. Seconds of the processor, one thread; models take turns.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import torch
from _timing import option_parser, print_machine, print_table, read_options
from sklearn.base import clone

from tsrnn import ARMA, GARCH, ParaRNNForecaster, backtest

ROUNDING = {"ParaRNN": 2e-2, "ARMA": 1e-6, "GARCH": 1e-6}  # of hundreds of steps in float32


def series(rows: int) -> pd.Series:
    """A threshold-like autoregression with a season."""
    rng = np.random.default_rng(0)
    noise, y = rng.normal(size=rows), np.zeros(rows)
    for t in range(1, rows):
        y[t] = 2 * np.sin(1.5 * y[t - 1]) + 0.3 * noise[t - 1] + 0.7 * noise[t]
    months = pd.date_range("1970-01", periods=rows, freq="MS")
    return pd.Series(20 + y + 2 * np.sin(np.arange(rows) * np.pi / 6), months, name="y")


def timed(model: Any, y: pd.Series, *, together: bool, **given: Any) -> tuple[pd.DataFrame, float]:
    """Forecasts, and seconds of the processor."""
    start = time.process_time()
    if together:
        return backtest(model, y, **given), time.process_time() - start
    last, step = len(y) - given["h"], given["step_size"]
    ends = range(last - step * (given["n_windows"] - 1), last + 1, step)
    parts = [clone(model).fit(y[:end]).predict(given["h"], level=given["level"]) for end in ends]
    return pd.concat(parts), time.process_time() - start


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--classical", action="store_true", help="without networks")
    options = read_options(parser, classical=True)
    torch.set_num_threads(1)
    print_machine()
    short, long = series(200), series(600)
    months = {"h": 12, "n_windows": 20, "step_size": 4, "level": 80}
    steps = {"h": 1, "n_windows": 200, "step_size": 1, "level": 80}
    network = {"horizon": 12, "random_state": 0}
    cases: list[tuple[str, Any, pd.Series, dict[str, Any]]] = [
        ("ARMA(1, 1)", ARMA(order=(1, 1)), long, steps),
        ("GARCH(1, 1)", GARCH(random_state=0), long.diff().dropna(), steps),
        ("ParaRNN", ParaRNNForecaster(**network), short, months),
        ("input_size=24", ParaRNNForecaster(**network, input_size=24), short, months),
        ("linear_path=False", ParaRNNForecaster(**network, linear_path=False), short, months),
    ]
    rows = []
    for name, model, y, given in cases[: 2 if options.classical else None]:
        timed(model, y, together=True, **given | {"n_windows": 2})  # loads everything
        if options.smoke:
            given["n_windows"] = 3
        joined, of_joined = timed(model, y, together=True, **given)
        alone, of_alone = timed(model, y, together=False, **given)
        assert joined.attrs["backtest"]["failures"] == []
        columns = joined.columns[4:]
        differences = joined[columns].to_numpy() - alone.to_numpy()
        apart = float(np.abs(differences).max() / y.std())
        assert apart < ROUNDING[model.column_name], (name, apart)
        inactive = joined.attrs["backtest"]["inactive_networks"]
        active = given["n_windows"] - sum(count for count, _ in inactive.values())
        shown = active if model.column_name == "ParaRNN" else ""
        rows.append(
            [name, given["n_windows"], shown, f"{of_alone:.2f}",
             f"{of_joined:.2f}", f"{of_alone / of_joined:.1f}", f"{apart:.0e}"]
        )  # fmt: skip
    print_table(
        ["model", "origins", "networks active", "one by one, s", "together, s", "times", "apart"],
        rows,
    )


if __name__ == "__main__":
    main()
