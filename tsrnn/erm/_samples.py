"""Samples of sequences as users hold them: arrays whose rows are samples, or lists of sequences."""

from __future__ import annotations

from typing import Any

import numpy as np


def count(samples: Any) -> int:
    """How many there are."""
    shape = getattr(samples, "shape", None)
    return len(samples) if shape is None else int(shape[0])


def take(samples: Any, rows: Any) -> Any:
    """Some of them, by position; of an array an array, of a frame a frame, else a list."""
    rows = np.asarray(rows)
    if hasattr(samples, "iloc"):
        return samples.iloc[rows]
    if hasattr(samples, "shape"):
        return samples[rows]
    return [samples[row] for row in rows]
