"""Specification of a univariate model: mean, variance, density, orders, parameters, bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tsrnn.contract import Arguments, choice, number, positive_integer
from tsrnn.data import quote
from tsrnn.kernels import Cell
from tsrnn.linear._arguments import order_of
from tsrnn.linear._multivariate import spectral_radius
from tsrnn.linear._optimise import Evaluation
from tsrnn.linear.garch._density import DENSITIES, ByShape, Density
from tsrnn.linear.garch._volatility import VOLATILITIES, Volatility

Fields = tuple[Tensor, ...]

MEANS = ("constant", "zero", "ar", "arma")
SKIPPING_MEANS = ("constant", "zero")  # means whose likelihood can skip missing values
INITIAL_VARIANCES = ("backcast", "sample", "fcp", "unconditional", "tsp")
MOVING = ("fcp", "tsp")  # presample variances that depend on the parameters of the mean
AUXILIARY = ("l", "log_h", "e", "h", "w")
SMALLEST_OMEGA = 1e-8  # relative to the variance of the series, or its root, as in arch
LARGEST_LOG_BETA = 1 - 1e-8  # below one, where the logarithm of the variance is stationary
NU = (2.05, 500.0)  # as in arch: at 2 the variance is infinite, above 500 t is nearly normal


@dataclass(frozen=True)
class Model:
    """Mean, variance recursion with p lags of shocks and q of itself, and density.

    Parameters are in the order of `names`: mean, variance, shape. A `padded` model has an input
    that is 0 after the end of a series: the state stays as it is. A model with `gaps` has a last
    input that is 0 for a missing value: shocks are at their expectation, and the row is not in the
    likelihood.
    """

    mean: UnivariateMean
    vol: Volatility
    density: Density
    p: int
    q: int
    padded: bool = False
    gaps: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: the cached cell refers back to the model."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the k parameters."""
        return (*self.mean.names, *self.vol.names(self.p, self.q), *self.density.names)

    @cached_property
    def mean_part(self) -> slice:
        """Slice of the parameters of the mean."""
        return slice(0, len(self.mean.names))

    @cached_property
    def vol_part(self) -> slice:
        """Slice of the parameters of the variance, omega first."""
        return slice(len(self.mean.names), len(self.names) - len(self.density.names))

    @cached_property
    def shape_part(self) -> slice:
        """Slice of the parameters of the density."""
        return slice(len(self.names) - len(self.density.names), len(self.names))

    @cached_property
    def omega(self) -> int:
        """Index of omega."""
        return self.vol_part.start

    @cached_property
    def beta(self) -> slice:
        """Slice of the q coefficients of the lagged variance."""
        return slice(self.vol_part.stop - self.q, self.vol_part.stop)

    @cached_property
    def shock_part(self) -> slice:
        """Slice of the coefficients of all shocks."""
        return slice(self.omega + 1, self.beta.start)

    def shock_coefficients(self, s: int) -> slice:
        """Slice of the p coefficients of shock s."""
        start = self.omega + 1 + s * self.p
        return slice(start, start + self.p)

    @cached_property
    def n_vol(self) -> int:
        """State fields of the variance."""
        return max(self.p, self.q)

    @cached_property
    def n_state(self) -> int:
        """State fields: those of the mean, then those of the variance."""
        return self.mean.n_ma + self.n_vol

    @cached_property
    def cell(self) -> Cell:
        """The recurrence: state fields, then `AUXILIARY` ones that it does not read."""
        state = (
            *(f"m{i + 1}" for i in range(self.mean.n_ma)),
            *(f"s{i + 1}" for i in range(self.n_vol)),
        )
        params = tuple(name.translate(str.maketrans(".[", "__", "]")) for name in self.names)
        return Cell(
            f"{self.vol.name}-{self.density.name}-{self.p}-{self.q}",
            n=self.n_state + len(AUXILIARY),
            m=len(self._inputs),
            p=len(params),
            step=Step(self),
            names=((*state, *AUXILIARY), self._inputs, tuple(f"p_{name}" for name in params)),
        )

    @property
    def _inputs(self) -> tuple[str, ...]:
        """Names of the inputs: y, its lags, and marks of rows and values."""
        lags = (f"y_{lag}" for lag in self.mean.lags)
        return ("y", *lags, *("inside",) * self.padded, *("observed",) * self.gaps)

    @cached_property
    def residual_cell(self) -> Cell:
        """The recurrence of the mean alone, then the residual e and its square e2."""
        mean = self.mean
        return Cell(
            f"residual-{mean.kind}",
            n=mean.n_ma + 2,
            m=len(self._inputs),
            p=len(mean.names),
            step=ResidualStep(self),
            names=(
                (*(f"m{i + 1}" for i in range(mean.n_ma)), "e", "e2"),
                self._inputs,
                tuple(f"p_{i}" for i in range(len(mean.names))),
            ),
        )


