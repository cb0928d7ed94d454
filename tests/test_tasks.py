"""Every synthetic task against answers found one sequence at a time, in plain Python."""

import itertools
import re
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.datasets import tasks

DRAWS = {
    "parity": tasks.parity,
    "cycle_navigation": tasks.cycle_navigation,
    "modular_arithmetic": tasks.modular_arithmetic,
    "alternating_group": tasks.alternating_group,
    "keep_nth": tasks.keep_nth,
    "copy_memory": tasks.copy_memory,
    "k_hop": tasks.k_hop,
    "mqar": tasks.mqar,
}
SEEDS = st.integers(0, 2**32)


def check_form(task, n, length):
    for part, dtype in zip(task[:3], (np.int64, np.int64, bool), strict=True):
        assert part.shape == (n, length)
        assert part.dtype == dtype
    for part, size in ((task.tokens, task.n_tokens), (task.targets, task.n_classes)):
        assert part.min() >= 0
        assert part.max() < size
    assert task.mask.any()


@pytest.mark.parametrize("name", DRAWS)
def test_form_and_sizes_of_the_defaults(name):
    length = {"modular_arithmetic": 20, "alternating_group": 20, "copy_memory": 50}.get(name, 100)
    task = DRAWS[name](200, random_state=0)
    check_form(task, 200, length)
    assert len(np.unique(task.tokens)) == task.n_tokens  # every token comes up
    asked_for = np.unique(task.targets[task.mask])
    assert len(asked_for) > (60 if task.n_classes == 128 else task.n_classes - 1)


@pytest.mark.parametrize("name", DRAWS)
def test_draws_follow_from_the_seed_and_touch_no_global_one(name):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    one, same, other = (DRAWS[name](5, random_state=seed) for seed in (1, 1, 2))
    assert all(map(np.array_equal, one, same))
    assert not np.array_equal(one.tokens, other.tokens)
    generator = np.random.default_rng(1)
    assert np.array_equal(DRAWS[name](5, random_state=generator).tokens, one.tokens)
    assert not np.array_equal(DRAWS[name](5, random_state=generator).tokens, one.tokens)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@settings(deadline=None, max_examples=30)
@given(n=st.integers(1, 4), length=st.integers(1, 12), every_step=st.booleans(), seed=SEEDS)
def test_parity(n, length, every_step, seed):
    task = tasks.parity(n, length, every_step=every_step, random_state=seed)
    check_form(task, n, length)
    for tokens, targets, mask in zip(*task[:3], strict=True):
        for t in range(length):
            assert targets[t] == list(tokens[: t + 1]).count(1) % 2
            assert mask[t] == (every_step or t == length - 1)


@settings(deadline=None, max_examples=30)
@given(
    length=st.integers(1, 12), size=st.integers(2, 7), step=st.integers(1, 4),
    every_step=st.booleans(), seed=SEEDS,
)  # fmt: skip
def test_cycle_navigation(length, size, step, every_step, seed):
    task = tasks.cycle_navigation(
        3, length, size=size, step=step, every_step=every_step, random_state=seed
    )
    check_form(task, 3, length)
    assert (task.n_tokens, task.n_classes) == (2 * step + 1, size)
    for tokens, targets, mask in zip(*task[:3], strict=True):
        place = 0
        for t in range(length):
            for _ in range(abs(tokens[t] - step)):  # walk one place at a time
                place += 1 if tokens[t] > step else -1
                place = size - 1 if place < 0 else 0 if place == size else place
            assert targets[t] == place
            assert mask[t] == (every_step or t == length - 1)


@settings(deadline=None, max_examples=40)
@given(half=st.integers(1, 9), modulus=st.integers(2, 11), every_step=st.booleans(), seed=SEEDS)
def test_modular_arithmetic(half, modulus, every_step, seed):
    task = tasks.modular_arithmetic(
        3, 2 * half, modulus=modulus, every_step=every_step, random_state=seed
    )
    check_form(task, 3, 2 * half)
    assert (task.n_tokens, task.n_classes) == (modulus + 4, modulus)
    symbols = [*map(str, range(modulus)), "+", "-", "*", "="]
    for tokens, targets, mask in zip(*task[:3], strict=True):
        text = [symbols[token] for token in tokens]
        assert re.fullmatch(r"(\d+[-+*])*\d+=", "".join(text))
        for t in range(2 * half):
            written = text[: t + 1 if t % 2 == 0 else t]  # up to the last digit
            assert targets[t] == eval("".join(written)) % modulus
            assert mask[t] == (every_step or t == 2 * half - 1)


def test_modular_arithmetic_multiplies_first():
    task = tasks.modular_arithmetic(3000, 6, modulus=10, random_state=0)
    for tokens, target in zip(task.tokens, task.targets[:, -1], strict=True):
        if tuple(tokens) == (1, 10, 2, 12, 3, 13):
            assert target == 7
    assert np.array_equal(np.unique(task.tokens[:, 1]), [10, 11, 12])


def test_a5_is_the_alternating_group():
    assert tasks.A5.shape == (60, 5)
    assert not tasks.A5.flags.writeable
    elements = {tuple(row) for row in tasks.A5.tolist()}
    assert len(elements) == 60
    matrices = np.eye(5)[tasks.A5]
    assert np.linalg.det(matrices) == pytest.approx(1)  # even
    for p, q in itertools.product(elements, elements):
        assert tuple(p[j] for j in q) in elements


