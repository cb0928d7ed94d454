"""The block-recurrent transformer against its equations, one step and one head at a time."""

import copy
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.layers.test_recurrent import normal
from tsrnn.interpret import recurrence_features
from tsrnn.layers import BlockRecurrentAttention, Recurrent, RecurrentNetwork

KINDS = (2, None)


def layer(block_size=2, num_layers=2, *, window=3, dtype=torch.float64, **kwargs):
    torch.manual_seed(0)
    sizes = {"input_size": 2, "hidden_size": 8, "n_states": 3, "n_heads": 2} | kwargs
    made = BlockRecurrentAttention(
        num_layers=num_layers, block_size=block_size, window=window, dtype=dtype, **sizes
    )
    with torch.no_grad():
        for parameter in made.parameters():  # no zero biases: everything counts
            parameter.add_(0.2 * torch.randn_like(parameter))
    return made


def linear(p, name, x):
    out = x @ p[f"{name}.weight"].T
    return out + p[f"{name}.bias"] if f"{name}.bias" in p else out


def norm(p, name, x):
    centred = x - x.mean()
    out = centred / torch.sqrt((centred**2).mean() + 1e-5) * p[f"{name}.weight"]
    return out + p[f"{name}.bias"] if f"{name}.bias" in p else out


def attention(query, keys, values, n_heads, bias=None):
    """One query (d,) to lists of keys and values, heads one after the other."""
    size = len(query) // n_heads
    heads = []
    for head in range(n_heads):
        part = slice(head * size, (head + 1) * size)
        scores = [query[part] @ key[part] / math.sqrt(size) for key in keys]
        if bias is not None:
            scores = [score + b for score, b in zip(scores, bias[head], strict=True)]
        weights = torch.softmax(torch.stack(scores), 0)
        heads.append(sum(w * value[part] for w, value in zip(weights, values, strict=True)))
    return torch.cat(heads)


