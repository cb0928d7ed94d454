"""First step of the estimation: means and variances, equation by equation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tsrnn.contract import SeriesArrays
from tsrnn.data import Panel, quote
from tsrnn.linear._estimates import Estimates
from tsrnn.linear._mean import Mean, Regression, regression
from tsrnn.linear._multivariate import collinear, scaled_to_unit_diagonal, series_of, too_few
from tsrnn.linear.dcc._specification import FirstStep, Specification, check_admissible
from tsrnn.linear.garch._filter import Past, filter_garch
from tsrnn.linear.garch._fit import Fit, fit_garch, garch_at
from tsrnn.linear.garch._prepare import from_first_value, shifted_back


@dataclass(frozen=True, eq=False)
class Sample:
    """Series with their first step, estimated or given."""

    units: np.ndarray  # (S,) their numbers
    design: Design
    equations: Equations


def sample_of(
    spec: Specification, panel: Panel, given: np.ndarray | None
) -> tuple[Sample | None, dict[int, str]]:
    """Run the first step on a panel; return usable series, and why others cannot be fitted."""
    series = series_of(panel)
    if given is not None:
        parts = spec.parts(given)
        units, design, refused = design_of(spec.mean, series, parts.beta)
        if refused:
            i, reason = next(iter(refused.items()))
            raise ValueError(f"series {quote(panel.ids.tolist()[i])}: {reason}")
        check_admissible(parts)
        first = np.concatenate([parts.coefficients, parts.variance], 2)
        with np.errstate(invalid="ignore", divide="ignore"):
            equations = equations_at(spec.step, design, first, spec.initial_variance)
        return Sample(units, design, equations), {}
    units, design, refused = design_of(spec.mean, series)
    reasons = {i: f"{reason}." for i, reason in refused.items()}
    short = [too_few(rows, spec.n, len(spec.names)) for rows in design.n_obs.tolist()]
    reasons |= {int(i): f"{why}." for i, why in zip(units, short, strict=True) if why}
    enough = np.flatnonzero([not why for why in short])
    units, design = units[enough], design.select(enough)
    if not len(units):
        return None, reasons
    equations = fit_equations(spec.step, design, spec.initial_variance, spec.stationary)
    lost = _refusals(spec, design, equations)
    reasons |= {int(units[i]): reason for i, reason in lost.items()}
    kept = np.setdiff1d(np.arange(len(units)), list(lost))
    if not len(kept):
        return None, reasons
    return Sample(units[kept], design.select(kept), equations.select(kept)), reasons


@dataclass(frozen=True, eq=False)
class Design(SeriesArrays):
    """S series of n variables as regressions, padded with zeros to a common length T."""

    response: np.ndarray  # (S, T, n)
    regressors: np.ndarray  # (S, T, r)
    coefficients: np.ndarray  # (S, n, r) of least squares
    beta: np.ndarray  # (S, n, rank), cointegrating vectors
    lengths: np.ndarray  # (S,)

    @property
    def observed(self) -> np.ndarray:
        """Mask (S, T) of the rows of each series."""
        return np.arange(self.response.shape[1]) < self.lengths[:, None]

    @property
    def gaps(self) -> bool:
        """True if values are missing."""
        return bool(np.isnan(self.response).any())

    @property
    def n_obs(self) -> np.ndarray:
        """Rows (S,) with a value."""
        return (~np.isnan(self.response).all(2) & self.observed).sum(1)

    @property
    def ragged(self) -> bool:
        """True if series differ in length."""
        return len(np.unique(self.lengths)) > 1

    def residuals(self, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Residuals (S n, T) at coefficients (S, n, r), and lengths (S n,), by variable."""
        e = self.response - self.regressors @ coefficients.swapaxes(1, 2)
        rows = np.ascontiguousarray(e.swapaxes(1, 2)).reshape(-1, e.shape[1])
        return rows, np.repeat(self.lengths, e.shape[2])

    def by_series(self, rows: np.ndarray, fill: float) -> np.ndarray:
        """Reshape variables (S n, T) to (S, T, n), with `fill` after the end of a series."""
        s, steps, n = self.response.shape
        values = rows.reshape(s, n, steps).swapaxes(1, 2)
        return np.where(self.observed[:, :, None], values, fill)


