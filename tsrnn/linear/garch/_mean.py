"""Conditional means: zero, constant, autoregressive, ARMA."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

Fields = tuple[Tensor, ...]


@dataclass(frozen=True)
class Mean:
    r"""One equation for all of them.

    .. math:: y_t = c + \sum_i \phi_i y_{t-i} + \sum_j \theta_j e_{t-j} + e_t

    A step reads y and its lags as inputs. What past residuals add to coming means is memory:
    field j holds the part of :math:`\sum_i \theta_i e_{t-i}` that is known j steps before,
    zero at the start.

    Parameters
    ----------
    constant : bool
    lags : tuple of int, optional
        Lags i of y.
    n_ma : int, default 0
        Number of lags of the residual.
    """

    constant: bool
    lags: tuple[int, ...] = ()
    n_ma: int = 0

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Parameters: ``mu`` alone, else ``Const, y[1], ..., ma.L1, ...``."""
        constant = "Const" if self.lags or self.n_ma else "mu"
        return (
            *((constant,) if self.constant else ()),
            *(f"y[{lag}]" for lag in self.lags),
            *(f"ma.L{j}" for j in range(1, self.n_ma + 1)),
        )

    @cached_property
    def n_dropped(self) -> int:
        """First observations that have not all lags, and are left out of the likelihood."""
        return max(self.lags, default=0)

    def predicted(self, memory: Fields, lagged: Fields, params: Fields) -> Tensor | float:
        """Conditional mean from the memory and the lags of y."""
        constant = [*params[: self.constant]]
        slopes = params[self.constant : self.constant + len(self.lags)]
        terms = constant + [phi * y for phi, y in zip(slopes, lagged, strict=True)]
        return sum([*terms[1:], *memory[:1]], start=terms[0]) if terms else sum(memory[:1])

    def advance(self, memory: Fields, e: Tensor, params: Fields) -> Fields:
        """Memory after a residual."""
        theta = params[len(params) - self.n_ma :]
        new = [theta_j * e for theta_j in theta]
        return tuple(a + b for a, b in zip(new, memory[1:], strict=False)) + tuple(new[-1:])
