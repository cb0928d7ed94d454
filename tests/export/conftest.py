"""Simulated panels, small forecasters, and their programs as functions of arrays."""

import io
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import torch

SMALL = {
    "horizon": 6,
    "input_size": 12,
    "hidden_size": 8,
    "n_layers": 1,
    "max_epochs": 2,
    "refit": False,
    "random_state": 0,
}


def panel(lengths, seed=0, exog=(), name="s"):
    """A long frame of seasonal series of some lengths, each at its own positive level."""
    rng, parts = np.random.default_rng(seed), []
    for i, rows in enumerate(lengths):
        t = np.arange(rows)
        y = 100 * (i + 1) + 10 * np.sin(2 * np.pi * t / 7) + rng.normal(0, 2, rows)
        days = pd.date_range("2021-01-04", periods=rows)
        columns = {c: rng.normal(5, 2, rows) for c in exog}
        parts.append(pd.DataFrame({"unique_id": f"{name}{i}", "ds": days, "y": y, **columns}))
    return pd.concat(parts, ignore_index=True)


def pair(rows=120, seed=0):
    """A wide frame of two series and a column that is known ahead."""
    columns = {c: panel([rows], seed + i).y.to_numpy() for i, c in enumerate(("a", "b", "known"))}
    return pd.DataFrame(columns, index=pd.date_range("2021-01-04", periods=rows))


def future_of(df, h=6, seed=1):
    """Values of the column known ahead for the h days after every series of a long frame."""
    rng, parts = np.random.default_rng(seed), []
    for name, rows in df.groupby("unique_id", sort=False):
        days = pd.date_range(rows.ds.iloc[-1], periods=h + 1)[1:]
        known = rng.normal(5, 2, h)
        parts.append(pd.DataFrame({"unique_id": name, "ds": days, "known": known}))
    return pd.concat(parts, ignore_index=True)


def padded(df, columns):
    """Rows (S, T, columns) of the series of a long frame, NaN after their ends, and lengths."""
    series = [rows[list(columns)].to_numpy() for _, rows in df.groupby("unique_id", sort=False)]
    lengths = np.array([len(rows) for rows in series])
    filled = np.full((len(series), lengths.max(), len(columns)), np.nan)
    for i, rows in enumerate(series):
        filled[i, : len(rows)] = rows
    return filled, lengths


class Predicted(NamedTuple):
    """Forecasts (S, h) of a long frame and their intervals (S, h, levels)."""

    forecast: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def predicted(frame, model, levels, h=6):
    """What a long frame of `predict` holds, as the arrays of a program."""

    def column(name):
        return frame[name].to_numpy().reshape(-1, h)

    ends = [
        np.stack([column(f"{model}-{side}-{level}") for level in levels], -1) if levels else None
        for side in ("lo", "hi")
    ]
    return Predicted(column(model), *ends)


def assert_forecasts(found, expected, rtol=1e-5):
    """The outputs of a program of one target are these forecasts."""
    np.testing.assert_allclose(found["forecast"][..., 0], expected.forecast, rtol=rtol)
    if expected.lower is not None:
        np.testing.assert_allclose(found["lower"][:, :, 0], expected.lower, rtol=rtol)
        np.testing.assert_allclose(found["upper"][:, :, 0], expected.upper, rtol=rtol)


def torch_program(source):
    """A function of arrays by name, from a file of torch or its bytes."""
    source = io.BytesIO(source) if isinstance(source, bytes) else source
    return of_arrays(torch.export.load(source).module())


def of_arrays(module):
    """A module as a function of arrays by name."""

    def run(**given):
        tensors = {name: torch.tensor(value) for name, value in given.items()}
        return {name: value.numpy() for name, value in module(**tensors).items()}

    return run


def onnx_program(source):
    """A function of arrays by name, from an ONNX file or its bytes."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="runs ONNX models")
    session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda **given: dict(zip(names, session.run(names, given), strict=True))


@pytest.fixture(scope="session")
def kit():
    """The functions above, for tests."""
    return SimpleNamespace(
        SMALL=SMALL,
        panel=panel,
        pair=pair,
        future_of=future_of,
        padded=padded,
        predicted=predicted,
        assert_forecasts=assert_forecasts,
        of_arrays=of_arrays,
        torch_program=torch_program,
        onnx_program=onnx_program,
    )


@pytest.fixture
def plain_scan(monkeypatch):
    """Scans as plain loops: what a program computes, without waiting for it to be traced."""
    import torch._higher_order_ops as operators

    def scan(step, carried, rows):
        given = []
        for row in zip(*(part.unbind(0) for part in rows), strict=True):
            carried, out = step(carried, row)
            given.append(out)
        return carried, torch.stack(given)

    monkeypatch.setattr(operators, "scan", scan)
