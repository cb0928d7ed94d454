"""p-values as text, columns that are models, and pairs of models."""

import numpy as np
import pandas as pd
import pytest

from tsrnn.evaluation import compare, diagnose, format_p_value


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.0, "<0.001"), (0.000999, "<0.001"), (0.001, "0.001"), (0.05, "0.050"), (1.0, "1.000")],
)
def test_p_values(p, text):
    assert format_p_value(p) == format_p_value(np.float64(p)) == text


def test_missing_p_values():
    assert format_p_value(np.nan) == "-"
    assert format_p_value(np.nan, "none") == "none"


def test_columns_that_are_models():
    frame = pd.DataFrame({"unique_id": ["a"], "ds": [1], "cutoff": [0], "y": [1.0]})
    frame = frame.assign(B=1.0, text="x", flag=True, A=2)
    frame = frame.assign(**{"A-lo-95": 0, "A-hi-95": 3, "A-lo-52.5": 1, "A-hi-52.5": 2})
    keys, intervals = list(frame)[:4], ["A-lo-52.5", "A-hi-52.5", "A-lo-95", "A-hi-95"]
    assert diagnose(frame).models == ["B", "A"]
    assert list(compare(frame).ordered_forecasts()) == [*keys, "B", "A", *intervals]
    only = compare(frame, models=["A"])
    assert list(only.ordered_forecasts()) == [*keys, "A", *intervals]
    assert [name for name in only.accuracy if name.startswith("coverage")] == [
        "coverage-52.5",
        "coverage-95",
    ]
    with pytest.raises(ValueError, match="both ends"):
        compare(frame.drop(columns="A-lo-95"))
    with pytest.raises(ValueError, match="a numeric column of forecasts"):
        compare(frame[[*keys, "text"]])


@pytest.mark.parametrize(("benchmark", "reference"), [(None, "Zero"), ("Two", "Two")])
def test_pairs_of_many_models_are_those_with_the_benchmark_or_the_best(benchmark, reference):
    y, origin = np.random.default_rng(0).normal(size=(25, 2)), np.arange(25).repeat(2)
    frame = pd.DataFrame({"unique_id": "a", "ds": origin + np.tile([1, 2], 25), "cutoff": origin})
    frame = frame.assign(y=y.ravel(), Two=2.0, One=1.0, Zero=0.0, text="x")
    result = compare(frame, n_boot=50, benchmark=benchmark)
    every, by_step = result.pairwise_tests(), result.pairwise_tests(by_step=True)
    assert set(every["step"]) == {"all"}
    assert set(by_step["step"]) == {1, 2}
    assert len(every) + len(by_step) == len(result.diebold_mariano) == 9
    assert result.pairwise_tests(most=3).equals(every)
    few = result.pairwise_tests(most=2)
    assert len(few) == 2
    assert (few[["model_a", "model_b"]] == reference).any(axis=1).all()
    assert list(result.ordered_forecasts()) == ["unique_id", "ds", "cutoff", "y", *result.models]
