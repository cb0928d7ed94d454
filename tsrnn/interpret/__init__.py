"""What a fitted recurrent network has learned, read from its matrices."""

from tsrnn.interpret._features import recurrence_features
from tsrnn.interpret._lag_curves import jordan_block, lag_curves

__all__ = ["jordan_block", "lag_curves", "recurrence_features"]
