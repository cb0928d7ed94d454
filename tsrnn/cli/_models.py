"""From names and settings to models."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from tsrnn.cli._table import MODELS

__all__ = [
    "check_as_fitted",
    "class_of",
    "is_file",
    "load_forecaster",
    "make_model",
    "make_models",
    "settings_of",
]

# Arguments that say how data are read, for which there are options.
OPTIONS = {
    "target": "--target",
    "id_col": "--id-col",
    "time_col": "--time-col",
    "freq": "--freq",
    "known_ahead": "--known-ahead",
    "random_state": "--random-state",
    "missing": "--missing",
    "verbose": "--quiet",
}
WORDS = {"True": True, "False": False, "None": None}
SUFFIX = ".tsrnn"


def is_file(model: str) -> bool:
    """Whether the value of ``--model`` is the file of a saved model."""
    return _key(model) not in MODELS and (model.endswith(SUFFIX) or Path(model).is_file())


def class_of(name: str) -> Any:
    """The class of a model by its name.

    Raises
    ------
    typer.BadParameter
        If there is none of that name.
    """
    key = _key(name)
    if key not in MODELS:
        near = difflib.get_close_matches(key, MODELS, n=1)
        advice = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(MODELS)}."
        raise typer.BadParameter(f"there is no model {name!r}. {advice}", param_hint="'--model'")
    entry = MODELS[key]
    return getattr(import_module(f"tsrnn.{entry.room}"), entry.cls)


def settings_of(texts: Sequence[str] | None) -> dict[str, Any]:
    """Arguments of ``--set NAME=VALUE``, values as JSON where they are, else text.

    Raises
    ------
    typer.BadParameter
        If a text has no name, a name comes twice or has an option of its own.
    """
    settings: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise _bad_setting(f"{text!r} is not NAME=VALUE, such as hidden_size=64.")
        if name in settings:
            raise _bad_setting(f"{name} is set twice.")
        label, _, own = name.rpartition(".")
        if own in OPTIONS and not (label and own == "missing"):  # models of one file may differ
            raise _bad_setting(f"{own} has an option of its own: {OPTIONS[own]}.")
        settings[name] = _value(value)
    return settings


def check_as_fitted(
    arguments: Mapping[str, Any], settings: Mapping[str, Any], option: str, **others: Any
) -> None:
    """Refuse what a fitted model cannot be given: arguments, settings, and other options by name.

    Raises
    ------
    typer.BadParameter
        Naming the options.
    """
    given = {f"--{name}": value for name, value in others.items()} | {"--set": settings}
    given |= {OPTIONS[name]: value for name, value in arguments.items()}
    unfit = [name for name, value in given.items() if value not in (None, [], {})]
    if unfit:
        raise typer.BadParameter(
            f"a fitted model is used as it is; leave {', '.join(unfit)} out.",
            param_hint=f"'{option}'",
        )


def make_model(name: str, common: Mapping[str, Any], settings: Mapping[str, Any]) -> Any:
    """A forecaster of common arguments, which settings replace.

    Raises
    ------
    TypeError, ValueError
        If it has no such argument.
    """
    cls = class_of(name)
    try:
        return cls(**{**common, **settings})
    except (TypeError, ValueError) as error:
        message = f"{error} ('tsrnn models {_key(name)}' lists the arguments)"
        raise type(error)(message) from error


def make_models(
    texts: Sequence[str], common: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Forecasters of a comparison by their labels, which are their names where none is given.

    `common` holds arguments of all, but `known_ahead` is for those that take exogenous columns.
    A setting with a label is for that model, one without for all that have such an argument.

    Raises
    ------
    typer.BadParameter
        If a model is not known, a label comes twice, or a setting has an unknown label.
    TypeError, ValueError
        If no model has an argument of that name.
    """
    named = _labelled(texts)
    own: dict[str, dict[str, Any]] = {label: {} for label in named}
    for key, value in settings.items():
        for label in _takers(key, named):
            own[label][key.rpartition(".")[2]] = value
    return {
        label: make_model(name, _suitable(common, class_of(name)), own[label])
        for label, name in named.items()
    }


def load_forecaster(path: str) -> Any:
    """The forecaster in a file.

    Raises
    ------
    TypeError
        If the file holds a model of another kind.
    """
    from tsrnn.contract import Forecaster
    from tsrnn.storage import load

    model = load(path)
    if not isinstance(model, Forecaster):
        raise TypeError(f"{path} holds a {type(model).__name__}, which does not forecast series")
    return model


def _labelled(texts: Sequence[str]) -> dict[str, str]:
    """Names of models by label, of texts ``NAME`` and ``LABEL=NAME``."""
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


def _takers(key: str, named: Mapping[str, str]) -> list[str]:
    """Labels of the models that a setting is for; the first one if none has it, to refuse it."""
    label, dot, argument = key.rpartition(".")
    if dot:
        if label not in named:
            raise _bad_setting(f"{key} is for no model; they are called {', '.join(named)}.")
        return [label]
    having = [one for one in named if argument in class_of(named[one])._get_param_names()]
    return having or list(named)[:1]


def _suitable(common: Mapping[str, Any], cls: Any) -> dict[str, Any]:
    """Common arguments that a class can use; a network takes exogenous columns without saying."""
    takes = getattr(cls, "takes_exog", True)
    return {name: value for name, value in common.items() if takes or name != "known_ahead"}


def _key(name: str) -> str:
    return name.lower().replace("_", "-")


def _value(text: str) -> Any:
    if text in WORDS:
        return WORDS[text]
    try:
        return json.loads(text)
    except ValueError:
        return text


def _bad_setting(message: str) -> typer.BadParameter:
    return typer.BadParameter(message, param_hint="'--set'")
