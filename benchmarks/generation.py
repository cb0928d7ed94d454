"""Tokens a second where each token is drawn after the one before, against the number of them.

Figure 3 and Table 3 of Danieli et al. (2025) at a size for a CPU: a recurrence carries a state of
fixed size, a transformer looks at the keys and values of all tokens so far. A model is an
embedding, layers of one width, RMS normalisation and a linear layer; the most likely token comes
next. ParaGRU and ParaLSTM are `NewtonBlocks`, ParaRNN, LEM and LRU the layers as they come; the
transformer has RMS normalisation before attention and before a gated perceptron of the same width
as that of the blocks, and a cache of keys and values. Before anything is timed, logits token by
token are compared with those of a pass over the whole sequence.

One sequence is generated up to the longest length; tokens a second at a length are those of the
median of the last 64 tokens before it, the best of some repetitions (they take the least time of
five). The paper has models of 400 million to 7 billion parameters on an A100.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from _timing import option_parser, print_machine, print_table, read_options
from tasks import encoding
from torch import Tensor, nn

from tsrnn.layers import LEM, LRU, NewtonBlocks, ParaRNN, Recurrent

VOCABULARY = 128
WINDOW = 64  # tokens, of whose times the median is taken
# Table 3: tokens a second at 2^11 tokens, of 400M, 1B, 3B and 7B parameters.
PAPER = {
    "ParaGRU": (38.12, 38.09, 28.58, 28.45),
    "ParaLSTM": (36.77, 36.93, 27.06, 27.68),
    "Mamba2": (29.76, 27.61, 19.33, 18.16),
    "Transformer": (6.45, 1.98, 1.00, 0.42),
}


class Attention(nn.Module):
    """Causal attention with a cache of the keys and values of all tokens so far."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inwards = nn.Linear(size, 3 * size, bias=False)
        self.outwards = nn.Linear(size, size, bias=False)
        self.cache: tuple[Tensor, Tensor] | None = None

    def forward(self, x: Tensor, before: int) -> Tensor:
        """Tokens (B, T, size) that `before` ones in the cache lead."""
        parts = self.inwards(x).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        if self.cache is not None:
            for cache, new in zip(self.cache, (k, v), strict=True):
                cache[:, :, before : before + x.shape[1]] = new
            k, v = (cache[:, :, : before + x.shape[1]] for cache in self.cache)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=x.shape[1] > 1)
        return self.outwards(y.transpose(1, 2).flatten(2))


