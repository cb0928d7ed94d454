"""Base of classical forecasters, that is, all but networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from tsrnn.contract._base import Fit, Forecaster, Result
from tsrnn.contract._checks import (
    check_not_too_large,
    check_not_too_small,
    choice,
    positive_integer,
    seed_of,
    verbosity,
)
from tsrnn.contract._conformal import ARRAYS, ClassicalModel, ConformalIntervals, calibrate
from tsrnn.contract._estimator import Arguments, with_shared_arguments
from tsrnn.contract._fitted import S
from tsrnn.contract._fitted_data import FittedData
from tsrnn.contract._frequency import frequency_defaults
from tsrnn.contract._saved import Restore
from tsrnn.contract._schema import as_saved, refuse
from tsrnn.data import Layout, Panel, quote


@with_shared_arguments
class Classical(Forecaster[S]):
    """Abstract base of forecasters that are not networks.

    Parameters
    ----------
    intervals : {"model", "conformal"}
        Prediction intervals of the model, or conformal ones from the errors of rolling forecasts.
        The model is fitted to the earlier rows and forecasts the last third of the rows, or the
        last `horizon` rows of many series. Conformal intervals take one more fit and do not assume
        the model.
    random_state, verbose
        See `CommonArguments`.
    horizon, target, known_ahead, static, calendar, holidays, id_col, time_col, freq
        See `CommonArguments`.
    missing, strict, support
        See `CommonArguments`.

    Examples
    --------
    >>> from tsrnn import ARMA, ParaRNNForecaster
    >>> from tsrnn.contract import Classical
    >>> [issubclass(model, Classical) for model in (ARMA, ParaRNNForecaster)]
    [True, False]
    """

    takes_exog: ClassVar[bool] = False
    legal_intervals: ClassVar[tuple[str, ...]] = ("model", "conformal")

    def __init__(self, *, intervals: str = "model", **shared: Any) -> None:
        super().__init__(**shared)
        self.intervals = intervals

    def _check(self, arguments: Arguments, panel: Panel) -> None:
        verbosity(arguments.verbose)
        choice("intervals", arguments.intervals, self.legal_intervals)
        check_not_too_small(panel)
        if not isinstance(arguments.random_state, np.random.Generator | np.random.RandomState):
            seed_of(arguments.random_state)
        if panel.exog_columns and not self.takes_exog:
            raise ValueError(
                f"{type(self).__name__} takes no exogenous columns; got "
                f"{quote(list(panel.exog_columns))}. Drop them, or name them as targets"
            )
        self._horizon(arguments, panel.layout)
        super()._check(arguments, panel)

    def _with_intervals(
        self, fits: Sequence[Fit], results: Sequence[Result[S]], *given: Any
    ) -> Sequence[Result[S]]:
        if fits[0][0].intervals != "conformal":
            return results
        calibrated = []
        for fit, (fitted, state) in zip(fits, results, strict=True):
            if not isinstance(fitted, ClassicalModel):
                raise TypeError(
                    "intervals='conformal' needs a fitted model that derives from "
                    f"tsrnn.contract.ClassicalModel; that of {type(self).__name__} does not"
                )
            intervals = self._conformal(fit, fitted, state.target_scale, *given)
            calibrated.append((replace(fitted, conformal=intervals), state))
        return calibrated

    def _conformal(
        self, fit: Fit, fitted: ClassicalModel[S], target_scale: np.ndarray, *given: Any
    ) -> ConformalIntervals:
        """Return conformal intervals from a fit to the earlier rows of a panel."""
        arguments, data, panel = fit

        def fit_earlier(earlier: Panel) -> Result[S]:
            return self._fit_panel(arguments, FittedData.of(earlier, arguments), earlier, *given)

        season = arguments.as_dict().get("season_length") or frequency_defaults(data.layout).season
        # Conditional variances vary over time; mixing in a constant naive error would damp them.
        by_width = "predict_variance" in self.offers
        return calibrate(
            fit_earlier, panel, fitted.horizon, season, fitted.joint, by_width, target_scale
        )

    def _to_file(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        header, arrays = super()._to_file()
        conformal = getattr(self.fitted_, "conformal", None)
        return header, arrays if conformal is None else arrays | conformal.to_file()

    @classmethod
    def _restore(
        cls, header: dict[str, Any], arrays: dict[str, np.ndarray], restore: Restore | None = None
    ) -> Self:
        intervals_of = {name: a for name, a in arrays.items() if name.startswith(ARRAYS)}
        others = {name: array for name, array in arrays.items() if name not in intervals_of}
        forecaster = super()._restore(header, others, restore)
        with as_saved("params"):
            intervals = choice("intervals", header["params"]["intervals"], cls.legal_intervals)
        if intervals_of or intervals == "conformal":
            fitted = forecaster.fitted_
            if not isinstance(fitted, ClassicalModel):
                raise refuse("params.intervals", "those of the model", intervals)
            data = fitted.data
            conformal = ConformalIntervals.from_file(intervals_of, len(data.ids), data.n_targets)
            forecaster.fitted_ = replace(fitted, conformal=conformal)
        return forecaster

    @classmethod
    def _update_header(cls, header: dict[str, Any]) -> None:
        super()._update_header(header)
        header["params"].setdefault("intervals", cls.legal_intervals[0])

    @staticmethod
    def _horizon(arguments: Arguments, layout: Layout) -> int:
        """Return the horizon, by default that of the frequency."""
        given = arguments.horizon
        return positive_integer(
            "horizon", frequency_defaults(layout).horizon if given is None else given
        )

    def _read_frame(self, df: Any, arguments: Arguments, **shape: Any) -> Panel:
        panel = super()._read_frame(df, arguments, **shape)
        check_not_too_large(panel)
        return panel
