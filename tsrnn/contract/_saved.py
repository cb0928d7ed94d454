"""Parts that the files of all forecasters have: arguments, times of the last rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tsrnn.contract._checks import MOST_JOBS
from tsrnn.contract._file import FORMAT, plain
from tsrnn.contract._fitted_data import FittedData
from tsrnn.contract._plot import History
from tsrnn.contract._schema import (
    MOST_STEPS,
    Kind,
    anything,
    as_saved,
    by_name,
    check_arrays,
    integer,
    listed,
    one_of,
    optional,
    record,
    refuse,
    text,
)
from tsrnn.data import future_times, write_stamps

MOST_DRAWS = 1_000_000  # that a file may ask for at predict

if TYPE_CHECKING:
    from tsrnn.contract._base import Forecaster


def check_common(cls: type[Forecaster], header: Any) -> None:
    """Check the part of a header that every forecaster has, and its arguments' names.

    Raises
    ------
    DamagedFileError
        Naming the field.
    """
    record(COMMON, may_lack=("format", "version"))(header, "")
    check_argument_names(cls, header)
    for name, kind in (SHARED | SOME).items():
        if name in header["params"]:
            kind(header["params"][name], f"params.{name}")
    one_of(*cls.legal_missing)(header["params"]["missing"], "params.missing")


def last_times_from_file(
    header: dict[str, Any], arrays: dict[str, np.ndarray], data: FittedData
) -> np.ndarray:
    """Times (S,) of the last rows of the series.

    Raises
    ------
    DamagedFileError
        If these parts of the file are no times of the data.
    """
    layout = data.layout
    one_of("datetime64[ns]" if layout.time_kind == "datetime" else "int64")(
        header["times_dtype"], "times_dtype"
    )
    shapes = {"last_times": ("int64", (len(data.ids),)), **History.shapes(data.n_targets)}
    check_arrays({name: arrays[name] for name in shapes if name in arrays}, shapes)
    last_times = arrays["last_times"].astype(header["times_dtype"])
    with as_saved("layout, its freq and tz, and the array 'last_times'"):
        future_times((last_times, layout.freq), 1, tz=layout.tz)
        write_stamps(last_times, layout)
    return last_times


def check_argument_names(cls: Any, header: dict[str, Any]) -> None:
    """Check that arguments in a file are those of a class, and which of them are tuples.

    A file of an earlier format is brought to the present one before, in place: each class fills in
    what was added since, with values that mean what its models did then.

    Parameters
    ----------
    cls : type
        With `_update_header`, as `Forecaster` has it.
    header : dict

    Raises
    ------
    DamagedFileError
        Naming the field.

    Examples
    --------
    >>> from tsrnn import ARMA
    >>> from tsrnn.contract import arguments_of, check_argument_names
    >>> check_argument_names(ARMA, arguments_of(ARMA(order=(1, 0))))
    """
    params = header["params"]
    if header.get("format", FORMAT) < FORMAT:
        cls._update_header(header)
    # All of them: a release that adds an argument raises FORMAT and extends _update_header.
    record(dict.fromkeys(cls._get_param_names(), _bounded))(params, "params")
    for name in header["tuples"]:
        if name not in params or not isinstance(params[name], list):
            raise refuse("tuples", "names of arguments that are lists", name)
    for name in cls.not_saved:
        one_of(None)(params[name], f"params.{name}")


def _bounded(value: Any, place: str) -> None:
    """Kind of arguments: no number is larger than an array can be long."""
    if isinstance(value, list | dict):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            _bounded(item, f"{place}[{key!r}]")
    elif type(value) is int and not -(2**63) <= value < 2**63:
        raise refuse(place, "of 64 bits", value)


def _name(value: Any, place: str) -> None:
    if type(value) not in (str, int):
        raise refuse(place, "text or an integer", value)


def _names(value: Any, place: str) -> None:
    (listed(_name) if isinstance(value, list) else optional(_name))(value, place)


def _id(value: Any, place: str) -> None:
    if type(value) not in (str, int, float, bool):
        raise refuse(place, "text, a number or a truth value", value)


# Fields of every forecaster, and the arguments that all have.
COMMON: dict[str, Kind] = {
    "format": integer(1),
    "version": text,
    "class": text,
    "params": by_name(anything),
    "tuples": listed(text),
    "layout": by_name(anything),
    "exog_names": listed(_name),
    "known_ahead": listed(_name),
    "static": listed(_name),
    "calendar": listed(text),
    "ids": listed(_id),
    "id_dtype": text,
    "times_dtype": text,
    "fitted": by_name(anything),
}
SHARED: dict[str, Kind] = {
    "horizon": optional(integer(1, MOST_STEPS)),
    "target": _names,
    "known_ahead": _names,
    "static": _names,
    "id_col": text,
    "time_col": text,
    "freq": optional(_name),
    "random_state": optional(integer(0)),
}
# Of some forecasters.
SOME: dict[str, Kind] = {
    "n_simulations": integer(1, MOST_DRAWS),
    "n_jobs": optional(integer(-MOST_JOBS, MOST_JOBS)),
}


def saved_arguments(header: dict[str, Any]) -> dict[str, Any]:
    """Constructor arguments as they were, tuples too, for which JSON has lists.

    Parameters
    ----------
    header : dict
        With what `arguments_of` gave.

    Returns
    -------
    dict
        By name.

    Examples
    --------
    >>> from tsrnn import ARMA
    >>> from tsrnn.contract import arguments_of, saved_arguments
    >>> saved_arguments(arguments_of(ARMA(order=(1, 0, 1))))["order"]
    (1, 0, 1)
    """
    tuples = {name: tuple(header["params"][name]) for name in header.get("tuples", ())}
    return header["params"] | tuples


def arguments_of(estimator: Any) -> dict[str, Any]:
    """Constructor arguments of the fit as JSON values, and the names of those that are tuples.

    Where there was no fit, as they stand. Of those that its `not_saved` names, and of
    generators, nothing is kept, and `verbose` is 0.

    Parameters
    ----------
    estimator : estimator
        With `arguments_` and `not_saved`.

    Returns
    -------
    dict
        The values as "params", the names as "tuples"; `saved_arguments` is the inverse.

    Raises
    ------
    TypeError
        If a value cannot be saved; the message names the argument.

    Examples
    --------
    >>> from tsrnn import ARMA
    >>> from tsrnn.contract import arguments_of
    >>> found = arguments_of(ARMA(order=(1, 0, 1)))
    >>> found["params"]["order"], found["tuples"]
    ([1, 0, 1], ['order'])
    """
    params = estimator.arguments_.as_dict() | dict.fromkeys(estimator.not_saved)
    params |= {"verbose": 0} if "verbose" in params else {}  # of the terminal, not of the model
    generators = np.random.Generator | np.random.RandomState
    values = {
        name: None if isinstance(value, generators) else plain(value, name)
        for name, value in params.items()
    }
    return {"params": values, "tuples": [k for k, v in params.items() if isinstance(v, tuple)]}
