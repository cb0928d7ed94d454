"""The lowest versions that are tested are those that are declared; one version of the package."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNTESTED_BOUND = {"torch"}  # only one release comes as a CPU build
NOT_LOWERED = {"triton"}  # goes with the release of torch
BOUND = re.compile(r"([\w-]+)>=([\d.]+)")
PIN = re.compile(r"([\w-]+)==([\d.]+)")


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def bounds(project):
    """Lowest versions by name, of the package, its options and its tests."""
    extras = project["optional-dependencies"]
    options = [extra for extra in extras if extra not in {"docs", "lint", "release"}]
    listed = project["dependencies"] + [line for extra in options for line in extras[extra]]
    matches = [(line, BOUND.match(line)) for line in listed]
    assert all(match for _, match in matches), "every requirement has a lower bound"
    return {(match[1], match[2]) for _, match in matches if match}


def pins(name):
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return dict(PIN.fullmatch(line).groups() for line in lines if line and line[0] != "#")


def test_no_requirement_has_two_lower_bounds(project):
    found = bounds(project)
    assert len(found) == len({name for name, _ in found})


def test_the_lowest_environment_has_exactly_the_lower_bounds(project):
    lowest = pins("constraints-lowest.txt")
    expected = {n: v for n, v in bounds(project) if n not in UNTESTED_BOUND | NOT_LOWERED}
    assert {n: v for n, v in lowest.items() if n not in UNTESTED_BOUND} == expected


def test_both_environments_have_the_same_torch():
    assert pins("constraints.txt")["torch"] == pins("constraints-lowest.txt")["torch"]


def test_the_citation_is_of_this_version(project):
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {project['version']}\n" in cited


def test_classifiers_are_the_versions_of_python_that_are_allowed(project):
    assert project["requires-python"] == ">=3.11"
    said = [line.rpartition(" ")[2] for line in project["classifiers"] if ":: 3." in line]
    assert said == ["3.11", "3.12", "3.13", "3.14"]
