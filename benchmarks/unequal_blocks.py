"""Time of a layer whose blocks have several sizes against the largest (Theorem 2, equation (3)).

A layer of d = 128 units, most of them in blocks of two and the rest in one block of d_max, beside
the layer whose blocks all have d_max. The theorem counts T d_max^2 + T d_max d_in + d^2 operations
forward where blocks run in parallel, so that only the largest counts; the last columns have its
numbers as multiples of those of blocks of two. Every size is first compared with torch.nn.RNN that
has the same blocks in one matrix. On the CPU sizes run one after the other.
"""

from __future__ import annotations

import torch
from _timing import median_ms, option_parser, print_machine, print_table, read_options
from torch import nn

from tsrnn.erm import layer_complexity
from tsrnn.layers import ParaRNN, UnequalParaRNN

UNITS, LARGEST = 128, (2, 4, 8, 16, 32, 64, 128)


def dense_twin(layer: UnequalParaRNN) -> nn.RNN:
    """The ordinary network with a block diagonal matrix."""
    twin = nn.RNN(layer.input_size, layer.hidden_size, batch_first=True)
    matrix = torch.zeros(layer.hidden_size, layer.hidden_size)
    blocks = [block for part in layer.parts(0) for block in part.recurrent_blocks()[0]]
    for units, block in zip(layer.block_units(), blocks, strict=True):
        matrix[units[:, None], units] = block
    with torch.no_grad():
        twin.weight_hh_l0.copy_(matrix)
        twin.weight_ih_l0.copy_(torch.cat([part.weight_ih_l0 for part in layer.parts(0)]))
        twin.bias_ih_l0.copy_(torch.cat([part.bias_l0 for part in layer.parts(0)]))
        twin.bias_hh_l0.zero_()
    return twin


def times(layer: nn.Module, x: torch.Tensor, repeats: int) -> tuple[float, float]:
    """Milliseconds of a forward pass, and of one forward and back."""

    def both() -> None:
        layer(x)[0].sum().backward()

    with torch.no_grad():
        forward = median_ms(lambda: layer(x), repeats)
    return forward, median_ms(both, repeats)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--length", type=int, default=784)
    parser.add_argument("--inputs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=7)
    options = read_options(parser, length=20, batch=2, repeats=1)
    print_machine()
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(options.batch, options.length, options.inputs, generator=generator)
    x = x.to(options.device)
    rows, start = [], None
    for largest in LARGEST:
        sizes = [2] * ((UNITS - largest) // 2) + [largest]
        torch.manual_seed(0)
        mixed = UnequalParaRNN(options.inputs, UNITS, sizes)
        twin, equal = dense_twin(mixed), ParaRNN(options.inputs, UNITS, largest)
        mixed, twin, equal = (module.to(options.device) for module in (mixed, twin, equal))
        with torch.no_grad():
            torch.testing.assert_close(mixed(x)[0], twin(x)[0], rtol=1e-4, atol=1e-4)
        cost = layer_complexity(options.length, options.inputs, block_sizes=sizes)
        start = start or cost
        rows.append([
            largest, len(sizes), *(f"{value:.1f}" for value in times(mixed, x, options.repeats)),
            *(f"{value:.1f}" for value in times(equal, x, options.repeats)),
            f"{cost.forward / start.forward:.1f}", f"{cost.backward / start.backward:.0f}",
        ])  # fmt: skip
    print(f"\nd = {UNITS}, T = {options.length}, d_in = {options.inputs}, {options.batch} rows "
          f"on {options.device}, milliseconds")  # fmt: skip
    print_table(
        ["d_max", "blocks", "forward", "both", "all of d_max: forward", "both",
         "Theorem 2, forward", "backward"],
        rows,
    )  # fmt: skip


if __name__ == "__main__":
    main()
