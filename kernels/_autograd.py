"""Engines under autograd: first derivatives by kernels, higher ones by the adjoint recurrence.

An engine is a module with two functions, ``forward(problem)``, which gives states, final state and
convergence (None without iteration), and ``backward(problem, states, g_states, g_final)``. The
backward pass of a recurrence is itself a recurrence, in the gradient of the state and backwards in
time. It runs as one when its own derivative is needed, which gives derivatives of every order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad

from tsrnn.kernels import _backend, _dense, _newton, _time_parallel
from tsrnn.kernels._cell import Cell
from tsrnn.kernels._convergence import Convergence
from tsrnn.kernels._derived import adjoint, cell_of
from tsrnn.kernels._matrix_form import is_rolled
from tsrnn.kernels._problem import (
    Problem,
    check_range,
    cut,
    in_given_dtypes,
    is_alive,
    is_checked,
    of_all_fields,
    without_ends,
)
from tsrnn.kernels._reference import is_small, local_gradients, reference, reference_gradients
from tsrnn.kernels._trace import is_linear, trace

ENGINES: dict[str, Any] = {
    "sequential": _backend,
    "scan": _time_parallel,
    "shooting": _time_parallel,
    "newton": _newton,
    "dense": _dense,
}
UNSUPPORTED = (
    "compiled recurrences run under torch.vmap, but not under the other transforms of torch.func "
    "(grad, jvp and the like), with gradients in batches (is_grads_batched=True, "
    "vectorize=True), nor in forward mode. Call torch.autograd.grad vector by vector, or "
    "torch.autograd.functional with vectorize=False: derivatives of every order are there. On "
    "tensors, recurrence(..., engine='reference') runs under all of them"
)
Results = tuple[Tensor, ...]  # states, final state and the parts of a `Convergence`


def run(
    engine: str,
    cell: str,
    inputs: Tensor,
    params: Tensor,
    initial: Tensor,
    lengths: Tensor | None,
    fields: int,
) -> tuple[Tensor, Tensor, Convergence | None]:
    """States, final state and convergence of the cell registered under `key`, for autograd.

    Only the first `fields` of the states are returned; the others then need no gradient. The
    convergence is None without iteration. Refuses any transform of `torch.func` except `vmap`.
    """
    given = (inputs, params, initial, lengths, cell, engine)
    if _is_vmap():
        states, final, *rest = _OfReplicates.apply(*given, fields)
        return states, final, Convergence(*rest)
    _check_no_transform(inputs, params, initial)
    # An operator of torch's library costs tens of microseconds a call more than a function.
    plain = not torch.compiler.is_compiling() and type(inputs) in (Tensor, torch.nn.Parameter)
    # A function of autograd takes half as long again, but it refuses dual numbers, which no_grad
    # lets through.
    if plain and not torch.is_grad_enabled() and forward_ad._current_level < 0:
        states, final, convergence = _forward(*given)
        return states[:, :, :fields], final, convergence
    if plain:
        results: tuple[Tensor, Tensor, Convergence | None] = _Recurrence.apply(*given, fields)
        return results
    states, final, *rest = torch.ops.tsrnn.recurrence(*given)
    return states[:, :, :fields], final, Convergence(*rest)


class _Rule(NamedTuple):
    """Limits within which chunks of time pay off: maximum lanes and fields, minimum steps."""

    lanes: int
    steps: int
    fields: float = float("inf")


# CPU: measured for cells with gates; others are as fast in time order even with a single lane.
# H200: chunks pay from 512 steps on the device, but a call gains only once time order takes longer
# than the host's launches; chunks were faster with 1,024 lanes, slower with 8,192, and matrices
# above 4 x 4 do not stay in registers.
_RULES = {"cpu": _Rule(1, 65536), "cuda": _Rule(4096, 2048, 4)}


def best_engine(cell: Cell, inputs: Tensor, params: Tensor) -> str:
    """Engine that "auto" chooses where kernels exist.

    The choice depends only on shapes and device, never on values.
    """
    device, (batch, steps), units = inputs.device, inputs.shape[:2], params.shape[1]
    if not is_small(cell):
        return "dense"
    if device.type == "cpu" and is_rolled(cell):
        return "sequential"  # Jacobians come column by column, each for the price of three steps
    rule = _RULES[device.type]
    if batch * units > rule.lanes or steps < rule.steps or cell.n > rule.fields:
        return "sequential"
    # Steps are costly if the backward pass recomputes gates from the inputs.
    if device.type == "cpu" and not any(name.startswith("u") for name in trace(cell)[1].reads):
        return "sequential"
    return "scan" if is_linear(cell) else "shooting"


def _is_vmap() -> bool:
    """True if the innermost active transform of `torch.func` is `vmap`."""
    if torch.compiler.is_compiling() or not torch._C._are_functorch_transforms_active():
        return False
    functorch = torch._C._functorch
    innermost = functorch.peek_interpreter_stack()
    return innermost is not None and innermost.key() == functorch.TransformType.Vmap


def _check_no_transform(*tensors: Tensor) -> None:
    """Raise under a transform, since its tensors have no memory for a kernel to read."""
    if torch.compiler.is_compiling():
        return
    transformed = torch._C._are_functorch_transforms_active()
    # Batched gradients use an older vmap, outside of torch.func.
    if transformed or any(map(torch._C._functorch.is_legacy_batchedtensor, tensors)):
        raise NotImplementedError(UNSUPPORTED)


def _forward(
    inputs: Tensor, params: Tensor, initial: Tensor, lengths: Tensor | None, cell: str, engine: str
) -> tuple[Tensor, Tensor, Convergence | None]:
    # In compiled code, and in derivatives of the backward pass, lengths have no mark.
    if lengths is not None and not is_checked(lengths, inputs.shape[1]):
        check_range(lengths, inputs.shape[1])
    inputs, params, initial = (t.resolve_neg() for t in (inputs, params, initial))
    problem = Problem(cell_of(cell), inputs, params, initial, lengths)
    if engine == "auto":
        engine = best_engine(problem.cell, inputs, params)
    with in_given_dtypes(inputs.device):
        states, final, convergence = ENGINES[engine].forward(problem)
    if convergence is not None:
        residual = convergence.residual.to(inputs.dtype)
        convergence = replace(convergence, residual=residual)
    return states.contiguous(), final.contiguous(), convergence


def _operator(
    inputs: Tensor, params: Tensor, initial: Tensor, lengths: Tensor | None, cell: str, engine: str
) -> Results:
    states, final, convergence = _forward(inputs, params, initial, lengths, cell, engine)
    return states, final, *_parts(convergence, initial)


def _parts(convergence: Convergence | None, initial: Tensor) -> Results:
    """Tensors in a convergence."""
    it = Convergence.exact(initial) if convergence is None else convergence
    return it.passes, it.residual, it.fell_back


def _backward(
    inputs: Tensor,
    params: Tensor,
    initial: Tensor,
    lengths: Tensor | None,
    states: Tensor,
    g_states: Tensor,
    g_final: Tensor | None,
    cell: str,
    engine: str,
) -> tuple[Tensor, Tensor, Tensor]:
    if engine == "auto":
        engine = best_engine(cell_of(cell), inputs, params)
    # Kernels in time order, and all GPU kernels, accept gradients of the first fields only; GPU
    # kernels also accept None as a zero `g_final`, which saves a launch.
    on_gpu = inputs.device.type != "cpu" and engine != "newton"
    if not (engine == "sequential" or on_gpu):
        g_states = of_all_fields(g_states, states)
    if g_final is not None:
        g_final = g_final.resolve_neg()
    elif not on_gpu:
        g_final = torch.zeros_like(initial)
    inputs, params, initial, g_states = (
        t.resolve_neg() for t in (inputs, params, initial, g_states)
    )
    problem = Problem(cell_of(cell), inputs, params, initial, lengths)
    with in_given_dtypes(inputs.device):
        gradients = ENGINES[engine].backward(problem, states, g_states, g_final)
    g_inputs, g_params, g_initial = gradients
    return inputs.new_empty(0) if g_inputs is None else g_inputs, g_params, g_initial


def _fake_forward(
    inputs: Tensor, params: Tensor, initial: Tensor, lengths: Tensor | None, cell: str, engine: str
) -> Results:
    batch, n, units = initial.shape
    lanes = initial.new_empty(batch, units)
    return (
        inputs.new_empty(batch, inputs.shape[1], n, units),
        initial.new_empty(batch, n, units),
        lanes.to(torch.int64),
        lanes,
        lanes.to(torch.bool),
    )


def _fake_backward(
    inputs: Tensor,
    params: Tensor,
    initial: Tensor,
    lengths: Tensor | None,
    states: Tensor,
    g_states: Tensor,
    g_final: Tensor | None,
    cell: str,
    engine: str,
) -> tuple[Tensor, Tensor, Tensor]:
    g_inputs = inputs.new_empty(0 if cell_of(cell).shared else inputs.shape)
    return g_inputs, params.new_empty(params.shape), initial.new_empty(initial.shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Results) -> None:
    *tensors, ctx.cell, ctx.engine = inputs
    ctx.has_all_fields = True
    ctx.save_for_backward(*tensors, output[0])
    ctx.mark_non_differentiable(*output[2:])


def _differentiate(
    ctx: Any, g_states: Tensor, g_final: Tensor | None, *_: object
) -> tuple[Tensor | None, ...]:
    _check_no_transform(g_states, *([] if g_final is None else [g_final]))
    inputs, params, initial, lengths, states = ctx.saved_tensors
    cell = cell_of(ctx.cell)
    if torch.is_grad_enabled():
        if params.ndim == 3:
            raise NotImplementedError(
                "replicates under torch.vmap have first derivatives; a derivative of these was "
                "asked for (create_graph=True). Take it replicate by replicate"
            )
        if not ctx.has_all_fields and is_small(cell):  # autograd has not seen these states
            states = run(ctx.engine, ctx.cell, inputs, params, initial, lengths, cell.n)[0]
        g_states = of_all_fields(g_states, states)
        g_final = torch.zeros_like(initial) if g_final is None else g_final
        problem = Problem(cell, inputs, params, initial, lengths)
        with in_given_dtypes(inputs.device):
            gradients = _differentiable_backward(problem, states, g_states, g_final)
        g_inputs, g_params, g_initial = gradients
    else:
        plain = not torch.compiler.is_compiling() and type(g_states) is Tensor
        g_inputs, g_params, g_initial = (
            _backward if plain else torch.ops.tsrnn.recurrence_backward
        )(inputs, params, initial, lengths, states, g_states, g_final, ctx.cell, ctx.engine)
    return None if cell.shared else g_inputs, g_params, g_initial, None, None, None


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[Tensor, Tensor, Convergence | None]:
        *given, fields = args
        states, final, convergence = _forward(*given)
        _save(ctx, tuple(given), (states, final))
        ctx.has_all_fields = fields == states.shape[2]
        ctx.set_materialize_grads(False)
        return states if ctx.has_all_fields else states[:, :, :fields], final, convergence

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        states = ctx.saved_tensors[-1]
        g_states, g_final = gradients[:2]
        # If only the last state is used, no gradient of states is written or read.
        shape = (*states.shape[:2], 0, states.shape[3])
        g_states = states.new_empty(shape) if g_states is None else g_states
        return *_differentiate(ctx, g_states, g_final), None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise NotImplementedError(UNSUPPORTED)


class _OfReplicates(torch.autograd.Function):
    """Recurrences of many replicates run as one under `torch.vmap`, with its autograd."""

    @staticmethod
    def forward(*_: Any) -> Results:
        raise AssertionError("this function has a rule for vmap alone")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Results) -> None:
        """Do nothing: the function below `torch.vmap` saves its own tensors."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Results, int]:
        *given, cell, engine, fields = args
        count = info.batch_size
        # Nested replicates share the parameter sets of the outer ones.
        own_params = in_dims[1] is not None or given[1].ndim == 3
        # Replicates first; shared tensors are repeated.
        of_all: Iterator[Any] = (
            t if t is None else t.expand(count, *t.shape) if dim is None else t.movedim(dim, 0)
            for t, dim in zip(given, in_dims, strict=False)
        )
        inputs, params, initial, lengths = of_all
        batch = inputs.shape[1]
        lengths = None if lengths is None else lengths.flatten()
        original = cell_of(cell)
        in_time_order = engine in ("auto", "sequential") and is_small(original)
        if not own_params or (in_time_order and inputs.device.type == "cpu"):
            # As further sequences: nothing is copied, and replicates do not affect each other.
            params = params.flatten(0, -3) if own_params else given[1]
            engine = "sequential" if own_params else engine
            states, final, rest = run(
                engine, cell, inputs.flatten(0, 1), params, initial.flatten(0, 1), lengths, fields
            )
            results = states, final, *_parts(rest, final)
            return tuple(t.unflatten(0, (count, batch)) for t in results), 0

        # As further units: lengths belong to sequences, so all units run to the end.
        if lengths is not None:
            inputs = without_ends(inputs.flatten(0, 1), lengths).unflatten(0, (count, batch))
        u, w, h = (t.movedim(0, -2).flatten(-2) for t in (inputs, params, initial))
        states, final, rest = run(engine, cell, u, w, h, None, original.n)
        states, final, *more = (
            t.unflatten(-1, (count, -1)).movedim(-2, 0)
            for t in (states, final, *_parts(rest, final))
        )
        if lengths is not None:
            flat = states.flatten(0, 1), final.flatten(0, 1), initial.flatten(0, 1)
            states, final = (t.unflatten(0, (count, batch)) for t in cut(*flat, lengths))
        return (states[:, :, :, :fields], final, *more), 0


