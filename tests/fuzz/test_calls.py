"""Odd calls of the public API: answered, or refused with advice, and soon.

TSRNN_FUZZ=3000 asks for as many calls, drawn anew; the outcomes are printed as a table.
"""

import contextlib
import re
import resource
import traceback
import warnings
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from tsrnn.baselines import Naive
from tsrnn.cli import app
from tsrnn.datasets import load_nile

from .asking import ADVICE, PACKAGE, ROOMS, TOTAL, most_memory, print_outcomes, seed_of, watched
from .calls import (
    command_lines,
    contract,
    estimator_subjects,
    forecast_of,
    function_subjects,
    layer_subjects,
)

SECONDS, BYTES = 10, 2**30
OUTCOMES = ("answered", "advised", "opaque", "wrong", "hung", "known")
REFUSALS = (ValueError, TypeError, KeyError, OSError, RuntimeError, FloatingPointError)
# The messages of arguments say what was required of them.
REQUIRED = re.compile(
    r"\b(must|need(s|ed)?|expected|requires?|required|has no|only|no saved model|"
    r"open|write|cannot|is an argument of)\b"
)
TABLE = {}
EXAMPLES = contract()
GROUPS = [*EXAMPLES.EXAMPLES, "functions", "layers"]

# Outcomes that are known and not mended: pattern of "subject(arguments): message", and the reason.
KNOWN = {
    r"no repr": "a message quotes what came, and the repr of this raises",
    r"RecursionError": "a message, or a copy, of a list that contains itself",
    r"^ParaRNN(Regressor|Classifier).*site-packages/sklearn/": (
        "samples are checked by scikit-learn, as those of its own estimators"
    ),
    r"^(?!\S*(Forecaster|Regressor|Classifier)).*DefaultCPUAllocator": (
        "weights of a layer far beyond memory: layers are modules of torch, which says so"
    ),
}


@pytest.fixture(scope="module", autouse=True)
def table():
    """Print the outcomes of all groups."""
    yield
    if TOTAL:
        print_outcomes(TABLE, OUTCOMES)


@contextlib.contextmanager
def bounded():
    """Refuse memory far beyond what the process has, so that an absurd request fails at once."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + 4 * BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def finite(answer):
    """Whether the numbers of an answer are."""
    if isinstance(answer, tuple | list):
        return all(map(finite, answer))
    if isinstance(answer, torch.Tensor):
        return bool(torch.isfinite(answer).all())
    if isinstance(answer, np.ndarray):
        return answer.dtype.kind not in "fc" or bool(np.isfinite(answer).all())
    if isinstance(answer, pd.DataFrame | pd.Series):
        frame = answer.to_frame() if isinstance(answer, pd.Series) else answer
        return bool(np.isfinite(frame.select_dtypes("number").to_numpy(float)).all())
    return True


def says_what_to_do(error):
    """Whether the package raised an error of a usual type that says what was required."""
    last, text = traceback.extract_tb(error.__traceback__)[-1], str(error)
    own = last.filename.startswith(ROOMS) and str(PACKAGE.parent) in last.filename
    told = ADVICE.search(text) or REQUIRED.search(text)
    return own and isinstance(error, REFUSALS) and bool(told) and len(text.split()) >= 5


def state(model, example):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return forecast_of(model, example)


def outcome(subject, arguments, before):
    """The outcome of one call, and what was said."""
    memory = most_memory()
    try:
        with bounded(), watched(SECONDS), warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            answer = subject.call(**arguments)
    except MemoryError as error:
        return "hung", repr(error)
    except AssertionError as error:
        return ("hung" if "no answer" in str(error) else "opaque"), repr(error)
    except Exception as error:
        if before is not None:
            EXAMPLES.assert_same(state(*subject.model), before)
        where = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__}: {str(error)[:300]} ({where.filename}:{where.lineno})"
        return ("advised" if says_what_to_do(error) else "opaque"), said
    finally:
        plt.close("all")
    if most_memory() - memory > BYTES:
        return "hung", "took more than a gigabyte"
    if subject.numbers and not told and not finite(answer):
        return "wrong", "not finite, and no warning"
    return "answered", ""


def subjects_of(group):
    if group == "functions":
        return list(function_subjects(EXAMPLES))
    if group == "layers":
        return list(layer_subjects())
    return list(estimator_subjects(group, EXAMPLES.EXAMPLES[group]))


@pytest.mark.few(
    "functions", "ParaRNNForecaster", "ARMA", "ETS", "GARCH", "VARMA", "DCC", "Croston", "Naive",
    "SARIMAX", "VAR", "Combination", "ParaRNNRegressor", "ParaRNNForecaster, prior",
)  # fmt: skip
@pytest.mark.parametrize("group", GROUPS)
def test_odd_calls_are_answered_or_refused_with_advice(group, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seed = seed_of(group)
    rng, counts, bad = np.random.default_rng(seed), Counter(), []
    weight = 3 if group in ("functions", "layers") else 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        subjects, states = subjects_of(group), {}
    for _ in range(weight * (TOTAL or 400) // (len(GROUPS) + 4) + 1):
        # every third call is of the constructor
        first = 0 if rng.random() < 0.35 else rng.integers(len(subjects))
        name, subject = subjects[first]
        what, arguments = subject.draw(rng)
        if subject.model is not None and not states:
            states["before"] = state(*subject.model)
        try:
            came, said = outcome(subject, arguments, subject.model and states["before"])
        except AssertionError as error:
            came, said = "wrong", f"state changed: {str(error)[:200]}"
        line = f"{name}({what}): {said}"
        if came not in OUTCOMES[:2] and any(re.search(known, line, re.DOTALL) for known in KNOWN):
            counts["known"] += 1
            continue
        counts[came] += 1
        if came not in OUTCOMES[:2]:
            bad.append(f"{came}: {line}")
    TABLE[group] = counts
    assert not bad, f"seed {seed}:\n" + "\n".join(bad)


def test_odd_command_lines_are_answered_or_refused_with_advice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nile = load_nile()
    nile.to_csv("nile.csv")
    Naive().fit(nile).save("naive.tsrnn")
    seed = seed_of("")
    counts, bad = Counter(), []
    rng = np.random.default_rng(seed)
    for line in command_lines(rng, (TOTAL or 400) // 15, "nile.csv", "naive.tsrnn"):
        try:
            with bounded(), watched(SECONDS):
                done = CliRunner().invoke(app, line)
        except AssertionError as error:
            counts["hung"] += 1
            bad.append(f"hung: {line}: {error}")
            continue
        clean = done.exception is None or isinstance(done.exception, SystemExit)
        said = done.exit_code == 0 or len(done.stderr.split()) >= 6
        asked = "--debug" in line  # for the traceback
        came = "advised" if said and (clean or asked) else "opaque"
        came = "answered" if done.exit_code == 0 else came
        counts[came] += 1
        if came == "opaque":
            bad.append(f"opaque: {line}: {done.exception!r}: {done.stderr[-300:]}")
    TABLE["command line"] = counts
    assert not bad, f"seed {seed}:\n" + "\n".join(bad)
