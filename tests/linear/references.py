"""Data and oracles that several files of tests share."""

import arch
import numpy as np
import pandas as pd

from tsrnn.linear.dcc._filter import Walk


def arch_model(y, model):
    """Return the model of the package arch with the mean, variance and density of a `Model`."""
    mean = "AR" if model.mean.lags else "Constant" if model.mean.constant else "Zero"
    leverage = model.p if len(model.vol.coefficients) == 2 else 0
    return arch.arch_model(
        y, mean=mean, lags=list(model.mean.lags) or 0, vol="EGARCH" if model.vol.log else "GARCH",
        p=model.p, o=leverage, q=model.q, power=2 * (model.vol.power or 1),
        dist=model.density.name, rescale=False,
    )  # fmt: skip


def dcc_returns(steps=700, n=3, seed=0, a=0.06, b=0.9, corrected=False, rho=0.4):
    """Return a frame with GARCH variances and dynamic correlations, columns y0, y1, ..."""
    generator = np.random.default_rng(seed)
    s = rho + (1 - rho) * np.eye(n)
    shocks = generator.standard_normal((1, steps, n))
    z = Walk(s[None], np.array([[a]]), np.array([[b]]), corrected).draw(shocks)[0]
    e, h = np.empty_like(z), np.ones(n)
    for t in range(steps):
        e[t] = np.sqrt(h) * z[t]
        h = 0.1 + 0.1 * e[t] ** 2 + 0.8 * h
    index = pd.date_range("2015-01-01", periods=steps, freq="D")
    return pd.DataFrame(0.05 + e, index, [f"y{i}" for i in range(n)])


def long_of(frames):
    """Return a long frame of wide ones by id, with their index as time."""
    parts = [frame.assign(unique_id=name, ds=frame.index) for name, frame in frames.items()]
    return pd.concat(parts, ignore_index=True)


def matrices_of(tidy, name, n):
    """Return symmetric matrices (T, n, n) of the entries in a tidy frame."""
    rows, columns = np.triu_indices(n)
    values = tidy[name].to_numpy().reshape(-1, len(rows))
    whole = np.empty((len(values), n, n))
    whole[:, rows, columns] = whole[:, columns, rows] = values
    return whole
