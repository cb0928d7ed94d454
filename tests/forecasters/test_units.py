"""What the network sees, how it runs over it, and the stretches it is trained on."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.forecasters import _state, _units
from tsrnn.forecasters._model import empty_model
from tsrnn.forecasters._segments import LEAST_STEPS, MOST_STEPS, Segments
from tsrnn.forecasters._state import run_filter
from tsrnn.forecasters._units import SPREAD_FLOOR, make_units, subset

WINDOW = 5


def units_of(lengths, columns=3, n_targets=2, window=WINDOW, **changes):
    """Return random values (N, columns) and their units."""
    values = np.random.default_rng(0).normal(size=(sum(lengths), columns))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    options = {"constant": np.zeros((len(lengths), n_targets), bool), "local_level": True} | changes
    return values, make_units(values, indptr, window=window, n_targets=n_targets, **options)


@pytest.fixture(scope="module")
def model(small, wide):
    model = small(target=["u", "v"], multivariate="joint", n_layers=2).fit(wide)
    made = empty_model(model.settings_, 2, 1, [])
    made.reset_parameters(torch.Generator().manual_seed(0), zero_output=False)
    return made


class TestMoments:
    @given(st.lists(st.integers(1, 30), min_size=1, max_size=4), st.integers(1, 9))
    @settings(max_examples=40, deadline=None)
    def test_are_those_of_pandas(self, lengths, window):
        values, units = units_of(lengths, window=window)
        owner = np.repeat(np.arange(len(lengths)), lengths)
        rolling = pd.DataFrame(values).groupby(owner).rolling(window, min_periods=1)
        np.testing.assert_allclose(units.level, rolling.mean(), atol=1e-12)
        variance = rolling.var(ddof=0).to_numpy()[:, :2]
        np.testing.assert_allclose(
            units.spread, np.sqrt(variance + SPREAD_FLOOR**2), rtol=1e-9, atol=1e-9
        )

    def test_do_not_depend_on_what_lies_before_the_window(self):
        values = np.random.default_rng(0).normal(size=(400, 1))
        moved = values.copy()
        moved[:300] += 1e9
        options = {"window": 20, "n_targets": 1, "local_level": True}
        constant = np.zeros((1, 1), bool)
        one, other = (
            make_units(v, np.array([0, 400]), constant=constant, **options) for v in (values, moved)
        )
        assert torch.equal(one.level[320:], other.level[320:])
        assert torch.equal(one.spread[320:], other.spread[320:])

    def test_constant_units_have_no_spread(self):
        units = make_units(
            np.zeros((8, 1)),
            np.array([0, 8]),
            window=3,
            n_targets=1,
            constant=np.array([[True]]),
            local_level=True,
        )
        assert (units.spread == 0).all()
        assert (units.inputs(torch.arange(8)) == 0).all()

    def test_without_local_level(self):
        _, units = units_of([6, 4], local_level=False)
        assert (units.level == 0).all()
        assert (units.spread == 1).all()


class TestLags:
    @pytest.mark.parametrize("rows", [[0, 1, 4, 7, 8, 11, 19], [6, 13, 19]], ids=["early", "whole"])
    def test_are_deviations_from_the_level(self, rows):
        values, units = units_of([8, 12])
        rows = torch.tensor(rows)
        starts = torch.where(rows < 8, 0, 8)
        lags = units.lags(rows, starts, [0, 2]).unflatten(-1, (2, WINDOW))
        for i, (row, start) in enumerate(zip(rows.tolist(), starts.tolist(), strict=True)):
            for lag in range(WINDOW):
                at = row - WINDOW + 1 + lag
                deviations = values[at] - units.level[row].numpy()
                expected = deviations[[0, 2]] if at >= start else np.zeros(2)
                np.testing.assert_allclose(lags[i, :, lag], expected, atol=1e-14)

    @pytest.mark.parametrize("at_once", [1, 2**20])
    def test_strength_is_the_autocorrelation_of_every_window(self, at_once, monkeypatch):
        monkeypatch.setattr(_units, "VALUES_AT_ONCE", at_once)
        _, units = units_of([8, 12], window=WINDOW)
        known = units.with_strength([1, 3])
        for row in range(20):
            start = 0 if row < 8 else 8
            lags = units.lags(torch.tensor([row]), torch.tensor([start]), [0, 1]).view(2, WINDOW)
            for i, lag in enumerate([1, 3]):
                late, early = lags[:, lag:].numpy(), lags[:, :-lag].numpy()
                size = np.sqrt((late**2).sum(1) * (early**2).sum(1))
                expected = np.where(
                    size > 0, (late * early).sum(1) / np.where(size > 0, size, 1), 0
                )
                assert known.strength[row, i].item() == pytest.approx(expected.mean(), abs=1e-12)

    def test_strength_goes_with_its_rows(self):
        _, units = units_of([8, 12])
        known = units.with_strength([2])
        parts = known.split([1, 1])
        assert torch.equal(torch.cat([part.strength for part in parts]), known.strength)
        assert torch.equal(type(known).concatenate(parts).strength, known.strength)
        assert known.to(torch.float32).strength.dtype == torch.float32
        rows = torch.tensor([3, 9])
        assert torch.equal(known.at(rows, rows).strength, known.strength[rows])
        assert units.with_strength([]) is units

    def test_no_rows_have_no_lags(self):
        _, units = units_of([8])
        none = torch.zeros(0, dtype=torch.long)
        assert units.lags(none, none, [0, 1, 2]).shape == (0, 3 * WINDOW)

    def test_inputs_are_standardised_targets_and_plain_exogenous(self):
        values, units = units_of([9])
        x = units.inputs(torch.tensor([6]))[0].numpy()
        expected = (values[6, :2] - units.level[6, :2].numpy()) / units.spread[6].numpy()
        np.testing.assert_allclose(x, [*expected, values[6, 2]])


class TestFilter:
    def run(self, model, lengths, first, **start):
        """Return the final state, and the states visited in the order of rows."""
        units = units_of(lengths)[1].to(torch.float32)
        seen = {}

        def visit(rows, unit, states):
            for row, owner, state in zip(rows.tolist(), unit.tolist(), states, strict=True):
                assert row not in seen
                assert units.indptr[owner] <= row < units.indptr[owner + 1]
                seen[row] = state

        state = run_filter(model, units, units.starts + first, visit=visit, **start)
        return state, seen

    def test_chunks_equal_one_pass(self, model, monkeypatch):
        lengths = [31, 4, 18, 50, 7]
        state, seen = self.run(model, lengths, 3)
        monkeypatch.setattr(_state, "STEPS_AT_ONCE", 6)
        monkeypatch.setattr(_state, "POSITIONS_AT_ONCE", 20)
        chunked, seen_in_chunks = self.run(model, lengths, 3)
        torch.testing.assert_close(chunked, state)
        assert seen.keys() == seen_in_chunks.keys()
        for row, expected in seen.items():
            torch.testing.assert_close(seen_in_chunks[row], expected)

    def test_visits_each_row_from_the_first_on(self, model):
        _, seen = self.run(model, [10, 6], 4)
        assert sorted(seen) == [*range(4, 10), 14, 15]

    def test_is_the_layer_over_each_unit(self, model):
        units = units_of([12, 9])[1].to(torch.float32)
        state, seen = self.run(model, [12, 9], 0)
        for i, (low, high) in enumerate([(0, 12), (12, 21)]):
            states, last = model.network.rnn(units.inputs(torch.arange(low, high))[None])
            torch.testing.assert_close(torch.stack([seen[r] for r in range(low, high)]), states[0])
            torch.testing.assert_close(state[:, i], last[:, 0])

    def test_goes_on_from_a_state(self, model):
        units = units_of([20])[1].to(torch.float32)
        whole = run_filter(model, units, units.starts)
        cut = units.starts + 8
        shorter = units_of([20])[1].to(torch.float32)
        early = type(shorter)(
            shorter.values[:8], shorter.level[:8], shorter.spread[:8],
            torch.tensor([0, 8]), WINDOW, 2,
        )  # fmt: skip
        state = run_filter(model, early, early.starts)
        later = run_filter(model, units, cut, state, begin=cut)
        torch.testing.assert_close(later, whole)


class TestSegments:
    def segments(self, lengths, seed=0, warm_up=4, length=10, batch_size=3):
        ends = torch.tensor(np.cumsum(lengths))
        starts = torch.cat([torch.zeros(1, dtype=torch.long), ends[:-1]])
        generator = torch.Generator().manual_seed(seed)
        return Segments(
            starts, ends, order=torch.arange(len(ends)), warm_up=warm_up, length=length,
            batch_size=batch_size, generator=generator,
        )  # fmt: skip

    def origins(self, batch):
        """Return the rows of a batch that forecast, with repetitions."""
        position = torch.arange(batch.rows.shape[1])
        inside = (position >= batch.first[:, None]) & (position < batch.lengths[:, None])
        return batch.rows[inside].tolist()

    @given(st.lists(st.integers(2, 60), min_size=1, max_size=5))
    @settings(max_examples=25, deadline=None)
    def test_rows_stay_in_their_units(self, lengths):
        segments = self.segments(lengths)
        ends = np.cumsum(lengths)
        starts = ends - lengths
        for batch in segments:
            unit = np.searchsorted(ends, batch.starts.numpy(), side="right")
            np.testing.assert_array_equal(batch.starts, starts[unit])
            np.testing.assert_array_equal(batch.ends, ends[unit])
            assert (batch.rows >= batch.starts[:, None]).all()
            # The last row of the training part has no target in it.
            assert (batch.rows < batch.ends[:, None] - 1).all()
            assert (batch.first < batch.lengths).all()

    def test_every_row_forecasts(self):
        lengths = [70, 12, 5]
        segments = self.segments(lengths)
        seen = {row for _ in range(10) for batch in segments for row in self.origins(batch)}
        # The first rows of a long unit only warm up, as do up to two thirds of a short one.
        assert seen == {*range(4, 69), *range(70 + 4, 81), *range(82 + 2, 86)}

    def test_about_once_an_epoch(self):
        segments = self.segments([50_000])
        rows = [row for batch in segments for row in self.origins(batch)]
        assert len(segments) == MOST_STEPS
        assert len(rows) == MOST_STEPS * 3 * 10
        few = self.segments([30])
        assert len(list(few)) == len(few) == LEAST_STEPS

    def test_follow_their_generator(self):
        def drawn(seed):
            return [batch.rows for batch in self.segments([70, 12, 200], seed)]

        one, same, other = drawn(1), drawn(1), drawn(2)
        assert all(torch.equal(a, b) for a, b in zip(one, same, strict=True))
        assert not all(torch.equal(a, b) for a, b in zip(one, other, strict=True))

    def test_are_drawn_anew_each_epoch(self):
        segments = self.segments([200])
        first, second = ([batch.rows for batch in segments] for _ in range(2))
        assert not all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


class TestSubset:
    def test_all_where_there_are_few(self):
        assert subset(5, 7).tolist() == [0, 1, 2, 3, 4]

    def test_is_fixed_ordered_and_without_repeats(self):
        chosen = subset(1000, 100)
        assert torch.equal(chosen, subset(1000, 100))
        assert (chosen.diff() > 0).all()

    def test_does_not_follow_a_period(self):
        hours = torch.bincount(subset(24 * 1000, 1000) % 24, minlength=24)
        assert hours.min() > 15
        assert hours.max() < 80
