"""Columns of labels as dummies: levels are fixed at the fit and code later frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.data._faults import listed, quote, quoted
from tsrnn.data._text_table import is_number
from tsrnn.data._written_dates import is_text, looks_like_dates

MOST_LEVELS = 50  # columns of more are ids or free text; every level costs a coefficient
LEVELS_SHOWN = 10


@dataclass(frozen=True)
class Categories:
    """Levels of a column of labels; each but the first has a dummy column of zeros and ones.

    Parameters
    ----------
    column : str or int
        Name of the column in frames.
    levels : tuple of str
        Levels with rows in the data fitted to; the first is the reference.
    without_rows : tuple of str
        Declared levels of a categorical column without rows. They have no dummy, since their
        effect cannot be estimated, and count as the reference.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.data import Categories
    >>> weather = Categories("weather", ("cloud", "rain", "sun"))
    >>> weather.names
    ('weather[T.rain]', 'weather[T.sun]')
    >>> weather.dummies(pd.Series(["sun", "cloud"])).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """

    column: str | int
    levels: tuple[str, ...]
    without_rows: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the dummy columns, as statsmodels and patsy write them."""
        return tuple(f"{self.column}[T.{level}]" for level in self.levels[1:])

    @property
    def note(self) -> str:
        """Sentence on the coding, for `Panel.notes`."""
        reference, others = quote(self.levels[0]), quoted(self.levels[1:], LEVELS_SHOWN)
        text = (
            f"The column {quote(self.column)} holds labels, of which {reference} is the reference"
        )
        if len(self.levels) == 1:
            return f"The column {quote(self.column)} holds one label, {reference}."
        verb = "enters" if len(self.names) == 1 else "enter"
        text += f"; {others} {verb} as {quoted(self.names, LEVELS_SHOWN)}, zero or one."
        if self.without_rows:
            without = quoted(self.without_rows, LEVELS_SHOWN)
            text += f" No row has {without}: the effect is that of the reference."
        return text

    def dummies(self, column: pd.Series, owner: str = "") -> np.ndarray:
        """Return the dummies of a column.

        Parameters
        ----------
        column : pandas.Series of length N
            Text, a categorical, or other values that equal the levels as text.
        owner : str
            Frame of the column in messages, such as " of X_future".

        Returns
        -------
        ndarray of float64, shape (N, k)
            One column for each level but the reference; NaN in rows with a missing label.

        Raises
        ------
        ValueError
            If a label is not among the levels.
        """
        codes, labels = _codes(column)
        number = {level: place for place, level in enumerate(self.levels)}
        number |= dict.fromkeys(self.without_rows, 0)
        rows_of = np.bincount(codes[codes >= 0], minlength=len(labels))
        unknown = [
            label for label, n in zip(labels, rows_of, strict=True) if n and label not in number
        ]
        if unknown:
            row = int(np.flatnonzero(codes == labels.index(unknown[0]))[0])
            raise ValueError(
                f"the column {quote(self.column)}{owner} must have the levels of the data fitted "
                f"to, {quoted(list(number), LEVELS_SHOWN)}; got {quoted(unknown, 3)}, first at row "
                f"{row}. Correct the label, or fit again to rows that have it"
            )
        places = np.array([*(number.get(label, 0) for label in labels), -1], np.int64)[codes]
        coded = (places[:, None] == np.arange(1, len(self.levels))).astype(np.float64)
        coded[places < 0] = np.nan
        return coded

    def labels(self, dummies: np.ndarray) -> Any:
        """Return labels (N,) of dummies (N, k), the inverse of `dummies`; NaN becomes missing."""
        places = dummies @ np.arange(1, len(self.levels))
        known = np.isfinite(places)
        codes = np.where(known, np.where(known, places, 0), -1).astype(np.int64)
        return pd.Categorical.from_codes(codes, pd.Index([*self.levels, *self.without_rows]))


