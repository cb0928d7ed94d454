"""Choice of d_s, d and L by risk and computing time."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.multiclass import type_of_target

from tsrnn.contract import Summary, choice, flag, positive_integer, seed_of, verbosity
from tsrnn.erm._cross_validation import checked_folds, checked_held_out_lags, pooled_risk
from tsrnn.erm._losses import Loss, checked_loss, default_loss, loss_name, sample_losses
from tsrnn.erm._resampling import count, in_workers, take
from tsrnn.erm._risk import Risk
from tsrnn.erm._sequences import read_sequences
from tsrnn.erm.theory import layer_complexity
from tsrnn.interpret import wrapped

__all__ = ["ArchitectureSelection", "select_architecture"]

SIZES = ("block_size", "hidden_size", "n_layers")
RULES = ("one_std_error", "smallest")

_NOTES = {
    "one_std_error": "chosen: the cheapest, by the operations of Theorem 2, of those whose risk is "
    "within one standard error of the difference from the smallest.",
    "smallest": "chosen: the smallest risk.",
}
_CAUTION = (
    "The smallest of several estimated risks is too small an estimate of its own risk; standard "
    "errors know nothing of the randomness of training{folds}."
)
_FOLDS = ", and are too short, for folds share training samples"
_HEADINGS = {
    "block_size": "d_s",
    "hidden_size": "d",
    "n_layers": "L",
    "feature_types": "features",
    "risk": "risk",
    "std_error": "std err",
    "difference": "diff",
    "difference_std_error": "std err",
    "seconds_per_epoch": "s/epoch",
    "seconds_per_fit": "s/fit",
    "n_parameters": "params",
}


@dataclass(frozen=True, eq=False, repr=False)
class ArchitectureSelection(Summary):
    """Candidates with risks and costs, returned by `select_architecture`, to be printed.

    Attributes
    ----------
    frame : DataFrame
        One row per candidate, in the order tried:

        - ``block_size``, ``hidden_size``, ``n_layers``, ``n_blocks``: d_s, d, L and K = d / d_s.
        - ``risk``, ``std_error``: mean loss of the held-out samples, in the unit of the loss.
        - ``difference``, ``difference_std_error``: difference of the risk from the smallest, with
          the standard error of paired differences of losses. 0 for the smallest; infinite and NaN
          if the risk is infinite.
        - ``best``, ``chosen``, ``within_one_std_error``: bool; the last is True if the difference
          is at most its standard error.
        - ``seconds_per_fit``, ``seconds_per_epoch``, ``epochs``: wall-clock seconds per fit and per
          epoch, and epochs per fit, means over folds. The last two are NaN for an estimator without
          `history_`.
        - ``n_parameters``: number of trainable parameters; <NA> without `network_`.
        - ``n_feature_types``, ``feature_types``, ``cyclical``: largest number of types of
          recurrence features of a block; their names, "R-1..4 C-1..2" for d_s = 4; and True if they
          include damped waves (types C), which require d_s of at least 2.
        - ``forward``, ``backward``: operations of Theorem 2 up to a constant, summed over layers.

        ``frame.attrs`` has "loss", "n_samples", "n_folds", "rule" and "length".
    risks : tuple of Risk
        Risks in the order of the rows; compare any two with `Risk.minus`.
    best : dict
        ``block_size``, ``hidden_size`` and ``n_layers`` with the smallest risk.
    chosen : dict
        The same for the candidate that the rule chooses.
    estimator : estimator or None
        Chosen estimator, fitted to all samples; None without `refit`.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.erm import ParaRNNRegressor, select_architecture
    >>> X = np.random.default_rng(0).normal(size=(60, 5, 1))
    >>> model = ParaRNNRegressor(hidden_size=4, max_epochs=1, random_state=0)
    >>> selection = select_architecture(X, X[:, -1, 0], estimator=model, block_sizes=[1, 2], cv=2)
    >>> selection.frame["block_size"].tolist(), len(selection.risks)
    ([1, 2], 2)
    """

    frame: pd.DataFrame
    risks: tuple[Risk, ...]
    best: dict[str, int]
    chosen: dict[str, int]
    estimator: Any = None

    def as_text(self) -> str:
        """Return the candidates and the choice as text."""
        attrs, n_folds = self.frame.attrs, self.frame.attrs["n_folds"]
        split = "a held-out part" if n_folds == 1 else f"{n_folds} folds"
        notes = [
            "best: the smallest risk; diff: the difference from it.",
            _NOTES[attrs["rule"]],
            "features: the types that a block can have at most; with d_s = 1 no damped waves, C.",
            _CAUTION.format(folds="" if n_folds == 1 else _FOLDS),
        ]
        return "\n".join(
            [
                f"Choice of {len(self.frame)} architectures by the risk on {split} "
                f"({attrs['loss']}, {attrs['n_samples']} samples)",
                _table(self.frame),
                *[wrapped(note) for note in notes],
            ]
        )


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
    r"""Choose block size, hidden size and number of layers by risk and cost.

    A block of size d_s has at most the recurrence features R-1, ..., R-d_s and
    C-1, ..., C-(d_s // 2). A larger block is richer and costs more: by Theorem 2 the time of L
    layers is of the order

    .. math::

        \sum_{l=1}^{L} \big( T d_s^2 + T d_s d_l + d^2 + T^2 d_s^3 + d\, d_s^3 \big),

    forward and backward, where layer l has :math:`d_l` inputs. Damped waves (types C) require d_s
    of at least 2; Section 3.3 argues that 2 is mostly enough. Each candidate is a clone of the
    estimator with other sizes, with its risk on the same held-out samples.

    The **best** candidate has the smallest risk :math:`\widehat{\mathcal R}_k`. The **chosen** one
    is the cheapest k with

    .. math::

        \widehat{\mathcal R}_k - \widehat{\mathcal R}_{best}
        \leq \widehat{\mathrm{se}} (\widehat{\mathcal R}_k - \widehat{\mathcal R}_{best}),

    with the standard error of paired differences of losses (`Risk.minus`). It is mostly far smaller
    than that of either risk, so that the rule is stricter than the customary one, which takes the
    standard error of the smallest risk. Cost is the sum above. Measured seconds are reported but
    do not choose, since they depend on the machine and its load.

    Parameters
    ----------
    X, z
        As in `fit` of the estimator.
    estimator : estimator, optional
        Estimator to clone, with parameters `block_size`, `hidden_size` and `n_layers`. By default
        `ParaRNNClassifier` if `sklearn.utils.multiclass.type_of_target` says that z are classes,
        that is text, booleans or whole numbers, also as floats, and else `ParaRNNRegressor`. For
        counts give a regressor.
    block_sizes : sequence of int, optional
        Values of d_s, divisors of every hidden size. By default, for each hidden size d, the powers
        of two that divide it, and d itself (the ordinary network).
    hidden_sizes, n_layers : sequence of int, optional
        Values of d and L; by default those of the estimator.
    cv : int, splitter or iterable of (train, test), default 5
        As in `cross_validated_risk`; for a single held-out part ``[(train, test)]``. Series in time
        order need `BlockedKFold` with a gap.
    loss : {"squared_error", "absolute_error", "log_loss", "zero_one"} or callable, optional
        Loss of the held-out samples. By default "log_loss" for a classifier, and else the
        estimator's own, or "squared_error".
    lags : int, default 0
        Autocovariances in standard errors, as in `empirical_risk`; above 0 for samples in time
        order.
    rule : {"one_std_error", "smallest"}, default "one_std_error"
        Rule of the choice; "smallest" chooses the best.
    random_state : int, numpy random generator or None
        Random state of all clones; by default the estimator's own.
    n_jobs : int, optional
        Number of processes of one thread each; -1 for all cores. By default this process. With more
        than one, measured seconds are those of a busy machine.
    refit : bool, default True
        Fit the chosen candidate to all samples.
    verbose : int, default 0
        1 shows a progress bar over fits.

    Returns
    -------
    ArchitectureSelection

    Raises
    ------
    TypeError, ValueError
        If a block size does not divide a hidden size, a grid is empty, repeats a number or has one
        that is no positive integer, the estimator lacks one of the three parameters, no risk is
        finite, or as in `cross_validated_risk`. Errors of a fit have a note with the candidate.

    Notes
    -----
    The smallest of several estimated risks is on average below the risk of that candidate, more so
    with more candidates: keep further samples to estimate the risk of the chosen one.
    Cross-validated standard errors are too small (see `cross_validated_risk`). With one seed,
    differences include the effect of the random start and the order of training.

    Seconds are wall-clock time of `fit`. If the estimator has `max_epochs`, a fit of one epoch
    loads libraries and kernels before.

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
    params = base.get_params(deep=False)
    grid = candidates(params, block_sizes, hidden_sizes, n_layers)
    loss = checked_loss(default_loss(base) if loss is None else loss)
    folds = checked_folds(cv, X, z, loss)
    lags = checked_held_out_lags(lags, folds)  # raise before the work of fitting
    sequences = read_sequences(X, type(base).__name__)
    length = int(sequences.lengths.max())
    n_inputs = None if params.get("input_projection", False) else sequences.inputs.n_inputs
    operations = [_operations(length, n_inputs, **sizes) for sizes in grid]
    tasks = [(clone(base), sizes, X, z, *fold, loss) for sizes in grid for fold in folds]
    done = in_workers(_fitted, tasks, n_jobs, "architectures" if verbose else None)
    fits = [done[start : start + len(folds)] for start in range(0, len(done), len(folds))]
    risks = tuple(
        pooled_risk(folds, [fit.losses for fit in of_candidate], None, loss_name(loss), lags)
        for of_candidate in fits
    )
    frame = _frame(grid, risks, fits, operations, rule)
    frame.attrs |= {
        "loss": risks[0].loss,
        "n_samples": risks[0].n,
        "n_folds": len(folds),
        "rule": rule,
        "length": length,
    }
    best, chosen = (grid[int(np.argmax(frame[name]))] for name in ("best", "chosen"))
    fitted = clone(base).set_params(**chosen).fit(X, z) if refit else None
    return ArchitectureSelection(frame, risks, dict(best), dict(chosen), fitted)


def _base(estimator: Any, z: Any, random_state: Any) -> Any:
    """Return a clone of the estimator, or of the default one, with the seed."""
    if estimator is None:
        from tsrnn.erm._classifier import ParaRNNClassifier
        from tsrnn.erm._regressor import ParaRNNRegressor

        kind = type_of_target(z)
        if kind == "unknown":
            raise ValueError(
                "estimator must be given, for z does not hold one number or label per sample, by "
                f"which the default is chosen; got {type(z).__name__}"
            )
        classes = kind in ("binary", "multiclass")
        estimator = ParaRNNClassifier() if classes else ParaRNNRegressor()
    base = clone(estimator)
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


def candidates(
    params: dict[str, Any], block_sizes: Any, hidden_sizes: Any, n_layers: Any
) -> list[dict[str, int]]:
    """Return the grid of sizes, by number of layers, then hidden size, then block size.

    `params` are the parameters of the estimator, which give defaults.
    """
    hidden = _whole_numbers("hidden_sizes", hidden_sizes, params["hidden_size"])
    layers = _whole_numbers("n_layers", n_layers, params["n_layers"])
    if block_sizes is None:  # powers of two that divide d, and d
        blocks = {
            d: sorted({*(1 << i for i in range(d.bit_length()) if d % (1 << i) == 0), d})
            for d in hidden
        }
    else:
        blocks = dict.fromkeys(hidden, _whole_numbers("block_sizes", block_sizes, None))
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
    numbers = [positive_integer(f"an entry of {name}", value) for value in values]
    if not numbers:
        raise ValueError(f"{name} must have at least one entry; got none")
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"{name} must be distinct; got {numbers}")
    return numbers


