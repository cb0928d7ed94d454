"""Every example runs and prints what it promises."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tsrnn

pytestmark = pytest.mark.example
EXAMPLES = Path(__file__).parents[1] / "examples"


def output_of(name, folder):
    """Return what an example prints, run as a user would run it."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | {"MPLBACKEND": "Agg", "TSRNN_OUTPUT": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def number(pattern, text):
    """The number that a pattern's group catches."""
    match = re.search(pattern, text)
    assert match is not None, f"{pattern!r} is not in\n{text}"
    return float(match[1])


def rmse(model, text):
    """The first root mean squared error that a table gives for a model."""
    return number(rf"{model} +(\d\.\d+)", text)


def test_forecasts_of_three_data_sets_beat_the_seasonal_naive(tmp_path):
    said = output_of("01_quickstart.py", tmp_path)
    for table in said.split("Errors in ")[1:]:
        assert rmse("ParaRNN", table) < rmse("seasonal naive", table)
    assert {path.name for path in tmp_path.iterdir()} == {
        "contributions.png",
        "forecasts.png",
        "memory.png",
    }


def test_updates_equal_a_new_pass_and_the_calendar_helps(tmp_path):
    said = output_of("02_exogenous_and_updates.py", tmp_path)
    assert number(r"updates against one pass .* differ by (\S+)", said) < 1e-4
    assert number(r"by predict_rolling, differ by (\S+)", said) < 1e-4
    with_calendar = number(r"RMSE with the calendar: (\d\.\d+)", said)
    assert with_calendar < number(r"RMSE without it: (\d\.\d+)", said)
    assert (tmp_path / "volume.png").stat().st_size > 0


def test_a_known_wave_is_read_and_the_parts_sum_to_the_forecast(tmp_path):
    said = output_of("03_reading_a_network.py", tmp_path)
    assert "C-1: half-life 8.0, period 40.0 quarters" in said
    assert "Shares of 8 blocks sum to 1.000" in said
    assert number(r"parts sum to the forecast, to (\S+)", said) < 1e-6
    pictures = {"features.png", "lag_curves.png", "parts.png"}
    assert {path.name for path in tmp_path.iterdir()} == pictures


def test_own_cells_are_their_loop_and_forecast(tmp_path):
    said = output_of("04_own_cell.py", tmp_path)
    for cell in ("min_gru", "unicornn"):
        assert number(rf"{cell} and its loop: states differ by (\S+),", said) < 1e-10
        assert number(rf"{cell} and its loop: .*, gradients by (\S+)", said) < 1e-10
    assert "output (8, 100, 16), state (2, 8, 32)" in said
    assert number(r"min_gru +(\d\.\d+)", said) < number(r"seasonal naive +(\d\.\d+)", said)
    assert "to be saved, cell must be one by name" in said


def test_a_killed_service_ends_as_one_in_peace(tmp_path):
    said = output_of("09_stream.py", tmp_path)
    assert number(r"(\d+) rows, \d+ ms each", said) == 19 * 3 + 3
    assert 100 <= number(r"killed after (\d+) forecasts", said) < 19 * 3 * 4
    assert f"forecasts: {19 * 3 * 4} rows, the same in both: True" in said
    assert "rejected: 3 rows, the same in both: True" in said
    assert "gold,2006-07-01,271.5: new rows must belong to series that are known" in said
    assert (tmp_path / "stream.png").stat().st_size > 0


def test_mlflow_forecasts_the_same_and_leaves_nothing(tmp_path):
    pytest.importorskip("mlflow", reason="the example is about MLflow")
    said = output_of("10_mlflow.py", tmp_path)
    assert number(r"after the data fitted to: (\d+) steps, the same as without", said) == 24
    assert number(r"after ten more years: (\d+) steps, the same as without", said) == 12
    assert re.search(r"El Niño 2011-01-01 +\d\d\.\d\d", said)
    assert not list(tmp_path.iterdir())
    for folder in (Path.cwd(), EXAMPLES):
        assert not {path.name for path in folder.iterdir()} & {"mlruns", "mlartifacts", "mlflow.db"}


def test_levels_of_a_hierarchy_add_up(tmp_path):
    said = output_of("12_hierarchies.py", tmp_path)
    total = number(r"the states add up to (\S+)", said)
    assert number(r"the country is forecast as (\S+)", said) == total
    reconciled, lowest = (
        number(rf"{name}: width of 80 percent (\S+)", said) for name in ("mint_shrink", "bottom_up")
    )
    assert 0.7 < reconciled / lowest < 1.4
    assert (tmp_path / "country.png").stat().st_size > 0


def test_the_median_of_classical_models_beats_the_seasonal_naive(tmp_path):
    said = output_of("11_classical.py", tmp_path)
    assert "Combination of 4 forecasters, median of ETS" in said
    assert re.search(r"El Niño +ETS\(., N, A\)", said)
    assert number(r"median +(\d\.\d+)", said) < 0.7  # MASE
    assert (tmp_path / "classical.png").stat().st_size > 0


def test_arma_and_garch_are_printed_as_pages(tmp_path):
    said = output_of("05_arma_and_garch.py", tmp_path)
    assert "Standard errors: QMLE sandwich of Hessian and scores." in said


def test_correlations_over_time_are_drawn(tmp_path):
    said = output_of("06_correlations_over_time.py", tmp_path)
    bekk, dcc, ccc = (number(rf"\n{name} +(-\d+\.\d)", said) for name in ("BEKK", "DCC", "CCC"))
    assert dcc > ccc
    assert bekk >= -4202.2  # the highest maximum that is known
    drawn = {"correlations_bekk.png", "correlations_dcc.png"}
    assert {path.name for path in tmp_path.iterdir()} == drawn


def test_comparisons_end_in_a_set_of_models_and_a_page(tmp_path):
    said = output_of("07_compare_with_arma.py", tmp_path)
    assert re.search(r"The 95 percent model confidence set holds .* of 4 models", said)
    assert "GJR-GARCH is better than ARCH(1) at 5 percent." in said
    assert (tmp_path / "compare_variance.html").stat().st_size > 0


def test_bad_news_moves_the_variance_more_than_good_news(tmp_path):
    said = output_of("08_news_impact.py", tmp_path)
    after_fall, after_rise = (
        number(rf"after a {move} of 4 percent (\d\.\d+)", said) for move in ("fall", "rise")
    )
    assert after_fall > after_rise
    assert (tmp_path / "news_impact.png").stat().st_size > 0


def test_no_example_is_left_out():
    tested = set(re.findall(r'output_of\("(\d\d_\w+\.py)"', Path(__file__).read_text("utf-8")))
    assert tested == {path.name for path in EXAMPLES.glob("[0-9]*.py")}


def test_every_model_draws_a_picture(tmp_path):
    said = output_of("13_a_picture_of_each.py", tmp_path)
    assert said.count("ahead") == 13
    names = "networks classical_models slow_movers several_series volatility effects_of_shocks"
    pictures = {f"{name}.png" for name in [*names.split(), "sequences"]}
    assert {path.name for path in tmp_path.iterdir()} == pictures
    example = (EXAMPLES / "13_a_picture_of_each.py").read_text(encoding="utf-8")
    for name in tsrnn.__all__:
        assert not inspect.isclass(getattr(tsrnn, name)) or name in example
