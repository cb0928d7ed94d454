"""Forward and backward pass of a ParaRNN layer beside torch.nn.RNN of the same size.

Both sides hold the same numbers: the recurrent matrix of torch.nn.RNN is the block-diagonal
one of the layer, and outputs and gradients are compared before anything is timed. The floor
is the time to copy as many bytes as have to be moved. The layer's input projection is part of
its kernel, so 12 bytes a state: write h, later read h and its gradient. The recurrence alone,
on inputs that are there already, moves 8 forward (read u, write h) and 12 backward (read h and
its gradient, write that of u).
"""

from __future__ import annotations

import torch
from _timing import copy_ms_a_byte, median_ms, print_machine, print_table
from torch import Tensor, nn

from tsrnn.kernels import cells, recurrence
from tsrnn.layers import ParaRNN

SHAPES = [(64, 784, 128, 1), (8, 17984, 32, 6), (32, 96, 128, 7)]
BYTES = {"layer": 12, "forward": 8, "backward": 12}


def twin_of(layer: ParaRNN) -> nn.RNN:
    """torch.nn.RNN with the same weights, its features in the layer's order."""
    rnn = nn.RNN(layer.input_size, layer.hidden_size, batch_first=True)
    count = layer.n_blocks
    weight = torch.zeros(layer.hidden_size, layer.hidden_size)
    for k in range(count):
        weight[k::count, k::count] = layer.weight_hh_l0[:, :, k].detach()
    with torch.no_grad():
        rnn.weight_ih_l0.copy_(layer.weight_ih_l0)
        rnn.weight_hh_l0.copy_(weight)
        rnn.bias_ih_l0.copy_(layer.bias_l0)
        rnn.bias_hh_l0.zero_()
    return rnn


def check_same(layer: ParaRNN, rnn: nn.RNN, x: Tensor, grad: Tensor) -> None:
    """Compare outputs and all gradients."""
    ours, theirs = layer(x)[0], rnn(x)[0]
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    ours.backward(grad)
    theirs.backward(grad)
    count = layer.n_blocks
    blocks = torch.stack([rnn.weight_hh_l0.grad[k::count, k::count] for k in range(count)], -1)
    pairs = [
        (layer.weight_ih_l0.grad, rnn.weight_ih_l0.grad),
        (layer.weight_hh_l0.grad, blocks),
        (layer.bias_l0.grad, rnn.bias_ih_l0.grad),
    ]
    for a, b in pairs:
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3 * float(b.abs().max()))


def measure(shape: tuple[int, int, int, int], a_byte: float) -> list[object]:
    batch, steps, hidden, width = shape
    torch.manual_seed(0)
    x, grad = torch.randn(batch, steps, width), torch.randn(batch, steps, hidden)
    layer = ParaRNN(width, hidden)
    rnn = twin_of(layer)
    check_same(layer, rnn, x, grad)
    repeats = 3 if steps > 10_000 else 10
    torch_ms = median_ms(lambda: rnn(x)[0].backward(grad), repeats)
    ours_ms = median_ms(lambda: layer(x)[0].backward(grad), 5 * repeats)

    u = torch.randn(batch, steps, 2, hidden // 2, requires_grad=True)
    w = layer.weight_hh_l0.detach().flatten(0, 1).requires_grad_()
    cell = cells.para_rnn(2)
    out = recurrence(cell, u, w)[0]
    forward_ms = median_ms(lambda: recurrence(cell, u, w), 5 * repeats)
    shaped = grad.view_as(out)
    backward_ms = median_ms(
        lambda: torch.autograd.grad(out, (u, w), shaped, retain_graph=True), 5 * repeats
    )
    floor = {name: a_byte * n * batch * steps * hidden for name, n in BYTES.items()}
    return [
        shape,
        f"{torch_ms:.1f}",
        f"{ours_ms:.2f}",
        f"{torch_ms / ours_ms:.1f}",
        f"{floor['layer']:.2f}",
        f"{100 * floor['layer'] / ours_ms:.0f} %",
        f"{forward_ms:.2f} ({floor['forward']:.2f})",
        f"{backward_ms:.2f} ({floor['backward']:.2f})",
    ]


def main() -> None:
    print_machine()
    a_byte = copy_ms_a_byte()
    print(f"copy: {1e-6 / a_byte:.1f} GB/s read and written\n")
    header = [
        "(B, T, d, inputs)", "nn.RNN ms", "ParaRNN ms", "ratio", "floor ms", "reached",
        "recurrence forward ms (floor)", "backward ms (floor)",
    ]  # fmt: skip
    print_table(header, [measure(shape, a_byte) for shape in SHAPES])


if __name__ == "__main__":
    main()
