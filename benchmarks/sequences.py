"""ParaRNNClassifier and ParaRNNRegressor beside scikit-learn's estimators on public data.

Classes: JapaneseVowels (7 to 29 steps, 12 channels, 9 classes, 270 samples train, 370 test) and
BasicMotions (100 steps, 6 channels, 4 classes, 40 and 40), both of the UEA archive with its parts.
Regression: the oil temperature of ETTh1 1 and 24 hours ahead from the last 96 hours of all seven
columns; the first twelve months train and the next four validate, with a window every
``--every`` hours; the four after those test, with a window every hour. All columns are
standardised by the first twelve months, so that errors are on that scale. The target is the level,
or its change since the last hour, of which the mean squared error is the same: levels of the test
part lie lower than those before.

All estimators are as they come, with no argument changed but these: cells of ours, "one block"
(``block_size=hidden_size``, the ordinary network; LEM has full matrices as it comes, so that there
the other choice is blocks of 2), for classes "greatest state" (``pooling="max"``, the last
otherwise), and on ETTh1 ``validation_split="last"`` with a fraction of a
quarter, the four months. scikit-learn's learn from these months too. Theirs see features: "lags",
all steps one beside the other, of sequences of unequal length as many as the longest training
sequence has, shorter ones filled up in front with their first step; or "summary", mean, standard
deviation, least and largest value of each channel. Kernel methods standardise features. On ETTh1
random forests look at a third of the features at a split, as is usual in regression, and take
less time than with all of them.

Seconds are of fit and predict. Accuracy and mean squared error are means over ``--seeds``, with
their standard deviation where an estimator draws. The standard error of a mean squared error is
that of the first seed by Newey and West with lags for the overlap of windows, and so is that of
the difference from the last value, whose losses are of the same hours.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from _timing import option_parser, print_machine, print_table, read_options
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from tsrnn import ParaRNNClassifier, ParaRNNRegressor
from tsrnn.datasets import LabelledSequences, load_ett, read_ts
from tsrnn.erm import empirical_risk

LOCAL_COPY = Path(__file__).resolve().parents[2] / "shared" / "data"
CLASSES = {"JapaneseVowels": (270, 370), "BasicMotions": (40, 40)}
CELLS = ("rnn", "gru", "lstm", "lem")
WIDTH = 64  # hidden_size as it comes
WINDOW, MONTH, COLUMN, HORIZONS, TARGETS = 96, 30 * 24, "OT", (1, 24), ("level", "change")
Sequences = Any  # an array (N, T, d_in) or a list of arrays (T_i, d_in)
Make = Callable[[int], Any]  # seed to estimator


def lags(X: Sequences, steps: int) -> np.ndarray:
    """The last steps one beside the other; short sequences begin with their first step again."""
    last = [np.pad(x[-steps:], ((max(0, steps - len(x)), 0), (0, 0)), mode="edge") for x in X]
    return np.stack(last).reshape(len(last), -1)


def summary(X: Sequences) -> np.ndarray:
    """Mean, standard deviation, least and largest value of each channel."""
    return np.array([np.concatenate([x.mean(0), x.std(0), x.min(0), x.max(0)]) for x in X])


def on(features: Callable[[Sequences], np.ndarray], *steps: Any) -> Pipeline:
    return make_pipeline(FunctionTransformer(features), *steps)


def networks(
    make: Callable[..., Any], cells: list[str], **more: dict[str, Any]
) -> dict[tuple[str, str], Make]:
    """Our estimators by cell and blocks, and with further arguments by name."""
    found: dict[tuple[str, str], Make] = {}
    for cell in cells:
        own, other, size = ("one block", "blocks of 2", 2) if cell == "lem" else (
            "blocks of 2", "one block", WIDTH)  # fmt: skip
        variants = {f"{own}, default": {}, other: {"block_size": size}, **more}
        for name, options in variants.items():
            found[f"ParaRNN, {cell}", name] = partial(_network, make, cell, options)
    return found


def _network(make: Callable[..., Any], cell: str, options: dict[str, Any], seed: int) -> Any:
    return make(cell=cell, random_state=seed, **options)


def classifiers(data: LabelledSequences, cells: list[str]) -> dict[tuple[str, str], Make]:
    steps = max(len(x) for x in data.X)
    found = networks(
        ParaRNNClassifier,
        cells,
        **{"blocks of 2, greatest state": {"block_size": 2, "pooling": "max"}},
    )
    for name, features in (("lags", partial(lags, steps=steps)), ("summary", summary)):
        found["gradient boosting", name] = lambda seed, features=features: on(
            features, HistGradientBoostingClassifier(random_state=seed)
        )
        found["random forest", name] = lambda seed, features=features: on(
            features, RandomForestClassifier(random_state=seed)
        )
        found["support vectors, rbf", name] = lambda seed, features=features: on(
            features, StandardScaler(), SVC()
        )
    return found


def regressors(cells: list[str]) -> dict[tuple[str, str], Make]:
    make = partial(ParaRNNRegressor, validation_split="last", validation_fraction=0.25)
    features = partial(lags, steps=WINDOW)
    return networks(make, cells) | {
        ("gradient boosting", "lags"): lambda seed: on(
            features, HistGradientBoostingRegressor(random_state=seed)
        ),
        ("random forest", "lags"): lambda seed: on(
            features, RandomForestRegressor(max_features=1 / 3, random_state=seed)
        ),
        ("kernel ridge, rbf", "lags"): lambda _: on(
            features, StandardScaler(), KernelRidge(kernel="rbf")
        ),
    }


def draws(key: tuple[str, str]) -> bool:
    """Whether an estimator depends on its seed: these two do not."""
    return not key[0].startswith(("support", "kernel"))


def mean_and_spread(values: list[float], digits: int) -> str:
    spread = f" ({np.std(values, ddof=1):.{digits}f})" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"


def load(folder: Path, name: str) -> list[LabelledSequences]:
    """Training and test part of a set of classes."""
    parts = [read_ts(folder / f"{name}_{part}.ts.gz") for part in ("TRAIN", "TEST")]
    assert tuple(len(part.X) for part in parts) == CLASSES[name]
    return parts


def classify(name: str, folder: Path, options: argparse.Namespace) -> None:
    train, test = load(folder, name)
    rows = []
    for key, make in classifiers(train, options.cells).items():
        accuracy, seconds = [], []
        for seed in range(options.seeds if draws(key) else 1):
            start = time.perf_counter()
            labels = make(seed).fit(train.X, train.y).predict(test.X)
            seconds.append(time.perf_counter() - start)
            accuracy.append(100 * np.mean(labels == test.y))
        rows.append([*key, len(accuracy), mean_and_spread(accuracy, 1), f"{np.mean(seconds):.1f}"])
        print(name, *rows[-1], file=sys.stderr, flush=True)
    print(f"\n{name}: accuracy on the test part in percent\n")
    print_table(["estimator", "blocks or features", "seeds", "accuracy (sd)", "seconds"], rows)


@dataclass(frozen=True)
class Forecast:
    """What is forecast: a column's level so many rows ahead, or its change until then."""

    column: int
    horizon: int
    target: str

    def windows(self, values: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The `WINDOW` rows up to each of `ends`, and the targets."""
        X = values[ends[:, None] + np.arange(1 - WINDOW, 1)]
        levels = values[ends + self.horizon, self.column]
        return X, levels if self.target == "level" else levels - X[:, -1, self.column]

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The naive forecast (N,): that the last value stays."""
        return X[:, -1, self.column] if self.target == "level" else np.zeros(len(X))


def regress(horizon: int, target: str, folder: Path, options: argparse.Namespace) -> None:
    data = load_ett("ETTh1", data_home=folder).iloc[: 20 * MONTH]
    first = data.iloc[: 12 * MONTH]
    values = ((data - first.mean()) / first.std(ddof=0)).to_numpy()
    forecast = Forecast(list(data).index(COLUMN), horizon, target)
    start, end = 16 * MONTH - horizon, 20 * MONTH - horizon  # targets are the rows of four months
    X, z = forecast.windows(values, np.arange(WINDOW - 1, start, options.every))
    X_new, z_new = forecast.windows(values, np.arange(start, end))
    risk = partial(empirical_risk, X=X_new, z=z_new, lags=WINDOW + horizon)
    naive = risk(forecast)
    rows = [["last value", "", 1, f"{naive.value:.4f}", f"{naive.std_error:.4f}", "", ""]]
    for key, make in regressors(options.cells).items():
        begun = time.perf_counter()
        seeds = range(options.seeds if draws(key) else 1)
        risks = [risk(make(seed).fit(X, z)) for seed in seeds]
        seconds = (time.perf_counter() - begun) / len(risks)
        gain = risks[0].minus(naive)
        rows.append(
            [*key, len(risks), mean_and_spread([r.value for r in risks], 4),
             f"{risks[0].std_error:.4f}", f"{gain.value:+.4f} ± {gain.std_error:.4f}",
             f"{seconds:.1f}"]
        )  # fmt: skip
        print(target, horizon, *rows[-1], file=sys.stderr, flush=True)
    print(f"\nETTh1, {target} of the oil temperature {horizon} h ahead, {len(X)} windows known, "
          f"{len(X_new)} in the test part: mean squared error\n")  # fmt: skip
    print_table(["estimator", "blocks or features", "seeds", "MSE (sd)", "std. error",
                 "less last value", "seconds"], rows)  # fmt: skip


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--data-home", type=Path, default=LOCAL_COPY,
                        help="folder with uea_ucr/ and ett/")  # fmt: skip
    parser.add_argument("--sets", nargs="+", choices=[*CLASSES, "ETTh1"],
                        default=[*CLASSES, "ETTh1"])  # fmt: skip
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=list(CELLS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=["change"])
    parser.add_argument("--every", type=int, default=6, help="hours between windows of ETTh1")
    options = read_options(parser, sets=["BasicMotions"], cells=["rnn"])
    print_machine()
    for name in options.sets:
        folder = options.data_home / ("ett" if name == "ETTh1" else "uea_ucr")
        needed = "ETTh1.csv.gz" if name == "ETTh1" else f"{name}_TRAIN.ts.gz"
        if not (folder / needed).is_file():
            print(f"{name} skipped: {folder} has no {needed}; give the folder above it by "
                  "--data-home")  # fmt: skip
        elif name == "ETTh1":
            for target, horizon in product(options.targets, HORIZONS):
                regress(horizon, target, folder, options)
        else:
            classify(name, folder, options)


if __name__ == "__main__":
    main()
