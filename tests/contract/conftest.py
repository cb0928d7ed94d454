"""A small fitted estimator of every class, all that it answers, and other arguments for it."""

import copy
import inspect
import io
import numbers
import warnings
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch

from tsrnn import load, recurrence_features
from tsrnn.baselines import SARIMAX, Drift, Naive
from tsrnn.contract import Classical, read_file, write_file
from tsrnn.erm import empirical_risk
from tsrnn.evaluation import Combination, diagnose
from tsrnn.forecasters import ParaRNNForecaster
from tsrnn.linear import ARMA, GARCH
from tsrnn.models import MODELS, model_class

RNG = np.random.default_rng(0)
ROWS, NEW = 50, 5


def long_frame(n_series):
    """Return a long frame of daily series of unequal lengths, targets, a regressor and demand."""
    parts = []
    for i in range(n_series):
        rows = ROWS + NEW - 3 * i
        noise, x = RNG.normal(size=(rows, 2)), RNG.normal(size=rows)
        values = np.zeros((rows, 2))
        for t in range(1, rows):
            values[t] = values[t - 1] @ [[0.5, 0.1], [-0.2, 0.4]] + noise[t]
        days = pd.date_range("2024-01-01", periods=rows)
        columns = {"y": 20 + values[:, 0] + 2 * x, "z": 5 + values[:, 1], "x": x}
        columns["demand"] = np.maximum(values[:, 0], 0.0)
        parts.append(pd.DataFrame({"unique_id": f"s{i}", "ds": days, **columns}))
    return pd.concat(parts, ignore_index=True)


def split(frame):
    """Return the rows before the last `NEW` of every series, and those."""
    late = frame.groupby("unique_id").cumcount(ascending=False) < NEW
    return frame[~late].reset_index(drop=True), frame[late].reset_index(drop=True)


PAST, LATER = split(long_frame(2))
KEYS = ["unique_id", "ds"]
SAMPLES = RNG.normal(size=(20, 6, 2))
RESPONSE = SAMPLES[:, -1, 0] + 0.1 * RNG.normal(size=20)


