"""Triton kernels without a GPU: in the interpreter, and through the compiler to machine code."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch

from tsrnn.kernels import cells
from tsrnn.kernels._derived import affine
from tsrnn.kernels._problem import Problem

pytest.importorskip("triton", reason="Triton is made for Linux only")

CASES = Path(__file__).with_name("_triton_cases.py")


@pytest.mark.parametrize("chosen", ["not slow", pytest.param("slow", marks=pytest.mark.slow)])
def test_kernels_in_the_interpreter(chosen, tmp_path):
    # The switch is read when kernels are imported, so that it needs a process of its own.
    given = {"TRITON_INTERPRET": "1", "TSRNN_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    options = ["-q", "-p", "no:cacheprovider", "-m", chosen]
    command = [sys.executable, "-m", "pytest", *options, str(CASES)]
    run = subprocess.run(command, env=os.environ | given, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]


class Pretended:
    """The driver of a GPU that is not there."""

    def __init__(self, target):
        self._target = target

    def get_current_target(self):
        return self._target

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0


class Compiling:
    """A kernel whose launches stop before the GPU; keeps what the compiler made."""

    def __init__(self, kernel):
        self._kernel = kernel
        self.made, self.grids, self.metadata = [], [], []

    def __getitem__(self, grid):
        def compiled(*args, **options):
            binary = self._kernel.warmup(*args, grid=grid, **options)
            self.made.append(binary.asm)
            self.grids.append(grid)
            self.metadata.append(binary.metadata)

        return compiled


class Skipped:
    """A kernel whose launches do nothing."""

    def __getitem__(self, grid):
        return lambda *args, **options: None


def resources(cubin):
    """Registers of a thread, and bytes of those that it keeps in memory."""
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [tool, "-res-usage", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    registers = int(re.search(r"REG:(\d+)", text)[1])
    return registers, sum(map(int, re.findall(r"(?:STACK|LOCAL):(\d+)", text)))


@pytest.fixture
def pretend(tmp_path, monkeypatch):
    """Let kernels of a module be compiled for a GPU of some capability by their launches."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    monkeypatch.setenv("TSRNN_CACHE_DIR", str(tmp_path))
    kernels = []

    def pretend(module, names, capability):
        target = GPUTarget("cuda", capability, 32)
        monkeypatch.setattr(driver, "_active", Pretended(target))
        for name in names:
            kernels.append(getattr(module, name))
            kernels[-1].device_caches.clear()
            monkeypatch.setattr(module, name, Compiling(kernels[-1]))

    yield pretend
    for kernel in kernels:
        kernel.device_caches.clear()


@pytest.mark.few("dtype2-90")
@pytest.mark.parametrize(
    ("dtype", "capability"), [(torch.float32, 80), (torch.float64, 90), (torch.bfloat16, 90)]
)
def test_kernels_in_time_order_compile(dtype, capability, pretend, draw):
    from tsrnn.kernels import _gpu
    from tsrnn.kernels._gpu import kernels

    pretend(kernels, ("forward", "backward"), capability)
    cell = cells.para_rnn(1)
    for batch, steps in ((2, 5), (1, 64)):
        inputs, params, initial, *cotangents = draw(cell, batch, steps, 16, dtype)
        problem = Problem(cell, inputs, params, initial, torch.full((batch,), 5))
        states, _ = _gpu.forward(problem)
        _gpu.backward(problem, states, *cotangents)
    for kernel in (kernels.forward, kernels.backward):
        first, second = kernel.made
        assert first is second  # not compiled again for other sizes


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_views_that_are_not_aligned_take_the_same_kernels(dtype, pretend, draw):
    from tsrnn.kernels import _gpu
    from tsrnn.kernels._gpu import chunked, kernels

    def unaligned(x):
        view = torch.empty(x.numel() + 1, dtype=x.dtype)[1:].view(x.shape)
        assert view.data_ptr() % 16
        return view.copy_(x)

    in_time_order = ("forward", "backward")
    in_chunks = ("shoot", "adjoints", "gradients_at_ends", "backward")
    pretend(kernels, in_time_order, 90)
    pretend(chunked, in_chunks, 90)
    cell = cells.para_rnn(1)
    tensors = [t.contiguous() for t in draw(cell, 2, 16, 16, dtype)]
    for given in (tensors, [unaligned(t) for t in tensors]):
        inputs, params, initial, *cotangents = given
        lengths = torch.tensor([0, 5, 16])[1 if given is tensors else 0 :][:2]
        problem = Problem(cell, inputs, params, initial, lengths)
        states, _ = _gpu.forward(problem)
        _gpu.backward(problem, unaligned(states), *cotangents)
        _gpu.shooting(problem, 4, 1, 1e-6)
        _gpu.scan_backward(problem, states, *cotangents, 4)
    for module, names in ((kernels, in_time_order), (chunked, in_chunks)):
        for name in names:
            first, *more = getattr(module, name).made
            assert more
            assert all(made is first for made in more)


