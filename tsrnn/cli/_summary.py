"""``tsrnn summary``."""

from __future__ import annotations

from typing import Any

from tsrnn.cli import _options as o


def summary(model: o.ModelFile, json: o.Json = False) -> str:
    """What a saved model is; see `SUMMARY`."""
    from tsrnn.cli._models import load_forecaster

    fitted = load_forecaster(model)
    page = str(fitted.summary())
    return _document(fitted, page) if json else f"{page.rstrip()}\n"


def _document(fitted: Any, page: str) -> str:
    from tsrnn.cli._output import document
    from tsrnn.contract import arguments_of
    from tsrnn.data import write_stamps

    layout, exog = fitted._panel_shape
    last = write_stamps(fitted.memory_.last_times, layout)
    return document(
        "summary",
        model=type(fitted).__name__,
        arguments=arguments_of(fitted)["params"],
        freq=fitted.freq_,
        horizon=fitted.horizon_,
        targets=list(layout.target_names),
        exogenous=list(exog),
        known_ahead=list(fitted.known_ahead_),
        series=[
            {"id": name, "last_time": time}
            for name, time in zip(fitted.memory_.ids, last, strict=True)
        ],
        summary=page,
    )