def self_attention(layer, p, rows):
    """ParaAttention of section 6.2, or the usual one, of normalised states."""
    w_q, w_k, w_v = (p[f"self_attention.W_{name}"] for name in "QKV")
    out = []
    for row in rows:
        if layer.block_size is None:
            keys, values = [other @ w_k[0] for other in rows], [other @ w_v[0] for other in rows]
            heads = attention(row @ w_q[0], keys, values, layer.n_heads)
        else:
            parts = []
            for k in range(layer.hidden_size // layer.block_size):
                own = slice(k * layer.block_size, (k + 1) * layer.block_size)
                keys = [other[own] @ w_k[k] for other in rows]
                values = [other[own] @ w_v[k] for other in rows]
                parts.append(attention(row[own] @ w_q[k], keys, values, 1))
            heads = torch.cat(parts)
        out.append(linear(p, "self_attention.W_O", heads))
    return out


def joint_memory_after(layer, p, states, tokens):
    """The equation of section 5, h' = softmax(Q' K / sqrt(d)) V', for blocks and several states."""
    w_q, w_k, w_v = (p[f"self_attention.W_{name}"] for name in "QKV")
    rows, new = [*states, *tokens], []
    for h in states:
        if layer.block_size is None:
            query, keys = h @ w_q[0], [row @ w_k[0] for row in rows]
            new.append(attention(query, keys, [row @ w_v[0] for row in rows], layer.n_heads))
            continue
        parts = []
        for k in range(layer.hidden_size // layer.block_size):
            own = slice(k * layer.block_size, (k + 1) * layer.block_size)
            K, V = [row[own] @ w_k[k] for row in rows], [row[own] @ w_v[k] for row in rows]
            parts.append(attention(h[own] @ w_q[k], K, V, 1))
        new.append(torch.cat(parts))
    return new


def memory_after(layer, p, states, keys, values):
    named = [norm(p, "norm", m) + i for m, i in zip(states, p["state_ids"], strict=True)]
    gate = torch.sigmoid(p["gate"])
    candidates = self_attention(layer, p, named)
    new = []
    for m, name, candidate in zip(states, named, candidates, strict=True):
        across = attention(linear(p, "write_query", name), keys, values, layer.n_heads)
        new.append(gate * m + (1 - gate) * (candidate + linear(p, "write_output", across)))
    return new


def reading(layer, p, token, states):
    named = [norm(p, "norm", m) + i for m, i in zip(states, p["state_ids"], strict=True)]
    keys, values = zip(*(linear(p, "read_key_value", m).chunk(2) for m in named), strict=True)
    return attention(linear(p, "read_query", token), keys, values, layer.n_heads)


def below(parameters, prefix):
    return {k[len(prefix) :]: v for k, v in parameters.items() if k.startswith(prefix)}


def run_layer(layer, p, tokens):
    """All steps of one layer, a list of vectors; p its parameters."""
    memory = below(p, "memory.")
    window = layer.window
    normed = [norm(p, "norm", u) for u in tokens]
    if memory:
        normed = [u + memory["token_ids"][t % window] for t, u in enumerate(normed)]
        states = list(memory["initial"])
    pairs = [linear(p, "attention.key_value", u).chunk(2) for u in normed]
    keys, values = [k for k, _ in pairs], [v for _, v in pairs]
    out = []
    for t, u in enumerate(tokens):
        if memory and t and t % window == 0:
            whole = slice(t - window, t)
            if layer.update == "joint":
                states = joint_memory_after(layer, memory, states, normed[whole])
            else:
                states = memory_after(layer, memory, states, keys[whole], values[whole])
        seen = range(max(0, t - window), t + 1)
        bias = [[b[t - s] for s in seen] for b in p["attention.distance_bias"]]
        query = linear(p, "attention.query", normed[t])
        heads = attention(query, [keys[s] for s in seen], [values[s] for s in seen],
                          layer.n_heads, bias)  # fmt: skip
        if memory:
            heads = torch.cat([heads, reading(layer, memory, normed[t], states)])
        y = u + linear(p, "mix", heads)
        inner = linear(p, "feedforward.1", norm(p, "feedforward.0", y))
        gelu = inner * 0.5 * (1 + torch.erf(inner / math.sqrt(2)))
        out.append(y + linear(p, "feedforward.3", gelu))
    return out


def naive(layer, x):
    """Outputs (T, d) of one sequence (T, in): every step from its prefix alone."""
    p = dict(layer.named_parameters())
    out = []
    for t in range(len(x)):
        tokens = [linear(p, "embedding", step) for step in x[: t + 1]]
        for i in range(layer.num_layers):
            tokens = run_layer(layer, below(p, f"layers.{i}."), tokens)
        out.append(norm(p, "norm", tokens[-1]))
    return torch.stack(out)


@pytest.mark.few("options0", "options4", "options5", "options7", "options9")
@pytest.mark.parametrize(
    ("num_layers", "options", "steps"),
    [
        (2, {}, 8),
        (1, {"window": 2}, 7),
        (3, {"window": 2, "recurrent_layer": 3}, 5),
        (2, {"window": 4, "recurrent_layer": 2, "bias": False}, 9),
        (2, {"window": 1, "n_states": 1, "n_heads": 4}, 4),
        (1, {"window": 9}, 5),
        (3, {"window": 2, "recurrent_layer": "all"}, 7),
        (2, {"update": "joint"}, 8),
        (3, {"update": "joint", "window": 2, "recurrent_layer": "all", "bias": False}, 7),
        (1, {"update": "joint", "window": 2, "n_states": 1, "n_heads": 1}, 7),
    ],
)
@pytest.mark.parametrize("block_size", KINDS)
def test_the_equations(block_size, num_layers, options, steps):
    made = layer(block_size, num_layers, **options)
    assert isinstance(made, Recurrent)
    x = normal(2, steps, 2)
    with torch.no_grad():
        output = made(x)[0]
        for i in range(2):
            torch.testing.assert_close(output[i], naive(made, x[i]), rtol=0, atol=1e-10)


def test_one_state_is_the_cell_of_section_5():
    """h' = softmax(Q' K / sqrt(d)) V' with Q = W_Q h, K = [W_K h, W_K X], V = [W_V h, W_V X]."""
    d, W = 8, 3
    made = layer(d, 1, window=W, n_states=1, n_heads=1, update="joint")
    p = below(dict(made.named_parameters()), "layers.0.")
    x, state = normal(1, 2 * W, 2), None
    h = p["memory.initial"][0][:, None]
    for first in (0, W):
        chunk = x[:, first : first + W]
        with torch.no_grad():
            state = made(chunk, state)[1]
        tokens = [norm(p, "norm", linear(dict(made.named_parameters()), "embedding", step))
                  for step in chunk[0]]  # fmt: skip
        X = torch.stack(tokens, 1) + p["memory.token_ids"].T  # (d, N)
        # States are rows in the package, so that a matrix of the paper is the transpose.
        W_Q, W_K, W_V = (p[f"memory.self_attention.W_{name}"][0].T for name in "QKV")
        Q, K_h, V_h = W_Q @ h, W_K @ h, W_V @ h
        K, V = torch.cat([K_h, W_K @ X], 1), torch.cat([V_h, W_V @ X], 1)
        h = (torch.softmax(Q.T @ K / math.sqrt(d), 1) @ V.T).T
        torch.testing.assert_close(state[0, 0, -d:], h[:, 0].detach(), rtol=0, atol=1e-12)


def test_the_joint_update_has_no_other_parameters():
    gated, joint = layer(), layer(update="joint")
    removed = dict(gated.named_parameters()).keys() - dict(joint.named_parameters()).keys()
    kinds = {name.split("memory.")[1].split(".")[0] for name in removed}
    assert kinds == {"gate", "write_query", "write_output", "self_attention"}
    assert dict(joint.named_parameters()).keys() < dict(gated.named_parameters()).keys()
    features = recurrence_features(joint)
    assert features["matrix"].unique().tolist() == ["W_Q", "W_K", "W_V"]


@pytest.mark.parametrize("block_size", [1, 4, 8])
def test_blocks_of_other_sizes(block_size):
    made, x = layer(block_size), normal(1, 7, 2)
    with torch.no_grad():
        torch.testing.assert_close(made(x)[0][0], naive(made, x[0]), rtol=0, atol=1e-10)


@pytest.mark.parametrize("update", ["gated", "joint"])
@pytest.mark.parametrize("block_size", KINDS)
def test_gradients(block_size, update):
    made, x = layer(block_size, window=2, update=update), normal(1, 5, 2).requires_grad_()
    weight = normal(5, 8, seed=1)
    wanted = torch.autograd.grad((naive(made, x[0]) * weight).sum(), [x, *made.parameters()])
    first, state = made(x[:, :3])  # the gradient of the state is in that of the first steps
    second, _ = made(x[:, 3:], state)
    loss = (torch.cat([first, second], 1)[0] * weight).sum()
    for one, other in zip(torch.autograd.grad(loss, [x, *made.parameters()]), wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@settings(deadline=None, max_examples=12)
@given(
    block_size=st.sampled_from([1, 2, 4, None]),
    num_layers=st.integers(1, 3),
    window=st.integers(1, 6),
    steps=st.integers(2, 11),
    data=st.data(),
)
def test_going_on_from_a_state(block_size, num_layers, window, steps, data, assert_close):
    at = data.draw(st.sampled_from([*range(1, num_layers + 1), "all"]))
    update = data.draw(st.sampled_from(["gated", "joint"]))
    made = layer(block_size, num_layers, window=window, recurrent_layer=at, update=update)
    x = normal(2, steps, 2)
    with torch.no_grad():
        output, last = made(x)
        for split in range(1, steps):
            first, state = made(x[:, :split])
            assert_close(made.outputs(state[-1]), output[:, split - 1])
            second, end = made(x[:, split:], state)
            assert_close(torch.cat([first, second], 1), output)
            assert_close(end, last)


@pytest.mark.parametrize("block_size", KINDS)
def test_no_output_depends_on_later_steps_and_late_ones_on_early_steps(block_size):
    made, x = layer(block_size, window=2), normal(1, 12, 2).requires_grad_()
    output, _ = made(x)
    reach = torch.stack([
        torch.autograd.grad(output[0, t].square().sum(), x, retain_graph=True)[0][0].norm(dim=-1)
        for t in range(12)
    ])  # fmt: skip
    assert not reach.triu(1).any()
    # Two layers of local attention see 2 + 2 steps back, the memory all complete windows.
    assert (reach.tril() > 0).sum() == 12 * 13 / 2


def test_counts_of_long_sequences_stay_small():
    made = layer(window=3)
    assert made.state_size == 8 + 1 + 3 * 8 + 3 * 8  # output, count, memory and window
    with torch.no_grad():
        counts = [made(normal(1, steps, 2))[1][:, 0, 8].tolist() for steps in range(1, 12)]
    assert counts == [[c, c] for c in (1, 2, 3, 4, 5, 3, 4, 5, 3, 4, 5)]


@pytest.mark.slow
@pytest.mark.parametrize("block_size", KINDS)
def test_an_echo_from_beyond_the_window_is_learned(block_size):
    torch.manual_seed(0)
    attention = BlockRecurrentAttention(
        1, 16, 1, block_size=block_size, n_states=4, window=2, n_heads=2
    )
    network = RecurrentNetwork(attention, 1)
    optimiser = torch.optim.Adam(network.parameters(), 0.01)
    generator = torch.Generator().manual_seed(0)
    for _ in range(300):
        x = torch.rand(32, 12, 1, generator=generator) * 2 - 1  # variance 1/3
        loss = (network(x)[0][:, 4:] - x[:, :-4]).square().mean()  # local attention sees 2 back
        if loss.item() < 0.1:
            break
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.1


def test_para_attention_is_attention_with_block_diagonal_matrices_and_a_head_a_block():
    para = layer(2, n_heads=4)
    full = layer(None, n_heads=4)
    values = para.state_dict()
    for name in [name for name in values if name.endswith(("W_Q", "W_K", "W_V"))]:
        values[name] = torch.block_diag(*values[name])[None]
    full.load_state_dict(values)
    x = normal(2, 11, 2)
    torch.testing.assert_close(full(x)[0], para(x)[0], rtol=0, atol=1e-12)


def test_a_block_of_the_whole_width_is_the_ordinary_network():
    one, other = layer(block_size=8), layer(block_size=None)
    other.load_state_dict(one.state_dict())
    x = normal(2, 9, 2)
    assert torch.equal(one(x)[0], other(x)[0])
    assert one.block_size is None


def test_every_layer_may_be_recurrent():
    made = layer(num_layers=4, recurrent_layer="all")
    assert [part.memory is not None for part in made.layers] == [True] * 4
    assert len(made.recurrent_blocks()) == 4
    assert recurrence_features(made)["layer"].unique().tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(("block_size", "shape"), [(2, (4, 2, 2)), (None, (1, 8, 8))])
def test_recurrence_features(block_size, shape):
    made = layer(block_size)
    (blocks,) = made.recurrent_blocks()
    assert tuple(blocks) == made.matrix_names == ("W_Q", "W_K", "W_V")
    assert all(tuple(b.shape) == shape and not b.requires_grad for b in blocks.values())
    features = recurrence_features(made)
    assert list(features["matrix"].unique()) == ["W_Q", "W_K", "W_V"]
    assert features["block"].max() == shape[0]
    values = blocks["W_V"][0]
    found = features[(features["matrix"] == "W_V") & (features["block"] == 1)]
    assert found["modulus"].max() == pytest.approx(torch.linalg.eigvals(values).abs().max().item())


def test_what_is_drawn_follows_the_generator_alone():
    made = layer()
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(len(draws))
        state = torch.get_rng_state()
        made.reset_parameters(torch.Generator().manual_seed(seed))
        assert torch.equal(torch.get_rng_state(), state)
        draws.append(copy.deepcopy(made.state_dict()))
    assert all(torch.equal(draws[0][name], draws[1][name]) for name in draws[0])
    same = {name for name in draws[0] if torch.equal(draws[0][name], draws[2][name])}
    assert {name for name in same if "norm" not in name and "feedforward.0" not in name} == {
        "layers.0.attention.distance_bias",
        "layers.1.attention.distance_bias",
    }
    gate = draws[0]["layers.0.memory.gate"]
    assert gate.min() > 0
    assert gate.max() < 4


def test_where_the_recurrent_layer_is():
    assert [layer(num_layers=n).recurrent_layer for n in (1, 2, 3, 5)] == [1, 1, 2, 4]
    made = layer(num_layers=3)
    assert [part.memory is not None for part in made.layers] == [False, True, False]
    assert repr(made).startswith(
        "BlockRecurrentAttention(\n  2, 8, num_layers=3, block_size=2, n_states=3, window=3, "
        "n_heads=2, recurrent_layer=2"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_states": 0}, "n_states must be a positive integer; got 0"),
        ({"window": -2}, "window must be a positive integer; got -2"),
        ({"block_size": 0}, "block_size must be a positive integer; got 0"),
        (
            {"block_size": 3},
            "multiple of block_size and of n_heads.*size=8, block_size=3, n_heads=4. Take .*=12",
        ),
        ({"update": "both"}, r"update must be one of \('gated', 'joint'\); got 'both'"),
        ({"recurrent_layer": "some"}, "'all' or one of the layers 1 to 2; got 'some'"),
        ({"n_heads": 3}, "multiple of block_size and of n_heads; got hidden_size=8.*n_heads=3"),
        (
            {"recurrent_layer": 3},
            "recurrent_layer must be 'all' or one of the layers 1 to 2; got 3",
        ),
        (
            {"recurrent_layer": 0},
            "recurrent_layer must be 'all' or one of the layers 1 to 2; got 0",
        ),
    ],
)
def test_errors_of_the_constructor(arguments, message):
    with pytest.raises(ValueError, match=message):
        BlockRecurrentAttention(**({"input_size": 2, "hidden_size": 8} | arguments))


@pytest.mark.parametrize("count", [0.5, 6.0])
def test_a_state_counts_steps(count):
    with pytest.raises(ValueError, match=rf"number 9 counts steps, 0 to 5; got {count}"):
        layer()(normal(3, 5, 2), torch.full((2, 3, 57), count).double())
