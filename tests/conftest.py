"""Fixtures that every room's tests may use."""

import pytest
import torch


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
