"""Classical forecasters of statsmodels and arch, and naive ones, behind the contract."""

from tsrnn.baselines._arch import ArchModel
from tsrnn.baselines._ets import ETS
from tsrnn.baselines._naive import Drift, Mean, Naive, Naive2, SeasonalNaive
from tsrnn.baselines._sarimax import SARIMAX, AutoARIMA
from tsrnn.baselines._theta import Theta
from tsrnn.baselines._unobserved import UnobservedComponents
from tsrnn.baselines._var import VAR, VARMAX
from tsrnn.baselines._vecm import VECM

__all__ = [
    "ETS",
    "SARIMAX",
    "VAR",
    "VARMAX",
    "VECM",
    "ArchModel",
    "AutoARIMA",
    "Drift",
    "Mean",
    "Naive",
    "Naive2",
    "SeasonalNaive",
    "Theta",
    "UnobservedComponents",
]
