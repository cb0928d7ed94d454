"""Machine code on disk: kept, found again, replaced where damaged."""

import contextlib
import io
import multiprocessing
import os
import tempfile

import platformdirs
import pytest
import torch

from tsrnn.kernels import Cell, cells, prepare, recurrence
from tsrnn.kernels._cpu import compiler, time_order

# Processes of the system's quickest kind: a new interpreter imports torch for seconds.
PROCESSES = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
RESULT = [float(torch.tanh(torch.tensor(1.0)))] * 3


def prepare_and_run(folder, connection):
    """Send how often a process compiled, what it printed and what it computed."""
    os.environ["TSRNN_CACHE_DIR"] = folder
    compiler._engines.clear()
    time_order.kernel_of.cache_clear()
    compiled, compile_ = [], compiler._compile
    compiler._compile = lambda path, source: compiled.append(path) or compile_(path, source)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        prepare(cells.para_rnn(1), torch.float32, verbose=True)
    states, _ = recurrence(cells.para_rnn(1), torch.ones(1, 2, 1, 3), torch.ones(1, 3))
    connection.send((len(compiled), printed.getvalue(), states[0, 0, 0].tolist()))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache of this test's own."""
    monkeypatch.setenv("TSRNN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(compiler, "_engines", {})
    return tmp_path / "cache" / "kernels"


def new_cell():
    """Make a cell that this process has not compiled yet: no two lambdas are equal."""
    return Cell("kept", 1, 1, 1, lambda h, u, w: (torch.tanh(w[0] * h[0] + u[0]),))


def run_new_cell():
    states, _ = recurrence(new_cell(), torch.ones(1, 1, 1, 3), torch.ones(1, 3))
    torch.testing.assert_close(states, torch.tanh(torch.ones(1, 1, 1, 3)))


def start():
    receiver, sender = PROCESSES.Pipe(duplex=False)
    given = (os.environ["TSRNN_CACHE_DIR"], sender)
    process = PROCESSES.Process(target=prepare_and_run, args=given)
    process.start()
    sender.close()  # so that one that dies is noticed
    return process, receiver


def report(process, receiver):
    assert receiver.poll(120)
    result = receiver.recv()
    process.join(120)
    assert process.exitcode == 0
    return result


def contents(folder):
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}


def test_processes_share_what_one_has_compiled(folder):
    both = [start(), start()]  # at once, in an empty folder
    for _, _, result in [report(*process) for process in both]:
        assert result == RESULT
    kept = contents(folder)
    assert [name.rpartition(".")[2] for name in kept] == ["o", "o"]  # forward and backward
    assert report(*start()) == (0, "", RESULT)  # a third one neither compiles nor speaks
    assert contents(folder) == kept


@pytest.mark.parametrize(
    "damage",
    [
        lambda code: b"",
        lambda code: code[:20],
        lambda code: code[: len(code) // 2],
        lambda code: code[:100] + bytes([code[100] ^ 1]) + code[101:],
        lambda code: code + b"more",
    ],
    ids=["empty", "short", "truncated", "one bit", "longer"],
)
def test_a_damaged_file_is_compiled_again(damage, folder, monkeypatch):
    run_new_cell()
    (path,) = folder.iterdir()
    good = path.read_bytes()
    path.write_bytes(damage(good))
    monkeypatch.setattr(compiler, "_engines", {})
    run_new_cell()
    assert path.read_bytes() == good


def test_prepare_speaks_once(folder, capsys):
    cell = new_cell()
    prepare(cell, torch.float64, verbose=True)
    output = capsys.readouterr().out
    assert "Compiling the recurrence kept (torch.float64) once" in output
    assert "Compiled in" in output
    prepare(cell, torch.float64, verbose=True)
    prepare(new_cell(), torch.float64, verbose=True)
    assert not capsys.readouterr().out


def test_prepare_is_quiet_by_default(folder, capsys):
    prepare(new_cell(), torch.float32)
    assert len(list(folder.iterdir())) == 2  # forward and backward
    assert not capsys.readouterr().out


@pytest.mark.parametrize("dtype", [torch.float16, torch.int64, "float32"])
def test_prepare_refuses_other_dtypes(dtype):
    with pytest.raises(ValueError, match=r"must be torch\.float32 or torch\.float64; got"):
        prepare(cells.para_rnn(1), dtype)


def test_formats_and_cells_have_files_of_their_own(folder):
    cell = new_cell()
    prepare(cell, torch.float32)
    prepare(cell, torch.float64)
    prepare(Cell("kept", 1, 1, 1, lambda h, u, w: (w[0] * h[0] + u[0],)), torch.float32)
    assert len(list(folder.iterdir())) == 6  # forward and backward


def test_a_folder_that_cannot_be_made_gives_way_to_a_temporary_one(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.touch()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TSRNN_CACHE_DIR", str(file / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(compiler, "_engines", {})
    path = compiler.cache_dir()
    assert path.parent.parent == temporary
    assert path.parent.stat().st_mode & 0o077 == 0 or os.name == "nt"
    run_new_cell()
    assert len(list(path.iterdir())) == 1


@pytest.mark.parametrize("variable", ["", "~/cache"], ids=["user's folder", "variable"])
def test_without_a_home_no_folder_is_named_after_it(variable, tmp_path, monkeypatch):
    monkeypatch.setenv("TSRNN_CACHE_DIR", variable)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # neither HOME nor a user
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda name: f"~/.cache/{name}")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert compiler.cache_dir().is_absolute()
    assert not (tmp_path / "~").exists()


def test_the_folder_may_begin_with_a_tilde(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("TSRNN_CACHE_DIR", os.path.join("~", "cache"))
    assert compiler.cache_dir() == tmp_path / "cache" / "kernels"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="the system has no owners of files")
def test_machine_code_is_not_taken_from_a_folder_that_others_may_write(tmp_path, monkeypatch):
    monkeypatch.setenv("TSRNN_CACHE_DIR", os.devnull)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    compiler.cache_dir().parent.chmod(0o777)
    with pytest.raises(OSError, match="Set the environment variable TSRNN_CACHE_DIR"):
        compiler.cache_dir()


@pytest.mark.parametrize("place", ["replace", "fdopen"])
@pytest.mark.parametrize(
    "error", [OSError("no space left on device"), PermissionError("the file is open")], ids=repr
)
def test_a_failed_write_leaves_nothing_behind(folder, monkeypatch, place, error):
    def refuse(first, *_):
        if isinstance(first, int):
            os.close(first)
        raise error

    monkeypatch.setattr(compiler.os, place, refuse)
    run_new_cell()
    assert not list(folder.iterdir())


def test_no_temporary_file_can_be_made(folder, monkeypatch):
    def refuse(**_):
        raise OSError("read-only file system")

    monkeypatch.setattr(compiler.tempfile, "mkstemp", refuse)
    run_new_cell()
    assert not list(folder.iterdir())


def test_an_interrupted_write_leaves_nothing_behind(folder, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(compiler.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_new_cell()
    assert not list(folder.iterdir())


def test_what_cannot_be_read_is_compiled_in_memory(folder, monkeypatch):
    run_new_cell()
    (path,) = folder.iterdir()
    path.unlink()
    path.mkdir()  # neither readable as a file nor to be replaced by one
    monkeypatch.setattr(compiler, "_engines", {})
    assert not compiler.is_kept(path)
    run_new_cell()
    assert [entry.is_dir() for entry in folder.iterdir()] == [True]
