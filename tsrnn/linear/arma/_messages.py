"""What an econometrician should know of an estimate: identification, boundaries, convergence."""

from __future__ import annotations

import numpy as np

from tsrnn.linear._optimise import Optimum
from tsrnn.linear.arma._form import Form
from tsrnn.linear.arma._polynomials import inverse_roots
from tsrnn.linear.arma._search import closest_roots

ON_CIRCLE = 1e-4  # distance of a root from the unit circle that counts as none
NEARLY = 2.0  # distance of roots within the error of the first impulse response, times sqrt(n)
SAME = 0.01  # log-likelihood that common roots must add to count as something
FAINT = 3.0  # that they must add to be told from none: half the 95% quantile of chi-square(2)
NEAR_UNIT_ROOT = 2.0  # distance of a root from the unit circle in units of 1 / n


def judge(
    form: Form, best: Optimum, lower: np.ndarray, n_obs: np.ndarray
) -> tuple[np.ndarray, list[list[str]]]:
    """Parameters that have no standard error, (N, k), and what is to be said, by unit.

    Parameters
    ----------
    form : Form
    best : Optimum
    lower : array of shape (N,)
        Log-likelihood with one lag less on both sides, for units with roots that are close.
    n_obs : array of shape (N,)
    """
    ar = slice(form.n_mean, form.n_mean + form.p)
    ma = slice(ar.stop, ar.stop + form.q)
    fixed = np.zeros(best.params.shape, dtype=bool)
    messages: list[list[str]] = [[] for _ in n_obs]
    if form.p and form.q:
        added = best.value - lower
        both = slice(ar.start, ma.stop)
        _identification(form, best.params, added, n_obs, fixed, messages, both)
    if form.q:
        _edge_of_invertibility(np.abs(inverse_roots(-best.params[:, ma].T)), fixed, messages, ma)
    if form.p:
        _unit_roots(inverse_roots(best.params[:, ar].T), n_obs, fixed, messages, ar)
    for i in np.flatnonzero(~best.converged):
        messages[i].append(
            "The likelihood was not maximised to tolerance: the squared gradient is "
            f"{best.decrement[i]:.1e} in standard errors."
        )
    return fixed, messages


def _identification(
    form: Form,
    params: np.ndarray,
    added: np.ndarray,
    n_obs: np.ndarray,
    fixed: np.ndarray,
    messages: list[list[str]],
    both: slice,
) -> None:
    """Judge roots that are close by what they add to the likelihood.

    Close to the unit circle roots at a small distance can be of much use to the likelihood.
    """
    gap, ar, ma = closest_roots(form, params)
    suspected = (gap * np.sqrt(n_obs) < NEARLY) & ~(added > FAINT)
    for i in np.flatnonzero(suspected):
        roots = f"the inverse roots {_shown(ar[i])} of the AR and {_shown(ma[i])} of the MA"
        if added[i] < SAME:
            fixed[i, both] = True
            messages[i].append(
                f"Not identified: {roots} cancel. A model with one lag less on both sides has the "
                "same log-likelihood; AR and MA parameters have no standard errors."
            )
        else:
            messages[i].append(
                f"Weakly identified: {roots} nearly cancel. A model with one lag less on both "
                f"sides has a log-likelihood lower by {added[i]:.2f} only. Standard errors and "
                "z-values of AR and MA parameters are not to be relied on; consider that model."
            )


def _edge_of_invertibility(
    modulus: np.ndarray, fixed: np.ndarray, messages: list[list[str]], ma: slice
) -> None:
    for i in np.flatnonzero(modulus.max(0) > 1 - ON_CIRCLE):
        fixed[i, ma] = True
        messages[i].append(
            "On the boundary: a root of the MA is on the unit circle. The limit of its estimate "
            "is not normal: MA parameters have no standard errors. The series may have been "
            "differenced once too often."
        )


def _unit_roots(
    roots: np.ndarray, n_obs: np.ndarray, fixed: np.ndarray, messages: list[list[str]], ar: slice
) -> None:
    largest = np.take_along_axis(roots, np.abs(roots).argmax(0)[None], 0)[0]
    distance = 1 - np.abs(largest)
    for i in np.flatnonzero(distance < NEAR_UNIT_ROOT / n_obs):
        fixed[i, ar] |= distance[i] < ON_CIRCLE
        messages[i].append(
            f"Close to a unit root: the largest inverse root of the AR is {_shown(largest[i])}. "
            "Normal intervals of AR parameters are not to be relied on; consider differencing."
        )


def _shown(root: complex) -> str:
    if abs(root.imag) < 1e-9:
        return f"{root.real:.4f}"
    return f"{root.real:.4f}{root.imag:+.4f}i"
