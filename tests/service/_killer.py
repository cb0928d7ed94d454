"""Runs the service of the example in forked children and kills them; prints what is left.

    python _killer.py FOLDER [PLAN MODEL STREAM MOST] ...

Plans: `everywhere`, a fresh database for each event at which a child can die; `planned`, one
database and children that die at drawn events; `timed`, at drawn times. The children are forks of
a process with one thread that has imported everything, so that a kill costs milliseconds.
"""

import json
import os
import random
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import _service

KILLS = 20
EVERY = 25  # instructions of SQLite's machine from one event to the next


class Fuse:
    """Counts events; at a given one the process dies as if the power of the process were cut."""

    def __init__(self, last=None):
        self.count, self.last = 0, last

    def __call__(self, *_):
        self.count += 1
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)

    def connect(self, *args, **settings):
        """A connection whose statements, and the inner steps of these, are events."""
        db = CONNECT(*args, **settings)
        db.set_trace_callback(self)
        db.set_progress_handler(self, EVERY)
        return db

    def around(self, function):
        """A function whose beginning and end are events."""

        def wrapped(*args):
            self()
            result = function(*args)
            self()
            return result

        return wrapped


CONNECT = sqlite3.connect


def serve(arguments, fuse):
    """Run the service to the end of the stream; events burn the fuse."""
    service = _service.Service
    with (
        mock.patch.object(_service.sqlite3, "connect", fuse.connect),
        mock.patch.object(_service, "row_of", fuse.around(_service.row_of)),
        mock.patch.object(service, "_forecasts_after", fuse.around(service._forecasts_after)),
        mock.patch.object(service, "_commit", fuse.around(service._commit)),
    ):
        running = service(**arguments)
        while running.step():
            fuse()
        running.db.close()


def forked(arguments, last=None, seconds=None):
    """Events of a child that came to its end, or None where it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        fuse, status = Fuse(last), 1
        try:
            serve(arguments, fuse)
            os.write(writing, str(fuse.count).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return None
    assert status == 0, "the service failed by itself"
    return int(said)


def tables(db):
    """The tables, floating-point numbers digit by digit; of the forecaster its checksum."""
    with closing(sqlite3.connect(db)) as opened:
        assert opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        found = {
            name: [
                list(map(repr, row))
                for row in opened.execute(f"SELECT * FROM {name} ORDER BY 1, 2, 3")
            ]
            for name in ("forecasts", "rejected")
        }
        offset, state = opened.execute("SELECT offset, forecaster FROM service").fetchone()
    size = int.from_bytes(state[:8], "little")
    return found | {"offset": offset, "state": json.loads(state[8 : 8 + size])["__metadata__"]}


def report(plan, model, stream, most, folder):
    """Follow a plan: how many were killed, and the different ends that there were."""
    draws, kills, ends = random.Random(0), 0, []
    arguments = {"model": model, "stream": stream, "h": 3, "most": int(most)}

    def at(name):
        return arguments | {"db": f"{folder}/{name}.sqlite"}

    serve(at("warm"), Fuse())  # so that children need not import and compile
    began = time.perf_counter()
    n_events = forked(at("undisturbed"))
    seconds = time.perf_counter() - began
    ends.append(tables(at("undisturbed")["db"]))
    if plan == "everywhere":
        for last in range(1, n_events + 1):
            kills += forked(at(last), last=last) is None
            forked(at(last))
            ends.append(tables(at(last)["db"]))
    else:
        while kills < KILLS:
            name = f"{plan}{len(ends)}"  # a new database when one is through
            ended = False
            while kills < KILLS and not ended:
                if plan == "planned":
                    ended = forked(at(name), last=draws.randint(1, n_events // 4)) is not None
                else:
                    ended = forked(at(name), seconds=draws.uniform(0, seconds / 4)) is not None
                kills += not ended
            forked(at(name))
            ends.append(tables(at(name)["db"]))
    different = [end for i, end in enumerate(ends) if end not in ends[:i]]
    return {"events": n_events, "kills": kills, "ends": different}


def main(folder, *arguments):
    """Print the reports of plans, each of four arguments, in a folder of its own."""
    reports = []
    for i in range(0, len(arguments), 4):
        place = Path(folder, f"plan{i // 4}")
        place.mkdir()
        reports.append(report(*arguments[i : i + 4], place))
    print(json.dumps(reports))


if __name__ == "__main__":
    main(*sys.argv[1:])
