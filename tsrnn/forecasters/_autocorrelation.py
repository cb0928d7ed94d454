"""How far windows repeat themselves."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def autocorrelation(windows: Tensor, lags: Sequence[int]) -> Tensor:
    r"""Correlation of windows with themselves some steps before.

    .. math:: \rho_k = \sum_{t > k} d_t d_{t-k}
        \Big/ \sqrt{\textstyle\sum_{t > k} d_t^2 \sum_{t > k} d_{t-k}^2}

    Parameters
    ----------
    windows : Tensor of shape (..., C, W)
        Deviations from the mean of the window, zero where nothing is known.
    lags : sequence of int
        Each less than W.

    Returns
    -------
    Tensor of shape (..., len(lags))
        A mean over the C columns; zero for one that does not vary.
    """
    found = []
    for lag in lags:
        late, early = windows[..., lag:], windows[..., :-lag]
        size = (late.square().sum(-1) * early.square().sum(-1)).sqrt()
        product = (late * early).sum(-1)
        found.append(torch.where(size > 0, product / size, 0.0).mean(-1))
    return torch.stack(found, -1)
