"""Run a model over data, carry it on, and look ahead."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tsrnn.linear._matrices import Forecast, Path
from tsrnn.linear._mean import accumulated, paths, residuals
from tsrnn.linear.vech._algebra import unvech, vech
from tsrnn.linear.vech._density import squares
from tsrnn.linear.vech._recursion import states
from tsrnn.linear.vech._specification import Model


class State(NamedTuple):
    """What a series carries on from its last row; of S series with a leading axis.

    Attributes
    ----------
    history : array of shape (m, n)
        The last m rows, the latest last.
    squares : array of shape (p, N)
        vech(e e'), the latest first.
    states : array of shape (q, N)
        h, the latest first.
    """

    history: np.ndarray
    squares: np.ndarray
    states: np.ndarray


def begin(model: Model, values: np.ndarray, presample: np.ndarray) -> State:
    """State before the first row that has all its lags in a series (T, n)."""
    p, q = len(model.theta), len(model.phi)
    history = values[: len(model.lags)]
    return State(history, np.tile(presample, (p, 1)), np.tile(presample, (q, 1)))


def advance(model: Model, state: State, values: np.ndarray) -> tuple[Path, State]:
    """Run over rows (T, n) that follow a state."""
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
    end = State(
        level[len(level) - m :], known[len(known) - p :][::-1], every[len(every) - q :][::-1]
    )
    return Path(errors, unvech(h)), end


def forecast(model: Model, state: State, h: int) -> Forecast:
    r"""Look h steps ahead, all arrays with a leading axis S.

    :math:`E[vech(e e')] = E[h]` in the future, so that forecasts of h follow its own recursion;
    :math:`Var(y_{T+k}) = \sum_{i<k} \Psi_i E[H_{T+k-i}] \Psi_i'`.
    """
    n = model.intercept.shape[-1]
    errors = np.zeros((len(model.intercept), h, n))
    mean = paths(state.history, model.intercept, model.lags, errors)
    covariance = unvech(expected(model, state, h))
    return Forecast(mean, covariance, accumulated(model.lags, covariance))


def expected(model: Model, state: State, h: int) -> np.ndarray:
    """Forecasts of vech H, (S, h, N)."""
    past, states_ = state.squares, state.states
    result = np.empty((len(past), h, past.shape[-1]))
    for k in range(h):
        now = model.constant + _applied(model.theta, past) + _applied(model.phi, states_)
        result[:, k] = now
        past = np.concatenate([now[:, None], past], 1)[:, : past.shape[1]]
        states_ = np.concatenate([now[:, None], states_], 1)[:, : states_.shape[1]]
    return result


def _applied(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.einsum("sjab,sjb->sa", matrices, vectors)


def impulse(model: Model, covariance: np.ndarray, shock: np.ndarray, h: int) -> np.ndarray:
    r"""Volatility impulse response of one series (Hafner and Herwartz, 2006).

    .. math::
        V_k = E[h_{t+k} | e_t = shock, H_t] - E[h_{t+k} | H_t]
            = \Theta_k vech(e_t e_t' - H_t) + \sum_{i<k} (\Theta_i + \Phi_i) V_{k-i}

    Parameters
    ----------
    model : Model
    covariance : array of shape (n, n)
        H_t.
    shock : array of shape (n,)
    h : int

    Returns
    -------
    array of shape (h, n, n)
        V_1, ..., V_h as matrices.
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


def draw(model: Model, state: State, innovations: np.ndarray) -> np.ndarray:
    """A path (T, n) of y after a state, with e = L z for innovations z and H = L L'.

    Raises
    ------
    ValueError
        If a covariance on the way is not finite and positive definite.
    """
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
