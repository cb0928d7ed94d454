"""What all forecasters of sktime that run one of tsrnn have in common."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sktime.datatypes import update_data
from sktime.forecasting.base import BaseForecaster

from tsrnn.contract import level_name
from tsrnn.data import steps_between
from tsrnn.sktime._frames import ID, TIME, exog_names, future_long, rows_at, to_long

# Arguments that say which columns of a frame are what; sktime's y and X say so.
FRAME_ARGUMENTS = ("target", "known_ahead", "static", "id_col", "time_col")


class Adapter(BaseForecaster):
    """A forecaster of sktime that runs one of tsrnn; not to be used by itself.

    A subclass says which one (`_made`). All series of a panel or hierarchy are fitted together.
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
    _y = _X = None  # sktime looks for them where that is set to True

    def _made(self, n_targets: int) -> Any:
        """The forecaster of tsrnn for so many columns, not fitted."""
        raise NotImplementedError

    def _fit(self, y: pd.DataFrame, X: pd.DataFrame | None, fh: Any) -> Adapter:
        self._cur_y, self._cur_X = y, X
        forecaster = self._made(y.shape[1])
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
        found = pd.concat([part.set_axis(columns, axis=1) for part in parts])
        return found if len(parts) == 1 else found.sort_index()

    def _predict_interval(
        self, fh: Any, X: pd.DataFrame | None, coverage: list[float]
    ) -> pd.DataFrame:
        levels = [round(100 * share, 10) for share in coverage]
        ahead = self._ahead(fh, X, [level for level in levels if level > 0] or None)
        rows = rows_at(ahead, self._cur_y, fh.to_absolute_index(self._cutoff))
        columns = [
            f"{base}-{end}-{level_name(level)}" if level > 0 else base
            for base in self._bases()
            for level in levels
            for end in ("lo", "hi")
        ]
        names = self._get_columns(method="predict_interval", coverage=coverage)
        return rows[columns].set_axis(names, axis=1)

    def _bases(self) -> list[Any]:
        """Columns of the point forecasts in a long frame of tsrnn."""
        columns = self._cur_y.columns.tolist()
        return [self.forecaster_.column_name] if len(columns) == 1 else columns

    def _ahead(self, fh: Any, X: pd.DataFrame | None, levels: list[float] | None) -> pd.DataFrame:
        """Forecasts of all steps to the last one of fh, with intervals of some levels."""
        self._check_exog(X)
        h = int(max(fh.to_relative(self._cutoff).to_pandas()))
        lag = self._lag()
        if lag and X is not None:
            raise ValueError(
                f"the series of a panel with X must end at the same time; one ends {lag} steps "
                "before the last. Cut the longer ones, or leave X out"
            )
        past = None if self._is_current() else to_long(*self._known())
        future = None if X is None else future_long(X, self._cur_y)
        return self.forecaster_.predict(past, h=h + lag, level=levels, X_future=future)

    def _check_exog(self, X: pd.DataFrame | None) -> None:
        if X is None and self._cur_X is not None:
            raise ValueError(
                f"the forecaster was fitted with X, columns {self._cur_X.columns.tolist()}; give "
                "X for all steps from the first after the data to the last of fh"
            )
        if X is not None and self._cur_X is None:
            raise ValueError("the forecaster was fitted without X. Leave X out, or fit with it")

    def _is_current(self) -> bool:
        """Whether sktime's cutoff is the end of the data; `update_predict` may set it back."""
        return bool(self._cur_y.index.get_level_values(-1).max() <= self._cutoff[0])

    def _known(self) -> tuple[pd.DataFrame, pd.DataFrame | None]:
        """Rows up to the cutoff."""
        y = self._cur_y
        return y[y.index.get_level_values(-1) <= self._cutoff[0]], self._cur_X

    def _lag(self) -> int:
        """Steps from the end of the shortest series to that of the longest."""
        last = self.forecaster_.memory_.last_times
        zone = getattr(self._cur_y.index.get_level_values(-1), "tz", None)
        ends = np.array([last.min()]), np.array([last.max()])
        return int(steps_between(*ends, self.forecaster_.freq_, zone and str(zone))[0])
