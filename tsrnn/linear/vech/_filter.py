"""Recursion of covariances at given coefficients: filter, forecasts, responses, draws."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tsrnn.linear._matrices import Forecast, Path
from tsrnn.linear._mean import accumulated, paths, residuals
from tsrnn.linear.vech._density import squares
from tsrnn.linear.vech._likelihood import states
from tsrnn.linear.vech._specification import Model, Specification
from tsrnn.linear.vech._structure import unvech, vech


class CovarianceState(NamedTuple):
    """State of a series after its last row; S series have a leading axis."""

    history: np.ndarray  # (m, n), the last m rows, latest last
    squares: np.ndarray  # (p, N), vech(e e'), latest first
    states: np.ndarray  # (q, N), h, latest first


def begin_vech(spec: Specification, history: np.ndarray, presample: np.ndarray) -> CovarianceState:
    """State after the first rows (m, n) of a series, which the lags of the mean take."""
    return CovarianceState(
        history, np.tile(presample, (spec.p, 1)), np.tile(presample, (spec.q, 1))
    )


def advance_vech(
    model: Model, state: CovarianceState, values: np.ndarray
) -> tuple[Path, CovarianceState]:
    """Filter rows (T, n) after a state."""
    p, q, m, rows = len(model.theta), len(model.phi), len(model.lags), len(values)
    level = np.concatenate([state.history, values])
    errors = residuals(level, model.intercept, model.lags)
    new = squares(np.ascontiguousarray(errors.T)).T
    known = np.concatenate([state.squares[::-1], new])
    inputs = np.tile(model.constant, (rows, 1))
    for i, matrix in enumerate(model.theta, start=1):
        inputs += known[p - i : p - i + rows] @ matrix.T
    h = inputs if rows == 0 else states(list(model.phi), inputs[..., None], state.states)[..., 0]
    every = np.concatenate([state.states[::-1], h])
    end = CovarianceState(
        level[len(level) - m :], known[len(known) - p :][::-1], every[len(every) - q :][::-1]
    )
    return Path(errors, unvech(h)), end


def forecast_vech(model: Model, state: CovarianceState, h: int) -> Forecast:
    r"""Forecast h steps of S series.

    :math:`E[vech(e e')] = E[h]` in the future, so that forecasts of h follow the recursion of h;
    :math:`Var(y_{T+k}) = \sum_{i<k} \Psi_i E[H_{T+k-i}] \Psi_i'`.
    """
    n = model.intercept.shape[-1]
    errors = np.zeros((len(model.intercept), h, n))
    mean = paths(state.history, model.intercept, model.lags, errors)
    past, before = state.squares, state.states
    expected = np.empty((len(past), h, past.shape[-1]))
    for k in range(h):
        now = model.constant + _applied(model.theta, past) + _applied(model.phi, before)
        expected[:, k] = now
        past = np.concatenate([now[:, None], past], 1)[:, : past.shape[1]]
        before = np.concatenate([now[:, None], before], 1)[:, : before.shape[1]]
    covariance = unvech(expected)
    return Forecast(mean, covariance, accumulated(model.lags, covariance))


def _applied(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.einsum("sjab,sjb->sa", matrices, vectors)


def impulse_vech(model: Model, covariance: np.ndarray, shock: np.ndarray, h: int) -> np.ndarray:
    r"""Volatility impulse response V_1, ..., V_h of one series as matrices (h, n, n).

    .. math::
        V_k = E[h_{t+k} | e_t = shock, H_t] - E[h_{t+k} | H_t]
            = \Theta_k vech(e_t e_t' - H_t) + \sum_{i<k} (\Theta_i + \Phi_i) V_{k-i}

    (Hafner and Herwartz, 2006), with the `covariance` H_t (n, n).
    """
    surprise = vech(np.outer(shock, shock) - covariance)
    zero = np.zeros_like(model.constant)
    result = np.zeros((h, len(zero)))
    for k in range(1, h + 1):
        if k <= len(model.theta):
            result[k - 1] += model.theta[k - 1] @ surprise
        for matrices in (model.theta, model.phi):
            for i, matrix in enumerate(matrices[: k - 1], start=1):
                result[k - 1] += matrix @ result[k - 1 - i]
    return unvech(result)


def draw_vech(model: Model, state: CovarianceState, innovations: np.ndarray) -> np.ndarray:
    """Draw a path (T, n) of y after a state, with e = L z for innovations z and H = L L'."""
    past, before = list(state.squares), list(state.states)
    errors = np.empty_like(innovations)
    for t, z in enumerate(innovations):
        with np.errstate(over="ignore", invalid="ignore"):
            h = model.constant + sum(m @ x for m, x in zip(model.theta, past, strict=True))
            h = h + sum((m @ x for m, x in zip(model.phi, before, strict=True)), 0 * h)
            errors[t] = _root(h, t) @ z
            past = [vech(np.outer(errors[t], errors[t])), *past][: len(past)]
        before = [h, *before][: len(before)]
    return paths(state.history, model.intercept, model.lags, errors)


def _root(h: np.ndarray, t: int) -> np.ndarray:
    if not np.isfinite(h).all():
        raise ValueError(
            f"the covariance is too large for a number after {t} steps: the model is not "
            "stationary. Draw fewer rows, or from other parameters"
        )
    try:
        return np.linalg.cholesky(unvech(h))
    except np.linalg.LinAlgError:
        raise ValueError(
            f"the covariance is not positive definite after {t} steps: the model is not "
            "stationary, or its constant is not positive semidefinite"
        ) from None
