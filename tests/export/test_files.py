"""Files give the forecasts of their forecaster to runtimes that know nothing of tsrnn."""

import contextlib
import io
import json
import os
import subprocess
import sys
import warnings
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tsrnn import LEMForecaster, LRUForecaster, NewtonForecaster, ParaRNNForecaster
from tsrnn.export import _torch, export_onnx, export_torch
from tsrnn.export._onnx import model_of
from tsrnn.export._program import Program
from tsrnn.export._torch import archive_of, metadata_of, traced

onnx = pytest.importorskip("onnx", reason="the extra onnx")
pytest.importorskip("onnxscript", reason="the extra onnx")
pytest.importorskip("onnxruntime", reason="the extra onnx")
# Tracing a forecaster takes half a minute; refusals and metadata have tests beside these.
pytestmark = pytest.mark.slow

COLUMNS = ("y", "known", "other")
LEVELS = [80, 95]
FORMATS = ("torch", "onnx")
# Runs a file without tsrnn, on the arrays of one file, and writes what comes out.
ALONE = """
import sys
sys.modules["tsrnn"] = None
import numpy as np
path, given, found = sys.argv[1:]
given = dict(np.load(given))
if path.endswith("pt2"):
    import torch
    module = torch.export.load(path).module()
    found_by_name = module(**{name: torch.tensor(value) for name, value in given.items()})
    out = {name: value.numpy() for name, value in found_by_name.items()}
else:
    import onnxruntime
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    out = dict(zip([o.name for o in session.get_outputs()], session.run(None, given)))
np.savez(found, **out)
assert not any(name.startswith("tsrnn.") for name in sys.modules)
"""


