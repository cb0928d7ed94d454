"""Checked constructor arguments of an estimator, and the network that they describe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from tsrnn.contract import check_fits, choice, flag, number, positive_integer, refuse, verbosity
from tsrnn.layers import (
    AGGREGATIONS,
    OPTIONS,
    LayerChoice,
    RecurrentNetwork,
    layer_choice,
    make_layer,
    shapes_only,
    with_engine,
    with_options,
)
from tsrnn.training import LARGEST_RATE, checked_device

Check = Callable[[str, Any], Any]

MOST_SAMPLES = 2**40  # bound of batch sizes, larger than any batch
# Options of the layer that are arguments of the estimator; chrono_length is in layer_options.
PASSED_ON = tuple(name for name in OPTIONS if name != "chrono_length")


def _choice(legal: Sequence[str]) -> Check:
    return lambda name, value: choice(name, value, legal)


def _optional(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


# Argument -> function of name and value that returns the checked value or raises.
CHECKS: dict[str, Check] = {
    **dict.fromkeys(("hidden_size", "n_layers", "max_epochs"), positive_integer),
    **dict.fromkeys(("input_projection", "many_to_many", "standardize", "early_stopping"), flag),
    "loss": _choice(("squared_error", "absolute_error")),
    "aggregation": _choice(AGGREGATIONS),
    "pooling": _choice(("last", "mean", "max")),
    "validation_split": _choice(("random", "last")),
    "bound": _optional(partial(number, lowest=0.0, open_=True)),
    "learning_rate": partial(number, lowest=0.0, open_=True, highest=LARGEST_RATE),
    "weight_decay": partial(number, lowest=0.0, open_=False),
    "validation_fraction": partial(number, lowest=0.0, open_=True, highest=0.5),
    "batch_size": _optional(lambda name, size: min(positive_integer(name, size), MOST_SAMPLES)),
    "patience": _optional(positive_integer),
    "device": lambda _, value: checked_device(value),
    "callbacks": lambda _, value: () if value is None else value,
    "verbose": lambda _, value: verbosity(value),
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Checked constructor arguments; several of them define `layer`."""

    layer: LayerChoice
    loss: str = "log_loss"
    pooling: str
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
        """Build a network; layers check their own arguments."""
        width = self.hidden_size if self.input_projection else n_inputs
        return RecurrentNetwork(
            make_layer(self.layer, width, self.hidden_size, self.n_layers),
            n_outputs,
            aggregation=self.aggregation,
            input_size=n_inputs if self.input_projection else None,
        )

    def shapes(self, n_inputs: int, n_outputs: int) -> RecurrentNetwork:
        """Build a network without memory for its parameters, only their shapes."""
        with shapes_only():
            return self.make(n_inputs, n_outputs)

    def network(self, n_inputs: int, n_outputs: int) -> RecurrentNetwork:
        """Build a network on the CPU; raise if memory does not suffice."""
        shapes = self.shapes(n_inputs, n_outputs).parameters()
        check_fits(
            f"a network of hidden_size={self.hidden_size} and n_layers={self.n_layers}",
            16.0 * sum(parameter.numel() for parameter in shapes),  # value, gradient, two moments
            "Take smaller sizes; by default hidden_size=64 and n_layers=1",
        )
        with torch.random.fork_rng(devices=[]):  # parameters are drawn again by the seed of the fit
            return self.make(n_inputs, n_outputs)


def settings_of(params: Mapping[str, Any]) -> Settings:
    """Return checked settings from constructor arguments by name."""
    values = {name: check(name, params[name]) for name, check in CHECKS.items() if name in params}
    if values["many_to_many"] and values["pooling"] != "last":
        raise ValueError(
            "pooling is for one target per sample; with many_to_many=True every step has its own: "
            f"got pooling={values['pooling']!r}. Leave it out"
        )
    return Settings(layer=with_engine(layers_of(params), params["engine"]), **values)


def layers_of(params: Mapping[str, Any]) -> LayerChoice:
    """Return the layers that the arguments of an estimator describe."""
    choice = layer_choice(params["cell"], {name: params[name] for name in PASSED_ON})
    return with_options(choice, params["layer_options"], params["cell"], PASSED_ON)


def update_arguments(params: dict[str, Any]) -> None:
    """Update arguments in a file of an early format to the current ones, in place.

    Raise `DamagedFileError` if no current arguments give the network of the file.
    """
    options = params.get("layer_options")
    options = options if isinstance(options, dict) else {}
    for name in ("n_states", "window", "n_heads"):
        params.setdefault(name, options.pop(name, None))
    params.setdefault("engine", "auto")
    if params.get("cell") == "attention" and params.get("block_size") == params.get("hidden_size"):
        # In that format, states attended to each other with one head; now with n_heads.
        raise refuse(
            "params.block_size",
            "smaller than hidden_size in a file of this age",
            params["block_size"],
        )
