"""Penn Treebank and texts: files written here to the published layout, and damaged ones."""

import doctest
import gzip
import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsrnn.datasets import Corpus, load_penn_treebank, token_batches

LINES = {
    "train": " aer banknote <unk> N \n the cat \n\n",
    "valid": " the banknote \n",
    "test": " N cat \n cat <unk> \n",
}


def write(folder, lines=LINES, zipped=(), prefix="ptb."):
    for part, text in lines.items():
        data = text.encode()
        name = f"{prefix}{part}.txt"
        if part in zipped:
            name, data = name + ".gz", gzip.compress(data)
        (folder / name).write_bytes(data)
    return folder


def test_words_have_an_end_at_every_line(tmp_path):
    corpus = load_penn_treebank("word", data_home=write(tmp_path, zipped=("valid",)), verify=False)
    assert corpus.vocabulary == ("aer", "banknote", "<unk>", "N", "<eos>", "the", "cat")
    assert corpus.decode(corpus.train) == [
        *("aer", "banknote", "<unk>", "N", "<eos>", "the", "cat", "<eos>", "<eos>")
    ]
    assert corpus.decode(corpus.validation) == ["the", "banknote", "<eos>"]
    assert corpus.decode(corpus.test) == ["N", "cat", "<eos>", "cat", "<unk>", "<eos>"]
    assert corpus.train.dtype == np.int64


def test_characters_made_of_words_are_those_of_the_character_files(tmp_path):
    words, characters = tmp_path / "words", tmp_path / "characters"
    words.mkdir()
    characters.mkdir()
    write(words)
    spelt = {
        part: "".join(f"{' '.join(line.strip().replace(' ', '_'))}\n" for line in text.splitlines())
        for part, text in LINES.items()
    }
    assert spelt["valid"] == "t h e _ b a n k n o t e\n"
    write(characters, spelt, prefix="ptb.char.")
    made = load_penn_treebank("char", data_home=words, verify=False)
    read = load_penn_treebank("char", data_home=str(characters))
    assert made.vocabulary == read.vocabulary
    for part in ("train", "validation", "test"):
        np.testing.assert_array_equal(getattr(made, part), getattr(read, part))
    assert made.decode(made.validation[:5]) == ["t", "h", "e", "_", "b"]
    assert made.decode(made.test[-6:]) == ["<", "u", "n", "k", ">", "<eos>"]


