"""What a choice of d_s, d and L has found, and the rules by which it is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.erm._risk import Risk
from tsrnn.interpret import wrapped

__all__ = ["RULES", "SIZES", "ArchitectureSelection", "simplest", "smallest", "within_one_error"]

SIZES = ("block_size", "hidden_size", "n_layers")
RULES = ("one_std_error", "smallest")

_NOTES = {
    "one_std_error": "chosen: the cheapest, by the operations of Theorem 2, of those whose risk is "
    "within one standard error of the difference from the smallest.",
    "smallest": "chosen: the smallest risk.",
}
_HONEST = (
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
class ArchitectureSelection:
    """Candidates with their risks and costs, made by `select_architecture`; print it.

    Attributes
    ----------
    frame : DataFrame
        A row a candidate, in the order tried:

        - ``block_size``, ``hidden_size``, ``n_layers``, ``n_blocks``: d_s, d, L and K = d / d_s.
        - ``risk``, ``std_error``: mean loss of the held-out samples, in the unit of the loss.
        - ``difference``, ``difference_std_error``: of the risk from the smallest one, with the
          standard error of the differences of losses of the same sample. 0 for the smallest;
          infinite and NaN where the risk is infinite.
        - ``best``, ``chosen``, ``within_one_std_error``: bool; the last, whether the difference is
          at most its standard error.
        - ``seconds_per_fit``, ``seconds_per_epoch``, ``epochs``: wall-clock seconds of a fit, a
          mean over folds; the same over the epochs trained; epochs of a fit, a mean. The last two
          are NaN for an estimator without `history_`.
        - ``n_parameters``: trainable numbers; <NA> for an estimator without `network_`.
        - ``n_feature_types``, ``feature_types``, ``cyclical``: how many types of recurrence
          features a block can have at most, which they are, "R-1..4 C-1..2" for d_s = 4, and
          whether there are damped waves (types C) among them, which takes d_s of at least 2.
        - ``forward``, ``backward``: operations of Theorem 2 up to a constant, a sum over layers.

        ``frame.attrs`` has "loss", "n_samples", "n_folds", "rule" and "length".
    risks : tuple of Risk
        In the order of the rows, for comparisons of any two with `Risk.minus`.
    best : dict
        ``block_size``, ``hidden_size`` and ``n_layers`` of the smallest risk.
    chosen : dict
        The same, of the candidate that the rule chooses.
    estimator : estimator or None
        The chosen one, fitted to all samples; None without `refit`.

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

    def __str__(self) -> str:
        attrs, n_folds = self.frame.attrs, self.frame.attrs["n_folds"]
        split = "a held-out part" if n_folds == 1 else f"{n_folds} folds"
        notes = [
            "best: the smallest risk; diff: the difference from it.",
            _NOTES[attrs["rule"]],
            "features: the types that a block can have at most; with d_s = 1 no damped waves, C.",
            _HONEST.format(folds="" if n_folds == 1 else _FOLDS),
        ]
        return "\n".join(
            [
                f"Choice of {len(self.frame)} architectures by the risk on {split} "
                f"({attrs['loss']}, {attrs['n_samples']} samples)",
                _table(self.frame),
                *[wrapped(note) for note in notes],
            ]
        )

    __repr__ = __str__


def smallest(risks: Sequence[float], costs: Sequence[float]) -> int:
    """Position of the smallest risk; of equal ones the cheapest, then the first.

    Raises
    ------
    ValueError
        If no risk is finite.
    """
    if not np.isfinite(risks).any():
        raise ValueError(
            "no candidate has a finite risk: each gives some label probability 0, or predicts "
            "infinity. Take another loss, or more samples"
        )
    return min(range(len(risks)), key=lambda i: (risks[i], costs[i]))


def simplest(
    differences: Sequence[float], std_errors: Sequence[float], costs: Sequence[float]
) -> int:
    """Position of the cheapest candidate that is within one standard error of the best.

    Parameters
    ----------
    differences, std_errors : sequence of float
        Of the risk from the smallest, 0 and 0 for that one; an unknown standard error, NaN, is
        taken as 0.
    costs : sequence of float
        Of equal ones the smaller difference is taken, then the first.
    """
    near = within_one_error(differences, std_errors)
    return min(
        (i for i in range(len(differences)) if near[i]), key=lambda i: (costs[i], differences[i])
    )


def within_one_error(differences: Sequence[float], std_errors: Sequence[float]) -> np.ndarray:
    """Whether differences are at most their standard error, of which NaN counts as 0."""
    return np.asarray(differences) <= np.nan_to_num(std_errors, nan=0.0)


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
