"""The arrows between the rooms of the package, and the one door of each outside library."""

import ast
import functools
import importlib
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]

# Room -> the other rooms of tsrnn that it may import.
# Modules of the package itself that every room may import.
SHARED = {"_lazy"}
ARROWS = {
    "kernels": set(),
    "datasets": set(),
    # The table of classes knows their rooms by name alone, and imports them when it is asked.
    "models": set(),
    "data": set(),
    "layers": {"kernels"},
    "interpret": {"layers", "kernels"},
    "plotting": {"data", "interpret"},
    # plot() of every forecaster draws what plotting.plot_forecasts draws of its frames.
    "contract": {"data", "models", "plotting"},
    "prior": {"contract", "data", "kernels", "layers"},
    "preprocessing": {"data", "contract"},
    "linear": {"kernels", "data", "contract", "layers", "preprocessing", "prior"},
    "training": {"contract"},
    "forecasters": {"data", "contract", "layers", "kernels", "interpret", "prior", "training"},
    "erm": {"contract", "data", "layers", "kernels", "interpret", "training"},
    "linearity": {"contract", "data", "linear"},
    "inference": {"contract", "data", "erm", "plotting"},
    "baselines": {"data", "contract"},
    "evaluation": {"data", "contract", "linearity", "models", "plotting", "prior"},
    "storage": {"contract", "models"},
    "hierarchy": {"contract", "data"},
    "reporting": {"contract", "evaluation", "interpret", "plotting"},
    "tuning": {"contract", "data", "evaluation", "models"},
    "sktime": {"contract", "data", "forecasters", "linear", "models"},
    "batch": {"contract", "data"},
    "export": {"contract", "data", "forecasters", "layers", "kernels"},
    "cli": {
        "batch",
        "contract",
        "data",
        "evaluation",
        "interpret",
        "models",
        "reporting",
        "storage",
    },
}
# Outside library -> the places, rooms or files, where the package may import it.
DOORS = {
    "triton": {"kernels"},
    "numba": {"kernels"},
    "lightning": {"tsrnn/training/_lightning.py", "tsrnn/interpret/_feature_history.py"},
    "pytorch_lightning": set(),
    "statsmodels": {"datasets", "baselines", "evaluation", "inference", "preprocessing"},
    "arch": {"datasets", "baselines", "evaluation", "inference"},
    "utilsforecast": {"evaluation"},
    "scoringrules": {"evaluation"},
    "polars": {"tsrnn/data/_files.py"},
    "holidays": {"tsrnn/data/_holidays.py"},
    "exchange_calendars": {"tsrnn/data/_trading.py"},
    "matplotlib": {"plotting"},
    "pooch": {"datasets"},
    "typer": {"cli"},
    "onnx": {"export"},
    "onnxruntime": {"export"},
    "onnxscript": {"export"},
    "sktime": {"sktime"},
    "hierarchicalforecast": {"hierarchy"},
    "optuna": {"tuning"},
    "pandas": {
        "inference",
        "linearity",
        "data",
        "contract",
        "datasets",
        "interpret",
        "linear",
        "forecasters",
        "erm",
        "baselines",
        "evaluation",
        "hierarchy",
        "preprocessing",
        "prior",
        "plotting",
        "reporting",
        "sktime",
        "tuning",
        "batch",
        "cli",
    },
}
# The facade knows every room and no outside library.
FACADE = "tsrnn/__init__.py"
# Import names of top-level folders whose true names begin with tsrnn.
BARE = {"kernels", "datasets"}
SHADOWS = {"torch.py", "triton.py", "numba.py"}
SCRIPTS = ("tests/**/*.py", "examples/*.py", "benchmarks/**/*.py", "docs/*.py")


class Import(NamedTuple):
    line: int
    module: str


def rooms():
    """Return the rooms by name: folders, and single files of the package."""
    inside = [path for path in (ROOT / "tsrnn").iterdir() if not path.name.startswith(("_", "."))]
    found = [path for path in inside if path.suffix == ".py" or (path / "__init__.py").is_file()]
    return {path.stem: path for path in (*found, ROOT / "kernels", ROOT / "datasets")}


@functools.cache
def modules():
    """Return every module of the package by its path relative to the repository."""
    paths = [
        path
        for room in rooms().values()
        for path in ([room] if room.is_file() else room.rglob("*.py"))
    ]
    return sorted(str(path.relative_to(ROOT)) for path in paths)


def scripts():
    return sorted(str(path.relative_to(ROOT)) for glob in SCRIPTS for path in ROOT.glob(glob))


def room_of(path):
    parts = Path(path).parts
    return Path(parts[1]).stem if parts[0] == "tsrnn" else parts[0]


