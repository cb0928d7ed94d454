"""Code of every kernel of the catalogue is bounded, so that it compiles in an instant.

A compiler takes about a tenth of a millisecond an instruction, and more than in proportion where
many of them stand in one stretch.
"""

import pytest
import torch

from tsrnn.kernels import cells
from tsrnn.kernels._cpu.time_order import source
from tsrnn.kernels._dense.ir import dense_ir
from tsrnn.kernels._derived import adjoint, affine, tangent, tangent_column, with_projection
from tsrnn.kernels._matrix_form import MOST_UNROLLED, is_rolled
from tsrnn.kernels._projected import MOST_FUSED, WIDEST_FUSED

MOST_INSTRUCTIONS = 6000
FORMS = {
    "rnn": cells.para_rnn,
    "gru": cells.para_gru,
    "gru_reset_after": lambda d: cells.para_gru(d, reset_after=True),
    "lstm": cells.para_lstm,
    "newton_lstm": cells.newton_lstm,
    "lem": lambda d: cells.lem(d, dt=0.7, min_step=0.5),
}
EVERY = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())


def instructions(text):
    """Instructions of LLVM in a source, comments, labels and declarations left out."""
    starts = (";", "define", "declare", "}", "@", "entry:")
    lines = (line.strip() for line in text.splitlines())
    return sum(1 for line in lines if line and not line.startswith(starts) and line[-1] != ":")


def widest_fused(cell):
    """Largest number of inputs whose projection is part of the kernel."""
    return min(WIDEST_FUSED, (MOST_FUSED - cell.p) // cell.m - 1)


def kernels_of(cell):
    """Kernels that layers and engines run for a cell, each with what it is called."""
    yield cell, "forward"
    yield cell, "backward"
    yield affine(cell.n), "forward"
    if is_rolled(cell):
        yield tangent_column(cell), "forward"
        return
    projected = with_projection(cell, widest_fused(cell), True)
    for derived, kinds in (
        (cell, ("backward_outputs", "backward_initial")),
        (projected, ("forward", "backward_outputs")),
        (tangent(cell), ("forward_final",)),
        (adjoint(cell), ("forward", "backward")),
        (adjoint(projected), ("forward", "backward")),
    ):
        for kind in kinds:
            yield derived, kind


@pytest.mark.few("rnn", "gru")
@EVERY
def test_code_is_bounded_for_blocks_of_all_sizes(form):
    for size in (1, 3, 4, 5, 8):
        for dtype in (torch.float32, torch.float64) if size == 4 else (torch.float64,):
            for cell, kind in kernels_of(form(size)):
                count = instructions(source(cell, dtype, (kind,)))
                assert count < MOST_INSTRUCTIONS, (cell.name, kind, dtype)


@EVERY
def test_code_of_rolled_blocks_and_of_full_matrices_does_not_grow(form):
    first, other = (source(form(d), torch.float32, ("backward",)) for d in (100, 200))
    assert first == other
    assert instructions(first) < MOST_INSTRUCTIONS
    # Both passes of full matrices are one source, whatever their size is.
    assert instructions(dense_ir(form(2).step.form, "float64")) < MOST_INSTRUCTIONS


def test_the_border_lies_where_it_is_said_to_lie():
    assert MOST_UNROLLED == cells.para_lstm(4).p == cells.para_rnn(8).p
    assert not is_rolled(cells.para_rnn(8))
    assert not is_rolled(cells.para_lstm(4))
    assert is_rolled(cells.para_gru(5))
