"""Tests of equal accuracy against direct calls of the libraries and tables in print."""

from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from arch.bootstrap import MCS, SPA
from scipy import stats
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.multitest import multipletests
from statsmodels.tsa.stattools import diebold_mariano_test

from tsrnn.evaluation import compare

MODELS = ("A", "B", "C")


def errors(n_series, n_windows, steps, seed=0):
    """Errors (M, S, W, H), better for the first models, larger in later series."""
    rng = np.random.default_rng(seed)
    size = np.array([1.0, 1.1, 1.3])[:, None, None, None] * (1 + np.arange(n_series))[:, None, None]
    return size * rng.normal(size=(len(MODELS), n_series, n_windows, steps))


def framed(errors, step_size=1, scales=True):
    """A frame with these errors, of the first models."""
    n_series = errors.shape[1]
    s, w, h = (i.ravel() for i in np.indices(errors.shape[1:]))
    frame = pd.DataFrame({"unique_id": s, "ds": w * step_size + h + 1, "cutoff": w * step_size})
    frame["y"] = 5.0
    for name, own in zip(MODELS, errors, strict=False):
        frame[name] = 5.0 - own.ravel()
    if scales:
        ids = list(range(n_series))
        scale = {
            "unique_id": ids,
            "mae": [i + 1.0 for i in ids],
            "mse": [(i + 1.0) ** 2 for i in ids],
        }
        frame.attrs["backtest"] = {"season_length": 1, "kind": "mean", "scale": scale}
    return frame


def row(table, step, a, b):
    found = table[(table["step"] == step) & (table["model_a"] == a) & (table["model_b"] == b)]
    assert len(found) == 1
    return found.iloc[0]


def assert_test(found, wanted):
    assert found["statistic"] == pytest.approx(wanted.statistic, rel=1e-9)
    assert found["p_value"] == pytest.approx(wanted.pvalue, rel=1e-9)


