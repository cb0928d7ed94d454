"""Preparation of a VARMA's data: units, refusals, standardisation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tsrnn.contract import SeriesArrays
from tsrnn.data import Panel, quote, quoted
from tsrnn.linear.varma._specification import Coefficients, Shape

_ZERO = 1e-10  # eigenvalue of a correlation matrix, also of regressors, that counts as zero
_NO_ERROR = 1e-7  # standard deviation of innovations of a standardised series that counts as zero
_INVOLVED = 0.05  # loading on an eigenvector from which a message names a series


def sample_of(
    shape: Shape, panel: Panel, seen: np.ndarray | None = None, presample: np.ndarray | None = None
) -> Sample:
    """Sample of a panel's series; the trend counts rows from `seen` (S,) on.

    The presample (S, n) is by default that of `presample_of`.
    """
    rows, longest = panel.lengths, int(panel.lengths.max())
    inside = np.arange(longest) < rows[:, None]
    y = np.full((panel.n_series, longest, shape.n), np.nan)
    y[inside] = panel.values
    exog = np.zeros((panel.n_series, longest, shape.n_exog))
    exog[inside] = panel.exog
    before = np.zeros(panel.n_series, int) if seen is None else seen
    design = np.concatenate([trend_of(shape, before, longest), exog], 2)
    if presample is None:
        presample = presample_of(shape, y)
    return Sample(shape, y, design, presample, rows)


def trend_of(shape: Shape, seen: np.ndarray, steps: int) -> np.ndarray:
    """Trend columns (S, steps, n_trend), 1 and t, of rows t = seen + 1, seen + 2, ..."""
    t = seen[:, None] + np.arange(1.0, steps + 1)
    return np.stack([np.ones_like(t), t], 2)[..., : shape.n_trend]


def presample_of(shape: Shape, y: np.ndarray) -> np.ndarray:
    """Least-squares trend (S, n) in the row before the first."""
    units, steps, n = y.shape
    result = np.zeros((units, n))
    if shape.exact or not shape.n_trend:
        return result
    X = trend_of(shape, np.zeros(1, int), steps)[0]
    for unit, i in np.ndindex(units, n):
        seen = np.isfinite(y[unit, :, i])
        result[unit, i] = np.linalg.lstsq(X[seen], y[unit, seen, i], rcond=None)[0][0]
    return result


def rows_of(panel: Panel, values: np.ndarray) -> np.ndarray:
    """Panel rows (rows, ...) from values (S, T, ...) by series."""
    return values[np.arange(values.shape[1]) < panel.lengths[:, None]]


@dataclass(frozen=True, eq=False)
class Sample:
    """Observations of U units, shorter ones padded at the end."""

    shape: Shape
    y: np.ndarray  # (U, T, n), NaN where missing; not read after a unit's end
    design: np.ndarray  # (U, T, n_design), trend and exogenous columns
    presample: np.ndarray  # (U, n), y before the first row under the conditional likelihood
    rows: np.ndarray  # (U,)

    @cached_property
    def inside(self) -> np.ndarray:
        """Mask (U, T) of the rows of each unit."""
        return np.arange(self.y.shape[1]) < self.rows[:, None]

    @cached_property
    def is_whole(self) -> bool:
        """True if no unit is padded."""
        return bool((self.rows == self.y.shape[1]).all())

    @cached_property
    def seen(self) -> np.ndarray:
        """Mask (U, T, n) of the observed values."""
        return ~np.isnan(self.y) & self.inside[..., None]

    @cached_property
    def n_missing(self) -> np.ndarray:
        """Number (U,) of missing entries."""
        return self.shape.n * self.rows - self.seen.sum((1, 2))

    @property
    def n_obs(self) -> np.ndarray:
        """Number (U,) of rows with an observed value."""
        return self.seen.any(2).sum(1)

    @cached_property
    def filled(self) -> np.ndarray:
        """Observations (U, T, n), zero where missing or padded."""
        return np.where(self.seen, self.y, 0.0)

    @cached_property
    def level(self) -> np.ndarray:
        """Row (U, n_design) of the design that determines the stationary mean of the first state.

        The second row, if there is one: in statsmodels' VARMAX the state at the first row is
        (y_1, ...), and its mean follows from the intercept that leads to the second row.
        """
        level = self.design[np.arange(len(self.rows)), np.minimum(1, self.rows - 1)]
        if self.shape.trend == "ct":  # the trend's second row exists even with one row of data
            level[self.rows == 1, 1] += 1.0
        return level

    @cached_property
    def sources(self) -> np.ndarray:
        """Regressors (U, T, n_design + p n): the design and lags 1 to p.

        With the exact likelihood, the unknown state contains the rows before the first and the
        design of the first row.
        """
        p, steps = self.shape.p, self.y.shape[1]
        design, before = self.design, self.presample
        if self.shape.exact:
            design, before = design.copy(), np.zeros_like(before)
            design[:, 0] = 0.0
        whole = np.concatenate([np.repeat(before[:, None], p, 1), self.filled], 1)
        lags = [whole[:, p - i : p - i + steps] for i in range(1, p + 1)]
        return np.concatenate([design, *lags], 2)

    @cached_property
    def missing(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and targets of missing values, which only a single unit may have."""
        if not self.n_missing.any():
            return np.empty(0, int), np.empty(0, int)
        if len(self.y) > 1:
            raise ValueError(f"units with missing values come one by one; got {len(self.y)}")
        times, targets = np.nonzero(~self.seen[0, : self.rows[0]])
        return times, targets

    def select(self, units: np.ndarray) -> Sample:
        """Sample of the given units, without padding beyond the longest."""
        if len(units) == len(self.y) and (units == np.arange(len(units))).all():
            return self  # keeps its cached properties
        rows = self.rows[units]
        steps = int(rows.max())
        parts = self.y[units, :steps], self.design[units, :steps], self.presample[units]
        return Sample(self.shape, *parts, rows)


