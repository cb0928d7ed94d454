"""Saved forecasters come back as they were; files that are none of ours are told apart."""

import json
import os
import pickle
from types import NoneType

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import tsrnn
from tsrnn.contract import _file, read_file, write_file


@pytest.fixture(scope="module")
def fitted(small, panel, cut):
    return small().fit(cut(panel, 9)[0])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.tsrnn"


@pytest.fixture
def saved(fitted, path):
    fitted.save(path)
    return path


def back(model, path):
    model.save(path)
    return tsrnn.load(path)


def refused(path, *parts, error=ValueError):
    with pytest.raises(error) as caught:
        tsrnn.load(path)
    for part in (str(path), *parts):
        assert part in str(caught.value)


class TestRoundTrip:
    def test_everything_else(self, fitted, panel, cut, path, same):
        loaded, future = back(fitted, path), cut(panel, 9)[1]
        rolling = (model.predict_rolling(future, level=[80]) for model in (loaded, fitted))
        same(*rolling, rtol=0)
        assert str(loaded.summary()) == str(fitted.summary())
        pd.testing.assert_frame_equal(loaded.contributions(), fitted.contributions())
        pd.testing.assert_frame_equal(loaded.validation_, fitted.validation_)
        assert loaded.get_params() == fitted.get_params()
        assert loaded.settings_ == fitted.settings_
        assert loaded.history_ == fitted.history_
        assert loaded.n_features_in_ == fitted.n_features_in_
        np.testing.assert_array_equal(loaded.state_.n_rows, fitted.state_.n_rows)

    def test_twice(self, saved, tmp_path):
        tsrnn.load(saved).save(tmp_path / "again")
        contents = []
        for file in (saved, tmp_path / "again"):
            with safe_open(file, framework="pt") as opened:
                contents.append(opened.metadata())
        assert contents[0] == contents[1]

    def test_fits_again(self, saved, panel, fitted, cut, same):
        again = tsrnn.load(saved).fit(cut(panel, 9)[0])
        same(again.predict(), fitted.predict(), rtol=0)

    @pytest.mark.parametrize(
        "changes",
        [
            {"multivariate": "joint"},
            {"target": ["u", "w"], "known_ahead": None, "intervals": "gaussian"},
            {"target": "u", "aggregation": "ffn", "linear_path": False},
            {"preset": "paper", "hidden_size": 8},
        ],
        ids=["joint", "exogenous", "ffn", "paper"],
    )
    def test_of_settings(self, small, wide, path, same, changes):
        model = small(**changes).fit(wide)
        same(back(model, path).predict(8), model.predict(8), rtol=0)

    def test_of_known_columns(self, small, exog, cut, path, same):
        past, future = cut(exog, 6)
        model = small(known_ahead=("x",)).fit(past)
        ahead = future[["unique_id", "ds", "x"]]
        expected = model.predict(X_future=ahead, level=[80])
        same(back(model, path).predict(X_future=ahead, level=[80]), expected, rtol=0)

    @pytest.mark.parametrize(
        "shaped",
        [
            lambda y: y,
            lambda y: y.to_frame(),
            lambda y: y.rename(None),
            lambda y: y.to_period(),
            lambda y: y.set_axis(range(5, 5 + len(y))),
            lambda y: y.tz_localize("America/New_York"),
            lambda y: y.rename_axis("month").reset_index().rename(columns={"month": "ds"}),
        ],
        ids=["series", "wide", "unnamed", "periods", "integers", "zone", "without id"],
    )
    def test_of_layouts(self, small, wave, path, same, shaped):
        model = small().fit(shaped(wave))
        same(back(model, path).predict(3), model.predict(3), rtol=0)

    @pytest.mark.parametrize("ids", [["a", "b", "c"], [3, 1, 2], [0.5, 1.5, 2.5], ["a", 1, "c"]])
    def test_of_ids(self, small, panel, path, same, ids):
        names = dict(zip("abc", ids, strict=True))
        model = small().fit(panel.assign(unique_id=panel["unique_id"].map(names)))
        same(back(model, path).predict(3), model.predict(3), rtol=0)

    def test_of_categories(self, small, panel, path, same):
        model = small().fit(panel.astype({"unique_id": "category"}))
        same(back(model, path).predict(3), model.predict(3), rtol=0)

    def test_of_numbers_of_numpy(self, small, wave, path):
        chosen = {
            **{name: np.int64(4) for name in ("horizon", "hidden_size", "batch_size")},
            "max_epochs": np.int64(1),
            "patience": np.int32(2),
            "verbose": np.int64(0),
            "learning_rate": np.float32(0.01),
            "weight_decay": np.float64(0.0),
            "local_level": np.True_,
        }
        model = small(**chosen).fit(wave)
        assert {name: model.get_params()[name] for name in chosen} == chosen
        assert all(type(model.get_params()[name]) is type(v) for name, v in chosen.items())
        used = vars(model.settings_) | model.settings_.options
        assert {type(value) for value in used.values()} <= {
            int,
            float,
            str,
            bool,
            dict,
            tuple,
            NoneType,
        }
        expected = small(**{name: value.item() for name, value in chosen.items()}).fit(wave)
        pd.testing.assert_series_equal(model.predict(), expected.predict())
        loaded = back(model, path)
        assert loaded.settings_ == model.settings_ == expected.settings_
        assert loaded.get_params() == expected.get_params()
        pd.testing.assert_series_equal(loaded.predict(), model.predict())

    def test_what_is_not_kept(self, small, wave, path):
        model = small(callbacks=[], random_state=np.random.default_rng(0)).fit(wave)
        loaded = back(model, path)
        assert loaded.callbacks is None
        assert loaded.random_state is None
        pd.testing.assert_series_equal(loaded.predict(), model.predict())

    def test_ids_that_cannot_be_kept(self, small, panel, path):
        days = panel["unique_id"].map({c: pd.Timestamp(2020, 1, ord(c) - 96) for c in "abc"})
        model = small().fit(panel.assign(unique_id=days))
        with pytest.raises(TypeError, match="series ids must be numbers, strings.*Timestamp"):
            model.save(path)
        assert not path.exists()


