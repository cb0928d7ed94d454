"""Likelihood-ratio test of a network against a smaller one, by bootstrap."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.contract import choice, positive_integer, seed_of
from tsrnn.linearity._network import (
    CANDIDATES,
    Fits,
    Network,
    fit,
    grow,
    residuals_and_jacobian,
    simulate,
)
from tsrnn.linearity._null import LinearModel, linear_model
from tsrnn.linearity._recursive import EXPLODED
from tsrnn.linearity._result import LinearityTest


def nested_test(
    y: Any,
    lags: int | None = None,
    *,
    order: tuple[int, int] | None = None,
    nonlinear_lags: int | None = None,
    null_blocks: int = 0,
    blocks: int | None = None,
    block_size: int = 2,
    null_block_size: int | None = None,
    bootstrap: str = "wild",
    n_bootstrap: int = 99,
    n_starts: int = 3,
    random_state: Any = None,
) -> LinearityTest:
    r"""Likelihood-ratio test of a ParaRNN beside an ARMA or AR against a smaller one.

    .. math:: y_t = c + \sum_i \phi_i y_{t-i} + \sum_j \theta_j e_{t-j}
        + \sum_{k=1}^K \gamma_k' h_{k,t} + e_t, \qquad
        h_{k,t} = \tanh(W_k h_{k,t-1} + U_k x_t + b_k)

    .. math:: LR = n \log(SSE_0 / SSE_1)

    of both networks, fitted by least squares. The ratio has no known limit, as parameters of absent
    blocks are not identified. The p-value is from series simulated from the smaller network, with
    both networks fitted to each in the same way.

    Parameters
    ----------
    y, lags, order, nonlinear_lags
        As in `terasvirta_test`. An ARMA must be without season, differences and drift; its
        parameters are estimated again.
    null_blocks : int, default 0
        Blocks of the smaller network; 0 for the linear model.
    blocks : int, optional
        Blocks of the larger network; by default one more, or as many if its block size is larger.
    block_size : int, default 2
        States of a block of the larger network.
    null_block_size : int, optional
        States of a block of the smaller network; by default `block_size`.
    bootstrap : {"wild", "residual"}
        Errors of simulated series: residuals with random signs, which preserve heteroskedasticity,
        or residuals drawn with replacement.
    n_bootstrap : int, default 99
    n_starts : int, default 3
        Number of starts of each fit.
    random_state : int, numpy random generator or None

    Returns
    -------
    LinearityTest
        The p-value is (1 + number of ratios as large) / (1 + n_bootstrap).

    Raises
    ------
    TypeError, ValueError
        If the series or an argument is not legal, the networks are not nested, or series simulated
        from the smaller network explode.

    Notes
    -----
    The ratio of two separate fits may be negative, as each may end in a local optimum. Here all
    fits of the larger network start from the smaller one, with zero weights of new states in the
    mean, and take only steps that lower the sum of squares: the ratio is at least zero. Optima need
    not be global, nor fits converged: the test uses the statistic that this algorithm computes, and
    simulated series have the same starts and iterations. The linear part is not restricted; series
    simulated from a nonstationary estimate explode.

    References
    ----------
    Davidson, R., MacKinnon, J. G. (2006). Bootstrap methods in econometrics. Palgrave Handbook of
    Econometrics.

    Examples
    --------
    >>> from tsrnn.datasets import threshold_autoregression
    >>> from tsrnn.linearity import nested_test
    >>> y, _ = threshold_autoregression(120, random_state=0)
    >>> nested_test(y, lags=1, block_size=1, n_bootstrap=19, random_state=0).p_value
    0.05
    """
    K0, small_size, K1, size = nested_sizes(null_blocks, null_block_size, blocks, block_size)
    bootstrap = choice("bootstrap", bootstrap, ("wild", "residual"))
    B = positive_integer("n_bootstrap", n_bootstrap)
    starts = positive_integer("n_starts", n_starts)
    if starts > CANDIDATES:
        raise ValueError(f"n_starts must be at most {CANDIDATES}; got {starts}")
    seed = seed_of(random_state)
    model = linear_model(y, lags, order, nonlinear_lags)
    path = network_path(model, K0, small_size if K0 else size, K1, size)
    n_params = len(path[-1].keys)
    n = len(model.residuals)
    if n < 3 * n_params:
        raise ValueError(
            f"a network of {n_params} parameters needs {3 * n_params} observations; got {n}. Take "
            "fewer or smaller blocks, or fewer nonlinear_lags"
        )
    small, large, share = likelihood_ratio(model, path, model.series[:, None], starts, seed)
    ratio = float(n * np.log(small.sse[0] / large.sse[0]))
    series = simulate_null(model, path[-2], small.params[:, 0], bootstrap, B, seed + 1)
    small_drawn, large_drawn, share_drawn = likelihood_ratio(model, path, series, starts, seed)
    ratios = n * np.log(small_drawn.sse / large_drawn.sse)
    # A fit that overflowed has no ratio, and counts for the null.
    p_value = float((1 + (~(ratios < ratio)).sum()) / (B + 1))

    def text(network: Network) -> str:
        if not network.blocks:
            return f"the linear model {model.name}"
        several = "s" * (network.blocks > 1)
        return f"a network of {network.blocks} block{several} of size {network.block_size}"

    table = pd.DataFrame(
        {"statistic": [ratio], "df": ["-"], "p_value": [p_value]}, pd.Index(["LR"], name="form")
    )
    return LinearityTest(
        test="Likelihood-ratio test of nested networks",
        model=model.name,
        statistic=ratio,
        df=(),
        p_value=p_value,
        distribution=f"{bootstrap} bootstrap, {B} draws, both networks fitted to each",
        null=f"{text(path[-2])} has the mean",
        alternative=f"{text(path[-1])} has it",
        n_obs=n,
        nonlinear_lags=model.lags,
        table=table,
        mean_only=bootstrap == "wild",
        notes=[
            f"{len(path[-1].keys) - len(path[-2].keys)} more parameters, which are not all "
            "identified under the null.",
            "Fits of the larger network start from the smaller one. Converged: "
            f"{'yes' if share else 'no'}; {share_drawn:.0%} of those of the bootstrap.",
        ],
    )


def nested_sizes(
    null_blocks: Any, null_block_size: Any, blocks: Any, block_size: Any
) -> tuple[int, int, int, int]:
    """Check blocks and block size of the smaller and of the larger network.

    A TypeError or ValueError refuses sizes that are not legal, or networks that are not nested.
    """
    small_size = block_size if null_block_size is None else null_block_size
    small_size = positive_integer("null_block_size", small_size)
    size = positive_integer("block_size", block_size)
    if isinstance(null_blocks, bool) or not isinstance(null_blocks, int | np.integer):
        raise TypeError(f"null_blocks must be an integer of at least 0; got {null_blocks!r}")
    if null_blocks < 0:
        raise ValueError(f"null_blocks must be an integer of at least 0; got {null_blocks}")
    K0 = int(null_blocks)
    if blocks is None:
        blocks = K0 if K0 and size > small_size else K0 + 1
    K1 = positive_integer("blocks", blocks)
    larger = K1 > K0 or (K1 == K0 and size > small_size)
    if not larger or (K0 and size < small_size):
        raise ValueError(
            f"the smaller network must be nested in the larger one; got {K0} blocks of "
            f"{small_size} and {K1} of {size}. Give more blocks, or larger ones"
        )
    return K0, small_size, K1, size


def network_path(
    model: LinearModel, null_blocks: int, null_size: int, blocks: int, size: int
) -> list[Network]:
    """Networks from the linear model, block by block, to the smaller and the larger network."""
    _, ar, ma = model.coefficients()
    p, q, L = len(ar), len(ma), model.lags
    return [
        *(Network(p, q, L, k, null_size) for k in range(null_blocks + 1)),
        Network(p, q, L, blocks, size),
    ]


def likelihood_ratio(
    model: LinearModel, path: list[Network], series: np.ndarray, n_starts: int, seed: int
) -> tuple[Fits, Fits, float]:
    """Fit the last two networks of a path to columns (T, M); with the share that converged."""
    rng = np.random.default_rng(seed)  # data and simulated series have the same candidates
    first, M = len(series) - len(model.residuals), series.shape[1]
    start = np.concatenate(model.coefficients())
    fits = fit(path[0], np.repeat(start[:, None], M, axis=1), series, first)
    before = fits
    for small, large in pairwise(path):
        before = fits
        fits = grow(small, fits, large, series, first, n_starts, rng)
    return before, fits, float((before.converged & fits.converged).mean())


def simulate_null(
    model: LinearModel, network: Network, params: np.ndarray, bootstrap: str, B: int, seed: int
) -> np.ndarray:
    """Series (T, B) simulated from the smaller network with its residuals."""
    rng = np.random.default_rng(seed)
    y, n = model.series, len(model.residuals)
    e = residuals_and_jacobian(network, params[:, None], y[:, None], len(y) - n)[0][:, 0]
    # Correct residuals for the degrees of freedom of the fitted parameters.
    e = (e - e.mean()) * np.sqrt(n / (n - len(params)))
    if bootstrap == "wild":
        errors = (rng.integers(0, 2, (n, B)) * 2.0 - 1.0) * e[:, None]
    else:
        errors = e[rng.integers(0, n, (n, B))]
    with np.errstate(over="ignore", invalid="ignore"):
        series = simulate(network, params, y, errors)
    if not np.abs(series).max() < EXPLODED:
        raise ValueError(
            "series simulated from the smaller network explode: its linear part is not "
            "stationary. Difference the series, or take fewer lags"
        )
    return series
