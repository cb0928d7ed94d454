"""What estimation costs an empirical risk minimiser: Theorem 4."""

from __future__ import annotations

import math
from typing import Any

from tsrnn.contract import number, positive_integer
from tsrnn.erm._bound import Bound, log_complexity, log_of, sample_condition

__all__ = ["ASSUMPTION_1", "estimation_bound", "log_estimation", "sample_size"]

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
    r"""Bound of Theorem 4 on the estimation error of the empirical risk minimiser.

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
        :math:`R(\bar f) - R(f_0)`, 0 where the class contains f_0. The result of
        `approximation_bound` may be given: as its value bounds the largest error, its square
        bounds this difference.
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
    Of C the paper says that it does not depend on d_in, d_s, d, L, U and N. It does depend on
    the tails of the response, through sigma_z of Assumption 1, and on the length T: the proof
    of Lemma C.3 covers the networks by feedforward ones of width (2T - 1) d and depth
    (T + 1) L + 2, which brings a factor of order T^4. The condition on N is known up to a
    constant as well; it is checked with the constant 1.

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
            "estimation": log_estimation(n, width, depth, radius, factor),
            "approximation": math.log(0.5) + _log_excess_risk(approximation),
        },
        conditions={"U >= 1": radius >= 1} | sample_condition(n, width, depth),
        assumptions=("|f_0| <= U", ASSUMPTION_1),
        constants={"C": factor},
    )


def log_estimation(n: int, width: int, depth: int, bound: float, constant: float) -> float:
    """Logarithm of C U^5 (log N)^5 d^2 L^2 log max{d, L} / N."""
    log_n = log_of(n)
    scale = log_of(constant) + 5 * log_of(bound) + 5 * log_of(log_n) - log_n
    return scale + log_complexity(width, depth)


def sample_size(n: Any) -> int:
    """`n` as an int of at least 2, or an error: the bounds hold log N to some power."""
    n = positive_integer("n", n)
    if n < 2:
        raise ValueError(f"n must be at least 2, as the bounds multiply by log n; got {n}")
    return n


def _log_excess_risk(approximation: float | Bound) -> float:
    if isinstance(approximation, Bound):
        if approximation.theorem != "Theorem 3":
            raise ValueError(
                "approximation must be the result of approximation_bound (Theorem 3) or a number; "
                f"got a bound of {approximation.theorem}"
            )
        return 2 * approximation.log_value
    return log_of(number("approximation", approximation, lowest=0.0, open_=False))
