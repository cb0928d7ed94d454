"""Summary of a fitted recurrent forecaster on one page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tsrnn.contract import Summary
from tsrnn.interpret import (
    WIDTH,
    feature_section,
    reading_of,
    section,
    two_columns,
    wrapped,
)
from tsrnn.kernels import Cell

if TYPE_CHECKING:
    from tsrnn.forecasters._fitted import FittedNetworks
    from tsrnn.forecasters._settings import Settings
    from tsrnn.forecasters._state import RecurrentState

UNBOUNDED = ("relu", "identity")


@dataclass(frozen=True, eq=False, repr=False)
class NetworkSummary(Summary):
    """Text and tables of a fitted forecaster; print it.

    Attributes
    ----------
    composition : str
        Parts of the forecasts, and the accuracy that the network adds.
    facts : dict
        Data, network and training, by name.
    accuracy : DataFrame
        Root mean squared error by step on the validation part.
    features : DataFrame or None
        Recurrence features, see `tsrnn.recurrence_features`; None where the network contributes
        nothing or its cell has no recurrent matrices.
    notes : list of str
    """

    title: str
    composition: str
    facts: dict[str, object]
    accuracy: pd.DataFrame
    features: pd.DataFrame | None
    notes: list[str]

    def as_text(self) -> str:
        """Page as it is printed."""
        n = len(self.accuracy)
        steps = sorted({1, *np.linspace(1, n, 5).round().astype(int).tolist(), n})
        shown = self.accuracy.loc[steps]
        shown.loc["mean"] = self.accuracy.mean()
        shown.index = shown.index.rename("step")
        parts = [
            self.title.center(WIDTH).rstrip(),
            "=" * WIDTH,
            wrapped(self.composition, indent=0),
            "-" * WIDTH,
            two_columns(self.facts),
            section("Root mean squared error on the validation part (naive error = 1)"),
            shown.reset_index().to_string(index=False, float_format=lambda v: f"{v:.3f}"),
            *feature_section(self.features),
            "=" * WIDTH,
            *[wrapped(f"[{i}] {note}") for i, note in enumerate(self.notes, 1)],
        ]
        return "\n".join(parts)


def summarise(
    fitted: FittedNetworks, state: RecurrentState, features: pd.DataFrame | None
) -> NetworkSummary:
    """Build the summary of fitted networks, with their recurrence features if they have any."""
    settings, data, linear = fitted.settings, fitted.data, fitted.linear_path
    history = fitted.history
    facts: dict[str, object] = {
        "Series": len(state.ids),
        "Rows": int(state.n_rows.sum()),
        "Targets": data.n_targets,
        "Exogenous": len(data.exog_names),
        "Frequency": data.freq,
        "Horizon": settings.horizon,
        "Input size": settings.input_size,
        "Validation rows": settings.val_size,
        "Layers x hidden": f"{settings.n_layers} x {settings.hidden_size}",
    }
    if settings.layer != "ParaRNN":
        facts["Layer"] = settings.layer
    for name, value in settings.options.items():
        label = name.replace("_", " ").capitalize()
        facts[label] = value.name if isinstance(value, Cell) else value
    facts["Aggregation"] = settings.aggregation
    facts["Parameters"] = sum(p.numel() for p in fitted.model.parameters())
    facts["Ridge towards"] = linear["prior"] if linear else "no linear path"
    if linear.get("varying"):
        facts["Varying with lags"] = ", ".join(map(str, fitted.model.seasons))
    if linear.get("reverting"):
        facts["Reverts to mean"] = "yes"
    if settings.boxcox is not None:
        facts["Box-Cox"] = f"{settings.boxcox:g}" if settings.boxcox else "log"
    if settings.n_estimators > 1:
        facts["Networks"] = settings.n_estimators
    longest = max((int(entry["epoch"]) for entry in history), default=0)
    refit = ", refit" if settings.refit else ""
    facts["Best epoch"] = f"{max(fitted.best_epochs)} of {longest}{refit}"
    rate = history[-1]["learning_rate"] if history else float("nan")
    facts["Last learning rate"] = f"{rate:.1e}"
    notes = [fitted.guarantee]
    if features is not None:
        notes.append(reading_of(features))
        explosive = int((features["modulus"] > 1).sum())
        if explosive and settings.options.get("nonlinearity") in UNBOUNDED:
            notes.append(f"{explosive} features have a modulus above 1: the state can explode.")
    if longest >= settings.max_epochs:
        notes.append("Training stopped at max_epochs, not because it had converged.")
    title, accuracy = f"{fitted.arguments.class_name} Results", fitted.validation.copy()
    return NetworkSummary(title, composition(fitted), facts, accuracy, features, notes)


def composition(fitted: FittedNetworks) -> str:
    """Sentence on the parts of the forecasts, and the validation error with and without networks.

    The error without is that of the local level and the linear path as they were estimated in
    closed form, before any network was trained.
    """
    parts, size = _parts_but_network(fitted.settings), fitted.settings.n_estimators
    inactive = [str(number) for number, best in enumerate(fitted.best_epochs, 1) if best == 0]
    networks = "the network" if size == 1 else f"the mean of {size} networks"
    if not any(fitted.best_epochs):
        epochs = _epochs(fitted, 1) if size == 1 else "their"
        if not parts:
            return (
                f"Forecasts: {networks}, at the random start: none of {epochs} epochs was better."
            )
        return (
            f"Forecasts: {' and '.join(parts)} alone. {networks.capitalize()} contributes nothing: "
            f"none of {epochs} epochs was better on the validation part (best epoch 0)."
        )
    text = f"Forecasts: {', '.join(parts)} and {networks}." if parts else f"Forecasts: {networks}."
    if inactive:
        text += f" Of these {len(inactive)} contribute nothing: {', '.join(inactive)}."
    rmse = fitted.validation
    if not parts:
        return text
    before = rmse["linear path" if "linear path" in rmse else "level"]
    mean, start = rmse["model"].mean(), before.mean()
    better = int((rmse["model"] < before).sum())
    return (
        f"{text} On the validation part, which chose the epoch, the root mean squared error is "
        f"{mean:.3f} with and {start:.3f} without {'it' if size == 1 else 'them'} "
        f"({mean / start - 1:+.1%}); lower at {better} of {len(rmse)} steps."
    )


def reason_of_inactivity(fitted: FittedNetworks, number: int) -> str:
    """Reason why a network contributes nothing, with what forecasts in its place, and advice."""
    settings, name = fitted.settings, fitted.arguments.class_name
    network = "the network" if settings.n_estimators == 1 else f"network {number}"
    parts = _parts_but_network(settings)
    if any(fitted.best_epochs):
        instead = "it adds nothing to the others"
    elif parts:
        instead = f"{' and '.join(parts)} alone forecast"
    else:
        instead = "an untrained network forecasts"
    advice = (
        " linear_path=False leaves all beyond the local level to the network, to be read rather "
        "than for the best forecast."
    )
    return (
        f"{network} of this {name} has learned nothing: none of its {_epochs(fitted, number)} "
        "epochs was better on the validation part than the start (best epoch 0), so "
        f"{instead}, and "
        "its recurrent matrices are random start values. More rows or series, or a smaller "
        f"learning_rate, may change that.{advice if settings.linear_path else ''} summary() has "
        "the validation errors with and without it"
    )


def _parts_but_network(settings: Settings) -> list[str]:
    """Names of the parts of the forecasts beside the network."""
    named = {"the local level": settings.local_level, "the linear path": settings.linear_path}
    return [part for part, there in named.items() if there]


def _epochs(fitted: FittedNetworks, number: int) -> int:
    """Count the epochs for which a network was trained."""
    return sum(entry.get("network", 1) == number for entry in fitted.history)
