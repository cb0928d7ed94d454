"""Summary of a fitted recurrent forecaster on one page."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from tsrnn.contract import Summary
from tsrnn.forecasters._columns import effect_section
from tsrnn.forecasters._forecast_part import features_of
from tsrnn.forecasters._gain import ALL, network_test, tested_steps
from tsrnn.interpret import (
    WIDTH,
    feature_section,
    lyapunov_exponent,
    reading_of,
    reading_of_forecasts,
    recurrence_features,
    section,
    two_columns,
    wrapped,
)
from tsrnn.kernels import Cell

if TYPE_CHECKING:
    from tsrnn.forecasters._columns import FittedColumns
    from tsrnn.forecasters._fitted import FittedNetworks
    from tsrnn.forecasters._recurrent import RecurrentForecaster
    from tsrnn.forecasters._settings import Settings
    from tsrnn.forecasters._stability import FeatureStability
    from tsrnn.forecasters._state import RecurrentState
    from tsrnn.forecasters._with_columns import StateWithColumns
    from tsrnn.interpret import LyapunovExponents

WHOLE = "Recurrence features of the whole forecast, by share of its variance"
MATRICES = "Recurrence features of the network's matrices, by share of its output's variance"
SHORT = {"linear path": "linear", "seasonal naive": "seasonal"}  # names of columns on the page
UNBOUNDED = ("relu", "identity")
MOST_DERIVATIVES = 2000  # backward passes for the features on a page, which take a few seconds


TESTS = (
    "p(...): Diebold and Mariano's test that a part changes nothing, against the parts before it. "
    "The variance is that of Harvey, Leybourne and Newbold, and Newey and West's where that is not "
    "positive. The validation part chose the form of the linear path and the epoch, so that small "
    "p-values are somewhat too small."
)


@dataclass(frozen=True, eq=False, repr=False)
class NetworkSummary(Summary):
    """Text and tables of a fitted forecaster; print it.

    Attributes
    ----------
    composition : str
        Parts of the forecasts, and the gain in accuracy by the network.
    facts : dict
        Data, network and training, by name.
    accuracy : DataFrame
        Root mean squared error by step on the validation part.
    tests : DataFrame
        Tests of each part of the forecasts against the parts before it, by step and over all.
    features : DataFrame or None
        Recurrence features of the whole forecast, see `tsrnn.forecast_features`; None if the
        forecasts are constant.
    network_features : DataFrame or None
        Recurrence features of the network's matrices, see `tsrnn.recurrence_features`; None if the
        network contributes nothing or its cell has no recurrent matrices.
    lyapunov : LyapunovExponents or None
        Largest exponent of the network's state along the data; None if it contributes nothing or
        has no state of fixed size.
    notes : list of str
    effects : DataFrame or None
        Effects of exogenous columns in the regression before the network; None without any.
    """

    title: str
    composition: str
    facts: dict[str, object]
    accuracy: pd.DataFrame
    tests: pd.DataFrame
    features: pd.DataFrame | None
    network_features: pd.DataFrame | None
    lyapunov: LyapunovExponents | None
    notes: list[str]
    effects: pd.DataFrame | None = None

    def as_text(self) -> str:
        """Page as it is printed."""
        shown = self.accuracy.loc[tested_steps(len(self.accuracy))].rename(columns=SHORT)
        shown.loc[ALL] = self.accuracy.rename(columns=SHORT).mean()
        for part in self.tests.index.unique("part"):
            # A part that changes nothing has no p-value.
            p_values = self.tests.xs(part, level="part")["p_value"].reindex(shown.index)
            shown[f"p({SHORT.get(part, part)})"] = p_values
        shown.index = shown.index.rename("step")
        parts = [
            self.title.center(WIDTH).rstrip(),
            "=" * WIDTH,
            wrapped(self.composition, indent=0),
            "-" * WIDTH,
            two_columns(self.facts),
            *effect_section(self.effects),
            section("Root mean squared error on the validation part (naive error = 1)"),
            shown.reset_index().to_string(
                index=False, na_rep="-", float_format=lambda v: f"{v:.3f}"
            ),
            *feature_section(self.features, WHOLE),
            *feature_section(self.network_features, MATRICES),
            "=" * WIDTH,
            *[wrapped(f"[{i}] {note}") for i, note in enumerate(self.notes, 1)],
        ]
        return "\n".join(parts)


def summarise(
    fitted: FittedNetworks,
    forecaster: RecurrentForecaster,
    stability: FeatureStability | None,
    columns: FittedColumns | None = None,
) -> NetworkSummary:
    """Summarise a forecaster of networks, with or without a regression on columns before them."""
    n_targets = fitted.model.n_targets
    few = fitted.horizon * n_targets * n_targets <= MOST_DERIVATIVES
    features = features_of(forecaster, stability) if few or stability is not None else None
    matrices = exponent = None
    if fitted.network_active:
        if fitted.model.network.matrix_names:
            matrices = recurrence_features(forecaster)
        with suppress(TypeError, ValueError):  # no exponent for some layers and short samples
            exponent = lyapunov_exponent(forecaster)
    settings, history = fitted.settings, fitted.history
    longest = max((int(entry["epoch"]) for entry in history), default=0)
    notes = [fitted.guarantee, *fitted.support_notes]
    if len(fitted.tests):
        notes.append(TESTS)
    if columns is not None:
        notes.append(columns.note)
    if features is not None:
        notes.append(reading_of_forecasts(features))
    if matrices is not None:
        notes.append(reading_of(matrices))
        explosive = int((matrices["modulus"] > 1).sum())
        if explosive and settings.options.get("nonlinearity") in UNBOUNDED:
            notes.append(f"{explosive} features have a modulus above 1: the state can explode.")
    if exponent is not None:
        notes.append(f"State of the network along the data: {exponent.words}")
    if settings.network is not False and longest >= settings.max_epochs:
        notes.append("Training stopped at max_epochs, not because it had converged.")
    return NetworkSummary(
        title=f"{fitted.arguments.class_name} Results",
        composition=composition(fitted),
        facts=facts_of_fit(fitted, forecaster.state_, longest),
        accuracy=fitted.validation.copy(),
        tests=fitted.tests,
        features=features,
        network_features=matrices,
        lyapunov=exponent,
        notes=notes,
        effects=None if columns is None else columns.table(),
    )


def facts_of_fit(
    fitted: FittedNetworks, state: RecurrentState | StateWithColumns, longest: int
) -> dict[str, object]:
    """Facts on data, network and training by name; `longest` is the number of epochs trained."""
    settings, data, linear = fitted.settings, fitted.data, fitted.linear_path
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
    if data.n_targets > 1 and not fitted.arguments.as_dict().get("per_series"):
        facts["Targets by"] = "the past of all" if settings.joint else "own past"
        if settings.factor:
            facts["Targets by"] = f"own past and {settings.n_factors} factors"
    if "factor_statistic" in linear:
        facts["Gain by factors"] = (
            f"{linear['factor_gain']:.1%}, {linear['factor_statistic']:.1f} standard errors"
        )
    facts["Local level"] = "yes" if settings.local_level else "no"
    facts["Ridge towards"] = linear["prior"] if linear else "no linear path"
    if linear.get("varying"):
        facts["Varying with lags"] = ", ".join(map(str, fitted.model.seasons))
    if linear.get("reverting"):
        facts["Reverts to mean"] = "yes"
    if settings.boxcox is not None:
        facts["Box-Cox"] = f"{settings.boxcox:g}" if settings.boxcox else "log"
    if settings.n_estimators > 1:
        facts["Networks"] = settings.n_estimators
    refit = ", refit" if settings.refit else ""
    facts["Best epoch"] = f"{max(fitted.best_epochs)} of {longest}{refit}"
    rate = fitted.history[-1]["learning_rate"] if fitted.history else float("nan")
    facts["Last learning rate"] = f"{rate:.1e}"
    return facts


def composition(fitted: FittedNetworks) -> str:
    """Describe the parts of the forecasts, and the validation error with and without networks.

    The error without networks is the error of the local level and the linear path as estimated in
    closed form, before training.
    """
    parts, size = _parts_but_network(fitted.settings), fitted.settings.n_estimators
    inactive = [str(number) for number, best in enumerate(fitted.best_epochs, 1) if best == 0]
    networks = "the network" if size == 1 else f"the mean of {size} networks"
    if fitted.settings.network is False:
        return f"Forecasts: {' and '.join(parts)}, without a network (network=False)."
    if not any(fitted.best_epochs):
        if (gain := dropped_gain(fitted)) is not None:
            them = "it was" if size == 1 else "they were"
            return (
                f"Forecasts: {' and '.join(parts)} alone. {networks.capitalize()} contributes "
                f"nothing: {them} dropped, since on the validation part the mean squared error "
                f'{_changed(gain)} (network="auto").'
            )
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
    tested = ""
    if (test := network_test(fitted.tests)) is not None:
        tested = f"; Diebold and Mariano's p-value over all steps is {test['p_value']:.3f}"
    return (
        f"{text} On the validation part, which chose the epoch, the root mean squared error is "
        f"{mean:.3f} with and {start:.3f} without {'it' if size == 1 else 'them'} "
        f"({mean / start - 1:+.1%}); lower at {better} of {len(rmse)} steps{tested}."
    )


def _changed(gain: dict[str, float]) -> str:
    """Describe the change of the mean squared error by a network."""
    verb = "fell" if gain["gain"] >= 0 else "rose"
    size, errors = abs(gain["gain"]), abs(gain["statistic"])
    return f"{verb} by {size:.1%}, {errors:.1f} standard errors"


def dropped_gain(fitted: FittedNetworks) -> dict[str, float] | None:
    """Test of the networks if they were dropped; None otherwise."""
    return None if any(fitted.best_epochs) else network_test(fitted.tests)


def reason_of_inactivity(fitted: FittedNetworks, number: int) -> str:
    """Explain why a network contributes nothing, which parts forecast instead, and give advice."""
    settings, name = fitted.settings, fitted.arguments.class_name
    parts = _parts_but_network(settings)
    alone = f"{' and '.join(parts)} alone forecast"
    if settings.network is False:
        return f"this {name} has none (network=False): {alone}"
    if (gain := dropped_gain(fitted)) is not None:
        return (
            f"the network of this {name} was dropped: with it the mean squared error on the "
            f'validation part {_changed(gain)} (network="auto"), so that {alone}. '
            "network=True keeps it"
        )
    network = "the network" if settings.n_estimators == 1 else f"network {number}"
    if any(fitted.best_epochs):
        instead = "it adds nothing to the others"
    elif parts:
        instead = alone
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
    """Names of the parts of the forecasts except the network."""
    named = {"the local level": settings.local_level, "the linear path": settings.linear_path}
    return [part for part, there in named.items() if there]


def _epochs(fitted: FittedNetworks, number: int) -> int:
    """Number of epochs for which a network was trained."""
    return sum(entry.get("network", 1) == number for entry in fitted.history)
