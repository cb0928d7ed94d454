"""Classical forecasters of statsmodels and arch, and naive ones, behind the contract."""

from tsrnn.baselines._arch import ArchModel
from tsrnn.baselines._ets import StatsmodelsETS
from tsrnn.baselines._naive import Drift, Mean, Naive, Naive2, SeasonalNaive
from tsrnn.baselines._sarimax import SARIMAX, StatsmodelsAutoARIMA
from tsrnn.baselines._theta import StatsmodelsTheta
from tsrnn.baselines._unobserved import UnobservedComponents
from tsrnn.baselines._var import VAR, VARMAX
from tsrnn.baselines._vecm import VECM

__all__ = [
    "SARIMAX",
    "VAR",
    "VARMAX",
    "VECM",
    "ArchModel",
    "Drift",
    "Mean",
    "Naive",
    "Naive2",
    "SeasonalNaive",
    "StatsmodelsAutoARIMA",
    "StatsmodelsETS",
    "StatsmodelsTheta",
    "UnobservedComponents",
]
