"""Inference at ARMA optima: identification, boundaries and unit roots, convergence."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from tsrnn.linear._optimise import Optimum
from tsrnn.linear.arma._polynomials import inverse_roots
from tsrnn.linear.arma._specification import Form

ON_CIRCLE = 1e-4  # a root this close to the unit circle is on it
NEARLY = 2.0  # times 1 / sqrt(n), the error of the first impulse response: roots are close
SAME = 0.01  # close roots that add less to the log-likelihood are not identified
FAINT = 3.0  # and weakly identified below this, half the 95% quantile of chi-square(2)
NEAR_UNIT_ROOT = 2.0  # times 1 / n: a root is near the unit circle


def judge(
    form: Form, best: Optimum, lower: np.ndarray, n_obs: np.ndarray
) -> tuple[np.ndarray, tuple[tuple[str, ...], ...]]:
    """Mask (N, k) of parameters without a standard error, and warnings by unit.

    `lower` (N,) is the log-likelihood with one lag less on both sides, if roots are close.
    """
    fixed = np.zeros(best.params.shape, dtype=bool)
    messages: dict[Any, list[str]] = defaultdict(list)
    if form.p and form.q and not form.m:
        _judge_common_roots(form, best, lower, n_obs, fixed, messages)
    _, *factors = form.parts(np.arange(form.n_params))
    for ma, kind in ((factors[1], "MA"), (factors[3], "seasonal MA")):
        if not len(ma):
            continue
        modulus = np.abs(inverse_roots(-best.params[:, ma].T))
        for i in np.flatnonzero(modulus.max(0) > 1 - ON_CIRCLE):
            fixed[i, ma] = True
            messages[i].append(
                f"On the boundary: a root of the {kind} is on the unit circle. The limit of its "
                f"estimate is not normal: {kind} parameters have no standard errors. The series "
                "may have been differenced once too often."
            )
    # The inverse root of a seasonal factor acts over m rows: n / m seasons count.
    for ar, kind, rows in ((factors[0], "AR", 1), (factors[2], "seasonal AR", form.m)):
        if not len(ar):
            continue
        roots = inverse_roots(best.params[:, ar].T)
        largest = np.take_along_axis(roots, np.abs(roots).argmax(0)[None], 0)[0]
        distance = 1 - np.abs(largest)
        for i in np.flatnonzero(distance < NEAR_UNIT_ROOT * rows / n_obs):
            fixed[i, ar] |= distance[i] < ON_CIRCLE
            messages[i].append(
                f"Close to a unit root: the largest inverse root of the {kind} is "
                f"{_root_text(largest[i])}. Normal intervals of {kind} parameters are not to be "
                "relied on; consider differencing."
            )
    for i in np.flatnonzero(~best.converged):
        messages[i].append(
            "The likelihood was not maximised to tolerance: the squared gradient is "
            f"{best.decrement[i]:.1e} in standard errors."
        )
    # Most units have no messages: lists for all would slow down the garbage collector.
    texts: list[tuple[str, ...]] = [()] * len(n_obs)
    for unit, lines in messages.items():
        texts[unit] = tuple(lines)
    return fixed, tuple(texts)


def _judge_common_roots(
    form: Form,
    best: Optimum,
    lower: np.ndarray,
    n_obs: np.ndarray,
    fixed: np.ndarray,
    messages: dict[Any, list[str]],
) -> None:
    """Judge close roots by their gain in log-likelihood, and add flags and messages in place.

    Distance is not enough: near the unit circle, roots at a small distance can gain much.
    """
    added = best.value - lower
    gap, ar, ma = closest_roots(form, best.params)
    suspected = (gap * np.sqrt(n_obs) < NEARLY) & ~(added > FAINT)
    for i in np.flatnonzero(suspected):
        roots = f"the inverse roots {_root_text(ar[i])} of the AR and {_root_text(ma[i])} of the MA"
        if added[i] < SAME:
            fixed[i, form.n_mean :] = True
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


def closest_roots(form: Form, params: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distance of the closest inverse roots of phi and theta, and these roots, each (N,)."""
    first = form.n_mean + form.p
    ar = inverse_roots(params[:, form.n_mean : first].T)
    ma = inverse_roots(-params[:, first:].T)
    pairs = np.array([(a, m) for a in ar for m in ma])
    distances = np.array([np.abs(a - m) for a, m in pairs])
    nearest, every = distances.argmin(0), np.arange(len(params))
    return distances[nearest, every], pairs[nearest, 0, every], pairs[nearest, 1, every]


def _root_text(root: complex) -> str:
    if abs(root.imag) < 1e-9:  # rounding of a real root
        return f"{root.real:.4f}"
    return f"{root.real:.4f}{root.imag:+.4f}i"