@dataclass(frozen=True)
class Example:
    """An estimator in settings that fit in a moment, and data for it."""

    arguments: dict = field(default_factory=dict)
    columns: tuple = ("y",)
    n_series: int = 2
    targets: Any = None  # of samples
    refused: tuple = ()  # questions that this model cannot answer
    cls: type | None = None  # by default that of the name

    @property
    def is_forecaster(self):
        return self.targets is None

    def make(self):
        return self.cls(**self.arguments)

    def fit(self, model):
        """Fit to the past, or to the samples."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return model.fit(*self.training)

    @property
    def training(self):
        return (self.rows(PAST),) if self.is_forecaster else (SAMPLES, self.targets)

    @property
    def later(self):
        return self.rows(LATER)

    @property
    def future(self):
        """The regressor of the steps ahead, where the model has one."""
        return {"X_future": self.rows(LATER)[[*KEYS, "x"]]} if "x" in self.columns else {}

    def ahead(self, h):
        """The same, of h steps."""
        return {
            name: frame.groupby("unique_id").head(h).reset_index(drop=True)
            for name, frame in self.future.items()
        }

    def rows(self, frame):
        names = frame["unique_id"].unique()[: self.n_series]
        kept = frame[frame["unique_id"].isin(names)]
        return kept[[*KEYS, *self.columns]].reset_index(drop=True)

    def goes_on(self, model):
        """Take in later data without a new fit."""
        if self.is_forecaster:
            return model.update(self.later)
        return model.partial_fit(SAMPLES[:9], self.targets[:9])


PAIR = {"horizon": NEW, "target": ["y", "z"]}
BOTH, WITH_X = ("y", "z"), ("y", "x")
NO_RNN = ("to_rnn", "rnn_start")
SMALL = {
    "horizon": NEW, "input_size": 6, "hidden_size": 4, "n_layers": 1, "max_epochs": 1,
    "refit": False, "random_state": 0,
}  # fmt: skip
# Methods that networks without columns, for all series together, refuse.
NO_COLUMNS = (
    "components", "effect_curves", "for_series", "outliers_", "plot_components", "plot_effects",
)  # fmt: skip
# Methods that a pretrained network has no matrices, effects or networks by series for.
NO_FEATURES = (
    "block_shares_", "effect_curves", "for_series", "plot_effects", "recurrence_features",
    "recurrent_blocks",
)  # fmt: skip
SAMPLE = {"hidden_size": 4, "max_epochs": 1, "random_state": 0}

# The class is the first word of the name.
SETTINGS = {
    "ARMA": Example({"order": (1, 1), "horizon": NEW, "random_state": 0}),
    "ARMA, regressor": Example(
        {"order": [1, 1, 0], "known_ahead": ["x"], "missing": "keep", "random_state": 0},
        WITH_X,
        refused=("simulate",),
    ),
    "ARMA, seasonal": Example(
        {
            "order": (1, 0, 1),
            "seasonal_order": (0, 1, 1, 4),
            "horizon": NEW,
            "missing": "keep",
            "random_state": 0,
        }
    ),
    "AutoARIMA": Example(
        {"max_p": 2, "max_q": 1, "max_P": 1, "max_Q": 1, "known_ahead": ["x"], "random_state": 0},
        WITH_X,
        refused=("lr_test",),
    ),
    "GARCH": Example({"mean": "ar", "vol": "gjr", "n_simulations": 20, "random_state": 0}),
    "EGARCH": Example(
        {"vol": "egarch", "distribution": "t", "n_simulations": 20, "random_state": 0},
        n_series=1,
        refused=NO_RNN,
        cls=GARCH,
    ),
    "VARMA": Example(PAIR | {"random_state": 0}, BOTH),
    "CES": Example({"season_length": 7, "horizon": NEW, "random_state": 0}),
    "CES, regressor": Example(
        {"seasonal": "simple", "season_length": 2, "known_ahead": ["x"], "missing": "keep"}, WITH_X
    ),
    "CCC": Example(PAIR | {"order": (1, 0), "random_state": 0}, BOTH),
    "DCC": Example(PAIR | {"garch_order": (1, 0), "random_state": 0}, BOTH),
    "VECMGARCH": Example(
        PAIR | {"structure": "scalar", "targeting": True, "n_starts": 1, "random_state": 0},
        BOTH,
        n_series=1,
    ),
    "ETS": Example({"seasonal": "none", "horizon": NEW, "random_state": 0}),
    "ETS, regressor": Example(
        {"error": "mul", "seasonal": "none", "known_ahead": ["x"], "missing": "keep"}, WITH_X
    ),
    "ETS, conformal": Example(
        {"seasonal": "none", "horizon": 2, "intervals": "conformal", "random_state": 0}
    ),
    "VARMA, conformal": Example(
        PAIR | {"horizon": 2, "intervals": "conformal", "random_state": 0}, BOTH
    ),
    "ETS, seasonal": Example(
        {
            "error": "mul",
            "trend": "none",
            "seasonal": "mul",
            "missing": "keep",
            "n_simulations": 20000,
            "random_state": 0,
        },
        n_series=1,
        refused=("to_rnn", "rnn_start", "recurrent_blocks", "recurrence_features"),
    ),
    "Theta, dynamic": Example(
        {"season_length": 2, "seasonal": "mul", "random_state": 0}, refused=NO_RNN
    ),
    "Theta, regressor": Example(
        {"season_length": 2, "seasonal": "mul", "dynamic": False, "known_ahead": ["x"]}, WITH_X
    ),
    "Theta, one line": Example(
        {
            "dynamic": False,
            "initialization": "estimated",
            "missing": "keep",
            "outliers": "pulse",
            "random_state": 0,
        }
    ),
    "Croston": Example(
        {"variant": "sba", "target": "demand", "random_state": 0}, ("demand",), refused=NO_RNN
    ),
    "TSB": Example(
        {"initial": "estimated", "target": "demand", "random_state": 0}, ("demand",), refused=NO_RNN
    ),
    "ParaRNNForecaster": Example(
        SMALL | {"known_ahead": "x"},
        WITH_X,
        refused=("components", "for_series", "outliers_", "plot_components"),
    ),
    "ParaRNNForecaster, prior": Example(
        {"prior": "only", "target": ["y", "z"], "random_state": 0}, BOTH, refused=NO_FEATURES
    ),
    "ParaRNNForecaster, columns": Example(
        {"prior": "only", "known_ahead": "x", "horizon": NEW, "random_state": 0},
        WITH_X,
        refused=("block_shares_", "for_series", "recurrence_features", "recurrent_blocks"),
    ),
    "LRUForecaster, prior": Example({"horizon": NEW, "random_state": 0}, refused=NO_FEATURES),
    "LEMForecaster": Example(SMALL | {"intervals": "gaussian"}, refused=NO_COLUMNS),
    "LRUForecaster": Example(SMALL | {"use_boxcox": "log"}, refused=NO_COLUMNS),
    "NewtonForecaster": Example(SMALL, refused=NO_COLUMNS),
    "Naive": Example(),
    "SeasonalNaive": Example({"season_length": 2}),
    "Drift": Example(),
    "Mean": Example(),
    "Naive2": Example({"season_length": 2}),
    "SARIMAX": Example({"trend": "c", "known_ahead": ["x"]}, WITH_X),
    "StatsmodelsETS": Example(
        {"trend": "add", "error": "mul", "n_simulations": 20, "random_state": 0}
    ),
    "StatsmodelsTheta": Example({"season_length": 1}),
    "StatsmodelsAutoARIMA": Example(
        {"season_length": 1, "max_p": 1, "max_q": 0, "d": 0}, n_series=1
    ),
    "UnobservedComponents": Example({"max_iter": 300}, n_series=1),
    "ArchModel": Example(
        {"mean": "AR", "lags": [1], "vol": "EGARCH", "n_simulations": 20, "random_state": 0}
    ),
    "VAR": Example(PAIR | {"lags": 1}, BOTH),
    "VARMAX": Example(PAIR | {"max_iter": 20}, BOTH, n_series=1),
    "VECM": Example(PAIR, BOTH),
    "Combination": Example(
        {"forecasters": {"ar": ARMA(order=(1, 0)), "walk": Drift()}, "horizon": NEW}
    ),
    "Combination, nested": Example(
        {
            "forecasters": [
                Combination([Naive(), ParaRNNForecaster(**SMALL)], weights=[0.5, 0.5]),
                SARIMAX(order=(1, 0, 0)),
            ],
            "weights": "inverse-error",
            "n_windows": 2,
            "horizon": 3,
        }
    ),
    "Combination, by series": Example(
        {
            "forecasters": {"ar": ARMA(order=(1, 0)), "ma": ARMA(order=(0, 1))},
            "weights": "aicc",
            "horizon": NEW,
        }
    ),
    "ParaRNNRegressor": Example(SAMPLE | {"bound": 0.2}, targets=RESPONSE),
    "ParaRNNRegressor, steps": Example(
        SAMPLE | {"many_to_many": True, "loss": "absolute_error"}, targets=SAMPLES.cumsum(1)[..., 0]
    ),
    "ParaRNNClassifier": Example(
        SAMPLE | {"pooling": "max"}, targets=np.where(RESPONSE > 0, "up", "down")
    ),
}
EXAMPLES = {
    name: replace(example, cls=example.cls or model_class(name.partition(",")[0]))
    for name, example in SETTINGS.items()
}

# Another legal value of every argument; those of a class come before those of a name.
OTHER = {
    "D": 1, "aggregation": "ffn", "autoregressive": 2, "batch_size": 3, "block_size": 4,
    "bound": 0.01, "bounds": "admissible", "calendar": ["month"], "callbacks": (),
    "cell": "lem", "chrono_length": 9, "coint_rank": 2,
    "alpha": 0.2,
    "beta": 0.1,
    "combine": "median",
    "by_series": True,
    "constant_input": True,
    "conv_size": 2, "corrected": True, "cov_type": "opg", "criterion": "bic", "cycle": True,
    "d": 1, "damped": True, "damped_cycle": True, "damped_trend": True, "deseasonalize": False,
    "deterministic": "co", "device": "meta", "devices": 2, "dist": "t", "distribution": "t",
    "dt": 0.5, "dynamic": False, "early_stopping": False, "effects": {"w": "linear"},
    "engine": "sequential",
    "enforce_invertibility": False,
    "enforce_stationarity": False, "error": "add", "error_cov_type": "diagonal", "expansion": 2,
    "forecasters": {"other": Naive()}, "freq": "h", "garch_order": (2, 1), "hidden_size": 8,
    "holidays": ["DE"], "horizon": 2, "id_col": "series", "init": "orthogonal",
    "initial_variance": 3.0,
    "initialization": "heuristic",
    "input_projection": True, "input_size": 3, "intervals": "conformal", "known_ahead": ["w"],
    "initial": "first",
    "lags": 2, "layer_options": {"dt": 0.5}, "learning_rate": 0.3, "level": "random walk",
    "likelihood": "conditional", "linear_path": False, "local_level": False, "loss": "mae",
    "many_to_many": True, "max_recurrent": 0.5, "min_step": 0.25,
    "max_D": 0, "max_P": 0, "max_Q": 0, "max_d": 2, "max_epochs": 7, "max_iter": 3, "max_lags": 3,
    "max_order": 3,
    "max_p": 2, "max_phase": 1.0, "max_q": 2, "mean": "zero", "mean_order": 2,
    "measurement_error": True, "method": "additive", "missing": "interpolate", "mlp": False,
    "multivariate": "joint", "n_estimators": 2, "n_heads": 2, "n_jobs": 2, "n_layers": 2,
    "n_simulations": 7, "n_starts": 2, "n_states": 3, "n_windows": 3, "network": True,
    "nonlinearity": "relu",
    "o": 1,
    "order": (2, 1), "outliers": None, "p": 2, "patience": 3, "per_series": True,
    "parameter_uncertainty": False, "pooling": "mean",
    "power": 1.0, "preset": "paper", "prior": None,
    "q": 2, "r_max": 0.9, "r_min": 0.1, "random_state": 7, "strict": True,
    "support": "real", "rank": 1, "refit": True,
    "rescale": True, "season_length": 4, "seasonal": 4, "seasonal_order": (1, 0, 0, 4),
    "significance": 0.1, "standardize": False, "state_units": 2, "static": ["w"],
    "stationary": False, "stepwise": False,
    "stochastic_cycle": True, "stochastic_seasonal": False, "strategy": "ddp",
    "structure": "diagonal", "target": "w", "targeting": False, "theta": 3.0, "time_col": "time",
    "trainable_recurrence": False, "trend": "n", "use_boxcox": 0.5, "use_test": False,
    "val_size": 9, "validation_fraction": 0.3, "validation_split": "last", "variant": "sbj",
    "verbose": 1, "vol": "garch", "weight_decay": 0.1, "weights": "stacked", "window": 5,
}  # fmt: skip
OTHER_OF = {
    "SARIMAX": {"order": (2, 0, 1)},
    "ETS": {"seasonal": "add", "trend": "mul", "outliers": "pulse"},
    "StatsmodelsETS": {"seasonal": "add", "trend": "mul"},
    "ArchModel": {"mean": "Zero", "vol": "GARCH"},
    "CES": {"seasonal": "partial", "outliers": "pulse"},
    "NewtonForecaster": {"cell": "newton-lstm"},
    "ParaRNNRegressor": {"loss": "absolute_error"},
    "Theta": {"seasonal": "add", "initialization": "estimated", "outliers": "pulse"},
    **{name: {"outliers": "pulse"} for name in ("ARMA", "AutoARIMA")},
    "VECMGARCH": {"stationary": True},
    **{name: {"vol": "gjr"} for name in ("CCC", "DCC")},
    **{
        name: {"intervals": "laplace"}
        for name in ("LEMForecaster", "LRUForecaster", "NewtonForecaster", "ParaRNNForecaster")
    },
}


def other_arguments(model):
    """Return another legal value of every argument."""
    table = OTHER | OTHER_OF.get(type(model).__name__, {})
    values = {name: table[name] for name in sorted(inspect.signature(type(model)).parameters)}
    # an example that has the value of the table gets that of the constructor
    given = model.get_params()
    return {
        name: _default(model, name) if repr(given[name]) == repr(value) else value
        for name, value in values.items()
    }


def _default(model, name):
    return inspect.signature(type(model)).parameters[name].default


def forecaster_questions(model, example):
    """Return the questions about a fitted forecaster by method, as functions of it."""
    unit = model.units_[0] if hasattr(model, "units_") else None
    later, past = example.later, example.training[0]
    seed = {} if "random_state" in example.arguments else {"random_state": 0}
    questions = {
        "predict": lambda m: [
            m.predict(h=2, level=[80], **example.ahead(2)),
            m.predict(past, h=NEW, level=95, **example.future),
            m.predict(h=2, level=[80], ids=m.state_.ids[-1:], **example.ahead(2)),
        ],
        "predict_zero": lambda m: m.predict_zero(h=2, **example.ahead(2)),
        "update": lambda m: example.goes_on(copy.deepcopy(m)).predict(
            past, h=2, **example.ahead(2)
        ),
        "score": lambda m: m.score(later),
        "predict_rolling": lambda m: m.predict_rolling(later, h=NEW - 1, level=80),
        "sample_paths": lambda m: m.sample_paths(3, h=2, **seed, **example.ahead(2)),
        "contributions": lambda m: m.contributions(**example.future),
        "components": lambda m: m.components(
            **(example.future if hasattr(m, "plot_components") else {})
        ),
        "plot_components": lambda m: drawn(m.plot_components(**example.future)),
        "plot_effects": lambda m: drawn(m.plot_effects()),
        "for_series": lambda m: m.for_series("s0").predict(h=2, **example.ahead(2)),
        "conf_int": lambda m: m.conf_int(),
        "cov_params": lambda m: [m.cov_params(unit), m.cov_params(unit, cov_type="hessian")],
        "wald_test": lambda m: m.wald_test(m.params_.columns[-1]),
        "lr_test": lambda m: m.lr_test(m),
        "residuals": lambda m: [m.residuals(), m.residuals(True, df=past)],
        "fittedvalues": lambda m: m.fittedvalues(),
        "diagnostics": lambda m: m.diagnostics(),
        "simulate": lambda m: m.simulate(4),
        "to_rnn": lambda m: m.to_rnn(unit),
        "rnn_start": lambda m: m.rnn_start(unit),
        "summary": lambda m: [m.summary(), *([m.summary(unit)] if unit is not None else [])],
        "coefficients": lambda m: m.coefficients(unit),
        "volatility_response": lambda m: m.volatility_response([1.0, 0.0], h=2, unit=unit),
        "predict_variance": lambda m: m.predict_variance(h=2),
        "plot": lambda m: drawn(m.plot(h=2, **example.ahead(2))),
    }
    no_arguments = (
        "block_shares_", "effect_curves", "forecast_paths", "recurrent_blocks", "roots",
        "impulse_responses", "news_impact",
        "conditional_volatility", "correlations", "covariances", "predict_correlations",
        "predict_covariances", "forecast_covariance", "constant_correlation_test",
    )  # fmt: skip
    questions |= {name: lambda m, name=name: getattr(m, name)() for name in no_arguments}
    questions["autocovariances"] = lambda m: m.autocovariances(3)
    return questions


def drawn(axes):
    """Return the lines of a picture as numbers, and close it."""
    lines = [np.asarray(line.get_ydata(), float) for ax in axes for line in ax.get_lines()]
    plt.close(axes[0].figure)
    return lines


def estimator_questions(model, example):
    """Return the questions about a fitted estimator of samples by method."""
    return {
        "predict": lambda m: m.predict(SAMPLES),
        "predict_proba": lambda m: m.predict_proba(SAMPLES),
        "predict_log_proba": lambda m: m.predict_log_proba(SAMPLES),
        "score": lambda m: m.score(SAMPLES, example.targets),
        "summary": lambda m: m.summary(),
        "block_shares_": lambda m: m.block_shares_(),
    }


# Methods that fit, or are about the arguments as they stand.
NOT_ASKED = {
    "fit", "partial_fit", "filter", "from_rnn", "get_params", "set_params", "get_metadata_routing",
    "set_fit_request", "set_partial_fit_request", "set_predict_request", "set_score_request",
}  # fmt: skip


def saved_content(model):
    """Return header and arrays of the file of a model."""
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    return read_file(file)


def loaded(model):
    """Return a model from its file."""
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    return load(file)


def rewritten(model, change):
    """Return a model from its file, whose header and arrays are changed in place before."""
    header, arrays = saved_content(model)
    change(header, arrays)
    file = io.BytesIO()
    write_file(file, header, arrays)
    file.seek(0)
    return load(file)


def answer(question, model):
    """Return what a question gives, or the error that it raises."""
    try:
        return question(model)
    except Exception as error:
        return type(error).__name__, str(error)


def all_answers(model, example):
    """Return all that a fitted estimator says, by the name of what is asked."""
    ask = forecaster_questions if example.is_forecaster else estimator_questions
    questions, found = ask(model, example), {}
    for name in dir(type(model)):
        if name.startswith("_") or name in NOT_ASKED | {"save", "arguments_"}:
            continue
        static = inspect.getattr_static(type(model), name)
        if isinstance(static, property):
            found[name] = answer(lambda m, name=name: getattr(m, name), model)
        elif inspect.isfunction(getattr(type(model), name)) and hasattr(model, name):
            assert name in questions, f"tests/contract/conftest.py has no question for {name}"
            found[name] = answer(questions[name], model)
    found["save"] = answer(saved_content, model)
    found["load"] = answer(lambda m: questions["predict"](loaded(m)), model)
    found["arguments_"] = repr(model.arguments_)
    if hasattr(model, "recurrent_blocks") or hasattr(model, "network_"):
        found["recurrence_features"] = answer(recurrence_features, model)
    if example.is_forecaster:
        found["diagnose"] = answer(lambda m: diagnose(m, example.later).tests, model)
    else:
        found["risk"] = answer(lambda m: empirical_risk(m, SAMPLES, example.targets).losses, model)
    return found


def forecast(model, example):
    """Return forecasts with intervals, or predictions."""
    if example.is_forecaster:
        return model.predict(h=2, level=[80], **example.ahead(2))
    return model.predict(SAMPLES)


def few_answers(model, example):
    """Return forecasts or predictions, and the content of the file."""
    return {"predict": forecast(model, example), "save": saved_content(model)}


def assert_same(found, expected, where=""):
    """Equal in every number, label and word."""
    assert type(found) is type(expected), where
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key in expected:
            assert_same(found[key], expected[key], f"{where} {key}")
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected), where
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other, where)
    elif isinstance(expected, pd.DataFrame):
        pd.testing.assert_frame_equal(found, expected, check_exact=True, obj=where)
    elif isinstance(expected, pd.Series):
        pd.testing.assert_series_equal(found, expected, check_exact=True, obj=where)
    elif isinstance(expected, torch.nn.Module):
        assert_same(found.state_dict(), expected.state_dict(), where)
    elif isinstance(expected, torch.Tensor):
        np.testing.assert_array_equal(found.numpy(), expected.numpy(), err_msg=where)
    elif isinstance(expected, np.ndarray | numbers.Number):
        np.testing.assert_array_equal(found, expected, err_msg=where)
    else:
        assert str(found) == str(expected), where


def pytest_generate_tests(metafunc):
    """Run over the examples that meet the conditions of `where`."""
    if "example" in metafunc.fixturenames:
        conditions = [mark.args[0] for mark in metafunc.definition.iter_markers("where")]
        names = [
            name
            for name, example in EXAMPLES.items()
            if all(condition(example) for condition in conditions)
        ]
        metafunc.parametrize("example", names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def example(request):
    return EXAMPLES[request.param]


@pytest.fixture(scope="session")
def original(example):
    """Return a fitted estimator, which tests must leave as it is."""
    return example.fit(example.make())


@pytest.fixture
def fitted(original):
    """Return a fitted estimator of the test's own."""
    return copy.deepcopy(original)


