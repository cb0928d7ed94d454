"""Family of GARCH models: a mean, a recursion of the variance and a density."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from tsrnn.contract import Arguments, choice, flag, level_name, positive_integer, seed_of
from tsrnn.data import Panel
from tsrnn.linear._as_rnn import DifferenceEquation, Recursion, padded
from tsrnn.linear._estimates import Estimates
from tsrnn.linear._family import Ahead, Arrays, Family, Units
from tsrnn.linear._hypotheses import COMMON_FACTORS, Restriction
from tsrnn.linear._multivariate import check_long_enough
from tsrnn.linear.garch._filter import Past, VarianceState, advance_garch, begin_garch, filter_garch
from tsrnn.linear.garch._fit import (
    Optima,
    Problem,
    highest_maxima,
    infer,
    optima_at,
    problem_at,
    problems,
)
from tsrnn.linear.garch._forecast import (
    analytic_quantiles,
    error_variance,
    expected_mean,
    expected_variance,
    simulate_garch,
    simulated_quantiles,
    simulated_variance,
)
from tsrnn.linear.garch._inference import half_life, unconditional_variance
from tsrnn.linear.garch._prepare import from_first_value, rows_from_first, units_of
from tsrnn.linear.garch._specification import (
    NU,
    Model,
    check_skipping,
    initial_variance_of,
    model_of,
    persistence,
)

INTERVALS = ("simulated", "analytic", "conformal")
LARGEST_NU = NU[1] * (1 - 1e-9)  # from here on nu is at its bound: a normal distribution
_DISTRIBUTIONS = {"normal": "normal", "t": "Student's t"}


@dataclass(frozen=True)
class GARCHFamily(Family):
    """GARCH at given orders. A unit is one target of a series; a batch fits into memory."""

    model: Model
    n_targets: int = 1  # of a series
    initial_variance: str | float = "backcast"
    stationary: bool = True  # hold the persistence at one
    n_starts: int | None = None  # of every unit; None for as many as needed
    intervals: str = "simulated"
    n_simulations: int = 2000  # paths of a unit
    random_state: Any = None  # of these paths

    guarantee: ClassVar[str] = (
        "Simulated, the parameters taken as known. Holds if the model and the distribution of its "
        "innovations are right."
    )

    @property
    def names(self) -> tuple[str, ...]:
        return self.model.names

    @property
    def title(self) -> str:
        model = self.model
        return f"{model.vol.title}({model.p}, {model.q}), {model.mean.kind} mean"

    @property
    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        n, model = self.n_targets, self.model
        return {"memory": (n, model.n_state), "recent": (n, model.mean.n_dropped)}

    @property
    def constant_shapes(self) -> dict[str, tuple[int, ...]]:
        names = ("presample", "presample_z") if self.initial_variance == "tsp" else ("presample",)
        return dict.fromkeys(names, (self.n_targets,))

    @property
    def conventions(self) -> dict[str, str]:
        return {"Presample variance": str(self.initial_variance)}

    @property
    def n_arma(self) -> int:
        return len(self.model.mean.lags) + self.model.mean.n_ma

    def prepare(
        self, panel: Panel, given: np.ndarray | None
    ) -> Iterator[tuple[Problem | None, dict[int, str]]]:
        model, initial = self._model_of(panel), self.initial_variance
        y, lengths = from_first_value(*units_of(panel))
        if given is None:
            yield from problems(model, y, lengths, initial, self.stationary, self.n_starts)
            return
        check_long_enough(panel, np.arange(panel.n_series), model.mean.n_dropped + 1)
        yield problem_at(model, y, lengths, initial), {}

    def search(self, sample: Problem, verbose: int) -> Optima:
        return highest_maxima(sample, sample.model)

    def given(self, sample: Problem, params: np.ndarray) -> Optima:
        with np.errstate(divide="ignore", invalid="ignore"):
            optima = optima_at(sample, params)
        check_variances(self.model, params, np.isfinite(optima.value))
        return optima

    def infer(self, sample: Problem, optimum: Optima) -> tuple[Estimates, Arrays]:
        fit = infer(sample, optimum)
        return fit.estimates, {"presample": fit.presample, "presample_z": fit.presample_z}

    def filter(self, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        model, known = self._model_of(panel), np.unique(units.fitted // self.n_targets)
        check_long_enough(panel, known, model.mean.n_dropped)
        before = past_of(units)
        return _by_series(
            panel.n_series,
            begin_garch(model, units.params, before, *from_first_value(*units_of(panel))),
        )

    def advance(self, state: Arrays, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        before = _by_unit(state)
        after = advance_garch(self._model_of(panel), units.params, before, *units_of(panel))
        return _by_series(panel.n_series, after)

    def forecast(self, state: Arrays, units: Units, ahead: Ahead, levels: list[float]) -> Arrays:
        past, model, params, h = _by_unit(state), self.model, units.params, ahead.h
        forecasts = {"": expected_mean(model, params, past, h)}
        if levels:
            ends = [0.5 + sign * level / 200 for level in levels for sign in (-1, 1)]
            if h == 1 or (self.intervals == "analytic" and not model.vol.log):
                quantiles = analytic_quantiles(model, params, past, h, ends)
            elif self.intervals == "analytic":
                raise self._no_closed_form("intervals='simulated', or h=1")
            else:
                shape, seed = (h, self.n_simulations), seed_of(self.random_state)
                quantiles = simulated_quantiles(model, params, past, shape, seed, ends)
            names = [f"-{end}-{level_name(level)}" for level in levels for end in ("lo", "hi")]
            forecasts |= dict(zip(names, quantiles, strict=True))
        return {
            name: values.reshape(len(ahead.steps), -1, h).swapaxes(1, 2)
            for name, values in forecasts.items()
        }

    def simulate(
        self, state: Arrays, units: Units, ahead: Ahead, n: int, rng: np.random.Generator
    ) -> np.ndarray:
        z = draw_innovations(self.model, units.params, (ahead.h, n), rng)
        paths = simulate_garch(self.model, units.params, _by_unit(state), z).y
        return paths.reshape(len(ahead.steps), -1, ahead.h, n).transpose(3, 0, 2, 1)

    def variances(
        self,
        state: Arrays,
        units: Units,
        h: int,
        method: str = "auto",
        residuals: np.ndarray | None = None,
        of: str = "residual",
    ) -> np.ndarray:
        """Forecasts (S, h, C) of variances; a bootstrap draws from standardised residuals."""
        past, model, params = _by_unit(state), self.model, units.params
        closed = h == 1 or not model.vol.log
        if method == "analytic" and not closed:
            raise self._no_closed_form("method='simulation' or 'bootstrap'")
        if method in ("auto", "analytic") and closed:
            variance = expected_variance(model, params, past, h)
        else:
            shape, seed = (h, self.n_simulations), seed_of(self.random_state)
            variance = simulated_variance(model, params, past, shape, seed, residuals)
        if of == "forecast":
            variance = error_variance(model, params, variance)
        return variance.reshape(len(variance) // self.n_targets, -1, h).swapaxes(1, 2)

    def in_sample(
        self, panel: Panel, units: Units, steps: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        e, h = self.residuals_and_variances(panel, units)
        fitted = panel.values - e
        if self.model.mean.n_dropped == 0:  # the fitted value of a missing row is the constant
            means = units.params[:, self.model.mean_part].sum(1).reshape(panel.n_series, -1)
            constant = np.repeat(means, panel.lengths, axis=0)
            fitted = np.where(np.isnan(panel.values) & ~np.isnan(h), constant, fitted)
        return fitted, e / np.sqrt(h)

    def residuals_and_variances(self, panel: Panel, units: Units) -> tuple[np.ndarray, np.ndarray]:
        """Residuals and conditional variances, each (rows, C)."""
        model, before = self._model_of(panel), past_of(units)
        y, lengths = from_first_value(*units_of(panel))
        e, h = filter_garch(model, units.params, before, y, lengths)
        return rows_from_first(panel, e), rows_from_first(panel, h)

    def facts(self, params: np.ndarray, constants: Arrays) -> dict[str, object]:
        model, row = self.model, params[None]
        facts: dict[str, object] = {"Distribution": _DISTRIBUTIONS[model.density.name]}
        if not np.isfinite(row).all():
            return facts
        if not row[0, model.shock_part].any():  # beta is not identified
            return facts | {"Persistence": "none: no effect of shocks"}
        return facts | {
            "Persistence": f"{persistence(model, row)[0]:.4f}",
            "Half-life": f"{half_life(model, row)[0]:.4g}",
            "Uncond. variance": f"{unconditional_variance(model, row)[0]:.5g}",
        }

    def restriction_to(self, smaller: Family, params: np.ndarray) -> Restriction | None:
        if not isinstance(smaller, GARCHFamily):
            return None
        model, small = self.model, smaller.model
        mean, inner = model.mean, small.mean
        lags = model.p - small.p, model.q - small.q
        mean_lags = len(mean.lags) - len(inner.lags), mean.n_ma - inner.n_ma
        nested = (
            min(*lags, mean_lags[1], mean.constant - inner.constant) >= 0
            and set(inner.lags) <= set(mean.lags)
            and small.vol in (model.vol, model.vol.without_leverage)
            and set(small.density.names) <= set(model.density.names)
            and not (self.stationary and not smaller.stationary)
        )
        if not nested:
            return None
        normal = model.density != small.density
        # Shocks of a lag more are two in a GJR model: alpha and alpha + gamma, both not negative.
        positive = 0 if model.vol.log else lags[0] * len(model.vol.coefficients) + lags[1]
        return Restriction(
            boundary=positive + normal,
            reason=COMMON_FACTORS if min(lags) > 0 or min(mean_lags) > 0 else "",
            reached=params[:, -1] >= LARGEST_NU if normal else None,
        )

    def recursion(self, params: np.ndarray, constants: Arrays) -> Recursion:
        model = self.model
        if model.vol.log:
            raise ValueError(
                "an EGARCH is no linear network: its input, the standardised residual, depends on "
                "its state. The others are: use vol='garch', 'gjr' or 'tgarch'"
            )
        r, expected = model.n_vol, np.array(model.vol.expected)
        inputs = [padded(params[model.shock_coefficients(s)], r) for s in range(len(expected))]
        equation = DifferenceEquation(
            padded(params[model.beta], r)[:, None, None],
            np.stack(inputs, 1)[:, None],
            params[[model.omega]],
        )
        before = model.vol.transformed(constants["presample"])
        return Recursion(equation, np.array([before]), before * expected)

    @classmethod
    def named(cls, equation: DifferenceEquation) -> dict[str, float]:
        names = ("alpha", "gamma")[: equation.inputs.shape[2]]
        lags = range(1, len(equation.recurrent) + 1)
        return {
            "omega": equation.intercept[0],
            **{
                f"{name}[{i}]": equation.inputs[i - 1, 0, s]
                for s, name in enumerate(names)
                for i in lags
            },
            **{f"beta[{i}]": equation.recurrent[i - 1, 0, 0] for i in lags},
        }

    def _model_of(self, panel: Panel) -> Model:
        """Model that marks rows if series differ in length, and values if any is missing."""
        lengths, gaps = panel.lengths, bool(np.isnan(panel.values).any())
        # Leading missing values are cut off, so that lengths differ then, too.
        padded = gaps or bool((lengths != lengths[0]).any())
        if (padded, gaps) == (self.model.padded, self.model.gaps):
            return self.model
        return replace(self.model, padded=padded, gaps=gaps)

    def _no_closed_form(self, instead: str) -> ValueError:
        return ValueError(
            f"vol={self.model.vol.name!r} has no analytic forecasts of variances beyond the first "
            f"step; take {instead}"
        )


def garch_family(arguments: Arguments, n_targets: int = 1) -> GARCHFamily:
    """Check the constructor arguments and make the family; a TypeError or ValueError refuses."""
    model = model_of(
        arguments.order, arguments.mean, arguments.mean_order, arguments.distribution,
        arguments.vol,
    )  # fmt: skip
    check_skipping(arguments)
    intervals = choice("intervals", arguments.intervals, INTERVALS)
    if intervals == "conformal":  # errors are scaled by the widths of simulated intervals
        intervals = INTERVALS[0]
    n_simulations = positive_integer("n_simulations", arguments.n_simulations)
    initial = initial_variance_of(arguments.initial_variance, model.vol.name)
    stationary, n_starts = flag("stationary", arguments.stationary), arguments.n_starts
    if n_starts is not None:
        n_starts = positive_integer("n_starts", n_starts)
    return GARCHFamily(
        model, n_targets, initial, stationary, n_starts, intervals, n_simulations,
        arguments.random_state,
    )  # fmt: skip


def past_of(units: Units) -> Past:
    """Presample values of each unit."""
    return Past(units.constants["presample"], units.constants.get("presample_z"))


def check_variances(model: Model, params: np.ndarray, usable: np.ndarray) -> None:
    """Raise a ValueError for the first parameters (N, k) that are not `usable` (N,)."""
    bad = np.flatnonzero(~usable)
    if len(bad):
        raise ValueError(
            f"params must give positive, finite variances; those of unit {bad[0]}, "
            f"{dict(zip(model.names, params[bad[0]].tolist(), strict=True))}, do not"
        )


def draw_innovations(
    model: Model, params: np.ndarray, shape: tuple[int, int], rng: np.random.Generator
) -> np.ndarray:
    """Draw innovations (N, *shape), unit after unit; NaN for a unit without parameters."""
    z = np.full((len(params), *shape), np.nan)
    for i in np.flatnonzero(np.isfinite(params).all(1)):
        z[i] = model.density.draw(rng, shape, params[i : i + 1, model.shape_part])[0]
    return z


def _by_unit(state: Arrays) -> VarianceState:
    """Reshape a state by series into one by unit."""
    arrays = (state[name] for name in VarianceState._fields)
    return VarianceState(*(a.reshape(a.shape[0] * a.shape[1], a.shape[2]) for a in arrays))


def _by_series(n_series: int, state: VarianceState) -> Arrays:
    """Reshape a state by unit into arrays with the series as their first axis."""
    return {
        name: np.array(array).reshape(n_series, len(array) // n_series, array.shape[-1])
        for name, array in state._asdict().items()
    }
