r"""Inference at VARMA optima: identification, boundaries, outer products and information.

Coefficients with the same responses :math:`\Psi_k` differ by :math:`(D, M)` with
:math:`D(L) \Psi(L) = M(L)`, D with lags 1 to p and M with lags 1 to q. No such D exists if and
only if the p n rows of the Hankel matrix

.. math:: H = (\Psi_{q + j - i})_{i = 1..p,\; j = 1, 2, \dots}

are linearly independent. For p = q = 1 its block column is
:math:`(\Phi + \Theta), \Phi (\Phi + \Theta), \dots`: the network
h_t = (-Theta) h_{t-1} + (Phi + Theta) y_{t-1} is then of minimal size.

Scores and the expected information follow from one-step errors. Without missing values, the
posterior of the initial state given the rows before t follows from cumulative sums of products of
residuals, for all rows at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import chdtri

from tsrnn.linear._multivariate import inverse_roots, spectral_radius
from tsrnn.linear.varma._filter import covariance_of_seen
from tsrnn.linear.varma._likelihood import Linearisation, by_unit, whitened_slopes
from tsrnn.linear.varma._posterior import bordered, posterior_derivatives, posterior_of
from tsrnn.linear.varma._prepare import Sample
from tsrnn.linear.varma._specification import Coefficients, Shape
from tsrnn.linear.varma._system import Stationary, chol_derivatives, system, system_derivatives

EDGE = 1e-4  # a root this close to the unit circle is on it
_COLUMNS = 24  # block columns of the Hankel matrix beyond the algebraic minimum
_CONFIDENCE = 0.95
_NOTHING = 1e-18  # negligible effect of the initial state on an error, in units of innovations


def judge(
    shape: Shape, params: np.ndarray, n_obs: np.ndarray, known: Identification | None = None
) -> tuple[np.ndarray, list[list[str]]]:
    """Mask (U, k) of parameters without a standard error, and warnings by unit.

    The identification does not depend on the scale of the data, and may be `known`.
    """
    coefficients, fixed = shape.unpack(params), np.zeros(params.shape, bool)
    messages: list[list[str]] = [[] for _ in params]
    if shape.p and shape.q:
        result = identification(shape, coefficients, n_obs) if known is None else known
        fixed[:, : shape.n_mean] = ~result.identified[:, None]
        for unit, lines in enumerate(messages):
            lines.append(_identification_text(result, unit))
    ar, ma = spectral_radius(coefficients.ar), spectral_radius(coefficients.ma)
    fixed[:, shape.at_ma] |= (ma > 1 - EDGE)[:, None, None, None]
    for i in np.flatnonzero(ar > 1 - EDGE):
        messages[i].append(
            f"The largest autoregressive root has modulus {ar[i]:.4f}: the series is not "
            "stationary, and normal standard errors do not hold."
        )
    for i in np.flatnonzero(ma > 1 - EDGE):
        messages[i].append(
            f"The largest moving-average root has modulus {ma[i]:.4f}, the edge of "
            "invertibility: its coefficients have no normal limit and no standard errors."
        )
    return fixed, messages


class Identification(NamedTuple):
    """Identification of the coefficients of U units."""

    singular_values: np.ndarray  # (U, p n) of the Hankel matrix of whitened responses, descending
    ar_root: np.ndarray  # (U,) complex, the closest pair of inverse roots of the two polynomials
    ma_root: np.ndarray
    identified: np.ndarray  # (U,) the smallest singular value differs significantly from zero
    threshold: np.ndarray  # (U,) singular value below which it does not


def identification(shape: Shape, coefficients: Coefficients, n_obs: np.ndarray) -> Identification:
    r"""Singular values and common roots of units with p > 0 and q > 0.

    A singular value :math:`\sigma` counts as zero if :math:`T \sigma^2` is below the 95% quantile
    of chi-square with 2 n degrees of freedom, the number of parameters of one state: a rough
    likelihood-ratio test of a smaller model.
    """
    n, p, q = shape.n, shape.p, shape.q
    width = n * shape.lags + _COLUMNS
    matrices = system(shape, coefficients)
    units, power, states = len(coefficients.chol), matrices.T, matrices.K
    while states.shape[2] < n * (width + q):  # T^j K side by side; doubled in each pass
        states = np.concatenate([states, power @ states], 2)
        power = power @ power
    psi = np.zeros((units, n, p + 1 + width + q, n))  # from lag -p on
    psi[:, :, p] = np.eye(n)
    psi[:, :, p + 1 :] = states[:, :n, : n * (width + q)].reshape(units, n, -1, n)
    whitened = np.linalg.solve(
        coefficients.chol, (psi @ coefficients.chol[:, None]).reshape(units, n, -1)
    )
    lag = q + np.arange(1, width + 1) - np.arange(1, p + 1)[:, None]
    blocks = whitened.reshape(psi.shape)[:, :, p + lag].swapaxes(1, 2)
    hankel = blocks.reshape(units, p * n, width * n)
    values = np.linalg.svd(hankel, compute_uv=False)
    ar, ma = inverse_roots(coefficients.ar), inverse_roots(-coefficients.ma)
    apart = np.abs(ar[:, :, None] - ma[:, None, :]).reshape(units, -1)
    closest = apart.argmin(1)
    unit = np.arange(units)
    threshold = np.sqrt(chdtri(2 * n, 1 - _CONFIDENCE) / n_obs)
    return Identification(
        values,
        ar[unit, closest // ma.shape[1]],
        ma[unit, closest % ma.shape[1]],
        values[:, -1] > threshold,
        threshold,
    )


def _identification_text(result: Identification, i: int) -> str:
    ar, ma = (_root_text(root[i]) for root in (result.ar_root, result.ma_root))
    facts = (
        f"smallest singular value of the impulse responses' Hankel matrix "
        f"{result.singular_values[i, -1]:.3g}, closest inverse roots {ar} (AR) and {ma} (MA)"
    )
    if result.identified[i]:
        return f"A VARMA model is identified only if no AR and MA factors cancel: {facts}."
    return (
        f"AR and MA factors nearly cancel and the coefficients are not identified: {facts}; "
        f"below {result.threshold[i]:.3g} the singular value cannot be told from zero. No standard "
        "errors are given for the mean; take smaller orders."
    )


def _root_text(value: complex) -> str:
    # 1e-9: rounding of a real root
    return f"{value.real:.3g}" if abs(value.imag) < 1e-9 else f"{value:.3g}"


class OuterProducts(NamedTuple):
    """Outer products of the scores and the expected information, (U, k, k), of U units."""

    opg: np.ndarray
    information: np.ndarray


def outer_products(at: Linearisation) -> OuterProducts:
    """Sum of outer products of the scores, and information matrix.

    The information is the sum over rows of the information of y given the past (Harvey, 1989,
    3.4.65).
    """
    errors = innovations(at)
    by_row = scores(errors)
    inverse = np.linalg.inv(errors.cov)
    units, _, k = by_row.shape
    left = (errors.d_error @ inverse).swapaxes(1, 2).reshape(units, k, -1)
    right = errors.d_error.swapaxes(1, 2).reshape(units, k, -1)
    information = left @ right.swapaxes(1, 2)
    of_cov = (inverse[:, :, None] @ errors.d_cov).swapaxes(1, 2)
    transposed = of_cov.swapaxes(3, 4).reshape(units, k, -1)
    information += of_cov.reshape(units, k, -1) @ transposed.swapaxes(1, 2) / 2
    return OuterProducts(by_row.swapaxes(1, 2) @ by_row, information)


def scores(errors: Innovations) -> np.ndarray:
    """Derivatives (U, T, k) of each row's log-likelihood."""
    inverse = np.linalg.inv(errors.cov)
    scaled = inverse @ errors.error[..., None]
    by_cov = (scaled @ scaled.swapaxes(2, 3) - inverse) / 2
    flat = errors.d_cov.reshape(*errors.d_error.shape[:3], -1)
    result = flat @ by_cov.reshape(*by_cov.shape[:2], -1, 1) - errors.d_error @ scaled
    return result[..., 0]


