"""How seldom a random matrix has real eigenvalues only: Proposition 2."""

from __future__ import annotations

import math

from tsrnn.contract import flag, positive_integer

__all__ = ["probability_real_spectrum"]


def probability_real_spectrum(d: int, *, log: bool = False) -> float:
    r"""Probability :math:`2^{-d(d-1)/4}` that a random matrix has real eigenvalues only.

    The matrix is d x d with independent standard normal entries. A recurrent network has
    recurrence features of type R-1 only if the eigenvalues of its recurrent matrix are real and
    not defective, so this is also an upper bound of the probability of that.

    Parameters
    ----------
    d : int
        Hidden size.
    log : bool, default False
        Return the natural logarithm; the probability itself underflows to 0 from d = 67 on.

    Returns
    -------
    float

    Raises
    ------
    TypeError, ValueError
        If `d` is no positive integer.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, Proposition 2; Edelman (1997), Journal of Multivariate
    Analysis 60:203-232, Corollary 7.1.

    Examples
    --------
    >>> from tsrnn.erm import probability_real_spectrum
    >>> round(probability_real_spectrum(2), 4), probability_real_spectrum(4)
    (0.7071, 0.125)
    """
    size = positive_integer("d", d)
    power = -size * (size - 1) / 4
    return power * math.log(2) if flag("log", log) else 2.0**power
