"""Prior of the coefficients of a panel's series, whose mean depends on static columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tsrnn.prior._regression import Moments

LEAST_VARIATION = 1e-12  # of a static column over its largest value: below are rounding errors


class Product(NamedTuple):
    """Product of a term with a static column.

    Attributes
    ----------
    static : int
        Number of the static column.
    term : int
        Number of the term.

    Examples
    --------
    >>> from tsrnn.prior import Product
    >>> Product(static=0, term=2)
    Product(static=0, term=2)
    """

    static: int
    term: int


@dataclass(frozen=True, eq=False)
class PanelPrior:
    r"""Distribution of the coefficients of a series i, given its static columns :math:`z_i`.

    .. math:: \beta_i \sim N(\beta + B z_i, S)

    Attributes
    ----------
    widths : integer ndarray of shape (n_terms,)
        Columns of the regression that each term makes, p together.
    products : tuple of Product
        Terms whose coefficients depend on a static column: the elements of B that are not 0.
    location, scale : ndarray of shape (n_static,)
        Mean and standard deviation of each static column over the series fitted to.
    coefficient : ndarray of shape (K,)
        The p elements of the mean, and the elements of B product by product, of standardised
        static columns.
    covariance : ndarray of shape (K, K)
    spread : ndarray of shape (p,)
        Diagonal of S.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import PanelPrior, Product
    >>> prior = PanelPrior(
    ...     np.array([1]), (Product(0, 0),), np.array([10.0]), np.array([5.0]),
    ...     np.array([2.0, 0.5]), np.eye(2), np.zeros(1),
    ... )
    >>> prior.centres(np.array([[10.0], [20.0], [np.nan]])).tolist()
    [[2.0], [3.0], [2.0]]
    """

    widths: np.ndarray
    products: tuple[Product, ...]
    location: np.ndarray
    scale: np.ndarray
    coefficient: np.ndarray
    covariance: np.ndarray
    spread: np.ndarray

    def in_units_of_data(self, unit: float) -> PanelPrior:
        """Coefficients in the units of the data, of those in multiples of `unit`."""
        return replace(
            self, coefficient=self.coefficient * unit, covariance=self.covariance * unit**2,
            spread=self.spread * unit**2,
        )  # fmt: skip

    def multipliers(self, static: np.ndarray) -> np.ndarray:
        """Matrices (S, p, K) from `coefficient` to the mean of a series' coefficients.

        Series that lack a static column (S, n_static) have its mean.
        """
        standardised = standardise(static, self.location, self.scale)
        factors = [np.ones(len(static)), *(standardised[:, each.static] for each in self.products)]
        ends = self.widths.cumsum()
        columns = [np.arange(self.widths.sum())]
        columns += [np.arange(ends[j] - self.widths[j], ends[j]) for _, j in self.products]
        factor = np.repeat(np.stack(factors, 1), [len(part) for part in columns], 1)
        return factor[:, None] * (columns[0][:, None] == np.concatenate(columns))

    def centres(self, static: np.ndarray) -> np.ndarray:
        """Means (S, p) of the coefficients of series with static columns (S, n_static)."""
        return self.multipliers(static) @ self.coefficient

    def covariances(self, static: np.ndarray) -> np.ndarray:
        """Covariances (S, p, p) of the errors of `centres`."""
        matrix = self.multipliers(static)
        return matrix @ self.covariance @ matrix.swapaxes(1, 2)


def static_scaling(static: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of static columns (S, n); 1 where one does not vary."""
    observed = np.isfinite(static)
    count = np.maximum(observed.sum(0), 1)
    # Over the largest value: squares of large ones would overflow.
    largest = np.abs(np.where(observed, static, 0.0)).max(0)
    largest = np.where(largest > 0, largest, 1.0)
    values = np.where(observed, static, 0.0) / largest
    location = values.sum(0) / count
    spread = np.sqrt((observed * (values - location) ** 2).sum(0) / count)
    return location * largest, np.where(spread > LEAST_VARIATION, spread * largest, 1.0)


def standardise(static: np.ndarray, location: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Static columns (S, n) over their deviation from the mean, 0 where a value is missing."""
    return np.where(np.isfinite(static), (static - location) / scale, 0.0)


def around_centre(units: Moments, strengths: np.ndarray) -> Moments:
    """Moments of the centre that the coefficients of U units are spread around, by J spreads.

    Their deviations from it are integrated out: what many rows of a unit say of its own
    coefficients says no more of the centre than the spread allows. The spreads take the place of
    the noise models.

    Parameters
    ----------
    units : Moments
        On one scale, under one noise model of variance 1.
    strengths : ndarray of shape (J, p)
        Rows, of the mean information, that the prior of each deviation counts as; infinite, all
        of them, for none.
    """
    apart = np.isfinite(strengths).all(1)[:, None]
    prior = np.where(apart, strengths, 1.0) * units.unit_information[:, 0].mean(0)  # (J, p)
    factor = np.linalg.cholesky(units.information + prior[:, :, None] * np.eye(prior.shape[1]))
    root = np.linalg.inv(factor)  # (U, J, p, p)
    weighted = root * prior[:, None]
    fitted = (root @ units.products[:, 0, :, :, None])[..., 0]
    # The difference of two matrices that are symmetric is one, whatever is rounded.
    marginal = prior[:, :, None] * np.eye(prior.shape[1]) - weighted.swapaxes(-1, -2) @ weighted
    products = (weighted.swapaxes(-1, -2) @ fitted[..., None])[..., 0]
    constant = 0.5 * np.log(prior).sum(-1) - np.log(np.einsum("ujkk->ujk", factor)).sum(-1)
    return Moments(
        np.where(apart[..., None], marginal, units.information),
        np.where(apart, products, units.products[:, 0])[:, None],
        units.squares - np.where(apart[:, 0], (fitted**2).sum(-1), 0.0)[:, None],
        units.constant + np.where(apart[:, 0], constant, 0.0)[:, None],
        units.degrees,
    )


def by_static(units: Moments, standardised: np.ndarray, strengths: np.ndarray) -> Moments:
    """Moments of a panel's centre and of its products with static columns, as of one unit.

    The spread of the coefficients of units around the centre takes the place of the noise models.
    Static columns are constant in a unit, so that moments of a product are multiples of its own.

    Parameters
    ----------
    units : Moments
        As `around_centre` takes them.
    standardised : ndarray of shape (U, n)
        Static columns.
    strengths : ndarray of shape (J, p)
        Of J spreads, as `around_centre` takes them.

    Returns
    -------
    Moments
        Of (n + 1) p columns: those of the centre, and their products static column by static
        column.
    """
    factors = np.column_stack([np.ones(len(standardised)), standardised])
    part = around_centre(units, strengths)
    n_columns = factors.shape[1] * part.products.shape[-1]
    information = np.einsum("ua,ub,ujkl->jakbl", factors, factors, part.information, optimize=True)
    products = np.einsum("ua,ujk->jak", factors, part.products[:, 0])
    return Moments(
        information.reshape(1, len(strengths), n_columns, n_columns),
        products.reshape(1, 1, len(strengths), n_columns),
        part.squares.sum(0, keepdims=True),
        part.constant.sum(0, keepdims=True),
        part.degrees.sum(keepdims=True),
    )
