"""The first step: means and variances, equation by equation, of many series at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tsrnn.linear._estimates import Estimates
from tsrnn.linear._mean import Mean, Regression, level_form, regression
from tsrnn.linear.garch import _fit as garch
from tsrnn.linear.garch._density import Normal
from tsrnn.linear.garch._filter import run
from tsrnn.linear.garch._mean import Mean as OwnMean
from tsrnn.linear.garch._model import VOLATILITIES, Model


@dataclass(frozen=True)
class FirstStep:
    """What the first step is: a mean of all variables, and a variance for each.

    A constant mean is estimated together with the variance of its variable, as by GARCH; "var"
    and "vecm" are estimated by least squares, and variances from what these leave.
    """

    mean: Mean
    vol: str
    p: int
    q: int

    @property
    def joint(self) -> bool:
        """Whether mean and variance of a variable are estimated together."""
        return self.mean.kind == "constant"

    def model(self, padded: bool = False, *, with_mean: bool = False) -> Model:
        """The univariate model of the residuals, or of the data."""
        own = OwnMean(with_mean and self.joint)
        return Model(own, VOLATILITIES[self.vol], Normal(), self.p, self.q, padded)

    def names(self, targets: Sequence[object]) -> tuple[str, ...]:
        """Names of the parameters, equation by equation."""
        means = self.mean.names(targets)
        r = len(means) // len(targets)
        return tuple(
            name
            for i, target in enumerate(targets)
            for name in (
                *means[i * r : (i + 1) * r],
                *(f"{own}.{target}" for own in self.model().names),
            )
        )


@dataclass(frozen=True)
class Design:
    """S series of n variables as regressions, padded with zeros to a common length T.

    Parameters
    ----------
    response : array of shape (S, T, n)
    regressors : array of shape (S, T, r)
    coefficients : array of shape (S, n, r)
        By least squares.
    beta : array of shape (S, n, rank)
        Cointegrating vectors.
    lengths : integer array of shape (S,)
    """

    response: np.ndarray
    regressors: np.ndarray
    coefficients: np.ndarray
    beta: np.ndarray
    lengths: np.ndarray

    @property
    def observed(self) -> np.ndarray:
        """Where there are rows, (S, T)."""
        return np.arange(self.response.shape[1]) < self.lengths[:, None]

    def residuals(self, coefficients: np.ndarray) -> np.ndarray:
        """Residuals (S, T, n) at coefficients (S, n, r)."""
        return self.response - self.regressors @ coefficients.swapaxes(1, 2)

    def select(self, which: np.ndarray) -> Design:
        """Those of some series."""
        return Design(*(getattr(self, name)[which] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Equations:
    """Parameters of the first step of S series, and what they leave.

    Parameters
    ----------
    coefficients : array of shape (S, n, r)
        Of the mean.
    variance : array of shape (S, n, k)
        Parameters of the variance.
    presample : array of shape (S, n)
        Variance before the first observation.
    e, h : arrays of shape (S, T, n)
        Residuals, zero after the end of a series, and variances, one there.
    estimates : Estimates of S n units
        Of the univariate models.
    """

    coefficients: np.ndarray
    variance: np.ndarray
    presample: np.ndarray
    e: np.ndarray
    h: np.ndarray
    estimates: Estimates

    @property
    def z(self) -> np.ndarray:
        """Standardised residuals, (S, T, n)."""
        return self.e / np.sqrt(self.h)

    def select(self, which: np.ndarray) -> Equations:
        """Those of some series."""
        n = self.variance.shape[1]
        units = (which[:, None] * n + np.arange(n)).ravel()
        names = [name for name in self.__dataclass_fields__ if name != "estimates"]
        arrays = {name: getattr(self, name)[which] for name in names}
        return replace(self, **arrays, estimates=self.estimates.select(units))


def design(
    mean: Mean, series: Sequence[np.ndarray], beta: np.ndarray | None = None
) -> tuple[np.ndarray, Design, dict[int, str]]:
    """Set up series (T_i, n): numbers of those that can be used, and why the others cannot.

    Cointegrating vectors (S, n, rank) are estimated where they are not given.
    """
    found: dict[int, Regression] = {}
    reasons = {}
    for i, values in enumerate(series):
        try:
            found[i] = regression(mean, values, None if beta is None else beta[i])
        except ValueError as error:
            reasons[i] = str(error)
    parts = list(found.values())
    n = series[0].shape[1]
    lengths = np.array([len(part.response) for part in parts], dtype=np.int64)
    longest = int(lengths.max(initial=0))
    r, rank = len(mean.names(range(n))) // n, mean.n_relations
    whole = Design(
        _padded([part.response for part in parts], longest, n),
        _padded([part.regressors for part in parts], longest, r),
        np.array([part.coefficients for part in parts]).reshape(len(parts), n, r),
        np.array([part.beta for part in parts]).reshape(len(parts), n, rank),
        lengths,
    )
    return np.array(list(found), dtype=np.int64), whole, reasons


def fit_equations(
    step: FirstStep, data: Design, initial_variance: str | float, stationary: bool
) -> Equations:
    """Estimate all variances, and constant means, in one batch."""
    coefficients = np.zeros_like(data.coefficients) if step.joint else data.coefficients
    y, lengths = _units(data.residuals(coefficients)), _lengths(data)
    model = step.model(_ragged(data), with_mean=True)
    found = garch.fit(model, y, lengths, initial_variance, stationary)
    return _equations(step, data, found)


def equations_at(
    step: FirstStep,
    data: Design,
    params: np.ndarray,
    initial_variance: str | float,
) -> Equations:
    """Equations at parameters (S, n, r + k) in the place of a fit."""
    r = data.coefficients.shape[2]
    held = np.zeros_like(data.coefficients) if step.joint else params[:, :, :r]
    y, lengths = _units(data.residuals(held)), _lengths(data)
    own = params if step.joint else params[:, :, r:]
    model = step.model(_ragged(data), with_mean=True)
    found = garch.at_given(model, y, lengths, own.reshape(len(y), -1), initial_variance)
    given = replace(data, coefficients=params[:, :, :r])
    return _equations(step, given, found)


def residuals_and_variances(
    step: FirstStep,
    data: Design,
    coefficients: np.ndarray,
    variance: np.ndarray,
    presample: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Residuals and variances (S, T, n), 0 and 1 after the end of a series."""
    units = _units(data.residuals(coefficients))
    model = step.model(_ragged(data))
    e, h = run(
        model, variance.reshape(len(units), -1), presample.reshape(-1), units, _lengths(data)
    )
    seen = data.observed[:, :, None]
    return np.where(seen, _by_series(data, e), 0.0), np.where(seen, _by_series(data, h), 1.0)


