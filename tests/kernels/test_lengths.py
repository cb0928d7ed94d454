"""Lengths of sequences: checked once a call, and on a CUDA device without being read."""

import copy
import pickle

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from tsrnn.kernels import _autograd, _problem, as_lengths, cells, projected_recurrence, recurrence
from tsrnn.layers import CELLS, Ensemble, ParaRNN, RecurrentNetwork, layer_choice, make_layer

CPU = torch.device("cpu")
KINDS = {
    "list": list,
    "array": np.array,
    "array of int32": lambda values: np.array(values, np.int32),
    "tensor": torch.tensor,
    "tensor of int16": lambda values: torch.tensor(values, dtype=torch.int16),
}


def run_recurrence(lengths):
    recurrence(cells.para_rnn(2), torch.zeros(3, 5, 2, 4), torch.zeros(4, 4), lengths=lengths)


def run_reference(lengths):
    problem = torch.zeros(3, 5, 2, 4), torch.zeros(4, 4)
    recurrence(cells.para_rnn(2), *problem, lengths=lengths, engine="reference")


def run_projected(lengths):
    x, weight = torch.zeros(3, 5, 2), torch.zeros(8, 2)
    start = torch.zeros(3, 2, 4)
    projected_recurrence(cells.para_rnn(2), x, weight, None, torch.zeros(4, 4), start, lengths)


def run_layer(lengths):
    ParaRNN(2, 8)(torch.zeros(3, 5, 2), None, lengths)


def run_network(lengths):
    RecurrentNetwork(ParaRNN(16, 8), 1, input_size=2)(torch.zeros(3, 5, 2), None, lengths)


DOORS = [run_recurrence, run_reference, run_projected, run_layer, run_network]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_those_outside_of_the_steps_are_refused(kind, door):
    for wrong, message in (
        ([5, 6, 7], "between 0 and T=5; got 6 for sequence 1 and 1 more"),
        ([5, 5, -1], "between 0 and T=5; got -1 for sequence 2$"),
    ):
        with pytest.raises(ValueError, match=message):
            door(KINDS[kind](wrong))
    door(KINDS[kind]([5, 0, 1]))


def test_a_tensor_that_is_written_to_is_checked_again():
    lengths = torch.tensor([5, 0, 1])
    checked = as_lengths(lengths, 3, CPU, 5)
    assert as_lengths(checked, 3, CPU, 5) is checked
    lengths[1] = 6
    with pytest.raises(ValueError, match="got 6 for sequence 1"):
        run_layer(lengths)
    with pytest.raises(ValueError, match="between 0 and T=4; got 5 for sequence 0"):
        as_lengths(as_lengths([5, 0, 1], 3, CPU, 5), 3, CPU, 4)
    checked[2] = 9  # which the tensor that was given does not see
    assert lengths[2] == 1
    for again in (checked, copy.deepcopy(checked), pickle.loads(pickle.dumps(checked))):
        with pytest.raises(ValueError, match="got 9 for sequence 2"):
            run_layer(again)


def test_an_array_is_not_what_is_kept():
    lengths = np.array([5, 0, 1])
    checked = as_lengths(lengths, 3, CPU, 5)
    lengths[0] = 9
    assert checked[0] == 5


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8])
def test_narrow_integers_beside_many_steps(dtype):
    x, lengths = torch.zeros(3, 300, 2), torch.tensor([1, 2, 100], dtype=dtype)
    output, _ = ParaRNN(2, 4)(x, None, lengths)
    assert output.shape == (3, 300, 4)
    assert torch.equal(as_lengths(lengths, 3, CPU, 300), lengths.long())


@pytest.mark.parametrize("lengths", [[1, 2, 3], torch.tensor([1, 2, 3])], ids=["list", "tensor"])
def test_shapes_alone(lengths):
    layer = ParaRNN(2, 4)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        given = mode.from_tensor(lengths) if isinstance(lengths, torch.Tensor) else lengths
        output, _ = layer(torch.zeros(3, 5, 2), None, given)
    assert output.shape == (3, 5, 4)


def test_lengths_without_a_count_of_their_changes():
    with torch.inference_mode():
        checked = as_lengths([5, 0, 1], 3, CPU, 5)
        run_layer(checked)
        checked[0] = 9
        with pytest.raises(ValueError, match="got 9 for sequence 0"):
            run_layer(checked)


@pytest.mark.parametrize("kind", CELLS)
def test_a_call_checks_once(kind, monkeypatch):
    layer = make_layer(layer_choice(kind), 16, 8, 3)
    network = Ensemble([RecurrentNetwork(layer, 1, input_size=2)])
    checks = []
    for module in (_problem, _autograd):
        monkeypatch.setattr(module, "check_range", lambda *args: checks.append(args))
    network(torch.randn(3, 5, 2), None, [5, 0, 1])[0].sum().backward()
    assert len(checks) == 1


class Operators(TorchDispatchMode):
    """Names of what torch is asked to do."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(function.overloadpacket.__name__)
        return function(*args, **(kwargs or {}))


@pytest.fixture
def device():
    """Stand-in of a device, whose tensors have shapes and no values: to read one is an error."""
    with FakeTensorMode():
        yield torch.device("cuda", 0)


def test_a_stand_in_tells_what_reads_it(device):
    with pytest.raises(DataDependentOutputException):
        torch.zeros(1, device=device).item()


def test_lengths_of_a_device_are_not_read(device):
    lengths = torch.empty(3, dtype=torch.int32, device=device)
    with Operators() as operators:
        given = as_lengths(lengths, 3, device, 5)
        assert as_lengths(given, 3, device, 5) is given
    assert operators.names.count("_assert_async") == 1
    assert given.dtype == torch.int64


def test_lengths_of_the_host_are_checked_there(device, monkeypatch):
    copies = []
    to = torch.Tensor.to

    def noted(self, *args, **kwargs):
        copies.append((self.device.type, kwargs.get("non_blocking", False)))
        return to(self, *args, **kwargs)

    monkeypatch.setattr(torch.Tensor, "to", noted)
    monkeypatch.setattr(_problem, "check_range", lambda lengths, steps: copies.append(lengths))
    given = as_lengths(torch.empty(3, dtype=torch.int64), 3, device, 5)
    _, checked, moved = copies
    assert checked.device.type == "cpu"
    assert moved == ("cpu", True)
    assert given.device == device
