"""Synthetic tasks in which a sequence model tracks a state or recalls what it has seen.

They are the tasks of Table 1 and appendix C.2 of Danieli et al. (2025). Every function draws
`n` sequences of tokens and returns a `SyntheticTask`. Guesses are right with probability
1 / n_classes, except in `mqar` and `modular_arithmetic`. The array ``A5`` of shape (60, 5) has
the permutations of `alternating_group`, a row each.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tsrnn.datasets._checks import check_at_least

__all__ = [
    "A5",
    "SyntheticTask",
    "alternating_group",
    "copy_memory",
    "cycle_navigation",
    "k_hop",
    "keep_nth",
    "modular_arithmetic",
    "mqar",
    "parity",
]

Seed = int | np.random.Generator | None


class SyntheticTask(NamedTuple):
    """Sequences of tokens and the answers asked for.

    Attributes
    ----------
    tokens : int64 of shape (n, length)
        Inputs, from 0 to n_tokens - 1.
    targets : int64 of shape (n, length)
        Answers, from 0 to n_classes - 1; ignored where `mask` is False.
    mask : bool of shape (n, length)
        Steps whose answer counts.
    n_tokens : int
    n_classes : int

    Examples
    --------
    >>> from tsrnn.datasets.tasks import parity
    >>> task = parity(100, 20, random_state=0)
    >>> task.tokens.shape, task.n_tokens, task.n_classes
    ((100, 20), 2, 2)
    >>> task.targets[task.mask].shape
    (100,)
    """

    tokens: NDArray[np.int64]
    targets: NDArray[np.int64]
    mask: NDArray[np.bool_]
    n_tokens: int
    n_classes: int


def parity(
    n: int, length: int = 100, *, every_step: bool = False, random_state: Seed = None
) -> SyntheticTask:
    r"""Parity of the number of ones: :math:`\sum_{l \le L} x_l \bmod 2`.

    Parameters
    ----------
    n : int
        Sequences.
    length : int, default 100
        Tokens of a sequence; each is 0 or 1.
    every_step : bool, default False
        If True, ask for the answer after every token; otherwise after the last alone.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    SyntheticTask
        2 tokens, 2 classes.

    Raises
    ------
    ValueError
        If a size is not a positive integer.

    Examples
    --------
    >>> from tsrnn.datasets.tasks import parity
    >>> task = parity(1, 6, random_state=0)
    >>> task.tokens[0], task.targets[0, -1]
    (array([1, 1, 1, 0, 0, 0]), np.int64(1))
    """
    check_at_least(1, n=n, length=length)
    tokens = np.random.default_rng(random_state).integers(2, size=(n, length))
    mask = _asked(n, length, length if every_step else 1)
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
        If True, ask for the position after every step; otherwise after the last alone.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    SyntheticTask
        2 k + 1 tokens, C classes.

    Raises
    ------
    ValueError
        If a size is not a positive integer, or C is 1.

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
    mask = _asked(n, length, length if every_step else 1)
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
        At least 2. Lower tokens are digits; the four from `modulus` on are +, -, * and =.
    every_step : bool, default False
        If True, ask after every token for the result up to the last digit; otherwise after
        the equals sign alone.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    SyntheticTask
        `modulus` + 4 tokens, `modulus` classes.

    Raises
    ------
    ValueError
        If a size is not a positive integer, `modulus` is 1, or `length` is odd.

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
    mask = _asked(n, length, length if every_step else 1)
    return SyntheticTask(tokens, targets, mask, modulus + 4, modulus)


def alternating_group(n: int, length: int = 20, *, random_state: Seed = None) -> SyntheticTask:
    r"""Products :math:`x_1 x_2 \cdots x_l` of even permutations of five objects, at every step.

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
        If a size is not a positive integer.

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
    targets, place = np.empty_like(tokens), 10 ** np.arange(5)[::-1]
    for step, permutations in enumerate(A5[tokens].swapaxes(0, 1)):
        product = np.take_along_axis(product, permutations, 1)
        # The rows of A5 are sorted, read as decimal numbers.
        targets[:, step] = np.searchsorted(A5 @ place, product @ place)
    return SyntheticTask(tokens, targets, _asked(n, length, length), len(A5), len(A5))


