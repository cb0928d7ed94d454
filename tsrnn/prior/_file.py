"""A trained network with its weights, and its files."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from tsrnn.layers import shapes_only


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """Base of networks that were trained before; not to be used by itself.

    Attributes
    ----------
    network : Module
    size : dict of str to int or str
        Arguments of the network.
    description : str
        Sentence that names the data it was trained on.
    """

    network: Any
    size: dict[str, Any]
    description: str
    network_class: ClassVar[type[nn.Module]]
    prefix: ClassVar[str]  # before the names of parameters in the file of a forecaster
    noun: ClassVar[str]  # in messages

    @cached_property
    def _in_double_precision(self) -> Any:
        """Copy that computes in double precision: forecasts of a series are those of it alone."""
        return copy.deepcopy(self.network).double()

    def save(self, path: str | Path) -> None:
        """Write a file that is read by path."""
        header = {"size": json.dumps(self.size), "description": self.description}
        save_file(self.network.state_dict(), str(path), header)

    def to_file(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """JSON values and arrays for the file of a forecaster."""
        state = self.network.state_dict()
        arrays = {self.prefix + name: value.numpy() for name, value in state.items()}
        return {"size": self.size, "description": self.description}, arrays

    @classmethod
    def shapes(cls, size: dict[str, Any]) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Types and shapes of the arrays of `to_file`, of a network of some size."""
        with torch.device("meta"):
            network = cls.network_class(**size)
        return {
            cls.prefix + name: (str(value.dtype).removeprefix("torch."), tuple(value.shape))
            for name, value in network.state_dict().items()
        }

    @classmethod
    def from_file(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """Inverse of `to_file`."""
        weights = {
            name.removeprefix(cls.prefix): torch.from_numpy(array.copy())
            for name, array in arrays.items()
            if name.startswith(cls.prefix)
        }
        return cls._with_weights(header["size"], weights, header["description"])

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Network of a file."""
        if not Path(path).is_file():
            raise FileNotFoundError(
                f"there is no file {str(path)!r}. Give one that {cls.__name__}.save has written"
            )
        return cls._read(Path(path))

    @classmethod
    def shipped(cls, name: str) -> Self:
        """Network that comes with the package, by the name of its file."""
        kind: Any = cls
        return _shipped(kind, name)

    @classmethod
    def _read(cls, path: Path) -> Self:
        try:
            with safe_open(str(path), "pt") as file:
                header = file.metadata() or {}
                weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            size = json.loads(header["size"])
            return cls._with_weights(size, weights, header["description"])
        except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
            raise ValueError(
                f"{str(path)!r} is no {cls.noun}. Give a file that {cls.__name__}.save has written"
            ) from error

    @classmethod
    def _with_weights(
        cls, size: dict[str, Any], weights: dict[str, torch.Tensor], description: str
    ) -> Self:
        with shapes_only():  # a draw would move torch's global generator
            network: Any = cls.network_class(**size)
        network.load_state_dict(weights, assign=True)
        return cls(network.eval().requires_grad_(False), size, description)


@cache
def _shipped(kind: type[Any], name: str) -> Any:
    """Network that comes with the package; files by path may be written anew."""
    with resources.as_file(resources.files("tsrnn.prior") / name) as path:
        return kind._read(path)
