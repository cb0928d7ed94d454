"""The linear path: ridge regression towards a naive forecast, its window and form chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tsrnn.data import Panel
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._scaling import Scaling, standardise
from tsrnn.forecasters._settings import Settings
from tsrnn.forecasters._units import (
    Units,
    regression_origins,
    subset,
    units_of,
    validation_origins,
)

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)  # times the mean eigenvalue of the Gram
ROWS_TO_JUDGE = 500_000  # of all series: each input size has levels and sums of its own
VALUES_AT_MOST = 2**26  # of the design: half a gigabyte


def choose_linear_path(
    settings: Settings, panel: Panel, scaling: Scaling, make: Callable[[Settings], ForecastModel]
) -> tuple[Settings, dict[str, Any]]:
    """Input size and form of the linear path with the least error on the validation part.

    Every size of `input_sizes` forecasts from the same origins. Of panels with more than
    500,000 rows a subset of the series decides.

    `make` returns an empty model of some settings. Returned are the settings with the chosen
    input size and the form that `best_form` chose.
    """
    lengths = panel.lengths
    validated = np.flatnonzero(settings.training_rows(lengths) < lengths)
    most = max(1, len(validated) * ROWS_TO_JUDGE // int(lengths[validated].sum()))
    chosen = validated[subset(len(validated), most).numpy()]
    panel, scaling = panel.select(np.isin(np.arange(len(lengths)), chosen)), scaling.select(chosen)
    values = standardise(panel, scaling)
    rows = torch.from_numpy(settings.training_rows(panel.lengths))
    forms = []
    for size in settings.input_sizes:
        tried = replace(settings, input_size=size)
        units = units_of(values, panel.indptr, scaling, tried)
        split = units.starts + rows.repeat_interleave(len(units) // panel.n_series)
        train = regression_origins(units, split, tried.horizon)
        validation = validation_origins(units, split, tried.horizon)
        forms.append((tried, best_form(make(tried), units, train, validation, tried.season)))
    return min(forms, key=lambda pair: pair[1]["error"])


@torch.no_grad()
def best_form(
    model: ForecastModel,
    units: Units,
    train: tuple[Tensor, Tensor],
    validation: tuple[Tensor, Tensor],
    season: int,
) -> dict[str, Any]:
    r"""Form of the linear path that forecasts validation targets best.

    The target A^0 of the shrinkage is one of three naive forecasts: the level of the
    window, the last value, the value a season before. Chosen are that target, the penalty,
    whether coefficients vary with the window's autocorrelations at all, and, where the
    validation part has ten windows, whether forecasts revert to the mean of the training part:
    with :math:`\Gamma = 0` they follow the window's level, as series without a mean ask for.

    Parameters
    ----------
    model : ForecastModel
        Not changed.
    units : Units
        In float64.
    train, validation : tuple of integer Tensors (rows, starts)
        Rows to forecast from, with all h steps inside the part they belong to, and the
        first row of their unit.
    season : int

    Returns
    -------
    dict
        The "prior", the "penalty", whether the form is "varying" and "reverting", and its
        "error", the mean squared error of the validation targets.
    """
    fitted, validated = (_Sums.of(model, units, origins) for origins in (train, validation))
    best: dict[str, Any] = {"error": float("inf")}
    priors = _naive_weights(model, units, season)
    reverting = (False,) if model.linear_level is None else (False, True)
    for parts in product((False, True) if model.seasons else (False,), reverting):
        ridge = _Ridge(fitted, *fitted.design_sizes(*parts))
        for name, prior in priors.items():
            errors = [0.0 for _ in PENALTIES]
            for k in range(fitted.n_groups):
                for i, weights in enumerate(ridge.path(k, prior, PENALTIES)):
                    errors[i] += validated.squared_error(k, weights)
            for penalty, error in zip(PENALTIES, errors, strict=True):
                if error < best["error"]:
                    best = {"prior": name, "penalty": penalty}
                    best |= dict(zip(("varying", "reverting"), parts, strict=True))
                    best |= {"error": error}
    return best | {"error": best["error"] / validated.count}


@torch.no_grad()
def fit_linear_path(
    model: ForecastModel,
    units: Units,
    origins: tuple[Tensor, Tensor],
    season: int,
    form: dict[str, Any],
) -> None:
    r"""Set the linear path by ridge regression.

    .. math:: \min_{A, B} \sum_t \sum_k \Big\| y_{t+k} - \ell_t
        - \Gamma_k' \ell_t - \Big( A_k + \sum_j \rho_{jt} A_{jk} \Big)' d_t
        - B_k' \tilde x_{t+k} \Big\|^2
        + \lambda \sum_k \Big( \| A_k - A_k^0 \|^2 + \sum_j \| A_{jk} \|^2
        + \| B_k \|^2 + \| \Gamma_k \|^2 \Big)

    Coefficients of parts that the form does not have are zero and are not trained.

    Parameters
    ----------
    model : ForecastModel
    units : Units
        In float64.
    origins : tuple of integer Tensors (rows, starts)
        Rows to forecast from and the first row of their unit; all h steps are targets.
    season : int
    form : dict
        Result of `best_form`.
    """
    sums = _Sums.of(model, units, origins)
    prior = _naive_weights(model, units, season)[form["prior"]]
    ridge = _Ridge(sums, *sums.design_sizes(form["varying"], form["reverting"]))
    penalties = (form["penalty"],)
    solved = [next(iter(ridge.path(k, prior, penalties))) for k in range(sums.n_groups)]
    weights = torch.stack(solved, 1)  # (q, groups, m): (q, 1, h C) or (q, h, C)
    n_lags, n_design = sums.n_lags, sums.gram.shape[0]
    assert model.linear is not None
    model.linear.copy_(weights[:n_lags].flatten(1))
    if model.linear_varying is not None:
        parts = weights[n_lags:n_design].reshape(len(model.seasons), -1, weights[0].numel())
        model.linear_varying.copy_(parts.transpose(0, 1).flatten(1))
        model.linear_varying.requires_grad_(form["varying"])
    n_fixed = n_design + sums.n_known
    if model.linear_known is not None:
        model.linear_known.copy_(weights[n_design:n_fixed].transpose(0, 1))
    if model.linear_level is not None:
        model.linear_level.copy_(weights[n_fixed:].flatten(1))
        model.linear_level.requires_grad_(form["reverting"])


@dataclass(frozen=True, eq=False)
class _Sums:
    """Products of regressors and targets, summed over rows.

    The design of a step ahead is the lags, the lags of the targets times each season's
    autocorrelation, and e columns that join these: the known futures of this step and the
    level of each target. Without known futures all steps have one design and are one group
    of m = h C outputs; with them m = C.
    """

    n_lags: int
    n_known: int
    gram: Tensor  # (p, p) of the lags
    mixed: Tensor  # (groups, p, e)
    inner: Tensor  # (groups, e, e)
    cross: Tensor  # (groups, p + e, m)
    square: Tensor  # (groups,)
    count: int  # of targets

    @classmethod
    def of(cls, model: ForecastModel, units: Units, origins: tuple[Tensor, Tensor]) -> _Sums:
        """Sums in float64, over a subset of the rows if there are many."""
        n_lags = units.values.shape[1] * units.window
        size = n_lags + len(model.seasons) * units.n_targets * units.window
        chosen = subset(len(origins[0]), max(VALUES_AT_MOST // size, 1))
        rows, starts = (part[chosen] for part in origins)
        values, _ = model.targets(units, rows, rows + model.horizon + 1)
        targets = values - units.level[rows][:, None, : units.n_targets]
        lags = units.lags(rows, starts)
        if model.seasons:
            target_lags = lags[:, : units.n_targets * units.window]
            strength = model.season_strength(lags)
            lags = torch.cat([lags, *(s[:, None] * target_lags for s in strength.T)], 1)
        future = model.columns_ahead(units, rows)
        if future is None:  # one design for all steps, one group
            joining, targets = values.new_zeros(len(rows), 1, 0), targets.flatten(1)[:, None]
        else:
            joining = model.deviations_ahead(units.at(rows, starts), future)
        if model.linear_level is not None:
            level = units.level[rows][:, None, : units.n_targets]
            joining = torch.cat([joining, level.expand(-1, joining.shape[1], -1)], -1)
        moments = [
            torch.einsum("np,ngm->gpm", lags, targets),
            torch.einsum("nge,ngm->gem", joining, targets),
        ]
        return cls(
            n_lags=n_lags,
            n_known=len(model.known),
            gram=lags.T @ lags,
            mixed=torch.einsum("np,nge->gpe", lags, joining),
            inner=torch.einsum("nge,ngf->gef", joining, joining),
            cross=torch.cat(moments, 1),
            square=targets.square().sum((0, 2)),
            count=targets.numel(),
        )

    @property
    def n_groups(self) -> int:
        """Groups of steps."""
        return len(self.cross)

    def design_sizes(self, varying: bool, reverting: bool) -> tuple[int, int]:
        """Columns of the lags and of those that join them, with or without the last of each."""
        joining = self.inner.shape[1] if reverting else self.n_known
        return len(self.gram) if varying else self.n_lags, joining

    def times(self, k: int, weights: Tensor) -> Tensor:
        """The Gram matrix of a group times weights (p + e, m)."""
        p = len(self.gram)
        first, last = weights[:p], weights[p:]
        shared = self.gram @ first + self.mixed[k] @ last
        return torch.cat([shared, self.mixed[k].T @ first + self.inner[k] @ last])

    def squared_error(self, k: int, weights: Tensor) -> float:
        """Sum of squared residuals of the targets of a group, y'y - w'(2 X'y - X'X w)."""
        doubled = 2 * self.cross[k] - self.times(k, weights)
        return float(self.square[k] - (weights * doubled).sum())


class _Ridge:
    """Ridge regressions on the first `size` lags and the first `border` columns that join.

    The lags are decomposed once; the few others join by their Schur complement.
    """

    def __init__(self, sums: _Sums, size: int, border: int) -> None:
        self._sums, self._size, self._border = sums, size, border
        values, self._vectors = torch.linalg.eigh(sums.gram[:size, :size])
        self._values = values.clamp(min=0)  # negative by rounding alone

    def path(self, k: int, prior: Tensor, penalties: Sequence[float]) -> Iterator[Tensor]:
        """Weights (p + e, m) of a group for each penalty, shrunk towards `prior`."""
        sums, p, size, border = self._sums, len(self._sums.gram), self._size, self._border
        start = torch.zeros_like(sums.cross[k])
        start[: sums.n_lags] = prior[:, k] if sums.n_groups > 1 else prior.flatten(1)
        rest = sums.cross[k] - sums.times(k, start)
        joined = sums.mixed[k][:size, :border], sums.inner[k][:border, :border]
        turned = self._vectors.T @ torch.cat([rest[:size], joined[0]], 1)
        outputs, mixed = turned[:, : rest.shape[1]], turned[:, rest.shape[1] :]
        total = self._values.sum() + joined[1].diagonal().sum()
        unit = (total / (size + border)).clamp(min=1e-12)  # of a design of zeros
        for penalty in penalties:
            shrunk = (self._values + penalty * unit)[:, None]
            weights = start.clone()
            if not border:
                weights[:size] += self._vectors @ (outputs / shrunk)
                yield weights
                continue
            inner = joined[1] + penalty * unit * torch.eye(border, dtype=rest.dtype)
            schur = inner - mixed.T @ (mixed / shrunk)
            last = rest[p : p + border] - mixed.T @ (outputs / shrunk)
            last = torch.linalg.solve(schur, last)
            weights[:size] += self._vectors @ ((outputs - mixed @ last) / shrunk)
            weights[p : p + border] += last
            yield weights


def _naive_weights(model: ForecastModel, units: Units, season: int) -> dict[str, Tensor]:
    """Weights (p, h, C) with which the linear path is a naive forecast, by its name."""
    window = units.window
    n_lags = units.values.shape[1] * window
    empty = torch.zeros(n_lags, model.horizon, units.n_targets, dtype=torch.float64)
    priors = {"local level": empty}
    for name, period in {"last value": 1, "seasonal naive": season}.items():
        if period > window or (name == "seasonal naive" and period == 1):
            continue
        weights = empty.clone()
        for k in range(model.horizon):
            lag = window - period + k % period
            for c in range(units.n_targets):
                weights[c * window + lag, k, c] = 1.0
        priors[name] = weights
    return priors
