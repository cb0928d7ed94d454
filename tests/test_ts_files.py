"""The reader of .ts files against files written here and files of the archives."""

import doctest
import gzip
import importlib
import zipfile
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.datasets import read_ts

ARCHIVE = Path(__file__).parents[2] / "shared" / "data" / "uea_ucr"
needs_archive = pytest.mark.skipif(
    not ARCHIVE.is_dir(), reason=f"the files of the UEA and UCR archives are not in {ARCHIVE}"
)
TOY = ["@problemName Toy", "@classLabel true a b", "@data"]


def written(folder, lines, name="toy.ts"):
    path = folder / name
    data = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@needs_archive
@pytest.mark.parametrize(
    ("file", "shape", "n_labels"),
    [
        ("BasicMotions_TRAIN", (40, 100, 6), 4),
        ("BasicMotions_TEST", (40, 100, 6), 4),
        ("ACSF1_TRAIN", (100, 1460, 1), 10),
        ("OSULeaf_TRAIN", (200, 427, 1), 6),
        ("OSULeaf_TEST", (242, 427, 1), 6),
    ],
)
def test_archived_files_of_equal_lengths(file, shape, n_labels):
    data = read_ts(ARCHIVE / f"{file}.ts.gz")
    assert data.name == file.split("_")[0]
    assert data.X.shape == shape
    assert data.X.dtype == np.float64
    assert np.isfinite(data.X).all()
    assert data.y.shape == shape[:1]
    assert set(data.y) == set(data.labels)
    assert len(data.labels) == n_labels


@needs_archive
def test_archived_values_stand_where_the_text_has_them():
    data = read_ts(str(ARCHIVE / "BasicMotions_TRAIN.ts.gz"))
    with gzip.open(ARCHIVE / "BasicMotions_TRAIN.ts.gz", "rt") as file:
        text = file.read().split("@data\n")[1].splitlines()
    assert data.labels == ("Standing", "Running", "Walking", "Badminton")
    assert data.X[0, :3, 0].tolist() == [0.079106, 0.079106, -0.903497]
    for row in (0, 17, 39):
        *dimensions, label = text[row].split(":")
        assert data.y[row] == label
        for i, dimension in enumerate(dimensions):
            expected = np.loadtxt([dimension], delimiter=",")
            np.testing.assert_array_equal(data.X[row, :, i], expected)


@needs_archive
@pytest.mark.parametrize(("part", "n"), [("TRAIN", 270), ("TEST", 370)])
def test_archived_files_of_unequal_lengths(part, n):
    data = read_ts(ARCHIVE / f"JapaneseVowels_{part}.ts.gz")
    assert isinstance(data.X, list)
    assert len(data.X) == len(data.y) == n
    assert {sequence.shape[1] for sequence in data.X} == {12}
    lengths = [len(sequence) for sequence in data.X]
    assert min(lengths) == 7
    assert max(lengths) in (26, 29)
    assert data.labels == tuple("123456789")


finite = st.floats(allow_nan=False, allow_infinity=False)
cases = st.integers(1, 3).flatmap(
    lambda d: st.lists(
        st.tuples(
            st.integers(1, 4).flatmap(
                lambda t: st.lists(
                    st.lists(finite | st.just(np.nan), min_size=t, max_size=t),
                    min_size=d,
                    max_size=d,
                )
            ),
            st.sampled_from(["up", "down"]),
        ),
        min_size=1,
        max_size=5,
    )
)


@settings(deadline=None, max_examples=60)
@given(cases=cases, zipped=st.booleans())
def test_what_is_written_is_read(cases, zipped, tmp_path_factory):
    def text(value):
        return "?" if np.isnan(value) else repr(value)

    lines = ["# comment", "@problemName A b", "@ClassLabel TRUE up down", "", "@Data"]
    for dimensions, label in cases:
        lines.append(":".join([*(",".join(map(text, row)) for row in dimensions), label]))
    name = "x.ts.gz" if zipped else "x.ts"
    data = read_ts(written(tmp_path_factory.mktemp("ts"), lines, name))
    assert (data.name, data.labels) == ("A b", ("up", "down"))
    assert data.y.tolist() == [label for _, label in cases]
    assert isinstance(data.X, np.ndarray) == (len({len(rows[0]) for rows, _ in cases}) == 1)
    for sequence, (dimensions, _) in zip(data.X, cases, strict=True):
        np.testing.assert_array_equal(sequence, np.array(dimensions).T)


def test_targets_are_numbers(tmp_path):
    data = read_ts(written(tmp_path, ["@targetLabel true", "@data", "1,2:0.5", "3,4:-1e3"]))
    assert data.y.dtype == np.float64
    assert data.y.tolist() == [0.5, -1000.0]
    assert data.labels == ()
    assert data.X[..., 0].tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_labels_may_be_absent(tmp_path):
    data = read_ts(written(tmp_path, ["@classLabel false", "@data", "1,2:3,4"]))
    assert data.y is None
    assert data.labels == ()
    assert data.X.tolist() == [[[1.0, 3.0], [2.0, 4.0]]]


def test_labels_that_look_like_numbers_stay_text(tmp_path):
    data = read_ts(written(tmp_path, ["@classLabel true 1 01", "@data", "5:01", "6:1"]))
    assert data.y.tolist() == ["01", "1"]


