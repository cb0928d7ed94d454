"""Sections of `gpu.py`: tables whose rows are measured when they are asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from _gpu_bench import Bench, Table
from _recurrences import Problem, draw, needed_backward, results

from tsrnn.kernels import (
    Cell,
    _autograd,
    _backend,
    _newton,
    _time_parallel,
    cells,
    is_small,
    recurrence,
)  # fmt: skip

LONG = [(8, 16384, 128), (1, 131072, 64)]
SHAPES = [(64, 512, 1024), (256, 128, 128), *LONG, (64, 784, 128), (32, 96, 128)]
TORCH: dict[str, Any] = {"rnn": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}
DTYPES = (torch.float32, torch.float64, torch.bfloat16)
SOME = ("para_rnn_tanh_2", "para_gru_2", "lru")  # checked in all of them: each is a compilation
# Sequences up to which each has a program of its own, and the precision of products.
PLACES = [("a sequence a program", 2**20, "highest"), ("programs shared", 0, "highest"),
          ("programs shared, TF32", 0, "high")]  # fmt: skip
MATRICES = [(64, 512, 64), (64, 512, 128), (512, 512, 64), (2048, 128, 128)]  # (B, T, d)
CATALOGUE = [
    cells.para_rnn(1), cells.para_rnn(2), cells.para_rnn(4), cells.para_gru(2),
    cells.para_lstm(1), cells.para_lstm(2), cells.newton_gru(), cells.newton_lstm(),
    cells.newton_lstm(2), cells.lem(), cells.lem(2), cells.linear(2), cells.lru(),
    cells.para_rnn(64), cells.para_gru(64), cells.lem(40), cells.para_lstm(128),
]  # fmt: skip


def engines_of(cell: Cell) -> list[str]:
    """Engines that a device has for a cell."""
    if not is_small(cell):
        return ["dense"]
    parallel = "scan" if _autograd.is_linear(cell) else "shooting"
    return ["sequential", parallel] if cell.n <= 4 else ["sequential"]


def check(bench: Bench) -> list[Table]:
    """Errors of every cell and engine."""

    def row(cell: Cell, engine: str, dtype: torch.dtype) -> list[str]:
        batch, steps, units = bench.shape(3, 300, 33 if is_small(cell) else 1)
        # Rounded first: the loop gets the numbers that the kernels get.
        problem = tuple(t.to(dtype) for t in draw(cell, batch, steps, units))
        given = tuple(t.to(bench.device) for t in problem)
        values = results(cell, given, engine)
        if bench.how == "compile":
            return []
        wanted = results(cell, tuple(t.double() for t in problem), "reference")
        errors = []
        for value, exact in zip(values, wanted, strict=True):
            unit = torch.finfo(dtype).eps * float(exact.abs().max().clamp(min=1))
            errors.append(f"{float((value.cpu().double() - exact).abs().max()) / unit:.1f}")
        return errors

    rows: list[Any] = [
        (f"{cell.name}, {engine}, {str(dtype)[6:]}", partial(row, cell, engine, dtype))
        for cell in CATALOGUE for engine in engines_of(cell)
        for dtype in (DTYPES if cell.name in SOME else DTYPES[:1])
    ]  # fmt: skip
    header = ["cell, engine, dtype", "states", "g_inputs", "g_params"]
    return [Table("Largest error in units in the last place of the largest value", header, rows)]


def works_of(
    cell: Cell, copies: list[Problem], engine: str
) -> tuple[list[Callable[[], object]], list[Callable[[], object]]]:
    """Calls forward, and forward and backward, one a copy."""
    forward: list[Callable[[], object]] = []
    both: list[Callable[[], object]] = []
    for inputs, params, grad in copies:
        leaves = (inputs.detach().requires_grad_(), params.detach().requires_grad_())

        def run(leaves: Any = leaves) -> torch.Tensor:
            return recurrence(cell, *leaves, engine=engine)[0]

        def run_back(leaves: Any = leaves, grad: Any = grad, run: Any = run) -> object:
            return torch.autograd.grad(run(), leaves, grad)

        forward.append(run)
        both.append(run_back)
    return forward, both


def floors(bench: Bench, cell: Cell, problem: Problem) -> tuple[float, float]:
    """Microseconds to move what a pass forward has to, and what both have to.

    Forward reads u and writes h; backward reads h and its gradient, and u where gates are computed
    again, and writes the gradient of u.
    """
    batch, steps, _, units = problem[0].shape
    field = 1e3 * batch * steps * units * problem[0].element_size() * bench.a_byte
    forward = field * (cell.m + cell.n)
    again = cell.m * any(name.startswith("u") for name in needed_backward(cell))
    return forward, forward + field * (2 * cell.n + cell.m + again)


def is_supported(layer: torch.nn.Module, x: torch.Tensor) -> bool:
    """True unless cuDNN refuses the shape, as it does 131,072 steps."""
    try:
        layer(x)
    except RuntimeError as error:
        if "NOT_SUPPORTED" not in str(error):
            raise
        return False
    return True


def torch_us(bench: Bench, kind: str, shape: tuple[int, int, int]) -> tuple[float, float]:
    """Microseconds of torch's layer on one feature, forward and with backward.

    Not a number where they do not support the shape.
    """
    batch, steps, width = bench.shape(*shape)
    layer = TORCH[kind](1, width, batch_first=True).to(bench.device)
    x = torch.randn(batch, steps, 1, device=bench.device)
    gradient = torch.randn(batch, steps, width, device=bench.device)
    parameters = list(layer.parameters())
    if not is_supported(layer, x):
        return float("nan"), float("nan")
    return (
        1e3 * bench.queue_ms(lambda: layer(x)[0]),
        1e3 * bench.queue_ms(lambda: torch.autograd.grad(layer(x)[0], parameters, gradient)),
    )


def speed(bench: Bench) -> list[Table]:
    """Cells beside their floors and beside torch's layers."""
    of_torch = {"para_rnn_tanh_2": "rnn", "para_gru_2": "gru", "para_lstm_2": "lstm"}

    def row(cell: Cell, shape: tuple[int, int, int], engine: str) -> list[str]:
        problem = bench.draw(cell, *shape)
        works = works_of(cell, bench.copies(problem), engine)
        kernels = [1e3 * bench.graph_ms(work) for work in works]
        queued = [1e3 * bench.queue_ms(work[0]) for work in works]
        least = floors(bench, cell, problem)
        kind = of_torch.get(cell.name)
        peers = ["", "", ""]
        if kind and engine == "sequential" and bench.how != "compile":
            theirs = torch_us(bench, kind, shape)
            peers = [*(f"{t:.0f}" for t in theirs), f"{theirs[1] / queued[1]:.1f}"]
        return [
            *(f"{f:.0f}" for f in least),
            *(f"{k:.0f} ({k / f:.2f})" for k, f in zip(kernels, least, strict=True)),
            *(f"{q:.0f}" for q in queued),
            *peers,
        ]

    header = ["cell, (B, T, width), engine", "floor forward us", "and backward",
              "kernels (of floor)", "and backward", "call", "and backward", "torch.nn",
              "and backward", "ratio"]  # fmt: skip
    rows: list[Any] = [
        (f"{cell.name}, {shape}, {engine}", partial(row, cell, shape, engine))
        for shape in SHAPES
        for cell in (cells.para_rnn(2), cells.para_gru(2), cells.para_lstm(2), cells.lru())
        for engine in engines_of(cell)
        if engine == "sequential" or shape in LONG
    ]
    return [Table("Microseconds, float32", header, rows)]


