"""The rows that are kept to be drawn: the last ones, in bounded memory."""

import numpy as np
import pandas as pd
import pytest

from tsrnn import load
from tsrnn.baselines import Naive


def panel(n_series, n_rows):
    days = pd.date_range("2020-01-01", periods=n_rows)
    return pd.DataFrame(
        {
            "unique_id": np.repeat(np.arange(n_series), n_rows),
            "ds": np.tile(days, n_series),
            "y": np.arange(n_series * n_rows) / 7,
        }
    )


@pytest.mark.parametrize(("n_series", "n_rows", "kept"), [(1, 900, 500), (2000, 120, 100)])
def test_the_last_rows_are_kept(n_series, n_rows, kept):
    long = panel(n_series, n_rows)
    (ax,) = Naive().fit(long).plot(1, series=n_series - 1, level=None, last=10**6)
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), long["y"][-kept:])


def test_an_update_that_breaks_off_leaves_state_and_rows(monkeypatch, contract):
    early, late = panel(2, 30), panel(2, 33).groupby("unique_id").tail(3)
    model = Naive().fit(early)
    before = contract.content(model)

    def breaks_off(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(model._history), "followed_by", breaks_off)
    with pytest.raises(KeyboardInterrupt):
        model.update(late)
    contract.same(contract.content(model), before)


def test_of_very_many_series_none_are_and_data_are_asked_for(tmp_path):
    long = panel(20_001, 2)
    model = Naive(freq="D").fit(long)
    model.save(tmp_path / "model")
    for one in (
        model,
        load(tmp_path / "model").update(long.assign(ds=long["ds"] + pd.Timedelta("2D"))),
    ):
        with pytest.raises(ValueError, match="of its 20001 series the model keeps no rows to draw"):
            one.plot(3)
    (ax,) = model.plot(long[long["unique_id"] == 7], h=3, level=None)
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), long["y"][14:16])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"series": 9}, "series must be ids among the 3 there are, 0, 1, 2; got 9"),
        ({"series": []}, r"got \[\]"),
        ({"columns": "z"}, "`column` must be one of the forecast's columns"),
        ({"X": 3, "h": 3}, "give the horizon once; got 3 and h=3"),
        ({"ax": [None, None], "series": 1}, "`ax` must be one axes a panel, 1; got 2"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        Naive().fit(panel(3, 30)).plot(**arguments)


def test_series_without_ids_have_no_names():
    model = Naive().fit(pd.Series(np.arange(9.0), name="y"))
    with pytest.raises(ValueError, match="series selects from data with an id column"):
        model.plot(series="y")
