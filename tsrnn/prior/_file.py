"""Pretrained networks and their files."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """Abstract base of pretrained networks.

    `weights` are by their names in the network, `size` has its arguments, and `description` is a
    sentence that names the training data.
    """

    weights: dict[str, np.ndarray]
    size: dict[str, Any]
    description: str
    prefix: ClassVar[str]  # of the weights' names in the file of a forecaster
    noun: ClassVar[str]  # for messages

    @classmethod
    def of(cls, network: Any, size: dict[str, Any], description: str) -> Self:
        """Copy the present weights of a torch module."""
        return cls(weights_of(network), size, description)

    @staticmethod
    def new_network(**size: Any) -> Any:
        """Untrained torch module of the given size."""
        raise NotImplementedError

    @cached_property
    def network(self) -> Any:
        """Torch module with these weights."""
        import torch  # forecasts of most networks do without

        from tsrnn.layers import shapes_only

        with shapes_only():  # a draw would move torch's global generator
            network = self.new_network(**self.size)
        weights = {name: torch.from_numpy(array.copy()) for name, array in self.weights.items()}
        network.load_state_dict(weights, assign=True)
        return network.eval().requires_grad_(False)

    @cached_property
    def float64_network(self) -> Any:
        """Copy of `network` in float64, so that a forecast does not depend on the batch."""
        return copy.deepcopy(self.network).double()

    def save(self, path: str | Path) -> None:
        """Write the network to a file for `read`."""
        header = {"size": json.dumps(self.size), "description": self.description}
        save_file(self.weights, str(path), header)

    def to_file(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """JSON values and arrays for the file of a forecaster."""
        arrays = {self.prefix + name: value for name, value in self.weights.items()}
        return {"size": self.size, "description": self.description}, arrays

    @classmethod
    def shapes(cls, size: dict[str, Any]) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Dtypes and shapes of the arrays of `to_file`."""
        return {
            cls.prefix + name: ("float32", shape)
            for name, shape in cls.weight_shapes(**size).items()
        }

    @classmethod
    def weight_shapes(cls, **size: Any) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights by name."""
        import torch

        with torch.device("meta"):
            network = cls.new_network(**size)
        return {name: tuple(value.shape) for name, value in network.state_dict().items()}

    @classmethod
    def from_file(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """Inverse of `to_file`."""
        weights = {
            name.removeprefix(cls.prefix): array
            for name, array in arrays.items()
            if name.startswith(cls.prefix)
        }
        return cls(weights, header["size"], header["description"])

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a network from a file."""
        if not Path(path).is_file():
            raise FileNotFoundError(
                f"there is no file {str(path)!r}. Give one that {cls.__name__}.save has written"
            )
        return cls._read(Path(path))

    @classmethod
    def shipped(cls, name: str) -> Self:
        """Read a network that comes with the package, by the name of its file."""
        kind: Any = cls
        return _shipped(kind, name)

    @classmethod
    def _read(cls, path: Path) -> Self:
        try:
            with safe_open(str(path), "np") as file:
                header = file.metadata() or {}
                weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            size = json.loads(header["size"])
            expected = cls.weight_shapes(**size)
            if {name: array.shape for name, array in weights.items()} != expected:
                raise ValueError("the weights are not those of a network of this size")
            return cls(weights, size, header["description"])
        except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
            raise ValueError(
                f"{str(path)!r} is no {cls.noun}. Give a file that {cls.__name__}.save has written"
            ) from error


def weights_of(network: Any) -> dict[str, np.ndarray]:
    """Copy the weights of a torch module, by name."""
    return {name: value.numpy(force=True).copy() for name, value in network.state_dict().items()}


@cache
def _shipped(kind: type[Any], name: str) -> Any:
    """Cached network of the package; files given by path are not cached, since they may change."""
    with resources.as_file(resources.files("tsrnn.prior") / name) as path:
        return kind._read(path)
