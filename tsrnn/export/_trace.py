"""Forecaster as an exported program that consists of torch's own operators."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Tensor

from tsrnn.export._carried import by_series, carried_shape, half_widths
from tsrnn.export._program import Intervals, Program
from tsrnn.forecasters import HEADS, RecurrentForecaster
from tsrnn.kernels import decomposed_recurrence

SERIES, ROWS = 2, 3  # of the example that is traced: above 1, else they would be fixed
ORIGIN = ("stack_trace", "nn_module_stack", "source_fn_stack", "from_node", "torch_fn")


def program_of(forecaster: RecurrentForecaster, levels: list[float]) -> Program:
    """Forecasts of a forecaster as a module.

    Raises
    ------
    ValueError
        If the validation part has too few errors for a level.
    """
    memory, calibration = forecaster.state_, forecaster.calibration_
    pooled, own_levels = None, 0
    if levels and calibration.method not in HEADS:
        groups = memory.units_per_series
        new = half_widths(forecaster, np.full(groups, -1), levels)
        pooled = by_series(new, groups)[0]
        own_levels = len(levels) if len(calibration.errors) > 1 else 0
    exog = memory.scaling.exog
    scaling = torch.from_numpy(np.concatenate([exog.location, exog.scale]))
    return Program(
        forecaster.model_,
        forecaster.settings_,
        carried_shape(forecaster, own_levels),
        scaling if scaling.numel() else None,
        Intervals(levels, pooled),
    )


def traced(program: Program) -> torch.export.ExportedProgram:
    """Program for any number of series and of rows."""
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
        # The compiled recurrence becomes a loop in torch, here of a single step.
        loops = {torch.ops.tsrnn.recurrence.default: decomposed_recurrence}
        exported = exported.run_decompositions(loops)
    _forget_origin(exported)
    return exported


def _forget_origin(exported: torch.export.ExportedProgram) -> None:
    """Drop the lines of code that operators come from: files need no paths of this machine."""
    for module in exported.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                for name in ORIGIN:
                    node.meta.pop(name, None)


def example_of(program: Program) -> dict[str, Tensor]:
    """Arguments of the program by name, of the right shapes."""
    shape, n_exog = program.shape, 0 if program.exog is None else program.exog.shape[1]
    zeros: dict[str, Tensor] = {
        "rows": torch.zeros(SERIES, ROWS, shape.targets + n_exog, dtype=torch.float64),
        "lengths": torch.zeros(SERIES, dtype=torch.int64),
        "memory": torch.zeros(SERIES, sum(shape.sizes), dtype=torch.float64),
    }
    if program.model.known:
        size = (SERIES, program.settings.horizon, len(program.model.known))
        zeros["future"] = torch.zeros(size, dtype=torch.float64)
    return zeros
