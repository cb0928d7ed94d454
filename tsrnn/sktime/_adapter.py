"""Adapter of forecasters to sktime, with conversions of sktime's containers."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sktime.datatypes import update_data
from sktime.forecasting.base import BaseForecaster

from tsrnn.contract import level_name
from tsrnn.data import are_dates, quote, steps_between

ID, TIME = "sktime instance", "sktime time"  # columns of the long frame
# Arguments for the roles of columns, which sktime's y and X determine.
FRAME_ARGUMENTS = ("target", "known_ahead", "static", "id_col", "time_col")


class Adapter(BaseForecaster):
    """Abstract forecaster of sktime that runs the forecaster returned by `_forecaster`.

    All series of a panel or hierarchy are fitted together.
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": ["tsrnn developers"],
        "maintainers": ["tsrnn developers"],
        "y_inner_mtype": ["pd.DataFrame", "pd-multiindex", "pd_multiindex_hier"],
        "X_inner_mtype": ["pd.DataFrame", "pd-multiindex", "pd_multiindex_hier"],
        "capability:multivariate": True,
        "capability:exogenous": True,
        "capability:categorical_in_X": False,
        "capability:non_contiguous_X": False,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:update": True,
        "capability:missing_values": False,
        "requires-fh-in-fit": False,
        "X-y-must-have-same-index": False,
    }
    _config: ClassVar[dict[str, Any]] = {"remember_data": False}  # `_cur_y` and `_cur_X` are kept
    _y = _X = None  # sktime reads them if remember_data is set to True

    def _forecaster(self, n_targets: int) -> Any:
        """Unfitted forecaster of tsrnn for `n_targets` columns."""
        raise NotImplementedError

    def _fit(self, y: pd.DataFrame, X: pd.DataFrame | None, fh: Any) -> Adapter:
        self._cur_y, self._cur_X = y, X
        forecaster = self._forecaster(y.shape[1])
        check_no_dates(y.index.get_level_values(-1), getattr(forecaster, "freq", None))
        forecaster.set_params(
            target=y.columns.tolist(),
            known_ahead=None if X is None else exog_names(X, y),
            id_col=ID,
            time_col=TIME,
        )
        self.forecaster_ = forecaster.fit(to_long(y, X))
        return self

    def _update(
        self, y: pd.DataFrame, X: pd.DataFrame | None = None, update_params: bool = True
    ) -> Adapter:
        new = y[~y.index.isin(self._cur_y.index)]
        whole = update_data(self._cur_y, y)
        exog = self._cur_X if X is None else update_data(self._cur_X, X)
        if update_params:
            return self._fit(whole, exog, None)
        self._check_unchanged(y)
        if len(new):
            # copies of the adapter share the forecaster
            self.forecaster_ = copy.copy(self.forecaster_).update(to_long(new, X))
        self._cur_y, self._cur_X = whole, exog
        return self

    def _check_unchanged(self, y: pd.DataFrame) -> None:
        old = y[y.index.isin(self._cur_y.index)]
        known = self._cur_y.loc[old.index]
        changed = ~np.isclose(old.to_numpy(float), known.to_numpy(float), equal_nan=True).all(1)
        if changed.any():
            raise ValueError(
                f"update_params=False takes in new rows; {changed.sum()} rows that are known came "
                f"with other values, the first at {old.index[changed][0]}. Take "
                "update_params=True, which fits again, or leave them out"
            )

    def _predict(self, fh: Any, X: pd.DataFrame | None) -> pd.DataFrame:
        times = fh.to_absolute_index(self._cutoff)
        later = np.asarray(times > self._cutoff[0])
        parts = []
        if not later.all():
            fitted = self.forecaster_.fittedvalues(df=to_long(self._cur_y, self._cur_X))
            parts.append(rows_at(fitted, self._cur_y, times[~later]))
        if later.any():
            ahead = self._ahead(fh, X, None)
            parts.append(rows_at(ahead, self._cur_y, times[later]))
        columns = self._cur_y.columns
        forecasts = pd.concat([part.set_axis(columns, axis=1) for part in parts])
        return forecasts if len(parts) == 1 else forecasts.sort_index()

    def _predict_interval(
        self, fh: Any, X: pd.DataFrame | None, coverage: list[float]
    ) -> pd.DataFrame:
        # Rounded, because 100 * 0.55 is 55.00000000000001
        levels = [round(100 * share, 10) for share in coverage]
        ahead = self._ahead(fh, X, [level for level in levels if level > 0] or None)
        rows = rows_at(ahead, self._cur_y, fh.to_absolute_index(self._cutoff))
        columns = self._cur_y.columns.tolist()
        bases = [self.forecaster_.column_name] if len(columns) == 1 else columns
        columns = [
            f"{base}-{end}-{level_name(level)}" if level > 0 else base
            for base in bases
            for level in levels
            for end in ("lo", "hi")
        ]
        names = self._get_columns(method="predict_interval", coverage=coverage)
        return rows[columns].set_axis(names, axis=1)

    def _ahead(self, fh: Any, X: pd.DataFrame | None, levels: list[float] | None) -> pd.DataFrame:
        """Forecasts of all steps up to the last one of fh, with intervals at `levels`."""
        self._check_exog(X)
        h = int(max(fh.to_relative(self._cutoff).to_pandas()))
        lag = self._lag()
        if lag and X is not None:
            raise ValueError(
                f"the series of a panel with X must end at the same time; one ends {lag} steps "
                "before the last. Cut the longer ones, or leave X out"
            )
        past, y = None, self._cur_y
        times = y.index.get_level_values(-1)
        if times.max() > self._cutoff[0]:  # `update_predict` moves the cutoff back
            past = to_long(y[times <= self._cutoff[0]], self._cur_X)
        future = None if X is None else future_long(X, self._cur_y)
        return self.forecaster_.predict(past, h=h + lag, level=levels, X_future=future)

    def _check_exog(self, X: pd.DataFrame | None) -> None:
        if X is None and self._cur_X is not None:
            raise ValueError(
                f"the forecaster was fitted with X, columns {quote(self._cur_X.columns.tolist())}; "
                "give X for all steps from the first after the data to the last of fh"
            )
        if X is not None and self._cur_X is None:
            raise ValueError("the forecaster was fitted without X. Leave X out, or fit with it")

    def _lag(self) -> int:
        """Number of steps between the earliest and the latest end of a series."""
        last = self.forecaster_.state_.last_times
        zone = getattr(self._cur_y.index.get_level_values(-1), "tz", None)
        ends = np.array([last.min()]), np.array([last.max()])
        grid = self.forecaster_.fitted_.data.layout.grid
        return int(steps_between(*ends, grid, zone and str(zone))[0])


