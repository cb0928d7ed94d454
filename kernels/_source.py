"""The emitted source of a cell's kernels, to be read."""

import torch

from tsrnn.kernels._backend import DTYPES, backend_of
from tsrnn.kernels._cell import Cell


def source(cell: Cell, dtype: torch.dtype = torch.float32, device: str = "cpu") -> str:
    """Return the source that is compiled for a cell.

    Parameters
    ----------
    cell : Cell
    dtype : torch.dtype
        float32 or float64; bfloat16 too on CUDA devices.
    device : {"cpu", "cuda"}
        LLVM assembly for the CPU, Triton for CUDA devices, which need not be there.

    Returns
    -------
    str
        With a header that says which cell it is, and its fields by their names.

    Raises
    ------
    ValueError
        If there are no kernels for the device and dtype, or the cell has no compiled form.
    ImportError
        If triton is not installed, for ``device="cuda"``.

    Examples
    --------
    >>> from tsrnn.kernels import cells
    >>> from tsrnn.kernels import source
    >>> "tanh" in source(cells.para_rnn(2))
    True
    """
    if dtype not in DTYPES.get(device, ()):
        known = {name: [str(d) for d in dtypes] for name, dtypes in DTYPES.items()}
        raise ValueError(f"kernels exist for {known}; got {dtype} on {device!r}")
    text: str = backend_of(torch.device(device)).source(cell, dtype)
    return text
