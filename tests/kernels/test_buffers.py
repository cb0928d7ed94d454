"""What is written, and what NaN and infinity do."""

import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from tsrnn.kernels import cells, recurrence
from tsrnn.kernels._cpu import buffers, time_order
from tsrnn.kernels._derived import adjoint, affine, tangent
from tsrnn.kernels._problem import Problem
from tsrnn.layers import ParaRNN

if sys.platform == "linux":
    import resource

NAN, INF = float("nan"), float("inf")


FULL = [cells.newton_lstm(18), cells.para_gru(18), cells.para_gru(18, reset_after=True)]
ENGINES = pytest.mark.parametrize(
    ("cell", "engine"),
    [(cells.para_rnn(2), "sequential"), *((cell, "dense") for cell in FULL)],
    ids=lambda value: getattr(value, "name", value),
)


@pytest.mark.parametrize("units", [1, 15, 16, 33])
@pytest.mark.parametrize("lengths", [None, [5, 0, 2]])
@ENGINES
def test_every_buffer_is_written_completely(poisoned, cell, engine, units, lengths, draw, solve):
    results = solve(cell, draw(cell, units=2 if engine == "dense" else units), engine, lengths)
    assert poisoned
    for name, value in results.items():
        assert torch.isfinite(value).all(), name


@pytest.mark.parametrize("reference", [False, True])
@ENGINES
def test_padding_may_hold_nan(cell, engine, reference, draw, solve):
    engine = "reference" if reference else engine
    problem = draw(cell, units=2 if cell.n > 8 else 17)
    clean = solve(cell, problem, engine, [5, 0, 2])
    problem.inputs[1] = problem.inputs[2, 2:] = NAN
    problem.g_states[1] = problem.g_states[2, 2:] = 1e30
    for name, value in solve(cell, problem, engine, [5, 0, 2]).items():
        assert torch.equal(value, clean[name]), name


@ENGINES
def test_arguments_are_not_written_to_and_their_strides_do_not_matter(cell, engine, draw, solve):
    problem = draw(cell)
    copies = [t.clone() for t in problem]
    expected = solve(cell, problem, engine)
    strided = [t.mT.contiguous().mT for t in problem]
    for given in (problem, strided):
        leaves = [t.detach().requires_grad_() for t in given[:3]]
        results = recurrence(cell, *leaves, engine=engine)
        assert all(t.is_contiguous() for t in results)
        gradients = torch.autograd.grad(results, leaves, given[3:])
        assert all(map(torch.equal, given, copies))
        for value, name in zip((*results, *gradients), expected, strict=True):
            assert torch.equal(value, expected[name]), name


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu", "identity"])
@pytest.mark.parametrize("engine", ["reference", "sequential"])
def test_nan_goes_on_in_its_unit_and_nowhere_else(engine, nonlinearity, draw, solve):
    cell = cells.para_rnn(2, nonlinearity)
    problem = draw(cell, batch=3, steps=5, units=17)
    clean = solve(cell, problem, engine)
    problem.inputs[1, 2, 0, 4] = NAN
    results = solve(cell, problem, engine)
    expected = torch.zeros_like(clean["states"], dtype=torch.bool)
    expected[1, 3:, :, 4] = True
    expected[1, 2, 0, 4] = True
    assert torch.equal(results["states"].isnan(), expected)
    assert results["final"].isnan().nonzero().tolist() == [[1, 0, 4], [1, 1, 4]]
    assert torch.equal(results["states"][~expected], clean["states"][~expected])
    elsewhere = [k for k in range(17) if k != 4]
    for name in ("g_inputs", "g_params", "g_initial"):
        assert torch.equal(results[name][..., elsewhere], clean[name][..., elsewhere]), name
    assert results["g_params"][..., 4].isnan().any()


@pytest.mark.parametrize("engine", ["reference", "sequential"])
def test_infinite_inputs(engine):
    inputs = torch.tensor([INF, -INF]).view(1, 1, 1, 2)
    params = torch.zeros(1, 2)
    for nonlinearity, expected in (
        ("tanh", [1.0, -1.0]),
        ("relu", [INF, 0.0]),
        ("identity", [INF, -INF]),
    ):
        cell = cells.para_rnn(1, nonlinearity)
        states, _ = recurrence(cell, inputs, params, engine=engine)
        assert states.flatten().tolist() == expected


def test_a_changed_result_is_noticed_in_the_backward_pass(draw):
    cell = cells.para_rnn(2)
    inputs, params, *_ = draw(cell)
    states, _ = recurrence(cell, inputs.requires_grad_(), params, engine="sequential")
    loss = states.sum()
    with torch.no_grad():
        states.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


CELLS = [
    cells.para_rnn(2), cells.para_rnn(8), cells.para_lstm(2), cells.lem(1), cells.lru(),
    tangent(cells.para_gru(2)), adjoint(cells.para_lstm(1)), affine(3),
]  # fmt: skip