def test_files_of_the_published_counts_are_taken(tmp_path):
    # 9,999 words and <eos>; lines of 20 words.
    kinds = [f"w{i}" for i in range(9_999)]
    for part, count in (("train", 929_589), ("valid", 73_760), ("test", 82_430)):
        words = (kinds * (count // len(kinds) + 1))[: count - count // 21]
        lines = [" ".join(words[i : i + 20]) for i in range(0, len(words), 20)]
        assert len(words) + len(lines) in (count, count + 1)
        if len(words) + len(lines) > count:
            lines[-1] = lines[-1].rsplit(" ", 1)[0]
        (tmp_path / f"ptb.{part}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    corpus = load_penn_treebank(data_home=tmp_path)
    assert len(corpus.vocabulary) == 10_000
    assert [len(corpus.train), len(corpus.validation), len(corpus.test)] == [
        *(929_589, 73_760, 82_430)
    ]
    with (tmp_path / "ptb.test.txt").open("a", encoding="utf-8") as file:
        file.write("w1\n")
    with pytest.raises(ValueError, match=r"929589, 73760, 82430.* have .*82432"):
        load_penn_treebank(data_home=tmp_path)


def test_other_counts_are_refused_unless_asked_for(tmp_path):
    for level in ("word", "char"):
        with pytest.raises(ValueError, match=r"simple-examples.*verify=False"):
            load_penn_treebank(level, data_home=write(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"level": "letter"}, ValueError, "level must be one of"),
        ({"level": None}, ValueError, "level must be one of"),
        ({"data_home": 3}, TypeError, "data_home must be a path"),
        ({"data_home": "/no/such/folder"}, FileNotFoundError, "simple-examples"),
    ],
)
def test_illegal_arguments_are_refused(tmp_path, arguments, error, message):
    with pytest.raises(error, match=message):
        load_penn_treebank(**({"data_home": write(tmp_path)} | arguments))


def test_a_missing_part_is_named(tmp_path):
    write(tmp_path)
    (tmp_path / "ptb.valid.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"ptb\.valid\.txt"):
        load_penn_treebank(data_home=tmp_path, verify=False)


@pytest.mark.parametrize(
    ("part", "content", "message"),
    [
        ("train", b"", "it is empty"),
        ("test", b" \n\n", "it is empty"),
        ("valid", b"\xff\xfe\x00", "UTF-8"),
        ("test", b"dog \n", r"kinds of them unknown: \['dog'\]"),
    ],
)
def test_damaged_word_files_are_refused(tmp_path, part, content, message):
    write(tmp_path)
    (tmp_path / f"ptb.{part}.txt").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_penn_treebank(data_home=tmp_path, verify=False)


def test_damaged_files_of_other_kinds_are_refused(tmp_path):
    write(tmp_path, {"train": "a b\n", "valid": "a\n", "test": "a _ bad\n"}, prefix="ptb.char.")
    with pytest.raises(ValueError, match=r"ptb\.char\.test\.txt, line 1: .*'bad'"):
        load_penn_treebank("char", data_home=tmp_path)
    (tmp_path / "ptb.char.test.txt").unlink()
    (tmp_path / "ptb.char.test.txt.gz").write_bytes(gzip.compress(b"a b\n" * 99)[:-8])
    with pytest.raises(ValueError, match="must be a complete gzip file"):
        load_penn_treebank("char", data_home=tmp_path)
    (tmp_path / "ptb.char.test.txt.gz").write_bytes(gzip.compress(b"a b\n" * (2**22 + 1)))
    with pytest.raises(ValueError, match=r"ptb\.char\.test\.txt\.gz must hold at most 16777216"):
        load_penn_treebank("char", data_home=tmp_path)


def test_a_text_is_a_sequence_of_its_characters():
    corpus = Corpus.from_tokens("x", "hello world", "hello", "world")
    assert corpus.vocabulary == tuple("helo wrd")
    assert corpus.decode(corpus.test) == list("world")
    with pytest.raises(ValueError, match="the test part of x must have tokens"):
        Corpus.from_tokens("x", "hello", "hello", "")


@given(n=st.integers(2, 200), batch_size=st.integers(1, 20), steps=st.integers(1, 30))
def test_batches_cover_the_text_in_order(n, batch_size, steps):
    tokens = np.arange(n)
    if n <= batch_size:
        with pytest.raises(ValueError, match="smaller batch_size"):
            token_batches(tokens, batch_size, steps)
        return
    batches = list(token_batches(tokens, batch_size, steps))
    x, y = (np.concatenate(part, axis=1) for part in zip(*batches, strict=True))
    np.testing.assert_array_equal(y, x + 1)
    np.testing.assert_array_equal(x.ravel(), tokens[: x.size])  # rows go on where they ended
    assert 0 <= n - 1 - x.size < batch_size
    assert {part.shape[1] for part, _ in batches[:-1]} <= {steps}
    assert 1 <= batches[-1][0].shape[1] <= steps


@pytest.mark.parametrize(
    ("tokens", "batch_size", "steps", "message"),
    [
        ([0.0, 1.0], 1, 1, "tokens must be integers"),
        ([[0, 1]], 1, 1, "tokens must be integers"),
        (["a", "b"], 1, 1, "tokens must be integers"),
        ([], 1, 1, "tokens must be"),
        ([0, 1], 0, 1, "batch_size must be an integer of at least 1"),
        ([0, 1], 1, 1.5, "steps must be an integer of at least 1"),
        ([0, 1], True, 1, "batch_size must be an integer of at least 1"),
    ],
)
def test_batches_of_illegal_arguments_are_refused(tokens, batch_size, steps, message):
    with pytest.raises(ValueError, match=message):
        token_batches(tokens, batch_size, steps)


def test_examples():
    module = importlib.import_module("tsrnn.datasets._text")
    assert doctest.testmod(module).failed == 0
