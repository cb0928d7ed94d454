"""Every door that writes a file a user names: links, pipes, permissions, what was left behind."""

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tsrnn import ParaRNNForecaster, ParaRNNRegressor, backtest, compare, report
from tsrnn.baselines import Drift, Naive
from tsrnn.batch import forecast_batches
from tsrnn.cli import app
from tsrnn.contract import file_place, inside, put_file, remove_unfinished, write_file

try:
    import fcntl
except ImportError:
    fcntl = None

pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
modes = pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
locks = pytest.mark.skipif(fcntl is None, reason="no locks of files on this system")
UNFINISHED = "0123456789abcdef" * 2


@pytest.fixture(scope="session")
def sales(tmp_path_factory):
    """Return a CSV file of two series."""
    path = tmp_path_factory.mktemp("data") / "sales.csv"
    draw, days = np.random.default_rng(0), pd.date_range("2024-01-01", periods=40)
    parts = [pd.DataFrame({"unique_id": i, "ds": days, "y": draw.normal(size=40)}) for i in "ab"]
    for part in parts:  # autoregressive, so that a network has something to learn
        part["y"] = part["y"].ewm(alpha=0.3).mean()
    pd.concat(parts).to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def frame(sales):
    return pd.read_csv(sales, parse_dates=["ds"])


@pytest.fixture(scope="session")
def network(frame):
    small = {"input_size": 4, "hidden_size": 4, "n_layers": 1, "max_epochs": 5, "refit": False}
    # nothing but the network forecasts, so that there are features to read
    alone = {"linear_path": False, "local_level": False, "learning_rate": 0.03}
    model = ParaRNNForecaster(2, **small, **alone, random_state=0).fit(frame)
    assert model.network_active_
    return model


@pytest.fixture(scope="session")
def doors(sales, frame, network, tmp_path_factory):
    """Return functions of a path, by name, that write a file there."""
    draw = np.random.default_rng(1)
    regressor = ParaRNNRegressor(hidden_size=2, max_epochs=1, random_state=0)
    regressor.fit(draw.normal(size=(12, 3, 1)), draw.normal(size=12))
    models = {"naive": Naive(), "drift": Drift()}
    result = compare(backtest(models, frame, h=2, n_windows=3))
    saved = tmp_path_factory.mktemp("model") / "model.tsrnn"
    network.save(saved)

    def command(text):
        def run(path):
            listed = [str(path) if word == "PATH" else word for word in text.split()]
            done = CliRunner().invoke(app, listed, catch_exceptions=False)
            if done.exit_code:
                raise OSError(done.stderr)

        return run

    def program(path):
        """Be `export_torch` and `export_onnx` but for what is slow: the program itself."""
        from tsrnn.export import _torch

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_torch, "traced", lambda program: None)
            patch.setattr(_torch, "verify", lambda *_: None)
            _torch.write_program(network, path, None, {}, lambda *_: b"program", lambda _: None)

    forecast = f"forecast {sales} --model naive --h 2"
    return {
        "write_file": lambda path: write_file(path, {}, {"a": np.ones(3)}),
        "put_file": lambda path: put_file(path, lambda place: place.write_text("x")),
        "Forecaster.save": Naive().fit(frame).save,
        "ParaRNNRegressor.save": regressor.save,
        "report": lambda path: report(result, path),
        "backtest": lambda path: backtest(models, frame, h=2, n_windows=3, path=path),
        "export": program,
        "forecast --out csv": command(f"{forecast} --out PATH"),
        "forecast --out parquet": command(f"{forecast} --out PATH"),
        "forecast --save": command(f"{forecast} --save PATH"),
        "compare --report": command(f"compare {sales} --model naive,drift --h 2 --report PATH"),
        "compare --out": command(f"compare {sales} --model naive,drift --h 2 --out PATH"),
        "features --out": command(f"features {saved} --out PATH"),
    }


SUFFIXES = {
    "report": ".html", "compare --report": ".html", "backtest": ".parquet",
    "forecast --out parquet": ".parquet", "forecast --out csv": ".csv", "compare --out": ".csv",
    "features --out": ".csv",
}  # fmt: skip
NAMES = (
    "write_file", "put_file", "Forecaster.save", "ParaRNNRegressor.save", "report", "backtest",
    "export", "forecast --out csv", "forecast --out parquet", "forecast --save",
    "compare --report", "compare --out", "features --out",
)  # fmt: skip


