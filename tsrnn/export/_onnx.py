"""Programs for ONNX runtimes."""

from __future__ import annotations

import json
import logging
import warnings
from typing import Any

import torch

from tsrnn.export._torch import METADATA, Exported, PathLike, write_program
from tsrnn.export._verify import Arrays, Run

OPSET = 18  # the lowest that torch's exporter writes without a conversion


def export_onnx(forecaster: Any, path: PathLike, *, level: Any = None) -> Exported:
    """Write the forecasts of a fitted recurrent network as an ONNX model of opset 18.

    The program, its inputs and its outputs are those of `export_torch`, by the same names.

    Parameters
    ----------
    forecaster : ParaRNNForecaster, LEMForecaster, LRUForecaster or NewtonForecaster
        Fitted.
    path : path
        A single file.
    level : float or list of float, optional
        Coverage of prediction intervals in percent, for outputs lower and upper.

    Returns
    -------
    Exported
        Path, metadata, and the memory of the training series, which the file does not hold.

    Raises
    ------
    ImportError
        If onnx, onnxscript or onnxruntime is missing: ``pip install tsrnn[onnx]``.
    TypeError, ValueError, RuntimeError, OSError
        As `export_torch`; the comparison runs ONNX Runtime.

    Notes
    -----
    Metadata, as JSON, are the entry "tsrnn" of the model's metadata_props. Dimensions "series"
    and "rows" are free; the operator Scan reads the rows.

    Examples
    --------
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.datasets import load_elec_equip
    >>> from tsrnn.export import export_onnx
    >>> small = {"hidden_size": 4, "n_layers": 1, "max_epochs": 2, "random_state": 0}
    >>> model = ParaRNNForecaster(horizon=12, **small).fit(load_elec_equip())
    >>> exported = export_onnx(model, "turnover.onnx", level=80)  # doctest: +SKIP
    >>> exported.metadata["outputs"]["lower"]  # doctest: +SKIP
    ['series', 12, 1, 1]
    """
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"ONNX models need {error.name}, which is not installed; pip install tsrnn[onnx]"
        ) from error
    return write_program(forecaster, path, level, {"opset": OPSET}, model_of, _runner)


def model_of(exported: torch.export.ExportedProgram, metadata: dict[str, Any]) -> bytes:
    """Convert a program to the bytes of an ONNX file."""
    free = {
        name: {axis: size for axis, size in enumerate(shape) if isinstance(size, str)}
        for name, shape in metadata["inputs"].items()
    }
    logger = logging.getLogger("torch.onnx")  # silenced: the exporter logs and warns of itself
    before = logger.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logger.setLevel(logging.ERROR)
        try:
            onnx_program = torch.onnx.export(
                exported, (), dynamo=True, opset_version=OPSET, verbose=False, dynamic_shapes=free,
                output_names=list(metadata["outputs"]),
            )  # fmt: skip
        finally:
            logger.setLevel(before)
    assert onnx_program is not None
    onnx_program.model.metadata_props[METADATA] = json.dumps(metadata)
    return onnx_program.model_proto.SerializeToString()


def _runner(content: bytes) -> Run:
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]

    def run(given: Arrays) -> Arrays:
        return dict(zip(names, session.run(names, dict(given)), strict=True))

    return run
