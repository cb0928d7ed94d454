"""What cannot be exported, said before anything is done."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from tsrnn.contract import check_levels
from tsrnn.forecasters import RecurrentForecaster


def checked_forecaster(forecaster: Any) -> RecurrentForecaster:
    """A fitted forecaster that can be exported.

    Raises
    ------
    TypeError
        If it is no recurrent network.
    ValueError
        If its layers cannot be exported.
    sklearn.exceptions.NotFittedError
        Before `fit`.
    """
    if not isinstance(forecaster, RecurrentForecaster):
        advice = "Keep it by save and tsrnn.load"
        if hasattr(forecaster, "to_rnn"):
            advice = "to_rnn() gives it as a module of torch; or keep it by save and tsrnn.load"
        raise TypeError(
            "forecasters that are recurrent networks can be exported, such as ParaRNNForecaster; "
            f"got {type(forecaster).__name__}. {advice}"
        )
    check_is_fitted(forecaster, "memory_")
    if forecaster.settings_.layer == "BlockRecurrentAttention":
        raise ValueError(
            "cell='attention' cannot be exported: what it does in a step depends on its state. Fit "
            "with cell='rnn', 'gru' or 'lstm', or keep it by save and tsrnn.load"
        )
    return forecaster


def checked_levels(forecaster: RecurrentForecaster, level: Any) -> list[float]:
    """Levels of the intervals that the program gives.

    Raises
    ------
    TypeError, ValueError
        If one is no percentage, or they are those of Student's distribution.
    """
    levels = [float(value) for value in check_levels(level)]
    if levels and forecaster.settings_.intervals == "student-t":
        raise ValueError(
            "quantiles of intervals='student-t' are no operator of torch or ONNX, so that its "
            "intervals cannot be exported. Leave level out, or fit with intervals='quantile'"
        )
    return levels
