"""Impulse responses, their derivatives, roots and recurrent matrices of VARMA models."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from tsrnn.linear._inference import delta_method
from tsrnn.linear.varma._shape import Shape


def impulse_responses(shape: Shape, params: np.ndarray, h: int, orthogonalised: bool) -> np.ndarray:
    """Responses (U, h + 1, n, n) of target i to a shock to j, after 0, 1, ..., h steps."""
    with torch.no_grad():
        values = _responses(shape, h, orthogonalised)(torch.tensor(params)).numpy()
    return values.reshape(-1, h + 1, shape.n, shape.n)


def response_errors(
    shape: Shape, params: np.ndarray, cov: np.ndarray, h: int, orthogonalised: bool
) -> np.ndarray:
    """Standard errors (U, h + 1, n, n) of the responses by the delta method."""
    _, spread = delta_method(_responses(shape, h, orthogonalised), params, cov)
    variances = np.diagonal(spread, axis1=1, axis2=2)
    return np.sqrt(variances).reshape(-1, h + 1, shape.n, shape.n)


def _responses(shape: Shape, h: int, orthogonalised: bool) -> Callable[[Tensor], Tensor]:
    """Psi_k = Theta_k + Phi_1 Psi_{k-1} + ... + Phi_p Psi_{k-p}, flat, from parameters (U, k)."""

    def function(theta: Tensor) -> Tensor:
        ar, ma = theta[:, shape.at_ar], theta[:, shape.at_ma]
        psi = [torch.eye(shape.n, dtype=theta.dtype).expand(len(theta), -1, -1)]
        for k in range(1, h + 1):
            terms = [ar[:, :, i] @ psi[k - 1 - i] for i in range(min(k, shape.p))]
            if k <= shape.q:
                terms.append(ma[:, :, k - 1])
            psi.append(sum(terms, torch.zeros_like(psi[0])))
        result = torch.stack(psi, 1)
        if orthogonalised:
            chol = torch.zeros_like(psi[0])
            rows, columns = (torch.from_numpy(part) for part in shape.triangle)
            own = theta[:, torch.from_numpy(shape.at_chol)]
            chol = chol.index_put((torch.arange(len(theta))[:, None], rows, columns), own)
            result = result @ chol[:, None]
        return result.flatten(1)

    return function


def companion(lags: np.ndarray) -> np.ndarray:
    """Companion matrices (U, lags n, lags n) of coefficient matrices (U, lags, n, n)."""
    units, count, n, _ = lags.shape
    result = np.tile(np.eye(count * n, k=-n), (units, 1, 1))
    result[:, :n] = lags.swapaxes(1, 2).reshape(units, n, count * n)
    return result
