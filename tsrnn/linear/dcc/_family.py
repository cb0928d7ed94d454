"""CCC and DCC families, at given orders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tsrnn.data import Panel
from tsrnn.layers import ParaRNN
from tsrnn.linear._as_rnn import DifferenceEquation, Recursion, padded
from tsrnn.linear._estimates import Estimates
from tsrnn.linear._family import Arrays, Family, Units, set_series
from tsrnn.linear._hypotheses import Restriction
from tsrnn.linear._matrices import Forecast, Path, SpecifiedFamily
from tsrnn.linear._multivariate import check_long_enough
from tsrnn.linear.dcc._equations import Sample, sample_of
from tsrnn.linear.dcc._filter import (
    CorrelationState,
    advance_dcc,
    draw_ahead,
    draw_dcc,
    filter_dcc,
    forecast_dcc,
)
from tsrnn.linear.dcc._fit import CorrelationOptima, fit_correlations
from tsrnn.linear.dcc._inference import estimates_at, estimates_of
from tsrnn.linear.dcc._specification import Specification
from tsrnn.linear.garch._volatility import VOLATILITIES

_ROUNDING = 1e-8  # coefficients of a layer up to this count as zero


@dataclass(frozen=True)
class CorrelationFamily(SpecifiedFamily):
    """Model of conditional correlation: a unit is a series with all its targets."""

    spec: Specification

    cov_kinds: ClassVar[tuple[str, ...]] = ("robust", "hessian")

    @property
    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        n, step, order = self.n, self.spec.step, self.spec.order
        return {
            "history": (step.mean.n_lags, n),
            "variance": (n, step.model().n_state),
            "outer": (order.p, n, n),
            "q": (max(order.q, 1), n, n),
        }

    @property
    def constant_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"presample": (self.n,)}

    @property
    def conventions(self) -> dict[str, str]:
        return {"Estimation": "in steps", "Presample variance": str(self.spec.initial_variance)}

    def prepare(
        self, panel: Panel, given: np.ndarray | None
    ) -> Iterator[tuple[Sample | None, dict[int, str]]]:
        yield sample_of(self.spec, panel, given)

    def search(self, sample: Sample, verbose: int) -> CorrelationOptima:
        return fit_correlations(
            self.spec.order, sample.equations.z, sample.design.observed, verbose
        )

    def given(self, sample: Sample, params: np.ndarray) -> Estimates:
        return estimates_at(self.spec, sample, params)

    def infer(
        self, sample: Sample, optimum: CorrelationOptima | Estimates
    ) -> tuple[Estimates, Arrays]:
        estimates = optimum
        if not isinstance(estimates, Estimates):  # an optimum of the search
            estimates = estimates_of(self.spec, sample, estimates)
        return estimates, {"presample": sample.equations.presample}

    def filter(self, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        return self._run(panel, units)[1]

    def paths(self, panel: Panel, units: Units) -> dict[int, Path]:
        return self._run(panel, units)[0]

    def _run(self, panel: Panel, units: Units) -> tuple[dict[int, Path], Arrays]:
        """Paths of the series with parameters, by number, and the state of all series."""
        state, fitted = self.empty_state(panel.n_series), units.fitted
        check_long_enough(panel, fitted, self.spec.mean.n_lags)
        if not len(fitted):
            return {}, state
        known = units.select(fitted)
        series = [panel.series(int(i)) for i in fitted]
        paths, last = filter_dcc(
            self.spec, self.spec.parts(known.params), known.constants["presample"], series
        )
        set_series(state, fitted, last._asdict())
        return dict(zip(fitted.tolist(), paths, strict=True)), state

    def advance(self, state: Arrays, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        parts, before = self.spec.parts(units.params), CorrelationState(**state)
        after = {name: array.copy() for name, array in state.items()}
        for length in np.unique(panel.lengths):  # series of one length advance in one batch
            chosen = np.flatnonzero(panel.lengths == length)
            values = np.array([panel.series(int(i)) for i in chosen])
            last = advance_dcc(self.spec, parts.select(chosen), before.select(chosen), values)
            set_series(after, chosen, last._asdict())
        return after

    def forecasts(self, state: Arrays, units: Units, h: int) -> Forecast:
        parts = self.spec.parts(units.params)
        return forecast_dcc(self.spec, parts, CorrelationState(**state), h)

    def draw(self, units: Units, rows: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
        return draw_dcc(self.spec, self.spec.parts(units.params), rows, rng)

    def draw_ahead(
        self, state: Arrays, units: Units, shape: tuple[int, int], rng: np.random.Generator
    ) -> np.ndarray:
        shocks = rng.standard_normal((len(units.params), *shape, self.n))
        parts = self.spec.parts(units.params)
        return draw_ahead(self.spec, parts, CorrelationState(**state), shocks)

    def facts(self, params: np.ndarray, constants: Arrays) -> dict[str, object]:
        step = self.spec.step
        return {
            "Distribution": "normal",
            "Variances": f"{VOLATILITIES[step.vol].title}({step.p}, {step.q})",
            "Mean": step.mean.kind,
        }

    def notes(self) -> list[str]:
        return [
            "Robust standard errors are those of all steps of the estimation together; 'hessian' "
            "takes earlier steps as known.",
            *super().notes(),
        ]

    def restriction_to(self, smaller: Family, params: np.ndarray) -> Restriction | None:
        if not isinstance(smaller, CorrelationFamily):
            return None
        spec, small = self.spec, smaller.spec
        order, inner = spec.order, small.order
        nested = (
            small.step.p <= spec.step.p
            and small.step.q <= spec.step.q
            and inner.p <= order.p
            and inner.q <= order.q
            and (not inner.p or inner.corrected == order.corrected)
            and small.step.vol in (spec.step.vol, "garch")
            and set(small.names) <= set(spec.names)
            and not (spec.stationary and not small.stationary)
        )
        if not nested:
            return None
        reason = (
            "estimated in steps, the parameters do not maximise the likelihood together, and its "
            "ratio has no chi-square limit"
        )
        if order.q and not inner.p:
            reason = (
                "b is not identified where a is zero, and parameters are estimated in steps; take "
                "constant_correlation_test"
            )
        return Restriction(reason=reason, joint=False)


class CCCFamily(CorrelationFamily):
    """Constant conditional correlations."""

    @property
    def title(self) -> str:
        return "CCC"

    def recursion(self, params: np.ndarray, constants: Arrays) -> Recursion:
        """Recursion of the variances, driven by squared residuals (for gjr, also by sign)."""
        spec = self.spec
        model = spec.step.model()
        rows = spec.parts(params[None]).variance[0]
        r, n, expected = model.n_vol, len(rows), model.vol.expected
        inputs = [
            [np.diag(lag) for lag in padded(rows[:, model.shock_coefficients(s)].T, r)]
            for s in range(len(expected))
        ]
        before = constants["presample"]
        equation = DifferenceEquation(
            np.array([np.diag(lag) for lag in padded(rows[:, model.beta].T, r)]),
            np.concatenate(inputs, 2).reshape(r, n, -1),
            rows[:, model.omega],
        )
        past = [before * share for share in expected]
        return Recursion(equation, before, np.concatenate(past))

    @classmethod
    def outputs_of(cls, layer: ParaRNN) -> int:
        """Number of inputs, or half of it if there is a second set for gamma."""
        count: int = layer.input_size
        return count if layer.hidden_size % count == 0 else count // 2

    @classmethod
    def named(cls, equation: DifferenceEquation) -> dict[str, float]:
        recurrent, inputs, intercept = equation
        n, lags = len(intercept), range(1, len(recurrent) + 1)
        shocks = inputs.reshape(len(lags), n, -1, n).swapaxes(1, 2)
        diagonals = {"beta": recurrent} | {
            name: shocks[:, s] for s, name in enumerate(("alpha", "gamma")[: shocks.shape[1]])
        }
        for lag in np.concatenate(list(diagonals.values())):
            if np.abs(lag - np.diag(np.diag(lag))).max() > _ROUNDING:
                raise ValueError(
                    "a variance of this layer depends on another; VECMGARCH.from_rnn reads such. "
                    "A GJR model of two lags and more needs its readout, of shape (n, states)"
                )
        named = {}
        for k in range(n):
            named[f"omega.y{k + 1}"] = intercept[k]
            for name in (name for name in ("alpha", "gamma", "beta") if name in diagonals):
                named |= {f"{name}[{i}].y{k + 1}": diagonals[name][i - 1, k, k] for i in lags}
        return named


class DCCFamily(CorrelationFamily):
    """Dynamic conditional correlations."""

    @property
    def title(self) -> str:
        order = self.spec.order
        return f"{'cDCC' if order.corrected else 'DCC'}({order.p}, {order.q})"

    def facts(self, params: np.ndarray, constants: Arrays) -> dict[str, object]:
        parts, facts = self.spec.parts(params[None]), super().facts(params, constants)
        total = parts.a.sum() + parts.b.sum()
        return facts | ({"Sum of a and b": f"{total:.4f}"} if np.isfinite(total) else {})

    def recursion(self, params: np.ndarray, constants: Arrays) -> Recursion:
        """Recursion of vech(Q), the lower triangle by columns, with input vech(z z')."""
        spec = self.spec
        if spec.order.corrected:
            raise ValueError(
                "a corrected DCC is no linear network: its input depends on Q. The DCC of Engle is"
            )
        parts = spec.parts(params[None])
        rows, columns = np.triu_indices(spec.n)
        target = parts.target[0][rows, columns]
        a, b, same = parts.a[0], parts.b[0], np.eye(len(target))
        r = max(len(a), len(b))
        equation = DifferenceEquation(
            padded(b, r)[:, None, None] * same,
            padded(a, r)[:, None, None] * same,
            (1 - a.sum() - b.sum()) * target,
        )
        return Recursion(equation, target, target)

    @classmethod
    def named(cls, equation: DifferenceEquation) -> dict[str, float]:
        lags = range(1, len(equation.recurrent) + 1)
        groups = (("a", equation.inputs), ("b", equation.recurrent))
        return {f"{name}[{i}]": values[i - 1, 0, 0] for name, values in groups for i in lags}
