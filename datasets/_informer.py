"""Data sets of Zhou et al. (2021), read from a folder or downloaded, and verified."""

import hashlib
import io
import os
from pathlib import Path

import numpy as np
import pandas as pd

from tsrnn.datasets._catalogue import RECORDS, tidy
from tsrnn.datasets._files import as_folder, read_file

# The address of a commit: its content does not change.
_BASE_URL = (
    "https://raw.githubusercontent.com/zhouhaoyi/ETDataset/"
    "1d16c8f4f943005d613b5bc962e9eeb06058cf07/ETT-small/"
)
_SHA256 = {
    "ETTh1": "f18de3ad269cef59bb07b5438d79bb3042d3be49bdeecf01c1cd6d29695ee066",
    "ETTh2": "a3dc2c597b9218c7ce1cd55eb77b283fd459a1d09d753063f944967dd6b9218b",
    "ETTm1": "6ce1759b1a18e3328421d5d75fadcb316c449fcd7cec32820c8dafda71986c9e",
}
# Checksum of time stamps in nanoseconds and values, independent of the format of dates.
_WTH_SHA256 = "6738cf2d8591b624a8927ed1f5e67cf6d0e52c27922de5f9a4a818df2b424b89"
_MOST = 2**25  # largest size of a table in bytes, three times ETTm1


def load_ett(
    name: str = "ETTh1", *, data_home: str | os.PathLike[str] | None = None
) -> pd.DataFrame:
    """Load loads and oil temperature of an electricity transformer, July 2016 to June 2018.

    Parameters
    ----------
    name : {"ETTh1", "ETTh2", "ETTm1"}
        ``"ETTh1"`` and ``"ETTh2"`` (another station) are hourly (17,420 rows); ``"ETTm1"`` has a
        row every 15 minutes (69,680 rows).
    data_home : path, optional
        Folder with ``<name>.csv`` or ``<name>.csv.gz``. By default the
        file is downloaded once (2.6, 2.4 and 10.4 MB) into the user's cache folder for ``tsrnn``.

    Returns
    -------
    DataFrame, shape (rows, 7)
        Columns ``HUFL, HULL, MUFL, MULL, LUFL, LULL`` (high, middle and low, useful and useless
        load; the publishers state no unit) and ``OT`` (oil temperature, the usual target, in
        degrees Celsius by its range); index ``ds`` without time zone, frequency ``h`` or
        ``15min``.

    Raises
    ------
    ValueError
        If `name` is unknown, or the content is not as published (SHA-256).
    TypeError
        If `data_home` is no path.
    FileNotFoundError
        If `data_home` holds no such file.
    ConnectionError
        If the file could not be downloaded.

    Notes
    -----
    No value is missing. Licence: Creative Commons Attribution-NoDerivatives 4.0 (CC BY-ND 4.0).

    References
    ----------
    H. Zhou, S. Zhang, J. Peng, S. Zhang, J. Li, H. Xiong and W. Zhang (2021). Informer: Beyond
    Efficient Transformer for Long Sequence Time-Series Forecasting. AAAI 35(12), 11106-11115.

    Examples
    --------
    >>> from tsrnn.datasets import load_ett
    >>> ett = load_ett("ETTh1", data_home="~/data")  # doctest: +SKIP
    """
    if not isinstance(name, str) or name not in _SHA256:
        raise ValueError(f"name must be one of {sorted(_SHA256)}; got {name!r}")
    if data_home is None:
        content = _download(name)
    else:
        path, content = _read(name, data_home, "leave data_home out to download it")
        _check_content(path, name, content, _SHA256[name])
    frame = pd.read_csv(io.BytesIO(content), index_col="date", parse_dates=["date"])
    return tidy(RECORDS[name], frame)


def load_wth(*, data_home: str | os.PathLike[str]) -> pd.DataFrame:
    """Load twelve hourly climatological variables, 2010 to 2013, known as Weather or WTH.

    Parameters
    ----------
    data_home : path
        Folder with ``WTH.csv`` or ``WTH.csv.gz``. There is no download, for lack of a permanent
        address; https://github.com/zhouhaoyi/Informer2020 links to the drive of Zhou et al.

    Returns
    -------
    DataFrame, shape (35064, 12)
        Visibility, temperatures (dry bulb, wet bulb, dew point), humidity, wind and pressure;
        ``WetBulbCelsius`` is the usual target. Index ``ds`` without time zone, frequency ``h``.

    Raises
    ------
    ValueError
        If values or time stamps are not as published; the text of the file may differ, for example
        in the format of dates.
    TypeError
        If `data_home` is no path.
    FileNotFoundError
        If `data_home` holds no such file.

    Notes
    -----
    No value is missing. No licence is stated. Papers that name this set "Weather" split it in
    two ways: Cai et al. (2026) by 28, 10 and 10 months, Zhou et al. by 70, 10 and 20 percent.

    References
    ----------
    As for `load_ett`; the measurements are local climatological data of the National Centers for
    Environmental Information.

    Examples
    --------
    >>> from tsrnn.datasets import load_wth
    >>> weather = load_wth(data_home="~/data")  # doctest: +SKIP
    """
    path, content = _read("WTH", data_home, "see the documentation of load_wth for its publisher")
    try:
        frame = pd.read_csv(io.BytesIO(content), index_col="date", parse_dates=["date"])
        values = np.ascontiguousarray(frame[list(RECORDS["WTH"].units)], dtype="<f8")
        stamps = pd.DatetimeIndex(frame.index).as_unit("ns")
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no table of the columns of WTH: {error}") from error
    if stamps.tz is not None:
        raise ValueError(
            f"{path} must have dates without time zone, as the published WTH.csv has; got dates of "
            f"{stamps.tz}. Write them without"
        )
    nanoseconds = stamps.asi8.astype("<i8")
    _check_content(path, "WTH", nanoseconds.tobytes() + values.tobytes(), _WTH_SHA256)
    return tidy(RECORDS["WTH"], frame)


def _download(name: str) -> bytes:
    """Return the content of the file from the cache, downloaded if missing."""
    import pooch

    url = f"{_BASE_URL}{name}.csv"
    try:
        path = pooch.retrieve(
            url,
            known_hash=f"sha256:{_SHA256[name]}",
            fname=f"{name}.csv",
            path=pooch.os_cache("tsrnn"),
        )
    except OSError as error:
        raise ConnectionError(
            f"{name} could not be downloaded from {url} ({error}); "
            f"get the file another way and pass its folder as data_home"
        ) from error
    return Path(path).read_bytes()


def _read(name: str, folder: str | os.PathLike[str], otherwise: str) -> tuple[Path, bytes]:
    """Return path and content of ``<name>.csv`` or ``<name>.csv.gz`` in the folder."""
    home = as_folder(folder)
    candidates = [home / f"{name}.csv", home / f"{name}.csv.gz"]
    path = next((path for path in candidates if path.is_file()), None)
    if path is None:
        raise FileNotFoundError(
            f"data_home must hold {candidates[0].name} or {candidates[1].name}; found neither in "
            f"{home}. Put the file there, or {otherwise}"
        )
    return path, read_file(path, _MOST, f"Replace the file, or {otherwise}")


def _check_content(path: Path, name: str, content: bytes, published: str) -> None:
    digest = hashlib.sha256(content).hexdigest()
    if digest != published:
        raise ValueError(
            f"{path} is not the published {name}.csv: its content must have SHA-256 {published}; "
            f"got {digest}. Replace the file"
        )
