"""Where the rows of `gpu.py` are measured, and how.

A row is measured on a device; rehearsed on the CPU, with tiny shapes; or compiled only, on tensors
without memory, for a device that need not be there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from _recurrences import Problem, draw

from tsrnn.kernels import Cell, _autograd, _backend, _time_parallel

REPLAYS = 5  # between two events, so that the launch of a graph is hidden behind the one before
MOST_CALLS = 20
SECONDS = 0.4  # that a number is measured for, unless a single call takes longer
MULTIPROCESSORS = 132  # of the device that is compiled for
DEVICES = {"measure": "cuda", "rehearse": "cpu", "compile": "meta"}


class Table(NamedTuple):
    """A table of a section: its title, the names of its columns, and what makes each row."""

    title: str
    header: list[str]
    rows: list[tuple[str, Callable[[], list[str]]]]


class Bench:
    """A device, or what stands for it: `how` is "measure", "rehearse" or "compile"."""

    def __init__(self, how: str) -> None:
        self.how, self.device = how, DEVICES[how]
        if how != "measure":  # the kernels of GPUs, in the interpreter or by the compiler alone
            _backend._MODULES[self.device] = "tsrnn.kernels._gpu"
            _backend.DTYPES[self.device] = _backend.DTYPES["cuda"]
            _autograd._RULES[self.device] = _autograd._RULES["cuda"]
        if how == "rehearse":
            _time_parallel.SHORTEST_CHUNK = 3
            repair_interpreter()
        self._a_byte: float | None = None

    @property
    def a_byte(self) -> float:
        """Milliseconds that the device takes to read or write a byte: 1 GB is read and written.

        By a kernel: the copy that a graph makes of a copy in memory is a third slower.
        """
        if self._a_byte is None:
            source = torch.empty(2**28 if self.how == "measure" else 2**10, device=self.device)
            target = torch.empty_like(source)
            self._a_byte = self.graph_ms([lambda: torch.neg(source, out=target)]) / (
                2 * source.nbytes
            )
        return self._a_byte

    def shape(self, batch: int, steps: int, width: int) -> tuple[int, int, int]:
        """Shape, a tiny one in a rehearsal."""
        if self.how == "rehearse":
            return min(batch, 2), min(steps, 6), min(width, 8)
        return batch, steps, width

    def draw(self, cell: Cell, batch: int, steps: int, width: int) -> Problem:
        """Problem of a cell, of as many units as together have so many outputs."""
        batch, steps, width = self.shape(batch, steps, width)
        return draw(cell, batch, steps, max(1, width // cell.n_outputs), self.device)

    def call_ms(self, work: Callable[[], object]) -> float:
        """Median milliseconds of a call, host and device together."""
        times: list[float] = []
        work()
        for i in range(self._count(work)):
            self.synchronise()
            start = time.perf_counter()
            work()
            self.synchronise()
            times.append(1e3 * (time.perf_counter() - start))
            if i and sum(times) > 1e3 * SECONDS:
                break
        return sorted(times)[len(times) // 2]

    def queue_ms(self, work: Callable[[], object]) -> float:
        """Milliseconds of a call among many that wait on the device for each other."""
        if self.how != "measure":
            return self.call_ms(work)
        work()
        work()
        repeats = self._count(work)
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(repeats):
            work()
        stop.record()
        torch.cuda.synchronize()
        return start.elapsed_time(stop) / repeats

    def graph_ms(self, works: list[Callable[[], object]]) -> float:
        """Milliseconds of a call among those that a graph replays one after the other."""
        if self.how != "measure":
            return self.call_ms(works[0])
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for work in works[:2]:
                work()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = [work() for work in works]  # so that no result takes the memory of another
        graph.replay()
        times: list[float] = []
        begin = time.perf_counter()
        while len(times) < 3 or (len(times) < 11 and time.perf_counter() - begin < SECONDS):
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(REPLAYS):
                graph.replay()
            stop.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(stop) / (REPLAYS * len(kept)))
        return sorted(times)[len(times) // 2]

    def peak_mb(self, work: Callable[[], object]) -> float:
        """Megabytes that a call takes at most beside what is there before it."""
        if self.how != "measure":
            return 0.0
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        work()
        return 1e-6 * (torch.cuda.max_memory_allocated() - before)

    def copies(self, problem: Problem) -> list[Problem]:
        """The problem with as many inputs as together outgrow the second cache twice."""
        if self.how != "measure":
            return [problem]
        cache = torch.cuda.get_device_properties(0).L2_cache_size
        more = 2 * cache // problem[0].nbytes  # of the inputs, all that a pass forward reads
        return [problem, *(tuple(t.clone() for t in problem) for _ in range(more))]

    def synchronise(self) -> None:
        """Wait for the device; raises what went wrong there."""
        if self.how == "measure":
            torch.cuda.synchronize()

    def _count(self, work: Callable[[], object]) -> int:
        """Calls that take `SECONDS` together, from one that is timed."""
        if self.how != "measure":
            return 1
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        return int(min(MOST_CALLS, max(1, SECONDS / (time.perf_counter() - start))))


def repair_interpreter() -> None:
    """Let Triton's interpreter take scalars as indices under numpy 2.4 and later."""
    from triton.runtime import interpreter

    patch = interpreter._patch_lang_tensor

    def patch_tensor(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    interpreter._patch_lang_tensor = patch_tensor


def compile_only(capability: int) -> None:
    """Have launches stop at Triton's compiler, for a device of a capability, there or not."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    from tsrnn.kernels import _gpu
    from tsrnn.kernels._gpu import chunked, dense_kernels, kernels

    _gpu.multiprocessors = lambda device: MULTIPROCESSORS  # type: ignore[assignment]
    driver._active = Pretended(GPUTarget("cuda", capability, 32))  # type: ignore[assignment]
    for module in (kernels, chunked, dense_kernels):
        for name in ("forward", "backward", "shoot", "adjoints", "gradients_at_ends"):
            kernel = getattr(module, name, None)
            if kernel is not None:
                setattr(module, name, Compiled(kernel))


class Pretended:
    """Driver of a GPU that is not there."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def get_current_target(self) -> Any:
        """Compile for this."""
        return self._target

    def get_current_device(self) -> int:
        """Number of the only one."""
        return 0

    def get_current_stream(self, device: int) -> int:
        """Number of the only one."""
        return 0


class Compiled:
    """Kernel whose launches stop before the GPU."""

    def __init__(self, kernel: Any, note: Callable[..., None] | None = None) -> None:
        self._kernel, self._note = kernel, note

    def __getitem__(self, grid: Any) -> Any:
        def compiled(*args: Any, **options: Any) -> None:
            start = time.perf_counter()
            binary = self._kernel.warmup(*args, grid=grid, **options)
            if self._note:
                self._note(binary, options, time.perf_counter() - start)

        return compiled
