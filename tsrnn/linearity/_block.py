"""Score test of a block of a recurrent network beside a linear model."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from tsrnn.contract import choice, positive_integer, seed_of
from tsrnn.linearity._null import LinearModel, lagged, linear_model
from tsrnn.linearity._recursive import refit_linear, simulate_linear
from tsrnn.linearity._regression import orthonormal
from tsrnn.linearity._result import LinearityTest

FORMS = ("exp", "sup", "ave")
LARGEST_SCALE = 3.0  # of input weights; with larger ones, tanh of standardised lags is a step
SMALLEST_SCALE = 0.5  # with smaller ones, tanh is nearly a cubic polynomial
LARGEST_RADIUS = 0.95  # of the recurrence: memory of up to about twenty rows
RIDGE = 1e-8  # relative to the mean variance of a block's scores, for nearly collinear states
AT_ONCE = 4_000_000  # floats of the states of a batch in the recursive bootstrap


class Blocks(NamedTuple):
    """Parameters of R blocks of d states with L inputs, not identified under the null."""

    recurrent: np.ndarray  # (R, d, d)
    weights: np.ndarray  # (R, d, L)
    bias: np.ndarray  # (R, d)


def draw_blocks(n: int, block_size: int, n_inputs: int, rng: np.random.Generator) -> Blocks:
    """Draw random blocks with stable recurrences and kinks within the data.

    Input weights have uniform directions and log-uniform lengths on [0.5, 3]. The bias puts the
    kink within 1.5 standard deviations of the mean. Recurrent matrices are orthogonal matrices
    times a radius that is uniform on [0, 0.95], as in `ParaRNN`.
    """
    shape = n, block_size
    directions = rng.normal(size=(*shape, n_inputs))
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    scale = np.exp(rng.uniform(np.log(SMALLEST_SCALE), np.log(LARGEST_SCALE), shape))
    bias = scale * rng.uniform(-1.5, 1.5, shape)
    rotations = np.linalg.qr(rng.normal(size=(*shape, block_size)))[0]
    radius = rng.uniform(0, LARGEST_RADIUS, (n, 1, 1)) * rng.choice([-1.0, 1.0], (n, 1, 1))
    return Blocks(radius * rotations, scale[..., None] * directions, bias)


def block_states(inputs: np.ndarray, blocks: Blocks) -> np.ndarray:
    r"""States :math:`h_t = \tanh(W h_{t-1} + U x_t + b)` of all blocks from zero, (n, ..., R, d).

    `inputs` have shape (..., n, L).
    """
    W, U, b = blocks
    # Time is the first axis, so that a step reads and writes contiguous memory.
    drive = np.moveaxis(np.tensordot(inputs, U, axes=(-1, -1)) + b, -3, 0)
    states, h = np.empty_like(drive), np.zeros(drive.shape[1:])
    columns = [np.ascontiguousarray(W[..., j]) for j in range(W.shape[-1])]
    for t in range(len(drive)):
        step = drive[t]
        for j, column in enumerate(columns):
            step = step + column * h[..., j : j + 1]
        h = np.tanh(step, out=states[t])
    return states


def score_factors(residuals: np.ndarray, scores: np.ndarray, states: np.ndarray) -> np.ndarray:
    r"""Residuals of states (n, R, d) on the scores, whitened by the robust variance, (R, d, n).

    Times the residuals and summed over time they are :math:`V_r^{-1/2} s_r` with
    :math:`V_r = \sum_t e_t^2 n_t n_t'`; the sum of squares is the LM statistic.
    """
    Z = orthonormal(scores)
    n, (R, d) = len(states), states.shape[1:]
    flat = states.reshape(n, -1)
    left = flat - Z @ (Z.T @ flat)
    by_block = left.T.reshape(R, d, n)
    V = (by_block * residuals**2) @ by_block.swapaxes(1, 2)
    size = np.trace(V, axis1=1, axis2=2)[:, None, None] / d
    V += (RIDGE * size + np.finfo(float).tiny) * np.eye(d)
    return np.linalg.solve(np.linalg.cholesky(V), by_block)


def summarise(statistics: np.ndarray) -> np.ndarray:
    """Exponential average, supremum and average over draws (R, ...) of LM statistics."""
    exponential = logsumexp(statistics / 2, axis=0) - np.log(len(statistics))
    return np.stack([exponential, statistics.max(0), statistics.mean(0)])


def block_test(
    y: Any,
    lags: int | None = None,
    *,
    order: tuple[int, int] | None = None,
    nonlinear_lags: int | None = None,
    block_size: int = 2,
    n_blocks: int = 200,
    form: str = "exp",
    bootstrap: str = "wild",
    n_bootstrap: int = 499,
    random_state: Any = None,
) -> LinearityTest:
    r"""Score test of one block of a ParaRNN beside an ARMA or AR.

    .. math:: y_t = \text{linear}_t + \gamma' h_t + e_t, \qquad
        h_t = \tanh(W h_{t-1} + U x_t + b), \qquad H_0: \gamma = 0

    with x the lags in standard deviations. Under the null W, U and b are not identified (Davies,
    1987). The LM statistic is computed at many draws of them,

    .. math:: LM(r) = s_r' V_r^{-1} s_r, \quad s_r = \sum_t e_t \tilde h_t^{(r)}, \quad
        V_r = \sum_t e_t^2 \tilde h_t^{(r)} \tilde h_t^{(r)\prime},

    where :math:`\tilde h` are residuals of the states on the derivatives of the linear forecast by
    its parameters. The statistics are summarised by the exponential average
    :math:`\log \overline{\exp(LM / 2)}` (Andrews and Ploberger, 1994), the supremum or the average.

    Parameters
    ----------
    y, lags, order, nonlinear_lags
        As in `terasvirta_test`; the inputs of the network are `nonlinear_lags` lags.
    block_size : int, default 2
        States of the block: one state forgets or alternates, two can also rotate.
    n_blocks : int, default 200
        Number of draws of W, U and b.
    form : {"exp", "sup", "ave"}
        Form of the result's statistic and p-value; the table has all three.
    bootstrap : {"wild", "recursive"}
        "wild" multiplies residuals by random signs and keeps lags and states fixed (Hansen, 1996).
        "recursive" simulates series from the linear model with such residuals, refits it and runs
        the blocks over them, which takes about two hundred times as long; for models without
        season, differences and drift.
    n_bootstrap : int, default 499
    random_state : int, numpy random generator or None

    Returns
    -------
    LinearityTest
        p-values are (1 + number of draws as large) / (1 + n_bootstrap).

    Raises
    ------
    TypeError, ValueError
        If the series or an argument is not legal.

    Notes
    -----
    Both bootstraps are valid with heteroskedasticity of any kind if innovations are a martingale
    difference. The memory of a block also contains linear lags that the linear model may lack: with
    too few lags the test rejects although the mean is linear; with lags chosen by AIC it rejects
    slightly less often than its level. Another seed draws other blocks and gives another p-value,
    which varies more with fewer blocks. The test has power against what is drawn: input weights of
    length 0.5 to 3 on standardised lags, and memories of up to about twenty rows.

    References
    ----------
    Andrews, D. W. K., Ploberger, W. (1994). Optimal tests when a nuisance parameter is present only
    under the alternative. Econometrica.
    Davies, R. B. (1987). Hypothesis testing when a nuisance parameter is present only under the
    alternative. Biometrika.
    Hansen, B. E. (1996). Inference when a nuisance parameter is not identified under the null
    hypothesis. Econometrica.

    Examples
    --------
    >>> from tsrnn.datasets import threshold_autoregression
    >>> from tsrnn.linearity import block_test
    >>> y, _ = threshold_autoregression(200, random_state=0)
    >>> block_test(y, lags=1, random_state=0).p_value
    0.002
    """
    d, R = positive_integer("block_size", block_size), positive_integer("n_blocks", n_blocks)
    B = positive_integer("n_bootstrap", n_bootstrap)
    form = choice("form", form, FORMS)
    bootstrap = choice("bootstrap", bootstrap, ("wild", "recursive"))
    rng = np.random.default_rng(seed_of(random_state))
    model = linear_model(y, lags, order, nonlinear_lags)
    blocks = draw_blocks(R, d, model.lags, rng)
    Z, x = model.scores, model.inputs / model.series.std(ddof=1)
    basis = orthonormal(Z)
    e = model.residuals - basis @ (basis.T @ model.residuals)
    factors = score_factors(e, Z, block_states(x, blocks))
    observed = summarise(((factors @ e) ** 2).sum(1))
    if bootstrap == "wild":
        signs = rng.integers(0, 2, (len(e), B)) * 2.0 - 1.0
        drawn = (factors.reshape(R * d, -1) @ (signs * e[:, None])).reshape(R, d, B)
        statistics = summarise((drawn**2).sum(1))
    else:
        statistics = _recursive_statistics(model, blocks, B, rng)
    draws = statistics.shape[1]
    p_values = (1 + (statistics >= observed[:, None]).sum(1)) / (draws + 1)
    table = pd.DataFrame(
        {"statistic": observed, "df": "-", "p_value": p_values}, pd.Index(FORMS, name="form")
    )
    i = FORMS.index(form)
    return LinearityTest(
        test="Score test of a recurrent block",
        model=model.name,
        statistic=float(observed[i]),
        df=(),
        p_value=float(p_values[i]),
        distribution=f"{bootstrap} bootstrap, {draws} draws, form {form!r}",
        null="the mean is linear in the past",
        alternative=f"a tanh block of {d} state{'s' * (d > 1)} with {model.lags} "
        f"lag{'s' * (model.lags > 1)} as input enters the mean",
        n_obs=len(e),
        nonlinear_lags=model.lags,
        table=table,
        mean_only=True,
        notes=[
            f"W, U and b are not identified under the null: {R} draws of them.",
            "Heteroskedasticity, ARCH say, is no reason for it to reject.",
        ],
    )


def _recursive_statistics(
    model: LinearModel, blocks: Blocks, n_bootstrap: int, rng: np.random.Generator
) -> np.ndarray:
    """Statistics (3, B) of series simulated from the linear model, refitted and tested alike."""
    series = simulate_linear(model, n_bootstrap, rng)
    residuals, scores = refit_linear(model, series)
    n = residuals.shape[1]
    sizes = series.std(axis=0, ddof=1)
    x = lagged(series, model.lags)[-n:].swapaxes(0, 1) / sizes[:, None, None]
    R, d = blocks.bias.shape
    statistics, size = np.empty((R, n_bootstrap)), max(1, AT_ONCE // (n * R * d))
    for start in range(0, n_bootstrap, size):
        part = range(start, min(start + size, n_bootstrap))
        states = block_states(x[part], blocks)
        for i, b in enumerate(part):
            basis = orthonormal(scores[b])
            e = residuals[b] - basis @ (basis.T @ residuals[b])
            factors = score_factors(e, scores[b], states[:, i])
            statistics[:, b] = ((factors @ e) ** 2).sum(1)
    return summarise(statistics)