@dataclass(frozen=True)
class Step:
    """One observation: residual, variance, log-likelihood, and the state after it."""

    model: Model

    def __call__(self, fields: Fields, inputs: Fields, params: Fields) -> Fields:
        """Return the new state and the auxiliary fields."""
        if not self.model.padded:
            return self._row(fields, inputs, params)
        place = len(inputs) - 1 - self.model.gaps  # of the mark "inside"
        new = self._row(fields, (*inputs[:place], *inputs[place + 1 :]), params)
        n, there = self.model.n_state, inputs[place] > 0.5
        kept = (torch.where(there, a, b) for a, b in zip(new[:n], fields, strict=False))
        return (*kept, *(torch.where(there, field, 0.0) for field in new[n:]))

    def _row(self, fields: Fields, inputs: Fields, params: Fields) -> Fields:
        model = self.model
        state = fields[: model.n_state]
        h, log_h = model.vol.variance(state[model.mean.n_ma :])
        lagged = inputs[1 : 1 + len(model.mean.lags)]
        predicted = model.mean.predicted(state[: model.mean.n_ma], lagged, params[model.mean_part])
        e = inputs[0] - predicted
        w = 1 / h
        loglik = model.density.log_kernel(e * e * w, log_h, params[model.shape_part])
        after = self.advance(state, e, h, params)
        if not model.gaps:
            return (*after, loglik, log_h, e, h, w)
        seen = inputs[-1] > 0.5
        without = self.without_news(state, params)
        kept = (torch.where(seen, a, b) for a, b in zip(after, without, strict=True))
        # Sums over time skip missing values; h is the variance of a missing value, too.
        terms = (torch.where(seen, field, 0.0) for field in (loglik, log_h, e))
        return (*kept, *terms, h, w)

    def without_news(self, state: Fields, params: Fields) -> Fields:
        """State after a missing value: a residual of zero, and shocks at their expectation."""
        model, n_ma = self.model, self.model.mean.n_ma
        size = model.density.mean_size_at(params[model.shape_part])
        shocks = model.vol.expected_shocks(state[n_ma], size)
        return (
            *model.mean.advance(state[:n_ma], 0 * state[n_ma], params[model.mean_part]),
            *model.vol.advance(state[n_ma:], shocks, params[model.vol_part], (model.p, model.q)),
        )

    def advance(self, state: Fields, e: Tensor, h: Tensor, params: Fields) -> Fields:
        """State after a residual whose variance is h."""
        model, n_ma = self.model, self.model.mean.n_ma
        shocks = model.vol.shocks(e, h)
        order = (model.p, model.q)
        return (
            *model.mean.advance(state[:n_ma], e, params[model.mean_part]),
            *model.vol.advance(state[n_ma:], shocks, params[model.vol_part], order),
        )


