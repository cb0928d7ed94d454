"""Memory lengths of linear recurrent units, and reconstruction of inputs from their states."""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tsrnn.interpret._checks import as_floats, check_tensor, is_count
from tsrnn.interpret._fitted import (
    ReadNetwork,
    by_network,
    fitted_time_unit,
    read_network,
    read_networks,
)
from tsrnn.layers import LRU

# Error bound of a state in rounding errors of one step; states of up to 20,000 steps typically
# have a tenth of it.
ROUNDING = 16.0
MOST_CANDIDATES = 10**6  # numbers of steps that are compared with a state


class Reconstruction(NamedTuple):
    """Inputs reconstructed from a state, with the condition number.

    Attributes
    ----------
    inputs : ndarray of shape (B, steps, input_size) or (steps, input_size)
        Inputs in time order.
    condition_number : float
        Largest over smallest singular value of the inverted real matrix; infinite if it has fewer
        rows than columns, so that the state does not determine the inputs.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.interpret import reconstruct_input
    >>> from tsrnn.layers import LRU
    >>> layer = LRU(1, 4, state_units=32, r_min=0.99, dtype=torch.float64)
    >>> _, h_n = layer(torch.ones(5, 20, 1, dtype=torch.float64))
    >>> past = reconstruct_input(layer, h_n, steps=20)
    >>> past.inputs.shape, past.condition_number >= 1
    ((5, 20, 1), True)
    """

    inputs: np.ndarray
    condition_number: float


def memory_lengths(layer: Any, *, share: float = 0.01, freq: Any = None) -> pd.DataFrame:
    r"""Memory lengths of every state of a linear recurrent unit.

    After k steps a share :math:`|\lambda|^k` of an input remains in the state, equation (3) of
    Orvieto et al.

    Parameters
    ----------
    layer : LRU, network or fitted forecaster
        An LRU layer, a network or ensemble of `tsrnn.layers` with it, or a fitted
        `tsrnn.LRUForecaster`.
    share : float, default 0.01
        Share below which an input is forgotten, between 0 and 1.
    freq : str, int or pandas offset, optional
        Frequency of the data, which sets the unit of half-lives, memory and periods; by default
        the frequency of a fitted forecaster, else steps.

    Returns
    -------
    DataFrame
        One row per state, ordered by layer, with the columns

        - ``network``: counted from 1, if there are several;
        - ``layer``, ``unit``: counted from 1;
        - ``modulus``, ``angle``: polar form of lambda, the angle from -pi to pi in radians per
          step;
        - ``half_life``: log(1/2) / log(modulus);
        - ``memory``: time until :math:`|\lambda|^k` is first below `share`;
        - ``period``: 2 pi / abs(angle).

        ``attrs["time_unit"]`` is the unit of the last three, ``attrs["time_step"]`` the length of
        a step in this unit.

    Raises
    ------
    TypeError
        If there is no LRU to read.
    ValueError
        If `share` is not a number between 0 and 1, or `freq` is not understood.
    sklearn.exceptions.NotFittedError
        If a forecaster has not been fitted.

    References
    ----------
    Orvieto, De, Gulcehre, Pascanu and Smith (2023), On the Universality of Linear Recurrences
    Followed by Nonlinear Projections, Section 3.

    Examples
    --------
    >>> from tsrnn.interpret import memory_lengths
    >>> from tsrnn.layers import LRU
    >>> table = memory_lengths(LRU(1, 4, r_min=0.9, r_max=0.99), freq="MS")
    >>> bool((table["memory"] > 40).all())  # log(0.01) / log(0.9) is 43.7
    True
    >>> table.attrs["time_unit"]
    'months'
    """
    networks = read_networks(layer, LRU, "memory_lengths")
    if not isinstance(share, numbers.Real) or not 0 < share < 1:
        raise ValueError(f"share must be a number between 0 and 1; got {share!r}")
    unit = fitted_time_unit(layer, freq)
    tables = [_memory(n.layers, float(share), unit.step) for n in networks]
    table = by_network(tables, networks)
    table.attrs = {"time_unit": unit.name, "time_step": unit.step}
    return table


