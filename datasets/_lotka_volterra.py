"""Predators and prey with an input: a nonlinear system with memory."""

import math

import numpy as np


def lotka_volterra(
    n: int,
    length: int = 2048,
    *,
    dt: float = 0.0075,
    a: float = 1.0,
    b: float = 0.6,
    c: float = 1.0,
    d: float = 0.3,
    initial: tuple[float, float] = (1.0, 0.5),
    amplitude: float = 1.0,
    cycles: float = 2.0,
    random_state: int | np.random.Generator | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Random inputs of the controlled Lotka-Volterra equations, and what follows from them.

    Prey :math:`z_1` and predators :math:`z_2`, to which u are added a unit of time,

    .. math:: \dot z_1 = z_1 (a - b z_2), \qquad \dot z_2 = -z_2 (c - d z_1) + u,

    in Euler steps of `dt`: :math:`z_k = z_{k-1} + \Delta t\, f(z_{k-1}, u_k)`. Inputs are sparse
    in a Fourier basis of two functions,

    .. math:: u_k = \alpha_1 + \alpha_2 \cos(2\pi\, k\, \mathrm{cycles} / L), \qquad
        \alpha_1 \sim U[0, \mathrm{amplitude}], \quad \alpha_2 \mid \alpha_1 \sim
        U[-\alpha_1, \alpha_1].

    Parameters
    ----------
    n : int
        Number of trajectories.
    length : int, default 2048
        L, steps of a trajectory.
    dt : float, default 0.0075
        Length of an Euler step.
    a, b, c, d : float, default 1, 0.6, 1 and 0.3
        Rates of growth, of being eaten, of death and of growth by eating.
    initial : (float, float), default (1, 0.5)
        :math:`z_1` and :math:`z_2` before the first step, positive.
    amplitude : float, default 1
        Largest mean of an input.
    cycles : float, default 2
        Waves of an input over the whole length.
    random_state : int or numpy.random.Generator, optional
        Seed, or the generator to draw from; another sample at every call by default.

    Returns
    -------
    u : ndarray of shape (n, length)
    z : ndarray of shape (n, length, 2)
        Prey and predators after every step.

    Raises
    ------
    ValueError
        If a size is no positive integer, a rate, `dt` or an initial value is not positive,
        `amplitude` is negative, or a trajectory leaves the positive quadrant because `dt` is too
        long for it.

    Notes
    -----
    Defaults are the paper's. Of its inputs it says no more than that they are "sampled from a
    2-dimensional Fourier basis": which two functions and coefficients is our choice. Inputs are
    not negative, because negative ones drive predators below zero, where the system explodes.

    References
    ----------
    Orvieto, De, Gulcehre, Pascanu and Smith (2023), On the Universality of Linear Recurrences
    Followed by Nonlinear Projections, Appendix E.3, equations (37) and (38).

    Examples
    --------
    >>> from tsrnn.datasets import lotka_volterra
    >>> u, z = lotka_volterra(10, random_state=0)
    >>> u.shape, z.shape
    ((10, 2048), (10, 2048, 2))
    """
    _check_sizes(n=n, length=length)
    _check_positive(dt=dt, a=a, b=b, c=c, d=d, z1=initial[0], z2=initial[1])
    if not amplitude >= 0:
        raise ValueError(f"amplitude must not be negative; got {amplitude!r}")
    generator = np.random.default_rng(random_state)
    mean = generator.uniform(0.0, amplitude, (n, 1))
    wave = mean * generator.uniform(-1.0, 1.0, (n, 1))
    u = mean + wave * np.cos(2 * math.pi * cycles * np.arange(1, length + 1) / length)
    z = np.empty((n, length, 2))
    prey, predators = np.full(n, float(initial[0])), np.full(n, float(initial[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(length):
            prey, predators = (
                prey + dt * prey * (a - b * predators),
                predators + dt * (u[:, k] - predators * (c - d * prey)),
            )
            z[:, k, 0], z[:, k, 1] = prey, predators
    _check_trajectories(z, dt)
    return u, z


def _check_sizes(**sizes: int) -> None:
    for name, value in sizes.items():
        if not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} must be a positive integer; got {value!r}")


def _check_positive(**values: float) -> None:
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be positive and finite; got {value!r}")


def _check_trajectories(z: np.ndarray, dt: float) -> None:
    wrong = np.argwhere(~((z > 0) & (z < np.inf)))
    if len(wrong):
        row, step, _ = wrong[0]
        raise ValueError(
            f"Euler steps of dt={dt} are too long: trajectory {row} leaves the positive quadrant "
            f"at step {step}. Give a smaller dt"
        )
