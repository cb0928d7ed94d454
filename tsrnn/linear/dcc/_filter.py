"""The linear recurrence under everything here, with derivatives by its coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor

from tsrnn.kernels import Cell, recurrence
from tsrnn.linear.dcc._tensor_jets import TensorJet


@cache
def filter_cell(lags: int) -> Cell:
    """``x_t = u_t + c_1t x_{t-1} + ... + c_rt x_{t-r}`` with the coefficients as inputs."""

    def step(
        state: tuple[Tensor, ...], inputs: tuple[Tensor, ...], params: tuple[Tensor, ...]
    ) -> tuple[Tensor, ...]:
        new, *coefficients = inputs
        for coefficient, past in zip(coefficients, state, strict=True):
            new = new + coefficient * past
        return (new, *state[:-1])

    return Cell(f"filter-{lags}", n=lags, m=1 + lags, p=0, step=step, outputs=1)


def run(source: Tensor, coefficients: Sequence[Tensor]) -> Tensor:
    """Filter sources of shape (..., U, T, r, s) from a zero start.

    Parameters
    ----------
    source : Tensor of shape (..., U, T, r, s)
    coefficients : Tensors that broadcast to (U, T, r, s)
        Of the first, second, ... lag.
    """
    if not coefficients:
        return source
    units, steps, r, s = source.shape[-4:]
    lanes = source.reshape(-1, units, steps, r * s).permute(1, 2, 0, 3)
    copies = lanes.shape[2]
    inputs = [lanes.reshape(units, steps, -1)]
    for c in coefficients:
        one = c.expand(units, steps, r, s).reshape(units, steps, 1, r * s)
        inputs.append(one.expand(-1, -1, copies, -1).reshape(units, steps, -1))
    params = source.new_zeros(0, copies * r * s)
    states, _ = recurrence(
        filter_cell(len(coefficients)), torch.stack(inputs, 2), params, outputs_only=True
    )
    return states.reshape(units, steps, copies, r * s).permute(2, 0, 1, 3).reshape(source.shape)


def lagged(x: Tensor, lag: int) -> Tensor:
    """Shift time, the third axis from the end, zeros in front."""
    shifted = torch.zeros_like(x)
    if lag < x.shape[-3]:
        shifted[..., lag:, :, :] = x[..., :-lag, :, :]
    return shifted


def filtered(source: TensorJet, coefficients: Sequence[TensorJet]) -> TensorJet:
    """Filter with derivatives, which obey the same recurrence with other sources."""
    if not coefficients:
        return source
    fixed = [c.value for c in coefficients]
    value = run(source.value, fixed)
    first = second = None
    changes = [c.first for c in coefficients]
    if source.first is not None or any(change is not None for change in changes):
        pushes = [
            change * lagged(value, j) for j, change in enumerate(changes, 1) if change is not None
        ]
        first = run(_total(source.first, pushes), fixed)
        pushes = []
        for j, c in enumerate(coefficients, 1):
            if c.first is not None:
                cross = c.first[:, None] * lagged(first, j)[None]
                pushes.append(cross + cross.transpose(0, 1))
            if c.second is not None:
                pushes.append(c.second * lagged(value, j))
        if pushes or source.second is not None:
            second = run(_total(source.second, pushes), fixed)
    return TensorJet(value, first, second)


def _total(source: Tensor | None, pushes: list[Tensor]) -> Tensor:
    terms = pushes if source is None else [source, *pushes]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
