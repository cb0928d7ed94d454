import numpy as np
import pandas as pd
import pytest

from tsrnn.data import read_panel, windows


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("shape", [(7,), (7, 2), (7, 2, 3)])
def test_windows_are_the_slices(shape, step):
    array = np.random.default_rng(0).normal(size=shape)
    out = windows(array, 3, step)
    expected = [array[i : i + 3] for i in range(0, 5, step)]
    np.testing.assert_array_equal(out, expected)


def test_windows_share_memory_and_cannot_be_written():
    array = np.zeros((100_000, 2))
    out = windows(array, 1000)
    assert out.shape == (99_001, 1000, 2)
    assert np.shares_memory(out, array)
    assert out.base is not None
    array[1000, 1] = 7.0
    assert out[1, 999, 1] == out[1000, 0, 1] == 7.0
    with pytest.raises(ValueError, match="read-only"):
        out[0, 0, 0] = 1.0


@pytest.mark.parametrize(
    ("length", "step", "told"), [(0, 1, "length"), (6, 1, "length"), (2, 0, "step")]
)
def test_windows_refuse(length, step, told):
    with pytest.raises(ValueError, match=f"{told} must"):
        windows(np.zeros((5, 1)), length, step)


def test_windows_of_a_panel_stay_within_series():
    frame = pd.DataFrame(
        {"unique_id": list("aaaabbb"), "ds": [0, 1, 2, 3, 5, 6, 7], "y": np.arange(7.0)}
    )
    panel = read_panel(frame)
    first, second = panel.windows(3)
    np.testing.assert_array_equal(first[..., 0], [[0, 1, 2], [1, 2, 3]])
    np.testing.assert_array_equal(second[..., 0], [[4, 5, 6]])
    assert np.shares_memory(first, panel.values)
    assert np.shares_memory(second, panel.values)
    with pytest.raises(ValueError, match="the series 'b' has only 3"):
        panel.windows(4)