def offsets(shape: Shape, design: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Trend and exogenous part w_t (U, T, n); zero in a first row that the state contains."""
    effect = design @ coefficients.swapaxes(1, 2)
    if shape.exact:
        effect[:, 0] = 0.0
    return effect


def unusable(sample: Sample, targets: list[str], exog: list[str]) -> dict[int, str]:
    """Reasons, by number, why units cannot be fitted."""
    reasons = {}
    for unit in range(len(sample.y)):
        rows = int(sample.rows[unit])
        y, design = sample.y[unit, :rows], sample.design[unit, :rows]
        reason = _refusal(sample.shape, y, design, targets, exog)
        if reason:
            reasons[unit] = reason
    return reasons


def _refusal(
    shape: Shape, y: np.ndarray, design: np.ndarray, targets: list[str], exog: list[str]
) -> str:
    """Reason why a unit cannot be fitted, empty if it can."""
    seen = np.isfinite(y)
    observed = int(seen.any(1).sum())
    slopes = shape.n_design + shape.n * (shape.p + shape.q)  # of an equation
    # With fewer rows a combination of the targets is fitted without error, and the likelihood is
    # unbounded.
    needed = max(2 * shape.lags + shape.k // shape.n + 2, shape.lags + slopes + shape.n + 1)
    if observed < needed:
        return (
            f"{shape.k} parameters of {shape.n} targets need at least {needed} observed rows; got "
            f"{observed}. Take a smaller order, fewer targets or a longer series."
        )
    for i, name in enumerate(targets):
        values = y[seen[:, i], i]
        if len(values) < 2 or np.ptp(values) == 0:
            what = "does not vary" if len(values) else "has no value"
            return f"the target {quote(name)} {what}. Leave it out."
    if not shape.exact and not seen.all():
        return (
            f"the conditional likelihood needs every value; {int((~seen).sum())} are missing. "
            "Take likelihood='exact', or fill them."
        )
    return _collinear_design(shape, design, exog)


def _collinear_design(shape: Shape, design: np.ndarray, exog: list[str]) -> str:
    """Reason why a unit with collinear regressors cannot be fitted, empty if they are not."""
    centred = design[:, min(1, shape.n_trend) :]
    if shape.n_trend:
        centred = centred - centred.mean(0)
    size = np.sqrt((centred**2).mean(0))
    if not len(size):
        return ""
    scaled = centred / np.where(size > 0, size, 1.0)
    if np.linalg.eigvalsh(scaled.T @ scaled / len(scaled))[0] > _ZERO:
        return ""
    columns = design.T[design.shape[1] - len(exog) :]
    still = [name for name, column in zip(exog, columns, strict=True) if np.ptp(column) == 0]
    if still:
        return (
            f"the exogenous column {quote(still[0])} does not vary over the rows of the series. "
            "Leave it out, or fit this series by itself without it."
        )
    return (
        f"the exogenous columns {quoted(exog)} are perfectly collinear, with each other or with "
        "the trend. Leave one out."
    )


def collinear_targets(spread: np.ndarray, targets: list[str]) -> dict[int, str]:
    """Reasons why units cannot be fitted, by standardised innovation covariances (U, n, n)."""
    size = np.sqrt(np.diagonal(spread, axis1=1, axis2=2))
    exact = size < _NO_ERROR
    scale = np.where(exact, 1.0, size)
    values, vectors = np.linalg.eigh(spread / (scale[:, :, None] * scale[:, None, :]))
    reasons = {}
    for unit in np.flatnonzero(exact.any(1) | (values[:, 0] < _ZERO)):
        if exact[unit].any():
            name = targets[int(exact[unit].argmax())]
            reasons[int(unit)] = (
                f"the target {quote(name)} is a function of the past without error. Leave it out."
            )
            continue
        involved = np.flatnonzero(np.abs(vectors[unit, :, 0]) > _INVOLVED)
        reasons[int(unit)] = (
            f"the targets {', '.join(quote(targets[i]) for i in involved)} are perfectly collinear "
            "given the past: one of them is a combination of the others. Leave one out."
        )
    return reasons


@dataclass(frozen=True, eq=False)
class Scaling(SeriesArrays):
    """Standardisation of the series of U units, an affine map of data and parameters.

    Series and regressors are centred if the model has a constant, and divided by their deviation.
    """

    location: np.ndarray  # (U, n), of the targets
    scale: np.ndarray  # (U, n)
    design: np.ndarray  # (U, n_design, n_design), maps rows of the design to standardised ones

    def standardised(self, sample: Sample) -> Sample:
        """Standardise a sample."""
        y = (sample.y - self.location[:, None]) / self.scale[:, None]
        design = sample.design @ self.design.swapaxes(1, 2)
        presample = (sample.presample - self.location) / self.scale
        return Sample(sample.shape, y, design, presample, sample.rows)

    def natural(self, shape: Shape, params: np.ndarray) -> np.ndarray:
        """Convert standardised parameters (U, k) to the scale of the data."""
        standard = shape.unpack(params)
        s = self.scale
        ratio = (s[:, :, None] / s[:, None, :])[:, None]
        ar = standard.ar * ratio
        design = s[:, :, None] * standard.design @ self.design
        if shape.n_trend:
            design[..., 0] += self._level(ar)
        return shape.pack(
            Coefficients(design, ar, standard.ma * ratio, s[:, :, None] * standard.chol)
        )

    def standard(self, shape: Shape, params: np.ndarray) -> np.ndarray:
        """Convert parameters (U, k) to standardised ones, the inverse of `natural`."""
        natural = shape.unpack(params)
        s = self.scale
        ratio = (s[:, :, None] / s[:, None, :])[:, None]
        design = natural.design.copy()
        if shape.n_trend:
            design[..., 0] -= self._level(natural.ar)
        design = np.linalg.solve(self.design.swapaxes(1, 2), design.swapaxes(1, 2))
        return shape.pack(
            Coefficients(
                design.swapaxes(1, 2) / s[:, :, None],
                natural.ar / ratio,
                natural.ma / ratio,
                natural.chol / s[:, :, None],
            )
        )

    def jacobian(self, shape: Shape) -> np.ndarray:
        """Derivative (U, k, k) of `natural`, which is affine."""
        units, k = len(self.scale), shape.k
        each = self.select(np.repeat(np.arange(units), k + 1))
        ends = each.natural(shape, np.tile(np.eye(k + 1, k), (units, 1)))
        ends = ends.reshape(units, k + 1, k)
        return (ends[:, :k] - ends[:, k:]).swapaxes(1, 2)

    def log_scale(self, sample: Sample) -> np.ndarray:
        """Log-Jacobian (U,): the standardised log-likelihood minus that of the data."""
        return (sample.seen.sum(1) * np.log(self.scale)).sum(1)

    def _level(self, ar: np.ndarray) -> np.ndarray:
        """Product (I - Phi_1 - ...) location, (U, n)."""
        return self.location - (ar.sum(1) @ self.location[..., None])[..., 0]


def fit_scaling(sample: Sample) -> Scaling:
    """Scaling by observed moments; a constant series is not divided."""
    shape, units = sample.shape, len(sample.y)
    location, scale = _moments(sample.y, sample.seen, centred=shape.n_trend > 0)
    design = np.tile(np.eye(shape.n_design), (units, 1, 1))
    first = min(1, shape.n_trend)
    columns = sample.design[..., first:]
    inside = np.broadcast_to(sample.inside[..., None], columns.shape)
    centre, spread = _moments(columns, inside, centred=shape.n_trend > 0)
    diagonal = np.arange(first, shape.n_design)
    design[:, diagonal, diagonal] = 1 / spread
    if shape.n_trend:
        design[:, diagonal, 0] = -centre / spread
    return Scaling(location, scale, design)


def _moments(
    values: np.ndarray, seen: np.ndarray, *, centred: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Means, zero unless centred, and standard deviations of observed values."""
    counts = np.maximum(seen.sum(1), 1)
    mean = np.where(seen, values, 0.0).sum(1) / counts
    deviations = np.where(seen, values - mean[:, None], 0.0)
    spread = np.sqrt((deviations**2).sum(1) / counts)
    spread = np.where(spread > 0, spread, 1.0)
    return (mean if centred else np.zeros_like(mean)), spread
