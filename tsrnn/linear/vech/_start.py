"""Starting values: a scalar model, then a diagonal BEKK, then the structure wanted."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from tsrnn.linear._optimise import maximise
from tsrnn.linear.vech._algebra import unvech
from tsrnn.linear.vech._evaluate import evaluation
from tsrnn.linear.vech._likelihood import Sample
from tsrnn.linear.vech._structure import Structure, factors

_SCALAR_START = 0.05, 0.90  # sums of Theta and of Phi
_NOISE = 0.15, 0.05  # size of perturbations of the factors of Theta, of Phi
_FAINT = 0.5  # share of it in the first start, where elements must only leave zero
_MOST = 0.98  # share of the covariance that Theta and Phi may take at a start
_ROUGH = 1e-2  # decrement at which a simpler model is good enough to start from


def starts(
    kind: str,
    lags: tuple[int, int],
    sample: Sample,
    coefficients: np.ndarray,
    targeting: bool,
    n_starts: int,
    rng: np.random.Generator,
    verbose: int = 0,
) -> np.ndarray:
    """Starting values (n_starts, k) of the factors, the mean's coefficients (n, r) in front.

    The first comes from a diagonal BEKK; the others are that one perturbed.
    """
    n = sample.response.shape[1]
    simple = _diagonal_bekk(lags, without_mean(sample, coefficients), targeting, verbose)
    structure = factors(kind, n, *lags, targeting)
    constants = 0 if targeting else structure.blocks[0].size
    base, sizes = np.zeros(structure.size), np.zeros(structure.size)
    base[:constants] = simple[:constants]
    diagonals = simple[constants:].reshape(-1, n)
    begin = constants
    for lag, block in enumerate(structure.blocks[not targeting :]):
        diagonal = diagonals[lag]
        base[begin + _diagonal_of(kind, n)] = diagonal.mean() if kind == "scalar" else diagonal
        sizes[begin : begin + block.size] = _NOISE[lag >= lags[0]] / np.sqrt(n)
        begin += block.size
    noise = rng.standard_normal((n_starts, structure.size)) * sizes
    noise[0] *= 0.0 if kind in ("scalar", "bekk") else _FAINT * (base == 0)
    found = base + noise
    for row in found[0 if targeting or noise[0].any() else 1 :]:
        shrink(structure, sample, row[constants:])
    means = np.broadcast_to(coefficients.ravel(), (n_starts, coefficients.size))
    return np.hstack([means, found])


def shrink(structure: Structure, sample: Sample, params: np.ndarray) -> None:
    """Make Theta and Phi smaller, in place, until they leave something to the constant."""
    taken, begin, s = [], 0, sample.presample
    for block in (*structure.theta, *structure.phi):
        taken.append(block.value(params[begin : begin + block.size]) @ s)
        begin += block.size
    share = scipy.linalg.eigh(unvech(np.sum(taken, 0)), unvech(s), eigvals_only=True)[-1]
    params *= min(1.0, np.sqrt(_MOST / share))


def without_mean(sample: Sample, coefficients: np.ndarray) -> Sample:
    """The residuals of given coefficients as a sample that has no mean."""
    errors = sample.response - sample.regressors @ coefficients.T
    return Sample(errors, sample.regressors[:, :0], sample.presample)


def _diagonal_of(kind: str, n: int) -> np.ndarray:
    """Where the diagonal of the first A stands among the parameters of a lag."""
    if kind == "scalar":
        return np.zeros(1, dtype=np.int64)
    return np.arange(n) * (1 if kind == "diagonal" else n + 1)


def _diagonal_bekk(
    lags: tuple[int, int], sample: Sample, targeting: bool, verbose: int
) -> np.ndarray:
    """Parameters (k,) of a diagonal BEKK, from those of a scalar model with target."""
    p, q = lags
    n = sample.response.shape[1]
    scalar = factors("scalar", n, p, q, True)
    theta, phi = _SCALAR_START
    begin = np.sqrt([theta / p] * p + [phi / max(q, 1)] * q)
    evaluate = evaluation(scalar, sample, stationary=True)
    bar = "scalar start" if verbose else ""
    found = np.abs(maximise(evaluate, begin[None], tol=_ROUGH, progress=bar).params[0])
    parts = [np.repeat(found, n)]
    if not targeting:
        rest = max(1 - (found**2).sum(), 0.01)
        parts.insert(0, np.linalg.cholesky(unvech(sample.presample) * rest)[np.tril_indices(n)])
    evaluate = evaluation(factors("diagonal bekk", n, p, q, targeting), sample, stationary=False)
    bar = "diagonal BEKK start" if verbose else ""
    return maximise(evaluate, np.concatenate(parts)[None], tol=_ROUGH, progress=bar).params[0]