class TestDieboldMariano:
    @pytest.mark.parametrize(("loss", "criterion"), [("squared", "mse"), ("absolute", "mae")])
    def test_single_series_by_step_is_the_direct_call(self, loss, criterion):
        error = errors(1, 60, 4)
        table = compare(framed(error), loss=loss, dm_variance="bartlett", n_boot=10).diebold_mariano
        y = np.full(60, 5.0)
        for step in range(1, 5):
            lags = 0 if step == 1 else max(step - 1, 4)  # the cubic root of 60 is 3.9
            for (i, a), (j, b) in combinations(enumerate(MODELS), 2):
                wanted = diebold_mariano_test(
                    y, 5 - error[i, 0, :, step - 1], 5 - error[j, 0, :, step - 1],
                    criterion=criterion, lags=lags, horizon=step, harvey_adj=True,
                )  # fmt: skip
                found = row(table, step, a, b)
                assert_test(found, wanted)
                assert (found["n"], found["bandwidth"], found["over"]) == (60, lags, "time")

    def test_all_steps_compare_the_mean_losses_of_windows(self):
        error = errors(1, 60, 4)
        result = compare(framed(error), dm_variance="bartlett", n_boot=10)
        loss = (error[:, 0] ** 2).mean(axis=2)
        for (i, a), (j, b) in combinations(enumerate(MODELS), 2):
            wanted = diebold_mariano_test(
                np.zeros(60), np.sqrt(loss[i]), np.sqrt(loss[j]), lags=4, horizon=4,
                harvey_adj=True,
            )  # fmt: skip
            found = row(result.diebold_mariano, "all", a, b)
            assert_test(found, wanted)
            assert found["mean_difference"] == pytest.approx((loss[i] - loss[j]).mean(), rel=1e-9)

    def test_qlike_is_the_direct_call_with_that_criterion(self):
        rng = np.random.default_rng(3)
        frame = framed(errors(1, 50, 1), scales=False)
        frame["y"] = rng.normal(size=50) ** 2
        frame[list(MODELS)] = np.exp(rng.normal(size=(50, 3)))
        result = compare(frame, loss="qlike", n_boot=10)

        def criterion(y, f):
            return np.log(f) + y / f

        wanted = diebold_mariano_test(
            frame["y"], frame["A"], frame["B"], criterion=criterion, lags=0, harvey_adj=True
        )
        a, b = sorted(("A", "B"), key=result.models.index)
        found = row(result.diebold_mariano, 1, a, b)
        assert found["p_value"] == pytest.approx(wanted.pvalue, rel=1e-9)
        assert abs(found["statistic"]) == pytest.approx(abs(wanted.statistic), rel=1e-9)

    @pytest.mark.parametrize(
        ("step_size", "overlap"), [(1, [0, 1, 2, 3, 4, 5]), (2, [0, 0, 1, 1, 2, 2]),
                                   (4, [0, 0, 0, 0, 1, 1]), (6, [0] * 6), (9, [0] * 6)],
    )  # fmt: skip
    def test_lags_come_from_the_overlap_of_windows(self, step_size, overlap):
        frame = framed(errors(1, 30, 6), step_size)
        steps = [1, 2, 3, 4, 5, 6, "all"]
        for variance, fewest in (("rectangular", 0), ("bartlett", 4)):  # 30^(1/3) < 4
            table = compare(frame, dm_variance=variance, n_boot=10).diebold_mariano
            found = [row(table, step, "A", "B") for step in steps]
            for test, k in zip(found, [*overlap, overlap[-1]], strict=True):
                replaced = test["variance"] != variance
                lags = max(k, 4 if replaced else fewest) if k else 0
                assert test["bandwidth"] == lags

    def test_the_default_variance_is_the_published_one_and_what_is_not_positive_is_said(self):
        error = errors(1, 30, 10, seed=4)
        result = compare(framed(error), n_boot=10)
        replaced = 0
        for step in range(1, 11):
            found = row(result.diebold_mariano, step, "A", "B")
            d = error[0, 0, :, step - 1] ** 2 - error[1, 0, :, step - 1] ** 2
            u = d - d.mean()
            variance = (u @ u + 2 * sum(u[k:] @ u[:-k] for k in range(1, step))) / 30**2
            if variance <= 0:
                assert found["variance"] == "bartlett"
                replaced += 1
                continue
            factor = (30 + 1 - 2 * step + step * (step - 1) / 30) / 30
            assert found["statistic"] == pytest.approx(d.mean() / np.sqrt(variance / factor))
            assert found["variance"] == "rectangular"
        (note,) = [note for note in result.notes if "is not positive" in note]
        number = (result.diebold_mariano["variance"] == "bartlett").sum()
        assert replaced
        assert note.startswith(f"In {number} of 33 tests")
        same = compare(framed(error), dm_variance="cosines", n_boot=10)
        assert not any("is not positive" in note for note in same.notes)
        assert set(same.diebold_mariano["variance"]) == {"cosines"}
        with pytest.raises(ValueError, match=r"dm_variance must be one of \('rectangular'"):
            compare(framed(error), dm_variance="hac")

    @pytest.mark.parametrize(("n", "steps", "lags"), [(27, 2, 3), (28, 2, 4), (30, 10, 9)])
    def test_lags_are_the_cube_root_of_the_windows_or_more(self, n, steps, lags):
        frame = framed(errors(1, n, steps))
        table = compare(frame, dm_variance="bartlett", n_boot=10).diebold_mariano
        assert row(table, steps, "A", "B")["bandwidth"] == lags

    def test_over_time_tests_the_series_of_scaled_means(self):
        error = errors(4, 30, 2)
        table = compare(framed(error, 2), n_boot=10).diebold_mariano
        scaled = error / (1 + np.arange(4))[:, None, None]
        loss = (scaled**2).mean(axis=1)  # (M, W, H)
        for i, step in enumerate((1, 2, "all")):
            values = loss.mean(axis=2) if step == "all" else loss[:, :, i]
            wanted = stats.ttest_1samp(values[0] - values[1], 0)
            found = row(table, step, "A", "B")
            assert_test(found, wanted)
            assert (found["n"], found["over"]) == (30, "time")

    def test_over_series_is_the_t_test_over_series(self):
        error = errors(25, 3, 4)
        result = compare(framed(error), n_boot=10)
        scaled = error / (1 + np.arange(25))[:, None, None]
        for step in (1, 2, 3, 4, "all"):
            values = scaled**2 if step == "all" else scaled[..., [step - 1]] ** 2
            means = values.mean(axis=(2, 3))
            found = row(result.diebold_mariano, step, "A", "C")
            assert_test(found, stats.ttest_1samp(means[0] - means[2], 0))
            assert (found["n"], found["bandwidth"], found["over"]) == (25, 0, "series")
        assert any("err independently" in note for note in result.notes)

    @pytest.mark.slow
    def test_holm_adjusts_over_the_pairs_for_all_steps(self):
        table = compare(framed(errors(1, 60, 3)), n_boot=10).diebold_mariano
        together = table["step"] == "all"
        wanted = multipletests(table.loc[together, "p_value"], method="holm")[1]
        np.testing.assert_array_equal(table.loc[together, "p_adjusted"], wanted)
        assert table.loc[~together, "p_adjusted"].isna().all()

    def test_missing_windows_leave_a_step_with_fewer(self):
        error = errors(1, 40, 2)
        frame = framed(error, 2)
        frame.loc[1::2, "y"] = frame.loc[1::2, "y"].where(frame["cutoff"] >= 20)
        table = compare(frame, n_boot=10).diebold_mariano
        assert row(table, 1, "A", "B")["n"] == 40
        found = row(table, 2, "A", "B")
        loss = error[:, 0, 10:, 1] ** 2
        assert found["n"] == 30
        assert_test(found, stats.ttest_1samp(loss[0] - loss[1], 0))

    def test_identical_forecasts_have_no_statistic(self):
        error = errors(1, 30, 2)
        error[1] = error[0]
        result = compare(framed(error), n_boot=50)
        table = result.diebold_mariano
        a, b = sorted(("A", "B"), key=result.models.index)
        assert np.isnan(row(table, "all", a, b)["p_value"])
        assert row(table, "all", a, b)["mean_difference"] == 0
        assert not np.isnan(row(table, "all", "A", "C")["p_value"])
        assert any("same forecasts" in n and "A and B" in n for n in result.notes)
        p_values = result.confidence_set["p_value"]
        assert p_values["A"] == p_values["B"]
        both = result.encompassing.set_index(["model_a", "model_b"])["p_value"]
        assert np.isnan(both["A", "B"])


