"""Gain of each part of a forecast on the validation part, with tests of Diebold and Mariano."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tsrnn.contract import diebold_mariano

STEPS_TESTED = 6  # from first to last: tests of all steps say no more
FEWEST_ORIGINS = 8  # fewer give no usable variance of the mean
ALL = "all"  # label of all steps together
NESTED = ("level", "linear path", "model")  # parts in the order in which they are added
# Statistic above which a network is kept. Errors outside the training rows already contain the
# variance that a network adds, so any gain counts: a threshold of one standard error lost more
# accuracy on nonlinear processes than it gained on linear ones.
LEAST_STATISTIC = 0.0


def tested_steps(horizon: int) -> list[int]:
    """Forecast steps at which parts are tested."""
    return sorted({1, *np.linspace(1, horizon, STEPS_TESTED).round().astype(int).tolist()})


class PartLosses:
    """Squared errors of the nested parts of a forecast, by origin of the validation part and step.

    The errors of all units at the same position of the validation part are one observation, as the
    errors of series are correlated.
    """

    def __init__(self, n_origins: int, horizon: int) -> None:
        self._steps, self._horizon = tested_steps(horizon), horizon
        shape = (n_origins, len(self._steps) + 1)
        self._sums = {name: torch.zeros(shape, dtype=torch.float64) for name in NESTED}
        self._counts = {name: torch.zeros(shape, dtype=torch.float64) for name in NESTED}

    def add(self, name: str, place: Tensor, error: Tensor, known: Tensor) -> None:
        """Add errors of a part, shape (n, h, C), from origins at positions `place`, (n,)."""
        squares = torch.where(known, error, 0.0).double().square().sum(2)
        counted = known[..., 0].double() * error.shape[2]
        steps = torch.tensor(self._steps) - 1
        for total, values in ((self._sums[name], squares), (self._counts[name], counted)):
            total.index_add_(0, place, torch.cat([values[:, steps], values.sum(1)[:, None]], 1))

    def tests(self) -> pd.DataFrame:
        """Diebold-Mariano tests of each part against the parts before it, by step and over all.

        `tsrnn.contract.diebold_mariano` tests the difference of the mean squared errors at each
        origin. Index (step, part), columns ``n`` (origins), ``gain`` (relative reduction of the
        mean squared error), ``statistic`` (positive if the part helps) and ``p_value``; NaN with
        too few origins.
        """
        present = [name for name in NESTED if self._counts[name].any()]
        rows, index = [], []
        labels: list[Any] = [*self._steps, ALL]
        for before, part in pairwise(present):
            for i, label in enumerate(labels):
                counts = self._counts[part][:, i]
                # Over all steps, use origins with all targets, so that all steps weigh the same.
                whole = counts == counts.max() if label == ALL else counts > 0
                least, most = (
                    (self._sums[name][whole, i] / counts[whole]).numpy() for name in (before, part)
                )
                step = self._horizon if label == ALL else label
                difference, statistic, p_value = least - most, np.nan, np.nan
                # The test needs more origins than steps, and a difference that varies.
                if len(difference) >= max(FEWEST_ORIGINS, step + 1) and np.ptp(difference) > 0:
                    statistic, p_value = diebold_mariano(difference, overlap=step - 1)[:2]
                gain = 1 - most.mean() / least.mean() if least.mean() > 0 else 0.0
                index.append((label, part))
                rows.append((int(whole.sum()), gain, statistic, p_value))
        columns = ["n", "gain", "statistic", "p_value"]
        names = ["step", "part"]
        if not rows:
            return pd.DataFrame(
                columns=columns, index=pd.MultiIndex.from_arrays([[], []], names=names)
            )
        return pd.DataFrame(rows, pd.MultiIndex.from_tuples(index, names=names), columns)


def network_test(tests: pd.DataFrame) -> dict[str, float] | None:
    """Test of the network over all steps; None if there is none.

    There is no test if no part precedes the network, origins are too few, or it changes nothing.
    """
    rows = tests.loc[tests.index == (ALL, "model")]
    if not len(rows) or not np.isfinite(rows["statistic"].iloc[0]):
        return None
    return {name: float(rows[name].iloc[0]) for name in ("n", "gain", "statistic", "p_value")}


def network_helps(tests: pd.DataFrame) -> bool | None:
    """Return True if the network lowers the mean squared error over all steps; None if untested."""
    test = network_test(tests)
    return None if test is None else test["statistic"] > LEAST_STATISTIC
