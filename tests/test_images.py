"""Loaders of images on files of the published layouts, and sequences that are made of images."""

import dataclasses
import gzip
import io
import os
import pickle
import struct
import tarfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tsrnn.datasets import LabelledImages, load_cifar10, load_mnist, noise_padded, pixel_sequences

SHARED = Path(__file__).parents[2] / "shared" / "data"
MNIST_HOME, SAMPLE = SHARED / "mnist", SHARED / "cifar10" / "cifar10_sample.npz"
RNG = np.random.default_rng(0)
DIGITS = RNG.integers(256, size=(6, 28, 28), dtype=np.uint8)
RECORDS = RNG.integers(256, size=(15, 3072), dtype=np.uint8)  # red, green, blue, each by rows
LABELS = RNG.integers(10, size=15)

needs_mnist = pytest.mark.skipif(not MNIST_HOME.is_dir(), reason=f"MNIST is not in {MNIST_HOME}")
needs_sample = pytest.mark.skipif(not SAMPLE.is_file(), reason=f"there is no {SAMPLE}")


def idx(array):
    head = struct.pack(">BBBB", 0, 0, 8, array.ndim)
    return head + struct.pack(f">{array.ndim}I", *array.shape) + array.astype(np.uint8).tobytes()


def write_mnist(folder, images=None, labels=None, end="", part="train"):
    folder.mkdir(parents=True, exist_ok=True)
    pack = gzip.compress if end else bytes
    files = {"images-idx3": idx(DIGITS) if images is None else images,
             "labels-idx1": idx(np.arange(6)) if labels is None else labels}  # fmt: skip
    for name, content in files.items():
        (folder / f"{part}-{name}-ubyte{end}").write_bytes(pack(content))
    return folder


def python_2_pickle(pixels, labels):
    """Bytes as Python 2 and its numpy wrote them: strings of bytes, the old name of a module."""
    count, width = pixels.shape
    return (
        b"\x80\x02}q\x00(U\x04dataq\x01cnumpy.core.multiarray\n_reconstruct\nq\x02cnumpy\nndarray\n"
        b"q\x03K\x00\x85q\x04U\x01bq\x05\x87q\x06Rq\x07(K\x01" + b"K" + bytes([count])
        + b"M" + struct.pack("<H", width) + b"\x86q\x08cnumpy\ndtype\nq\tU\x02u1q\nK\x00K\x01\x87q"
        b"\x0bRq\x0c(K\x03U\x01|q\rNNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x0eb\x89T"
        + struct.pack("<i", pixels.size) + pixels.tobytes() + b"q\x0ftq\x10bU\x06labelsq\x11](K"
        + b"K".join(bytes([label]) for label in labels) + b"eU\x0bbatch_labelU\x08batch 1 u."
    )  # fmt: skip


def python_3_pickle(protocol):
    return lambda pixels, labels: pickle.dumps(
        {"data": pixels, "labels": [int(label) for label in labels]}, protocol
    )


def binary(pixels, labels):
    return np.column_stack([labels.astype(np.uint8), pixels]).tobytes()


def files_of(layout, write):
    """Files of the layout by name: three images in each of five batches, six to test."""
    end = "" if layout.endswith("py") else ".bin"
    files = {
        f"{layout}/data_batch_{i + 1}{end}": write(
            RECORDS[3 * i : 3 * i + 3], LABELS[3 * i : 3 * i + 3]
        )
        for i in range(5)
    }
    return files | {f"{layout}/test_batch{end}": write(RECORDS[:6], LABELS[:6])}


def write_folder(home, files):
    for name, content in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(content)
    return home


