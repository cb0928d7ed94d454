"""A trained prior network: its file, and its forecasts in the units of the data."""

from __future__ import annotations

import copy
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
LONGEST_SEASON = 60  # a state of more effects takes seconds a series
PANEL_UNITS = 300  # of a panel that judge and adapt the network: more say little more
SEASONAL_UNITS = 24  # that adapt it where there is a season: more were no better, and slower
LONG_ORIGINS = 64  # from which long series are forecast to judge the widths
LONG_STEPS, MOST_LONG_STEPS = 8, 200  # seasons, and rows, that they are forecast for
WINDOWS = 24  # of series that are longer than what is read, together, to adapt the network to
# Files of the networks that come with the package, by cell.
SHIPPED = {
    "rnn": "prior.safetensors",
    "lem": "prior_lem.safetensors",
    "lru": "prior_lru.safetensors",
    "newton-gru": "prior_newton_gru.safetensors",
    "newton-lstm": "prior_newton_lstm.safetensors",
}
CONSTANTS = ("gaps",)  # weights that nothing learns
AT_ONCE = 2**20  # forecasts of structural models made together: they stay in the cache


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Predictive distributions of h rows of U units.

    Attributes
    ----------
    median : ndarray of shape (U, h)
    quantiles : ndarray of shape (U, 15, h)
        At the probabilities 0.005, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5 and those above.
    weights : Series
        Weights of the structural models, and of autoregressions, in the median, in the mean over
        units and steps.
    state : ndarray of shape (U, D)
        Inputs and recurrent state of the network after the last rows.

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
        scores, known = ndtri(ranks), ndtri(PROBABILITIES)
        right = np.clip(np.searchsorted(known, scores), 1, len(known) - 1)
        weight = (scores - known[right - 1]) / (known[right] - known[right - 1])
        quantiles = self.quantiles.swapaxes(1, 2)[None]
        low, high = (
            np.take_along_axis(quantiles, place[..., None], -1)[..., 0]
            for place in (right - 1, right)
        )
        return (1 - weight) * low + weight * high

    def mixed(self, other: Forecasts, units: np.ndarray, weight: np.ndarray) -> Forecasts:
        """Mix the distributions of some units with others of the same rows.

        Parameters
        ----------
        other : Forecasts
            Of n units.
        units : integer ndarray of shape (n,)
            Their numbers among these units.
        weight : ndarray of shape (n,)
            Of these distributions, against the others.

        Returns
        -------
        Forecasts
            With the states of these.
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
    """Quantiles (15,) of a mixture of two distributions, by the quantiles of each.

    Probabilities between the quantiles of a distribution are linear in their normal scores; there
    is nothing below the least of them, and above the largest.
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
    """A prior network with its weights, and what it was trained on.

    Attributes
    ----------
    weights : dict of str to ndarray
        By their names in `PriorNetwork`.
    size : dict of str to int or str
        Arguments of the network: its sizes, and its `cell`, which is "rnn" where it is not there.
    description : str
        Sentence that names the data it was trained on.
    autoregression : bool
        True if nonlinear autoregressions forecast beside the network, where the rows speak for
        them.

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
        """Network of a size that is not trained."""
        from tsrnn.prior._network import PriorNetwork  # torch

        return PriorNetwork(**size)

    @classmethod
    def weight_shapes(cls, **size: Any) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights of a network of some size, by name."""
        if size.get("cell", "rnn") in ON_ARRAYS:
            return weight_shapes(**size)
        return super().weight_shapes(**size)

    @property
    def cell(self) -> str:
        """Cell of the recurrence, one of `PRIOR_CELLS`."""
        return self.size.get("cell", "rnn")

    @property
    def n_parameters(self) -> int:
        """Number of learned numbers."""
        return sum(array.size for name, array in self.weights.items() if name not in CONSTANTS)

    @property
    def state_size(self) -> int:
        """Numbers of `Forecasts.state` of a unit."""
        return self.weights["head.0.weight"].shape[1]

    @cached_property
    def _predictive(self) -> Callable[..., Predictive[np.ndarray]]:
        """Network in double precision, so that a forecast does not depend on the batch."""
        if self.cell in ON_ARRAYS:
            return partial(predict, {k: array.astype(float) for k, array in self.weights.items()})
        from tsrnn.prior._network import predict_arrays  # torch

        return partial(predict_arrays, copy.deepcopy(self.network).double())

    def n_models(self, season_length: int) -> int:
        """Structural models of a series with seasons of some length."""
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
            Rows of each unit from the first column on; NaN where a row is missing, at least three
            are not; finite after their ends.
        lengths : integer ndarray of shape (U,)
        season_length : int
            1 for none, at most 60.
        h : int
        widths : ndarray of shape (n,), optional
            Factors of the learned widths by step, as `panel_widths` or `long_widths` gives them,
            the last one also of later steps; by default 1.
        earlier : ndarray of shape (U, B), optional
            Rows before the first column, which autoregressions read, too; NaN where there are none.

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
        """Median forecasts from chosen rows, each by the rows up to it alone.

        Parameters
        ----------
        values : ndarray of shape (U, T)
            Rows of each unit from the first column on; NaN where a row is missing.
        origins : boolean ndarray of shape (U, T)
            Observed rows to forecast from, from the third on.
        season_length, h : int
        earlier : ndarray of shape (U, B), optional
            Rows before the first column, as in `forecast`.

        Returns
        -------
        ndarray of shape (n, h)
            Unit by unit, of a unit row by row.
        """
        medians = []
        earlier = np.empty((len(values), 0)) if earlier is None else earlier
        for rows, place, before in zip(values, origins, earlier, strict=True):
            length = np.flatnonzero(place)[-1] + 1
            part = _Part.of(rows[None, :length], np.array([length]))
            forecasts = self._predict(part, season_length, h, place[None, :length])
            of_unit, quantiles = forecasts.median, forecasts.median[:, None] + forecasts.offsets
            observed = np.isfinite(part.values[0]).cumsum()
            # From the last origin back: where nothing speaks for an autoregression there, none is
            # searched for at the others.
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
        """Factors (PAST_ROWS,) of the learned widths by step, by the errors of a panel.

        Forecasts of the last rows of up to 300 units, as far apart as there are, are held against
        the values that came. Of one unit all factors are 1: `forecast` knows of its own errors.
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
        """Factors (n,) of the learned widths by step, by the errors within long series.

        Forecasts from rows spread over the later half of each series are held against what came,
        for more steps than those that the network was trained for.

        Parameters
        ----------
        series : sequence of ndarray
        season_length : int

        Returns
        -------
        ndarray
            1 at every step where no series is long enough.
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
        """Prior network after a few small steps towards given series; this one stays as it is.

        Parameters
        ----------
        series : sequence of ndarray
            Learned from are their `learning_windows`.
        season_length : int
        learning_rate : float

        Returns
        -------
        TrainedPrior
            This one itself where there is nothing to learn from, as of constants.
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
        """Units that are forecast together, of similar lengths, so that few rows are padding."""
        order = np.argsort(lengths, kind="stable")
        size = (PAST_ROWS // EVERY + 1) * self.n_models(season_length) * max(h, PAST_ROWS)
        for units in np.array_split(order, -(-len(order) // max(1, AT_ONCE // size))):
            yield units, _Part.of(values[units, : lengths[units].max()], lengths[units])

    def _predict(
        self, part: _Part, season_length: int, h: int, place: np.ndarray | None = None
    ) -> OriginForecasts:
        """Forecasts from rows (U, T), see `_Origins.of`."""
        return self._weigh(_Origins.of(part, season_length, h, place))

    def _weigh(self, origins: _Origins) -> OriginForecasts:
        """Forecasts from what the structural models say at some origins."""
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
            np.maximum(likelihood, -1e4),
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
        """Mix the forecasts of the units of a part with forecasts of autoregressions.

        Parameters
        ----------
        origins : _Origins
            The last rows of the part.
        steps : integer ndarray of shape (U, h)
            From the last observed row of each unit, from 0.
        widths : ndarray of shape (n,)
        regressed : sequence of AutoregressionForecasts or None
            Of each unit.

        Returns
        -------
        quantiles : ndarray of shape (U, 15, h)
        states : ndarray of shape (U, D)
        weights : ndarray of shape (J,)
            Of structural models, a mean over steps and a sum over units.
        names : Counter
            The same weights of autoregressions, by name.
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
    """Predictive distributions of the h rows after each unit, by several prior networks.

    Structural models and autoregressions, which take most of the time, are the same for all.

    Parameters
    ----------
    priors : sequence of TrainedPrior
        At least one; with autoregressions all, or none.
    values, lengths, season_length, h, earlier
        As in `TrainedPrior.forecast`.
    widths : sequence of ndarray of shape (n,)
        Factors of the learned widths by step, of each network.

    Returns
    -------
    list of Forecasts

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
    # After missing rows at the end, forecasts are later steps from the last observed row.
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
    """Rows that are forecast from, with what structural models say, which no network has read.

    Attributes
    ----------
    part : _Part
    season_length : int
    units, rows : integer ndarray of shape (O,)
    seen : integer ndarray of shape (U, T)
        Number of each row among the observed ones, from 0.
    evidence : Evidence
    """

    part: _Part
    season_length: int
    units: np.ndarray
    rows: np.ndarray
    seen: np.ndarray
    evidence: Evidence

    @classmethod
    def of(
        cls, part: _Part, season_length: int, h: int, place: np.ndarray | None = None
    ) -> _Origins:
        """Origins at rows (U, T), by default the last ones that are held against what came.

        Those are of as many steps whatever is asked for: widths do not depend on h.
        """
        steps = h if place is not None else max(h, PAST_ROWS)
        if place is None:
            place = past_origins(part.values, part.lengths, FEWEST_ROWS)
        units, rows = np.nonzero(place)
        # The network reads observed rows alone.
        seen = np.isfinite(part.values).cumsum(1) - 1
        evidence = structural_evidence(part.values, part.lengths, place, season_length, steps)
        return cls(part, season_length, units, rows, seen, evidence)

    @cached_property
    def log_evidence(self) -> list[np.ndarray]:
        """Largest log likelihood of a model up to each observed row, unit by unit."""
        n_observed = self.seen[np.arange(len(self.seen)), self.part.lengths - 1] + 1
        of_units = self.evidence.log_evidence
        return [of_unit[:n] for of_unit, n in zip(of_units, n_observed, strict=True)]


@dataclass(frozen=True, eq=False)
class _Part:
    """Units that are forecast together, on a scale on which squares neither overflow nor vanish."""

    values: np.ndarray
    lengths: np.ndarray
    unit: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, lengths: np.ndarray) -> _Part:
        alive = np.arange(values.shape[1]) < lengths[:, None]
        largest = np.nanmax(np.abs(np.where(alive, values, 0.0)), 1, keepdims=True)
        # A power of two: the values keep their digits.
        unit = np.exp2(np.floor(np.log2(np.where(largest > 0, largest, 1.0))))
        last = np.take_along_axis(values, lengths[:, None] - 1, 1)
        return cls(np.where(alive, values, last) / unit, lengths, unit)

    @cached_property
    def last(self) -> np.ndarray:
        """Last values (U, 1)."""
        return np.take_along_axis(self.values, self.lengths[:, None] - 1, 1)

    @cached_property
    def varies(self) -> np.ndarray:
        """Units (U, 1) that are not constant."""
        return np.nanmax(self.values, 1, keepdims=True) > np.nanmin(self.values, 1, keepdims=True)


def without_far_rows(earlier: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Earlier rows, NaN where they are farther from the last rows than those are wide.

    These are gross errors, or of another level, and say nothing of what is to come.
    """
    low, high = np.nanmin(rows), np.nanmax(rows)
    width = high / 2 - low / 2  # halves: the difference of large values is not finite
    far = np.abs(earlier / 2 - low / 4 - high / 4) > 1.5 * width
    return np.where(far, np.nan, earlier)


