"""Origins of rolling forecasts: against loops over series and rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.contract import Origins
from tsrnn.data import read_panel

LENGTHS = st.lists(st.integers(1, 12), min_size=1, max_size=5)


def panel_of(lengths):
    days = [pd.date_range("2024-01-01", periods=n) for n in lengths]
    frames = [
        pd.DataFrame({"unique_id": f"s{i}", "ds": times, "y": np.arange(len(times)) + 10.0 * i})
        for i, times in enumerate(days)
    ]
    return read_panel(pd.concat(frames), freq="D")


def drawn(draw, panel):
    """Origins of chosen rows, and the pairs of series and rows before."""
    pairs = [(i, row) for i, n in enumerate(panel.lengths.tolist()) for row in range(n)]
    chosen = sorted(draw.draw(st.sets(st.sampled_from(pairs))))
    series, offset = np.array(chosen, np.int64).reshape(-1, 2).T
    return Origins.at(panel, series, offset), chosen


def same(origins, panel, pairs):
    """Hold all fields of origins against a loop over pairs of series and rows before."""
    counts, ordinal, first = [0] * panel.n_series, [], []
    for series, row in pairs:
        ordinal.append(counts[series])
        counts[series] += 1
        first.append(int(panel.indptr[series]) + row)
    assert origins.counts.tolist() == counts
    assert origins.ordinal.tolist() == ordinal
    assert origins.first.tolist() == first
    assert list(zip(origins.series.tolist(), origins.offset.tolist(), strict=True)) == pairs


@given(LENGTHS, st.data())
@settings(max_examples=60, deadline=None)
def test_at_chosen_rows(lengths, draw):
    panel = panel_of(lengths)
    origins, pairs = drawn(draw, panel)
    same(origins, panel, pairs)


@given(LENGTHS, st.integers(1, 4), st.integers(1, 15))
@settings(max_examples=60, deadline=None)
def test_of_every_step(lengths, h, step):
    panel = panel_of(lengths)
    if min(lengths) < h:
        with pytest.raises(ValueError, match=f"need at least {h} new rows"):
            Origins.of(panel, h, step)
        return
    pairs = [(i, row) for i, n in enumerate(lengths) for row in range(0, n - h + 1, step)]
    same(Origins.of(panel, h, step), panel, pairs)


@given(LENGTHS, st.data())
@settings(max_examples=60, deadline=None)
def test_union_has_both_where_its_places_say(lengths, draw):
    panel = panel_of(lengths)
    (first, ours), (second, theirs) = drawn(draw, panel), drawn(draw, panel)
    every, places, others = first.union(second, panel)
    pairs = sorted({*ours, *theirs})
    same(every, panel, pairs)
    assert [pairs[place] for place in places.tolist()] == ours
    assert [pairs[place] for place in others.tolist()] == theirs


@given(LENGTHS, st.data())
@settings(max_examples=60, deadline=None)
def test_of_series_are_those_of_its_panel_alone(lengths, draw):
    panel = panel_of(lengths)
    origins, pairs = drawn(draw, panel)
    for number in range(panel.n_series):
        alone = panel.select(np.arange(panel.n_series) == number)
        rows = [(0, row) for series, row in pairs if series == number]
        same(origins.of_series(number), alone, rows)


@given(LENGTHS, st.data())
@settings(max_examples=60, deadline=None)
def test_cutoffs_and_times(lengths, draw):
    panel = panel_of([n + 2 for n in lengths])
    origins, pairs = drawn(draw, panel_of(lengths))
    origins = Origins.at(panel, origins.series, origins.offset)
    for place, (series, row) in enumerate(pairs):
        rows = panel.times[panel.indptr[series] :][: panel.lengths[series]]
        assert origins.times(panel, 2)[place].tolist() == rows[row : row + 2].tolist()
