"""Kinds of the JSON values in a saved model, and shapes of its arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

MOST_STEPS = 100_000  # of a horizon in a file
LEAST, LARGEST = 1e-75, 1e75
SHOWN = 60  # letters of a value that a message quotes
CAUSE = "The file is damaged or was changed: save the model again"

# Given a value and where it stands, raises DamagedFileError if it is of another kind.
Kind = Callable[[Any, str], None]


class DamagedFileError(ValueError):
    """A file that no `save` has written, or that was changed since.

    The message names the field or the array, and says what it must be and what came.

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
    """An error that says what a part of a file must be, and what came.

    Parameters
    ----------
    place : str
        Of the part, such as "fitted.horizon".
    required : str
    came : object

    Returns
    -------
    DamagedFileError
        To be raised.

    Examples
    --------
    >>> from tsrnn.contract import refuse
    >>> str(refuse("fitted.horizon", "a positive integer", -1))[:50]
    'fitted.horizon must be a positive integer; got -1.'
    """
    try:
        text = repr(came)
    except ValueError:  # an integer of more digits than Python writes
        text = "a number of thousands of digits"
    if len(text) > SHOWN:
        text = f"{text[:SHOWN]}..."
    if len(required) > 5 * SHOWN:
        required = f"{required[: 5 * SHOWN]}..."
    return DamagedFileError(f"{place} must be {required}; got {text}. {CAUSE}")


@contextmanager
def as_saved(place: str) -> Iterator[None]:
    """Refuse a file for what checks of arguments refuse.

    Parameters
    ----------
    place : str
        Of the arguments in the file.

    Yields
    ------
    None

    Raises
    ------
    DamagedFileError
        In place of TypeError, ValueError and what libraries raise for sizes.

    Examples
    --------
    >>> from tsrnn.contract import as_saved, positive_integer
    >>> with as_saved("params"):
    ...     positive_integer("horizon", 12)
    12
    """
    try:
        yield
    except DamagedFileError:
        raise
    except (TypeError, ValueError, KeyError, OverflowError, RuntimeError) as error:
        text = " ".join(str(error).split()).rstrip(".")
        raise DamagedFileError(f"{place} do not go together: {text}. {CAUSE}") from error


def integer(lowest: int = 0, highest: int = 2**63 - 1) -> Kind:
    """Kind of integers of a range.

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
    """Kind of numbers, also those that are not finite.

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
    """Kind of numbers above zero, whose fourth powers are finite and not lost.

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
    """Kind of text.

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
    """Kind of True and False.

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
    """Kind of all JSON values; what they may be is checked elsewhere.

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
    """Kind of a few values, those given.

    Returns
    -------
    callable

    Examples
    --------
    >>> from tsrnn.contract import one_of
    >>> one_of("add", "mul")("add", "fitted.method")
    """

    def check(value: Any, place: str) -> None:
        if not any(type(value) is type(item) and value == item for item in legal):
            raise refuse(place, f"one of {', '.join(map(repr, legal))}", value)

    return check


def optional(kind: Kind) -> Kind:
    """Kind of a value that may be null.

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
    """Kind of lists.

    Parameters
    ----------
    kind : callable
        Of all items.
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
    """Kind of objects with values of one kind.

    Parameters
    ----------
    kind : callable
        Of all values.
    key : callable, optional
        Of all names.

    Returns
    -------
    callable

    Examples
    --------
    >>> from tsrnn.contract import by_name, real
    >>> by_name(real)({"model": 0.5}, "fitted.errors")
    """

    def check(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise refuse(place, "an object", value)
        for name, item in value.items():
            key(name, f"a name in {place}")
            kind(item, f"{place}.{name}")

    return check


def record(kinds: Mapping[str, Kind], may_lack: Sequence[str] = ()) -> Kind:
    """Kind of objects with certain fields.

    Parameters
    ----------
    kinds : mapping of str to callable
        By field.
    may_lack : sequence of str
        Fields that need not be there.

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
    """Check that a part of a file has certain arrays and no others.

    Parameters
    ----------
    arrays : mapping of str to ndarray
    shapes : mapping of str to (dtype, shape)
        Of every array; -1 in a shape stands for any length.
    may_lack : sequence of str
        Arrays that need not be there.
    positive : sequence of str
        Arrays of finite numbers above zero.

    Raises
    ------
    DamagedFileError
        Naming the array.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.contract import check_arrays
    >>> check_arrays({"weights": np.ones(3)}, {"weights": ("float64", (3,))})
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
    """Check numbers of rows at which series begin, and at which the last one ends.

    Parameters
    ----------
    borders : ndarray of shape (S + 1,)
    n_rows : int
    name : str
        Of the array.

    Raises
    ------
    DamagedFileError

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.contract import check_borders
    >>> check_borders(np.array([0, 2, 5]), 5, "rows.indptr")
    """
    if borders[0] != 0 or borders[-1] != n_rows or (np.diff(borders) < 1).any():
        came = borders.tolist()[:8]
        raise refuse(f"the array {name!r}", f"rising from 0 to the {n_rows} rows", came)


def arrays_by_part(
    arrays: dict[str, np.ndarray], count: int, noun: str
) -> tuple[list[dict[str, np.ndarray]], dict[str, np.ndarray]]:
    """Split arrays of a file whose names begin with the place of a part, such as ``0/tail``.

    Parameters
    ----------
    arrays : dict of str to ndarray
    count : int
        Parts of the file.
    noun : str
        Name of the parts in a refusal, in the plural.

    Returns
    -------
    parts : list of dict
        Arrays of each part, by their names in it.
    others : dict
        Arrays that are of no part.

    Raises
    ------
    DamagedFileError
        If an array is of a part that the file does not have.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.contract import arrays_by_part
    >>> parts, others = arrays_by_part({"0/a": np.ones(1), "b": np.ones(2)}, 1, "members")
    >>> list(parts[0]), list(others)
    (['a'], ['b'])
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
