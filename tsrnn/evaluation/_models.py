"""The models of a backtest: their names, and what they agree on about the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sklearn.base import clone

from tsrnn.contract import last_step
from tsrnn.data import Panel
from tsrnn.evaluation._forecasts import KEYS

# Arguments by which forecasters read a frame, and what they are where no model says.
READING = {"target": None, "id_col": "unique_id", "time_col": "ds", "freq": None}
_SUFFIXES = ("-lo-", "-hi-")


def named_models(models: Any) -> dict[str, Any]:
    """Models by the names of their columns.

    Parameters
    ----------
    models : forecaster, sequence of forecasters or mapping of str to forecaster
        Those that are not named are called as the columns of their forecasts.

    Raises
    ------
    TypeError, ValueError
        If there is none, two have the same name, a name cannot be a column, or a model cannot
        be fitted, forecast and cloned.
    """
    if isinstance(models, Mapping):
        named = dict(models)
    else:
        alone = not isinstance(models, Sequence) or isinstance(models, str)
        listed = [models] if alone else list(models)
        names = [_own_name(model) for model in listed]
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise ValueError(
                f"{names.count(twice[0])} models have the name {twice[0]!r}. Name them: "
                f"models={{{twice[0] + ' A'!r}: ..., {twice[0] + ' B'!r}: ...}}"
            )
        named = dict(zip(names, listed, strict=True))
    if not named:
        raise ValueError("models must hold at least one forecaster; it is empty")
    for name, model in named.items():
        _check(name, model)
    return named


def _own_name(model: Any) -> str:
    final = last_step(model)
    return str(getattr(final, "column_name", type(final).__name__))


def _check(name: Any, model: Any) -> None:
    if not isinstance(name, str) or not name or name in KEYS:
        raise ValueError(f"names of models must be text other than {', '.join(KEYS)}; got {name!r}")
    if any(suffix in name for suffix in _SUFFIXES):
        raise ValueError(f"names of models must not contain -lo- or -hi-; got {name!r}")
    for method in ("fit", "predict"):
        if isinstance(model, type) or not callable(getattr(model, method, None)):
            raise TypeError(
                f"models must be forecasters with fit and predict, such as ARMA(); {name!r} is "
                f"{model!r}"
            )
    try:
        clone(model)
    except (TypeError, RuntimeError) as error:
        raise TypeError(f"the model {name!r} cannot be cloned: {error}") from error


def reading(models: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by which all models read a frame.

    Raises
    ------
    ValueError
        If two models differ in one.
    """
    found = {}
    for argument, default in READING.items():
        said = {
            name: getattr(last_step(model), argument)
            for name, model in models.items()
            if hasattr(last_step(model), argument)
        }
        values = list(said.values())
        other = [name for name, value in said.items() if not _same(value, values[0])]
        if other:
            first = next(iter(said))
            raise ValueError(
                f"all models must forecast the same columns of the same data; {argument} is "
                f"{said[first]!r} in {first!r} and {said[other[0]]!r} in {other[0]!r}"
            )
        found[argument] = values[0] if values else default
    return found


def _same(a: Any, b: Any) -> bool:
    """Whether two targets are the same; ["y"] is "y"."""
    one, other = ([x] if not isinstance(x, list | tuple) else list(x) for x in (a, b))
    return one == other


def seen_by(model: Any, panel: Panel) -> Panel:
    """What of a panel a model is shown: the targets alone, if it takes no exogenous columns."""
    if getattr(last_step(model), "takes_exog", True) or not panel.exog_names:
        return panel
    return replace(panel, exog=panel.exog[:, :0], exog_names=())


def known_ahead(model: Any) -> list[Any]:
    """Columns whose future a model is given."""
    columns = getattr(last_step(model), "known_ahead", None)
    if columns is None:
        return []
    return list(columns) if isinstance(columns, list | tuple) else [columns]