def write_archive(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path.parent


def write_npz(home):
    images = RECORDS.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    np.savez(home / "cifar10.npz", x_train=images, y_train=LABELS[:, None], x_test=images[:6],
             y_test=LABELS[:6].astype(np.uint8))  # fmt: skip
    return home


def with_entries_changed(content, place, value):
    """Zip file whose entries of the directory at its end have another byte."""
    content = bytearray(content)
    start = content.find(b"PK\x01\x02")
    while start >= 0:
        content[start + place] = value
        start = content.find(b"PK\x01\x02", start + 4)
    return bytes(content)


PY, BIN = "cifar-10-batches-py", "cifar-10-batches-bin"
LAYOUTS = {
    "pickles of Python 2": lambda home: write_folder(home, files_of(PY, python_2_pickle)),
    "pickles of protocol 2": lambda home: write_folder(home, files_of(PY, python_3_pickle(2))),
    "pickles of protocol 4": lambda home: write_folder(home, files_of(PY, python_3_pickle(4))),
    "binary": lambda home: write_folder(home, files_of(BIN, binary)),
    "archive of pickles": lambda home: write_archive(
        home / "cifar-10-python.tar.gz", files_of(PY, python_2_pickle)
    ),
    "archive of binary files": lambda home: write_archive(
        home / "cifar-10-binary.tar.gz", files_of(BIN, binary)
    ),
    "npz": write_npz,
}


@pytest.mark.parametrize("end", ["", ".gz"])
@pytest.mark.parametrize("inside", ["", "MNIST/raw"])
def test_mnist_is_read_from_idx_files(tmp_path, end, inside):
    write_mnist(tmp_path / inside, end=end)
    write_mnist(tmp_path / inside, idx(DIGITS[:2]), idx(np.array([7, 9])), end, "t10k")
    train, test = (load_mnist(part, data_home=tmp_path, verify=False) for part in ("train", "test"))
    assert train.images.dtype == np.uint8
    assert train.labels.dtype == np.int64
    np.testing.assert_array_equal(train.images, DIGITS[..., None])
    np.testing.assert_array_equal(train.labels, np.arange(6))
    np.testing.assert_array_equal(test.labels, [7, 9])
    assert train.classes[7] == "7"


def test_images_are_frozen(tmp_path):
    train = load_mnist("train", data_home=write_mnist(tmp_path), verify=False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        train.labels = np.zeros(6, np.int64)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (idx(DIGITS)[:-1], None, "must hold 6 x 28 x 28 bytes after its head.*got 4703"),
        (idx(DIGITS) + b"x", None, "got 4705"),
        (b"", None, "got an empty file"),
        (b"\x00\x00\x08\x03\x00", None, "must be an idx file of bytes with 3 axes"),
        (idx(DIGITS.reshape(6, -1)), None, "with 3 axes, beginning with 00000803; got 00000802"),
        (struct.pack(">BBBBIII", 0, 0, 8, 3, 2**31, 2**31, 2**31), None, "got 0"),
        (None, idx(np.arange(5)), "equally many; got 6 and 5"),
        (None, idx(np.arange(6) + 5), "labels of MNIST must be int64 from 0 to 9; got .* 5 to 10"),
        (idx(DIGITS[:0]), idx(np.arange(0)), "at least one pixel"),
        (idx(DIGITS[:, :20, :]), None, "must have 28 x 28 pixels; got 20 x 28"),
        (idx(np.zeros((6, 20, 31))), None, "must have 28 x 28 pixels; got 20 x 31"),
    ],
)
def test_damaged_mnist_is_refused(tmp_path, images, labels, message):
    with pytest.raises(ValueError, match=message):
        load_mnist("train", data_home=write_mnist(tmp_path, images, labels), verify=False)


def test_files_that_are_not_the_published_ones_are_refused(tmp_path):
    with pytest.raises(
        ValueError, match=r"not the published train-images-idx3-ubyte.*verify=False"
    ):
        load_mnist("train", data_home=write_mnist(tmp_path))


def test_half_a_gzip_file_is_refused(tmp_path):
    file = write_mnist(tmp_path, end=".gz") / "train-labels-idx1-ubyte.gz"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(ValueError, match="must be a complete gzip file"):
        load_mnist("train", data_home=tmp_path, verify=False)


