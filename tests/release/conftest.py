"""The distributions, and an environment into which the wheel is installed as a user would.

`TSRNN_DIST` names a folder with a wheel and a source distribution; without it they are built
from a copy of the tree.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

pytest.importorskip("setuptools", reason="setuptools builds the package")

ROOT = Path(__file__).parents[2]
NO_PART = (".*", "build", "dist", "*.egg-info", "__pycache__", "_build", "auto_examples")
NO_PART += ("generated", "output")
HOOK = "import sys; from setuptools import build_meta as b; print(b.build_{}(sys.argv[1]))"


def output_of(*command, cwd, env=None):
    """Return what a command prints."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def run():
    """Return a function that gives what a command prints."""
    return output_of


@pytest.fixture(scope="session")
def build():
    """Return a function that calls a hook of the build backend, as a front end does."""

    def hook(kind, source, folder):
        said = output_of(sys.executable, "-c", HOOK.format(kind), folder, cwd=source)
        return Path(folder) / said.split()[-1]

    return hook


@pytest.fixture(scope="session")
def built(build, tmp_path_factory):
    """Return the source distribution and the wheel."""
    if "TSRNN_DIST" in os.environ:
        folder = ROOT / os.environ["TSRNN_DIST"]
        (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
        return sdist, wheel
    source = tmp_path_factory.mktemp("source") / "tree"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*NO_PART))
    folder = tmp_path_factory.mktemp("dist")
    return build("sdist", source, folder), build("wheel", source, folder)


@pytest.fixture(scope="session")
def environment(built, tmp_path_factory):
    """Return a fresh environment with the wheel, and the folder of its packages.

    What the package needs is read from the environment of the tests. A path in a .pth file is
    one more folder to import from, whose own .pth files do not run: an editable tsrnn there
    stays out of sight.
    """
    folder = tmp_path_factory.mktemp("installed") / "environment"
    venv.create(folder, with_pip=False)
    scripts = "Scripts" if os.name == "nt" else "bin"
    python = folder / scripts / Path(sys.executable).name
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps")
    output_of(*pip, "--no-index", built[1], cwd=folder)
    own = output_of(
        python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder
    )
    needed = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}
    (Path(own.strip()) / "needed.pth").write_text("\n".join(sorted(needed)), encoding="utf-8")
    return python, Path(own.strip())


@pytest.fixture(scope="session")
def run_in(environment):
    """Return a function that runs the environment's Python in a folder."""

    def python(*arguments, cwd, env=None):
        return output_of(environment[0], *arguments, cwd=cwd, env=env)

    return python
