"""Fixtures that every room's tests may use, and the cases of a test that `make test` runs."""

import io
import itertools

import pytest
import torch

from tsrnn import load

# A model of each kind: what a test that is marked `few` without cases runs over in `make test`.
KINDS = (
    "ParaRNN", "ParaRNNForecaster", "ParaRNNForecaster, prior", "ParaRNNRegressor",
    "LRUForecaster", "ARMA", "ETS", "GARCH", "VARMA", "DCC", "Croston", "Naive", "SARIMAX", "VAR",
    "Combination",
)  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark as slow all cases of a test but those that its mark `few` names."""
    marked = [item for item in items if item.get_closest_marker("few")]
    whole = not any("::" in argument for argument in config.args)  # no test is chosen by name
    for function, group in itertools.groupby(marked, lambda item: item.function):
        cases = list(group)
        given = cases[0].get_closest_marker("few").args
        absent, kept = list(given), set()
        for item, name in itertools.product(cases, given or KINDS):
            if f"-{name}-" in f"-{item.callspec.id}-":
                kept.add(item)
                absent = [other for other in absent if other != name]
        if whole and (absent or not kept):
            raise pytest.UsageError(f"{function.__qualname__} has no case {absent or KINDS}")
        for item in cases:
            if item not in kept:
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def assert_close():
    """Compare tensors up to some units of rounding of their dtype.

    The error allowed is `roundings` units in the last place of the largest value
    expected, of 1 at least; NaN and infinities must stand in the same places.
    """

    def check(actual, expected, roundings=64.0):
        assert actual.shape == expected.shape
        assert actual.dtype == expected.dtype
        finite = expected[torch.isfinite(expected)].abs()
        scale = max(1.0, finite.max().item() if finite.numel() else 1.0)
        atol = roundings * torch.finfo(expected.dtype).eps * scale
        torch.testing.assert_close(actual, expected, rtol=0.0, atol=atol, equal_nan=True)

    return check


@pytest.fixture(scope="session")
def reloaded():
    """Save a model to a file in memory, and load it."""

    def through_file(model):
        file = io.BytesIO()
        model.save(file)
        file.seek(0)
        return load(file)

    return through_file
