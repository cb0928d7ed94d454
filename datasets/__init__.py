"""Public time series as tidy frames, and simulators.

A frame has a column a variable and a row a time stamp.
Every loader returns a wide DataFrame of float64 whose DatetimeIndex is named ``ds`` and carries
its frequency where the rows are regular. Missing values stay NaN. ``frame.attrs`` holds ``name,
title, units`` (a dict, column to unit)``, frequency, source, license`` and ``notes``. All but
`load_ett` read files that ship inside statsmodels and arch, so they need no network.
Columns keep their shipped names, except where those are a database code.

Simulators, which are not called load, return arrays: `adding_problem`, `fitzhugh_nagumo`,
`lotka_volterra`, and the sequences of symbols of `tasks`. All they draw is from `random_state`.
"""

from tsrnn.datasets import tasks as tasks
from tsrnn.datasets._adding import adding_problem
from tsrnn.datasets._arch import (
    load_core_cpi,
    load_corporate_yields,
    load_crude,
    load_frenchdata,
    load_nasdaq,
    load_sp500,
    load_vix,
    load_wti,
)
from tsrnn.datasets._ett import load_ett
from tsrnn.datasets._fitzhugh_nagumo import fitzhugh_nagumo
from tsrnn.datasets._listing import list_datasets
from tsrnn.datasets._lotka_volterra import lotka_volterra
from tsrnn.datasets._statsmodels import (
    load_co2,
    load_danish_data,
    load_elec_equip,
    load_elnino,
    load_fertility,
    load_interest_inflation,
    load_macrodata,
    load_nile,
    load_sunspots,
)

__all__ = [
    "adding_problem",
    "fitzhugh_nagumo",
    "list_datasets",
    "load_co2",
    "load_core_cpi",
    "load_corporate_yields",
    "load_crude",
    "load_danish_data",
    "load_elec_equip",
    "load_elnino",
    "load_ett",
    "load_fertility",
    "load_frenchdata",
    "load_interest_inflation",
    "load_macrodata",
    "load_nasdaq",
    "load_nile",
    "load_sp500",
    "load_sunspots",
    "load_vix",
    "load_wti",
    "lotka_volterra",
]
