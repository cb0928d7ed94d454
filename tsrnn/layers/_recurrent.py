"""Interface of the recurrent modules, and stacks of recurrent layers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tsrnn.kernels import as_lengths, in_arithmetic


class Recurrent(nn.Module, ABC):
    """Abstract base of the recurrent modules, called like :class:`torch.nn.RNN` with batch first.

    A module is causal, and its state suffices to continue: running over x_1, then over x_2 from the
    returned state, equals running over both up to rounding. `outputs` of the state is the output of
    the last step. A subclass sets the attributes and implements `run`, `outputs` and
    `reset_parameters`; if applicable also `prepare`, `recurrent_parameters` and `recurrent_blocks`.

    Attributes
    ----------
    input_size : int
        Inputs per step.
    hidden_size : int
        Outputs per step.
    num_layers : int
    state_size : int
        Size of the state of a layer.
    matrix_names : tuple of str
        Names of the recurrent matrices of a layer; may be empty.
    engine : str
        Engine of `tsrnn.kernels.recurrence`; "auto" for a layer without a choice.

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
        self, x: Tensor, hx: Tensor | None = None, lengths: Tensor | Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Run over sequences.

        Under `torch.autocast` in bfloat16, matrix products such as the projection of `x` run in
        bfloat16. The recurrence, output and state keep the dtype of the layer.

        Parameters
        ----------
        x : Tensor of shape (B, T, input_size) or (T, input_size)
        hx : Tensor of shape (num_layers, B, state_size) or (num_layers, state_size), optional
            State before the first step; `initial_state` by default.
        lengths : integers of shape (B,), optional
            Number of steps of each sequence in a padded batch. Outputs in the padding are zero.

        Returns
        -------
        output : Tensor of shape (B, T, hidden_size) or (T, hidden_size)
            Outputs of the last layer.
        h_n : Tensor of the shape of `hx`
            State of every layer after the last step.

        Raises
        ------
        ValueError
            If shapes do not fit, lengths lie outside 0 to T, or `torch.autocast` runs in float16.
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
        # Autocast rounds the output of a layer that ends with a matrix product.
        return output.to(dtype), h_n

    @abstractmethod
    def run(self, x: Tensor, hx: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """`forward` on checked (B, T, input_size) and (num_layers, B, state_size)."""

    @abstractmethod
    def outputs(self, states: Tensor) -> Tensor:
        """Output (..., hidden_size) of a state (..., state_size) of the last layer."""

    @abstractmethod
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the parameters anew."""

    def initialise(self) -> None:
        """Draw the parameters in a constructor, unless they are on the meta device."""
        if not next(self.parameters()).is_meta:
            self.reset_parameters()

    def initial_state(self, batch: int) -> Tensor:
        """Zero state (num_layers, batch, state_size)."""
        like = next(self.parameters())
        return like.new_zeros(self.num_layers, batch, self.state_size)

    @property
    def takes_replicates(self) -> bool:
        """True if parameters may have a first axis of R replicates.

        The first B / R sequences of a batch then belong to the first replicate, and so on.
        """
        return False

    def prepare(self, *, verbose: bool = False) -> None:
        """Compile the kernels ahead of their use; with `verbose` report it."""

    def recurrent_parameters(self) -> list[nn.Parameter]:
        """Stable recurrent parameters, which are trained slowly and without decay."""
        return []

    def recurrent_blocks(self) -> list[Tensor] | list[dict[str, Tensor]]:
        """Recurrent matrices (K, d_s, d_s) of every layer; a dict by name if there are several.

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
    """Abstract base of the modules that run layer by layer, with dropout between layers."""

    dropout: float  # probability of dropping an output of a layer except the last, in training

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
        """Outputs (B, T, hidden) and last state of a layer, given x (B, T, in), initial (B, n)."""


def last_output(output: Tensor, initial: Tensor, lengths: Tensor | None) -> Tensor:
    """Output (B, d) at the end of each sequence; `initial` for sequences without steps."""
    if lengths is None:
        return output[:, -1]
    end = (lengths.long() - 1).clamp(min=0)[:, None, None].expand(-1, 1, output.shape[2])
    return torch.where(lengths[:, None] > 0, output.gather(1, end)[:, 0], initial)
