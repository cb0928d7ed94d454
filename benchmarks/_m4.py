"""Series of the M4 competition, from its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

LOCAL_COPY = Path(__file__).resolve().parents[2] / "shared" / "data" / "m4"
FILES = {
    "hourly": ("Hourly-train.csv.gz", "Hourly-test.csv.gz", 0),
    "yearly": ("Yearly-train_rebuilt.csv.gz", "Yearly-test.csv.gz", None),
}
FREQUENCY = {"hourly": "h", "yearly": "Y"}
SEASON = {"hourly": 24, "yearly": 1}


def ragged(path: Path, header: int | None) -> dict[str, np.ndarray]:
    """Series by name from rows of unequal length."""
    lines = pd.read_csv(path, header=header, sep="\0", dtype=str).iloc[:, 0]
    cells = (line.replace('"', "").rstrip(",").split(",") for line in lines)
    return {name: np.array(values, float) for name, *values in cells}


def long_frame(series: Mapping[Any, np.ndarray], freq: str | None = None) -> pd.DataFrame:
    """Series by name as a long frame; all begin on one day, or rows are numbered without `freq`.

    The competition gives no usable dates.
    """
    longest = max(map(len, series.values()))
    if freq is None:
        times: Any = np.arange(longest)
    elif freq == "Y":
        times = pd.period_range("1100", periods=longest, freq=freq)
    else:
        times = pd.date_range("2000-01-01", periods=longest, freq=freq)
    lengths = [len(values) for values in series.values()]
    return pd.DataFrame(
        {
            "unique_id": np.repeat(list(series), lengths),
            "ds": times[np.concatenate([np.arange(n) for n in lengths])],
            "y": np.concatenate(list(series.values())),
        }
    )
