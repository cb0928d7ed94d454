"""What a step of an ARMA is made for, and its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Form:
    """Orders of an ARMA and what enters its mean.

    Parameters
    ----------
    p, q : int
        Lags of u and of e.
    n_regressors : int
        Inputs after y, each with a coefficient, besides the constant.
    constant : bool
        Whether the first parameter is subtracted from every y.
    d : int
        Times that u is integrated, levels in the state; 0 for series that were differenced.
    masked : bool
        Whether the last input says by 1 or 0 which observations there are.
    """

    p: int
    q: int
    n_regressors: int = 0
    constant: bool = False
    d: int = 0
    masked: bool = False

    @property
    def r(self) -> int:
        """Dimension of the state of the ARMA, at least 1."""
        return max(self.p, self.q, 1)

    @property
    def dimension(self) -> int:
        """Dimension of the state with its levels."""
        return self.d + self.r

    @property
    def n_mean(self) -> int:
        """Parameters of the mean, which come first."""
        return self.constant + self.n_regressors

    @property
    def n_params(self) -> int:
        """Parameters besides sigma2: of the mean, phi, theta."""
        return self.n_mean + self.p + self.q

    @property
    def label(self) -> str:
        """For the names of cells."""
        mean = f"{self.n_regressors}{'c' * self.constant}{'m' * self.masked}"
        return f"{self.p}_{self.d}_{self.q}_{mean}"

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""
        regressors = (f"x{i}" for i in range(self.n_regressors))
        return ("y", *regressors, *(["observed"] if self.masked else []))

    @property
    def params(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return (
            *(["const"] if self.constant else []),
            *(f"beta{i}" for i in range(self.n_regressors)),
            *(f"phi{i + 1}" for i in range(self.p)),
            *(f"theta{i + 1}" for i in range(self.q)),
        )

    def split(self, params: tuple[T, ...]) -> tuple[tuple[T, ...], tuple[T, ...], tuple[T, ...]]:
        """Coefficients of the mean, phi and theta."""
        first, second = self.n_mean, self.n_mean + self.p
        return params[:first], params[first:second], params[second : second + self.q]


def lower_triangle(n: int) -> list[tuple[int, int]]:
    """Places (i, j) with j <= i, by rows."""
    return [(i, j) for i in range(n) for j in range(i + 1)]