class TestSaving:
    def test_leaves_one_file(self, saved, tmp_path):
        assert list(tmp_path.iterdir()) == [saved]

    @pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
    def test_that_breaks_off_leaves_the_old_file(self, fitted, saved, monkeypatch, error):
        old = saved.read_bytes()

        def broken(descriptor):
            raise error

        monkeypatch.setattr(os, "fsync", broken)
        with pytest.raises(type(error)):
            fitted.save(saved)
        assert saved.read_bytes() == old
        assert list(saved.parent.iterdir()) == [saved]

    def test_over_an_old_file(self, saved, small, wave, same):
        other = small().fit(wave)
        same(back(other, saved).predict(), other.predict(), rtol=0)

    def test_to_no_place(self, fitted, tmp_path):
        with pytest.raises(FileNotFoundError, match="does not exist; make it first"):
            fitted.save(tmp_path / "no" / "model")
        with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
            fitted.save(tmp_path)

    def test_paths_may_be_strings(self, fitted, tmp_path):
        fitted.save(str(tmp_path / "model"))
        assert tsrnn.load(str(tmp_path / "model")).horizon_ == 6


class TestLoading:
    def test_unpickles_nothing(self, saved, monkeypatch):
        def never(*_, **__):
            raise AssertionError("unpickled")

        for module, name in ((pickle, "load"), (pickle, "loads"), (pickle, "Unpickler")):
            monkeypatch.setattr(module, name, never)
        monkeypatch.setattr(torch, "load", never)
        assert tsrnn.load(saved).horizon_ == 6

    def test_missing(self, tmp_path):
        refused(tmp_path / "none", "no saved model", error=FileNotFoundError)
        refused(tmp_path, "no saved model", error=FileNotFoundError)

    @pytest.mark.parametrize(
        "content",
        [b"", b"x", b"unique_id,ds,y\n" * 50, pickle.dumps({"a": 1}), b"\xff" * 100],
        ids=["empty", "byte", "text", "pickle", "noise"],
    )
    def test_foreign(self, path, content):
        path.write_bytes(content)
        refused(path, "damaged or no model saved by tsrnn")

    def test_foreign_tensors(self, path):
        save_file({"a": torch.ones(3)}, path)
        refused(path, "a safetensors file, but no model saved by tsrnn")
        save_file({"a": torch.ones(3)}, path, metadata={"format": "pt"})
        refused(path, "a safetensors file, but no model saved by tsrnn")

    @pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.999])
    def test_truncated(self, saved, share):
        content = saved.read_bytes()
        saved.write_bytes(content[: int(share * len(content))])
        refused(saved, "damaged")

    def test_flipped_bytes(self, saved):
        content = saved.read_bytes()
        for place in np.linspace(8, len(content) - 1, 20).astype(int):
            broken = bytearray(content)
            broken[place] ^= 0b101
            saved.write_bytes(bytes(broken))
            refused(saved)

    def test_newer_format(self, saved):
        rewrite(saved, {"format": 99})
        refused(saved, "in format 99, written by tsrnn", "Install a newer tsrnn")

    def test_format_of_a_development_version(self, saved):
        rewrite(saved, {"format": 1})
        refused(saved, "in format 1, of a development version", "Fit the model and save it again")

    def test_unknown_class(self, saved):
        header, arrays = read_file(saved)
        write_file(saved, header | {"class": "OtherForecaster"}, arrays)
        refused(saved, "holds a OtherForecaster, written by tsrnn", "Install a newer tsrnn")

    @pytest.mark.parametrize("header", ["3", "{}", "nonsense", "[]"])
    def test_headers_of_another_kind(self, saved, header):
        rewrite(saved, header)
        refused(saved, "its header cannot be read")

    def test_changed_by_hand(self, saved):
        rewrite(saved, {"known_ahead": ["x"]})
        refused(saved, "does not match its checksum")


def rewrite(path, header):
    """Replace the header, or some of its entries, and leave the checksum."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if isinstance(header, dict):
        header = json.dumps(json.loads(metadata[_file.HEADER]) | header)
    save_file(tensors, path, metadata=metadata | {_file.HEADER: header})
