"""Monte Carlo excess risk for a known regression function, and its decomposition."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from tsrnn.contract import positive_integer, seed_of
from tsrnn.erm._losses import squared_errors
from tsrnn.erm._resampling import Refit, count, results_of, seed_names, unfitted

__all__ = ["Estimate", "ExcessRisk", "excess_risk"]


class Estimate(NamedTuple):
    """Estimate of a number, with its standard error.

    Attributes
    ----------
    value, std_error : float

    Examples
    --------
    >>> from tsrnn.erm import Estimate
    >>> print(Estimate(0.1234, 0.0056))
    0.123 (std_error 0.0056)
    """

    value: float
    std_error: float

    def __str__(self) -> str:
        return f"{self.value:.3g} (std_error {self.std_error:.2g})"


@dataclass(frozen=True, repr=False)
class ExcessRisk:
    """Excess risk and its parts, returned by `excess_risk`, in squared units of the target.

    Attributes
    ----------
    excess : Estimate
        R(f^) - R(f_0), or its expectation over training samples.
    estimation : Estimate or None
        R(f^) - R(f_bar), a lower estimate; negative if f^ beats the approximation to f_bar.
    approximation : Estimate or None
        R(f_bar) - R(f_0), an upper estimate. Both parts sum to the excess risk, up to rounding.
    n_monte_carlo : int
        Number of new pairs per fitted estimator.
    n_train : int or None
        Size of the training samples; None for a given fitted estimator.
    by_replicate : tuple of float
        Excess risk of each training sample; empty for a given fitted estimator.
    n_population, n_starts : int or None
        Number of pairs and of starts in the fit of f_bar; None without it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from tsrnn.erm import excess_risk
    >>> def mean(X):
    ...     return X @ [1.0, -1.0]
    >>> def sample(n, random_state):
    ...     X = np.random.default_rng(random_state).normal(size=(n, 2))
    ...     return X, mean(X)
    >>> X, z = sample(50, 0)
    >>> line = LinearRegression().fit(X, z)
    >>> risk = excess_risk(line, mean, sample, n_monte_carlo=1000, random_state=0)
    >>> bool(risk.excess.value < 1e-20), risk.estimation
    (True, None)
    """

    excess: Estimate
    estimation: Estimate | None
    approximation: Estimate | None
    n_monte_carlo: int
    n_train: int | None = None
    by_replicate: tuple[float, ...] = field(default=())
    n_population: int | None = None
    n_starts: int | None = None

    def to_dict(self) -> dict[str, float | int | None]:
        """Return the numbers as a row of a table, None for missing parts."""
        row: dict[str, float | int | None] = {}
        for name in ("excess", "estimation", "approximation"):
            estimate = getattr(self, name)
            row[name] = None if estimate is None else estimate.value
            row[f"{name}_std_error"] = None if estimate is None else estimate.std_error
        return row | {
            "n_monte_carlo": self.n_monte_carlo,
            "n_train": self.n_train,
            "n_replicates": len(self.by_replicate) or None,
            "n_population": self.n_population,
            "n_starts": self.n_starts,
        }

    def __repr__(self) -> str:
        if self.n_train is None:
            sampled = f"given the training sample, on {self.n_monte_carlo} new pairs"
        else:
            sampled = (
                f"mean of {len(self.by_replicate)} training samples of {self.n_train}, "
                f"{self.n_monte_carlo} new pairs each"
            )
        lines = [f"Excess risk {self.excess}: {sampled}"]
        if self.estimation is not None:
            lines += [
                f"  estimation error    at least {self.estimation}",
                f"  approximation error at most {self.approximation}, with the best of "
                f"{self.n_starts} fits to {self.n_population} pairs without noise",
            ]
        return "\n".join(lines)


def excess_risk(
    estimator: Any,
    f0: Callable[[Any], Any],
    sampler: Callable[..., tuple[Any, Any]],
    *,
    n_monte_carlo: int = 100_000,
    batch_size: int = 5_000,
    n_train: int | None = None,
    n_replicates: int | None = None,
    n_population: int | None = None,
    n_starts: int = 5,
    population_params: dict[str, Any] | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> ExcessRisk:
    r"""Return the excess risk of an estimator for a known regression function.

    .. math::

        \mathcal R(\hat f) - \mathcal R(f_0) = \mathbb E [\hat f(X) - f_0(X)]^2
        = \underbrace{\mathcal R(\hat f) - \mathcal R(\bar f)}_{\text{estimation}}
        + \underbrace{\mathcal R(\bar f) - \mathcal R(f_0)}_{\text{approximation}},

    where :math:`f_0(X) = \mathbb E[z | X]` and :math:`\bar f` is the best function in the class of
    the estimator. The expectation is a mean over `n_monte_carlo` new pairs, drawn in batches, and
    over outputs and steps of the target.

    1. *Given the training sample* (default): the fitted estimator is evaluated. Standard errors
       describe the Monte Carlo mean and ignore the variation of training samples.
    2. *Over training samples*, with `n_train` and `n_replicates`: clones are fitted to fresh
       samples, each evaluated on its own new pairs.
       :math:`\mathbb E_{\mathcal S}[\mathcal R(\hat f) - \mathcal R(f_0)]` is their mean, with
       standard error :math:`s / \sqrt{\text{replicates}}`, which includes the Monte Carlo error.

    `n_population` adds a decomposition. Up to :math:`\mathcal R(f_0)`, the risk of a function is
    its mean squared distance to :math:`f_0`. So :math:`\bar f` is approximated by fits of
    `n_starts` clones to `n_population` pairs :math:`(X, f_0(X))` without noise, and the clone
    with the smallest distance on as many other pairs is taken. No function of the class is better
    than the true :math:`\bar f`: errors of optimisation and of a finite population increase the
    approximation error, an **upper** estimate, and decrease the estimation error, a **lower** one.
    Standard errors of both are conditional on that fit and ignore this bias. Both parts are
    estimated on the same pairs and sum to the excess risk.

    Parameters
    ----------
    estimator : regressor
        Fitted estimator, or one to clone if `n_train` is given. Clones get new values of every
        `random_state`, which averages over the randomness of the optimiser.
    f0 : callable
        Function from X to :math:`f_0(X)` in the shape of predictions.
    sampler : callable
        ``sampler(n, random_state=seed)`` returns n independent pairs (X, z), a new sample for
        every integer seed; z is only used for training.
    n_monte_carlo : int, default 100_000
        Number of new pairs per fitted estimator, at least 2.
    batch_size : int, default 5_000
        Pairs per batch of the evaluation, on which the draws depend.
    n_train, n_replicates : int, optional
        Size and number (at least 2) of the training samples; both or none.
    n_population : int, optional
        Number of pairs for :math:`\bar f`; by default there is no decomposition.
    n_starts : int, default 5
        Number of clones for :math:`\bar f`.
    population_params : dict, optional
        Arguments of the clones for :math:`\bar f` that differ from `estimator`, such as more
        epochs, no penalty or no early stopping, without a change of the class of functions. The
        closer the clones come to :math:`\bar f`, the more accurate are the two parts.
    random_state : int, numpy random generator or None
        Source of all seeds. The same pairs are drawn with and without the decomposition.
    n_jobs : int, optional
        Number of processes for fits, of one thread each; -1 for all cores. By default this process.
        Each trains clones of a `ParaRNNRegressor` together, as in `block_bootstrap`.

    Returns
    -------
    ExcessRisk

    Raises
    ------
    ValueError, TypeError
        If arguments are out of range, the estimator is a classifier, the sampler returns another
        number of pairs, or a prediction has another shape than `f0` or is NaN.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, Section 4.2; the expectation is that of Theorem 5.

    Examples
    --------
    Least squares with d = 2 of 23 observations and unit variances: :math:`d / (23 - d - 1) = 0.1`.

    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from tsrnn.erm import excess_risk
    >>> def mean(X):
    ...     return X @ [1.0, -1.0]
    >>> def sample(n, random_state):
    ...     rng = np.random.default_rng(random_state)
    ...     X = rng.normal(size=(n, 2))
    ...     return X, mean(X) + rng.normal(size=n)
    >>> line = LinearRegression(fit_intercept=False)
    >>> excess_risk(line, mean, sample, n_monte_carlo=1000, n_train=23, n_replicates=100,
    ...             random_state=0)
    Excess risk 0.0927 (std_error 0.011): mean of 100 training samples of 23, 1000 new pairs each
    """
    if hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"excess_risk needs a regressor; {type(estimator).__name__} is a classifier. A "
            "regressor of labels 0 and 1 has the probability of 1 as its f0."
        )
    if (n_train is None) != (n_replicates is None):
        raise ValueError(
            f"give n_train and n_replicates both, or none of them for a fitted estimator; got "
            f"{n_train!r} and {n_replicates!r}"
        )
    if n_train is not None:
        n_train = positive_integer("n_train", n_train)
        n_replicates = _two_or_more("n_replicates", n_replicates)
    # Separate streams, so that a decomposition does not change the pairs drawn.
    training, evaluating, population = np.random.default_rng(seed_of(random_state)).spawn(3)
    n_monte_carlo = _two_or_more("n_monte_carlo", n_monte_carlo)
    pairs = _Pairs(f0, sampler, n_monte_carlo, positive_integer("batch_size", batch_size))
    best = None
    if n_population is not None:
        n_population = positive_integer("n_population", n_population)
        n_starts = positive_integer("n_starts", n_starts)
        # The class of a given fitted estimator is defined by the arguments of its fit.
        member = unfitted(estimator) if n_train is None else clone(estimator)
        member.set_params(**(population_params or {}))
        best = pairs.best_of_class(member, n_population, n_starts, population, n_jobs)
    by_replicate: tuple[float, ...] = ()
    if n_train is None or n_replicates is None:
        mean, std_error = pairs.evaluate(estimator, best, evaluating)
    else:
        streams = training.spawn(n_replicates), evaluating.spawn(n_replicates)
        replicates = [
            Refit(
                f"replicate {i} of {n_replicates}",
                _fresh(estimator, training),
                partial(pairs.draw_training, n_train, training),
                partial(pairs.means, best, evaluating),
            )
            for i, (training, evaluating) in enumerate(zip(*streams, strict=True), 1)
        ]
        values = np.array(results_of(replicates, n_jobs))
        mean, std_error = values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(len(values))
        by_replicate = tuple(values[:, 0].tolist())
    estimates = [Estimate(*pair) for pair in zip(mean.tolist(), std_error.tolist(), strict=True)]
    estimation, approximation = estimates[1:] if best is not None else (None, None)
    return ExcessRisk(
        estimates[0],
        estimation,
        approximation,
        n_monte_carlo,
        n_train,
        by_replicate,
        n_population,
        n_starts if best is not None else None,
    )


@dataclass(frozen=True)
class _Pairs:
    """Generator of n new pairs in batches, and evaluation of fitted estimators on them."""

    f0: Callable[[Any], Any]
    sampler: Callable[..., tuple[Any, Any]]
    n: int
    batch_size: int

    def draw(self, n: int, generator: np.random.Generator) -> tuple[Any, Any]:
        seed = int(generator.integers(2**31 - 1))  # legal for any sampler: numpy's own end at 2^32
        drawn = self.sampler(n, random_state=seed)
        if not isinstance(drawn, tuple) or len(drawn) != 2:
            raise TypeError(f"sampler must return a tuple (X, z); got {type(drawn).__name__}")
        X, z = drawn
        if count(X) != n or count(z) != n:
            raise ValueError(
                f"sampler was asked for {n} pairs and returned {count(X)} X and {count(z)} z"
            )
        return X, z

    def draw_training(self, n: int, generator: np.random.Generator) -> tuple[Any, Any, None]:
        """Draw n training pairs, without weights."""
        return *self.draw(n, generator), None

    def best_of_class(
        self, member: Any, n: int, n_starts: int, generator: np.random.Generator, n_jobs: int | None
    ) -> Any:
        """Return the best of `n_starts` fits to n noiseless pairs, by distance on n other pairs."""
        (X, _), (X_new, _) = (self.draw(n, generator) for _ in range(2))
        z, z_new = self.f0(X), self.f0(X_new)
        starts = [
            Refit(
                f"start {i} of {n_starts} to the population",
                _fresh(member, generator),
                partial(tuple, (X, z, None)),
                partial(_with_distance, X_new, z_new),
            )
            for i in range(1, n_starts + 1)
        ]
        return min(results_of(starts, n_jobs), key=itemgetter(1))[0]

    def means(self, best: Any, generator: np.random.Generator, fitted: Any) -> np.ndarray:
        """Return the means of `evaluate`."""
        return self.evaluate(fitted, best, generator)[0]

    def evaluate(
        self, fitted: Any, best: Any, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return means and standard errors of excess, estimation and approximation error.

        Both have shape (3,), or (1,) without `best`.
        """
        moments = _Moments()
        for start in range(0, self.n, self.batch_size):
            X, _ = self.draw(min(self.batch_size, self.n - start), generator)
            truth = self.f0(X)
            columns = [squared_errors(truth, fitted.predict(X))]
            if best is not None:
                approximation = squared_errors(truth, best.predict(X))
                columns += [columns[0] - approximation, approximation]
            moments.add(np.stack(columns))
        return moments.mean, moments.std_error


