"""Synthetic tasks that ask of a sequence model to track a state or to recall what it has seen.

Those of Table 1 and appendix C.2 of Danieli et al. (2025). Every function draws `n` sequences
of tokens and gives a `SyntheticTask`: tokens, targets, a mask of the steps that are asked for,
and the sizes of both vocabularies. A model that guesses is right with probability 1 / n_classes,
for all tasks but `mqar` and `modular_arithmetic`. The array ``A5`` of shape (60, 5) has the
permutations of `alternating_group`, a row each.
"""

from tsrnn.datasets.tasks._recall import copy_memory, k_hop, keep_nth, mqar
from tsrnn.datasets.tasks._task import SyntheticTask
from tsrnn.datasets.tasks._tracking import (
    A5,
    alternating_group,
    cycle_navigation,
    modular_arithmetic,
    parity,
)

__all__ = [
    "A5",
    "SyntheticTask",
    "alternating_group",
    "copy_memory",
    "cycle_navigation",
    "k_hop",
    "keep_nth",
    "modular_arithmetic",
    "mqar",
    "parity",
]