class GatedMLP(nn.Module):
    """Perceptron of the blocks, with a width of 8/3."""

    def __init__(self, size: int) -> None:
        super().__init__()
        width = -(-8 * size // 3)
        self.inwards = nn.Linear(size, 2 * width, bias=False)
        self.outwards = nn.Linear(width, size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (B, T, size), each by itself."""
        a, b = self.inwards(x).chunk(2, -1)
        return self.outwards(nn.functional.silu(a) * b)


class Transformer(nn.Module):
    """Pre-normalised transformer; its state is its place, the cache is in its layers."""

    def __init__(self, size: int, layers: int, heads: int, longest: int) -> None:
        super().__init__()
        self.register_buffer("places", encoding(longest, size))
        self.norms = nn.ModuleList(nn.RMSNorm(size) for _ in range(2 * layers + 1))
        self.attentions = nn.ModuleList(Attention(size, heads) for _ in range(layers))
        self.mlps = nn.ModuleList(GatedMLP(size) for _ in range(layers))

    def start(self, batch: int) -> None:
        """Empty caches."""
        longest, size = self.places.shape
        for attention in self.attentions:
            shape = (batch, attention.heads, longest, size // attention.heads)
            attention.cache = (torch.zeros(shape), torch.zeros(shape))

    def forward(self, x: Tensor, before: Any = None) -> tuple[Tensor, int]:
        """Outputs (B, T, size), and the number of tokens seen."""
        before = 0 if before is None else before
        x = x + self.places[before : before + x.shape[1]]
        for i, (attention, mlp) in enumerate(zip(self.attentions, self.mlps, strict=True)):
            x = x + attention(self.norms[2 * i](x), before)
            x = x + mlp(self.norms[2 * i + 1](x))
        return self.norms[-1](x), before + x.shape[1]


class LanguageModel(nn.Module):
    """Embedding, layers that carry a state, normalisation and logits."""

    def __init__(self, layers: nn.Module, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, size)
        self.layers, self.norm = layers, nn.RMSNorm(size)
        self.output = nn.Linear(size, VOCABULARY)

    def forward(self, tokens: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """Tokens (B, T) to logits (B, T, VOCABULARY), and the state after them."""
        x, state = self.layers(self.embedding(tokens), state)
        return self.output(self.norm(x)), state


Make = Callable[[argparse.Namespace], Recurrent | Transformer]
MODELS: dict[str, Make] = {
    "ParaGRU": lambda o: NewtonBlocks(o.width, o.width, o.layers, n_heads=o.heads),
    "ParaLSTM": lambda o: NewtonBlocks(
        o.width, o.width, o.layers, cell="newton-lstm", n_heads=o.heads
    ),
    "ParaRNN": lambda o: ParaRNN(o.width, o.width, num_layers=o.layers),
    "LEM, 2 x 2": lambda o: LEM(o.width, o.width, o.layers, block_size=2),
    "LEM": lambda o: LEM(o.width, o.width, o.layers),
    "LRU": lambda o: LRU(o.width, o.width, o.layers),
    "Transformer": lambda o: Transformer(o.width, o.layers, o.heads, 2**o.longest),
}


def new_model(name: str, options: argparse.Namespace) -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel(MODELS[name](options), options.width).eval()


def check_same(model: LanguageModel) -> None:
    """Compare logits token by token with those of the whole sequence."""
    tokens = torch.randint(VOCABULARY, (2, 24), generator=torch.Generator().manual_seed(0))
    whole, _ = model(tokens)
    start_caches(model, 2)
    state, steps = None, []
    for token in tokens.unbind(1):
        logits, state = model(token[:, None], state)
        steps.append(logits)
    torch.testing.assert_close(torch.cat(steps, 1), whole, rtol=1e-4, atol=1e-4)


def start_caches(model: LanguageModel, batch: int) -> None:
    if isinstance(model.layers, Transformer):
        model.layers.start(batch)


def seconds(model: LanguageModel, count: int) -> np.ndarray:
    """Time of each of the tokens of one sequence."""
    start_caches(model, 1)
    token, state, times = torch.zeros(1, 1, dtype=torch.long), None, np.empty(count)
    for i in range(count):
        begun = time.perf_counter()
        logits, state = model(token, state)
        token = logits.argmax(-1)
        times[i] = time.perf_counter() - begun
    return times


def state_numbers(name: str, model: LanguageModel, count: int) -> int:
    """Numbers carried from token to token after so many."""
    if name == "Transformer":
        layers = model.layers
        return int(2 * count * layers.places.shape[1] * len(layers.attentions))
    return int(model.layers.num_layers * model.layers.state_size)


@torch.inference_mode()
def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--shortest", type=int, default=8, help="power of two, at least 6")
    parser.add_argument("--longest", type=int, default=13, help="power of two")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = read_options(
        parser, models=list(MODELS)[:1], width=32, layers=1, heads=2, longest=8, repeats=1
    )
    window = int(math.log2(WINDOW))
    if not window <= options.shortest <= options.longest:
        parser.error(f"--shortest must be at least {window} and --longest at least --shortest; "
                     f"got {options.shortest} and {options.longest}")  # fmt: skip
    if options.heads < 1 or options.width % options.heads:
        parser.error(f"--heads must divide --width, {options.width}; got {options.heads}")
    torch.set_num_threads(options.threads)
    print_machine()
    print(f"{options.layers} layers of {options.width}, {options.heads} heads, one sequence, "
          "float32\n")  # fmt: skip
    lengths = [2**i for i in range(options.shortest, options.longest + 1)]
    rows, carried = [], []
    for name in options.models:
        model = new_model(name, options)
        check_same(model)
        least = np.full(len(lengths), np.inf)
        for _ in range(options.repeats):
            times = seconds(model, lengths[-1])
            medians = [np.median(times[length - WINDOW : length]) for length in lengths]
            least = np.minimum(least, medians)
        count = sum(p.numel() for p in model.parameters()) / 1e6
        rows.append([name, f"{count:.1f}", *(f"{1 / t:.0f}" for t in least),
                     f"{least[-1] / least[0]:.2f}"])  # fmt: skip
        carried.append([name, *(f"{state_numbers(name, model, n):,}" for n in lengths)])
    header = [f"2^{int(math.log2(length))}" for length in lengths]
    print("Tokens a second at a length; last column, time of a token at the end over the start\n")
    print_table(["model", "million parameters", *header, "ratio"], rows)
    print("\nNumbers carried from token to token\n")
    print_table(["model", *header], carried)
    print("\nTable 3 of the paper: tokens a second at 2^11, an A100\n")
    print_table(["model", "400M", "1B", "3B", "7B"], [[k, *v] for k, v in PAPER.items()])


if __name__ == "__main__":
    main()
