"""Simulation of columns whose future is known, and of their effects on series."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tsrnn.contract import positive_integer, seed_of
from tsrnn.prior._distributions import innovations, loguniform
from tsrnn.prior._linear import arma_paths
from tsrnn.prior._seasons import season_shapes
from tsrnn.prior._terms import LONGEST_LAG, moving_averages

Column = Callable[[np.random.Generator, int, int, int], np.ndarray]
Response = Callable[[np.random.Generator, np.ndarray, int], np.ndarray]

_BURN_IN = 50
_LARGEST_LOG = 1.5  # log of the largest factor: promotions multiply sales by at most 4.5


def stationary_column(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    r"""AR(1) processes with variance one, like rates and surveys.

    .. math:: x_t = \rho x_{t-1} + \sqrt{1 - \rho^2} \varepsilon_t, \qquad \rho \sim U(0, 0.95)
    """
    rho = rng.uniform(0, 0.95, (1, n_series))
    noise = innovations(rng, n_series, n_rows + _BURN_IN) * np.sqrt(1 - rho**2)
    return arma_paths(rho, np.empty((0, n_series)), noise)[_BURN_IN:].T


def wandering_column(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    r"""Random walks with drift, like incomes and prices.

    .. math:: x_t = x_{t-1} + \mu + \varepsilon_t, \qquad \mu \sim N(0, 0.3^2)
    """
    drift = rng.normal(0, 0.3, n_series)
    return (innovations(rng, n_series, n_rows) + drift).cumsum(0).T


def weather_column(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    r"""Seasons with persistent deviations, like temperatures.

    .. math:: x_t = s_{t \bmod m} + a x^\circ_t, \qquad a \sim U(0.2, 1)

    with a smooth season s of variance one and :math:`x^\circ` from `stationary_column`. Without a
    season the column is :math:`x^\circ`.
    """
    deviation = stationary_column(rng, n_series, n_rows, season_length)
    if season_length == 1:
        return deviation
    season = season_shapes(rng, n_series, season_length, ("harmonics",))
    rows = np.arange(n_rows) % season_length
    return season[rows].T + rng.uniform(0.2, 1, (n_series, 1)) * deviation


def promotion_column(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    """Indicators of spells of one to four rows, which cover 5 to 40 percent of the rows."""
    share = loguniform(rng, 0.05, 0.4, n_series)
    length = rng.integers(1, 5, n_series)
    begins = rng.random((n_rows, n_series)) < share / length
    lasts = np.stack([np.roll(begins, lag, 0) & (lag < length) for lag in range(4)])
    return lasts.any(0).T.astype(float)


def holiday_column(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    """Indicators of one row of each season, a row later in some seasons of half of the series.

    Without a season the distances are geometric with mean 12.
    """
    if season_length == 1:
        return (rng.random((n_series, n_rows)) < 1 / 12).astype(float)
    n_seasons = n_rows // season_length + 1
    row = rng.integers(0, season_length, (n_series, 1)) + season_length * np.arange(n_seasons)
    moves = rng.random((n_series, 1)) < 0.5
    row = row + (moves & (rng.random((n_series, n_seasons)) < 0.4))
    values = np.zeros((n_series, n_rows + season_length + 1))
    np.put_along_axis(values, row, 1.0, 1)
    return values[:, :n_rows]


def law_column(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    """Steps from 0 to 1, like a law that comes into force."""
    begins = rng.integers(1, n_rows, (n_series, 1)) if n_rows > 1 else np.zeros((n_series, 1))
    return (np.arange(n_rows) >= begins).astype(float)


# Name -> column and its share.
COLUMNS: dict[str, tuple[Column, float]] = {
    "stationary": (stationary_column, 0.25),
    "wandering": (wandering_column, 0.2),
    "weather": (weather_column, 0.2),
    "promotion": (promotion_column, 0.2),
    "holiday": (holiday_column, 0.1),
    "law": (law_column, 0.05),
}


def no_response(rng: np.random.Generator, columns: np.ndarray, number: int) -> np.ndarray:
    """Zeros of an irrelevant column."""
    return np.zeros(columns.shape[:2])


def linear_response(rng: np.random.Generator, columns: np.ndarray, number: int) -> np.ndarray:
    """Values of the column."""
    return columns[..., number]


def threshold_response(rng: np.random.Generator, columns: np.ndarray, number: int) -> np.ndarray:
    """Excess of the column over a quantile between 20 and 80 percent, as in cooling demand."""
    values = columns[..., number]
    probability = rng.uniform(0.2, 0.8)
    return np.maximum(values - np.quantile(values, probability, 1, keepdims=True), 0.0)


def squared_response(rng: np.random.Generator, columns: np.ndarray, number: int) -> np.ndarray:
    """Squared distance of the column from its mean."""
    values = columns[..., number]
    return (values - values.mean(1, keepdims=True)) ** 2


def late_response(rng: np.random.Generator, columns: np.ndarray, number: int) -> np.ndarray:
    """Column lagged by one to six rows."""
    lag = rng.integers(1, LONGEST_LAG + 1)
    values = columns[..., number]
    return np.concatenate([np.repeat(values[:, :1], lag, 1), values[:, :-lag]], 1)


def lasting_response(rng: np.random.Generator, columns: np.ndarray, number: int) -> np.ndarray:
    """Exponentially weighted average of the column with a decay uniform on (0.4, 0.95)."""
    values = columns[..., number].T
    return moving_averages(values, rng.uniform(0.4, 0.95), values[0]).T


def product_response(rng: np.random.Generator, columns: np.ndarray, number: int) -> np.ndarray:
    """Product of the column with another one, or the column if it is the only one."""
    others = np.delete(np.arange(columns.shape[2]), number)
    if not len(others):
        return columns[..., number]
    return columns[..., number] * columns[..., rng.choice(others)]


# Name -> response and its share.
RESPONSES: dict[str, tuple[Response, float]] = {
    "none": (no_response, 0.3),
    "linear": (linear_response, 0.35),
    "threshold": (threshold_response, 0.08),
    "squared": (squared_response, 0.08),
    "late": (late_response, 0.08),
    "lasting": (lasting_response, 0.06),
    "product": (product_response, 0.05),
}


@dataclass(frozen=True, eq=False)
class SimulatedColumns:
    """Simulated series with columns and their true effects.

    Attributes
    ----------
    values : ndarray of shape (n_series, n_rows)
        Series with the effects.
    columns : ndarray of shape (n_series, n_rows, n_columns)
    effects : ndarray of shape (n_series, n_rows, n_columns)
        Effect of each column, on the logarithm of the series if `factors`.
    factors : boolean ndarray of shape (n_series,)
        Mask of the series whose effects are factors.
    kinds, responses : tuple of str
        Kind and response of each column, by their names in `COLUMNS` and `RESPONSES`.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import ColumnPrior
    >>> simulated = ColumnPrior().sample(np.arange(20.0)[None], n_columns=2)
    >>> type(simulated).__name__, len(simulated.kinds)
    ('SimulatedColumns', 2)
    """

    values: np.ndarray
    columns: np.ndarray
    effects: np.ndarray
    factors: np.ndarray
    kinds: tuple[str, ...]
    responses: tuple[str, ...]


@dataclass(frozen=True)
class ColumnPrior:
    r"""Prior of columns whose future is known, and of their effects on series.

    .. math:: y_t = n_t + \sum_j \beta_j f_j(x_{1:t, j}) \quad \text{or} \quad
        y_t = n_t \exp \sum_j \beta_j f_j(x_{1:t, j})

    Columns are autoregressions, random walks, seasonal weather, promotions, moving holidays and
    laws that come into force. Responses are linear, above a threshold, squared, lagged, lasting,
    products of two columns, or none. As in a panel, the series of a sample share the kinds and
    responses of their columns.

    The standard deviation of an effect, over the mean absolute change of the series, is
    log-uniform on (0.3, 5) with random sign. It varies over the series of a sample by a lognormal
    factor with log standard deviation 0.3. Effects are factors in half of the positive series.

    Parameters
    ----------
    columns : mapping of str to callable, or sequence of str, optional
        Kinds of columns, drawn with equal probabilities: names of `COLUMNS`, or functions
        ``column(rng, n_series, n_rows, season_length)`` that return an array (n_series, n_rows).
        By default `COLUMNS` with their shares.
    responses : mapping of str to callable, or sequence of str, optional
        Responses f to a column: names of `RESPONSES`, or functions ``response(rng, columns,
        number)`` that take the columns (n_series, n_rows, n_columns) and the index of one, and
        return an array (n_series, n_rows). By default `RESPONSES` with their shares.

    See Also
    --------
    SeriesPrior : Prior of the series n.

    Examples
    --------
    >>> from tsrnn.prior import ColumnPrior, SeriesPrior
    >>> series = SeriesPrior().sample(100, 60, season_length=12)
    >>> simulated = ColumnPrior().sample(series, n_columns=3, season_length=12)
    >>> simulated.values.shape, simulated.columns.shape
    ((100, 60), (100, 60, 3))
    """

    columns: Mapping[str, Column] | Sequence[str] | None = None
    responses: Mapping[str, Response] | Sequence[str] | None = None

    def sample(
        self, values: np.ndarray, n_columns: int, season_length: int = 1, random_state: Any = 0
    ) -> SimulatedColumns:
        """Draw columns for series, and add their effects.

        Parameters
        ----------
        values : ndarray of shape (n_series, n_rows)
            Series without effects, for example from `SeriesPrior.sample`.
        n_columns : int
        season_length : int
            1 for none.
        random_state : int, numpy random generator or None

        Returns
        -------
        SimulatedColumns

        Raises
        ------
        TypeError, ValueError
            If an argument cannot be used, or a column or a response gives another shape, or values
            that are not finite.
        """
        values = np.asarray(values, float)
        if values.ndim != 2 or values.shape[1] < 2 or not np.isfinite(values).all():
            raise ValueError(
                "values must be finite series of shape (n_series, n_rows), of at least 2 rows; got "
                f"shape {values.shape}"
            )
        n_columns = positive_integer("n_columns", n_columns)
        season_length = positive_integer("season_length", season_length)
        rng = np.random.default_rng(seed_of(random_state))
        n_series, n_rows = values.shape
        # Lagged responses need rows before the first.
        shape = (n_series, n_rows + LONGEST_LAG)
        kinds = [_drawn("columns", self.columns, COLUMNS, rng) for _ in range(n_columns)]
        columns = np.stack(
            [
                _checked(f"column {name!r}", column(rng, *shape, season_length), shape)
                for name, column in kinds
            ],
            -1,
        )
        change = np.abs(np.diff(values)).mean(1)
        responses = [_drawn("responses", self.responses, RESPONSES, rng) for _ in range(n_columns)]
        effects = np.empty_like(columns)
        for number, (name, response) in enumerate(responses):
            effect = _checked(f"response {name!r}", response(rng, columns, number), shape)
            deviation = effect.std(1, keepdims=True)
            effect = effect / np.where(deviation > 0, deviation, 1.0)
            size = rng.choice([-1, 1]) * loguniform(rng, 0.3, 5.0, 1)
            sizes = size * np.exp(rng.normal(0, 0.3, n_series)) * change
            effects[..., number] = sizes[:, None] * effect
        columns, effects = columns[:, LONGEST_LAG:], effects[:, LONGEST_LAG:]
        # To first order a factor exp(e / mean) adds e.
        factors = np.asarray((values > 0).all(1) & (rng.random(n_series) < 0.5))
        effects[factors] /= values[factors].mean(1)[:, None, None]
        total = effects.sum(2)
        # Shrink all effects of a series whose log factor would be too large.
        largest = np.abs(total).max(1) / _LARGEST_LOG
        shrunk = np.where(factors, 1 / np.maximum(largest, 1.0), 1.0)
        effects *= shrunk[:, None, None]
        total *= shrunk[:, None]
        with_effects = values + total
        with_effects[factors] = values[factors] * np.exp(total[factors])
        return SimulatedColumns(
            with_effects,
            columns,
            effects,
            factors,
            tuple(name for name, _ in kinds),
            tuple(name for name, _ in responses),
        )


def _drawn(
    argument: str, given: Any, shipped: Mapping[str, tuple[Any, float]], rng: np.random.Generator
) -> tuple[str, Any]:
    """Draw a name and its function."""
    if given is None:
        shares = np.array([share for _, share in shipped.values()])
        name = str(rng.choice(list(shipped), p=shares / shares.sum()))
        return name, shipped[name][0]
    functions = given if isinstance(given, Mapping) else {name: name for name in given}
    if isinstance(given, str) or not functions:
        raise ValueError(
            f"{argument} must be a list of names, or a mapping of names to functions, with at "
            f"least one; got {given!r}"
        )
    name = str(rng.choice(list(functions)))
    function = functions[name]
    if isinstance(function, str):
        if function not in shipped:
            raise ValueError(f"{argument} has the names {sorted(shipped)}; got {function!r}")
        function = shipped[function][0]
    if not callable(function):
        raise TypeError(f"{argument} needs names or functions; got {function!r}")
    return name, function


def _checked(what: str, drawn: Any, shape: tuple[int, int]) -> np.ndarray:
    """Return values of a column or response, if they are finite and have the right shape."""
    array = np.asarray(drawn, float)
    if array.shape != shape:
        raise ValueError(f"{what} must return an array of shape {shape}; got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{what} must return finite values; got some that are not")
    return array