@pytest.fixture(scope="module")
def written(kit, tmp_path_factory):
    """A forecaster, its two files as functions, and what was said while they were written."""
    folder, said = tmp_path_factory.mktemp("files"), io.StringIO()
    # what is traced grows with the products that a step unrolls: two blocks of two are enough
    changes = {"known_ahead": "known", "hidden_size": 4}
    model = ParaRNNForecaster(**kit.SMALL | changes).fit(kit.panel([80, 60], exog=COLUMNS[1:]))
    traces = []

    def traced_once(program):
        traces.append(traces[0] if traces else traced(program))
        return traces[0]

    with (
        # tracing takes longer than all else: both files are of one trace
        mock.patch.object(_torch, "traced", traced_once),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        files = {
            "torch": export_torch(model, folder / "model.pt2", level=LEVELS),
            "onnx": export_onnx(model, str(folder / "model.onnx"), level=LEVELS),
        }
    return SimpleNamespace(
        model=model,
        files=files,
        run={
            "torch": kit.torch_program(files["torch"].path),
            "onnx": kit.onnx_program(files["onnx"].path),
        },
        said=said.getvalue() + "".join(str(warning.message) for warning in caught),
        names=sorted(os.listdir(folder)),
    )


@pytest.fixture(params=FORMATS)
def program(request, written):
    return written.run[request.param]


def test_nothing_is_said_and_nothing_else_written(written):
    assert not [line for line in written.said.splitlines() if "are guaranteed for" not in line]
    assert written.names == ["model.onnx", "model.pt2"]


def test_after_the_data_fitted_to(written, program, kit):
    model, memory = written.model, written.files["torch"].memory
    future = kit.future_of(kit.panel([80, 60]))
    given = {"rows": np.full((2, 1, 3), np.nan), "lengths": np.zeros(2, int), "memory": memory}
    found = program(**given, future=future.known.to_numpy().reshape(2, 6, 1))
    expected = model.predict(level=LEVELS, X_future=future)
    kit.assert_forecasts(found, kit.predicted(expected, "ParaRNN", LEVELS))
    assert written.files["onnx"].ids == ["s0", "s1"]
    np.testing.assert_array_equal(written.files["onnx"].memory, memory)


@settings(
    deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(lengths=st.lists(st.integers(2, 40), min_size=1, max_size=4), seed=st.integers(0, 99))
def test_of_new_series_of_any_number_and_lengths(written, kit, lengths, seed):
    new = kit.panel(lengths, seed=seed, exog=COLUMNS[1:], name="new")
    future = kit.future_of(new, seed=seed)
    rows, steps = kit.padded(new, COLUMNS)
    memory = np.zeros((len(lengths), written.files["torch"].memory.shape[1]))
    given = {"rows": rows, "lengths": steps, "memory": memory}
    given["future"] = future.known.to_numpy().reshape(-1, 6, 1)
    expected = written.model.predict(new, level=LEVELS, X_future=future)
    for name in FORMATS:
        found = written.run[name](**given)
        kit.assert_forecasts(found, kit.predicted(expected, "ParaRNN", LEVELS))


def test_row_by_row(written, program, kit):
    new = kit.panel([9, 9], seed=4, exog=COLUMNS[1:], name="new")
    rows, _ = kit.padded(new, COLUMNS)
    given = {"future": np.full((2, 6, 1), 5.0), "memory": written.files["torch"].memory}
    once = program(rows=rows, lengths=np.array([9, 9]), **given)
    for t in range(9):
        found = program(rows=rows[:, t : t + 1], lengths=np.array([1, 1]), **given)
        given["memory"] = found["memory_after"]
    np.testing.assert_allclose(found["forecast"], once["forecast"], rtol=1e-6)


@pytest.mark.few("onnx")
@pytest.mark.parametrize("name", FORMATS)
def test_in_a_process_without_tsrnn(written, kit, name, tmp_path):
    rows, lengths = kit.padded(kit.panel([30, 8], exog=COLUMNS[1:], seed=3), COLUMNS)
    given = {"rows": rows, "lengths": lengths, "future": np.full((2, 6, 1), 5.0)}
    given["memory"] = np.zeros_like(written.files[name].memory)
    np.savez(tmp_path / "given.npz", **given)
    path, folder = written.files[name].path, tmp_path
    command = [sys.executable, "-c", ALONE, path, folder / "given.npz", folder / "found.npz"]
    subprocess.run(command, check=True, timeout=120)
    with np.load(tmp_path / "found.npz") as found:
        here = written.run[name](**given)
        assert set(found) == {"forecast", "lower", "upper", "memory_after"} == set(here)
        for output, value in here.items():
            np.testing.assert_allclose(found[output], value, rtol=1e-12, atol=1e-12)


def test_files_say_what_they_are(written):
    files = written.files
    inside = {"tsrnn": ""}
    torch.export.load(files["torch"].path, extra_files=inside)
    loaded = onnx.load(files["onnx"].path)
    properties = {entry.key: entry.value for entry in loaded.metadata_props}
    assert json.loads(inside["tsrnn"]) == files["torch"].metadata
    assert json.loads(properties["tsrnn"]) == files["onnx"].metadata
    assert [opset.version for opset in loaded.opset_import if not opset.domain] == [18]
    expected = {
        "forecaster": "ParaRNNForecaster",
        "horizon": 6,
        "freq": "D",
        "targets": ["y"],
        "exogenous": ["known", "other"],
        "known_ahead": ["known"],
        "levels": [80.0, 95.0],
    }
    for file in files.values():
        assert expected.items() <= file.metadata.items()


def test_the_shapes_that_are_said_are_those_of_the_file(written):
    metadata = written.files["onnx"].metadata
    graph = onnx.load(written.files["onnx"].path).graph
    for said, there in ((metadata["inputs"], graph.input), (metadata["outputs"], graph.output)):
        sizes = {
            value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
            for value in there
        }
        assert sizes == said


@pytest.mark.parametrize("name", FORMATS)
def test_files_hold_no_path_of_this_machine(written, name):
    content = written.files[name].path.read_bytes()
    for path in (os.getcwd(), os.path.dirname(torch.__file__), sys.prefix):
        assert path.encode() not in content


@pytest.mark.parametrize(
    ("cls", "changes", "levels"),
    [
        # The operators of a GRU are among those of an LSTM.
        pytest.param(
            ParaRNNForecaster,
            {"cell": "lstm", "n_estimators": 2, "use_boxcox": 0.5, "local_level": False},
            [80],
            id="ensemble, root",
        ),
        pytest.param(LEMForecaster, {"hidden_size": 2, "n_layers": 2}, [], id="LEM, two layers"),
        pytest.param(
            LRUForecaster, {"use_boxcox": "log", "intervals": "quantile"}, [80], id="learned"
        ),
        # A program has its own loop over time, whatever engine the fit ran on.
        pytest.param(NewtonForecaster, {"engine": "reference"}, [80], id="Newton, loop"),
    ],
)
def test_of_every_kind(kit, cls, changes, levels):
    small = kit.SMALL | {"max_epochs": 1, "hidden_size": 4}
    model = cls(**small | changes).fit(kit.panel([80, 60]))
    program = Program(model.fitted_, [float(level) for level in levels])
    exported, metadata = traced(program), metadata_of(program)
    new = kit.panel([31, 4, 12], seed=2, name="new")
    rows, lengths = kit.padded(new, ["y"])
    memory = np.zeros((3, metadata["inputs"]["memory"][1]))
    expected = kit.predicted(model.predict(new, level=levels), model.column_name, levels)
    for run in (
        kit.torch_program(archive_of(exported, metadata)),
        kit.onnx_program(model_of(exported, metadata)),
    ):
        found = run(rows=rows, lengths=lengths, memory=memory)
        kit.assert_forecasts(found, expected)
