"""Fitted networks for other runtimes: torch.export and ONNX."""

from tsrnn.export._onnx import export_onnx
from tsrnn.export._torch import Exported, export_torch

__all__ = ["Exported", "export_onnx", "export_torch"]
