"""Saved models of every class, and what a forger makes of them with a right checksum."""

import functools
import json
import warnings

import numpy as np
import pandas as pd
from safetensors.numpy import save

import tsrnn
from tsrnn import evaluation, linear
from tsrnn.contract import read_file
from tsrnn.contract._file import DIGEST, HEADER, digest
from tsrnn.models import MODELS

HUGE = (10**9, 10**18, 2**63, -(10**9), 10**400, 1e300, float("nan"), float("inf"), -float("inf"))
SMALL = (0, 1, 2, 3, 5, -1, 0.5, -0.5, 17, 10**6)
OTHERS = (None, True, False, "", "x", "a\x00b", "../../etc/passwd", "é" * 3000, [], {}, [[]])
OTHERS += ({"a": 1}, "os.system", "__class__", "ARMA", "NoSuchClass", "datetime64[s]", "1D", "UTC")


def frames():
    """Return a long frame, one with a regressor, two targets, and returns."""
    draw = np.random.default_rng(0)
    months = pd.date_range("2015-01-01", periods=60, freq="MS")
    parts = [
        pd.DataFrame({"unique_id": name, "ds": months, "y": 50 + draw.normal(size=60).cumsum()})
        for name in "ab"
    ]
    long = pd.concat(parts, ignore_index=True)
    pair = pd.DataFrame({name: draw.normal(size=60).cumsum() for name in "uv"}, months)
    days = pd.date_range("2020-01-01", periods=150, tz="Europe/Berlin")
    returns = pd.DataFrame({name: draw.normal(size=150) for name in "uv"}, days)
    return long, long.assign(x=draw.normal(size=120)), pair, returns


def makers():
    """Return functions that fit a small model of each class, by a name that begins with it."""
    from tsrnn import baselines as base

    long, regressed, pair, returns = frames()
    demand = long.assign(y=(long["y"] - 50).clip(lower=0))
    one, small = pair[["u"]], {"hidden_size": 4, "n_layers": 1, "max_epochs": 1, "random_state": 0}
    short = small | {"horizon": 3, "input_size": 6, "refit": False}
    draw = np.random.default_rng(1)
    X, y = draw.normal(size=(20, 5, 2)), draw.normal(size=20)
    members = {"a": base.Naive(), "b": tsrnn.ARMA(order=(1, 0))}
    mixed = members | {"c": evaluation.Combination([base.Drift(), base.Mean()])}
    fits = {
        "ARMA": (tsrnn.ARMA(order=(1, 1)), long),
        "ARMA, regressor": (tsrnn.ARMA(order=(1, 0), known_ahead="x"), regressed),
        "ARMA, seasonal": (tsrnn.ARMA(order=(0, 1), seasonal_order=(0, 1, 1, 4)), long),
        "AutoARIMA": (linear.AutoARIMA(max_p=1, max_q=1), long),
        "CCC": (linear.CCC(mean="var"), returns),
        "CES": (linear.CES(season_length=4), long),
        "Croston": (linear.Croston("sba"), demand),
        "TSB": (linear.TSB(alpha=0.1), demand),
        "Combination": (evaluation.Combination(mixed, "inverse-error", 2, horizon=3), long),
        "DCC": (linear.DCC(), returns),
        "ETS": (tsrnn.ETS(), long),
        "GARCH": (tsrnn.GARCH(mean="ar", mean_order=[1, 2], n_simulations=50), returns),
        "Theta": (linear.Theta(season_length=2), long),
        "VARMA": (linear.VARMA(), pair),
        "VECMGARCH": (linear.VECMGARCH(), returns),
        "LEMForecaster": (tsrnn.LEMForecaster(**short), long),
        "LRUForecaster": (tsrnn.LRUForecaster(**short, intervals="quantile"), long),
        "NewtonForecaster": (tsrnn.NewtonForecaster(**short), long),
        "ParaRNNForecaster": (tsrnn.ParaRNNForecaster(**short, known_ahead="x"), regressed),
        "ParaRNNForecaster, attention": (
            tsrnn.ParaRNNForecaster(**short, cell="attention", n_estimators=2), long
        ),
        "ArchModel": (base.ArchModel(), one.diff()[1:]),
        "StatsmodelsAutoARIMA": (base.StatsmodelsAutoARIMA(max_p=1, max_q=1), one),
        "StatsmodelsETS": (base.StatsmodelsETS(n_simulations=50, trend="add"), one),
        "SARIMAX": (base.SARIMAX(order=(1, 0, 0), trend="c"), one),
        "StatsmodelsTheta": (base.StatsmodelsTheta(), long),
        "UnobservedComponents": (base.UnobservedComponents(), one),
        "VAR": (base.VAR(), pair),
        "VARMAX": (base.VARMAX(max_iter=2), pair),
        "VECM": (base.VECM(rank=1), pair),
        **{
            name: (getattr(base, name)(), long)
            for name in ("Drift", "Mean", "Naive", "Naive2", "SeasonalNaive")
        },
    }  # fmt: skip
    regressor = tsrnn.ParaRNNRegressor(**small).fit
    classifier = tsrnn.ParaRNNClassifier(**small).fit
    made = {name: functools.partial(model.fit, data) for name, (model, data) in fits.items()}
    made["ParaRNNRegressor"] = functools.partial(regressor, X, y)
    made["ParaRNNClassifier"] = functools.partial(classifier, X, np.where(y > 0, "up", "down"))
    assert {name.partition(",")[0] for name in made} == set(MODELS)
    return made


