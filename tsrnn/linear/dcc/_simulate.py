"""Draws from models of conditional correlation."""

from __future__ import annotations

import numpy as np

from tsrnn.linear._multivariate import scaled_to_unit_diagonal


def simulate_correlated(
    target: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    *,
    corrected: bool,
    shocks: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Standardised residuals :math:`z_t = R_t^{1/2} \epsilon_t` of DCC, cDCC or CCC.

    Parameters
    ----------
    target : array of shape (U, n, n)
        S.
    a : array of shape (U, p)
    b : array of shape (U, q)
    corrected : bool
    shocks : array of shape (U, T, n)
        Independent innovations of variance one.

    Returns
    -------
    z : array of shape (U, T, n)
    correlations : array of shape (U, T, n, n)
    """
    z, r = np.empty_like(shocks), np.empty((*shocks.shape, target.shape[-1]))
    path = Walk(target, a, b, corrected)
    for t in range(shocks.shape[1]):
        r[:, t] = path.correlation
        root = np.linalg.cholesky(r[:, t])
        z[:, t] = (root @ shocks[:, t, :, None])[..., 0]
        path.step(z[:, t])
    return z, r


class Walk:
    """The recursion one step after the other, from its start or from a state.

    Parameters
    ----------
    target : array of shape (U, n, n)
    a, b : arrays of shape (U, p) and (U, q)
    corrected : bool
    outer : array of shape (U, p, n, n), optional
        Last outer products, the latest first; S by default.
    q : array of shape (U, max(q, 1), n, n), optional
        This Q and those before, the latest first; S by default.
    """

    def __init__(
        self,
        target: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        corrected: bool,
        outer: np.ndarray | None = None,
        q: np.ndarray | None = None,
    ) -> None:
        self._target, self._a, self._b, self._corrected = target, a, b, corrected
        lags = a.shape[1], max(b.shape[1], 1)
        self.outer, self.q = (
            np.repeat(target[:, None], lag, 1) if given is None else given.copy()
            for given, lag in zip((outer, q), lags, strict=True)
        )

    @property
    def correlation(self) -> np.ndarray:
        """Correlations (U, n, n) of the step that comes."""
        return scaled_to_unit_diagonal(self.q[:, 0])

    def step(self, z: np.ndarray) -> None:
        """Take in the standardised residuals (U, n) of that step."""
        u = z
        if self._corrected:
            u = np.sqrt(np.diagonal(self.q[:, 0], axis1=1, axis2=2)) * z
        self._go_on(u[:, :, None] * u[:, None, :])

    def expect(self) -> None:
        """Go on as if the outer product were what Q says: the step of a forecast."""
        self._go_on(self.q[:, 0])

    def _go_on(self, outer: np.ndarray) -> None:
        if not self._a.shape[1]:
            return
        self.outer = np.concatenate([outer[:, None], self.outer[:, :-1]], 1)
        target = self._target[:, None]
        new = self._target + (self._a[:, :, None, None] * (self.outer - target)).sum(1)
        if self._b.shape[1]:
            new = new + (self._b[:, :, None, None] * (self.q - target)).sum(1)
        self.q = np.concatenate([new[:, None], self.q[:, :-1]], 1)
