"""Nonparametric regression by empirical risk minimisation with recurrent networks.

Section 4 of Cai et al. (2026): `ParaRNNRegressor` and `ParaRNNClassifier` estimate
f0(X_T) = E[z_T | x_1, ..., x_T] from N samples of sequences. Around them: the risk of an estimate
(`empirical_risk`, `cross_validated_risk` with `BlockedKFold`, `excess_risk`), the choice of a
network's size (`select_architecture`), the theorems as functions (`network_size`,
`approximation_bound`, `estimation_bound`, `prediction_bound`, `network_schedule`, `minimax_rate`,
`log_covering_number`, `layer_complexity`, `probability_real_spectrum`, `nearest_block_diagonal`,
`surrogate_network`), and functionals of the fitted function (`partial_dependence`,
`impulse_response`, `memory`) with bands from `block_bootstrap` or `deep_ensemble`.

What is of matrices and numbers needs no torch; the rest is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tsrnn.erm._approximation import NetworkSize, approximation_bound, network_size
    from tsrnn.erm._block_diagonal import BlockDiagonalForm, nearest_block_diagonal
    from tsrnn.erm._bound import Bound
    from tsrnn.erm._classifier import ParaRNNClassifier
    from tsrnn.erm._complexity import LayerComplexity, layer_complexity
    from tsrnn.erm._covering import log_covering_number
    from tsrnn.erm._cross_validation import cross_validated_risk
    from tsrnn.erm._estimation import estimation_bound
    from tsrnn.erm._excess import Estimate, ExcessRisk, excess_risk
    from tsrnn.erm._impulse import impulse_response
    from tsrnn.erm._memory import memory
    from tsrnn.erm._partial_dependence import partial_dependence
    from tsrnn.erm._prediction import prediction_bound
    from tsrnn.erm._real_spectrum import probability_real_spectrum
    from tsrnn.erm._refits import Refits, block_bootstrap, deep_ensemble
    from tsrnn.erm._regressor import ParaRNNRegressor
    from tsrnn.erm._risk import Fold, Risk, empirical_risk
    from tsrnn.erm._schedule import minimax_rate, network_schedule, rate_exponent
    from tsrnn.erm._select import select_architecture
    from tsrnn.erm._selection import ArchitectureSelection
    from tsrnn.erm._splits import BlockedKFold
    from tsrnn.erm._surrogate import surrogate_network

_HOMES = {
    "ArchitectureSelection": "_selection",
    "BlockDiagonalForm": "_block_diagonal",
    "BlockedKFold": "_splits",
    "Bound": "_bound",
    "Estimate": "_excess",
    "ExcessRisk": "_excess",
    "Fold": "_risk",
    "LayerComplexity": "_complexity",
    "NetworkSize": "_approximation",
    "ParaRNNClassifier": "_classifier",
    "ParaRNNRegressor": "_regressor",
    "Refits": "_refits",
    "Risk": "_risk",
    "approximation_bound": "_approximation",
    "block_bootstrap": "_refits",
    "cross_validated_risk": "_cross_validation",
    "deep_ensemble": "_refits",
    "empirical_risk": "_risk",
    "estimation_bound": "_estimation",
    "excess_risk": "_excess",
    "impulse_response": "_impulse",
    "layer_complexity": "_complexity",
    "log_covering_number": "_covering",
    "memory": "_memory",
    "minimax_rate": "_schedule",
    "nearest_block_diagonal": "_block_diagonal",
    "network_schedule": "_schedule",
    "network_size": "_approximation",
    "partial_dependence": "_partial_dependence",
    "prediction_bound": "_prediction",
    "probability_real_spectrum": "_real_spectrum",
    "rate_exponent": "_schedule",
    "select_architecture": "_select",
    "surrogate_network": "_surrogate",
}

__all__ = [
    "ArchitectureSelection",
    "BlockDiagonalForm",
    "BlockedKFold",
    "Bound",
    "Estimate",
    "ExcessRisk",
    "Fold",
    "LayerComplexity",
    "NetworkSize",
    "ParaRNNClassifier",
    "ParaRNNRegressor",
    "Refits",
    "Risk",
    "approximation_bound",
    "block_bootstrap",
    "cross_validated_risk",
    "deep_ensemble",
    "empirical_risk",
    "estimation_bound",
    "excess_risk",
    "impulse_response",
    "layer_complexity",
    "log_covering_number",
    "memory",
    "minimax_rate",
    "nearest_block_diagonal",
    "network_schedule",
    "network_size",
    "partial_dependence",
    "prediction_bound",
    "probability_real_spectrum",
    "rate_exponent",
    "select_architecture",
    "surrogate_network",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
