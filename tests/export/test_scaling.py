"""The scaling of new series on tensors is that on arrays."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.data import read_panel
from tsrnn.forecasters import boxcox, fit_scaling, inverse_boxcox, scale_padded

SEASONS = st.sampled_from([1, 2, 7, 30])
LENGTHS = st.lists(st.integers(2, 40), min_size=1, max_size=4)


def frame(lengths, kind, rng):
    """Positive series: noise at several scales, or constants."""
    size = {"small": 1e-9, "noise": 1.0, "large": 1e9, "constant": 0.0}[kind]
    parts = []
    for i, rows in enumerate(lengths):
        y = size * (5 + rng.random(rows)) if size else np.full(rows, 0.1 * (i + 1))
        days = pd.date_range("2021-01-04", periods=rows)
        parts.append(pd.DataFrame({"unique_id": f"s{i}", "ds": days, "y": y}))
    return pd.concat(parts, ignore_index=True)


@settings(deadline=None, max_examples=60)
@given(
    LENGTHS,
    SEASONS,
    st.sampled_from(["small", "noise", "large", "constant"]),
    st.sampled_from([None, 0.0, 0.5]),
    st.integers(0, 9),
)
def test_is_that_of_arrays(lengths, season, kind, exponent, seed):
    panel = read_panel(frame(lengths, kind, np.random.default_rng(seed)), freq="D")
    expected = fit_scaling(panel, panel.lengths, season, exponent)
    raw = torch.full((len(lengths), max(lengths), 1), 1.0, dtype=torch.float64)
    for i, rows in enumerate(lengths):
        raw[i, :rows] = torch.from_numpy(panel.series(i).copy())
    alive = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    location, scale, varies = scale_padded(raw, alive, season, exponent)
    np.testing.assert_allclose(location, expected.target.location, rtol=1e-12)
    np.testing.assert_allclose(scale, expected.target.scale, rtol=1e-9)
    np.testing.assert_array_equal(varies.bool(), ~expected.constant)


@pytest.mark.parametrize("exponent", [None, 0.0, 0.3, 1.0])
def test_box_and_cox(exponent):
    values = np.geomspace(1e-3, 1e3, 13)
    changed = boxcox(values, exponent)
    np.testing.assert_allclose(boxcox(torch.tensor(values), exponent), changed, rtol=1e-13)
    below = np.append(changed, -50.0)
    back = inverse_boxcox(torch.tensor(below), exponent)
    np.testing.assert_allclose(back, inverse_boxcox(below, exponent), rtol=1e-13)
