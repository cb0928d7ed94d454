"""Summary page of a fitted estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from tsrnn.contract import Summary
from tsrnn.interpret import WIDTH, feature_section, reading_of, section, two_columns, wrapped
from tsrnn.kernels import Cell

if TYPE_CHECKING:
    from tsrnn.erm._function import Course, FittedFunction

_TRAINING = (
    "The training risk is that of the samples the network was fitted to, and tends to be below the "
    "risk on new ones. Standard errors take samples as independent."
)
_VALIDATION = (
    "The validation risk chose the epoch, and tends to be a little below the risk on new samples."
)
_UNTESTED = "No samples were held out: nothing here estimates the risk on new samples."
_PARTIAL = "The last step was a partial fit; the training risk is of the samples given to it."


@dataclass(frozen=True, eq=False, repr=False)
class SequenceSummary(Summary):
    """Summary page of a fitted estimator, to be printed.

    Attributes
    ----------
    title : str
    composition : str
        Source of the predictions, and its comparison with a constant.
    facts : dict
        Model, samples and training.
    risk : DataFrame
        Risk of the training and the validation part.
    features : DataFrame or None
        Recurrence features, see `tsrnn.recurrence_features`; None if the network contributes
        nothing, or its cell has no recurrent matrices.
    notes : list of str
    """

    title: str
    composition: str
    facts: dict[str, object]
    risk: pd.DataFrame
    features: pd.DataFrame | None
    notes: list[str]

    def as_text(self) -> str:
        """Return the page as text."""
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


def summarise(function: FittedFunction, features: pd.DataFrame | None) -> SequenceSummary:
    """Return the summary of a fitted function; `features` are its recurrence features, if any."""
    network, course, arguments = function.network, function.course, function.arguments
    history = course.history
    rate = history[-1]["learning_rate"] if history else arguments.learning_rate
    cell = arguments.cell
    facts: dict[str, object] = {
        "Samples": course.n_train + course.n_validation,
        "Inputs per step": function.inputs.n_inputs,
        "Outputs": network.output.out_features,
        "Targets": "per step" if arguments.many_to_many else "per sample",
        "Cell": cell.name if isinstance(cell, Cell) else cell,
        "Block size": getattr(network.rnn, "block_size", "-"),
        "Layers x hidden": f"{network.rnn.num_layers} x {network.hidden_size}",
        "Aggregation": network.aggregation,
        "Parameters": sum(p.numel() for p in network.parameters()),
        "Bound": "none" if arguments.bound is None else f"{arguments.bound:g}",
        "Best epoch": f"{course.best_epoch} of {len(history)}" if history else "partial fits",
        "Last learning rate": f"{rate:.1e}",
    }
    rows = {
        name: {"samples": risk.n, "risk": risk.value, "std err": risk.std_error}
        for name, risk in function.risks.items()
    }
    risk = pd.DataFrame.from_dict(rows, orient="index").astype({"samples": int})
    risk.attrs["loss"] = function.risks["training"].loss
    scaler = function.targets.scaler
    notes = [_TRAINING, _VALIDATION if "validation" in function.risks else _UNTESTED]
    if not history:
        notes.append(_PARTIAL)
    if scaler is not None and (scaler.var_ == 0).any():
        notes.append("A target is constant over the samples that train: there is nothing to learn.")
    if history and len(history) >= arguments.max_epochs:
        notes.append("Training stopped at max_epochs, not because it had converged.")
    if features is not None:
        notes.append(reading_of(features))
    title = f"{function.model} Results"
    return SequenceSummary(title, _composition(course), facts, risk, features, notes)


def _composition(course: Course) -> str:
    """Return a sentence on the source of predictions and its comparison with a constant."""
    skill, history = course.validation_skill, course.history
    if history and course.best_epoch == 0:
        return (
            "Predictions: the network at its random start. Nothing was learned: none of "
            f"{len(history)} epochs was better (best epoch 0)."
        )
    if skill is None:
        return "Predictions: the network. Nothing here compares it with a constant."
    beside = f"{abs(skill):.1%} {'below' if skill > 0 else 'above'} that of the best constant"
    verdict = "" if skill > 0 else ": the network contributes nothing"
    return f"Predictions: the network. On the held-out samples its risk is {beside}{verdict}."


def reason_of_inactivity(function: FittedFunction) -> str | None:
    """Return why the network should not be interpreted, with advice; None if it may be."""
    course = function.course
    skill, history = course.validation_skill, course.history
    name = f"the network of this {function.model}"
    advice = (
        "More samples, another learning_rate or hidden_size may change that; with few held-out "
        "samples, so may a larger validation_fraction or another random_state"
    )
    if history and course.best_epoch == 0:
        return (
            f"{name} has learned nothing: none of its {len(history)} epochs was better than the "
            "random start (best epoch 0), which predicts, and its recurrent matrices are random "
            f"start values. {advice}"
        )
    if skill is not None and skill <= 0:
        return (
            f"{name} predicts the held-out samples no better than a constant "
            f"(validation_skill_ {skill:.3f}), so that its recurrent matrices describe nothing "
            f"found to predict. {advice}"
        )
    return None