def layers(bench: Bench) -> list[Table]:
    """Layers beside those of torch."""
    from tsrnn.layers import ParaRNN

    def row(kind: str, shape: tuple[int, int, int]) -> list[str]:
        batch, steps, width = bench.shape(*shape)
        x = torch.randn(batch, steps, width, device=bench.device, requires_grad=True)
        times = []
        for make in (
            lambda: ParaRNN(width, width, cell=kind),
            lambda: TORCH[kind](width, width, batch_first=True),
        ):
            layer: Any = make().to(bench.device)
            if bench.how == "measure" and not is_supported(layer, x):
                times.append(float("nan"))
                continue

            def work(layer: Any = layer) -> object:
                output = layer(x)[0]
                return torch.autograd.grad(output.square().mean(), [x, *layer.parameters()])

            times.append(bench.call_ms(work))
            if bench.how == "compile":
                return []
        return [*(f"{t:.2f}" for t in times), f"{times[1] / times[0]:.1f}"]

    header = ["cell, (B, T, width)", "tsrnn", "torch.nn", "ratio"]
    return [Table("Layers, forward and backward, ms", header, [
        (f"{kind}, {shape}", partial(row, kind, shape))
        for kind in ("rnn", "gru", "lstm") for shape in SHAPES
    ])]  # fmt: skip


