"""Recurrence features: a recurrent matrix read as decays and damped waves."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.interpret._closed_form import Rows, structure_of_ones, structure_of_twos
from tsrnn.interpret._jordan import default_tolerance, jordan_structure
from tsrnn.interpret._matrices import Blocks, recurrent_matrices
from tsrnn.interpret._time_unit import TimeUnit, time_unit

__all__ = ["recurrence_features"]


def recurrence_features(model: Any, *, freq: Any = None, tol: float | None = None) -> pd.DataFrame:
    r"""Read recurrent matrices as recurrence features.

    Over the real numbers every square matrix is similar to a direct sum of real Jordan blocks

    .. math:: W = B J B^{-1}, \qquad J = \bigoplus_r J_{n_r}(\lambda_r) \oplus
        \bigoplus_s C_{n_s}(\gamma_s, \theta_s).

    A real eigenvalue :math:`\lambda` gives a feature of type R-n, an exponential decay; a
    conjugate pair :math:`\gamma e^{\pm i\theta}` one of type C-n, a damped wave. Their powers are
    the `lag_curves`. An eigenvalue zero is of type "zero": it carries an input on for n - 1 steps
    and then nothing.

    Parameters
    ----------
    model : array_like, torch module or fitted forecaster
        A square matrix (d, d); a stack (K, d_s, d_s) of the blocks of one layer; a
        ``torch.nn.RNN`` or ``RNNCell``; an object whose ``recurrent_blocks()`` gives such a stack
        for each layer, or a dict of them by the name of the matrix; or a fitted forecaster.
    freq : str, int or pandas offset, optional
        Frequency of the data, by which half-lives and periods get a unit of time. A fitted
        forecaster knows its own.
    tol : float, optional
        Size of a perturbation of a block W, relative to its spectral norm, that is regarded as no
        change; in [0, 1). The default is 10 sqrt(d) times the machine epsilon of the type in which
        the block is stored (2e-15 for 2 x 2 blocks in float64, 2e-6 in float32).

    Returns
    -------
    DataFrame
        One row a feature, by network, layer, matrix, block and falling modulus, with the columns

        - ``network``: counted from 1, only where there are several, as in an ensemble;
        - ``layer``, ``block``: counted from 1, layers in every network anew;
        - ``matrix``: "W_f", "A_z", ..., only where a layer has several recurrent matrices, as a
          gated one;
        - ``type``: "R-1", "R-2", ..., "C-1", ..., "zero";
        - ``order``: n, the order of the Jordan block. R-n takes n of the d_s rows, C-n takes 2n
          and "zero" takes n;
        - ``modulus``: gamma;
        - ``angle``: theta in radians; 0 for a positive real eigenvalue, pi for a negative one,
          NaN for zero;
        - ``half_life``: log(1/2) / log(gamma). It is infinite at gamma = 1 (within `tol`) and 0
          for zero. At gamma > 1 the feature grows, has no half-life, and the entry is NaN;
        - ``period``: 2 pi / theta; infinite for a positive real eigenvalue, 2 steps for a negative
          one, NaN for zero;
        - ``share``: share of the block, the same in all rows of a block, as the forecaster's
          ``block_shares_()`` gives it; NaN where there is none;
        - ``beyond_sample``: whether the half-life, or a finite period, is longer than the longest
          series fitted to. Data that do not show one half-life do not identify it. Only of a
          fitted model.

        ``attrs["time_unit"]`` says in what half_life and period are given ("steps" if no frequency
        is known) and ``attrs["time_step"]`` how many of them one step is: with ``freq="15min"``
        they are in minutes, and a step is 15. Of a fitted model ``attrs["sample_length"]`` is the
        length of the longest series in this unit.

        Networks of an ensemble that contribute nothing have no rows.

    Raises
    ------
    TypeError
        If the model is of no known kind or does not hold real numbers.
    ValueError
        If a matrix is empty, not square or not finite, or `freq` or `tol` is not understood.
    tsrnn.interpret.UninformativeNetworkError
        If the network of a fitted model contributes nothing (``network_active_`` is False): its
        matrices are start values drawn at random, or those of a regressor that predicts no better
        than a constant. Start values can be read from ``model.network_``.
    sklearn.exceptions.NotFittedError
        If the model is a forecaster that has not been fitted.

    Notes
    -----
    Half-life and period belong to W itself, the recurrence linearised at the hidden state zero. A
    tanh multiplies W by its slope, at most 1, so away from zero memory fades faster. For n > 1
    the half-life is that of the factor gamma^j; the curves have powers of j besides. Matrices of
    a gated layer are read one by one: what its state remembers follows from the gates as well.

    Rounding turns one n-fold defective eigenvalue into n simple ones on a circle with a radius of
    about tol^(1/n), much wider than `tol`. Which eigenvalues are one is therefore not read from
    their distances: a set of m neighbours with mean mu counts as one eigenvalue if the nullities
    of (W - mu I)^j reach m, where singular values up to tol ||W|| count as zero. The features are
    so those of a matrix within the order of tol ||W|| of W. A random matrix has orders of 1 with
    probability one.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN: An Interpretable and Parallelizable Recurrent Neural
    Network for Time-Dependent Data, Section 3.2 and Proposition 1. There the 2 x 2 block lacks
    the factor gamma and zero eigenvalues are taken as semisimple.
    Horn and Johnson (2012), Matrix Analysis, Section 3.4.1.

    Examples
    --------
    >>> from tsrnn.interpret import recurrence_features
    >>> features = recurrence_features([[0.9, 0.0], [0.0, -0.5]], freq="MS")
    >>> features[["type", "modulus", "half_life", "period"]].round(2)
      type  modulus  half_life  period
    0  R-1      0.9       6.58     inf
    1  R-1      0.5       1.00     2.0
    >>> features.attrs["time_unit"]
    'months'
    """
    if tol is not None and not (isinstance(tol, numbers.Real) and 0 <= tol < 1):
        raise ValueError(
            f"`tol` must be a number in [0, 1), relative to the norm of a block; got {tol!r}."
        )
    found = recurrent_matrices(model)
    unit = time_unit(found.freq if freq is None else freq)
    tables = [_table(blocks, found.shares[blocks.place], tol, unit) for blocks in found.matrices]
    features = pd.concat(tables, ignore_index=True)
    features.attrs = {"time_unit": unit.name, "time_step": unit.step}
    if found.sample_length is not None:
        length = found.sample_length * unit.step
        period = features["period"].replace(np.inf, 0.0)  # of what does not turn
        features["beyond_sample"] = (features["half_life"] > length) | (period > length)
        features.attrs["sample_length"] = length
    return features


def _table(
    blocks: Blocks, share: np.ndarray | None, tol: float | None, unit: TimeUnit
) -> pd.DataFrame:
    tol = default_tolerance(blocks.values.shape[-1], blocks.eps) if tol is None else tol
    block, eigenvalue, order = _sorted(_structure(blocks.values, tol))
    modulus = np.abs(eigenvalue)
    angle = np.where(modulus == 0, np.nan, np.angle(eigenvalue))
    numbered = {} if blocks.network is None else {"network": blocks.network}
    named = {} if blocks.matrix is None else {"matrix": blocks.matrix}
    return pd.DataFrame(
        {
            **numbered,
            "layer": blocks.layer,
            **named,
            "block": block + 1,
            "type": _types(eigenvalue, order),
            "order": order,
            "modulus": modulus,
            "angle": angle,
            "half_life": _half_life(modulus, tol) * unit.step,
            "period": _period(angle) * unit.step,
            "share": np.nan if share is None else share[block],
        }
    )


def _structure(stack: np.ndarray, tol: float) -> Rows:
    if stack.shape[-1] == 1:
        return structure_of_ones(stack)
    if stack.shape[-1] == 2:
        return structure_of_twos(stack, tol)
    blocks = [
        (k, *block) for k, matrix in enumerate(stack) for block in jordan_structure(matrix, tol)
    ]
    index, eigenvalue, order = zip(*blocks, strict=True)
    return np.array(index), np.array(eigenvalue, dtype=complex), np.array(order)


def _sorted(rows: Rows) -> Rows:
    """By block, then falling modulus, angle and falling order."""
    index, eigenvalue, order = rows
    # Adding 0 turns -0 into 0: a real number must not get the angle -pi.
    eigenvalue = eigenvalue.real + 0.0 + 1j * (eigenvalue.imag + 0.0)
    by = np.lexsort((-order, np.angle(eigenvalue), -np.abs(eigenvalue), index))
    return index[by], eigenvalue[by], order[by]


def _types(eigenvalue: np.ndarray, order: np.ndarray) -> list[str]:
    letters = np.where(eigenvalue.imag > 0, "C", "R")
    return [
        "zero" if value == 0 else f"{letter}-{n}"
        for value, letter, n in zip(eigenvalue, letters, order, strict=True)
    ]


def _half_life(modulus: np.ndarray, tol: float) -> np.ndarray:
    """log(1/2) / log(modulus) in steps; moduli within tol of 1 count as 1."""
    with np.errstate(divide="ignore"):
        half_life = np.divide(np.log(0.5), np.log(modulus))
    half_life = np.where(modulus > 1, np.nan, np.abs(half_life))
    return np.where(np.abs(modulus - 1) <= tol, np.inf, half_life)


def _period(angle: np.ndarray) -> np.ndarray:
    """2 pi / angle in steps."""
    with np.errstate(divide="ignore"):
        return 2 * np.pi / angle
