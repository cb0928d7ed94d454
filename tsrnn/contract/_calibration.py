"""Calibration of intervals: quantiles of forecast errors, how many count, what they guarantee."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtri, stdtrit

from tsrnn.contract._warnings import IntervalWarning
from tsrnn.data import warn_user

# Errors of a step that a series needs to have intervals of its own: 99 percent can be guaranteed.
OWN_ERRORS = 100
MOST_ERRORS = 20_000  # of a step: the coverage of 95 percent is then known to 0.15 percent
ROUNDING = 1e-9  # of a rank: 99 errors suffice for 99 percent
# Sum of squared deviations of the logarithms that chance alone gives, and that counts before any
# unit: ten units, with means of about six independent errors each.
CHANCE = 10 * 0.1
LARGEST_RATIO = 100.0  # of the size of a unit's errors to the geometric mean

GUARANTEES = {
    "conformal": (
        "Intervals: split conformal, per step, from the forecast errors of the validation part "
        "scaled by the local spread. They cover with the stated probability if these errors and "
        "future ones are exchangeable; for a time series that is an approximation. {errors}"
    ),
    "rolling": (
        "Intervals: split conformal, per step, from the errors of rolling forecasts of the last "
        "rows by the model fitted to those before, scaled by {scale}. They cover with the stated "
        "probability if these errors and future ones are exchangeable; for a time series that is "
        "an approximation. {errors}"
    ),
    "gaussian": (
        "Intervals: Gaussian, per step, with the root mean square of the forecast errors of the "
        "validation part scaled by the local spread. They hold if the errors are normal."
    ),
    "quantile": (
        "Intervals: quantiles of the forecast errors as functions of the state, learned with the "
        "network. They carry no guarantee; see the validation part or a backtest for coverage."
    ),
    "student-t": (
        "Intervals: Student's t with a scale and degrees of freedom that depend on the state, "
        "learned with the network by maximum likelihood. They hold if errors are of that form "
        "and carry no guarantee otherwise."
    ),
}


def effective_number(n: np.ndarray, k: np.ndarray) -> np.ndarray:
    r"""Independent errors that n errors of step k from successive origins count as.

    An error of k steps is a moving average of the k innovations since its origin, so that errors
    from origins j < k rows apart are correlated. The share of n errors below a bound has the
    variance of the share of n independent ones times

    .. math:: 1 + 2 \sum_{j=1}^{\min(k, n) - 1} (1 - j / n) \rho_j,

    with the correlations of the indicators, which are at most those of (Gaussian) errors. Over all
    lags the latter sum to :math:`(\sum_i \psi_i)^2 / \sum_i \psi_i^2 \le k` by the inequality of
    Cauchy and Schwarz, with equality at equal weights, those of a random walk: :math:`\rho_j = 1 -
    j / k`, which is taken here. Where n is well above k, n errors count as n / k.

    Parameters
    ----------
    n : ndarray
        Numbers of errors; not negative, and whole unless they are means over series.
    k : ndarray
        Steps, from 1.

    Returns
    -------
    ndarray
        Zero of no errors, n of one step.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.contract import effective_number
    >>> effective_number(np.array([100, 100, 4]), np.array([1, 10, 10])).round(2).tolist()
    [100.0, 10.34, 1.14]
    """
    n, k = np.broadcast_arrays(np.asarray(n, float), np.asarray(k, float))
    m = np.clip(np.minimum(n, k), 1, None)
    # sums of j and of j^2 up to m - 1, as n need not be whole
    first, second = m * (m - 1) / 2, m * (m - 1) * (2 * m - 1) / 6
    count = np.maximum(n, 1)
    inflation = 1 + 2 * ((m - 1) - first * (1 / count + 1 / k) + second / (count * k))
    return n / inflation


def conformal_quantile(sizes: np.ndarray, level: float, effective: np.ndarray) -> np.ndarray:
    r"""Conformal quantiles of absolute errors along the second axis; NaN where they are too few.

    Of n errors that count as m, the one of rank :math:`\lceil n p (m + 1) / m \rceil`. If m = n
    that is the rule of exchangeable errors, :math:`\lceil (n + 1) p \rceil`; if errors come in m
    blocks of equal ones, it is the rule of these blocks.

    Parameters
    ----------
    sizes : ndarray of shape (U, n, ...)
        NaN where there is none.
    level : float
        In percent.
    effective : ndarray of shape (U, ...)

    Returns
    -------
    ndarray of shape (U, ...)

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.contract import conformal_quantile
    >>> conformal_quantile(np.arange(1.0, 10.0)[None], 80, np.array([9.0])).tolist()
    [8.0]
    """
    counts = np.isfinite(sizes).sum(1)
    if not sizes.shape[1]:
        return np.full(counts.shape, np.nan)
    share = level / 100 * (1 + 1 / np.where(effective > 0, effective, 1.0))
    ranks = np.ceil(counts * share - ROUNDING).astype(int)
    ordered = np.sort(sizes, axis=1)  # NaN last
    chosen = np.clip(ranks, 1, sizes.shape[1]) - 1
    quantiles = np.take_along_axis(ordered, chosen[:, None], 1)[:, 0]
    return np.where((ranks > counts) | (counts == 0), np.nan, quantiles)


def relative_sizes(sums: np.ndarray, counts: np.ndarray) -> np.ndarray | None:
    r"""Sizes of the errors of units relative to each other, shrunk towards equal ones.

    With :math:`r_u` the mean absolute error of a unit over that of all units at the same steps, the
    size is :math:`(r_u / \bar r)^b` with the geometric mean :math:`\bar r`. The power is

    .. math:: b = \frac{\sum_u x_u y_u}{\sqrt{(1 + \sum_u x_u^2) (1 + \sum_u y_u^2)}}

    with the deviations x and y of :math:`\log r_u` from its mean in the first and in the second
    half of the rows: sizes that do not last from one half to the other say nothing, nor do small
    differences of few units.

    Parameters
    ----------
    sums, counts : ndarray of shape (2, U, h, C)
        Sums and numbers of absolute errors in both halves of the rows, by unit, step and target.

    Returns
    -------
    ndarray of shape (U, C) or None
        NaN of a unit without errors; None where all sizes are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.contract import relative_sizes
    >>> sums = np.repeat([1.0, 4.0], 20).reshape(1, 40, 1, 1) * np.ones((2, 1, 1, 1))
    >>> relative_sizes(sums, np.ones_like(sums))[[0, -1]].round(2).ravel().tolist()
    [0.52, 1.93]
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        by_step = sums.sum((0, 1)) / counts.sum((0, 1))
        relative = np.where(by_step > 0, sums / by_step, 0.0)
        halves = np.log(relative.sum(2) / counts.sum(2))  # (2, U, C)
        both = np.log(relative.sum((0, 2)) / counts.sum((0, 2)))  # (U, C)
    known = np.isfinite(both)
    lasting = np.isfinite(halves).all(0)
    weights = lasting / np.maximum(lasting.sum(0), 1)
    halves = np.where(lasting, halves, 0.0)
    first, second = np.where(lasting, halves - (weights * halves).sum(1, keepdims=True), 0.0)
    variation = np.sqrt((CHANCE + (first**2).sum()) * (CHANCE + (second**2).sum()))
    power = (first * second).sum() / variation
    if power <= 0:
        return None
    logs = np.where(known, both, 0.0)
    away = power * (logs - logs.sum(0) / np.maximum(known.sum(0), 1))
    limit = np.log(LARGEST_RATIO)  # a unit may have been forecast without an error
    return np.where(known, np.exp(np.clip(away, -limit, limit)), np.nan)


