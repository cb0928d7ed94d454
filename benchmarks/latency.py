"""A row at a time: milliseconds of `update` with one row and `predict(12, level=95)` after it.

Processor time of one thread, after a few rows that are not counted: of a wide frame and of a long
one, both of one monthly series of 400 rows; of baselines also the part of it in which the model of
statsmodels or arch is built, run over the rows and asked. Beside them statsmodels' ARIMA, which
appends the row and forecasts, and arch, which filters all rows again at the parameters estimated;
their forecasts are compared with ours. Then forecasts of 3 series among 10,000 by `ids`, compared
with those of all. Last a first forecast by the pretrained network: fit and predict of short series
one by one, and of all of them as one panel.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import torch
from _timing import option_parser, print_machine, print_table, read_options
from arch import arch_model
from statsmodels.tsa.arima.model import ARIMA
from threadpoolctl import threadpool_limits

import tsrnn
from tsrnn import baselines
from tsrnn.prior import SeriesPrior

H, ROWS, WARM_UP = 12, 400, 8
NETWORK = {"horizon": H, "max_epochs": 1, "refit": False, "random_state": 0}
ONE, TWO = {"horizon": H}, {"horizon": H, "target": ["y", "z"]}
SEASONAL = {"horizon": H, "season_length": 12}
Make = Callable[[], Any]

FORECASTERS: dict[str, Make] = {
    "ParaRNNForecaster": lambda: tsrnn.ParaRNNForecaster(**NETWORK),
    "ParaRNN, joint": lambda: tsrnn.ParaRNNForecaster(**(NETWORK | TWO), multivariate="joint"),
    "ParaRNN, each target": lambda: tsrnn.ParaRNNForecaster(**(NETWORK | TWO)),
    "ParaRNN, 3 networks": lambda: tsrnn.ParaRNNForecaster(**NETWORK, n_estimators=3),
    "ParaRNN, student-t": lambda: tsrnn.ParaRNNForecaster(**NETWORK, intervals="student-t"),
    "ParaRNN, Box-Cox": lambda: tsrnn.ParaRNNForecaster(**NETWORK, use_boxcox=0.5),
    "ParaRNN, calendar": lambda: tsrnn.ParaRNNForecaster(**NETWORK, calendar=True),
    "ParaRNN, gru": lambda: tsrnn.ParaRNNForecaster(**NETWORK, cell="gru"),
    "ParaRNN, lstm": lambda: tsrnn.ParaRNNForecaster(**NETWORK, cell="lstm"),
    "ParaRNN, attention": lambda: tsrnn.ParaRNNForecaster(**NETWORK, cell="attention"),
    "LEMForecaster": lambda: tsrnn.LEMForecaster(**NETWORK),
    "LRUForecaster": lambda: tsrnn.LRUForecaster(**NETWORK),
    "NewtonForecaster": lambda: tsrnn.NewtonForecaster(**NETWORK),
    "Newton, lstm": lambda: tsrnn.NewtonForecaster(**NETWORK, cell="newton-lstm"),
    "ARMA": lambda: tsrnn.ARMA(order=(1, 1), **ONE),
    "GARCH": lambda: tsrnn.GARCH(**ONE, random_state=0),
    "EGARCH": lambda: tsrnn.GARCH(vol="egarch", **ONE, random_state=0),
    "VARMA": lambda: tsrnn.VARMA(**TWO),
    "CCC": lambda: tsrnn.CCC(**TWO),
    "DCC": lambda: tsrnn.DCC(**TWO),
    "VECMGARCH": lambda: tsrnn.VECMGARCH(
        structure="scalar", targeting=True, n_starts=1, random_state=0, **TWO
    ),
    "Combination": lambda: tsrnn.Combination(
        {"ar": tsrnn.ARMA(order=(1, 0)), "walk": baselines.Drift()}, **ONE
    ),
    "Naive": lambda: baselines.Naive(**ONE),
    "SeasonalNaive": lambda: baselines.SeasonalNaive(**SEASONAL),
    "Drift": lambda: baselines.Drift(**ONE),
    "Mean": lambda: baselines.Mean(**ONE),
    "Naive2": lambda: baselines.Naive2(**SEASONAL),
    "SARIMAX": lambda: baselines.SARIMAX(order=(1, 0, 1), trend="c", **ONE),
    "StatsmodelsETS": lambda: baselines.StatsmodelsETS(trend="add", **ONE),
    "StatsmodelsTheta": lambda: baselines.StatsmodelsTheta(**SEASONAL),
    "StatsmodelsAutoARIMA": lambda: baselines.StatsmodelsAutoARIMA(
        season_length=1, max_p=1, max_q=1, d=0, **ONE
    ),
    "UnobservedComponents": lambda: baselines.UnobservedComponents(**ONE),
    "ArchModel": lambda: baselines.ArchModel(**ONE, random_state=0),
    "VAR": lambda: baselines.VAR(lags=1, **TWO),
    "VARMAX": lambda: baselines.VARMAX(max_iter=20, **TWO),
    "VECM": lambda: baselines.VECM(**TWO),
}


def walks(rows: int, columns: int, seed: int) -> np.ndarray:
    """Autoregressions (rows, columns) around 50, of one step and of a season."""
    noise = np.random.default_rng(seed).normal(size=(rows, columns))
    values = np.zeros_like(noise)
    for t in range(12, rows):
        values[t] = 0.4 * values[t - 1] + 0.4 * values[t - 12] + noise[t]
    return 50 + values


def frames(rows: int, n_targets: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One series of one or two targets as a wide frame and as a long one."""
    months = pd.date_range("1980-01-01", periods=rows, freq="MS", name="ds")
    wide = pd.DataFrame(walks(rows, 2, 0)[:, :n_targets], months, columns=["y", "z"][:n_targets])
    return wide, wide.reset_index().assign(unique_id="a")


