"""Programs for torch: the archive of torch.export."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable
from typing import Any

import torch

from tsrnn.contract import file_place, put_file
from tsrnn.export._carried import carried_by
from tsrnn.export._exported import (
    METADATA,
    Exported,
    PathLike,
    metadata_of,
)
from tsrnn.export._refusals import checked_forecaster, checked_levels
from tsrnn.export._trace import program_of, traced
from tsrnn.export._verify import Arrays, Run, verify


def export_torch(forecaster: Any, path: PathLike, *, level: Any = None) -> Exported:
    r"""Write the forecasts of a fitted recurrent network as a program that torch runs alone.

    The program is a function of tensors, for any number of series S and of rows T,

    .. math:: (\text{rows}, \text{lengths}, \text{memory} \, [, \text{future}]) \mapsto
        (\text{forecast} \, [, \text{lower}, \text{upper}], \text{memory\_after}),

    that takes rows in and forecasts `horizon_` steps after them:

    - rows, float64 (S, T, C + E): the targets and then the exogenous columns, in the units of
      the data, in the order that the metadata say.
    - lengths, int64 (S,): how many of the rows of each series are there, its first ones. What
      follows may be NaN. 0 forecasts from the memory alone.
    - memory, float64 (S, M): what is carried from call to call. Zeros stand for series never
      seen, which are scaled by the rows of that call, as `predict` scales a new series by the
      rows of its frame.
    - future, float64 (S, h, known): columns known ahead, if there are any.
    - forecast (S, h, C), lower and upper (S, h, C, levels), in the units of the data.

    The whole history of a series with a memory of zeros is ``predict(X)``; `memory_after`, given
    with the next rows, is `update`. The recurrence runs in float32, all else in float64, as in
    `predict`. Before anything is written the program forecasts after the forecaster's own
    data, in this process, and is compared.

    Parameters
    ----------
    forecaster : ParaRNNForecaster, LEMForecaster, LRUForecaster or NewtonForecaster
        Fitted.
    path : path
        Of the file; ".pt2" is what torch calls them.
    level : float or list of float, optional
        Coverage of prediction intervals in percent, for outputs lower and upper.

    Returns
    -------
    Exported
        With the memory of the series fitted to, which the file does not hold.

    Raises
    ------
    TypeError, ValueError
        If the forecaster is of another kind, or something of it cannot be exported.
    sklearn.exceptions.NotFittedError
        Before `fit`.
    RuntimeError
        If the program does not forecast as the forecaster does.
    OSError
        If the file cannot be written.

    Notes
    -----
    ``torch.export.load(path).module()`` gives the function; its arguments have the names above,
    its result is a dict. The metadata, JSON, are the file's "tsrnn". torch promises to read
    such files in the version that wrote them.

    Examples
    --------
    >>> import tempfile
    >>> import torch
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.datasets import load_elec_equip
    >>> from tsrnn.export import export_torch
    >>> small = {"hidden_size": 4, "n_layers": 1, "max_epochs": 2, "random_state": 0}
    >>> model = ParaRNNForecaster(horizon=12, **small).fit(load_elec_equip())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     exported = export_torch(model, f"{folder}/turnover.pt2")
    ...     program = torch.export.load(exported.path).module()
    >>> memory = torch.from_numpy(exported.memory)
    >>> rows, lengths = torch.zeros(1, 1, 1, dtype=torch.float64), torch.tensor([0])
    >>> program(rows=rows, lengths=lengths, memory=memory)["forecast"].shape
    torch.Size([1, 12, 1])
    """
    return write_program(forecaster, path, level, {"torch": torch.__version__}, archive_of, _runner)


def write_program(
    forecaster: Any,
    path: PathLike,
    level: Any,
    said: dict[str, Any],
    bytes_of: Callable[[torch.export.ExportedProgram, dict[str, Any]], bytes],
    runner: Callable[[bytes], Run],
) -> Exported:
    """Write a program in the format of some bytes, after these were run and compared."""
    checked, place = checked_forecaster(forecaster), file_place(path)
    program = program_of(checked, checked_levels(checked, level))
    metadata = metadata_of(checked, program) | said
    content = bytes_of(traced(program), metadata)
    verify(runner(content), program, checked)
    memory = carried_by(checked, program.shape, program.levels, checked.memory_)
    put_file(place, lambda place: place.write_bytes(content))
    return Exported(place, metadata, checked.memory_.ids.tolist(), memory)


def archive_of(exported: torch.export.ExportedProgram, metadata: dict[str, Any]) -> bytes:
    """The bytes of a file."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, about its own parts
        torch.export.save(exported, buffer, extra_files={METADATA: json.dumps(metadata)})
    return buffer.getvalue()


def _runner(content: bytes) -> Run:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = torch.export.load(io.BytesIO(content)).module()

    def run(given: Arrays) -> Arrays:
        tensors = {name: torch.tensor(value) for name, value in given.items()}
        return {name: value.numpy() for name, value in module(**tensors).items()}

    return run