@dataclass(frozen=True, eq=False)
class Calibration:
    r"""Scaled forecast errors :math:`(y_{t+k} - \hat y_{t+k}) / s_t` of rows not fitted to.

    Attributes
    ----------
    errors : ndarray of shape (U, n, h, C)
        By unit, origin, step and target; NaN where there is none. One unit, which
        holds all of them, where the units' errors are pooled.
    method : {"conformal", "rolling", "gaussian"} or the name of a learned distribution
        "conformal" with a scale that knows nothing of the step, "rolling" with one that grows as
        the model's intervals do. Learned distributions have no widths.
    n_pooled : int, default 1
        Units whose errors are pooled; taken as independent.
    scale : str
        Of "rolling", in words.
    units : integer ndarray of shape (n,), optional
        Unit of each pooled error.
    sizes : ndarray of shape (V, C), optional
        Sizes of the errors of all units relative to each other, see `relative_sizes`. Pooled errors
        over these sizes are one sample. A unit without a size, NaN, has the errors of all units as
        they are; so have all units by default.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.contract import Calibration
    >>> errors = np.arange(1.0, 10.0).reshape(1, 9, 1, 1)  # of a unit, a step and a target
    >>> Calibration(errors, "conformal").half_widths(80, np.array([0])).tolist()
    [[[8.0]]]
    """

    errors: np.ndarray
    method: str
    n_pooled: int = 1
    scale: str = "the model's intervals"
    units: np.ndarray | None = None
    sizes: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        errors: np.ndarray,
        method: str,
        n_pooled: int = 1,
        units: np.ndarray | None = None,
        sizes: np.ndarray | None = None,
        **words: str,
    ) -> Calibration:
        """Calibration by errors (U, n, h, C), pooled where units have few, sampled where many.

        Constant series have none, NaN; where all are constant, so are their forecasts, and every
        error is zero.
        """
        counts = np.isfinite(errors).sum(1)
        if not counts.any() and method != "rolling":
            errors, counts = np.zeros_like(errors), np.full_like(counts, errors.shape[1])
        varying = counts.any((1, 2))
        if len(errors) > 1 and (not varying.any() or counts[varying].min() < OWN_ERRORS):
            n_pooled = max(int(varying.sum()), 1)
            errors = errors.reshape(1, -1, *errors.shape[2:])
            errors = errors[:, np.isfinite(errors).any((0, 2, 3))]
        if len(errors) == 1 and method != "rolling":  # a target that never varies, beside others
            errors = np.where(np.isfinite(errors).any((0, 1, 2)), errors, 0.0)
        n = errors.shape[1]
        if n > MOST_ERRORS:  # at random: a stride would pick up one hour of the day
            chosen = np.sort(np.random.default_rng(0).choice(n, MOST_ERRORS, replace=False))
            errors = errors[:, chosen]
            units = None if units is None else units[chosen]
        errors = np.ascontiguousarray(errors)
        return cls(errors, method, n_pooled, units=units, sizes=sizes, **words)

    @property
    def is_empty(self) -> bool:
        """True if there are no errors at all."""
        return not np.isfinite(self.errors).any()

    @cached_property
    def counts(self) -> np.ndarray:
        """Numbers (U, h, C) of errors."""
        return np.isfinite(self.errors).sum(1)

    @cached_property
    def effective(self) -> np.ndarray:
        """Numbers (U, h, C) of independent errors that they count as."""
        steps = np.arange(1, self.errors.shape[2] + 1)[:, None]
        return self.n_pooled * effective_number(self.counts / self.n_pooled, steps)

    @cached_property
    def pooled(self) -> Calibration:
        """Calibration by the errors of all units as if of one."""
        if len(self.errors) == 1:
            return self
        errors = self.errors.reshape(1, -1, *self.errors.shape[2:])
        return replace(self, errors=errors, n_pooled=int(self.counts.any((1, 2)).sum()))

    @property
    def by_unit(self) -> bool:
        """True if units have intervals of their own."""
        return len(self.errors) > 1 or self.sizes is not None

    @cached_property
    def relative(self) -> Calibration:
        """Calibration by the pooled errors over the sizes of their units."""
        if self.units is None or self.sizes is None:
            return self
        errors = self.errors / self.sizes[self.units][None, :, None]
        return replace(self, errors=errors, units=None, sizes=None)

    def sizes_of(self, units: np.ndarray) -> np.ndarray | None:
        """Relative sizes (m, C) of units by position, NaN of others; None where all are equal."""
        if self.sizes is None:
            return None
        return np.where(units[:, None] < 0, np.nan, self.sizes[units])

    def to_file(self) -> dict[str, np.ndarray]:
        """Arrays of a file."""
        n_targets = self.errors.shape[3]
        return {
            "errors": self.errors,
            "error_units": np.zeros(0, np.int64) if self.units is None else self.units,
            "error_sizes": np.zeros((0, n_targets)) if self.sizes is None else self.sizes,
        }

    @cached_property
    def complete(self) -> np.ndarray:
        """Pooled errors (m, h, C) of origins that have errors of all steps."""
        return self.errors[np.isfinite(self.errors).all((2, 3))]

    def draw(self, unit: int, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw errors (n, h, C) of a unit by position, -1 for another, all steps of one origin.

        There must be complete origins.
        """
        sample, size = self.complete, np.ones(self.errors.shape[3])
        sizes = self.sizes_of(np.array([unit]))
        if len(self.errors) > 1 and unit >= 0:
            of_unit = self.errors[unit][np.isfinite(self.errors[unit]).all((1, 2))]
            sample = of_unit if len(of_unit) else sample
        elif sizes is not None:
            # A target without a size has the errors of all, as in `half_widths`.
            known = np.isfinite(sizes[0])
            size = np.where(known, sizes[0], 1.0)
            if known.all():
                sample = self.relative.complete
            elif known.any():
                errors = np.where(known, self.relative.errors, self.errors)
                sample = errors[np.isfinite(errors).all((2, 3))]
        return size * sample[rng.integers(len(sample), size=n)]

    @cached_property
    def guarantee(self) -> str:
        """Guarantee of the intervals; of conformal ones, with the largest levels."""
        words = GUARANTEES[self.method]
        if self.is_empty:
            return words.format(scale=self.scale, errors="There are no errors: nothing holds.")
        there = self.counts.any((1, 2))  # a series without errors takes all's
        n, m = self.counts[there].min((0, 2)), self.effective[there].min((0, 2))
        levels = 100 * m / (m + 1)
        counted = (
            f", which overlap and count as {m[0]:.3g} and {m[-1]:.3g} independent ones"
            if m[-1] < n[-1] - ROUNDING
            else ""
        )
        pooled = (
            "Those of all series are pooled, over the size of each series' errors beside the "
            "others', as far as it lasted from the first to the second half of the part. "
            if self.sizes is not None
            else ""
        )
        errors = (
            f"{pooled}With {n[0]} errors of the first step and {n[-1]} of the last{counted}, "
            f"levels of up to {levels[0]:.3g} and {levels[-1]:.3g} percent can be guaranteed, "
            "m / (m + 1) of m independent errors. Wider intervals rest on an assumption, that "
            "errors are normal: Student's t with the errors' root mean square."
        )
        return words.format(scale=self.scale, errors=errors)

    def half_widths(self, level: float, units: np.ndarray, h: int | None = None) -> np.ndarray:
        r"""Half the width of the intervals in units of the scale.

        "gaussian": a normal quantile times the errors' root mean square. Otherwise the conformal
        quantile, and where errors are too few for it a quantile of Student's t times their root
        mean square, at least as large as the largest of them and as the width of the step before.

        Parameters
        ----------
        level : float
            Coverage in percent.
        units : integer ndarray of shape (m,)
            Units by their position among those fitted to; -1 for others.
        h : int, optional
            Steps that are used, of which alone there are warnings; all by default.

        Returns
        -------
        ndarray of shape (m, h, C)

        Raises
        ------
        ValueError
            If there are no errors.

        Warns
        -----
        IntervalWarning
            If a step has too few errors for a guarantee at this level.
        """
        if self.is_empty:
            raise ValueError(
                "the validation part gives no forecast error; fit with a larger val_size"
            )
        widths, guaranteed = self._widths(level)
        rows = np.zeros_like(units) if len(self.errors) == 1 else units
        chosen, reliable = widths[rows], guaranteed[rows]
        sizes = self.sizes_of(units)
        if sizes is not None:
            relative, _ = self.relative._widths(level)
            chosen = np.where(np.isfinite(sizes)[:, None], relative * sizes[:, None], chosen)
        without = (rows < 0) | ~self.counts[rows].any((1, 2))
        if np.any(without):
            all_widths, all_reliable = self.pooled._widths(level)
            chosen[without], reliable[without] = all_widths, all_reliable
        if self.method != "gaussian" or not self.counts[rows].all():
            _warn_of_steps(level, reliable[:, :h])
        return chosen

    @cached_property
    def _widths_by_level(self) -> dict[float, tuple[np.ndarray, np.ndarray]]:
        """Widths by level that have been asked for: thousands of errors are sorted once."""
        return {}

    def _widths(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Half widths (U, h, C), and where they have their guarantee."""
        if level not in self._widths_by_level:
            sizes = np.abs(self.errors)
            if self.method == "gaussian":
                widths = float(ndtri(0.5 + level / 200)) * self._root_mean_squares()
                result = widths, self.counts > 0
            else:
                quantiles = conformal_quantile(sizes, level, self.effective)
                result = self._with_tails(quantiles, level), np.isfinite(quantiles)
            self._widths_by_level[level] = result
        return self._widths_by_level[level]

    def _with_tails(self, widths: np.ndarray, level: float) -> np.ndarray:
        """Half widths (U, h, C) with those of Student's t where there is no quantile.

        Its degrees of freedom are the independent errors of the first step: the scale of later
        ones rests on the same innovations.
        """
        if np.isfinite(widths).all():
            return widths
        degrees = np.maximum(self.effective[:, :1], 1.0)
        tails = stdtrit(degrees, 0.5 + level / 200) * self._root_mean_squares()
        sizes = np.where(np.isfinite(self.errors), np.abs(self.errors), 0.0)
        tails = np.maximum(tails, sizes.max(1, initial=0.0))  # no lower level is wider
        filled = np.where(np.isfinite(widths), widths, tails)
        for k in range(1, filled.shape[1]):
            later = np.maximum(filled[:, k], filled[:, k - 1])
            filled[:, k] = np.where(np.isfinite(widths[:, k]), filled[:, k], later)
        return filled

    def _root_mean_squares(self) -> np.ndarray:
        """Root mean squares (U, h, C) of the errors of every step; NaN of units without any.

        The scale of "rolling" grows with the step, so that one mean square, by independent errors,
        serves all steps. Otherwise steps without errors grow as those of a random walk.
        """
        there, squares = self.counts > 0, np.nan_to_num(self.errors).astype(float) ** 2
        means = squares.sum(1) / np.where(there, self.counts, np.nan)
        if self.method == "rolling":
            weights = np.where(there, self.effective, 0.0)
            total = weights.sum(1, keepdims=True)
            mean = (weights * np.nan_to_num(means)).sum(1, keepdims=True)
            mean /= np.where(total > 0, total, np.nan)
            return np.broadcast_to(np.sqrt(mean), means.shape)
        roots = np.sqrt(means)
        last = np.maximum.accumulate(np.where(there, np.arange(means.shape[1])[:, None], 0), 1)
        carried = np.take_along_axis(roots, last, 1)
        growth = np.sqrt((np.arange(means.shape[1])[:, None] + 1) / (last + 1))
        return np.where(there, roots, carried * growth)


def _warn_of_steps(level: float, reliable: np.ndarray) -> None:
    """Warn if intervals (m, h, C) of some steps are not guaranteed."""
    steps = reliable.all(2)
    fewest, horizon = int(steps.sum(1).min()), steps.shape[1]
    if fewest < horizon:
        warn_user(
            f"intervals of level {level:g} are guaranteed for {fewest} of {horizon} steps: others "
            "have too few independent forecast errors. Their widths follow from the size of the "
            "errors as if these were normal, and carry no guarantee. Give more rows to calibrate "
            "them, or ask for a lower level",
            IntervalWarning,
        )
