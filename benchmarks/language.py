"""Language models: LEM beside LSTM and GRU, and Newton blocks beside LRU and attention.

``--table-6`` and ``--table-7`` of Rusch et al. (2022): one layer that predicts the next character
(embedding of 200, 1024 units) or word (256 units, whose output weights are the embedding) of Penn
Treebank. Settings are those of the paper's Table 8 and of the files that come with the authors'
code: Adam, a constant rate, batches of 128 stretches of 150 characters or 64 of 70 words, the
gradient clipped at norm 1 or 4, an L2 penalty, dropout of inputs and outputs. Their dropout of
states and their average of weights are left out. The test part is scored once, with the weights of
the best validation loss.

``--blocks``: section 4 and appendix C.1 of Danieli et al. (2025) in small. Networks of about
``--parameters`` parameters predict the next character: `NewtonBlocks` of GRUs and of LSTMs with
their recurrent parameters bounded by 1/2, a linear recurrent unit, and block-recurrent attention.
AdamW, decoupled weight decay, 10 percent of the steps warm up, then a cosine to 0. The paper trains
on sequences of 2048 tokens; here batches are 16 stretches of 128 characters.

In both the state goes on from batch to batch, without gradients. ``--data`` is the text:

``ptb`` is read from ``--data-home``. ``ptb-small`` has characters of ptb.valid.txt alone for
training (the last tenth validates) and ptb.test.txt. ``python`` is on every machine: the
help texts of the Python that runs this, `pydoc_data.topics`, paragraphs that come twice left out;
the first 80 percent train, the next 10 validate, the last 10 test.
"""

from __future__ import annotations

import argparse
import copy
import math
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from _classify import seconds
from _runs import kept_results, read_run_options, run_all
from _timing import option_parser, print_table
from torch import Tensor, nn

from tsrnn.datasets import Corpus, load_penn_treebank, token_batches
from tsrnn.layers import LEM, LRU, BlockRecurrentAttention, NewtonBlocks, ParaRNN, Recurrent

EVALUATED = 8  # stretches of a part beside each other; all but the first start without a past


@dataclass(frozen=True)
class Recipe:
    """Settings of a training; see above."""

    rate: float
    batch_size: int
    steps: int
    clip_norm: float
    embedding: int
    input_dropout: float = 0.0
    output_dropout: float = 0.0
    penalty: float = 0.0  # L2, through the gradient
    weight_decay: float = 0.0  # decoupled
    cosine: bool = False
    tied: bool = False


CHARACTERS = Recipe(6.6e-4, 128, 150, 1.0, 200, 0.047, 0.191, penalty=2.6e-4)
WORDS = Recipe(6.8e-4, 64, 70, 4.0, 256, 0.425, 0.457, penalty=3.3e-4, tied=True)
BLOCKS = Recipe(3e-3, 16, 128, 1.0, 32, weight_decay=1e-3, cosine=True)
LAYERS: dict[str, Callable[[int, int], Recurrent]] = {
    "LEM": lambda inputs, units: LEM(inputs, units),
    "LEM, blocks of 8": lambda inputs, units: LEM(inputs, units, block_size=8),
    "LSTM": lambda inputs, units: ParaRNN(inputs, units, units, cell="lstm", init="uniform"),
    "GRU": lambda inputs, units: ParaRNN(inputs, units, units, cell="gru", init="uniform"),
    "RNN": lambda inputs, units: ParaRNN(inputs, units, units, init="uniform"),
    "ParaLSTM": lambda inputs, units: ParaRNN(inputs, units, cell="lstm"),
    "ParaGRU": lambda inputs, units: ParaRNN(inputs, units, cell="gru"),
    "ParaRNN": lambda inputs, units: ParaRNN(inputs, units),
}
BLOCK_LAYERS: dict[str, Callable[[int, int], Recurrent]] = {
    "Newton GRU": lambda inputs, units: NewtonBlocks(
        inputs, units, 2, cell="newton-gru", n_heads=4, max_recurrent=0.5
    ),
    "Newton LSTM": lambda inputs, units: NewtonBlocks(
        inputs, units, 2, cell="newton-lstm", n_heads=4, max_recurrent=0.5
    ),
    "LRU": lambda inputs, units: LRU(inputs, units, 2, r_min=0.5, max_phase=math.pi / 10),
    "attention": lambda inputs, units: BlockRecurrentAttention(
        inputs, units, 2, n_states=16, window=64, n_heads=4
    ),
    "LSTM of 2 layers": lambda inputs, units: ParaRNN(
        inputs, units, units, 2, cell="lstm", init="uniform"
    ),
}
PUBLISHED = {
    "table-6": {"LEM": "1.25", "LSTM": "1.36", "GRU": "1.37"},
    "table-7": {"LEM": "72.8", "LSTM": "116.9"},
    "blocks": {},
}


