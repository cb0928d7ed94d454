"""Plots; the only place that knows matplotlib."""

from tsrnn.plotting._contributions import plot_contributions
from tsrnn.plotting._correlations import plot_correlations
from tsrnn.plotting._feature_history import plot_feature_history
from tsrnn.plotting._features import plot_features
from tsrnn.plotting._forecast import plot_forecast
from tsrnn.plotting._lag_curves import plot_lag_curves

__all__ = [
    "plot_contributions",
    "plot_correlations",
    "plot_feature_history",
    "plot_features",
    "plot_forecast",
    "plot_lag_curves",
]