_library = torch.library.Library("tsrnn", "DEF")
_ARGUMENTS = "Tensor inputs, Tensor params, Tensor initial, Tensor? lengths"
_library.define(
    f"recurrence({_ARGUMENTS}, str cell, str engine) -> (Tensor, Tensor, Tensor, Tensor, Tensor)"
)
_library.define(
    f"recurrence_backward({_ARGUMENTS}, Tensor states, Tensor g_states, Tensor? g_final, "
    "str cell, str engine) -> (Tensor, Tensor, Tensor)"
)
for _name, _run, _fake in (
    ("recurrence", _operator, _fake_forward),
    ("recurrence_backward", _backward, _fake_backward),
):
    _library.impl(_name, _run, "CompositeExplicitAutograd")
    torch.library.register_fake(f"tsrnn::{_name}", _fake, lib=_library)
torch.library.register_autograd(
    "tsrnn::recurrence", _differentiate, setup_context=_save, lib=_library
)


def _differentiable_backward(
    problem: Problem, states: Tensor, g_states: Tensor, g_final: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Differentiable gradients of inputs, parameters and initial state."""
    cell, inputs, params, initial, _ = problem
    # The adjoint of a block is a cell of scalars, whose code grows with the block.
    if not is_small(cell) or (is_rolled(cell) and inputs.device.type == "cpu"):
        return reference_gradients(problem, g_states, g_final, differentiable=True)
    # Imported late: the adjoint runs through the same front door, which imports this file.
    from tsrnn.kernels._recurrence import recurrence

    inputs = inputs[..., None].expand(*inputs.shape, params.shape[1]) if cell.shared else inputs
    lengths = problem.ends
    steps = torch.arange(inputs.shape[1], device=inputs.device)
    alive = is_alive(lengths, inputs.shape[1])
    # Each sequence is reversed within its length; padding stays at the end.
    turned = torch.where(alive[..., 0, 0], lengths[:, None] - 1 - steps, steps)
    rows = torch.arange(len(inputs), device=inputs.device)[:, None]

    def reverse(x: Tensor) -> Tensor:
        return x[rows, turned]

    old = torch.cat([initial[:, None], states[:, :-1]], 1)
    parts = [without_ends(x, lengths) for x in (old, inputs, states)]
    backwards = [reverse(x) for x in (*parts, g_states)]
    g, g_initial = recurrence(adjoint(cell), torch.cat(backwards, 2), params, g_final, lengths)
    following = torch.cat([g_final[:, None], g[:, :-1]], 1) + backwards[3]
    following = torch.where(alive, following, torch.zeros_like(following))

    old, inputs, new, _ = backwards
    _, g_inputs, g_params = local_gradients(cell, inputs, params, old, new, following)
    return reverse(g_inputs), g_params, g_initial


def decomposed_recurrence(
    inputs: Tensor, params: Tensor, initial: Tensor, lengths: Tensor | None, cell: str, engine: str
) -> tuple[Tensor, ...]:
    """Decompose the operator ``tsrnn::recurrence`` into torch's own operators, a loop over time.

    For exported programs, see :meth:`torch.export.ExportedProgram.run_decompositions`: they then
    run without this package, for the number of steps in the inputs. Lengths are not checked, the
    engine is ignored. Results are states, final state, and the three parts of `Convergence`.
    """
    states, final = reference(Problem(cell_of(cell), inputs, params, initial, lengths))
    return states, final, *_parts(None, initial)
