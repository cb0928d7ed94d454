"""Constructor arguments of an estimator, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tsrnn.contract import choice, flag, number, positive_integer, verbosity
from tsrnn.erm._layer import layer_choice
from tsrnn.layers import AGGREGATIONS, LayerChoice, RecurrentNetwork, make_layer
from tsrnn.training import LARGEST_RATE, checked_device

SPLITS = ("random", "last")
POOLINGS = ("last", "mean", "max")
MOST_SAMPLES = 2**40  # more than a batch can have


@dataclass(frozen=True)
class Settings:
    """All arguments as they are used."""

    layer: LayerChoice
    hidden_size: int
    n_layers: int
    aggregation: str
    input_projection: bool
    many_to_many: bool
    bound: float | None
    standardize: bool
    learning_rate: float
    weight_decay: float
    batch_size: int | None
    max_epochs: int
    early_stopping: bool
    validation_fraction: float
    validation_split: str
    patience: int | None
    device: str
    callbacks: Sequence[Any]
    verbose: int

    def make(self, n_inputs: int, n_outputs: int) -> RecurrentNetwork:
        """An empty network; layers check the arguments that are theirs."""
        width = self.hidden_size if self.input_projection else n_inputs
        return RecurrentNetwork(
            make_layer(self.layer, width, self.hidden_size, self.n_layers),
            n_outputs,
            aggregation=self.aggregation,
            input_size=n_inputs if self.input_projection else None,
        )


def settings_of(params: Mapping[str, Any]) -> Settings:
    """Settings from constructor arguments by name.

    Raises
    ------
    TypeError, ValueError
        If one is not legal; the message names it.
    """
    sizes: dict[str, Any] = {
        name: positive_integer(name, params[name])
        for name in ("hidden_size", "n_layers", "max_epochs")
    }
    flags: dict[str, Any] = {
        name: flag(name, params[name])
        for name in ("input_projection", "many_to_many", "standardize", "early_stopping")
    }
    bound, patience, batch_size = params["bound"], params["patience"], params["batch_size"]
    _check_pooling(params["pooling"], flags["many_to_many"])
    return Settings(
        layer=layer_choice(params),
        aggregation=choice("aggregation", params["aggregation"], AGGREGATIONS),
        bound=None if bound is None else number("bound", bound, lowest=0.0, open_=True),
        learning_rate=number(
            "learning_rate", params["learning_rate"], lowest=0.0, open_=True, highest=LARGEST_RATE
        ),
        weight_decay=number("weight_decay", params["weight_decay"], lowest=0.0, open_=False),
        batch_size=None
        if batch_size is None
        else min(positive_integer("batch_size", batch_size), MOST_SAMPLES),
        validation_fraction=number(
            "validation_fraction", params["validation_fraction"], lowest=0.0, open_=True,
            highest=0.5,
        ),
        validation_split=choice("validation_split", params["validation_split"], SPLITS),
        patience=None if patience is None else positive_integer("patience", patience),
        device=checked_device(params["device"]),
        callbacks=() if params["callbacks"] is None else params["callbacks"],
        verbose=verbosity(params["verbose"]),
        **sizes,
        **flags,
    )  # fmt: skip


def _check_pooling(pooling: Any, many_to_many: bool) -> None:
    choice("pooling", pooling, POOLINGS)
    if many_to_many and pooling != "last":
        raise ValueError(
            "pooling is of one target a sample; with many_to_many=True every step has its own: "
            f"got pooling={pooling!r}. Leave it out"
        )