def row_by_row(take_in: Callable[[int], object], new: int) -> list[float]:
    """Milliseconds of each of the new rows but the first few."""
    times = []
    for i in range(ROWS, ROWS + new):
        start = time.process_time()
        take_in(i)
        times.append(1e3 * (time.process_time() - start))
    return times[WARM_UP:]


def shown(times: list[float]) -> tuple[str, str]:
    """Median and 99th percentile."""
    return f"{np.median(times):.2f}", f"{np.quantile(times, 0.99):.2f}"


def ours(name: str, new: int) -> tuple[list[str], Any]:
    """Cells of a row of the table, and the last forecasts of the wide frame."""
    model, cells, last = FORECASTERS[name](), [name], None
    n_targets = len(model.target or ["y"])
    for frame in frames(ROWS + new, n_targets):
        model = FORECASTERS[name]().fit(frame[:ROWS])
        parts = [frame[i : i + 1] for i in range(ROWS + new)]  # a service has its row already

        def take_in(i: int, model: Any = model, parts: list[pd.DataFrame] = parts) -> None:
            model.update(parts[i]).predict(H, level=95)

        with library_times(model) as inside:
            cells += shown(row_by_row(take_in, new))
        last = model.predict(H) if last is None else last
    return [*cells, f"{np.median(inside[WARM_UP:]):.2f}" if inside else ""], last


@contextmanager
def library_times(model: Any) -> Iterator[list[float]]:
    """Milliseconds of each forecast that a baseline has of its library; none of other models."""
    unit_model, inside = type(getattr(model.fitted_, "model", None)), list[float]()
    ahead = getattr(unit_model, "ahead", None)
    if ahead is None:
        yield inside
        return

    def timed(*args: Any) -> Any:
        start = time.process_time()
        answer = ahead(*args)
        inside.append(1e3 * (time.process_time() - start))
        return answer

    unit_model.ahead = timed  # type: ignore[attr-defined]
    try:
        yield inside
    finally:
        unit_model.ahead = ahead  # type: ignore[attr-defined]


def statsmodels_arima(new: int) -> tuple[list[str], np.ndarray]:
    """The same of ARIMA: append a row, forecast, bounds of 95 percent."""
    y = frames(ROWS + new, 1)[0]["y"]
    fitted = [ARIMA(y[:ROWS], order=(1, 0, 1), trend="c").fit()]

    def take_in(i: int) -> None:
        fitted[0] = fitted[0].append(y[i : i + 1])
        fitted[0].get_forecast(H).summary_frame(alpha=0.05)

    times = row_by_row(take_in, new)
    return ["statsmodels ARIMA", *shown(times), "", "", ""], fitted[0].forecast(H).to_numpy()


def arch_filter(new: int) -> tuple[list[str], np.ndarray]:
    """The same of arch, which has no update: all rows again at fixed parameters, no bounds."""
    y = frames(ROWS + new, 1)[0]["y"]
    params = arch_model(y[:ROWS], rescale=False).fit(disp="off").params
    ahead = []

    def take_in(i: int) -> None:
        ahead[:] = [arch_model(y[: i + 1], rescale=False).fix(params).forecast(horizon=H)]

    times = row_by_row(take_in, new)
    return ["arch", *shown(times), "", "", ""], ahead[0].mean.to_numpy()[-1]


