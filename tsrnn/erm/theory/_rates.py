"""Optimal rates, and growth of the networks that attain them: Corollary 1."""

from __future__ import annotations

import math
from typing import Any

from tsrnn.contract import number, positive_integer
from tsrnn.erm.theory._approximation import NetworkSize
from tsrnn.erm.theory._bound import log_of
from tsrnn.erm.theory._estimation import sample_size

__all__ = ["minimax_rate", "network_schedule", "rate_exponent"]

LOG_POWER = 10  # power of log N in the rate of Corollary 1


def rate_exponent(beta: float, d_in: int, length: int) -> float:
    r"""Return the exponent :math:`2\beta / (d_{in} T + 2\beta)` of the optimal rate.

    Parameters
    ----------
    beta : float
        Smoothness index beta > 0.
    d_in : int
        Inputs a time step.
    length : int
        Time steps T.

    Returns
    -------
    float
        Exponent r between 0 and 1; the error decreases like N to the power -r.

    Raises
    ------
    TypeError, ValueError
        If beta is not positive or another argument no positive integer.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, Corollary 1; Stone (1982), Annals of Statistics
    10:1040-1053.

    Examples
    --------
    >>> from tsrnn.erm import rate_exponent
    >>> rate_exponent(1.0, d_in=1, length=2)
    0.5
    """
    smooth = number("beta", beta, lowest=0.0, open_=True)
    return 2 * smooth / (_n_inputs(d_in, length) + 2 * smooth)


def minimax_rate(
    n: int, beta: float, d_in: int, length: int, *, log_factor: bool = False, log: bool = False
) -> float:
    r"""Return the optimal rate :math:`N^{-2\beta / (d_{in} T + 2\beta)}` of regression.

    Parameters
    ----------
    n : int
        N, the number of independent sequences, at least 2.
    beta, d_in, length
        As in `rate_exponent`.
    log_factor : bool, default False
        Multiply by :math:`(\log N)^{10}`, the rate of Corollary 1 for the network.
    log : bool, default False
        Return the natural logarithm.

    Returns
    -------
    float
        Rate, up to an unspecified constant.

    Raises
    ------
    TypeError, ValueError
        If a number is not of the kind described.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, Corollary 1; Stone (1982), Annals of Statistics
    10:1040-1053.

    Examples
    --------
    >>> from tsrnn.erm import minimax_rate
    >>> round(minimax_rate(10_000, 1.0, d_in=1, length=2), 12)
    0.01
    """
    log_n = log_of(sample_size(n))
    value = -rate_exponent(beta, d_in, length) * log_n
    if log_factor:
        value += LOG_POWER * log_of(log_n)
    return value if log else math.exp(value)


def network_schedule(
    n: int,
    beta: float,
    d_in: int,
    length: int,
    eta: float,
    *,
    width_scale: float = 1.0,
    depth_scale: float = 1.0,
    block_size: int = 2,
) -> NetworkSize:
    r"""Return width and depth for the optimal rate, by Corollary 1.

    .. math::

        d \asymp N^{\eta} \log N, \qquad
        L \asymp N^{d_{in} T / (2 d_{in} T + 4 \beta) - \eta} \log N.

    Parameters
    ----------
    n : int
        N, the number of independent sequences, at least 2.
    beta, d_in, length
        As in `rate_exponent`.
    eta : float
        Share of growth in the width, from 0 (all in the depth) to
        :math:`d_{in} T / (2 d_{in} T + 4 \beta)` (all in the width).
    width_scale, depth_scale : float, default 1.0
        Factors of d and L. The corollary only gives orders; in its proof the factor of the width is
        of the order 3 to the power d_in T.
    block_size : int, default 2
        Block size d_s; the width is rounded up to a multiple.

    Returns
    -------
    NetworkSize
        Width and depth, rounded up.

    Raises
    ------
    TypeError, ValueError
        If a number is not of the kind described or eta lies outside its range.

    Notes
    -----
    The corollary also requires :math:`N \gtrsim d^2 L^2 \log\max\{d, L\}`, which `estimation_bound`
    checks. With this schedule the right side is of the order N to the power
    :math:`d_{in} T / (d_{in} T + 2\beta)`, which is below one, times :math:`(\log N)^5`. The
    condition holds for all N large enough.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, Corollary 1.

    Examples
    --------
    >>> from tsrnn.erm import network_schedule
    >>> network_schedule(10_000, 1.0, d_in=1, length=2, eta=0.125)
    NetworkSize(width=30, depth=30)
    """
    log_n = log_of(sample_size(n))
    inputs, smooth = _n_inputs(d_in, length), number("beta", beta, lowest=0.0, open_=True)
    most = inputs / (2 * inputs + 4 * smooth)
    share = number("eta", eta, lowest=0.0, open_=False)
    if share > most:
        raise ValueError(
            f"eta must lie from 0 to d_in T / (2 d_in T + 4 beta) = {most:.6g}; got {eta!r}"
        )
    block = positive_integer("block_size", block_size)
    scales = (("width_scale", width_scale, share), ("depth_scale", depth_scale, most - share))
    width, depth = (
        _ceil_exp(
            log_of(number(name, scale, lowest=0.0, open_=True)) + power * log_n + log_of(log_n)
        )
        for name, scale, power in scales
    )
    return NetworkSize(width=-(-width // block) * block, depth=depth)


def _n_inputs(d_in: Any, length: Any) -> int:
    """Return the number of inputs of the whole sequence, d_in T."""
    return positive_integer("d_in", d_in) * positive_integer("length", length)


def _ceil_exp(log: float) -> int:
    """Return the smallest integer >= max(1, exp(log)), above 2^60 to sixty binary digits."""
    # exp overflows above 2^1024, and floats have only 53 digits: shift, so that the rest are zeros.
    doublings = max(0, math.floor(log / math.log(2)) - 60)
    rest = math.exp(log - doublings * math.log(2))
    # Subtract the rounding error of exp, which must not lift an integer to the next.
    return max(1, math.ceil(rest * (1 - 1e-12))) << doublings