def _operations(
    length: int, n_inputs: int | None, block_size: int, hidden_size: int, n_layers: int
) -> tuple[int, int]:
    """Return the operations of Theorem 2, forward and backward, summed over layers.

    `n_inputs` is None for projected inputs, d in number.
    """
    first = hidden_size if n_inputs is None else n_inputs
    layers = [
        layer_complexity(length, d_in, hidden_size, block_size)
        for d_in in (first, *[hidden_size] * (n_layers - 1))
    ]
    return sum(layer.forward for layer in layers), sum(layer.backward for layer in layers)


class _Fit(NamedTuple):
    """Losses of held-out samples, and costs, of a fit."""

    losses: np.ndarray
    seconds: float
    epochs: float
    n_parameters: int | None


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
            # Load libraries and kernels outside of the measured time.
            clone(estimator).set_params(max_epochs=1).fit(X_train, z_train)
        start = time.perf_counter()
        estimator.fit(X_train, z_train)
        seconds = time.perf_counter() - start
        losses = sample_losses(estimator, take(X, test), take(z, test), loss)
    except Exception as error:
        candidate = ", ".join(f"{name}={value}" for name, value in sizes.items())
        error.add_note(f"raised by the candidate {candidate}")
        raise
    epochs = len(estimator.history_) if hasattr(estimator, "history_") else np.nan
    n_parameters = None
    if hasattr(estimator, "network_"):
        parameters = estimator.network_.parameters()
        n_parameters = sum(p.numel() for p in parameters if p.requires_grad)
    return _Fit(losses, seconds, float(epochs), n_parameters)


