"""Theorems of Cai, Li, Huang and Li (2026), ParaRNN, as functions of matrices and numbers.

Nothing here needs torch.
"""

from tsrnn.erm.theory._approximation import NetworkSize, approximation_bound, network_size
from tsrnn.erm.theory._block_diagonal import (
    BlockDiagonalForm,
    nearest_block_diagonal,
    probability_real_spectrum,
)
from tsrnn.erm.theory._bound import Bound
from tsrnn.erm.theory._complexity import LayerComplexity, layer_complexity
from tsrnn.erm.theory._estimation import estimation_bound, log_covering_number, prediction_bound
from tsrnn.erm.theory._rates import minimax_rate, network_schedule, rate_exponent

__all__ = [
    "BlockDiagonalForm",
    "Bound",
    "LayerComplexity",
    "NetworkSize",
    "approximation_bound",
    "estimation_bound",
    "layer_complexity",
    "log_covering_number",
    "minimax_rate",
    "nearest_block_diagonal",
    "network_schedule",
    "network_size",
    "prediction_bound",
    "probability_real_spectrum",
    "rate_exponent",
]
