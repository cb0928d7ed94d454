"""Sentences about tests, against cases written by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tsrnn.evaluation import compare

NOTHING = pd.DataFrame()
NOT_ADJUSTED = "The tests at each step are not adjusted for their number."


def table_of(verdicts, a="A", b="B", together="="):
    """A table of tests of a pair from a letter a step: > a better, < worse, = same, ? untested."""
    rows = [
        (step, a, b, *_numbers(verdict))
        for step, verdict in [*enumerate(verdicts, 1), ("all", together)]
    ]
    table = pd.DataFrame(rows, columns=["step", "model_a", "model_b", "mean_difference", "p_value"])
    table["p_adjusted"] = table["p_value"].where(table["step"] == "all")
    return table


def _numbers(verdict):
    difference = {"<": 1.0, ">": -1.0}.get(verdict, -0.1)
    return difference, {"=": 0.4, "?": np.nan}.get(verdict, 0.01)


def compared(models, n_windows, horizon, n_series):
    s, w, h = (i.ravel() for i in np.indices((n_series, n_windows, horizon)))
    frame = pd.DataFrame({"unique_id": s, "cutoff": w * horizon, "y": 0.0})
    frame["ds"] = frame["cutoff"] + h + 1
    draw = np.random.default_rng(0).normal(size=(len(models), len(s)))
    for i, (name, error) in enumerate(zip(models, draw, strict=True)):
        frame[name] = 9**i * error  # in the order of their accuracy
    return compare(frame, n_boot=10)


RESULT = compared("AB", 2, 1, 1)


def said(tests, models=("A", "B"), alpha=0.05, benchmark=None, held=NOTHING, ability=NOTHING):
    result = replace(
        RESULT, scope=[], accuracy=pd.DataFrame(index=list(models)), diebold_mariano=tests,
        confidence_set=held, superior_predictive_ability=ability, alpha=alpha, benchmark=benchmark,
    )  # fmt: skip
    return result.words()


@pytest.mark.parametrize(
    ("verdicts", "sentence"),
    [
        (">>>>=", "A is better than B at 5 percent for steps 1 to 4; not distinguishable after."),
        ("==>>", "A is better than B at 5 percent for steps 3 and 4; not distinguishable before."),
        (">==", "A is better than B at 5 percent for step 1; not distinguishable after."),
        (">=>", "A is better than B at 5 percent for steps 1 and 3; not distinguishable at the "
                "others."),
        ("=>=", "A is better than B at 5 percent for step 2; not distinguishable at the others."),
        (">>>=>>", "A is better than B at 5 percent for steps 1 to 3, 5 and 6; not distinguishable "
                   "at the others."),
        (">>>", "A is better than B at 5 percent at all 3 steps."),
        ("<<<", "B is better than A at 5 percent at all 3 steps."),
        ("===", "A and B are not distinguishable at 5 percent at any of the 3 steps."),
        ("???", "A and B could not be tested against each other."),
        (">", "A is better than B at 5 percent."),
        ("<", "B is better than A at 5 percent."),
        ("=", "A and B are not distinguishable at 5 percent."),
        (">><", "A is better than B at 5 percent for steps 1 and 2; worse for step 3."),
        (">>=<", "A is better than B at 5 percent for steps 1 and 2; worse for step 4; not "
                 "distinguishable at the others."),
        (">=<<", "B is better than A at 5 percent for steps 3 and 4; worse for step 1; not "
                 "distinguishable at the others."),
        (">>==??", "A is better than B at 5 percent for steps 1 and 2; not distinguishable for "
                   "steps 3 and 4; not tested for steps 5 and 6."),
        (">>?", "A is better than B at 5 percent for steps 1 and 2; not tested for step 3."),
        ("==?", "A and B are not distinguishable at 5 percent for steps 1 and 2; not tested for "
                "step 3."),
        ("<==", "B is better than A at 5 percent for step 1; not distinguishable after."),
    ],
)  # fmt: skip
def test_runs_of_steps(verdicts, sentence):
    together = verdicts if len(verdicts) == 1 else "="
    assert said(table_of(verdicts, together=together))[0] == sentence


def test_a_pair_may_stand_in_either_order():
    table = table_of("<<=", a="B", b="A")
    assert said(table)[0] == (
        "A is better than B at 5 percent for steps 1 and 2; not distinguishable after."
    )


def test_level_is_that_of_the_tests():
    assert said(table_of("="), alpha=0.001)[0].endswith("at 0.1 percent.")
    assert said(table_of(">"), alpha=0.005)[0] == "A and B are not distinguishable at 0.5 percent."


def test_tests_by_step_are_said_not_to_be_adjusted_where_there_are_several():
    assert NOT_ADJUSTED in said(table_of("=>"))
    assert NOT_ADJUSTED not in said(table_of(">"))
    both = "The tests at each step are not adjusted for their number, nor for the 3 pairs."
    assert both in said(three("==="), "ABC")


def three(together, by_step="=="):
    pairs = [("A", "B"), ("A", "C"), ("B", "C")]
    return pd.concat(
        table_of(by_step, a, b, verdict) for (a, b), verdict in zip(pairs, together, strict=True)
    )


def test_one_step_of_several_pairs_is_told_by_adjusted_p_values_only():
    assert said(three("=<?", by_step=">"), "ABC") == [
        "A and B are not distinguishable at 5 percent.",
        "C is better than A at 5 percent.",
        "B and C could not be tested against each other.",
        "p-values have Holm's adjustment for 2 pairs.",
    ]


@pytest.mark.parametrize(
    ("together", "sentence"),
    [
        ("===", "Over all steps together, with Holm's adjustment for 3 pairs, no model is better "
                "than another at 5 percent."),
        (">>=", "Over all steps together, with Holm's adjustment for 3 pairs, A is better than B "
                "and C at 5 percent."),
        (">>>", "Over all steps together, with Holm's adjustment for 3 pairs, A is better than B "
                "and C; B is better than C at 5 percent."),
        ("=><", "Over all steps together, with Holm's adjustment for 3 pairs, A is better than C; "
                "C is better than B at 5 percent."),
    ],
)  # fmt: skip
def test_all_steps_together(together, sentence):
    assert said(three(together), "ABC")[-1] == sentence


def test_all_steps_of_one_pair_need_no_adjustment():
    assert said(table_of("==", together=">"))[-1] == (
        "Over all steps together, A is better than B at 5 percent."
    )
    assert said(table_of("=="))[-1] == (
        "Over all steps together, the two models are not distinguishable at 5 percent."
    )


def test_a_benchmark_restricts_the_pairs():
    found = said(three("=>="), "ABC", benchmark="B")
    assert found == [
        "A and B are not distinguishable at 5 percent at any of the 2 steps.",
        "B and C are not distinguishable at 5 percent at any of the 2 steps.",
        "The tests at each step are not adjusted for their number, nor for the 3 pairs.",
        "Over all steps together, with Holm's adjustment for 3 pairs, none of these pairs is "
        "distinguishable at 5 percent.",
    ]


def test_of_many_models_the_best_is_held_against_each():
    models = "ABCDE"
    pairs = [(a, b) for i, a in enumerate(models) for b in models[i + 1 :]]
    table = pd.concat(table_of("=", a, b) for a, b in pairs)
    found = said(table, models)
    assert found[:4] == [f"A and {b} are not distinguishable at 5 percent." for b in "BCDE"]
    assert len(found) == 5


def test_confidence_set():
    some = pd.DataFrame({"included": [True, True, False]}, index=list("ABC"))
    found = said(three("==="), "ABC", held=some)
    assert found[-1] == "The 95 percent model confidence set holds A and B of 3 models."
    every = some.assign(included=True)
    found = said(three("==="), "ABC", held=every, alpha=0.1)
    assert found[-1] == "The 90 percent model confidence set holds all models: A, B and C."


def test_benchmark_and_superior_predictive_ability():
    ability = pd.DataFrame({"consistent": [0.7, 0.002]}, index=["A", "B"])
    found = said(table_of(">"), benchmark="B", ability=ability)
    assert found[-1] == (
        "Against the benchmark B, some model is better at 5 percent (superior predictive ability, "
        "p = 0.002)."
    )
    found = said(table_of(">"), benchmark="A", ability=ability)
    assert found[-1] == (
        "Against the benchmark A, no model is shown to be better at 5 percent (superior "
        "predictive ability, p = 0.700)."
    )


def test_without_tests_there_is_nothing_to_say():
    assert said(NOTHING) == []


@pytest.mark.parametrize(
    ("models", "sizes", "over", "sentence"),
    [
        ("AB", (20, 12, 1), "time", "A and B are compared over 20 windows of 12 steps, of one "
         "series; the tests take a window as one observation."),
        ("ABC", (1, 1, 25), "series", "A, B and C are compared over 1 window of 1 step, of 25 "
         "series; the tests take a series as one observation."),
        ("ABCDE", (5, 2, 1), None, "5 models are compared over 5 windows of 2 steps, of "
         "one series, without tests of the differences: tests need at least 20 windows or 20 "
         'series; there are 5 and 1; over="time" tests all the same.'),
        ("A", (5, 2, 3), None, "A is measured over 5 windows of 2 steps, of 3 series; there is "
         "no other model to test it against."),
    ],
)  # fmt: skip
def test_the_first_sentence_says_what_was_compared(models, sizes, over, sentence):
    result = compared(models, *sizes)
    assert result.over == over
    assert result.words()[0] == sentence
