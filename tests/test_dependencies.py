"""What the package declares to need is what it imports."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
IMPORTED_AS = {"scikit-learn": "sklearn"}
# What examples import beside the dependencies; each says at its top how to install it.
OPTIONAL = {"10_mlflow.py": {"mlflow"}, "_mlflow_model.py": {"mlflow"}}


def names(requirements):
    found = {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}
    return {IMPORTED_AS.get(name, name) for name in found}


def imported(folders):
    return imported_by(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def imported_by(paths):
    found = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"tsrnn"}


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.slow
def test_of_the_package(project):
    extras = project["optional-dependencies"]
    optional = names(extras["gpu"]) | names(extras["polars"])
    optional |= names(extras["hierarchy"]) | names(extras["holidays"])
    optional |= names(extras["calendars"])
    optional |= names(extras["sktime"]) | names(extras["optuna"]) | names(extras["onnx"])
    assert imported(["tsrnn", "kernels", "datasets"]) == names(project["dependencies"]) | optional


def test_optional_ones_have_one_door():
    text = "import triton"
    doors = [path for path in (ROOT / "kernels").rglob("*.py") if text in path.read_text()]
    assert {path.parent.name for path in doors} == {"_gpu"}


def test_of_the_examples(project):
    paths = list((ROOT / "examples").glob("*.py"))
    own, needed = {path.stem for path in paths}, names(project["dependencies"])
    assert {path.name for path in paths} >= set(OPTIONAL)
    for path in paths:
        more = imported_by([path]) - own - needed
        assert more == OPTIONAL.get(path.name, set()), path.name
