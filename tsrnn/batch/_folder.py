"""Folder of a run: its plan, and for each partition a file of forecasts and one of problems."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tsrnn.contract import as_path, inside, put_file, remove_unfinished
from tsrnn.data import load_polars

__all__ = ["Counts", "Folder"]

PLAN, FINISHED = "plan.json", "_SUCCESS"
KIND = {"tsrnn": "forecast_batches"}  # marks a plan as one of tsrnn


@dataclass(frozen=True)
class Counts:
    """Counts of a partition: series, series without forecasts, and unreadable frames."""

    series: int
    failed: int
    unread: int
    digest: str


class Folder:
    """Folder in which a run leaves its results; every file appears in one step.

    Forecasts are the last file of a partition: if they are there, the partition is complete.
    """

    def __init__(self, path: Any) -> None:
        self.path = as_path(path).resolve()  # workers may be elsewhere

    def check_apart(self, files: Iterable[Path]) -> None:
        """Refuse a folder that holds the input files, which a run would remove or replace."""
        for file in files:
            if inside(file, self.path):
                raise ValueError(
                    f"out must not hold the files that are read; {str(file)!r} is in "
                    f"{str(self.path)!r}. Name another folder for the forecasts"
                )

    def begin(self, plan: dict[str, Any], overwrite: bool) -> None:
        """Claim the folder for a new run, or resume an interrupted one."""
        if self.path.exists() and not self.path.is_dir():
            raise NotADirectoryError(f"out must be a folder; {str(self.path)!r} is none")
        self.path.mkdir(parents=True, exist_ok=True)
        plan, known = KIND | plan, self._plan()
        if known is None and self._has_others():
            raise ValueError(
                f"out must be a new or empty folder, or that of an earlier run; {str(self.path)!r} "
                "holds other files. Name another"
            )
        if known is not None and overwrite and (known != plan or "iterator" in plan["source"]):
            self._clear()
            known = None
        if known is not None and known != plan:
            differs = sorted(name for name in {*plan, *known} if plan.get(name) != known.get(name))
            raise ValueError(
                f"{str(self.path)!r} holds a run with other {', '.join(differs)}. Name another "
                "folder, or replace the run by overwrite=True"
            )
        (self.path / FINISHED).unlink(missing_ok=True)
        remove_unfinished(self.path)
        for folder in ("forecasts", "errors"):
            (self.path / folder).mkdir(exist_ok=True)
            remove_unfinished(self.path / folder)
        if known is None:
            put_file(
                self.path / PLAN, lambda place: place.write_text(json.dumps(plan), encoding="utf-8")
            )

    def finish(self, n_partitions: int) -> None:
        """Mark the run as complete."""
        kept = len(list((self.path / "forecasts").glob("part-*.parquet")))
        if kept != n_partitions:
            raise ValueError(
                f"{str(self.path)!r} holds {kept} partitions, the iterator now gave "
                f"{n_partitions}. Name another folder, or replace the run by overwrite=True"
            )
        put_file(self.path / FINISHED, lambda place: place.touch())

    def counts(self, number: int) -> Counts | None:
        """Return the counts of a finished partition; None if it is not, or is damaged."""
        pl, path = load_polars(), self.forecasts(number)
        if not (path.is_file() and self.errors(number).is_file()):
            return None
        try:
            return Counts(**json.loads(pl.read_parquet_metadata(path)["tsrnn"]))
        except (pl.exceptions.PolarsError, KeyError, TypeError, ValueError):
            return None

    def write(self, number: int, forecasts: Any, problems: Any, counts: Counts) -> None:
        """Keep the results of a partition, polars frames."""
        put_file(self.errors(number), problems.write_parquet)
        metadata = {"tsrnn": json.dumps(asdict(counts))}
        put_file(
            self.forecasts(number), lambda place: forecasts.write_parquet(place, metadata=metadata)
        )

    def forecasts(self, number: int) -> Path:
        """File of the forecasts of a partition."""
        return self.path / "forecasts" / f"part-{number:05d}.parquet"

    def errors(self, number: int) -> Path:
        """File of the problems of a partition."""
        return self.path / "errors" / f"part-{number:05d}.parquet"

    def _plan(self) -> dict[str, Any] | None:
        """Plan of the run in this folder; None without a plan of tsrnn."""
        try:
            plan = json.loads((self.path / PLAN).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return plan if isinstance(plan, dict) and KIND.items() <= plan.items() else None

    def _has_others(self) -> bool:
        """True if the folder has files other than those of a run killed at its beginning."""
        folders = [self.path / folder for folder in ("forecasts", "errors")]
        return any(
            not path.match(".*.tmp") and not (path in folders and not any(path.iterdir()))
            for path in self.path.iterdir()
        )

    def _clear(self) -> None:
        """Remove a run, the plan last, and nothing else."""
        for folder in ("forecasts", "errors"):
            for path in (self.path / folder).glob("part-*.parquet"):
                path.unlink()
        (self.path / FINISHED).unlink(missing_ok=True)
        (self.path / PLAN).unlink()
