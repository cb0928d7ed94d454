"""Stability of recurrence features: how often they return over refits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.contract import (
    Arguments,
    Summary,
    check_is_fitted,
    choice,
    number,
    positive_integer,
    seed_of,
)
from tsrnn.contract import fit_panels_together as fit_panels
from tsrnn.forecasters._recurrent import RecurrentForecaster
from tsrnn.interpret import WIDTH, forecast_features, match_features, recurrence_features, wrapped

READERS: dict[str, Callable[[Any], pd.DataFrame]] = {
    "forecast": forecast_features,
    "network": recurrence_features,
}
QUANTILES = (0.1, 0.9)  # over the refits in which a feature returns
USUAL = 0.5  # share of refits below which a feature belongs to the fit rather than to the data
SHOWN = 10  # features on a page


@dataclass(frozen=True, eq=False, repr=False)
class FeatureStability(Summary):
    """Features of a fit, and how often they return over refits; print it.

    Attributes
    ----------
    features : DataFrame
        Features of the fit, with the columns ``returns``, the share of refits in which a feature
        returns, and ``half_life_lo, half_life_hi, period_lo, period_hi``, quantiles of 10 and 90
        percent over these refits.
    n_refits : int
    n_with_features : int
        Number of refits with features. Refits whose network is dropped have none, and count as
        refits in which no feature returns.
    share_of_rows : float
        Share of the rows in each refit.
    of : {"forecast", "network"}

    Examples
    --------
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.datasets import load_elnino
    >>> from tsrnn.forecasters import feature_stability
    >>> months = load_elnino()[-240:]
    >>> model = ParaRNNForecaster(horizon=12).fit(months)
    >>> stability = feature_stability(model, months, n_refits=5)
    >>> stability.features["returns"][0].item()
    1.0
    """

    features: pd.DataFrame
    n_refits: int
    n_with_features: int
    share_of_rows: float
    of: str

    def as_text(self) -> str:
        """Page as it is printed."""
        unit = self.features.attrs["time_unit"]
        names = ["type", "share", "returns", "half_life", "half_life_lo", "half_life_hi"]
        names += ["period", "period_lo", "period_hi"]
        ranked = self.features.sort_values("share", ascending=False, kind="stable")
        table = ranked[names].head(SHOWN)
        table = table.rename(columns=lambda name: name.replace("half_life", "life"))
        text = table.to_string(index=False, na_rep="-", float_format=lambda v: f"{v:.3g}")
        rare = int((self.features["returns"] < USUAL).sum())
        without = self.n_refits - self.n_with_features
        warning = f" {without} of them have no features." if without else ""
        if rare:
            warning += (
                f" {rare} of {len(self.features)} features return in less than half of them: "
                "they are of this fit, not of the data."
            )
        note = (
            f"{self.n_refits} refits to stretches of {self.share_of_rows:.0%} of the rows, each "
            f"with another random start. Half-lives and periods in {unit}; lo and hi are quantiles "
            f"of 10 and 90 percent over the refits in which a feature returns.{warning}"
        )
        title = "Stability of recurrence features".center(WIDTH).rstrip()
        return "\n".join([title, "=" * WIDTH, text, "=" * WIDTH, wrapped(note, indent=0)])


def feature_stability(
    forecaster: RecurrentForecaster,
    df: Any,
    *,
    n_refits: int = 20,
    of: str = "forecast",
    share_of_rows: float = 0.8,
    random_state: Any = 0,
) -> FeatureStability:
    """Refit a forecaster to stretches of its data, and count how often its features return.

    Each refit takes consecutive rows, at a random position in each series, and another random start
    of the network. Windows, forms and epochs are chosen anew. `tsrnn.interpret.match_features`
    matches the features with the features of the fit. Subsampling (Politis, Romano and Wolf, 1999)
    keeps the season and the memory, which a block bootstrap would break. As stretches overlap,
    features return somewhat too often.

    Parameters
    ----------
    forecaster : fitted forecaster with a recurrent network
        Not changed.
    df : frame
        Data that it was fitted to.
    n_refits : int, default 20
    of : {"forecast", "network"}
        Features of the whole forecast, or of the network's matrices.
    share_of_rows : float, default 0.8
        Share of the rows in each refit, between 0 and 1.
    random_state : int, numpy random generator or None, default 0

    Returns
    -------
    FeatureStability
        Can be given to ``summary(stability=...)``.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the forecaster has not been fitted.
    TypeError, ValueError
        If the forecaster has no features, an argument is not legal, or stretches are too short.

    References
    ----------
    Politis, D. N., Romano, J. P. and Wolf, M. (1999). Subsampling. Springer.

    Examples
    --------
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.datasets import load_elnino
    >>> from tsrnn.forecasters import feature_stability
    >>> months = load_elnino()[-240:]
    >>> model = ParaRNNForecaster(horizon=12).fit(months)
    >>> stability = feature_stability(model, months, n_refits=5)
    >>> stability.n_refits
    5
    """
    if not isinstance(forecaster, RecurrentForecaster):
        raise TypeError(
            "feature_stability refits a forecaster with a recurrent network, such as "
            f"ParaRNNForecaster; got {type(forecaster).__name__}"
        )
    check_is_fitted(forecaster)
    read = READERS[choice("of", of, tuple(READERS))]
    n_refits = positive_integer("n_refits", n_refits)
    part = number("share_of_rows", share_of_rows, lowest=0.0, open_=True, highest=1.0)
    features = read(forecaster)
    panel = forecaster._read_training(df, Arguments.of(forecaster))
    rng = np.random.default_rng(seed_of(random_state))
    lengths = np.maximum((part * panel.lengths).astype(int), 1)
    panels, models = [], []
    for _ in range(n_refits):
        first = rng.integers(panel.lengths - lengths + 1)
        panels.append(panel.between(first, first + lengths))
        models.append({"random_state": int(rng.integers(2**31))})
    refits = fit_panels(forecaster, panels, models)
    tables = []
    for refit in refits:
        try:
            tables.append(read(refit))
        except ValueError:  # no network, or constant forecasts: no feature returns
            continue
    places = np.array([match_features(features, table) for table in tables]).reshape(
        -1, len(features)
    )
    stable = features.assign(returns=(places >= 0).sum(0) / n_refits)
    for name in ("half_life", "period"):
        for quantile, end in zip(QUANTILES, ("lo", "hi"), strict=True):
            values = [
                [t[name].iloc[p] for t, p in zip(tables, column, strict=True) if p >= 0]
                for column in places.T
            ]
            # "nearest", as infinite values cannot be interpolated. Growing features have no
            # half-life, which is NaN.
            stable[f"{name}_{end}"] = [
                np.quantile(known, quantile, method="nearest") if len(known) else np.nan
                for known in (np.array(v)[~np.isnan(v)] for v in values)
            ]
    stable.attrs = features.attrs
    return FeatureStability(stable, n_refits, len(tables), part, of)
