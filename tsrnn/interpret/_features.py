"""Recurrence features: decays and damped waves of recurrent matrices."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tsrnn.interpret._fitted import active_networks, fitted_time_unit
from tsrnn.interpret._jordan import default_tolerance, jordan_structures
from tsrnn.interpret._time_unit import TimeUnit

_ACCEPTED = (
    "a square matrix (d, d), a stack of them (K, d, d), a torch.nn.RNN or RNNCell, an object with "
    "recurrent_blocks() such as a layer of tsrnn.layers, or a fitted forecaster"
)


def recurrence_features(model: Any, *, freq: Any = None, tol: float | None = None) -> pd.DataFrame:
    r"""Read recurrent matrices as recurrence features.

    Over the real numbers every square matrix is similar to a direct sum of real Jordan blocks

    .. math:: W = B J B^{-1}, \qquad J = \bigoplus_r J_{n_r}(\lambda_r) \oplus
        \bigoplus_s C_{n_s}(\gamma_s, \theta_s).

    A real eigenvalue :math:`\lambda` gives a feature of type R-n, an exponential decay; a
    conjugate pair :math:`\gamma e^{\pm i\theta}` gives type C-n, a damped wave. Their powers are
    the `lag_curves`. The eigenvalue zero has type "zero": it keeps an input for n - 1 steps only.

    Parameters
    ----------
    model : array_like, torch module or fitted forecaster
        A square matrix (d, d); a stack (K, d_s, d_s) of the blocks of one layer; a
        ``torch.nn.RNN`` or ``RNNCell``; an object whose ``recurrent_blocks()`` returns such a stack
        for each layer, or a dict of stacks by the name of the matrix; or a fitted forecaster.
    freq : str, int or pandas offset, optional
        Frequency of the data, which sets the unit of half-lives and periods; by default the
        frequency of a fitted forecaster.
    tol : float, optional
        Size of a negligible perturbation of a block W, relative to its spectral norm, in [0, 1).
        The default is 10 sqrt(d) times the machine epsilon of the stored dtype (2e-15 for 2 x 2
        blocks in float64, 2e-6 in float32).

    Returns
    -------
    DataFrame
        One row per feature, ordered by network, layer, matrix, block and decreasing modulus, with
        the columns

        - ``network``: counted from 1, if there are several, as in an ensemble;
        - ``layer``, ``block``: counted from 1, layers within every network;
        - ``matrix``: "W_f", "A_z", ..., if a layer has several recurrent matrices, like a gated
          one;
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
        - ``share``: share of the block from the forecaster's ``block_shares_()``, equal in all rows
          of a block; NaN if unknown;
        - ``beyond_sample``: True if the half-life or a finite period is longer than the longest
          fitted series, which then does not identify it. For fitted models only.

        ``attrs["time_unit"]`` is the unit of half_life and period ("steps" if no frequency is
        known), ``attrs["time_step"]`` the length of a step in this unit: minutes and 15 for
        ``freq="15min"``. For a fitted model ``attrs["sample_length"]`` is the length of the longest
        series in this unit.

        Networks of an ensemble that contribute nothing have no rows.

    Raises
    ------
    TypeError
        If the model has an unknown type or does not hold real numbers.
    ValueError
        If a matrix is empty, not square or not finite, or `freq` or `tol` is invalid.
    tsrnn.interpret.UninformativeNetworkError
        If the network of a fitted model contributes nothing (``network_active_`` is False): its
        matrices are random start values, or its regressor predicts no better than a constant.
        ``model.network_`` still gives access to start values.
    sklearn.exceptions.NotFittedError
        If the model is a forecaster that has not been fitted.

    Notes
    -----
    Half-life and period belong to W, the recurrence linearised at the hidden state zero. A tanh
    multiplies W by its slope, at most 1, so that memory fades faster away from zero. For n > 1 the
    half-life is that of the factor gamma^j; the curves also have powers of j. Matrices of a gated
    layer are read one by one, while the memory of its state also depends on the gates.

    Rounding turns one n-fold defective eigenvalue into n simple ones on a circle with a radius of
    about tol^(1/n), much larger than `tol`. Distances therefore do not identify multiple
    eigenvalues: m neighbours with mean mu count as one eigenvalue if the nullities of (W - mu I)^j
    reach m, with singular values up to tol ||W|| counted as zero. The features are exact for a
    matrix within the order of tol ||W|| of W. A random matrix has orders of 1 with probability
    one.

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
    if isinstance(model, type):
        raise TypeError(f"`model` must be {_ACCEPTED}; got the class {model.__name__} itself.")
    networks = active_networks(model, "recurrence_features")
    shares = model.block_shares_() if callable(getattr(model, "block_shares_", None)) else None
    stacks = [
        stack
        if number is None
        else stack._replace(label=f"{stack.label} of network {number}", network=number)
        for number, network in networks
        for stack in _stacks(network)
    ]
    if not stacks:
        raise ValueError(f"this {type(model).__name__} has no recurrent layer to read.")
    matrices = [_checked_blocks(stack) for stack in stacks]
    share_of = _checked_shares(shares, matrices)
    unit = fitted_time_unit(model, freq)
    tables = [_table(blocks, share_of[blocks.place], tol, unit) for blocks in matrices]
    features = pd.concat(tables, ignore_index=True)
    features.attrs = {"time_unit": unit.name, "time_step": unit.step}
    sample_length = getattr(model, "sample_length_", None)
    if sample_length is not None:
        mark_beyond_sample(features, sample_length * unit.step)
    return features


