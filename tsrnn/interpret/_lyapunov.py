"""Lyapunov exponents of fitted networks, layers and maps, with standard errors."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch import Tensor
from torch.nn import functional

from tsrnn.interpret._checks import as_floats, is_count
from tsrnn.interpret._fitted import fitted_time_unit, inputs_for, read_networks
from tsrnn.interpret._time_unit import TimeUnit
from tsrnn.kernels import Cell, Fields, recurrence
from tsrnn.layers import LRU, CellStack, NewtonBlocks, Recurrent

STEPS_OF_A_MAP = 10_000  # default for maps: a standard error of about 0.01 in a chaotic one
FEWEST_STEPS = 10  # after the burn-in: fewer show no serial dependence
DISCARDED_SHARE = 10  # a tenth: the bias by the start falls as 1 / T, the error as 1 / sqrt(T)
LARGEST_UNROLLED_BLOCK = 8  # products of larger Jacobians take long to compile
EXACT = 1e-12  # smaller logarithms of eigenvalues are rounding errors
NUMBERS_AT_ONCE = 2**22  # of Jacobians in memory: 32 MB


@torch.no_grad()
def lyapunov_exponent(
    model: Any,
    x: Any = None,
    *,
    state: Any = None,
    n_steps: int | None = None,
    n_exponents: int = 1,
    burn_in: int | None = None,
    freq: Any = None,
) -> LyapunovExponents:
    r"""Estimate the largest Lyapunov exponent of a network along data, or of a map.

    .. math::
        \lambda_1 = \lim_{T \to \infty} \frac1T \log \| J_T J_{T-1} \cdots J_1 v \|, \qquad
        J_t = \frac{\partial h_t}{\partial h_{t-1}},

    the mean rate per step at which a small shock to the state grows (positive) or decays
    (negative), given the inputs. The sum of the first k exponents is the growth rate of volumes in
    k directions.

    Parameters
    ----------
    model : fitted forecaster, network, layer or callable
        A fitted forecaster, a `tsrnn.layers.RecurrentNetwork`, an `Ensemble` of networks or a
        recurrent layer of `tsrnn.layers`; or a map ``model(state)``, or ``model(state, x_t)`` if
        `x` is given, from tensors (d,) to tensors (d,), written in torch.
    x : Tensor of shape (B, T, input_size) or (T, input_size), optional
        Inputs of the layer, network or map. By default the forecaster's ``sample_``. Linear
        recurrent units need no inputs.
    state : array_like of shape (d,) or (B, d), optional
        Initial state of a map, required. Networks start at zero.
    n_steps : int, optional
        Steps of a map without inputs; 10,000 by default.
    n_exponents : int, default 1
        Number k of the largest exponents.
    burn_in : int, optional
        Steps that are discarded; a tenth of T by default. In the burn-in the state approaches the
        attractor, and v the direction of largest growth.
    freq : str, int or pandas offset, optional
        Frequency of the data, which sets the unit of the half-life; by default the frequency of a
        fitted forecaster.

    Returns
    -------
    LyapunovExponents

    Raises
    ------
    TypeError
        If the model has an unsupported type, such as block-recurrent attention, or an argument is
        missing or does not belong to the model.
    ValueError
        If shapes or numbers of steps do not fit, values are not finite, or the trajectory
        overflows.
    tsrnn.interpret.UninformativeNetworkError
        If the network of a fitted model contributes nothing.
    sklearn.exceptions.NotFittedError
        If a forecaster has not been fitted.

    Notes
    -----
    Jacobians come from automatic differentiation in float64. Directions are orthonormalised by QR
    at every step (Benettin et al., 1980), and the logarithms of their growth, the local rates, are
    averaged.

    The Jacobian of a layer of blocks is block diagonal; for stacked layers it is block triangular.
    The exponents of a network are therefore the exponents of all blocks, which are computed one by
    one. A convolution or a skip connection forgets in finitely many steps; its exponents of minus
    infinity are left out. If the Jacobian is constant, as in linear recurrent units, exponents are
    log moduli of its eigenvalues, exact and with a standard error of zero.

    Local rates are serially dependent. Their long-run variance is estimated with Bartlett's kernel,
    the bandwidth of Newey and West (1994), and autocovariances pooled over series, which are
    treated as independent. It is divided by its expectation under white noise, and intervals use
    Student's t with equivalent degrees of freedom. The standard error ignores the choice of the
    largest among blocks, which biases the exponent upwards if several are close. If rates are
    differences of a stationary series, as in the logistic map at r = 4, the error falls as 1 / T
    and the interval is too wide.

    The exponent of a network driven by data is conditional on the data. It differs for forecasts
    that are fed back, and from the exponent of the process behind the data.

    References
    ----------
    Benettin, Galgani, Giorgilli and Strelcyn (1980), Lyapunov characteristic exponents for smooth
    dynamical systems, Meccanica 15. Newey and West (1994), Automatic lag selection in covariance
    matrix estimation, Review of Economic Studies 61. Gonzalez, Kozachkov, Zoltowski, Clarkson and
    Linderman (2025), Predictability enables parallelization of nonlinear state space models,
    NeurIPS.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.interpret import lyapunov_exponent
    >>> result = lyapunov_exponent(lambda h: 3.5 * h * (1 - h), state=[0.3], n_steps=2000)
    >>> round(result.exponent, 4)
    -0.8725
    >>> from tsrnn.layers import ParaRNN
    >>> layer = ParaRNN(1, 4, nonlinearity="identity", dtype=torch.float64)
    >>> _ = torch.nn.init.constant_(layer.weight_hh_l0, 0.25)  # eigenvalues 1/2 and 0
    >>> print(lyapunov_exponent(layer, torch.zeros(50, 1).double()).words)
    Shocks die out: they halve every 1 steps (exponent -0.693 a step, exact).
    """
    if not is_count(n_exponents):
        raise ValueError(f"n_exponents must be a positive integer; got {n_exponents!r}")
    unit = fitted_time_unit(model, freq)
    if callable(model) and not isinstance(model, type | torch.nn.Module):
        spectra = [_spectrum(_map_trajectory(model, x, state, n_steps), n_exponents, burn_in)]
        return _summarised(_leading_rows(spectra, int(n_exponents), None), unit)
    for name, value in (("state", state), ("n_steps", n_steps)):
        if value is not None:
            raise TypeError(
                f"{name} belongs to maps; networks start at zero and run over x. Leave it out"
            )
    rows: list[_Row] = []
    networks = read_networks(model, Recurrent, "lyapunov_exponent")  # type: ignore[type-abstract]
    for network in networks:
        layers = network.layers
        if not isinstance(layers, LRU | CellStack | NewtonBlocks):
            raise TypeError(
                "lyapunov_exponent reads layers that are recurrences of cells, such as ParaRNN, "
                f"LEM, LRU, NewtonGRU and NewtonBlocks; got {type(layers).__name__}. Pass another "
                "recurrence as a map, model(state, x_t)"
            )
        if isinstance(layers, LRU):
            spectra = _linear_spectra(layers, n_exponents)
        else:
            inputs = inputs_for(model, x, network).double()
            # In float64, because shocks of a chaotic network double within few steps.
            layers = copy.deepcopy(layers).double().requires_grad_(False)
            spectra = [
                _spectrum(trajectory, n_exponents, burn_in)
                for trajectory in _layer_trajectories(layers, inputs)
            ]
        rows += _leading_rows(spectra, int(n_exponents), network.number)
    return _summarised(rows, unit)


@dataclass(frozen=True, eq=False)
class LyapunovExponents:
    """Lyapunov exponents with standard errors.

    Attributes
    ----------
    table : DataFrame
        A row per exponent, in decreasing order for each network, with the columns

        - ``network``: counted from 1, if there are several, as in an ensemble;
        - ``layer``, ``block``: block of the exponent, counted from 1; not for a map;
        - ``exponent``: rate per step; minus infinity if a step forgets the previous state;
        - ``standard_error``: zero for exact exponents, NaN for infinite ones;
        - ``lower``, ``upper``: 95 percent interval;
        - ``half_life``: log 2 / -exponent, in `time_unit`; NaN if shocks grow.
    rates : ndarray of shape (B, n)
        Local rates of the largest exponent by series; empty if it is exact.
    burn_in : int
        Discarded steps of each series.
    bandwidth : int
        Number of autocovariances in the standard error.
    degrees_of_freedom : float
        Degrees of freedom of `conf_int`; infinite for an exact exponent.
    time_unit : str
        Unit of half-lives; "steps" if no frequency is known.
    time_step : float
        Length of a step in this unit.

    Examples
    --------
    >>> from tsrnn.interpret import lyapunov_exponent
    >>> result = lyapunov_exponent(lambda h: 3.5 * h * (1 - h), state=[0.3], n_steps=2000)
    >>> print(result)
    Largest Lyapunov exponent: -0.8725 a step, standard error 0.0078
    95% interval from -0.8882 to -0.8568; 1 series of 1800 steps after 200 of burn-in
    Shocks die out: they halve every 0.794 steps (exponent -0.873 a step, 95% interval ...
    """

    table: pd.DataFrame
    rates: np.ndarray
    burn_in: int
    bandwidth: int
    degrees_of_freedom: float
    time_unit: str
    time_step: float

    @property
    def exponent(self) -> float:
        """Largest exponent per step, over all networks of an ensemble."""
        return float(self._largest["exponent"])

    @property
    def standard_error(self) -> float:
        """Standard error of the largest exponent."""
        return float(self._largest["standard_error"])

    @property
    def half_life(self) -> float:
        """Time in `time_unit` after which half of a shock remains; NaN if it grows."""
        return float(self._largest["half_life"])

    @property
    def n_series(self) -> int:
        """Number of series B; 0 for an exact exponent."""
        return len(self.rates)

    @property
    def n_steps(self) -> int:
        """Number of steps n of each series after the burn-in; 0 for an exact exponent."""
        return self.rates.shape[1]

    def conf_int(self, alpha: float = 0.05) -> tuple[float, float]:
        """Confidence interval of the largest exponent.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the level, between 0 and 1.

        Returns
        -------
        lower, upper : float
            Both equal an exact exponent.

        Raises
        ------
        ValueError
            If alpha is not between 0 and 1.
        """
        level = as_floats(alpha)
        if level is None or level.ndim or not 0 < level < 1:
            raise ValueError(f"alpha must be a number between 0 and 1; got {alpha!r}")
        return _interval(self.exponent, self.standard_error, self.degrees_of_freedom, float(level))

    @property
    def words(self) -> str:
        """Sentence on the growth or decay of shocks to the state."""
        lower, upper = self.conf_int()
        exponent, exact = self.exponent, not self.rates.size
        if exponent == -math.inf:
            return "Shocks are forgotten at once: Jacobians of steps are singular (exponent -inf)."
        interval = "exact" if exact else f"95% interval {lower:.3f} to {upper:.3f}"
        size = f"(exponent {exponent:.3f} a step, {interval})"
        if exact and exponent == 0:
            return f"Shocks neither die out nor grow {size}."
        if lower <= 0 <= upper:
            return f"Zero lies in the interval: shocks may die out or grow {size}."
        time = math.log(2) / abs(exponent) * self.time_step
        verdict = "die out: they halve" if exponent < 0 else "grow: they double"
        return f"Shocks {verdict} every {time:.3g} {self.time_unit} {size}."

    def __str__(self) -> str:
        lower, upper = self.conf_int()
        lines = [
            f"Largest Lyapunov exponent: {self.exponent:.4f} a step, "
            f"standard error {self.standard_error:.4f}"
        ]
        if self.n_series:
            lines.append(
                f"95% interval from {lower:.4f} to {upper:.4f}; {self.n_series} series of "
                f"{self.n_steps} steps after {self.burn_in} of burn-in"
            )
        if len(self.table) > 1:
            lines.append(self.table.to_string(index=False, float_format="{:.4f}".format))
        return "\n".join([*lines, self.words])

    @property
    def _largest(self) -> pd.Series:
        return self.table.iloc[int(np.argmax(self.table["exponent"]))]


class _Trajectory(NamedTuple):
    """States of K blocks along data, and the map of a step for its Jacobians."""

    step: Callable[[Tensor, slice], Tensor]  # states before the given steps -> states after them
    before: Tensor  # states (B, T, n, K) before every step
    layer: int | None  # counted from 1


class _Spectrum(NamedTuple):
    """Exponents of the K blocks of a layer, in decreasing order."""

    exponents: np.ndarray  # (k, K)
    rates: np.ndarray | None  # (B, n, k, K); None for exact exponents
    burn_in: int
    layer: int | None


def _spectrum(trajectory: _Trajectory, count: int, burn_in: Any) -> _Spectrum:
    """Exponents of every block by the method of Benettin et al. (1980)."""
    batch, steps, n, units = trajectory.before.shape
    burn_in = _checked_burn_in(burn_in, steps)
    # Random, because a start within an invariant subspace stays in it; with a fixed seed.
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(n, n, generator=generator, dtype=torch.float64)
    directions = torch.linalg.qr(start)[0][:, :count].to(trajectory.before.device)
    directions = directions[None, ..., None].expand(batch, -1, -1, units)
    pace = max(1, NUMBERS_AT_ONCE // (batch * n * n * units))
    first, is_constant, pieces = _jacobians(trajectory, slice(1))[:1], True, []
    for begin in range(0, steps, pace):
        jacobians = _jacobians(trajectory, slice(begin, begin + pace))
        is_constant = is_constant and bool((jacobians == first).all())
        rates, directions = _growth(jacobians, directions)
        pieces.append(rates)
    if is_constant:
        moduli = torch.linalg.eigvals(first[0, 0].permute(2, 0, 1)).abs()
        exponents = moduli.sort(1, descending=True)[0][:, :count].T.log().cpu().numpy()
        # A modulus that equals 1 up to rounding has the exponent 0.
        exponents[np.abs(exponents) < EXACT] = 0.0
        return _Spectrum(exponents, None, 0, trajectory.layer)
    local = torch.cat(pieces, 1)[:, burn_in:].cpu().numpy()
    if not trajectory.before.isfinite().all() or not (local < np.inf).all():  # NaN is not below
        raise ValueError(
            "the trajectory or a Jacobian along it overflows: the recurrence leaves all bounds "
            "within the data. Pass fewer steps, smaller inputs or a smaller start"
        )
    means = local.mean((0, 1))
    order = np.argsort(-means, 0, kind="stable")
    local = np.take_along_axis(local, order[None, None], 2)
    return _Spectrum(np.take_along_axis(means, order, 0), local, burn_in, trajectory.layer)


@torch.enable_grad()
def _jacobians(trajectory: _Trajectory, steps: slice) -> Tensor:
    """Jacobians (B, t, n, n, K) of all given steps, one row per backward pass."""
    before = trajectory.before[:, steps].clone().requires_grad_()
    after = trajectory.step(before, steps)
    n = before.shape[2]
    if not after.requires_grad:  # the new state does not depend on the old one
        return before.new_zeros(*before.shape[:2], n, n, before.shape[3])
    # Blocks and steps are independent, so the gradient of one sum holds the rows of all.
    rows = [
        torch.autograd.grad(after[:, :, i].sum(), before, retain_graph=True)[0] for i in range(n)
    ]
    return torch.stack(rows, 2)


def _growth(jacobians: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
    """Local rates (B, t, k, K) of orthonormal directions, and directions (B, n, k, K) at the end.

    Rates are log |R_ii| in the QR decomposition of J Q.
    """
    n, count = directions.shape[1:3]
    if count == 1 and n <= LARGEST_UNROLLED_BLOCK:
        start = torch.cat([directions[:, :, 0], torch.zeros_like(directions[:, :1, 0])], 1)
        empty = jacobians.new_empty(0, jacobians.shape[-1])
        entries = jacobians.flatten(2, 3).contiguous()
        states, last = recurrence(_direction(n), entries, empty, start, engine="sequential")
        return states[:, :, n:], last[:, :n, None]
    q, rates = directions.permute(0, 3, 1, 2), []
    for jacobian in jacobians.permute(1, 0, 4, 2, 3):
        q, r = torch.linalg.qr(jacobian @ q)
        rates.append(r.diagonal(dim1=-2, dim2=-1).abs().log())
    return torch.stack(rates, 1).transpose(2, 3), q.permute(0, 2, 3, 1)


@functools.cache
def _direction(n: int) -> Cell:
    """Cell that maps a unit vector v to J v / |J v| and log |J v|."""

    def step(state: Fields, jacobian: Fields, params: Fields) -> Fields:
        v = state[:n]
        moved = []
        for i in range(n):
            terms = [a * b for a, b in zip(jacobian[i * n : (i + 1) * n], v, strict=True)]
            moved.append(sum(terms[1:], start=terms[0]))
        squares = [a * a for a in moved]
        norm = torch.sqrt(sum(squares[1:], start=squares[0]))
        # If J v = 0, v is kept and the rate is minus infinity.
        lives = norm > 0
        scale = torch.where(lives, norm, torch.ones_like(norm))
        kept = [torch.where(lives, a / scale, b) for a, b in zip(moved, v, strict=True)]
        return (*kept, torch.log(norm))

    return Cell(f"direction_{n}", n + 1, n * n, 0, step)


def _layer_trajectories(layers: CellStack | NewtonBlocks, x: Tensor) -> Iterator[_Trajectory]:
    """Trajectories of all layers along inputs (B, T, in), from zero and without dropout."""
    x = x if x.ndim == 3 else x[None]
    if not x.isfinite().all():
        raise ValueError("x must be finite; got NaN or infinity. Fill or cut what is missing")
    if isinstance(layers, NewtonBlocks):
        for i, (inputs, params) in enumerate(_newton_inputs(layers, x), 1):
            yield _cell_trajectory(layers.cell, inputs, params, i)[1]
        return
    for i in range(layers.num_layers):
        weight_ih, weight_hh, bias = layers.weights(i)
        inputs = functional.linear(x, weight_ih, bias).unflatten(-1, (layers.cell.m, -1))
        params = weight_hh.reshape(layers.cell.p, layers.n_blocks)
        states, trajectory = _cell_trajectory(layers.cell, inputs, params, i + 1)
        yield trajectory
        x = states[:, :, : layers.cell.n_outputs].flatten(-2)


def _newton_inputs(layers: NewtonBlocks, x: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Inputs (B, T, m, units) and parameters of every recurrence."""
    mixed: list[Tensor] = []
    mixers: list[Any] = list(layers.mixers)
    hooks = [
        mixer.conv.register_forward_hook(lambda module, args, output: mixed.append(output.mT))
        for mixer in mixers
    ]
    layers(x)
    for hook in hooks:
        hook.remove()
    return [
        (mixer.inputs(functional.silu(v)), mixer.recurrent_params())
        for mixer, v in zip(mixers, mixed, strict=True)
    ]


def _cell_trajectory(
    cell: Cell, inputs: Tensor, params: Tensor, layer: int
) -> tuple[Tensor, _Trajectory]:
    """States (B, T, n, K) of a cell along its inputs, and its trajectory."""
    states, _ = recurrence(cell, inputs, params)
    before = torch.cat([torch.zeros_like(states[:, :1]), states[:, :-1]], 1)

    def step(old: Tensor, steps: slice) -> Tensor:
        u = inputs[:, steps].flatten(0, 1)[:, None]
        _, new = recurrence(cell, u, params, old.flatten(0, 1), engine="reference")
        return new.unflatten(0, old.shape[:2])

    return states, _Trajectory(step, before, layer)


def _linear_spectra(layers: LRU, count: int) -> list[_Spectrum]:
    """Exponents log |lambda| of linear recurrent units, twice for real and imaginary parts."""
    spectra = []
    for i in range(layers.num_layers):
        # From the parameter, because the modulus itself rounds near 1.
        exponents = -getattr(layers, f"nu_log_l{i}").double().exp().cpu().numpy()
        spectra.append(_Spectrum(np.stack([exponents] * min(count, 2)), None, 0, i + 1))
    return spectra


def _map_trajectory(function: Callable[..., Any], x: Any, state: Any, n_steps: Any) -> _Trajectory:
    """Trajectory of a map from one or more initial states."""
    start, drive = _map_arguments(x, state, n_steps)
    batch = max(len(start), 1 if drive is None else len(drive))
    steps = drive.shape[1] if drive is not None else int(n_steps or STEPS_OF_A_MAP)
    drive = None if drive is None else drive.expand(batch, -1, -1)
    states = [start.expand(batch, -1)]
    _check_map(function, start[0], None if drive is None else drive[0, 0])

    def apply(old: Tensor, inputs: Tensor | None) -> Tensor:
        """Map states (b, d), given inputs (b, p)."""
        given = (old,) if inputs is None else (old, inputs)
        if len(old) == 1:  # vmap costs as much as a small map
            return function(*(value[0] for value in given))[None]
        return torch.func.vmap(function)(*given)

    for t in range(steps):
        states.append(apply(states[-1], None if drive is None else drive[:, t]))
    before = torch.stack(states[:-1], 1)
    if not before.isfinite().all():
        first = int((~before.isfinite()).any(2).any(0).nonzero()[0])
        raise ValueError(
            f"the map leaves the finite numbers at step {first}. Start it where it stays bounded"
        )

    def step(old: Tensor, numbered: slice) -> Tensor:
        inputs = None if drive is None else drive[:, numbered].flatten(0, 1)
        return apply(old[..., 0].flatten(0, 1), inputs).reshape(old.shape)

    return _Trajectory(step, before[..., None], None)


def _map_arguments(x: Any, state: Any, n_steps: Any) -> tuple[Tensor, Tensor | None]:
    """Initial states (B, d) of a map and its inputs (B, T, p) or None; B may be 1 in either."""
    if state is None:
        raise TypeError("a map needs its start, state, numbers of shape (d,) or (B, d); got None")
    arrays = {}
    for name, value, shapes in (
        ("state", state, "(d,) or (B, d)"),
        ("x", x, "(T, p) or (B, T, p)"),
    ):
        if value is None:
            continue
        array = as_floats(value)
        dims = shapes.count(",") - 1 if name == "state" else 2
        if array is None or array.ndim not in (dims, dims + 1) or not array.size:
            shown = repr(value) if array is None else f"an array of shape {array.shape}"
            raise ValueError(f"{name} of a map must be numbers of shape {shapes}; got {shown}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite; got NaN or infinity")
        arrays[name] = torch.as_tensor(array if array.ndim == dims + 1 else array[None])
    start, drive = arrays["state"], arrays.get("x")
    if drive is not None and n_steps is not None:
        raise TypeError("n_steps is of a map without inputs; x has as many steps as rows")
    if n_steps is not None and not is_count(n_steps):
        raise ValueError(f"n_steps must be a positive integer; got {n_steps!r}")
    if drive is not None and 1 not in (len(start), len(drive)) and len(start) != len(drive):
        raise ValueError(f"state and x must have as many series; got {len(start)}, {len(drive)}")
    return start, drive


def _check_map(function: Callable[..., Any], start: Tensor, inputs: Tensor | None) -> None:
    """Raise unless a map returns a state of the same shape."""
    new = function(start) if inputs is None else function(start, inputs)
    if not isinstance(new, Tensor):
        raise TypeError(
            f"the map must return a torch.Tensor, written with functions of torch; got "
            f"{type(new).__name__}"
        )
    if new.shape != start.shape:
        raise ValueError(
            f"the map must return a state of shape {tuple(start.shape)}; got {tuple(new.shape)}"
        )


def _checked_burn_in(burn_in: Any, steps: int) -> int:
    """Validate the burn-in; raise unless enough steps remain."""
    burn_in = steps // DISCARDED_SHARE if burn_in is None else burn_in
    if not is_count(burn_in) and (burn_in != 0 or isinstance(burn_in, bool)):
        raise ValueError(
            f"burn_in must be a number of steps, an integer of at least 0; got {burn_in!r}"
        )
    if steps - burn_in < FEWEST_STEPS:
        raise ValueError(
            f"at least {FEWEST_STEPS} steps are needed after the burn-in; got T={steps} and "
            f"burn_in={burn_in}. Pass longer series"
        )
    return int(burn_in)


class _Error(NamedTuple):
    """Standard error of a mean of dependent values."""

    value: float
    bandwidth: int
    degrees_of_freedom: float


def _standard_error(rates: np.ndarray) -> _Error:
    """Standard error of the mean of independent, serially dependent series (B, n)."""
    batch, n = rates.shape
    if not np.isfinite(rates).all():
        return _Error(math.nan, 0, math.inf)
    centred = rates - rates.mean()

    def autocovariance(lag: int) -> float:
        return float((centred[:, lag:] * centred[:, : n - lag]).sum()) / rates.size

    # Newey and West (1994), Table I for Bartlett's kernel, with its pilot lags.
    pilot = [autocovariance(lag) for lag in range(math.ceil(4 * (n / 100) ** (2 / 9)) + 1)]
    level = pilot[0] + 2 * sum(pilot[1:])
    slope = 2 * sum(lag * value for lag, value in enumerate(pilot))
    wanted = 1.1447 * abs(slope / level) ** (2 / 3) * n ** (1 / 3) if level else 0.0
    # The level is near zero if rates are differences; a quarter of the lags bounds the bandwidth.
    bandwidth = math.ceil(min(wanted, n / 4))
    weights = 1 - np.arange(1, bandwidth + 1) / (bandwidth + 1)
    covariances = [autocovariance(lag) for lag in range(1, bandwidth + 1)]
    # Bartlett's estimate is nonnegative up to rounding.
    variance = max(autocovariance(0) + 2 * float(weights @ covariances), 0.0)
    # Under white noise: expected share of the variance around the sample mean, and degrees of
    # freedom of the chi-squared distribution with the same mean and variance.
    b = (bandwidth + 1) / n
    expected = 1 - (b - b**2 / 3) / batch
    degrees = rates.size / (1 + 2 * float(weights @ weights))
    return _Error(math.sqrt(variance / expected / rates.size), bandwidth, degrees)


def _interval(exponent: float, error: float, degrees: float, alpha: float) -> tuple[float, float]:
    """Confidence interval from Student's t."""
    if error == 0:
        return exponent, exponent
    half = error * float(stats.t.ppf(1 - alpha / 2, degrees))
    return exponent - half, exponent + half


class _Row(NamedTuple):
    """Exponent of a block, with its rates and standard error."""

    network: int | None
    layer: int | None
    block: int
    exponent: float
    rates: np.ndarray  # (B, n)
    burn_in: int
    error: _Error


def _leading_rows(spectra: list[_Spectrum], count: int, network: int | None) -> list[_Row]:
    """Largest exponents over all blocks of all layers of a network, in decreasing order."""
    places = [
        (spectrum.exponents[i, block], -number, -block, i)
        for number, spectrum in enumerate(spectra)
        for i, block in np.ndindex(spectrum.exponents.shape)
    ]
    if len(places) < count:
        raise ValueError(f"n_exponents must be at most {len(places)}, all there are; got {count}")
    rows = []
    for exponent, number, block, i in sorted(places, reverse=True)[:count]:
        spectrum = spectra[-number]
        rates, error = np.empty((0, 0)), _Error(0.0, 0, math.inf)
        if spectrum.rates is not None:
            rates = spectrum.rates[:, :, i, -block]
            error = _standard_error(rates)
        rows.append(
            _Row(
                network, spectrum.layer, 1 - block, float(exponent), rates, spectrum.burn_in, error
            )
        )
    return rows


def _summarised(rows: list[_Row], unit: TimeUnit) -> LyapunovExponents:
    records = []
    for row in rows:
        lower, upper = _interval(row.exponent, row.error.value, row.error.degrees_of_freedom, 0.05)
        # An exponent of zero has an infinite half-life.
        with np.errstate(divide="ignore"):
            half_life = float(np.divide(math.log(2), -row.exponent)) * unit.step
        records.append(
            {
                "network": row.network,
                "layer": row.layer,
                "block": row.block if row.layer else None,
                "exponent": row.exponent,
                "standard_error": row.error.value,
                "lower": lower,
                "upper": upper,
                "half_life": math.nan if row.exponent > 0 else abs(half_life),
            }
        )
    table, largest = pd.DataFrame(records), max(rows, key=lambda row: row.exponent)
    unused = [name for name in ("network", "layer", "block") if table[name].isna().all()]
    return LyapunovExponents(
        table.drop(columns=unused),
        largest.rates,
        largest.burn_in,
        largest.error.bandwidth,
        largest.error.degrees_of_freedom,
        unit.name,
        unit.step,
    )