def one_row(names: list[str], new: int) -> None:
    """Table of all forecasters; those that have a peer agree with it."""
    rows, forecasts = [], {}
    for name in names:
        cells, forecasts[name] = ours(name, new)
        rows.append(cells)
    peers = {"ARMA": (statsmodels_arima, 0.02), "GARCH": (arch_filter, 0.02)}
    for name, (peer, tolerance) in peers.items():
        if name in forecasts:
            cells, theirs = peer(new)
            # both at their own optimum, which optimisers meet to some digits
            np.testing.assert_allclose(forecasts[name]["y"], theirs, rtol=tolerance)
            rows.append(cells)
    print("\nupdate with one row and predict(12, level=95), ms of one thread")
    header = "forecaster", "wide, median", "p99", "long, median", "p99", "library, median"
    print_table(header, rows)


def some_of_many(n_series: int, repeats: int) -> None:
    """Table of forecasts of all series and of 3."""
    rows, length = [], 60
    names = np.array([f"series {i:05d}" for i in range(n_series)])
    months = pd.date_range("2015-01-01", periods=length, freq="MS")
    columns = {"unique_id": np.repeat(names, length), "ds": np.tile(months, n_series)}
    panel = pd.DataFrame(columns | {"y": walks(length, n_series, 1).T.ravel()})
    asked = names[[n_series // 2, 1, n_series - 1]].tolist()
    for name in ("ParaRNNForecaster", "ARMA", "Naive", "Combination"):
        model, times = FORECASTERS[name]().fit(panel), []
        start = time.process_time()
        every = model.predict(H, level=95)
        whole = 1e3 * (time.process_time() - start)
        for _ in range(WARM_UP + repeats):
            start = time.process_time()
            some = model.predict(H, level=95, ids=asked)
            times.append(1e3 * (time.process_time() - start))
        among = pd.concat([every[every["unique_id"] == label] for label in asked])
        pd.testing.assert_frame_equal(some, among.reset_index(drop=True), rtol=1e-9)
        rows.append((name, f"{whole:.0f}", *shown(times[WARM_UP:])))
    print(f"\npredict(12, level=95) of {n_series:,} series and, by ids, of 3 of them, ms")
    print_table(("forecaster", "all", "3, median", "p99"), rows)


def first_forecasts(n_series: int) -> None:
    """Table of fit and forecast by the pretrained network, series by series and as a panel."""
    length, n_single = 100, min(n_series, 100)
    values = SeriesPrior(["ets", "sarima", "structural"]).sample(n_series, length, 12, 0)
    times = pd.date_range("2015-01-01", periods=length, freq="MS")
    single = [pd.DataFrame({"ds": times, "y": y}) for y in values[: WARM_UP + n_single]]
    panel = pd.concat(
        [pd.DataFrame({"unique_id": i, "ds": times, "y": y}) for i, y in enumerate(values)]
    )

    def fit_and_predict(df: pd.DataFrame) -> tuple[float, float, float]:
        start = time.process_time()
        model = tsrnn.ParaRNNForecaster(H).fit(df)
        fitted = time.process_time()
        ahead = model.predict(H)
        assert len(ahead) == len(df) // length * H
        end = time.process_time()
        return 1e3 * (fitted - start), 1e3 * (end - fitted), 1e3 * (end - start)

    each = np.array([fit_and_predict(df) for df in single])[WARM_UP:]
    rows = [
        (f"each of {len(each)}, median", *(f"{t:.1f}" for t in np.median(each, axis=0))),
        ("the same, 90 percent", *(f"{t:.1f}" for t in np.quantile(each, 0.9, axis=0))),
        (f"{n_series:,} together", *(f"{t:,.0f}" for t in fit_and_predict(panel))),
    ]
    print(f"\nParaRNNForecaster({H}) of series of {length} months, ms")
    print_table(("series", "fit", "predict", "both"), rows)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("names", nargs="*", help="beginnings of names; all by default")
    parser.add_argument("--rows", type=int, default=200, help="rows to take in")
    parser.add_argument("--series", type=int, default=10_000)
    parser.add_argument("--short", type=int, default=1000, help="short series to fit")
    arguments = read_options(parser, names=["ARMA"], rows=WARM_UP + 2, series=20, short=20)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    chosen = [n for n in FORECASTERS if n.startswith(tuple(arguments.names) or "")]
    with threadpool_limits(1):
        print_machine()
        one_row(chosen, arguments.rows)
        some_of_many(arguments.series, arguments.rows)
        first_forecasts(arguments.short)


if __name__ == "__main__":
    main()
