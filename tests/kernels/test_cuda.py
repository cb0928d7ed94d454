"""The kernels on a CUDA device: what the interpreter of Triton cannot say."""

import itertools

import pytest
import torch

from tsrnn.kernels import cells, recurrence

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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_cell_in_time_order(cell, dtype, on_device, check):
    for units, lengths in ((33, None), (5, [9, 0, 4])):
        check(cell, on_device(cell, 3, 9, units, dtype), "sequential", lengths)


@pytest.mark.parametrize(
    ("cell", "engine"),
    [
        *itertools.product([cells.para_rnn(2), cells.para_lstm(1)], ["shooting", "newton"]),
        *itertools.product([cells.lru(), cells.linear(2)], ["scan", "newton"]),
        *((make(size), "dense") for make in (cells.para_rnn, cells.para_gru, cells.newton_lstm)
          for size in (3, 40)),
    ],
    ids=lambda value: getattr(value, "name", value),
)  # fmt: skip
def test_other_engines(cell, engine, on_device, check):
    for lengths in (None, [200, 0, 70]):
        problem = on_device(cell, 3, 200, 3, torch.float64)
        problem = problem._replace(params=0.5 * problem.params)
        check(cell, problem, engine, lengths)


@pytest.mark.parametrize(
    ("cell", "engine"),
    [
        (cells.para_rnn(2), "sequential"),
        (cells.para_rnn(1), "shooting"),
        (cells.para_gru(17), "dense"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_numbers_stored_in_half_precision(cell, engine, on_device, check):
    check(cell, on_device(cell, 3, 5, 5, torch.bfloat16), engine, [5, 0, 2])


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


def test_arrays_of_more_than_two_to_the_31_numbers(on_device):
    if torch.cuda.mem_get_info()[0] < 48 * 2**30:
        pytest.skip("needs 48 GB of the device's memory")
    cell, steps, units = cells.linear(1), 2**11, 2**10
    inputs = torch.ones(2**10 + 1, steps, 1, units, device=DEVICE)
    params = torch.full((1, units), 0.5, device=DEVICE)
    states, final = recurrence(cell, inputs, params, engine="sequential")
    for row in (0, len(inputs) - 1):
        last, _ = recurrence(cell, inputs[row : row + 1], params, engine="sequential")
        assert torch.equal(states[row : row + 1], last)
    assert torch.equal(final, states[:, -1])


def test_another_device_than_the_current_one(on_device, check):
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two devices")
    cell = cells.para_rnn(2)
    for engine in ("sequential", "shooting", "dense"):
        check(cell, on_device(cell, 3, 9, 5, device="cuda:1"), engine)
    assert torch.cuda.current_device() == 0


def test_work_is_done_in_the_current_stream(on_device):
    cell = cells.para_rnn(2)
    inputs, params, initial, *_ = on_device(cell, 64, 200, 64, torch.float32)
    expected, _ = recurrence(cell, inputs, params, initial, engine="sequential")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        late = inputs.clone()
        torch.cuda._sleep(10**8)
        late.mul_(2.0).div_(2.0)
        states, _ = recurrence(cell, late, params, initial, engine="sequential")
    stream.synchronize()
    assert torch.equal(states, expected)


def test_a_graph_captures_what_auto_takes(on_device):
    cell = cells.para_rnn(2)
    inputs, params, initial, *_ = on_device(cell, 2, 600, 3, torch.float32)
    recurrence(cell, inputs, params, initial, engine="sequential")  # compiled before
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        states, _ = recurrence(cell, inputs, params, initial)
    inputs.neg_()
    graph.replay()
    torch.cuda.synchronize()
    expected, _ = recurrence(cell, inputs, params, initial, engine="sequential")
    assert torch.equal(states, expected)
