"""What the tests found, in sentences."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tsrnn.evaluation._diebold_mariano import ALL
from tsrnn.evaluation._forecasts import shown

ALL_PAIRS = 4  # models up to which every pair has its sentence
BETTER, WORSE, SAME, UNTESTED = "better", "worse", "same", "untested"


def scope(
    models: list[str], n_windows: int, horizon: int, n_series: int, over: str | None, why: str
) -> str:
    """Sentence that says what is compared, and what the tests rest on or why there are none.

    Parameters
    ----------
    models : list of str
    n_windows : int
        At different times.
    horizon, n_series : int
    over : {"time", "series"} or None
    why : str
        Why there are no tests.
    """
    who = _listed(models) if len(models) <= ALL_PAIRS else f"{len(models)} models"
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
    """Sentence on the series that are not compared, if there are any.

    Parameters
    ----------
    table : DataFrame
        Columns ``unique_id, error``, a row a series.
    """
    if not len(table):
        return []
    first = str(table["error"].iloc[0]).removesuffix(".")
    lead = f"{len(table)} series set aside: {shown(table['unique_id'])}"
    which = "" if len(table) == 1 else " for the first"
    return [f"{lead}. The reason{which}: {first}."]


def sentences(
    tests: pd.DataFrame,
    confidence_set: pd.DataFrame,
    ability: pd.DataFrame,
    models: list[str],
    alpha: float,
    benchmark: str | None,
) -> list[str]:
    """Sentences for a report on tests of equal accuracy and the model confidence set.

    Parameters
    ----------
    tests : DataFrame
        As `diebold_mariano` gives it.
    confidence_set, ability : DataFrame
        As `confidence_set` and `superior_predictive_ability` give them.
    models : list of str
        The most accurate first.
    alpha : float
    benchmark : str or None
        Speak of pairs with this model only. Without, of all pairs of up to four models, else of
        the most accurate and each other.
    """
    said = _of_tests(tests, _pairs(models, benchmark), alpha) if len(tests) else []
    if len(confidence_set):
        said.append(_of_set(confidence_set, alpha))
    if benchmark is not None and len(ability):
        said += _of_ability(ability, benchmark, alpha)
    return said


def _of_tests(tests: pd.DataFrame, pairs: list[tuple[str, str]], alpha: float) -> list[str]:
    """Sentences on pairs: of one step by adjusted p-values, else by step and over all steps."""
    m = int(tests.loc[tests["step"] == ALL, "p_value"].notna().sum())
    if (tests["step"] != ALL).sum() == (tests["step"] == ALL).sum():
        said = [_of_one_step(tests, a, b, alpha) for a, b in pairs]
        return said + [f"p-values have Holm's adjustment for {m} pairs."] * (m > 1)
    said = [_by_step(tests, a, b, alpha) for a, b in pairs]
    also = f", nor for the {m} pairs" if m > 1 else ""
    said.append(f"The tests at each step are not adjusted for their number{also}.")
    return said + _over_all(tests, pairs, m, alpha)


def _of_one_step(tests: pd.DataFrame, a: str, b: str, alpha: float) -> str:
    """One sentence on a pair, by its adjusted p-value."""
    rows = _of_pair(tests[tests["step"] == ALL], a, b)
    (verdict,) = _verdicts(rows, alpha, "p_adjusted")
    if verdict == WORSE:
        a, b, verdict = b, a, BETTER
    return _sentence(a, b, [1], [verdict], alpha)


def _pairs(models: list[str], benchmark: str | None) -> list[tuple[str, str]]:
    """Pairs to speak of, the more accurate model first."""
    pairs = [(a, b) for i, a in enumerate(models) for b in models[i + 1 :]]
    if benchmark is not None:
        return [pair for pair in pairs if benchmark in pair]
    return pairs if len(models) <= ALL_PAIRS else [pair for pair in pairs if models[0] in pair]


def _of_pair(tests: pd.DataFrame, a: str, b: str) -> pd.DataFrame:
    """Tests of a pair with the sign as of a against b."""
    there = tests[(tests["model_a"] == a) & (tests["model_b"] == b)]
    if len(there):
        return there
    back = tests[(tests["model_a"] == b) & (tests["model_b"] == a)]
    return back.assign(mean_difference=-back["mean_difference"])


def _verdicts(tests: pd.DataFrame, alpha: float, column: str = "p_value") -> list[str]:
    """For each row whether the first model is better, worse or neither."""
    p_value, difference = tests[column].to_numpy(float), tests["mean_difference"].to_numpy(float)
    found = np.where(p_value < alpha, np.where(difference < 0, BETTER, WORSE), SAME)
    return list(np.where(np.isnan(p_value), UNTESTED, found))


def _by_step(tests: pd.DataFrame, a: str, b: str, alpha: float) -> str:
    """One sentence on a pair, by step."""
    rows = _of_pair(tests, a, b)
    rows = rows[rows["step"] != ALL].sort_values("step", key=lambda steps: steps.astype(int))
    verdicts = _verdicts(rows, alpha)
    if verdicts.count(WORSE) > verdicts.count(BETTER):
        a, b = b, a
        turned = {BETTER: WORSE, WORSE: BETTER}
        verdicts = [turned.get(verdict, verdict) for verdict in verdicts]
    steps = rows["step"].astype(int).tolist()
    return _sentence(a, b, steps, verdicts, alpha)


def _sentence(a: str, b: str, steps: list[int], verdicts: list[str], alpha: float) -> str:
    level, one = f"at {100 * alpha:g} percent", len(steps) == 1
    kinds = set(verdicts)
    if kinds == {UNTESTED}:
        return f"{a} and {b} could not be tested against each other."
    if kinds == {SAME}:
        where = "" if one else f" at any of the {len(steps)} steps"
        return f"{a} and {b} are not distinguishable {level}{where}."
    if kinds == {BETTER}:
        return f"{a} is better than {b} {level}" + ("." if one else f" at all {len(steps)} steps.")
    parts = []
    if BETTER in kinds:
        parts.append(f"{a} is better than {b} {level} for {_runs(steps, verdicts, BETTER)}")
        if WORSE in kinds:
            parts.append(f"worse for {_runs(steps, verdicts, WORSE)}")
    if SAME in kinds:
        named = "" if BETTER in kinds else f"{a} and {b} are "
        tail = "" if BETTER in kinds else f" {level}"
        parts.append(f"{named}not distinguishable{tail} {_elsewhere(steps, verdicts)}")
    if UNTESTED in kinds:
        parts.append(f"not tested for {_runs(steps, verdicts, UNTESTED)}")
    return "; ".join(parts) + "."


def _elsewhere(steps: list[int], verdicts: list[str]) -> str:
    """Where models are not distinguishable: after, before or between the other steps."""
    here = [verdict == SAME for verdict in verdicts]
    if UNTESTED in verdicts:
        return f"for {_runs(steps, verdicts, SAME)}"
    if all(here[here.index(True) :]):
        return "after"
    if not any(here[here.index(False) :]):
        return "before"
    return "at the others"


def _runs(steps: list[int], verdicts: list[str], kind: str) -> str:
    """Steps of a kind as runs: "steps 1 to 3, 5 and 8 to 12"."""
    chosen = [step for step, verdict in zip(steps, verdicts, strict=True) if verdict == kind]
    runs: list[list[int]] = []
    for step in chosen:
        if runs and step == runs[-1][-1] + 1:
            runs[-1].append(step)
        else:
            runs.append([step])
    texts = [text for run in runs for text in _run(run)]
    return f"step{'s' if len(chosen) > 1 else ''} {_listed(texts)}"


def _run(run: list[int]) -> list[str]:
    """One text for three steps or more."""
    return [f"{run[0]} to {run[-1]}"] if len(run) > 2 else list(map(str, run))


def _listed(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _over_all(tests: pd.DataFrame, pairs: list[tuple[str, str]], m: int, alpha: float) -> list[str]:
    """Sentences on all steps together, adjusted for the number of pairs."""
    together = tests[tests["step"] == ALL]
    adjusted = f", with Holm's adjustment for {m} pairs" if m > 1 else ""
    beaten: dict[str, list[str]] = {}
    for a, b in pairs:
        (verdict,) = _verdicts(_of_pair(together, a, b), alpha, "p_adjusted")
        if verdict in (BETTER, WORSE):
            better, worse = (a, b) if verdict == BETTER else (b, a)
            beaten.setdefault(better, []).append(worse)
    if not m:
        return []
    lead = f"Over all steps together{adjusted},"
    if not beaten:
        who = "no model is better than another"
        if m == 1:
            who = "the two models are not distinguishable"
        elif len(pairs) < m:
            who = "none of these pairs is distinguishable"
        return [f"{lead} {who} at {100 * alpha:g} percent."]
    won = [f"{better} is better than {_listed(worse)}" for better, worse in beaten.items()]
    return [f"{lead} {'; '.join(won)} at {100 * alpha:g} percent."]


def _of_set(table: pd.DataFrame, alpha: float) -> str:
    held = table.index[table["included"]].tolist()
    level = f"{100 * (1 - alpha):g} percent model confidence set"
    if len(held) == len(table):
        return f"The {level} holds all models: {_listed(held)}."
    return f"The {level} holds {_listed(held)} of {len(table)} models."


def _of_ability(ability: pd.DataFrame, benchmark: str, alpha: float) -> list[str]:
    p_value = float(ability.loc[benchmark, "consistent"])  # type: ignore[arg-type]
    if np.isnan(p_value):
        return []
    found = "some model is" if p_value < alpha else "no model is shown to be"
    return [
        f"Against the benchmark {benchmark}, {found} better at {100 * alpha:g} percent (superior "
        f"predictive ability, p = {p_value:.3f})."
    ]