def matrices(bench: Bench) -> list[Table]:
    """The ordinary networks, beside torch's."""
    from tsrnn.kernels._gpu import dense

    def row(kind: str, shape: tuple[int, int, int], resident: int, precision: str) -> list[str]:
        torch.set_float32_matmul_precision(precision)
        torch.backends.cudnn.allow_tf32 = precision == "high"
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
            gradient = torch.randn(batch, steps, d, device=bench.device)
            if bench.how == "compile":
                torch.autograd.grad(ours(), [v, w], gradient[..., None])
                return []
            difference = float((ours()[..., 0] - theirs()).detach().abs().max())
            works: list[Callable[[], object]] = [
                ours,
                theirs,
                lambda: torch.autograd.grad(ours(), [v, w], gradient[..., None]),
                lambda: torch.autograd.grad(theirs(), parameters, gradient),
            ]
            times = [1e3 * bench.graph_ms([work]) for work in works]
            calls = [1e3 * bench.queue_ms(work) for work in works[2:]]
        finally:
            dense.RESIDENT_SEQUENCES = usual
            torch.set_float32_matmul_precision("highest")
            torch.backends.cudnn.allow_tf32 = False
        multiplied = 2e-6 * batch * steps * cell.p / times[0]
        return [*(f"{t:.0f}" for t in times), f"{times[1] / times[0]:.1f}",
                f"{times[3] / times[2]:.1f}", *(f"{t:.0f}" for t in calls), f"{multiplied:.2f}",
                f"{difference:.0e}"]  # fmt: skip

    header = ["network, (B, T, d), matrices", "ours us", "torch.nn", "and backward", "torch.nn",
              "ratio", "ratio", "call, both passes", "torch.nn", "Tflop/s forward",
              "largest difference"]  # fmt: skip
    return [Table("Full matrices, microseconds as a graph replays them", header, [
        (f"{kind}, {shape}, {words}", partial(row, kind, shape, resident, precision))
        for kind in ("rnn", "gru") for shape in MATRICES for words, resident, precision in PLACES
    ])]  # fmt: skip


def training(bench: Bench) -> list[Table]:
    """Steps of training on 784 pixels in a row, and epochs of a forecaster."""
    from tsrnn.layers import ParaRNN

    def row(kind: str, *, ours: bool, autocast: bool) -> list[str]:
        if bench.how == "compile" and not ours:
            return []
        batch, steps, width = bench.shape(128, 784, 128)
        layer: Any = (
            ParaRNN(1, width, cell=kind) if ours else TORCH[kind](1, width, batch_first=True)
        )
        head = torch.nn.Linear(width, 10)
        model = torch.nn.ModuleList([layer, head]).to(bench.device)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        x = torch.rand(batch, steps, 1, device=bench.device)
        y = torch.randint(10, (batch,), device=bench.device)
        kind_of_device = "cpu" if bench.how != "measure" else "cuda"

        def step() -> None:
            with torch.autocast(kind_of_device, torch.bfloat16, enabled=autocast):
                loss = torch.nn.functional.cross_entropy(head(layer(x)[0][:, -1]).float(), y)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            if bench.how != "compile":
                optimizer.step()

        ms = bench.queue_ms(step)
        return [f"{ms:.2f}", f"{60e3 / ms / (60_000 / batch):.1f}", f"{bench.peak_mb(step):.0f}"]

    header = ["layer", "ms a step", "epochs of 60,000 images a minute", "peak MB"]
    steps = Table("Training on (128, 784, 1), 128 units", header, [
        (f"{'tsrnn' if ours else 'torch.nn'} {kind}, {'bfloat16' if autocast else 'float32'}",
         partial(row, kind, ours=ours, autocast=autocast))
        for kind in ("rnn", "gru", "lstm") for ours in (True, False) for autocast in (False, True)
    ])  # fmt: skip
    return [steps]


def forecaster(bench: Bench) -> list[Table]:
    """Epochs of `ParaRNNForecaster` on a quarter as much as the hourly series of M4, by device."""

    def row(device: str) -> list[str]:
        if bench.how == "compile":
            return []
        from tsrnn import ParaRNNForecaster

        series, hours, horizon = (96, 860, 48) if bench.how == "measure" else (3, 120, 4)
        rng = np.random.default_rng(0)
        daily = np.sin(2 * np.pi * np.arange(hours) / 24)
        values = 10 + rng.normal(size=(series, 1)) * daily + 0.3 * rng.normal(size=(series, hours))
        panel = pd.DataFrame(values.T, index=pd.date_range("2024-01-01", periods=hours, freq="h"))
        panel.columns = [f"s{i}" for i in range(series)]
        long = panel.stack().rename("y").rename_axis(["ds", "unique_id"]).reset_index()
        place = device if bench.how == "measure" else "cpu"
        if device == "cpu":
            torch.set_num_threads(2)
        seconds = []
        for epochs in (1, 1, 3):  # the first one compiles
            model = ParaRNNForecaster(
                horizon, prior=None, max_epochs=epochs, refit=False, device=place, random_state=0
            )  # fmt: skip
            start = time.perf_counter()
            model.fit(long)
            bench.synchronise()
            seconds.append(time.perf_counter() - start)
        return [f"{seconds[1]:.2f}", f"{(seconds[2] - seconds[1]) / 2:.2f}"]

    header = ["device", "fit of an epoch, seconds", "a further epoch"]
    return [Table("ParaRNNForecaster on 96 series of 860 hours, 48 ahead", header, [
        ("one GPU", partial(row, "cuda")), ("two cores of the same machine", partial(row, "cpu"))
    ])]  # fmt: skip