@pytest.fixture(params=NAMES)
def door(request, doors):
    """Return one door."""
    if request.param in ("backtest", "forecast --out parquet"):
        pytest.importorskip("polars", reason="parquet is written by polars")
    return doors[request.param]


@pytest.fixture
def name(request):
    """Return the name of a file that the door writes."""
    return "file" + SUFFIXES.get(request.node.callspec.params["door"], ".bin")


def test_the_table_has_every_door(doors):
    assert set(doors) == set(NAMES)


@pytest.mark.few(
    "write_file", "put_file", "Forecaster.save", "ParaRNNRegressor.save", "backtest", "export",
    "forecast --out csv", "forecast --out parquet", "forecast --save", "features --out",
)  # fmt: skip
@modes
def test_files_are_written_in_one_step_and_where_a_link_leads(door, name, tmp_path):
    """A new file has the umask's mode; a link stays a link; a killed save's rest goes."""
    (tmp_path / "other").mkdir()
    target, link = tmp_path / "other" / name, tmp_path / name
    link.symlink_to(target)
    rest = target.with_name(f".{name}.{UNFINISHED}.tmp")
    rest.write_text("half")
    before = os.umask(0o027)
    try:
        door(link)
    finally:
        os.umask(before)
    assert link.is_symlink()
    assert target.stat().st_size
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert list(target.parent.iterdir()) == [target]
    assert sorted(tmp_path.iterdir()) == sorted([target.parent, link])


