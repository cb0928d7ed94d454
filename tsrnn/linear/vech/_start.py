"""Starting values: a scalar model, then a diagonal BEKK, then the structure; nested optima."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from tsrnn.linear._optimise import maximise
from tsrnn.linear.vech._likelihood import evaluation
from tsrnn.linear.vech._prepare import Sample
from tsrnn.linear.vech._specification import Specification
from tsrnn.linear.vech._structure import Structure, factors, unvech

_SCALAR_START = 0.05, 0.90  # sums of Theta and of Phi, as of daily returns
_NOISE = 0.15, 0.05  # size of perturbations of the factors of Theta, of Phi
_FAINT = 0.5  # share of it in the first start, where elements must only leave zero
_OFF_ZERO = 0.02  # size of what is put in place of zeros, from which no gradient leads away
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
    errors = sample.response - sample.regressors @ coefficients.T
    without_mean = Sample(errors, sample.regressors[:, :0], sample.presample)
    simple = _diagonal_bekk(lags, without_mean, targeting, verbose)
    structure = factors(kind, n, *lags, targeting)
    constants = 0 if targeting else structure.blocks[0].size
    base, sizes = np.zeros(structure.size), np.zeros(structure.size)
    base[:constants] = simple[:constants]
    diagonals = simple[constants:].reshape(-1, n)
    # Places of the diagonal of the first A among the parameters of a lag.
    places = np.arange(n) * (1 if kind == "diagonal" else n + 1)
    places = np.zeros(1, dtype=np.int64) if kind == "scalar" else places
    begin = constants
    for lag, block in enumerate(structure.blocks[not targeting :]):
        diagonal = diagonals[lag]
        base[begin + places] = diagonal.mean() if kind == "scalar" else diagonal
        sizes[begin : begin + block.size] = _NOISE[lag >= lags[0]] / np.sqrt(n)
        begin += block.size
    noise = rng.standard_normal((n_starts, structure.size)) * sizes
    noise[0] *= 0.0 if kind in ("scalar", "bekk") else _FAINT * (base == 0)
    begins = base + noise
    for row in begins[0 if targeting or noise[0].any() else 1 :]:
        shrink(structure, sample, row[constants:])
    means = np.broadcast_to(coefficients.ravel(), (n_starts, coefficients.size))
    return np.hstack([means, begins])


def _diagonal_bekk(
    lags: tuple[int, int], sample: Sample, targeting: bool, verbose: int
) -> np.ndarray:
    """Parameters (k,) of a diagonal BEKK, from those of a scalar model with target."""
    p, q = lags
    n = sample.response.shape[1]
    scalar = factors("scalar", n, p, q, True)
    theta, phi = _SCALAR_START
    start = np.sqrt([theta / p] * p + [phi / max(q, 1)] * q)
    evaluate = evaluation(scalar, sample, stationary=True)
    bar = "scalar start" if verbose else ""
    roots = np.abs(maximise(evaluate, start[None], tol=_ROUGH, progress=bar).params[0])
    parts = [np.repeat(roots, n)]
    if not targeting:
        rest = max(1 - (roots**2).sum(), 0.01)
        parts.insert(0, np.linalg.cholesky(unvech(sample.presample) * rest)[np.tril_indices(n)])
    evaluate = evaluation(factors("diagonal bekk", n, p, q, targeting), sample, stationary=False)
    bar = "diagonal BEKK start" if verbose else ""
    return maximise(evaluate, np.concatenate(parts)[None], tol=_ROUGH, progress=bar).params[0]


def shrink(structure: Structure, sample: Sample, params: np.ndarray) -> None:
    """Make Theta and Phi smaller, in place, until they leave something to the constant."""
    taken, begin, s = [], 0, sample.presample
    for block in (*structure.theta, *structure.phi):
        taken.append(block.value(params[begin : begin + block.size]) @ s)
        begin += block.size
    share = scipy.linalg.eigh(unvech(np.sum(taken, 0)), unvech(s), eigvals_only=True)[-1]
    params *= min(1.0, np.sqrt(_MOST / share))


def embedded_factors(small: Specification, spec: Specification, params: np.ndarray) -> np.ndarray:
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
    """Places of the elements of a factor in that of a larger structure; a scalar has several."""
    if small == kind:
        return np.arange(_factor_elements(kind, n)[0].size)
    if small == "scalar":
        return np.arange(n) * (n + 1) if kind == "bekk" else np.arange(n)
    if small == "bekk":
        return np.arange(n * n)  # the first row of the factor is a whole BEKK term
    whole = {pair: i for i, pair in enumerate(zip(*_factor_elements(kind, n), strict=True))}
    pairs = zip(*_factor_elements(small, n), strict=True)
    return np.array([whole[row, column * (n + 1)] for row, column in pairs])


def _factor_elements(kind: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the elements of a lag's factor."""
    if kind in ("full", "diagonal"):
        return np.triu_indices(n * n if kind == "full" else n)
    columns = np.arange(1 if kind == "scalar" else n * n)
    return np.zeros_like(columns), columns


def moved_off_zero(
    spec: Specification, sample: Sample, params: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """The same factors with small numbers in place of zeros of Theta and Phi."""
    moved, structure = params.copy(), spec.factors
    constants = 0 if structure.intercept is None else structure.intercept.size
    lags = moved[len(spec.mean_names) + constants :]
    lags[lags == 0] = _OFF_ZERO * rng.standard_normal((lags == 0).sum())
    shrink(structure, sample, lags)
    return moved
