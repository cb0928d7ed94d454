"""The linear path in closed form: ridge regression towards a naive forecast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._subset import subset
from tsrnn.forecasters._units import Units

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)  # times the mean eigenvalue of the Gram
ROWS_AT_MOST = 200_000
VALUES_AT_MOST = 2**26  # of the design: half a gigabyte


class _Sample(NamedTuple):
    lags: Tensor  # (n, p)
    known: Tensor  # (n, h, n_known)
    targets: Tensor  # (n, h, C)


@torch.no_grad()
def fit_linear_path(
    model: ForecastModel,
    units: Units,
    train: tuple[Tensor, Tensor],
    validation: tuple[Tensor, Tensor],
    season: int,
) -> dict[str, float | str]:
    r"""Set the linear path by ridge regression, the penalty chosen on the validation rows.

    .. math:: \min_{A, B} \sum_t \sum_k \| y_{t+k} - \ell_t - A_k' d_t - B_k' \tilde x_{t+k} \|^2
        + \lambda \sum_k (\| A_k - A_k^0 \|^2 + \| B_k \|^2)

    The target A^0 of the shrinkage is one of three naive forecasts: the level of the
    window, the last value, the value a season before.

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
        The chosen "prior" and "penalty".
    """
    sample, held = _sample(model, units, train), _sample(model, units, validation)
    best = (float("inf"), "", 0.0, *_empty(model))
    for name, prior in _naive_weights(model, units, season).items():
        for penalty, lag_weights, known_weights in _towards(prior, sample, PENALTIES):
            fitted = torch.einsum("np,phc->nhc", held.lags, lag_weights)
            fitted += torch.einsum("nhe,hec->nhc", held.known, known_weights)
            error = float((held.targets - fitted).square().mean())
            if error < best[0]:
                best = (error, name, penalty, lag_weights, known_weights)
    _set(model, best[3], best[4])
    return {"prior": best[1], "penalty": best[2]}


@torch.no_grad()
def refit_linear_path(
    model: ForecastModel,
    units: Units,
    rows: tuple[Tensor, Tensor],
    season: int,
    chosen: dict[str, float | str],
) -> None:
    """Set the linear path from other rows, with what `fit_linear_path` has chosen."""
    sample = _sample(model, units, rows)
    prior = _naive_weights(model, units, season)[str(chosen["prior"])]
    ((_, lag_weights, known_weights),) = _towards(prior, sample, (float(chosen["penalty"]),))
    _set(model, lag_weights, known_weights)


def _set(model: ForecastModel, lag_weights: Tensor, known_weights: Tensor) -> None:
    assert model.linear is not None
    model.linear.copy_(lag_weights.flatten(1))
    if model.linear_known is not None:
        model.linear_known.copy_(known_weights)


def _towards(
    prior: Tensor, sample: _Sample, penalties: Sequence[float]
) -> Iterator[tuple[float, Tensor, Tensor]]:
    """Penalties with the weights that are shrunk towards `prior`."""
    rest = sample.targets - (sample.lags @ prior.flatten(1)).view_as(sample.targets)
    for penalty, lag_weights, known_weights in _ridge_path(sample, rest, penalties):
        yield penalty, lag_weights + prior, known_weights


def _sample(model: ForecastModel, units: Units, origins: tuple[Tensor, Tensor]) -> _Sample:
    """Regression data in float64, of a subset of the rows if there are many."""
    n_lags = units.values.shape[1] * units.window
    most = min(ROWS_AT_MOST, VALUES_AT_MOST // n_lags)
    chosen = subset(len(origins[0]), max(most, 1))
    rows, starts = (part[chosen] for part in origins)
    values, _ = model.targets(units, rows, rows + model.horizon + 1)
    targets = values - units.level[rows][:, None, : units.n_targets]
    known = (
        model.known_futures(units, rows) if model.known else values.new_zeros(*values.shape[:2], 0)
    )
    return _Sample(units.lags(rows, starts), known, targets)


def _ridge_path(
    sample: _Sample, targets: Tensor, penalties: Sequence[float]
) -> list[tuple[float, Tensor, Tensor]]:
    """Weights of lags (p, h, C) and of known futures (h, n_known, C) for every penalty."""
    lags, known, _ = sample
    n_lags, n_known = lags.shape[1], known.shape[2]
    gram = lags.T @ lags
    cross = torch.einsum("np,nhe->hpe", lags, known)
    inner = torch.einsum("nhe,nhf->hef", known, known)
    moments = torch.cat(
        [torch.einsum("np,nhc->hpc", lags, targets), torch.einsum("nhe,nhc->hec", known, targets)],
        1,
    )
    # Without known futures all steps have one Gram matrix.
    steps: Iterable[int | slice] = range(targets.shape[1]) if n_known else [slice(None)]
    solved: list[list[Tensor]] = [[] for _ in penalties]
    for k in steps:
        full = gram
        if n_known:
            full = torch.cat(
                [torch.cat([gram, cross[k]], 1), torch.cat([cross[k].T, inner[k]], 1)], 0
            )
        values, vectors = torch.linalg.eigh(full)
        values = values.clamp(min=0)
        unit = values.mean().clamp(min=1e-12)
        rotated = vectors.T @ moments[k]
        for i, penalty in enumerate(penalties):
            weights = vectors @ (rotated / (values + penalty * unit)[:, None])
            solved[i].append(weights)
    path = []
    for penalty, per_step in zip(penalties, solved, strict=True):
        weights = torch.stack(per_step) if n_known else per_step[0]  # (h, p + n_known, C)
        path.append((penalty, weights[:, :n_lags].transpose(0, 1), weights[:, n_lags:]))
    return path


def _empty(model: ForecastModel) -> tuple[Tensor, Tensor]:
    shape = (model.horizon, model.n_targets)
    assert model.linear is not None
    return (
        torch.zeros(model.linear.shape[0], *shape, dtype=torch.float64),
        torch.zeros(shape[0], len(model.known), shape[1], dtype=torch.float64),
    )


def _naive_weights(model: ForecastModel, units: Units, season: int) -> dict[str, Tensor]:
    """Weights (p, h, C) that turn the linear path into a naive forecast."""
    window, empty = units.window, _empty(model)[0]
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
