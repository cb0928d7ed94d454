"""Nonparametric regression by empirical risk minimisation with recurrent networks.

Section 4 of Cai et al. (2026): `ParaRNNRegressor` and `ParaRNNClassifier` estimate
f0(X_T) = E[z_T | x_1, ..., x_T] from N samples of sequences. Around them: the risk of an estimate
(`empirical_risk`, `cross_validated_risk` with `BlockedKFold`, `excess_risk`), the choice of a
network's size (`select_architecture`), the theorems as functions (`network_size`,
`approximation_bound`, `estimation_bound`, `prediction_bound`, `network_schedule`, `minimax_rate`,
`log_covering_number`, `layer_complexity`, `probability_real_spectrum`, `nearest_block_diagonal`,
`surrogate_network`) with the constructions of their proofs (`as_para_rnn`, `as_feedforward`), and
functionals of the fitted function (`partial_dependence`, `impulse_response`, `memory`) with bands
from `block_bootstrap` or `deep_ensemble`.

The theorems need no torch (`tsrnn.erm.theory`); everything is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from tsrnn._lazy import lazy_names

if TYPE_CHECKING:
    from tsrnn.erm._architecture import ArchitectureSelection, select_architecture
    from tsrnn.erm._classifier import ParaRNNClassifier
    from tsrnn.erm._constructions import (
        ModifiedLayer,
        ModifiedParaRNN,
        as_feedforward,
        as_modified_para_rnn,
        as_para_rnn,
    )
    from tsrnn.erm._cross_validation import BlockedKFold, cross_validated_risk
    from tsrnn.erm._excess_risk import Estimate, ExcessRisk, excess_risk
    from tsrnn.erm._function import SequenceFunction
    from tsrnn.erm._functionals import impulse_response, memory, partial_dependence
    from tsrnn.erm._refits import Refits, block_bootstrap, deep_ensemble
    from tsrnn.erm._regressor import ParaRNNRegressor
    from tsrnn.erm._risk import Fold, Risk, empirical_risk
    from tsrnn.erm._surrogate import surrogate_network
    from tsrnn.erm.theory import (
        BlockDiagonalForm,
        Bound,
        LayerComplexity,
        NetworkSize,
        approximation_bound,
        estimation_bound,
        layer_complexity,
        log_covering_number,
        minimax_rate,
        nearest_block_diagonal,
        network_schedule,
        network_size,
        prediction_bound,
        probability_real_spectrum,
        rate_exponent,
    )

_MODULES = {
    "_architecture": ("ArchitectureSelection", "select_architecture"),
    "_classifier": ("ParaRNNClassifier",),
    "_constructions": (
        "ModifiedLayer",
        "ModifiedParaRNN",
        "as_feedforward",
        "as_modified_para_rnn",
        "as_para_rnn",
    ),
    "_cross_validation": ("BlockedKFold", "cross_validated_risk"),
    "_excess_risk": ("Estimate", "ExcessRisk", "excess_risk"),
    "_function": ("SequenceFunction",),
    "_functionals": ("impulse_response", "memory", "partial_dependence"),
    "_refits": ("Refits", "block_bootstrap", "deep_ensemble"),
    "_regressor": ("ParaRNNRegressor",),
    "_risk": ("Fold", "Risk", "empirical_risk"),
    "_surrogate": ("surrogate_network",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "ArchitectureSelection",
    "BlockDiagonalForm",
    "BlockedKFold",
    "Bound",
    "Estimate",
    "ExcessRisk",
    "Fold",
    "LayerComplexity",
    "ModifiedLayer",
    "ModifiedParaRNN",
    "NetworkSize",
    "ParaRNNClassifier",
    "ParaRNNRegressor",
    "Refits",
    "Risk",
    "SequenceFunction",
    "approximation_bound",
    "as_feedforward",
    "as_modified_para_rnn",
    "as_para_rnn",
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

if not TYPE_CHECKING:  # to a type checker, a name that is not above does not exist
    __getattr__, __dir__ = lazy_names(
        __name__,
        __all__,
        lambda name: getattr(import_module(f"{__name__}.{_MODULE_OF.get(name, 'theory')}"), name),
    )
