"""Checks of the JSON values and arrays of a saved model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

MOST_STEPS = 100_000  # largest horizon in a file
LEAST, LARGEST = 1e-75, 1e75  # range of scales: fourth powers neither underflow nor overflow
SHOWN = 60  # characters of a value quoted in a message
CAUSE = "The file is damaged or was changed: save the model again"

# Check of a value at a place in the file; raises DamagedFileError.
Kind = Callable[[Any, str], None]


class DamagedFileError(ValueError):
    """Error for a file that `save` has not written, or that was changed since.

    The message names the field or array, the requirement, and the value.

    Examples
    --------
    >>> import io
    >>> from tsrnn import load
    >>> from tsrnn.contract import DamagedFileError
    >>> try:
    ...     load(io.BytesIO(b"no model"))
    ... except DamagedFileError:
    ...     print("damaged")
    damaged
    """


def refuse(place: str, required: str, came: Any) -> DamagedFileError:
    """Return an error with the requirement of a part of a file, and its value.

    Parameters
    ----------
    place : str
        Place of the part, such as "fitted.horizon".
    required : str
    came : object

    Returns
    -------
    DamagedFileError

    Examples
    --------
    >>> from tsrnn.contract import refuse
    >>> str(refuse("fitted.horizon", "a positive integer", -1))[:50]
    'fitted.horizon must be a positive integer; got -1.'
    """
    try:
        text = repr(came)
    except ValueError:  # an integer with too many digits for repr
        text = "a number of thousands of digits"
    if len(text) > SHOWN:
        text = f"{text[:SHOWN]}..."
    if len(required) > 5 * SHOWN:
        required = f"{required[: 5 * SHOWN]}..."
    return DamagedFileError(f"{place} must be {required}; got {text}. {CAUSE}")


@contextmanager
def as_saved(place: str) -> Iterator[None]:
    """Convert errors of arguments from a place in a file to DamagedFileError."""
    try:
        yield
    except DamagedFileError:
        raise
    except (TypeError, ValueError, KeyError, OverflowError, RuntimeError) as error:
        text = " ".join(str(error).split()).rstrip(".")
        raise DamagedFileError(f"{place} do not go together: {text}. {CAUSE}") from error


def integer(lowest: int = 0, highest: int = 2**63 - 1) -> Kind:
    """Return a check for integers in a range.

    Parameters
    ----------
    lowest, highest : int

    Returns
    -------
    callable

    Examples
    --------
    >>> from tsrnn.contract import integer
    >>> integer(1, 12)(4, "fitted.season")
    """

    def check(value: Any, place: str) -> None:
        if type(value) is not int or not lowest <= value <= highest:
            raise refuse(place, f"an integer from {lowest} to {highest}", value)

    return check


def real(value: Any, place: str) -> None:
    """Check a number, which need not be finite.

    Parameters
    ----------
    value : object
    place : str

    Examples
    --------
    >>> from tsrnn.contract import real
    >>> real(0.5, "fitted.error")
    """
    if type(value) not in (int, float) or (type(value) is int and abs(value) > 2**63):
        raise refuse(place, "a number", value)


def positive(value: Any, place: str) -> None:
    """Check a positive number whose fourth power neither overflows nor underflows.

    Parameters
    ----------
    value : object
    place : str

    Examples
    --------
    >>> from tsrnn.contract import positive
    >>> positive(0.5, "fitted.scale")
    """
    real(value, place)
    if not LEAST <= value <= LARGEST:
        raise refuse(place, f"a number from {LEAST} to {LARGEST}", value)


def text(value: Any, place: str) -> None:
    """Check text.

    Parameters
    ----------
    value : object
    place : str

    Examples
    --------
    >>> from tsrnn.contract import text
    >>> text("const", "fitted.names[0]")
    """
    if not isinstance(value, str):
        raise refuse(place, "text", value)


def truth(value: Any, place: str) -> None:
    """Check a boolean.

    Parameters
    ----------
    value : object
    place : str

    Examples
    --------
    >>> from tsrnn.contract import truth
    >>> truth(True, "fitted.validated")
    """
    if not isinstance(value, bool):
        raise refuse(place, "true or false", value)


def anything(value: Any, place: str) -> None:
    """Accept any JSON value, which is checked elsewhere.

    Parameters
    ----------
    value : object
    place : str

    Examples
    --------
    >>> from tsrnn.contract import anything
    >>> anything([1, None], "params.order")
    """


def one_of(*legal: Any) -> Kind:
    """Return a check for a fixed set of values."""

    def check(value: Any, place: str) -> None:
        if not any(type(value) is type(item) and value == item for item in legal):
            raise refuse(place, f"one of {', '.join(map(repr, legal))}", value)

    return check


def optional(kind: Kind) -> Kind:
    """Return a check that also accepts null.

    Parameters
    ----------
    kind : callable

    Returns
    -------
    callable

    Examples
    --------
    >>> from tsrnn.contract import optional, text
    >>> optional(text)(None, "layout.tz")
    """
    return lambda value, place: None if value is None else kind(value, place)


def listed(kind: Kind, length: int | None = None) -> Kind:
    """Return a check for lists.

    Parameters
    ----------
    kind : callable
        Check of the items.
    length : int, optional

    Returns
    -------
    callable

    Examples
    --------
    >>> from tsrnn.contract import listed, text
    >>> listed(text)(["const", "ar.L1"], "fitted.names")
    """

    def check(value: Any, place: str) -> None:
        if not isinstance(value, list):
            raise refuse(place, "a list", value)
        if length is not None and len(value) != length:
            raise refuse(place, f"a list of {length}", value)
        for i, item in enumerate(value):
            kind(item, f"{place}[{i}]")

    return check


def by_name(kind: Kind, key: Kind = text) -> Kind:
    """Return a check for objects with values of one kind, and names of the kind `key`."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise refuse(place, "an object", value)
        for name, item in value.items():
            key(name, f"a name in {place}")
            kind(item, f"{place}.{name}")

    return check


