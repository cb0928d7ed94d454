"""Pretrained prior network, and its forecasts in the units of the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from tsrnn.contract import ONE_THREAD
from tsrnn.prior._autoregression import AutoregressionForecasts, autoregress
from tsrnn.prior._examples import (
    PANEL_RATE,
    make_examples,
    trained_steps,
    training_origins,
    window_rows,
)
from tsrnn.prior._file import TrainedNetwork, weights_of
from tsrnn.prior._forward import (
    FASTEST_CURVE,
    ON_ARRAYS,
    PROBABILITIES,
    Predictive,
    at_probabilities,
    neighbours,
    predict,
    weight_shapes,
)
from tsrnn.prior._mixture import MIDDLE, mix_autoregression
from tsrnn.prior._structural import (
    SCALES,
    SEASONS,
    TRENDS,
    Evidence,
    evenly,
    structural_evidence,
    structural_models,
)
from tsrnn.prior._widths import (
    EVERY,
    PAST_ROWS,
    OriginForecasts,
    Scores,
    by_step,
    own_factors,
    panel_factors,
    past_origins,
    past_scores,
    step_factors,
)

if TYPE_CHECKING:
    from tsrnn.prior._network import PriorNetwork

FEWEST_ROWS = 3  # two changes: one has no spread
LONGEST_SEASON = 60  # rows; longer states take seconds a series
PANEL_UNITS = 300  # series of a panel that widths and fine-tuning are estimated from
SEASONAL_UNITS = 24  # the same for fine-tuning with a season: more were no better, and slower
LONG_ORIGINS = 64  # forecast origins of long series, from which widths are estimated
LONG_STEPS, MOST_LONG_STEPS = 8, 200  # their horizon in seasons, and its bound in rows
WINDOWS = 24  # windows of all long series together, for fine-tuning
# Files of the networks that come with the package, by cell.
SHIPPED = {
    "rnn": "prior.safetensors",
    "lem": "prior_lem.safetensors",
    "lru": "prior_lru.safetensors",
    "newton-gru": "prior_newton_gru.safetensors",
    "newton-lstm": "prior_newton_lstm.safetensors",
}
CONSTANTS = ("gaps",)  # buffers, which are not learned
AT_ONCE = 2**20  # forecasts of structural models computed together: they stay in the cache


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Predictive distributions of h rows of U units.

    Attributes
    ----------
    median : ndarray of shape (U, h)
    quantiles : ndarray of shape (U, 15, h)
        Quantiles at 0.005, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5 and the probabilities symmetric
        to these.
    weights : Series
        Weights of structural models and autoregressions in the median, averaged over units and
        steps.
    state : ndarray of shape (U, D)
        Inputs and recurrent state of the network after the last rows; (U, 0) if it did not run.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import trained_prior
    >>> rows = np.array([[112.0, 118.0, 132.0, 129.0, 121.0, 135.0]])
    >>> forecasts = trained_prior().forecast(rows, np.array([6]), season_length=1, h=3)
    >>> forecasts.median.shape, forecasts.quantiles.shape
    ((1, 3), (1, 15, 3))
    """

    median: np.ndarray
    quantiles: np.ndarray
    weights: pd.Series
    state: np.ndarray

    def at(self, probabilities: Sequence[float]) -> np.ndarray:
        """Quantiles (U, n, h) at n probabilities between 0 and 1."""
        return at_probabilities(self.quantiles, probabilities)

    def at_ranks(self, ranks: np.ndarray) -> np.ndarray:
        """Quantiles (n, U, h) at `ranks` (n, U, h), a probability for each draw, unit and step."""
        right, weight = neighbours(ranks)
        quantiles = self.quantiles.swapaxes(1, 2)[None]
        low, high = (
            np.take_along_axis(quantiles, place[..., None], -1)[..., 0]
            for place in (right - 1, right)
        )
        return (1 - weight) * low + weight * high

    def mixed(self, other: Forecasts, units: np.ndarray, weight: np.ndarray) -> Forecasts:
        """Mix the distributions of selected units with alternative ones.

        Parameters
        ----------
        other : Forecasts
            Alternative forecasts of n units.
        units : integer ndarray of shape (n,)
            Index of each of the n units in `self`.
        weight : ndarray of shape (n,)
            Weight of `self`; `other` has the rest.

        Returns
        -------
        Forecasts
            Mixture, with the states of `self`.
        """
        quantiles = self.quantiles.copy()
        for number, unit in enumerate(units.tolist()):
            for step in range(quantiles.shape[2]):
                pair = self.quantiles[unit, :, step], other.quantiles[number, :, step]
                quantiles[unit, :, step] = mixture_quantiles(*pair, weight[number])
        median = self.median.copy()
        median[units] = quantiles[units, MIDDLE]
        part = (1 - weight).sum() / len(self.median)
        weights = ((1 - part) * self.weights).add(part * other.weights, fill_value=0.0)
        return Forecasts(median, quantiles, weights, self.state)


