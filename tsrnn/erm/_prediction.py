"""Estimation and approximation together, the prediction error: Theorem 5."""

from __future__ import annotations

import math

from tsrnn.contract import number
from tsrnn.erm._approximation import log_approximation, network_size
from tsrnn.erm._bound import Bound, sample_condition
from tsrnn.erm._estimation import ASSUMPTION_1, log_estimation, sample_size

__all__ = ["prediction_bound"]


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
    r"""Bound of Theorem 5 on the excess risk of the empirical risk minimiser.

    .. math::

        E_S[R(\hat f) - R(f_0)] \le C U^5 (\log N)^5 \frac{1}{N} d^2 L^2 \log \max\{d, L\}
        + 542\, U^2 (\lfloor\beta\rfloor + 1)^4
        (d_{in} T)^{2 \lfloor\beta\rfloor + (\beta \vee 1)} (JI)^{-4\beta / (d_{in} T)},

    with d and L of `network_size` for one output, :math:`N \gtrsim d^2 L^2 \log \max\{d, L\}`.

    Parameters
    ----------
    n : int
        N, the number of independent sequences, at least 2; a whole number of any size.
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
    The bound explains rates, not the error of one fit: as d contains 3 to the power d_in T, the
    condition on N is out of reach but for the smallest d_in T. The constant 542 is 3/2 times
    the square of the 19 of Theorem 3, 541.5, rounded up.

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
            "estimation": log_estimation(n, size.width, size.depth, radius, factor),
            "approximation": math.log(542) + 2 * log_approximation(*task, radius),
        },
        conditions={"U >= 1": radius >= 1, "d_s is even": block_size % 2 == 0}
        | sample_condition(n, size.width, size.depth),
        assumptions=("f_0 lies in the Hoelder class of smoothness beta and radius U", ASSUMPTION_1),
        constants={"C": factor},
    )