def design_of(
    mean: Mean, series: Sequence[np.ndarray], beta: np.ndarray | None = None
) -> tuple[np.ndarray, Design, dict[int, str]]:
    """Numbers and design of the usable series (T_i, n), and why others cannot be used.

    Cointegrating vectors `beta` (S, n, rank) are estimated if None.
    """
    regressions: dict[int, Regression] = {}
    reasons = {}
    for i, values in enumerate(series):
        try:
            regressions[i] = regression(mean, values, None if beta is None else beta[i])
        except ValueError as error:
            reasons[i] = str(error)
    parts = list(regressions.values())
    n = series[0].shape[1]
    r, rank = len(mean.names(range(n))) // n, mean.n_relations
    lengths = np.array([len(part.response) for part in parts], dtype=np.int64)
    longest = int(lengths.max(initial=0))
    response, regressors = np.zeros((len(parts), longest, n)), np.zeros((len(parts), longest, r))
    for i, part in enumerate(parts):
        response[i, : lengths[i]], regressors[i, : lengths[i]] = part.response, part.regressors
    coefficients = np.array([part.coefficients for part in parts]).reshape(len(parts), n, r)
    beta = np.array([part.beta for part in parts]).reshape(len(parts), n, rank)
    design = Design(response, regressors, coefficients, beta, lengths)
    return np.array(list(regressions), dtype=np.int64), design, reasons


@dataclass(frozen=True, eq=False)
class Equations(SeriesArrays):
    """First step of S series: parameters, residuals and variances."""

    coefficients: np.ndarray  # (S, n, r) of the mean
    variance: np.ndarray  # (S, n, k) parameters of the variance
    presample: np.ndarray  # (S, n) variance before the first observation
    e: np.ndarray  # (S, T, n) residuals, NaN if missing, zero after the end of a series
    h: np.ndarray  # (S, T, n) variances, one after the end of a series
    estimates: Estimates  # of S n univariate models

    @property
    def z(self) -> np.ndarray:
        """Standardised residuals, (S, T, n)."""
        return self.e / np.sqrt(self.h)

    def select(self, series: np.ndarray) -> Equations:
        """Equations of the given series."""
        n = self.variance.shape[1]
        units = (series[:, None] * n + np.arange(n)).ravel()
        return replace(super().select(series), estimates=self.estimates.select(units))


def fit_equations(
    step: FirstStep, design: Design, initial_variance: str | float, stationary: bool
) -> Equations:
    """Estimate all variances, with constant means, in one batch."""
    coefficients = np.zeros_like(design.coefficients) if step.joint else design.coefficients
    model = step.model(design.ragged, gaps=design.gaps, with_mean=True)
    y, lengths = from_first_value(*design.residuals(coefficients))
    fitted = fit_garch(model, y, lengths, initial_variance, stationary)
    return _equations_of(step, design, fitted)


def equations_at(
    step: FirstStep, design: Design, params: np.ndarray, initial_variance: str | float
) -> Equations:
    """Equations at given parameters (S, n, r + k), in place of a fit."""
    r = design.coefficients.shape[2]
    coefficients = np.zeros_like(design.coefficients) if step.joint else params[:, :, :r]
    y, lengths = from_first_value(*design.residuals(coefficients))
    univariate = (params if step.joint else params[:, :, r:]).reshape(len(y), -1)
    model = step.model(design.ragged, gaps=design.gaps, with_mean=True)
    fitted = garch_at(model, y, lengths, univariate, initial_variance)
    return _equations_of(step, replace(design, coefficients=params[:, :, :r]), fitted)


def _equations_of(step: FirstStep, design: Design, fitted: Fit) -> Equations:
    s, _, n = design.response.shape
    params = fitted.estimates.params.reshape(s, n, -1)
    coefficients, variance = design.coefficients, params
    if step.joint:
        coefficients, variance = params[:, :, :1], params[:, :, 1:]
    presample = fitted.presample.reshape(s, n)
    y, lengths = design.residuals(coefficients)
    rows = variance.reshape(len(y), -1), Past(presample.reshape(-1))
    model = step.model(design.ragged, gaps=design.gaps)
    parts = filter_garch(model, *rows, *from_first_value(y, lengths))
    e, h = (shifted_back(part, y, lengths) for part in parts)
    e, h = design.by_series(e, fill=0.0), design.by_series(h, fill=1.0)
    # The variance of a variable before its first value is the presample variance.
    h = np.where(np.isnan(h), presample[:, None], h)
    return Equations(coefficients, variance, presample, e, h, fitted.estimates)


def _refusals(spec: Specification, design: Design, equations: Equations) -> dict[int, str]:
    """Reasons, by series, why correlations cannot be estimated after the first step."""
    lost, n = {}, spec.n
    for i, rows in enumerate(design.lengths):
        units = equations.estimates.select(np.arange(i * n, (i + 1) * n))
        bad = np.flatnonzero(~units.fitted)
        if len(bad):
            why = (*units.messages[bad[0]], "no admissible parameters were found")[0]
            lost[i] = f"column {quote(spec.targets[bad[0]])}: {why}."
            continue
        z = equations.z[i, :rows]
        z = z[~np.isnan(z).any(1)]
        if len(z) <= n:
            lost[i] = f"{n} variables need more than {n} whole rows after lags; got {len(z)}."
        elif names := collinear(scaled_to_unit_diagonal(z.T @ z), spec.targets):
            lost[i] = (
                f"the columns {names} are collinear: after scaling by their volatility, one is "
                "a linear combination of the others. Drop one of them."
            )
    return lost
