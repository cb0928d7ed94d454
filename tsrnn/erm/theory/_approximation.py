"""Approximation of a smooth function by deep networks of small blocks: Theorem 3."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tsrnn.contract import number, positive_integer
from tsrnn.erm.theory._bound import Bound, log_of

__all__ = ["NetworkSize", "approximation_bound", "log_approximation", "network_size"]


@dataclass(frozen=True, repr=False)
class NetworkSize:
    """Width and depth of a network, as exact integers of any size.

    Attributes
    ----------
    width : int
        d, the hidden size of every layer.
    depth : int
        L, the number of recurrent layers.

    Examples
    --------
    >>> from tsrnn.erm import NetworkSize
    >>> NetworkSize(width=24, depth=3)
    NetworkSize(width=24, depth=3)
    """

    width: int
    depth: int

    @property
    def log_width(self) -> float:
        """Natural logarithm of the width."""
        return log_of(self.width)

    @property
    def log_depth(self) -> float:
        """Natural logarithm of the depth."""
        return log_of(self.depth)

    def __repr__(self) -> str:
        return f"NetworkSize(width={_digits(self.width)}, depth={_digits(self.depth)})"


def network_size(
    beta: float,
    d_in: int,
    length: int,
    width_factor: int,
    depth_factor: int,
    *,
    d_out: int = 1,
    block_size: int = 2,
) -> NetworkSize:
    r"""Return width and depth of Theorem 3 for the approximation of a beta-smooth function.

    .. math::

        d &= 76 (\lfloor\beta\rfloor + 1)^2\, 3^{d_{in} T}\, d_{in}^{\lfloor\beta\rfloor + 2}\,
        d_{out}\, T^{\lfloor\beta\rfloor + 1}\, J \lceil \log_2(8J) \rceil + d_s, \\
        L &= 42 (\lfloor\beta\rfloor + 1)^2\, I \lceil \log_2(8I) \rceil + 6 d_{in} T.

    Parameters
    ----------
    beta : float
        Smoothness index beta > 0 of the Hoelder class.
    d_in : int
        Inputs a time step, d_in.
    length : int
        Time steps T.
    width_factor : int
        J, any positive integer.
    depth_factor : int
        I, any positive integer.
    d_out : int, default 1
        Outputs, d_out.
    block_size : int, default 2
        Block size d_s. The theorem assumes that it divides d; here the width is rounded up to the
        next multiple.

    Returns
    -------
    NetworkSize
        Exact integers, as d grows like 3 to the power d_in T.

    Raises
    ------
    TypeError, ValueError
        If beta is not positive or another argument no positive integer.

    Notes
    -----
    :math:`\lfloor\beta\rfloor` is the largest integer not above beta. Definition 1 writes
    beta = k + omega with omega in (0, 1], so that k = beta - 1 for an integer beta. The floor of
    the theorem is then k + 1 and gives a larger network.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, Theorem 3; the proof is in supplement C.1.

    Examples
    --------
    >>> from tsrnn.erm import network_size
    >>> network_size(0.5, d_in=1, length=1, width_factor=1, depth_factor=1)
    NetworkSize(width=686, depth=132)
    """
    smooth = _floor(beta) + 1
    inputs, steps = positive_integer("d_in", d_in), positive_integer("length", length)
    outputs = positive_integer("d_out", d_out)
    block = positive_integer("block_size", block_size)
    # Exact integers of Python, since floats overflow from d_in T of about 650 on.
    cube = 3 ** (inputs * steps) * inputs ** (smooth + 1) * outputs * steps**smooth
    width = 76 * smooth**2 * cube * _with_logarithm("width_factor", width_factor) + block
    depth = 42 * smooth**2 * _with_logarithm("depth_factor", depth_factor) + 6 * inputs * steps
    return NetworkSize(width=-(-width // block) * block, depth=depth)


def approximation_bound(
    beta: float, d_in: int, length: int, width_factor: int, depth_factor: int, *, bound: float = 1.0
) -> Bound:
    r"""Return the bound of Theorem 3 on the approximation error of a network of `network_size`.

    .. math::

        \sup_{X \in [0, 1]^{d_{in} \times T}} \|\phi(X) - f^{(T)}(X)\|_\infty \le
        19 U (\lfloor\beta\rfloor + 1)^2 (d_{in} T)^{\lfloor\beta\rfloor + (\beta \vee 1)/2}
        (JI)^{-2\beta / (d_{in} T)}.

    Parameters
    ----------
    beta, d_in, length, width_factor, depth_factor
        As in `network_size`.
    bound : float, default 1.0
        Radius U > 0 of the Hoelder class, which also bounds the outputs of the network.

    Returns
    -------
    Bound
        Bound with the single term "approximation".

    Raises
    ------
    TypeError, ValueError
        If beta or `bound` is not positive or another argument no positive integer.

    Notes
    -----
    The constant 0 already has an error of at most U. The bound lies below U only if JI is
    above :math:`(19 (\lfloor\beta\rfloor + 1)^2 (d_{in} T)^{\lfloor\beta\rfloor +
    (\beta \vee 1)/2})^{d_{in} T / (2\beta)}`.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, Theorem 3.

    Examples
    --------
    >>> from tsrnn.erm import approximation_bound
    >>> round(approximation_bound(1.0, 1, 1, width_factor=10, depth_factor=10).value, 10)
    0.0076
    >>> long = approximation_bound(1.0, 10, 1000, width_factor=10, depth_factor=10)
    >>> round(long.log_value, 3)
    18.145
    """
    log = log_approximation(beta, d_in, length, width_factor, depth_factor, bound)
    return Bound(
        theorem="Theorem 3",
        quantity="sup |phi(X) - f(X)| over [0, 1]^(d_in x T), for the best network phi",
        log_terms={"approximation": math.log(19) + log},
        assumptions=("f lies in the Hoelder class of smoothness beta and radius U",),
    )


def log_approximation(
    beta: Any, d_in: Any, length: Any, width_factor: Any, depth_factor: Any, bound: Any
) -> float:
    """Return the logarithm of the right side of Theorem 3 without the factor 19."""
    smooth = _floor(beta) + 1
    inputs = positive_integer("d_in", d_in) * positive_integer("length", length)
    log_width = log_of(positive_integer("width_factor", width_factor))
    log_factors = log_width + log_of(positive_integer("depth_factor", depth_factor))
    log_radius = log_of(number("bound", bound, lowest=0.0, open_=True))
    power = smooth - 1 + max(float(beta), 1.0) / 2
    log_constant = log_radius + 2 * log_of(smooth) + power * log_of(inputs)
    return log_constant - 2 * float(beta) / inputs * log_factors


def _floor(beta: Any) -> int:
    return math.floor(number("beta", beta, lowest=0.0, open_=True))


def _with_logarithm(name: str, factor: Any) -> int:
    """Return F ceil(log2(8 F)) exactly."""
    value = positive_integer(name, factor)
    return value * (8 * value - 1).bit_length()


def _digits(value: int) -> str:
    """Return an integer as text, a large one as a power of ten."""
    log10 = log_of(value) / math.log(10)
    return str(value) if log10 < 20 else f"10^{log10:.1f}"
