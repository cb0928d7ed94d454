"""What messages of the data room advise is followed, and works."""

import re

import numpy as np
import pandas as pd
import pytest

from tsrnn.baselines import Drift
from tsrnn.data import read_panel
from tsrnn.linear import ARMA

VERBS = "Give|give|Insert|Reindex|Fill|Make periods|Leave|Convert|Resample|Use"
ADVICE = re.compile(rf"\b({VERBS})\b.*", re.DOTALL)
FREQ = re.compile(r"freq=('[^']+'|\"[^\"]+\"|\d+)")
FIFTEENTHS = pd.DatetimeIndex([pd.Timestamp(2023 + k // 12, k % 12 + 1, 15) for k in range(24)])
DAYS = pd.date_range("2024-01-01", periods=20)
MONTHS = pd.date_range("2023-01-01", periods=24, freq="MS")


def days(*apart, first="2024-01-15"):
    return pd.DatetimeIndex([pd.Timestamp(first) + pd.Timedelta(days=k) for k in apart])


def without(times, *rows):
    return times.delete(list(rows))


FREE = {
    "one row": days(0),
    "one row, start of a month": days(0, first="2024-01-01"),
    "one row, end of a month": days(0, first="2024-01-31"),
    "one number": pd.Index([7]),
    "one month in digits": pd.Index([202407]),
    "one day in digits": pd.Index([20240715]),
    **{f"two rows, {n} days": days(0, n) for n in (1, 2, 3, 7, 14, 31, 366)},
    "two months": days(0, 31, first="2024-01-01"),
    "two ends of months": days(0, 29, first="2024-01-31"),
    "two days in digits": pd.Index([20240101, 20240102]),
    "15th of months": FIFTEENTHS,
    "15th of quarters": FIFTEENTHS[::3],
    "15th of every fifth month": FIFTEENTHS[::5],
    "15th of years": pd.DatetimeIndex([f"{year}-06-15" for year in range(2000, 2012)]),
    "15th of months in digits": pd.Index(FIFTEENTHS.strftime("%Y%m%d").astype("int64")),
    "15th of months in digits of floats": pd.Index(FIFTEENTHS.strftime("%Y%m%d").astype(float)),
    "irregular": days(0, 1, 8, 50, 51, 77),
    "irregular numbers": pd.Index([0, 1, 7, 9, 30, 44, 45]),
    "a gap": without(DAYS, 7, 8),
    "a gap of months": without(MONTHS, 5),
    "a gap of business days": without(pd.bdate_range("2024-01-01", periods=30), 12),
    "a gap of hours": without(pd.date_range("2024-01-01", periods=30, freq="h"), 12),
    "a gap of numbers": without(pd.Index(range(20)), 4),
    "a gap of months in digits": without(pd.Index(MONTHS.strftime("%Y%m").astype("int64")), 5),
    "a gap of quarters": without(pd.period_range("2020Q1", periods=20, freq="Q"), 4),
    "months and one number more": pd.Index([*range(202401, 202413), 202413]),
    "weeks in digits": pd.Index(range(202401, 202453)),
    "floats": pd.Index(np.arange(20.0)),
}  # fmt: skip
GIVEN = [
    *((DAYS, freq) for freq in ("MS", "W-SUN", "B", "2D", 1, "H", "d", "M", "quarterly")),
    *((MONTHS, freq) for freq in ("D", "QS", "ME", "h", "YS", 12, "M", "BM")),
    *((MONTHS.to_period("M"), freq) for freq in ("MS", "Q", "D", 1)),
    *((pd.Index(range(20)), freq) for freq in (2, "D", "MS")),
    *((pd.Index(MONTHS.strftime("%Y%m").astype("int64")), freq) for freq in ("ME", "D", "QS", "h")),
    *((FIFTEENTHS, freq) for freq in ("MS", "ME", "D", "W-SUN")),
    (without(DAYS, 3), "MS"),
    (DAYS.as_unit("s"), "500ms"),
]  # fmt: skip


def series(times):
    return pd.Series(np.arange(float(len(times))) ** 1.5, times, name="y")


def long(times):
    both = pd.concat([series(times), series(times)]).rename_axis("ds").reset_index()
    return both.assign(unique_id=np.repeat(["a", "b"], len(times)))


def with_times(data, change):
    """The data with other timestamps."""
    if isinstance(data, pd.Series):
        return data.set_axis(change(data.index))
    parts = [part.assign(ds=change(pd.Index(part["ds"]))) for _, part in data.groupby("unique_id")]
    return pd.concat(parts, ignore_index=True)


def in_periods(times, freq):
    if not isinstance(times, pd.DatetimeIndex):
        times = pd.to_datetime(times.astype("int64").astype(str), format="%Y%m%d")
    return times.to_period(freq)


# What is to be done with timestamps, by the words that advise it.
CHANGES = {
    r"to_period\('(\w+)'\)": in_periods,
    "integer index": lambda times: pd.RangeIndex(len(times)),
    r"(?:Use|Convert them by) astype\(['\"]([\w\[\]]+)['\"]\)": lambda times, to: times.astype(to),
    '"%G%V%u"': lambda times: pd.to_datetime(times.astype(str) + "1", format="%G%V%u"),
}


def follow(data, rounds=2, **options):
    """Read the data, and where they are refused do all that the message advises, one by one."""
    try:
        return [read_panel(data, **options)]
    except (TypeError, ValueError) as error:
        message = str(error)
    if rounds == 0:
        raise AssertionError(message)
    advice = ADVICE.search(message)
    assert advice, message
    advice = advice[0]
    kept = {key: value for key, value in options.items() if key != "freq"}
    freqs = [int(freq) if freq.isdigit() else freq[1:-1] for freq in FREQ.findall(advice)]
    ways = [(data, options | {"freq": freq}) for freq in freqs]
    if 'missing="interpolate"' in advice:
        ways.append((data, options | {"missing": "interpolate"}))
    if re.search("eave (freq|it) out", advice):
        ways.append((data, kept))
    for pattern, change in CHANGES.items():
        if match := re.search(pattern, advice):
            ways.append(
                (with_times(data, lambda t, m=match, how=change: how(t, *m.groups())), kept)
            )
    assert ways, message
    return [panel for way, how in ways for panel in follow(way, rounds - 1, **how)]


@pytest.mark.parametrize(
    ("name", "shape"),
    # two rows of each of two series show more than two rows
    [*((name, series) for name in FREE), *((n, long) for n in FREE if not n.startswith("two"))],
)
def test_without_a_frequency(name, shape):
    with pytest.raises((TypeError, ValueError)):
        read_panel(shape(FREE[name]))
    assert follow(shape(FREE[name]))


@pytest.mark.parametrize("shape", [series, long])
@pytest.mark.parametrize(("times", "freq"), GIVEN)
def test_with_another_frequency(times, freq, shape):
    with pytest.raises((TypeError, ValueError)):
        read_panel(shape(times), freq=freq)
    assert follow(shape(times), freq=freq)


def test_periods_are_advised_for_the_15th_and_no_frequency():
    for freq in (None, "MS"):
        with pytest.raises(ValueError, match=r"by to_period\('M'\)") as caught:
            read_panel(series(FIFTEENTHS), freq=freq)
        assert 'freq="MS"' not in str(caught.value)


@pytest.mark.parametrize("rows", [[5], [5, 9], [0], [19], [0, 5]])
def test_missing_values(rows):
    data = series(DAYS)
    data.iloc[rows] = np.nan
    with pytest.raises(ValueError, match="must have no missing values") as caught:
        read_panel(data)
    inside = 0 not in rows and 19 not in rows
    assert ('missing="interpolate"' in str(caught.value)) == inside
    if inside:
        assert follow(data)
    else:
        assert follow(data.loc[data.first_valid_index() : data.last_valid_index()])


def test_new_rows_cannot_be_given_another_frequency():
    layout = read_panel(series(MONTHS)).layout
    with pytest.raises(ValueError, match="must follow freq='MS'.* Correct them, or resample"):
        read_panel(series(FIFTEENTHS), layout=layout)


@pytest.mark.parametrize("own", [int, str])
def test_ids_that_differ_in_type(own):
    other = str if own is int else int
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"unique_id": np.repeat([1, 2], 24), "ds": [*MONTHS, *MONTHS]})
    data = data.assign(y=rng.normal(size=48), x=rng.normal(size=48))
    data["unique_id"] = data["unique_id"].astype(own)
    model = ARMA(order=(1, 0), known_ahead=["x"]).fit(data)
    new = pd.DataFrame({"unique_id": [other(1), other(2)], "ds": pd.Timestamp("2025-01-01")})
    new = new.assign(y=0.5, x=1.0)
    after = new.assign(unique_id=[own(1), own(2)], ds=pd.Timestamp("2025-02-01"))
    after = after.drop(columns="y")
    for call in (
        lambda frame: model.predict(1, X_future=frame.drop(columns="y")),
        lambda frame: model.score(frame),
        lambda frame: model.predict(1, ids=frame["unique_id"], X_future=frame.drop(columns="y")),
        lambda frame: model.predict(frame, h=1, X_future=after),
        lambda frame: model.update(frame),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="Ids differ in type: .* Convert them by") as caught:
            call(new)
        dtype = re.search(r"astype\('(\w+)'\)", str(caught.value))[1]
        call(new.assign(unique_id=new["unique_id"].astype(dtype)))
    with pytest.raises(ValueError, match="Drop them, or fit again"):
        model.update(new.assign(unique_id=["x", "y"]))


class TestNoLevels:
    def test_forecasts_have_no_intervals(self):
        model = Drift().fit(series(MONTHS).rename(None))
        assert model.predict(2, level=[]).equals(model.predict(2))
        (axes,) = np.ravel(model.plot(2, level=[]))
        assert len(axes.lines) == 2

    def test_one_is_asked_for(self):
        model = ARMA(order=(1, 0)).fit(series(MONTHS))
        with pytest.raises(ValueError, match=r"must be one number, as 95; got \[\]$"):
            model.conf_int(level=[])
        with pytest.raises(ValueError, match=r"got \[80, 95\]. Ask for each by itself$"):
            model.conf_int(level=[80, 95])
