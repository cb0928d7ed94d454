"""Triton kernels in Triton's interpreter against the loop in torch; run by `test_triton`.

Interpreted kernels stay so for a whole process: these tests have one of their own.
"""

import dataclasses
import itertools
from functools import partial

import numpy as np
import pytest
import torch
import triton.language as tl
import triton.runtime.interpreter as interpreter
from torch.utils._python_dispatch import TorchDispatchMode

from tsrnn.kernels import (
    Cell,
    Convergence,
    MatrixForm,
    _backend,
    _dense,
    _time_parallel,
    cells,
    recurrence,
)
from tsrnn.kernels import _gpu as backend
from tsrnn.kernels._derived import affine, tangent, with_projection
from tsrnn.kernels._gpu import dense, elementary, emit
from tsrnn.kernels._graph import OPERATIONS, Graph, Op, evaluate
from tsrnn.kernels._problem import Problem
from tsrnn.kernels._reference import reference

# The interpreter is numpy, which warns of overflows that a GPU passes over.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

NAN, INF = float("nan"), float("inf")
LENGTHS = [3, 0, 2]  # unrolled by two: a pair of steps and one left over, none, a pair
CELLS = [
    cells.para_rnn(1), cells.para_rnn(2), cells.para_rnn(4, "relu"), cells.linear(2), cells.lru(),
    cells.para_gru(1), cells.para_gru(2), cells.para_gru(2, reset_after=True), cells.para_lstm(1),
    cells.para_lstm(2), cells.newton_lstm(1), cells.newton_lstm(2), cells.lem(1), cells.lem(2),
]  # fmt: skip
ROUNDINGS = {torch.float32: 64.0, torch.float64: 64.0, torch.bfloat16: 12.0}


@pytest.fixture(scope="module", autouse=True)
def repaired_interpreter():
    """Take scalars as indices under any numpy; patch the language once a file, scan by rows.

    A product of bfloat16 is one of numbers, not of their bits.
    """
    patch, seen = interpreter._patch_lang_tensor, set()

    def patch_tensor(tensor, scope):
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    def call(self, *args, **kwargs):
        if id(self.fn.__globals__) not in seen:
            interpreter._patch_lang(self.fn)
            seen.add(id(self.fn.__globals__))
        return self.rewrite()(*args, **kwargs)

    def scan(self, values):
        assert self.axis == 0
        rows = [[self.to_tensor(r, value.dtype) for r in value.handle.data] for value in values]
        next_ = [column[0] for column in rows]
        done = [next_]
        for i in range(1, len(rows[0])):
            next_ = self.combine_fn.fn(*next_, *(column[i] for column in rows))
            done.append(next_)
        columns = zip(*done, strict=True)
        return [
            self.to_tensor(np.stack([x.handle.data for x in column]), column[0].dtype)
            for column in columns
        ]

    def wide(x):
        if x.dtype != tl.bfloat16:
            return x
        data = interpreter._convert_float(x.data, tl.bfloat16, tl.float32, None)
        return interpreter.TensorHandle(data.view(np.float32), tl.float32)

    dot = interpreter.InterpreterBuilder.create_dot

    def create_dot(self, a, b, *args):
        return dot(self, wide(a), wide(b), *args)

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(interpreter.InterpreterBuilder, "create_dot", create_dot)
        monkeypatch.setattr(interpreter.ScanOps, "generic_scan", scan)
        options = interpreter.InterpreterOptions(sanitize_overflow=False)
        monkeypatch.setattr(interpreter.interpreter_builder, "options", options)
        monkeypatch.setattr(interpreter, "_patch_lang_tensor", patch_tensor)
        monkeypatch.setattr(interpreter.InterpretedFunction, "__call__", call)
        yield


@pytest.fixture(autouse=True)
def poisoned(monkeypatch):
    """Fill every new buffer with NaN, so that what is never written shows."""

    def wrapped(make):
        def poison(*args, **kwargs):
            made = make(*args, **kwargs)
            if made.is_floating_point() or made.dtype == torch.bool:
                return made.fill_(NAN if made.is_floating_point() else 1)
            return made.fill_(torch.iinfo(made.dtype).min)

        return poison

    for owner, name in (
        (torch, "empty"), (torch, "empty_like"), (torch.Tensor, "new_empty")
    ):  # fmt: skip
        monkeypatch.setattr(owner, name, wrapped(getattr(owner, name)))


@pytest.fixture(autouse=True)
def inside_of_arrays(monkeypatch):
    """Refuse what a kernel reads or writes outside of its arguments, wanted or not."""
    builder, executor, bounds = interpreter.InterpreterBuilder, interpreter.GridExecutor, []
    arguments, load, store = (
        executor._init_args_hst, builder.create_masked_load, builder.create_masked_store
    )  # fmt: skip

    def noted(self, args, options):
        given = arguments(self, args, options)
        arrays = [t for t in given[0] if isinstance(t, torch.Tensor) and t.numel()]
        bounds[:] = np.array(sorted((t.data_ptr(), t.data_ptr() + t.nbytes) for t in arrays)).T
        return given

    def check(pointers, mask):
        at = pointers.data[mask.data].astype(np.int64)
        array = np.searchsorted(bounds[0], at, side="right") - 1
        assert (array >= 0).all(), "before the first array"
        assert (at < bounds[1][array]).all(), "beyond an array"

    def checked_load(self, pointers, mask, *rest):
        check(pointers, mask)
        return load(self, pointers, mask, *rest)

    def checked_store(self, pointers, value, mask, *rest):
        check(pointers, mask)
        return store(self, pointers, value, mask, *rest)

    monkeypatch.setattr(executor, "_init_args_hst", noted)
    monkeypatch.setattr(builder, "create_masked_load", checked_load)
    monkeypatch.setattr(builder, "create_masked_store", checked_store)


