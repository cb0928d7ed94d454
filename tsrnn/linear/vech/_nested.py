"""Vech models nested in another, and their parameters as those of the larger one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tsrnn.linear.vech._likelihood import Sample
from tsrnn.linear.vech._specification import Specification
from tsrnn.linear.vech._start import shrink

NESTED_KINDS = {"full": ("bekk", "diagonal"), "diagonal": ("scalar",), "bekk": ("scalar",)}
_FAINT = 0.02  # size of what is put in place of zeros, from which no gradient leads away


def is_nested_kind(small: str, kind: str) -> bool:
    """Whether a structure is a special case of another, or the same."""
    return small == kind or any(is_nested_kind(small, k) for k in NESTED_KINDS.get(kind, ()))


def nested_specifications(spec: Specification) -> list[Specification]:
    """Simpler structures of the same lags and, with several lags, those of one lag less."""
    nested = [replace(spec, kind=kind) for kind in NESTED_KINDS.get(spec.kind, ())]
    if max(spec.p, spec.q) > 1:
        nested += [replace(spec, p=spec.p - 1)] * (spec.p > 1)
        nested += [replace(spec, q=spec.q - 1)] * (spec.q > 0)
    return nested


def embedded(small: Specification, spec: Specification, params: np.ndarray) -> np.ndarray:
    """Factors (k,) of the larger model from those of one that is nested in it."""
    blocks = small.factors.blocks
    ends = np.cumsum([len(small.mean_names), *(block.size for block in blocks)])[:-1]
    mean, *parts = np.split(params, ends)
    constant = [] if small.targeting else [parts.pop(0)]
    place = _places_in(small.kind, spec.kind, spec.n)
    (block,) = set(spec.factors.theta)
    lags = np.zeros((spec.p + spec.q, block.size))
    for i, part in enumerate(parts):
        lag = i if i < small.p else i - small.p + spec.p
        lags[lag, place] = part
    return np.concatenate([mean, *constant, lags.ravel()])


def _places_in(small: str, kind: str, n: int) -> np.ndarray:
    """Where the elements of a factor stand in that of a larger structure; a scalar in several."""
    if small == kind:
        return np.arange(_rows(kind, n)[0].size)
    if small == "scalar":
        return np.arange(n) * (n + 1) if kind == "bekk" else np.arange(n)
    if small == "bekk":
        return np.arange(n * n)  # the first row of the factor is a whole BEKK term
    whole = {pair: i for i, pair in enumerate(zip(*_rows(kind, n), strict=True))}
    pairs = zip(*_rows(small, n), strict=True)
    return np.array([whole[row, column * (n + 1)] for row, column in pairs])


def _rows(kind: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the elements of a lag's factor."""
    if kind in ("full", "diagonal"):
        return np.triu_indices(n * n if kind == "full" else n)
    columns = np.arange(1 if kind == "scalar" else n * n)
    return np.zeros_like(columns), columns


def left_zero(
    spec: Specification, sample: Sample, params: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """The same factors with small numbers in place of zeros of Theta and Phi."""
    moved, structure = params.copy(), spec.factors
    constants = 0 if structure.intercept is None else structure.intercept.size
    lags = moved[len(spec.mean_names) + constants :]
    lags[lags == 0] = _FAINT * rng.standard_normal((lags == 0).sum())
    shrink(structure, sample, lags)
    return moved
