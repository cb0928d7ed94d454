"""Preparation of series: panels as matrices, standardisation, presample variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tsrnn.contract import SeriesArrays
from tsrnn.data import Panel
from tsrnn.kernels import Lanes, sums
from tsrnn.linear.garch._specification import (
    MOVING,
    Model,
    past_weights,
    persistence_with_derivatives,
    shock_weights,
)
from tsrnn.linear.garch._volatility import MEAN_SIZE

_CACHED = 2**17  # floats of a block of series: 1 MB, which stays in the processor's cache
_ROUNDING = 1e-12  # deviation over mean at which a series counts as constant
N_BACKCAST, _DECAY = 75, 0.94  # rows and weights of the backcast, as in arch


def units_of(
    panel: Panel, rows: np.ndarray | None = None, fill: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Units (S C, T), series by series and target by target, and their lengths (S C,).

    They hold the values of the panel or of `rows` (rows, C), NaN where missing, and `fill` beyond
    their lengths.
    """
    values = panel.values if rows is None else rows
    lengths, n_targets = panel.lengths, values.shape[1]
    longest = int(lengths.max())
    if (lengths == longest).all():
        whole = values.reshape(-1, longest, n_targets)
    else:
        whole = np.full((panel.n_series, longest, n_targets), fill)
        whole[np.arange(longest) < lengths[:, None]] = values
    return whole.swapaxes(1, 2).reshape(-1, longest), np.repeat(lengths, n_targets)


