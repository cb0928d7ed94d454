"""Threads, forks and processes: the same bits, and nothing of torch's is changed."""

import concurrent.futures
import multiprocessing
import os
import select
import signal
import threading
import time

import pytest
import torch

from tsrnn.kernels import cells, recurrence
from tsrnn.kernels._cpu import threads as pool
from tsrnn.kernels._cpu.threads import run_ranges, split

FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


@pytest.fixture
def large(draw, solve):
    """A problem that is worth several threads, solved when called."""
    cell = cells.para_rnn(2)
    problem = draw(cell, batch=37, steps=40, units=33, dtype=torch.float32)
    return lambda: solve(cell, problem, "sequential")


def assert_same(results, expected):
    for name, value in expected.items():
        assert torch.equal(results[name], value), name


@pytest.mark.parametrize("shape", [(37, 40, 33), (1, 200, 130), (2, 150, 70), (70000, 1, 1)])
def test_results_do_not_depend_on_the_number_of_threads(shape, threads, draw, solve):
    cell = cells.para_rnn(1)
    problem = draw(cell, *shape, dtype=torch.float32)
    results = []
    for count in (1, 2, 3):
        threads(count)
        results.append(solve(cell, problem, "sequential"))
    assert_same(results[1], results[0])
    assert_same(results[2], results[0])


def test_results_are_the_same_at_every_call(large):
    expected = large()
    for _ in range(5):
        assert_same(large(), expected)


def test_calls_from_several_threads_at_once(large, threads):
    threads(2)
    expected = large()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for result in [pool.submit(large) for _ in range(12)]:
            assert_same(result.result(timeout=60), expected)


def test_threads_of_torch_stay_as_they_were(large, threads):
    for count in (1, 2, 3):
        threads(count)
        large()
        assert torch.get_num_threads() == count


def test_one_thread_starts_none(large, threads):
    threads(1)
    before = threading.active_count()
    large()
    assert threading.active_count() == before


def test_an_error_in_a_range_is_raised():
    def kernel(i):
        if i == 1:
            raise RuntimeError("range 1")

    with pytest.raises(RuntimeError, match="range 1"):
        run_ranges(kernel, [(0,), (1,), (2,)])


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("range 0")], ids=repr)
def test_nothing_runs_on_after_an_error_on_this_thread(error):
    begun, ended, running = [], [], threading.Event()

    def kernel(i):
        if i == 0:
            running.wait(10)
            raise error
        begun.append(i)
        running.set()
        time.sleep(0.1)
        ended.append(i)

    with pytest.raises(type(error)) as caught:
        run_ranges(kernel, [(i,) for i in range(5)])
    assert caught.value is error
    assert begun
    assert sorted(begun) == sorted(ended)
    time.sleep(0.15)
    assert len(begun) == len(ended)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="the system has no thread signals")
def test_interrupts_while_waiting_do_not_leave_a_range_running():
    ended = []

    def kernel(i):
        if i == 0:
            return
        for _ in range(2):
            time.sleep(0.1)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.1)
        ended.append(i)

    # A process started in the background may ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_ranges(kernel, [(0,), (1,)])
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended == [1]


def test_an_interrupt_while_submitting_drops_the_range(monkeypatch):
    calls = []

    class Pool:
        def submit(self, *call):
            calls.append(call)
            raise KeyboardInterrupt

    monkeypatch.setattr(pool, "_workers", lambda count: Pool())
    with pytest.raises(KeyboardInterrupt):
        run_ranges(lambda i: pytest.fail("it has run"), [(0,), (1,)])
    ((function, *arguments),) = calls
    function(*arguments)  # what a worker does later


@pytest.mark.parametrize("n_sequences", [0, 1, 2, 5, 64])
@pytest.mark.parametrize("n_units", [1, 16, 17, 100])
@pytest.mark.parametrize("work", [0, 10_000, 10_000_000])
def test_ranges_cover_everything_once(n_sequences, n_units, work, threads):
    threads(3)
    seen = [
        (b, k)
        for b0, b1, k0, k1 in split(n_sequences, n_units, work)
        for b in range(b0, b1)
        for k in range(k0, k1)
    ]
    assert sorted(seen) == [(b, k) for b in range(n_sequences) for k in range(n_units)]


@FORKS
def test_a_fork_after_use(threads, draw, solve):
    threads(2)
    cell = cells.para_rnn(1)
    # Large enough for two threads.
    problem = draw(cell, batch=8, steps=80, units=33, dtype=torch.float32)
    assert len(split(8, 33, problem.inputs.numel())) == 2
    expected = solve(cell, problem, "sequential")
    read, write = os.pipe()
    child = os.fork()  # the child does not get the threads of the parent's pool
    if not child:
        results = solve(cell, problem, "sequential")
        same = all(torch.equal(results[name], value) for name, value in expected.items())
        os.write(write, b"same" if same else b"other")
        os._exit(0)
    os.close(write)
    answered, _, _ = select.select([read], [], [], 60)
    if not answered:
        os.kill(child, signal.SIGKILL)
    answer = os.read(read, 10)
    os.close(read)
    os.waitpid(child, 0)
    assert answer == b"same"
    assert_same(solve(cell, problem, "sequential"), expected)


WORK = """
import torch
from tsrnn.kernels import cells, recurrence

inputs = torch.linspace(-2, 2, 160).view(2, 10, 1, 8)
states, final = recurrence(cells.para_rnn(1), inputs, torch.full((1, 8), 0.5))
assert final.flatten().tolist() == expected, "another result in the child"
"""


@pytest.mark.few("fork")
@pytest.mark.parametrize("method", [pytest.param("fork", marks=FORKS), "spawn"])
def test_processes_of_a_pool(method):
    inputs = torch.linspace(-2, 2, 160).view(2, 10, 1, 8)
    _, final = recurrence(cells.para_rnn(1), inputs, torch.full((1, 8), 0.5))
    names = {"expected": final.flatten().tolist()}
    with multiprocessing.get_context(method).Pool(1) as pool:
        # `get` raises what the child asserts, or TimeoutError where it waits without end.
        assert pool.apply_async(exec, (WORK, names)).get(timeout=60) is None
