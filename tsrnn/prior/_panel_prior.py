"""Prior of the coefficients in a panel, whose mean depends on static columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tsrnn.prior._regression import Moments

LEAST_VARIATION = 1e-12  # standard deviation over the largest value: below, rounding errors


class Product(NamedTuple):
    """Product of a term with a static column.

    Attributes
    ----------
    static : int
        Index of the static column.
    term : int
        Index of the term.

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
        Number of columns of the design matrix for each term, p in total.
    products : tuple of Product
        Terms whose coefficients depend on a static column: the nonzero elements of B.
    location, scale : ndarray of shape (n_static,)
        In-sample mean and standard deviation of each static column.
    coefficient : ndarray of shape (K,)
        The p elements of the mean, then the elements of B by product, for standardised static
        columns.
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
        """Prior in the units of the data, from coefficients in multiples of `unit`."""
        return replace(
            self, coefficient=self.coefficient * unit, covariance=self.covariance * unit**2,
            spread=self.spread * unit**2,
        )  # fmt: skip

    def multipliers(self, static: np.ndarray) -> np.ndarray:
        """Matrices (S, p, K) that map `coefficient` to the mean given `static` (S, n_static).

        Missing static columns are replaced by their mean.
        """
        standardised = standardise(static, self.location, self.scale)
        factors = [np.ones(len(static)), *(standardised[:, each.static] for each in self.products)]
        ends = self.widths.cumsum()
        columns = [np.arange(self.widths.sum())]
        columns += [np.arange(ends[j] - self.widths[j], ends[j]) for _, j in self.products]
        factor = np.repeat(np.stack(factors, 1), [len(part) for part in columns], 1)
        return factor[:, None] * (columns[0][:, None] == np.concatenate(columns))

    def centres(self, static: np.ndarray) -> np.ndarray:
        """Means (S, p) of the coefficients given static columns (S, n_static)."""
        return self.multipliers(static) @ self.coefficient

    def covariances(self, static: np.ndarray) -> np.ndarray:
        """Covariances (S, p, p) of the estimation errors of `centres`."""
        matrix = self.multipliers(static)
        return matrix @ self.covariance @ matrix.swapaxes(1, 2)


def static_scaling(static: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of static columns (S, n); 1 for constant columns."""
    observed = np.isfinite(static)
    count = np.maximum(observed.sum(0), 1)
    # Divided by the largest value, because squares of large values overflow.
    largest = np.abs(np.where(observed, static, 0.0)).max(0)
    largest = np.where(largest > 0, largest, 1.0)
    values = np.where(observed, static, 0.0) / largest
    location = values.sum(0) / count
    spread = np.sqrt((observed * (values - location) ** 2).sum(0) / count)
    return location * largest, np.where(spread > LEAST_VARIATION, spread * largest, 1.0)


def standardise(static: np.ndarray, location: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Standardise static columns (S, n); missing values become 0."""
    return np.where(np.isfinite(static), (static - location) / scale, 0.0)


def around_centre(units: Moments, strengths: np.ndarray) -> Moments:
    """Moments of the panel mean under J spreads of the coefficients of U units.

    The deviations from the mean are integrated out, so that a long unit does not dominate. The
    units have one scale and one noise model with variance 1; spreads take the axis of the noise
    models. `strengths` (J, p) belong to the prior of the deviations, in rows with the mean
    information; a row of infinite values means no deviations.
    """
    apart = np.isfinite(strengths).all(1)[:, None]
    prior = np.where(apart, strengths, 1.0) * units.unit_information[:, 0].mean(0)  # (J, p)
    factor = np.linalg.cholesky(units.information + prior[:, :, None] * np.eye(prior.shape[1]))
    root = np.linalg.inv(factor)  # (U, J, p, p)
    weighted = root * prior[:, None]
    fitted = (root @ units.products[:, 0, :, :, None])[..., 0]
    # A difference of two symmetric matrices, which is symmetric despite rounding.
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
    """Moments of the panel mean and of its products with `standardised` static columns (U, n).

    The result has (n + 1) p columns: the mean, then its products by static column. Static columns
    are constant in a unit, so that moments of products are multiples of the unit's moments. Other
    arguments are as in `around_centre`.
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
