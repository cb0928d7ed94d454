"""A fitted recurrent forecaster on one page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
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


@dataclass(frozen=True)
class Summary:
    """Text and tables of a fitted forecaster; print it.

    Attributes
    ----------
    composition : str
        What makes the forecasts, and what the network adds to it.
    facts : dict
        What was fitted, to what, how.
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

    def __str__(self) -> str:
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
    readable = forecaster.network_active_ and model.network.matrix_names
    features = recurrence_features(forecaster) if readable else None
    notes = [guarantee(forecaster), *_feature_notes(forecaster, features)]
    title = f"{type(forecaster).__name__} Results"
    return Summary(title, composition(forecaster), facts, forecaster.validation_, features, notes)


def guarantee(forecaster: RecurrentForecaster) -> str:
    """What the intervals promise; conformal ones, up to which level their errors reach."""
    counts = np.isfinite(forecaster.calibration_.errors).sum(1)
    fewest = counts[counts.any((1, 2))].min((0, 2))  # a series without errors takes those of all
    first, last = int(fewest[0]), int(fewest[-1])
    errors = (
        f"With {first} errors of the first step and {last} of the last, levels of up to "
        f"{100 * first / (first + 1):.3g} and {100 * last / (last + 1):.3g} percent can be "
        "guaranteed, n / (n + 1) of n errors."
    )
    return _GUARANTEES[forecaster.settings_.intervals].format(errors=errors)


def composition(forecaster: RecurrentForecaster) -> str:
    """What makes the forecasts, in a sentence, and the validation error with and without networks.

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
    made = f"Forecasts: {', '.join(parts)} and {networks}." if parts else f"Forecasts: {networks}."
    if inactive:
        made += f" Of these {len(inactive)} contribute nothing: {', '.join(map(str, inactive))}."
    rmse = forecaster.validation_
    if not parts:
        return made
    before = rmse["linear path" if "linear path" in rmse else "level"]
    mean, start = rmse["model"].mean(), before.mean()
    better = int((rmse["model"] < before).sum())
    return (
        f"{made} On the validation part, which chose the epoch, the root mean squared error is "
        f"{mean:.3f} with and {start:.3f} without {'it' if size == 1 else 'them'} "
        f"({mean / start - 1:+.1%}); lower at {better} of {len(rmse)} steps."
    )


def reason_of_inactivity(forecaster: RecurrentForecaster, number: int) -> str:
    """Why a network contributes nothing, what forecasts in its place, and what to do."""
    settings, name = forecaster.settings_, type(forecaster).__name__
    which = "the network" if settings.n_estimators == 1 else f"network {number}"
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
        f"{which} of this {name} has learned nothing: none of its {_epochs(forecaster, number)} "
        "epochs was better on the validation part than the start (best epoch 0), so "
        f"{instead}, and "
        "its recurrent matrices are random start values. More rows or series, or a smaller "
        f"learning_rate, may change that.{advice if settings.linear_path else ''} summary() has "
        "the validation errors with and without it"
    )


def _parts_but_network(settings: Settings) -> list[str]:
    named = {"the local level": settings.local_level, "the linear path": settings.linear_path}
    return [part for part, there in named.items() if there]


def _epochs(forecaster: RecurrentForecaster, number: int) -> int:
    """Epochs for which a network was trained."""
    return sum(entry.get("network", 1) == number for entry in forecaster.history_)


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
