"""Emitted code says in its comments which cell it came from and what it computes."""

import importlib
import operator
import re

import pytest
import torch

from tsrnn.kernels import Cell, cells
from tsrnn.kernels._cpu import time_order
from tsrnn.kernels._cpu.kernel_ir import kernel_ir
from tsrnn.kernels._cpu.time_order import source
from tsrnn.kernels._derived import adjoint, affine, tangent, with_projection
from tsrnn.kernels._problem import Problem
from tsrnn.kernels._trace import trace

kernel_ir_module = importlib.import_module("tsrnn.kernels._cpu.kernel_ir")  # not the function
BLOCKS = {"linear", "para_gru", "para_lstm", "para_rnn"}
CATALOGUE = [getattr(cells, name)(*[2] * (name in BLOCKS)) for name in cells.__all__]
OTHERS = [
    cells.para_gru(2, reset_after=True),
    cells.para_rnn(1, "relu"),
    with_projection(cells.para_lstm(1), 2, True),
    tangent(cells.para_rnn(2)),
    affine(2),
    adjoint(cells.para_rnn(2)),
    Cell("bare", 1, 1, 1, lambda h, u, w: (torch.where(u[0] > 0.5, h[0] ** 2 / w[0], -h[0]),)),
]
EVERY = pytest.mark.parametrize("cell", CATALOGUE + OTHERS, ids=lambda cell: cell.name)
ALONE = re.compile(r"^  ; (\w+) = (\S.*)$")


def words(text, kind, tile="full"):
    """What the comments of one tile's step say, as (name, formula)."""
    function = text.partition(f"define void @{kind}(")[2].partition("\n}\n")[0]
    step = function.partition(f"\n{tile}.step:\n")[2].partition(f"\n{tile}.end:\n")[0]
    return [match.groups() for line in step.splitlines() if (match := ALONE.match(line))]


def computed(lines, **known):
    """Run what the comments say as Python."""
    names = {
        **{name: getattr(torch, name) for name in ("tanh", "sigmoid", "relu", "where")},
        "tanh_backward": lambda g, y: g * (1 - y**2),
        "sigmoid_backward": lambda g, y: g * y * (1 - y),
        "threshold_backward": lambda g, y, limit: g * (y > limit),
        **known,
    }
    for name, formula in lines:
        names[name] = eval(formula, {}, names)
    return names


def problem(cell):
    """Fields by the cell's own names: state, inputs, parameters."""
    generator = torch.Generator().manual_seed(0)
    return [
        {name: torch.rand((), generator=generator, dtype=torch.float64) + 0.1 for name in names}
        for names in cell.field_names
    ]


@EVERY
def test_header(cell):
    header = [line for line in source(cell, torch.float32).splitlines()[:8] if line[:1] == ";"]
    assert header[0] == f"; Recurrence of the cell {cell.name} in float32."
    for line, letter, names in zip(header[1:4], "nmp", cell.field_names, strict=True):
        assert line.startswith(f"; {letter} = {len(names)} ")
        assert line.endswith(": " + (", ".join(names) or "none"))
    assert "float64" in source(cell, torch.float64).splitlines()[0]


@EVERY
def test_operations_stand_in_the_order_of_the_step(cell):
    text = source(cell, torch.float32)
    for kind, graph in zip(("forward", "backward"), trace(cell), strict=True):
        for tile in ("full", "part"):
            names = [name for name, _ in words(text, kind, tile)]
            assert names[: len(graph.ops)] == [op.out for op in graph.ops]
            assert len(names) == len(graph.ops) + len(graph.outputs)


@EVERY
def test_comments_of_the_forward_pass_are_the_step(cell, assert_close):
    fields = problem(cell)
    lines = words(source(cell, torch.float32), "forward")
    names = computed(lines, **fields[0], **fields[1], **fields[2])
    expected = cell.step(*(tuple(part.values()) for part in fields))
    for name, value in zip(cell.field_names[0], expected, strict=True):
        assert_close(torch.as_tensor(names[f"new_{name}"]), value)


