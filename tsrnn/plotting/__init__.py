"""Plots; the only place that knows matplotlib."""

from tsrnn.plotting._accuracy import plot_backtest, plot_comparison, plot_diagnostics
from tsrnn.plotting._components import plot_components
from tsrnn.plotting._contributions import plot_contributions
from tsrnn.plotting._correlations import plot_correlations
from tsrnn.plotting._effects import plot_effects
from tsrnn.plotting._feature_history import plot_feature_history
from tsrnn.plotting._features import plot_features, plot_lag_curves
from tsrnn.plotting._forecast import plot_forecast, plot_forecasts
from tsrnn.plotting._regression import plot_architectures, plot_functional
from tsrnn.plotting._style import figure_svg

__all__ = [
    "plot_architectures",
    "plot_backtest",
    "plot_comparison",
    "plot_components",
    "plot_contributions",
    "plot_correlations",
    "plot_diagnostics",
    "plot_effects",
    "plot_feature_history",
    "plot_features",
    "plot_forecast",
    "plot_forecasts",
    "plot_functional",
    "plot_lag_curves",
]


def __dir__() -> list[str]:
    return sorted(__all__)  # without what other rooms alone import
