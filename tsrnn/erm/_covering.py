"""How large a class of networks is: the covering number of Lemma C.3."""

from __future__ import annotations

from tsrnn.contract import number, positive_integer
from tsrnn.erm._bound import Bound, log_complexity, log_of, sample_condition
from tsrnn.erm._estimation import sample_size

__all__ = ["log_covering_number"]


def log_covering_number(
    n: int, radius: float, width: int, depth: int, bound: float = 1.0, *, constant: float = 1.0
) -> Bound:
    r"""Bound of Lemma C.3 on the logarithm of the uniform covering number of a network class.

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
        Of the logarithm of the covering number: ``value`` bounds :math:`\log \mathcal{N}_\infty`
        and ``log_value`` is the logarithm of that.

    Raises
    ------
    TypeError, ValueError
        If a number is not of the kind described, or `radius` is not below N U.

    Notes
    -----
    C is not free of the length T, see the notes of `estimation_bound`.

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
        log_terms={"entropy": log_of(factor) + log_complexity(width, depth) + log_of(log_ratio)},
        conditions=sample_condition(n, width, depth),
        constants={"C": factor},
    )
