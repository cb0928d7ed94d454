"""Estimates in the user's units, from where a search has ended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tsrnn.linear._estimates import BY_UNIT, Estimates
from tsrnn.linear.garch._found import Found, reductions
from tsrnn.linear.garch._likelihood import Curvatures
from tsrnn.linear.garch._messages import judged
from tsrnn.linear.garch._model import Model
from tsrnn.linear.garch._sample import Sample, to_user


def estimates_of(model: Model, sample: Sample, found: Found, at: Curvatures) -> Estimates:
    """Estimates in the user's units."""
    matrix, offset = to_user(model, sample.centre, sample.scale)
    params = np.einsum("nij,nj->ni", matrix, found.params) + offset
    inverse = np.linalg.inv(matrix)
    reduced = inverse @ reductions(model, found)
    fixed, messages = judged(model, params, found, sample.first_autocorrelation())
    transposed = reduced.swapaxes(1, 2)
    return Estimates(
        names=model.names,
        params=params,
        loglik=at.value - sample.n_obs * np.log(sample.scale),
        n_obs=sample.n_obs,
        gradient=np.einsum("nij,nj->ni", transposed, at.gradient),
        hessian=transposed @ at.hessian @ reduced,
        opg=transposed @ at.opg @ reduced,
        information=transposed @ at.information @ reduced,
        iterations=found.iterations,
        converged=found.converged,
        fixed=fixed,
        messages=messages,
        starts=found.starts,
        agreement=found.agreement,
    )


def no_estimates(model: Model) -> Estimates:
    """Estimates of no unit."""
    k, none = len(model.names), np.empty(0)
    square = np.empty((0, k, k))
    return Estimates(
        names=model.names, params=np.empty((0, k)), loglik=none, n_obs=none.astype(np.int64),
        gradient=np.empty((0, k)), hessian=square, opg=square, information=square,
        iterations=none.astype(np.int64), converged=none.astype(bool),
        fixed=np.empty((0, k), bool), messages=(),
        starts=none.astype(np.int64), agreement=none.astype(np.int64),
    )  # fmt: skip


def joined(parts: list[Estimates]) -> Estimates:
    """Estimates of units one below the other."""
    first, *_ = parts
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in BY_UNIT
    }
    messages = tuple(said for part in parts for said in part.messages)
    return replace(first, **arrays, messages=messages)
