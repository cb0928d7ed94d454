"""Tasks that ask for a state: each is a finite automaton that reads the tokens."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from tsrnn.datasets.tasks._task import SyntheticTask, asked, check_at_least

Seed = int | np.random.Generator | None


def parity(
    n: int, length: int = 100, *, every_step: bool = False, random_state: Seed = None
) -> SyntheticTask:
    r"""Whether the number of ones is odd: :math:`\sum_{l \le L} x_l \bmod 2`.

    Parameters
    ----------
    n : int
        Sequences.
    length : int, default 100
        Tokens of a sequence; each is 0 or 1.
    every_step : bool, default False
        Whether to ask for the answer after every token; else after the last alone.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    SyntheticTask
        2 tokens, 2 classes.

    Raises
    ------
    ValueError
        If a size is no positive integer.

    Examples
    --------
    >>> from tsrnn.datasets.tasks import parity
    >>> task = parity(1, 6, random_state=0)
    >>> task.tokens[0], task.targets[0, -1]
    (array([1, 1, 1, 0, 0, 0]), np.int64(1))
    """
    check_at_least(1, n=n, length=length)
    tokens = np.random.default_rng(random_state).integers(2, size=(n, length))
    mask = asked(n, length, length if every_step else 1)
    return SyntheticTask(tokens, tokens.cumsum(1) % 2, mask, 2, 2)


def cycle_navigation(
    n: int,
    length: int = 100,
    *,
    size: int = 6,
    step: int = 1,
    every_step: bool = False,
    random_state: Seed = None,
) -> SyntheticTask:
    r"""Position on a cycle of C after steps from -k to k: :math:`\sum_l x_l \bmod C`.

    Parameters
    ----------
    n : int
        Sequences.
    length : int, default 100
        Steps of a sequence; token i is a step of i - k.
    size : int, default 6
        C, positions of the cycle, at least 2.
    step : int, default 1
        k, the largest step.
    every_step : bool, default False
        Whether to ask for the position after every step; else after the last alone.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    SyntheticTask
        2 k + 1 tokens, C classes.

    Raises
    ------
    ValueError
        If a size is no positive integer, or C is 1.

    Examples
    --------
    >>> from tsrnn.datasets.tasks import cycle_navigation
    >>> task = cycle_navigation(1, 6, size=5, random_state=0)
    >>> task.tokens[0] - 1, task.targets[task.mask]
    (array([ 1,  0,  0, -1, -1, -1]), array([3]))
    """
    check_at_least(1, n=n, length=length, step=step)
    check_at_least(2, size=size)
    tokens = np.random.default_rng(random_state).integers(2 * step + 1, size=(n, length))
    mask = asked(n, length, length if every_step else 1)
    return SyntheticTask(tokens, (tokens - step).cumsum(1) % size, mask, 2 * step + 1, size)


def modular_arithmetic(
    n: int,
    length: int = 20,
    *,
    modulus: int = 10,
    every_step: bool = False,
    random_state: Seed = None,
) -> SyntheticTask:
    """Result of an expression without brackets, modulo a number; products come before sums.

    Digits and operators take turns, and an equals sign ends the sequence.

    Parameters
    ----------
    n : int
        Sequences.
    length : int, default 20
        Tokens of a sequence, an even number: `length` / 2 digits, the operators between
        them and the equals sign.
    modulus : int, default 10
        Digits go from 0 to it, exclusive; at least 2. Tokens from it on are +, -, * and =.
    every_step : bool, default False
        Whether to ask after every token for the result of what stands up to the last
        digit; else after the equals sign alone.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    SyntheticTask
        `modulus` + 4 tokens, `modulus` classes.

    Raises
    ------
    ValueError
        If a size is no positive integer, `modulus` is 1, or `length` is odd.

    Notes
    -----
    Results are not uniform: a product with a zero is zero.

    Examples
    --------
    >>> from tsrnn.datasets.tasks import modular_arithmetic
    >>> task = modular_arithmetic(1, 8, random_state=0)
    >>> "".join("0123456789+-*="[token] for token in task.tokens[0]), task.targets[task.mask]
    ('8+6+5+2=', array([1]))
    """
    check_at_least(1, n=n)
    check_at_least(2, length=length, modulus=modulus)
    if length % 2:
        raise ValueError(
            f"length must be even, for digits, operators and an equals sign; got {length}"
        )
    rng = np.random.default_rng(random_state)
    tokens = np.empty((n, length), dtype=np.int64)
    tokens[:, ::2] = rng.integers(modulus, size=(n, length // 2))
    tokens[:, 1::2] = modulus + rng.integers(3, size=(n, length // 2))
    tokens[:, -1] = modulus + 3
    targets = np.repeat(_results(tokens, modulus), 2, axis=1)
    mask = asked(n, length, length if every_step else 1)
    return SyntheticTask(tokens, targets, mask, modulus + 4, modulus)


def _results(tokens: NDArray[np.int64], modulus: int) -> NDArray[np.int64]:
    """Result up to every digit: of the closed terms, plus the product that is open."""
    digits, operators = tokens[:, ::2], tokens[:, 1::2] - modulus
    closed, product = np.zeros_like(digits[:, 0]), digits[:, 0]
    results = [product]
    for digit, operator in zip(digits.T[1:], operators.T, strict=False):
        times = operator == 2
        closed = np.where(times, closed, closed + product) % modulus
        sign = np.where(operator == 1, -1, 1)
        product = np.where(times, product * digit, sign * digit) % modulus
        results.append((closed + product) % modulus)
    return np.stack(results, 1)


def _even_permutations(size: int) -> NDArray[np.int64]:
    """Even permutations of 0 to size - 1, a row each, in lexicographic order."""
    every = np.array(list(itertools.permutations(range(size))))
    pairs = list(itertools.combinations(range(size), 2))
    inversions = sum((every[:, i] > every[:, j]).astype(int) for i, j in pairs)
    return every[inversions % 2 == 0]


A5 = _even_permutations(5)
A5.flags.writeable = False


def alternating_group(n: int, length: int = 20, *, random_state: Seed = None) -> SyntheticTask:
    r"""Products :math:`x_1 x_2 \cdots x_l` of even permutations of five things, at every step.

    The group A5 of 60 elements, the smallest that is not solvable.

    Parameters
    ----------
    n : int
        Sequences.
    length : int, default 20
        Elements of a sequence; token i is the permutation ``A5[i]``, and (p q)(j) = p(q(j)).
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    SyntheticTask
        60 tokens, 60 classes.

    Raises
    ------
    ValueError
        If a size is no positive integer.

    Examples
    --------
    >>> from tsrnn.datasets.tasks import A5, alternating_group
    >>> task = alternating_group(1, 2, random_state=0)
    >>> first, second = A5[task.tokens[0]]
    >>> bool((A5[task.targets[0, -1]] == first[second]).all())
    True
    """
    check_at_least(1, n=n, length=length)
    tokens = np.random.default_rng(random_state).integers(len(A5), size=(n, length))
    product = np.tile(np.arange(5), (n, 1))
    targets = np.empty_like(tokens)
    for step, permutations in enumerate(A5[tokens].swapaxes(0, 1)):
        product = np.take_along_axis(product, permutations, 1)
        targets[:, step] = _numbers(product)
    return SyntheticTask(tokens, targets, asked(n, length, length), len(A5), len(A5))


def _numbers(permutations: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row of A5 of every permutation (n, 5): read as decimal numbers they are in order."""
    place = 10 ** np.arange(5)[::-1]
    return np.searchsorted(A5 @ place, permutations @ place)
