"""Results of the tests in sentences."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tsrnn.evaluation._forecasts import list_names
from tsrnn.evaluation._tests import ALL

ALL_PAIRS = 4  # models up to which every pair has its sentence
BETTER, WORSE, SAME, UNTESTED = "better", "worse", "same", "untested"


def scope(
    models: list[str], n_windows: int, horizon: int, n_series: int, over: str | None, why: str
) -> str:
    """Say what is compared and what tests count as one observation, or `why` there are none."""
    who = _enumerate(models) if len(models) <= ALL_PAIRS else f"{len(models)} models"
    verb = "is measured" if len(models) == 1 else "are compared"
    sizes = ((n_windows, "window"), (horizon, "step"))
    counts = [f"{n} {noun}{'s' * (n > 1)}" for n, noun in sizes]
    of = "one series" if n_series == 1 else f"{n_series} series"
    lead = f"{who} {verb} over {' of '.join(counts)}, of {of}"
    if len(models) == 1:
        return f"{lead}; there is no other model to test it against."
    if over is None:
        return f"{lead}, without tests of the differences: {why}."
    counted = "a window" if over == "time" else "a series"
    return f"{lead}; the tests take {counted} as one observation."


def set_aside(table: pd.DataFrame) -> list[str]:
    """Name the series that are not compared; `table` has a row per series."""
    if not len(table):
        return []
    first = str(table["error"].iloc[0]).removesuffix(".")
    lead = f"{len(table)} series set aside: {list_names(table['unique_id'])}"
    return [f"{lead}. The reason{' for the first' * (len(table) > 1)}: {first}."]


def sentences(
    tests: pd.DataFrame,
    confidence_set: pd.DataFrame,
    ability: pd.DataFrame,
    models: list[str],
    alpha: float,
    benchmark: str | None,
) -> list[str]:
    """Sentences for a report on tests of equal accuracy and the model confidence set.

    With a benchmark they report its pairs only; else all pairs of up to four models, or the pairs
    of the most accurate model. `models` has the most accurate first.
    """
    texts = []
    if len(tests):
        pairs = [(a, b) for i, a in enumerate(models) for b in models[i + 1 :]]
        if benchmark is not None or len(models) > ALL_PAIRS:
            pairs = [pair for pair in pairs if (benchmark or models[0]) in pair]
        texts += _on_tests(tests, pairs, alpha)
    level = f"{100 * alpha:g} percent"
    if len(confidence_set):
        members = confidence_set.index[confidence_set["included"]].tolist()
        lead = f"The {100 * (1 - alpha):g} percent model confidence set holds"
        if len(members) == len(confidence_set):
            texts.append(f"{lead} all models: {_enumerate(members)}.")
        else:
            texts.append(f"{lead} {_enumerate(members)} of {len(confidence_set)} models.")
    if benchmark is not None and len(ability):
        p_value = float(ability.loc[benchmark, "consistent"])  # type: ignore[arg-type]
        if not np.isnan(p_value):
            verdict = "some model is" if p_value < alpha else "no model is shown to be"
            texts.append(
                f"Against the benchmark {benchmark}, {verdict} better at {level} (superior "
                f"predictive ability, p = {p_value:.3f})."
            )
    return texts


def _on_tests(tests: pd.DataFrame, pairs: list[tuple[str, str]], alpha: float) -> list[str]:
    """Report pairs: by adjusted p-values if there is one step, else by step and over all."""
    together = tests[tests["step"] == ALL]
    m = int(together["p_value"].notna().sum())
    if len(tests) == 2 * len(together):  # the one step, and all steps, which are the same
        texts = [_on_pair(together, a, b, "p_adjusted", alpha) for a, b in pairs]
        return texts + [f"p-values have Holm's adjustment for {m} pairs."] * (m > 1)
    by_step = tests[tests["step"] != ALL].sort_values(
        "step", key=lambda steps: steps.astype(int), kind="stable"
    )
    texts = [_on_pair(by_step, a, b, "p_value", alpha) for a, b in pairs]
    also = f", nor for the {m} pairs" if m > 1 else ""
    texts.append(f"The tests at each step are not adjusted for their number{also}.")
    return texts + _on_all_steps(together, pairs, m, alpha)


def _on_pair(tests: pd.DataFrame, a: str, b: str, column: str, alpha: float) -> str:
    """Sentence on a pair by step, led by the model that is better at more steps."""
    verdicts = _verdicts(tests, a, b, column, alpha)
    if verdicts.count(WORSE) > verdicts.count(BETTER):
        a, b = b, a
        opposite = {BETTER: WORSE, WORSE: BETTER}
        verdicts = [opposite.get(verdict, verdict) for verdict in verdicts]
    level, n, kinds = f"at {100 * alpha:g} percent", len(verdicts), set(verdicts)
    if kinds == {UNTESTED}:
        return f"{a} and {b} could not be tested against each other."
    if kinds == {SAME}:
        where = "" if n == 1 else f" at any of the {n} steps"
        return f"{a} and {b} are not distinguishable {level}{where}."
    if kinds == {BETTER}:
        return f"{a} is better than {b} {level}" + ("." if n == 1 else f" at all {n} steps.")
    parts = []
    if BETTER in kinds:
        parts.append(f"{a} is better than {b} {level} for {_runs(verdicts, BETTER)}")
        if WORSE in kinds:
            parts.append(f"worse for {_runs(verdicts, WORSE)}")
    if SAME in kinds and BETTER in kinds:
        parts.append(f"not distinguishable {_elsewhere(verdicts)}")
    elif SAME in kinds:
        parts.append(f"{a} and {b} are not distinguishable {level} {_elsewhere(verdicts)}")
    if UNTESTED in kinds:
        parts.append(f"not tested for {_runs(verdicts, UNTESTED)}")
    return "; ".join(parts) + "."


def _verdicts(tests: pd.DataFrame, a: str, b: str, column: str, alpha: float) -> list[str]:
    """Verdict of each test of a against b: better, worse, same or untested."""
    forward = (tests["model_a"] == a) & (tests["model_b"] == b)
    backward = (tests["model_a"] == b) & (tests["model_b"] == a)
    rows, sign = (tests[forward], 1) if forward.any() else (tests[backward], -1)
    p_value, difference = (rows[name].to_numpy(float) for name in (column, "mean_difference"))
    verdicts = np.where(p_value < alpha, np.where(sign * difference < 0, BETTER, WORSE), SAME)
    return list(np.where(np.isnan(p_value), UNTESTED, verdicts))


def _elsewhere(verdicts: list[str]) -> str:
    """Place where models are not distinguishable: after, before or between the other steps."""
    here = [verdict == SAME for verdict in verdicts]
    if UNTESTED in verdicts:
        return f"for {_runs(verdicts, SAME)}"
    if all(here[here.index(True) :]):
        return "after"
    if not any(here[here.index(False) :]):
        return "before"
    return "at the others"


def _runs(verdicts: list[str], kind: str) -> str:
    """Steps of a kind as runs: "steps 1 to 3, 5 and 8 to 12"."""
    runs: list[list[int]] = []
    for step, verdict in enumerate(verdicts, 1):
        if verdict == kind:
            if runs and step == runs[-1][-1] + 1:
                runs[-1].append(step)
            else:
                runs.append([step])
    texts: list[str] = []
    for run in runs:
        texts += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run)
    return f"step{'s' if verdicts.count(kind) > 1 else ''} {_enumerate(texts)}"


def _enumerate(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _on_all_steps(
    together: pd.DataFrame, pairs: list[tuple[str, str]], m: int, alpha: float
) -> list[str]:
    """Sentence on all steps together, adjusted for the number of pairs."""
    if not m:
        return []
    beaten: dict[str, list[str]] = {}
    for a, b in pairs:
        (verdict,) = _verdicts(together, a, b, "p_adjusted", alpha)
        if verdict in (BETTER, WORSE):
            better, worse = (a, b) if verdict == BETTER else (b, a)
            beaten.setdefault(better, []).append(worse)
    adjusted = f", with Holm's adjustment for {m} pairs" if m > 1 else ""
    if beaten:
        result = "; ".join(f"{a} is better than {_enumerate(b)}" for a, b in beaten.items())
    elif m == 1:
        result = "the two models are not distinguishable"
    elif len(pairs) < m:
        result = "none of these pairs is distinguishable"
    else:
        result = "no model is better than another"
    return [f"Over all steps together{adjusted}, {result} at {100 * alpha:g} percent."]
