"""Texts as sequences of tokens: the Penn Treebank by words or characters, and other texts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tsrnn.datasets._checks import check_at_least
from tsrnn.datasets._files import as_folder, read_file

LEVELS = ("word", "char")
PARTS = {"train": "train", "validation": "valid", "test": "test"}  # part -> name in files
WORD_COUNTS = (929_589, 73_760, 82_430)  # including an end of sentence per line
WORD_TYPES = 10_000
# Largest size of a file in bytes. The published training parts have 5 MB by words and 10 MB by
# characters; other texts may be longer.
MOST, MOST_OTHER = 2**24, 2**30
END, SPACE = "<eos>", "_"
URL = "http://www.fit.vutbr.cz/~imikolov/rnnlm/simple-examples.tgz"


@dataclass(frozen=True, eq=False)
class Corpus:
    """Text in three parts, encoded by positions in a vocabulary.

    Parameters
    ----------
    name : str
    vocabulary : tuple of str
        Distinct tokens.
    train, validation, test : ndarray of int64, shape (n,)
        Positions of the tokens in the vocabulary, in the order of the text.

    Examples
    --------
    >>> from tsrnn.datasets import Corpus
    >>> corpus = Corpus.from_tokens("abc", list("abacab"), list("ba"), list("cab"))
    >>> corpus
    Corpus(name='abc', vocabulary=('a', 'b', 'c'))
    >>> corpus.test, "".join(corpus.decode(corpus.test))
    (array([2, 0, 1]), 'cab')
    """

    name: str
    vocabulary: tuple[str, ...]
    train: np.ndarray = field(repr=False)
    validation: np.ndarray = field(repr=False)
    test: np.ndarray = field(repr=False)

    @classmethod
    def from_tokens(
        cls, name: str, train: Sequence[str], validation: Sequence[str], test: Sequence[str]
    ) -> Corpus:
        """Encode the tokens of three parts.

        Parameters
        ----------
        name : str
        train, validation, test : sequence of str
            Tokens of each part; a string is a sequence of characters.

        Returns
        -------
        Corpus
            Corpus with the tokens of the training part, in order of first occurrence, as its
            vocabulary.

        Raises
        ------
        ValueError
            If a part is empty, or has tokens that the training part lacks.
        """
        vocabulary = {token: number for number, token in enumerate(dict.fromkeys(train))}
        numbers = {}
        for part, tokens in zip(PARTS, (train, validation, test), strict=True):
            unknown = [token for token in dict.fromkeys(tokens) if token not in vocabulary]
            if unknown or not len(tokens):
                raise ValueError(
                    f"the {part} part of {name} must have tokens, all of them in the train part; "
                    f"got {len(tokens)} tokens, {len(unknown)} kinds of them unknown: "
                    f"{unknown[:5]}. Replace these by a token such as <unk> that the train part has"
                )
            numbers[part] = np.array([vocabulary[token] for token in tokens], dtype=np.int64)
        return cls(name, tuple(vocabulary), **numbers)

    def decode(self, numbers: Sequence[int] | np.ndarray) -> list[str]:
        """Return the tokens at positions in the vocabulary."""
        return [self.vocabulary[number] for number in numbers]


def load_penn_treebank(
    level: str = "word", *, data_home: str | os.PathLike[str], verify: bool = True
) -> Corpus:
    """Load the Penn Treebank prepared by Mikolov et al. (2010), by words or by characters.

    Parameters
    ----------
    level : {"word", "char"}, default "word"
        "word": words, with ``N`` for numbers, ``<unk>`` for rare words and ``<eos>`` at the end of
        each line. "char": characters, with ``_`` for a space between words, and ``<eos>``.
    data_home : path
        Folder with ``ptb.train.txt``, ``ptb.valid.txt`` and ``ptb.test.txt``, plain or with
        ``.gz``. Characters are read from ``ptb.char.train.txt`` and so on if present, and else from
        the words. There is no download.
    verify : bool, default True
        Refuse word files with other counts than published: 929,589, 73,760 and 82,430 tokens of
        10,000 types. Counts of character files are not checked. Files of more than 16 MiB are
        refused.

    Returns
    -------
    Corpus

    Raises
    ------
    ValueError
        If `level` is unknown, a file is damaged or empty, has a token that the training part
        lacks, or counts differ.
    TypeError
        If `data_home` is no path.
    FileNotFoundError
        If a file is missing; the message says where it is published.

    Notes
    -----
    Character files separate characters by spaces. ``<unk>`` consists of five characters, also if
    characters are read from words.

    References
    ----------
    Marcus, Santorini and Marcinkiewicz (1993), Building a large annotated corpus of English: The
    Penn Treebank. Mikolov, Karafiat, Burget, Cernocky and Khudanpur (2010), Recurrent neural
    network based language model.

    Examples
    --------
    >>> from tsrnn.datasets import load_penn_treebank
    >>> words = load_penn_treebank("word", data_home="~/ptb")  # doctest: +SKIP
    >>> len(words.vocabulary), len(words.train)  # doctest: +SKIP
    (10000, 929589)
    """
    if not isinstance(level, str) or level not in LEVELS:
        raise ValueError(f"level must be one of {list(LEVELS)}; got {level!r}")
    folder, most = as_folder(data_home), MOST if verify else MOST_OTHER
    if level == "char" and _file(folder, "ptb.char.train.txt") is not None:
        parts = [_read_characters(_existing(folder, f"ptb.char.{part}.txt"), most) for part in
                 PARTS.values()]  # fmt: skip
        return Corpus.from_tokens("Penn Treebank, characters", *parts)
    words = [_read_words(_existing(folder, f"ptb.{part}.txt"), most) for part in PARTS.values()]
    counts = (tuple(map(len, words)), len(set().union(*words)))
    if verify and counts != (WORD_COUNTS, WORD_TYPES):
        raise ValueError(
            f"the parts must have {WORD_COUNTS} tokens of {WORD_TYPES} kinds, an <eos> a line "
            f"among them; the files in {folder} have {counts[0]} of {counts[1]}. Replace them by "
            f"those of {URL}, or pass verify=False"
        )
    if level == "word":
        return Corpus.from_tokens("Penn Treebank, words", *words)
    return Corpus.from_tokens("Penn Treebank, characters", *map(_spell, words))


def _file(folder: Path, name: str) -> Path | None:
    """Return the path of a plain or gzipped file, None if missing."""
    paths = (folder / name, folder / f"{name}.gz")
    return next((path for path in paths if path.is_file()), None)


def _existing(folder: Path, name: str) -> Path:
    path = _file(folder, name)
    if path is None:
        raise FileNotFoundError(
            f"data_home must hold {name} or {name}.gz; found neither in {folder}. The files are in "
            f"simple-examples/data of {URL}"
        )
    return path


def _read_lines(path: Path, most: int) -> list[list[str]]:
    """Return the tokens of every line, separated by spaces."""
    content = read_file(path, most, f"Replace it by that of {URL}")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} must be a text in UTF-8; got one that cannot be read ({error}). "
            f"Replace it by that of {URL}"
        ) from error
    lines = [line.split() for line in text.splitlines()]
    if not any(lines):
        raise ValueError(f"{path} must have words; it is empty. Replace it by that of {URL}")
    return lines


def _read_words(path: Path, most: int) -> list[str]:
    return [token for line in _read_lines(path, most) for token in (*line, END)]


def _read_characters(path: Path, most: int) -> list[str]:
    tokens = []
    for number, line in enumerate(_read_lines(path, most), start=1):
        long = next((token for token in line if len(token) > 1), None)
        if long is not None:
            raise ValueError(
                f"{path}, line {number}: characters must be separated by spaces, with {SPACE} for "
                f"a space; got {long!r}"
            )
        tokens += [*line, END]
    return tokens


def _spell(words: list[str]) -> list[str]:
    """Return the characters of words, with `SPACE` between words and `END` after lines."""
    tokens: list[str] = []
    first = True
    for word in words:
        tokens += [] if first or word == END else [SPACE]
        tokens += [END] if word == END else list(word)
        first = word == END
    return tokens


def token_batches(
    tokens: np.ndarray, batch_size: int, steps: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Split a text into batches for truncated backpropagation through time.

    The text is split into `batch_size` stretches of equal length, and each batch has the next
    `steps` tokens of every stretch. Row b of a batch continues row b of the previous batch, so that
    the state of a network can be carried over.

    Parameters
    ----------
    tokens : array_like of int, shape (n,)
    batch_size : int
        Number of stretches B.
    steps : int
        Steps T per batch.

    Yields
    ------
    x, y : ndarray of shape (B, T)
        Tokens, and their next tokens. The last batch may have fewer steps; up to B tokens at the
        end of the text are dropped.

    Raises
    ------
    ValueError
        If the text is no sequence of integers or shorter than B + 1, or a size is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.datasets import token_batches
    >>> for x, y in token_batches(np.arange(11), batch_size=2, steps=3):
    ...     print(x.tolist(), y.tolist())
    [[0, 1, 2], [5, 6, 7]] [[1, 2, 3], [6, 7, 8]]
    [[3, 4], [8, 9]] [[4, 5], [9, 10]]
    """
    check_at_least(1, batch_size=batch_size, steps=steps)
    text = np.asarray(tokens)
    if text.ndim != 1 or not np.issubdtype(text.dtype, np.integer):
        raise ValueError(
            f"tokens must be integers of shape (n,); got {text.dtype} of shape {text.shape}"
        )
    length = (len(text) - 1) // batch_size
    if length < 1:
        raise ValueError(
            f"tokens must be at least batch_size + 1 = {batch_size + 1}; got {len(text)}. Take a "
            "smaller batch_size"
        )
    x = text[: batch_size * length].reshape(batch_size, length)
    y = text[1 : batch_size * length + 1].reshape(batch_size, length)
    return (
        (x[:, start : start + steps], y[:, start : start + steps])
        for start in range(0, length, steps)
    )
