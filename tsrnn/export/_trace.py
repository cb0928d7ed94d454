"""A forecaster as an exported program that consists of torch's own operators."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Tensor

from tsrnn.export._carried import by_series, carried_shape, half_widths
from tsrnn.export._program import Intervals, Program
from tsrnn.forecasters import HEADS, RecurrentForecaster
from tsrnn.kernels._derived import cell_of
from tsrnn.kernels._lengths import whole
from tsrnn.kernels._reference import reference

SERIES, ROWS = 2, 3  # of the example that is traced: above 1, else they would be fixed
ORIGIN = ("stack_trace", "nn_module_stack", "source_fn_stack", "from_node", "torch_fn")


def program_of(forecaster: RecurrentForecaster, levels: list[float]) -> Program:
    """The forecasts of a forecaster as a module.

    Raises
    ------
    ValueError
        If the validation part has too few errors for a level.
    """
    memory, calibration = forecaster.memory_, forecaster.calibration_
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
    """The program for any number of series and of rows."""
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
        exported = exported.run_decompositions({torch.ops.tsrnn.recurrence.default: _loop})
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


def _loop(
    inputs: Tensor, params: Tensor, initial: Tensor, lengths: Tensor | None, cell: str, engine: str
) -> tuple[Tensor, ...]:
    """The compiled recurrence as the loop in torch, here of a single step."""
    states, final = reference(cell_of(cell), inputs, params, initial, whole(lengths, inputs))
    exact = initial.new_zeros(initial.shape[0], initial.shape[2])
    return states, final, exact.to(torch.int64), exact, exact.to(torch.bool)