class LanguageModel(nn.Module):
    """Embedding, recurrent layers and logits of the next token."""

    def __init__(
        self, types: int, units: int, make: Callable[[int, int], Recurrent], recipe: Recipe,
        generator: torch.Generator,
    ) -> None:  # fmt: skip
        super().__init__()
        self.embedding = nn.Embedding(types, recipe.embedding)
        self.rnn = make(recipe.embedding, units)
        self.output = nn.Linear(units, types)
        self.input_dropout = nn.Dropout(recipe.input_dropout)
        self.output_dropout = nn.Dropout(recipe.output_dropout)
        self.rnn.reset_parameters(generator)
        with torch.no_grad():
            for parameter in self.output.parameters():
                parameter.uniform_(-(units**-0.5), units**-0.5, generator=generator)
            # As in torch, of unit variance; weights of an output are smaller.
            self.embedding.weight.normal_(generator=generator)
        if recipe.tied:
            self.embedding.weight = self.output.weight
        self.rnn.prepare()

    def forward(self, tokens: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Logits (B, T, types) of the tokens that follow (B, T), and the state."""
        outputs, state = self.rnn(self.input_dropout(self.embedding(tokens)), state)
        return self.output(self.output_dropout(outputs)), state


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def width_for(make: Callable[[int, int], Recurrent], inputs: int, types: int, size: int) -> int:
    """Units, a multiple of 4, of which layers and output have about `size` parameters."""
    return min(
        range(8, 513, 4),
        key=lambda units: abs(count(make(inputs, units)) + (units + 1) * types - size),
    )


@torch.no_grad()
def evaluate(model: LanguageModel, tokens: Any, steps: int) -> float:
    """Mean cross-entropy of the next token, in nats."""
    model.eval()
    state, total, n = None, 0.0, 0
    for x, y in token_batches(tokens, EVALUATED, 4 * steps):
        logits, state = model(torch.from_numpy(x), state)
        target = torch.from_numpy(y)
        total += nn.functional.cross_entropy(logits.mT, target, reduction="sum").item()
        n += target.numel()
    model.train()
    return total / n


def rate_at(share: float) -> float:
    """Share of the rate after a share of all steps: a tenth warms up, then a cosine to 0."""
    return 10 * share if share < 0.1 else 0.5 + 0.5 * math.cos(math.pi * (share - 0.1) / 0.9)


def train(
    model: LanguageModel, corpus: Corpus, recipe: Recipe, epochs: int, minutes: float
) -> dict[str, Any]:
    """Train, choose the weights by the validation part, and score the test part once."""
    optimiser: torch.optim.Optimizer
    if recipe.weight_decay:
        optimiser = torch.optim.AdamW(
            model.parameters(), lr=recipe.rate, weight_decay=recipe.weight_decay
        )
    else:
        optimiser = torch.optim.Adam(
            model.parameters(), lr=recipe.rate, weight_decay=recipe.penalty
        )
    batches = sum(1 for _ in token_batches(corpus.train, recipe.batch_size, recipe.steps))
    best, best_loss, course = copy.deepcopy(model.state_dict()), math.inf, []
    start, training, seen, step, late = seconds(), 0.0, 0, 0, False
    for epoch in range(epochs):
        state, losses = None, []
        for x, y in token_batches(corpus.train, recipe.batch_size, recipe.steps):
            begun = seconds()
            if recipe.cosine:
                for group in optimiser.param_groups:
                    group["lr"] = recipe.rate * rate_at(step / (epochs * batches))
            optimiser.zero_grad()
            logits, state = model(torch.from_numpy(x), state)
            state = state.detach()
            loss = nn.functional.cross_entropy(logits.mT, torch.from_numpy(y))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm)
            optimiser.step()
            losses.append(loss.item())
            training, seen, step = training + seconds() - begun, seen + x.size, step + 1
            late = seconds() - start > 60 * minutes
            if late:
                break
        validation = evaluate(model, corpus.validation, recipe.steps)
        course.append({
            "epoch": epoch + 1, "minutes": round((seconds() - start) / 60, 3),
            "training_loss": statistics.fmean(losses), "validation_loss": validation,
        })  # fmt: skip
        print(course[-1], file=sys.stderr, flush=True)
        if validation < best_loss:
            best, best_loss = copy.deepcopy(model.state_dict()), validation
        if late or not math.isfinite(losses[-1]):
            break
    model.load_state_dict(best)
    return {
        "parameters": count(model), "types": len(corpus.vocabulary), "steps": step,
        "tokens": [len(corpus.train), len(corpus.validation), len(corpus.test)],
        "minutes": round((seconds() - start) / 60, 2),
        "tokens_a_second": round(seen / max(training, 1e-9)),
        "validation_loss": best_loss, "test_loss": evaluate(model, corpus.test, recipe.steps),
        "course": course,
    }  # fmt: skip


def python_text() -> Corpus:
    """Help texts of this Python, as characters."""
    from pydoc_data.topics import topics

    paragraphs = dict.fromkeys("\n\n".join(topics[name] for name in sorted(topics)).split("\n\n"))
    text = "\n\n".join(paragraphs)
    n = len(text)
    train, *rest = text[: 8 * n // 10], text[8 * n // 10 : 9 * n // 10], text[9 * n // 10 :]
    known = set(train)
    validation, test = ("".join(c if c in known else "?" for c in part) for part in rest)
    return Corpus.from_tokens(f"help texts of Python {sys.version.split()[0]}", train, validation,
                              test)  # fmt: skip


def small_treebank(folder: Path) -> Corpus:
    """Characters of ptb.valid.txt, the last tenth for validation, and of ptb.test.txt."""
    valid, test = (
        (folder / f"ptb.{part}.txt").read_text(encoding="utf-8") for part in ("valid", "test")
    )
    first = 9 * len(valid) // 10
    return Corpus.from_tokens("Penn Treebank, small parts", valid[:first], valid[first:], test)


def load(name: str, level: str, folder: Path) -> Corpus:
    if name == "ptb":
        return load_penn_treebank(level, data_home=folder)
    return small_treebank(folder) if name == "ptb-small" else python_text()


def run_one(key: dict[str, Any], corpus: Corpus, recipe: Recipe) -> dict[str, Any]:
    """Result of a run."""
    generator = torch.Generator().manual_seed(key["seed"])
    torch.manual_seed(key["seed"])  # of dropout
    make = (BLOCK_LAYERS if key["table"] == "blocks" else LAYERS)[key["model"]]
    units, types = key["units"], len(corpus.vocabulary)
    if key["table"] == "blocks":
        size = key["parameters"] - types * recipe.embedding
        units = width_for(make, recipe.embedding, types, size)
    model = LanguageModel(types, units, make, recipe, generator)
    result = train(model, corpus, recipe, key["epochs"], key["minutes"])
    return {"text": corpus.name, "units": units} | result


def keys_of(options: argparse.Namespace) -> list[dict[str, Any]]:
    data = options.data
    if data == "python":  # the text is that of a version
        data = f"python {sys.version.split()[0]}"
    return [
        {"data": data, "table": options.table, "model": model, "units": options.units,
         "parameters": options.parameters if options.table == "blocks" else None,
         "rate": options.rate, "batch_size": options.batch_size, "epochs": options.epochs,
         "minutes": options.minutes_each, "seed": seed}
        for seed in range(options.seeds) for model in options.models
    ]  # fmt: skip


def print_results(options: argparse.Namespace) -> None:
    runs: dict[str, list[dict[str, Any]]] = {}
    for key, result in kept_results(options, keys_of(options)):
        runs.setdefault(key["model"], []).append(result)
    if not runs:
        print("no runs of these yet")
        return
    first = next(iter(runs.values()))[0]
    print(f"\n{first['text']}: {first['tokens']} tokens to train, validate and test, "
          f"{first['types']} kinds\n")  # fmt: skip

    def unit(loss: float) -> float:
        return math.exp(loss) if options.table == "table-7" else loss / math.log(2)

    rows = []
    for model, results in runs.items():
        tests = [unit(r["test_loss"]) for r in results]
        spread = f" ± {statistics.stdev(tests):.3f}" if len(tests) > 1 else ""
        course = results[0]["course"]
        rows.append([
            model, results[0]["units"], results[0]["parameters"], len(results), len(course),
            f"{unit(course[0]['validation_loss']):.3f}",
            f"{unit(course[len(course) // 2]['validation_loss']):.3f}",
            f"{statistics.fmean(unit(r['validation_loss']) for r in results):.3f}",
            f"{statistics.fmean(tests):.3f}{spread}",
            f"{statistics.fmean(r['minutes'] for r in results):.1f}",
            f"{statistics.fmean(r['tokens_a_second'] for r in results):.0f}",
            PUBLISHED[options.table].get(model, ""),
        ])  # fmt: skip
    name = "perplexity" if options.table == "table-7" else "bits a character"
    print_table(["model", "units", "parameters", "seeds", "epochs", f"validation {name}, epoch 1",
                 "half way", "best", f"test {name}", "minutes", "tokens a second",
                 "published on ptb"], rows)  # fmt: skip


def complete(options: argparse.Namespace, parser: argparse.ArgumentParser) -> Recipe:
    """Settings of the table with those that were given, which are filled in from it."""
    blocks = options.table == "blocks"
    if options.models is None:
        options.models = list(BLOCK_LAYERS) if blocks else ["LEM", "LSTM", "GRU"]
    if wrong := [m for m in options.models if m not in (BLOCK_LAYERS if blocks else LAYERS)]:
        parser.error(f"{wrong} are not models of --{options.table}")
    if options.data != "ptb" and options.table == "table-7":
        parser.error("words are of --data ptb alone")
    recipe, units = {
        "blocks": (BLOCKS, None), "table-6": (CHARACTERS, 1024), "table-7": (WORDS, 256)
    }[options.table]  # fmt: skip
    options.units = units if blocks or options.units is None else options.units
    options.rate = recipe.rate if options.rate is None else options.rate
    options.batch_size = recipe.batch_size if options.batch_size is None else options.batch_size
    embedding = options.units if recipe.tied else recipe.embedding
    return replace(recipe, rate=options.rate, batch_size=options.batch_size, embedding=embedding)


def main() -> None:
    parser = option_parser(__doc__)
    tables = parser.add_mutually_exclusive_group()
    for table in PUBLISHED:
        tables.add_argument(f"--{table}", dest="table", action="store_const", const=table)
    parser.set_defaults(table="blocks")
    parser.add_argument("--data", choices=["ptb", "ptb-small", "python"], default="ptb")
    parser.add_argument("--data-home", type=Path, default=Path("ptb"))
    parser.add_argument("--models", nargs="+", choices=[*LAYERS, *BLOCK_LAYERS])
    parser.add_argument("--units", type=int, help="1024 for table 6, 256 for table 7")
    parser.add_argument("--parameters", type=int, default=100_000, help="of --blocks, with all")
    parser.add_argument("--rate", type=float, help="of the tables; 0.003 for blocks")
    parser.add_argument("--batch-size", type=int, help="stretches of text; of the tables")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--minutes-each", type=float, default=600.0, help="of a training")
    options = read_run_options(parser, "language")
    recipe = complete(options, parser)
    if not options.print_only:
        try:
            level = "word" if options.table == "table-7" else "char"
            corpus = load(options.data, level, options.data_home)
        except FileNotFoundError as error:
            print(f"skipped: {error}\nrun --data python in its place")
        else:
            run_all(options, keys_of(options), lambda key: run_one(dict(key), corpus, recipe))
    print_results(options)


if __name__ == "__main__":
    main()
