"""The adding problem: a memory test for recurrent networks."""

import numpy as np


def adding_problem(
    n: int, length: int, random_state: int | np.random.Generator | None = None
) -> tuple[np.ndarray, np.ndarray]:
    r"""Sequences of random numbers, of which the sum of two marked ones is wanted.

    .. math:: y = x_{p,1} + x_{q,1}, \qquad x_{t,1} \sim U[0, 1), \qquad
        x_{t,2} = 1\{t \in \{p, q\}\},

    with p uniform on the first half of the steps, 1 to floor(N / 2), and q on the second.

    Parameters
    ----------
    n : int
        Number of sequences.
    length : int
        N, steps of a sequence, at least 2.
    random_state : int or numpy.random.Generator, optional
        Seed, or the generator to draw from; another sample at every call by default.

    Returns
    -------
    x : ndarray of shape (n, length, 2)
        The numbers and the marks.
    y : ndarray of shape (n,)
        The sums. Their variance is 1/6, the mean squared error of the constant forecast 1.

    Raises
    ------
    ValueError
        If `n` is no positive integer or `length` no integer of at least 2.

    References
    ----------
    Hochreiter and Schmidhuber (1997), Long Short-Term Memory; as in Rusch et al. (2022), Long
    Expressive Memory for Sequence Modeling, Section 5, and Cai et al. (2026), ParaRNN, D.6.

    Examples
    --------
    >>> from tsrnn.datasets import adding_problem
    >>> x, y = adding_problem(100, 50, random_state=0)
    >>> x.shape, y.shape
    ((100, 50, 2), (100,))
    >>> bool(((x[..., 0] * x[..., 1]).sum(1) == y).all())
    True
    """
    _check(n=(n, 1), length=(length, 2))
    generator = np.random.default_rng(random_state)
    x = np.zeros((n, length, 2))
    x[..., 0] = generator.random((n, length))
    rows, half = np.arange(n), length // 2
    first = generator.integers(half, size=n)
    second = generator.integers(half, length, size=n)
    x[rows, first, 1] = x[rows, second, 1] = 1.0
    return x, x[rows, first, 0] + x[rows, second, 0]


def _check(**sizes: tuple[int, int]) -> None:
    """Raise unless every size is an integer of at least its minimum."""
    for name, (value, least) in sizes.items():
        if not isinstance(value, int | np.integer) or value < least:
            raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}")
