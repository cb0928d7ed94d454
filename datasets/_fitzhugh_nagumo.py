"""The FitzHugh-Nagumo system: two variables on two time scales."""

import numpy as np


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
        If a size is no positive integer, `t_end` or `tau` not positive, `b` negative, or a number
        not finite.
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

    _check(n, length, {"t_end": t_end, "tau": tau}, {"i_ext": i_ext, "a": a, "b": b})

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


def _check(n: int, length: int, positive: dict[str, float], finite: dict[str, float]) -> None:
    """Raise unless sizes are positive integers, and numbers positive or at least finite."""
    for name, size in (("n", n), ("length", length)):
        if not isinstance(size, int | np.integer) or size < 1:
            raise ValueError(f"{name} must be a positive integer; got {size!r}")
    for name, value in positive.items():
        if not 0 < value < np.inf:
            raise ValueError(f"{name} must be a positive number; got {value!r}")
    for name, value in finite.items():
        if not np.isfinite(value):
            raise ValueError(f"{name} must be a finite number; got {value!r}")
    if finite["b"] < 0:
        raise ValueError(
            f"b must not be negative, as solutions may then grow without bound; got {finite['b']!r}"
        )
