"""What a task is, and what all of them check."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class SyntheticTask(NamedTuple):
    """Sequences of tokens with what is to be answered.

    Attributes
    ----------
    tokens : int64 of shape (n, length)
        Inputs, from 0 to n_tokens - 1.
    targets : int64 of shape (n, length)
        Answers, from 0 to n_classes - 1; where `mask` is False they are not asked for.
    mask : bool of shape (n, length)
        Steps whose answer counts.
    n_tokens : int
    n_classes : int

    Examples
    --------
    >>> from tsrnn.datasets.tasks import parity
    >>> task = parity(100, 20, random_state=0)
    >>> task.tokens.shape, task.n_tokens, task.n_classes
    ((100, 20), 2, 2)
    >>> task.targets[task.mask].shape
    (100,)
    """

    tokens: NDArray[np.int64]
    targets: NDArray[np.int64]
    mask: NDArray[np.bool_]
    n_tokens: int
    n_classes: int


def check_at_least(least: int, **sizes: int) -> None:
    """Raise unless every size is an integer of at least `least`."""
    for name, value in sizes.items():
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
            raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}")


def asked(n: int, length: int, last: int) -> NDArray[np.bool_]:
    """Mask of the `last` steps."""
    mask = np.zeros((n, length), dtype=bool)
    mask[:, length - last :] = True
    return mask