def test_comments_may_be_in_any_encoding(tmp_path):
    path = tmp_path / "toy.ts"
    path.write_bytes(b"#\xe9t\xe9\n" + "\r\n".join([*TOY, "1,2:a"]).encode())
    assert read_ts(path).X.shape == (1, 2, 1)


def test_the_result_does_not_change(tmp_path):
    data = read_ts(written(tmp_path, [*TOY, "1:a"]))
    with pytest.raises(FrozenInstanceError):
        data.name = "other"
    assert data != read_ts(tmp_path / "toy.ts")  # as an object, arrays have no truth
    assert len({data}) == 1


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["@problemName x", "@timeStamps true", "@data"], "line 2: time stamps are not supp"),
        (["@problemName x", "1,2,3"], "line 2: a tag such as .*got '1,2,3'"),
        (["@problemName x", "# end"], "line 1: the file ends before @data"),
        (["@ data"], "line 1: tags must be among problemname.*got @$"),
        ([], "line 0: the file ends before @data"),
        (["@color red", "@data"], "line 1: tags must be among problemname.*got @color"),
        (["@missing perhaps"], "line 1: @missing must be followed by true or false.*'perhaps'"),
        (["@missing true", "@MISSING true"], "line 2: @missing comes twice"),
        (["@dimensions six"], "line 1: @dimensions must be .* positive integer; got 'six'"),
        (["@dimensions " + 5000 * "9"], "line 1: @dimensions must be .* positive integer"),
        (["@seriesLength 0"], "line 1: @serieslength must be .* positive integer; got '0'"),
        (["@classLabel true", "@data"], "line 1: .*different classes; got"),
        (["@classLabel true a a", "@data"], "line 1: .*different classes; got"),
        (["@targetLabel true", "@classLabel true a"], "line 2: .*not both"),
        (TOY, "has no cases after @data"),
        ([*TOY, "1,2:a", "", "1,2:c"], r"line 6: the label must be among \['a', 'b'\]; got 'c'"),
        ([*TOY, "1,2,3"], "line 4: the label must be among .* got '1,2,3'"),
        ([*TOY, "1,x,3:a"], "line 4: value 2 of a dimension is no finite number: 'x'"),
        ([*TOY, "1,,3:a"], "line 4: value 2 of a dimension is no finite number: ''"),
        ([*TOY, "1,2_0,3:a"], "line 4: value 2 of a dimension is no finite number: '2_0'"),
        ([*TOY, "１,2:a"], "line 4: value 1 of a dimension is no finite number: '１'"),
        ([*TOY, "1,inf:a"], "line 4: value 2 of a dimension is no finite number: 'inf'"),
        ([*TOY, "1,2:1,2:a", "1,2:a"], "line 5: each case must have 2 dimensions; got 1"),
        ([*TOY, "1,2:1,2,3:a"], r"line 4: all dimensions .* as many values; got \[2, 3\]"),
        (["@univariate true", *TOY, "1:2:a"], "line 5: each case must have 1 dim.*got 2"),
        (["@univariate true", "@dimensions 2", *TOY, "1:2:a"], "line 6: .*contradict"),
        (["@dimension 3", *TOY, "1:2:a"], "line 5: each case must have 3 dimensions; got 2"),
        (["@equalLength true", *TOY, "1,2:a", "1:a"], "line 6: all cases must have 2 .*got 1"),
        (["@seriesLength 3", *TOY, "1,2:a"], "line 5: all cases must have 3 steps.*got 2"),
        (["@missing false", *TOY, "1,?:a"], "line 5: a value is missing, although"),
        (["@targetLabel true", "@data", "1:?"], "line 3: the target must be .*got '\\?'"),
        (["@targetLabel true", "@data", "1:a"], "line 3: the target must be .*got 'a'"),
    ],
)
def test_damaged_files_are_refused_with_the_line(lines, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_ts(written(tmp_path, lines))


@pytest.mark.parametrize("damage", [lambda b: b[:-20], lambda b: b"PK" + b[2:], lambda b: b[:40]])
def test_a_damaged_archive_is_refused(damage, tmp_path):
    rows = np.random.default_rng(0).random((50, 100)).tolist()
    lines = [*TOY, *(",".join(map(str, row)) + ":a" for row in rows)]
    path = written(tmp_path, lines, "toy.ts.gz")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match="cannot be unzipped"):
        read_ts(path)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [(8, 1, "toy.zip cannot be unzipped .*encrypted"), (10, 99, "toy.zip cannot be unzipped")],
)
def test_a_member_that_cannot_be_opened_is_refused(place, value, message, tmp_path):
    path = tmp_path / "toy.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("toy.ts", "\n".join([*TOY, "1:a"]))
    content = bytearray(path.read_bytes())
    # Flags and compression of the member in the directory at the end of the file.
    content[content.find(b"PK\x01\x02") + place] = value
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_ts(path, member="toy.ts")


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_ts(tmp_path / "none.ts")


def test_docstring_examples_run():
    failed, run = doctest.testmod(importlib.import_module("tsrnn.datasets._ts_files"))
    assert run
    assert failed == 0
