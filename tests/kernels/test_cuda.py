"""The kernels on a CUDA device: what the interpreter of Triton cannot say.

Of Python packages they need torch, numpy, pandas, llvmlite, pytest and Triton alone, which takes a
C compiler and Python's headers to launch kernels. On a machine with these, in a clone with links
``tsrnn/kernels`` to ``../kernels`` and ``tsrnn/datasets`` to ``../datasets``::

    TSRNN_CACHE_DIR=/tmp/tsrnn PYTHONPATH=. python -m pytest tests/kernels/test_cuda.py

Where ``compute-sanitizer`` is on the path, as it is with the CUDA toolkit, small launches run under
it as well: for reads and writes outside of arrays, races in shared memory, barriers that not all
threads reach, and memory that is read before it is written.
"""

import os
import shutil
import subprocess
import sys

import pytest
import torch

from tsrnn.kernels import _time_parallel, cells, recurrence
from tsrnn.kernels._autograd import best_engine
from tsrnn.kernels._trace import is_linear

DEVICE = "cuda"
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
ROUNDINGS = {torch.float32: 256.0, torch.float64: 256.0, torch.bfloat16: 16.0}


@pytest.fixture
def on_device(draw):
    """Draw a problem on a device."""

    def on_device(*args, device=DEVICE, **kwargs):
        problem = draw(*args, **kwargs)
        return type(problem)(*(t.to(device) for t in problem))

    return on_device


@pytest.fixture
def check(solve, agree):
    """Compare an engine with the loop in float64: states, final state and every gradient."""

    def check(cell, problem, engine, lengths=None):
        dtype = problem.inputs.dtype
        wide = type(problem)(*(t.double() for t in problem))
        expected = solve(cell, wide, "reference", lengths)
        results = solve(cell, problem, engine, lengths)
        agree(results, {k: v.to(dtype) for k, v in expected.items()}, ROUNDINGS[dtype])

    return check


# A kernel is compiled for its cell, dtype and number of units, and for given lengths or none.
UNITS = 33
SOME = [cells.para_rnn(2), cells.para_gru(2), cells.lru()]
DTYPES = [torch.float64, torch.bfloat16]
MATRICES = [
    make(size)
    for make in (cells.para_rnn, cells.para_gru, cells.para_lstm, cells.newton_lstm, cells.lem)
    for size in (3, 40)
]


def parallel_engine(cell):
    """Engine in chunks of time."""
    return "scan" if is_linear(cell) else "shooting"


def contracting(problem):
    """The problem with weights at which Newton's method converges."""
    return problem._replace(params=0.5 * problem.params)


def test_every_cell_in_time_order(cell, on_device, check):
    problem = on_device(cell, 3, 9, UNITS, torch.float32)
    for lengths in ([9, 9, 9], [9, 0, 4]):
        check(cell, problem, "sequential", lengths)


def test_every_cell_in_chunks_of_time(cell, on_device, check):
    problem = contracting(on_device(cell, 3, 200, UNITS, torch.float32))
    for lengths in ([200, 200, 200], [200, 0, 70]):
        check(cell, problem, parallel_engine(cell), lengths)


def test_newton_on_every_step(cell, on_device, check):
    problem = contracting(on_device(cell, 3, 200, UNITS, torch.float32))
    for lengths in ([200, 200, 200], [200, 0, 70]):
        check(cell, problem, "newton", lengths)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_cell_in_other_precisions(cell, dtype, on_device, check):
    check(cell, contracting(on_device(cell, 3, 9, UNITS, dtype)), "sequential")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("cell", SOME, ids=lambda cell: cell.name)
def test_chunks_of_time_in_other_precisions(cell, dtype, on_device, check):
    check(cell, contracting(on_device(cell, 3, 200, UNITS, dtype)), parallel_engine(cell))


@pytest.mark.parametrize("steps", [8192, 16384])
@pytest.mark.parametrize("cell", [cells.para_rnn(2), cells.lem()], ids=lambda cell: cell.name)
def test_many_chunks(cell, steps, on_device, check):
    """Programs of several warps scan them."""
    check(cell, contracting(on_device(cell, 1, steps, 64, torch.float64)), "shooting")


