"""Models by their names on the command line, with their settings."""

from __future__ import annotations

import difflib
import json
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from tsrnn.cli._flags import OPTIONS
from tsrnn.models import MODELS, model_class

# Name on the command line -> class.
COMMANDS = {model.command: name for name, model in MODELS.items() if model.command}
NAMES = textwrap.fill(
    ", ".join(COMMANDS), 80, initial_indent="", subsequent_indent="  ", break_on_hyphens=False
)
WORDS = {"True": True, "False": False, "None": None}
SUFFIX = ".tsrnn"


def is_file(model: str) -> bool:
    """Return True if the value of ``--model`` is the file of a saved model."""
    return _key(model) not in COMMANDS and (model.endswith(SUFFIX) or Path(model).is_file())


def class_of(name: str) -> Any:
    """Return the class of a model by its name."""
    key = _key(name)
    if key not in COMMANDS:
        near = difflib.get_close_matches(key, COMMANDS, n=1)
        advice = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(COMMANDS)}."
        raise typer.BadParameter(f"there is no model {name!r}. {advice}", param_hint="'--model'")
    return model_class(COMMANDS[key])


def settings_of(texts: Sequence[str] | None) -> dict[str, Any]:
    """Return the arguments of ``--set NAME=VALUE``, values as JSON where they are, else text."""
    settings: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise _bad_setting(f"{text!r} is not NAME=VALUE, such as hidden_size=64.")
        if name in settings:
            raise _bad_setting(f"{name} is set twice.")
        label, _, argument = name.rpartition(".")
        # models of one file may differ in their treatment of missing values
        if argument in OPTIONS and not (label and argument == "missing"):
            raise _bad_setting(f"{argument} has an option of its own: {OPTIONS[argument]}.")
        try:
            settings[name] = WORDS[value] if value in WORDS else json.loads(value)
        except ValueError:
            settings[name] = value
    return settings


def check_as_fitted(
    arguments: Mapping[str, Any], settings: Mapping[str, Any], option: str, **others: Any
) -> None:
    """Refuse arguments, settings and other options (by name) beside a fitted model."""
    given = {f"--{name}": value for name, value in others.items()} | {"--set": settings}
    given |= {OPTIONS[name]: value for name, value in arguments.items()}
    refused = [name for name, value in given.items() if value not in (None, [], {})]
    if refused:
        raise typer.BadParameter(
            f"a fitted model is used as it is; leave {', '.join(refused)} out.",
            param_hint=f"'{option}'",
        )


def make_model(name: str, common: Mapping[str, Any], settings: Mapping[str, Any]) -> Any:
    """Construct a forecaster from common arguments; settings override them."""
    cls = class_of(name)
    try:
        return cls(**{**common, **settings})
    except (TypeError, ValueError) as error:
        message = f"{error} ('tsrnn models {_key(name)}' lists the arguments)"
        raise type(error)(message) from error


def make_models(
    texts: Sequence[str], common: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the forecasters of a comparison by label, by default the name.

    `common` arguments go to all, except `known_ahead`, which needs a model with exogenous
    columns. A setting with a label is for that model, one without for all that have the argument.
    """
    named = _labelled(texts)
    of_label: dict[str, dict[str, Any]] = {label: {} for label in named}
    for key, value in settings.items():
        for label in _labels_for(key, named):
            of_label[label][key.rpartition(".")[2]] = value
    models = {}
    for label, name in named.items():
        takes_exog = getattr(class_of(name), "takes_exog", True)
        suitable = {k: value for k, value in common.items() if takes_exog or k != "known_ahead"}
        models[label] = make_model(name, suitable, of_label[label])
    return models


def _labelled(texts: Sequence[str]) -> dict[str, str]:
    """Read texts ``NAME`` and ``LABEL=NAME`` as names of models by label."""
    named: dict[str, str] = {}
    for text in texts:
        label, _, name = text.rpartition("=")
        if (label or name) in named:
            raise typer.BadParameter(
                f"two models are called {label or name!r}. Label them: A={name}, B={name}.",
                param_hint="'--model'",
            )
        named[label or name] = name
    return named


def _labels_for(key: str, named: Mapping[str, str]) -> list[str]:
    """Return the labels that a setting is for. If no model has it, the first one refuses it."""
    label, dot, argument = key.rpartition(".")
    if dot:
        if label not in named:
            raise _bad_setting(f"{key} is for no model; they are called {', '.join(named)}.")
        return [label]
    having = [label for label in named if argument in class_of(named[label])._get_param_names()]
    return having or list(named)[:1]


def _key(name: str) -> str:
    return name.lower().replace("_", "-")


def load_forecaster(path: str) -> Any:
    """Return the forecaster in a file."""
    from tsrnn.contract import Forecaster
    from tsrnn.storage import load

    model = load(path)
    if not isinstance(model, Forecaster):
        raise TypeError(f"{path} holds a {type(model).__name__}, which does not forecast series")
    return model


def _bad_setting(message: str) -> typer.BadParameter:
    return typer.BadParameter(message, param_hint="'--set'")
