"""Optima of volatility models beside those from random starts, of the same likelihood.

Windows of daily returns (those of the Dow Jones stocks, where a folder ``shared/data/finance``
stands beside the repository) and simulated series, 1000 rows each; 500 rows and two columns of
models of several series. Starts are drawn far wider than those of the package.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from tsrnn.datasets import load_sp500, load_wti
from tsrnn.linear._mean import Mean
from tsrnn.linear._optimise import maximise
from tsrnn.linear.dcc._fit import _search as search_correlations
from tsrnn.linear.dcc._fit import fit_correlations
from tsrnn.linear.dcc._specification import Order
from tsrnn.linear.garch._density import DENSITIES
from tsrnn.linear.garch._fit import Problem, _highest_of, fit_garch, highest_maxima, problems
from tsrnn.linear.garch._specification import Model, UnivariateMean, univariate_model
from tsrnn.linear.garch._start import MeanStart
from tsrnn.linear.garch._volatility import VOLATILITIES
from tsrnn.linear.vech._fit import _make_room, _root_of, highest_maximum
from tsrnn.linear.vech._likelihood import evaluation
from tsrnn.linear.vech._prepare import Prepared, prepare
from tsrnn.linear.vech._specification import Specification

FINANCE = Path(__file__).parents[1].parent / "shared/data/finance"
ROWS, SHORT = 1000, 500
CONSTANT, AR = UnivariateMean(True), UnivariateMean(True, (1,))
ARMA = UnivariateMean(True, (1,), 1)
# Volatility, density, mean, lags of shocks and of the variance.
UNIVARIATE = [
    ("garch", "normal", CONSTANT, 1, 1), ("garch", "t", CONSTANT, 1, 1),
    ("garch", "normal", ARMA, 1, 1), ("garch", "normal", CONSTANT, 2, 2),
    ("gjr", "normal", CONSTANT, 1, 1), ("gjr", "t", AR, 1, 1), ("gjr", "normal", CONSTANT, 2, 1),
    ("egarch", "normal", CONSTANT, 1, 1), ("egarch", "t", AR, 1, 1),
    ("egarch", "normal", CONSTANT, 2, 1),
    ("avgarch", "normal", CONSTANT, 1, 1), ("tgarch", "normal", CONSTANT, 1, 1),
    ("tgarch", "t", AR, 1, 1),
]  # fmt: skip
STRUCTURES = [("scalar", 2), ("diagonal", 2), ("bekk", 2), ("full", 2), ("bekk", 3)]


def cases(
    n_series: int, n_starts: int, only: str = ""
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name of each case, log-likelihoods of the fits, and the best of random starts."""
    y = np.stack([returns(i, ROWS, 1)[:, 0] for i in range(n_series)])
    for vol, density, mean, p, q in UNIVARIATE:
        name = f"{vol}({p}, {q}), {density}, {mean.kind} mean"
        if re.search(only, name) is None:
            continue
        model = Model(mean, VOLATILITIES[vol], DENSITIES[density], p, q)
        yield name, *univariate(model, y, n_starts)
    # Searches of several series cost a hundred times as much: fewer of them.
    pairs = [returns(i, SHORT, 2) for i in range(max(n_series // 10, 2))]
    for order in (Order(1, 1, False), Order(1, 1, True), Order(2, 2, False)):
        name = f"DCC({order.p}, {order.q})" + ", corrected" * order.corrected
        if re.search(only, name) is not None:
            yield name, *correlations(order, np.stack(pairs), n_starts)
    for kind, n in STRUCTURES:
        name = f"{kind} of {n}"
        if re.search(only, name) is None:
            continue
        data = [returns(i, SHORT, n) for i in range(len(pairs) if n == 2 else len(pairs) // 2)]
        yield name, *multivariate(kind, data, n_starts)


def returns(i: int, rows: int, n: int) -> np.ndarray:
    """Window (rows, n) number i of returns in percent: of two, one is real and one simulated."""
    rng = np.random.default_rng([i, rows, n])
    if i % 2 == 0:
        real = _real()
        columns = rng.choice(real.shape[1], n, replace=False)
        values = real.iloc[:, columns].dropna().to_numpy()
        first = rng.integers(len(values) - rows + 1)
        return values[first : first + rows]
    alpha, level = rng.uniform(0, 0.2, n), rng.uniform(0.5, 0.999, n)
    gamma, size = rng.uniform(0, 0.1, n), rng.choice([4.0, 8.0, 1e4])
    mixing, e, h = rng.normal(0, 0.5, (n, n)) + np.eye(n), np.zeros((rows + 200, n)), np.ones(n)
    for t in range(rows + 200):
        e[t] = np.sqrt(h * (size - 2) / size) * rng.standard_t(size, n)
        shock = (alpha + gamma * (e[t] < 0)) * e[t] ** 2
        h = 1 - level + shock + np.maximum(level - alpha - gamma / 2, 0) * h
    return e[200:] @ mixing


_kept: dict[str, pd.DataFrame] = {}


def _real() -> pd.DataFrame:
    """Daily returns in percent, a column a series."""
    if "real" not in _kept:
        path = FINANCE / "dji30ret.csv.gz"
        if path.exists():
            _kept["real"] = 100 * pd.read_csv(path, index_col=0)
        else:
            prices = [load_sp500().iloc[:, 4], load_sp500().iloc[:, 0], load_wti().iloc[:, 0]]
            logs = [np.log(price[price > 0]).reset_index(drop=True) for price in prices]
            _kept["real"] = 100 * pd.concat(logs, axis=1).diff().dropna()
    return _kept["real"]


def univariate(model: Model, y: np.ndarray, n_starts: int) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihoods of series (N, T) fitted by one model."""
    lengths, rngs = np.full(len(y), y.shape[1]), [np.random.default_rng(i) for i in range(len(y))]
    (problem,) = [p for p, _ in problems(model, y, lengths, "backcast", True) if p is not None]
    ours = highest_maxima(problem, model).value
    starts = np.stack([_univariate_start(problem, model, rngs) for _ in range(n_starts)])
    theirs = _highest_of(problem, model, problem.likelihood(model), starts).value
    shift = problem.sample.n_obs * np.log(problem.sample.scale)
    return ours - shift, theirs - shift


def _univariate_start(
    problem: Problem, model: Model, rngs: list[np.random.Generator]
) -> np.ndarray:
    """A random start (N, k) of each series, in standardised units."""
    mean: MeanStart = problem.mean
    n, vol, p, q = len(mean.params), model.vol, model.p, model.q
    params = np.empty((n, len(model.names)))
    size = model.density.mean_size(np.full((1, len(model.density.names)), 8.0)).value[0]
    expected = np.array(vol.expected) * (size if vol.root else 1.0)
    for row, rng in zip(params, rngs, strict=True):
        row[model.mean_part] = rng.normal(0, 0.1, len(model.mean.names))
        level = rng.uniform(-0.5 if vol.log else 0.1, 0.999)
        shocks = [rng.uniform(0, 0.5)]
        shocks += list(rng.uniform(-0.2 if vol.log else 0, 0.3, len(vol.coefficients) - 1))
        share = float(expected @ shocks)
        beta = level - share if vol.log else max(level - share, 0.0)
        parts = [level * rng.dirichlet(np.ones(p)) for level in shocks]
        row[model.shock_part] = np.concatenate(parts)
        row[model.beta] = beta * rng.dirichlet(np.ones(q))
        row[model.omega] = 0.0 if vol.log else max(1 - level, 0.01) * rng.uniform(0.3, 2)
        row[model.shape_part] = 1 / rng.uniform(0.01, 0.4)
    return params


def correlations(order: Order, y: np.ndarray, n_starts: int) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihoods that dynamic correlations add, of series (S, T, n)."""
    s, steps, n = y.shape
    rows = np.ascontiguousarray(y.swapaxes(1, 2)).reshape(s * n, steps)
    model, lengths = univariate_model("garch", 1, 1, True, False), np.full(s * n, steps)
    fit = fit_garch(model, rows, lengths, "backcast", True)
    mu, omega, alpha, beta = fit.estimates.params.T
    e, h = rows - mu[:, None], np.empty_like(rows)
    past, square = fit.presample, fit.presample
    for t in range(steps):
        h[:, t] = past = omega + alpha * square + beta * past
        square = e[:, t] ** 2
    z = (e / np.sqrt(h)).reshape(s, n, steps).swapaxes(1, 2).copy()
    observed, rng = np.ones((s, steps), dtype=bool), np.random.default_rng(0)
    ours = fit_correlations(order, z, observed).value
    tensors, best = (torch.from_numpy(z), torch.from_numpy(observed)), np.full(s, -np.inf)
    for _ in range(n_starts):
        a, b = rng.uniform(0.001, 0.3, s), rng.uniform(0, 1, s)
        start = np.hstack([
            a[:, None] * rng.dirichlet(np.ones(order.p), s),
            ((1 - a) * b * 0.999)[:, None] * rng.dirichlet(np.ones(order.q), s),
        ])  # fmt: skip
        best = np.fmax(best, search_correlations(order, *tensors, start, "").value)
    return ours, best


def multivariate(kind: str, data: list[np.ndarray], n_starts: int) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihoods of vech models of series (T, n)."""
    ours, theirs = [], []
    for i, y in enumerate(data):
        targets = tuple(f"y{j}" for j in range(y.shape[1]))
        spec = Specification(kind, 1, 1, False, Mean("constant"), targets, False, 48)
        prepared = prepare(spec, y)
        ours.append(highest_maximum(spec, prepared, {}, 0).lane.value[0])
        starts = _multivariate_starts(spec, prepared, np.random.default_rng(i), n_starts)
        evaluate = evaluation(spec.factors, prepared.sample, False)
        theirs.append(maximise(evaluate, starts, tol=1e-8, max_iter=200).value.max())
    return np.array(ours), np.array(theirs)


def _multivariate_starts(
    spec: Specification, data: Prepared, rng: np.random.Generator, count: int
) -> np.ndarray:
    """Random starts (count, k): signs, sizes and directions of A and G, and any rank of C C'."""
    n, (block,), rows = spec.n, set(spec.factors.theta), []
    draw: dict[str, Callable[[], np.ndarray]] = {
        "A": lambda: np.diag(rng.uniform(0.05, 0.5, n) * rng.choice([1, 1, -1], n)),
        "G": lambda: np.diag(rng.uniform(0.3, 0.99, n)),
    }
    step = {"scalar": n * n, "diagonal": n + 1}.get(spec.kind, 1)
    for _ in range(count):
        dynamic = rng.normal(0, 0.1, (2, block.size))
        for lag, letter in enumerate("AG"):
            matrix = draw[letter]() + rng.normal(0, 0.15, (n, n)) * (1 - np.eye(n))
            first = matrix.ravel()[::step]
            dynamic[lag, : len(first)] = first
        flat = dynamic.ravel()
        rest = _make_room(spec.factors, data.sample, flat)
        rotation = np.linalg.qr(rng.normal(size=(n, n)))[0]
        weights = rng.uniform(0, 1, n) * rng.choice([0, 1], n, p=[0.3, 0.7])
        root = np.linalg.cholesky(rest) @ rotation * np.sqrt(weights + 1e-4)
        rows.append(np.concatenate([data.coefficients.ravel(), _root_of(root @ root.T), flat]))
    return np.array(rows)
