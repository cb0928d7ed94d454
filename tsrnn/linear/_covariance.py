"""Covariance models written by users: a recursion by series, and maximum likelihood."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

import numpy as np

from tsrnn.data import Panel
from tsrnn.linear._estimates import Derivatives, Estimates
from tsrnn.linear._family import Arrays, CannotFitError, Units, of_series, set_series
from tsrnn.linear._matrices import Forecast, MatrixFamily, Path
from tsrnn.linear._multivariate import check_long_enough, too_few
from tsrnn.linear._optimise import Evaluation, Optimum, maximise

NOT_DEFINITE = "the covariances are not positive definite at "


class SerialFamily(MatrixFamily):
    """Base of the families whose recursion runs over one series at a time.

    Filters, paths and draws follow from `begin`, `run` and `forecasts` of a subclass.
    """

    @property
    def n_lags(self) -> int:
        """Number of first rows of a series that the mean takes as given."""
        return 0

    @abstractmethod
    def begin(self, history: np.ndarray, params: np.ndarray, constants: Arrays) -> Arrays:
        """State of a series after its first `n_lags` rows (n_lags, n)."""

    @abstractmethod
    def run(
        self, values: np.ndarray, params: np.ndarray, constants: Arrays, state: Arrays
    ) -> tuple[np.ndarray, np.ndarray, Arrays]:
        """Run over rows (T, n) of a series that follow a state.

        Returns errors (T, n), their covariances (T, n, n) given earlier rows, and the last state.
        """

    def draw_paths(
        self, z: np.ndarray, params: np.ndarray, constants: Arrays, state: Arrays
    ) -> np.ndarray:
        """Paths (m, T, n) of a series after a state, with innovations z (m, T, n)."""
        y, m = np.empty_like(z), len(z)
        many = Units(params[None], {name: array[None] for name, array in constants.items()})
        many = many.select(np.zeros(m, np.int64))
        states = {name: np.repeat(np.asarray(array)[None], m, 0) for name, array in state.items()}
        for t in range(z.shape[1]):
            ahead = self.forecasts(states, many, 1)
            root = np.linalg.cholesky(ahead.covariance[:, 0])
            y[:, t] = ahead.mean[:, 0] + (root @ z[:, t, :, None])[..., 0]
            for j in range(m):
                before = of_series(states, j)
                *_, after = self.run(y[j, t : t + 1], params, constants, before)
                set_series(states, j, after)
        return y

    def filter(self, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        state = self.empty_state(panel.n_series)
        for i, (*_, after) in self._runs(panel, units):
            set_series(state, i, after)
        return state

    def advance(self, state: Arrays, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        state = {name: array.copy() for name, array in state.items()}
        for i in units.fitted.tolist():
            *_, after = self.run(panel.series(i), *units.unit(i), of_series(state, i))
            set_series(state, i, after)
        return state

    def paths(self, panel: Panel, units: Units) -> dict[int, Path]:
        runs = self._runs(panel, units)
        return {i: Path(errors, covariances) for i, (errors, covariances, _) in runs}

    def draw(self, units: Units, rows: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
        draws = []
        for i in range(len(units.params)):
            params, constants = units.unit(i)
            state = self._begun(np.zeros((self.n_lags, self.n)), params, constants)
            z = rng.standard_normal((1, sum(rows), self.n))
            # Parameters may be given for a series that failed to fit, which has no presample.
            known = all(np.isfinite(array).all() for array in state.values())
            y = self.draw_paths(z, params, constants, state) if known else np.full_like(z, np.nan)
            draws.append(y[0, rows[1] :])
        return np.stack(draws, 1)

    def draw_ahead(
        self, state: Arrays, units: Units, shape: tuple[int, int], rng: np.random.Generator
    ) -> np.ndarray:
        draws = []
        for i in range(len(units.params)):
            z = rng.standard_normal((*shape, self.n))
            draws.append(self.draw_paths(z, *units.unit(i), of_series(state, i)))
        return np.stack(draws)

    def _runs(
        self, panel: Panel, units: Units
    ) -> Iterator[tuple[int, tuple[np.ndarray, np.ndarray, Arrays]]]:
        """Runs over the series that have parameters, by their number in the panel."""
        m, fitted = self.n_lags, units.fitted
        check_long_enough(panel, fitted, m)
        for i in fitted.tolist():
            values, (params, constants) = panel.series(i), units.unit(i)
            state = self._begun(values[:m], params, constants)
            yield i, self.run(values[m:], params, constants, state)

    def _begun(self, history: np.ndarray, params: np.ndarray, constants: Arrays) -> Arrays:
        """First state, checked against `state_shapes`."""
        return _announced("begin", self.begin(history, params, constants), self.state_shapes)


def _announced(method: str, arrays: Arrays, shapes: dict[str, tuple[int, ...]]) -> Arrays:
    """Convert arrays to float; refuse undeclared names and shapes, which files cannot hold."""
    came = {name: np.shape(array) for name, array in arrays.items()}
    if came != shapes:
        name = {"begin": "state_shapes", "presample": "constant_shapes"}[method]
        raise TypeError(f"{method} must give arrays of the {name} {shapes}; got {came}")
    # Integer arrays would truncate what a recursion writes into them.
    return {name: np.asarray(array, float) for name, array in arrays.items()}


class SeriesSample(NamedTuple):
    """Rows of one series, and the constants of its likelihood."""

    units: np.ndarray  # (1,)
    values: np.ndarray  # (T, n)
    constants: Arrays


class CovarianceFamily(SerialFamily):
    r"""Base of covariance models written by users, fitted by maximum likelihood by series.

    .. math:: y_t = \mu_t + e_t, \qquad \operatorname{Var}(e_t \mid \text{past}) = H_t

    A subclass is a frozen dataclass with the number of targets `n` and the choices of its
    estimator's arguments. With k parameters, and a dict of arrays as state of a series, it defines

    ========================================= =================================================
    `names`, `title`, `state_shapes`          names of the parameters and of the model, shapes of
                                              the arrays of a state by name
    `start(values, constants)`                parameters (k,) from which the search begins;
                                              `bounds` are its limits
    `derivatives(values, params, constants)`  log-likelihood of rows (T, n) with its derivatives,
                                              such as `normal_derivatives`
    `begin(history, params, constants)`       state before the first row
    `run(values, params, constants, state)`   errors (T, n), covariances (T, n, n), next state
    `ahead(h, params, constants, state)`      what is expected of the next h rows: means (h, n),
                                              covariances (h, n, n) of the errors, and of y
    ========================================= =================================================

    and `presample(values)` with `constant_shapes`, if its likelihood takes constants of a series as
    known. Standard errors, filter, intervals, simulation and files follow. A model whose mean has
    lags of y gives their number as `n_lags` and receives these rows as `history`; without lags the
    two covariances ahead are equal.

    Examples
    --------
    A constant covariance s I:

    >>> import numpy as np, pandas as pd
    >>> from tsrnn.linear import CovarianceFamily, MatrixForecaster, normal_derivatives
    >>> class Spherical(CovarianceFamily):
    ...     n, names, title, state_shapes, bounds = 2, ("s",), "Spherical", {}, (0.0, np.inf)
    ...     def start(self, values, constants):
    ...         return np.array([values.var()])
    ...     def derivatives(self, values, params, constants):
    ...         H, slopes = (np.tile(s * np.eye(2), (len(values), 1, 1)) for s in (params[0], 1.0))
    ...         return normal_derivatives(values, H, slopes[..., None], np.zeros((*H.shape, 1, 1)))
    ...     def begin(self, history, params, constants):
    ...         return {}
    ...     def run(self, values, params, constants, state):
    ...         return values, np.tile(params[0] * np.eye(2), (len(values), 1, 1)), state
    ...     def ahead(self, h, params, constants, state):
    ...         H = np.tile(params[0] * np.eye(2), (h, 1, 1))
    ...         return np.zeros((h, 2)), H, H
    >>> class SphericalForecaster(MatrixForecaster):
    ...     def _family(self, arguments, data):
    ...         return Spherical()
    >>> noise = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 2)), columns=["a", "b"])
    >>> model = SphericalForecaster().fit(noise)
    >>> bool(np.isclose(model.params_["s"], (noise**2).to_numpy().mean()).all())
    True
    >>> bool(np.isclose(model.bse_["s"], model.params_["s"] / 200**0.5).all())
    True
    """

    filters_at_fit: ClassVar[bool] = True  # so that errors of user code are raised at the fit
    bounds: ClassVar[tuple[float | np.ndarray, float | np.ndarray]] = (-np.inf, np.inf)

    def presample(self, values: np.ndarray) -> Arrays:
        """Constants of a series (T, n), as `constant_shapes` has them.

        Raises
        ------
        ValueError
            If the series cannot be fitted; the message is the reason, without a full stop.
        """
        return {}

    @abstractmethod
    def start(self, values: np.ndarray, constants: Arrays) -> np.ndarray:
        """Parameters (k,) from which the search begins."""

    @abstractmethod
    def derivatives(
        self, values: np.ndarray, params: np.ndarray, constants: Arrays
    ) -> Derivatives | None:
        """Log-likelihood of a series and its derivatives; None where there is no likelihood."""

    @abstractmethod
    def ahead(
        self, h: int, params: np.ndarray, constants: Arrays, state: Arrays
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Expect the next h rows of a series after a state.

        Returns
        -------
        mean : array of shape (h, n)
        covariance : array of shape (h, n, n)
            Covariance of the error of each step.
        total : array of shape (h, n, n)
            Covariance of y at each step, with the errors of earlier steps.
        """

    def forecasts(self, state: Arrays, units: Units, h: int) -> Forecast:
        n_series, n = len(units.params), self.n
        square = n_series, h, n, n
        result = Forecast(*(np.full(shape, np.nan) for shape in (square[:-1], square, square)))
        for i in units.fitted.tolist():
            expected = self.ahead(h, *units.unit(i), of_series(state, i))
            for whole, part in zip(result, expected, strict=True):
                whole[i] = part
        return result

    def prepare(
        self, panel: Panel, given: np.ndarray | None
    ) -> Iterator[tuple[SeriesSample | None, dict[int, str]]]:
        for i in range(panel.n_series):
            values = panel.series(i)
            try:
                reason = too_few(len(values), self.n, len(self.names))
                if reason and given is None:
                    raise CannotFitError(reason)
                constants = self.presample(values)
            except ValueError as error:
                yield None, {i: f"{error}."}
            else:
                constants = _announced("presample", constants, self.constant_shapes)
                yield SeriesSample(np.array([i]), values, constants), {}

    def search(self, sample: SeriesSample, verbose: int) -> Optimum:
        def evaluate(params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
            n, k = params.shape
            result = Evaluation(np.full(n, -np.inf), np.zeros((n, k)), np.zeros((n, k, k)))
            for j, row in enumerate(params):
                at = self.derivatives(sample.values, row, sample.constants)
                if at is not None:
                    result.value[j], result.gradient[j] = at.value, at.gradient
                    result.curvature[j] = -at.hessian if exact else at.information
            return result

        start, (lower, upper) = self.start(sample.values, sample.constants), self.bounds
        optimum = maximise(evaluate, np.atleast_2d(start), lower=lower, upper=upper)
        if not np.isfinite(optimum.value[0]):
            raise CannotFitError(f"{NOT_DEFINITE}the starting values")
        return optimum

    def given(self, sample: SeriesSample, params: np.ndarray) -> Optimum:
        nothing, flat = np.zeros(1), np.zeros_like(params)
        return Optimum(
            params, nothing, flat, nothing, np.zeros(1, np.int64), np.ones(1, bool),
            flat.astype(bool),
        )  # fmt: skip

    def infer(self, sample: SeriesSample, optimum: Optimum) -> tuple[Estimates, Arrays]:
        params, at_bound = optimum.params[0], optimum.at_bound[0]
        at = self.derivatives(sample.values, params, sample.constants)
        if at is None:
            raise CannotFitError(f"{NOT_DEFINITE}these parameters")
        lower, upper = self.bounds
        outside = (params < lower) | (params > upper)
        if outside.any():  # only given parameters can lie outside
            names = [name for name, beyond in zip(self.names, outside, strict=True) if beyond]
            raise CannotFitError(
                f"parameters must lie within the bounds of {self.title}, from {lower} to {upper}; "
                f"beyond them are {names}"
            )
        messages = [
            f"{name} is on its bound, beyond which the likelihood rises: no standard error."
            for name, pinned in zip(self.names, at_bound, strict=True)
            if pinned
        ]
        if not optimum.converged[0]:
            messages.append("The search for the optimum did not converge.")
        estimates = Estimates.of_unit(
            self.names, params, len(sample.values) - self.n_lags, at,
            iterations=optimum.iterations, converged=optimum.converged, fixed=at_bound[None],
            messages=(tuple(messages),),
        )  # fmt: skip
        return estimates, {name: array[None] for name, array in sample.constants.items()}


def normal_derivatives(
    errors: np.ndarray, covariances: np.ndarray, slopes: np.ndarray, curvatures: np.ndarray
) -> Derivatives | None:
    r"""Normal log-likelihood of errors that do not depend on the parameters, with derivatives.

    .. math::
        l &= -\tfrac12 \sum_t (n \log 2 \pi + \log |H_t| + e_t' H_t^{-1} e_t) \\
        \frac{\partial l}{\partial \theta_i} &= \sum_t \operatorname{tr}(W_t \dot H_{ti}),
        \qquad W_t = \tfrac12 H_t^{-1} (e_t e_t' - H_t) H_t^{-1}

    with :math:`\dot H_{ti}` the derivative of :math:`H_t`. The Hessian is exact; the expected
    information is :math:`\tfrac12 \sum_t \operatorname{tr}(H_t^{-1} \dot H_{ti} H_t^{-1} \dot
    H_{tj})`.

    Parameters
    ----------
    errors : array of shape (T, n)
    covariances : array of shape (T, n, n)
        H.
    slopes : array of shape (T, n, n, k)
        Derivatives of H by the k parameters.
    curvatures : array of shape (T, n, n, k, k)
        Second derivatives of H.

    Returns
    -------
    Derivatives or None
        None unless all covariances are positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.linear import normal_derivatives
    >>> e = np.random.default_rng(0).normal(size=(100, 2))
    >>> H = np.tile((e**2).mean() * np.eye(2), (100, 1, 1))  # s I, at the best of all s
    >>> slopes, curvatures = np.tile(np.eye(2), (100, 1, 1))[..., None], np.zeros((100, 2, 2, 1, 1))
    >>> at = normal_derivatives(e, H, slopes, curvatures)
    >>> bool(abs(at.gradient[0]) < 1e-10), bool(np.isclose(at.information, -at.hessian).all())
    (True, True)
    """
    try:
        root = np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(root).all():
        return None
    precision = np.linalg.inv(covariances)
    scaled = np.einsum("tab,tb->ta", precision, errors)
    log_det = 2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum()
    value = -0.5 * (errors.size * math.log(2 * math.pi) + log_det + (errors * scaled).sum())
    weights = (scaled[:, :, None] * scaled[:, None] - precision) / 2
    scores = np.einsum("tab,tabi->ti", weights, slopes)
    relative = np.einsum("tab,tbci->taci", precision, slopes)
    information = np.einsum("tabi,tbaj->ij", relative, relative) / 2
    moved = np.einsum("tabi,tb->tai", slopes, scaled)
    observed = np.einsum("tai,tab,tbj->ij", moved, precision, moved) - information
    hessian = np.einsum("tab,tabij->ij", weights, curvatures) - observed
    return Derivatives(float(value), scores.sum(0), hessian, scores.T @ scores, information)
