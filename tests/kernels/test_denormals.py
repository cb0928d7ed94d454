"""In kernels what is below the smallest normal number is zero; a thread's mode stays as it was."""

import llvmlite.binding as llvm
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.kernels import cells, recurrence
from tsrnn.kernels._cpu import threads as pool
from tsrnn.kernels._cpu import time_order
from tsrnn.kernels._cpu.compiler import entries_ir
from tsrnn.kernels._cpu.threads import run_ranges
from tsrnn.kernels._dense import cpu

LOWEST = {torch.float32: -126, torch.float64: -1022}  # exponents of the smallest normal numbers
EVERY_ENGINE = pytest.mark.parametrize("engine", ["sequential", "dense"])
EVERY_DTYPE = pytest.mark.parametrize("dtype", LOWEST)


def mode():
    """Whether this thread takes results and operands below 2^-1022 for zero."""
    smallest, below = 2.0**-1022, float.fromhex("0x1p-1060")
    return smallest * 0.5 == 0.0, below * 2.0**100 == 0.0


@pytest.fixture(params=[False, True], ids=["kept", "flushed"])
def flush(request):
    """Whether torch flushes such numbers in this thread; set for the time of a test."""
    before = all(mode())
    assert torch.set_flush_denormal(request.param)
    yield request.param
    torch.set_flush_denormal(before)


def check_halving(engine, dtype, size, batch, units, steps):
    """Run a linear network that halves its state at every step: powers of two, then zero."""
    weights = (0.5 * torch.eye(size, dtype=dtype)).flatten()[:, None].repeat(1, units)
    leaves = [
        torch.zeros(batch, steps, size, units, dtype=dtype).requires_grad_(),
        weights.requires_grad_(),
        torch.ones(batch, size, units, dtype=dtype).requires_grad_(),
    ]
    states, final = recurrence(cells.para_rnn(size, "identity"), *leaves, engine=engine)
    g_inputs, _, g_initial = torch.autograd.grad(final.sum(), leaves)

    lowest = LOWEST[dtype]
    power = torch.tensor([2.0**-t if -t >= lowest else 0.0 for t in range(steps + 1)], dtype=dtype)
    after = power[1:, None, None].expand(states.shape)
    assert torch.equal(states, after)
    assert torch.equal(g_inputs, power[:-1].flip(0)[:, None, None].expand(states.shape))
    assert torch.equal(g_initial, power[-1].expand(g_initial.shape))


@EVERY_ENGINE
@EVERY_DTYPE
@settings(max_examples=15, deadline=None)
@given(
    size=st.sampled_from([1, 3]),
    batch=st.integers(1, 5),
    units=st.integers(1, 19),
    beyond=st.integers(-2, 40),
)
def test_a_state_is_halved_down_to_the_smallest_normal_number(
    engine, dtype, size, batch, units, beyond
):
    check_halving(engine, dtype, size, batch, units, beyond - LOWEST[dtype])


@EVERY_ENGINE
@EVERY_DTYPE
def test_in_every_thread(engine, dtype, threads, monkeypatch):
    threads(2)
    counts = []
    module = time_order if engine == "sequential" else cpu
    monkeypatch.setattr(
        module, "run_ranges", lambda *work: counts.append(len(work[1])) or run_ranges(*work)
    )
    size, batch, units = (1, 8, 33) if engine == "sequential" else (40, 42, 1)
    check_halving(engine, dtype, size, batch, units, 20 - LOWEST[dtype])
    assert counts == [2, 2]


