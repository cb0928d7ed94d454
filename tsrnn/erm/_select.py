"""Choice of d_s, d and L: richness of recurrence features and risk against time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.multiclass import type_of_target

from tsrnn.contract import choice, flag, positive_integer, seed_of, verbosity
from tsrnn.erm._complexity import layer_complexity
from tsrnn.erm._cross_validation import (
    FoldRows,
    checked_folds,
    checked_held_out_lags,
    pooled_risk,
)
from tsrnn.erm._losses import Loss, checked_loss, loss_name, own_loss, sample_losses
from tsrnn.erm._risk import Risk
from tsrnn.erm._samples import count, take
from tsrnn.erm._selection import (
    RULES,
    SIZES,
    ArchitectureSelection,
    simplest,
    smallest,
    within_one_error,
)
from tsrnn.erm._sequences import read_sequences
from tsrnn.erm._workers import in_workers

__all__ = ["select_architecture"]


def select_architecture(
    X: Any,
    z: Any,
    *,
    estimator: Any = None,
    block_sizes: Sequence[int] | None = None,
    hidden_sizes: Sequence[int] | None = None,
    n_layers: Sequence[int] | None = None,
    cv: Any = 5,
    loss: Loss | None = None,
    lags: int = 0,
    rule: str = "one_std_error",
    random_state: Any = None,
    n_jobs: int | None = None,
    refit: bool = True,
    verbose: int = 0,
) -> ArchitectureSelection:
    r"""Choose block size, hidden size and number of layers by their risk and their cost.

    A block of size d_s has recurrence features of the types R-1, ..., R-d_s and
    C-1, ..., C-(d_s // 2) at most, so that a larger one is richer and costs more: by Theorem 2
    the time of L layers is of the order

    .. math::

        \sum_{l=1}^{L} \big( T d_s^2 + T d_s d_l + d^2 + T^2 d_s^3 + d\, d_s^3 \big),

    with :math:`d_l` the inputs of layer l, forward and backward. Without d_s of 2 at least there
    are no damped waves (types C); Section 3.3 argues that 2 is mostly enough. Here each candidate
    is a clone of the estimator with other sizes, judged by its risk on held-out samples, the same
    for all.

    The **best** candidate is that of the smallest risk :math:`\widehat{\mathcal R}_k`. The
    **chosen** one is the cheapest k with

    .. math::

        \widehat{\mathcal R}_k - \widehat{\mathcal R}_{best}
        \leq \widehat{\mathrm{se}} (\widehat{\mathcal R}_k - \widehat{\mathcal R}_{best}),

    the standard error being that of the differences of losses of the same sample (`Risk.minus`),
    which is mostly far smaller than that of either risk: the rule is stricter than the customary
    one, which takes the standard error of the smallest risk. Cost is the sum above. Measured
    seconds would choose another candidate on another machine, or a busy one; they are reported
    beside it.

    Parameters
    ----------
    X, z
        As of `fit` of the estimator.
    estimator : estimator, optional
        With parameters `block_size`, `hidden_size` and `n_layers`; cloned and left as it is. By
        default `ParaRNNClassifier` if z are classes for
        `sklearn.utils.multiclass.type_of_target`, that is text, booleans or whole numbers, also as
        floats, and else `ParaRNNRegressor`. For counts give a regressor.
    block_sizes : sequence of int, optional
        d_s, divisors of every hidden size. By default for each hidden size d the powers of two
        that divide it and d itself, the ordinary network.
    hidden_sizes, n_layers : sequence of int, optional
        d and L. By default those of the estimator.
    cv : int, splitter or iterable of (train, test), default 5
        As in `cross_validated_risk`; for a single held-out part ``[(train, test)]``. Series in time
        order need `BlockedKFold` with a gap.
    loss : {"squared_error", "absolute_error", "log_loss", "zero_one"} or callable, optional
        Of the held-out samples. By default "log_loss" for a classifier, and else the estimator's
        own, or "squared_error".
    lags : int, default 0
        Of the standard errors, as in `empirical_risk`; above 0 for samples in time order.
    rule : {"one_std_error", "smallest"}, default "one_std_error"
        How the candidate is chosen; with "smallest" it is the best.
    random_state : int, numpy random generator or None
        Of every clone, the same in all. By default the estimator's own.
    n_jobs : int, optional
        Processes, one thread each, among which fits are shared out; -1 for all cores. In this
        process by default. With more than one, seconds are those of a busy machine.
    refit : bool, default True
        Whether the chosen candidate is fitted to all samples.
    verbose : int, default 0
        1 shows a progress bar over fits.

    Returns
    -------
    ArchitectureSelection

    Raises
    ------
    TypeError, ValueError
        If a block size does not divide a hidden size, a grid is empty, has a number twice or one
        that is no positive integer, the estimator lacks one of the three parameters, no risk is
        finite, or as in `cross_validated_risk`. Errors of a fit carry a note that names the
        candidate.

    Notes
    -----
    The smallest of several estimated risks is on average below the risk of that candidate, the
    more so the more candidates there are: for an estimate of the risk of what is chosen, keep
    samples out of X. Cross-validated standard errors are too short (see `cross_validated_risk`),
    and with one seed the differences hold what the random start and the order of training bring.

    Seconds are wall-clock time of `fit`, start of the training included. Libraries and kernels
    are loaded before by a fit of one epoch, where the estimator has `max_epochs`.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, Section 3.3, Theorem 2 and Figure 2(c).

    Breiman, L., Friedman, J. H., Olshen, R. A. and Stone, C. J. (1984). Classification and
    Regression Trees. Wadsworth, Section 3.4.3, for the rule of one standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.erm import ParaRNNRegressor, select_architecture
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 5, 1))
    >>> z = X[:, -1, 0] + 0.1 * rng.normal(size=60)
    >>> model = ParaRNNRegressor(hidden_size=4, max_epochs=2, random_state=0)
    >>> selection = select_architecture(X, z, estimator=model, cv=2)
    >>> selection.frame[["block_size", "feature_types", "backward"]]
       block_size  feature_types  backward
    0           1            R-1        29
    1           2     R-1..2 C-1       232
    2           4  R-1..4 C-1..2      1856
    >>> sorted(selection.chosen)
    ['block_size', 'hidden_size', 'n_layers']
    """
    verbose, refit = verbosity(verbose), flag("refit", refit)
    rule = choice("rule", rule, RULES)
    if count(z) != count(X):
        raise ValueError(f"X and z must have as many samples; got {count(X)} and {count(z)}")
    base = _base(estimator, z, random_state)
    grid = candidates(base.get_params(deep=False), block_sizes, hidden_sizes, n_layers)
    loss = checked_loss(own_loss(base) if loss is None else loss)
    folds = checked_folds(cv, X, z, loss)
    lags = checked_held_out_lags(lags, folds)
    costs = _Costs.of(X, base)
    fits = _fits(base, grid, X, z, folds, loss, n_jobs, verbose)
    risks = tuple(
        pooled_risk(folds, [fit.losses for fit in own], None, loss_name(loss), lags) for own in fits
    )
    frame = _frame(grid, risks, fits, costs, rule)
    best, chosen = (grid[int(np.argmax(frame[name]))] for name in ("best", "chosen"))
    fitted = clone(base).set_params(**chosen).fit(X, z) if refit else None
    return ArchitectureSelection(frame, risks, dict(best), dict(chosen), fitted)


def candidates(
    params: dict[str, Any], block_sizes: Any, hidden_sizes: Any, n_layers: Any
) -> list[dict[str, int]]:
    """Sizes to try, by number of layers, then hidden size, then block size.

    Parameters
    ----------
    params : dict
        Of the estimator, for what is not given.
    block_sizes, hidden_sizes, n_layers : sequence of int or None
    """
    hidden = _whole_numbers("hidden_sizes", hidden_sizes, params["hidden_size"])
    layers = _whole_numbers("n_layers", n_layers, params["n_layers"])
    blocks = {d: _divisors(d) for d in hidden}
    if block_sizes is not None:
        given = _whole_numbers("block_sizes", block_sizes, None)
        blocks = dict.fromkeys(hidden, given)
    wrong = [(size, d) for d in hidden for size in blocks[d] if d % size]
    if wrong:
        listed = ", ".join(f"{size} does not divide {d}" for size, d in wrong)
        raise ValueError(f"block_sizes must divide every hidden size; {listed}")
    return [
        {"block_size": size, "hidden_size": d, "n_layers": depth}
        for depth in layers
        for d in hidden
        for size in blocks[d]
    ]


def _whole_numbers(name: str, values: Any, default: Any) -> list[int]:
    if values is None:
        return [positive_integer(name, default)]
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray | range):
        raise TypeError(f"{name} must be a sequence of positive integers; got {values!r}")
    found = [positive_integer(f"an entry of {name}", value) for value in values]
    if not found:
        raise ValueError(f"{name} must have one entry at least; got none")
    if len(set(found)) < len(found):
        raise ValueError(f"{name} must be distinct; got {found}")
    return found


def _divisors(d: int) -> list[int]:
    """Powers of two that divide d, and d."""
    powers = [1 << i for i in range(d.bit_length()) if d % (1 << i) == 0]
    return sorted({*powers, d})


def _base(estimator: Any, z: Any, random_state: Any) -> Any:
    """A clone of the estimator, or the default one, with the seed."""
    base = _default(z) if estimator is None else clone(estimator)
    known = base.get_params(deep=False)
    missing = [name for name in SIZES if name not in known]
    if missing:
        raise ValueError(
            f"estimator must have the parameters {', '.join(SIZES)}; {type(base).__name__} lacks "
            f"{', '.join(missing)}. In a pipeline, select with its last step"
        )
    if random_state is None:
        return base
    if "random_state" not in known:
        raise ValueError(
            f"{type(base).__name__} has no parameter random_state; leave random_state out"
        )
    return base.set_params(random_state=seed_of(random_state))


def _default(z: Any) -> Any:
    from tsrnn.erm._classifier import ParaRNNClassifier
    from tsrnn.erm._regressor import ParaRNNRegressor

    kind = type_of_target(z)
    if kind == "unknown":
        raise ValueError(
            "estimator must be given, for z is not a number or a label a sample, by which the "
            f"default one is chosen; got {type(z).__name__}"
        )
    return ParaRNNClassifier() if kind in ("binary", "multiclass") else ParaRNNRegressor()


class _Fit(NamedTuple):
    """What a fit to a training part shows."""

    losses: np.ndarray
    seconds: float
    epochs: float
    n_parameters: int | None


def _fits(
    base: Any,
    grid: list[dict[str, int]],
    X: Any,
    z: Any,
    folds: list[FoldRows],
    loss: Loss,
    n_jobs: int | None,
    verbose: int,
) -> list[list[_Fit]]:
    """Fits of each candidate, one a fold."""
    tasks = [(clone(base), sizes, X, z, *fold, loss) for sizes in grid for fold in folds]
    done = in_workers(_fitted, tasks, n_jobs, "architectures" if verbose else None)
    return [done[start : start + len(folds)] for start in range(0, len(done), len(folds))]


def _fitted(
    estimator: Any,
    sizes: dict[str, int],
    X: Any,
    z: Any,
    train: np.ndarray,
    test: np.ndarray,
    loss: Loss,
) -> _Fit:
    X_train, z_train = take(X, train), take(z, train)
    try:
        estimator.set_params(**sizes)
        if "max_epochs" in estimator.get_params(deep=False):
            clone(estimator).set_params(max_epochs=1).fit(X_train, z_train)  # loads what fits need
        start = time.perf_counter()
        estimator.fit(X_train, z_train)
        seconds = time.perf_counter() - start
        losses = sample_losses(estimator, take(X, test), take(z, test), loss)
    except Exception as error:
        error.add_note("raised by the candidate " + _text(sizes))
        raise
    epochs = len(estimator.history_) if hasattr(estimator, "history_") else np.nan
    return _Fit(losses, seconds, float(epochs), _n_parameters(estimator))


def _n_parameters(estimator: Any) -> int | None:
    if not hasattr(estimator, "network_"):
        return None
    return sum(p.numel() for p in estimator.network_.parameters() if p.requires_grad)


def _text(sizes: dict[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sizes.items())


class _Costs(NamedTuple):
    """What Theorem 2 needs to know of the data."""

    length: int
    n_inputs: int
    projected: bool

    @classmethod
    def of(cls, X: Any, estimator: Any) -> _Costs:
        sequences = read_sequences(X, clone(estimator), reset=True)
        projected = bool(estimator.get_params(deep=False).get("input_projection", False))
        return cls(int(sequences.lengths.max()), sequences.n_inputs, projected)

    def operations(self, sizes: dict[str, int]) -> tuple[int, int]:
        """Forward and backward, summed over layers."""
        d, size = sizes["hidden_size"], sizes["block_size"]
        first = d if self.projected else self.n_inputs
        layers = [
            layer_complexity(self.length, d_in, d, size)
            for d_in in (first, *[d] * (sizes["n_layers"] - 1))
        ]
        return sum(layer.forward for layer in layers), sum(layer.backward for layer in layers)


def _frame(
    grid: list[dict[str, int]],
    risks: Sequence[Risk],
    fits: Sequence[Sequence[_Fit]],
    costs: _Costs,
    rule: str,
) -> pd.DataFrame:
    operations = [costs.operations(sizes) for sizes in grid]
    totals = [forward + backward for forward, backward in operations]
    best = smallest([risk.value for risk in risks], totals)
    differences = [_difference(risk, risks[best]) for risk in risks]
    values, errors = zip(*differences, strict=True)
    chosen = simplest(values, errors, totals) if rule == "one_std_error" else best
    near = within_one_error(values, errors)
    rows = [
        sizes
        | {
            "n_blocks": sizes["hidden_size"] // sizes["block_size"],
            "risk": risks[i].value,
            "std_error": risks[i].std_error,
            "difference": values[i],
            "difference_std_error": errors[i],
            "best": i == best,
            "chosen": i == chosen,
            "within_one_std_error": bool(near[i]),
        }
        | _time(fits[i])
        | _features(sizes["block_size"])
        | {"forward": operations[i][0], "backward": operations[i][1]}
        for i, sizes in enumerate(grid)
    ]
    frame = pd.DataFrame(rows).astype({"n_parameters": "Int64"})
    frame.attrs |= {
        "loss": risks[0].loss,
        "n_samples": risks[0].n,
        "n_folds": len(fits[0]),
        "rule": rule,
        "length": costs.length,
    }
    return frame


def _difference(risk: Risk, best: Risk) -> tuple[float, float]:
    if risk is best:
        return 0.0, 0.0
    if not np.isfinite(risk.losses).all():
        return np.inf, np.nan
    difference = risk.minus(best)
    return difference.value, difference.std_error


def _time(fits: Sequence[_Fit]) -> dict[str, Any]:
    seconds, epochs = (np.array([getattr(fit, name) for fit in fits]) for name in _Fit._fields[1:3])
    return {
        "seconds_per_fit": float(seconds.mean()),
        "seconds_per_epoch": float(seconds.sum() / epochs.sum()),
        "epochs": float(epochs.mean()),
        "n_parameters": fits[0].n_parameters,
    }


def _features(block_size: int) -> dict[str, Any]:
    """Types of recurrence features that a block can have at most, Section 3.3."""
    cyclical = block_size // 2
    names = [
        f"{kind}-1" + (f"..{most}" if most > 1 else "")
        for kind, most in (("R", block_size), ("C", cyclical))
        if most
    ]
    return {
        "n_feature_types": block_size + cyclical,
        "feature_types": " ".join(names),
        "cyclical": cyclical > 0,
    }