class TestUnitsOfVariances:
    """Multiplying a series by a number multiplies its variances by the square."""

    def frame(self, factor, stored=True):
        rng = np.random.default_rng(5)
        frame = framed(errors(25, 30, 1), scales=False)
        frame["y"] = rng.normal(size=len(frame)) ** 2
        frame[list(MODELS)] = np.exp(0.5 * rng.normal(size=(len(frame), 3)))
        own = np.where(frame["unique_id"] == 0, factor, 1.0)
        for name in ("y", *MODELS):
            frame[name] = frame[name] * own**2
        size = [factor, *[1.0] * 24]
        scale = {"unique_id": list(range(25)), "mae": size, "mse": [2 * v**2 for v in size]}
        frame.attrs["backtest"] = {"season_length": 1, "kind": "variance", "failures": []} | (
            {"scale": scale} if stored else {}
        )
        return frame

    @pytest.mark.parametrize("loss", ["squared", "absolute", "qlike"])
    def test_no_series_decides_by_its_unit(self, loss):
        one, other = (
            compare(self.frame(factor), loss=loss, models=["A", "B"], n_boot=10)
            for factor in (1.0, 1000.0)
        )
        for table, columns in (
            ("diebold_mariano", ["mean_difference", "p_value"]), ("encompassing", ["lambda"])
        ):  # fmt: skip
            found, wanted = (
                getattr(result, table).set_index(["model_a", "model_b"])[columns].sort_index()
                for result in (other, one)
            )
            if found.index.equals(wanted.index):
                np.testing.assert_allclose(found, wanted, rtol=1e-9)
            else:  # sorted by means of the variances themselves
                np.testing.assert_allclose(found.abs(), wanted.abs(), rtol=1e-9)

    def test_scales_of_train_are_of_variances(self):
        frame = self.frame(1000.0, stored=False)
        days = np.arange(-30, 1)
        size = np.where(np.arange(25) == 0, 1e6, 1.0)
        train = pd.DataFrame({
            "unique_id": np.repeat(np.arange(25), len(days)), "ds": np.tile(days, 25),
            "y": (size[:, None] * np.random.default_rng(1).uniform(size=(25, len(days)))).ravel(),
        })  # fmt: skip
        found = compare(frame, loss="absolute", train=train, season_length=1, n_boot=10)
        assert found.diebold_mariano["mean_difference"].abs().max() < 10
        with pytest.raises(ValueError, match="train must have actual values of variances"):
            compare(frame, train=train.assign(y=-train["y"]), season_length=1)

    def test_without_scales_encompassing_is_left_out(self):
        result = compare(self.frame(1.0, stored=False), n_boot=10)
        assert result.encompassing.empty
        assert len(result.diebold_mariano)
        assert any("Encompassing is left out" in note for note in result.notes)


