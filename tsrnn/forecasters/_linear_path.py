"""Linear path: ridge regression towards a naive forecast, with choice of window and form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._scaling import Standardised
from tsrnn.forecasters._settings import Settings
from tsrnn.forecasters._units import (
    Units,
    regression_origins,
    subset,
    units_of_each,
    validation_origins,
    validation_starts,
)

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)  # in mean eigenvalues of the Gram matrix
NEAR_TIE = 0.01  # relative difference of validation errors that is negligible
ROWS_TO_JUDGE = 500_000  # of all series: levels and sums are computed anew for each input size
VALUES_AT_MOST = 2**26  # in the design matrix of a fit: half a gigabyte
VALUES_AT_ONCE = 2**17  # in the design matrices of several fits, so that products stay in the cache
WIDE = 2**11  # columns of a design matrix above which priors are evaluated one by one

FitOrigins = tuple[Tensor, Tensor]  # rows, and the first row of the unit of each


def choose_linear_paths(
    settings: Sequence[Settings],
    rows: Sequence[Standardised],
    make: Callable[[Settings], ForecastModel],
) -> list[tuple[Settings, dict[str, Any]]]:
    """Choose the input size, local level and form (`best_forms`) of each path by validation error.

    All candidates of `input_sizes` forecast from the same origins. If a local level is optional
    (`local_levels`) and the path with it reverts to the mean of the series, the path without it is
    preferred unless it is worse: thresholds keep their place on that scale. Series that do not
    revert to a mean keep the local level, which follows them. For a fit with more than 500,000 rows
    a subset of the series decides. Only the shapes of the models of `make` are used.
    """
    samples = [_validated_sample(part, of_fit) for part, of_fit in zip(rows, settings, strict=True)]
    chosen: list[tuple[Settings, dict[str, Any]]] = [(s, {"error": np.inf}) for s in settings]
    for level in (True, False):
        # Grouped by `judges_level`, too: models that may revert have a further parameter.
        alike: dict[tuple[int, bool], dict[int, Settings]] = {}
        for i, (of_fit, form) in enumerate(chosen):
            if level not in of_fit.local_levels or not form.get("reverting", True):
                continue
            for size in of_fit.input_sizes:
                candidate = replace(of_fit, input_size=size, local_level=level)
                alike.setdefault((size, candidate.judges_level), {})[i] = candidate
        best: dict[int, tuple[Settings, dict[str, Any]]] = {}
        for key in sorted(alike):  # ascending, so that the smallest of equal sizes is chosen
            tried = alike[key]
            units = units_of_each([samples[i] for i in tried], list(tried.values()))
            train, validation = [], []
            for of_fit, part in zip(tried.values(), units, strict=True):
                split = validation_starts(part, of_fit)
                train.append(regression_origins(part, split, of_fit.horizon))
                validation.append(validation_origins(part, split, of_fit.horizon))
            first = next(iter(tried.values()))
            forms = best_forms(make(first), units, train, validation, first.season)
            for (i, of_fit), form in zip(tried.items(), forms, strict=True):
                pair = of_fit, form
                best[i] = min(best.get(i, pair), pair, key=lambda chosen: chosen[1]["error"])
        for i, pair in best.items():
            if pair[1]["error"] <= (1 + NEAR_TIE) * chosen[i][1]["error"]:
                chosen[i] = pair
    return chosen


def _validated_sample(rows: Standardised, settings: Settings) -> Standardised:
    """Sample of the series that are long enough to validate."""
    validated = np.flatnonzero(settings.training_rows(rows.lengths) < rows.lengths)
    most = max(1, len(validated) * ROWS_TO_JUDGE // int(rows.lengths[validated].sum()))
    if len(validated) == len(rows.lengths) <= most:
        return rows
    return rows.select(validated[subset(len(validated), most).numpy()])


@torch.no_grad()
def best_forms(
    model: ForecastModel,
    units: Sequence[Units],
    train: Sequence[FitOrigins],
    validation: Sequence[FitOrigins],
    season: int,
) -> list[dict[str, Any]]:
    r"""Form of the linear path of each fit with the least validation error.

    The shrinkage target A^0 is one of three naive forecasts: the level of the window, the last
    value, or the value one season earlier. The validation error chooses the target, the penalty,
    whether coefficients vary with the window's autocorrelations, and, if the validation part has
    ten windows, whether forecasts revert to the mean of the training part. With :math:`\Gamma = 0`
    they follow the window's level, as suits series without a mean.

    Units are in float64. `train` and `validation` are origins whose h targets all lie in the same
    part, and the first row of their unit. A form has the "prior" and "penalty", whether it is
    "varying" and "reverting", and the "error", the mean squared error of the validation targets.
    """
    best: list[dict[str, Any]] = [{"error": np.inf} for _ in units]
    named = _naive_weights(model, units[0], season)
    names, priors = list(named), torch.stack(list(named.values()))
    penalties = torch.tensor([PENALTIES], dtype=torch.float64)
    reverting = (False,) if model.linear_level is None else (False, True)
    for alike in _batches(range(len(units)), model, units, train):
        fitted, validated = (_Sums.of(model, units, of, alike) for of in (train, validation))
        for varying in (False, True) if model.seasons else (False,):
            ridge = _Ridge(fitted, len(fitted.gram[0]) if varying else fitted.n_lags)
            rotated = validated.rotated(ridge.vectors)  # once for all priors and penalties
            for of_level in reverting:
                border = fitted.inner.shape[-1] if of_level else 0
                errors = ridge.squared_errors(priors, rotated, penalties, border).flatten(1).numpy()
                least = errors.argmin(1)  # the first minimum
                for i, k, error in zip(alike, least.tolist(), errors.min(1).tolist(), strict=True):
                    if error < best[i]["error"]:
                        prior, penalty = divmod(k, len(PENALTIES))
                        best[i] = {"prior": names[prior], "penalty": PENALTIES[penalty]}
                        best[i] |= {"varying": varying, "reverting": of_level, "error": error}
        for i, count in zip(alike, validated.counts, strict=True):
            best[i]["error"] /= count
    return best


@torch.no_grad()
def fit_linear_paths(
    models: Sequence[Sequence[ForecastModel]],
    units: Sequence[Units],
    origins: Sequence[FitOrigins],
    season: int,
    forms: Sequence[dict[str, Any]],
) -> None:
    r"""Set the linear paths of the models of each fit by ridge regression.

    .. math:: \min_{A, \Gamma} \sum_t \sum_k \Big\| y_{t+k} - \ell_t
        - \Gamma_k' \ell_t - \Big( A_k + \sum_j \rho_{jt} A_{jk} \Big)' d_t \Big\|^2
        + \lambda \sum_k \Big( \| A_k - A_k^0 \|^2 + \sum_j \| A_{jk} \|^2
        + \| \Gamma_k \|^2 \Big)

    Coefficients that are absent from the form (`best_forms`) are zero and are not trained. The
    networks of a fit start with the same path. Units are in float64; all h targets of the origins
    are known.
    """
    groups: dict[Any, list[int]] = {}
    for i, (members, part, form) in enumerate(zip(models, units, forms, strict=True)):
        parts = members[0].linear_level is None, form["varying"], form["reverting"]
        groups.setdefault((part.window, *parts), []).append(i)
    for group in groups.values():
        model, form = models[group[0]][0], forms[group[0]]
        priors = _naive_weights(model, units[group[0]], season)
        for alike in _batches(group, model, units, origins):
            sums = _Sums.of(model, units, origins, alike)
            ridge = _Ridge(sums, len(sums.gram[0]) if form["varying"] else sums.n_lags)
            prior = torch.stack([priors[forms[i]["prior"]] for i in alike])
            penalty = prior.new_tensor([[forms[i]["penalty"]] for i in alike])
            border = sums.inner.shape[-1] if form["reverting"] else 0
            lags, joining = ridge.path(prior, penalty, border)
            lags = (ridge.vectors @ lags.flatten(2)).view_as(lags)[:, :, 0]
            for i, of_lags, joined in zip(alike, lags, joining[:, 0], strict=True):
                for member in models[i]:
                    _set_linear_path(member, of_lags, joined, form)


def _set_linear_path(
    model: ForecastModel, lags: Tensor, joining: Tensor, form: dict[str, Any]
) -> None:
    """Set the linear path to weights of the lags, shape (s, m), and of the levels, (b, m)."""
    assert model.linear is not None
    n_lags = len(model.linear)
    model.linear.copy_(lags[:n_lags])
    if model.linear_varying is not None:
        model.linear_varying.zero_()
        if form["varying"]:
            parts = lags[n_lags:].unflatten(0, (len(model.seasons), -1))
            model.linear_varying.copy_(parts.transpose(0, 1).flatten(1))
        model.linear_varying.requires_grad_(form["varying"])
    if model.linear_level is not None:
        model.linear_level.zero_()
        if form["reverting"]:
            model.linear_level.copy_(joining)
        model.linear_level.requires_grad_(form["reverting"])


def _batches(
    numbers: Sequence[int],
    model: ForecastModel,
    units: Sequence[Units],
    origins: Sequence[FitOrigins],
) -> Iterator[list[int]]:
    """Batches of positions of fits with similar numbers of rows."""
    order = sorted(numbers, key=lambda i: len(origins[i][0]))
    width = sum(_design_sizes(model, units[order[0]]))
    while order:
        count = max(1, VALUES_AT_ONCE // (len(origins[order[-1]][0]) * width))
        yield order[-count:]
        del order[-count:]


def _design_sizes(model: ForecastModel, units: Units) -> tuple[int, int]:
    """Number of columns of the lags, and of the target lags times autocorrelations."""
    n_lags = len(model.lagged) * units.window
    return n_lags, len(model.seasons) * units.n_targets * units.window


@dataclass(frozen=True, eq=False)
class _Sums:
    """Cross products of regressors and responses of R fits, summed over rows.

    The m = h C responses are regressed on p lags (the lags, and the target lags times the
    autocorrelation at each season) and on e levels of the targets.
    """

    n_lags: int
    counts: list[int]  # numbers of responses
    gram: Tensor  # (R, p, p) lags with lags
    mixed: Tensor  # (R, p, e) lags with levels
    inner: Tensor  # (R, e, e) levels with levels
    cross: Tensor  # (R, p, m) lags with responses
    level_cross: Tensor  # (R, e, m) levels with responses
    square: Tensor  # (R,) squares of the responses

    @classmethod
    def of(
        cls,
        model: ForecastModel,
        units: Sequence[Units],
        origins: Sequence[FitOrigins],
        numbers: Sequence[int],
    ) -> _Sums:
        """Cross products of the fits `numbers`, in float64, over a subset of many rows."""
        n_lags, n_varying = _design_sizes(model, units[numbers[0]])
        together = Units.concatenate([units[i] for i in numbers])
        most, offset = max(VALUES_AT_MOST // (n_lags + n_varying), 1), 0
        moved = []
        for i in numbers:
            chosen = subset(len(origins[i][0]), most)
            moved.append([part[chosen] + offset for part in origins[i]])
            offset += len(units[i].values)
        counts = torch.tensor([len(rows) for rows, _ in moved])
        there = torch.arange(int(counts.max())) < counts[:, None]
        padded = (pad_sequence(list(parts), True) for parts in zip(*moved, strict=True))
        rows, starts = (torch.where(there, part, part[:, :1]) for part in padded)
        values, _ = model.targets(together, rows, rows + model.horizon + 1)
        level = together.level[rows][..., : together.n_targets]
        targets = (values - level[..., None, :]).flatten(2)
        lags = together.lags(rows, starts, model.lagged)
        if model.seasons:
            target_lags = lags[..., : n_varying // len(model.seasons)]
            strength = model.season_strength(lags)
            lags = torch.cat([lags, *(s * target_lags for s in strength.split(1, -1))], -1)
        joining = level if model.linear_level is not None else level[..., :0]
        if not there.all():  # mask the padding of fits with fewer rows
            lags, joining, targets = (part * there[..., None] for part in (lags, joining, targets))
        transposed = lags.mT
        return cls(
            n_lags=n_lags,
            counts=(counts * targets.shape[2]).tolist(),
            gram=transposed @ lags,
            mixed=transposed @ joining,
            inner=joining.mT @ joining,
            cross=transposed @ targets,
            level_cross=joining.mT @ targets,
            square=targets.square().sum((1, 2)),
        )

    def rotated(self, vectors: Tensor) -> _Sums:
        """Rotate the first s lags to the basis of orthogonal vectors, shape (R, s, s)."""
        s, back = vectors.shape[1], vectors.mT
        return replace(
            self,
            gram=back @ self.gram[:, :s, :s] @ vectors,
            mixed=_rotate(back, self.mixed),
            cross=_rotate(back, self.cross),
        )

    def squared_errors(self, lags: Tensor, joining: Tensor) -> Tensor:
        """Sums of squared residuals y'y - 2 w'X'y + w'X'Xw, shape (R, L).

        The weights w of the lags have shape (R, s, L, m), of the first b levels (R, L, b, m).
        """
        b = joining.shape[2]
        size = (self.gram @ lags.flatten(2)).view_as(lags) - 2 * self.cross[:, :, None]
        size += 2 * torch.einsum("rse,rlem->rslm", self.mixed[..., :b], joining)
        of_border = self.inner[:, None, :b, :b] @ joining - 2 * self.level_cross[:, None, :b]
        sums = (size * lags).sum((1, 3)) + (of_border * joining).sum((2, 3))
        return self.square[:, None] + sums


class _Ridge:
    """Ridge regressions of R fits on their first `size` lags and some levels.

    One eigendecomposition of the lags serves all penalties; levels enter by a Schur complement.
    """

    def __init__(self, sums: _Sums, size: int) -> None:
        values, self.vectors = torch.linalg.eigh(sums.gram[:, :size, :size])
        self._sums, self._values = sums, values.clamp(min=0)  # negative by rounding alone
        back = self.vectors.mT
        self._mixed, self._cross = _rotate(back, sums.mixed), _rotate(back, sums.cross)

    def path(self, prior: Tensor, penalties: Tensor, border: int) -> tuple[Tensor, Tensor]:
        """Weights for penalties, (R or 1, L), shrunk towards a prior, (R or 1, n_lags, m).

        Returns the weights of the lags in the basis of the eigenvectors, (R, s, L, m), and of the
        first `border` levels, (R, L, border, m).
        """
        start, rest = self._from(prior[:, :, None])
        added = self._added(penalties, border)
        shrunk = (self._values[:, :, None] + added[:, None])[..., None]
        mixed, inner = self._mixed[..., :border], self._sums.inner[:, None, :border, :border]
        scaled = mixed[:, :, None] / shrunk
        schur = inner + added[..., None, None] * torch.eye(border, dtype=rest.dtype)
        schur -= torch.einsum("rse,rslf->rlef", mixed, scaled)
        last = self._sums.level_cross[:, None, :border]
        last = last - torch.einsum("rse,rsum->ruem", mixed, start)
        last = last - torch.einsum("rsle,rsum->rlem", scaled, rest)
        last = torch.linalg.solve(schur, last)
        lags = start + rest / shrunk
        return lags - torch.einsum("rsle,rlem->rslm", scaled, last), last

    def squared_errors(
        self, priors: Tensor, validated: _Sums, penalties: Tensor, border: int
    ) -> Tensor:
        """Sums of squared residuals for priors (P, n_lags, m) and penalties (1, L), (R, P, L).

        `validated` are the sums of other rows, `rotated` to the eigenvectors.
        """
        if len(priors) > 1 and (border or self._values.shape[1] > WIDE):  # to bound the memory
            parts = (validated, penalties, border)
            errors = [self.squared_errors(prior, *parts) for prior in priors.split(1)]
            return torch.cat(errors, 1)
        if border:
            return validated.squared_errors(*self.path(priors, penalties, border))[:, None]
        # The weights are a + f z, and a penalty changes only the s factors f: the quadratic form in
        # s m weights reduces to one in s factors.
        start, rest = (part.movedim(2, 1) for part in self._from(priors.movedim(0, 1)[None]))
        factors = 1 / (self._values[:, None] + self._added(penalties, 0)[..., None])[:, None]
        gram, cross = validated.gram[:, None], validated.cross[:, None]
        at_start = gram @ start
        constant = validated.square[:, None] + (start * (at_start - 2 * cross)).sum((2, 3))
        linear = 2 * (rest * (at_start - cross)).sum(3)
        quadratic = (rest @ rest.mT).mul_(gram)
        sums = factors * (linear[:, :, None] + factors @ quadratic)
        return constant[:, :, None] + sums.sum(3)

    def _from(self, priors: Tensor) -> tuple[Tensor, Tensor]:
        """Priors in the basis of the eigenvectors, and residual cross products, both (R, s, P, m).

        The priors have shape (R or 1, n_lags, P, m).
        """
        start = _rotate(self.vectors[:, : self._sums.n_lags].mT, priors)
        return start, self._cross[:, :, None] - self._values[..., None, None] * start

    def _added(self, penalties: Tensor, border: int) -> Tensor:
        """Penalties times the mean eigenvalue of the Gram matrix, shape (R, L)."""
        inner = self._sums.inner[:, :border, :border].diagonal(dim1=-2, dim2=-1)
        total = self._values.sum(1, keepdim=True) + inner.sum(1, keepdim=True)
        unit = (total / (self._values.shape[1] + border)).clamp(min=1e-12)  # if all are zero
        return penalties * unit


def _rotate(back: Tensor, columns: Tensor) -> Tensor:
    """Rotate the first s rows of columns, (R or 1, p, ...), by matrices (R, s, s)."""
    size = back.shape[2]
    return (back @ columns[:, :size].flatten(2)).unflatten(2, columns.shape[2:])


def _naive_weights(model: ForecastModel, units: Units, season: int) -> dict[str, Tensor]:
    """Weights that make the linear path a naive forecast, shape (n_lags, m), by name."""
    window, h, n_targets = units.window, model.horizon, units.n_targets
    shape = (len(model.lagged) * window, h, n_targets)
    step, target = torch.arange(h)[:, None], torch.arange(n_targets)
    priors = {"local level": torch.zeros(shape, dtype=torch.float64)}
    for name, period in {"last value": 1, "seasonal naive": season}.items():
        if period > window or (name == "seasonal naive" and period == 1):
            continue
        weights = priors[name] = torch.zeros(shape, dtype=torch.float64)
        weights[target * window + window - period + step % period, step, target] = 1.0
    return {name: weights.flatten(1) for name, weights in priors.items()}
