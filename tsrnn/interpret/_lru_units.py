"""Choice of the number of states of a linear recurrent unit by the reconstruction error."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from tsrnn.interpret._checks import as_floats, is_count
from tsrnn.interpret._lru import singular_value_threshold
from tsrnn.layers import LRU

SHARES = (0.25, 0.5, 1.0, 2.0)  # default candidates for N, relative to the number of unknowns


class StateUnits(NamedTuple):
    """Chosen number of states, with the errors of all candidates.

    Attributes
    ----------
    state_units : int or None
        Smallest candidate N that meets the tolerances; None if none does.
    table : DataFrame
        Columns ``condition_number``, the median over draws, and ``error``, the expected root mean
        squared error of the reconstructed inputs over their root mean square, by N.
    error_by_step : DataFrame of shape (n_candidates, length)
        Error by step in time order.

    Examples
    --------
    >>> from tsrnn.interpret import choose_state_units
    >>> choice = choose_state_units(16, roots_of_unity=True)
    >>> choice.state_units, choice.error_by_step.shape
    (16, (4, 16))
    """

    state_units: int | None
    table: pd.DataFrame
    error_by_step: pd.DataFrame


def choose_state_units(
    length: int,
    *,
    basis: Any = None,
    units: Sequence[int] | None = None,
    r_min: float = 0.0,
    r_max: float = 1.0,
    max_phase: float = 2 * math.pi,
    roots_of_unity: bool = False,
    noise: float = 2.0**-23,
    tolerance: float = 0.01,
    max_condition: float = math.inf,
    n_draws: int = 10,
    random_state: int | None = None,
) -> StateUnits:
    r"""Choose the number N of states from which the inputs of `length` steps can be reconstructed.

    The state after k steps is :math:`x = V_k u_{1:k}` with the Vandermonde matrix of N eigenvalues,
    equation (4) of Orvieto et al., or :math:`V_k \Psi_k \alpha` for inputs that are combinations of
    P functions, equation (6). With :math:`A = V_k \Psi_k = U S W'`, white coefficients and state
    errors of standard deviation s, a truncated inverse has the error

    .. math:: E (\hat u_t - u_t)^2 = \sum_{i \text{ lost}} (\Psi w_i)_t^2
        + s^2 \sum_{i \text{ kept}} (\Psi w_i)_t^2 / S_i^2.

    Parameters
    ----------
    length : int
        Number k of steps.
    basis : array_like of shape (P, length), optional
        Functions :math:`\Psi` that inputs are combinations of; by default inputs are arbitrary.
    units : sequence of int, optional
        Candidates for N; by default 1/4, 1/2, 1 and 2 times the number of unknowns, `length` or P.
    r_min, r_max, max_phase : float
        Ring of the drawn eigenvalues, as in `tsrnn.layers.LRU`.
    roots_of_unity : bool, default False
        True for the N-th roots of unity as eigenvalues, instead of draws.
    noise : float, default 2**-23
        Error of a state relative to the root mean square of states; by default the rounding of
        float32.
    tolerance : float, default 0.01
        Largest error, see `StateUnits`.
    max_condition : float, default infinity
        Largest condition number.
    n_draws : int, default 10
        Number of draws of the eigenvalues, over which mean squared errors are averaged.
    random_state : int, optional
        Seed of the draws; None for a new one.

    Returns
    -------
    StateUnits

    Raises
    ------
    ValueError
        If an argument is outside its range, or the basis has another shape.

    Notes
    -----
    Inputs are scalar, with B = (1, ..., 1); M inputs need N states each, equation (15). As in
    `reconstruct_input`, real and imaginary parts are 2 N equations for real inputs, so that N of
    half the unknowns may suffice. The paper solves N complex equations, and its condition numbers
    (Figures 4 and 6) refer to the squared matrix. Singular values are dropped as in
    `reconstruct_input`, with `noise` as the rounding.

    References
    ----------
    Orvieto, De, Gulcehre, Pascanu and Smith (2023), On the Universality of Linear Recurrences
    Followed by Nonlinear Projections, Section 3 and Appendix E.1.

    Examples
    --------
    >>> from tsrnn.interpret import choose_state_units
    >>> wide = choose_state_units(32, r_min=0.95, random_state=0)
    >>> wide.state_units
    32
    >>> roots = choose_state_units(32, roots_of_unity=True, units=[31, 32, 64])
    >>> roots.table["condition_number"].round(2).tolist()
    [inf, 1.0, 1.0]
    >>> roots.table["error"].round(2).tolist()
    [0.18, 0.0, 0.0]
    """
    if not is_count(length):
        raise ValueError(f"length must be a positive integer; got {length!r}")
    if not is_count(n_draws):
        raise ValueError(f"n_draws must be a positive integer; got {n_draws!r}")
    limits = {"noise": noise, "tolerance": tolerance, "max_condition": max_condition}
    for name, value in limits.items():
        if not isinstance(value, numbers.Real) or not value >= 0:
            raise ValueError(f"{name} must be a number of at least 0; got {value!r}")
    functions = np.eye(length) if basis is None else _checked_basis(basis, length).T  # (k, P)
    counts = _checked_units(units, functions.shape[1])
    if random_state is not None and not isinstance(random_state, numbers.Integral):
        raise ValueError(f"random_state must be an integer or None; got {random_state!r}")
    generator = torch.Generator()
    if random_state is None:
        generator.seed()
    else:
        generator.manual_seed(int(random_state))
    power = np.mean(functions**2) * functions.shape[1]  # mean square of the inputs
    conditions, errors = [], []
    for count in counts:
        drawn = []
        for _ in range(1 if roots_of_unity else n_draws):
            if roots_of_unity:
                eigenvalues = np.exp(2j * np.pi * np.arange(count) / count)
            else:
                eigenvalues = _draw(count, (r_min, r_max, max_phase), generator)
            drawn.append(_reading(eigenvalues, functions, float(noise)))
        conditions.append(np.median([condition for condition, _ in drawn]))
        errors.append(np.sqrt(np.mean([squares for _, squares in drawn], 0) / power))
    index = pd.Index(counts, name="state_units")
    steps = pd.RangeIndex(1, length + 1, name="step")
    by_step = pd.DataFrame(np.array(errors), index=index, columns=steps)
    total = np.sqrt((by_step**2).mean(axis=1))
    table = pd.DataFrame({"condition_number": conditions, "error": total}, index=index)
    meets = (table["error"] <= tolerance) & (table["condition_number"] <= max_condition)
    return StateUnits(int(index[meets][0]) if meets.any() else None, table, by_step)


def _reading(
    eigenvalues: np.ndarray, functions: np.ndarray, noise: float
) -> tuple[float, np.ndarray]:
    """Condition number, and expected squared error (k,) of the reconstructed inputs."""
    powers = eigenvalues[:, None] ** np.arange(len(functions) - 1, -1, -1)
    matrix = powers @ functions
    matrix = np.concatenate([matrix.real, matrix.imag])
    _, values, right = np.linalg.svd(matrix, full_matrices=False)
    kept = values > singular_value_threshold(matrix, noise, values[0])
    directions = (functions @ right[kept].T) ** 2  # (k, kept)
    lost = np.maximum((functions**2).sum(1) - directions.sum(1), 0.0)
    deviation = noise * np.sqrt(np.mean(matrix**2) * matrix.shape[1])
    determined = matrix.shape[0] >= matrix.shape[1] and values[-1] > 0
    # Conjugate roots of unity give the same equations twice, up to rounding.
    determined = determined and values[-1] > singular_value_threshold(
        matrix, np.finfo(float).eps, values[0]
    )
    condition = values[0] / values[-1] if determined else np.inf
    return float(condition), lost + deviation**2 * (directions / values[kept] ** 2).sum(1)


def _draw(count: int, ring: tuple[float, float, float], generator: torch.Generator) -> np.ndarray:
    """Eigenvalues of a newly initialised layer."""
    r_min, r_max, max_phase = ring
    with torch.random.fork_rng(devices=[]):
        layer = LRU(
            1, 1, state_units=count, r_min=r_min, r_max=r_max, max_phase=max_phase, mlp=False,
            dtype=torch.float64,
        )  # fmt: skip
    layer.reset_parameters(generator)
    return layer.eigenvalues()[0].numpy()


def _checked_units(units: Any, unknowns: int) -> list[int]:
    """Validate the candidates, in increasing order."""
    if units is None:
        return sorted({math.ceil(share * unknowns) for share in SHARES})
    counts = list(units) if isinstance(units, Sequence | np.ndarray) else [units]
    if not counts or not all(is_count(count) for count in counts) or isinstance(units, str):
        raise ValueError(f"units must be positive integers, one at least; got {units!r}")
    return sorted({int(count) for count in counts})


def _checked_basis(basis: Any, length: int) -> np.ndarray:
    functions = as_floats(basis)
    fits = functions is not None and functions.ndim == 2 and functions.shape[1] == length
    if functions is None or not fits or not len(functions):
        shape = repr(basis) if functions is None else functions.shape
        raise ValueError(f"basis must be numbers of shape (P, {length}) with P >= 1; got {shape}")
    if not np.isfinite(functions).all() or not functions.any():
        raise ValueError("basis must be finite numbers that are not all zero; got others")
    return functions