def test_alternating_group():
    task = tasks.alternating_group(20, 9, random_state=0)
    check_form(task, 20, 9)
    assert (task.n_tokens, task.n_classes) == (60, 60)
    assert task.mask.all()
    matrices = np.eye(5)[tasks.A5].transpose(0, 2, 1)  # column j has its one in row p(j)
    for tokens, targets in zip(task.tokens, task.targets, strict=True):
        product = np.eye(5)
        for token, target in zip(tokens, targets, strict=True):
            product = product @ matrices[token]
            assert np.array_equal(product, matrices[target])


@settings(deadline=None, max_examples=30)
@given(
    length=st.integers(1, 12), vocabulary=st.integers(2, 9), every_step=st.booleans(),
    data=st.data(), seed=SEEDS,
)  # fmt: skip
def test_keep_nth(length, vocabulary, every_step, data, seed):
    position = data.draw(st.integers(1, length))
    task = tasks.keep_nth(
        4, length, position=position, vocabulary=vocabulary, every_step=every_step,
        random_state=seed,
    )  # fmt: skip
    check_form(task, 4, length)
    assert (task.n_tokens, task.n_classes) == (vocabulary, vocabulary)
    for tokens, targets, mask in zip(*task[:3], strict=True):
        for t in range(length):
            assert mask[t] == (t >= position - 1 if every_step else t == length - 1)
            if mask[t]:
                assert targets[t] == tokens[position - 1]


@settings(deadline=None, max_examples=30)
@given(memory=st.integers(1, 6), blanks=st.integers(0, 6), seed=SEEDS)
def test_copy_memory(memory, blanks, seed):
    length = 2 * memory + blanks
    task = tasks.copy_memory(3, length, memory=memory, vocabulary=7, random_state=seed)
    check_form(task, 3, length)
    assert (task.n_tokens, task.n_classes) == (9, 7)
    for tokens, targets, mask in zip(*task[:3], strict=True):
        assert max(tokens[:memory]) < 7
        assert list(tokens[memory:]) == [7] * blanks + [8] + [7] * (memory - 1)
        assert list(targets[mask]) == list(tokens[:memory])
        assert list(mask) == [False] * (memory + blanks) + [True] * memory


def hops_by_hand(tokens, start, hops):
    """Step reached from `start`, or None: look back, one step at a time."""
    place = start
    for _ in range(hops):
        for earlier in range(place - 1, -1, -1):
            if tokens[earlier] == tokens[place]:
                place = earlier + 1
                break
        else:
            return None
    return place


@settings(deadline=None, max_examples=40)
@given(length=st.integers(2, 20), vocabulary=st.integers(2, 6), hops=st.integers(1, 4), seed=SEEDS)
def test_k_hop(length, vocabulary, hops, seed):
    task = tasks.k_hop(4, length, hops=hops, vocabulary=vocabulary, random_state=seed)
    for tokens, targets, mask in zip(*task[:3], strict=True):
        for t in range(length):
            place = hops_by_hand(tokens, t, hops)
            assert mask[t] == (place is not None)
            if place is not None:
                assert targets[t] == tokens[place]


@settings(deadline=None, max_examples=40)
@given(pairs=st.integers(1, 5), noise=st.integers(0, 9), half=st.integers(5, 8), seed=SEEDS)
def test_mqar(pairs, noise, half, seed):
    length = 3 * pairs + noise
    task = tasks.mqar(4, length, pairs=pairs, vocabulary=2 * half, random_state=seed)
    check_form(task, 4, length)
    for tokens, targets, mask in zip(*task[:3], strict=True):
        value_of = dict(zip(tokens[: 2 * pairs : 2], tokens[1 : 2 * pairs : 2], strict=True))
        assert len(value_of) == pairs
        assert max(value_of) < half <= min(value_of.values())
        queries = [t for t in range(2 * pairs, length) if tokens[t] < half]
        assert sorted(tokens[queries]) == sorted(value_of)  # each once
        assert list(np.flatnonzero(mask)) == queries
        assert [targets[t] for t in queries] == [value_of[tokens[t]] for t in queries]


def test_places_of_queries_are_uniform():
    task = tasks.mqar(4000, 10, pairs=1, vocabulary=4, random_state=0)
    share = task.mask[:, 2:].mean(0)
    assert not task.mask[:, :2].any()
    assert np.abs(share - 1 / 8).max() < 5 * np.sqrt(float(Fraction(7, 64)) / 4000)


def test_tasks_need_neither_torch_nor_pandas_of_their_own():
    code = "import sys; from tsrnn.datasets import tasks; tasks.mqar(2); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "torch" not in loaded.stdout.split()


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("parity", {"n": 0}, "n must be an integer of at least 1; got 0"),
        ("parity", {"length": 2.0}, r"length must be an integer of at least 1; got 2\.0"),
        ("cycle_navigation", {"size": 1}, "size must be an integer of at least 2; got 1"),
        ("cycle_navigation", {"step": True}, "step must be an integer of at least 1; got True"),
        ("modular_arithmetic", {"length": 19}, "length must be even.*; got 19"),
        ("modular_arithmetic", {"modulus": 1}, "modulus must be .* at least 2; got 1"),
        ("alternating_group", {"length": 0}, "length must be .* at least 1; got 0"),
        ("keep_nth", {"position": 101}, "length must be .* at least 101; got 100"),
        ("copy_memory", {"memory": 26}, "length must be .* at least 52; got 50"),
        ("k_hop", {"hops": 0}, "hops must be .* at least 1; got 0"),
        ("mqar", {"vocabulary": 127}, "vocabulary must be even.*; got 127"),
        ("mqar", {"pairs": 34}, "length must be .* at least 102; got 100"),
        ("mqar", {"pairs": 3, "vocabulary": 4}, "vocabulary must be .* at least 6; got 4"),
    ],
)
def test_refusals(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        DRAWS[name](**({"n": 2} | arguments))
