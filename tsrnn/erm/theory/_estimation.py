"""Bounds of estimation (Theorem 4) and prediction error (Theorem 5) of the risk minimiser.

Both rest on the covering number of the class of networks, Lemma C.3.
"""

from __future__ import annotations

import math
from typing import Any

from tsrnn.contract import number, positive_integer
from tsrnn.erm.theory._approximation import log_approximation, network_size
from tsrnn.erm.theory._bound import Bound, log_of

__all__ = ["estimation_bound", "log_covering_number", "prediction_bound", "sample_size"]

ASSUMPTION_1 = "responses are i.i.d. with their inputs and sub-exponential (Assumption 1)"


def estimation_bound(
    n: int,
    width: int,
    depth: int,
    bound: float = 1.0,
    *,
    approximation: float | Bound = 0.0,
    constant: float = 1.0,
) -> Bound:
    r"""Return the bound of Theorem 4 on the estimation error of the empirical risk minimiser.

    .. math::

        E_S[R(\hat f) - R(\bar f)] \le C U^5 (\log N)^5 \frac{1}{N} d^2 L^2 \log \max\{d, L\}
        + 0.5\,[R(\bar f) - R(f_0)]
        \quad \text{for } N \gtrsim d^2 L^2 \log \max\{d, L\}.

    Parameters
    ----------
    n : int
        N, the number of independent sequences, at least 2.
    width : int
        d, the hidden size.
    depth : int
        L, the number of recurrent layers.
    bound : float, default 1.0
        U, which bounds f_0 and the outputs of the network; the theorem asks for U >= 1.
    approximation : float or Bound, default 0.0
        Difference :math:`R(\bar f) - R(f_0)`, 0 if the class contains f_0. A result of
        `approximation_bound` enters squared: its value bounds the largest error, its square this
        difference.
    constant : float, default 1.0
        C, which the paper does not give.

    Returns
    -------
    Bound
        With the terms "estimation" and "approximation".

    Raises
    ------
    TypeError, ValueError
        If a number is not of the kind described.

    Notes
    -----
    According to the paper, C does not depend on d_in, d_s, d, L, U and N. It does depend on the
    tails of the response, through sigma_z of Assumption 1, and on the length T: the proof of Lemma
    C.3 covers the networks by feedforward ones of width (2T - 1) d and depth (T + 1) L + 2, which
    gives a factor of order T^4. The condition on N is also known up to a constant, which is taken
    as 1.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, Theorem 4; the proof is in supplement C.2.

    Examples
    --------
    >>> from tsrnn.erm import estimation_bound
    >>> bound = estimation_bound(10_000, width=4, depth=2)
    >>> bound.holds, round(bound.log_value, 3)
    (True, 6.377)
    >>> print(bound)
    Theorem 4, Cai, Li, Huang and Li (2026), ParaRNN
    E[R(f_hat) - R(f_bar)] <= 588
      estimation: 588
      approximation: 0
    condition, met: U >= 1
    condition, met: max{d, L} >= 2
    condition, met: N >= d^2 L^2 log max{d, L} (known up to a constant, taken as 1)
    assumed, not checked: |f_0| <= U
    assumed, not checked: responses are i.i.d. with their inputs and sub-exponential (Assumption 1)
    constant not given by the theorem: C, taken as 1
    """
    n, radius = sample_size(n), number("bound", bound, lowest=0.0, open_=True)
    width, depth = positive_integer("width", width), positive_integer("depth", depth)
    factor = number("constant", constant, lowest=0.0, open_=True)
    return Bound(
        theorem="Theorem 4",
        quantity="E[R(f_hat) - R(f_bar)]",
        log_terms={
            "estimation": _log_estimation(n, width, depth, radius, factor),
            "approximation": math.log(0.5) + _log_excess_risk(approximation),
        },
        conditions={"U >= 1": radius >= 1} | _sample_condition(n, width, depth),
        assumptions=("|f_0| <= U", ASSUMPTION_1),
        constants={"C": factor},
    )


def prediction_bound(
    n: int,
    beta: float,
    d_in: int,
    length: int,
    width_factor: int,
    depth_factor: int,
    *,
    bound: float = 1.0,
    block_size: int = 2,
    constant: float = 1.0,
) -> Bound:
    r"""Return the bound of Theorem 5 on the excess risk of the empirical risk minimiser.

    .. math::

        E_S[R(\hat f) - R(f_0)] \le C U^5 (\log N)^5 \frac{1}{N} d^2 L^2 \log \max\{d, L\}
        + 542\, U^2 (\lfloor\beta\rfloor + 1)^4
        (d_{in} T)^{2 \lfloor\beta\rfloor + (\beta \vee 1)} (JI)^{-4\beta / (d_{in} T)},

    for d and L of `network_size` with one output, and :math:`N \gtrsim d^2 L^2 \log \max\{d, L\}`.

    Parameters
    ----------
    n : int
        Number N of independent sequences, at least 2, of any size.
    beta, d_in, length, width_factor, depth_factor
        As in `network_size`.
    bound : float, default 1.0
        U, the radius of the Hoelder class of f_0; the theorem asks for U >= 1.
    block_size : int, default 2
        As in `network_size`.
    constant : float, default 1.0
        C, which the paper does not give; see the notes of `estimation_bound`.

    Returns
    -------
    Bound
        With the terms "estimation" and "approximation".

    Raises
    ------
    TypeError, ValueError
        If a number is not of the kind described.

    Notes
    -----
    The bound explains rates, not the error of a fit: since d contains 3 to the power d_in T, the
    condition on N holds in practice only for very small d_in T. The constant 542 is 3/2 times the
    square of the 19 of Theorem 3, 541.5, rounded up.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, Theorem 5 and equation (10).

    Examples
    --------
    >>> from tsrnn.erm import prediction_bound
    >>> bound = prediction_bound(10**14, 1.0, 1, 1, width_factor=1, depth_factor=1)
    >>> bound.holds, {name: round(log, 3) for name, log in bound.log_terms.items()}
    (True, {'estimation': 15.497, 'approximation': 9.068})
    >>> prediction_bound(10**6, 1.0, 10, 1000, width_factor=4, depth_factor=4)
    Bound(Theorem 5: log_value=22061.9, value=10^9581.3, holds=False, C=1 taken)
    """
    n, radius = sample_size(n), number("bound", bound, lowest=0.0, open_=True)
    factor = number("constant", constant, lowest=0.0, open_=True)
    task = (beta, d_in, length, width_factor, depth_factor)
    size = network_size(*task, block_size=block_size)
    return Bound(
        theorem="Theorem 5",
        quantity="E[R(f_hat) - R(f_0)]",
        log_terms={
            "estimation": _log_estimation(n, size.width, size.depth, radius, factor),
            "approximation": math.log(542) + 2 * log_approximation(*task, radius),
        },
        conditions={"U >= 1": radius >= 1, "d_s is even": block_size % 2 == 0}
        | _sample_condition(n, size.width, size.depth),
        assumptions=("f_0 lies in the Hoelder class of smoothness beta and radius U", ASSUMPTION_1),
        constants={"C": factor},
    )


