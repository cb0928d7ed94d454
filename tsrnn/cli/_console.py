"""Output of a command: its answer on stdout, everything else on stderr; exit codes."""

from __future__ import annotations

import errno
import functools
import inspect
import io
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from contextvars import ContextVar
from typing import Any

import typer

from tsrnn.cli._flags import in_flags
from tsrnn.cli._options import Debug, Quiet

FAILED, INTERRUPTED = 1, 130
EXPLAINED = ValueError, TypeError, OSError, ImportError, RuntimeError  # the message is enough
# Notes and warnings printed so far by the running command.
_SENTENCES: ContextVar[set[str]] = ContextVar("sentences", default=set())  # noqa: B039
CLOSED = errno.EPIPE, errno.EINVAL  # the second on Windows


def command(work: Callable[..., str]) -> Callable[..., None]:
    """Make a command from a function that returns its answer for stdout.

    The command also has ``--quiet`` and ``--debug``. Prints of the function or a library go to
    stderr; errors become one message and an exit code.
    """

    @functools.wraps(work)
    def run(*, quiet: bool, debug: bool, **options: Any) -> None:
        try:
            with _everything_on_stderr(quiet):
                answer = work(**options)
            _write(answer)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception as error:
            if debug:
                traceback.print_exc()
            message = str(error)
            if not (isinstance(error, EXPLAINED) and message):
                message = f"{type(error).__name__}: {error}. --debug shows where"
            print(f"error: {in_flags(message)}", file=sys.stderr)
            raise typer.Exit(FAILED) from None

    signature = inspect.signature(work, eval_str=True)
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        for name, kind in (("quiet", Quiet), ("debug", Debug))
    ]
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), *more], return_annotation=None
    )
    run.__annotations__ = {}  # all are in the signature
    return run


def say(message: str) -> None:
    """Print a message that is not the answer."""
    print(in_flags(message), file=sys.stderr)


def note(sentence: str) -> None:
    """Print a sentence on how data are read, unless a note or a warning has said it."""
    if _is_new(sentence):
        say(f"note: {sentence}")


def verbosity() -> int:
    """Return `verbose` for models: a progress bar if stderr is a terminal."""
    return int(sys.stderr.isatty())


@contextmanager
def _everything_on_stderr(quiet: bool) -> Iterator[None]:
    """Send prints, warnings and progress to stderr, or nowhere if `quiet`."""
    _SENTENCES.set(set())
    with warnings.catch_warnings(), redirect_stderr(io.StringIO() if quiet else sys.stderr):
        warnings.showwarning = _show_warning
        with redirect_stdout(sys.stderr):
            yield


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    if _is_new(str(message)):
        say(f"warning: {message}")


def _is_new(sentence: str) -> bool:
    """Return True if the command has not printed a sentence yet, nor a longer one."""
    sentences, sentence = _SENTENCES.get(), sentence.rstrip(".")
    if any(before.startswith(sentence) for before in sentences):
        return False
    sentences.add(sentence)
    return True


def _write(answer: str) -> None:
    """Write to stdout, whose reader may have stopped, as ``head`` does."""
    try:
        sys.stdout.write(answer)
        sys.stdout.flush()
    except OSError as error:
        if error.errno not in CLOSED:
            raise
        # The rest of the buffer would raise once more when the interpreter closes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
