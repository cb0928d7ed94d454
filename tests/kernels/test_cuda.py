"""The kernels on a CUDA device: what the interpreter of Triton cannot say.

Of Python packages they need torch, numpy, pandas, llvmlite, pytest and Triton alone, which takes a
C compiler and Python's headers to launch kernels. On a machine with these, in a clone with links
``tsrnn/kernels`` to ``../kernels`` and ``tsrnn/datasets`` to ``../datasets``::

    TSRNN_CACHE_DIR=/tmp/tsrnn PYTHONPATH=. python -m pytest tests/kernels/test_cuda.py

What users meet first comes first, and each test stands by itself, so that ``-n 8`` of pytest-xdist
may spread them. ``-k autocast`` takes those of a name.

Where ``compute-sanitizer`` is on the path, as it is with the CUDA toolkit, small launches run under
it as well: for reads and writes outside of arrays, races in shared memory, barriers that not all
threads reach, and memory that is read before it is written. These are slow: ``-k "not sanitizer"``
leaves them out, ``-k memcheck`` takes those of one tool.
"""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
import torch
from torch import nn

from tsrnn.kernels import _time_parallel, cells, recurrence
from tsrnn.kernels._autograd import ENGINES, best_engine
from tsrnn.kernels._problem import Problem
from tsrnn.kernels._trace import is_linear
from tsrnn.layers import LRU, ParaRNN

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
# Those of the layers as they are made where nothing is chosen.
COMMON = [cells.para_rnn(2), cells.para_gru(2), cells.para_lstm(2), cells.lru(), cells.lem()]
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


@contextmanager
def side_stream():
    """Stream that begins after the work of the current one, which goes on after its end."""
    current, stream = torch.cuda.current_stream(), torch.cuda.Stream()
    stream.wait_stream(current)
    with torch.cuda.stream(stream):
        yield stream
    current.wait_stream(stream)


def results_of(module, x, *arguments, call=None):
    """Output of a module, or of what calls it, and the gradients of x and the parameters."""
    x = x.clone().requires_grad_()
    output, _ = (module if call is None else call)(x, *arguments)
    gradients = torch.autograd.grad(output.square().mean(), [x, *module.parameters()])
    return [output.detach(), *gradients]


def capture(run):
    """Graph of a function's work and its results, after a call that compiles its kernels."""
    with side_stream() as stream:
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        return graph, run()