@pytest.mark.few("para_rnn_tanh_2", "para_gru_2-dense")
@EVERY_ENGINE
@pytest.mark.parametrize(
    "cell", [cells.para_rnn(2), cells.para_gru(2), cells.para_lstm(2), cells.lem(2)],
    ids=lambda cell: cell.name,
)  # fmt: skip
def test_what_does_not_die_out_is_as_ever(cell, engine, draw, solve, assert_close):
    single = draw(cell, batch=2, steps=400, units=3, dtype=torch.float32)
    single.inputs[:, 20:] = 0.0  # the state decays from here on
    single.g_states[:, :-20] = 0.0  # the gradient from there on backwards
    double = type(single)(*(t.double() for t in single))
    expected = solve(cell, double, "reference")
    results = solve(cell, single, engine)
    smallest = 2.0 ** LOWEST[torch.float32]
    died_out = {}
    for name, value in results.items():
        assert_close(value, expected[name].float(), 256.0)
        size = expected[name].abs()
        died_out[name] = (size > 0) & (size < smallest / 4)
        if name != "g_params":  # summed by torch, in `dense`
            assert not value[died_out[name]].any(), name
            assert (value[value != 0].abs() >= smallest).all(), name
        # Sums cancel, and what a term has lost by flushing is missing in them.
        torch.testing.assert_close(value.double(), expected[name], rtol=0.01, atol=4 * smallest)
    assert died_out["states"].any() or died_out["g_inputs"].any()


@EVERY_ENGINE
def test_the_mode_of_the_calling_thread_stays(engine, flush):
    assert mode() == (flush, flush)
    check_halving(engine, torch.float32, 3, 2, 5, 140)
    assert mode() == (flush, flush)


def test_the_mode_of_the_pools_threads_stays(flush, threads, monkeypatch):
    threads(2)
    monkeypatch.setattr(pool, "_pool", None)  # a new one, of one thread
    monkeypatch.setattr(pool, "_pool_size", 0)
    found = []
    run_ranges(lambda i: found.append((i, mode())), [(0,), (1,)])
    check_halving("sequential", torch.float32, 1, 8, 33, 140)
    run_ranges(lambda i: found.append((i, mode())), [(0,), (1,)])
    assert sorted(found[:2]) == sorted(found[2:])


@EVERY_ENGINE
@EVERY_DTYPE
def test_nan_and_infinity_are_untouched(engine, dtype, flush, draw, solve):
    cell = cells.para_rnn(1, "identity")
    problem = draw(cell, batch=6, steps=5, units=3, dtype=dtype)
    values = [float("nan"), float("inf"), -float("inf"), torch.finfo(dtype).max, 0.0, -0.0]
    problem.inputs[:, 1, 0, 1] = torch.tensor(values, dtype=dtype)
    problem.params[0, 1] = 3.0  # the largest number overflows
    expected = solve(cell, problem, "reference")
    assert {x.item() for x in expected["final"][1:4, 0, 1]} == {float("inf"), -float("inf")}
    for name, value in solve(cell, problem, engine).items():
        torch.testing.assert_close(value, expected[name], equal_nan=True)


POINTERS, SIZES = {"forward": ("u", "s"), "backward": ("g",)}, ("T", "K")
KERNELS = "declare void @forward(ptr, ptr, i64, i64)\ndeclare void @backward(ptr, i64, i64)\n"


def assembly(triple):
    """Instructions of the entries on another machine."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(KERNELS + entries_ir(POINTERS, SIZES, triple))
    module.verify()
    text = llvm.Target.from_triple(triple).create_target_machine(opt=3).emit_assembly(module)
    return [line.split() for line in text.lower().splitlines() if line.startswith("\t")]


@pytest.mark.parametrize(
    ("triple", "sets", "calls"),
    [
        ("x86_64-unknown-linux-gnu", "ldmxcsr", "callq"),
        ("x86_64-pc-windows-msvc", "ldmxcsr", "callq"),
        ("aarch64-unknown-linux-gnu", "msr", "bl"),
        ("arm64-apple-darwin", "msr", "blr"),
        ("powerpc64le-unknown-linux-gnu", "mtfsf", "bl"),
    ],
)
def test_entries_of_other_machines(triple, sets, calls):
    order = [words[0] for words in assembly(triple) if words[0] in (sets, calls)]
    once = [calls] if sets == "mtfsf" else [sets, calls, sets]
    assert order == 2 * once
