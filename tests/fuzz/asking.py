"""Asking the package: every call answers, or refuses in its own words, and soon."""

import contextlib
import os
import re
import signal
import threading
import traceback
import warnings
import zlib
from pathlib import Path

import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import tsrnn
from tsrnn.contract import IntervalWarning
from tsrnn.data import MissingValuesWarning

SECONDS, BYTES = 20, 2**30
TOTAL = int(os.environ.get("TSRNN_FUZZ", 0))  # cases drawn anew; 0 for the same few
PACKAGE = Path(tsrnn.__file__).parent
ROOMS = tuple(str(PACKAGE.parent / room) for room in ("tsrnn", "kernels", "datasets"))
REFUSALS = (ValueError, TypeError, NotFittedError)
# Verbs and words with which messages say what to do, or what was required.
ADVICE = re.compile(
    r"\b(add|aggregate|apply|call|change|check|choose|construct|convert|divide|drop|encode|fill|fit|give|"
    r"insert|install|join|leave|make|multiply|name|number|pass|read|reindex|rename|replace|resample|save|shorten|"
    r"sort|split|subtract|take|use)\b",
    re.IGNORECASE,
)


# Labels as code writes them: numpy's numbers, and classes of other libraries that are called.
CODE = re.compile(
    r"\b(np|numpy)\.|<class |(?<![.\w])(Timestamp|Timedelta|Period|Interval|Decimal|array|dtype|"
    r"datetime\.\w+|DataFrame|Series|\w*Index|Categorical\w*)\(|'(pandas|polars|narwhals)\."
)


def seed_of(name):
    """Return the seed of a group of cases: that of its name, or another one each time."""
    return int.from_bytes(os.urandom(4), "little") if TOTAL else zlib.crc32(name.encode())


def print_outcomes(table, outcomes):
    """Print counts of outcomes by group, and their sums."""
    if table:
        frame = pd.DataFrame(table, index=outcomes).T.fillna(0).astype(int)
        print(f"\n{pd.concat([frame, frame.sum().rename('all').to_frame().T])}")


class RefusalError(Exception):
    """What the package refused, in words that were checked."""


@contextlib.contextmanager
def watched(seconds=SECONDS):
    """Fail what takes more seconds of the processor; without signals, nothing is watched."""
    if not hasattr(signal, "SIGPROF") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_):
        raise AssertionError(f"no answer within {seconds} seconds of the processor")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def most_memory():
    """Largest memory of the process so far in bytes; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def ask(call, *args, **kwargs):
    """The answer and what the user was warned of; `RefusalError` if the package refuses."""
    before = most_memory()
    with watched(), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            answer = call(*args, **kwargs)
        except AssertionError:
            raise
        except Exception as error:
            check_refusal(error)
            raise RefusalError(f"{type(error).__name__}: {error}") from error
    assert most_memory() < before + BYTES, "took more than a gigabyte"
    for warning in told:
        if warning.category not in (UserWarning, IntervalWarning, MissingValuesWarning):
            where = f"{warning.filename}:{warning.lineno}"
            pytest.fail(f"{warning.category.__name__} at {where}: {warning.message}")
    texts = [str(warning.message) for warning in told]
    for text in texts:
        check_words(text)
    return answer, texts


def check_refusal(error):
    """The package itself raised it, saying what was wrong and what to do."""
    frames = traceback.extract_tb(error.__traceback__)
    own = frames[-1].filename.startswith(ROOMS) and str(frames[-1].line).startswith("raise ")
    failed = type(error) is RuntimeError and re.search(
        "^all models failed|series have no forecast", str(error)
    )
    if not own or not (failed or type(error) in REFUSALS):
        raise AssertionError(f"not in the package's words: {error!r}") from error
    text = str(error)
    if len(text.split()) < 7 or not ADVICE.search(text):
        raise AssertionError(f"says not what to do: {text}") from error
    check_words(text)


def check_words(text):
    """Labels are shown as they are read, not as Python's code for them."""
    found = CODE.search(text)
    if found:
        raise AssertionError(f"shows the code {found[0]!r}: {text}")