@pytest.mark.few("few")
@pytest.mark.parametrize(
    ("cell", "steps", "lengths"),
    [
        (cells.para_rnn(1), 9, None),
        # So many chunks that a program scans them in several warps, of units that are no power of
        # two in number; a cell without parameters, as Newton's method on every step has.
        (cells.para_gru(2), 3 * 129, [200, 387]),
        (affine(2), 3 * 129, None),
    ],
    ids=["few", "many", "affine"],
)
def test_kernels_parallel_in_time_compile(cell, steps, lengths, pretend, draw):
    from tsrnn.kernels import _gpu
    from tsrnn.kernels._gpu import chunked

    names = ("shoot", "adjoints", "gradients_at_ends", "backward")
    pretend(chunked, names, 90)
    inputs, params, initial, *cotangents = draw(cell, 2, steps, 7, torch.float32)
    lengths = None if lengths is None else torch.tensor(lengths)
    problem = Problem(cell, inputs, params, initial, lengths)
    states, *_ = _gpu.shooting(problem, 3, 5, 1e-6)
    _gpu.scan_backward(problem, states, *cotangents, 3)
    for name in names:
        assert getattr(chunked, name).made[0]
    # Phases without a device whose programs wait for each other: all are one compilation.
    first, *more = chunked.shoot.made
    assert len(more) >= 2
    assert all(made is first for made in more)


@pytest.mark.slow
@pytest.mark.parametrize("lengths", [None, [9, 4]])
def test_a_later_launch_has_the_arguments_of_the_first(lengths, pretend, draw, monkeypatch):
    from triton.compiler.compiler import CompiledKernel

    from tsrnn.kernels import _gpu
    from tsrnn.kernels._gpu import chunked, kernels
    from tsrnn.kernels._gpu import launches as of_gpu

    launches, searches = [], []

    def note(*arguments):
        launches.append(arguments)

    class Counting:
        """A kernel that counts how often Triton looks for its compiled form."""

        def __init__(self, kernel):
            self._kernel, self.arg_names = kernel, kernel.arg_names

        def __getitem__(self, grid):
            searches.append(self)
            return self._kernel[grid]

    monkeypatch.setattr(of_gpu, "compiled", {})
    monkeypatch.setattr(_gpu, "multiprocessors", lambda device: 132)
    monkeypatch.setattr(CompiledKernel, "_init_handles", lambda self: None)
    monkeypatch.setattr(CompiledKernel, "run", property(lambda self: note))
    monkeypatch.setattr(CompiledKernel, "launch_metadata", lambda *_: None)
    for module, names in (
        (kernels, ("forward", "backward")),
        (chunked, ("shoot", "adjoints", "gradients_at_ends", "backward")),
    ):
        pretend(module, names, 90)
        for name in names:
            monkeypatch.setattr(module, name, Counting(getattr(module, name)._kernel))
    cell = cells.para_rnn(1)
    inputs, params, initial, *cotangents = draw(cell, 2, 9, 7, torch.float32)
    problem = Problem(cell, inputs, params, initial, lengths and torch.tensor(lengths))

    def call():
        launches.clear()
        states, _ = _gpu.forward(problem)
        _gpu.backward(problem, states, *cotangents)
        _gpu.shooting(problem, 3, 5, 1e-6)
        _gpu.scan_backward(problem, states, *cotangents, 3)
        return [[x.shape if isinstance(x, torch.Tensor) else x for x in one] for one in launches]

    first = call()
    assert len(first) == len(searches) == 6
    assert call() == first
    assert len(searches) == 6