@pytest.fixture(autouse=True)
def unroll(monkeypatch):
    """Unroll two steps, which is quick to interpret, or as many as a test says."""

    def unroll(steps):
        for name in ("FORWARD", "BACKWARD", "SHOOTING", "SHOOTING_OF_MANY", "SCAN"):
            launch = getattr(backend, name)._replace(block=32, warps=1, ahead=64, longest=steps)
            monkeypatch.setattr(backend, name, launch)

    unroll(2)
    return unroll


@pytest.fixture(autouse=True)
def no_empty_rows(monkeypatch):
    """Scan no more rows than there are chunks, which is quick to interpret."""
    monkeypatch.setattr(backend, "ROWS", ())


def expected_of(cell, problem, lengths):
    """Results and gradients of the loop in torch, bfloat16 in single precision."""
    wide = torch.promote_types(problem.inputs.dtype, torch.float32)
    *tensors, g_states, g_final = [t.detach().to(wide) for t in problem]
    leaves = [t.requires_grad_() for t in tensors]
    results = reference(Problem(cell, *leaves, lengths))
    gradients = torch.autograd.grad(
        results, leaves, [g_states, g_final], materialize_grads=True
    )  # fmt: skip
    return [t.detach().to(problem.inputs.dtype) for t in (*results, *gradients)]


def results_of(cell, problem, lengths, backend=backend):
    """Results and gradients of the kernels."""
    given = Problem(cell, *problem[:3], lengths)
    states, final = backend.forward(given)
    return [states, final, *backend.backward(given, states, *problem[3:])]


def agree(results, expected, assert_close, roundings):
    names = ("states", "final", "g_inputs", "g_params", "g_initial")
    for name, value, oracle in zip(names, results, expected, strict=True):
        try:
            assert_close(value, oracle, roundings)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None


def check(cell, problem, lengths, assert_close, backend=backend):
    lengths = torch.tensor(lengths)
    expected = expected_of(cell, problem, lengths)
    for i, length in enumerate(lengths):
        problem.inputs[i, length:] = NAN  # is not read
    results = results_of(cell, problem, lengths, backend)
    agree(results, expected, assert_close, ROUNDINGS[problem.inputs.dtype])


@pytest.mark.few("para_rnn_tanh_1", "para_lstm_2")
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_every_cell(cell, draw, assert_close):
    check(cell, draw(cell, 3, 3, 3, torch.float32), LENGTHS, assert_close)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("cell", [cells.para_rnn(2), cells.para_lstm(1)], ids=lambda c: c.name)
def test_other_precisions(cell, dtype, draw, assert_close):
    check(cell, draw(cell, 3, 3, 5, dtype), LENGTHS, assert_close)


@pytest.mark.few("1-1-lengths0", "8-11-lengths2", "9-3-lengths3")
@pytest.mark.parametrize(
    ("steps", "units", "lengths"),
    [(1, 1, [1, 0, 1]), (19, 13, [19, 8, 0]), (8, 11, [8, 8, 8]), (9, 3, [0, 0, 0])],
)
def test_shapes(steps, units, lengths, unroll, draw, assert_close):
    unroll(8)
    cell = cells.para_rnn(2)
    problem = draw(cell, steps=steps, units=units, dtype=torch.float32)
    check(cell, problem, lengths, assert_close)


@pytest.mark.parametrize("cell", [cells.para_rnn(2), cells.para_lstm(1)], ids=lambda c: c.name)
def test_results_that_are_not_wanted(cell, draw):
    problem = draw(cell, 3, 3, 3, torch.float32)
    lengths = torch.tensor(LENGTHS)
    states, final, _, _, g_initial = results_of(cell, problem, lengths)
    given = Problem(cell, *problem[:3], lengths)
    nothing, same = backend.forward(given, keep=False)
    assert nothing.shape[1] == 0
    assert torch.equal(same, final)
    *none, same = backend.backward(given, states, *problem[3:], only_initial=True)
    assert none == [None, None]
    assert torch.equal(same, g_initial)


def test_no_sequences(draw):
    cell = cells.para_rnn(2)
    results = results_of(cell, draw(cell, batch=0), torch.zeros(0, dtype=torch.int64))
    assert not results[3].any()


def test_strides_of_the_arguments_do_not_matter(draw):
    cell, lengths = cells.para_rnn(2), torch.tensor([5, 5, 5])
    problem = draw(cell, units=3, dtype=torch.float32)
    strided = type(problem)(*[t.mT.contiguous().mT for t in problem])
    for value, same in zip(
        results_of(cell, strided, lengths), results_of(cell, problem, lengths), strict=True
    ):
        assert torch.equal(value, same)


@pytest.mark.parametrize("bias", [True, False])
def test_projection_inside(bias, draw, assert_close):
    cell = with_projection(cells.para_rnn(2), 3, bias)
    problem = draw(cell, 3, 3, 5, torch.float32)
    problem = problem._replace(inputs=problem.inputs[..., 0].contiguous())
    lengths = torch.tensor(LENGTHS)
    expected = expected_of(cell, problem, lengths)
    results = results_of(cell, problem, lengths)
    assert results.pop(2) is None
    del expected[2]
    for value, oracle in zip(results, expected, strict=True):
        assert_close(value, oracle)


@pytest.mark.parametrize("cell", [affine(2), tangent(cells.para_rnn(2))], ids=["affine", "tangent"])
def test_derived_cells(cell, draw, assert_close):
    check(cell, draw(cell, 3, 3, 3, torch.float32), LENGTHS, assert_close)


