"""The electricity transformer data, downloaded once or read from a folder, and verified."""

import gzip
import hashlib
import io
import os
import zlib
from pathlib import Path

import pandas as pd

from tsrnn.datasets._catalogue import RECORDS, tidy

# A commit, not a branch: the address keeps its content.
_BASE_URL = (
    "https://raw.githubusercontent.com/zhouhaoyi/ETDataset/"
    "1d16c8f4f943005d613b5bc962e9eeb06058cf07/ETT-small/"
)
_SHA256 = {
    "ETTh1": "f18de3ad269cef59bb07b5438d79bb3042d3be49bdeecf01c1cd6d29695ee066",
    "ETTm1": "6ce1759b1a18e3328421d5d75fadcb316c449fcd7cec32820c8dafda71986c9e",
}


def load_ett(
    name: str = "ETTh1", *, data_home: str | os.PathLike[str] | None = None
) -> pd.DataFrame:
    """Load the loads and the oil temperature of an electricity transformer, July 2016 to June 2018.

    Parameters
    ----------
    name : {"ETTh1", "ETTm1"}
        ``"ETTh1"`` is hourly (17,420 rows), ``"ETTm1"`` has a row every 15 minutes (69,680 rows).
    data_home : path, optional
        Folder with ``<name>.csv`` or ``<name>.csv.gz``, read without network. By default the
        file is downloaded once (2.6 MB and 10.4 MB) into the user's cache folder for ``tsrnn``.

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
        If `name` is unknown, or if the content is not the published one (SHA-256).
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
    if name not in _SHA256:
        raise ValueError(f"name must be one of {sorted(_SHA256)}; got {name!r}")
    content = _download(name) if data_home is None else _read(name, Path(data_home).expanduser())
    frame = pd.read_csv(io.BytesIO(content), index_col="date", parse_dates=["date"])
    return tidy(RECORDS[name], frame)


def _download(name: str) -> bytes:
    """Return the content of the cached file, fetched where the cache lacks it."""
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


def _read(name: str, folder: Path) -> bytes:
    """Return the verified content of ``<name>.csv`` or ``<name>.csv.gz`` in the folder."""
    candidates = [folder / f"{name}.csv", folder / f"{name}.csv.gz"]
    path = next((path for path in candidates if path.is_file()), None)
    if path is None:
        raise FileNotFoundError(
            f"data_home must hold {candidates[0].name} or {candidates[1].name}; found neither in "
            f"{folder}. Put the file there, or leave data_home out to download it"
        )
    content = path.read_bytes()
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(
                f"{path} must be a complete gzip file; got {len(content)} bytes that do not "
                f"decompress ({error}). Replace the file, or leave data_home out to download"
            ) from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != _SHA256[name]:
        raise ValueError(
            f"{path} is not the published {name}.csv: its content must have SHA-256 "
            f"{_SHA256[name]}; got {digest}. Replace the file, or leave data_home out to download"
        )
    return content