def keep_nth(
    n: int,
    length: int = 100,
    *,
    position: int = 5,
    vocabulary: int = 128,
    every_step: bool = False,
    random_state: Seed = None,
) -> SyntheticTask:
    """Token at a given position, to be remembered.

    Parameters
    ----------
    n : int
        Sequences.
    length : int, default 100
        Tokens of a sequence.
    position : int, default 5
        Position counted from 1, at most `length`.
    vocabulary : int, default 128
        At least 2.
    every_step : bool, default False
        If True, ask at every step from the position on; otherwise after the last token alone.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    SyntheticTask
        `vocabulary` tokens and classes.

    Raises
    ------
    ValueError
        If a size is not in its range.

    Examples
    --------
    >>> from tsrnn.datasets.tasks import keep_nth
    >>> task = keep_nth(1, 6, position=2, vocabulary=10, random_state=0)
    >>> task.tokens[0], task.targets[0, -1]
    (array([8, 6, 5, 2, 3, 0]), np.int64(6))
    """
    check_at_least(1, n=n, position=position)
    check_at_least(position, length=length)
    check_at_least(2, vocabulary=vocabulary)
    tokens = np.random.default_rng(random_state).integers(vocabulary, size=(n, length))
    targets = np.repeat(tokens[:, position - 1, None], length, axis=1)
    mask = _asked(n, length, length - position + 1 if every_step else 1)
    return SyntheticTask(tokens, targets, mask, vocabulary, vocabulary)


def copy_memory(
    n: int, length: int = 50, *, memory: int = 20, vocabulary: int = 10, random_state: Seed = None
) -> SyntheticTask:
    """First tokens, to be returned in order when a trigger comes.

    `memory` tokens come first, then blanks. The trigger stands `memory` steps before the end;
    from there on each step asks for one of the tokens.

    Parameters
    ----------
    n : int
        Sequences.
    length : int, default 50
        Steps of a sequence, answers included; at least twice `memory`.
    memory : int, default 20
        Tokens to remember.
    vocabulary : int, default 10
        At least 2. Token `vocabulary` is the blank, the next one the trigger.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    SyntheticTask
        `vocabulary` + 2 tokens, `vocabulary` classes.

    Raises
    ------
    ValueError
        If a size is not in its range.

    Examples
    --------
    >>> from tsrnn.datasets.tasks import copy_memory
    >>> task = copy_memory(1, 8, memory=3, random_state=0)
    >>> task.tokens[0], task.targets[task.mask]
    (array([ 8,  6,  5, 10, 10, 11, 10, 10]), array([8, 6, 5]))
    """
    check_at_least(1, n=n, memory=memory)
    check_at_least(2 * memory, length=length)
    check_at_least(2, vocabulary=vocabulary)
    kept = np.random.default_rng(random_state).integers(vocabulary, size=(n, memory))
    tokens = np.full((n, length), vocabulary)
    tokens[:, :memory] = kept
    tokens[:, -memory] = vocabulary + 1
    targets = np.zeros((n, length), dtype=np.int64)
    targets[:, -memory:] = kept
    return SyntheticTask(tokens, targets, _asked(n, length, memory), vocabulary + 2, vocabulary)


