"""Complex exponential smoothing: the family of models among which one is chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from tsrnn.data import Panel
from tsrnn.linear._as_rnn import DifferenceEquation, Recursion, padded
from tsrnn.linear._estimates import Estimates
from tsrnn.linear._family import Ahead, Arrays, Family, Units, normal_forecasts, raise_if_given
from tsrnn.linear._hypotheses import Restriction
from tsrnn.linear._regressors import (
    centre_of,
    centre_shapes,
    effects_ahead,
    with_regressors,
    without_columns,
)
from tsrnn.linear._samples import Sample
from tsrnn.linear.arma._prepare import first_rows, from_row, rows_of
from tsrnn.linear.ces._filter import expected, simulated, states_after, states_before, variances
from tsrnn.linear.ces._fit import given, inferred, samples, search
from tsrnn.linear.ces._specification import SIGMA2, SMOOTHING, Components
from tsrnn.linear.ets._search import Search


class Group(NamedTuple):
    """Units of one model."""

    model: Components
    numbers: np.ndarray  # (n,)
    params: np.ndarray  # (n, 4), smoothing parameters
    sigma2: np.ndarray  # (n,), estimated variance of errors
    ahead: np.ndarray  # (n,), variance of errors for forecasts
    start: np.ndarray  # (n, q), states before the first row fitted to


@dataclass(frozen=True)
class CESFamily(Family):
    """Models of complex exponential smoothing; each unit, a target of a series, takes the best."""

    models: tuple[Components, ...]
    n_targets: int = 1
    regressors: tuple[str, ...] = ()  # exogenous columns

    guarantee: ClassVar[str] = (
        "Asymptotic, the model and its parameters taken as known. Holds if the model is right and "
        "its errors are normal."
    )

    @property
    def names(self) -> tuple[str, ...]:
        longest = max((model.names for model in self.models), key=len)
        return (*longest, *self.regressors, SIGMA2)

    @property
    def title(self) -> str:
        return self.models[0].title if len(self.models) == 1 else "CES"

    @property
    def n_states(self) -> int:
        """States of the largest model."""
        return max(model.n_states for model in self.models)

    @property
    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"memory": (self.n_targets, self.n_states)}

    @property
    def constant_shapes(self) -> dict[str, tuple[int, ...]]:
        n = self.n_targets
        numbers = {"model": (n,), "widening": (n,)}
        shapes = {**numbers, "aicc": (n, len(self.models)), "start": (n, self.n_states)}
        return shapes | centre_shapes(n, self.regressors)

    @property
    def conventions(self) -> dict[str, str]:
        return {"Initial states": "backcast"}

    # A fit.

    def prepare(
        self, panel: Panel, given: np.ndarray | None
    ) -> Iterator[tuple[Sample | None, dict[int, str]]]:
        return raise_if_given(samples(self.models, panel, given is not None), panel, given)

    def search(self, sample: Sample, verbose: int) -> Search:
        return search(self.models, sample)

    def given(self, sample: Sample, params: np.ndarray) -> Search:
        if len(self.models) > 1:
            raise ValueError(
                "parameters are those of one model; got seasonal='auto' and a season. Name seasonal"
            )
        if not (params[:, -1] > 0).all():
            raise ValueError(f"sigma2 must be positive; got {params[:, -1].min():g}")
        return given(self.models, self.names, sample, params)

    def infer(self, sample: Sample, optimum: Search) -> tuple[Estimates, Arrays]:
        estimates, constants = inferred(self.models, self.names, sample, optimum)
        estimates = with_regressors(
            estimates, self.names, self.regressors, sample.kept, "others, or with the season,"
        )
        return estimates, constants | centre_of(sample.columns)

    # The recursion at given parameters.

    def filter(self, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        memory = np.full((len(units.params), self.n_states), np.nan)
        for group in self._groups(units):
            values, lead, first, _ = self._values_and_states(group, panel, units, steps)
            lengths = panel.lengths[group.numbers // self.n_targets] - lead
            after = states_after(group.model, group.params, first, values, lengths)
            memory[group.numbers] = _padded(after, self.n_states)
        return {"memory": memory.reshape(panel.n_series, *self.state_shapes["memory"])}

    def advance(self, state: Arrays, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        before = state["memory"]
        after = before.reshape(len(units.params), -1).copy()
        for model, numbers, params, *_ in self._groups(units):
            lengths = panel.lengths[numbers // self.n_targets]
            more = lengths > 0
            if not more.any():
                continue
            numbers, params, lengths = numbers[more], params[more], lengths[more]
            values, _ = without_columns(panel, units, numbers, self._places)
            states = after[numbers, : model.n_states]
            new = states_after(model, params, states, values, lengths)
            after[numbers] = _padded(new, after.shape[1])
        return {"memory": after.reshape(before.shape)}

    def variance_correction(self, constants: Arrays) -> np.ndarray:
        return constants["widening"]

    def forecast(self, state: Arrays, units: Units, ahead: Ahead, levels: list[float]) -> Arrays:
        memory = state["memory"].reshape(len(units.params), -1)
        means, spread = np.full((2, len(memory), ahead.h), np.nan)
        for model, numbers, params, _, sigma2, _ in self._groups(units):
            nothing = np.full((len(numbers), ahead.h), np.nan)
            means[numbers] = expected(model, params, memory[numbers, : model.n_states], nothing)
            means[numbers] += effects_ahead(units, ahead, numbers, self.n_targets, self._places)
            if levels:
                spread[numbers] = variances(model, params, sigma2, ahead.h)
        shape = len(ahead.steps), self.n_targets, ahead.h
        means, spread = (part.reshape(shape).swapaxes(1, 2) for part in (means, spread))
        return normal_forecasts(means, spread, levels)

    def simulate(
        self, state: Arrays, units: Units, ahead: Ahead, n: int, rng: np.random.Generator
    ) -> np.ndarray:
        memory = state["memory"].reshape(len(units.params), -1)
        z = rng.standard_normal((len(memory), ahead.h, n))
        paths = np.full(z.shape, np.nan)
        for model, numbers, params, _, sigma2, _ in self._groups(units):
            states = memory[numbers, : model.n_states]
            effects = effects_ahead(units, ahead, numbers, self.n_targets, self._places)
            paths[numbers] = simulated(model, params, sigma2, states, z[numbers])
            paths[numbers] += effects[:, :, None]
        return paths.reshape(-1, self.n_targets, ahead.h, n).transpose(3, 0, 2, 1)

    def in_sample(
        self, panel: Panel, units: Units, steps: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        fitted, scaled = [], []
        for group in self._groups(units):
            values, lead, first, effects = self._values_and_states(group, panel, units, steps)
            means = from_row(expected(group.model, group.params, first, values), -lead)
            values = from_row(values, -lead)
            fitted.append((group.numbers, means + effects))
            # Residuals of an exact fit have no scale.
            spread = np.sqrt(np.where(group.sigma2 > 0, group.sigma2, np.nan))
            scaled.append((group.numbers, (values - means) / spread[:, None]))
        return rows_of(panel, fitted), rows_of(panel, scaled)

    # Inference and interpretation.

    def names_of(self, constants: Arrays) -> tuple[str, ...]:
        number = constants["model"]
        if not np.isfinite(number):
            return self.names
        return (*self.models[int(number)].names, *self.regressors, SIGMA2)

    def facts(self, params: np.ndarray, constants: Arrays) -> dict[str, object]:
        if not np.isfinite(params).all():
            return {}
        facts: dict[str, object] = {}
        model, smoothing = self.of_unit(params, constants)
        if len(self.models) > 1:
            facts = {"Chosen": model.title, "of": f"{len(self.models)} by AICc"}
        if model.n_level:
            facts["Initial level"] = f"{constants['start'][0]:.6g}"
        modulus = np.abs(np.linalg.eigvals(model.discount(smoothing)[0])).max()
        return facts | {"Discount modulus": f"{modulus:.4f}"}

    def restriction_to(self, smaller: Family, params: np.ndarray) -> Restriction | None:
        # Seasonal states are backcast too, so that a model without a season is no restriction.
        same = isinstance(smaller, CESFamily) and smaller.models == self.models
        nested = same and set(smaller.names) <= set(self.names)
        return Restriction() if nested and len(self.models) == 1 else None

    def recursion(self, params: np.ndarray, constants: Arrays) -> Recursion:
        r"""Recursion of the means, :math:`\theta(B) \mu_t = (\theta(B) - \phi(B)) y_t`.

        theta and phi are the characteristic polynomials of the discount and transition matrices.
        """
        model, smoothing = self.of_unit(params, constants)
        theta = np.poly(model.discount(smoothing)[0])
        phi = np.poly(model.transition(smoothing)[0])
        equation = DifferenceEquation(
            -theta[1:, None, None], (theta - phi)[1:, None, None], np.zeros(1)
        )
        r = model.n_states
        start = constants["start"][None, :r]
        # Means of the next rows from the states alone, with zero observations.
        free = expected(model, smoothing, start, np.zeros((1, r)))[0]
        state = np.convolve(theta, free)[:r]
        return Recursion(equation, start=state)

    def of_unit(self, params: np.ndarray, constants: Arrays) -> tuple[Components, np.ndarray]:
        """Model and smoothing parameters (1, 4) of a unit."""
        model = self.models[int(constants["model"])]
        return model, _padded(params[None, : len(model.names)], 4)

    @property
    def _places(self) -> list[int]:
        """Positions of the coefficients of exogenous columns among the parameters."""
        last = len(self.names) - 1
        return list(range(last - len(self.regressors), last))

    def _groups(self, units: Units) -> Iterator[Group]:
        fitted = units.fitted
        for number, model in enumerate(self.models):
            numbers = fitted[units.constants["model"][fitted] == number]
            if len(numbers):
                params = units.params[numbers]
                start = units.constants["start"][numbers, : model.n_states]
                smoothing = _padded(params[:, : len(model.names)], len(SMOOTHING))
                ahead = params[:, -1] * units.constants["widening"][numbers]
                yield Group(model, numbers, smoothing, params[:, -1], ahead, start)

    def _values_and_states(
        self, group: Group, panel: Panel, units: Units, steps: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Values (n, T) less effects of columns, rows before them (n,), first states, effects.

        Values begin with the first one of a series. States before it are the fitted ones, or
        backcast if the rows start elsewhere.
        """
        series = group.numbers // self.n_targets
        values, effects = without_columns(panel, units, group.numbers, self._places)
        lead = first_rows(values)
        values = from_row(values, lead)
        elsewhere, first = np.flatnonzero(steps[series] != 0), group.start
        if len(elsewhere):
            first = first.copy()
            first[elsewhere] = states_before(
                group.model, group.params[elsewhere], values[elsewhere]
            )
        return values, lead, first, effects


def _padded(array: np.ndarray, width: int) -> np.ndarray:
    """Pad an array (n, k) with columns of zeros to a width."""
    return padded(array.T, width).T
