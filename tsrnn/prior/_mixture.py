"""Mixture of the prior network and nonlinear autoregressions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtri

from tsrnn.prior._autoregression import AutoregressionForecasts, log_bayes_factor
from tsrnn.prior._forward import PROBABILITIES

# Logistic regression of the weight of the autoregressions on `autoregression_circumstances`,
# estimated by `benchmarks/prior/train_mixture.py`.
COEFFICIENTS = np.array([-1.984, 0.238, -1.86, 0.56, -1.446, 1.698, -1.768])
LEAST_WEIGHT = 0.05  # smaller weights are set to 0
MIDDLE = len(PROBABILITIES) // 2  # index of the median among the quantiles
LOW, HIGH = 4, 10  # indices of the 20 and 80 percent quantiles
TINY = 1e-12  # avoids division by zero widths


class Mixture(NamedTuple):
    """Mixture of the network with autoregressions, named by the most probable of these."""

    quantiles: np.ndarray  # (15, h)
    weights: np.ndarray  # of the autoregressions, (h,)
    name: str


def mix_autoregression(
    quantiles: np.ndarray,
    learned: np.ndarray,
    forecasts: AutoregressionForecasts,
    log_evidence: np.ndarray,
) -> Mixture | None:
    """Average quantiles (15, h) of the network and of autoregressions, step by step.

    Quantiles are averaged, not distribution functions: the average of two normal distributions is
    normal, and no wider than the wider of both. The weights rest on the `learned` quantiles before
    calibration, so that the median does not depend on the widths of a panel. `log_evidence` is the
    largest log likelihood of a structural model up to each of the last observed rows. None if the
    autoregressions have no weight at any step.
    """
    h = quantiles.shape[1]
    steps = len(forecasts.mean)
    near = quantiles[:, :steps]
    weights = expit(
        COEFFICIENTS @ autoregression_circumstances(learned[:, :steps], forecasts, log_evidence)
    )
    weights[weights < LEAST_WEIGHT] = 0.0
    if not weights.any():
        return None
    mixed = quantiles.copy()
    normal = forecasts.mean + ndtri(PROBABILITIES)[:, None] * forecasts.deviation
    mixed[:, :steps] += weights * (normal - near)
    return Mixture(mixed, np.append(weights, np.zeros(h - steps)), forecasts.best.name)


def autoregression_circumstances(
    quantiles: np.ndarray, forecasts: AutoregressionForecasts, log_evidence: np.ndarray
) -> np.ndarray:
    """Regressors (7, h) of the log odds of the autoregressions.

    A constant; the log Bayes factor; the log ratio of both standard deviations; the distance of
    both forecasts; the logarithms of the step and of the number of compared rows; the drift.
    Arguments are those of `mix_autoregression`.
    """
    factor, count = log_bayes_factor(forecasts.log_density, log_evidence)
    h = len(forecasts.mean)
    spread = np.ptp(ndtri(PROBABILITIES[[LOW, HIGH]]))
    deviation = np.maximum((quantiles[HIGH] - quantiles[LOW]) / spread, TINY)
    regressed = np.maximum(forecasts.deviation, TINY)
    distance = np.abs(forecasts.mean - quantiles[MIDDLE]) / np.hypot(deviation, regressed)
    steps = np.arange(1.0, h + 1)
    return np.stack(
        [
            np.ones(h),
            np.full(h, np.clip(factor / 10, -4, 10)),
            np.clip(np.log(regressed / deviation), -4, 4),
            np.minimum(distance, 4),
            (np.log(steps) - 1.5) / 1.5,
            np.full(h, np.log(max(count, 1)) / 3 - 1.5),
            np.full(h, forecasts.drift),
        ]
    )