def k_hop(
    n: int, length: int = 100, *, hops: int = 1, vocabulary: int = 10, random_state: Seed = None
) -> SyntheticTask:
    """Token after the last earlier occurrence of the present one, looked up `hops` times in a row.

    From a step, go to the last earlier step with the same token and on to the step after it;
    do so again from there. With one hop it is the task of induction heads.

    Parameters
    ----------
    n : int
        Sequences.
    length : int, default 100
        Tokens of a sequence, at least 2.
    hops : int, default 1
    vocabulary : int, default 10
        At least 2; Danieli et al. take 10 for one hop, 5 for two.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    SyntheticTask
        `vocabulary` tokens and classes; steps without such an occurrence are masked out.

    Raises
    ------
    ValueError
        If a size is not in its range.

    Examples
    --------
    >>> from tsrnn.datasets.tasks import k_hop
    >>> task = k_hop(1, 8, vocabulary=3, random_state=0)
    >>> task.tokens[0]
    array([2, 1, 1, 0, 0, 0, 0, 0])
    >>> task.targets[0][task.mask[0]]
    array([1, 0, 0, 0, 0])
    """
    check_at_least(1, n=n, hops=hops)
    check_at_least(2, length=length, vocabulary=vocabulary)
    tokens = np.random.default_rng(random_state).integers(vocabulary, size=(n, length))
    # Step after the last earlier occurrence of every token; -1 where there is none.
    rows, after, hop = np.arange(n), np.full((n, vocabulary), -1), np.empty_like(tokens)
    for step, column in enumerate(tokens.T):
        hop[:, step] = after[rows, column]
        after[rows, column] = step + 1
    place = np.tile(np.arange(length), (n, 1))
    for _ in range(hops):
        # Step -1 means nowhere: every further hop stays there.
        place = np.where(place < 0, -1, np.take_along_axis(hop, np.maximum(place, 0), 1))
    mask = place >= 0
    targets = np.where(mask, np.take_along_axis(tokens, np.maximum(place, 0), 1), 0)
    return SyntheticTask(tokens, targets, mask, vocabulary, vocabulary)


def mqar(
    n: int, length: int = 100, *, pairs: int = 2, vocabulary: int = 128, random_state: Seed = None
) -> SyntheticTask:
    """Multiple-query associative recall: the value that belongs to each key.

    Pairs of a key and its value come first; then every key comes once more, in any order and
    at any place between noise, and asks for its value.

    Parameters
    ----------
    n : int
        Sequences.
    length : int, default 100
        Tokens of a sequence, at least three times `pairs`.
    pairs : int, default 2
        Keys of a sequence, all different; at most half of `vocabulary`.
    vocabulary : int, default 128
        An even number: the first half are keys, the second values. Noise consists of values.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    SyntheticTask
        `vocabulary` tokens and classes; the mask has the steps with a key in the second part.

    Raises
    ------
    ValueError
        If a size is not in its range, or `vocabulary` is odd.

    Notes
    -----
    Answers are values: guesses among them are right with probability 2 / `vocabulary`.

    Examples
    --------
    >>> from tsrnn.datasets.tasks import mqar
    >>> task = mqar(1, 10, pairs=2, vocabulary=8, random_state=0)
    >>> task.tokens[0]
    array([2, 5, 0, 4, 6, 7, 0, 2, 7, 6])
    >>> task.targets[task.mask]
    array([4, 5])
    """
    check_at_least(1, n=n, pairs=pairs)
    check_at_least(3 * pairs, length=length)
    check_at_least(2 * pairs, vocabulary=vocabulary)
    if vocabulary % 2:
        raise ValueError(f"vocabulary must be even, half keys and half values; got {vocabulary}")
    rng = np.random.default_rng(random_state)
    half = vocabulary // 2
    keys = rng.permuted(np.tile(np.arange(half), (n, 1)), axis=1)[:, :pairs]
    values = rng.integers(half, vocabulary, size=(n, pairs))
    tokens = rng.integers(half, vocabulary, size=(n, length))
    tokens[:, : 2 * pairs : 2], tokens[:, 1 : 2 * pairs : 2] = keys, values
    free = np.tile(np.arange(2 * pairs, length), (n, 1))
    queries = rng.permuted(free, axis=1)[:, :pairs]
    np.put_along_axis(tokens, queries, keys, 1)
    targets, mask = np.zeros_like(tokens), np.zeros(tokens.shape, dtype=bool)
    np.put_along_axis(targets, queries, values, 1)
    np.put_along_axis(mask, queries, True, 1)
    return SyntheticTask(tokens, targets, mask, vocabulary, vocabulary)


def _results(tokens: NDArray[np.int64], modulus: int) -> NDArray[np.int64]:
    """Evaluate up to every digit: the sum of the terms so far, the last product included."""
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


def _asked(n: int, length: int, last: int) -> NDArray[np.bool_]:
    """Mask the last steps as the ones whose answers count."""
    mask = np.zeros((n, length), dtype=bool)
    mask[:, length - last :] = True
    return mask


A5 = _even_permutations(5)
A5.flags.writeable = False


def __dir__() -> list[str]:
    return sorted(__all__)