def holds_labels(column: pd.Series) -> bool:
    """Return True for a categorical, and for text other than dates and numbers."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return True
    return is_text(column) and not is_number_text(column) and not looks_like_dates(column)


def is_number_text(column: pd.Series) -> bool:
    """Return True if most values of a column are numbers written as text."""
    if not is_text(column):
        return False
    return bool(column.dropna().map(is_number).mean() > 0.5)


def choose_categories(columns: pd.DataFrame, names: Sequence[Any]) -> tuple[Categories, ...]:
    """Return the levels of all columns of labels among `names`.

    Levels of text are sorted; a categorical keeps its order.
    """
    chosen = tuple(_choose(columns[name]) for name in names if holds_labels(columns[name]))
    dummies = [name for each in chosen for name in each.names]
    taken = [name for name in dummies if name in columns.columns or dummies.count(name) > 1]
    if taken:
        raise ValueError(
            f"columns of labels make the columns {quoted(dummies, LEVELS_SHOWN)}; there are others "
            f"of the name {quoted(taken[:1])}. Rename them"
        )
    return chosen


def with_dummies(
    numbers: np.ndarray,
    columns: pd.DataFrame,
    names: Sequence[Any],
    categories: Sequence[Categories],
    owner: str = "",
) -> tuple[np.ndarray, list[Any]]:
    """Return columns of numbers and of dummies in the order of `names`, and their sources.

    `numbers`, shape (N, m), has the columns of numbers in that order, `columns` the labels of N
    rows. Sources are the names of the columns behind each column of the result, shape (N, n).
    `owner` names the frame in messages.
    """
    coded = {each.column: each for each in categories if each.column in names}
    if not coded:
        return numbers, list(names)
    parts, sources, place = [], [], 0
    for name in names:
        if name in coded:
            parts.append(coded[name].dummies(columns[name], owner))
        else:
            parts.append(numbers[:, [place]])
            place += 1
        sources += [name] * parts[-1].shape[1]
    return np.concatenate(parts, 1), sources


def _choose(column: pd.Series) -> Categories:
    codes, labels = _codes(column)
    if len({*labels}) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise ValueError(
            f"the levels of the column {quote(column.name)} must differ as text; {quote(twice)} is "
            "there twice. Rename its categories"
        )
    counts = np.bincount(codes[codes >= 0], minlength=len(labels))
    levels = [label for label, n in zip(labels, counts, strict=True) if n]
    n_rows = int(counts.sum())
    if not levels:
        raise ValueError(
            f"the column {quote(column.name)} must hold labels; all are missing. Drop it"
        )
    if len(levels) > MOST_LEVELS or 2 * len(levels) > max(n_rows, 3):
        raise ValueError(
            f"a column of labels must have at most {MOST_LEVELS} levels, and two rows a level on "
            f"average; {quote(column.name)} has {len(levels):,} in {n_rows:,} rows, such as "
            f"{listed(map(quote, levels[:3]), 3)}. If it names series, give id_col="
            f"{quote(column.name)}; if it is free text or a date, drop it; otherwise join rare "
            "levels to one, such as 'other'"
        )
    without = [label for label, n in zip(labels, counts, strict=True) if not n]
    return Categories(column.name, tuple(levels), tuple(without))  # type: ignore[arg-type]


def _codes(column: pd.Series) -> tuple[np.ndarray, list[str]]:
    """Return the level of each row, shape (N,), -1 where missing, and the levels as text."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.to_numpy(np.int64), [*map(_label, column.cat.categories)]
    codes, values = pd.factorize(column)
    labels = [*map(_label, values.tolist())]
    order = np.argsort(np.array(labels, object), kind="stable")
    place = np.empty(len(labels) + 1, np.int64)
    place[order], place[-1] = np.arange(len(labels)), -1
    return place[codes], [labels[i] for i in order]


def _label(value: Any) -> str:
    """Return a level as text; integers that missing values turned into floats lose the ".0"."""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else str(value)