@pytest.mark.few(
    "write_file", "put_file", "Forecaster.save", "backtest", "forecast --out csv", "compare --out"
)
@modes
def test_a_file_that_is_replaced_keeps_its_permissions(door, name, tmp_path, request):
    path = tmp_path / name
    if request.node.callspec.params["door"] == "backtest":  # which goes on with a file of its own
        door(path)
    else:
        path.write_text("old")
    content = path.read_bytes()
    path.chmod(0o604)
    door(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert path.read_bytes() != b"old"
    assert content
    assert os.listdir(tmp_path) == [name]


@pipes
def test_pipes_are_refused(door, name, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / name).symlink_to("pipe")
    with pytest.raises(OSError, match="is a named pipe, which a file would replace"):
        door(tmp_path / name)
    assert stat.S_ISFIFO((tmp_path / name).stat().st_mode)


def test_folders_and_circles_of_links_are_refused(door, name, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / name).mkdir()
    with pytest.raises(OSError, match="is a folder; name a file in it"):
        door(tmp_path / "sub" / name)
    (tmp_path / name).symlink_to(name)
    with pytest.raises(OSError, match="Name another file"):
        door(tmp_path / name)
    assert (tmp_path / name).is_symlink()


@pytest.mark.skipif(not hasattr(os, "mknod"), reason="no devices that a test can make")
def test_devices_are_refused(door, name, tmp_path):
    try:
        os.mknod(tmp_path / name, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("devices are made by the superuser")
    with pytest.raises(OSError, match="is a device, which a file would replace"):
        door(tmp_path / name)
    assert stat.S_ISCHR((tmp_path / name).stat().st_mode)


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no sockets in folders")
def test_sockets_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("place")
        with pytest.raises(OSError, match="place is a socket"):
            put_file(Path("place"), Path.touch)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write it")
def test_a_file_that_may_not_be_written_to_is_not_replaced(tmp_path):
    (tmp_path / "kept").write_text("old")
    (tmp_path / "kept").chmod(0o444)
    with pytest.raises(PermissionError, match="may not be written to"):
        put_file(tmp_path / "kept", Path.touch)
    assert (tmp_path / "kept").read_text() == "old"


def test_a_link_to_no_folder_is_refused_by_that_folder(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "none" / "file")
    with pytest.raises(FileNotFoundError, match="the folder .*none does not exist; make it first"):
        file_place(tmp_path / "link")


WRITER = """
import os, signal, sys
from pathlib import Path
from tsrnn.contract import put_file

def write(place):
    place.write_text("half")
    print("writing", flush=True)
    if sys.stdin.readline() == "die\\n":
        os.kill(os.getpid(), signal.SIGKILL)

put_file(Path(sys.argv[1]), write)
"""


@pytest.mark.slow
@locks
def test_unfinished_files_go_when_their_writer_is_dead(tmp_path):
    path = tmp_path / "model"
    command = [sys.executable, "-c", WRITER, str(path)]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as killed,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as alive,
    ):
        for child in (killed, alive):
            assert child.stdout.readline() == "writing\n"
        assert len(os.listdir(tmp_path)) == 2
        killed.communicate("die\n")
        put_file(path, lambda place: place.write_text("whole"))
        assert len(os.listdir(tmp_path)) == 2  # the file, and that of the writer who is alive
        alive.communicate("go on\n")
        assert alive.returncode == 0
    assert path.read_text() == "half"
    assert os.listdir(tmp_path) == ["model"]


def test_files_of_others_stay(tmp_path):
    (tmp_path / "sub").mkdir()
    others = [
        ".model.tmp",
        f".other.{UNFINISHED}.tmp",
        f".model.{UNFINISHED[:-1]}.tmp",
        "model.tmp",
    ]
    for name in others:
        (tmp_path / name).touch()
    (tmp_path / f".model.{UNFINISHED}.tmp").symlink_to("sub")
    remove_unfinished(tmp_path, "model")
    assert len(os.listdir(tmp_path)) == len(others) + 2


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_what_breaks_off_leaves_the_file_that_was_there(tmp_path, error):
    path = tmp_path / "file"
    path.write_text("old")

    def broken(place):
        place.write_text("ne")
        raise error

    with pytest.raises(type(error)):
        put_file(path, broken)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("windows", [False, True])
def test_systems_without_locks_and_owners(tmp_path, monkeypatch, windows):
    """Files that are old have no writer; younger ones may have one."""
    monkeypatch.setattr("tsrnn.contract._atomic.fcntl", None)
    if windows:
        for name in ("chown", "mkfifo", "O_NOFOLLOW", "O_NONBLOCK"):
            monkeypatch.delattr(os, name, raising=False)
    young, old = (tmp_path / f".file.{digit * 32}.tmp" for digit in "ab")
    young.touch()
    old.touch()
    os.utime(old, (0, 0))
    put_file(tmp_path / "file", lambda place: place.write_text("whole"))
    put_file(tmp_path / "file", lambda place: place.write_text("whole"))
    assert sorted(os.listdir(tmp_path)) == [young.name, "file"]


class TestFilesThatAreRead:
    """A command writes over none of the files that it reads, however they are named."""

    @pytest.fixture
    def folder(self, sales, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "sub").mkdir()
        (tmp_path / "data.csv").write_bytes(sales.read_bytes())
        os.link("data.csv", "hard.csv")
        Path("soft.csv").symlink_to("data.csv")
        Path("page.html").symlink_to("data.csv")
        Naive().fit(pd.read_csv("data.csv", parse_dates=["ds"])).save("model.csv")
        return tmp_path

    @pytest.mark.parametrize(
        "command",
        [
            *(
                f"{command} {name}"
                for name in ("data.csv", "sub/../data.csv", "hard.csv", "soft.csv")
                for command in (
                    "forecast data.csv --model naive --h 1 --out",
                    "forecast data.csv --model naive --h 1 --save",
                    "forecast other.csv --model naive --h 1 --future data.csv --out",
                    "compare data.csv --model naive --h 1 --out",
                )
            ),
            "forecast other.csv --model naive --h 1 --save new.csv --out new.csv",
            "forecast data.csv --load model.csv --h 1 --out model.csv",
            "features model.csv --out model.csv",
            "compare data.csv --model naive --h 1 --report page.html",
        ],
    )
    def test_are_not_written_over(self, folder, command):
        words = command.split()
        before = {path.name: path.read_bytes() for path in folder.glob("*.*")}
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 1
        assert "a file that is read must not be written over" in done.stderr
        assert {path.name: path.read_bytes() for path in folder.glob("*.*")} == before

    def test_are_not_in_the_folder_of_a_batch(self, folder):
        pytest.importorskip("polars", reason="batches are written by polars")
        first = forecast_batches("data.csv", Naive(), h=1, out="run")
        table = sorted((first.path / "forecasts").iterdir())
        content = table[0].read_bytes()
        (folder / "link.parquet").symlink_to(table[0])
        renamed = Naive(target="Naive")
        for source in (table[0], folder / "run" / "forecasts", "link.parquet"):
            with pytest.raises(ValueError, match="out must not hold the files that are read"):
                forecast_batches(source, renamed, h=1, out="run", overwrite=True)
        assert table[0].read_bytes() == content
        assert inside("link.parquet", "run")
        with pytest.raises(NotADirectoryError, match=r"out must be a folder"):
            forecast_batches("data.csv", Naive(), h=1, out="hard.csv")