@torch.no_grad()
def reconstruct_input(
    layer: Any,
    state: Tensor | None = None,
    steps: int | None = None,
    *,
    basis: np.ndarray | None = None,
) -> Reconstruction:
    r"""Reconstruct the inputs of the last steps from the state of a linear recurrent unit.

    The state of the first layer after k steps from zero is a linear map of its inputs,

    .. math:: x_k = \sum_{j=0}^{k-1} \Lambda^j \gamma \odot B u_{k-j} = V_k u_{1:k},

    equation (4) of Orvieto et al., where gamma B = (1, ..., 1), so that V is a Vandermonde matrix.
    The map is inverted by least squares, equation (5). Inputs that are combinations of P functions,
    :math:`u_{1:k} = \Psi_k \alpha`, are reconstructed with :math:`\Omega_k = V_k \Psi_k` in place
    of V, equations (6) and (22), from much smaller states.

    Parameters
    ----------
    layer : LRU, network or fitted forecaster
        An LRU layer, a `tsrnn.layers.RecurrentNetwork` of it, or a fitted `tsrnn.LRUForecaster`
        with one network. The inputs of the first layer are reconstructed, after an input
        projection if there is one.
    state : Tensor of shape (num_layers, B, state_size) or (num_layers, state_size)
        Final state of sequences of `steps` steps from the zero state; remains of earlier inputs
        are errors. By default the layer of a forecaster runs from zero over the last `steps` rows
        of its ``sample_``.
    steps : int
        Number k of steps; by default all rows of the sample, or with ``constant_input=True`` the
        result of `elapsed_steps`.
    basis : array of shape (P, steps, input_size), optional
        Functions of time Psi that inputs are combinations of.

    Returns
    -------
    Reconstruction
        Inputs and condition number.

    Raises
    ------
    TypeError
        If there is no LRU to read, or `state` is not a tensor.
    ValueError
        If the state or the basis has another shape, `steps` is not a positive integer or exceeds
        the sample, or there are several networks.
    sklearn.exceptions.NotFittedError
        If a forecaster has not been fitted.

    Notes
    -----
    Real and imaginary parts of the N states are 2 N equations for `steps` times `input_size` real
    unknowns, or P with a basis. The error of an exact solution is at most the error of the state
    times the condition number over the norm of V. Eigenvalues well inside the unit circle make V
    ill-conditioned. Singular values within the rounding of the state's dtype are dropped, which
    loses the distant past and keeps the recent one. With more unknowns than equations the inputs
    have the smallest norm.

    References
    ----------
    Orvieto, De, Gulcehre, Pascanu and Smith (2023), On the Universality of Linear Recurrences
    Followed by Nonlinear Projections, Sections 3.1, 3.2 and Appendix B, E.1 and E.2. The
    condition numbers of their Figures 4 and 6 are of the squared matrix.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.interpret import reconstruct_input
    >>> from tsrnn.layers import LRU
    >>> layer = LRU(1, 4, state_units=32, r_min=0.99, dtype=torch.float64)
    >>> x = torch.randn(5, 20, 1, dtype=torch.float64)
    >>> _, h_n = layer(x)
    >>> past = reconstruct_input(layer, h_n, steps=20)
    >>> bool(abs(past.inputs - x.numpy()).max() < 1e-6)
    True
    """
    network = read_network(layer, LRU, "reconstruct_input")
    if state is None:
        state, steps = _sample_state(layer, network, steps)
    lru = network.layers
    if steps is None and lru.constant_input:
        steps = _common_steps(elapsed_steps(layer, state))
    steps = _checked_steps(steps)
    parts = _first_state(lru, state)
    # V of shape (N, steps * input_size), the contributions of the inputs to the last state.
    eigenvalues, weights = _as_complex(lru.eigenvalues()[0]), _as_complex(lru.input_weights())
    powers = eigenvalues[:, None] ** np.arange(steps - 1, -1, -1)
    vandermonde = (powers[:, :, None] * weights[:, None, :]).reshape(len(eigenvalues), -1)
    matrix = np.concatenate([vandermonde.real, vandermonde.imag])
    functions = None if basis is None else _checked_basis(basis, steps, lru.input_size)
    if functions is not None:
        matrix = matrix @ functions
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    # Small singular values would amplify the rounding of the state.
    kept = values > singular_value_threshold(matrix, float(np.finfo(parts.dtype).eps), values[0])
    inverse = (right[kept].T / values[kept]) @ left[:, kept].T
    determined = matrix.shape[0] >= matrix.shape[1] and values[-1] > 0
    condition_number = float(values[0] / values[-1]) if determined else np.inf
    solution = parts.astype(np.float64) @ inverse.T
    if functions is not None:
        solution = solution @ functions.T
    inputs = solution.reshape(*parts.shape[:-1], steps, lru.input_size)
    return Reconstruction(inputs, condition_number)


