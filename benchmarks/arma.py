"""ARMA by the thousand beside statsmodels: time a series, likelihoods compared, memory.

Ours is `ARMA(...).fit` of a frame, with a column a series (wide) or a row a time and series (long);
statsmodels gets an array at a time. On white noise an ARMA(1, 1) is not identified: roots cancel,
and the likelihood has several maxima.

With ``--agreement``: whether any optimum is below that of statsmodels, on 500 simulated and all
bundled series.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from _m4 import long_frame
from _timing import median_ms, option_parser, peak_bytes, print_machine, print_table, read_options
from statsmodels.tsa.arima.model import ARIMA
from statsmodels.tsa.statespace.tools import constrain_stationary_univariate
from threadpoolctl import threadpool_limits

from tsrnn import datasets
from tsrnn.data import read_panel
from tsrnn.linear import ARMA

T = 300
FEWEST = 20  # rows of a bundled series
LOWER = -1e-6  # a log-likelihood below statsmodels' by more is a failure
MODELS = {(1, 0, 1): [0.0, 0.7, 0.3, 1.0], (2, 0, 1): [0.0, 1.2, -0.5, 0.4, 1.0]}
SINGLES = {**MODELS, (2, 1, 1): [1.2, -0.5, 0.4, 1.0]}
DOWNLOADED = "load_ett"
REAL_ORDERS = ((1, 1, 1), (2, 1, 1), (0, 1, 2), (2, 1, 2))
Case = tuple[str, tuple[int, int, int], np.ndarray]


def series(order: tuple[int, int, int], params: list[float], n: int, seed: int) -> np.ndarray:
    """Simulated series (n, T)."""
    model = ARMA(order=order, trend="n" if order[1] else "c")
    filtered = model.filter(pd.DataFrame(np.random.default_rng(seed).normal(size=(20, n))), params)
    return filtered.simulate(T, random_state=seed).to_numpy().T


def statsmodels_loglik(y: np.ndarray, order: tuple[int, int, int]) -> float:
    """Log-likelihood of statsmodels' optimum; of the differences where d > 0."""
    y, p, q = np.diff(y, order[1]), order[0], order[2]
    model = ARIMA(y, order=(p, 0, q), trend="n" if order[1] else "c")
    params = model.fit().params
    model.ssm.tolerance = 0  # else variances count as settled early, and digits are lost
    return float(model.loglike(params))


def gap_to_statsmodels(y: np.ndarray, loglik: np.ndarray, order: tuple[int, int, int]) -> float:
    """Lowest difference of the first log-likelihoods to those of statsmodels."""
    theirs = [statsmodels_loglik(row, order) for row in y[: len(loglik)]]
    return float((loglik - theirs).min())


def batches(many: int, sample: int) -> None:
    """Fits of many series at once, from both shapes of frames, and what reading them takes."""
    rows = []
    noise = np.random.default_rng(3).normal(size=(many, T))
    simulated = {order: series(order, params, many, 0) for order, params in MODELS.items()}
    for name, order, y in (
        *((str(order), order, y) for order, y in simulated.items()),
        ("(1, 0, 1), white noise", (1, 0, 1), noise),
    ):
        with threadpool_limits(1):  # faster for statsmodels than more
            theirs = [median_ms(lambda row=row, order=order: ARIMA(row, order=order).fit(), 1, 0)
                      for row in y[:sample]]  # fmt: skip
        theirs_ms = float(np.median(theirs))
        for shape, frame in (("wide", pd.DataFrame(y.T)), ("long", long_frame(dict(enumerate(y))))):
            model = ARMA(order=order)
            ours = median_ms(lambda model=model, frame=frame: model.fit(frame), 3) / many
            reading = median_ms(lambda frame=frame: read_panel(frame), 3) / many
            loglik = model.loglik_.to_numpy()[:sample]
            gap = gap_to_statsmodels(y, loglik, order)
            rows.append((name, shape, f"{1e3 * ours:.1f}", f"{1e3 * (ours - reading):.1f}",
                         f"{1e3 * theirs_ms:.0f}", f"{theirs_ms / ours:.0f}",
                         f"{gap:.1e}"))  # fmt: skip
    print(f"\n{many:,} series of length {T}, microseconds a series; statsmodels on {sample}")
    print_table(("order", "frame", "ARMA", "without reading", "statsmodels", "times faster",
                 "lowest difference"), rows)  # fmt: skip