class TestUnits:
    def test_windows_of_series_that_end_at_different_times_are_counted_from_the_last(self):
        error = errors(3, 25, 1)
        frame = framed(error)
        shift = frame["unique_id"] * 100
        moved = frame.assign(ds=frame["ds"] + shift, cutoff=frame["cutoff"] + shift)
        moved.attrs = frame.attrs
        pd.testing.assert_frame_equal(
            compare(moved, n_boot=10).diebold_mariano, compare(frame, n_boot=10).diebold_mariano
        )

    def test_windows_are_matched_by_cutoff_though_some_series_lack_some(self):
        error = errors(2, 25, 1)
        frame = framed(error)
        frame.loc[(frame["unique_id"] == 1) & (frame["cutoff"] == 3), "A"] = np.nan
        result = compare(frame, n_boot=10)
        loss = (error / np.array([1, 2])[:, None, None])[..., 0] ** 2
        mean = loss.mean(axis=1)
        mean[:, 3] = loss[:, 0, 3]
        assert_test(
            row(result.diebold_mariano, 1, "A", "B"), stats.ttest_1samp(mean[0] - mean[1], 0)
        )
        assert any("between 1 and 2 series" in note for note in result.notes)

    @pytest.mark.parametrize(
        ("shape", "over"),
        [((30, 20, 1), "time"), ((30, 19, 1), "series"), ((19, 19, 1), None), ((1, 19, 1), None)],
    )
    def test_auto_needs_twenty(self, shape, over):
        result = compare(framed(errors(*shape)), n_boot=10)
        assert result.over == over
        if over is None:
            empty = ("diebold_mariano", "confidence_set", "superior_predictive_ability",
                     "encompassing")  # fmt: skip
            assert all(not len(getattr(result, name)) for name in empty)
            assert "without tests of the differences: tests need at least 20" in result.words()[0]
            assert 'over="time" tests all the same' in result.words()[0]

    def test_few_units_are_tested_if_asked_for_and_noted(self):
        result = compare(framed(errors(1, 8, 1)), over="time", n_boot=10)
        assert result.over == "time"
        assert any("8 windows only" in note for note in result.notes)
        result = compare(framed(errors(1, 4, 1)), over="time", n_boot=10)
        assert result.over is None
        assert "tests over time need at least 5 windows; there are 4" in result.words()[0]

    def test_steps_with_too_much_overlap_have_no_statistic(self):
        table = compare(framed(errors(1, 8, 8)), over="time", n_boot=10).diebold_mariano
        assert np.isfinite(row(table, 7, "A", "B")["p_value"])  # 8 units, overlap 6
        assert np.isnan(row(table, 8, "A", "B")["p_value"])


