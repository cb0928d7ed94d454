"""Frames to panels, and forecasts to frames: the only gate for pandas and polars.

`read_panel` converts a frame to a `Panel` of arrays. Models use its rows or their `windows`,
standardised by a `Scaler`. `write_frame` returns forecasts in the shape of the frame, which a
`Layout` stores.
"""

from tsrnn.data._calendar import (
    calendar_columns,
    calendar_features,
    calendar_names,
    calendar_phases,
    cycle_steps,
    step_days,
)
from tsrnn.data._categories import Categories, holds_labels
from tsrnn.data._csv import CsvFormat
from tsrnn.data._faults import (
    MissingValuesWarning,
    array_advice,
    listed,
    quote,
    quote_series,
    quoted,
    show_label,
    split_by_series,
    type_advice,
    warn_user,
)
from tsrnn.data._files import DataFiles, dates_or_years, load_polars
from tsrnn.data._frames import (
    array_frame,
    by_row,
    in_library,
    is_array,
    panel_frame,
    row_keys,
    to_pandas,
    to_polars,
    write_frame,
    write_paths,
    write_stamps,
)
from tsrnn.data._frequency import steps_ahead
from tsrnn.data._future import (
    check_continues,
    future_times,
    past_times,
    read_future,
    steps_between,
    times_of_future,
)
from tsrnn.data._holidays import Holidays, load_holidays
from tsrnn.data._missing import without_gaps
from tsrnn.data._month_names import month_number
from tsrnn.data._order import order_of_series
from tsrnn.data._panel import Layout, Panel, windows
from tsrnn.data._read import read_panel, read_series
from tsrnn.data._recognise import Recognised, Written, recognise
from tsrnn.data._scaling import Scaler, log_ratios
from tsrnn.data._table import check_numeric
from tsrnn.data._timestamps import are_dates
from tsrnn.data._trading import with_later_rows
from tsrnn.data._written_dates import looks_like_dates

__all__ = [
    "Categories",
    "CsvFormat",
    "DataFiles",
    "Holidays",
    "Layout",
    "MissingValuesWarning",
    "Panel",
    "Recognised",
    "Written",
    "by_row",
    "in_library",
    "panel_frame",
    "quote",
    "read_panel",
    "split_by_series",
    "windows",
    "write_frame",
]


def __dir__() -> list[str]:
    return sorted(__all__)  # without what other rooms alone import
