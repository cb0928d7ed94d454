"""What large panels rest on: sums that grow with the rows alone, samples, shares, parquet files."""

import pickle
from itertools import pairwise
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.contract import Calibration
from tsrnn.forecasters import _intervals, _units
from tsrnn.forecasters._intervals import ValidationErrors
from tsrnn.forecasters._segments import LEAST_STEPS, Segments
from tsrnn.forecasters._units import full_origins, make_units, some_units, window_moments
from tsrnn.training import Epoch

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=6)


def bounds(lengths):
    return np.concatenate([[0], np.cumsum(lengths)])


class TestWindowMoments:
    @given(LENGTHS, st.integers(1, 12), st.integers(1, 3), st.integers(1, 50))
    @settings(max_examples=60, deadline=None)
    def test_are_those_of_each_window(self, lengths, window, columns, at_once):
        indptr = bounds(lengths)
        values = 1e3 + np.random.default_rng(window).normal(size=(indptr[-1], columns))
        with mock.patch.object(_units, "ROWS_AT_ONCE", at_once):
            mean, variance = window_moments(values, indptr, window)
        for low, high in pairwise(indptr):
            for row in range(low, high):
                part = values[max(low, row - window + 1) : row + 1]
                np.testing.assert_allclose(mean[row], part.mean(0), rtol=1e-14)
                np.testing.assert_allclose(variance[row], part.var(0), rtol=1e-9, atol=1e-12)

    @given(st.integers(1, 12), st.floats(-1e6, 1e6))
    @settings(max_examples=30, deadline=None)
    def test_are_exact_where_a_window_is_constant(self, window, value):
        draw = np.random.default_rng(window)
        values = np.concatenate([draw.normal(size=20), np.full(30, value)])[:, None]
        mean, variance = window_moments(values, np.array([0, 50]), window)
        assert (mean[20 + window - 1 :] == value).all()
        assert (variance[20 + window - 1 :] == 0).all()

    def test_do_not_depend_on_what_lies_before_the_window(self):
        values = np.random.default_rng(0).normal(size=(60, 2))
        far = values.copy()
        far[:30] = 1e12
        indptr = np.array([0, 60])
        for ours, theirs in zip(
            window_moments(far, indptr, 7), window_moments(values, indptr, 7), strict=True
        ):
            np.testing.assert_array_equal(ours[36:], theirs[36:])