def run_within(seconds, command, **environment):
    """Run a command; end it and what it has started when its time is up."""
    process = subprocess.Popen(
        command, env=os.environ | environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        pytest.fail(
            f"not done within {seconds} seconds: {command}\n{output[-6000:]}{errors[-2000:]}"
        )
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


@pytest.mark.parametrize("cell", COMMON, ids=lambda cell: cell.name)
def test_common_cells_and_their_gradients(cell, on_device, check):
    check(cell, on_device(cell, 3, 40, UNITS, torch.float32), "auto")


@pytest.mark.parametrize("cell", COMMON, ids=lambda cell: cell.name)
@pytest.mark.parametrize("lengths", [[40, 0, 13], [0, 0, 0], [1, 40, 39]], ids=str)
def test_common_cells_on_ragged_and_empty_sequences(lengths, cell, on_device, check):
    check(cell, on_device(cell, 3, 40, UNITS, torch.float32), "auto", lengths)


@pytest.mark.parametrize("cell", COMMON, ids=lambda cell: cell.name)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
def test_common_cells_in_other_precisions(dtype, cell, on_device, check):
    problem = contracting(on_device(cell, 3, 20, UNITS, dtype))
    for lengths in (None, [20, 0, 7]):
        check(cell, problem, "auto", lengths)


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm", "lru"])
def test_layers_are_those_of_the_cpu(kind, assert_close):
    torch.manual_seed(0)
    make = LRU if kind == "lru" else lambda *sizes, **options: ParaRNN(*sizes, cell=kind, **options)
    layer, x = make(5, 16, num_layers=2), torch.randn(4, 30, 5)
    lengths = [30, 0, 1, 17]
    expected = results_of(layer, x, None, lengths)
    results = results_of(layer.to(DEVICE), x.to(DEVICE), None, lengths)
    for value, due in zip(results, expected, strict=True):
        assert_close(value.cpu(), due, 4096.0)


@pytest.mark.parametrize("engine", ["sequential", "shooting", "scan", "dense"])
def test_kernels_clamp_lengths(engine, on_device, agree):
    """Below the check of the front door: nothing is read or written outside of arrays."""
    cell = {"scan": cells.lru(), "dense": cells.para_gru(40)}.get(engine, cells.para_rnn(2))
    drawn = contracting(on_device(cell, 3, 200, 8, torch.float32))

    def solve(lengths):
        problem = Problem(cell, *drawn[:3], torch.tensor(lengths, device=DEVICE))
        states, final, _ = ENGINES[engine].forward(problem)
        gradients = ENGINES[engine].backward(problem, states, drawn.g_states, drawn.g_final)
        names = ("states", "final", "g_inputs", "g_params", "g_initial")
        return dict(zip(names, (states, final, *gradients), strict=True))

    agree(solve([-7, 2**40, 201]), solve([0, 200, 200]), 1.0)


WRONG_LENGTHS = """
import torch
from tsrnn.kernels import cells, recurrence
inputs, params = torch.ones(2, 5, 2, 8, device="cuda"), torch.zeros(4, 8, device="cuda")
recurrence(cells.para_rnn(2), inputs, params, lengths=torch.tensor([5, 6], device="cuda"))
torch.cuda.synchronize()
"""


def test_wrong_lengths_on_the_device_end_in_an_error():
    """In a process of its own: an assertion of the device leaves nothing to work with."""
    run = run_within(120, [sys.executable, "-c", WRONG_LENGTHS])
    assert run.returncode != 0
    assert "device-side assert" in run.stderr, run.stderr[-4000:]


def test_wrong_lengths_of_the_host_are_named(on_device):
    problem = on_device(cells.para_rnn(2), 2, 5, 3, torch.float32)
    for lengths in ([5, 6], torch.tensor([5, 6])):
        with pytest.raises(ValueError, match="between 0 and T=5; got 6 for sequence 1"):
            recurrence(cells.para_rnn(2), *problem[:3], lengths)


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_lengths_make_the_host_wait_for_nothing(on_device):
    cell = cells.para_rnn(2)
    problem = on_device(cell, 3, 40, 8, torch.float32)
    leaves = [t.requires_grad_() for t in problem[:3]]
    for lengths in ([40, 0, 13], torch.tensor([40, 0, 13], device=DEVICE)):
        states, _ = recurrence(cell, *leaves, lengths)  # compiled before
        expected = torch.autograd.grad(states.sum(), leaves)
        torch.cuda.set_sync_debug_mode("error")
        try:
            with pytest.raises(RuntimeError, match="synchronizing"):
                leaves[0].sum().item()  # what waits is seen
            states, _ = recurrence(cell, *leaves, lengths)
            gradients = torch.autograd.grad(states.sum(), leaves)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert all(map(torch.equal, gradients, expected))


def test_every_cell_in_time_order(cell, on_device, check):
    problem = on_device(cell, 3, 9, UNITS, torch.float32)
    for lengths in ([9, 9, 9], [9, 0, 4]):
        check(cell, problem, "sequential", lengths)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_cell_in_other_precisions(cell, dtype, on_device, check):
    check(cell, contracting(on_device(cell, 3, 9, UNITS, dtype)), "sequential")


def test_every_cell_in_chunks_of_time(cell, on_device, check):
    problem = contracting(on_device(cell, 3, 200, UNITS, torch.float32))
    for lengths in ([200, 200, 200], [200, 0, 70]):
        check(cell, problem, parallel_engine(cell), lengths)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("cell", SOME, ids=lambda cell: cell.name)
def test_chunks_of_time_in_other_precisions(cell, dtype, on_device, check):
    check(cell, contracting(on_device(cell, 3, 200, UNITS, dtype)), parallel_engine(cell))


@pytest.mark.parametrize("steps", [8192, 16384])
@pytest.mark.parametrize("cell", [cells.para_rnn(2), cells.lem()], ids=lambda cell: cell.name)
def test_many_chunks(cell, steps, on_device, check):
    """Programs of several warps scan them."""
    check(cell, contracting(on_device(cell, 1, steps, 64, torch.float64)), "shooting")


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


def test_newton_on_every_step(cell, on_device, check):
    problem = contracting(on_device(cell, 3, 200, UNITS, torch.float32))
    for lengths in ([200, 200, 200], [200, 0, 70]):
        check(cell, problem, "newton", lengths)


def keep_matrices_in(place, monkeypatch):
    """Have full matrices in registers, in shared memory, or read from memory at every step."""
    from tsrnn.kernels._gpu import dense

    if place == "registers":
        monkeypatch.setattr(dense, "RESIDENT_SEQUENCES", 2**20)
        return
    monkeypatch.setattr(dense, "RESIDENT", dict.fromkeys(dense.RESIDENT, 0))
    if place == "memory":
        monkeypatch.setattr(dense, "shared_memory", lambda device: 0)


@pytest.mark.parametrize("cell", MATRICES, ids=lambda cell: cell.name)
@pytest.mark.parametrize("place", ["registers", "shared", "memory"])
def test_full_matrices(place, cell, on_device, check, monkeypatch):
    keep_matrices_in(place, monkeypatch)
    for batch, lengths in ((19, [20] * 19), (3, [20, 0, 7])):
        check(cell, on_device(cell, batch, 20, 2, torch.float32), "dense", lengths)


@pytest.mark.parametrize("size", [16, 64, 128, 200])
@pytest.mark.parametrize("form", [cells.para_rnn, cells.para_gru, cells.lem])
def test_full_matrices_of_any_width(form, size, on_device, check):
    problem = on_device(form(size), 5, 12, 1, torch.float32)
    check(
        form(size), problem._replace(params=problem.params / size**0.5), "dense", [12, 3, 0, 9, 1]
    )


@pytest.mark.parametrize("form", [cells.para_rnn, cells.para_gru, cells.para_lstm])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_full_matrices_by_tensor_cores(dtype, form, on_device, solve):
    """As many sequences as share a program: float32 in TF32, of which products keep 11 bits."""
    cell, before = form(64), torch.get_float32_matmul_precision()
    problem = on_device(cell, 600, 12, 1, dtype)
    problem = problem._replace(params=problem.params / 4)
    expected = solve(cell, type(problem)(*(t.double() for t in problem)), "reference")
    torch.set_float32_matmul_precision("high")
    try:
        results = solve(cell, problem, "dense")
    finally:
        torch.set_float32_matmul_precision(before)
    allowed = 4e-3 if dtype == torch.float32 else 3e-2
    for name, value in results.items():
        error = (value.double() - expected[name]).norm() / expected[name].norm()
        assert error < allowed, (name, float(error))


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

    graph, captured = capture(run)
    with torch.no_grad():
        inputs.neg_()
    graph.replay()
    torch.cuda.synchronize()
    for value, expected in zip(captured, run(), strict=True):
        assert torch.equal(value, expected)


def test_a_graph_takes_lengths_of_the_device(on_device):
    cell = cells.para_gru(2)
    problem = on_device(cell, 3, 40, 8, torch.float32)
    lengths = torch.tensor([40, 0, 13], device=DEVICE)

    def run():
        return recurrence(cell, *problem[:3], lengths)

    graph, captured = capture(run)
    lengths.copy_(torch.tensor([7, 40, 1]))
    graph.replay()
    torch.cuda.synchronize()
    for value, expected in zip(captured, run(), strict=True):
        assert torch.equal(value, expected)


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
@pytest.mark.parametrize("engine", ["sequential", "shooting", "dense"])
def test_a_first_call_inside_a_capture_is_refused_in_words(engine, on_device):
    # Cells and numbers of units that no other test compiles for.
    cell, units = (cells.para_gru(29), 1) if engine == "dense" else (cells.para_gru(2), 29)
    problem = on_device(cell, 2, 200, units, torch.float32)[:3]
    with (
        pytest.raises(RuntimeError, match="Call the recurrence once before the capture"),
        torch.cuda.graph(torch.cuda.CUDAGraph()),
    ):
        recurrence(cell, *problem, engine=engine)
    states, _ = recurrence(cell, *problem, engine=engine)  # the device is as before
    assert states.isfinite().all()


@pytest.mark.parametrize("engine", ["sequential", "shooting"])
def test_work_is_done_in_the_current_stream(engine, on_device):
    cell = cells.para_rnn(2)
    inputs, params, initial, *_ = on_device(cell, 64, 200, 64, torch.float32)
    expected, _ = recurrence(cell, inputs, params, initial, engine=engine)
    with side_stream():
        late = torch.zeros_like(inputs)
        torch.cuda._sleep(10**8)
        late.copy_(inputs)
        states, _ = recurrence(cell, late, params, initial, engine=engine)
    assert torch.equal(states, expected)


@pytest.mark.parametrize("engine", ["sequential", "shooting"])
def test_two_streams_at_once(engine, on_device, solve):
    cell = cells.para_gru(2)
    problems = [on_device(cell, 64, 200, 16, torch.float32, seed) for seed in (0, 1)]
    expected = [solve(cell, problem, engine) for problem in problems]
    results = []
    for _ in range(4):
        for problem in problems:
            with side_stream():
                results.append(solve(cell, problem, engine))
    torch.cuda.synchronize()
    for i, values in enumerate(results):
        for name, value in values.items():
            assert torch.equal(value, expected[i % 2][name]), name


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_layers_behind_a_linear_map_under_autocast(kind):
    torch.manual_seed(0)
    layer = ParaRNN(64, 32, cell=kind, num_layers=2)
    network = nn.Sequential(nn.Linear(7, 64), layer).to(DEVICE)
    x = torch.randn(8, 50, 7, device=DEVICE)
    expected = results_of(network, x)
    with torch.autocast(DEVICE, torch.bfloat16):
        results = results_of(network, x)
    for value, due in zip(results, expected, strict=True):
        assert value.dtype == torch.float32
        assert (value - due).norm() <= 8 * torch.finfo(torch.bfloat16).eps * due.norm()
    assert not torch.equal(results[0], expected[0])


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_the_projection_of_a_first_layer_follows_autocast(kind):
    torch.manual_seed(0)
    layer = ParaRNN(64, 32, cell=kind).to(DEVICE)
    x = torch.randn(8, 50, 64, device=DEVICE)
    with torch.no_grad(), torch.autocast(DEVICE, torch.bfloat16):
        output, state = layer(x)
        rounded = layer(x.bfloat16())[0]
    assert output.dtype == state.dtype == torch.float32
    assert torch.equal(output, rounded)  # the product rounds x in any case
    assert not torch.equal(output, layer(x)[0].detach())


def test_a_compiled_layer(assert_close):
    torch.manual_seed(0)
    layer = ParaRNN(5, 16, cell="gru").to(DEVICE)
    x = torch.randn(4, 30, 5, device=DEVICE)
    expected = results_of(layer, x)
    results = results_of(layer, x, call=torch.compile(layer))
    for value, due in zip(results, expected, strict=True):
        assert_close(value, due, 256.0)


def test_another_device_than_the_current_one(on_device, check):
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two devices")
    cell = cells.para_rnn(2)
    for engine in ("sequential", "shooting", "dense"):
        check(cell, on_device(cell, 3, 9, 5, device="cuda:1"), engine)
    assert torch.cuda.current_device() == 0


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


PLACES = ["registers", "shared", "memory"]
LAUNCHES = ["sequential", "shooting", "scan", *PLACES]
SANITIZER_SECONDS = 180  # of one tool and engine; without it a launch takes a second


@pytest.mark.parametrize("engine", LAUNCHES)
def test_small_launches(engine, on_device, check, monkeypatch):
    """For the sanitizer, which is slow."""
    if engine in PLACES:
        keep_matrices_in(engine, monkeypatch)
        cell = cells.para_gru(40)
        check(cell, on_device(cell, 2, 9, 1, torch.float32), "dense", [9, 4])
        return
    cell = cells.lru() if engine == "scan" else cells.para_rnn(2)
    check(cell, contracting(on_device(cell, 2, 1000, 8, torch.float32)), engine, [1000, 67])


@pytest.mark.parametrize("engine", LAUNCHES)
@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "synccheck", "initcheck"])
def test_small_launches_under_the_sanitizer(tool, engine):
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.skip("compute-sanitizer, of the CUDA toolkit, is not on the path")
    command = [sanitizer, "--tool", tool, "--error-exitcode", "9", "--target-processes", "all",
               sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
               f"{__file__}::test_small_launches[{engine}]"]  # fmt: skip
    # An array for itself, so that a neighbour does not stand in for what is outside of it.
    run = run_within(SANITIZER_SECONDS, command, PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
