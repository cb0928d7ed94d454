"""Fit every estimator, then again in children that are forked, with two threads of torch.

Prints the names of the examples that forecast in a child as in the parent, after the kind of its
fork: Python's, or the system's own, of which the package knows afterwards only. What does not
return there ends the child with a traceback, below the name.
"""

import ctypes
import faulthandler
import os
import sys

import numpy as np
import torch
from conftest import EXAMPLES, forecast

LONGEST = 60  # seconds of one fit and its forecasts
FEW = ("ETS", "ParaRNNForecaster")  # one that is solved by torch, one that is trained


def main():
    """Fit in three processes."""
    torch.set_num_threads(2)
    before = n_threads()
    use_all_threads()
    assert n_threads() > before, "torch has begun no thread"
    expected = {name: fit_and_forecast(name) for name in EXAMPLES}
    for kind, fork in (("python", os.fork), ("system", ctypes.PyDLL(None).fork)):
        use_all_threads()
        if child := fork():
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if status:
                sys.exit(status)
        elif kind == "python":
            check_child(kind, expected, n_torch=2)
        else:
            ctypes.pythonapi.PyOS_AfterFork_Child()  # called by servers that fork by themselves
            check_child(kind, {name: expected[name] for name in FEW}, n_torch=1)


def check_child(kind, expected, n_torch):
    """Fit again, compare the forecasts and end this process."""
    print(kind, file=sys.stderr, flush=True)
    faulthandler.dump_traceback_later(LONGEST, exit=True)
    assert torch.get_num_threads() == n_torch
    use_all_threads()
    for name, values in expected.items():
        print(name, file=sys.stderr, flush=True)
        faulthandler.dump_traceback_later(LONGEST, exit=True)
        np.testing.assert_allclose(fit_and_forecast(name), values, rtol=1e-6, err_msg=name)
        print(kind, name, flush=True)
    sys.exit()


def use_all_threads():
    """Multiply matrices, as a user's own code may."""
    torch.ones(300, 300) @ torch.ones(300, 300)


def n_threads():
    """Return the number of threads of this process, Python's and others."""
    return len(os.listdir("/proc/self/task"))


def fit_and_forecast(name):
    """Return the forecasts of an example as numbers, or the labels that it predicts as codes."""
    example = EXAMPLES[name]
    values = forecast(example.fit(example.make()), example)
    if hasattr(values, "select_dtypes"):
        return values.select_dtypes("number").to_numpy()
    return values if values.dtype.kind == "f" else np.unique(values, return_inverse=True)[1]


if __name__ == "__main__":
    main()