def _constant_step(state, inputs, params):
    return state[0] * 0.5 + 0.1, torch.ones_like(state[1])


def _power_step(state, inputs, params):
    h, w = state[0], params[0]
    size = torch.abs(inputs[0])  # of which dead steps must not see zero
    powers = (1.0 + torch.abs(h)) ** -2.5 + w * torch.log(size) * h**3 + size**0.5
    kinds = torch.where(h > 0, torch.full_like(h, 0.1), torch.full_like(h, 0.2))
    return (kinds + torch.sin(powers) * 0.1,)


@pytest.mark.parametrize(
    "cell",
    [
        Cell("no_inputs", 2, 0, 0, _constant_step),
        Cell("powers", 1, 1, 1, _power_step, names=(("v0",), ("state",), ("tanh",))),
    ],
    ids=lambda cell: cell.name,
)
def test_cells_with_odd_parts(cell, draw, assert_close):
    problem = draw(cell, 3, 3, 3)
    check(cell, problem._replace(params=problem.params.abs()), LENGTHS, assert_close)


def test_nan_stays_in_its_lane(draw):
    cell, lengths = cells.para_rnn(2), torch.tensor([5, 5, 5])
    problem = draw(cell, units=4, dtype=torch.float32)
    clean, _ = backend.forward(Problem(cell, *problem[:3], lengths))
    problem.inputs[1, 2, 0, 3] = NAN
    states, _ = backend.forward(Problem(cell, *problem[:3], lengths))
    touched = torch.zeros_like(states, dtype=torch.bool)
    touched[1, 3:, :, 3] = True
    touched[1, 2, 0, 3] = True
    assert torch.equal(states.isnan(), touched)
    assert torch.equal(states[~touched], clean[~touched])


ARGUMENTS = {
    "tanh_backward": ("h0", "u0"), "sigmoid_backward": ("h0", "u0"),
    "threshold_backward": ("h0", "u0", 0.25), "pow": ("h0", "u0"), "where": ("mask", "h0", 0.1),
    **dict.fromkeys(("add", "sub", "rsub", "mul", "div"), ("h0", "u0")),
    **dict.fromkeys(("gt", "ge", "lt", "le", "eq", "ne"), ("h0", "u0")),
}  # fmt: skip
# Relative errors in roundings, 1 where nothing is said.
ROUNDINGS_OF = {"tanh": 2, "sigmoid": 2, "expm1": 2, "sigmoid_backward": 2, "tanh_backward": 4}


def operations():
    """One graph of every operation, and the names of its outputs."""
    ops = [Op("mask", "gt", ("h0", 0.0))]
    names = sorted(OPERATIONS)
    for name in names:
        ops.append(Op(f"x_{name}", name, ARGUMENTS.get(name, ("h0",))))
        if name in ("gt", "ge", "lt", "le", "eq", "ne"):
            ops.append(Op(f"y_{name}", "where", (f"x_{name}", 0.1, "u0")))
    made = {op.out for op in ops}
    outputs = [f"y_{name}" if f"y_{name}" in made else f"x_{name}" for name in names]
    for i, exponent in enumerate((-2.0, -1.0, 0.5, 1.0, 2.0, 3.0)):
        ops.append(Op(f"p{i}", "pow", ("h0", exponent)))
        outputs.append(f"p{i}")
        names.append("pow")
    return Graph(tuple(ops), tuple(outputs)), names


def points(dtype):
    sizes = torch.logspace(-30, 30, 121, dtype=torch.float64)
    limit = 85 if dtype == torch.float32 else 600
    x = torch.cat([
        sizes, -sizes, torch.linspace(-limit, limit, 151), torch.linspace(-1, 1, 101),
        torch.tensor([0.0, INF, -INF, NAN]),
    ]).to(dtype)  # fmt: skip
    y = x[torch.randperm(len(x), generator=torch.Generator().manual_seed(0))]
    return x, torch.where(torch.arange(len(x)) % 3 == 0, x, y)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_operation(dtype, monkeypatch):
    monkeypatch.setattr(backend, "FORWARD", backend.Launch(1024, 1, 16, 1))
    graph, names = operations()
    x, y = points(dtype)
    cell = Cell("operations", len(names), 1, 0, lambda h, u, w: tuple(a + u[0] for a in h))
    step = emit.graph_function("step", cell, dtype, emit._STEP, graph, (len(names),))
    module = emit.load("operations", emit.header(cell) + step)
    monkeypatch.setattr(backend, "functions", lambda *_: module)
    initial = x.repeat(1, len(names), 1)
    lengths = torch.ones(1, dtype=torch.int64)
    inputs, no_params = y[None, None, None], x.new_empty(0, len(x))
    _, values = backend.forward(Problem(cell, inputs, no_params, initial, lengths))
    expected = evaluate(graph, {"h0": x.double(), "u0": y.double()})
    eps = torch.finfo(dtype).eps
    for name, value, oracle in zip(names, values[0], expected, strict=True):
        rounded = oracle.broadcast_to(x.shape).to(dtype)
        counted = (oracle.abs() > 1e-37) | (oracle == 0) | ~rounded.isfinite()
        if name in ("tanh_backward", "sigmoid_backward"):
            counted &= y.abs() <= 1e6  # values of functions, whose squares do not overflow
        allowed = ROUNDINGS_OF.get(name, 1) * eps
        if name == "pow":
            allowed = max(allowed, 1e-13)  # in double precision more for large exponents
        torch.testing.assert_close(
            value[counted], rounded[counted], rtol=allowed, atol=0.0, equal_nan=True,
            msg=lambda text, name=name: f"{name}: {text}",
        )  # fmt: skip


