"""Common factors of several targets: reduced-rank ridge regression of the residuals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tsrnn.contract import diebold_mariano
from tsrnn.forecasters._gain import FEWEST_ORIGINS
from tsrnn.forecasters._linear_path import NEAR_TIE, PENALTIES, fit_linear_paths
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._scaling import Standardised
from tsrnn.forecasters._settings import Settings
from tsrnn.forecasters._units import (
    Units,
    full_origins,
    regression_origins,
    units_of_each,
    validation_origins,
    validation_starts,
)

NUMBERS = (1, 2, 4, 8, 16, 32)  # candidate numbers of factors: more gained nothing on any data set
VALUES_AT_ONCE = 2**22  # values in the regressors of one call: 32 megabytes
MOST_FORECASTS = 2**27  # forecasts cached while a network is trained: half a gigabyte
# Diebold-Mariano statistic above which factors are used. It is above usual critical values because
# number, penalty and regressors are chosen on the same rows, and targets that move together for a
# while seem to forecast each other: with 3.0, twenty macroeconomic series were forecast worse.
LEAST_STATISTIC = 3.5

LINEAR_PARTS = ("linear", "linear_level", "linear_varying", "factor_weights", "factor_loadings")

Origins = tuple[Tensor, Tensor]  # rows, and the first row of the unit of each


class Moments(NamedTuple):
    """Cross products of regressors and responses, summed over rows; `square` of responses alone.

    Shapes are gram (p, p), cross (p, m), square ().
    """

    gram: Tensor
    cross: Tensor
    square: Tensor


class ReducedRankRidge:
    r"""Coefficients of a ridge regression of reduced rank, for any penalty; moments are float64.

    .. math:: \min_{\operatorname{rank} B \le r} \| Y - X B \|^2 + \lambda \| B \|^2,
        \qquad \hat B_r = \hat B Q_r Q_r'

    with the ridge estimate :math:`\hat B` and the first r eigenvectors :math:`Q_r` of :math:`Y'X
    (X'X + \lambda I)^{-1} X'Y` (Mukherjee and Zhu, 2011). With as many factors as regressors or
    responses it is the ridge estimate.
    """

    def __init__(self, moments: Moments) -> None:
        values, self._vectors = torch.linalg.eigh(moments.gram)
        self._values = values.clamp(min=0)  # negative by rounding alone
        self._cross = self._vectors.mT @ moments.cross
        self._outer = self._cross @ self._cross.mT

    def factors(self, penalty: float, most: int) -> tuple[Tensor, Tensor]:
        """Weights, shape (p, r), and loadings, (r, m), of the first `most` factors.

        The penalty is in units of the mean eigenvalue of the regressors.
        """
        unit = self._values.mean().clamp(min=1e-12)  # positive even if all regressors are zero
        size = (self._values + penalty * unit).rsqrt()
        # Decompose the p x p side, as there are fewer regressors than steps times targets.
        rotation = torch.linalg.eigh(size[:, None] * self._outer * size)[1].flip(1)[:, :most]
        scaled = size[:, None] * rotation
        return self._vectors @ scaled, scaled.mT @ self._cross


def squared_errors(moments: Moments, weights: Tensor, loadings: Tensor) -> Tensor:
    """Sums of squared errors with the first 1, 2, ..., r factors, shape (r,).

    `moments` are of the rows to forecast from; weights have shape (p, r), loadings (r, m).
    """
    linear = ((weights.mT @ moments.cross) * loadings).sum(1).cumsum(0)
    products = (weights.mT @ moments.gram @ weights) * (loadings @ loadings.mT)
    return moments.square - 2 * linear + products.cumsum(0).cumsum(1).diagonal()


class ChosenFactors(NamedTuple):
    """Factors with the least validation error, see `choose_factors`.

    `error` is a sum of squares, the penalty in units of the mean eigenvalue of the regressors.
    Weights have shape (p, r), loadings (r, m).
    """

    error: float
    penalty: float
    weights: Tensor
    loadings: Tensor


def choose_factors(
    fitted: Moments, validated: Moments, sizes: Sequence[int], tolerance: float = NEAR_TIE
) -> ChosenFactors:
    """Choose regressors, penalty and number of factors by the error on a validation part.

    `sizes` are candidate numbers of regressors, counted from the first. Among candidates up to the
    relative `tolerance` above the least error, the largest penalty is chosen: nearly collinear
    columns, such as degrees in two units, have large opposite coefficients, which do harm once they
    differ.
    """
    candidates: list[tuple[float, float, int, int]] = []
    ridges = {size: ReducedRankRidge(_first(fitted, size)) for size in sizes}
    for size, ridge in ridges.items():
        for penalty in PENALTIES:
            factors = ridge.factors(penalty, max(NUMBERS))
            errors = squared_errors(_first(validated, size), *factors).tolist()
            numbers = [number for number in NUMBERS if number <= len(errors)]
            candidates += [(errors[number - 1], penalty, number, size) for number in numbers]
    least = min(candidates)[0]
    near = [candidate for candidate in candidates if candidate[0] <= (1 + tolerance) * least]
    error, penalty, number, size = min(near, key=lambda of: (-of[1], of[0]))
    return ChosenFactors(error, penalty, *ridges[size].factors(penalty, number))


@torch.no_grad()
def choose_structure(
    settings: Settings,
    form: dict[str, Any],
    rows: Standardised,
    make: Callable[[Settings], ForecastModel],
) -> tuple[Settings, dict[str, Any], ForecastModel]:
    """Decide whether the targets of a fit are forecast with common factors.

    Factors of the last rows of all columns are added to the linear path that was chosen for each
    target by itself, with `form` by `best_forms`. The number of factors, and regressors with or
    without levels, have the least error on the validation part, at the largest penalty within a
    percent of it. With ``multivariate="auto"``, factors are used if the Diebold-Mariano statistic
    of the mean squared errors from each origin, without and with factors, is at least
    `LEAST_STATISTIC`.

    Returns the settings, with `multivariate` "independent" or "factor"; the form with "factor_gain"
    (relative reduction of the mean squared error), "factor_statistic" if there are enough origins
    to test, and "factor_penalty" and "factor_levels" if factors are used; and a model from `make`
    with the linear path estimated from the training rows, whose other parameters are uninitialised.
    """
    single = replace(settings, multivariate="independent", factor_lags=0)
    lags = min(settings.factor_lags, settings.input_size)
    joint = replace(settings, multivariate="factor", factor_lags=lags, n_factors=1)
    (units,) = units_of_each([rows], [joint])
    split = validation_starts(units, joint)
    path, model = make(single), make(joint)
    alone = units.by_target()
    train = regression_origins(alone, units.bounds_by_target(split), single.horizon)
    fit_linear_paths([[path]], [alone], [train], single.season, [form])
    _copy_own_path(model, path)
    fitted = _moments(model, units, _whole_windows(units, split, single.horizon))
    validated = _moments(model, units, validation_origins(units, split, single.horizon))
    n_lags, most = len(model.lagged) * lags, len(fitted.gram)
    chosen = choose_factors(fitted, validated, sorted({n_lags, most}))
    error, penalty = chosen.error, chosen.penalty
    estimate = chosen.weights, chosen.loadings
    before, after = _losses_by_origin(model, units, split, *estimate)
    statistic = np.nan
    if len(before) >= max(FEWEST_ORIGINS, single.horizon + 1) and np.ptp(before - after) > 0:
        statistic = diebold_mariano(before - after, overlap=single.horizon - 1)[0]
    judged = {"factor_gain": 1 - error / float(validated.square)}
    if np.isfinite(statistic):
        judged["factor_statistic"] = float(statistic)
    if settings.multivariate == "auto" and not statistic >= LEAST_STATISTIC:
        return single, form | judged, path
    judged |= {"factor_penalty": penalty, "factor_levels": len(chosen.weights) > n_lags}
    judged["error"] = form["error"] * error / float(validated.square)
    joint = replace(joint, n_factors=len(chosen.loadings))
    start = make(joint)
    _copy_own_path(start, path)
    _set_factors([start], *estimate)
    return joint, form | judged, start


@torch.no_grad()
def fit_factors(
    models: Sequence[ForecastModel],
    single: ForecastModel,
    units: Units,
    ends: Tensor,
    form: dict[str, Any],
) -> None:
    """Set the linear paths of models to the path of a single target, `single`, plus factors.

    `units` are in float64; `ends`, shape (U,), end the rows of each unit to estimate from; `form`
    is of `choose_structure`.
    """
    for model in models:
        _copy_own_path(model, single)
    model = models[0]
    assert model.factor_weights is not None
    moments = _moments(model, units, _whole_windows(units, ends, model.horizon))
    size = len(moments.gram) if form["factor_levels"] else len(model.lagged) * model.factor_lags
    number = model.factor_weights.shape[1]
    weights, loadings = ReducedRankRidge(_first(moments, size)).factors(
        form["factor_penalty"], number
    )
    _set_factors(models, weights, loadings)


@torch.no_grad()
def copy_linear_path(models: Sequence[ForecastModel], start: ForecastModel) -> None:
    """Copy the linear path of `start` to models of the same settings."""
    for model in models:
        for name in LINEAR_PARTS:
            if (part := getattr(start, name)) is not None:
                getattr(model, name).copy_(part)
                getattr(model, name).requires_grad_(part.requires_grad)


@torch.no_grad()
def with_path(model: ForecastModel, units: Units) -> Units:
    """Precompute the forecasts of a linear path with factors, which is not trained.

    Training reads each row many times. Forecasts that would need too much memory are not
    precomputed.
    """
    if len(units.values) * model.horizon * model.n_targets > MOST_FORECASTS:
        return units
    starts = torch.repeat_interleave(units.starts, units.lengths)
    rows = torch.arange(len(units.values))
    count = max(1, VALUES_AT_ONCE // (len(model.lagged) * units.window))
    parts = [
        model.level_and_path(units.at(*chunk))[1]
        for chunk in zip(rows.split(count), starts.split(count), strict=True)
    ]
    return replace(units, path=torch.cat(parts))


def _set_factors(models: Sequence[ForecastModel], weights: Tensor, loadings: Tensor) -> None:
    """Set the factors of models; regressors without weights stay at zero."""
    for model in models:
        assert model.factor_weights is not None
        assert model.factor_loadings is not None
        model.factor_weights[: len(weights)] = weights.to(model.factor_weights.dtype)
        model.factor_loadings.copy_(loadings)


def _copy_own_path(model: ForecastModel, single: ForecastModel) -> None:
    """Copy the linear path of a single target, and set the factors to zero."""
    for name in ("linear", "linear_level", "linear_varying"):
        if (part := getattr(single, name)) is not None:
            getattr(model, name).copy_(part)
            getattr(model, name).requires_grad_(False)  # `with_path` precomputes the forecasts
    for factors in (model.factor_weights, model.factor_loadings):
        assert factors is not None
        factors.zero_()


def _whole_windows(units: Units, ends: Tensor, horizon: int) -> Origins:
    """Rows with a whole window whose targets all lie before `ends`."""
    return full_origins(units.starts + units.window - 1, ends, horizon, units.starts)


def _first(moments: Moments, size: int) -> Moments:
    """Moments of the first `size` regressors."""
    return Moments(moments.gram[:size, :size], moments.cross[:size], moments.square)


def _moments(model: ForecastModel, units: Units, origins: Origins) -> Moments:
    """Moments of the factors' regressors and the residuals of a model with zero factors."""
    gram = cross = square = torch.zeros((), dtype=torch.float64)
    for _, x, y in _regressions(model, units, origins):
        gram, cross, square = gram + x.mT @ x, cross + x.mT @ y, square + y.square().sum()
    return Moments(gram, cross, square)


