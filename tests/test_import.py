"""Cost and public names of ``import tsrnn``."""

import importlib
import pkgutil
import subprocess
import sys
from importlib.metadata import version

import pytest

import tsrnn

HEAVY = ["torch", "lightning", "statsmodels", "arch", "sklearn", "numba", "matplotlib"]
ROOMS = [
    "baselines", "batch", "cli", "contract", "data", "datasets", "erm", "evaluation", "export",
    "forecasters", "hierarchy", "inference", "interpret", "kernels", "layers", "linear",
    "linearity", "models", "plotting", "preprocessing", "prior", "reporting", "sktime", "storage",
    "training", "tuning",
]  # fmt: skip
NAMES = {
    "ARMA": "tsrnn.linear", "AutoARIMA": "tsrnn.linear", "CCC": "tsrnn.linear",
    "LocalProjections": "tsrnn.inference", "PartiallyLinear": "tsrnn.inference",
    "forecast_features": "tsrnn.interpret", "linearity_tests": "tsrnn.linearity",
    "lyapunov_exponent": "tsrnn.interpret", "CES": "tsrnn.linear", "Croston": "tsrnn.linear",
    "DCC": "tsrnn.linear", "ETS": "tsrnn.linear", "GARCH": "tsrnn.linear", "Theta": "tsrnn.linear",
    "TSB": "tsrnn.linear", "VARMA": "tsrnn.linear", "VECMGARCH": "tsrnn.linear",
    "Combination": "tsrnn.evaluation", "backtest": "tsrnn.evaluation",
    "compare": "tsrnn.evaluation", "diagnose": "tsrnn.evaluation", "report": "tsrnn.reporting",
    "LEMForecaster": "tsrnn.forecasters", "LRUForecaster": "tsrnn.forecasters",
    "NewtonForecaster": "tsrnn.forecasters", "ParaRNNClassifier": "tsrnn.erm",
    "ParaRNNForecaster": "tsrnn.forecasters", "ParaRNNRegressor": "tsrnn.erm",
    "load": "tsrnn.storage", "recurrence_features": "tsrnn.interpret",
}  # fmt: skip