def _frame(
    grid: list[dict[str, int]],
    risks: Sequence[Risk],
    fits: Sequence[Sequence[_Fit]],
    operations: Sequence[tuple[int, int]],
    rule: str,
) -> pd.DataFrame:
    """Return the table of candidates, with marks for the best and the chosen one."""
    if not any(math.isfinite(risk.value) for risk in risks):
        raise ValueError(
            "no candidate has a finite risk: each gives some label probability 0, or predicts "
            "infinity. Take another loss, or more samples"
        )
    costs = [forward + backward for forward, backward in operations]
    best = min(range(len(grid)), key=lambda i: (risks[i].value, costs[i]))
    differences, errors = np.zeros(len(grid)), np.zeros(len(grid))
    for i, risk in enumerate(risks):
        if not np.isfinite(risk.losses).all():
            differences[i], errors[i] = np.inf, np.nan
        elif i != best:
            difference = risk.minus(risks[best])
            differences[i], errors[i] = difference.value, difference.std_error
    # An unknown standard error, of one sample or an infinite risk, counts as 0.
    near = differences <= np.nan_to_num(errors, nan=0.0)
    chosen = best
    if rule == "one_std_error":
        chosen = min(np.flatnonzero(near).tolist(), key=lambda i: (costs[i], differences[i]))
    rows = []
    for i, sizes in enumerate(grid):
        block_size = sizes["block_size"]
        seconds, epochs = (np.array([getattr(f, k) for f in fits[i]]) for k in _Fit._fields[1:3])
        rows.append(
            sizes
            | {
                "n_blocks": sizes["hidden_size"] // block_size,
                "risk": risks[i].value,
                "std_error": risks[i].std_error,
                "difference": differences[i],
                "difference_std_error": errors[i],
                "best": i == best,
                "chosen": i == chosen,
                "within_one_std_error": bool(near[i]),
                "seconds_per_fit": float(seconds.mean()),
                "seconds_per_epoch": float(seconds.sum() / epochs.sum()),
                "epochs": float(epochs.mean()),
                "n_parameters": fits[i][0].n_parameters,
                "n_feature_types": block_size + block_size // 2,
                "feature_types": _feature_types(block_size),
                "cyclical": block_size > 1,
                "forward": operations[i][0],
                "backward": operations[i][1],
            }
        )
    return pd.DataFrame(rows).astype({"n_parameters": "Int64"})


def _feature_types(block_size: int) -> str:
    """Return the types of recurrence features that a block can have, Section 3.3."""
    return " ".join(
        f"{kind}-1" + (f"..{most}" if most > 1 else "")
        for kind, most in (("R", block_size), ("C", block_size // 2))
        if most
    )


def _table(frame: pd.DataFrame) -> str:
    seconds = "seconds_per_epoch" if frame["seconds_per_epoch"].notna().any() else "seconds_per_fit"
    hidden = {"seconds_per_epoch", "seconds_per_fit"} - {seconds}
    if frame["n_parameters"].isna().all():
        hidden.add("n_parameters")
    names = [name for name in _HEADINGS if name not in hidden]
    marks = [
        " ".join(word for word in ("best", "chosen") if row[word]) for _, row in frame.iterrows()
    ]
    shown = frame[names].rename(columns=_HEADINGS)
    shown.insert(len(names), "", marks)
    return str(shown.to_string(index=False, na_rep="-", float_format=lambda value: f"{value:.3g}"))
