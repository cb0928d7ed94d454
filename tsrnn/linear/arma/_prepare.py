"""Preparation of an ARMA's data: units, differences, standardisation, orthogonal regressors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tsrnn.contract import SeriesArrays
from tsrnn.data import Panel, quote
from tsrnn.linear.arma._polynomials import integration
from tsrnn.linear.arma._specification import Form, Specification

_BATCH = 2**22  # floats in the inputs of a batch: 32 MB
# Relative sizes of what rounding leaves: of a constant series, of a constant in differences of data
# 1e5 times as large, and of a collinear regressor after projection on the others.
_NOTHING, _STEADY, _COLLINEAR = 1e-13, 1e-10, 1e-10


def batches(panel: Panel) -> Iterator[np.ndarray]:
    """Batches of a panel's units by number, shortest first, which fit into memory."""
    lengths = np.repeat(panel.lengths, panel.values.shape[1])
    order = np.argsort(lengths, kind="stable")
    width = 1 + panel.exog.shape[1]
    start = 0
    while start < len(order):
        # All units of a batch are padded to its longest, the last: shrink the batch to fit.
        most = max(_BATCH // (width * lengths[order[start]]), 1)
        longest = lengths[order[start : start + most]][-1]
        end = start + max(_BATCH // (width * longest), 1)
        yield order[start:end]
        start = end


def unit_data(panel: Panel, units: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Values (n, T) of units, NaN after their ends, and exogenous columns (n, T, m) or None.

    Exogenous columns are 0 after the ends.
    """
    series, target = np.divmod(units, panel.values.shape[1])
    lengths = panel.lengths[series]
    longest = int(lengths.max())
    if (panel.lengths == longest).all():  # reshape, which is faster than indices
        values, exog = (
            part.reshape(panel.n_series, longest, part.shape[1])
            for part in (panel.values, panel.exog)
        )
        return values[series, :, target], exog[series] if exog.shape[2] else None
    steps = np.arange(longest)
    within = steps < lengths[:, None]
    rows = panel.indptr[series][:, None] + np.where(within, steps, lengths[:, None] - 1)
    y = np.where(within, panel.values[rows, target[:, None]], np.nan)
    if not panel.exog.shape[1]:
        return y, None
    return y, np.where(within[..., None], panel.exog[rows], 0)


def first_rows(values: np.ndarray) -> np.ndarray:
    """Row (N,) of the first value of each series (N, T); 0 without values."""
    return np.isfinite(values).argmax(1)


def from_row(values: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Shift series (N, T) to begin at rows `first` (N,), with NaN after their ends."""
    if not first.any():
        return values
    rows = np.arange(values.shape[1]) + first[:, None]
    inside = (rows >= 0) & (rows < values.shape[1])
    shifted = np.take_along_axis(values, np.where(inside, rows, 0), 1)
    return np.where(inside, shifted, np.nan)


def rows_of(panel: Panel, values: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Panel rows (rows, C) from batches, which are pairs of unit numbers and values (n, T)."""
    n_targets = panel.values.shape[1]
    result = np.full(panel.values.shape, np.nan)
    for units, part in values:
        series, target = np.divmod(units, n_targets)
        within = np.arange(part.shape[1]) < panel.lengths[series][:, None]
        rows = panel.indptr[series][:, None] + np.arange(part.shape[1])
        result[rows[within], np.broadcast_to(target[:, None], rows.shape)[within]] = part[within]
    return result


@dataclass(frozen=True, eq=False)
class Prepared(SeriesArrays):
    """Standardised series and the map back to the scale of the data.

    The m coefficients of the mean are ``shift + jacobian @ inner`` on the scale of the data, and
    sigma2 is ``scale ** 2`` times the inner value. Least-squares residuals of `still` series are
    only rounding. Those of `steady` series are constant: a unit root predicts them without error,
    and the exact likelihood of an autoregression is unbounded.
    """

    form: Form
    inputs: np.ndarray  # (N, T, inputs of the form)
    n_obs: np.ndarray  # (N,)
    scale: np.ndarray  # (N,)
    shift: np.ndarray  # (N, m)
    jacobian: np.ndarray  # (N, m, m)
    mean: np.ndarray  # (N, m), inner coefficients by least squares
    # (N, T'), residuals of differences, 0 where missing; None if the inputs are differences
    noise: np.ndarray | None
    gaps: bool
    skipped: np.ndarray  # (N,), observations before the likelihood begins
    still: np.ndarray  # (N,), mask
    steady: np.ndarray  # (N,), mask

    def select(self, units: np.ndarray) -> Prepared:
        """Prepared data of the given series."""
        return self if len(units) == len(self.n_obs) else super().select(units)  # no copy of all


def trend_and_regressors(spec: Specification, n_rows: int, exog: np.ndarray | None) -> np.ndarray:
    """Columns (N or 1, T, m) of drift and exogenous regressors, without the constant."""
    columns = []
    if "t" in spec.trend:
        columns.append(np.arange(1.0, n_rows + 1)[None, :, None])
    if exog is not None and exog.shape[2]:
        if columns:
            columns[0] = np.broadcast_to(columns[0], (*exog.shape[:2], 1))
        columns.append(exog)
    return np.concatenate(columns, axis=2) if columns else np.zeros((1, n_rows, 0))


def has_gaps(seen: np.ndarray) -> np.ndarray:
    """Mask (N,) of series with a missing row before an observed one; `seen` has shape (N, T)."""
    if seen.all():
        return np.zeros(len(seen), dtype=bool)
    return (seen[:, 1:] & ~seen[:, :-1]).any(1)


def first_run(seen: np.ndarray, length: int) -> np.ndarray:
    """Row (N,) at which the first `length` consecutive observations begin, T if there are none.

    `seen` (N, T) is the mask of observations.
    """
    n, n_rows = seen.shape
    if n_rows < length:
        return np.full(n, n_rows)
    counts = np.pad(seen.cumsum(1), ((0, 0), (1, 0)))
    whole = counts[:, length:] - counts[:, : n_rows + 1 - length] == length
    return np.where(whole.any(1), whole.argmax(1), n_rows)


def skipped(spec: Specification, seen: np.ndarray) -> np.ndarray:
    """Number (N,) of observations before the first d + m D consecutive ones."""
    before = np.arange(seen.shape[1]) < first_run(seen, spec.lost)[:, None]
    return np.count_nonzero(seen & before, axis=1)


def with_skipped(
    spec: Specification, counts: np.ndarray, messages: Sequence[tuple[str, ...]]
) -> tuple[tuple[str, ...], ...]:
    """Prepend a message to units with observations that are not in the likelihood."""
    return tuple(
        (
            f"{differences_of(spec)} the likelihood of a series with gaps begins at the first "
            f"{spec.lost} observations in a row; observations left out before them: {count}.",
            *texts,
        )
        if count
        else texts
        for count, texts in zip(counts.tolist(), messages, strict=True)
    )


def prepare(
    spec: Specification, y: np.ndarray, seen: np.ndarray, X: np.ndarray, gaps: bool
) -> tuple[Prepared | None, np.ndarray, dict[int, str]]:
    """Prepare series (N, T), all with gaps or all without.

    `seen` (N, T) is the mask of observations; regressors X (N or 1, T, m) are finite in every row.

    Returns prepared data (None if no series is usable), the numbers of the usable series, and
    reasons why others are not usable.
    """
    # Differencing loses d + 1 rows at each gap: series with gaps keep levels in the state instead.
    in_state = gaps and spec.lost > 0
    before = skipped(spec, seen) if in_state else np.zeros(len(y), np.int64)
    reasons = _refusals(spec, seen, before)
    kept = np.setdiff1d(np.arange(len(y)), list(reasons))
    if len(kept) == 0:
        return None, kept, reasons
    if reasons:
        y, seen, X = y[kept], seen[kept], X if len(X) == 1 else X[kept]
        before = before[kept]
    if in_state:
        y, X = _from_first(y, X, spec)
    elif spec.lost:
        y, X = differenced(spec, y), differenced(spec, X)
        if spec.constant:  # the differenced drift is the constant
            X = X[:, :, 1:]
    seen = np.isfinite(y) if spec.lost else seen
    prepared, degenerate = _standardised(spec, y, seen, X, gaps, in_state, before)
    reasons |= {int(kept[i]): reason for i, reason in degenerate.items()}
    fine = np.setdiff1d(np.arange(len(kept)), list(degenerate))
    return (prepared.select(fine) if len(fine) else None), kept[fine], reasons


def differenced(spec: Specification, values: np.ndarray) -> np.ndarray:
    """Difference the second axis d times by one row and D times by m rows."""
    values = np.diff(values, spec.d, axis=1)
    for _ in range(spec.D):
        values = values[:, spec.m :] - values[:, : -spec.m]
    return values


def _refusals(spec: Specification, seen: np.ndarray, before: np.ndarray) -> dict[int, str]:
    """Reasons, by number, why series are too short or have too many gaps.

    `before` (N,) counts observations that are not in the likelihood.
    """
    counts, reasons = np.count_nonzero(seen, axis=1), {}
    for i in np.flatnonzero(counts - before < spec.fewest):
        if 0 < counts[i] == before[i]:
            reasons[int(i)] = (
                f"{differences_of(spec)} the likelihood of a series with gaps begins at "
                f"{spec.lost} observations in a row, which this series does not have. Take fewer "
                "differences, or missing='interpolate'."
            )
            continue
        seasonal = f" and seasonal order {(spec.P, spec.D, spec.Q, spec.m)}" if spec.m else ""
        where = f" from the first {spec.lost} in a row on" if before[i] else ""
        reasons[int(i)] = (
            f"{len(spec.names)} parameters of order {(spec.p, spec.d, spec.q)}{seasonal} need at "
            f"least {spec.fewest} observations; the series has {counts[i] - before[i]}{where}. "
            "Take a lower order."
        )
    return reasons


def differences_of(spec: Specification) -> str:
    """Opening words of a message about differencing."""
    return f"with d = {spec.d}, D = {spec.D} and m = {spec.m}" if spec.D else f"with d = {spec.d}"


def _from_first(y: np.ndarray, X: np.ndarray, spec: Specification) -> tuple[np.ndarray, np.ndarray]:
    """Rows after the first d + m D consecutive ones, minus their extension by zero differences.

    The filter's starting levels are then zero, for all coefficients.
    """
    (N, T), lost = y.shape, spec.lost
    first = first_run(np.isfinite(y), lost)
    rows = np.minimum(first[:, None] + np.arange(T), T - 1)
    after = first[:, None] + np.arange(T) < T
    y = np.where(after, np.take_along_axis(y, rows, 1), np.nan)
    X = np.take_along_axis(np.broadcast_to(X, (N, *X.shape[1:])), rows[:, :, None], 1)
    if spec.D:
        return y[:, lost:] - _extended(y, spec), X[:, lost:] - _extended(X, spec)
    powers = np.arange(T)[:, None] ** np.arange(lost)
    through = powers[lost:] @ np.linalg.inv(powers[:lost].astype(float))
    return y[:, lost:] - y[:, :lost] @ through.T, X[:, lost:] - through @ X[:, :lost]


def _extended(values: np.ndarray, spec: Specification) -> np.ndarray:
    """Extend the first d + m D rows with differences of zero; the later rows."""
    path = np.array(values)
    weights = integration(spec.d, spec.D, spec.m)[::-1]
    for t in range(spec.lost, values.shape[1]):
        path[:, t] = np.tensordot(path[:, t - spec.lost : t], weights, (1, 0))
    return path[:, spec.lost :]


def _standardised(
    spec: Specification,
    y: np.ndarray,
    seen: np.ndarray,
    X: np.ndarray,
    gaps: bool,
    in_state: bool,
    before: np.ndarray,
) -> tuple[Prepared, dict[int, str]]:
    """Centre series and divide them by the deviation of their noise; with reasons for refusals."""
    masked = not seen.all()
    n_obs = np.count_nonzero(seen, axis=1)
    constant = spec.constant and not in_state
    levels = spec.d if in_state else 0
    form = Form(spec.p, spec.q, X.shape[2], constant, levels, masked, spec.P, spec.Q, spec.m)
    y = np.where(seen, y, 0.0) if masked else y
    # Orthogonal columns and unit variance make the search independent of the data's scale.
    given = X
    centre, X, orthogonal, collinear = _orthogonal(given, seen, n_obs, constant)
    middle = y.sum(1) / n_obs if constant else np.zeros(len(y))
    if constant:
        y = (y - middle[:, None]) * seen if masked else y - middle[:, None]
    size = np.sqrt(np.einsum("nt,nt->n", y, y) / n_obs + middle**2)
    slopes, noise, square, around = _least_squares(y, X, seen, spec if in_state else None)
    scale = np.sqrt(square)
    still = scale <= _NOTHING * size
    repeats = spec.exact and (spec.p or spec.P) and not spec.constant
    steady = (np.sqrt(around) <= _STEADY * scale) & ~still & bool(repeats)
    scale[still | collinear] = 1.0  # no division by zero
    scale[still] = np.where(size[still] > 0, size[still], 1.0)
    m = form.n_mean
    jacobian, shift = np.zeros((len(y), m, m)), np.zeros((len(y), m))
    jacobian[:, constant:, constant:] = orthogonal * scale[:, None, None]
    if constant:
        jacobian[:, 0, 0], shift[:, 0] = scale, middle
        jacobian[:, 0, 1:] = -(centre[:, None] @ jacobian[:, 1:, 1:])[:, 0]
    inputs = np.empty((*y.shape, len(form.inputs)))
    np.divide(y, scale[:, None], out=inputs[:, :, 0])
    inputs[:, :, 1 : 1 + X.shape[2]] = X
    if masked:
        inputs[:, :, -1] = seen
    mean = np.zeros((len(y), m))
    mean[:, constant:] = slopes / scale[:, None]
    if noise is not None:
        noise = noise / scale[:, None]
    prepared = Prepared(
        form, inputs, n_obs, scale, shift, jacobian, mean, noise, gaps, before,
        still & ~collinear, steady & ~collinear,
    )  # fmt: skip
    return prepared, _degenerate(collinear, given, seen, constant, spec)


def _orthogonal(
    X: np.ndarray, seen: np.ndarray, n_obs: np.ndarray, constant: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Orthogonalise regressors, so that X'X = n I over the observed rows.

    Returns means (N, m), 0 without a constant; orthogonal regressors (N, T, m); the matrix A
    (N, m, m) that maps centred regressors to them; a mask (N,) of series with collinear regressors.
    """
    N, T, m = len(seen), *X.shape[1:]
    if m == 0:
        return np.zeros((N, 0)), np.zeros((N, T, 0)), np.zeros((N, 0, 0)), np.zeros(N, dtype=bool)
    X = np.where(seen[:, :, None], X, 0.0)
    size = np.sqrt((X**2).sum(1))
    centre = X.sum(1) / n_obs[:, None] if constant else np.zeros((N, m))
    X = np.where(seen[:, :, None], X - centre[:, None], 0.0)
    Q, R = np.linalg.qr(X)
    diagonal = np.abs(np.diagonal(R, axis1=1, axis2=2))
    collinear = (diagonal <= _COLLINEAR * size).any(1) if m <= T else np.ones(N, dtype=bool)
    R[collinear] = np.eye(m)  # invertible; these series are refused later
    root = np.sqrt(n_obs)[:, None, None]
    return centre, Q * root, np.linalg.inv(R) * root, collinear


def _least_squares(
    y: np.ndarray, X: np.ndarray, seen: np.ndarray, spec: Specification | None
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray]:
    """Least squares; with `spec`, of the differenced series.

    Returns coefficients (N, m), residuals (N, T') or None without `spec`, and the residuals' mean
    square and variance, each (N,).
    """
    if spec is None:
        n_obs = np.count_nonzero(seen, axis=1)
        slopes = np.einsum("nt,ntm->nm", y, X) / n_obs[:, None]
        noise = y - np.einsum("ntm,nm->nt", X, slopes) if X.shape[2] else y
        square = np.einsum("nt,nt->n", noise, noise) / n_obs
        return slopes, None, square, _variance(noise, seen)
    if spec.D:  # the rows before are zero by construction, and count as observed
        before = ((0, 0), (spec.lost, 0))
        y, X = np.pad(y, before), np.pad(X, (*before, (0, 0)))
        seen = np.pad(seen, before, constant_values=True)
    y, X = differenced(spec, y), differenced(spec, X)
    for step in (1,) * spec.d + (spec.m,) * spec.D:
        seen = seen[:, step:] & seen[:, :-step]
    y, X = np.where(seen, y, 0.0), np.where(seen[:, :, None], X, 0.0)
    slopes = (np.linalg.pinv(X) @ y[:, :, None])[:, :, 0]
    noise = y - (X @ slopes[:, :, None])[:, :, 0]
    square = (noise**2).sum(1) / np.maximum(seen.sum(1), 1)
    return slopes, noise, square, _variance(noise, seen)


def _variance(noise: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Variance (N,) of residuals over the observed rows."""
    n_obs = np.maximum(np.count_nonzero(seen, axis=1), 1)
    away = np.where(seen, noise - (noise.sum(1) / n_obs)[:, None], 0.0)
    return np.einsum("nt,nt->n", away, away) / n_obs


def _degenerate(
    collinear: np.ndarray, X: np.ndarray, seen: np.ndarray, constant: bool, spec: Specification
) -> dict[int, str]:
    """Reasons why series with collinear regressors cannot be fitted."""
    names = (spec.trend_names + spec.regressors)[-X.shape[2] :]
    X = np.broadcast_to(X, (len(seen), *X.shape[1:]))
    reasons = {}
    for i in np.flatnonzero(collinear).tolist():
        dependent = [names[j] for j in _dependent(X[i, seen[i]], constant)]
        fault, remedy = f"the regressors {dependent} are collinear", "Drop one"
        if len(dependent) == 1:
            fault = f"the regressor {quote(dependent[0])} does not vary"
            remedy = "Leave it out, or fit this series by itself without it"
        reasons[i] = f"{fault} over the observations of the series. {remedy}."
    return reasons


def _dependent(X: np.ndarray, constant: bool) -> list[int]:
    """Places of the first linearly dependent columns of X (T, m), given the constant."""
    size = np.sqrt((X**2).sum(0))
    X = (X - constant * X.mean(0)) / np.where(size > 0, size, 1.0)
    for j in range(X.shape[1]):
        slopes = np.linalg.lstsq(X[:, :j], X[:, j], rcond=None)[0]
        rest = X[:, j] - X[:, :j] @ slopes
        if np.sqrt((rest**2).sum()) <= _COLLINEAR:
            # Larger slopes than rounding leaves of an independent column.
            return [*np.flatnonzero(np.abs(slopes) > np.sqrt(_COLLINEAR)).tolist(), j]
    return list(range(X.shape[1]))
