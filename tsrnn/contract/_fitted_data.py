"""Columns and series of the data that a forecaster was fitted to."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from tsrnn.contract._estimator import Arguments
from tsrnn.contract._file import plain
from tsrnn.contract._schema import as_saved, check_arrays, refuse
from tsrnn.contract._support import Support, supports_of
from tsrnn.data import (
    Holidays,
    Layout,
    Panel,
    array_frame,
    calendar_columns,
    calendar_features,
    calendar_names,
    cycle_steps,
    future_times,
    is_array,
    quote,
    quoted,
    read_future,
    steps_between,
    type_advice,
    warn_user,
)

NAMES_SHOWN = 3
IDS_SHOWN = 4  # known ids in a message about unknown ones


@dataclass(frozen=True, eq=False)
class FittedData:
    """Series and columns of the data fitted to, which later frames must match.

    Attributes
    ----------
    layout : Layout
    ids : pandas.Index of shape (S,)
    exog_names : tuple
        Exogenous columns of the frames, then of the calendar, then of holidays. Here and in the
        next two, columns of labels are replaced by their dummies.
    known_ahead : list
        Exogenous columns with a known future: from `X_future`, the calendar and holidays.
    static : list
        Exogenous columns that are constant within each series.
    static_values : ndarray of shape (S, n)
        Values of the static columns, NaN if a series has none.
    calendar : tuple of str
        Cycles of the calendar.
    holidays : Holidays or None
    zero_shares : ndarray of shape (S, C)
        Share of zeros of each target.
    supports : tuple of C Support
        Values that each target can have.
    notes : tuple of str
        See `Panel.notes`.

    Examples
    --------
    >>> from tsrnn import ARMA
    >>> from tsrnn.datasets import load_nile
    >>> data = ARMA(order=(1, 0)).fit(load_nile()).fitted_.data
    >>> data.layout.target_names, data.exog_names, data.freq
    (('volume',), (), 'YS-JAN')
    """

    layout: Layout
    ids: pd.Index
    exog_names: tuple[Any, ...]
    known_ahead: list[Any]
    static: list[Any]
    static_values: np.ndarray
    calendar: tuple[str, ...]
    holidays: Holidays | None
    zero_shares: np.ndarray
    supports: tuple[Support, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, panel: Panel, arguments: Arguments) -> FittedData:
        """Return the description of a panel with its calendar columns, and check arguments.

        Raises
        ------
        TypeError, ValueError
            If an argument names unknown columns, or static columns vary.
        """
        features = calendar_features(arguments.calendar, panel.layout)
        holidays = Holidays.already_in(arguments.holidays, panel)
        derived = [*calendar_names(features, panel.layout), *(holidays.columns if holidays else ())]
        given = known_columns(arguments.known_ahead, panel)
        layout = panel.layout
        ahead = [name for name in given if name not in (*derived, *layout.ignored)]
        known = [*layout.dummy_names(ahead), *derived]
        constant = known_columns(arguments.static, panel, "static")
        if constant and layout.id_col is None:
            raise ValueError(
                f"static columns tell series of a long frame apart; got {constant} for a frame "
                "without ids. Leave static out and drop these columns"
            )
        both = [name for name in constant if name in given]
        if both:
            raise ValueError(
                f"a column is either static or known_ahead; {both} are in both. Leave them out of "
                "known_ahead: they need not be given in X_future"
            )
        constant = layout.dummy_names(name for name in constant if name not in layout.ignored)
        return cls(
            panel.layout, panel.ids, panel.exog_names, known, constant,
            static_values(panel, constant), features, holidays, zero_shares(panel),
            supports_of(panel, arguments.support), panel.notes,
        )  # fmt: skip

    @classmethod
    def from_file(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> FittedData:
        """Rebuild the description from a file.

        Raises
        ------
        DamagedFileError
            If fields are inconsistent.
        """
        exog_names, known = tuple(header["exog_names"]), header["known_ahead"]
        static, fields = header["static"], {*header["exog_names"]}
        with as_saved("layout"):
            layout = Layout.from_dict(header["layout"])
        if not {*layout.dummy_names(each.column for each in layout.categories)} <= fields:
            raise refuse("exog_names", "all dummies of the layout's categories", exog_names)
        if len({*layout.target_names, *exog_names}) < len(layout.target_names) + len(exog_names):
            raise refuse("exog_names", "names other than each other's and the targets'", exog_names)
        if len(set(known)) < len(known) or not set(known) <= fields:
            raise refuse("known_ahead", f"some of the columns {quote(list(exog_names))}", known)
        with as_saved("calendar"):
            features = calendar_features(header["calendar"] or None, layout)
        if not set(calendar_names(features, layout)) <= fields:
            raise refuse(
                "calendar", f"cycles of which {quote(list(exog_names))} are", header["calendar"]
            )
        holidays = Holidays.from_dict(header["holidays"]) if header.get("holidays") else None
        if holidays and not (holidays.places and {*holidays.columns} <= {*known}):
            raise refuse("holidays", f"places, and columns among {known}", header["holidays"])
        if len(set(static)) < len(static) or not set(static) <= fields - {*known}:
            required = f"columns of {quote(list(exog_names))} that are not known ahead"
            raise refuse("static", required, static)
        n_targets = len(layout.target_names)
        supports = tuple(map(Support.of, header.get("supports", ["real"] * n_targets)))
        if len(supports) != n_targets:
            raise refuse("supports", "one of each target", header["supports"])
        ids = ids_from_file(header, layout)
        shapes: dict[str, tuple[str, tuple[int, ...]]] = {
            "static": ("float64", (len(ids), len(static))),
            "zero_shares": ("float64", (len(ids), len(layout.target_names))),
        }
        check_arrays({name: arrays[name] for name in shapes if name in arrays}, shapes)
        return cls(
            layout, ids, exog_names, known, static, arrays["static"], features,
            holidays, arrays["zero_shares"], supports, tuple(header.get("notes", ())),
        )  # fmt: skip

    def to_file(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return JSON values and arrays of a file; `from_file` is the inverse."""
        header = {
            "layout": self.layout.to_dict(),
            "exog_names": plain(self.exog_names, "exogenous columns"),
            "known_ahead": plain(self.known_ahead, "known_ahead"),
            "static": plain(self.static, "static"),
            "calendar": list(self.calendar),
            "holidays": asdict(self.holidays) if self.holidays else None,
            "supports": plain([support.value for support in self.supports], "support"),
            "notes": list(self.notes),
            "ids": plain(self.ids, "series ids"),
            "id_dtype": str(self.ids.dtype),
        }
        return header, {"static": self.static_values, "zero_shares": self.zero_shares}

    @property
    def freq(self) -> str | int:
        """Frequency: a pandas alias, or the step of an integer index."""
        return self.layout.freq

    @property
    def n_targets(self) -> int:
        """Number of targets of a series."""
        return len(self.layout.target_names)

    @cached_property
    def calendar_columns(self) -> list[str]:
        """Names of the calendar columns."""
        return calendar_names(self.calendar, self.layout)

    @cached_property
    def holiday_columns(self) -> list[str]:
        """Names of the columns of holidays and working days."""
        return list(self.holidays.columns) if self.holidays else []

    @cached_property
    def given_columns(self) -> list[Any]:
        """Names of the exogenous columns that frames hold."""
        derived = {*self.calendar_columns, *self.holiday_columns}
        given = (name for name in self.exog_names if name not in derived)
        return list(self.layout.frame_names(given))

    @cached_property
    def given_ahead(self) -> list[Any]:
        """Names of the columns of `X_future`."""
        derived = {*self.calendar_columns, *self.holiday_columns}
        given = (name for name in self.known_ahead if name not in derived)
        return list(self.layout.frame_names(given))

    def complete(self, panel: Panel) -> Panel:
        """Add calendar and holiday columns to the panel of a later frame; check static columns."""
        if self.static:
            static_values(panel, self.static)
        return with_holidays(with_calendar(panel, self.calendar), self.holidays)

    def series_of(self, ids: pd.Index, model: str) -> np.ndarray:
        """Return the position of the fitted series whose parameters apply to each id.

        A single fitted series applies to all ids; otherwise each series only to its own id.
        `model` is the name of the class, for errors.

        Raises
        ------
        ValueError
            If an id was not fitted, and there are several series.
        """
        if len(self.ids) == 1:
            return np.zeros(len(ids), np.int64)
        fitted = self.ids.get_indexer(ids)
        if np.any(fitted < 0):
            unknown = ids[fitted < 0]
            advice = type_advice(unknown, self.ids) or (
                " Fit to these series, or fit one alone and apply it"
            )
            raise ValueError(
                f"{model} has parameters for each series it was fitted to; not among them: "
                f"{quoted(unknown, NAMES_SHOWN)}.{advice}"
            )
        return fitted

    def all_ahead(self, future: np.ndarray | None) -> np.ndarray | None:
        """Return future exogenous columns (S, h, n) in the order of `exog_names`.

        Raises
        ------
        ValueError
            If a column has no known future.
        """
        places = {name: place for place, name in enumerate(self.known_ahead)}
        absent = [name for name in self.exog_names if name not in places]
        if absent:
            raise ValueError(
                f"forecasts need the future of all regressors; not known ahead are "
                f"{quote(list(self.layout.frame_names(absent)))}. "
                f"Construct with known_ahead={quote(self.given_columns)}, fit again and give them "
                "as X_future"
            )
        if not self.exog_names:
            return None
        assert future is not None  # by the contract, with columns that are known ahead
        return future[:, :, [places[name] for name in self.exog_names]]

    def check_static_unchanged(self, panel: Panel) -> None:
        """Refuse new rows whose static columns differ from those of their series.

        Raises
        ------
        ValueError
            If a static column changes.
        """
        if not self.static:
            return
        now = static_values(panel, self.static)
        before = self.static_values[self.ids.get_indexer(panel.ids)]
        differs = np.argwhere(np.isfinite(now) & np.isfinite(before) & (now != before))
        if len(differs):
            i, j = differs[0]
            raise ValueError(
                f"{panel.axis.where(i)}the static column {quote(self.static[j])} must be what it "
                f"was, {before[i, j]:g}; new rows have {now[i, j]:g}. Correct it, or fit again"
            )

    def read_future(
        self, X_future: Any, ids: pd.Index, last_times: np.ndarray, h: int
    ) -> np.ndarray | None:
        """Return the columns known ahead (S, h, n), given columns first; None without any.

        Raises
        ------
        TypeError, ValueError
            If `X_future` is missing, not needed, or not of the h steps after `last_times`.
        """
        given, layout, parts = self.given_ahead, self.layout, []
        if X_future is None and given:
            raise ValueError(
                f"the model needs the columns {quoted(given)} of the {h} steps ahead; X_future was "
                "not given. Give a frame with these columns and a row for each step as X_future"
            )
        if X_future is not None and not given and not layout.ignored:
            raise ValueError(
                "X_future was given, but no column was declared known ahead. Construct with "
                "known_ahead=[...] and fit again, or leave X_future out"
            )
        if given and layout.backend == "numpy" and is_array(X_future):
            start = int(future_times((last_times, layout.grid), 1)[0, 0])
            X_future = array_frame(np.asarray(X_future).reshape(-1, len(given)), start)
            X_future.columns = pd.Index(given)
        if given:
            known = {*layout.target_names, *self.given_columns} - {*given}
            others = [name for name in getattr(X_future, "columns", ()) if name in known]
            if others:
                warn_user(
                    f"X_future has columns that are not known ahead, {quote(others)}: they are not "
                    "used. Leave them out, or name those whose future is known in known_ahead and "
                    "fit again"
                )
                if isinstance(X_future, pd.DataFrame):  # repeated names are refused later
                    X_future = X_future.drop(columns=others)
                else:
                    X_future = nw.from_native(X_future).drop(others).to_native()
            values = read_future(
                X_future, h=h, columns=given, ids=ids, last_times=last_times, freq=layout.grid,
                layout=layout,
            )  # fmt: skip
            parts.append(values)
        if self.calendar or self.holidays:
            times = future_times((last_times, layout.grid), h, tz=layout.tz)
            if self.calendar:
                parts.append(calendar_columns(times, self.calendar, layout))
            if self.holidays:
                parts.append(self.holidays.values(times, layout))
        return np.concatenate(parts, 2) if parts else None

    def steps_before(self, end: Any, last_times: np.ndarray) -> np.ndarray:
        """Return the steps (S,) from the last timestamp of each series to a common end."""
        ends = np.full_like(last_times, end)
        return steps_between(last_times, ends, self.layout.grid, self.layout.tz)

    def times_ahead(self, state: Any, h: int) -> np.ndarray:
        """Return the timestamps (S, h) of the steps after a state."""
        return future_times((state.last_times, self.layout.grid), h, tz=self.layout.tz)


