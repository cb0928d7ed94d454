"""Any regression process, followed by steps that carry nothing but noise."""

from __future__ import annotations

import numpy as np

from tsrnn.datasets._regression import RegressionProcess, check_sizes, checked_std

__all__ = ["NoisePadded"]


class NoisePadded(RegressionProcess):
    r"""Regression process whose inputs are followed by independent noise.

    .. math:: z = f_0(x_1, \dots, x_S) + \varepsilon, \qquad x_t \sim N(0, \tau^2 I)
        \quad \text{for } S < t \le T,

    where :math:`f_0`, the first S steps and the errors are those of `process`. A model that reads
    from left to right has to remember over T - S steps.

    Parameters
    ----------
    process : RegressionProcess
        Process of length S.
    length : int
        T, steps of a padded sequence, at least S.
    padding_std : float, default 1
        :math:`\tau`, standard deviation of the noise.

    Attributes
    ----------
    process, padding_std
        As given.
    length, n_inputs, n_outputs, noise_std
        See `RegressionProcess`; all but the length are those of `process`.

    Raises
    ------
    TypeError
        If `process` is no `RegressionProcess`.
    ValueError
        If `length` is no integer of at least that of the process, or `padding_std` negative.

    Notes
    -----
    With the same integer `random_state`, the first S steps and the responses are exactly those
    of `process`, unless that is padded itself.

    In noise-padded CIFAR-10 an image is 32 steps of 96 inputs, padded to 1000. The paper says
    only that the noise is random; that it is standard normal by default is our choice.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, Section 6.3, after Chang, Chen, Haber and Chi (2019),
    AntisymmetricRNN: A Dynamical System View on Recurrent Neural Networks.

    Examples
    --------
    >>> from tsrnn.datasets import AddingProblem, NoisePadded
    >>> X, z = NoisePadded(AddingProblem(20), length=100).sample(5, random_state=0)
    >>> X.shape
    (5, 100, 2)
    >>> bool((z == AddingProblem(20).mean(X[:, :20])).all())
    True
    """

    process: RegressionProcess
    padding_std: float

    def __init__(self, process: RegressionProcess, length: int, *, padding_std: float = 1.0):
        if not isinstance(process, RegressionProcess):
            raise TypeError(f"process must be a RegressionProcess; got {process!r}")
        check_sizes(length=(length, process.length))
        super().__init__(length, process.n_inputs, process.n_outputs, process.noise_std)
        self._set(process=process, padding_std=checked_std("padding_std", padding_std))

    def _draw_inputs(self, n: int, generator: np.random.Generator) -> np.ndarray:
        # A child, so that the process draws as it does without padding.
        (of_noise,) = generator.spawn(1)
        first = self.process._draw_inputs(n, generator)
        shape = (n, self.length - self.process.length, self.n_inputs)
        return np.concatenate([first, self.padding_std * of_noise.standard_normal(shape)], axis=1)

    def _mean_of(self, X: np.ndarray) -> np.ndarray:
        return self.process._mean_of(np.ascontiguousarray(X[:, : self.process.length]))

    def _draw_errors(self, n: int, generator: np.random.Generator) -> np.ndarray:
        return self.process._draw_errors(n, generator)
