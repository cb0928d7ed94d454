"""Derivatives of log-likelihoods that are written in torch over recurrences.

A model gives ``contributions(params (L, k)) -> (L, T)``: the log-likelihood by observation of L
lanes that do not know of each other. First derivatives are the adjoint recursion; as lanes are
independent, one more backward pass over k copies of a parameter gives all rows of its Hessian.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from tsrnn.linear._optimise import Evaluation

Contributions = Callable[[Tensor], Tensor]


def value_gradient(
    contributions: Contributions, params: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihoods (L,) and their gradients (L, k) at parameters (L, k)."""
    lanes = torch.tensor(params, dtype=torch.float64, requires_grad=True)
    value = contributions(lanes).sum(1)
    (gradient,) = torch.autograd.grad(value.sum(), lanes)
    return value.detach().numpy(), gradient.numpy()


def hessian(contributions: Contributions, params: np.ndarray) -> np.ndarray:
    """Exact Hessian (k, k) of the log-likelihood at parameters (k,)."""
    return second_order(contributions, params)[2]


def second_order(
    contributions: Contributions, params: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Log-likelihood, gradient (k,) and exact Hessian (k, k) at parameters (k,)."""
    k = len(params)
    lanes = torch.tensor(params, dtype=torch.float64).repeat(k, 1).requires_grad_()
    value = contributions(lanes).sum(1)
    (gradient,) = torch.autograd.grad(value.sum(), lanes, create_graph=True)
    (rows,) = torch.autograd.grad(gradient.diagonal().sum(), lanes)
    matrix = rows.numpy()
    return float(value[0].detach()), gradient[0].detach().numpy(), (matrix + matrix.T) / 2


def scores(contributions: Contributions, params: np.ndarray) -> np.ndarray:
    """Derivative of every observation's log-likelihood, (T, k), at parameters (k,)."""
    k = len(params)
    lanes = torch.tensor(params, dtype=torch.float64).repeat(k, 1).requires_grad_()
    terms = contributions(lanes)
    weights = torch.ones_like(terms, requires_grad=True)  # the gradient is linear in them
    (gradient,) = torch.autograd.grad(terms, lanes, weights, create_graph=True)
    (by_time,) = torch.autograd.grad(gradient.diagonal().sum(), weights)
    return by_time.T.numpy()


def evaluation(
    contributions_of: Callable[[int], Contributions],
) -> Callable[[np.ndarray, np.ndarray, bool], Evaluation]:
    """`evaluate` for `maximise`, unit by unit, always with the exact Hessian.

    Parameters
    ----------
    contributions_of : callable
        Gives the contributions of a unit by its number.
    """

    def evaluate(params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
        parts = [
            second_order(contributions_of(int(unit)), row)
            for unit, row in zip(units, params, strict=True)
        ]
        value, gradient, matrix = (np.array(part) for part in zip(*parts, strict=True))
        return Evaluation(value, gradient, -matrix)

    return evaluate
