"""Labelled images of MNIST and CIFAR-10, read from their published files and verified."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import tarfile
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tsrnn.datasets._files import as_folder, read_file

__all__ = ["LabelledImages", "check_images", "load_cifar10", "load_mnist"]

PARTS = ("train", "test")
DIGITS = tuple("0123456789")
OBJECTS = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
COUNTS = {"MNIST": {"train": 60_000, "test": 10_000}, "CIFAR-10": {"train": 50_000, "test": 10_000}}
# Files of MNIST, images and labels, with SHA-256 of their uncompressed content.
MNIST = {
    "train": {
        "train-images-idx3-ubyte":
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte":
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    },
    "test": {
        "t10k-images-idx3-ubyte":
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte":
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
}  # fmt: skip
MNIST_SOURCE = "http://yann.lecun.com/exdb/mnist/ or storage.googleapis.com/cvdf-datasets/mnist/"
CIFAR_SOURCE = "https://www.cs.toronto.edu/~kriz/cifar.html"
CIFAR_SHAPE = (3, 32, 32)  # red, green, blue, each by rows
MNIST_SHAPE = (28, 28)
# Largest size of a file in bytes. The largest published file has 47 MB (training images of MNIST);
# other data in these layouts may be larger.
MOST, MOST_OTHER = 2**26, 2**30
# Layouts of CIFAR-10: folder, archive, MD5 of the archive, MD5 of each file if published.
PICKLES = (
    "cifar-10-batches-py", "cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a",
    {
        "train": {
            "data_batch_1": "c99cafc152244af753f735de768cd75f",
            "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
            "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
            "data_batch_4": "634d18415352ddfa80567beed471001a",
            "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        },
        "test": {"test_batch": "40351d587109b95175f43aff81a1287e"},
    },
)  # fmt: skip
BINARY = (
    "cifar-10-batches-bin", "cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530",
    {
        "train": {f"data_batch_{i}.bin": "" for i in range(1, 6)},
        "test": {"test_batch.bin": ""},
    },
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Labelled images, returned by `load_mnist` and `load_cifar10`.

    Parameters
    ----------
    name : str
        Name of the data set, with remarks on its pixels.
    images : ndarray of shape (N, H, W, C), uint8
        Images, with rows from the top and columns from the left; the last axis is grey, or red,
        green and blue.
    labels : ndarray of shape (N,), int64
        Position of the class of each image.
    classes : tuple of str
        Names of the classes.

    Raises
    ------
    ValueError
        If a shape or dtype is wrong, or a label is no class.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.datasets import LabelledImages
    >>> images = np.zeros((2, 28, 28, 1), np.uint8)
    >>> LabelledImages("Blank", images, np.array([0, 1]), ("left", "right"))
    LabelledImages(name='Blank', classes=('left', 'right'))
    """

    name: str
    images: np.ndarray = field(repr=False)
    labels: np.ndarray = field(repr=False)
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        check_images(self.images)
        labels = self.labels
        if not isinstance(labels, np.ndarray) or labels.shape != self.images.shape[:1]:
            raise ValueError(
                f"labels of {self.name} must be an array of a class for each of its "
                f"{len(self.images)} images; "
                f"got {getattr(labels, 'shape', labels)!r}"
            )
        if labels.dtype != np.int64 or labels.min() < 0 or labels.max() >= len(self.classes):
            raise ValueError(
                f"labels of {self.name} must be int64 from 0 to {len(self.classes) - 1}; got "
                f"{labels.dtype} from {labels.min()} to {labels.max()}"
            )