def check_no_dates(times: pd.Index, freq: Any) -> None:
    """Refuse integer dates, which sktime treats as consecutive integers."""
    counted = isinstance(freq, int | np.integer)
    if not counted and pd.api.types.is_integer_dtype(times.dtype) and are_dates(times):
        raise ValueError(
            f"sktime counts whole numbers one by one, and the times {times.min()} to {times.max()} "
            "can be dates. Give dates as a PeriodIndex or a DatetimeIndex; if the times count "
            "steps, give freq=1"
        )


def instances(y: pd.DataFrame) -> tuple[np.ndarray, pd.Index | None, list[str]]:
    """Series of sktime data, identified by all index levels except the last.

    Numbers (n,) of the series of each row; labels (S,), None for a single series without label; and
    the labels as text, the ids of the long frame, or column names without label.
    """
    if not isinstance(y.index, pd.MultiIndex):
        return np.zeros(len(y), np.intp), None, [", ".join(map(str, y.columns))]
    series = y.index.droplevel(-1)
    labels = series.drop_duplicates()
    return labels.get_indexer(series), labels, [str(label) for label in labels]


def to_long(y: pd.DataFrame, X: pd.DataFrame | None = None) -> pd.DataFrame:
    """Long frame of y, with the rows of X at the same index."""
    data = y
    if X is not None:
        lacking = y.index.difference(X.index)
        if len(lacking):
            raise ValueError(
                f"X must have a row for every row of y; {len(lacking)} are missing, the first at "
                f"{lacking[0]}. Add them"
            )
        data = pd.concat([y, X.loc[y.index].set_axis(exog_names(X, y), axis=1)], axis=1)
    codes, _, names = instances(y)
    frame = data.reset_index(drop=True)
    frame.insert(0, TIME, y.index.get_level_values(-1))
    frame.insert(0, ID, np.array(names, dtype=object)[codes])
    return frame


def future_long(X: pd.DataFrame, y: pd.DataFrame) -> pd.DataFrame:
    """Long frame of X, with the ids of y."""
    frame = to_long(X.set_axis(exog_names(X, y), axis=1))
    return frame if isinstance(X.index, pd.MultiIndex) else frame.assign(**{ID: instances(y)[2][0]})


def exog_names(X: pd.DataFrame, y: pd.DataFrame) -> list:
    """Column names of X that differ from those of y, since sktime allows equal names."""
    return [f"X[{quote(name)}]" if name in y.columns else name for name in X.columns]


def rows_at(frame: pd.DataFrame, y: pd.DataFrame, times: pd.Index) -> pd.DataFrame:
    """Rows of a long frame at given times of every series of y, with a sktime index."""
    _, labels, names = instances(y)
    wanted = pd.MultiIndex.from_product([names, times])
    places = pd.MultiIndex.from_arrays([frame[ID], pd.Index(frame[TIME])]).get_indexer(wanted)
    if np.any(places < 0):
        name, time = wanted[int(np.argmax(places < 0))]
        raise ValueError(
            f"fh must name times of the data or steps after them; there is none at {time} of the "
            f"series {quote(name)}"
        )
    rows = frame.iloc[places].drop(columns=[ID, TIME])
    if labels is None:
        return rows.set_axis(times, axis=0)
    # Product of labels and times, with the level names of y
    levels = [labels.get_level_values(i).repeat(len(times)) for i in range(labels.nlevels)]
    levels.append(times.take(np.tile(np.arange(len(times)), len(labels))))
    return rows.set_axis(pd.MultiIndex.from_arrays(levels, names=y.index.names), axis=0)
