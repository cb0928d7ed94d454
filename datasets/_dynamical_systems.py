"""Dynamical systems: relaxation oscillators, and predators and prey with an input."""

import math

import numpy as np

from tsrnn.datasets._checks import check_at_least, check_positive, is_real, not_negative

__all__ = ["fitzhugh_nagumo", "lotka_volterra"]


def fitzhugh_nagumo(
    n: int,
    length: int = 1000,
    random_state: int | np.random.Generator | None = None,
    *,
    t_end: float = 400.0,
    tau: float = 0.02,
    i_ext: float = 0.5,
    a: float = 0.7,
    b: float = 0.8,
) -> np.ndarray:
    r"""Trajectories of a relaxation oscillator from random initial values.

    .. math:: v' = v - v^3 / 3 - w + I_{\mathrm{ext}}, \qquad w' = \tau (v + a - b w),
        \qquad v(0) \sim U[-1, 1), \quad w(0) = 0,

    with the fast variable v and the slow variable w, at the times
    :math:`0, h, 2 h, \dots, t_{\mathrm{end}}`, where h is `t_end` / `length`. The time of the
    system has no unit.

    Parameters
    ----------
    n : int
        Number of trajectories.
    length : int, default 1000
        Steps of a trajectory.
    random_state : int or numpy.random.Generator, optional
        Seed, or the generator to draw from; another sample at every call by default.
    t_end : float, default 400
        Time of the last value.
    tau : float, default 0.02
        Rate of the slow variable, positive.
    i_ext, a, b : float, defaults 0.5, 0.7, 0.8
        External signal, and the constants of the slow variable, b not negative.

    Returns
    -------
    ndarray of shape (n, length + 1, 2)
        v and w, from the initial values on.

    Raises
    ------
    ValueError
        If a size is not a positive integer, `t_end` or `tau` not positive, `b` negative, or a
        number not finite.
    RuntimeError
        If the solver fails.

    Notes
    -----
    Solved by the Runge-Kutta method of order 5(4), all trajectories in one system, with a
    relative tolerance of 1e-8: with the parameters by default values are accurate to about
    1e-6. SciPy's default tolerance leaves errors of 0.04 in the mean and 0.5 where v jumps.

    The task of the paper is to forecast v one step ahead from the past of v: of `states`, inputs
    are ``states[:, :-1, :1]`` and targets ``states[:, 1:, :1]``. There are 128 trajectories each
    to train and to validate and 1024 to test, drawn one after the other, with the defaults here.

    References
    ----------
    FitzHugh (1955), Mathematical models of threshold phenomena in the nerve membrane; as in
    Rusch et al. (2022), Long Expressive Memory for Sequence Modeling, equation (12) and Table 4.

    Examples
    --------
    >>> from tsrnn.datasets import fitzhugh_nagumo
    >>> states = fitzhugh_nagumo(3, 100, random_state=0)
    >>> states.shape
    (3, 101, 2)
    >>> inputs, targets = states[:, :-1, :1], states[:, 1:, :1]
    """
    from scipy.integrate import solve_ivp  # slow to import for those who only load data

    check_at_least(1, n=n, length=length)
    check_positive(t_end=t_end, tau=tau)
    for name, value in (("i_ext", i_ext), ("a", a), ("b", b)):
        if not is_real(value) or not math.isfinite(value):
            raise ValueError(f"{name} must be a finite number; got {value!r}")
    if b < 0:
        raise ValueError(
            f"b must not be negative, as solutions may then grow without bound; got {b!r}"
        )

    def rates(_: float, state: np.ndarray) -> np.ndarray:
        v, w = state.reshape(2, n)
        return np.concatenate([v - v**3 / 3 - w + i_ext, tau * (v + a - b * w)])

    first = np.random.default_rng(random_state).uniform(-1.0, 1.0, n)
    times = np.linspace(0.0, t_end, length + 1)
    start = np.concatenate([first, np.zeros(n)])
    solution = solve_ivp(
        rates, (0.0, t_end), start, method="RK45", t_eval=times, rtol=1e-8, atol=1e-10
    )
    if not solution.success:
        raise RuntimeError(f"the solver stopped before t_end={t_end:g}: {solution.message}")
    return np.ascontiguousarray(solution.y.reshape(2, n, length + 1).transpose(1, 2, 0))


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
    r"""Random inputs of the controlled Lotka-Volterra equations, and the populations they cause.

    Prey :math:`z_1` and predators :math:`z_2`, with u predators added per unit of time,

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
        If a size is not a positive integer, a rate, `dt` or an initial value is not positive,
        `amplitude` is negative, or a trajectory leaves the positive quadrant because `dt` is too
        long for it.

    Notes
    -----
    Defaults are the paper's. It says only that inputs are "sampled from a 2-dimensional Fourier
    basis": the two functions and their coefficients are our choice. Inputs are not negative,
    because negative ones drive predators below zero, where the system explodes.

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
    check_at_least(1, n=n, length=length)
    if np.shape(initial) != (2,):
        raise ValueError(f"initial must be two numbers, of prey and predators; got {initial!r}")
    check_positive(dt=dt, a=a, b=b, c=c, d=d, z1=initial[0], z2=initial[1])
    not_negative("amplitude", amplitude)
    if not is_real(cycles) or not math.isfinite(cycles):
        raise ValueError(f"cycles must be a finite number; got {cycles!r}")
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
    wrong = np.argwhere(~((z > 0) & (z < np.inf)))
    if len(wrong):
        row, step, _ = wrong[0]
        raise ValueError(
            f"Euler steps of dt={dt} are too long: trajectory {row} leaves the positive quadrant "
            f"at step {step}. Give a smaller dt"
        )
    return u, z
