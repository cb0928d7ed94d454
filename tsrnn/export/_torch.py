"""Programs for torch: archives of torch.export, with metadata."""

from __future__ import annotations

import io
import json
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tsrnn.contract import check_is_fitted, check_levels, file_place, put_file
from tsrnn.export._program import Program
from tsrnn.export._verify import Arrays, Run, verify
from tsrnn.forecasters import FittedNetworks, RecurrentForecaster, RecurrentState
from tsrnn.kernels import decomposed_recurrence

FORMAT = 1
SERIES, ROWS = 2, 3  # sizes of the traced example; a size of 1 would be fixed in the program
ORIGIN = ("stack_trace", "nn_module_stack", "source_fn_stack", "from_node", "torch_fn")
METADATA = "tsrnn"  # key in the files

PathLike = str | os.PathLike[str]


def export_torch(forecaster: Any, path: PathLike, *, level: Any = None) -> Exported:
    r"""Write the forecasts of a fitted recurrent network as a program that torch runs alone.

    The program is a function of tensors, for any number of series S and of rows T,

    .. math:: (\text{rows}, \text{lengths}, \text{memory} \, [, \text{future}]) \mapsto
        (\text{forecast} \, [, \text{lower}, \text{upper}], \text{memory\_after}),

    that takes rows in and forecasts `horizon_` steps after them:

    - rows, float64 (S, T, C + E): the targets and then the exogenous columns, in the units of
      the data, ordered as in the metadata.
    - lengths, int64 (S,): number of rows of each series, from the first on; later ones may be
      NaN. 0 forecasts from the memory alone.
    - memory, float64 (S, M): state carried from call to call. Zeros mean new series, which are
      scaled by the rows of that call, as `predict` scales them by the rows of its frame.
    - future, float64 (S, h, known): columns known ahead, if any.
    - forecast (S, h, C), lower and upper (S, h, C, levels), in the units of the data.

    A call with the whole history of a series and a memory of zeros does ``predict(X)``; one with
    the next rows and the last `memory_after` does `update`. The recurrence runs in float32, all
    else in float64, as in `predict`. Before the file is written, forecasts of the program after
    the training data are compared with the forecaster's.

    Parameters
    ----------
    forecaster : ParaRNNForecaster, LEMForecaster, LRUForecaster or NewtonForecaster
        Fitted.
    path : path
        File to write; torch uses the suffix ".pt2".
    level : float or list of float, optional
        Coverage of prediction intervals in percent, for outputs lower and upper.

    Returns
    -------
    Exported
        Path, metadata, and the memory of the training series, which the file does not hold.

    Raises
    ------
    TypeError, ValueError
        If the forecaster is of another kind, or has a part that cannot be exported.
    sklearn.exceptions.NotFittedError
        Before `fit`.
    RuntimeError
        If the program does not forecast as the forecaster does.
    OSError
        If the file cannot be written.

    Notes
    -----
    ``torch.export.load(path).module()`` returns the function, with the argument names above and
    a dict as its result. Metadata, as JSON, are the file's extra file "tsrnn". torch promises to
    read such files only in the version that wrote them.

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


@dataclass(frozen=True, eq=False)
class Exported:
    """Written program, with the memory of the training series.

    Attributes
    ----------
    path : Path
    metadata : dict
        Metadata of the file, JSON values: names of columns, horizon, frequency, levels,
        and the shape of every input and output.
    ids : list
        Series that the forecaster remembers.
    memory : ndarray of shape (S, M)
        Memory of the program for each of them. Rows are independent: take the series to be
        forecast, in any order. The file does not hold it; keep it with `numpy.save`.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from tsrnn.export import Exported
    >>> exported = Exported(Path("model.onnx"), {"horizon": 6}, ["a", "b"], np.zeros((2, 9)))
    >>> chosen = [exported.ids.index("b")]
    >>> exported.memory[chosen].shape
    (1, 9)
    """

    path: Path
    metadata: dict[str, Any]
    ids: list[Any]
    memory: np.ndarray


def write_program(
    forecaster: Any,
    path: PathLike,
    level: Any,
    versions: dict[str, Any],
    bytes_of: Callable[[torch.export.ExportedProgram, dict[str, Any]], bytes],
    runner: Callable[[bytes], Run],
) -> Exported:
    """Write a program in the format of `bytes_of`, after running and comparing it."""
    (fitted, state), place = fitted_networks(forecaster), file_place(path)
    program = Program(fitted, checked_levels(fitted, level))
    metadata = metadata_of(program) | versions
    content = bytes_of(traced(program), metadata)
    verify(runner(content), program, state)
    put_file(place, lambda place: place.write_bytes(content))
    return Exported(place, metadata, state.ids.tolist(), program.memory_of(state))


def traced(program: Program) -> torch.export.ExportedProgram:
    """Trace a program for any number of series and rows."""
    series, rows = torch.export.Dim("series"), torch.export.Dim("rows")
    shapes: dict[str, dict[int, torch.export.Dim]] = {
        "rows": {0: series, 1: rows},
        "lengths": {0: series},
        "memory": {0: series},
    }
    example = example_of(program)
    if "future" in example:
        shapes["future"] = {0: series}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of torch, about its own parts
        exported = torch.export.export(program, (), example, dynamic_shapes=shapes, strict=False)
        # Replaces the compiled recurrence by a loop in torch, here of a single step.
        loops = {torch.ops.tsrnn.recurrence.default: decomposed_recurrence}
        exported = exported.run_decompositions(loops)
    # Drop source locations of operators: they hold paths of this machine.
    for module in exported.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                for name in ORIGIN:
                    node.meta.pop(name, None)
    return exported


def example_of(program: Program) -> dict[str, Tensor]:
    """Make arguments of the program by name, zeros of the right shapes."""
    data = program.fitted.data
    shapes: dict[str, tuple[int, ...]] = {
        "rows": (SERIES, ROWS, data.n_targets + len(data.exog_names)),
        "lengths": (SERIES,),
        "memory": (SERIES, sum(program.sizes)),
    }
    if data.known_ahead:
        shapes["future"] = SERIES, program.fitted.horizon, len(data.known_ahead)
    zeros = {name: torch.zeros(shape, dtype=torch.float64) for name, shape in shapes.items()}
    return zeros | {"lengths": zeros["lengths"].long()}


def archive_of(exported: torch.export.ExportedProgram, metadata: dict[str, Any]) -> bytes:
    """Convert a program to the bytes of an archive of torch.export."""
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


def fitted_networks(forecaster: Any) -> tuple[FittedNetworks, RecurrentState]:
    """Return the networks of a fitted forecaster and their state, if they can be exported."""
    if not isinstance(forecaster, RecurrentForecaster):
        advice = "Keep it by save and tsrnn.load"
        if hasattr(forecaster, "to_rnn"):
            advice = "to_rnn() gives it as a module of torch; or keep it by save and tsrnn.load"
        raise TypeError(
            "forecasters that are recurrent networks can be exported, such as ParaRNNForecaster; "
            f"got {type(forecaster).__name__}. {advice}"
        )
    check_is_fitted(forecaster)
    fitted = forecaster.fitted_.program()
    if fitted.settings.layer == "BlockRecurrentAttention":
        raise ValueError(
            "cell='attention' cannot be exported: what it does in a step depends on its state. Fit "
            "with another cell, such as cell='lstm', or keep it by save and tsrnn.load"
        )
    return fitted, forecaster.state_


def checked_levels(fitted: FittedNetworks, level: Any) -> list[float]:
    """Check the levels of the intervals of the program."""
    levels = [float(value) for value in check_levels(level)]
    if levels and fitted.settings.intervals == "student-t":
        raise ValueError(
            "quantiles of intervals='student-t' are no operator of torch or ONNX, so that its "
            "intervals cannot be exported. Leave level out, or fit with intervals='quantile'"
        )
    return levels


def metadata_of(program: Program) -> dict[str, Any]:
    """Collect the metadata of a file: names of columns, horizon, levels, and shapes."""
    fitted, data, levels = program.fitted, program.fitted.data, program.levels
    targets, exog_names, known = list(data.layout.target_names), data.exog_names, data.known_ahead
    h, columns, size = fitted.horizon, len(targets) + len(exog_names), sum(program.sizes)
    future = {"future": ["series", h, len(known)]} if known else {}
    ends = ("lower", "upper") if levels else ()
    return {
        "format": FORMAT,
        "version": version("tsrnn"),
        "forecaster": fitted.arguments.class_name,
        "horizon": h,
        "freq": data.freq,
        "targets": targets,
        "exogenous": list(exog_names),
        "known_ahead": list(known),
        "levels": levels,
        "intervals": fitted.settings.intervals,
        "input_size": fitted.settings.input_size,
        "inputs": {
            "rows": ["series", "rows", columns],
            "lengths": ["series"],
            "memory": ["series", size],
        } | future,
        "outputs": {
            "forecast": ["series", h, len(targets)],
            **{end: ["series", h, len(targets), len(levels)] for end in ends},
            "memory_after": ["series", size],
        },
    }  # fmt: skip
