"""LEM layers that reproduce dynamical systems, Propositions 4.4, 4.5, E.4 and F.1."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tsrnn.interpret._checks import check_tensor
from tsrnn.layers import LEM

OPEN = 40.0  # bias of an open gate: the logistic function is 1 in float64, so delta of (73) is zero
SCALE = 1e-4  # identity networks then have errors of 1e-8 / 3 times the cube of their input


@dataclass(frozen=True, eq=False)
class TanhMap:
    r"""Map given by a network with one hidden layer of tanh, as in the proofs.

    .. math:: N(h^1, \dots, h^r, u) = W \tanh\Bigl(\sum_{i=1}^r W_i h^i + V u + b\Bigr)

    Parameters
    ----------
    output : Tensor of shape (d, width)
        Matrix W, float64 like all weights.
    states : sequence of Tensor of shape (width, d_i)
        Matrices :math:`W_i` of the states that the map reads.
    inputs : Tensor of shape (width, d_u), optional
        Matrix V; None without inputs.
    bias : Tensor of shape (width,), optional
        Bias b; zero by default.

    Raises
    ------
    TypeError
        If a weight is no tensor, or `states` no sequence of tensors.
    ValueError
        If a weight is not float64, not finite, or has a wrong shape.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.interpret import TanhMap
    >>> eye = torch.eye(2, dtype=torch.float64)
    >>> f = TanhMap(0.5 * eye, [eye])
    >>> f(torch.tensor([10.0, -10.0], dtype=torch.float64))
    tensor([ 0.5000, -0.5000], dtype=torch.float64)
    """

    output: Tensor
    states: Sequence[Tensor]
    inputs: Tensor | None = None
    bias: Tensor | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.states, Sequence) or not self.states:
            raise TypeError(
                "states must be a sequence of matrices, one for every state that the map reads; "
                f"got {type(self.states).__name__}"
            )
        _check_weight("output", self.output, (None, None))
        for i, matrix in enumerate(self.states):
            _check_weight(f"states[{i}]", matrix, (self.width, None))
        if self.inputs is not None:
            _check_weight("inputs", self.inputs, (self.width, None))
        if self.bias is not None:
            _check_weight("bias", self.bias, (self.width,))

    @property
    def width(self) -> int:
        """Units of the hidden layer."""
        return self.output.shape[1]

    @property
    def size(self) -> int:
        """Values d of the map."""
        return self.output.shape[0]

    def __call__(self, *states: Tensor, u: Tensor | None = None) -> Tensor:
        """Values (d,) at states (d_i,) and inputs (d_u,)."""
        total = self.output.new_zeros(self.width) if self.bias is None else self.bias
        for matrix, state in zip(self.states, states, strict=True):
            total = total + matrix @ state
        if self.inputs is not None:
            if u is None:
                raise ValueError(f"u must be given, {self.inputs.shape[1]} inputs of the map")
            total = total + self.inputs @ u
        return self.output @ torch.tanh(total)

    @property
    def largest(self) -> float:
        """Bound of the entries of the map, because tanh is below 1."""
        return float(self.output.abs().sum(1).max())

    @property
    def lipschitz(self) -> float:
        """Upper bound of the Lipschitz constant in all states, by spectral norms."""
        joint = torch.cat(tuple(self.states), 1)
        return float(torch.linalg.matrix_norm(self.output, 2) * torch.linalg.matrix_norm(joint, 2))

    def plus_state(self, number: int, factor: float, scale: float) -> TanhMap:
        """Map plus `factor` times a state, approximated by tanh(scale h) / scale."""
        size = self.size
        eye = torch.eye(size, dtype=torch.float64)
        return TanhMap(
            torch.cat([self.output, factor / scale * eye], 1),
            [
                torch.cat([matrix, scale * eye if i == number else eye.new_zeros(size, width)])
                for i, matrix in enumerate(self.states)
                for width in [matrix.shape[1]]
            ],
            None if self.inputs is None else _with_zeros(self.inputs, size),
            None if self.bias is None else _with_zeros(self.bias, size),
        )


@dataclass(frozen=True, eq=False)
class LEMSystem:
    r"""LEM layer that reproduces a dynamical system, with the output :math:`\omega_n = W y_n`.

    It is the result of `lem_of_system`, `lem_of_two_scale_system`, `lem_of_multiscale_system` and
    `lem_of_fast_slow_ode`.

    Parameters
    ----------
    layer : LEM
        Layer with the weights of the proof, float64.
    readout : Tensor of shape (d_o, d)
        Matrix W.
    simulate : callable
        Function from inputs (T, d_u) to outputs (T, d_o) of the exact system.
    epsilon, factor, growth : float
        :math:`\epsilon^*`, A and C of the bound :math:`A \epsilon^* \sum_{\lambda < n} C^\lambda`
        on the error after n steps; NaN if the paper has no bound.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.interpret import TanhMap, lem_of_system
    >>> W = torch.tensor([[0.9, -0.4], [0.4, 0.9]], dtype=torch.float64)
    >>> f = TanhMap(torch.eye(2).double(), [W], inputs=torch.ones(2, 1).double())
    >>> system = lem_of_system(f)
    >>> system.layer.hidden_size, system.outputs(torch.ones(20, 1).double()).shape
    (2, torch.Size([20, 2]))
    """

    layer: LEM
    readout: Tensor
    simulate: Callable[[Tensor], Tensor]
    epsilon: float = math.nan
    factor: float = math.nan
    growth: float = math.nan

    @torch.no_grad()
    def outputs(self, u: Tensor) -> Tensor:
        """Outputs (T, d_o) of the LEM for inputs u (T, d_u)."""
        check_tensor("u", u, torch.float64)
        if u.ndim != 2 or u.shape[1] != self.layer.input_size:
            raise ValueError(
                f"u must have shape (T, {self.layer.input_size}), one sequence; got "
                f"{tuple(u.shape)}"
            )
        return self.layer(u)[0] @ self.readout.T

    @torch.no_grad()
    def errors(self, u: Tensor) -> pd.DataFrame:
        r"""Distances :math:`\|o_n - \omega_n\|` of the LEM from the system along inputs.

        Parameters
        ----------
        u : Tensor of shape (T, d_u)

        Returns
        -------
        DataFrame
            A row per step, with the columns ``step``, ``error`` and ``bound``.
        """
        outputs = self.outputs(u)  # also validates u
        error = (outputs - self.simulate(u)).norm(dim=1).numpy()
        step = np.arange(1, len(u) + 1)
        with np.errstate(over="ignore"):
            bound = self.factor * self.epsilon * np.cumsum(self.growth ** (step - 1.0))
        return pd.DataFrame({"step": step, "error": error, "bound": bound})


def lem_of_system(f: TanhMap, output: TanhMap | None = None, *, scale: float = SCALE) -> LEMSystem:
    r"""LEM of a dynamical system, by the proof of Proposition 4.4.

    .. math:: \phi_n = f(\phi_{n-1}, u_n), \qquad o_n = o(\phi_n), \qquad \phi_0 = 0,

    equation (8) of Rusch et al. (2022). The proof approximates f and o by networks with one hidden
    layer; here they are such networks. Gates are open, :math:`\Delta t = 1`. z is the hidden layer
    of f; y holds a copy of :math:`\phi_n` by an identity network :math:`\tanh(c x) / c`, and the
    hidden layer of o: the weights (72).

    Parameters
    ----------
    f : TanhMap
        Map f of one state, with values of the same size, and of the inputs.
    output : TanhMap, optional
        Map o of the state; the identity by default.
    scale : float, default 1e-4
        Scale c; the error of the identity networks is proportional to its square.

    Returns
    -------
    LEMSystem
        System with the bound (58), A = 2 and C = Lip(f), times Lip(o).

    Raises
    ------
    TypeError
        If `f` or `output` is no TanhMap.
    ValueError
        If sizes do not fit, or `scale` does not lie between 0 and 1.

    Notes
    -----
    The proof approximates (67), o of the copy in y, by a further network, which is not needed for o
    of z. Hidden layers and states may differ in size, unlike in (72): smaller ones are padded with
    units that stay at zero.

    References
    ----------
    Rusch, Mishra, Erichson and Mahoney (2022), Long Expressive Memory for Sequence Modeling,
    ICLR, Section 4 and appendices E.4, E.5 and F.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.interpret import TanhMap, lem_of_system
    >>> W = torch.tensor([[0.9, -0.4], [0.4, 0.9]], dtype=torch.float64)
    >>> f = TanhMap(torch.eye(2).double(), [W], inputs=torch.ones(2, 1).double())
    >>> table = lem_of_system(f).errors(torch.ones(20, 1).double())
    >>> bool((table["error"] < 1e-7).all()), bool((table["error"] <= table["bound"]).all())
    (True, True)
    """
    maps = [f] if output is None else [f, output]
    _check_maps(maps)
    size, outer = f.size, 0 if output is None else output.width
    for reader in maps:
        _check_states(reader, [size])
    scale = _checked_fraction("scale", scale)
    weights = _Weights(max(f.width, size + outer), _count_inputs(maps))
    copy, above = slice(0, size), slice(size, size + outer)  # of y
    hidden = slice(0, f.width)  # of z
    weights.W["z"][hidden, copy] = f.states[0] / scale
    weights.read(f, "z", hidden)
    weights.W["y"][copy, hidden] = scale * f.output
    readout = torch.zeros(size if output is None else output.size, weights.size).double()
    if output is None:
        readout[:, copy] = torch.eye(size).double() / scale
    else:
        weights.W["y"][above, hidden] = output.states[0] @ f.output
        weights.read(output, "y", above)
        readout[:, above] = output.output

    def simulate(u: Tensor) -> Tensor:
        phi, outputs = torch.zeros(size).double(), []
        for u_n in u:
            phi = f(phi, u=u_n)
            outputs.append(phi if output is None else output(phi, u=u_n))
        return torch.stack(outputs)

    epsilon = math.sqrt(size) * scale**2 * f.largest**3 / 3
    factor = 2.0 * (1.0 if output is None else output.lipschitz)
    return LEMSystem(weights.layer(), readout, simulate, epsilon, factor, f.lipschitz)


def lem_of_two_scale_system(
    f: TanhMap, g: TanhMap, tau: float, *, scale: float = SCALE
) -> LEMSystem:
    r"""LEM of a fast and a slow variable, by the proof of Proposition 4.5.

    .. math:: \phi_n = f(\phi_{n-1}, \psi_{n-1}, u_n), \qquad
        \psi_n = \tau g(\phi_n, \psi_{n-1}, u_n), \qquad o_n = \psi_n,

    equation (10) of Rusch et al. (2022), from zero. The gate of y is :math:`\tau` for the hidden
    layer of :math:`G(h, c, u) = g(h, c, u) + (1 - 1 / \tau) c`: the weights (93).

    Parameters
    ----------
    f, g : TanhMap
        Maps of the two states, :math:`\phi` first, and of the inputs.
    tau : float
        Time scale, above 0, at most 1.
    scale : float, default 1e-4
        As in `lem_of_system`.

    Returns
    -------
    LEMSystem
        System with the bound (87), with C as in the notes.

    Raises
    ------
    TypeError
        If `f` or `g` is no TanhMap.
    ValueError
        If sizes do not fit, or `tau` or `scale` lies outside its range.

    Notes
    -----
    The proposition claims that weights, biases and size of the LEM do not depend on :math:`\tau`,
    which holds for the size only: a bias of gate 2 is the logit of :math:`\tau`, by (91), and a
    weight that reads G has the factor :math:`1 - 1 / \tau`.

    The second term of :math:`C^*` in (86) has a superfluous factor Lip(f). The inequalities before
    it give :math:`\mathrm{Lip}(f) + (3 + \mathrm{Lip}(g)) (1 + \mathrm{Lip}(f))`, used here.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.interpret import TanhMap, lem_of_two_scale_system
    >>> one = torch.ones(1, 1).double()
    >>> f, g = TanhMap(one, [one, -one], one), TanhMap(one, [one, one])
    >>> systems = [lem_of_two_scale_system(f, g, tau) for tau in (0.5, 0.001)]
    >>> [system.layer.hidden_size for system in systems]
    [3, 3]
    >>> u = torch.ones(50, 1).double()
    >>> [bool((system.errors(u)["error"] < 1e-8).all()) for system in systems]
    [True, True]
    """
    _check_maps([f, g])
    for reader in (f, g):
        _check_states(reader, [f.size, g.size])
    tau, scale = _checked_fraction("tau", tau), _checked_fraction("scale", scale)
    big_g = g.plus_state(1, 1 - 1 / tau, scale)
    layer, of_psi, _ = _two_scale_layer(f, big_g, 1.0, tau, scale)

    def simulate(u: Tensor) -> Tensor:
        phi, psi, outputs = torch.zeros(f.size).double(), torch.zeros(g.size).double(), []
        for u_n in u:
            phi = f(phi, psi, u=u_n)
            psi = tau * g(phi, psi, u=u_n)
            outputs.append(psi)
        return torch.stack(outputs)

    # Copies stay below R* = 2 R, as in the proof; G multiplies the copy of psi by 1 / tau - 1.
    largest = max((2 * f.largest) ** 3, (2 * tau * g.largest) ** 3 * max(1.0, 1 / tau - 1))
    epsilon = math.sqrt(max(f.size, g.size)) * scale**2 * largest / 3
    of_f, of_g = f.lipschitz, g.lipschitz
    factor = 1 + (2 + of_g) * (2 + 2 * of_f)
    growth = max((3 + of_g) * of_f, of_f + (3 + of_g) * (1 + of_f))
    return LEMSystem(layer, of_psi, simulate, epsilon, factor, growth)


def lem_of_multiscale_system(
    maps: Sequence[TanhMap], taus: Sequence[float], *, scale: float = SCALE
) -> LEMSystem:
    r"""LEM of a system with r time scales, by Proposition E.4.

    .. math:: \phi_n^i = \tau_i f^i(\phi_{n-1}^1, \dots, \phi_{n-1}^r, u_n), \qquad
        o_n = (\phi_n^1, \dots, \phi_n^r),

    equation (95) of Rusch et al. (2022), from zero. The paper prints no weights. Here z copies all
    states by identity networks, and y has the hidden layers of
    :math:`f^i + (1 - 1 / \tau_i) \phi^i` with gates :math:`\tau_i`, as in Proposition 4.5.

    Parameters
    ----------
    maps : sequence of TanhMap
        Maps :math:`f^i` of all r states and of the inputs.
    taus : sequence of float
        Time scales :math:`\tau_i`, above 0, at most 1.
    scale : float, default 1e-4
        As in `lem_of_system`.

    Returns
    -------
    LEMSystem
        System without a bound.

    Raises
    ------
    TypeError
        If a map is no TanhMap.
    ValueError
        If sizes do not fit, or a time scale or `scale` lies outside its range.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.interpret import TanhMap, lem_of_multiscale_system
    >>> one = torch.ones(1, 1).double()
    >>> maps = [TanhMap(one, [one, -one, one], one) for _ in range(3)]
    >>> system = lem_of_multiscale_system(maps, [0.01, 0.1, 1.0])
    >>> system.layer.hidden_size
    6
    >>> bool((system.errors(torch.ones(50, 1).double())["error"] < 1e-7).all())
    True
    """
    if isinstance(maps, TanhMap):
        raise TypeError("maps must be a sequence of TanhMap; got one. Give [map]")
    maps, taus = list(maps), list(taus)
    _check_maps(maps)
    sizes = [f.size for f in maps]
    for reader in maps:
        _check_states(reader, sizes)
    scale = _checked_fraction("scale", scale)
    if len(taus) != len(maps):
        raise ValueError(f"taus must be {len(maps)} numbers, one for every map; got {len(taus)}")
    steps = [_checked_fraction(f"taus[{i}]", tau) for i, tau in enumerate(taus)]
    added = [f.plus_state(i, 1 - 1 / steps[i], scale) for i, f in enumerate(maps)]
    copies, hidden = _slices(sizes), _slices([f.width for f in added])
    weights = _Weights(hidden[-1].stop, _count_inputs(maps))
    readout = torch.zeros(copies[-1].stop, weights.size).double()
    for i, f in enumerate(added):
        weights.W["z"][copies[i], hidden[i]] = scale * f.output
        for j, matrix in enumerate(f.states):
            weights.W["y"][hidden[i], copies[j]] = matrix / scale
        weights.read(f, "y", hidden[i])
        weights.b["2"][hidden[i]] = _logit(steps[i])
        readout[copies[i], hidden[i]] = f.output

    def simulate(u: Tensor) -> Tensor:
        phi, outputs = [torch.zeros(size).double() for size in sizes], []
        for u_n in u:
            phi = [tau * f(*phi, u=u_n) for tau, f in zip(steps, maps, strict=True)]
            outputs.append(torch.cat(phi))
        return torch.stack(outputs)

    return LEMSystem(weights.layer(), readout, simulate)


def lem_of_fast_slow_ode(
    f: TanhMap,
    g: TanhMap,
    step: float,
    micro_step: float,
    micro_steps: int,
    *,
    scale: float = SCALE,
) -> LEMSystem:
    r"""LEM of a multiscale method for fast and slow equations, by Proposition F.1.

    For :math:`\phi' = (f(\psi) - \phi) / \tau` and :math:`\psi' = g(\phi, \psi)`, (97) of Rusch et
    al. (2022), the heterogeneous multiscale method takes K small steps :math:`\delta t` of the
    fast variable at a fixed slow one, then one step of the slow variable, (98) to (101),

    .. math::
        \phi_n = (1 - \delta t)^K \phi_{n-1} + (1 - (1 - \delta t)^K) f(\psi_{n-1}), \qquad
        \psi_n = \psi_{n-1} + \widetilde{\Delta t} \, g(\phi_n, \psi_{n-1}),

    from zero. The outputs are both, :math:`\phi` first.

    Parameters
    ----------
    f, g : TanhMap
        Maps f of :math:`\psi` and g of :math:`\phi` and :math:`\psi`; both may have inputs.
    step, micro_step : float
        :math:`\widetilde{\Delta t}` and :math:`\delta t`, above 0, at most 1.
    micro_steps : int
        Number K of small steps.
    scale : float, default 1e-4
        As in `lem_of_system`.

    Returns
    -------
    LEMSystem
        System without a bound: the paper omits the constant of (112).

    Raises
    ------
    TypeError
        If `f` or `g` is no TanhMap.
    ValueError
        If sizes do not fit, or a step or `scale` lies outside its range.

    Notes
    -----
    Two corrections of the paper: the gate of z is :math:`1 - (1 - \delta t)^K`, one minus the value
    in (115), and (99) needs a plus in place of a minus to give (101).

    Examples
    --------
    >>> import torch
    >>> from tsrnn.interpret import TanhMap, lem_of_fast_slow_ode
    >>> one = torch.ones(1, 1).double()
    >>> f, g = TanhMap(one, [one]), TanhMap(one, [-one, -one], bias=torch.ones(1).double())
    >>> system = lem_of_fast_slow_ode(f, g, step=0.1, micro_step=0.3, micro_steps=5)
    >>> bool((system.errors(torch.zeros(200, 1).double())["error"] < 1e-6).all())
    True
    """
    _check_maps([f, g])
    _check_states(f, [g.size])
    _check_states(g, [f.size, g.size])
    step, scale = _checked_fraction("step", step), _checked_fraction("scale", scale)
    micro_step = _checked_fraction("micro_step", micro_step)
    if not isinstance(micro_steps, Integral) or isinstance(micro_steps, bool) or micro_steps < 1:
        raise ValueError(f"micro_steps must be a positive integer; got {micro_steps!r}")
    kept = (1 - micro_step) ** int(micro_steps)
    if kept == 1:
        raise ValueError(
            f"micro_step must be large enough for 1 - micro_step to differ from 1; got {micro_step}"
        )
    both = TanhMap(  # f as a map of both states that ignores the first
        f.output, [f.output.new_zeros(f.width, f.size), *f.states], f.inputs, f.bias
    )
    added = g.plus_state(1, 1.0, scale)
    layer, of_psi, of_phi = _two_scale_layer(both, added, 1 - kept, step, scale)

    def simulate(u: Tensor) -> Tensor:
        phi, psi, outputs = torch.zeros(f.size).double(), torch.zeros(g.size).double(), []
        for u_n in u:
            for _ in range(int(micro_steps)):
                phi = phi + micro_step * (f(psi, u=u_n) - phi)
            psi = psi + step * g(phi, psi, u=u_n)
            outputs.append(torch.cat([phi, psi]))
        return torch.stack(outputs)

    return LEMSystem(layer, torch.cat([of_phi, of_psi]), simulate)


def _two_scale_layer(
    f: TanhMap, g: TanhMap, z_step: float, y_step: float, scale: float
) -> tuple[LEM, Tensor, Tensor]:
    """Layer of (93) and (118), and readouts of the slow variable and the copied fast one."""
    weights = _Weights(max(g.width + f.size, f.width + g.size), _count_inputs([f, g]))
    # z is the hidden layer of f and a copy of psi, y the hidden layer of g and a copy of phi.
    of_f, psi = slice(0, f.width), slice(f.width, f.width + g.size)
    of_g, phi = slice(0, g.width), slice(g.width, g.width + f.size)
    weights.W["z"][of_f, phi] = f.states[0] / scale
    weights.W["z"][of_f, of_g] = f.states[1] @ g.output
    weights.W["z"][psi, of_g] = scale * g.output
    weights.W["y"][of_g, of_f] = g.states[0] @ f.output
    weights.W["y"][of_g, psi] = g.states[1] / scale
    weights.W["y"][phi, of_f] = scale * f.output
    weights.read(f, "z", of_f)
    weights.read(g, "y", of_g)
    weights.b["1"][of_f] = _logit(z_step)
    weights.b["2"][of_g] = _logit(y_step)
    of_psi, of_phi = torch.zeros(2, max(f.size, g.size), weights.size).double()
    of_psi, of_phi = of_psi[: g.size], of_phi[: f.size]
    of_psi[:, of_g] = g.output
    of_phi[:, phi] = torch.eye(f.size).double() / scale
    return weights.layer(), of_psi, of_phi


class _Weights:
    """Weights of a LEM with full matrices, initially zero with open gates."""

    def __init__(self, size: int, input_size: int) -> None:
        self.size, self.input_size = size, input_size
        self.W = {kind: torch.zeros(size, size).double() for kind in "12zy"}
        self.V = {kind: torch.zeros(size, input_size).double() for kind in "12zy"}
        self.b = {kind: torch.zeros(size).double() for kind in "zy"}
        self.b |= {kind: torch.full((size,), OPEN).double() for kind in "12"}

    def read(self, tanh_map: TanhMap, kind: str, units: slice) -> None:
        """Set inputs and bias of the hidden units of a map."""
        if tanh_map.inputs is not None:
            self.V[kind][units] = tanh_map.inputs
        if tanh_map.bias is not None:
            self.b[kind][units] = tanh_map.bias

    def layer(self) -> LEM:
        """Layer with these weights."""
        # An unrolled block of eight units compiles in half a minute, the dense engine in a second.
        layer = LEM(self.input_size, self.size, dtype=torch.float64, engine="dense")
        with torch.no_grad():
            for name, weights in (
                ("weight_hh_l0", torch.stack([self.W[kind] for kind in "12zy"])[..., None]),
                ("weight_ih_l0", torch.cat([self.V[kind] for kind in "12zy"])),
                ("bias_l0", torch.cat([self.b[kind] for kind in "12zy"])),
            ):
                layer.get_parameter(name).copy_(weights)
        return layer.requires_grad_(False)


def _logit(step: float) -> float:
    """Bias of a gate with the value `step`, (91)."""
    return OPEN if step == 1 else math.log(step) - math.log1p(-step)


def _slices(sizes: Sequence[int]) -> list[slice]:
    """Consecutive slices of the given sizes."""
    ends = np.cumsum(sizes).tolist()
    return [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]


def _with_zeros(tensor: Tensor, rows: int) -> Tensor:
    return torch.cat([tensor, tensor.new_zeros(rows, *tensor.shape[1:])])


def _count_inputs(maps: Sequence[TanhMap]) -> int:
    """Common number of inputs of maps; 1 unused input if no map has any."""
    widths = {tanh_map.inputs.shape[1] for tanh_map in maps if tanh_map.inputs is not None}
    if len(widths) > 1:
        raise ValueError(f"maps must have inputs of one size; got {sorted(widths)}")
    return max(widths, default=1)


def _check_weight(name: str, value: Any, shape: Sequence[int | None]) -> None:
    check_tensor(name, value, torch.float64)
    fits = value.ndim == len(shape) and all(
        due in (None, size) for due, size in zip(shape, value.shape, strict=True)
    )
    if not fits or value.dtype != torch.float64 or not torch.isfinite(value).all():
        words = ", ".join("any" if due is None else str(due) for due in shape)
        raise ValueError(
            f"{name} must be finite, of dtype torch.float64 and shape ({words}); got "
            f"{tuple(value.shape)}, {value.dtype}"
        )


def _check_maps(maps: Sequence[Any]) -> None:
    for value in maps:
        if not isinstance(value, TanhMap):
            raise TypeError(
                f"maps must be tsrnn.interpret.TanhMap; got {type(value).__name__}. Approximate "
                "a function by such a network first"
            )
    if not maps:
        raise ValueError("maps must be at least one TanhMap; got none")


def _check_states(tanh_map: TanhMap, sizes: Sequence[int]) -> None:
    read = [matrix.shape[1] for matrix in tanh_map.states]
    if read != list(sizes):
        raise ValueError(
            f"a map must read states of the sizes {list(sizes)}; got one of the sizes {read}"
        )


def _checked_fraction(name: str, value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) <= 1:
        raise ValueError(f"{name} must lie above 0 and be at most 1; got {value!r}")
    return float(value)
