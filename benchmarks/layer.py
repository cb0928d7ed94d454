"""Forward and backward pass of ParaRNN, ParaGRU and ParaLSTM layers beside torch's layers.

Both sides hold the same numbers: the recurrent matrices of torch's layer are the block-diagonal
ones of ours, and outputs and gradients are compared before anything is timed. ParaGRU is compared
with its reset gate where torch has it, after the matrix product; the last column times the layer of
the papers, which has it before. Each side is timed with outputs dropped before the next ones are
computed, which take their memory, and "fresh", with outputs that live until the next are there, as
in a training loop; the columns behind are of the latter. The floor is the time to copy as many
bytes as have to be moved:
12 a state and layer output, write h, later read h and its gradient, as the projection of so few
inputs is part of the kernel. The recurrence of ParaRNN alone, on inputs that are there already,
moves 8 forward (read u, write h) and 12 backward (read h and its gradient, write that of u).
"""

from __future__ import annotations

import torch
from _recurrences import full_matrices
from _timing import (
    copy_ms_a_byte,
    median_ms,
    option_parser,
    print_machine,
    print_table,
    read_options,
)
from torch import Tensor, nn

from tsrnn.kernels import cells, recurrence
from tsrnn.layers import ParaRNN

Shape = tuple[int, int, int, int]
SHAPES: list[Shape] = [(64, 784, 128, 1), (8, 17984, 32, 6), (32, 96, 128, 7)]
BYTES = {"layer": 12, "forward": 8, "backward": 12}
CELL = cells.para_rnn(2)
KINDS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
# Torch's matrices in terms of ours, by number and sign: torch's z gates the old state.
ORDERS = {"rnn": [(0, 1)], "gru": [(1, 1), (0, -1), (2, 1)], "lstm": [(k, 1) for k in range(4)]}


def layer_of(kind: str, width: int, hidden: int) -> ParaRNN:
    return ParaRNN(
        width, hidden, cell=cells.para_gru(2, reset_after=True) if kind == "gru" else kind
    )


def in_torch_order(kind: str, whole: Tensor) -> Tensor:
    """Parts of a tensor (parts * hidden, ...) as torch's layer has them."""
    parts = whole.chunk(len(ORDERS[kind]))
    return torch.cat([sign * parts[k] for k, sign in ORDERS[kind]])


def twin_of(kind: str, layer: ParaRNN) -> nn.RNNBase:
    """Torch's layer with the same weights, its features in the order of ours."""
    rnn = KINDS[kind](layer.input_size, layer.hidden_size, batch_first=True)
    with torch.no_grad():
        rnn.weight_ih_l0.copy_(in_torch_order(kind, layer.weight_ih_l0))
        whole = full_matrices(layer.weight_hh_l0).flatten(0, -2)
        rnn.weight_hh_l0.copy_(in_torch_order(kind, whole))
        rnn.bias_ih_l0.copy_(in_torch_order(kind, layer.bias_l0))
        rnn.bias_hh_l0.zero_()
    return rnn


def check_same(kind: str, layer: ParaRNN, rnn: nn.RNNBase, x: Tensor, grad: Tensor) -> None:
    """Compare outputs and all gradients."""
    ours, theirs = layer(x)[0], rnn(x)[0]
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    ours.backward(grad)
    theirs.backward(grad)
    inside = full_matrices(torch.ones_like(layer.weight_hh_l0)).flatten(0, -2)
    of_state = full_matrices(layer.weight_hh_l0.grad).flatten(0, -2)
    pairs = [
        (layer.weight_ih_l0.grad, rnn.weight_ih_l0.grad),
        (of_state, rnn.weight_hh_l0.grad * inside),
        (layer.bias_l0.grad, rnn.bias_ih_l0.grad),
    ]
    for a, b in pairs:
        a = in_torch_order(kind, a)
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3 * float(b.abs().max()))


def both_ways_ms(layer: nn.Module, x: Tensor, grad: Tensor, repeats: int) -> list[float]:
    """Median times of a forward and backward pass, on memory used before and on fresh memory."""

    def pass_() -> Tensor:
        outputs: Tensor = layer(x)[0]
        outputs.backward(grad)
        return outputs

    return [median_ms(pass_, repeats, fresh=fresh) for fresh in (False, True)]


def layers(a_byte: float, shapes: list[Shape]) -> None:
    rows = []
    for kind in KINDS:
        for batch, steps, hidden, width in shapes:
            torch.manual_seed(0)
            x, grad = torch.randn(batch, steps, width), torch.randn(batch, steps, hidden)
            layer = layer_of(kind, width, hidden)
            rnn = twin_of(kind, layer)
            check_same(kind, layer, rnn, x[:, :200], grad[:, :200])
            repeats = 3 if steps > 10_000 else 10
            paper = ParaRNN(width, hidden, cell=kind)
            theirs = both_ways_ms(rnn, x, grad, repeats)
            ours, papers = (both_ways_ms(one, x, grad, 3 * repeats) for one in (layer, paper))
            floor = a_byte * BYTES["layer"] * batch * steps * hidden * layer.cell.n / 2
            rows.append([
                kind, (batch, steps, hidden, width), *(f"{t:.1f}" for t in theirs),
                *(f"{t:.2f}" for t in ours), f"{theirs[1] / ours[1]:.1f}", f"{floor:.2f}",
                f"{100 * floor / ours[1]:.0f} %", f"{papers[1]:.2f}",
            ])  # fmt: skip
    header = ["layer", "(B, T, d, inputs)", "torch ms", "fresh", "tsrnn ms", "fresh", "ratio",
              "floor ms", "reached", "of the papers ms"]  # fmt: skip
    print_table(header, rows)


def recurrence_alone(a_byte: float, shapes: list[Shape]) -> None:
    rows = []
    for batch, steps, hidden, _ in shapes:
        u = torch.randn(batch, steps, 2, hidden // 2, requires_grad=True)
        w = ParaRNN(1, hidden).weight_hh_l0.detach().flatten(0, 1).requires_grad_()
        repeats = 30
        out = recurrence(CELL, u, w)[0]
        grad = torch.randn_like(out)
        times = {
            "forward": median_ms(lambda u=u, w=w: recurrence(CELL, u, w), repeats),
            "backward": median_ms(
                lambda out=out, u=u, w=w, grad=grad: torch.autograd.grad(
                    out, (u, w), grad, retain_graph=True
                ),
                repeats,
            ),
        }
        row: list[object] = [(batch, steps, hidden)]
        for name, time in times.items():
            floor = a_byte * BYTES[name] * batch * steps * hidden
            row += [f"{time:.2f}", f"{floor:.2f}", f"{time / floor:.1f}"]
        rows.append(row)
    print("\nThe recurrence of ParaRNN alone\n")
    header = ["forward ms", "floor ms", "ratio", "backward ms", "floor ms", "ratio"]
    print_table(["(B, T, d)", *header], rows)


def main() -> None:
    options = read_options(option_parser(__doc__))
    print_machine()
    a_byte = copy_ms_a_byte()
    print(f"copy: {1e-6 / a_byte:.1f} GB/s read and written\n")
    shapes = [(2, 30, 8, 1)] if options.smoke else SHAPES
    layers(a_byte, shapes)
    recurrence_alone(a_byte, shapes)


if __name__ == "__main__":
    main()
