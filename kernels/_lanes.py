"""Many series side by side as blocks of lanes, for kernels that run series in vectors."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

WIDTH = 16  # lanes of a block: a row of it is two lines of cache


class Lanes:
    """Series of one length, packed so that a kernel reads them row by row.

    Parameters
    ----------
    series : ndarray of float64, shape (N, T, m) or (N, T)
        N series of m input fields. An input beside y may be 1 where y was observed, else 0: so
        series of unequal lengths are padded.

    Attributes
    ----------
    blocks : Tensor of shape (B, T, m, W)
        Series b W + w in lane w of block b; the last series fills what is left.
    n : int
        Number of series N.

    Raises
    ------
    ValueError
        If there is no series or no row.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.kernels import Lanes
    >>> lanes = Lanes(np.arange(6.0).reshape(2, 3))
    >>> lanes.n, lanes.blocks.shape
    (2, torch.Size([1, 3, 1, 2]))
    >>> lanes.unpack(lanes.pack(np.array([[1.0, 2.0]])))
    array([[1., 2.]])
    """

    def __init__(self, series: np.ndarray) -> None:
        series = series[..., None] if series.ndim == 2 else series
        if series.ndim != 3 or 0 in series.shape[:2]:
            raise ValueError(f"series must have shape (N, T, m) with N, T >= 1; got {series.shape}")
        self._series = torch.from_numpy(np.ascontiguousarray(series, dtype=np.float64))
        self.n = len(series)
        self.blocks = _packed(self._series)

    def select(self, which: np.ndarray) -> Lanes:
        """Some of the series, packed anew."""
        return Lanes(self._series.numpy()[which])

    def pack(self, values: np.ndarray) -> Tensor:
        """Values (f, N) as (B, f, W)."""
        blocks, _, _, width = self.blocks.shape
        padded = np.empty((len(values), blocks * width))
        padded[:, : self.n] = values
        padded[:, self.n :] = values[:, -1:]
        return (
            torch.from_numpy(padded).view(len(values), blocks, width).transpose(0, 1).contiguous()
        )

    def unpack(self, packed: Tensor) -> np.ndarray:
        """Values (B, f, W) as (f, N)."""
        return packed.transpose(0, 1).reshape(packed.shape[1], -1)[:, : self.n].numpy()


def _packed(series: Tensor) -> Tensor:
    n, steps, fields = series.shape
    width = min(n, WIDTH)
    if left := -n % width:
        series = torch.cat([series, series[-1:].expand(left, -1, -1)])
    return series.view(-1, width, steps, fields).permute(0, 2, 3, 1).contiguous()


class Running:
    """The series of some lanes that an iteration still works on.

    What is left is packed anew when it is less than half of what is packed: else all of it is
    computed, and the results of those that have ended are not looked at.

    Parameters
    ----------
    lanes : Lanes
        All series.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.kernels import Lanes, Running
    >>> running = Running(Lanes(np.zeros((40, 3))))
    >>> lanes, places = running.covering(np.array([5, 7]))
    >>> lanes.n, places
    (2, array([0, 1]))
    """

    def __init__(self, lanes: Lanes) -> None:
        self._all = lanes
        self._lanes, self._numbers = lanes, np.arange(lanes.n)

    def covering(self, units: np.ndarray) -> tuple[Lanes, np.ndarray]:
        """Lanes that hold the series numbered `units`, and their places in them."""
        if not np.isin(units, self._numbers, assume_unique=True).all():
            self._lanes, self._numbers = self._all, np.arange(self._all.n)
        if 2 * len(units) <= len(self._numbers) and self._lanes.n > WIDTH:
            self._numbers = np.sort(units)
            self._lanes = self._all.select(self._numbers)
        return self._lanes, np.searchsorted(self._numbers, units)
