"""Recurrent modules: the interface of all, and stacks whose layers run one after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tsrnn.kernels import as_lengths, in_arithmetic


class Recurrent(nn.Module, ABC):
    """Base of the recurrent modules, called like :class:`torch.nn.RNN` with batch first.

    A module is causal, and its state is all that it needs to go on: running over x_1 and then over
    x_2 from the state it returned is the same as running over both, up to the rounding of torch's
    matrix products, and `outputs` of the state is the output of the last step. A subclass gives the
    attributes and implements `run`, `outputs` and `reset_parameters`; where they apply, also
    `prepare`, `recurrent_parameters` and `recurrent_blocks`.

    Attributes
    ----------
    input_size : int
        Inputs per step.
    hidden_size : int
        Outputs per step.
    num_layers : int
    state_size : int
        Numbers that a layer carries from step to step.
    matrix_names : tuple of str
        Names of the recurrent matrices of a layer; empty if there are none to read.
    engine : str
        Engine of `tsrnn.kernels.recurrence` that runs the recurrence; "auto" where a layer has
        no choice.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.layers import ParaRNN, Recurrent
    >>> layer, x = ParaRNN(3, 16), torch.ones(8, 100, 3)
    >>> isinstance(layer, Recurrent)
    True
    >>> whole, _ = layer(x)
    >>> _, h_60 = layer(x[:, :60])
    >>> rest, _ = layer(x[:, 60:], h_60)
    >>> bool(torch.allclose(whole[:, 60:], rest, atol=1e-6))
    True
    """

    input_size: int
    hidden_size: int
    num_layers: int
    state_size: int
    matrix_names: tuple[str, ...] = ()
    engine: str = "auto"

    def forward(
        self,
        x: Tensor,
        hx: Tensor | None = None,
        lengths: Tensor | Sequence[int] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Run over sequences.

        Parameters
        ----------
        x : Tensor of shape (B, T, input_size) or (T, input_size)
        hx : Tensor of shape (num_layers, B, state_size) or (num_layers, state_size), optional
            State before the first step; `initial_state` by default.
        lengths : integers of shape (B,), optional
            Number of steps of each sequence in a padded batch. Outputs after the
            end are zero.

        Returns
        -------
        output : Tensor of shape (B, T, hidden_size) or (T, hidden_size)
            Outputs of the last layer.
        h_n : Tensor of shape of `hx`
            State of every layer after the last step.

        Raises
        ------
        ValueError
            If shapes do not fit, lengths lie outside 0 to T, or `torch.autocast` runs in float16.

        Notes
        -----
        Under `torch.autocast` in bfloat16 matrix products run in it, the projection of `x` among
        them; the recurrence runs in the dtype of the layer, which output and state have.
        """
        for name, value in (("x", x), ("hx", hx)):
            if not isinstance(value, Tensor) and (name == "x" or value is not None):
                raise TypeError(
                    f"{name} must be a torch.Tensor; got {type(value).__name__}. Convert it with "
                    "torch.as_tensor"
                )
        dtype = next(self.parameters()).dtype
        x = in_arithmetic(x, dtype)
        hx = None if hx is None else in_arithmetic(hx, dtype)
        if x.ndim == 2:
            output, h_n = self(x[None], None if hx is None else hx[:, None], lengths)
            return output[0], h_n[:, 0]
        self._check_input(x, hx)
        steps = as_lengths(lengths, len(x), x.device, x.shape[1])
        output, h_n = self.run(x, self.initial_state(len(x)) if hx is None else hx, steps)
        # Autocast rounds what a layer ends with, where that is a matrix product.
        return output.to(dtype), h_n

    @abstractmethod
    def run(self, x: Tensor, hx: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """`forward` on checked (B, T, input_size) and (num_layers, B, state_size)."""

    @abstractmethod
    def outputs(self, states: Tensor) -> Tensor:
        """Output (..., hidden_size) that belongs to a state (..., state_size) of the last layer."""

    @abstractmethod
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the parameters anew."""

    def initialise(self) -> None:
        """Draw the parameters, if they have values and not only shapes; for constructors."""
        if not next(self.parameters()).is_meta:
            self.reset_parameters()

    def initial_state(self, batch: int) -> Tensor:
        """State (num_layers, batch, state_size) before the first step: zero."""
        like = next(self.parameters())
        return like.new_zeros(self.num_layers, batch, self.state_size)

    @property
    def takes_replicates(self) -> bool:
        """Support for a first axis of R replicates in the parameters.

        The first B / R sequences of a batch are then of the first replicate, and so on.
        """
        return False

    def prepare(self, *, verbose: bool = False) -> None:
        """Compile the kernels ahead of their use; with `verbose` report it."""

    def recurrent_parameters(self) -> list[nn.Parameter]:
        """Parameters that carry a state on and start stable: trained slowly, without decay."""
        return []

    def recurrent_blocks(self) -> list[Tensor] | list[dict[str, Tensor]]:
        """Recurrent matrices (K, d_s, d_s) of every layer; a dict by name where there are several.

        Raises
        ------
        ValueError
            If there are none.
        """
        raise ValueError(f"{type(self).__name__} has no recurrent matrices to read")

    def _check_input(self, x: Tensor, hx: Tensor | None) -> None:
        if x.ndim != 3 or x.shape[2] != self.input_size or not x.shape[1]:
            raise ValueError(
                f"x must have shape (B, T, {self.input_size}) or (T, {self.input_size}) with "
                f"T >= 1; got {tuple(x.shape)}"
            )
        expected = (self.num_layers, len(x), self.state_size)
        if hx is not None and tuple(hx.shape) != expected:
            raise ValueError(f"hx must have shape {expected}; got {tuple(hx.shape)}")
        weight = next(self.parameters())
        kind = (weight.dtype, weight.device)
        for name, tensor in (("x", x), ("hx", hx)):
            if tensor is not None and (tensor.dtype, tensor.device) != kind:
                raise ValueError(
                    f"{name} must have the dtype and device of the layer, {weight.dtype} on "
                    f"{weight.device}; got {tensor.dtype} on {tensor.device}. Convert one of them "
                    "with .to()"
                )


class LayeredRecurrent(Recurrent):
    """Base of the modules whose layers are recurrences of their own, with dropout between them.

    Attributes
    ----------
    dropout : float
        Probability of dropping an output of a layer but the last, in training.
    """

    dropout: float

    def run(self, x: Tensor, hx: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """See `Recurrent`."""
        final = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = nn.functional.dropout(x, self.dropout, self.training)
            x, last = self.run_layer(layer, x, hx[layer], lengths)
            final.append(last)
        return x, torch.stack(final)

    @abstractmethod
    def run_layer(
        self, layer: int, x: Tensor, initial: Tensor, lengths: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """One layer: x (B, T, in) and initial (B, state) to outputs (B, T, hidden), last state."""


def last_output(output: Tensor, initial: Tensor, lengths: Tensor | None) -> Tensor:
    """Output (B, d) at the end of each sequence, the initial one where it has no steps."""
    if lengths is None:
        return output[:, -1]
    end = (lengths.long() - 1).clamp(min=0)[:, None, None].expand(-1, 1, output.shape[2])
    return torch.where(lengths[:, None] > 0, output.gather(1, end)[:, 0], initial)
