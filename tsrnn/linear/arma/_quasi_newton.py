"""Quasi-Newton method for many lanes in one batch, which starts from an information matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tsrnn.linear._optimise import Evaluation, Optimum

_ROUNDING = 1e-12  # relative accuracy of a log-likelihood summed over time
_FURTHEST = 1.0  # longest step in a parameter: a coefficient seldom moves further
_SHORTEST = 1e-7  # share of a step below which its direction is given up
_GOOD_ENOUGH = 1e-5  # decrement that counts as converged if no further step rises
_IDLE, _LITTLE = 5, 1e-7  # a search ends if this many consecutive steps rise by less than this
_RIDGE = 1e-8  # added to the scaled information, which common roots make singular

Evaluate = Callable[[np.ndarray, np.ndarray], Evaluation]


def climb(
    evaluate: Evaluate, start: np.ndarray, *, tol: float = 1e-12, max_iter: int = 200
) -> Optimum:
    """Climb to a maximum of every lane's log-likelihood from starts (N, k) by the BFGS method.

    The first direction is that of Fisher scoring; later ones use the changes of the gradient. Each
    iteration is one call ``evaluate(params (n, k), lanes (n,))``: a step that does not rise is
    shortened. The curvature, an information matrix, is used at the start of a lane and if its
    directions fail. A lane has converged if its squared gradient, in standard errors, is below
    `tol`, or if several steps together rise by less, as on the way to a maximum at infinity or on
    the edge of the admissible region.
    """
    n, ends = len(start), no_optimum(start)
    lanes, x = np.arange(n), start.copy()
    value, g, information = (np.array(part) for part in evaluate(x, lanes))
    H, decrement = _inverse(information), np.full(n, np.inf)
    share, fresh, idle = np.ones(n), np.ones(n, dtype=bool), np.zeros(n, dtype=np.int64)
    for iteration in range(max_iter + 1):
        step = np.einsum("nij,nj->ni", H, g)
        slope = np.einsum("ni,ni->n", g, step)
        lost = ~(slope > 0) & ~fresh
        if lost.any():  # rounding has left no direction of ascent: restart from scoring
            H[lost], fresh[lost] = _inverse(information[lost]), True
            step[lost] = np.einsum("nij,nj->ni", H[lost], g[lost])
            slope[lost] = np.einsum("ni,ni->n", g[lost], step[lost])
        # Of several directions tried at a point, the smallest predicted rise is most accurate.
        decrement = np.fmin(decrement, slope)
        given_up = (share < _SHORTEST) | ~np.isfinite(value) | ~(slope >= 0) | (idle >= _IDLE)
        done = (slope < tol) | given_up
        if iteration == max_iter:
            done[:] = True
        if done.any():
            at = lanes[done]
            ends.params[at], ends.value[at], ends.gradient[at] = x[done], value[done], g[done]
            ends.decrement[at], ends.iterations[at] = decrement[done], iteration
            # If rounding allows no further step, the last decrement shows how close it is.
            level = given_up & ((decrement < _GOOD_ENOUGH) | (idle > 0))
            ends.converged[at] = (np.isfinite(value) & ((decrement < tol) | level))[done]
            left = ~done
            lanes, x, value, g, information, H, share, fresh, idle, decrement, step, slope = (
                part[left]
                for part in (
                    lanes, x, value, g, information, H, share, fresh, idle, decrement, step, slope,
                )
            )  # fmt: skip
            if not len(lanes):
                break
        length = np.abs(step).max(1)
        share = np.minimum(share, _FURTHEST / np.maximum(length, 1e-300))
        move = share[:, None] * step
        new = evaluate(x + move, lanes)
        better = _rises(value, new, share * slope)
        bent = g - new.gradient
        sy = np.einsum("ni,ni->n", move, bent)
        curved = better & (sy > 1e-10 * share * slope)  # BFGS needs positive curvature
        H[curved] = _updated(H[curved], move[curved], bent[curved], sy[curved])
        with np.errstate(invalid="ignore"):
            slight = better & (new.value - value < max(tol, _LITTLE) / _IDLE)
        idle = np.where(better, np.where(slight, idle + 1, 0), idle)
        x[better] += move[better]
        value[better], g[better] = new.value[better], new.gradient[better]
        information[better], decrement[better] = new.curvature[better], np.inf
        fresh &= ~curved
        failed = ~better
        share = np.where(better, 1.0, share * _shortening(value, new.value, share * slope))
        # BFGS directions from few gradients can be wrong by orders of magnitude: restart.
        restarted = failed & (share < 1e-2) & ~fresh
        H[restarted] = _inverse(information[restarted])
        fresh[restarted], share[restarted] = True, 1.0
    return ends


def no_optimum(start: np.ndarray) -> Optimum:
    """Optimum of value -inf at the starts (N, k), which any end of a climb replaces."""
    n = len(start)
    return Optimum(
        start.copy(), np.full(n, -np.inf), np.zeros_like(start), np.full(n, np.inf),
        np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool), np.zeros(start.shape, dtype=bool),
    )  # fmt: skip


def _rises(value: np.ndarray, new: Evaluation, promised: np.ndarray) -> np.ndarray:
    """Mask (n,) of steps that rise by a share of the predicted rise, or by rounding."""
    with np.errstate(invalid="ignore"):
        noise = _ROUNDING * (1 + np.abs(value))
        better = new.value >= value + 1e-4 * promised
        better |= (promised < noise) & (new.value >= value - noise)
    return better & np.isfinite(new.gradient).all(1)


def _shortening(value: np.ndarray, new: np.ndarray, promised: np.ndarray) -> np.ndarray:
    """Share (n,) of a step at the vertex of the parabola through its start, slope and end."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        top = 0.5 * promised / (value + promised - new)
    return np.clip(np.nan_to_num(top, nan=0.1), 0.1, 0.5)


def _inverse(information: np.ndarray) -> np.ndarray:
    """Inverses of information matrices (n, k, k), which may be nearly singular."""
    k = information.shape[1]
    diagonal = np.einsum("nii->ni", information)
    usable = np.isfinite(information).all((1, 2)) & (diagonal > 0).all(1)
    safe = np.where(usable[:, None, None], information, np.eye(k))
    root = np.sqrt(np.einsum("nii->ni", safe))
    scaled = safe / (root[:, :, None] * root[:, None, :]) + _RIDGE * np.eye(k)
    return np.linalg.inv(scaled) / (root[:, :, None] * root[:, None, :])


def _updated(H: np.ndarray, s: np.ndarray, y: np.ndarray, sy: np.ndarray) -> np.ndarray:
    """BFGS update of the inverse curvature H (n, k, k) by steps s and changes y of -gradient."""
    Hy = np.einsum("nij,nj->ni", H, y)
    yHy = np.einsum("ni,ni->n", y, Hy)
    outer = s[:, :, None] * s[:, None, :]
    crossed = Hy[:, :, None] * s[:, None, :]
    first = ((1 + yHy / sy) / sy)[:, None, None] * outer
    return H + first - (crossed + crossed.swapaxes(1, 2)) / sy[:, None, None]
