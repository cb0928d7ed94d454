"""Plots of forecasts after the last rows of the series."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from tsrnn.contract._checks import positive_integer
from tsrnn.contract._fitted_data import label_list, series_numbers
from tsrnn.contract._intervals import check_levels
from tsrnn.contract._schema import refuse
from tsrnn.contract._support import Limits
from tsrnn.data import Layout, Panel, panel_frame, quote, steps_ahead

if TYPE_CHECKING:
    from tsrnn.contract._base import Forecaster

SHOWN = 4  # panels by default
SHORTEST = 40  # least number of rows of history by default


def draw_forecasts(
    forecaster: Forecaster[Any],
    X: Any,
    h: int | None,
    level: Any,
    X_future: Any,
    series: Any,
    columns: Any,
    last: int | None,
    ax: Any,
) -> np.ndarray:
    """Draw history and forecasts; arguments as in `Forecaster.plot`."""
    # Import here: matplotlib is loaded only for a plot.
    from tsrnn.plotting import plot_forecasts

    h = forecaster.horizon_ if h is None else positive_integer("h", h)
    levels = check_levels(level)
    panel = None if X is None else forecaster._read(X)
    fitted = forecaster.fitted_
    every = forecaster.state_.ids if panel is None else panel.ids
    layout = replace(fitted.data.layout, backend="pandas")
    if layout.time_kind == "datetime":  # an axis of dates even for dates in digits
        layout = replace(layout, time_dtype="datetime64[ns]")
    room = SHOWN if ax is None else len(label_list(ax))
    points = _point_columns(forecaster, layout)
    chosen = points[:room] if columns is None else label_list(columns)
    shown = _chosen_series(every, layout, series, max(room // max(len(chosen), 1), 1))
    if panel is None:
        state = forecaster.state_.select(shown)
        if not forecaster._history.most:
            raise ValueError(
                f"of its {len(every)} series the model keeps no rows to draw; give those of some "
                "as X, as in plot(df, h=12)"
            )
        past = forecaster._history.frame(shown, state.ids, layout)
        limits = Limits(fitted.data.zero_shares[shown], fitted.data.supports)
    else:
        panel = panel.select(every[shown])
        state, limits = forecaster._filter(panel), fitted.limits(panel)
        times = panel.times
        if layout.irregular:  # forecasts have no dates: an axis of steps
            times = _steps_back(panel.lengths)
        past = panel_frame(replace(panel, times=times, layout=layout))
    frame = forecaster._forecast_frame(state, h, levels, X_future, limits, layout)
    if isinstance(frame, pd.Series) and frame.name is None:
        frame = frame.rename(points[0])
    note = ""
    if columns is None and len(chosen) < len(points):
        note = f"{len(chosen)} of {len(points):,} columns; name others by columns="
    elif series is None and len(shown) < len(every):
        note = f"{len(shown)} of {len(every):,} series; name others by series="
    return plot_forecasts(
        past,
        frame,
        ax,
        columns=chosen,
        series=None if layout.id_col is None else list(state.ids),
        last=max(4 * h, SHORTEST) if last is None else last,
        note=note,
        outliers=forecaster._outlier_rows(state, layout),
        id_col=layout.id_col or forecaster.arguments_.id_col,
        time_col=str(layout.time_col or forecaster.arguments_.time_col),
        target_col=str(layout.target_names[0]),
    )


def _point_columns(forecaster: Forecaster[Any], layout: Layout) -> list[Any]:
    """Return the names of the columns of point forecasts in `write_frame`."""
    alone = layout.kind == "long" and len(layout.target_names) == 1
    unnamed = layout.kind == "series" and layout.series_name is None
    return [forecaster.column_name] if alone or unnamed else list(layout.target_names)


def _chosen_series(ids: pd.Index, layout: Layout, series: Any, room: int) -> np.ndarray:
    """Numbers of the series asked for, by default of the first ones."""
    if series is None:
        return np.arange(min(room, len(ids)))
    if layout.id_col is None:
        raise ValueError(
            "series selects from data with an id column, which these have not; choose columns "
            f"among {quote(list(layout.target_names))} by columns="
        )
    return series_numbers(ids, series, "series")


LONGEST = 500  # rows of a series in a history
MOST = 200_000  # values of all series together: 3 MB with their times
FEWEST = 10  # rows of a series below which a plot is not worth the memory


@dataclass(frozen=True, eq=False)
class History:
    """Last rows of the targets of S series; empty for very many series.

    At most `most` rows are kept per series, 0 for none: `values` is a list of S arrays of shape (<=
    most, C), `times` of shape (<= most,).
    """

    most: int
    values: list[np.ndarray]
    times: list[np.ndarray]

    @classmethod
    def empty(cls) -> Self:
        """Return a history that keeps no rows."""
        return cls(0, [], [])

    @classmethod
    def of(cls, panel: Panel) -> Self:
        """Return the last rows of a panel."""
        most = min(LONGEST, MOST // max(panel.values.shape[1] * panel.n_series, 1))
        if most < FEWEST:
            return cls.empty()
        tail = panel.tail(most)
        values, times = (_pieces(rows.copy(), tail.indptr) for rows in (tail.values, tail.times))
        return cls(most, values, times)

    def followed_by(self, series: np.ndarray, panel: Panel) -> History:
        """Append rows to the given series."""
        if not self.most:
            return self
        values, times = list(self.values), list(self.times)
        for i, low, high in zip(series, panel.indptr[:-1], panel.indptr[1:], strict=True):
            values[i] = np.concatenate([values[i], panel.values[low:high]])[-self.most :]
            times[i] = np.concatenate([times[i], panel.times[low:high]])[-self.most :]
        return History(self.most, values, times)

    def frame(self, series: np.ndarray, ids: pd.Index, layout: Layout) -> pd.DataFrame | pd.Series:
        """Return the rows of the given series, with ids `ids`, in the shape of the data."""
        lengths = [len(self.times[i]) for i in series]
        values = np.concatenate([self.values[i] for i in series])
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        times = np.concatenate([self.times[i] for i in series])
        if layout.irregular:
            times = _steps_back(np.array(lengths))
        return panel_frame(Panel(values, indptr, ids, times, values[:, :0], (), layout))

    def arrays(self, n_targets: int) -> dict[str, np.ndarray]:
        """Return the arrays of a file."""
        times = [stamps.astype("int64") for stamps in self.times]
        return {
            "history.values": np.concatenate([np.zeros((0, n_targets)), *self.values]),
            "history.times": np.concatenate([np.zeros(0, "int64"), *times]),
            "history.lengths": np.array([self.most, *map(len, self.times)]),
        }

    @staticmethod
    def shapes(n_targets: int) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Return dtype and shape of the arrays of a file."""
        return {
            "history.values": ("float64", (-1, n_targets)),
            "history.times": ("int64", (-1,)),
            "history.lengths": ("int64", (-1,)),
        }

    @classmethod
    def revived(cls, arrays: dict[str, np.ndarray], times_dtype: str, n_series: int) -> Self:
        """Rebuild the history of `n_series` series from `arrays` of a file."""
        rows = [len(arrays["history.values"]), len(arrays["history.times"])]
        most, *lengths = arrays["history.lengths"].tolist() or [-1]
        if not (
            0 <= most <= LONGEST
            and len(lengths) == (n_series if most else 0)
            and all(0 <= length <= most for length in lengths)
            and rows == [sum(lengths)] * 2
        ):
            required = f"rows to keep and those of each of {n_series} series, {rows} in all"
            raise refuse("the array 'history.lengths'", required, [most, *lengths[:8]])
        if not most:
            return cls.empty()
        ends = np.concatenate([[0], np.cumsum(lengths)])
        times = arrays["history.times"].astype(times_dtype)
        return cls(most, _pieces(arrays["history.values"], ends), _pieces(times, ends))


def _steps_back(lengths: np.ndarray) -> np.ndarray:
    """Return datetimes that stand for steps up to the last row of each series, 0 at the last."""
    return np.concatenate([steps_ahead(np.arange(1 - length, 1)) for length in lengths])


def _pieces(rows: np.ndarray, indptr: np.ndarray) -> list[np.ndarray]:
    """Split rows by series, ten times as fast as np.split for thousands."""
    return [rows[low:high] for low, high in pairwise(indptr.tolist())]