@torch.no_grad()
def elapsed_steps(layer: Any, state: Tensor) -> np.ndarray:
    r"""Number of steps since the zero state, from the state of a linear recurrent unit.

    With ``constant_input=True`` the first state after k steps is

    .. math:: x_{k,0} = \gamma_0 \sum_{j=0}^{k-1} \lambda_0^j
        = \gamma_0 \frac{\lambda_0^k - 1}{\lambda_0 - 1}, \qquad
        \lambda_0^k = x_{k,0} (\lambda_0 - 1) / \gamma_0 + 1,

    Equation (27) of Orvieto et al. takes the logarithm to the base :math:`\lambda_0`. A complex
    logarithm is unique up to whole turns: the modulus gives k roughly, and the nearby integers are
    compared by their powers.

    Parameters
    ----------
    layer : LRU, network or fitted forecaster
        An LRU layer with ``constant_input=True``, a `tsrnn.layers.RecurrentNetwork` of it, or a
        fitted `tsrnn.LRUForecaster` with one network.
    state : Tensor of shape (num_layers, B, state_size) or (num_layers, state_size)
        State returned by the layer.

    Returns
    -------
    ndarray of int, of shape (B,) or ()

    Raises
    ------
    TypeError
        If there is no LRU to read, or `state` is not a tensor.
    ValueError
        If the layer has no constant input, the state has another shape, or rounding hides the
        number of steps.
    sklearn.exceptions.NotFittedError
        If a forecaster has not been fitted.

    Notes
    -----
    When :math:`|\lambda_0|^k` approaches the rounding of the state, neighbouring k cannot be
    distinguished, and an error is raised. With moduli from 0.99 to 1 this takes more than 500
    steps, also in float32.

    References
    ----------
    Orvieto, De, Gulcehre, Pascanu and Smith (2023), On the Universality of Linear Recurrences
    Followed by Nonlinear Projections, Section 3.1, Proposition 7 and equation (27).

    Examples
    --------
    >>> import torch
    >>> from tsrnn.interpret import elapsed_steps
    >>> from tsrnn.layers import LRU
    >>> layer = LRU(1, 4, state_units=8, r_min=0.9, constant_input=True, dtype=torch.float64)
    >>> _, h_n = layer(torch.randn(2, 20, 1, dtype=torch.float64))
    >>> elapsed_steps(layer, h_n).tolist()
    [20, 20]
    """
    lru = read_network(layer, LRU, "elapsed_steps").layers
    if not lru.constant_input:
        raise ValueError(
            "elapsed_steps reads the constant input of a state; this LRU has "
            "constant_input=False. Build it with constant_input=True"
        )
    parts = _first_state(lru, state)
    x = parts[..., 0].astype(np.float64) + 1j * parts[..., lru.state_units]
    eigenvalue = _as_complex(lru.eigenvalues()[0])[0]  # rounded as in the recurrence
    weight = float(lru.gamma_log_l0[0].double().exp())
    power = 1 + x * (eigenvalue - 1) / weight  # lambda^k
    decay = -np.log(np.abs(eigenvalue))
    rounding = ROUNDING * np.finfo(parts.dtype).eps * (1 + np.abs(power - 1))
    rounding = rounding * np.sqrt(1 + 1 / decay)
    steps = np.empty(power.shape, int)
    for place, value in np.ndenumerate(power):
        steps[place] = _exponent(eigenvalue, value, rounding[place])
    hidden = steps < 0
    if hidden.any():
        raise ValueError(
            f"the number of steps must be one that a state shows; of {hidden.sum()} of "
            f"{hidden.size} states rounding hides it, as the first eigenvalue has modulus "
            f"{np.abs(eigenvalue):.6g}. Take r_min closer to 1 or dtype=torch.float64"
        )
    return steps


def _exponent(base: complex, power: complex, rounding: float) -> int:
    """Unique integer k with base^k = power up to rounding; -1 if k is not unique."""
    decay, size = -np.log(np.abs(base)), np.abs(power)
    if not size > 2 * rounding:
        return -1
    first = max(0, int(np.floor(-np.log(size + rounding) / decay)))
    last = int(np.ceil(-np.log(size - rounding) / decay))
    if last - first > MOST_CANDIDATES:
        return -1
    numbers = np.arange(first, last + 1)
    # The rounding error of the angle grows with the number of turns.
    rounded = rounding + 4 * np.finfo(float).eps * numbers * size
    close = numbers[np.abs(base**numbers - power) <= rounded]
    return int(close[0]) if len(close) == 1 else -1