@pytest.mark.parametrize("cell", MATRICES, ids=lambda cell: cell.name)
@pytest.mark.parametrize("place", ["registers", "memory"])
def test_full_matrices(place, cell, on_device, check, monkeypatch):
    from tsrnn.kernels._gpu import dense

    monkeypatch.setattr(dense, "RESIDENT_SEQUENCES", 2**20 if place == "registers" else 0)
    for batch, lengths in ((19, [20] * 19), (3, [20, 0, 7])):
        check(cell, on_device(cell, batch, 20, 2, torch.float32), "dense", lengths)


@pytest.mark.parametrize("size", [16, 64, 128, 200])
@pytest.mark.parametrize("form", [cells.para_rnn, cells.para_gru, cells.lem])
def test_full_matrices_of_any_width(form, size, on_device, check):
    problem = on_device(form(size), 5, 12, 1, torch.float32)
    check(
        form(size), problem._replace(params=problem.params / size**0.5), "dense", [12, 3, 0, 9, 1]
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("cell", MATRICES[1::2], ids=lambda cell: cell.name)
def test_full_matrices_in_other_precisions(cell, dtype, on_device, check):
    problem = on_device(cell, 3, 12, 2, dtype)
    check(cell, problem._replace(params=problem.params / 8), "dense", [12, 0, 7])


@pytest.mark.parametrize("engine", ["sequential", "shooting", "scan", "dense"])
def test_gradients_that_are_not_given_are_zero(engine, on_device, agree):
    cell = cells.lru() if engine == "scan" else cells.para_lstm(2)
    problem = contracting(on_device(cell, 3, 200, UNITS, torch.float64))

    def solve(engine, **options):
        leaves = [t.clone().requires_grad_() for t in problem[:3]]
        states, final = recurrence(cell, *leaves, [200, 0, 70], engine, **options)
        value = states.square().sum() if options else final.square().sum()
        gradients = torch.autograd.grad(value, leaves)
        return dict(zip(("inputs", "params", "initial"), gradients, strict=True))

    agree(solve(engine), solve("reference"), 4096)
    agree(solve(engine, outputs_only=True), solve("reference", outputs_only=True), 4096)


@pytest.mark.parametrize("engine", ["sequential", "shooting", "scan", "dense", "resident"])
def test_small_launches(engine, on_device, check, monkeypatch):
    """For the sanitizer, which is slow."""
    if engine in ("dense", "resident"):
        from tsrnn.kernels._gpu import dense

        monkeypatch.setattr(dense, "RESIDENT_SEQUENCES", 2**20 if engine == "resident" else 0)
        cell = cells.para_gru(40)
        check(cell, on_device(cell, 2, 9, 1, torch.float32), "dense", [9, 4])
        return
    cell = cells.lru() if engine == "scan" else cells.para_rnn(2)
    check(cell, contracting(on_device(cell, 2, 1000, 8, torch.float32)), engine, [1000, 67])


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "synccheck", "initcheck"])
def test_small_launches_under_the_sanitizer(tool):
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.skip("compute-sanitizer, of the CUDA toolkit, is not on the path")
    command = [sanitizer, "--tool", tool, "--error-exitcode", "9", "--target-processes", "all",
               sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__, "-k",
               "test_small_launches and not sanitizer"]  # fmt: skip
    # An array for itself, so that a neighbour does not stand in for what is outside of it.
    environment = os.environ | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]


def test_what_does_not_converge_is_run_in_time_order(on_device, solve, agree, monkeypatch):
    monkeypatch.setattr(_time_parallel, "MAX_PASSES", 1)
    cell = cells.para_rnn(2)
    problem = on_device(cell, 2, 300, 40, torch.float64)
    params = problem.params.clone()
    params[:, ::2] *= 4.0
    problem = problem._replace(params=params)
    *_, convergence = recurrence(cell, *problem[:3], engine="shooting", full_output=True)
    assert convergence.fell_back.any()
    assert not convergence.fell_back.all()
    # Such a recurrence expands roundings: those of one engine beside another's.
    agree(solve(cell, problem, "shooting"), solve(cell, problem, "sequential"), 2.0**24)


