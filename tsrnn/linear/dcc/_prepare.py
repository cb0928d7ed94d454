"""Series made ready for estimation: regressions of the mean, side by side and padded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tsrnn.linear._mean import Mean, Regression, regression


@dataclass(frozen=True)
class Design:
    """S series of n variables as regressions, padded with zeros to a common length T.

    Parameters
    ----------
    response : array of shape (S, T, n)
    regressors : array of shape (S, T, r)
    coefficients : array of shape (S, n, r)
        By least squares.
    beta : array of shape (S, n, rank)
        Cointegrating vectors.
    lengths : integer array of shape (S,)
    """

    response: np.ndarray
    regressors: np.ndarray
    coefficients: np.ndarray
    beta: np.ndarray
    lengths: np.ndarray

    @property
    def observed(self) -> np.ndarray:
        """Mask (S, T) of the rows of each series."""
        return np.arange(self.response.shape[1]) < self.lengths[:, None]

    @property
    def ragged(self) -> bool:
        """Whether series differ in length."""
        return len(np.unique(self.lengths)) > 1

    def residuals(self, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Residuals at coefficients (S, n, r), a row (S n, T) each variable, and their lengths."""
        e = self.response - self.regressors @ coefficients.swapaxes(1, 2)
        rows = np.ascontiguousarray(e.swapaxes(1, 2)).reshape(-1, e.shape[1])
        return rows, np.repeat(self.lengths, e.shape[2])

    def by_series(self, rows: np.ndarray, fill: float) -> np.ndarray:
        """Rows (S n, T) of the variables as (S, T, n), with a value after the end of a series."""
        s, steps, n = self.response.shape
        values = rows.reshape(s, n, steps).swapaxes(1, 2)
        return np.where(self.observed[:, :, None], values, fill)

    def select(self, series: np.ndarray) -> Design:
        """Design of some series, by number."""
        return Design(*(getattr(self, name)[series] for name in self.__dataclass_fields__))


def design_of(
    mean: Mean, series: Sequence[np.ndarray], beta: np.ndarray | None = None
) -> tuple[np.ndarray, Design, dict[int, str]]:
    """Numbers and design of the series (T_i, n) that can be used, and why the others cannot.

    Cointegrating vectors (S, n, rank) are estimated where they are not given.
    """
    regressions: dict[int, Regression] = {}
    reasons = {}
    for i, values in enumerate(series):
        try:
            regressions[i] = regression(mean, values, None if beta is None else beta[i])
        except ValueError as error:
            reasons[i] = str(error)
    parts = list(regressions.values())
    n = series[0].shape[1]
    r, rank = len(mean.names(range(n))) // n, mean.n_relations
    lengths = np.array([len(part.response) for part in parts], dtype=np.int64)
    longest = int(lengths.max(initial=0))
    response, regressors = np.zeros((len(parts), longest, n)), np.zeros((len(parts), longest, r))
    for i, part in enumerate(parts):
        response[i, : lengths[i]], regressors[i, : lengths[i]] = part.response, part.regressors
    design = Design(
        response,
        regressors,
        np.array([part.coefficients for part in parts]).reshape(len(parts), n, r),
        np.array([part.beta for part in parts]).reshape(len(parts), n, rank),
        lengths,
    )
    return np.array(list(regressions), dtype=np.int64), design, reasons