def _regressions(
    model: ForecastModel, units: Units, origins: Origins
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Iterate over batches of rows, regressors, shape (n, p), and residuals, (n, h C)."""
    count = max(1, VALUES_AT_ONCE // (len(model.lagged) * units.window))
    for rows, starts in zip(*(part.split(count) for part in origins), strict=True):
        windows = units.at(rows, starts)
        regressors = model.regressors(windows)
        x = model.factor_regressors(regressors.lags, windows.level[..., : model.n_targets])
        target, _ = model.targets(units, rows, rows + model.horizon + 1)
        level, linear = model.level_and_path(windows, regressors)
        yield rows, x, (target - level - linear).flatten(1)


def _losses_by_origin(
    model: ForecastModel, units: Units, split: Tensor, weights: Tensor, loadings: Tensor
) -> tuple[np.ndarray, np.ndarray]:
    """Mean squared errors without and with factors, by position in the validation part.

    The errors of all series at a position are one observation, as they are correlated.
    """
    most = int((units.indptr[1:] - split).max()) + 1
    sums, counts = torch.zeros(2, most, dtype=torch.float64), torch.zeros(most)
    origins = validation_origins(units, split, model.horizon)
    for rows, x, y in _regressions(model, units, origins):
        unit = torch.searchsorted(units.indptr, rows, right=True) - 1
        place = rows - split[unit] + 1
        left = y - x[:, : len(weights)] @ weights @ loadings
        counts.index_add_(0, place, torch.ones(len(place)))
        for total, part in zip(sums, (y, left), strict=True):
            total.index_add_(0, place, part.square().mean(1))
    there = counts > 0
    before, after = (sums[:, there] / counts[there]).numpy()
    return before, after
