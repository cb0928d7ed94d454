"""The adding problem: a memory test for recurrent networks."""

import numpy as np

from tsrnn.datasets._checks import check_at_least
from tsrnn.datasets._regression import RegressionProcess

__all__ = ["AddingProblem", "adding_problem"]


def adding_problem(
    n: int, length: int, random_state: int | np.random.Generator | None = None
) -> tuple[np.ndarray, np.ndarray]:
    r"""Sequences of random numbers, two of them marked, and the sum of the marked ones.

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
        If `n` is not a positive integer or `length` not an integer of at least 2.

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
    check_at_least(1, n=n)
    check_at_least(2, length=length)
    generator = np.random.default_rng(random_state)
    x = np.zeros((n, length, 2))
    x[..., 0] = generator.random((n, length))
    rows, half = np.arange(n), length // 2
    first = generator.integers(half, size=n)
    second = generator.integers(half, length, size=n)
    x[rows, first, 1] = x[rows, second, 1] = 1.0
    return x, x[rows, first, 0] + x[rows, second, 0]


class AddingProblem(RegressionProcess):
    r"""The adding problem as a regression process.

    .. math:: z = x_{p,1} + x_{q,1} + \varepsilon, \qquad f_0(X) = \sum_t x_{t,1} x_{t,2},

    with the inputs of `adding_problem`.

    Parameters
    ----------
    length : int
        T, steps of a sequence, at least 2.
    noise_std : float, default 0
        Standard deviation of the errors; the paper has none.

    Attributes
    ----------
    length, n_inputs, n_outputs, noise_std
        See `RegressionProcess`; there are 2 inputs at a step and 1 output.

    Raises
    ------
    ValueError
        If `length` is not an integer of at least 2, or `noise_std` negative.

    Notes
    -----
    The variance of :math:`f_0(X)` is 1/6. The same seed draws other samples than in
    `adding_problem`.

    References
    ----------
    As for `adding_problem`.

    Examples
    --------
    >>> from tsrnn.datasets import AddingProblem
    >>> X, z = AddingProblem(50).sample(100, random_state=0)
    >>> X.shape, z.shape
    ((100, 50, 2), (100,))
    """

    def __init__(self, length: int, *, noise_std: float = 0.0):
        check_at_least(2, length=length)
        super().__init__(length, n_inputs=2, noise_std=noise_std)

    def _draw_inputs(self, n: int, generator: np.random.Generator) -> np.ndarray:
        return adding_problem(n, self.length, generator)[0]

    def _mean_of(self, X: np.ndarray) -> np.ndarray:
        return (X[..., 0] * X[..., 1]).sum(1)
