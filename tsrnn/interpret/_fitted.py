"""Active networks of a fitted model, and its sample of inputs.

A fitted model is recognised by its attributes, because this room does not import the classes of
forecasters and regressors. `inactive_networks_` maps inactive networks to the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from tsrnn.interpret._checks import check_tensor
from tsrnn.interpret._time_unit import TimeUnit, time_unit

if TYPE_CHECKING:
    from torch import Tensor, nn

    from tsrnn.layers import Recurrent


class UninformativeNetworkError(ValueError):
    """Error for a fitted network that contributes nothing, so that its matrices are uninformative.

    Functions that read networks, such as `recurrence_features`, raise it if a fitted model keeps
    the start values of its network (epoch 0 was best), or if the network of a regressor predicts no
    better than a constant. The message says what makes the forecasts instead, and what to do.

    Parameters
    ----------
    message : str

    Examples
    --------
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.datasets import load_elec_equip
    >>> from tsrnn.interpret import UninformativeNetworkError, recurrence_features
    >>> settings = {"horizon": 6, "hidden_size": 8, "max_epochs": 2, "learning_rate": 1.0}
    >>> model = ParaRNNForecaster(**settings, random_state=0)
    >>> model.fit(load_elec_equip()).network_active_
    False
    >>> try:
    ...     recurrence_features(model)
    ... except UninformativeNetworkError as error:
    ...     print(str(error)[:57])
    recurrence_features reads what a network has learned, and
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)


class ReadNetwork(NamedTuple):
    """Recurrent layers of a network, and the projection of its inputs."""

    layers: Any  # of the requested class
    projection: nn.Linear | None
    number: int | None  # of the network, if a model has several

    def layer_inputs(self, x: Tensor) -> Tensor:
        """Inputs of the first layer, from inputs x of the network (B, T, in) or (T, in)."""
        import torch

        size = self.layers.input_size if self.projection is None else self.projection.in_features
        if x.ndim not in (2, 3) or x.shape[-1] != size or not x.shape[-2]:
            raise ValueError(
                f"x must have shape (B, T, {size}) or (T, {size}) with T >= 1; got {tuple(x.shape)}"
            )
        weight = next(self.layers.parameters())
        if (x.dtype, x.device) != (weight.dtype, weight.device):
            raise ValueError(
                f"x must have the dtype and device of the layer, {weight.dtype} on "
                f"{weight.device}; got {x.dtype} on {x.device}. Convert one of them with .to()"
            )
        with torch.no_grad():
            return x if self.projection is None else self.projection(x)


def active_networks(model: Any, reader: str) -> list[tuple[int | None, Any]]:
    """Pairs of number, from 1, and network of the active networks of a fitted model or ensemble.

    The number is None for a single network; a network or layer by itself is returned as it is.
    Raise `UninformativeNetworkError` if none is active; `reader` is the caller, for messages.
    """
    estimator = not isinstance(model, type) and all(
        callable(getattr(model, name, None)) for name in ("fit", "predict")
    )
    if estimator and not (hasattr(model, "network_") or hasattr(model, "state_")):
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(
            f"{reader} needs a fitted model; this {type(model).__name__} is not fitted yet. "
            "Call fit first."
        )
    network = getattr(model, "network_", model)
    members = getattr(network, "networks", None)
    if not isinstance(members, list):
        members = [network]
    inactive = {} if isinstance(model, type) else getattr(model, "inactive_networks_", {})
    active: list[tuple[int | None, Any]]
    active = [(i, member) for i, member in enumerate(members, 1) if i not in inactive]
    if inactive and not active:
        raise UninformativeNetworkError(
            f"{reader} reads what a network has learned, and {next(iter(inactive.values()))}"
        )
    return active if len(members) != 1 else [(None, members[0])]


def read_networks(model: Any, kind: type[Recurrent], reader: str) -> list[ReadNetwork]:
    """Active networks of a model; raise TypeError unless their layers are instances of `kind`."""
    from tsrnn.layers import RecurrentNetwork

    networks = [
        ReadNetwork(network.rnn, network.input, number)
        if isinstance(network, RecurrentNetwork)
        else ReadNetwork(network, None, number)
        for number, network in active_networks(model, reader)
    ]
    for network in networks:
        if not isinstance(network.layers, kind):
            shown = type(model).__name__
            if isinstance(model, type):
                shown = f"the class {model.__name__} itself"
            elif network.layers is not model:
                shown += f" of {type(network.layers).__name__} layers"
            raise TypeError(
                f"`layer` must be a tsrnn.layers.{kind.__name__}, or a network or a fitted "
                f"forecaster of such layers; got {shown}"
            )
    return networks


def read_network(model: Any, kind: type[Recurrent], reader: str) -> ReadNetwork:
    """Network of a model; raise ValueError if there are several."""
    networks = read_networks(model, kind, reader)
    if len(networks) > 1:
        raise ValueError(
            f"{reader} reads one network; this {type(model).__name__} has {len(networks)}. "
            f"{single_network_hint(model)}"
        )
    return networks[0]


def single_network_hint(model: Any) -> str:
    """Advice for a model with several networks if one is needed."""
    if hasattr(model, "network_"):
        return "Pass one of model.network_.networks, and model.sample_ as its inputs"
    return "Pass one of model.networks"


def inputs_for(model: Any, x: Any, network: ReadNetwork) -> Tensor:
    """Inputs of the first layer of a network, by default from the forecaster's sample."""
    x = getattr(model, "sample_", None) if x is None else x
    if x is None:
        raise TypeError(
            "x, the inputs to run over, must be given with a layer or a network; got None. "
            "Only a fitted forecaster keeps a sample of its own"
        )
    fitted = hasattr(model, "network_")
    hint = ", or leave it out to take the forecaster's own sample" if fitted else ""
    check_tensor("x", x, next(network.layers.parameters()).dtype, hint)
    return network.layer_inputs(x)


def fitted_time_unit(model: Any, freq: Any) -> TimeUnit:
    """Unit of time of `freq`, by default of the frequency of a fitted forecaster."""
    return time_unit(getattr(model, "freq_", None) if freq is None else freq)


def by_network(tables: list[pd.DataFrame], networks: list[ReadNetwork]) -> pd.DataFrame:
    """Concatenate the tables of networks, with a column `network` if there are several."""
    if networks[0].number is None:
        return tables[0]
    for table, network in zip(tables, networks, strict=True):
        table.insert(0, "network", network.number)
    joined = pd.concat(tables, ignore_index=True)
    joined.attrs = dict(tables[0].attrs)
    return joined