def _equations(step: FirstStep, data: Design, found: garch.Fit) -> Equations:
    s, _, n = data.response.shape
    own = found.estimates.params.reshape(s, n, -1)
    if step.joint:
        coefficients, variance = own[:, :, :1], own[:, :, 1:]
    else:
        coefficients, variance = data.coefficients, own
    presample = found.presample.reshape(s, n)
    e, h = residuals_and_variances(step, data, coefficients, variance, presample)
    return Equations(coefficients, variance, presample, e, h, found.estimates)


def level_forms(
    mean: Mean, coefficients: np.ndarray, beta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Intercepts (S, n) and lag matrices (S, m, n, n) of the means in levels."""
    pairs = [level_form(mean, c, b) for c, b in zip(coefficients, beta, strict=True)]
    intercepts, lags = zip(*pairs, strict=True)
    return np.array(intercepts), np.array(lags)


def _padded(parts: list[np.ndarray], longest: int, columns: int) -> np.ndarray:
    whole = np.zeros((len(parts), longest, columns))
    for row, part in zip(whole, parts, strict=True):
        row[: len(part)] = part
    return whole


def _units(values: np.ndarray) -> np.ndarray:
    """Series (S n, T) of (S, T, n)."""
    return np.ascontiguousarray(values.swapaxes(1, 2)).reshape(-1, values.shape[1])


def _by_series(data: Design, units: np.ndarray) -> np.ndarray:
    s, steps, n = data.response.shape
    return units.reshape(s, n, steps).swapaxes(1, 2)


def _lengths(data: Design) -> np.ndarray:
    return np.repeat(data.lengths, data.response.shape[2])


def _ragged(data: Design) -> bool:
    return len(np.unique(data.lengths)) > 1
