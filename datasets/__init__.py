"""Public time series as tidy frames: a column a variable, a row a time stamp.

Every loader returns a wide DataFrame of float64 whose DatetimeIndex is named ``ds`` and carries
its frequency where the rows are regular. Missing values stay NaN. ``frame.attrs`` holds ``name,
title, units`` (a dict, column to unit)``, frequency, source, license`` and ``notes``. All but
`load_ett` read files that ship inside statsmodels and arch, so they need no network.
Columns keep their shipped names, except where those are a database code.
"""

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
from tsrnn.datasets._listing import list_datasets
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
]