@pytest.mark.parametrize("engine", ["sequential", "shooting", "dense"])
def test_shapes_without_work(engine, on_device, check):
    cell = cells.para_rnn(2)
    check(cell, on_device(cell, 0, 5, 3), engine)
    check(cell, on_device(cell, 3, 1, 1), engine, [1, 0, 1])
    check(cell, on_device(cell, 70, 3, 1), engine, [0] * 70)


def test_buffers_are_written_completely_and_strides_do_not_matter(poisoned, on_device, solve):
    cell = cells.para_rnn(2)
    problem = on_device(cell, 3, 5, 33, torch.float32)
    strided = type(problem)(*(t.mT.contiguous().mT for t in problem))
    expected = solve(cell, problem, "sequential", [5, 0, 2])
    for name, value in solve(cell, strided, "sequential", [5, 0, 2]).items():
        assert value.isfinite().all(), name
        assert torch.equal(value, expected[name]), name


@pytest.mark.parametrize(
    ("batch", "steps", "engine"), [(2**10 + 1, 2**11, "sequential"), (2, 2**20 + 64, "scan")]
)
def test_arrays_of_more_than_two_to_the_31_numbers(batch, steps, engine):
    if torch.cuda.mem_get_info()[0] < 48 * 2**30:
        pytest.skip("needs 48 GB of the device's memory")
    cell, units = cells.linear(1), 2**10
    inputs = torch.ones(batch, steps, 1, units, device=DEVICE)
    params = torch.full((1, units), 0.5, device=DEVICE)
    states, final = recurrence(cell, inputs, params, engine=engine)
    for row in (0, batch - 1):
        last, _ = recurrence(cell, inputs[row : row + 1], params, engine=engine)
        assert torch.equal(states[row : row + 1], last)
    assert torch.equal(final, states[:, -1])
    assert (states[-1, 60:] == 2.0).all()  # the limit, to rounding


def test_another_device_than_the_current_one(on_device, check):
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two devices")
    cell = cells.para_rnn(2)
    for engine in ("sequential", "shooting", "dense"):
        check(cell, on_device(cell, 3, 9, 5, device="cuda:1"), engine)
    assert torch.cuda.current_device() == 0


@pytest.mark.parametrize("engine", ["sequential", "shooting"])
def test_work_is_done_in_the_current_stream(engine, on_device):
    cell = cells.para_rnn(2)
    inputs, params, initial, *_ = on_device(cell, 64, 200, 64, torch.float32)
    expected, _ = recurrence(cell, inputs, params, initial, engine=engine)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        late = torch.zeros_like(inputs)
        torch.cuda._sleep(10**8)
        late.copy_(inputs)
        states, _ = recurrence(cell, late, params, initial, engine=engine)
    stream.synchronize()
    assert torch.equal(states, expected)


@pytest.mark.parametrize("engine", ["sequential", "shooting", "dense"])
def test_runs_are_equal_bit_by_bit(engine, on_device, solve):
    cell = cells.para_gru(2)
    problem = on_device(cell, 5, 300, 7, torch.float32)
    first = solve(cell, problem, engine, [300, 1, 0, 299, 128])
    for _ in range(20):
        for name, value in solve(cell, problem, engine, [300, 1, 0, 299, 128]).items():
            assert torch.equal(value, first[name]), name


@pytest.mark.parametrize(
    ("batch", "steps", "engine"), [(2, 4200, "shooting"), (3000, 600, "sequential")]
)
def test_a_graph_captures_what_auto_takes(batch, steps, engine, on_device):
    cell = cells.para_rnn(2)
    inputs, params, initial, g_states, _ = on_device(cell, batch, steps, 3, torch.float32)
    assert best_engine(cell, inputs, params) == engine
    leaves = [t.requires_grad_() for t in (inputs, params, initial)]

    def run():
        states, _ = recurrence(cell, *leaves)
        return states.detach(), *torch.autograd.grad(states, leaves, g_states)

    run()  # compiled before
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = run()
    with torch.no_grad():
        inputs.neg_()
    graph.replay()
    torch.cuda.synchronize()
    for value, expected in zip(captured, run(), strict=True):
        assert torch.equal(value, expected)
