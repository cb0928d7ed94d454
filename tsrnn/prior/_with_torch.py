"""Names of the room that need torch, loaded together on first use."""

# ruff: noqa: F401 (`tsrnn.prior` exports them)

from tsrnn.prior._combiner import (
    COMBINED,
    Combined,
    CombinerInputs,
    CombinerNetwork,
    TrainedCombiner,
    prior_deviation,
    trained_combiner,
)
from tsrnn.prior._network import PriorNetwork
from tsrnn.prior._training import adapt_network, train_network
