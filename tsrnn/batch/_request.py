"""Request for every partition: a model, a horizon, levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from tsrnn.contract import Classical, Forecaster, check_levels, last_step, positive_integer
from tsrnn.data import CsvFormat, holds_labels, quote, quoted

__all__ = ["Request", "check_zone", "make_request", "with_numbers", "zone_of"]


@dataclass(frozen=True)
class Request:
    """Checked request.

    If `fitted`, the model is used as it is; otherwise a clone is fitted to each partition. `h` is
    None for the model's own horizon; `texts` and `future_texts` are numeric columns of the data and
    of the steps ahead that arrive as text from CSV files; the `zone` of all timestamps is None
    without one.
    """

    model: Any
    fitted: bool
    h: int | None
    levels: list[float]
    texts: tuple[str, ...] = ()
    future_texts: tuple[str, ...] = ()
    sep: str = ","
    decimal: str = "."
    zone: str | None = None

    @property
    def id_col(self) -> str:
        """Column with the ids of the series."""
        return str(getattr(self._arguments, "id_col", "unique_id"))

    @property
    def time_col(self) -> str:
        """Column with the timestamps."""
        return str(getattr(self._arguments, "time_col", "ds"))

    @property
    def targets(self) -> list[Any]:
        """Columns that are forecast."""
        if (data := self._fitted_data()) is not None:
            return list(data.layout.target_names)
        target = getattr(self._arguments, "target", None)
        if target is None:
            return ["y"]
        return list(target) if isinstance(target, list | tuple) else [target]

    @property
    def columns(self) -> list[Any] | None:
        """Columns that the model reads; None if unknown, as for a pipeline."""
        if last_step(self.model) is not self.model or not isinstance(self.model, Forecaster):
            return None
        data = self._fitted_data()
        exogenous = _names(self.model.known_ahead) if data is None else data.given_columns
        return [self.id_col, self.time_col, *self.targets, *exogenous]

    @property
    def future_columns(self) -> list[Any] | None:
        """Columns of the steps ahead, ids and timestamps included."""
        if self.columns is None:
            return None
        data = self._fitted_data()
        ahead = _names(self.model.known_ahead) if data is None else data.given_ahead
        return [self.id_col, self.time_col, *ahead]

    @property
    def whole_ids(self) -> bool:
        """True if ids in CSV files are whole numbers, like the ids fitted to."""
        data = self._fitted_data()
        return data is not None and data.ids.dtype.kind in "iu"

    def with_freq(self, freq: Any) -> Request:
        """Return the same request for series of one frequency."""
        model = clone(self.model)
        last_step(model).set_params(freq=freq)
        return replace(self, model=model)

    def ask(self, frame: Any, future: Any) -> tuple[Any, Any]:
        """Forecasts of the series of a frame, and the model fitted to them, if any."""
        frame = with_numbers(frame, self.texts, self.decimal, self.targets)
        given: dict[str, Any] = {"h": self.h, "level": self.levels or None}
        if future is not None:
            given["X_future"] = with_numbers(future, self.future_texts, self.decimal)
        if self.fitted:
            return self.model.predict(frame, **given), None
        model = clone(self.model).fit(frame)
        steps = last_step(model) is not model  # pipelines need the data again to predict
        return model.predict(*[frame] * steps, **given), model

    @property
    def _arguments(self) -> Any:
        """Arguments of the forecaster, from its fit if fitted."""
        final = last_step(self.model)
        return getattr(final, "arguments_", final)

    def _fitted_data(self) -> Any:
        """Columns and series fitted to; None unless a forecaster of tsrnn was fitted."""
        fitted = getattr(last_step(self.model), "fitted_", None) if self.fitted else None
        return getattr(fitted, "data", None)


def make_request(
    model: Any, h: Any, level: Any, X_future: Any, csv: tuple[str, str] = (",", ".")
) -> Request:
    """Check the arguments of a request; `csv` has the separator of fields and the decimal mark."""
    for method in ("fit", "predict"):
        if isinstance(model, type) or not callable(getattr(model, method, None)):
            raise TypeError(
                f"model must be a forecaster with fit and predict, such as ARMA(); got {model!r}"
            )
    final = last_step(model)
    fitted = _is_fitted(final)
    if not fitted and isinstance(final, Forecaster) and not isinstance(final, Classical):
        _check_by_series(final)
    steps = None if h is None else positive_integer("h", h)
    for name, mark in zip(("sep", "decimal"), csv, strict=True):
        if not isinstance(mark, str) or len(mark) != 1:
            raise ValueError(f"{name} must be one character; got {mark!r}")
    if csv[0] == csv[1]:
        raise ValueError(f"sep and decimal must differ; got {csv[0]!r} for both")
    request = Request(model, fitted, steps, check_levels(level), sep=csv[0], decimal=csv[1])
    if request.future_columns is not None:
        ahead = request.future_columns[2:]
        if ahead and X_future is None:
            raise ValueError(
                f"the model uses {quoted(ahead)} of the steps ahead; give them as X_future"
            )
        if not ahead and X_future is not None:
            raise ValueError(
                "X_future was given, but the model has no column known ahead. Leave it out, or "
                "construct the model with known_ahead=[...]"
            )
    return request


def _check_by_series(network: Forecaster) -> None:
    """Refuse a network to be fitted to partitions unless each series has its own."""
    if not getattr(network, "per_series", False):
        raise ValueError(
            f"{type(network).__name__} has one set of parameters for all series and must be "
            "fitted before; got one that is not. Fit it once, to a sample of the series: "
            "model.fit(sample); or construct with per_series=True for a network of each"
        )
    if network.horizon is None:
        raise ValueError(
            "networks by series have one horizon, which is of the shortest series where it is not "
            "given; each partition has another. Construct with horizon="
        )


def zone_of(frame: Any, time_col: str) -> str | None:
    """Time zone of the timestamps of a frame; None without one."""
    if time_col not in frame.columns:
        return None
    dtype = nw.from_native(frame, eager_only=True)[time_col].dtype
    return getattr(dtype, "time_zone", None)


def check_zone(frame: Any, number: int, request: Request) -> None:
    """Refuse a partition with another time zone than the first.

    A column holds one zone: concatenated, timestamps of another one would be converted silently.
    """
    zone = zone_of(frame, request.time_col)
    if zone != request.zone:
        raise ValueError(
            f"all partitions must have timestamps of one time zone; the column "
            f"{quote(request.time_col)} of partition {number} has {zone or 'none'}, that of the "
            f"first rows {request.zone or 'none'}. Convert all to one zone, such as UTC"
        )


def with_numbers(
    frame: Any, texts: tuple[str, ...], decimal: str = ".", targets: Sequence[Any] = ()
) -> Any:
    """Parse numbers in text columns of a polars frame; columns of labels stay text."""
    for name in texts:
        column = frame[name]
        plain = column.str.strip_chars()
        written = plain
        if decimal != ".":  # 1.234 could mean 1234: leave it unparsed rather than guess
            written = plain.str.replace_all(".", "'", literal=True)
            written = written.str.replace_all(decimal, ".", literal=True)
        numbers = written.cast(float, strict=False)
        unread = numbers.is_null() & column.is_not_null()
        wrong = frame.filter(unread & ~plain.is_in(list(CsvFormat.MISSING)))
        if len(wrong) and name not in targets and holds_labels(pd.Series(column.to_list())):
            continue  # text to be coded when the frame is read
        if len(wrong):
            raise TypeError(
                f"the column {quote(name)} must hold numbers; got {quote(wrong[name][0])}. Correct "
                "it, or leave the field empty if the value is missing"
            )
        frame = frame.with_columns(numbers)
    return frame


def _is_fitted(final: Any) -> bool:
    try:
        check_is_fitted(final, "fitted_" if isinstance(final, Forecaster) else None)
    except NotFittedError:
        return False
    return True


def _names(columns: Any) -> list[Any]:
    if columns is None:
        return []
    return list(columns) if isinstance(columns, list | tuple) else [columns]