def ids_from_file(header: dict[str, Any], layout: Layout) -> pd.Index:
    """Return the ids of the series in a file, checked to be unique."""
    listed_ids, dtype = header["ids"], header["id_dtype"]
    if not re.fullmatch(r"str|string|object|category|bool|u?int\d+|float\d+", dtype, re.IGNORECASE):
        raise refuse("id_dtype", "the type of the ids", dtype)
    with as_saved("ids and id_dtype"):
        ids = pd.Index(listed_ids, dtype=dtype)
    if not len(ids) or not ids.is_unique or ids.hasnans:
        raise refuse("ids", "the names of at least one series, each once", listed_ids)
    if ids.tolist() != listed_ids:
        raise refuse("ids", f"of the type {dtype!r} that id_dtype names", listed_ids)
    if layout.id_col is None and len(ids) > 1:
        raise refuse("ids", "one name, as the data have no column of ids", listed_ids)
    return ids


def known_columns(given: Any, panel: Panel, argument: str = "known_ahead") -> list[Any]:
    """Return the argument `known_ahead` or `static` as a list of exogenous columns."""
    given = [] if given is None else given
    known = [given] if isinstance(given, str | int) and not isinstance(given, bool) else given
    if not isinstance(known, Sequence):
        raise TypeError(f"{argument} must be a column name or a list of them; got {given!r}")
    columns, ignored = panel.exog_columns, panel.layout.ignored
    present = {*columns, *ignored}
    absent = [name for name in known if not isinstance(name, Hashable) or name not in present]
    if absent:
        there = f"which are {quoted([*columns, *ignored])}" if present else "which has none"
        raise ValueError(
            f"{argument} must name exogenous columns of the data, {there}; got {quoted(absent)}. "
            "Columns besides the targets are exogenous"
        )
    if len(set(known)) < len(known):
        raise ValueError(f"{argument} must name each column once; got {quote(given)}")
    return list(known)