@dataclass(frozen=True)
class ResidualStep:
    """One observation of the mean alone: its state, the residual and its square."""

    model: Model

    def __call__(self, fields: Fields, inputs: Fields, params: Fields) -> Fields:
        """Return the new state, the residual and its square; zero after the end of a series."""
        mean = self.model.mean
        state, lagged = fields[: mean.n_ma], inputs[1 : 1 + len(mean.lags)]
        e = inputs[0] - mean.predicted(state, lagged, params)
        new = mean.advance(state, e, params)
        if self.model.gaps:
            e = torch.where(inputs[-1] > 0.5, e, 0.0)
            new = mean.advance(state, e, params)
        if self.model.padded:
            there = inputs[-1 - self.model.gaps] > 0.5
            e = torch.where(there, e, 0.0)
            new = tuple(torch.where(there, a, b) for a, b in zip(new, state, strict=True))
        return (*new, e, e * e)


@dataclass(frozen=True)
class UnivariateMean:
    r"""Conditional mean: zero, constant, autoregressive or ARMA, all in one equation.

    .. math:: y_t = c + \sum_i \phi_i y_{t-i} + \sum_j \theta_j e_{t-j} + e_t

    A step reads y and its lags as inputs. The state is the contribution of past residuals to later
    means: field j holds the part of :math:`\sum_i \theta_i e_{t-i}` that is known j steps
    before, zero at the start.
    """

    constant: bool
    lags: tuple[int, ...] = ()  # i, of y
    n_ma: int = 0  # number of lags of the residual

    @property
    def kind(self) -> str:
        """Name of the mean, one of `MEANS`."""
        if self.n_ma:
            return "arma"
        if self.lags:
            return "ar"
        return "constant" if self.constant else "zero"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Parameters: ``mu`` alone, else ``Const, y[1], ..., ma.L1, ...``."""
        constant = "Const" if self.lags or self.n_ma else "mu"
        return (
            *((constant,) if self.constant else ()),
            *(f"y[{lag}]" for lag in self.lags),
            *(f"ma.L{j}" for j in range(1, self.n_ma + 1)),
        )

    @cached_property
    def n_dropped(self) -> int:
        """Number of first observations without all lags, which the likelihood leaves out."""
        return max(self.lags, default=0)

    def predicted(self, state: Fields, lagged: Fields, params: Fields) -> Tensor | float:
        """Conditional mean from the state and the lags of y."""
        constant = [*params[: self.constant]]
        slopes = params[self.constant : self.constant + len(self.lags)]
        terms = constant + [phi * y for phi, y in zip(slopes, lagged, strict=True)]
        return sum([*terms[1:], *state[:1]], start=terms[0]) if terms else sum(state[:1])

    def advance(self, state: Fields, e: Tensor, params: Fields) -> Fields:
        """State after a residual."""
        theta = params[len(params) - self.n_ma :]
        new = [theta_j * e for theta_j in theta]
        return tuple(a + b for a, b in zip(new, state[1:], strict=False)) + tuple(new[-1:])


def past_weights(model: Model, first: int = 0) -> np.ndarray:
    """Weights (k,) of the parameters in the effect of a constant past of one, from lag `first` on.

    Weights times parameters are the persistence, for a recursion of the variance or its logarithm.
    """
    weight = np.zeros(len(model.names))
    for s, expected in enumerate(model.vol.expected):
        weight[model.shock_coefficients(s)][first:] = expected
    weight[model.beta][first:] = 1.0
    return weight


def shock_weights(model: Model, s: int, first: int) -> np.ndarray:
    """Weights (k,) of the parameters in the effect of past shocks s of one, from lag `first` on."""
    weight = np.zeros(len(model.names))
    weight[model.shock_coefficients(s)][first:] = 1.0
    return weight


def expected_params(model: Model, params: np.ndarray) -> np.ndarray:
    r"""Multiply coefficients of shocks in parameters (N, k) by the expected size of shocks.

    It is :math:`E |z|^{2 \lambda}`: one for the variance, :math:`E |z|` for its root.
    """
    if not model.vol.root:
        return params
    expected = params.copy()
    expected[:, model.shock_part] *= _mean_size(model, params).value[:, None]
    return expected


def persistence(model: Model, params: np.ndarray) -> np.ndarray:
    r"""Expected share (N,) of a deviation of the transformed variance that lasts.

    :math:`\sum_i (\alpha_i + \gamma_i / 2) + \sum_j \beta_j`, with :math:`\alpha` and
    :math:`\gamma` times :math:`E |z|` for roots; :math:`\sum_j \beta_j` for logarithms.
    """
    return expected_params(model, params) @ past_weights(model)


def persistence_with_derivatives(
    model: Model, params: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Persistence (N,) with first (N, k) and second (N, k, k) derivatives."""
    (n, k), weight, shocks = params.shape, past_weights(model), model.shock_part
    slope, bend = np.tile(weight, (n, 1)), np.zeros((n, k, k))
    if model.vol.root:
        size, shape = _mean_size(model, params), model.shape_part
        share = params[:, shocks] @ weight[shocks]
        slope[:, shocks] *= size.value[:, None]
        slope[:, shape] = (size.slope * share)[:, None]
        bend[:, shocks, shape] = (size.slope[:, None] * weight[shocks])[:, :, None]
        bend[:, shape, shocks] = bend[:, shocks, shape].swapaxes(1, 2)
        bend[:, shape, shape] = (size.bend * share)[:, None, None]
    return persistence(model, params), slope, bend


