"""The wheel and the source distribution: what they hold, and that one gives the other."""

import shutil
import subprocess
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS_ELSEWHERE = ("kernels", "datasets")


def contents(wheel):
    """Bytes of the files of a wheel by name."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def members(sdist):
    """Names of the files of a source distribution, without its folder."""
    with tarfile.open(sdist) as archive:
        return {m.name.partition("/")[2] for m in archive.getmembers() if m.isfile()}


def modules():
    """Where every module of the tree lies in the wheel."""
    folders = {"tsrnn": "tsrnn"} | {room: f"tsrnn/{room}" for room in ROOMS_ELSEWHERE}
    return {
        f"{inside}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, inside in folders.items()
        for path in (ROOT / folder).rglob("*.py")
    }


def test_the_wheel_holds_the_package_and_nothing_else(built):
    held = {name for name in contents(built[1]) if ".dist-info/" not in name}
    folder = ROOT / "tsrnn" / "prior"
    networks = {f"tsrnn/prior/{path.name}" for path in folder.glob("*.safetensors")}
    assert sum(path.stat().st_size for path in folder.glob("*.safetensors")) < 2_000_000
    assert held == modules() | networks | {"tsrnn/py.typed", "tsrnn/datasets/catalogue.toml"}


def test_the_wheel_says_what_it_is(built):
    files = contents(built[1])
    info = {name.partition(".dist-info/")[2]: name for name in files if ".dist-info/" in name}
    assert set(info) >= {"METADATA", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    said = Parser().parsestr(files[info["METADATA"]].decode())
    assert (said["Name"], said["License-Expression"]) == ("tsrnn", "BSD-3-Clause")
    assert said.get_payload().startswith("# tsrnn")
    assert files[info["licenses/LICENSE"]] == (ROOT / "LICENSE").read_bytes()
    assert b"tsrnn = tsrnn.cli:main" in files[info["entry_points.txt"]]
    assert built[1].name.endswith("-py3-none-any.whl")


def test_the_source_distribution_gives_the_same_wheel(built, build, tmp_path):
    with tarfile.open(built[0]) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    assert contents(build("wheel", source, tmp_path)) == contents(built[1])


def test_the_source_distribution_holds_what_belongs_to_the_project(built):
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("git says which files belong to the project")
    listed = [git, "ls-files", "--cached", "--others", "--exclude-standard"]
    said = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    belong = {name for name in said.stdout.splitlines() if (ROOT / name).exists()}
    belong = {name for name in belong if not name.startswith(".")}
    made = {"PKG-INFO", "setup.cfg"}
    held = {name for name in members(built[0]) if not name.startswith("tsrnn.egg-info/")}
    assert held - made == belong
