"""Which samples train and which are held out to validate."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from torch import Tensor

from tsrnn.erm._settings import Settings


def hold_out(
    n: int, settings: Settings, classes: np.ndarray | None, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Samples to train on and samples to validate on, none without `early_stopping`.

    Parameters
    ----------
    n : int
        Number of samples.
    settings : Settings
    classes : integer ndarray of shape (n,), optional
        A random part keeps their shares, where each has a sample for both parts.
    generator : torch.Generator

    Raises
    ------
    ValueError
        If there is one sample.
    """
    everything = torch.arange(n)
    if not settings.early_stopping:
        return everything, everything[:0]
    if n < 2:
        raise ValueError(
            "early_stopping=True needs a sample to train and one to validate; got n_samples = 1. "
            "Give more samples, or set early_stopping=False"
        )
    size = min(max(1, round(settings.validation_fraction * n)), n - 1)
    if settings.validation_split == "last":
        return everything[: n - size], everything[n - size :]
    seed = int(torch.randint(2**31 - 1, (), generator=generator))
    strata = classes if classes is not None and _can_stratify(classes, size) else None
    train, held_out = train_test_split(
        np.arange(n), test_size=size, random_state=seed, stratify=strata
    )
    return torch.from_numpy(np.sort(train)), torch.from_numpy(np.sort(held_out))


def _can_stratify(classes: np.ndarray, size: int) -> bool:
    counts = np.unique(classes, return_counts=True)[1]
    return bool(counts.min() >= 2 and min(size, len(classes) - size) >= len(counts))