def load_mnist(
    part: str, *, data_home: str | os.PathLike[str], verify: bool = True
) -> LabelledImages:
    """Load handwritten digits of 28 x 28 grey pixels.

    Parameters
    ----------
    part : {"train", "test"}
        60,000 or 10,000 images.
    data_home : path
        Folder with ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte``,
        ``t10k-images-idx3-ubyte`` and ``t10k-labels-idx1-ubyte``, each plain or with ``.gz``, or
        the folder above ``MNIST/raw`` of torchvision. A part only needs its two files. Nothing is
        downloaded.
    verify : bool, default True
        Refuse content other than published. False accepts other files of this layout, such as
        Fashion-MNIST, with classes "0" to "9".

    Returns
    -------
    LabelledImages
        Digits, with ``images`` of shape (N, 28, 28, 1).

    Raises
    ------
    TypeError
        If `data_home` is no path.
    FileNotFoundError
        If `data_home` lacks a file; the message says where to get it.
    ValueError
        If `part` is unknown, or a file is damaged, not as published (SHA-256), or has images of
        another size.

    Notes
    -----
    The original pages state no licence.

    References
    ----------
    Y. LeCun, L. Bottou, Y. Bengio and P. Haffner (1998). Gradient-Based Learning Applied to
    Document Recognition. Proceedings of the IEEE 86(11), 2278-2324.

    Examples
    --------
    >>> from tsrnn.datasets import load_mnist
    >>> digits = load_mnist("train", data_home="~/data/mnist")  # doctest: +SKIP
    """
    _check_part(part)
    home = as_folder(data_home)
    arrays = []
    for axes, (name, sha256) in zip((3, 1), MNIST[part].items(), strict=True):
        folders = (home, home / "MNIST" / "raw")
        candidates = [folder / (name + end) for folder in folders for end in ("", ".gz")]
        path = next((path for path in candidates if path.is_file()), None)
        if path is None:
            raise FileNotFoundError(
                f"data_home must hold {name} or {name}.gz; {home} has neither. Get the files from "
                f"{MNIST_SOURCE}"
            )
        most = MOST if verify else MOST_OTHER
        content = read_file(path, most, f"Get it from {MNIST_SOURCE}")
        if verify and hashlib.sha256(content).hexdigest() != sha256:
            raise ValueError(
                f"{path} is not the published {name}: its content must have SHA-256 {sha256}; got "
                f"{hashlib.sha256(content).hexdigest()}. Get it from {MNIST_SOURCE}, or pass "
                "verify=False for other data of this layout"
            )
        arrays.append(_read_idx(path, content, axes))
    pixels, labels = arrays
    if pixels.shape[1:] != MNIST_SHAPE:
        raise ValueError(
            f"images of {home} must have 28 x 28 pixels; got {pixels.shape[1]} x {pixels.shape[2]}"
        )
    if len(pixels) != len(labels):
        raise ValueError(
            f"images and labels of {home} must be equally many; got {len(pixels)} and {len(labels)}"
        )
    return LabelledImages("MNIST", pixels[..., None], labels.astype(np.int64), DIGITS)


def load_cifar10(
    part: str, *, data_home: str | os.PathLike[str], verify: bool = True
) -> LabelledImages:
    """Load photographs of ten classes, 32 x 32 pixels of red, green and blue.

    Parameters
    ----------
    part : {"train", "test"}
        50,000 or 10,000 images.
    data_home : path
        Folder with one of, in this order of precedence: ``cifar-10-batches-py/``, pickles as in
        torchvision; ``cifar-10-batches-bin/``; the archives ``cifar-10-python.tar.gz`` and
        ``cifar-10-binary.tar.gz``, which are not unpacked; or ``cifar10.npz`` with arrays x_train,
        y_train, x_test and y_test of pixels (N, 32, 32, 3) and labels. Nothing is downloaded.
    verify : bool, default True
        Refuse content other than published, by the published checksums: MD5 of both archives and of
        each pickle. For single ``.bin`` files only their size is known. An ``.npz`` is not a
        publication and requires False.

    Returns
    -------
    LabelledImages
        Photographs, with ``images`` of shape (N, 32, 32, 3).

    Raises
    ------
    TypeError
        If `data_home` is no path.
    FileNotFoundError
        If `data_home` lacks a file; the message says where to get it.
    ValueError
        If `part` is unknown, or a file is damaged or not as published.

    Notes
    -----
    Pickles can run code when read. These are read by an unpickler that only accepts arrays of bytes
    and plain containers. A forged size in a file that is not verified may still exhaust memory.

    References
    ----------
    A. Krizhevsky (2009). Learning Multiple Layers of Features from Tiny Images. University of
    Toronto.

    Examples
    --------
    >>> from tsrnn.datasets import load_cifar10
    >>> photographs = load_cifar10("train", data_home="~/data/cifar10")  # doctest: +SKIP
    """
    _check_part(part)
    home = as_folder(data_home)
    layouts = (PICKLES, BINARY)
    folder = next((layout for layout in layouts if (home / layout[0]).is_dir()), None)
    archive = next((layout for layout in layouts if (home / layout[1]).is_file()), None)
    if folder is not None:
        batches = _read_folder(home / folder[0], folder[3][part], verify)
        pixels, labels = _read_batches(folder, batches)
    elif archive is not None:
        batches = _read_archive(home / archive[1], archive, part, verify)
        pixels, labels = _read_batches(archive, batches)
    elif (home / "cifar10.npz").is_file():
        return _read_npz(home / "cifar10.npz", part, verify)
    else:
        raise FileNotFoundError(
            f"data_home must hold {PICKLES[0]}/, {BINARY[0]}/, {PICKLES[1]}, {BINARY[1]} or "
            f"cifar10.npz; {home} has none of them. Get an archive from {CIFAR_SOURCE}"
        )
    count = COUNTS["CIFAR-10"][part]
    if verify and len(labels) != count:
        raise ValueError(
            f"the part {part!r} must have {count} images; got {len(labels)}. Get the archive from "
            f"{CIFAR_SOURCE}, or pass verify=False for a part of it"
        )
    images = pixels.reshape(-1, *CIFAR_SHAPE).transpose(0, 2, 3, 1)
    return LabelledImages("CIFAR-10", np.ascontiguousarray(images), labels, OBJECTS)


