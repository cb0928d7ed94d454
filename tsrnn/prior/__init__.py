"""Prior of time series, and networks pretrained on series drawn from it.

`SeriesPrior` draws from a mixture of components, functions ``component(rng, n_series, n_rows,
season_length)`` that return arrays (n_series, n_rows), and passes the series through layers,
functions ``layer(rng, values, season_length)``; `COMPONENTS` and `LAYERS` are the defaults.
Networks and their training load torch on first use; most forecasts do not need it.
"""

# ruff: noqa: F405 (names of `_with_torch`)

from typing import TYPE_CHECKING

from tsrnn._lazy import lazy_names
from tsrnn.prior._autoregression import AUTOREGRESSION_ROWS, Autoregression, autoregress
from tsrnn.prior._column_prior import COLUMNS, RESPONSES, ColumnPrior, SimulatedColumns
from tsrnn.prior._components import Components, structural_components
from tsrnn.prior._count_models import (
    CountForecasts,
    CountHyper,
    CountModel,
    are_counts,
    count_forecasts,
    count_hyper,
    count_models,
)
from tsrnn.prior._counts import counts, intermittent
from tsrnn.prior._distributions import innovations
from tsrnn.prior._effects import ColumnEffects, check_effects, fit_effects, year_is_a_season
from tsrnn.prior._examples import (
    ADAPTING_STEPS,
    PANEL_RATE,
    SERIES_RATE,
    TrainingExamples,
    make_examples,
    trained_steps,
    training_origins,
    window_rows,
)
from tsrnn.prior._forward import PRIOR_CELLS, PROBABILITIES
from tsrnn.prior._hyperpriors import Hyperprior, hyperprior
from tsrnn.prior._layers import calendar, level_shifts, outliers, rounding, scale, zeros
from tsrnn.prior._linear import arma_paths, draw_poles, ets, random_walk, sarima, structural
from tsrnn.prior._mixture import LEAST_WEIGHT, autoregression_circumstances
from tsrnn.prior._nonlinear import (
    bilinear,
    markov_switching,
    ornstein_uhlenbeck,
    threshold_ar,
    volatility,
)
from tsrnn.prior._outliers import (
    Outliers,
    check_outliers,
    find_outliers,
    outlier_lines,
    outlier_table,
    skip_errors,
    without_errors,
)
from tsrnn.prior._panel_prior import PanelPrior, Product
from tsrnn.prior._prior import COMPONENTS, LAYERS, SeriesPrior
from tsrnn.prior._seasons import compose, season_shapes
from tsrnn.prior._structural import (
    SEASONS,
    TRENDS,
    Evidence,
    Season,
    Trend,
    evenly,
    mean_change,
    structural_evidence,
)
from tsrnn.prior._terms import (
    CYCLES,
    LONGEST_LAG,
    PHASES,
    ColumnMemory,
    Term,
    calendar_functions,
    decays_of,
    first_values,
    moving_averages,
    widths_of,
)
from tsrnn.prior._trained import (
    FEWEST_ROWS,
    LONGEST_SEASON,
    Forecasts,
    TrainedPrior,
    forecasts_by,
    learning_windows,
    trained_prior,
)
from tsrnn.prior._trends import broken_trend, cycles, gaussian_process, growth_curve
from tsrnn.prior._widths import IN_SAMPLE_WIDTH, OWN_PRIOR, PAST_ROWS, by_step, step_factors

if TYPE_CHECKING:
    from tsrnn.prior._with_torch import *  # noqa: F403

__all__ = [
    "COMPONENTS",
    "LAYERS",
    "SEASONS",
    "TRENDS",
    "ColumnPrior",
    "Components",
    "CountForecasts",
    "CountHyper",
    "CountModel",
    "Evidence",
    "Forecasts",
    "Hyperprior",
    "Outliers",
    "PanelPrior",
    "PriorNetwork",
    "Product",
    "Season",
    "SeriesPrior",
    "SimulatedColumns",
    "TrainedPrior",
    "TrainingExamples",
    "Trend",
    "adapt_network",
    "arma_paths",
    "bilinear",
    "broken_trend",
    "by_step",
    "calendar",
    "compose",
    "count_forecasts",
    "count_hyper",
    "counts",
    "cycles",
    "ets",
    "evenly",
    "find_outliers",
    "forecasts_by",
    "gaussian_process",
    "growth_curve",
    "hyperprior",
    "innovations",
    "intermittent",
    "level_shifts",
    "make_examples",
    "markov_switching",
    "ornstein_uhlenbeck",
    "outliers",
    "random_walk",
    "rounding",
    "sarima",
    "scale",
    "season_shapes",
    "structural",
    "threshold_ar",
    "train_network",
    "trained_prior",
    "volatility",
    "without_errors",
    "zeros",
]

# Loaded for other rooms; no part of the API.
_INNER = [
    "COMBINED",
    "Combined",
    "CombinerInputs",
    "CombinerNetwork",
    "TrainedCombiner",
    "prior_deviation",
    "trained_combiner",
]

if not TYPE_CHECKING:  # to a type checker, a name that is not above does not exist
    __getattr__, __dir__ = lazy_names(__name__, __all__, f"{__name__}._with_torch", _INNER)
