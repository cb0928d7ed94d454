"""What a reader of estimates has to know: boundaries, identification, moments, convergence."""

from __future__ import annotations

import numpy as np

from tsrnn.linear.garch._coordinates import NU, SMALLEST_OMEGA
from tsrnn.linear.garch._found import Found
from tsrnn.linear.garch._model import Model
from tsrnn.linear.garch._moments import fourth_moment_root, persistence

LIKE_LEVELS = 0.9  # first autocorrelation; that of returns is close to zero
_NO_LIMIT = "its estimator has no normal limit there"


def judged(
    model: Model, params: np.ndarray, found: Found, autocorrelation: np.ndarray
) -> tuple[np.ndarray, tuple[tuple[str, ...], ...]]:
    """Parameters without a standard error, (N, k), and warnings, at parameters (N, k).

    `autocorrelation` (N,) is that of the series at lag one.
    """
    fixed = found.at_bound.copy()
    held = np.asarray(found.dropped >= 0)
    fixed[np.flatnonzero(held), found.dropped[held]] = True
    flat = np.asarray(~params[:, model.omega + 1 : model.beta.start].any(1))
    fixed[flat, model.omega] = True
    fixed[flat, model.beta] = True
    messages = [_bounds(model, *rows) for rows in zip(found.at_bound, params, strict=True)]
    moments = fourth_moment_root(model, params), persistence(model, params)
    for i, said in enumerate(messages):
        if flat[i]:
            said.append(
                "no effect of shocks on the variance: omega and beta are not identified apart"
            )
        if held[i]:
            name = model.names[found.dropped[i]]
            said.append(
                f"the likelihood rises beyond a persistence of one, which is imposed: {name} "
                "follows from the others, and there is no unconditional variance"
            )
        said += _moments(model, params[i], moments[0][i], moments[1][i], held[i] or flat[i])
        if found.kinked[i]:
            said.append(
                "the likelihood has kinks in the mean, at each residual of zero, and its maximum "
                "is on one: the gradient is not zero there"
            )
        if autocorrelation[i] > LIKE_LEVELS and not (model.mean.lags or model.mean.n_ma):
            said.append(
                f"the series has a first autocorrelation of {autocorrelation[i]:.3f}, as prices "
                "and other levels, and the mean has no lags: the variance follows the level. Give "
                "returns, such as 100 * np.log(y).diff(), or mean='ar'"
            )
        if not found.converged[i]:
            said.append(f"the search did not converge in {found.iterations[i]} iterations")
    return fixed, tuple(map(tuple, messages))


def _bounds(model: Model, at_bound: np.ndarray, params: np.ndarray) -> list[str]:
    said = []
    for i in np.flatnonzero(at_bound):
        name = model.names[i]
        if name == "omega":
            what = f"is at its bound, {SMALLEST_OMEGA:g} of the variance of the series"
        elif name == "nu":
            end = NU[int(params[i] > sum(NU) / 2)]
            what = f"is at its bound, {end:g}"
        elif name.startswith("gamma"):
            what = f"is at its bound, minus {name.replace('gamma', 'alpha')}"
        else:
            what = f"is at its bound, {params[i]:.3g}"
        said.append(f"{name} {what}: {_NO_LIMIT}")
    return said


def _moments(model: Model, params: np.ndarray, root: float, level: float, known: bool) -> list[str]:
    said = []
    if model.vol.log:
        if params[model.omega + 1] < 0:
            said.append(
                f"alpha[1] is {params[model.omega + 1]:.3g}: with a negative one, variances far "
                "in the past need not be forgotten, and the likelihood may have many maxima"
            )
        if model.density.names:
            said.append(
                "innovations with Student's t have no exponential moments: unless the effect of "
                "shocks is negative, the unconditional variance is infinite"
            )
        return said
    if level >= 1 and not known:
        said.append(f"the persistence is {level:.6g}: there is no unconditional variance")
    elif not root < 1 and not known:
        said.append(
            "the fourth moment of the residuals is not finite: autocorrelations of squares and "
            "tests built on them have no usual limit"
        )
    if model.density.names and params[-1] <= 4:
        said.append(
            f"nu is {params[-1]:.3g}: innovations have no fourth moment, which robust standard "
            "errors need"
        )
    return said
