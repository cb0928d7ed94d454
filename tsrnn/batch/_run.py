"""What a run has left."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tsrnn.batch._files import polars
from tsrnn.contract import choice
from tsrnn.data import to_pandas

__all__ = ["BatchRun"]


@dataclass(frozen=True)
class BatchRun:
    """A finished run of `forecast_batches`; print it.

    Parameters
    ----------
    path : Path
        Its folder.
    n_series, n_failed : int
        Series, and those of them without forecasts.
    n_unread : int
        Frames of an iterator that could not be read.
    n_partitions, n_resumed : int
        Partitions, and those of them that an interrupted run had finished.
    seconds : float
        Of this run.

    Examples
    --------
    See `forecast_batches`, which makes it.

    >>> from pathlib import Path
    >>> from tsrnn.batch import BatchRun
    >>> print(BatchRun(Path("night"), 1000, 2, 0, 5, 1, 3.2))
    1000 series in 5 partitions, 1 of them from before: 998 forecast, 2 failed; 3.2 s
    """

    path: Path
    n_series: int
    n_failed: int
    n_unread: int
    n_partitions: int
    n_resumed: int
    seconds: float

    def forecasts(self, library: str = "pandas") -> Any:
        """All forecasts as one long frame.

        Parameters
        ----------
        library : {"pandas", "polars"}
        """
        return self._read("forecasts", library)

    def errors(self, library: str = "pandas") -> Any:
        """What went wrong: ``unique_id``, ``kind`` ("error" or "warning") and ``message``.

        Parameters
        ----------
        library : {"pandas", "polars"}
        """
        return self._read("errors", library)

    def _read(self, folder: str, library: str) -> Any:
        choice("library", library, ("pandas", "polars"))
        files = sorted((self.path / folder).glob("part-*.parquet"), key=_number)
        parts = [polars().read_parquet(file, glob=False) for file in files]
        parts = [part for part in parts if len(part)] or parts[:1]
        zones = {
            getattr(dtype, "time_zone", None)
            for part in parts
            for dtype in part.schema.values()
            if dtype.is_temporal()
        }
        if len(zones) > 1:
            named = " and ".join(sorted(zone or "none" for zone in zones))
            raise ValueError(
                f"the partitions in {str(self.path)!r} must have timestamps of one time zone; "
                f"they have {named}. Run again with data of one zone and overwrite=True"
            )
        frame = polars().concat(parts, how="vertical_relaxed")
        return frame if library == "polars" else to_pandas(frame)

    def __str__(self) -> str:
        before = f", {self.n_resumed} of them from before" if self.n_resumed else ""
        done = f"{self.n_series - self.n_failed} forecast, {self.n_failed} failed"
        if self.n_unread:
            done += f", {self.n_unread} frames not read"
        plural = "" if self.n_partitions == 1 else "s"
        many = f"{self.n_series} series in {self.n_partitions} partition{plural}"
        return f"{many}{before}: {done}; {self.seconds:.1f} s"


def _number(path: Path) -> int:
    return int(path.stem.removeprefix("part-"))