# A compilation of these takes seconds: each value of each of the four is there once.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("units", "dtype", "lanes", "most", "capability"),
    [
        (1, torch.float32, 512, 128, 90),
        (64, torch.float32, 512, 128, 80),
        (64, torch.float64, 256, 255, 90),
    ],
    ids=str,
)
def test_shooting_is_one_launch_of_programs_that_fit(
    units, dtype, lanes, most, capability, pretend, draw, monkeypatch
):
    from tsrnn.kernels import _gpu
    from tsrnn.kernels._gpu import chunked

    pretend(chunked, ("shoot",), capability)
    monkeypatch.setattr(_gpu, "multiprocessors", lambda device: 132)
    cell = cells.para_rnn(2)
    for batch in (1, 16):
        inputs, params, initial, *_ = draw(cell, batch, 3 * 600, units, dtype)
        _gpu.shooting(Problem(cell, inputs, params, initial), 3, 12, 1e-6)
    programs = [-(-batch * 600 * units // lanes) for batch in (1, 16)]
    assert chunked.shoot.grids == [(min(132, count),) for count in programs]
    first, second = chunked.shoot.made
    assert first is second
    assert all(made.launch_cooperative_grid for made in chunked.shoot.metadata)
    # A multiprocessor has 65,536 registers: room for a program.
    assert 32 * chunked.shoot.metadata[0].num_warps == lanes
    registers, spilled = resources(first["cubin"])
    assert registers <= most
    assert spilled <= 64  # in the scan, which is short beside a march
    # What others have written is read past the cache, and the barrier orders it.
    for instruction in ("atom.global.gpu.acq_rel", "global.gpu.acquire", "ld.global.cg"):
        assert instruction in first["ptx"]


@pytest.mark.few("0-para_rnn_tanh_40")
@pytest.mark.parametrize(
    ("cell", "dtype"),
    [
        (cells.newton_lstm(3), torch.float32),
        (cells.para_rnn(40), torch.float64),
        (cells.para_gru(17), torch.bfloat16),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
@pytest.mark.parametrize("resident", [0, 1024])
def test_kernels_of_full_matrices_compile(resident, cell, dtype, pretend, draw, monkeypatch):
    from tsrnn.kernels._gpu import dense, dense_kernels

    monkeypatch.setattr(dense, "RESIDENT_SEQUENCES", resident)
    pretend(dense_kernels, ("forward", "backward"), 90)
    for units in (1, 16):
        inputs, params, initial, *cotangents = draw(cell, 2, 5, units, dtype)
        problem = Problem(cell, inputs, params, initial, torch.tensor([5, 5]))
        states, _ = dense.forward(problem)
        dense.backward(problem, states, *cotangents)
    for kernel in (dense_kernels.forward, dense_kernels.backward):
        first, second = kernel.made
        assert first is second  # not compiled again for other sizes
    dense.backward(problem, states, states[:, :, :0], None)  # of nothing that is given
    assert dense_kernels.backward.made[2] is not first


def test_a_first_call_inside_a_capture_is_refused_in_words(draw, monkeypatch):
    from tsrnn.kernels import _gpu
    from tsrnn.kernels._gpu import kernels, launches

    class Standing:
        """A kernel, and what is compiled of it, that does nothing."""

        arg_names = kernels.forward.arg_names

        def __getitem__(self, grid):
            return lambda *args, **options: self

    cell = cells.para_gru(1)
    problem = Problem(cell, *draw(cell, 2, 9, 5, torch.float32)[:3])
    captures = [True]
    monkeypatch.setattr(launches, "compiled", {})
    monkeypatch.setattr(kernels, "forward", Standing())
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: captures[0])
    with pytest.raises(RuntimeError, match="Call the recurrence once before the capture"):
        _gpu.forward(problem)
    captures[0] = False
    _gpu.forward(problem)
    captures[0] = True
    _gpu.forward(problem)  # what is compiled may be captured


@pytest.mark.few("para_rnn")
@pytest.mark.parametrize("form", [cells.para_rnn, cells.para_gru, cells.para_lstm, cells.lem])
def test_matrices_that_fit_are_read_once(form, pretend, draw):
    from tsrnn.kernels._gpu import dense, dense_kernels

    pretend(dense_kernels, ("forward", "backward"), 90)
    cell = form(64)
    inputs, params, initial, *cotangents = draw(cell, 2, 5, 1, torch.float32)
    problem = Problem(cell, inputs, params, initial, torch.tensor([5, 5]))
    states, _ = dense.forward(problem)
    dense.backward(problem, states, *cotangents)
    for kernel in (dense_kernels.forward, dense_kernels.backward):
        before, *loops = kernel.made[0]["ttgir"].split("scf.for")
        loads = [
            [line for line in part.split("\n") if "tt.load" in line] for part in (before, *loops)
        ]
        assert any("64x64x" in line for line in loads[0])
        assert not any("64x64x" in line for loop in loads[1:] for line in loop)
        # Nor is anything else loaded that a thread has to have for all units.
        assert not any("dim = 2" in line for loop in loads[1:] for line in loop)


@pytest.fixture
def tf32():
    """Let torch multiply float32 in TF32."""
    usual = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    yield
    torch.set_float32_matmul_precision(usual)


def launch_full_matrices(cell, batch, dtype, draw):
    """Launch both kernels for as many sequences."""
    from tsrnn.kernels._gpu import dense

    inputs, params, initial, *cotangents = draw(cell, batch, 2, 1, dtype)
    problem = Problem(cell, inputs, params, initial)
    states, _ = dense.forward(problem)
    dense.backward(problem, states, *cotangents)


def compile_full_matrices(cell, batch, dtype, draw):
    """Compile both kernels for as many sequences; what the compiler made of them."""
    from tsrnn.kernels._gpu import dense_kernels

    launch_full_matrices(cell, batch, dtype, draw)
    return [getattr(dense_kernels, kind).made[-1] for kind in ("forward", "backward")]


@pytest.mark.few("tf32")
@pytest.mark.parametrize("precision", ["exact", "tf32", "bfloat16"])
def test_sequences_share_matrices_in_shared_memory(precision, pretend, draw, request):
    from tsrnn.kernels._gpu import dense_kernels

    if precision == "tf32":
        request.getfixturevalue("tf32")
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    pretend(dense_kernels, ("forward", "backward"), 90)
    for made in compile_full_matrices(cells.para_rnn(64), 2100, dtype, draw):
        before, *loops = made["ttgir"].split("scf.for")
        assert re.search(r"local_alloc .*64x64x", before)
        assert not any(re.search(r"(tt\.load|local_alloc) .*64x64x", loop) for loop in loops)
        # Tensor cores multiply what was asked for in fewer bits, and nothing else.
        kinds = set(re.findall(r"mma\.sync\S*?\.(tf32|bf16)\.", made["ptx"]))
        assert kinds == {"exact": set(), "tf32": {"tf32"}, "bfloat16": {"bf16"}}[precision]


@pytest.mark.slow
def test_small_blocks_do_not_spill(pretend, draw, monkeypatch):
    from tsrnn.kernels import _gpu
    from tsrnn.kernels._gpu import chunked, kernels

    # The cell of blocks of two with the longest step: what it has room for, others have.
    cell = cells.para_lstm(2)
    in_order, in_chunks = ("forward", "backward"), ("adjoints", "backward", "gradients_at_ends")
    pretend(kernels, in_order, 90)
    pretend(chunked, ("shoot", *in_chunks), 90)
    monkeypatch.setattr(_gpu, "multiprocessors", lambda device: 132)
    inputs, params, initial, *cotangents = draw(cell, 1, 600, 64, torch.float32)
    problem = Problem(cell, inputs, params, initial)
    states, _ = _gpu.forward(problem)
    _gpu.backward(problem, states, *cotangents)
    _gpu.shooting(problem, 3, 12, 1e-6)
    _gpu.scan_backward(problem, states, *cotangents, 3)
    for module, names in ((kernels, in_order), (chunked, in_chunks)):
        for name in names:
            assert resources(getattr(module, name).made[0]["cubin"])[1] == 0, name
    assert resources(chunked.shoot.made[0]["cubin"])[1] <= 64  # in its scan, which is short


FEW = 32  # bytes of a thread: none as a rule, but versions of Triton differ by some registers


@pytest.mark.few("para_lstm_64-32-exact-1", "para_rnn_tanh_128-32-tf32-4096")
@pytest.mark.parametrize(("precision", "batch"), [("exact", 1), ("exact", 4096), ("tf32", 4096)])
@pytest.mark.parametrize(
    ("cell", "most"),
    [
        (cells.para_lstm(40), FEW),
        (cells.para_lstm(64), FEW),
        (cells.para_rnn(128), FEW),
        (cells.para_gru(128), FEW),
        (cells.para_lstm(128), FEW),
        (cells.para_gru(256), 96),
        (cells.para_rnn(512), 96),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_full_matrices_do_not_spill(cell, most, batch, precision, pretend, draw, request):
    if precision == "tf32":
        request.getfixturevalue("tf32")
    check_spills(cell, batch, torch.float32, most, pretend, draw)


@pytest.mark.few("para_rnn_tanh_64-torch.float64-32-1")
@pytest.mark.parametrize("batch", [1, 4096])
@pytest.mark.parametrize(
    ("cell", "dtype", "most"),
    [
        (cells.para_gru(128), torch.bfloat16, FEW),
        (cells.para_rnn(256), torch.bfloat16, 96),
        (cells.para_rnn(64), torch.float64, FEW),
        (cells.para_gru(256), torch.float64, 96),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_full_matrices_of_other_dtypes_spill_little(cell, dtype, most, batch, pretend, draw):
    check_spills(cell, batch, dtype, most, pretend, draw)


def check_spills(cell, batch, dtype, most, pretend, draw):
    """Hold what both kernels keep in memory below a number of bytes a thread."""
    from tsrnn.kernels._gpu import dense_kernels

    pretend(dense_kernels, ("forward", "backward"), 90)
    for made in compile_full_matrices(cell, batch, dtype, draw):
        assert resources(made["cubin"])[1] <= most


def test_what_does_not_fit_in_shared_memory_stays_in_memory(pretend, draw, monkeypatch):
    from tsrnn.kernels._gpu import dense, dense_kernels

    pretend(dense_kernels, ("forward", "backward"), 80)
    for name in ("forward", "backward"):  # where the matrices go is known before a compilation
        monkeypatch.setattr(dense_kernels, name, Skipped())
    monkeypatch.setattr(dense, "SHARED_MEMORY", 99 * 1024)
    dense.shared_memory.cache_clear()
    launches, launch_of = [], dense.Launch.of
    monkeypatch.setattr(
        dense.Launch, "of", lambda *args: launches.append(launch_of(*args)) or launches[-1]
    )
    for cell in (cells.para_rnn(128), cells.para_rnn(256)):
        launch_full_matrices(cell, 2100, torch.float32, draw)
    dense.shared_memory.cache_clear()
    assert [launch.place for launch in launches] == ["shared", "shared", "memory", "memory"]
