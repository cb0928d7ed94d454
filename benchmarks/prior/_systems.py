"""Nonlinear systems: families with drawn parameters to train on, and four others to score on.

A family is a function ``family(rng, n_series, n_rows)`` that returns an array (n_series, n_rows);
every series has parameters and a start of its own. The systems of `SCORED` are functions
``system(rng, n_rows)`` of one series with the parameters of the literature, and no family.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tsrnn.datasets import henon_map, threshold_autoregression

BURN = 200  # rows before the first
LARGEST = 1e6  # of a value: a series beyond it has exploded
OBSERVED_WITH_NOISE = 0.4  # share of the series
NOISE = (0.02, 0.4)  # its standard deviation, over the deviation of the series
SUBSTEPS = 10  # of Runge and Kutta in a row

Family = Callable[[np.random.Generator, int, int], np.ndarray]
Flow = Callable[[np.ndarray], np.ndarray]


def iterate(step: Callable[[np.ndarray], np.ndarray], start: np.ndarray, n_rows: int) -> np.ndarray:
    """States (n_rows, ...) of a map after its burn-in."""
    states, state = [], start
    for _ in range(BURN + n_rows):
        state = step(state)
        states.append(state)
    return np.array(states[BURN:])


def integrate(
    flow: Flow, start: np.ndarray, interval: np.ndarray | float, n_rows: int
) -> np.ndarray:
    """States (n_rows, d, n_series) of a flow, `interval` apart, by Runge and Kutta."""
    h = interval / SUBSTEPS

    def step(x: np.ndarray) -> np.ndarray:
        for _ in range(SUBSTEPS):
            a = flow(x)
            b = flow(x + h / 2 * a)
            c = flow(x + h / 2 * b)
            x = x + h / 6 * (a + 2 * b + 2 * c + flow(x + h * c))
        return x

    return iterate(step, start, n_rows)


def logistic(rng: np.random.Generator, n_series: int, n_rows: int) -> np.ndarray:
    """Logistic map."""
    a, start = rng.uniform(3.6, 4, n_series), rng.uniform(0.1, 0.9, n_series)
    return iterate(lambda x: a * x * (1 - x), start, n_rows).T


def sine(rng: np.random.Generator, n_series: int, n_rows: int) -> np.ndarray:
    """Sine map."""
    a, start = rng.uniform(0.8, 1, n_series), rng.uniform(0.1, 0.9, n_series)
    return iterate(lambda x: a * np.sin(np.pi * x), start, n_rows).T


def ikeda(rng: np.random.Generator, n_series: int, n_rows: int) -> np.ndarray:
    """Real part of the Ikeda map."""
    u = rng.uniform(0.75, 0.92, n_series)

    def step(z: np.ndarray) -> np.ndarray:
        return 1 + u * z * np.exp(1j * (0.4 - 6 / (1 + np.abs(z) ** 2)))

    start = 0.3 * (rng.normal(size=n_series) + 1j * rng.normal(size=n_series))
    return iterate(step, start, n_rows).real.T


def rossler(rng: np.random.Generator, n_series: int, n_rows: int) -> np.ndarray:
    """First or second coordinate of the Rössler system."""
    a, c = rng.uniform(0.15, 0.25, n_series), rng.uniform(4.5, 7, n_series)

    def flow(x: np.ndarray) -> np.ndarray:
        return np.stack([-x[1] - x[2], x[0] + a * x[1], 0.2 + x[2] * (x[0] - c)])

    interval = rng.uniform(0.3, 1, n_series)
    states = integrate(flow, rng.normal(size=(3, n_series)), interval, n_rows)
    return states[:, rng.integers(0, 2, n_series), np.arange(n_series)].T


def lorenz96(rng: np.random.Generator, n_series: int, n_rows: int) -> np.ndarray:
    """First coordinate of the Lorenz-96 system, of four to seven."""
    forcing, interval = rng.uniform(5, 9, n_series), rng.uniform(0.05, 0.25, n_series)
    size = rng.integers(4, 8, n_series)
    values = np.empty((n_series, n_rows))
    for d in np.unique(size):
        chosen = size == d
        force = forcing[chosen]

        def flow(x: np.ndarray, force: np.ndarray = force) -> np.ndarray:
            return (np.roll(x, -1, 0) - np.roll(x, 2, 0)) * np.roll(x, 1, 0) - x + force

        start = force + rng.normal(size=(d, chosen.sum()))
        values[chosen] = integrate(flow, start, interval[chosen], n_rows)[:, 0].T
    return values


def duffing(rng: np.random.Generator, n_series: int, n_rows: int) -> np.ndarray:
    """Oscillator of Duffing with two wells and a periodic force."""
    damping, force, frequency = (
        rng.uniform(*ends, n_series) for ends in ((0.1, 0.4), (0.3, 0.6), (0.9, 1.4))
    )

    def flow(x: np.ndarray) -> np.ndarray:
        push = -damping * x[1] + x[0] - x[0] ** 3 + force * np.cos(frequency * x[2])
        return np.stack([x[1], push, np.ones(n_series)])

    start = rng.normal(size=(3, n_series))
    return integrate(flow, start, rng.uniform(0.3, 1.2, n_series), n_rows)[:, 0].T


def van_der_pol(rng: np.random.Generator, n_series: int, n_rows: int) -> np.ndarray:
    """Oscillator of van der Pol with a periodic force."""
    damping, force, frequency = (
        rng.uniform(*ends, n_series) for ends in ((0.5, 4), (0, 1.5), (0.5, 2.5))
    )

    def flow(x: np.ndarray) -> np.ndarray:
        push = damping * (1 - x[0] ** 2) * x[1] - x[0] + force * np.cos(frequency * x[2])
        return np.stack([x[1], push, np.ones(n_series)])

    start = rng.normal(size=(3, n_series))
    return integrate(flow, start, rng.uniform(0.3, 1, n_series), n_rows)[:, 0].T


def driven(
    n_rows: int, row: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray], shocks: np.ndarray
) -> np.ndarray:
    """Series driven by shocks (rows, n_series): ``row((y, y before), shock, shock before)``."""
    values = [np.zeros(shocks.shape[1])] * 2
    for shock, before in zip(shocks[1:], shocks, strict=False):
        values.append(row(np.array([values[-1], values[-2]]), shock, before))
    return np.array(values[-n_rows:]).T


def bilinear(rng: np.random.Generator, n_series: int, n_rows: int) -> np.ndarray:
    """Bilinear model of order one."""
    a, b = rng.uniform(-0.5, 0.55, n_series), rng.uniform(0.1, 0.45, n_series)
    shocks = rng.normal(size=(BURN + n_rows, n_series))
    return driven(n_rows, lambda y, e, last: a * y[0] + b * y[0] * last + e, shocks)


def smooth_transition(rng: np.random.Generator, n_series: int, n_rows: int) -> np.ndarray:
    """Smooth transition autoregression of order one."""
    low, high, slope, constant = (
        rng.uniform(*ends, n_series) for ends in ((-0.7, 0.8), (-0.7, 0.9), (1, 8), (0.2, 0.9))
    )
    threshold = 0.5 * rng.normal(size=n_series)

    def row(y: np.ndarray, shock: np.ndarray, before: np.ndarray) -> np.ndarray:
        weight = 1 / (1 + np.exp(-slope * (y[0] - threshold)))
        return (low * (1 - weight) + high * weight) * y[0] + (1 - 2 * weight) * constant + shock

    return driven(n_rows, row, rng.normal(size=(BURN + n_rows, n_series)))


def exponential_ar(rng: np.random.Generator, n_series: int, n_rows: int) -> np.ndarray:
    """Exponential autoregression of order two."""
    a, b, c = (rng.uniform(*ends, n_series) for ends in ((-0.7, 0.8), (-1.4, 1.8), (0.1, 0.45)))

    def row(y: np.ndarray, shock: np.ndarray, before: np.ndarray) -> np.ndarray:
        return (a + b * np.exp(-(y[0] ** 2))) * y[0] - c * y[1] + shock

    return driven(n_rows, row, 0.5 * rng.normal(size=(BURN + n_rows, n_series)))


def ricker(rng: np.random.Generator, n_series: int, n_rows: int) -> np.ndarray:
    """Population of Ricker with shocks to its growth."""
    growth, deviation = rng.uniform(1.5, 3, n_series), rng.uniform(0.02, 0.3, n_series)

    def step(x: np.ndarray) -> np.ndarray:
        shock = deviation * rng.normal(size=n_series)
        return np.maximum(x * np.exp(growth * (1 - x) + shock), 1e-6)

    return iterate(step, np.ones(n_series), n_rows).T


def linear(rng: np.random.Generator, n_series: int, n_rows: int) -> np.ndarray:
    """Autoregression of order two with complex roots: what a network must not call nonlinear."""
    modulus, angle = rng.uniform(0.7, 0.98, n_series), rng.uniform(0.2, 2.5, n_series)
    a, b = 2 * modulus * np.cos(angle), -(modulus**2)
    shocks = rng.normal(size=(BURN + n_rows, n_series))
    return driven(n_rows, lambda y, e, last: a * y[0] + b * y[1] + e, shocks)


FAMILIES: tuple[Family, ...] = (
    logistic, sine, ikeda, rossler, lorenz96, duffing, van_der_pol, bilinear, smooth_transition,
    exponential_ar, ricker, linear,
)  # fmt: skip


def draw_systems(rng: np.random.Generator, n_series: int, n_rows: int) -> np.ndarray:
    """Series (about n_series, n_rows) of all families, observed with or without noise.

    Levels and scales are drawn. Series that explode or do not move are left out.
    """
    each = -(-n_series // len(FAMILIES))
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.concatenate([family(rng, each, n_rows) for family in FAMILIES])
        kept = (np.abs(values) < LARGEST).all(1) & (np.ptp(values, 1) > 0)
    values = rng.permutation(values[kept])
    n, deviation = len(values), values.std(1, keepdims=True)
    noise = rng.uniform(*NOISE, (n, 1)) * (rng.random((n, 1)) < OBSERVED_WITH_NOISE)
    values = values + noise * deviation * rng.normal(size=values.shape)
    scale = np.exp(2 * rng.normal(size=(n, 1)))
    level = 10 * rng.normal(size=(n, 1)) * (rng.random((n, 1)) < 0.5)
    return scale * (values + level * deviation)


def mackey_glass(rng: np.random.Generator, n_rows: int) -> np.ndarray:
    """Mackey-Glass equation with the delay 17, every 6 units of time."""
    h, delay, every = 0.1, 170, 60  # the delay and the rows in steps of h
    path = list(0.9 + 0.6 * rng.random() + 0.02 * rng.normal(size=delay + 1))
    for _ in range((BURN + n_rows) * every):
        late = path[-delay - 1]
        path.append(path[-1] + h * (0.2 * late / (1 + late**10) - 0.1 * path[-1]))
    return np.array(path[delay + 1 :: every])[BURN : BURN + n_rows]


def lorenz(rng: np.random.Generator, n_rows: int) -> np.ndarray:
    """First coordinate of the Lorenz system, every 0.1 units of time."""

    def flow(x: np.ndarray) -> np.ndarray:
        return np.stack([10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]])

    start = rng.normal(size=(3, 1)) + np.array([[0.0], [0.0], [25.0]])
    return integrate(flow, start, 0.1, n_rows)[:, 0, 0]


SCORED: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "Hénon": lambda rng, n_rows: henon_map(n_rows, rng)[0],
    "Mackey-Glass": mackey_glass,
    "Lorenz": lorenz,
    "threshold autoregression": lambda rng, n_rows: threshold_autoregression(n_rows, rng)[0],
}