def afterwards(many: int) -> None:
    """Calls after a fit of many series: forecasts, one more row, standard errors."""
    y = series((1, 0, 1), MODELS[1, 0, 1], many, 0)
    frame, new = pd.DataFrame(y.T[:-1]), pd.DataFrame(y.T[-1:], index=[T - 1])
    model = ARMA(order=(1, 1))
    calls: dict[str, Callable[[], object]] = {
        "fit": lambda: model.fit(frame),
        "predict(12), the first": lambda: model.predict(12),
        "predict(12), the second": lambda: model.predict(12),
        "update with a row": lambda: model.update(new),
        "bse_": lambda: model.bse_,
    }
    rounds = [[median_ms(call, 1, 0) for call in calls.values()] for _ in range(5)]
    times = 1e3 * np.median(rounds, axis=0) / many
    print(f"\nafter a fit of {many:,} series in a wide frame, microseconds a series")
    rows = [(name, f"{time:.1f}") for name, time in zip(calls, times, strict=True)]
    print_table(("call", "time"), rows)


def singles() -> None:
    rows = []
    for order, params in SINGLES.items():
        y = series(order, params, 1, 1)
        frame = pd.Series(y[0])
        with threadpool_limits(1):
            theirs = median_ms(lambda y=y, order=order: ARIMA(y[0], order=order).fit(), 5)
        model = ARMA(order=order)
        ours = median_ms(lambda model=model, frame=frame: model.fit(frame), 9)
        rows.append((order, f"{ours:.1f}", f"{theirs:.1f}"))
    print(f"\none series of length {T}, milliseconds")
    print_table(("order", "ARMA", "statsmodels"), rows)


def largest_batch(n: int) -> None:
    """Seconds and memory of fits and forecasts."""
    y = series((1, 0, 1), MODELS[1, 0, 1], n, 2)
    index = pd.date_range("2000-01-01", periods=T, freq="D")
    frame = pd.DataFrame(y.T, index=index, columns=[f"s{i}" for i in range(n)])
    del y

    def run() -> pd.DataFrame:
        return ARMA(order=(1, 1)).fit(frame).predict(12)

    start = time.perf_counter()
    peak = peak_bytes(run)
    seconds = time.perf_counter() - start
    print(f"\n{n:,} series of length {T} fitted and forecast in {seconds:.1f} s; memory above the "
          f"frame at most {peak / 2**30:.2f} GiB")  # fmt: skip


def simulated_cases() -> Iterator[Case]:
    rng = np.random.default_rng(7)
    for i in range(500):
        p, q = (int(v) for v in rng.integers(0, 4, 2))
        params = np.concatenate([[5.0], drawn_lags(p, rng), -drawn_lags(q, rng), [1.0]])
        model = ARMA(order=(p, 0, q))
        y = model.simulate(int(rng.integers(50, 301)), params, random_state=rng)
        yield f"simulated {i}", (p, 0, q), y.to_numpy().T


def drawn_lags(lags: int, rng: np.random.Generator) -> np.ndarray:
    """Coefficients of an AR whose partial autocorrelations are uniform in (-0.95, 0.95)."""
    partial = rng.uniform(-0.95, 0.95, lags)
    if lags == 0:
        return partial
    return constrain_stationary_univariate(partial / np.sqrt(1 - partial**2))


def bundled_cases() -> Iterator[Case]:
    loaders = [name for name in datasets.__all__ if name.startswith("load_") and name != DOWNLOADED]
    for name in loaders:
        for column, values in getattr(datasets, name)().items():
            y = values.dropna().to_numpy(dtype=float)[None]
            if y.shape[1] >= FEWEST:
                yield from ((f"{name} {column}", order, y) for order in REAL_ORDERS)


def agreement(cases: Iterator[Case]) -> None:
    lower, gaps = [], []
    for name, order, y in cases:
        model = ARMA(order=order, trend="n" if order[1] else "c").fit(pd.Series(y[0]))
        gap = gap_to_statsmodels(y, model.loglik_.to_numpy(), order)
        gaps.append(gap)
        if gap < LOWER:
            lower.append((name, order, y.shape[1], f"{gap:.2e}"))
    higher = sum(gap > -100 * LOWER for gap in gaps)
    print(f"\n{len(gaps)} optima: {len(lower)} lower than statsmodels' by 1e-6, "
          f"{higher} higher by 1e-4")  # fmt: skip
    if lower:
        print_table(("series", "order", "rows", "difference"), lower)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--series", type=int, default=10_000, help="of a batch")
    parser.add_argument("--sample", type=int, default=20, help="series that statsmodels fits")
    parser.add_argument("--most", type=int, default=100_000, help="series of the largest batch")
    parser.add_argument("--agreement", action="store_true", help="only compare optima")
    options = read_options(parser, series=50, sample=2, most=100)
    warnings.simplefilter("ignore")
    print_machine()
    if options.agreement:
        agreement(simulated_cases())
        agreement(bundled_cases())
    else:
        batches(options.series, options.sample)
        afterwards(options.series)
        singles()
        largest_batch(options.most)


if __name__ == "__main__":
    main()
