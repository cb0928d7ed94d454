"""The linear path in closed form: ridge regression towards a naive forecast."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._subset import subset
from tsrnn.forecasters._units import Units

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)  # times the mean eigenvalue of the Gram
ROWS_AT_MOST = 200_000
VALUES_AT_MOST = 2**26  # of the design: half a gigabyte


@torch.no_grad()
def fit_linear_path(
    model: ForecastModel,
    units: Units,
    train: tuple[Tensor, Tensor],
    validation: tuple[Tensor, Tensor],
    season: int,
) -> dict[str, Any]:
    r"""Set the linear path by ridge regression, chosen on the validation rows.

    .. math:: \min_{A, B} \sum_t \sum_k \Big\| y_{t+k} - \ell_t
        - \Big( A_k + \sum_j \rho_{jt} A_{jk} \Big)' d_t - B_k' \tilde x_{t+k} \Big\|^2
        + \lambda \sum_k \Big( \| A_k - A_k^0 \|^2 + \sum_j \| A_{jk} \|^2 + \| B_k \|^2 \Big)

    The target A^0 of the shrinkage is one of three naive forecasts: the level of the
    window, the last value, the value a season before. Chosen are that target, the penalty
    and whether coefficients vary with the window's autocorrelations at all.

    Parameters
    ----------
    model : ForecastModel
    units : Units
        In float64.
    train, validation : tuple of integer Tensors (rows, starts)
        Rows to forecast from, with all h steps inside the part they belong to, and the
        first row of their unit.
    season : int

    Returns
    -------
    dict
        The chosen "prior", "penalty" and "varying".
    """
    fitted, held = (_Sums.of(model, units, origins) for origins in (train, validation))
    priors = _naive_weights(model, units, season)
    best: dict[str, Any] = {"error": float("inf")}
    for varying in (False, True) if model.seasons else (False,):
        ridge = _Ridge(fitted, fitted.design_size(varying))
        for name, prior in priors.items():
            errors = [0.0 for _ in PENALTIES]
            for k in range(fitted.n_groups):
                for i, weights in enumerate(ridge.path(k, prior, PENALTIES)):
                    errors[i] += held.squared_error(k, weights)
            for penalty, error in zip(PENALTIES, errors, strict=True):
                if error < best["error"]:
                    best = {"error": error, "prior": name, "penalty": penalty, "varying": varying}
    del best["error"]
    _set(model, fitted, priors[best["prior"]], best["penalty"], best["varying"])
    return best


@torch.no_grad()
def refit_linear_path(
    model: ForecastModel,
    units: Units,
    rows: tuple[Tensor, Tensor],
    season: int,
    chosen: dict[str, Any],
) -> None:
    """Set the linear path from other rows, with what `fit_linear_path` has chosen."""
    prior = _naive_weights(model, units, season)[chosen["prior"]]
    sums = _Sums.of(model, units, rows)
    _set(model, sums, prior, chosen["penalty"], chosen["varying"])


def _set(model: ForecastModel, sums: _Sums, prior: Tensor, penalty: float, varying: bool) -> None:
    """Solve and store; coefficients that are not to vary are zero and are not trained."""
    ridge = _Ridge(sums, sums.design_size(varying))
    solved = [next(iter(ridge.path(k, prior, (penalty,)))) for k in range(sums.n_groups)]
    weights = torch.stack(solved, 1)  # (q, groups, m): (q, 1, h C) or (q, h, C)
    n_lags, n_design = sums.n_lags, sums.gram.shape[0]
    assert model.linear is not None
    model.linear.copy_(weights[:n_lags].flatten(1))
    if model.linear_varying is not None:
        parts = weights[n_lags:n_design].reshape(len(model.seasons), -1, weights[0].numel())
        model.linear_varying.copy_(parts.transpose(0, 1).flatten(1))
        model.linear_varying.requires_grad_(varying)
    if model.linear_known is not None:
        model.linear_known.copy_(weights[n_design:].transpose(0, 1))


@dataclass(frozen=True)
class _Sums:
    """Products of regressors and targets, summed over rows.

    The design of a step ahead is the lags, the lags of the targets times each season's
    autocorrelation, and the known futures of this step. Without known futures all steps
    have one design and are one group of m = h C outputs; with them m = C.
    """

    n_lags: int
    gram: Tensor  # (p, p) of the columns that all steps share
    mixed: Tensor  # (groups, p, n_known)
    inner: Tensor  # (groups, n_known, n_known)
    cross: Tensor  # (groups, p + n_known, m)
    square: Tensor  # (groups,)

    @classmethod
    def of(cls, model: ForecastModel, units: Units, origins: tuple[Tensor, Tensor]) -> _Sums:
        """Sums in float64, over a subset of the rows if there are many."""
        n_lags = units.values.shape[1] * units.window
        size = n_lags + len(model.seasons) * units.n_targets * units.window
        chosen = subset(len(origins[0]), max(min(ROWS_AT_MOST, VALUES_AT_MOST // size), 1))
        rows, starts = (part[chosen] for part in origins)
        values, _ = model.targets(units, rows, rows + model.horizon + 1)
        targets = values - units.level[rows][:, None, : units.n_targets]
        lags = units.lags(rows, starts)
        if model.seasons:
            own = lags[:, : units.n_targets * units.window]
            strength = model.season_strength(lags)
            lags = torch.cat([lags, *(s[:, None] * own for s in strength.T)], 1)
        if not model.known:
            known, targets = values.new_zeros(len(rows), 1, 0), targets.flatten(1)[:, None]
        else:
            known = model.known_futures(units, rows)
        moments = [
            torch.einsum("np,ngm->gpm", lags, targets), torch.einsum("nge,ngm->gem", known, targets)
        ]  # fmt: skip
        return cls(
            n_lags,
            lags.T @ lags,
            torch.einsum("np,nge->gpe", lags, known),
            torch.einsum("nge,ngf->gef", known, known),
            torch.cat(moments, 1),
            targets.square().sum((0, 2)),
        )

    @property
    def n_groups(self) -> int:
        """Groups of steps."""
        return len(self.cross)

    def design_size(self, varying: bool) -> int:
        """Columns that all steps share, with or without those whose coefficients vary."""
        return len(self.gram) if varying else self.n_lags

    def times(self, k: int, weights: Tensor) -> Tensor:
        """The Gram matrix of a group times weights (p + n_known, m)."""
        p = len(self.gram)
        first, last = weights[:p], weights[p:]
        shared = self.gram @ first + self.mixed[k] @ last
        return torch.cat([shared, self.mixed[k].T @ first + self.inner[k] @ last])

    def squared_error(self, k: int, weights: Tensor) -> float:
        """Sum of squares of what weights leave of the targets of a group."""
        doubled = 2 * self.cross[k] - self.times(k, weights)
        return float(self.square[k] - (weights * doubled).sum())


class _Ridge:
    """Ridge regressions on the first `size` shared columns and the known futures.

    The shared columns are decomposed once; the few known futures of a step join by their
    Schur complement.
    """

    def __init__(self, sums: _Sums, size: int) -> None:
        self._sums, self._size = sums, size
        values, self._vectors = torch.linalg.eigh(sums.gram[:size, :size])
        self._values = values.clamp(min=0)

    def path(self, k: int, prior: Tensor, penalties: Sequence[float]) -> Iterator[Tensor]:
        """Weights (p + n_known, m) of a group for each penalty, shrunk towards `prior`."""
        sums, p, size = self._sums, len(self._sums.gram), self._size
        start = torch.zeros_like(sums.cross[k])
        start[: sums.n_lags] = prior[:, k] if sums.n_groups > 1 else prior.flatten(1)
        rest = sums.cross[k] - sums.times(k, start)
        turned = self._vectors.T @ torch.cat([rest[:size], sums.mixed[k][:size]], 1)
        outputs, mixed = turned[:, : rest.shape[1]], turned[:, rest.shape[1] :]
        n_known = mixed.shape[1]
        total = self._values.sum() + sums.inner[k].diagonal().sum()
        unit = (total / (size + n_known)).clamp(min=1e-12)
        for penalty in penalties:
            shrunk = (self._values + penalty * unit)[:, None]
            border = sums.inner[k] + penalty * unit * torch.eye(n_known, dtype=rest.dtype)
            schur = border - mixed.T @ (mixed / shrunk)
            last = torch.linalg.solve(schur, rest[p:] - mixed.T @ (outputs / shrunk))
            weights = start.clone()
            weights[:size] += self._vectors @ ((outputs - mixed @ last) / shrunk)
            weights[p:] += last
            yield weights


def _naive_weights(model: ForecastModel, units: Units, season: int) -> dict[str, Tensor]:
    """Weights (p, h, C) that turn the linear path into a naive forecast."""
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
