"""Kernels of a CUDA device beside their floors, torch's own layers, and the loop.

Of Python packages it needs torch, numpy, pandas, llvmlite and Triton alone, which takes a C
compiler and Python's headers to launch kernels. It wants a clone with links ``tsrnn/kernels`` to
``../kernels`` and ``tsrnn/datasets`` to ``../datasets``, ``PYTHONPATH`` set to the clone and
``TSRNN_CACHE_DIR`` to a folder. Rows print as they come; one that fails prints what was wrong with
it, and the next begins, unless the device no longer answers. ``--sections`` chooses among

- ``check``: states and gradients of cells and engines beside the loop in float64, in units in
  the last place of the largest value.
- ``speed``: ParaRNN, ParaGRU, ParaLSTM and the LRU at four shapes. "Kernels" are replayed as a
  graph of calls on as many inputs as together outgrow the second cache twice, whose results are
  kept, timed by events; a "call" is timed from the host, as a user makes it. The floor is the time
  to copy the bytes that have to move at the rate of this device: forward reads u and writes h,
  backward reads h and its gradient, and u where gates are computed again, and writes the gradient
  of u. States that are small enough may still be in the second cache when they are read.
- ``layers``: layers of the package, their input projection included, beside torch.nn.RNN, GRU and
  LSTM, which have full matrices, forward and backward.
- ``matrices``: networks with full matrices beside torch.nn.RNN and GRU holding the same numbers:
  matrices in registers where they fit, and read again at every step.
- ``loop``: cells beside the same step in torch, called step by step, as it is and compiled.
- ``training``: steps of Adam on a batch of pixels one by one, as of psMNIST, beside torch's layers,
  in float32 and under autocast, with the most memory that was taken.
- ``peers``: kernels of other packages, which lie in folders that ``--peers`` names.
- ``figures``: timings and memory of Danieli et al. by length and width.
- ``tuning``: launch parameters of the kernels, and lanes of those in chunks.

``--rehearse`` runs the same rows with tiny shapes on the CPU; with ``TRITON_INTERPRET=1`` by
Triton's interpreter. Its times mean nothing.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any

import _gpu_figures
import _gpu_peers
import torch
from _recurrences import Problem, draw, needed_backward, results

from tsrnn.kernels import Cell, _autograd, _backend, _time_parallel, cells, recurrence
from tsrnn.kernels._reference import is_small

SHAPES = [(64, 512, 1024), (256, 128, 128), (8, 16384, 128), (1, 131072, 64)]
TORCH: dict[str, Any] = {"rnn": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}
REPLAYS = 5  # between two events, so that the launch of a graph is hidden behind the one before
DTYPES = (torch.float32, torch.float64, torch.bfloat16)
SOME = ("para_rnn_tanh_2", "para_gru_2", "lru")  # checked in all of them: each is a compilation
SECTIONS = (
    "check", "speed", "layers", "matrices", "loop", "training", "peers", "figures", "tuning"
)  # fmt: skip
MATRICES = [(64, 512, 64), (64, 512, 128), (512, 512, 64), (2048, 128, 128)]  # (B, T, d)
CATALOGUE = [
    cells.para_rnn(1), cells.para_rnn(2), cells.para_rnn(4), cells.para_gru(1), cells.para_gru(2),
    cells.para_lstm(1), cells.para_lstm(2), cells.newton_gru(), cells.newton_lstm(),
    cells.newton_lstm(2), cells.lem(), cells.lem(2), cells.linear(2), cells.lru(),
    cells.para_rnn(64), cells.para_gru(64), cells.lem(40), cells.para_lstm(128),
]  # fmt: skip


class Bench:
    """Where rows are measured, and how."""

    def __init__(self, rehearse: bool) -> None:
        self.rehearse = rehearse
        self.device = "cpu" if rehearse else "cuda"
        self.a_byte = self._copy_ms_a_byte()
        name = "rehearsal" if rehearse else torch.cuda.get_device_name()
        print(f"{name}, torch {torch.__version__}, copy {1e-9 / self.a_byte:.2f} TB/s\n")

    def shape(self, batch: int, steps: int, width: int) -> tuple[int, int, int]:
        """Shape, a tiny one in a rehearsal."""
        return (
            (min(batch, 2), min(steps, 6), min(width, 8))
            if self.rehearse
            else (batch, steps, width)
        )

    def call_ms(self, work: Callable[[], object], repeats: int = 20) -> float:
        """Median milliseconds of a call, host and device together."""
        times = []
        for i in range(1 if self.rehearse else repeats + 3):
            self._synchronise()
            start = time.perf_counter()
            work()
            self._synchronise()
            if i >= 3 or self.rehearse:
                times.append(1e3 * (time.perf_counter() - start))
        return sorted(times)[len(times) // 2]

    def queue_ms(self, work: Callable[[], object], repeats: int = 20) -> float:
        """Milliseconds of a call among many that wait on the device for each other."""
        if self.rehearse:
            return self.call_ms(work)
        for _ in range(3):
            work()
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(repeats):
            work()
        stop.record()
        torch.cuda.synchronize()
        return start.elapsed_time(stop) / repeats

    def peak_mb(self, work: Callable[[], object]) -> float:
        """Megabytes that a call takes at most beside what is there before it."""
        if self.rehearse:
            return 0.0
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        work()
        return 1e-6 * (torch.cuda.max_memory_allocated() - before)

    def graph_ms(self, works: list[Callable[[], object]]) -> float:
        """Milliseconds of a call among those that a graph replays one after the other."""
        if self.rehearse:
            return self.call_ms(works[0])
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for work in works:
                work()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = [work() for work in works]  # so that no result takes the memory of another
        times = []
        for _ in range(12):
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(REPLAYS):
                graph.replay()
            stop.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(stop) / (REPLAYS * len(kept)))
        return sorted(times[2:])[5]

    def copies(self, problem: Problem) -> list[Problem]:
        """The problem with as many inputs as together outgrow the second cache twice."""
        if self.rehearse:
            return [problem]
        cache = torch.cuda.get_device_properties(0).L2_cache_size
        more = 2 * cache // problem[0].nbytes  # of the inputs, all that a pass forward reads
        return [problem, *(tuple(t.clone() for t in problem) for _ in range(more))]

    def _copy_ms_a_byte(self) -> float:
        source = torch.empty(2**10 if self.rehearse else 2**28, device=self.device)
        target = torch.empty_like(source)
        return self.graph_ms([lambda: target.copy_(source)]) / (2 * source.nbytes)

    def _synchronise(self) -> None:
        if not self.rehearse:
            torch.cuda.synchronize()


def print_rows(
    title: str, header: list[str], rows: Iterable[tuple[str, Callable[[], list[str]]]]
) -> None:
    """Print a table row by row; a row that fails says why."""
    print(f"\n{title}\n\n| {' | '.join(header)} |\n| {' | '.join('---' for _ in header)} |")
    for name, make in rows:
        start = time.perf_counter()
        try:
            values = make()
        except Exception as error:  # a device must show all that is wrong in one run
            last = traceback.extract_tb(error.__traceback__)[-1]
            words = str(error).split("\n")[0][:200]
            values = [f"{type(error).__name__}: {words} ({last.name}, line {last.lineno})"]
        seconds = time.perf_counter() - start
        print(f"| {' | '.join([name, *values])} | {seconds:.1f} s", flush=True)
        if torch.cuda.is_available():
            torch.cuda.synchronize()  # raises after an illegal access: all later rows would fail


def engines_of(cell: Cell) -> list[str]:
    if not is_small(cell):
        return ["dense"]
    parallel = "scan" if _autograd.is_linear(cell) else "shooting"
    return ["sequential", parallel] if cell.n <= 4 else ["sequential"]


def check(bench: Bench) -> None:
    """Errors of every cell and engine."""

    def row(cell: Cell, engine: str, dtype: torch.dtype) -> list[str]:
        batch, steps, units = bench.shape(3, 300, 33 if is_small(cell) else 1)
        problem = draw(cell, batch, steps, units)
        # Rounded first: the loop gets the numbers that the kernels get.
        rounded = tuple(t.to(dtype) for t in problem)
        wanted = results(cell, tuple(t.double() for t in rounded), "reference")
        found = results(cell, tuple(t.to(bench.device) for t in rounded), engine)
        errors = []
        for value, exact in zip(found, wanted, strict=True):
            unit = torch.finfo(dtype).eps * float(exact.abs().max().clamp(min=1))
            errors.append(f"{float((value.cpu().double() - exact).abs().max()) / unit:.1f}")
        return errors

    print_rows(
        "Largest error in units in the last place of the largest value",
        ["cell, engine, dtype", "states", "g_inputs", "g_params"],
        (
            (
                f"{cell.name}, {engine}, {str(dtype)[6:]}",
                lambda c=cell, e=engine, d=dtype: row(c, e, d),
            )
            for cell in CATALOGUE
            for engine in engines_of(cell)
            for dtype in (DTYPES if cell.name in SOME else DTYPES[:1])
        ),
    )


def works_of(cell: Cell, copies: list[Problem], engine: str) -> tuple[list[Any], list[Any]]:
    """Calls forward, and forward and backward, one a copy."""
    forward, both = [], []
    for inputs, params, grad in copies:
        leaves = (inputs.detach().requires_grad_(), params.detach().requires_grad_())

        def run(leaves: Any = leaves) -> torch.Tensor:
            return recurrence(cell, *leaves, engine=engine)[0]

        def run_back(leaves: Any = leaves, grad: Any = grad, run: Any = run) -> object:
            return torch.autograd.grad(run(), leaves, grad)

        forward.append(run)
        both.append(run_back)
    return forward, both


def speed(bench: Bench) -> None:
    """Cells at four shapes beside their floors."""

    def row(cell: Cell, shape: tuple[int, int, int], engine: str) -> list[str]:
        batch, steps, width = bench.shape(*shape)
        units = width // cell.n_outputs
        problem = draw(cell, batch, steps, units, bench.device)
        numbers = 4e3 * batch * steps * units * bench.a_byte  # microseconds
        forward = numbers * (cell.m + cell.n)
        again = cell.m * any(name.startswith("u") for name in needed_backward(cell))
        floors = forward, forward + numbers * (2 * cell.n + cell.m + again)
        works = works_of(cell, bench.copies(problem), engine)
        kernels = [1e3 * bench.graph_ms(work) for work in works]
        calls = [1e3 * bench.call_ms(work[0]) for work in works]
        return [
            *(f"{f:.0f}" for f in floors),
            *(f"{k:.0f} ({k / f:.2f})" for k, f in zip(kernels, floors, strict=True)),
            *(f"{c:.0f}" for c in calls),
        ]

    header = ["cell, (B, T, width), engine", "floor forward us", "and backward",
              "kernels (of floor)", "and backward", "call", "and backward"]  # fmt: skip
    print_rows("Microseconds, float32", header, (
        (f"{cell.name}, {shape}, {engine}", lambda c=cell, s=shape, e=engine: row(c, s, e))
        for cell in (cells.para_rnn(2), cells.para_gru(2), cells.para_lstm(2), cells.lru())
        for shape in SHAPES for engine in engines_of(cell)
        if engine == "sequential" or shape in SHAPES[2:]
    ))  # fmt: skip


def layers(bench: Bench) -> None:
    """Layers beside those of torch."""
    from tsrnn.layers import ParaRNN

    def row(kind: str, shape: tuple[int, int, int]) -> list[str]:
        batch, steps, width = bench.shape(*shape)
        x = torch.randn(batch, steps, width, device=bench.device, requires_grad=True)
        times = []
        for layer in (
            ParaRNN(width, width, cell=kind),
            TORCH[kind](width, width, batch_first=True),
        ):
            layer.to(bench.device)

            def work(layer: Any = layer) -> object:
                output = layer(x)[0]
                return torch.autograd.grad(output.square().mean(), [x, *layer.parameters()])

            times.append(bench.call_ms(work))
        return [*(f"{t:.2f}" for t in times), f"{times[1] / times[0]:.1f}"]

    header = ["cell, (B, T, width)", "tsrnn", "torch.nn", "ratio"]
    print_rows("Layers, forward and backward, ms", header, (
        (f"{kind}, {shape}", lambda k=kind, s=shape: row(k, s))
        for kind in ("rnn", "gru", "lstm") for shape in SHAPES
    ))  # fmt: skip


def matrices(bench: Bench) -> None:
    """The ordinary networks, beside torch's."""
    from tsrnn.kernels._gpu import dense

    def row(kind: str, shape: tuple[int, int, int], resident: int) -> list[str]:
        batch, steps, d = bench.shape(*shape)
        cell = cells.para_rnn(d) if kind == "rnn" else cells.para_gru(d, reset_after=True)
        layer = TORCH[kind](1, d, bias=False, batch_first=True)
        layer.to(bench.device)
        x = torch.randn(batch, steps, 1, device=bench.device)
        parameters = list(layer.parameters())
        # Gates r, z, c of torch, whose z keeps the state; ours are z, r, c.
        of_input, of_state = (p.detach().chunk(cell.m // d) for p in parameters)
        if kind == "gru":
            of_input, of_state = ((-p[1], p[0], p[2]) for p in (of_input, of_state))
        v = torch.cat(of_input).requires_grad_()
        w = torch.cat([p.flatten() for p in of_state])[:, None].requires_grad_()
        usual, dense.RESIDENT_SEQUENCES = dense.RESIDENT_SEQUENCES, resident

        def ours() -> torch.Tensor:
            return recurrence(cell, torch.nn.functional.linear(x, v)[..., None], w)[0]

        def theirs() -> torch.Tensor:
            output: torch.Tensor = layer(x)[0]
            return output

        try:
            difference = float((ours()[..., 0] - theirs()).detach().abs().max())
            gradient = torch.randn(batch, steps, d, device=bench.device)
            times = [
                1e3 * bench.queue_ms(work)
                for work in (
                    ours,
                    theirs,
                    lambda: torch.autograd.grad(ours(), [v, w], gradient[..., None]),
                    lambda: torch.autograd.grad(theirs(), parameters, gradient),
                )
            ]
        finally:
            dense.RESIDENT_SEQUENCES = usual
        multiplied = 2e-6 * batch * steps * cell.p / times[0]
        return [*(f"{t:.0f}" for t in times), f"{times[1] / times[0]:.1f}",
                f"{times[3] / times[2]:.1f}", f"{multiplied:.2f}", f"{difference:.0e}"]  # fmt: skip

    header = ["network, (B, T, d), matrices", "ours us", "torch.nn", "and backward", "torch.nn",
              "ratio", "ratio", "Tflop/s forward", "largest difference"]  # fmt: skip
    print_rows("Full matrices, microseconds of a call among many", header, (
        (f"{kind}, {shape}, {'in registers if they fit' if resident else 'read at every step'}",
         lambda k=kind, s=shape, r=resident: row(k, s, r))
        for kind in ("rnn", "gru") for shape in MATRICES for resident in (2**20, 0)
    ))  # fmt: skip


def training(bench: Bench) -> None:
    """Steps of training on 784 pixels in a row, 128 images at a time."""
    from tsrnn.layers import ParaRNN

    def row(kind: str, *, ours: bool, autocast: bool) -> list[str]:
        batch, steps, width = bench.shape(128, 784, 128)
        layer: Any = (
            ParaRNN(1, width, cell=kind) if ours else TORCH[kind](1, width, batch_first=True)
        )
        head = torch.nn.Linear(width, 10)
        model = torch.nn.ModuleList([layer, head]).to(bench.device)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        x = torch.rand(batch, steps, 1, device=bench.device)
        y = torch.randint(10, (batch,), device=bench.device)

        def step() -> None:
            with torch.autocast(bench.device, torch.bfloat16, enabled=autocast):
                loss = torch.nn.functional.cross_entropy(head(layer(x)[0][:, -1]).float(), y)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()

        ms = bench.queue_ms(step)
        return [f"{ms:.2f}", f"{60e3 / ms / (60_000 / batch):.1f}", f"{bench.peak_mb(step):.0f}"]

    header = ["layer", "ms a step", "epochs of 60,000 images a minute", "peak MB"]
    print_rows("Training on (128, 784, 1), 128 units", header, (
        (f"{'tsrnn' if ours else 'torch.nn'} {kind}, {'bfloat16' if autocast else 'float32'}",
         lambda k=kind, o=ours, a=autocast: row(k, ours=o, autocast=a))
        for kind in ("rnn", "gru", "lstm") for ours in (True, False) for autocast in (False, True)
    ))  # fmt: skip


def peers(bench: Bench) -> None:
    """Other people's kernels."""
    print_rows("Kernels of other packages", _gpu_peers.HEADER, _gpu_peers.rows(bench))


def figures(bench: Bench) -> None:
    """Engines by length and width."""
    print_rows("Figures 2, 5, 6 and 9", _gpu_figures.HEADER, _gpu_figures.rows(bench))


def loop(bench: Bench) -> None:
    """Cells beside their step called in torch, the setting of figure 5 of Danieli et al."""

    def compiled(cell: Cell, problem: Problem) -> Callable[[], object]:
        step = torch.compile(lambda h, u, w: torch.stack(cell.step(h.unbind(1), u.unbind(1), w), 1))
        inputs, params = problem[0], problem[1].unbind(0)

        def work() -> torch.Tensor:
            h, states = inputs.new_zeros(len(inputs), cell.n, inputs.shape[3]), []
            for u in inputs.unbind(1):
                h = step(h, u, params)
                states.append(h)
            return torch.stack(states, 1)

        return work

    def row(cell: Cell, steps: int) -> list[str]:
        problem = draw(cell, *bench.shape(8, steps, 1024), bench.device)
        ours = bench.call_ms(lambda: recurrence(cell, *problem[:2]))
        plain = bench.call_ms(lambda: recurrence(cell, *problem[:2], engine="reference"), 2)
        own = bench.call_ms(compiled(cell, problem), 2)
        return [
            f"{ours:.3f}",
            f"{plain:.1f}",
            f"{own:.1f}",
            f"{plain / ours:.0f}",
            f"{own / ours:.0f}",
        ]

    header = ["cell, (B, T, K)", "tsrnn ms", "loop", "compiled step", "ratio", "ratio"]
    print_rows("Forward beside the loop in torch", header, (
        (f"{cell.name}, (8, {steps}, 1024)", lambda c=cell, s=steps: row(c, s))
        for cell in (cells.newton_gru(), cells.newton_lstm()) for steps in (512, 2048, 8192)
    ))  # fmt: skip


def tuning(bench: Bench) -> None:
    """Launch parameters of the kernels in time order, lanes of those in chunks."""
    kernels: Any = _backend.backend_of(torch.device(bench.device))

    def launched(
        cell: Cell, shape: tuple[int, int, int], name: str, engine: str, **values: int
    ) -> list[str]:
        problem = draw(cell, *bench.shape(shape[0], shape[1], shape[2] // cell.n), bench.device)
        usual = getattr(kernels, name)
        setattr(kernels, name, usual._replace(**values))
        try:
            works = works_of(cell, bench.copies(problem), engine)
            return [f"{1e3 * bench.graph_ms(work):.0f}" for work in works]
        finally:
            setattr(kernels, name, usual)

    def laned(cell: Cell, shape: tuple[int, int, int], lanes: int) -> list[str]:
        problem = draw(cell, *bench.shape(shape[0], shape[1], shape[2] // cell.n), bench.device)
        usual, _time_parallel.GPU_LANES = _time_parallel.GPU_LANES, lanes
        try:
            works = works_of(cell, bench.copies(problem), "shooting")
            return [f"{1e3 * bench.graph_ms(work):.0f}" for work in works]
        finally:
            _time_parallel.GPU_LANES = usual

    cell = cells.para_rnn(2)
    choices = [
        {"block": 32 * warps * vector, "warps": warps, "ahead": ahead, "longest": ahead // 2}
        for vector, warps, ahead in itertools.product((1, 2), (1, 4), (8, 16, 32))
    ]
    header = ["(B, T, width), kernel, parameters", "forward us", "forward and backward"]
    print_rows("Launches", header, (
        (f"{shape}, {name}, {values}",
         lambda s=shape, n=name, e=engine, v=values: launched(cell, s, n, e, **v))
        for shape, name, engine in (
            *((s, n, "sequential") for s in SHAPES[:2] for n in ("FORWARD", "BACKWARD")),
            *((s, n, "shooting") for s in SHAPES[2:] for n in ("SHOOTING", "SCAN")),
        )
        for values in choices
    ))  # fmt: skip
    print_rows("Lanes of chunks", header, (
        (f"{shape}, lanes, {lanes}", lambda s=shape, n=lanes: laned(cell, s, n))
        for shape in SHAPES[2:] for lanes in (2**13, 2**14, 2**15, 2**16, 2**17)
    ))  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument("--peers", nargs="*", default=[], help="folders with other packages")
    parser.add_argument("--smoke", action="store_true", help="changes nothing")
    options = parser.parse_args()
    if not options.rehearse and not torch.cuda.is_available():
        print("no CUDA device is here; --rehearse runs on the CPU")
        return
    if options.rehearse:
        _backend._MODULES["cpu"] = "tsrnn.kernels._gpu"
        _backend.DTYPES["cpu"] = _backend.DTYPES["cuda"]
        _time_parallel.SHORTEST_CHUNK = 3
    sys.path += options.peers
    torch.backends.cudnn.allow_tf32 = False  # torch's layers are to compute in float32 as well
    torch.manual_seed(0)
    bench = Bench(options.rehearse)
    for section in options.sections:
        run = {"check": check, "speed": speed, "layers": layers, "matrices": matrices, "loop": loop,
               "training": training, "peers": peers, "figures": figures,
               "tuning": tuning}[section]  # fmt: skip
        run(bench)


if __name__ == "__main__":
    main()
