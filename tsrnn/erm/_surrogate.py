"""Block diagonal surrogate of an ordinary recurrent network: equation (6)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.linalg import block_diag
from torch import Tensor, nn

from tsrnn.contract import number
from tsrnn.erm.theory import BlockDiagonalForm, nearest_block_diagonal
from tsrnn.layers import ParaRNN, RecurrentNetwork

__all__ = ["surrogate_network"]


def surrogate_network(
    network: nn.Module,
    block_size: int = 2,
    *,
    max_condition: float = 1e6,
    scale: float = 1.0,
) -> RecurrentNetwork:
    r"""Network of small blocks in place of an ordinary recurrent network.

    .. math::

        \tilde h_t = \sigma(\tilde W_h \tilde h_{t-1} + \tilde W_x x_t + \tilde b), \quad
        h_t = B \tilde h_t, \qquad
        \tilde W_x = B^{-1} W_x, \quad \tilde b = B^{-1} b

    with :math:`W_h \approx B \tilde W_h B^{-1}` of `nearest_block_diagonal`. A layer above takes
    the B of the layer below into its projection, :math:`\tilde W_x^{(l+1)} = (B^{(l+1)})^{-1}
    W_x^{(l+1)} B^{(l)}`; the B of the last layer goes into the map of the output.

    Parameters
    ----------
    network : torch.nn.RNN, ParaRNN or RecurrentNetwork
        One or more layers: a `torch.nn.RNN` with ``batch_first=True`` and one direction, a
        `tsrnn.layers.ParaRNN` with ``cell="rnn"`` and any block size, or a
        `tsrnn.layers.RecurrentNetwork` around one.
    block_size : int, default 2
        d_s of the surrogate: 1, an even divisor of the hidden size, or the hidden size.
    max_condition : float, default 1e6
        Largest condition number of a B, see `nearest_block_diagonal`. In float32 a condition
        number of 1e4 already costs four of seven digits.
    scale : float, default 1.0
        Factor of every B, see the notes. It matters for tanh only.

    Returns
    -------
    RecurrentNetwork
        Around a `ParaRNN` of `block_size`, with the device, type and mode of `network`; its
        outputs stand for those of `network`. Its state is that of the surrogate,
        :math:`B^{-1}` times the state it stands for. Without a map of the output of its own,
        as in `torch.nn.RNN`, the map is B with a constant of zero.

    Raises
    ------
    TypeError, ValueError
        If the network is of another kind, or another argument is not legal.

    Notes
    -----
    The surrogate equals the network, to rounding and to the distance between the recurrent
    matrices, where ``nonlinearity="identity"``. For tanh and relu it is an approximation that
    takes sigma(B z) for B sigma(z), and no bound on its error is known; for tanh it becomes
    exact as states become small, for relu it does not. B is not unique: its columns of a block
    may be multiplied by any invertible matrix, and with a nonlinearity each choice gives another
    surrogate. Here they are orthogonal and of such a length that the rows of
    :math:`B^{-1}` of a block have a spectral norm of 1, so that no block has a larger state
    than the network; all are then multiplied by `scale`. A large scale keeps the states of the
    surrogate where tanh is linear, and so gives the network with tanh left out. Compare the
    outputs before using a surrogate: it is a start for training rather than a replacement. Of
    networks `torch.nn.RNN` as they are initialised, on standard normal inputs, the surrogate's
    outputs differ by 0.27, 0.17 and 0.11 of their norm (8, 32 and 64 units, medians of ten),
    those of the network with tanh left out by 0.42, 0.14 and 0.07.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, equations (5) and (6).

    Examples
    --------
    >>> import torch
    >>> from tsrnn.layers import ParaRNN
    >>> from tsrnn.erm import surrogate_network
    >>> dense = ParaRNN(3, 8, block_size=8, nonlinearity="identity", dtype=torch.float64)
    >>> surrogate = surrogate_network(dense)
    >>> surrogate.rnn.block_size
    2
    >>> x = torch.randn(4, 20, 3, dtype=torch.float64)
    >>> torch.allclose(surrogate(x)[0], dense(x)[0])
    True
    """
    rnn: Any = network.rnn if isinstance(network, RecurrentNetwork) else network
    layers = _dense_layers(rnn)
    forms = [
        nearest_block_diagonal(layer.recurrent, block_size, max_condition=max_condition)
        for layer in layers
    ]
    factor = number("scale", scale, lowest=0.0, open_=True)
    weight = next(rnn.parameters())
    with torch.random.fork_rng(devices=[]):  # the parameters drawn are overwritten
        surrogate = ParaRNN(
            rnn.input_size,
            rnn.hidden_size,
            block_size,
            rnn.num_layers,
            nonlinearity=rnn.nonlinearity,
            bias=layers[0].bias is not None,
            dropout=rnn.dropout,
            dtype=weight.dtype,
        )
    surrogate, basis = surrogate.to(weight.device), None
    with torch.no_grad():
        for index, (layer, form) in enumerate(zip(layers, forms, strict=True)):
            # B of the layer below gives its states back, before this layer's own change of basis.
            inputs = layer.projection if basis is None else layer.projection @ basis
            basis = _in_unit_order(layer.rows, form, factor)
            projection, recurrent, bias = surrogate.weights(index)
            projection.copy_(torch.from_numpy(np.linalg.solve(basis, inputs)))
            recurrent.copy_(torch.from_numpy(form.blocks).movedim(0, -1))
            if bias is not None and layer.bias is not None:
                bias.copy_(torch.from_numpy(np.linalg.solve(basis, layer.bias)))
    return _with_output(network, surrogate, basis).train(network.training)


class _Layer(NamedTuple):
    """Ordinary layer, in float64; `rows` are the units of the rows of its recurrent matrix."""

    recurrent: np.ndarray
    rows: np.ndarray
    projection: np.ndarray
    bias: np.ndarray | None


def _dense_layers(rnn: Any) -> list[_Layer]:
    """Layers of a network of Elman; a TypeError where it is another."""
    if isinstance(rnn, ParaRNN) and rnn.nonlinearity is not None:
        weights = [rnn.weights(layer) for layer in range(rnn.num_layers)]
        rows = _unit_numbers(rnn.block_size, rnn.n_blocks)
        return [
            _Layer(
                block_diag(*_array(recurrent.movedim(-1, 0))),
                rows,
                _array(projection),
                None if bias is None else _array(bias),
            )
            for projection, recurrent, bias in weights
        ]
    if isinstance(rnn, nn.RNN):
        if rnn.bidirectional or not rnn.batch_first:
            raise ValueError(
                "network must be a torch.nn.RNN with batch_first=True and bidirectional=False; got "
                f"batch_first={rnn.batch_first}, bidirectional={rnn.bidirectional}"
            )

        def array(name: str) -> np.ndarray:
            return _array(getattr(rnn, name))

        return [
            _Layer(
                array(f"weight_hh_l{i}"),
                np.arange(rnn.hidden_size),
                array(f"weight_ih_l{i}"),
                # torch adds two biases, of which one would do.
                array(f"bias_ih_l{i}") + array(f"bias_hh_l{i}") if rnn.bias else None,
            )
            for i in range(rnn.num_layers)
        ]
    cell = getattr(getattr(rnn, "cell", None), "name", None)
    raise TypeError(
        "network must be a torch.nn.RNN, a tsrnn.layers.ParaRNN with cell='rnn' or a "
        f"tsrnn.layers.RecurrentNetwork around one; got {type(rnn).__name__}"
        + (f" with cell {cell!r}" if cell else "")
    )


def _unit_numbers(block_size: int, n_blocks: int) -> np.ndarray:
    """Numbers of the units, that of field i of block k at ``k * block_size + i``."""
    return np.arange(block_size * n_blocks).reshape(block_size, n_blocks).T.ravel()


def _in_unit_order(rows: np.ndarray, form: BlockDiagonalForm, scale: float) -> np.ndarray:
    """B, scaled, from the units of the surrogate to those of the network, both field by field."""
    n_blocks, size, _ = form.blocks.shape
    inverse = np.linalg.inv(form.transformation).reshape(n_blocks, size, -1)
    # No block is to have a larger state than the network.
    lengths = scale * np.linalg.norm(inverse, ord=2, axis=(1, 2))
    basis = np.empty_like(form.transformation)
    columns = np.ix_(rows, _unit_numbers(size, n_blocks))
    basis[columns] = form.transformation * np.repeat(lengths, size)
    return basis


def _with_output(network: nn.Module, rnn: ParaRNN, basis: Any) -> RecurrentNetwork:
    """Network around the layers of the surrogate, with B in the first map after them."""
    arguments: dict[str, Any] = {}
    n_outputs = rnn.hidden_size
    if isinstance(network, RecurrentNetwork):
        inner: Any = None if network.ffn is None else network.ffn[0]
        n_outputs = network.output.out_features
        arguments = {
            "aggregation": network.aggregation,
            "ffn_size": None if inner is None else inner.out_features,
            "input_size": None if network.input is None else network.input.in_features,
        }
    with torch.random.fork_rng(devices=[]):
        surrogate = RecurrentNetwork(rnn, n_outputs, **arguments).to(next(rnn.parameters()))
    if isinstance(network, RecurrentNetwork):
        around = {k: v for k, v in network.state_dict().items() if not k.startswith("rnn.")}
        surrogate.load_state_dict(around, strict=False)
    else:
        nn.init.eye_(surrogate.output.weight)
        nn.init.zeros_(surrogate.output.bias)
    first: Any = surrogate.output if surrogate.ffn is None else surrogate.ffn[0]
    with torch.no_grad():
        first.weight.copy_(torch.from_numpy(_array(first.weight) @ basis))
    return surrogate


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().double().numpy()