def test_a_small_file_that_decompresses_to_much_is_refused_in_little_memory(tmp_path):
    path = write_mnist(tmp_path, end=".gz") / "train-images-idx3-ubyte.gz"
    # A gzip file may have many members: 128 of 4 MiB, of which a limit of 64 MiB is read.
    path.write_bytes(gzip.compress(bytes(2**22)) * 128)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=f"must hold at most {2**26} bytes; its content is"):
            load_mnist("train", data_home=tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * 2**26


@pytest.mark.parametrize("data_home", [None, 3, b"folder"])
@pytest.mark.parametrize("load", [load_mnist, load_cifar10])
def test_a_folder_must_be_a_path(load, data_home):
    with pytest.raises(TypeError, match="data_home must be a path; got"):
        load("train", data_home=data_home)


@pytest.mark.parametrize(
    ("load", "source"), [(load_mnist, "cvdf-datasets"), (load_cifar10, r"cs\.toronto\.edu")]
)
def test_an_empty_folder_and_an_unknown_part_are_refused(tmp_path, load, source):
    with pytest.raises(FileNotFoundError, match=f"data_home must hold .*{source}"):
        load("train", data_home=tmp_path)
    for part in ("validation", None, ["train"]):
        with pytest.raises(ValueError, match=r"part must be one of \('train', 'test'\)"):
            load(part, data_home=tmp_path)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_layouts_of_cifar_10_have_the_same_images(tmp_path, layout):
    home = LAYOUTS[layout](tmp_path)
    data = load_cifar10("train", data_home=home, verify=False)
    assert data.images.shape == (15, 32, 32, 3)
    for i, row, column, colour in ((0, 0, 0, 0), (4, 31, 2, 1), (14, 5, 30, 2)):
        expected = RECORDS[i, 1024 * colour + 32 * row + column]
        assert data.images[i, row, column, colour] == expected
    np.testing.assert_array_equal(data.labels, LABELS)
    test = load_cifar10("test", data_home=home, verify=False)
    np.testing.assert_array_equal(test.images, data.images[:6])
    assert data.classes[:3] == ("airplane", "automobile", "bird")


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("pickles of Python 2", "must have MD5 c99cafc152244af753f735de768cd75f"),
        ("binary", "the part 'train' must have 50000 images; got 15"),
        ("archive of pickles", "must have MD5 c58f30108f718f92721af3b95e74349a"),
        ("archive of binary files", "must have MD5 c32a1d4ab5d03f1284b67883e8d87530"),
        ("npz", "no published checksum"),
    ],
)
def test_a_part_of_cifar_10_is_not_the_published_data(tmp_path, layout, message):
    with pytest.raises(ValueError, match=message):
        load_cifar10("train", data_home=LAYOUTS[layout](tmp_path))


def test_binary_files_of_the_published_size_pass(tmp_path):
    folder = tmp_path / BIN
    folder.mkdir()
    with (folder / "test_batch.bin").open("wb") as file:
        file.truncate(10_000 * 3073)  # black airplanes
    test = load_cifar10("test", data_home=tmp_path)
    assert test.images.shape == (10_000, 32, 32, 3)
    assert not test.images.any()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (python_2_pickle(RECORDS, LABELS)[:-40], "cannot be read"),
        (b"", "EOFError"),
        (pickle.dumps([1, 2]), "cannot be read"),
        (pickle.dumps({"data": RECORDS}, 4), "KeyError: 'labels'"),
        (pickle.dumps({"data": RECORDS[:, :9].copy(), "labels": [1] * 15}, 4), r"shape \(15, 9\)"),
        (pickle.dumps({"data": RECORDS, "labels": [1] * 14}, 4), r"'data' has shape \(15, 3072\)"),
        (pickle.dumps({"data": RECORDS / 1.0, "labels": [1] * 15}, 4), "has the type 'f8'"),
        (pickle.dumps({"data": RECORDS, "labels": ["a"] * 15}, 4), "'labels' are .'a', 'a'"),
        (pickle.dumps({"data": RECORDS, "labels": (1,) * 15}, 4), "a list of N integers"),
        (pickle.dumps({"data": RECORDS.tolist(), "labels": [1] * 15}, 4), "AttributeError"),
        (pickle.dumps({"data": RECORDS, "labels": [11] * 15}, 4), "from 0 to 9; got int64 from"),
    ],
)
def test_damaged_pickles_are_refused(tmp_path, content, message):
    write_folder(tmp_path, {f"{PY}/test_batch": content})
    with pytest.raises(ValueError, match=message):
        load_cifar10("test", data_home=tmp_path, verify=False)