class Innovations(NamedTuple):
    """One-step errors of U units and their derivatives.

    A missing entry has error 0 and variance 1, with derivatives of zero.
    """

    error: np.ndarray  # (U, T, n)
    cov: np.ndarray  # (U, T, n, n)
    d_error: np.ndarray  # (U, T, k, n)
    d_cov: np.ndarray  # (U, T, k, n, n)


def innovations(at: Linearisation) -> Innovations:
    """One-step errors and their derivatives, zero after a unit's end.

    Errors of units without missing values are whitened by the innovations' factor.
    """
    if at.sample.n_missing.any():
        return _filtered_derivatives(at.coefficients, at.sample, at.prior)
    residuals, shape = at.residuals, at.sample.shape
    half = whitened_slopes(at.coefficients.chol)
    E = by_unit(residuals.E)
    dE = np.zeros((*E.shape[:2], shape.k, *E.shape[2:]))
    lanes = residuals.lanes
    dE[:, :, lanes.parameter, :, lanes.column] = -residuals.Z.transpose(3, 2, 0, 1)
    return _complete(at.sample, E, dE, half + half.swapaxes(2, 3), at.prior)


def _complete(
    sample: Sample, E: np.ndarray, dE: np.ndarray, shifts: np.ndarray, prior: Stationary
) -> Innovations:
    """Innovations of columns (U, T, n, C) and their derivatives (U, T, k, n, C)."""
    shape = sample.shape
    n = shape.n
    error, d_error = E[..., 0].copy(), dE[..., 0].copy()
    F = np.tile(np.eye(n), (*E.shape[:2], 1, 1))
    d_F = np.zeros((*dE.shape[:3], n, n))
    d_F[:, :, shape.n_mean :] = shifts[:, None] * sample.inside[:, :, None, None, None]
    touched = _count_touched_rows(E[..., 1:], dE[..., 1:])
    result = Innovations(error, F, d_error, d_F)
    if touched:
        _add_start(result, E[:, :touched], dE[:, :touched], shifts, prior, shape.n_mean)
    return result