class TestBootstrap:
    @pytest.mark.parametrize(("steps", "block"), [(1, 1), (3, 5)])
    def test_confidence_set_is_that_of_arch(self, steps, block):
        error = errors(1, 60, steps)
        result = compare(framed(error), alpha=0.1, n_boot=200, random_state=7)
        losses = pd.DataFrame((error[:, 0] ** 2).mean(axis=2).T, columns=list(MODELS))
        wanted = MCS(losses[result.models], 0.1, 200, block, seed=7)
        wanted.compute()
        found = result.confidence_set
        np.testing.assert_array_equal(found["p_value"], wanted.pvalues["Pvalue"].loc[result.models])
        assert sorted(found.index[found["included"]]) == wanted.included

    @pytest.mark.parametrize(("steps", "block"), [(1, 1), (3, 5)])
    def test_superior_predictive_ability_is_that_of_arch(self, steps, block):
        error = errors(1, 60, steps)
        result = compare(framed(error), n_boot=200, random_state=7)
        losses = pd.DataFrame((error[:, 0] ** 2).mean(axis=2).T, columns=list(MODELS))
        for name in result.models:
            others = [m for m in result.models if m != name]
            wanted = SPA(losses[name], losses[others], block, 200, seed=7)
            wanted.compute()
            found = result.superior_predictive_ability.loc[name]
            np.testing.assert_array_equal(found, wanted.pvalues[found.index])

    def test_the_seed_decides(self):
        frame = framed(errors(1, 60, 3))
        p = [
            compare(frame, n_boot=99, random_state=seed).superior_predictive_ability
            for seed in (1, 1, 2)
        ]
        assert p[0].equals(p[1])
        assert not p[0].equals(p[2])

    def test_losses_apart_by_a_constant_have_no_confidence_set(self):
        error = np.ones((3, 1, 30, 1)) * np.array([1.0, 2.0, 3.0])[:, None, None, None]
        result = compare(framed(error), n_boot=10)
        assert not len(result.confidence_set)
        assert any("differ by the same number" in note for note in result.notes)
        assert result.diebold_mariano["p_value"].isna().all()

    def test_all_models_alike_stay_in_the_set(self):
        error = errors(1, 30, 1)
        error[1:] = error[0]
        result = compare(framed(error), n_boot=10)
        assert result.confidence_set["included"].all()
        assert result.superior_predictive_ability.isna().all(axis=None)
        assert np.isnan(result.friedman_p_value)


class TestRanks:
    # Demšar (2006), Table 5: critical values of the two-tailed Nemenyi test.
    @pytest.mark.parametrize(
        ("k", "alpha", "q"),
        [(2, 0.05, 1.960), (3, 0.05, 2.343), (4, 0.05, 2.569), (5, 0.05, 2.728), (6, 0.05, 2.850),
         (7, 0.05, 2.949), (8, 0.05, 3.031), (9, 0.05, 3.102), (10, 0.05, 3.164),
         (2, 0.1, 1.645), (5, 0.1, 2.459), (10, 0.1, 2.920)],
    )  # fmt: skip
    def test_critical_difference_is_that_of_the_table(self, k, alpha, q):
        draw = np.random.default_rng(0).normal(size=(19, k))  # too few for tests of pairs
        frame = pd.DataFrame(draw, columns=[f"M{i}" for i in range(k)])
        frame = frame.assign(unique_id=range(19), ds=1, cutoff=0, y=0.0)
        found = compare(frame, alpha=alpha).critical_difference
        assert found * np.sqrt(6 * 19 / (k * (k + 1))) == pytest.approx(q, abs=1.01e-3)

    def test_ranks_of_series_and_friedman(self):
        error = errors(12, 3, 2)
        result = compare(framed(error), n_boot=10)
        loss = (error**2).mean(axis=(2, 3))
        ranks = np.argsort(np.argsort(loss, axis=0), axis=0).mean(axis=1) + 1
        found = result.ranks["mean_rank"]
        np.testing.assert_allclose(found[list(MODELS)], ranks, rtol=1e-12)
        wanted = stats.friedmanchisquare(*loss).pvalue
        assert result.friedman_p_value == pytest.approx(wanted, rel=1e-9)
        near = found - found.min() < result.critical_difference
        assert (result.ranks["near_best"] == near).all()

    def test_one_series_is_ranked_by_window_and_ties_share_ranks(self):
        error = errors(1, 30, 2)
        error[1] = error[0]
        error[2] = 100
        result = compare(framed(error), n_boot=10)
        assert result.ranks["mean_rank"].to_dict() == {"A": 1.5, "B": 1.5, "C": 3.0}
        assert any("overlapping" in note for note in result.notes)

    def test_two_models_have_no_friedman_test(self):
        result = compare(framed(errors(5, 3, 2)[:2]), n_boot=10)
        assert np.isnan(result.friedman_p_value)
        assert result.critical_difference == pytest.approx(1.95996 * np.sqrt(6 / 30), rel=1e-4)


