"""Data-generating processes of regression on sequences, also padded with noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tsrnn.datasets._checks import check_at_least, not_negative

__all__ = ["NoisePadded", "RegressionProcess"]

Pair = tuple[np.ndarray, np.ndarray]
# Samples are drawn and evaluated in blocks of this size, since the rounding of matrix products
# depends on their shape, and so a sample would depend on the number of samples.
BLOCK = 64


class RegressionProcess(ABC):
    r"""Process of independent pairs of a sequence of inputs and a response.

    .. math:: z = f_0(X) + \varepsilon, \qquad X \in \mathbb R^{T \times d_{\mathrm{in}}}, \quad
        E(\varepsilon \mid X) = 0,

    so that :math:`f_0(X) = E(z \mid X)` is the target of a regression of z on X. Errors are
    independent normal with mean 0 and standard deviation `noise_std`, unless a subclass overrides
    them.

    A subclass implements three methods: ``_draw_inputs(n, generator)`` returns an array
    (n, T, d_in), ``_mean_of(X)`` returns :math:`f_0` as (n, n_outputs), or (n,) for one output, and
    the constructor calls the base constructor. It may override ``_draw_errors(n, generator)``, of
    shape (n, n_outputs).

    Parameters
    ----------
    length : int
        Steps T of a sequence.
    n_inputs : int
        Inputs :math:`d_{\mathrm{in}}` per step.
    n_outputs : int, default 1
        Entries of the response.
    noise_std : float, default 0
        Standard deviation of each entry of the error; 0 for none.

    Attributes
    ----------
    length, n_inputs, n_outputs, noise_std
        As given.

    Raises
    ------
    ValueError
        If a size is not a positive integer, or the standard deviation negative or not finite.

    Notes
    -----
    A process is immutable; random parts of :math:`f_0` are drawn from the ``random_state`` of the
    constructor.

    The `random_state` of a method seeds two generators, for inputs and errors, and both draw in
    blocks of fixed size. So the first samples of a seed are the same, to the last digit, for any
    number of samples and any batch size.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.datasets import RegressionProcess
    >>> class LargestValue(RegressionProcess):
    ...     def __init__(self, length):
    ...         super().__init__(length, n_inputs=1, noise_std=0.1)
    ...
    ...     def _draw_inputs(self, n, generator):
    ...         return generator.random((n, self.length, 1))
    ...
    ...     def _mean_of(self, X):
    ...         return X.max((1, 2))
    >>> X, z = LargestValue(20).sample(100, random_state=0)
    >>> X.shape, z.shape
    ((100, 20, 1), (100,))
    """

    length: int
    n_inputs: int
    n_outputs: int
    noise_std: float

    def __init__(self, length: int, n_inputs: int, n_outputs: int = 1, noise_std: float = 0.0):
        check_at_least(1, length=length, n_inputs=n_inputs, n_outputs=n_outputs)
        self._set(
            length=int(length),
            n_inputs=int(n_inputs),
            n_outputs=int(n_outputs),
            noise_std=not_negative("noise_std", noise_std),
        )

    def inputs(self, n: int, random_state: int | np.random.Generator | None = None) -> np.ndarray:
        """Draw inputs without responses.

        Parameters
        ----------
        n : int
            Number of sequences.
        random_state : int or numpy.random.Generator, optional
            Seed, or the generator to draw the seed from; by default different at every call.

        Returns
        -------
        ndarray of shape (n, T, d_in)
            Inputs, float64; for an integer `random_state` those of `sample`.

        Raises
        ------
        ValueError, TypeError
            As in `sample`.
        """
        check_at_least(1, n=n)
        generator, _ = _two_generators(random_state)
        blocks = [self._input_block(generator) for _ in range(-(-n // BLOCK))]
        return np.concatenate(blocks)[:n]

    def mean(self, X: ArrayLike) -> np.ndarray:
        r"""Evaluate the regression function :math:`f_0`.

        Parameters
        ----------
        X : array_like of shape (n, T, d_in)
            Inputs, from the process or not.

        Returns
        -------
        ndarray of shape (n,), or (n, n_outputs) if there are several outputs
            Conditional means :math:`f_0(X_i)` of the response.

        Raises
        ------
        ValueError
            If X has another shape, or values are not finite.
        """
        X = self._checked_inputs(X)
        means = np.empty((len(X), self.n_outputs))
        for start in range(0, len(X), BLOCK):
            rows = np.minimum(np.arange(start, start + BLOCK), len(X) - 1)
            block = self._mean_block(X[rows])
            means[start : start + BLOCK] = block[: len(X) - start]
        return self._squeezed(means)

    def sample(self, n: int, random_state: int | np.random.Generator | None = None) -> Pair:
        """Draw independent pairs of inputs and responses.

        Parameters
        ----------
        n : int
            Number of pairs.
        random_state : int or numpy.random.Generator, optional
            Seed, or the generator to draw the seed from; by default different at every call.

        Returns
        -------
        X : ndarray of shape (n, T, d_in)
        z : ndarray of shape (n,), or (n, n_outputs) if there are several outputs

        Raises
        ------
        ValueError
            If `n` is not a positive integer, or a seed negative.
        TypeError
            If `random_state` is of another type.
        """
        check_at_least(1, n=n)
        return next(self.stream(n, random_state))

    def stream(
        self, batch_size: int, random_state: int | np.random.Generator | None = None
    ) -> Iterator[Pair]:
        """Draw batches of independent pairs without end.

        For an integer `random_state`, the batches together begin with the pairs of `sample`,
        whatever the batch size.

        Parameters
        ----------
        batch_size : int
            Pairs in a batch.
        random_state : int or numpy.random.Generator, optional
            Seed, or the generator to draw the seed from; by default different at every call.

        Returns
        -------
        iterator of (X, z)
            Shapes as in `sample`, with `batch_size` for n.

        Raises
        ------
        ValueError, TypeError
            As in `sample`.
        """
        check_at_least(1, batch_size=batch_size)
        return _batches(self._blocks(*_two_generators(random_state)), batch_size)

    @abstractmethod
    def _draw_inputs(self, n: int, generator: np.random.Generator) -> np.ndarray:
        """Draw inputs of shape (n, T, d_in)."""

    @abstractmethod
    def _mean_of(self, X: np.ndarray) -> np.ndarray:
        """Return the means of checked inputs, shape (n, n_outputs), or (n,) for one output."""

    def _draw_errors(self, n: int, generator: np.random.Generator) -> np.ndarray:
        return self.noise_std * generator.standard_normal((n, self.n_outputs))

    def _blocks(self, of_inputs: np.random.Generator, of_errors: np.random.Generator) -> Any:
        while True:
            X = self._input_block(of_inputs)
            z = self._mean_block(X) + self._draw_errors(BLOCK, of_errors)
            yield X, self._squeezed(z)

    def _input_block(self, generator: np.random.Generator) -> np.ndarray:
        X = np.asarray(self._draw_inputs(BLOCK, generator), dtype=np.float64)
        if X.shape != (BLOCK, self.length, self.n_inputs):
            raise ValueError(
                f"inputs drawn must be of shape {(BLOCK, self.length, self.n_inputs)}, that is "
                f"(sequences, length, n_inputs); got {X.shape}"
            )
        return X

    def _mean_block(self, X: np.ndarray) -> np.ndarray:
        return np.reshape(self._mean_of(X), (BLOCK, self.n_outputs))

    def _squeezed(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self.n_outputs == 1 else values

    def _checked_inputs(self, X: ArrayLike) -> np.ndarray:
        values = np.asarray(X)
        if values.dtype.kind not in "iufb":
            raise ValueError(f"X must hold real numbers; got an array of type {values.dtype}")
        if values.ndim != 3 or values.shape[1:] != (self.length, self.n_inputs):
            raise ValueError(
                f"X must be of shape (n, {self.length}, {self.n_inputs}), that is (sequences, "
                f"length, n_inputs); got {values.shape}"
            )
        wrong = np.argwhere(~np.isfinite(values))
        if len(wrong):
            place = tuple(wrong[0].tolist())
            raise ValueError(f"X must be finite; got {values[place]} at {place}")
        return values.astype(np.float64)

    def _set(self, **attributes: Any) -> None:
        for value in attributes.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        self.__dict__.update(attributes)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"{type(self).__name__}.{name} cannot be set: a process does not change; make another"
        )


class NoisePadded(RegressionProcess):
    r"""Regression process with inputs followed by independent noise.

    .. math:: z = f_0(x_1, \dots, x_S) + \varepsilon, \qquad x_t \sim N(0, \tau^2 I)
        \quad \text{for } S < t \le T,

    where `process` gives :math:`f_0`, the first S steps and the errors. A causal model has to
    remember over T - S steps.

    Parameters
    ----------
    process : RegressionProcess
        Process of length S.
    length : int
        Steps T of a padded sequence, at least S.
    padding_std : float, default 1
        Standard deviation :math:`\tau` of the noise.

    Attributes
    ----------
    process, padding_std
        As given.
    length, n_inputs, n_outputs, noise_std
        See `RegressionProcess`; equal to `process` but for the length.

    Raises
    ------
    TypeError
        If `process` is no `RegressionProcess`.
    ValueError
        If `length` is no integer, `length` is less than S, or `padding_std` is negative.

    Notes
    -----
    For an integer `random_state`, the first S steps and the responses are exactly as in
    `process`, unless `process` is padded itself.

    In noise-padded CIFAR-10 an image has 32 steps of 96 inputs, padded to 1000. The paper only says
    that the noise is random; the default, standard normal, is our choice.

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
        check_at_least(process.length, length=length)
        super().__init__(length, process.n_inputs, process.n_outputs, process.noise_std)
        self._set(process=process, padding_std=not_negative("padding_std", padding_std))

    def _draw_inputs(self, n: int, generator: np.random.Generator) -> np.ndarray:
        # A child generator, so that the draws of the process do not depend on the padding.
        (of_noise,) = generator.spawn(1)
        first = self.process._draw_inputs(n, generator)
        shape = (n, self.length - self.process.length, self.n_inputs)
        return np.concatenate([first, self.padding_std * of_noise.standard_normal(shape)], axis=1)

    def _mean_of(self, X: np.ndarray) -> np.ndarray:
        return self.process._mean_of(np.ascontiguousarray(X[:, : self.process.length]))

    def _draw_errors(self, n: int, generator: np.random.Generator) -> np.ndarray:
        return self.process._draw_errors(n, generator)


def _two_generators(random_state: Any) -> list[np.random.Generator]:
    """Return independent generators of the inputs and of the errors."""
    if isinstance(random_state, np.random.Generator):
        random_state = random_state.integers(2**32, size=4).tolist()
    elif isinstance(random_state, bool) or not isinstance(random_state, int | np.integer | None):
        raise TypeError(
            "random_state must be an integer, a numpy.random.Generator or None; got "
            f"{random_state!r}"
        )
    elif random_state is not None and random_state < 0:
        raise ValueError(f"random_state must not be negative; got {random_state!r}")
    children = np.random.SeedSequence(random_state).spawn(2)
    return [np.random.default_rng(child) for child in children]


def _batches(blocks: Iterator[Pair], size: int) -> Iterator[Pair]:
    """Yield batches of another size from a stream of blocks."""
    pending: list[Pair] = []
    count = 0
    for block in blocks:
        pending.append(block)
        count += BLOCK
        if count < size:
            continue
        X, z = (np.concatenate(parts) for parts in zip(*pending, strict=True))
        starts = range(0, count - size + 1, size)
        yield from ((X[i : i + size], z[i : i + size]) for i in starts)
        count -= size * len(starts)
        pending = [(X[len(X) - count :], z[len(z) - count :])]