def _count_touched_rows(D: np.ndarray, dD: np.ndarray) -> int:
    """Number of first rows on which the initial state has an effect."""
    steps = D.shape[1]
    size = np.maximum(abs(D).max((0, 2, 3), initial=0.0), abs(dD).max((0, 2, 3, 4), initial=0.0))
    far = np.flatnonzero(size > _NOTHING)
    return min(steps, int(far[-1]) + 1) if len(far) else 0


def _add_start(
    result: Innovations,
    E: np.ndarray,
    dE: np.ndarray,
    shifts: np.ndarray,
    prior: Stationary,
    n_mean: int,
) -> None:
    """Condition the first rows on the posterior of the initial state, in place."""
    units, steps = E.shape[:2]
    products, d_products = _before_each_row(E, dE[:, :, :n_mean], shifts)

    def by_row(array: np.ndarray) -> np.ndarray:
        return np.repeat(array, steps, 0)

    known = posterior_of(products, by_row(prior.mean), by_row(prior.cov))
    slopes = bordered(d_products, by_row(prior.d_mean), by_row(prior.d_cov))
    later = posterior_derivatives(known, slopes)
    mean, cov, d_mean, d_cov = (
        array.reshape(units, steps, *array.shape[1:]) for array in (known.mean, known.cov, *later)
    )
    D, dD = E[..., 1:], dE[..., 1:]
    across = D.swapaxes(2, 3)
    result.error[:, :steps] -= (D @ mean[..., None])[..., 0]
    result.cov[:, :steps] += D @ cov @ across
    result.d_error[:, :steps] -= (dD @ mean[:, :, None, :, None])[..., 0] + d_mean @ across
    half = dD @ (cov @ across)[:, :, None]
    change = half + half.swapaxes(3, 4) + D[:, :, None] @ d_cov @ across[:, :, None]
    result.d_cov[:, :steps] += change