class TestEncompassing:
    def test_one_step_is_least_squares_with_hac(self):
        rng = np.random.default_rng(2)
        error = rng.normal(size=(3, 1, 50, 1)) + rng.normal(size=(1, 1, 50, 1))
        table = compare(framed(error), n_boot=10).encompassing
        for (i, a), (j, b) in permutations(enumerate(MODELS), 2):
            e = error[:, 0, :, 0]
            kinds = {"maxlags": 0}
            fit = OLS(e[i], e[i] - e[j]).fit(cov_type="HAC", cov_kwds=kinds, use_t=True)
            found = table[(table["model_a"] == a) & (table["model_b"] == b)].iloc[0]
            assert found["lambda"] == pytest.approx(fit.params[0], rel=1e-9)
            assert found["std_err"] == pytest.approx(fit.bse[0], rel=1e-9)
            assert found["p_value"] == pytest.approx(fit.pvalues[0], rel=1e-6)
            assert found["encompasses"] == (fit.pvalues[0] >= 0.05)

    def test_overlapping_windows_sum_the_scores_of_their_steps(self):
        error = errors(1, 40, 3)
        table = compare(framed(error), n_boot=10).encompassing
        e = error[:, 0]
        x = e[0] - e[1]
        weight = (e[0] * x).sum() / (x**2).sum()
        score = (x * (e[0] - weight * x)).sum(axis=1)
        lags = 4
        variance = (score**2).sum()
        for k in range(1, lags + 1):
            variance += 2 * (1 - k / (lags + 1)) * (score[k:] * score[:-k]).sum()
        found = table[(table["model_a"] == "A") & (table["model_b"] == "B")].iloc[0]
        assert found["lambda"] == pytest.approx(weight, rel=1e-9)
        assert found["std_err"] == pytest.approx(np.sqrt(variance) / (x**2).sum(), rel=1e-9)
        assert found["n"] == 40

    def test_series_are_clusters_in_units_of_their_scale(self):
        error = errors(25, 3, 2)
        table = compare(framed(error), n_boot=10).encompassing
        e = (error / (1 + np.arange(25))[:, None, None]).reshape(3, -1)
        groups = np.repeat(np.arange(25), 6)
        fit = OLS(e[0], e[0] - e[1]).fit(cov_type="cluster", cov_kwds={"groups": groups})
        found = table[(table["model_a"] == "A") & (table["model_b"] == "B")].iloc[0]
        assert found["lambda"] == pytest.approx(fit.params[0], rel=1e-9)
        assert found["std_err"] == pytest.approx(fit.bse[0], rel=1e-9)

    def test_a_forecast_with_added_noise_is_encompassed(self):
        rng = np.random.default_rng(4)
        error = rng.normal(size=(3, 1, 200, 1))
        error[1] = error[0] + 2 * rng.normal(size=(1, 200, 1))
        table = compare(framed(error), n_boot=10).encompassing
        table = table.set_index(["model_a", "model_b"])["encompasses"]
        assert table["A", "B"]
        assert not table["B", "A"]