class TestFullOrigins:
    @given(LENGTHS, st.integers(1, 5), st.integers(0, 3))
    @settings(max_examples=40, deadline=None)
    def test_are_listed(self, lengths, horizon, skip):
        indptr = bounds(lengths)
        starts, ends = torch.tensor(indptr[:-1]), torch.tensor(indptr[1:])
        begin = torch.minimum(starts + skip, ends)
        rows, owners = full_origins(begin, ends, horizon, starts)
        listed = [
            (row, low)
            for low, first, high in zip(indptr[:-1], begin.tolist(), indptr[1:], strict=True)
            for row in range(first, high - horizon)
        ]
        assert list(zip(rows.tolist(), owners.tolist(), strict=True)) == listed

    def test_are_a_sample_where_there_are_many(self):
        starts, ends = torch.arange(0, 1000, 100), torch.arange(100, 1100, 100)
        rows, owners = full_origins(starts, ends, 4, most=50)
        assert len(rows.unique()) == 50
        assert (rows.diff() > 0).all()
        torch.testing.assert_close(owners, rows // 100 * 100)
        assert len(owners.unique()) > 5


class TestSomeUnits:
    @given(LENGTHS, st.integers(1, 300))
    @settings(max_examples=40, deadline=None)
    def test_have_about_as_many_rows_as_asked_for(self, lengths, most):
        ends = torch.tensor(bounds(lengths)[1:])
        split = ends - torch.tensor(lengths)
        chosen = some_units(split, ends, most)
        if sum(lengths) <= most:
            assert chosen.all()
        else:
            assert chosen.sum() == max(1, len(lengths) * most // sum(lengths))


class TestShares:
    def segments(self, n_units=30, seed=0):
        ends = torch.arange(1, n_units + 1) * 20
        return Segments(
            ends - 20, ends, order=torch.arange(n_units), warm_up=4, length=10, batch_size=2,
            generator=torch.Generator().manual_seed(seed),
        )  # fmt: skip

    @pytest.mark.parametrize("count", [1, 2, 3])
    def test_make_up_the_plan_of_one(self, count):
        whole = list(self.segments())
        shares = [self.segments().share(rank, count) for rank in range(count)]
        assert {len(share) for share in shares} == {-(-len(whole) // count)}
        dealt = [batch for together in zip(*shares, strict=True) for batch in together]
        assert len(dealt) == count * len(shares[0])
        for ours, theirs in zip(dealt, whole, strict=False):
            assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))

    def test_agree_in_later_epochs(self):
        one, other = (self.segments().share(rank, 2) for rank in range(2))
        plan = self.segments()
        for _ in range(3):
            first, second = list(one), list(other)
        for _ in range(3):
            expected = list(plan)
        assert len(expected) % 2 == 0
        assert torch.equal(first[0].rows, expected[0].rows)
        assert torch.equal(second[0].rows, expected[1].rows)

    def test_more_processes_than_batches(self):
        share = self.segments().share(LEAST_STEPS + 20, LEAST_STEPS + 30)
        assert len(list(share)) == len(share) == 1

    @pytest.mark.parametrize("count", [2, 4])
    def test_of_a_pass_that_does_not_divide_begin_another(self, count):
        class Pass(Epoch):
            generator = torch.Generator()

            def __len__(self):
                return 3

            def batches(self):
                yield from "abc"

        shares = [list(Pass().share(rank, count)) for rank in range(count)]
        assert {len(share) for share in shares} == {-(-3 // count)}
        assert [batch for together in zip(*shares, strict=True) for batch in together] == [*"abca"]

    def test_a_copy_in_another_process_draws_the_same(self):
        segments = self.segments()
        list(segments)
        copy = pickle.loads(pickle.dumps(segments))
        for ours, theirs in zip(copy, segments, strict=True):
            assert torch.equal(ours.rows, theirs.rows)
        assert torch.equal(copy.generator.get_state(), segments.generator.get_state())


def long_panel(n_series=12, rows=60):
    values = np.random.default_rng(3).normal(size=(n_series, rows)).cumsum(1)
    return pd.DataFrame({
        "unique_id": np.repeat([f"s{i}" for i in range(n_series)], rows),
        "ds": np.tile(pd.date_range("2020-01-01", periods=rows, freq="MS"), n_series),
        "y": values.ravel(),
    })  # fmt: skip


class TestPooledErrors:
    @pytest.mark.parametrize("most", [50, 20_000])
    def test_are_those_that_all_would_give(self, small, monkeypatch, most):
        fitted = small().fit(long_panel())
        model, settings = fitted.model_, fitted.settings_
        constant = np.arange(12)[:, None] == 2
        rows = np.where(constant, 0.0, np.random.default_rng(1).normal(size=(12, 60)))
        indptr = np.arange(13) * 60
        units = make_units(
            rows.reshape(-1, 1), indptr, window=12, n_targets=1, constant=constant,
            local_level=True,
        ).to(torch.float32)  # fmt: skip
        split = units.indptr[1:] - 20
        monkeypatch.setattr(_intervals, "MOST_ERRORS", most)
        pooled = ValidationErrors(model, model, units, split, settings)
        assert pooled.scaled.shape[:2] == (1, min(most, 11 * 20))
        monkeypatch.setattr(_intervals, "OWN_ERRORS", 0)
        whole = ValidationErrors(model, model, units, split, settings)
        assert whole.scaled.shape[0] == 12
        monkeypatch.setattr(_intervals, "OWN_ERRORS", 100)
        expected = Calibration.of(whole.scaled, "conformal").errors
        if most < 11 * 20:
            there = np.isfinite(pooled.scaled)
            assert np.isin(pooled.scaled[there], expected).all()
        else:
            np.testing.assert_array_equal(pooled.scaled, expected)
            assert pooled.n_pooled == 11
        pd.testing.assert_frame_equal(pooled.table(), whole.table())

    def test_of_many_series_some_are_enough(self, small, monkeypatch):
        model = small().fit(long_panel())
        panel = model._read(long_panel())
        units = make_units(
            panel.values, panel.indptr, window=12, n_targets=1,
            constant=np.zeros((12, 1), bool), local_level=True,
        ).to(torch.float32)  # fmt: skip
        split = units.indptr[1:] - 20
        monkeypatch.setattr(_intervals, "MOST_ORIGINS", 100)
        some = ValidationErrors(model.model_, model.model_, units, split, model.settings_)
        chosen = some_units(split, units.indptr[1:], 100)
        assert chosen.sum() == 5
        monkeypatch.undo()
        every = ValidationErrors(model.model_, model.model_, units, split, model.settings_)
        expected = every.scaled.reshape(12, 20, -1)[chosen.numpy()].reshape(100, -1)
        np.testing.assert_array_equal(some.scaled.reshape(100, -1), expected)
        torch.testing.assert_close(some.state, every.state, rtol=0, atol=0)


def to_polars(frame):
    return pl.DataFrame({name: column.tolist() for name, column in frame.items()})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("panel")
    for i, rows in enumerate(to_polars(long_panel()).iter_slices(250)):
        rows.write_parquet(place / f"{i}.parquet")
    return place


class TestParquet:
    @pytest.mark.few("ParaRNN", "ARMA", "ETS", "GARCH", "Naive", "SeasonalNaive", "Theta", "Drift")
    def test_forecasts_are_those_of_a_frame(self, make, folder, same):
        same(make().fit(folder).predict(3), make().fit(long_panel()).predict(3))

    def test_predict_update_and_score(self, small, folder, tmp_path, same):
        frame = long_panel()
        late = frame.groupby("unique_id").cumcount() >= 54
        by_frame, by_path = (small().fit(frame[~late]) for _ in range(2))
        path = tmp_path / "late.parquet"
        to_polars(frame[late]).write_parquet(path)
        assert by_path.score(path) == by_frame.score(frame[late])
        same(by_path.predict(folder), by_frame.predict(frame))
        same(by_path.update(str(path)).predict(), by_frame.update(frame[late]).predict())
        assert isinstance(by_path.predict(), pd.DataFrame)
