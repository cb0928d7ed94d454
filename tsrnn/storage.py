"""Fitted forecasters and estimators from files."""

from __future__ import annotations

import os
from typing import IO, Any

import numpy as np

from tsrnn.contract import DamagedFileError, read_file, text
from tsrnn.models import MODELS, model_class

__all__ = ["load"]

# Classes of files before format 3, whose names models of the package have taken since.
RENAMED = {
    "AutoARIMA": "StatsmodelsAutoARIMA",
    "ETS": "StatsmodelsETS",
    "Theta": "StatsmodelsTheta",
}


def load(path: str | os.PathLike[str] | IO[bytes]) -> Any:
    """Read a model that `save` has written. Nothing is unpickled.

    Parameters
    ----------
    path : path or binary file
        A path, or an open file such as an `io.BytesIO`, which is read to its end.

    Returns
    -------
    forecaster, ParaRNNRegressor or ParaRNNClassifier
        Fitted model of the saved class, with the same predictions.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    DamagedFileError
        A ValueError, if the file is damaged, was changed, is not of tsrnn, or has a newer format.
        It names the field or array, what it must be and what came. Sizes are checked against the
        arrays in the file before anything is allocated.

    Examples
    --------
    >>> import tempfile
    >>> from tsrnn import load
    >>> from tsrnn.baselines import Naive
    >>> from tsrnn.datasets import load_nile
    >>> model = Naive().fit(load_nile())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/nile.tsrnn")
    ...     again = load(f"{folder}/nile.tsrnn")
    >>> again.predict(3).equals(model.predict(3))
    True
    """
    header, arrays = read_file(path)

    def restore(part: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
        name: Any = part.get("class")
        text(name, "class")
        if header["format"] < 3:
            name = RENAMED.get(name, name)
        if name not in MODELS:
            raise DamagedFileError(
                f"it holds a {name:.60}, written by tsrnn {header['version']:.60}; this version "
                f"reads {', '.join(sorted(MODELS))}. Install a newer tsrnn"
            )
        # parts, such as members of a combination, have the format of their file
        part = {"format": header["format"]} | part
        return model_class(name)._restore(part, arrays, restore)

    try:
        return restore(header, arrays)
    except DamagedFileError as error:
        place = path if isinstance(path, str | os.PathLike) else "the open file"
        raise DamagedFileError(f"{place} cannot be read: {error}") from error


def __dir__() -> list[str]:
    return sorted(__all__)