def _check_part(part: Any) -> None:
    if part not in PARTS:
        raise ValueError(f"part must be one of {PARTS}; got {part!r}")


def check_images(images: Any) -> None:
    """Raise unless `images` is an array (N, H, W, C) of uint8 with at least one pixel."""
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.ndim != 4:
        raise ValueError(
            "images must be an array of uint8 of shape (N, H, W, C), such as the `images` of "
            f"load_cifar10; got {getattr(images, 'dtype', type(images).__name__)} of shape "
            f"{getattr(images, 'shape', '')}"
        )
    if not images.size:
        raise ValueError(f"images must have at least one pixel; got shape {images.shape}")


def _read_idx(path: Path, content: bytes, axes: int) -> np.ndarray:
    """Return the array of an idx file: two zeros, type 8, number of axes, sizes, bytes."""
    start = 4 + 4 * axes
    if content[:4] != bytes((0, 0, 8, axes)) or len(content) < start:
        raise ValueError(
            f"{path} must be an idx file of bytes with {axes} axes, beginning with "
            f"{bytes((0, 0, 8, axes)).hex()}; got {content[:4].hex() or 'an empty file'}"
        )
    shape = tuple(int(n) for n in np.frombuffer(content, ">u4", axes, 4))
    if len(content) - start != np.prod(shape, dtype=object):
        raise ValueError(
            f"{path} must hold {' x '.join(map(str, shape))} bytes after its head, by which it "
            f"begins; got {len(content) - start}"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def _read_folder(folder: Path, files: dict[str, str], verify: bool) -> dict[str, bytes]:
    """Return the verified content of the files of a folder, by name."""
    batches = {}
    for name, md5 in files.items():
        path = folder / name
        if not path.is_file():
            raise FileNotFoundError(f"{folder} must hold {name}. Get it from {CIFAR_SOURCE}")
        most = MOST if verify else MOST_OTHER
        batches[str(path)] = content = read_file(path, most, f"Get it from {CIFAR_SOURCE}")
        if verify and md5:
            _check_md5(path, content, md5)
    return batches


def _read_archive(path: Path, layout: Any, part: str, verify: bool) -> dict[str, bytes]:
    """Return the verified content of the files of an archive, by name, without unpacking."""
    folder, _, md5, files = layout
    content = path.read_bytes()
    if verify:
        _check_md5(path, content, md5)
    batches = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
            for name in files[part]:
                member = archive.getmember(f"{folder}/{name}")
                file = archive.extractfile(member) if member.isreg() else None  # refuse links
                if file is None:
                    raise KeyError(f"{folder}/{name} is no file")
                if member.size > MOST_OTHER:
                    raise ValueError(
                        f"{path}:{name} must hold at most {MOST_OTHER} bytes; got {member.size}"
                    )
                batches[f"{path}:{name}"] = file.read()
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise ValueError(
            f"{path} must be a complete tar.gz; it cannot be read ({error}). Get it from "
            f"{CIFAR_SOURCE}"
        ) from error
    except KeyError as error:
        raise FileNotFoundError(
            f"{path} must hold {folder}/ with {', '.join(files[part])}; {error}. Get it from "
            f"{CIFAR_SOURCE}"
        ) from error
    return batches


def _check_md5(path: Path, content: bytes, md5: str) -> None:
    digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if digest != md5:
        raise ValueError(
            f"{path} is not the published file: its content must have MD5 {md5}; got {digest}. "
            f"Get it from {CIFAR_SOURCE}, or pass verify=False for other data of this layout"
        )


def _read_batches(layout: Any, batches: dict[str, bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Return pixels (N, 3072) and labels (N,) of the files of a layout."""
    read = _read_pickle if layout is PICKLES else _read_binary
    parts = [read(name, content) for name, content in batches.items()]
    pixels, labels = zip(*parts, strict=True)
    return np.concatenate(pixels), np.concatenate(labels).astype(np.int64)


def _read_binary(name: str, content: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return pixels and labels of records of a label and 3072 pixels."""
    record = 1 + int(np.prod(CIFAR_SHAPE))
    if not content or len(content) % record:
        raise ValueError(
            f"{name} must hold records of {record} bytes, a label and the pixels; got "
            f"{len(content)} bytes. Get it from {CIFAR_SOURCE}"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, record)
    return records[:, 1:], records[:, 0]


def _read_pickle(name: str, content: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return array ``data`` and list ``labels`` of a pickled dictionary."""
    width = int(np.prod(CIFAR_SHAPE))
    try:
        # Strings of Python 2 hold bytes, which latin1 maps to themselves.
        batch = _ArrayUnpickler(io.BytesIO(content), encoding="latin1").load()
        pixels, labels = batch["data"].as_bytes(), batch["labels"]
        fits = type(labels) is list and all(type(label) is int for label in labels)
        if not fits or pixels.shape != (len(labels), width):
            raise TypeError(f"'data' has shape {pixels.shape}, and 'labels' are {str(labels)[:60]}")
        return pixels, np.array(labels, np.int64)
    # A damaged pickle may raise any exception.
    except Exception as error:
        raise ValueError(
            f"{name} must be a pickled dictionary with 'data', an array of uint8 of shape "
            f"(N, {width}), and 'labels', a list of N integers; it cannot be read "
            f"({type(error).__name__}: {error}). Get it from {CIFAR_SOURCE}"
        ) from error


class _Array:
    """Array of a pickle as plain values, since numpy may crash on damaged ones."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def as_bytes(self) -> np.ndarray:
        """Return the array, checked to be uint8."""
        _, shape, dtype, by_columns, content = self.state
        if not isinstance(dtype, _Type) or dtype.code != "u1":
            raise TypeError(f"'data' has the type {getattr(dtype, 'code', dtype)!r}")
        content = content.encode("latin1") if isinstance(content, str) else content
        return np.frombuffer(content, np.uint8).reshape(shape, order="F" if by_columns else "C")


class _Type:
    """Dtype of an array in a pickle."""

    def __init__(self, code: Any = None, *_: Any) -> None:
        self.code = code

    def __setstate__(self, state: Any) -> None:
        """Ignore byte order and fields, which bytes do not have."""


class _ArrayUnpickler(pickle.Unpickler):
    """Unpickler of plain containers and arrays; refuses all other classes and functions."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a stand-in for a name in the pickle, if it belongs to an array."""
        allowed: dict[tuple[str, str], Any] = {
            # Names in Python 2 and numpy 1, and in numpy 2.
            ("numpy.core.multiarray", "_reconstruct"): lambda *_: _Array(),
            ("numpy._core.multiarray", "_reconstruct"): lambda *_: _Array(),
            ("numpy", "ndarray"): _Array,
            ("numpy", "dtype"): _Type,
            ("_codecs", "encode"): _encode,
        }
        if (module, name) not in allowed:
            raise pickle.UnpicklingError(f"{module}.{name} is neither an array nor a container")
        return allowed[module, name]


def _encode(text: str, encoding: str) -> bytes:
    """Return bytes, which Python 3 pickles as latin1 text in protocol 2."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes of a pickle are latin1; got {encoding!r}")
    return text.encode("latin1")


def _read_npz(path: Path, part: str, verify: bool) -> LabelledImages:
    """Return pixels and labels of an .npz."""
    if verify:
        raise ValueError(
            f"{path} has no published checksum: pass verify=False to take its pixels as they are, "
            "and say with every number where they are from"
        )
    names = (f"x_{part}", f"y_{part}")
    try:
        with np.load(path, allow_pickle=False) as file:
            images, labels = (file[name] for name in names)
    # RuntimeError: a member is encrypted or of unknown compression; TypeError: a file of one array.
    except (
        KeyError, ValueError, OSError, EOFError, RuntimeError, TypeError, zipfile.BadZipFile,
        zlib.error,
    ) as error:  # fmt: skip
        raise ValueError(
            f"{path} must be an .npz with the arrays {names[0]} and {names[1]}; it cannot be read "
            f"({error})"
        ) from error
    count = len(images) if images.ndim else 0
    if images.shape != (count, 32, 32, 3) or labels.shape not in ((count,), (count, 1)):
        raise ValueError(
            f"{names[0]} of {path} must have shape (N, 32, 32, 3), {names[1]} shape (N,) or (N, 1);"
            f" got {images.shape} and {labels.shape}"
        )
    if labels.dtype.kind not in "iu":
        raise ValueError(f"{names[1]} of {path} must be integers; got {labels.dtype}")
    return LabelledImages(
        "CIFAR-10, not verified", images, labels.ravel().astype(np.int64), OBJECTS
    )
