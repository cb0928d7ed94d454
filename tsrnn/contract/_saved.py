"""Files of forecasters: arguments, data, fitted model, state and last rows."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import IO, Any, ClassVar, Generic, Self

import numpy as np
import pandas as pd

from tsrnn.contract._checks import MOST_JOBS, verbosity
from tsrnn.contract._estimator import Arguments, CommonArguments
from tsrnn.contract._file import FORMAT, plain, write_file
from tsrnn.contract._fitted import FittedModel, S
from tsrnn.contract._fitted_data import FittedData
from tsrnn.contract._parameters import check_is_fitted
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
from tsrnn.contract._support import support_kind
from tsrnn.data import steps_between, write_stamps

MOST_DRAWS = 1_000_000  # largest number of simulations in a file
# Arrays of a file besides those of the fitted model.
COMMON_ARRAYS = (
    "last_times", "static", "zero_shares", "history.values", "history.times", "history.lengths",
)  # fmt: skip
# Reader of a nested forecaster, from header and arrays of a part of a file.
Restore = Callable[[dict[str, Any], dict[str, np.ndarray]], Any]


class SavedForecaster(CommonArguments, ABC, Generic[S]):
    """Mixin of `Forecaster` that saves and restores fitted forecasters."""

    not_saved: ClassVar[tuple[str, ...]] = ()  # constructor arguments missing in files
    legal_missing: ClassVar[tuple[str, ...]] = ("auto", "error", "interpolate")
    keeps_missing_columns: ClassVar[bool] = False  # if False, such rows lose their targets
    fitted_: FittedModel[S]
    state_: S
    _history: History

    def save(self, path: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the fitted forecaster to a file that `tsrnn.load` reads.

        The file holds the fitted model, the state of every series and the last rows for `plot`, as
        safetensors with a JSON header. Writing is atomic, keeps the permissions of an existing
        file, and replaces the target of a symbolic link. A generator as `random_state` and
        callbacks are not saved. Arguments are those of the fit, not later ones of `set_params`.

        Parameters
        ----------
        path : path or binary file
            An open file, for example an `io.BytesIO`, is written from its current position.

        Raises
        ------
        TypeError
            If an argument or an id is no JSON value, such as a custom cell.
        OSError
            If the file cannot be written.
        """
        check_is_fitted(self, "fitted_")
        if self.fitted_.horizon > MOST_STEPS:
            raise ValueError(
                f"files hold models of a horizon of at most {MOST_STEPS:,} steps; that of this one "
                f"is {self.fitted_.horizon}. Fit with a smaller one, and predict with h"
            )
        write_file(path, *self._to_file())

    def _to_file(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return header and arrays of the file."""
        fitted, data = self.fitted_, self.fitted_.data
        # The model first: its class names arguments that cannot be saved.
        model_header, model_arrays = fitted.to_file(self.state_)
        data_header, data_arrays = data.to_file()
        last_times = self.state_.last_times
        header = {
            "class": type(self).__name__,
            **arguments_of(self),
            **data_header,
            "times_dtype": str(last_times.dtype),
            "fitted": model_header,
        }
        common = {"last_times": last_times.astype("int64"), **data_arrays}
        return header, model_arrays | common | self._history.arrays(data.n_targets)

    @classmethod
    def _restore(
        cls, header: dict[str, Any], arrays: dict[str, np.ndarray], restore: Restore | None = None
    ) -> Self:
        """Rebuild the fitted forecaster of `save`; `restore` reads nested forecasters."""
        record(COMMON, may_lack=("format", "version", "holidays", "notes", "supports"))(header, "")
        check_argument_names(cls, header)
        for name, kind in (SHARED | SOME).items():
            if name in header["params"]:
                kind(header["params"][name], f"params.{name}")
        one_of(*cls.legal_missing)(header["params"]["missing"], "params.missing")
        members = cls._inner_arguments(header["fitted"], arrays, restore)
        forecaster = cls(**(saved_arguments(header) | members))
        arguments, data = Arguments.of(forecaster), FittedData.from_file(header, arrays)
        layout, dtype = data.layout, header["times_dtype"]
        one_of("datetime64[ns]" if layout.time_kind == "datetime" else "int64")(
            dtype, "times_dtype"
        )
        shapes = {"last_times": ("int64", (len(data.ids),)), **History.shapes(data.n_targets)}
        check_arrays({name: arrays[name] for name in shapes if name in arrays}, shapes)
        last_times = arrays["last_times"].astype(dtype)
        # Refuse times outside the calendar now and not at predict.
        with as_saved("layout, its freq and tz, and the array 'last_times'"):
            steps_between(last_times, last_times, layout.grid, layout.tz)
            write_stamps(last_times, layout)
        forecaster._history = History.revived(arrays, dtype, len(data.ids))
        with as_saved("params"):
            verbosity(arguments.verbose)
        rest = {name: array for name, array in arrays.items() if name not in COMMON_ARRAYS}
        forecaster.fitted_, forecaster.state_ = forecaster._from_file(
            arguments, data, header["fitted"], rest, last_times
        )
        return forecaster

    @abstractmethod
    def _from_file(
        self,
        arguments: Arguments,
        data: FittedData,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        last_times: np.ndarray,
    ) -> tuple[FittedModel[S], S]:
        """Rebuild fitted model and state from `FittedModel.to_file`.

        Files are not trusted: check every field and array before use, allocate nothing larger than
        the arrays imply, and raise DamagedFileError for what `save` does not write.
        """

    @classmethod
    def _inner_arguments(
        cls, header: dict[str, Any], arrays: dict[str, np.ndarray], restore: Restore | None
    ) -> dict[str, Any]:
        """Return constructor arguments that are forecasters, read by `restore`."""
        return {}

    @classmethod
    def _update_header(cls, header: dict[str, Any]) -> None:
        """Update the header of an earlier format to the current one, in place."""
        header["params"].setdefault("holidays", None)
        header["params"].setdefault("strict", False)
        header["params"].setdefault("support", "real")
        added: dict[str, Any] = {"closed": [], "weekmask": "1111100", "calendar_span": []}
        added |= {"row_times": [], "categories": [], "ignored": []}
        added |= {"date_order": None, "decimal": None, "strict": False}
        header["layout"] = added | header["layout"]


def check_argument_names(cls: Any, header: dict[str, Any]) -> None:
    """Check the names of arguments in a file, and of those that are tuples.

    A header of an earlier format is updated first, in place: each class adds new arguments in
    `_update_header`, with values that keep the behaviour of that format.
    """
    params = header["params"]
    if header.get("format", FORMAT) < FORMAT:
        cls._update_header(header)
    # No optional names: a release that adds an argument raises FORMAT and extends _update_header.
    record(dict.fromkeys(cls._get_param_names(), _bounded))(params, "params")
    for name in header["tuples"]:
        if name not in params or not isinstance(params[name], list):
            raise refuse("tuples", "names of arguments that are lists", name)
    for name in cls.not_saved:
        one_of(None)(params[name], f"params.{name}")


def _bounded(value: Any, place: str) -> None:
    """Check that integers in an argument fit 64 bits."""
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


# Fields and arguments of all forecasters.
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
    "holidays": optional(
        record({"places": listed(text), "columns": listed(text), "version": text})
    ),
    "notes": listed(text),
    "supports": listed(support_kind),
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
    "freq": lambda value, place: _frequency(value, place),
    "strict": one_of(False, True),
    "support": lambda value, place: None if value == "auto" else support_kind(value, place),
    "random_state": optional(integer(0)),
}
# Arguments of some forecasters.
SOME: dict[str, Kind] = {
    "n_simulations": integer(1, MOST_DRAWS),
    "n_jobs": optional(integer(-MOST_JOBS, MOST_JOBS)),
}


def saved_arguments(header: dict[str, Any]) -> dict[str, Any]:
    """Return constructor arguments from a header, with tuples, which JSON writes as lists."""
    tuples = {name: tuple(header["params"][name]) for name in header.get("tuples", ())}
    freq = header["params"].get("freq")
    custom = {"freq": pd.offsets.CustomBusinessDay(**freq)} if isinstance(freq, dict) else {}
    return header["params"] | tuples | custom


def _frequency_as_json(value: Any) -> Any:
    """Return a pandas offset as JSON values, other arguments unchanged."""
    if isinstance(value, pd.offsets.CustomBusinessDay):
        weekmask = "".join("01"[int(is_open)] for is_open in value.calendar.weekmask)
        return {"weekmask": weekmask, "holidays": value.calendar.holidays.astype(str).tolist()}
    return value.freqstr if isinstance(value, pd.offsets.BaseOffset) else value


def _frequency(value: Any, place: str) -> None:
    if not isinstance(value, dict):
        return optional(_name)(value, place)
    record({"weekmask": text, "holidays": listed(text)})(value, place)
    with as_saved(place):
        pd.offsets.CustomBusinessDay(**value)


def arguments_of(estimator: Any) -> dict[str, Any]:
    """Return constructor arguments of the fit as JSON values, and the names of tuples.

    Before a fit they are the current ones. Arguments in `not_saved` and generators become None,
    `verbose` becomes 0. `saved_arguments` is the inverse.
    """
    params = estimator.arguments_.as_dict() | dict.fromkeys(estimator.not_saved)
    params |= {"verbose": 0} if "verbose" in params else {}  # belongs to the session, not the model
    generators = np.random.Generator | np.random.RandomState
    values = {
        name: None if isinstance(value, generators) else plain(_frequency_as_json(value), name)
        for name, value in params.items()
    }
    return {"params": values, "tuples": [k for k, v in params.items() if isinstance(v, tuple)]}
