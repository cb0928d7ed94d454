"""Series too short to validate train with all their rows and are forecast like the others."""

import numpy as np
import pandas as pd
import pytest

H, VAL_SIZE = 6, 10
SHORT = {"s": 9, "t": 17}  # rows


@pytest.fixture(scope="module")
def mixed(panel):
    """Return the panel with the heads of two of its series as two more."""
    heads = [
        panel[panel["unique_id"] == of].head(rows).assign(unique_id=name)
        for of, (name, rows) in zip("ab", SHORT.items(), strict=True)
    ]
    return pd.concat([panel, *heads], ignore_index=True)


@pytest.fixture(scope="module")
def make(small):
    changes = {"horizon": H, "val_size": VAL_SIZE, "refit": False}
    return lambda **more: small(**(changes | more))


@pytest.fixture(scope="module")
def fitted(make, mixed):
    with pytest.warns(UserWarning, match="2 of 5 series have fewer than the 18 .* first is 's'"):
        return make().fit(mixed)


def last_changed(frame, name):
    """Return the frame with another value in the last row of a series."""
    changed = frame.copy()
    row = frame.index[frame["unique_id"] == name][-1]
    changed.loc[row, "y"] *= 1.5
    return changed


def test_all_are_forecast_with_intervals(fitted):
    found = fitted.predict(H, level=80)
    assert found["unique_id"].value_counts().to_dict() == dict.fromkeys([*"abc", *SHORT], H)
    numbers = found.drop(columns=["unique_id", "ds"])
    assert np.isfinite(numbers).all(axis=None)
    assert (found["ParaRNN-lo-80"] < found["ParaRNN-hi-80"]).all()


def test_errors_are_of_the_long_series(fitted, mixed):
    """The last step of the table from forecasts after the training part of each."""
    scale = dict(zip(fitted.state_.ids, fitted.state_.scaling.target.scale[:, 0], strict=True))
    squares = []
    for origin in range(VAL_SIZE - H + 1):
        known = pd.concat(
            part.iloc[: len(part) - VAL_SIZE + origin]
            for name, part in mixed.groupby("unique_id") if name in "abc"
        )  # fmt: skip
        found = fitted.predict(known, h=H).groupby("unique_id").tail(1)
        truth = found.merge(mixed, on=["unique_id", "ds"])
        error = (truth["y"] - truth["ParaRNN"]) / truth["unique_id"].map(scale)
        squares.extend(error**2)
    assert len(squares) == 3 * (VAL_SIZE - H + 1)
    rmse = fitted.validation_.loc[H, "model"]
    np.testing.assert_allclose(rmse, np.sqrt(np.mean(squares)), rtol=1e-5)


@pytest.mark.filterwarnings("ignore:2 of 5 series")
def test_they_train_with_all_their_rows(make, mixed, fitted):
    again = make().fit(mixed)
    other = make().fit(last_changed(mixed, "t"))
    ours, same, theirs = (f.model_.linear.detach().numpy() for f in (fitted, again, other))
    np.testing.assert_array_equal(ours, same)
    assert np.abs(ours - theirs).max() > 1e-4


@pytest.mark.filterwarnings("ignore:2 of 5 series")
def test_long_series_do_not_train_with_their_validation_part(make, mixed, fitted):
    """With one epoch and one penalty to keep, their last row changes neither."""
    one = {"max_epochs": 1, "linear_path": False, "local_level": False}
    first = make(**one).fit(mixed).network_.state_dict()
    second = make(**one).fit(last_changed(mixed, "b")).network_.state_dict()
    third = make(**one).fit(last_changed(mixed, "t")).network_.state_dict()
    name = "rnn.weight_hh_l0"
    np.testing.assert_array_equal(first[name], second[name])
    assert not np.array_equal(first[name], third[name])


@pytest.mark.filterwarnings("ignore:2 of 5 series")
@pytest.mark.parametrize(
    "changes",
    [
        {"refit": True},
        {"multivariate": "joint"},
        {"intervals": "gaussian"},
        {"intervals": "student-t"},
        {"val_size": None},
        {"n_estimators": 2},
    ],
    ids=str,
)
def test_with_other_settings(make, mixed, changes):
    model = make(**changes).fit(mixed)
    found = model.predict(H, level=80).drop(columns=["unique_id", "ds"])
    assert np.isfinite(found).all(axis=None)
    assert np.isfinite(model.validation_["model"]).all()
    assert "Results" in str(model.summary())
    assert len(model.sample_paths(3)) == 5 * 3 * H


@pytest.mark.filterwarnings("ignore:2 of 5 series")
def test_own_intervals_of_long_series_pooled_ones_of_short(make):
    """With enough errors of each a series has its own; a short one has those of all."""
    rng = np.random.default_rng(0)
    long = pd.DataFrame(
        {
            "unique_id": np.repeat([*"abc"], 260),
            "ds": np.tile(pd.date_range("2000", periods=260, freq="MS"), 3),
            "y": rng.normal(size=780),
        }
    )
    short = long[long["unique_id"] == "a"].head(9)
    frame = pd.concat([long, *(short.assign(unique_id=name) for name in SHORT)])
    model = make(val_size=120).fit(frame)
    sizes = np.abs(model.calibration_.errors)
    assert len(sizes) == 5
    widths = model.calibration_.half_widths(80, np.arange(5))
    pooled = sizes[:3, :, 0].ravel()
    pooled = np.sort(pooled[np.isfinite(pooled)])
    expected = pooled[int(np.ceil(0.8 * (len(pooled) + 1))) - 1]
    np.testing.assert_allclose(widths[3:, 0, 0], expected, rtol=1e-6)
    assert len(set(widths[:3, 0, 0])) == 3


def test_without_short_ones_nothing_is_said(make, panel, recwarn):
    make().fit(panel)
    assert not [w for w in recwarn if "series have fewer" in str(w.message)]