def static_values(panel: Panel, names: Sequence[Any]) -> np.ndarray:
    """Return the values of columns that are constant within each series, shape (S, n).

    A series without a value has NaN; a column that varies within a series is refused.
    """
    columns = panel.exog_of(names)
    # First known value of each series: inserted rows are NaN.
    parts = np.split(columns, panel.indptr[1:-1])
    places = np.stack([np.isfinite(part).argmax(0) for part in parts]) + panel.indptr[:-1, None]
    first = np.take_along_axis(columns, places, 0)
    varies = np.isfinite(columns) & (columns != np.repeat(first, panel.lengths, 0))
    for j, name in enumerate(names):
        rows = np.flatnonzero(varies[:, j])
        if len(rows):
            i = int(panel.axis.codes[rows[0]])
            differing = rows[panel.axis.codes[rows] == i]
            value = columns[differing[0], j]
            raise ValueError(
                f"{panel.axis.where(i)}the static column {quote(name)} must be constant within the "
                f"series; it begins with {first[i, j]:g} and is {value:g} "
                f"at {panel.axis.show(differing[:1])}. Correct it, or leave it out of static"
            )
    return first


def without_constants(panel: Panel, names: Sequence[Any]) -> Panel:
    """Drop the constant columns among `names`, with a warning and a note.

    Their effects are part of the mean and cannot be estimated. Later frames may still have them.
    """
    layout, exog = panel.layout, panel.exog
    dummies = {*layout.dummy_names(each.column for each in layout.categories)}
    seen = np.isfinite(exog)
    lowest = np.where(seen, exog, np.inf).min(0)
    highest = np.where(seen, exog, -np.inf).max(0)
    constant: list[Any] = [
        name
        for name, fixed in zip(panel.exog_names, lowest == highest, strict=True)
        if fixed and name in names and name not in dummies
    ]
    constant += [each.column for each in layout.categories if not each.names]
    if not constant:
        return panel
    kept = tuple(name for name in panel.exog_names if name not in constant)
    varying = tuple(each for each in layout.categories if each.names)
    named = f"{'columns' if len(constant) > 1 else 'column'} {quoted(constant, NAMES_SHOWN)}"
    reason = "constant in the rows fitted to, so that no effect can be estimated"
    warn_user(f"left out: the {named}, {reason}. Later data and X_future may hold what is left out")
    return replace(
        panel,
        exog=panel.exog_of(kept),
        exog_names=kept,
        layout=replace(layout, categories=varying, ignored=tuple(constant)),
        notes=(*panel.notes, f"Left out: the {named}, {reason}."),
    )


