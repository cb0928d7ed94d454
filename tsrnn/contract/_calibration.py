"""Calibration of intervals: quantiles of forecast errors, their effective number and guarantee."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtri, stdtrit

from tsrnn.contract._warnings import IntervalWarning
from tsrnn.data import warn_user

# Errors per step for intervals of a single series; with them 99 percent can be guaranteed.
OWN_ERRORS = 100
MOST_ERRORS = 20_000  # per step; the standard error of a coverage of 95 percent is 0.15 percent
ROUNDING = 1e-9  # tolerance of a rank, so that 99 errors suffice for 99 percent
# Prior sum of squared deviations of log sizes, as chance alone gives: ten units, each with a mean
# of about six independent errors.
CHANCE = 10 * 0.1
LARGEST_RATIO = 100.0  # bound of the size of a unit's errors relative to the geometric mean

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
    r"""Return the effective number of n errors of step k from successive origins.

    An error of step k is a moving average of the k innovations since its origin, so that errors
    from origins j < k rows apart are correlated. Relative to n independent errors, the variance of
    the share of errors below a bound is inflated by

    .. math:: 1 + 2 \sum_{j=1}^{\min(k, n) - 1} (1 - j / n) \rho_j.

    The correlations :math:`\rho_j` of the indicators are at most those of (Gaussian) errors, whose
    sum over all lags is :math:`(\sum_i \psi_i)^2 / \sum_i \psi_i^2 \le k` by the Cauchy-Schwarz
    inequality. The bound is attained by a random walk, :math:`\rho_j = 1 - j / k`, which is assumed
    here. For n well above k, the effective number is about n / k.

    Parameters
    ----------
    n : ndarray
        Numbers of errors, not negative; means over series need not be whole.
    k : ndarray
        Steps, at least 1.

    Returns
    -------
    ndarray
        Effective numbers: 0 for no errors, n for k = 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.contract import effective_number
    >>> effective_number(np.array([100, 100, 4]), np.array([1, 10, 10])).round(2).tolist()
    [100.0, 10.34, 1.14]
    """
    n, k = np.broadcast_arrays(np.asarray(n, float), np.asarray(k, float))
    m = np.clip(np.minimum(n, k), 1, None)
    # Closed forms of the sums of j and j^2 up to m - 1, since n need not be whole.
    first, second = m * (m - 1) / 2, m * (m - 1) * (2 * m - 1) / 6
    count = np.maximum(n, 1)
    inflation = 1 + 2 * ((m - 1) - first * (1 / count + 1 / k) + second / (count * k))
    return n / inflation


def conformal_quantile(sizes: np.ndarray, level: float, effective: np.ndarray) -> np.ndarray:
    r"""Return conformal quantiles of absolute errors along axis 1, NaN if errors are too few.

    For n errors with effective number m, the rank is :math:`\lceil n p (m + 1) / m \rceil`. With m
    = n this is the rule for exchangeable errors, :math:`\lceil (n + 1) p \rceil`; for m blocks of
    equal errors it is the rule for blocks.

    Parameters
    ----------
    sizes : ndarray of shape (U, n, ...)
        Absolute errors, NaN where missing.
    level : float
        Coverage in percent.
    effective : ndarray of shape (U, ...)
        Effective numbers of errors.

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
    r"""Return relative sizes of the errors of units, shrunk towards equality.

    :math:`r_u` is the mean absolute error of a unit relative to all units at the same steps, and
    :math:`\bar r` the geometric mean over units. The size is :math:`(r_u / \bar r)^b` with

    .. math:: b = \frac{\sum_u x_u y_u}{\sqrt{(1 + \sum_u x_u^2) (1 + \sum_u y_u^2)}},

    where x and y are the deviations of :math:`\log r_u` from its mean in the first and second half
    of the rows. The power shrinks sizes that do not persist from one half to the other, and small
    differences between few units.

    Parameters
    ----------
    sums, counts : ndarray of shape (2, U, h, C)
        Sums and numbers of absolute errors in both halves of the rows, by unit, step and target.

    Returns
    -------
    ndarray of shape (U, C) or None
        Sizes, NaN for a unit without errors; None if all are equal.

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
    limit = np.log(LARGEST_RATIO)  # a unit without forecast errors would have size 0
    return np.where(known, np.exp(np.clip(away, -limit, limit)), np.nan)


@dataclass(frozen=True, eq=False)
class Calibration:
    r"""Scaled forecast errors :math:`(y_{t+k} - \hat y_{t+k}) / s_t` of rows not fitted to.

    Attributes
    ----------
    errors : ndarray of shape (U, n, h, C)
        Errors by unit, origin, step and target, NaN where missing. Pooled errors have U = 1.
    method : {"conformal", "rolling", "gaussian"} or the name of a learned distribution
        "conformal" has the same scale at all steps; with "rolling" it grows like the model's
        intervals. Learned distributions have no widths.
    n_pooled : int, default 1
        Number of pooled units, assumed independent.
    scale : str
        Description of the scale of "rolling".
    units : integer ndarray of shape (n,), optional
        Unit of each pooled error.
    sizes : ndarray of shape (V, C), optional
        Relative sizes of the errors of all units, see `relative_sizes`; pooled errors are divided
        by them. Units with size NaN, by default all units, use the pooled errors undivided.

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
        """Return the calibration by errors (U, n, h, C), pooled if few and sampled if many.

        Constant series have no scaled errors, NaN. If all series are constant, all errors are 0.
        """
        counts = np.isfinite(errors).sum(1)
        if not counts.any() and method != "rolling":
            errors, counts = np.zeros_like(errors), np.full_like(counts, errors.shape[1])
        varying = counts.any((1, 2))
        if len(errors) > 1 and (not varying.any() or counts[varying].min() < OWN_ERRORS):
            n_pooled = max(int(varying.sum()), 1)
            errors = errors.reshape(1, -1, *errors.shape[2:])
            errors = errors[:, np.isfinite(errors).any((0, 2, 3))]
        if len(errors) == 1 and method != "rolling":  # a constant target among others
            errors = np.where(np.isfinite(errors).any((0, 1, 2)), errors, 0.0)
        n = errors.shape[1]
        if n > MOST_ERRORS:  # at random, since a stride may select one hour of the day
            chosen = np.sort(np.random.default_rng(0).choice(n, MOST_ERRORS, replace=False))
            errors = errors[:, chosen]
            units = None if units is None else units[chosen]
        errors = np.ascontiguousarray(errors)
        return cls(errors, method, n_pooled, units=units, sizes=sizes, **words)

    @property
    def is_empty(self) -> bool:
        """True if there are no errors."""
        return not np.isfinite(self.errors).any()

    @cached_property
    def counts(self) -> np.ndarray:
        """Numbers of errors, shape (U, h, C)."""
        return np.isfinite(self.errors).sum(1)

    @cached_property
    def effective(self) -> np.ndarray:
        """Effective numbers of errors, shape (U, h, C)."""
        steps = np.arange(1, self.errors.shape[2] + 1)[:, None]
        return self.n_pooled * effective_number(self.counts / self.n_pooled, steps)

    @cached_property
    def pooled(self) -> Calibration:
        """Calibration by the pooled errors of all units."""
        if len(self.errors) == 1:
            return self
        errors = self.errors.reshape(1, -1, *self.errors.shape[2:])
        return replace(self, errors=errors, n_pooled=int(self.counts.any((1, 2)).sum()))

    @property
    def by_unit(self) -> bool:
        """True if intervals differ between units."""
        return len(self.errors) > 1 or self.sizes is not None

    @cached_property
    def relative(self) -> Calibration:
        """Calibration by pooled errors divided by the sizes of their units."""
        if self.units is None or self.sizes is None:
            return self
        errors = self.errors / self.sizes[self.units][None, :, None]
        return replace(self, errors=errors, units=None, sizes=None)

    def sizes_of(self, units: np.ndarray) -> np.ndarray | None:
        """Return relative sizes (m, C) of units by position, NaN for -1; None if all are equal."""
        if self.sizes is None:
            return None
        return np.where(units[:, None] < 0, np.nan, self.sizes[units])

    def to_file(self) -> dict[str, np.ndarray]:
        """Return the arrays of a file."""
        n_targets = self.errors.shape[3]
        return {
            "errors": self.errors,
            "error_units": np.zeros(0, np.int64) if self.units is None else self.units,
            "error_sizes": np.zeros((0, n_targets)) if self.sizes is None else self.sizes,
        }

    @cached_property
    def complete(self) -> np.ndarray:
        """Pooled errors of origins with errors at all steps, shape (m, h, C)."""
        return self.errors[np.isfinite(self.errors).all((2, 3))]

    def draw(self, unit: int, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw errors (n, h, C) of a unit by position (-1: unknown), jointly over steps.

        `complete` must not be empty.
        """
        sample, size = self.complete, np.ones(self.errors.shape[3])
        sizes = self.sizes_of(np.array([unit]))
        if len(self.errors) > 1 and unit >= 0:
            of_unit = self.errors[unit][np.isfinite(self.errors[unit]).all((1, 2))]
            sample = of_unit if len(of_unit) else sample
        elif sizes is not None:
            # A target without a size uses the pooled errors, as in `half_widths`.
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
        """Guarantee of the intervals, with the largest guaranteed levels of conformal ones."""
        words = GUARANTEES[self.method]
        if self.is_empty:
            return words.format(scale=self.scale, errors="There are no errors: nothing holds.")
        there = self.counts.any((1, 2))  # series without errors use those of all series
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
        r"""Return half widths of the intervals in units of the scale.

        "gaussian" uses a normal quantile times the root mean square of the errors. Other methods
        use the conformal quantile. If errors are too few, they use a Student's t quantile times the
        root mean square, no smaller than the largest error and the width of the step before.

        Parameters
        ----------
        level : float
            Coverage in percent.
        units : integer ndarray of shape (m,)
            Positions of the units among those fitted to; -1 for others.
        h : int, optional
            Steps to warn about; all by default.

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
        """Cache of widths by level, so that thousands of errors are sorted once."""
        return {}

    def _widths(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Return half widths (U, h, C) and the mask of guaranteed ones."""
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
        """Fill missing half widths (U, h, C) by quantiles of Student's t.

        The degrees of freedom are the effective number of errors of the first step, since errors of
        later steps rest on the same innovations.
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
        """Return root mean squared errors (U, h, C), NaN for units without errors.

        The scale of "rolling" grows with the step, so that all steps share one mean square,
        weighted by effective numbers. Otherwise steps without errors grow like a random walk.
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
