"""Plots; the only place that knows matplotlib."""

from tsrnn.plotting._architectures import plot_architectures
from tsrnn.plotting._backtest import plot_backtest
from tsrnn.plotting._comparison import plot_comparison
from tsrnn.plotting._contributions import plot_contributions
from tsrnn.plotting._correlations import plot_correlations
from tsrnn.plotting._diagnostics import plot_diagnostics
from tsrnn.plotting._feature_history import plot_feature_history
from tsrnn.plotting._features import plot_features
from tsrnn.plotting._forecast import plot_forecast, plot_forecasts
from tsrnn.plotting._functionals import plot_functional
from tsrnn.plotting._lag_curves import plot_lag_curves
from tsrnn.plotting._svg import figure_svg

__all__ = [
    "figure_svg",
    "plot_architectures",
    "plot_backtest",
    "plot_comparison",
    "plot_contributions",
    "plot_correlations",
    "plot_diagnostics",
    "plot_feature_history",
    "plot_features",
    "plot_forecast",
    "plot_forecasts",
    "plot_functional",
    "plot_lag_curves",
]
