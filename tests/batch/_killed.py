"""Run `forecast_batches` again and again in children that are killed, until it is finished.

    python _killed.py SOURCE OUT KILLS SEED

Half of the children are killed after a random time, half of them at a random call that writes,
synchronises or renames a file. The parent imports what is slow, so that a child begins at once.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

from tsrnn import ARMA, batch

LONGEST = 0.3  # seconds before a child is killed: a fifth of what the whole run takes


def main(source, out, kills, seed):
    """Print how many children were killed, how often at a file, and how many finished."""
    draw = random.Random(seed)
    killed, at_files, finished = 0, 0, 0
    while not finished:
        planned = draw.randrange(1, 12) if draw.random() < 0.5 and killed < kills else 0
        child = os.fork()
        if child == 0:
            run(source, out, planned)
        if killed < kills and not planned:
            time.sleep(draw.uniform(0.05, LONGEST))
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status):
            killed, at_files = killed + 1, at_files + bool(planned)
        elif os.waitstatus_to_exitcode(status) == 0:
            finished += 1
        else:
            sys.exit(1)
    print(killed, at_files, finished)


def run(source, out, planned):
    """Be the child: forecast, and if it is planned die at that event."""
    if planned:
        die_at_event(planned)
    model = ARMA(order=(1, 0), horizon=3, missing="error")
    try:
        batch.forecast_batches(source, model, level=80, out=out, rows_per_batch=80)
    except BaseException as error:
        print(repr(error), file=sys.stderr)
        os._exit(1)
    os._exit(0)


def die_at_event(number):
    """Die before or after the n-th of the calls that write a file."""
    left = [number]

    def dying(function):
        def call(*arguments, **options):
            left[0] -= 1
            if left[0] == 0 and number % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            result = function(*arguments, **options)
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    os.fsync = dying(os.fsync)
    Path.replace = dying(Path.replace)
    Path.unlink = dying(Path.unlink)
    Path.mkdir = dying(Path.mkdir)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
