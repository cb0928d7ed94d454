"""Convergence of a time-parallel engine's iteration, and the reason for its failure."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from tsrnn.kernels._problem import Problem, over_replicates, without_ends
from tsrnn.kernels._reference import linearised, reference

STEPS_READ = 1024  # enough to estimate an exponent to a few hundredths a step
NUMBERS_READ = 2**22  # of Jacobians in memory: 32 MB in float64
LANES_READ = 16


@dataclass(frozen=True)
class Convergence:
    """Convergence of an engine, for each lane: a unit of a sequence.

    Newton's method corrects a guess by products of Jacobians, which grow as errors do: it ends in
    few passes where the exponent is negative, and not where it is positive (Gonzalez et al.,
    2025, Predictability enables parallelization of nonlinear state space models, NeurIPS). The
    exponent of the reason is the median over at most 16 lanes, over their first 1,024 steps. It
    may be negative along the states and positive along the guess that the iteration starts from,
    as in saturated units.

    Attributes
    ----------
    passes : Tensor of shape (B, K), int64
        Newton steps until the lane converged; 0 without iteration.
    residual : Tensor of shape (B, K)
        Largest remaining mismatch, relative to one plus the size of the state; not finite
        if a state is not.
    fell_back : Tensor of shape (B, K), bool
        Lanes that did not converge and were run in time order instead. Their results
        are exact too.
    reason : str, default ""
        Explanation for these lanes, from an estimate of their largest Lyapunov exponent; empty
        without such lanes, and under `torch.compile` and `torch.vmap`.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.kernels import cells, recurrence
    >>> u, w = torch.ones(1, 64, 2, 3), torch.full((4, 3), 0.1)
    >>> *_, result = recurrence(cells.para_rnn(2), u, w, engine="shooting", full_output=True)
    >>> result.passes.shape, bool(result.fell_back.any())
    (torch.Size([1, 3]), False)
    """

    passes: Tensor
    residual: Tensor
    fell_back: Tensor
    reason: str = field(default="", kw_only=True)

    @classmethod
    def exact(cls, initial: Tensor) -> Convergence:
        """Convergence without iteration; `initial` has shape (B, n, K)."""
        lanes = (initial.shape[0], initial.shape[2])
        passes = torch.zeros(lanes, dtype=torch.int64, device=initial.device)
        return cls(passes, initial.new_zeros(lanes), passes.bool())

    def __str__(self) -> str:
        lanes = self.passes.numel()
        if not lanes:
            return "no lanes"
        return (
            f"{lanes} lanes, passes median {int(self.passes.median())} largest "
            f"{int(self.passes.max())}, residual at most {float(self.residual.max()):.1e}, "
            f"{int(self.fell_back.sum())} run in time order"
            + (f". {self.reason}" if self.reason else "")
        )


def explained(convergence: Convergence, problem: Problem, final: Tensor, chunk: int) -> Convergence:
    """Convergence with the reason why lanes fell back, if any did.

    `chunk` is the number of steps between boundaries, 1 for Newton's method on every step;
    `final` is the final state (B, n, K).
    """
    lanes = convergence.fell_back
    # Values cannot be read under transforms, nor from fake tensors.
    if over_replicates(lanes) is not lanes or type(lanes) is not Tensor or not lanes.any():
        return convergence
    words = f"{int(lanes.sum())} of {lanes.numel()} lanes run in time order: "
    readable = lanes & final.isfinite().all(1)
    if not readable.any():
        return replace(convergence, reason=f"{words}their states are not finite.")
    exponent, noise = _exponent(problem, readable)
    if math.isnan(exponent):
        return replace(convergence, reason=f"{words}their Jacobians are not finite.")
    size = f"(largest Lyapunov exponent about {exponent:+.2g} a step)"
    if exponent > noise:
        stretch = problem.steps if chunk == 1 else chunk
        growth = exponent * stretch
        words += (
            f"the recurrence expands {size}, errors of a guess grow by "
            f"e^{growth:{'.0f' if growth >= 10 else '.2g'}} over {stretch} steps."
        )
    elif exponent >= -noise:
        words += (
            f"the recurrence neither contracts nor expands {size}, errors of a guess neither "
            "shrink nor grow."
        )
    else:
        passes = int(convergence.passes[readable].max())
        guess, guess_noise = _exponent(problem, readable, chunk)
        words += f"the recurrence contracts {size}, " + (
            f"but it expands along the first guess (about {guess:+.2g} a step)."
            if guess > guess_noise
            else f"but errors of the first guess outlast {passes} passes."
        )
    return replace(convergence, reason=words)


@torch.no_grad()
def _exponent(problem: Problem, marked: Tensor, chunk: int | None = None) -> tuple[float, float]:
    """Largest Lyapunov exponent a step, median over marked lanes, and twice its standard error.

    Along the states, or along chunks of time that each start at zero.
    """
    cell, inputs, params, initial, lengths = problem
    # An estimate needs two steps at least; memory bounds steps times lanes times n^2.
    steps = min(problem.steps, STEPS_READ, max(2, NUMBERS_READ // cell.n**2))
    most = max(1, min(LANES_READ, NUMBERS_READ // (steps * cell.n**2)))
    b, k = (index[:most] for index in marked.nonzero(as_tuple=True))
    u = without_ends(inputs, lengths)[b, :steps, :, k].permute(1, 2, 0)[None]
    w, first = params[:, k], initial[b, :, k].T[None]
    if chunk is None:
        states, _ = reference(Problem(cell, u, w, first))
    else:
        pieces = [
            reference(Problem(cell, x, w, torch.zeros_like(first)))[0] for x in u.split(chunk, 1)
        ]
        states = torch.cat(pieces, 1)
    before = torch.cat([first[:, None], states[:, :-1]], 1)
    jacobians = linearised(cell, u, w, before)[1][0].permute(0, 3, 1, 2)  # (t, lanes, n, n)
    # A generic direction: a special one might lie in an invariant subspace.
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(cell.n, 1, generator=generator, dtype=torch.float64).to(jacobians)
    v, rates = (start / start.norm()).expand(len(b), -1, -1), []
    for jacobian in jacobians:
        moved = jacobian @ v
        norm = moved.norm(dim=1, keepdim=True)
        rates.append(norm[:, 0, 0].log())
        v = torch.where(norm > 0, moved / norm, v)  # a vanishing one is kept, at minus infinity
    growth = torch.stack(rates, 1)
    # Standard error assuming independent rates: enough to decide a sign.
    noise = 2 * float(growth.std(1).median()) / steps**0.5
    return float(growth.mean(1).median()), noise