def mixture_quantiles(first: np.ndarray, second: np.ndarray, weight: float) -> np.ndarray:
    """Quantiles (15,) of a mixture of two distributions, from the quantiles of each.

    Between quantiles the distribution functions are linear in normal scores; beyond the outermost
    quantiles they have no mass.
    """
    scores = ndtri(PROBABILITIES)
    places = np.sort(np.concatenate([first, second]))

    def probability(quantiles: np.ndarray) -> np.ndarray:
        below = ndtr(np.interp(places, quantiles, scores))
        return np.where(places < quantiles[0], 0.0, np.where(places > quantiles[-1], 1.0, below))

    total = weight * probability(first) + (1 - weight) * probability(second)
    return np.interp(PROBABILITIES, np.maximum.accumulate(total), places)


@dataclass(frozen=True, eq=False)
class TrainedPrior(TrainedNetwork):
    """Pretrained prior network.

    Attributes
    ----------
    weights : dict of str to ndarray
        Weights by their names in `PriorNetwork`.
    size : dict of str to int or str
        Arguments of `PriorNetwork`; `cell` is "rnn" if missing.
    description : str
        Sentence that names the training data.
    autoregression : bool
        True to mix the forecasts with nonlinear autoregressions where their evidence is large.

    Examples
    --------
    >>> from tsrnn.prior import trained_prior
    >>> prior = trained_prior()
    >>> prior.n_parameters < 1_000_000
    True
    """

    autoregression: bool = True
    prefix = "prior."
    noun = "prior network"

    @staticmethod
    def new_network(**size: Any) -> PriorNetwork:
        """Untrained network of the given size."""
        from tsrnn.prior._network import PriorNetwork  # torch

        return PriorNetwork(**size)

    @classmethod
    def weight_shapes(cls, **size: Any) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights by name, without torch for the cells `ON_ARRAYS`."""
        if size.get("cell", "rnn") in ON_ARRAYS:
            return weight_shapes(**size)
        return super().weight_shapes(**size)

    @property
    def cell(self) -> str:
        """Cell of the recurrence, one of `PRIOR_CELLS`."""
        return self.size.get("cell", "rnn")

    @property
    def n_parameters(self) -> int:
        """Number of learned parameters."""
        return sum(array.size for name, array in self.weights.items() if name not in CONSTANTS)

    @property
    def state_size(self) -> int:
        """Size of `Forecasts.state` of a unit."""
        return self.weights["head.0.weight"].shape[1]

    @cached_property
    def _predictive(self) -> Callable[..., Predictive[np.ndarray]]:
        """Forward pass in float64, so that a forecast does not depend on the batch."""
        if self.cell in ON_ARRAYS:
            return partial(predict, {k: array.astype(float) for k, array in self.weights.items()})
        from tsrnn.prior._network import predict_arrays  # torch

        return partial(predict_arrays, self.float64_network)

    def n_models(self, season_length: int) -> int:
        """Number of structural models for a season length."""
        return len(SCALES) * len(structural_models(season_length).noise)

    def forecast(
        self,
        values: np.ndarray,
        lengths: np.ndarray,
        season_length: int,
        h: int,
        widths: np.ndarray | None = None,
        earlier: np.ndarray | None = None,
    ) -> Forecasts:
        """Predictive distributions of the h rows after each unit.

        Parameters
        ----------
        values : ndarray of shape (U, T)
            Rows of each unit, left-aligned; NaN where a row is missing, at least three are
            observed; finite padding after the end.
        lengths : integer ndarray of shape (U,)
        season_length : int
            1 for none, at most 60.
        h : int
        widths : ndarray of shape (n,), optional
            Factors of the learned widths by step, from `panel_widths` or `long_widths`; the last
            one applies to all later steps. By default 1.
        earlier : ndarray of shape (U, B), optional
            Rows before the first column, for the autoregressions; NaN where there are none.

        Returns
        -------
        Forecasts
        """
        widths = np.ones(PAST_ROWS) if widths is None else widths
        return forecasts_by([self], values, lengths, season_length, h, [widths], earlier)[0]

    def medians_from(
        self,
        values: np.ndarray,
        origins: np.ndarray,
        season_length: int,
        h: int,
        earlier: np.ndarray | None = None,
    ) -> np.ndarray:
        """Median forecasts from chosen origins, each from the rows up to it.

        Parameters
        ----------
        values : ndarray of shape (U, T)
            Rows of each unit, left-aligned; NaN where a row is missing.
        origins : boolean ndarray of shape (U, T)
            Observed rows to forecast from, from the third on.
        season_length, h : int
        earlier : ndarray of shape (U, B), optional
            Rows before the first column, as in `forecast`.

        Returns
        -------
        ndarray of shape (n, h)
            Forecasts in the order of units, then of rows.
        """
        medians = []
        earlier = np.empty((len(values), 0)) if earlier is None else earlier
        for rows, place, before in zip(values, origins, earlier, strict=True):
            length = np.flatnonzero(place)[-1] + 1
            part = _Part.of(rows[None, :length], np.array([length]))
            forecasts = self._predict(part, season_length, h, place[None, :length])
            of_unit, quantiles = forecasts.median, forecasts.median[:, None] + forecasts.offsets
            observed = np.isfinite(part.values[0]).cumsum()
            # From the last origin back: without an autoregression there, earlier ones need none.
            for number in reversed(range(len(of_unit) if self.autoregression else 0)):
                origin = forecasts.rows[number] + 1
                evidence = forecasts.log_evidence[0][: observed[origin - 1]]
                known = part.values[0, :origin]
                known = np.append(without_far_rows(before, rows[:origin]) / part.unit[0], known)
                of_origin, mixture = quantiles[number], None
                with ONE_THREAD:
                    regressed = autoregress(known, season_length, of_origin.shape[1], evidence)
                if regressed is not None:
                    mixture = mix_autoregression(of_origin, of_origin, regressed, evidence)
                if mixture is None and number == len(of_unit) - 1:
                    break
                if mixture is not None:
                    of_unit[number] = mixture.quantiles[MIDDLE]
            medians.append(of_unit * part.unit)
        return np.concatenate(medians)

    def panel_widths(
        self, values: np.ndarray, lengths: np.ndarray, season_length: int
    ) -> np.ndarray:
        """Factors (PAST_ROWS,) of the learned widths by step, from the forecast errors of a panel.

        The last rows of up to 300 evenly spaced units are forecast and compared with the data. All
        factors of a single unit are 1, since `forecast` already uses its errors.
        """
        chosen = evenly(len(values), PANEL_UNITS)
        values, lengths = values[chosen], lengths[chosen]
        lengths = lengths - missing_at_end(values, lengths)
        scores = [
            past_scores(part.values, part.lengths, self._predict(part, season_length, PAST_ROWS))
            for _, part in self._parts(values, lengths, season_length, PAST_ROWS)
        ]
        return panel_factors(Scores(*map(np.concatenate, zip(*scores, strict=True))))

    def long_widths(self, series: Sequence[np.ndarray], season_length: int) -> np.ndarray:
        """Factors (n,) of the learned widths by step, from forecast errors within long series.

        Origins are spread over the later half of each series; the horizon is longer than in
        training. All factors are 1 if no series is long enough.
        """
        window = window_rows(season_length)
        steps = min(LONG_STEPS * max(season_length, FASTEST_CURVE), MOST_LONG_STEPS)
        each = max(1, LONG_ORIGINS // len(series))
        windows_before, after = [], []
        for rows in series:
            first, last = max(window, len(rows) // 2), len(rows) - steps
            if first <= last:
                for origin in np.unique(np.linspace(first, last, each).astype(int)):
                    before = rows[origin - window : origin]
                    if np.isfinite(before).sum() >= FEWEST_ROWS:
                        windows_before.append(before)
                        after.append(rows[origin : origin + steps])
        if not after:
            return np.ones(PAST_ROWS)
        forecasts = self.forecast(
            np.array(windows_before), np.full(len(after), window), season_length, steps
        )
        error = np.array(after) - forecasts.median
        low, high = forecasts.at([0.1, 0.9]).swapaxes(0, 1)
        half = np.where(error > 0, high - forecasts.median, forecasts.median - low)
        score = np.abs(error) / np.where(half > 0, half, np.inf)
        return step_factors(np.where(np.isfinite(score), score, np.nan))

    def adapted_to(
        self, series: Sequence[np.ndarray], season_length: int, learning_rate: float = PANEL_RATE
    ) -> TrainedPrior:
        """Fine-tune a copy to the `learning_windows` of series.

        Returns `self` if no window has an origin to learn from, as for constants.
        """
        chosen = learning_windows(series, season_length)
        scaled = (_Part.of(rows[None], np.array([len(rows)])).values[0] for rows in chosen)
        parts = [part for part in scaled if len(training_origins(part, season_length))]
        if not parts:
            return self
        examples = make_examples(parts, season_length, np.random.default_rng(0))
        from tsrnn.prior._training import adapt_network  # torch

        adapted = adapt_network(self.network, examples, learning_rate)
        return replace(self, weights=weights_of(adapted))

    def _parts(
        self, values: np.ndarray, lengths: np.ndarray, season_length: int, h: int
    ) -> Iterator[tuple[np.ndarray, _Part]]:
        """Batches of units of similar lengths, so that few rows are padding, and their indices."""
        order = np.argsort(lengths, kind="stable")
        size = (PAST_ROWS // EVERY + 1) * self.n_models(season_length) * max(h, PAST_ROWS)
        for units in np.array_split(order, -(-len(order) // max(1, AT_ONCE // size))):
            yield units, _Part.of(values[units, : lengths[units].max()], lengths[units])

    def _predict(
        self, part: _Part, season_length: int, h: int, place: np.ndarray | None = None
    ) -> OriginForecasts:
        """Forecasts from the origins `place` (U, T), see `_Origins.of`."""
        return self._weigh(_Origins.of(part, season_length, h, place))

    def _weigh(self, origins: _Origins) -> OriginForecasts:
        """Weigh the structural models at each origin by the network."""
        part, units, rows, evidence = origins.part, origins.units, origins.rows, origins.evidence
        features, forecasts, deviations, likelihood = (
            array.astype(float, copy=False) for array in evidence[:4]
        )
        predictive = self._predictive(
            features,
            units,
            origins.seen[units, rows],
            origins.season_length,
            forecasts,
            deviations,
            np.maximum(likelihood, -1e4),  # finite, as in training
        )
        last, scale = evidence.last[:, None], evidence.scale[:, None]
        return OriginForecasts(
            units,
            rows,
            rows == part.lengths[units] - 1,
            last + scale * predictive.median,
            scale[:, None] * (predictive.quantiles - predictive.median[:, None]),
            predictive.weights,
            predictive.state,
            origins.log_evidence,
        )

    def _mixed(
        self,
        origins: _Origins,
        steps: np.ndarray,
        widths: np.ndarray,
        regressed: Sequence[AutoregressionForecasts | None],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, Counter[str]]:
        """Mix the forecasts of the network from the ends of the units with their autoregressions.

        `steps` (U, h) count from 0 after the last observed row of each unit, `widths` are factors
        by step. Returns quantiles (U, 15, h), states (U, D), the weights (J,) of the structural
        models, averaged over steps and summed over units, and such weights of the autoregressions,
        by name.
        """
        part, forecasts, names = origins.part, self._weigh(origins), Counter[str]()
        learned = (forecasts.median[:, None] + forecasts.offsets)[forecasts.final]
        scaled = forecasts.offsets * by_step(widths, forecasts.offsets.shape[-1])
        forecasts = replace(forecasts, offsets=scaled)
        factors = own_factors(past_scores(part.values, part.lengths, forecasts))[:, None]
        final, varies = forecasts.final, part.varies
        median = np.where(varies, forecasts.median[final], part.last)
        offsets = scaled[final] * np.where(varies, factors, 0.0)[..., None]
        drawn, weights = median[:, None] + offsets, forecasts.weights[final]
        for number, of_unit in enumerate(regressed):
            if of_unit is None:
                continue
            reach, evidence = slice(steps[number, -1] + 1), origins.log_evidence[number]
            mixture = mix_autoregression(
                drawn[number, :, reach], learned[number, :, reach], of_unit, evidence
            )
            if mixture is not None:
                drawn[number, :, reach] = mixture.quantiles
                weights[number, :, reach] *= 1 - mixture.weights
                names[mixture.name] += mixture.weights[steps[number, 0] :].mean()
        taken, shares = (np.take_along_axis(x, steps[:, None], 2) for x in (drawn, weights))
        return taken * part.unit[:, None], forecasts.state[final], shares.mean(-1).sum(0), names

    def names(self, season_length: int) -> list[str]:
        """Names of the structural models, in the order of their weights."""
        seasons = SEASONS if season_length > 1 else SEASONS[:1]
        return [
            f"{trend.name}, {season.name}, of {scale}"
            for scale in SCALES
            for trend in TRENDS
            for season in seasons
        ]


def forecasts_by(
    priors: Sequence[TrainedPrior],
    values: np.ndarray,
    lengths: np.ndarray,
    season_length: int,
    h: int,
    widths: Sequence[np.ndarray],
    earlier: np.ndarray | None = None,
) -> list[Forecasts]:
    """Predictive distributions of the h rows after each unit, from several prior networks.

    Structural models and autoregressions take most of the time; the networks share them.

    Parameters
    ----------
    priors : sequence of TrainedPrior
        At least one; all or none with autoregressions.
    values, lengths, season_length, h, earlier
        As in `TrainedPrior.forecast`.
    widths : sequence of ndarray of shape (n,)
        Factors of the learned widths by step, for each network.

    Returns
    -------
    list of Forecasts
        Forecasts of each network.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import forecasts_by, trained_prior
    >>> rows, prior = np.array([[112.0, 118.0, 132.0, 129.0, 121.0, 135.0]]), trained_prior()
    >>> widths = [np.array([1.0]), np.array([2.0])]
    >>> narrow, wide = forecasts_by([prior, prior], rows, np.array([6]), 1, 3, widths)
    >>> bool((wide.at([0.9]) > narrow.at([0.9])).all())
    True
    """
    quantiles = np.empty((len(priors), len(values), len(PROBABILITIES), h))
    states = [np.empty((len(values), prior.state_size)) for prior in priors]
    totals = np.zeros((len(priors), priors[0].n_models(season_length)))
    names: list[Counter[str]] = [Counter() for _ in priors]
    # Rows missing at the end are steps ahead of the last observed row.
    late = missing_at_end(values, lengths)
    earlier = values[:, :0] if earlier is None else earlier
    for units, part in priors[0]._parts(values, lengths - late, season_length, h + late.max()):
        origins = _Origins.of(part, season_length, h + int(late[units].max()))
        regressed: list[AutoregressionForecasts | None] = [None] * len(units)
        for number, unit in enumerate(units.tolist() if priors[0].autoregression else ()):
            before = without_far_rows(earlier[unit], values[unit, : lengths[unit]])
            rows = part.values[number, : part.lengths[number]]
            rows = np.concatenate([before / part.unit[number], rows])
            steps, evidence = int(late[unit]) + h, origins.log_evidence[number]
            with ONE_THREAD:
                regressed[number] = autoregress(rows, season_length, steps, evidence)
        taken = late[units, None] + np.arange(h)
        for place, (prior, factors) in enumerate(zip(priors, widths, strict=True)):
            quantiles[place, units], states[place][units], total, of_names = prior._mixed(
                origins, taken, factors, regressed
            )
            totals[place] += total
            names[place].update(of_names)
    models, results = priors[0].names(season_length), []
    for of_prior, state, total, of_names in zip(quantiles, states, totals, names, strict=True):
        weights = pd.concat([pd.Series(total, models), pd.Series(of_names, dtype=float)])
        results.append(Forecasts(of_prior[:, MIDDLE], of_prior, weights / len(values), state))
    return results


@dataclass(frozen=True, eq=False)
class _Origins:
    """Forecast origins with the evidence of the structural models."""

    part: _Part
    season_length: int
    units: np.ndarray  # of each origin, (O,)
    rows: np.ndarray  # (O,)
    seen: np.ndarray  # index of each row among the observed ones, (U, T)
    evidence: Evidence

    @classmethod
    def of(
        cls, part: _Part, season_length: int, h: int, place: np.ndarray | None = None
    ) -> _Origins:
        """Origins at `place` (U, T), by default `past_origins`."""
        # Past forecasts have PAST_ROWS steps for any h: widths do not depend on the horizon.
        steps = h if place is not None else max(h, PAST_ROWS)
        if place is None:
            place = past_origins(part.values, part.lengths, FEWEST_ROWS)
        units, rows = np.nonzero(place)
        # The network reads observed rows only.
        seen = np.isfinite(part.values).cumsum(1) - 1
        evidence = structural_evidence(part.values, part.lengths, place, season_length, steps)
        return cls(part, season_length, units, rows, seen, evidence)

    @cached_property
    def log_evidence(self) -> list[np.ndarray]:
        """Largest log likelihood of a structural model up to each observed row, by unit."""
        n_observed = self.seen[np.arange(len(self.seen)), self.part.lengths - 1] + 1
        of_units = self.evidence.log_evidence
        return [of_unit[:n] for of_unit, n in zip(of_units, n_observed, strict=True)]


@dataclass(frozen=True, eq=False)
class _Part:
    """Batch of units, scaled so that squares neither overflow nor underflow."""

    values: np.ndarray
    lengths: np.ndarray
    unit: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, lengths: np.ndarray) -> _Part:
        alive = np.arange(values.shape[1]) < lengths[:, None]
        largest = np.nanmax(np.abs(np.where(alive, values, 0.0)), 1, keepdims=True)
        # A power of two, so that scaling does not round.
        unit = np.exp2(np.floor(np.log2(np.where(largest > 0, largest, 1.0))))
        last = np.take_along_axis(values, lengths[:, None] - 1, 1)
        return cls(np.where(alive, values, last) / unit, lengths, unit)

    @cached_property
    def last(self) -> np.ndarray:
        """Last value (U, 1) of each unit."""
        return np.take_along_axis(self.values, self.lengths[:, None] - 1, 1)

    @cached_property
    def varies(self) -> np.ndarray:
        """Mask (U, 1) of units that are not constant."""
        return np.nanmax(self.values, 1, keepdims=True) > np.nanmin(self.values, 1, keepdims=True)


def without_far_rows(earlier: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Set earlier rows to NaN that lie farther from `rows` than their range.

    Such rows are gross errors or stem from another level.
    """
    low, high = np.nanmin(rows), np.nanmax(rows)
    width = high / 2 - low / 2  # halves, because the difference of large values may overflow
    far = np.abs(earlier / 2 - low / 4 - high / 4) > 1.5 * width
    return np.where(far, np.nan, earlier)