def times(modulus: np.ndarray, angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Half-lives (doubling times if the modulus is above 1) and periods, in steps."""
    with np.errstate(divide="ignore"):
        return np.abs(np.log(0.5) / np.log(modulus)), 2 * np.pi / angle


def mark_beyond_sample(features: pd.DataFrame, length: float) -> None:
    """Add the column ``beyond_sample``, and the sample length to ``attrs``."""
    period = features["period"].replace(np.inf, 0.0)  # a decay has no period
    features["beyond_sample"] = (features["half_life"] > length) | (period > length)
    features.attrs["sample_length"] = length


def _table(
    blocks: Blocks, share: np.ndarray | None, tol: float | None, unit: TimeUnit
) -> pd.DataFrame:
    """Features of the blocks of one recurrent matrix of a layer."""
    tol = default_tolerance(blocks.values.shape[-1], blocks.eps) if tol is None else tol
    block, eigenvalue, order = jordan_structures(blocks.values, tol)
    # Adding 0 turns -0 into 0: a real eigenvalue must not have the angle -pi.
    eigenvalue = eigenvalue.real + 0.0 + 1j * (eigenvalue.imag + 0.0)
    # By block, decreasing modulus, angle and decreasing order.
    by = np.lexsort((-order, np.angle(eigenvalue), -np.abs(eigenvalue), block))
    block, eigenvalue, order = block[by], eigenvalue[by], order[by]
    modulus = np.abs(eigenvalue)
    angle = np.where(modulus == 0, np.nan, np.angle(eigenvalue))
    half_life, period = times(modulus, angle)
    # A modulus that equals 1 up to rounding has an infinite half-life.
    half_life[modulus > 1] = np.nan
    half_life[np.abs(modulus - 1) <= tol] = np.inf
    numbered = {} if blocks.network is None else {"network": blocks.network}
    named = {} if blocks.matrix is None else {"matrix": blocks.matrix}
    letters = np.where(eigenvalue.imag > 0, "C", "R")
    return pd.DataFrame(
        {
            **numbered,
            "layer": blocks.layer,
            **named,
            "block": block + 1,
            "type": [
                "zero" if value == 0 else f"{letter}-{n}"
                for value, letter, n in zip(eigenvalue, letters, order, strict=True)
            ],
            "order": order,
            "modulus": modulus,
            "angle": angle,
            "half_life": half_life * unit.step,
            "period": period * unit.step,
            "share": np.nan if share is None else share[block],
        }
    )


Place = tuple[int | None, int]  # network, if there are several, and layer


class Stack(NamedTuple):
    """Unchecked recurrent matrix of a layer."""

    label: str  # for errors
    raw: Any
    layer: int = 1
    matrix: str | None = None  # name, if a layer has several
    network: int | None = None  # number, if a model has several


class Blocks(NamedTuple):
    """Blocks of one recurrent matrix of one layer."""

    values: np.ndarray  # (K, d, d), float64
    eps: float  # machine epsilon of the stored dtype
    layer: int
    matrix: str | None
    network: int | None

    @property
    def place(self) -> Place:
        return self.network, self.layer


def _stacks(model: Any) -> list[Stack]:
    """Recurrent matrices of a network, a torch module or arrays, by layer."""
    if callable(getattr(model, "recurrent_blocks", None)):
        return [
            Stack(f"{name} of layer {i}", raw, i, name) if name else Stack(f"layer {i}", raw, i)
            for i, layer in enumerate(model.recurrent_blocks(), start=1)
            for name, raw in (layer.items() if isinstance(layer, Mapping) else [(None, layer)])
        ]
    if hasattr(type(model), "recurrent_blocks"):  # a forecaster without recurrent matrices
        try:
            model.recurrent_blocks()
        except AttributeError as error:
            raise TypeError(f"recurrence_features reads a recurrence: {error}") from None
    if hasattr(model, "weight_hh"):
        return [Stack("weight_hh", _single_gate(model, model.weight_hh))]
    if hasattr(model, "weight_hh_l0"):
        if model.bidirectional:
            raise ValueError(
                "recurrence_features reads recurrences that run forward in time; this "
                f"{type(model).__name__} is bidirectional. Pass one direction's matrix, "
                "for example model.weight_hh_l0."
            )
        names = [f"weight_hh_l{i}" for i in range(model.num_layers)]
        return [
            Stack(name, _single_gate(model, getattr(model, name)), layer)
            for layer, name in enumerate(names, start=1)
        ]
    if isinstance(model, (list, tuple)) or hasattr(model, "__array__"):
        return [Stack("the matrix", model)]
    raise TypeError(f"`model` must be {_ACCEPTED}; got {_described(model)}.")


def _single_gate(model: Any, weight: Any) -> Any:
    """Return a recurrent matrix of torch; raise if it stacks several gates."""
    rows, columns = weight.shape
    if rows != columns:
        raise ValueError(
            "recurrence_features needs one recurrent matrix a layer; this "
            f"{type(model).__name__} has {rows // columns} (one a gate). Pass one of them, "
            f"for example weight_hh.chunk({rows // columns})[0]."
        )
    return weight


def _checked_blocks(stack: Stack) -> Blocks:
    name = stack.label
    values, eps = _as_numbers(stack.raw, name)
    if values.ndim not in (2, 3) or values.shape[-1] != values.shape[-2] or values.size == 0:
        raise ValueError(
            "recurrent matrices must be square: shape (d, d), or (K, d, d) for a stack of K, "
            f"with d >= 1; {name} has shape {values.shape}."
        )
    values = values.reshape(-1, *values.shape[-2:])
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        block, row, column = bad[0]
        raise ValueError(
            f"recurrent matrices must be finite; {name} has {len(bad)} NaN or infinite "
            f"entries, the first in block {block + 1}, row {row + 1}, column {column + 1}. "
            "A training that diverged leaves such weights: fit again with a smaller learning rate."
        )
    return Blocks(values, eps, stack.layer, stack.matrix, stack.network)


def _as_numbers(stack: Any, name: str) -> tuple[np.ndarray, float]:
    """Values in float64, and the machine epsilon of the stored dtype."""
    if hasattr(stack, "detach"):
        import torch

        if stack.is_complex() or stack.dtype == torch.bool:
            raise _not_real(name, stack.dtype)
        dtype = stack.dtype if stack.is_floating_point() else torch.float64
        values = stack.detach().to(device="cpu", dtype=torch.float64).numpy()
        return values, float(torch.finfo(dtype).eps)
    if isinstance(stack, (list, tuple)) and any(hasattr(part, "detach") for part in stack):
        raise TypeError(
            f"{name} must be one array or tensor; got a {type(stack).__name__} of tensors. "
            "Join blocks of one layer with torch.stack, or read each matrix by itself."
        )
    try:
        array = np.asarray(stack)
    except ValueError as error:
        raise ValueError(f"the rows of {name} differ in length; it must be square.") from error
    if array.dtype.kind not in "iuf":
        raise _not_real(name, array.dtype)
    eps = np.finfo(array.dtype).eps if array.dtype.kind == "f" else np.finfo(float).eps
    return array.astype(np.float64), max(float(eps), float(np.finfo(float).eps))


def _not_real(name: str, dtype: Any) -> TypeError:
    return TypeError(
        f"recurrent matrices must hold real numbers; {name} has dtype {dtype}. Convert strings "
        "and objects to floats; write a complex number a + bi as the block [[a, b], [-b, a]]."
    )


def _checked_shares(shares: Any, matrices: list[Blocks]) -> dict[Place, np.ndarray | None]:
    counts = {blocks.place: len(blocks.values) for blocks in matrices}
    if shares is None:
        return dict.fromkeys(counts)
    arrays = [None if share is None else np.asarray(share, dtype=float) for share in shares]
    shapes = [None if array is None else array.shape for array in arrays]
    wanted = [(count,) for count in counts.values()]
    fits = [shape in (None, size) for shape, size in zip(shapes, wanted, strict=False)]
    if len(shapes) != len(wanted) or not all(fits):
        raise ValueError(
            "block_shares_() must give one number a block and one array (or None) a layer, "
            f"of shapes {wanted}; got {shapes}."
        )
    return dict(zip(counts, arrays, strict=True))


def _described(model: Any) -> str:
    text = f"{type(model).__name__}"
    return f"{text} {model!r}" if isinstance(model, (str, int, float, type(None))) else text