def missing_at_end(values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Count missing rows (U,) after the last observed row of each unit `values` (U, T)."""
    rows = np.arange(values.shape[1])
    observed = np.isfinite(values) & (rows < lengths[:, None])
    return lengths - 1 - np.where(observed, rows, -1).max(1)


def learning_windows(series: Sequence[np.ndarray], season_length: int) -> list[np.ndarray]:
    """Windows of series that a prior network learns from where it is adapted to them.

    Of long series they overlap. Up to 300 series have windows, 24 where there is a season; they are
    as far apart as there are.

    Parameters
    ----------
    series : sequence of ndarray
        At least one.
    season_length : int

    Returns
    -------
    list of ndarray
        Windows of these windows are the same.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import learning_windows
    >>> [len(rows) for rows in learning_windows([np.arange(20.0), np.arange(900.0)], 1)[:3]]
    [20, 120, 120]
    """
    length = window_rows(season_length) + trained_steps(season_length)
    chosen = evenly(len(series), PANEL_UNITS if season_length == 1 else SEASONAL_UNITS)
    each = max(1, WINDOWS // len(chosen))
    return [part for i in chosen for part in windows(series[i], length, each)]


def windows(rows: np.ndarray, length: int, most: int) -> list[np.ndarray]:
    """Last `length` rows of a series, and up to `most` - 1 such windows before, spread evenly."""
    if len(rows) <= length:
        return [rows]
    ends = np.unique(np.linspace(len(rows), length, most).astype(int))
    return [rows[end - length : end] for end in ends]


def trained_prior(path: str | Path | None = None, cell: str = "rnn") -> TrainedPrior:
    """Read a trained prior network.

    Parameters
    ----------
    path : str or Path, optional
        File that `TrainedPrior.save` wrote; by default a network that comes with the package.
    cell : {"rnn", "lem", "lru", "newton-gru", "newton-lstm"}, default "rnn"
        That of the network that comes with the package; a file says which its network has.

    Returns
    -------
    TrainedPrior

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is no prior network, or none of the cell comes with the package.

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
