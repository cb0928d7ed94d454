"""Data-generating processes of regression on sequences."""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["RegressionProcess", "check_sizes", "checked_std"]

Pair = tuple[np.ndarray, np.ndarray]
# Samples are always drawn and evaluated so many at a time, whatever number is asked for: matrix
# products of another shape may round otherwise, and a sample would depend on those around it.
BLOCK = 64


class RegressionProcess(ABC):
    r"""Process of independent pairs of a sequence of inputs and a response.

    .. math:: z = f_0(X) + \varepsilon, \qquad X \in \mathbb R^{T \times d_{\mathrm{in}}}, \quad
        E(\varepsilon \mid X) = 0,

    so that :math:`f_0(X) = E(z \mid X)` is what a regression of z on X estimates. Errors are
    independent and normal with mean 0 and standard deviation `noise_std`, unless a subclass draws
    others.

    This is a base class. A subclass writes three methods: ``_draw_inputs(n, generator)``, which
    returns an array (n, T, d_in), ``_mean_of(X)``, which returns :math:`f_0` of such an array as
    (n, n_outputs), or (n,) for one output, and its constructor, which calls this one. It may also
    write ``_draw_errors(n, generator)``, of shape (n, n_outputs).

    Parameters
    ----------
    length : int
        T, steps of a sequence.
    n_inputs : int
        :math:`d_{\mathrm{in}}`, inputs at a step.
    n_outputs : int, default 1
        Entries of the response.
    noise_std : float, default 0
        Standard deviation of an entry of the error; 0 for a response without error.

    Attributes
    ----------
    length, n_inputs, n_outputs, noise_std
        As given.

    Raises
    ------
    ValueError
        If a size is no positive integer, or the standard deviation negative or not finite.

    Notes
    -----
    A process does not change once it is made; whatever is random in :math:`f_0` itself is drawn
    from the ``random_state`` of its constructor.

    From the `random_state` of a method come two generators, one of the inputs and one of the
    errors, and both are drawn from in blocks of fixed size. So the first samples of a seed are the
    same, to the last digit, whether 10 or 10 000 are drawn, at once or in batches of any size.

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
        check_sizes(length=(length, 1), n_inputs=(n_inputs, 1), n_outputs=(n_outputs, 1))
        self._set(
            length=int(length),
            n_inputs=int(n_inputs),
            n_outputs=int(n_outputs),
            noise_std=checked_std("noise_std", noise_std),
        )

    def inputs(self, n: int, random_state: int | np.random.Generator | None = None) -> np.ndarray:
        """Draw inputs only.

        Parameters
        ----------
        n : int
            Number of sequences.
        random_state : int or numpy.random.Generator, optional
            Seed, or the generator to draw the seed from; others at every call by default.

        Returns
        -------
        ndarray of shape (n, T, d_in)
            float64; with an integer `random_state`, the inputs that `sample` has with it.

        Raises
        ------
        ValueError, TypeError
            As in `sample`.
        """
        check_sizes(n=(n, 1))
        generator, _ = _two_generators(random_state)
        blocks = [self._input_block(generator) for _ in range(-(-n // BLOCK))]
        return np.concatenate(blocks)[:n]

    def mean(self, X: ArrayLike) -> np.ndarray:
        r"""Evaluate the regression function :math:`f_0`.

        Parameters
        ----------
        X : array_like of shape (n, T, d_in)
            Any inputs, drawn from the process or not.

        Returns
        -------
        ndarray of shape (n,), or (n, n_outputs) if there are several outputs
            :math:`f_0(X_i)`, the conditional mean of the response.

        Raises
        ------
        ValueError
            If X has another shape or holds what is no finite number.
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
            Seed, or the generator to draw the seed from; another sample at every call by default.

        Returns
        -------
        X : ndarray of shape (n, T, d_in)
        z : ndarray of shape (n,), or (n, n_outputs) if there are several outputs

        Raises
        ------
        ValueError
            If `n` is no positive integer, or a seed negative.
        TypeError
            If `random_state` is of another type.
        """
        check_sizes(n=(n, 1))
        return next(self.stream(n, random_state))

    def stream(
        self, batch_size: int, random_state: int | np.random.Generator | None = None
    ) -> Iterator[Pair]:
        """Draw batches of independent pairs without end.

        One after the other, the batches of an integer `random_state` begin with the pairs that
        `sample` draws with it, whatever the batch size.

        Parameters
        ----------
        batch_size : int
            Pairs in a batch.
        random_state : int or numpy.random.Generator, optional
            Seed, or the generator to draw the seed from; other pairs at every call by default.

        Returns
        -------
        iterator of (X, z)
            Shapes as in `sample`, with `batch_size` for n.

        Raises
        ------
        ValueError, TypeError
            As in `sample`.
        """
        check_sizes(batch_size=(batch_size, 1))
        return _batches(self._blocks(*_two_generators(random_state)), batch_size)

    @abstractmethod
    def _draw_inputs(self, n: int, generator: np.random.Generator) -> np.ndarray:
        """Inputs, of shape (n, T, d_in)."""

    @abstractmethod
    def _mean_of(self, X: np.ndarray) -> np.ndarray:
        """Regression function of checked inputs, of shape (n, n_outputs) or, for one, (n,)."""

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


def check_sizes(**sizes: tuple[Any, int]) -> None:
    """Raise unless every size, given as (value, minimum), is an integer of at least its minimum."""
    for name, (value, least) in sizes.items():
        integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not integer or value < least:
            raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}")


def checked_std(name: str, value: Any) -> float:
    """`value` as a float if it can be a standard deviation, else an error that names it."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not 0 <= value < math.inf:
        raise ValueError(f"{name} must be finite and not negative; got {value!r}")
    return float(value)


def _two_generators(random_state: Any) -> list[np.random.Generator]:
    """Generators of the inputs and of the errors, of which neither moves the other on."""
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
    """Cut a stream of blocks into batches of another size."""
    pending: list[Pair] = []
    held = 0
    for block in blocks:
        pending.append(block)
        held += BLOCK
        if held < size:
            continue
        X, z = (np.concatenate(parts) for parts in zip(*pending, strict=True))
        starts = range(0, held - size + 1, size)
        yield from ((X[i : i + size], z[i : i + size]) for i in starts)
        held -= size * len(starts)
        pending = [(X[len(X) - held :], z[len(z) - held :])]
