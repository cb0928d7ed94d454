"""What `recurrence` refuses, and how it says so."""

import pytest
import torch

from tsrnn.kernels import cells, recurrence

CELL = cells.para_rnn(2)
LEGAL = {
    "inputs": torch.zeros(3, 5, 2, 4),
    "params": torch.zeros(4, 4),
    "initial": torch.zeros(3, 2, 4),
}
WRONG = {
    "inputs rank": ({"inputs": torch.zeros(3, 5, 8)}, r"\(B, T, 2, K\).*got \(3, 5, 8\)"),
    "inputs fields": ({"inputs": torch.zeros(3, 5, 3, 4)}, r"got \(3, 5, 3, 4\)"),
    "no steps": ({"inputs": torch.zeros(3, 0, 2, 4)}, "T >= 1"),
    "no units": ({"inputs": torch.zeros(3, 5, 2, 0)}, "K >= 1"),
    "integers": (
        {k: v.long() for k, v in LEGAL.items()},
        r"inputs of cell 'para_rnn_tanh_2' must be floating.*got torch\.int64",
    ),
    "params shape": ({"params": torch.zeros(2, 2, 4)}, r"params.*\(4, 4\).*got \(2, 2, 4\)"),
    "params dtype": ({"params": torch.zeros(4, 4).double()}, r"params.*got torch\.float64 on cpu"),
    "params device": ({"params": torch.zeros(4, 4, device="meta")}, "params.*on meta"),
    "initial shape": ({"initial": torch.zeros(2, 4)}, r"initial.*\(3, 2, 4\).*got \(2, 4\)"),
    "initial dtype": ({"initial": torch.zeros(3, 2, 4).half()}, r"initial.*got torch\.float16"),
    "lengths shape": ({"lengths": [5, 5]}, r"must be 3 integers.*of shape \(2,\)"),
    "lengths scalar": ({"lengths": 5}, r"must be 3 integers.*of shape \(\)"),
    "lengths float": ({"lengths": [5.0, 1.0, 2.0]}, r"integers.*got torch\.float32"),
    "lengths bool": ({"lengths": [True, False, True]}, r"integers.*got torch\.bool"),
    "lengths complex": ({"lengths": torch.zeros(3, dtype=torch.cfloat)}, r"got torch\.complex64"),
    "engine": ({"engine": "fast"}, r"engine must be one of \('auto', 'reference'.*got 'fast'"),
    "scan": ({"engine": "scan"}, "linear in their state; cell 'para_rnn_tanh_2' is not.*shooting"),
    "numpy": ({"inputs": LEGAL["inputs"].numpy()}, "inputs must be a torch tensor; got a ndarray"),
    "list": ({"params": [0.5]}, "params must be a torch tensor; got a list"),
    "string": ({"initial": "zero"}, "initial must be a torch tensor; got a str"),
    "cell": ({"cell": "para_rnn"}, "cell must be a tsrnn.kernels.Cell; got 'para_rnn'"),
    "half": (
        {k: v.half() for k, v in LEGAL.items()} | {"engine": "sequential"},
        r"float32, float64 on the CPU.*got torch\.float16 on cpu.*engine='reference'",
    ),
    "meta": (
        {k: v.to("meta") for k, v in LEGAL.items()} | {"engine": "sequential"},
        r"got torch\.float32 on meta.*engine='reference'",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        recurrence(**({"cell": CELL} | LEGAL | arguments))


def test_a_cell_without_matrix_form_is_not_dense():
    with pytest.raises(ValueError, match="cells in matrix form.*cell 'lru' has none"):
        recurrence(cells.lru(), torch.zeros(1, 2, 2, 1), torch.zeros(2, 1), engine="dense")


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_shapes_on_the_meta_device(engine):
    states, final = recurrence(CELL, **{k: v.to("meta") for k, v in LEGAL.items()}, engine=engine)
    assert states.shape == (3, 5, 2, 4)
    assert final.shape == (3, 2, 4)


def test_no_sequences():
    for engine in ("auto", "reference"):
        states, final = recurrence(
            CELL, torch.zeros(0, 5, 2, 4), LEGAL["params"], lengths=[], engine=engine
        )
        assert states.shape == (0, 5, 2, 4)
        assert final.shape == (0, 2, 4)
