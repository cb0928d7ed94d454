"""Prior of the coefficients of a panel's series, whose mean depends on static columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tsrnn.prior._regression import Moments

LEAST_VARIATION = 1e-12  # of a static column over its largest value: below are rounding errors


class Product(NamedTuple):
    """Product of a term with a static column, each by its number."""

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
    relative : bool
        True if coefficients are in multiples of a series' mean change.

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
    relative: bool = True

    def in_units_of_data(self, unit: float) -> PanelPrior:
        """Coefficients in the units of the data, of those in multiples of `unit`."""
        return replace(
            self, coefficient=self.coefficient * unit, covariance=self.covariance * unit**2,
            spread=self.spread * unit**2, relative=False,
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


def around_centre(units: Moments, strength: np.ndarray) -> Moments:
    """Moments of the centre that the coefficients of U units are spread around.

    Their deviations from it are integrated out: what many rows of a unit say of its own
    coefficients says no more of the centre than the spread allows.

    Parameters
    ----------
    units : Moments
        On one scale, under one noise model of variance 1.
    strength : ndarray of shape (p,)
        Rows that the prior of each deviation counts as; infinite, all of them, for none.
    """
    if not np.isfinite(strength).all():
        return units
    prior = strength * units.unit_information[:, 0]  # (U, p)
    information, products = units.information[:, 0], units.products[:, 0, 0]
    precision = information + prior[:, :, None] * np.eye(prior.shape[1])
    right = np.concatenate([information, products[..., None]], -1)
    solved = np.linalg.solve(precision, right)
    marginal = prior[..., None] * solved
    constant = 0.5 * (np.log(prior).sum(-1) - np.linalg.slogdet(precision)[1])
    return Moments(
        (marginal[..., :-1] + marginal[..., :-1].swapaxes(1, 2))[:, None] / 2,
        marginal[:, None, None, :, -1],
        units.squares - (products * solved[..., -1]).sum(-1)[:, None, None],
        units.constant + constant[:, None, None],
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
    information, products, squares, constant = [], [], [], []
    n_columns = factors.shape[1] * units.products.shape[-1]
    for strength in strengths:
        part = around_centre(units, strength)
        crossed = np.einsum("ua,ub,ukl->akbl", factors, factors, part.information[:, 0],
                            optimize=True)  # fmt: skip
        information.append(crossed.reshape(n_columns, n_columns))
        products.append((factors.T @ part.products[:, 0, 0]).ravel())
        squares.append(part.squares.sum())
        constant.append(part.constant.sum())
    return Moments(
        np.stack(information)[None],
        np.stack(products)[None, None],
        np.array(squares)[None, None],
        np.array(constant)[None, None],
        units.degrees.sum(keepdims=True),
    )
