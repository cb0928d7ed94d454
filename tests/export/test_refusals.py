"""What cannot be exported is said before anything is written."""

import sys
from functools import cache

import pytest
from sklearn.exceptions import NotFittedError

from tsrnn import ARMA, ParaRNNForecaster
from tsrnn.baselines import Naive
from tsrnn.export import _torch, export_onnx, export_torch
from tsrnn.export._program import Program
from tsrnn.export._verify import verify

BOTH = pytest.mark.parametrize("export", [export_torch, export_onnx])


@pytest.fixture(scope="module")
def fitted(kit):
    @cache
    def fit(**changes):
        return ParaRNNForecaster(**kit.SMALL | {"max_epochs": 1} | changes).fit(kit.panel([60, 60]))

    return fit


# What is exported (a forecaster, or changes of a small one), level, error, message.
REFUSED = {
    "classical": (ARMA(), None, TypeError, r"got ARMA. to_rnn\(\) gives it as a module of torch"),
    "baseline": (Naive(), None, TypeError, "got Naive. Keep it by save and tsrnn.load"),
    "before fit": (ParaRNNForecaster(), None, NotFittedError, "not fitted yet"),
    "attention": ({"cell": "attention"}, None, ValueError, "cell='attention' cannot be exported"),
    "by series": (
        {"per_series": True},
        None,
        ValueError,
        r"Export that of one series, model.for_series\(id\)",
    ),
    "student-t": (
        {"intervals": "student-t"},
        80,
        ValueError,
        "Leave level out, or fit with intervals='quantile'",
    ),
    "share": ({}, 0.8, ValueError, "level is in percent"),
}


@BOTH
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_exported(export, case, fitted, tmp_path):
    model, level, error, message = REFUSED[case]
    model = fitted(**model) if isinstance(model, dict) else model
    with pytest.raises(error, match=message):
        export(model, tmp_path / "x", level=level)
    assert not list(tmp_path.iterdir())


@BOTH
def test_of_places_that_are_no_file(export, fitted, tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist; make it first"):
        export(fitted(), tmp_path / "nowhere" / "x")
    with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
        export(fitted(), tmp_path)


@pytest.mark.parametrize("missing", ["onnx", "onnxscript", "onnxruntime"])
def test_onnx_says_which_extra_is_missing(missing, fitted, tmp_path, monkeypatch):
    model = fitted()
    for name in ("onnx", "onnxscript", "onnxruntime"):
        monkeypatch.setitem(sys.modules, name, None if name == missing else pytest)
    with pytest.raises(ImportError, match=rf"{missing}.* pip install tsrnn\[onnx\]"):
        export_onnx(model, tmp_path / "x")


@pytest.mark.parametrize("output", ["forecast", "lower", "upper"])
def test_a_program_that_forecasts_something_else_is_an_error(output, fitted, kit, plain_scan):
    model = fitted()
    program = Program(model.fitted_, [80.0])
    right = kit.of_arrays(program)

    def wrong(given):
        found = right(**given)
        found[output][1, 2] += 0.02
        return found

    verify(lambda given: right(**given), program, model.state_)
    with pytest.raises(RuntimeError, match=r"after the data fitted to .*'s1', step 3, "):
        verify(wrong, program, model.state_)


def test_a_failed_export_leaves_the_file_as_it_was(fitted, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("differs")

    for name in ("traced", "archive_of", "_runner"):
        monkeypatch.setattr(_torch, name, lambda *_: None)
    monkeypatch.setattr(_torch, "verify", fail)
    path = tmp_path / "model.pt2"
    path.write_bytes(b"before")
    with pytest.raises(RuntimeError, match="differs"):
        export_torch(fitted(), path)
    assert [file.name for file in tmp_path.iterdir()] == ["model.pt2"]
    assert path.read_bytes() == b"before"
