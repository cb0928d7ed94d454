"""Means whose model is chosen among candidates, unit by unit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tsrnn.contract import check_is_fitted
from tsrnn.linear._base import MeanForecaster


class ChosenModels(MeanForecaster):
    """Results of a family with `models`, whose constants are "model" and "aicc"."""

    @property
    def models_(self) -> pd.Series:
        """Model of each unit, such as "ETS(A, N, N)"; empty for one that could not be fitted."""
        check_is_fitted(self)
        family: Any = self.fitted_.family
        numbers = self.fitted_.constants["model"]
        titles = [family.models[int(i)].title if np.isfinite(i) else "" for i in numbers]
        return self._series(np.array(titles, object), "model")

    @property
    def candidates_(self) -> pd.DataFrame:
        """Corrected criterion (AICc) at the end of the search, a column per model.

        Searches that can no longer be the best stop early. Infinite if a series is too short for a
        model, or not positive where it must be.
        """
        check_is_fitted(self)
        family: Any = self.fitted_.family
        titles = [model.title for model in family.models]
        return pd.DataFrame(self.fitted_.constants["aicc"], self.units_, titles, copy=True)
