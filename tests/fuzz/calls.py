"""Odd calls: legal calls of the public API, one or two arguments of which are odd.

Parameters are read from signatures, so that a new class, method or argument is called by itself;
what has no default needs a legal value in `LEGAL`.
"""

import copy
import datetime
import decimal
import importlib.util
import inspect
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import torch

import tsrnn
from tsrnn import layers
from tsrnn.baselines import Drift, Naive
from tsrnn.batch import forecast_batches, forecast_frame
from tsrnn.kernels import cells, recurrence

CONTRACT = Path(__file__).parents[1] / "contract" / "conftest.py"


def contract():
    """Load the module with a fitted example of every class."""
    spec = importlib.util.spec_from_file_location("calls_contract", CONTRACT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Unprintable:
    """An object whose repr raises."""

    def __repr__(self):
        raise RuntimeError("no repr")


def function(*args):
    return 1


NUMBERS = {
    "-1": lambda: -1, "0": lambda: 0, "2**70": lambda: 2**70, "10**6": lambda: 10**6,
    "1e300": lambda: 1e300, "nan": lambda: np.nan, "inf": lambda: np.inf, "True": lambda: True,
    "0.5": lambda: 0.5, "np.int64(0)": lambda: np.int64(0),
    "np.float32(nan)": lambda: np.float32("nan"), "np.True_": lambda: np.True_,
    "Decimal": lambda: decimal.Decimal("1.5"), "1j": lambda: 1j,
    "NaN decimal": lambda: decimal.Decimal("nan"), "array(2)": lambda: np.array(2),
    "np.uint8(255)": lambda: np.uint8(255), "text 3": lambda: "3",
}  # fmt: skip
TEXTS = {
    "''": lambda: "", "abc": lambda: "abc", "NUL": lambda: "a\0b", "bytes": lambda: b"abc",
    "np.str_": lambda: np.str_("y"), "long text": lambda: "x" * 10_000, "blank": lambda: " ",
    "surrogate": lambda: "\ud800", "[abc]": lambda: ["abc"],
}  # fmt: skip
THINGS = {
    "None": lambda: None,
    "[]": list,
    "[None]": lambda: [None],
    "()": tuple,
    "{}": dict,
    "nested": lambda: {"a": {"b": [{}]}},
    "set": lambda: {1, 2},
    "generator": lambda: (i for i in "ab"),
    "function": lambda: function,
    "class": lambda: int,
    "object": object,
    "pd.NA": lambda: pd.NA,
    "pd.NaT": lambda: pd.NaT,
    "Timestamp": lambda: pd.Timestamp("2024-01-01", tz="Europe/Rome"),
    "date": lambda: datetime.date(2024, 1, 1),
    "Unprintable": Unprintable,
    "timedelta": lambda: pd.Timedelta("1h"),
    "period": lambda: pd.Period("2024-01"),
    "array 0": lambda: np.zeros(0),
    "array 2x3": lambda: np.ones((2, 3)),
    "array 4d": lambda: np.ones((2, 2, 2, 2)),
    "array of objects": lambda: np.array([None, "a"], object),
    "array of NaN": lambda: np.full((3, 6, 2), np.nan),
    "array of text": lambda: np.array(["a", "b"]),
    "complex array": lambda: np.ones(3) * 1j,
    "range": lambda: range(3),
    "slice": lambda: slice(3),
    "(1, 2, 3)": lambda: (1, 2, 3),
    "(-1, 1)": lambda: (-1, 1),
    "(2**70, 1)": lambda: (2**70, 1),
    "(nan, nan)": lambda: (np.nan, np.nan),
    "[80, 80]": lambda: [80, 80],
    "[101]": lambda: [101],
    "frozenset": frozenset,
    "memoryview": lambda: memoryview(b"ab"),
    "tensor": lambda: torch.ones(2),
    "empty tensor": lambda: torch.ones(0),
    "module": lambda: torch.nn.Linear(2, 2),
    "unfitted": Naive,
    "Drift": lambda: Drift,
    "list of itself": lambda: _loop(),
}


def _loop():
    found = []
    found.append(found)
    return found


def _frame(**columns):
    rows = 5
    days = pd.date_range("2024-03-01", periods=rows)
    return pd.DataFrame(
        {"unique_id": ["s0"] * rows, "ds": days, "y": np.arange(rows) + 0.5} | columns
    )


FRAMES = {
    "empty": pd.DataFrame,
    "no rows": lambda: _frame().iloc[:0],
    "text": lambda: _frame(y=list("abcde")),
    "wrong ids": lambda: _frame(unique_id=["nobody"] * 5),
    "no ids": lambda: _frame(unique_id=[None] * 5),
    "no times": lambda: _frame(ds=[pd.NaT] * 5),
    "text for times": lambda: _frame(ds=list("abcde")),
    "zone": lambda: _frame(ds=pd.date_range("2024-03-01", periods=5, tz="Asia/Tokyo")),
    "NaN": lambda: _frame(y=[np.nan] * 5),
    "inf": lambda: _frame(y=[np.inf] * 5),
    "complex": lambda: _frame(y=[1j] * 5),
    "objects": lambda: _frame(y=[object()] * 5),
    "lists": lambda: _frame(y=[[1]] * 5),
    "booleans": lambda: _frame(y=[True] * 5),
    "one row": lambda: _frame().iloc[:1],
    "twice the same": lambda: pd.concat([_frame(), _frame()]),
    "no y": lambda: _frame().drop(columns="y"),
    "y twice": lambda: pd.concat([_frame(), _frame()[["y"]]], axis=1),
    "MultiIndex": lambda: _frame().set_index(["unique_id", "ds"]),
    "MultiIndex columns": lambda: pd.DataFrame(
        [[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])
    ),
    "series": lambda: pd.Series([1.0, 2.0, 3.0]),
    "series of text": lambda: pd.Series(["a", "b"]),
    "polars": lambda: pl.DataFrame(
        {"unique_id": ["s0"], "ds": [datetime.date(2024, 3, 1)], "y": [1.0]}
    ),
    "empty polars": pl.DataFrame,
    "lazy": lambda: pl.DataFrame({"unique_id": ["s0"], "y": [1.0]}).lazy(),
    "columns of dict": lambda: _frame().to_dict("list"),
    "records": lambda: _frame().to_dict("records"),
    "groups": lambda: _frame().groupby("unique_id"),
}
POOL = NUMBERS | TEXTS | THINGS | FRAMES
DATA = {"df", "X", "y", "X_future", "frame", "source", "train", "forecasts", "sample_weight"}

# More layers, rounds, draws or starts are legal: what takes as long as was asked does not hang.
BUDGETS = {
    "max_epochs", "max_iter", "n_starts", "n_simulations", "n_boot", "n_estimators", "patience",
    "n_layers", "num_layers", "state_units", "mean_order",
}  # fmt: skip
HUGE = {"2**70", "10**6", "1e300", "np.uint8(255)"}
# Rows that are computed one after the other, of which a million take as long as they take.
LOOPS = {
    "simulate": {"n", "burn"}, "sample_paths": {"h", "n"}, "components": {"h"},
    "plot_components": {"h"}, "impulse_responses": {"h"}, "predict_covariances": {"h"},
    "predict_variance": {"h"}, "forecast_covariance": {"h"},
}  # fmt: skip


def kind_of(parameter):
    """Values that are odd where this parameter's kind is expected."""
    if parameter.name in DATA:
        return FRAMES
    said = str(parameter.annotation)
    return TEXTS if "str" in said else NUMBERS if "int" in said or "float" in said else THINGS


@dataclass(frozen=True)
class Subject:
    """A call of the API with legal arguments."""

    call: Callable[..., Any]
    legal: dict[str, Any]
    parameters: tuple[inspect.Parameter, ...]
    model: Any = None  # that the call may not change when it fails
    numbers: bool = False  # whether the answer must be finite
    loops: frozenset[str] = frozenset()  # parameters that are numbers of rows, see LOOPS

    def draw(self, rng):
        """Draw odd arguments; their names, and all arguments of the call."""
        count = min(1 + int(rng.random() < 0.3), len(self.parameters))
        odd, names = {}, []
        for i in rng.choice(len(self.parameters), count, replace=False):
            parameter = self.parameters[i]
            pool = kind_of(parameter) if rng.random() < 0.6 else POOL
            bounded = parameter.name in BUDGETS or parameter.name in self.loops
            labels = sorted(set(pool) - (HUGE if bounded else set()))
            label = labels[rng.integers(len(labels))]
            odd[parameter.name] = POOL[label]()
            names.append(f"{parameter.name}={label}")
        return ", ".join(names), copied(self.legal) | odd


def copied(legal):
    return {name: value() if inspect.isfunction(value) else value for name, value in legal.items()}


def parameters_of(function, left=()):
    return tuple(
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name not in ("self", *left)
        and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    )


def method_legal(example, model, name):
    """Legal values of the parameters without a default."""
    if not example.is_forecaster:
        module_X, y = example.training
        return {"X": module_X, "y": y}
    first = model.params_.iloc[0] if hasattr(model, "params_") else None
    legal = {"df": example.training[0] if name in ("fit", "filter") else example.later}
    if name in ("predict", "plot", "sample_paths", "contributions", *COMPONENTS):
        h = getattr(model, "horizon_", None) or 1
        legal |= {"h": h} if name != "contributions" else {}
        legal |= example.ahead(h)
    needed = {
        "autocovariances": {"h": 3},
        "filter": {"params": {} if first is None else first.dropna().to_dict()},
        "lr_test": {"restricted": model},
        "save": {"path": io.BytesIO},
        "simulate": {"n": 4},
        "wald_test": {"restrictions": None if first is None else model.params_.columns[-1]},
        "volatility_response": {"shock": [1.0, 0.0]},
        "from_rnn": {"layer": lambda: layers.LRU(1, 2)},
    }
    return legal | needed.get(name, {})


COMPONENTS = ("components", "plot_components")
FORECASTS = {"predict", "predict_rolling", "sample_paths", "contributions", "predict_proba"}
CHANGES = {"fit", "update", "partial_fit", "filter"}
NO_QUESTIONS = {"get_params", "set_params", "get_metadata_routing", "contract"}


def estimator_subjects(label, example):
    """Yield name and subject of the constructor and of all methods of one class."""
    cls = example.cls

    def construct(**arguments):
        model = example.fit(cls(**(example.arguments | arguments)))
        return model, forecast_of(model, example)

    yield f"{label}()", Subject(construct, {}, parameters_of(cls), numbers=True)
    model = example.fit(example.make())
    for name, method in inspect.getmembers(cls, inspect.isroutine):
        asked = not name.startswith("_") and name not in NO_QUESTIONS and "_request" not in name
        if not asked or name == "from_rnn" or not hasattr(model, name):
            continue  # what a class does not offer it names the others for
        found = parameters_of(method)
        if not found:
            continue
        legal = {
            key: value
            for key, value in method_legal(example, model, name).items()
            if key in {parameter.name for parameter in found}
        }

        def call(name=name, **arguments):
            asked = copy.deepcopy(model) if name in CHANGES else model
            return getattr(asked, name)(**arguments)

        yield (
            f"{label}.{name}",
            Subject(
                call,
                legal,
                found,
                (model, example),
                name in FORECASTS,
                frozenset(LOOPS.get(name, ())),
            ),
        )


def forecast_of(model, example):
    if not example.is_forecaster:
        return model.predict(example.training[0])
    return model.predict(h=1, **example.ahead(1))


def function_subjects(examples):
    """Yield name and subject of functions of the package."""
    rows = examples.PAST[["unique_id", "ds", "y"]]
    models = {"naive": Naive(), "drift": Drift()}
    forecasts = tsrnn.backtest(models, rows, h=2, n_windows=4, step_size=1, level=[80])
    network = examples.EXAMPLES["LRUForecaster"]
    fitted = network.fit(network.make())
    naive = Naive().fit(rows)
    found = {
        tsrnn.backtest: {"models": models, "df": rows, "h": 1, "n_windows": 2},
        tsrnn.compare: {"frame": forecasts, "n_boot": 20},
        tsrnn.diagnose: {"forecasts": forecasts},
        tsrnn.report: {"result": tsrnn.compare(forecasts, n_boot=20), "path": "report.html"},
        tsrnn.recurrence_features: {"model": fitted},
        tsrnn.load: {"path": io.BytesIO},
        forecast_frame: {"frame": rows, "model": naive, "h": 1},
        forecast_batches: {"source": rows, "model": naive, "h": 1, "out": "out", "overwrite": True},
    }
    for call, legal in found.items():
        yield call.__name__, Subject(call, legal, parameters_of(call))


def layer_subjects():
    """Yield name and subject of layers, with a pass through them, and of the recurrence."""
    x = torch.zeros(2, 3, 2)
    legal = {"input_size": 2, "hidden_size": 4}
    for name in sorted(set(layers.__all__) - {"CellStack", "Ensemble", "LayerChoice", "Recurrent"}):
        cls = getattr(layers, name)
        if not (isinstance(cls, type) and issubclass(cls, layers.Recurrent)):
            continue

        def construct(cls=cls, **arguments):
            return cls(**arguments)(x)

        yield name, Subject(construct, legal, parameters_of(cls))
        yield f"{name}.forward", Subject(cls(2, 4), {"x": x}, parameters_of(cls.forward))
    rnn = layers.LRU(2, 4)
    yield (
        "RecurrentNetwork",
        Subject(
            layers.RecurrentNetwork,
            {"rnn": rnn, "output_size": 1},
            parameters_of(layers.RecurrentNetwork),
        ),
    )
    cell = cells.para_rnn(2)
    run = {
        "cell": cell,
        "inputs": lambda: torch.zeros(1, 3, cell.m, 2),
        "params": lambda: torch.zeros(cell.p, 2),
        "engine": "sequential",
    }
    yield "recurrence", Subject(recurrence, run, parameters_of(recurrence))


TYPED = (
    "",
    "abc",
    "-1",
    "0",
    "nan",
    "1e300",
    "9" * 40,
    "a,b",
    "{}",
    "é",
    " ",
    "x" * 5000,
    "1.5",
    "/",
)


def command_lines(rng, number, file, saved):
    """Yield lines of commands with one or two odd values, options read from the commands."""
    import typer

    from tsrnn.cli import app

    legal = {
        "forecast": [file, "--model", "naive", "--h", "1"],
        "compare": [file, "--model", "naive", "--model", "drift", "--h", "1", "--windows", "2"],
        "batch": [file, "--model", "naive", "--h", "1", "--out", "parts"],
        "features": [saved],
        "summary": [saved],
        "models": [],
    }
    commands = typer.main.get_command(app).commands
    assert set(commands) == set(legal)
    for _ in range(number):
        name = str(rng.choice(sorted(commands)))
        options = [one for one in commands[name].params if one.param_type_name == "option"]
        line = [name, *legal[name]]
        for _ in range(1 + int(rng.random() < 0.3)):
            option = options[rng.integers(len(options))]
            line.append(option.opts[0])
            if not option.is_flag:
                line.append(TYPED[rng.integers(len(TYPED))])
        yield line