def package_of(path):
    """Return the dotted package that a relative import in the file starts from."""
    parts = Path(path).parent.parts
    return ".".join(parts if parts[:1] == ("tsrnn",) else ("tsrnn", *parts))


@functools.cache  # four tests read each file
def imports(source, package):
    """Return everything the source imports, wherever it stands, under absolute names."""
    found = []
    for node in ast.walk(ast.parse(source)):
        found += [Import(node.lineno, name) for name in _names(node, package)]
    return tuple(sorted(found))


def _names(node, package):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = _base(node, package)
        return [f"{base}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and _is_import_call(node.func):
        return [arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)]
    return []


def _base(node, package):
    if not node.level:
        return node.module
    parents = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*parents, *([node.module] if node.module else [])])


def _is_import_call(function):
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in {"import_module", "__import__"}


def illegal_arrows(path, source):
    room = room_of(path)
    legal = ARROWS.get(room, set()) | {room} | SHARED
    return [
        f"{path}:{line} imports {module}; {room} may import of tsrnn only {sorted(legal)}"
        for line, module in imports(source, package_of(path))
        if module.split(".")[0] == "tsrnn" and module.partition(".")[2].split(".")[0] not in legal
    ]


def illegal_doors(path, source):
    return [
        f"{path}:{line} imports {module}; only {sorted(DOORS[library])} may import {library}"
        for line, module in imports(source, package_of(path))
        if (library := module.split(".")[0]) in DOORS and not {path, room_of(path)} & DOORS[library]
    ]


def private_imports(path, source):
    """Return imports of modules or names that another room keeps to itself."""
    return [
        f"{path}:{line} imports {module}; a room imports from another what its __init__ exports"
        for line, module in imports(source, package_of(path))
        if module.startswith("tsrnn.")
        and module.split(".")[1] != room_of(path)
        and any(part.startswith("_") and part != "__version__" for part in module.split(".")[2:])
    ]


def bare_imports(path, source):
    return [
        f"{path}:{line} imports {module}; write tsrnn.{module}"
        for line, module in imports(source, package_of(path))
        if module.split(".")[0] in BARE
    ]


def check(checker, path):
    illegal = checker(path, (ROOT / path).read_text(encoding="utf-8"))
    assert not illegal, "\n".join(illegal)


@pytest.mark.parametrize("path", modules())
def test_arrows_run_one_way(path):
    check(illegal_arrows, path)


@pytest.mark.parametrize("path", modules())
def test_rooms_are_entered_by_their_doors(path):
    check(private_imports, path)


@pytest.mark.parametrize("path", [FACADE, *modules()])
def test_each_outside_library_has_one_door(path):
    check(illegal_doors, path)


@pytest.mark.parametrize("path", [FACADE, *modules(), *scripts()])
def test_kernels_and_datasets_are_imported_under_their_full_names(path):
    check(bare_imports, path)


@pytest.mark.parametrize("room", [room for room, path in rooms().items() if path.is_dir()])
def test_a_room_exports_beyond_its_api_only_names_that_others_import(room):
    door = importlib.import_module(f"tsrnn.{room}")
    source = (rooms()[room] / "__init__.py").read_text(encoding="utf-8")
    taken = {module for _, module in imports(source, door.__name__)}
    names = {module.rpartition(".")[2] for module in taken if module.startswith(door.__name__)}
    used = {
        module.removeprefix(f"{door.__name__}.")
        for path in (FACADE, *modules(), *scripts())
        if room_of(path) != room
        for _, module in imports((ROOT / path).read_text(encoding="utf-8"), package_of(path))
    }
    assert names - {"*", "_classes"} - set(door.__all__) - used == set()


def test_every_room_has_its_arrows_in_the_table():
    assert set(rooms()) == set(ARROWS)


def test_modules_are_found():
    assert {room_of(path) for path in modules()} == set(ARROWS)


def test_every_package_is_packaged():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = {package_of(path) for path in (FACADE, *modules()) if path.endswith("__init__.py")}
    assert set(listed["tool"]["setuptools"]["packages"]) == found


def test_the_arrows_have_no_cycle():
    order = list(ARROWS)
    for room, known in ARROWS.items():
        later = {other for other in known & set(order) if order.index(other) > order.index(room)}
        assert not later, f"{room} knows {later}, which stand below it"


def test_no_module_hides_an_outside_library():
    hidden = [path for path in (*modules(), *scripts()) if Path(path).name in SHADOWS]
    assert not hidden