def _before_each_row(
    E: np.ndarray, J: np.ndarray, shifts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Products of whitened columns over earlier rows and their derivatives, units by rows."""
    half = J.swapaxes(3, 4) @ E[:, :, None]
    by_chol = E[:, :, None].swapaxes(3, 4) @ shifts[:, None] @ E[:, :, None]
    each = E.swapaxes(2, 3) @ E
    d_each = np.concatenate([half + half.swapaxes(3, 4), -by_chol], 2)
    return _summed_before(each), _summed_before(d_each)


def _summed_before(each: np.ndarray) -> np.ndarray:
    """Cumulative sums over the rows before each; the first two axes merged."""
    total = np.zeros_like(each)
    np.cumsum(each[:, :-1], axis=1, out=total[:, 1:])
    return total.reshape(-1, *each.shape[2:])


def _filtered_derivatives(
    coefficients: Coefficients, sample: Sample, prior: Stationary
) -> Innovations:
    """Errors of one unit with missing values, and their derivatives by the k parameters."""
    shape = sample.shape
    T, K, sigma = (array[0] for array in system(shape, coefficients))
    dT, dK = system_derivatives(shape)
    n, k, steps = shape.n, shape.k, int(sample.rows[0])
    d_sigma = np.zeros((k, n, n))
    half = chol_derivatives(n) @ coefficients.chol[0].T
    d_sigma[shape.n_mean :] = half + half.swapaxes(1, 2)
    design = sample.sources[0, :, : shape.n_design]
    offsets = design @ coefficients.design[0].T
    shocks, half = K @ sigma @ K.T, dK @ (sigma @ K.T)
    d_shocks = half + half.swapaxes(1, 2) + K @ d_sigma @ K.T
    into_state = K @ sigma
    d_into_state = dK @ sigma + K @ d_sigma
    mean, cov = prior.mean[0].copy(), prior.cov[0]
    d_mean, d_cov = prior.d_mean[0].copy(), prior.d_cov[0]
    result = Innovations(
        np.zeros((1, steps, n)),
        np.zeros((1, steps, n, n)),
        np.zeros((1, steps, k, n)),
        np.zeros((1, steps, k, n, n)),
    )
    equations = np.arange(n)[:, None]
    for t in range(steps):
        mean[:n] += offsets[t]
        d_mean[shape.at_design, equations] += design[t]
        seen = ~np.isnan(sample.y[0, t])
        both = seen[:, None] & seen
        error = np.where(seen, sample.y[0, t] - mean[:n], 0.0)
        F = covariance_of_seen((cov[:n, :n] + sigma)[None], seen[None])[0]
        d_error = np.where(seen, -d_mean[:, :n], 0.0)
        dF = np.where(both, d_cov[:, :n, :n] + d_sigma, 0.0)
        for whole, part in zip(result, (error, F, d_error, dF), strict=True):
            whole[0, t] = part
        across = np.where(seen, T @ cov[:, :n] + into_state, 0.0)
        d_across = np.where(seen, dT @ cov[:, :n] + T @ d_cov[:, :, :n] + d_into_state, 0.0)
        inverse = np.linalg.inv(F)
        gain = across @ inverse
        d_gain = (d_across - gain @ dF) @ inverse
        d_mean = dT @ mean + d_mean @ T.T + d_gain @ error + d_error @ gain.T
        mean = T @ mean + gain @ error
        half = dT @ cov @ T.T - d_across @ gain.T
        d_cov = T @ d_cov @ T.T + half + half.swapaxes(1, 2) + d_shocks + gain @ dF @ gain.T
        cov = T @ cov @ T.T + shocks - gain @ across.T
        # Enforce symmetry: asymmetric rounding would grow over many rows.
        cov, d_cov = (cov + cov.T) / 2, (d_cov + d_cov.swapaxes(1, 2)) / 2
    return result
