"""What an ARMA model is, before any data."""

from __future__ import annotations

from dataclasses import dataclass

TRENDS = ("n", "c", "t", "ct")


@dataclass(frozen=True)
class Specification:
    """Orders, trend and likelihood of an ARMA with regressors.

    Parameters
    ----------
    p, d, q : int
    trend : {"n", "c", "t", "ct"}
    exact : bool
        Whether the likelihood is the exact one.
    regressors : tuple of str
        Names of the exogenous columns.
    """

    p: int
    d: int
    q: int
    trend: str
    exact: bool
    regressors: tuple[str, ...] = ()

    @property
    def constant(self) -> bool:
        """Whether the differenced series have a free mean."""
        return ("c" if self.d == 0 else "t") in self.trend and self.d < 2

    @property
    def slope(self) -> bool:
        """Whether there is a trend besides the mean of the differenced series."""
        return "t" in self.trend and self.d == 0

    @property
    def trend_names(self) -> tuple[str, ...]:
        """Names of the parameters of the trend."""
        return (
            *(["const"] if "c" in self.trend else []),
            *(["drift"] if "t" in self.trend else []),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters, as statsmodels spells them."""
        ar = (f"ar.L{i}" for i in range(1, self.p + 1))
        ma = (f"ma.L{i}" for i in range(1, self.q + 1))
        return (*self.trend_names, *self.regressors, *ar, *ma, "sigma2")

    @property
    def n_mean(self) -> int:
        """Parameters of trend and regressors."""
        return len(self.trend_names) + len(self.regressors)

    @property
    def fewest(self) -> int:
        """Observations that a series must have, those lost by differencing included."""
        return self.d + len(self.names) + max(self.p, self.q) + 1
