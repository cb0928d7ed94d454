"""Derivatives of one step of the estimation by the parameters of the steps before it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tsrnn.linear.dcc._likelihood import lagged, linear_filter
from tsrnn.linear.dcc._specification import FirstStep


class Sensitivities(NamedTuple):
    """Derivatives by the r parameters of the mean and k of the variance of n equations.

    Attributes
    ----------
    e, h, z : arrays of shape (n, r + k, T)
        Of residuals, variances and standardised residuals.
    scores : array of shape (n, r + k, T)
        Of the Gaussian log-likelihood of the equation, by observation.
    """

    e: np.ndarray
    h: np.ndarray
    z: np.ndarray
    scores: np.ndarray


def sensitivities(
    step: FirstStep,
    regressors: np.ndarray,
    e: np.ndarray,
    h: np.ndarray,
    variance: np.ndarray,
    presample: np.ndarray,
) -> Sensitivities:
    """Run the variances' recursion for their derivatives, which obey it with other inputs.

    Parameters
    ----------
    step : FirstStep
    regressors : array of shape (T, r)
    e, h : arrays of shape (n, T)
    variance : array of shape (n, k)
    presample : array of shape (n,)
        Taken as it is: it does not move with the parameters.
    """
    (n, steps), r = e.shape, regressors.shape[1]
    x = torch.from_numpy(regressors.T)[:, None].expand(r, n, steps)
    dh_by = _pushes(step, x, *map(torch.from_numpy, (e, h, variance, presample)))
    betas = torch.from_numpy(variance[:, variance.shape[1] - step.q :])
    decays = [b[:, None, None, None] for b in betas.unbind(1)]
    dh = linear_filter(dh_by[..., None, None], decays)[..., 0, 0].transpose(0, 1).numpy()
    de = np.zeros_like(dh)
    de[:, :r] = -regressors.T
    e, h = e[:, None], h[:, None]
    dz = de / np.sqrt(h) - 0.5 * e / np.sqrt(h) * dh / h
    scores = -0.5 * (1 / h - (e / h) ** 2) * dh - e / h * de
    return Sensitivities(de, dh, dz, scores)


def _pushes(
    step: FirstStep, x: Tensor, e: Tensor, h: Tensor, variance: Tensor, presample: Tensor
) -> Tensor:
    """Immediate effect of each parameter on the variance, (r + k, n, T)."""
    vol = step.model().vol
    shocks = vol.shocks(e, h)
    by_mean = torch.zeros_like(x)
    pushes = [torch.ones_like(e)]
    for s, (shock, expected) in enumerate(zip(shocks, vol.expected, strict=True)):
        slope = torch.where(e == 0, 0.0, 2 * shock / e)  # shocks are squares, or parts of them
        for i in range(1, step.p + 1):
            weight = variance[:, s * step.p + i, None]
            by_mean = by_mean - weight * _delayed(slope * x, i, torch.zeros(()))
            pushes.append(_delayed(shock, i, expected * presample[:, None]))
    pushes += [_delayed(h, j, presample[:, None]) for j in range(1, step.q + 1)]
    return torch.cat([by_mean, torch.stack(pushes)])


def _delayed(x: Tensor, lag: int, before: Tensor) -> Tensor:
    """Shift the last axis, a value in front."""
    shifted = lagged(x[..., None, None], lag)[..., 0, 0]
    return torch.where(torch.arange(x.shape[-1]) < lag, before, shifted)


def driver_sensitivities(
    dz: np.ndarray, z: np.ndarray, scale: np.ndarray, a: np.ndarray, b: np.ndarray
) -> np.ndarray:
    r"""Derivatives of :math:`z^*_t = \sqrt{q_t} z_t` of the corrected model.

    Parameters
    ----------
    dz : array of shape (n, k, T)
    z : array of shape (n, T)
    scale : array of shape (n, T)
        Roots of the diagonal of Q.
    a : array of shape (p,)
    b : array of shape (q,)

    Returns
    -------
    array of shape (n, k, T)
    """
    square, q = torch.from_numpy(z**2), torch.from_numpy(scale**2)
    moved = torch.from_numpy(2 * z[:, None] * dz) * q[:, None]
    zero = torch.zeros(())
    push = sum(w * _delayed(moved, i, zero) for i, w in enumerate(a, 1))
    coefficients = []
    for lag in range(1, max(len(a), len(b)) + 1):
        c = torch.zeros_like(square)
        if lag <= len(a):
            c = c + a[lag - 1] * _delayed(square, lag, zero)
        if lag <= len(b):
            c = c + b[lag - 1]
        coefficients.append(c[..., None, None])
    assert isinstance(push, Tensor)
    dq = linear_filter(push.transpose(0, 1)[..., None, None], coefficients)
    by_z = dq[..., 0, 0].transpose(0, 1).numpy()
    scale = scale[:, None]
    return scale * dz + z[:, None] * by_z / (2 * scale)