def test_every_operation_has_a_form():
    known = {*emit._INFIX, *emit._CALLS, *emit._FORMS}
    assert known | {"where", "pow"} == OPERATIONS
    assert set(emit._IMPORTED) == set(elementary.__all__)


def test_source_has_the_names_of_the_cell():
    text = backend.source(cells.para_lstm(1), torch.float32)
    assert text.startswith('"""Cell para_lstm_1')
    assert "state: h c\ninputs: u_i u_f u_g u_o\nparams: W_i W_f W_g W_o\n" in text
    path = emit.source_file("para_lstm_1", text)
    backend.functions(cells.para_lstm(1), torch.float32)
    assert path.read_text() == text


def test_a_damaged_file_is_written_again():
    text = "def f():\n    return 1\n"
    path = emit.source_file("damaged", text)
    path.write_text("def f(:")
    assert emit.load("damaged", text).f() == 1
    assert path.read_text() == text


TOLERANCE = 64 * torch.finfo(torch.float32).eps


@pytest.fixture
def single(draw):
    """Draw a problem of two sequences in single precision."""
    return lambda cell, steps, units: draw(cell, 2, steps, units, torch.float32)


def shoot(cell, problem, chunk, max_passes=20, tolerance=TOLERANCE):
    """States, final state, passes, residual, and whether lanes converged."""
    given = Problem(cell, *problem[:3])
    states, final, it = backend.shooting(given, chunk, max_passes, tolerance)
    it = Convergence.exact(problem.initial) if it is None else it
    return states, final, it.passes, it.residual, ~it.fell_back


def scan(cell, problem, states, chunk):
    """Gradients of inputs, parameters and initial state by chunks of time."""
    return backend.scan_backward(Problem(cell, *problem[:3]), states, *problem[3:], chunk)


def in_time_order(cell, problem):
    batch, steps = problem.inputs.shape[:2]
    return expected_of(cell, problem, torch.full((batch,), steps))