PLANTED_ARROWS = [
    ("kernels/cells/lem.py", "import tsrnn.layers", 1),
    ("kernels/_x.py", "x = 1\ndef f():\n    from tsrnn.data import Panel", 3),
    ("kernels/cells/lem.py", "from ...data import Panel", 1),
    ("datasets/_x.py", "from tsrnn import kernels", 1),
    ("tsrnn/data/_x.py", "from ..forecasters import load", 1),
    ("tsrnn/data/_x.py", "from .. import layers", 1),
    ("tsrnn/layers/_x.py", "from tsrnn import load", 1),
    ("tsrnn/layers/_x.py", "import tsrnn", 1),
    ("tsrnn/interpret/_x.py", "if TYPE_CHECKING:\n    from tsrnn.forecasters import load", 2),
    ("tsrnn/forecasters/_x.py", "from tsrnn.plotting import plot_forecast", 1),
    ("tsrnn/forecasters/_x.py", "from tsrnn import __version__", 1),
    ("tsrnn/contract/_x.py", "from tsrnn.forecasters import ParaRNNForecaster", 1),
    ("tsrnn/linear/_x.py", "from tsrnn.interpret import recurrence_features", 1),
    ("tsrnn/forecasters/_x.py", "import tsrnn.storage", 1),
    ("tsrnn/storage.py", "from tsrnn.data import Layout", 1),
    ("tsrnn/plotting/_x.py", "import importlib\nimportlib.import_module('tsrnn.layers')", 2),
]
PLANTED_DOORS = [
    ("tsrnn/layers/_x.py", "import numba", 1),
    ("tsrnn/layers/_x.py", "from triton import language", 1),
    ("kernels/_x.py", "def f():\n    import pandas as pd", 2),
    ("tsrnn/layers/_x.py", "import pandas", 1),
    ("tsrnn/forecasters/_forecaster.py", "from lightning.pytorch import Trainer", 1),
    ("tsrnn/forecasters/_x.py", "import statsmodels.api", 1),
    ("tsrnn/linear/_base.py", "import statsmodels.stats", 1),
    ("tsrnn/linear/garch/_x.py", "import arch", 1),
    ("tsrnn/storage.py", "import pandas", 1),
    ("tsrnn/data/_x.py", "from arch.data import sp500", 1),
    ("tsrnn/interpret/_x.py", "import matplotlib.pyplot as plt", 1),
    ("tsrnn/data/_x.py", "__import__('pooch')", 1),
    (FACADE, "import pandas", 1),
]


@pytest.mark.parametrize(("path", "source", "line"), PLANTED_ARROWS)
def test_a_planted_arrow_is_caught_with_file_line_and_import(path, source, line):
    (message,) = illegal_arrows(path, source)
    assert message.startswith(f"{path}:{line} imports tsrnn")


@pytest.mark.parametrize(("path", "source", "line"), PLANTED_DOORS)
def test_a_planted_door_is_caught_with_file_line_and_import(path, source, line):
    (message,) = illegal_doors(path, source)
    assert message.startswith(f"{path}:{line} imports ")


@pytest.mark.parametrize(
    "source",
    [
        "from tsrnn.kernels._cell import Fields",
        "from tsrnn.kernels import _cell",
        "import tsrnn.data._panel",
    ],
)
def test_a_planted_private_import_is_caught(source):
    (message,) = private_imports("tsrnn/layers/_x.py", source)
    assert message.startswith("tsrnn/layers/_x.py:1 imports tsrnn.")


@pytest.mark.parametrize("source", ["import kernels", "from datasets._ett import load_ett"])
def test_a_planted_bare_import_is_caught(source):
    assert bare_imports("benchmarks/x.py", source)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("kernels/_x.py", "import numba\nfrom . import _trace\nfrom tsrnn.kernels import cells"),
        ("datasets/_x.py", "import pooch\nfrom statsmodels.datasets import co2"),
        ("tsrnn/layers/_x.py", "from tsrnn.kernels import recurrence\nfrom ._y import z"),
        ("tsrnn/training/_lightning.py", "import lightning\nfrom ..contract import seed_of"),
        ("tsrnn/forecasters/_x.py", "from tsrnn.contract import Forecaster\nimport pandas"),
        ("tsrnn/contract/_x.py", "import pandas\nfrom tsrnn.data import Panel"),
        ("tsrnn/storage.py", "from tsrnn.contract import read_file\nimport tsrnn.models"),
        ("tsrnn/plotting/_x.py", "import matplotlib.pyplot\nimport tsrnn.interpret"),
    ],
)
def test_legal_imports_pass(path, source):
    for checker in (illegal_arrows, illegal_doors, bare_imports, private_imports):
        assert checker(path, source) == []
