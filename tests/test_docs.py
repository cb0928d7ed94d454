"""The code in docstrings, in the README and in the guide runs and prints what is written there."""

import contextlib
import doctest
import importlib
import inspect
import io
import pkgutil
import re
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

REPOSITORY = Path(__file__).parents[1]
PAGES = [
    "README.md",
    "docs/adapters.md",
    "docs/batch.md",
    "docs/classical_ets.md",
    "docs/classical_ces.md",
    "docs/classical_theta.md",
    "docs/classical_intermittent.md",
    "docs/classical_combination.md",
    "docs/classical_auto_arima.md",
    "docs/classical_sarima.md",
    "docs/command_line.md",
    "docs/columns.md",
    "docs/compare.md",
    "docs/extending.md",
    "docs/getting_started.md",
    "docs/hierarchies.md",
    "docs/howto/calendar.md",
    "docs/howto/convergence.md",
    "docs/howto/data.md",
    "docs/howto/export.md",
    "docs/howto/frames.md",
    "docs/howto/gpu.md",
    "docs/howto/intervals.md",
    "docs/howto/messages.md",
    "docs/howto/missing.md",
    "docs/howto/outliers.md",
    "docs/howto/paper_data.md",
    "docs/howto/unit_roots.md",
    "docs/howto/pipelines.md",
    "docs/howto/reproducibility.md",
    "docs/howto/saving.md",
    "docs/howto/speed.md",
    "docs/howto/stream.md",
    "docs/howto/support.md",
    "docs/index.md",
    "docs/kernels.md",
    "docs/inference.md",
    "docs/linear.md",
    "docs/linearity.md",
    "docs/migration.md",
    "docs/networks.md",
    "docs/own_cell.md",
    "docs/prior.md",
    "docs/prior_network.md",
    "docs/stacking.md",
    "docs/regression.md",
    "docs/theory/comparison.md",
    "docs/which_model.md",
    "docs/theory/conformal.md",
    "docs/theory/erm_bounds.md",
    "docs/theory/jordan.md",
    "docs/theory/lem.md",
    "docs/theory/likelihood.md",
    "docs/theory/linear_models.md",
    "docs/theory/lru.md",
    "docs/theory/lyapunov.md",
    "docs/theory/newton.md",
    "docs/theory/para_rnn.md",
    "docs/tutorials/arma_garch.md",
    "docs/tutorials/exogenous.md",
    "docs/tutorials/features.md",
    "docs/tutorials/panel.md",
    "docs/tutorials/whole_forecast.md",
]
# Pages that train networks or compare many models: more than three seconds each.
LONG_PAGES = {
    "docs/adapters.md",
    "docs/batch.md",
    "docs/classical_combination.md",
    "docs/classical_sarima.md",
    "docs/columns.md",
    "docs/compare.md",
    "docs/howto/calendar.md",
    "docs/howto/export.md",
    "docs/howto/missing.md",
    "docs/howto/paper_data.md",
    "docs/inference.md",
    "docs/linearity.md",
    "docs/networks.md",
    "docs/prior.md",
    "docs/prior_network.md",
    "docs/regression.md",
    "docs/stacking.md",
    "docs/tutorials/exogenous.md",
    "docs/tutorials/whole_forecast.md",
}
API = "docs/api/index.md"
NEEDS_NETWORK = {"load_ett"}
# Names whose examples train several networks.
LONG_EXAMPLES = {
    "export_torch",
    "forecast_features",
    "FittedStacked",
    "StackedState",
    "objective",
    "feature_stability",
    "FeatureStability",
}
APART = ("tsrnn.kernels", "tsrnn.datasets")  # their files are not in the folder tsrnn
NEEDS_LIBRARY = {"tsrnn.sktime": "sktime"}  # rooms that cannot be read without it
WITHOUT_PAGE = {"tsrnn.cli"}  # the command line documents itself
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


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page in LONG_PAGES else ()) for page in PAGES],
)
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
    """Every module of the package by name, but those whose library is not installed."""
    places = {name: importlib.import_module(name).__path__ for name in ("tsrnn", *APART)}
    found = {
        module.name
        for room, path in places.items()
        for module in pkgutil.walk_packages(path, f"{room}.")
    }
    absent = tuple(room for room, library in NEEDS_LIBRARY.items() if find_spec(library) is None)
    return sorted(name for name in {*places, *found} if not name.startswith(absent))


