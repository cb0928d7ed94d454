"""Public time series as tidy frames, and simulators.

A loader returns a wide DataFrame of float64 with one column per variable and one row per time
stamp. Its DatetimeIndex is named ``ds`` and has a frequency if rows are regular. Missing values
are NaN. ``frame.attrs`` holds ``name, title, units`` (a dict, column to unit)``, frequency, source,
license`` and ``notes``. All loaders but `load_ett` and `load_wth` read files that ship with
statsmodels and arch. Columns keep their shipped names, except database codes.

Simulators return arrays: `adding_problem`, `arma_inputs`, `fitzhugh_nagumo`, `lotka_volterra`, and
the sequences of symbols in `tasks`. Their randomness comes from `random_state`.

`bilinear`, `threshold_autoregression`, `smooth_transition`, `markov_switching`, `logistic_map` and
`henon_map` return a series and its conditional means, the best one-step forecasts.

A `RegressionProcess` simulates regression on sequences with a known mean of the response:
`AddingProblem`, `HolderProcess`, `RNNProcess`, and `NoisePadded`, which pads any of them.

`read_ts` reads files of the UEA and UCR archives into `LabelledSequences`; `load_eigenworms`,
`load_heart_rate` and `load_google12` load long sequences, split as in the papers. `load_mnist` and
`load_cifar10` load images, which `pixel_sequences` and `noise_padded` convert to sequences.
`load_penn_treebank` loads a text. All of these read files of the user, see `data_home` of each.
"""

from tsrnn.datasets import tasks as tasks
from tsrnn.datasets._adding import AddingProblem, adding_problem
from tsrnn.datasets._arma_inputs import arma_inputs
from tsrnn.datasets._catalogue import list_datasets
from tsrnn.datasets._dynamical_systems import fitzhugh_nagumo, lotka_volterra
from tsrnn.datasets._holder import HolderProcess
from tsrnn.datasets._image_sequences import noise_padded, pixel_sequences
from tsrnn.datasets._images import LabelledImages, load_cifar10, load_mnist
from tsrnn.datasets._informer import load_ett, load_wth
from tsrnn.datasets._long_sequences import load_eigenworms, load_google12, load_heart_rate
from tsrnn.datasets._nonlinear import (
    bilinear,
    henon_map,
    logistic_map,
    markov_switching,
    smooth_transition,
    threshold_autoregression,
)
from tsrnn.datasets._regression import NoisePadded, RegressionProcess
from tsrnn.datasets._rnn_process import RNNProcess
from tsrnn.datasets._shipped import (
    load_co2,
    load_core_cpi,
    load_corporate_yields,
    load_crude,
    load_danish_data,
    load_elec_equip,
    load_elnino,
    load_fertility,
    load_frenchdata,
    load_interest_inflation,
    load_macrodata,
    load_nasdaq,
    load_nile,
    load_sp500,
    load_sunspots,
    load_vix,
    load_wti,
)
from tsrnn.datasets._speech import speech_features
from tsrnn.datasets._text import Corpus, load_penn_treebank, token_batches
from tsrnn.datasets._ts_files import LabelledSequences, read_ts

__all__ = [
    "AddingProblem",
    "Corpus",
    "HolderProcess",
    "LabelledImages",
    "LabelledSequences",
    "NoisePadded",
    "RNNProcess",
    "RegressionProcess",
    "adding_problem",
    "arma_inputs",
    "bilinear",
    "fitzhugh_nagumo",
    "henon_map",
    "list_datasets",
    "load_cifar10",
    "load_co2",
    "load_core_cpi",
    "load_corporate_yields",
    "load_crude",
    "load_danish_data",
    "load_eigenworms",
    "load_elec_equip",
    "load_elnino",
    "load_ett",
    "load_fertility",
    "load_frenchdata",
    "load_google12",
    "load_heart_rate",
    "load_interest_inflation",
    "load_macrodata",
    "load_mnist",
    "load_nasdaq",
    "load_nile",
    "load_penn_treebank",
    "load_sp500",
    "load_sunspots",
    "load_vix",
    "load_wth",
    "load_wti",
    "logistic_map",
    "lotka_volterra",
    "markov_switching",
    "noise_padded",
    "pixel_sequences",
    "read_ts",
    "smooth_transition",
    "speech_features",
    "threshold_autoregression",
    "token_batches",
]