def log_covering_number(
    n: int, radius: float, width: int, depth: int, bound: float = 1.0, *, constant: float = 1.0
) -> Bound:
    r"""Return the bound of Lemma C.3 on the log uniform covering number of a network class.

    .. math::

        \log \mathcal{N}_\infty(\delta, \mathcal{F}, N) \le
        C d^2 L^2 \log \max\{d, L\} \log \frac{N U}{\delta}
        \quad \text{for } N \gtrsim d^2 L^2 \log \max\{d, L\}.

    Parameters
    ----------
    n : int
        N, the number of sequences at which functions are compared, at least 2.
    radius : float
        delta, between 0 and N U.
    width : int
        d, the hidden size.
    depth : int
        L, the number of recurrent layers.
    bound : float, default 1.0
        U, which bounds the outputs of the network.
    constant : float, default 1.0
        C, which the paper does not give.

    Returns
    -------
    Bound
        Bound with ``value`` for :math:`\log \mathcal{N}_\infty`; ``log_value`` is its logarithm.

    Raises
    ------
    TypeError, ValueError
        If a number is not of the kind described, or `radius` is not below N U.

    Notes
    -----
    C depends on the length T, see the notes of `estimation_bound`.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, Lemma C.3.

    Examples
    --------
    >>> from tsrnn.erm import log_covering_number
    >>> bound = log_covering_number(1000, radius=1e-3, width=4, depth=2)
    >>> round(bound.value, 3), bound.holds
    (1225.751, True)
    """
    n, limit = sample_size(n), number("bound", bound, lowest=0.0, open_=True)
    width, depth = positive_integer("width", width), positive_integer("depth", depth)
    factor = number("constant", constant, lowest=0.0, open_=True)
    log_ratio = log_of(n) + log_of(limit) - log_of(number("radius", radius, lowest=0, open_=True))
    if log_ratio <= 0:
        raise ValueError(
            f"radius must lie below n * bound, where the lemma's log(N U / delta) is positive; got "
            f"radius={radius!r} with n={n}, bound={limit:g}. From 2 U on one function covers all"
        )
    return Bound(
        theorem="Lemma C.3",
        quantity="log of the covering number",
        log_terms={"entropy": log_of(factor) + _log_complexity(width, depth) + log_of(log_ratio)},
        conditions=_sample_condition(n, width, depth),
        constants={"C": factor},
    )


def sample_size(n: Any) -> int:
    """Return the sample size N, checked to be at least 2, since log N is a factor of bounds."""
    n = positive_integer("n", n)
    if n < 2:
        raise ValueError(f"n must be at least 2, as the bounds multiply by log n; got {n}")
    return n


def _log_estimation(n: int, width: int, depth: int, bound: float, constant: float) -> float:
    """Return the logarithm of C U^5 (log N)^5 d^2 L^2 log max{d, L} / N."""
    log_n = log_of(n)
    scale = log_of(constant) + 5 * log_of(bound) + 5 * log_of(log_n) - log_n
    return scale + _log_complexity(width, depth)


def _log_excess_risk(approximation: float | Bound) -> float:
    """Return the logarithm of R(f_bar) - R(f_0), for a bound that of its square."""
    if isinstance(approximation, Bound):
        if approximation.theorem != "Theorem 3":
            raise ValueError(
                "approximation must be the result of approximation_bound (Theorem 3) or a number; "
                f"got a bound of {approximation.theorem}"
            )
        return 2 * approximation.log_value
    return log_of(number("approximation", approximation, lowest=0.0, open_=False))


def _log_complexity(width: int, depth: int) -> float:
    """Return the logarithm of d^2 L^2 log max{d, L}."""
    return 2 * log_of(width) + 2 * log_of(depth) + log_of(log_of(max(width, depth)))


def _sample_condition(n: int, width: int, depth: int) -> dict[str, bool]:
    """Return the conditions on the sample size, with 1 for the unknown constant."""
    met = log_of(n) >= _log_complexity(width, depth)
    return {
        "max{d, L} >= 2": max(width, depth) >= 2,
        "N >= d^2 L^2 log max{d, L} (known up to a constant, taken as 1)": met,
    }
