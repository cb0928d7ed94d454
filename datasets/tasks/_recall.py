"""Tasks that ask for what stood earlier in the sequence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tsrnn.datasets.tasks._task import SyntheticTask, asked, check_at_least

Seed = int | np.random.Generator | None


def keep_nth(
    n: int,
    length: int = 100,
    *,
    position: int = 5,
    vocabulary: int = 128,
    every_step: bool = False,
    random_state: Seed = None,
) -> SyntheticTask:
    """Which token stood at a position.

    Parameters
    ----------
    n : int
        Sequences.
    length : int, default 100
        Tokens of a sequence.
    position : int, default 5
        Counted from 1, at most `length`.
    vocabulary : int, default 128
        At least 2.
    every_step : bool, default False
        Whether to ask at every step from the position on; else after the last token alone.
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
    mask = asked(n, length, length - position + 1 if every_step else 1)
    return SyntheticTask(tokens, targets, mask, vocabulary, vocabulary)


def copy_memory(
    n: int,
    length: int = 50,
    *,
    memory: int = 20,
    vocabulary: int = 10,
    random_state: Seed = None,
) -> SyntheticTask:
    """The first tokens, given back in order when a trigger comes.

    `memory` tokens, then blanks; the trigger is `memory` steps before the end, blanks follow it,
    and from the trigger on each step asks for one of the tokens.

    Parameters
    ----------
    n : int
        Sequences.
    length : int, default 50
        Steps of a sequence, answers included; at least twice `memory`.
    memory : int, default 20
        Tokens to be kept.
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
    return SyntheticTask(tokens, targets, asked(n, length, memory), vocabulary + 2, vocabulary)


def k_hop(
    n: int,
    length: int = 100,
    *,
    hops: int = 1,
    vocabulary: int = 10,
    random_state: Seed = None,
) -> SyntheticTask:
    """What followed the last earlier occurrence of the token, looked up `hops` times in a row.

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
        `vocabulary` tokens and classes. Steps from which there is no such occurrence are
        not asked for.

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
    hop = _hop(tokens, vocabulary)
    place = np.tile(np.arange(length), (n, 1))
    for _ in range(hops):
        # Step -1 stands for nowhere, from where every further hop leads nowhere.
        place = np.where(place < 0, -1, np.take_along_axis(hop, np.maximum(place, 0), 1))
    mask = place >= 0
    targets = np.where(mask, np.take_along_axis(tokens, np.maximum(place, 0), 1), 0)
    return SyntheticTask(tokens, targets, mask, vocabulary, vocabulary)


def _hop(tokens: NDArray[np.int64], vocabulary: int) -> NDArray[np.int64]:
    """Step after the last earlier occurrence of every token; -1 where there is none."""
    n = len(tokens)
    rows = np.arange(n)
    after = np.full((n, vocabulary), -1)
    hop = np.empty_like(tokens)
    for step, column in enumerate(tokens.T):
        hop[:, step] = after[rows, column]
        after[rows, column] = step + 1
    return hop


def mqar(
    n: int,
    length: int = 100,
    *,
    pairs: int = 2,
    vocabulary: int = 128,
    random_state: Seed = None,
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
        An even number: the first half are keys, the second values. Noise are values, which
        ask for nothing.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    SyntheticTask
        `vocabulary` tokens and classes; steps with a key in the second part are asked for.

    Raises
    ------
    ValueError
        If a size is not in its range, or `vocabulary` is odd.

    Notes
    -----
    Answers are values: who guesses among them is right with probability 2 / `vocabulary`.

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