def missing_at_end(values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Number (U,) of missing rows after the last observed row of each unit of `values` (U, T)."""
    rows = np.arange(values.shape[1])
    observed = np.isfinite(values) & (rows < lengths[:, None])
    return lengths - 1 - np.where(observed, rows, -1).max(1)


def learning_windows(series: Sequence[np.ndarray], season_length: int) -> list[np.ndarray]:
    """Windows of series for the fine-tuning of a prior network.

    Windows come from up to 300 evenly spaced series, 24 with a season. Windows of a long series
    overlap. Applied to its result, the function returns the same windows.
    """
    length = window_rows(season_length) + trained_steps(season_length)
    chosen = evenly(len(series), PANEL_UNITS if season_length == 1 else SEASONAL_UNITS)
    each = max(1, WINDOWS // len(chosen))
    windows = []
    for rows in (series[i] for i in chosen):
        ends = np.unique(np.linspace(len(rows), length, each).astype(int))
        windows += [rows[end - length : end] for end in ends] if len(rows) > length else [rows]
    return windows


def trained_prior(path: str | Path | None = None, cell: str = "rnn") -> TrainedPrior:
    """Read a pretrained prior network.

    Parameters
    ----------
    path : str or Path, optional
        File written by `TrainedPrior.save`; by default a network that comes with the package.
    cell : {"rnn", "lem", "lru", "newton-gru", "newton-lstm"}, default "rnn"
        Cell of the network of the package; ignored with a path.

    Returns
    -------
    TrainedPrior

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If the file is no prior network, or the package has no network with the cell.

    Examples
    --------
    >>> from tsrnn.prior import trained_prior
    >>> "M3" in trained_prior().description
    True
    >>> trained_prior(cell="lem").size
    {'hidden_size': 16, 'width': 128, 'n_layers': 1, 'cell': 'lem'}
    """
    if path is not None:
        return TrainedPrior.read(path)
    if cell not in SHIPPED:
        raise ValueError(f"cell must be one of {tuple(SHIPPED)}; got {cell!r}")
    return TrainedPrior.shipped(SHIPPED[cell])