def host(bench: Bench) -> list[Table]:
    """Calls so small that the host's time is measured, and where the backward pass runs."""
    from tsrnn.layers import ParaRNN

    def row(make: Callable[[int], torch.nn.Module] | None) -> list[str]:
        batch, steps, width = bench.shape(32, 96, 128)
        cell = cells.para_rnn(2)
        inputs, params, grad = bench.draw(cell, batch, steps, width)
        leaves = [inputs.requires_grad_(), params.requires_grad_()]
        if make is not None:
            layer = make(width).to(bench.device)
            inputs = torch.randn(batch, steps, width, device=bench.device)
            leaves, grad = list(layer.parameters()), torch.randn_like(inputs)

        def forward() -> torch.Tensor:
            outputs = recurrence(cell, *leaves) if make is None else layer(inputs)
            output: torch.Tensor = outputs[0]
            return output

        def both() -> object:
            return torch.autograd.grad(forward(), leaves, grad)

        times = [bench.queue_ms(forward), bench.queue_ms(both)]
        with torch.autograd.set_multithreading_enabled(False):
            times.append(bench.queue_ms(both))
        return [f"{1e3 * t:.0f}" for t in times]

    makers: list[tuple[str, Any]] = [
        ("recurrence of ParaRNN", None),
        ("ParaRNN", lambda width: ParaRNN(width, width)),
        ("torch.nn.GRU", lambda width: torch.nn.GRU(width, width, batch_first=True)),
    ]
    header = ["call", "forward us", "both passes", "both in the calling thread"]
    return [Table("Calls of (32, 96, 128)", header, [
        (name, partial(row, make)) for name, make in makers
    ])]  # fmt: skip


def figures(bench: Bench) -> list[Table]:
    """Engines by length and width: Danieli et al. (2025), figures 2 (right), 5, 6 and 9.

    Their ParaGRU and ParaLSTM: forward, and forward and backward of the sum of squares of the
    states, in time order, in chunks of time, by Newton's method on every step in torch (three
    iterations at most, as theirs), and by a loop in torch, which is not run beyond 2,048 steps;
    with the most memory that was taken beside the inputs.
    """

    def row(cell: Cell, shape: tuple[int, int, int], engine: str) -> list[str]:
        inputs, params, _ = draw(cell, *bench.shape(*shape), bench.device)
        leaves = [inputs.requires_grad_(), params.requires_grad_()]
        usual, _newton.most_passes = _newton.most_passes, lambda cell: 3

        def forward() -> torch.Tensor:
            return recurrence(cell, *leaves, engine=engine)[0]

        def both() -> object:
            return torch.autograd.grad(forward().square().sum(), leaves)

        try:
            times = [1e3 * bench.queue_ms(work) for work in (forward, both)]
            peaks = [bench.peak_mb(work) for work in (forward, both)]
        finally:
            _newton.most_passes = usual
        return [f"{value:.0f}" for value in (*times, *peaks)]

    header = ["cell, (B, L, d), engine", "forward us", "and backward us", "peak MB", "and backward"]
    shapes = [(8, 2**k, 1024) for k in (7, 9, 11, 13, 15)] + [(8, 2048, d) for d in (256, 4096)]
    return [Table("Figures 2, 5, 6 and 9", header, [
        (f"{cell.name}, {shape}, {engine}", partial(row, cell, shape, engine))
        for cell in (cells.newton_gru(), cells.newton_lstm()) for shape in shapes
        for engine in ("sequential", "shooting", "newton", "reference")
        if engine != "reference" or shape[1] <= 2048
    ])]  # fmt: skip


