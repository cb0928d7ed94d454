"""The code in docstrings, in the README and in the guide runs and prints what is written there."""

import contextlib
import doctest
import importlib
import io
import pkgutil
import re
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import tsrnn

REPOSITORY = Path(__file__).parents[1]
PAGES = [
    "README.md",
    "docs/compare.md",
    "docs/getting_started.md",
    "docs/kernels.md",
    "docs/linear.md",
    "docs/networks.md",
    "docs/own_cell.md",
    "docs/regression.md",
]
NEEDS_NETWORK = {"load_ett"}
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
RELATIVE = 0.05  # of a printed number, for training on another machine


class Block(NamedTuple):
    """Code of a page and what it is said to print; None where nothing is said."""

    line: int
    code: str
    output: str | None


def blocks_of(text):
    """Python blocks, each with the text block that follows it if there is one."""
    fences = [(text[: m.start()].count("\n") + 2, m[1], m[2]) for m in FENCE.finditer(text)]
    after = [*fences[1:], (0, "", "")]
    return [
        Block(line, code, follower[2] if follower[1] == "text" else None)
        for (line, language, code), follower in zip(fences, after, strict=True)
        if language == "python"
    ]


def same(expected, printed):
    """Whether two texts agree: words exactly, numbers nearly, white space not at all."""
    pairs = expected.split(), printed.split()
    return len(pairs[0]) == len(pairs[1]) and all(map(_same_word, *pairs))


def _same_word(expected, printed):
    try:
        values = [float(word.strip("(),;:%")) for word in (expected, printed)]
    except ValueError:
        return expected == printed
    digits = len(expected.strip("(),;:%").partition(".")[2])
    unit = 10.0**-digits if "e" not in expected else 0.0
    return bool(np.isclose(values[1], values[0], rtol=RELATIVE, atol=1.5 * unit, equal_nan=True))


def run(page, namespace):
    """Run a page's blocks in order; return those whose output differs from what is written."""
    wrong = []
    for block in blocks_of(page.read_text(encoding="utf-8")):
        code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        if block.output is not None and not same(block.output, printed.getvalue()):
            wrong.append(f"line {block.line} prints\n{printed.getvalue()}")
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_prints_what_stands_there(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        wrong = run(REPOSITORY / page, {"__name__": "__main__"})
    assert not wrong, "\n".join(wrong)


def test_the_guide_has_code_with_output():
    blocks = blocks_of((REPOSITORY / "docs/getting_started.md").read_text(encoding="utf-8"))
    assert sum(block.output is not None for block in blocks) >= 10


def modules():
    """Every module of the package by name."""
    return sorted(found.name for found in pkgutil.walk_packages(tsrnn.__path__, "tsrnn."))


def examples():
    """Doctests of all docstrings of functions and classes defined in the package."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    rooms = [name for name in ("tsrnn.kernels", "tsrnn.datasets") if name not in modules()]
    inner = [
        found.name
        for room in rooms
        for found in pkgutil.walk_packages(importlib.import_module(room).__path__, f"{room}.")
    ]
    for name in ["tsrnn", *rooms, *modules(), *inner]:
        for test in finder.find(importlib.import_module(name), name):
            if test.examples:
                yield test


def cases():
    for test in examples():
        offline = test.name.rpartition(".")[2] in NEEDS_NETWORK
        marks = pytest.mark.skip(reason="downloads a file") if offline else ()
        yield pytest.param(test, id=test.name, marks=marks)


@pytest.mark.parametrize("test", list(cases()))
def test_the_examples_of_a_docstring(test):
    said = io.StringIO()
    failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.write)
    assert failed == 0, said.getvalue()


def test_all_public_docstrings_with_a_prompt_are_found():
    found = {test.name.rpartition(".")[2] for test in examples()}
    assert {"ParaRNNForecaster", "recurrence_features", "lag_curves", "load_vix"} <= found
    assert {"Cell", "recurrence"} <= found


@pytest.mark.parametrize(
    ("expected", "printed", "agree"),
    [
        ("a  1.00\n", "a 1.01", True),
        ("a 1.00", "a 1.20", False),
        ("a 1.00", "b 1.00", False),
        ("2015-06-01 105.8", "2015-06-01   105.9", True),
        ("2015-06-01", "2015-07-01", False),
        ("x nan", "x nan", True),
        ("a", "a b", False),
    ],
)
def test_outputs_are_compared_by_words_and_by_the_size_of_numbers(expected, printed, agree):
    assert same(expected, printed) is agree
