"""A whole life of models opens no connection and writes nothing but the cache of kernels."""

import os
import subprocess
import sys

import pytest

LIFE = """
import socket

def refuse(*arguments, **options):
    raise AssertionError(f"a connection to {arguments!r}")

socket.getaddrinfo = socket.create_connection = socket.gethostbyname = refuse
socket.socket.connect = socket.socket.connect_ex = socket.socket.sendto = refuse

import tsrnn
from tsrnn import ARMA, ParaRNNForecaster, backtest, compare, datasets, report
from tsrnn.baselines import SARIMAX

for name in tsrnn.__all__:
    getattr(tsrnn, name)

series = datasets.load_macrodata()["infl"]
models = {
    "ARMA": ARMA(order=(1, 1)),
    "ParaRNN": ParaRNNForecaster(hidden_size=4, horizon=4, max_epochs=2, random_state=0),
    "SARIMAX": SARIMAX(order=(1, 0, 0)),
}
windows = backtest(models, series, h=4, n_windows=3, refit=False, level=80)
report(compare(windows), "report.html")
models["ParaRNN"].fit(series).save("model")
tsrnn.load("model").predict(4, level=[80])
"""


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """Run the life in a process with an empty home; return what lies in its folders then."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("home", "work", "kernels", "plots")}
    home = dict.fromkeys(("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"), folders["home"])
    own = {"TSRNN_CACHE_DIR": folders["kernels"], "MPLCONFIGDIR": folders["plots"]}
    env = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    env |= {name: str(folder) for name, folder in (home | own).items()}
    done = subprocess.run(
        [sys.executable, "-c", LIFE],
        cwd=folders["work"],
        env=env | {"MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return {name: {path.name for path in folder.rglob("*")} for name, folder in folders.items()}


@pytest.mark.slow
def test_only_what_was_asked_for_is_written(left):
    assert left["home"] == set()
    assert left["work"] == {"model", "report.html"}


def test_kernels_are_kept_in_the_folder_that_is_named(left):
    compiled = {name for name in left["kernels"] if name.endswith(".o")}
    assert any(name.startswith("para_rnn") for name in compiled)
    assert left["kernels"] - compiled == {"kernels"}