def from_first_value(y: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cut leading missing values off units (N, T); return units and their new lengths (N,)."""
    if not len(y) or not np.isnan(y[:, :1]).any():
        return y, lengths
    first = _count_leading_missing(y, lengths)
    place = np.arange(y.shape[1]) + first[:, None]
    moved = np.take_along_axis(y, np.minimum(place, y.shape[1] - 1), 1)
    return moved, lengths - first


def _count_leading_missing(y: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Rows (N,) of each unit before its first value; its length if it has no value."""
    seen = ~np.isnan(y) & (np.arange(y.shape[1]) < lengths[:, None])
    return np.where(seen.any(1), seen.argmax(1), lengths)


def rows_from_first(panel: Panel, units: np.ndarray) -> np.ndarray:
    """Panel rows (rows, C) of units (S C, T) that `from_first_value` has cut; NaN before."""
    longest = units.shape[1]
    whole = shifted_back(units, *units_of(panel)).reshape(panel.n_series, -1, longest)
    return whole.swapaxes(1, 2)[np.arange(longest) < panel.lengths[:, None]]


def shifted_back(units: np.ndarray, y: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Undo the shift of `from_first_value`: units (N, T) at the rows of y, NaN before."""
    if not len(y) or not np.isnan(y[:, :1]).any():
        return units
    first, steps = _count_leading_missing(y, lengths)[:, None], np.arange(units.shape[1])
    back = np.take_along_axis(units, np.maximum(steps - first, 0), 1)
    return np.where(steps >= first, back, np.nan)


class Spread(NamedTuple):
    """Mean and deviation of each series, and a flag for series of finite values, each (N,)."""

    mean: np.ndarray
    deviation: np.ndarray
    finite: np.ndarray


def spread_of(y: np.ndarray, lengths: np.ndarray, gaps: bool = False) -> Spread:
    """Mean and deviation of series (N, T) up to their lengths; NaN for a series that is not finite.

    With `gaps`, NaN is a missing value and left out.
    """
    n, steps = y.shape
    spread = Spread(np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, dtype=bool))
    for part in chunks(n, steps, _CACHED):
        outside = np.arange(steps) >= lengths[part, None] if (lengths[part] < steps).any() else None
        if gaps:
            missing = np.isnan(y[part])
            outside = missing if outside is None else outside | missing
        kept = y[part] if outside is None else np.where(outside, 0.0, y[part])
        largest = np.maximum(kept.max(1), -kept.min(1))  # not finite if any value is not
        finite = spread.finite[part] = np.isfinite(largest)
        # Scale to at most one: squares of huge numbers overflow, those of tiny ones underflow.
        unit = np.where(finite & (largest > 0), largest, 1.0)
        n_values = lengths[part]
        if gaps and outside is not None:
            n_values = (~outside).sum(1)
        count = np.maximum(n_values, 1)
        with np.errstate(invalid="ignore"):
            kept = kept / unit[:, None]
            mean = kept.sum(1) / count
            kept -= mean[:, None]
        if outside is not None:
            kept[outside] = 0.0
        deviation = np.sqrt(np.einsum("nt,nt->n", kept, kept) / count)
        spread.mean[part], spread.deviation[part] = unit * mean, unit * deviation
    spread.mean[~spread.finite] = spread.deviation[~spread.finite] = np.nan
    return spread


def chunks(n: int, size: int, most: int) -> list[slice]:
    """Consecutive parts of n units of `size` floats each, with at most `most` floats a part."""
    count = max(1, most // size)
    return [slice(i, min(i + count, n)) for i in range(0, n, count)]


def refusals(model: Model, lengths: np.ndarray, spread: Spread) -> list[str]:
    """Reason why each series cannot be fitted, empty if it can; `lengths` count its values."""
    k, dropped = len(model.names), model.mean.n_dropped
    constant = spread.deviation <= _ROUNDING * np.abs(spread.mean)
    reasons = [""] * len(lengths)
    for i in np.flatnonzero(constant | (spread.deviation == 0)):
        reasons[i] = "the series must vary; it is constant. Drop it"
    for i in np.flatnonzero(~spread.finite):
        reasons[i] = "the series must be finite; it has NaN or infinite values. Mend or drop it"
    for i in np.flatnonzero(lengths - dropped <= k):
        reasons[i] = (
            f"{k} parameters need more than {k + dropped} observations; the series has "
            f"{lengths[i]}. Take lower orders, or give more rows"
        )
    return reasons


@dataclass(frozen=True, eq=False)
class Sample(SeriesArrays):
    """N series divided by their deviation, centred if the model has a constant."""

    inputs: np.ndarray  # (N, T, m): y, its lags, and marks of rows and values
    n_rows: np.ndarray  # (N,) rows, with missing values
    n_obs: np.ndarray  # (N,) observations in the likelihood
    centre: np.ndarray  # (N,)
    scale: np.ndarray  # (N,)

    @property
    def observed(self) -> np.ndarray:
        """Mask (N, T) of the observations."""
        if self.gaps:  # zero beyond the rows, too
            return self.inputs[:, :, -1] > 0.5
        return np.arange(self.inputs.shape[1]) < self.n_rows[:, None]

    @property
    def gaps(self) -> bool:
        """True if values are missing."""
        return bool((self.n_obs < self.n_rows).any())

    def first_autocorrelation(self) -> np.ndarray:
        """Autocorrelation of each series at lag one, (N,); 0 for a constant series."""
        if self.gaps:
            return self._autocorrelation_of_pairs()
        y, n = self.inputs[:, :, 0], self.n_obs
        if (n < y.shape[1]).any():
            y = np.where(self.observed, y, 0.0)
        # From sums of products: the centred series would be an array as large as the data.
        mean = y.sum(1) / n
        ends = y[:, 0] + np.take_along_axis(y, n[:, None] - 1, 1)[:, 0]
        products = np.einsum("nt,nt->n", y[:, 1:], y[:, :-1])
        covariance = products - mean * (2 * n * mean - ends) + (n - 1) * mean**2
        variance = np.einsum("nt,nt->n", y, y) - n * mean**2
        return np.divide(covariance, variance, out=np.zeros(len(y)), where=variance > 0)

    def _autocorrelation_of_pairs(self) -> np.ndarray:
        """Autocorrelation (N,) at lag one over pairs of observed neighbours."""
        seen = self.observed
        y = np.where(seen, self.inputs[:, :, 0], 0.0)
        away = np.where(seen, y - (y.sum(1) / self.n_obs)[:, None], 0.0)
        pairs = np.maximum((seen[:, 1:] & seen[:, :-1]).sum(1), 1)
        covariance = np.einsum("nt,nt->n", away[:, 1:], away[:, :-1]) / pairs
        variance = np.einsum("nt,nt->n", away, away) / self.n_obs
        return np.divide(covariance, variance, out=np.zeros(len(y)), where=variance > 0)


def sample_of(model: Model, y: np.ndarray, lengths: np.ndarray, spread: Spread) -> Sample:
    """Standardise series y (N, T); rows beyond their lengths are not read."""
    (n, steps), scale = y.shape, spread.deviation
    centre = spread.mean if model.mean.constant else np.zeros(n)
    kept = np.empty((n, steps))
    for part in chunks(n, steps, _CACHED):
        np.subtract(y[part], centre[part, None], out=kept[part])
        kept[part] /= scale[part, None]
        if (lengths[part] < steps).any():
            kept[part][np.arange(steps) >= lengths[part, None]] = 0.0
    return sample_of_inputs(model, design(model, kept, lengths), lengths, centre, scale)


def sample_of_inputs(
    model: Model, inputs: np.ndarray, lengths: np.ndarray, centre: np.ndarray, scale: np.ndarray
) -> Sample:
    """Sample of the inputs of `design`."""
    n_rows = lengths - model.mean.n_dropped
    n_obs = inputs[:, :, -1].sum(1).astype(n_rows.dtype) if model.gaps else n_rows
    return Sample(inputs, n_rows, n_obs, centre, scale)


def design(model: Model, y: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Inputs (N, T - dropped, m) of the cell, from series (N, T) with NaN for missing values."""
    first, steps = model.mean.n_dropped, y.shape[1]
    if model.gaps:
        seen = ~np.isnan(y) & (np.arange(steps) < lengths[:, None])
        y = np.where(seen, y, 0.0)
    columns = [y[:, first - lag : steps - lag] for lag in (0, *model.mean.lags)]
    if model.padded:
        columns.append((np.arange(first, steps) < lengths[:, None]).astype(float))
    if model.gaps:
        columns.append(seen[:, first:].astype(float))
    return np.stack(columns, -1) if len(columns) > 1 else columns[0][..., None]


def to_user(model: Model, centre: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Affine map of parameters of standardised series to the data's scale.

    Returns its matrix (N, k, k) and offset (N, k).
    """
    n, k = len(scale), len(model.names)
    matrix, offset = np.tile(np.eye(k), (n, 1, 1)), np.zeros((n, k))
    if model.mean.constant:
        matrix[:, 0, 0] = scale
        matrix[:, 0, 1 : 1 + len(model.mean.lags)] = -centre[:, None]
        offset[:, 0] = centre
    log_variance = 2 * np.log(scale)
    if model.vol.log:
        matrix[:, model.omega, model.beta] = -log_variance[:, None]
        offset[:, model.omega] = log_variance
    else:
        matrix[:, model.omega, model.omega] = scale ** (2 * model.vol.power)
    return matrix, offset


class Quantity(NamedTuple):
    """Value (N,) with first and second derivatives by k parameters; None for a constant."""

    value: np.ndarray
    slope: np.ndarray | None = None  # (N, k)
    bend: np.ndarray | None = None  # (N, k, k)


class Initial(NamedTuple):
    """State before the first observation, with its nonzero derivatives by field and parameters."""

    value: np.ndarray  # (N, n_state)
    first: dict[tuple[int, int], np.ndarray]
    second: dict[tuple[int, int, int], np.ndarray]


@dataclass(frozen=True, eq=False)
class Presample(SeriesArrays):
    r"""Presample variance of N units.

    ========================= ========================================================
    "backcast"                :math:`\sum_t w_t e_t^2` over the first 75 residuals at the
                              starting values, :math:`w_t \propto 0.94^t`, of a root
                              :math:`(\sum_t w_t |e_t|)^2`; as in arch
    "sample"                  mean of :math:`e_t^2` at the starting values
    "fcp"                     mean of :math:`e_t^2` at the current mean (Fiorentini,
                              Calzolari and Panattoni, 1996)
    "unconditional"           unconditional variance at the current parameters
    "tsp"                     as "fcp", after a residual that is the mean of :math:`e_t`;
                              for logarithms
    ========================= ========================================================

    A recursion of roots or logarithms starts from the root or logarithm of that variance, with
    "unconditional" from the unconditional mean of :math:`\sigma` or :math:`\log h`. Shocks before
    the first observation are at their expectation, except with "tsp".
    """

    model: Model
    kind: str
    fixed: np.ndarray  # (N,) variance, of a kind that does not depend on the parameters
    n_obs: np.ndarray | None = None  # (N,) observations, of a kind that depends on the mean
    z: np.ndarray | None = None  # (N,) given standardised residual

    def past(self, params: np.ndarray, lanes: Lanes) -> tuple[np.ndarray, np.ndarray]:
        """Presample variances and standardised residuals, each (N,).

        Residuals are NaN if shocks are at their expectation.
        """
        transformed, z = self._before(params, 0, lanes)
        unknown = np.full(len(params), np.nan)
        return self.model.vol.restored(transformed.value), unknown if z is None else z.value

    def state(self, params: np.ndarray, order: int, lanes: Lanes | None = None) -> Initial:
        """State before the first observation and its derivatives up to an order.

        `lanes` are the units' inputs, for a variance that depends on the mean.
        """
        model, moving = self.model, self._moving()
        before, z = self._before(params, order, lanes)
        value = np.zeros((len(params), model.n_state))
        first: dict[tuple[int, int], np.ndarray] = {}
        second: dict[tuple[int, int, int], np.ndarray] = {}
        for j in range(model.n_vol):
            field, weight = model.mean.n_ma + j, past_weights(model, j)
            constant = np.zeros(len(model.names))
            constant[model.omega] = j == 0
            part = _product(params, weight, constant, before)
            for s, shock in enumerate([] if z is None else _shocks_of(z)):
                by_shock = shock_weights(model, s, j)
                part = _sum(part, _product(params, by_shock, 0 * by_shock, shock))
                weight = weight + by_shock
            value[:, field] = part.value
            if order > 0 and part.slope is not None:
                touched = np.flatnonzero((weight != 0) | (constant != 0) | moving)
                first |= {(field, int(a)): part.slope[:, a] for a in touched}
            if order > 1 and part.bend is not None:
                near = np.flatnonzero((weight != 0) | moving).tolist()
                pairs = [(a, b) for a in near for b in near if a <= b and (moving[a] or moving[b])]
                second |= {(field, a, b): part.bend[:, a, b] for a, b in pairs}
        return Initial(value, first, second)

    def _before(
        self, params: np.ndarray, order: int, lanes: Lanes | None
    ) -> tuple[Quantity, Quantity | None]:
        """Transformed variance g, and the standardised residual if it is known."""
        if self.kind == "unconditional":
            return _unconditional(self.model, params), None
        if self.kind in MOVING:
            mean, square = self._moments(params, order, lanes)
            z = None
            if self.kind == "tsp":
                root = _mapped(square, square.value**-0.5, -0.5 * square.value**-1.5,
                               0.75 * square.value**-2.5)  # fmt: skip
                z = _times(mean, root)
            return _transformed(self.model, square), z
        z = None if self.z is None else Quantity(self.z)
        return _transformed(self.model, Quantity(self.fixed)), z

    def _moments(
        self, params: np.ndarray, order: int, lanes: Lanes | None
    ) -> tuple[Quantity, Quantity]:
        """Mean and mean square of the residuals at the current parameters."""
        assert lanes is not None  # every likelihood passes them
        assert self.n_obs is not None
        (n, k), part, mean = params.shape, self.model.mean_part, self.model.mean
        totals = sums(
            self.model.residual_cell, lanes, params[:, part], np.zeros((n, mean.n_ma)),
            terms=("e", "e2"), order=2 if order else 0,
        )  # fmt: skip
        if totals.gradient is None or totals.hessian is None:
            first, square = totals.value / self.n_obs
            return Quantity(first), Quantity(square)
        slope, bend = np.zeros((2, n, k)), np.zeros((2, n, k, k))
        slope[:, :, part], bend[:, :, part, part] = totals.gradient, totals.hessian
        slope /= self.n_obs[:, None]
        bend /= self.n_obs[:, None, None]
        first, square = (
            Quantity(*parts) for parts in zip(totals.value / self.n_obs, slope, bend, strict=True)
        )
        return first, square

    def _moving(self) -> np.ndarray:
        """Mask (k,) of the parameters on which the presample variance depends."""
        model = self.model
        moving = np.zeros(len(model.names), dtype=bool)
        if self.kind in MOVING:
            moving[model.mean_part] = True
        elif self.kind == "unconditional":
            moving = past_weights(model) != 0
            moving[model.omega] = True
            moving[model.shape_part] = model.vol.root  # through E|z|
        return moving


def _shocks_of(z: Quantity) -> tuple[Quantity, Quantity]:
    r"""Shocks of an EGARCH, :math:`|z| - \sqrt{2/\pi}` and z."""
    sign = np.sign(z.value)
    return _mapped(z, np.abs(z.value) - MEAN_SIZE, sign, 0 * sign), z


def _product(
    params: np.ndarray, weight: np.ndarray, offset: np.ndarray, before: Quantity
) -> Quantity:
    """(weight' params) before + offset' params, with derivatives."""
    share = params @ weight
    value, slope = share * before.value + params @ offset, before.value[:, None] * weight + offset
    if before.slope is None or before.bend is None:
        return Quantity(value, slope)
    crossed = weight[:, None] * before.slope[:, None, :]
    bend = crossed + crossed.swapaxes(1, 2) + share[:, None, None] * before.bend
    return Quantity(value, slope + share[:, None] * before.slope, bend)


def _unconditional(model: Model, params: np.ndarray) -> Quantity:
    r""":math:`\omega / (1 - P)`; NaN where the persistence P is not below one."""
    share, weight, curved = persistence_with_derivatives(model, params)
    slack = np.where(share < 1, 1 - share, np.nan)  # NaN: the search refuses such a step
    unit = np.zeros(params.shape[1])
    unit[model.omega] = 1.0
    value = params[:, model.omega] / slack
    slope = (unit + value[:, None] * weight) / slack[:, None]
    crossed = slope[:, :, None] * weight[:, None, :]
    bend = crossed + crossed.swapaxes(1, 2) + value[:, None, None] * curved
    return Quantity(value, slope, bend / slack[:, None, None])


def _transformed(model: Model, h: Quantity) -> Quantity:
    """Transform of a variance, with derivatives."""
    value = model.vol.transformed(h.value)
    if model.vol.power == 1:
        return h
    if model.vol.log:
        return _mapped(h, value, 1 / h.value, -1 / h.value**2)
    return _mapped(h, value, 0.5 / value, -0.25 / value**3)


def _mapped(x: Quantity, value: np.ndarray, first: np.ndarray, second: np.ndarray) -> Quantity:
    """Function of a quantity by the chain rule, from its value and derivatives (N,) there."""
    if x.slope is None or x.bend is None:
        return Quantity(value)
    square = x.slope[:, :, None] * x.slope[:, None, :]
    bend = first[:, None, None] * x.bend + second[:, None, None] * square
    return Quantity(value, first[:, None] * x.slope, bend)


def _times(x: Quantity, y: Quantity) -> Quantity:
    """Product of two quantities."""
    if x.slope is None or x.bend is None or y.slope is None or y.bend is None:
        return Quantity(x.value * y.value)
    crossed = x.slope[:, :, None] * y.slope[:, None, :]
    bend = y.value[:, None, None] * x.bend + x.value[:, None, None] * y.bend
    slope = y.value[:, None] * x.slope + x.value[:, None] * y.slope
    return Quantity(x.value * y.value, slope, bend + crossed + crossed.swapaxes(1, 2))


def _sum(x: Quantity, y: Quantity) -> Quantity:
    """Sum of two quantities with derivatives of the same orders."""
    parts = zip(x, y, strict=True)
    return Quantity(*(None if a is None or b is None else a + b for a, b in parts))  # type: ignore[arg-type]


def presample_of(
    model: Model, sample: Sample, kind: str | float, first: np.ndarray, variance: np.ndarray
) -> Presample:
    """Presample variance of standardised units.

    `first` (N, at most 75) are the first residuals at the starting values, `variance` (N,) is the
    mean square of all residuals there.
    """
    fixed = variance
    if not isinstance(kind, str):
        kind, fixed = "fixed", float(kind) / sample.scale**2
    elif kind == "backcast":
        sizes, row = np.abs(first) if model.vol.root else first**2, np.arange(first.shape[1])
        inside = row < sample.n_rows[:, None]
        if sample.gaps:
            inside = sample.observed[:, : first.shape[1]]
        weights = np.where(inside, _DECAY**row, 0.0)
        fixed = (weights * sizes).sum(1) / weights.sum(1)
        fixed = fixed**2 if model.vol.root else fixed
    return Presample(model, kind, fixed, sample.n_obs)


def mean_moments(model: Model, sample: Sample) -> np.ndarray:
    """Mean products (N, m, m) of y, the constant and the lags of y, in this order."""
    # Without padding the constant is a broadcast scalar, which takes no memory.
    ones = np.broadcast_to(1.0, sample.inputs.shape[:2])
    marked = model.padded or model.gaps
    observed = sample.observed.astype(float) if marked else ones
    columns = [sample.inputs[..., 0], *[observed] * model.mean.constant]
    columns += [sample.inputs[..., 1 + i] for i in range(len(model.mean.lags))]
    columns = [column * observed for column in columns] if marked else columns
    return products_of(columns) / sample.n_obs[:, None, None]


def products_of(columns: list[np.ndarray]) -> np.ndarray:
    """Sums over time (N, m, m) of products of m variables of shape (N, T)."""
    result = np.empty((len(columns[0]), len(columns), len(columns)))
    for i, column in enumerate(columns):
        for j, other in enumerate(columns[: i + 1]):
            result[:, i, j] = result[:, j, i] = np.einsum("nt,nt->n", column, other)
    return result
