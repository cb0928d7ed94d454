"""A fitted estimator on one page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from tsrnn.interpret import (
    WIDTH,
    feature_section,
    reading_of,
    recurrence_features,
    section,
    two_columns,
    wrapped,
)
from tsrnn.kernels import Cell

if TYPE_CHECKING:
    from tsrnn.erm._base import SequenceEstimator
    from tsrnn.erm._risk import Risk

_TRAINING = (
    "The training risk is that of the samples the network was fitted to, and tends to be below the "
    "risk on new ones. Standard errors take samples as independent."
)
_VALIDATION = (
    "The validation risk chose the epoch, and tends to be a little below the risk on new samples."
)
_UNTESTED = "No samples were held out: nothing here estimates the risk on new samples."
_PARTIAL = "The last step was a partial fit; the training risk is of the samples given to it."


@dataclass(frozen=True)
class Summary:
    """Text and tables of a fitted estimator; print it.

    Attributes
    ----------
    title : str
    composition : str
        What predicts, and how it compares with a constant.
    facts : dict
        What was fitted, to what, how.
    risk : DataFrame
        Risk of the training and the validation part.
    features : DataFrame or None
        Recurrence features, see `tsrnn.recurrence_features`; None where the network contributes
        nothing or its cell has no recurrent matrices.
    notes : list of str
    """

    title: str
    composition: str
    facts: dict[str, object]
    risk: pd.DataFrame
    features: pd.DataFrame | None
    notes: list[str]

    def __str__(self) -> str:
        parts = [
            self.title.center(WIDTH).rstrip(),
            "=" * WIDTH,
            wrapped(self.composition, indent=0),
            "-" * WIDTH,
            two_columns(self.facts),
            section(f"Risk ({self.risk.attrs['loss']}, mean over samples)"),
            self.risk.to_string(float_format=lambda value: f"{value:.4g}", na_rep="-"),
            *feature_section(self.features),
            "=" * WIDTH,
            *[wrapped(f"[{i}] {note}") for i, note in enumerate(self.notes, 1)],
        ]
        return "\n".join(parts)

    __repr__ = __str__


def summarise(estimator: SequenceEstimator) -> Summary:
    """Build the summary of a fitted estimator."""
    network, history = estimator.network_, estimator.history_
    arguments = estimator.arguments_
    rate = history[-1]["learning_rate"] if history else arguments.learning_rate
    cell = arguments.cell
    facts: dict[str, object] = {
        "Samples": estimator.n_train_ + estimator.n_validation_,
        "Inputs a step": estimator.sample_.shape[2],
        "Outputs": network.output.out_features,
        "Targets": "a step" if arguments.many_to_many else "a sample",
        "Cell": cell.name if isinstance(cell, Cell) else cell,
        "Block size": getattr(network.rnn, "block_size", "-"),
        "Layers x hidden": f"{network.rnn.num_layers} x {network.hidden_size}",
        "Aggregation": network.aggregation,
        "Parameters": sum(p.numel() for p in network.parameters()),
        "Bound": "none" if arguments.bound is None else f"{arguments.bound:g}",
        "Best epoch": f"{estimator.best_epoch_} of {len(history)}" if history else "partial fits",
        "Last learning rate": f"{rate:.1e}",
    }
    readable = estimator.network_active_ and network.matrix_names
    features = recurrence_features(estimator) if readable else None
    title = f"{type(estimator).__name__} Results"
    risk = _risk_table(estimator.training_risk_, estimator.validation_risk_)
    return Summary(
        title, _composition(estimator), facts, risk, features, _notes(estimator, features)
    )


def _composition(estimator: SequenceEstimator) -> str:
    """What predicts, in a sentence, beside the best constant."""
    skill, history = estimator.validation_skill_, estimator.history_
    if history and estimator.best_epoch_ == 0:
        return (
            "Predictions: the network at its random start. Nothing was learned: none of "
            f"{len(history)} epochs was better (best epoch 0)."
        )
    if skill is None:
        return "Predictions: the network. Nothing here compares it with a constant."
    beside = f"{abs(skill):.1%} {'below' if skill > 0 else 'above'} that of the best constant"
    verdict = "" if skill > 0 else ": the network contributes nothing"
    return f"Predictions: the network. On the held-out samples its risk is {beside}{verdict}."


def reason_of_inactivity(estimator: SequenceEstimator) -> str | None:
    """Why the network is not to be read, and what to do; None where it is."""
    skill, history = estimator.validation_skill_, estimator.history_
    which = f"the network of this {type(estimator).__name__}"
    advice = (
        "More samples, another learning_rate or hidden_size may change that; with few held-out "
        "samples, so may a larger validation_fraction or another random_state"
    )
    if history and estimator.best_epoch_ == 0:
        return (
            f"{which} has learned nothing: none of its {len(history)} epochs was better than the "
            "random start (best epoch 0), which predicts, and its recurrent matrices are random "
            f"start values. {advice}"
        )
    if skill is not None and skill <= 0:
        return (
            f"{which} predicts the held-out samples no better than a constant "
            f"(validation_skill_ {skill:.3f}), so that its recurrent matrices describe nothing "
            f"found to predict. {advice}"
        )
    return None


def _risk_table(training: Risk, validation: Risk | None) -> pd.DataFrame:
    parts = {"training": training} | ({} if validation is None else {"validation": validation})
    table = pd.DataFrame(
        {
            "samples": [risk.n for risk in parts.values()],
            "risk": [risk.value for risk in parts.values()],
            "std err": [risk.std_error for risk in parts.values()],
        },
        index=list(parts),
    )
    table.attrs["loss"] = training.loss
    return table


def _notes(estimator: SequenceEstimator, features: pd.DataFrame | None) -> list[str]:
    validated = estimator.validation_risk_ is not None
    notes = [_TRAINING, _VALIDATION if validated else _UNTESTED]
    history = estimator.history_
    if not history:
        notes.append(_PARTIAL)
    if estimator.target_scaler_ is not None and (estimator.target_scaler_.var_ == 0).any():
        notes.append("A target is constant over the samples that train: there is nothing to learn.")
    if history and len(history) >= estimator.arguments_.max_epochs:
        notes.append("Training stopped at max_epochs, not because it had converged.")
    return notes if features is None else [*notes, reading_of(features)]
