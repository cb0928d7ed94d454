"""Files that were changed and given a right checksum: answered, or refused with advice, and soon.

TSRNN_FUZZ=20000 asks for as many files, drawn anew; the outcomes are printed as a table.
"""

import io
import traceback
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier, is_regressor

from tsrnn import load
from tsrnn.contract import DamagedFileError

from .asking import ADVICE, PACKAGE, ROOMS, TOTAL, most_memory, print_outcomes, seed_of, watched
from .forged import Forger, makers

FILES = (TOTAL or 600) // 29 + 1  # of each model
SECONDS, LONGER, BYTES = 2, 10, 2**28  # to load, to answer, and more memory than before
OUTCOMES = ("answered", "advised", "opaque", "wrong", "hung")
TABLE = {}
MONTHS = pd.date_range("2015-01-01", "2022-01-01", freq="MS")
AHEAD = pd.concat(
    [pd.DataFrame({"unique_id": name, "ds": MONTHS, "x": 0.5}) for name in "ab"], ignore_index=True
)


@pytest.fixture(scope="module", autouse=True)
def table():
    """Print the outcomes of all models."""
    yield
    if TOTAL:
        print_outcomes(TABLE, OUTCOMES)


@pytest.fixture(scope="module")
def made():
    return makers()


def questions(model):
    """Yield what is asked of a model that was loaded, one answer after the other."""
    if is_regressor(model) or is_classifier(model):
        yield model.predict(np.random.default_rng(2).normal(size=(3, 5, 2)))
    elif model.known_ahead_:
        yield model.predict(h=2, X_future=AHEAD)
    else:
        yield model.predict()
        yield model.predict(h=2, level=80)
    str(model.summary())
    model.save(io.BytesIO())


def same(first, second):
    """Whether answers are equal, NaN included."""
    if len(first) != len(second):
        return False
    pairs = zip(first, second, strict=True)
    return all(a.equals(b) if hasattr(a, "equals") else np.array_equal(a, b) for a, b in pairs)


def says_what_to_do(error):
    """Whether the package itself raised an error, with advice."""
    frames = traceback.extract_tb(error.__traceback__)
    own = frames[-1].filename.startswith(ROOMS) and str(PACKAGE) in frames[-1].filename
    told = isinstance(error, ValueError | TypeError | FloatingPointError) and (
        ADVICE.search(str(error)) or "must have the shape of the data fitted to" in str(error)
    )
    return own and bool(told) and len(str(error).split()) >= 7


def outcome(content, before, may_differ):
    """Load bytes and ask; the outcome, and what was said."""
    memory = most_memory()
    try:
        with watched(SECONDS):
            model = load(io.BytesIO(content))
    except DamagedFileError as error:
        told = str(error)
        named = len(told.split()) >= 7 and len(told) < 4000 and ADVICE.search(told)
        grown = most_memory() - memory > BYTES
        return ("hung" if grown else "advised" if named else "opaque"), told
    except AssertionError as error:
        return ("hung" if "no answer" in str(error) else "opaque"), repr(error)
    except Exception as error:
        return "opaque", f"{type(error).__name__}: {error}"
    try:
        with watched(LONGER):
            answers = list(questions(model))
    except AssertionError as error:
        return ("hung" if "no answer" in str(error) else "opaque"), repr(error)
    except Exception as error:
        kind = "advised" if says_what_to_do(error) else "opaque"
        return kind, f"{type(error).__name__}: {error}"
    if most_memory() - memory > BYTES:
        return "hung", "took too much memory"
    return ("answered" if may_differ or same(answers, before) else "wrong"), ""


@pytest.mark.few
@pytest.mark.parametrize("name", list(makers()))
def test_forged_files_are_answered_or_refused_with_advice(name, made):
    file = io.BytesIO()
    seed = seed_of(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = made[name]()
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        model.save(file)
        file.seek(0)
        before = list(questions(load(file)))
        forger, counts, bad = Forger(file, np.random.default_rng(seed)), Counter(), []
        for _ in range(FILES):
            kind, what, content = forger.draw()
            came, told = outcome(content, before, kind not in Forger.same)
            counts[came] += 1
            if came not in OUTCOMES[:2]:
                bad.append(f"{came}: {kind}, {what}: {told[:300]}")
    TABLE[name] = counts
    assert not bad, f"seed {seed}:\n" + "\n".join(bad[:20])
    assert counts["advised"] > FILES / 4