def with_calendar(panel: Panel, features: Sequence[str]) -> Panel:
    """Append calendar columns to the exogenous columns of a panel."""
    if not features:
        return panel
    names = calendar_names(features, panel.layout)
    check_names_are_free(panel, names, "the calendar")
    return with_columns(panel, names, calendar_columns(panel.times, features, panel.layout))


def with_holidays(panel: Panel, holidays: Holidays | None) -> Panel:
    """Append holiday columns to the exogenous columns of a panel."""
    if holidays is None:
        return panel
    check_names_are_free(panel, holidays.columns, "the argument holidays")
    return with_columns(panel, holidays.columns, holidays.values(panel.times, panel.layout))


def with_columns(panel: Panel, names: Sequence[str], columns: np.ndarray) -> Panel:
    """Append exogenous columns (N, n) to a panel."""
    exog = np.column_stack([panel.exog, columns])
    return replace(panel, exog=exog, exog_names=(*panel.exog_names, *names))


def check_names_are_free(panel: Panel, names: Sequence[str], maker: str) -> None:
    """Refuse data with columns of these names; `maker` would add them."""
    taken = [name for name in names if name in (*panel.exog_names, *panel.target_names)]
    if taken:
        raise ValueError(
            f"{maker} makes columns {', '.join(names)}; the data have {taken} already. Drop "
            "or rename them"
        )