def _mean_size(model: Model, params: np.ndarray) -> ByShape:
    return model.density.mean_size(params[:, model.shape_part])


@lru_cache(maxsize=64)
def univariate_model(
    vol: str, p: int, q: int, constant: bool, padded: bool, gaps: bool = False
) -> Model:
    """Model with normal innovations, cached so that its cell compiles once."""
    mean, density = UnivariateMean(constant), DENSITIES["normal"]
    return Model(mean, VOLATILITIES[vol], density, p, q, padded, gaps)


def check_skipping(arguments: Arguments) -> None:
    """Refuse ``missing="keep"`` for a mean with lags."""
    if arguments.missing == "keep" and arguments.mean not in SKIPPING_MEANS:
        raise ValueError(
            "missing='keep' needs mean='constant' or 'zero', as lags of a missing value are not "
            f"known; got mean={arguments.mean!r}. Take one of these, or missing='interpolate'"
        )


def model_of(order: Any, mean: Any, mean_order: Any, distribution: Any, vol: Any) -> Model:
    """Check constructor arguments and make the model."""
    p, q = order_of(
        "order", order, "p lags of squared residuals (alpha) and q of the variance (beta)"
    )
    conditional_mean = _mean_of(choice("mean", mean, MEANS), mean_order)
    density = DENSITIES[choice("distribution", distribution, tuple(DENSITIES))]
    volatility = VOLATILITIES[choice("vol", vol, tuple(VOLATILITIES))]
    return Model(conditional_mean, volatility, density, p, q)


def _mean_of(mean: str, mean_order: Any) -> UnivariateMean:
    """Mean of a name and orders."""
    if mean in ("constant", "zero"):
        if mean_order is not None:
            raise ValueError(
                f"mean={mean!r} has no order; got mean_order={quote(mean_order)}. Leave it out, or "
                "take mean='ar' or 'arma'"
            )
        return UnivariateMean(mean == "constant")
    if mean == "ar":
        order = 1 if mean_order is None else mean_order
        if not isinstance(order, Sequence) or isinstance(order, str):
            return UnivariateMean(True, tuple(range(1, positive_integer("mean_order", order) + 1)))
        lags = tuple(positive_integer("mean_order", lag) for lag in order)
        if not lags or tuple(sorted(set(lags))) != lags:
            raise ValueError(f"mean_order must be rising lags such as [1, 5]; got {quote(order)}")
        return UnivariateMean(True, lags)
    orders = (1, 1) if mean_order is None else mean_order
    p, q = order_of("mean_order", orders, "p lags of y and q of its innovations", least=(0, 1))
    return UnivariateMean(True, tuple(range(1, p + 1)), q)