@pytest.fixture(scope="session")
def asked(original, example):
    """Return a copy of the estimator that everything has been asked of, and all its answers."""
    model = copy.deepcopy(original)
    return model, all_answers(model, example)


@pytest.fixture(scope="session")
def answers(asked, example):
    """Return all answers of the estimator whose arguments are those of the fit."""
    found = dict(asked[1])
    for name in (*example.refused, *["predict_zero"] * example.is_forecaster):  # of counts alone
        assert isinstance(found.pop(name), tuple), f"{name} is answered"
    # The samples are no table; parts are those of a stacked forecast.
    allowed = {"lr_test", "feature_names_in_", "parts_"}
    # after the few epochs of an example a network may contribute nothing, and says so
    wrong = {
        name: value
        for name, value in found.items()
        if name not in allowed and _is_error(value) and value[0] != "UninformativeNetworkError"
    }
    assert not wrong
    return found


def _is_error(value):
    return (
        isinstance(value, tuple) and len(value) == 2 and str(value[0]).endswith(("Error", "Exit"))
    )


@pytest.fixture(scope="session")
def contract():
    """Return the functions that ask and compare."""
    return SimpleNamespace(
        all=all_answers,
        few=few_answers,
        forecast=forecast,
        same=assert_same,
        other=other_arguments,
        loaded=loaded,
        rewritten=rewritten,
        content=saved_content,
        drawn=drawn,
        examples=EXAMPLES,
        past=PAST,
        later=LATER,
        classical={cls for cls in map(model_class, MODELS) if issubclass(cls, Classical)},
    )