def content_of(header, arrays):
    """Return the bytes of a file with these parts, as whoever knows the format can make it."""
    text = header if isinstance(header, str) else json.dumps(header)
    whole = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    return save(whole, {HEADER: text, DIGEST: digest(text, whole)})


def places(value, path=()):
    """Yield paths to all parts of a header."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from places(item, (*path, key))


def part_at(header, path):
    """Return the part of a header at a path."""
    return functools.reduce(lambda part, key: part[key], path, header)


class Forger:
    """Draws changes of a file, each a kind, what it is in words, and the bytes.

    Changes that are `same` leave no number out or other: a model that still answers must answer
    as before.
    """

    same = ("field added", "field deleted", "field renamed", "array added", "bytes added")

    def __init__(self, file, rng):
        file.seek(0)
        self.header, self.arrays = read_file(file)
        self.content, self.rng = file.getvalue(), rng
        self.paths = list(places(self.header))

    def draw(self):
        """Return one change."""
        way = self.rng.random()
        change = self.in_header if way < 0.7 else self.in_arrays if way < 0.92 else self.in_bytes
        return change()

    def pick(self, values):
        """Draw one of some values."""
        return values[int(self.rng.integers(len(values)))]

    def in_header(self):
        """Change a field at any depth."""
        header = json.loads(json.dumps(self.header))
        path = self.pick(self.paths)
        if self.rng.random() < 0.3:  # what is fitted, more often than arguments
            path = self.pick([path for path in self.paths if path[0] in ("fitted", "layout")])
        parent = part_at(header, path[:-1])
        key, old = path[-1], parent[path[-1]]
        ways = ["huge", "small", "other", "nested", "like", "like"]
        ways += ["field deleted"] + ["field renamed", "field added"] * isinstance(parent, dict)
        ways += ["swapped"] * isinstance(old, list | dict)
        kind = self.pick(ways)
        words = ".".join(map(str, path))
        if kind in ("field deleted", "field renamed"):
            del parent[key]
        if kind == "field deleted" and "messages" in path:
            kind = "message deleted"  # a fit with one message less is a fit all the same
        if kind == "field renamed":
            parent[f"{key}_"] = old
        elif kind == "field added":
            parent["added"] = old
        elif "deleted" not in kind and kind != "field renamed":
            parent[key] = self.instead(kind, old)
            words += f" -> {parent[key]!r:.60}"
        if kind == "nested" and self.rng.random() < 0.1:
            unclosed = json.dumps(header)[:-1] + ', "deep": ' + "[" * 9**5
            return kind, "never closed", content_of(unclosed, self.arrays)
        return kind, words, content_of(header, self.arrays)

    def instead(self, kind, old):
        """Return another value of a field."""
        if kind in ("huge", "small", "other"):
            return self.pick({"huge": HUGE, "small": SMALL, "other": OTHERS}[kind])
        if kind == "swapped":
            return {str(i): item for i, item in enumerate(old)} if isinstance(old, list) else [*old]
        if kind == "like":
            return self.like(old)
        for _ in range(self.pick([1, 3, 70, 900])):
            old = self.pick([[old], {"a": old}])
        return old

    def like(self, old):
        """Return another value of the same type."""
        texts = [part for path in self.paths if isinstance(part := part_at(self.header, path), str)]
        others = {
            bool: lambda: [not old],
            int: lambda: [old + step for step in (1, -1, 2, 10, 100)],
            float: lambda: [-old, 2 * old, 0],
            str: lambda: [*texts, f"{old}x", old[:-1]],
            list: lambda: [old[:-1], [*old, *old], old[::-1], [*old, "x"], [*old, 7]],
            dict: lambda: [{name: old[name] for name in sorted(old)[1:]}],
        }
        return self.pick(others.get(type(old), lambda: [1, "x", [1], 0.5])())

    def in_arrays(self):
        """Change an array, its name, type or shape."""
        arrays, name = dict(self.arrays), self.pick(sorted(self.arrays))
        old = np.atleast_1d(arrays[name])
        added = self.pick(["added", "0/added", "99/x", "state.x", "model.x"])
        others = [t for t in ("float32", "int64", "bool", "float64", "uint8") if t != old.dtype]
        ways = {
            "array gone": lambda: arrays.pop(name),
            "array renamed": lambda: arrays.update({f"{name}_": arrays.pop(name)}),
            "array added": lambda: arrays.update({added: old}),
            "shape": lambda: arrays.update({name: old.reshape(-1, 1, *[1] * (old.ndim == 2))}),
            "type": lambda: arrays.update({name: np.nan_to_num(old).astype(self.pick(others))}),
            "longer": lambda: arrays.update({name: np.concatenate([old, old])}),
            "shorter": lambda: arrays.update({name: old[:-1]}),
            "empty": lambda: arrays.update({name: old[..., :0]}),
            "axis": lambda: arrays.update({name: old[None]}),
            "values": lambda: arrays.update({name: self.worst(old)}),
        }
        kind = self.pick(list(ways))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of casts
            ways[kind]()
        return kind, f"the array {name}", content_of(self.header, arrays)

    def worst(self, old):
        """Return an array with one value throughout."""
        if old.dtype.kind == "f":
            return np.full_like(old, self.pick([np.nan, np.inf, 0.0, -1.0, 1e30]))
        if old.dtype == bool:
            return ~old
        limits = np.iinfo(old.dtype)
        return np.full_like(old, self.pick([0, -1, 1, limits.min, limits.max, limits.max // 2**20]))

    def in_bytes(self):
        """Change bytes, or the header of safetensors, and leave the checksum."""
        kind = self.pick(["bytes gone", "bytes added", "raw header"])
        if kind == "bytes gone":
            return kind, "", self.content[: int(self.rng.integers(len(self.content)))]
        if kind == "bytes added":
            return kind, "", self.content + bytes(int(self.rng.integers(1, 99)))
        size = int.from_bytes(self.content[:8], "little")
        raw = json.loads(self.content[8 : 8 + size])
        name = self.pick([name for name in raw if name != "__metadata__"])
        raw[name][self.pick(["dtype", "shape", "data_offsets"])] = self.pick(
            ["F16", "I64", [10**12], [-1], [0, 10**15], [5, 1], None, [2**62, 2**62]]
        )
        text = json.dumps(raw).encode()
        return kind, name, len(text).to_bytes(8, "little") + text + self.content[8 + size :]