class Finder(doctest.DocTestFinder):
    """Finds decorated functions as well, such as those under ``torch.no_grad()``."""

    def _from_module(self, module, object):
        return super()._from_module(module, inspect.unwrap(object))


def examples():
    """Doctests of all docstrings of functions and classes defined in the package.

    They know no names but those they import.
    """
    finder = Finder(exclude_empty=True)
    for name in modules():
        for test in finder.find(importlib.import_module(name), name, globs={}):
            if test.examples:
                yield test


def cases():
    for test in examples():
        name, marks = test.name.rpartition(".")[2], []
        if name in NEEDS_NETWORK:
            marks.append(pytest.mark.skip(reason="downloads a file"))
        if name in LONG_EXAMPLES:
            marks.append(pytest.mark.slow)
        yield pytest.param(test, id=test.name, marks=marks)


@pytest.mark.parametrize("test", list(cases()))
def test_the_examples_of_a_docstring(test, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = io.StringIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=UserWarning, module="__main__")
        failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.write)
    plt.close("all")
    assert failed == 0, said.getvalue()
    assert not list(tmp_path.iterdir())


def listed(prefix):
    """Names that the page of the API lists, those behind a prefix."""
    text = (REPOSITORY / API).read_text(encoding="utf-8")
    return re.findall(rf"^   {prefix}(tsrnn\.[\w.]+)$", text, re.MULTILINE)


def members(module):
    """Functions and classes that a module exports, by name."""
    names = getattr(importlib.import_module(module), "__all__", [])
    values = {name: getattr(importlib.import_module(module), name) for name in names}
    return {name: v for name, v in values.items() if inspect.isroutine(v) or inspect.isclass(v)}


def public():
    """Every function and class with a page of its own, by the name it has there."""
    return {
        f"{room}.{name}": value
        for room in listed("")
        if room in modules()
        for name, value in members(room).items()
    }


PUBLIC = public()


def sections(doc):
    """Text of each section of a docstring by its heading."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}$", inspect.cleandoc(doc or ""), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def named(section):
    """Names at the margin of a section: those of arguments or attributes."""
    heads = [line.partition(" : ")[0] for line in section.splitlines() if line[:1].strip()]
    return {name.strip("*, ") for head in heads for name in head.split(", ")}


def arguments(value):
    """Arguments by name; none for a class that is only read, such as a protocol."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except ValueError:  # of an exception without a constructor of its own
        return set()
    return {p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_docstring_has_all_sections(name):
    value = PUBLIC[name]
    found = sections(value.__doc__)
    assert ">>> " in found.get("Examples", "")
    told = named(found.get("Parameters", ""))
    assert arguments(value) - told - named(found.get("Attributes", "")) == set()
    assert told - arguments(value) == set()
    if not inspect.isclass(value):
        returns = inspect.signature(value).return_annotation
        assert returns in (None, "None") or {"Returns", "Yields"} & found.keys()


def test_every_public_example_runs():
    run = {test.name for test in examples()}
    assert {f"{value.__module__}.{value.__qualname__}" for value in PUBLIC.values()} - run == set()


def test_every_public_name_has_a_page():
    pages = set(map(id, PUBLIC.values()))
    rooms = [name for name in modules() if "._" not in name and name not in WITHOUT_PAGE]
    without = [
        f"{room}.{name}"
        for room in rooms
        for name, value in members(room).items()
        if id(value) not in pages
    ]
    assert without == []


def test_the_page_of_the_api_lists_the_names_at_the_top():
    names = [name.rpartition(".") for name in listed("~")]
    found = [getattr(importlib.import_module(room), name) for room, _, name in names]
    assert set(found) == set(members("tsrnn").values())
    assert len(found) == len(set(found))


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