def warn_of_short_calendar(panel: Panel, features: Sequence[str]) -> None:
    """Warn if no series covers a whole cycle, which then cannot be told from a trend."""
    for name in features:
        steps = cycle_steps(name, panel.layout)
        if panel.lengths.max() < steps:
            warn_user(
                f"calendar={quote(name)} has a cycle of {steps:.0f} rows, of which the longest "
                f"series has {panel.lengths.max()}: what it repeats cannot be told from a trend. "
                "Leave it out, or give more rows"
            )


def known_values(panel: Panel, names: Sequence[Any], h: int) -> np.ndarray:
    """Return columns of a panel as (S, h, n), with the last row repeated after a series' end."""
    rows = panel.indptr[:-1, None] + np.arange(h)
    return panel.exog_of(names)[np.minimum(rows, panel.indptr[1:, None] - 1)]


def label_list(labels: Any) -> list[Any]:
    """Return one or several labels (or axes) as a list."""
    if isinstance(labels, np.ndarray):
        return list(labels.ravel())
    several = hasattr(labels, "__iter__") and not isinstance(labels, str | bytes)
    return list(labels) if several else [labels]


def series_numbers(ids: pd.Index, asked: Any, argument: str) -> np.ndarray:
    """Return the positions of the series that an argument names, by one id or several."""
    labels = label_list(asked)
    hashable = all(isinstance(label, Hashable) for label in labels)
    if isinstance(asked, tuple) and hashable:
        whole = pd.Index([asked], tupleize_cols=False)
        labels = [asked] if ids.get_indexer(whole)[0] >= 0 else labels  # one id, or several
    numbers = np.array([-1])
    if hashable:
        numbers = ids.get_indexer(pd.Index(labels, tupleize_cols=False))
    if not labels or (numbers < 0).any():
        unknown = labels
        if hashable:
            unknown = [label for label, i in zip(labels, numbers, strict=True) if i < 0]
        more = ", ..." if len(ids) > IDS_SHOWN else ""
        others = f" and {len(unknown) - IDS_SHOWN} more" if len(unknown) > IDS_SHOWN else ""
        advice = type_advice(unknown if hashable else [], ids)
        raise ValueError(
            f"{argument} must be ids among the {len(ids)} there are, "
            f"{', '.join(map(quote, ids[:IDS_SHOWN]))}{more}; got "
            f"{', '.join(map(quote, unknown[:IDS_SHOWN])) or '[]'}{others}"
            f"{'.' * bool(advice)}{advice}"
        )
    if len(np.unique(numbers)) < len(numbers):
        repeated = next(label for k, label in enumerate(labels) if label in labels[:k])
        raise ValueError(f"{argument} must name each series once; {quote(repeated)} is named twice")
    return numbers