def loop(bench: Bench) -> list[Table]:
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

    def row(cell: Cell, steps: int, *, compiles: bool) -> list[str]:
        problem = bench.draw(cell, 8, steps, 1024)
        ours = bench.queue_ms(lambda: recurrence(cell, *problem[:2]))
        if bench.how == "compile":
            return []
        plain = bench.call_ms(lambda: recurrence(cell, *problem[:2], engine="reference"))
        own = bench.call_ms(compiled(cell, problem)) if compiles else float("nan")
        return [f"{ours:.3f}", f"{plain:.1f}", f"{own:.1f}",
                f"{plain / ours:.0f}", f"{own / ours:.0f}"]  # fmt: skip

    header = ["cell, (B, T, K)", "tsrnn ms", "loop", "compiled step", "ratio", "ratio"]
    return [Table("Forward beside the loop in torch", header, [
        (f"{cell.name}, (8, {steps}, 1024)", partial(row, cell, steps, compiles=steps == 512))
        for cell in (cells.newton_gru(), cells.newton_lstm()) for steps in (512, 2048, 8192)
    ])]  # fmt: skip


def rule(bench: Bench) -> list[Table]:
    """Time order beside chunks of time, around the limits that "auto" takes between them."""

    def row(cell: Cell, shape: tuple[int, int, int]) -> list[str]:
        problem = bench.draw(cell, *shape)
        times = [
            [1e3 * bench.graph_ms(work) for work in works_of(cell, bench.copies(problem), engine)]
            for engine in engines_of(cell)
        ]
        chosen = _autograd.best_engine(cell, *problem[:2])
        values = [f"{t:.0f}" for pair in zip(*times, strict=True) for t in pair]
        return [*values, f"{times[0][1] / times[1][1]:.1f}", chosen]

    header = ["cell, (B, T, width)", "time order, forward us", "chunks", "and backward", "chunks",
              "ratio", "auto"]  # fmt: skip
    return [Table("Time order and chunks of time, microseconds", header, [
        (f"{cell.name}, ({batch}, {steps}, 128)", partial(row, cell, (batch, steps, 128)))
        for cell in (cells.para_rnn(2), cells.para_gru(2), cells.lru())
        for batch, steps in ((1, 1024), (1, 2048), (16, 2048), (64, 2048), (64, 4096), (128, 4096))
    ])]  # fmt: skip


def tuning(bench: Bench) -> list[Table]:
    """Launch parameters of the kernels in time order, lanes of those in chunks."""
    kernels: Any = _backend.backend_of(torch.device(bench.device))

    def launched(
        cell: Cell, shape: tuple[int, int, int], names: tuple[str, ...], engine: str, **values: int
    ) -> list[str]:
        problem = bench.draw(cell, *shape)
        usual = {name: getattr(kernels, name) for name in names}
        for name in names:
            setattr(kernels, name, usual[name]._replace(**values))
        try:
            works = works_of(cell, bench.copies(problem), engine)
            return [f"{1e3 * bench.graph_ms(work):.1f}" for work in works]
        finally:
            for name in names:
                setattr(kernels, name, usual[name])

    def laned(cell: Cell, shape: tuple[int, int, int], lanes: int, **values: int) -> list[str]:
        usual, _time_parallel.GPU_LANES = _time_parallel.GPU_LANES, lanes
        try:
            return launched(cell, shape, ("SHOOTING",), engines_of(cell)[1], **values)
        finally:
            _time_parallel.GPU_LANES = usual

    header = ["cell, (B, T, width), steps ahead", "forward us", "forward and backward"]
    ahead = {"para_rnn_tanh_2": (4, 8, 16), "lru": (4, 8, 16), "para_gru_2": (2, 4, 8),
             "para_lstm_2": (2, 4)}  # fmt: skip
    launches: list[Any] = [
        (f"{cell.name}, {shape}, {steps}",
         partial(launched, cell, shape, ("FORWARD", "BACKWARD"), "sequential", ahead=10**6,
                 longest=steps))
        for shape in (SHAPES[1], SHAPES[4], SHAPES[0])
        for cell in (cells.para_rnn(2), cells.para_gru(2), cells.para_lstm(2), cells.lru())
        for steps in ahead[cell.name]
    ]  # fmt: skip
    lanes: list[Any] = [
        (f"{cell.name}, {shape}, lanes {count}, {steps} steps ahead",
         partial(laned, cell, shape, count, ahead=10**6, longest=steps))
        for shape in LONG for cell in (cells.para_rnn(2), cells.lru())
        for count in (2**15, 2**16) for steps in (2, 4, 8)
    ]  # fmt: skip
    return [Table("Launches", header, launches), Table("Lanes of chunks", header, lanes)]


SECTIONS: dict[str, Callable[[Bench], list[Table]]] = {
    "check": check, "speed": speed, "layers": layers, "matrices": matrices, "training": training,
    "forecaster": forecaster, "host": host, "loop": loop, "rule": rule, "tuning": tuning,
    "figures": figures,
}  # fmt: skip
