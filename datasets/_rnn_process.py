"""Regression process with a vanilla RNN as its mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tsrnn.datasets._arma_inputs import arma_inputs
from tsrnn.datasets._checks import check_at_least
from tsrnn.datasets._regression import RegressionProcess

__all__ = ["RNNProcess"]

# Sampler of inputs, called with n, length, n_inputs and random_state.
Inputs = Callable[..., np.ndarray]
ARMA_INPUTS: Inputs = partial(arma_inputs, ar=0.7, ma=0.3)
BLOCK_SIZE = 4  # rows of an R-4 and of a C-2 block
MODULI = (0.5, 0.95)
ANGLES = (math.pi / 8, 7 * math.pi / 8)


class RNNProcess(RegressionProcess):
    r"""Regression process with a recurrent network as its mean.

    .. math:: h_t = \tanh(W_h h_{t-1} + W_x x_t + b_h), \quad h_0 = 0, \qquad
        z = W_y h_T + b_y + \varepsilon, \quad \varepsilon \sim N(0, \sigma^2 I),

    or :math:`z = h_T + \varepsilon` without a readout. The class methods `standard_normal`,
    `noisy_state` and `noisy_jordan_state` draw the matrices as in the simulations of the paper.

    Parameters
    ----------
    recurrent_matrix : array_like of shape (d, d)
        Matrix :math:`W_h`.
    input_matrix : array_like of shape (d, d_in)
        Matrix :math:`W_x`.
    bias : array_like of shape (d,), optional
        Vector :math:`b_h`; zero by default.
    readout_matrix : array_like of shape (d_out, d), optional
        Matrix :math:`W_y`; by default the response is the last state.
    readout_bias : array_like of shape (d_out,), optional
        Vector :math:`b_y`; zero by default.
    length : int, default 128
        Steps T of a sequence.
    noise_std : float, default 1
        Standard deviation :math:`\sigma` of the errors.
    draw_inputs : callable, optional
        Sampler ``draw_inputs(n, length, n_inputs=d_in, random_state=generator)`` of inputs
        (n, length, d_in). By default `arma_inputs`: ARMA(1, 1) sequences with AR coefficient 0.7
        and MA coefficient 0.3.

    Attributes
    ----------
    recurrent_matrix, input_matrix, bias, readout_matrix, readout_bias
        Read-only float64 arrays; those of the readout are None without one.
    draw_inputs
        Sampler of inputs.
    length, n_inputs, n_outputs, noise_std
        See `RegressionProcess`.

    Raises
    ------
    ValueError
        If shapes are inconsistent, an entry is not finite, a readout bias has no readout matrix,
        `length` is not a positive integer, or `noise_std` is negative.

    Notes
    -----
    A recurrent matrix with a large spectral radius makes the mean chaotic: states that differ by a
    rounding error soon diverge. A seed then gives the same responses on one machine, but not on
    machines with other rounding of matrix products, and most of the mean cannot be learned from any
    number of samples. See `standard_normal`.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, Section 6.1 and Supplement A.

    Examples
    --------
    >>> from tsrnn.datasets import RNNProcess
    >>> process = RNNProcess([[0.5, 0.2], [-0.2, 0.5]], [[1.0], [0.0]], length=30, noise_std=0.1)
    >>> X, z = process.sample(100, random_state=0)
    >>> X.shape, z.shape
    ((100, 30, 1), (100, 2))
    """

    recurrent_matrix: np.ndarray
    input_matrix: np.ndarray
    bias: np.ndarray
    readout_matrix: np.ndarray | None
    readout_bias: np.ndarray | None
    draw_inputs: Inputs

    def __init__(
        self,
        recurrent_matrix: ArrayLike,
        input_matrix: ArrayLike,
        bias: ArrayLike | None = None,
        readout_matrix: ArrayLike | None = None,
        readout_bias: ArrayLike | None = None,
        *,
        length: int = 128,
        noise_std: float = 1.0,
        draw_inputs: Inputs | None = None,
    ):
        if draw_inputs is not None and not callable(draw_inputs):
            raise TypeError(f"draw_inputs must be callable; got {draw_inputs!r}")
        if readout_matrix is None and readout_bias is not None:
            raise ValueError("readout_bias needs a readout_matrix; got None")
        W_h = _checked("recurrent_matrix", recurrent_matrix, ("d", "d"))
        d = len(W_h)
        W_x = _checked("input_matrix", input_matrix, (d, "d_in"))
        b_h = np.zeros(d) if bias is None else _checked("bias", bias, (d,))
        W_y = b_y = None
        if readout_matrix is not None:
            W_y = _checked("readout_matrix", readout_matrix, ("d_out", d))
            n_outputs = len(W_y)
            b_y = np.zeros(n_outputs)
            if readout_bias is not None:
                b_y = _checked("readout_bias", readout_bias, (n_outputs,))
        super().__init__(length, W_x.shape[1], d if W_y is None else len(W_y), noise_std)
        self._set(
            recurrent_matrix=W_h,
            input_matrix=W_x,
            bias=b_h,
            readout_matrix=W_y,
            readout_bias=b_y,
            draw_inputs=ARMA_INPUTS if draw_inputs is None else draw_inputs,
        )

    @classmethod
    def standard_normal(
        cls,
        hidden_size: int = 128,
        length: int = 128,
        *,
        n_inputs: int = 1,
        n_outputs: int = 10,
        noise_std: float = 1.0,
        draw_inputs: Inputs | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> RNNProcess:
        r"""Draw all weights and biases, also those of a readout, from N(0, 1).

        The defaults give the first simulation of Section 6.1; its supplement D.4 also has an error
        variance of 5, ``noise_std=5**0.5``.

        Parameters
        ----------
        hidden_size : int, default 128
            d.
        length : int, default 128
            T.
        n_inputs, n_outputs : int, default 1 and 10
            Inputs at a step and entries of the response.
        noise_std : float, default 1
            Standard deviation of the errors.
        draw_inputs : callable, optional
            As in the class; ARMA(1, 1) by default, as in the paper.
        random_state : int or numpy.random.Generator, optional
            Seed of the weights, or the generator to draw them from.

        Returns
        -------
        RNNProcess

        Raises
        ------
        ValueError
            As the class.

        Notes
        -----
        The spectral radius of the recurrent matrix is about :math:`\sqrt d`, which is 11 by
        default, so the mean is chaotic: a change of 1e-10 in the first input moves the state by
        more than 1 after 40 steps. In five draws with the defaults, last states of two sequences
        that differ by 1e-16 shared 4 to 7 percent of their variance, and so did two sequences that
        share only the last 10 inputs. A model can hardly explain more: a response has a variance of
        107 to 129, with a noise variance of 1. Smaller sizes leave more to learn (half in a draw of
        ``hidden_size=16``), and `noisy_state` is not chaotic.

        Examples
        --------
        >>> from tsrnn.datasets import RNNProcess
        >>> process = RNNProcess.standard_normal(hidden_size=16, length=20, random_state=0)
        >>> X, z = process.sample(100, random_state=1)
        >>> X.shape, z.shape
        ((100, 20, 1), (100, 10))
        """
        check_at_least(1, hidden_size=hidden_size, n_inputs=n_inputs, n_outputs=n_outputs)
        normal = np.random.default_rng(random_state).standard_normal
        return cls(
            normal((hidden_size, hidden_size)),
            normal((hidden_size, n_inputs)),
            normal(hidden_size),
            normal((n_outputs, hidden_size)),
            normal(n_outputs),
            length=length,
            noise_std=noise_std,
            draw_inputs=draw_inputs,
        )

    @classmethod
    def noisy_state(
        cls,
        hidden_size: int = 128,
        length: int = 128,
        *,
        n_inputs: int = 1,
        noise_std: float = 0.01,
        draw_inputs: Inputs | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> RNNProcess:
        r"""Draw normal weights; the response is the last state.

        .. math:: h_t = \tanh(W_h h_{t-1} + W_x x_t), \qquad z = h_T + \varepsilon, \qquad
            (W_h)_{ij} \sim N(0, 0.1^2), \quad (W_x)_{ij} \sim N(2, 2^2).

        The defaults give the first simulation of Supplement A, equation (A.1). Features have the
        types R-1 and C-1.

        Parameters
        ----------
        hidden_size : int, default 128
            d, also the number of outputs.
        length : int, default 128
            T.
        n_inputs : int, default 1
            Inputs at a step.
        noise_std : float, default 0.01
            Standard deviation of the errors.
        draw_inputs : callable, optional
            As in the class. The paper does not state the distribution of inputs of this simulation;
            the default are the ARMA(1, 1) sequences of its Section 6.1.
        random_state : int or numpy.random.Generator, optional
            Seed of the weights, or the generator to draw them from.

        Returns
        -------
        RNNProcess

        Raises
        ------
        ValueError
            As the class.

        Examples
        --------
        >>> from tsrnn.datasets import RNNProcess
        >>> process = RNNProcess.noisy_state(hidden_size=16, length=20, random_state=0)
        >>> process.sample(100, random_state=1)[1].shape
        (100, 16)
        """
        check_at_least(1, hidden_size=hidden_size, n_inputs=n_inputs)
        generator = np.random.default_rng(random_state)
        return cls(
            generator.normal(0.0, 0.1, (hidden_size, hidden_size)),
            generator.normal(2.0, 2.0, (hidden_size, n_inputs)),
            length=length,
            noise_std=noise_std,
            draw_inputs=draw_inputs,
        )

    @classmethod
    def noisy_jordan_state(
        cls,
        hidden_size: int = 128,
        length: int = 128,
        *,
        n_waves: int | None = None,
        moduli: tuple[float, float] = MODULI,
        angles: tuple[float, float] = ANGLES,
        n_inputs: int = 1,
        noise_std: float = 0.01,
        draw_inputs: Inputs | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> RNNProcess:
        r"""Draw weights with features of the types R-4 and C-2; the response is the last state.

        It is `noisy_state` with the recurrent matrix

        .. math:: W_h = \bigoplus_i J_4(\lambda_i) \oplus \bigoplus_k C_2(\gamma_k, \theta_k),
            \qquad J_4(\lambda) = \lambda I_4 + U_4, \quad C_2(\gamma, \theta) =
            \begin{pmatrix} \gamma R(\theta) & I_2 \\ 0 & \gamma R(\theta) \end{pmatrix},

        where :math:`U_4` has ones on its first superdiagonal and :math:`R(\theta)` rotates by
        :math:`\theta`. It is the second simulation of Supplement A.

        Parameters
        ----------
        hidden_size : int, default 128
            d, a multiple of 4, also the number of outputs.
        length : int, default 128
            T.
        n_waves : int, optional
            Number of blocks :math:`C_2`, from 0 to d / 4, the others being :math:`J_4`; by default
            half of the blocks, rounded down.
        moduli : (float, float), default (0.5, 0.95)
            Bounds between which all :math:`|\lambda_i|` and :math:`\gamma_k` are drawn uniformly,
            positive. Signs of the :math:`\lambda_i` are random.
        angles : (float, float), default (pi / 8, 7 pi / 8)
            Bounds between which all :math:`\theta_k` are drawn uniformly, inside (0, pi), in
            radians.
        n_inputs : int, default 1
            Inputs at a step.
        noise_std : float, default 0.01
            Standard deviation of the errors.
        draw_inputs : callable, optional
            As in `noisy_state`.
        random_state : int or numpy.random.Generator, optional
            Seed of the weights, or the generator to draw them from.

        Returns
        -------
        RNNProcess

        Raises
        ------
        ValueError
            As the class, and if d is not a multiple of 4, there are more waves than blocks, or
            bounds are not ordered or outside their range.

        Notes
        -----
        The paper only says that this matrix "comprises a mix of R-4 and C-2 features". Their
        numbers and all bounds are our choice.

        References
        ----------
        Cai, Li, Huang and Li (2026), ParaRNN, Supplement A and equation (8), whose 2 x 2 block
        lacks the factor gamma.

        Examples
        --------
        >>> from tsrnn.datasets import RNNProcess
        >>> process = RNNProcess.noisy_jordan_state(8, n_waves=1, random_state=0)
        >>> process.recurrent_matrix.round(2)[:4, :4]
        array([[-0.62,  1.  ,  0.  ,  0.  ],
               [ 0.  , -0.62,  1.  ,  0.  ],
               [ 0.  ,  0.  , -0.62,  1.  ],
               [ 0.  ,  0.  ,  0.  , -0.62]])
        """
        check_at_least(BLOCK_SIZE, hidden_size=hidden_size)
        check_at_least(1, n_inputs=n_inputs)
        if hidden_size % BLOCK_SIZE:
            raise ValueError(
                f"hidden_size must be a multiple of {BLOCK_SIZE}, the size of an R-4 and of a C-2 "
                f"block; got {hidden_size}"
            )
        n_blocks = hidden_size // BLOCK_SIZE
        n_waves = n_blocks // 2 if n_waves is None else n_waves
        check_at_least(0, n_waves=n_waves)
        if n_waves > n_blocks:
            raise ValueError(f"n_waves must be at most hidden_size / 4 = {n_blocks}; got {n_waves}")
        _check_bounds("moduli", moduli, math.inf)
        _check_bounds("angles", angles, math.pi)
        generator = np.random.default_rng(random_state)
        gamma = generator.uniform(*moduli, n_blocks)
        sign = generator.choice([-1.0, 1.0], n_blocks - n_waves)
        theta = generator.uniform(*angles, n_waves)
        decays = [_real_block(value) for value in sign * gamma[n_waves:]]
        waves = [_complex_block(*polar) for polar in zip(gamma[:n_waves], theta, strict=True)]
        W_h = np.zeros((hidden_size, hidden_size))
        for start, block in zip(range(0, hidden_size, BLOCK_SIZE), [*decays, *waves], strict=True):
            W_h[start : start + BLOCK_SIZE, start : start + BLOCK_SIZE] = block
        return cls(
            W_h,
            generator.normal(2.0, 2.0, (hidden_size, n_inputs)),
            length=length,
            noise_std=noise_std,
            draw_inputs=draw_inputs,
        )

    def _draw_inputs(self, n: int, generator: np.random.Generator) -> np.ndarray:
        return self.draw_inputs(n, self.length, n_inputs=self.n_inputs, random_state=generator)

    def _mean_of(self, X: np.ndarray) -> np.ndarray:
        state = np.zeros((len(X), len(self.recurrent_matrix)))
        for step in range(self.length):
            driven = X[:, step] @ self.input_matrix.T + self.bias
            state = np.tanh(state @ self.recurrent_matrix.T + driven)
        if self.readout_matrix is None:
            return state
        return state @ self.readout_matrix.T + self.readout_bias


def _checked(name: str, values: Any, shape: tuple[int | str, ...]) -> np.ndarray:
    """Return a float64 copy of an array, checked to have a shape.

    A letter in `shape` stands for any size of at least 1; equal letters are equal sizes.
    """
    array = np.array(values, dtype=np.float64)
    fits = array.ndim == len(shape) and array.size > 0
    if fits:
        free = {letter: array.shape[shape.index(letter)] for letter in shape}
        wanted = tuple(free[size] if isinstance(size, str) else size for size in shape)
        fits = array.shape == wanted
    if not fits:
        text = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
        raise ValueError(f"{name} must be of shape ({text}); got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite; got {array[~np.isfinite(array)][0]}")
    return array


def _check_bounds(name: str, bounds: tuple[float, float], limit: float) -> None:
    if np.shape(bounds) != (2,) or not 0 < bounds[0] <= bounds[1] < limit:
        inside = "positive and finite" if math.isinf(limit) else "inside (0, pi)"
        raise ValueError(
            f"{name} must be a lower and an upper bound, ordered and {inside}; got {bounds!r}"
        )


def _real_block(eigenvalue: float) -> np.ndarray:
    return eigenvalue * np.eye(BLOCK_SIZE) + np.eye(BLOCK_SIZE, k=1)


def _complex_block(modulus: float, angle: float) -> np.ndarray:
    cos, sin = math.cos(angle), math.sin(angle)
    turn = modulus * np.array([[cos, sin], [-sin, cos]])
    return np.kron(np.eye(2), turn) + np.eye(BLOCK_SIZE, k=2)
