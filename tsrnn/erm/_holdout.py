"""Which samples train and which are held out to validate."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from torch import Tensor

from tsrnn.erm._settings import Settings


def hold_out(
    samples: Tensor, settings: Settings, classes: np.ndarray | None, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Samples to train on and samples to validate on, none without `early_stopping`.

    Parameters
    ----------
    samples : integer Tensor of shape (n,)
        Those there are to choose from, in order.
    settings : Settings
    classes : integer ndarray of shape (n,), optional
        A random part keeps their shares, where each has a sample for both parts.
    generator : torch.Generator

    Raises
    ------
    ValueError
        If there is one sample.
    """
    n = len(samples)
    if not settings.early_stopping:
        return samples, samples[:0]
    if n < 2:
        raise ValueError(
            "early_stopping=True needs a sample to train and one to validate; got n_samples = 1 "
            "of a weight above 0. Give more samples, or set early_stopping=False"
        )
    size = min(max(1, round(settings.validation_fraction * n)), n - 1)
    if settings.validation_split == "last":
        return samples[: n - size], samples[n - size :]
    seed = int(torch.randint(2**31 - 1, (), generator=generator))
    strata = classes if classes is not None and _can_stratify(classes, size) else None
    train, held_out = train_test_split(
        np.arange(n), test_size=size, random_state=seed, stratify=strata
    )
    return samples[np.sort(train)], samples[np.sort(held_out)]


def _can_stratify(classes: np.ndarray, size: int) -> bool:
    counts = np.unique(classes, return_counts=True)[1]
    return bool(counts.min() >= 2 and min(size, len(classes) - size) >= len(counts))
