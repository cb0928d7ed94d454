"""Files give back header and arrays bit by bit; what is no JSON value is named."""

import io

import numpy as np
import pandas as pd
import pytest

from tsrnn.contract import plain, read_file, write_file
from tsrnn.contract._file import FORMAT

ARRAYS = {
    "single": np.arange(6, dtype="float32").reshape(2, 3),
    "double": np.array([np.nan, -np.inf, 5e-324, -0.0]),
    "integers": np.array([[-(2**63)], [2**63 - 1]]),
    "flags": np.array([True, False]),
    "number": np.array(2.5),
    "empty": np.zeros((0, 4)),
    "across": np.arange(6.0).reshape(2, 3).T,
}


def test_arrays_come_back_bit_by_bit(tmp_path):
    write_file(tmp_path / "file", {}, ARRAYS)
    _, arrays = read_file(tmp_path / "file")
    assert set(arrays) == set(ARRAYS)
    for name, array in arrays.items():
        assert (array.dtype, array.shape) == (ARRAYS[name].dtype, ARRAYS[name].shape)
        assert array.tobytes() == ARRAYS[name].tobytes()


def test_the_header_comes_back(tmp_path):
    header = {"class": "Ä", "values": [1, 0.1, None, True, "σ"], "nested": {"a": [[]]}}
    write_file(tmp_path / "file", header, {})
    back, _ = read_file(str(tmp_path / "file"))
    assert {name: back[name] for name in header} == header
    assert back["format"] == FORMAT


def test_open_files_hold_what_named_ones_do(tmp_path):
    held = io.BytesIO()
    write_file(held, {"class": "A"}, ARRAYS)
    write_file(tmp_path / "file", {"class": "A"}, ARRAYS)
    with (tmp_path / "file").open("rb") as opened:
        from_named = read_file(opened)
    held.seek(0)
    from_held = read_file(held)
    (tmp_path / "copy").write_bytes(held.getvalue())
    for header, arrays in (from_named, from_held, read_file(tmp_path / "copy")):
        assert header == from_named[0]
        assert {name: a.tobytes() for name, a in arrays.items()} == {
            name: a.tobytes() for name, a in ARRAYS.items()
        }


def test_damage_of_an_open_file_is_noticed():
    held = io.BytesIO()
    write_file(held, {}, {"a": np.ones(3)})
    for content in (b"", held.getvalue()[:-1], held.getvalue()[1:]):
        with pytest.raises(ValueError, match="the open file is damaged or no model"):
            read_file(io.BytesIO(content))


def test_text_files_are_refused(tmp_path):
    with pytest.raises(TypeError, match="Open it in binary mode"):
        write_file(io.StringIO(), {}, {})
    write_file(tmp_path / "file", {}, {})
    with (
        (tmp_path / "file").open(encoding="latin1") as text,
        pytest.raises(TypeError, match="Open it in binary mode"),
    ):
        read_file(text)


def refusal(path):
    """Return what is said of a file, or None where it holds what was written."""
    try:
        header, arrays = read_file(path)
    except ValueError as error:
        return str(error)
    assert header["class"] == "A"  # a space outside of the header, say, is no damage
    np.testing.assert_array_equal(arrays["a"], np.ones(3))
    np.testing.assert_array_equal(arrays["b"], np.arange(2))
    return None


@pytest.mark.parametrize("flip", [0b1, 0b100, 0b100000])
def test_every_changed_byte_is_noticed(tmp_path, flip):
    path = tmp_path / "file"
    write_file(path, {"class": "A"}, {"a": np.ones(3), "b": np.arange(2)})
    content = path.read_bytes()
    for place in range(8, len(content)):
        broken = bytearray(content)
        broken[place] ^= flip
        path.write_bytes(bytes(broken))
        said = refusal(path)
        assert said is None or str(path) in said


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        ((1, "a", None), [1, "a", None]),
        (np.array([[1, 2]]), [[1, 2]]),
        (pd.Index(["a", 3]), ["a", 3]),
        (np.True_, True),
        ({"dt": np.float64(0.5)}, {"dt": 0.5}),
    ],
)
def test_plain_values(value, expected):
    assert plain(value, "it") == expected


@pytest.mark.parametrize("value", [object(), {1: "a"}, pd.Timestamp(2020, 1, 1), [1, b"x"]])
def test_what_is_no_plain_value_is_named(value):
    with pytest.raises(TypeError, match="to be saved, it must be numbers, strings or lists"):
        plain(value, "it")
