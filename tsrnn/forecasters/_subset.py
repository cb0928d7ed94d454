"""A fixed random subset, where there is more than is needed."""

import torch
from torch import Tensor


def subset(count: int, most: int) -> Tensor:
    """Numbers of at most `most` of `count` things, in order, the same at every call.

    Drawn at random: a fixed stride would pick up the order of the rows, such as one hour
    of the day or one of several targets.
    """
    if count <= most:
        return torch.arange(count)
    generator = torch.Generator().manual_seed(0)
    return torch.randperm(count, generator=generator)[:most].sort().values
