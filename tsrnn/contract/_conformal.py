"""Conformal intervals of any forecaster, from rolling forecasts of the last rows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtri

from tsrnn.contract._calibration import OWN_ERRORS, Calibration
from tsrnn.contract._fitted import FittedModel, S
from tsrnn.contract._intervals import level_name, with_intervals
from tsrnn.contract._rolling import Origins
from tsrnn.contract._schema import check_arrays, refuse
from tsrnn.contract._warnings import IntervalWarning, recorded
from tsrnn.data import Panel, warn_user

REFERENCE = 80  # level in percent of the model's interval that gives the scale
MANY_SERIES = 100  # series whose pooled errors over one horizon suffice
HORIZONS = 20  # calibration rows of a long series, in horizons: 19 independent errors for 95 %
SMALLEST = 0.3  # least width relative to the naive error: narrower ones come from overfitting
SCALES = {
    True: "the model's intervals at the time of the forecast",
    False: "the geometric mean of the model's intervals and of the series' naive error",
}
NONE = (
    "None: there are too few rows for a single forecast error, so that the intervals are those of "
    "the model. Of these: {model}"
)
ARRAYS = "conformal."  # prefix of arrays in a file


@dataclass(frozen=True, eq=False)
class ConformalIntervals:
    r"""Conformal intervals around forecasts of a fitted model.

    .. math:: \hat y_{t+k} \pm q_k s_{t,k}, \qquad s_{t,k} = \sqrt{w_{t,k}\, a
        \sqrt{1 + \lfloor (k - 1) / m \rfloor}}

    w is the half width of the model's own interval, which depends on the step and the model. a is
    the mean absolute seasonal difference of the series, which overfitting does not shrink.
    :math:`q_k` is the conformal quantile of past errors divided by their scale s. For a model with
    conditional variances, s = w.

    Attributes
    ----------
    calibration : Calibration
        Scaled errors of units: targets of series, or series whose targets are modelled
        jointly.
    naive : ndarray of shape (S, C)
        Mean absolute seasonal difference a of each series fitted to.
    share : ndarray of shape (C,)
        Median ratio of a to the standard deviation, which gives a for other series.
    season : int
        Rows m of a season.
    by_width : bool
        True if s = w.

    Examples
    --------
    >>> from tsrnn.baselines import Drift
    >>> from tsrnn.datasets import load_nile
    >>> model = Drift(horizon=2, intervals="conformal").fit(load_nile())
    >>> intervals = model.fitted_.conformal
    >>> intervals.season, intervals.calibration.counts.ravel().tolist()
    (1, [33, 32])
    """

    calibration: Calibration
    naive: np.ndarray
    share: np.ndarray
    season: int
    by_width: bool

    def around(
        self, forecasts: dict[str, np.ndarray], series: np.ndarray, target_scale: np.ndarray,
        levels: list[float],
    ) -> dict[str, np.ndarray]:  # fmt: skip
        """Return forecasts (S, h, C) with intervals of `levels` in place of the 80% interval.

        `series` (S,) are positions among the series fitted to, -1 for others; `target_scale`
        (S, C) are their standard deviations.
        """
        naive = np.where(series[:, None] < 0, self.share * target_scale, self.naive[series])
        scale = interval_scale(forecasts, naive, self.season, self.by_width)
        horizon, h = self.calibration.errors.shape[2], scale.shape[1]
        joint = self.calibration.errors.shape[3] > 1 or scale.shape[2] == 1
        n_targets = 1 if joint else scale.shape[2]
        units = np.where(
            series[:, None] < 0, -1, series[:, None] * n_targets + np.arange(n_targets)
        ).ravel()
        if h > horizon:
            warn_user(
                f"intervals are calibrated for {horizon} steps; beyond them they grow as those of "
                "the model do and carry no guarantee. Fit with a larger horizon to calibrate them",
                IntervalWarning,
            )
        steps, widths = np.minimum(np.arange(h), horizon - 1), {}
        for level in levels:
            multiples = self.calibration.half_widths(level, units, h)[:, steps]
            if not joint:
                multiples = multiples[..., 0].reshape(len(series), n_targets, h).swapaxes(1, 2)
            widths[level] = multiples * scale
        return with_intervals(forecasts[""], widths)

    def to_file(self) -> dict[str, np.ndarray]:
        """Return the arrays of a file; `from_file` is the inverse."""
        return {
            f"{ARRAYS}errors": self.calibration.errors,
            f"{ARRAYS}naive": self.naive,
            f"{ARRAYS}share": self.share,
            f"{ARRAYS}numbers": np.array(
                [self.calibration.n_pooled, self.season, self.by_width], np.int64
            ),
        }

    @classmethod
    def from_file(cls, arrays: dict[str, np.ndarray], n_series: int, c: int) -> ConformalIntervals:
        """Rebuild the intervals of n series with c targets from `to_file`."""
        errors = arrays.get(f"{ARRAYS}errors", np.empty(0))
        units = {1, n_series, n_series * c}
        if errors.ndim != 4 or len(errors) not in units or errors.shape[3] not in {1, c}:
            raise refuse(f"the array '{ARRAYS}errors'", "of units of the data", errors.shape)
        shapes: dict[str, tuple[str, tuple[int, ...]]] = {
            "errors": ("float64", errors.shape), "naive": ("float64", (n_series, c)),
            "share": ("float64", (c,)), "numbers": ("int64", (3,)),
        }  # fmt: skip
        check_arrays(arrays, {ARRAYS + name: shape for name, shape in shapes.items()})
        n_pooled, season, by_width = arrays[f"{ARRAYS}numbers"].tolist()
        if n_pooled < 1 or season < 1 or not errors.shape[2]:
            raise refuse(f"the array '{ARRAYS}numbers'", "positive", [n_pooled, season])
        by_width = bool(by_width)
        calibration = Calibration(errors, "rolling", n_pooled, SCALES[by_width])
        naive, share = arrays[f"{ARRAYS}naive"], arrays[f"{ARRAYS}share"]
        return cls(calibration, naive, share, season, by_width)


def interval_scale(
    forecasts: dict[str, np.ndarray], naive: np.ndarray, season: int, by_width: bool
) -> np.ndarray:
    """Return the scale (n, h, C) of forecast errors, given naive errors (n, C)."""
    name = level_name(REFERENCE)
    z = float(ndtri(0.5 + REFERENCE / 200))
    width = (forecasts[f"-hi-{name}"] - forecasts[f"-lo-{name}"]) / (2 * z)
    # Errors of the seasonal naive method grow like those of a random walk from season to season.
    steps = np.sqrt(1 + np.arange(width.shape[1]) // season)[:, None]
    walk = naive[:, None] * steps
    if by_width:
        return np.where(np.isfinite(width), width, walk)
    width = np.where(np.isfinite(width), np.maximum(width, SMALLEST * walk), walk)
    return np.sqrt(width * walk)


def naive_errors(panel: Panel, season: int) -> np.ndarray:
    """Return mean absolute seasonal differences of the targets of each series, shape (S, C).

    Series shorter than a `season` of rows have differences over one row.
    """
    errors = np.zeros((panel.n_series, panel.values.shape[1]))
    for i in range(panel.n_series):
        values = panel.series(i)
        lag = season if len(values) > season + 2 else 1  # three differences make a mean
        sizes = np.abs(values[lag:] - values[:-lag])
        seen = np.isfinite(sizes)
        errors[i] = np.where(seen, sizes, 0.0).sum(0) / np.maximum(seen.sum(0), 1)
    return errors


def calibration_rows(lengths: np.ndarray, horizon: int) -> np.ndarray:
    """Return the number of last rows (S,) for calibration: a third of a series, or a horizon.

    Few series, and series with errors enough for their own intervals, use a third, up to a useful
    number. Many shorter series pool the errors of one horizon, which leaves more rows to estimate.
    """
    most = np.minimum(lengths // 3, max(HORIZONS * horizon, OWN_ERRORS + horizon - 1))
    if len(lengths) >= MANY_SERIES and (most - horizon + 1).min() < OWN_ERRORS:
        most = np.minimum(most, horizon)
    return np.maximum(most, np.minimum(horizon, lengths // 2))


class Fit(Protocol):
    """Fit to a panel of earlier rows: fitted model and state, or a ValueError."""

    def __call__(self, panel: Panel, /) -> tuple[FittedModel[Any], Any]: ...


def calibrate(
    fit: Fit, panel: Panel, horizon: int, season: int, joint: bool, by_width: bool,
    target_scale: np.ndarray,
) -> ConformalIntervals:  # fmt: skip
    """Return conformal intervals from rolling forecasts of the last rows of a panel.

    The model is fitted once to the earlier rows and forecasts from each of the last rows with fixed
    parameters, as a fitted model does. The final model is fitted to all rows.
    """
    naive = naive_errors(panel, season)
    errors = np.empty((panel.n_series, 0, horizon, panel.values.shape[1]))
    rows = calibration_rows(panel.lengths, horizon)
    while rows.any():
        try:
            with recorded():  # drop warnings about rows that are fewer than the user gave
                errors = rolling_errors(fit, panel, rows, horizon, season, by_width)
        except (ValueError, np.linalg.LinAlgError, FloatingPointError):
            rows = rows // 2  # the earlier rows are too few for the model
        else:
            break
    if not joint:
        n_units = errors.shape[0] * errors.shape[3]
        errors = np.moveaxis(errors, 3, 1).reshape(n_units, *errors.shape[1:3], 1)
    calibration = Calibration.of(errors, "rolling", scale=SCALES[by_width])
    share = np.median(naive / target_scale, axis=0)
    return ConformalIntervals(calibration, naive, share, season, by_width)


def rolling_errors(
    fit: Fit, panel: Panel, rows: np.ndarray, horizon: int, season: int, by_width: bool
) -> np.ndarray:
    """Return scaled errors (S, n, h, C) of forecasts from the last `rows` (S,) rows."""
    rows = np.minimum(rows, panel.lengths - 1)
    starts = panel.lengths - rows
    before = panel.between(np.zeros_like(starts), starts)
    fitted, state = fit(before)
    calibrating = np.flatnonzero(rows > 0)
    state = state.select(calibrating)
    later = panel.select(rows > 0).between(starts[calibrating], panel.lengths[calibrating])
    ahead, origins = with_rows_ahead(later, horizon)
    forecasts = fitted.rolling(state, ahead, origins, horizon, [REFERENCE])
    naive = naive_errors(before, season)[calibrating]
    scale = interval_scale(forecasts, naive[origins.series], season, by_width)
    actual = ahead.values[origins.first[:, None] + np.arange(horizon)]
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = (actual - forecasts[""]) / scale
    # A series without scale is constant: its errors say nothing about other series.
    scaled = np.where(np.isfinite(scaled), scaled, np.nan)
    errors = np.full((panel.n_series, int(rows.max()), *scaled.shape[1:]), np.nan)
    errors[calibrating[origins.series], origins.ordinal] = scaled
    return errors


def with_rows_ahead(panel: Panel, horizon: int) -> tuple[Panel, Origins]:
    """Append rows of missing targets to each series, so that all its rows become origins.

    Exogenous columns repeat their last values, since forecasts of these rows are not scored.
    """
    last = panel.indptr[1:] - 1
    rows = [
        np.r_[first : end + 1, np.full(horizon - 1, end)]
        for first, end in zip(panel.indptr[:-1], last, strict=True)
    ]
    ends = np.cumsum([len(each) for each in rows])
    chosen = np.concatenate(rows)
    values = panel.values[chosen]
    for end in ends:
        values[end - horizon + 1 : end] = np.nan
    longer = replace(
        panel,
        values=values,
        times=panel.times[chosen],
        exog=panel.exog[chosen],
        indptr=np.concatenate([[0], ends]),
    )
    return longer, Origins.of(longer, horizon, 1)


@dataclass(frozen=True, eq=False)
class ClassicalModel(FittedModel[S]):
    """Base of the fitted models of `Classical`, with optional conformal intervals.

    A subclass implements `FittedModel`, with `model_forecast` and `model_guarantee` in place of
    `forecast` and `guarantee`.

    Attributes
    ----------
    conformal : ConformalIntervals or None
        None if intervals are the model's own.

    Examples
    --------
    >>> from tsrnn.baselines import Drift
    >>> from tsrnn.contract import ClassicalModel
    >>> from tsrnn.datasets import load_nile
    >>> fitted = Drift().fit(load_nile()).fitted_
    >>> isinstance(fitted, ClassicalModel), fitted.conformal is None
    (True, True)
    """

    conformal: ConformalIntervals | None = field(default=None, kw_only=True)

    @property
    def joint(self) -> bool:
        """True if the targets of a series are modelled together."""
        return False

    @property
    @abstractmethod
    def model_guarantee(self) -> str:
        """Guarantee of the model's own intervals."""

    @abstractmethod
    def model_forecast(
        self, state: S, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Return forecasts with the model's own intervals."""

    @property
    def guarantee(self) -> str:
        """Guarantee of the intervals, and its assumptions."""
        if self.conformal is None:
            return self.model_guarantee
        if self.conformal.calibration.is_empty:
            return NONE.format(model=self.model_guarantee)
        return self.conformal.calibration.guarantee

    def forecast(
        self, state: S, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Return forecasts (S, h, C) by suffix, with intervals of `levels`."""
        if self.conformal is None or not levels:
            return self.model_forecast(state, h, levels, future)
        if self.conformal.calibration.is_empty:
            warn_user(
                f"{self.arguments.class_name} has too few rows for a single forecast error: the "
                "intervals are those of the model, without a conformal guarantee. Give more rows",
                IntervalWarning,
            )
            return self.model_forecast(state, h, levels, future)
        forecasts = self.model_forecast(state, h, [REFERENCE], future)
        series = self.data.ids.get_indexer(state.ids)
        return self.conformal.around(forecasts, series, state.target_scale, levels)
