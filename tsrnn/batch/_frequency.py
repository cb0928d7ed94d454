"""One frequency for all series of a run."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tsrnn.batch._request import Request, with_numbers
from tsrnn.batch._rows import FrameRows
from tsrnn.data import read_panel

__all__ = ["SERIES", "common_freq"]

SERIES = 50  # that the frequency is told of


def common_freq(frame: Any, request: Request) -> Any:
    """The most common frequency of the first series of a frame; None if none can be told.

    Without it a series of another frequency, alone in its partition, would be forecast at its
    own.
    """
    rows = FrameRows(frame, request.id_col, request.columns)
    found: Counter[Any] = Counter()
    for name in rows.ids[:SERIES]:
        try:
            panel = read_panel(
                with_numbers(rows.part([name])(), request.texts, request.decimal),
                target=request.targets,
                id_col=request.id_col,
                time_col=request.time_col,
                missing="keep",
            )
        except (TypeError, ValueError):
            continue
        found[panel.freq] += 1
    return found.most_common(1)[0][0] if found else None
