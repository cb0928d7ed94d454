"""Simulated columns: effects, shapes, arguments that cannot be used, training with them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.prior import COLUMNS, RESPONSES, ColumnPrior, SeriesPrior, make_examples

SERIES = SeriesPrior().sample(200, 60, season_length=12)


@settings(max_examples=40, deadline=None)
@given(
    n_series=st.integers(1, 12),
    n_rows=st.integers(2, 90),
    n_columns=st.integers(1, 5),
    season_length=st.sampled_from([1, 2, 4, 7, 12, 24, 52]),
    seed=st.integers(0, 2**31),
)
def test_effects_make_up_the_difference_between_the_series(
    n_series, n_rows, n_columns, season_length, seed
):
    values = SeriesPrior().sample(n_series, n_rows, season_length, seed)
    simulated = ColumnPrior().sample(values, n_columns, season_length, seed)
    assert simulated.columns.shape == simulated.effects.shape == (n_series, n_rows, n_columns)
    assert np.isfinite(simulated.columns).all()
    total = simulated.effects.sum(2)
    expected = values + total
    factors = simulated.factors
    expected[factors] = values[factors] * np.exp(total[factors])
    np.testing.assert_allclose(simulated.values, expected, rtol=1e-12)
    assert (simulated.values[simulated.factors] > 0).all()
    again = ColumnPrior().sample(values, n_columns, season_length, seed)
    np.testing.assert_array_equal(again.values, simulated.values)


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("season_length", [1, 12])
def test_columns_of_each_kind_vary(kind, season_length):
    columns = ColumnPrior([kind]).sample(SERIES, 1, season_length).columns[..., 0]
    if kind in ("promotion", "holiday", "law"):
        assert set(np.unique(columns)) == {0.0, 1.0}
    assert (np.ptp(columns, axis=1) > 0).mean() > 0.8


def test_holidays_are_once_a_season():
    holidays = ColumnPrior(["holiday"]).sample(SERIES, 1, 12).columns[..., 0]
    # Those that move can leave the last row, or enter the first.
    assert (np.abs(holidays.sum(1) - 60 / 12) <= 1).all()


def test_promotions_last_up_to_four_rows():
    promoted = ColumnPrior(["promotion"]).sample(SERIES, 1).columns[..., 0]
    assert 0.05 < promoted.mean() < 0.4
    spells = (np.diff(promoted, axis=1) > 0).sum(1)
    assert (promoted.sum(1) / np.maximum(spells, 1)).mean() < 6


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("linear", lambda x: x[:, 6:]),
        ("squared", lambda x: (x - x.mean(1, keepdims=True))[:, 6:] ** 2),
        ("none", lambda x: np.zeros_like(x[:, 6:])),
    ],
)
def test_responses_are_those_of_their_names(response, expected):
    drawn = []

    def known(rng, n_series, n_rows, season_length):
        drawn.append(rng.normal(size=(n_series, n_rows)))
        return drawn[0]

    simulated = ColumnPrior({"known": known}, [response]).sample(SERIES, 1)
    effects, wanted = simulated.effects[..., 0], expected(drawn[0])
    if response == "none":
        np.testing.assert_array_equal(effects, 0.0)
        return
    for effect, function in zip(effects, wanted, strict=True):
        # A multiple of the function: nothing is left but rounding.
        slope = (effect @ function) / (function @ function)
        np.testing.assert_allclose(effect, slope * function, rtol=1e-9, atol=1e-12)


def test_late_effects_are_those_of_earlier_rows():
    simulated = ColumnPrior(["stationary"], ["late"]).sample(SERIES, 1)
    column, effect = simulated.columns[0, :, 0], simulated.effects[0, :, 0]
    by_lag = [abs(np.corrcoef(column[: 60 - lag], effect[lag:])[0, 1]) for lag in range(7)]
    assert np.argmax(by_lag) > 0
    assert max(by_lag) == pytest.approx(1)


def test_thresholds_leave_a_part_of_the_rows_without_an_effect():
    effects = ColumnPrior(["stationary"], ["threshold"]).sample(SERIES, 1).effects
    assert 0.2 < (effects == 0).mean() < 0.8


def test_products_of_two_columns_are_even_in_each():
    simulated = ColumnPrior(["stationary"], ["product"]).sample(SERIES, 2)
    ratio = simulated.effects[..., 0] / simulated.columns.prod(2)
    np.testing.assert_allclose(ratio, ratio[:, :1].repeat(60, 1), rtol=1e-6)


def test_sizes_are_multiples_of_the_mean_change():
    series = SERIES - SERIES.min()  # with a zero: effects are sums
    change = np.abs(np.diff(series)).mean(1)
    sizes = []
    for seed in range(60):
        simulated = ColumnPrior(["stationary"], ["linear"]).sample(series, 1, 1, seed)
        assert not simulated.factors[(series <= 0).any(1)].any()
        additive = ~simulated.factors
        ratio = simulated.effects[..., 0].std(1) / change
        sizes.append(np.median(ratio[additive]))
    assert 0.2 < min(sizes) < 0.5
    assert 3.5 < max(sizes) < 6


def test_examples_are_of_the_series_without_the_effects():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(20, 80))
    columns = rng.normal(size=(20, 80, 1))
    series = noise + 50 * columns[..., 0]
    plain = make_examples(list(noise), 1, np.random.default_rng(1), 2)
    examples = make_examples(list(series), 1, np.random.default_rng(1), 2, list(columns))
    assert len(examples) == len(plain.rows)  # every origin is an example of its own
    later = examples.rows >= 30  # effects of fewer rows are uncertain
    np.testing.assert_array_equal(examples.rows, plain.rows)
    error = examples.actual[later] - plain.actual[later]
    assert np.nanmedian(np.abs(error)) < 0.3  # in mean changes; effects are of fifty


def shapeless(rng, n_series, n_rows, season_length):
    return np.zeros(n_rows)


def infinite(rng, columns, number):
    return np.full(columns.shape[:2], np.inf)


@pytest.mark.parametrize(
    ("columns", "responses", "error", "message"),
    [
        (["price"], None, ValueError, "columns has the names"),
        (None, ["cubic"], ValueError, "responses has the names"),
        ("weather", None, ValueError, "must be a list of names"),
        ([], None, ValueError, "with at least one"),
        ({"price": 3}, None, TypeError, "needs names or functions; got 3"),
        ({"price": shapeless}, None, ValueError, r"column 'price' must return an array of shape"),
        (["law"], {"infinite": infinite}, ValueError, "response 'infinite' must return finite"),
    ],
)
def test_kinds_that_cannot_be_used_are_refused(columns, responses, error, message):
    with pytest.raises(error, match=message):
        ColumnPrior(columns, responses).sample(SERIES, 1)


@pytest.mark.parametrize(
    ("values", "n_columns", "message"),
    [
        (np.ones(5), 1, r"values must be finite series of shape"),
        (np.full((2, 5), np.nan), 1, "values must be finite"),
        (np.ones((2, 1)), 1, "at least 2 rows"),
        (np.ones((2, 5)), 0, "n_columns must be"),
    ],
)
def test_series_that_cannot_be_used_are_refused(values, n_columns, message):
    with pytest.raises(ValueError, match=message):
        ColumnPrior().sample(values, n_columns)


def test_shares_add_up():
    for table in (COLUMNS, RESPONSES):
        assert sum(share for _, share in table.values()) == pytest.approx(1)