def record(kinds: Mapping[str, Kind], may_lack: Sequence[str] = ()) -> Kind:
    """Return a check for objects with given fields.

    Parameters
    ----------
    kinds : mapping of str to callable
        Check of each field.
    may_lack : sequence of str
        Optional fields.

    Returns
    -------
    callable

    Examples
    --------
    >>> from tsrnn.contract import integer, record
    >>> record({"horizon": integer(1)})({"horizon": 12}, "fitted")
    """

    def check(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise refuse(place, "an object", value)
        lacking = [name for name in kinds if name not in value and name not in may_lack]
        unknown = [name for name in value if name not in kinds]
        if lacking or unknown:
            what = f"an object with the fields {', '.join(kinds)}"
            raise refuse(place, what, {"lacking": lacking, "unknown": unknown})
        for name, kind in kinds.items():
            if name in value:
                kind(value[name], f"{place}.{name}" if place else name)

    return check


def check_arrays(
    arrays: Mapping[str, np.ndarray],
    shapes: Mapping[str, tuple[str, tuple[int, ...]]],
    may_lack: Sequence[str] = (),
    positive: Sequence[str] = (),
) -> None:
    """Check names, dtypes and shapes of the arrays of a part of a file.

    `shapes` has dtype and shape by name, where -1 stands for any length. Arrays named in `may_lack`
    are optional, arrays in `positive` hold positive finite numbers.
    """
    for name, (dtype, shape) in shapes.items():
        place = f"the array {name!r}"
        required = f"of type {dtype} and shape {shape}".replace("-1", "any")
        if name not in arrays:
            if name in may_lack:
                continue
            raise refuse(place, f"there, {required}", sorted(arrays))
        came = arrays[name]
        fits = len(came.shape) == len(shape) and all(
            n in (-1, m) for n, m in zip(shape, came.shape, strict=True)
        )
        if str(came.dtype) != dtype or not fits:
            raise refuse(place, required, f"{came.dtype} {came.shape}")
        if name in positive and not ((came > 0) & np.isfinite(came)).all():
            raise refuse(place, "positive", came.ravel()[:8].tolist())
    unknown = [name for name in arrays if name not in shapes]
    if unknown:
        named = ", ".join(list(shapes)[:8]) + (", ..." if len(shapes) > 8 else "")
        raise refuse("the arrays", f"those of such a model, {named}", unknown)


def check_borders(borders: np.ndarray, n_rows: int, name: str) -> None:
    """Check the bounds of series in rows, shape (S + 1,): increasing from 0 to `n_rows`."""
    if borders[0] != 0 or borders[-1] != n_rows or (np.diff(borders) < 1).any():
        came = borders.tolist()[:8]
        raise refuse(f"the array {name!r}", f"rising from 0 to the {n_rows} rows", came)


def arrays_by_part(
    arrays: dict[str, np.ndarray], count: int, noun: str
) -> tuple[list[dict[str, np.ndarray]], dict[str, np.ndarray]]:
    """Split arrays by the part in front of their names, such as ``0/tail``.

    Returned are the arrays of each of `count` parts, by name within it, and the arrays without a
    part. `noun` names the parts in messages, in the plural.
    """
    parts: list[dict[str, np.ndarray]] = [{} for _ in range(count)]
    others = {}
    places = {str(place): part for place, part in enumerate(parts)}
    for key, array in arrays.items():
        place, slash, name = key.partition("/")
        if not slash:
            others[key] = array
        elif not name or place not in places:
            raise refuse("the arrays", f"those of {count} {noun}", key)
        else:
            places[place][name] = array
    return parts, others