@EVERY
def test_comments_of_the_backward_pass_are_its_gradient(cell, assert_close):
    fields = problem(cell)
    leaves = [t.requires_grad_() for part in fields for t in part.values()]
    new = cell.step(*(tuple(part.values()) for part in fields))
    weights = [torch.full_like(t, 0.3 + i) for i, t in enumerate(new)]
    expected = torch.autograd.grad(new, leaves, weights, materialize_grads=True)
    state, inputs, params = cell.field_names
    known = {f"new_{name}": value.detach() for name, value in zip(state, new, strict=True)}
    known |= {f"g_{name}": value for name, value in zip(state, weights, strict=True)}
    every = {name: value.detach() for part in fields for name, value in part.items()} | known
    lines = words(source(cell, torch.float64), "backward")
    names = computed(lines, **every)
    results = [f"g_old_{name}" for name in state] + [f"g_{name}" for name in inputs + params]
    for i, (name, value) in enumerate(zip(results, expected, strict=True)):
        if not (cell.shared and cell.n <= i < cell.n + cell.m):
            got = torch.as_tensor(names[name], dtype=value.dtype)
            assert_close(got, value)


def test_the_words_of_a_cell():
    cell = Cell(
        "smoothing", 1, 1, 1, lambda h, u, w: (h[0] + w[0] * (u[0] - h[0]),),
        names=(("level",), ("price",), ("alpha",)),
    )  # fmt: skip
    text = source(cell, torch.float32)
    forward, backward = (
        [f"{name} = {formula}" for name, formula in words(text, kind)]
        for kind in ("forward", "backward")
    )
    assert forward == ["v0 = price - level", "v1 = alpha * v0", "v2 = level + v1", "new_level = v2"]
    gradients = [line.partition(" = ")[0] for line in backward if line[0] == "g"]
    assert gradients == ["g_old_level", "g_price", "g_alpha"]
    for line in ("read price", "write new_level", "read and add g_level", "add up g_alpha"):
        assert f"\n  ; {line}\n" in text


def test_a_variant_has_only_what_it_computes():
    text = kernel_ir(cells.para_rnn(2), "float32", ("forward_final", "backward_initial"))
    assert text.count("define void") == 2
    for name in ("%g_u", "%g_w"):
        assert name not in text
    assert "%s, " not in text.partition("@backward_initial")[0]
    names = [name for name, _ in words(text, "backward_initial")]
    assert names[-2:] == ["g_old_h_0", "g_old_h_1"]


def test_equal_cells_have_equal_sources():
    texts = [kernel_ir(cells.para_lstm(2), "float64") for _ in range(2)]
    assert texts[0] == texts[1]


SUMMED_LATER = [
    with_projection(cells.para_lstm(2), 3, True),  # 48 parameters
    with_projection(cells.para_gru(1), 7, True),  # 27: with a wide tile
    with_projection(cells.newton_lstm(2), 4, False),
    Cell("weighted_inputs", 1, 28, 28, lambda h, u, w: (sum(map(operator.mul, u, w)) + h[0],)),
    Cell("unused_parameters", 1, 1, 30, lambda h, u, w: (h[0] + u[0],)),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("cell", SUMMED_LATER, ids=lambda cell: cell.name)
def test_gradients_summed_later_are_those_of_every_step(cell, dtype, poisoned, monkeypatch):
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(shape, generator=generator, dtype=dtype)

    units, lengths = 37, torch.tensor([50, 0, 16, 33])
    inputs = normal(4, 50, cell.m) if cell.shared else normal(4, 50, cell.m, units)
    problem = Problem(cell, inputs, normal(cell.p, units) / 5, normal(4, cell.n, units), lengths)
    states, _ = time_order.forward(problem)
    arguments = problem, states, torch.randn_like(states), normal(4, cell.n, units)

    monkeypatch.setattr(time_order, "kernel_of", time_order.kernel_of.__wrapped__)
    monkeypatch.setattr(time_order, "source", time_order.source.__wrapped__)
    later = time_order.backward(*arguments)
    monkeypatch.setattr(kernel_ir_module, "_MOST_CARRIED", 10**6)
    every_step = time_order.backward(*arguments)
    for name, value, expected in zip(cell.field_names[2], later[1], every_step[1], strict=True):
        if name.startswith("b_"):  # rounded before it is added
            scale = expected.abs().max()
            assert (value - expected).abs().max() <= 16 * torch.finfo(dtype).eps * scale, name
        else:
            assert torch.equal(value, expected), name
    assert torch.equal(later[2], every_step[2])