def initial_variance_of(initial_variance: Any, vol: str) -> str | float:
    """Presample variance, by name or as a number, checked."""
    if not isinstance(initial_variance, str):
        return number("initial_variance", initial_variance, lowest=0.0, open_=True)
    kind = choice("initial_variance", initial_variance, INITIAL_VARIANCES)
    if kind == "tsp" and vol != "egarch":
        raise ValueError(
            "initial_variance='tsp' is for vol='egarch', in which TSP takes the mean residual "
            f"before the first; with vol={vol!r} TSP's default is 'fcp', HINIT=OLS is 'sample' "
            "and HINIT=STEADY is 'unconditional'"
        )
    return kind


@dataclass(frozen=True, eq=False)
class Coordinates:
    r"""Coordinates c (d,) of the search; natural parameters (k,) are functions of :math:`A c + b`.

    Leverage is estimated as alpha and alpha + gamma, which are not negative; nu as 1/nu, in which
    the likelihood is closer to a parabola; coefficients of absolute residuals times E|z|, in which
    the persistence is linear.
    """

    model: Model
    matrix: np.ndarray  # A, (k, d)
    offset: np.ndarray  # b, (k,)
    lower: np.ndarray  # (d,)
    upper: np.ndarray
    kept: np.ndarray  # natural parameter of each coordinate, (d,)
    # Constant and weights (1 + d,) of the coordinate that a persistence of one implies
    implied: np.ndarray | None = None

    def natural(self, coordinates: np.ndarray) -> np.ndarray:
        """Natural parameters (n, k) of coordinates (n, d)."""
        params, shape = coordinates @ self.matrix.T + self.offset, self.model.shape_part
        params[:, shape] = 1 / params[:, shape]
        if self.model.vol.root:
            params[:, self.model.shock_part] /= _mean_size(self.model, params).value[:, None]
        return params

    def of(self, params: np.ndarray) -> np.ndarray:
        """Coordinates (n, d) of natural parameters (n, k), clipped to the box."""
        linear, shape = expected_params(self.model, params) - self.offset, self.model.shape_part
        linear[:, shape] = 1 / params[:, shape]
        return np.clip(linear @ np.linalg.pinv(self.matrix).T, self.lower, self.upper)

    def jacobian(self, params: np.ndarray) -> np.ndarray:
        """Derivatives (n, k, d) of natural parameters by coordinates."""
        result, shape = np.tile(self.matrix, (len(params), 1, 1)), self.model.shape_part
        nu = params[:, shape]
        result[:, shape] *= -(nu**2)[:, :, None]
        if self.model.vol.root:
            size, shocks = _mean_size(self.model, params), self.model.shock_part
            result[:, shocks] /= size.value[:, None, None]
            by_inverse = nu**2 * (size.slope / size.value)[:, None]  # of log E|z|, negative
            result[:, shocks] += np.einsum(
                "ns,nv,vd->nsd", params[:, shocks], by_inverse, self.matrix[shape]
            )
        return result

    def pulled(self, params: np.ndarray, at: Evaluation, exact: bool) -> Evaluation:
        """Transform an evaluation in natural parameters to these coordinates.

        An `exact` curvature also has the second derivatives of the transformation.
        """
        jacobian = self.jacobian(params)
        with np.errstate(invalid="ignore", over="ignore"):  # the value is not finite there either
            curvature = jacobian.swapaxes(1, 2) @ at.curvature @ jacobian
            if exact and self.model.density.names:
                shape = self.model.shape_part
                rows = self.matrix[shape]
                bend = 2 * params[:, shape] ** 3 * at.gradient[:, shape]
                curvature -= np.einsum("ns,si,sj->nij", bend, rows, rows)
                if self.model.vol.root:
                    curvature -= self._bend_of_shocks(params, at.gradient)
            gradient = np.einsum("nk,nkd->nd", at.gradient, jacobian)
        return Evaluation(at.value, gradient, curvature)

    def _bend_of_shocks(self, params: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Second derivatives (n, d, d) of the coefficients of shocks, weighted by gradient (n, k).

        A coefficient is a / m(1 / x) with its coordinate a, m = E|z|, and x = 1 / nu.
        """
        shocks, shape = self.model.shock_part, self.model.shape_part
        size, nu = _mean_size(self.model, params), params[:, -1]
        first = size.slope / size.value
        second = size.bend / size.value - first**2
        by_x, by_x_twice = nu**2 * first, -(nu**3) * (2 * first + nu * second)
        row, by_shock = self.matrix[shape][0], gradient[:, shocks] @ self.matrix[shocks]
        crossed = (by_x / size.value)[:, None, None] * by_shock[:, :, None] * row
        share = (gradient[:, shocks] * params[:, shocks]).sum(1)
        twice = (share * (by_x**2 + by_x_twice))[:, None, None] * np.outer(row, row)
        return crossed + crossed.swapaxes(1, 2) + twice


def box(model: Model) -> Coordinates:
    """Coordinates of a model."""
    k = len(model.names)
    matrix = np.eye(k)
    lower, upper = np.full(k, -np.inf), np.full(k, np.inf)
    if model.vol.log:
        if model.q == 1:  # with more lags the roots count, which `admissible` checks
            lower[model.beta], upper[model.beta] = -LARGEST_LOG_BETA, LARGEST_LOG_BETA
    else:
        lower[model.vol_part] = 0.0
        lower[model.omega] = SMALLEST_OMEGA
        upper[model.beta] = 1.0
        alpha = model.shock_coefficients(0)
        for s in range(1, len(model.vol.coefficients)):  # gamma = (alpha + gamma) - alpha
            matrix[model.shock_coefficients(s), alpha] = -np.eye(model.p)
    if model.mean.n_ma == 1:  # as above
        ma = model.omega - 1
        lower[ma], upper[ma] = -1.0, 1.0
    shape = model.shape_part
    lower[shape], upper[shape] = 1 / NU[1], 1 / NU[0]
    return Coordinates(model, matrix, np.zeros(k), lower, upper, np.arange(k))


def face(model: Model, whole: Coordinates, dropped: int) -> Coordinates:
    """Coordinates on the face of persistence one, without coordinate `dropped`."""
    weight = whole.matrix.T @ past_weights(model)
    kept = np.arange(len(weight)) != dropped
    inside = np.eye(len(weight))[:, kept]
    inside[dropped] = -weight[kept] / weight[dropped]
    offset = np.zeros(len(weight))
    offset[dropped] = 1 / weight[dropped]
    return replace(
        whole,
        matrix=whole.matrix @ inside,
        offset=whole.matrix @ offset,
        lower=whole.lower[kept],
        upper=whole.upper[kept],
        kept=whole.kept[kept],
        implied=np.r_[offset[dropped], inside[dropped]],
    )


def admissible(model: Model, coordinates: Coordinates, values: np.ndarray) -> np.ndarray:
    """Mask (n,) of coordinates (n, d) that satisfy the constraints beyond the box."""
    legal = np.ones(len(values), dtype=bool)
    if coordinates.implied is not None:
        legal &= coordinates.implied[0] + values @ coordinates.implied[1:] >= 0
    elif model.vol.log and model.q > 1:
        beta = coordinates.natural(values)[:, model.beta]
        legal &= spectral_radius(beta[:, :, None, None]) < 1
    if model.mean.n_ma > 1:
        theta = coordinates.natural(values)[:, model.omega - model.mean.n_ma : model.omega]
        legal &= spectral_radius(-theta[:, :, None, None]) < 1
    return legal
