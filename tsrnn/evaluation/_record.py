"""Record of a backtest: the outcome of each model in each window, kept in a file."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tsrnn.contract import file_place, forecast_suffixes, put_file
from tsrnn.data import load_polars
from tsrnn.evaluation._windows import Plan, series_names

_KEY = "tsrnn_backtest"
_POINT = "forecast"  # the column of the suffix ""


class Outcome(NamedTuple):
    """Forecasts (S, h, C) of a model in one window, by suffix, or the error that it raised.

    `lost` has the series without a forecast: place in `series_names` and reason.
    """

    forecasts: dict[str, np.ndarray]
    error: str | None
    seconds: float
    lost: list[tuple[int, str]]


class Record:
    """Outcomes by model and window, kept in a parquet file if there is a path.

    The file has a row for each model, window, series, target and step; its metadata identify the
    backtest and have the seconds of each window. It is renamed from a temporary file: after a
    window if the last write took less than a tenth of the time since, and on leaving the ``with``
    block. Windows in which a model failed are left out. The file of another backtest, or of a model
    of that name with other arguments, is refused.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, plan: Plan, models: Mapping[str, Any]
    ) -> None:
        self._path = None if path is None else file_place(path)
        self._plan = plan
        self._outcomes: dict[tuple[str, int], Outcome] = {}
        self._parts: dict[tuple[str, int], Any] = {}
        self._written, self._cost, self._behind = time.perf_counter(), 0.0, False
        if self._path is None:
            return
        self._identity = _identify(plan)
        self._arguments = {name: _digest(_describe(name, model)) for name, model in models.items()}
        load_polars()
        if self._path.exists():
            self._read()

    def __contains__(self, key: tuple[str, int]) -> bool:
        return key in self._outcomes

    def __getitem__(self, key: tuple[str, int]) -> Outcome:
        return self._outcomes[key]

    def add(self, name: str, window: int, outcome: Outcome) -> None:
        """Keep the outcome of a model in a window."""
        self._outcomes[name, window] = outcome
        if self._path is None or outcome.error is not None:
            return
        pl, points = load_polars(), outcome.forecasts
        series, step, target = (i.ravel() for i in np.indices(points[""].shape))
        places = {"series": series, "step": step + 1, "target": target}
        columns = {s.removeprefix("-") or _POINT: values.ravel() for s, values in points.items()}
        keys = pl.lit(name).alias("model"), pl.lit(window).alias("window")
        self._parts[name, window] = pl.DataFrame(places | columns).select(*keys, pl.all())
        self._behind = True
        if time.perf_counter() - self._written > 10 * self._cost:  # a tenth of the time at most
            self._write(self._path)

    def __enter__(self) -> Record:
        return self

    def __exit__(self, *error: object) -> None:
        if self._path is not None and self._behind:
            self._write(self._path)

    def _write(self, path: Path) -> None:
        start = time.perf_counter()
        header = self._identity | {
            "models": self._arguments,
            "windows": [
                [*key, self._outcomes[key].seconds, self._outcomes[key].lost] for key in self._parts
            ],
        }
        table = load_polars().concat(self._parts.values())
        metadata = {_KEY: json.dumps(header)}
        put_file(path, lambda place: table.write_parquet(place, metadata=metadata))
        self._written, self._behind = time.perf_counter(), False
        self._cost = self._written - start

    def _read(self) -> None:
        pl, path = load_polars(), self._path
        try:
            text = pl.read_parquet_metadata(path).get(_KEY)
        except (pl.exceptions.PolarsError, OSError) as why:
            raise ValueError(f"{path} is no parquet file: {why}") from why
        if text is None:
            raise ValueError(f"{path} is not the file of a backtest; give another path")
        header = json.loads(text)
        for field, value in self._identity.items():
            if header.get(field) != value:
                raise ValueError(
                    f"{path} holds a backtest with other {field}; remove it, or give another path"
                )
        for name, digest in header["models"].items():
            if self._arguments.setdefault(name, digest) != digest:
                raise ValueError(
                    f"{path} holds forecasts of a model {name!r} with other arguments; give it "
                    "another name, or another path"
                )
        table = pl.read_parquet(path)
        shape, names = self._plan.actual(0).shape, series_names(self._plan.panel).tolist()
        for name, window, seconds, lost in header["windows"]:
            part = table.filter((pl.col("model") == name) & (pl.col("window") == window))
            forecasts = {
                suffix: part[suffix.removeprefix("-") or _POINT].to_numpy().reshape(shape)
                for suffix in forecast_suffixes(self._plan.levels)
            }
            # files of earlier versions have the names of series, which were text
            places = [i if isinstance(i, int) else names.index(i) for i, _ in lost]
            lost = [(i, reason) for i, (_, reason) in zip(places, lost, strict=True)]
            self._outcomes[name, window] = Outcome(forecasts, None, seconds, lost)
            self._parts[name, window] = part


def _identify(plan: Plan) -> dict[str, Any]:
    """Digest of the data, and the windows and arguments, that identify a backtest."""
    panel = plan.panel
    data = hashlib.sha256()
    for array in (panel.values, panel.exog, panel.indptr, panel.times.astype("int64")):
        data.update(np.ascontiguousarray(array).tobytes())
    data.update(repr((list(panel.ids), panel.target_names, panel.exog_names)).encode())
    return {
        "data": data.hexdigest(),
        "windows or horizon": [plan.n_windows, plan.h, _digest(plan.known.tolist())],
        "refit": plan.refit_every,
        "level": plan.levels,
        "kind": plan.kind,
    }


def _describe(name: str, model: Any) -> str:
    """Text of a model and all its arguments, nested ones included."""
    arguments = {key: repr(value) for key, value in model.get_params(deep=True).items()}
    for key, text in arguments.items():
        if " at 0x" in text:
            raise ValueError(
                f"with path=, arguments must look the same in every process; {key} of {name!r} is "
                f"{text}. Give an integer as random_state; or leave path out"
            )
    return repr((type(model).__name__, sorted(arguments.items())))


def _digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()
