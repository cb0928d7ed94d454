"""Exponential smoothing of many series at once: the optimum of each model, and the best model."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from tsrnn.data import Panel
from tsrnn.linear._estimates import EXACT, PERFECT, Estimates, deferred, search_messages
from tsrnn.linear._samples import Sample, scaled_samples
from tsrnn.linear.ets._likelihood import Likelihood
from tsrnn.linear.ets._search import Search
from tsrnn.linear.ets._specification import (
    LEVEL,
    SIGMA2,
    SMOOTHING,
    Components,
    fewest_rows,
    placed,
    union_names,
    with_columns,
)

# Mean square error of scaled rows at which an unconverged search has reached rounding: starting
# values of a trend times a season are less exact than those of additive models.
ROUNDED = 1e-20
NEUTRAL = {"phi": 1.0}  # values of parameters that a model lacks; others are zero


def samples(
    models: tuple[Components, ...], panel: Panel, known: bool
) -> Iterator[tuple[Sample | None, dict[int, str]]]:
    """Yield samples of the units of a panel, with the reasons of refused units.

    With `known` coefficients all exogenous columns have one.
    """
    # All models share the columns: none that the components of any model span.
    trend = any(model.trend != "none" for model in models)
    bare = with_columns(models, ())
    season = min(((m.period, fewest_rows(m)) for m in bare if m.period > 1), default=(1, 0))
    return scaled_samples(
        panel, partial(_refusals, models), trend=trend, season=season, known=known
    )


def _refusals(
    models: tuple[Components, ...], values: np.ndarray, count: np.ndarray, kept: tuple[int, ...]
) -> dict[int, str]:
    """Reasons, by number, to refuse series that keep these exogenous columns."""
    reasons, models = {}, with_columns(models, kept)
    simplest = min(models, key=fewest_rows)
    fewest = fewest_rows(simplest)
    besides = f" with {len(kept)} exogenous columns" * bool(kept)
    for i in np.flatnonzero(count < fewest):
        reasons[int(i)] = (
            f"{simplest.title}{besides} needs at least {fewest} observations; the series "
            f"has {count[i]}. Give more rows, or take a model with fewer parameters"
        )
    if all(model.positive for model in models):
        for i in np.flatnonzero((values <= 0).any(1)):
            reasons.setdefault(
                int(i),
                f"{models[0].title} needs positive values; the lowest is {np.nanmin(values[i]):g}. "
                "Take additive components",
            )
    return reasons


def given(
    models: tuple[Components, ...], sample: Sample, params: np.ndarray, chosen: np.ndarray
) -> Search:
    """Search result from given parameters (N, k) in the units of the data.

    `chosen` (N,) has the numbers of the models.
    """
    n, width = len(params), max(len(model.free) for model in models)
    names, nothing = union_names(models), np.zeros(n, np.int64)
    inner, sigma2 = np.zeros((n, width)), np.empty(n)
    for number in np.unique(chosen):
        units, model = np.flatnonzero(chosen == number), models[number]
        scaled = model.scaled(sample)
        scale = scales(model, scaled.scale[units])
        full = placed(model, names, params[units])
        full[:, LEVEL] -= scaled.centre[units]
        if sample.columns is not None:
            slopes, columns = model.recursion.slopes, sample.columns.select(units)
            full[:, slopes] = columns.inner(full[:, slopes])
        inner[units, : full.shape[1]] = full / scale[:, :-1]
        sigma2[units] = params[units, -1] / scale[:, -1]
    return Search(
        chosen, np.full((n, len(models)), np.nan), inner, sigma2, nothing, nothing, nothing,
        np.ones(n, bool), np.zeros((n, width), bool),
    )  # fmt: skip


def scales(model: Components, size: np.ndarray) -> np.ndarray:
    """Units (N, k + 1) of the parameters and sigma2, for series divided by `size`.

    Coefficients are of the orthogonal columns of the search.
    """
    names = model.recursion.names
    in_data = {"level": True, "trend": model.trend != "mul"}
    in_data |= dict.fromkeys(names[model.recursion.slopes], True)
    moves = [in_data.get(name, name not in SMOOTHING and model.seasonal != "mul") for name in names]
    unit = np.where([*moves, model.error == "add"], size[:, None], 1.0)
    unit[:, -1] **= 2
    return unit


def inferred(
    models: tuple[Components, ...], sample: Sample, ends: Search, region: str, *, decomposed: bool
) -> Estimates:
    """Estimates in the units of the data, with deferred derivatives.

    `decomposed` states before the first row are no estimates. Exogenous columns that the sample
    does not keep have coefficient zero.
    """
    names, models = union_names(models), with_columns(models, sample.kept)
    n, k = len(sample.units), len(names) + 1
    params, loglik, fixed = np.full((n, k), np.nan), np.full(n, np.nan), np.ones((n, k), bool)
    counted = [
        model.free[:4].sum() + len(sample.kept) if decomposed else len(model.names)
        for model in models
    ]
    n_params = 1 + np.array(counted)[ends.model]
    messages: list[tuple[str, ...]] = [()] * n
    converged = ends.converged.copy()
    for part in parts(models, sample, ends, names):
        units, size = part.units, part.params.shape[1]
        slopes = part.model.recursion.slopes
        params[units] = [NEUTRAL.get(name, 0.0) for name in (*names, SIGMA2)]
        natural = np.column_stack([part.params, part.sigma2]) * part.scale
        natural[:, LEVEL] += part.centre
        if sample.columns is not None:
            of_columns = natural[:, :-1][:, slopes]
            natural[:, :-1][:, slopes] = sample.columns.select(units).slopes(of_columns)
        exact = part.sigma2 <= np.where(converged[units], PERFECT, ROUNDED)
        natural[exact & (ends.sigma2 is None), -1] = 0.0
        params[np.ix_(units, part.places)] = natural[:, part.free]
        loglik[units] = part.value
        at_bound = np.column_stack([ends.at_bound[units, :size], np.zeros(len(units), bool)])
        imposed = at_bound.copy()
        imposed[:, part.model.recursion.states] |= decomposed
        converged[units] |= exact
        fixed[np.ix_(units, part.places)] = imposed[:, part.free] | exact[:, None]
        for i, bounded, is_exact in zip(units, at_bound, exact, strict=True):
            all_names = part.model.recursion.names
            on = [name for name, here in zip(all_names, bounded, strict=False) if here]
            messages[i] = (EXACT,) if is_exact else search_messages(
                {"On the boundary": on}, bool(converged[i]), known="the boundary"
            )  # fmt: skip
    return Estimates(
        names=(*names, SIGMA2),
        params=params,
        loglik=loglik,
        n_obs=np.isfinite(sample.values).sum(1),
        **deferred(_derivatives, models, sample, ends, region, names),
        iterations=ends.iterations,
        converged=converged,
        fixed=fixed,
        messages=tuple(messages),
        starts=ends.starts,
        agreement=ends.agreement,
        n_params=n_params,
    )


class Part(NamedTuple):
    """Units of one model at their optima."""

    model: Components
    likelihood: Likelihood
    units: np.ndarray  # (n,)
    params: np.ndarray  # (n, size), all natural parameters, of the scaled series
    sigma2: np.ndarray  # (n,), of the scaled series
    value: np.ndarray  # (n,), log-likelihood in the units of the data
    scale: np.ndarray  # (n, size + 1), units of the parameters and of sigma2
    centre: np.ndarray  # (n,), subtracted from the series, and so from their levels
    free: np.ndarray  # parameters that the model has, sigma2 included
    places: np.ndarray  # their positions in the family


def parts(
    models: tuple[Components, ...], sample: Sample, ends: Search, names: tuple[str, ...]
) -> Iterator[Part]:
    """Yield the units of each model; `names` are the parameters of the family."""
    for number, model in enumerate(models):
        units = np.flatnonzero((ends.model == number) & np.isfinite(ends.params).all(1))
        if not len(units):
            continue
        relative, scaled = np.full(len(units), model.error == "mul"), model.scaled(sample)
        likelihood = Likelihood(model.recursion, scaled.rows, units, relative)
        params = ends.params[units, : len(model.free)]
        sigma2 = None if ends.sigma2 is None else ends.sigma2[units]
        places = [*(names.index(name) for name in model.names), len(names)]
        sigma2, value = likelihood.values(params, sigma2)
        size = scaled.scale[units]
        yield Part(
            model, likelihood, units, params, sigma2, value - likelihood.n_obs * np.log(size),
            scales(model, size), scaled.centre[units],
            np.array([*np.flatnonzero(model.free), len(model.free)]), np.array(places),
        )  # fmt: skip


def _derivatives(
    models: tuple[Components, ...],
    sample: Sample,
    ends: Search,
    region: str,
    names: tuple[str, ...],
) -> dict[str, np.ndarray]:
    """Gradient and matrices in the units of the data, of all units."""
    n, k = len(sample.units), len(names) + 1
    gradient = np.zeros((n, k))
    matrices = {name: np.zeros((n, k, k)) for name in ("hessian", "opg", "information")}
    for part in parts(models, sample, ends, names):
        moments = part.likelihood.moments(part.params, part.sigma2)
        bent = part.likelihood.hessian(part.params, part.sigma2, part.model.free)
        back = 1 / part.scale[:, part.free]
        along = _along_bounds(part, ends.at_bound[part.units], region)
        if sample.columns is not None:  # back to the columns as given
            inner = sample.columns.select(part.units).backwards
            slopes = np.arange(part.model.recursion.slopes.start, along.shape[1] - 1)
            along[:, slopes[:, None], slopes] = inner
        slope = (along @ moments.gradient[:, :, None])[:, :, 0]
        gradient[np.ix_(part.units, part.places)] = slope[:, part.free] * back
        square = back[:, :, None] * back[:, None]
        for name, matrix in (
            ("hessian", bent), ("opg", moments.opg), ("information", moments.information),
        ):  # fmt: skip
            inner = (along @ matrix @ along.swapaxes(1, 2))[:, part.free][:, :, part.free]
            matrices[name][np.ix_(part.units, part.places, part.places)] = inner * square
    return {"gradient": gradient, **matrices}


def _along_bounds(part: Part, at_bound: np.ndarray, region: str) -> np.ndarray:
    """Directions (n, k + 1, k + 1) in which free parameters move.

    Bounds of beta and gamma depend on alpha and phi: on a bound they move along with these.
    """
    n, k = part.params.shape
    directions, (alpha, beta, gamma, phi) = np.tile(np.eye(k + 1), (n, 1, 1)), part.params.T[:4]
    if region != "admissible":  # beta / alpha and gamma / (1 - alpha)
        directions[:, 0, 1] = np.where(at_bound[:, 1], beta / alpha, 0.0)
        directions[:, 0, 2] = np.where(at_bound[:, 2], -gamma / (1 - alpha), 0.0)
    elif part.model.seasonal == "none":  # beta = alpha (1 - 1 / phi) or (2 - alpha) (1 + 1 / phi)
        low = np.abs(beta - alpha * (1 - 1 / phi)) < np.abs(beta - (2 - alpha) * (1 + 1 / phi))
        by_alpha = np.where(low, 1 - 1 / phi, -1 - 1 / phi)
        by_phi = np.where(low, alpha, alpha - 2) / phi**2
        directions[:, 0, 1] = np.where(at_bound[:, 1], by_alpha, 0.0)
        directions[:, 3, 1] = np.where(at_bound[:, 1], by_phi, 0.0)
    return directions