def run(code):
    """Return what the code prints in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_adds_less_than_three_tenths_of_a_second_to_numpy_and_pandas():
    code = (
        "import time, numpy, pandas; start = time.process_time(); "
        "import tsrnn; print(time.process_time() - start)"
    )
    assert min(float(run(code)) for _ in range(3)) < 0.3


def test_import_loads_no_heavy_library():
    loaded = run("import sys, tsrnn; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)


@pytest.mark.parametrize("room", ["data", "datasets"])
def test_the_rooms_of_frames_load_no_heavy_library(room):
    loaded = run(f"import sys, tsrnn; tsrnn.{room}; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)


@pytest.mark.parametrize("room", ["contract", "storage"])
def test_the_contract_and_the_way_to_files_load_no_forecaster(room):
    loaded = run(f"import sys, tsrnn; tsrnn.{room}; print(*sys.modules)").split()
    assert not {"torch", "lightning", "tsrnn.forecasters", "tsrnn.linear"} & set(loaded)


SERIES = (
    "import sys, numpy, pandas; t = numpy.arange(60); "
    "y = pandas.Series(numpy.sin(t) + t % 7, "
    "index=pandas.date_range('2000-01', periods=60, freq='MS'), name='y'); "
)
# Lightning brings the last four with it: what trains no network does without them.
OF_TRAINING = {"lightning", "torchmetrics", "torch._dynamo", "sympy", "matplotlib"}
OF_OTHERS = {"statsmodels", "arch", "numba", "polars", "sklearn.linear_model"}


# What a forecast of a short series by the network of the package does without.
OF_NO_FIRST_FORECAST = {
    *HEAVY, "joblib", "polars", "scipy.optimize", "scipy.signal", "scipy.stats", "tsrnn.layers",
    "tsrnn.training",
}  # fmt: skip
FIRST = "import tsrnn; model = tsrnn.ParaRNNForecaster().fit(y); "


@pytest.mark.few("summary", "update")
@pytest.mark.parametrize(
    "code",
    [
        "model.predict(12)",
        "model.predict(12, level=[80, 95]); model.outliers_; model.components(); repr(model)",
        "model.summary()",
        "model.update(y[:5].set_axis(pandas.date_range('2005-01', periods=5, freq='MS')))",
        "tsrnn.ParaRNNForecaster().fit(pandas.DataFrame({'a': y, 'b': y[::-1].values})).predict(3)",
        "y.iloc[20] = float('nan'); tsrnn.ParaRNNForecaster(missing='keep').fit(y).predict(3)",
        "model.save({file!r}); tsrnn.load({file!r}).predict(3)",
    ],
    ids=["predict", "results", "summary", "update", "panel", "missing", "file"],
)
def test_a_first_forecast_loads_neither_torch_nor_scikit_learn(code, tmp_path):
    code = code.format(file=str(tmp_path / "model.tsrnn")) if "{file" in code else code
    loaded = run(f"{SERIES}{FIRST}{code}; print(*sys.modules)").split()
    assert not OF_NO_FIRST_FORECAST & set(loaded)


def test_the_command_line_forecasts_without_torch_and_scikit_learn(tmp_path):
    data = str(tmp_path / "data.csv")
    code = (
        f"{SERIES}y.rename_axis('ds').to_csv({data!r}); import atexit, os; "
        f"from tsrnn.cli import main; sys.argv = ['tsrnn', 'forecast', {data!r}, '--out', "
        f"{str(tmp_path / 'out.csv')!r}]; atexit.register(lambda: print(*sys.modules)); main()"
    )
    assert not OF_NO_FIRST_FORECAST & set(run(code).split())
    assert (tmp_path / "out.csv").is_file()


def test_help_of_the_command_line_loads_none_of_them():
    code = (
        "import sys, atexit; from tsrnn.cli import main; sys.argv = ['tsrnn', '--help']; "
        "atexit.register(lambda: print(*sys.modules)); main()"
    )
    unused = OF_NO_FIRST_FORECAST | {"numpy", "pandas", "scipy", "llvmlite", "narwhals"}
    assert not unused & set(run(code).split())


def test_a_classical_fit_loads_nothing_that_only_networks_need():
    code = "from tsrnn import ARMA; ARMA((1, 0)).fit(y).predict(3); print(*sys.modules)"
    assert not (OF_TRAINING | OF_OTHERS) & set(run(SERIES + code).split())


@pytest.mark.slow
def test_a_network_forecasts_without_what_trains_it(tmp_path):
    file = str(tmp_path / "model.tsrnn")
    fit = f"ParaRNNForecaster(3, hidden_size=4, max_epochs=1).fit(y).save({file!r})"
    trained = run(SERIES + f"from tsrnn import ParaRNNForecaster; {fit}; print(*sys.modules)")
    assert not OF_OTHERS & set(trained.split())
    code = f"import tsrnn; tsrnn.load({file!r}).predict(3); print(*sys.modules)"
    assert not (OF_TRAINING | OF_OTHERS) & set(run(SERIES + code).split())


def test_plotting_loads_matplotlib_only_to_plot():
    assert "matplotlib" not in run("import sys, tsrnn.plotting; print(*sys.modules)").split()


def test_dir_lists_the_public_names_before_they_are_loaded():
    listed = run("import tsrnn; print(*dir(tsrnn))").split()
    assert {*NAMES, *ROOMS, "__version__"} <= set(listed)


def test_all_lists_every_lazy_name_once():
    assert sorted(tsrnn.__all__) == sorted({*NAMES, *ROOMS, "__version__"})


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_are_attributes(room):
    assert getattr(tsrnn, room) is importlib.import_module(f"tsrnn.{room}")


@pytest.mark.parametrize(("name", "home"), NAMES.items())
def test_names_are_those_of_their_home(name, home):
    assert getattr(tsrnn, name) is getattr(importlib.import_module(home), name)


def test_version_is_that_of_the_installed_package():
    assert tsrnn.__version__ == version("tsrnn")


def public_modules():
    """Return the package, its rooms and every public module within them."""
    names = ["tsrnn", *(f"tsrnn.{room}" for room in ROOMS)]
    for room in names[1:]:
        paths = getattr(importlib.import_module(room), "__path__", ())
        names += [name for _, name, _ in pkgutil.iter_modules(paths, f"{room}.")]
    return sorted(name for name in names if "._" not in name)


@pytest.mark.parametrize("name", public_modules())
def test_dir_of_a_module_lists_public_names_alone(name):
    module = importlib.import_module(name)
    shown = {name for name in dir(module) if not name.startswith("_")}
    inner = {name for _, name, _ in pkgutil.iter_modules(getattr(module, "__path__", ()))}
    assert shown - inner == {name for name in module.__all__ if not name.startswith("_")} - inner


LAZY = ["tsrnn", *(f"tsrnn.{room}" for room in ("erm", "forecasters", "interpret", "kernels"))]


@pytest.mark.parametrize("name", [*LAZY, "tsrnn.prior", "tsrnn.sktime", "tsrnn.training"])
def test_lazy_modules_say_which_attribute_they_lack(name):
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nonesuch'"):
        _ = importlib.import_module(name).nonesuch


@pytest.mark.parametrize("name", LAZY)
def test_lazy_names_are_kept_by_their_module(name):
    code = f"m = __import__({name!r}, fromlist=['']); "
    code += "before = len(vars(m)); [getattr(m, n) for n in m.__all__]; "
    code += "print({*m.__all__} <= {*vars(m)}, len(vars(m)) > before)"
    assert run(code) == "True True"
