"""What a combination remembers: what its members do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class CombinedMemory:
    """States of all members after the same rows.

    Attributes
    ----------
    members : tuple of Memory
    """

    members: tuple[Any, ...]

    @property
    def ids(self) -> pd.Index:
        """Of the series, (S,)."""
        return self.members[0].ids

    @property
    def last_times(self) -> np.ndarray:
        """Of the series, (S,)."""
        return self.members[0].last_times

    @property
    def target_scale(self) -> np.ndarray:
        """Standard deviations (S, C) in the data fitted to."""
        return self.members[0].target_scale

    def select(self, which: np.ndarray) -> CombinedMemory:
        """Of the series numbered `which`, in that order."""
        return CombinedMemory(tuple(member.select(which) for member in self.members))

    def replaced(self, which: np.ndarray, new: CombinedMemory) -> CombinedMemory:
        """With the series numbered `which` as they stand in `new`; `self` stays as it is."""
        pairs = zip(self.members, new.members, strict=True)
        return CombinedMemory(tuple(old.replaced(which, own) for old, own in pairs))
