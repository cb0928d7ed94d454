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
    recurrence_features,
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
        "future ones are exchangeable; for a time series that is an approximation. {errors}"
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


@dataclass(frozen=True, repr=False)
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
        parts = [
            self.title.center(WIDTH).rstrip(),
            "=" * WIDTH,
            wrapped(self.composition, indent=0),
            "-" * WIDTH,
            two_columns(self.facts),
            section("Root mean squared error on the validation part (naive error = 1)"),
            _accuracy_lines(self.accuracy),
            *feature_section(self.features),
            "=" * WIDTH,
            *[wrapped(f"[{i}] {note}") for i, note in enumerate(self.notes, 1)],
        ]
        return "\n".join(parts)


def summarise(forecaster: RecurrentForecaster) -> NetworkSummary:
    """Build the summary of a fitted forecaster."""
    settings, memory, model = forecaster.settings_, forecaster.state_, forecaster.model_
    history, linear = forecaster.history_, forecaster.linear_path_
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
    }
    if settings.layer != "ParaRNN":
        facts["Layer"] = settings.layer
    for name, value in settings.options.items():
        label = name.replace("_", " ").capitalize()
        facts[label] = value.name if isinstance(value, Cell) else value
    facts["Aggregation"] = settings.aggregation
    facts["Parameters"] = sum(p.numel() for p in model.parameters())
    facts["Ridge towards"] = linear["prior"] if linear else "no linear path"
    if linear.get("varying"):
        facts["Varying with lags"] = ", ".join(map(str, model.seasons))
    if linear.get("reverting"):
        facts["Reverts to mean"] = "yes"
    if settings.boxcox is not None:
        facts["Box-Cox"] = f"{settings.boxcox:g}" if settings.boxcox else "log"
    if settings.n_estimators > 1:
        facts["Networks"] = settings.n_estimators
    longest = max((int(entry["epoch"]) for entry in history), default=0)
    refit = ", refit" if settings.refit else ""
    facts["Best epoch"] = f"{forecaster.best_epoch_} of {longest}{refit}"
    rate = history[-1]["learning_rate"] if history else float("nan")
    facts["Last learning rate"] = f"{rate:.1e}"
    readable = forecaster.network_active_ and model.network.matrix_names
    features = recurrence_features(forecaster) if readable else None
    notes = [guarantee(forecaster)]
    if features is not None:
        notes.append(reading_of(features))
        explosive = int((features["modulus"] > 1).sum())
        if explosive and settings.options.get("nonlinearity") in UNBOUNDED:
            notes.append(f"{explosive} features have a modulus above 1: the state can explode.")
    if longest >= settings.max_epochs:
        notes.append("Training stopped at max_epochs, not because it had converged.")
    title = f"{type(forecaster).__name__} Results"
    return NetworkSummary(
        title, composition(forecaster), facts, forecaster.validation_, features, notes
    )


def composition(forecaster: RecurrentForecaster) -> str:
    """Sentence on the parts of the forecasts, and the validation error with and without networks.

    The error without is that of the local level and the linear path as they were estimated in
    closed form, before any network was trained.
    """
    parts, inactive = _parts_but_network(forecaster.settings_), forecaster.inactive_networks_
    size = forecaster.settings_.n_estimators
    networks = "the network" if size == 1 else f"the mean of {size} networks"
    if not forecaster.network_active_:
        epochs = _epochs(forecaster, 1) if size == 1 else "their"
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
        text += f" Of these {len(inactive)} contribute nothing: {', '.join(map(str, inactive))}."
    rmse = forecaster.validation_
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


def guarantee(forecaster: RecurrentForecaster) -> str:
    """Guarantee of the intervals; of conformal ones, with the largest levels."""
    counts = np.isfinite(forecaster.calibration_.errors).sum(1)
    fewest = counts[counts.any((1, 2))].min((0, 2))  # a series without errors takes those of all
    first, last = int(fewest[0]), int(fewest[-1])
    errors = (
        f"With {first} errors of the first step and {last} of the last, levels of up to "
        f"{100 * first / (first + 1):.3g} and {100 * last / (last + 1):.3g} percent can be "
        "guaranteed, n / (n + 1) of n errors."
    )
    return _GUARANTEES[forecaster.settings_.intervals].format(errors=errors)


def reason_of_inactivity(forecaster: RecurrentForecaster, number: int) -> str:
    """Reason why a network contributes nothing, with what forecasts in its place, and advice."""
    settings, name = forecaster.settings_, type(forecaster).__name__
    network = "the network" if settings.n_estimators == 1 else f"network {number}"
    parts = _parts_but_network(settings)
    if forecaster.network_active_:
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
        f"{network} of this {name} has learned nothing: none of its {_epochs(forecaster, number)} "
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


def _epochs(forecaster: RecurrentForecaster, number: int) -> int:
    """Count the epochs for which a network was trained."""
    return sum(entry.get("network", 1) == number for entry in forecaster.history_)


def _accuracy_lines(table: pd.DataFrame) -> str:
    """Table of the errors of five steps and of their mean."""
    n = len(table)
    steps = sorted({1, *np.linspace(1, n, 5).round().astype(int).tolist(), n})
    shown = table.loc[steps]
    shown.loc["mean"] = table.mean()
    shown.index = shown.index.rename("step")
    return shown.reset_index().to_string(index=False, float_format=lambda v: f"{v:.3f}")