def unit_index(layout: Layout, ids: pd.Index, multivariate: bool) -> pd.Index:
    """Return the labels of units: series if `multivariate`, otherwise targets of series.

    They are ids of a long frame, names of the targets of a wide one, and a MultiIndex of both for
    several targets of a long frame.
    """
    named = ids.rename(layout.id_col)
    targets = pd.Index(layout.target_names, name="target")
    if multivariate or (layout.id_col is not None and len(targets) == 1):
        return named
    if layout.id_col is None:
        return targets.rename(None)
    return pd.MultiIndex.from_product([named, targets])


def unit_number(units: pd.Index, label: Any) -> int:
    """Return the position of a label among the units, -1 if unknown.

    The label is a tuple if the units have several levels, or if ids are tuples.
    """
    # get_indexer would raise on a tuple of another length, or match its first level alone.
    several = units.nlevels > 1
    if not isinstance(label, Hashable) or (
        several and not (isinstance(label, tuple) and len(label) == units.nlevels)
    ):
        return -1
    return int(units.get_indexer(pd.Index([label], tupleize_cols=several))[0])


def target_scales(panel: Panel) -> np.ndarray:
    """Return the standard deviation of each target, 1 if it does not vary.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    ndarray of shape (S, C)
        Standard deviations of the known values; the divisor is their number.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.contract import target_scales
    >>> from tsrnn.data import read_panel
    >>> days = pd.date_range("2024-01-01", periods=4)
    >>> target_scales(read_panel(pd.DataFrame({"a": [1, 1, 5, 5], "b": 3}, days)))
    array([[2., 1.]])
    """
    values, starts = panel.values, panel.indptr[:-1]
    seen = np.isfinite(values)
    whole = seen.all()
    # Subtract means before squaring: the difference of two large squares would cancel.
    counts = _value_counts(panel, seen)
    means = np.add.reduceat(values if whole else np.where(seen, values, 0.0), starts) / counts
    deviations = values - (means if len(means) == 1 else np.repeat(means, panel.lengths, 0))
    if not whole:
        deviations[~seen] = 0.0
    scales = np.sqrt(np.add.reduceat(np.square(deviations, out=deviations), starts) / counts)
    return np.where(scales > 0, scales, 1.0)


def zero_shares(panel: Panel) -> np.ndarray:
    """Return the share of zeros among the known values of each target, (S, C)."""
    zeros = panel.values == 0
    if not zeros.any():
        return np.zeros((panel.n_series, panel.values.shape[1]))
    counts = _value_counts(panel, np.isfinite(panel.values))
    return np.add.reduceat(zeros, panel.indptr[:-1], dtype=float) / counts


def _value_counts(panel: Panel, seen: np.ndarray) -> np.ndarray:
    """Return the number of known values of each target (S, C), at least 1; `seen` is their mask."""
    if seen.all():
        return np.repeat(panel.lengths[:, None].astype(float), seen.shape[1], 1)
    return np.maximum(np.add.reduceat(seen, panel.indptr[:-1], dtype=float), 1.0)