class Harmful:
    """An object whose pickle runs code when it is read as usual."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize("layout", ["folder", "archive"])
def test_pickles_that_run_code_are_refused_before_they_do(tmp_path, protocol, layout):
    touched = tmp_path / "touched"
    harmful = [
        Harmful(os.mkdir, str(touched)),
        Harmful(eval, f"__import__('os').mkdir({str(touched)!r})"),
        Harmful(getattr, np.ndarray, "tofile"),
        Harmful(np.fromfile, os.devnull),
    ]
    for number, item in enumerate(harmful):
        home = tmp_path / str(number)
        home.mkdir()
        content = pickle.dumps({"data": RECORDS, "labels": [item]}, protocol)
        files = {f"{PY}/test_batch": content}
        if layout == "folder":
            write_folder(home, files)
        else:
            write_archive(home / "cifar-10-python.tar.gz", files)
        with pytest.raises(ValueError, match="is neither an array nor a container"):
            load_cifar10("test", data_home=home, verify=False)
        assert not touched.exists()
    pickle.loads(pickle.dumps(harmful[0], protocol))
    assert touched.exists()  # so that the test could have failed


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_pickle_with_a_changed_byte_gives_images_or_a_value_error(tmp_path_factory, data):
    content = bytearray(python_2_pickle(RECORDS[:1, :], LABELS[:1]))
    head = [*range(220), *range(len(content) - 60, len(content))]  # what is no pixel
    # At an "r" CPython takes memory for an index of four bytes, which may be more than there is.
    values = st.integers(0, 255).filter(lambda value: value != ord("r"))
    content[data.draw(st.sampled_from(head))] = data.draw(values)
    home = tmp_path_factory.mktemp("changed")
    write_folder(home, {f"{PY}/test_batch": bytes(content)})
    try:
        images = load_cifar10("test", data_home=home, verify=False).images
    except ValueError:
        return
    assert images.shape == (1, 32, 32, 3)


def test_damaged_binary_files_and_archives_are_refused(tmp_path):
    write_folder(tmp_path, {f"{BIN}/test_batch.bin": b"\x00" * 3074})
    with pytest.raises(ValueError, match="records of 3073 bytes.*got 3074"):
        load_cifar10("test", data_home=tmp_path, verify=False)
    with pytest.raises(FileNotFoundError, match=r"must hold data_batch_1\.bin"):
        load_cifar10("train", data_home=tmp_path, verify=False)
    other = tmp_path / "other"
    other.mkdir()
    archive = other / "cifar-10-binary.tar.gz"
    write_archive(archive, {f"{BIN}/test_batch.bin": binary(RECORDS, LABELS)})
    with pytest.raises(FileNotFoundError, match="must hold .*data_batch_1"):
        load_cifar10("train", data_home=other, verify=False)
    archive.write_bytes(archive.read_bytes()[:-2000])
    with pytest.raises(ValueError, match=r"must be a complete tar\.gz"):
        load_cifar10("test", data_home=other, verify=False)


def test_a_link_in_an_archive_is_not_followed(tmp_path):
    with tarfile.open(tmp_path / "cifar-10-binary.tar.gz", "w:gz") as archive:
        link = tarfile.TarInfo(f"{BIN}/test_batch.bin")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with pytest.raises(FileNotFoundError, match="must hold"):
        load_cifar10("test", data_home=tmp_path, verify=False)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_a_link_to_itself_is_refused(tmp_path, kind):
    name = f"{BIN}/test_batch.bin"
    with tarfile.open(tmp_path / "cifar-10-binary.tar.gz", "w:gz") as archive:
        link = tarfile.TarInfo(name)
        link.type, link.linkname = kind, name if kind == tarfile.LNKTYPE else "test_batch.bin"
        archive.addfile(link)
    with pytest.raises(FileNotFoundError, match="test_batch.bin is no file"):
        load_cifar10("test", data_home=tmp_path, verify=False)


def test_a_batch_of_an_archive_has_a_largest_size(tmp_path):
    member = tarfile.TarInfo(f"{BIN}/test_batch.bin")
    # A sparse file: a hole of a terabyte that takes no place in the archive.
    member.pax_headers = {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(2**40)}
    with tarfile.open(tmp_path / "cifar-10-binary.tar.gz", "w:gz") as archive:
        archive.addfile(member)
    with pytest.raises(ValueError, match=f"at most {2**30} bytes; got {2**40}"):
        load_cifar10("test", data_home=tmp_path, verify=False)


@pytest.mark.parametrize(
    ("arrays_of", "message"),
    [
        ({"x_train": RECORDS}, "y_train"),
        ({"x_train": RECORDS, "y_train": LABELS}, r"\(N, 32, 32, 3\).* got \(15, 3072\)"),
        ({"x_train": RECORDS.reshape(-1, 3, 32, 32), "y_train": LABELS}, r"got \(15, 3, 32, 32\)"),
        ({"x_train": np.uint8(1), "y_train": LABELS}, r"got \(\) and \(15,\)"),
        (
            {"x_train": np.zeros((4, 32, 32, 3), np.uint8), "y_train": np.zeros((2, 2), int)},
            r"shape \(N,\) or \(N, 1\); got \(4, 32, 32, 3\) and \(2, 2\)",
        ),
        ({"x_train": np.zeros((15, 32, 32, 3)), "y_train": LABELS}, "got float64"),
        ({"x_train": np.zeros((15, 32, 32, 3), np.uint8), "y_train": LABELS / 2}, "integers"),
        ({"x_train": np.array([{}]), "y_train": LABELS}, "cannot be read"),
    ],
)
def test_other_npz_files_are_refused(tmp_path, arrays_of, message):
    np.savez(tmp_path / "cifar10.npz", **arrays_of)
    with pytest.raises(ValueError, match=message):
        load_cifar10("train", data_home=tmp_path, verify=False)


@pytest.mark.parametrize(("place", "value"), [(8, 1), (10, 99)])
def test_an_npz_that_is_encrypted_or_compressed_otherwise_is_refused(tmp_path, place, value):
    path = write_npz(tmp_path) / "cifar10.npz"
    path.write_bytes(with_entries_changed(path.read_bytes(), place, value))
    with pytest.raises(ValueError, match="cannot be read"):
        load_cifar10("train", data_home=tmp_path, verify=False)


def test_a_file_of_one_array_is_no_npz(tmp_path):
    with (tmp_path / "cifar10.npz").open("wb") as file:
        np.save(file, LABELS)
    with pytest.raises(ValueError, match="must be an .npz"):
        load_cifar10("train", data_home=tmp_path, verify=False)


IMAGES = arrays.arrays(np.uint8, st.tuples(*[st.integers(1, 4)] * 3, st.sampled_from([1, 3])))


@given(IMAGES, st.integers(0, 2**32))
def test_pixels_and_their_order_come_back(images, seed):
    count, height, width, colours = images.shape
    order = np.random.default_rng(seed).permutation(height * width)
    x = pixel_sequences(images, seed)
    assert x.shape == (count, height * width, colours)
    assert x.dtype == np.float32
    np.testing.assert_array_equal(x, pixel_sequences(images, order))
    back = np.rint(255 * x[:, np.argsort(order)]).reshape(images.shape)
    np.testing.assert_array_equal(back, images)


def test_standardised_pixels_have_mean_zero_and_variance_one():
    images = RECORDS.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    x = pixel_sequences(images, mean=images.mean((0, 1, 2)) / 255, std=images.std((0, 1, 2)) / 255)
    np.testing.assert_allclose(x.mean((0, 1)), 0, atol=1e-6)
    np.testing.assert_allclose(x.std((0, 1)), 1, atol=1e-6)


@given(IMAGES, st.integers(0, 2**32), st.integers(0, 5), st.floats(0, 3))
def test_rows_come_first_then_noise(images, seed, steps, deviation):
    count, height, width, colours = images.shape
    x = noise_padded(images, height + steps, random_state=seed, padding_std=deviation)
    assert x.shape == (count, height + steps, colours * width)
    assert x.dtype == np.float32
    for i, row, column, colour in np.ndindex(images.shape):
        assert round(255 * x[i, row, colour * width + column]) == images[i, row, column, colour]
    noise = np.random.default_rng(seed).standard_normal((count, steps, colours * width), np.float32)
    np.testing.assert_allclose(x[:, height:], deviation * noise, rtol=1e-6)


def test_noise_is_of_each_image_or_of_all():
    images = np.zeros((3, 32, 32, 3), np.uint8)
    each, shared = (noise_padded(images, random_state=0, shared=s) for s in (False, True))
    assert np.ptp(shared, axis=0).max() == 0
    correlations = np.corrcoef(each[:, 32:].reshape(3, -1))[np.triu_indices(3, 1)]
    assert abs(correlations).max() < 4 / np.sqrt(968 * 96)
    assert each[:, 32:].std() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"permutation": [0, 1, 2, 2]}, "each of the numbers 0 to 3 once; got 3 different"),
        ({"permutation": [0, 1, 2]}, r"int64 of shape \(3,\)"),
        ({"permutation": [0.0, 1, 2, 3]}, "got float64"),
        ({"permutation": True}, "got bool"),
        ({"permutation": -1}, "permutation must be an integer of at least 0"),
        ({"permutation": "rows"}, "got <U4"),
        ({"std": 0.0}, "std positive"),
        ({"std": np.nan}, "std positive"),
        ({"mean": [0.1, 0.2]}, "for each of 3 colours"),
        ({"mean": "x"}, "mean and std must be finite numbers.* got 'x' and 1.0"),
        ({"mean": "0.5"}, "mean and std must be finite numbers"),
        ({"std": [[1.0], [1.0, 2.0]]}, "mean and std must be finite numbers"),
        ({"std": None}, "mean and std must be finite numbers"),
        ({"std": 1e-300}, "finite in float32"),
        ({"std": 5e-324}, "finite in float32"),
        ({"std": [1.0, 2e-39, 1.0]}, "finite in float32"),
        ({"mean": 1e300}, "finite in float32"),
    ],
)
def test_arguments_of_pixel_sequences_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        pixel_sequences(np.zeros((2, 2, 2, 3), np.uint8), **options)


@pytest.mark.parametrize("make", [pixel_sequences, noise_padded])
@pytest.mark.parametrize(
    "images",
    [np.zeros((2, 4, 4, 3)), np.zeros((4, 4, 3), np.uint8), np.zeros((0, 4, 4, 3), np.uint8), [[1]],
     "images", None],
)  # fmt: skip
def test_images_must_be_bytes_of_four_axes(make, images):
    with pytest.raises(ValueError, match="images must"):
        make(images)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 3}, "length must be an integer of at least 4"),
        ({"length": 10.0}, "length must be an integer of at least 4"),
        ({"padding_std": -1.0}, "padding_std must be finite and not negative"),
        ({"padding_std": np.nan}, "padding_std must be finite and not negative"),
        ({"padding_std": 1e300}, "padding_std must leave noise finite in float32"),
        ({"padding_std": 1e38}, "padding_std must leave noise finite in float32"),
    ],
)
def test_arguments_of_noise_padded_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        noise_padded(np.zeros((2, 4, 4, 3), np.uint8), **options)


@pytest.mark.parametrize(
    "labels",
    [np.zeros(3, np.int64), np.zeros(2), np.array([0, 2]), np.array([-1, 0]), [0, 1], None],
)
def test_labels_are_classes(labels):
    with pytest.raises(ValueError, match="labels of Two must be"):
        LabelledImages("Two", np.zeros((2, 4, 4, 1), np.uint8), labels, ("a", "b"))


@needs_mnist
def test_the_published_digits():
    train, test = (load_mnist(part, data_home=MNIST_HOME) for part in ("train", "test"))
    assert train.images.shape == (60_000, 28, 28, 1)
    assert test.images.shape == (10_000, 28, 28, 1)
    # Images of each digit in the training part, and mean and deviation that are often subtracted.
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    np.testing.assert_array_equal(np.bincount(train.labels), counts)
    assert train.images.mean() / 255 == pytest.approx(0.1307, abs=5e-5)
    assert train.images.std() / 255 == pytest.approx(0.3081, abs=5e-5)


@needs_sample
def test_the_sample_of_photographs(tmp_path):
    image = pytest.importorskip("PIL.Image")
    with np.load(SAMPLE) as file:
        ends, content = file["test_end"], file["test_jpeg"].tobytes()
        pieces = [content[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]
        images = np.stack([np.asarray(image.open(io.BytesIO(piece))) for piece in pieces])
        np.savez(tmp_path / "cifar10.npz", x_test=images, y_test=file["test_label"])
    data = load_cifar10("test", data_home=tmp_path, verify=False)
    np.testing.assert_array_equal(np.bincount(data.labels), [200] * 10)
    # Means of the published training part by colour; a fiftieth of it, as JPEG, is near.
    mean = pixel_sequences(data.images).mean((0, 1), dtype=np.float64)
    np.testing.assert_allclose(mean, [0.4914, 0.4822, 0.4465], atol=0.02)