@pytest.mark.parametrize("lengths", [[5, 5, 5], [5, 0, 2]])
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_variants_compute_the_same_bits(poisoned, cell, lengths, draw):
    inputs, params, initial, g_states, g_final = draw(cell, units=50, dtype=torch.float32)
    problem = Problem(cell, inputs, params, initial, torch.tensor(lengths))
    states, final = time_order.forward(problem)
    none, only_final = time_order.forward(problem, keep=False)
    assert none.shape == (3, 0, cell.n, 50)
    assert torch.equal(only_final, final)
    _, _, g_initial = time_order.backward(problem, states, g_states, g_final)
    results = time_order.backward(problem, states, g_states, g_final, only_initial=True)
    assert results[:2] == (None, None)
    assert torch.equal(results[2], g_initial)
    assert torch.isfinite(final).all()
    assert torch.isfinite(g_initial).all()


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_results_of_a_unit_do_not_depend_on_its_place(cell, draw, solve):
    # Wide, whole and partial tiles: 32, 16 and 15 units.
    one = draw(cell, units=1, dtype=torch.float32)
    results = solve(cell, type(one)(*(t.expand(*t.shape[:-1], 63) for t in one)), "sequential")
    for name, value in results.items():
        assert torch.equal(value, value[..., :1].expand_as(value)), name


LARGE = (3, 2**20)


@pytest.fixture
def no_idle(monkeypatch):
    """Begin without memory that waits for use."""
    monkeypatch.setattr(buffers, "idle", {})
    return buffers.idle


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_memory_is_used_again_when_its_last_holder_dies(no_idle, dtype):
    like = torch.zeros(1, dtype=dtype)
    array = buffers.new_empty(like, LARGE)
    address = array.data_ptr()
    assert (array.shape, array.dtype, array.is_contiguous()) == (LARGE, dtype, True)
    assert address % 64 == 0
    holders = [
        array[1:, 5], array.detach(), array.numpy(), array.untyped_storage(), array.view(-1),
        (array * torch.ones(1, requires_grad=True)).grad_fn, memoryview(array.numpy())[1:],
    ]  # fmt: skip
    del array
    while holders:
        assert buffers.new_empty(like, LARGE).data_ptr() != address
        assert len(no_idle) == 1
        holders.pop()
    arrays = [buffers.new_empty(like, LARGE) for _ in "ab"]
    assert address in [array.data_ptr() for array in arrays]


def test_a_slightly_shorter_result_fits_too(no_idle):
    like = torch.zeros(1)
    address = buffers.new_empty(like, (16, 2**18)).data_ptr()
    assert buffers.new_empty(like, (16, 2**18 - 1)).data_ptr() == address
    assert buffers.new_empty(like, (8, 2**18)).data_ptr() != address


def test_small_results_are_left_to_torch(no_idle):
    assert buffers.new_empty(torch.zeros(1), (0, 7)).shape == (0, 7)
    assert buffers.new_empty(torch.zeros(1), (100,)).untyped_storage().resizable()
    assert not no_idle


def test_memory_that_waits_for_use_is_bounded(no_idle, monkeypatch):
    monkeypatch.setattr(buffers, "MOST_IDLE", 2**24)
    for megabytes in (9, 6, 20, 2, 7):  # the longest unused, and what alone is too much, go first
        buffers.new_empty(torch.zeros(1), (megabytes, 2**18))
    assert [block.nbytes >> 20 for block in no_idle.values()] == [2, 7]


def test_results_can_be_shared_and_changed(no_idle):
    array = buffers.new_empty(torch.zeros(1), LARGE).fill_(1.0)
    array.share_memory_()  # moves it; its first memory is free
    other = buffers.new_empty(torch.zeros(1), LARGE).fill_(2.0)
    assert array.eq(1.0).all()
    other += array
    assert other.eq(3.0).all()
    assert pickle.loads(pickle.dumps(other)).eq(3.0).all()


def test_threads_take_different_memory(no_idle):
    def work(number):
        like, wrong = torch.zeros(1), 0
        for i in range(60):
            arrays = [buffers.new_empty(like, (2**18 + 1,)).fill_(1000 * number + i) for _ in "ab"]
            time.sleep(0)
            wrong += sum(int((array != 1000 * number + i).sum()) for array in arrays)
        return wrong

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(work, range(4))) == 0
    assert len(no_idle) <= 4 * 5  # each thread has four, and one more in its loop, at a time


@pytest.mark.skipif(sys.platform != "linux", reason="counts the page faults of Linux")
def test_a_training_step_touches_no_new_memory():
    layer, x = ParaRNN(1, 64), torch.randn(8, 2048, 1)
    grad = torch.ones(8, 2048, 64)  # 4 MB, as the outputs

    def step():
        outputs = layer(x)[0]
        outputs.backward(grad)
        return outputs

    outputs = None
    for _ in range(3):
        outputs = step()  # the last ones live until there are new ones
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        outputs = step()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert faults * resource.getpagesize() < outputs.nbytes


@pytest.mark.slow
def test_nothing_is_said_at_the_end_of_a_process():
    program = """
import torch
from tsrnn.kernels._cpu import buffers
class Circle: pass
kept, circle = buffers.new_empty(torch.zeros(1), (2**20,)), Circle()
circle.self, circle.array = circle, buffers.new_empty(torch.zeros(1), (2**20,))
torch.kept = buffers.new_empty(torch.zeros(1), (2**20,))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert not done.stderr


def test_a_result_cannot_be_enlarged_and_a_copy_can():
    """As a tensor on memory of NumPy, and with torch's words."""
    like = torch.empty(0)
    more = 2 * buffers.new_empty(like, LARGE).numel()
    for tensor in (buffers.new_empty(like, LARGE), torch.from_numpy(np.empty(LARGE, np.float32))):
        assert tensor.clone().resize_(more).numel() == more
        assert tensor.resize_(10).numel() == 10
        with pytest.raises(RuntimeError, match="storage that is not resizable"):
            tensor.resize_(more)
