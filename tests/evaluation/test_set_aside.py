"""Short and bad series of a panel are set aside by name; the others go on as without them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tsrnn import ARMA, ParaRNNForecaster, backtest, compare, report
from tsrnn.baselines import ArchModel, Drift, Naive

NETWORK = {"input_size": 8, "hidden_size": 4, "n_layers": 1, "max_epochs": 1, "random_state": 0}
NETWORK["missing"] = "error"
GIVEN = {"h": 2, "n_windows": 3}


def panel(names="abcd", n=60):
    draw = np.random.default_rng(0).normal(size=(len(names), n)).cumsum(1)
    return pd.DataFrame(
        {
            "unique_id": np.repeat(list(names), n),
            "ds": np.tile(pd.date_range("2001-01-01", periods=n, freq="D"), len(names)),
            "y": 10 + draw.ravel(),
        }
    )


def row(frame, name, i):
    return frame.index[frame["unique_id"] == name][i]


def with_gap(frame):
    return frame.drop(row(frame, "b", 9))


def with_missing(frame):
    return frame.assign(y=frame["y"].where(frame.index != row(frame, "b", 9)))


def infinite(frame):
    return frame.assign(y=frame["y"].where(frame.index != row(frame, "b", 9), np.inf))


def repeated(frame):
    return pd.concat([frame, frame.loc[[row(frame, "b", 9)]]])


def unsorted(frame):
    return pd.concat([frame, frame.loc[[row(frame, "b", 9)]]]).drop_duplicates(keep="last")


def short(frame):
    return frame.drop(frame.index[frame["unique_id"] == "b"][6:])


def weekly(frame):
    days = frame["ds"] + (frame["unique_id"] == "b") * 6 * (frame["ds"] - frame["ds"].min())
    return frame.assign(ds=days)


def empty(frame):
    return frame.assign(y=frame["y"].where(frame["unique_id"] != "b"))


BAD = {
    "gap": (with_gap, "no missing values"),
    "missing": (with_missing, "no missing values"),
    "infinite": (infinite, "must be finite"),
    "repeated": (repeated, "must be unique"),
    "unsorted": (unsorted, "must increase"),
    "short": (short, "need more than 6 rows; there are 6"),
    "weekly": (weekly, "one step of freq='D' apart"),
    "empty": (empty, "must hold values"),
}
MODELS = {
    "own": lambda: ARMA(order=(1, 0), missing="error"),
    "baseline": lambda: Drift(missing="error"),
    "shared": lambda: ParaRNNForecaster(**NETWORK),
}


@pytest.fixture(scope="module")
def without_it():
    others = panel().query("unique_id != 'b'")
    return {name: backtest({"m": made()}, others, **GIVEN) for name, made in MODELS.items()}


@pytest.mark.few(
    "missing-own", "gap-own", "repeated-shared", "weekly-shared", "empty-shared", "short-shared"
)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("case", BAD)
def test_the_others_go_on_as_without_it(case, model, without_it):
    spoil, reason = BAD[case]
    with pytest.warns(UserWarning, match="1 series set aside: 'b'"):
        frame = backtest({"m": MODELS[model]()}, spoil(panel()), **GIVEN)
    told = pd.DataFrame(frame.attrs["backtest"]["set_aside"])
    assert list(told["unique_id"]) == ["b"]
    assert list(told["n_windows"]) == [3]
    assert reason in told["error"][0]
    good = frame[frame["unique_id"] != "b"].reset_index(drop=True)
    pd.testing.assert_frame_equal(good, without_it[model])
    assert frame.loc[frame["unique_id"] == "b", "m"].isna().all()


@pytest.mark.slow
def test_several_are_told_apart_in_words_and_in_the_report(tmp_path):
    long = infinite(panel("abcdefgh"))
    long = long.drop(long.index[long["unique_id"] == "h"][4:])
    long.loc[long["unique_id"] == "e", "y"] = 3.0
    with pytest.warns(UserWarning, match="3 series set aside: 'b', 'h', 'e'"):
        frame = backtest([ArchModel(), Naive()], long, **GIVEN)
    result = compare(frame)
    assert result.n_series == 5
    assert list(result.set_aside["unique_id"]) == ["b", "h", "e"]
    assert result.set_aside["model"].tolist()[2] == "ArchModel"
    assert "of 5 series" in result.words()[0]
    assert f"Series: 5; windows of all series: {result.n_windows};" in str(result)
    assert (
        "3 series set aside: b, h, e. The reason for the first: the column 'y' must be"
        in (result.words()[1])
    )
    page = report(result, tmp_path / "a.html").read_text(encoding="utf-8")
    assert "Series set aside" in page
    assert "need more than 6 rows; there are 4" in page
    naive = compare(frame, models=["Naive"])
    assert naive.n_series == 6
    assert list(naive.set_aside["unique_id"]) == ["b", "h"]


def test_a_value_missing_later_stops_its_series_from_then_on():
    long = panel()
    long.loc[row(long, "b", -3), "y"] = np.nan
    given = {"h": 1, "n_windows": 5, "refit": False, "level": 80}
    with pytest.warns(UserWarning, match="set aside: 'b'"):
        frame = backtest([ARMA(order=(1, 0), missing="error")], long, **given)
    clean = backtest([ARMA(order=(1, 0))], panel(), **given)
    bad = (frame["unique_id"] == "b").to_numpy()
    assert frame.loc[bad, "ARMA"].isna().tolist() == [False, False, False, True, True]
    kept = frame["ARMA"].notna().to_numpy()
    pd.testing.assert_frame_equal(
        frame[kept].drop(columns="y"), clean[kept].drop(columns="y"), rtol=1e-12
    )
    (told,) = frame.attrs["backtest"]["set_aside"]
    assert (told["unique_id"], told["model"], told["n_windows"]) == ("b", "ARMA", 2)


def test_columns_known_ahead_go_with_their_series():
    x = np.random.default_rng(1).normal(size=240)
    long = panel().assign(x=x)
    model = ARMA(order=(1, 0), known_ahead="x", missing="error")
    with pytest.warns(UserWarning, match="set aside: 'b'"):
        frame = backtest([model], with_missing(long), refit=False, **GIVEN)
    alone = backtest([model], long.query("unique_id != 'b'"), refit=False, **GIVEN)
    good = frame[frame["unique_id"] != "b"].reset_index(drop=True)
    pd.testing.assert_frame_equal(good, alone)


@pytest.mark.parametrize("turn", [pl.from_dict, "file"])
def test_of_other_libraries_and_files(turn, tmp_path):
    data = pl.DataFrame(
        {name: infinite(panel())[name].to_list() for name in ("unique_id", "ds", "y")}
    )
    if turn == "file":
        data.write_parquet(tmp_path / "a.parquet")
        data = tmp_path / "a.parquet"
    with pytest.warns(UserWarning, match="set aside: 'b'"):
        frame = backtest([Naive()], data, **GIVEN)
    assert list(frame["unique_id"].unique()) == ["a", "c", "d"]


def test_all_bad_is_an_error():
    with pytest.raises(ValueError, match="must be finite; infinite are series 'a'"):
        backtest([Naive()], panel().assign(y=np.inf), **GIVEN)
    gaps = panel().assign(y=lambda d: d["y"].where(d["ds"].dt.day != 5))
    with pytest.raises(RuntimeError, match="all models failed in all windows.*missing values"):
        backtest([Naive(missing="error")], gaps, **GIVEN)


def test_an_argument_is_no_fault_of_the_series():
    fits = []

    class Wrong(ARMA):
        def fit(self, df, y=None):
            fits.append(len(df))
            raise ValueError("order must be positive")

    long = panel([f"s{i}" for i in range(200)], 12)
    with pytest.raises(RuntimeError, match="order must be positive"):
        backtest([Wrong()], long, h=1, n_windows=1)
    assert len(fits) < 50
