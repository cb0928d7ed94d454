"""A fitted recurrent forecaster on one page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tsrnn.interpret import recurrence_features
from tsrnn.interpret._page import (
    WIDTH,
    feature_section,
    reading_of,
    section,
    two_columns,
    wrapped,
)
from tsrnn.kernels import Cell

if TYPE_CHECKING:
    from tsrnn.forecasters._recurrent import RecurrentForecaster
    from tsrnn.forecasters._settings import Settings

UNBOUNDED = ("relu", "identity")

_GUARANTEES = {
    "conformal": (
        "Intervals: split conformal, per step, from the forecast errors of the validation part "
        "scaled by the local spread. They cover with the stated probability if these errors and "
        "future ones are exchangeable; for a time series that is an approximation."
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


@dataclass(frozen=True)
class Summary:
    """Text and tables of a fitted forecaster; print it.

    Attributes
    ----------
    facts : dict
        What was fitted, to what, how.
    accuracy : DataFrame
        Root mean squared error by step on the validation part.
    features : DataFrame or None
        Recurrence features, see `tsrnn.recurrence_features`; None where the network's
        cell has no recurrent matrices.
    notes : list of str
    """

    title: str
    facts: dict[str, object]
    accuracy: pd.DataFrame
    features: pd.DataFrame | None
    notes: list[str]

    def __str__(self) -> str:
        parts = [
            self.title.center(WIDTH).rstrip(),
            "=" * WIDTH,
            two_columns(self.facts),
            section("Root mean squared error on the validation part (naive error = 1)"),
            _accuracy_lines(self.accuracy),
            *feature_section(self.features),
            "=" * WIDTH,
            *[wrapped(f"[{i}] {note}") for i, note in enumerate(self.notes, 1)],
        ]
        return "\n".join(parts)

    __repr__ = __str__


def summarise(forecaster: RecurrentForecaster) -> Summary:
    """Build the summary of a fitted forecaster."""
    settings, memory = forecaster.settings_, forecaster.memory_
    model = forecaster.model_
    rate = forecaster.history_[-1]["learning_rate"] if forecaster.history_ else float("nan")
    linear = forecaster.linear_path_
    facts: dict[str, object] = {
        "Series": len(memory.ids),
        "Rows": int(memory.n_rows.sum()),
        "Targets": len(forecaster._panel_shape[0].target_names),
        "Exogenous": len(forecaster._panel_shape[1]),
        "Frequency": forecaster.freq_,
        "Horizon": settings.horizon,
        "Input size": settings.input_size,
        "Validation rows": settings.val_size,
        "Layers x hidden": f"{settings.n_layers} x {settings.hidden_size}",
        **_kind(settings),
        "Aggregation": settings.aggregation,
        "Parameters": sum(p.numel() for p in model.parameters()),
        "Ridge towards": linear["prior"] if linear else "no linear path",
        **_changes(forecaster),
        **_ensemble(forecaster),
        "Last learning rate": f"{rate:.1e}",
    }
    features = recurrence_features(forecaster) if model.network.matrix_names else None
    notes = [_GUARANTEES[settings.intervals], *_feature_notes(forecaster, features)]
    title = f"{type(forecaster).__name__} Results"
    return Summary(title, facts, forecaster.validation_, features, notes)


def _changes(forecaster: RecurrentForecaster) -> dict[str, object]:
    """What is done to the series, and to the coefficients of the linear path, if anything."""
    facts: dict[str, object] = {}
    if forecaster.linear_path_.get("varying"):
        facts["Varying with lags"] = ", ".join(map(str, forecaster.model_.seasons))
    if forecaster.linear_path_.get("reverting"):
        facts["Reverts to mean"] = "yes"
    if (exponent := forecaster.settings_.boxcox) is not None:
        facts["Box-Cox"] = f"{exponent:g}" if exponent else "log"
    return facts


def _ensemble(forecaster: RecurrentForecaster) -> dict[str, object]:
    """Epochs, and how many networks there are."""
    settings, history = forecaster.settings_, forecaster.history_
    facts: dict[str, object] = (
        {} if settings.n_estimators == 1 else {"Networks": settings.n_estimators}
    )
    longest = max(int(entry["epoch"]) for entry in history) if history else 0
    refit = ", refit" if settings.refit else ""
    return facts | {"Best epoch": f"{forecaster.best_epoch_} of {longest}{refit}"}


def _kind(settings: Settings) -> dict[str, object]:
    """What the layers are."""
    shown: dict[str, object] = {} if settings.layer == "ParaRNN" else {"Layer": settings.layer}
    for name, value in settings.options.items():
        label = name.replace("_", " ").capitalize()
        shown[label] = value.name if isinstance(value, Cell) else value
    return shown


def _feature_notes(forecaster: RecurrentForecaster, features: pd.DataFrame | None) -> list[str]:
    notes = [] if features is None else [reading_of(features)]
    if features is not None and forecaster.settings_.options.get("nonlinearity") in UNBOUNDED:
        explosive = int((features["modulus"] > 1).sum())
        if explosive:
            notes.append(f"{explosive} features have a modulus above 1: the state can explode.")
    if forecaster.best_epoch_ == 0 and forecaster.settings_.linear_path:
        notes.append(
            "Training did not improve on the linear path: the network contributes nothing."
        )
    epochs = [entry["epoch"] for entry in forecaster.history_]
    if epochs and max(epochs) >= forecaster.settings_.max_epochs:
        notes.append("Training stopped at max_epochs, not because it had converged.")
    return notes


def _accuracy_lines(table: pd.DataFrame) -> str:
    n = len(table)
    steps = sorted({1, *np.linspace(1, n, 5).round().astype(int).tolist(), n})
    shown = table.loc[steps]
    shown.loc["mean"] = table.mean()
    shown.index = shown.index.rename("step")
    return shown.reset_index().to_string(index=False, float_format=lambda v: f"{v:.3f}")