class _Moments:
    """Running means of rows, and sums of squares about them."""

    def __init__(self) -> None:
        self.n = 0
        self.mean: np.ndarray = np.zeros(1)
        self.squares: np.ndarray = np.zeros(1)

    def add(self, values: np.ndarray) -> None:
        """Merge the moments of values (rows, n)."""
        # About the mean, since raw sums of squares cancel if the spread is small.
        n, mean = values.shape[1], values.mean(axis=1)
        shift, total = mean - self.mean, self.n + n
        within = ((values - mean[:, None]) ** 2).sum(axis=1)
        self.squares = self.squares + within + shift**2 * (self.n * n / total)
        self.mean = self.mean + shift * (n / total)
        self.n = total

    @property
    def std_error(self) -> np.ndarray:
        return np.sqrt(self.squares / (self.n - 1) / self.n)


def _with_distance(X: Any, z: Any, fitted: Any) -> tuple[Any, float]:
    """Return the fitted estimator and its mean squared distance to f_0 on noiseless pairs."""
    return fitted, float(squared_errors(z, fitted.predict(X)).mean())


def _fresh(estimator: Any, generator: np.random.Generator) -> Any:
    """Clone an estimator with a new seed for each `random_state`."""
    fresh = clone(estimator)
    names = seed_names(fresh)
    return fresh.set_params(**{name: int(generator.integers(2**31 - 1)) for name in names})


def _two_or_more(name: str, value: Any) -> int:
    if positive_integer(name, value) < 2:
        raise ValueError(f"{name} must be at least 2, or there is no standard error; got {value}")
    return int(value)