def _common_steps(counts: np.ndarray) -> int:
    """Common number of steps of a batch; raise if the numbers differ."""
    if counts.size == 0 or (counts != counts.flat[0]).any():
        raise ValueError(
            "states must be of sequences of one length to be read back together; got lengths "
            f"{np.unique(counts).tolist()}. Give steps, or read one state after the other"
        )
    return int(counts.flat[0])


def singular_value_threshold(matrix: np.ndarray, eps: float, largest: float) -> float:
    """Bound below which singular values are within rounding errors `eps`."""
    return max(matrix.shape) * eps * largest


def _sample_state(model: Any, network: ReadNetwork, steps: Any) -> tuple[Tensor, int]:
    """State after the last rows of a forecaster's sample, from zero, and the number of rows."""
    sample = getattr(model, "sample_", None)
    if sample is None:
        raise TypeError(
            "state, as the layer returned it, must be given with a layer or a network; got None. "
            "Only a fitted forecaster keeps a sample to run over"
        )
    rows = sample.shape[1]
    steps = rows if steps is None else _checked_steps(steps)
    if steps > rows:
        raise ValueError(
            f"steps must be at most {rows}, the rows of the forecaster's sample; got {steps}. "
            "Pass a state to read more back"
        )
    return network.layers(network.layer_inputs(sample[:, -steps:]))[1], steps


def _memory(layer: LRU, share: float, step: float) -> pd.DataFrame:
    """Table of `memory_lengths` of all layers; `step` is the length of a time step."""
    tables = []
    for i, eigenvalues in enumerate(layer.eigenvalues()):
        # From the parameter nu, because a modulus near 1 loses digits.
        nu_log = getattr(layer, f"nu_log_l{i}").detach().cpu().numpy()
        nu = np.exp(nu_log.astype(np.float64))
        angle = np.angle(_as_complex(eigenvalues))
        with np.errstate(divide="ignore"):
            half_life, forgotten = np.log(2) / nu, -np.log(share) / nu
            period = 2 * np.pi / np.abs(angle)
        columns = {
            "layer": i + 1,
            "unit": np.arange(1, len(nu) + 1),
            "modulus": np.exp(-nu),
            "angle": angle,
            "half_life": half_life * step,
            "memory": (np.floor(forgotten) + 1) * step,
            "period": period * step,
        }
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def _as_complex(tensor: Tensor) -> np.ndarray:
    return tensor.cpu().numpy().astype(np.complex128)


def _first_state(layer: LRU, state: Tensor) -> np.ndarray:
    """Real and imaginary parts (..., 2 N) of the state of the first layer."""
    check_tensor("state", state, next(layer.parameters()).dtype)
    expected = (layer.num_layers, layer.state_size)
    if state.ndim not in (2, 3) or (state.shape[0], state.shape[-1]) != expected:
        raise ValueError(
            f"state must have shape ({expected[0]}, B, {expected[1]}) or {expected}, as the layer "
            f"returns it; got {tuple(state.shape)}"
        )
    if state.dtype not in (torch.float32, torch.float64):
        raise ValueError(
            f"state must be of torch.float32 or torch.float64; got {state.dtype}. Convert it with "
            ".to()"
        )
    if not state.isfinite().all():
        raise ValueError("state must be finite; got NaN or infinite values")
    return state[0, ..., : 2 * layer.state_units].detach().cpu().numpy()


def _checked_steps(steps: Any) -> int:
    if not is_count(steps):
        raise ValueError(f"steps must be a positive integer; got {steps!r}")
    return int(steps)


def _checked_basis(basis: Any, steps: int, input_size: int) -> np.ndarray:
    """Validate the basis, and return its functions as columns (steps * input_size, P)."""
    functions = as_floats(basis)
    wanted = f"basis must be numbers of shape (P, {steps}, {input_size}) with P >= 1"
    if functions is None:
        raise ValueError(f"{wanted}; got {basis!r}")
    if functions.ndim != 3 or functions.shape[1:] != (steps, input_size) or not len(functions):
        raise ValueError(f"{wanted}; got {functions.shape}")
    return functions.reshape(len(functions), -1).T