@pytest.mark.parametrize(
    ("steps", "chunk", "units"), [(7, 2, 3), (8, 2, 1), (5, 5, 3), (5, 9, 2), (3, 1, 9), (1, 1, 1)]
)
def test_shooting_on_any_shape(steps, chunk, units, single, assert_close):
    cell = cells.para_rnn(1)
    problem = single(cell, steps, units)
    expected = in_time_order(cell, problem)
    states, final, passes, residual, converged = shoot(cell, problem, chunk)
    assert converged.all()
    assert (residual <= TOLERANCE).all()
    assert passes.min() >= (steps > chunk)  # nothing is iterated on one chunk
    assert passes.max() <= -(-steps // chunk)
    assert_close(states, expected[0], 256.0)
    assert_close(final, expected[1], 256.0)
    assert torch.equal(final, states[:, -1])


@pytest.mark.parametrize(
    "cell",
    [
        cells.para_rnn(2),
        cells.lem(1),
        dataclasses.replace(cells.para_rnn(2), name="quasi_newton", structure="diagonal"),
    ],
    ids=lambda cell: cell.name,
)
def test_shooting_and_scan_of_cells(cell, single, assert_close):
    problem = single(cell, 7, 2)
    expected = in_time_order(cell, problem)
    states, final, _, _, converged = shoot(cell, problem, 3)
    gradients = scan(cell, problem, states, 3)
    assert converged.all()
    agree([states, final, *gradients], expected, assert_close, 256.0)


@pytest.mark.few("para_rnn_identity_1-20-10.0")
@pytest.mark.parametrize("scale", [0.5, 10.0])
@pytest.mark.parametrize("max_passes", [2, 20])
@pytest.mark.parametrize("cell", [cells.para_rnn(2), cells.linear(1)], ids=lambda cell: cell.name)
def test_phases_of_one_launch_are_those_of_many(cell, max_passes, scale, draw, monkeypatch):
    """Of one program, which is alone at its barriers and has all lanes and all units to itself."""
    problem, lengths = draw(cell, 3, 18, 14, torch.float32), torch.tensor([18, 0, 11])
    problem.params[:] *= scale
    given = Problem(cell, *problem[:3], lengths)
    expected = backend.shooting(given, 3, max_passes, TOLERANCE)
    launches, call = [], interpreter.GridExecutor.__call__
    monkeypatch.setattr(backend, "multiprocessors", lambda device: 1)
    monkeypatch.setattr(
        interpreter.GridExecutor,
        "__call__",
        lambda self, *args, **options: launches.append(self.grid) or call(self, *args, **options),
    )
    results = backend.shooting(given, 3, max_passes, TOLERANCE)
    assert launches == [(1,)]
    for value, same in zip(
        (*results[:2], *vars(results[2]).values()),
        (*expected[:2], *vars(expected[2]).values()),
        strict=True,
    ):
        assert value == same if isinstance(value, str) else value.equal(same)
    if scale < 1:
        assert not results[2].fell_back.any()


def test_shooting_without_steps(single):
    cell = cells.para_rnn(1)
    problem = single(cell, 1, 3)
    given = Problem(cell, problem.inputs[:, :0], *problem[1:3])
    states, final, convergence = backend.shooting(given, 2, 3, TOLERANCE)
    assert states.shape[1] == 0
    assert torch.equal(final, problem.initial)
    assert convergence is None


@pytest.mark.slow
def test_many_rows_of_which_few_are_chunks(single, assert_close, monkeypatch):
    monkeypatch.setattr(backend, "ROWS", (16,))
    cell = cells.para_rnn(2)
    problem = single(cell, 7, 9)
    states, final, _, _, converged = shoot(cell, problem, 3)
    gradients = scan(cell, problem, states, 3)
    assert converged.all()
    agree([states, final, *gradients], in_time_order(cell, problem), assert_close, 256.0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_shooting_and_scan_in_other_precisions(dtype, draw, assert_close):
    cell = cells.para_rnn(1)
    problem = draw(cell, 2, 7, 2, dtype)
    expected = in_time_order(cell, problem)
    tolerance = 1e-13 if dtype == torch.float64 else TOLERANCE
    states, final, _, residual, converged = shoot(cell, problem, 3, tolerance=tolerance)
    gradients = scan(cell, problem, states, 3)
    assert converged.all()
    assert residual.dtype == torch.promote_types(dtype, torch.float32)
    agree([states, final, *gradients], expected, assert_close, ROUNDINGS[dtype])


@pytest.mark.parametrize("cell", [cells.linear(2), cells.lru()], ids=lambda cell: cell.name)
def test_linear_cells_take_one_pass(cell, single, assert_close):
    problem = single(cell, 11, 3)
    states, _, passes, _, converged = shoot(cell, problem, 3)
    assert (passes == 1).all()
    assert converged.all()
    assert_close(states, in_time_order(cell, problem)[0], 256.0)


def test_lanes_that_do_not_converge_are_reported(single, assert_close):
    cell = cells.para_rnn(2)
    problem = single(cell, 18, 4)
    problem.params[:, ::2] *= 10.0
    problem.params[:, 1::2] *= 0.5
    expected, *_ = in_time_order(cell, problem)
    states, _, passes, residual, converged = shoot(cell, problem, 3, max_passes=3)
    assert not converged.all()
    assert converged.any()
    assert torch.equal(converged, residual <= TOLERANCE)
    assert passes.max() == 3
    assert_close(states, expected, 1024.0)  # exact all the same: the others ran in time order
    # With as many passes as chunks, all are exact.
    states, *_, converged = shoot(cell, problem, 3, max_passes=6)
    assert converged.all()
    assert_close(states, expected, 1024.0)


def test_nan_in_shooting_stays_in_its_lane_and_ends(single):
    cell = cells.para_rnn(1)
    problem = single(cell, 9, 3)
    clean = shoot(cell, problem, 2)
    problem.inputs[1, 4, 0, 2] = NAN
    states, _, _, residual, converged = shoot(cell, problem, 2)
    lane = torch.zeros_like(converged)
    lane[1, 2] = True
    assert torch.equal(converged, ~lane)
    assert residual[1, 2] == INF
    assert torch.equal(states[0], clean[0][0])
    assert states[1, 4:, 0, 2].isnan().all()


def test_a_product_that_overflows_is_left_out(single, assert_close):
    cell = affine(1)
    problem = single(cell, 10, 2)
    problem.inputs[:, :4] = 0.0
    problem.inputs[:, 2:4, 0] = 1e30  # in the second of five chunks, whose state is zero
    problem.initial[:] = 0.0
    states, *_, converged = shoot(cell, problem, 2)
    assert converged.all()
    assert_close(states, in_time_order(cell, problem)[0])


@pytest.mark.parametrize(("steps", "chunk"), [*itertools.product((1, 6, 7), (1, 3))])
def test_scan_on_any_shape(steps, chunk, single, assert_close):
    cell = cells.para_rnn(1)
    problem = single(cell, steps, 3)
    states, final, *expected = in_time_order(cell, problem)
    gradients = scan(cell, problem, states, chunk)
    agree([states, final, *gradients], [states, final, *expected], assert_close, 256.0)


@pytest.mark.few("1")
@pytest.mark.parametrize("max_passes", [1, 20])
def test_ends_of_sequences_in_chunks(max_passes, draw, assert_close):
    cell, lengths = cells.para_gru(2), torch.tensor([7, 0, 4, 9])
    problem = draw(cell, 4, 9, 3, torch.float32)
    problem.params[:, 1] *= 8.0
    expected = expected_of(cell, problem, lengths)
    for i, length in enumerate(lengths):
        problem.inputs[i, length:] = NAN  # is not read
    given = Problem(cell, *problem[:3], lengths)
    states, final, convergence = backend.shooting(given, 2, max_passes, TOLERANCE)
    gradients = backend.scan_backward(given, states, *problem[3:], 2)
    assert convergence.passes.min() == 1
    agree([states, final, *gradients], expected, assert_close, 1024.0)


def test_gradients_whose_products_overflow_run_in_time_order(single, assert_close):
    cell = affine(1)
    problem = single(cell, 10, 3)
    # In the second of three chunks, between zeros, so that states and gradients are zero as well.
    problem.inputs[0, 5:8, 0, 1] = 1e30
    problem.inputs[0, [4, 8], 0, 1] = 0.0
    problem.inputs[0, 4:8, 1, 1] = 0.0
    problem.g_states[0, 5:8, 0, 1] = 0.0
    assert problem.inputs[0, 5:8, 0, 1].prod().isinf()
    states, final, *expected = in_time_order(cell, problem)
    gradients = scan(cell, problem, states, 4)
    assert all(g.isfinite().all() for g in gradients)
    agree([states, final, *gradients], [states, final, *expected], assert_close, 256.0)


@pytest.mark.few("64")
@pytest.mark.parametrize("block", [32, 64])
def test_programs_of_one_sequence(block, draw, assert_close, monkeypatch):
    """Whose lanes are units beside each other: units are a multiple of a program's."""
    for name in ("FORWARD", "BACKWARD", "SHOOTING", "SHOOTING_OF_MANY", "SCAN"):
        monkeypatch.setattr(backend, name, getattr(backend, name)._replace(block=block))
    cell, lengths = cells.lem(1), [3, 0]
    check(cell, draw(cell, 2, 3, 64, torch.float32), lengths, assert_close)
    problem = draw(cell, 2, 3, 64, torch.float32)
    given = Problem(cell, *problem[:3], torch.tensor(lengths))
    expected = expected_of(cell, problem, given.lengths)
    states, final, _ = backend.shooting(given, 2, 3, TOLERANCE)
    gradients = backend.scan_backward(given, states, *problem[3:], 2)
    agree([states, final, *gradients], expected, assert_close, 256.0)


@pytest.mark.few("chunks", "shared")
@pytest.mark.parametrize("engine", ["sequential", "chunks", "registers", "shared"])
def test_wrong_lengths_of_a_device_reach_nothing_outside(engine, draw, monkeypatch):
    """The host has not read them: below zero they are zero, above all steps they are all."""
    if engine == "shared":
        monkeypatch.setattr(dense, "RESIDENT", dict.fromkeys(dense.RESIDENT, 0))
    cell = cells.para_gru(3 if engine in ("registers", "shared") else 2)
    problem = draw(cell, 4, 5, 3, torch.float32)

    def solve(*lengths):
        lengths = torch.tensor(lengths)
        if engine != "chunks":
            kernels = backend if engine == "sequential" else dense
            return results_of(cell, problem, lengths, kernels)
        given = Problem(cell, *problem[:3], lengths)
        states, final, _ = backend.shooting(given, 2, 5, TOLERANCE)
        return [states, final, *backend.scan_backward(given, states, *problem[3:], 2)]

    results, expected = solve(-1, 6, 2**32 + 2, -(2**40)), solve(0, 5, 5, 0)
    for value, same in zip(results, expected, strict=True):
        assert torch.equal(value, same)


def check_not_given(cell, problem, fields, backward, assert_close):
    """Give gradients of the first fields of the states alone, and none of the final state."""
    lengths = torch.tensor([5, 3])
    problem.g_states[:, :, fields:] = 0.0
    problem.g_final[:] = 0.0
    states, final, *expected = expected_of(cell, problem, lengths)
    given = Problem(cell, *problem[:3], lengths)
    gradients = backward(given, states, problem.g_states[:, :, :fields], None)
    agree([states, final, *gradients], [states, final, *expected], assert_close, 256.0)


@pytest.mark.parametrize("fields", [0, 2])
@pytest.mark.parametrize("chunk", [None, 2])
def test_gradients_that_are_not_given_are_zero(fields, chunk, draw, assert_close):
    backward = backend.backward if chunk is None else partial(backend.scan_backward, chunk=chunk)
    cell = cells.para_lstm(2)
    check_not_given(cell, draw(cell, 2, 5, 3, torch.float32), fields, backward, assert_close)


@pytest.mark.few("None")
@pytest.mark.parametrize("chunk", [None, 2])
def test_a_warp_moves_whole_sectors(chunk, draw, monkeypatch):
    """What 32 lanes read or write at a time in memory of float32 is 128 bytes in 4 sectors."""
    cell = cells.para_gru(2)
    problem = draw(cell, 1, 5, 64, torch.float32)
    problem = type(problem)(*[t.contiguous() for t in problem])
    builder, moved = interpreter.InterpreterBuilder, []

    def counted(move):
        def counting(self, pointers, *rest):
            at = pointers.data.astype(np.int64)
            size = pointers.dtype.element_ty.primitive_bitwidth
            if at.shape == (32,) and size == 32:  # lanes; those of a scan have rows
                moved.append(len(np.unique(at // 32)))
            return move(self, pointers, *rest)

        return counting

    for name in ("create_masked_load", "create_masked_store"):
        monkeypatch.setattr(builder, name, counted(getattr(builder, name)))
    given = Problem(cell, *problem[:3])
    if chunk is None:
        results_of(cell, problem, None)
    else:
        states, *_ = backend.shooting(given, chunk, 2, TOLERANCE)
        backend.scan_backward(given, states, *problem[3:], chunk)
    assert len(moved) > 100
    assert set(moved) == {4}


class Launched(TorchDispatchMode):
    """Names of torch's operators that launch a kernel of a GPU."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **kwargs or {})
        name = function._schema.name.removeprefix("aten::")
        # What makes an array without writing to it, which the test poisons, or is a view.
        nothing = ("empty", "empty_like", "new_empty", "fill_", "promote_types")
        if not (function.is_view or name in nothing):
            self.names.append(name)
        return result


@pytest.mark.few("lengths1")
@pytest.mark.parametrize("lengths", [None, [12, 7]])
def test_a_call_launches_little_beside_its_kernels(lengths, draw, monkeypatch):
    cell = cells.para_rnn(2)
    problem = draw(cell, 2, 12, 3, torch.float32)
    given = Problem(cell, *problem[:3], lengths and torch.tensor(lengths))
    backend.shooting(given, 3, 2, TOLERANCE)  # which traces the cell
    results_of(cell, problem, given.lengths)
    monkeypatch.setattr(interpreter.GridExecutor, "__call__", lambda *args, **kwargs: None)
    with Launched() as launched:
        states, _ = backend.forward(given)
        backend.shooting(given, 3, 2, TOLERANCE)
    assert launched.names == ["zeros"]  # with which the counts of shooting begin
    g_states = states[:, :, :1].clone()
    with Launched() as launched:
        backend.backward(given, states, g_states, None)
        backend.scan_backward(given, states, states, None, 3)
    assert launched.names == ["sum", "sum"]  # of the gradients of parameters


@pytest.fixture
def front_door(monkeypatch):
    """Let `recurrence` take these kernels for tensors of the CPU."""
    monkeypatch.setitem(_backend._MODULES, "cpu", "tsrnn.kernels._gpu")
    monkeypatch.setattr(_time_parallel, "SHORTEST_CHUNK", 3)


PARTIAL = dataclasses.replace(cells.newton_lstm(2), name="partial", structure=((0, 2), (1, 3)))


@pytest.mark.few("sequential", "newton-para_rnn_tanh_2", "scan", "shooting-partial")
@pytest.mark.parametrize(
    ("engine", "cell"),
    [
        *itertools.product(("sequential", "shooting", "newton"), [cells.para_rnn(2)]),
        *itertools.product(("shooting", "newton"), [PARTIAL]),
        ("scan", cells.lru()),
    ],
    ids=lambda value: getattr(value, "name", value),
)
@pytest.mark.usefixtures("front_door")
def test_engines(engine, cell, draw, solve, assert_close):
    problem = draw(cell, 2, 7, 2)
    expected = solve(cell, problem, "reference", [7, 4])
    results = solve(cell, problem, engine, [7, 4])
    for name, value in expected.items():
        assert_close(results[name], value, 4096)


@pytest.mark.usefixtures("front_door")
def test_lanes_that_do_not_converge_are_run_in_time_order(draw, assert_close, monkeypatch):
    monkeypatch.setattr(_time_parallel, "MAX_PASSES", 2)
    cell = cells.para_rnn(2)
    inputs, params, *_ = draw(cell, 1, 18, 4)
    expected, _ = recurrence(cell, inputs, 12 * params, engine="reference")
    states, _, convergence = recurrence(
        cell, inputs, 12 * params, engine="shooting", full_output=True
    )
    assert_close(states, expected, 1e6)
    assert convergence.passes.max() > 1
    assert convergence.fell_back.any()


@pytest.mark.usefixtures("front_door")
def test_second_derivatives(draw, check_second_derivatives):
    cell = cells.para_rnn(1)
    check_second_derivatives(cell, draw(cell, 2, 3, 2), "sequential", [3, 1])


@pytest.fixture(params=["registers", "shared", "memory"])
def place(request, monkeypatch):
    """Where matrices are kept from step to step."""
    if request.param != "registers":
        monkeypatch.setattr(dense, "RESIDENT_SEQUENCES", 0)
        monkeypatch.setattr(dense, "RESIDENT", dict.fromkeys(dense.RESIDENT, 0))
    if request.param == "memory":
        monkeypatch.setattr(dense, "SHARED_MEMORY", 0)
        dense.shared_memory.cache_clear()
    yield request.param
    dense.shared_memory.cache_clear()


@pytest.fixture
def launches(monkeypatch):
    """Launches of the kernels of full matrices that a test makes."""
    made, launch_of = [], dense.Launch.of
    monkeypatch.setattr(dense.Launch, "of", lambda *args: made.append(launch_of(*args)) or made[-1])
    return made


FORMS = [cells.para_rnn, cells.para_lstm, cells.para_gru, cells.newton_lstm, cells.lem]


@pytest.mark.few("registers-para_gru-3", "memory-lem-3", "shared-para_rnn-16")
@pytest.mark.parametrize("size", [3, 16])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_full_matrices(form, size, place, launches, draw, assert_close):
    cell = form(size)
    problem = draw(cell, steps=3, units=2, dtype=torch.float32)
    check(cell, problem, [2, 0, 3], assert_close, dense)
    assert {launch.place for launch in launches} == {place}


MANY = [3] * 16 + [1, 0, 2]
VARIANTS = {  # settings of the module, cell, sizes that differ, lengths
    "rnn not ahead": ({"READ_AHEAD": 0}, cells.para_rnn(3), {"batch": 5}, [2, 0, 3, 1, 3]),
    "lstm not ahead": ({"READ_AHEAD": 0}, cells.para_lstm(3), {"batch": 5}, [2, 0, 3, 1, 3]),
    "offsets of 64 bits": ({"FARTHEST": 0}, cells.para_gru(3), {}, [2, 0, 3]),
    "tiles of gru": ({}, cells.para_gru(20), {"units": 1}, [3, 3, 3]),
    "tiles of lem": ({}, cells.lem(20), {"units": 1}, [3, 3, 3]),
    "float64": ({}, cells.newton_lstm(3), {"dtype": torch.float64}, [2, 0, 3]),
    "bfloat16": ({}, cells.newton_lstm(3), {"dtype": torch.bfloat16}, [2, 0, 3]),
    "few programs": ({"PROGRAMS": 1}, cells.para_gru(3), {"batch": 19}, MANY),
    "many programs": ({"PROGRAMS": 132}, cells.para_gru(3), {"batch": 19}, MANY),
}


@pytest.mark.few(
    "memory-lstm not ahead", "offsets of 64 bits", "tiles of gru", "tiles of lem",
    "shared-float64", "memory-few programs",
)  # fmt: skip
@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("name", VARIANTS)
def test_variants_of_full_matrices(name, monkeypatch, draw, assert_close):
    settings, cell, sizes, lengths = VARIANTS[name]
    for setting, value in settings.items():
        monkeypatch.setattr(dense, setting, value)
    sizes = {"batch": 3, "steps": 3, "units": 2, "dtype": torch.float32} | sizes
    check(cell, draw(cell, **sizes), lengths, assert_close, dense)


@pytest.mark.few("para_gru-shared")
@pytest.mark.parametrize("place", ["shared", "memory"], indirect=True)
@pytest.mark.parametrize("form", [cells.para_gru, cells.lem], ids=lambda form: form.__name__)
def test_full_matrices_in_tf32(form, place, launches, draw, assert_close):
    """Numbers are those of exact products: the interpreter does not round to TF32."""
    usual = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        problem = draw(form(20), batch=19, steps=3, units=2, dtype=torch.float32)
        check(form(20), problem, MANY, assert_close, dense)
    finally:
        torch.set_float32_matmul_precision(usual)
    assert [(launch.block, launch.place) for launch in launches] == [(16, place), (8, place)]


@pytest.mark.parametrize("form", [cells.para_gru, cells.lem], ids=lambda form: form.__name__)
@pytest.mark.parametrize("place", ["memory"], indirect=True)
@pytest.mark.usefixtures("place")
def test_full_matrices_in_tiles(form, monkeypatch, draw, assert_close):
    monkeypatch.setattr(dense, "TILE_BYTES", 1024)
    problem = draw(form(40), steps=3, units=1, dtype=torch.float32)
    check(form(40), problem, [3, 1, 2], assert_close, dense)


@pytest.mark.usefixtures("place")
def test_full_matrices_without_sequences(draw):
    cell = cells.para_gru(3)
    results = results_of(cell, draw(cell, batch=0), torch.zeros(0, dtype=torch.int64), dense)
    assert not results[3].any()


def _unusual(states, inputs, matrices, vectors):
    """Matrices used twice or not at all, products of products, of inputs and of constants."""
    (h, c), (u,), (A, B, _unused), (w,) = states, inputs, matrices, vectors
    a = torch.tanh(A @ (B @ (w * h) + u))
    b = A @ u + B @ torch.ones_like(c)
    c = torch.where(h > 0, c, 2 * c)
    return torch.sigmoid(a + B @ h), c / (1 + a * a) + torch.where(h > 0, 0.1 * b, 0.2 * b)


def _delay(states, inputs, matrices, vectors):
    """New states that are inputs, old states and constants."""
    (h, c, _), (u,), (A,) = states, inputs, matrices
    return u, h, torch.full_like(c, 0.25) + 0 * (A @ c)


def _diagonal(states, inputs, matrices, vectors):
    """No matrix at all."""
    (h,), (u,), (w,) = states, inputs, vectors
    return (torch.tanh(w * h + u),)


@pytest.mark.few("memory-unusual", "shared-delay")
@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    "form",
    [
        MatrixForm("unusual", ("h", "c"), ("u",), ("A", "B", "_unused"), _unusual, ("w",)),
        MatrixForm("delay", ("kept", "x", "weights"), ("u",), ("A",), _delay),
        MatrixForm("diagonal", ("h",), ("u",), (), _diagonal, ("w",)),
    ],
    ids=lambda form: form.name,
)
def test_own_forms_with_matrices(form, draw, assert_close):
    cell = form.block(3)
    problem = draw(cell, steps=4, units=2, dtype=torch.float32)
    check(cell, problem, [4, 0, 3], assert_close, dense)


def _overflow(states, inputs, matrices, vectors):
    """Infinite where there is no unit, and one stands in for its input."""
    (h,), (u,), (A,) = states, inputs, matrices
    return (torch.tanh(A @ (h + torch.exp(1e3 * u))),)


@pytest.mark.few("registers")
@pytest.mark.usefixtures("place")
def test_units_that_are_not_there_do_not_matter(draw, assert_close):
    cell = MatrixForm("overflow", ("h",), ("u",), ("A",), _overflow).block(3)
    problem = draw(cell, steps=4, units=2, dtype=torch.float32)
    problem = problem._replace(inputs=-problem.inputs.abs() - 0.1)
    check(cell, problem, [4, 4, 4], assert_close, dense)


@pytest.mark.few("shared")
@pytest.mark.usefixtures("place")
def test_nan_stays_in_its_sequence_and_block(draw):
    cell, lengths = cells.para_gru(5), torch.tensor([3, 3, 3])
    problem = draw(cell, steps=3, units=2, dtype=torch.float32)
    clean = results_of(cell, problem, lengths, dense)
    problem.inputs[1, 1, 0, 1] = NAN
    results = results_of(cell, problem, lengths, dense)
    assert results[0][1, 2, :, 1].isnan().all()
    for value, same in zip(results[:3], clean[:3], strict=True):
        value, same = value.movedim(-1, 1), same.movedim(-1, 1)
        elsewhere = torch.ones(3, 2, dtype=torch.bool)
        elsewhere[1, 1] = False
        assert torch.equal(value[elsewhere], same[elsewhere])
    assert torch.equal(results[3][:, 0], clean[3][:, 0])


@pytest.mark.few("memory-0")
@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("fields", [0, 3])
def test_gradients_of_vectors_that_are_not_given_are_zero(fields, draw, assert_close):
    cell = cells.para_lstm(3)
    check_not_given(cell, draw(cell, 2, 5, 2, torch.float32), fields, dense.backward, assert_close)


@pytest.mark.few("shared")
@pytest.mark.usefixtures("place")
def test_dense_takes_these_kernels(monkeypatch, draw, solve, assert_close):
    monkeypatch.setattr(_dense, "cpu", dense)
    cell = cells.para_rnn(9)
    problem = draw(cell, 2, 4, 2)
    for lengths in (None, [4, 1]):
        expected = solve(cell, problem, "reference", lengths)
        results = solve(cell, problem, "dense", lengths)
        for name, value in expected.items():
            assert_close(results[name], value)
