"""What a file holds of every forecaster: its arguments, the shape of its data, the series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tsrnn.contract._file import plain
from tsrnn.data import Layout

if TYPE_CHECKING:
    from tsrnn.contract._base import Forecaster


def common_header(forecaster: Forecaster) -> dict[str, Any]:
    """JSON values that every forecaster has."""
    layout, exog_names = forecaster._panel_shape
    memory = forecaster.memory_
    return {
        "class": type(forecaster).__name__,
        **arguments_of(forecaster),
        "layout": layout.to_dict(),
        "exog_names": plain(exog_names, "exogenous columns"),
        "known_ahead": plain(forecaster.known_ahead_, "known_ahead"),
        "static": plain(forecaster.static_, "static"),
        "calendar": list(forecaster.calendar_),
        "ids": plain(memory.ids, "series ids"),
        "id_dtype": str(memory.ids.dtype),
        "times_dtype": str(memory.last_times.dtype),
    }


def common_arrays(forecaster: Forecaster) -> dict[str, np.ndarray]:
    """Arrays that every forecaster has."""
    return {
        "last_times": forecaster.memory_.last_times.astype("int64"),
        "static": forecaster._static_values,
        "zero_shares": forecaster._zero_shares,
    }


def restore_common(
    forecaster: Forecaster, header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[pd.Index, np.ndarray]:
    """Set what every forecaster has; returns the ids and last times of its series."""
    layout, exog_names = Layout.from_dict(header["layout"]), tuple(header["exog_names"])
    forecaster._panel_shape = layout, exog_names
    forecaster.freq_, forecaster.known_ahead_ = layout.freq, header["known_ahead"]
    forecaster.static_, forecaster._static_values = header["static"], arrays["static"]
    forecaster.calendar_ = tuple(header["calendar"])
    forecaster.n_features_in_ = len(layout.target_names) + len(forecaster._given_columns())
    forecaster._zero_shares = arrays["zero_shares"]
    ids = pd.Index(header["ids"], dtype=header["id_dtype"])
    return ids, arrays["last_times"].astype(header["times_dtype"])


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
    generators, nothing is kept.

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
    generators = np.random.Generator | np.random.RandomState
    values = {
        name: None if isinstance(value, generators) else plain(value, name)
        for name, value in params.items()
    }
    return {"params": values, "tuples": [k for k, v in params.items() if isinstance(v, tuple)]}
