"""One-step forecasts of a fitted forecaster, and of a backtest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tsrnn.contract import Forecaster
from tsrnn.data import Panel, check_continues, read_panel, write_stamps
from tsrnn.evaluation._forecasts import KEYS
from tsrnn.evaluation._plan import units
from tsrnn.evaluation._reading import read_forecasts, suffixes

LEVELS = [20.0, 40.0, 60.0, 80.0]  # their ends and the median are the deciles


def first_steps(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of a backtest that are one step ahead."""
    absent = [column for column in KEYS if column not in frame.columns]
    if absent:
        raise ValueError(
            f"a backtest has the columns {', '.join(KEYS)}; missing {', '.join(absent)}. Give "
            "what backtest returned, or a fitted forecaster and rows that follow its data"
        )
    place = pd.Series(pd.factorize(frame["unique_id"])[0], frame.index)
    rows = frame.assign(_place=place).sort_values(["_place", "cutoff", "ds"], kind="stable")
    rows = rows.drop_duplicates(["_place", "cutoff"])
    return rows.drop(columns="_place").reset_index(drop=True)


def steps_apart(frame: pd.DataFrame) -> int:
    """Steps from one cutoff of a backtest to the next; 1 where there is one cutoff a series.

    Read from the frame, where it was not kept: rows of a window up to the next cutoff.
    """
    kept = frame.attrs.get("backtest", {}).get("step_size")
    if kept is not None:
        return int(kept)
    cutoffs = frame.groupby("unique_id", sort=False)["cutoff"].unique()
    for unit, own in cutoffs.items():
        if len(own) > 1:
            first, second = np.sort(own)[:2]
            window = frame[(frame["unique_id"] == unit) & (frame["cutoff"] == first)]
            return max(1, int((window["ds"] <= second).sum()))
    return 1


def one_step(model: Forecaster, df: Any) -> pd.DataFrame:
    """Forecasts of every row of df from those before it, as a backtest gives them.

    Raises
    ------
    ValueError
        If the series have not as many rows each, or do not follow what the model knows.
    """
    panel = _new_rows(model, df)
    check_continues(panel, model.memory_.ids, model.memory_.last_times, model.freq_)
    n = int(panel.lengths[0])
    if np.any(panel.lengths != n):
        raise ValueError(
            f"all series must have as many rows; {panel.ids[0]!r} has {n}, "
            f"{panel.ids[int(np.argmax(panel.lengths != n))]!r} another number. Cut them to the "
            "shortest"
        )
    times, layout = panel.times.reshape(-1, n), panel.layout
    made = model.predict_rolling(df, h=1, level=LEVELS).drop(columns="cutoff")
    found = read_forecasts(made, layout, panel.ids, times, suffixes(LEVELS))
    tidy: dict[str, Any] = {
        "unique_id": units(panel).repeat(n),
        "ds": write_stamps(np.repeat(times, len(layout.target_names), 0).ravel(), layout),
    }
    tidy["cutoff"] = tidy["ds"]  # each row has an origin of its own
    tidy["y"] = panel.values.reshape(panel.n_series, n, -1).swapaxes(1, 2).ravel()
    for suffix, values in found.items():
        tidy[model.column_name + suffix] = values.swapaxes(1, 2).ravel()
    return pd.DataFrame(tidy)


def _new_rows(model: Forecaster, df: Any) -> Panel:
    arguments = model.arguments_
    return read_panel(
        df, target=arguments.target, id_col=arguments.id_col, time_col=arguments.time_col,
        freq=model.freq_, missing=arguments.missing,
    )  # fmt: skip
